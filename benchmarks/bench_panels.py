"""How long it takes to count a panel on disk, and in how much memory: each count runs in a process of its own.

.venv/bin/python benchmarks/bench_panels.py                  2·10⁵, 2·10⁶ and 2·10⁷ rows: about a minute
.venv/bin/python benchmarks/bench_panels.py --rows 1e8       one size; 10⁸ rows are a file of about 0.5 GB
.venv/bin/python benchmarks/bench_panels.py --markdown       the table as docs/performance.md holds it

Rows are decisions of agents on 90 states with 2 actions, shuffled, in one Parquet file: 1,000 periods each, in which
an agent is in about 40 of the states, as a bus is between two overhauls.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_core import Row, machine, print_markdown, print_table  # first: it sets the thread counts

# isort: split
import numpy as np

PERIODS = 1000
COUNT = """
import resource, sys, time
import revealed as rv
begun = time.perf_counter()
columns = {"id": "id", "time": "t", "state": "s", "action": "a"}
demos = rv.Demonstrations.from_frame(sys.argv[1], keep_steps=sys.argv[2] == "steps", **columns)
seconds = time.perf_counter() - begun
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(seconds, peak, demos.n_agents, demos.by_agent.nnz, demos.n_decisions, demos.transition_counts.sum())
"""


def write_panel(path: Path, rows: int, seed: int = 0) -> None:
    """A panel whose rows are shuffled from the first to the last."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, agents = np.random.default_rng(seed), max(1, rows // PERIODS)
    base = rng.integers(0, 50, agents, dtype=np.int32)[:, None]
    state = base + np.cumsum(rng.integers(0, 3, (agents, PERIODS), dtype=np.int32), axis=1, dtype=np.int32) % 40
    columns = {
        "id": np.repeat(np.arange(agents, dtype=np.int32), PERIODS),
        "t": np.tile(np.arange(PERIODS, dtype=np.int32), agents),
        "s": state.reshape(-1),
        "a": (rng.random(agents * PERIODS, dtype=np.float32) < 0.1).astype(np.int32),
    }
    order = rng.permutation(agents * PERIODS)
    pq.write_table(pa.table({name: values[order] for name, values in columns.items()}), path)


def count(path: Path, how: str) -> tuple[float, float, list[str]]:
    """Seconds, peak memory in MB, and what was counted."""
    done = subprocess.run([sys.executable, "-c", COUNT, str(path), how], capture_output=True, text=True, check=True)
    seconds, peak, *counts = done.stdout.split()
    return float(seconds), float(peak), counts


def rows_of(size: int, folder: Path) -> list[Row]:
    path = folder / f"panel-{size}.parquet"
    begun = time.perf_counter()
    # in a process of its own: one that is started counts the memory of the one that starts it as its own
    subprocess.run([sys.executable, __file__, "--write", str(path), "--rows", str(size)], check=True)
    made = time.perf_counter() - begun
    print(f"{size:,} rows written in {made:.0f} s ({path.stat().st_size / 1e6:.0f} MB)", file=sys.stderr)
    seconds, peak, counts = count(path, "counts")
    aim = 60.0 * size / 1e8 if size >= 10_000_000 else None
    note = f"{int(counts[0]):,} agents, {int(counts[1]):,} (id, state, action); peak {peak:,.0f} MB"
    found = [Row(f"{size:,} rows of Parquet, counted out of core", seconds, aim=aim, note=note)]
    if size <= 2_000_000:
        seconds, peak, same = count(path, "steps")
        assert same == counts, "the two ways count differently"
        found.append(
            Row("the same read into memory, single steps kept", seconds, note=f"peak {peak:,.0f} MB; same counts")
        )
    path.unlink()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--rows", type=float, action="append", help="so many rows; may be given several times")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write is not None:
        write_panel(arguments.write, int(arguments.rows[0]))
        return
    sizes = [int(size) for size in arguments.rows or (2e5, 2e6, 2e7)]
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for size in sizes for row in rows_of(size, Path(folder))]
    if arguments.markdown:
        print_markdown(rows, [machine()])
    else:
        print_table(rows, [machine()], title="Panels on disk")


if __name__ == "__main__":
    main()
