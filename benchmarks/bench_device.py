"""The device backend on whatever device JAX finds here: sweeps, solves, the soft optimum, fits, memory.

.venv/bin/python benchmarks/bench_device.py --quick       10⁴ and 10⁵ states: some minutes on a CPU
.venv/bin/python benchmarks/bench_device.py               10⁶, 10⁷ and 5·10⁷ states: a card with 80 GB or more
.venv/bin/python benchmarks/bench_device.py --markdown    the table as docs/performance.md holds it at the end
.venv/bin/python benchmarks/bench_device.py --json FILE   also written to FILE, line after line

Two-dimensional windy grids, five actions and five successors, made on the device. A sweep is V ← log Σ exp(r + γTV)
for a reward (A, S); its bytes are those that it must read and write once: successors, probabilities, rewards, V and
Λ(V). The copy it is compared with is a large copy from the device to itself, bytes read and written. Fits have eight
features (waves of different lengths and directions) and 100,000 decisions in states drawn evenly; π̃ of CCP is the
policy at the true parameters. "First" includes compilation. Nothing here asserts: aims are printed beside. Every line
is printed as it is measured; one that does not fit into memory says so, and the others go on.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any

from bench_core import (  # first: it sets the thread counts
    Row,
    best_of,
    in_words,
    machine,
    print_markdown,
    print_table,
    time_steps,
)

# isort: split
import jax
import jax.numpy as jnp
import numpy as np
from peers.objectworlds import HORIZON
from peers.objectworlds import World as Objectworld

import revealed as rv
from revealed.device_bellman import log_sum_exp, soft_optimum
from revealed.device_cases import DeviceCase
from revealed.device_model import DeviceModel, Placement
from revealed.device_parts import DeviceRows
from revealed.device_pi_tilde import DeviceGiven, DeviceOwn
from revealed.device_rewards import DeviceLinear
from revealed.environments import grid_transitions
from revealed.linear_solvers import Work
from revealed.objective import Objective
from revealed.optimize import Search, Settings, Trace, maximise
from revealed.progress import Progress

SHAPES = {10**4: (100, 100), 10**5: (250, 400), 10**6: (1000, 1000), 10**7: (2500, 4000), 5 * 10**7: (5000, 10000)}
GAMMA, WIND, K, DECISIONS = 0.99, 0.3, 8, 100_000
SWEEPS = 20  # in one call, so that starting a call does not count
SHARE, CCP_AIM, NFXP_AIM = 0.6, 20.0, 120.0
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))  # the order of environments.grid_transitions


@dataclass
class Line(Row):
    """A measurement with an aim that it is to reach from below (`aim`) or from above (`least`)."""

    least: float | None = None
    failed: str = ""

    @property
    def verdict(self) -> str:
        if self.failed:
            return ""
        return super().verdict if self.least is None else "met" if self.measured >= self.least else "missed"

    def cells(self) -> list[str]:
        cells = super().cells()
        if self.failed:
            cells[1], cells[-1] = "—", self.failed
        elif self.unit == "TB/s":
            cells[1] = f"{self.measured:.3g} TB/s" if self.measured > 0.1 else f"{1e3 * self.measured:.3g} GB/s"
        if self.least is not None:
            cells[2] = f"≥ {in_words(self.least, self.unit)}"
        return cells


def words(S: int) -> str:
    return {10**4: "10⁴", 10**5: "10⁵", 10**6: "10⁶", 10**7: "10⁷", 5 * 10**7: "5·10⁷"}[S]


# ---------------------------------------------------------------------------------------------------- the problems


@partial(jax.jit, static_argnames=("rows", "columns"))
def grid_tables(rows: int, columns: int) -> tuple[jax.Array, jax.Array]:
    """(5, S) successors and (5, 5, S) probabilities: with probability WIND to one of the four neighbours, else where
    the action leads; what would leave the grid stays."""
    S = rows * columns
    s = jnp.arange(S, dtype=jnp.int32)
    r, c = s // columns, s % columns
    to = []
    for down, right in MOVES:
        inside = (r + down >= 0) & (r + down < rows) & (c + right >= 0) & (c + right < columns)
        to.append(jnp.where(inside, s + down * columns + right, s))
    p = np.full((5, 5), WIND / 4)
    p[:, 4] = 0.0
    p[np.arange(5), np.arange(5)] += 1.0 - WIND
    return jnp.stack(to), jnp.broadcast_to(jnp.asarray(p)[:, :, None], (5, 5, S)) + 0.0


@partial(jax.jit, static_argnames=("rows", "columns"))
def waves(rows: int, columns: int) -> jax.Array:
    """(K, 1, S): waves over the grid, 8 to 60 cells long."""
    rng = np.random.default_rng(0)
    s = jnp.arange(rows * columns, dtype=jnp.int32)
    r, c = (s // columns).astype(jnp.float64), (s % columns).astype(jnp.float64)
    angle, length, phase = rng.uniform(0, np.pi, K), np.geomspace(8, 60, K), rng.uniform(0, 2 * np.pi, K)
    turn = [2 * np.pi * (np.cos(a) * r + np.sin(a) * c) / w + f for a, w, f in zip(angle, length, phase, strict=True)]
    return jnp.stack([jnp.cos(t) for t in turn])[:, None]


def true_theta() -> np.ndarray:
    return np.random.default_rng(1).normal(0.0, 0.4, K)


class World:
    """A grid on the device, its features, and decisions drawn at the true parameters."""

    def __init__(self, S: int) -> None:
        self.S, shape = S, SHAPES[S]
        with jax.enable_x64(True):
            index, p = grid_tables(*shape)
            self.model = DeviceModel.from_padded(index, p, GAMMA)
            self.reward = DeviceLinear(self.model, waves(*shape))
            self.table = self.reward.value(true_theta())
        jax.block_until_ready((self.model.transitions, self.table))

    @property
    def given(self) -> tuple[Any, ...]:
        return self.model.transitions, self.model.gamma, self.model.mask, self.model.going

    @cached_property
    def best(self) -> Any:
        return soft_optimum(self.model, self.table)

    @cached_property
    def rows(self) -> DeviceRows:
        """Decisions in states drawn evenly."""
        rng = np.random.default_rng(2)
        state, visits = np.unique(rng.integers(self.S, size=DECISIONS), return_counts=True)
        with jax.enable_x64(True):
            policy = np.asarray(self.best.policy[:, jnp.asarray(state)]).T
        weights = rng.multinomial(visits, policy / policy.sum(axis=1, keepdims=True)).astype(np.float64)
        return DeviceRows(self.model, state, weights)

    def fit(self, method: str) -> Search:
        choice = DeviceOwn(self.model) if method == "NFXP" else DeviceGiven(self.model, self.best.policy)
        objective = Objective(self.reward, [DeviceCase(self.model, self.rows, choice)])
        return maximise(objective, np.zeros(K), Settings(), Trace(Progress("", False), Work()))


# ------------------------------------------------------------------------------------------------ the measurements


def timed(n: int, act: Callable[[], Any]) -> float:
    """The shortest of n runs, after one that compiles."""
    jax.block_until_ready(act())
    return best_of(n, lambda: jax.block_until_ready(act()))


def clocked(act: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and how long it takes."""
    begun = time.perf_counter()
    return act(), time.perf_counter() - begun


@jax.jit
def flipped(x: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, SWEEPS, lambda _, x: -x, x)


def copy_bandwidth(quick: bool) -> float:
    """Bytes per second, read and written, of a large copy from the device to itself; or of copies with the sign turned
    between two buffers, where that is faster (a CPU spends its time on new pages otherwise)."""
    with jax.enable_x64(True):
        x = jnp.zeros((1 << 25) if quick else (1 << 29), dtype=jnp.float64)
        seconds = min(timed(10, lambda: jnp.copy(x)), timed(3, lambda: flipped(x)) / SWEEPS)
        return 2.0 * x.nbytes / seconds


@jax.jit
def many_sweeps(T: Any, gamma: Any, mask: Any, going: Any, reward: Any, V: Any) -> Any:
    return jax.lax.fori_loop(0, SWEEPS, lambda _, V: log_sum_exp(T, gamma, mask, going, reward, V), V)


def sweep_lines(world: World, copy: float) -> Iterator[Line]:
    T, *rest = world.given
    for dtype in ("float32", "float64"):
        with jax.enable_x64(True):
            own = replace(T, p=T.p.astype(dtype)) if dtype == "float32" else T
            reward = jnp.broadcast_to(world.table, (5, world.S)).astype(dtype) + 0
            V = jnp.zeros(world.S, dtype=dtype)
            seconds = timed(5, lambda own=own, reward=reward, V=V: many_sweeps(own, *rest, reward, V)) / SWEEPS
        wide = np.dtype(dtype).itemsize
        size = world.S * (5 * 4 + (25 + 5 + 2) * wide + 1)
        rate = size / seconds
        yield Line(f"soft sweep, {dtype}, {words(world.S)} states", seconds, note=f"{size / world.S:.0f} bytes a state")
        note = f"{rate / 1e12:.3g} TB/s" if rate > 1e11 else f"{rate / 1e9:.3g} GB/s"
        yield Line("its share of the copy bandwidth", rate / copy, unit="×", least=SHARE, note=note)


def solve_lines(world: World) -> Iterator[Line]:
    with jax.enable_x64(True):
        b, policy = world.reward.features[0, 0], jnp.full((5, world.S), 0.2)
    for dtype in ("float64", "float32"):
        model = replace(world.model, placement=Placement(world.model.placement.kind, 1, dtype))
        chain = model.chain(policy)
        inside = "" if dtype == "float64" else ", float32 inside"
        what = f"(I − γT^π)x = b{inside}, {words(world.S)} states, γ = {GAMMA:g}"
        seconds = timed(2, partial(chain.solve, b))
        yield Line(what, seconds, note="true residual 1e-13 in float64")
        if dtype == "float64":
            yield Line("the same, transposed", timed(2, partial(chain.solve_transpose, b)))


def optimum_lines(world: World) -> Iterator[Line]:
    found, first = clocked(lambda: world.best)  # it looks at its residual: nothing is left to wait for
    seconds = best_of(2, lambda: jax.block_until_ready(soft_optimum(world.model, world.table).value))
    note = f"{found.newton_steps} Newton steps, {found.sweeps} sweeps, residual {found.residual:.0e}; "
    yield Line(f"soft optimum, cold, {words(world.S)} states", seconds, note=f"{note}first {in_words(first, 's')}")


def fit_line(world: World, method: str, aim: float | None) -> Line:
    _ = world.rows
    found, first = clocked(partial(world.fit, method))
    seconds = clocked(partial(world.fit, method))[1] if first < 30.0 else first
    off = np.abs(found.best.theta - true_theta()).max()
    note = f"{found.iterations} iterations, gradient {found.best.gradient_norm:.0e}, θ within {off:.2g} of the truth"
    what = f"linear {method} fit, {K} features, {words(world.S)} states"
    return Line(what, seconds, aim, note=f"{note}; first {in_words(first, 's')}")


def memory_line(world: World) -> Line:
    device = jax.devices()[0]
    stats = device.memory_stats() or {}
    peak, tables = stats.get("peak_bytes_in_use"), world.model.transitions
    held = sum(x.nbytes for x in jax.tree.leaves(tables)) / 1e6
    what = f"peak memory of the device so far, {words(world.S)} states"
    if peak is None:
        return Line(what, 0.0, failed="this device does not tell")
    return Line(what, peak / 1e6, unit="MB", note=f"the transitions and their transpose are {held:,.0f} MB of it")


def comparison_lines(S: int) -> Iterator[Line]:
    """The same data on the host and on the device: how far apart the estimates are."""
    world = World(S)
    model, rows = world.model, world.rows
    counts = np.zeros((S, 5))
    counts[np.asarray(rows.index)[: len(rows.weights)]] = rows.weights
    mdp = rv.MDP(grid_transitions(*SHAPES[S], wind=WIND, stay=True), GAMMA)
    demos, features = rv.Demonstrations.from_counts(counts), model.get(world.reward.features)[..., 0]
    pi_hat = model.get(world.best.policy)
    placed = mdp.to(model.placement.kind)
    for method in ("CCP", "NFXP"):
        reward = rv.LinearReward(features)
        estimator = rv.CCP(reward, first_step=pi_hat) if method == "CCP" else rv.NFXP(reward)
        there, first = clocked(partial(estimator.fit, placed, demos))
        _, seconds = clocked(partial(estimator.fit, placed, demos))
        here, host = clocked(partial(estimator.fit, mdp, demos))
        apart = float(np.abs(there.theta - here.theta).max())
        also = float(np.abs(world.fit(method).best.theta - here.theta).max())
        note = (
            f"estimates {apart:.0e} apart ({also:.0e} for the model made on the device); first {in_words(first, 's')}"
        )
        what = f"{method} by the estimator, {words(S)} states, results on the host included"
        yield Line(what, seconds, note=f"{note}; on the host alone {in_words(host, 's')}")


def horizon_line(size: int) -> Line:
    """A step of MCE-IRL with a network on a horizon, from a model and a reward of the host, on the device and there."""
    kind = jax.devices()[0].platform
    there, here = Objectworld(size, HORIZON, kind), Objectworld(size, HORIZON)
    start = here.network.init()
    mine, first = clocked(lambda: there.objective().at(start).gradient)
    wanted = here.objective().at(start).gradient
    apart = np.abs(mine - wanted).max() / np.abs(wanted).max()
    seconds, host = (time_steps(w.objective, start, repeats=2) for w in (there, here))
    note = f"gradients {apart:.0e} apart; first {in_words(first, 's')}; on the host alone {in_words(host, 's')}"
    return Line(f"MCE-IRL step, network, Objectworld {size}², horizon {HORIZON}", seconds, note=note)


# ------------------------------------------------------------------------------------------------------- the table


class Report:
    """Lines as they come: printed at once, and written to a file where one is named."""

    def __init__(self, path: str | None, limit: float) -> None:
        self.lines: list[Row] = []
        self.path, self.limit, self.begun = path, limit, time.perf_counter()

    def add(self, *lines: Line) -> None:
        for line in lines:
            self.lines.append(line)
            print(" | ".join(cell for cell in line.cells() if cell), file=sys.stderr, flush=True)
        if self.path:
            with open(self.path, "w", encoding="utf-8") as file:
                rows = [asdict(line) | {"verdict": line.verdict} for line in self.lines]
                json.dump({"about": about(), "rows": rows}, file, indent=1)

    def measure(self, what: str, act: Callable[[], Any]) -> Any:
        """What `act` returns or yields; where it fails, a line that says so."""
        if time.perf_counter() - self.begun > self.limit:
            self.add(Line(what, 0.0, failed="not run: the time was up"))
            return None
        try:
            found = act()
            if isinstance(found, Iterator):
                for line in found:
                    self.add(line)
            elif isinstance(found, Line):
                self.add(found)
            return found
        except Exception as problem:  # one line must not cost the others
            text = " ".join(str(problem).split())
            full = "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower()
            self.add(
                Line(
                    what, 0.0, failed="does not fit into memory" if full else f"{type(problem).__name__}: {text[:200]}"
                )
            )
            return None
        finally:
            gc.collect()


def about() -> list[str]:
    device = jax.devices()[0]
    host = machine().rpartition(";")[0]
    return [f"{device.device_kind} ({len(jax.devices())} × {device.platform}), float64 unless said; {host}."]


def measure(report: Report, sizes: list[int], compared: int, quick: bool) -> None:
    copy = copy_bandwidth(quick)
    report.add(Line("copy bandwidth of the device", copy / 1e12, unit="TB/s", note="bytes read and written"))
    for S in sizes:
        world = report.measure(f"a grid of {words(S)} states", partial(World, S))
        if world is None:
            continue
        report.measure(f"soft sweep, {words(S)} states", lambda w=world: sweep_lines(w, copy))
        report.measure(f"linear system, {words(S)} states", lambda w=world: solve_lines(w))
        report.measure(f"soft optimum, {words(S)} states", lambda w=world: optimum_lines(w))
        report.measure(f"CCP, {words(S)} states", lambda w=world: fit_line(w, "CCP", CCP_AIM if w.S == 10**7 else None))
        if S <= 10**7:
            aim = NFXP_AIM if S == 10**7 else None
            report.measure(f"NFXP, {words(S)} states", lambda w=world, aim=aim: fit_line(w, "NFXP", aim))
        report.measure(f"memory, {words(S)} states", lambda w=world: memory_line(w))
        del world
        gc.collect()
    report.measure(f"device against host, {words(compared)} states", lambda: comparison_lines(compared))
    for size in (32,) if quick else (32, 100):
        report.measure(f"horizon, {size}²", partial(horizon_line, size))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10⁴ and 10⁵ states, for a CPU")
    parser.add_argument("--sizes", nargs="+", type=lambda x: int(float(x)), metavar="S", help=f"among {list(SHAPES)}")
    parser.add_argument("--limit", type=float, default=440.0, help="seconds after which no more is begun")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown at the end")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to FILE, line after line")
    arguments = parser.parse_args()
    sizes = arguments.sizes or ([10**4, 10**5] if arguments.quick else [10**6, 10**7, 5 * 10**7])
    unknown = [S for S in sizes if S not in SHAPES]
    if unknown:
        parser.error(f"--sizes: {unknown[0]} is not among {list(SHAPES)}")
    report = Report(arguments.json, arguments.limit)
    measure(report, sizes, 10**4 if arguments.quick else 10**5, arguments.quick)
    title = f"grids, five actions, five successors, γ = {GAMMA:g}"
    if arguments.markdown:
        print_markdown(report.lines, about())
    else:
        print_table(report.lines, about(), title)


if __name__ == "__main__":
    main()
