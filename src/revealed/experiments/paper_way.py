"""The seconds of the paper's way of computing: dense searches, and where these are too long, steps × seconds of a step.

Dense and sparse searches take the same steps. So where a whole dense search would take hours, the numbers of steps and
of updates of π̃ are those of our own searches, and each computation of the paper's appendix B is timed once or a few
times by dense algebra:

- MCE-IRL: Occ. under π̂_E + (steps + 1) × (value iteration + Occ. under π_θ + gradient);
- NPL and CCP: Occ. under π̂_E + updates × Occ. under π̃ + (steps + updates) × (value + value derivatives + gradient).

Sweeps of value iteration differ from step to step; they are counted along MCE-IRL's whole search, with T sparse, which
takes the same ones. An inverse costs the same for every policy, so one is timed for π̂_E and for π_θ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.estimation import Run
from revealed.experiments.cells import Measured, Results
from revealed.experiments.dense_baseline import DenseModel, DenseOptimum, DenseRun, dense_soft_optimum
from revealed.experiments.steps import along, clock, trail_of
from revealed.experiments.timed import Task
from revealed.gates import EACH, in_bytes, memory_left
from revealed.mdp import MDP, Floats
from revealed.sweeps import q_values

if TYPE_CHECKING:
    import pandas as pd

OURS, WHOLE, COSTS = "adam", "dense adam", "dense costs"  # variants of `timing`
ALL = "all methods"  # whom the costs are for
MEASURED, TOO_LARGE = "measured", "too large"
SMALL = 1_100  # states up to which everything is timed three times; else once
STEPS = 3  # of NPL and CCP, which are short
COLUMNS = [
    "setting", "method", "seed", "seconds", "step", "iterations", "updates", "reached", "other_work", "extrapolated",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class SparseModel:
    """What value iteration asks of a `DenseModel`, with T sparse: the same sweeps, in less time."""

    mdp: MDP

    @property
    def gamma(self) -> float:
        return self.mdp.discount

    def q_values(self, reward: Floats, V: Floats) -> Floats:
        return q_values(self.mdp, reward, V)


def soft_optima(mdp: MDP, rewards: Sequence[Floats]) -> Iterator[DenseOptimum]:
    """Value iteration along a search, each from the last value on."""
    value = None
    for reward in rewards:
        best = dense_soft_optimum(SparseModel(mdp), reward, start=value)
        value = best.value
        yield best


def bytes_needed(mdp: MDP) -> int:
    """The tensors T and O, and three matrices while one is inverted."""
    S, A = mdp.feasible.shape
    return EACH * S * S * (2 * A + 3)


def measure_costs(task: Task, max_iter: int) -> Measured:
    """Seconds of each of the paper's computations; none where the tensors leave no memory to spare."""
    needed, there = bytes_needed(task.mdp), memory_left()
    about = {"states": task.mdp.n_states, "extrapolated": True}
    if 1.5 * needed > there:
        message = f"dense tensors need {in_bytes(needed)}, too much for {in_bytes(there)} of memory"
        return Measured({"status": TOO_LARGE, "message": message} | about)
    return Measured({"status": MEASURED, "message": ""} | about | _costs(task, max_iter))


def _costs(task: Task, max_iter: int) -> dict[str, float]:
    run = DenseRun(task.estimator("CCP"), DenseModel.of(task.mdp), task.mdp, task.demos)
    repeats = 3 if task.mdp.n_states <= SMALL else 1
    iteration = _value_iteration(run, run.model, trail_of(task, "MCE-IRL", max_iter=max_iter))
    expert = run.expert  # estimated before the clock starts, as in the paper
    once, rho = clock(run.rho, repeats)
    per_update, pi_tilde = clock(lambda: run.given(expert), repeats)
    parts = along(run.make_objective(rho, pi_tilde), trail_of(task, "CCP", max_iter=max_iter)[-STEPS - 1 :])
    return iteration | {
        "once": once,
        "per_update": per_update,
        "optimisation_step": iteration["sweeps"] * iteration["sweep"] + once + parts["gradient"],
        "approximation_step": sum(parts.values()),
    }


def _value_iteration(run: Run, model: DenseModel, trail: Sequence[Floats]) -> dict[str, float]:
    """How many sweeps a step of MCE-IRL takes in the mean, and the seconds of a dense one, in the last step."""
    rewards = [np.where(run.mdp.feasible, run.reward.value(theta), 0.0) for theta in trail]
    sweeps: list[int] = []
    values: deque[Floats] = deque(maxlen=2)
    for best in soft_optima(run.mdp, rewards):
        sweeps.append(best.sweeps)
        values.append(best.value)
    seconds, last = clock(lambda: dense_soft_optimum(model, rewards[-1], start=values[0]), 1)
    return {"sweeps": float(np.mean(sweeps)), "sweep": seconds / last.sweeps}


def paper_way(results: Results) -> pd.DataFrame:
    """Seconds of the paper's way, a row for each setting, method and seed: measured, or `extrapolated` from the steps
    of our own search; `step` is the seconds of one."""
    import pandas as pd

    whole = results.where(variant=WHOLE).assign(extrapolated=False)
    parts = [whole] if len(whole) else []
    for costs in results.where(variant=COSTS, status=MEASURED).to_dict("records"):
        ours = results.where(variant=OURS, setting=costs["setting"])
        if len(ours):
            parts.append(_extrapolated(ours, costs))
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    return frame.reindex(columns=COLUMNS)


def _extrapolated(ours: pd.DataFrame, costs: dict[Any, Any]) -> pd.DataFrame:
    own = ours["method"] == "MCE-IRL"
    step = np.where(own, costs["optimisation_step"], costs["approximation_step"])
    tensors = np.where(own, 0.0, costs["per_update"] * ours["updates"])
    seconds = costs["once"] + tensors + (ours["iterations"] + ours["updates"]) * step
    return ours.assign(seconds=seconds, step=step, other_work=costs.get("other_work"), extrapolated=True)
