"""Frames and files as tables: whatever narwhals accepts, DuckDB's relations, and paths of CSV or Parquet files.

Files are read by DuckDB, also where they end up in memory, so that the same file has the same types on every way
through this library. A path may be a glob, a folder of Parquet files, or a list of paths. A column is read in one of
two ways, the same wherever it comes from: as values, or as labels, which are whole numbers, other numbers or text.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from glob import glob, has_magic
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from revealed.checks import Floats, as_list
from revealed.errors import InvalidInput, MissingDependency
from revealed.formats import AS_HEADER, SEPARATORS, find_uneven, refuse_uneven, require_table_file
from revealed.labels import near, plain
from revealed.voices import shown
from revealed.written import (
    EXACT,
    HOLES,
    ISO,
    NUMBER,
    Reading,
    interruptible,
    quoted,
    rows_in,
    text_readings,
    typed_reading,
    unmarked,
)

Column = npt.NDArray[Any]
MEMORY = "1GB"  # that DuckDB may use before it works on disk
SUFFIXES = ("parquet", "csv")  # that are looked for in a folder
MOST_FILES = 100_000  # in a folder of a panel; more is a disk
ACCEPTED = "a data frame or the path of a CSV or Parquet file"
FRAME_REMEDY = "Drop or fill those rows."
SOME_ROWS = "at least one row", "no rows"  # what is expected of a table, and what an empty one has
WITHOUT_NUL = "text without NUL characters"
At = Callable[[int], str | None]  # where an entry of a column stands, in words


def in_row(k: int) -> str:
    return f"row {k}"


@dataclass(frozen=True)
class Table:
    """Named columns in memory. `error` is the class in which complaints are raised; `labels_of` has the columns whose
    labels are other than their values, `zoned` those whose times came with a zone, and are in UTC here; `argument` is
    what the table was given as."""

    columns: dict[str, Column]
    error: type[InvalidInput] = InvalidInput
    labels_of: dict[str, Column] = field(default_factory=dict)
    zoned: frozenset[str] = frozenset()
    argument: str = "frame"

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def raw(self, argument: str, name: Any) -> Column:
        """The column as it came."""
        return self._some_rows(self.columns[require_column(argument, name, self.names)])

    def column(self, argument: str, name: str) -> Column:
        """The column without holes, of one plain type: whole numbers, other numbers, dates, truth values or text."""
        return as_plain(argument, self.raw(argument, name), self.error)

    def raw_labels(self, argument: str, name: Any) -> Column:
        """The column as labels: whole numbers, other numbers or text; None where one is missing."""
        name = require_column(argument, name, self.names)
        if name in self.labels_of:
            return self._some_rows(self.labels_of[name])
        return as_label_values(argument, self._some_rows(self.columns[name]), name in self.zoned, self.error)

    def _some_rows(self, column: Column) -> Column:
        if column.size == 0:
            raise self.error(self.argument, *SOME_ROWS)
        return column

    def label_column(self, argument: str, name: str, remedy: str = FRAME_REMEDY) -> Column:
        """The column as labels, without holes."""
        found = as_plain(argument, self.raw_labels(argument, name), self.error, remedy)
        require_exact(argument, found, self.error)
        return found

    def numbers(self, argument: str, name: str) -> Floats:
        """The column as finite numbers."""
        values = self.column(argument, name)
        where = "" if argument == f"column {name!r}" else f" in column {name!r}"
        if values.dtype.kind not in "iufb":
            raise no_number(argument, name if where else None, values, self.error)
        values = values.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise self.error(argument, f"finite numbers{where}", values[bad[0]], f"row {bad[0]}")
        return values

    def labels(self, argument: str, names: str | Sequence[str]) -> list[Any]:
        """One label per row: a value, or a tuple where several columns are named."""
        if isinstance(names, str):
            return [plain(value) for value in self.label_column(argument, names)]
        if as_list(names) is None:
            require_column(argument, names, self.names)
        return [plain(values) for values in zip(*(self.label_column(argument, name) for name in names), strict=True)]


def read_table(
    frame: Any,
    argument: str = "frame",
    error: type[InvalidInput] = InvalidInput,
    needed: Callable[[Sequence[str]], Sequence[str]] = list,
    labels: Sequence[str] | None = None,
) -> Table:
    """A frame or file as a table in memory; `needed` picks from the names of all columns, or complains. `labels` are
    the columns that will be read as labels, None where any may be."""
    stored = relation_of(frame, argument)
    if stored is not None:
        names = list(dict.fromkeys(needed(stored.columns)))
        found = stored.fetch(stored.read(names, names if labels is None else labels))
        lost = next((name for name in names if name not in found), None)
        if lost is not None:  # DuckDB gives columns back whose names end at a NUL
            raise error(argument, "column names that are text without NUL characters", shown(lost))
        others = {name: found[labelled(name)] for name in names if labelled(name) in found}
        return Table({name: found[name] for name in names}, error, others, argument=argument)
    table = as_narwhals(frame, argument)
    names = list(dict.fromkeys(needed(table.collect_schema().names())))
    table = under_names(table, names)
    if hasattr(table, "collect"):
        table = table.select(*names).collect()
    zoned = frozenset(name for name in names if getattr(table.schema[name], "time_zone", None))
    return Table(
        {name: to_numpy(table.get_column(name), name) for name in names}, error, zoned=zoned, argument=argument
    )


def read_names(paths: Any, argument: str) -> list[str]:
    """The names of the columns of files."""
    stored = relation_of(paths, argument)
    return [] if stored is None else stored.columns


def to_numpy(column: Any, name: str) -> Column:
    """A column of narwhals as what it holds, to the last digit: whole numbers (objects where some are missing, and
    others too large for floats), floats, truth values, times in UTC, or text as objects, since NumPy's own text would
    lose a NUL at the end."""
    import narwhals as nw

    kind = column.dtype
    try:
        if getattr(kind, "time_zone", None):
            return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
        if kind.is_integer() and column.null_count() and _beyond(column, EXACT):
            return np.array(column.to_list(), dtype=object)
        found = column.to_numpy()
        if found.dtype.kind in "UST" or (kind in (nw.Categorical, nw.Enum) and column.null_count()):
            return np.array(column.to_list(), dtype=object)  # Arrow's categories would have labels for missing ones
        if found.ndim > 1:  # Polars' Struct and Array
            return _objects(column.to_list())
        if kind == nw.Unknown and _is_arrow(column.to_native()):  # such as pandas' periods, which are stored as numbers
            return np.asarray(column.to_arrow().to_pandas())
    except Exception as error:  # a type that NumPy lacks; every library says so in its own way
        raise InvalidInput(f"column {name!r}", "numbers, dates or text", str(column.dtype)) from error
    return found.astype(np.float64) if found.dtype.kind == "f" else found


def _is_arrow(native: Any) -> bool:
    """Whether the types of a column are those of Arrow."""
    return hasattr(native, "to_arrow") or hasattr(native, "type") or hasattr(native.dtype, "pyarrow_dtype")


def _objects(values: list[Any]) -> Column:
    """An entry each, also where they are sequences."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _beyond(column: Any, limit: int) -> bool:
    low, high = column.min(), column.max()
    return low is not None and (int(low) < -limit or int(high) > limit)


def labelled(name: str) -> str:
    """What the labels of a column are called beside its values."""
    return f"\x1f{name}"


@dataclass(frozen=True)
class Stored:
    """A relation of DuckDB; `text` where its cells are text without types, as those of CSV files are; `files` are those
    that it reads, on a `connection` that older versions close with its last name; `argument` is what they were given
    as."""

    relation: Any
    text: bool = False
    files: tuple[str, ...] = ()
    argument: str = "frame"
    connection: Any = None

    @property
    def columns(self) -> list[str]:
        return [unmarked(name) for name in self.relation.columns]

    def readings(self, names: Sequence[str]) -> dict[str, Reading]:
        """How these columns are read."""
        known = self.columns
        at = {name: column_of(name, known) or name for name in names}
        if self.text:
            found = text_readings(self.relation, list(dict.fromkeys(at.values())))
            return {name: found[own] for name, own in at.items()}
        kinds = dict(zip(known, self.relation.types, strict=True))
        return {name: typed_reading(self.relation, own, kinds[own]) for name, own in at.items()}

    def read(self, values: Sequence[str], labels: Sequence[str] = (), apart: bool = False, keep: bool = False) -> Any:
        """The relation of these columns: values under their names; labels under `labelled` ones, where they differ from
        values, or `apart` always. With `keep` cells of text are read from the file once."""
        with self.told():
            found = self.readings([*dict.fromkeys((*values, *labels))])
            columns = {name: found[name].value for name in values}
            for name in labels:
                if apart or name not in columns or found[name].label != found[name].value:
                    columns[labelled(name)] = found[name].label
            wanted = self.relation.project(", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items()))
            return _kept(wanted) if keep and self.text else wanted

    @property
    def n_rows(self) -> int:
        with self.told():
            return int(rows_in(self.relation.aggregate("count(*)"))[0][0])

    def fetch(self, relation: Any) -> dict[str, Column]:
        """The columns of a relation over this one in memory; missing values stay missing."""
        with self.told():
            return {unmarked(name): _unmasked(values) for name, values in relation.fetchnumpy().items()}

    @contextmanager
    def told(self) -> Iterator[None]:
        """Complaints of DuckDB as ours, with the names of the files."""
        try:
            with interruptible():
                yield
        except duckdb_module().Error as error:
            if self.files:
                raise unreadable(self.argument, self.files, error) from error
            raise InvalidInput(self.argument, "a relation that DuckDB can read", _reason(error)) from error


def _kept(relation: Any) -> Any:
    """The relation as a table beside it; DuckDB works on disk where it grows large."""
    name = f"kept_{uuid.uuid4().hex}"
    with interruptible():
        relation.create(name)
    return relation.query("ignored", f"SELECT * FROM {name}")


def as_narwhals(frame: Any, argument: str = "frame") -> Any:
    """The frame as narwhals sees it, eager or lazy."""
    import narwhals as nw

    try:
        found = nw.from_native(frame)
        names = found.collect_schema().names()
        bare = {old: new for old, new in zip(names, without_blanks(names), strict=True) if old != new}
        return found.rename(bare) if bare else found
    except TypeError as error:
        raise InvalidInput(argument, ACCEPTED, type(frame).__name__) from error
    except ValueError as error:  # columns of one name
        got = " ".join(str(error).split())
        raise InvalidInput(argument, "a data frame with distinct column names", got) from error


def is_path(frame: Any) -> bool:
    """A path, or a list of them."""
    if isinstance(frame, list | tuple) and frame:
        return all(isinstance(one, str | os.PathLike) for one in frame)
    return isinstance(frame, str | os.PathLike)


def relation_of(frame: Any, argument: str = "frame") -> Stored | None:
    """A relation of DuckDB, of the user's own or over files; None where the frame is something else."""
    if is_path(frame):
        return _relation_over(frame, "path" if argument == "frame" else argument)
    if type(frame).__module__.partition(".")[0] not in ("duckdb", "_duckdb") or not hasattr(frame, "query"):
        return None
    _require_different(argument, frame.columns)
    return Stored(_under(frame, without_blanks(frame.columns)), argument=argument)


def _require_different(argument: str, names: Sequence[str], where: str = "") -> None:
    """No column has the name of another."""
    again = next((name for name, n in Counter(names).items() if name and n > 1), None)
    if again is not None:
        remedy = without_header(names) or "Rename one of them."
        raise InvalidInput(argument, "distinct column names", f"{again!r} twice{where}", remedy=remedy)


def without_header(names: Sequence[Any]) -> str | None:
    """What to say of columns whose names look like values."""
    odd = next((name for name in names if re.fullmatch(f"{NUMBER}|{ISO}", str(name).strip())), None)
    return None if odd is None else f"Is the header line missing? The column name {str(odd)!r} looks like a value."


def _under(relation: Any, names: Sequence[str]) -> Any:
    """The relation with its columns called as SQL can tell these names apart."""
    if all(quoted(name) == f'"{own}"' for name, own in zip(names, relation.columns, strict=True)):
        return relation
    return relation.project(", ".join(f"#{k} AS {quoted(name)}" for k, name in enumerate(names, 1)))


def _relation_over(paths: Any, argument: str) -> Stored:
    duckdb = duckdb_module()
    files, kind = table_files(paths, argument)
    spill = Path(tempfile.gettempdir(), f"revealed-{uuid.uuid4().hex}")  # made and removed by DuckDB
    connection = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(spill)})
    connection.execute("SET enable_progress_bar = false")
    try:
        with interruptible():
            if kind == "parquet":
                found = connection.read_parquet(files, union_by_name=len(files) > 1, hive_partitioning=False)
            else:
                found = connection.read_csv(files, union_by_name=len(files) > 1, **_AS_TEXT)
        if kind == "csv" and len(found.columns) == 1 and any(sign in found.columns[0] for sign in SEPARATORS):
            refuse_uneven(argument, files)
        names = _names_in_files(connection, files, kind, found.columns, argument)
        found = _under(found, without_blanks(names))
        found = found if kind == "csv" else _as_written(connection, found, files)
        return Stored(found, kind == "csv", tuple(files), argument, connection)
    except duckdb.Error as error:
        raise unreadable(argument, files, error) from error


def _as_written(connection: Any, found: Any, files: list[str]) -> Any:
    """Durations and pandas' periods, which Parquet has no types for: DuckDB reads the numbers that they are stored as.
    They are no numbers again here, and refused like those of a frame wherever their column is used."""
    names = [unmarked(name) for name in found.columns]
    forms = {column_of(name, names): form for file in files for name, form in _no_numbers_in(connection, file)}
    if not forms.keys() & set(names):
        return found
    cells = ((forms.get(name), quoted(name)) for name in names)
    return found.project(", ".join(f"{form.format(x=x)} AS {x}" if form else x for form, x in cells))


_DURATION, _PERIOD = "to_microseconds({x})", "CASE WHEN {x} IS NOT NULL THEN {{'period': {x}}} END"


def _no_numbers_in(connection: Any, file: str) -> list[tuple[str, str]]:
    """Names of such columns, and what they are in SQL: by Arrow's own schema in the file; without pyarrow by what
    pandas noted."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        query = "SELECT value FROM parquet_kv_metadata(?) WHERE decode(key) = 'pandas'"
        notes = rows_in(connection.execute(query, [file]))
        columns = json.loads(bytes(notes[0][0])).get("columns", []) if notes else []
        kinds = [(str(one.get("name")), str(one.get("numpy_type"))) for one in columns]
    else:
        try:
            kinds = [(one.name, _arrow_kind(one)) for one in parquet.read_schema(file)]
        except (ArrowException, OSError):  # whoever reads the file will say so
            return []
    forms = {"timedelta64": _DURATION, "duration": _DURATION, "period": _PERIOD, "pandas.period": _PERIOD}
    known = [(name, forms.get(kind.partition("[")[0])) for name, kind in kinds]
    return [(name, form) for name, form in known if form is not None]


def _arrow_kind(field: Any) -> str:
    """What a type of Arrow is called; of one that only pandas knows, what pandas calls it, also before it is loaded."""
    named = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    return named or getattr(field.type, "extension_name", str(field.type))


# folders called column=value are names of folders, no columns
_AS_TEXT: dict[str, Any] = {"header": True, "all_varchar": True, "quotechar": '"', "escapechar": '"'}
_AS_TEXT |= {"hive_partitioning": False}


def _names_in_files(connection: Any, files: list[str], kind: str, found: list[str], argument: str) -> list[str]:
    """The names of the columns as the files have them. DuckDB trims those of CSV files, calls the second of one name,
    also in other letters, `x_1`, and takes names of several files for one if they differ in case alone."""
    trim = str.strip if kind == "csv" else str
    headers = _csv_headers(connection, files) if kind == "csv" else _parquet_headers(connection, files)
    known = {name.lower() for name in found}
    headers = {names: file for names, file in headers.items() if all(trim(n).lower() in known for n in names if n)}
    for names, file in headers.items():
        _require_different(argument, names, f" in {Path(file).name}")
    first = next(iter(headers), ())
    if len(headers) == 1 and len(first) == len(found):
        return [name or own for name, own in zip(first, found, strict=True)]
    met: dict[str, tuple[str, str]] = {}
    for names, file in headers.items() if len(headers) > 1 else ():
        for name in filter(None, names):
            other, where = met.setdefault(trim(name).lower(), (name, file))
            if trim(other) != trim(name) or (file == where and other != name):
                got = f"{other!r} in {Path(where).name} and {name!r} in {Path(file).name}"
                expected = "files whose columns have the same names, or names that differ in more than case and blanks"
                raise InvalidInput(argument, expected, got, remedy="Rename one of them.")
    return [met.get(own.lower(), (own,))[0] for own in found]


def _csv_headers(connection: Any, files: list[str]) -> dict[tuple[str, ...], str]:
    """The different header lines of files, and the first file that has each."""
    lines: dict[bytes, str] = {}
    for file in files:
        with open(file, "rb") as opened:
            lines.setdefault(opened.readline(1 << 16), file)
    found: dict[tuple[str, ...], str] = {}
    for file in lines.values():
        with interruptible():
            cells = connection.read_csv(file, **_AS_TEXT | {"header": False}).limit(1).fetchall()[0]
        found.setdefault(tuple(str(cell or "") for cell in cells), file)
    return found


def _parquet_headers(connection: Any, files: list[str]) -> dict[tuple[str, ...], str]:
    """The different lists of columns of files, and the first file that has each; parts of nested columns are none."""
    with interruptible():
        rows = connection.execute("SELECT file_name, name, num_children FROM parquet_schema(?)", [files]).fetchall()
    found: dict[tuple[str, ...], str] = {}
    for file, inside in groupby(rows, key=lambda row: row[0]):
        names, open_ = [], []  # how many columns are still to come, at each depth
        for _, name, parts in inside:
            if len(open_) == 1:
                names.append(str(name))
            open_ = [*open_[:-1], open_[-1] - 1] if open_ else open_
            open_ += [parts] if parts else []
            while open_ and not open_[-1]:
                open_.pop()
        found.setdefault(tuple(names), file)
    return found


def unreadable(argument: str, files: Any, error: Exception) -> InvalidInput:
    names = ", ".join(Path(f).name for f in files[:3]) + (", …" if len(files) > 3 else "")
    reason = _reason(error)
    expected, remedy = "a CSV or Parquet file that can be read", None
    if "not utf-8" in str(error):
        remedy = "Save it as UTF-8 (Excel: “CSV UTF-8”)."
    if "when sniffing file" in str(error):
        name, reason, remedy = next(
            filter(None, map(find_uneven, files)), (files[0], _UNSPLIT, f"{AS_HEADER} Check for unclosed quotes.")
        )
        names = Path(name).name
    return InvalidInput(argument, expected, f"{names}: {reason}", remedy=remedy)


def _reason(error: Exception) -> str:
    """What DuckDB says, in short, without the query that it was asked."""
    said = str(error).partition("\nLINE ")[0]
    lines = [line for line in said.splitlines() if line.strip()][:3] or [type(error).__name__]
    return re.sub("\x1e[0-9a-f]*", "", " ".join(lines).partition("Error: ")[2] or " ".join(lines)).rstrip(".")


_UNSPLIT = "its rows could not be split into cells"


def duckdb_module() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependency("reading files needs DuckDB: pip install duckdb") from error
    return duckdb


def table_files(paths: Any, argument: str) -> tuple[list[str], str]:
    """The files meant, in order, and their kind."""
    given = list(paths) if isinstance(paths, list | tuple) else [paths]
    found = [_expand(str(path), argument) for path in given]
    for path, some in zip(given, found, strict=True):
        if not some:
            raise InvalidInput(argument, "a CSV or Parquet file that exists", str(path))
    files = [file for some in found for file in some]
    for file in files:
        if os.path.getsize(file) == 0:
            raise unreadable(argument, [file], ValueError("it is empty"))
        require_table_file(argument, file)
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        odd = next(file for file in files if _kind(file) != _kind(files[0]))
        raise InvalidInput(argument, "files of one format", f"{Path(files[0]).name} and {Path(odd).name}")
    return files, kinds.pop()


def _expand(path: str, argument: str) -> list[str]:
    if os.path.isfile(path):  # a name with brackets in it may be a plain file
        return [path]
    if os.path.isdir(path):
        names = list(_inside(path, argument))
        inside = (sorted(name for name in names if name.endswith(f".{kind}")) for kind in SUFFIXES)
        return next((files for files in inside if files), [])
    return sorted(file for file in glob(path, recursive=True) if os.path.isfile(file)) if has_magic(path) else []


def _inside(folder: str, argument: str) -> Iterator[str]:
    """The files in a folder and in folders of it; hidden ones are left out."""
    seen = 0
    for at, folders, files in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        seen += len(folders) + len(files)
        if seen > MOST_FILES:
            expected = f"a folder with at most {MOST_FILES:,} files"
            raise InvalidInput(argument, expected, f"{folder}, which has more", remedy="Name the folder of the panel.")
        yield from (os.path.join(at, name) for name in files if not name.startswith("."))


def _kind(file: str) -> str:
    return "parquet" if Path(file).suffix.lower() in (".parquet", ".pq") else "csv"


def _unmasked(values: Any) -> Column:
    if not isinstance(values, np.ma.MaskedArray):
        return np.asarray(values)
    if not np.ma.getmaskarray(values).any():
        return values.data
    if values.dtype.kind == "f":
        return values.filled(np.nan)
    holed = values.data.astype(object)
    holed[np.ma.getmaskarray(values)] = None
    return holed


def column_of(name: Any, known: Sequence[Any]) -> str | None:
    """The column that a name means: the one that is called so exactly, else the only one that is but for blanks around
    the name."""
    if not isinstance(name, str) or name in known:
        return name if isinstance(name, str) else None
    padded = [other for other in known if isinstance(other, str) and other.strip() == name.strip()]
    return padded[0] if len(padded) == 1 else None


def without_blanks(names: Sequence[Any]) -> list[Any]:
    """The names of columns without blanks around them, where that leaves them different."""
    bare = [name.strip() or name if isinstance(name, str) else name for name in names]
    times = Counter(bare)
    return [short if times[short] == 1 else name for name, short in zip(names, bare, strict=True)]


def under_names(table: Any, names: Sequence[Any]) -> Any:
    """A frame of narwhals in which the columns that these names mean are called so."""
    known = table.collect_schema().names()
    others = {own: name for name in names if (own := column_of(name, known)) not in (None, name)}
    return table.rename(others) if others else table


def require_column(argument: str, name: Any, known: Sequence[str], remedy: str | None = None) -> str:
    """The column that a name means; where there is none and no `remedy`, the nearest name is one."""
    found = column_of(name, known)
    if found is None:
        remedy = remedy or (near(name, known) if isinstance(name, str) else None)
        if len(known) == 1 and any(sign in known[0] for sign in SEPARATORS):
            remedy = f"It was read as one column. {AS_HEADER}"
        padded = [other for other in known if isinstance(name, str) and str(other).strip() == name.strip()]
        if padded:
            remedy = f"Rename one of {' and '.join(map(repr, padded))}, which differ in blanks alone."
        expected = f"one of the columns {', '.join(map(repr, known))}"
        raise InvalidInput(argument, expected, shown(name), remedy=remedy or without_header(known))
    return found


def no_number(
    argument: str, name: Any, values: Column, error: type[InvalidInput], at: At = in_row, remedy: str | None = None
) -> InvalidInput:
    """The complaint about a column that has to hold numbers: the first of its cells that is none."""
    texts = [text.strip() for text in values.tolist()] if values.dtype.kind in "UT" else []
    ranks = [2 if re.fullmatch(NUMBER, text) else int(text in HOLES) for text in texts] or [0]
    k = ranks.index(min(ranks))
    if ranks[k] == 2:
        remedy = remedy or "The numbers are written as text: turn the column into numbers."
    got = f"{kind_of(values)} such as {values[k]!s}"
    return error(argument, "numbers" if name is None else f"numbers in column {name!r}", got, at(k), remedy)


def missing_in(values: Column) -> npt.NDArray[np.bool_]:
    """Which entries are missing: None, NaN, NaT, pandas' NA."""
    if values.dtype.kind in "biuUS":
        return np.zeros(values.shape, dtype=bool)
    import pandas as pd

    return np.asarray(pd.isna(values))


def as_plain(
    argument: str,
    values: Column,
    error: type[InvalidInput] = InvalidInput,
    remedy: str = FRAME_REMEDY,
    at: At = in_row,
) -> Column:
    """A column without holes, of one plain type: whole numbers, other numbers, dates, truth values or text."""
    if values.size == 0:
        raise error("frame", *SOME_ROWS)
    missing = missing_in(values)
    if missing.any():
        row, n = int(np.flatnonzero(missing)[0]), int(missing.sum())
        raise error(argument, "no missing values", f"{n} missing", at(row), remedy)
    return _of_one_kind(argument, values, error, at)


_KINDS: tuple[tuple[Any, Any], ...] = (
    (str, np.str_),
    (bool | np.bool_, np.bool_),
    (int | np.integer, np.int64),
    (Decimal, np.float64),
    (float | np.number, np.float64),
    (dt.date | np.datetime64, "datetime64[us]"),
    (dt.time, np.str_),
)


def _of_one_kind(
    argument: str, values: Column, error: type[InvalidInput], at: At = in_row, label: bool = False
) -> Column:
    if values.dtype != object and values.dtype.kind in "biufUTM":
        return _of_plain_type(values, label)
    if values.dtype != object:
        raise error(argument, "numbers, dates or text", f"values such as {values[0]!s}")
    for kind, dtype in _KINDS:
        truth, none = kind == bool | np.bool_, bool | np.complexfloating | np.timedelta64
        if all(isinstance(v, kind) and (truth or not isinstance(v, none)) for v in values):
            try:
                text = kind is str
                return _without_nul(argument, values, error, at) if text else _converted(values, kind, dtype, label)
            except OverflowError as problem:
                raise error(argument, "numbers of moderate size", str(problem)) from problem
    odd = next((i for i, v in enumerate(values) if type(v) is not type(values[0])), 0)
    first, other = (type(values[i]).__name__ for i in (0, odd))
    got = f"{first} and {other}" if odd else f"{first} such as {shown(values[0])}"
    raise error(argument, "values of one kind: numbers, dates or text", got, at(odd))


def _of_plain_type(values: Column, label: bool) -> Column:
    """Whole numbers in 64 bits, where that is enough; times in microseconds."""
    if values.dtype.kind == "u" and values.size and values.max() > np.iinfo(np.int64).max:
        return values.astype(np.str_ if label else np.float64)
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False)
    return values.astype("datetime64[us]", copy=False) if values.dtype.kind == "M" else values


def _converted(values: Column, kind: Any, dtype: Any, label: bool) -> Column:
    """Objects of one kind as an array. Decimals without decimal places are whole numbers; those beyond 64 bits are text
    as labels, and floats as values."""
    if kind is dt.time:
        return np.array([str(v).rstrip("0") if v.microsecond else str(v) for v in values])
    if kind is Decimal and all(v.is_finite() and v.as_tuple().exponent == 0 for v in values):
        values, dtype = np.array([int(v) for v in values], dtype=object), np.int64
    if dtype == "datetime64[us]":
        values = np.array([in_utc(v) for v in values], dtype=object)
    try:
        return values.astype(dtype)
    except OverflowError:
        return np.array([str(v) for v in values]) if label else _floats(values)


def _floats(values: Column) -> Column:
    """Numbers of any size, infinite where floats are not enough."""
    return np.array([float(v) if abs(v) < 1e308 else np.inf for v in values.tolist()])


def in_utc(when: Any) -> Any:
    """A time with a zone as one of UTC without; anything else as it is."""
    zoned = isinstance(when, dt.datetime) and when.tzinfo is not None
    return when.astimezone(dt.UTC).replace(tzinfo=None) if zoned else when


def as_label_values(argument: str, values: Column, zoned: bool, error: type[InvalidInput], at: At = in_row) -> Column:
    """Values as labels: whole numbers, other numbers, or text, which truth values and times become. Empty text is a
    missing label; missing ones are None."""
    missing = missing_in(values)
    if missing.all():
        return values
    rows = np.flatnonzero(~missing)
    given = values[rows] if missing.any() else values
    there = _of_one_kind(argument, given, error, lambda k: at(int(rows[k])), label=True)
    if there.dtype.kind == "b":
        there = np.where(there, "True", "False")
    elif there.dtype.kind == "M":
        there = dates_as_text(there, zoned)
    if not missing.any() and not (there.dtype.kind == "U" and (there == "").any()):
        return there
    found = np.full(values.shape, None, dtype=object)
    found[~missing] = there.astype(object)
    found[found == ""] = None
    return found


def dates_as_text(times: Column, zoned: bool = False) -> Column:
    """Times with no more digits than they need: days, seconds, or microseconds; those of UTC say so."""
    days, seconds = (times.astype(f"datetime64[{unit}]").astype("datetime64[us]") for unit in ("D", "s"))
    unit = "us" if (seconds != times).any() else "s" if zoned or (days != times).any() else "D"
    texts = np.char.replace(np.datetime_as_string(times, unit=unit), "T", " ")
    return np.char.add(texts, "+00:00") if zoned else texts


def require_exact(argument: str, values: Column, error: type[InvalidInput] = InvalidInput, at: At = in_row) -> None:
    """Whole numbers that came as floats are still whole."""
    if values.dtype.kind != "f":
        return
    large = np.flatnonzero(np.isfinite(values) & (np.abs(values) > EXACT))
    if large.size:
        got, remedy = f"{values[large[0]]!s}", "Read the column as whole numbers or as text: floats round it."
        raise error(argument, f"floats of at most 2^53 = {EXACT}", got, at(int(large[0])), remedy)


def _without_nul(argument: str, values: Column, error: type[InvalidInput], at: At = in_row) -> Column:
    """Text as NumPy's, which would lose a NUL at the end."""
    bad = next((row for row, text in enumerate(values) if "\0" in text), None)
    if bad is not None:
        raise error(argument, WITHOUT_NUL, shown(values[bad]), at(bad))
    return values.astype(np.str_)


def kind_of(values: Column) -> str:
    """What a column holds, in words."""
    words = {"i": "whole numbers", "u": "whole numbers", "f": "numbers", "b": "truth values", "M": "dates"}
    return words.get(values.dtype.kind, "text")
