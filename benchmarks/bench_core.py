"""Speed and memory of the core, beside the paper-style dense baseline in the same run. `make bench` runs it.

    .venv/bin/python benchmarks/bench_core.py               everything: two or three minutes and 2 GB
    .venv/bin/python benchmarks/bench_core.py --quick       without the dense baseline: some seconds
    .venv/bin/python benchmarks/bench_core.py --markdown    the table as docs/performance.md holds it

Times are the best of several repeats. A gradient step is timed along a path of steps as an optimiser takes them, from
a fresh objective each time: the figure is the mean over the path, so it includes what has to be refactored on the way.
Nothing here asserts: aims are printed beside what was measured.
"""

# ruff: noqa: E402 (thread counts are set before the imports that read them)

from __future__ import annotations

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
for name in THREADS:  # before NumPy is imported: the libraries read it once
    os.environ[name] = "1"

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

import revealed as rv
from revealed.environments import garnet, grid_transitions, rust_bus
from revealed.experiments.dense_baseline import DenseCCP, DenseModel, dense_mce_step, dense_soft_optimum
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy

SIDE, WIND, GAMMA, K = 64, 0.3, 0.9, 8
STEPS, RATE = 20, 0.01  # a path of gradient steps, as Adam takes them
TITLE = f"64×64 windy grid, five actions, γ = {GAMMA:g}, where nothing else is said"
DENSE_TOL = 1e-6  # value iteration stops within this of the optimum


@dataclass
class Row:
    """One measurement, in seconds unless the unit says otherwise, and the dense baseline's where it was run."""

    what: str
    measured: float
    aim: float | None = None
    dense: float | None = None
    unit: str = "s"
    note: str = ""

    @property
    def verdict(self) -> str:
        return "" if self.aim is None else "met" if self.measured <= self.aim else "missed"

    @property
    def ratio(self) -> float | None:
        return None if self.dense is None else self.dense / self.measured

    def cells(self) -> list[str]:
        return [
            self.what,
            in_words(self.measured, self.unit),
            "" if self.aim is None else f"≤ {in_words(self.aim, self.unit)}",
            self.verdict,
            "" if self.dense is None else in_words(self.dense, self.unit),
            "" if self.ratio is None else f"{self.ratio:,.0f}×" if self.ratio >= 10.0 else f"{self.ratio:.1f}×",
            self.note,
        ]


COLUMNS = ("what", "measured", "aim", "", "dense baseline", "ratio", "note")


def lines_of(rows: list[Row], rival: str) -> tuple[list[str], list[list[str]]]:
    """The heads of the columns and the cells; those of an aim and of a rival only where there is one."""
    aims, rivals = (any(x is not None for x in xs) for xs in ([r.aim for r in rows], [r.dense for r in rows]))
    kept = [i for i in range(len(COLUMNS)) if (aims or i not in (2, 3)) and (rivals or i not in (4, 5))]
    heads = [COLUMNS[i].replace("dense baseline", rival) for i in kept]
    return heads, [[row.cells()[i] for i in kept] for row in rows]


def in_words(x: float, unit: str) -> str:
    if unit == "s":
        return f"{x * 1e3:.3g} ms" if x < 1.0 else f"{x:.3g} s"
    return f"{x:,.0f} MB" if unit == "MB" else f"{x:.2f}×"


def best_of(n: int, act: Callable[[], Any]) -> float:
    """The shortest of n runs, in seconds."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)


# ---------------------------------------------------------------------------------------------------- the problems


def landmarks(rows: int, columns: int, k: int = K) -> np.ndarray:
    """(S, K) features: how close a cell is to each of k landmarks, from 1 there to 0 far away."""
    rng = np.random.default_rng(0)
    cells = np.stack(np.divmod(np.arange(rows * columns), columns), axis=1)
    places = rng.uniform((0, 0), (rows, columns), (k, 2))
    return np.exp(-np.linalg.norm(cells[:, None, :] - places, axis=2) / 10.0)


def true_theta(k: int = K) -> np.ndarray:
    return np.random.default_rng(1).normal(0.0, 2.0, k)


def grid(rows: int, columns: int, discount: float = GAMMA) -> rv.MDP:
    transitions = grid_transitions(rows, columns, wind=WIND, stay=True)
    return rv.MDP(transitions, discount, initial=np.full(rows * columns, 1.0 / (rows * columns)))


@dataclass
class Grid64:
    """The grid world that most rows are about, with decisions simulated at the true parameters."""

    mdp: rv.MDP
    features: np.ndarray
    reward: np.ndarray
    demos: rv.Demonstrations
    pi_hat: np.ndarray

    @classmethod
    def make(cls) -> Grid64:
        mdp, features = grid(SIDE, SIDE), landmarks(SIDE, SIDE)
        reward = np.repeat((features @ true_theta())[:, None], mdp.n_actions, axis=1)
        demos = rv.simulate(mdp, rv.solve(mdp, reward).policy, n=200, length=50, seed=3)
        pi_hat = rv.first_step.Smoothed().estimate(mdp, demos.counts)
        return cls(mdp, features, reward, demos, pi_hat)

    def objective(self, reward: Any, method: str) -> Objective:
        """A fresh one: nothing is warm but what its first evaluation leaves."""
        pi_tilde = OwnPolicy(self.mdp) if method == "mce" else GivenPolicy(self.mdp, self.pi_hat)
        return Objective(reward, [Case(self.mdp, self.demos.weights, pi_tilde)])


# ------------------------------------------------------------------------------------------------ the measurements


def time_steps(make: Callable[[], Objective], start: np.ndarray, repeats: int = 5) -> float:
    """Seconds per gradient step (value and gradient): the mean over Adam's path, its first evaluation not counted."""

    def path() -> float:
        objective = make()
        point, mean, square = objective.at(start), np.zeros_like(start), np.zeros_like(start)
        gradient, values = point.gradient, [point.value]
        begin = time.perf_counter()
        for k in range(1, STEPS + 1):
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            step = (mean / (1 - 0.9**k)) / (np.sqrt(square / (1 - 0.999**k)) + 1e-8)
            point = objective.at(point.theta + RATE * step)
            gradient = point.gradient
            values.append(point.value)
        return (time.perf_counter() - begin) / STEPS

    return min(path() for _ in range(repeats))


def soft_optimum_rows(world: Grid64) -> Iterator[Row]:
    for discount, aim in ((GAMMA, 0.1), (0.99, None), (0.9999, None)):
        new = [grid(SIDE, SIDE, discount) for _ in range(7)]  # each its own, so that looking at the graph is counted
        seconds = min(best_of(1, lambda mdp=mdp: rv.solve(mdp, world.reward)) for mdp in new)
        found = rv.solve(new[0], world.reward)
        note = f"{found.newton_steps} factorisations, residual {found.residual:.0e}"
        yield Row(f"soft optimum, cold, γ = {discount:g}", seconds, aim, note=note)


def papers_network(world: Grid64) -> rv.NeuralReward:
    return rv.NeuralReward(world.features, activation="relu", standardize=False)


def step_rows(world: Grid64) -> Iterator[Row]:
    linear = rv.LinearReward(world.features)
    begin = time.perf_counter()
    network = papers_network(world)
    made = time.perf_counter() - begin
    begin = time.perf_counter()
    table = network.value(network.init())
    network.vjp(network.init(), np.ones_like(table))
    yield Row(
        "network 8-32-16-1: first value and gradient",
        time.perf_counter() - begin,
        note=f"JAX compiles, once per process; loading JAX took {made:.2g} s before",
    )
    note = f"mean of Adam's first {STEPS} steps"
    for name, reward, start in (
        ("linear, 8 features", linear, 0.9 * true_theta()),
        ("network", network, network.init()),
    ):
        seconds = time_steps(lambda reward=reward: world.objective(reward, "mce"), start)
        yield Row(f"MCE-IRL gradient step, warm, {name}", seconds, 0.015, note=note)
    for name, reward, start in (
        ("linear, 8 features", linear, 0.9 * true_theta()),
        ("network", network, network.init()),
    ):
        seconds = time_steps(lambda reward=reward: world.objective(reward, "ccp"), start)
        yield Row(f"CCP gradient step, {name}", seconds, 0.005, note=note)
    seconds = best_of(5, lambda: GivenPolicy(world.mdp, world.pi_hat))
    yield Row("CCP, once per π̃: factor I − γT^π̃", seconds, note="the baseline's occupancy tensor")


def fit_rows(world: Grid64) -> Iterator[Row]:
    linear = rv.LinearReward(world.features)
    for estimator in (rv.CCP(linear, first_step="smoothed"), rv.NFXP(linear)):
        fit = estimator.fit(world.mdp, world.demos)
        seconds = best_of(3, lambda e=estimator: e.fit(world.mdp, world.demos))
        yield Row(
            f"linear {fit.method} fit, 64×64 grid", seconds, note=f"{fit.iterations} iterations, {fit.status.code}"
        )
    buses = rust_bus()
    reward, demos = buses.reward_model(), buses.demonstrate(80, length=100, seed=4)
    fit = rv.NFXP(reward).fit(buses.mdp, demos)
    seconds = best_of(7, lambda: rv.NFXP(reward).fit(buses.mdp, demos))
    note = f"{fit.iterations} iterations, {fit.status.code}"
    yield Row("NFXP fit, 90 states, 2 actions, γ = 0.9999", seconds, 0.1, note=note)


def random_graph_rows(slow: bool) -> Iterator[Row]:
    mdp = garnet(10_000, 5, 5, seed=2, discount=0.99).mdp  # no locality at all
    policy, b = mdp.uniform_policy(), np.random.default_rng(5).normal(size=mdp.n_states)
    reward = np.random.default_rng(6).normal(size=mdp.feasible.shape)
    seconds = best_of(3, lambda: rv.solve(mdp, reward))
    yield Row("soft optimum, random graph of 10⁴ states, γ = 0.99", seconds, note="by sweeps alone, nothing factored")
    seconds = best_of(5, lambda: rv.Chain(mdp, policy).solve(b))
    yield Row("one linear system on that graph, Krylov", seconds)
    if slow:
        seconds = best_of(1, lambda: rv.Chain(mdp, policy, "lu").solve(b))
        yield Row("the same by sparse LU", seconds, note="nearly dense factors: why it is not chosen")


def large_rows() -> Iterator[Row]:
    """In a fresh process, started while this one is small: a peak counts what the parent held at the start."""
    found = json.loads(subprocess.check_output([sys.executable, __file__, "--large-fit"], text=True))
    note = f"{found['iterations']} iterations, {found['code']}; {found['decisions']:.0f} decisions"
    yield Row("linear CCP fit, 8 features, 316×316 grid (10⁵ states)", found["seconds"], 5.0, note=note)
    yield Row("its peak memory", found["peak"], 2_000.0, unit="MB", note="whole process, making the data included")


def large_fit() -> dict[str, Any]:
    side = 316
    mdp, features = grid(side, side), landmarks(side, side)
    policy = rv.solve(mdp, (features @ true_theta())[:, None]).policy
    demos = rv.simulate(mdp, policy, n=1_000, length=100, seed=3)
    fits = []
    seconds = best_of(2, lambda: fits.append(rv.CCP(rv.LinearReward(features)).fit(mdp, demos)))
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 if sys.platform != "darwin" else 1024)
    fit = fits[-1]
    return {
        "seconds": seconds,
        "peak": kilobytes * 1024 / 1e6,
        "iterations": fit.iterations,
        "code": fit.status.code,
        "decisions": demos.n_decisions,
    }


def import_rows() -> Iterator[Row]:
    def seconds(what: str) -> float:
        code = f"import time; t = time.perf_counter(); import {what}; print(time.perf_counter() - t)"
        return float(subprocess.check_output([sys.executable, "-c", code], text=True))

    ours, theirs = [], []
    for _ in range(8):  # in turns, so that a busy machine troubles both alike
        ours.append(seconds("revealed as rv; rv.MDP, rv.Demonstrations, rv.LinearReward, rv.NFXP"))
        theirs.append(seconds("numpy, scipy.sparse.linalg"))
    note = f"{in_words(min(ours), 's')} over {in_words(min(theirs), 's')} for numpy and scipy.sparse.linalg"
    yield Row(
        "import revealed, and load the model, data and estimators", min(ours) / min(theirs), 1.3, unit="×", note=note
    )


def add_dense(world: Grid64, rows: list[Row]) -> str:
    """The same by dense algebra, filled into `rows`. Never more than two of the big tensors at once."""
    row = {r.what: r for r in rows}
    rho, model = world.demos.weights, DenseModel.of(world.mdp)
    begin = time.perf_counter()
    best = dense_soft_optimum(model, world.reward, DENSE_TOL)
    row[f"soft optimum, cold, γ = {GAMMA:g}"].dense = time.perf_counter() - begin
    worst = 0.0
    rewards = {"linear, 8 features": rv.LinearReward(world.features), "network": papers_network(world)}
    starts = {"linear, 8 features": 0.9 * true_theta(), "network": rewards["network"].init()}

    def after_a_step(name: str) -> tuple[Any, np.ndarray, np.ndarray]:
        reward, theta = rewards[name], starts[name]
        return reward, theta, theta + RATE * np.sign(world.objective(reward, "ccp").at(theta).gradient)

    def apart(name: str, method: str, theta: np.ndarray, gradient: np.ndarray) -> float:
        ours = world.objective(rewards[name], method).at(theta).gradient
        return float(np.abs(ours - gradient).max() / np.abs(ours).max())

    for name in rewards:
        reward, theta, moved = after_a_step(name)
        warm = dense_soft_optimum(model, reward.value(theta), DENSE_TOL, start=best.value).value
        begin = time.perf_counter()
        step = dense_mce_step(model, reward.value(moved), rho, DENSE_TOL, start=warm)
        gradient = reward.vjp(moved, step.gradient / rho.sum())
        row[f"MCE-IRL gradient step, warm, {name}"].dense = time.perf_counter() - begin
        worst = max(worst, apart(name, "mce", moved, gradient))
    begin = time.perf_counter()
    ccp = DenseCCP(model, world.pi_hat)
    row["CCP, once per π̃: factor I − γT^π̃"].dense = time.perf_counter() - begin
    del model
    for name in rewards:
        reward, _, moved = after_a_step(name)

        def one_step(reward: Any = reward, moved: np.ndarray = moved) -> np.ndarray:
            return reward.vjp(moved, ccp.step(reward.value(moved), rho).gradient / rho.sum())

        row[f"CCP gradient step, {name}"].dense = best_of(3, one_step)
        worst = max(worst, apart(name, "ccp", moved, one_step()))
    return f"Gradients of the two agree to {worst:.0e} (relative; value iteration stops at {DENSE_TOL:g})."


# ------------------------------------------------------------------------------------------------------- the table


def machine() -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "jax"))
    where = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}"
    return f"{where}; Python {platform.python_version()}, {libraries}; one BLAS thread, JAX on the CPU."


def print_markdown(rows: list[Row], lines: list[str], rival: str = "dense baseline") -> None:
    heads, cells = lines_of(rows, rival)
    print("|" + "|".join(f" {c} " for c in heads) + "|\n|" + "---|" * len(heads))
    for row in cells:
        print("|" + "|".join(f" {c} " for c in row) + "|")
    print("\n" + "\n".join(lines))


def print_table(rows: list[Row], lines: list[str], title: str = TITLE, rival: str = "dense baseline") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    heads, cells = lines_of(rows, rival)
    for head in heads:
        table.add_column(head, justify="left" if head in ("what", "", "note") else "right", overflow="fold")
    for row in cells:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console = Console(width=180)
    console.print(table)
    console.print("\n".join(lines), highlight=False)


def measure(quick: bool, slow: bool, say: Callable[[str], None]) -> tuple[list[Row], list[str]]:
    say("the large fit, imports")
    large, imports = list(large_rows()), list(import_rows())  # first: see `large_rows`
    say("the 64×64 grid, the buses")
    world = Grid64.make()
    rows = [*soft_optimum_rows(world), *step_rows(world), *fit_rows(world), *large]
    say("the random graph")
    rows += [*random_graph_rows(slow), *imports]
    lines = [machine()]
    if not quick:
        say("the dense baseline (a minute or two)")
        lines.append(add_dense(world, rows))
    return rows, lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="skip the dense baseline")
    parser.add_argument("--slow", action="store_true", help="also factor the random graph by LU (up to two minutes)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--large-fit", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.large_fit:
        print(json.dumps(large_fit()))
        return
    rows, lines = measure(arguments.quick, arguments.slow, lambda what: print(f"measuring: {what}", file=sys.stderr))
    (print_markdown if arguments.markdown else print_table)(rows, lines)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"about": lines, "rows": [asdict(r) | {"verdict": r.verdict} for r in rows]}, file, indent=1)


if __name__ == "__main__":
    main()
