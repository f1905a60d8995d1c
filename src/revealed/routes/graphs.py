"""Graphs of networkx as tables of links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from revealed.checks import Floats, as_number
from revealed.errors import InvalidInput, MissingDependency
from revealed.frames import Table
from revealed.gates import require_text
from revealed.labels import near, spell
from revealed.routes.link_tables import Ids, Links, Nodes, ends_of, join_nodes, read_attributes, read_link_labels

Edge = tuple[Any, Any, Any, dict[str, Any]]  # from, to, label, data


def read_graph(graph: Any, link: str | None, x: str, y: str, attributes: Sequence[str] | None) -> Links:
    """See `RoadNetwork.from_networkx`."""
    _require_graph(graph)
    edges = _edges(graph, link)
    labels = read_link_labels(Table({"link": _objects([label for _, _, label, _ in edges])}), "link")
    nodes = join_nodes(_nodes([u for u, *_ in edges]), _nodes([v for _, v, *_ in edges]))
    data = Table(_columns([data for *_, data in edges]))
    keys = set() if link is None else {link}
    values, left_out = read_attributes(data, "links", keys, attributes, lambda row: f"link {labels[row]!r}")
    return Links(labels, values, nodes, _coordinates(graph, nodes, x, y), left_out)


def _require_graph(graph: Any) -> None:
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingDependency("reading graphs needs networkx: pip install networkx") from error
    if not isinstance(graph, nx.Graph):  # the base of all four kinds
        raise InvalidInput("graph", "a networkx graph", type(graph).__name__)
    if graph.number_of_edges() == 0:
        raise InvalidInput("graph", "at least one edge", "none")
    _require_distinct(list(graph))


def _require_distinct(nodes: list[Any]) -> None:
    """Nodes are matched by their text, so that 1 and "1" cannot be two of them."""
    seen: dict[str, Any] = {}
    for node in nodes:
        other = seen.setdefault(spell(node), node)
        if other is not node:
            raise InvalidInput("graph", "distinct node names", f"{other!r} and {node!r}", remedy="Rename one.")


def _edges(graph: Any, link: str | None) -> list[Edge]:
    """Every link with its label: both directions of an edge that has none."""
    if link is not None:
        require_text("link", link, "None or the name of an attribute of edges")
    if link is not None and not graph.is_directed():
        remedy = "Leave it out, and links are called (u, v); or pass a directed graph."
        raise InvalidInput.conflict("link", "requires a directed graph: an undirected edge is two links", remedy=remedy)
    keyed = graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)
    found: list[Edge] = []
    for u, v, *key, data in keyed:
        found.append((u, v, (u, v, *key) if link is None else _label(u, v, link, data), data))
        if not graph.is_directed() and u != v:
            found.append((v, u, (v, u, *key), data))
    return found


def _label(u: Any, v: Any, link: str, data: dict[str, Any]) -> Any:
    if data.get(link) is None:
        where = f"the edge from {u!r} to {v!r}"
        raise InvalidInput("link", f"an id {link!r} on every edge", "none", where, near(link, list(data)))
    return data[link]


def _nodes(nodes: list[Any]) -> Ids:
    place = {node: k for k, node in enumerate(dict.fromkeys(nodes))}
    return Ids(np.array([place[node] for node in nodes], dtype=np.intp), tuple(place))


def _columns(data: list[dict[str, Any]]) -> dict[str, Any]:
    """What the edges carry, a column each; None where an edge does not have it."""
    names = dict.fromkeys(str(name) for one in data for name in one)
    return {name: _objects([one.get(name) for one in data]) for name in names}


def _objects(values: list[Any]) -> Any:
    column = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):  # one by one: a list of tuples would become a table
        column[k] = value
    return column


def _coordinates(graph: Any, nodes: Nodes, x: str, y: str) -> Floats | None:
    """(S, 2, 2) where every node has a place, None where none has."""
    for name, given in (("x", x), ("y", y)):
        require_text(name, given, "the name of an attribute of nodes")
    data = [graph.nodes[label] for label in nodes.labels]
    if not any(x in one or y in one for one in data):
        return None
    points = np.array([[as_number(one.get(x)), as_number(one.get(y))] for one in data])
    lost = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if lost.size:
        got = f"none for {lost.size} of them"
        where = f"node {nodes.labels[lost[0]]!r}"
        raise InvalidInput("graph", f"numbers {x!r} and {y!r} on all nodes, or on none", got, where)
    return ends_of(points, nodes)
