"""Objectworld (Levine et al. 2011; the paper's Figures 3 and 4): features are distances to coloured objects.

The true reward depends on two of the outer colours, and not linearly on any distance: a network has to find the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Ints, require_count, require_flag, require_option, require_probability, require_vector
from revealed.environments.grid import ACTIONS, grid_transitions
from revealed.environments.world import GridWorld, check_scale, make_expert
from revealed.gates import require_memory, within_memory
from revealed.mdp import MDP, Floats
from revealed.rewards.base import Reward
from revealed.simulation import make_rng

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS = ("euclidean", "chebyshev", "manhattan")
NORMALISE = ("range", "standard", "none")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Objectworld(GridWorld):
    """`objects` (n, 4): row, column, inner colour and outer colour of each object; colours count from 0.

    `distances` (S, 2C) are the features before they were normalised, in cells.
    """

    objects: Ints
    distances: Floats

    def reward_model(self) -> Reward:
        """A network of 32 and 16 units, as in the paper, but smooth (tanh): the truth is not linear in the features."""
        from revealed.rewards.neural import NeuralReward

        return NeuralReward(self.features)

    def _draw(self, ax: Axes, values: Floats, policy: Floats | None, **style: Any) -> None:
        from revealed.plots import plot_objects

        show = style.pop("objects", False)
        super()._draw(ax, values, policy, **style)
        if show:
            plot_objects(ax, self.objects)


@within_memory("size", "colors")
def objectworld(
    size: int = 32,
    colors: int = 4,
    object_probability: float = 0.05,
    wind: float = 0.3,
    discount: float = 0.9,
    seed: int = 0,
    scale: float = 1.0,
    expert: str = "noisy",
    noise: float = 0.3,
    radii: tuple[float, float] = (3.0, 2.0),
    metric: str = "euclidean",
    strict: bool = False,
    values: tuple[float, float, float] = (1.0, -1.0, 0.0),
    normalise: str = "range",
) -> Objectworld:
    """A windy grid with randomly placed objects, each with an inner and an outer colour.

    Five actions (up, down, left, right, stay); with probability `wind` a random neighbouring cell is entered instead
    of the intended one. Each cell holds an object with probability `object_probability`; the first two colours
    always occur, both as inner and as outer colour.

    The true reward is `scale` × `values`: the first (+1) within `radii[0]` cells of outer colour 0 and within
    `radii[1]` of outer colour 1, the second (−1) within `radii[0]` of outer colour 0 only, else the third (0).
    Published variants measure by "euclidean", "chebyshev" or "manhattan" `metric`, and say "within" for ≤ or for <
    (`strict=True`).

    Features are the Euclidean distances to the nearest object of each inner and each outer colour, in the order inner
    0, outer 0, inner 1, …; a colour that is absent is √2·size away. `normalise` is "range" (divided by √2·size, so
    that they lie in [0, 1]), "standard" (mean 0, standard deviation 1) or "none".

    The expert is "noisy", as in the paper (optimal, but with probability `noise` a random action), "soft" or "optimal".
    A soft expert needs a larger `scale`, 5 or so: at 1 rewards matter to it little more than entropy.
    """
    _check(size, colors, object_probability, metric, radii, values, normalise)
    require_flag("strict", strict)
    objects = _draw_objects(size, colors, object_probability, make_rng(seed))
    uniform = np.full(size * size, 1.0 / size**2)
    mdp = MDP(grid_transitions(size, size, wind, stay=True), discount, uniform, action_labels=ACTIONS)
    reward = check_scale(scale) * _rule(_outer_distances(objects, size, metric), tuple(radii), strict, tuple(values))
    true_reward = np.repeat(reward[:, None], len(ACTIONS), axis=1)
    distances = _distances(objects, size, colors)
    return Objectworld(
        name="Objectworld",
        mdp=mdp,
        features=_normalised(distances, normalise, np.sqrt(2.0) * size),
        true_reward=true_reward,
        expert=make_expert(mdp, true_reward, expert, noise),
        feature_names=tuple(f"{side} {c}" for c in range(colors) for side in ("inner", "outer")),
        length=15,
        shape=(size, size),
        objects=objects,
        distances=distances,
    )


def _check(size: Any, colors: Any, p: Any, metric: Any, radii: Any, values: Any, normalise: Any) -> None:
    for name, number in (("size", size), ("colors", colors)):
        require_count(name, number, least=2)
    require_memory("size, colors", (size, colors), int(size) ** 2 * (100 + 8 * int(colors)))
    require_probability("object_probability", p)
    require_option("metric", metric, METRICS)
    require_option("normalise", normalise, NORMALISE)
    require_vector("radii", radii, 2, "2 numbers >= 0", least=0.0)
    require_vector("values", values, 3, "3 numbers")


def _draw_objects(size: int, colors: int, p: float, rng: np.random.Generator) -> Ints:
    """Cells in random order, so that the two objects whose colours are fixed lie anywhere."""
    n = max(2, int(rng.binomial(size * size, p)))
    cell = rng.permutation(size * size)[:n]
    color = rng.integers(colors, size=(n, 2))
    color[:2] = [[0, 0], [1, 1]]
    return np.column_stack([cell // size, cell % size, color])


def _nearest(places: Any, size: int, metric: str) -> Floats:
    """(S,) the distance of each cell to the nearest of `places`; √2·size where there is none."""
    if len(places) == 0:
        return np.full(size * size, np.sqrt(2.0) * size)
    from scipy.spatial import KDTree

    order = {"euclidean": 2, "chebyshev": np.inf, "manhattan": 1}[metric]
    cells = np.column_stack(np.divmod(np.arange(size * size), size))
    return np.asarray(KDTree(places).query(cells, p=order)[0], dtype=np.float64)


def _distances(objects: Any, size: int, colors: int) -> Floats:
    sides = [(c, side) for c in range(colors) for side in (2, 3)]  # x_{2c} inner, x_{2c+1} outer, as in the paper
    return np.column_stack([_nearest(objects[objects[:, side] == c, :2], size, "euclidean") for c, side in sides])


def _outer_distances(objects: Any, size: int, metric: str) -> tuple[Floats, Floats]:
    first, second = (_nearest(objects[objects[:, 3] == c, :2], size, metric) for c in (0, 1))
    return first, second


def _rule(distance: tuple[Floats, Floats], radii: Any, strict: bool, values: Any) -> Floats:
    compare = np.less if strict else np.less_equal
    near, both = compare(distance[0], radii[0]), compare(distance[1], radii[1])
    good, bad, other = values
    return np.where(near & both, good, np.where(near, bad, other)).astype(np.float64)


def _normalised(distances: Floats, how: str, longest: float) -> Floats:
    if how == "standard":
        varies = np.ptp(distances, axis=0) > 0.0  # of a colour that is absent, the deviation is rounding alone
        return (distances - distances.mean(axis=0)) / np.where(varies, distances.std(axis=0), 1.0)
    return distances / longest if how == "range" else distances
