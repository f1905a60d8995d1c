"""∂V/∂θ and ∂Q/∂θ where the reward has features (theory V5): sums over actions, and rows of F = φ + γTW."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.mdp import MDP, Floats


def mean_features(features: Any, policy: Floats) -> Floats:
    """(S, K): Σ_a π(a|s) φ(s, a) of features (S, K) or (S·A, K), dense or sparse."""
    S, A = policy.shape
    if features.shape[0] == S and A > 1:
        dense = features.toarray() if hasattr(features, "toarray") else np.asarray(features)
        return dense * policy.sum(axis=1)[:, None]
    weights = sp.csr_array((policy.reshape(-1), np.arange(S * A), np.arange(0, S * A + 1, A)), shape=(S, S * A))
    mean: Any = weights @ features
    return mean.toarray() if hasattr(mean, "toarray") else np.asarray(mean)


def slopes_of(mdp: MDP, J: Any, W: Floats, states: Any = None, T: Any = None) -> Floats:
    """∂r/∂θ + γTW (R, A, K) in some states, or in all; zero for infeasible pairs. `J` is (S, K), (S·A, K) or None for
    nothing; `T` holds the rows of the states, where they are at hand."""
    A, K = mdp.n_actions, W.shape[1]
    where = slice(None) if states is None else states
    if T is None:
        T = mdp.transitions.matrix
        T = T if states is None or len(states) == mdp.n_states else T[_pairs(states, A)]
    F = (mdp.discount * (T @ W)).reshape(-1, A, K)
    if J is not None:
        F += _rows_of(J, mdp, where)
    F[~mdp.feasible[where]] = 0.0
    return F


def _rows_of(J: Any, mdp: MDP, where: Any) -> Floats:
    """∂r/∂θ (R, 1 or A, K) in some states."""
    by_pair = J.shape[0] != mdp.n_states or mdp.n_actions == 1
    if not by_pair:
        rows = J[where]
    elif isinstance(where, slice):
        begin, end, _ = where.indices(mdp.n_states)
        rows = J[begin * mdp.n_actions : end * mdp.n_actions]
    else:
        rows = J[_pairs(where, mdp.n_actions)]
    rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    return rows.reshape(-1, mdp.n_actions if by_pair else 1, J.shape[-1])


def _pairs(states: Any, n_actions: int) -> npt.NDArray[np.intp]:
    return (np.asarray(states)[:, None] * n_actions + np.arange(n_actions)).reshape(-1)
