"""Starts from nothing: where news spreads quickly they are the soft optimum, elsewhere a few sweeps towards it."""

import numpy as np
import pytest

import revealed as rv
from models import dense, random_graph, random_mdp, random_reward
from revealed import bellman
from revealed.cold_start import cold_start, newton_by_sweeps
from revealed.environments import grid_transitions
from revealed.sweeps import RELATIVE, WORTH_BLOCKS, centred, policy_sweep, sweep

EPS = np.finfo(float).eps


def with_an_end(mdp: rv.MDP) -> rv.MDP:
    return mdp.replace(terminal=np.arange(mdp.n_states) % 100 == 7)


@pytest.mark.parametrize(("discount", "ends"), [(0.5, False), (0.99, False), (0.9999, False), (0.5, True)])
def test_on_a_graph_without_locality_the_start_is_the_optimum_and_nothing_is_factored(discount, ends, monkeypatch):
    mdp = random_graph(1_500, discount=discount, branching=4)
    mdp = with_an_end(mdp) if ends else mdp
    reward = random_reward(mdp)
    exact = bellman.SoftBellman(mdp, start=np.zeros(mdp.n_states)).solve(reward)
    assert exact.newton_steps > 0
    monkeypatch.setattr(bellman, "Chain", None)
    found = rv.solve(mdp, reward)
    assert found.newton_steps == 0
    assert found.residual <= 8 * EPS
    known = 16 * EPS / (1 - discount) * np.abs(exact.value).max()
    np.testing.assert_allclose(found.value, exact.value, rtol=0, atol=known)
    np.testing.assert_allclose(found.policy, exact.policy, atol=1e-11)


def test_where_nothing_lies_ahead_one_sweep_is_the_optimum_and_further_ones_change_nothing():
    mdp = random_graph(1_500, discount=0.0)
    reward = random_reward(mdp)
    apart = cold_start(mdp, reward) - np.logaddexp.reduce(reward, axis=1)  # a constant: nothing ends
    np.testing.assert_allclose(apart, apart[0], rtol=0, atol=4e-15)


def test_where_news_travels_slowly_the_start_is_ten_sweeps_and_the_optimum_is_found_all_the_same():
    mdp = rv.MDP(grid_transitions(25, 25, wind=0.1), discount=0.99)
    reward = random_reward(mdp)
    V = np.zeros(mdp.n_states)
    for _ in range(10):
        V = centred(V, sweep(mdp, reward, V), RELATIVE)[0]
    np.testing.assert_array_equal(cold_start(mdp, reward), V)
    assert rv.solve(mdp, reward).residual <= 8 * EPS


def test_newton_by_sweeps_gives_up_without_harm_where_sweeps_are_too_slow():
    mdp = rv.MDP(grid_transitions(25, 25, wind=0.1), discount=0.999)
    reward, V = random_reward(mdp), np.zeros(625)
    optimum = rv.solve(mdp, reward).value
    found = newton_by_sweeps(mdp, reward, V, RELATIVE, EPS)
    assert np.ptp(found - optimum) < 0.5 * np.ptp(V - optimum)


def test_centred_values_lie_in_the_middle_of_bounds_that_hold():
    mdp = random_mdp(20, 3, discount=0.95)
    reward = random_reward(mdp)
    optimum, V, shift = rv.solve(mdp, reward).value, np.zeros(20), 0.95 / 0.05
    for _ in range(20):
        V, error = centred(V, sweep(mdp, reward, V), shift)
        assert np.abs(V - optimum).max() <= shift * error * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("side", [10, 320])
def test_policy_sweeps_apply_the_chain_of_a_policy(side):
    mdp = rv.MDP(grid_transitions(side, side, wind=0.1), discount=0.9)
    rng = np.random.default_rng(0)
    policy, b, x = rng.dirichlet(np.ones(4), size=mdp.n_states), rng.normal(size=mdp.n_states), rng.random(mdp.n_states)
    expected, found = x, policy_sweep(mdp, policy, b, x, times=3)[1]
    for _ in range(3):
        expected = b + 0.9 * mdp.transitions.mix(policy) @ expected
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    if side == 10:
        T = np.einsum("sa,sat->st", policy, dense(mdp))
        np.testing.assert_allclose(policy_sweep(mdp, policy, b, x)[1], b + 0.9 * T @ x, rtol=1e-13, atol=1e-14)
    else:
        assert mdp.feasible.size >= WORTH_BLOCKS
