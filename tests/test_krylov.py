"""Krylov solves: the coarse chain, the true residual, and how work does not grow."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import revealed as rv
from models import dense_matrix, random_policy
from revealed.environments import grid_transitions
from revealed.errors import SolverFailed
from revealed.krylov import TRIAL, Coarse, KrylovSolver
from zoo import Problem, problems

EPS = np.finfo(float).eps


def grid(side: int, discount: float) -> tuple[rv.MDP, sp.csr_array]:
    mdp = rv.MDP(grid_transitions(side, side, 0.3), discount=discount)
    return mdp, mdp.transitions.identity_minus(discount, random_policy(mdp))


def residual(A: sp.csr_array, X: np.ndarray, B: np.ndarray) -> float:
    return float((np.linalg.norm(B - A @ X, axis=0) / np.linalg.norm(B, axis=0)).max())


@given(problems())
def test_solves_are_those_of_dense_algebra(problem: Problem):
    mdp = problem.mdp
    policy = random_policy(mdp)
    A = dense_matrix(mdp, policy)
    solver = KrylovSolver(mdp.transitions.identity_minus(mdp.discount, policy), mdp.structure)
    B = np.random.default_rng(0).normal(size=(mdp.n_states, 2))
    tolerance = {"rtol": 0.0, "atol": 1e-11 * np.linalg.cond(A)}
    np.testing.assert_allclose(solver.solve(B), np.linalg.solve(A, B), **tolerance)
    np.testing.assert_allclose(solver.solve_transpose(B), np.linalg.solve(A.T, B), **tolerance)


@pytest.mark.parametrize("transpose", [False, True])
def test_with_a_coarse_chain_the_true_residual_is_at_rounding(transpose):
    mdp, A = grid(40, 0.9999)
    solver = KrylovSolver(A, mdp.structure)
    assert solver.coarse is not None
    B = np.random.default_rng(0).normal(size=(1_600, 3))
    X = (solver.solve_transpose if transpose else solver.solve)(B)
    left = np.linalg.norm(B - (A.T if transpose else A) @ X, axis=0)
    assert np.all(left <= np.maximum(1e-13 * np.linalg.norm(B, axis=0), 64 * EPS * np.linalg.norm(X, axis=0)))


def test_work_hardly_grows_with_states_or_sight():
    def products(side: int, discount: float) -> int:
        mdp, A = grid(side, discount)
        solver = KrylovSolver(A, mdp.structure)
        solver.solve(np.ones(side * side) + np.arange(side * side) % 7)
        return solver.products

    small = products(40, 0.99)
    assert products(80, 0.99) <= 1.5 * small
    assert products(40, 0.9999) <= 3.0 * small


def test_a_good_start_and_a_rough_answer_are_less_work():
    mdp, A = grid(40, 0.999)
    b = np.random.default_rng(0).normal(size=1_600)
    cold = KrylovSolver(A, mdp.structure)
    x = cold.solve(b)
    warm, rough = KrylovSolver(A, mdp.structure), KrylovSolver(A, mdp.structure)
    np.testing.assert_allclose(warm.solve(b, start=x * (1.0 + 1e-9)), x, rtol=1e-9)
    found = rough.solve(b, accuracy=1e-2)
    assert 1e-12 < residual(A, found[:, None], b[:, None]) <= 1e-2
    assert max(warm.products, rough.products) < 0.6 * cold.products


def test_the_coarse_chain_is_the_chain_on_groups():
    mdp, A = grid(20, 0.99)
    group, n = mdp.structure.groups
    P = np.eye(n)[group]
    small = P.T @ A.toarray() @ P
    coarse = Coarse(A, mdp.structure)
    b = np.random.default_rng(0).normal(size=n)
    np.testing.assert_allclose(coarse._lu.solve(b), np.linalg.solve(small, b), rtol=1e-10)
    assert np.all(small - np.diag(np.diag(small)) <= 0.0)
    assert np.all(small.sum(axis=1) >= 0.0)


def test_the_preconditioner_of_the_transpose_is_the_transpose_of_the_preconditioner():
    mdp, A = grid(20, 0.999)
    solver, (x, y) = KrylovSolver(A, mdp.structure), np.random.default_rng(0).normal(size=(2, 400, 1))
    assert solver.coarse is not None
    onwards = solver.coarse.preconditioner(A, A.diagonal(), transpose=False)
    back = solver.coarse.preconditioner(solver.At, A.diagonal(), transpose=True)
    assert np.vdot(onwards(x), y) == pytest.approx(np.vdot(x, back(y)), rel=1e-11)


def test_the_coarse_chain_of_a_far_policy_costs_a_trial_and_is_then_replaced():
    mdp = rv.MDP(grid_transitions(40, 40, 0.05), discount=0.9999)
    up, right = (0.02 * mdp.uniform_policy() + 0.98 * (np.arange(4) == a) for a in (0, 3))
    A, b = mdp.transitions.identity_minus(mdp.discount, right), np.random.default_rng(0).normal(size=1_600)
    far = KrylovSolver(mdp.transitions.identity_minus(mdp.discount, up), mdp.structure)
    alone = KrylovSolver(A, mdp.structure)
    assert far.coarse is not None
    lent = KrylovSolver(A, mdp.structure, near=far)
    np.testing.assert_allclose(lent.solve(b), alone.solve(b), rtol=0, atol=1e-7)
    assert lent.coarse is not far.coarse
    assert lent.products <= 1.2 * alone.products + 2 * TRIAL


def test_quick_chains_need_no_coarse_one():
    mdp, A = grid(40, 0.9)
    assert KrylovSolver(A, mdp.structure).coarse is None


def test_what_has_no_solution_is_not_answered():
    mdp, A = grid(6, 1.0)  # never ends
    with pytest.raises(SolverFailed):
        KrylovSolver(A, mdp.structure).solve(np.ones(36))
