"""How often states are used by trips with goals: as observed, and as expected of trips between the same places (R4).

What is expected of a trip depends on its origin and its goal only, not on what it did on its way. So the two can be
compared: for a linear reward at its maximum the features that are gathered agree in sum, while the use of single states
shows where the model is off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints
from revealed.demonstrations import Demonstrations
from revealed.goal_values import GoalValues, Toward
from revealed.naming import label_array, state_index
from revealed.rewards.base import cases_by, of_trips
from revealed.trip_demand import Demand, demand_of

if TYPE_CHECKING:
    import pandas as pd


def observed_use(trips: Demonstrations) -> Floats:
    """(S,): how often trips were in each state, the first and the last one of each included."""
    steps = trips.steps
    use = trips.counts.sum(axis=1)
    if steps is None or steps.goal is None:
        return use
    arrived = steps.next_state == steps.goal
    return use + np.bincount(steps.goal[arrived], trips.step_weights[arrived], trips.n_states)


def expected_use(fit: Any) -> tuple[Floats, Floats]:
    """(S,) and (S, A): how often trips between the same places are expected in each state, and to take each action
    there, by the soft optimum at the estimate. Goals are streamed."""
    pairs = demand_of(fit.mdp, fit.demonstrations)
    visits, actions = np.zeros(fit.mdp.n_states), np.zeros(fit.mdp.feasible.shape)
    for toward, rows in _each(fit, pairs):
        use = toward.visits(pairs.starts(rows))
        visits += use
        actions += use[:, None] * toward.policy
    return visits, actions


def _each(fit: Any, pairs: Demand) -> Iterator[tuple[Toward, Ints]]:
    """The soft optimum toward each goal, or from each origin to it where rewards depend on both; and its rows."""
    groups = pairs.groups(pairs=cases_by(fit.reward_model) == "pair")
    first = [int(rows[0]) for rows in groups]
    if not of_trips(fit.reward_model):
        values = GoalValues(fit.mdp, fit.reward, fit.options["solver"])
        yield from zip(values.each(pairs.destination[first]), groups, strict=True)
        return
    ends = (label_array(fit.mdp.state_labels, end[first]) for end in (pairs.destination, pairs.origin))
    for goal, origin, rows in zip(*ends, groups, strict=True):
        yield fit.toward(goal, origin), rows


def flows_frame(fit: Any) -> pd.DataFrame:
    """A row per state: observed, expected."""
    import pandas as pd

    columns = {"observed": observed_use(fit.demonstrations), "expected": expected_use(fit)[0]}
    return pd.DataFrame(columns, index=state_index(fit.mdp))
