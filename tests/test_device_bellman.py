"""The soft optimum on a device is the host's: values, policies, verdicts; what stops the sweeps; warm starts."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import revealed as rv
from models import corridor, loop, loop_and_aside, random_graph, random_mdp, random_reward
from revealed.bellman import SoftBellman
from revealed.device_bellman import soft_optimum
from revealed.environments import grid_transitions
from revealed.errors import InvalidInput, ValueDoesNotExist

EPS = np.finfo(float).eps
CASES = {
    "discounted": {"discount": 0.9},
    "near one": {"discount": 0.9999},
    "masked": {"discount": 0.95, "masked": True, "terminal": 2},
    "myopic": {"discount": 0.0},
    "undiscounted": {"discount": 1.0, "masked": True, "terminal": 2},
}


@pytest.mark.parametrize("case", CASES)
def test_the_optimum_is_that_of_the_host(case):
    mdp = random_mdp(15, 3, seed=3, **CASES[case])
    reward = random_reward(mdp, shift=-2.0 if mdp.discount == 1.0 else 0.0)
    there, here = rv.solve(mdp.to("cpu"), reward), rv.solve(mdp, reward)
    reach = 1e3 * EPS * np.abs(here.value).max() / max(1.0 - mdp.discount, 1e-2)
    assert there.residual <= 1e3 * EPS
    np.testing.assert_allclose(there.value, here.value, rtol=0, atol=reach)
    np.testing.assert_allclose(there.policy, here.policy, rtol=0, atol=max(reach, 1e-14))
    np.testing.assert_allclose(there.q[mdp.feasible], here.q[mdp.feasible], rtol=0, atol=reach)
    np.testing.assert_allclose(
        there.log_policy[mdp.feasible], there.q[mdp.feasible] - np.repeat(there.value, mdp.feasible.sum(1)), atol=reach
    )
    assert np.isneginf(there.log_policy[~mdp.feasible]).all()
    assert not there.policy[~mdp.feasible].any()
    np.testing.assert_allclose(there.policy[~mdp.terminal].sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(there.value[mdp.terminal], 0.0)


def test_newton_takes_over_where_news_travels_slowly_and_is_not_needed_where_it_does_not():
    grid = rv.MDP(grid_transitions(12, 9, wind=0.3, stay=True), 0.999)
    reward = random_reward(grid)
    there, here = rv.solve(grid.to("cpu", dtype="float32"), reward), rv.solve(grid, reward)
    assert 2 <= there.newton_steps <= 10
    np.testing.assert_allclose(there.value, here.value, rtol=0, atol=1e5 * EPS * np.abs(here.value).max())
    graph = random_graph(200, discount=0.9999)
    quick = rv.solve(graph.to("cpu"), random_reward(graph))
    assert quick.newton_steps == 0  # the span shrinks by the mixing of the graph, whatever the discount
    assert quick.chord_steps <= 100
    slow = rv.solve(graph, random_reward(graph))
    np.testing.assert_allclose(quick.policy, slow.policy, atol=1e-10)


def test_rewards_per_state_and_warm_starts_lead_to_the_same_point():
    mdp = random_mdp(15, 3, seed=3, discount=0.9)
    model = mdp.to("cpu").on_device
    r = np.random.default_rng(0).normal(size=(15, 1))
    cold = soft_optimum(model, model.put(r))
    wide = soft_optimum(model, model.put(np.repeat(r, 3, axis=1)), start=cold.value)
    assert wide.sweeps == wide.newton_steps == 0
    np.testing.assert_allclose(model.get(wide.value), model.get(cold.value), rtol=1e-14)
    nan = model.put(np.full(15, np.nan))  # a start that is worth nothing is left aside
    found = soft_optimum(model, model.put(r), nan)
    np.testing.assert_allclose(model.get(found.value), model.get(cold.value), rtol=1e-13)


def test_the_chain_of_the_optimum_is_that_of_its_policy():
    mdp = random_mdp(15, 3, seed=3, discount=0.9)
    model, reward = mdp.to("cpu").on_device, random_reward(mdp)
    found = soft_optimum(model, model.put(reward))
    policy, log_policy = model.get(found.policy), model.get(found.log_policy)
    payoff = (policy * (reward - log_policy)).sum(axis=1)
    np.testing.assert_allclose(model.get(found.chain.solve(model.put(payoff))), model.get(found.value), rtol=1e-12)


# discount one: z = e^a z + e^b has a solution exactly if a < 0


@pytest.mark.parametrize("a", [-5.0, -1e-3, -1e-6])
def test_at_discount_one_the_value_is_the_closed_form(a):
    found = rv.solve(loop().to("cpu"), np.array([[a, 2.0], [0.0, 0.0]]))
    assert found.value[0] == pytest.approx(2.0 - np.log(-np.expm1(a)), rel=1e-9)


@pytest.mark.parametrize("a", [0.0, 1e-4, 1.0])
def test_a_value_that_does_not_exist_is_said_and_earlier_ones_survive(a):
    warm = SoftBellman(loop().to("cpu"))
    good = np.array([[-0.5, 0.0], [0.0, 0.0]])
    expected = warm.solve(good).value
    with pytest.raises(ValueDoesNotExist, match="the soft value does not exist for this reward"):
        warm.solve(np.array([[a, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(warm.solve(good).value, expected, rtol=1e-13)


@pytest.mark.parametrize(("aside", "a"), [(1e9, 1e-4), (1e12, 1e-2), (1e12, 0.5)])
def test_large_rewards_elsewhere_do_not_hide_that_a_value_does_not_exist(aside, a):
    with pytest.raises(ValueDoesNotExist, match="the soft value does not exist for this reward"):
        rv.solve(loop_and_aside().to("cpu"), np.array([[a, 0.0], [aside, aside], [0.0, 0.0]]))


def test_large_rewards_elsewhere_do_not_spoil_a_value_that_exists():
    found = rv.solve(loop_and_aside().to("cpu"), np.array([[-1.0, 0.0], [-1e6, -1e6], [0.0, 0.0]]))
    assert found.value[0] == pytest.approx(-np.log(-np.expm1(-1.0)), abs=1e-8)


def test_where_nothing_can_end_the_state_is_named():
    mdp = corridor(6, 1.0)
    with pytest.raises(ValueDoesNotExist, match="no sequence of actions leads from state 0 to a terminal state"):
        rv.solve(mdp.to("cpu"), np.full((6, 2), -1.0))


def test_without_a_host_discount_one_needs_a_start():
    model = loop().to("cpu").on_device
    alone, reward = replace(model, mdp=None), model.put(np.array([[-1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(InvalidInput, match=r"`start` is required at discount 1"):
        soft_optimum(alone, reward)
    with jax.enable_x64(True):
        found = soft_optimum(alone, reward, start=model.put(np.zeros(2)))
    assert float(found.value[0]) == pytest.approx(-np.log(-np.expm1(-1.0)), rel=1e-12)
