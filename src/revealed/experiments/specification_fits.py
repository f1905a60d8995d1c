"""The fits of one specification with one seed: all that the claims of its figures need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from revealed.demonstrations import Demonstrations
from revealed.environments.world import World
from revealed.estimators import MCEIRL
from revealed.experiments import mountaincar, objectworld, obstacleworld, partial_expert
from revealed.experiments.cells import L2, NETWORK_PATIENCE, Cell, make_estimator, per_state
from revealed.experiments.curves import similarity
from revealed.experiments.protocol import OCCUPANCY, SAMPLE
from revealed.experiments.readings import yardsticks
from revealed.experiments.specification_grid import POPULATION, WEIGHTS, ZIEBART, Config, Specification
from revealed.experiments.updates import Trail, moves
from revealed.first_step import estimate_policy
from revealed.mdp import Floats
from revealed.rewards.base import Reward


@dataclass(frozen=True, eq=False)
class Problem:
    """A world under a specification, its largest sample and how methods are run there."""

    world: World
    demos: Demonstrations
    sizes: tuple[int, ...]
    updates: int
    reward: Reward
    options: dict[str, Any]
    cut: Callable[[int], Demonstrations]  # the first so many trajectories


def _measure_curves(problem: Problem, chosen: Specification) -> dict[str, Any]:
    """Every method at every size, judged; rewards' similarity and NPL's moves at the largest."""
    yard = yardsticks(problem.world.truth)
    fits, rewards, moved = [], [], np.nan
    for n in problem.sizes:
        demos = problem.cut(n)
        for method, used in WEIGHTS[chosen["weights"]].items():
            trail = Trail()
            reward, scores = _fit(problem, chosen, method, used, demos, trail)
            fits.append({"method": method, "size": n} | scores)
            if n == problem.sizes[-1]:
                rewards.append(per_state(reward)[~problem.world.mdp.terminal])
                moved = _moved(problem, chosen, demos, trail) if method == "NPL" else moved
    return {"fits": fits, "similarity": similarity(rewards), "moved": moved, **yard}


def _fit(
    problem: Problem, chosen: Specification, method: str, used: str, demos: Demonstrations, trail: Trail
) -> tuple[Floats, dict[str, Any]]:
    """The reward that a method finds and its metrics."""
    if used == ZIEBART:
        return _ziebart(problem, chosen, demos)
    callback = {"callback": trail} if method == "NPL" else {}
    options = {"weighting": used, "first_step": chosen.get("unseen", "frequency")} | problem.options | callback
    fit = make_estimator(method, problem.reward, problem.updates, **options).fit(problem.world.mdp, demos)
    return fit.reward, _scores(problem.world.evaluate(fit), fit.status.code)


def _scores(scores: Mapping[str, float], status: str) -> dict[str, Any]:
    kept = ("excess_nll", "evd", "stochastic_evd", "epic")
    return {**{name: float(scores[name]) for name in kept}, "status": status}


def _ziebart(problem: Problem, chosen: Specification, demos: Demonstrations) -> tuple[Floats, dict[str, Any]]:
    """Ziebart's own: the walks' discounted feature counts against those of the model over the same number of steps.

    On the unrolled model, visits that count γ^t are weights whose gradient is that difference (theory G5).
    """
    mdp = problem.world.mdp
    estimator = MCEIRL(problem.reward, weighting=SAMPLE, l2=L2, progress=False, **problem.options)
    fit = estimator.fit(mdp.unroll(int(chosen["length"])), demos.discount_visits(mdp.discount))
    reward = np.broadcast_to(problem.reward.value(fit.theta), (mdp.n_states, mdp.n_actions))
    return reward, _scores(problem.world.truth.evaluate(reward=reward), fit.status.code)


def _moved(problem: Problem, chosen: Specification, demos: Demonstrations, trail: Trail) -> float:
    """The largest mean change of π̃ after update 3."""
    first = estimate_policy(problem.world.mdp, demos.counts, chosen.get("unseen", "frequency"), problem.reward)
    return float(moves(demos, first, problem.reward.init(), trail.last)["average"][3:].max(initial=0.0))


def _problem(world: World, demos: Demonstrations, config: Any, reward: Reward, options: dict[str, Any]) -> Problem:
    return Problem(world, demos, config.trajectories, config.updates, reward, options, lambda n: demos.subset(range(n)))


def _measure_obstacles(config: Config, chosen: Specification, seed: int) -> dict[str, Any]:
    own = _with(config.obstacleworld, chosen)
    world, demos, _ = obstacleworld.problem(own, seed)
    return _measure_curves(_problem(world, demos, own, world.reward_model(), {"tol": own.tol}), chosen)


def _with(config: Any, chosen: Specification) -> Any:
    """A configuration with the choices that it knows."""
    names = {one.name for one in fields(config)}
    return replace(config, **{name: value for name, value in chosen.items() if name in names})


def _measure_car(config: Config, chosen: Specification, seed: int) -> dict[str, Any]:
    return _measure_curves(_car(_with(config.mountaincar, chosen), chosen["reality"], seed), chosen)


def _car(config: mountaincar.Config, reality: str, seed: int) -> Problem:
    options = {"tol": config.tol}
    if reality == "kernel model":
        world, _ = mountaincar.known_car(config)
        return _problem(world, mountaincar.sample_of(config, seed), config, world.reward_model(), options)
    car, drives = mountaincar.problem(config, seed, False)
    return Problem(car, car.discretise(drives), config.trajectories, config.updates, car.reward_model(), options,
                   lambda n: car.discretise(drives[:n]))  # fmt: skip


def _measure_objects(config: Config, chosen: Specification, seed: int) -> dict[str, Any]:
    own = _with(config.objectworld, chosen)
    world, demos, _ = objectworld.problem(own, own.size, seed)
    options = {"optimizer": "adam", "learning_rate": own.learning_rate, "tol": own.tol, "max_iter": own.max_iter}
    options |= {"patience": NETWORK_PATIENCE}
    return _measure_curves(_problem(world, demos, own, objectworld.network(own, own.size, seed), options), chosen)


# A partial expert


def _measure_partial(config: Config, chosen: Specification, seed: int) -> dict[str, Any]:
    """Both methods in both cases, at the maximum."""
    own = _with(config.partial, chosen)
    world, yard = partial_expert.problem(own, seed)
    demos = world.demonstrate(own.trajectories, own.length, seed)
    fits = []
    for case in partial_expert.CASES:
        for method in partial_expert.METHODS:
            used = WEIGHTS[chosen["weights"]][method]
            cell = Cell(partial_expert.NAME, case, method, own.trajectories, seed, used)
            exact = {"weighting": OCCUPANCY, "first_step": world.expert} if used == POPULATION else {}
            fit = partial_expert.estimator_of(own, world, cell, **exact).fit(world.mdp, demos)
            fits.append({"method": method, "setting": case} | _scores(world.evaluate(fit), fit.status.code))
    return {"fits": fits, **yard}


MEASURES: dict[str, Callable[[Config, Specification, int], dict[str, Any]]] = {
    "obstacleworld": _measure_obstacles,
    "partial-expert": _measure_partial,
    "mountaincar": _measure_car,
    "objectworld": _measure_objects,
}
