"""Finite horizons, layer by layer (theory F1, F2): nothing is factored, nothing is iterated.

On an unrolled horizon I − γT^π is block upper bidiagonal: a solve is one backward pass over the layers, x_t = b_t +
γT^{π_t}x_{t+1}, and one with the transpose a forward pass. Optima are backward induction, a sweep a layer. T of the
base model serves every layer, and tables are kept action by action, (A, layers, S) in memory: rows of a few actions
are too short to be worked on one by one. Each layer's values are measured from one of them wherever none of its states
is an end, so that they stay small however long the horizon and however large rewards are (theory B5).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Bools, Floats
from revealed.errors import SolverFailed
from revealed.levels import typical
from revealed.linear_solvers import SAMPLE
from revealed.mdp import MDP

Step = Callable[[int, Floats], Floats]
MOSTLY = 100.0  # times what rewards differ by that they are large, from which on their level is taken off first


class Relative(NamedTuple):
    """Values (S,) and rewards (S, A) without their levels."""

    value: Floats
    reward: Floats


def in_layers(mdp: MDP, solver: str) -> bool:
    """Whether an MDP is solved layer by layer: an unrolled one, unless another solver is asked for or it was placed
    on a device."""
    return mdp.base is not None and solver == "auto" and mdp.device is None


def by_layer(mdp: MDP, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A table (states, A) of an unrolled MDP as (A, layers, S), whatever its order in memory: never a copy."""
    layers, n = _size(mdp)
    return table.T.reshape(table.shape[1], layers, n)


def _size(mdp: MDP) -> tuple[int, int]:
    assert mdp.base is not None
    return mdp.n_states // mdp.base.n_states, mdp.base.n_states


def _new_table(mdp: MDP, last: float) -> tuple[Floats, Floats]:
    """A table (states, A) and the same as (A, layers, S); the last layer, in which nothing is decided, is `last`."""
    table = np.empty((mdp.n_actions, mdp.n_states)).T
    layered = by_layer(mdp, table)
    layered[:, -1] = last
    return table, layered


class LayerSolver:
    """Solves with I − γT^π of an unrolled MDP and with its transpose; b is (S,) or (S, K).

    A first system goes through T itself. From the second on, or for many at once, T^{π_t} of every layer is put
    together first: that costs about as much as one system and makes the others as many times cheaper as there are
    actions.
    """

    def __init__(self, mdp: MDP, policy: Floats) -> None:
        assert mdp.base is not None
        self._gamma, self._size = mdp.discount, _size(mdp)
        self._T = mdp.base.transitions
        self._pi, self._policy = by_layer(mdp, policy), policy
        self._used = False

    def solve(self, b: Floats) -> Floats:
        X = self._layers(b)
        back = self._through_merged(transpose=False) if self._merges(b) else self._back
        for t in range(len(X) - 2, -1, -1):
            X[t] += back(t, X[t + 1])
        return X.reshape(b.shape)

    def solve_transpose(self, b: Floats) -> Floats:
        X = self._layers(b)
        onwards = self._through_merged(transpose=True) if self._merges(b) else self._onwards
        for t in range(len(X) - 1):
            X[t + 1] += onwards(t, X[t])
        return X.reshape(b.shape)

    def solve_pairs(self, D: Floats) -> Floats:
        """(I − γT^π)^{-T} γTᵀD for weights D (states, A) of pairs: λ_{t+1} = γTᵀ(D_t + π_t ⊙ λ_t) (theory G2)."""
        layers, n = self._size
        D, out = D.T.reshape(-1, layers, n), np.zeros(self._size)
        for t in range(layers - 1):
            weights = self._pi[:, t] * out[t]
            weights += D[:, t]
            out[t + 1] = self._scaled(self._T.by_action_transposed @ weights.reshape(-1))
        return out.reshape(-1)

    def _layers(self, b: Floats) -> Floats:
        return np.array(b, dtype=np.float64, order="C").reshape(*self._size, *b.shape[1:])

    def _merges(self, b: Floats) -> bool:
        first, self._used = not self._used, True
        return b.ndim == 2 or not first

    def _back(self, t: int, x: Floats) -> Floats:
        """γT^{π_t}x, without T^{π_t}."""
        look = (self._T.by_action @ x).reshape(-1, x.size)
        look *= self._pi[:, t]
        return self._scaled(np.add.reduce(look, axis=0))

    def _onwards(self, t: int, x: Floats) -> Floats:
        return self._scaled(self._T.by_action_transposed @ (self._pi[:, t] * x).reshape(-1))

    def _scaled(self, x: Floats) -> Floats:
        if self._gamma != 1.0:
            x *= self._gamma
        return x

    @cached_property
    def _merged(self) -> tuple[Floats, sp.csr_array]:
        """The entries of γT^{π_t}, a row per layer, and a matrix with their pattern."""
        rows = np.ascontiguousarray(self._policy).reshape(self._size[0], -1)
        return self._T.mix_each(rows[:-1], self._gamma)

    def _through_merged(self, transpose: bool) -> Step:
        """The layers' matrices differ in their entries alone, which are put in place one after the other. The matrix is
        this caller's own: threads may share a solver."""
        entries, pattern = self._merged
        kind = sp.csc_array if transpose else sp.csr_array
        matrix = kind((pattern.data, pattern.indices, pattern.indptr), shape=pattern.shape)

        def step(t: int, x: Floats) -> Floats:
            matrix.data = entries[t]
            return matrix @ x

        return step


class BackwardInduction:
    """Optima of an unrolled MDP by one sweep a layer, from the last decision to the first; exact to rounding."""

    def __init__(self, mdp: MDP) -> None:
        assert mdp.base is not None
        self.mdp, self._T = mdp, mdp.base.transitions.by_action
        offered, usual = by_layer(mdp, mdp.feasible), mdp.base.feasible.T
        self._usual = np.where(usual, 0.0, -np.inf)
        self._masks = [self._mask(offered[:, t], usual) for t in range(offered.shape[1] - 1)]
        ends = [None if mask is None else np.isneginf(mask).all(axis=0) for mask in self._masks]
        self._ends = [None if end is None or not end.any() else end for end in ends]

    def _mask(self, offered: Bools, usual: Bools) -> Floats | None:
        """(A, S) to add to Q: −∞ for what a layer does not offer; None where it offers everything."""
        if offered.all():
            return None
        return self._usual if np.array_equal(offered, usual) else np.where(offered, 0.0, -np.inf)

    def soft(self, reward: Floats) -> tuple[Floats, Floats, Floats, Floats, Relative]:
        """(V, Q, π, log π) of the soft optimum (theory V3, P1), and V and the reward without their levels."""
        reward, level = self._without_level(reward)
        V, total = np.zeros(_size(self.mdp)), np.ones(_size(self.mdp))
        log_total = np.zeros(_size(self.mdp))
        policy, P = _new_table(self.mdp, 0.0)
        log_policy, L = _new_table(self.mdp, -np.inf)
        R, levels = by_layer(self.mdp, reward), np.zeros((len(V), 1))
        with np.errstate(over="ignore", invalid="ignore"):
            for t in range(len(V) - 2, -1, -1):
                Q = self._look(t, V[t + 1], R[:, t])
                top = self._odds(t, Q, L[:, t], P[:, t], total[t])
                np.log(total[t], out=log_total[t])
                np.add(top, log_total[t], out=V[t])
                levels[t] = self._lower(t, V[t], self.mdp.discount * levels[t + 1] + level)
            P /= total  # what need not be done layer by layer is done at once
            L -= log_total
            relative = Relative(V.reshape(-1), reward)
            V = V + levels
            q = log_policy + V.reshape(-1, 1)
        return V.reshape(-1), q, policy, log_policy, relative

    def _without_level(self, reward: Floats) -> tuple[Floats, float]:
        """Rewards less what is typical of them, and that, where it is nearly all of them and nothing ends early."""
        if any(end is not None for end in self._ends):
            return reward, 0.0
        step = -(-len(reward) // SAMPLE)
        some = reward[::step][self.mdp.feasible[::step]]
        level = float(typical(some)) if some.size else 0.0
        if not abs(level) > MOSTLY * float(typical(np.abs(some - level))):
            return reward, 0.0
        return np.where(self.mdp.feasible, reward - level, 0.0), level

    def _lower(self, t: int, V: Floats, level: Any) -> Any:
        """Measure the values of a layer, of which `level` was left out, from one of them, in place; what is left out
        now. Where some of its states are ends, whose value is 0, nothing can be."""
        ends = self._ends[t]
        if ends is None:
            first = V[0]
            V -= first
            return level + first
        V += np.where(ends, 0.0, level)
        return 0.0

    def _odds(self, t: int, Q: Floats, above: Floats, odds: Floats, total: Floats) -> Floats:
        """The largest Q of each state; into their places go Q less it, the exponentials of that, and their sum. As in
        `soft_maximum` the largest is taken off before anything is summed."""
        top, ends = np.maximum.reduce(Q, axis=0), self._ends[t]
        if ends is not None:
            top[ends] = 0.0
        np.subtract(Q, top, out=above)
        np.exp(above, out=odds)
        np.add.reduce(odds, axis=0, out=total)
        if ends is not None:
            total[ends] = 1.0
        return top

    def hard(self, reward: Floats) -> tuple[Floats, Floats, Relative, Floats]:
        """(V, Q) of the ordinary optimum (theory B4), V and the reward without their levels, and Q likewise."""
        reward, level = self._without_level(reward)
        V, levels = np.zeros(_size(self.mdp)), np.zeros((_size(self.mdp)[0], 1))
        q, Q = _new_table(self.mdp, -np.inf)
        R = by_layer(self.mdp, reward)
        with np.errstate(over="ignore", invalid="ignore"):
            for t in range(len(V) - 2, -1, -1):
                Q[:, t] = self._look(t, V[t + 1], R[:, t])
                V[t] = np.maximum.reduce(Q[:, t], axis=0)
                if self._ends[t] is not None:
                    V[t][self._ends[t]] = 0.0
                levels[t] = self._lower(t, V[t], self.mdp.discount * levels[t + 1] + level)
        if not np.isfinite(V).all() or not np.isfinite(levels).all():
            raise SolverFailed("the reward is too large for float64: values overflow within the horizon.")
        ahead = np.append(self.mdp.discount * levels[1:, 0] + level, 0.0)
        return (V + levels).reshape(-1), q + np.repeat(ahead, V.shape[1])[:, None], Relative(V.reshape(-1), reward), q

    def _look(self, t: int, later: Floats, reward: Floats) -> Floats:
        """(A, S): Q of one layer, r + γT V of the next (theory V2), −∞ for infeasible actions."""
        ahead = self._T @ later
        if self.mdp.discount != 1.0:
            ahead *= self.mdp.discount
        Q = ahead.reshape(reward.shape)
        Q += reward
        mask = self._masks[t]
        if mask is not None:
            Q += mask
        return Q
