"""How long single steps of a search take, and the parts of a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from revealed.experiments.timed import Task
from revealed.fit import Fit
from revealed.mdp import Floats
from revealed.objective import Objective


@lru_cache(maxsize=2)
def trail_of(task: Task, method: str, **options: Any) -> list[Floats]:
    """The points of a search with Adam: what a step costs depends on where the search is, and on the step before."""
    trail: list[Floats] = []
    estimator = task.estimator(method, optimizer="adam", callback=lambda point: trail.append(point.theta), **options)
    estimator.fit(task.mdp, task.demos)
    return trail


def clock(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The median time of doing the work, and what it made the last time."""
    seconds, made = [], None
    for _ in range(repeats):
        made = None  # a dense tensor is let go before the next one is made
        born = time.perf_counter()
        made = work()
        seconds.append(time.perf_counter() - born)
    return float(np.median(seconds)), made


def along(objective: Objective, trail: Sequence[Floats]) -> dict[str, float]:
    """Medians of the three parts of an evaluation: value and policy, the transposed solve, the gradient in θ. The first
    point of `trail` only gets things going."""
    seconds = []
    for theta in trail:
        times = [time.perf_counter()]
        point = objective.at(theta)
        times.append(time.perf_counter())
        _ = point.parts[0].adjoint
        times.append(time.perf_counter())
        _ = point.gradient
        times.append(time.perf_counter())
        seconds.append(np.diff(times))
    value, adjoint, gradient = np.median(seconds[1:], axis=0)
    return {"value": float(value), "adjoint": float(adjoint), "gradient": float(gradient)}


def seconds_of_a_step(fit: Fit) -> float:
    """The mean over a whole search, without what comes before the first step of an update; NaN without a step."""
    searches = [[row["seconds"] for row in rows] for _, rows in groupby(fit.rows, key=lambda row: row["update"])]
    steps = sum(len(times) - 1 for times in searches)
    return sum(times[-1] - times[0] for times in searches) / steps if steps else float("nan")
