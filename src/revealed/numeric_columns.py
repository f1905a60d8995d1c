"""A column of numbers, in memory or in files: its range, its order statistics, and the first value that is wrong.

Both kinds answer alike, to the last bit. Where DuckDB holds the column its rows stay there: order statistics are found
by counting between splitters from a sample, and only the values between two of them are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from revealed.checks import Floats, Ints
from revealed.errors import InvalidInput
from revealed.frames import (
    FRAME_REMEDY,
    Stored,
    as_narwhals,
    no_number,
    read_table,
    relation_of,
    require_column,
    under_names,
)
from revealed.written import number_last, quoted, rows_in, unmarked

SAMPLE, SPLITTERS = 65_536, 1_023  # a bucket between two splitters then holds about a thousandth of the rows
NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")


class NumericColumn(Protocol):
    """`n` finite numbers between `lo` and `hi`."""

    @property
    def n(self) -> int: ...
    @property
    def lo(self) -> float: ...
    @property
    def hi(self) -> float: ...
    def ranked(self, ranks: Ints) -> Floats: ...
    def distinct(self, most: int) -> Floats: ...
    def first_outside(self, lo: float, hi: float) -> tuple[int, float]: ...


def numeric_columns(frame: Any, names: Sequence[str]) -> list[NumericColumn]:
    """The named columns of a frame or file; those of files and of DuckDB's relations stay where they are."""
    stored = relation_of(frame)
    known = stored.columns if stored is not None else as_narwhals(frame).collect_schema().names()
    for name in names:
        require_column("column", name, known)
    if stored is not None:
        return [StoredColumn(stored, name) for name in names]
    table = read_table(under_names(as_narwhals(frame), names).select(*names))
    return [MemoryColumn(table.numbers(_argument(name), name)) for name in names]


@dataclass(frozen=True)
class MemoryColumn:
    """A column in memory, whose numbers are known to be finite."""

    values: Floats

    @property
    def n(self) -> int:
        return self.values.size

    @property
    def lo(self) -> float:
        return float(self.values.min())

    @property
    def hi(self) -> float:
        return float(self.values.max())

    def ranked(self, ranks: Ints) -> Floats:
        """The values of these ranks, from 0 in increasing order."""
        return np.sort(self.values)[ranks]

    def distinct(self, most: int) -> Floats:
        """The smallest of its different values in increasing order, `most` of them if there are more."""
        return np.unique(self.values)[:most]

    def first_outside(self, lo: float, hi: float) -> tuple[int, float]:
        """Row and value of the first number below `lo` or above `hi`; there must be one."""
        row = int(np.flatnonzero((self.values < lo) | (self.values > hi))[0])
        return row, float(self.values[row])


class StoredColumn:
    """A column of a DuckDB relation; only summaries of it enter memory."""

    def __init__(self, stored: Stored, name: str) -> None:
        self._stored, relation = stored, stored.read([name], keep=True)
        kind = str(relation.types[list(map(unmarked, relation.columns)).index(name)])
        self._name, self._relation = name, relation.project(f"{sql_number(name)} AS v")
        if not kind.removeprefix("U").startswith(NUMERIC) or kind.endswith("]"):
            self._refuse_type(relation, kind)
        self._require_finite()

    @cached_property
    def _summary(self) -> tuple[int, int, int, float, float]:
        """Rows, missing ones, infinite ones, smallest, largest."""
        missing, infinite = "count(*) FILTER (v IS NULL)", "count(*) FILTER (isinf(v))"
        return self._rows(self._relation.aggregate(f"count(*), {missing}, {infinite}, min(v), max(v)"))[0]

    @property
    def n(self) -> int:
        return self._summary[0]

    @property
    def lo(self) -> float:
        return self._summary[3]

    @property
    def hi(self) -> float:
        return self._summary[4]

    def ranked(self, ranks: Ints) -> Floats:
        """The values of these ranks, from 0 in increasing order."""
        splitters = self._splitters()
        counts = self._counts(splitters)
        ends = np.cumsum(counts)
        held = np.unique(np.searchsorted(ends, ranks, side="right"))  # the buckets that hold them
        values, times = self._values_in(splitters, held)
        bucket = np.searchsorted(splitters, values, side="left")
        left_out = (ends - counts)[held] - (np.cumsum(counts[held]) - counts[held])  # rows below that were not fetched
        last = np.cumsum(times) + left_out[np.searchsorted(held, bucket)]
        return values[np.searchsorted(last, ranks, side="right")]

    def distinct(self, most: int) -> Floats:
        """The smallest of its different values in increasing order, `most` of them if there are more."""
        return self._stored.fetch(self._relation.aggregate("v", "v").order("v").limit(most))["v"]

    def first_outside(self, lo: float, hi: float) -> tuple[int, float]:
        """Row and value of the first number below `lo` or above `hi`; there must be one."""
        return self._first(f"v < {sql_float(lo)} OR v > {sql_float(hi)}")

    def _splitters(self) -> Floats:
        """Values at about equal distances in rank, from a sample."""
        at = (np.arange(1, SPLITTERS + 1) / (SPLITTERS + 1)).tolist()
        found = self._rows(self._relation.aggregate(f"reservoir_quantile(v, {at}, {SAMPLE}) AS q"))[0][0]
        return np.unique(np.asarray(found, dtype=np.float64))

    def _counts(self, splitters: Floats) -> Ints:
        """How many values lie in each bucket: up to the first splitter, above it up to the second, …, above all."""
        upper = f"[{', '.join(map(sql_float, splitters))}]"
        counted = self._relation.aggregate(f"histogram(v, {upper}) AS h").project("map_keys(h), map_values(h)")
        keys, times = self._rows(counted)[0]
        by_key = dict(zip(keys, times, strict=True))
        return np.array([by_key.get(key, 0) for key in [*splitters.tolist(), np.inf]], dtype=np.intp)

    def _values_in(self, splitters: Floats, buckets: Ints) -> tuple[Floats, Ints]:
        """The different values in these buckets, sorted, and how often each occurs."""
        bounds = np.array([-np.inf, *splitters.tolist(), np.inf])
        ends = np.setxor1d(bounds[buckets], bounds[buckets + 1])  # neighbours make one interval
        inside = f"({sql_count('v', ends, '>')}) % 2 = 1"
        found = self._stored.fetch(self._relation.filter(inside).aggregate("v, count(*) AS times", "v"))
        order = np.argsort(found["v"])
        return found["v"][order], found["times"][order].astype(np.intp)

    def _require_finite(self) -> None:
        n, missing, infinite = self._summary[:3]
        argument = _argument(self._name)
        if n == 0:
            raise InvalidInput("frame", "at least one row", "no rows")
        if missing:
            row, _ = self._first("v IS NULL")
            raise InvalidInput(argument, "no missing values", f"{missing} missing", f"row {row}", FRAME_REMEDY)
        if infinite:
            row, value = self._first("isinf(v)")
            raise InvalidInput(argument, "finite numbers", value, f"row {row}")

    def _refuse_type(self, relation: Any, kind: str) -> None:
        """Not numbers. Say what came, by a first value where there is one."""
        cells = relation.project(f"row_number() OVER () - 1 AS r, {quoted(self._name)} AS v").filter("v IS NOT NULL")
        first = self._rows(cells.order(f"{number_last('v')}, r" if kind == "VARCHAR" else "r").limit(1))
        argument = _argument(self._name)
        if first and kind == "VARCHAR":
            raise no_number(argument, None, np.array([first[0][1]]), InvalidInput, lambda _: f"row {first[0][0]}")
        what = "dates" if kind.startswith(("TIMESTAMP", "DATE")) else kind
        got = f"{what} such as {first[0][1]!s}" if first else "missing values only"
        raise InvalidInput(argument, "numbers", got, f"row {first[0][0]}" if first else None)

    def _first(self, wrong: str) -> tuple[int, float]:
        numbered = self._relation.project("row_number() OVER () - 1 AS place, v").filter(wrong)
        return self._rows(numbered.aggregate("min(place), min_by(v, place)"))[0]

    def _rows(self, relation: Any) -> list[Any]:
        with self._stored.told():
            return rows_in(relation)


def sql_number(name: str) -> str:
    """A column as floating-point numbers, as they are in memory."""
    return f"CAST({quoted(name)} AS DOUBLE)"


def sql_float(value: float) -> str:
    """A number to the last bit; a bare 0.1 would be a decimal."""
    return f"'{float(value)!r}'::DOUBLE"


def sql_count(value: str, bounds: Floats, sign: str = ">=", low: int = 0) -> str:
    """How many of the increasing `bounds` the value is at least (">=") or above (">"), plus `low`.

    It is a tree of comparisons, each row passing log₂ of them.
    """
    if bounds.size == 0:
        return str(low)
    middle = bounds.size // 2
    above = sql_count(value, bounds[middle + 1 :], sign, low + middle + 1)
    below = sql_count(value, bounds[:middle], sign, low)
    return f"CASE WHEN {value} {sign} {sql_float(bounds[middle])} THEN {above} ELSE {below} END"


def _argument(name: str) -> str:
    return f"column {name!r}"
