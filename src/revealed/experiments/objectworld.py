"""Figures 3 and 4: Objectworld, where a network has to find the reward from distances to coloured objects.

The paper's finding: no difference between the two families, with little data or with much.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from revealed.demonstrations import Demonstrations
from revealed.environments.objectworld import Objectworld, objectworld
from revealed.experiments.cells import (
    NETWORK_PATIENCE,
    NETWORK_TOL,
    TIGHTER,
    Cell,
    Measured,
    Picture,
    Results,
    Table,
    make_estimator,
    run_with,
)
from revealed.experiments.curves import (
    FITS,
    measure_fit,
    reading_pictures,
    reading_tables,
    recovered_picture,
)
from revealed.experiments.readings import yardsticks
from revealed.rewards.neural import NeuralReward

NAME = "objectworld"
TITLE = "Objectworld: a network for a reward"
PAPER = "Figures 3 and 4"
ALONE = False
ABOUT = (
    "Coloured objects on a grid; the reward depends on the distances to two of the outer colours, and a network with "
    "layers of 32 and 16 units (ReLU) has to find it from the distances to all colours, scaled to mean 0 and standard "
    "deviation 1, by Adam. With probability 0.3 a move goes to a random neighbour; the expert takes a best action, but "
    "with probability 0.3 a random one. The seed draws the objects, the walks and the network's start. A search ends "
    "when the gradient's norm is below the threshold several times in a row, or at the iteration limit; the paper "
    "gives no threshold."
)


@dataclass(frozen=True)
class Config:
    """The full protocol. The paper gives grids, colours, network, noise, trajectories and K; the rest is ours.

    `max_iter` bounds each maximisation. The searches of `size` are drawn as curves, those of `picture` as maps.
    """

    size: int = 32
    picture: int = 16
    colors: int = 4
    object_probability: float = 0.05
    discount: float = 0.9
    length: int = 15
    trajectories: tuple[int, ...] = (1, 3, 5, 10, 20, 30, 50, 100, 150, 200)
    updates: int = 5
    hidden: tuple[int, ...] = (32, 16)
    learning_rate: float = 0.003
    tol: float = NETWORK_TOL / TIGHTER
    max_iter: int = 500
    seeds: int = 8


QUICK = Config(size=16, trajectories=(1, 10, 200), max_iter=200, seeds=5)


def cells(config: Config) -> list[Cell]:
    largest = max(config.trajectories)
    step = {"MCE-IRL": 1.0, "NPL": 0.4 * config.updates, "CCP": 0.4}
    places = [(config.size, n, seed) for seed in range(config.seeds) for n in config.trajectories]
    if config.picture != config.size:
        places += [(config.picture, largest, seed) for seed in range(config.seeds)]
    return [
        Cell(
            NAME,
            setting(size, config.colors),
            method,
            n,
            seed,
            weights,
            cost=step[method] * config.max_iter * size / 8e3,
        )
        for size, n, seed in places
        for method, weights in FITS
    ]


def setting(size: int, colors: int) -> str:
    return f"Objectworld {size}², C{colors}"


@lru_cache(maxsize=2)
def problem(config: Config, size: int, seed: int) -> tuple[Objectworld, Demonstrations, dict[str, float]]:
    """The world of a seed, its largest sample, and what its metrics are measured against."""
    world = objectworld(
        size, config.colors, config.object_probability, discount=config.discount, seed=seed, normalise="standard"
    )
    demos = world.demonstrate(max(config.trajectories), config.length, seed)
    return world, demos, yardsticks(world.truth)


@lru_cache(maxsize=2)
def network(config: Config, size: int, seed: int) -> NeuralReward:
    """The paper's network (ReLU), one per world: its functions are compiled once. The features are scaled already."""
    features = problem(config, size, seed)[0].features
    return NeuralReward(features, config.hidden, seed, activation="relu", standardize=False)


def measure(config: Config, cell: Cell) -> Measured:
    size = config.size if cell.setting == setting(config.size, config.colors) else config.picture
    world, demos, yard = problem(config, size, cell.seed)
    estimator = make_estimator(
        cell.method,
        network(config, size, cell.seed),
        config.updates,
        weighting=cell.variant,
        optimizer="adam",
        learning_rate=config.learning_rate,
        tol=config.tol,
        patience=NETWORK_PATIENCE,
        max_iter=config.max_iter,
    )
    fit = estimator.fit(world.mdp, demos.subset(range(cell.size)))
    return measure_fit(world, fit, cell.size == max(config.trajectories), yard)


run = run_with(NAME, Config)


def draw(results: Results) -> dict[str, Picture]:
    config = results.config
    shown, _, _ = problem(config, config.picture, 0)
    grid, largest = f"{config.size} × {config.size}", max(config.trajectories)
    whose = "" if config.size == Config.size else f" (the paper's curves are from {Config.size} × {Config.size} cells)"
    name = f"Objectworld, {config.colors} colours: metrics from {grid} cells{whose}, map of {config.picture}²"
    sample = f"{largest} walks on {config.picture} × {config.picture} cells"
    pictures = reading_pictures(curve_rows(results), shown, name, "Figure 3")
    return pictures | {"recovered": recovered_picture(picture_rows(results), shown, sample, "Figure 4")}


def curve_rows(results: Results) -> Results:
    """Of the grid whose metrics are drawn against trajectories."""
    return results.only(setting=setting(results.config.size, results.config.colors))


def picture_rows(results: Results) -> Results:
    """Of the grid whose rewards are drawn as maps."""
    return results.only(setting=setting(results.config.picture, results.config.colors))


def tables(results: Results) -> dict[str, Table]:
    return reading_tables(curve_rows(results), setting(results.config.size, results.config.colors))
