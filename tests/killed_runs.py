"""Runs in processes of their own, for tests/test_runner.py: some are killed at random instants, some run side by side.

    python killed_runs.py killed FOLDER [heavy]      python killed_runs.py together FOLDER [heavy]

The processes are forks of this one, which has loaded everything and has no threads: a run begins at once. `heavy`
replaces the estimation by rows and arrays that take long to write, so that kills fall into the writing.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from revealed.experiments import obstacleworld
from revealed.experiments.cells import Cell, Measured
from revealed.experiments.obstacleworld import Config
from revealed.experiments.runner import run_plan
from revealed.experiments.store import Store

CONFIG = Config(size=5, trajectories=(1, 3), seeds=3)
KILLS, MOST = 5, 4  # of the plan's 24 cells at most 20 are done by then: no run ends by itself


def heavy(config: Config, cell: Cell) -> Measured:
    """A result of many bytes, and known: noise, which does not compress, from the cell's own seed."""
    row = {"status": "converged", "message": "m" * 50_000, "seconds": 0.0, "value": cell.size + cell.seed / 8}
    return Measured(row, {"noise": noise(cell)})


def noise(cell: Cell) -> np.ndarray:
    return np.random.default_rng([cell.seed, cell.size, len(cell.method), len(cell.variant)]).normal(size=10_000)


def fork(folder: Path, most: int | None = None) -> int:
    """A process that runs the plan, but stops before it has done more than `most` cells and waits to be killed."""
    pid = os.fork()
    if pid:
        return pid
    if most is not None:
        obstacleworld.measure = _only(obstacleworld.measure, most)
    run_plan({"obstacleworld": CONFIG}, folder, jobs=1, progress=False)
    os._exit(0)


def _only(measure, most: int):
    done = 0

    def measured(config: Config, cell: Cell) -> Measured:
        nonlocal done
        done += 1
        if done > most:
            time.sleep(60.0)
        return measure(config, cell)

    return measured


def kill_runs(folder: Path) -> None:
    """Kill one run after another, each when it has added a cell or more; print how many cells each had left."""
    dice = random.Random(7)
    for _ in range(KILLS):
        before = size_of(folder)
        pid = fork(folder, MOST)
        while size_of(folder) == before:
            time.sleep(0.001)
        time.sleep(dice.uniform(0.0, 0.1))
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL  # not one ended by itself
        store = Store(folder)
        print(sum(store.has(CONFIG, cell) for cell in obstacleworld.cells(CONFIG)), flush=True)


def size_of(folder: Path) -> int:
    table = folder / "table.jsonl"
    return table.stat().st_size if table.exists() else 0


def run_together(folder: Path) -> None:
    """Two runs at once in one folder."""
    for pid in [fork(folder), fork(folder)]:
        assert os.waitpid(pid, 0)[1] == 0


if __name__ == "__main__":
    if "heavy" in sys.argv[3:]:
        obstacleworld.measure = heavy
    {"killed": kill_runs, "together": run_together}[sys.argv[1]](Path(sys.argv[2]))
