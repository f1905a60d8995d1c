"""Two models side by side: states and actions belong together by label where both have labels, else by position.

A fit may be asked about another model. Positions mean something in an order that somebody declared (`labels.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed.checks import Ints
from revealed.labels import locate, require_declared
from revealed.mdp import MDP
from revealed.naming import Labels
from revealed.positions import AXES, same_labels

SAME = 1e-12  # relative difference of probabilities that is rounding


@dataclass(frozen=True, eq=False)
class Alignment:
    """Where the states (S,) and actions (A,) of a model stand in another: −1 for those that it does not have, None
    where nothing tells, because one of them has no labels and they differ in number."""

    states: Ints | None
    actions: Ints | None


def align_models(mdp: MDP, own: MDP) -> Alignment:
    """Where the states and actions of `mdp` stand in the model `own`."""
    if mdp.transitions is own.transitions:  # the same model, of which one side may not know its labels
        return Alignment(np.arange(mdp.n_states), np.arange(mdp.n_actions))
    return Alignment(
        _places("state", mdp.state_labels, own.state_labels, mdp.n_states, own.n_states),
        _places("action", mdp.action_labels, own.action_labels, mdp.n_actions, own.n_actions),
    )


def _places(role: str, labels: Labels, own: Labels, n: int, n_own: int) -> Ints | None:
    if labels is None or own is None:
        if n != n_own:
            return None
        for known in (labels, own):
            require_declared("mdp", role, known, f"{role}s of another model by position")
        return np.arange(n)
    return locate(labels, own)


def same_model(mdp: MDP, own: MDP) -> bool:
    """Whether the two are one model, whatever the order of its labels. Where agents start does not matter: they behave
    alike."""
    if mdp.feasible.shape != own.feasible.shape or mdp.discount != own.discount:
        return False
    model = mdp.in_order_of(own)
    if not all(same_labels(*(getattr(one, f"{role}_labels") for one in (model, own))) for role in AXES):
        return False
    return np.array_equal(model.terminal, own.terminal) and same_moves(model, own)


def same_turns(mdp: MDP, own: MDP) -> bool:
    """Whether two models without names of actions are one, whatever the order of its states: the same moves lead from
    each state, numbered by the order of the states, as the turns at the end of a link are."""
    if mdp.feasible.shape != own.feasible.shape or not (mdp.certain and own.certain) or mdp.discount != own.discount:
        return False
    model = mdp.in_order_of(own)
    if not same_labels(model.state_labels, own.state_labels) or not np.array_equal(model.terminal, own.terminal):
        return False
    return mdp.action_labels is None and np.array_equal(_leads(model), _leads(own))


def _leads(mdp: MDP) -> Ints:
    """(S, A): the states that a certain model's actions lead to, sorted in each state; −1 for what is not offered."""
    return np.sort(np.where(mdp.feasible, mdp.targets, -1), axis=1)


def same_moves(one: MDP, other: MDP) -> bool:
    """Whether two models offer the same actions with the same probabilities of what follows."""
    if not np.array_equal(one.feasible, other.feasible):
        return False
    return same_matrix(one.transitions.matrix, other.transitions.matrix)


def same_matrix(one: Any, other: Any) -> bool:
    """Whether two sparse matrices hold the same numbers, but for rounding."""
    if one is other:
        return True
    if one.shape != other.shape or one.nnz != other.nnz:
        return False
    same = np.array_equal(one.indptr, other.indptr) and np.array_equal(one.indices, other.indices)
    return bool(same and np.allclose(one.data, other.data, rtol=SAME, atol=0.0))
