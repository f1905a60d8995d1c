"""The theorem: one objective and one gradient for NFXP = MCE-IRL, CCP and NPL, which differ in π̃ alone.

    Q = Q^π̃_θ (V2),  π_θ = softmax Q (P1),  g(θ) = Σ ρ(s,a) log π_θ(a|s) (O1)
    D = ρ − ρ(s)π_θ (G1),  λ = (I − γT^π̃)^{-T} γTᵀD (G2),  ∂g/∂r = D + π̃ ⊙ λ (G3),  ∂g/∂θ = vjp of the reward (G4)

Labels are those of docs/theory.md. What is optimised is g/Σρ − (l2/2)‖θ‖² (O4), summed over cases (a terminal set and
its ρ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from revealed.chain import Chain
from revealed.checks import Bools
from revealed.errors import SolverFailed, ValueDoesNotExist
from revealed.mdp import MDP, Floats
from revealed.pi_tilde import PiTilde, SoftValue
from revealed.rewards.base import Reward, is_linear


@dataclass(frozen=True)
class Case:
    """A terminal set (through its MDP), the expert's weights ρ (S, A) there, and the choice of π̃."""

    mdp: MDP
    rho: Floats
    pi_tilde: PiTilde

    @property
    def moves(self) -> bool:
        """Whether π̃ follows θ."""
        return self.pi_tilde.moves

    @cached_property
    def rho_state(self) -> Floats:
        return self.rho.sum(axis=1)

    @property
    def total(self) -> float:
        return float(self.rho.sum())

    @cached_property
    def seen(self) -> tuple[npt.NDArray[np.intp], Floats]:
        """Positions and weights of the pairs with weight: the others may be infeasible, and 0·log 0 = 0."""
        where = np.flatnonzero(self.rho)
        return where, self.rho.reshape(-1)[where]

    def log_likelihood(self, log_policy: Floats) -> float:
        """Σ ρ log π (theory O1)."""
        where, weight = self.seen
        return float(weight @ log_policy.reshape(-1)[where])

    def at(self, reward: Reward, theta: Floats, kept: dict[str, Any]) -> PlainPart:
        """The case at θ; raises where it has no value. `kept` is what an earlier θ left, where that still holds."""
        soft = self.pi_tilde.soft_value(feasible_table(self.mdp, reward.value(theta)))
        return PlainPart(self, soft, reward, theta, kept)


def feasible_table(mdp: MDP, table: Any) -> Floats:
    """(S, A): rewards of feasible pairs, zero elsewhere; a `ValueDoesNotExist` where one is not finite."""
    found = np.where(mdp.feasible, np.asarray(table, dtype=np.float64), 0.0)
    if not np.isfinite(found).all():
        raise ValueDoesNotExist("the reward is not finite at these parameters.")
    return found


@dataclass(frozen=True, eq=False)
class Choices:
    """The decisions that count, a row per observed state (and goal, where trips have goals): their weights ρ, log π_θ
    and which actions were offered, each (R, A)."""

    rho: Floats
    log_policy: Floats
    feasible: Bools


class Part(Protocol):
    """A case, or many that differ in their goal, at one θ: what the objective and those who judge it ask for."""

    @property
    def log_likelihood(self) -> float:
        """Σ ρ log π_θ."""
        ...

    @property
    def pull(self) -> Floats:
        """(K,): its gradient in θ."""
        ...

    @property
    def information(self) -> Floats:
        """(K, K): Σ_s ρ(s) Cov_s(∂Q/∂θ)."""
        ...

    @property
    def hessian(self) -> Floats:
        """(K, K): second derivatives for rewards linear in θ (theory H1)."""
        ...

    @property
    def spread(self) -> tuple[Floats, Floats]:
        """(K,) each: the widest gap of ∂Q/∂θ between actions of one observed state, and its size."""
        ...

    @property
    def choices(self) -> Choices: ...

    @property
    def slopes(self) -> Floats:
        """(R, A, K): ∂Q/∂θ in the rows of `choices`; zero for what is not offered."""
        ...


@dataclass(frozen=True, eq=False)
class PlainPart:
    """One case at one θ; `kept` is shared with other θ where π̃ stays and the reward is linear."""

    case: Case = field(repr=False)
    soft: SoftValue = field(repr=False)
    reward: Reward = field(repr=False)
    theta: Floats
    kept: dict[str, Any] = field(repr=False)

    @property
    def policy(self) -> Floats:
        return self.soft.policy

    @property
    def log_policy(self) -> Floats:
        return self.soft.log_policy

    @property
    def value(self) -> Floats:
        return self.soft.value

    @property
    def q(self) -> Floats:
        return self.soft.q

    @property
    def pi_tilde(self) -> Floats:
        return self.soft.pi_tilde

    @property
    def chain(self) -> Chain:
        return self.soft.chain

    @cached_property
    def log_likelihood(self) -> float:
        return self.case.log_likelihood(self.soft.log_policy)

    @cached_property
    def adjoint(self) -> Floats:
        """λ; a choice of π̃ that does not factor, such as the paper's dense one, brings its own."""
        own = getattr(self.case.pi_tilde, "adjoint", adjoint)
        return own(self.case, self.soft)

    @cached_property
    def cotangent(self) -> Floats:
        """(S, A): ∂g/∂r."""
        return reward_gradient(self.case, self.soft, self.adjoint)

    @cached_property
    def pull(self) -> Floats:
        return self.reward.vjp(self.theta, self.cotangent)  # G4

    @property
    def jacobian(self) -> Floats:
        """F = ∂Q^π̃/∂θ (S, A, K) (theory V5)."""
        if "jacobian" not in self.kept:
            J = self.reward.jacobian(self.theta)  # pyright: ignore[reportAttributeAccessIssue]
            self.kept["jacobian"] = derivative_of_q(self.case.mdp, self.soft, J)
        return self.kept["jacobian"]

    @cached_property
    def information(self) -> Floats:
        return self._covariances(self.case.rho_state)

    @cached_property
    def hessian(self) -> Floats:
        return self._covariances(self.adjoint) - self.information if self.case.moves else -self.information

    def _covariances(self, state_weights: Floats) -> Floats:
        """Σ_s w(s) Cov_{a∼π_θ(·|s)} F(s, ·)."""
        used = np.flatnonzero(state_weights)
        return covariances(self.jacobian[used], self.soft.policy[used], state_weights[used])

    @property
    def spread(self) -> tuple[Floats, Floats]:
        if "spread" not in self.kept:
            F = self.jacobian
            gap = widest_gap(F[self._rows], self.case.mdp.feasible[self._rows])
            self.kept["spread"] = gap, np.abs(F).max(axis=(0, 1))
        return self.kept["spread"]

    @cached_property
    def _rows(self) -> npt.NDArray[np.intp]:
        return np.flatnonzero(self.case.rho_state)

    @property
    def choices(self) -> Choices:
        rows = self._rows
        return Choices(self.case.rho[rows], self.soft.log_policy[rows], self.case.mdp.feasible[rows])

    @property
    def slopes(self) -> Floats:
        return self.jacobian[self._rows]


class Cases(Protocol):
    """A case, or many that differ in their goal."""

    @property
    def mdp(self) -> MDP: ...

    @property
    def moves(self) -> bool: ...

    @property
    def total(self) -> float: ...

    def at(self, reward: Reward, theta: Floats, kept: dict[str, Any]) -> Any: ...  # a `Part`


class Objective:
    """g/Σρ − (l2/2)‖θ‖² for a reward and cases; `at(theta)` evaluates it."""

    def __init__(self, reward: Reward, cases: Sequence[Cases], l2: float = 0.0) -> None:
        self.reward, self.l2 = reward, float(l2)
        self.cases: tuple[Any, ...] = tuple(cases)
        self.total = float(sum(case.total for case in self.cases))
        self._kept: list[dict[str, Any]] = [{} for _ in self.cases]

    @property
    def has_hessian(self) -> bool:
        """Whether second derivatives are offered: for features, not for a weight per state (∂Q/∂θ would be S×A×S)."""
        return is_linear(self.reward) and not getattr(self.reward, "tabular", False)

    def at(self, theta: Floats) -> Evaluation:
        """The objective at θ. Where the value does not exist, the evaluation says why and its `value` is −∞."""
        theta = np.asarray(theta, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                pairs = zip(self.cases, self._kept, strict=True)
                parts = tuple(case.at(self.reward, theta, self._still(case, kept)) for case, kept in pairs)
            except (ValueDoesNotExist, SolverFailed) as problem:
                return Evaluation(self, theta, (), problem)
        return Evaluation(self, theta, parts, None)

    def _still(self, case: Cases, kept: dict[str, Any]) -> dict[str, Any]:
        """What holds at every θ: ∂Q/∂θ of a linear reward while π̃ stays."""
        return kept if is_linear(self.reward) and not case.moves else {}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The objective at one θ; gradient and curvature are computed when asked for."""

    objective: Objective = field(repr=False)
    theta: Floats
    parts: tuple[Any, ...] = field(repr=False)
    problem: Exception | None = None

    @cached_property
    def value(self) -> float:
        """g/Σρ − (l2/2)‖θ‖²; −∞ where the value does not exist."""
        if self.problem is not None:
            return -np.inf
        g = sum(part.log_likelihood for part in self.parts)
        penalty = 0.5 * self.objective.l2 * float(self.theta @ self.theta)
        total = g / self.objective.total - penalty
        return total if np.isfinite(total) else -np.inf

    @cached_property
    def gradient(self) -> Floats:
        pulled = np.sum([part.pull for part in self.parts], axis=0)
        return pulled / self.objective.total - self.objective.l2 * self.theta

    @property
    def gradient_norm(self) -> float:
        return float(np.linalg.norm(self.gradient))

    @cached_property
    def hessian(self) -> Floats:
        """Second derivatives for rewards linear in θ (theory H1)."""
        curvature = np.sum([part.hessian for part in self.parts], axis=0) / self.objective.total
        return curvature - self.objective.l2 * np.eye(self.theta.size)

    @cached_property
    def information(self) -> Floats:
        """Σ_s ρ(s) Cov_s(∂Q/∂θ)/Σρ, without the penalty: what the observed choices tell about θ."""
        return np.sum([part.information for part in self.parts], axis=0) / self.objective.total

    @cached_property
    def size(self) -> Floats:
        """(K,): how large ∂Q/∂θ is; what is below rounding beside it is nothing."""
        return np.max([part.spread[1] for part in self.parts], axis=0)

    @cached_property
    def spread(self) -> Floats:
        """(K,): by how much a unit of each parameter can move the log-odds of an observed choice; 0 if by nothing.

        What is below rounding is nothing: a constant, for one, moves no choice where nothing ends.
        """
        spread = np.max([part.spread[0] for part in self.parts], axis=0)
        return np.where(spread > 1e-11 * self.size, spread, 0.0)

    def value_jacobian(self, index: int = 0) -> Floats:
        """F = ∂Q^π̃/∂θ (S, A, K) of one plain case (theory V5)."""
        return self.parts[index].jacobian


def covariances(F: Floats, policy: Floats, weights: Floats) -> Floats:
    """Σ_r w(r) Cov_{a∼π(·|r)} F(r, ·) for rows of slopes (R, A, K), choices (R, A) and weights (R,)."""
    K = F.shape[2]
    flat = (F - np.einsum("sa,sak->sk", policy, F)[:, None, :]).reshape(-1, K)
    return (flat * (weights[:, None] * policy).reshape(-1, 1)).T @ flat


def widest_gap(F: Floats, feasible: Bools) -> Floats:
    """(K,): the widest gap of F (R, A, K) between feasible actions of one row."""
    top = np.where(feasible[:, :, None], F, -np.inf).max(axis=1)
    bottom = np.where(feasible[:, :, None], F, np.inf).min(axis=1)
    return (top - bottom).max(axis=0)


def adjoint(case: Case, part: SoftValue) -> Floats:
    """λ = (I − γT^π̃)^{-T} γTᵀD with D = ρ − ρ(s)π_θ (theory G1, G2): one solve with the transpose."""
    D = case.rho - case.rho_state[:, None] * part.policy
    return part.chain.solve_transpose(case.mdp.discount * case.mdp.transitions.push(D))


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
