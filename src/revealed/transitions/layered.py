"""Transitions of a finite horizon on a device (theory F1, F2): T of the base model leads from every layer to the next.

The same operators as `padded.py` for states that are (time, state) pairs, time after time, with nothing but the base
model's arrays; and the passes that solve with I − γT^π, which is block bidiagonal, layer by layer in one compiled loop:
what `layers.py` does on the host. Everything here is pure and may be used inside `jax.jit`; callers hold
`jax.enable_x64(True)`. This file loads JAX: import it inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import jax
import jax.numpy as jnp

from revealed.transitions.padded import STATIC, PaddedTransitions

SHORT = 16  # sums of so many terms are written out in a loop over layers: it is run often, and compiles soon enough


@partial(jax.tree_util.register_dataclass)
@dataclass(frozen=True)
class LayeredTransitions:
    """T of an unrolled horizon as an operator; `step` is T of the base model. Nothing leads on from the last layer."""

    step: PaddedTransitions
    layers: int = field(default=1, metadata=STATIC)

    @classmethod
    def of(cls, base: PaddedTransitions, layers: int) -> LayeredTransitions:
        return cls(replace(base, at_once=base.at_once and base.index.shape[0] > SHORT), layers)

    @property
    def n_states(self) -> int:
        return self.layers * self.step.n_states

    @property
    def n_actions(self) -> int:
        return self.step.n_actions

    def by_layer(self, x: jax.Array) -> jax.Array:
        """(…, L·S) as (…, L, S)."""
        return x.reshape(*x.shape[:-1], self.layers, self.step.n_states)

    def by_decision(self, table: jax.Array) -> jax.Array:
        """A table (A, L·S) by decisions (L − 1, A, S), as a pass reads and writes it; the last layer has none."""
        return jnp.moveaxis(self.by_layer(table)[:, :-1], 0, 1)

    def by_state(self, decisions: jax.Array, last: float) -> jax.Array:
        """The way back to (A, L·S), with `last` in the last layer."""
        table = jnp.pad(decisions, [(0, 1), (0, 0), (0, 0)], constant_values=last)
        return jnp.moveaxis(table, 0, 1).reshape(self.n_actions, -1)

    def each_action(self, V: jax.Array) -> list[jax.Array]:
        """(T V)(·, a), one array (…, L·S) per action: what every layer expects of the next."""
        later = self.by_layer(V)[..., 1:, :]
        later = jnp.pad(later, [(0, 0)] * (V.ndim - 1) + [(0, 1), (0, 0)])
        return [y.reshape(V.shape) for y in self.step.each_action(later)]

    def expect(self, V: jax.Array) -> jax.Array:
        """(T V)(s, a) of V (…, L·S) as (…, A, L·S)."""
        return jnp.stack(self.each_action(V), axis=-2)

    def push(self, d: jax.Array) -> jax.Array:
        """Tᵀ d for d (A, L·S): what every layer hands to the next, and nothing to the first."""
        pushed = jax.vmap(self.step.push, in_axes=1)(self.by_layer(d))
        return jnp.pad(pushed[:-1], [(1, 0), (0, 0)]).reshape(-1)


@jax.jit
def solve_back(T: LayeredTransitions, gamma: jax.Array, policy: jax.Array, b: jax.Array) -> jax.Array:
    """(I − γT^π)⁻¹ b for b (K, L·S): x_t = b_t + γT^{π_t} x_{t+1}, from the last layer to the first."""
    pi = T.by_layer(policy)

    def one(k: jax.Array, x: jax.Array) -> jax.Array:
        t = T.layers - 2 - k
        return x.at[:, t].add(gamma * T.step.merge(pi[:, t])(x[:, t + 1]))

    return jax.lax.fori_loop(0, T.layers - 1, one, T.by_layer(b)).reshape(b.shape)


@jax.jit
def solve_onwards(T: LayeredTransitions, gamma: jax.Array, policy: jax.Array, b: jax.Array) -> jax.Array:
    """(I − γT^π)^{-T} b for b (K, L·S): x_{t+1} = b_{t+1} + γ(T^{π_t})ᵀx_t, from the first layer to the last."""
    pi = T.by_layer(policy)

    def one(t: jax.Array, x: jax.Array) -> jax.Array:
        back = T.step.merge_back(T.step.merge(pi[:, t]))
        return x.at[:, t + 1].add(gamma * back(x[:, t]))

    return jax.lax.fori_loop(0, T.layers - 1, one, T.by_layer(b)).reshape(b.shape)


def adjoint(T: LayeredTransitions, gamma: jax.Array, rho: jax.Array, policy: jax.Array) -> tuple[jax.Array, jax.Array]:
    """λ (L·S,) and ∂g/∂r by decisions (theory G1–G3), for weights ρ and a policy by decisions, in one pass:
    D_t = ρ_t − ρ_t(s)π_t, λ_{t+1} = γTᵀ(D_t + π_t ⊙ λ_t)."""

    def one(now: jax.Array, layer: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        weights, pi = layer
        pull = weights + pi * (now - weights.sum(axis=0))
        later = gamma * T.step.push(jax.lax.optimization_barrier(pull))
        return later, (later, pull)

    first = jnp.zeros_like(rho[0, 0])
    lam, pulls = jax.lax.scan(one, first, (rho, policy))[1]
    return jnp.concatenate([first[None], lam]).reshape(-1), pulls
