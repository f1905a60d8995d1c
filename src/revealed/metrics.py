"""How far a recovered policy or reward is from the truth, exactly, on sparse models (theory D1–D6).

Policies are judged by the likelihood of demonstrations (`nll`), by its expectation under the true expert
(`population_nll`, `excess_nll`) and by what they earn (`stochastic_evd`); rewards by what their optimal policy earns
(`evd`) and by two distances that look at the rewards alone: `epic`, which knows nothing of the dynamics, and `starc`,
which does. `Truth` keeps what many comparisons share.

Where trips have goals, each goal has its own model, `mdp.toward(goal)`, and its own policy: likelihoods are summed over
the goals, differences and distances are means over the trips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from revealed.chain import Chain, as_policy
from revealed.checks import as_floats, pass_instead, require_option
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations, InvalidDistribution, InvalidInput
from revealed.goal_fit import GoalFit
from revealed.hard_bellman import HardOptimum, solve_hard
from revealed.matching import match_labels, require_fit
from revealed.mdp import MDP, Floats, require_mdp
from revealed.naming import pair_in_words, state_in_words
from revealed.positions import in_order, labelled
from revealed.reward_distances import as_table, epic, starc
from revealed.rewards.base import of_trips
from revealed.trip_demand import demand_of

__all__ = [
    "Truth", "entropy", "epic", "evaluate", "evd", "excess_nll", "expected_return", "nll", "policy_value",
    "population_nll", "starc", "stochastic_evd",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Truth:
    """A model, its true reward and, where known, its expert: what fits are judged against.

    Returns are taken from `initial`, by default the MDP's start distribution (evenly over the states that are not
    terminal where it has none). What does not depend on the fit is computed once, however many are judged.
    """

    mdp: MDP
    reward: Floats = field(repr=False)
    expert: Floats | None = field(repr=False, default=None)
    initial: Floats | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reward", expected_reward(self.mdp, self.reward, "true_reward"))
        object.__setattr__(self, "initial", self.mdp.start(self.initial))
        if self.expert is not None:
            object.__setattr__(self, "expert", policy_of(self.mdp, self.expert, "expert"))

    @cached_property
    def best(self) -> float:
        """The expected return of a policy that is optimal for the true reward."""
        return self._return(self._optimum.policy)

    @cached_property
    def _optimum(self) -> HardOptimum:
        return solve_hard(self.mdp, self.reward)

    @cached_property
    def _uniform(self) -> Chain:
        return Chain(self.mdp, self.mdp.uniform_policy(), check=False)

    @cached_property
    def weights(self) -> Floats:
        return _decision_weights(self.mdp, self.expert, self.initial)

    def _return(self, policy: Any) -> float:
        return expected_return(self.mdp, self.reward, policy, self.initial)

    def evd(self, reward: Any) -> float:
        return self._loss(solve_hard(self.mdp, expected_reward(self.mdp, reward)).policy)

    def stochastic_evd(self, policy: Any) -> float:
        return self._loss(policy_of(self.mdp, policy))

    def _loss(self, policy: Floats) -> float:
        """The optimum less the return, as what is lost at every decision (theory D3): a sum of terms ≥ 0, in which the
        level of values has no part."""
        visits = Chain(self.mdp, policy, check=False).solve_transpose(np.asarray(self.initial))
        taken = np.where(policy > 0.0, policy * np.where(policy > 0.0, self._optimum.shortfall, 0.0), 0.0)
        return float(np.maximum(visits, 0.0) @ taken.sum(axis=1))

    def evaluate(self, fit: Any, demos: Demonstrations | None = None, coverage: Any = None) -> dict[str, float]:
        """All metrics of a fit by name; `demos` are the fit's own unless others are given (held-out ones, say)."""
        if isinstance(fit, GoalFit):
            return self._evaluate_trips(fit, fit.demonstrations if demos is None else demos, coverage)
        for part in ("reward", "policy", "log_policy"):
            if not hasattr(fit, part):
                raise InvalidInput("fit", "a fit, with a reward and a policy", type(fit).__name__, remedy=_NOT_A_FIT)
        if np.shape(fit.policy) != self.mdp.feasible.shape:
            expected = f"a fit of {self.mdp.n_states} states and {self.mdp.n_actions} actions, as the MDP has"
            raise InvalidInput("fit", expected, f"a policy of shape {np.shape(fit.policy)}")
        observed: Any = getattr(fit, "demonstrations", None) if demos is None else demos
        _require_demonstrations(observed)
        decisions = match_labels(observed, self.mdp).lift(self.mdp)
        require_fit(self.mdp, decisions)
        scores = {
            "nll": nll(fit, decisions),
            "evd": self.evd(fit.reward),
            "stochastic_evd": self.stochastic_evd(fit.policy),
            "epic": epic(self.mdp, self.reward, fit.reward, coverage),
            "starc": starc(self.mdp, self.reward, fit.reward, coverage, self._uniform),
        }
        if self.expert is not None:
            log_policy = _log_policy_of(self.mdp, fit)
            scores["population_nll"] = _cross_entropy(self.weights, log_policy)
            scores["excess_nll"] = _divergence(self.weights, self.expert, log_policy)
        return scores

    def _evaluate_trips(self, fit: GoalFit, demos: Demonstrations, coverage: Any) -> dict[str, float]:
        """The same where trips have goals; STARC, whose uniform policy must end, is that of each goal's model."""
        if self.expert is not None:
            raise InvalidInput(
                "expert", "None where trips have goals: each goal has its own", type(self.expert).__name__
            )
        if fit.mdp.feasible.shape != self.mdp.feasible.shape:
            expected = f"a fit of {self.mdp.n_states} states and {self.mdp.n_actions} actions, as the MDP has"
            raise InvalidInput("fit", expected, f"{fit.mdp.n_states} and {fit.mdp.n_actions}")
        require_fit(self.mdp, match_labels(_with_goals(demos), self.mdp))
        scores = {"nll": nll(fit, demos)} | dict.fromkeys(("evd", "stochastic_evd", "epic", "starc"), 0.0)
        plain = not of_trips(fit.reward_model)
        for share, goal, origin, truth in self._toward_each(demos, plain):
            reward, policy = fit.reward_for(goal, origin), fit.policy_for(goal, origin)
            scores["evd"] += share * truth.evd(reward)
            scores["stochastic_evd"] += share * truth.stochastic_evd(policy)
            cover = _within(truth.mdp, coverage)
            scores["starc"] += share * starc(truth.mdp, truth.reward, reward, cover)
            scores["epic"] += 0.0 if plain else share * epic(truth.mdp, truth.reward, reward, cover)
        if plain:
            scores["epic"] = epic(self.mdp, self.reward, fit.reward, coverage)
        return scores

    def _toward_each(self, demos: Demonstrations, together: bool = True) -> Iterator[tuple[float, Any, Any, Truth]]:
        """The share of the trips, the goal, the origin and the truth toward it: for each goal, with `together`, where
        the origin is None and returns are means over those of the trips; else for each pair."""
        pairs = demand_of(self.mdp, _with_goals(demos))
        names = self.mdp.state_labels or range(self.mdp.n_states)
        for rows in pairs.groups(pairs=not together):
            goal, origin = int(pairs.destination[rows[0]]), int(pairs.origin[rows[0]])
            model, starts = self.mdp.toward_state(goal), pairs.starts(rows)
            reward = labelled(np.where(model.feasible, self.reward, 0.0), model)
            truth = Truth(model, reward, initial=labelled(starts / starts.sum(), model))
            yield float(starts.sum() / pairs.total), names[goal], None if together else names[origin], truth


def evaluate(
    fit: Any,
    mdp: MDP,
    true_reward: Any,
    demos: Demonstrations | None = None,
    expert: Any = None,
    coverage: Any = None,
    initial: Any = None,
) -> dict[str, float]:
    """`nll`, `evd`, `stochastic_evd`, `epic` and `starc` of a fit; with the true `expert`, also `population_nll` and
    `excess_nll`. For many fits of one problem, `Truth(mdp, true_reward, expert).evaluate(fit)` solves it once.

    Where trips have goals, value differences are means over the trips of `demos`, each on the model of its goal from
    where it set out. EPIC, which needs no dynamics, compares the rewards on `mdp` itself; STARC is the mean over the
    trips of the distance on the model of their goal, since without one the uniform policy need not end at discount 1.
    (Rewards that depend on the trip, as with link sizes, are compared trip by trip by both.)
    """
    return Truth(mdp, true_reward, expert, initial).evaluate(fit, demos, coverage)


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
    log_policy = _log_policy(policy, demos)
    counts, seen = demos.counts, demos.counts > 0.0
    total = -float(np.sum(counts[seen] * log_policy[seen]))
    if per == "decision":
        return total / demos.n_decisions
    if demos.starts.sum() == 0.0:
        raise InvalidDemonstrations("demos", "trajectories", "plain counts", remedy='Use per="decision".')
    return total / float(demos.starts.sum())


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
        remedy = "Pass goal= where they are read."
        raise InvalidDemonstrations("demos", "trips with goals, as those of the fit", "none", remedy=remedy)
    return demos


def _within(mdp: MDP, coverage: Any) -> Any:
    """An (S, A) table of weights on what is left to those who head for a goal."""
    if coverage is None:
        return None
    table = as_floats(in_order(mdp, coverage, "coverage", error=InvalidDistribution))
    if table is None or table.shape != mdp.feasible.shape:
        expected = f"None or weights of shape {mdp.feasible.shape} where trips have goals"
        got = type(coverage).__name__ if table is None else f"shape {table.shape}"
        raise InvalidDistribution("coverage", expected, got)
    return labelled(np.where(mdp.feasible, table, 0.0), mdp)


def population_nll(mdp: MDP, expert: Any, policy: Any, initial: Any = None) -> float:
    """The expected NLL per decision of `policy` under the true expert and its discounted visits (theory D2)."""
    return _cross_entropy(_decision_weights(mdp, expert, initial), _log_policy_of(mdp, policy))


def entropy(mdp: MDP, expert: Any, initial: Any = None) -> float:
    """The expert's entropy per decision under its discounted visits: the least that `population_nll` can be."""
    return population_nll(mdp, expert, expert, initial)


def excess_nll(mdp: MDP, expert: Any, policy: Any, initial: Any = None) -> float:
    """`population_nll` less the expert's `entropy` (theory D2): zero for the expert's own policy, else positive."""
    weights = _decision_weights(mdp, expert, initial)
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


def _decision_weights(mdp: MDP, expert: Any, initial: Any) -> Floats:
    """(S, A) the share of the expert's discounted decisions that fall on each pair."""
    require_mdp(mdp)
    policy = policy_of(mdp, expert, "expert")
    visits = Chain(mdp, policy, check=False).occupancy(mdp.start(initial))[:, None] * policy
    if not visits.any():
        raise InvalidDistribution("initial", "some weight on states with decisions", "terminal states only")
    return visits / visits.sum()


def policy_of(mdp: MDP, policy: Any, name: str = "policy") -> Floats:
    """An (S, A) array of probabilities, or the policy of a fit or solution, checked."""
    return labelled(as_policy(mdp, getattr(policy, "policy", policy), name), mdp)


def _log_policy_of(mdp: MDP, policy: Any) -> Floats:
    """log π of a policy of this MDP: a fit's or solution's own, else that of probabilities that are checked first."""
    return _log_policy(policy if hasattr(policy, "log_policy") else policy_of(mdp, policy), mdp)


def _require_demonstrations(demos: Any) -> None:
    if not isinstance(demos, Demonstrations):
        raise InvalidInput("demos", "Demonstrations", type(demos).__name__)


def _log_policy(policy: Any, named: MDP | Demonstrations) -> Floats:
    shape = (named.n_states, named.n_actions)
    given = getattr(policy, "log_policy", None)
    found = getattr(policy, "policy", policy) if given is None else given
    table = as_floats(in_order(named, found, "policy", error=InvalidDistribution))
    if table is None or table.shape != shape:
        got = type(policy).__name__ if table is None else f"shape {table.shape}"
        expected = f"an (S, A) array of probabilities of shape {shape}, or a fit"
        raise InvalidDistribution("policy", expected, got, remedy=pass_instead(policy, "expert"))
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
    return Chain(mdp, behaviour, check=False).solve(np.sum(behaviour * expected_reward(mdp, reward), axis=1))


def expected_return(mdp: MDP, reward: Any, policy: Any, initial: Any = None) -> float:
    """`policy_value` averaged over the start distribution."""
    return float(mdp.start(initial) @ policy_value(mdp, reward, policy))


def evd(mdp: MDP, true_reward: Any, reward: Any, initial: Any = None, demos: Demonstrations | None = None) -> float:
    """Expected value difference (theory D3): what is lost under the true reward by a policy that is optimal for
    `reward`. Ties in the optimal policies are split evenly, so that the figure does not depend on index order.

    With `demos`, trips with goals, it is the mean over them: each from where it set out to its goal.
    """
    truth = Truth(mdp, true_reward, initial=initial)
    if demos is None:
        return truth.evd(reward)
    table = expected_reward(mdp, reward)
    parts = truth._toward_each(demos)
    return sum(share * own.evd(labelled(np.where(own.mdp.feasible, table, 0.0), own.mdp)) for share, _, _, own in parts)


def stochastic_evd(
    mdp: MDP, true_reward: Any, policy: Any, initial: Any = None, demos: Demonstrations | None = None
) -> float:
    """The value difference of a policy as it is (theory D3): the optimum under the true reward less what it earns.

    A soft-optimal policy explores, so the figure has a positive floor: that of the expert itself. With `demos`, trips
    with goals, it is the mean over them; `policy` is then as for `nll`.
    """
    truth = Truth(mdp, true_reward, initial=initial)
    if demos is None:
        return truth.stochastic_evd(policy)
    policy_for = _policy_for(policy)
    return sum(share * own.stochastic_evd(policy_for(goal)) for share, goal, _, own in truth._toward_each(demos))


_NOT_A_FIT = "Policies go to metrics.nll and metrics.stochastic_evd, rewards to evd, epic and starc."


def expected_reward(mdp: MDP, reward: Any, name: str = "reward") -> Floats:
    """(S, A): a reward of pairs as it is; one of (s, a, s') in expectation over the MDP's transitions."""
    return labelled(as_table(mdp, reward, name).expected(mdp), mdp)
