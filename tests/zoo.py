"""The zoo: small random sparse problems whose answers are known, the same arrays for the library and for the oracle.

Four kinds, as the gradients are stated for: γ < 1; γ = 1 with terminal states; masks (with a terminal state, γ < 1);
an unrolled horizon (γ = 1, masks, in half of them a terminal state too). Features lie in [0.5, 1.5] and weights are
negative, so that every reward is below −log|A| and values exist at γ = 1 (theory B3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import scipy.sparse as sp

import revealed as rv
from oracle import Dense, Floats

KINDS = ("discounted", "undiscounted", "masked", "unrolled")
GAMMA = {"discounted": 0.9, "undiscounted": 1.0, "masked": 0.95, "unrolled": 1.0}


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem twice: `mdp` for the library, `dense` for the oracle. `base` is the problem before it is unrolled."""

    kind: str
    base: Dense
    horizon: int | None = None

    @cached_property
    def mdp(self) -> rv.MDP:
        S, A = self.base.shape
        T = sp.csr_array(self.base.raw.reshape(S * A, S))
        mdp = rv.MDP(T, self.base.gamma, self.base.initial, self.base.allowed, self.base.terminal)
        return mdp if self.horizon is None else mdp.unroll(self.horizon)

    @cached_property
    def dense(self) -> Dense:
        return self.base if self.horizon is None else self.base.unrolled(self.horizon)

    def lift(self, table: Floats) -> Floats:
        """A table per base state as a table per state (theory F1)."""
        return table if self.horizon is None else np.tile(table, (self.horizon + 1,) + (1,) * (table.ndim - 1))

    def pair_features(self, k: int = 3, seed: int = 0) -> Floats:
        return np.random.default_rng([seed, 1]).uniform(0.5, 1.5, (*self.base.shape, k))

    def state_features(self, k: int = 3, seed: int = 0) -> Floats:
        return np.random.default_rng([seed, 2]).uniform(0.5, 1.5, (self.base.shape[0], k))

    def theta(self, k: int = 3, seed: int = 0) -> Floats:
        """Weights that make every reward at most −0.5·0.8·3 = −1.2 < −log 3 for three features and actions."""
        return np.random.default_rng([seed, 3]).uniform(-1.6, -0.8, k)

    def reward(self, seed: int = 0) -> Floats:
        """A reward table (S, A), below −log|A| everywhere."""
        return self.lift(np.random.default_rng([seed, 4]).uniform(-3.0, -1.2, self.base.shape))

    def policy(self, seed: int = 0) -> Floats:
        """A policy (S, A) that takes every feasible action, with probabilities far from uniform."""
        weights = np.exp(np.random.default_rng([seed, 5]).normal(0.0, 1.5, self.dense.shape)) * self.dense.feasible
        return weights / np.where(self.dense.terminal, 1.0, weights.sum(axis=1))[:, None]

    def counts(self, seed: int = 0) -> Floats:
        """Random visits (S, A), some of them zero; none where a decision is impossible."""
        return np.random.default_rng([seed, 6]).poisson(2.0, self.dense.shape).astype(np.float64) * self.dense.feasible

    def simulate(self, policy: Floats, n: int, length: int = 12, seed: int = 0) -> rv.Demonstrations:
        """Trajectories under a policy of `mdp`; those of an unrolled problem are told in states of its base."""
        demos = rv.simulate(self.mdp, policy, n, length, seed)
        if self.horizon is None:
            return demos
        assert demos.steps is not None
        S, A = self.base.shape
        ends = np.flatnonzero(np.diff(demos.steps.agent, prepend=-1, append=-1))
        path = demos.steps.state % S
        pairs = [(path[i:j], demos.steps.action[i:j]) for i, j in pairwise(ends)]
        return rv.Demonstrations.from_trajectories(pairs, S, A)

    def pair_table(self) -> rv.LinearReward:
        """A reward with one weight for every pair (s, a) of `mdp`: its gradient in θ is ∂g/∂r (theory G3)."""
        S, A = self.dense.shape
        return rv.LinearReward(sp.eye_array(S * A, format="csr"), n_actions=A)


def make_problem(
    kind: str,
    seed: int = 0,
    n_states: int = 8,
    n_actions: int = 3,
    gamma: float | None = None,
    branch: int = 3,
    horizon: int = 4,
) -> Problem:
    """A random sparse MDP of the kind. Where there is an end, one action in each state may lead one state closer."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    S, A = n_states, n_actions
    T = np.zeros((S, A, S))
    for s, a in np.ndindex(S, A):
        T[s, a, rng.choice(S, size=min(branch, S), replace=False)] = rng.dirichlet(np.ones(min(branch, S)))
    terminal = np.zeros(S, dtype=bool)
    allowed = np.ones((S, A), dtype=bool)
    way_out = rng.integers(A, size=S)
    if kind in ("masked", "unrolled"):
        allowed = rng.random((S, A)) < 0.7
        allowed[np.arange(S), way_out] = True
    if kind in ("undiscounted", "masked") or (kind == "unrolled" and seed % 2 == 0):
        terminal[-1] = True
        here = np.arange(S - 1)
        T[here, way_out[:-1]] *= 0.6
        T[here, way_out[:-1], here + 1] += 0.4
    initial = rng.dirichlet(np.ones(S)) * ~terminal
    base = Dense(T, GAMMA[kind] if gamma is None else gamma, allowed, terminal, initial / initial.sum())
    return Problem(kind, base, horizon if kind == "unrolled" else None)


@lru_cache
def problem(kind: str) -> Problem:
    """The zoo's own animal of each kind: eight states, three actions."""
    return make_problem(kind)


def deterministic_problem(seed: int, n_states: int, n_actions: int, gamma: float) -> Problem:
    """Every action leads to one state; the last state is terminal and can be reached from everywhere."""
    rng = np.random.default_rng([seed, 7])
    target = rng.integers(n_states, size=(n_states, n_actions))
    target[:-1, 0] = np.arange(1, n_states)
    T = np.eye(n_states)[target]
    terminal = np.arange(n_states) == n_states - 1
    initial = ~terminal / (n_states - 1.0)
    return Problem("deterministic", Dense(T, gamma, np.ones((n_states, n_actions), dtype=bool), terminal, initial))


@st.composite
def problems(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> Problem:
    """Random sparse MDPs of up to nine base states and three actions, of any kind, γ anywhere from 0 to 1."""
    kind = draw(st.sampled_from(kinds))
    gamma = 1.0
    if kind != "undiscounted":
        gamma = draw(st.sampled_from([0.0, 0.3, 0.9, 0.99] + ([1.0] if kind == "unrolled" else [])))
    return make_problem(
        kind,
        seed=draw(seeds),
        n_states=draw(st.integers(2, 9)),
        n_actions=draw(st.integers(1, 3)),
        gamma=gamma,
        branch=draw(st.integers(1, 4)),
        horizon=draw(st.integers(1, 4)),
    )


seeds: Any = st.integers(0, 10_000)
