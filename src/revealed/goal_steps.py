"""Single trajectories and where they are heading: a trip ends on entering its goal (theory R1).

Goals belong to single decisions, since the same decision means another thing on the way elsewhere. What is counted here
trajectory by trajectory is read off the steps, which stand together, in the order of time.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from revealed.checks import Ints, frozen
from revealed.errors import InvalidDemonstrations
from revealed.labels import listed
from revealed.naming import Labels, by_name, in_words, label_array
from revealed.trajectories import Steps
from revealed.voices import arg

ARRIVED = "Drop the rows after its arrival, or give each trip its own id."


class Trips:
    """The part of `Demonstrations` that knows trajectories and their goals.

    A trajectory without a decision is none of those counted here: its steps are not there.
    """

    n_states: int
    steps: Steps | None
    state_labels: Labels

    @cached_property
    def trajectory(self) -> Ints:
        """(n_steps,): the number of the trajectory that each of the `steps` belongs to, from 0."""
        return frozen(np.cumsum(self._require_steps("trajectory").first) - 1)

    @property
    def origins(self) -> Ints:
        """(n_trajectories,): the state in which each trajectory starts."""
        steps = self._require_steps("origins")
        return steps.state[steps.first]

    @property
    def destinations(self) -> Ints | None:
        """(n_trajectories,): the goal of each trajectory; None where they have none."""
        return None if self.steps is None or self.steps.goal is None else self.steps.goal[self.steps.first]

    @property
    def goals(self) -> tuple[Any, ...] | None:
        """What the goals of all trajectories are called, in the order of the states: labels, or indices where there are
        none; None where trajectories have no goals."""
        states = self.goal_states
        return None if states is None else tuple(label_array(self.state_labels, states).tolist())

    @property
    def goal_states(self) -> Ints | None:
        """(G,): the goals of all trajectories, sorted, as indices of states; None where they have none."""
        return None if self._by_goal is None else frozen(self._by_goal[0])

    @cached_property
    def _by_goal(self) -> tuple[Ints, list[Ints]] | None:
        """The goals, and which steps are on the way to each."""
        goal = None if self.steps is None else self.steps.goal
        if goal is None:
            return None
        order = np.argsort(goal, kind="stable")  # trajectories stay in one piece
        goals, begins = np.unique(goal[order], return_index=True)
        return goals, np.split(order, begins[1:])

    def _steps_toward(self, goal: Any) -> Steps:
        """The steps on the way to one goal, without goals."""
        steps = self._require_steps("toward")
        if self._by_goal is None:
            remedy = f"Pass {arg('goal')} when building the demonstrations."
            raise InvalidDemonstrations("goal", "trips with goals", "trajectories without", remedy=remedy)
        goals, which = self._by_goal
        index = by_name("goal", goal, self.state_labels, self.n_states, InvalidDemonstrations)
        k = int(np.searchsorted(goals, index))
        if k == goals.size or goals[k] != index:
            known = listed(list(label_array(self.state_labels, goals)))
            got = in_words("state", self.state_labels, index)
            raise InvalidDemonstrations("goal", f"a goal of these trips, one of {known}", got)
        return steps[which[k]].without_goals()

    def _require_steps(self, caller: str) -> Steps:
        if self.steps is None:
            what = f"`{caller}` requires trajectories: plain counts do not say who decided what, and when"
            raise InvalidDemonstrations.impossible(what, argument="demonstrations")
        return self.steps


def require_arrival(steps: Steps, ids: tuple[Any, ...], labels: Labels) -> None:
    """A trip is over when it enters its goal: nothing is decided there."""
    if steps.goal is None:
        return
    late = np.flatnonzero(steps.state == steps.goal)
    if late.size:
        i = first_met(steps, late)
        where = f"{whose(steps, ids, i)}, {in_words('state', labels, steps.state[i])}"
        what = "a trip cannot continue after it has reached its goal"
        raise InvalidDemonstrations.impossible(what, where, ARRIVED, "goal")


def n_goals(goals: Ints) -> str:
    """`12 goals`."""
    return f"{goals.size} goal{'' if goals.size == 1 else 's'}"


def first_met(steps: Steps, which: Ints) -> int:
    """Of these steps the one that a reader of the data meets first."""
    return int(which[0] if steps.row is None else which[steps.row[which].argmin()])


def whose(steps: Steps, ids: tuple[Any, ...], i: int) -> str:
    """Whose decision a step was, when, and where it was written: `agent 'ann', time 3, row 17`."""
    who = "agent" if steps.goal is None else "trip"
    row = "" if steps.row is None else f", row {steps.row[i]}"
    return f"{who} {ids[steps.agent[i]]!r}, time {steps.time[i]}{row}"
