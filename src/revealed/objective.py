"""The theorem: one objective and one gradient for NFXP = MCE-IRL, CCP and NPL, which differ in π̃ alone.

    Q = Q^π̃_θ (V2),  π_θ = softmax Q (P1),  g(θ) = Σ ρ(s,a) log π_θ(a|s) (O1)
    D = ρ − ρ(s)π_θ (G1),  λ = (I − γT^π̃)^{-T} γTᵀD (G2),  ∂g/∂r = D + π̃ ⊙ λ (G3),  ∂g/∂θ = vjp of the reward (G4)

Labels are those of docs/theory.md. `OwnPolicy` is π̃ = π_θ: solve the soft fixed point. `GivenPolicy` holds π̃ and the
factorisation of I − γT^π̃. What is optimised is g/Σρ − (l2/2)‖θ‖² (O4), summed over cases (a terminal set and its ρ).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from revealed.bellman import SoftBellman, q_values, soft_maximum
from revealed.chain import Chain, expected_payoff
from revealed.errors import SolverFailed, ValueDoesNotExist
from revealed.linear_solvers import Work
from revealed.mdp import MDP, Floats
from revealed.rewards.base import Reward, is_linear


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
        self.chain = Chain(mdp, pi_tilde, solver, work=work)
        self.pi_tilde = self.chain.policy
        # 0·log 0 = 0; log π̃ comes along where tiny probabilities have underflowed
        self._entropy = expected_payoff(self.pi_tilde, np.zeros_like(self.pi_tilde), log_pi_tilde)

    def soft_value(self, reward: Floats) -> SoftValue:
        V = self.chain.solve((self.pi_tilde * reward).sum(axis=1) + self._entropy)  # V1
        Q = q_values(self.mdp, reward, V)  # V2
        value, policy, log_policy = soft_maximum(Q)  # P1
        return SoftValue(Q, value, policy, log_policy, self.pi_tilde, lambda: self.chain)


@dataclass(frozen=True)
class Case:
    """A terminal set (through its MDP), the expert's weights ρ (S, A) there, and the choice of π̃."""

    mdp: MDP
    rho: Floats
    pi_tilde: PiTilde

    @cached_property
    def rho_state(self) -> Floats:
        return self.rho.sum(axis=1)

    @cached_property
    def seen(self) -> tuple[npt.NDArray[np.intp], Floats]:
        """Positions and weights of the pairs with weight: the others may be infeasible, and 0·log 0 = 0."""
        where = np.flatnonzero(self.rho)
        return where, self.rho.reshape(-1)[where]

    def log_likelihood(self, log_policy: Floats) -> float:
        """Σ ρ log π (theory O1)."""
        where, weight = self.seen
        return float(weight @ log_policy.reshape(-1)[where])


class Objective:
    """g/Σρ − (l2/2)‖θ‖² for a reward and cases; `at(theta)` evaluates it."""

    def __init__(self, reward: Reward, cases: Sequence[Case], l2: float = 0.0) -> None:
        self.reward, self.cases, self.l2 = reward, tuple(cases), float(l2)
        self.total = float(sum(case.rho.sum() for case in self.cases))
        self._kept: dict[int, Floats] = {}  # ∂Q/∂θ per case, where it is the same at every θ
        self._kept_spread: Floats | None = None

    @property
    def has_hessian(self) -> bool:
        """Whether second derivatives are offered: for features, not for a weight per state (∂Q/∂θ would be S×A×S)."""
        return is_linear(self.reward) and not getattr(self.reward, "tabular", False)

    def at(self, theta: Floats) -> Evaluation:
        """The objective at θ. Where the value does not exist, the evaluation says why and its `value` is −∞."""
        theta = np.asarray(theta, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            table = np.asarray(self.reward.value(theta), dtype=np.float64)
            try:
                parts = tuple(self._part(case, table) for case in self.cases)
            except (ValueDoesNotExist, SolverFailed) as problem:
                return Evaluation(self, theta, (), problem)
        return Evaluation(self, theta, parts, None)

    def _part(self, case: Case, table: Floats) -> SoftValue:
        reward = np.where(case.mdp.feasible, table, 0.0)
        if not np.isfinite(reward).all():
            raise ValueDoesNotExist("the reward is not finite at these parameters.")
        return case.pi_tilde.soft_value(reward)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The objective at one θ; gradient and curvature are computed when asked for."""

    objective: Objective = field(repr=False)
    theta: Floats
    parts: tuple[SoftValue, ...] = field(repr=False)
    problem: Exception | None = None

    @cached_property
    def value(self) -> float:
        """g/Σρ − (l2/2)‖θ‖²; −∞ where the value does not exist."""
        if self.problem is not None:
            return -np.inf
        g = sum(case.log_likelihood(part.log_policy) for case, part in self._each())
        penalty = 0.5 * self.objective.l2 * float(self.theta @ self.theta)
        total = g / self.objective.total - penalty
        return total if np.isfinite(total) else -np.inf

    @cached_property
    def gradient(self) -> Floats:
        cotangent = sum(
            reward_gradient(case, part, lam) for (case, part), lam in zip(self._each(), self._adjoints, strict=True)
        )
        pulled = self.objective.reward.vjp(self.theta, np.asarray(cotangent) / self.objective.total)  # G4
        return pulled - self.objective.l2 * self.theta

    @property
    def gradient_norm(self) -> float:
        return float(np.linalg.norm(self.gradient))

    @cached_property
    def _adjoints(self) -> list[Floats]:
        return [adjoint(case, part) for case, part in self._each()]

    @cached_property
    def hessian(self) -> Floats:
        """Second derivatives for rewards linear in θ (theory H1)."""
        curvature = -self.information
        if any(case.pi_tilde.moves for case in self.objective.cases):
            cases = zip(self.objective.cases, self._adjoints, strict=True)
            curvature = curvature + self._covariances([lam * case.pi_tilde.moves for case, lam in cases])
        return curvature - self.objective.l2 * np.eye(self.theta.size)

    @cached_property
    def information(self) -> Floats:
        """Σ_s ρ(s) Cov_s(∂Q/∂θ)/Σρ, without the penalty: what the observed choices tell about θ."""
        return self._covariances([case.rho_state for case in self.objective.cases])

    @cached_property
    def spread(self) -> Floats:
        """(K,): by how much a unit of each parameter can move the log-odds of an observed choice; 0 if by nothing.

        What is below rounding is nothing: a constant, for one, moves no choice where nothing ends.
        """
        if self.objective._kept_spread is not None:
            return self.objective._kept_spread
        parts = [_spread(case, self.value_jacobian(i)) for i, case in enumerate(self.objective.cases)]
        spread, size = np.max(parts, axis=0)
        spread = np.where(spread > 1e-11 * size, spread, 0.0)
        if len(self.objective._kept) == len(parts):
            self.objective._kept_spread = spread
        return spread

    def value_jacobian(self, index: int = 0) -> Floats:
        """F = ∂Q^π̃/∂θ (S, A, K) of one case (theory V5); kept while π̃ stays and the reward is linear."""
        case, part = self.objective.cases[index], self.parts[index]
        same = not case.pi_tilde.moves and is_linear(self.objective.reward)
        kept = self.objective._kept if same else self._own
        if index not in kept:
            J = self.objective.reward.jacobian(self.theta)  # pyright: ignore[reportAttributeAccessIssue]
            kept[index] = derivative_of_q(case.mdp, part, J)
        return kept[index]

    @cached_property
    def _own(self) -> dict[int, Floats]:
        return {}

    def _covariances(self, state_weights: Sequence[Floats]) -> Floats:
        """Σ_s w(s) Cov_{a∼π_θ(·|s)} F(s, ·), normalised by Σρ."""
        K = self.theta.size
        out = np.zeros((K, K))
        for index, (part, w) in enumerate(zip(self.parts, state_weights, strict=True)):
            used = np.flatnonzero(w)
            F, policy = self.value_jacobian(index)[used], part.policy[used]
            flat = (F - np.einsum("sa,sak->sk", policy, F)[:, None, :]).reshape(-1, K)
            out += (flat * (w[used, None] * policy).reshape(-1, 1)).T @ flat
        return out / self.objective.total

    def _each(self) -> list[tuple[Case, SoftValue]]:
        return list(zip(self.objective.cases, self.parts, strict=True))


def adjoint(case: Case, part: SoftValue) -> Floats:
    """λ = (I − γT^π̃)^{-T} γTᵀD with D = ρ − ρ(s)π_θ (theory G1, G2): one solve with the transpose."""
    D = case.rho - case.rho_state[:, None] * part.policy
    return part.chain.solve_transpose(case.mdp.discount * case.mdp.transitions.push(D))


def _spread(case: Case, F: Floats) -> tuple[Floats, Floats]:
    """Per parameter, the widest gap of F between feasible actions of one observed state, and the size of F."""
    seen = np.flatnonzero(case.rho_state)
    feasible = case.mdp.feasible[seen][:, :, None]
    top = np.where(feasible, F[seen], -np.inf).max(axis=1)
    bottom = np.where(feasible, F[seen], np.inf).min(axis=1)
    return (top - bottom).max(axis=0), np.abs(F).max(axis=(0, 1))


def reward_gradient(case: Case, part: SoftValue, lam: Floats) -> Floats:
    """∂g/∂r = D + π̃ ⊙ λ (theory G3), shape (S, A)."""
    return case.rho - case.rho_state[:, None] * part.policy + part.pi_tilde * lam[:, None]


def derivative_of_q(mdp: MDP, part: SoftValue, J: Any) -> Floats:
    """F = ∂r/∂θ + γT(I − γT^π̃)⁻¹E_π̃ ∂r/∂θ (theory V5), zero for infeasible pairs."""
    S, A = mdp.feasible.shape
    J = J.toarray() if hasattr(J, "toarray") else np.asarray(J)
    J = np.broadcast_to(J.reshape(S, -1, J.shape[-1]), (S, A, J.shape[-1]))
    W = part.chain.solve(np.einsum("sa,sak->sk", part.pi_tilde, J))
    return np.where(mdp.feasible[:, :, None], J + mdp.discount * mdp.transitions.expect(W), 0.0)


def weighted_log(rho: Floats, log_policy: Floats) -> float:
    """Σ ρ log π with 0·log 0 = 0: pairs without weight may be infeasible."""
    where = np.flatnonzero(rho)
    return float(rho.reshape(-1)[where] @ log_policy.reshape(-1)[where])
