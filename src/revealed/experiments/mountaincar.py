"""Figures 2 and 7: Mountain Car, where every state has a weight of its own.

The paper's hypothesis: one-hot features have to be seen to be known, so that all methods do poorly with little data
and alike with much. Transitions are estimated with kernels, once per seed, from the largest set of drives; metrics are
taken on the exact model. The exact model itself is run beside, to tell the methods' errors from those of the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from revealed.environments.mountain_car import Drives, MountainCar, mountain_car
from revealed.experiments.cells import (
    METHODS,
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
from revealed.experiments.curves import curve_pictures, expert_floor, measure_fit, recovered_picture, variant_tables
from revealed.metrics import Truth

NAME = "mountaincar"
TITLE = "Mountain Car: a weight for every state"
PAPER = "Figures 2 and 7"
ALONE = False
ABOUT = (
    "Gymnasium's car on a grid of positions and velocities; the true reward is minus the distance to the far end of "
    "the goal, times a scale; the expert is optimal in the soft sense on the exact model and drives the continuous "
    "car. The seed draws the drives; smaller samples are the first drives of the largest. Transitions are estimated "
    "with kernels from the largest sample; where no drive came near, they are the nearest drive's."
)
VARIANTS = {
    "occupancy": "transitions by kernels, occupancy weights, metrics on the exact model",
    "sample": "transitions by kernels, sample weights (maximum likelihood), metrics on the exact model",
    "exact T": "with the exact transitions instead, occupancy weights",
}


@dataclass(frozen=True)
class Config:
    """The full protocol. The paper gives states, trajectories and K; the rest is ours. `beside` seeds are enough for
    the variants that stand beside the first."""

    bins: int = 100
    discount: float = 0.99
    scale: float = 10.0
    length: int = 200
    trajectories: tuple[int, ...] = (100, 200, 400, 500, 700, 1000)
    updates: int = 10
    tol: float = TOL / TIGHTER
    seeds: int = 10
    beside: int = 5


QUICK = Config(bins=50, trajectories=(100, 400, 1000), seeds=5, beside=3)


def cells(config: Config) -> list[Cell]:
    work = (config.bins / 100) ** 2.5
    cost = {"MCE-IRL": 5.0, "NPL": 2.0, "CCP": 1.0}
    return [
        Cell(NAME, setting(config), method, n, seed, variant, cost[method] * work * (2 if variant == "exact T" else 1))
        for seed in range(config.seeds)
        for variant in VARIANTS
        if variant == "occupancy" or seed < config.beside
        for n in config.trajectories
        for method in METHODS
    ]


def setting(config: Config) -> str:
    return f"Mountain Car {config.bins}²"


@lru_cache(maxsize=1)
def exact_car(config: Config) -> tuple[MountainCar, float]:
    car = mountain_car(config.bins, config.discount, config.scale, length=config.length)
    return car, expert_floor(car.truth)


@lru_cache(maxsize=2)
def problem(config: Config, seed: int, exact: bool) -> tuple[MountainCar, Drives]:
    """The car of a seed and its largest sample of drives."""
    car, _ = exact_car(config)
    drives = car.drive(max(config.trajectories), seed=seed)
    return (car if exact else car.with_kernel_transitions(drives)), drives


@lru_cache(maxsize=2)
def planned(config: Config, seed: int) -> Truth:
    """The true reward on the kernel model that the methods plan with, as the paper may have taken its metrics."""
    car, _ = problem(config, seed, False)
    return Truth(car.mdp, car.true_reward)


def measure(config: Config, cell: Cell) -> Measured:
    exact = cell.variant == "exact T"
    world, drives = problem(config, cell.seed, exact)
    weighting = "sample" if cell.variant == "sample" else "occupancy"
    estimator = make_estimator(cell.method, world.reward_model(), config.updates, weighting=weighting, tol=config.tol)
    fit = estimator.fit(world.mdp, world.discretise(drives[: cell.size]))
    keep = cell.size == max(config.trajectories) and cell.variant in ("occupancy", "exact T")
    measured = measure_fit(world, fit, keep, exact_car(config)[1])
    if not exact:
        model = planned(config, cell.seed)
        measured.row.update(evd_planned=model.evd(fit.reward), stochastic_evd_planned=model.stochastic_evd(fit.policy))
        measured.row.update(unsupported=world.unsupported)
    return measured


run = run_with(NAME, Config)


def draw(results: Results) -> dict[str, Picture]:
    config = results.config
    car, _ = exact_car(config)
    pictures = curve_pictures(results, car, setting(config), VARIANTS, "Mountain Car")
    largest = max(config.trajectories)
    for variant, words in (("occupancy", "kernel"), ("exact T", "exact")):
        sample = f"{largest} drives with {words} transitions"
        pictures[f"recovered-{words}"] = recovered_picture(results, car, sample, variant=variant, size=largest)
    return pictures


def tables(results: Results) -> dict[str, Table]:
    return variant_tables(results, "Mountain Car", VARIANTS)
