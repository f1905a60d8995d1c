"""A Monte Carlo study on disk: `study.json` says what is repeated, `replications.jsonl` has a line per finished one.

A line is on the disk before the next replication is counted; one that a kill has cut off, or that was damaged, is
passed over, and its replication computed again. A folder belongs to one study: data of two must not end up in one
table.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from revealed.checks import is_index
from revealed.errors import InvalidInput
from revealed.files import append_line, prepare_folder, write_atomically

OTHER = "Pass another folder, or remove this one."
FOREIGN = "Pass a new or an empty one, such as {path}: finished replications are written there."
LISTS = ("theta", "se", "lower", "upper")  # a number for each parameter
MARKS = {"world", "truth", "methods", "seed"}  # every study tells these


class Folder:
    """The finished replications of one study, told by `about`, which is plain numbers and words."""

    def __init__(self, folder: str | os.PathLike[str], about: dict[str, Any]) -> None:
        self.path = prepare_folder(folder, "folder")
        self.about = json.loads(json.dumps(about))
        self.key = hashlib.sha256(json.dumps(self.about, sort_keys=True).encode()).hexdigest()[:16]
        found = self._found()
        if found is None:
            text = json.dumps(self.about, indent=1, ensure_ascii=False)
            write_atomically(self.path / "study.json", text.encode("utf-8"))
        elif found != self.about:
            raise InvalidInput("folder", "a folder of the same study", differences(found, self.about), remedy=OTHER)

    @property
    def lines(self) -> Path:
        return self.path / "replications.jsonl"

    def _found(self) -> dict[str, Any] | None:
        """The study that is in the folder already; None where there is nothing."""
        path = self.path / "study.json"
        if not path.exists():
            self._require_empty()
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidInput("folder", "a study.json that can be read", str(path), remedy=OTHER) from error
        if not isinstance(found, dict) or not found.keys() >= MARKS:
            raise InvalidInput("folder", "a study.json of a Monte Carlo study", f"another file, {path}", remedy=OTHER)
        return found

    def _require_empty(self) -> None:
        """What others keep here is not to be mixed with ours. Hidden files do not count: an editor's, a cut-off one."""
        if self.lines.exists():
            expected = "a study.json next to replications.jsonl"
            raise InvalidInput("folder", expected, f"{self.path} without one", remedy=OTHER)
        others = [one.name for one in self.path.iterdir() if one.is_dir() or not one.name.startswith(".")]
        if others:
            got = f"{self.path} with other files in it"
            remedy = FOREIGN.format(path=self.path / "montecarlo")
            raise InvalidInput("folder", "the folder of a Monte Carlo study, or an empty one", got, min(others), remedy)

    def read(self) -> dict[int, dict[str, Any]]:
        """The whole lines, by replication."""
        if not self.lines.exists():
            return {}
        try:
            text = self.lines.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            got = f"{self.lines}: {error.strerror}"
            raise InvalidInput("folder", "a replications.jsonl that can be read", got, remedy=OTHER) from error
        return {found["replication"]: found for found in map(self._record_in, text.splitlines()) if found}

    def _record_in(self, line: str) -> dict[str, Any] | None:
        try:
            record = json.loads(line)
            return record if record["study"] == self.key and self._is_whole(record) else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def _is_whole(self, record: dict[str, Any]) -> bool:
        """Whether a line has what every replication of this study has: a row for each method."""
        fits, methods = record["fits"], self.about["methods"]
        known = is_index(record["replication"]) and isinstance(record["decisions"], int | None)
        return known and fits.keys() == methods.keys() and all(map(self._is_row, fits.values()))

    def _is_row(self, row: dict[str, Any]) -> bool:
        """Whether each entry is of its kind, and none is missing that the tables need."""
        lists = [row[name] for name in LISTS if name in row or row["used"]]
        words = [row["status"], row["message"], row.get("no_errors", "")]
        numbers = [row.get(name, 0.0) for name in ("seconds", "error_seconds")] + [x for one in lists for x in one]
        told = isinstance(row["used"], bool) and isinstance(row.get("settled"), bool | None)
        told = told and all(isinstance(one, list) and len(one) == len(self.about["truth"]) for one in lists)
        return told and all(isinstance(x, str) for x in words) and all(isinstance(x, int | float) for x in numbers)

    def add(self, record: dict[str, Any]) -> None:
        append_line(self.lines, json.dumps({"study": self.key, **record}))


def differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    """In words, what another study has in its place: "n = 50 there, 100 here"."""
    known = [*here, *(name for name in there if name not in here)]
    other = [name for name in known if there.get(name) != here.get(name)]
    return "; ".join(f"{name} = {_short(there.get(name))} there, {_short(here.get(name))} here" for name in other)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "…"


def digest(arrays: Iterable[Any]) -> str:
    """A name for some arrays, up to rounding: other machines differ in the last bits."""
    found = hashlib.sha256()
    for array in arrays:
        table = np.asarray(array, dtype=np.float64)
        rounded = np.round(table, 9) + 0.0  # no negative zeros
        found.update(repr(table.shape).encode() + rounded.tobytes())
    return found.hexdigest()[:16]


def without_address(text: str) -> str:
    """A description that is the same in another process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
