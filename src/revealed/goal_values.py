"""Soft values toward one goal after another on one model and reward (theory R1–R3).

Where moves are certain and nothing is discounted, one factorisation serves all goals (`paths.py`); elsewhere each goal
has its own soft fixed point (`bellman.py`), which begins at the last one's value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from revealed.bellman import SoftBellman, as_reward
from revealed.chain import Chain
from revealed.checks import Floats, Ints
from revealed.errors import InvalidInput, ValueDoesNotExist
from revealed.levels import TOLERANCE, TRUSTED, cannot_tell
from revealed.linear_solvers import EPS, Work
from revealed.mdp import MDP, require_mdp
from revealed.naming import indices_or_labels, state_in_words
from revealed.parallel import side_by_side
from revealed.paths import BLOCK, LEAST, Moves, PathSums
from revealed.positions import labelled
from revealed.transitions import reaching

NEVER_ARRIVES = (
    "visits cannot be counted: under this policy some trips are not expected to arrive within 1e12 decisions. "
    "Make every move cost more."
)


@dataclass(frozen=True, eq=False)
class Toward:
    """The soft optimum of those who head for `goal`: `value` (S,), −∞ where the goal is out of reach; `log_policy`."""

    goal: int
    value: Floats = field(repr=False)
    log_policy: Floats = field(repr=False)
    base: MDP = field(repr=False)
    _behind: Callable[[Floats], Floats] = field(repr=False)
    _ahead: Callable[[Floats], Floats] = field(repr=False)

    @cached_property
    def policy(self) -> Floats:
        """(S, A): zero where nobody who heads for the goal would be, and at the goal."""
        return np.exp(self.log_policy)

    @cached_property
    def mdp(self) -> MDP:
        return self.base.toward_state(self.goal)

    @property
    def q(self) -> Floats:
        """(S, A): −∞ where an action does not lead to the goal."""
        return self.log_policy + np.where(np.isfinite(self.value), self.value, 0.0)[:, None]

    def visits(self, starts: Floats) -> Floats:
        """(S,): expected visits of trips that start so many times in each state, the start and the goal included; for
        (S, B), each column."""
        lost = np.flatnonzero(starts.reshape(starts.shape[0], -1).any(axis=1) & np.isneginf(self.value))
        if lost.size:
            what = f"{self._goal_in_words} cannot be reached from {state_in_words(self.base, int(lost[0]))}"
            raise InvalidInput.impossible(what, argument="starts")
        return np.maximum(self.behind(np.asarray(starts, dtype=np.float64)), 0.0)

    def turns(self, starts: Floats) -> Floats:
        """(S, A): how often such trips are expected to take each action in each state."""
        return self.visits(starts)[:, None] * self.policy

    def ahead(self, per_state: Floats) -> Floats:
        """(S,): what a trip from each state is expected to gather that gets so much in every state on its way, the goal
        excepted; for (S, B), each column. Zero where the goal is out of reach."""
        given = np.where(_beside(np.isfinite(self.value), per_state), per_state, 0.0)
        given[self.goal] = 0.0
        return self._ahead(given)

    def behind(self, per_state: Floats) -> Floats:
        """(S,): how much of what sets out in each state, of either sign, comes through each; for (S, B), each column.
        The transpose of `ahead` where nothing is discounted, with what arrives at the goal."""
        return self._behind(per_state)

    @property
    def _goal_in_words(self) -> str:
        return state_in_words(self.base, self.goal).replace("state", "goal", 1)


class GoalValues:
    """Soft values of a reward (S, A) on `mdp` toward any of its states; `ValueDoesNotExist` where there are none."""

    def __init__(self, mdp: MDP, reward: Any, solver: str = "auto", work: Work | None = None) -> None:
        require_mdp(mdp)
        self.mdp, self.reward, self.solver = mdp, as_reward(mdp, labelled(reward, mdp)), solver
        self.work = Work() if work is None else work
        self.moves = Moves.of(mdp)
        self._last: Floats | None = None

    @cached_property
    def _log_weight(self) -> Floats:
        assert self.moves is not None
        return self.reward.reshape(-1)[self.moves.pair]

    @cached_property
    def _shared(self) -> PathSums | None:
        assert self.moves is not None
        return PathSums.in_common(self.moves, self._log_weight, self.work)

    def toward(self, goal: Any) -> Toward:
        """For one goal, an index, or a label that is text."""
        return next(self.each([goal]))

    def each(self, goals: Any) -> Iterator[Toward]:
        """One after another, in the order of `goals`; only a few are held at a time."""
        index = indices_or_labels("goal", list(goals), self.mdp.state_labels, self.mdp.n_states)
        if self.moves is None:
            yield from (self._by_newton(int(goal)) for goal in index)
            return
        if self._shared is None:
            yield from (self._alone(int(goal)) for goal in index)
            return
        blocks = [index[i : i + BLOCK] for i in range(0, index.size, BLOCK)]
        for block in side_by_side(self._block, blocks):
            for found in block:  # a factorisation is let go by the thread that made it, hence alone goals here
                yield self._alone(found) if isinstance(found, int) else found

    def _block(self, goals: Ints) -> list[Toward | int]:
        """Those toward some goals; of a goal that is too far for sums in common, its index."""
        assert self._shared is not None
        z = self._shared.toward(goals)
        return [self._toward(int(goal), self._shared, z[:, i].copy()) for i, goal in enumerate(goals)]

    def _toward(self, goal: int, sums: PathSums, z: Floats) -> Toward | int:
        faint = z < LEAST
        if sums.potential is None and faint.any() and np.any(faint & reaching(self.mdp.backwards, goal)):
            return goal
        V = sums.values(z)
        solves = (lambda given: behind(sums, goal, z, given), lambda given: ahead(sums, goal, z, given))
        return Toward(goal, V, self._log_policy(goal, V), self.mdp, *solves)

    def _alone(self, goal: int) -> Toward:
        assert self.moves is not None
        sums = PathSums.alone(self.moves, self._log_weight, goal, self.work)
        found = self._toward(goal, sums, sums.toward(np.array([goal]))[:, 0])
        assert isinstance(found, Toward)
        return found

    def _log_policy(self, goal: int, V: Floats) -> Floats:
        assert self.moves is not None
        source, target = self.moves.source, self.moves.target
        used = np.isfinite(V[target]) & (source != goal)
        out = np.full(self.mdp.feasible.shape, -np.inf)
        gain = self._log_weight[used] + V[target[used]] - V[source[used]]
        self._require_known(gain, source[used], V)
        out.reshape(-1)[self.moves.pair[used]] = gain
        return out

    def _require_known(self, gain: Floats, source: Ints, V: Floats) -> None:
        """Raise where float64 cannot tell the choices (theory B6): probabilities out of a state sum to one as nearly as
        the values behind them are known."""
        size = float(np.abs(V[source]).max(initial=0.0))
        if 4 * EPS * size <= TRUSTED:
            return
        total = np.bincount(source, np.exp(gain), minlength=V.size)
        off = np.where(np.bincount(source, minlength=V.size) > 0, np.abs(total - 1.0), 0.0)
        worst = int(np.argmax(off))
        if off[worst] > TOLERANCE:
            raise cannot_tell(self.mdp, state_in_words(self.mdp, worst), size, float(off[worst]))

    def _by_newton(self, goal: int) -> Toward:
        mdp = self.mdp.toward_state(goal)
        bellman = SoftBellman(mdp, self.solver, self.work, start=self._last)
        best = bellman.solve(np.where(mdp.feasible, self.reward, 0.0))
        self._last = best.value
        V = value_toward(mdp, self.mdp, best.value)

        def behind_them(given: Floats) -> Floats:
            """Visits are counted, not discounted: every trip arrives, whatever the future is worth."""
            if mdp.discount == 1.0:
                return best.chain.backward(given)
            try:
                counted = Chain(mdp.replace(discount=1.0), best.policy, self.solver, work=self.work, check=False)
                return counted.backward(given)
            except ValueDoesNotExist as problem:
                raise ValueDoesNotExist(NEVER_ARRIVES) from problem

        found = Toward(goal, V, best.log_policy, self.mdp, behind_them, best.chain.forward)
        found.__dict__["mdp"] = mdp
        return found


def value_toward(mdp: MDP, base: MDP, value: Floats) -> Floats:
    """V on `mdp = base.toward(goal)`, −∞ where the goal is out of reach. Where moves are uncertain a trip may fall into
    another end of the model, whose value is 0 (theory R1)."""
    out = mdp.terminal & (np.arange(mdp.n_states) != mdp.goal)
    return np.where(out if base.certain else out & ~base.terminal, -np.inf, value)


def behind(sums: PathSums, goal: int, z: Floats, given: Floats) -> Floats:
    """(I − P)⁻ᵀb = z·Gᵀ(b/z), less at the goal what arrives there (theory R4): visits, for b what sets out."""
    sides = _beside(z, given)
    b = np.divide(given, sides, out=np.zeros_like(given), where=sides > 0.0)
    arriving = given.sum(axis=0) - given[goal]
    b[goal] = -arriving
    out = sides * np.where(sides > 0.0, sums.solve_transpose(b), 0.0)
    out[goal] = given[goal] + arriving
    return out


def ahead(sums: PathSums, goal: int, z: Floats, given: Floats) -> Floats:
    """(I − P)⁻¹b = G(zb)/z less what lies behind the goal, for P(s, s') = M(s, s')z(s')/z(s): the forward side of
    `behind`."""
    sides = _beside(z, given)
    w = sums.solve(sides * given)
    return np.where(sides > 0.0, w / np.where(sides > 0.0, sides, 1.0) - w[goal], 0.0)


def _beside(column: Any, table: Floats) -> Any:
    """One entry per state, for a table (S,) or (S, B)."""
    return column if table.ndim == 1 else column[:, None]
