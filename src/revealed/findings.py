"""What the folder of a run has to tell: results by experiment, figures, tables and verdicts, without running anything.

A run that is not finished, or whose experiments were partly made by another version of the library, is shown as far as
possible: what cannot be shown becomes a note.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.drawn import Shown, drawing_keys, kept, or_note, show
from revealed.errors import InvalidInput
from revealed.experiments.catalogue import EXPERIMENTS
from revealed.experiments.cells import Cell, Experiment, Results, fingerprint
from revealed.experiments.rules import Verdict
from revealed.experiments.runner import results_of
from revealed.experiments.store import Store
from revealed.experiments.verdicts import judge
from revealed.parallel import each, one_thread
from revealed.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

AGAIN = "made by another version of the library; run `revealed reproduce` again"


@dataclass(frozen=True)
class Chapter:
    """One experiment: what there is of the cells asked for, and how it looks."""

    experiment: Experiment
    results: Results
    shown: Shown

    @property
    def name(self) -> str:
        return self.experiment.NAME

    @cached_property
    def wanted(self) -> list[Cell]:
        return self.experiment.cells(self.results.config)

    @property
    def done(self) -> int:
        return len(self.results.frame)

    @property
    def failed(self) -> int:
        return len(self.results.failed)

    @property
    def missing(self) -> int:
        return len(self.wanted) - self.done - self.failed

    @property
    def seeds(self) -> int:
        return len({cell.seed for cell in self.wanted})

    @property
    def seconds(self) -> float:
        """Computing time, summed over cells."""
        frames = (self.results.frame, self.results.failed)
        return float(sum(frame["cell_seconds"].sum() for frame in frames if "cell_seconds" in frame))

    @property
    def rows(self) -> pd.DataFrame:
        """All rows, failed ones last."""
        import pandas as pd

        frames = [frame for frame in (self.results.frame, self.results.failed) if len(frame)]
        return pd.concat(frames, ignore_index=True) if frames else self.results.frame


@dataclass(frozen=True)
class Findings:
    """Everything in the order of the report; `notes` tells what was left out and why."""

    store: Store
    scale: str
    machine: dict[str, Any]
    chapters: list[Chapter]
    verdicts: list[Verdict]
    notes: list[str]

    @property
    def folder(self) -> Path:
        return self.store.folder

    @property
    def rows(self) -> pd.DataFrame:
        """All rows of all experiments."""
        import pandas as pd

        frames = [rows for chapter in self.chapters if len(rows := chapter.rows)]
        return pd.concat(frames, ignore_index=True) if frames else self.chapters[0].rows

    def count(self, what: str) -> int:
        """Cells `wanted`, `done`, `failed` or `missing` in all."""
        counts = (getattr(chapter, what) for chapter in self.chapters)
        return sum(len(count) if isinstance(count, list) else count for count in counts)

    @property
    def seconds(self) -> float:
        return sum(chapter.seconds for chapter in self.chapters)


def gather(folder: str | os.PathLike[str], jobs: int | None = None, progress: bool | None = None) -> Findings:
    """Read a run's folder, judge the claims, and draw; the same folder always gives the same findings.

    Most of the time goes into drawing: `jobs` workers share the experiments that were not drawn before as they are.
    """
    store = Store.existing(folder)
    about = store.read_run()
    plan, notes = read_plan(about, store.folder)
    with one_thread(), Progress("report", progress, total=len(plan)) as bar:
        results = results_of(store, plan)
        shown = _draw(store.folder, results, jobs, bar)
        verdicts = or_note(lambda: judge(results), [], "The claims could not be judged", notes)
    chapters = [Chapter(EXPERIMENTS[name], results[name], shown[name]) for name in plan]
    return Findings(store, str(about.get("scale", "custom")), about.get("machine", {}), chapters, verdicts, notes)


def _draw(folder: Path, results: dict[str, Results], jobs: int | None, bar: Progress) -> dict[str, Shown]:
    """What was drawn before and is still right is taken from the folder."""
    keys = drawing_keys(folder, results)
    found = {name: kept(folder, name, key) for name, key in keys.items()}
    shown = {name: one for name, one in found.items() if one is not None}
    bar.update(advance=len(shown))
    new = [(name, results[name]) for name in results if name not in shown]
    workers = None if jobs is None else min(jobs, max(1, len(new)))  # a worker takes seconds to start
    for name, made in each(show, new, workers):
        shown[name] = replace(made, key=keys[name])
        bar.update(name)
    return shown


def read_plan(about: Any, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """The configurations that a run was made with, in the order of the report, and what to say of those left out."""
    given = about.get("configs") if isinstance(about, dict) else None
    configs: dict[str, Any] = given if isinstance(given, dict) else {}
    plan: dict[str, Any] = {}
    notes: list[str] = []
    for name in _in_order(configs):
        config = _rebuilt(name, configs[name])
        if config is None:
            notes.append(f"`{name}` is left out: {AGAIN}.")
        else:
            plan[name] = config
    if not plan:
        remedy = "Run `revealed reproduce` into the same folder to recreate them."
        raise InvalidInput("folder", "results of this version of the library", f"none in {folder}", remedy=remedy)
    return plan, notes


def _in_order(names: Iterable[str]) -> list[str]:
    given = list(names)
    return [name for name in EXPERIMENTS if name in given] + [name for name in given if name not in EXPERIMENTS]


def _rebuilt(name: str, stored: Any) -> Any:
    """The configuration as the experiment's own class; None if it is not what this version would have written."""
    if name not in EXPERIMENTS or not isinstance(stored, dict):
        return None
    values = {key: value for key, value in stored.items() if key != "fingerprint"}
    try:
        config = _like(EXPERIMENTS[name].Config(), values)
        return config if fingerprint(config) == stored.get("fingerprint") else None
    except (TypeError, ValueError, AttributeError):
        return None


def _like(pattern: Any, value: Any) -> Any:
    """JSON has lists and objects where a frozen configuration has tuples and configurations of its own."""
    if is_dataclass(pattern) and isinstance(value, dict):
        return type(pattern)(**{key: _like(getattr(pattern, key, None), item) for key, item in value.items()})
    if isinstance(value, list):
        first = pattern[0] if isinstance(pattern, tuple) and pattern else None
        return tuple(_like(first, item) for item in value)
    return value
