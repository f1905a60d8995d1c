"""Tables of links: what each is called, which nodes it joins, its attributes, and where it lies.

Ids of links and nodes are whole numbers, text, or tuples (of several columns), and matched by their text. Every column
of numbers that plays no other part is an attribute; columns of anything else are left out and noted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revealed.checks import Floats, Ints, as_list
from revealed.errors import InvalidInput
from revealed.frames import FRAME_REMEDY, Column, Table, as_plain, kind_of, missing_in, read_table, require_column
from revealed.gates import is_hashable
from revealed.labels import how_many, near, plain, spell
from revealed.voices import Written, arg, either, shown

Columns = str | Sequence[str]
CORNERS = ("x_from", "y_from", "x_to", "y_to")


@dataclass(frozen=True)
class Ids:
    """A column of ids: the different `labels`, and for each row which of them it holds."""

    code: Ints
    labels: tuple[Any, ...]

    def places(self, place: dict[str, int]) -> Ints:
        """For each row the place of its label among known ones; −1 where it is not known."""
        found = np.array([place.get(spell(label), -1) for label in self.labels], dtype=np.intp)
        return found[self.code]


@dataclass(frozen=True)
class Nodes:
    """Where each link starts and ends, as indices into the nodes' labels."""

    labels: tuple[Any, ...]
    start: Ints
    end: Ints


@dataclass(frozen=True)
class Links:
    """What is known of the links before they are joined by turns; `coordinates` (S, 2, 2) are their two ends,
    `left_out` the columns that are not attributes, each with the reason."""

    labels: tuple[Any, ...]
    values: dict[str, Floats]
    nodes: Nodes | None = None
    coordinates: Floats | None = None
    left_out: dict[str, str] = field(default_factory=dict)


def read_links(
    frame: Any,
    link: Columns,
    ends: tuple[Columns, Columns] | None,
    corners: tuple[str | None, ...],
    attributes: Sequence[str] | None,
) -> Links:
    """The table of links; `ends` names its columns of nodes, `corners` those of coordinates."""
    table = read_table(frame, "links")
    require_roles(table, {"link": link} | ({} if ends is None else dict(zip(ENDS, ends, strict=True))))
    labels = read_link_labels(table, link)
    nodes = None if ends is None else join_nodes(*(read_ids(table, role, name) for role, name in zip(ENDS, ends)))
    corner = _corner_columns(table, corners)
    keys = {name for part in (link, *(ends or ())) for name in as_names(part)} | set(corner)
    values, left_out = read_attributes(table, "links", keys, attributes, lambda row: f"link {labels[row]!r}")
    placed = np.column_stack([table.numbers(c, c) for c in corner]).reshape(-1, 2, 2) if corner else None
    return Links(labels, values, nodes, placed, left_out)


ENDS = ("start", "end")


def read_link_labels(table: Table, link: Columns) -> tuple[Any, ...]:
    """One label per row, all different."""
    ids = read_ids(table, "link", link)
    _rows_by_text(ids, "link", "Keep one of them; parallel links between the same nodes need distinct ids.")
    return tuple(ids.labels[k] for k in ids.code)


def _rows_by_text(ids: Ids, what: str, remedy: str) -> dict[str, int]:
    """The row of each id by its text; none stands twice."""
    row_of: dict[str, int] = {}
    for row, code in enumerate(ids.code):
        label = ids.labels[code]
        first = row_of.setdefault(spell(label), row)
        if first != row:
            got = f"{what} {label!r} in rows {first} and {row}"
            raise InvalidInput(f"{what}s", f"one row per {what}", got, f"row {row}", remedy)
    return row_of


def join_nodes(start: Ids, end: Ids) -> Nodes:
    """The nodes of both columns under one numbering, in the order in which they are met."""
    place: dict[str, int] = {}
    labels = []
    for label in (*start.labels, *end.labels):
        if place.setdefault(spell(label), len(labels)) == len(labels):
            labels.append(label)
    return Nodes(tuple(labels), start.places(place), end.places(place))


def _corner_columns(table: Table, corners: tuple[str | None, ...]) -> tuple[str, ...]:
    """The four columns of coordinates: those named, or those of the usual names where all four are there."""
    if all(name is None for name in corners):
        return CORNERS if set(CORNERS) <= set(table.names) else ()
    for argument, name in zip(CORNERS, corners):
        require_column(argument, name, table.names)
    return tuple(str(name) for name in corners)


def read_places(frame: Any, node: Columns, x: str, y: str, nodes: Nodes) -> Floats:
    """(S, 2, 2): both ends of each link, from a table of nodes."""
    table = read_table(frame, "nodes")
    require_roles(table, {"node": node, "x": x, "y": y})
    ids = read_ids(table, "node", node)
    row_of = _rows_by_text(ids, "node", "Keep one of them.")
    place = np.array([row_of.get(spell(label), -1) for label in nodes.labels])
    lost = np.flatnonzero(place < 0)
    if lost.size:
        label = nodes.labels[lost[0]]
        remedy = near(label, ids.labels) or "Add a row for it."
        raise InvalidInput("nodes", "a row for every node of the links", f"{lost.size} without", f"{label!r}", remedy)
    return ends_of(np.column_stack([table.numbers("x", x), table.numbers("y", y)])[place], nodes)


def ends_of(points: Floats, nodes: Nodes) -> Floats:
    """(S, 2, 2) from the points (N, 2) of the nodes."""
    return np.stack([points[nodes.start], points[nodes.end]], axis=1)


# -- ids --------------------------------------------------------------------------------------------------------------


def as_names(names: Any) -> list[Any]:
    """The columns that are meant: one, or several."""
    listed = [names] if isinstance(names, str) else as_list(names) or [names]
    if not all(map(is_hashable, listed)):
        raise InvalidInput("columns", "names of columns", shown(names))
    return listed


def require_roles(table: Table, roles: dict[str, Columns]) -> None:
    """Columns for these arguments are there; else one remedy says how to name all that are not, with what looks like
    them."""
    names, known = {role: as_names(columns) for role, columns in roles.items()}, set(table.names)
    lost = [role for role, columns in names.items() if not set(columns) <= known]
    if not lost:
        return
    name = next(name for name in names[lost[0]] if name not in known)
    taken = {column for role, columns in names.items() if role not in lost for column in columns}
    said: list[str] = []
    for role in lost:
        guess = _looks_like(role, [column for column in table.names if column not in taken])
        taken |= {guess}
        said.append(arg(role, Written('"…"')) if guess is None else arg(role, guess))
    remedy = f"Name the columns, as in {', '.join(said)}."
    if "node" in roles:  # which has no flags of its own
        remedy = either(remedy, f"Call the columns {', '.join(lost)}.")
    meant = near(name, table.names) if len(lost) == 1 and isinstance(name, str) else None
    require_column(lost[0], name, table.names, meant or remedy)


_ALSO = {  # how columns are often called
    "link": ("link_id", "id", "edge", "edge_id", "osmid", "arc"),
    "start": ("a", "u", "from", "from_node", "from_node_id", "source", "start", "start_node", "init_node", "tail"),
    "end": ("b", "v", "to", "to_node", "to_node_id", "target", "end", "end_node", "term_node", "head"),
    "turn_from": ("from", "a", "u", "from_id", "from_edge", "in_link"),
    "turn_to": ("to", "b", "v", "to_id", "to_edge", "out_link"),
    "trip": ("trip_id", "tripid", "id", "path", "path_id", "route"),
    "sequence": ("seq", "step", "order", "position", "pos", "index", "time", "t"),
    "node": ("node_id", "id", "osmid"),
    "x": ("lon", "lng", "longitude", "easting", "x_coord"),
    "y": ("lat", "latitude", "northing", "y_coord"),
}


def _looks_like(role: str, free: Sequence[Any]) -> str | None:
    by_text = {spell(name).casefold(): spell(name) for name in free}
    return next((by_text[word] for word in (role, *_ALSO[role]) if word in by_text), None)


def read_ids(table: Table, argument: str, names: Columns, ordered: bool = False) -> Ids:
    """The ids in a column, or tuples of ids where several are named; labels come `ordered`, or as they are met."""
    import pandas as pd

    if isinstance(names, str) or as_list(names) is None:
        code, labels = pd.factorize(_id_column(table, argument, names), sort=ordered)
        return Ids(np.asarray(code, dtype=np.intp), tuple(plain(label) for label in labels))
    names = as_list(names) or []
    if not all(map(is_hashable, names)):
        raise InvalidInput(argument, "the name of a column, or a list of names", shown(names))
    parts = [read_ids(table, argument, name, ordered) for name in names]
    if not parts:
        raise InvalidInput(argument, "the name of a column, or a list of names", shown(names))
    joint = np.zeros(table.n_rows, dtype=np.intp)
    for part in parts:  # renumbered after each, so that the numbers stay below rows times labels
        numbered = joint * len(part.labels) + part.code
        joint = np.asarray(pd.factorize(numbered, sort=ordered)[0], dtype=np.intp)
    first = np.unique(joint, return_index=True)[1]
    return Ids(joint, tuple(tuple(part.labels[part.code[row]] for part in parts) for row in first))


def _id_column(table: Table, argument: str, name: Any) -> Column:
    """Whole numbers, text or tuples; whole numbers that came as floats are whole numbers again."""
    raw = table.raw(argument, name)
    if raw.dtype == object and raw.size and all(isinstance(value, tuple) for value in raw):
        return raw
    values = raw if raw.dtype.kind == "b" else table.label_column(argument, name)
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (values == np.rint(values))
        if not whole.all():
            row = int(np.flatnonzero(~whole)[0])
            raise table.error(argument, f"whole numbers or text in column {name!r}", values[row], f"row {row}")
        return values.astype(np.int64)
    if values.dtype.kind not in "iuUS":
        raise table.error(argument, f"whole numbers or text in column {name!r}", kind_of(values), "row 0")
    return values


# -- attributes -------------------------------------------------------------------------------------------------------


def read_attributes(
    table: Table, argument: str, keys: set[Any], wanted: Sequence[str] | None, owner: Callable[[int], str]
) -> tuple[dict[str, Floats], dict[str, str]]:
    """The columns of numbers beside the `keys`, or those wanted, and why the rest is left out; `owner` names a row."""
    chosen = None if wanted is None else set(as_names(wanted))  # by their hash: pd.NA has no equal
    names = [name for name in table.names if name not in keys and (chosen is None or name in chosen)]
    values: dict[str, Floats] = {}
    other: dict[str, str] = {}
    for name in names:
        numbers = _numbers(table.columns[name])
        if numbers is not None:
            values[name] = _finite(argument, name, numbers, owner)
        elif wanted is None:
            other[name] = f"column {name!r} of the {argument} {_held(table.columns[name])}"
        else:
            got = f"column {name!r} of the {argument}, which {_held(table.columns[name])}"
            raise InvalidInput("attributes", "columns of numbers", got)
    return values, other


def notes_on(left_out: dict[str, str], argument: str) -> tuple[str, ...]:
    """A note on the columns of a table that are not attributes."""
    if not left_out:
        return ()
    what = (
        f"columns {', '.join(map(repr, left_out))} hold"
        if len(left_out) > 1
        else f"column {next(iter(left_out))!r} holds"
    )
    return (f"{what} values that are not numbers: not used as attributes of the {argument}.",)


def _held(raw: Column) -> str:
    """The first value that is not a number, and where it stands."""
    known = np.flatnonzero(~missing_in(raw))
    if not known.size:
        return "holds no value"
    row = next((row for row in known if not _reads_as_number(raw[row])), known[0])
    return f"holds {plain(raw[row])!r} in row {row}"


def _reads_as_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _numbers(raw: Column) -> Floats | None:
    """The column as floats with NaN where a value is missing; None where it does not hold numbers."""
    missing = missing_in(raw)
    if missing.all():
        return raw.astype(np.float64) if raw.dtype.kind == "f" else None
    try:
        known = as_plain("column", raw[~missing])
    except InvalidInput:  # of several kinds, or of a kind of its own such as shapes
        return None
    if known.dtype.kind not in "iufb":
        return None
    numbers = np.full(raw.size, np.nan)
    numbers[~missing] = known
    return numbers


def _finite(argument: str, name: str, values: Floats, owner: Callable[[int], str]) -> Floats:
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row = int(bad[0])
        alike = int((np.isnan(values[bad]) == np.isnan(values[row])).sum())
        got = how_many(alike, f"{'missing' if np.isnan(values[row]) else 'infinite'} value")
        keep = either("name the columns that matter: attributes=[...]", "take the column out of the file")
        remedy = f"{FRAME_REMEDY} Or {keep}."
        raise InvalidInput(argument, f"a finite number in column {name!r} of every row", got, owner(row), remedy)
    return values
