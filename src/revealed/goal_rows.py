"""The decisions of trips to many goals as one table: a row per state in which a trip to a goal was seen (theory R5).

A *case* is a goal or, where rewards depend on where a trip began, a pair of origin and goal. Rows stand case by case,
so that whoever goes through the cases one after another meets their rows in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, Floats, Ints
from revealed.demonstrations import Demonstrations
from revealed.goal_checks import have_ways
from revealed.mdp import MDP
from revealed.tables import sparse_table


@dataclass(frozen=True, eq=False)
class GoalRows:
    """`goal` and `origin` (C,) of the cases (origin −1 where cases are goals); `case` and `state` (R,) of the rows;
    `rho` (R, A) the weights ρ of decisions there; `by_agent` sparse (N, R*A) each agent's part of them."""

    mdp: MDP = field(repr=False)
    goal: Ints
    origin: Ints
    case: Ints = field(repr=False)
    state: Ints = field(repr=False)
    rho: Floats = field(repr=False)
    by_agent: sp.csr_array = field(repr=False)

    @classmethod
    def of(cls, mdp: MDP, demos: Demonstrations, by: str = "goal", discounted: bool = True) -> GoalRows:
        """`by` is "goal" or "pair"; `discounted=False` counts visits even where the objective discounts them."""
        steps = demos.steps
        assert steps is not None
        assert steps.goal is not None
        weight = demos.step_weights
        counts = weight > 0.0  # agents that a bootstrap left out do not count
        if discounted and demos.visit_discount != 1.0:
            weight = weight * np.float64(demos.visit_discount) ** steps.time
        S, A = mdp.feasible.shape
        origin = demos.origins[demos.trajectory] if by == "pair" else np.full(steps.state.size, -1)
        steps, weight, origin = steps[counts], weight[counts], origin[counts]
        goal: Any = steps.goal
        pair, case = np.unique(np.stack([goal, origin]), axis=1, return_inverse=True)
        row, where = np.unique(case.reshape(-1) * S + steps.state, return_inverse=True)
        cell = where * A + steps.action
        rho = np.bincount(cell, weight, row.size * A).reshape(row.size, A).astype(np.float64)
        by_agent = sparse_table(weight, steps.agent, cell, (demos.n_agents, row.size * A))
        return cls(mdp, pair[0], pair[1], row // S, row % S, rho, by_agent)

    @property
    def n_cases(self) -> int:
        return self.goal.size

    @cached_property
    def first(self) -> Ints:
        """(C + 1,): where the rows of each case begin."""
        return np.searchsorted(self.case, np.arange(self.n_cases + 1))

    def rows_of(self, case: int) -> slice:
        return slice(int(self.first[case]), int(self.first[case + 1]))

    @property
    def total(self) -> float:
        return float(self.rho.sum())

    def sum(self) -> float:
        return self.total

    @cached_property
    def feasible(self) -> Bools:
        """(R, A): what is offered there to those who head for that goal (theory R1)."""
        if self.mdp.certain:
            target = self.mdp.targets[self.state]
            goal = np.broadcast_to(self.goal[self.case, None], target.shape)
            reached = have_ways(self.mdp, target.reshape(-1), goal.reshape(-1)).reshape(target.shape)
            return reached & self.mdp.feasible[self.state] & (self.state != self.goal[self.case])[:, None]
        out = np.zeros(self.rho.shape, dtype=bool)
        for c in range(self.n_cases):
            rows = self.rows_of(c)
            out[rows] = self.mdp.toward_state(int(self.goal[c])).feasible[self.state[rows]]
        return out

    def case_of(self, goal: Ints, origin: Ints) -> Ints:
        """The case of each goal, and of the origin beside it where cases are pairs; −1 for what is none."""
        S = self.mdp.n_states + 1
        own = self.goal * S + self.origin + 1
        wanted = goal * S + (origin + 1 if self.origin[0] >= 0 else 0)
        place = np.minimum(np.searchsorted(own, wanted), own.size - 1)
        return np.where(own[place] == wanted, place, -1)

    def place(self, demos: Demonstrations) -> Ints:
        """(n_steps,): the row of each decision of the demonstrations that the rows were made of."""
        steps: Any = demos.steps
        case = self.case_of(steps.goal, demos.origins[demos.trajectory])
        S = self.mdp.n_states
        return np.searchsorted(self.case * S + self.state, case * S + steps.state)

    def by_trip(self, demos: Demonstrations) -> tuple[sp.csr_array, Floats]:
        """Sparse (T, R*A): the decisions of each trip, as if it counted once, and how often it does (T,).

        Of a trip whose decisions count differently often, the first tells for all."""
        steps: Any = demos.steps
        weight = demos.step_weights
        often = weight[steps.first]
        counts = (weight > 0.0) & (often[demos.trajectory] > 0.0)
        cell = self.place(demos)[counts] * self.mdp.n_actions + steps.action[counts]
        once = weight[counts] / often[demos.trajectory[counts]]
        if demos.visit_discount != 1.0:
            once = once * np.float64(demos.visit_discount) ** steps.time[counts]
        table = sparse_table(once, demos.trajectory[counts], cell, (often.size, self.rho.size))
        return table, often

    def dense(self, case: int) -> Floats:
        """(S, A): the weights of one case."""
        out = np.zeros(self.mdp.feasible.shape)
        rows = self.rows_of(case)
        out[self.state[rows]] = self.rho[rows]
        return out
