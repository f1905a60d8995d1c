"""What the arrays of a road network must be, so that turns and ends are looked up in them without another thought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Ints, frozen
from revealed.errors import InvalidInput
from revealed.gates import require_instance
from revealed.labels import spell
from revealed.routes.changes import ARRIVAL
from revealed.routes.link_tables import Nodes

if TYPE_CHECKING:
    from revealed.routes.network import RoadNetwork

MADE_BY = "Use from_frame, from_turns or from_networkx."
INDICES = ("source", "target", "slot", "n_slots", "arrival")


def require_network(network: RoadNetwork) -> None:
    """An entry per link or per turn, indices of links that exist, and turns in their order."""
    require_instance("links", network.links, tuple, "a tuple of labels", MADE_BY)
    for name in ("link_values", "turn_values"):
        require_instance(name, getattr(network, name), dict, "a dict of arrays")
    require_instance("source", network.source, np.ndarray, "an array", MADE_BY)
    S, E = len(network.links), network.source.size
    for name in INDICES:
        wanted = _as_array(name, getattr(network, name), (S if name in ("n_slots", "arrival") else E,), "iu")
        object.__setattr__(network, name, frozen(wanted.astype(np.intp, copy=False)))
    for values, n in ((network.link_values, S), (network.turn_values, E)):
        for name, array in values.items():
            frozen(_as_array(str(name), array, (n,), "biuf"))
    if network.coordinates is not None:
        frozen(_as_array("coordinates", network.coordinates, (S, 2, 2), "iuf"))
    _require_turns(network)
    if network.nodes is not None:
        _require_nodes(network, network.nodes)
    _require_arrivals(network)


def _as_array(name: str, array: Any, shape: tuple[int, ...], kinds: str) -> Any:
    require_instance(name, array, np.ndarray, "an array", MADE_BY)
    if array.shape != shape or array.dtype.kind not in kinds:
        expected = f"{'numbers' if 'f' in kinds else 'whole numbers'} of shape {shape}"
        raise InvalidInput(name, expected, f"{array.dtype} of shape {array.shape}", remedy=MADE_BY)
    return array


def _require_within(name: str, index: Ints, n: Any, least: int = 0) -> None:
    bad = np.flatnonzero((index < least) | (index >= n))
    if bad.size:
        k = int(bad[0])
        most = np.broadcast_to(n, index.shape)[k] - 1
        raise InvalidInput(name, f"indices in {least}…{most}", index[k], f"entry {k}", MADE_BY)


def _require_turns(network: RoadNetwork) -> None:
    """Turns stand in the order of links left and, there, of links entered; each has an action of its own."""
    S = network.n_links
    for name in ("source", "target"):
        _require_within(name, getattr(network, name), S)
    _require_within("slot", network.slot, network.n_slots[network.source])
    same = np.diff(network.source) == 0
    for name in ("source", "target", "slot"):
        step = np.diff(getattr(network, name))
        bad = np.flatnonzero(step < 0 if name == "source" else same & (step <= 0))
        if bad.size:
            k = int(bad[0]) + 1
            got = f"{getattr(network, name)[k]} after {getattr(network, name)[k - 1]}"
            raise InvalidInput(
                name, "turns in order, by the links that they leave and enter", got, f"turn {k}", MADE_BY
            )


def _require_nodes(network: RoadNetwork, nodes: Nodes) -> None:
    """A turn enters a link that starts where the one before it ends."""
    require_instance("nodes", nodes, Nodes, "nodes of links", MADE_BY)
    for name in ("start", "end"):
        index = _as_array(f"nodes.{name}", getattr(nodes, name), (network.n_links,), "iu")
        _require_within(f"nodes.{name}", index, len(nodes.labels))
    apart = np.flatnonzero(nodes.end[network.source] != nodes.start[network.target])
    if apart.size:
        got = f"node {nodes.start[network.target[apart[0]]]} after node {nodes.end[network.source[apart[0]]]}"
        raise InvalidInput("nodes", "links that start where the one before them ends", got, f"turn {apart[0]}", MADE_BY)


def _require_arrivals(network: RoadNetwork) -> None:
    """Only its own link leads into an arrival link, and nothing leads out; it is called after that link."""
    _require_within("arrival", network.arrival, network.n_links, -1)
    own = np.flatnonzero(network.arrival >= 0)
    owner = np.full(network.n_links, -1)
    owner[network.arrival[own]] = own
    named = all(network.links[network.arrival[k]] == f"{spell(network.links[k])}{ARRIVAL}" for k in own)
    into = owner[network.target]
    astray = ((into >= 0) & (into != network.source)) | (owner[network.source] >= 0)
    if not named or astray.any() or np.unique(network.arrival[own]).size < own.size:
        raise InvalidInput("arrival", "the arrival link of each link", "other links", remedy="Use with_arrivals.")
