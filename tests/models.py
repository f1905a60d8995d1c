"""Small models for the unit tests, and the same quantities computed densely, by other means than the library's."""

from typing import Any

import numpy as np
import scipy.sparse as sp

import revealed as rv
from revealed.mdp import Floats

CASES = {  # of `random_mdp`, for optima
    "discounted": {"discount": 0.9},
    "near one": {"discount": 0.999},
    "masked": {"discount": 0.95, "masked": True},
    "ends": {"discount": 0.95, "masked": True, "terminal": 2},
    "myopic": {"discount": 0.0},
    "undiscounted": {"discount": 1.0, "terminal": 2},
}


def random_mdp(
    S: int = 12,
    A: int = 3,
    discount: float = 0.9,
    seed: int = 0,
    *,
    terminal: int = 0,
    masked: bool = False,
    branching: int = 3,
    initial: bool = False,
) -> rv.MDP:
    """A random sparse MDP. The last `terminal` states end; every state can then reach them by its last action."""
    rng = np.random.default_rng(seed)
    T = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            T[s, a, rng.choice(S, size=branching, replace=False)] = rng.dirichlet(np.ones(branching))
    if terminal:
        T[:, A - 1] *= 0.5
        T[:, A - 1, S - 1] += 0.5
    feasible = np.ones((S, A), dtype=bool)
    if masked:
        feasible = rng.random((S, A)) < 0.7
        feasible[:, A - 1] = True
    return rv.MDP(
        T,
        discount=discount,
        feasible=feasible,
        terminal=np.arange(S) >= S - terminal if terminal else None,
        initial=np.full(S, 1.0 / S) if initial else None,
    )


def random_policy(mdp: rv.MDP, seed: int = 0) -> Floats:
    """Every feasible action has some probability; zero rows in terminal states."""
    weight = np.random.default_rng(seed).gamma(1.0, size=mdp.feasible.shape) * mdp.feasible + 0.05 * mdp.feasible
    return weight / np.where(mdp.terminal[:, None], 1.0, weight.sum(axis=1, keepdims=True))


def random_reward(mdp: rv.MDP, seed: int = 0, scale: float = 1.0, shift: float = 0.0) -> Floats:
    return scale * np.random.default_rng(seed).normal(size=mdp.feasible.shape) + shift


def dense(mdp: rv.MDP) -> Floats:
    """T as an (S, A, S) array."""
    return mdp.transitions.matrix.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)


def dense_matrix(mdp: rv.MDP, policy: Floats) -> Floats:
    """I − γT^π."""
    return np.eye(mdp.n_states) - mdp.discount * np.einsum("sa,sat->st", policy, dense(mdp))


def soft_value_iteration(mdp: rv.MDP, reward: Floats, sweeps: int = 200_000) -> Floats:
    """V ← log Σ_a exp(r + γTV) until nothing moves, with a plain loop over states' feasible actions."""
    T, V = dense(mdp), np.zeros(mdp.n_states)
    for _ in range(sweeps):
        Q = np.where(mdp.feasible, reward + mdp.discount * T @ V, -np.inf)
        new = np.where(mdp.terminal, 0.0, np.logaddexp.reduce(Q, axis=1))
        if np.abs(new - V).max() <= 1e-15 * np.abs(new).max():
            return new
        V = new
    return V


def hard_value_iteration(mdp: rv.MDP, reward: Floats, sweeps: int = 200_000) -> Floats:
    T, V = dense(mdp), np.zeros(mdp.n_states)
    for _ in range(sweeps):
        Q = np.where(mdp.feasible, reward + mdp.discount * T @ V, -np.inf)
        new = np.where(mdp.terminal, 0.0, Q.max(axis=1))
        if np.abs(new - V).max() <= 1e-15 * np.abs(new).max():
            return new
        V = new
    return V


def loop(discount: float = 1.0) -> rv.MDP:
    """State 0 stays (action 0) or ends (action 1) in the terminal state 1: exp V = e^a exp(γV) + e^b."""
    T = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    return rv.MDP(T, discount=discount, terminal=[False, True])


def loop_and_aside() -> rv.MDP:
    """The loop of `loop(1.0)`, and beside it a state 1 that ends whatever it does: its rewards concern nobody else."""
    T = np.zeros((3, 2, 3))
    T[0, 0, 0] = T[0, 1, 2] = 1.0
    T[1, :, 2] = T[2, :, 2] = 1.0
    return rv.MDP(T, discount=1.0, terminal=[False, False, True])


def shuffled(S: int, A: int = 2, discount: float = 0.5) -> rv.MDP:
    """Every action leads to a state drawn evenly: choices depend on today's features alone, as in a plain logit."""
    return rv.MDP(np.full((S, A, S), 1.0 / S), discount=discount)


def corridor(n: int, discount: float = 0.9, end: bool = False) -> rv.MDP:
    """Action 0 goes left, action 1 right, off the ends it stays; with `end` the last state is terminal."""
    left, right = np.maximum(np.arange(n) - 1, 0), np.minimum(np.arange(n) + 1, n - 1)
    T = np.zeros((n, 2, n))
    T[np.arange(n), 0, left] = 1.0
    T[np.arange(n), 1, right] = 1.0
    return rv.MDP(T, discount=discount, terminal=(np.arange(n) == n - 1) if end else None)


def bus(bins: int, discount: float = 0.99) -> rv.MDP:
    """Keep (0, 1 or 2 bins further) or replace (the same from bin 0): every state is two moves from a hub."""
    steps = np.array([0.3, 0.6, 0.1])
    rows, columns, p = [], [], []
    for k, weight in enumerate(steps):
        for action, origin in ((0, np.arange(bins)), (1, np.zeros(bins, dtype=int))):
            rows.append(np.arange(bins) * 2 + action)
            columns.append(np.minimum(origin + k, bins - 1))
            p.append(np.full(bins, weight))
    where = (np.concatenate(rows), np.concatenate(columns))
    return rv.MDP(sp.coo_array((np.concatenate(p), where), shape=(bins * 2, bins)), discount=discount)


def random_graph(S: int, A: int = 2, branching: int = 3, discount: float = 0.95, seed: int = 0) -> rv.MDP:
    """Each pair leads to `branching` states drawn from all: no locality whatever."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(S * A), branching)
    p = rng.dirichlet(np.ones(branching), size=S * A).reshape(-1)
    matrix = sp.coo_array((p, (rows, rng.integers(S, size=rows.size))), shape=(S * A, S))
    return rv.MDP(sp.csr_array(matrix), discount=discount)


def draw(mdp: rv.MDP, reward: Floats, n: int = 200, length: int = 20, seed: int = 0) -> rv.Demonstrations:
    """Demonstrations of an agent that behaves optimally for `reward`."""
    return rv.simulate(mdp, rv.solve(mdp, reward).policy, n, length, seed)


def counts(table: Any) -> rv.Demonstrations:
    return rv.Demonstrations.from_counts(np.asarray(table, dtype=np.float64))
