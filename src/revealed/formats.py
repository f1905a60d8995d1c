"""Files of other formats that users have panels in: each is named for what it is, with what to do about it.

A format is known by the first bytes of a file, else by how its name ends; what no entry knows is read as CSV. Of
CSV files whose rows have different numbers of cells the first such line is told.
"""

from __future__ import annotations

import csv
import gzip
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from revealed.errors import InvalidInput
from revealed.labels import how_many
from revealed.voices import either

SEPARATORS = ",;\t|"
_NO_COMMENT = "Remove the comment at the top of the file."
AS_HEADER = "Every row needs as many cells as the header."
_PARQUET, _GZIP, _ZIP = b"PAR1", b"\x1f\x8b", b"PK\x03\x04"
_EXCEL, _R = "an Excel workbook", "an R data file"
# format → (how its files begin, how their names end, what reads it in Python; "-" for an archive)
_FORMATS: dict[str, tuple[tuple[bytes, ...], tuple[str, ...], str]] = {
    "a Stata file": ((b"<stata_dta>",), (".dta",), "pandas.read_stata"),
    _EXCEL: (
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",),
        (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"),
        "pandas.read_excel",
    ),
    "an SPSS file": ((b"$FL2", b"$FL3"), (".sav", ".zsav", ".por"), "pandas.read_spss"),
    "a SAS file": ((b"HEADER RECORD*******LIB",), (".sas7bdat", ".xpt"), "pandas.read_sas"),
    "a Feather (Arrow) file": ((b"ARROW1\0\0",), (".feather", ".arrow", ".ipc"), "pandas.read_feather"),
    "a JSON file": ((), (".json",), "pandas.read_json"),
    "a file of JSON lines": ((), (".jsonl", ".ndjson"), "pandas.read_json(path, lines=True)"),
    "an HDF5 file": ((b"\x89HDF",), (".h5", ".hdf5", ".hdf"), "pandas.read_hdf"),
    "an ORC file": ((), (".orc",), "pandas.read_orc"),
    "a pickle": ((b"\x80\x04\x95", b"\x80\x05\x95"), (".pkl", ".pickle"), "pandas.read_pickle"),
    _R: ((b"RDX2\n", b"RDX3\n"), (".rds", ".rdata", ".rda"), ""),
    "an SQLite database": ((b"SQLite format 3\0",), (".sqlite", ".sqlite3"), ""),
    "a NumPy file": ((b"\x93NUMPY",), (".npy", ".npz"), ""),
    "a compressed file": ((b"BZh91AY&SY", b"\xfd7zXZ\x00", b"7z\xbc\xaf", _ZIP), (".zip", ".bz2", ".xz", ".7z"), "-"),
}


def require_table_file(argument: str, file: str) -> None:
    """CSV or Parquet, as its name says; anything else is refused by the name of its format."""
    head, tail = _ends(file)
    name, is_parquet = Path(file).name, head.startswith(_PARQUET) and tail == _PARQUET
    if is_parquet != name.lower().endswith((".parquet", ".pq")):
        _refuse_misnamed(argument, file, is_parquet)
    found = None if is_parquet else _by_name(name.lower()) or _by_head(head)
    if found is None and head.startswith(_GZIP) and not name.lower().endswith(".gz"):
        remedy = f"If it is a compressed CSV file, rename it to {name}.gz."
        raise InvalidInput(argument, _EXPECTED, f"{name}, which is compressed with gzip", remedy=remedy)
    if found is not None:
        raise InvalidInput(argument, _EXPECTED, f"{name}, {found}", remedy=_remedy(_FORMATS[found][2]))


def _ends(file: str) -> tuple[bytes, bytes]:
    """The first bytes of a file and its last four; none where it cannot be opened, which its reader will say."""
    try:
        with open(file, "rb") as opened:
            head = opened.read(64)
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - 4))
            return head, opened.read(4)
    except OSError:
        return b"", b""


_EXPECTED = "a CSV or Parquet file"


def _by_name(name: str) -> str | None:
    return next((what for what, (_, ends, _) in _FORMATS.items() if name.endswith(ends)), None)


def _by_head(head: bytes) -> str | None:
    if head.startswith(_ZIP) and head[30:].startswith((b"[Content_Types]", b"xl/", b"_rels/")):
        return _EXCEL
    return next((what for what, (heads, _, _) in _FORMATS.items() if head.startswith(heads)), None)


def _refuse_misnamed(argument: str, file: str, is_parquet: bool) -> None:
    """Parquet under another name, or another format under that of Parquet."""
    name = Path(file).name
    if is_parquet:
        remedy = f"Rename it to {Path(file).with_suffix('.parquet').name}."
        raise InvalidInput(argument, _EXPECTED + ", named as such", f"{name}, a Parquet file", remedy=remedy)
    remedy = "If it is a CSV file, rename it to end in .csv; otherwise write it again."
    raise InvalidInput(argument, "a Parquet file", f"{name}, which is not one, or is damaged", remedy=remedy)


def _remedy(reader: str) -> str:
    """What to do about a format; a reader of `-` is an archive to unpack."""
    save = "Save it as CSV or Parquet."
    if reader == "-":
        return "Unpack it first; only CSV files compressed with gzip (.csv.gz) can be read directly."
    return either(f"Read it with {reader} and pass the frame, or save it as CSV or Parquet." if reader else save, save)


def find_uneven(file: str) -> tuple[str, str, str] | None:
    """The file, which of its lines has another number of cells than the first, and what to do; None where all have as
    many."""
    unpack: Any = gzip.open if file.endswith(".gz") else open
    with suppress(OSError, csv.Error), unpack(file, "rt", encoding="utf-8", errors="replace", newline="") as opened:
        start = opened.read(1 << 12)
        sign = max(SEPARATORS, key=start.count)
        opened.seek(0)
        rows = csv.reader(opened, delimiter=sign)
        n = len(next(rows, []))
        before = rows.line_num
        for row in rows:
            if row and len(row) != n:
                told = f"{how_many(n, 'cell')} in line 1, {len(row)} in line {before + 1}"
                open_quote = " Check for an unclosed quote there." if rows.line_num > before + 1 else ""
                return file, told, _NO_COMMENT if start.startswith("#") else AS_HEADER + open_quote
            before = rows.line_num
    return None


def refuse_uneven(argument: str, files: list[str]) -> None:
    """What has separators in its header and was read as one column anyway has an odd row."""
    odd = next(filter(None, map(find_uneven, files)), None)
    if odd is not None:
        name, told, remedy = odd
        raise InvalidInput(
            argument, "a CSV or Parquet file that can be read", f"{Path(name).name}: {told}", None, remedy
        )
