"""Solve (I − γT^π) x = b and its transpose on a device: batched BiCGSTAB whose true residual decides (theory C1).

Columns are solved side by side in one loop. Inner iterations run in the placement's dtype; the residual b − A x is
always computed in float64, and x is corrected until it is at 1e-13 of b or at what rounding leaves. Where BiCGSTAB
stalls (long deterministic cycles, horizons) plain sweeps x ← b + γT^π x take over: A is an M-matrix, they never
diverge. Where those are too slow as well (a long walk without discount), the host's LU is asked, if its factors are
cheap. This file loads JAX: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from revealed.errors import SolverFailed, ValueDoesNotExist
from revealed.linear_solvers import (
    EPS,
    LOOSE,
    MOST_REFINED,
    MOST_STEPS,
    NEAR_ONE,
    NEVER_ENDS,
    SAMPLE,
    no_differences,
)
from revealed.transitions.layered import LayeredTransitions, solve_back, solve_onwards
from revealed.transitions.padded import PaddedTransitions, Rows

_Iteration = tuple[jax.Array, ...]
RTOL = 1e-13
RESTARTS = 6
MOST_PRODUCTS = 5_000
SWEEPS = 64  # between two looks at the residual, where sweeps take over
BLOCK = 1 << 27  # numbers in a block of columns that are solved side by side: 1 GB for each vector of an iteration
REACH = {"float64": 1e-12, "float32": 1e-5}  # how far one run of the inner iterations is trusted to get


def _norm(x: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.sum(x * x, axis=-1))


_norms = jax.jit(_norm)


@jax.jit
def _pushed(T: PaddedTransitions | LayeredTransitions, gamma: jax.Array, D: jax.Array) -> jax.Array:
    return gamma * T.push(D)


@jax.jit
def _inverse_diagonal(rows: Rows, gamma: jax.Array) -> jax.Array:
    return 1.0 / (1.0 - gamma * rows.diagonal())


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Solution:
    """x (K, S) with the true residual of A x = b, how large that is (K,), and how large x is."""

    x: jax.Array
    residual: jax.Array
    size: jax.Array
    length: jax.Array

    @classmethod
    def of(cls, rows: Rows, gamma: jax.Array, b: jax.Array, x: jax.Array) -> Solution:
        r = b - x + gamma * rows(x)
        return cls(x, r, _norm(r), _norm(x))

    def or_better(self, new: Solution) -> Solution:
        """Column by column the one with the smaller residual."""
        closer = jnp.isfinite(new.size) & (new.size < self.size)
        return jax.tree.map(lambda n, o: jnp.where(closer[:, None] if n.ndim == 2 else closer, n, o), new, self)

    def reached(self, goal: np.ndarray) -> np.ndarray:
        """(K,) bool. Rounding alone leaves a residual of about eps·‖x‖: nothing better can be asked for."""
        return np.asarray(self.size) <= np.maximum(goal, 64 * EPS * np.asarray(self.length))


@jax.jit
def _begin(rows: Rows, gamma: jax.Array, b: jax.Array, start: jax.Array | None) -> Solution:
    """From `start` in the columns where it is closer than zero, from zero elsewhere."""
    zero = Solution(jnp.zeros_like(b), b, _norm(b), jnp.zeros_like(b[:, 0]))
    return zero if start is None else zero.or_better(Solution.of(rows, gamma, b, start))


@partial(jax.jit, static_argnames="dtype")
def _correct(rows: Rows, gamma: Any, inverse: Any, b: Any, now: Solution, goal: Any, dtype: str) -> Solution:
    """x + A⁻¹ residual, the correction found in `dtype`. Residuals are scaled to one, for float32's sake, and rows by
    the diagonal of A: a state that mostly stays is no harder than others."""
    scale = jnp.where(now.size > 0.0, now.size, 1.0)
    aim = jnp.where(now.size > goal, jnp.maximum(0.5 * goal / scale, REACH[dtype]), jnp.inf)
    right = inverse * (now.residual / scale[:, None])
    step = bicgstab(rows.onwards(gamma, inverse, dtype), right.astype(dtype), aim.astype(dtype))
    return now.or_better(Solution.of(rows, gamma, b, now.x + scale[:, None] * step.astype(b.dtype)))


@jax.jit
def _sweep(rows: Rows, gamma: jax.Array, b: jax.Array, now: Solution) -> Solution:
    x = jax.lax.fori_loop(0, SWEEPS, lambda _, x: b + gamma * rows(x), now.x)
    return now.or_better(Solution.of(rows, gamma, b, x))


def bicgstab(onwards: Rows, b: jax.Array, goal: jax.Array) -> jax.Array:
    """x with (I − M̂) x ≈ b from zero, b (K, S): each column stops at its goal (K,), or where it breaks down.

    A column that has stopped, or whose next step is not a number, takes steps of length zero.
    """

    def dot(u: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.sum(u * v, axis=-1, keepdims=True)

    def apply(u: jax.Array) -> jax.Array:
        u = jax.lax.optimization_barrier(u)  # what is gathered is stored first, not computed at every place
        return u - onwards(u)

    def step(state: _Iteration) -> _Iteration:
        k, x, r, p, v, rho, beta, omega, active = state
        p = r + beta * (p - omega * v)
        v = apply(p)
        alpha = _or_zero(rho / dot(b, v), active)
        s = r - alpha * v
        t = apply(s)
        omega = _or_zero(dot(t, s) / dot(t, t), active)
        x, r = x + alpha * p + omega * s, s - omega * t
        new = dot(b, r)
        beta = _or_zero((new / rho) * (alpha / omega), active)
        active = active & (dot(r, r) > goal[:, None] ** 2) & (alpha != 0.0) & (omega != 0.0)
        return k + 1, x, r, p, v, new, beta, omega, active

    zero, nothing = jnp.zeros_like(b), jnp.zeros((b.shape[0], 1), dtype=b.dtype)
    start = (jnp.asarray(0), zero, b, zero, zero, dot(b, b), nothing, nothing, (_norm(b) > goal)[:, None])
    return jax.lax.while_loop(lambda state: (state[0] < MOST_PRODUCTS // 2) & state[-1].any(), step, start)[1]


def _or_zero(x: jax.Array, active: jax.Array) -> jax.Array:
    return jnp.where(active & jnp.isfinite(x), x, 0.0)


def solve_rows(
    rows: Rows, gamma: jax.Array, inverse: jax.Array, b: jax.Array, start: jax.Array | None, dtype: str, rtol: float
) -> jax.Array:
    """(I − γM)⁻¹ b for M = `rows` and b (K, S), to `rtol` of ‖b‖ in every column."""
    now = _begin(rows, gamma, b, start)
    whole = np.asarray(now.size if start is None else _norms(b))
    goal = rtol * whole
    steps = {inner: partial(_correct, rows, gamma, inverse, b, goal=goal, dtype=inner) for inner in (dtype, "float64")}
    for act in steps.values():
        now = _repeat(act, now, goal, RESTARTS, slowest=0.5)
    now = _repeat(partial(_sweep, rows, gamma, b), now, goal, 4 * MOST_PRODUCTS // SWEEPS, slowest=0.99)
    if now.reached(goal).all():
        return now.x
    worst = float(np.max(np.asarray(now.size) / np.maximum(whole, np.finfo(float).tiny)))
    raise SolverFailed(
        f'the Krylov solver stopped at a relative residual of {worst:.1e}. Use mdp.to("host"), or a smaller discount.'
    )


def _repeat(act: Callable[..., Solution], now: Solution, goal: np.ndarray, most: int, slowest: float) -> Solution:
    """Act until every column is there, or one that is not shrinks its residual by less than `slowest`."""
    for _ in range(most):
        there = now.reached(goal)
        if there.all():
            break
        before = np.asarray(now.size)
        now = act(now=now)
        if not np.all(there | now.reached(goal) | (np.asarray(now.size) < slowest * before)):
            break
    return now


@jax.jit
def typical(going: jax.Array, x: jax.Array) -> jax.Array:
    """The median of some entries of x (…, S), among states that go on: see `levels.typical`."""
    step = -(-x.shape[-1] // SAMPLE)
    return jnp.nanmedian(jnp.where(going, x, jnp.nan)[..., ::step], axis=-1)


@jax.jit
def less(going: jax.Array, x: jax.Array, level: jax.Array) -> jax.Array:
    """x (…, S) with a level (…) off the states that go on."""
    return jnp.where(going, x - level[..., None], 0.0)


@jax.jit
def _split(going: jax.Array, gamma: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """x without its level, and what that is worth a step."""
    level = typical(going, x)
    return less(going, x, level), (1.0 - gamma) * level


@jax.jit
def _left(rows: Rows, gamma: Any, going: Any, b: Any, h: Any, g: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What is left of (I − γM)h = b − g with the level of it put into g, that g, and how many times rounding it is."""
    left = less(going, b, g) - (h - gamma * rows(h))
    low, high = jnp.where(going, left, jnp.inf).min(axis=-1), jnp.where(going, left, -jnp.inf).max(axis=-1)
    left, g = less(going, left, 0.5 * (low + high)), g + 0.5 * (low + high)
    goal = 8 * EPS * (jnp.abs(h).max(axis=-1) + jnp.abs(less(going, b, g)).max(axis=-1)) + EPS * jnp.abs(b).max(axis=-1)
    return left, g, jnp.abs(left).max(axis=-1) / jnp.maximum(goal, jnp.finfo(b.dtype).tiny)


@jax.jit
def _lifted(rows: Rows, gamma: Any, going: Any, b: Any, start: Any, level: Any) -> jax.Array:
    """`start`, which has no level, with the one that it needs to solve for b less `level`."""
    g = _left(rows, gamma, going, b, start, level)[1]
    return less(going, start, (level - g) / (1.0 - gamma))


@jax.jit
def _weighed(weights: jax.Array, x: jax.Array) -> jax.Array:
    return (weights * x).sum(axis=-1)


@jax.jit
def _with_total(visits: jax.Array, x: jax.Array, total: Any) -> jax.Array:
    return x + visits * jnp.asarray(total - x.sum(axis=-1))[..., None]


class Rescue(Protocol):
    """Another way to solve, for b (K, S) on the device, where iterations stall."""

    def solve(self, b: jax.Array) -> jax.Array: ...
    def solve_transpose(self, b: jax.Array) -> jax.Array: ...


class DeviceChain:
    """One policy's chain on a device: T^π merged once, then solved with and with its transpose, states last.

    At γ = 1 the chain must end: the expected number of steps is computed first, and a `ValueDoesNotExist` is raised
    where there is none. `rescue` makes another solver, for systems on which the iterations stall.
    """

    def __init__(
        self,
        transitions: PaddedTransitions,
        gamma: jax.Array,
        policy: jax.Array,
        going: jax.Array,
        dtype: str = "float64",
        rescue: Callable[[], Rescue | None] = lambda: None,
        endless: bool = False,
    ) -> None:
        self._transitions, self.gamma, self.going, self.dtype = transitions, gamma, going, dtype
        self._make_rescue, self.endless = rescue, endless
        with jax.enable_x64(True):
            self.rows = transitions.merge(policy)
            self._inverse = _inverse_diagonal(self.rows, gamma)
            if float(gamma) == 1.0:
                self._require_end()

    @cached_property
    def back(self) -> Rows:
        """The transpose of T^π."""
        return self._transitions.merge_back(self.rows)

    @cached_property
    def _rescue(self) -> Rescue | None:
        return self._make_rescue()

    def solve(self, b: jax.Array, start: jax.Array | None = None, rtol: float = RTOL) -> jax.Array:
        """(I − γT^π)⁻¹ b for b of shape (S,) or (K, S), from `start` where that is closer than zero."""
        with jax.enable_x64(True):
            return self._apply("solve", b, start, rtol)

    def solve_transpose(self, b: jax.Array, start: jax.Array | None = None, rtol: float = RTOL) -> jax.Array:
        """(I − γT^π)^{-T} b for b of shape (S,) or (K, S), from `start` where that is closer than zero."""
        with jax.enable_x64(True):
            return self._apply("solve_transpose", b, start, rtol)

    def solve_relative(self, b: jax.Array, start: jax.Array | None = None) -> tuple[jax.Array, jax.Array]:
        """h and g with (I − γT^π)h = b − g where nothing ends, the solution and zero elsewhere (theory B5): as on the
        host, see `chain.Chain.solve_relative`."""
        if b.ndim == 1:
            h, g = self.solve_relative(b[None], None if start is None else start[None])
            return h[0], g[0]
        with jax.enable_x64(True):
            if not self.endless:
                return self._apply("solve", b, start, RTOL), jnp.zeros(b.shape[0])
            level = _weighed(self._visits, b) if self._near_one else typical(self.going, b)
            if start is not None:
                start = _lifted(self.rows, self.gamma, self.going, b, start, level)
            h, g = _split(self.going, self.gamma, self._apply("solve", less(self.going, b, level), start, RTOL))
            return self._refined(b, h, g + level) if self._near_one else (h, g + level)

    def step(self, b: jax.Array, rtol: float) -> jax.Array:
        """`solve` for a step of Newton's method: see `chain.Chain.step`."""
        with jax.enable_x64(True):
            b = less(self.going, b, _weighed(self._visits, b)) if self._near_one else b
            return self._apply("solve", b, None, rtol)

    @cached_property
    def _near_one(self) -> bool:
        return self.endless and 1.0 - float(self.gamma) < NEAR_ONE

    def _refined(self, b: jax.Array, h: jax.Array, g: jax.Array) -> tuple[jax.Array, jax.Array]:
        before = worst = np.inf
        for _ in range(MOST_REFINED):
            left, g, excess = _left(self.rows, self.gamma, self.going, b, h, g)
            worst = float(excess.max())
            if worst <= 1.0 or not worst <= 0.5 * before:
                break
            step, more = _split(self.going, self.gamma, self._apply("solve", left, None, RTOL))
            h, g, before = h + step, g + more, worst
        if not worst <= LOOSE:
            raise no_differences(float(self.gamma))
        return h, g

    def solve_pairs(self, D: jax.Array, start: jax.Array | None = None) -> jax.Array:
        """(I − γT^π)^{-T} γTᵀD for weights D (A, S) of pairs that sum to zero in every state (theory G2); where nothing
        ends the solution sums to zero, too (B5)."""
        with jax.enable_x64(True):
            b = _pushed(self._transitions, self.gamma, D)
            x = self._apply("solve_transpose", b, start, RTOL)
            if not self._near_one:
                return x
            x = _with_total(self._visits, x, 0.0)
            left = b - (x - self.gamma * self.back(x))
            return _with_total(self._visits, x + self._apply("solve_transpose", left, None, RTOL), 0.0)

    @cached_property
    def _visits(self) -> jax.Array:
        """(S,): discounted visits from anywhere, as shares."""
        anywhere = jnp.where(self.going, 1.0, 0.0) / self.going.sum()
        visits = self._apply("solve_transpose", anywhere, None, RTOL)
        return visits / visits.sum()

    def _apply(self, way: str, b: jax.Array, start: jax.Array | None, rtol: float) -> jax.Array:
        """In blocks of columns: vectors of an iteration are many, and long columns fill the device one by one."""
        if b.ndim == 1:
            return self._apply(way, b[None], None if start is None else start[None], rtol)[0]
        wide = max(1, BLOCK // b.shape[1])
        if b.shape[0] <= wide:
            return self._block(way, b, start, rtol)
        pieces = range(0, b.shape[0], wide)
        parts = [(b[k : k + wide], None if start is None else start[k : k + wide]) for k in pieces]
        return jnp.concatenate([self._block(way, *part, rtol) for part in parts])

    def _block(self, way: str, b: jax.Array, start: jax.Array | None, rtol: float) -> jax.Array:
        rows = self.rows if way == "solve" else self.back
        try:
            return solve_rows(rows, self.gamma, self._inverse, b, start, self.dtype, rtol)
        except SolverFailed:
            if self._rescue is None:
                raise
        return getattr(self._rescue, way)(b)

    def _require_end(self) -> None:
        try:
            steps = self._apply("solve", jnp.where(self.going, 1.0, 0.0), None, RTOL)
        except SolverFailed as error:
            raise ValueDoesNotExist(NEVER_ENDS) from error
        most, least = float(steps.max()), float(jnp.where(self.going, steps, 1.0).min())
        if not (np.isfinite(most) and least > 0.0 and most < MOST_STEPS):
            raise ValueDoesNotExist(NEVER_ENDS)


class LayerChain:
    """The same for a policy on an unrolled horizon: passes over the layers, exact to rounding wherever they start."""

    def __init__(self, transitions: LayeredTransitions, gamma: jax.Array, policy: jax.Array) -> None:
        self._known = transitions, gamma, policy

    def solve(self, b: jax.Array, start: Any = None, rtol: float = RTOL) -> jax.Array:
        return self._apply(solve_back, b)

    def solve_transpose(self, b: jax.Array, start: Any = None, rtol: float = RTOL) -> jax.Array:
        return self._apply(solve_onwards, b)

    def solve_relative(self, b: jax.Array, start: Any = None) -> tuple[jax.Array, jax.Array]:
        """The solution and zero: a horizon ends."""
        with jax.enable_x64(True):
            return self.solve(b), jnp.zeros(b.shape[:-1])

    def solve_pairs(self, D: jax.Array, start: Any = None) -> jax.Array:
        T, gamma, _ = self._known
        with jax.enable_x64(True):
            return self.solve_transpose(_pushed(T, gamma, D))

    def _apply(self, way: Callable[..., jax.Array], b: jax.Array) -> jax.Array:
        with jax.enable_x64(True):
            return way(*self._known, b[None])[0] if b.ndim == 1 else way(*self._known, b)
