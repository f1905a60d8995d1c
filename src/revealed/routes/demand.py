"""Trips from link to link on a network: `trip_demand.py` in the words of road networks."""

from __future__ import annotations

from typing import Any

from revealed.demonstrations import Demonstrations
from revealed.gates import require_instance
from revealed.routes.network import RoadNetwork
from revealed.trip_demand import Columns, Demand
from revealed.trip_demand import as_demand as between_states
from revealed.trip_demand import demand_of as of_trips

LINKS = "links of the network"


def as_demand(
    network: RoadNetwork,
    demand: Any,
    *,
    origin: Columns = "origin",
    destination: Columns = "destination",
    trips: str = "trips",
) -> Demand:
    """Trips by origin and destination, which are links, from any of the forms that the core knows."""
    columns: dict[str, Any] = {"origin": origin, "destination": destination, "trips": trips}
    return between_states(network.mdp, demand, "demand", LINKS, **columns)


def demand_of(trips: Demonstrations, network: RoadNetwork) -> Demand:
    """How often trips went from each origin to each destination; trips are demonstrations with goals."""
    require_instance("network", network, RoadNetwork, "an rv.RoadNetwork")
    return of_trips(network.mdp, trips)
