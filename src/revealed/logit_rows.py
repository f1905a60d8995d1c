"""A logit in rows: what follows from log π_θ and ∂Q/∂θ in the states that count (theory O1, H1).

Decisions have weight in the states that were observed alone, and where π̃ stays and the reward is linear in θ, Q is
affine in θ there. The likelihood, its gradient and its curvature then need these rows and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from revealed.checks import Bools, Floats
from revealed.sweeps import soft_maximum


@dataclass(frozen=True, eq=False)
class Choices:
    """The decisions that count, a row per observed state (and goal, where trips have goals): their weights ρ, log π_θ
    and which actions were offered, each (R, A)."""

    rho: Floats
    log_policy: Floats
    feasible: Bools


class InRows(ABC):
    """What follows from log π_θ (R, A) and ∂Q/∂θ (R, A, K) in rows with weights ρ and what is offered, both (R, A)."""

    @property
    def policy(self) -> Any:
        """None instead of (S, A): where trips have goals there is one for each."""
        return None

    @property
    def log_policy(self) -> Any:
        """None, likewise."""
        return None

    @property
    @abstractmethod
    def seen(self) -> Any:
        """The rows: `rho` and `feasible`."""

    @property
    @abstractmethod
    def row_log_policy(self) -> Floats: ...

    @property
    @abstractmethod
    def slopes(self) -> Floats: ...

    @cached_property
    def log_likelihood(self) -> float:
        """Σ ρ log π_θ; 0·log 0 = 0."""
        used = self.seen.rho > 0.0
        return float(self.seen.rho[used] @ self.row_log_policy[used])

    @cached_property
    def information(self) -> Floats:
        return covariances(self.slopes, np.exp(self.row_log_policy), self.seen.rho.sum(axis=1))

    @cached_property
    def spread(self) -> tuple[Floats, Floats]:
        return widest_gap(self.slopes, self.seen.feasible), np.abs(self.slopes).max(axis=(0, 1))

    @property
    def choices(self) -> Choices:
        return Choices(self.seen.rho, self.row_log_policy, self.seen.feasible)


@dataclass(frozen=True, eq=False)
class RowCases:
    """Q = Q₀ + F(θ − θ₀) (R, A) with F (R, A, K), weights ρ and what is offered (R, A)."""

    rho: Floats = field(repr=False)
    feasible: Bools = field(repr=False)
    q: Floats = field(repr=False)
    slopes: Floats = field(repr=False)
    start: Floats = field(repr=False)

    moves = False

    @property
    def total(self) -> float:
        return float(self.rho.sum())

    def holds(self, K: int) -> bool:
        """Whether there is room for second derivatives: the slopes are here already."""
        return True

    @cached_property
    def spread(self) -> tuple[Floats, Floats]:
        """That of every θ: slopes stay."""
        return widest_gap(self.slopes, self.feasible), np.abs(self.slopes).max(axis=(0, 1))

    def at(self, reward: Any, theta: Floats, kept: dict[str, Any]) -> RowsPart:
        Q = np.where(self.feasible, self.q + self.slopes @ (theta - self.start), -np.inf)
        return RowsPart(self, soft_maximum(Q)[2])


@dataclass(frozen=True, eq=False)
class RowsPart(InRows):
    """A logit in rows at one θ."""

    rows: RowCases = field(repr=False)
    found: Floats = field(repr=False)

    @property
    def seen(self) -> RowCases:
        return self.rows

    @property
    def row_log_policy(self) -> Floats:
        return self.found

    @cached_property
    def pull(self) -> Floats:
        rho = self.rows.rho
        D = rho - rho.sum(axis=1, keepdims=True) * np.exp(self.row_log_policy)
        return np.einsum("ra,rak->k", D, self.rows.slopes)

    @property
    def slopes(self) -> Floats:
        return self.rows.slopes

    @property
    def spread(self) -> tuple[Floats, Floats]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.rows.spread

    @property
    def hessian(self) -> Floats:
        return -self.information


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


def weighted_log(rho: Floats, log_policy: Floats) -> float:
    """Σ ρ log π with 0·log 0 = 0: pairs without weight may be infeasible."""
    where = np.flatnonzero(rho)
    return float(rho.reshape(-1)[where] @ log_policy.reshape(-1)[where])
