"""How far each kernel is from the machine's limit: bytes that must be moved, per second, beside the copy bandwidth.

The least that a kernel must do is to read each of its inputs once and to write each of its outputs once. Those bytes
over its seconds are its bandwidth; what it moves besides, such as temporaries, lowers it. The limit is that of copying
a large array (bytes read and bytes written), on one thread as the kernels are but for one: a sweep goes block by block
on all cores, and is timed on one of them, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import bench_core  # first: it sets the thread counts

# isort: split
import numpy as np
import scipy.sparse as sp
from scaling_points import FEATURES, kernel, make_grid
from scaling_tables import Table, as_markdown, in_powers, in_seconds

import revealed as rv
from revealed.parallel import cores

SIZE, FACTORED = 1_000_000, 100_000  # states of the grid; of the one whose factors are used
DISCOUNT, REPEATS = 0.99, 5
COPIED = 400_000_000  # bytes: far more than any cache holds


@dataclass(frozen=True)
class Kernel:
    """One kernel: what it does, the bytes that it must move, the seconds that it takes."""

    name: str
    moved: int
    seconds: float
    note: str = ""

    @property
    def rate(self) -> float:
        return self.moved / self.seconds


class Copies:
    """The limit: copying one large array to another.

    Each kernel is timed in turns with a copy, since a machine that others use is not always as fast.
    """

    def __init__(self) -> None:
        self.source = np.ones(COPIED // 8)
        self.target = np.zeros_like(self.source)  # its pages are touched before the clock runs
        self.rates: list[float] = []

    def once(self) -> None:
        seconds = bench_core.best_of(1, lambda: np.copyto(self.target, self.source))
        self.rates.append(2 * self.source.nbytes / seconds)

    @property
    def limit(self) -> float:
        """Bytes per second, read and written."""
        return max(self.rates)

    @property
    def disturbed(self) -> str:
        """What to say where a third of the copies ran at less than two thirds of the limit."""
        slow = sum(rate < 2.0 * self.limit / 3.0 for rate in self.rates)
        if 3 * slow < len(self.rates):
            return ""
        fastest, typical = self.limit / 1e9, float(np.median(self.rates)) / 1e9
        return f"The machine was busy: the fastest copy ran at {fastest:.1f} GB/s, a typical one at {typical:.1f}."


def bytes_of(*parts: Any) -> int:
    """Of arrays and sparse matrices together."""
    arrays = [[p.data, p.indices, p.indptr] if isinstance(p, sp.csr_array) else [p] for p in parts]
    return sum(array.nbytes for group in arrays for array in group)


class Clock:
    """Times kernels and copies in turns."""

    def __init__(self) -> None:
        self.copies = Copies()

    def seconds(self, act: Callable[[], Any], repeats: int = REPEATS) -> float:
        best = np.inf
        for _ in range(repeats):
            self.copies.once()
            best = min(best, bench_core.best_of(1, act))
        return best

    def time(self, name: str, act: Callable[[], Any], *moved: Any, note: str = "") -> Kernel:
        act()  # what is made once and kept is made now
        return Kernel(name, bytes_of(*moved), self.seconds(act), note)


def sweep_kernels(clock: Clock, mdp: rv.MDP, reward: np.ndarray) -> Iterator[Kernel]:
    """Those that every fixed point and every gradient is made of."""
    rng = np.random.default_rng(0)
    T, V = mdp.transitions, rng.normal(size=mdp.n_states)
    Q, log_sum_exp = kernel("q_values")(mdp, reward, V), kernel("log_sum_exp")
    yield clock.time("T V (`expect`)", lambda: T.expect(V), T.matrix, V, Q)
    block = rng.normal(size=(mdp.n_states, FEATURES))
    wide = np.broadcast_to(Q[..., None], (*Q.shape, FEATURES))
    yield clock.time(f"T V, {FEATURES} columns", lambda: T.expect(block), T.matrix, block, wide)
    yield from fused_kernels(clock, mdp, reward, V)
    yield clock.time("`log_sum_exp` of a whole table", lambda: log_sum_exp(Q), Q, V)
    yield clock.time("softmax (`soft_maximum`)", lambda: kernel("soft_maximum")(Q), Q, V, Q, Q, note="V, π and log π")
    yield clock.time("Tᵀ d (`push`)", lambda: T.push(Q), T.matrix, Q, V)


def fused_kernels(clock: Clock, mdp: rv.MDP, reward: np.ndarray, V: np.ndarray) -> Iterator[Kernel]:
    """A sweep, block by block: Q never leaves the cache and is no output. On one thread, then on all cores."""
    sweep, moved = kernel("sweep"), (mdp.transitions.matrix, reward, V, V)
    with patch("revealed.sweeps.cores", lambda: 1):
        yield clock.time("soft sweep (`sweep`), one thread", lambda: sweep(mdp, reward, V), *moved)
    if cores() > 1:
        note = "beside a copy on one thread"
        yield clock.time(f"soft sweep, {cores()} threads", lambda: sweep(mdp, reward, V), *moved, note=note)


def chain_kernels(clock: Clock, mdp: rv.MDP) -> Iterator[Kernel]:
    """Those of one policy's chain; the factors are those of a smaller grid."""
    policy, T = mdp.uniform_policy(), mdp.transitions
    A = T.identity_minus(mdp.discount, policy)
    x = np.random.default_rng(1).normal(size=mdp.n_states)
    note = "entries of T^π out; the pattern is made once"
    yield clock.time(
        "I − γT^π (`identity_minus`)",
        lambda: T.identity_minus(mdp.discount, policy),
        T.matrix,
        policy,
        A.data,
        note=note,
    )
    yield clock.time("one product of a Krylov method, A x", lambda: A @ x, A, x, x)
    yield from krylov_kernel(clock, mdp, x, bytes_of(A, x, x))


def krylov_kernel(clock: Clock, mdp: rv.MDP, x: np.ndarray, moved: int) -> Iterator[Kernel]:
    """A whole solve, per product that its solver counts: vector operations and preconditioning included."""
    chain = rv.Chain(mdp, mdp.uniform_policy(), "krylov")
    chain.solve(x)  # what is made once is made now
    counted = inner(chain, "products")
    if counted:
        seconds = clock.seconds(lambda: chain.solve(x), 1)
        note = f"{counted} products in {in_seconds(seconds)}"
        yield Kernel("a Krylov solve, per product", moved, seconds / counted, note)


def factor_kernel(clock: Clock, mdp: rv.MDP) -> Iterator[Kernel]:
    """L and U are read once each: a number and an index per entry."""
    chain = rv.Chain(mdp, mdp.uniform_policy(), "lu")
    x = np.random.default_rng(2).normal(size=mdp.n_states)
    entries = inner(chain, "_lu", "nnz")
    if entries:
        moved = 12 * entries + 2 * x.nbytes
        note = f"{in_powers(FACTORED)} states, {entries / 1e6:.1f} million entries in L and U"
        for name, act in (("L and U", chain.solve), ("L and U, transposed", chain.solve_transpose)):
            seconds = clock.seconds(lambda act=act: act(x))
            yield Kernel(f"triangular solves, {name}", moved, seconds, note)


def inner(chain: rv.Chain, *names: str) -> int:
    """A number inside the chain's solver; 0, said aloud, where solvers are written otherwise."""
    found: Any = getattr(chain, "_solver", None)
    for name in names:
        found = getattr(found, name, None)
    if found is None:
        print(f"no row for the solver whose {'.'.join(names)} is not found", file=sys.stderr)
    return int(found or 0)


def measure() -> tuple[Copies, list[Kernel]]:
    clock, model = Clock(), make_grid(SIZE)
    mdp = model.mdp(DISCOUNT)
    reward = np.repeat(model.features @ model.truth[:, None], mdp.n_actions, axis=1)
    kernels = [*sweep_kernels(clock, mdp, reward), *chain_kernels(clock, mdp)]
    return clock.copies, [*kernels, *factor_kernel(clock, make_grid(FACTORED).mdp(DISCOUNT))]


def table_of(limit: float, kernels: list[Kernel]) -> Table:
    heads = ["kernel", "bytes that must be moved", "seconds", "GB/s", "of the copy bandwidth", "note"]
    rows = []
    for k in (Kernel("copy of a large array", 2 * COPIED, 2 * COPIED / limit), *kernels):
        share = f"{100 * k.rate / limit:.0f} %"
        rows.append([k.name, f"{k.moved / 1e6:,.0f} MB", in_seconds(k.seconds), f"{k.rate / 1e9:.2f}", share, k.note])
    return heads, rows


def report(markdown: bool, write: Callable[[str], None] | None) -> None:
    """Measure, print, and hand the Markdown to `write` where one is given."""
    copies, kernels = measure()
    table = table_of(copies.limit, kernels)
    lines = [line for line in (bench_core.machine(), copies.disturbed) if line]
    text = "\n".join([as_markdown(table), "", *lines])
    if markdown:
        print(text)
    else:
        from scaling_picture import print_table

        print_table(table, f"Grid of {in_powers(SIZE)} states, five actions, γ = {DISCOUNT:g}, one thread if not said")
    if write is not None:
        write(text)
