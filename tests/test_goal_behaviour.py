"""What trips do together, and how it moves with θ: finite differences, the envelope theorem, single trips (R4, R6)."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from models import random_mdp
from revealed.goal_behaviour import Flows, GoalSide, countable
from revealed.goal_values import GoalValues
from revealed.scenario import Setting, Side
from revealed.trip_demand import Demand
from streets import streets

NAMES = ("travel_time", "toll", "constant")
THETA = np.array([-1.5, -0.4, -0.6])
LINEAR = ("visits", "turns", "value", "welfare", "length", "features")


def side_of(mdp: rv.MDP, reward: Any, changed: Any = None) -> Side:
    names = tuple(reward.names)
    return Side(mdp, reward, Setting(names, changed or {}), np.zeros(mdp.n_states), "", None)


def pairs_of(mdp: rv.MDP, origins: Any, goals: Any, trips: Any) -> Demand:
    return Demand(mdp.state_labels, mdp.n_states, np.array(origins), np.array(goals), np.array(trips, dtype=float))


def on_streets(changed: Any = None, reward: Any = None) -> GoalSide:
    network = streets(3)
    reward = network.reward(list(NAMES)) if reward is None else reward
    pairs = pairs_of(network.mdp, [0, 3, 7, 11, 2], [20, 20, 5, 5, 14], [1, 2, 1, 0.5, 3])
    return GoalSide(side_of(network.mdp, reward, changed), pairs, countable(reward))


def with_uncertain_moves() -> GoalSide:
    """Discounted, with moves by chance and ends that are no goals."""
    rng = np.random.default_rng(3)
    mdp = random_mdp(12, 3, 0.9, seed=3, terminal=1)
    reward = rv.LinearReward(rng.normal(size=(12, 3, 3)), NAMES)
    pairs = pairs_of(mdp, [0, 1, 5], [4, 4, 9], [1, 2, 3])
    return GoalSide(side_of(mdp, reward), pairs, reward)


def with_link_sizes() -> GoalSide:
    """Rewards of which each pair has its own."""
    network = streets(3)
    base = network.reward(["travel_time", "constant"])
    names = network.links
    demand = {(names[0], names[20]): 1.0, (names[3], names[20]): 2.0, (names[7], names[5]): 1.0}
    sizes = rv.link_size(network, base, [-1.5, -0.8], demand)
    reward = rv.LinkSizeReward(base, sizes)
    pairs = pairs_of(network.mdp, [0, 3, 7], [20, 20, 5], [1, 2, 1])
    return GoalSide(side_of(network.mdp, reward), pairs, countable(reward))


WORLDS = {
    "streets": lambda: (on_streets(), THETA),
    "a function of the estimate": lambda: (on_streets({0: lambda x: x - 0.1 * x**2, 1: -0.7}), THETA),
    "uncertain moves": lambda: (with_uncertain_moves(), np.array([0.3, -0.5, 0.2])),
    "link sizes": lambda: (with_link_sizes(), np.array([-1.4, -0.9, -0.3])),
}


@pytest.mark.parametrize("world", WORLDS)
def test_every_derivative_is_that_of_finite_differences(world):
    side, theta = WORLDS[world]()
    flows, slopes = side.with_slopes(theta)
    for k, h in enumerate(np.full(theta.size, 1e-5)):
        up, down = (side.at(theta + sign * h * np.eye(theta.size)[k]) for sign in (1.0, -1.0))
        for name in LINEAR:
            found = np.asarray(getattr(slopes.flows, name))[..., k]
            expected = (np.asarray(getattr(up, name)) - np.asarray(getattr(down, name))) / (2.0 * h)
            scale = max(1.0, float(np.abs(getattr(flows, name)).max()))
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * scale, err_msg=f"{name} {k}")


@pytest.mark.parametrize("world", WORLDS)
def test_slopes_come_with_the_same_levels(world):
    side, theta = WORLDS[world]()
    one, other = side.with_slopes(theta)[0], side.at(theta)
    for name in LINEAR:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-13)


@pytest.mark.parametrize("world", ["streets", "link sizes"])
def test_welfare_moves_by_what_a_trip_gathers(world):
    """The envelope theorem: dV/dθ_k is the expected sum of feature k along the way, where nothing is discounted."""
    side, theta = WORLDS[world]()
    flows, slopes = side.with_slopes(theta)
    np.testing.assert_allclose(slopes.flows.welfare, flows.features, rtol=1e-9)


def test_a_parameter_that_is_set_moves_nothing():
    slopes = on_streets({1: -0.7}).with_slopes(THETA)[1].flows
    for name in LINEAR:
        np.testing.assert_array_equal(np.asarray(getattr(slopes, name))[..., 1], 0.0)
    assert np.abs(np.asarray(slopes.welfare)[[0, 2]]).min() > 1.0


def test_all_trips_together_are_the_sum_of_single_ones():
    side = on_streets()
    together, mdp = side.at(THETA), side.side.mdp
    values = GoalValues(mdp, side.side.table(THETA))
    visits, turns, welfare = np.zeros(mdp.n_states), np.zeros(mdp.feasible.shape), 0.0
    for origin, goal, trips in zip(side.pairs.origin, side.pairs.destination, side.pairs.trips, strict=True):
        toward = values.toward(goal)
        start = trips * np.eye(mdp.n_states)[origin]
        visits += toward.visits(start)
        turns += toward.turns(start)
        welfare += trips * toward.value[origin] / side.pairs.total
    np.testing.assert_allclose(together.visits, visits, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(together.turns, turns, rtol=1e-10, atol=1e-12)
    assert together.welfare == pytest.approx(welfare, rel=1e-12)
    assert together.length == pytest.approx(together.features[2], rel=1e-12)  # the constant counts decisions


def test_what_comes_behind_is_the_transpose_of_what_lies_ahead():
    network = streets(3)
    toward = GoalValues(network.mdp, network.reward(list(NAMES)).value(THETA)).toward(5)
    rng = np.random.default_rng(0)
    b, c = rng.normal(size=(2, network.n_links, 3))
    b[5] = c[5] = 0.0
    np.testing.assert_allclose(toward.behind(b).T @ c, b.T @ toward.ahead(c), rtol=1e-9, atol=1e-12)
    for k in range(3):
        np.testing.assert_allclose(toward.behind(b)[:, k], toward.behind(b[:, k]), rtol=1e-9, atol=1e-12)


def test_features_are_counted_of_linear_rewards_alone():
    linear = rv.LinearReward(np.ones((3, 1)))
    assert countable(linear) is linear
    assert countable(rv.TabularReward(3)) is None
    assert countable(np.zeros((3, 2))) is None
    assert countable(SimpleNamespace(value=None)) is None


def test_flows_without_features_have_none():
    side = on_streets()
    flows = GoalSide(side.side, side.pairs, None).at(THETA)
    assert isinstance(flows, Flows)
    assert flows.features.shape == (0,)
    assert flows.welfare == side.at(THETA).welfare
