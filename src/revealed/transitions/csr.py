"""Transitions on the host: one CSR matrix of shape (S·A, S) with row s·A + a (theory M1, C1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Floats, as_floats
from revealed.errors import InvalidTransitions


def is_sparse(x: Any) -> bool:
    """`scipy.sparse.issparse` for arguments of any type."""
    return bool(sp.issparse(x))


@dataclass(frozen=True)
class CsrTransitions:
    """T as an operator. Rows of terminal states and infeasible pairs are empty, so that they pass nothing on."""

    matrix: sp.csr_array
    n_states: int
    n_actions: int

    @cached_property
    def cumulative(self) -> Floats:
        """Running sum of all stored probabilities, row after row: for drawing next states by bisection."""
        return np.cumsum(self.matrix.data)

    def expect(self, V: Floats) -> Floats:
        """(T V)(s, a) = Σ_s' T(s'|s,a) V(s'); for V of shape (S, K) the result is (S, A, K)."""
        return (self.matrix @ V).reshape(self.n_states, self.n_actions, *V.shape[1:])

    def push(self, d: Floats) -> Floats:
        """(Tᵀ d)(s') = Σ_{s,a} T(s'|s,a) d(s, a): the adjoint of `expect`."""
        return self.matrix.T @ d.reshape(-1)

    def mix(self, policy: Floats) -> sp.csr_array:
        """T^π(s'|s) = Σ_a π(a|s) T(s'|s,a), sparse (S, S)."""
        pairs = self.n_states * self.n_actions
        starts = np.arange(0, pairs + 1, self.n_actions)
        weights = sp.csr_array((policy.reshape(-1), np.arange(pairs), starts), shape=(self.n_states, pairs))
        return sp.csr_array(weights @ self.matrix)

    def identity_minus(self, gamma: float, policy: Floats) -> sp.csr_array:
        """I − γT^π, sparse (S, S): one product with T and I stacked, so that nothing is merged afterwards."""
        S, A = self.n_states, self.n_actions
        weights = np.empty((S, A + 1))
        np.multiply(policy, -gamma, out=weights[:, :A])
        weights[:, A] = 1.0
        columns, starts = self._stacked_columns
        return sp.csr_array(sp.csr_array((weights.reshape(-1), columns, starts), shape=(S, S * A + S)) @ self._stacked)

    @cached_property
    def _stacked(self) -> sp.csr_array:
        return sp.csr_array(sp.vstack([self.matrix, sp.eye_array(self.n_states)], format="csr"))

    @cached_property
    def _stacked_columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        S, A = self.n_states, self.n_actions
        pairs = np.arange(S * A).reshape(S, A)
        columns = np.column_stack([pairs, np.arange(S * A, S * A + S)]).reshape(-1)
        return columns, np.arange(0, S * (A + 1) + 1, A + 1)


def _per_action(transitions: Any) -> list[Any] | None:
    """A list or tuple of A matrices (S, S), sparse or dense arrays; None for anything else."""
    if not isinstance(transitions, list | tuple) or len(transitions) == 0:
        return None
    if all(is_sparse(t) or (isinstance(t, np.ndarray) and t.ndim == 2) for t in transitions):
        return [t if is_sparse(t) else sp.csr_array(t) for t in transitions]
    return None


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
    return _to_float_csr(matrix), n_states, rows // n_states


def _from_list(blocks: Sequence[Any]) -> tuple[sp.csr_array, int, int]:
    n_states, n_actions = int(blocks[0].shape[0]), len(blocks)
    for a, block in enumerate(blocks):
        if block.shape != (n_states, n_states) or n_states == 0:
            raise InvalidTransitions(
                "transitions",
                f"a list of ({n_states}, {n_states}) matrices, one per action",
                f"shape {block.shape}",
                f"action {a}",
            )
    stacked = sp.csr_array(sp.vstack([_to_float_csr(b) for b in blocks]))  # row a*S + s
    order = np.arange(n_states * n_actions).reshape(n_actions, n_states).T.reshape(-1)
    return sp.csr_array(stacked[order]), n_states, n_actions


def _from_dense(array: Any) -> tuple[sp.csr_array, int, int]:
    dense = as_floats(array)
    if dense is None:
        raise InvalidTransitions(
            "transitions",
            "scipy.sparse (S*A, S), a dense (S, A, S) array, or a list of A sparse (S, S)",
            f"{type(array).__name__} of {getattr(array, 'dtype', 'something else')}",
        )
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        raise InvalidTransitions(
            "transitions",
            "a dense array of shape (S, A, S), or a sparse (S*A, S) matrix",
            f"shape {dense.shape}",
            remedy="An (A, S, S) array goes in as np.moveaxis(array, 0, 1)."
            if dense.ndim == 3
            else "A dense (S*A, S) array goes in as scipy.sparse.csr_array(array).",
        )
    n_states, n_actions, _ = dense.shape
    return sp.csr_array(dense.reshape(n_states * n_actions, n_states)), n_states, n_actions


def _to_float_csr(matrix: Any) -> Any:
    if matrix.dtype.kind not in "biuf":
        raise InvalidTransitions("transitions", "real numbers", f"dtype {matrix.dtype}")
    copy = sp.csr_array(matrix, dtype=np.float64, copy=True)
    copy.sum_duplicates()
    return copy
