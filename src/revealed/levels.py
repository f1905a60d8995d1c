"""Levels and differences (theory B5, B6): choices follow from differences of values, however large the values are.

Where nothing ends, a constant added to every reward moves every value by as much over 1 − γ and no choice. Where
something does, a constant m taken off the value of every state that goes on is a shaping of the reward. Either way the
level comes out first, so that what is computed is no larger than it has to be, and it is added again in the end. What
float64 leaves open is estimated from the rounding in each state and from how far the chain carries it; choices that
are not known to `TOLERANCE` are refused.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from revealed.checks import Bools, Floats, Ints
from revealed.errors import SolverFailed
from revealed.linear_solvers import EPS, SAMPLE
from revealed.mdp import MDP
from revealed.naming import state_in_words

TOLERANCE = 1e-6  # of choice probabilities
PATIENT = 1e-5  # 1 − γ below which the search for an optimum starts from that of a smaller discount
IDLE = 5  # steps near rounding that improve nothing, before the estimate of errors decides
FINE = 1e-10  # log-odds: errors that a fit does not see
ALIKE = 1e-9  # choice probabilities that count as the same
TRUSTED = 1e-7  # log-odds: errors below this need no second look
MOST_REFERENCES = 12  # states from which errors are measured: parts of a model that do not meet need one each
MOST = 1e100  # an error about which nothing is known
ROUNDING = 2 * EPS  # of a sum of a few products, relative to the sizes of its terms


def typical(x: Floats) -> Any:
    """The (upper) median of at most about a thousand entries of x (n,), or of each column (n, K): outliers, such as
    penalties that forbid something, must not move it."""
    some = x[:: -(-len(x) // SAMPLE)]
    return np.partition(some, len(some) // 2, axis=0)[len(some) // 2]


def level_of(mdp: MDP, reward: Floats) -> float:
    """What can be taken off every reward (S, A) without changing a choice: the reward of a typical feasible pair where
    nothing ends, zero elsewhere. Zeros that stand for infeasible pairs do not count."""
    if not mdp.endless:
        return 0.0
    step = -(-mdp.n_states // SAMPLE)
    return float(typical(reward[::step][mdp.feasible[::step]]))


def without_level(mdp: MDP, reward: Floats, level: float) -> Floats:
    """The reward (S, A) with its level off the feasible pairs; zero elsewhere, as before."""
    if level == 0.0:
        return reward
    return np.where(mdp.feasible, reward - level, 0.0) if mdp.masked else reward - level


def shaped(mdp: MDP, reward: Floats, m: float) -> Floats:
    """The reward under which every state that goes on is worth m less: r − m(1 − γ) − γm·P(it ends) (theory B5)."""
    ends = mdp.transitions.expect(mdp.terminal.astype(np.float64))
    return np.where(mdp.feasible, (reward - m * (1.0 - mdp.discount)) - (mdp.discount * m) * ends, 0.0)


class Relative(Protocol):
    """A chain that solves for differences of values, as `chain.Chain` does."""

    def solve_relative(self, b: Floats) -> tuple[Floats, Any]: ...
    def backward(self, b: Floats) -> Floats: ...


def less_patient(discount: float) -> float:
    """A discount a thousand times farther from 1."""
    return 1.0 - 1e3 * (1.0 - discount)


def judged_by(discount: float, apart: float, whole: float) -> float:
    """The size beside which a residual is rounding: that of values without their level (`apart`); with it (`whole`) as
    long as log-odds are known to `FINE` all the same."""
    return max(apart, min(whole, FINE * (1.0 - discount) / (8 * EPS)))


def surely_known(discount: float, rounding: float) -> bool:
    """Whether log-odds are known by the contraction's bound alone, where V's equation is known to `rounding`."""
    return 2.0 * rounding <= TRUSTED * (1.0 - discount)


def doubt_of(
    mdp: MDP, chain: Relative, reward: Floats, V: Floats, residual: Floats, policy: Floats, log_policy: Floats
) -> SolverFailed | None:
    """Why the choices that follow from r + γTV are not known to `TOLERANCE`; None where they are (theory B6).

    V is the value of `policy`, whose chain this is, and `residual` (S,) what is left of its equation; `log_policy`
    are the choices.
    """
    expect, own = mdp.transitions.expect, rounding_of(mdp, reward, V)
    hidden, marks = _hidden(own, policy, V, residual), marks_of(mdp, reward)
    off, bounds = np.full(mdp.n_states, np.inf), ValueErrors(mdp, chain, hidden)
    while (errors := bounds.next(off)) is not None:
        off = np.minimum(off, choice_errors(log_policy, own + mdp.discount * expect(errors), marks))
        if off.max() <= TOLERANCE:
            return None
    worst = int(np.argmax(off))
    return cannot_tell(mdp, state_in_words(mdp, worst), float(np.ptp(V)), float(off[worst]))


def rounding_of(mdp: MDP, reward: Floats, V: Floats) -> Floats:
    """(S, A): what rounding may do to Q = r + γTV."""
    return ROUNDING * (np.abs(reward) + mdp.discount * mdp.transitions.expect(np.abs(V)))


def _hidden(own: Floats, policy: Floats, V: Floats, residual: Any = 0.0) -> Floats:
    """(S,): how well the equation of V, the value of a policy, is known."""
    return np.abs(residual) + np.sum(policy * own, axis=1) + EPS * np.abs(V)


def marks_of(mdp: MDP, reward: Floats) -> tuple[Floats, ...]:
    """Tables (S, A) whose entries are all the same for two actions that are the same."""
    return mdp.transitions.expect(np.random.default_rng(0).random(mdp.n_states)), reward


def same_as(best: Ints, marks: tuple[Floats, ...]) -> Bools:
    """(S, A): actions that are the same as the best one (S,) of their state."""
    rows = np.arange(len(best))
    return np.logical_and.reduce([mark == mark[rows, best][:, None] for mark in marks])


def spread_of(mdp: MDP, reward: Floats) -> float:
    """How far rewards of feasible pairs differ; where all are the same, their size."""
    offered = reward[mdp.feasible]
    return float(np.ptp(offered)) or float(np.abs(offered).max())


def truly_tied(
    mdp: MDP, chain: Relative, reward: Floats, V: Floats, policy: Floats, tied: Bools, short: Floats
) -> Bools:
    """Those of the `tied` pairs (S, A) that cannot be told from the best one of their state, of which they fall `short`
    (theory B6); raises where that is no tie, but float64."""
    rows, best = np.arange(len(short)), np.argmin(short, axis=1)
    own, same = rounding_of(mdp, reward, V), same_as(best, marks_of(mdp, reward))
    bounds = ValueErrors(mdp, chain, _hidden(own, policy, V))
    known, open_ = np.full(short.shape, np.inf), tied & ~same
    while open_.any() and (errors := bounds.next(np.where(open_.any(axis=1), np.inf, 0.0))) is not None:
        off = own + mdp.discount * mdp.transitions.expect(errors)
        known = np.minimum(known, off + off[rows, best][:, None])
        open_ &= short <= known
    coarse = open_ & (known > TOLERANCE * spread_of(mdp, reward))
    if coarse.any():
        worst = int(np.flatnonzero(coarse.any(axis=1))[0])
        raise cannot_tell(mdp, state_in_words(mdp, worst), float(np.ptp(V)))
    return (tied & same) | open_


class ValueErrors:
    """Bounds (S,) of the error of values whose equation is known to `hidden` (S,), one after the other (theory B6).

    Where something ends, first those of the values as they are; then up to a constant, measured from states that are
    often met.
    """

    def __init__(self, mdp: MDP, chain: Relative, hidden: Floats) -> None:
        self.mdp, self.chain, self.asked = mdp, chain, 0 if mdp.ends else 1
        self.often = chain.backward(np.full(mdp.n_states, 1.0 / mdp.n_states))
        self.y, self.gain = chain.solve_relative(hidden)

    def next(self, off: Floats) -> Floats | None:
        """The next bound, for those states of whose choices no bound has shown yet that they are known."""
        self.asked += 1
        if self.asked == 1:
            return _bound(self.y)
        if self.asked > 1 + MOST_REFERENCES:
            return None
        here = int(np.argmax(np.where((off > TOLERANCE) & ~self.mdp.terminal, self.often, -np.inf)))
        met = np.zeros(self.mdp.n_states)
        met[here] = 1.0
        x, rate = self.chain.solve_relative(met)
        with np.errstate(all="ignore"):
            x_here, y_here = self._at(x, rate, here), self._at(self.y, self.gain, here)
            return _bound((self.y - self.y[here]) + 2.0 * y_here * ((x[here] - x) / x_here))

    def _at(self, h: Floats, g: Any, state: int) -> float:
        return float(h[state] + (g / (1.0 - self.mdp.discount) if self.mdp.endless else 0.0))


def _bound(x: Floats) -> Floats:
    return np.where(np.isfinite(x), np.clip(x, 0.0, MOST), MOST)


def choice_errors(log_policy: Floats, off: Floats, marks: tuple[Floats, ...]) -> Floats:
    """(S,): how far choice probabilities may be off where Q is by up to `off` (S, A) (theory B6).

    `marks` (S, A) each are the same for actions that are the same: between those nothing is unknown.
    """
    best = np.argmax(log_policy, axis=1)
    gap = off + off[np.arange(len(best)), best][:, None]
    gap[same_as(best, marks)] = 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        more = np.where(gap < 30.0, np.log(np.expm1(np.minimum(gap, 30.0))), gap)  # log(e^gap − 1)
        shares = np.exp(np.minimum(log_policy + more, 0.0))
    return np.where(np.isnan(shares) | np.isneginf(log_policy), 0.0, shares).sum(axis=1)


def cannot_tell(mdp: MDP, state: str, size: float, error: float = 1.0) -> SolverFailed:
    """The refusal: numbers and a remedy."""
    known = f"uncertain by {error:.1e}, more than {TOLERANCE:.0e}" if error < 1.0 else "undecided"
    near = 1.0 - mdp.discount
    smaller = "a smaller discount, or rewards of smaller size" if near else "rewards of smaller size"
    return SolverFailed(
        f"float64 is not precise enough here: values of states differ by up to {size:.1e}, the discount is 1"
        f"{f' − {near:.1e}' if near else ''}, and rounding leaves choices in {state} {known}. Use {smaller}."
    )
