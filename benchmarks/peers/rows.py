"""A row of the table: one piece of work, both sides' seconds, and how far their results are apart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

COLUMNS = ("work", "ours", "rival", "ratio", "aim", "", "first call, ours and rival")


@dataclass
class Row:
    """Seconds are the best of several; `first` are those of the first call of each side, compilation included.

    `aim` is the ratio aimed at. A row with `failed` was not measured, and says why.
    """

    key: str
    work: str
    rival: str
    aim: float
    ours: float | None = None
    theirs: float | None = None
    first: tuple[float, float] | None = None
    agreement: str = ""
    note: str = ""
    failed: str = ""

    @property
    def ratio(self) -> float | None:
        return None if not self.ours or self.theirs is None else self.theirs / self.ours

    @property
    def verdict(self) -> str:
        if self.ratio is None:
            return "not measured"
        return "met" if self.ratio >= self.aim else "missed"

    def cells(self) -> list[str]:
        return [
            self.work,
            seconds(self.ours),
            f"{self.rival}: {seconds(self.theirs)}" if self.theirs is not None else self.rival,
            times(self.ratio),
            f"≥ {times(self.aim)}",
            self.verdict,
            "" if self.first is None else " / ".join(seconds(x) for x in self.first),
        ]

    @property
    def remark(self) -> str:
        """How far the results are apart, and what else has to be known: the line below the table."""
        return ". ".join(part for part in (self.failed, self.agreement, self.note) if part) + "."


@dataclass(frozen=True)
class Task:
    """A row to be: the rival's script, and `measure(row, rival, folder, laps)`, which fills the row in."""

    row: Row
    script: str
    measure: Callable[[Row, Any, Path, int], None]
    quick: bool = True


def seconds(x: float | None) -> str:
    return "" if x is None else f"{x * 1e3:.3g} ms" if x < 1.0 else f"{x:.3g} s"


def times(x: float | None) -> str:
    return "" if x is None else f"{x:,.0f}×" if x >= 10.0 else f"{x:.1f}×" if x % 1 else f"{x:.0f}×"


@dataclass
class Laps:
    """Both sides by turns, so that a busy machine troubles both alike; the first lap is kept apart."""

    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def run(self, us: Callable[[], float], them: Callable[[], float], laps: int, inner: int = 1) -> None:
        """`laps` times: `inner` of ours, then one of theirs (ours are so short that one would catch any hiccup)."""
        for _ in range(laps):
            self.ours += [us() for _ in range(inner)]
            self.theirs.append(them())

    @property
    def first(self) -> tuple[float, float]:
        return self.ours[0], self.theirs[0]

    @property
    def best(self) -> tuple[float, float]:
        return min(self.ours), min(self.theirs)


def clock(act: Callable[[], Any]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def read_rows(path: Path, settings: dict[str, Any]) -> tuple[dict[str, Row], dict[str, str]]:
    """Rows that were measured under the same settings, and what was said of the rivals; failed rows do not count."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        rows = [Row(**row) for row in kept["rows"]] if kept["settings"] == settings else []
        about = dict(kept["about"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}, {}
    for row in rows:
        row.first = None if row.first is None else (row.first[0], row.first[1])
    return {row.key: row for row in rows if not row.failed}, about


def rows_as_json(rows: list[Row], settings: dict[str, Any], about: dict[str, str]) -> bytes:
    found = {
        "settings": settings,
        "about": about,
        "rows": [asdict(row) for row in rows],
        "verdicts": {row.key: {"ratio": row.ratio, "verdict": row.verdict} for row in rows},
    }
    return json.dumps(found, indent=1, ensure_ascii=False).encode()
