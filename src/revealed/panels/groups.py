"""A panel as counts by group: what every engine that counts a panel hands over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats, Ints
from revealed.labels import plain
from revealed.panels.columns import varies
from revealed.tables import sparse_table

# what the short names of columns stand for, wherever a panel is counted
ROLES = {"i": "id", "t": "time", "s": "state", "a": "action", "n": "next_state", "z": "next_state", "w": "weight"}
ROLES |= {"k": "keep", "e": "episode"}


@dataclass(frozen=True)
class Coding:
    """How values become indices: `codes` has the index of each rank among the distinct values, None where values are
    indices already; `ranked` is a query that has the ranks."""

    labels: tuple[Any, ...] | None
    codes: Ints | None
    ranked: str | None = None

    def index(self, ranks: Any) -> Ints:
        return ranks if self.codes is None else self.codes[ranks]


@dataclass(frozen=True)
class Groups:
    """Each has an array per index, and how often: decisions by agent, state and action; starts by agent and state;
    moves by state, action and next state."""

    decisions: tuple[Ints, Ints, Ints, Floats]
    starts: tuple[Ints, Ints, Floats]
    moves: tuple[Ints, Ints, Ints, Floats]


@dataclass(frozen=True)
class Counted:
    """A panel as counts."""

    groups: Groups
    ids: tuple[Any, ...]
    state: Coding
    action: Coding
    notes: tuple[str, ...]
    columns: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def state_labels(self) -> tuple[Any, ...] | None:
        return self.state.labels

    @property
    def action_labels(self) -> tuple[Any, ...] | None:
        return self.action.labels

    @property
    def n_states(self) -> int:
        """States that the rows show."""
        return max(int(self.groups.decisions[1].max()), int(np.max(self.groups.moves[2], initial=-1))) + 1

    @property
    def n_actions(self) -> int:
        return int(self.groups.decisions[2].max()) + 1

    def by_agent(self, n_states: int, n_actions: int) -> sp.csr_array:
        """Sparse (N, S*A)."""
        agent, state, action, often = self.groups.decisions
        return sparse_table(often, agent, _pair(state, action, n_actions), (len(self.ids), n_states * n_actions))

    def starts_by_agent(self, n_states: int) -> sp.csr_array:
        """Sparse (N, S)."""
        agent, state, often = self.groups.starts
        return sparse_table(often, agent, state, (len(self.ids), n_states))

    def moves(self, n_states: int, n_actions: int) -> sp.csr_array:
        """Sparse (S*A, S)."""
        state, action, after, often = self.groups.moves
        return sparse_table(often, _pair(state, action, n_actions), after, (n_states * n_actions, n_states))


def one_each(name: str, ids: Any, of: Any, values: Any) -> tuple[Any, ...]:
    """The value of a column to be kept for each of the ids, from its distinct pairs (id, value), each once."""
    order = np.argsort(of, kind="stable")
    of, values = of[order], values[order]
    again = np.flatnonzero(of[1:] == of[:-1])
    if again.size:
        i = int(again[0])
        raise varies(name, plain(of[i]), plain(values[i]), plain(values[i + 1]), None)
    return tuple(values[np.searchsorted(of, ids)].tolist())


def _pair(state: Any, action: Any, n_actions: int) -> Any:
    return np.asarray(state, dtype=np.int64) * n_actions + action
