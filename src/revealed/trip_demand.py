"""How many trips go from where to where: a table of origins and destinations, or what trips themselves show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import (
    Bools,
    Floats,
    Ints,
    as_number,
    is_mapping,
    is_number,
    remedy_for,
    require_count,
    require_flag,
    require_vector,
)
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.frames import read_table, require_column
from revealed.gates import require_place, require_places
from revealed.goal_checks import have_ways, require_goals_within
from revealed.labels import how_many, listed, near, plain
from revealed.matching import match_labels
from revealed.mdp import MDP, require_mdp
from revealed.naming import Labels, label_index, pair_keys, rows_of
from revealed.tables import require_countable
from revealed.voices import arg, shown

if TYPE_CHECKING:
    import pandas as pd

Columns = str | Sequence[str]
STATES = "states of the model"


@dataclass(frozen=True, eq=False, repr=False)
class Demand:
    """`trips` (P,) go from the states `origin` to the states `destination` (both indices (P,)); no pair occurs twice.

    `labels` are those of all `n_states` states; None where they have none.
    """

    labels: Labels = field(repr=False)
    n_states: int
    origin: Ints
    destination: Ints
    trips: Floats

    def __post_init__(self) -> None:
        require_count("n_states", self.n_states)
        for name in ("origin", "destination"):
            object.__setattr__(self, name, require_places(name, getattr(self, name), self.n_states))
        n = self.origin.size
        if self.destination.size != n:
            raise InvalidInput("destination", f"as many states as origins ({n})", f"{self.destination.size}")
        trips = require_vector("trips", self.trips, n, f"{n} numbers >= 0, one per pair", least=0.0)
        object.__setattr__(self, "trips", trips)
        if self.labels is not None and len(self.labels) != self.n_states:
            raise InvalidInput("labels", f"as many labels as states ({self.n_states})", f"{len(self.labels)}")

    def __len__(self) -> int:
        return int(self.trips.size)

    def __repr__(self) -> str:
        goals = np.unique(self.destination).size
        return f"Demand({self.size_in_words}, to {goals} destinations)"

    @property
    def size_in_words(self) -> str:
        """ "800 trips of 786 pairs"."""
        return f"{self.total:.10g} trip{'' if self.total == 1.0 else 's'} of {how_many(len(self), 'pair')}"

    @property
    def total(self) -> float:
        return float(self.trips.sum())

    def to_frame(self) -> pd.DataFrame:
        """A row per pair: origin, destination, trips."""
        import pandas as pd

        names = label_index("state", self.labels, self.n_states)
        ends = {"origin": names.take(self.origin), "destination": names.take(self.destination)}
        return pd.DataFrame(ends | {"trips": self.trips})

    def words(self, row: int) -> str:
        """`'A' to 'B'`, or `state 3 to state 7` where there are no labels."""
        row = require_place("row", row, len(self), "pairs of the demand")
        return " to ".join(_name(self.labels, int(end[row])) for end in (self.origin, self.destination))

    def where(self, row: int) -> str:
        """The same, as the place of a first offender."""
        return f"the trip from {self.words(row)}"

    def groups(self, pairs: bool = False) -> list[Ints]:
        """The rows of each destination, or of each pair; in the order of the destinations' states."""
        require_flag("pairs", pairs)
        order = np.lexsort((self.origin, self.destination))
        new = np.diff(self.destination[order]) != 0
        if pairs:
            new |= np.diff(self.origin[order]) != 0
        return np.split(order, np.flatnonzero(new) + 1) if order.size else []

    def starts(self, rows: Ints) -> Floats:
        """(S,): how many of the trips of these rows start in each state."""
        rows = self._rows(rows)
        return np.bincount(self.origin[rows], self.trips[rows], minlength=self.n_states).astype(np.float64)

    def keep(self, rows: Any) -> Demand:
        """Some of the pairs: indices, a mask, or a slice."""
        rows = self._rows(rows)
        return Demand(self.labels, self.n_states, self.origin[rows], self.destination[rows], self.trips[rows])

    def _rows(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            return rows
        if isinstance(rows, np.ndarray) and rows.dtype == bool and rows.shape == self.trips.shape:
            return rows
        return require_places("rows", rows, len(self), "pairs of the demand")

    def arriving(self, mdp: MDP) -> Bools:
        """(P,): pairs between which the model has a way."""
        require_mdp(mdp)
        return have_ways(mdp, self.origin, self.destination)


def _name(labels: Labels, state: int) -> str:
    return f"state {state}" if labels is None else repr(plain(labels[state]))


def as_demand(
    mdp: MDP,
    demand: Any,
    argument: str = "demand",
    what: str = STATES,
    *,
    origin: Columns = "origin",
    destination: Columns = "destination",
    trips: str = "trips",
) -> Demand:
    """Trips by origin and destination, labels of states (indices where there are none): from any frame or file with
    columns of these names, from a dict or Series whose keys are pairs (origin, destination), or from demonstrations
    with goals. Rows of one pair add up. `what` is how messages call the states."""
    if isinstance(demand, Demand):
        if (demand.labels, demand.n_states) != (mdp.state_labels, mdp.n_states):
            raise InvalidInput(argument, f"trips between {what}", "trips between other states")
        return demand
    if isinstance(demand, Demonstrations):
        return demand_of(mdp, demand)
    if is_mapping(demand) or is_series(demand):
        starts, ends, numbers = _read_pairs(demand, argument, origin, destination)
    else:
        table = read_table(demand, argument)
        starts, ends = table.labels("origin", origin), table.labels("destination", destination)
        require_column("trips", trips, table.names, near(trips, table.names) or _COUNT)
        numbers = table.numbers("trips", trips)
    found = [_find(mdp, name, (starts, ends), what) for name in ("origin", "destination")]
    wrong = np.flatnonzero(~(numbers >= 0.0) | np.isinf(numbers))
    if wrong.size:
        raise InvalidInput("trips", "finite numbers >= 0", numbers[wrong[0]], _pair(starts, ends, int(wrong[0])))
    require_countable("trips", numbers)
    return _summed(mdp, found[0], found[1], numbers, argument)


_COUNT = "Say how many trips each row stands for, as in table.assign(trips=1) for one each."


def demand_of(mdp: MDP, trips: Any) -> Demand:
    """How often trips, demonstrations with goals, went from each origin to each destination; those of agents without
    weight are none."""
    steps, weights = trips_on(mdp, trips)
    first = np.flatnonzero(steps.first & (weights > 0.0))
    return _summed(mdp, steps.state[first], steps.goal[first], weights[first], "trips")


def trips_on(mdp: MDP, trips: Any) -> tuple[Any, Floats]:
    """The single decisions of trips with goals, in the numbers of the model's states, and how often each counts."""
    if not isinstance(trips, Demonstrations):
        remedy = "Convert a table with network.trips(table)."
        raise InvalidDemonstrations("trips", "demonstrations with goals", type(trips).__name__, remedy=remedy)
    own = match_labels(trips, mdp)
    if own.steps is None or own.steps.goal is None:
        remedy = f"Read them with network.trips(table), or give {arg('goal')} to the demonstrations."
        raise InvalidDemonstrations("trips", "demonstrations with goals", "none", remedy=remedy)
    require_goals_within(mdp, own)
    if own.n_states > mdp.n_states:
        raise InvalidDemonstrations("trips", f"the {mdp.n_states} states of the model", own.n_states)
    return own.steps, own.step_weights


def _summed(mdp: MDP, origin: Ints, destination: Ints, trips: Floats, argument: str) -> Demand:
    """Every pair once, in the order in which pairs first occur."""
    if trips.size == 0:
        raise InvalidInput(argument, "at least one pair", "none")
    _, first, which = np.unique(origin * mdp.n_states + destination, return_index=True, return_inverse=True)
    total = np.bincount(which, trips, minlength=first.size).astype(np.float64)
    order = np.argsort(first)
    rows = first[order]
    return Demand(mdp.state_labels, mdp.n_states, origin[rows], destination[rows], total[order])


def is_series(values: Any) -> bool:
    """Whether values come by name, as in a Series."""
    return rows_of(values) is not None and np.ndim(values) == 1


def _read_pairs(demand: Any, argument: str, *names: Any) -> tuple[list[Any], list[Any], Floats]:
    keys = list(map(plain, demand)) if is_mapping(demand) else pair_keys(demand.index, *names)
    odd = next(([key] for key in keys if not isinstance(key, tuple) or len(key) != 2), None)
    if odd is not None or not keys:
        got = "none" if odd is None else shown(odd[0])
        raise InvalidInput(argument, "keys that are pairs (origin, destination)", got)
    given = list(demand.values()) if is_mapping(demand) else demand.to_numpy().tolist()
    for key, value in zip(keys, given, strict=True):
        if not is_number(value):
            where, remedy = f"the trip from {key[0]!r} to {key[1]!r}", remedy_for(value)
            raise InvalidInput(argument, "a number of trips for every pair", shown(value), where, remedy)
    numbers = np.array([as_number(value) for value in given])
    return [key[0] for key in keys], [key[1] for key in keys], numbers


def _find(mdp: MDP, argument: str, ends: tuple[list[Any], list[Any]], what: str) -> Ints:
    """The states that are meant by the first or the second entry of each pair."""
    wanted = ends[argument == "destination"]
    index = np.array([_place(mdp, label) for label in wanted], dtype=np.intp)
    lost = np.flatnonzero(index < 0)
    if lost.size:
        k, known = int(lost[0]), mdp.state_labels
        expected = f"{what}, such as {listed(known)}" if known else f"{what}, indices in 0…{mdp.n_states - 1}"
        raise InvalidInput(argument, expected, shown(plain(wanted[k])), _pair(*ends, k), near(wanted[k], known or ()))
    return index


def _place(mdp: MDP, label: Any) -> int:
    try:
        return mdp.state_named(label)
    except InvalidInput:
        return -1


def _pair(starts: list[Any], ends: list[Any], row: int) -> str:
    """A pair as it was given."""
    return f"the trip from {plain(starts[row])!r} to {plain(ends[row])!r}"
