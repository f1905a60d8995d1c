"""Finite horizons layer by layer: against dense algebra, against sparse LU of the same model, and closed forms."""

import pickle

import numpy as np
import pytest
from hypothesis import given

import revealed as rv
from models import corridor, random_mdp, random_policy, random_reward
from revealed.bellman import SoftBellman
from revealed.chain import Chain
from revealed.errors import InvalidReward, SolverFailed, ValueDoesNotExist
from revealed.hard_bellman import solve_hard
from revealed.layers import BackwardInduction, LayerSolver
from revealed.linear_solvers import LUSolver
from revealed.rewards.base import lift_reward
from revealed.sweeps import sweep
from zoo import Problem, problem, problems, seeds


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def varying_reward(made: Problem, seed: int) -> np.ndarray:
    """One reward for each time."""
    return np.random.default_rng(seed).uniform(-3.0, 2.0, made.dense.shape)


def test_a_horizon_is_solved_layer_by_layer_unless_another_solver_is_asked_for():
    mdp, policy = problem("unrolled").mdp, problem("unrolled").policy()
    assert isinstance(Chain(mdp, policy)._solver, LayerSolver)
    assert isinstance(Chain(mdp, policy, "lu")._solver, LUSolver)
    assert isinstance(Chain(random_mdp(), random_policy(random_mdp()))._solver, LUSolver)


@given(made=problems(("unrolled",)), seed=seeds)
def test_solves_are_those_of_the_dense_inverse_both_ways(made, seed):
    inverse, policy = made.dense.inverse(made.policy(seed)), made.policy(seed)
    b = np.random.default_rng(seed).normal(size=(len(inverse), 3))
    for order in ("C", "F"):
        first, second = (Chain(made.mdp, np.array(policy, order=order), check=False) for _ in range(2))
        for _ in range(2):  # through T itself, then through T^π of every layer
            assert_close(first.solve(b[:, 0]), inverse @ b[:, 0])
            assert_close(second.solve_transpose(b[:, 0]), inverse.T @ b[:, 0])
        assert_close(first.solve(b), inverse @ b)
        assert_close(first.solve_transpose(np.asfortranarray(b)), inverse.T @ b)


@given(made=problems(("unrolled",)), seed=seeds)
def test_weights_of_pairs_pushed_on_and_solved_are_one_forward_pass(made, seed):
    policy, D = made.policy(seed), np.random.default_rng(seed).normal(size=made.dense.shape)
    pushed = made.dense.gamma * np.einsum("sat,sa->t", made.dense.T, D)
    expected = made.dense.inverse(policy).T @ pushed
    for solver in ("auto", "lu"):
        assert_close(Chain(made.mdp, policy, solver).solve_pairs(D), expected)


@given(made=problems(("unrolled",)), seed=seeds)
def test_the_soft_optimum_is_backward_induction_for_rewards_that_vary_in_time(made, seed):
    reward = varying_reward(made, seed)
    found, before = rv.solve(made.mdp, reward), rv.solve(made.mdp, reward, solver="lu")
    assert_close(found.value, made.dense.optimal_value(reward))
    assert_close(found.policy, made.dense.optimal_policy(reward))
    for name in ("value", "q", "policy", "log_policy"):
        assert_close(getattr(found, name), getattr(before, name))
    again = sweep(made.mdp, np.where(made.mdp.feasible, reward, 0.0), found.value)
    np.testing.assert_allclose(again, found.value, rtol=0.0, atol=1e-14 * (1.0 + np.abs(found.value).max()))
    assert found.newton_steps == 0
    assert_close(found.chain.soft_value(reward, found.log_policy), found.value)  # V4


@given(made=problems(("unrolled",)), seed=seeds)
def test_the_hard_optimum_is_backward_induction_too(made, seed):
    reward = varying_reward(made, seed)
    found, before = solve_hard(made.mdp, reward), solve_hard(made.mdp, reward, solver="lu")
    assert_close(found.value, made.dense.hard_value(reward))
    assert_close(found.q, before.q)
    np.testing.assert_array_equal(found.policy, before.policy)


def test_ties_are_split_on_a_horizon():
    mdp = random_mdp(5, 3, discount=1.0).unroll(4)
    found = solve_hard(mdp, np.ones(mdp.n_states))
    assert_close(found.value.reshape(5, 5), np.arange(4, -1, -1)[:, None] * np.ones(5))
    np.testing.assert_array_equal(found.policy, mdp.uniform_policy())


def test_layers_may_offer_and_end_what_others_do_not():
    mdp = random_mdp(6, 3, discount=0.9, masked=True, terminal=1).unroll(5)
    terminal, feasible = mdp.terminal.copy(), np.array(mdp.feasible)
    terminal[6 * 3 : 6 * 4] = True  # a whole layer
    feasible[6 * 1 : 6 * 2, :2] = False
    other = mdp.replace(terminal=terminal, feasible=feasible)
    reward = random_reward(other)
    found, before = rv.solve(other, reward), rv.solve(other, reward, solver="lu")
    assert other.base is not None
    np.testing.assert_array_equal(found.value[6 * 3 : 6 * 4], 0.0)
    assert_close(found.value, before.value)
    assert_close(found.log_policy, before.log_policy)
    ones = np.ones(other.n_states)
    assert_close(found.chain.solve(ones), before.chain.solve(ones))


def test_at_discount_one_behaviour_that_would_never_end_takes_as_many_steps_as_are_left():
    mdp = random_mdp(4, 2, discount=1.0).unroll(7)
    steps = Chain(mdp, random_policy(mdp)).solve(np.ones(mdp.n_states)).reshape(8, 4)
    assert_close(steps, np.arange(8, 0, -1)[:, None] * np.ones(4))


def test_probabilities_sum_to_one_where_values_are_large():
    mdp = random_mdp(6, 3, discount=1.0).unroll(40)
    found = rv.solve(mdp, 1e4 * random_reward(mdp))
    sums = found.policy.sum(axis=1)[~mdp.terminal]
    assert np.abs(found.value).max() > 1e5
    np.testing.assert_allclose(sums, 1.0, rtol=0.0, atol=4e-16)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("end", [False, True])
def test_values_that_overflow_are_an_error(sign, end):
    mdp = corridor(4, end=end).unroll(3)
    table = np.full(mdp.feasible.shape, sign * 1e308)
    with pytest.raises(ValueDoesNotExist):
        SoftBellman(mdp).solve(table)
    with pytest.raises(SolverFailed, match="too large for float64"):
        BackwardInduction(mdp).hard(table)
    for act in (rv.solve, solve_hard):
        with pytest.raises(InvalidReward, match="expected rewards of at most 1e\\+100 for feasible pairs"):
            act(mdp, table)


@pytest.mark.parametrize("kind", [rv.LinearReward, rv.TabularReward, rv.NeuralReward])
def test_a_lifted_reward_is_the_same_at_every_time_and_its_gradient_a_sum_over_times(kind):
    base = random_mdp(5, 2)
    mdp, features = base.unroll(3), np.random.default_rng(0).normal(size=(5, 2, 3))
    reward = kind(5) if kind is rv.TabularReward else kind(features)
    lifted = lift_reward(reward, mdp)
    rng = np.random.default_rng(1)
    theta, weights = rng.normal(size=reward.n_params), rng.normal(size=(4, 5, 2))
    np.testing.assert_array_equal(lifted.value(theta), np.tile(reward.value(theta), (4, 1)))
    expected = reward.vjp(theta, weights.sum(axis=0))
    for order in ("C", "F"):
        found = lifted.vjp(theta, np.array(weights.reshape(20, 2), order=order))
        assert_close(found, expected)


def test_optima_of_a_horizon_travel():
    made = problem("unrolled")
    found = rv.solve(made.mdp, made.reward())
    found.chain.solve(np.ones(made.mdp.n_states))
    other = pickle.loads(pickle.dumps(found))
    b = np.arange(made.mdp.n_states, dtype=float)
    np.testing.assert_array_equal(other.chain.solve_transpose(b), Chain(made.mdp, found.policy).solve_transpose(b))
