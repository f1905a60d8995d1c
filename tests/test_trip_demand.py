"""Origins, destinations and trips: every form of a table means the same."""

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.routes.demand import as_demand
from revealed.trip_demand import Demand, demand_of
from revealed.trip_demand import as_demand as between_states
from revealed.trip_simulation import simulate_trips
from streets import model, streets

ROWS = [("00-01", "22-23", 3.0), ("22-21", "22-23", 1.5), ("00-10", "02-03", 4.0)]


@pytest.fixture(scope="module")
def network():
    return streets(3, wide=4)


def test_all_forms_of_demand_mean_the_same(network, tmp_path):
    frame = pd.DataFrame(ROWS, columns=["origin", "destination", "trips"])
    frame.to_csv(tmp_path / "demand.csv", index=False)
    series = frame.set_index(["origin", "destination"])["trips"]
    forms = [frame, series, series.to_dict(), str(tmp_path / "demand.csv"), as_demand(network, frame)]
    for form in forms:
        assert as_demand(network, form).to_frame().equals(frame)
    other = frame.rename(columns={"origin": "from", "trips": "n"})
    assert as_demand(network, other, origin="from", trips="n").to_frame().equals(frame)
    choice = model(network)
    assert choice.flows(other, origin="from", trips="n").equals(choice.flows(frame))


def test_rows_of_one_pair_add_up_in_the_order_of_the_table(network):
    twice = pd.DataFrame([*ROWS, ROWS[0], ROWS[2]], columns=["origin", "destination", "trips"])
    assert as_demand(network, twice).to_frame()["trips"].tolist() == [6.0, 1.5, 8.0]


def test_trips_are_a_demand(network):
    choice = model(network)
    trips = choice.simulate({("00-01", "22-23"): 3, ("00-10", "02-03"): 2}, seed=0)
    assert rv.demand_of(trips, network).to_frame().to_numpy().tolist() == [
        ["00-01", "22-23", 3.0],
        ["00-10", "02-03", 2.0],
    ]
    assert choice.flows(trips).equals(choice.flows({("00-01", "22-23"): 3, ("00-10", "02-03"): 2}))


def test_trips_count_with_their_weights_and_those_without_are_none(network):
    mdp = network.mdp
    trips = simulate_trips(mdp, -2.0 * mdp.feasible, [0, 3, 0, 0], [5, 5, 5, 14], seed=0)
    found = demand_of(mdp, trips)
    assert (found.origin.tolist(), found.destination.tolist(), found.trips.tolist()) == (
        [0, 3, 0],
        [5, 5, 14],
        [2, 1, 1],
    )
    again = demand_of(mdp, trips.reweighted(np.array([3.0, 0.0, 1.0, 0.0])))
    assert (again.origin.tolist(), again.destination.tolist(), again.trips.tolist()) == ([0], [5], [4.0])


def test_states_without_labels_are_known_by_their_indices(network):
    bare = network.mdp.replace(state_labels=None)
    frame = pd.DataFrame({"origin": [3, 0], "destination": [5, 14], "trips": [2, 1.5]})
    for form in (frame, {(3, 5): 2, (0, 14): 1.5}):
        assert between_states(bare, form).to_frame().equals(frame)
    assert between_states(bare, frame).words(1) == "state 0 to state 14"
    with pytest.raises(InvalidInput) as caught:
        between_states(bare, {(3, "a"): 2.0})
    assert str(caught.value) == (
        "`destination`: expected states of the model, indices in 0…33; got 'a' (first at the trip from 3 to 'a')."
    )


def test_groups_hold_every_row_once(network):
    table = as_demand(network, pd.DataFrame(ROWS, columns=["origin", "destination", "trips"]))
    for pairs, n in ((False, 2), (True, 3)):
        groups = table.groups(pairs)
        assert len(groups) == n
        assert sorted(np.concatenate(groups)) == [0, 1, 2]
        assert all(np.unique(table.destination[rows]).size == 1 for rows in groups)
    assert repr(table) == "Demand(8.5 trips of 3 pairs, to 2 destinations)"


def test_links_whose_labels_are_tuples_are_not_taken_for_lists():
    turns = pd.DataFrame({"a": [0, 0, 1], "b": [1, 1, 2], "c": [1, 1, 2], "d": [2, 3, 3], "cost": 1.0})
    network = rv.RoadNetwork.from_turns(turns, turn_from=["a", "b"], turn_to=["c", "d"])
    choice = rv.RouteChoice(network, network.reward("cost"), [-1.0])
    assert choice.flows({((0, 1), (2, 3)): 2.0})[[(0, 1), (1, 2), (2, 3)]].tolist() == [2.0, 2.0, 2.0]
    table = turns[["a", "b"]].iloc[[0]].assign(x=2, y=3, trips=2.0)
    both = choice.flows(table, origin=["a", "b"], destination=["x", "y"])
    assert both.tolist() == choice.flows({((0, 1), (2, 3)): 2.0}).tolist()


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        ({("00-01", "22-32"): 1.0}, "`destination`: expected links of the network, such as "),
        ({("00-01", "22-32"): 1.0}, "…; got '22-32' (first at the trip from '00-01' to '22-32'). Did you mean 22-23?"),
        (
            {("00-01", "22-23"): -1.0},
            "`trips`: expected finite numbers >= 0; got -1.0 (first at the trip from '00-01' to '22-23').",
        ),
        (
            {("00-01", "22-23"): np.nan},
            "`trips`: expected finite numbers >= 0; got nan (first at the trip from '00-01' to '22-23').",
        ),
        ({("00-01", "22-23"): "many"}, "`demand`: expected a number of trips for every pair; got"),
        ({"00-01": 1.0}, "`demand`: expected keys that are pairs (origin, destination); got '00-01'."),
        ({}, "`demand`: expected keys that are pairs (origin, destination); got none."),
        (pd.DataFrame({"origin": ["00-01"], "goal": ["22-23"]}), "`destination`: expected one of the columns"),
        (3, "`demand`: expected"),
    ],
)
def test_demand_that_is_none_is_refused(network, demand, message):
    with pytest.raises(InvalidInput) as caught:
        as_demand(network, demand)
    assert message in str(caught.value)


def test_demand_of_another_network_is_refused(network):
    foreign = Demand(("a", "b"), 2, np.array([0]), np.array([1]), np.array([1.0]))
    message = r"`demand`: expected trips between links of the network; got trips between other states"
    with pytest.raises(InvalidInput, match=message):
        as_demand(network, foreign)


def test_demonstrations_without_goals_are_no_trips(network):
    mdp = network.mdp
    plain = rv.Demonstrations.from_trajectories([([0, 1], [0])], mdp.n_states, mdp.n_actions)
    with pytest.raises(
        InvalidDemonstrations, match=r"`trips`: expected demonstrations with goals; got none\. Read them with"
    ):
        rv.demand_of(plain, network)
    with pytest.raises(InvalidDemonstrations, match=r"got DataFrame\. Convert a table with network\.trips\(table\)"):
        model(network).log_likelihood(pd.DataFrame())  # pyright: ignore[reportArgumentType]


def test_parts_of_trips_cannot_be_drawn(network):
    with pytest.raises(
        InvalidInput, match=r"`trips`: expected whole numbers of trips; got 1\.5 \(first at the trip from '22-21' to"
    ):
        model(network).simulate(pd.DataFrame(ROWS, columns=["origin", "destination", "trips"]))


def test_a_table_without_numbers_of_trips_is_told_how_to_get_them(network):
    table = pd.DataFrame([row[:2] for row in ROWS], columns=["origin", "destination"])
    with pytest.raises(InvalidInput, match=r"`trips`: .*table\.assign\(trips=1\)"):
        as_demand(network, table)
    assert as_demand(network, table.assign(trips=1)).total == 3.0
    with pytest.raises(InvalidInput, match=r"Did you mean trip\?"):
        as_demand(network, table.assign(trip=1))
