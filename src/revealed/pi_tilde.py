"""π̃, in which the methods differ (theory E1–E3): from a reward to the soft value under it.

`OwnPolicy` is π̃ = π_θ: solve the soft fixed point. `GivenPolicy` holds π̃ and the factorisation of I − γT^π̃.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from revealed.bellman import SoftBellman
from revealed.chain import MANY, Chain, expected_payoff
from revealed.linear_solvers import Work
from revealed.mdp import MDP, Floats
from revealed.slopes import mean_features
from revealed.sweeps import q_values, soft_maximum


@dataclass(frozen=True, eq=False)
class SoftValue:
    """Q^π̃ and what follows from it; `value` is log Σ_a exp Q^π̃. The chain of π̃ is made when first asked for."""

    q: Floats
    value: Floats
    policy: Floats
    log_policy: Floats
    pi_tilde: Floats
    _chain: Callable[[], Chain]

    @cached_property
    def chain(self) -> Chain:
        return self._chain()


class PiTilde(Protocol):
    """A choice of π̃: from a reward (S, A) to the soft value under it. `moves` tells whether π̃ follows θ."""

    moves: bool

    def soft_value(self, reward: Floats) -> SoftValue: ...


class OwnPolicy:
    """π̃ = π_θ (theory E1): NFXP and MCE-IRL. Warm started from reward to reward."""

    moves = True

    def __init__(self, mdp: MDP, solver: str = "auto", work: Work | None = None, start: Floats | None = None) -> None:
        self._bellman = SoftBellman(mdp, solver, work, start=start)

    def soft_value(self, reward: Floats) -> SoftValue:
        best = self._bellman.solve(reward)
        return SoftValue(best.q, best.value, best.policy, best.log_policy, best.policy, lambda: best.chain)


class GivenPolicy:
    """π̃ given (theory E2, E3): CCP and each update of NPL. The factorisation is made once."""

    moves = False

    def __init__(
        self,
        mdp: MDP,
        pi_tilde: Floats,
        log_pi_tilde: Floats | None = None,
        solver: str = "auto",
        work: Work | None = None,
    ) -> None:
        self.mdp = mdp
        self.chain = Chain(mdp, pi_tilde, solver, work=work, systems=MANY)
        self.pi_tilde = self.chain.policy
        # 0·log 0 = 0; log π̃ comes along where tiny probabilities have underflowed
        self._entropy = expected_payoff(self.pi_tilde, np.zeros_like(self.pi_tilde), log_pi_tilde)

    def soft_value(self, reward: Floats) -> SoftValue:
        V = self.chain.solve(self._payoff(reward))  # V1
        Q = q_values(self.mdp, reward, V)  # V2
        value, policy, log_policy = soft_maximum(Q)  # P1
        return SoftValue(Q, value, policy, log_policy, self.pi_tilde, lambda: self.chain)

    def affine(self, features: Any, reward: Floats) -> tuple[Floats, Floats]:
        """∂V^π̃/∂θ (S, K) and V^π̃ (S,) of a reward (S, A) that is linear in θ (theory V6): one solve for all of them."""
        right = np.column_stack([mean_features(features, self.pi_tilde), self._payoff(reward)])
        both = self.chain.solve(right)
        return both[:, :-1], both[:, -1]

    def _payoff(self, reward: Floats) -> Floats:
        return (self.pi_tilde * reward).sum(axis=1) + self._entropy
