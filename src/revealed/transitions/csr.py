"""Transitions on the host: one CSR matrix of shape (S·A, S) with row s·A + a (theory M1, C1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Floats, require_floats
from revealed.errors import InvalidInput, InvalidTransitions
from revealed.naming import Labels, rows_of
from revealed.positions import LabelledArray, in_order, same_labels
from revealed.sparse_input import as_float_csr, is_sparse

BLOCK = 40_000  # pairs of a block: their numbers stay in the cache


class RowBlock(NamedTuple):
    """Some states one after the other, and the rows of T of their pairs."""

    states: slice
    rows: sp.csr_array


@dataclass(frozen=True)
class CsrTransitions:
    """T as an operator. Rows of terminal states and infeasible pairs are empty, so that they pass nothing on."""

    matrix: sp.csr_array
    n_states: int
    n_actions: int
    state_labels: Labels = field(default=None, repr=False, compare=False)
    action_labels: Labels = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def called(self, state_labels: Labels, action_labels: Labels) -> CsrTransitions:
        """The same T, and what was worked out from it, under the labels of a model."""
        if state_labels is self.state_labels and action_labels is self.action_labels:
            return self
        other = object.__new__(CsrTransitions)
        other.__dict__.update(self.__dict__, state_labels=state_labels, action_labels=action_labels)
        return other

    @cached_property
    def cumulative(self) -> Floats:
        """Running sum of all stored probabilities, row after row: for drawing next states by bisection."""
        return np.cumsum(self.matrix.data)

    def expect(self, V: Any) -> Floats:
        """(T V)(s, a) = Σ_s' T(s'|s,a) V(s'); for V of shape (S, K) the result is (S, A, K)."""
        V = self._in_order("V", V, ("state",), 0, self.n_states)
        return (self.matrix @ V).reshape(self.n_states, self.n_actions, *V.shape[1:])

    def push(self, d: Any) -> Floats:
        """(Tᵀ d)(s') = Σ_{s,a} T(s'|s,a) d(s, a): the adjoint of `expect`."""
        return self.matrix.T @ self._pairs("d", d)

    def _pairs(self, name: str, table: Any) -> Floats:
        """(S·A,) numbers of pairs."""
        return self._in_order(name, table, ("state", "action"), None, self.n_states * self.n_actions).reshape(-1)

    def _in_order(self, name: str, values: Any, axes: Sequence[str], axis: int | None, n: int) -> Any:
        """An array in the order of T. What knows its labels is matched by them."""
        mixed = getattr(values, "mixed", None)
        if mixed is not None and same_labels(mixed.state_labels, self.state_labels):
            values = np.asarray(values)  # the order is T's own, as that of plain arrays is
        elif rows_of(values) is not None or isinstance(values, LabelledArray):
            values = in_order(self, values, name, axes)
        plain = isinstance(values, np.ndarray) and values.dtype.kind in "fiub"
        array = values if plain else require_floats(name, values, "an array of numbers")
        found = array.size if axis is None else array.shape[axis] if array.ndim else 0
        if isinstance(array, np.ma.MaskedArray) or found != n:
            array = require_floats(name, values, "an array of numbers")
            raise InvalidInput(name, f"numbers for {n} {'states' if axis == 0 else 'pairs'}", f"shape {array.shape}")
        return array

    @cached_property
    def row_blocks(self) -> tuple[RowBlock, ...]:
        """T cut into blocks of states that share the memory of T: for work that goes block by block."""
        size = max(1, BLOCK // self.n_actions)
        return tuple(self._block(first, min(first + size, self.n_states)) for first in range(0, self.n_states, size))

    def _block(self, first: int, end: int) -> RowBlock:
        T = self.matrix
        bounds = T.indptr[first * self.n_actions : end * self.n_actions + 1]
        inside = slice(bounds[0], bounds[-1])
        rows = sp.csr_array((bounds.size - 1, T.shape[1]))
        rows.data, rows.indices, rows.indptr = T.data[inside], T.indices[inside], bounds - bounds[0]  # so: no copy
        return RowBlock(slice(first, end), rows)

    def mix(self, policy: Any) -> sp.csr_array:
        """T^π(s'|s) = Σ_a π(a|s) T(s'|s,a), sparse (S, S); only what can happen is stored."""
        weights = np.append(self._pairs("policy", policy), 0.0)
        return self._merged.matrix(self._merged.entries @ weights, self.n_states, 1.0)

    def identity_minus(self, gamma: float, policy: Any) -> sp.csr_array:
        """I − γT^π, sparse (S, S): its pattern is the same for all policies, and its entries are linear in π."""
        policy = self._pairs("policy", policy)
        weights = np.empty(policy.size + 1)
        np.multiply(policy, -gamma, out=weights[:-1])
        weights[-1] = 1.0
        data = self._merged.entries @ weights
        return self._merged.matrix(data, self.n_states)

    def mix_each(self, policies: Floats, scale: float) -> tuple[Floats, sp.csr_array]:
        """(L, E): the entries of scale·T^π of one policy (S·A,) after the other, and a matrix with their pattern."""
        data = np.empty((len(policies), self._merged.indices.size))
        weights = np.zeros(self.n_states * self.n_actions + 1)  # the last is the identity's: none
        for policy, entries in zip(policies, data, strict=True):
            np.multiply(policy, scale, out=weights[:-1])
            entries[:] = self._merged.entries @ weights
        return data, self._merged.matrix(np.ones(data.shape[1]), self.n_states)

    @cached_property
    def by_action(self) -> sp.csr_array:
        """T with row a·S + s: numbers of one action stand side by side, so that work across actions is done at once."""
        order = np.arange(self.n_states * self.n_actions).reshape(self.n_states, self.n_actions).T.reshape(-1)
        return _narrow(sp.csr_array(self.matrix[order]))

    @cached_property
    def by_action_transposed(self) -> sp.csr_array:
        """Its transpose, row by row: a third faster to multiply with than column by column."""
        return _narrow(sp.csr_array(self.by_action.T))

    @cached_property
    def _merged(self) -> Merged:
        return merge_actions(self.matrix, self.n_states, self.n_actions)


@dataclass(frozen=True)
class Merged:
    """All that T^π may hold, for any π: `entries` (E, S·A + 1) maps a policy, and a last number for the identity, to
    the entries of a matrix with this pattern. A product with it assembles T^π without sorting or searching."""

    entries: sp.csr_array
    indices: npt.NDArray[np.integer]
    indptr: npt.NDArray[np.integer]

    def matrix(self, data: Floats, n: int, full: float = 0.75) -> sp.csr_array:
        """Entries that are zero are left out where they are many, as under a policy without doubt: where fewer than
        this share is used."""
        used = data != 0.0
        if np.count_nonzero(used) >= full * data.size:
            return sp.csr_array((data, self.indices, self.indptr), shape=(n, n))
        ends = np.concatenate([[0], np.cumsum(used)])[self.indptr].astype(self.indptr.dtype)
        return sp.csr_array((data[used], self.indices[used], ends), shape=(n, n))


def merge_actions(T: sp.csr_array, n_states: int, n_actions: int) -> Merged:
    """The rows of a state's actions stand one after the other: read as one row, with the diagonal at its end, they are
    sorted once, and equal successors become one entry."""
    size = T.nnz + n_states
    kind = T.indices.dtype if size < np.iinfo(np.int32).max else np.dtype(np.int64)
    per_state = np.diff(T.indptr[::n_actions])
    starts = np.concatenate([[0], np.cumsum(per_state + 1)]).astype(kind)
    last = starts[1:] - 1
    at = np.arange(T.nnz, dtype=kind) + np.repeat(np.arange(n_states, dtype=kind), per_state)
    successor, place = np.empty(size, dtype=kind), np.full(size, T.nnz, dtype=kind)
    successor[at], successor[last] = T.indices, np.arange(n_states)
    place[at] = np.arange(T.nnz)
    rows = sp.csr_array((place, successor, starts), shape=(n_states, n_states))
    rows.sort_indices()
    first = np.ones(size, dtype=bool)
    np.not_equal(rows.indices[1:], rows.indices[:-1], out=first[1:])
    first[starts[:-1]] = True
    begins = np.flatnonzero(first).astype(kind)
    pair = np.append(np.repeat(np.arange(n_states * n_actions, dtype=kind), np.diff(T.indptr)), n_states * n_actions)
    data, columns = np.append(T.data, 1.0)[rows.data], pair[rows.data].astype(kind)
    entries = sp.csr_array((data, columns, np.append(begins, size)), shape=(begins.size, n_states * n_actions + 1))
    return Merged(entries, rows.indices[begins], np.searchsorted(begins, starts).astype(kind))


def _per_action(transitions: Any) -> list[Any] | None:
    """A list or tuple of A matrices (S, S), sparse or dense, of which one at least is an array; None for anything
    else: nested lists are a dense (S, A, S)."""
    if not isinstance(transitions, list | tuple) or len(transitions) == 0:
        return None
    if not any(is_sparse(t) or (isinstance(t, np.ndarray) and t.ndim == 2) for t in transitions):
        return None
    blocks = [t if is_sparse(t) else _numbers(t, f"action {a}") for a, t in enumerate(transitions)]
    return [t if is_sparse(t) or t.ndim != 2 else sp.csr_array(t) for t in blocks]


def as_csr(transitions: Any) -> tuple[sp.csr_array, int, int]:
    """The three accepted forms as (CSR (S·A, S), S, A); shapes are checked, probabilities are not."""
    if is_sparse(transitions):
        return _from_stacked(transitions)
    blocks = _per_action(transitions)
    if blocks is not None:
        return _from_list(blocks)
    return _from_dense(transitions)


def _from_stacked(matrix: Any) -> tuple[sp.csr_array, int, int]:
    rows, n_states = matrix.shape if len(matrix.shape) == 2 else (0, 0)
    if n_states == 0 or rows == 0 or rows % n_states:
        raise InvalidTransitions(
            "transitions",
            "a sparse (S*A, S) matrix with row s*A + a",
            f"shape {matrix.shape}",
            remedy="The number of rows must be a multiple of the number of columns.",
        )
    return _narrow(as_float_csr("transitions", matrix, InvalidTransitions)), n_states, rows // n_states


def _from_list(blocks: Sequence[Any]) -> tuple[sp.csr_array, int, int]:
    n_states, n_actions = int(blocks[0].shape[0]) if blocks[0].shape else 0, len(blocks)
    for a, block in enumerate(blocks):
        if block.shape != (n_states, n_states) or n_states == 0:
            raise InvalidTransitions(
                "transitions",
                f"a list of ({n_states}, {n_states}) matrices, one per action",
                f"shape {block.shape}",
                f"action {a}",
            )
    checked = [as_float_csr("transitions", t, InvalidTransitions, f"action {a}") for a, t in enumerate(blocks)]
    stacked = sp.csr_array(sp.vstack(checked))  # row a*S + s
    order = np.arange(n_states * n_actions).reshape(n_actions, n_states).T.reshape(-1)
    return _narrow(sp.csr_array(stacked[order])), n_states, n_actions


def _from_dense(array: Any) -> tuple[sp.csr_array, int, int]:
    dense = _numbers(array)
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        raise InvalidTransitions(
            "transitions",
            "a dense array of shape (S, A, S), or a sparse (S*A, S) matrix",
            f"shape {dense.shape}",
            remedy=_reordered(dense.shape),
        )
    n_states, n_actions, _ = dense.shape
    return _narrow(sp.csr_array(dense.reshape(n_states * n_actions, n_states))), n_states, n_actions


def _reordered(shape: tuple[int, ...]) -> str | None:
    """The remedy for an array whose axes stand in another order."""
    if len(shape) == 0:
        return "The arguments are MDP(transitions, discount)."
    if len(shape) != 3:
        return "Convert a dense (S*A, S) array with scipy.sparse.csr_array(array)."
    if 0 in shape or shape[1] not in (shape[0], shape[2]):
        return None
    order, axes = ("(A, S, S)", "0, 1") if shape[1] == shape[2] else ("(S, S, A)", "2, 1")
    return f"Convert an {order} array with np.moveaxis(array, {axes})."


def _numbers(array: Any, where: str | None = None) -> Floats:
    expected = "scipy.sparse (S*A, S), a dense (S, A, S) array, or a list of A sparse (S, S)"
    remedy = "Pass transitions.matrix." if isinstance(array, CsrTransitions) else None
    if hasattr(array, "columns"):
        remedy = "Read a table of transitions with rv.MDP.from_frame."
    return require_floats("transitions", array, expected, InvalidTransitions, remedy, where)


def _narrow(matrix: Any) -> sp.csr_array:
    """The same with indices of four bytes where they fit: a quarter less to read in every product."""
    if matrix.indices.dtype == np.int32 or max(matrix.nnz, *matrix.shape) > np.iinfo(np.int32).max:
        return matrix
    parts = matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return sp.csr_array(parts, shape=matrix.shape)
