"""One policy's chain: solves with I − γT^π and its transpose, against dense linear algebra."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import revealed as rv
from models import bus, corridor, dense_matrix, loop, random_graph, random_mdp, random_policy, random_reward
from revealed.chain import expected_payoff, one_hot
from revealed.checks import holds_masked
from revealed.environments import grid_transitions
from revealed.errors import SolverFailed
from revealed.linear_solvers import HedgedSolver, KrylovSolver, LUSolver, Work, make_solver

CASES = {
    "discounted": {},
    "near one": {"discount": 0.9999},
    "masked": {"masked": True},
    "ends": {"terminal": 2, "discount": 1.0, "masked": True},
    "myopic": {"discount": 0.0},
}


@pytest.mark.parametrize("solver", ["lu", "krylov"])
@pytest.mark.parametrize("case", CASES)
def test_solves_agree_with_dense_ones(case, solver):
    mdp = random_mdp(15, 3, seed=2, **CASES[case])
    policy = random_policy(mdp, 1)
    A = dense_matrix(mdp, policy)
    chain = rv.Chain(mdp, policy, solver=solver)
    rng = np.random.default_rng(0)
    for b in (rng.normal(size=15), rng.normal(size=(15, 4))):
        accuracy = 1e-12 * np.linalg.cond(A)
        np.testing.assert_allclose(chain.solve(b), np.linalg.solve(A, b), rtol=accuracy, atol=accuracy)
        np.testing.assert_allclose(chain.solve_transpose(b), np.linalg.solve(A.T, b), rtol=accuracy, atol=accuracy)


def test_one_column_is_solved_as_it_would_be_alone():
    mdp = random_mdp(15, 3)
    chain = rv.Chain(mdp, random_policy(mdp))
    b = np.random.default_rng(0).normal(size=(15, 3))
    np.testing.assert_allclose(chain.solve(b)[:, 1], chain.solve(b[:, 1]), rtol=1e-14)


@pytest.mark.parametrize("mdp", [random_graph(3_000), bus(3_000)], ids=["random graph", "hub"])
def test_lu_and_krylov_agree(mdp):
    policy = random_policy(mdp)
    b = np.random.default_rng(0).normal(size=3_000)
    lu, krylov = (rv.Chain(mdp, policy, solver=name) for name in ("lu", "krylov"))
    for solve in ("solve", "solve_transpose"):
        x = getattr(lu, solve)(b)
        np.testing.assert_allclose(getattr(krylov, solve)(b), x, rtol=0, atol=1e-11 * np.abs(x).max())


def test_auto_picks_by_the_structure_and_the_user_can_overrule():
    big = random_graph(10_000)
    assert isinstance(rv.Chain(big, big.uniform_policy())._solver, KrylovSolver)
    small = random_mdp(10, 2)
    assert isinstance(rv.Chain(small, small.uniform_policy())._solver, LUSolver)
    assert isinstance(rv.Chain(small, small.uniform_policy(), solver="krylov")._solver, KrylovSolver)


def test_a_right_side_of_zeros_gives_zeros():
    mdp = random_mdp(10, 2)
    for solver in ("lu", "krylov"):
        np.testing.assert_array_equal(rv.Chain(mdp, random_policy(mdp), solver).solve(np.zeros(10)), 0.0)


# occupancies


def test_occupancy_sums_the_discounted_visits():
    mdp = random_mdp(8, 2, discount=0.7, initial=True)
    policy = random_policy(mdp)
    p, total = np.full(8, 1 / 8), np.zeros(8)
    step = np.eye(8) - dense_matrix(mdp, policy)  # γT^π
    for _ in range(200):
        total, p = total + p, step.T @ p
    chain = rv.Chain(mdp, policy)
    np.testing.assert_allclose(chain.occupancy(), total, rtol=1e-13)
    assert chain.occupancy().sum() == pytest.approx(1 / 0.3, rel=1e-13)


def test_occupancy_from_a_given_start_overrules_the_models():
    mdp = random_mdp(8, 2, discount=0.7, initial=True)
    start = np.eye(8)[3]
    expected = np.linalg.solve(dense_matrix(mdp, random_policy(mdp)).T, start)
    np.testing.assert_allclose(rv.Chain(mdp, random_policy(mdp)).occupancy(start), expected, rtol=1e-12)


def test_occupancy_without_a_start_says_what_to_pass():
    mdp = random_mdp(8, 2)
    with pytest.raises(rv.errors.InvalidInput, match="`initial` is required"):
        rv.Chain(mdp, random_policy(mdp)).occupancy()


def test_occupancy_from_a_pair_is_the_first_visit_and_the_row_of_the_papers_tensor():
    mdp = random_mdp(8, 3, discount=0.8, terminal=1, masked=True)
    policy = random_policy(mdp)
    T = mdp.transitions.matrix.toarray().reshape(8, 3, 8)
    tensor = 0.8 * T @ np.linalg.inv(dense_matrix(mdp, policy))  # dense, in tests only
    chain = rv.Chain(mdp, policy)
    for s, a in np.argwhere(mdp.feasible):
        np.testing.assert_allclose(chain.occupancy_from(int(s), int(a)), np.eye(8)[s] + tensor[s, a], atol=1e-13)


def test_occupancy_from_an_infeasible_or_unknown_pair_is_refused():
    mdp = random_mdp(8, 3, masked=True)
    chain = rv.Chain(mdp, random_policy(mdp))
    s, a = (int(i) for i in np.argwhere(~mdp.feasible)[0])
    for pair in ((s, a), (8, 0), (0, 3), (-1, 0)):
        with pytest.raises(rv.errors.InvalidInput):
            chain.occupancy_from(*pair)


# stale factorisations


@pytest.mark.parametrize("discount", [0.9, 0.999, 1.0])
@pytest.mark.parametrize("distance", [1e-6, 0.01, 0.3, 1.0])
def test_a_stale_factorisation_gives_the_right_answer(discount, distance):
    mdp = random_mdp(20, 3, discount=discount, terminal=1 if discount == 1.0 else 0)
    old, other = random_policy(mdp, 1), random_policy(mdp, 2)
    near = (1 - distance) * old + distance * other
    chain = rv.Chain(mdp, near, stale=rv.Chain(mdp, old))
    fresh = rv.Chain(mdp, near)
    b = np.random.default_rng(0).normal(size=20)
    for solve in ("solve", "solve_transpose"):
        x = getattr(fresh, solve)(b)
        np.testing.assert_allclose(getattr(chain, solve)(b), x, rtol=0, atol=1e-11 * np.abs(x).max())


def test_a_near_policy_is_solved_without_a_new_factorisation_and_a_far_one_with():
    mdp = random_mdp(20, 3, discount=0.99)
    old, other = random_policy(mdp, 1), random_policy(mdp, 2)
    work = Work()
    first = rv.Chain(mdp, old, work=work)
    rv.Chain(mdp, (1 - 1e-6) * old + 1e-6 * other, stale=first, work=work).solve(np.ones(20))
    assert work.factorisations == 1
    greedy = np.eye(3)[np.arange(20) % 3]
    rv.Chain(mdp, greedy, stale=first, work=work).solve(np.random.default_rng(0).normal(size=20))
    assert work.factorisations == 2


def test_columns_of_very_different_size_are_each_solved_to_rounding_with_a_stale_factorisation():
    mdp = random_mdp(20, 3, discount=0.9)
    old = random_policy(mdp, 1)
    near = 0.999 * old + 0.001 * random_policy(mdp, 2)
    b = np.random.default_rng(0).normal(size=(20, 2)) * [1.0, 1e-9]
    x = rv.Chain(mdp, near, stale=rv.Chain(mdp, old)).solve(b)
    expected = np.linalg.solve(dense_matrix(mdp, near), b)
    np.testing.assert_allclose(x / [1.0, 1e-9], expected / [1.0, 1e-9], rtol=0, atol=1e-12)


def test_a_chain_of_stale_chains_leans_on_the_one_that_was_factored():
    mdp = random_mdp(20, 3)
    policies = [0.999**k * random_policy(mdp, 1) + (1 - 0.999**k) * random_policy(mdp, 2) for k in range(4)]
    chain = rv.Chain(mdp, policies[0])
    for policy in policies[1:]:
        chain = rv.Chain(mdp, policy, stale=chain)
    expected = np.linalg.solve(dense_matrix(mdp, policies[3]), np.ones(20))
    np.testing.assert_allclose(chain.solve(np.ones(20)), expected, rtol=1e-12)


# discount one


def test_at_discount_one_a_policy_that_never_ends_has_no_value():
    mdp = corridor(4, discount=1.0, end=True)
    always_left = np.tile([1.0, 0.0], (4, 1))
    with pytest.raises(rv.errors.ValueDoesNotExist, match="from state 0 this policy never leads"):
        rv.Chain(mdp, always_left)


def test_at_discount_one_without_terminal_states_nothing_ends():
    mdp = random_mdp(5, 2, discount=1.0)
    with pytest.raises(rv.errors.ValueDoesNotExist, match="no sequence of actions leads"):
        rv.Chain(mdp, mdp.uniform_policy())


@pytest.mark.parametrize("solver", ["lu", "krylov"])
def test_at_discount_one_a_policy_that_practically_never_ends_has_no_value(solver):
    with pytest.raises(rv.errors.ValueDoesNotExist):
        rv.Chain(loop(), [[1.0, 1e-15], [0, 0]], solver=solver)


@pytest.mark.parametrize("solver", ["lu", "krylov"])
def test_at_discount_one_a_policy_that_ends_late_has_its_value(solver):
    chain = rv.Chain(loop(), [[1 - 1e-6, 1e-6], [0, 0]], solver=solver)
    assert chain.solve(np.array([1.0, 0.0]))[0] == pytest.approx(1e6, rel=1e-9)


@pytest.mark.parametrize("leaves", [0.0, 1e-15])
def test_a_stale_factorisation_does_not_hide_that_a_policy_never_ends(leaves):
    good = rv.Chain(loop(), [[0.5, 0.5], [0, 0]])
    with pytest.raises(rv.errors.ValueDoesNotExist):
        rv.Chain(loop(), [[1.0 - leaves, leaves], [0, 0]], stale=good).solve(np.ones(2))


# the value of a policy


def test_the_soft_value_counts_reward_and_entropy():
    mdp = random_mdp(9, 3, discount=0.95, masked=True, terminal=1)
    policy, reward = random_policy(mdp), random_reward(mdp)
    used = np.where(policy > 0, policy, 1.0)
    payoff = (policy * (reward - np.log(used))).sum(axis=1)
    expected = np.linalg.solve(dense_matrix(mdp, policy), payoff)
    np.testing.assert_allclose(rv.Chain(mdp, policy).soft_value(reward), expected, rtol=1e-12)
    assert rv.Chain(mdp, policy).soft_value(reward)[mdp.terminal] == 0.0


def test_entropy_of_probabilities_that_are_zero_is_zero():
    policy = np.array([[1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_allclose(expected_payoff(policy, np.zeros((2, 2))), [0.0, np.log(2)], rtol=1e-15)


def test_the_residual_of_a_solution_is_at_rounding_and_of_another_vector_is_not():
    mdp = random_mdp(30, 3, discount=0.9999)
    chain = rv.Chain(mdp, random_policy(mdp))
    b = np.random.default_rng(0).normal(size=30)
    assert chain.residual(chain.solve(b), b) < 1e-15
    assert chain.residual(b, b) > 1e-3


def test_where_iterations_are_slow_a_factorisation_is_made_after_all():
    mdp = rv.MDP(grid_transitions(60, 60, 0.1), discount=0.9999)
    policy, b = random_policy(mdp), np.random.default_rng(0).normal(size=3_600)
    A = mdp.transitions.identity_minus(mdp.discount, policy)
    hedged = HedgedSolver(A, mdp.structure)
    hedged.longest = 1
    x = LUSolver(A, mdp.structure).solve(b)
    np.testing.assert_allclose(hedged.solve(b), x, rtol=1e-10)
    assert hedged.lu is not None
    np.testing.assert_allclose(hedged.solve_transpose(b), hedged.lu.solve_transpose(b), rtol=0)
    assert isinstance(make_solver(A, mdp.structure, "auto", 0.0, near=hedged), LUSolver)  # tried once, not again
    assert isinstance(make_solver(A, mdp.structure, "krylov", near=hedged), KrylovSolver)


def test_a_long_cycle_in_a_tangled_graph_is_factored_after_all_and_so_is_the_next_policy_at_once():
    """All actions together have no locality, so iterations are tried; one action alone is a cycle, on which they stall
    and which is quick to factor. Along a cycle x(s) = Σ_k γᵏ b(s + k) / (1 − γ^S)."""
    S, gamma, rng = 2_000, 0.999, np.random.default_rng(0)
    cycles = [rng.permutation(S) for _ in range(3)]
    rows = np.concatenate([3 * cycle + a for a, cycle in enumerate(cycles)])
    after = np.concatenate([np.roll(cycle, -1) for cycle in cycles])
    mdp = rv.MDP(sp.csr_array((np.ones(3 * S), (rows, after)), shape=(3 * S, S)), discount=gamma)
    chain = rv.Chain(mdp, one_hot(mdp, np.zeros(S, dtype=int)))
    assert isinstance(chain._solver, HedgedSolver)
    b = rng.normal(size=S)
    along = np.tile(b[cycles[0]], 2)
    expected = [gamma ** np.arange(S) @ along[s : s + S] / (1.0 - gamma**S) for s in range(S)]
    np.testing.assert_allclose(chain.solve(b)[cycles[0]], expected, rtol=0, atol=1e-11)
    assert chain._solver.lu is not None
    assert isinstance(rv.Chain(mdp, one_hot(mdp, np.ones(S, dtype=int)), near=chain)._solver, LUSolver)
    assert isinstance(rv.Chain(mdp, mdp.uniform_policy())._solver, HedgedSolver)  # which it is by itself


def test_lists_with_masked_values_are_refused_without_a_warning(recwarn):
    """NumPy would read NaN where it makes an array of them, and warn."""
    mdp = rv.MDP(np.full((3, 2, 3), 1.0 / 3.0), 0.9)
    masked: Any = np.ma.masked
    demos = rv.simulate(mdp, mdp.uniform_policy(), 20, 5, seed=0)
    fit = rv.CCP(rv.LinearReward(np.eye(3)[:, None, :] * np.arange(1, 3)[:, None])).fit(mdp, demos)
    named: Any = {"theta0": masked, "theta1": 1.0, "theta2": 1.0}
    for call in (
        lambda: rv.solve(mdp, [[1.0, masked]] * 3),
        lambda: rv.MDP([[[masked, 1.0, 0.0], [1.0, 0.0, 0.0]]] * 3, 0.9),
        lambda: rv.MDP(np.full((3, 2, 3), 1.0 / 3.0), 0.9, initial=[masked, 1.0, 0.0]),
        lambda: rv.LinearReward([[1.0, masked], (2.0, 1.0), [1.0, 3.0]]),
        lambda: rv.LinearReward(np.eye(3)).value(named),
        lambda: fit.counterfactual(params=[masked, 1.0, 1.0]),
        lambda: rv.LinearReward([np.ma.masked_array([1.0, 2.0], [True, False])] * 3),
    ):
        with pytest.raises(rv.errors.InvalidInput, match=r"masked.*x\.filled\(value\)"):
            call()
    assert not recwarn.list
    nest: list[Any] = []
    nest += [nest, nest]  # a list may hold itself
    assert not holds_masked(nest)


def test_masked_arrays_are_refused_with_the_remedy():
    mdp = rv.MDP(np.full((3, 2, 3), 1.0 / 3.0), 0.9)
    chain, masked = rv.Chain(mdp, mdp.uniform_policy()), np.ma.masked_array
    for call in (
        lambda: chain.solve(masked(np.ones(3), [True, False, False])),
        lambda: chain.solve_transpose(masked(np.ones(3), [True, False, False])),
        lambda: chain.soft_value(masked(np.ones((3, 2)), True)),
        lambda: rv.LinearReward(np.ones((3, 2))).value(masked([1.0, 2.0], [True, False])),
        lambda: rv.LinearReward(np.ones((3, 2))).vjp(np.ones(2), masked(np.ones((3, 2)), True)),
    ):
        with pytest.raises(rv.errors.InvalidInput, match=r"masked array.*x\.filled\(value\)"):
            call()


SAID = {
    "memory": MemoryError(),
    "32 bits": SystemError("gstrf was called with invalid arguments"),
    "its own": RuntimeError("SUPERLU_MALLOC fails for buf in intCalloc() at line 169 in file memory.c"),
}


@pytest.fixture(params=SAID.values(), ids=list(SAID))
def too_full(request, monkeypatch):
    """How SuperLU says that a factorisation does not fit into memory; how often it was tried."""
    tried: list[int] = []

    def splu(A, *args, **options):
        tried.append(A.shape[0])
        raise request.param

    monkeypatch.setattr(spla, "splu", splu)
    return tried


def test_a_factorisation_that_does_not_fit_into_memory_is_told_with_its_size(too_full):
    mdp = random_mdp(30, 2)
    with pytest.raises(SolverFailed, match=r"memory does not suffice .* 30 states .*solver=\"krylov\"") as caught:
        rv.Chain(mdp, mdp.uniform_policy(), solver="lu")
    assert isinstance(caught.value.__cause__, MemoryError)


def test_without_room_for_a_factorisation_auto_iterates_and_tries_once(too_full):
    mdp = random_mdp(30, 2)
    chain = rv.Chain(mdp, mdp.uniform_policy())
    b = np.ones(30)
    np.testing.assert_allclose(chain.A @ chain.solve(b), b, rtol=1e-10)
    assert rv.solve(mdp, random_reward(mdp)).policy.shape == (30, 2)
    assert too_full == [30]


def test_what_krylov_gave_up_goes_on_without_a_limit_where_memory_lacks(too_full):
    mdp = random_mdp(30, 2)
    A = mdp.transitions.identity_minus(0.9, mdp.uniform_policy())
    solver = HedgedSolver(A, mdp.structure)
    solver.longest = 0
    np.testing.assert_allclose(A @ solver.solve(np.ones(30)), np.ones(30), rtol=1e-10)


def test_hubs_do_not_fill_a_factorisation():
    """The states of a bus, each of which leads to a new engine: ordered by columns alone, it had hundreds a state."""
    mdp = bus(3_000)
    lu = rv.Chain(mdp, mdp.uniform_policy(), solver="lu")._solver
    assert isinstance(lu, LUSolver)
    assert lu._lu.L.nnz + lu._lu.U.nnz < 20 * 3_000
