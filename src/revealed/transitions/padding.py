"""Rows of a sparse matrix as a rectangular table: how wide it should be, and what does not fit (ELL + COO).

A device reads fastest where every row has the same number of entries. One long row (a state that leads to very many
others, a hub that very many lead to) must not widen all of them: the table covers nearly all rows, and entries beyond
its width are *long* entries, listed row after row and summed by a tree whose shape is fixed, so that the result does
not depend on the order in which threads arrive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Floats, Ints

Ints32 = npt.NDArray[np.int32]
BRANCHES = 16  # entries that one node of the tree of sums adds up
LONG = 8.0  # an entry outside the table costs as much as so many inside: it is summed over several kernels


def table_width(lengths: Ints) -> int:
    """The width that costs least: one unit for every place in the table, `LONG` for every entry that is left out."""
    longest = int(lengths.max(initial=0))
    if longest <= 1:
        return 1
    rows_longer = lengths.size - np.cumsum(np.bincount(lengths, minlength=longest + 1))  # [w]: rows longer than w
    left_out = np.append(np.cumsum(rows_longer[::-1])[::-1], 0)  # [w]: Σ max(length − w, 0)
    widths = np.arange(1, longest + 1)
    return int(widths[np.argmin(widths * float(lengths.size) + LONG * left_out[widths])])


def tree_of_sums(lengths: Ints) -> tuple[Ints32, ...]:
    """Tables of positions (BRANCHES, n), level by level, that sum consecutive runs of these lengths.

    A level reads the values of the one before it; the position after the last value stands for a zero.
    """
    levels: list[Ints32] = []
    while not levels or lengths.max(initial=0) > 1:
        nodes = -(-lengths // BRANCHES)
        first = np.repeat(np.cumsum(lengths) - lengths, nodes)
        within = np.arange(int(nodes.sum())) - np.repeat(np.cumsum(nodes) - nodes, nodes)
        place = first + BRANCHES * within + np.arange(BRANCHES)[:, None]
        end = np.repeat(np.cumsum(lengths), nodes)
        levels.append(np.where(place < end, place, int(lengths.sum())).astype(np.int32))
        lengths = nodes
    return tuple(levels)


@dataclass(frozen=True)
class PaddedRows:
    """T of S states and A actions, states last. `index` is (W, S); padding leads to the state itself with weight zero.

    `p` is (A, W, S) where the actions of a state share their successors, (W, S) with W = A·B where each action has its
    own B, and None where every move is certain (W = A). Long entries: row, successor and (A, n) probabilities.
    """

    index: Ints32
    p: Floats | None
    long_row: Ints32
    long_index: Ints32
    long_p: Floats


def pad_rows(matrix: sp.csr_array, n_actions: int, n_padded: int) -> PaddedRows:
    """The rows s·A + a of `matrix` in the layout that takes the fewest bytes, for `n_padded` ≥ S states."""
    S, A = int(matrix.shape[1]), n_actions
    if np.diff(matrix.indptr).max(initial=0) <= 1 and np.all(matrix.data == 1.0):
        return _certain(matrix, A, n_padded)
    union = sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr[::A]), shape=(S, S), copy=True)
    union.sum_duplicates()
    own_width, shared_width = table_width(np.diff(matrix.indptr)), table_width(np.diff(union.indptr))
    if shared_width * (4 + 8 * A) <= own_width * A * (4 + 8):
        return _shared(matrix, union, A, n_padded, shared_width)
    return _own(matrix, A, n_padded, own_width)


def _loops(width: int, n_padded: int) -> Ints32:
    return np.repeat(np.arange(n_padded, dtype=np.int32)[None], width, axis=0)


def _certain(matrix: sp.csr_array, A: int, n_padded: int) -> PaddedRows:
    index = _loops(A, n_padded)
    pair = np.flatnonzero(np.diff(matrix.indptr))
    index[pair % A, pair // A] = matrix.indices
    return _padded(index, None, A)


def _own(matrix: sp.csr_array, A: int, n_padded: int, width: int) -> PaddedRows:
    pair, slot = _places(matrix)
    inside = slot < width
    index, p = _loops(A * width, n_padded), np.zeros((A * width, n_padded))
    where = (pair % A * width + slot)[inside], (pair // A)[inside]
    index[where], p[where] = matrix.indices[inside], matrix.data[inside]
    out = ~inside
    long_p = np.zeros((A, int(out.sum())))
    long_p[pair[out] % A, np.arange(long_p.shape[1])] = matrix.data[out]
    return _padded(index, p, A, pair[out] // A, matrix.indices[out], long_p)


def _shared(matrix: sp.csr_array, union: sp.csr_array, A: int, n_padded: int, width: int) -> PaddedRows:
    state, slot = _places(union)
    inside = slot < width
    index, p = _loops(width, n_padded), np.zeros((A, width, n_padded))
    index[slot[inside], state[inside]] = union.indices[inside]
    long = np.cumsum(~inside) - 1  # the number of an entry among the long ones
    long_p = np.zeros((A, int((~inside).sum())))
    place = sp.csr_array((np.arange(1.0, union.nnz + 1.0), union.indices, union.indptr), shape=union.shape)
    for a in range(A):
        mine = sp.csr_array(matrix[a::A])
        mine.sort_indices()
        pattern = sp.csr_array((np.ones(mine.nnz), mine.indices, mine.indptr), shape=mine.shape)
        entry = sp.csr_array(pattern.multiply(place)).data.astype(np.intp) - 1
        fits = inside[entry]
        p[a, slot[entry[fits]], state[entry[fits]]] = mine.data[fits]
        long_p[a, long[entry[~fits]]] = mine.data[~fits]
    return _padded(index, p, A, state[~inside], union.indices[~inside], long_p)


def _places(matrix: sp.csr_array) -> tuple[Ints, Ints]:
    """For every stored entry its row, and how many of that row come before it."""
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return row, np.arange(matrix.nnz) - matrix.indptr[:-1].astype(np.intp)[row]


def _padded(
    index: Ints32,
    p: Floats | None,
    A: int,
    row: Ints | None = None,
    to: Ints32 | None = None,
    long_p: Floats | None = None,
) -> PaddedRows:
    none = np.zeros(0, dtype=np.int32)
    rows, tos = (none if x is None else x.astype(np.int32) for x in (row, to))
    return PaddedRows(index, p, rows, tos, np.zeros((A, 0)) if long_p is None else long_p)
