"""The dense oracle: plain arrays, textbook formulas, slow and obviously right. It shares no line with the library.

Arrays are T (S, A, S), rewards and policies (S, A), values (S,). Labels in brackets are those of docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def solve(A: Floats, b: Floats) -> Floats:
    return np.asarray(np.linalg.solve(A, b), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Dense:
    """An MDP in dense arrays (M1). Rows of T for terminal states and infeasible pairs may hold anything."""

    raw: Floats
    gamma: float
    allowed: Bools
    terminal: Bools
    initial: Floats

    @cached_property
    def feasible(self) -> Bools:
        return self.allowed & ~self.terminal[:, None]

    @cached_property
    def T(self) -> Floats:
        return np.where(self.feasible[:, :, None], self.raw, 0.0)

    @property
    def shape(self) -> tuple[int, int]:
        return self.feasible.shape[0], self.feasible.shape[1]

    def q(self, r: Floats, V: Floats) -> Floats:
        """r + γTV (V2), −∞ where infeasible."""
        return np.where(self.feasible, r + self.gamma * self.T @ V, -np.inf)

    def emax(self, Q: Floats) -> Floats:
        """log Σ exp Q over the feasible actions (M2); V = 0 at terminal states."""
        return np.where(self.terminal, 0.0, np.logaddexp.reduce(Q, axis=1))

    def softmax(self, Q: Floats) -> Floats:
        """exp Q over its sum: zero where infeasible, rows of zeros at terminal states."""
        odds = np.exp(Q - np.where(self.terminal, 0.0, Q.max(axis=1))[:, None])
        return odds / np.where(self.terminal, 1.0, odds.sum(axis=1))[:, None]

    def optimal_value(self, r: Floats, sweeps: int = 20_000) -> Floats:
        """V* by plain value iteration (V3), until nothing changes beyond rounding."""
        V = np.zeros(len(r))
        for _ in range(sweeps):
            new = self.emax(self.q(r, V))
            if np.abs(new - V).max() <= 1e-14 * (1.0 + np.abs(new).max()):
                return new
            V = new
        raise AssertionError("value iteration did not settle: a poor test problem")

    def optimal_policy(self, r: Floats) -> Floats:
        return self.softmax(self.q(r, self.optimal_value(r)))

    def relative_value_iteration(self, r: Floats, sweeps: int = 20_000) -> Floats:
        """The policy of V* where nothing ends and γ is close to 1: value iteration up to a constant."""
        V = np.zeros(len(r))
        for _ in range(sweeps):
            new = self.emax(self.q(r, V))
            new = np.subtract(new, new[0], dtype=np.float64)
            if np.abs(new - V).max() <= 1e-14 * (1.0 + np.abs(new).max()):
                return self.softmax(self.q(r, new))
            V = new
        raise AssertionError("relative value iteration did not settle: a poor test problem")

    def mixed(self, policy: Floats) -> Floats:
        """T^π (C1)."""
        return np.einsum("sa,sat->st", policy, self.T)

    def inverse(self, policy: Floats) -> Floats:
        """(I − γT^π)⁻¹ (C1)."""
        identity = np.eye(len(policy))
        return solve(identity - self.gamma * self.mixed(policy), identity)

    def soft_value(self, policy: Floats, r: Floats) -> Floats:
        """V^π (V1)."""
        log_policy = np.log(np.where(policy > 0.0, policy, 1.0))
        payoff = (policy * np.where(self.feasible, r - log_policy, 0.0)).sum(axis=1)
        return solve(np.eye(len(r)) - self.gamma * self.mixed(policy), payoff)

    def improved(self, policy: Floats, r: Floats) -> Floats:
        """softmax Q^π (P1)."""
        return self.softmax(self.q(r, self.soft_value(policy, r)))

    def occupancy(self, policy: Floats, initial: Floats) -> Floats:
        """Occ^π (C2)."""
        return solve((np.eye(len(policy)) - self.gamma * self.mixed(policy)).T, initial)

    def summed_occupancy(self, policy: Floats, initial: Floats, doublings: int = 24) -> Floats:
        """Occ^π as its definition (C2): Σ_t γ^t P(s_t = s), of so many steps that the slowest chain has ended."""
        total, power = initial, self.gamma * self.mixed(policy)  # t < 1; then Σ_{t<2n} = Σ_{t<n} (I + (γT^π)^n)
        for _ in range(doublings):
            total, power = total + total @ power, power @ power
        return total

    def value_gradient(self, policy: Floats) -> Floats:
        """∂Q^π/∂r for fixed π (V5): I + γT(I − γT^π)⁻¹Π, (S·A, S·A)."""
        S, A = self.shape
        T = self.T.reshape(S * A, S)
        return np.eye(S * A) + self.gamma * T @ self.inverse(policy) @ self.averaging(policy)

    def implicit_gradient(self, policy: Floats) -> Floats:
        """dQ*/dr by the implicit function theorem on Q-space (V5): (I − Λ')⁻¹ with Λ' = γTΠ, (S·A, S·A)."""
        S, A = self.shape
        return solve(np.eye(S * A) - self.gamma * self.T.reshape(S * A, S) @ self.averaging(policy), np.eye(S * A))

    def averaging(self, policy: Floats) -> Floats:
        """Π (S, S·A): (Πq)(s) = Σ_a π(a|s) q(s, a)."""
        S, A = self.shape
        return (np.eye(S)[:, :, None] * policy[None, :, :]).reshape(S, S * A)

    def objective(self, r: Floats, rho: Floats, pi_tilde: Floats | None = None) -> float:
        """g (O1): Σ ρ log π_θ, with π̃ = π_θ where none is given."""
        policy = self.optimal_policy(r) if pi_tilde is None else self.improved(pi_tilde, r)
        return float((rho[rho > 0.0] * np.log(policy[rho > 0.0])).sum())

    def reward_gradient(self, r: Floats, rho: Floats, pi_tilde: Floats | None = None) -> Floats:
        """∂g/∂r (S, A) from ∂Q/∂r and the score of a logit: Σ ρ(s,a)(∂Q(s,a) − Σ_a' π(a'|s) ∂Q(s,a'))."""
        policy = self.optimal_policy(r) if pi_tilde is None else self.improved(pi_tilde, r)
        dQ = self.implicit_gradient(policy) if pi_tilde is None else self.value_gradient(pi_tilde)
        mean = self.averaging(policy) @ dQ
        surplus = dQ - np.repeat(mean, self.shape[1], axis=0)
        return np.where(self.feasible, (rho.reshape(-1) @ surplus).reshape(self.shape), 0.0)

    def separable(self, rho: Floats, F: Floats) -> bool:
        """Whether Fv puts every observed action first for some v, and one of them strictly (I2): a linear programme."""
        ahead = np.array(
            [F[s, a] - F[s, b] for s, a in np.argwhere(rho > 0.0) for b in np.flatnonzero(self.feasible[s]) if b != a]
        )
        best = linprog(-ahead.sum(axis=0), A_ub=-ahead, b_ub=np.zeros(len(ahead)), bounds=(-1.0, 1.0)).x
        return bool((ahead @ best).max() > 1e-7)

    def unrolled(self, horizon: int) -> Dense:
        """The time-expanded MDP (F1), written block by block."""
        S, A = self.shape
        T = np.zeros(((horizon + 1) * S, A, (horizon + 1) * S))
        for t in range(horizon):
            T[t * S : (t + 1) * S, :, (t + 1) * S : (t + 2) * S] = self.T
        last = np.arange((horizon + 1) * S) >= horizon * S
        initial = np.concatenate([self.initial, np.zeros(horizon * S)])
        allowed = np.tile(self.allowed, (horizon + 1, 1))
        return Dense(T, self.gamma, allowed, np.tile(self.terminal, horizon + 1) | last, initial)

    def backward_induction(self, r: Floats, horizon: int) -> tuple[Floats, Floats]:
        """Values (horizon + 1, S) and policies (horizon, S, A) of `horizon` decisions, from the last to the first."""
        values, policies = [np.zeros(len(r))], []
        for _ in range(horizon):
            Q = self.q(r, values[0])
            values.insert(0, self.emax(Q))
            policies.insert(0, self.softmax(Q))
        return np.array(values), np.array(policies)

    def hard_value(self, r: Floats, sweeps: int = 20_000) -> Floats:
        """The ordinary optimum (B4) by value iteration."""
        V = np.zeros(len(r))
        for _ in range(sweeps):
            new = np.where(self.terminal, 0.0, self.q(r, V).max(axis=1))
            if np.abs(new - V).max() <= 1e-14 * (1.0 + np.abs(new).max()):
                return new
            V = new
        raise AssertionError("value iteration did not settle: a poor test problem")


def central_differences(f: Callable[[Floats], float | Floats], theta: Floats, step: float = 1e-5) -> Floats:
    """∂f/∂θ, one parameter after the other; the last axis runs over the parameters."""
    columns = []
    for k in range(theta.size):
        e = np.zeros(theta.size)
        e[k] = step
        columns.append((np.asarray(f(theta + e)) - np.asarray(f(theta - e))) / (2.0 * step))
    return np.stack(columns, axis=-1)


def relative_gap(x: Floats, y: Floats) -> float:
    """Largest difference relative to the largest entry of y."""
    return float(np.abs(x - y).max() / np.abs(y).max())


def assert_close(actual: Floats, expected: Floats, tolerance: float = 1e-9) -> None:
    """Equal up to `tolerance` times one plus the largest entry."""
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * (1.0 + np.abs(expected).max()))
