"""What the graph of T tells about a factorisation of I − γT^π, before anything is factored.

Sparse LU costs about as much as a dense factorisation of the graph's top separator, O(w³) work and O(w²) memory for a
separator of w nodes, and as many sparse steps of that width as there are entries. In a plane w ≈ √S and LU is the
fastest method there is up to some 10⁵ states; on a graph without locality w ≈ S/2 and LU is hopeless. A breadth-first
search estimates w in O(nnz): the narrowest level that leaves a fair share of the nodes on either side. Hubs (a few
states that nearly every state leads to, such as a new engine) are set aside first, since an elimination order that
takes them last is not troubled by them; they count one node each towards w.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.transitions.aggregates import aggregate

SMALL = 500  # below this LU wins whatever the graph looks like
FAIR_SHARE = 0.25
GROUPED = 6  # passes of pairing: groups of some ten states
ROUGH = 0.2  # of the work for a system where a rough solution will do
LOCAL = 0.1  # a separator that takes more than this share of the states is none


@dataclass(frozen=True, eq=False)
class Structure:
    """The shape of a graph, as a linear solver sees it.

    `triangular` means that every move leads to a later state (an unrolled horizon): natural order, no fill.
    `separator` estimates the nodes of the top separator, of which `hubs` are some; `mirrored` is the share of moves
    that can be taken back.
    """

    n: int
    nnz: int
    triangular: bool
    separator: int
    mirrored: float = 1.0
    graph: sp.csr_array | None = field(default=None, repr=False)
    hubs: int = 0

    @property
    def lu_seconds(self) -> float:
        """About what a factorisation takes: dense work on the top separator, and the many small ones below it. Where
        there are hubs, the search for an order compares every state with every other."""
        w, compared = float(self.separator), 3e-9 * float(self.n) ** 2 if self.hubs else 0.0
        return 1e-8 * self.nnz if self.triangular else 2e-9 * w**3 + 3e-9 * self.nnz * w + compared

    @property
    def krylov_seconds(self) -> float:
        """About what one system takes by a Krylov method, at some nanoseconds an entry and product."""
        return (200.0 if self.local else 60.0) * 1e-8 * self.nnz

    @property
    def prefers_lu(self) -> bool:
        """Whether LU is the quicker for one system."""
        return self.prefers_lu_for(1.0)

    def prefers_lu_for(self, systems: float) -> bool:
        """Whether factoring takes no longer than solving so many systems with the same matrix by a Krylov method."""
        return self.n <= SMALL or self.triangular or self.lu_seconds <= 0.02 + systems * self.krylov_seconds

    def step_seconds(self, choice: str = "auto") -> float:
        """About what a rough solution of one system takes: a factorisation, or some steps of a Krylov method."""
        lu = choice == "lu" or (choice == "auto" and self.prefers_lu_for(ROUGH))
        return self.lu_seconds if lu else ROUGH * self.krylov_seconds

    @property
    def local(self) -> bool:
        """Whether moves lead to states nearby, so that neighbours can be told apart from the rest."""
        return self.separator <= LOCAL * self.n

    @cached_property
    def groups(self) -> tuple[npt.NDArray[np.intp], int]:
        """(S,) groups of neighbouring states and their number, for a coarse chain; found once."""
        assert self.graph is not None
        return aggregate(self.graph, GROUPED)

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in self.__dict__.items() if name != "groups"}

    @classmethod
    def of(cls, graph: sp.csr_array) -> Structure:
        """Read it off a square sparse matrix with the pattern of T^π (any π that uses every action)."""
        n = int(graph.shape[0])
        rows = np.repeat(np.arange(n), np.diff(graph.indptr))
        triangular = bool(np.all(graph.indices > rows))
        both = _either_way(graph)
        mirrored = float(np.count_nonzero(both.data > 1.0)) / max(graph.nnz, 1)
        easy = triangular or n <= SMALL
        separator, hubs = (0, 0) if easy else (separator_size(both), int(_hubs(both).sum()))
        return cls(n, int(graph.nnz), triangular, separator, mirrored, graph, hubs)


def _either_way(graph: sp.csr_array) -> sp.csr_array:
    """Which states are linked, whichever leads to the other: 2 where both do."""
    pattern = sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
    return sp.csr_array(pattern + pattern.T)


def separator_size(undirected: sp.csr_array) -> int:
    """Estimated nodes of a balanced separator: hubs, plus the narrowest middle level of a breadth-first search."""
    hubs = _hubs(undirected)
    if not hubs.any():
        return _middle_level_width(undirected)
    keep = np.flatnonzero(~hubs)
    return int(hubs.sum()) + _middle_level_width(sp.csr_array(undirected[keep][:, keep]))


def _hubs(undirected: sp.csr_array) -> npt.NDArray[np.bool_]:
    """The states that a good part of the others are linked with."""
    return np.diff(undirected.indptr) > max(16.0, 10.0 * np.sqrt(undirected.shape[0]))


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
