"""Which states a graph of moves leads to: one breadth-first search answers for all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Bools


def can_reach(graph: sp.csr_array, goal: Bools) -> Bools:
    """Which nodes have a path into `goal`."""
    return way_to(graph, goal)[0]


def way_to(graph: sp.csr_array, goal: Bools) -> tuple[Bools, npt.NDArray[np.intp]]:
    """Which nodes have a path into `goal`, and the next node on a shortest one (a node itself at or without a goal).

    One breadth-first search backwards from an extra node behind the goals.
    """
    from scipy.sparse.csgraph import breadth_first_order

    n = int(graph.shape[0])
    targets = np.flatnonzero(goal)
    moves = graph.tocoo()
    happens = moves.data != 0.0  # stored zeros are not moves
    rows = np.concatenate([moves.coords[1][happens], np.full(targets.size, n)])
    columns = np.concatenate([moves.coords[0][happens], targets])
    extended = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(n + 1, n + 1))
    order, parent = breadth_first_order(extended, n)
    reached = np.zeros(n + 1, dtype=bool)
    reached[order] = True
    onwards = np.arange(n)
    inner = reached[:n] & (parent[:n] >= 0) & (parent[:n] < n)
    onwards[inner] = parent[:n][inner]
    return reached[:n], onwards
