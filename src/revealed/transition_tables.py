"""Transitions as a table with a row per (state, action, next state) and its probability, read and written.

A table says which pairs there are: a pair without rows is not feasible, and a state without any is terminal. Every
complaint names the first offending row, counted from 0 as in the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, Floats, Ints, as_list
from revealed.declared_order import declared_orders
from revealed.errors import InvalidInput, InvalidMask, InvalidTransitions
from revealed.frames import Table, read_table
from revealed.gates import require_list, require_text
from revealed.labels import (
    MOST_INDEX,
    Order,
    PartOrders,
    distinct_labels,
    find,
    how_many,
    listed,
    locate,
    near,
    parts_for,
    plain,
    sorted_labels,
)
from revealed.naming import Labels, Names, label_array, pair_in_words, state_in_words
from revealed.positions import in_order, labelled
from revealed.voices import either, shown

if TYPE_CHECKING:
    import pandas as pd

SUM_TOLERANCE = 1e-8

Columns = str | Sequence[str]


@dataclass(frozen=True, eq=False)
class TransitionTable:
    """What an `MDP` needs of a table: `transitions` sparse (S*A, S) and which pairs have rows."""

    transitions: sp.csr_array = field(repr=False)
    listed: Bools = field(repr=False)
    state_labels: Labels
    action_labels: Labels

    def model(self, terminal: Any = None, initial: Any = None) -> dict[str, Any]:
        """The arguments of `MDP` but for the discount."""
        ends = as_terminal(terminal, self.state_labels, len(self.listed)) | ~self.listed.any(axis=1)
        return {
            "transitions": self.transitions,
            "feasible": labelled(self.listed, self),
            "terminal": labelled(ends, self),
            "initial": initial,
            "state_labels": self.state_labels,
            "action_labels": self.action_labels,
        }


def read_transitions(frame: Any, columns: dict[str, Any], states: Any = None, actions: Any = None) -> TransitionTable:
    """The table in a frame or file; `columns` names those of state, action, next_state and probability."""
    table = read_table(frame, error=InvalidTransitions)
    states = _declared(frame, states, columns["state"], columns["next_state"])
    labels, (state, after) = _coded(table, "state", states, columns["state"], columns["next_state"])
    actions = _declared(frame, actions, columns["action"])
    action_labels, (action,) = _coded(table, "action", actions, columns["action"])
    p = _probabilities(table, columns["probability"])
    n_states = len(labels) if labels is not None else int(max(state.max(), after.max())) + 1
    n_actions = len(action_labels) if action_labels is not None else int(action.max()) + 1
    pair = state * n_actions + action
    found = TransitionTable(
        sp.csr_array(sp.coo_array((p, (pair, after)), shape=(n_states * n_actions, n_states))),
        np.bincount(pair, minlength=n_states * n_actions).reshape(n_states, n_actions) > 0,
        labels,
        action_labels,
    )
    _require_once(found, pair, after)
    _require_sums(found, pair)
    return found


def _declared(frame: Any, known: Any, *columns: Any) -> Any:
    """Labels as given, else in the order that the columns declare."""
    return declared_orders(frame, *columns) if known is None else known


def as_terminal(terminal: Any, labels: Labels, n_states: int) -> Bools:
    """(S,): where decisions end, from a mask or from the labels (indices, where there are none) of such states."""
    if terminal is None:
        return np.zeros(n_states, dtype=bool)
    named = [terminal] if isinstance(terminal, str) else as_list(terminal)
    if named is None:
        raise InvalidMask("terminal", "labels of states, or a bool per state", shown(terminal))
    if named and all(isinstance(one, bool | np.bool_) for one in named):
        if len(named) != n_states:
            raise InvalidMask("terminal", f"{n_states} bools, or labels of states", f"{len(named)} bools")
        return np.array(in_order(Names(labels, None), terminal, "terminal", ("state",), InvalidMask), dtype=bool)
    ends = np.zeros(n_states, dtype=bool)
    ends[find("terminal", named, range(n_states) if labels is None else labels, "entry", InvalidMask)] = True
    return ends


# -- columns → indices ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Coded:
    """A column, or several, as what it holds: the distinct labels, which of them each row has, and the row where each
    comes first. `counted` where these are whole numbers of one column."""

    argument: str
    labels: list[Any]
    code: Ints
    first: Ints
    counted: bool

    def among(self, known: Sequence[Any]) -> Ints:
        """Each row's place among the known labels, matched by their text."""
        index = locate(self.labels, known)
        lost = np.flatnonzero(index < 0)
        if lost.size:
            which = lost[np.argmin(self.first[lost])]
            label, row = self.labels[which], f"row {self.first[which]}"
            expected = f"one of {listed(known)}"
            raise InvalidTransitions(self.argument, expected, shown(label), row, near(label, known))
        return index[self.code]

    def as_indices(self) -> Ints:
        """Each row's whole number itself."""
        values = np.array(self.labels, dtype=np.int64)
        bad = np.flatnonzero((values < 0) | (values > MOST_INDEX))
        if bad.size:
            which = bad[np.argmin(self.first[bad])]
            role = self.argument.removeprefix("next_")
            remedy = either(f"If numbers are names, pass their list: {role}s=.", f"List the names of {role}s as text.")
            expected, row = f"indices from 0 to {MOST_INDEX}", f"row {self.first[which]}"
            raise InvalidTransitions(self.argument, expected, values[which], row, remedy)
        return values.astype(np.intp)[self.code]


def _coded(table: Table, role: str, known: Any, *columns: Any) -> tuple[Labels, list[Ints]]:
    """Columns as indices and the labels behind them: those `known`, in that order; none for whole numbers, which are
    indices as they are; else the sorted labels that the columns hold between them."""
    arguments = (role, f"next_{role}")[: len(columns)]
    if len({1 if isinstance(c, str) else len(as_list(c) or ()) for c in columns}) > 1:
        raise InvalidInput(arguments[1], f"as many columns as `{role}` has", shown(columns[1]))
    named = known is not None and not isinstance(known, PartOrders)
    held = [_held(table, argument, names, named) for argument, names in zip(arguments, columns, strict=True)]
    if not named and all(column.counted for column in held):
        return None, [column.as_indices() for column in held]
    parts = [] if isinstance(columns[0], str) else [str(name) for name in columns[0]]
    met = (label for column in held for label in column.labels)
    order = _as_known(f"{role}s", known) if named else sorted_labels(met)
    order = [order[k] for k in known.sort(order)] if isinstance(known, PartOrders) else order
    labels = Order(order, not named, parts)
    return labels, [column.among(labels) for column in held]


def _held(table: Table, argument: str, names: Any, named: bool) -> Coded:
    """What one column holds, or several, whose labels are tuples."""
    wanted = [names] if isinstance(names, str) else as_list(names)
    if not wanted:
        raise InvalidInput(argument, "the name of a column, or several", shown(names))
    columns = [table.label_column(argument, name) for name in wanted]
    if len(columns) == 1:
        _require_discrete(argument, columns[0], named)
    code = np.zeros(table.n_rows, dtype=np.intp)
    for column in columns:  # numbered anew after each, lest the numbers grow with the product of the sizes
        values, own = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + own.reshape(-1), return_inverse=True)[1].reshape(-1)
    first = np.unique(code, return_index=True)[1]
    rows = [plain(values) for values in zip(*(column[first] for column in columns), strict=True)]
    counted = len(columns) == 1 and columns[0].dtype.kind in "iu"
    return Coded(argument, rows if len(columns) > 1 else [row[0] for row in rows], code, first, counted)


def _require_discrete(argument: str, column: Any, named: bool) -> None:
    """Numbers that are not whole and dates are states only where a list says so."""
    if named or column.dtype.kind in "iuUTb":
        return
    whole = column.dtype.kind == "f" and bool(np.all(column == np.round(column)))
    remedy = "Turn them into states first: bins, or labels."
    if whole:
        remedy = "They are whole: " + either("use .astype(int).", "write them without a decimal point.")
    raise InvalidTransitions(argument, "whole numbers or text", f"dtype {column.dtype}", remedy=remedy)


def _as_known(argument: str, known: Any) -> tuple[Any, ...]:
    labels = None if isinstance(known, str) else distinct_labels(known)
    if labels is None:
        raise InvalidInput(argument, "distinct labels, in the order of the model", shown(known))
    return tuple(labels)


# -- probabilities --------------------------------------------------------------------------------------------------


def _probabilities(table: Table, name: Any) -> Floats:
    p = table.numbers("probability", name)
    bad = np.flatnonzero((p < 0.0) | (p > 1.0 + SUM_TOLERANCE))
    if bad.size:
        percent = p.min() >= 0.0 and 2.0 <= p.max() <= 100.0
        remedy = "If these are percentages, divide them by 100." if percent else None
        raise InvalidTransitions("probability", "probabilities from 0 to 1", f"{p[bad[0]]:g}", f"row {bad[0]}", remedy)
    return p


def _require_once(found: TransitionTable, pair: Ints, after: Ints) -> None:
    """Every move stands in one row."""
    order = np.lexsort((after, pair))  # stable: of equal rows the first stays first
    same = (np.diff(pair[order]) == 0) & (np.diff(after[order]) == 0)
    if same.any():
        again = np.flatnonzero(same)
        k = again[np.argmin(order[1:][again])]
        first, second = int(order[k]), int(order[k + 1])
        move = f"{pair_in_words(found, *_split(found, pair[first]))} → {state_in_words(found, int(after[first]))}"
        expected = "one row per state, action and next state"
        got = f"{move} twice, in rows {first} and {second}"
        remedy = "Add the probabilities up, or drop one of the rows."
        raise InvalidTransitions("frame", expected, got, f"row {second}", remedy)


def _require_sums(found: TransitionTable, pair: Ints) -> None:
    """The probabilities of every pair that has rows sum to one."""
    sums = np.asarray(found.transitions.sum(axis=1)).reshape(-1)
    off = found.listed.reshape(-1) & (np.abs(sums - 1.0) > SUM_TOLERANCE)
    if off.any():
        row = int(np.flatnonzero(off[pair])[0])
        which = pair_in_words(found, *_split(found, pair[row]))
        small = abs(sums[pair[row]] - 1.0) < 1e-4
        raise InvalidTransitions(
            "probability",
            "probabilities that sum to one within 1e-8 for every state and action",
            f"{sums[pair[row]]:.10g} for {which}",
            f"row {row}; {how_many(int(off.sum()), 'such pair')}",
            "Divide by the sums (rounded numbers often need it)."
            if small
            else "Add the missing rows, or drop the pair, which is then infeasible.",
        )


def _split(found: TransitionTable, pair: Any) -> tuple[int, int]:
    s, a = divmod(int(pair), found.listed.shape[1])
    return s, a


# -- the way back -----------------------------------------------------------------------------------------------------


def write_transitions(
    matrix: sp.csr_array, columns: dict[str, Any], state_labels: Labels, action_labels: Labels
) -> pd.DataFrame:
    """A row per move of positive probability, in the order of pairs and next states."""
    import pandas as pd

    moves = matrix.tocoo()
    n_actions = matrix.shape[0] // matrix.shape[1]
    state, action = np.divmod(moves.coords[0], n_actions)
    parts = {
        "state": (state_labels, state),
        "action": (action_labels, action),
        "next_state": (state_labels, moves.coords[1]),
    }
    found: list[tuple[str, Any]] = []
    for role, (labels, index) in parts.items():
        found += _written(role, columns[role], labels, index)
    require_text("probability", columns["probability"], "the name of a column")
    found.append((columns["probability"], moves.data.copy()))
    if len({name for name, _ in found}) < len(found):
        raise InvalidInput("to_frame", "distinct column names", shown([name for name, _ in found]))
    return pd.DataFrame(dict(found))


def _written(role: str, names: Columns, labels: Labels, index: Ints) -> list[tuple[str, Any]]:
    """The columns of one role: its labels, or the parts of labels that are tuples."""
    import pandas as pd

    if isinstance(names, str):
        require_text(role, names, "the name of a column")
        return [(names, pd.Series(label_array(labels, index)).infer_objects())]
    listed = require_list(role, names, "the name of a column, or several")
    for name in listed:
        require_text(role, name, "names of columns")
    width = {len(x) if isinstance(x, tuple) else 1 for x in labels or (0,)}
    if width != {len(listed)}:
        raise InvalidInput(role, f"one name per part of a label ({', '.join(map(str, sorted(width)))})", shown(names))
    if len(listed) == 1:
        return _written(role, listed[0], labels, index)
    parts = parts_for(role, labels, listed)
    return [_written(role, name, part, index)[0] for name, part in zip(listed, parts, strict=True)]
