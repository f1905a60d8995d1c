"""How long route choice takes on a generated city, beside a plain SciPy prototype of the same model in the same run.

.venv/bin/python benchmarks/bench_routes.py               7,500 links, 1,800 trips to 470 destinations: two minutes
.venv/bin/python benchmarks/bench_routes.py --slow        NPL, too: some minutes more
.venv/bin/python benchmarks/bench_routes.py --large       10⁵ links, 4,000 trips to 1,000 destinations: some minutes
.venv/bin/python benchmarks/bench_routes.py --markdown    the table as docs/performance.md holds it
.venv/bin/python benchmarks/bench_routes.py --links 1000 --trips 400 --destinations 60    another size

The prototype is what one writes with SciPy in an afternoon: one factorisation of I − M per θ by `splu` as it comes, z
and the gradient goal by goal, BFGS with exact gradients from a θ that has values. It has neither standard errors nor
safeguards. Figures on one thread come from the same process with one core allowed. CCP and NPL need a factorisation per
goal and π̃.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench_core import Row, best_of, machine, print_markdown, print_table  # first: it sets the thread counts

# isort: split
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from scipy.optimize import minimize

import revealed as rv
from revealed.environments import City, city
from revealed.goal_fit import goal_cases
from revealed.goal_rows import GoalRows
from revealed.objective import Evaluation, Objective

RIVAL = "SciPy prototype"
GRADIENT, FIT, MEMORY = 1.0, 30.0, 8_000.0  # what is aimed at: seconds, and MB at 10⁵ links
LARGE = (100_000, 4_000, 1_000)
TOL = 1e-6  # of the mean gradient, at which the prototype stops; the library goes on to 1e-9


@dataclass
class Routes:
    """A city, trips through it, and a θ on the way to the estimate."""

    town: City
    trips: rv.Demonstrations
    seconds: dict[str, float]

    @classmethod
    def make(cls, links: int, trips: int, destinations: int) -> Routes:
        begun = time.perf_counter()
        town = city(links, seed=0)
        built = time.perf_counter()
        drawn = town.demonstrate(trips, seed=0, destinations=destinations)
        return cls(town, drawn, {"city": built - begun, "trips": time.perf_counter() - built})

    @property
    def title(self) -> str:
        assert self.trips.goal_states is not None
        net, n = self.town.network, self.trips.origins.size
        goals = self.trips.goal_states.size
        return f"{net.n_links:,} links, {net.n_turns:,} turns, {n:,} trips to {goals:,} destinations"

    @property
    def theta(self) -> np.ndarray:
        return 1.1 * np.array(list(self.town.weights.values()))

    @cached_property
    def rows(self) -> GoalRows:
        return GoalRows.of(self.town.mdp, self.trips)

    def at(self, theta: np.ndarray) -> Evaluation:
        """A fresh objective at θ: what is timed is computed."""
        return Objective(self.town.reward, [goal_cases(self.rows, None)]).at(theta)

    def gradient(self) -> np.ndarray:
        """By one adjoint solve per goal, as networks and many parameters take it."""
        part: Any = self.at(self.theta).parts[0]
        return self.town.reward.vjp(self.theta, part.cotangent)

    def fit(self, method: Any = rv.NFXP) -> Any:
        found = method(self.town.reward).fit(self.town.mdp, self.trips)
        _ = found.bse
        return found


# ---------------------------------------------------------------------------------------------------- the prototype


class Prototype:
    """The recursive logit by SciPy alone: theory R2 and R4 as they stand."""

    def __init__(self, routes: Routes) -> None:
        net, steps = routes.town.network, routes.trips.steps
        assert steps is not None
        assert steps.goal is not None
        self.X = np.column_stack([net.attribute(name) for name in routes.town.weights])
        self.source, self.target, self.S = net.source, net.target, net.n_links
        turn = net.turns_between(steps.state, steps.next_state)
        self.observed = self.X[turn].sum(axis=0)
        self.goals, goal = np.unique(steps.goal, return_inverse=True)
        ones = np.ones(turn.size)
        ends = (np.concatenate([ones, -ones]), (np.concatenate([steps.next_state, steps.state]), np.tile(goal, 2)))
        self.ends = sp.csc_array(ends, shape=(self.S, self.goals.size)).toarray(order="F")
        self.n = turn.size
        self.evaluations = 0

    def __call__(self, theta: np.ndarray, derivative: bool = True) -> tuple[float, np.ndarray]:
        """Minus the mean log likelihood and its gradient."""
        self.evaluations += 1
        weight = np.exp(self.X @ theta)
        M = sp.csr_array((weight, (self.source, self.target)), shape=(self.S, self.S))
        try:
            lu = spla.splu(sp.csc_array(sp.eye_array(self.S) - M))
        except RuntimeError:
            return np.inf, np.zeros(theta.size)
        value, gradient = self.observed @ theta, self.observed.copy()
        for k, goal in enumerate(self.goals):
            unit = np.zeros(self.S)
            unit[goal] = 1.0
            z = lu.solve(unit)
            z /= z[goal]
            if not (np.isfinite(z).all() and z.min() > 0.0):
                return np.inf, np.zeros(theta.size)
            c = self.ends[:, k]
            value += c @ np.log(z)
            if derivative:
                w = lu.solve(c / z, "T")  # pyright: ignore[reportCallIssue]  # as SciPy documents it
                gradient += (weight * z[self.target] * w[self.source]) @ self.X
        return -value / self.n, -gradient / self.n

    def fit(self, start: np.ndarray) -> Any:
        return minimize(self, start, jac=True, method="BFGS", options={"gtol": TOL})


def start_of(routes: Routes) -> np.ndarray:
    """A θ with values: every turn costs two on average, each attribute the same part of it."""
    X = np.column_stack([routes.town.network.attribute(name) for name in routes.town.weights])
    return -2.0 / (X.shape[1] * X.mean(axis=0))


# --------------------------------------------------------------------------------------------------------- the rows


@contextmanager
def one_core() -> Iterator[None]:
    """One core for this process while it lasts, where the system lets us choose."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def evaluation_rows(routes: Routes, repeats: int = 3) -> Iterator[Row]:
    theta = routes.theta
    yield Row("log likelihood", best_of(repeats, lambda: routes.at(theta).value))
    yield Row("log likelihood and gradient", best_of(repeats, routes.gradient), GRADIENT)
    yield Row("log likelihood, gradient and Hessian", best_of(repeats, lambda: routes.at(theta).hessian))


def fit_row(routes: Routes, what: str, method: Any = rv.NFXP, aim: float | None = None) -> tuple[Row, Any]:
    found: list[Any] = []
    seconds = best_of(1, lambda: found.append(routes.fit(method)))
    fit = found[0]
    updates = f" in {fit.updates} updates" if fit.settled is not None else ""
    return Row(what, seconds, aim, note=f"{fit.iterations} iterations{updates}, {fit.status.code}"), fit


def on_one_thread(rows: list[Row]) -> list[Row]:
    for row in rows:
        row.what, row.aim = f"{row.what}, on one thread", None
    return rows


def add_prototype(routes: Routes, rows: list[Row], fit: Any) -> str:
    """The same by the prototype, filled into `rows`; how far apart the two are."""
    rival, theta = Prototype(routes), routes.theta
    row = {r.what: r for r in rows}
    row["log likelihood"].dense = best_of(2, lambda: rival(theta, derivative=False))
    row["log likelihood and gradient"].dense = best_of(2, lambda: rival(theta))
    ours = -routes.gradient() / rival.n
    apart = np.abs(ours - rival(theta)[1]).max() / np.abs(ours).max()
    rival.evaluations = 0
    found: list[Any] = []
    row["NFXP: fit with standard errors"].dense = best_of(1, lambda: found.append(rival.fit(start_of(routes))))
    gap = np.abs(found[0].x - fit.theta).max()
    return (
        f"Gradients of the two agree to {apart:.0e} (relative), estimates to {gap:.0e}; the prototype's BFGS took "
        f"{rival.evaluations} evaluations and has no standard errors."
    )


def measure(size: tuple[int, int, int], slow: bool) -> tuple[list[Row], list[str], str]:
    routes = Routes.make(*size)
    say(routes.title)
    rows = list(evaluation_rows(routes))
    whole, fit = fit_row(routes, "NFXP: fit with standard errors", aim=FIT)
    rows.append(whole)
    say("on one thread")
    with one_core():
        rows += on_one_thread([*evaluation_rows(routes, 1), fit_row(routes, whole.what)[0]])
    for method in (rv.CCP, rv.NPL) if slow else (rv.CCP,):
        say(method.__name__)
        rows.append(fit_row(routes, f"{method.__name__}: fit with standard errors", method)[0])
    say("the prototype")
    lines = [machine(), add_prototype(routes, rows, fit)]
    truth = np.array(list(routes.town.weights.values()))
    lines.append(f"Estimates within {np.abs((fit.theta - truth) / fit.bse).max():.1f} standard errors of the truth.")
    return rows, lines, routes.title


def measure_large(size: tuple[int, int, int]) -> dict[str, Any]:
    """In a process of its own, so that the peak is that of route choice."""
    routes = Routes.make(*size)
    say(routes.title)
    rows = list(evaluation_rows(routes, 1))
    row, _ = fit_row(routes, "NFXP: fit with standard errors")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1024 if sys.platform != "darwin" else 1) / 1e6
    made = [Row("generated city", routes.seconds["city"]), Row("simulated trips", routes.seconds["trips"])]
    memory = Row("peak memory", peak, MEMORY, unit="MB", note="whole process, making the data included")
    return {"title": routes.title, "rows": [vars(r) for r in (*made, *rows, row, memory)]}


def large_rows(size: tuple[int, int, int]) -> tuple[list[Row], str]:
    given = [f"--{name}={n}" for name, n in zip(("links", "trips", "destinations"), size, strict=True)]
    found = json.loads(subprocess.check_output([sys.executable, __file__, "--alone", *given], text=True))
    rows = [Row(**row) for row in found["rows"]]
    for row in rows:
        row.aim = MEMORY if row.unit == "MB" else None  # the seconds that are aimed at belong to the smaller city
    return rows, found["title"]


def say(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", type=int)
    parser.add_argument("--trips", type=int)
    parser.add_argument("--destinations", type=int)
    parser.add_argument("--slow", action="store_true", help="NPL, too, which takes minutes")
    parser.add_argument("--large", action="store_true", help="10⁵ links, 1,000 destinations: NFXP, and its memory")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    usual = LARGE if chosen.large else (7_500, 1_800, 470)
    size = (chosen.links or usual[0], chosen.trips or usual[1], chosen.destinations or usual[2])
    if chosen.alone:
        print(json.dumps(measure_large(size)))
        return
    if chosen.large:
        (rows, title), lines = large_rows(size), [machine()]
    else:
        rows, lines, title = measure(size, chosen.slow)
    print(f"benchmarks/bench_routes.py {' '.join(sys.argv[1:])}: {title}\n")
    if chosen.markdown:
        print_markdown(rows, lines, RIVAL)
    else:
        print_table(rows, lines, "Route choice", RIVAL)


if __name__ == "__main__":
    main()
