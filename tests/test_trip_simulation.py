"""Simulated trips: their choices have the probabilities of the model, and what is drawn depends on the seed alone."""

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed.environments import city
from revealed.errors import InvalidInput
from revealed.goal_values import GoalValues
from revealed.trip_simulation import simulate_trips


@pytest.fixture(scope="module")
def town():
    return city(100, seed=1)


def by_trip(demos: rv.Demonstrations) -> list[list[int]]:
    steps = demos.steps
    assert steps is not None
    return [steps.state[steps.agent == k].tolist() for k in range(demos.n_agents)]


def test_choices_have_the_probabilities_of_the_policy(town):
    """Pearson's statistic over links where no choice is rare: about one per degree of freedom."""
    goal, n = 40, 30_000
    origins = np.random.default_rng(0).choice(np.delete(np.arange(town.mdp.n_states), goal), size=n)
    trips = simulate_trips(town.mdp, town.true_reward, origins, np.full(n, goal), seed=1)
    policy = town.expert_for(goal)
    expected = trips.counts.sum(axis=1, keepdims=True) * policy
    offered = policy > 0.0
    rows = (~offered | (expected >= 5.0)).all(axis=1) & offered.any(axis=1)
    cells = offered & rows[:, None]
    statistic = float(((trips.counts - expected)[cells] ** 2 / expected[cells]).sum())
    freedom = float(cells.sum() - rows.sum())
    assert freedom > 100.0
    assert abs(statistic - freedom) < 4.0 * np.sqrt(2.0 * freedom)
    assert not trips.counts[policy == 0.0].any()


def test_the_use_of_links_is_the_expected_one(town):
    origin, goal, n = 3, 60, 4000
    trips = simulate_trips(town.mdp, town.true_reward, np.full(n, origin), np.full(n, goal), seed=2)
    start = (np.arange(town.mdp.n_states) == origin).astype(float)
    expected = GoalValues(town.mdp, town.true_reward).toward(goal).visits(start)
    seen = trips.counts.sum(axis=1) / n
    seen[goal] += 1.0  # everybody arrives
    np.testing.assert_allclose(seen, expected, atol=5.0 / np.sqrt(n))


def test_trips_to_a_goal_do_not_depend_on_trips_to_other_goals(town):
    origins, goals = np.array([1, 2, 3, 4, 5]), np.array([50, 60, 50, 70, 60])
    all_of_them = by_trip(simulate_trips(town.mdp, town.true_reward, origins, goals, seed=3))
    for goal in (50, 60, 70):
        own = goals == goal
        alone = by_trip(simulate_trips(town.mdp, town.true_reward, origins[own], goals[own], seed=3))
        assert alone == [all_of_them[k] for k in np.flatnonzero(own)]


def test_longest_cuts_trips_off(town):
    origins, goals = np.arange(30), np.full(30, 60)
    whole = simulate_trips(town.mdp, town.true_reward, origins, goals, seed=4)
    cut = simulate_trips(town.mdp, town.true_reward, origins, goals, seed=4, longest=3)
    assert [len(trip) for trip in by_trip(cut)] == [min(3, len(trip)) for trip in by_trip(whole)]
    assert by_trip(cut)[0] == by_trip(whole)[0][:3]


def line(labels=None) -> rv.MDP:
    """Three states in a row: the first leads to the second and third, the second to the third, which ends."""
    T = sp.csr_array(([1.0, 1.0, 1.0], ([0, 1, 2], [1, 2, 2])), shape=(6, 3))
    feasible = np.array([[True, True], [True, False], [False, False]])
    return rv.MDP(T, 1.0, feasible=feasible, terminal=[False, False, True], state_labels=labels)


def test_numbers_are_indices_and_labels_that_are_numbers_go_in_as_text():
    demos = simulate_trips(line((2, 0, 1)), np.full((3, 2), -1.0), origins=["2", "2"], destinations=["0", "1"], seed=0)
    by_place = simulate_trips(line((2, 0, 1)), np.full((3, 2), -1.0), origins=[0, 0], destinations=[1, 2], seed=0)
    np.testing.assert_array_equal(by_place.counts, demos.counts)
    steps = demos.steps
    assert steps is not None
    assert steps.goal is not None
    assert steps.goal[steps.first].tolist() == [1, 2]
    assert steps.state[steps.first].tolist() == [0, 0]
    assert demos.state_labels == (2, 0, 1)


@pytest.mark.parametrize(
    ("origins", "destinations", "message"),
    [
        ([0, 1], [2], r"`destinations`: expected as many as origins \(2\); got 1\."),
        ([0, 1], [2, 1], r"a trip cannot start at its destination state 1 \(first at trip 1\)\."),
        (
            [0, 1],
            [2, 0],
            r"goal 0 cannot be reached from state 1 \(first at trip 1\)\.",
        ),
        ([0, 3], [2, 2], "`origins`: expected indices in 0…2; got 3"),
        ([], [], r"`origins`: expected a sequence of states, one per trip; got \[\]"),
        ("0", [2], "`origins`: expected a sequence of states, one per trip; got '0'"),
    ],
)
def test_trips_that_cannot_be_are_named(origins, destinations, message):
    with pytest.raises(rv.errors.InvalidInput, match=message):
        simulate_trips(line(), np.full((3, 2), -1.0), origins, destinations)


def test_where_going_round_is_worth_more_than_arriving_no_trip_is_drawn(town):
    with pytest.raises(rv.errors.ValueDoesNotExist):
        simulate_trips(town.mdp, np.zeros_like(town.true_reward), [0], [1])


def test_trips_that_would_hardly_ever_arrive_need_a_longest():
    """State 0 goes round (1) or on (2) to the goal: with odds 1 to p it takes 1/p decisions each time round on average.

    Going round is worth nearly as much as it takes for the value to exist, so that p is small and trips are endless."""
    mdp = rv.MDP(np.eye(3)[[[1, 2], [0, 0], [2, 2]]], 1.0, terminal=[False, False, True], feasible=FORK)
    leave = 1e-8
    reward = np.array([[np.log1p(-leave), -3.0], [0.0, 0.0], [0.0, 0.0]])
    rounds = GoalValues(mdp, reward).toward(2).visits(np.array([1.0, 0.0, 0.0]))[0]
    assert rounds == pytest.approx(1.0 / leave, rel=1e-6)
    with pytest.raises(InvalidInput) as caught:
        simulate_trips(mdp, reward, [0, 0], [2, 2], seed=0)
    assert str(caught.value) == (
        "`longest` is required, because trips are long: 2e+08 decisions are expected on the way to goal 2. Trips that "
        "have not arrived by then are cut off; or make rewards more negative."
    )
    cut = simulate_trips(mdp, reward, [0, 0], [2, 2], seed=0, longest=50)
    assert cut.counts.sum() == 100.0


FORK = np.array([[True, True], [True, False], [False, False]])
