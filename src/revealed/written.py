"""How columns that DuckDB holds are read, in SQL: as values (times, weights, features) or as labels (ids, states).

Columns with types (Parquet, relations) say what they hold. A CSV file has none: its cells are text, and all of them, in
all files, decide together. Numbers are read as numbers, padded with blanks or not; as labels only where they are
written as a program writes them, so that 007, 1e5, 0x1F and yes stay what was written. Beside numbers and dates the
words of `HOLES` are missing values; among text they are text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

HOLES = ("", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "None")
LARGEST = 2**63 - 1
EXACT = 2**53  # beyond it floats skip whole numbers
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?([iI]nf|INF|[iI]nfinity)"
REAL = r"-?(0|[1-9][0-9]*)(\.[0-9]+(e[+-][0-9]{2,3})?|e[+-][0-9]{2,3})|-?inf"
ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)"
CLOCK = rf"[ T]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d+)?)?{ZONE}?"
DAY = rf"\d{{4}}-\d{{2}}-\d{{2}}({CLOCK})?"
ISO = rf"\d{{4}}-\d{{2}}(-\d{{2}}({CLOCK})?)?"
TRUTH = "True", "False", "true", "false", "TRUE", "FALSE"
NAIVE = ("date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns")
ZONED = "timestamp with time zone"


@dataclass(frozen=True)
class Reading:
    """Two expressions over the columns of a relation: what a column holds, and what it is as a label."""

    value: str
    label: str


def quoted(name: str) -> str:
    """The name of a column in SQL, which takes no notice of case: names with capitals carry a mark that tells them from
    others, and `unmarked` takes it away."""
    marked = (
        f"{name}{_MARK}{name.encode(errors='surrogatepass').hex()}" if name != name.lower() or _MARK in name else name
    )
    return '"' + marked.replace('"', '""') + '"'


_MARK = "\x1e"


def unmarked(name: str) -> str:
    """The name of a column that was `quoted` in SQL."""
    return name.rpartition(_MARK)[0] if _MARK in name else name


def sql_text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def number_last(x: str) -> str:
    """How texts are ordered so that one that is no number comes first, and a word for a missing value behind it."""
    hole = f"trim({x}) IN ({', '.join(map(sql_text, HOLES))})"
    return f"CASE WHEN regexp_full_match(trim({x}), {sql_text(NUMBER)}) THEN 2 WHEN {hole} THEN 1 ELSE 0 END"


# -- columns with types -----------------------------------------------------------------------------------------------


def typed_reading(relation: Any, name: str, kind: Any) -> Reading:
    """Of a column that has a type."""
    x, text = quoted(name), f"CAST({quoted(name)} AS VARCHAR)"
    if kind.id == "varchar":
        return Reading(x, f"nullif({x}, '')")
    if kind.id == "boolean":
        return Reading(x, f"CASE WHEN {x} THEN 'True' WHEN NOT {x} THEN 'False' END")
    if kind.id in (*NAIVE, ZONED):
        return _dates(relation, x, kind.id == ZONED)
    if kind.id in ("enum", "uuid", "time"):
        return Reading(text, text)
    if kind.id in ("hugeint", "uhugeint", "ubigint") or (kind.id == "decimal" and dict(kind.children)["scale"] == 0):
        large = rows_in(relation.aggregate(f"max({x}) > {LARGEST} OR min({x}) < {-LARGEST}"))[0][0]
        whole = f"CAST({x} AS BIGINT)"
        return Reading(f"CAST({x} AS DOUBLE)", text) if large else Reading(whole, whole)
    x = f"CAST({x} AS DOUBLE)" if kind.id in ("decimal", "float") else x
    return Reading(*[without_nan(x) if kind.id in ("double", "float") else x] * 2)


def without_nan(x: str) -> str:
    """NaN as missing. DuckDB takes the smallest and largest number that a Parquet file notes for bounds of NaN as well,
    and so finds none where it is asked for them (`isnan`) or for what is beyond; `isfinite` it asks of every row."""
    return f"CASE WHEN isfinite({x}) OR isinf({x}) THEN {x} END"


@contextmanager
def interruptible() -> Iterator[None]:
    """DuckDB answers Ctrl-C with an error of its own."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ == "InterruptException" or (type(error) is RuntimeError and "interrupt" in str(error)):
            raise KeyboardInterrupt from None
        raise


def rows_in(relation: Any) -> list[Any]:
    """The rows of a relation of DuckDB, or of an executed query."""
    with interruptible():
        return relation.fetchall()


def _dates(relation: Any, x: str, zoned: bool) -> Reading:
    """Times with a zone are those of UTC. As labels they are text, with no more digits than the column needs."""
    at = f"({x} AT TIME ZONE 'UTC')" if zoned else f"CAST({x} AS TIMESTAMP)"
    tests = f"bool_or({at} <> date_trunc('day', {at})), bool_or({at} <> date_trunc('second', {at}))"
    hours, fractions = rows_in(relation.aggregate(tests))[0]
    form = "%Y-%m-%d" + (" %H:%M:%S" if hours or zoned else "") + (".%f" if fractions else "")
    return Reading(at, f"strftime({at}, '{form}')" + (" || '+00:00'" if zoned else ""))


# -- columns of text without types ------------------------------------------------------------------------------------


def text_readings(relation: Any, names: Sequence[str]) -> dict[str, Reading]:
    """Of the columns of a CSV file, which all of its rows decide: one pass over them, and a second over those columns
    that are neither whole numbers nor plainly text."""
    found = {name: _Cells(name, *row) for name, row in zip(names, _asked(relation, names, _FIRST), strict=True)}
    open_ = [name for name, cells in found.items() if cells.may_be_more]
    tests = dict(zip(open_, _asked(relation, open_, _SECOND), strict=True))
    return {name: cells.whole or _of_tests(name, cells, tests.get(name)) for name, cells in found.items()}


def _asked(relation: Any, names: Sequence[str], tests: Sequence[str]) -> list[tuple[Any, ...]]:
    """What the tests, aggregates over the cells b without blanks around them, say of each column."""
    if not names:
        return []
    row = rows_in(relation.aggregate(", ".join(test.format(b=_trimmed(n)) for n in names for test in tests)))[0]
    return [row[k : k + len(tests)] for k in range(0, len(row), len(tests))]


def _trimmed(name: str) -> str:
    return f"trim({quoted(name)})"


_HOLE = "{b} IN (" + ", ".join(map(sql_text, HOLES)) + ")"
_WHOLE = "CAST(TRY_CAST({b} AS BIGINT) AS VARCHAR) = {b}"  # as a program writes it
_FIRST = (
    "count({b})",
    "count(*) FILTER (" + _HOLE + ")",
    "count(*) FILTER (" + _WHOLE + ")",
    "any_value({b}) FILTER (NOT " + _HOLE + ")",
)


def _matches(pattern: str) -> str:
    return "regexp_full_match({b}, " + sql_text(pattern).replace("{", "{{").replace("}", "}}") + ")"


_SECOND = (
    "count(*) FILTER (" + _matches(NUMBER) + ")",
    "count(*) FILTER (" + _matches("[+-]?[0-9]+") + " AND TRY_CAST({b} AS BIGINT) IS NOT NULL)",
    "count(*) FILTER ((" + _WHOLE + f" AND abs(TRY_CAST({{b}} AS DOUBLE)) <= {EXACT}) OR " + _matches(REAL) + ")",
    "count(*) FILTER ({b} IN (" + ", ".join(map(sql_text, TRUTH)) + "))",
    "count(*) FILTER (" + _matches(DAY) + " AND TRY_CAST({b} AS TIMESTAMP) IS NOT NULL)",
    "count(DISTINCT length({b})) FILTER (NOT " + _HOLE + ")",
)


@dataclass(frozen=True)
class _Cells:
    """Of a column: how many cells, how many of them are holes or whole numbers, and one that is not a hole."""

    name: str
    n: int
    holes: int
    n_whole: int
    one: str | None

    @property
    def whole(self) -> Reading | None:
        if not self.n_whole or self.n_whole + self.holes < self.n:
            return None
        return Reading(*[f"TRY_CAST({_trimmed(self.name)} AS BIGINT)"] * 2)

    @property
    def may_be_more(self) -> bool:
        return self.whole is None and self.one is not None and self.one[0] in "+-.0123456789iItTfF"


def _of_tests(name: str, cells: _Cells, tests: tuple[Any, ...] | None) -> Reading:
    x, b = quoted(name), _trimmed(name)
    if tests is None:
        return Reading(x, x)
    numbers, counts, reals, truths, days, lengths = (int(n) + cells.holes * (k < 5) for k, n in enumerate(tests))
    there, number = (
        f"CASE WHEN NOT {_HOLE.format(b=b)} THEN {cell} END" if cells.holes else cell
        for cell in (x, f"TRY_CAST({b} AS DOUBLE)")
    )
    label = number if reals == cells.n else there
    if counts == cells.n:
        return Reading(f"TRY_CAST({b} AS BIGINT)", label)
    if numbers == cells.n:
        return Reading(number, label)
    if truths == cells.n:
        return Reading(f"CASE lower({b}) WHEN 'true' THEN true WHEN 'false' THEN false END", there)
    if days == cells.n and lengths == 1:
        zoned = f"regexp_matches({b}, {sql_text(':.*' + ZONE + '$')})"
        at = f"TRY_CAST({b} AS TIMESTAMPTZ) AT TIME ZONE 'UTC'"
        return Reading(f"CASE WHEN {zoned} THEN {at} ELSE TRY_CAST({b} AS TIMESTAMP) END", there)
    return Reading(x, x)
