"""Where behaviour spends its time in the long run (theory L1, L2), and how that moves with the chain.

Behaviour that never ends has a long-run distribution: the share of time in each state, from the start distribution.
The states fall into closed classes, which nobody leaves, and the rest, which everybody leaves. One state of each class
is made an end, so that I − P becomes invertible: a solve with the transpose counts visits until the first such end,
and a second one the visits between two returns to it, whose shares are the long run. There is no limit to be taken,
and chains with a period or with several classes are nothing special. Behaviour that surely ends has no such shares;
there the expected visits of one episode take their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, Floats, Ints
from revealed.errors import SolverFailed
from revealed.linear_solvers import MOST_STEPS, LinearSolver, make_solver
from revealed.mdp import MDP
from revealed.transitions import can_reach

LOOK_AHEAD = 12  # steps after which a state that is visited often stands out


class ChainChange(Protocol):
    """The derivative of P = T^π along M directions, as an operator: dP x and wᵀdP, both (S, M)."""

    def expect(self, x: Floats) -> Floats: ...
    def push(self, w: Floats) -> Floats: ...


@dataclass(frozen=True, eq=False)
class LongRun:
    """`visits` (S,): the share of time in each state where `ends` is False; else expected visits of one episode.

    If some behaviour ends and some never does, the long run is that of those who never do: they decide for ever. NaN
    where float64 cannot tell, because some states are left less than once in 10¹² decisions.
    """

    visits: Floats
    ends: bool
    _mdp: MDP
    _policy: Floats
    _parts: _Parts | None

    def derivative(self, change: ChainChange) -> Floats:
        """(S, M): d visits along the directions of `change` (theory L2)."""
        if self._parts is None:
            return np.full_like(change.push(np.zeros_like(self.visits)), np.nan)
        parts, m = self._parts, self.visits
        pushed = change.push(m)
        if not self.ends:
            # m = wᵀPN with w = h/L: what each end sends out depends on how often it is hit and how long a round takes
            longer = parts.per_class(m[:, None] * change.expect(parts.steps))  # w dL
            dw = (parts.d_shares(change) - longer) / parts.length[:, None]
            pushed = pushed + self._send(parts, dw)
        return parts.solver.solve_transpose(pushed)

    def pull(self, c: Floats) -> list[tuple[Floats, Floats]]:
        """Pairs (w, x) with cᵀ d visits = Σ wᵀ dP x, whatever the change of P: the derivative of one number that is
        made of the visits, along all directions at once (theory L2, read from the right)."""
        if self._parts is None:
            return [(np.full_like(c, np.nan), c)]
        parts, m = self._parts, self.visits
        y = parts.solver.solve(c)
        if self.ends:
            return [(m, y)]
        per_round = self._received(parts, y) / parts.length
        rounds = np.append(per_round, 0.0)[parts.class_of]  # what longer rounds of each class cost
        found = [(m, y), (-rounds * m, parts.steps)]
        return found if parts.alone else [*found, (parts.before, parts.solver.solve(parts.to_hits(per_round)))]

    def _received(self, parts: _Parts, y: Floats) -> Floats:
        """(C,): (P y)(e), the transpose of `_send`."""
        return (self._policy * self._mdp.transitions.expect(y)).sum(axis=1)[parts.ends]

    def _send(self, parts: _Parts, weight: Floats) -> Floats:
        """Pᵀ of weights (C, M) that lie on the ends."""
        rows = (parts.ends[:, None] * self._mdp.n_actions + np.arange(self._mdp.n_actions)).reshape(-1)
        out = weight[:, None, :] * self._policy[parts.ends][:, :, None]
        return self._mdp.transitions.matrix[rows].T @ out.reshape(rows.size, -1)


@dataclass(frozen=True, eq=False)
class _Parts:
    """What the long run was found with. `ends` (C,) one state per closed class that is reached; `class_of` (S,) its
    number, C elsewhere; `before` (S,) visits before an end; `hit` and `length` (C,) the chance to come there and the
    mean number of steps until it is met again; `steps` (S,) expected steps to an end."""

    solver: LinearSolver
    ends: Ints
    class_of: Ints
    before: Floats
    hit: Floats
    length: Floats
    steps: Floats
    alone: bool

    def per_class(self, table: Floats) -> Floats:
        """Sums over the states of each class: (S, M) to (C, M)."""
        C = self.ends.size
        indicator = sp.csr_array((np.ones(self.class_of.size), self.class_of, np.arange(self.class_of.size + 1)))
        return np.asarray(sp.csr_array(indicator, shape=(self.class_of.size, C + 1)).T @ table)[:C]

    def d_shares(self, change: ChainChange) -> Floats:
        """d of the shares of the classes among those who never end; zero where there is one class and no end."""
        M = change.push(self.before).shape[1]
        if self.alone:
            return np.zeros((self.ends.size, M))
        d_hit = self.solver.solve_transpose(change.push(self.before))[self.ends]
        total = self.hit.sum()
        return d_hit / total - np.outer(self.hit, d_hit.sum(axis=0)) / total**2

    def to_hits(self, v: Floats) -> Floats:
        """(S,): the transpose of `d_shares` up to its solve, of v (C,)."""
        out, total = np.zeros(self.class_of.size), self.hit.sum()
        out[self.ends] = v / total - (v @ self.hit) / total**2
        return out


def long_run(mdp: MDP, policy: Floats, start: Floats, solver: str = "auto") -> LongRun:
    """The long run of a policy (S, A) from a start distribution (S,)."""
    P = mdp.transitions.mix(policy)
    P.eliminate_zeros()
    closed, label = _closed_classes(P, mdp.terminal)
    stops = _often_visited(P, closed, label)
    reached = can_reach(sp.csr_array(P.T), start > 0.0)
    ends = stops[reached[stops]]
    try:
        parts = _solve(mdp, policy, start, stops, ends, label, solver)
    except SolverFailed:
        parts = None
    visits = np.full(mdp.n_states, np.nan) if parts is None else _visits(mdp, policy, parts)
    return LongRun(visits, ends.size == 0, mdp, policy, parts)


def _solve(mdp: MDP, policy: Floats, start: Floats, stops: Ints, ends: Ints, label: Ints, solver: str) -> _Parts | None:
    """Factor I − P with the rows of P at all stops empty, and solve; None where it takes too long to get anywhere."""
    going = np.ones(mdp.n_states)
    going[stops] = 0.0
    lu = make_solver(mdp.transitions.identity_minus(1.0, policy * going[:, None]), mdp.structure, solver)
    met = lu.solve_transpose(start)
    steps = lu.solve(np.ones(mdp.n_states))
    length = (policy[ends] * mdp.transitions.expect(steps)[ends]).sum(axis=1)
    longest = max(float(start @ steps), float(length.max(initial=0.0)))
    if not (np.isfinite(met).all() and 0.0 <= longest < MOST_STEPS):
        return None
    number = np.full(label.max() + 1, ends.size)
    number[label[ends]] = np.arange(ends.size)
    alone = ends.size == 1 and not mdp.terminal.any()
    return _Parts(lu, ends, number[label], np.maximum(met * going, 0.0), met[ends], length, steps, alone)


def _visits(mdp: MDP, policy: Floats, parts: _Parts) -> Floats:
    if parts.ends.size == 0:
        return parts.before
    weight = np.zeros(mdp.n_states)
    weight[parts.ends] = parts.hit / parts.hit.sum() / parts.length
    sent = mdp.transitions.push(weight[:, None] * policy)
    return np.maximum(parts.solver.solve_transpose(sent), 0.0)


def _closed_classes(P: sp.csr_array, terminal: Bools) -> tuple[Bools, Ints]:
    """Which strong components nobody leaves (terminal states are none), and the component of each state."""
    from scipy.sparse.csgraph import connected_components

    n, label = connected_components(P, directed=True, connection="strong")
    rows = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))
    closed = np.ones(n, dtype=bool)
    closed[label[rows[label[rows] != label[P.indices]]]] = False
    closed[label[terminal]] = False
    return closed, label.astype(np.intp)


def _often_visited(P: sp.csr_array, closed: Bools, label: Ints) -> Ints:
    """One state per closed class, met so often that a round is short: the likeliest after some lazy steps."""
    share = np.full(P.shape[0], 1.0 / P.shape[0])
    onwards = sp.csr_array(P.T)
    for _ in range(LOOK_AHEAD):
        share = 0.5 * (share + onwards @ share)
    order = np.argsort(share, kind="stable")
    likeliest = np.zeros(closed.size, dtype=np.intp)
    likeliest[label[order]] = order  # the last one written is the largest
    return likeliest[closed]
