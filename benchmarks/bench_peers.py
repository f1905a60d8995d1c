"""The rivals, side by side: econirl, imitation and QuantEcon on the same problems, in the same run. `make bench-peers`.

    .venv/bin/python benchmarks/bench_peers.py               everything: half an hour, most of it the rivals'
    .venv/bin/python benchmarks/bench_peers.py --quick       the small problems: a few minutes
    .venv/bin/python benchmarks/bench_peers.py --resume      go on where the last run stopped
    .venv/bin/python benchmarks/bench_peers.py --markdown    the table as docs/performance.md holds it

`make bench-peers` installs the rivals into an environment of their own first (ARGS="--quick" passes options on). Both
sides use one thread and take turns; times are the best of several, the first call of each side is reported apart, and
so is what importing it takes. Each row is written as it is done: Ctrl-C keeps what was finished. Nothing here asserts.
"""

from __future__ import annotations

import os
import sys

from peers.talking import ONE_THREAD, PYTHON, Rival, RivalFailed

os.environ.update(ONE_THREAD)  # before NumPy and JAX are imported: they read it once

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_core import machine
from peers import buses, fixed_points, objectworlds
from peers.rows import COLUMNS, Row, Task, read_rows, rows_as_json, seconds

from revealed.files import prepare_folder, write_atomically

OUT = Path(__file__).resolve().parents[1] / "results" / "peers.json"
LAPS, QUICK_LAPS = 3, 2


class Peers:
    """Each rival's process, started when first asked for; one that failed to start is not tried again."""

    def __init__(self, folder: Path, python: Path = PYTHON) -> None:
        self.folder, self.python = folder, python
        self.running: dict[str, Rival] = {}
        self.broken: dict[str, str] = {}

    def get(self, script: str) -> Rival:
        if script in self.broken:
            raise RivalFailed(self.broken[script])
        if script not in self.running:
            try:
                self.running[script] = Rival(script, self.python, self.folder / f"{Path(script).stem}.log")
            except RivalFailed as problem:
                self.broken[script] = str(problem)
                raise
        return self.running[script]

    def close(self, script: str) -> None:
        if script in self.running:
            self.running.pop(script).close()

    def close_all(self) -> None:
        for script in list(self.running):
            self.close(script)


def all_tasks() -> list[Task]:
    return [*buses.tasks(), *objectworlds.tasks(), *fixed_points.tasks()]


def chosen_tasks(tasks: list[Task], quick: bool, only: list[str]) -> list[Task]:
    """Those whose key contains one of the words of `only`, where there are any."""
    return [t for t in tasks if (t.quick or not quick) and (not only or any(word in t.row.key for word in only))]


def measure_all(
    tasks: list[Task], peers: Peers, laps: int, done: dict[str, Row], about: dict[str, str], save: Callable[[], None]
) -> None:
    """Fills `done` and `about`; rows that are in `done` stay. `save` is called after each row. Ctrl-C ends it early."""
    try:
        for k, task in enumerate(tasks, start=1):
            if task.row.key in done:
                continue
            say(f"measuring {k} of {len(tasks)}: {task.row.work}")
            row = done[task.row.key] = measure_one(task, peers, laps, about)
            save()
            say(f"  {progress_line(row)}")
    except KeyboardInterrupt:
        finished = sum(task.row.key in done for task in tasks)
        say(f"stopped; {finished} of {len(tasks)} rows are kept, --resume goes on from there")


def measure_one(task: Task, peers: Peers, laps: int, about: dict[str, str]) -> Row:
    row = task.row
    try:
        rival = peers.get(task.script)
        versions = ", ".join(f"{name} {v}" for name, v in rival.versions.items())
        about[rival.name] = f"{versions}: importing it takes {seconds(rival.import_seconds)}."
        task.measure(row, rival, peers.folder, laps)
    except RivalFailed as problem:
        row.ours = row.theirs = row.first = None
        row.failed = str(problem)
        peers.close(task.script)  # a crashed one is started again for its next row
    return row


def progress_line(row: Row) -> str:
    return row.failed or f"ours {seconds(row.ours)}, {row.rival} {seconds(row.theirs)}: {row.verdict}"


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def markdown(rows: list[Row], lines: list[str]) -> str:
    table = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    table += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    remarks = [f"- {row.work}: {row.remark}" for row in rows]
    return "\n".join([*table, "", *remarks, "", *lines])


def print_table(rows: list[Row], lines: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Side by side with the rivals")
    for name in COLUMNS:
        table.add_column(name, overflow="fold", justify="right" if name in ("ours", "ratio", "aim") else "left")
    for row in rows:
        table.add_row(*row.cells())
    console = Console()
    if not console.is_terminal:
        console = Console(width=180)
    console.print(table)
    remarks = [f"{row.work}: {row.remark}" for row in rows]
    console.print("\n".join([*remarks, "", *lines]), highlight=False, markup=False)


def options(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the small problems only")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help="rows whose key contains one of the words"
    )
    parser.add_argument("--laps", type=int, metavar="N", help=f"turns of each side ({LAPS}; {QUICK_LAPS} with --quick)")
    parser.add_argument("--resume", action="store_true", help="keep the rows that the last run finished")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", default=str(OUT), help="where the rows are kept (%(default)s)")
    return parser.parse_args(given)


def main(given: list[str] | None = None, tasks: list[Task] | None = None, python: Path = PYTHON) -> int:
    chosen = options(given)
    path, laps = Path(chosen.json), chosen.laps or (QUICK_LAPS if chosen.quick else LAPS)
    prepare_folder(path.parent, "--json")
    settings: dict[str, Any] = {"machine": machine(), "laps": laps}
    wanted = chosen_tasks(all_tasks() if tasks is None else tasks, chosen.quick, chosen.only)
    if not wanted:
        say(f"no row has a key with {' or '.join(chosen.only)}: " + ", ".join(t.row.key for t in tasks or all_tasks()))
        return 2
    done, about = read_rows(path, settings)
    if not chosen.resume:  # rows that are not asked for stay as they are
        done = {key: row for key, row in done.items() if key not in {task.row.key for task in wanted}}

    def save() -> None:
        write_atomically(path, rows_as_json(list(done.values()), settings, about))

    with tempfile.TemporaryDirectory() as folder:
        peers = Peers(Path(folder), python)
        try:
            measure_all(wanted, peers, laps, done, about, save)
        finally:
            peers.close_all()
    rows = [done[task.row.key] for task in wanted if task.row.key in done]
    lines = [machine(), *about.values(), "One thread on both sides; best of several turns."]
    if chosen.markdown:
        print(markdown(rows, lines))
    else:
        print_table(rows, lines)
    return 1 if any(row.failed for row in rows) or len(rows) < len(wanted) else 0


def stay_on_one_core() -> None:
    """So that one thread is one thread: our sweeps would otherwise share a large model out among the cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


if __name__ == "__main__":
    stay_on_one_core()
    sys.exit(main())
