"""Rewards where the model's arrays are: from θ to a table (1|A, S) on the device, and the product back to θ.

Features, a weight per state and JAX functions stay on the device. Any other reward is asked on the host, and its table
and cotangents cross over at every θ. This file loads JAX: import it inside functions.
"""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from revealed.checks import Floats
from revealed.device_kernels import compiled
from revealed.device_model import DeviceModel
from revealed.rewards.base import LiftedReward, Reward, is_linear
from revealed.rewards.holes import filled
from revealed.rewards.linear import LinearReward
from revealed.rewards.neural import JaxReward, NeuralReward
from revealed.rewards.tabular import TabularReward
from revealed.transitions import is_sparse
from revealed.transitions.layered import LayeredTransitions

MOST_COLUMNS = 400  # of features for which ∂Q/∂θ is held, and of sparse ones that are written out
MOST_WRITTEN_OUT = 500_000_000  # numbers of sparse features on the device: 4 GB


class DeviceReward(Protocol):
    """`features` (K, 1|A, S) where r is linear in θ, with `offset` (1|A, S) beside them or None; else None."""

    linear: bool
    features: Any
    offset: Any

    def value(self, theta: Floats) -> Any:
        """(1|A, S) on the device."""
        ...

    def vjp(self, theta: Floats, cotangent: Any) -> Floats:
        """(K,) on the host, of a cotangent (A, S) on the device."""
        ...


class DeviceLinear:
    """r = φθ (+ a table that does not depend on θ); it is a reward of its own as well, for models without a host."""

    linear = True

    def __init__(self, model: DeviceModel, features: Any, offset: Any = None, names: Any = None) -> None:
        self.model, self.features, self.offset = model, features, offset
        self.n_params = int(features.shape[0])
        self.names = tuple(f"theta{k}" for k in range(self.n_params)) if names is None else tuple(names)

    @classmethod
    def of(cls, model: DeviceModel, reward: Any) -> DeviceLinear:
        """The features of a reward that has a Jacobian, dense on the device."""
        start = np.zeros(reward.n_params)
        J = reward.jacobian(start)
        J = J.toarray() if is_sparse(J) else np.asarray(J)
        per_state = J.reshape(model.n_states, -1, reward.n_params).transpose(0, 2, 1)
        base = None if _through_zero(reward) else filled(reward.value(start))
        return cls(model, model.put(per_state), None if base is None else model.put(base), reward.names)

    def init(self, seed: int | None = None) -> Floats:
        return np.zeros(self.n_params)

    def value(self, theta: Floats) -> Any:
        table = _weighted(self.features, theta)
        return table if self.offset is None else _add(table, self.offset)

    def vjp(self, theta: Floats, cotangent: Any) -> Floats:
        return np.asarray(_pulled(self.features, cotangent))

    def jacobian(self, theta: Floats) -> Floats:
        """The features on the host, (S, K) or (S*A, K)."""
        table = self.model.get(self.features)  # (S, K, 1|A)
        return np.ascontiguousarray(table.transpose(0, 2, 1)).reshape(-1, self.n_params)


class DeviceTable:
    """One weight per state."""

    linear, features, offset = True, None, None

    def __init__(self, model: DeviceModel) -> None:
        self.model = model

    def value(self, theta: Floats) -> Any:
        return self.model.put(np.asarray(theta, dtype=np.float64)[:, None])

    def vjp(self, theta: Floats, cotangent: Any) -> Floats:
        return self.model.get(_summed(cotangent))


class DeviceNetwork:
    """A JAX network that looks at each state (or pair) by itself: its rows lie where the model's do."""

    linear, features, offset = False, None, None

    def __init__(self, model: DeviceModel, reward: NeuralReward) -> None:
        self.model, self.reward = model, reward
        self._rows = _states_first(model.put(reward.inputs))

    def value(self, theta: Floats) -> Any:
        with jax.enable_x64(True):
            return _states_last(self.reward._table(theta, self._rows))

    def vjp(self, theta: Floats, cotangent: Any) -> Floats:
        cotangent = _states_first(_kept_together(cotangent) if self.reward._columns == 1 else cotangent)
        with jax.enable_x64(True):
            return np.asarray(self.reward._pull(theta, self._rows, cotangent))


class DeviceFunction:
    """Any function in JAX. It may look at all states at once, so that the first of the devices computes it for all."""

    linear, features, offset = False, None, None

    def __init__(self, model: DeviceModel, reward: JaxReward) -> None:
        self.model, self.reward = model, reward
        with jax.enable_x64(True):
            self._features = jax.device_put(reward._features, model.placement.where[0])

    def value(self, theta: Floats) -> Any:
        with jax.enable_x64(True):
            table = self.reward._table(theta, self._features).T
            wide = jnp.pad(table, ((0, 0), (0, self.model.n_padded - self.model.n_states)))
            return self.model.placement.put(wide)

    def vjp(self, theta: Floats, cotangent: Any) -> Floats:
        if self.reward._columns == 1:
            cotangent = _kept_together(cotangent)
        with jax.enable_x64(True):
            rows = jax.device_put(cotangent[:, : self.model.n_states], self.model.placement.where[0]).T
            return np.asarray(self.reward._pull(theta, self._features, rows))


class DeviceLifted:
    """A reward of the base model on a horizon: the same table in every layer, cotangents added over them."""

    features, offset = None, None

    def __init__(self, model: DeviceModel, transitions: LayeredTransitions, reward: LiftedReward) -> None:
        self._base, self._T = on_device(reward.base, model.mdp.base.on_device), transitions
        self.linear = reward.linear

    def value(self, theta: Floats) -> Any:
        return _in_every_layer(self._T, self._base.value(theta))

    def vjp(self, theta: Floats, cotangent: Any) -> Floats:
        return self._base.vjp(theta, _over_layers(self._T, cotangent))

    def vjp_of_decisions(self, theta: Floats, cotangent: Any) -> Floats:
        """The same for a cotangent by decisions (L − 1, A, S)."""
        return self._base.vjp(theta, _summed(cotangent))


class ThroughHost:
    """A reward that only the host can compute."""

    features, offset = None, None

    def __init__(self, model: DeviceModel, reward: Reward) -> None:
        self.model, self.reward = model, reward
        self.linear = bool(getattr(reward, "linear", False))

    def value(self, theta: Floats) -> Any:
        return self.model.put(np.asarray(self.reward.value(theta), dtype=np.float64))

    def vjp(self, theta: Floats, cotangent: Any) -> Floats:
        return self.reward.vjp(theta, self.model.get(cotangent))


def on_device(reward: Any, model: DeviceModel) -> Any:
    """The reward where the model's arrays are, a `DeviceReward`."""
    if isinstance(reward, DeviceLinear):
        return reward
    if isinstance(reward, TabularReward):
        return DeviceTable(model)
    if isinstance(reward, NeuralReward):
        return DeviceNetwork(model, reward)
    if isinstance(reward, JaxReward):
        return DeviceFunction(model, reward)
    if is_linear(reward) and not getattr(reward, "tabular", False) and _fits(reward, model):
        return DeviceLinear.of(model, reward)
    if isinstance(reward, LiftedReward) and isinstance(model.transitions, LayeredTransitions):
        return DeviceLifted(model, model.transitions, reward)
    return ThroughHost(model, reward)


def _fits(reward: Any, model: DeviceModel) -> bool:
    """Whether features may lie dense on the device: those that are dense already, and sparse ones that are few."""
    J = reward.jacobian(np.zeros(reward.n_params))
    return not is_sparse(J) or (J.shape[1] <= MOST_COLUMNS and J.shape[0] * J.shape[1] <= MOST_WRITTEN_OUT)


def _through_zero(reward: Any) -> bool:
    """Whether r = 0 at θ = 0, as it is for features; a reward along few of its weights has the others beside them."""
    inner = getattr(reward, "base", reward)
    return isinstance(inner, LinearReward) or not np.any(filled(reward.value(np.zeros(reward.n_params))))


@compiled
def _weighted(features: Any, theta: Any) -> Any:
    return jnp.tensordot(theta, features, axes=1)


@compiled
def _add(table: Any, offset: Any) -> Any:
    return table + offset


@compiled
def _in_every_layer(T: LayeredTransitions, table: Any) -> Any:
    return jnp.tile(table, (1, T.layers))


@compiled
def _over_layers(T: LayeredTransitions, cotangent: Any) -> Any:
    return T.by_layer(cotangent).sum(axis=-2)


@compiled
def _summed(cotangent: Any) -> Any:
    return cotangent.sum(axis=0)


@compiled
def _kept_together(cotangent: Any) -> Any:
    return cotangent.sum(axis=0, keepdims=True)


@compiled
def _pulled(features: Any, cotangent: Any) -> Any:
    """Σ_{a,s} of features times the cotangent, of which features of states see the sum over actions."""
    if features.shape[1] == 1:
        cotangent = cotangent.sum(axis=0, keepdims=True)
    return jnp.einsum("kas,as->k", features, cotangent)


@compiled
def _states_first(x: Any) -> Any:
    return jnp.moveaxis(x, -1, 0)


@compiled
def _states_last(x: Any) -> Any:
    return jnp.moveaxis(x, 0, -1)
