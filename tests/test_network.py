"""A road network is its turns: what a table says, computed by hand, and what a table cannot mean, with its message."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed.errors import InvalidInput, InvalidOption
from roads import BACK, LEFT, LINKS, TIMES, TURNS, links, nodes, town, turns_of


def raises(message: str, error: type[Exception] = InvalidInput):
    """The whole message, to the letter."""
    import re

    return pytest.raises(error, match=f"^{re.escape(message)}$")


# -- a town by hand ---------------------------------------------------------------------------------------------------


def test_turns_are_the_pairs_of_links_that_meet():
    network = town()
    assert network.links == LINKS
    assert (network.n_links, network.n_turns, network.n_actions) == (6, 7, 2)
    assert turns_of(network) == TURNS
    assert network.slot.tolist() == [0, 1, 0, 0, 1, 0, 0]
    assert network.pair.tolist() == [0, 1, 2, 4, 5, 6, 8]


def test_a_turn_is_described_by_the_link_that_it_enters_and_by_its_angle():
    network = town()
    entered = [TIMES[LINKS.index(link)] for _, link in TURNS]
    assert network.attributes == ("time", "length", "constant", "u_turn", "left_turn")
    assert network.attribute("time").tolist() == entered
    assert network.attribute("length").tolist() == [1.0] * 7
    assert network.attribute("constant").tolist() == [1.0] * 7
    assert network.attribute("u_turn").tolist() == BACK
    assert network.attribute("left_turn").tolist() == LEFT


def test_the_limits_of_a_left_turn_are_arguments():
    wide = town(left_turn=(95.0, 180.0))  # right angles no longer count, and turning back does
    assert wide.attribute("left_turn").tolist() == BACK
    with raises("`left_turn`: expected two angles in degrees, 0 < least < most <= 180; got (170, 40)."):
        town(left_turn=(170, 40))


def test_the_model_moves_as_the_turns_say():
    network = town()
    mdp = network.mdp
    assert mdp.discount == 1.0
    assert mdp.state_labels == LINKS
    moved = mdp.transitions.matrix.tocoo()
    assert moved.data.tolist() == [1.0] * 7
    assert moved.coords[0].tolist() == network.pair.tolist()
    assert [LINKS[s] for s in moved.coords[1]] == [link for _, link in TURNS]
    assert mdp.terminal.tolist() == [False] * 5 + [True]
    assert np.flatnonzero(mdp.feasible).tolist() == network.pair.tolist()


def test_the_value_of_a_trip_sums_over_its_paths():
    """From ab to cd: on by bc, after any number of ways back and forth, and never into the dead end."""
    network = town()
    theta = np.array([-0.3, -0.5, -1.0])
    r = network.attribute("time") * theta[0] + network.attribute("u_turn") * theta[1] + theta[2]
    reward = network.reward(["time", "u_turn", "constant"])
    found = rv.solve(network.mdp.toward("cd"), reward.value(theta))
    there, back = r[network.turn_index("ab", "ba")], r[network.turn_index("ba", "ab")]
    straight = r[network.turn_index("ab", "bc")] + r[network.turn_index("bc", "cd")]
    np.testing.assert_allclose(found.value[0], straight - np.log1p(-np.exp(there + back)), rtol=1e-12)


def test_turning_back_stays_where_there_is_no_other_way():
    assert turns_of(town(u_turns=False)) == [turn for turn in TURNS if turn != ("ab", "ba")]
    with pytest.raises(InvalidOption, match="u_turns"):
        town(u_turns="no")


def test_parallel_links_are_told_apart_and_a_loop_does_not_follow_itself():
    frame = pd.DataFrame({"link": ["p", "q", "loop"], "from": [1, 1, 2], "to": [2, 2, 2]})
    network = rv.RoadNetwork.from_frame(frame)
    assert turns_of(network) == [("p", "loop"), ("q", "loop")]
    assert network.attribute("u_turn").tolist() == [0.0, 0.0]


def test_leaving_a_loop_is_no_way_back():
    frame = pd.DataFrame({"link": ["in", "loop", "loop2", "out"], "from": [1, 2, 2, 2], "to": [2, 2, 2, 1]})
    network = rv.RoadNetwork.from_frame(frame)
    back = [turn for turn, flag in zip(turns_of(network), network.attribute("u_turn"), strict=True) if flag]
    assert back == [("in", "out"), ("out", "in")]


# -- where the tables come from ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["polars", "arrow", "csv", "parquet"])
def test_every_kind_of_table_gives_the_same_network(form, tmp_path):
    frame = links()
    if form == "csv":
        frame.to_csv(table := tmp_path / "links.csv", index=False)
    elif form == "parquet":
        frame.to_parquet(table := tmp_path / "links.parquet")
    else:
        table = pl.from_pandas(frame) if form == "polars" else pl.from_pandas(frame).to_arrow()
    network = rv.RoadNetwork.from_frame(table, nodes=nodes())
    assert turns_of(network) == TURNS
    assert network.attribute("time").tolist() == town().attribute("time").tolist()


def test_ids_are_matched_by_their_text_and_whole_floats_are_whole_numbers():
    frame = pd.DataFrame({"link": [10.0, 11.0], "from": ["1", "2"], "to": [2, 3]})
    network = rv.RoadNetwork.from_frame(frame)
    assert network.links == (10, 11)
    assert turns_of(network) == [(10, 11)]
    assert network.index("11") == network.index(11) == 1


def test_ids_of_several_columns_are_tuples():
    network = rv.RoadNetwork.from_frame(links().drop(columns="link"), link=["from", "to"])
    assert network.links[:2] == (("A", "B"), ("B", "A"))
    assert network.attributes == ("time", "constant", "u_turn")
    assert network.turn_index(("A", "B"), ("B", "C")) == 1


def test_coordinates_of_columns_are_those_of_nodes():
    points = nodes().set_index("node")
    frame = links()
    for name, side in (("from", "from"), ("to", "to")):
        frame["x_" + side], frame["y_" + side] = (points[axis].loc[frame[name]].to_numpy() for axis in "xy")
    network = rv.RoadNetwork.from_frame(frame)
    np.testing.assert_array_equal(network.coordinates, town().coordinates)
    assert np.asarray(network.coordinates)[2].tolist() == [[1.0, 0.0], [1.0, 1.0]]
    renamed = frame.rename(columns={"x_from": "u", "y_from": "v", "x_to": "w", "y_to": "z"})
    again = rv.RoadNetwork.from_frame(renamed, x_from="u", y_from="v", x_to="w", y_to="z")
    assert again.attributes == network.attributes == ("time", "length", "constant", "u_turn", "left_turn")
    np.testing.assert_array_equal(again.coordinates, network.coordinates)


def test_a_column_of_the_table_comes_before_what_would_be_computed():
    frame = links().assign(length=[7.0, 8.0, 9.0, 1.0, 2.0, 3.0])
    network = rv.RoadNetwork.from_frame(frame, nodes=nodes())
    assert network.attribute("length").tolist() == [8.0, 9.0, 7.0, 1.0, 3.0, 2.0, 7.0]
    table = pd.DataFrame(TURNS, columns=["from_link", "to_link"]).assign(left_turn=1.0, time=0.5)
    own = town(turns=table)
    assert own.attribute("left_turn").tolist() == [1.0] * 7
    assert own.attribute("time").tolist() == [0.5] * 7  # that of the turn, not of the link it enters


def test_text_is_no_attribute_and_noted():
    frame = links().assign(name="Main Street", lit=pd.Series([True, None] * 3), shape=pd.Series([[1]] * 6))
    with pytest.raises(InvalidInput, match="'lit'"):
        rv.RoadNetwork.from_frame(frame)
    network = rv.RoadNetwork.from_frame(frame.drop(columns="lit"))
    assert network.attributes == ("time", "constant", "u_turn")
    assert network.notes == (
        "columns 'name', 'shape' hold values that are not numbers: not used as attributes of the links.",
    )
    assert repr(network) == "RoadNetwork(6 links, 7 turns, 1 dead end; time, constant, u_turn; not used: name, shape)"
    chosen = rv.RoadNetwork.from_frame(frame, attributes=["time"])
    assert (chosen.attributes, chosen.notes) == (("time", "constant", "u_turn"), ())


def test_a_column_of_numbers_with_a_text_in_it_says_which():
    frame = links().assign(time=pd.Series(["1", "2", None, "n/a", "5", "6"]))
    with raises(
        "`columns`: expected one of constant, u_turn; got 'time'. It is not an attribute: column 'time' of the links "
        "holds 'n/a' in row 3."
    ):
        rv.RoadNetwork.from_frame(frame).reward(["time"])
    with pytest.raises(InvalidInput, match=r"column 'time' of the links holds '1' in row 0\.$"):  # text, all the same
        rv.RoadNetwork.from_frame(links().assign(time=list("123456"))).attribute("time")
    network = town(turns=pd.DataFrame(TURNS, columns=["from_link", "to_link"]).assign(delay="long"))
    with pytest.raises(InvalidInput, match=r"column 'delay' of the turns holds 'long' in row 0\.$"):
        network.without(["ce"]).features("delay")


def test_the_turns_of_a_table_are_all_there_are_in_any_order():
    table = pd.DataFrame(TURNS[::-1], columns=["from_link", "to_link"]).assign(delay=np.arange(7.0)).iloc[1:]
    network = town(turns=table)
    assert turns_of(network) == TURNS[:-1]
    assert network.attribute("delay").tolist() == [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    assert network.attributes == ("time", "length", "delay", "constant", "u_turn", "left_turn")


def test_turns_alone_make_a_network():
    table = pd.DataFrame({"a": ["y", "x", "z"], "b": ["z", "y", "x"], "wait": [1.0, 2.0, 3.0]})
    network = rv.RoadNetwork.from_turns(table, turn_from="a", turn_to="b")
    assert network.links == ("x", "y", "z")
    assert turns_of(network) == [("x", "y"), ("y", "z"), ("z", "x")]
    assert network.attributes == ("wait", "constant")
    assert network.attribute("wait").tolist() == [2.0, 1.0, 3.0]
    assert network.coordinates is None
    known = pd.DataFrame({"id": ["z", "y", "x"], "time": [0.1, 0.2, 0.3]})
    ordered = rv.RoadNetwork.from_turns(table, turn_from="a", turn_to="b", links=known, link="id")
    assert ordered.links == ("z", "y", "x")
    assert dict(zip(turns_of(ordered), ordered.attribute("time"), strict=True))["x", "y"] == 0.2


def test_tables_go_round():
    network = town()
    rows, turns = network.to_frame()
    again = rv.RoadNetwork.from_frame(rows, turns=turns)
    assert turns_of(again) == TURNS
    assert again.attributes == network.attributes
    for name in network.attributes:
        np.testing.assert_array_equal(again.attribute(name), network.attribute(name))
    np.testing.assert_array_equal(again.coordinates, network.coordinates)
    pd.testing.assert_frame_equal(again.links_frame, rows)
    pd.testing.assert_frame_equal(again.turns_frame, turns)
    assert rows["time"].tolist() == list(TIMES)


def test_tables_of_links_with_two_columns_go_round():
    network = rv.RoadNetwork.from_frame(links().drop(columns="link"), link=["from", "to"])
    rows, turns = network.to_frame()
    again = rv.RoadNetwork.from_frame(rows, turns=turns)
    assert again.links == network.links
    assert turns_of(again) == turns_of(network)


# -- rewards ----------------------------------------------------------------------------------------------------------


def test_a_reward_weighs_attributes_of_turns():
    network = town()
    reward = network.reward(["time", "left_turn"])
    assert reward.names == ("time", "left_turn")
    value = reward.value(np.array([-2.0, 0.5]))
    expected = -2.0 * network.attribute("time") + 0.5 * network.attribute("left_turn")
    np.testing.assert_array_equal(value.reshape(-1)[network.pair], expected)
    assert np.isnan(value[LINKS.index("cd"), 1])  # cd has one way on


def test_sparse_features_are_the_dense_ones():
    network = town()
    dense, sparse = network.features(), network.features(sparse=True)
    assert isinstance(sparse, sp.csr_array)
    assert dense.shape == (6, 2, 5)
    np.testing.assert_array_equal(sparse.toarray().reshape(dense.shape), dense)
    np.testing.assert_array_equal(dense.reshape(-1, 5)[network.pair, 0], network.attribute("time"))


def test_a_crossing_with_many_ways_out_makes_features_sparse():
    star = pd.DataFrame({"from": [0] * 9, "to": range(1, 10)})
    frame = pd.concat([star, star.rename(columns={"from": "to", "to": "from"})]).assign(time=2.0)
    network = rv.RoadNetwork.from_frame(frame, link=["from", "to"], u_turns=False)
    tail = pd.DataFrame({"from": range(100, 300), "to": range(101, 301), "time": 1.0})
    long = rv.RoadNetwork.from_frame(pd.concat([frame, tail]), link=["from", "to"], u_turns=False)
    assert not sp.issparse(network.reward("time").matrix)
    matrix = long.reward("time").matrix
    assert isinstance(matrix, sp.csr_array)
    np.testing.assert_array_equal(matrix.toarray(), long.features("time").reshape(-1, 1))
    times = np.where(long.mdp.feasible, long.features("time")[:, :, 0], np.nan)
    np.testing.assert_array_equal(long.reward("time").value(np.ones(1)), times)


def test_by_default_all_attributes_count_but_flags_that_no_turn_has():
    assert town().reward().names == ("time", "length", "constant", "u_turn", "left_turn")
    one_way = links().query("link != 'ba'")
    assert rv.RoadNetwork.from_frame(one_way).reward().names == ("time", "constant")
    with raises("`columns`: expected one of time, length, constant, u_turn, left_turn; got 'tine'. Did you mean time?"):
        town().reward(["tine"])
    with raises("`columns`: expected each attribute once; got 'time' twice."):
        town().reward(["time", "time"])
    with pytest.raises(InvalidInput, match="columns"):
        town().features([])


# -- names ------------------------------------------------------------------------------------------------------------


def test_links_and_turns_are_found_by_their_labels():
    network = town()
    assert [network.index(label) for label in LINKS] == list(range(6))
    assert [network.turn_index(*turn) for turn in TURNS] == list(range(7))
    with raises("`link`: expected one of ab, ba, bc, cd, da, ce; got 'daa'. Did you mean da?"):
        network.index("daa")
    with raises("no turn leads from link 'bc' to link 'ab'. Turns from link 'bc' lead to cd, ce."):
        network.turn_index("bc", "ab")
    with raises("no turn leads from link 'ce' to link 'ab'. Link 'ce' is a dead end."):
        network.turn_index("ce", "ab")


def test_it_says_how_large_it_is():
    assert repr(town()) == "RoadNetwork(6 links, 7 turns, 1 dead end; time, length, constant, u_turn, left_turn)"


def test_a_network_is_frozen():
    network = town()
    with pytest.raises(ValueError, match="read-only"):
        network.attribute("constant")[0] = 2.0
    with pytest.raises(ValueError, match="read-only"):
        network.target[0] = 2


# -- tables that cannot be meant --------------------------------------------------------------------------------------


def turns(*rows: tuple, **more) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["from_link", "to_link"]).assign(**more)


def test_links_have_ids_of_their_own():
    with raises(
        "`links`: expected one row per link; got link 'ab' in rows 0 and 6 (first at row 6). Keep one of them; "
        "parallel links between the same nodes need distinct ids."
    ):
        rv.RoadNetwork.from_frame(pd.concat([links(), links()[:1]]))


def test_missing_and_infinite_attributes_are_named_by_link_and_column():
    remedy = "Drop or fill those rows. Or name the columns that matter: attributes=[...]."
    with raises(
        "`links`: expected a finite number in column 'time' of every row; got 2 missing values (first at link 'bc'). "
        + remedy
    ):
        rv.RoadNetwork.from_frame(links().assign(time=[1, 2, np.nan, 4, np.nan, 6]))
    with raises(
        "`links`: expected a finite number in column 'time' of every row; got 1 infinite value (first at link 'ce'). "
        + remedy
    ):
        rv.RoadNetwork.from_frame(links().assign(time=[1, 2, 3, 4, 5, np.inf]))
    with raises(
        "`turns`: expected a finite number in column 'wait' of every row; got 1 missing value (first at the turn from "
        "link 'bc' to link 'cd'). " + remedy
    ):
        town(turns=turns(*TURNS, wait=[1.0, 2.0, 3.0, None, 1.0, 1.0, 1.0]))


def test_turns_join_two_links_that_are_known_and_meet():
    with raises(
        "`turns`: expected links that are in the table of links; got a turn with link 'cdd' (first at row 1). "
        "Did you mean cd?"
    ):
        town(turns=turns(("ab", "bc"), ("bc", "cdd")))
    with raises(
        "`turns`: expected turns between links that meet; got the turn from link 'bc' to link 'da', where the first "
        "ends at node 'C' and the second starts at node 'D' (first at row 1; 1 such turn). "
        "Are from and to swapped?"
    ):
        town(turns=turns(("ab", "bc"), ("bc", "da")))
    with raises(
        "`turns`: expected one row per turn; got the turn from link 'ab' to link 'bc' in rows 0 and 2 (first at row "
        "2). Keep one of them."
    ):
        town(turns=turns(("ab", "bc"), ("bc", "cd"), ("ab", "bc")))
    with raises(
        "`turns`: expected turns between different links; got the turn from link 'ab' to link 'ab' (first at row 0). "
        "Drop it; model a road that loops back onto itself as two links."
    ):
        rv.RoadNetwork.from_turns(turns(("ab", "ab")))


def test_links_that_never_meet_are_no_network():
    with raises("no link leads to another: there is no turn. Check the node columns, or the turns."):
        rv.RoadNetwork.from_frame(pd.DataFrame({"link": ["a", "b"], "from": [1, 3], "to": [2, 4]}))


def test_every_node_has_one_place():
    with raises("`nodes`: expected a row for every node of the links; got 1 without (first at 'E'). Add a row for it."):
        rv.RoadNetwork.from_frame(links(), nodes=nodes()[:4])
    with raises("`nodes`: expected one row per node; got node 'A' in rows 0 and 5 (first at row 5). Keep one of them."):
        rv.RoadNetwork.from_frame(links(), nodes=pd.concat([nodes(), nodes()[:1]]))
    with raises("`x`: expected no missing values; got 1 missing (first at row 4). Drop or fill those rows."):
        rv.RoadNetwork.from_frame(links(), nodes=nodes().assign(x=[0, 1, 1, 0, np.nan]))


def test_columns_that_nobody_named_say_which_argument_to_pass():
    """The user never wrote 'link': what looks like a link is proposed under the argument's name."""
    table = links().rename(columns={"link": "ID", "from": "A", "to": "B"})
    with pytest.raises(InvalidInput, match="`link`: expected one of the columns") as caught:
        rv.RoadNetwork.from_frame(table)
    assert caught.value.remedy == 'Name the columns, as in link="ID", start="A", end="B".'
    with pytest.raises(InvalidInput) as caught:
        rv.RoadNetwork.from_frame(table, link="ID", start="A")
    assert caught.value.remedy == 'Name the columns, as in end="B".'
    with pytest.raises(InvalidInput) as caught:
        rv.RoadNetwork.from_frame(links(), nodes=nodes().rename(columns={"node": "id", "x": "lon", "y": "northward"}))
    assert caught.value.remedy == 'Name the columns, as in node="id", x="lon", y="…".'
    assert "Call the columns node, x, y." in caught.value.told({})
    with pytest.raises(InvalidInput) as caught:
        rv.RoadNetwork.from_turns(pd.DataFrame({"A": ["a"], "B": ["b"]}))
    assert caught.value.remedy == 'Name the columns, as in turn_from="A", turn_to="B".'


def test_a_file_read_as_one_column_is_told_as_such():
    with pytest.raises(InvalidInput, match="It was read as one column"):
        rv.RoadNetwork.from_frame(pd.DataFrame({"link;from;to": ["a;b;c"]}))


def test_left_turns_without_coordinates_say_what_they_require():
    with pytest.raises(
        InvalidInput, match=r"'left_turn'\. It requires coordinates of the nodes: pass .*nodes="
    ) as caught:
        rv.RoadNetwork.from_frame(links()).reward(["time", "left_turn"])
    assert "--nodes, a file with columns node, x and y." in caught.value.told({})


def test_columns_that_are_not_there_are_named():
    with raises("`link`: expected one of the columns 'link', 'from', 'to', 'time'; got 'lnk'. Did you mean link?"):
        rv.RoadNetwork.from_frame(links(), link="lnk")
    with pytest.raises(InvalidInput, match=r"`y_from`: .* got None"):
        rv.RoadNetwork.from_frame(links(), x_from="time")
    with raises("`attributes`: expected one of time, constant, u_turn; got 'tim'. Did you mean time?"):
        rv.RoadNetwork.from_frame(links(), attributes=["time", "tim"])
    with raises("`attributes`: expected columns of numbers; got column 'name' of the links, which holds 'x' in row 0."):
        rv.RoadNetwork.from_frame(links().assign(name="x"), attributes=["name"])


def test_ids_are_whole_numbers_or_text():
    with raises("`link`: expected whole numbers or text in column 'link'; got 0.5 (first at row 1)."):
        rv.RoadNetwork.from_frame(links().assign(link=[0.0, 0.5, 1.0, 2.0, 3.0, 4.0]))
    with raises("`start`: expected no missing values; got 1 missing (first at row 1). Drop or fill those rows."):
        rv.RoadNetwork.from_frame(links().assign(**{"from": ["A", None, "B", "C", "D", "C"]}))
    with raises("`link`: expected whole numbers or text in column 'link'; got truth values (first at row 0)."):
        rv.RoadNetwork.from_frame(links().assign(link=[True, False] * 3))
