"""π̂_E toward many goals: a handful of trips to each makes its frequencies useless, so that goals are pooled (R7).

`pooled_logit` is a logit whose features depend on the goal: by how much an action changes the least cost of getting
there, beside the features of the reward. The other first steps are estimated for each goal by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.chain import as_policy
from revealed.checks import Floats
from revealed.errors import InvalidOption
from revealed.first_step import (
    GoalLogit,
    climb,
    estimate_with_notes,
    pooled_features,
    require_penalty,
    spread_across_actions,
    units,
    within_states,
)
from revealed.goal_rows import GoalRows
from revealed.logit_rows import RowCases
from revealed.mdp import MDP
from revealed.objective import Objective
from revealed.paths import Moves, cheapest_moves, shortest_costs
from revealed.rewards.base import Reward
from revealed.rewards.linear import LinearReward
from revealed.sweeps import soft_maximum


def pooled_logit(rows: GoalRows, reward: Reward | None, l2: float = 0.0) -> LogitPolicies:
    """One logit for the trips to all goals (theory R7); `l2` is a penalty in units of the features' spread (E5)."""
    l2 = require_penalty(l2)
    costs = GoalCosts.of(rows.mdp, reward)
    parts = [costs.features(int(rows.goal[c]), rows.state[rows.rows_of(c)]) for c in range(rows.n_cases)]
    Z = within_states(np.concatenate(parts), rows.feasible)
    unit = units(spread_across_actions(Z, rows.feasible, rows.rho.sum(axis=1) / rows.total))
    zero = np.zeros(unit.size)
    logit = RowCases(rows.rho, rows.feasible, np.zeros(rows.rho.shape), Z / unit, zero)
    objective = Objective(LinearReward(Z / unit), [logit], l2)  # pyright: ignore[reportArgumentType]
    best, notes = climb(objective, "GoalLogit")
    return LogitPolicies(costs, rows, best.theta / unit, notes)


@dataclass(frozen=True, eq=False)
class LogitPolicies:
    """π(a|s, goal) ∝ exp x(s, a, goal)·β, computed when it is asked for."""

    costs: GoalCosts = field(repr=False)
    rows: GoalRows = field(repr=False)
    beta: Floats
    notes: tuple[str, ...] = ()

    def of(self, case: int, mdp: MDP) -> tuple[Floats, Floats | None]:
        X = self.costs.features(int(self.rows.goal[case]), np.arange(mdp.n_states))
        _, policy, log_policy = soft_maximum(np.where(mdp.feasible, X @ self.beta, -np.inf))
        return policy, log_policy

    def for_rows(self, rows: GoalRows) -> LogitPolicies:
        """The same logit for other goals."""
        return replace(self, rows=rows)


@dataclass(frozen=True, eq=False)
class GoalCosts:
    """The reward's features of pairs (S, A, K) and the cost of each pair (S, A)."""

    mdp: MDP = field(repr=False)
    pairs: Floats = field(repr=False)
    cost: Floats = field(repr=False)

    @classmethod
    def of(cls, mdp: MDP, reward: Reward | None) -> GoalCosts:
        pairs = _pair_features(mdp, reward)
        size = np.abs(pairs[mdp.feasible]).mean(axis=0)
        used = size > 0.0
        cost = 1.0 + (np.abs(pairs[:, :, used]) / size[used]).sum(axis=2)
        return cls(mdp, np.where(mdp.feasible[:, :, None], pairs, 0.0), cost)

    @cached_property
    def _backwards(self) -> sp.csr_array:
        """Sparse (S, S): the least cost of a move that may happen, turned round."""
        moves = self.mdp.transitions.matrix.tocoo()
        happens = (moves.data > 0.0) & self.mdp.feasible.reshape(-1)[moves.coords[0]]
        pair, after = (place[happens].astype(np.intp) for place in moves.coords)
        may = Moves(pair // self.mdp.n_actions, after, pair, self.mdp.feasible.shape)
        return cheapest_moves(may, self.cost.reshape(-1)[pair])

    def features(self, goal: int, states: Any) -> Floats:
        """(R, A, K + 1) in some states: those of the reward, and the change in the least cost to the goal."""
        far = shortest_costs(self._backwards, goal)
        far = np.where(np.isfinite(far), far, 0.0)  # what cannot reach the goal is not offered
        change = self.mdp.transitions.expect(far)[states] - far[states][:, None]
        return np.concatenate([self.pairs[states], change[:, :, None]], axis=2)


def _pair_features(mdp: MDP, reward: Reward | None) -> Floats:
    """(S, A, K): features of pairs, or those of where a pair leads; none where the reward has none, or very many."""
    X = pooled_features(reward)
    if X is None or X.shape[0] != mdp.n_states:
        return np.zeros((*mdp.feasible.shape, 0))
    return np.asarray(X if X.ndim == 3 else mdp.transitions.expect(np.asarray(X)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class EachEstimated:
    """An ordinary first step for each goal by itself, from the decisions of its own trips."""

    rows: GoalRows = field(repr=False)
    first_step: Any
    reward: Reward | None = field(repr=False)
    told: dict[int, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def of(self, case: int, mdp: MDP) -> tuple[Floats, Floats | None]:
        policy, self.told[case] = estimate_with_notes(mdp, self.rows.dense(case), self.first_step, self.reward)
        return policy, None

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the goals that were asked for, each note once."""
        every = [note for notes in self.told.values() for note in notes]
        return tuple(f"{every.count(note)} of {self.rows.n_cases} goals: " + note for note in dict.fromkeys(every))


@dataclass(frozen=True, eq=False)
class GivenByUser:
    """A function from a goal's label (or index) to its policy (S, A)."""

    rows: GoalRows = field(repr=False)
    function: Any

    def of(self, case: int, mdp: MDP) -> tuple[Floats, Floats | None]:
        goal = int(self.rows.goal[case])
        label = goal if mdp.state_labels is None else mdp.state_labels[goal]
        return as_policy(mdp, self.function(label), "first_step"), None


def goal_policies(rows: GoalRows, first_step: Any, reward: Reward | None) -> Any:
    """π̂_E for every case: "auto" and "logit" pool the goals, a function is asked for each goal's (S, A) array, and the
    others are estimated for each goal by itself."""
    if isinstance(first_step, str) and first_step in ("auto", "logit"):
        first_step = GoalLogit()
    if isinstance(first_step, GoalLogit):
        return pooled_logit(rows, reward, first_step.l2)
    if hasattr(first_step, "of"):
        return first_step
    if isinstance(first_step, str) or hasattr(first_step, "estimate"):
        return EachEstimated(rows, first_step, reward)
    if callable(first_step):
        return GivenByUser(rows, first_step)
    expected = "a name, an instance, or a function from a goal to an (S, A) array where trips have goals"
    raise InvalidOption("first_step", expected, type(first_step).__name__)
