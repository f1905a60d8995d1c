"""Small models of one shape, each on the host and placed: what JAX compiled for one of them serves the others.

Sixteen states, three actions, three successors: states on a ring, of which the last four are terminal, with masks; the
same where nothing is discounted; and a ring of four states over three decisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import scipy.sparse as sp

import revealed as rv
from revealed.checks import Floats

KINDS = ("discounted", "undiscounted", "unrolled")
N_STATES, N_ACTIONS = 16, 3


@dataclass(frozen=True, eq=False)
class Ring:
    """A model, its twin on the device, features of pairs and states, and decisions of those who follow `theta`."""

    mdp: rv.MDP

    @cached_property
    def placed(self) -> rv.MDP:
        return self.mdp.to("cpu", devices=1)

    @cached_property
    def pairs(self) -> Floats:
        return np.random.default_rng(1).uniform(0.5, 1.5, ((self.mdp.base or self.mdp).n_states, N_ACTIONS, 3))

    @cached_property
    def states(self) -> Floats:
        return np.random.default_rng(2).uniform(0.5, 1.5, ((self.mdp.base or self.mdp).n_states, 3))

    @property
    def theta(self) -> Floats:
        """It makes every reward at most −1.2 < −log 3, so that values exist where nothing is discounted."""
        return np.array([-1.5, -0.9, -1.2])

    @cached_property
    def policy(self) -> Floats:
        """One that takes every feasible action, with probabilities far from even."""
        weights = np.exp(np.random.default_rng(3).normal(0.0, 1.0, self.mdp.feasible.shape)) * self.mdp.feasible
        return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)

    @cached_property
    def counts(self) -> Floats:
        """Visits of every state that goes on; some pairs have none."""
        drawn = np.random.default_rng(4).poisson(2.0, self.mdp.feasible.shape).astype(np.float64)
        drawn[np.arange(N_STATES), self.mdp.feasible.argmax(axis=1)] += 1.0
        return drawn * self.mdp.feasible

    @cached_property
    def demos(self) -> rv.Demonstrations:
        """Decisions of forty agents from everywhere, of a model without a horizon."""
        best = rv.solve(self.mdp, self.pairs @ self.theta).policy
        return rv.simulate(self.mdp, best, 40, 8, seed=0)

    @property
    def seen(self) -> rv.Demonstrations:
        return rv.Demonstrations.from_counts(self.counts) if self.mdp.base is not None else self.demos


@lru_cache
def ring(kind: str) -> Ring:
    if kind == "unrolled":
        return Ring(_moves(4, 1.0, ends=False).unroll(3))
    return Ring(_moves(N_STATES, 0.95 if kind == "discounted" else 1.0, ends=True))


def _moves(S: int, gamma: float, ends: bool) -> rv.MDP:
    """On a ring: each action stays or goes on either way, with probabilities of its own."""
    rng = np.random.default_rng(0)
    here = np.arange(S)
    p = rng.dirichlet(np.ones(3), (S, N_ACTIONS))
    to = np.stack([here, (here + 1) % S, (here - 1) % S], axis=1)
    rows = np.repeat(np.arange(S * N_ACTIONS), 3)
    columns = np.repeat(to[:, None], N_ACTIONS, axis=1).reshape(-1)
    T = sp.csr_array((p.reshape(-1), (rows, columns)), shape=(S * N_ACTIONS, S))
    feasible = rng.random((S, N_ACTIONS)) < 0.7
    feasible[:, 0] = True
    return rv.MDP(T, gamma, feasible=feasible, terminal=here >= S - 4 if ends else None)
