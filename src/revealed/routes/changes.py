"""Networks made from others, for counterfactuals: links closed, attributes changed, arrival links added.

States and actions keep their numbers throughout, so that what fits one network fits the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints, as_number, is_mapping, require_vector
from revealed.errors import InvalidInput
from revealed.labels import find, in_short, spell
from revealed.naming import pair_keys
from revealed.routes.link_tables import Nodes
from revealed.trip_demand import is_series
from revealed.voices import shown

if TYPE_CHECKING:
    from revealed.routes.network import RoadNetwork

ARRIVAL = " (arrival)"  # behind the label of the link


def close_links(network: RoadNetwork, links: Any) -> RoadNetwork:
    """See `RoadNetwork.without`."""
    closed = np.zeros(network.n_links, dtype=bool)
    closed[network.indices(links)] = True
    kept = ~closed[network.target]
    if not kept.any():
        raise InvalidInput.impossible("no turn is left without these links", argument="links")
    return replace(
        network,
        source=network.source[kept],
        target=network.target[kept],
        slot=network.slot[kept],
        turn_values={name: values[kept] for name, values in network.turn_values.items()},
        words=_told(network, f"{in_short([network.links[k] for k in np.flatnonzero(closed)])} closed"),
    )


def _told(network: RoadNetwork, words: str) -> str:
    """What was changed before, and this."""
    return words if not network.words or network.words == words else f"{network.words}, {words}"


# -- attributes -------------------------------------------------------------------------------------------------------


def change_attribute(network: RoadNetwork, name: str, values: Any) -> RoadNetwork:
    """See `RoadNetwork.with_attribute`. It is an attribute of links where links are named and it is not yet one of
    turns; else it becomes one of turns."""
    if not isinstance(name, str) or not name:
        raise InvalidInput("name", "a name", shown(name))
    named = _as_named(network, values)
    if named is None:
        return _of_turns(network, name, _per_turn(network, values))
    numbers = np.array([_number(key, value) for key, value in named.items()])
    keys = list(named)
    if all(spell(key) in network.place for key in keys):
        return _by_link(network, name, network.indices(keys), numbers)
    changed = _present(network, name).copy()
    changed[_pairs(network, keys)] = numbers
    return _of_turns(network, name, changed)


def _by_link(network: RoadNetwork, name: str, index: Ints, numbers: Floats) -> RoadNetwork:
    if name in network.turn_values:
        by_link = np.full(network.n_links, np.nan)
        by_link[index] = numbers
        entered = by_link[network.target]
        return _of_turns(network, name, np.where(np.isnan(entered), network.turn_values[name], entered))
    changed = network.link_values.get(name, np.zeros(network.n_links)).copy()
    changed[index] = numbers
    return replace(network, link_values=network.link_values | {name: changed}, words=_told(network, f"{name} changed"))


def _of_turns(network: RoadNetwork, name: str, values: Floats) -> RoadNetwork:
    others = {key: column for key, column in network.link_values.items() if key != name}
    told = _told(network, f"{name} changed")
    return replace(network, link_values=others, turn_values=network.turn_values | {name: values}, words=told)


def _present(network: RoadNetwork, name: str) -> Floats:
    return network.attribute(name) if name in network.attributes else np.zeros(network.n_turns)


def _as_named(network: RoadNetwork, values: Any) -> dict[Any, Any] | None:
    """Values by name, of a dict or a Series; None for what has no names, such as a Series in the turns' own order."""
    if is_mapping(values):
        return dict(values)
    if not is_series(values):
        return None
    keys = pair_keys(values.index, "from_link", "to_link")
    if keys == list(range(network.n_turns)) and not all(spell(key) in network.place for key in keys):
        return None
    _require_own_names(network, values.index, keys)
    if len(set(keys)) < len(keys):
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise InvalidInput("values", "each link or turn once", f"{twice!r} twice")
    return dict(zip(keys, values.to_numpy().tolist(), strict=True))


def _require_own_names(network: RoadNetwork, index: Any, keys: list[Any]) -> None:
    """The numbers that pandas gives to rows are not ids of links, unless there are as many as links, whose ids are just
    these in their order; as many as turns may be turns. An index that has a name was set by somebody: its numbers are
    ids, if there are such links."""
    if type(index).__name__ != "RangeIndex" or (index.name is not None and _are_links(network, keys)):
        return
    if len(keys) == network.n_turns or [spell(key) for key in keys] != list(network.place):
        expected, got = "a Series by link or by pair of links", f"one by row number, 0…{len(keys) - 1}"
        remedy = 'For example: table.set_index("link")["toll"], or a dict; an array is in the order of the turns.'
        raise InvalidInput("values", expected, got, remedy=remedy)


def _are_links(network: RoadNetwork, keys: list[Any]) -> bool:
    return all(spell(key) in network.place for key in keys)


def _per_turn(network: RoadNetwork, values: Any) -> Floats:
    """(E,) from one number, which is 0 at arrivals, or from as many numbers as there are turns."""
    arrivals = np.zeros(network.n_links, dtype=bool)
    arrivals[network.arrival[network.arrival >= 0]] = True
    number = as_number(values)
    if np.isfinite(number):
        return np.where(arrivals[network.target], 0.0, number)
    expected = f"a number, {network.n_turns} finite numbers (one per turn), or a dict by link or by pair of links"
    return require_vector("values", values, network.n_turns, expected)


def _pairs(network: RoadNetwork, keys: list[Any]) -> Ints:
    """The turns that are named by pairs of links."""
    for key in keys:
        if not isinstance(key, tuple) or len(key) != 2:
            find("values", [key], network.links)  # complains, with what is near, unless links and pairs are mixed
            raise InvalidInput("values", "keys that are all links, or all pairs of links", shown(key))
    return np.array([network.turn_index(*key) for key in keys], dtype=np.intp)


def _number(key: Any, value: Any) -> float:
    number = as_number(value)
    if not np.isfinite(number):
        raise InvalidInput("values", "a finite number for every link or turn named", shown(value), f"{key!r}")
    return number


# -- arrivals ---------------------------------------------------------------------------------------------------------


def add_arrivals(network: RoadNetwork, destinations: Any) -> RoadNetwork:
    """See `RoadNetwork.with_arrivals`. Links that have an arrival link already keep it."""
    ends = np.unique(network.indices(destinations, "destinations"))
    _require_no_arrival(network, ends)
    ends = ends[network.arrival[ends] < 0]
    labels = _arrival_labels(network, ends)
    S, n = network.n_links, ends.size
    source, target = np.append(network.source, ends), np.append(network.target, S + np.arange(n))
    order = np.argsort(source, kind="stable")  # behind the turns that a link has
    arrival = np.append(network.arrival, np.full(n, -1, dtype=np.intp))
    arrival[ends] = S + np.arange(n)
    n_slots = np.append(network.n_slots, np.zeros(n, dtype=network.n_slots.dtype))
    n_slots[ends] += 1
    return replace(
        network,
        links=network.links + labels,
        source=source[order],
        target=target[order],
        slot=np.append(network.slot, network.n_slots[ends])[order],
        n_slots=n_slots,
        link_values={name: np.append(values, np.zeros(n)) for name, values in network.link_values.items()},
        turn_values={name: np.append(values, np.zeros(n))[order] for name, values in network.turn_values.items()},
        nodes=_nodes_with(network.nodes, ends),
        coordinates=_points_with(network.coordinates, ends),
        arrival=arrival,
    )


def _require_no_arrival(network: RoadNetwork, ends: Ints) -> None:
    twice = ends[np.isin(ends, network.arrival)]
    if twice.size:
        got = f"the arrival link {network.links[twice[0]]!r}"
        raise InvalidInput("destinations", "links that are not arrival links themselves", got)


def _arrival_labels(network: RoadNetwork, ends: Ints) -> tuple[str, ...]:
    labels = tuple(f"{spell(network.links[k])}{ARRIVAL}" for k in ends)
    taken = next((label for label in labels if label in network.place), None)
    if taken is not None:
        raise InvalidInput("destinations", "links whose arrival links have distinct labels", f"{taken!r} twice")
    return labels


def _nodes_with(nodes: Nodes | None, ends: Ints) -> Nodes | None:
    """Arrival links lie at the node where their link ends."""
    if nodes is None:
        return None
    return Nodes(nodes.labels, np.append(nodes.start, nodes.end[ends]), np.append(nodes.end, nodes.end[ends]))


def _points_with(coordinates: Floats | None, ends: Ints) -> Floats | None:
    if coordinates is None:
        return None
    return np.concatenate([coordinates, coordinates[ends][:, [1, 1]]])
