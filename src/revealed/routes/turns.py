"""Turns: which link may follow which, and what a turn is like.

Turns come from a table, or they are all pairs of links that meet at a node. They are kept in the order of the link
that is left and then of the link that is entered; the place among the turns of one link is the action.

With x to the east and y to the north, the angle of a turn is counted to the left: from the straight line along the
link that is left to the straight line along the link that is entered, 0° being straight on and 180° back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revealed.checks import Bools, Floats, Ints, require_floats
from revealed.errors import InvalidInput
from revealed.frames import read_table
from revealed.labels import how_many, near, places_by_text, sorted_labels
from revealed.routes.link_tables import Columns, Ids, Links, Nodes, as_names, read_attributes, read_ids, require_roles
from revealed.voices import arg, shown

MOST_TURNS = 10**8  # beyond this a column of nodes was hardly one


@dataclass(frozen=True)
class Turns:
    """Pairs of links (E,), in order, with the attributes of the pairs."""

    source: Ints
    target: Ints
    values: dict[str, Floats] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def some(self, kept: Bools | Ints) -> Turns:
        values = {name: column[kept] for name, column in self.values.items()}
        return Turns(self.source[kept], self.target[kept], values, self.left_out)


def turns_that_meet(nodes: Nodes) -> Turns:
    """Every pair of links of which the second starts where the first ends. A loop does not follow itself."""
    out = np.argsort(nodes.start, kind="stable")  # the links, gathered by the node they leave
    n_out = np.bincount(nodes.start, minlength=len(nodes.labels))
    begin = np.cumsum(n_out) - n_out
    width = n_out[nodes.end]
    if width.sum() > MOST_TURNS:
        hub = int(np.argmax(n_out * np.bincount(nodes.end, minlength=n_out.size)))
        got = f"{int(width.sum()):,} turns, of which most pass node {nodes.labels[hub]!r}"
        raise InvalidInput("links", f"links with at most {MOST_TURNS:,} turns", got, remedy=f"Pass {arg('turns')}.")
    source = np.repeat(np.arange(width.size), width)
    offset = np.arange(source.size) - np.repeat(np.cumsum(width) - width, width)
    target = out[begin[nodes.end[source]] + offset]
    return Turns(source, target).some(source != target)


def read_turns(
    frame: Any, turn_from: Columns, turn_to: Columns, links: Links | None, attributes: Sequence[str] | None
) -> tuple[Turns, tuple[Any, ...]]:
    """The turns of a table, and the labels of the links: those of `links`, or without them the table's own, sorted."""
    table = read_table(frame, "turns")
    require_roles(table, {"turn_from": turn_from, "turn_to": turn_to})
    ids = read_ids(table, "turn_from", turn_from), read_ids(table, "turn_to", turn_to)
    labels = sorted_labels(label for part in ids for label in part.labels) if links is None else links.labels
    source, target = _coded(ids, labels)
    words = _Words(ids)
    keys = {*as_names(turn_from), *as_names(turn_to)}
    values, left_out = read_attributes(table, "turns", keys, attributes, words.turn)
    _require_sense(source, target, words)
    if links is not None and links.nodes is not None:
        _require_meeting(source, target, links.nodes, words)
    order = np.lexsort((target, source))
    _require_once(source, target, order, words)
    return Turns(source, target, values, left_out).some(order), labels


def join_links(
    links: Links, frame: Any, turn_from: Columns, turn_to: Columns, u_turns: bool, attributes: Sequence[str] | None
) -> Turns:
    """The turns of a table or, where `frame` is None, all that there can be between links with known nodes."""
    nodes = links.nodes
    if frame is not None:
        turns, _ = read_turns(frame, turn_from, turn_to, links, attributes)
    elif nodes is not None:
        turns = turns_that_meet(nodes)
    else:
        raise InvalidInput.conflict("turns", "is required where nodes are not known")
    return turns if u_turns or nodes is None else without_u_turns(turns, nodes)


@dataclass(frozen=True)
class _Words:
    """How the turn of a row is called in complaints."""

    ids: tuple[Ids, Ids]

    def turn(self, row: int) -> str:
        first, second = (ids.labels[ids.code[row]] for ids in self.ids)
        return f"the turn from link {first!r} to link {second!r}"


def _coded(ids: tuple[Ids, Ids], labels: tuple[Any, ...]) -> tuple[Ints, Ints]:
    place = places_by_text(labels)
    source, target = (part.places(place) for part in ids)
    for part, index in zip(ids, (source, target)):
        lost = np.flatnonzero(index < 0)
        if lost.size:
            label = part.labels[part.code[lost[0]]]
            remedy = near(label, labels) or "Add it to the links, or drop the turn."
            got = f"a turn with link {label!r}"
            raise InvalidInput("turns", "links that are in the table of links", got, f"row {lost[0]}", remedy)
    return source, target


def _require_sense(source: Ints, target: Ints, words: _Words) -> None:
    same = np.flatnonzero(source == target)
    if same.size:
        remedy = "Drop it; model a road that loops back onto itself as two links."
        got = words.turn(int(same[0]))
        raise InvalidInput("turns", "turns between different links", got, f"row {same[0]}", remedy)


def _require_once(source: Ints, target: Ints, order: Ints, words: _Words) -> None:
    again = np.flatnonzero((np.diff(source[order]) == 0) & (np.diff(target[order]) == 0))
    if again.size:
        k = again[np.argmin(order[again + 1])]
        first, second = int(order[k]), int(order[k + 1])
        got = f"{words.turn(first)} in rows {first} and {second}"
        raise InvalidInput("turns", "one row per turn", got, f"row {second}", "Keep one of them.")


def _require_meeting(source: Ints, target: Ints, nodes: Nodes, words: _Words) -> None:
    apart = np.flatnonzero(nodes.end[source] != nodes.start[target])
    if apart.size:
        row = int(apart[0])
        end, start = nodes.labels[nodes.end[source[row]]], nodes.labels[nodes.start[target[row]]]
        got = f"{words.turn(row)}, where the first ends at node {end!r} and the second starts at node {start!r}"
        where = f"row {row}; {how_many(apart.size, 'such turn')}"
        raise InvalidInput("turns", "turns between links that meet", got, where, "Are from and to swapped?")


# -- what a turn is like ----------------------------------------------------------------------------------------------


def is_u_turn(turns: Turns, nodes: Nodes) -> Bools:
    """(E,): whether the turn leads back to the node that the link came from; never out of a loop."""
    start, end = nodes.start[turns.source], nodes.end[turns.source]
    return (nodes.end[turns.target] == start) & (start != end)


def without_u_turns(turns: Turns, nodes: Nodes) -> Turns:
    """The turns but for those back, which stay where there is no other way out."""
    back = is_u_turn(turns, nodes)
    ways = np.bincount(turns.source[~back], minlength=nodes.start.size)
    return turns.some(~back | (ways[turns.source] == 0))


def as_limits(left_turn: Any) -> tuple[float, float]:
    """The angles between which a turn counts as one to the left."""
    expected = "two angles in degrees, 0 < least < most <= 180"
    limits = require_floats("left_turn", left_turn, expected)
    if limits.shape != (2,) or not 0.0 < limits[0] < limits[1] <= 180.0:
        raise InvalidInput("left_turn", expected, shown(left_turn))
    return float(limits[0]), float(limits[1])


def turn_angles(turns: Turns, coordinates: Floats) -> Floats:
    """(E,) degrees to the left, above −180 up to 180; 0 where a link, such as a loop, has no direction."""
    heading = coordinates[:, 1] - coordinates[:, 0]
    (ax, ay), (bx, by) = heading[turns.source].T, heading[turns.target].T
    across = ax * by - ay * bx + 0.0  # not −0, which would make a way back −180°
    return np.degrees(np.arctan2(across, ax * bx + ay * by))


def lengths(coordinates: Floats) -> Floats:
    """(S,) the straight distance between the two ends of each link, in the unit of the coordinates."""
    return np.hypot(*(coordinates[:, 1] - coordinates[:, 0]).T)


def with_built_ins(links: Links, turns: Turns, left_turn: Any) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Attributes of links and of turns, with those that every network has unless a table gave them."""
    least, most = as_limits(left_turn)
    per_link, computed = dict(links.values), {"constant": np.ones(turns.source.size)}
    if links.nodes is not None:
        computed["u_turn"] = is_u_turn(turns, links.nodes).astype(np.float64)
    if links.coordinates is not None:
        angle = turn_angles(turns, links.coordinates)
        computed["left_turn"] = ((angle >= least) & (angle <= most)).astype(np.float64)
        if "length" not in turns.values:
            per_link.setdefault("length", lengths(links.coordinates))
    own = {name: column for name, column in computed.items() if name not in links.values}
    return per_link, own | turns.values
