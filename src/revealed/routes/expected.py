"""What trips are expected to do: visits of links, use of turns, and the expected maximum of each pair (theory R4).

One solve with the transpose per destination serves all its origins; destinations are streamed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from revealed.checks import Floats, Ints
from revealed.errors import InvalidInput
from revealed.goal_values import Toward
from revealed.labels import how_many
from revealed.mdp import MDP
from revealed.trip_demand import Demand


@dataclass(frozen=True, eq=False)
class Expected:
    """`value` (P,) is V at the origin of each pair, −∞ where its destination cannot be reached; `visits` (S,) and
    `turns` (E,) are the expected use of links and turns by all trips of the other pairs."""

    value: Floats
    visits: Floats
    turns: Floats


def expect(cases: Iterable[tuple[Toward, Ints]], demand: Demand, pair: Ints) -> Expected:
    """`cases` are values toward a goal, each with the rows of the demand that head there; `pair` (E,) the turns' places
    among the model's pairs."""
    value = np.full(len(demand), -np.inf)
    visits, turns = np.zeros(demand.n_states), np.zeros(pair.size)
    for toward, rows in cases:
        value[rows] = toward.value[demand.origin[rows]]
        going = rows[np.isfinite(value[rows])]
        if going.size:
            use = toward.visits(demand.starts(going))
            visits += use
            turns += (use[:, None] * toward.policy).reshape(-1)[pair]
    return Expected(value, visits, turns)


def require_ways(demand: Demand, mdp: MDP) -> None:
    """No trip whose destination is out of reach; it has no expected flow."""
    lost = np.flatnonzero(~demand.arriving(mdp) & (demand.trips > 0.0))
    if lost.size:
        trips, pairs = f"{demand.trips[lost].sum():g} trips", how_many(lost.size, "pair")
        what = f"{trips} of {pairs} cannot reach their destination"
        remedy = "Leave them out: `welfare(demand)` shows −inf for them."
        raise InvalidInput.impossible(what, demand.where(int(lost[0])), remedy, "demand")
