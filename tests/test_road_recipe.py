"""A run on a road network is what the library's own calls make of the same files, number for number."""

import re

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from revealed.commands.wording import PANEL, in_flags
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.recipe import Recipe
from roads import links, nodes, town, trip_table

TRIPS = (("T1", "ab bc cd da"), ("T2", "da ab bc ce"), ("T3", "ba ab bc cd"), ("T4", "cd da ab ba"), ("T5", "ab ba"))
TRIPS += tuple((f"S{k}", "ba ab bc") for k in range(5))
COLUMNS = ("time", "u_turn")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    links().to_csv("links.csv", index=False)
    nodes().to_csv("nodes.csv", index=False)
    trip_table(*TRIPS).to_csv("trips.csv", index=False)
    town().turns_frame.to_csv("turns.csv", index=False)


def recipe(**options) -> Recipe:
    return Recipe(**{"panel": "trips.csv", "network": "links.csv", **options})


def same_turns(one: rv.RoadNetwork, two: rv.RoadNetwork) -> None:
    assert one.links == two.links
    np.testing.assert_array_equal(one.source, two.source)
    np.testing.assert_array_equal(one.target, two.target)


def test_the_fit_is_the_library_s():
    network = town()
    own = rv.NFXP(network.reward(list(COLUMNS)), l2=0.1).fit(network.mdp, network.trips("trips.csv"))
    mine = recipe(columns=COLUMNS, nodes="nodes.csv", l2=0.1).fit()
    assert isinstance(mine, rv.GoalFit)
    np.testing.assert_array_equal(mine.theta, own.theta)
    assert list(mine.params.index) == list(COLUMNS)


def test_the_network_comes_from_links_from_turns_or_from_both():
    same_turns(recipe().road_network, town())
    same_turns(recipe(nodes="nodes.csv", u_turns=False).road_network, town(u_turns=False))
    alone = Recipe(panel=("trips.csv",), turns="turns.csv").road_network
    same_turns(alone, rv.RoadNetwork.from_turns("turns.csv"))
    links()[["link", "time"]].to_csv("bare.csv", index=False)  # no nodes: the turns join them
    both = recipe(network="bare.csv", turns="turns.csv").road_network
    same_turns(both, town())
    assert "time" in both.attributes


def test_columns_may_be_called_otherwise():
    links().set_axis(["id", "a", "b", "time"], axis=1).to_csv("links.csv", index=False)
    trip_table(*TRIPS).set_axis(["who", "n", "edge"], axis=1).to_csv("trips.csv", index=False)
    names = {"link": "id", "from_node": "a", "to_node": "b", "trip": "who", "sequence": "n", "trip_link": "edge"}
    mine = recipe(**names)
    same_turns(mine.road_network, town())
    assert mine.demonstrations.ids == tuple(sorted(name for name, _ in TRIPS))


def test_trips_of_one_traveller_hang_together():
    trip_table(*TRIPS).assign(who="ann").to_csv("trips.csv", index=False)
    assert recipe(traveller="who").demonstrations.ids == ("ann",)


def test_links_of_two_columns_and_lists_with_commas():
    table = links()
    table.drop(columns="link").to_csv("links.csv", index=False)
    ends = dict(zip(table["link"], zip(table["from"], table["to"], strict=True), strict=True))
    rows = trip_table(*TRIPS)
    rows[["from", "to"]] = [ends[link] for link in rows.pop("link")]
    rows.to_csv("trips.csv", index=False)
    mine = Recipe.from_flags(
        {"panel": ["trips.csv"], "network": "links.csv", "link": ["from,to"], "columns": ["time,u_turn"]}
    )
    assert (mine.link, mine.columns) == (("from", "to"), ("time", "u_turn"))
    assert mine.road_network.links == tuple(ends.values())
    assert mine.reward_model.names == ("time", "u_turn")


def test_with_arrivals_trips_may_pass_their_last_link():
    trip_table(*TRIPS, ("R", "ab ba ab")).to_csv("trips.csv", index=False)
    with pytest.raises(InvalidDemonstrations, match=r"let trips pass through with network\.with_arrivals"):
        _ = recipe().demonstrations
    mine = recipe(arrivals=True)
    ends = {path.split()[-1] for _, path in TRIPS} | {"ab"}
    added = [label for label in mine.road_network.links if label.endswith(" (arrival)")]
    assert added == [f"{link} (arrival)" for link in town().links if link in ends]
    assert mine.demonstrations.n_agents == len(TRIPS) + 1


def test_every_kind_of_reward():
    assert recipe(reward="tabular").reward_model.n_params == 6
    assert recipe().reward_model.names == ("time", "constant", "u_turn")  # all that there is
    assert recipe(nodes="nodes.csv").reward_model.names == tuple(town().reward().names)
    neural = recipe(reward="neural", hidden=3, columns=COLUMNS).reward_model
    assert neural.value(neural.init()).shape == (6, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"from_node": "nowhere"}, "`--from-node`: expected one of the columns"),
        ({"from_node": "nowhere", "to_node": "b"}, "Name the columns, as in --from-node from, --to-node to."),
        ({"columns": "left_turn"}, "It requires coordinates of the nodes: give --nodes, a file"),
        ({"columns": "tim"}, "`--columns`: expected one of .*'tim'. Did you mean time?"),
        ({"network": "none.csv"}, "`--network`: expected a CSV or Parquet file that exists"),
        ({"panel": "none.csv"}, "`PANEL`: expected a CSV or Parquet file that exists"),
    ],
)
def test_mistakes_name_the_flag(options, message):
    with pytest.raises(InvalidInput) as caught:
        recipe(**options).prepare()
    assert re.search(message, in_flags(caught.value, PANEL))
    assert str(caught.value).startswith(f"`{next(iter(options))}`: ")


def test_a_turn_that_does_not_exist_names_trip_and_link():
    pd.concat([trip_table(*TRIPS), trip_table(("X", "ab cd"))]).to_csv("trips.csv", index=False)
    with pytest.raises(InvalidDemonstrations, match=r"no turn leads from link 'ab' to link 'cd', where trip 'X' goes"):
        _ = recipe().demonstrations


def test_bad_trips_may_be_left_out():
    bad = trip_table(("X", "ab cd"), ("Y", "ab zz"))
    pd.concat([trip_table(*TRIPS), bad]).to_csv("trips.csv", index=False)
    with pytest.raises(InvalidDemonstrations, match=r'Or leave such trips out: bad_trips="drop"\.$'):
        _ = recipe().demonstrations
    for arrivals in (None, True):
        demos = recipe(bad_trips="drop", arrivals=arrivals).demonstrations
        assert demos.ids == tuple(sorted(name for name, _ in TRIPS))
        assert demos.notes == (
            "1 trip was left out (first 'Y'): a link is not in the network.",
            "1 trip was left out (first 'X'): a turn is not in the network.",
        )


def test_columns_that_are_not_used_are_told():
    links().assign(name="x").to_csv("links.csv", index=False)
    note = "column 'name' holds values that are not numbers: not used as attributes of the links."
    assert recipe().demonstrations.notes == (note,)
    assert note in recipe(columns=COLUMNS, l2=0.1).fit().status.notes


@pytest.mark.parametrize(
    ("options", "column", "message"),
    [
        ({"link": "id"}, "link", "got 'id', which it does not have, as --link says. Did you mean --trip-link link?"),
        ({"link": "id", "arrivals": True}, "link", "as --link says. Did you mean --trip-link link?"),
        (
            {"link": "id", "trip_link": "egde"},
            "edge",
            "got 'egde', which it does not have. Did you mean --trip-link edge?",
        ),
        ({"link": "id"}, "road", "as --link says. Name it with --trip-link."),
    ],
)
def test_links_that_trips_call_otherwise_are_told(options, column, message):
    links().rename(columns={"link": "id"}).to_csv("links.csv", index=False)
    trip_table(*TRIPS).rename(columns={"link": column}).to_csv("trips.csv", index=False)
    with pytest.raises(InvalidInput) as caught:
        recipe(**options).prepare()
    start = f"`--trip-link`: expected a column of trips.csv (trip, sequence, {column}); "
    assert in_flags(caught.value).startswith(start)
    assert in_flags(caught.value).endswith(message)
    assert "--" not in str(caught.value)
