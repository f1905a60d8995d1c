"""How sure, where trips have goals: the scores of decisions toward many goals (theory N1, R6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats
from revealed.errors import InvalidOption
from revealed.inference import MOST_NUMBERS, Evidence
from revealed.rewards.base import is_linear
from revealed.voices import arg, either


@dataclass(frozen=True, eq=False)
class GoalEvidence(Evidence):
    """As `Evidence`, with `weights` sparse (N, R*A) over the rows in which trips to each goal were seen.

    A trip is one observation: `trips` sparse (T, R*A) has the decisions of each, which counts `often` (T,) times.
    """

    trips: sp.csr_array = field(repr=False, kw_only=True)
    often: Floats = field(repr=False, kw_only=True)

    @cached_property
    def trip_scores(self) -> Floats:
        """(T, K): the derivative of each trip's log likelihood, as if it counted once (theory N1a)."""
        return np.asarray(self.trips[:, self.seen] @ self.scores)

    def _outer(self) -> Floats:
        """Σ_t u_t u_tᵀ: decisions of one trip are one draw, however they are correlated (theory N1a)."""
        U = self.trip_scores - self.often @ self.trip_scores / self.often.sum()
        return (U * self.often[:, None]).T @ U

    @cached_property
    def scores(self) -> Floats:
        """(pairs seen, K): ∂ log π_θ(a|s)/∂θ of decisions on the way to their goal."""
        part, K = self.point.parts[0], self.point.theta.size
        if not has_scores(self.point.objective.reward, part.choices.rho.size):
            what = "this kind of error needs scores of single decisions, and trips with goals have too many of them"
            remedy = f"Use {either('fit.bootstrap()', '--errors bootstrap')}."
            raise InvalidOption.impossible(what, None, remedy, "kind")
        mean = np.einsum("ra,rak->rk", np.exp(part.choices.log_policy), part.slopes)
        return (part.slopes - mean[:, None, :]).reshape(-1, K)[self.seen]

    def _require_estimated(self, kind: str) -> None:
        rule = "has no formula where trips have goals"
        raise InvalidOption.conflict("joint", rule, remedy=f"{arg('kind', 'bootstrap')} re-estimates the transitions.")


def has_scores(reward: Any, n_pairs: int) -> bool:
    """Whether the scores of decisions in so many pairs can be held: features, and room for them."""
    return is_linear(reward) and n_pairs * reward.n_params <= MOST_NUMBERS
