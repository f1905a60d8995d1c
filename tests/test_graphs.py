"""Graphs of networkx are the networks of their edges."""

import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from revealed.errors import InvalidInput
from roads import LINKS, POINTS, TIMES, town, turns_of


def raises(message: str):
    return pytest.raises(InvalidInput, match=f"^{re.escape(message)}$")


def town_graph() -> nx.DiGraph:
    graph = nx.DiGraph()
    for name, (x, y) in POINTS.items():
        graph.add_node(name, x=x, y=y)
    for link, time in zip(LINKS, TIMES, strict=True):
        graph.add_edge(link[0].upper(), link[1].upper(), time=time, name=link, note="one-way")
    return graph


def test_a_graph_is_the_network_of_its_table():
    network, table = rv.RoadNetwork.from_networkx(town_graph(), link="name"), town()
    assert set(network.links) == set(LINKS)
    assert network.attributes == table.attributes
    found, known = (set(zip(turns_of(one), values_of(one), strict=True)) for one in (network, table))
    assert found == known
    assert network.notes == ("column 'note' holds values that are not numbers: not used as attributes of the links.",)


def values_of(network: rv.RoadNetwork) -> list[tuple[float, ...]]:
    return list(zip(*(network.attribute(name).tolist() for name in network.attributes), strict=True))


def test_links_are_called_by_their_nodes_and_in_multigraphs_by_their_keys():
    network = rv.RoadNetwork.from_networkx(town_graph(), u_turns=False)
    assert ("A", "B") in network.links
    assert network.turn_index(("A", "B"), ("B", "C")) >= 0
    with pytest.raises(InvalidInput, match="no turn leads from"):
        network.turn_index(("A", "B"), ("B", "A"))
    graph = nx.MultiDiGraph([(1, 2), (1, 2), (2, 3)])
    multi = rv.RoadNetwork.from_networkx(graph)
    assert multi.links == ((1, 2, 0), (1, 2, 1), (2, 3, 0))
    assert turns_of(multi) == [((1, 2, 0), (2, 3, 0)), ((1, 2, 1), (2, 3, 0))]


def test_every_edge_without_direction_is_two_links():
    graph = nx.Graph()
    graph.add_edge("a", "b", time=2.0)
    graph.add_edge("b", "c", time=3.0)
    network = rv.RoadNetwork.from_networkx(graph)
    assert network.links == (("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"))
    times = dict(zip(turns_of(network), network.attribute("time"), strict=True))
    assert times == {
        (("a", "b"), ("b", "a")): 2.0,
        (("a", "b"), ("b", "c")): 3.0,
        (("b", "a"), ("a", "b")): 2.0,
        (("b", "c"), ("c", "b")): 3.0,
        (("c", "b"), ("b", "a")): 2.0,
        (("c", "b"), ("b", "c")): 3.0,
    }
    both = rv.RoadNetwork.from_networkx(graph.to_directed())
    assert set(turns_of(both)) == set(turns_of(network))


@given(st.integers(0, 2**31 - 1))
def test_turns_are_the_edges_of_the_line_graph(seed):
    """networkx's own: what follows what, but for loops, which do not follow themselves."""
    graph = nx.gnp_random_graph(7, 0.35, seed=seed, directed=True)
    expected = {(one, other) for one, other in nx.line_graph(graph).edges if one != other}
    if expected:
        assert set(turns_of(rv.RoadNetwork.from_networkx(graph))) == expected


def test_places_are_those_of_the_nodes():
    network = rv.RoadNetwork.from_networkx(town_graph())
    k = network.index(("B", "C"))
    assert np.asarray(network.coordinates)[k].tolist() == [[1.0, 0.0], [1.0, 1.0]]
    graph = town_graph()
    del graph.nodes["E"]["y"]
    with raises(
        "`graph`: expected numbers 'x' and 'y' on all nodes, or on none; got none for 1 of them (first at node 'E')."
    ):
        rv.RoadNetwork.from_networkx(graph)
    nowhere = nx.DiGraph(town_graph().edges(data=True))
    assert rv.RoadNetwork.from_networkx(nowhere).coordinates is None


def test_graphs_that_cannot_be_meant():
    with raises("`graph`: expected a networkx graph; got dict."):
        rv.RoadNetwork.from_networkx({"a": ["b"]})
    with raises("`graph`: expected at least one edge; got none."):
        rv.RoadNetwork.from_networkx(nx.DiGraph())
    with raises("`graph`: expected distinct node names; got 1 and '1'. Rename one."):
        rv.RoadNetwork.from_networkx(nx.DiGraph([(1, "1")]))
    with raises(
        "`link` requires a directed graph: an undirected edge is two links. Leave it out, and links are called (u, v); "
        "or pass a directed graph."
    ):
        rv.RoadNetwork.from_networkx(town_graph().to_undirected(), link="name")
    with raises(
        "`link`: expected an id 'nam' on every edge; got none (first at the edge from 'A' to 'B'). Did you mean name?"
    ):
        rv.RoadNetwork.from_networkx(town_graph(), link="nam")
    graph = town_graph()
    del graph.edges["B", "C"]["time"]
    with pytest.raises(
        InvalidInput, match=r"column 'time' of every row; got 1 missing value \(first at link \('B', 'C'\)\)"
    ):
        rv.RoadNetwork.from_networkx(graph)
    assert "time" not in rv.RoadNetwork.from_networkx(graph, attributes=["length"]).attributes
    with pytest.raises(InvalidInput, match="one row per link; got link 'x' in rows 0 and 1"):
        rv.RoadNetwork.from_networkx(nx.DiGraph([(1, 2, {"id": "x"}), (2, 3, {"id": "x"})]), link="id")


def test_without_networkx_the_way_to_get_it_is_shown(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "networkx", None)
    with pytest.raises(rv.errors.MissingDependency, match="pip install networkx"):
        rv.RoadNetwork.from_networkx(object())
