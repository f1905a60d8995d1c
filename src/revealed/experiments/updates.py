"""The appendix says that NPL's π̃ does not change after K = 3: how far do π̃, θ and the metrics move?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.demonstrations import Demonstrations
from revealed.environments.world import World
from revealed.experiments import mountaincar, objectworld, obstacleworld
from revealed.experiments.cells import (
    NETWORK_PATIENCE,
    Cell,
    Measured,
    Picture,
    Results,
    Table,
    fit_row,
    make_estimator,
    run_with,
)
from revealed.experiments.curves import METRICS
from revealed.experiments.numbers import short
from revealed.experiments.protocol import MOVED
from revealed.first_step import estimate_policy
from revealed.mdp import Floats
from revealed.optimize import Iterate
from revealed.plots import label_axes
from revealed.rewards.base import Reward

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "updates"
TITLE = "Updates of π̃: does NPL settle?"
PAPER = "Appendix D, “does not change after K = 3”"
ALONE = False
ABOUT = (
    "NPL at the largest sample of each world, with occupancy weights (both readings agree). After every update: the "
    "total variation between π̃ and the one before, averaged over the states that the demonstrations visit; the largest "
    "change of any probability; by how much θ has changed relative to its length; and the metrics. NPL ends early once "
    "no probability changes by more than 1e-9."
)
MOVES = {"average": "mean change over visited states", "largest": "largest change of a probability"}
NO_MOVE = 1e-9  # smaller moves are drawn as this one: NPL takes them for rest
COLORS = ("#0072b2", "#d55e00", "#009e73")


@dataclass(frozen=True)
class Config:
    """The worlds as in their own experiments (by these configurations), and the updates that are followed."""

    updates: int = 10
    seeds: int = 10
    obstacleworld: obstacleworld.Config = field(default_factory=obstacleworld.Config)
    mountaincar: mountaincar.Config = field(default_factory=mountaincar.Config)
    objectworld: objectworld.Config = field(default_factory=objectworld.Config)


QUICK = Config(seeds=5, obstacleworld=obstacleworld.QUICK, mountaincar=mountaincar.QUICK, objectworld=objectworld.QUICK)


def cells(config: Config) -> list[Cell]:
    places = {
        obstacleworld.setting(config.obstacleworld): (max(config.obstacleworld.trajectories), 0.5),
        mountaincar.setting(config.mountaincar): (max(config.mountaincar.trajectories), 8.0),
        _objectworld(config): (max(config.objectworld.trajectories), 0.01 * config.objectworld.max_iter),
    }
    return [
        Cell(NAME, setting, "NPL", n, seed, "occupancy", cost)
        for seed in range(config.seeds)
        for setting, (n, cost) in places.items()
    ]


def _objectworld(config: Config) -> str:
    return objectworld.setting(config.objectworld.picture, config.objectworld.colors)


@lru_cache(maxsize=2)
def problem(config: Config, setting: str, seed: int) -> tuple[World, Demonstrations, Reward, dict[str, Any]]:
    """World, largest sample, reward model and the search's options."""
    if setting == obstacleworld.setting(config.obstacleworld):
        world, demos, _ = obstacleworld.problem(config.obstacleworld, seed)
        return world, demos, world.reward_model(), {"tol": config.obstacleworld.tol}
    if setting == mountaincar.setting(config.mountaincar):
        car, _ = mountaincar.known_car(config.mountaincar)
        return car, mountaincar.sample_of(config.mountaincar, seed), car.reward_model(), {"tol": config.mountaincar.tol}
    own = config.objectworld
    objects, walks, _ = objectworld.problem(own, own.picture, seed)
    options = {"optimizer": "adam", "learning_rate": own.learning_rate, "tol": own.tol, "max_iter": own.max_iter}
    return objects, walks, objectworld.network(own, own.picture, seed), options | {"patience": NETWORK_PATIENCE}


def measure(config: Config, cell: Cell) -> Measured:
    world, demos, reward, options = problem(config, cell.setting, cell.seed)
    trail = Trail()
    estimator = make_estimator("NPL", reward, config.updates, weighting="occupancy", callback=trail, **options)
    fit = estimator.fit(world.mdp, demos)
    first = estimate_policy(world.mdp, demos.counts, "frequency", reward)
    return Measured(fit_row(fit), moves(demos, first, reward.init(), trail.last) | _scores(world, fit, trail.last))


class Trail:
    """The last point of every update: a callback."""

    def __init__(self) -> None:
        self.last: dict[int, Iterate] = {}

    def __call__(self, point: Iterate) -> None:
        self.last[point.update] = point


def moves(demos: Demonstrations, first: Floats, start: Floats, last: Mapping[int, Iterate]) -> dict[str, Floats]:
    """By how much each update moved π̃ (total variation, averaged over the visited states; at most) and θ."""
    policies, thetas = [first, *(p.policy for p in last.values())], [start, *(p.theta for p in last.values())]
    visited = demos.counts.sum(axis=1) > 0
    change = [np.abs(b - a) for a, b in pairwise(policies)]
    return {
        "average": np.array([float(c[visited].sum(axis=1).mean()) / 2 for c in change]),
        "largest": np.array([c.max() for c in change]),
        "theta": np.array([_length(b - a) / max(_length(b), 1e-12) for a, b in pairwise(thetas)]),
    }


def _length(vector: Floats) -> float:
    return float(np.linalg.norm(vector))


def _scores(world: World, fit: Any, last: Mapping[int, Iterate]) -> dict[str, Floats]:
    """The metrics after each update."""
    shape = fit.policy.shape
    rows = [world.evaluate(_Seen(point, shape), fit.demonstrations) for point in last.values()]
    scores = {metric: np.array([row[metric] for row in rows]) for metric in METRICS}
    return scores | {"share": scores["evd"] / world.truth.stochastic_evd(world.mdp.uniform_policy())}


class _Seen:
    """An iterate with the names that metrics know."""

    def __init__(self, point: Iterate, shape: tuple[int, ...]) -> None:
        self.reward, self.policy, self.log_policy = np.broadcast_to(point.reward, shape), point.policy, point.log_policy


run = run_with(NAME, Config)


def series(results: Results, setting: str, name: str) -> Floats:
    """(seeds, updates) of a move or metric; what comes after NPL had settled is its last value, or no move."""
    K = results.config.updates
    lines = []
    for _, arrays in results.arrays(setting=setting):
        values = arrays[name]
        rest = 0.0 if name in (*MOVES, "theta") else values[-1]
        lines.append(np.concatenate([values, np.full(K - values.size, rest)]))
    return np.array(lines).reshape(-1, K)


def draw(results: Results) -> dict[str, Picture]:
    settings = list(dict.fromkeys(cell.setting for cell in cells(results.config)))
    caption = (
        "By how much each update of NPL moved π̃, θ and two of the metrics: every seed (thin) and the median (thick). "
        "Changes below 1e-9 are plotted at 1e-9; the dashed line is the bound of the verdict."
    )
    alt = "Five panels against the update number: " + "; ".join(
        f"{setting}, mean change in update 4 {short(float(np.median(series(results, setting, 'average')[:, 3:4])))}"
        for setting in settings
        if len(results.where(setting=setting)) and results.config.updates > 3
    )
    return {"moves": Picture(_draw(results, settings), caption, alt + ".")}


def _draw(results: Results, settings: list[str]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 5.6), layout="constrained")
    axes = figure.subplots(2, 3)
    titles = {**MOVES, "theta": "change of θ, relative", "share": "EVD, share of the uniform policy's", "epic": "EPIC"}
    for ax, (name, title) in zip(axes.flat, titles.items()):
        for setting, color in zip(settings, COLORS):
            moves = name in (*MOVES, "theta")
            lines = series(results, setting, name)
            _draw_series(ax, np.maximum(lines, NO_MOVE) if moves else lines, color, setting)
            if moves:
                ax.set_yscale("log")
        label_axes(ax, title, 10.5, ("update of π̃", ""))
        if name == "average":
            ax.axhline(MOVED, color="0.4", linewidth=1.0, linestyle="--")
        ax.grid(alpha=0.25, linewidth=0.6)
    handles, labels = axes[0][0].get_legend_handles_labels()
    axes[1][2].set_axis_off()
    axes[1][2].legend(handles, labels, loc="center", fontsize=11, frameon=False)
    return figure


def _draw_series(ax: Axes, lines: Floats, color: str, label: str) -> None:
    if len(lines) == 0:
        return
    x = np.arange(1, lines.shape[1] + 1)
    ax.plot(x, lines.T, color=color, linewidth=0.6, alpha=0.45)
    ax.plot(x, np.median(lines, axis=0), color=color, linewidth=2.0, label=label)


def tables(results: Results) -> dict[str, Table]:
    import pandas as pd

    rows = []
    for setting in dict.fromkeys(cell.setting for cell in cells(results.config)):
        found = results.where(setting=setting)
        if len(found):
            rows += _lines(results, setting, int((found["settled"] == True).sum()), len(found))  # noqa: E712
    caption = "Median over seeds of what each update changed, and how many seeds had settled within all updates."
    return {"moves": Table(pd.DataFrame(rows), caption)}


def _lines(results: Results, setting: str, settled: int, seeds: int) -> list[dict[str, Any]]:
    names = {**MOVES, "theta": "change of θ", **METRICS}
    medians = {name: np.median(series(results, setting, name), axis=0) for name in names}
    return [
        {
            "world": setting,
            "K": k + 1,
            **{words: short(medians[name][k]) for name, words in names.items()},
            "settled in the end": f"{settled} of {seeds} seeds",
        }
        for k in range(results.config.updates)
    ]
