"""How far a recovered policy or reward is from the truth, exactly, on sparse models (theory D1–D6).

Policies are judged by the likelihood of demonstrations (`nll`), by its expectation under the true expert
(`population_nll`, `excess_nll`) and by what they earn (`stochastic_evd`); rewards by what their optimal policy earns
(`evd`) and by two distances that look at the rewards alone: `epic`, which knows nothing of the dynamics, and `starc`,
which does. `Truth` keeps what many comparisons share.

Where trips have goals, each goal has its own model, `mdp.toward(goal)`, and its own policy: likelihoods are summed over
the goals, differences and distances are means over the trips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from revealed.alignment import own_turns, same_model
from revealed.bellman import solve
from revealed.chain import Chain, as_policy
from revealed.checks import as_floats, is_mapping, pass_instead, require_floats, require_option
from revealed.demonstrations import Demonstrations, require_demonstrations
from revealed.errors import InvalidDemonstrations, InvalidDistribution, InvalidInput
from revealed.fit import AnyFit
from revealed.gates import require_list
from revealed.goal_fit import GoalFit
from revealed.goal_values import GoalValues
from revealed.hard_bellman import HardOptimum, solve_hard
from revealed.matching import match_labels, require_fit
from revealed.mdp import MDP, Floats, require_mdp
from revealed.naming import pair_in_words, state_in_words
from revealed.positions import by_position, in_order, labelled, names_in
from revealed.reward_distances import as_table, epic, starc
from revealed.rewards.base import of_trips
from revealed.sheet import MISSING, Printed, Sheet
from revealed.starts import Starts, starts_of
from revealed.trip_demand import Demand, demand_of
from revealed.voices import arg, shown

__all__ = [
    "Scores", "Truth", "entropy", "epic", "evaluate", "evd", "excess_nll", "expected_return", "nll", "policy_value",
    "population_nll", "starc", "stochastic_evd",
]  # fmt: skip


METRICS = ("nll", "evd", "stochastic_evd", "epic", "starc")


class Scores(dict[str, float], Printed):
    """Metrics by name, a dict. `starts` says where agents begin (returns are means over these starts), and `initial`
    (S,) is that distribution (None where trips have goals); `notes` say why a metric is missing (NaN) and what was
    solved again."""

    def __init__(
        self, scores: dict[str, float], starts: str, initial: Floats | None = None, notes: Sequence[str] = ()
    ) -> None:
        if not is_mapping(scores):
            raise InvalidInput("scores", "a dict from names to numbers", shown(scores))
        notes = require_list("notes", notes, "a list of strings")
        super().__init__(scores)
        self.starts, self.initial, self.notes = starts, initial, tuple(notes)

    def __reduce__(self) -> tuple[Any, ...]:
        return Scores, (dict(self), self.starts, self.initial, self.notes)

    __str__ = Printed.__str__
    __repr__ = Printed.__repr__

    def _sheet(self) -> Sheet:
        rows = tuple((name, MISSING if np.isnan(value) else f"{value:.5g}") for name, value in self.items())
        return Sheet("Metrics", ("metric", "value"), (rows,), notes=(f"Starts: {self.starts}.", *self.notes))


@dataclass(frozen=True, eq=False)
class Judged:
    """What is judged: a policy, a reward, or both, on the model of the truth. `own` are the data that it was estimated
    from, where these are of the same model."""

    log_policy: Floats
    policy: Floats
    reward: Floats | None
    own: Any = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Truth:
    """A model, its true reward and, where known, its expert: what fits are judged against.

    Returns are taken from `initial`, else from the MDP's start distribution, else from where the demonstrations used in
    the evaluation started, else uniformly over the non-terminal states. What does not depend on the fit is computed
    once, however many are judged.
    """

    mdp: MDP
    reward: Floats = field(repr=False)
    expert: Floats | None = field(repr=False, default=None)
    initial: Floats | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        require_mdp(self.mdp)
        object.__setattr__(self, "reward", expected_reward(self.mdp, self.reward, "true_reward"))
        if self.initial is not None:
            object.__setattr__(self, "initial", self.mdp.start(self.initial))
        if self.expert is not None:
            object.__setattr__(self, "expert", policy_of(self.mdp, self.expert, "expert"))

    @cached_property
    def best(self) -> float:
        """The expected return of a policy that is optimal for the true reward."""
        return expected_return(self.mdp, self.reward, self._optimum.policy, self.initial)

    @cached_property
    def _optimum(self) -> HardOptimum:
        return solve_hard(self.mdp, self.reward)

    @cached_property
    def _uniform(self) -> Chain:
        return Chain(self.mdp, self.mdp.uniform_policy(), check=False)

    def evd(self, reward: Any, initial: Any = None) -> float:
        return self._loss(solve_hard(self.mdp, expected_reward(self.mdp, reward)).policy, initial, reward)

    def stochastic_evd(self, policy: Any, initial: Any = None) -> float:
        return self._loss(policy_of(self.mdp, policy), initial, policy)

    def _loss(self, policy: Floats, initial: Any, judged: Any) -> float:
        """The optimum less the return, as what is lost at every decision (theory D3): a sum of terms ≥ 0, in which the
        level of values has no part."""
        start = _start_of(self.mdp, self.initial if initial is None else initial, None, judged)
        visits = Chain(self.mdp, policy, check=False).backward(start)
        taken = np.where(policy > 0.0, policy * np.where(policy > 0.0, self._optimum.shortfall, 0.0), 0.0)
        return float(np.maximum(visits, 0.0) @ taken.sum(axis=1))

    def evaluate(
        self,
        fit: Any = None,
        demos: Demonstrations | None = None,
        coverage: Any = None,
        *,
        policy: Any = None,
        reward: Any = None,
    ) -> Scores:
        """All metrics by name, as `rv.evaluate`."""
        if isinstance(fit, GoalFit):
            _require_alone(policy, reward)
            return self._evaluate_trips(fit, demos, coverage)
        if isinstance(demos, Demonstrations) and demos.goals is not None:
            rule = "cannot be trips with goals, unless what is evaluated is a fit of such trips"
            raise InvalidInput.conflict("demos", rule, remedy=_BY_GOAL)
        judged = _judged(self.mdp, fit, policy, reward)
        decisions = self._decisions(judged.own if demos is None else demos)
        return self._scores(judged, decisions, self._starts(fit, decisions), coverage)

    def _decisions(self, demos: Any) -> Demonstrations | None:
        """The observed decisions in the order of the model."""
        if demos is None:
            return None
        _require_demonstrations(demos)
        decisions = match_labels(demos, self.mdp).lift(self.mdp)
        require_fit(self.mdp, decisions)
        return decisions

    def _starts(self, fit: Any, decisions: Demonstrations | None) -> Starts:
        """Of the data at hand, else of those of the fit, also where they are of another model: the same agents."""
        if decisions is None and isinstance(fit, AnyFit):
            return starts_of(self.mdp, self.initial, fit.demonstrations, fit.mdp)
        return starts_of(self.mdp, self.initial, decisions)

    def _scores(self, judged: Judged, decisions: Any, starts: Starts, coverage: Any) -> Scores:
        scores: dict[str, float] = dict.fromkeys(METRICS, np.nan)
        notes = list(judged.notes)
        scores["stochastic_evd"] = self.stochastic_evd(judged.policy, starts.weights)
        if decisions is None:
            notes.append(_NO_DEMOS)
        else:
            scores["nll"] = nll(replace(judged, log_policy=labelled(judged.log_policy, self.mdp)), decisions)
        if judged.reward is None:
            notes.append(_NO_REWARD)
        else:
            scores["evd"] = self.evd(judged.reward, starts.weights)
            scores["epic"] = epic(self.mdp, self.reward, judged.reward, coverage)
            scores["starc"] = starc(self.mdp, self.reward, judged.reward, coverage, self._uniform)
        if self.expert is not None:
            weights = decision_weights(self.mdp, self.expert, starts.weights)
            scores["population_nll"] = _cross_entropy(weights, judged.log_policy)
            scores["excess_nll"] = _divergence(weights, self.expert, judged.log_policy)
        return Scores(scores, starts.words, starts.weights, notes)

    def _evaluate_trips(self, fit: GoalFit, demos: Demonstrations | None, coverage: Any) -> Scores:
        """The same where trips have goals; STARC, whose uniform policy must end, is that of each goal's model."""
        if self.expert is not None:
            raise InvalidInput.conflict("expert", "cannot be given for trips with goals: each goal has its own expert")
        own = _trips_on(self.mdp, fit)
        trips, notes = (
            _with_goals(_own_decisions(fit) if demos is None else demos),
            [] if isinstance(own, GoalFit) or own.same else [_SOLVED],
        )
        scores: dict[str, float] = dict.fromkeys(METRICS, 0.0)
        here = isinstance(own, GoalFit) or own.same
        if demos is None and not here:  # of these trips only where they go between is known here
            scores["nll"] = np.nan
            notes.append(_NO_DEMOS)
        else:
            trips = match_labels(trips, self.mdp)
            require_fit(self.mdp, trips)
            scores["nll"] = nll(own.behaviour if isinstance(own, _Trips) else own, trips)
        plain, pairs = not of_trips(fit.reward_model), self._pairs(trips, notes)
        for share, goal, origin, truth in self._toward_each(pairs, plain):
            reward, policy = own.reward_for(goal, origin), own.policy_for(goal, origin)
            scores["evd"] += share * truth.evd(reward)
            scores["stochastic_evd"] += share * truth.stochastic_evd(policy)
            cover = _within(truth.mdp, coverage)
            scores["starc"] += share * starc(truth.mdp, truth.reward, reward, cover)
            scores["epic"] += 0.0 if plain else share * epic(truth.mdp, truth.reward, reward, cover)
        if plain:
            scores["epic"] = epic(self.mdp, self.reward, own.reward, coverage)
        return Scores(scores, "the origins of the trips", notes=notes)

    def _pairs(self, trips: Demonstrations, notes: list[str]) -> Demand:
        """How many trips go from where to where; pairs without a route in this model are listed in `notes`."""
        pairs = demand_of(self.mdp, trips)
        arriving = pairs.arriving(self.mdp)
        if not arriving.any():
            what = f"none of {len(pairs)} pairs of origin and goal has a route in the model"
            raise InvalidDemonstrations.impossible(what, pairs.where(0), argument="demos")
        if not arriving.all():
            notes.append(f"{pairs.keep(~arriving).size_in_words} cannot arrive in this model and are left out.")
        return pairs.keep(arriving)

    def _toward_each(self, pairs: Demand, together: bool = True) -> Iterator[tuple[float, Any, Any, Truth]]:
        """The share of the trips, the goal, the origin and the truth toward it: for each goal, with `together`, where
        the origin is None and returns are means over those of the trips; else for each pair."""
        if self.initial is not None:
            rule = "cannot be given for trips with goals: each starts where it set out"
            raise InvalidInput.conflict("initial", rule)
        names = self.mdp.state_labels or range(self.mdp.n_states)
        for rows in pairs.groups(pairs=not together):
            goal, origin = int(pairs.destination[rows[0]]), int(pairs.origin[rows[0]])
            model, starts = self.mdp.toward_state(goal), pairs.starts(rows)
            reward = labelled(np.where(model.feasible, self.reward, 0.0), model)
            truth = Truth(model, reward, initial=labelled(starts / starts.sum(), model))
            yield float(starts.sum() / pairs.total), names[goal], None if together else names[origin], truth


class _Trips:
    """A reward (S, A) on a model toward each goal: what a fit of trips says about another model than its own. On its
    own network in another order (`same`) the fit's behaviour, which is solved anew elsewhere."""

    def __init__(self, mdp: MDP, fit: GoalFit) -> None:
        self.reward, self._mdp, self._fit = fit.reward_on(mdp), mdp, fit
        self._turns = own_turns(mdp, fit.mdp)
        self.same = self._turns is not None
        self._values = GoalValues(mdp, self.reward)

    def reward_for(self, goal: Any, origin: Any = None) -> Floats:
        return self.reward

    def behaviour(self, goal: Any) -> Any:
        """`policy` and `log_policy` (S, A) on the way to a goal."""
        if self._turns is None:
            log_policy = self._values.toward(self._mdp.state_named(goal, "goal")).log_policy
        else:
            log_policy = np.append(self._fit.log_policy_for(goal), -np.inf)[self._turns]
        policy, log_policy = (labelled(table, self._mdp) for table in (np.exp(log_policy), log_policy))
        return SimpleNamespace(policy=policy, log_policy=log_policy)

    def policy_for(self, goal: Any, origin: Any = None) -> Floats:
        return self.behaviour(goal).policy


def _trips_on(mdp: MDP, fit: GoalFit) -> GoalFit | _Trips:
    """The fit itself on its own model, in any order of its labels; elsewhere its reward, solved anew."""
    return fit if same_model(mdp, fit.mdp) else _Trips(mdp, fit)


def _judged(mdp: MDP, fit: Any, policy: Any, reward: Any) -> Judged:
    """What the arguments mean: a fit, a solution, a policy, or a reward that is solved for."""
    if fit is not None:
        _require_alone(policy, reward)
        return _judged_fit(mdp, fit)
    if policy is None and reward is None:
        raise InvalidInput.conflict("fit", "is required, or `policy` or `reward` in its place")
    table = None if reward is None else expected_reward(mdp, reward)
    if policy is None:
        solved = solve(mdp, table)
        return Judged(solved.log_policy, solved.policy, table, notes=(_SOLVED,))
    return Judged(_log_policy_of(mdp, policy), policy_of(mdp, policy), table)


def _judged_fit(mdp: MDP, fit: Any) -> Judged:
    if as_floats(fit) is not None:
        got = f"an array of shape {np.shape(fit)}, which may be a policy or a reward"
        raise InvalidInput("fit", "a fit or a solution", got, remedy=_SAY_WHICH)
    if not (hasattr(fit, "policy") and not isinstance(fit, type)):
        raise InvalidInput("fit", "a fit or a solution, with a policy", type(fit).__name__, remedy=_SAY_WHICH)
    if isinstance(fit, AnyFit) and not same_model(mdp, fit.mdp):
        solved = solve(mdp, fit)
        return Judged(solved.log_policy, solved.policy, solved.reward, notes=(_SOLVED,))
    reward = getattr(fit, "reward", None)
    table = None if reward is None else expected_reward(mdp, fit if isinstance(fit, AnyFit) else reward)
    return Judged(_log_policy_of(mdp, fit), policy_of(mdp, fit), table, _own_decisions(fit))


def _own_decisions(fit: Any) -> Any:
    """The demonstrations of a fit under the labels of its model, by which another order of it can be matched."""
    own = getattr(fit, "demonstrations", None)
    if not isinstance(own, Demonstrations) or not isinstance(fit, AnyFit):
        return own
    return replace(own, state_labels=fit.mdp.state_labels, action_labels=fit.mdp.action_labels)


def _require_alone(policy: Any, reward: Any) -> None:
    if policy is not None or reward is not None:
        other = "`policy`" if reward is None else "`reward`" if policy is None else "`policy` and `reward`"
        raise InvalidInput.conflict("fit", f"cannot be combined with {other}", remedy="Pass a fit, or its parts.")


def evaluate(
    fit: Any = None,
    mdp: Any = None,
    true_reward: Any = None,
    demos: Demonstrations | None = None,
    expert: Any = None,
    coverage: Any = None,
    initial: Any = None,
    *,
    policy: Any = None,
    reward: Any = None,
) -> Scores:
    """`nll`, `evd`, `stochastic_evd`, `epic` and `starc` by name; with the true `expert`, also `population_nll` and
    `excess_nll`. For many fits of one problem, `Truth(mdp, true_reward, expert).evaluate(fit)` solves it once.

    Parameters
    ----------
    fit : a fit, or what `rv.solve` returns. On another model than its own a fit's reward is transferred and solved
        again (`rv.solve(mdp, fit)`); its own demonstrations are not used there.
    mdp, true_reward : what it is judged against.
    demos : decisions for `nll`; by default those of the fit, on its own model. Without any, `nll` is NaN.
    coverage : weights of the distances, as in `epic`.
    initial : where agents start; by default where the model says, else where the data started, else uniformly over
        the non-terminal states. `.starts` of the result says which.
    policy, reward : instead of a fit, an (S, A) array or data frame each. A policy is taken as it is, and without a
        reward `evd`, `epic` and `starc` are NaN; a reward alone is solved for its policy.

    The result is a dict that prints as a table; its `.notes` say why a metric is NaN.

    Where trips have goals, value differences are means over the trips of `demos`, each on the model of its goal from
    where it set out. EPIC, which needs no dynamics, compares the rewards on `mdp` itself; STARC is the mean over the
    trips of the distance on the model of their goal, since without one the uniform policy need not end at discount 1.
    (Rewards that depend on the trip, as with link sizes, are compared trip by trip by both.)
    """
    require_mdp(mdp, other=fit, call="evaluate(fit, mdp, true_reward)")
    found = Truth(mdp, true_reward, expert, initial).evaluate(fit, demos, coverage, policy=policy, reward=reward)
    if isinstance(fit, AnyFit) and mdp.in_order_of(fit.mdp) is not mdp:
        arrays = {"true_reward": true_reward, "expert": expert, "coverage": coverage, "initial": initial}
        placed = [name for name, value in arrays.items() if value is not None and by_position(value)]
        found.notes += (_PLACED.format(", ".join(placed)),) if placed else ()
    return found


def nll(policy: Any, demos: Demonstrations, per: str = "decision") -> float:
    """The mean negative log likelihood of the observed decisions (theory D1), in nats.

    `policy` is an (S, A) array, or a fit or solution, whose `log_policy` does not underflow. `per` is "decision" or
    "trajectory". An observed action without probability makes it infinite.

    Of trips with goals each is judged on its own way: `policy` is a fit of such trips, or a function from a goal (its
    label; its index where states have none) to an (S, A) array.
    """
    require_option("per", per, ("decision", "trajectory"))
    _require_demonstrations(demos)
    if demos.goals is not None:
        return _nll_of_trips(policy, demos, per)
    if isinstance(policy, GoalFit):
        _with_goals(demos)
    if isinstance(getattr(policy, "mdp", None), MDP):  # a fit knows the order of its states by name
        demos = match_labels(demos, policy.mdp).lift(policy.mdp)
    elif demos.numbered:
        demos = _matched_numbers(demos, policy)
    log_policy = _log_policy(policy, demos)
    counts, seen = demos.counts, demos.counts > 0.0
    total = -float(np.sum(counts[seen] * log_policy[seen]))
    if per == "decision":
        return total / demos.n_decisions
    if demos.starts.sum() == 0.0:
        raise InvalidDemonstrations("demos", "trajectories", "plain counts", remedy='Use per="decision".')
    return total / float(demos.starts.sum())


def _matched_numbers(demos: Demonstrations, policy: Any) -> Demonstrations:
    """Whole numbers that are labels of a table are matched by label, as with a fit."""
    table = next((getattr(policy, name) for name in ("log_policy", "policy") if hasattr(policy, name)), policy)
    names, _ = names_in(table, "policy")
    if names.state_labels is None and names.action_labels is None:
        return demos
    sizes = [n if own is None else len(own) for n, own in zip(demos.counts.shape, vars(names).values(), strict=True)]
    known: Any = SimpleNamespace(**vars(names), base=None, numbered=(), certain=False)
    known.n_states, known.n_actions = sizes
    return match_labels(demos, known)


def _nll_of_trips(policy: Any, demos: Demonstrations, per: str) -> float:
    if isinstance(policy, GoalFit):
        total = -float(policy.log_likelihood_by_trip(demos).sum())
    else:
        policy_for = _policy_for(policy)
        total = 0.0
        for goal in demos.goals or ():
            counts = demos.toward(goal).counts
            seen = counts > 0.0
            total -= float(counts[seen] @ _log_policy(policy_for(goal), demos)[seen])
    return total / (demos.n_decisions if per == "decision" else float(demos.starts.sum()))


def _policy_for(policy: Any) -> Callable[[Any], Any]:
    """From a goal to its policy."""
    found = getattr(policy, "policy_for", policy)
    if not callable(found):
        expected = "a fit of trips with goals, or a function from a goal to an (S, A) policy"
        remedy = "Each goal has its own policy; demos.toward(goal) are the trips to one."
        raise InvalidInput("policy", expected, type(policy).__name__, remedy=remedy)
    return found


def _with_goals(demos: Any) -> Demonstrations:
    _require_demonstrations(demos)
    if demos.goals is None:
        remedy = f"Pass {arg('goal')} when you read the demonstrations."
        raise InvalidDemonstrations("demos", "trips with goals, like those of the fit", "none", remedy=remedy)
    return demos


def _within(mdp: MDP, coverage: Any) -> Any:
    """An (S, A) table of weights on what is left to those who head for a goal."""
    if coverage is None:
        return None
    expected = f"None or weights of shape {mdp.feasible.shape} where trips have goals"
    given = in_order(mdp, coverage, "coverage", error=InvalidDistribution)
    table = require_floats("coverage", given, expected, InvalidDistribution)
    if table.shape != mdp.feasible.shape:
        raise InvalidDistribution("coverage", expected, f"shape {table.shape}")
    return labelled(np.where(mdp.feasible, table, 0.0), mdp)


def population_nll(mdp: MDP, expert: Any, policy: Any, initial: Any = None) -> float:
    """The expected NLL per decision of `policy` under the true expert and its discounted visits (theory D2).

    Agents start, here and in `excess_nll`, as `initial` says, else as the MDP does, else where the data of a fit
    started, if `policy` is a fit, else uniformly.
    """
    return _cross_entropy(decision_weights(mdp, expert, initial, policy), _log_policy_of(mdp, policy))


def entropy(mdp: MDP, expert: Any, initial: Any = None) -> float:
    """The expert's entropy per decision under its discounted visits: the least that `population_nll` can be."""
    return population_nll(mdp, expert, expert, initial)


def excess_nll(mdp: MDP, expert: Any, policy: Any, initial: Any = None) -> float:
    """`population_nll` less the expert's `entropy` (theory D2): zero for the expert's own policy, else positive."""
    weights = decision_weights(mdp, expert, initial, policy)
    return _divergence(weights, policy_of(mdp, expert, "expert"), _log_policy_of(mdp, policy))


def _cross_entropy(weights: Floats, log_policy: Floats) -> float:
    acts = weights > 0.0
    return -float(np.sum(weights[acts] * log_policy[acts]))


def _divergence(weights: Floats, expert: Floats, log_policy: Floats) -> float:
    """Σ w (log π_E − log π), with Σ (probabilities' difference) = 0 added: no term is negative, nothing cancels."""
    acts = weights > 0.0
    gap = log_policy[acts] - np.log(expert[acts])
    elsewhere = np.where(acts, 0.0, np.exp(log_policy)) * weights.sum(axis=1, keepdims=True)
    return float(np.sum(weights[acts] * (np.expm1(gap) - gap)) + elsewhere.sum())


def decision_weights(mdp: MDP, expert: Any, initial: Any, judged: Any = None) -> Floats:
    """(S, A) the share of the expert's discounted decisions that fall on each pair. What is `judged`, if it is a fit,
    says where its data started."""
    require_mdp(mdp)
    policy = policy_of(mdp, expert, "expert")
    visits = Chain(mdp, policy, check=False).occupancy(_start_of(mdp, initial, None, judged, expert))[:, None] * policy
    if not visits.any():
        raise InvalidDistribution("initial", "some weight on non-terminal states", "terminal states only")
    return visits / visits.sum()


def policy_of(mdp: MDP, policy: Any, name: str = "policy") -> Floats:
    """An (S, A) array or data frame of probabilities, or the policy of a fit or solution, checked."""
    return labelled(as_policy(mdp, _here(mdp, policy, "policy", name), name), mdp)


def _log_policy_of(mdp: MDP, policy: Any) -> Floats:
    """log π of a policy of this MDP: a fit's or solution's own, else that of probabilities that are checked first."""
    if not hasattr(policy, "log_policy"):
        return _log_policy(policy_of(mdp, policy), mdp)
    return _log_policy(SimpleNamespace(log_policy=_here(mdp, policy, "log_policy", "policy")), mdp)


def _here(mdp: MDP, behaviour: Any, part: str, name: str) -> Any:
    """A table of a fit or solution, which knows its labels. On another model than its own a fit is solved anew; a
    solution is that of its own model alone."""
    own = getattr(behaviour, "mdp", None)
    if not isinstance(own, MDP) or not hasattr(behaviour, part) or same_model(mdp, own):
        return getattr(behaviour, part, behaviour)
    if not isinstance(behaviour, AnyFit):
        raise InvalidDistribution(name, "a solution of this model", "a solution of another model", remedy=_SOLVE_HERE)
    return getattr(solve(mdp, behaviour), part)


def _require_demonstrations(demos: Any) -> None:
    require_demonstrations("demos", demos)


def _log_policy(policy: Any, named: MDP | Demonstrations) -> Floats:
    shape = (named.n_states, named.n_actions)
    given = getattr(policy, "log_policy", None)
    expected, remedy = f"an (S, A) array of probabilities of shape {shape}, or a fit", pass_instead(policy, "expert")
    wanted = getattr(policy, "policy", policy) if given is None else given
    wanted = in_order(named, wanted, "policy", error=InvalidDistribution)
    table = require_floats("policy", wanted, expected, InvalidDistribution, remedy)
    if table.shape != shape:
        raise InvalidDistribution("policy", expected, f"shape {table.shape}", remedy=remedy)
    if given is not None:
        return table
    bad = ~((table >= 0.0) & (table <= 1.0 + 1e-8))
    if bad.any():
        s, a = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidDistribution("policy", "probabilities in [0, 1]", table[s, a], pair_in_words(named, s, a))
    off = np.abs(table.sum(axis=1) - 1.0) > 1e-8
    if (off & table.any(axis=1)).any():  # rows of terminal states are zero
        s = int(np.flatnonzero(off & table.any(axis=1))[0])
        got = f"sum {table[s].sum():.10g}"
        raise InvalidDistribution("policy", "rows that sum to one", got, state_in_words(named, s))
    return np.log(table, out=np.full(shape, -np.inf), where=table > 0.0)


def policy_value(mdp: MDP, reward: Any, policy: Any) -> Floats:
    """(S,) the expected discounted sum of rewards under a policy, without entropy (theory D3).

    `policy`, here and below, is an (S, A) array, or a fit or solution.
    """
    require_mdp(mdp)
    behaviour = policy_of(mdp, policy)
    return Chain(mdp, behaviour, check=False).forward(np.sum(behaviour * expected_reward(mdp, reward), axis=1))


def expected_return(
    mdp: MDP, reward: Any, policy: Any, initial: Any = None, demos: Demonstrations | None = None
) -> float:
    """`policy_value` averaged over where agents start: as `initial` says, else as the MDP does, else where `demos`
    started, or the data of a fit that is passed, else uniformly over the non-terminal states."""
    value = policy_value(mdp, reward, policy)
    return float(_start_of(mdp, initial, demos, policy, reward) @ value)


def _start_of(mdp: MDP, initial: Any, demos: Any, *judged: Any) -> Floats:
    """(S,): by the one rule for starts. Without `demos` they are those of the first fit that is judged."""
    fit = next((one for one in judged if isinstance(one, AnyFit)), None)
    if demos is None and fit is not None:
        return starts_of(mdp, initial, fit.demonstrations, fit.mdp).weights
    if demos is not None:
        _require_demonstrations(demos)
        demos = match_labels(demos, mdp).lift(mdp)
        require_fit(mdp, demos)
    return starts_of(mdp, initial, demos).weights


def _plain(demos: Any) -> bool:
    """Whether these are decisions without goals."""
    _require_demonstrations(demos)
    return demos.goals is None


def evd(mdp: MDP, true_reward: Any, reward: Any, initial: Any = None, demos: Demonstrations | None = None) -> float:
    """Expected value difference (theory D3): what is lost under the true reward by a policy that is optimal for
    `reward`, an array or a fit. Ties in the optimal policies are split evenly, so that the figure does not depend on
    index order.

    Agents start as `initial` says, else as the MDP does, else where `demos` started, or the data of a fit that is
    passed, else uniformly. Where `demos` are trips with goals it is the mean over them: each from where it set out to
    its goal.
    """
    truth = Truth(mdp, true_reward, initial=initial)
    if demos is None or _plain(demos):
        return truth.evd(reward, _start_of(mdp, initial, demos, reward))
    table = expected_reward(mdp, reward)
    parts = truth._toward_each(demand_of(mdp, demos))
    return sum(share * own.evd(labelled(np.where(own.mdp.feasible, table, 0.0), own.mdp)) for share, _, _, own in parts)


def stochastic_evd(
    mdp: MDP, true_reward: Any, policy: Any, initial: Any = None, demos: Demonstrations | None = None
) -> float:
    """The value difference of a policy as it is (theory D3): the optimum under the true reward less what it earns.

    A soft-optimal policy explores, so the figure has a positive floor: that of the expert itself. Starts are those of
    `evd`. Where `demos` are trips with goals it is the mean over them; `policy` is then as for `nll`.
    """
    truth = Truth(mdp, true_reward, initial=initial)
    if demos is None or _plain(demos):
        return truth.stochastic_evd(policy, _start_of(mdp, initial, demos, policy))
    policy_for, parts = _policy_for(policy), truth._toward_each(demand_of(mdp, demos))
    return sum(share * own.stochastic_evd(policy_for(goal)) for share, goal, _, own in parts)


_SAY_WHICH = "Say which: rv.evaluate(mdp=mdp, true_reward=R, policy=table), or reward=table."
_BY_GOAL = "rv.metrics.evd takes a reward; rv.metrics.nll and stochastic_evd take a function from a goal to a policy."
_SOLVE_HERE = "Solve this one: rv.solve(mdp, reward)."
_SOLVED = "The policy is the soft optimum of the reward on this model."
_PLACED = "Read in the order of mdp, which is not that of fit.mdp: {}. Arrays without labels have only positions."
_NO_DEMOS = "nll: there are no decisions of this model; pass demos=."
_NO_REWARD = "evd, epic, starc: a policy alone has no reward; pass reward= as well."


def expected_reward(mdp: MDP, reward: Any, name: str = "reward") -> Floats:
    """(S, A): a reward of pairs as it is; one of (s, a, s') in expectation over the MDP's transitions."""
    return labelled(as_table(mdp, reward, name).expected(mdp), mdp)
