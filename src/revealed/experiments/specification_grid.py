"""The choices that the paper leaves open, and the specifications that are run: one value for every choice.

The two readings come first, then every specification that differs from the first reading in one choice, then
random ones from the whole grid, each value about as often as the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from revealed.experiments import mountaincar, objectworld, obstacleworld, partial_expert
from revealed.experiments.cells import METHODS
from revealed.experiments.protocol import ALGORITHM_1, READINGS, SAMPLE, SECTION_5

ALL_SAMPLE, ZIEBART, POPULATION = "all sample", "Ziebart", "exact counts"
WEIGHTS: dict[str, dict[str, str]] = {
    **{name: reading.weights for name, reading in READINGS.items()},
    ALL_SAMPLE: dict.fromkeys(METHODS, SAMPLE),
    ZIEBART: READINGS[SECTION_5].weights | {"MCE-IRL": ZIEBART},
    POPULATION: READINGS[SECTION_5].weights | {"MCE-IRL": POPULATION},
}
_OBSTACLES: dict[str, tuple[Any, ...]] = {
    "discount": (0.95, 0.9, 0.99),
    "scale": (3.0, 1.0, 10.0),
    "density": (0.3, 0.1, 0.5),
    "length": (30, 15, 60),
    "goal": ("absorbing", "ordinary"),
    "start": ("uniform", "corner"),
    "width": (1, 3),
}
# Choices by world, the first value of each being that of the protocol
CHOICES: dict[str, dict[str, tuple[Any, ...]]] = {
    "obstacleworld": {
        "weights": (SECTION_5, ALGORITHM_1, ALL_SAMPLE, ZIEBART),
        **_OBSTACLES,
        "unseen": ("frequency", "smoothed", "kernel"),
    },
    "partial-expert": {
        "weights": (SECTION_5, ALGORITHM_1, ALL_SAMPLE, POPULATION),
        **_OBSTACLES,
        "trajectories": (50, 10),
    },
    "mountaincar": {
        "weights": (SECTION_5, ALGORITHM_1, ALL_SAMPLE),
        "reality": ("kernel model", "real car"),
        "discount": (0.99, 0.95, 0.995),
        "scale": (10.0, 3.0, 30.0),
        "length": (200, 100),
        "unseen": ("frequency", "smoothed"),
    },
    "objectworld": {
        "weights": (SECTION_5, ALGORITHM_1, ALL_SAMPLE),
        "discount": (0.9, 0.8, 0.95),
        "object_probability": (0.05, 0.02, 0.1),
        "length": (15, 8, 30),
        "colors": (4, 2),
        "learning_rate": (0.003, 0.01),
        "unseen": ("frequency", "smoothed"),
    },
}
WORDS = {
    "weights": "weights",
    "discount": "discount",
    "scale": "reward's scale",
    "density": "obstacles",
    "length": "walk's length",
    "goal": "goal",
    "start": "start",
    "width": "corridor's width",
    "unseen": "first step",
    "trajectories": "walks",
    "reality": "world",
    "object_probability": "objects",
    "colors": "colours",
    "learning_rate": "learning rate",
}
VALUES = {
    SECTION_5: READINGS[SECTION_5].title,
    ALL_SAMPLE: "all from the walks",
    ZIEBART: "Ziebart's counts",
    "frequency": "uniform where unseen",
    "smoothed": "smoothed",
    "kernel": "from like states",
}
Specification = Mapping[str, Any]


@dataclass(frozen=True)
class Config:
    """Each world with the number of its specifications and of their seeds; the worlds as in their own experiments but
    for what is varied, and smaller where fits take long."""

    plan: tuple[tuple[str, int, int], ...] = (
        ("obstacleworld", 120, 30),
        ("partial-expert", 120, 10),
        ("mountaincar", 48, 4),
        ("objectworld", 48, 5),
    )
    obstacleworld: obstacleworld.Config = field(
        default_factory=lambda: obstacleworld.Config(trajectories=(1, 3, 5, 50))
    )
    partial: partial_expert.Config = field(default_factory=partial_expert.Config)
    mountaincar: mountaincar.Config = field(
        default_factory=lambda: mountaincar.Config(bins=30, trajectories=(100, 400, 1000))
    )
    objectworld: objectworld.Config = field(
        default_factory=lambda: objectworld.Config(size=16, trajectories=(1, 5, 200), max_iter=200)
    )

    @property
    def seeds(self) -> int:
        """At most, over the worlds."""
        return max(seeds for _, _, seeds in self.plan)


QUICK = Config(
    plan=(("obstacleworld", 16, 20), ("partial-expert", 20, 6), ("mountaincar", 9, 3), ("objectworld", 6, 3)),
    mountaincar=mountaincar.Config(bins=20, trajectories=(100, 400, 1000)),
    objectworld=objectworld.Config(size=10, trajectories=(1, 5, 200), max_iter=80),
)


def specifications(world: str, n: int) -> list[dict[str, Any]]:
    """The first `n` specifications of a world: both readings, those that differ in one choice, then random ones."""
    choices = CHOICES[world]
    first = {name: values[0] for name, values in choices.items()}
    found = [first, first | {"weights": ALGORITHM_1}]
    found += [first | {name: value} for name, values in choices.items() for value in values[1:]]
    rng = np.random.default_rng(0)
    while len(_distinct(found)) < min(n, prod(len(values) for values in choices.values())):
        found += _balanced(choices, rng)
    return _distinct(found)[:n]


def _balanced(choices: Mapping[str, Sequence[Any]], rng: np.random.Generator) -> list[dict[str, Any]]:
    """A dozen random specifications, in which every value of a choice comes about as often as the others."""
    columns = {name: rng.permutation(np.arange(12) % len(values)) for name, values in choices.items()}
    return [{name: choices[name][columns[name][k]] for name in choices} for k in range(12)]


def _distinct(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({tuple(one.items()): one for one in found}.values())


def name_of(specification: Specification) -> str:
    """All choices in one line, which is the name of its cells."""
    return ", ".join(f"{name} {value}" for name, value in specification.items())
