"""How cost grows: seconds and peak memory against |S|, from 10³ to 10⁶ states. `make bench-scaling` runs it.

    .venv/bin/python benchmarks/bench_scaling.py                the default plan: a quarter of an hour, 4 GB
    .venv/bin/python benchmarks/bench_scaling.py --quick        to 10⁵ states at γ = 0.99: three minutes
    .venv/bin/python benchmarks/bench_scaling.py --full --limit 300    every γ at every size: hours
    .venv/bin/python benchmarks/bench_scaling.py --bandwidth    how far each kernel is from the machine's limit
    .venv/bin/python benchmarks/bench_scaling.py --tables --docs    no measurement: what is there into the docs

A soft optimum, a CCP, an NPL and an NFXP fit on grids, road networks and Garnet graphs. The default plan has every task
and size at γ = 0.99, and γ = 0.9 and 0.9999 at 10³, 10⁴ and 10⁵ states; `--full` has all of them at all sizes. Every
point runs in a process of its own. One that takes longer than `--limit` seconds is stopped, and larger ones of its line
are not run; nor is one that would be half as long again as the limit if cost grew no faster than |S|.

Finished points are lines of `points.jsonl` in the folder `--out`: the same command goes on where it was stopped (Ctrl-C
keeps what was finished), `--fresh` begins anew. Nothing here asserts: aims are printed beside what was measured.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from scaling_tables import KINDS, TASKS, Point, Record, all_markdown, cell

import revealed
from revealed.files import append_line, prepare_folder, write_atomically

HERE = Path(__file__).parent
ROOT = HERE.parent
SIZES = (1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
DISCOUNTS = (0.9, 0.99, 0.9999)
MIDDLE = 0.99  # the discount at which every size is run
OTHERS = (1_000, 10_000, 100_000)  # sizes at which the other discounts are run
LIMIT, MEMORY = 40.0, 12.0  # seconds and gigabytes of one point
MAKING = 600.0  # seconds in which a model must be made

Measure = Callable[[Point], Record]
Say = Callable[[str], None]


def plan(
    kinds: Sequence[str], tasks: Sequence[str], sizes: Sequence[int], discounts: Sequence[float], full: bool
) -> list[Point]:
    """All points, small ones first, so that what is stopped early has whole tables of small sizes."""
    return [
        Point(size, kind, discount, task)
        for size in sorted(sizes)
        for kind in kinds
        for discount in discounts
        if full or discount == MIDDLE or len(discounts) == 1 or size in OTHERS
        for task in tasks
    ]


class Records:
    """The finished points of a folder, by point; of several lines for one point the last counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
        self.found: dict[Point, Record] = {Point.of(r): r for r in map(_whole, lines) if r is not None}

    def add(self, point: Point, record: Record) -> None:
        append_line(self.path, json.dumps(record))
        self.found[point] = record

    def settled(self, point: Point, limit: float) -> bool:
        """Whether nothing is to be done: it was measured, or stopped by a limit no lower than this one."""
        record = self.found.get(point)
        return record is not None and ("seconds" in record or record.get("over", 0.0) >= limit)

    def hopeless(self, point: Point, limit: float) -> bool:
        """Whether a smaller one of its line was stopped, failed, or took so long that this one would be."""
        smaller = [r for p, r in self.found.items() if p.line == point.line and p.size < point.size]
        return any("seconds" not in r or r["seconds"] * point.size / r["size"] > 1.5 * limit for r in smaller)


def _whole(line: str) -> Record | None:
    """The record of a line; None for one that was cut off."""
    try:
        record = json.loads(line)
        Point.of(record)
    except (ValueError, KeyError, TypeError):
        return None
    return record


def run(points: Iterable[Point], records: Records, measure: Measure, limit: float, say: Say) -> None:
    """Measure what is not settled and not hopeless. What was finished is on the disk at any time."""
    points = list(points)
    for i, point in enumerate(points, 1):
        if records.settled(point, limit):
            continue
        if records.hopeless(point, limit):
            say(f"[{i}/{len(points)}] {point}: not run")
            continue
        records.add(point, measure(point))
        say(f"[{i}/{len(points)}] {point}: {cell(records.found[point])}")


class Processes:
    """Measures points in processes of their own. A model is made once for the tasks on it, and removed after them."""

    def __init__(self, folder: Path, limit: float, memory: float, say: Say) -> None:
        self.folder, self.limit, self.memory, self.say = folder, limit, memory, say
        self.made: Path | None = None
        self.trouble = ""  # why the model that was asked for last could not be made

    def measure(self, point: Point) -> Record:
        place = asdict(point) | {"code": version_of_code()}
        what = (point.kind, str(point.size), str(point.discount))
        model = self.folder / f"model-{'-'.join(what)}.npz"
        if model != self.made:
            self._make(what, model)
        if self.trouble:
            return place | {"failed": self.trouble}
        code, out, error = self._child("run", *what, str(model), point.task, str(self.limit), str(self.memory))
        if code == -signal.SIGALRM:
            return place | {"over": self.limit}
        return place | (json.loads(out) if code == 0 else {"failed": reason(code, error)})

    def _make(self, what: tuple[str, ...], model: Path) -> None:
        self.clean()
        begin = time.perf_counter()
        code, _, error = self._child("make", *what, str(model), "", str(MAKING), str(self.memory))
        self.say(f"  model of {what[0]}, {int(what[1]):,} states: {time.perf_counter() - begin:.1f} s")
        self.made, self.trouble = model, "" if code == 0 else f"no model: {reason(code, error)}"

    def _child(self, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, str(HERE / "scaling_points.py"), *arguments], capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr

    def clean(self) -> None:
        for path in self.folder.glob("model-*.npz"):
            path.unlink()
        self.made = None


def version_of_code() -> str:
    """Of the library as it lies on the disk now: points of one table should all be of one version."""
    seen = hashlib.sha256()
    for path in sorted(Path(revealed.__file__).parent.rglob("*.py")):
        seen.update(path.read_bytes())
    return seen.hexdigest()[:12]


def reason(code: int, error: str) -> str:
    """The last line that a process left, without what would break a table."""
    lines = error.strip().splitlines()
    words = lines[-1] if lines else f"ended with {code}"
    return words.replace("|", "/")[:80]


# ------------------------------------------------------------------------------------------------------- the output


def between(page: str, name: str, content: str) -> str:
    """The page with the part between `<!-- name: begin -->` and `<!-- name: end -->` replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"the page has no part between {begin} and {end}")
    return f"{head}{begin}\n{content}\n{end}{tail}"


def write_docs(name: str, content: str) -> None:
    page = ROOT / "docs" / "performance.md"
    write_atomically(page, between(page.read_text(encoding="utf-8"), name, content).encode())


def draw(records: Sequence[Record], path: Path) -> None:
    from scaling_picture import picture

    from revealed.files import render_png

    write_atomically(path, render_png(picture(records), dpi=130))


def show(records: Sequence[Record], markdown: bool) -> None:
    """Tables for the terminal, or as the docs hold them."""
    if markdown:
        print(all_markdown(records))
        return
    from scaling_picture import print_tables

    print_tables(records)


def about(limit: float) -> str:
    from bench_core import machine

    return f"{machine()} At most {limit:g} s a point."


# ---------------------------------------------------------------------------------------------------- the command


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--out", type=Path, default=ROOT / "results" / "scaling", help="folder of the results")
    add("--limit", type=float, default=LIMIT, help=f"seconds a point may take (default {LIMIT:g})")
    add("--memory", type=float, default=MEMORY, help=f"gigabytes a point may take (default {MEMORY:g})")
    add("--quick", action="store_true", help="sizes to 10⁵ and γ = 0.99 only")
    add("--full", action="store_true", help="every discount at every size")
    add("--kinds", nargs="+", choices=tuple(KINDS), default=list(KINDS))
    add("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    add("--sizes", nargs="+", type=float, help="numbers of states, such as 1e3 1e4")
    add("--discounts", nargs="+", type=float)
    add("--fresh", action="store_true", help="forget what an earlier run has measured")
    add("--tables", action="store_true", help="measure nothing: the tables of what is there")
    add("--markdown", action="store_true", help="print the tables as Markdown")
    add("--docs", action="store_true", help="write tables and picture into docs/")
    add("--bandwidth", action="store_true", help="bytes per second of each kernel instead")
    given = parser.parse_args()
    positive = {"--limit": [given.limit], "--memory": [given.memory], "--sizes": given.sizes or []}
    for name, values in positive.items():
        if not all(value > 0.0 for value in values):
            parser.error(f"argument {name}: expected more than 0")
    if not all(0.0 <= discount < 1.0 for discount in given.discounts or []):
        parser.error("argument --discounts: expected 0 ≤ γ < 1")
    return given


def asked_for(given: argparse.Namespace) -> list[Point]:
    sizes = [int(size) for size in given.sizes or SIZES]
    if given.quick and not given.sizes:
        sizes = [size for size in sizes if size <= max(OTHERS)]
    discounts = given.discounts or ([MIDDLE] if given.quick else DISCOUNTS)
    return plan(given.kinds, given.tasks, sizes, discounts, given.full or bool(given.discounts))


def measure_all(given: argparse.Namespace, records: Records, say: Say) -> bool:
    """Whether the plan was carried out; False after Ctrl-C."""
    points = asked_for(given)
    there = sum(records.settled(point, given.limit) for point in points)
    say(f"{len(points)} points, {there} of them from an earlier run" + (" (--fresh begins anew)" if there else ""))
    processes = Processes(given.out, given.limit, given.memory, say)
    try:
        run(points, records, processes.measure, given.limit, say)
    except KeyboardInterrupt:
        say("stopped: what was finished is kept, the same command goes on from here")
        return False
    finally:
        processes.clean()
    return True


def main() -> None:
    given = read_arguments()
    if given.bandwidth:
        from scaling_bandwidth import report

        report(given.markdown, (lambda text: write_docs("bandwidth", text)) if given.docs else None)
        return
    path = prepare_folder(given.out) / "points.jsonl"
    if given.fresh:
        path.unlink(missing_ok=True)
    records = Records(path)
    whole = given.tables or measure_all(given, records, lambda line: print(line, file=sys.stderr, flush=True))
    found = list(records.found.values())
    show(found, given.markdown)
    if given.docs:
        write_docs("scaling", f"{all_markdown(found)}\n\n{about(given.limit)}")
        draw(found, ROOT / "docs" / "images" / "scaling.png")
    elif found:
        draw(found, given.out / "scaling.png")
    sys.exit(0 if whole else 130)


if __name__ == "__main__":
    main()
