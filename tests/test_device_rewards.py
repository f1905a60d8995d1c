"""Rewards on a device are the host's: the same tables, the same products with their Jacobians."""

from functools import lru_cache

import jax
import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed import device_rewards
from revealed.device_rewards import DeviceLifted, DeviceLinear, ThroughHost, on_device
from revealed.diagnosis import _Along
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy
from revealed.rewards.base import lift_reward
from rings import N_STATES, ring


class Squares:
    """A reward of one's own, which JAX knows nothing of: r(s) = Σ_k θ_k² φ_k(s)."""

    names = ("a", "b", "c")
    n_params = 3

    def init(self, seed=None):
        return np.ones(3)

    def value(self, theta):
        return ring("discounted").states @ theta[:, None] ** 2

    def vjp(self, theta, cotangent):
        return 2.0 * theta * (ring("discounted").states.T @ cotangent.sum(axis=1))


@lru_cache
def rewards():
    here, unrolled = ring("discounted"), ring("unrolled")
    sparse = sp.csr_array(np.where(here.pairs > 1.0, here.pairs, 0.0).reshape(-1, 3))
    table = rv.TabularReward(N_STATES)
    objective = Objective(table, [Case(here.mdp, here.counts, GivenPolicy(here.mdp, here.policy))])
    along = _Along(objective.at(np.linspace(-2.0, -1.0, N_STATES)), np.array([0, 3, 5]))
    network = rv.NeuralReward(unrolled.states, hidden=(4,))
    return {
        "pairs": (rv.LinearReward(here.pairs), DeviceLinear),
        "states": (rv.LinearReward(here.states), DeviceLinear),
        "sparse": (rv.LinearReward(sparse, n_actions=3), DeviceLinear),
        "lifted": (lift_reward(rv.LinearReward(unrolled.pairs), unrolled.mdp), DeviceLinear),
        "beside others": (along, DeviceLinear),
        "a weight per state": (table, device_rewards.DeviceTable),
        "network of pairs": (rv.NeuralReward(here.pairs, hidden=(4,)), device_rewards.DeviceNetwork),
        "function": (rv.JaxReward(lambda p, x: x @ p**2, np.ones(3), here.states), device_rewards.DeviceFunction),
        "lifted network": (lift_reward(network, unrolled.mdp), DeviceLifted),
        "own": (Squares(), ThroughHost),
    }


@pytest.mark.parametrize("name", rewards())
def test_tables_and_products_are_those_of_the_host(name):
    reward, kind = rewards()[name]
    model = ring("unrolled" if "lifted" in name else "discounted").placed.on_device
    there = on_device(reward, model)
    rng = np.random.default_rng(0)
    theta, cotangent = rng.normal(size=reward.n_params), rng.normal(size=(N_STATES, 3))
    assert type(there) is kind
    np.testing.assert_allclose(model.get(there.value(theta)), reward.value(theta), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(there.vjp(theta, model.put(cotangent)), reward.vjp(theta, cotangent), rtol=1e-12)


@pytest.mark.parametrize("name", ["pairs", "states", "sparse"])
def test_features_come_back_as_they_went(name):
    reward, _ = rewards()[name]
    back = on_device(reward, ring("discounted").placed.on_device).jacobian(np.zeros(3))
    wanted = reward.matrix.toarray() if hasattr(reward.matrix, "toarray") else reward.matrix
    np.testing.assert_array_equal(back, wanted)


def test_sparse_features_that_are_too_many_go_through_the_host(monkeypatch):
    monkeypatch.setattr(device_rewards, "MOST_COLUMNS", 2)
    model = ring("discounted").placed.on_device
    assert type(on_device(rewards()["sparse"][0], model)) is ThroughHost
    assert type(on_device(rewards()["pairs"][0], model)) is DeviceLinear  # dense ones are as large wherever they lie


def test_settings_of_jax_are_left_alone():
    before = jax.config.read("jax_enable_x64")
    there = on_device(rewards()["network of pairs"][0], ring("discounted").placed.on_device)
    assert there.value(there.reward.init()).dtype == np.float64
    assert jax.config.read("jax_enable_x64") == before
