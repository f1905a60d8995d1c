"""Draw trajectories from a policy, all agents at once: for tests, Monte Carlo and `fit.simulate`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from revealed.chain import as_policy
from revealed.checks import Ints, is_seed, require_count
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.gates import require_memory, within_memory
from revealed.mdp import MDP, Floats, require_mdp
from revealed.trajectories import Steps
from revealed.voices import named, shown


@within_memory("n", "length")
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
    each = 4 if mdp.terminal.any() else 12  # numbers a decision, at least: where nothing ends none is left out
    require_memory(f"{named('n')}, {named('length')}", (n, length), each * int(n) * (int(length) + 1))
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
    return demonstrations_of(mdp, steps_of_walks(states, actions, np.arange(n)), states[:, 0])


def steps_of_walks(states: Ints, actions: Ints, agents: Ints) -> Steps:
    """The decisions of walks: `states` (n, L + 1) and `actions` (n, L), which are −1 from where a walk has ended."""
    who, when = np.nonzero(actions >= 0)
    before, what, after = states[who, when], actions[who, when], states[who, when + 1]
    return Steps(agents[who], when, before, what, after, when == 0)


def demonstrations_of(mdp: MDP, steps: Steps, starts: Ints) -> Demonstrations:
    """Walks that were drawn as demonstrations; `starts` are where each began, and ids 0, 1, …."""
    if steps.state.size == 0:
        raise InvalidDemonstrations("trajectories", "at least one decision", "trajectories without actions")
    often = np.bincount(starts, minlength=mdp.n_states).astype(np.float64)
    demos = Demonstrations._from_steps(steps, often, mdp.n_states, mdp.n_actions, tuple(range(starts.size)))
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
