"""Networks made from others: links closed, tolls raised, arrivals added; numbers of states and actions stay."""

import re

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from revealed.errors import InvalidDemonstrations, InvalidInput
from roads import LINKS, TURNS, steps_of, town, trip_table, turns_of


def raises(message: str):
    return pytest.raises(InvalidInput, match=f"^{re.escape(message)}$")


# -- closing ----------------------------------------------------------------------------------------------------------


def test_no_turn_leads_into_a_closed_link_and_numbers_stay():
    network = town()
    closed = network.without("ba")
    assert turns_of(closed) == [turn for turn in TURNS if turn[1] != "ba"]
    assert closed.links == network.links
    assert closed.n_actions == network.n_actions
    kept = [k for k, turn in enumerate(TURNS) if turn[1] != "ba"]
    np.testing.assert_array_equal(closed.pair, network.pair[kept])
    for name in network.attributes:
        np.testing.assert_array_equal(closed.attribute(name), network.attribute(name)[kept])
    np.testing.assert_array_equal(np.flatnonzero(closed.mdp.feasible), network.pair[kept])
    theta = np.arange(1.0, 6.0)
    one, other = (road.reward(network.attributes).value(theta).reshape(-1)[closed.pair] for road in (network, closed))
    np.testing.assert_array_equal(one, other)


def test_a_link_whose_ways_on_are_closed_is_a_dead_end():
    closed = town().without(["cd", "ce"])
    assert [LINKS[s] for s in np.flatnonzero(closed.mdp.terminal)] == ["bc", "ce"]


def test_decisions_of_the_open_network_are_those_of_the_closed_one():
    table = trip_table(("T1", "da ab bc ce"))
    one, other = town().trips(table), town().without(["ba", "cd"]).trips(table)
    np.testing.assert_array_equal(one.counts, other.counts)
    with pytest.raises(
        InvalidDemonstrations, match=r"no turn leads from link 'bc' to link 'ce', where .* goes at sequence 4"
    ):
        town().without("ce").trips(table)


def test_only_links_that_there_are_can_be_closed():
    with raises("`links`: expected one of ab, ba, bc, cd, da, ce; got 'cee' (first at entry 1). Did you mean ce?"):
        town().without(["ab", "cee"])
    with raises("no turn is left without these links."):
        town().without(LINKS)


# -- attributes -------------------------------------------------------------------------------------------------------


def test_a_toll_by_link_is_paid_on_entering_it():
    network = town().with_attribute("toll", {"bc": 2.5})
    assert network.attribute("toll").tolist() == [2.5 if link == "bc" else 0.0 for _, link in TURNS]
    raised = network.with_attribute("toll", pd.Series({"cd": 1.0}))
    assert dict(zip(TURNS, raised.attribute("toll"), strict=True))["ab", "bc"] == 2.5
    assert dict(zip(TURNS, raised.attribute("toll"), strict=True))["bc", "cd"] == 1.0
    assert "toll" not in town().attributes
    assert raised.links_frame["toll"].tolist() == [0.0, 0.0, 2.5, 1.0, 0.0, 0.0]


def test_a_turn_is_named_by_its_two_links():
    network = town().with_attribute("time", {("da", "ab"): 9.0})
    assert network.attribute("time").tolist() == [2.0, 3.0, 1.0, 4.0, 6.0, 5.0, 9.0]
    assert "time" not in network.links_frame
    again = network.with_attribute("time", {"ab": 7.0})  # both turns into ab
    assert again.attribute("time").tolist() == [2.0, 3.0, 7.0, 4.0, 6.0, 5.0, 7.0]


def test_numbers_for_all_turns():
    network = town()
    values = np.arange(7.0)
    assert network.with_attribute("wait", values).attribute("wait").tolist() == values.tolist()
    assert network.with_attribute("wait", pd.Series(values)).attribute("wait").tolist() == values.tolist()
    assert network.with_attribute("time", 3).attribute("time").tolist() == [3.0] * 7
    assert network.with_attribute("time", network.attribute("time")).reward().names[-1] == "left_turn"
    values[0] = 100.0
    assert network.with_attribute("wait", np.arange(7.0)).attribute("wait")[0] == 0.0


def test_links_with_whole_numbers_as_ids_are_meant_by_a_series():
    ring = pd.DataFrame({"link": [2, 0, 1], "from": [0, 1, 2], "to": [1, 2, 0], "toll": [12.0, 10.0, 11.0]})
    network = rv.RoadNetwork.from_frame(ring.drop(columns="toll")).with_attribute(
        "toll", ring.set_index("link")["toll"]
    )
    assert {network.links[t]: v for t, v in zip(network.target, network.attribute("toll"), strict=True)} == {
        0: 10.0,
        1: 11.0,
        2: 12.0,
    }


def test_numbers_of_rows_are_no_ids_of_links_unless_they_are_theirs_in_order():
    """Rows that pandas numbered 0, 1, 2 are links 2, 0, 1 here: taking the numbers for ids would permute the tolls."""
    ring = pd.DataFrame({"link": [2, 0, 1], "from": [0, 1, 2], "to": [1, 2, 0], "toll": [12.0, 10.0, 11.0]})
    message = (
        "`values`: expected a Series by link or by pair of links; got one by row number, 0…2. "
        'For example: table.set_index("link")["toll"], or a dict; an array is in the order of the turns.'
    )
    with raises(message):
        rv.RoadNetwork.from_frame(ring.drop(columns="toll")).with_attribute("toll", ring["toll"])
    ordered = ring.assign(link=[0, 1, 2])
    network = rv.RoadNetwork.from_frame(ordered.drop(columns="toll"))
    with raises(message):  # as many turns as links: numbers of rows may be either's
        network.with_attribute("toll", ordered["toll"])
    lane = pd.DataFrame({"link": [0, 1, 2], "from": [0, 1, 2], "to": [1, 2, 3], "toll": [12.0, 10.0, 11.0]})
    network = rv.RoadNetwork.from_frame(lane.drop(columns="toll")).with_attribute("toll", lane["toll"])
    np.testing.assert_array_equal(network.attribute("toll"), lane["toll"].to_numpy()[network.target])


def test_the_remedy_for_numbers_of_rows_works_where_the_ids_are_such_numbers():
    """Sorted by link, an index of ids is 0, 1, 2 as well: its name says that somebody set it."""
    ring = pd.DataFrame({"link": [2, 0, 1], "from": [0, 1, 2], "to": [1, 2, 0], "toll": [12.0, 10.0, 11.0]})
    network = rv.RoadNetwork.from_frame(ring.drop(columns="toll"))
    for table in (ring, ring.sort_values("link")):
        by_link = network.with_attribute("toll", table.set_index("link")["toll"]).links_frame
        assert dict(zip(by_link["link"], by_link["toll"], strict=True)) == {2: 12.0, 0: 10.0, 1: 11.0}
    named_rows = pd.Series([10.0, 11.0, 12.0], pd.RangeIndex(3, name="link"))
    assert network.with_attribute("toll", named_rows).links_frame["toll"].tolist() == [12.0, 10.0, 11.0]


def test_a_series_in_the_order_of_the_turns_is_not_read_by_link():
    """Links 0, 1, 2, … with fewer turns than links: numbers of the turns' rows are ids of links, too."""
    lane = rv.RoadNetwork.from_frame(pd.DataFrame({"link": range(4), "from": range(4), "to": range(1, 5)}))
    assert lane.n_turns < lane.n_links
    with pytest.raises(InvalidInput, match="got one by row number, 0…2"):
        lane.with_attribute("toll", lane.turns_frame.assign(toll=[5.0, 6.0, 7.0])["toll"])
    by_turn = lane.with_attribute("toll", np.array([5.0, 6.0, 7.0]))
    np.testing.assert_array_equal(by_turn.attribute("toll"), [5.0, 6.0, 7.0])


def test_values_that_cannot_be_meant():
    network = town()
    expected = "`values`: expected a number, 7 finite numbers (one per turn), or a dict by link or by pair of links; "
    with raises(expected + "got shape (6,)."):
        network.with_attribute("toll", np.ones(6))
    with raises(expected + "got str 'free'."):
        network.with_attribute("toll", "free")
    with raises("`values`: expected one of ab, ba, bc, cd, da, ce; got 'bcc'. Did you mean bc?"):
        network.with_attribute("toll", {"bcc": 1.0})
    with raises("no turn leads from link 'ab' to link 'cd'. Turns from link 'ab' lead to ba, bc."):
        network.with_attribute("toll", {("ab", "cd"): 1.0})
    with raises("`values`: expected keys that are all links, or all pairs of links; got 'bc'."):
        network.with_attribute("toll", {("ab", "bc"): 1.0, "bc": 1.0})
    with raises("`values`: expected a finite number for every link or turn named; got nan (first at 'bc')."):
        network.with_attribute("toll", {"bc": np.nan})
    with raises("`values`: expected each link or turn once; got 'bc' twice."):
        network.with_attribute("toll", pd.Series([1.0, 2.0], index=["bc", "bc"]))
    with raises("`name`: expected a name; got 3."):
        network.with_attribute(3, 1.0)  # pyright: ignore[reportArgumentType]


# -- arrivals ---------------------------------------------------------------------------------------------------------


def test_an_arrival_link_stands_behind_its_link_and_costs_nothing():
    network = town().with_arrivals(["bc", "ab"])
    assert network.links == (*LINKS, "ab (arrival)", "bc (arrival)")
    new = [("ab", "ab (arrival)"), ("bc", "bc (arrival)")]
    assert [turn for turn in turns_of(network) if turn not in TURNS] == new
    for name in network.attributes:
        assert [network.attribute(name)[network.turn_index(*turn)] for turn in new] == [0.0, 0.0]
        old = [network.attribute(name)[network.turn_index(*turn)] for turn in TURNS]
        np.testing.assert_array_equal(old, town().attribute(name))
    assert [network.slot[network.turn_index(*turn)] for turn in TURNS] == town().slot.tolist()
    assert (np.diff(network.pair) > 0).all()
    assert [network.links[s] for s in np.flatnonzero(network.mdp.terminal)] == ["ce", "ab (arrival)", "bc (arrival)"]
    np.testing.assert_array_equal(np.asarray(network.coordinates)[6], [[1.0, 0.0], [1.0, 0.0]])


def test_toward_an_arrival_link_trips_may_pass_their_destination():
    """z(ab) = x z(bc) + u z(ab) and z(bc) = 1 + q z(ab): round and round before one stays."""
    network = town().with_arrivals("bc")
    theta = np.array([-0.2, -0.4])
    r = dict(zip(turns_of(network), network.attribute("time") * theta[0] + network.attribute("constant") * theta[1]))
    found = rv.solve(network.mdp.toward("bc (arrival)"), network.reward(["time", "constant"]).value(theta))
    x, u = np.exp(r["ab", "bc"]), np.exp(r["ab", "ba"] + r["ba", "ab"])
    q = np.exp(r["bc", "cd"] + r["cd", "da"] + r["da", "ab"])
    np.testing.assert_allclose(np.exp(found.value[0]), x / (1.0 - u - x * q), rtol=1e-10)


def test_to_other_goals_arrival_links_change_nothing():
    theta = np.array([-0.3, -0.8])
    plain, more = town(), town().with_arrivals(["ab", "bc", "da"])
    values = [
        rv.solve(one.mdp.toward("cd"), one.reward(["time", "constant"]).value(theta)).value[:6] for one in (plain, more)
    ]
    np.testing.assert_allclose(*values, rtol=1e-12)


def test_trips_go_on_to_the_arrival_link():
    network = town().with_arrivals("bc")
    demos = network.trips(trip_table(("T1", "ab bc cd da ab bc"), ("T2", "da ab"), ("T3", "bc")))
    assert demos.ids == ("T1", "T2", "T3")
    assert demos.goals == ("ab", "bc (arrival)")
    third = steps_of(demos)[steps_of(demos).agent == 2]
    assert [network.links[s] for s in third.next_state] == ["bc (arrival)"]
    assert demos.n_decisions == 6 + 1 + 1
    assert demos.notes == ()


def test_arrivals_are_added_once_and_survive_other_changes():
    network = town().with_arrivals("ab")
    twice = network.with_arrivals(["ab", "bc"])
    assert twice.links == (*LINKS, "ab (arrival)", "bc (arrival)")
    assert turns_of(network.with_arrivals("ab")) == turns_of(network)
    tolled = network.with_attribute("toll", 1.0)
    assert tolled.attribute("toll")[tolled.turn_index("ab", "ab (arrival)")] == 0.0
    assert tolled.attribute("toll").sum() == 7.0
    # a slot that was closed is not given to the arrival: actions mean the same in both
    late, early = town().without("bc").with_arrivals("ab"), network.without("bc")
    np.testing.assert_array_equal(late.pair, early.pair)
    with raises(
        "`destinations`: expected links that are not arrival links themselves; got the arrival link 'ab (arrival)'."
    ):
        network.with_arrivals("ab (arrival)")
    with raises("`destinations`: expected one of ab, ba, bc, cd, da, ce; got 'abb'. Did you mean ab?"):
        town().with_arrivals("abb")
