"""Counts as sparse tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats


def sparse_table(data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> sp.csr_array:
    """Entries at (row, column); those of one place are added up."""
    return sp.csr_array(sp.coo_array((data, (rows, columns)), shape=shape))


def sum_rows(table: sp.csr_array) -> Floats:
    """The sum of every column."""
    return np.asarray(table.sum(axis=0), dtype=np.float64).reshape(-1)
