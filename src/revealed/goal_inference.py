"""How sure, where trips have goals: the scores of decisions toward many goals (theory N1, R6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from revealed.checks import Floats
from revealed.errors import InvalidOption
from revealed.inference import MOST_NUMBERS, Evidence


@dataclass(frozen=True, eq=False)
class GoalEvidence(Evidence):
    """As `Evidence`, with `weights` sparse (N, R*A) over the rows in which trips to each goal were seen."""

    @cached_property
    def scores(self) -> Floats:
        """(pairs seen, K): ∂ log π_θ(a|s)/∂θ of decisions on the way to their goal."""
        part, K = self.point.parts[0], self.point.theta.size
        if not hasattr(self.point.objective.reward, "jacobian") or part.choices.rho.size * K > MOST_NUMBERS:
            expected = '"hessian" or "bootstrap" where trips have goals and the reward no small Jacobian'
            raise InvalidOption("kind", expected, "scores", remedy="Use fit.bootstrap().")
        mean = np.einsum("ra,rak->rk", np.exp(part.choices.log_policy), part.slopes)
        return (part.slopes - mean[:, None, :]).reshape(-1, K)[self.seen]

    def _require_estimated(self, kind: str) -> None:
        expected = "False where trips have goals"
        raise InvalidOption("joint", expected, "True", remedy='kind="bootstrap" estimates the transitions anew.')
