"""Two models side by side: states and actions belong together by label where both have labels, else by position.

A fit may be asked about another model. Positions mean something in an order that somebody declared (`labels.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed.checks import Ints
from revealed.labels import require_declared, spell
from revealed.mdp import MDP
from revealed.naming import Labels

SAME = 1e-12  # difference of two probabilities that are one and the same, but for rounding


@dataclass(frozen=True, eq=False)
class Alignment:
    """Where the states (S,) and actions (A,) of a model stand in another: −1 for those that it does not have, None
    where nothing tells, because one of them has no labels and they differ in number."""

    states: Ints | None
    actions: Ints | None

    @property
    def whole(self) -> bool:
        """Whether everything has its place."""
        return all(places is not None and (places >= 0).all() for places in (self.states, self.actions))

    @property
    def in_order(self) -> bool:
        """Whether everything stands where it stood."""
        return all(x is not None and np.array_equal(x, np.arange(x.size)) for x in (self.states, self.actions))

    def table(self, values: Any) -> Any:
        """(S, A) values of the other model in the order of this one; `whole` was asked before."""
        return values if self.in_order else values[self.states][:, self.actions]


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
    known = {spell(label): k for k, label in enumerate(own)}
    return np.array([known.get(spell(label), -1) for label in labels], dtype=np.intp)


def same_model(mdp: MDP, own: MDP) -> Alignment | None:
    """Where everything stands in `own` if the two are one model, whatever the order of its labels; else None. Where
    agents start does not matter: behaviour is the same."""
    if mdp.feasible.shape != own.feasible.shape or mdp.discount != own.discount:
        return None
    found = align_models(mdp, own)
    if not found.whole:
        return None
    same = np.array_equal(mdp.terminal, own.terminal[found.states])
    same = same and np.array_equal(mdp.feasible, found.table(own.feasible))
    return found if same and _same_moves(mdp, own, found) else None


def _same_moves(mdp: MDP, own: MDP, found: Alignment) -> bool:
    states, actions = found.states, found.actions
    assert states is not None
    assert actions is not None
    if found.in_order and mdp.transitions is own.transitions:
        return True
    matrix: Any = own.transitions.matrix
    if not found.in_order:
        matrix = matrix[(states[:, None] * actions.size + actions).reshape(-1)][:, states]
    apart: Any = abs(matrix - mdp.transitions.matrix)
    return apart.nnz == 0 or float(apart.max()) <= SAME
