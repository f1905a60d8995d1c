"""One point of the scaling study, in a process of its own: `bench_scaling.py` starts it, and reads what it prints.

A model (its transitions, features, and decisions drawn from it) is made by one process and kept in a file; a point
loads that file and does one task on it. The peak memory of the process is thus that of Python, of the libraries, of the
model and of the task; nothing is subtracted. What the solvers did is counted from outside: every solver that is made,
the entries of its factors, every product of a square sparse matrix with a vector.
"""

from __future__ import annotations

import json
import math
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import bench_core  # first: it sets the thread counts

# isort: split
import numpy as np
import scipy.sparse as sp
from scaling_tables import Point

import revealed as rv
from revealed import linear_solvers
from revealed.bellman import SoftBellman
from revealed.environments import city, grid_transitions

FEATURES = 8
ACTIONS, BRANCHING, REACH = 5, 5, 10  # of Garnet graphs
AHEAD = 100  # moves that the agents who are observed look ahead
LENGTH = 50  # decisions of one agent
QUICK, REPEATS = 0.5, 3  # what takes less than half a second is done three times


def kernel(name: str) -> Callable[..., Any]:
    """A kernel by its name, in whichever of the files about sweeps it stands."""
    for module in ("sweeps", "bellman"):
        try:
            return getattr(import_module(f"revealed.{module}"), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"no kernel is called {name}")


@dataclass
class Model:
    """What a point starts from. `features` are (S, K) or, sparse, (S·A, K); `counts` (S, A) are what was decided."""

    matrix: sp.csr_array
    feasible: np.ndarray | None
    features: Any
    truth: np.ndarray
    counts: np.ndarray | None = None

    def mdp(self, discount: float) -> rv.MDP:
        """A new one: nothing is known of its graph yet."""
        return rv.MDP(self.matrix, discount, feasible=self.feasible)

    def reward(self, n_actions: int) -> rv.LinearReward:
        pairs = sp.issparse(self.features)
        return rv.LinearReward(self.features, n_actions=n_actions) if pairs else rv.LinearReward(self.features)

    def save(self, path: Path) -> None:
        """Written whole or not at all."""
        arrays = {f"T_{name}": getattr(self.matrix, name) for name in ("data", "indices", "indptr")}
        arrays |= {"truth": self.truth, "counts": self.counts}
        if self.feasible is not None:
            arrays["feasible"] = self.feasible
        if sp.issparse(self.features):
            arrays |= {f"X_{name}": getattr(self.features, name) for name in ("data", "indices", "indptr")}
        else:
            arrays["features"] = self.features
        part = path.with_suffix(".part.npz")
        np.savez(part, **arrays)
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> Model:
        with np.load(path) as found:
            T = tuple(found[f"T_{name}"] for name in ("data", "indices", "indptr"))
            counts, truth = found["counts"].astype(np.float64), found["truth"]
            S, pairs = counts.shape[0], counts.size
            if "features" in found:
                features: Any = found["features"]
            else:
                X = tuple(found[f"X_{name}"] for name in ("data", "indices", "indptr"))
                features = sp.csr_array(X, shape=(pairs, truth.size))
            feasible = found.get("feasible")
        return cls(sp.csr_array(T, shape=(pairs, S)), feasible, features, truth, counts)


# ------------------------------------------------------------------------------------------------------- the models


def waves(places: np.ndarray, seed: int = 0) -> np.ndarray:
    """(S, 8) features that look alike wherever one is, and on a model of any size: waves of 8 to 40 cells."""
    rng = np.random.default_rng(seed)
    out = np.empty((len(places), FEATURES))
    for k in range(FEATURES):
        way = rng.normal(size=places.shape[1])
        way *= 2.0 * np.pi / rng.uniform(8.0, 40.0) / np.linalg.norm(way)
        out[:, k] = np.cos(places @ way + rng.uniform(0.0, 2.0 * np.pi))
    return out


def make_grid(size: int) -> Model:
    side = round(np.sqrt(size))
    places = np.stack(np.divmod(np.arange(float(side * side)), side), axis=1)
    T = grid_transitions(side, side, wind=bench_core.WIND, stay=True)
    return Model(T, None, waves(places), np.random.default_rng(1).normal(0.0, 0.7, FEATURES))


def make_garnet(size: int, reach: int | None) -> Model:
    """As `environments.garnet`, but no expert's optimum is found; a successor may be drawn twice."""
    rng = np.random.default_rng(2)
    pairs = size * ACTIONS
    if reach is None:
        successors = rng.integers(size, size=(pairs, BRANCHING))
    else:
        origin = np.repeat(np.arange(size), ACTIONS)[:, None]
        successors = (origin + rng.integers(-reach, reach + 1, size=(pairs, BRANCHING))) % size
    p = rng.dirichlet(np.ones(BRANCHING), size=pairs)
    starts = np.arange(0, pairs * BRANCHING + 1, BRANCHING)
    T = sp.csr_array((p.reshape(-1), successors.reshape(-1), starts), shape=(pairs, size))
    T.sum_duplicates()
    return Model(T, None, rng.normal(size=(size, FEATURES)), rng.normal(0.0, 0.7, FEATURES))


def make_roads(size: int) -> Model:
    """The city's links, with every attribute but the constant, which no choice shows where no trip ever ends."""
    town = city(size)
    names = [name for name in town.weights if name != "constant"]
    features = sp.csr_array(town.network.features(names, sparse=True))
    truth = np.array([town.weights[name] for name in names])
    return Model(town.mdp.transitions.matrix, np.asarray(town.mdp.feasible), features, truth)


MAKE: dict[str, Callable[[int], Model]] = {
    "grid": make_grid,
    "roads": make_roads,
    "ring": lambda size: make_garnet(size, REACH),
    "random": lambda size: make_garnet(size, None),
}


def make_model(kind: str, size: int, discount: float, path: Path) -> None:
    """The model and about S decisions of agents who look `AHEAD` moves ahead, which needs no linear algebra."""
    model = MAKE[kind](size)
    mdp = model.mdp(discount)
    reward = np.where(mdp.feasible, model.reward(mdp.n_actions).value(model.truth), 0.0)
    q_values, log_sum_exp = kernel("q_values"), kernel("log_sum_exp")
    V = np.zeros(mdp.n_states)
    for _ in range(AHEAD):
        V = log_sum_exp(q_values(mdp, reward, V))
        V -= V.mean()
    policy = kernel("soft_maximum")(q_values(mdp, reward, V))[1]
    demos = rv.simulate(mdp, policy, n=max(20, mdp.n_states // LENGTH), length=LENGTH, seed=3)
    model.counts = np.asarray(demos.counts).astype(np.int32)
    model.save(path)


# -------------------------------------------------------------------------------------------------------- the tasks


def solvers() -> Iterator[Any]:
    """The classes of linear solvers, in whichever file they stand."""
    seen: set[type] = set()
    for module in ("revealed.linear_solvers", "revealed.krylov"):
        try:
            found = [kind for kind in vars(import_module(module)).values() if isinstance(kind, type)]
        except ImportError:
            continue
        for kind in found:
            plain = not getattr(kind, "_is_protocol", False) and kind.__module__.startswith("revealed")
            if plain and kind not in seen and kind.__name__.endswith("Solver") and hasattr(kind, "solve"):
                seen.add(kind)
                yield kind


class Spy:
    """What the solvers did, seen from outside: it still works when they are rewritten, or says nothing."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.fill, self.factor_seconds, self.products = 0, 0.0, 0
        self.works: list[Any] = []
        for kind in solvers():
            self._watch(kind)
        self._watch_work()
        for name in ("_matmul_vector", "_matmul_multivector"):
            self._watch_products(name)

    def _watch(self, kind: Any) -> None:
        before = kind.__init__

        def init(solver: Any, *given: Any, **named: Any) -> None:
            begin = time.perf_counter()
            before(solver, *given, **named)
            self.factor_seconds += time.perf_counter() - begin
            self.made[kind.__name__] += 1
            self.fill = max(self.fill, int(getattr(getattr(solver, "_lu", None), "nnz", 0)))

        kind.__init__ = init

    def _watch_work(self) -> None:
        before = linear_solvers.Work.__init__

        def init(work: Any, *given: Any, **named: Any) -> None:
            before(work, *given, **named)
            self.works.append(work)

        setattr(linear_solvers.Work, "__init__", init)  # noqa: B010 (the type checker would object)

    def _watch_products(self, name: str) -> None:
        """A product with a block of vectors counts once: the matrix is read once."""
        before = getattr(sp.csr_array, name, None)
        if before is None:
            return

        def product(matrix: Any, x: Any) -> Any:
            self.products += matrix.shape[0] == matrix.shape[1]
            return before(matrix, x)

        setattr(sp.csr_array, name, product)

    def clear(self) -> None:
        self.made.clear()
        self.works.clear()
        self.fill, self.factor_seconds, self.products = 0, 0.0, 0

    def found(self) -> dict[str, Any]:
        work: Counter[str] = Counter()
        for one in self.works:
            numbers = asdict(one) if is_dataclass(one) and not isinstance(one, type) else vars(one)
            work.update({name: n for name, n in numbers.items() if isinstance(n, int | float)})
        told = {"solvers": dict(self.made), "fill": self.fill, "factor_seconds": self.factor_seconds}
        return told | {"products": self.products, "work": dict(work)}


def act(task: str, mdp: rv.MDP, model: Model) -> dict[str, Any]:
    """One task on a new MDP: what the record says of how it ended."""
    reward = model.reward(mdp.n_actions)
    if task == "soft optimum":
        table = np.where(mdp.feasible, reward.value(model.truth), 0.0)
        found = SoftBellman(mdp).solve(table)
        return {"iterations": found.newton_steps, "status": "converged", "residual": found.residual}
    options = {} if task == "NFXP" else {"first_step": "smoothed"}
    fit = getattr(rv, task)(reward, progress=False, **options).fit(mdp, rv.Demonstrations.from_counts(model.counts))
    return {"iterations": fit.iterations, "status": fit.status.code, "updates": fit.updates, "llf": fit.llf}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1024 if sys.platform != "darwin" else 1) / 1e6


def run_point(point: Point, path: Path, limits: tuple[float, float], profile: bool = False) -> dict[str, Any]:
    """The record of one point. Small ones are repeated, each on a new MDP, and the quickest counts."""
    model, spy = Model.load(path), Spy()
    loaded = peak_mb()
    bound(*limits)  # loading does not count
    best: dict[str, Any] = {}
    for _ in range(REPEATS):
        spy.clear()
        mdp = model.mdp(point.discount)
        begin, cpu = time.perf_counter(), time.process_time()
        told = profiled(lambda: act(point.task, mdp, model)) if profile else act(point.task, mdp, model)  # noqa: B023
        seconds = time.perf_counter() - begin
        if not best or seconds < best["seconds"]:
            best = {"seconds": seconds, "cpu_seconds": time.process_time() - cpu} | told | spy.found()
        if profile or best["seconds"] > QUICK:
            break
    T = model.matrix
    bytes_of = T.data.nbytes + T.indices.nbytes + T.indptr.nbytes
    place = asdict(point) | {"states": T.shape[1]}
    sizes = {"entries": int(T.nnz), "transitions_mb": bytes_of / 1e6, "loaded_mb": loaded, "peak_mb": peak_mb()}
    return place | sizes | best


def profiled(act: Callable[[], Any]) -> Any:
    """The same, and where its time went on standard error."""
    import cProfile
    import pstats

    profile = cProfile.Profile()
    found = profile.runcall(act)
    pstats.Stats(profile, stream=sys.stderr).strip_dirs().sort_stats("tottime").print_stats(25)
    return found


def bound(seconds: float, gigabytes: float) -> None:
    """Seconds after which this process is ended by the alarm, also in the middle of a factorisation; its memory."""
    resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 1e9), resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(math.ceil(seconds))


def main() -> None:
    """`make KIND SIZE DISCOUNT FILE TASK SECONDS GIGABYTES`, or `run`, or `profile` with the same."""
    what, kind, size, discount, path, task, seconds, gigabytes = sys.argv[1:]
    limits = float(seconds), float(gigabytes)
    if what == "make":
        bound(*limits)
        make_model(kind, int(size), float(discount), Path(path))
    else:
        told = run_point(Point(int(size), kind, float(discount), task), Path(path), limits, what == "profile")
        print(json.dumps(told))


if __name__ == "__main__":
    main()
