"""The parts of a run on a road network: the network from its files, the trips, and what a turn is worth.

Errors name the options of a recipe, which calls some arguments otherwise than the road network does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from revealed.demonstrations import Demonstrations
from revealed.description import Description
from revealed.errors import InvalidInput, InvalidOption
from revealed.frames import read_names, read_table
from revealed.labels import plain
from revealed.rewards.base import Reward
from revealed.rewards.tabular import TabularReward
from revealed.routes.network import RoadNetwork
from revealed.routes.trips import destinations_in
from revealed.typed import one_or_list
from revealed.voices import arg, named

LINK, FROM, TO = "link", "from", "to"  # how columns are called unless one says otherwise
TRIP, SEQUENCE = "trip", "sequence"
# what a recipe calls arguments of a network
OPTIONS = {"start": "from_node", "end": "to_node", "links": "network", "table": "panel", "trips": "panel"}
OPTIONS |= {"bad": "bad_trips"}


def read_network(one: Description) -> RoadNetwork:
    """From links, from turns, or from both; links that know of no nodes need turns."""
    turns: dict[str, Any] = {"turn_from": one.turn_from or "from_link", "turn_to": one.turn_to or "to_link"}
    link = one_or_list(one.link or (LINK,))
    ends = {"start": one.from_node or FROM, "end": one.to_node or TO}
    with in_own_words():
        if one.network is None or (one.turns is not None and not _has_nodes(one, ends)):
            _require_no_nodes(one)
            return RoadNetwork.from_turns(one.turns, links=one.network, link=link, **turns)
        more: dict[str, Any] = {"nodes": one.nodes, "u_turns": one.u_turns is not False} | ends
        return RoadNetwork.from_frame(one.network, link=link, turns=one.turns, **turns, **more)


def _has_nodes(one: Description, ends: dict[str, str]) -> bool:
    known = read_table(one.network, "network").names
    return bool(one.from_node or one.to_node) or all(name in known for name in ends.values())


def _require_no_nodes(one: Description) -> None:
    for name, given in (("nodes", one.nodes is not None), ("u_turns", one.u_turns is False)):
        if given:
            rule = "requires links with the nodes where they start and end"
            remedy = f"Name their columns with {arg('from_node')} and {arg('to_node')}."
            raise InvalidOption.conflict(name, rule, remedy=remedy)


def _trip_link(one: Description) -> tuple[str, ...]:
    return one.trip_link or one.link or (LINK,)


def _how_trips_are_read(one: Description) -> dict[str, Any]:
    """Arguments of `RoadNetwork.trips`: how the columns of trips are called, and what becomes of bad ones."""
    names = {"trip": one_or_list(one.trip or (TRIP,)), "sequence": one.sequence or SEQUENCE}
    return names | {"link": one_or_list(_trip_link(one)), "bad": one.bad_trips or "error"}


def with_arrivals(one: Description, network: RoadNetwork, panel: Any) -> RoadNetwork:
    """The network with an arrival link behind the last link of every trip, where trips may pass it before."""
    if not one.arrivals:
        return network
    _require_links(one, panel)
    with in_own_words():
        ends = destinations_in(network, panel, **_how_trips_are_read(one))
        return network.with_arrivals([plain(link) for link in ends])


def _require_links(one: Description, panel: Any) -> None:
    """The panel has the columns of links, which may be called otherwise there than in the file of links."""
    known = read_names(panel, "panel")
    lost = next((name for name in _trip_link(one) if name not in known), None)
    if lost is None:
        return
    word = LINK if LINK in known else next(iter(get_close_matches(lost, known, 1)), "")
    remedy = f"Did you mean {arg('trip_link', word)}?" if word else f"Name it with {arg('trip_link')}."
    files = panel if isinstance(panel, str) else ", ".join(panel)
    got = f"{lost!r}, which it does not have" + (f", as {named('link')} says" if one.link and not one.trip_link else "")
    raise InvalidInput("trip_link", f"a column of {files} ({', '.join(known)})", got, remedy=remedy)


def read_road_trips(one: Description, network: RoadNetwork, panel: Any) -> Demonstrations:
    _require_links(one, panel)
    with in_own_words():
        kept = [] if one.cluster is None else [one.cluster]
        demos = network.trips(panel, traveller=one.traveller, keep=kept, **_how_trips_are_read(one))
    return replace(demos, notes=(*network.notes, *demos.notes))


def road_reward(one: Description, network: RoadNetwork) -> Reward:
    """A weight per attribute of turns, a network of them, or one weight per link."""
    if one.reward == "tabular":
        return TabularReward(network.n_links)
    columns = list(one.columns) or None
    with in_own_words():
        if one.reward != "neural":
            return network.reward(columns)
        from revealed.rewards.neural import NeuralReward

        X = network.features(columns)
        return NeuralReward(X, hidden=one.hidden, seed=one.seed, activation=one.activation)


@contextmanager
def in_own_words() -> Iterator[None]:
    """Arguments of the library under the names of the options that they come from."""
    try:
        yield
    except InvalidInput as error:
        raise error.renamed(OPTIONS) from error
