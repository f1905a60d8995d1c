"""An estimated reward on another model: train here, use it there.

A reward model at θ has a value for every pair of its own model, offered or not. Another model takes it over by label,
where both have labels, else by position.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed.alignment import align_models
from revealed.checks import Floats, Ints
from revealed.errors import InvalidReward
from revealed.labels import how_many, sizes_in_words
from revealed.mdp import MDP, require_mdp
from revealed.naming import pair_in_words
from revealed.positions import labelled
from revealed.rewards.base import Reward, align_reward, lift_reward, of_trips, reward_table


def reward_on(reward: Reward, theta: Floats, own: MDP, mdp: MDP) -> Floats:
    """(S, A): the reward of the model `own` at θ, on `mdp`. It needs a value for every pair that `mdp` offers, and is
    NaN elsewhere where it has none."""
    require_mdp(mdp)
    if of_trips(reward):
        rule = "cannot be used on another model: its reward depends on the trip (link sizes)"
        raise InvalidReward.conflict("fit", rule, remedy="Use fit.reward_for(goal, origin), or rv.RouteChoice.")
    if getattr(reward, "leads", None) is not None:  # turns are known by the links that they lead to
        table = reward_table(lift_reward(align_reward(reward, mdp), mdp), theta, mdp)
    else:
        table = _moved(reward, theta, own, mdp)
    _require_values(table, mdp)
    return labelled(table, mdp)


def _moved(reward: Any, theta: Floats, own: MDP, mdp: MDP) -> Floats:
    """By labels of states and actions; on a horizon by those before unrolling, unless rewards depend on time."""
    values = np.asarray(reward.value(theta), dtype=np.float64)
    timed = own.base is not None and len(values) == own.n_states
    source, target = (own, mdp) if timed else (own.base or own, mdp.base or mdp)
    places = align_models(target, source)
    columns = np.zeros(target.n_actions, dtype=np.intp) if values.shape[1] == 1 else places.actions
    if places.states is None or columns is None:
        expected = f"a fit of {sizes_in_words(mdp.n_states, mdp.n_actions)}, as the MDP has"
        remedy = "Give both models labels to match them, or pass an (S, A) array of rewards in the order of the model."
        raise InvalidReward("fit", expected, sizes_in_words(own.n_states, own.n_actions), remedy=remedy)
    table = _picked(values, places.states, columns)
    return table if timed else mdp.lift(table)


def _picked(values: Floats, rows: Ints, columns: Ints) -> Floats:
    """Values of these rows and columns; NaN where one of them is −1, for unknown."""
    known = (rows >= 0)[:, None] & (columns >= 0)
    return np.where(known, values[rows][:, columns], np.nan)


def _require_values(table: Floats, mdp: MDP) -> None:
    lost = np.isnan(table) & mdp.feasible
    if lost.any():
        s, a = (int(i) for i in np.argwhere(lost)[0])
        expected, got = "a reward for every feasible pair of the model", f"none for {how_many(int(lost.sum()), 'pair')}"
        remedy = "Mark them infeasible (feasible=), or pass an (S, A) array of rewards."
        raise InvalidReward("fit", expected, got, pair_in_words(mdp, s, a), remedy)
