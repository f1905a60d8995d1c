"""The theorem on a device at one θ (theory O1, G1–G4, V5, H1): parts as in `objective.py`, states as last axis.

ρ is nonzero in the observed states alone, R of them: the likelihood, D = ρ − ρ(s)π_θ and what the data tell about θ
live on these rows. For features and a given π̃, V = Wθ + w₀ with W = (I − γT^π̃)⁻¹E_π̃φ: one batched solve for every π̃,
and each θ after it is a small product in the rows (`AffinePart`). Where π̃ follows θ, or the reward is not linear, each
θ costs a soft optimum or a solve, and its gradient one adjoint solve, all begun where those of the last θ ended
(`SolvedPart`). Only θ, slopes, curvatures and a few numbers cross over. This file loads JAX: import it inside
functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from revealed import device_kernels as kernels
from revealed.checks import Bools, Floats, Ints
from revealed.device_model import DeviceModel
from revealed.device_pi_tilde import DeviceGiven, DeviceSoft, Warm, limits_of
from revealed.device_rewards import DeviceLifted, DeviceLinear
from revealed.errors import SolverFailed
from revealed.objective import Choices

MOST_STORED = 250_000_000  # numbers of ∂Q/∂θ that are held at a time: 2 GB


class DeviceRows:
    """The observed states (R,) and the weights of their decisions: `weights` (R, A) on the host, `rho` (A, R) there.

    There the number of rows is rounded up, by repeating one without weight, so that data that differ a little (those
    of a bootstrap) do with what was compiled once. `slot` (S,) is the row of every state; the number of rows for those
    that were not observed.
    """

    def __init__(self, model: DeviceModel, state: Ints, weights: Floats) -> None:
        self.weights = weights
        extra = _rounded_up(state.size) - state.size
        there = np.append(state, np.full(extra, state[0]))
        slot = np.zeros(model.n_states, dtype=np.int32)
        slot[state] = np.arange(1, state.size + 1)
        with jax.enable_x64(True):
            self.slot = (model.put(slot) - 1) % (there.size + 1)  # padding, which `put` fills with 0, is not observed
            self.index = _everywhere(model, there.astype(np.int32))
            self.rho = _everywhere(model, np.pad(weights.T, ((0, 0), (0, extra))))
        self.offered = kernels.offered_in_rows(limits_of(model), self.index)

    @classmethod
    def of(cls, model: DeviceModel, rho: Floats) -> DeviceRows:
        """The rows of ρ (S, A) that have weight."""
        state = np.flatnonzero(rho.sum(axis=1))
        return cls(model, state, rho[state])

    @cached_property
    def feasible(self) -> Bools:
        """(R, A)."""
        return np.broadcast_to(self.get(self.offered), self.weights.shape)

    def get(self, x: Any) -> Any:
        """Rows (…, R) of the device as those of the host (R, …)."""
        return np.asarray(x).T[: len(self.weights)]


def _everywhere(model: DeviceModel, x: Any) -> Any:
    """A small array on the model's device, or whole on each of them."""
    spread = model.placement.sharding
    whole = None if spread is None else jax.sharding.NamedSharding(spread.mesh, jax.sharding.PartitionSpec())
    return jax.device_put(x, model.placement.where[0] if whole is None else whole)


def _rounded_up(n: int) -> int:
    """To eights, and to the first four binary digits: at most an eighth more of many."""
    step = max(8, 1 << (n.bit_length() - 4)) if n > 8 else 8
    return -(-n // step) * step


@dataclass(frozen=True, eq=False)
class Slopes:
    """F = ∂Q/∂θ (theory V5) in the rows (K, A, R), and its size (K,) anywhere."""

    F: Any
    size: Floats

    @classmethod
    def of(cls, model: DeviceModel, rows: DeviceRows, features: Any, W: Any) -> Slopes:
        """From features (K, 1|A, S) and W = ∂V/∂θ, whose first K rows count."""
        known = model.transitions, model.gamma, limits_of(model)
        found = []
        for block in _blocks(model, len(features)):
            moved = W if block.stop == len(features) and block.start == 0 else kernels.block_of(W, block)
            found.append(kernels.slopes_in_rows(*known, kernels.block_of(features, block), moved, rows.index))
        with jax.enable_x64(True):
            return cls(jnp.concatenate([F for F, _ in found]), np.concatenate([np.asarray(n) for _, n in found]))


def _blocks(model: DeviceModel, K: int) -> list[slice]:
    """So many parameters at a time that ∂Q/∂θ of all states can be held."""
    width = max(1, MOST_STORED // (model.n_actions * model.n_padded))
    return [slice(k, min(k + width, K)) for k in range(0, K, width)]


def covariances(model: DeviceModel, features: Any, W: Any, policy: Any, weights: Any) -> Floats:
    """(K, K): Σ_s w(s) Cov_{a∼π(·|s)} ∂Q/∂θ over all states, of which a few parameters are held at a time."""

    def centred(block: slice) -> Any:
        there = kernels.block_of(features, block), kernels.block_of(W, block)
        return kernels.centred_slopes(model.transitions, model.gamma, *there, policy)

    out = np.empty((len(W), len(W)))
    blocks = _blocks(model, len(W))
    for i, left in enumerate(blocks):
        first = centred(left)
        for right in blocks[i:]:
            second = first if right is left else centred(right)
            out[left, right] = np.asarray(kernels.products(first, weights, policy, second))
            out[right, left] = out[left, right].T
    return out


@dataclass(frozen=True, eq=False)
class DevicePart(ABC):
    """What both kinds of parts share: behaviour as the host has it, and rows as those who judge a fit ask for them."""

    model: DeviceModel = field(repr=False)
    rows: DeviceRows = field(repr=False)
    choice: Any = field(repr=False)  # of π̃
    reward: Any = field(repr=False)
    theta: Floats
    kept: dict[str, Any] = field(repr=False)

    @cached_property
    def soft(self) -> DeviceSoft:
        """All states: for those who ask, NPL's next π̃, a callback, the result."""
        return self._find_soft()

    @abstractmethod
    def _find_soft(self) -> DeviceSoft: ...

    @cached_property
    def _in_rows(self) -> tuple[Any, ...]:
        """log π_θ and π_θ in the rows (A, R), and Σ ρ log π_θ."""
        return self._find_rows()

    @abstractmethod
    def _find_rows(self) -> tuple[Any, ...]: ...

    @property
    @abstractmethod
    def device_slopes(self) -> Slopes: ...

    @property
    def policy(self) -> Floats:
        return self.model.get(self.soft.policy)

    @property
    def log_policy(self) -> Floats:
        return self.model.get(self.soft.all[3])

    @property
    def value(self) -> Floats:
        return self.model.get(self._lifted(self.soft.all[0]))

    @property
    def q(self) -> Floats:
        return self.model.get(self._lifted(self.soft.all[1]))

    def _lifted(self, x: Any) -> Any:
        """With the level that was taken off (theory B5)."""
        return kernels.lifted(limits_of(self.model), x, self.soft.level) if self.soft.level else x

    @property
    def pi_tilde(self) -> Floats:
        return self.model.get(self.soft.pi_tilde)

    @cached_property
    def log_likelihood(self) -> float:
        return float(self._in_rows[2])

    @property
    def choices(self) -> Choices:
        return Choices(self.rows.weights, self.rows.get(self._in_rows[0]), self.rows.feasible)

    @property
    def slopes(self) -> Floats:
        return self.rows.get(self.device_slopes.F)

    @cached_property
    def information(self) -> Floats:
        return np.asarray(kernels.information(self.device_slopes.F, self._in_rows[1], self.rows.rho))

    @property
    def spread(self) -> tuple[Floats, Floats]:
        if "spread" not in self.kept:
            gap = kernels.widest_gap(self.device_slopes.F, self.rows.offered)
            self.kept["spread"] = np.asarray(gap), self.device_slopes.size
        return self.kept["spread"]


class AffinePart(DevicePart):
    """Features and a given π̃: Q = q₀ + Fθ in the rows, with F and q₀ the same at every θ."""

    choice: DeviceGiven
    reward: DeviceLinear

    @property
    def columns(self) -> Any:
        """(K + 1, S): W and w₀ with V^π̃ = Wθ + w₀."""
        if "columns" not in self.kept:
            self.kept["columns"], self.kept["gains"] = self.choice.affine(self.reward.features, self._offset)
        return self.kept["columns"]

    @property
    def _offset(self) -> Any:
        with jax.enable_x64(True):
            return jnp.zeros((1, 1)) if self.reward.offset is None else self.reward.offset

    @property
    def device_slopes(self) -> Slopes:
        if "slopes" not in self.kept:
            self.kept["slopes"] = Slopes.of(self.model, self.rows, self.reward.features, self.columns)
        return self.kept["slopes"]

    def _find_rows(self) -> tuple[Any, ...]:
        if "q0" not in self.kept:
            known = self.model.transitions, self.model.gamma, limits_of(self.model)
            self.kept["q0"] = kernels.fixed_rows(*known, self._offset, self.columns, self.rows.index)
        return kernels.affine_choices(self.kept["q0"], self.device_slopes.F, self.theta, self.rows.rho)

    @cached_property
    def pull(self) -> Floats:
        return np.asarray(self._in_rows[3])

    @property
    def hessian(self) -> Floats:
        return -self.information

    def _find_soft(self) -> DeviceSoft:
        table = kernels.feasible_table(limits_of(self.model), self.reward.value(self.theta))[0]
        V = kernels.affine(self.columns, self.theta)
        gains = self.kept["gains"]
        level = self.choice.level(0.0, float(gains[:-1] @ self.theta + gains[-1]))
        return DeviceSoft(self.model, table, V, self.choice, level=level)

    @property
    def doubt(self) -> SolverFailed | None:
        """Why float64 cannot tell the choices, where it cannot (theory B6)."""
        return self.soft.doubt


@dataclass(frozen=True, eq=False)
class SolvedPart(DevicePart):
    """Any reward and any π̃: the value was solved for, the slope needs λ, and the curvature W = ∂V/∂θ."""

    solved: DeviceSoft = field(repr=False)

    def _find_soft(self) -> DeviceSoft:
        return self.solved

    def _find_rows(self) -> tuple[Any, ...]:
        return kernels.choices_in_rows(self.solved.q_in(self.rows.index), self.rows.rho)

    @property
    def _lam(self) -> Any:
        return self._adjoint[1]

    @cached_property
    def _adjoint(self) -> tuple[Any, Any]:
        """D (A, S) and λ (S,) (theory G1, G2): one solve with the transpose."""
        D = kernels.unlike(self.rows.rho, self._in_rows[1], self.rows.slot)
        warm: Warm = self.choice.warm
        self.choice.work.solves += 1
        warm.adjoint = self.solved.chain.solve_pairs(D, start=warm.adjoint)
        return D, warm.adjoint

    @cached_property
    def pull(self) -> Floats:
        D, lam = self._adjoint
        return self.reward.vjp(self.theta, kernels.reward_gradient(D, self.solved.pi_tilde, lam))  # G4

    @cached_property
    def _features(self) -> Any:
        """(K, 1|A, S); brought over for this where they are too many to be kept there."""
        there = self.reward
        return there.features if there.features is not None else DeviceLinear.of(self.model, there.reward).features

    @property
    def _moved(self) -> Any:
        """W = ∂V/∂θ (K, S), up to a constant each where nothing ends: one batched solve."""
        if "moved" not in self.kept:
            columns, warm = kernels.expected(self.solved.pi_tilde, self._features), self.choice.warm
            self.choice.work.solves += len(columns)
            warm.slopes, _ = self.solved.chain.solve_relative(columns, start=warm.slopes_like(columns))
            self.kept["moved"] = warm.slopes
        return self.kept["moved"]

    @property
    def device_slopes(self) -> Slopes:
        if "slopes" not in self.kept:
            self.kept["slopes"] = Slopes.of(self.model, self.rows, self._features, self._moved)
        return self.kept["slopes"]

    @cached_property
    def hessian(self) -> Floats:
        if not self.choice.moves:
            return -self.information
        here = covariances(self.model, self._features, self._moved, self.solved.policy, self._lam)
        return here - self.information


@dataclass(frozen=True, eq=False)
class LayeredPart(SolvedPart):
    """The same on a horizon, whose layers are gone through once for the value and once for the slope (theory F2).
    `weights` is ρ by decisions."""

    weights: Any = field(repr=False)

    @cached_property
    def log_likelihood(self) -> float:
        Q, _ = self.solved.decisions
        return float(kernels.layered_likelihood(Q, self.solved.V, self.weights))

    @cached_property
    def _pass(self) -> tuple[Any, Any]:
        """λ and ∂g/∂r by decisions."""
        self.choice.work.solves += 1
        return kernels.layered_adjoint(self.model.transitions, self.model.gamma, self.weights, self.solved.decisions[1])

    @property
    def _lam(self) -> Any:
        return self._pass[0]

    @cached_property
    def pull(self) -> Floats:
        decisions = self._pass[1]
        if isinstance(self.reward, DeviceLifted):
            return self.reward.vjp_of_decisions(self.theta, decisions)
        return self.reward.vjp(self.theta, kernels.by_state(self.model.transitions, decisions))
