"""Moves on a rectangular grid, sparse: state = row · columns + column."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from revealed.checks import require_count, require_flag, require_probability
from revealed.gates import require_memory, within_memory
from revealed.plots import MOVES

ACTIONS = tuple(MOVES)


@within_memory("rows", "columns")
def grid_transitions(rows: int, columns: int, wind: float = 0.0, stay: bool = False) -> sp.csr_array:
    """Sparse (S*A, S) for the actions up, down, left, right, and stay if `stay`.

    With probability `wind` the agent is carried to a random one of the four neighbouring cells instead of where it
    wanted to go. A move off the grid stays put.
    """
    require_count("rows", rows)
    require_count("columns", columns)
    require_probability("wind", wind)
    require_flag("stay", stay)
    require_memory("rows, columns", (rows, columns), 75 * int(rows) * int(columns))
    S, A = rows * columns, 5 if stay else 4
    target = np.stack([_target(rows, columns, *move) for move in list(MOVES.values())[:A]], axis=1)  # (S, A)
    moves = [(np.arange(S * A), target.reshape(-1), np.full(S * A, 1.0 - wind))]
    if wind > 0.0:
        for b in range(4):
            moves.append((np.arange(S * A), np.repeat(target[:, b], A), np.full(S * A, wind / 4)))
    row, column, p = (np.concatenate(part) for part in zip(*moves, strict=True))
    return sp.csr_array(sp.coo_array((p, (row, column)), shape=(S * A, S)))


def _target(rows: int, columns: int, down: int, right: int) -> np.ndarray:
    r, c = np.divmod(np.arange(rows * columns), columns)
    inside = (0 <= r + down) & (r + down < rows) & (0 <= c + right) & (c + right < columns)
    return np.where(inside, (r + down) * columns + c + right, np.arange(rows * columns))
