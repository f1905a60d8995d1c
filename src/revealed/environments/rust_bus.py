"""Rust's bus engines (Rust 1987) as a simulator: every month keep the engine running, or replace it.

Mileage is counted in bins. A bus in bin x that is kept costs c(x, θ) and moves on by 0, 1, 2, … bins; a new engine
costs RC, and the bus moves on from bin 0. At the published estimates an engine lasts for years.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from revealed.bellman import as_reward
from revealed.checks import require_count, require_floats, require_number, require_vector
from revealed.environments.world import World, check_scale, make_expert
from revealed.errors import InvalidDistribution, InvalidInput, InvalidOption
from revealed.gates import require_memory, within_memory
from revealed.mdp import MDP, Floats
from revealed.voices import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KEEP, REPLACE = 0, 1
ACTIONS = ("keep", "replace")
INCREMENTS = (0.3919, 0.5953, 0.0128)  # Rust (1987), group 4, 90 bins
# what keeping an engine with mileage bin x costs per unit of θ: Rust's forms of one parameter, in his units
COSTS: dict[str, Callable[[Floats], Floats]] = {
    "linear": lambda x: 0.001 * x,
    "square root": lambda x: 0.01 * np.sqrt(x),
    "quadratic": lambda x: 1e-5 * x**2,
}


@dataclass(frozen=True, eq=False, repr=False)
class BusWorld(World):
    """Drawn over mileage: the reward of keeping an engine or the value, and how likely it is replaced."""

    def _draw(self, ax: Axes, values: Floats, policy: Floats | None, **style: Any) -> None:
        from revealed.plots import plot_states

        style = {"actions": ("replace",), "states": "mileage bin", "ordered": True} | style
        plot_states(ax, values, None if policy is None else policy[:, [REPLACE]], **style)

    def _reward_label(self, name: str, table: Any) -> str:
        return f"{name} of keeping"

    def _per_state(self, table: Any) -> Floats:
        """A reward is shown for an engine that is kept: a new one costs the same everywhere."""
        return as_reward(self.mdp, table, "values")[:, KEEP]


@within_memory("bins")
def rust_bus(
    bins: int = 90,
    increments: Any = INCREMENTS,
    RC: float = 10.075,
    theta11: float = 2.293,
    cost: Any = "linear",
    discount: float = 0.9999,
    scale: float = 1.0,
    expert: str = "soft",
    noise: float = 0.1,
) -> BusWorld:
    """Rust's model with `bins` mileage bins; new buses start in bin 0.

    `increments` are the probabilities that mileage grows by 0, 1, 2, … bins in a month. Keeping an engine costs
    θ₁₁·c(x), where c is "linear" (0.001·x), "square root" (0.01·√x), "quadratic" (1e-5·x²), a function of the bins
    or an array (bins,); replacing it costs `RC`. Features are (S, 2, 2), named RC and theta11; `scale` multiplies both
    true weights. Defaults are Rust's estimates for group 4.
    """
    require_count("bins", bins, least=2)
    require_memory("bins", bins, 80 * int(bins))
    weights = check_scale(scale) * np.array([require_number("RC", RC), require_number("theta11", theta11)])
    mdp = MDP(bus_transitions(bins, increments), discount, np.arange(bins) == 0, action_labels=ACTIONS)
    features = bus_features(bins, cost)
    true_reward = features @ weights
    return BusWorld(
        name="Rust's bus engines",
        mdp=mdp,
        features=features,
        true_reward=true_reward,
        expert=make_expert(mdp, true_reward, expert, noise),
        feature_names=("RC", "theta11"),
        true_weights=weights,
        length=120,
    )


def bus_transitions(bins: int, increments: Any) -> sp.csr_array:
    """Sparse (2·bins, bins): on by 0, 1, 2, … bins from here (keep) or from bin 0 (replace); the last bin collects."""
    expected = "probabilities of growing by 0, 1, 2, … bins that sum to one"
    p = require_floats("increments", increments, expected, InvalidDistribution)
    if p.ndim != 1 or p.size == 0 or not np.all(p >= 0.0) or not abs(p.sum() - 1.0) <= 1e-8:
        raise InvalidDistribution("increments", expected, increments)
    here = np.column_stack([np.arange(bins), np.zeros(bins, dtype=int)]).reshape(-1, 1)  # where (s, a) goes on from
    columns = np.minimum(here + np.arange(p.size), bins - 1)
    rows = np.repeat(np.arange(2 * bins), p.size)
    where = (rows, columns.reshape(-1))
    return sp.csr_array(sp.coo_array((np.tile(p, 2 * bins), where), shape=(2 * bins, bins)))


def bus_features(bins: int, cost: Any = "linear") -> Floats:
    """(bins, 2, 2): replacing pays −RC, keeping −θ₁₁·c(x)."""
    features = np.zeros((bins, 2, 2))
    features[:, REPLACE, 0] = -1.0
    features[:, KEEP, 1] = -_cost(bins, cost)
    return features


def _cost(bins: int, cost: Any) -> Floats:
    if isinstance(cost, str) and cost not in COSTS:
        raise InvalidOption("cost", f"one of {', '.join(COSTS)}, a function of the bins, or an array", shown(cost))
    shape = COSTS[cost] if isinstance(cost, str) else cost
    try:
        given = shape(np.arange(bins, dtype=np.float64)) if callable(shape) else shape
    except (TypeError, ValueError) as error:  # a class, or a function of something else
        raise InvalidInput("cost", f"a function of {bins} bins", str(error).splitlines()[0]) from error
    return require_vector("cost", given, bins, f"{bins} finite costs, one per bin")
