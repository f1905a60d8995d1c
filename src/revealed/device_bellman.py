"""The soft optimum on a device (theory V3, B1–B3): sweeps while they are quick, then Newton–Krylov.

What `bellman.py` does on the host, with the same verdicts. Where nothing ends, the level is kept out (theory B5), and
sweeps V ← Λ(V) are judged by the span of Λ(V) − V, since only differences of values enter choices. As long as their
rate promises the end soon they go on (graphs that mix fast never need anything else), otherwise Newton's steps
V ← V + (I − γT^π)⁻¹(Λ(V) − V) take over, each solved only as well as the next one can use. This file loads JAX: import
it inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from revealed.chain import NO_PROGRESS, NO_VALUE, goals_missing, most_steps, one_hot, towards_the_end
from revealed.checks import Floats
from revealed.device_model import DeviceModel
from revealed.device_solvers import DeviceChain, LayerChain, less, typical
from revealed.errors import InvalidInput, SolverFailed, ValueDoesNotExist
from revealed.levels import ALIKE, IDLE, PATIENT, doubt_of, judged_by, less_patient, shaped, surely_known
from revealed.linear_solvers import EPS, SAMPLE
from revealed.sweeps import RELATIVE
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
    its mean there, the size of Λ(V). Where nothing ends, `shift` = −1 keeps the level out of every sweep.
    """

    def one(_: Any, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        V, r, numbers = state
        V = jnp.where(going, V + r + shift * 0.5 * (numbers[0] + numbers[1]), 0.0)
        LV = log_sum_exp(T, gamma, mask, going, reward, V)
        r = LV - V
        low, high = jnp.where(going, r, jnp.inf).min(), jnp.where(going, r, -jnp.inf).max()
        mean = jnp.where(going, r, 0.0).sum() / going.sum()
        return V, r, jnp.stack([low, high, mean, jnp.abs(LV).max()])

    return jax.lax.fori_loop(0, n + 1, one, (V, jnp.zeros_like(V), jnp.zeros(4, dtype=V.dtype)))


@jax.jit
def _rounding(T: Any, gamma: Any, mask: Any, reward: Any, V: jax.Array, r: jax.Array) -> jax.Array:
    """(S,): what rounding may leave of Λ(V) − V in each state, from the numbers that were added up there."""
    largest = jnp.zeros_like(V)
    for a, expected in enumerate(T.each_action(jnp.abs(V))):
        term = jnp.abs(reward[a if reward.shape[0] > 1 else 0]) + gamma * expected
        largest = jnp.maximum(largest, term if mask is None else jnp.where(mask[a] == 0.0, term, 0.0))
    return 8 * EPS * (jnp.maximum(jnp.abs(V + r), jnp.abs(V)) + largest)


@jax.jit
def _reward_level(offered: jax.Array, reward: jax.Array) -> jax.Array:
    """The reward of a typical pair that is offered: see `levels.level_of`."""
    step = -(-reward.shape[-1] // SAMPLE)
    return jnp.nanmedian(jnp.where(offered, reward, jnp.nan)[:, ::step])


@jax.jit
def _apart(before: jax.Array, after: jax.Array) -> jax.Array:
    return jnp.abs(after - before).max()


def without_level(model: DeviceModel, reward: jax.Array) -> tuple[jax.Array, float]:
    """A reward (A, S) or (1, S) without its level where nothing ends, and that level (theory B5)."""
    if not model.endless:
        return reward, 0.0
    level = float(_reward_level(model.going[None] if model.mask is None else model.mask == 0.0, reward))
    return (less(model.going, reward, jnp.full(reward.shape[0], level)), level) if np.isfinite(level) else (reward, 0.0)


class _OnHost:
    """A device model as `levels.py` wants an MDP, and a chain of it, NumPy in and out: for a second look at what
    rounding does, which is rare."""

    def __init__(self, model: DeviceModel, chain: Any = None) -> None:
        self.model, self.chain, self.transitions = model, chain, self
        self.n_states, self.discount, self.ends, self.endless = (
            model.n_states,
            model.discount,
            model.ends,
            model.endless,
        )
        self.terminal = np.asarray(model.get(model.going)) == 0.0
        self.state_labels = None if model.mdp is None else model.mdp.state_labels
        offered = jnp.broadcast_to(model.going, (model.n_actions, model.n_padded))
        self.feasible = model.get(offered if model.mask is None else offered & (model.mask == 0.0))

    def table(self, x: jax.Array) -> Floats:
        """(S, A) of an array (A, S) or (1, S); zero where nothing is offered."""
        return np.where(self.feasible, self.model.get(x), 0.0)

    def expect(self, V: Floats) -> Floats:
        return self.table(jnp.stack(self.model.transitions.each_action(self.model.put(V))))

    def solve_relative(self, b: Floats) -> tuple[Floats, float]:
        h, g = self.chain.solve_relative(self.model.put(b))
        return self.model.get(h), float(g)

    def backward(self, b: Floats) -> Floats:
        return self.model.get(self.chain.solve_transpose(self.model.put(b)))


def doubt_about(model: DeviceModel, chain: Any, table: Any, V: Any, residual: Any, policy: Any, chosen: Any) -> Any:
    """Why float64 cannot tell the choices `chosen` (log π, (A, S)) that follow from r + γTV, where it cannot (B6)."""
    with jax.enable_x64(True):
        here = _OnHost(model, chain)
        log_policy = np.where(here.feasible, model.get(chosen), -np.inf)
        known = here.table(table), model.get(V), model.get(residual), here.table(policy), log_policy
        return doubt_of(cast(Any, here), here, *known)


@dataclass(frozen=True, eq=False)
class DeviceOptimum:
    """The soft optimum on a device, states last: `value` is Λ(V) and everything else Q(V) at V = `at`, where the search
    ended, of `reward`, both without their level. What follows from it is computed when asked for."""

    at: jax.Array
    value: jax.Array
    residual: float
    sweeps: int
    newton_steps: int
    model: DeviceModel = field(repr=False)
    reward: jax.Array = field(repr=False)
    decisions: tuple[jax.Array, jax.Array] | None = field(default=None, repr=False)  # Q and π of a horizon's layers
    level: float = 0.0  # what was taken off Q and the value

    @property
    def relative(self) -> jax.Array:
        """The value up to a constant where nothing ends."""
        return self.at if self.model.endless else self.value

    @cached_property
    def _all(self) -> tuple[jax.Array, ...]:
        with jax.enable_x64(True):
            return _choices(*_given(self.model, self.reward), self.at)

    @property
    def q(self) -> jax.Array:
        """(A, S), −∞ where infeasible."""
        with jax.enable_x64(True):
            return self._all[1] + self.level if self.level else self._all[1]

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
    mean: float
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
                return search.run(less(model.going, start, typical(model.going, start)) if model.endless else start)
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
    size = 4 * EPS * float(2.0 * jnp.abs(V).max() + jnp.abs(jnp.where(model.going, reward, 0.0)).max())
    if not surely_known(1.0 - 1.0 / model.transitions.layers, size) and not surely_known(model.discount, size):
        _, _, policy, log_policy = _choices(*_given(model, reward), V)
        doubt = doubt_about(model, model.chain(policy), reward, V, jnp.zeros_like(V), policy, log_policy)
        if doubt is not None:
            raise doubt
    return DeviceOptimum(V, V, 0.0, 0, 0, model, reward, decisions)


class _Search:
    """One run from a start to the fixed point."""

    def __init__(self, model: DeviceModel, reward: jax.Array) -> None:
        self.model = model
        lower, self.level = without_level(model, reward)
        self.shift = RELATIVE if model.endless else 0.0
        self.sweeps = self.newton = 0
        self._take(lower)

    def _take(self, reward: jax.Array) -> None:
        self.reward, self.given = reward, _given(self.model, reward)
        self.reward_size = float(jnp.abs(jnp.where(self.model.going, reward, 0.0)).max())

    def cold_start(self) -> jax.Array:
        """Zero; at γ = 1, where zero may lie far above the optimum, the value of a policy that walks to the end; very
        near 1, where nothing ends, the optimum of a smaller discount: see `SoftBellman._cold_start`."""
        model = self.model
        if model.endless and 1.0 - model.discount < PATIENT:
            try:
                other = replace(model, gamma=jnp.asarray(less_patient(model.discount), dtype=jnp.float64))
                return soft_optimum(other, self.reward).relative
            except SolverFailed:
                pass
        if model.discount < 1.0:
            return jnp.zeros(model.n_padded, dtype=jnp.float64, device=model.going.sharding)
        if model.mdp is None:
            raise InvalidInput.conflict("start", "is required at discount 1")
        walk = model.put(one_hot(model.mdp, towards_the_end(model.mdp)))
        payoff = jnp.sum(jnp.where(walk > 0.0, self.reward, 0.0), axis=0)  # a sure choice has no entropy
        return self._look(model.chain(walk).solve(payoff), SWEEPS).V

    def run(self, V: jax.Array) -> DeviceOptimum:
        """The optimum; once more with its level off where rounding would show in choices otherwise (theory B5)."""
        first, point = self.reward, self._descend(V)
        found, doubt = self._optimum(point, 0.0), self._doubt(point)
        if doubt is not None and self.model.ends:
            here = _OnHost(self.model)
            m = float(np.median(self.model.get(point.V)[~here.terminal]))
            self._take(self.model.put(shaped(cast(Any, here), here.table(first), m)))
            point = self._descend(less(self.model.going, point.V, jnp.asarray(m)))
            found, doubt = self._optimum(point, m), self._doubt(point)
            self._take(first)
        if doubt is not None:
            raise doubt
        return found

    def _descend(self, V: jax.Array) -> _Point:
        """The fixed point to rounding."""
        point, idle = self._sweep_while_quick(self._look(V)), 0
        while not self._at_rounding(point):
            if self.newton == most_steps(self.model.n_states, self.model.discount):
                raise self._lost
            trial = self._newton_step(point)
            if trial.size >= 0.5 * point.size and point.size <= 1e3 * EPS * point.scale:
                idle += 1
                if idle >= IDLE or float(_apart(*(_policy(*self.given, p.V) for p in (point, trial)))) <= ALIKE:
                    break
            # a sweep carries changes one move on, a Newton step only to where they change the policy
            point = trial if trial.size < 0.1 * point.size else self._sweep_while_quick(trial)
        self._require_value(point)
        return point

    def _optimum(self, point: _Point, m: float) -> DeviceOptimum:
        """With the level that was taken off: m from every state that goes on, or what nothing's end left free."""
        gamma = self.model.discount
        level = (self.level + gamma * point.mean) / (1.0 - gamma) if self.model.endless else m
        value = point.V + point.r
        value = less(self.model.going, value, jnp.asarray(-level)) if level else value
        counts = point.size / max(point.scale, EPS), self.sweeps, self.newton
        return DeviceOptimum(point.V, value, *counts, self.model, self.reward, level=level)

    def _look(self, V: jax.Array, sweeps: int = 0) -> _Point:
        """V after so many sweeps."""
        V, r, numbers = _look(*self.given, V, self.shift, sweeps)
        self.sweeps += sweeps
        low, high, mean, top = (float(x) for x in np.asarray(numbers))
        if not np.isfinite(high - low):
            raise self._lost
        size = 0.5 * (high - low) if self.shift else max(abs(low), abs(high))
        scale = 2.0 * top + self.reward_size
        if self.shift:
            level = abs(self.level + mean) / (1.0 - self.model.discount)
            scale = judged_by(self.model.discount, scale, scale + 2.0 * level)
        return _Point(V, r, low, high, mean, size, scale)

    @property
    def _lost(self) -> Exception:
        return ValueDoesNotExist(NO_VALUE) if self.model.discount == 1.0 else SolverFailed(NO_PROGRESS)

    def _sweep_while_quick(self, point: _Point) -> _Point:
        """Ten sweeps, and more while their rate promises to be done before a Newton step would."""
        before = point.size
        while not self._at_rounding(point):
            point = self._look(point.V, SWEEPS)
            now, aim = point.size, 4 * EPS * point.scale
            if now <= aim or not now < before or SWEEPS * np.log(now / aim) / np.log(before / now) > MOST_SWEEPS:
                break
            before = now
        return point

    def _newton_step(self, point: _Point) -> _Point:
        """Theory B1. The system is solved as well as the step deserves: its own error is quadratic in the residual."""
        self.newton += 1
        chain: Any = self.model.chain(_policy(*self.given, point.V))
        worth = min(1e-2, point.size / point.scale)
        rtol = max(worth, min(1e-2, EPS * point.scale / point.size)) if self.model.discount < 1.0 else 1e-13
        return self._look(point.V + chain.step(self._residual(point), max(rtol, 1e-13)))

    def _residual(self, point: _Point) -> jax.Array:
        return less(self.model.going, point.r, jnp.asarray(point.middle)) if self.shift else point.r

    def _at_rounding(self, point: _Point) -> bool:
        """Whether the residual is what rounding leaves: overall where that cannot show in choices, and in every single
        state elsewhere."""
        reached = point.size <= 4 * EPS * point.scale
        if not reached or self._surely_known(point):
            return reached
        going, residual, noise = self.model.going, self._residual(point), self._hidden(point)
        if not self.shift:
            return bool(jnp.all(jnp.abs(residual) <= noise))
        above, below = jnp.where(going, residual - noise, -jnp.inf), jnp.where(going, residual + noise, jnp.inf)
        return bool(above.max() <= below.min())  # one constant explains them all

    def _surely_known(self, point: _Point) -> bool:
        return surely_known(self.model.discount, point.size + 4 * EPS * point.scale)

    def _doubt(self, point: _Point) -> SolverFailed | None:
        """Why choices are not known, where they are not: see `SoftBellman._doubt`."""
        if self._surely_known(point):
            return None
        _, _, policy, log_policy = _choices(*self.given, point.V)
        known = self.reward, point.V, self._residual(point), policy, log_policy
        return doubt_about(self.model, self.model.chain(policy), *known)

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
