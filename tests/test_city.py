"""The generated city: a road network as one would draw it, and drivers who behave as their preferences say."""

import cmath
import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra

import revealed as rv
from revealed.environments import City, city
from revealed.environments.city_links import links_of, quiet
from revealed.environments.city_streets import ARTERIAL, LOCAL, MOTORWAY, SPEEDS, Streets, lay_streets, triangulate
from revealed.goal_flows import observed_use
from revealed.goal_values import GoalValues
from revealed.simulation import make_rng
from revealed.trajectories import Steps


@pytest.fixture(scope="module")
def town() -> City:
    return city(600, seed=1)


@pytest.fixture(scope="module")
def trips(town: City) -> rv.Demonstrations:
    return town.demonstrate(240, seed=5, destinations=30)


def told(trips: rv.Demonstrations) -> tuple[Steps, np.ndarray]:
    """The decisions of trips, and the goal of each."""
    assert trips.steps is not None
    assert trips.steps.goal is not None
    return trips.steps, trips.steps.goal


def places(town: City) -> np.ndarray:
    assert town.network.coordinates is not None
    return town.network.coordinates


def graph(town: City, weight: np.ndarray) -> sp.csr_array:
    network = town.network
    return sp.csr_array((weight, (network.source, network.target)), shape=(network.n_links, network.n_links))


# -- the network ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "seed"), [(100, 0), (100, 7), (300, 3), (2000, 0), (7500, 2)])
def test_a_city_has_about_the_links_asked_for_and_each_can_be_reached_from_each(n, seed):
    town = city(n, seed)
    assert abs(town.network.n_links / n - 1.0) <= 0.06
    parts, _ = connected_components(graph(town, np.ones(town.network.n_turns)), connection="strong")
    assert parts == 1
    assert not town.mdp.terminal.any()


def test_seven_thousand_five_hundred_links_have_about_twenty_one_thousand_turns():
    assert 20_000 <= city(7500).network.n_turns <= 22_000


def test_streets_do_not_cross():
    streets = lay_streets(400, make_rng(2))
    for (a, b), (c, d) in itertools.combinations(streets.ends, 2):
        if len({a, b, c, d}) == 4:
            assert not segments_meet(*streets.nodes[[a, b, c, d]])


def segments_meet(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> bool:
    def side(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> float:
        return float((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))

    return side(a, b, c) * side(a, b, d) <= 0.0 and side(c, d, a) * side(c, d, b) <= 0.0


def test_the_motorway_is_a_ring_that_arterials_alone_lead_to():
    streets = lay_streets(3000, make_rng(4))
    ring = streets.ends[streets.kind == MOTORWAY]
    nodes, often = np.unique(ring, return_counts=True)
    assert set(often) == {2}
    place = np.searchsorted(nodes, ring)
    whole = sp.coo_array((np.ones(len(ring)), (place[:, 0], place[:, 1])), shape=(nodes.size, nodes.size))
    assert connected_components(whole)[0] == 1
    meeting = streets.kind[np.isin(streets.ends, nodes).any(axis=1)]
    assert set(meeting) == {ARTERIAL, MOTORWAY}


def test_higher_classes_are_faster_and_time_is_length_over_speed(town):
    assert list(SPEEDS) == sorted(set(SPEEDS))
    values = town.network.link_values
    np.testing.assert_array_equal(values["speed"], np.array(SPEEDS)[town.kind])
    ends = places(town)
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    np.testing.assert_allclose(values["length"], length, rtol=1e-12)
    np.testing.assert_allclose(values["travel_time"], 60.0 * length / values["speed"], rtol=1e-12)
    assert {LOCAL, ARTERIAL, MOTORWAY} == set(town.kind)


def test_turns_to_the_left_are_those_of_an_angle_measured_by_hand(town):
    network = town.network
    heading = [complex(*(end - start)) for start, end in places(town)]
    degrees = [math.degrees(cmath.phase(heading[j] / heading[i])) for i, j in zip(network.source, network.target)]
    expected = np.array([40.0 <= angle <= 170.0 for angle in degrees])
    np.testing.assert_array_equal(network.attribute("left_turn"), expected)
    assert 0.2 < expected.mean() < 0.4  # of three ways on one leads to the left


def test_turning_back_is_for_quiet_places_and_dead_ends():
    streets = lay_streets(1000, make_rng(3))
    links = links_of(streets)
    ways = np.bincount(links.source)
    arms = np.bincount(streets.ends.reshape(-1))
    higher = {node for ends, kind in zip(streets.ends, streets.kind) if kind != LOCAL for node in ends}
    back = 0
    for i, j in zip(links.source, links.target):
        if links.end[j] == links.start[i]:
            back += 1
            node = links.end[i]
            assert ways[i] == 1 or (node not in higher and arms[node] <= 3)
    assert back > 0
    dead = np.flatnonzero(arms[links.end] == 1)
    assert dead.size > 0
    assert (ways[dead] == 1).all()


def test_one_way_streets_are_local_and_have_no_way_back():
    streets = lay_streets(1000, make_rng(3))
    links = links_of(streets)
    assert streets.one_way.any()
    assert (streets.kind[streets.one_way] == LOCAL).all()
    driven = set(zip(links.start.tolist(), links.end.tolist()))
    assert not any((b, a) in driven for a, b in streets.ends[streets.one_way].tolist())


def test_a_crossing_of_three_local_streets_is_quiet_and_one_on_an_arterial_is_not():
    ends = np.array([[0, 1], [0, 2], [0, 3], [3, 4], [1, 5]])
    kind = np.array([LOCAL, LOCAL, LOCAL, ARTERIAL, LOCAL])
    streets = Streets(np.zeros((6, 2)), ends, kind, np.zeros(5, dtype=bool))
    assert quiet(streets).tolist() == [True, True, True, False, False, True]


def test_gabriel_edges_have_no_third_node_in_the_circle_over_them():
    nodes = make_rng(0).normal(size=(40, 2))
    edges, clear = triangulate(nodes)
    found = {tuple(edge) for edge in edges[clear].tolist()}
    expected = set()
    for i, j in itertools.combinations(range(40), 2):
        middle, radius = (nodes[i] + nodes[j]) / 2.0, np.linalg.norm(nodes[i] - nodes[j]) / 2.0
        others = np.delete(nodes, [i, j], axis=0)
        if (np.linalg.norm(others - middle, axis=1) > radius).all():
            expected.add((i, j))
    assert found == expected


def test_a_seed_makes_one_city_and_another_seed_another():
    first, again, other = city(300, seed=4), city(300, seed=4), city(300, seed=5)
    np.testing.assert_array_equal(places(first), places(again))
    np.testing.assert_array_equal(first.network.target, again.network.target)
    assert not np.array_equal(places(first)[:50], places(other)[:50])


@pytest.mark.parametrize("wrong", [99, 0, 500.0, "large", True])
def test_a_city_of_no_size_is_refused(wrong):
    with pytest.raises(rv.errors.InvalidInput, match="`n_links`: expected a whole number, at least 100"):
        city(wrong)


# -- the drivers ------------------------------------------------------------------------------------------------------


def test_the_true_reward_is_the_weighted_sum_of_what_drivers_see(town):
    weights = town.true_weights
    assert list(weights.index) == ["travel_time", "left_turn", "u_turn", "constant"] == list(town.reward.names)
    assert (weights < 0.0).all()
    by_hand = sum(w * town.network.attribute(name) for name, w in weights.items())
    np.testing.assert_allclose(town.true_reward.reshape(-1)[town.network.pair], by_hand, rtol=1e-12)
    summed = np.where(town.mdp.feasible, town.features @ weights.to_numpy(), np.nan)  # no reward where there is no turn
    np.testing.assert_allclose(summed, town.true_reward, atol=1e-12)


@pytest.mark.parametrize("n", [100, 600, 3000])
def test_the_value_exists_toward_every_goal_by_a_good_margin(n):
    town = city(n, seed=3)
    M = graph(town, np.exp(town.true_reward.reshape(-1)[town.network.pair]))
    radius = np.abs(sp.linalg.eigs(M, k=1, return_eigenvectors=False, v0=np.ones(M.shape[0])))[0]
    assert radius < 0.7
    value = GoalValues(town.mdp, town.true_reward).toward(0).value
    assert np.isfinite(value).all()


def test_the_expert_for_a_goal_chooses_everywhere_but_there(town):
    policy = town.expert_for(17)
    np.testing.assert_allclose(policy.sum(axis=1), np.arange(town.mdp.n_states) != 17, atol=1e-10)
    assert not policy[~town.mdp.feasible].any()


def test_trips_start_and_end_where_they_should_and_use_turns_that_exist(town, trips):
    steps, goal = told(trips)
    assert np.unique(goal).size == 30
    assert trips.ids == tuple(range(240))
    assert (town.network.turns_between(steps.state, steps.next_state) >= 0).all()
    last = np.flatnonzero(np.append(steps.first[1:], True))
    assert last.size == 240
    np.testing.assert_array_equal(steps.next_state[last], goal[last])
    assert (steps.state != goal).all()
    going = ~np.append(steps.first[1:], True)
    np.testing.assert_array_equal(steps.next_state[going], steps.state[1:][going[:-1]])


def test_drivers_waste_little_time(town, trips):
    """Sensible trips: as a whole 10 to 35 per cent longer than the quickest ways."""
    (steps, goal), minutes = told(trips), town.network.link_values["travel_time"]
    quickest = dijkstra(graph(town, minutes[town.network.target]))
    best = quickest[steps.state[steps.first], goal[steps.first]].sum()
    assert 1.1 < minutes[steps.next_state].sum() / best < 1.35


def test_seeds_reproduce_trips_and_destinations_can_be_named(town):
    first, again = (town.demonstrate(20, seed=9, destinations=[3, 40]) for _ in range(2))
    np.testing.assert_array_equal(told(first)[0].state, told(again)[0].state)
    other = town.demonstrate(20, seed=10, destinations=[3, 40])
    assert not np.array_equal(told(first)[0].state[:20], told(other)[0].state[:20])
    assert set(told(first)[1]) == {3, 40}
    here = town.demonstrate(20, seed=9, destinations=[3, 40], origins=[3, 7])
    steps, goals = told(here)
    origin, goal = steps.state[steps.first], goals[steps.first]
    assert set(origin[goal == 40]) == {3, 7}
    assert set(origin[goal == 3]) == {7}  # nobody goes to where they are


def test_every_destination_is_somebodys_goal(town):
    assert np.unique(told(town.demonstrate(40, destinations=40))[1]).size == 40
    assert np.unique(told(town.demonstrate(40))[1]).size == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"destinations": 0}, r"`destinations`: expected 1…\d+ links; got 0"),
        ({"destinations": "x"}, "`destinations`: expected a number of links, or a sequence of links; got 'x'"),
        ({"destinations": [-1]}, "`destinations`: expected one of 0, 1, 2"),
        ({"destinations": [5], "origins": [5]}, "no trip can start at link 5: it is the only destination"),
        ({"n": 0}, "`n`: expected a whole number, at least 1; got 0"),
        ({"seed": -1}, "`seed`: expected None or a whole number >= 0; got -1"),
    ],
)
def test_demonstrate_says_what_it_cannot_do(town, options, message):
    with pytest.raises(rv.errors.InvalidInput, match=message):
        town.demonstrate(**{"n": 5} | options)


def test_the_use_of_links_counts_the_first_and_the_last_of_every_trip(town):
    trips = town.demonstrate(12, seed=2, destinations=3)
    steps, _ = told(trips)
    by_hand = np.zeros(town.mdp.n_states)
    for trip in range(12):
        own = steps.agent == trip
        for link in [*steps.state[own], steps.next_state[own][-1]]:
            by_hand[link] += 1.0
    np.testing.assert_array_equal(observed_use(trips), by_hand)
