"""How flows and choices answer to an attribute: exact derivatives, one solve forward and one back per destination.

Along a change dr of the rewards of turns, dV = (I − P)⁻¹ Σ π dr and d log π = dr + dV(s') − dV(s) (theory V5, L2).
Visits x follow from what the choices send where: dx = (I − P)^{-T} Σ x dπ, as in L3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed.checks import Floats, Ints
from revealed.goal_values import Toward
from revealed.paths import Moves

LEAST = 1e-12  # share of the trips below which a flow is rounding


@dataclass(frozen=True, eq=False)
class Response:
    """How a goal's choices move along B changes `dr` (E, B) of the rewards of turns."""

    toward: Toward
    moves: Moves
    dr: Floats

    @property
    def policy(self) -> Floats:
        """(E,) choice probabilities of turns."""
        return self.toward.policy.reshape(-1)[self.moves.pair]

    def log_policy(self) -> Floats:
        """(E, B): d log π of each turn; zero where a turn is not used."""
        dV = self.value()
        used = (self.policy > 0.0)[:, None]
        return np.where(used, self.dr + dV[self.moves.target] - dV[self.moves.source], 0.0)

    def value(self) -> Floats:
        """(S, B): dV, zero where the goal is out of reach."""
        return self.toward.ahead(_gathered(self.moves.source, self.policy[:, None] * self.dr, self.moves.n_states))

    def flows(self, starts: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Visits (S,) and their derivatives (S, B), use of turns (E,) and its derivatives (E, B)."""
        source, policy = self.moves.source, self.policy
        visits = self.toward.visits(starts)
        moved = (visits[source] * policy)[:, None] * self.log_policy()
        sent = _gathered(self.moves.target, moved, self.moves.n_states)
        d_visits = self.toward.behind(sent)
        return visits, d_visits, visits[source] * policy, moved + d_visits[source] * policy[:, None]


def _gathered(index: Ints, values: Floats, n: int) -> Floats:
    """(n, B): the sum of the values (E, B) at each index."""
    return np.column_stack([np.bincount(index, column, minlength=n).astype(np.float64) for column in values.T])


def share_of(change: Floats, level: Floats, trips: float) -> Floats:
    """d log: the change relative to the level, NaN where next to nothing of the trips goes by."""
    there = level > LEAST * trips
    return np.where(there[:, None], change / np.where(there, level, 1.0)[:, None], np.nan)
