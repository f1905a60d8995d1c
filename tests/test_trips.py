"""Trips are decisions toward their last link; a trip that the network does not allow is named with its link."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.goal_likelihood import trip_names
from revealed.matching import require_fit
from roads import LINKS, steps_of, town, trip_table


def raises(message: str):
    return pytest.raises(InvalidDemonstrations, match=f"^{re.escape(message)}$")


def test_a_trip_decides_at_every_link_but_the_last():
    network = town()
    demos = network.trips(trip_table(("T2", "da ab bc ce"), ("T1", "ab bc cd")))
    steps = demos.steps
    assert steps is not None
    assert demos.ids == ("T1", "T2")
    assert steps.agent.tolist() == [0, 0, 1, 1, 1]
    assert steps.time.tolist() == [0, 1, 0, 1, 2]
    assert [LINKS[s] for s in steps.state] == ["ab", "bc", "da", "ab", "bc"]
    assert steps.action.tolist() == [1, 0, 0, 1, 1]  # at ab: back is 0, on 1; at bc: cd is 0, ce 1
    assert [LINKS[s] for s in steps.next_state] == ["bc", "cd", "ab", "bc", "ce"]
    assert [LINKS[s] for s in np.asarray(steps.goal)] == ["cd", "cd", "ce", "ce", "ce"]
    assert steps.first.tolist() == [True, False, True, False, False]
    assert demos.goals == ("cd", "ce")
    assert np.asarray(demos.goal_states).tolist() == [LINKS.index("cd"), LINKS.index("ce")]
    assert demos.starts.tolist() == [1, 0, 0, 0, 1, 0]
    assert demos.state_labels == LINKS
    require_fit(network.mdp, demos)


def test_the_moves_seen_are_those_of_the_model():
    network = town()
    demos = network.trips(trip_table(("T1", "ab bc cd da ab ba"), ("T2", "da ab bc ce")))
    seen = demos.transition_counts.tocoo()
    moved = network.mdp.transitions.matrix.toarray()[seen.coords[0], seen.coords[1]]
    assert moved.tolist() == [1.0] * seen.nnz
    assert demos.n_decisions == 8


def test_rows_come_in_any_order_and_gaps_only_order():
    table = trip_table(("T1", "ab bc cd"), ("T2", "da ab bc ce"))
    expected = town().trips(table)
    mixed = table.assign(sequence=10 * table["sequence"] ** 2 - 1).sample(frac=1.0, random_state=3)
    found = town().trips(mixed)
    assert_same(found, expected)
    dates = table.assign(sequence=pd.Timestamp("2024-01-01") + pd.to_timedelta(table["sequence"], "h"))
    assert_same(town().trips(dates[::-1]), expected)
    renamed = pl.from_pandas(table).rename({"trip": "t", "sequence": "k", "link": "edge"})
    assert_same(town().trips(renamed, trip="t", sequence="k", link="edge"), expected)


def test_trips_and_links_may_have_several_columns():
    frame = pd.DataFrame({"from": [1, 2, 3], "to": [2, 3, 1]})
    network = rv.RoadNetwork.from_frame(frame, link=["from", "to"])
    table = pd.DataFrame({"who": [1, 1, 1, 1], "day": [2, 2, 1, 1], "k": [1, 2, 1, 2]})
    table = table.assign(u=["1", "2", "2", "3"], v=["2", "3", "3", "1"])
    demos = network.trips(table, trip=["who", "day"], sequence="k", link=["u", "v"])
    assert demos.ids == ((1, 1), (1, 2))
    assert steps_of(demos).state.tolist() == [1, 0]
    assert np.asarray(steps_of(demos).goal).tolist() == [2, 1]


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_random_walks_are_read_as_they_were_walked(seed, n):
    """Cut where they first come to their last link, shuffled, and read: the same links, actions and goals."""
    network, rng = town(), np.random.default_rng(seed)
    walks = [walk(network, rng) for _ in range(n)]
    rows = [(k, t, LINKS[s]) for k, path in enumerate(walks) for t, s in enumerate(path)]
    table = pd.DataFrame(rows, columns=["trip", "sequence", "link"]).sample(frac=1.0, random_state=seed % 2**31)
    demos = network.trips(table)
    pairs = [(path, [network.slot[network.turns_between(*map(np.array, m))] for m in pairwise(path)]) for path in walks]
    same = rv.Demonstrations.from_trajectories(pairs, 6, 2, goal=[path[-1] for path in walks])
    assert_same(demos, same)


def assert_same(one: rv.Demonstrations, other: rv.Demonstrations) -> None:
    for name in ("agent", "time", "state", "action", "next_state", "first", "goal"):
        np.testing.assert_array_equal(getattr(one.steps, name), getattr(other.steps, name))
    np.testing.assert_array_equal(one.starts, other.starts)
    np.testing.assert_array_equal(one.counts, other.counts)


def walk(network, rng) -> list[int]:
    path = [int(rng.integers(5))]
    while len(path) < 2 or (rng.random() < 0.8 and path[-1] != LINKS.index("ce")):
        path.append(int(rng.choice(network.target[network.source == path[-1]])))
    return cut if len(cut := path[: path.index(path[-1]) + 1]) > 1 else walk(network, rng)


def test_a_trip_of_one_link_decides_nothing():
    demos = town().trips(trip_table(("T0", "ba"), ("T1", "ab bc"), ("T2", "cd")))
    assert demos.ids == ("T1",)
    assert demos.notes == ("2 trips of one link were left out (first 'T0'): nothing is decided there.",)
    with raises("`trips`: expected at least one trip of two links; got trips of one link only."):
        town().trips(trip_table(("T0", "ba")))


# -- trips that cannot be ---------------------------------------------------------------------------------------------


def test_an_unknown_link_is_named_with_its_trip():
    with raises(
        "`trips`: expected links of the network; got link 'cdd' (first at trip 'T7', sequence 3, row 5; 1 such row). "
        'Did you mean cd? Or leave such trips out: bad="drop".'
    ):
        town().trips(trip_table(("T1", "ab bc cd"), ("T7", "ab bc cdd")))


def test_a_turn_that_does_not_exist_is_named_with_its_trip():
    with raises(
        "no turn leads from link 'bc' to link 'da', where trip 'T7' goes at sequence 3 (first at row 5; 1 such move). "
        'Correct the trip, add the turn to the network, or leave such trips out: bad="drop".'
    ):
        town().trips(trip_table(("T1", "ab bc cd"), ("T7", "ab bc da")))
    with pytest.raises(InvalidDemonstrations, match=r"The link is repeated: keep one of the rows, or"):
        town().trips(trip_table(("T7", "ab ab bc")))


def test_a_trip_that_passes_its_last_link_is_named_with_the_remedy():
    with raises(
        "trip 'T7' enters its last link 'bc' at sequence 2 and again at 6 (first at row 4; 1 such trip). A trip ends "
        "on entering its destination. Cut the trip there, drop a duplicated row, let trips pass through with "
        "network.with_arrivals(['bc']), or leave such trips out: bad=\"drop\"."
    ):
        town().trips(trip_table(("T1", "ab bc cd"), ("T7", "ab bc cd da ab bc")))


def test_what_follows_what_must_be_told():
    table = trip_table(("T1", "ab bc cd"))
    with raises(
        "`trips`: expected one row per trip and sequence; got trip 'T1' with sequence 2 in rows 1 and 2 (first at row "
        '2; 1 such row). Number the links of a trip in their order, or leave such trips out: bad="drop".'
    ):
        town().trips(table.assign(sequence=[1, 2, 2]))
    with raises(
        "`sequence`: expected numbers, or dates such as 2024-07-31, all in the same format; got '1' (first at row 0). "
        "Other text would be sorted alphabetically: 't10' before 't2', April before March."
    ):
        town().trips(table.assign(sequence=["1", "2", "3"]))


def test_dates_that_are_text_are_dates():
    """As a file's are, and in the order of time; text that is no date stays an error."""
    table = trip_table(("T1", "ab bc cd"), ("T2", "da ab bc ce"))
    expected = town().trips(table)
    days = pd.Timestamp("2023-12-30") + pd.to_timedelta(table["sequence"], "D")
    assert_same(town().trips(table.assign(sequence=days.dt.strftime("%Y-%m-%d"))[::-1]), expected)
    minutes = pd.Timestamp("2023-12-31 23:57") + pd.to_timedelta(table["sequence"], "min")
    assert_same(town().trips(table.assign(sequence=minutes.dt.strftime("%Y-%m-%dT%H:%M"))[::-1]), expected)
    for text in ("2024-13-01", "1/2/2024", "2024"):
        with pytest.raises(InvalidDemonstrations, match=f"`sequence`: expected .*dates such as 2024-07-31.*{text}"):
            town().trips(table.assign(sequence=text))


GOOD = (("T1", "ab bc cd"), ("T2", "da ab bc ce"))


def test_bad_trips_are_left_out_and_counted_by_reason():
    """What is left is what the good trips alone give; several faults of one trip count once."""
    bad = (("B1", "ab xx bc yy"), ("B2", "ab zz"), ("B3", "ab cd da"), ("B4", "ab bc cd da ab bc"), ("B5", "da ab"))
    table = trip_table(*GOOD, *bad)
    table.loc[table["trip"] == "B5", "sequence"] = 1
    demos = town().trips(table, bad="drop")
    assert_same(demos, town().trips(trip_table(*GOOD)))
    assert demos.ids == ("T1", "T2")
    assert demos.notes == (
        "2 trips were left out (first 'B1'): a link is not in the network.",
        "1 trip was left out (first 'B5'): a sequence number occurs twice.",
        "1 trip was left out (first 'B4'): the last link is passed before.",
        "1 trip was left out (first 'B3'): a turn is not in the network.",
    )


def test_travellers_whose_trips_are_all_bad_are_gone():
    table = trip_table(("T1", "ab bc"), ("B1", "ab cd"), ("T2", "bc cd")).assign(who=["z", "z", "b", "b", "a", "a"])
    demos = town().trips(table, traveller="who", bad="drop")
    assert set(demos.ids) == {"a", "z"}
    assert demos.n_decisions == 2


def test_without_a_good_trip_there_is_nothing():
    with raises(
        "no trip is possible on this network. 1 trip was left out (first 'B2'): a link is not in "
        "the network. 2 trips were left out (first 'B1'): a turn is not in the network."
    ):
        town().trips(trip_table(("B1", "ab cd"), ("B2", "ab xx"), ("B3", "ab da")), bad="drop")
    with pytest.raises(InvalidInput, match=r"^`bad`: expected one of error, drop; got 'skip'\.$"):
        town().trips(trip_table(*GOOD), bad="skip")


def test_many_faults_are_counted_with_their_trips():
    with pytest.raises(InvalidDemonstrations, match=r"row 1; 3 such rows in 2 trips\)"):
        town().trips(trip_table(("B1", "ab xx yy"), ("B2", "zz ab")))


@pytest.mark.parametrize("column", ["trip", "sequence", "link"])
def test_missing_values_are_named(column):
    table = trip_table(("T1", "ab bc cd")).astype(object)
    table.loc[1, column] = None
    with raises(f"`{column}`: expected no missing values; got 1 missing (first at row 1). Drop or fill those rows."):
        town().trips(table)


def test_columns_that_are_not_there_are_named():
    with pytest.raises(InvalidInput, match=r"`trip`: .* got 'tripp'\. Did you mean trip\?$"):
        town().trips(trip_table(("T1", "ab bc")), trip="tripp")
    with pytest.raises(
        InvalidInput, match=r"`sequence`: .* got 'sequence'\. Name the columns, as in sequence=\"seq\"\.$"
    ):
        town().trips(trip_table(("T1", "ab bc")).rename(columns={"sequence": "seq"}))


TWO_WAYS = rv.RoadNetwork.from_frame(
    pd.DataFrame({"link": ["a", "b", "c", "d"], "from": [0, 1, 1, 2], "to": [1, 2, 2, 3], "time": [1.0, 1.0, 2.0, 1.0]})
)
TRIPS_OF_TWO = pd.DataFrame(
    {
        "trip": [1, 1, 2, 2, 3, 3],
        "sequence": [0, 1] * 3,
        "link": ["a", "b", "a", "c", "b", "d"],
        "who": ["ann", "ann", "bob", "bob", "ann", "ann"],
    }
)


def test_travellers_are_the_agents_of_their_trips():
    """Two trips of one traveller hang together: they are one agent, and each has a likelihood of its own."""
    trips = TRIPS_OF_TWO
    demos = TWO_WAYS.trips(trips, traveller="who")
    assert demos.ids == ("ann", "bob")
    assert demos.n_agents == 2
    assert demos.origins.size == 3
    plain = TWO_WAYS.trips(trips)
    np.testing.assert_array_equal(demos.counts, plain.counts)
    np.testing.assert_array_equal(demos.destinations, plain.destinations)
    assert trip_names(demos) == [("ann", 0), ("bob", 0), ("ann", 1)]
    with pytest.raises(
        InvalidDemonstrations, match=r"`traveller`: expected one traveller per trip; got trip 1 of 'ann'"
    ):
        TWO_WAYS.trips(trips.assign(who=["ann", "bob"] * 3), traveller="who")
