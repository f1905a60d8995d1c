"""Features as tables: a row per state, or per state and action, known by labels rather than by order.

Tables are any frame or file (`read_features`) or a pandas frame whose index holds the labels (`indexed_features`).
Where pairs have features, those that the table leaves out are remembered as absent: no number stands for "unknown".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Bools, Floats, Ints, as_list, require_flag
from revealed.errors import InvalidReward
from revealed.frames import Table, as_plain, in_row, missing_in, no_number, read_table, require_column
from revealed.labels import (
    Order,
    distinct_labels,
    find,
    holds_missing,
    index_columns,
    listed,
    locate,
    plain,
    sequence_of,
    spell,
    with_columns,
)
from revealed.naming import rows_of
from revealed.positions import keys_of
from revealed.transitions import is_sparse
from revealed.voices import arg, shown

Labels = tuple[Any, ...]
DENSE = 0.25  # share of entries that are not zero from which on a dense matrix is no larger than a sparse one


@dataclass(frozen=True)
class FeatureTable:
    """`matrix` (S, K), or (S*A, K) where `action_labels` are known; `absent` (S, A) are pairs without a row."""

    matrix: Any
    names: tuple[str, ...]
    state_labels: Labels | None
    action_labels: Labels | None = None
    absent: Bools | None = None


def indexed_features(frame: Any) -> FeatureTable:
    """A pandas frame with a row per state; an index 0, 1, 2, … says nothing but their order."""
    labels = [plain(label) for label in frame.index]
    numbers = [_numbers(name, frame.iloc[:, k].to_numpy()) for k, name in enumerate(frame.columns)]
    if not numbers:
        raise InvalidReward("features", "a frame with at least one column", "none")
    names = tuple(str(name) for name in frame.columns)
    if all(type(label) is int for label in labels) and labels == list(range(len(labels))):
        return FeatureTable(np.column_stack(numbers), names, None)
    missing = np.flatnonzero([bool(np.any(missing_in(np.array(_parts(label), dtype=object)))) for label in labels])
    if missing.size:
        raise InvalidReward(
            "features", "an index without missing labels", shown(labels[missing[0]]), f"row {missing[0]}"
        )
    require_once("features", "state", labels)
    return FeatureTable(np.column_stack(numbers), names, with_columns(tuple(labels), index_columns(frame.index)))


def in_given_order(
    frame: Any, names: Any, state_labels: Any, error: type[InvalidReward] = InvalidReward, called: str = "names"
) -> Any:
    """A pandas frame with its rows and columns in the order of labels and names that are given beside it; others as
    they are. Names of which none is a column are new ones. Labels of rows are never renamed."""
    if rows_of(frame) is None or not hasattr(frame, "columns"):
        return frame
    own, wanted = keys_of(frame.index, None), sequence_of(state_labels)
    if own is not None and wanted is not None:
        rows = locate(wanted, own)
        if (rows < 0).any() or np.unique(rows).size < len(own):
            rule = f"must be the labels in the index of the features ({listed(own)}), in any order"
            raise error.conflict("state_labels", rule, None, "Leave it out: rows are matched by their labels.")
        frame = frame.iloc[rows]
    wanted = sequence_of(names)
    if wanted is None or len(wanted) != len(frame.columns) or keys_of(frame.columns, None) is None:
        return frame
    place = locate(wanted, [plain(name) for name in frame.columns])
    if (place < 0).all() or len(set(map(spell, wanted))) < len(wanted):
        return frame
    if (place < 0).any() or np.unique(place).size < place.size:
        odd = plain(wanted[int(np.flatnonzero(place < 0)[0])]) if (place < 0).any() else plain(wanted[0])
        rule = (
            f"must be the columns of the features ({listed(list(frame.columns))}) in any order, or other names for all"
        )
        raise error.conflict(called, rule, f"{odd!r}", "Rename columns with frame.rename(columns={...}).")
    return frame.iloc[:, place]


def read_features(
    frame: Any,
    state: str | Sequence[str],
    action: str | Sequence[str] | None,
    columns: str | Sequence[str] | None,
    constants: bool,
    actions: Sequence[Any] | None,
) -> FeatureTable:
    """See `LinearReward.from_frame`."""
    require_flag("constants", constants)
    table = read_table(frame, error=InvalidReward)
    keys = [*_key("state", state, table), *(_key("action", action, table) if action is not None else [])]
    names = _feature_names(columns, keys, table)
    if not names and not constants:
        raise InvalidReward("columns", "at least one column of features", f"none besides {', '.join(keys)}")
    numbers = [_numbers(name, table.raw("columns", name), names) for name in names]
    values = np.column_stack(numbers) if numbers else np.zeros((table.n_rows, 0))
    labels = table.labels("state", state)
    if action is None:
        found = _of_states(labels, values, names, constants, actions)
    else:
        found = _of_pairs(labels, table.labels("action", action), values, names, constants, actions)
    own, chosen = (() if key is None or isinstance(key, str) else as_list(key) or () for key in (state, action))
    states, choices = with_columns(found.state_labels, own), with_columns(found.action_labels, chosen)
    return replace(found, state_labels=states, action_labels=choices)


def require_once(argument: str, what: str, labels: Sequence[Any]) -> None:
    """No label twice; they are told apart by their text, as everywhere."""
    first: dict[str, int] = {}
    for row, label in enumerate(labels):
        if holds_missing(label):
            raise InvalidReward(argument, f"a {what} in every row", shown(plain(label)), f"row {row}")
        earlier = first.setdefault(spell(label), row)
        if earlier != row:
            got = f"{plain(label)!r} in rows {earlier} and {row}"
            raise InvalidReward(argument, f"one row per {what}", got, f"row {row}", "Keep one of them.")


def _of_states(
    labels: list[Any], values: Floats, names: list[str], constants: bool, actions: Sequence[Any] | None
) -> FeatureTable:
    require_once("state", "state", labels)
    if not constants:
        return FeatureTable(values, tuple(names), tuple(labels))
    if actions is None:
        remedy = "Pass actions=[...], the labels of the actions."
        rule = "requires known actions, one constant for each but the first"
        raise InvalidReward.conflict("constants", rule, remedy=remedy)
    choices = _as_actions(actions)
    S, A = len(labels), len(choices)
    pair = np.arange(S * A)
    matrix = pair_matrix(pair, np.repeat(values, A, axis=0), (S, A), constants)
    return FeatureTable(matrix, _with_constants(names, choices), tuple(labels), choices)


def _of_pairs(
    states: list[Any],
    chosen: list[Any],
    values: Floats,
    names: list[str],
    constants: bool,
    actions: Sequence[Any] | None,
) -> FeatureTable:
    require_once("state, action", "state and action", list(zip(states, chosen, strict=True)))
    choices = Order(sorted(set(chosen)), derived=True) if actions is None else _as_actions(actions)
    own = tuple({spell(label): label for label in states}.values())
    a = find("action", chosen, choices, "row", InvalidReward)
    shape = (len(own), len(choices))
    pair = find("state", states, own) * shape[1] + a
    absent = np.ones(shape, dtype=bool)
    absent.reshape(-1)[pair] = False
    matrix = pair_matrix(pair, values, shape, constants)
    all_names = _with_constants(names, choices) if constants else tuple(names)
    return FeatureTable(matrix, all_names, own, choices, absent if absent.any() else None)


def pair_matrix(pair: Ints, values: Floats, shape: tuple[int, int], constants: bool) -> Any:
    """Rows of pairs at their places s*A + a, with a column of ones per action but the first where asked for."""
    n, A = pair.size, shape[1]
    parts: list[Any] = [sp.csc_array(values)]
    if constants:
        parts.append(sp.csc_array((np.ones(n), (np.arange(n), pair % A)), shape=(n, A))[:, 1:])
    rows = sp.coo_array(sp.hstack(parts))
    size = (shape[0] * A, rows.shape[1])
    matrix = sp.csr_array((rows.data, (pair[rows.coords[0]], rows.coords[1])), shape=size)
    return matrix.toarray() if matrix.nnz >= DENSE * size[0] * size[1] else matrix


def column_of(matrix: Any, k: int) -> Floats:
    """One column of a matrix, dense or sparse, as an array of its own."""
    column = matrix[:, [k]]
    return np.array(column.toarray() if is_sparse(column) else column, dtype=np.float64)[:, 0]


def with_entries(matrix: Any, rows: Ints, k: int, values: Any) -> Any:
    """The matrix, dense or sparse, with these values in some rows of one column."""
    column = column_of(matrix, k)
    column[rows] = values
    if is_sparse(matrix):
        return sp.csr_array(sp.hstack([matrix[:, :k], sp.csr_array(column[:, None]), matrix[:, k + 1 :]], format="csr"))
    other = matrix.copy()
    other[:, k] = column
    return other


def _with_constants(names: list[str], choices: Labels) -> tuple[str, ...]:
    return (*names, *(f"constant_{spell(label)}" for label in choices[1:]))


def _as_actions(actions: Any) -> Labels:
    listed = None if isinstance(actions, str) else distinct_labels(actions)
    if listed is None:
        raise InvalidReward("actions", "distinct labels of actions", shown(actions))
    return tuple(plain(label) for label in listed)


def _key(role: str, names: Any, table: Table) -> list[str]:
    listed = [names] if isinstance(names, str) else as_list(names)
    if not listed:
        raise InvalidReward(role, "the name of a column, or a list of names", shown(names))
    for name in listed:
        require_column(role, name, table.names)
    return listed


def _feature_names(columns: Any, keys: list[str], table: Table) -> list[str]:
    if columns is None:
        return [name for name in table.names if name not in keys]
    return _key("columns", columns, table)


def _numbers(name: Any, raw: npt.NDArray[Any], names: Sequence[str] | None = None) -> Floats:
    """A column of numbers, NaN where they are missing; one of text is a name or a remark, hardly a feature."""
    argument = f"column {name!r}"
    missing = missing_in(raw)
    values = as_plain(argument, raw[~missing] if missing.any() and not missing.all() else raw, InvalidReward)
    if values.dtype.kind not in "iufb":
        others = [other for other in names or () if other != name]
        remedy = f"Name the columns that are features, as in {arg('columns', others)}."
        remedy = "Leave it out, or turn it into numbers." if names is None else remedy
        rows = np.flatnonzero(~missing)
        raise no_number(argument, None, values, InvalidReward, lambda k: in_row(int(rows[k])), remedy)
    numbers = np.full(raw.shape, np.nan)
    numbers[~missing] = values.astype(np.float64)
    return numbers


def _parts(label: Any) -> list[Any]:
    return list(label) if isinstance(label, tuple) else [label]
