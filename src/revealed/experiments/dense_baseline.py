"""The paper's dense computations (its appendix B), kept for comparison: the only place where dense is allowed.

T is held as a dense (S, A, S) tensor. MCE-IRL runs soft value iteration to a tolerance and inverts I − γT^π densely at
every gradient step. CCP computes the occupancy tensor O = γT(I − γT^π̃)⁻¹, dense (S, A, S) too, once per π̃; a gradient
step is then two matrix products. (The paper's O has no γ: an erratum, see docs/theory.md.)

The baseline is meant to be a fair one: it works with matrix products on contiguous arrays, may start value iteration
from an earlier value, shares the library's softmax, and pulls gradients back through O (two products with vectors)
where the paper pushes every parameter forward through it. What remains is the cost of dense algebra and of value
iteration: on a 64×64 grid with five actions T and O take 671 MB each. Nothing in the library calls this file.

For whole searches `DenseMCE` and `DenseCCP` are choices of π̃ like any other: objective, optimiser, stopping rule and
NPL's updates are the library's (`fit_dense`), so that a race between the two is one of linear algebra alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from revealed.chain import Chain, expected_payoff
from revealed.demonstrations import Demonstrations
from revealed.estimation import Run
from revealed.estimators import Estimator
from revealed.fit import Fit
from revealed.logit_rows import weighted_log
from revealed.mdp import MDP, Floats
from revealed.objective import Case, Evaluation, Objective
from revealed.pi_tilde import PiTilde, SoftValue
from revealed.rewards.base import Reward
from revealed.sweeps import log_sum_exp, soft_maximum

VALUE_TOL = 1e-6  # how close value iteration comes to the soft optimum


@dataclass(frozen=True, eq=False)
class DenseModel:
    """A model as the paper's appendix writes it: the tensor T (S, A, S), γ < 1; `log_feasible` is 0 or −∞ per pair."""

    T: Floats
    gamma: float
    log_feasible: Floats

    @classmethod
    def of(cls, mdp: MDP) -> DenseModel:
        """The dense form of a sparse MDP: S·A·S numbers of 8 bytes."""
        tensor = mdp.transitions.matrix.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
        return cls(tensor, mdp.discount, mdp.log_feasible)

    def expect(self, V: Floats) -> Floats:
        """(T V)(s, a) as a product of an (S·A, S) matrix with a vector."""
        S, A, _ = self.T.shape
        return (self.T.reshape(S * A, S) @ V).reshape(S, A)

    def mix(self, policy: Floats) -> Floats:
        """T^π (S, S), dense."""
        return np.matmul(policy[:, None, :], self.T)[:, 0, :]

    def inverse(self, policy: Floats) -> Floats:
        """(I − γT^π)⁻¹ (S, S), dense: the paper's "matrix inverse"."""
        inverse: Floats = np.linalg.inv(np.eye(len(policy)) - self.gamma * self.mix(policy)).astype(
            np.float64, copy=False
        )
        return inverse

    def entering(self, rho: Floats) -> Floats:
        """q = ρ(s) − γTᵀρ (theory G5): what enters each state from outside, p₀ for occupancy weights."""
        S, A, _ = self.T.shape
        return rho.sum(axis=1) - self.gamma * (rho.reshape(-1) @ self.T.reshape(S * A, S))

    def q_values(self, reward: Floats, V: Floats) -> Floats:
        return reward + self.gamma * self.expect(V) + self.log_feasible


class Sweeps(Protocol):
    """What value iteration asks of a model."""

    @property
    def gamma(self) -> float: ...
    def q_values(self, reward: Floats, V: Floats) -> Floats: ...


@dataclass(frozen=True, eq=False)
class DenseOptimum:
    """The soft optimum by value iteration: within `tol` of the fixed point after so many sweeps."""

    q: Floats
    value: Floats
    policy: Floats
    log_policy: Floats
    sweeps: int


def dense_soft_optimum(
    model: Sweeps, reward: Floats, tol: float = VALUE_TOL, start: Floats | None = None, max_sweeps: int = 100_000
) -> DenseOptimum:
    """Soft value iteration V ← Λ(V) until V is within `tol` of the optimum by the contraction's bound."""
    V = np.zeros(len(reward)) if start is None else start
    for sweep in range(1, max_sweeps + 1):
        Q = model.q_values(reward, V)
        V, before = log_sum_exp(Q), V
        # Λ is a γ-contraction, hence ‖V − V*‖ ≤ γ/(1 − γ)·‖V − V_before‖
        if model.gamma * np.abs(V - before).max() <= (1.0 - model.gamma) * tol:
            log_policy = soft_maximum(Q)[2]
            return DenseOptimum(Q, V, np.exp(log_policy), log_policy, sweep)
    raise ArithmeticError(f"value iteration did not converge to {tol} in {max_sweeps} sweeps")


@dataclass(frozen=True, eq=False)
class DenseStep:
    """What a gradient step needs: g = Σ ρ log π_θ, ∂g/∂r (S, A), and the value that the next step may start from."""

    g: float
    gradient: Floats
    value: Floats


def dense_mce_step(
    model: DenseModel, reward: Floats, rho: Floats, tol: float = VALUE_TOL, start: Floats | None = None
) -> DenseStep:
    """One MCE-IRL gradient (the paper's Algorithm 1): value iteration, a dense inverse, then ρ − Occ(s)π_θ.

    Occ = qᵀ(I − γT^π_θ)⁻¹ with q = ρ(s) − γTᵀρ (theory G5).
    """
    best = dense_soft_optimum(model, reward, tol, start)
    occupancy = model.entering(rho) @ model.inverse(best.policy)
    return DenseStep(weighted_log(rho, best.log_policy), rho - occupancy[:, None] * best.policy, best.value)


class DenseMCE:
    """π̃ = π_θ by dense algebra: value iteration from the last value on, and an inverse for every gradient."""

    moves = True

    def __init__(self, model: DenseModel, tol: float = VALUE_TOL) -> None:
        self.model, self.tol = model, tol
        self._value: Floats | None = None
        self._entering: Floats | None = None

    def soft_value(self, reward: Floats) -> SoftValue:
        best = dense_soft_optimum(self.model, reward, self.tol, self._value)
        self._value = best.value
        return SoftValue(best.q, best.value, best.policy, best.log_policy, best.policy, _no_chain)

    def adjoint(self, case: Case, part: SoftValue) -> Floats:
        """λ = ρ(s) − Occ(s) (theory G5), so that D + π_θ ⊙ λ is the paper's ρ − Occ(s)π_θ."""
        if self._entering is None:
            self._entering = self.model.entering(case.rho)  # the same for every θ
        return case.rho_state - self._entering @ self.model.inverse(part.policy)


class DenseCCP:
    """CCP with the occupancy tensor O = γT(I − γT^π̃)⁻¹ of the paper's Algorithm 2, computed once for π̃.

    T is not kept: after the constructor only O is needed.
    """

    moves = False

    def __init__(self, model: DenseModel, pi_tilde: Floats, log_pi_tilde: Floats | None = None) -> None:
        S, A, _ = model.T.shape
        self.pi_tilde, self.log_feasible = pi_tilde, model.log_feasible
        self.O = model.T.reshape(S * A, S) @ (model.gamma * model.inverse(pi_tilde))
        self._entropy = expected_payoff(pi_tilde, np.zeros_like(pi_tilde), log_pi_tilde)

    def soft_value(self, reward: Floats) -> SoftValue:
        """Q = R + O·L, π_θ = softmax Q."""
        expected = (self.pi_tilde * reward).sum(axis=1) + self._entropy
        Q = reward + (self.O @ expected).reshape(self.pi_tilde.shape) + self.log_feasible
        value, policy, log_policy = soft_maximum(Q)
        return SoftValue(Q, value, policy, log_policy, self.pi_tilde, _no_chain)

    def adjoint(self, case: Case, part: SoftValue) -> Floats:
        """λ = OᵀD with D = ρ − ρ(s)π_θ (theory G1, G2)."""
        return (case.rho - case.rho_state[:, None] * part.policy).reshape(-1) @ self.O

    def step(self, reward: Floats, rho: Floats) -> DenseStep:
        """One gradient: ∂g/∂r = D + π̃ ⊙ OᵀD (theory G3)."""
        part = self.soft_value(reward)
        D = rho - rho.sum(axis=1)[:, None] * part.policy
        gradient = D + self.pi_tilde * (D.reshape(-1) @ self.O)[:, None]
        return DenseStep(weighted_log(rho, part.log_policy), gradient, part.value)


def _no_chain() -> Chain:
    raise TypeError("dense computations keep no factorisation")


class DenseObjective(Objective):
    """The library's objective for one case, with λ from the dense choice of π̃ instead of a sparse solve."""

    def __init__(self, reward: Reward, mdp: MDP, rho: Floats, pi_tilde: DenseMCE | DenseCCP, l2: float = 0.0) -> None:
        super().__init__(reward, [Case(mdp, rho, pi_tilde)], l2)

    @property
    def has_hessian(self) -> bool:
        return False  # the paper's algorithms have gradients only


class DenseRun(Run):
    """A fit under way by the paper's computations. `model` is the input T, made before."""

    def __init__(self, estimator: Estimator, model: DenseModel, mdp: MDP, demos: Demonstrations) -> None:
        super().__init__(estimator.method, estimator.reward, estimator.options, mdp, demos)
        self.model = model

    def rho(self) -> Floats:
        if self.options.weighting == "sample" or self.mdp.initial is None:
            return super().rho()
        return np.maximum(self.mdp.initial @ self.model.inverse(self.expert), 0.0)[:, None] * self.expert

    def own(self) -> DenseMCE:
        return DenseMCE(self.model)

    def given(self, pi_tilde: Floats, log_pi_tilde: Floats | None = None) -> DenseCCP:
        return DenseCCP(self.model, pi_tilde, log_pi_tilde)

    def make_objective(self, rho: Floats, pi_tilde: PiTilde) -> Objective:
        assert isinstance(pi_tilde, DenseMCE | DenseCCP)
        return DenseObjective(self.reward, self.mdp, rho, pi_tilde, self.options.l2)

    def runs_away(self, best: Evaluation) -> bool:
        return False  # it is told by derivatives that the paper does not compute


def fit_dense(estimator: Estimator, model: DenseModel, mdp: MDP, demos: Demonstrations) -> Fit:
    """What `estimator.fit(mdp, demos)` does, by dense algebra; `optimizer="adam"` or "lbfgs"."""
    return DenseRun(estimator, model, mdp, demos).fit(estimator._search)
