"""The log likelihood trip by trip."""

from itertools import pairwise

import numpy as np
import pytest

import revealed as rv
from networks import Trips, random_trips, windy_trips
from oracle import Floats
from revealed.errors import InvalidDemonstrations

KINDS = {"network": random_trips(3, S=20, n=80), "windy": windy_trips(0.9, n=80)}


def by_hand(fit: rv.GoalFit, demos: rv.Demonstrations) -> Floats:
    """Σ_t log π(a_t|s_t, goal), decision by decision, from the policy toward each trip's goal."""
    steps = demos.steps
    assert steps is not None
    assert steps.goal is not None
    tables = {int(g): fit.log_policy_for(int(g)) for g in np.unique(steps.goal)}
    out = np.zeros(int(steps.first.sum()))
    trip = np.cumsum(steps.first) - 1
    for i, (s, a, g) in enumerate(zip(steps.state, steps.action, steps.goal, strict=True)):
        out[trip[i]] += tables[int(g)][s, a]
    return out


@pytest.fixture(scope="module", params=KINDS)
def made(request) -> Trips:
    return KINDS[request.param]


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_trips_add_up_to_the_log_likelihood(made, method):
    options = {"updates": 2} if method is rv.NPL else {}
    fit = method(made.reward, **options).fit(made.mdp, made.demos)
    found = fit.log_likelihood_by_trip()
    np.testing.assert_allclose(found, by_hand(fit, made.demos), rtol=1e-9)
    assert found.sum() == pytest.approx(fit.llf, rel=1e-10)
    assert found.index.tolist() == list(made.demos.ids)


def test_held_out_trips_to_goals_never_seen(made):
    fit = rv.NFXP(made.reward).fit(made.mdp, made.demos)
    other = Trips(made.mdp, made.features, made.theta, n=50, goals=3, seed=99)
    assert set(other.goal_states) - set(made.goal_states)
    np.testing.assert_allclose(fit.log_likelihood_by_trip(other.demos), by_hand(fit, other.demos), rtol=1e-9)


def test_trips_count_as_often_as_their_agents_and_those_that_do_not_count_are_zero(made):
    fit = rv.NFXP(made.reward).fit(made.mdp, made.demos)
    once = fit.log_likelihood_by_trip().to_numpy()
    steps = made.demos.steps
    assert steps is not None
    for left_out in (made.demos.goals[0], made.demos.goals[-1]):
        weights = np.arange(80) % 3.0
        weights[steps.agent[steps.goal == left_out]] = 0.0
        found = fit.log_likelihood_by_trip(made.demos.reweighted(weights))
        np.testing.assert_allclose(found, weights * once, rtol=1e-12)


def test_discounted_visits_do_not_change_how_likely_a_trip_is(made):
    fit = rv.NFXP(made.reward).fit(made.mdp, made.demos)
    found = fit.log_likelihood_by_trip(made.demos.discount_visits(0.5))
    np.testing.assert_allclose(found, fit.log_likelihood_by_trip(), rtol=1e-12)


def test_agents_with_several_trips_have_a_number_for_each():
    made = KINDS["network"]
    steps = made.steps
    ends = np.flatnonzero(np.append(steps.first, True))[:6]
    paths = [(steps.state[i:j], steps.action[i:j]) for i, j in pairwise(ends)]
    goals = [int(steps.goal[i]) for i in ends[:-1]]
    demos = rv.Demonstrations.from_trajectories(paths, 20, 3, ids=["x", "y", "x", "x", "y"], goal=goals)
    fit = rv.NFXP(made.reward, start=made.theta, max_iter=1).fit(made.mdp, demos)
    found = fit.log_likelihood_by_trip()
    assert found.index.tolist() == [("x", 0), ("y", 0), ("x", 1), ("x", 2), ("y", 1)]
    np.testing.assert_allclose(found, by_hand(fit, demos), rtol=1e-9)


def test_trips_without_goals_are_refused():
    made = KINDS["network"]
    fit = rv.NFXP(made.reward).fit(made.mdp, made.demos)
    with pytest.raises(InvalidDemonstrations, match=r"expected trips with goals; got none\. Pass goal="):
        fit.log_likelihood_by_trip(made.demos.toward(made.goal_states[0]))
