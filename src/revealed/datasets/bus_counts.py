"""What the model needs of Rust's buses: how often (mileage bin, decision, increment) was seen together.

These counts are the sufficient statistics of decisions and increments, also for standard errors over both, but not for
those over buses. For groups 1 to 4 with 90 and 175 bins they are in rust_bus_counts.csv, which tools/count_buses.py
makes from the raw files, so that the published estimates come out on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from revealed.checks import Floats, Ints
from revealed.datasets.bus_files import BINS, GROUPS, Months, read_months

NAME = "rust_bus_counts.csv"
COLUMNS = ("bins", "group", "x", "d", "increment", "count")


def is_shipped(groups: Sequence[int], bins: int) -> bool:
    return bins in BINS and set(groups) <= set(GROUPS)


def shipped_counts(groups: Sequence[int], bins: int) -> Floats:
    """(2·bins, increments): how often increment o came with decision a in bin x, in row 2x + a."""
    bin_choice, group, x, d, increment, count = _shipped().T
    chosen = (bin_choice == bins) & np.isin(group, groups)
    return _table(bins, x[chosen], d[chosen], increment[chosen], count[chosen])


def count_months(months: Months, bins: int) -> Floats:
    """The same table from raw files."""
    return _table(bins, months.x, months.d, months.usage, np.ones_like(months.x))


def counts_as_text(folder: Path) -> str:
    """The shipped file as it comes out of the raw files in `folder`."""
    lines = [",".join(COLUMNS)]
    for bins in BINS:
        for group in GROUPS:
            table = count_months(read_months(folder, [group], bins), bins)
            for pair, increment in np.argwhere(table > 0):
                count = int(table[pair, increment])
                lines.append(f"{bins},{group},{pair // 2},{pair % 2},{increment},{count}")
    return "\n".join(lines) + "\n"


@cache
def _shipped() -> Ints:
    text = files(__package__ or "revealed.datasets").joinpath(NAME).read_text(encoding="ascii")
    return np.array([line.split(",") for line in text.split()[1:]], dtype=np.intp)


def _table(bins: int, x: Ints, d: Ints, increment: Ints, count: Ints) -> Floats:
    table = np.zeros((2 * bins, int(increment.max()) + 1))
    np.add.at(table, (2 * x + d, increment), count)
    return table
