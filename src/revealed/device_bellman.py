"""The soft optimum on a device (theory V3, B1–B3): sweeps while they are quick, then Newton–Krylov.

What `bellman.py` does on the host, with the same verdicts. Relative sweeps V ← Λ(V) are judged by the span of Λ(V) − V
where nothing ends, since only differences of values enter choices; as long as their rate promises the end soon they
go on (graphs that mix fast never need anything else), otherwise Newton's steps V ← V + (I − γT^π)⁻¹(Λ(V) − V) take
over, each solved only as well as the next one can use. This file loads JAX: import it inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from revealed.chain import NO_PROGRESS, NO_VALUE, goals_missing, most_steps, one_hot, towards_the_end
from revealed.device_model import DeviceModel
from revealed.device_solvers import DeviceChain, LayerChain
from revealed.errors import InvalidInput, SolverFailed, ValueDoesNotExist
from revealed.linear_solvers import EPS
from revealed.transitions.layered import LayeredTransitions
from revealed.transitions.padded import PaddedTransitions

SWEEPS = 10  # between two looks at the span
MOST_SWEEPS = 100  # a Newton step costs about as much as so many


def q_rows(T: PaddedTransitions, gamma: jax.Array, mask: Any, reward: jax.Array, V: jax.Array) -> list[jax.Array]:
    """Q(·, a) = r + γTV, one array (S,) per action, −∞ where infeasible (theory V2)."""
    out = []
    for a, expected in enumerate(T.each_action(V)):
        q = reward[a if reward.shape[0] > 1 else 0] + gamma.astype(V.dtype) * expected
        out.append(q if mask is None else q + mask[a])
    if V.dtype == jnp.float64:  # in one loop with exponentials of eight bytes a GPU reads at a third of its speed
        return list(jax.lax.optimization_barrier(tuple(out)))
    return out


def soft_rows(Q: list[jax.Array], going: jax.Array) -> tuple[jax.Array, jax.Array, list[jax.Array]]:
    """The largest Q(s, ·), log Σ_a exp(Q − it) and those exponentials; zero, zero and zeros where nothing goes on."""
    top = Q[0]
    for q in Q[1:]:
        top = jnp.maximum(top, q)
    top = jnp.where(going, top, 0.0)
    odds = [jnp.where(going, jnp.exp(q - top), 0.0) for q in Q]
    total = odds[0]
    for part in odds[1:]:
        total = total + part
    return top, jnp.log(jnp.where(going, total, 1.0)), odds


def log_sum_exp(T: PaddedTransitions, gamma: jax.Array, mask: Any, going: Any, reward: Any, V: jax.Array) -> jax.Array:
    """Λ(V) (theory M2): one loop over states, whatever the number of actions."""
    top, rest, _ = soft_rows(q_rows(T, gamma, mask, reward, V), going)
    return top + rest


@jax.jit
def sweep(T: PaddedTransitions, gamma: jax.Array, mask: Any, going: Any, reward: Any, V: jax.Array) -> jax.Array:
    """One sweep V ← Λ(V), compiled."""
    return log_sum_exp(T, gamma, mask, going, reward, V)


def soft_choices(T: Any, gamma: Any, mask: Any, going: Any, reward: Any, V: jax.Array) -> tuple[jax.Array, ...]:
    """Λ(V), Q(V), π and log π (theory V2, P1), zero, −∞, zero and −∞ where nothing is offered; the largest Q is taken
    off first, as on the host."""
    Q = q_rows(T, gamma, mask, reward, V)
    top, rest, odds = soft_rows(Q, going)
    log_policy = [jnp.where(going, q - top - rest, -jnp.inf) for q in Q]
    Q = [jnp.where(going, q, -jnp.inf) for q in Q]
    return top + rest, jnp.stack(Q), _shares(odds, rest), jnp.stack(log_policy)


def soft_policy(T: Any, gamma: Any, mask: Any, going: Any, reward: Any, V: jax.Array) -> jax.Array:
    """π alone."""
    _, rest, odds = soft_rows(q_rows(T, gamma, mask, reward, V), going)
    return _shares(odds, rest)


def _shares(odds: list[jax.Array], rest: jax.Array) -> jax.Array:
    scale = jnp.exp(-rest)
    return jnp.stack([o * scale for o in odds])


_choices, _policy = jax.jit(soft_choices), jax.jit(soft_policy)


@jax.jit
def _look(T: Any, gamma: Any, mask: Any, going: Any, reward: Any, V: Any, shift: Any, n: Any) -> tuple[jax.Array, ...]:
    """V after n relative sweeps, Λ(V) − V there, and the numbers that judge it: its extremes where something goes on,
    its size, that of Λ(V). Where nothing ends each sweep is moved to the middle of its error bounds, `shift` = γ/(1−γ).
    """

    def one(_: Any, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        V, r, numbers = state
        V = jnp.where(going, V + r + shift * 0.5 * (numbers[0] + numbers[1]), 0.0)
        LV = log_sum_exp(T, gamma, mask, going, reward, V)
        r = LV - V
        low, high = jnp.where(going, r, jnp.inf).min(), jnp.where(going, r, -jnp.inf).max()
        return V, r, jnp.stack([low, high, jnp.abs(r).max(), jnp.abs(LV).max()])

    return jax.lax.fori_loop(0, n + 1, one, (V, jnp.zeros_like(V), jnp.zeros(4, dtype=V.dtype)))


@jax.jit
def _rounding(T: Any, gamma: Any, mask: Any, reward: Any, V: jax.Array, r: jax.Array) -> jax.Array:
    """(S,): what rounding may leave of Λ(V) − V in each state, from the numbers that were added up there."""
    largest = jnp.zeros_like(V)
    for a, expected in enumerate(T.each_action(jnp.abs(V))):
        term = jnp.abs(reward[a if reward.shape[0] > 1 else 0]) + gamma * expected
        largest = jnp.maximum(largest, term if mask is None else jnp.where(mask[a] == 0.0, term, 0.0))
    return 8 * EPS * (jnp.abs(V + r) + largest)


@dataclass(frozen=True, eq=False)
class DeviceOptimum:
    """The soft optimum on a device, states last: `value` is Λ(V) and everything else Q(V) at V = `at`, where the search
    ended. What follows from it is computed when asked for."""

    at: jax.Array
    value: jax.Array
    residual: float
    sweeps: int
    newton_steps: int
    model: DeviceModel = field(repr=False)
    reward: jax.Array = field(repr=False)
    decisions: tuple[jax.Array, jax.Array] | None = field(default=None, repr=False)  # Q and π of a horizon's layers

    @cached_property
    def _all(self) -> tuple[jax.Array, ...]:
        with jax.enable_x64(True):
            return _choices(*_given(self.model, self.reward), self.at)

    @property
    def q(self) -> jax.Array:
        """(A, S), −∞ where infeasible."""
        return self._all[1]

    @property
    def log_policy(self) -> jax.Array:
        return self._all[3]

    @cached_property
    def policy(self) -> jax.Array:
        """(A, S); zero where infeasible."""
        if "_all" in self.__dict__:
            return self._all[2]
        with jax.enable_x64(True):
            return _policy(*_given(self.model, self.reward), self.at)

    @cached_property
    def chain(self) -> DeviceChain | LayerChain:
        """The chain of the optimal policy."""
        return self.model.chain(self.policy)


def _given(model: DeviceModel, reward: jax.Array) -> tuple[Any, ...]:
    return model.transitions, model.gamma, model.mask, model.going, reward


@dataclass
class _Point:
    """A value V, Λ(V) − V, and how large that is."""

    V: jax.Array
    r: jax.Array
    low: float
    high: float
    size: float
    scale: float

    @property
    def middle(self) -> float:
        return 0.5 * (self.low + self.high)


def soft_optimum(model: DeviceModel, reward: jax.Array, start: jax.Array | None = None) -> DeviceOptimum:
    """The soft optimum for a reward (A, S) or (1, S), from the value `start` of a similar problem where there is one.

    Raises `ValueDoesNotExist` where γ = 1 and the value is infinite, `SolverFailed` where float64 does not suffice.
    """
    with jax.enable_x64(True):
        if isinstance(model.transitions, LayeredTransitions):
            return _backwards(model, reward)
        if model.discount == 1.0 and model.mdp is not None and model.mdp.cannot_end.any():
            towards_the_end(model.mdp)  # raises: no reward would help, and the message names a state
        search = _Search(model, reward)
        if start is not None:
            try:
                return search.run(start)
            except (ValueDoesNotExist, SolverFailed):
                pass  # the warm start may be to blame: try cold before giving a verdict
        try:
            return search.run(search.cold_start())
        except ValueDoesNotExist as problem:
            raise ValueDoesNotExist(NO_VALUE + ("" if model.mdp is None else goals_missing(model.mdp))) from problem


@jax.jit
def _induction(
    T: LayeredTransitions, gamma: jax.Array, mask: Any, going: jax.Array, reward: jax.Array
) -> tuple[jax.Array, jax.Array, tuple[jax.Array, jax.Array]]:
    """V (L·S,) by one sweep a layer, from the last decision to the first (theory F2), whether it is finite, and Q and π
    by decisions."""
    masks = None if mask is None else T.by_decision(mask)

    def one(V: jax.Array, layer: tuple[Any, ...]) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        reward, going, mask = layer
        V, Q, policy, _ = soft_choices(T.step, gamma, mask, going, reward, V)
        return V, (V, Q, policy)

    last = jnp.zeros(T.step.n_states)
    layers = T.by_decision(reward), T.by_layer(going)[:-1], masks
    V, Q, policy = jax.lax.scan(one, last, layers, reverse=True)[1]
    return jnp.concatenate([V, last[None]]).reshape(-1), jnp.isfinite(V).all(), (Q, policy)


def _backwards(model: DeviceModel, reward: jax.Array) -> DeviceOptimum:
    """On a horizon the residual is nothing: the next sweep would repeat the last."""
    V, finite, decisions = _induction(*_given(model, reward))
    if not bool(finite):
        raise ValueDoesNotExist(NO_VALUE)
    return DeviceOptimum(V, V, 0.0, 0, 0, model, reward, decisions)


class _Search:
    """One run from a start to the fixed point."""

    def __init__(self, model: DeviceModel, reward: jax.Array) -> None:
        self.model, self.reward, self.given = model, reward, _given(model, reward)
        self.reward_size = float(jnp.abs(jnp.where(model.going, reward, 0.0)).max())
        self.shift = 0.0 if model.ends or model.discount == 1.0 else model.discount / (1.0 - model.discount)
        self.sweeps = self.newton = 0

    def cold_start(self) -> jax.Array:
        """Zero; at γ = 1, where zero may lie far above the optimum, the value of a policy that walks to the end."""
        model = self.model
        if model.discount < 1.0:
            return jnp.zeros(model.n_padded, dtype=jnp.float64, device=model.going.sharding)
        if model.mdp is None:
            raise InvalidInput("start", "a value to start from, at discount 1", "None")
        walk = model.put(one_hot(model.mdp, towards_the_end(model.mdp)))
        payoff = jnp.sum(jnp.where(walk > 0.0, self.reward, 0.0), axis=0)  # a sure choice has no entropy
        return self._look(model.chain(walk).solve(payoff), SWEEPS).V

    def run(self, V: jax.Array) -> DeviceOptimum:
        point = self._sweep_while_quick(self._look(V))
        while not self._at_rounding(point):
            if self.newton == most_steps(self.model.n_states, self.model.discount):
                raise ValueDoesNotExist(NO_VALUE) if self.model.discount == 1.0 else SolverFailed(NO_PROGRESS)
            trial = self._newton_step(point)
            if trial.size >= 0.5 * point.size and point.size <= 1e3 * EPS * point.scale:
                break
            # sweeps carry news one move each, a Newton step carries it only to where it changes the policy
            point = trial if trial.size < 0.1 * point.size else self._sweep_while_quick(trial)
        self._require_value(point)
        relative = point.size / max(point.scale, EPS)
        found = (point.V, point.V + point.r, relative, self.sweeps, self.newton)
        return DeviceOptimum(*found, self.model, self.reward)

    def _look(self, V: jax.Array, sweeps: int = 0) -> _Point:
        """V after so many sweeps."""
        V, r, numbers = _look(*self.given, V, self.shift, sweeps)
        self.sweeps += sweeps
        low, high, size, top = (float(x) for x in np.asarray(numbers))
        if not np.isfinite(size):
            raise ValueDoesNotExist(NO_VALUE)
        return _Point(V, r, low, high, size, 2.0 * top + self.reward_size)

    def _sweep_while_quick(self, point: _Point) -> _Point:
        """Ten sweeps, and more while their rate promises to be done before a Newton step would."""
        before = self._measure(point.low, point.high)
        while not self._at_rounding(point):
            point = self._look(point.V, SWEEPS)
            now = self._measure(point.low, point.high)
            aim = 4 * EPS * point.scale
            if now <= aim or not now < before or SWEEPS * np.log(now / aim) / np.log(before / now) > MOST_SWEEPS:
                break
            before = now
        return point

    def _measure(self, low: float, high: float) -> float:
        """The span where a constant can be taken off, the largest absolute value where it cannot."""
        return high - low if self.shift else max(abs(low), abs(high))

    def _newton_step(self, point: _Point) -> _Point:
        """Theory B1. The system is solved as well as the step deserves: its own error is quadratic in the residual."""
        self.newton += 1
        chain = self.model.chain(_policy(*self.given, point.V))
        worth = min(1e-2, point.size / point.scale)
        rtol = max(worth, min(1e-2, EPS * point.scale / point.size)) if self.model.discount < 1.0 else 1e-13
        constant = jnp.where(self.model.going, point.middle / (1.0 - self.model.discount), 0.0) if self.shift else None
        return self._look(point.V + chain.solve(point.r, constant, max(rtol, 1e-13)))

    def _at_rounding(self, point: _Point) -> bool:
        """Whether the residual is what rounding leaves: overall for γ < 1, and in every single state for γ = 1."""
        if point.size > 4 * EPS * point.scale or self.model.discount < 1.0:
            return point.size <= 4 * EPS * point.scale
        return bool(jnp.all(jnp.abs(point.r) <= self._hidden(point)))

    def _hidden(self, point: _Point) -> jax.Array:
        T, gamma, mask, _, reward = self.given
        return _rounding(T, gamma, mask, reward, point.V, point.r)

    def _require_value(self, point: _Point) -> None:
        """At γ = 1 on its way to infinity V climbs while the residual fades: see `SoftBellman._require_value`."""
        if self.model.discount == 1.0:
            chain = self.model.chain(_policy(*self.given, point.V))
            hidden = jnp.where(self.model.going, jnp.maximum(self._hidden(point), jnp.abs(point.r)), 0.0)
            if float(chain.solve(hidden).max()) > 0.3:
                raise ValueDoesNotExist(NO_VALUE)
