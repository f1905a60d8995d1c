"""Groups of neighbouring states."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import revealed as rv
from revealed.environments import grid_transitions
from revealed.transitions.aggregates import aggregate


@given(st.integers(1, 60), st.floats(0.0, 0.2), st.integers(0, 4), st.integers(0, 99))
def test_groups_are_connected_and_have_at_most_two_to_the_passes(n, share, passes, seed):
    rng = np.random.default_rng(seed)
    graph = sp.csr_array(np.where(rng.random((n, n)) < share, rng.random((n, n)), 0.0))
    group, count = aggregate(graph, passes)
    np.testing.assert_array_equal(np.unique(group), np.arange(count))
    assert np.bincount(group).max() <= 2**passes
    both = sp.csr_array(graph + graph.T)
    for g in range(count):
        members = np.flatnonzero(group == g)
        assert connected_components(both[members][:, members], directed=False)[0] == 1


def test_a_plane_is_grouped_well():
    moves = sp.csr_array(grid_transitions(50, 50, 0.3))
    graph = rv.MDP(moves).moves
    _, count = aggregate(graph, 5)
    assert count <= 2_500 / 5


def test_strong_links_are_kept_together():
    pairs = sp.kron(sp.eye_array(20), sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])))
    weak = sp.csr_array(0.1 * np.random.default_rng(0).random((40, 40)))
    group, count = aggregate(sp.csr_array(pairs + weak), 1)
    assert count == 20
    np.testing.assert_array_equal(group[::2], group[1::2])
