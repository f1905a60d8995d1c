"""The soft fixed point, against dense value iteration and closed forms; and values that do not exist."""

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from models import (
    CASES,
    corridor,
    dense,
    loop,
    loop_and_aside,
    random_graph,
    random_mdp,
    random_reward,
    soft_value_iteration,
)
from revealed import bellman, chain
from revealed.bellman import SoftBellman
from revealed.environments import grid_transitions
from revealed.errors import InvalidOption, SolverFailed, ValueDoesNotExist
from revealed.sweeps import log_sum_exp, soft_maximum

EPS = np.finfo(float).eps


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-320, 1e-310, 1e-300, 1e-150])
@pytest.mark.parametrize("A", [1, 3])
def test_rewards_near_the_smallest_number_have_values(size, A):
    mdp, rng = random_mdp(A=A), np.random.default_rng(1)
    for _ in range(5):
        reward = size * rng.normal(size=(mdp.n_states, A))
        V = rv.solve(mdp, reward).value
        np.testing.assert_allclose(V, soft_value_iteration(mdp, reward), rtol=1e-9, atol=1e-300)


def bellman_error(mdp, reward, solved) -> float:
    """‖Λ(V) − V‖∞ relative to the size of V, from the dense transitions."""
    Q = np.where(mdp.feasible, reward + mdp.discount * dense(mdp) @ solved.value, -np.inf)
    V = np.where(mdp.terminal, 0.0, np.logaddexp.reduce(Q, axis=1))
    return float(np.abs(V - solved.value).max() / np.abs(V).max())


# the soft optimum


@pytest.mark.parametrize("solver", ["lu", "krylov"])
@pytest.mark.parametrize("case", CASES)
def test_the_soft_optimum_is_what_value_iteration_finds(case, solver):
    mdp = random_mdp(15, 3, seed=3, **CASES[case])
    reward = random_reward(mdp, shift=-2.0 if mdp.discount == 1.0 else 0.0)
    V = soft_value_iteration(mdp, reward)
    solved = rv.solve(mdp, reward, solver=solver)
    np.testing.assert_allclose(solved.value, V, rtol=1e-11, atol=1e-11)
    Q = reward + mdp.discount * dense(mdp) @ V
    expected = np.where(mdp.feasible, np.exp(Q - V[:, None]), 0.0)
    np.testing.assert_allclose(solved.policy, expected, atol=1e-11)
    np.testing.assert_allclose(solved.q[mdp.feasible], Q[mdp.feasible], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("discount", [0.99, 0.9999, 0.999999])
def test_near_one_the_residual_is_at_rounding_level(discount):
    mdp = random_mdp(40, 3, discount=discount, seed=5)
    reward = random_reward(mdp, scale=3.0)
    solved = rv.solve(mdp, reward)
    assert solved.residual <= 1e3 * EPS
    assert bellman_error(mdp, reward, solved) <= 1e3 * EPS
    np.testing.assert_allclose(solved.policy.sum(axis=1), 1.0, rtol=1e-14)


def test_rewards_may_be_given_per_state():
    mdp = random_mdp(10, 3)
    r = np.random.default_rng(0).normal(size=10)
    full = rv.solve(mdp, np.tile(r[:, None], (1, 3))).value
    for form in (r, r[:, None], r.tolist()):
        np.testing.assert_array_equal(rv.solve(mdp, form).value, full)


def test_terminal_states_are_worth_nothing_and_offer_no_action():
    mdp = random_mdp(10, 3, terminal=3)
    solved = rv.solve(mdp, random_reward(mdp) + 5.0)
    np.testing.assert_array_equal(solved.value[mdp.terminal], 0.0)
    np.testing.assert_array_equal(solved.policy[mdp.terminal], 0.0)


def test_infeasible_actions_have_probability_zero_exactly_and_nothing_is_nan():
    mdp = random_mdp(20, 4, masked=True, terminal=2)
    reward = np.where(mdp.feasible, random_reward(mdp), np.nan)  # what infeasible pairs hold is ignored
    solved = rv.solve(mdp, reward)
    np.testing.assert_array_equal(solved.policy[~mdp.feasible], 0.0)
    assert np.isneginf(solved.log_policy[~mdp.feasible]).all()
    for array in (solved.value, solved.policy, solved.q, solved.log_policy):
        assert not np.isnan(array).any()
    np.testing.assert_allclose(solved.policy[~mdp.terminal].sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("discount", [0.5, 0.99])
@pytest.mark.parametrize("size", [1e3, 1e4, 1e6])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_extreme_rewards_give_no_nan_and_finite_log_probabilities(size, sign, discount):
    mdp = random_mdp(20, 3, discount=discount, seed=1, masked=True)
    reward = sign * size * np.random.default_rng(2).random(mdp.feasible.shape)
    solved = rv.solve(mdp, reward)
    assert bellman_error(mdp, reward, solved) <= 1e-13
    assert np.isfinite(solved.log_policy[mdp.feasible]).all()
    if size > 1e3:
        assert (solved.policy[mdp.feasible] == 0.0).any()  # it does underflow: the log is what survives
    np.testing.assert_allclose(solved.policy.sum(axis=1), 1.0, rtol=1e-13)


def test_the_chain_of_the_optimum_is_that_of_its_policy():
    mdp = random_mdp(12, 3)
    solved = rv.solve(mdp, random_reward(mdp))
    value = solved.chain.soft_value(random_reward(mdp), solved.log_policy)
    np.testing.assert_allclose(value, solved.value, rtol=1e-12)


def test_krylov_and_lu_find_the_same_optimum_on_a_graph_without_locality():
    mdp = random_graph(2_500, discount=0.99)
    reward = random_reward(mdp)
    krylov, lu = rv.solve(mdp, reward, solver="krylov").value, rv.solve(mdp, reward, solver="lu").value
    np.testing.assert_allclose(krylov, lu, rtol=1e-12)


def test_steps_that_are_known_better_the_faster_they_get_are_fewer(monkeypatch):
    def steps() -> int:
        found = (SoftBellman(mdp, "krylov", start=np.zeros(800)).solve(reward) for mdp, reward in problems)
        return sum(optimum.newton_steps for optimum in found)

    graphs = [random_graph(800, discount=0.999, seed=seed) for seed in range(6)]
    problems = [(mdp, random_reward(mdp, seed)) for seed, mdp in enumerate(graphs)]
    adaptive = steps()
    monkeypatch.setattr(bellman, "_accuracy", lambda *_: 1e-2)
    assert adaptive < steps()


# warm starts: the stale factorisation must never decide the answer


@pytest.mark.parametrize("discount", [0.9, 0.99, 0.9999])
def test_warm_started_solutions_equal_cold_ones_after_big_jumps(discount):
    mdp = rv.MDP(grid_transitions(8, 8, wind=0.2), discount=discount)
    rng = np.random.default_rng(0)
    warm = SoftBellman(mdp)
    for scale in (1.0, 1.001, 30.0, 0.01, 300.0, 0.0, 5.0, 1e4):
        reward = scale * rng.normal(size=mdp.feasible.shape)
        solved, cold = warm.solve(reward), rv.solve(mdp, reward)
        assert solved.residual <= 1e3 * EPS
        reach = 1e4 * EPS * np.abs(cold.value).max() / (1 - discount)
        np.testing.assert_allclose(solved.value, cold.value, rtol=0, atol=reach)
        np.testing.assert_allclose(solved.policy, cold.policy, rtol=0, atol=max(1e-9, reach))


def test_warm_starts_spare_factorisations_while_the_reward_moves_little():
    mdp = rv.MDP(grid_transitions(10, 10, wind=0.2), discount=0.9)
    reward = random_reward(mdp)
    warm = SoftBellman(mdp)
    warm.solve(reward)
    before = warm.work.factorisations
    for k in range(5):
        warm.solve(reward * (1 + 1e-4 * k))
    assert warm.work.factorisations == before


def test_a_reward_without_value_leaves_earlier_solutions_usable():
    mdp = corridor(6, discount=1.0, end=True)
    good = np.full((6, 2), -1.0)
    warm = SoftBellman(mdp)
    expected = warm.solve(good).value.copy()
    with pytest.raises(ValueDoesNotExist):
        warm.solve(np.full((6, 2), 1.0))
    np.testing.assert_allclose(warm.solve(good).value, expected, rtol=1e-13)


def test_a_warm_start_does_not_hide_that_a_value_does_not_exist():
    warm = SoftBellman(loop())
    warm.solve(np.array([[-1e-3, 0.0], [0.0, 0.0]]))
    for a in (0.0, 1e-4, 1.0):
        with pytest.raises(ValueDoesNotExist):
            warm.solve(np.array([[a, 0.0], [0.0, 0.0]]))


# discount one: z = e^a z + e^b has a solution z = e^b / (1 − e^a) exactly if a < 0


@pytest.mark.parametrize("b", [-30.0, 0.0, 5.0, 30.0, 1e4])
@pytest.mark.parametrize("a", [-5.0, -1.0, -0.1, -1e-3, -1e-6, -1e-9])
def test_a_loop_that_costs_has_its_closed_form_value(a, b):
    solved = rv.solve(loop(), [[a, b], [0.0, 0.0]])
    exact = b - np.log(-np.expm1(a))
    # rounding in Λ(V) − V is amplified by the expected number of decisions, 1/(1 − e^a)
    tolerance = 32 * EPS * (abs(exact) + abs(b)) / -np.expm1(a)
    assert solved.value[0] == pytest.approx(exact, rel=0, abs=max(tolerance, 1e-13))


@pytest.mark.parametrize("b", [-800.0, -1e4, -1e6])
def test_a_loop_is_left_in_the_end_however_dear_the_way_out(b):
    exact = b - np.log(-np.expm1(-1.0))
    assert rv.solve(loop(), [[-1.0, b], [0.0, 0.0]]).value[0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("b", [-30.0, 0.0, 30.0, 1e4])
@pytest.mark.parametrize("a", [0.0, 1e-13, 1e-9, 1e-6, 1e-3, 1.0, 1e4])
def test_a_loop_that_pays_has_no_value(a, b):
    with pytest.raises(ValueDoesNotExist):
        rv.solve(loop(), [[a, b], [0.0, 0.0]])


@pytest.mark.parametrize("aside", [1e3, -1e4, 1e5, -1e6])
def test_large_rewards_elsewhere_do_not_hide_that_a_value_does_not_exist(aside):
    with pytest.raises(ValueDoesNotExist):
        rv.solve(loop_and_aside(), [[0.0, 0.0], [aside, aside], [0.0, 0.0]])


def test_large_rewards_elsewhere_do_not_spoil_a_value_that_exists():
    solved = rv.solve(loop_and_aside(), [[-1.0, 0.0], [-1e6, -1e6], [0.0, 0.0]])
    assert solved.value[0] == pytest.approx(-np.log(-np.expm1(-1.0)), abs=1e-8)


@pytest.mark.parametrize(("gain", "exists"), [(-1e-3, True), (-1e-6, True), (0.0, False), (1e-6, False), (1e-3, False)])
def test_with_deterministic_moves_the_spectral_radius_decides(gain, exists):
    mdp = corridor(6, discount=1.0, end=True)
    W = np.zeros((5, 5))
    for s in range(5):
        for t in (max(s - 1, 0), s + 1):
            if t < 5:
                W[s, t] += 1.0
    critical = -np.log(np.abs(np.linalg.eigvals(W)).max())
    reward = np.full((6, 2), critical + gain)
    if exists:
        z = np.linalg.solve(np.eye(5) - np.exp(critical + gain) * W, np.exp(critical + gain) * np.eye(5)[4])
        np.testing.assert_allclose(rv.solve(mdp, reward).value[:5], np.log(z), rtol=1e-7)
    else:
        with pytest.raises(ValueDoesNotExist):
            rv.solve(mdp, reward)


def test_at_discount_one_without_a_way_to_end_there_is_no_value():
    with pytest.raises(ValueDoesNotExist, match="terminal"):
        rv.solve(random_mdp(5, 2, discount=1.0), np.full((5, 2), -10.0))


def test_a_costly_walk_on_a_plane_at_discount_one():
    T = grid_transitions(15, 15)
    mdp = rv.MDP(T, discount=1.0, terminal=np.arange(225) == 112)
    for cost in (1.5, 20.0, 500.0):
        solved = rv.solve(mdp, np.full((225, 4), -cost))
        W = np.exp(-cost) * dense(mdp).sum(axis=1)
        keep = ~mdp.terminal
        if cost < 100:  # beyond, exp(V) underflows and only the logarithms survive
            b = W[keep][:, mdp.terminal].sum(axis=1)
            z = np.linalg.solve(np.eye(224) - W[np.ix_(keep, keep)], b)
            np.testing.assert_allclose(solved.value[keep], np.log(z), rtol=1e-9)
        steps = np.abs(np.arange(15)[:, None] - 7) + np.abs(np.arange(15) - 7)
        assert (solved.value.reshape(15, 15) >= -cost * steps - 1e-9).all()  # no worse than the shortest path


# kernels


def test_log_sum_exp_and_soft_maximum_do_not_overflow():
    Q = np.array([[1e308, 1e308], [-1e308, -np.inf], [-np.inf, -np.inf], [700.0, -700.0]])
    np.testing.assert_array_equal(log_sum_exp(Q)[[0, 1, 2]], [1e308, -1e308, 0.0])
    assert log_sum_exp(Q)[3] == 700.0
    log_policy = soft_maximum(Q)[2]
    np.testing.assert_allclose(log_policy[0], -np.log(2), rtol=1e-15)
    np.testing.assert_array_equal(log_policy[1], [0.0, -np.inf])
    assert np.isneginf(log_policy[2]).all()
    assert log_policy[3, 1] == -1400.0


@pytest.mark.parametrize("solve", [rv.solve, rv.solve_hard])
@pytest.mark.parametrize("mdp", [random_mdp(5, 2), random_mdp(5, 2).unroll(3), random_graph(1_000)])
def test_an_unknown_solver_is_told_at_the_door(solve, mdp):
    with pytest.raises(InvalidOption, match="`solver`: expected one of auto, lu, krylov; got 'magic'"):
        solve(mdp, np.zeros(mdp.n_states), solver="magic")


def test_on_a_long_ring_near_one_newton_goes_on_until_the_news_has_been_all_around(monkeypatch):
    """One good spot among many states: its news passes by a part of the ring with every step."""
    S = 1_500
    here, rng = np.arange(S), np.random.default_rng(0)
    back, on = (sp.csr_array((np.ones(S), (here, (here + d) % S)), shape=(S, S)) for d in (-1, 1))
    rows = sp.csr_array(sp.vstack([back, on]))[np.arange(2 * S).reshape(2, S).T.reshape(-1)]
    mdp, reward = rv.MDP(rows, 0.9999), rng.normal(size=S) + 20.0 * (here == 0)
    monkeypatch.setattr(SoftBellman, "_between", 1)
    monkeypatch.setattr(chain, "MAX_NEWTON", 3)
    monkeypatch.setattr(chain, "PASSED", 1)
    found = rv.solve(mdp, reward)
    assert found.newton_steps > 3
    assert found.residual < 1e-14
    monkeypatch.setattr(chain, "PASSED", 10**9)
    with pytest.raises(SolverFailed, match="made no progress"):
        rv.solve(mdp, reward)
