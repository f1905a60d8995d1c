"""A run on disk, safe against being killed at any instant.

`table.jsonl` has one line per finished cell, appended and flushed to disk as cells finish; a line that was cut off is
ignored, and its cell computed again. Arrays for pictures lie beside it and are whole before their line is written; a
line whose arrays were lost or damaged later is ignored as well. Of several lines for a cell the last one counts.
`run.json` says what was asked for, by whom and where. `table.csv` is the same table for a spreadsheet.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.errors import InvalidInput
from revealed.experiments.cells import Cell, Measured, Results, fingerprint, key_of
from revealed.files import append_line, prepare_folder, write_atomically
from revealed.mdp import Floats

if TYPE_CHECKING:
    import pandas as pd

DISCARDED = "discarded"
PLACE = ("experiment", "setting", "method", "variant", "size", "seed")


# what rows have beside their place; a frame without rows has these columns, too
COLUMNS = (
    "config", "arrays", "status", "message", "states", "seconds", "step", "iterations", "updates", "settled", "reached",
    "other_work", "floor", "span", "excess_nll", "evd", "stochastic_evd", "epic", "starc",
)  # fmt: skip


class Store:
    """The results of a folder. `Store.existing` for one that must be there already."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = prepare_folder(folder)
        self._rows = self._read()

    @classmethod
    def existing(cls, folder: str | os.PathLike[str]) -> Store:
        """The results of a folder that a run has written to."""
        path = Path(folder)
        if not (path / "run.json").is_file() or not (path / "table.jsonl").is_file():
            remedy = "`revealed reproduce --out DIR` makes one."
            raise InvalidInput("folder", "a folder written by `revealed reproduce`", str(path), remedy=remedy)
        return cls(path)

    @property
    def table(self) -> Path:
        return self.folder / "table.jsonl"

    def has(self, config: Any, cell: Cell) -> bool:
        """Whether the cell was computed; one that failed is tried again."""
        row = self._rows.get(key_of(config, cell))
        return row is not None and row["status"] != "failed"

    def discard(self, config: Any, cell: Cell) -> None:
        """Forget a cell's result, also for a run that goes on later; what it was stays in the file."""
        key = key_of(config, cell)
        if self._rows.pop(key, None) is not None:
            append_line(self.table, json.dumps({"key": key, "status": DISCARDED}))

    def add(self, config: Any, cell: Cell, measured: Measured) -> None:
        """Keep a cell's result: arrays first, then the line that says they are there."""
        key = key_of(config, cell)
        if measured.arrays:
            prepare_folder(self.folder / "arrays")
            buffer = io.BytesIO()
            np.savez_compressed(buffer, allow_pickle=False, **measured.arrays)
            write_atomically(self._arrays(key), buffer.getvalue())
        row = {"key": key, **cell.place, "config": fingerprint(config), "arrays": bool(measured.arrays)} | measured.row
        line = json.dumps(row, default=_plain)
        append_line(self.table, line)
        self._rows[key] = json.loads(line)

    def _read(self) -> dict[str, dict[str, Any]]:
        """The whole rows by key. Cells of the others are computed again."""
        if not self.table.exists():
            return {}
        lines = self.table.read_text(encoding="utf-8", errors="replace").splitlines()
        rows = {row["key"]: row for row in map(_row_in, lines) if row}
        rows = {key: row for key, row in rows.items() if row.get("status") != DISCARDED}
        return {key: row for key, row in rows.items() if not row.get("arrays") or _is_whole(self._arrays(key))}

    def _arrays(self, key: str) -> Path:
        return self.folder / "arrays" / f"{key}.npz"

    def results(self, config: Any, cells: list[Cell]) -> Results:
        """What there is of these cells."""
        import pandas as pd

        wanted = [key_of(config, cell) for cell in cells]
        rows = [self._rows[key] for key in wanted if key in self._rows]

        def frame(failed: bool) -> pd.DataFrame:
            # each from its own rows: what a failed one lacks must not turn the others' whole numbers into floats
            chosen = [row for row in rows if (row["status"] == "failed") == failed]
            columns = None if chosen else ["key", *PLACE, *COLUMNS]
            return pd.DataFrame(chosen, columns=columns)

        return Results(config, frame(failed=False), frame(failed=True), self.load)

    def load(self, key: str) -> Mapping[str, Floats]:
        with np.load(self._arrays(key), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}

    def write_csv(self, frame: pd.DataFrame) -> Path:
        first = [name for name in PLACE if name in frame]
        ordered = frame[[*first, *(name for name in frame if name not in first)]]
        return write_atomically(self.folder / "table.csv", ordered.to_csv(index=False).encode("utf-8"))

    def write_run(self, about: dict[str, Any]) -> None:
        write_atomically(self.folder / "run.json", json.dumps(about, indent=1, ensure_ascii=False).encode("utf-8"))

    def read_run(self) -> dict[str, Any]:
        """What the last run here asked for; empty where there was none."""
        path = self.folder / "run.json"
        try:
            return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        except (OSError, ValueError, RecursionError) as error:
            remedy = "Remove it and run `revealed reproduce` again; finished tasks are kept."
            raise InvalidInput("folder", "a run.json that can be read", str(path), remedy=remedy) from error


def _row_in(line: str) -> dict[str, Any] | None:
    """The row that a line holds; None where it was cut off by a kill."""
    try:
        row = json.loads(line)
        return row if isinstance(row["key"], str) and isinstance(row["status"], str) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's own, which JSON knows."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a row holds numbers and words, not {type(value).__name__}")


def _is_whole(path: Path) -> bool:
    """Whether a file of arrays is there and what it holds agrees with its checksums."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError):  # the last: a damaged byte names a method
        return False
