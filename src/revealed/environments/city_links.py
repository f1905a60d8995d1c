"""From streets to what a road network is made of: links, each a street in one direction, and turns between them.

Turning back is possible where only a few local streets meet and where there is no other way on. What is left are the
links from which every other one can be reached, which loses hardly any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from revealed.checks import Bools, Floats, Ints
from revealed.environments.city_streets import LOCAL, SPEEDS, Streets
from revealed.routes.link_tables import CORNERS, Nodes
from revealed.routes.turns import is_u_turn, lengths, turns_that_meet
from revealed.tables import sparse_table

if TYPE_CHECKING:
    import pandas as pd

ARMS = 3  # streets at a crossing up to which one may turn back there


@dataclass(frozen=True)
class Links:
    """`start`, `end` (L,) the nodes of each link; `kind` (L,) its class; `source`, `target` (E,) links of each turn."""

    nodes: Floats
    start: Ints
    end: Ints
    kind: Ints
    source: Ints
    target: Ints

    def to_frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Links with length in km, speed in km/h, travel time in minutes and ends in km; and turns."""
        import pandas as pd

        ends = np.stack([self.nodes[self.start], self.nodes[self.end]], axis=1)
        length = lengths(ends)
        speed = np.array(SPEEDS)[self.kind]
        ids = {"link": np.arange(self.start.size), "from": self.start, "to": self.end}
        places = dict(zip(CORNERS, ends.reshape(-1, 4).T, strict=True))
        links = ids | {"length": length, "speed": speed, "travel_time": 60.0 * length / speed} | places
        return pd.DataFrame(links), pd.DataFrame({"from_link": self.source, "to_link": self.target})


def links_of(streets: Streets) -> Links:
    """The links of the streets and the turns between them, all within reach of each other."""
    back = ~streets.one_way
    start = np.concatenate([streets.ends[:, 0], streets.ends[back, 1]])
    end = np.concatenate([streets.ends[:, 1], streets.ends[back, 0]])
    kind = np.concatenate([streets.kind, streets.kind[back]])
    nodes = Nodes(tuple(range(len(streets.nodes))), start, end)
    turns = turns_that_meet(nodes)
    only = np.bincount(turns.source, minlength=start.size)[turns.source] == 1
    kept = turns.some(~is_u_turn(turns, nodes) | only | quiet(streets)[end[turns.source]])
    return _within_reach(Links(streets.nodes, start, end, kind, kept.source, kept.target))


def quiet(streets: Streets) -> Bools:
    """(N,) crossings of local streets, and of few."""
    n, ends = len(streets.nodes), streets.ends.reshape(-1)
    busy = np.zeros(n, dtype=bool)
    busy[ends[np.repeat(streets.kind, 2) != LOCAL]] = True
    return ~busy & (np.bincount(ends, minlength=n) <= ARMS)


def _within_reach(links: Links) -> Links:
    from scipy.sparse.csgraph import connected_components

    n = links.start.size
    graph = sparse_table(np.ones(links.source.size), links.source, links.target, (n, n))
    part = connected_components(graph, connection="strong")[1]
    kept = part == np.argmax(np.bincount(part))
    number = np.cumsum(kept) - 1
    turns = kept[links.source] & kept[links.target]
    source, target = number[links.source[turns]], number[links.target[turns]]
    return Links(links.nodes, links.start[kept], links.end[kept], links.kind[kept], source, target)
