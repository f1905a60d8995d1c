"""Trips as an ordered table of links → decisions with goals: at each link the turn that was taken, toward the last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Bools, Ints
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations
from revealed.frames import Column, Table, kind_of, read_table
from revealed.labels import near
from revealed.routes.link_tables import Columns, Ids, read_ids
from revealed.trajectories import Steps

if TYPE_CHECKING:
    from revealed.routes.network import RoadNetwork

ARGUMENT = "trips"


@dataclass(frozen=True)
class Rows:
    """Rows by trip and place in it: whose, where, when as it was written (`shown`), where in the table (−1: nowhere).

    `last` marks the last link of each trip; `travellers` tells whose each trip is, where the table says so.
    """

    trip: Ints
    link: Ints
    shown: Column
    row: Ints
    ids: tuple[Any, ...]
    travellers: tuple[Any, ...] | None = None

    @property
    def last(self) -> Bools:
        return np.append(self.trip[1:] != self.trip[:-1], True)

    @property
    def first(self) -> Bools:
        return np.append(True, self.trip[1:] != self.trip[:-1])

    def some(self, kept: Any) -> Rows:
        parts = {name: getattr(self, name)[kept] for name in ("trip", "link", "shown", "row")}
        return replace(self, **parts)

    def whose(self, k: int) -> str:
        return f"trip {self.ids[self.trip[k]]!r}"


def read_trips(
    network: RoadNetwork, table: Any, trip: Columns, sequence: str, link: Columns, traveller: Columns | None
) -> Demonstrations:
    """See `RoadNetwork.trips`."""
    rows = to_arrivals(network, _read_rows(network, table, trip, sequence, link, traveller))
    rows, notes = _without_singles(rows)
    goal = _goals(rows)
    _require_one_visit(network, rows, goal)
    steps, ids = _steps(network, rows, goal), rows.ids
    if rows.travellers is not None:
        code = {name: k for k, name in enumerate(dict.fromkeys(rows.travellers))}
        whose = np.array([code[name] for name in rows.travellers], dtype=np.intp)
        steps, ids = replace(steps, agent=whose[steps.agent]), tuple(code)
    demos = Demonstrations._from_steps(steps, None, network.n_links, network.n_actions, ids)
    return replace(demos, state_labels=network.links, notes=notes)


def destinations_in(network: RoadNetwork, table: Any, trip: Columns, sequence: str, link: Columns) -> list[Any]:
    """The last link of every trip, each once."""
    rows = _read_rows(network, table, trip, sequence, link, None)
    return [network.links[k] for k in np.unique(rows.link[rows.last])]


def _read_rows(
    network: RoadNetwork, frame: Any, trip: Columns, sequence: str, link: Columns, traveller: Columns | None
) -> Rows:
    """The table in order, its links known."""
    table = read_table(frame, "table", InvalidDemonstrations)
    trips = read_ids(table, "trip", trip, ordered=True)
    links = read_ids(table, "link", link)
    clock = _clock(table, sequence)
    order = np.lexsort((clock, trips.code))
    index = links.places(network.place)
    owners = None if traveller is None else _owners(trips, read_ids(table, "traveller", traveller, ordered=True))
    rows = Rows(trips.code[order], index[order], clock[order], order, trips.labels, owners)
    _require_known(network, rows, links)
    _require_once(rows)
    return rows


def _owners(trips: Ids, people: Ids) -> tuple[Any, ...]:
    """Whose each trip is; a trip has one traveller."""
    first = np.unique(trips.code, return_index=True)[1]
    own = people.code[first]
    other = np.flatnonzero(people.code != own[trips.code])
    if other.size:
        k = int(other[0])
        names = [people.labels[c] for c in (own[trips.code[k]], people.code[k])]
        got = f"trip {trips.labels[trips.code[k]]!r} of {names[0]!r} and of {names[1]!r}"
        raise InvalidDemonstrations("traveller", "one traveller per trip", got, f"row {k}")
    return tuple(people.labels[c] for c in own)


def _clock(table: Table, sequence: str) -> Column:
    values = table.column("sequence", sequence)
    if values.dtype.kind not in "iufM":
        remedy = "As text, 10 would come before 9." if values.dtype.kind in "US" else None
        got = f"{kind_of(values)} such as {values[0]!s}"
        raise InvalidDemonstrations("sequence", f"numbers or dates in column {sequence!r}", got, remedy=remedy)
    return values


def _require_known(network: RoadNetwork, rows: Rows, links: Ids) -> None:
    lost = np.flatnonzero(rows.link < 0)
    if lost.size:
        k = int(lost[0])
        label = links.labels[links.code[rows.row[k]]]
        where = f"{rows.whose(k)}, sequence {rows.shown[k]}, row {rows.row[k]}; {lost.size} such rows"
        remedy = near(label, network.links) or "Drop such trips, or add the link to the network."
        raise InvalidDemonstrations(ARGUMENT, "links of the network", f"link {label!r}", where, remedy)


def _require_once(rows: Rows) -> None:
    """No two rows of a trip at one place: nothing would tell which comes first."""
    same = np.flatnonzero((rows.trip[1:] == rows.trip[:-1]) & (rows.shown[1:] == rows.shown[:-1]))
    if same.size:
        k = int(same[0])
        got = f"{rows.whose(k)} with sequence {rows.shown[k]} in rows {rows.row[k]} and {rows.row[k + 1]}"
        raise InvalidDemonstrations(
            ARGUMENT, "one row per trip and sequence", got, f"row {rows.row[k + 1]}; {same.size} such rows"
        )


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
    """Trips of at least two links, under new numbers; the others decide nothing."""
    length = np.bincount(rows.trip, minlength=len(rows.ids))
    single = np.flatnonzero(length == 1)
    if single.size == 0:
        return rows, ()
    if single.size == length.size:
        raise InvalidDemonstrations(ARGUMENT, "at least one trip of two links", "trips of one link only")
    place = np.cumsum(length > 1) - 1
    kept = rows.some(length[rows.trip] > 1)
    several = np.flatnonzero(length > 1)
    ids = tuple(rows.ids[i] for i in several)
    owners = None if rows.travellers is None else tuple(rows.travellers[i] for i in several)
    which = f"{single.size} trips of one link were" if single.size > 1 else "1 trip of one link was"
    note = f"{which} left out (first {rows.ids[single[0]]!r}): nothing is decided there."
    return replace(kept, trip=place[kept.trip], ids=ids, travellers=owners), (note,)


def _goals(rows: Rows) -> Ints:
    """For every row the last link of its trip."""
    return rows.link[rows.last][rows.trip]


def _require_one_visit(network: RoadNetwork, rows: Rows, goal: Ints) -> None:
    """A trip would have ended where it first entered its last link."""
    early = np.flatnonzero((rows.link == goal) & ~rows.last)
    if early.size:
        k = int(early[0])
        end = int(np.flatnonzero(rows.last & (rows.trip == rows.trip[k]))[0])
        label = network.links[rows.link[k]]
        trips = np.unique(rows.trip[early]).size
        got = f"{rows.whose(k)} at its last link {label!r} at sequence {rows.shown[k]} and again at {rows.shown[end]}"
        remedy = (
            "A trip ends on entering its destination. Cut the trip there, drop a row that stands twice, or let trips "
            f"pass through with network.with_arrivals([{label!r}])."
        )
        expected = "trips that come to their last link once"
        raise InvalidDemonstrations(ARGUMENT, expected, got, f"row {rows.row[k]}; {trips} such trips", remedy)


def _steps(network: RoadNetwork, rows: Rows, goal: Ints) -> Steps:
    """A decision at every link but the last."""
    here = np.flatnonzero(~rows.last)
    turn = network.turns_between(rows.link[here], rows.link[here + 1])
    lost = np.flatnonzero(turn < 0)
    if lost.size:
        raise _no_turn(network, rows, int(here[lost[0]]), lost.size)
    begin = np.flatnonzero(rows.first)
    return Steps(
        agent=rows.trip[here],
        time=here - begin[rows.trip[here]],
        state=rows.link[here],
        action=network.slot[turn],
        next_state=rows.link[here + 1],
        first=rows.first[here],
        row=rows.row[here],
        goal=goal[here],
    )


def _no_turn(network: RoadNetwork, rows: Rows, k: int, many: int) -> InvalidDemonstrations:
    first, second = (network.links[rows.link[i]] for i in (k, k + 1))
    got = (
        f"{rows.whose(k)}, which goes from link {first!r} to link {second!r} at sequence {rows.shown[k + 1]}, "
        "but there is no such turn"
    )
    remedy = "Correct the trip, or add the turn to the network."
    if first == second:
        remedy = "The link stands twice in a row: keep one of the rows."
    where = f"row {rows.row[k + 1]}; {many} such moves"
    return InvalidDemonstrations(ARGUMENT, "trips along turns of the network", got, where, remedy)
