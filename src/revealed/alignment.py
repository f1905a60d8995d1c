"""Two models side by side: states and actions belong together by label where both have labels, else by position.

A fit may be asked about another model. Positions mean something in an order that somebody declared (`labels.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed.checks import Ints
from revealed.labels import label_it, locate, require_declared
from revealed.mdp import MDP
from revealed.naming import Labels
from revealed.positions import AXES, own_numbers, reordering, same_labels

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
    labels, own = labels or own_numbers(own), own or own_numbers(labels)
    if labels is None or own is None:
        if n != n_own:
            return None
        for known in (labels, own):
            require_declared("mdp", role, known, f"a model without {role} labels", instead=label_it(role))
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


def own_turns(mdp: MDP, own: MDP) -> Ints | None:
    """(S, A): the pairs of `own` that the pairs of a model are, where the two are one model, whatever the order of its
    states: actions without names, as the turns at the end of a link, are known by the state that they lead to. −1 for
    what is not offered; None where it is another model, or where two actions lead to one state."""
    if mdp.feasible.shape != own.feasible.shape or not (mdp.certain and own.certain) or mdp.discount != own.discount:
        return None
    labels = mdp.state_labels, own.state_labels
    place = np.arange(mdp.n_states) if same_labels(*labels) else reordering(labels[1], labels[0])
    if place is None or mdp.action_labels is not None or not np.array_equal(mdp.terminal, own.terminal[place]):
        return None
    leads, theirs = (np.where(one.feasible, one.targets, -1) for one in (mdp, own))
    leads = np.where(leads < 0, -1, place[leads])
    order, others = np.argsort(leads, axis=1, kind="stable"), np.argsort(theirs, axis=1, kind="stable")[place]
    sorted_ = np.take_along_axis(leads, order, axis=1)
    twice = (sorted_[:, 1:] == sorted_[:, :-1]) & (sorted_[:, 1:] >= 0)
    if twice.any() or not np.array_equal(sorted_, np.take_along_axis(theirs[place], others, axis=1)):
        return None
    pairs = np.full(leads.shape, -1)
    np.put_along_axis(pairs, order, place[:, None] * own.n_actions + others, axis=1)
    return np.where(mdp.feasible, pairs, -1)


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
