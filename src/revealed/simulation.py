"""Draw trajectories from a policy, all agents at once: for tests, Monte Carlo and `fit.simulate`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from revealed.chain import as_policy
from revealed.checks import is_seed, require_count
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidInput
from revealed.gates import require_memory
from revealed.mdp import MDP, Floats, require_mdp
from revealed.voices import named, shown


def simulate(
    mdp: MDP, policy: Any, n: int, length: int, seed: int | None = None, initial: Any = None
) -> Demonstrations:
    """`n` trajectories of at most `length` decisions under an (S, A) policy; each ends where it meets a terminal state.

    Starts are drawn from `initial`, else from the MDP's start distribution, else uniformly from the states that are not
    terminal (of the first layer, on a horizon). The last state is kept, so that the demonstrations know where the last
    decision led.
    """
    require_mdp(mdp)
    require_count("n", n)
    require_count("length", length)
    require_memory(f"{named('n')}, {named('length')}", (n, length), 4 * int(n) * (int(length) + 1))
    policy = as_policy(mdp, policy)
    rng = make_rng(seed)
    state = rng.choice(mdp.n_states, size=n, p=mdp.start(initial))
    states, actions = np.full((n, length + 1), -1, dtype=np.intp), np.full((n, length), -1, dtype=np.intp)
    states[:, 0] = state
    alive = np.flatnonzero(~mdp.terminal[state])
    for t in range(length):
        if alive.size == 0:
            break
        here = states[alive, t]
        actions[alive, t] = draw_actions(policy[here], rng)
        states[alive, t + 1] = draw_moves(mdp, here * mdp.n_actions + actions[alive, t], rng)
        alive = alive[~mdp.terminal[states[alive, t + 1]]]
    lengths = (actions >= 0).sum(axis=1)
    pairs = [(s[: k + 1], a[:k]) for s, a, k in zip(states, actions, lengths, strict=True)]
    demos = Demonstrations.from_trajectories(pairs, mdp.n_states, mdp.n_actions)
    return replace(demos, state_labels=mdp.state_labels, action_labels=mdp.action_labels)


def make_rng(seed: Any) -> np.random.Generator:
    if not is_seed(seed):
        raise InvalidInput("seed", "None or a whole number >= 0", shown(seed))
    return np.random.default_rng(seed)


def draw_actions(policy: Floats, rng: np.random.Generator) -> Any:
    """One action per row of choice probabilities; those without probability are never drawn, not even by rounding."""
    cumulative = np.cumsum(policy, axis=1)
    u = rng.random(len(cumulative)) * cumulative[:, -1]
    drawn = (u[:, None] >= cumulative).sum(axis=1)
    last = policy.shape[1] - 1 - np.argmax(policy[:, ::-1] > 0.0, axis=1)
    return np.minimum(drawn, last)


def draw_moves(mdp: MDP, pair: Any, rng: np.random.Generator) -> Any:
    """One next state per (s, a) row: a bisection inside each row of the cumulated transition probabilities."""
    matrix = mdp.transitions.matrix
    cumulative = mdp.transitions.cumulative
    low, high = matrix.indptr[pair], matrix.indptr[pair + 1] - 1
    before = np.where(low > 0, cumulative[np.maximum(low, 1) - 1], 0.0)
    target = before + rng.random(len(pair)) * (cumulative[high] - before)
    return matrix.indices[np.clip(np.searchsorted(cumulative, target, side="right"), low, high)]
