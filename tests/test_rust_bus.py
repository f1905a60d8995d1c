"""Rust's bus engines: moves and costs written out by hand, and an engine that lasts."""

import math

import numpy as np
import pytest

import models
import revealed as rv
from revealed.environments import rust_bus
from revealed.environments.rust_bus import bus_features, bus_transitions

KEEP, REPLACE = 0, 1


def test_moves_of_four_bins_by_hand():
    T = bus_transitions(4, (0.2, 0.5, 0.3)).toarray().reshape(4, 2, 4)
    new = [0.2, 0.5, 0.3, 0.0]
    keep = [new, [0.0, 0.2, 0.5, 0.3], [0.0, 0.0, 0.2, 0.8], [0.0, 0.0, 0.0, 1.0]]  # the last bin collects
    np.testing.assert_allclose(T[:, KEEP], keep, atol=1e-15)
    np.testing.assert_allclose(T[:, REPLACE], [new] * 4, atol=1e-15)


@pytest.mark.parametrize(("bins", "increments"), [(90, (0.3919, 0.5953, 0.0128)), (7, (0.0, 0.1, 0.2, 0.7)), (2, (1,))])
def test_moves_by_loops(bins, increments):
    world = rust_bus(bins=bins, increments=increments, discount=0.9)
    expected = np.zeros((bins, 2, bins))
    for x in range(bins):
        for j, p in enumerate(increments):
            expected[x, KEEP, min(x + j, bins - 1)] += p
            expected[x, REPLACE, min(j, bins - 1)] += p
    np.testing.assert_allclose(models.dense(world.mdp), expected, atol=1e-15)


def test_more_increments_than_bins_end_in_the_last_bin():
    np.testing.assert_allclose(
        bus_transitions(2, (0.1, 0.2, 0.3, 0.4)).toarray(), [[0.1, 0.9]] * 2 + [[0, 1], [0.1, 0.9]]
    )


@pytest.mark.parametrize(
    ("cost", "by_hand"),
    [
        ("linear", lambda x: 0.001 * x),
        ("square root", lambda x: 0.01 * math.sqrt(x)),
        ("quadratic", lambda x: 1e-5 * x * x),
        (lambda x: 1.0 - np.exp(-x), lambda x: 1.0 - math.exp(-x)),
        (np.linspace(0.0, 1.0, 30), lambda x: x / 29),
    ],
)
def test_keeping_costs_by_mileage_and_replacing_costs_the_same_everywhere(cost, by_hand):
    world = rust_bus(bins=30, cost=cost, RC=7.0, theta11=3.0, scale=2.0, discount=0.9)
    for x in range(30):
        assert world.true_reward[x, REPLACE] == -14.0
        assert world.true_reward[x, KEEP] == pytest.approx(-6.0 * by_hand(x), rel=1e-12, abs=1e-12)
    np.testing.assert_array_equal(world.features, bus_features(30, cost))
    assert world.features.shape == (30, 2, 2)


def test_the_defaults_are_rust_s_estimates_for_group_4():
    world = rust_bus()
    assert world.mdp.n_states == 90
    assert world.mdp.discount == 0.9999
    assert world.feature_names == ("RC", "theta11")
    np.testing.assert_array_equal(world.true_weights, [10.075, 2.293])
    assert world.true_reward[0].tolist() == [0.0, -10.075]
    assert world.true_reward[89, KEEP] == pytest.approx(-0.204077)
    assert world.mdp.start().argmax() == 0
    assert world.mdp.start()[0] == 1.0
    assert world.mdp.action_labels == ("keep", "replace")


@pytest.mark.parametrize("cost", ["linear", "square root", "quadratic"])
def test_the_more_an_engine_has_run_the_likelier_it_is_replaced(cost):
    """But for the last bins, where mileage stops growing and with it the reason to replace."""
    hazard = rust_bus(cost=cost).expert[:, REPLACE]
    assert (np.diff(hazard[:85]) > 0.0).all()


def test_at_the_published_estimates_the_hazard_is_small():
    """As in Rust (1987): next to nothing for a new engine, some per cent a month for the oldest."""
    hazard = rust_bus().expert[:, REPLACE]
    assert hazard[0] < 1e-4
    assert hazard[30] < 0.01
    assert 0.02 < hazard[60] < 0.05
    assert hazard.max() < 0.1


def test_an_engine_lasts_for_years():
    """The expected time between two replacements, by a loop over months: 91 of them, at bin 57 (measured)."""
    world = rust_bus()
    hazard, T = world.expert[:, REPLACE], models.dense(world.mdp)[:, KEEP]
    alive, months, miles = T[0].copy(), 0.0, 0.0  # a bus just replaced moves on from bin 0
    replaced = 0.0
    for _ in range(5000):
        months += alive.sum()
        replaced += alive @ hazard
        miles += (alive * hazard) @ np.arange(90)
        alive = (alive * (1.0 - hazard)) @ T
    assert replaced == pytest.approx(1.0, abs=1e-6)
    assert months == pytest.approx(91.5, abs=0.1)
    assert miles == pytest.approx(56.6, abs=0.1)


def test_a_dearer_engine_is_replaced_later_and_dearer_mileage_sooner():
    usual = rust_bus().expert[:, REPLACE]
    assert (rust_bus(RC=11.0).expert[:, REPLACE] < usual).all()
    assert (rust_bus(theta11=3.0).expert[30:, REPLACE] > usual[30:]).all()


def test_where_mileage_costs_nothing_the_choice_is_a_plain_logit():
    """Nothing depends on mileage then, so keeping and replacing differ by RC alone."""
    world = rust_bus(bins=20, theta11=0.0, RC=2.0, discount=0.95)
    np.testing.assert_allclose(world.expert[:, REPLACE], 1.0 / (1.0 + math.exp(2.0)), rtol=1e-9)


def test_buses_start_new_and_run_ten_years():
    demos = rust_bus().demonstrate(50, seed=0)
    assert demos.starts[0] == 50
    assert demos.n_decisions == 50 * 120
    assert 0 < demos.counts[:, REPLACE].sum() < 0.02 * demos.n_decisions


def test_the_expert_is_the_soft_optimum():
    world = rust_bus(bins=25, discount=0.9)
    V = models.soft_value_iteration(world.mdp, world.true_reward)
    Q = world.true_reward + 0.9 * models.dense(world.mdp) @ V
    np.testing.assert_allclose(world.expert, np.exp(Q - V[:, None]), atol=1e-10)
    np.testing.assert_allclose(rv.solve(world.mdp, world.true_reward).value, V, rtol=1e-10)
