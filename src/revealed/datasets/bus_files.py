"""Rust's bus files: where they are looked for, how they are read, and what they say about each month.

A file is a matrix stacked column by column, one whole number per line; a column is a bus. Its first eleven rows are
the bus's number; month and year of purchase; month, year and odometer of the first replacement; the same of the second
(zeros where there was none); month and year of the first reading. Then the odometer is read every month.

A month belongs to the engine that runs at its reading: replacements so far are s_t = [odo ≥ o₁ > 0] + [odo ≥ o₂ > 0],
mileage is odo − o_s, and the engine is replaced in a month if there is one more replacement at the next reading. The
headers give months of replacement, too, but they differ from the odometer by up to a year and a half; as in the
published estimates, the odometer decides.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Ints
from revealed.errors import InvalidInput, MissingData
from revealed.files import as_path
from revealed.voices import shown

if TYPE_CHECKING:
    import pandas as pd

FILES: dict[int, tuple[str, int, int]] = {  # group: file, rows, buses
    1: ("g870.asc", 36, 15),
    2: ("rt50.asc", 60, 4),
    3: ("t8h203.asc", 81, 48),
    4: ("a530875.asc", 128, 37),
    5: ("a530874.asc", 137, 12),
    6: ("a452374.asc", 137, 10),
    7: ("a530872.asc", 137, 18),
    8: ("a452372.asc", 137, 18),
}
HEADER = 11
BUS, FIRST_REPLACED, SECOND_REPLACED, FIRST_MONTH, FIRST_YEAR = 0, 5, 8, 9, 10  # rows of the header
MOST_MILES = 450_000  # what the mileage bins cover
MOST_NUMBER = 10**9
FOLDER = "rust1987"
GROUPS, BINS = (1, 2, 3, 4), (90, 175)  # whose counts ship with the package


@dataclass(frozen=True)
class Months:
    """One entry per bus and month, each bus's first month left out, for then no increment is known.

    `time` counts the readings from 0, `year` and `month` are the calendar's; `x` is the mileage bin from 0, `d` whether
    the engine was replaced, `usage` the bins driven since the reading before (from bin 0 of the counting from 1 where
    the engine was replaced in between).
    """

    bus: Ints
    group: Ints
    time: Ints
    year: Ints
    month: Ints
    odometer: Ints
    mileage: Ints
    x: Ints
    d: Ints
    usage: Ints

    def frame(self) -> pd.DataFrame:
        """The months as a table; `date` is the first day of the month."""
        import pandas as pd

        columns = dict(vars(self))
        calendar = {"year": columns.pop("year"), "month": columns.pop("month")}
        table = pd.DataFrame(columns)
        table.insert(3, "date", pd.to_datetime(pd.DataFrame(calendar).assign(day=1)))
        return table


def find_folder(path: Any, groups: Sequence[int]) -> Path | None:
    """The folder that holds the files of these groups: `path`, or the first of the usual places; None if none does."""
    if path is None:
        return next((folder for folder in usual_places() if not _lacking(folder, groups)), None)
    try:
        folder = as_path("path", path).expanduser()
    except (RuntimeError, InvalidInput) as error:
        remedy = f"Omit path: {shipped()}."
        raise InvalidInput("path", "the folder of Rust's files", shown(path), remedy=remedy) from error
    lacking = _lacking(folder, groups)
    if lacking:
        got = (
            f"{folder}, which is not a folder"
            if not os.path.isdir(folder)
            else f"{folder} without {', '.join(lacking)}"
        )
        expected = f"the folder with {', '.join(FILES[g][0] for g in groups)}"
        raise MissingData("path", expected, got, remedy=f"Put {_files(lacking)} there, or omit path: {shipped()}.")
    return folder


def _files(names: Sequence[str]) -> str:
    return "that file" if len(names) == 1 else "those files"


def shipped() -> str:
    """For whom no raw files are needed, in words."""
    bins = " or ".join(map(str, BINS))
    return f"counts shipped with revealed cover groups {GROUPS[0]} to {GROUPS[-1]} with {bins} bins"


def usual_places() -> list[Path]:
    """$REVEALED_DATA, its subfolder rust1987, and the user's cache."""
    given = os.environ.get("REVEALED_DATA")
    named = [Path(given).expanduser(), Path(given).expanduser() / FOLDER] if given else []
    return [*named, _user_cache() / "revealed" / FOLDER]


def where_to_put_them() -> str:
    """The remedy where raw files are missing."""
    return (
        f"Put the raw files ({FILES[1][0]}, …) into a folder and pass path=, set $REVEALED_DATA to it, "
        f"or use {usual_places()[-1]}."
    )


def _user_cache() -> Path:
    home = Path(os.path.expanduser("~"))
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")


def _lacking(folder: Path, groups: Iterable[int]) -> list[str]:
    return [FILES[group][0] for group in groups if not os.path.isfile(folder / FILES[group][0])]


def read_months(folder: Path, groups: Sequence[int], bins: int) -> Months:
    """The months of some groups, one after the other, with mileage in `bins` bins."""
    parts = [_months(group, _read_matrix(folder, group), bins) for group in groups]
    return Months(*(np.concatenate([getattr(part, name) for part in parts]) for name in Months.__dataclass_fields__))


def _read_matrix(folder: Path, group: int) -> Ints:
    """(rows, buses) whole numbers of a group's file."""
    name, rows, buses = FILES[group]
    try:
        text = (folder / name).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise MissingData("path", f"a file {name} that can be read", error.strerror or error) from error
    lines = text.rstrip("\x1a\r\n\t ").splitlines()  # \x1a ends files of the time
    numbers = [_whole(line, name, k) for k, line in enumerate(lines, 1)]
    if len(numbers) != rows * buses:
        where = f"{name}, line {min(len(numbers), rows * buses) + 1}"
        expected = f"{rows * buses} whole numbers, {rows} for each of {buses} buses, in {name}"
        raise InvalidInput("path", expected, len(numbers), where, "Is it another group's file, or truncated?")
    return np.array(numbers, dtype=np.intp).reshape(buses, rows).T


def _whole(line: str, name: str, k: int) -> int:
    try:
        number = int(line)
    except ValueError:
        number = -1
    if not 0 <= number < MOST_NUMBER:
        raise InvalidInput("path", "one whole number >= 0 per line", shown(line[:40]), f"{name}, line {k}")
    return number


def _months(group: int, matrix: Ints, bins: int) -> Months:
    header, odometer = matrix[:HEADER], matrix[HEADER:]
    first, second = header[FIRST_REPLACED], header[SECOND_REPLACED]
    replaced = ((odometer >= first) & (first > 0)).astype(np.intp) + ((odometer >= second) & (second > 0))
    mileage = odometer - np.choose(replaced, [np.zeros_like(first), first, second])
    d = np.zeros_like(odometer)
    d[:-1] = np.diff(replaced, axis=0)
    _require_sense(group, header, odometer, mileage, d)
    from_one = np.maximum(-(-bins * mileage // MOST_MILES), 1)  # ceil in whole numbers
    usage = from_one[1:] - from_one[:-1] * (1 - d[:-1])
    time = np.repeat(np.arange(len(odometer))[:, None], odometer.shape[1], axis=1)
    calendar = 12 * header[FIRST_YEAR] + header[FIRST_MONTH] - 1 + time
    full = {
        "bus": np.broadcast_to(header[BUS], odometer.shape),
        "group": np.full_like(odometer, group),
        "time": time,
        "year": 1900 + calendar // 12,
        "month": calendar % 12 + 1,
        "odometer": odometer,
        "mileage": mileage,
        "x": from_one - 1,
        "d": d,
    }
    kept = {name: table[1:].T.reshape(-1) for name, table in full.items()}  # bus by bus
    return Months(**kept, usage=usage.T.reshape(-1))


def _require_sense(group: int, header: Ints, odometer: Ints, mileage: Ints, d: Ints) -> None:
    """Readings that no bus can have are named; Rust's own files have none."""
    month = header[FIRST_MONTH]
    if ((month < 1) | (month > 12)).any():
        bus = int(np.flatnonzero((month < 1) | (month > 12))[0])
        raise InvalidInput("path", "months from 1 to 12", int(month[bus]), _place(group, header, FIRST_MONTH, bus))
    fell = np.zeros_like(odometer, dtype=bool)
    fell[1:] = np.diff(odometer, axis=0) < 0
    for wrong, expected, values in (
        (fell, "odometer readings that never decrease", odometer),
        (mileage > MOST_MILES, f"at most {MOST_MILES} miles on an engine", mileage),
        (d > 1, "at most one replacement in a month", d),
    ):
        if wrong.any():
            bus, t = (int(i) for i in np.argwhere(wrong.T)[0])
            raise InvalidInput("path", expected, int(values[t, bus]), _place(group, header, HEADER + t, bus))


def _place(group: int, header: Ints, row: int, bus: int) -> str:
    name, rows, _ = FILES[group]
    return f"{name}, line {bus * rows + row + 1}, bus {header[BUS, bus]}"
