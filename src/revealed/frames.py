"""Frames and files as tables: whatever narwhals accepts, DuckDB's relations, and paths of CSV or Parquet files.

Files are read by DuckDB, also where they end up in memory, so that the same file has the same types on every way
through this library. A path may be a glob, a folder of Parquet files, or a list of paths.
"""

from __future__ import annotations

import datetime as dt
import os
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from glob import escape, glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from revealed.checks import Floats
from revealed.errors import InvalidInput, MissingDependency
from revealed.labels import near, plain

Column = npt.NDArray[Any]
MEMORY = "1GB"  # that DuckDB may use before it works on disk
SUFFIXES = ("parquet", "csv")  # that are looked for in a folder
ACCEPTED = "a data frame or the path of a CSV or Parquet file"
FRAME_REMEDY = "Drop or fill those rows."


@dataclass(frozen=True)
class Table:
    """Named columns in memory. `error` is the class in which complaints are raised."""

    columns: dict[str, Column]
    error: type[InvalidInput] = InvalidInput

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def raw(self, argument: str, name: Any) -> Column:
        """The column as it came."""
        require_column(argument, name, self.names)
        return self.columns[name]

    def column(self, argument: str, name: str) -> Column:
        """The column without holes, of one plain type: whole numbers, other numbers, dates, truth values or text."""
        return as_plain(argument, self.raw(argument, name), self.error)

    def numbers(self, argument: str, name: str) -> Floats:
        """The column as finite numbers."""
        values = self.column(argument, name)
        if values.dtype.kind not in "iufb":
            raise self.error(argument, f"numbers in column {name!r}", f"{kind_of(values)} such as {values[0]!s}")
        values = values.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise self.error(argument, f"finite numbers in column {name!r}", values[bad[0]], f"row {bad[0]}")
        return values

    def labels(self, argument: str, names: str | Sequence[str]) -> list[Any]:
        """One label per row: a value, or a tuple where several columns are named."""
        if isinstance(names, str):
            return [plain(value) for value in self.column(argument, names)]
        return [plain(values) for values in zip(*(self.column(argument, name) for name in names), strict=True)]


def read_table(
    frame: Any,
    argument: str = "frame",
    error: type[InvalidInput] = InvalidInput,
    needed: Callable[[Sequence[str]], Sequence[str]] = list,
    as_text: Sequence[str] = (),
) -> Table:
    """A frame or file as a table in memory; `needed` picks from the names of all columns, or complains. In the columns
    `as_text` dates are labels."""
    relation = relation_of(frame, argument)
    if relation is not None:
        names = needed(relation.columns)
        chosen = relation.project(", ".join(map(quoted, dict.fromkeys(names))))
        return Table(fetch(tamed(chosen, as_text), argument), error)
    table = as_narwhals(frame, argument)
    names = list(dict.fromkeys(needed(table.collect_schema().names())))
    if hasattr(table, "collect"):
        table = table.select(*names).collect()
    return Table({name: to_numpy(table.get_column(name), name) for name in names}, error)


def to_numpy(column: Any, name: str) -> Column:
    """A column of narwhals; text with a NUL in it as objects, since NumPy's own text would lose one at the end."""
    import narwhals as nw

    try:
        texts = column.cast(nw.String) if column.dtype in (nw.String, nw.Categorical, nw.Enum) else None
        if texts is not None and texts.str.contains("\0", literal=True).any():
            return np.array(texts.to_list(), dtype=object)
        return column.to_numpy()
    except Exception as error:  # a type that NumPy lacks; every library says so in its own way
        raise InvalidInput(f"column {name!r}", "numbers, dates or text", str(column.dtype)) from error


def declared_order(frame: Any, name: Any) -> list[Any] | None:
    """The labels of a column that declares them in an order (Enum, ordered categories); None for other columns."""
    import narwhals as nw

    if is_path(frame) or not isinstance(name, str):
        return None
    relation = relation_of(frame)
    if relation is not None:
        kinds = dict(zip(relation.columns, relation.types, strict=True))
        return list(kinds[name].children[0][1]) if name in kinds and kinds[name].id == "enum" else None
    kind = as_narwhals(frame).collect_schema().get(name)
    return list(kind.categories) if isinstance(kind, nw.Enum) else None


def tamed(relation: Any, as_text: Sequence[str] = ()) -> Any:
    """The relation with plain types only, the same on every machine: zoned times in UTC, whole numbers beyond 64 bits
    and enumerations as text; dates in the columns `as_text`, whose values are labels, as text too."""
    columns = [_tamed(relation, name, kind, name in as_text) for name, kind in zip(relation.columns, relation.types)]
    return relation.project(", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns))


_DATES = dict.fromkeys(("timestamp", "timestamp with time zone"), "%Y-%m-%d %H:%M:%S") | {"date": "%Y-%m-%d"}


def _tamed(relation: Any, name: str, kind: Any, label: bool) -> tuple[str, str]:
    x, text = quoted(name), f"CAST({quoted(name)} AS VARCHAR)"
    if kind.id == "timestamp with time zone":
        x = f"({x} AT TIME ZONE 'UTC')"
    if label and kind.id in _DATES:  # a plain cast may give the text of the file, or not, as the optimiser pleases
        return name, f"strftime({x}, '{_DATES[kind.id]}')"
    if kind.id in ("enum", "time", "uuid"):
        return name, text
    if kind.id in ("hugeint", "uhugeint") or (kind.id == "decimal" and dict(kind.children)["scale"] == 0):
        large = relation.aggregate(f"max(abs({x})) > 9223372036854775807").fetchall()[0][0]
        return name, text if large else f"CAST({x} AS BIGINT)"
    return name, x


def quoted(name: str) -> str:
    """The name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def as_narwhals(frame: Any, argument: str = "frame") -> Any:
    """The frame as narwhals sees it, eager or lazy."""
    import narwhals as nw

    try:
        return nw.from_native(frame)
    except TypeError as error:
        raise InvalidInput(argument, ACCEPTED, type(frame).__name__) from error
    except ValueError as error:  # columns of one name
        raise InvalidInput(argument, "a data frame whose columns have names that differ", str(error)) from error


def is_path(frame: Any) -> bool:
    """A path, or a list of them."""
    if isinstance(frame, list | tuple) and frame:
        return all(isinstance(one, str | os.PathLike) for one in frame)
    return isinstance(frame, str | os.PathLike)


def relation_of(frame: Any, argument: str = "frame") -> Any:
    """A relation of DuckDB, of the user's own or over files; None where the frame is something else."""
    if is_path(frame):
        return _relation_over(frame, "path" if argument == "frame" else argument)
    return (
        frame if type(frame).__module__.partition(".")[0] in ("duckdb", "_duckdb") and hasattr(frame, "query") else None
    )


def _relation_over(paths: Any, argument: str) -> Any:
    duckdb = _duckdb()
    files, kind = _files(paths, argument)
    spill = Path(tempfile.gettempdir(), f"revealed-{uuid.uuid4().hex}")  # made and removed by DuckDB
    connection = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(spill)})
    connection.execute("SET enable_progress_bar = false")
    try:
        if kind == "parquet":
            return connection.read_parquet(files, union_by_name=len(files) > 1)
        return _read_csv(connection, files)
    except duckdb.Error as error:
        raise unreadable(argument, files, error) from error


def _read_csv(connection: Any, files: list[str]) -> Any:
    """All rows decide on the types. Times of day stay the text they are: nothing here reckons with them, and as labels
    they should come back as they were written."""
    options: dict[str, Any] = {"header": True, "sample_size": -1, "union_by_name": len(files) > 1}
    found = connection.read_csv(files, **options)
    hours = [name for name, kind in zip(found.columns, found.types, strict=True) if kind.id == "time"]
    return connection.read_csv(files, dtype=dict.fromkeys(hours, "VARCHAR"), **options) if hours else found


def unreadable(argument: str, files: Any, error: Exception) -> InvalidInput:
    names = ", ".join(Path(f).name for f in files[:3]) + (", …" if len(files) > 3 else "")
    lines = [line for line in str(error).splitlines() if line.strip()][:3] or [type(error).__name__]
    reason = " ".join(lines).partition("Error: ")[2] or " ".join(lines)
    remedy = next((advice for sign, advice in _REMEDIES.items() if sign in str(error)), None)
    expected = "a CSV or Parquet file that can be read"
    return InvalidInput(argument, expected, f"{names}: {reason.rstrip('.')}", remedy=remedy)


_REMEDIES = {
    "utf-8": "Save it as UTF-8 (Excel: “CSV UTF-8”).",
    "sniffing": "Does every row have as many cells as the header?",
}


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependency("reading files needs DuckDB: pip install duckdb") from error
    return duckdb


def _files(paths: Any, argument: str) -> tuple[list[str], str]:
    """The files meant, in order, and their kind."""
    given = list(paths) if isinstance(paths, list | tuple) else [paths]
    found = [_expand(str(path)) for path in given]
    for path, some in zip(given, found, strict=True):
        if not some:
            raise InvalidInput(argument, "a CSV or Parquet file that exists", str(path))
    files = [file for some in found for file in some]
    for file in files:
        if os.path.getsize(file) == 0:
            raise unreadable(argument, [file], ValueError("it is empty"))
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        odd = next(file for file in files if _kind(file) != _kind(files[0]))
        raise InvalidInput(argument, "files of one kind", f"{Path(files[0]).name} and {Path(odd).name}")
    return files, kinds.pop()


def _expand(path: str) -> list[str]:
    if os.path.isfile(path):  # a name with brackets in it may be a plain file
        return [path]
    if os.path.isdir(path):
        inside = {
            kind: sorted(glob(os.path.join(escape(path), "**", f"*.{kind}"), recursive=True)) for kind in SUFFIXES
        }
        return next((files for files in inside.values() if files), [])
    return sorted(file for file in glob(path, recursive=True) if os.path.isfile(file)) if has_magic(path) else []


def _kind(file: str) -> str:
    return "parquet" if Path(file).suffix.lower() in (".parquet", ".pq") else "csv"


def fetch(relation: Any, argument: str = "frame") -> dict[str, Column]:
    """The columns of a relation in memory; missing values stay missing."""
    duckdb = _duckdb()
    try:
        found = relation.fetchnumpy()
    except duckdb.Error as error:
        raise unreadable(
            "path" if argument == "frame" else argument, [getattr(relation, "alias", "")], error
        ) from error
    return {name: _unmasked(values) for name, values in found.items()}


def _unmasked(values: Any) -> Column:
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    if not np.ma.getmaskarray(values).any():
        return values.data
    holed = values.data.astype(object)
    holed[np.ma.getmaskarray(values)] = None
    return holed


def require_column(argument: str, name: Any, known: Sequence[str]) -> None:
    if not isinstance(name, str) or name not in known:
        remedy = near(name, known) if isinstance(name, str) else None
        if len(known) == 1 and any(sign in known[0] for sign in ",;|\t"):
            remedy = "It was read as one column: does every row have as many cells as the header?"
        expected = f"the name of a column among {', '.join(map(repr, known))}"
        raise InvalidInput(argument, expected, repr(name), remedy=remedy)


def missing_in(values: Column) -> npt.NDArray[np.bool_]:
    """Which entries are missing: None, NaN, NaT, pandas' NA."""
    if values.dtype.kind in "biuUS":
        return np.zeros(values.shape, dtype=bool)
    import pandas as pd

    return np.asarray(pd.isna(values))


def as_plain(
    argument: str, values: Column, error: type[InvalidInput] = InvalidInput, remedy: str = FRAME_REMEDY
) -> Column:
    """A column without holes, of one plain type: whole numbers, other numbers, dates, truth values or text."""
    if values.size == 0:
        raise error("frame", "at least one row", "no rows")
    missing = missing_in(values)
    if missing.any():
        row, n = int(np.flatnonzero(missing)[0]), int(missing.sum())
        raise error(argument, "no missing values", f"{n} missing", f"row {row}", remedy)
    return _of_one_kind(argument, values, error)


_KINDS: tuple[tuple[Any, Any], ...] = (
    (str, np.str_),
    (bool | np.bool_, np.bool_),
    (int | np.integer, np.int64),
    (float | np.number, np.float64),
    (dt.date | np.datetime64, "datetime64[us]"),
)


def _of_one_kind(argument: str, values: Column, error: type[InvalidInput]) -> Column:
    if values.dtype != object:
        return values
    for kind, dtype in _KINDS:
        truth, none = kind == bool | np.bool_, bool | np.complexfloating | np.timedelta64
        if all(isinstance(v, kind) and (truth or not isinstance(v, none)) for v in values):
            try:
                return _without_nul(argument, values, error) if kind is str else values.astype(dtype)
            except OverflowError as problem:
                raise error(argument, "numbers of moderate size", str(problem)) from problem
    odd = next((i for i, v in enumerate(values) if type(v) is not type(values[0])), 0)
    got = f"{type(values[0]).__name__} and {type(values[odd]).__name__}" if odd else type(values[0]).__name__
    raise error(argument, "one kind of values: numbers, dates or text", got, f"row {odd}")


def _without_nul(argument: str, values: Column, error: type[InvalidInput]) -> Column:
    """Text as NumPy's, which would lose a NUL at the end."""
    bad = next((row for row, text in enumerate(values) if "\0" in text), None)
    if bad is not None:
        raise error(argument, "text without NUL characters", repr(values[bad]), f"row {bad}")
    return values.astype(np.str_)


def kind_of(values: Column) -> str:
    """What a column holds, in words."""
    words = {"i": "whole numbers", "u": "whole numbers", "f": "numbers", "b": "truth values", "M": "dates"}
    return words.get(values.dtype.kind, "text")
