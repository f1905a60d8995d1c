"""The objective of trips to many goals, case by case: any moves, any discount, any choice of π̃ (theory R5).

`EachGoal` goes through the cases one after another: each is the plain case of `objective.py` on `mdp.toward(goal)`.
Where π̃ is given and the reward is linear, Q is affine in θ, so that one pass over the goals leaves a logit in the rows
that were seen, `RowCases`. Where π̃ = π_θ and moves are certain, `route_cases.py` is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from revealed.checks import Floats, Ints
from revealed.goal_rows import GoalRows
from revealed.linear_solvers import Work
from revealed.logit_rows import InRows, RowCases, RowsPart
from revealed.mdp import MDP
from revealed.objective import Case, PlainPart, require_known
from revealed.parallel import elsewhere, in_order, side_by_side
from revealed.pi_tilde import GivenPolicy, OwnPolicy, PiTilde
from revealed.rewards.base import Reward, has_features, of_trips
from revealed.slopes import slopes_of

MOST_KEPT = 4_000_000  # pairs of all cases together up to which models and solutions stay in memory
MOST_VALUES = 20_000_000  # values of all cases up to which the next search for them begins there: 160 MB
MOST_STORED = 100_000_000  # pairs up to which the policies of all goals are stored: 800 MB


class GoalPolicies(Protocol):
    """A policy for each case: (S, A) probabilities on `mdp.toward(goal)`, and their logarithms where they are known."""

    def of(self, case: int, mdp: MDP) -> tuple[Floats, Floats | None] | None: ...


@dataclass(frozen=True, eq=False)
class StoredPolicies:
    """log π (S, A) for each case."""

    log: list[Floats] = field(repr=False)

    def of(self, case: int, mdp: MDP) -> tuple[Floats, Floats | None]:
        return np.exp(self.log[case]), self.log[case]


@dataclass(frozen=True, eq=False)
class MatchedPolicies:
    """The policies of other rows' cases; None for those that they do not know."""

    policies: GoalPolicies = field(repr=False)
    case: Ints = field(repr=False)

    def of(self, case: int, mdp: MDP) -> tuple[Floats, Floats | None] | None:
        return self.policies.of(int(self.case[case]), mdp) if self.case[case] >= 0 else None


def matched(policies: Any, known: GoalRows, rows: GoalRows) -> Any:
    """Policies that were made for the cases of `known`, for those of `rows`."""
    if hasattr(policies, "for_rows"):
        return policies.for_rows(rows)  # it knows every goal
    return MatchedPolicies(policies, known.case_of(rows.goal, rows.origin))


class EachGoal:
    """Many goals, one plain case each. `given` is π̃ for each of them; None is π̃ = π_θ."""

    def __init__(
        self, rows: GoalRows, given: GoalPolicies | None = None, solver: str = "auto", work: Work | None = None
    ) -> None:
        self.rows, self.mdp, self.given, self.solver = rows, rows.mdp, given, solver
        self.work = Work() if work is None else work
        self.small = rows.n_cases * rows.mdp.feasible.size <= MOST_KEPT
        self._kept: dict[int, Case] = {}
        self._values: dict[int, Floats] = {}

    @property
    def moves(self) -> bool:
        return self.given is None

    @property
    def total(self) -> float:
        return self.rows.total

    def case(self, c: int) -> Case:
        if c in self._kept:
            return self._kept[c]
        mdp = self.mdp.toward_state(int(self.rows.goal[c]))
        found = Case(mdp, self.rows.dense(c), self._choice(c, mdp))
        if self.small:
            self._kept[c] = found
        return found

    def _choice(self, c: int, mdp: MDP) -> PiTilde:
        given = None if self.given is None else self.given.of(c, mdp)
        if given is None:
            return OwnPolicy(mdp, self.solver, self.work, self._values.get(c))
        return GivenPolicy(mdp, *given, self.solver, self.work)

    def plain(self, c: int, reward: Any, theta: Floats) -> PlainPart:
        """One case at θ; its value is where the next search for it begins."""
        own = reward.toward(int(self.rows.goal[c]), int(self.rows.origin[c])) if of_trips(reward) else reward
        part = self.case(c).at(own, theta, {})
        if self.given is None and not self.small and self.rows.n_cases * self.mdp.n_states <= MOST_VALUES:
            self._values[c] = part.value
        return part

    def at(self, reward: Reward, theta: Floats, kept: dict[str, Any]) -> EachPart | RowsPart:
        if self.moves or not has_features(reward):
            return EachPart(self, reward, theta)
        if "rows" not in kept:
            found = list(self._streamed(lambda c: self._affine(c, reward, theta)))
            q, slopes = (np.concatenate(parts) for parts in zip(*found, strict=True))
            kept["rows"] = RowCases(self.rows.rho, self.rows.feasible, q, slopes, theta)
        return kept["rows"].at(reward, theta, kept)

    def _affine(self, c: int, reward: Reward, theta: Floats) -> tuple[Floats, Floats]:
        """Q (R, A) and ∂Q/∂θ (R, A, K) in the rows of one case."""
        part, states = self.plain(c, reward, theta), self.rows.state[self.rows.rows_of(c)]
        require_known(part.soft)
        return part.q[states], slopes_of(part.case.mdp, part.features, part.response, states)

    def policies(self, reward: Reward, theta: Floats) -> StoredPolicies:
        """π_θ for every case: the next π̃ of NPL."""
        return StoredPolicies(list(self._streamed(lambda c: self.plain(c, reward, theta).log_policy)))

    def _streamed(self, function: Callable[[int], Any]) -> Any:
        """`function(case)` for every case, on threads where no factorisation outlives its case: it must be let go by
        the thread that made it, or SuperLU does not give the memory back. On a cluster, if there is one."""
        cases = range(self.rows.n_cases)
        if self.small or not elsewhere():
            return side_by_side(function, cases, worth=not self.small)
        return self._away(function, cases)

    def _away(self, function: Callable[[int], Any], cases: range) -> Any:
        """Copies of this count the work where they do it; it is added up here."""
        for result, solves, factorisations in in_order(partial(_counted, self, function), cases):
            self.work.solves += solves
            self.work.factorisations += factorisations
            yield result


def _counted(cases: EachGoal, function: Callable[[int], Any], c: int) -> tuple[Any, int, int]:
    """`function(c)`, and the linear algebra that it took."""
    work = cases.work
    solves, factorisations = work.solves, work.factorisations
    return function(c), work.solves - solves, work.factorisations - factorisations


@dataclass(frozen=True, eq=False)
class EachPart(InRows):
    """All cases at one θ, one after another. Making it finds the values, or raises where one does not exist."""

    cases: EachGoal = field(repr=False)
    reward: Reward = field(repr=False)
    theta: Floats

    def __post_init__(self) -> None:
        _ = self._first

    @cached_property
    def _first(self) -> tuple[Floats, list[PlainPart]]:
        """log π_θ (R, A) in the rows; the solutions, where there is room for them."""
        log_policy = np.full(self.cases.rows.rho.shape, -np.inf)
        kept: list[PlainPart] = []
        for c, part in enumerate(self._each(self._solve)):
            rows = self.cases.rows.rows_of(c)
            log_policy[rows] = part.log_policy[self.cases.rows.state[rows]]
            if self.cases.small:
                kept.append(part)
        return log_policy, kept

    def _each(self, function: Callable[[int], Any]) -> Any:
        return map(function, range(self.cases.rows.n_cases))  # solutions are handed on: see `EachGoal._streamed`

    def _solve(self, c: int) -> PlainPart:
        return self.cases.plain(c, self.reward, self.theta)

    def _part(self, c: int) -> PlainPart:
        return self._first[1][c] if self._first[1] else self._solve(c)

    @property
    def seen(self) -> GoalRows:
        return self.cases.rows

    @property
    def row_log_policy(self) -> Floats:
        return self._first[0]

    @cached_property
    def pull(self) -> Floats:
        if of_trips(self.reward):
            return np.sum(list(self._each(lambda c: self._part(c).pull)), axis=0)
        total = np.zeros(self.cases.mdp.feasible.shape)
        for cotangent in self._each(lambda c: self._part(c).cotangent):
            total += cotangent
        return self.reward.vjp(self.theta, total)

    @cached_property
    def _second(self) -> tuple[Floats, Floats]:
        """The Hessian, and ∂Q/∂θ (R, A, K) in the rows."""
        K, rows = self.theta.size, self.cases.rows
        hessian, slopes = np.zeros((K, K)), np.zeros((*rows.rho.shape, K))
        for c, (curvature, F) in enumerate(self._each(self._curved)):
            hessian += curvature
            slopes[rows.rows_of(c)] = F
        return hessian, slopes

    def _curved(self, c: int) -> tuple[Floats, Floats]:
        part = self._part(c)
        states = self.cases.rows.state[self.cases.rows.rows_of(c)]
        F = slopes_of(part.case.mdp, part.features, part.response, states)
        return part.hessian if self.cases.moves else np.zeros((self.theta.size,) * 2), F

    @property
    def slopes(self) -> Floats:
        return self._second[1]

    @property
    def hessian(self) -> Floats:
        return self._second[0] if self.cases.moves else -self.information
