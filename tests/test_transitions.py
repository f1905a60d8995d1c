"""T as an operator, and what its graph tells about a factorisation before one is made."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import revealed as rv
from models import bus, corridor, dense, random_graph, random_mdp, random_policy
from revealed.chain import MANY
from revealed.environments import grid_transitions
from revealed.transitions import as_csr, separator_size


def test_expect_push_and_mix_are_the_dense_contractions():
    mdp = random_mdp(8, 3, terminal=1, masked=True)
    T, rng = dense(mdp), np.random.default_rng(0)
    V, many, d = rng.normal(size=8), rng.normal(size=(8, 4)), rng.normal(size=(8, 3))
    policy = random_policy(mdp)
    op = mdp.transitions
    np.testing.assert_allclose(op.expect(V), T @ V, atol=1e-14)
    np.testing.assert_allclose(op.expect(many), np.einsum("sat,tk->sak", T, many), atol=1e-14)
    np.testing.assert_allclose(op.push(d), np.einsum("sat,sa->t", T, d), atol=1e-14)
    np.testing.assert_allclose(op.mix(policy).toarray(), np.einsum("sa,sat->st", policy, T), atol=1e-15)


def test_push_is_the_adjoint_of_expect():
    mdp = random_mdp(9, 2, seed=4)
    rng = np.random.default_rng(1)
    V, d = rng.normal(size=9), rng.normal(size=(9, 2))
    assert np.vdot(d, mdp.transitions.expect(V)) == pytest.approx(mdp.transitions.push(d) @ V, rel=1e-13)


def test_rows_are_state_major_in_every_form():
    T = np.zeros((3, 2, 3))
    T[:, 0, 0] = 1.0  # action 0 leads to state 0
    T[:, 1, 2] = 1.0  # action 1 leads to state 2
    blocks = [sp.csr_array(T[:, 0]), sp.csr_array(T[:, 1])]
    for form in (T, sp.csr_array(T.reshape(6, 3)), blocks):
        matrix, n_states, n_actions = as_csr(form)
        assert (n_states, n_actions) == (3, 2)
        np.testing.assert_array_equal(matrix.toarray()[::2, 0], 1.0)
        np.testing.assert_array_equal(matrix.toarray()[1::2, 2], 1.0)


def test_integers_and_booleans_become_floats():
    assert as_csr(np.ones((1, 1, 1), dtype=int))[0].dtype == np.float64
    assert as_csr(sp.csr_array(np.eye(2, dtype=bool)))[0].dtype == np.float64


# the structure of the graph


def test_a_plane_prefers_lu():
    structure = rv.MDP(grid_transitions(100, 100, wind=0.1, stay=True)).structure
    assert structure.prefers_lu
    assert 50 <= structure.separator <= 300  # the side is 100


def test_a_plane_of_a_hundred_thousand_states_prefers_lu():
    assert rv.MDP(grid_transitions(316, 317, wind=0.1)).structure.prefers_lu


def test_a_graph_without_locality_prefers_krylov():
    structure = random_graph(10_000).structure
    assert not structure.prefers_lu
    assert structure.separator > 1_000


def test_a_hub_does_not_trouble_lu():
    mdp = bus(10_000)
    assert mdp.structure.prefers_lu_for(MANY)
    A = sp.csc_array(sp.eye_array(10_000) - 0.9 * mdp.transitions.mix(mdp.uniform_policy()))
    lu = spla.splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    assert lu.L.nnz + lu.U.nnz < 20 * A.nnz  # the estimate tells the truth about the fill


def test_a_few_hubs_in_a_plane_do_not_trouble_lu():
    n = 70 * 70
    to_hub = sp.csr_array((np.ones(n), (np.arange(n), np.full(n, 17))), shape=(n, n))
    moves = sp.csr_array(grid_transitions(70, 70))
    assert rv.MDP([to_hub, *(sp.csr_array(moves[a::4]) for a in range(4))]).structure.prefers_lu_for(MANY)


def test_small_models_prefer_lu_whatever_their_graph():
    assert random_graph(400).structure.prefers_lu


def test_an_unrolled_horizon_is_triangular_and_prefers_lu():
    structure = random_mdp(300, 2).unroll(20).structure
    assert structure.triangular
    assert structure.prefers_lu
    assert not corridor(5).structure.triangular


@pytest.mark.parametrize(("rows", "columns"), [(30, 30), (10, 90), (1, 900)])
def test_the_separator_of_a_plane_is_about_its_shorter_side(rows, columns):
    graph = rv.MDP(grid_transitions(rows, columns)).transitions.mix(np.ones((900, 4)))
    assert 0.5 * min(rows, columns) <= separator_size(graph) <= 2.0 * min(rows, columns)


def test_the_separator_of_pieces_is_that_of_the_largest():
    piece = rv.MDP(grid_transitions(20, 20)).transitions.mix(np.ones((400, 4)))
    pieces = sp.csr_array(sp.block_diag([piece, piece, piece]))
    assert separator_size(pieces) == separator_size(piece)


def test_the_separator_of_isolated_states_is_at_most_one():
    assert separator_size(sp.csr_array(sp.eye_array(50))) <= 1
