"""Run experiments: what is missing of their cells, in parallel; those that measure time afterwards, alone."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import chain
from math import ceil
from typing import Any

from revealed.checks import require_count, require_option
from revealed.experiments.catalogue import EXPERIMENTS
from revealed.experiments.cells import Cell, Measured, Results, failed_row, fingerprint
from revealed.experiments.machine import OtherWork, describe_machine, processor
from revealed.experiments.store import Store
from revealed.parallel import each, one_thread, workers
from revealed.progress import Progress, every_minute

Plan = Mapping[str, Any]  # a configuration for each experiment, by name


def run_plan(
    plan: Plan,
    folder: str | os.PathLike[str],
    jobs: int | None = None,
    progress: bool | None = None,
    fresh: bool = False,
    scale: str = "custom",
    tell: Callable[[str], object] | None = None,
) -> Store:
    """Compute the cells that `folder` lacks. Whatever stops it, what was finished is kept, and a new call goes on.

    `jobs` workers share the cells, or those of the cluster that `on_cluster` or `joblib.parallel_config` names; cells
    of experiments that measure time run one at a time in this process. `fresh` recomputes everything. `tell` is called
    with a line for each experiment that is finished, and each minute with how far the run is.
    """
    if jobs is not None:
        require_count("jobs", jobs)
    for name in plan:
        require_option("plan", name, EXPERIMENTS)
    store = Store(folder)
    wanted = [(plan[name], cell) for name in plan for cell in EXPERIMENTS[name].cells(plan[name])]
    for pair in wanted if fresh else ():
        store.discard(*pair)
    missing = [(config, cell) for config, cell in wanted if not store.has(config, cell)]
    _note_plan(store, plan, scale, computes=bool(missing))
    together = [pair for pair in missing if not EXPERIMENTS[pair[1].experiment].ALONE]
    alone = [pair for pair in missing if EXPERIMENTS[pair[1].experiment].ALONE]
    clock = _Clock(together, alone, workers(jobs), before=len(wanted) - len(missing))
    bar = Progress("reproduce", progress, total=len(missing))
    with one_thread(), bar, every_minute(tell, clock.line):
        left = Counter(cell.experiment for _, cell in missing)
        for config, cell, measured in chain(each(measure_cell, together, jobs), _one_by_one(alone)):
            store.add(config, cell, measured)
            bar.update(clock.after(cell))
            left[cell.experiment] -= 1
            if tell is not None and not left[cell.experiment]:
                tell(f"{cell.experiment} is finished, {_words(time.perf_counter() - clock.born)} after the start")
    return store


def measure_cell(config: Any, cell: Cell) -> tuple[Any, Cell, Measured]:
    """One cell, wherever it runs; a failure is a result with its reason."""
    born = time.perf_counter()
    try:
        measured = EXPERIMENTS[cell.experiment].measure(config, cell)
    except Exception as error:
        measured = Measured(failed_row(error))
    measured.row.update(cell_seconds=time.perf_counter() - born, processor=processor())
    return config, cell, measured


def _one_by_one(pairs: Iterable[tuple[Any, Cell]]) -> Iterator[tuple[Any, Cell, Measured]]:
    """Cells that measure time, each with how many cores other work took meanwhile."""
    others = OtherWork()
    for pair in pairs:
        config, cell, measured = measure_cell(*pair)
        measured.row["other_work"] = others.cores()
        yield config, cell, measured


def run_experiment(name: str, config: Any, folder: str | os.PathLike[str], **options: Any) -> Results:
    """One experiment with a configuration of your own: its results, for `draw` and `tables`."""
    return run_plan({name: config}, folder, **options).results(config, EXPERIMENTS[name].cells(config))


def results_of(store: Store, plan: Plan) -> dict[str, Results]:
    """Everything that a folder has of a plan."""
    return {name: store.results(config, EXPERIMENTS[name].cells(config)) for name, config in plan.items()}


def _note_plan(store: Store, plan: Plan, scale: str, computes: bool) -> None:
    """Which configurations are current, beside those of experiments that this call leaves alone, and which machine
    computes; a call that finds everything there leaves the machine that did."""
    about = store.read_run()
    configs = about.get("configs", {}) if about.get("scale") == scale else {}
    configs |= {name: {"fingerprint": fingerprint(plan[name]), **asdict(plan[name])} for name in plan}
    machine = describe_machine() if computes or "machine" not in about else about["machine"]
    store.write_run({"scale": scale, "configs": configs, "machine": machine})
    store.table.touch()


class _Clock:
    """Remaining time, from the cells' guessed costs and what the finished ones took for each guessed second."""

    def __init__(
        self, together: list[tuple[Any, Cell]], alone: list[tuple[Any, Cell]], workers: int, before: int = 0
    ) -> None:
        self.share = {cell: cell.cost / workers for _, cell in together} | {cell: cell.cost for _, cell in alone}
        self.total, self.done = sum(self.share.values()), 0.0
        self.in_parallel, self.alone, self.workers = len(together), len(alone), workers
        self.before, self.wanted = before, before + len(together) + len(alone)
        self.born = time.perf_counter()

    def after(self, cell: Cell) -> str:
        """What is running once a cell is done, and how long the rest will take."""
        self.done += self.share[cell]
        if self.in_parallel:  # they come first
            self.in_parallel -= 1
        else:
            self.alone -= 1
        running = min(self.workers, self.in_parallel) or min(1, self.alone)
        return f"{running} running, about {_words(self.left())} left"

    def left(self) -> float:
        """Seconds that the rest will take at the pace so far."""
        pace = (time.perf_counter() - self.born) / max(self.done, 1e-9)
        return pace * (self.total - self.done)

    def line(self) -> str:
        """How far the whole run is, for a log."""
        finished = self.wanted - self.in_parallel - self.alone
        told = f"{finished} of {self.wanted} tasks done"
        return f"{told}, about {_minutes(self.left())} left" if finished > self.before else told


def _words(seconds: float) -> str:
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _minutes(seconds: float) -> str:
    """A guess in whole minutes, rounded up; it is no better than that."""
    minutes = max(1, ceil(seconds / 60.0))
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"
