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

from revealed.chain import expected_payoff
from revealed.checks import Floats
from revealed.curvature import units_at_end, units_of
from revealed.errors import RevealedError
from revealed.estimation import HARDLY, Options, Run
from revealed.fit import AnyFit, Fit
from revealed.goal_cases import MOST_KEPT
from revealed.goal_estimation import GoalRun, run_for
from revealed.goal_fit import GoalFit
from revealed.loaded_updates import require_updates
from revealed.logit_rows import weighted_log
from revealed.objective import Evaluation
from revealed.rewards.base import lift_reward, of_trips
from revealed.sweeps import q_values, soft_maximum

SAME = 1e-6  # relative difference that is rounding, on any machine: choices are known to that, or refused (theory B6)
SOLVED = 1e-9  # what solvers leave of Bellman's equation, relative to the values; most leave 1e-15
ENDED = 10.0  # times the rule of the search: its gradient is that of another machine
FLAT = 1e-7  # gradient norm below which rounding may have made all of it
ALIKE = 1e6  # factor by which a gradient may differ in other units, where a file does not tell its own
MOST_SOLVED = 1_000_000  # pairs
METHODS = ("NFXP", "MCE-IRL", "CCP", "NPL")


def table_gap(fit: AnyFit) -> float:
    """The largest difference, where a choice is, between the reward at θ and the table that was saved; zero where they
    are the same."""
    found = np.asarray(lift_reward(fit.reward_model, fit.mdp).value(fit.theta), dtype=np.float64)
    table, saved = np.broadcast_to(found, fit.mdp.feasible.shape)[fit.mdp.feasible], fit.reward[fit.mdp.feasible]
    if not np.isfinite(table).all() or not np.isfinite(saved).all():
        return 0.0 if np.array_equal(table, saved, equal_nan=True) else float("inf")
    return 0.0 if np.allclose(table, saved, rtol=SAME, atol=SAME) else float(np.abs(table - saved).max())


def require_recomputed(fit: AnyFit) -> None:
    """Everything that follows from θ is what the file says."""
    _require_method(fit)
    if isinstance(fit, Fit):
        _require_llf(fit.llf, weighted_log(fit.demonstrations.counts, fit.log_policy))
        _require_bellman(fit)  # also where a later solve failed: the point that was kept is one that was solved
    if _is_quick(fit):
        (_require_failed if fit.status.code == "inner_solve_failed" else _require_end)(fit)


def _require_method(fit: AnyFit) -> None:
    """The method, its π̃ and its options are told twice, and the same."""
    estimator: Any = fit.estimator
    if fit.method not in METHODS or bool(fit.own_policy) is not (fit.method in METHODS[:2]):
        raise ValueError(f"the method is {fit.method!r}, but its π̃ is that of another method")
    if (fit.settled is not None) is not (fit.method == "NPL"):
        raise ValueError(f"{fit.method} cannot be marked as settled")
    if estimator is None:
        return
    own = vars(estimator.options)
    settled = {"first_step": "auto", "l2": None}  # by the data and the reward
    same = [_alike(fit.options[name], own[name]) or own[name] == settled.get(name, _NEVER) for name in fit.options]
    if estimator.method != fit.method or not all(same):
        raise ValueError("the options of its estimator differ from those of the fit")


_NEVER = object()


def _alike(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        return np.array_equal(np.asarray(one), np.asarray(two))
    return one is two or (type(one) is type(two) and (one == two or repr(one) == repr(two)))


# Bellman's equation: one product with T


def _require_bellman(fit: Fit) -> None:
    """Q = r + γTV, value = log Σ exp Q, π = exp(Q − value), for the V that goes with π̃ (theory V1, V2, P1)."""
    mdp, feasible = fit.mdp, fit.mdp.feasible
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


# the objective and its gradient: one linear solve


def _is_quick(fit: AnyFit) -> bool:
    """Whether the solve is no longer than a moment: of trips with goals one factorisation serves all, or they are few;
    a reward with a program of its own that has many goals is not asked."""
    if not isinstance(fit, GoalFit):
        return fit.mdp.feasible.size <= MOST_SOLVED
    linear = bool(getattr(fit.reward_model, "linear", False))
    shared = fit.own_policy and fit.mdp.certain and not of_trips(fit.reward_model)
    return (linear and shared) or fit.goal_states.size * fit.mdp.feasible.size <= MOST_KEPT


def _require_end(fit: AnyFit) -> None:
    """The objective, its gradient, and a status that these allow."""
    run, point = _looked_again(fit)
    if point.problem is not None:
        raise ValueError(f"there is no solution at its estimate: {point.problem}")
    _require_point(fit, run, point)
    _require_status(fit, run, point)


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
        found = float(np.linalg.norm(gradient / fit.units))
        same = np.isclose(told, found, rtol=1e-4, atol=FLAT)
    else:
        norms = [float(np.linalg.norm(gradient / units(point))) for units in (units_of, units_at_end)]
        found, same = norms[0], min(norms) / ALIKE - FLAT <= told <= max(norms) * ALIKE + FLAT
    if not same:
        raise ValueError(f"the gradient norm is {told:.3g}, but {found:.3g} at this estimate")


def _require_status(fit: AnyFit, run: Run, point: Evaluation) -> None:
    """A status is no better than the numbers: where it claims a maximum there is one, that choices identify."""
    code = fit.status.code
    if fit.status.interrupted and code != "iteration_limit":
        raise ValueError(f"it is marked as interrupted, but its status is {code}")
    if fit.method == "NPL":
        require_updates(fit, run, point, _pi_tilde(fit, run), _is_end(run, point))
    if not fit.at_maximum:
        return _require_no_end(fit, run, point)
    try:
        near = run.has_ended(point, ENDED) or (bool(fit.settled) and isinstance(fit, GoalFit) and _hardly(point))
        found = run.judged(point) if near and code != "iteration_limit" else code
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
    if code == "cycling" and fit.method != "NPL":
        raise ValueError("its status is cycling, but its updates do not circle")
    if code == "separated" and run.surely_has_maximum(point):
        raise ValueError("its status is separated, but the likelihood has a maximum at its estimate")
    if code == "iteration_limit" and not fit.status.interrupted and fit.method != "NPL" and _is_end(run, point):
        raise ValueError("its status is iteration_limit, but its search has ended at a maximum")


def _is_end(run: Run, point: Evaluation) -> bool:
    """Whether a search plainly would end here, and well; what cannot be computed is no end."""
    try:
        run.require_known(point)
        return run.has_ended(point, 1.0 / ENDED) and run.judged(point) != "separated"
    except RevealedError:
        return False


def _require_failed(fit: AnyFit) -> None:
    """Something fails at the estimate, or it is not a maximum; where all is solved, the numbers are what comes out."""
    try:
        run, point = _looked_again(fit)
    except (RevealedError, ArithmeticError, np.linalg.LinAlgError):
        return
    if point.problem is not None or not _is_known(run, point):
        return
    _require_point(fit, run, point)
    if _is_end(run, point):
        raise ValueError("its status is inner_solve_failed, but the model is solved at its estimate")


def _is_known(run: Run, point: Evaluation) -> bool:
    """Whether float64 can tell the choices at a point (theory B6)."""
    try:
        run.require_known(point)
    except RevealedError:
        return False
    return True


def _hardly(point: Evaluation) -> bool:
    """Whether an NPL that has settled is as near to a maximum of the likelihood as it had to be."""
    step = np.linalg.lstsq(point.information, point.gradient, rcond=None)[0]
    return float(step @ point.gradient) * point.objective.total <= (2.0 * HARDLY) ** 2
