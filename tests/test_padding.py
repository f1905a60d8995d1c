"""Tables of rows, their widths and their long entries, rebuilt entry by entry; no device is needed."""

import hypothesis.strategies as st
import numpy as np
import scipy.sparse as sp
from hypothesis import given

from revealed.environments import grid_transitions
from revealed.transitions.padding import BRANCHES, LONG, PaddedRows, pad_rows, table_width, tree_of_sums
from zoo import seeds


def unpadded(rows: PaddedRows, S: int, A: int) -> np.ndarray:
    """(S, A, S): T as its tables tell it."""
    T = np.zeros((S, A, S))
    for j, s in np.ndindex(rows.index.shape[0], S):
        for a in range(A):
            if rows.p is None:
                p = float(j == a)
            else:
                p = rows.p[a, j, s] if rows.p.ndim == 3 else rows.p[j, s] * (j // (rows.index.shape[0] // A) == a)
            T[s, a, rows.index[j, s]] += p
    for k, s in enumerate(rows.long_row):
        T[s, :, rows.long_index[k]] += rows.long_p[:, k]
    return T


@st.composite
def sparse_rows(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Random rows of very different lengths, some empty; moves that are certain, or shared by the actions, too."""
    S, A = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(seeds))
    T = rng.random((S, A, S)) * (rng.random((S, A, S)) < rng.choice([0.05, 0.2, 0.9], (S, 1, 1)))
    if draw(st.booleans()):
        T = T * (rng.random((S, 1, S)) < 0.3)  # one pattern for all actions
    if draw(st.booleans()):
        T = np.eye(S)[rng.integers(S, size=(S, A))] * (rng.random((S, A, 1)) < 0.8)
    return T, draw(st.integers(S, S + 3))


@given(sparse_rows())
def test_tables_hold_every_entry_once_and_nothing_else(problem):
    T, wide = problem
    S, A, _ = T.shape
    rows = pad_rows(sp.csr_array(T.reshape(S * A, S)), A, wide)
    assert rows.index.shape[1] == wide
    told, moves = unpadded(rows, S, A), T.sum(axis=2) > 0.0
    np.testing.assert_array_equal(told[moves], T[moves])
    assert rows.p is None or not told[~moves].any()  # where moves are certain, rows that nobody takes hold anything
    assert np.all(rows.index[:, S:] == np.arange(S, wide))  # padding leads to itself
    assert np.all(np.diff(rows.long_row) >= 0)


def test_the_layout_is_the_one_with_fewest_bytes():
    grid = grid_transitions(6, 7, wind=0.3, stay=True)  # five actions share five neighbours
    shared = pad_rows(grid, 5, 42).p
    assert shared is not None
    assert shared.shape == (5, 5, 42)
    assert pad_rows(grid_transitions(6, 7), 4, 42).p is None
    S, rng = 60, np.random.default_rng(0)
    apart = np.zeros((S, 4, S))
    for s, a in np.ndindex(S, 4):
        apart[s, a, rng.choice(S, 3, replace=False)] = 1 / 3
    own = pad_rows(sp.csr_array(apart.reshape(-1, S)), 4, S).p
    assert own is not None
    assert own.shape == (12, S)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_the_width_costs_least(lengths):
    lengths = np.array(lengths)
    costs = [w * lengths.size + LONG * np.maximum(lengths - w, 0).sum() for w in range(1, max(2, lengths.max() + 1))]
    assert costs[table_width(lengths) - 1] == min(costs)


def test_one_hub_does_not_widen_the_table():
    lengths = np.full(10_000, 4)
    lengths[17] = 10_000
    assert table_width(lengths) == 4


@given(st.lists(st.integers(1, 3 * BRANCHES**2), min_size=1, max_size=8))
def test_the_tree_sums_runs(lengths):
    lengths = np.array(lengths)
    values = np.arange(1.0, lengths.sum() + 1.0)
    expected = np.add.reduceat(values, np.cumsum(lengths) - lengths)
    for level in tree_of_sums(lengths):
        values = np.append(values, 0.0)[level].sum(axis=0)
    np.testing.assert_array_equal(values, expected)
