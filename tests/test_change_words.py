"""What changed is read off the two worlds: closed states, features with other numbers; else it stays unnamed."""

import numpy as np

import revealed as rv
from revealed.change_words import changed_features, closed_states
from revealed.trip_simulation import simulate_trips
from streets import model, streets

NAMES = ["travel_time", "toll", "constant"]
NETWORK = streets(3)
CLOSED = NETWORK.without(["00-01", "11-12"])


def test_states_that_nothing_leads_to_any_more_are_closed():
    assert closed_states(NETWORK.mdp, CLOSED.mdp) == "00-01, 11-12 closed"
    assert closed_states(NETWORK.mdp, NETWORK.mdp) == ""
    assert closed_states(CLOSED.mdp, NETWORK.mdp) == ""  # opened
    many = NETWORK.without(list(NETWORK.links[:6]))
    assert closed_states(NETWORK.mdp, many.mdp) == f"{', '.join(NETWORK.links[:4])} and 2 more closed"


def test_a_turn_that_is_forbidden_closes_no_state():
    feasible = NETWORK.mdp.feasible.copy()
    s = int(np.flatnonzero(feasible.sum(axis=1) > 1)[0])
    feasible[s, int(np.flatnonzero(feasible[s])[0])] = False
    assert closed_states(NETWORK.mdp, NETWORK.mdp.replace(feasible=feasible)) == ""


def test_features_with_other_numbers_are_named():
    own, dearer = NETWORK.reward(NAMES), NETWORK.with_attribute("toll", {"00-01": 9.0})
    assert changed_features(own, dearer.reward(NAMES), NETWORK.mdp) == "toll changed"
    both = dearer.with_attribute("travel_time", 1.0).reward(NAMES)
    assert changed_features(own, both, NETWORK.mdp) == "travel_time, toll changed"
    assert changed_features(own, NETWORK.reward(NAMES), NETWORK.mdp) == ""
    assert changed_features(own, own.value(-np.ones(3)), NETWORK.mdp) == ""
    tolled = CLOSED.with_attribute("toll", {"12-22": 9.0})  # turns that are closed have no features
    assert changed_features(own, tolled.reward(NAMES), tolled.mdp) == "toll changed"


def test_a_counterfactual_says_what_changed():
    drivers = model(NETWORK)
    trips = simulate_trips(NETWORK.mdp, drivers.table(), ["00-01", "10-00"] * 30, ["12-22", "22-21"] * 30, seed=0)
    fit = rv.NFXP(NETWORK.reward(NAMES), l2=0.1).fit(NETWORK.mdp, trips)
    dearer = NETWORK.with_attribute("toll", {"11-12": 9.0}).reward(NAMES)
    both = fit.counterfactual(mdp=NETWORK.without("11-21").mdp, reward=dearer, bands=None)
    assert both.words == "11-21 closed, toll changed"
    assert str(both).splitlines()[1].strip() == "Counterfactual: 11-21 closed, toll changed"
    numbers = fit.counterfactual(reward=np.asarray(fit.reward) - 0.1, bands=None)
    assert numbers.words == "changed reward"
