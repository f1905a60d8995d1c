"""The log likelihood of single trips, each on the way to its own goal: of those observed, or of others held out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from revealed.checks import Floats
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations
from revealed.goal_rows import GoalRows
from revealed.matching import match_labels, require_fit
from revealed.mdp import MDP
from revealed.rewards.base import cases_by
from revealed.voices import arg


def by_trip(mdp: MDP, demos: Demonstrations, cases_of: Callable[[GoalRows], Any], reward: Any, theta: Floats) -> Floats:
    """(n_trajectories,): Σ_t log π_θ(a_t|s_t, goal) of each trip. `cases_of` makes the cases of some rows."""
    demos = match_labels(demos, mdp)
    if demos.goals is None:
        raise InvalidDemonstrations(
            "demonstrations", "trips with goals", "none", remedy=f"Pass {arg('goal')} when you read them."
        )
    require_fit(mdp, demos)
    steps = demos.steps
    assert steps is not None
    rows = GoalRows.of(mdp, demos, cases_by(reward), discounted=False)
    log_policy = cases_of(rows).at(reward, theta, {}).choices.log_policy
    counts = demos.step_weights > 0.0  # those that do not count have no row
    step_log = log_policy[rows.place(demos)[counts], steps.action[counts]] * demos.step_weights[counts]
    return np.bincount(demos.trajectory[counts], step_log, demos.origins.size).astype(np.float64)


def trip_names(demos: Demonstrations) -> list[Any]:
    """The id of each trip's agent; of agents with several trips the id and the number of the trip, from 0."""
    assert demos.steps is not None
    agent = demos.steps.agent[demos.steps.first]
    if np.unique(agent).size == agent.size:
        return [demos.ids[i] for i in agent]
    seen: dict[int, int] = {}
    names = []
    for i in agent.tolist():
        seen[i] = seen.get(i, -1) + 1
        names.append((demos.ids[i], seen[i]))
    return names
