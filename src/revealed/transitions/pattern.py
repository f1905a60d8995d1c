"""What the graph of T tells about a factorisation of I − γT^π, before anything is factored.

Sparse LU costs about as much as a dense factorisation of the graph's top separator: O(w³) work and O(w²) memory for a
separator of w nodes. In a plane w ≈ √S and LU is the fastest method there is; on a graph without locality w ≈ S/2 and
LU is hopeless. A breadth-first search estimates w in O(nnz): the narrowest level that leaves a fair share of the nodes
on either side. Hubs (a few states that nearly every state leads to, such as a new engine) are set aside first, since
an elimination order that takes them last is not troubled by them; they count one node each towards w.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

SMALL = 2_000  # below this LU wins whatever the graph looks like
FAIR_SHARE = 0.25


@dataclass(frozen=True)
class Structure:
    """The shape of a graph, as a linear solver sees it.

    `triangular` means that every move leads to a later state (an unrolled horizon): natural order, no fill.
    `separator` estimates the nodes of the top separator; `flops` the work of a factorisation.
    """

    n: int
    nnz: int
    triangular: bool
    separator: int

    @property
    def flops(self) -> float:
        return 2.0 * self.nnz if self.triangular else 2.0 / 3.0 * float(self.separator) ** 3

    @property
    def prefers_lu(self) -> bool:
        """Whether factoring costs less than the some thousand sparse products that a Krylov method may take."""
        return self.n <= SMALL or self.flops <= 1e9 + 4e3 * self.nnz

    @classmethod
    def of(cls, graph: sp.csr_array) -> Structure:
        """Read it off a square sparse matrix with the pattern of T^π (any π that uses every action)."""
        n = int(graph.shape[0])
        rows = np.repeat(np.arange(n), np.diff(graph.indptr))
        triangular = bool(np.all(graph.indices > rows))
        separator = 0 if triangular or n <= SMALL else separator_size(graph)
        return cls(n, int(graph.nnz), triangular, separator)


def separator_size(graph: sp.csr_array) -> int:
    """Estimated nodes of a balanced separator: hubs, plus the narrowest middle level of a breadth-first search."""
    n = int(graph.shape[0])
    undirected = sp.csr_array(graph + graph.T)
    degree = np.diff(undirected.indptr)
    hubs = degree > max(16.0, 10.0 * np.sqrt(n))
    keep = np.flatnonzero(~hubs)
    rest = sp.csr_array(undirected[keep][:, keep])
    return int(hubs.sum()) + _middle_level_width(rest)


def _middle_level_width(graph: sp.csr_array) -> int:
    n = int(graph.shape[0])
    if n == 0:
        return 0
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(graph, directed=False)
    start = int(np.flatnonzero(label == np.bincount(label).argmax())[0])
    far = int(_levels(graph, start)[0][-1])  # a node at the greatest distance: nearly peripheral
    order, widths = _levels(graph, far)
    before = np.concatenate([[0], np.cumsum(widths)[:-1]]) / order.size
    after = 1.0 - before - widths / order.size
    # a level that is itself more than half of the graph separates nothing: it *is* the front
    middle = widths[(before <= 1 - FAIR_SHARE) & (after <= 1 - FAIR_SHARE)]
    return int(middle.min()) if middle.size else int(widths.max())


def _levels(graph: sp.csr_array, start: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int_]]:
    """Nodes in breadth-first order and the width of each level."""
    from scipy.sparse.csgraph import breadth_first_order

    order, parent = breadth_first_order(graph, start, directed=False)
    place = np.empty(graph.shape[0], dtype=np.intp)
    place[order] = np.arange(order.size)
    parents = place[parent[order[1:]]]  # never decreases along a breadth-first order
    ends = [0, 1]
    while ends[-1] < order.size:  # a level ends where the children of the level before it end
        ends.append(1 + int(np.searchsorted(parents, ends[-1])))
    return order, np.diff(ends)
