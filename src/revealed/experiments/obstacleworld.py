"""Figures 1 and 6: Obstacleworld, where three features tell what every cell is worth.

The paper's hypothesis: feature counts are well estimated from little data, so MCE-IRL does well from the first
trajectory on, while CCP and NPL need enough data to estimate the expert's policy; with more data all agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from revealed.demonstrations import Demonstrations
from revealed.environments.obstacleworld import Obstacleworld, obstacleworld
from revealed.experiments.cells import (
    TIGHTER,
    TOL,
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

NAME = "obstacleworld"
TITLE = "Obstacleworld: three features shared by all cells"
PAPER = "Figures 1 and 6"
ALONE = False
ABOUT = (
    "Walks on a 16 × 16 grid with deterministic moves; the true reward is linear in three features (path 0.2, obstacle "
    "0, goal 1, times a scale), and the expert is optimal in the soft sense. The seed draws the map and the walks; "
    "smaller samples are the first walks of the largest. Who has reached the goal stays there; walks start anywhere; "
    "the diagonal is free of obstacles."
)


@dataclass(frozen=True)
class Config:
    """The full protocol. The paper gives grid, lengths, trajectories and K; the rest is ours."""

    size: int = 16
    density: float = 0.3
    discount: float = 0.95
    scale: float = 3.0
    length: int = 30
    goal: str = "absorbing"
    start: str = "uniform"
    width: int = 1
    trajectories: tuple[int, ...] = (1, 3, 5, 10, 20, 30, 50)
    updates: int = 10
    tol: float = TOL / TIGHTER
    seeds: int = 60


QUICK = Config(trajectories=(1, 3, 5, 10, 50), seeds=30)


def cells(config: Config) -> list[Cell]:
    return [
        Cell(NAME, setting(config), method, n, seed, weights, cost=0.15)
        for seed in range(config.seeds)
        for n in config.trajectories
        for method, weights in FITS
    ]


def setting(config: Config) -> str:
    return f"Obstacleworld {config.size}²"


def world_of(config: Config, seed: int) -> Obstacleworld:
    """The world of a seed."""
    options = {"goal": config.goal, "start": config.start, "width": config.width}
    return obstacleworld(config.size, config.density, config.discount, config.scale, seed, **options)


@lru_cache(maxsize=2)
def problem(config: Config, seed: int) -> tuple[Obstacleworld, Demonstrations, dict[str, float]]:
    """The world of a seed, its largest sample, and what its metrics are measured against."""
    world = world_of(config, seed)
    demos = world.demonstrate(max(config.trajectories), config.length, seed)
    return world, demos, yardsticks(world.truth)


def measure(config: Config, cell: Cell) -> Measured:
    world, demos, yard = problem(config, cell.seed)
    estimator = make_estimator(
        cell.method, world.reward_model(), config.updates, weighting=cell.variant, tol=config.tol
    )
    fit = estimator.fit(world.mdp, demos.subset(range(cell.size)))
    return measure_fit(world, fit, cell.size == max(config.trajectories), yard)


run = run_with(NAME, Config)


def draw(results: Results) -> dict[str, Picture]:
    config = results.config
    world, _, _ = problem(config, 0)
    pictures = reading_pictures(results, world, setting(config), "Figure 1")
    largest = max(config.trajectories)
    return pictures | {"recovered": recovered_picture(results, world, f"{largest} walks", "Figure 6")}


def tables(results: Results) -> dict[str, Table]:
    return reading_tables(results, setting(results.config))
