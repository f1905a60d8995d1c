"""Two models, or a table and a model, side by side: what belongs together by label, else by position.

A fit may be asked about another model, and tables may come with names in their index. Where both sides have labels
they are matched by them; numbers stand for positions where one side has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed.checks import Ints, as_floats
from revealed.errors import InvalidInput, InvalidReward
from revealed.labels import near, plain, spell
from revealed.mdp import MDP
from revealed.naming import Labels, action_index, state_index

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
    return Alignment(
        _places(mdp.state_labels, own.state_labels, mdp.n_states, own.n_states),
        _places(mdp.action_labels, own.action_labels, mdp.n_actions, own.n_actions),
    )


def _places(labels: Labels, own: Labels, n: int, n_own: int) -> Ints | None:
    if labels is None or own is None:
        return np.arange(n) if n == n_own else None
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


def by_label(mdp: MDP, table: Any, name: str, error: type[InvalidInput] = InvalidReward) -> Any:
    """A pandas frame (a row per state, a column per action) or series (a number per state) as an array in the order of
    the model; anything else as it is. An index 0, 1, 2, … says nothing but an order."""
    if not (hasattr(table, "index") and hasattr(table, "to_numpy")) or np.ndim(table) not in (1, 2):
        return table
    values = as_floats(table.to_numpy())
    if values is None:
        return table
    values = values[_rows(list(table.index), list(state_index(mdp)), name, "state", error)]
    columns = getattr(table, "columns", None)
    if columns is None or (values.shape[1] == 1 and mdp.n_actions > 1):
        return values
    return values[:, _rows(list(columns), list(action_index(mdp)), name, "action", error)]


def _rows(keys: Sequence[Any], known: Sequence[Any], name: str, what: str, error: type[InvalidInput]) -> Ints:
    """The row of each state (or column of each action) of the model."""
    place = {spell(plain(key)): k for k, key in enumerate(keys)}
    wanted = [spell(label) for label in known]
    if len(keys) == len(known) and [plain(key) for key in keys] == list(range(len(keys))) and set(place) != set(wanted):
        return np.arange(len(keys))
    lost = next((k for k, label in enumerate(wanted) if label not in place), None)
    if lost is not None or len(place) != len(wanted) or len(keys) != len(place):
        expected = f"the {len(known)} labels of the model's {what}s, each once"
        where = None if lost is None else f"none for {what} {plain(known[lost])!r}"
        remedy = None if lost is None else near(known[lost], keys)
        raise error(name, expected, f"{len(keys)} labels", where, remedy)
    return np.array([place[label] for label in wanted], dtype=np.intp)
