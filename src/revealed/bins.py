"""Continuous columns → states: intervals, their edges remembered, their centres as features.

A bin holds its lower edge and not its upper one, but for the last, which holds both. Several columns make a grid whose
states are numbered row by row: the last column's bins follow each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import (
    Floats,
    Ints,
    as_list,
    frozen,
    is_index,
    is_mapping,
    require_count,
    require_floats,
    require_option,
)
from revealed.errors import InvalidInput, InvalidOption
from revealed.frames import no_number, require_column
from revealed.gates import require_instance, require_list, require_memory, require_text
from revealed.labels import find, how_many
from revealed.numeric_columns import NumericColumn, numeric_columns, sql_count, sql_float, sql_number
from revealed.voices import either, named, shown
from revealed.written import NUMBER, quoted, sql_text, without_nan

if TYPE_CHECKING:
    import pandas as pd

MOST_STATES = 2**31 - 2
FEW_VALUES = 20  # of whole numbers, up to which each is worth a bin of its own
HOW = ("uniform", "quantile")
COVER = "Give edges that cover it, or clip the values first."


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Bins:
    """How continuous columns become states. `rv.discretize` makes one; `from_frame(state=bins)` uses it.

    `columns` names the columns; `edges` has one array per column, of one more edge than the column has bins; `how`
    tells for each column where its edges come from ("uniform", "quantile" or "given"); `notes` says in sentences where
    the bins differ from what was requested.
    """

    columns: tuple[str, ...]
    edges: tuple[Floats, ...]
    how: tuple[str, ...]
    notes: tuple[str, ...]

    def __init__(
        self, columns: Sequence[str], edges: Sequence[Any], how: Sequence[str] = (), notes: Sequence[str] = ()
    ) -> None:
        names, given = _as_columns(columns), as_list(edges)
        if given is None or len(given) != len(names):
            raise InvalidInput("edges", f"{how_many(len(names), 'array')}, one per column", shown(edges))
        checked = tuple(_as_edges(name, own) for name, own in zip(names, given, strict=True))
        fields = {"columns": names, "edges": checked, "how": _as_texts("how", how) or ("given",) * len(names)}
        for name, value in (fields | {"notes": _as_texts("notes", notes)}).items():
            object.__setattr__(self, name, value)
        if self.n_states > MOST_STATES:
            raise InvalidInput("bins", f"at most {MOST_STATES} states", f"{self.n_states}", remedy="Use fewer bins.")

    @property
    def shape(self) -> tuple[int, ...]:
        """How many bins each column has."""
        return tuple(edges.size - 1 for edges in self.edges)

    @property
    def n_states(self) -> int:
        return prod(self.shape)

    @property
    def centres(self) -> list[Floats]:
        """The midpoints of each column's bins."""
        return [0.5 * edges[:-1] + 0.5 * edges[1:] for edges in self.edges]

    @property
    def features(self) -> pd.DataFrame:
        """The bins' centres, a row per state and a column per column, as `rv.LinearReward` takes them."""
        import pandas as pd

        grid = np.meshgrid(*self.centres, indexing="ij")
        return pd.DataFrame({name: axis.reshape(-1) for name, axis in zip(self.columns, grid, strict=True)})

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for every state, such as "miles [0, 5)"."""
        named = [_intervals(name, edges) for name, edges in zip(self.columns, self.edges, strict=True)]
        return tuple(", ".join(parts) for parts in product(*named))

    def code(self, *values: Any) -> Ints:
        """The state of each row, from one array of raw values per column; a value outside all bins is an error. For a
        single column, labels of bins are accepted as well."""
        if len(values) != len(self.columns):
            expected = f"{len(self.columns)} arrays of numbers, one for each of {', '.join(self.columns)}"
            raise InvalidInput("values", expected, f"{len(values)}")
        texts = as_list(values[0]) if len(values) == 1 else None
        if texts and all(isinstance(one, str) for one in texts):
            if any(re.fullmatch(NUMBER, one.strip()) for one in texts):
                name = self.columns[0]
                raise no_number(f"column {name!r}", name, np.array(texts), InvalidInput)
            return find(f"column {self.columns[0]!r}", texts, self.labels, "row")
        arrays = [_as_values(name, given) for name, given in zip(self.columns, values, strict=True)]
        if len({array.size for array in arrays}) > 1:
            raise InvalidInput("values", "arrays of equal length", f"lengths {[array.size for array in arrays]}")
        state = np.zeros(arrays[0].size, dtype=np.intp)
        for name, array, edges in zip(self.columns, arrays, self.edges, strict=True):
            _require_inside(name, array, edges)
            state = state * (edges.size - 1) + np.searchsorted(edges[1:-1], array, side="right")
        return state

    def sql(self, names: Sequence[str] | None = None) -> str:
        """The same as an expression of DuckDB over the columns of these names (plain ones: they are quoted here).

        Where `code` raises, a missing value (NULL or NaN) gives NULL and any other that is in no bin gives −1.
        """
        names = self.columns if names is None else _as_columns(names)
        if len(names) != len(self.columns):
            raise InvalidInput("names", f"{len(self.columns)} names of columns", shown(names))
        state, inside = "0", []
        for name, edges in zip(names, self.edges, strict=True):
            value = sql_number(name)
            state = f"({state}) * {edges.size - 1} + {sql_count(value, edges[1:-1])}"
            inside.append(f"{value} >= {sql_float(edges[0])} AND {value} <= {sql_float(edges[-1])}")
        missing = " OR ".join(f"({without_nan(sql_number(name))}) IS NULL" for name in names)
        return f"CASE WHEN {missing} THEN NULL WHEN {' AND '.join(inside)} THEN {state} ELSE -1 END"

    def sql_of_labels(self, name: str) -> str:
        """As `sql`, of a column that holds labels of these bins."""
        require_text("name", name, "the name of a column")
        known = ", ".join(map(sql_text, self.labels))
        return (
            f"CASE WHEN {quoted(name)} IS NOT NULL THEN coalesce(list_position([{known}], {quoted(name)}), 0) - 1 END"
        )

    def describe(self) -> dict[str, Any]:
        """All settings as lists and strings that JSON can hold."""
        return {
            "columns": list(self.columns),
            "edges": [edges.tolist() for edges in self.edges],
            "how": list(self.how),
            "notes": list(self.notes),
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Bins:
        """Bins from what `describe` returned."""
        require_instance("description", description, Mapping, "a dict from Bins.describe()")
        try:
            return cls(**{name: tuple(description[name]) for name in ("columns", "edges", "how", "notes")})
        except (KeyError, TypeError, IndexError) as error:
            expected = "a dict from Bins.describe(), with columns, edges, how and notes"
            raise InvalidInput("description", expected, shown(description)) from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bins) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash((self.columns, self.shape))

    def __repr__(self) -> str:
        each = [
            f"{name}: {edges.size - 1} {how} from {edges[0]:g} to {edges[-1]:g}"
            for name, edges, how in zip(self.columns, self.edges, self.how, strict=True)
        ]
        return f"Bins({'; '.join(each)}; {self.n_states} states)"


def discretize(
    frame: Any,
    column: str | Sequence[str],
    bins: int | Sequence[int] | None = None,
    how: str | None = None,
    edges: Any = None,
) -> Bins:
    """Bins for one or several continuous columns, to be passed as `from_frame(..., state=bins)`.

    Parameters
    ----------
    frame : any data frame, a relation of DuckDB, or the path of CSV or Parquet files; of files only summaries enter
        memory, and the edges are the same to the last bit.
    column : a column, or several, which make a grid.
    bins : how many, for all columns or for each; by default 20.
    how : "uniform" for bins of equal width (the default), "quantile" for bins with about as many rows each. Quantiles
        that coincide are merged: there are fewer bins then, and `notes` says so.
    edges : increasing bin edges, from the lower end of the first bin to the upper end of the last. For several columns
        a dict by name; columns that it leaves out are cut by `bins` and `how`.
    """
    names = _as_columns([column] if isinstance(column, str) else column, "column")
    given = _given_edges(names, edges)
    if len(given) == len(names):
        for argument, value in (("bins", bins), ("how", how)):
            if value is not None:
                raise InvalidOption.conflict(argument, f"has no effect with `{named('edges')}` of every column")
    how = "uniform" if how is None else how
    require_option("how", how, HOW)
    many = _as_numbers_of_bins(20 if bins is None else bins, names)
    found, notes = [], []
    for name, n, numbers in zip(names, many, numeric_columns(frame, names), strict=True):
        if name in given:
            found.append(_covering(name, given[name], numbers))
            continue
        found.append(_uniform(name, n, numbers) if how == "uniform" else _quantiles(name, n, numbers))
        if found[-1].size - 1 < n:
            notes.append(
                f"{name} has {found[-1].size - 1} bins instead of {n}, because some of its quantiles coincide."
            )
    return Bins(names, tuple(found), tuple("given" if name in given else how for name in names), tuple(notes))


def one_bin_each(frame: Any, column: str) -> list[int] | None:
    """Edges that give each value of a column a bin of its own; None where these are many, or not whole numbers."""
    (numbers,) = numeric_columns(frame, [column])
    values = numbers.distinct(FEW_VALUES + 1)
    if values.size > FEW_VALUES or not np.all(values == np.round(values)):
        return None
    return [*(int(value) for value in values), int(values[-1]) + 1]


def _uniform(name: str, n: int, numbers: NumericColumn) -> Floats:
    _require_range(name, numbers)
    edges = np.linspace(numbers.lo, numbers.hi, n + 1)
    if not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        between = f"numbers far enough apart for {n} bins of equal width"
        raise InvalidInput(f"column {name!r}", between, f"{numbers.lo!r} to {numbers.hi!r}", remedy=_GIVE_EDGES)
    return edges


def _quantiles(name: str, n: int, numbers: NumericColumn) -> Floats:
    """Values with k/n of the rows below them, so that without ties bins differ by one row at most."""
    _require_range(name, numbers)
    ranks = np.array([k * numbers.n // n for k in range(n)] + [numbers.n - 1], dtype=np.intp)
    return np.unique(numbers.ranked(ranks))


_EDGES = either("give edges=", "give edges, as in --bins COLUMN=edges:0,5,10")
_GIVE_EDGES = either("Give edges=.", "Give edges, as in --bins COLUMN=edges:0,5,10.")


def _require_range(name: str, numbers: NumericColumn) -> None:
    if numbers.lo == numbers.hi:
        remedy = f"A constant cannot distinguish states: leave it out, or {_EDGES}."
        raise InvalidInput(f"column {name!r}", "at least two different values", f"only {numbers.lo:g}", remedy=remedy)


def _covering(name: str, given: Any, numbers: NumericColumn) -> Floats:
    edges = _as_edges(name, given)
    if numbers.lo < edges[0] or numbers.hi > edges[-1]:
        row, value = numbers.first_outside(float(edges[0]), float(edges[-1]))
        raise _outside(name, edges, value, row)
    return edges


def _outside(name: str, edges: Floats, value: float, row: int) -> InvalidInput:
    expected = f"values from {edges[0]:.17g} to {edges[-1]:.17g}, the outer edges"
    return InvalidInput(f"column {name!r}", expected, f"{value!r}", f"row {row}", COVER)


def _require_inside(name: str, values: Floats, edges: Floats) -> None:
    bad = np.flatnonzero(~((values >= edges[0]) & (values <= edges[-1])))  # NaN is in no bin either
    if bad.size:
        raise _outside(name, edges, float(values[bad[0]]), int(bad[0]))


def _as_columns(columns: Any, argument: str = "columns") -> tuple[str, ...]:
    listed = [columns] if isinstance(columns, str) else as_list(columns)
    if not listed or not all(isinstance(name, str) for name in listed) or len(set(listed)) < len(listed):
        raise InvalidInput(argument, "distinct column names", shown(columns))
    return tuple(listed)


def _as_texts(argument: str, given: Any) -> tuple[str, ...]:
    listed = require_list(argument, given, "a list of strings")
    if not all(isinstance(one, str) for one in listed):
        raise InvalidInput(argument, "a list of strings", shown(given))
    return tuple(listed)


def _as_edges(name: str, given: Any) -> Floats:
    argument = f"edges of {name!r}"
    edges = require_floats(argument, given, "at least two numbers")
    if edges.ndim != 1 or edges.size < 2:
        raise InvalidInput(argument, "at least two numbers", shown(given))
    bad = np.flatnonzero(~np.isfinite(edges))
    if bad.size:
        raise InvalidInput(argument, "finite numbers", edges[bad[0]], f"position {bad[0]}")
    back = np.flatnonzero(np.diff(edges) <= 0)
    if back.size:
        k = int(back[0]) + 1
        raise InvalidInput(argument, "increasing numbers", f"{edges[k]:g} after {edges[k - 1]:g}", f"position {k}")
    edges += 0.0  # no minus zero, which would be written as one
    return frozen(edges)


def _as_values(name: str, given: Any) -> Floats:
    values = require_floats(f"column {name!r}", given, "an array of numbers")
    if values.ndim > 1:
        raise InvalidInput(f"column {name!r}", "an array of numbers", shown(given))
    return np.atleast_1d(values)


def _as_numbers_of_bins(bins: Any, names: tuple[str, ...]) -> list[int]:
    alone = isinstance(bins, str | bytes) or is_index(bins)
    listed = [bins] * len(names) if alone else as_list(bins)
    if listed is None or len(listed) != len(names):
        raise InvalidOption("bins", f"a whole number, or {len(names)} of them, one per column", shown(bins))
    for n in listed:
        require_count("bins", n, error=InvalidOption)
        require_memory("bins", n, 4 * int(n), InvalidOption)
    return [int(n) for n in listed]


def _given_edges(names: tuple[str, ...], edges: Any) -> dict[str, Any]:
    if edges is None:
        return {}
    if is_mapping(edges):
        for name in edges:
            require_column("edges", name, names)
        return dict(edges)
    if len(names) > 1:
        remedy = f"For example: edges={{{next(iter(names))!r}: [...]}}."
        raise InvalidInput("edges", "a dict of edges by column", shown(edges), remedy=remedy)
    return dict.fromkeys(names, edges)


def _intervals(name: str, edges: Floats) -> list[str]:
    """Names of a column's bins, with as many digits as tell the edges apart, six if they do."""
    written = ([f"{edge:.{digits}g}" for edge in edges] for digits in range(6, 18))  # 17 digits always do
    texts = next(texts for texts in written if len(set(texts)) == edges.size)
    last = edges.size - 2
    return [f"{name} [{a}, {b}{']' if k == last else ')'}" for k, (a, b) in enumerate(pairwise(texts))]
