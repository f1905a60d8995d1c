"""Turns on random graphs are those that an oracle finds by looking at every pair of links."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from revealed.errors import InvalidInput
from revealed.routes.turns import turn_angles, turns_that_meet
from roads import turns_of

ENDS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=14)


def as_frame(ends: list[tuple[int, int]]) -> pd.DataFrame:
    frame = pd.DataFrame(ends, columns=["from", "to"])
    return frame.assign(link=[f"l{k}" for k in range(len(ends))], time=np.arange(len(ends), dtype=float))


def oracle(ends: list[tuple[int, int]], u_turns: bool) -> list[tuple[int, int]]:
    n = range(len(ends))
    meet = [(i, j) for i in n for j in n if i != j and ends[i][1] == ends[j][0]]
    if u_turns:
        return meet
    onward = [(i, j) for i, j in meet if not is_back(ends[i], ends[j])]
    stuck = {i for i, _ in meet} - {i for i, _ in onward}
    return sorted(onward + [(i, j) for i, j in meet if i in stuck])


def is_back(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] != one[1] and other[1] == one[0]


@given(ENDS, st.booleans())
def test_turns_are_those_of_all_pairs(ends, u_turns):
    expected = oracle(ends, u_turns)
    if not expected:
        with pytest.raises(InvalidInput, match="no turn"):
            rv.RoadNetwork.from_frame(as_frame(ends))
        return
    network = rv.RoadNetwork.from_frame(as_frame(ends), u_turns=u_turns)
    assert list(zip(network.source.tolist(), network.target.tolist(), strict=True)) == expected
    assert network.attribute("u_turn").tolist() == [float(is_back(ends[i], ends[j])) for i, j in expected]
    assert network.attribute("time").tolist() == [float(j) for _, j in expected]
    sizes = [sum(i == k for i, _ in expected) for k in range(len(ends))]
    assert network.mdp.feasible.sum(axis=1).tolist() == sizes
    assert network.mdp.terminal.tolist() == [size == 0 for size in sizes]
    moves = network.mdp.transitions.matrix[network.pair].toarray()
    np.testing.assert_array_equal(moves, np.eye(len(ends))[network.target])


@given(ENDS, st.randoms(use_true_random=False))
def test_a_table_of_the_turns_in_any_order_is_the_same_network(ends, random):
    if not oracle(ends, True):
        return
    network = rv.RoadNetwork.from_frame(as_frame(ends))
    shuffled = network.turns_frame.sample(frac=1.0, random_state=random.randrange(2**31))
    again = rv.RoadNetwork.from_frame(as_frame(ends), turns=shuffled)
    assert turns_of(again) == turns_of(network)
    np.testing.assert_array_equal(again.pair, network.pair)
    np.testing.assert_array_equal(again.attribute("u_turn"), network.attribute("u_turn"))
    alone = rv.RoadNetwork.from_turns(shuffled, links=as_frame(ends), attributes=["time"])
    assert turns_of(alone) == turns_of(network)


@given(ENDS)
def test_turns_are_found_where_they_are_and_nowhere_else(ends):
    expected = oracle(ends, True)
    if not expected:
        return
    network = rv.RoadNetwork.from_frame(as_frame(ends))
    every = np.array([(i, j) for i in range(len(ends)) for j in range(len(ends))])
    found = network.turns_between(*every.T)
    places = {turn: k for k, turn in enumerate(expected)}
    assert found.tolist() == [places.get((int(i), int(j)), -1) for i, j in every]


@given(st.floats(-179.0, 179.0), st.floats(0.0, 360.0), st.floats(0.1, 10.0))
def test_the_angle_of_a_turn_is_that_by_which_the_road_was_bent(bend, heading, length):
    """Whatever way the first link points and however long the links are; positive to the left."""
    first, second = np.radians(heading), np.radians(heading + bend)
    middle = np.array([np.cos(first), np.sin(first)])
    end = middle + length * np.array([np.cos(second), np.sin(second)])
    frame = pd.DataFrame({"link": ["a", "b"], "from": [0, 1], "to": [1, 2]})
    points = pd.DataFrame([(0, 0.0, 0.0), (1, *middle), (2, *end)], columns=["node", "x", "y"])
    network = rv.RoadNetwork.from_frame(frame, nodes=points)
    assert network.nodes is not None
    assert network.coordinates is not None
    found = turn_angles(turns_that_meet(network.nodes), network.coordinates)
    np.testing.assert_allclose(found, [bend], atol=1e-6)
    np.testing.assert_allclose(network.attribute("length"), [length], rtol=1e-9)
    if abs(bend - 40.0) > 1e-3 and abs(bend - 170.0) > 1e-3:
        assert bool(network.attribute("left_turn")[0]) is (40.0 <= bend <= 170.0)


def test_a_hub_that_would_have_too_many_turns_is_named(monkeypatch):
    monkeypatch.setattr("revealed.routes.turns.MOST_TURNS", 6)
    with pytest.raises(InvalidInput, match=r"got 8 turns, of which most pass node 1\. Pass turns=\."):
        rv.RoadNetwork.from_frame(as_frame([(0, 1), (2, 1), (3, 1), (1, 4), (1, 5), (4, 2)]))
