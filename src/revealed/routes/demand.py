"""How many trips go from where to where: a table of origins and destinations, or what trips themselves show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints, as_floats
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.frames import read_table
from revealed.labels import listed, near, plain, spell
from revealed.matching import match_labels
from revealed.naming import label_index
from revealed.routes.network import RoadNetwork

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Demand:
    """`trips` (P,) go from the links `origin` to the links `destination` (both indices (P,)); no pair occurs twice."""

    links: tuple[Any, ...] = field(repr=False)
    origin: Ints
    destination: Ints
    trips: Floats

    def __len__(self) -> int:
        return int(self.trips.size)

    def __repr__(self) -> str:
        goals = np.unique(self.destination).size
        return f"Demand({self.trips.sum():g} trips of {len(self)} pairs, to {goals} destinations)"

    def to_frame(self) -> pd.DataFrame:
        """A row per pair: origin, destination, trips."""
        import pandas as pd

        names = label_index("link", self.links, len(self.links))
        ends = {"origin": names.take(self.origin), "destination": names.take(self.destination)}
        return pd.DataFrame(ends | {"trips": self.trips})

    def words(self, row: int) -> str:
        """`'A' to 'B'`."""
        return f"{plain(self.links[self.origin[row]])!r} to {plain(self.links[self.destination[row]])!r}"

    def groups(self, pairs: bool = False) -> list[Ints]:
        """The rows of each destination, or of each pair; in the order of the destinations' links."""
        order = np.lexsort((self.origin, self.destination))
        new = np.diff(self.destination[order]) != 0
        if pairs:
            new |= np.diff(self.origin[order]) != 0
        return np.split(order, np.flatnonzero(new) + 1) if order.size else []

    def starts(self, rows: Ints) -> Floats:
        """(S,): how many of the trips of these rows start on each link."""
        return np.bincount(self.origin[rows], self.trips[rows], minlength=len(self.links)).astype(np.float64)

    def keep(self, rows: Any) -> Demand:
        """Some of the pairs."""
        return Demand(self.links, self.origin[rows], self.destination[rows], self.trips[rows])


def as_demand(
    network: RoadNetwork,
    demand: Any,
    *,
    origin: str | Sequence[str] = "origin",
    destination: str | Sequence[str] = "destination",
    trips: str = "trips",
) -> Demand:
    """Trips by origin and destination, which are links: from any frame or file with columns of these names, from a dict
    or Series whose keys are pairs (origin, destination), or from demonstrations with goals. Rows of one pair add up."""
    if isinstance(demand, Demand):
        if demand.links != network.links:
            raise InvalidInput("demand", "trips on this network", "one made for other links")
        return demand
    if isinstance(demand, Demonstrations):
        return demand_of(demand, network)
    if isinstance(demand, Mapping) or _is_series(demand):
        starts, ends, numbers = _read_pairs(demand)
    else:
        table = read_table(demand, "demand")
        starts, ends = table.labels("origin", origin), table.labels("destination", destination)
        numbers = table.numbers("trips", trips)
    rows = {"origin": _find(network, "origin", starts), "destination": _find(network, "destination", ends)}
    wrong = np.flatnonzero(~(numbers >= 0.0) | np.isinf(numbers))
    if wrong.size:
        raise InvalidInput("trips", "finite numbers >= 0", numbers[wrong[0]], f"row {wrong[0]}")
    return _summed(network, rows["origin"], rows["destination"], numbers)


def demand_of(trips: Demonstrations, network: RoadNetwork) -> Demand:
    """How often trips went from each origin to each destination; trips are demonstrations with goals."""
    steps, weights = trips_on(network, trips)
    first, goal = steps.first, steps.goal
    return _summed(network, steps.state[first], goal[first], weights[first])


def trips_on(network: RoadNetwork, trips: Any) -> tuple[Any, Floats]:
    """The single decisions of trips with goals, in the numbers of the network's links, and how often each counts."""
    if not isinstance(trips, Demonstrations):
        remedy = "A table goes through network.trips(table)."
        raise InvalidDemonstrations("trips", "demonstrations with goals", type(trips).__name__, remedy=remedy)
    own = match_labels(trips, network.mdp)
    if own.steps is None or own.steps.goal is None:
        remedy = "Read them by network.trips(table), or give goal= to the demonstrations."
        raise InvalidDemonstrations("trips", "demonstrations with goals", "none", remedy=remedy)
    if own.n_states != network.n_links:
        expected = f"{network.n_links} states, as the network has links"
        raise InvalidDemonstrations("trips", expected, own.n_states)
    return own.steps, own.step_weights


def _summed(network: RoadNetwork, origin: Ints, destination: Ints, trips: Floats) -> Demand:
    """Every pair once, in the order in which pairs first occur."""
    if trips.size == 0:
        raise InvalidInput("demand", "at least one pair", "none")
    _, first, which = np.unique(origin * network.n_links + destination, return_index=True, return_inverse=True)
    total = np.bincount(which, trips, minlength=first.size).astype(np.float64)
    order = np.argsort(first)
    rows = first[order]
    return Demand(network.links, origin[rows], destination[rows], total[order])


def _is_series(demand: Any) -> bool:
    return hasattr(demand, "index") and hasattr(demand, "to_numpy") and np.ndim(demand) == 1


def _read_pairs(demand: Any) -> tuple[list[Any], list[Any], Floats]:
    keys = [plain(key) for key in (demand if isinstance(demand, Mapping) else demand.index)]
    odd = next((key for key in keys if not isinstance(key, tuple) or len(key) != 2), None)
    if odd is not None or not keys:
        got = "none" if odd is None else repr(odd)[:60]
        raise InvalidInput("demand", "keys that are pairs (origin, destination)", got)
    given = list(demand.values()) if isinstance(demand, Mapping) else demand.to_numpy()
    numbers = as_floats(given)
    if numbers is None or numbers.shape != (len(keys),):
        raise InvalidInput("demand", "a number of trips for every pair", repr(given)[:60])
    return [key[0] for key in keys], [key[1] for key in keys], numbers


def _find(network: RoadNetwork, argument: str, labels: list[Any]) -> Ints:
    index = np.array([network.place.get(spell(label), -1) for label in labels], dtype=np.intp)
    lost = np.flatnonzero(index < 0)
    if lost.size:
        label = labels[lost[0]]
        expected, where = f"links of the network, such as {listed(network.links)}", f"row {lost[0]}"
        raise InvalidInput(argument, expected, repr(plain(label)), where, near(label, network.links))
    return index
