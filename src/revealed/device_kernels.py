"""The formulas of the objective for arrays on a device: states last, actions before them, parameters first.

Pure functions, compiled once for each set of shapes and run in float64. `T` is the model's padded transitions;
`limits` are its mask (A, S), 0 where an action is feasible and −∞ elsewhere or None, and the states that go on (S,).
Rows are the observed states, R of them, known by their `index`. This file loads JAX: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp

from revealed.device_bellman import q_rows, soft_choices, soft_policy
from revealed.transitions.layered import adjoint


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled for arrays in float64, whatever the host program has set."""
    fast = jax.jit(function)

    @wraps(function)
    def call(*arrays: Any) -> Any:
        with jax.enable_x64(True):
            return fast(*arrays)

    return call


def offered(limits: tuple[Any, Any]) -> Any:
    """(A, S) or (1, S) bool: what may be chosen."""
    mask, going = limits
    return going[None] if mask is None else mask == 0.0


def block_of(x: Any, block: slice) -> Any:
    """x[block], without a copy where that is all of it."""
    with jax.enable_x64(True):
        return x if block == slice(0, len(x)) else x[block]


@compiled
def feasible_table(limits: Any, table: Any) -> tuple[Any, Any]:
    """Rewards, zero where nothing is offered, and whether all of them are finite."""
    found = jnp.where(offered(limits), table, 0.0)
    return found, jnp.isfinite(found).all()


@compiled
def choices(T: Any, gamma: Any, limits: Any, table: Any, V: Any) -> tuple[Any, ...]:
    """Λ(V), Q = r + γTV, π_θ and log π_θ in all states."""
    mask, going = limits
    return soft_choices(T, gamma, mask, going, table, V)


@compiled
def policy_alone(T: Any, gamma: Any, limits: Any, table: Any, V: Any) -> Any:
    """π_θ without the rest."""
    mask, going = limits
    return soft_policy(T, gamma, mask, going, table, V)


@compiled
def expected(policy: Any, features: Any) -> Any:
    """(K, S): Σ_a π(a|s) φ(s, a) for features (K, 1|A, S)."""
    return _expected(policy, features)


@compiled
def payoff(policy: Any, log_policy: Any, table: Any) -> Any:
    """(S,): Σ_a π(a|s)(r(s, a) − log π(a|s)), with 0·log 0 = 0. `log_policy` of None is log π."""
    return _payoff(policy, log_policy, table)


@compiled
def affine_sides(policy: Any, log_policy: Any, features: Any, offset: Any) -> Any:
    """(K + 1, S): what is earned at once per unit of each parameter, and without any of them."""
    return jnp.concatenate([_expected(policy, features), _payoff(policy, log_policy, offset)[None]])


def _expected(policy: Any, features: Any) -> Any:
    if features.shape[1] == 1:
        return features[:, 0] * policy.sum(axis=0)
    return jnp.einsum("as,kas->ks", policy, features)


def _payoff(policy: Any, log_policy: Any, table: Any) -> Any:
    used = policy > 0.0
    log_policy = jnp.log(jnp.where(used, policy, 1.0)) if log_policy is None else jnp.where(used, log_policy, 0.0)
    return jnp.where(used, policy * (table - log_policy), 0.0).sum(axis=0)


@compiled
def affine(columns: Any, theta: Any) -> Any:
    """(S,): Wθ + w₀ for the columns (K + 1, S) of both."""
    return jnp.tensordot(theta, columns[:-1], axes=1) + columns[-1]


@compiled
def offered_in_rows(limits: Any, index: Any) -> Any:
    """(A, R) or (1, R) bool."""
    return offered(limits)[:, index]


@compiled
def choices_in_rows(Q: Any, rho: Any) -> tuple[Any, Any, Any]:
    """log π_θ and π_θ in rows (A, R), and Σ ρ log π_θ (theory P1, O1)."""
    return _choices(Q, rho)


@compiled
def affine_choices(q0: Any, F: Any, theta: Any, rho: Any) -> tuple[Any, Any, Any, Any]:
    """The same where Q = q₀ + Fθ for slopes F (K, A, R), and the slope Σ D F (K,) with D = ρ − ρ(s)π_θ."""
    log_policy, policy, value = _choices(q0 + jnp.tensordot(theta, F, axes=1), rho)
    return log_policy, policy, value, jnp.einsum("kar,ar->k", F, rho - rho.sum(axis=0) * policy)


def _choices(Q: Any, rho: Any) -> tuple[Any, Any, Any]:
    Q = Q - Q.max(axis=0)
    odds = jnp.exp(Q)
    total = odds.sum(axis=0)
    log_policy = Q - jnp.log(total)
    return log_policy, odds / total, jnp.where(rho != 0.0, rho * log_policy, 0.0).sum()  # 0·log 0 = 0


@compiled
def by_decision(T: Any, rho: Any, slot: Any) -> Any:
    """ρ of rows (A, R) by the decisions of a horizon (L − 1, A, S)."""
    return T.by_decision(jnp.pad(rho, ((0, 0), (0, 1)))[:, slot])


@compiled
def by_state(T: Any, decisions: Any) -> Any:
    """(A, S) of what is given by decisions, zero in the last layer."""
    return T.by_state(decisions, 0.0)


@compiled
def layered_likelihood(Q: Any, V: Any, rho: Any) -> Any:
    """Σ ρ log π_θ with log π_θ = Q − V (theory P1, O1); Q and ρ by decisions, V (L·S,)."""
    log_policy = Q - V.reshape(-1, 1, Q.shape[-1])[:-1]
    return jnp.where(rho != 0.0, rho * log_policy, 0.0).sum()


layered_adjoint = compiled(adjoint)


@compiled
def unlike(rho: Any, policy: Any, slot: Any) -> Any:
    """D = ρ − ρ(s)π_θ (theory G1) of all states (A, S), zero where `slot` says R."""
    return jnp.pad(rho - rho.sum(axis=0) * policy, ((0, 0), (0, 1)))[:, slot]


@compiled
def reward_gradient(D: Any, pi_tilde: Any, lam: Any) -> Any:
    """∂g/∂r = D + π̃ ⊙ λ (theory G3)."""
    return D + pi_tilde * lam


@compiled
def fixed_rows(T: Any, gamma: Any, limits: Any, offset: Any, columns: Any, index: Any) -> Any:
    """(A, R): q₀, which does not depend on θ, from the last of the columns (K + 1, S)."""
    mask, _ = limits
    return jnp.stack([q[index] for q in q_rows(T, gamma, mask, offset, columns[-1])])


@compiled
def rows_of_q(T: Any, gamma: Any, limits: Any, table: Any, V: Any, index: Any) -> Any:
    """(A, R): r + γTV in rows, −∞ where nothing is offered (theory V2)."""
    mask, _ = limits
    return jnp.stack([q[index] for q in q_rows(T, gamma, mask, table, V)])


@compiled
def slopes_in_rows(T: Any, gamma: Any, limits: Any, features: Any, W: Any, index: Any) -> tuple[Any, Any]:
    """F = φ + γTW (theory V5) in rows (k, A, R), zero where nothing is offered, and the largest size in all states."""
    F = jnp.where(offered(limits), features + gamma * T.expect(W[: len(features)]), 0.0)
    return F[..., index], jnp.abs(F).max(axis=(1, 2))


@compiled
def centred_slopes(T: Any, gamma: Any, features: Any, W: Any, policy: Any) -> Any:
    """F less its mean over actions, (k, A, S)."""
    F = features + gamma * T.expect(W)
    return F - jnp.einsum("as,kas->ks", policy, F)[:, None]


@compiled
def products(left: Any, weights: Any, policy: Any, right: Any) -> Any:
    """(k, l): Σ_s w(s) Σ_a π(a|s) of what is centred (theory H1)."""
    return jnp.einsum("kas,las->kl", left * (weights * policy), right)


@compiled
def information(F: Any, policy: Any, rho: Any) -> Any:
    """(K, K): Σ_r ρ(r) Cov_{a∼π(·|r)} F(r, ·) in rows."""
    centred = F - jnp.einsum("ar,kar->kr", policy, F)[:, None]
    return jnp.einsum("kar,lar->kl", centred * (rho.sum(axis=0) * policy), centred)


@compiled
def widest_gap(F: Any, feasible: Any) -> Any:
    """(K,): the widest gap of F (K, A, R) between actions that one row offers."""
    top = jnp.where(feasible, F, -jnp.inf).max(axis=1)
    bottom = jnp.where(feasible, F, jnp.inf).min(axis=1)
    return (top - bottom).max(axis=1)


@compiled
def largest(x: Any) -> Any:
    return jnp.abs(x).max()


@compiled
def lifted(limits: Any, x: Any, level: Any) -> Any:
    """x (…, S) with a level on the states that go on."""
    return jnp.where(limits[1], x + level, x)


@compiled
def policy_left(rows: Any, gamma: Any, b: Any, x: Any) -> Any:
    """b − (I − γT^π)x."""
    return b - (x - gamma * rows(x))


@compiled
def less_middle(going: Any, x: Any) -> Any:
    """x (S,) less the middle of its extremes, where something goes on."""
    middle = 0.5 * (jnp.where(going, x, jnp.inf).min() + jnp.where(going, x, -jnp.inf).max())
    return jnp.where(going, x - middle, 0.0)


@compiled
def distance(before: Any, after: Any) -> Any:
    return jnp.abs(after - before).max()
