"""Gymnasium's tabular environments as worlds whose true reward is known (theory M1).

The rewards that Gymnasium pays depend on what happens next; a decision is judged by their expectation, which is linear
in the probabilities of being paid each amount. With few amounts these probabilities are the features and the amounts
the weights to recover: FrozenLake has one, CliffWalking and Taxi a few.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import require_count
from revealed.environments.world import GridWorld, World, check_scale, make_expert
from revealed.gymnasium_table import Table, read_table
from revealed.mdp import MDP, Floats

MOST_AMOUNTS = 20  # beyond this, amounts are not a description of the task but a continuum


def from_gymnasium(
    env: Any,
    discount: float,
    scale: float = 1.0,
    expert: str = "noisy",
    noise: float = 0.1,
    length: int = 100,
    masks: bool = True,
) -> World:
    """The world of a Gymnasium environment with a table `env.unwrapped.P`; a `GridWorld` for FrozenLake, CliffWalking.

    The true reward is `scale` times the expected reward of the table. Features are the probabilities of being paid
    each amount other than 0, with `true_weights` the amounts times `scale`; where there are more than 20 amounts, or
    none, they are one indicator per state, and `true_weights` is None.

    By default the expert is "noisy": the shocks of a soft expert have scale 1, next to which a reward of 1 for ending
    an episode is small, so that it would rather move on for the entropy than end. For `expert="soft"` raise `scale`, to
    20 or so in FrozenLake. `masks=False` ignores action masks; see `MDP.from_gymnasium`.
    """
    scale = check_scale(scale)
    require_count("length", length)
    table = read_table(env, masks)
    mdp = MDP(**table.model(), discount=discount)
    described = _describe(table, mdp, scale)
    world = World(
        name=table.name,
        mdp=mdp,
        expert=make_expert(mdp, described["true_reward"], expert, noise),
        length=int(length),
        **described,
    )
    return world if table.shape is None else _on_grid(world, table.shape)


def _describe(table: Table, mdp: MDP, scale: float) -> dict[str, Any]:
    """Features, their names, true weights and true reward; where there are weights, the reward is exactly linear."""
    amounts = _amounts(table, mdp)
    if not 1 <= amounts.size <= MOST_AMOUNTS:
        reward = np.where(mdp.feasible, scale * table.reward, 0.0)
        return {"features": sp.eye_array(mdp.n_states, format="csr"), "true_reward": reward}
    features, weights = _chances(table, mdp, amounts), scale * amounts
    return {
        "features": features,
        "feature_names": _names(amounts),
        "true_weights": weights,
        "true_reward": features @ weights,
    }


def _amounts(table: Table, mdp: MDP) -> Floats:
    """The distinct rewards other than 0 that feasible pairs can bring, in ascending order."""
    o = table.outcomes
    paid = np.unique(o.reward[mdp.feasible[o.state, o.action]])
    return paid[paid != 0.0]


def _chances(table: Table, mdp: MDP, amounts: Floats) -> Floats:
    """(S, A, K): the probability that a pair is paid the k-th amount; zero for pairs that are not feasible."""
    o = table.outcomes
    paid = mdp.feasible[o.state, o.action] & (o.reward != 0.0)
    chances = np.zeros((*mdp.feasible.shape, amounts.size))
    np.add.at(chances, (o.state[paid], o.action[paid], np.searchsorted(amounts, o.reward[paid])), o.p[paid])
    return chances


def _names(amounts: Floats) -> tuple[str, ...]:
    """As short as tells them apart."""
    short = tuple(f"reward {amount:g}" for amount in amounts)
    return short if len(set(short)) == len(short) else tuple(f"reward {float(amount)!r}" for amount in amounts)


def _on_grid(world: World, shape: tuple[int, int]) -> GridWorld:
    return GridWorld(**{part.name: getattr(world, part.name) for part in fields(world)}, shape=shape)
