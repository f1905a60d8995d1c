"""r(s, a) = φ(s, a)·θ: features (S, K) or (S, A, K), dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import is_count
from revealed.errors import InvalidReward
from revealed.mdp import Floats
from revealed.rewards.base import check_features, check_names, sum_actions
from revealed.transitions import is_sparse


class LinearReward:
    """A weighted sum of features, one weight per name.

    Parameters
    ----------
    features : (S, K) for rewards of states, (S, A, K) for rewards of state-action pairs; dense, or sparse as (S, K),
        as a 3-d `scipy.sparse.coo_array`, as a list of A matrices (S, K), or as (S*A, K) with `n_actions=A`. A data
        frame has a row per state, in their order, and lends its columns as names.
    names : K names, optional; they label `fit.params`.
    """

    linear = True

    def __init__(self, features: Any, names: Sequence[str] | None = None, n_actions: int | None = None) -> None:
        if hasattr(features, "columns") and hasattr(features, "index"):
            features, names = _from_frame(features, names)
        self.matrix, self.n_states, self.n_columns = _as_matrix(features, n_actions)
        self.names = check_names(names, self.n_params)

    @property
    def n_params(self) -> int:
        return int(self.matrix.shape[1])

    def init(self, seed: int | None = None) -> Floats:
        """Zero, from which the search moves only along what choices can see: the minimum-norm solution."""
        return np.zeros(self.n_params)

    def value(self, theta: Floats) -> Floats:
        return (self.matrix @ theta).reshape(self.n_states, self.n_columns)

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        per_row = sum_actions(cotangent) if self.n_columns == 1 else cotangent.reshape(-1)
        return self.matrix.T @ per_row

    def jacobian(self, theta: Floats) -> Any:
        """∂r/∂θ with a row per state (S, K), or per pair (S*A, K) with row s*A + a; dense or CSR, as given."""
        return self.matrix

    def __repr__(self) -> str:
        per = "states" if self.n_columns == 1 else f"states x {self.n_columns} actions"
        return f"LinearReward({self.n_params} features of {self.n_states} {per})"


def _as_matrix(features: Any, n_actions: int | None) -> tuple[Any, int, int]:
    """(matrix (S, K) or (S*A, K), S, 1 or A)."""
    if _is_list_of_sparse(features):
        return _from_list(features)
    if not is_sparse(features):
        dense = check_features(features)
        columns = 1 if dense.ndim == 2 else dense.shape[1]
        return dense.reshape(-1, dense.shape[-1]), dense.shape[0], columns
    if len(features.shape) == 3:
        S, A, K = features.shape
        entries = features.tocoo()
        s, a, k = entries.coords
        return _csr(sp.coo_array((entries.data, (s * A + a, k)), shape=(S * A, K)), A), S, A
    if n_actions is None:
        matrix = _csr(features)
        return matrix, int(matrix.shape[0]), 1
    if not is_count(n_actions) or features.shape[0] % n_actions:
        raise InvalidReward("n_actions", f"a divisor of the {features.shape[0]} rows of the features", repr(n_actions))
    return _csr(features, n_actions), features.shape[0] // n_actions, n_actions


def _from_frame(frame: Any, names: Sequence[str] | None) -> tuple[Any, Sequence[str]]:
    """The numbers of a data frame and its columns; an index that puts rows in another order would be lost."""
    index = list(frame.index)
    if index != list(range(len(index))):
        remedy = "Bring the rows into the order of the states and pass frame.to_numpy()."
        expected = "a frame with a row per state, indexed 0, 1, 2, …"
        raise InvalidReward("features", expected, repr(index[:3]), remedy=remedy)
    return frame.to_numpy(), [str(name) for name in frame.columns] if names is None else names


def _is_list_of_sparse(features: Any) -> bool:
    return isinstance(features, list | tuple) and len(features) > 0 and all(is_sparse(f) for f in features)


def _from_list(blocks: Sequence[Any]) -> tuple[Any, int, int]:
    shape = blocks[0].shape
    for a, block in enumerate(blocks):
        if block.shape != shape or len(shape) != 2:
            raise InvalidReward("features", f"{len(blocks)} matrices (S, K) of one shape", block.shape, f"action {a}")
    S, A = shape[0], len(blocks)
    order = np.arange(S * A).reshape(A, S).T.reshape(-1)
    return _csr(sp.csr_array(sp.vstack(blocks))[order], A), S, A


def _csr(matrix: Any, n_actions: int | None = None) -> Any:
    """A float64 copy in CSR, checked; rows stand for states, or for pairs s*A + a."""
    if len(matrix.shape) != 2 or 0 in matrix.shape or matrix.dtype.kind not in "biuf":
        got = f"shape {matrix.shape}, dtype {matrix.dtype}"
        raise InvalidReward("features", "real numbers of at least one state and one feature", got)
    copy = sp.csr_array(matrix, dtype=np.float64, copy=True)
    bad = np.flatnonzero(~np.isfinite(copy.data))
    if bad.size:
        row = int(np.searchsorted(copy.indptr, bad[0], side="right")) - 1
        where = f"state {row}" if n_actions is None else f"state {row // n_actions}, action {row % n_actions}"
        raise InvalidReward("features", "finite numbers", copy.data[bad[0]], f"{where}, feature {copy.indices[bad[0]]}")
    return copy
