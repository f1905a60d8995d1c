"""Kernels before and after: each as it was done earlier, written out below, beside the library's way of today.

.venv/bin/python benchmarks/bench_kernels.py               two or three minutes and 3 GB
.venv/bin/python benchmarks/bench_kernels.py --quick       smaller models: some seconds
.venv/bin/python benchmarks/bench_kernels.py --markdown    the table as docs/performance.md holds it
.venv/bin/python benchmarks/bench_kernels.py --docs        the same, put in its place there

Both ways run in turns, the best of several is kept, and both must give the same numbers: the note names the two ways,
the earlier one first, and says how far apart they are. What the earlier way shares with the present one it takes from
the library; the optima change in more than one thing. Where cores are not named there is one.
"""

from __future__ import annotations

import argparse
import io
import operator
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from typing import Any

from bench_core import (  # first: it sets the thread counts
    GAMMA,
    RATE,
    Row,
    best_of,
    grid,
    landmarks,
    machine,
    print_markdown,
    print_table,
    true_theta,
)

# isort: split
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from bench_routes import one_core
from bench_scaling import write_docs

import revealed as rv
from revealed.chain import one_hot
from revealed.cold_start import cold_start
from revealed.environments import city, garnet, mountain_car
from revealed.hard_bellman import solve_hard
from revealed.krylov import KrylovSolver
from revealed.linear_solvers import EPS, LUSolver
from revealed.objective import Case, Objective
from revealed.parallel import cores
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from revealed.sweeps import centred, q_values, soft_maximum, sweep

TITLE = "Before and after: each kernel as it was, and as it is"
SAME = 1e-8  # how far apart, relative to their size, the numbers of the two ways may be
ENOUGH = 15.0  # seconds, after which a row is not repeated any more
BUSY = 0.5  # load of the machine above which the table says so
Act = Callable[[], Any]


# -------------------------------------------------------------------------------------------------- the earlier ways


class Stacked:
    """I − γT^π as a sparse product: policies, and ones, times T and the identity stacked."""

    def __init__(self, mdp: rv.MDP) -> None:
        S, A = self.shape = mdp.feasible.shape
        self.stacked = sp.csr_array(sp.vstack([mdp.transitions.matrix, sp.eye_array(S)], format="csr"))
        self.columns = np.column_stack([np.arange(S * A).reshape(S, A), np.arange(S * A, S * A + S)]).reshape(-1)
        self.starts = np.arange(0, S * (A + 1) + 1, A + 1)

    def identity_minus(self, gamma: float, policy: np.ndarray) -> sp.csr_array:
        S, A = self.shape
        weights = np.empty((S, A + 1))
        np.multiply(policy, -gamma, out=weights[:, :A])
        weights[:, A] = 1.0
        left = sp.csr_array((weights.reshape(-1), self.columns, self.starts), shape=(S, S * A + S))
        return sp.csr_array(left @ self.stacked)


def wide(T: Any) -> Any:
    """The same matrix with indices of eight bytes."""
    other = sp.csr_array(T.shape)
    parts: Any = T.data, T.indices.astype(np.int64), T.indptr.astype(np.int64)
    other.data, other.indices, other.indptr = parts
    return other


def whole_sweep(mdp: rv.MDP, reward: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Λ(V) by tables of all states, one after the other."""
    Q = q_values(mdp, reward, V)
    top = Q[:, 0].copy()
    for a in range(1, Q.shape[1]):
        np.maximum(top, Q[:, a], out=top)
    odds = Q - top[:, None]
    np.exp(odds, out=odds)
    total = odds @ np.ones(Q.shape[1])
    np.log(total, out=total)
    total += top
    return total


def by_the_norm(mdp: rv.MDP, reward: np.ndarray) -> np.ndarray:
    """Sweeps from zero until no value moves: differences between states have long been settled."""
    V, change = np.zeros(mdp.n_states), np.inf
    while change * mdp.discount > 8 * EPS * np.abs(V).max():
        V, before = sweep(mdp, reward, V), V
        change = float(np.abs(V - before).max())
    return V


def by_the_span(mdp: rv.MDP, reward: np.ndarray) -> np.ndarray:
    """The same, each sweep moved to the middle of its error bounds, until these have met."""
    V, error, shift = np.zeros(mdp.n_states), np.inf, mdp.discount / (1.0 - mdp.discount)
    while error > 8 * EPS * np.abs(V).max():
        V, error = centred(V, sweep(mdp, reward, V), shift)
    return V


def column_by_column(A: sp.csr_array, B: np.ndarray) -> np.ndarray:
    """SciPy's BiCGSTAB with the diagonal of A, for one right-hand side after the other."""
    diagonal = A.diagonal()
    jacobi = spla.LinearOperator(A.shape, matvec=lambda x: x / diagonal, dtype=np.float64)
    return each_column(lambda b: spla.bicgstab(A, b, rtol=1e-14, atol=0.0, M=jacobi, maxiter=5_000)[0], B)


def each_column(solve: Callable[[np.ndarray], np.ndarray], B: np.ndarray) -> np.ndarray:
    return np.stack([solve(np.ascontiguousarray(b)) for b in B.T], axis=1)


def newton(mdp: rv.MDP, reward: np.ndarray) -> np.ndarray:
    """The soft optimum after ten relative sweeps: a linear system to rounding for every step, ten sweeps between."""
    V, shift = np.zeros(mdp.n_states), mdp.discount / (1.0 - mdp.discount)
    for _ in range(10):
        V = centred(V, whole_sweep(mdp, reward, V), shift)[0]
    stacked, first = Stacked(mdp), True
    while True:
        V = V if first else _sweeps(mdp, reward, V, 10)
        residual = whole_sweep(mdp, reward, V) - V
        if np.abs(residual).max() <= 8 * EPS * np.abs(V).max():
            return V
        A = stacked.identity_minus(mdp.discount, soft_maximum(q_values(mdp, reward, V))[1])
        V, first = V + column_by_column(A, residual[:, None])[:, 0], False


def _sweeps(mdp: rv.MDP, reward: np.ndarray, V: np.ndarray, times: int) -> np.ndarray:
    for _ in range(times):
        V = whole_sweep(mdp, reward, V)
    return V


class JacobiOnly(KrylovSolver):
    """Without the chain on groups of states."""

    coarse = None  # pyright: ignore[reportAssignmentType]


class Unsaid:
    """A given π̃ that does not say so: a solve and an adjoint for every θ."""

    moves = False

    def __init__(self, own: GivenPolicy) -> None:
        self.soft_value = own.soft_value


def symmetric_order(A: sp.csr_array, b: np.ndarray) -> np.ndarray:
    """A factorisation ordered as if every move could be taken back."""
    transposed = sp.csc_array((A.data, A.indices, A.indptr), shape=A.shape)
    options = {"SymmetricMode": True}
    lu: Any = spla.splu(transposed, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, panel_size=4, options=options)
    return lu.solve(b, trans="T")


def factor_every_policy(mdp: rv.MDP, reward: np.ndarray) -> np.ndarray:
    """The hard optimum: greedy after ten sweeps, then policy iteration with an exact value for each policy."""
    V, rows = np.zeros(mdp.n_states), np.arange(mdp.n_states)
    r = reward - 0.5 * (reward.max() + reward.min())
    for _ in range(10):
        V = q_values(mdp, r, V).max(axis=1)
    choice = q_values(mdp, r, V).argmax(axis=1)
    while True:
        V = rv.Chain(mdp, one_hot(mdp, choice), check=False).solve(r[rows, choice])
        Q = q_values(mdp, r, V)
        better = Q.max(axis=1) > Q[rows, choice] + 64 * EPS * (np.abs(V).max() + np.abs(r).max())
        if not better.any():
            return V + (reward[0, 0] - r[0, 0]) / (1.0 - mdp.discount)
        choice = np.where(better, Q.argmax(axis=1), choice)


# ------------------------------------------------------------------------------------------------------- in turns


def in_turns(what: str, before: Act, after: Act, note: str = "", times: int = 5) -> Row:
    """Both ways, one after the other, until they have had their turns or the time is up; the best of each is kept."""
    found: dict[str, Any] = {}
    seconds: dict[str, list[float]] = {"before": [], "after": []}
    for _ in range(times):
        for name, act in (("before", before), ("after", after)):
            seconds[name].append(best_of(1, lambda name=name, act=act: found.update({name: act()})))
        if sum(map(sum, seconds.values())) > ENOUGH:
            break
    far = apart(found["before"], found["after"])
    if not far <= SAME:
        raise SystemExit(f"{what}: the two ways are {far:.1e} apart, so that their times mean nothing")
    told = "the same numbers" if far == 0.0 else f"{far:.0e} apart"
    print(f"measured: {what}", file=sys.stderr)
    return Row(what, min(seconds["after"]), dense=min(seconds["before"]), note=f"{note}; {told}" if note else told)


def apart(a: Any, b: Any) -> float:
    """The largest difference, relative to the size of the numbers; matrices entry by entry."""
    if isinstance(a, sp.csr_array):
        return float(abs(a - b).max() / abs(a).max())
    pairs = list(zip(a, b, strict=True)) if isinstance(a, tuple) else [(a, b)]
    return max(float(np.abs(np.subtract(x, y)).max() / np.abs(x).max()) for x, y in pairs)


def normal(*shape: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


# ----------------------------------------------------------------------------------------------------- the rows


def sweep_rows(side: int) -> Iterator[Row]:
    """What a sweep and its matrices cost on a grid too large for any cache."""
    mdp = grid(side, side, 0.99)
    where, reward, V = f"grid of {in_powers(side * side)} states", normal(*mdp.feasible.shape), normal(mdp.n_states)
    T = mdp.transitions.matrix
    ways = partial(operator.matmul, wide(T), V), partial(operator.matmul, T, V)
    yield in_turns(f"T V, {where}", *ways, "indices of eight bytes; of four")
    ways = partial(whole_sweep, mdp, reward, V), partial(sweep, mdp, reward, V)
    with one_core():
        yield in_turns(f"a soft sweep, {where}, one core", *ways, "whole tables; blocks in the cache")
    yield in_turns(f"the same, {cores()} cores", *ways, "whole tables, one thread; blocks side by side")
    stacked, policy = Stacked(mdp), soft_maximum(reward)[1]
    yield in_turns(
        f"I − γT^π, {where}",
        lambda: stacked.identity_minus(0.99, policy),
        lambda: mdp.transitions.identity_minus(0.99, policy),
        "a sparse product; entries linear in π",
    )


def mixing_rows(size: int) -> Iterator[Row]:
    """A graph without locality, on which a chain forgets its start within a few steps."""
    mdp = garnet(size, 5, 5, seed=2, discount=0.99).mdp
    where, reward = f"random graph of {in_powers(size)} states, γ = 0.99", normal(*mdp.feasible.shape)
    spans = partial(by_the_span, mdp, reward)
    yield in_turns(f"sweeps, {where}", partial(by_the_norm, mdp, reward), spans, "stopped on the norm; on the span", 3)
    ways = partial(newton, mdp, reward), partial(cold_start, mdp, reward)
    yield in_turns(f"soft optimum, {where}", *ways, "systems by BiCGSTAB; systems swept", 3)
    hard = partial(factor_every_policy, mdp, reward), lambda: solve_hard(mdp, reward).value
    yield in_turns(f"hard optimum, {where}", *hard, "policies evaluated exactly; by sweeps", 3)
    A, B = mdp.transitions.identity_minus(0.99, mdp.uniform_policy()), normal(size, 8)
    solver = KrylovSolver(A, mdp.structure)
    yield in_turns(
        f"eight systems, {where}", lambda: column_by_column(A, B), lambda: solver.solve(B), "one by one; at once", 3
    )


def local_rows(side: int) -> Iterator[Row]:
    """A grid, on which news travels one move at a time."""
    mdp, b = grid(side, side, 0.9999), normal(side * side)
    where = f"grid of {in_powers(side * side)} states, γ = 0.9999"
    reward = normal(*mdp.feasible.shape)
    first, second = (soft_maximum(scale * reward)[1] for scale in (1.0, 1.05))
    A, near_by = (mdp.transitions.identity_minus(0.9999, policy) for policy in (first, second))
    plain, own = JacobiOnly(A, mdp.structure), KrylovSolver(A, mdp.structure)
    own.solve(b)  # the groups of states and the coarse chain are there
    ways = partial(plain.solve, b), lambda: KrylovSolver(A, mdp.structure).solve(b)
    yield in_turns(f"a system, {where}", *ways, "BiCGSTAB without and with the coarse chain", 2)
    again = [partial(KrylovSolver, near_by, mdp.structure, near=near) for near in (None, own)]
    ways = (lambda make=make: make().solve(b, accuracy=1e-2) for make in again)
    yield in_turns_roughly(f"a Newton step of the next policy, {where}", near_by, b, *ways)


def in_turns_roughly(what: str, A: sp.csr_array, b: np.ndarray, before: Act, after: Act) -> Row:
    """Steps that need not be known well: what must agree is that both leave no more than a hundredth."""

    def small(x: np.ndarray) -> float:
        return float(np.linalg.norm(b - A @ x) <= 1e-2 * np.linalg.norm(b))

    row = in_turns(what, lambda: small(before()), lambda: small(after()))
    row.note = "a coarse chain of its own; that of the policy before; both leave a hundredth at most"
    return row


def factor_rows(side: int, bins: int, links: int) -> Iterator[Row]:
    mdp = grid(side, side, GAMMA)
    lu = LUSolver(mdp.transitions.identity_minus(GAMMA, mdp.uniform_policy()), mdp.structure)
    B, where = normal(mdp.n_states, 8), f"grid of {in_powers(side * side)} states"
    ways = partial(each_column, lu.solve, B), partial(lu.solve, B)
    yield in_turns(f"eight systems with one factorisation, {where}", *ways, "one by one; at once")
    for name, make in (
        (f"Mountain Car {bins}²", partial(mountain_car, bins)),
        (f"a city of {links:,} links", partial(city, links)),
    ):
        model = make().mdp.replace(discount=0.99)
        A, b = model.transitions.identity_minus(0.99, model.uniform_policy()), normal(model.n_states)
        ways = partial(symmetric_order, A, b), partial(chosen_order, A, model.structure, b)
        yield in_turns(f"factor and solve, {name}", *ways, "minimum degree of A + Aᵀ; columns by COLAMD", 3)


def chosen_order(A: sp.csr_array, structure: Any, b: np.ndarray) -> np.ndarray:
    return LUSolver(A, structure).solve(b)


def hard_row(side: int) -> Row:
    mdp = grid(side, side, 0.99)
    reward = np.repeat((landmarks(side, side) @ true_theta())[:, None], mdp.n_actions, axis=1)
    ways = partial(factor_every_policy, mdp, reward), lambda: solve_hard(mdp, reward).value
    what = f"hard optimum, grid of {in_powers(side * side)} states, γ = 0.99"
    return in_turns(what, *ways, "a factorisation for every policy; sweeps, and few factorisations", 3)


def step_rows(side: int, horizon: int) -> Iterator[Row]:
    """Evaluations along a fit: value, gradient, and for Newton's method the Hessian, each at another θ."""
    world, features = grid(side, side), landmarks(side, side)
    table = np.repeat((features @ true_theta())[:, None], world.n_actions, axis=1)
    demos = rv.simulate(world, rv.solve(world, table).policy, n=side * side // 50, length=50, seed=3)
    linear, given = rv.LinearReward(features), GivenPolicy(world, world.uniform_policy())
    choices: tuple[Any, Any] = Unsaid(given), given
    ways = [walk(Objective(linear, [Case(world, demos.weights, way)]), hessian=True) for way in choices]
    what = f"CCP: value, gradient, Hessian at a new θ, grid of {in_powers(side * side)} states"
    yield in_turns(what, *ways, note="a solve and an adjoint for each; a logit in rows")
    small = grid(32, 32)
    long = small.unroll(horizon)
    rho = normal(*long.feasible.shape) ** 2 * ~long.terminal[:, None]
    lifted = rv.LinearReward(long.lift(landmarks(32, 32)))
    ways = [walk(Objective(lifted, [Case(long, rho, OwnPolicy(long, solver))])) for solver in ("lu", "auto")]
    what = f"MCE-IRL gradient step, 32×32 grid, horizon {horizon}"
    yield in_turns(what, *ways, note="Newton on sparse LU; backward induction")


def walk(objective: Objective, hessian: bool = False) -> Act:
    """Each call goes to a θ a step further on, as an optimiser does; the first evaluation is made here."""
    theta = 0.9 * true_theta()
    place = iter(range(1, 1_000))

    def at(theta: np.ndarray) -> tuple[Any, ...]:
        point = objective.at(theta)
        return (point.value, point.gradient, *([point.hessian] if hessian else []))

    at(theta)
    return lambda: at(theta + RATE * next(place))


def in_powers(n: int) -> str:
    """10⁵ where it is about that, otherwise the number."""
    power = round(np.log10(n))
    return f"10{'⁰¹²³⁴⁵⁶⁷⁸⁹'[power]}" if abs(n - 10**power) < 0.01 * n else f"{n:,}"


def rows_of(quick: bool) -> Iterator[Row]:
    side = 100 if quick else 316
    yield from sweep_rows(side if quick else 1_000)
    with one_core():
        yield from mixing_rows(10_000 if quick else 100_000)
        yield from local_rows(side)
        yield from factor_rows(side, *((50, 2_000) if quick else (200, 20_000)))
        yield hard_row(side)
        yield from step_rows(side, 10 if quick else 50)


def about() -> list[str]:
    """The machine, and whether others were at work on it."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    busy = f"The machine was busy before the first row (load {load:.1f}): any figure may be off by a factor of two."
    return [machine(), *([busy] if load > BUSY else [])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller models")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--docs", action="store_true", help="put it into docs/performance.md")
    arguments = parser.parse_args()
    lines = about()
    rows = list(rows_of(arguments.quick))
    if arguments.docs:
        with redirect_stdout(io.StringIO()) as page:
            print_markdown(rows, lines, "before")
        write_docs("kernels", page.getvalue().strip())
    elif arguments.markdown:
        print_markdown(rows, lines, "before")
    else:
        print_table(rows, lines, TITLE, "before")


if __name__ == "__main__":
    main()
