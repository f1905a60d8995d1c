"""Sums over paths (theory R1–R4): where every move is certain and nothing is discounted, exp V is linear.

With M[s, s'] = Σ exp r(s, a) over the actions that lead from s to s', z = exp V toward the goal g solves z = Mz in all
rows but g's, where z = 1. With G = (I − M)⁻¹, which holds the weights of all paths, z = G[:, g] / G[g, g] (R2): one
factorisation serves every goal, and that of the transpose every gradient.

I − M is an M-matrix wherever G exists, so that LU without pivoting adds up positive numbers only, but for its diagonal:
entries are as exact when they are small as when they are large, until they underflow, and lose digits only as paths
become longer (some 1e-16 times the links that a walk through the network is expected to have, which are limited).
Where they underflow (very long trips), or where G does not exist although the values do (ways that only the goals
close), `PathSums.alone` sums paths to one goal with weights that are measured from its shortest path (R3): there every
state has z ≥ 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from revealed.checks import Floats, Ints
from revealed.errors import ValueDoesNotExist
from revealed.linear_solvers import Work
from revealed.mdp import MDP
from revealed.superlu import factor, no_room
from revealed.voices import either

BLOCK = 32  # goals that share a solve
LEAST = 1e-280  # z below which 1/z and what it is multiplied with may leave the range of float64
MOST_SHARED = 1e6  # expected links of a walk that nothing but its costs ends: beyond, each goal is summed alone
MOST = 1e12  # expected links of a trip, for all that float64 can tell


@dataclass(frozen=True, eq=False)
class Moves:
    """The moves of a deterministic model: from `source` to `target` by the pair `pair` = s·A + a, each (E,)."""

    source: Ints
    target: Ints
    pair: Ints
    shape: tuple[int, int]

    @classmethod
    def of(cls, mdp: MDP) -> Moves | None:
        """None where moves are uncertain, or the future is discounted."""
        if mdp.discount != 1.0 or not mdp.certain:
            return None
        pair = np.flatnonzero(mdp.feasible)
        return cls(pair // mdp.n_actions, mdp.targets.reshape(-1)[pair], pair, mdp.feasible.shape)

    @property
    def n_states(self) -> int:
        return self.shape[0]

    def matrix(self, weights: Floats) -> sp.csr_array:
        """Sparse (S, S): weights of the moves from state to state, those of parallel moves together."""
        order, starts, source, target = self._merged
        data = np.add.reduceat(weights[order], starts) if order.size else weights
        begin = np.searchsorted(source, np.arange(self.n_states + 1))
        return sp.csr_array((data, target, begin), shape=(self.n_states, self.n_states))

    @cached_property
    def _merged(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Moves sorted by source and target; where each (source, target) begins, and which it is."""
        key = self.source * self.n_states + self.target
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        return order, starts, self.source[order][starts], self.target[order][starts]

    def table(self, values: Floats) -> Floats:
        """(S, A) with the values of the moves at their pairs, zero elsewhere."""
        out = np.zeros(self.shape)
        out.reshape(-1)[self.pair] = values
        return out


class PathSums:
    """G = (I − M)⁻¹ for weights exp(`log_weight`) of the moves, factored when first needed; raises `ValueDoesNotExist`
    where M has paths whose weights do not add up to a number.

    `potential` (S,) is V's scale where paths are measured from a shortest path (R3); z is then exp(V − potential).
    """

    def __init__(
        self, moves: Moves, log_weight: Floats, potential: Floats | None = None, work: Work | None = None
    ) -> None:
        self.moves, self.potential = moves, potential
        self.work = Work() if work is None else work
        if potential is not None:
            with np.errstate(invalid="ignore"):
                log_weight = log_weight + potential[moves.target] - potential[moves.source]
            log_weight = np.where(np.isfinite(log_weight), log_weight, -np.inf)
        with np.errstate(over="ignore"):
            self.weight: Floats = np.exp(log_weight)
        if not np.isfinite(self.weight).all():
            raise ValueDoesNotExist(NO_VALUE)
        if _grows(moves.matrix(self.weight)):
            raise ValueDoesNotExist(NO_VALUE)
        self._forward = self._factor(sp.csc_array(self._identity_minus))
        lengths = self._forward.solve(np.ones(moves.n_states))
        most = MOST_SHARED if potential is None else np.inf  # from a potential these are no numbers of links
        if not (np.isfinite(lengths).all() and lengths.min(initial=1.0) > 0.0 and lengths.max(initial=1.0) < most):
            raise ValueDoesNotExist(NO_VALUE)  # I − M is no M-matrix: paths that go round add up to no number

    @classmethod
    def in_common(cls, moves: Moves, log_weight: Floats, work: Work | None = None) -> PathSums | None:
        """Paths to all goals; None where those between goals add up to no number, so that each must be summed alone."""
        try:
            return cls(moves, log_weight, work=work)
        except ValueDoesNotExist:
            return None

    @classmethod
    def alone(cls, moves: Moves, log_weight: Floats, goal: int, work: Work | None = None) -> PathSums:
        """Paths to one goal, measured from the shortest: the goal's own moves are left out (R1), so that the values
        are all that must exist."""
        potential = -shortest_costs(cheapest_moves(moves, np.maximum(-log_weight, 0.0)), goal)
        potential[np.abs(potential) < LEAST] = 0.0  # free moves
        own = np.where(moves.source == goal, -np.inf, log_weight)
        sums = cls(moves, own, potential, work)
        z = sums.toward(np.array([goal]))[:, 0]
        if float(np.max(sums.solve(z)[z > 0.0] / z[z > 0.0])) > MOST:  # the links of a trip
            raise ValueDoesNotExist(NO_VALUE)
        return sums

    @cached_property
    def _identity_minus(self) -> sp.csr_array:
        return sp.csr_array(sp.eye_array(self.moves.n_states, format="csr") - self.moves.matrix(self.weight))

    def _factor(self, matrix: sp.csc_array) -> spla.SuperLU:
        """No pivoting: see above. The transpose gets its own factorisation, since SuperLU solves with many right-hand
        sides far faster than with the transpose of what it factored."""
        self.work.factorisations += 1
        try:
            return factor(matrix, "MMD_ATA", panel_size=10)
        except MemoryError as error:
            raise no_room(matrix) from error
        except RuntimeError as error:  # "Factor is exactly singular"
            raise ValueDoesNotExist(NO_VALUE) from error

    @cached_property
    def _backward(self) -> spla.SuperLU:
        return self._factor(sp.csc_array(self._identity_minus.T))

    def prepare_transpose(self) -> None:
        """Factor the transpose now: a factorisation should be let go by the thread that made it."""
        _ = self._backward

    def solve(self, b: Floats) -> Floats:
        """G b, for b (S,) or (S, B)."""
        self.work.solves += 1 if b.ndim == 1 else b.shape[1]
        return self._forward.solve(b)

    def solve_transpose(self, b: Floats) -> Floats:
        """Gᵀ b. A single column does not need the transpose's own factorisation: it would cost fifty solves."""
        columns = 1 if b.ndim == 1 else b.shape[1]
        self.work.solves += columns
        if columns == 1:
            return self._forward.solve(b, trans="T")  # pyright: ignore[reportCallIssue]
        return self._backward.solve(b)

    def toward(self, goals: Ints) -> Floats:
        """z (S, B): the weights of all paths to each goal, one at the goal (R2); zero where no path leads to it."""
        ends = np.zeros((self.moves.n_states, goals.size), order="F")
        ends[goals, np.arange(goals.size)] = 1.0
        z = np.maximum(self.solve(ends), 0.0)
        z /= z[goals, np.arange(goals.size)]
        return z

    def values(self, z: Floats) -> Floats:
        """V = log z, from the potential where there is one; −∞ where the goal is out of reach."""
        with np.errstate(divide="ignore"):
            V = np.log(z)
        if self.potential is None:
            return V
        shift = self.potential if z.ndim == 1 else self.potential[:, None]
        return np.where(np.isfinite(shift), V + np.where(np.isfinite(shift), shift, 0.0), -np.inf)


def _grows(M: sp.csr_array, rounds: int = 20) -> bool:
    """Whether some x ≥ 0 has Mx ≥ x, which proves that paths which go round outweigh those that end (theory R3).

    What a few products find is not left to SuperLU: where weights are whole numbers, as at θ = 0, pivots can be exactly
    zero, and it then was seen to call BLAS with illegal sizes, which writes to the terminal.
    """
    x = np.ones(int(M.shape[0]))
    for _ in range(rounds):
        y = M @ x
        if not y.any() or bool(np.all(y >= x)):
            return bool(y.any())
        if bool(np.all(y < x)):  # for some x > 0: the spectral radius is below 1 (Collatz and Wielandt)
            return False
        x = y / y.max()
    return False


def cheapest_moves(moves: Moves, cost: Floats) -> sp.csr_array:
    """Sparse (S, S): the least cost ≥ 0 of a move from one state to another, turned round, for `shortest_costs`."""
    order, starts, source, target = moves._merged
    # a stored zero is no edge for csgraph, so that free moves get the smallest number
    least = np.maximum(np.minimum.reduceat(cost[order], starts), np.finfo(np.float64).tiny)
    return sp.csr_array((least, (target, source)), shape=(moves.n_states, moves.n_states))


def shortest_costs(backwards: sp.csr_array, goal: Any) -> Floats:
    """(S,), or (G, S) for several goals: the least cost of a path to the goal, ∞ where there is none."""
    from scipy.sparse.csgraph import dijkstra

    return np.asarray(dijkstra(backwards, indices=goal))


NO_VALUE = (
    "the soft value does not exist for this reward: at discount 1 going round in circles is worth more than arriving, "
    "so no trip would ever arrive. Make every move cost more (when fitting: "
    + either('start= with more negative parameters, or start="ccp"', "--start ccp")
    + "), or use a discount below 1."
)
