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


def reaching(backwards: sp.csr_array, goal: int) -> Bools:
    """Which nodes have a path to the node `goal`, in a graph whose edges are turned round."""
    from scipy.sparse.csgraph import breadth_first_order

    out = np.zeros(int(backwards.shape[0]), dtype=bool)
    out[breadth_first_order(backwards, goal, return_predecessors=False)] = True
    return out


def ways_to(
    matrix: sp.csr_array, backwards: sp.csr_array, feasible: Bools, terminal: Bools, goal: int
) -> tuple[Bools, Bools]:
    """For those who head for `goal`: the states that end a trip or cannot bring it there (S,), and the actions that
    are left (S, A) (theory R1). `backwards` (S, S) are the moves turned round.

    An action stays if it may lead to where the goal can be reached and leads nowhere else but to ends. Where moves are
    uncertain, leaving one out may cut off others: the search is repeated until nothing changes.
    """
    kept = feasible.copy()
    kept[goal] = False
    while True:
        alive = reaching(backwards, goal)
        stuck = ~alive & ~terminal
        good = (matrix @ alive.astype(np.float64) > 0.0) & ~(matrix @ stuck.astype(np.float64) > 0.0)
        before, kept = kept, kept & good.reshape(kept.shape)
        if int(np.diff(matrix.indptr).max(initial=0)) <= 1 or np.array_equal(before, kept):
            alive[goal] = False
            return ~alive, kept
        backwards = _turned_round(matrix, kept)


def _turned_round(matrix: sp.csr_array, kept: Bools) -> sp.csr_array:
    """Sparse (S, S): where the actions that are left may come from."""
    S, A = kept.shape
    pairs = (kept.reshape(-1).astype(np.float64), np.arange(S * A), np.arange(0, S * A + 1, A))
    graph = sp.csr_array(sp.csr_array(pairs, shape=(S, S * A)) @ matrix)
    graph.eliminate_zeros()
    return sp.csr_array(graph.T)
