"""A fit made again on reweighted agents: what each replication of a bootstrap does (theory N6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from revealed.bootstrap import Replication
from revealed.demonstrations import Demonstrations
from revealed.errors import RevealedError
from revealed.labels import in_series
from revealed.mdp import MDP, Floats
from revealed.transitions import EstimatedTransitions


@dataclass(frozen=True)
class Reestimation:
    """A fit's estimator on reweighted agents: transitions and first step are estimated again, then θ from θ̂."""

    estimator: Any
    mdp: MDP
    demonstrations: Demonstrations
    theta: Floats
    value: Floats | None
    settled: bool

    @property
    def estimated(self) -> EstimatedTransitions | None:
        """The transitions, where they were estimated from these agents."""
        found = self.mdp.estimated
        return found if found is not None and found.ids == self.demonstrations.ids else None

    def __call__(self, weights: Floats) -> Replication:
        mdp, psi = self._mdp(weights)
        try:
            fit = self.estimator.refit(mdp, self.demonstrations._reweighted(weights), self.theta, self.value)
        except RevealedError as error:
            return Replication(self.theta, psi, type(error).__name__)
        if fit.status.interrupted:
            raise KeyboardInterrupt  # half a search is no replication
        well = fit.at_maximum and (fit.settled or not self.settled)
        return Replication(fit.theta, psi, "" if well else fit.status.code)

    def is_maximum(self, weights: Floats, found: Replication, slack: float) -> bool:
        """Whether a replication is where its search may end, tolerances taken so many times as wide: one solve. Not
        told of an NPL that has not settled, whose last π̃ is not kept."""
        mdp, psi = self._mdp(weights)
        if psi.shape != found.psi.shape or not np.allclose(psi, found.psi, rtol=1e-6, atol=1e-6):
            return False
        run = self.estimator._again(mdp, self.demonstrations._reweighted(weights), found.theta, self.value)
        if run.method == "NPL" and not self.settled:
            return True
        point = run.look_again(found.theta, run.given(run.expert) if run.method == "CCP" else run.own())
        ended = run.hardly_moves if run.method == "NPL" else partial(run.has_ended, slack=slack)
        return point.problem is None and ended(point)

    def _mdp(self, weights: Floats) -> tuple[MDP, Floats]:
        if self.estimated is None:
            return self.mdp, np.zeros(0)
        again = self.estimated._reweighted(weights)
        return with_transitions(self.mdp, again), again.psi

    def in_words(self) -> str:
        """What each replication estimates again."""
        first_step = self.estimator.options.first_step
        uses = self.estimator.method in ("CCP", "NPL") or self.estimator.options.weighting == "occupancy"
        estimates = isinstance(first_step, str) or hasattr(first_step, "estimate")
        again = ["θ", "the first step"] if uses and estimates else ["θ"]
        again += ["the transitions"] if self.estimated is not None else []
        return in_series(again) + " re-estimated"


def with_transitions(mdp: MDP, estimated: Any) -> MDP:
    """The same model with other transitions, on its horizon if it has one."""
    if mdp.base is None or mdp.horizon is None:
        return mdp.replace(transitions=estimated)
    return mdp.base.replace(transitions=estimated).unroll(mdp.horizon)
