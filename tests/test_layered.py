"""A horizon on a device: its operators, its solves and its optimum are those of the unrolled model in dense algebra,
with masks, terminal states, hubs and moves that are certain."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from models import dense, dense_matrix, loop, random_mdp, random_policy, random_reward
from revealed.device_bellman import soft_optimum
from revealed.device_solvers import DeviceChain, LayerChain
from revealed.errors import ValueDoesNotExist
from revealed.transitions.layered import LayeredTransitions
from revealed.transitions.padded import PaddedTransitions

LAYERS = 5


def hub() -> rv.MDP:
    """Everywhere leads to state 0, which leads everywhere: entries outside the tables, both ways."""
    T = np.zeros((80, 2, 80))
    T[:, 0, 0], T[0, 1] = 1.0, 1.0 / 80.0
    T[np.arange(1, 80), 1, np.arange(1, 80)] = 1.0
    return rv.MDP(sp.csr_array(T.reshape(-1, 80)), 0.9)


BASES = {
    "masked": lambda: random_mdp(7, 3, seed=3, discount=0.95, masked=True, terminal=2),
    "undiscounted": lambda: random_mdp(7, 3, seed=4, discount=1.0),
    "certain": lambda: loop(1.0),
    "hub": hub,
}


def horizon(kind: str) -> rv.MDP:
    return BASES[kind]().unroll(LAYERS - 1)


@pytest.mark.parametrize("kind", BASES)
def test_operators_and_solves_are_those_of_the_unrolled_model(kind):
    mdp, rng = horizon(kind), np.random.default_rng(0)
    model, T, policy = mdp.to("cpu").on_device, dense(mdp), random_policy(mdp)
    assert isinstance(model.transitions, LayeredTransitions)
    assert model.n_padded == mdp.n_states
    V, D = rng.normal(size=(mdp.n_states, 3)), rng.normal(size=mdp.feasible.shape) * mdp.feasible
    chain = model.chain(model.put(policy))
    assert isinstance(chain, LayerChain)
    inverse, pushed = np.linalg.inv(dense_matrix(mdp, policy)), np.einsum("sat,sa->t", T, D)
    with jax.enable_x64(True):
        expected = model.get(model.transitions.expect(model.put(V)))  # (S, 3, A)
        found = model.get(model.transitions.push(model.put(D)))
    np.testing.assert_allclose(expected * mdp.feasible[:, None], np.einsum("sat,tk->ska", T, V), atol=1e-13)
    np.testing.assert_allclose(found, pushed, atol=1e-13)
    for b in (V, V[:, 0]):
        np.testing.assert_allclose(model.get(chain.solve(model.put(b))), inverse @ b, rtol=1e-12, atol=1e-12)
        back = model.get(chain.solve_transpose(model.put(b)))
        np.testing.assert_allclose(back, inverse.T @ b, rtol=1e-12, atol=1e-12)
    pairs = model.get(chain.solve_pairs(model.put(D)))
    np.testing.assert_allclose(pairs, mdp.discount * inverse.T @ pushed, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", BASES)
def test_the_optimum_is_backward_induction_as_on_the_host(kind):
    mdp = horizon(kind)
    reward = random_reward(mdp, scale=3.0)
    there, here = rv.solve(mdp.to("cpu"), reward), rv.solve(mdp, reward)
    for name in ("value", "q", "policy", "log_policy"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-12, atol=1e-12, err_msg=name)
    assert there.residual == there.newton_steps == there.chord_steps == 0
    hard, wanted = rv.solve_hard(mdp.to("cpu"), reward).value, rv.solve_hard(mdp, reward).value
    np.testing.assert_allclose(hard, wanted, rtol=1e-13, atol=1e-13)


def test_by_decision_and_by_state_are_each_others_way_back():
    model = horizon("masked").to("cpu").on_device
    table = np.random.default_rng(0).normal(size=(model.n_states, model.n_actions))
    T: LayeredTransitions = model.transitions
    with jax.enable_x64(True):
        decisions = T.by_decision(model.put(table))
        again = model.get(T.by_state(decisions, -1.0))
    n = T.step.n_states
    assert decisions.shape == (LAYERS - 1, model.n_actions, n)
    np.testing.assert_array_equal(again[:-n], table[:-n])
    np.testing.assert_array_equal(again[-n:], -1.0)


def test_a_value_that_is_no_number_is_said_and_a_model_spread_over_devices_keeps_its_own_rows():
    mdp = horizon("masked")
    model = mdp.to("cpu").on_device
    with pytest.raises(ValueDoesNotExist):
        soft_optimum(model, model.put(np.full(mdp.feasible.shape, 1e308)))
    whole = PaddedTransitions.from_csr(mdp.transitions.matrix, mdp.n_actions, mdp.n_states, model.placement.put)
    spread = replace(model, transitions=whole)  # what several devices have
    reward = model.put(random_reward(mdp))
    assert isinstance(spread.chain(spread.put(random_policy(mdp))), DeviceChain)
    one, other = soft_optimum(model, reward), soft_optimum(spread, reward)
    np.testing.assert_allclose(model.get(one.policy), model.get(other.policy), atol=1e-12)
