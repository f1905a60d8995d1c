"""T on a device does what it does on the host, in every layout and with both forms of sums."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import revealed as rv
from models import corridor, random_mdp, random_policy
from revealed.environments import grid_transitions
from revealed.errors import InvalidTransitions
from revealed.transitions.padded import FEW, PaddedTransitions, require_positions


def hub_and_wide_rows(S: int = 80) -> rv.MDP:
    """Action 2 leads everybody to state 0, and from state 5 every action may lead anywhere."""
    rng = np.random.default_rng(0)
    T = np.zeros((S, 3, S))
    for s, a in np.ndindex(S, 2):
        T[s, a, rng.choice(S, 2, replace=False)] = [0.6, 0.4]
    T[:, 2, 0] = 1.0
    T[5] = 1.0 / S
    return rv.MDP(T, 0.95, terminal=np.arange(S) == 7)


MODELS = {
    "shared": lambda: rv.MDP(grid_transitions(5, 7, wind=0.3, stay=True), 0.95),
    "own": lambda: random_mdp(40, 3, masked=True, terminal=2),
    "certain": lambda: corridor(30, 0.9, end=True),
    "long": hub_and_wide_rows,
    "wide": lambda: random_mdp(FEW + 6, 2, branching=FEW + 3),
}


@jax.jit
def everything(T, V, d, policy):
    rows = T.merge(policy)
    back = T.merge_back(rows)
    return T.expect(V), T.push(d), rows(V), back(V), rows.diagonal()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_products_are_those_of_the_host(name, at_once):
    mdp = MODELS[name]()
    model, rng, policy = mdp.to("cpu").on_device, np.random.default_rng(1), random_policy(mdp)
    V, d = rng.normal(size=(mdp.n_states, 2)), rng.normal(size=mdp.feasible.shape) * mdp.feasible
    with jax.enable_x64(True):
        found = everything(replace(model.transitions, at_once=at_once), *(model.put(x) for x in (V, d, policy)))
        TV, pushed, ahead, back, diagonal = (model.get(x) for x in found)
    chain = mdp.transitions.mix(policy)
    expected = np.swapaxes(mdp.transitions.expect(V), 1, 2)  # (S, K, A)
    offered = np.broadcast_to(mdp.feasible[:, None], expected.shape)
    np.testing.assert_allclose(TV[offered], expected[offered], rtol=0, atol=1e-14)
    np.testing.assert_allclose(pushed, mdp.transitions.push(d), rtol=0, atol=1e-13)
    np.testing.assert_allclose(ahead, chain @ V, rtol=0, atol=1e-14)
    np.testing.assert_allclose(back, chain.T @ V, rtol=0, atol=1e-13)
    np.testing.assert_allclose(diagonal, chain.diagonal(), rtol=0, atol=1e-15)


def test_hubs_and_wide_rows_lie_outside_the_tables():
    T = hub_and_wide_rows().to("cpu").on_device.transitions
    assert T.index.shape[0] <= 6
    assert T.long is not None
    assert T.back.place.shape[0] <= 10
    assert T.back.long is not None
    assert 0 in np.asarray(T.back.long.rows)


def test_tables_of_the_device_find_the_predecessors_that_the_host_finds():
    here = rv.MDP(grid_transitions(5, 7, wind=0.3, stay=True), 0.95).to("cpu").on_device.transitions
    with jax.enable_x64(True):
        there = PaddedTransitions.from_tables(here.index, here.p, 5, lambda x: x)
    np.testing.assert_array_equal(there.back.place, here.back.place)
    np.testing.assert_array_equal(there.back.index, here.back.index)


def test_more_places_than_four_bytes_can_number_are_refused():
    """Read from shapes alone: a table of that size would take gigabytes."""
    with pytest.raises(InvalidTransitions, match="at most 2,147,483,647 places, successors × states; got 25 × 90,"):
        require_positions((25, 90_000_000))
    require_positions((25, 85_000_000))
