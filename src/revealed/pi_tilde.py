"""π̃, in which the methods differ (theory E1–E3): from a reward to the soft value under it.

`OwnPolicy` is π̃ = π_θ: solve the soft fixed point. `GivenPolicy` holds π̃ and the factorisation of I − γT^π̃.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from revealed.bellman import SoftBellman
from revealed.chain import MANY, Chain, expected_payoff
from revealed.errors import SolverFailed
from revealed.levels import doubt_of, level_of, shaped, surely_known, without_level
from revealed.linear_solvers import EPS, Work
from revealed.mdp import MDP, Floats
from revealed.positions import labelled
from revealed.slopes import mean_features
from revealed.sweeps import q_values, soft_maximum


@dataclass(frozen=True, eq=False)
class SoftValue:
    """Q^π̃ and what follows from it; `value` is log Σ_a exp Q^π̃. The chain of π̃ is made when first asked for.

    `relative` is V^π̃ up to a constant where nothing ends (theory B5); `doubt` says why float64 cannot tell the choices,
    where it cannot (B6).
    """

    q: Floats
    value: Floats
    policy: Floats
    log_policy: Floats
    pi_tilde: Floats
    _chain: Callable[[], Chain]
    relative: Floats | None = None
    doubt: SolverFailed | None = None

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
        behaviour = best.q, best.value, best.policy, best.log_policy, best.policy
        return SoftValue(*behaviour, lambda: best.chain, best.relative)


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
        self.chain = Chain(mdp, labelled(pi_tilde, mdp), solver, work=work, systems=MANY)
        self.pi_tilde = self.chain.policy
        # 0·log 0 = 0; log π̃ comes along where tiny probabilities have underflowed
        self._entropy = expected_payoff(self.pi_tilde, np.zeros_like(self.pi_tilde), log_pi_tilde)

    def soft_value(self, reward: Floats) -> SoftValue:
        level = level_of(self.mdp, reward)
        reward = without_level(self.mdp, reward, level)
        V, gain = self.chain.solve_relative(self._payoff(reward))  # V1
        found = self._choices(reward, V, 0.0)
        if found.doubt is not None and self.mdp.ends:
            found = self._without(reward, V)
        if not self.mdp.endless:
            return found
        m = (level + self.mdp.discount * float(gain)) / (1.0 - self.mdp.discount)
        return replace(found, q=found.q + m, value=found.value + m)

    def _choices(self, reward: Floats, V: Floats, m: float) -> SoftValue:
        """What follows from V, of which m was taken off where something goes on."""
        Q = q_values(self.mdp, reward, V)  # V2
        value, policy, log_policy = soft_maximum(Q)  # P1
        doubt = self._doubt(reward, V, log_policy)
        if m:
            Q, value, V = Q + m, *(np.where(self.mdp.terminal, 0.0, x + m) for x in (value, V))
        return SoftValue(Q, value, policy, log_policy, self.pi_tilde, lambda: self.chain, V, doubt)

    def _doubt(self, reward: Floats, V: Floats, log_policy: Floats) -> SolverFailed | None:
        size = 8 * EPS * float(2.0 * np.abs(V).max(initial=0.0) + np.abs(reward).max(initial=0.0))
        if surely_known(self.mdp.discount, size):
            return None
        left = self._payoff(reward) - self.chain.A @ V
        left = left - 0.5 * (left.max() + left.min()) if self.mdp.endless else left
        return doubt_of(self.mdp, self.chain, reward, V, left, self.pi_tilde, log_policy)

    def _without(self, reward: Floats, V: Floats) -> SoftValue:
        """The same with a typical value off every state that goes on (theory B5), solved for what is left."""
        m = float(np.median(V[~self.mdp.terminal]))
        lower, V = shaped(self.mdp, reward, m), np.where(self.mdp.terminal, 0.0, V - m)
        for _ in range(2):
            V = V + self.chain._apply(self._payoff(lower) - self.chain.A @ V, False)
        return self._choices(lower, V, m)

    def affine(self, features: Any, reward: Floats) -> tuple[Floats, Floats, Floats]:
        """∂V^π̃/∂θ (S, K) and V^π̃ (S,) of a reward (S, A) that is linear in θ (theory V6): one solve for all of them.
        Where nothing ends, each up to a constant; those of the first times 1 − γ (K,) are the third."""
        right = np.column_stack([mean_features(features, self.pi_tilde), self._payoff(reward)])
        both, gains = self.chain.solve_relative(right)
        return both[:, :-1], both[:, -1], gains[:-1]

    def _payoff(self, reward: Floats) -> Floats:
        return (self.pi_tilde * reward).sum(axis=1) + self._entropy
