"""The paper's dense computations (its appendix B), kept for comparison: the only place where dense is allowed.

T is held as a dense (S, A, S) tensor. MCE-IRL runs soft value iteration to a tolerance and inverts I − γT^π densely at
every gradient step. CCP computes the occupancy tensor O = γT(I − γT^π̃)⁻¹, dense (S, A, S) too, once per π̃; a gradient
step is then two matrix products. (The paper's O has no γ: an erratum, see docs/theory.md.)

The baseline is meant to be a fair one: it works with matrix products on contiguous arrays, may start value iteration
from an earlier value, shares the library's softmax, and pulls gradients back through O (two products with vectors)
where the paper pushes every parameter forward through it. What remains is the cost of dense algebra and of value
iteration: on a 64×64 grid with five actions T and O take 671 MB each. Nothing in the library calls this file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revealed.bellman import log_sum_exp, soft_maximum
from revealed.chain import expected_payoff
from revealed.mdp import MDP, Floats
from revealed.objective import weighted_log


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

    def q_values(self, reward: Floats, V: Floats) -> Floats:
        return reward + self.gamma * self.expect(V) + self.log_feasible


@dataclass(frozen=True, eq=False)
class DenseOptimum:
    """The soft optimum by value iteration: within `tol` of the fixed point after so many sweeps."""

    value: Floats
    policy: Floats
    log_policy: Floats
    sweeps: int


def dense_soft_optimum(
    model: DenseModel, reward: Floats, tol: float = 1e-6, start: Floats | None = None, max_sweeps: int = 100_000
) -> DenseOptimum:
    """Soft value iteration V ← Λ(V) until V is within `tol` of the optimum by the contraction's bound."""
    V = np.zeros(len(reward)) if start is None else start
    for sweep in range(1, max_sweeps + 1):
        Q = model.q_values(reward, V)
        V, before = log_sum_exp(Q), V
        # Λ is a γ-contraction, hence ‖V − V*‖ ≤ γ/(1 − γ)·‖V − V_before‖
        if model.gamma * np.abs(V - before).max() <= (1.0 - model.gamma) * tol:
            log_policy = soft_maximum(Q)[2]
            return DenseOptimum(V, np.exp(log_policy), log_policy, sweep)
    raise ArithmeticError(f"value iteration did not come within {tol} in {max_sweeps} sweeps")


@dataclass(frozen=True, eq=False)
class DenseStep:
    """What a gradient step needs: g = Σ ρ log π_θ, ∂g/∂r (S, A), and the value that the next step may start from."""

    g: float
    gradient: Floats
    value: Floats


def dense_mce_step(
    model: DenseModel, reward: Floats, rho: Floats, tol: float = 1e-6, start: Floats | None = None
) -> DenseStep:
    """One MCE-IRL gradient (the paper's Algorithm 1): value iteration, a dense inverse, then ρ − Occ(s)π_θ.

    Occ = qᵀ(I − γT^π_θ)⁻¹ with q = ρ(s) − γTᵀρ (theory G5): what enters from outside, p₀ for occupancy weights.
    """
    best = dense_soft_optimum(model, reward, tol, start)
    S, A, _ = model.T.shape
    entering = rho.sum(axis=1) - model.gamma * (rho.reshape(-1) @ model.T.reshape(S * A, S))
    occupancy = entering @ model.inverse(best.policy)
    return DenseStep(weighted_log(rho, best.log_policy), rho - occupancy[:, None] * best.policy, best.value)


class DenseCCP:
    """CCP with the occupancy tensor O = γT(I − γT^π̃)⁻¹ of the paper's Algorithm 2, computed once for π̃.

    T is not kept: after the constructor only O is needed.
    """

    def __init__(self, model: DenseModel, pi_tilde: Floats) -> None:
        S, A, _ = model.T.shape
        self.pi_tilde, self.log_feasible = pi_tilde, model.log_feasible
        self.O = model.T.reshape(S * A, S) @ (model.gamma * model.inverse(pi_tilde))
        self._entropy = expected_payoff(pi_tilde, np.zeros_like(pi_tilde))

    def step(self, reward: Floats, rho: Floats) -> DenseStep:
        """Q = R + O·L, π_θ = softmax Q, and ∂g/∂r = D + π̃ ⊙ OᵀD with D = ρ − ρ(s)π_θ (theory G1, G3)."""
        expected = (self.pi_tilde * reward).sum(axis=1) + self._entropy
        Q = reward + (self.O @ expected).reshape(self.pi_tilde.shape) + self.log_feasible
        log_policy = soft_maximum(Q)[2]
        D = rho - rho.sum(axis=1)[:, None] * np.exp(log_policy)
        gradient = D + self.pi_tilde * (D.reshape(-1) @ self.O)[:, None]
        return DenseStep(weighted_log(rho, log_policy), gradient, log_sum_exp(Q))
