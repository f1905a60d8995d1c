"""Transitions on a device (JAX): every state has the same number of successors, states are the last axis (theory M1).

What `csr.py` does on the host, in a form that accelerators like: rows of one width (`padding.py`), every sum over
actions and successors written out, so that XLA fuses a whole sweep into one loop over states. Transposes are gathers
as well, through a table of predecessors: nothing depends on the order in which threads add. Everything here is pure
and may be used inside `jax.jit`; callers hold `jax.enable_x64(True)`. This file loads JAX: import it inside functions.

Rows may be spread over devices. What rows ask for (values of any state) is then gathered on every device first, which
is one number per state; the probabilities, which are many, stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from revealed.errors import InvalidTransitions
from revealed.transitions.padding import pad_rows, table_width, tree_of_sums

FEW = 64  # sums of more terms than this are loops: compiling a longer expression takes too long
SMALL = 1 << 11  # states up to which sums are one gather and one reduction: quick to compile, slow to run
MOST_PLACES = 2**31 - 1
STATIC = {"static": True}  # part of what is compiled, not an array
Sharding = Any
Put = Callable[[Any], Any]


def everywhere(x: jax.Array, sharding: Sharding | None) -> jax.Array:
    """The whole array on every device; as it is where there is one."""
    if sharding is None:
        return x
    whole = jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec())
    return jax.lax.with_sharding_constraint(x, whole)


def pick(x: jax.Array, index: jax.Array) -> jax.Array:
    """x[..., index] for places that are there: nothing is checked, nothing counts from the end."""
    return x.at[..., index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def add_up(n: int, term: Callable[[Any], jax.Array], at_once: bool) -> jax.Array:
    """Σ_j term(j) over arrays (…, S). `at_once` asks for all terms as one array (…, n, S) by `term(slice(None))`;
    otherwise they are written out where they are few, so that XLA fuses them, and a loop where they are many."""
    if at_once and n <= FEW:
        return term(slice(None)).sum(axis=-2)
    if n <= FEW:
        total = term(0)
        for j in range(1, n):
            total = total + term(j)
        return total
    return jax.lax.fori_loop(1, n, lambda j, total: total + term(j), term(0))


@partial(jax.tree_util.register_dataclass)
@dataclass(frozen=True)
class LongEntries:
    """What the table is too narrow for: entries of few rows, in runs. `state` is where each leads, `owner` its row."""

    state: jax.Array
    owner: jax.Array
    rows: jax.Array
    levels: tuple[jax.Array, ...]

    @classmethod
    def of(cls, owner: np.ndarray, state: np.ndarray) -> LongEntries | None:
        """`owner` never decreases; None where there is no entry."""
        if owner.size == 0:
            return None
        rows, lengths = np.unique(owner, return_counts=True)
        levels = tuple(jnp.asarray(level) for level in tree_of_sums(lengths))
        as_int = partial(jnp.asarray, dtype=jnp.int32)
        return cls(as_int(state), as_int(owner), as_int(rows), levels)

    def add(self, y: jax.Array, values: jax.Array) -> jax.Array:
        """y(row) + Σ values of its entries; values are (…, n)."""
        for level in self.levels:
            values = jnp.concatenate([values, jnp.zeros_like(values[..., :1])], axis=-1)
            values = pick(values, level).sum(axis=-2)
        return y.at[..., self.rows].add(values, unique_indices=True, indices_are_sorted=True)


@partial(jax.tree_util.register_dataclass)
@dataclass(frozen=True)
class Rows:
    """A sparse (S, S) matrix M by rows: `index` and `weight` are (W, S)."""

    index: jax.Array
    weight: jax.Array
    long: LongEntries | None = None
    long_weight: jax.Array | None = None
    sharding: Sharding | None = field(default=None, metadata=STATIC)
    at_once: bool = field(default=True, metadata=STATIC)

    def __call__(self, x: jax.Array) -> jax.Array:
        """M x for x of shape (…, S)."""
        x = everywhere(x, self.sharding)
        y = add_up(self.index.shape[0], lambda j: self.weight[j] * pick(x, self.index[j]), self.at_once)
        if self.long is None or self.long_weight is None:
            return y
        return self.long.add(y, self.long_weight * pick(x, self.long.state))

    def diagonal(self) -> jax.Array:
        """(S,): what leads from a state to itself."""
        here = jnp.arange(self.index.shape[1], dtype=self.index.dtype)
        y = add_up(self.index.shape[0], lambda j: jnp.where(self.index[j] == here, self.weight[j], 0.0), self.at_once)
        if self.long is None or self.long_weight is None:
            return y
        return self.long.add(y, jnp.where(self.long.state == self.long.owner, self.long_weight, 0.0))

    def onwards(self, gamma: jax.Array, inverse: jax.Array, dtype: Any) -> Rows:
        """M̂ = D⁻¹(γM − its diagonal), for D = 1 − γ times that diagonal and `inverse` = D⁻¹: I − M̂ = D⁻¹(I − γM)."""
        here = jnp.arange(self.index.shape[1], dtype=self.index.dtype)
        weight = jnp.where(self.index == here, 0.0, self.weight) * (gamma * inverse)
        if self.long is None or self.long_weight is None:
            return replace(self, weight=weight.astype(dtype))
        long = jnp.where(self.long.state == self.long.owner, 0.0, self.long_weight)
        long = long * gamma * pick(inverse, self.long.owner)
        return replace(self, weight=weight.astype(dtype), long_weight=long.astype(dtype))


@partial(jax.tree_util.register_dataclass)
@dataclass(frozen=True)
class Predecessors:
    """Who leads to a state: `place` (W', S) are positions in the flat (W, S) table of successors, −1 for none.

    `long_place` are positions in that table followed by its long entries, in the order of `long`.
    """

    place: jax.Array
    index: jax.Array
    long: LongEntries | None
    long_place: jax.Array | None

    def weights(self, table: jax.Array, long: jax.Array | None) -> tuple[jax.Array, jax.Array | None]:
        """The weights (W', S) and of long entries, out of those of the successors."""
        flat = table.reshape(-1)
        inside = jnp.where(self.place >= 0, pick(flat, jnp.maximum(self.place, 0)), 0.0)
        if self.long_place is None:
            return inside, None
        n = flat.shape[0]
        outside = flat[jnp.minimum(self.long_place, n - 1)]
        if long is not None:
            outside = jnp.where(self.long_place < n, outside, long[jnp.maximum(self.long_place - n, 0)])
        return inside, outside


@partial(jax.tree_util.register_dataclass)
@dataclass(frozen=True)
class PaddedTransitions:
    """T as an operator on a device; the layouts of `index` and `p` are those of `padding.PaddedRows`."""

    index: jax.Array
    p: jax.Array | None
    back: Predecessors
    long: LongEntries | None = None
    long_p: jax.Array | None = None
    n_actions: int = field(default=1, metadata=STATIC)
    sharding: Sharding | None = field(default=None, metadata=STATIC)
    at_once: bool = field(default=True, metadata=STATIC)

    @classmethod
    def from_csr(
        cls, matrix: sp.csr_array, n_actions: int, n_padded: int, put: Put, sharding: Sharding | None = None
    ) -> PaddedTransitions:
        """From the host's rows s·A + a; states beyond those of `matrix` are padding. `put` brings (…, S) there."""
        rows = pad_rows(matrix, n_actions, n_padded)
        long = LongEntries.of(rows.long_row, rows.long_index)
        back = find_predecessors(rows.index, rows.p, long, put)
        p, long_p = None if rows.p is None else put(rows.p), None if long is None else jnp.asarray(rows.long_p)
        return cls(put(rows.index), p, back, long, long_p, n_actions, sharding, n_padded <= SMALL)

    @classmethod
    def from_tables(
        cls, index: jax.Array, p: jax.Array | None, n_actions: int, put: Put, sharding: Sharding | None = None
    ) -> PaddedTransitions:
        """From tables that are on the device already."""
        back, small = find_predecessors(index, p, None, put), index.shape[1] <= SMALL
        return cls(put(index), None if p is None else put(p), back, None, None, n_actions, sharding, small)

    @property
    def n_states(self) -> int:
        """States and padding."""
        return self.index.shape[1]

    @property
    def shared(self) -> bool:
        """Whether the actions of a state share one list of successors."""
        return self.p is not None and self.p.ndim == 3

    def each_action(self, V: jax.Array) -> list[jax.Array]:
        """(T V)(·, a), one array (…, S) per action: what a fused sweep wants. Infeasible pairs hold anything."""
        A, V = self.n_actions, everywhere(V, self.sharding)
        if self.p is None:
            out = [pick(V, self.index[a]) for a in range(A)]
        elif self.shared:
            out = self._each_shared(V, self.p)
        else:
            out = self._each_own(V, self.p)
        if self.long is None or self.long_p is None:
            return out
        seen = pick(V, self.long.state)
        return [self.long.add(y, self.long_p[a] * seen) for a, y in enumerate(out)]

    def _each_shared(self, V: jax.Array, p: jax.Array) -> list[jax.Array]:
        A, W, _ = p.shape
        if self.at_once or W > FEW:
            stacked = add_up(W, lambda j: p[:, j] * pick(V[..., None, :], self.index[j]), self.at_once)
            return [stacked[..., a, :] for a in range(A)]
        seen = [pick(V, self.index[j]) for j in range(W)]  # once for all actions
        return [add_up(W, lambda j, a=a: p[a, j] * seen[j], False) for a in range(A)]

    def _each_own(self, V: jax.Array, p: jax.Array) -> list[jax.Array]:
        B, S = self.index.shape[0] // self.n_actions, self.n_states
        index, p = self.index.reshape(-1, B, S), p.reshape(-1, B, S)
        return [add_up(B, lambda b, a=a: p[a, b] * pick(V, index[a, b]), self.at_once) for a in range(self.n_actions)]

    def expect(self, V: jax.Array) -> jax.Array:
        """(T V)(s, a) of V (…, S) as (…, A, S)."""
        return jnp.stack(self.each_action(V), axis=-2)

    def _merged(self, d: jax.Array) -> tuple[jax.Array, jax.Array | None]:
        """Σ_a d(a, s) T(s'|s, a), one weight per listed successor (W, S), and those of long entries."""
        A = self.n_actions
        if self.p is None:
            table = d
        elif self.shared:
            p = self.p
            table = add_up(A, lambda a: d[a] * p[a], False)
        else:
            table = jnp.repeat(d, self.index.shape[0] // A, axis=0) * self.p
        if self.long is None or self.long_p is None:
            return table, None
        return table, (d[:, self.long.owner] * self.long_p).sum(axis=0)

    def push(self, d: jax.Array) -> jax.Array:
        """(Tᵀ d)(s') = Σ_{s,a} T(s'|s,a) d(a, s), for d (A, S): the adjoint of `expect`."""
        table, long = self._merged(d)
        inside, outside = self.back.weights(everywhere(table, self.sharding), long)
        y = inside.sum(axis=0)
        return y if self.back.long is None or outside is None else self.back.long.add(y, outside)

    def merge(self, policy: jax.Array) -> Rows:
        """T^π for a policy (A, S): one weight per successor, so that products read each once."""
        table, long = _merge(self, policy)
        return Rows(self.index, table, self.long, long, self.sharding, self.at_once)

    def merge_back(self, rows: Rows) -> Rows:
        """The transpose of T^π = `rows`, by rows as well."""
        table, long = _turn(self.back, rows.weight, rows.long_weight, self.sharding)
        return Rows(self.back.index, table, self.back.long, long, self.sharding, self.at_once)


@jax.jit
def _merge(T: PaddedTransitions, policy: jax.Array) -> tuple[jax.Array, jax.Array | None]:
    return T._merged(policy)


@partial(jax.jit, static_argnames="sharding")
def _turn(back: Predecessors, table: jax.Array, long: jax.Array | None, sharding: Sharding | None) -> Any:
    return back.weights(everywhere(table, sharding), long)


def find_predecessors(index: Any, p: Any, long: LongEntries | None, put: Put) -> Predecessors:
    """The table of predecessors; those of hubs and those of long entries are long entries themselves."""
    require_positions(index.shape)
    host = isinstance(index, np.ndarray)  # tables of the host are sorted there: nothing has to be compiled
    order, count, start = by_target(np, index, p) if host else _by_target(index, p)
    lengths = np.asarray(count)
    width = table_width(lengths.astype(np.intp))
    tables = predecessor_table(np, order, count, start, width) if host else _table(order, count, start, width)
    place, source = (put(x) for x in tables)
    entries, position = _long_predecessors(order, lengths, np.asarray(start), width, index.shape, long)
    return Predecessors(place, source, entries, position)


def require_positions(shape: tuple[int, ...]) -> None:
    """Places of the table of successors are known by numbers of four bytes."""
    if shape[0] * shape[1] > MOST_PLACES:
        got = f"{shape[0]} × {shape[1]:,}"
        remedy = "Split the model, or drop successors with zero probability."
        raise InvalidTransitions("index", f"at most {MOST_PLACES:,} places, successors × states", got, remedy=remedy)


def by_target(xp: Any, index: Any, p: Any) -> tuple[Any, Any, Any]:
    """Positions of the flat table in the order of where they lead; how many lead to each state; where they begin.

    Places without probability are padding and lead nowhere. `xp` is NumPy or jax.numpy.
    """
    S, target = index.shape[1], index
    if p is not None:
        target = xp.where((p > 0.0).any(axis=0) if p.ndim == 3 else p > 0.0, index, S)
    flat = target.reshape(-1)
    if xp is np:
        order = np.argsort(flat, kind="stable").astype(np.int32)
    else:  # argsort would carry positions of eight bytes along
        order = jax.lax.sort((flat, jnp.arange(flat.size, dtype=jnp.int32)), num_keys=1, is_stable=True)[1]
    count = xp.bincount(flat, **({"minlength": S + 1} if xp is np else {"length": S + 1}))[:S].astype(xp.int32)
    return order, count, xp.cumsum(count, dtype=xp.int32) - count


def predecessor_table(xp: Any, order: Any, count: Any, start: Any, width: int) -> tuple[Any, Any]:
    """(width, S): positions of the first predecessors of every state, −1 for none; and the states they are."""
    slot, S = xp.arange(width, dtype=xp.int32)[:, None], count.size
    place = xp.where(slot < count, order[xp.minimum(start + slot, order.size - 1)], -1)
    return place, xp.where(place >= 0, place % S, xp.arange(S, dtype=xp.int32))


_by_target = jax.jit(partial(by_target, jnp))
_table = jax.jit(partial(predecessor_table, jnp), static_argnames="width")


def _long_predecessors(
    order: Any, lengths: Any, start: Any, width: int, shape: tuple[int, int], long: LongEntries | None
) -> tuple[LongEntries | None, jax.Array | None]:
    """What the table of predecessors is too narrow for, and the positions of its weights."""
    hubs = np.flatnonzero(lengths > width)
    over = [np.asarray(order[start[h] + width : start[h] + lengths[h]]) for h in hubs]
    into = [np.repeat(h, x.size) for h, x in zip(hubs, over, strict=True)]
    states = [x % shape[1] for x in over]
    if long is not None:
        over.append(shape[0] * shape[1] + np.arange(long.state.size))
        into.append(np.asarray(long.state))
        states.append(np.asarray(long.owner))
    if not over:
        return None, None
    by_state = np.argsort(np.concatenate(into), kind="stable")
    into, states, over = (np.concatenate(x)[by_state] for x in (into, states, over))
    return LongEntries.of(into, states), jnp.asarray(over, dtype=jnp.int32)
