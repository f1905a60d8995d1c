"""r(s, a) = φ(s, a)·θ: features (S, K) or (S, A, K), dense or sparse, in the order of the states or with labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import LARGEST, Bools, Ints, frozen, is_count, is_index, require_whole
from revealed.errors import InvalidReward
from revealed.gates import is_hashable
from revealed.labels import (
    Order,
    columns_of,
    how_many,
    in_parts_of,
    index_columns,
    listed,
    locate,
    near,
    plain,
    sequence_of,
    twin,
    with_columns,
)
from revealed.mdp import Floats
from revealed.naming import rows_of
from revealed.positions import keys_of, labelled
from revealed.rewards.base import as_cotangent, as_features, as_theta, check_names, sum_actions
from revealed.rewards.feature_table import (
    FeatureTable,
    Labels,
    in_given_order,
    indexed_features,
    read_features,
    require_once,
)
from revealed.rewards.holes import Holes, fill_holes, find_holes, mask_holes, move_holes, with_holes
from revealed.sparse_input import as_float_csr, as_float_entries, is_sparse
from revealed.voices import either, shown


class LinearReward:
    """A weighted sum of features, one weight per name.

    Parameters
    ----------
    features : (S, K) for rewards of states, (S, A, K) for rewards of state-action pairs; dense, or sparse as (S, K),
        as a 3-d `scipy.sparse.coo_array`, as a list of A matrices (S, K), or as (S*A, K) with `n_actions=A`. The
        columns of a data frame are the names; its index labels the states, unless it is 0, 1, 2, …, which is their
        order.
    names : K names, optional; they label `fit.params`.
    state_labels : S labels of the rows, optional.

    Features may be NaN or infinite where nothing is chosen: at infeasible pairs, and in terminal states. A fit refuses
    them at any other pair.

    Rows with labels may come in any order: a fit puts them into the order of the model's labels (or of the data's, if
    the model has none), requires a row for every state, and notes how many rows it left out. Rows without labels are
    states in the order of the model, which must have been declared: by `states=` in `from_frame`, or by the MDP's
    labels. Where it was sorted from data, such rows are refused.
    """

    linear = True
    action_labels: Labels | None = None
    absent: Bools | None = None  # (S, A): pairs of a table that it has no row for; zeros stand in their place
    holes: Holes | None = None  # rows whose features are NaN or infinite; zeros stand in their place
    counted = False  # whether it is a frame whose index, 0, 1, 2, …, counts its rows
    left_out = ""  # what `aligned` had no use for, in a sentence
    leads: Ints | None = None  # (S, A): the state that each pair leads to, where that names it; −1 for no pair

    def __init__(
        self,
        features: Any,
        names: Sequence[str] | None = None,
        n_actions: int | None = None,
        state_labels: Sequence[Any] | None = None,
    ) -> None:
        self.state_labels: Labels | None = None
        names, state_labels = (list(given) if isinstance(given, Iterator) else given for given in (names, state_labels))
        shaped = isinstance(getattr(features, "shape", None), tuple)
        if shaped and hasattr(features, "columns") and hasattr(features, "index"):
            table = indexed_features(in_given_order(features, names, state_labels))
            names = table.names if names is None else names
            features, self.state_labels = table.matrix, table.state_labels
            self.counted = table.state_labels is None
        matrix, self.n_states, self.n_columns = _as_matrix(features, n_actions)
        holes = find_holes(matrix)
        self.matrix = frozen(fill_holes(matrix, holes))
        if holes is not None:
            self.holes = holes
        self.names = check_names(names, self.n_params)
        _require_sizes(self.matrix, self.names)
        if state_labels is not None:
            self.state_labels = _as_labels(state_labels, self.n_states)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        state: str | Sequence[str],
        action: str | Sequence[str] | None = None,
        columns: str | Sequence[str] | None = None,
        constants: bool = False,
        actions: Sequence[Any] | None = None,
    ) -> LinearReward:
        """Features from a data frame or the path of a CSV or Parquet file, a row per state or pair in any order.

        Parameters
        ----------
        state : the column of the states' labels, or several columns whose labels are tuples.
        action : the column of the actions' labels, where features are those of pairs. Infeasible pairs may be left out.
        columns : the features; by default every other column.
        constants : True adds a constant for every action but the first: `constant_sell`, …
        actions : the actions in their order, by default sorted; needed for constants where there is no such column.
        """
        return cls._of_table(read_features(frame, state, action, columns, constants, actions))

    @classmethod
    def _of_table(cls, table: FeatureTable) -> LinearReward:
        paired = table.action_labels is not None
        S, A = len(table.state_labels or ()), len(table.action_labels or ())
        features = table.matrix.reshape(S, A, -1) if paired and not is_sparse(table.matrix) else table.matrix
        reward = cls(features, table.names, A if paired and is_sparse(table.matrix) else None, table.state_labels)
        reward.action_labels, reward.absent = table.action_labels, table.absent
        return reward

    def aligned(
        self, state_labels: Sequence[Any], action_labels: Sequence[Any] | None = None, feasible: Bools | None = None
    ) -> LinearReward:
        """The same features in the order of these labels; those of other states are left out and listed in `left_out`.

        A state or pair without features is an error, unless `feasible` (S, A) says that nothing is chosen there.
        """
        state_labels = _as_names("state_labels", state_labels)
        if action_labels is not None:
            action_labels = _as_names("action_labels", action_labels)
        if feasible is not None and not _is_mask(feasible, len(state_labels)):
            raise InvalidReward("feasible", f"(S, A) bools for {len(state_labels)} states", type(feasible).__name__)
        if self.state_labels is None or (self.absent is None and self._stands(state_labels, action_labels)):
            return self
        rows = locate(state_labels, self.state_labels)
        actions = self.action_labels if self.action_labels is None or action_labels is None else action_labels
        columns = np.arange(self.n_columns) if actions is None else locate(actions, self.action_labels or ())
        known = (rows >= 0)[:, None] & (columns >= 0)
        if self.absent is not None:
            known &= ~self.absent[rows[:, None], columns]
        lost = ~known & _needed(known.shape, feasible)
        if lost.any():
            raise self._without(lost, state_labels, actions)
        where = np.where(known, rows[:, None] * self.n_columns + columns, -1).reshape(-1)
        other = copy(self)
        other.matrix, other.holes = _rows(self.matrix, where), move_holes(self.holes, where)
        other.n_states, other.n_columns = known.shape
        other.state_labels, other.action_labels = state_labels, actions
        other.absent = None if known.all() else ~known
        other.left_out = _left_out(self, rows, columns) or self.left_out
        return other

    def along(self, state_labels: Sequence[Any], targets: Ints, feasible: Bools) -> LinearReward:
        """The same features in the order of a model whose actions have no names but where they lead, as turns have:
        `targets` (S, A). A pair of the model that the features do not know is an error."""
        state_labels = _as_names("state_labels", state_labels)
        if self.state_labels is None or self.leads is None:
            return self
        n = len(state_labels)
        expected = f"whole numbers of shape ({n}, A), a row per state"
        targets = require_whole("targets", targets, expected, InvalidReward)
        if targets.ndim != 2 or len(targets) != n:
            raise InvalidReward("targets", expected, f"shape {targets.shape}")
        if not _is_mask(feasible, n) or feasible.shape != targets.shape:
            raise InvalidReward("feasible", f"bools of shape {targets.shape}", type(feasible).__name__)
        wanted = np.where(feasible, targets, -1)
        same = (
            self.state_labels == tuple(in_parts_of(state_labels, self.state_labels))
            and wanted.shape == self.leads.shape
        )
        if same and np.array_equal(self.leads[feasible], wanted[feasible]):
            return self
        own = locate(state_labels, self.state_labels)
        s, a = np.nonzero(feasible)
        row = _find_moves(self.leads, own[s], own[targets[s, a]])
        if (row < 0).any():
            k = int(np.flatnonzero(row < 0)[0])
            ends = [plain(state_labels[int(i)]) for i in (s[k], targets[s[k], a[k]])]
            where = f"the move from {ends[0]!r} to {ends[1]!r}"
            got = f"none for {how_many(int((row < 0).sum()), 'move')}"
            raise InvalidReward("features", "features for every move of the model", got, where, _OTHER_NETWORK)
        place = np.full(feasible.shape, -1)
        place[s, a] = row
        other = copy(self)
        other.matrix, other.holes = _rows(self.matrix, place.reshape(-1)), move_holes(self.holes, place.reshape(-1))
        other.n_states, other.n_columns = feasible.shape
        other.state_labels, other.leads = state_labels, wanted
        return other

    def _with_order(self, order: Ints) -> LinearReward:
        """The same features with their columns, and the parameters, in another order."""
        other = copy(self)
        other.matrix, other.names = frozen(self.matrix[:, order]), tuple(self.names[k] for k in order)
        return other

    def _stands(self, state_labels: Sequence[Any], action_labels: Sequence[Any] | None) -> bool:
        """Whether the rows are in the order of these labels already."""
        own = self.action_labels
        states, actions = in_parts_of(state_labels, self.state_labels), in_parts_of(action_labels or own, own)
        return self.state_labels == tuple(states) and (own is None or own == tuple(actions))

    def _without(self, lost: Bools, states: Sequence[Any], actions: Labels | None) -> InvalidReward:
        """The complaint about states or pairs that have no features."""
        own = self.state_labels or ()
        unknown = locate(states, own) < 0
        s, a = (int(i) for i in np.argwhere(lost)[0])
        if actions is None or unknown[s]:
            many = int((lost.any(axis=1) & (unknown | (actions is None))).sum())
            what, got, names = "state of the model", how_many(many, "state"), [plain(states[s])]
            remedy = _none_of(own, states) if unknown.all() else _unused_near(states[s], own, states)
        else:
            what, got = "feasible pair of the model", how_many(int(lost.sum()), "pair")
            names = [plain(states[s]), plain(actions[a])]
            remedy = _unused_near(actions[a], self.action_labels or (), actions)
        where = ", ".join(f"{role} {shown(name)}" for role, name in zip(("state", "action"), names, strict=False))
        error = InvalidReward("features", f"features for every {what}", f"none for {got}", where, remedy or ADD_A_ROW)
        return error.without(*names)

    @property
    def n_params(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def undefined(self) -> Bools | None:
        """(S, 1|A): where there is no reward, for want of finite features or of such a turn; None where there is one
        everywhere."""
        shape = (self.n_states, self.n_columns)
        no_turn = None if self.leads is None or self.leads.shape != shape else self.leads < 0
        masks = [mask for mask in (mask_holes(self.holes, shape), self.absent, no_turn) if mask is not None]
        return np.logical_or.reduce(masks) if masks else None

    def dense_features(self) -> Floats:
        """(S, K), or (S, A, K) where they are those of pairs; NaN where they are not finite."""
        matrix = np.array(self.matrix.toarray() if is_sparse(self.matrix) else self.matrix)
        if self.holes is not None:
            matrix[self.holes[0]] = np.nan
        shape = (self.n_states,) if self.n_columns == 1 else (self.n_states, self.n_columns)
        return matrix.reshape(*shape, self.n_params)

    def init(self, seed: int | None = None) -> Floats:
        """Zero, from which the search moves only along what choices can see: the minimum-norm solution."""
        return np.zeros(self.n_params)

    def value(self, theta: Floats) -> Floats:
        """(S, 1) or (S, A): r at θ, which knows the labels of the rows where they have any; NaN where there is none."""
        table = (self.matrix @ as_theta(theta, self)).reshape(self.n_states, self.n_columns)
        return labelled(with_holes(table, self.undefined), self)

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        cotangent = as_cotangent(cotangent, self.n_states, self.n_columns)
        per_row = sum_actions(cotangent) if self.n_columns == 1 else cotangent.reshape(-1)
        return self.matrix.T @ per_row

    def jacobian(self, theta: Floats) -> Any:
        """∂r/∂θ with a row per state (S, K), or per pair (S*A, K) with row s*A + a; dense or CSR, as given."""
        return self.matrix

    def __repr__(self) -> str:
        per = "states" if self.n_columns == 1 else f"states x {self.n_columns} actions"
        return f"LinearReward({self.n_params} features of {self.n_states} {per})"


def labels_of_rows(features: Any) -> Labels | None:
    """The labels in the index of a data frame; None for what has none, or an index that counts its rows."""
    index = rows_of(features)
    return None if index is None or not hasattr(features, "columns") else keys_of(index, None)


def as_row_labels(labels: Any, n: int, what: str = "state") -> Labels:
    """Labels that differ, one for each row of features."""
    return _as_labels(labels, n, what)


def aligned_rows(features: Any, own: Labels, wanted: Sequence[Any], feasible: Bools | None = None) -> tuple[Any, str]:
    """Features (S, K) or (S, A, K) of labelled states in another order of theirs, and what was left out."""
    flat = np.asarray(features).reshape(len(own), -1)
    found = LinearReward(flat, state_labels=own).aligned(wanted, None, feasible)
    return np.asarray(found.matrix).reshape(len(wanted), *np.shape(features)[1:]), found.left_out


def refuse_row_labels(features: Any) -> None:
    """Functions and modules of others take arrays: labels of a frame would be lost on the way."""
    labels = labels_of_rows(features)
    if labels is not None:
        expected, got = "an array in the order of the model's states", f"a data frame with labels ({listed(labels)})"
        remedy = "Pass frame.loc[list(mdp.state_labels)].to_numpy()."
        raise InvalidReward("features", expected, got, remedy=remedy)


ADD_A_ROW = "Add a row for it."
_OTHER_NETWORK = "Do they belong to another network? Use network.reward(...) of this one."


def _find_moves(leads: Ints, source: Ints, target: Ints) -> Ints:
    """The row s*A + a that leads from each source to the target beside it; −1 where there is none."""
    S = leads.shape[0]
    rows = np.flatnonzero(leads >= 0)
    keys = rows // leads.shape[1] * S + leads.reshape(-1)[rows]
    order = np.argsort(keys)
    wanted = source * S + target
    k = np.minimum(np.searchsorted(keys[order], wanted), rows.size - 1)
    known = (source >= 0) & (target >= 0) & (keys[order][k] == wanted)
    return np.where(known, rows[order][k], -1)


def _require_sizes(matrix: Any, names: Sequence[str]) -> None:
    """No feature is so large or so small that squares of it, or of its parameter, are not float64 numbers."""
    entries = np.abs(matrix.data if is_sparse(matrix) else matrix)
    if np.all((entries == 0.0) | ((entries >= 1.0 / LARGEST) & (entries <= LARGEST))):
        return
    sizes = abs(matrix).max(axis=0)
    sizes = sizes.toarray().ravel() if is_sparse(sizes) else np.asarray(sizes)
    for name, size in zip(names, sizes, strict=True):
        if size and not 1.0 / LARGEST <= size <= LARGEST:
            expected = f"features whose largest entry is between {1 / LARGEST:g} and {LARGEST:g}, or zero"
            raise InvalidReward("features", expected, f"{size:g} for {name!r}", remedy="Measure it in other units.")


def _as_matrix(features: Any, n_actions: int | None) -> tuple[Any, int, int]:
    """(matrix (S, K) or (S*A, K), S, 1 or A)."""
    if _is_list_of_sparse(features):
        return _from_list(features)
    if not is_sparse(features):
        dense = as_features(features)
        if n_actions is not None and (dense.ndim == 2 or not is_index(n_actions) or n_actions != dense.shape[1]):
            remedy = "Pass features of pairs as an array (S, A, K), which tells the number of actions."
            raise InvalidReward.conflict("n_actions", "requires a sparse matrix of features (S*A, K)", remedy=remedy)
        columns = 1 if dense.ndim == 2 else dense.shape[1]
        return dense.reshape(-1, dense.shape[-1]), dense.shape[0], columns
    if len(features.shape) == 3:
        S, A, K = features.shape
        data, (s, a, k), _ = as_float_entries("features", features, InvalidReward)
        rows = s.astype(np.int64) * A + a
        return _csr(sp.coo_array((data, (rows, k)), shape=(S * A, K))), S, A
    if n_actions is None:
        matrix = _csr(features)
        return matrix, int(matrix.shape[0]), 1
    if not is_count(n_actions) or features.shape[0] % n_actions:
        raise InvalidReward("n_actions", f"a divisor of the {features.shape[0]} rows of the features", shown(n_actions))
    return _csr(features), features.shape[0] // int(n_actions), int(n_actions)


def _as_labels(labels: Any, n: int, what: str = "state") -> Labels:
    given = None if isinstance(labels, str) else sequence_of(labels)
    if given is None or len(given) != n:
        raise InvalidReward(f"{what}_labels", f"{n} labels, one per {what}", shown(labels))
    require_once(f"{what}_labels", what, given)
    columns = columns_of(labels) or index_columns(labels)
    return with_columns(tuple(plain(label) for label in given), columns)


def _as_names(argument: str, given: Any) -> Labels:
    """Labels of any number of states or actions."""
    found = sequence_of(given)
    if found is None or not all(map(is_hashable, found)):
        raise InvalidReward(argument, "labels that are names or numbers", shown(given))
    return given if isinstance(given, Order) else with_columns(tuple(found), index_columns(given))


def _none_of(own: Sequence[Any], states: Sequence[Any]) -> str:
    """What to do where no state has features; an index of states and actions looks like one of other states."""
    keys = [key for key in own if isinstance(key, tuple) and len(key) > 1]
    known = {key[0] if len(key) == 2 else key[:-1] for key in keys}
    if known.issuperset(states):
        return either(
            "For features of pairs pass rv.LinearReward.from_frame(frame.reset_index(), state=…, action=…).",
            "Features of pairs need a column of actions in the file.",
        )
    return f"There are features for {listed(own)}."


def _unused_near(label: Any, own: Labels, wanted: Sequence[Any]) -> str | None:
    """A remedy that names the label that looks like this one, among those that the model has no use for, or one that
    differs in case or blanks alone."""
    if label in own:
        return None
    unused, alike = np.flatnonzero(locate(own, wanted) < 0), twin(label, own)
    meant = near(label, [own[k] for k in unused])
    if meant is not None or alike is None:
        return meant
    return f"Add a row for it; {alike!r} has features: do they mean the same?"


def _is_mask(feasible: Any, n_states: int) -> bool:
    return isinstance(feasible, np.ndarray) and feasible.ndim == 2 and feasible.shape[0] == n_states


def _needed(shape: tuple[int, int], feasible: Bools | None) -> Bools:
    """Where features are needed: where something may be chosen; (S, 1) where they are those of states."""
    if feasible is None:
        return np.ones(shape, dtype=bool)
    if feasible.shape == shape:
        return feasible
    return np.broadcast_to(feasible.any(axis=1, keepdims=True), shape)


def _rows(matrix: Any, where: Ints) -> Any:
    """Rows of a matrix in another order; zeros at −1."""
    if not is_sparse(matrix):
        return np.where((where >= 0)[:, None], matrix[where], 0.0)
    kept = np.flatnonzero(where >= 0)
    pick = sp.csr_array((np.ones(kept.size), (kept, where[kept])), shape=(where.size, matrix.shape[0]))
    return sp.csr_array(pick @ matrix)


def _left_out(reward: LinearReward, rows: Ints, columns: Ints) -> str:
    """What the order of a model has no place for."""
    parts = []
    for what, labels, used in (("state", reward.state_labels, rows), ("action", reward.action_labels, columns)):
        extra = np.setdiff1d(np.arange(len(labels or ())), used)
        if extra.size and labels is not None:
            parts.append(f"{extra.size} {what}{'s' if extra.size > 1 else ''} (first {labels[extra[0]]!r})")
    return f"features of {' and '.join(parts)} were left out: the model does not have them." if parts else ""


def _is_list_of_sparse(features: Any) -> bool:
    return isinstance(features, list | tuple) and len(features) > 0 and all(is_sparse(f) for f in features)


def _from_list(blocks: Sequence[Any]) -> tuple[Any, int, int]:
    shape = blocks[0].shape
    for a, block in enumerate(blocks):
        if block.shape != shape or len(shape) != 2:
            raise InvalidReward("features", f"{len(blocks)} matrices (S, K) of one shape", block.shape, f"action {a}")
    S, A = shape[0], len(blocks)
    order = np.arange(S * A).reshape(A, S).T.reshape(-1)
    checked = [_csr(block, f"action {a}") for a, block in enumerate(blocks)]
    return sp.csr_array(sp.csr_array(sp.vstack(checked))[order]), S, A


def _csr(matrix: Any, where: str | None = None) -> sp.csr_array:
    """A float64 copy in CSR, checked; rows stand for states, or for pairs s*A + a."""
    if len(matrix.shape) != 2 or 0 in matrix.shape:
        expected = "real numbers of at least one state and one feature"
        raise InvalidReward("features", expected, f"shape {matrix.shape}", where)
    return as_float_csr("features", matrix, InvalidReward, where)
