"""Trips as an ordered table of links → decisions with goals: at each link the turn that was taken, toward the last."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Bools, Ints, require_option
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations
from revealed.frames import Column, Table, read_table
from revealed.gates import require_list
from revealed.labels import Order, how_many, near
from revealed.panels.columns import as_times, varies
from revealed.routes.link_tables import Columns, Ids, read_ids, require_roles
from revealed.trajectories import Steps
from revealed.voices import arg, either

if TYPE_CHECKING:
    from revealed.routes.network import RoadNetwork

ARGUMENT = "trips"
BAD = ("error", "drop")
DROP = f"leave such trips out: {arg('bad', 'drop')}."


@dataclass(frozen=True)
class Rows:
    """Rows by trip and place in it: whose, where, when as it was written (`shown`), where in the table (−1: nowhere).

    `last` marks the last link of each trip; `travellers` tells whose each trip is, where the table says so; `columns`
    are those to keep, with a value per trip.
    """

    trip: Ints
    link: Ints
    shown: Column
    row: Ints
    ids: tuple[Any, ...]
    travellers: tuple[Any, ...] | None = None
    columns: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def last(self) -> Bools:
        return np.append(self.trip[1:] != self.trip[:-1], True)

    @property
    def first(self) -> Bools:
        return np.append(True, self.trip[1:] != self.trip[:-1])

    def of_trips(self, kept: Bools) -> Rows:
        """The rows of these trips, under new numbers."""
        some, which = kept[self.trip], np.flatnonzero(kept)
        parts: dict[str, Any] = {name: getattr(self, name)[some] for name in ("link", "shown", "row")}
        owners = None if self.travellers is None else tuple(self.travellers[k] for k in which)
        ids = tuple(self.ids[k] for k in which)
        columns = {name: tuple(values[k] for k in which) for name, values in self.columns.items()}
        parts |= {"travellers": owners, "columns": columns}
        return replace(self, trip=(np.cumsum(kept) - 1)[self.trip[some]], ids=ids, **parts)

    def whose(self, k: int) -> str:
        return f"trip {self.ids[self.trip[k]]!r}"


def read_trips(
    network: RoadNetwork,
    table: Any,
    trip: Columns,
    sequence: str,
    link: Columns,
    traveller: Columns | None,
    bad: str = "error",
    keep: Columns = (),
) -> Demonstrations:
    """See `RoadNetwork.trips`."""
    rows, notes = _read_rows(network, table, trip, sequence, link, traveller, bad, keep)
    rows, single = _without_singles(to_arrivals(network, rows))
    for check in (_passed_before, _turned_nowhere):
        rows = _settle(rows, check(network, rows), bad, notes)
    steps, ids, columns = _steps(network, rows), rows.ids, rows.columns
    if rows.travellers is not None:
        code = {name: k for k, name in enumerate(dict.fromkeys(rows.travellers))}
        whose = np.array([code[name] for name in rows.travellers], dtype=np.intp)
        steps, ids = replace(steps, agent=whose[steps.agent]), tuple(code)
        columns = {name: _of_travellers(name, rows.travellers, values) for name, values in columns.items()}
    demos = Demonstrations._from_steps(steps, None, network.n_links, network.n_actions, Order(ids, True))
    return replace(demos, state_labels=network.links, notes=(*notes, *single), columns=columns)


def _of_travellers(name: str, travellers: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A column's value for each traveller, who has one."""
    own: dict[Any, Any] = {}
    for one, value in zip(travellers, values, strict=True):
        if own.setdefault(one, value) != value:
            raise varies(name, one, own[one], value, None)
    return tuple(own.values())


def destinations_in(
    network: RoadNetwork, table: Any, trip: Columns, sequence: str, link: Columns, bad: str = "error"
) -> list[Any]:
    """The last link of every trip, each once."""
    rows, _ = _read_rows(network, table, trip, sequence, link, None, bad)
    return [network.links[k] for k in np.unique(rows.link[rows.last])]


def _read_rows(
    network: RoadNetwork,
    frame: Any,
    trip: Columns,
    sequence: str,
    link: Columns,
    traveller: Columns | None,
    bad: str,
    keep: Columns = (),
) -> tuple[Rows, list[str]]:
    """The table in order, its links known, and notes on what was left out."""
    require_option("bad", bad, BAD)
    table = read_table(frame, "table", InvalidDemonstrations)
    require_roles(table, {"trip": trip, "sequence": sequence, "link": link})
    trips = read_ids(table, "trip", trip, ordered=True)
    links = read_ids(table, "link", link)
    clock = _clock(table, sequence)
    order = np.lexsort((clock, trips.code))
    index = links.places(network.place)
    owners = None if traveller is None else _of_trips(table, trips, "traveller", traveller)
    names = [keep] if isinstance(keep, str) else require_list("keep", keep, "names of columns")
    columns = {name: _of_trips(table, trips, "keep", name) for name in names}
    rows = Rows(trips.code[order], index[order], clock[order], order, trips.labels, owners, columns)
    notes: list[str] = []
    rows = _settle(rows, _unknown(network, rows, links), bad, notes)
    return _settle(rows, _twice(rows), bad, notes), notes


def _of_trips(table: Table, trips: Ids, role: str, columns: Columns) -> tuple[Any, ...]:
    """What belongs to each trip, of which it has one: whose it is, or a column to keep."""
    people = read_ids(table, role, columns, ordered=True)
    first = np.unique(trips.code, return_index=True)[1]
    own = people.code[first]
    other = np.flatnonzero(people.code != own[trips.code])
    if other.size:
        k = int(other[0])
        names = [people.labels[c] for c in (own[trips.code[k]], people.code[k])]
        got = f"trip {trips.labels[trips.code[k]]!r} of {names[0]!r} and of {names[1]!r}"
        what = "one traveller per trip" if role == "traveller" else f"one value of {columns!r} per trip"
        raise InvalidDemonstrations(role, what, got, f"row {k}")
    return tuple(people.labels[c] for c in own)


def _clock(table: Table, sequence: str) -> Column:
    """Numbers or dates; dates that are written as text are read, as they are in files."""
    return as_times("sequence", table.column("sequence", sequence))


def to_arrivals(network: RoadNetwork, rows: Rows) -> Rows:
    """Trips that end at a link with an arrival link go on to it."""
    ends = np.flatnonzero(rows.last)
    ends = ends[network.arrival[rows.link[ends]] >= 0]
    if ends.size == 0:
        return rows
    at = ends + 1
    beyond = network.arrival[rows.link[ends]]
    return replace(
        rows,
        trip=np.insert(rows.trip, at, rows.trip[ends]),
        link=np.insert(rows.link, at, beyond),
        shown=np.insert(rows.shown, at, rows.shown[ends]),
        row=np.insert(rows.row, at, -1),
    )


def _without_singles(rows: Rows) -> tuple[Rows, tuple[str, ...]]:
    """Trips of at least two links; the others decide nothing."""
    length = np.bincount(rows.trip, minlength=len(rows.ids))
    single = np.flatnonzero(length == 1)
    if single.size == 0:
        return rows, ()
    if single.size == length.size:
        raise InvalidDemonstrations(ARGUMENT, "at least one trip of two links", "trips of one link only")
    which = f"{single.size} trips of one link were" if single.size > 1 else "1 trip of one link was"
    note = f"{which} left out (first {rows.ids[single[0]]!r}): nothing is decided there."
    return rows.of_trips(length > 1), (note,)


def _goals(rows: Rows) -> Ints:
    """For every row the last link of its trip."""
    return rows.link[rows.last][rows.trip]


def _steps(network: RoadNetwork, rows: Rows) -> Steps:
    """A decision at every link but the last."""
    here = np.flatnonzero(~rows.last)
    turn = network.turns_between(rows.link[here], rows.link[here + 1])
    begin = np.flatnonzero(rows.first)
    return Steps(
        agent=rows.trip[here],
        time=here - begin[rows.trip[here]],
        state=rows.link[here],
        action=network.slot[turn],
        next_state=rows.link[here + 1],
        first=rows.first[here],
        row=rows.row[here],
        goal=_goals(rows)[here],
    )


# -- trips that cannot be ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """What a network does not allow: the rows, the complaint about the first, and why such trips may be left out."""

    at: Ints
    error: InvalidDemonstrations
    reason: str


def _settle(rows: Rows, fault: Fault | None, bad: str, notes: list[str]) -> Rows:
    """The trips without fault, and a note on the others; or the complaint."""
    if fault is None:
        return rows
    if bad == "error":
        raise fault.error
    lost = np.unique(rows.trip[fault.at])
    were = f"{how_many(lost.size, 'trip')} {'were' if lost.size > 1 else 'was'}"
    notes.append(f"{were} left out (first {rows.ids[lost[0]]!r}): {fault.reason}.")
    if lost.size == len(rows.ids):
        raise InvalidDemonstrations.impossible("no trip is possible on this network", None, " ".join(notes), ARGUMENT)
    kept = np.ones(len(rows.ids), dtype=bool)
    kept[lost] = False
    return rows.of_trips(kept)


def _such(rows: Rows, at: Ints, what: str) -> str:
    """How many there are, and in how many trips."""
    trips = np.unique(rows.trip[at]).size
    return how_many(at.size, f"such {what}") + (f" in {how_many(trips, 'trip')}" if at.size > 1 else "")


def _unknown(network: RoadNetwork, rows: Rows, links: Ids) -> Fault | None:
    lost = np.flatnonzero(rows.link < 0)
    if not lost.size:
        return None
    k = int(lost[0])
    label = links.labels[links.code[rows.row[k]]]
    where = f"{rows.whose(k)}, sequence {rows.shown[k]}, row {rows.row[k]}; {_such(rows, lost, 'row')}"
    remedy = f"{near(label, network.links) or 'Add the link to the network.'} Or {DROP}"
    error = InvalidDemonstrations(ARGUMENT, "links of the network", f"link {label!r}", where, remedy)
    return Fault(lost, error, "a link is not in the network")


def _twice(rows: Rows) -> Fault | None:
    """Two rows of a trip at one place: nothing tells which comes first."""
    same = np.flatnonzero((rows.trip[1:] == rows.trip[:-1]) & (rows.shown[1:] == rows.shown[:-1]))
    if not same.size:
        return None
    k = int(same[0])
    got = f"{rows.whose(k)} with sequence {rows.shown[k]} in rows {rows.row[k]} and {rows.row[k + 1]}"
    where = f"row {rows.row[k + 1]}; {_such(rows, same, 'row')}"
    remedy = f"Number the links of a trip in their order, or {DROP}"
    error = InvalidDemonstrations(ARGUMENT, "one row per trip and sequence", got, where, remedy)
    return Fault(same, error, "a sequence number occurs twice")


def _passed_before(network: RoadNetwork, rows: Rows) -> Fault | None:
    """A trip would have ended where it first entered its last link."""
    early = np.flatnonzero((rows.link == _goals(rows)) & ~rows.last)
    if not early.size:
        return None
    k = int(early[0])
    end = int(np.flatnonzero(rows.last & (rows.trip == rows.trip[k]))[0])
    label = network.links[rows.link[k]]
    what = f"{rows.whose(k)} enters its last link {label!r} at sequence {rows.shown[k]} and again at {rows.shown[end]}"
    where = f"row {rows.row[k]}; {how_many(np.unique(rows.trip[early]).size, 'such trip')}"
    remedy = (
        "A trip ends on entering its destination. Cut the trip there, drop a duplicated row, let trips pass "
        f"through with {either(f'network.with_arrivals([{label!r}])', '--arrivals')}, or {DROP}"
    )
    error = InvalidDemonstrations.impossible(what, where, remedy, ARGUMENT)
    return Fault(early, error, "the last link is passed before")


def _turned_nowhere(network: RoadNetwork, rows: Rows) -> Fault | None:
    here = np.flatnonzero(~rows.last)
    lost = here[network.turns_between(rows.link[here], rows.link[here + 1]) < 0]
    if not lost.size:
        return None
    k = int(lost[0])
    first, second = (network.links[rows.link[i]] for i in (k, k + 1))
    what = f"no turn leads from link {first!r} to link {second!r}, where {rows.whose(k)} goes"
    what += f" at sequence {rows.shown[k + 1]}"
    mend = "The link is repeated: keep one of the rows" if first == second else "Correct the trip"
    remedy = f"{mend}, {'' if first == second else 'add the turn to the network, '}or {DROP}"
    where = f"row {rows.row[k + 1]}; {_such(rows, lost, 'move')}"
    error = InvalidDemonstrations.impossible(what, where, remedy, ARGUMENT)
    return Fault(lost, error, "a turn is not in the network")
