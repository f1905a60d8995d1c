"""Garnet: random sparse MDPs (Archibald et al. 1995), for tests and for measuring how work grows with size."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import as_number, is_count, require_count
from revealed.environments.world import World, check_scale, make_expert
from revealed.errors import InvalidInput
from revealed.gates import require_memory, within_memory
from revealed.mdp import MDP
from revealed.simulation import make_rng
from revealed.voices import shown


@within_memory("n_states", "n_actions", "branching", "n_features")
def garnet(
    n_states: int = 100,
    n_actions: int = 4,
    branching: int = 3,
    seed: int = 0,
    discount: float = 0.95,
    scale: float = 2.0,
    n_features: int = 4,
    reach: int | None = None,
    expert: str = "soft",
    noise: float = 0.3,
) -> World:
    """Each pair (s, a) leads to `branching` different states with random probabilities (uniform on the simplex).

    Successors are drawn from all states or, with `reach`, from the 2·reach + 1 nearest on a ring, which leaves a
    locality that factorisations can use. Features are standard normal, (S, K); the true weights have length `scale`.
    """
    counts = {"n_states": n_states, "n_actions": n_actions, "branching": branching, "n_features": n_features}
    for name, value in counts.items():
        require_count(name, value)
    S, A, b, K = (int(n) for n in counts.values())
    require_memory("n_states, n_actions, branching, n_features", (S, A, b, K), S * (4 * A * min(b, S) + K))
    rng = make_rng(seed)
    T = _transitions(n_states, n_actions, branching, _window(n_states, branching, reach), rng)
    features = rng.normal(size=(n_states, n_features))
    direction = rng.normal(size=n_features)
    weights = check_scale(scale) * direction / np.linalg.norm(direction)
    mdp = MDP(T, discount, np.full(n_states, 1.0 / n_states))
    true_reward = np.repeat((features @ weights)[:, None], n_actions, axis=1)
    return World(
        name="Garnet",
        mdp=mdp,
        features=features,
        true_reward=true_reward,
        expert=make_expert(mdp, true_reward, expert, noise),
        true_weights=weights,
    )


def _window(n_states: int, branching: int, reach: Any) -> int:
    """How many states a pair may lead to."""
    if reach is not None and (not is_count(reach) or as_number(reach) > n_states):
        raise InvalidInput("reach", "None or a whole number in 1…n_states", shown(reach))
    window = n_states if reach is None else min(n_states, 2 * int(reach) + 1)
    if branching > window:
        raise InvalidInput("branching", f"at most {window}, the states that a pair may lead to", branching)
    return window


def _transitions(S: int, A: int, branching: int, window: int, rng: np.random.Generator) -> sp.csr_array:
    offset = _distinct(S * A, branching, window, rng)
    origin = 0 if window == S else np.repeat(np.arange(S), A)[:, None] - window // 2
    successors = (origin + offset) % S
    starts = np.arange(0, S * A * branching + 1, branching)
    p = rng.dirichlet(np.ones(branching), size=S * A)
    matrix = sp.csr_array((p.reshape(-1), successors.reshape(-1), starts), shape=(S * A, S))
    matrix.sort_indices()
    return matrix


def _distinct(rows: int, k: int, n: int, rng: np.random.Generator) -> Any:
    """(rows, k) numbers below n, different within each row and every set alike: Floyd's algorithm, all rows at once."""
    drawn = np.empty((rows, k), dtype=np.int64)
    for i, last in enumerate(range(n - k, n)):
        new = rng.integers(last + 1, size=rows)
        seen = (drawn[:, :i] == new[:, None]).any(axis=1)
        drawn[:, i] = np.where(seen, last, new)
    return drawn
