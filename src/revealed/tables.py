"""Counts as tables, most of them sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import LARGEST, Floats, require_floats
from revealed.errors import InvalidDemonstrations
from revealed.voices import shown


def sparse_table(data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> sp.csr_array:
    """Entries at (row, column); those of one place are added up."""
    return sp.csr_array(sp.coo_array((data, (rows, columns)), shape=shape))


def sum_rows(table: sp.csr_array) -> Floats:
    """The sum of every column."""
    return np.asarray(table.sum(axis=0), dtype=np.float64).reshape(-1)


def as_counts(counts: Any) -> Floats:
    """An (S, A) table of visits as a user gives it."""
    table = require_floats("counts", counts, "an (S, A) array of counts", InvalidDemonstrations)
    if table.ndim != 2 or 0 in table.shape:
        raise InvalidDemonstrations("counts", "an (S, A) array of counts", f"shape {table.shape}")
    bad = ~np.isfinite(table) | (table < 0)
    if bad.any():
        s, a = (int(i) for i in np.argwhere(bad)[0])
        raise InvalidDemonstrations("counts", "finite counts >= 0", table[s, a], f"state {s}, action {a}")
    if not table.any():
        raise InvalidDemonstrations("counts", "at least one decision", "all zero")
    require_countable("counts", table)
    return table


def require_countable(argument: str, numbers: Floats) -> None:
    """Numbers >= 0 that may be added up and multiplied with log-probabilities without leaving float64."""
    masked = isinstance(numbers, np.ma.MaskedArray)
    if masked or getattr(getattr(numbers, "dtype", None), "kind", "O") not in "biuf":
        raise InvalidDemonstrations(argument, "an array of numbers >= 0", shown(numbers))
    if np.max(numbers, initial=0.0) > LARGEST or np.sum(numbers) > LARGEST:
        got = f"numbers up to {np.max(numbers):g}"
        raise InvalidDemonstrations(argument, f"numbers that sum to at most {LARGEST:g}", got, remedy="Rescale them.")
