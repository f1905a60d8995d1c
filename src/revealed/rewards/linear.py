"""r(s, a) = φ(s, a)·θ: features (S, K) or (S, A, K), dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import is_count
from revealed.errors import InvalidReward
from revealed.mdp import Floats
from revealed.rewards.base import check_features, check_names, require_finite
from revealed.transitions import is_sparse


class LinearReward:
    """A weighted sum of features, one weight per name.

    Parameters
    ----------
    features : (S, K) for rewards of states, (S, A, K) for rewards of state-action pairs; dense, or sparse as (S, K),
        as a 3-d `scipy.sparse.coo_array`, as a list of A matrices (S, K), or as (S*A, K) with `n_actions=A`.
    names : K names, optional; they label `fit.params`.
    """

    linear = True

    def __init__(self, features: Any, names: Sequence[str] | None = None, n_actions: int | None = None) -> None:
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
        per_row = cotangent.sum(axis=1) if self.n_columns == 1 else cotangent.reshape(-1)
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
        s, a, k = features.coords
        return _csr(sp.coo_array((features.data, (s * A + a, k)), shape=(S * A, K))), S, A
    matrix = _csr(features)
    rows = int(matrix.shape[0])
    if n_actions is None:
        return matrix, rows, 1
    if not is_count(n_actions) or rows % n_actions:
        raise InvalidReward("n_actions", f"a divisor of the {rows} rows of the features", n_actions)
    return matrix, rows // n_actions, n_actions


def _is_list_of_sparse(features: Any) -> bool:
    return isinstance(features, list | tuple) and len(features) > 0 and all(is_sparse(f) for f in features)


def _from_list(blocks: Sequence[Any]) -> tuple[Any, int, int]:
    shape = blocks[0].shape
    for a, block in enumerate(blocks):
        if block.shape != shape:
            raise InvalidReward("features", f"{len(blocks)} matrices of one shape {shape}", block.shape, f"action {a}")
    S, A = shape[0], len(blocks)
    order = np.arange(S * A).reshape(A, S).T.reshape(-1)
    return _csr(sp.csr_array(sp.vstack([_csr(b) for b in blocks]))[order]), S, A


def _csr(matrix: Any) -> Any:
    copy = sp.csr_array(matrix, dtype=np.float64)
    if 0 in copy.shape:
        raise InvalidReward("features", "at least one state and one feature", f"shape {copy.shape}")
    require_finite(copy.data[:, None])
    return copy
