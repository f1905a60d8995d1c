"""Figures 2 and 7: Mountain Car, where every state has a weight of its own.

The paper's hypothesis: one-hot features have to be seen to be known, so that all methods do poorly with little data
and alike with much. Its scope is "discrete settings with known transition dynamics": the kernel model, estimated once
from drives of the continuous car, is the world here. The real car stands beside it: drives of the continuous dynamics,
methods that plan with the kernel estimate, or with the exact model, and metrics on the exact model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from revealed.demonstrations import Demonstrations
from revealed.environments.mountain_car import Drives, MountainCar, mountain_car
from revealed.estimators import Estimator
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
    curve_picture,
    means_table,
    measure_fit,
    reading_pictures,
    reading_tables,
    recovered_picture,
)
from revealed.experiments.protocol import READINGS, SECTION_5
from revealed.experiments.readings import rows_of, yardsticks
from revealed.metrics import Truth

NAME = "mountaincar"
TITLE = "Mountain Car: a weight for every state"
PAPER = "Figures 2 and 7"
ALONE = False
ABOUT = (
    "Gymnasium's car on a grid of positions and velocities; the true reward is minus the distance to the far end of "
    "the goal, times a scale. An expert drives the continuous car; transitions are estimated from these drives with "
    "kernels (where no drive came near, they are the nearest drive's), and this model is the known world: its soft "
    "optimum is the expert, walks are drawn on it, metrics are taken on it. The seed draws the walks; smaller samples "
    "are the first walks of the largest. At the paper's scale the real car is run beside it."
)
REAL = {
    "real car, kernel estimate, ": "the real car: drives of the continuous dynamics, planning with "
    "transitions estimated from them, metrics on the exact model",
    "real car, exact transitions, ": "the real car with the exact transitions: drives of the continuous dynamics, "
    "planning and metrics on the exact model",
}
KERNEL, EXACT = REAL


@dataclass(frozen=True)
class Config:
    """The full protocol. The paper gives states, trajectories and K; the rest is ours. The real car is run for
    `beside` seeds at the first, the last and one size between."""

    bins: int = 100
    discount: float = 0.99
    scale: float = 10.0
    length: int = 200
    trajectories: tuple[int, ...] = (100, 200, 400, 500, 700, 1000)
    updates: int = 10
    tol: float = TOL / TIGHTER
    seeds: int = 8
    beside: int = 3


QUICK = Config(trajectories=(100, 400, 1000), seeds=3, beside=0)


def cells(config: Config) -> list[Cell]:
    places = [(n, seed, method, used) for seed in range(config.seeds) for n in config.trajectories
              for method, used in FITS]  # fmt: skip
    places += [
        (n, seed, method, prefix + used)
        for seed in range(min(config.beside, config.seeds))
        for prefix in REAL
        for n in real_sizes(config)
        for method, used in READINGS[SECTION_5].weights.items()
    ]
    return [Cell(NAME, setting(config), method, n, seed, variant, _cost(config, method, variant))
            for n, seed, method, variant in places]  # fmt: skip


def _cost(config: Config, method: str, variant: str) -> float:
    step = {"MCE-IRL": 5.0, "NPL": 2.0, "CCP": 1.0}[method] * (2 if variant.startswith(EXACT) else 1)
    return step * (config.bins / 100) ** 2.5


def real_sizes(config: Config) -> tuple[int, ...]:
    """Where the real car is run: with the least and the most data, and at 400 trajectories or so."""
    sizes = sorted(config.trajectories)
    return tuple(dict.fromkeys((sizes[0], min(sizes, key=lambda n: abs(n - 400)), sizes[-1])))


def setting(config: Config) -> str:
    return f"Mountain Car {config.bins}²"


@lru_cache(maxsize=1)
def exact_car(config: Config) -> tuple[MountainCar, dict[str, float]]:
    car = mountain_car(config.bins, config.discount, config.scale, length=config.length)
    return car, yardsticks(car.truth)


@lru_cache(maxsize=1)
def known_car(config: Config) -> tuple[MountainCar, dict[str, float]]:
    """The kernel model, estimated once, as the world itself."""
    car, _ = exact_car(config)
    known = car.with_kernel_transitions(car.drive(max(config.trajectories), seed=0), known=True)
    return known, yardsticks(known.truth)


@lru_cache(maxsize=2)
def sample_of(config: Config, seed: int) -> Demonstrations:
    """The largest sample of a seed: walks on the kernel model."""
    return known_car(config)[0].demonstrate(max(config.trajectories), config.length, seed)


@lru_cache(maxsize=2)
def problem(config: Config, seed: int, exact: bool) -> tuple[MountainCar, Drives]:
    """The real car of a seed and its largest sample of drives."""
    car, _ = exact_car(config)
    drives = car.drive(max(config.trajectories), seed=seed)
    return (car if exact else car.with_kernel_transitions(drives)), drives


@lru_cache(maxsize=2)
def planned(config: Config, seed: int) -> Truth:
    """The true reward on the real car's kernel estimate, which the methods plan with."""
    car, _ = problem(config, seed, False)
    return Truth(car.mdp, car.true_reward)


def measure(config: Config, cell: Cell) -> Measured:
    if cell.variant.startswith(tuple(REAL)):
        return _measure_real(config, cell)
    car, yard = known_car(config)
    fit = _estimator(config, cell, car).fit(car.mdp, sample_of(config, cell.seed).subset(range(cell.size)))
    return measure_fit(car, fit, _kept(config, cell), yard)


def _estimator(config: Config, cell: Cell, car: MountainCar) -> Estimator:
    weighting = cell.variant.rpartition(" ")[2]
    return make_estimator(cell.method, car.reward_model(), config.updates, weighting=weighting, tol=config.tol)


def _kept(config: Config, cell: Cell) -> bool:
    return cell.size == max(config.trajectories)


def _measure_real(config: Config, cell: Cell) -> Measured:
    exact = cell.variant.startswith(EXACT)
    car, drives = problem(config, cell.seed, exact)
    fit = _estimator(config, cell, car).fit(car.mdp, car.discretise(drives[: cell.size]))
    measured = measure_fit(car, fit, _kept(config, cell), exact_car(config)[1])
    if not exact:
        model = planned(config, cell.seed)
        measured.row.update(evd_planned=model.evd(fit.reward), stochastic_evd_planned=model.stochastic_evd(fit.policy))
        measured.row.update(unsupported=car.unsupported)
    return measured


run = run_with(NAME, Config)


def draw(results: Results) -> dict[str, Picture]:
    config = results.config
    car, _ = known_car(config)
    whose = "" if config.bins == Config.bins else f" (the paper's has {Config.bins}² states)"
    pictures = reading_pictures(results, car, f"{setting(config)}{whose}", "Figure 2")
    for prefix, words in REAL.items():
        rows = rows_of(results, SECTION_5, prefix)
        drawn = curve_picture(
            rows, exact_car(config)[0], f"{setting(config)}, {words}; weights as “Method Dependencies” reads"
        )
        pictures |= {_key(prefix): drawn} if drawn else {}
    sample = f"{max(config.trajectories)} walks"
    return pictures | {"recovered": recovered_picture(results, car, sample, "Figure 7")}


def _key(prefix: str) -> str:
    return prefix.removesuffix(", ").replace(", ", "-").replace(" ", "-")


def tables(results: Results) -> dict[str, Table]:
    name = setting(results.config)
    made = {
        _key(prefix): means_table(
            rows_of(results, SECTION_5, prefix), f"{name}, {words}: mean over seeds ± half the 95 % interval."
        )
        for prefix, words in REAL.items()
    }
    return reading_tables(results, name) | made
