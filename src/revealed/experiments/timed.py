"""The problems that `timing` and `breakdown` take the time of, as they are when the clock starts.

World, sample and model are there, the network is compiled, and a search of one step has been made: what is built once
per world, whoever comes first, is not part of any method's time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from revealed.demonstrations import Demonstrations
from revealed.environments.world import World
from revealed.estimators import Estimator
from revealed.experiments import mountaincar, objectworld
from revealed.experiments.cells import NETWORK_PATIENCE, NETWORK_TOL, TOL, make_estimator
from revealed.mdp import MDP
from revealed.rewards.base import Reward


@dataclass(frozen=True)
class Worlds:
    """What both worlds are like, as in the experiments `mountaincar` and `objectworld`; rates are Adam's steps."""

    bins: int = 100
    drives: int = max(mountaincar.Config.trajectories)
    drive_length: int = mountaincar.Config.length
    car_discount: float = mountaincar.Config.discount
    car_scale: float = mountaincar.Config.scale
    car_updates: int = mountaincar.Config.updates
    car_rate: float = 0.1
    car_tol: float = TOL
    walks: int = max(objectworld.Config.trajectories)
    walk_length: int = objectworld.Config.length
    object_probability: float = objectworld.Config.object_probability
    object_discount: float = objectworld.Config.discount
    object_updates: int = objectworld.Config.updates
    hidden: tuple[int, ...] = objectworld.Config.hidden
    network_rate: float = objectworld.Config.learning_rate
    network_tol: float = NETWORK_TOL
    network_patience: int = NETWORK_PATIENCE


@dataclass(frozen=True, eq=False)
class Task:
    """A model, a sample, a reward to find, and how the search goes on: NPL's `updates`, and `options`."""

    world: World
    demos: Demonstrations
    reward: Reward
    updates: int
    options: dict[str, Any]

    @property
    def mdp(self) -> MDP:
        return self.world.mdp

    def estimator(self, method: str, **options: Any) -> Estimator:
        return make_estimator(method, self.reward, self.updates, **self.options | options)


def car_setting(worlds: Worlds) -> str:
    return mountaincar.setting(_car(worlds))


def objects_setting(size: int, colors: int) -> str:
    return objectworld.setting(size, colors)


@lru_cache(maxsize=1)
def car_task(worlds: Worlds, seed: int) -> Task:
    """Mountain Car, whose kernel model is the world: a weight for every state."""
    world, _ = mountaincar.known_car(_car(worlds))
    options = {"tol": worlds.car_tol, "patience": 1, "learning_rate": worlds.car_rate}
    return _ready(world, mountaincar.sample_of(_car(worlds), seed), world.reward_model(), worlds.car_updates, options)


@lru_cache(maxsize=1)
def objects_task(worlds: Worlds, size: int, colors: int, seed: int) -> Task:
    """Objectworld with a network for a reward."""
    config = _objects(worlds, size, colors)
    world, demos, _ = objectworld.problem(config, size, seed)
    reward = objectworld.network(config, size, seed)
    options = {"tol": worlds.network_tol, "patience": worlds.network_patience, "learning_rate": worlds.network_rate}
    return _ready(world, demos, reward, worlds.object_updates, options)


def _ready(world: World, demos: Demonstrations, reward: Reward, updates: int, options: dict[str, Any]) -> Task:
    """The task after a search of one step, which compiles the network and analyses the pattern of T."""
    task = Task(world, demos, reward, updates, options | {"weighting": "occupancy"})
    task.estimator("CCP", optimizer="adam", max_iter=1).fit(world.mdp, demos)
    return task


def _car(worlds: Worlds) -> mountaincar.Config:
    return mountaincar.Config(
        bins=worlds.bins,
        discount=worlds.car_discount,
        scale=worlds.car_scale,
        length=worlds.drive_length,
        trajectories=(worlds.drives,),
    )


def _objects(worlds: Worlds, size: int, colors: int) -> objectworld.Config:
    return objectworld.Config(
        size=size,
        colors=colors,
        object_probability=worlds.object_probability,
        discount=worlds.object_discount,
        length=worlds.walk_length,
        trajectories=(worlds.walks,),
        hidden=worlds.hidden,
    )
