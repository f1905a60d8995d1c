"""How often states are used: sums over trips, and expectations that agree with simulation and with the maximum."""

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from networks import random_trips, windy_trips
from revealed.goal_flows import expected_use, observed_use
from revealed.trip_simulation import simulate_trips

MADE = {"network": random_trips(2, S=16, n=200), "windy": windy_trips(0.95, n=120)}


@pytest.fixture(scope="module", params=MADE)
def made(request):
    return MADE[request.param]


@pytest.fixture(scope="module")
def fit(made):
    return rv.NFXP(made.reward).fit(made.mdp, made.demos)


def test_what_was_observed_is_counted_state_by_state(made):
    steps, by_hand = made.steps, np.zeros(made.mdp.n_states)
    for s, after, goal in zip(steps.state, steps.next_state, steps.goal, strict=True):
        by_hand[s] += 1
        by_hand[goal] += after == goal
    np.testing.assert_array_equal(observed_use(made.demos), by_hand)


def test_trips_leave_what_they_enter_but_for_origins_and_goals(made, fit):
    visits, actions = expected_use(fit)
    starts = np.bincount(made.demos.origins, minlength=visits.size)
    ends = np.bincount(made.demos.destinations, minlength=visits.size)
    entered = made.mdp.transitions.push(actions)
    np.testing.assert_allclose(visits, starts + entered, atol=1e-9)
    np.testing.assert_allclose(actions.sum(axis=1), visits - ends, atol=1e-9)


def test_at_the_maximum_trips_gather_what_is_expected_of_them():
    """The score of a linear reward (theory R4): features observed less features expected."""
    made = MADE["network"]
    fit = rv.NFXP(made.reward).fit(made.mdp, made.demos)
    gap = made.demos.counts - expected_use(fit)[1]
    np.testing.assert_allclose(np.einsum("sa,sak->k", gap, made.features), 0.0, atol=1e-5)


def test_simulated_trips_are_used_as_expected(made, fit):
    again = np.tile(np.arange(fit.n_trips), 60)
    ends = made.demos.origins[again], made.demos.destinations[again]
    drawn = observed_use(simulate_trips(made.mdp, fit.reward, *ends, seed=5)) / 60.0
    visits = expected_use(fit)[0]
    assert np.abs(drawn - visits).max() < 5.0 * np.sqrt(3.0 * visits.max() / 60.0)  # visits of a trip cluster


def test_the_table_has_a_row_per_state(made, fit):
    frame = fit.flows()
    pd.testing.assert_index_equal(frame.index, pd.RangeIndex(made.mdp.n_states, name="state"))
    np.testing.assert_array_equal(frame["observed"], observed_use(made.demos))
    np.testing.assert_allclose(frame["expected"], expected_use(fit)[0], rtol=1e-12)


@pytest.mark.parametrize("per", ["goal", "pair"])
def test_rewards_that_depend_on_the_trip_are_summed_case_by_case(per):
    city = rv.environments.city(100, seed=0)
    trips = city.demonstrate(20, seed=1, destinations=3)
    sizes = rv.link_size(city.network, city.reward, city.true_weights, trips, per=per)
    reward = rv.LinkSizeReward(city.reward, sizes)
    fit = rv.NFXP(reward, l2=0.01).fit(city.mdp, trips)
    by_choice = rv.RouteChoice.of(city.network, fit).flows(trips)
    np.testing.assert_allclose(fit.flows()["expected"], by_choice, rtol=1e-9, atol=1e-12)
