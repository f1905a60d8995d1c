"""Tables of a fit of trips: columns that can be read, and links that are the library's own left out."""

import numpy as np
import pandas as pd

import revealed as rv
from revealed.commands.tables import Names
from revealed.commands.trip_tables import trip_panel, trips_frame
from roads import links, trip_table

ROADS = Names(network="links.csv")
TRIPS = (("T1", "ab bc cd da"), ("T2", "da ab bc cd"), ("T3", "ba ab bc cd"), ("T4", "cd da ab ba"))


def fit_of(table: pd.DataFrame, network: rv.RoadNetwork, **columns: str) -> rv.GoalFit:
    reward = network.reward(["time"])
    return rv.NFXP(reward, l2=0.1).fit(network.mdp, network.trips(table, **columns))


def test_trips_of_travellers_are_numbered_beside_them():
    network = rv.RoadNetwork.from_frame(links())
    owners = {"T1": "bob", "T2": "ann", "T3": "bob", "T4": "ann"}
    table = trip_table(*TRIPS)
    fit = fit_of(table.assign(person=table["trip"].map(owners)), network, traveller="person")
    found = trips_frame(fit, Names(network="links.csv", traveller="person"))
    assert list(found) == ["person", "trip_number", "from_link", "to_link", "decisions", "log_likelihood"]
    rows = found[["person", "trip_number", "from_link"]].to_numpy().tolist()
    assert sorted(rows) == [["ann", 0, "da"], ["ann", 1, "cd"], ["bob", 0, "ab"], ["bob", 1, "ba"]]
    alone = trips_frame(fit_of(table, network), ROADS)
    assert list(alone) == ["trip", "from_link", "to_link", "decisions", "log_likelihood"]
    assert alone["trip"].tolist() == ["T1", "T2", "T3", "T4"]


def test_arrival_links_are_left_out_and_links_of_the_user_that_are_called_alike_are_kept():
    """`bc (arrival)` goes on to others here, and no link `zz` stands before the dead end `zz (arrival)`."""
    names = {"cd": "bc (arrival)", "ce": "zz (arrival)"}
    network = rv.RoadNetwork.from_frame(links().replace({"link": names}))
    trips = (("T1", "ab bc cd da"), ("T2", "da ab bc ce"), ("T3", "ba ab bc"))
    table = trip_table(*trips).replace({"link": names})
    ours = network.with_arrivals(["da"])
    assert "da (arrival)" in ours.links
    fit = fit_of(table, ours)
    np.testing.assert_array_equal(fit.demonstrations.destinations, [ours.index(x) for x in ENDS])
    written = trip_panel(fit, fit.demonstrations, ROADS)
    assert written["link"].tolist() == table["link"].tolist()


ENDS = ("da (arrival)", "zz (arrival)", "bc")
