"""A fit of trips with goals as tables: how states are used, how probable trips are, and panels of simulated trips."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Bools, Ints
from revealed.commands.tables import Names, beside, labels_frame, panel_frame, state_columns, whole
from revealed.demonstrations import Demonstrations
from revealed.goal_fit import GoalFit
from revealed.goal_flows import expected_use, observed_use
from revealed.goal_likelihood import trip_names
from revealed.labels import spell
from revealed.routes.changes import ARRIVAL
from revealed.typed import next_names

if TYPE_CHECKING:
    import pandas as pd

NUMBER = "trip_number"  # which trip of the same traveller it is, from 0


def use_frame(fit: GoalFit, names: Names) -> pd.DataFrame:
    """A row per state: its labels, how often trips were there, and how often that is expected of them."""
    frame = state_columns(fit, place_names(names), np.arange(fit.mdp.n_states))
    observed, expected = observed_use(fit.demonstrations), expected_use(fit)[0]
    return beside(frame, {"observed": whole(observed), "expected": expected})


def trips_frame(fit: GoalFit, names: Names) -> pd.DataFrame:
    """A row per trip: agent, origin, goal, number of decisions, and log likelihood."""
    import pandas as pd

    demos = fit.demonstrations
    goals: Any = demos.destinations
    own = names.trip if names.on_roads and names.traveller is None else (names.traveller or names.id, NUMBER)
    ids = labels_frame(trip_names(demos), own, np.arange(fit.n_trips))
    frame = pd.concat([ids, ends_frame(fit, names, demos.origins, goals)], axis=1)
    llf = np.asarray(fit.log_likelihood_by_trip(), dtype=np.float64)
    return beside(frame, {"decisions": np.bincount(demos.trajectory), "log_likelihood": llf})


def ends_frame(fit: GoalFit, names: Names, origins: Ints, goals: Ints) -> pd.DataFrame:
    """Where trips begin and where they are heading."""
    import pandas as pd

    parts = {"from_": origins, "to_": goals}
    own = place_names(names)
    return pd.concat([state_columns(fit, own, at).add_prefix(part) for part, at in parts.items()], axis=1)


def place_names(names: Names) -> Names:
    """What states are called: on roads as links are in the file of links."""
    return replace(names, state=names.link) if names.on_roads else names


def trip_panel(fit: GoalFit, demos: Demonstrations, names: Names) -> pd.DataFrame:
    """Simulated trips as the data were: on roads the links of each, its last included; else decisions with goals."""
    import pandas as pd

    if names.on_roads:
        return _links_frame(fit, demos, names)
    steps: Any = demos.steps
    names = replace(names, next_state=names.next_state or next_names(names.state))  # arrivals show nowhere else
    goals = labels_frame(fit.state_labels, names.goal or ("goal",), steps.goal)
    return pd.concat([panel_frame(fit, demos, names), goals], axis=1)


def _links_frame(fit: GoalFit, demos: Demonstrations, names: Names) -> pd.DataFrame:
    import pandas as pd

    steps: Any = demos.steps
    last = np.append(np.flatnonzero(steps.first)[1:], steps.state.size)  # behind the last decision of each trip
    trip = np.insert(demos.trajectory, last, demos.trajectory[last - 1])
    order = np.insert(steps.time, last, steps.time[last - 1] + 1)
    link = np.insert(steps.state, last, steps.next_state[last - 1])
    kept = ~arrivals(fit)[link]
    whose = labels_frame(range(len(last)), names.trip[:1], trip)
    whose = whose.reindex(columns=[*whose.columns, *names.trip[1:]], fill_value=0)
    if names.traveller is not None:
        whose[names.traveller] = trip
    whose[names.sequence] = order
    links = labels_frame(fit.state_labels, names.trip_link or names.link, link)
    return pd.concat([whose, links], axis=1)[kept].reset_index(drop=True)


def arrivals(fit: GoalFit) -> Bools:
    """(S,): arrival links, which are the library's own; files of trips do not have them. They stand behind a link, and
    nothing leads out of them: others may be called alike."""
    known = set(map(spell, fit.state_labels))
    before = [label.removesuffix(ARRIVAL) if isinstance(label, str) else label for label in fit.state_labels]
    ours = [label != own and label in known for label, own in zip(before, fit.state_labels, strict=True)]
    return np.array(ours) & fit.mdp.terminal
