"""A fit as tables with the names that the data had: parameters, policy, states, and panels of simulated decisions.

States and actions stand in columns that are called as in the panel; labels of several columns have a column each. Of
bins the label stands beside their centres. On a horizon there is a column for the period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Ints
from revealed.demonstrations import Demonstrations
from revealed.fit import AnyFit, Fit
from revealed.labels import plain
from revealed.panels.clock import as_date, is_own

if TYPE_CHECKING:
    import pandas as pd

MOST_ERRORS = 30  # parameters of a reward that is not linear whose errors are computed without being asked for


@dataclass(frozen=True)
class Names:
    """What the columns of the data were called."""

    id: str = "id"
    time: str = "time"
    state: tuple[str, ...] = ("state",)
    action: tuple[str, ...] = ("action",)
    next_state: tuple[str, ...] = ()
    weight: str | None = None
    episode: str | None = None
    period: str | None = None
    first_time: int | str | None = None
    probability: str = "probability"
    goal: tuple[str, ...] = ()
    network: str | None = None
    turns: str | None = None
    link: tuple[str, ...] = ("link",)
    trip: tuple[str, ...] = ("trip",)
    sequence: str = "sequence"
    trip_link: tuple[str, ...] = ()
    traveller: str | None = None

    @property
    def on_roads(self) -> bool:
        return bool(self.network or self.turns)


def params_frame(fit: AnyFit) -> pd.DataFrame:
    """parameter, coef, std_err, z, p, lower, upper; NaN where an error is not known, or too expensive to compute."""
    import pandas as pd

    head = ["coef", "std_err", "z", "p", "lower", "upper"]
    linear = bool(getattr(fit.reward_model, "linear", False)) and not getattr(fit.reward_model, "tabular", False)
    if linear or fit.theta.size <= MOST_ERRORS or fit.chosen is not None:
        frame = fit.summary().to_frame().set_axis(head, axis=1)
    else:
        frame = pd.DataFrame({"coef": fit.theta}, index=list(fit.reward_model.names)).reindex(columns=head)
    return frame.rename_axis("parameter").reset_index()


def states_frame(fit: Fit, names: Names) -> pd.DataFrame:
    """A row per state: its labels, value, visits, whether everything ends there."""
    frame = state_columns(fit, names, np.arange(fit.mdp.n_states))
    visits = fit.demonstrations.counts.sum(axis=1)
    return beside(frame, {"value": fit.value, "visits": whole(visits), "terminal": fit.mdp.terminal})


def policy_frame(fit: Fit, names: Names, states: Ints | None = None) -> pd.DataFrame:
    """A row per state and feasible action: labels, probability, visits, reward."""
    import pandas as pd

    s, a = np.nonzero(fit.mdp.feasible if states is None else fit.mdp.feasible[states])
    s = s if states is None else states[s]
    frame = pd.concat([state_columns(fit, names, s), action_columns(fit, names, a)], axis=1)
    visits = fit.demonstrations.counts[s, a]
    return beside(frame, {"probability": fit.policy[s, a], "visits": whole(visits), "reward": fit.reward[s, a]})


def history_frame(fit: AnyFit) -> pd.DataFrame:
    return fit.history.reset_index()


def state_columns(fit: AnyFit, names: Names, states: Ints) -> pd.DataFrame:
    """The labels of these states, in columns."""
    model = fit.mdp.base or fit.mdp
    base = states % model.n_states
    bins = fit.demonstrations.bins
    frame = labels_frame(base_labels(fit), names.state if bins is None else ("state",), base)
    if bins is not None:
        centres = bins.features.iloc[base].reset_index(drop=True)
        frame = beside(frame, {str(name): centres[name] for name in centres})
    if fit.mdp.base is not None:
        frame.insert(0, _free("period", frame.columns), states // model.n_states)
    return frame


def action_columns(fit: AnyFit, names: Names, actions: Ints) -> pd.DataFrame:
    return labels_frame(action_labels(fit), names.action, actions)


def base_labels(fit: AnyFit) -> Sequence[Any]:
    """Of the states before the model is unrolled."""
    model = fit.mdp.base or fit.mdp
    return model.state_labels or fit.demonstrations.state_labels or range(model.n_states)


def action_labels(fit: AnyFit) -> Sequence[Any]:
    return fit.mdp.action_labels or fit.demonstrations.action_labels or range(fit.mdp.n_actions)


def panel_frame(fit: AnyFit, demos: Demonstrations, names: Names) -> pd.DataFrame:
    """Simulated decisions as the data were: the same columns; of bins their centres, which fall into the same bins."""
    import pandas as pd

    steps, S = demos.steps, (fit.mdp.base or fit.mdp).n_states
    assert steps is not None
    when = steps.time if fit.mdp.base is None else steps.state // S  # on a horizon some enter late
    own = pd.DataFrame({names.id: steps.agent, names.time: _dates(when, names.period, names.first_time)})
    if names.episode is not None and names.episode not in own:
        own[names.episode] = 0
    parts = [own, raw_states(fit, names.state, steps.state % S), action_columns(fit, names, steps.action)]
    if names.next_state:  # a simulation knows where the last decision led
        parts.append(raw_states(fit, names.next_state, steps.next_state % S))
    if names.weight is not None:
        parts.append(pd.DataFrame({names.weight: np.ones(steps.agent.size)}))
    return pd.concat(parts, axis=1)


def _dates(time: Ints, period: str | None, first_time: int | str | None) -> Any:
    """Times as the data had them: numbers, or dates that are periods apart, from the time that is period 0 on, or from
    Monday, 3 January 2000."""
    if period is None:
        return time + (first_time if isinstance(first_time, int) else 0)
    length, unit = _UNITS[period]
    zero = None if first_time is None or is_own(first_time) else as_date(first_time)
    first = (np.datetime64("2000-01-03") if zero is None else zero).astype(f"datetime64[{unit}]")
    return (first + (length * time).astype(f"timedelta64[{unit}]")).astype("datetime64[s]")


_UNITS = {
    "second": (1, "s"),
    "minute": (1, "m"),
    "hour": (1, "h"),
    "day": (1, "D"),
    "week": (7, "D"),
    "month": (1, "M"),
    "quarter": (3, "M"),
    "year": (1, "Y"),
}


def raw_states(fit: AnyFit, names: Sequence[str], base: Ints) -> pd.DataFrame:
    """States as a panel holds them: labels, or numbers inside the bins."""
    bins = fit.demonstrations.bins
    if bins is None:
        return labels_frame(base_labels(fit), names, base)
    centres = bins.features.iloc[base].reset_index(drop=True)
    return centres.set_axis(list(names), axis=1) if len(names) == centres.shape[1] else centres


def labels_frame(labels: Sequence[Any], names: Sequence[str], index: Ints) -> pd.DataFrame:
    """The labels at these places. Those that are tuples fill as many columns as they have parts."""
    import pandas as pd

    values = [plain(labels[i]) for i in range(len(labels))]
    if values and isinstance(values[0], tuple):
        parts = len(values[0])
        heads = list(names) if len(names) == parts else [f"{names[0]}_{k}" for k in range(parts)]
        return pd.DataFrame({head: [values[i][k] for i in index] for k, head in enumerate(heads)})
    return pd.DataFrame({names[0]: [values[i] for i in index]})


def beside(frame: pd.DataFrame, columns: dict[str, Any]) -> pd.DataFrame:
    """More columns, whose names give way to those that the data brought."""
    for name, values in columns.items():
        frame[_free(name, frame.columns)] = np.asarray(values)
    return frame


def _free(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def whole(visits: Any) -> Any:
    """Counts as whole numbers, unless rows had weights that are not."""
    return visits.astype(np.int64) if np.all(visits == np.round(visits)) else visits
