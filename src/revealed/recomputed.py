"""What follows from θ, worked out again when a fit is loaded: a file that says something else is refused.

A checksum can be recomputed after an edit, so that it proves nothing. The reward at θ, Bellman's equation (theory V2,
B1), log likelihood, objective and gradient (O4, G4) are computed here from the model, the data and θ alone, and
compared with what was stored; a status is no better than these numbers make it. Bellman's equation costs one product
with T. The gradient costs one linear solve, which models of more than `MOST_SOLVED` pairs are spared. Complaints are
plain `ValueError`s; `loading.py` says whose file it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed.agent_groups import AgentGroups
from revealed.bootstrap import Bootstrap, draw_weights
from revealed.chain import expected_payoff
from revealed.checks import Floats
from revealed.curvature import units_at_end, units_of
from revealed.diagnosis import Status
from revealed.errors import RevealedError
from revealed.estimation import Options, Run
from revealed.fit import AnyFit, Fit
from revealed.goal_cases import MOST_KEPT
from revealed.goal_estimation import GoalRun, run_for
from revealed.goal_fit import GoalFit
from revealed.loaded_transitions import is_same_table
from revealed.loaded_updates import require_updates
from revealed.loaded_words import STALLED, last_search, retold
from revealed.logit_rows import weighted_log
from revealed.objective import Evaluation, vector_length
from revealed.rewards.base import is_linear, lift_reward, of_trips
from revealed.sweeps import q_values, soft_maximum

SAME = 1e-6  # relative difference that is rounding, on any machine: choices are known to that, or refused (theory B6)
SOLVED = 1e-9  # what solvers leave of Bellman's equation, relative to the values; most leave 1e-15
ENDED = 10.0  # times the rule of the search: its gradient is that of another machine
FLAT = 1e-7  # gradient norm below which rounding may have made all of it
ALIKE = 1e6  # factor by which a gradient may differ in other units, where a file does not tell its own
MOST_SOLVED = 1_000_000  # pairs
SMALL = 20_000  # pairs times parameters, and goals
METHODS = ("NFXP", "MCE-IRL", "CCP", "NPL")


def table_gap(fit: AnyFit) -> float:
    """The largest difference, where a choice is, between the reward at θ and the table that was saved; zero where they
    are the same."""
    found = np.asarray(lift_reward(fit.reward_model, fit.mdp).value(fit.theta), dtype=np.float64)
    table, saved = np.broadcast_to(found, fit.mdp.feasible.shape)[fit.mdp.feasible], fit.reward[fit.mdp.feasible]
    if not np.isfinite(table).all() or not np.isfinite(saved).all():
        return 0.0 if np.array_equal(table, saved, equal_nan=True) else float("inf")
    return 0.0 if np.allclose(table, saved, rtol=SAME, atol=SAME) else float(np.abs(table - saved).max())


def require_recomputed(fit: AnyFit) -> Status:
    """Everything that follows from θ is what the file says. Returns the status in the words that follow, too."""
    _require_method(fit)
    if isinstance(fit, Fit):
        _require_llf(fit.llf, weighted_log(fit.demonstrations.counts, fit.log_policy))
        _require_bellman(fit)  # also where a later solve failed: the point that was kept is one that was solved
    if not _is_quick(fit):
        return fit.status
    if hasattr(fit.reward_model, "_again"):
        _require_sizes(fit.reward_model)
    return (_require_failed if fit.status.code == "inner_solve_failed" else _require_end)(fit)


def _require_method(fit: AnyFit) -> None:
    """The method, its π̃ and its options are stored twice and must agree."""
    estimator: Any = fit.estimator
    if fit.method not in METHODS or bool(fit.own_policy) is not (fit.method in METHODS[:2]):
        raise ValueError(f"the method is {fit.method!r}, but its π̃ is that of another method")
    if (fit.settled is not None) is not (fit.method == "NPL"):
        raise ValueError(f"{fit.method} cannot be marked as settled")
    if estimator is None:
        return
    if estimator.method != fit.method or not all(_alike(fit.options[name], own) for name, own in _settled(fit).items()):
        raise ValueError("the options of its estimator differ from those of the fit")


def _settled(fit: AnyFit) -> dict[str, Any]:
    """The options of the estimator, with what the data and the reward decide."""
    own = {name: value for name, value in vars(fit.estimator.options).items() if name in fit.options}
    if isinstance(own["first_step"], str) and own["first_step"] == "auto":
        own["first_step"] = (GoalRun if isinstance(fit, GoalFit) else Run).usual_step
    if own["l2"] is None:
        usual = getattr(fit.reward_model, "usual_l2", lambda n: 0.0)(fit.demonstrations.n_decisions)
        own["l2"] = fit.options["l2"] if np.isclose(usual, fit.options["l2"], rtol=SAME, atol=0.0) else usual
    return own


def _alike(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return np.array_equal(np.asarray(one), np.asarray(two))
    return one is two or (type(one) is type(two) and (one == two or repr(one) == repr(two)))


# Bellman's equation: one product with T


def _require_bellman(fit: Fit) -> None:
    """Q = r + γTV, value = log Σ exp Q, π = exp(Q − value), for the V that goes with π̃ (theory V1, V2, P1)."""
    mdp, feasible = fit.mdp, fit.mdp.feasible
    if (fit.q[~feasible] != -np.inf).any() or (fit.log_policy[~feasible] != -np.inf).any():
        raise ValueError("q or log_policy hold values of infeasible actions")
    q = np.where(feasible, fit.q, 0.0)
    if not np.isfinite(q).all() or not np.isfinite(fit.value).all():
        raise ValueError("q or value hold values that are not numbers")
    V = fit.value if fit.own_policy else expected_payoff(fit.pi_tilde, q)
    size = 1.0 + float(np.abs(q).max(initial=0.0))
    expected = q_values(mdp, np.where(feasible, fit.reward, 0.0), np.where(mdp.terminal, 0.0, V))
    left = float(np.abs(np.where(feasible, expected, 0.0) - q).max(initial=0.0))
    if not left <= SOLVED * size:
        raise ValueError(f"q does not solve Bellman's equation for its reward (off by {left:.3g})")
    value, policy, log_policy = soft_maximum(np.where(feasible, fit.q, -np.inf))
    pairs = {"value": (value, fit.value), "policy": (policy, fit.policy)}
    pairs["log_policy"] = (log_policy[feasible], fit.log_policy[feasible])
    _require_close(pairs | ({"pi_tilde": (policy, fit.pi_tilde)} if fit.own_policy else {}), SOLVED * size)


def _require_close(pairs: dict[str, tuple[Floats, Floats]], least: float = 0.0) -> None:
    for name, (found, told) in pairs.items():
        if not np.allclose(told, found, rtol=SAME, atol=max(SAME, least)):
            raise ValueError(f"{name} does not follow from θ (off by {np.abs(told - found).max():.3g})")


def _require_llf(told: float, found: float) -> None:
    if not np.isclose(found, told, rtol=SAME, atol=SAME, equal_nan=True):
        raise ValueError(f"the log likelihood is {told:.6g}, but these data under this policy give {found:.6g}")


# link sizes: one factorisation where they are stated


def _require_sizes(reward: Any) -> None:
    """Sizes of links follow from network, demand and stated parameters; features of turns, from attributes."""
    again = reward._again()
    same = is_same_table(again.sizes.matrix, reward.sizes.matrix)
    if not same or any((vars(again.sizes)[k] != vars(reward.sizes)[k]).any() for k in ("goal", "origin")):
        raise ValueError("the link sizes are not those of its network, demand and stated parameters")
    if reward.shared not in (None, again.shared):
        raise ValueError("the features of turns are not the attributes of its network")
    pairs = ((again._matrix, reward._matrix), (again._none.matrix, reward._none.matrix))
    if again.names != reward.names or any(abs(one - two).max() != 0.0 for one, two in pairs):
        raise ValueError("the features of trips are not those of turns")


# the objective and its gradient: one linear solve


def _is_small(fit: AnyFit) -> bool:
    """Whether a solve takes some milliseconds at most."""
    goals = fit.goal_states.size if isinstance(fit, GoalFit) else 1
    return fit.theta.size * goals * fit.mdp.feasible.size <= SMALL


def _is_quick(fit: AnyFit) -> bool:
    """Whether the solve is no longer than a moment: of trips with goals one factorisation serves all, or they are few;
    a reward with a program of its own that has many goals is not asked."""
    if not isinstance(fit, GoalFit):
        return fit.mdp.feasible.size <= MOST_SOLVED
    linear = bool(getattr(fit.reward_model, "linear", False))
    shared = fit.own_policy and fit.mdp.certain and not of_trips(fit.reward_model)
    return (linear and shared) or fit.goal_states.size * fit.mdp.feasible.size <= MOST_KEPT


def _require_end(fit: AnyFit) -> Status:
    """The objective, its gradient, and a status that these allow."""
    run, point = _looked_again(fit)
    if point.problem is not None:
        raise ValueError(f"there is no solution at its estimate: {point.problem}")
    _require_point(fit, run, point)
    pi_tilde = _pi_tilde(fit, run)
    _require_status(fit, run, point, pi_tilde)
    return retold(fit, run, point, pi_tilde)


def _require_point(fit: AnyFit, run: Run, point: Evaluation) -> None:
    """Behaviour, objective and gradient are those of the point."""
    if isinstance(fit, Fit):
        part = point.parts[0]
        _require_close({name: (getattr(part, name), getattr(fit, name)) for name in ("value", "policy")}, _level(fit))
    elif isinstance(run, GoalRun):
        _require_llf(fit.llf, run.llf(point))
    if not np.isclose(point.value, fit.objective, rtol=SAME, atol=SAME):
        raise ValueError(f"the objective is {fit.objective:.6g}, but {point.value:.6g} at this estimate")
    _require_gradient(fit, point)


def _looked_again(fit: AnyFit) -> tuple[Run, Evaluation]:
    run = run_for(fit.method, fit.reward_model, Options(**fit.options), fit.mdp, fit.demonstrations)
    run.value, run.again = fit.near_value, True
    return run, run.look_again(fit.theta, _pi_tilde(fit, run))


def _level(fit: Fit) -> float:
    """How well values are known where a discount near 1 makes their common level large."""
    return SAME * (1.0 + float(np.abs(fit.value).max(initial=0.0)))


def _pi_tilde(fit: AnyFit, run: Any) -> Any:
    """π̃ as the method chose it last: π_θ, π̂_E, which is estimated again, or what an update of NPL left."""
    if fit.own_policy:
        return run.own()
    first = fit.method == "CCP" or fit.updates == 1
    if isinstance(fit, Fit):
        if first:
            _require_close({"pi_tilde": (run.expert, fit.pi_tilde)})
        return run.given(fit.pi_tilde)
    if isinstance(fit, GoalFit) and fit.stored is not None:
        return fit.stored
    return run.expert if first else run.own()  # of an NPL that has settled: π_θ (theory E4)


def _require_gradient(fit: AnyFit, point: Evaluation) -> None:
    """The norm of the gradient, in the units that were used; an older file, which does not tell them, comes near."""
    if isinstance(fit, GoalFit) and fit.settled:
        return  # π̃ that an update left is not kept
    gradient, told = point.gradient, fit.gradient_norm
    if fit.units is not None:
        found = vector_length(gradient, fit.units)
        same = np.isclose(told, found, rtol=1e-4, atol=FLAT * (ALIKE if fit.status.code == "separated" else 1.0) ** 0.5)
    else:
        norms = [vector_length(gradient, units(point)) for units in (units_of, units_at_end)]
        found, same = norms[0], min(norms) / ALIKE - FLAT <= told <= max(norms) * ALIKE + FLAT
    if not same:
        raise ValueError(f"the gradient norm is {told:.3g}, but {found:.3g} at this estimate")


def _require_status(fit: AnyFit, run: Run, point: Evaluation, pi_tilde: Any) -> None:
    """A status is no better than the numbers: where it claims a maximum there is one, that choices identify."""
    code = fit.status.code
    if fit.status.interrupted and code != "iteration_limit":
        raise ValueError(f"it is marked as interrupted, but its status is {code}")
    if fit.method == "NPL":
        met = code != "iteration_limit" or _has_met_rule(fit, run)
        require_updates(fit, run, point, pi_tilde, met and _is_end(run, point))
    if code not in ("converged", "unidentified"):
        return _require_no_end(fit, run, point)
    try:
        near = run.has_ended(point, ENDED) or (
            bool(fit.settled) and isinstance(fit, GoalFit) and run.hardly_moves(point)
        )
        found = run.judged(point) if near else code
    except RevealedError as error:
        raise ValueError(f"its status cannot be checked: {error}") from error
    if not near:
        raise ValueError(f"its status is {code}, but its estimate is not a maximum")
    if code == "converged" and found != "converged":
        raise ValueError(f"its status is converged, but its estimate is {found}")
    if code == "unidentified" and found == "converged":
        raise ValueError("its status is unidentified, but its choices identify all parameters")
    if found == "separated":
        raise ValueError(f"its status is {code}, but its weights diverge")


def _require_no_end(fit: AnyFit, run: Run, point: Evaluation) -> None:
    """A status is no worse than the numbers either: where it denies a maximum, there plainly is none."""
    code = fit.status.code
    if code == "cycling" and (fit.method != "NPL" or not run.has_ended(point, ENDED)):
        raise ValueError("its status is cycling, but its updates do not cycle")
    if code == "separated" and (run.surely_has_maximum(point) or not _may_run_away(fit, run, point)):
        raise ValueError("its status is separated, but the likelihood has a maximum")
    if code == "iteration_limit" and not fit.status.interrupted:
        _require_held(fit, run, point)
        if fit.method != "NPL" and _has_met_rule(fit, run) and _is_end(run, point):
            raise ValueError("its status is iteration_limit, but its search has ended at a maximum")


def _require_held(fit: AnyFit, run: Run, point: Evaluation) -> None:
    """Weights that run away would have been told (theory I2), however the search ended."""
    if _is_small(fit) and run.has_no_maximum(point):
        raise ValueError(f"its status is {fit.status.code}, but its weights diverge")


def _may_run_away(fit: AnyFit, run: Run, point: Evaluation) -> bool:
    """Whether weights run away at the estimate or, since the search also looks where it came from, after another one
    like it."""
    if fit.estimator is None or not _is_small(fit) or run.has_no_maximum(point):
        return True
    again = run_for(fit.method, fit.reward_model, Options(**fit.options), fit.mdp, fit.demonstrations)
    again.rehearse()
    return again.has_no_maximum(fit.estimator._search(again).best)


def _is_end(run: Run, point: Evaluation) -> bool:
    """Whether a search plainly would end here, and well; what cannot be computed is not an end."""
    try:
        run.require_known(point)
        return run.has_ended(point, 1.0 / ENDED) and run.judged(point) != "separated"
    except RevealedError:
        return False


def _require_failed(fit: AnyFit) -> Status:
    """Something fails at the estimate, or it is not a maximum; where all is solved, the numbers are what comes out."""
    try:
        run, point = _looked_again(fit)
    except (RevealedError, ArithmeticError, np.linalg.LinAlgError):
        return fit.status
    if point.problem is not None or not _is_known(run, point):
        return fit.status
    _require_point(fit, run, point)
    if _is_end(run, point):
        raise ValueError("its status is inner_solve_failed, but the model is solved at its estimate")
    on_the_way = fit.status.message.startswith(STALLED)
    if on_the_way and (fit.settled or len(last_search(fit)) > (run.rule.max_iter or 1)):
        raise ValueError("its status is inner_solve_failed, but its last search came to its end")
    if _is_small(fit):
        try:
            _require_held(fit, run, point)
            again = retold(fit, run, point, _pi_tilde(fit, run))
        except RevealedError:
            return fit.status
        if not on_the_way:
            raise ValueError("its status is inner_solve_failed, but nothing fails at its estimate")
        return again
    return fit.status


def _has_met_rule(fit: AnyFit, run: Run) -> bool:
    """Whether the last search has plainly met its stopping rule: for the first time at its end, or by itself."""
    norms = [row["gradient_norm"] for row in last_search(fit)]
    tol, patience = run.rule.tol or 0.0, run.rule.patience or 1
    quiet = len(norms) >= patience and max(norms[-patience:]) <= tol
    return quiet and (len(norms) <= (run.rule.max_iter or 1) or min(norms[:-patience], default=np.inf) > tol)


def _is_known(run: Run, point: Evaluation) -> bool:
    """Whether float64 can tell the choices at a point (theory B6)."""
    try:
        run.require_known(point)
    except RevealedError:
        return False
    return True


# the bootstrap: its draws follow from the data and the seed


def require_replications(fit: AnyFit) -> None:
    """The first replication and the one farthest from the others, on which standard errors depend most, are estimates
    from the agents that their seed draws (theory N6), where that takes milliseconds: of small models whose reward is
    linear. The others are taken as they were stored."""
    known = fit.estimator is not None and is_linear(fit.reward_model) and _is_small(fit)
    for found in fit.kept.values() if known else ():
        groups = fit.groups if found.by else None
        if found.by == ("" if groups is None else groups.key):
            _require_draws(fit, found, groups)


def _require_draws(fit: AnyFit, found: Bootstrap, groups: AgentGroups | None) -> None:
    away = (found.theta - found.theta.mean(axis=0)) / np.maximum(found.theta.std(axis=0), np.finfo(float).tiny)
    farthest = int(found.index[np.argmax((away**2).sum(axis=1))])
    n = fit.demonstrations.n_agents if groups is None else groups.n
    for r in {int(found.index[0]), farthest}:
        weights = draw_weights(n, found.seed, r)
        if not fit._reestimation.is_maximum(
            weights if groups is None else groups.spread(weights), found.done[r], ENDED
        ):
            raise ValueError(f"replication {r} of its bootstrap is not an estimate from the agents that were drawn")
