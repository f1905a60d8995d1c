"""What trips to many goals do together under a model and a reward, and how it moves with θ (theory R4, R6).

Toward one goal V, visits and their derivatives are those of `behaviour.py`: W = dV/dθ gathers the reward's derivatives
ahead, F = ∂r/∂θ + γTW, dπ = π(F − W), and visits follow by one solve with the transpose for all parameters together.
Goals are streamed in blocks, side by side; what is kept are sums over the trips, and V where they set out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from revealed.bellman import as_reward
from revealed.checks import Floats, Ints
from revealed.goal_values import BLOCK, GoalValues, Toward
from revealed.parallel import side_by_side
from revealed.positions import labelled
from revealed.rewards.base import Reward, cases_by, is_linear, of_trips
from revealed.scenario import Side, reward_jacobian
from revealed.trip_demand import Demand

QUANTITIES = ("visits", "turns", "value", "welfare", "length", "features")


@dataclass(eq=False)
class Flows:
    """Of all trips together `visits` (S,), `turns` (S, A) and `gathered` (K,), sums of features; V (P,) where they set
    out. Of derivatives each has one axis more, over the parameters: all that follows is linear in these."""

    pairs: Demand
    visits: Floats
    turns: Floats
    value: Floats
    gathered: Floats

    @classmethod
    def none(cls, pairs: Demand, shape: tuple[int, int], n_features: int, *params: int) -> Flows:
        sizes = (shape[:1], shape, pairs.trips.shape, (n_features,))
        return cls(pairs, *(np.zeros((*size, *params)) for size in sizes))

    def add(self, other: Flows) -> None:
        for name in ("visits", "turns", "value", "gathered"):
            getattr(self, name).__iadd__(getattr(other, name))

    @property
    def welfare(self) -> Any:
        return np.tensordot(self.pairs.trips, self.value, axes=1) / self.pairs.total

    @property
    def length(self) -> Any:
        return self.turns.sum(axis=(0, 1)) / self.pairs.total

    @property
    def features(self) -> Floats:
        return self.gathered / self.pairs.total


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives of `Flows`, and how far each parameter moves the values of actions at most (M,)."""

    flows: Flows
    size: Floats


@dataclass(frozen=True, eq=False)
class GoalSide:
    """One of two worlds and those who travel in it; `counted` is the reward whose features are summed along the way,
    None where it has none."""

    side: Side
    pairs: Demand = field(repr=False)
    counted: Reward | None = field(repr=False)

    def at(self, theta: Floats, psi: Floats | None = None) -> Flows:
        return self._travel(self.side if psi is None else self.side.moved(psi), theta, slopes=False)[0]

    def with_slopes(self, theta: Floats, se: Floats | None = None) -> tuple[Flows, Slopes]:
        """And the derivatives in θ, whose standard errors are `se` (K,) where these are known."""
        flows, slopes = self._travel(self.side, theta, slopes=True, se=se)
        assert slopes is not None
        return flows, slopes

    def _travel(self, side: Side, theta: Floats, slopes: bool, se: Floats | None = None) -> tuple[Flows, Slopes | None]:
        travel = Travel(side, self.pairs, self.counted, theta, slopes, se)
        flows, ways, size = travel.nothing()
        for part in side_by_side(travel.block, travel.blocks):
            flows.add(part[0])
            if slopes:
                ways.add(part[1])
                size = np.maximum(size, part[2])
        return flows, Slopes(ways, size) if slopes else None


def countable(reward: Any) -> Any:
    """The reward, if it has features that can be summed along a trip; else None."""
    if isinstance(reward, np.ndarray) or not is_linear(reward) or getattr(reward, "tabular", False):
        return None
    return reward


Parts = tuple[Flows, Flows, Floats]


class Travel:
    """One world at one θ: its cases (a goal, or a pair where rewards depend on the origin), block by block. `se` (K,)
    are the standard errors of θ where they are known, by which differences are taken."""

    def __init__(
        self,
        side: Side,
        pairs: Demand,
        counted: Reward | None,
        theta: Floats,
        slopes: bool,
        se: Floats | None = None,
    ) -> None:
        self.side, self.mdp, self.pairs, self.counted, self.slopes = side, side.mdp, pairs, counted, slopes
        self.theta, self.n_params = side.setting.value(theta), theta.size if slopes else 0
        self.slope = side.setting.slope(theta, se) if slopes else np.zeros(0)
        self.se = None if se is None else se * np.abs(self.slope)
        self.own = of_trips(side.reward)  # each case has its own rewards
        if not self.own:
            self.values = GoalValues(side.mdp, side.table(theta), side.solver)
            self.values.toward(int(pairs.destination[0]))  # factors what is shared, before threads ask for it
            self.common = self._matrices(side.reward, counted)

    @cached_property
    def blocks(self) -> list[list[Ints]]:
        cases = self.pairs.groups(pairs=self.own and cases_by(self.side.reward) == "pair")
        several = 1 if self.own else BLOCK
        return [cases[i : i + several] for i in range(0, len(cases), several)]

    def nothing(self) -> Parts:
        n = 0 if self.counted is None else self.counted.n_params
        shape = self.mdp.feasible.shape
        empty = Flows.none(self.pairs, shape, n), Flows.none(self.pairs, shape, n, self.n_params)
        return *empty, np.zeros(self.n_params)

    def block(self, cases: list[Ints]) -> Parts:
        sums = self.nothing()
        for rows, found in zip(cases, self._each(cases), strict=True):
            self._add(sums, rows, *found)
        return sums

    def _each(self, cases: list[Ints]) -> Iterator[tuple[Toward, Floats | None, Floats | None]]:
        """The soft optimum of each case, ∂r/∂θ' where slopes are asked for, and what is counted."""
        goals = [int(self.pairs.destination[rows[0]]) for rows in cases]
        if not self.own:
            yield from ((toward, *self.common) for toward in self.values.each(goals))
            return
        for goal, rows in zip(goals, cases, strict=True):
            own: Any = self.side.reward
            reward = own.toward(goal, int(self.pairs.origin[rows[0]]))
            table = as_reward(self.mdp, labelled(reward.value(self.theta), self.mdp))
            values = GoalValues(self.mdp, table, self.side.solver)
            counted = reward if self.counted is own else self.counted
            yield values.toward(goal), *self._matrices(reward, counted)

    def _matrices(self, reward: Any, counted: Any) -> tuple[Floats | None, Floats | None]:
        X = None if counted is None else self._jacobian(counted)
        if not self.slopes:
            return None, X
        if isinstance(reward, np.ndarray):
            return np.zeros((*self.mdp.feasible.shape, self.n_params)), X
        return (X if reward is counted and X is not None else self._jacobian(reward)), X

    def _jacobian(self, reward: Reward) -> Floats:
        """(S, A, K), zero where nothing can be done."""
        return np.where(self.mdp.feasible[:, :, None], reward_jacobian(reward, self.theta, self.mdp, self.se), 0.0)

    def _add(self, sums: Parts, rows: Ints, toward: Toward, J: Floats | None, X: Floats | None) -> None:
        """Those who travel to one goal."""
        flows, origin = sums[0], self.pairs.origin[rows]
        visits = toward.visits(self.pairs.starts(rows))
        turns = visits[:, None] * toward.policy
        flows.visits += visits
        flows.turns += turns
        flows.value[rows] = toward.value[origin]
        if X is not None:
            flows.gathered += np.tensordot(turns, X, axes=2)
        if J is not None:
            self._add_slopes(sums, rows, toward, visits, J * self.slope, X)

    def _add_slopes(self, sums: Parts, rows: Ints, toward: Toward, visits: Floats, J: Floats, X: Any) -> None:
        ways, size, pi, mdp = sums[1], sums[2], toward.policy, self.mdp
        W = toward.ahead(np.einsum("sa,sak->sk", pi, J))
        F = J + mdp.discount * mdp.transitions.expect(W)
        moved = visits[:, None, None] * pi[:, :, None] * (F - W[:, None, :])
        d_visits = toward.behind(mdp.transitions.matrix.T @ moved.reshape(pi.size, -1))
        d_turns = moved + d_visits[:, None, :] * pi[:, :, None]
        ways.visits += d_visits
        ways.turns += d_turns
        ways.value[rows] = W[self.pairs.origin[rows]]
        if X is not None:
            ways.gathered += np.tensordot(X, d_turns, axes=((0, 1), (0, 1)))
        np.maximum(size, np.abs(F[pi > 0.0]).max(axis=0, initial=0.0), out=size)
