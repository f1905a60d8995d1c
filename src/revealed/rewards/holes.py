"""Features that are NaN or infinite, where nothing is chosen: at infeasible pairs and in terminal states.

Such a pair has no reward, and nothing is ever computed from it. Rewards remember these *holes* and compute with zeros
in their place; once a reward meets a model, a hole at a pair that the model offers is an error. In its table a hole is
NaN, so that no model that offers the pair takes it for a reward of zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from revealed.checks import Bools, Floats, Ints
from revealed.errors import InvalidReward
from revealed.mdp import MDP
from revealed.naming import pair_in_words, state_in_words
from revealed.sparse_input import is_sparse
from revealed.voices import either

Holes = tuple[
    Ints, Ints, Floats
]  # rows in increasing order; of each its first feature that is not finite, and its value


def find_holes(matrix: Any) -> Holes | None:
    """Rows of features, dense or CSR, that are not finite; None where all are."""
    if is_sparse(matrix):
        at = np.flatnonzero(~np.isfinite(matrix.data))
        row, feature = np.searchsorted(matrix.indptr, at, side="right") - 1, matrix.indices[at]
        value = matrix.data[at]
    else:
        row, feature = np.nonzero(~np.isfinite(matrix))
        value = matrix[row, feature]
    if row.size == 0:
        return None
    rows, first = np.unique(row, return_index=True)
    return rows.astype(np.intp), feature[first].astype(np.intp), np.asarray(value[first], dtype=np.float64)


def fill_holes(matrix: Any, holes: Holes | None) -> Any:
    """The same matrix, which is ours to change, with zeros in the rows of holes."""
    if holes is None:
        return matrix
    if is_sparse(matrix):
        gone = np.zeros(matrix.shape[0], dtype=bool)
        gone[holes[0]] = True
        matrix.data[np.repeat(gone, np.diff(matrix.indptr))] = 0.0
        matrix.eliminate_zeros()
    else:
        matrix[holes[0]] = 0.0
    return matrix


def move_holes(holes: Holes | None, where: Ints) -> Holes | None:
    """The holes of rows in another order: the new row i is the old row `where[i]`, or none at −1."""
    if holes is None:
        return None
    rows, feature, value = holes
    k = np.minimum(np.searchsorted(rows, where), rows.size - 1)
    new = np.flatnonzero(rows[k] == where)
    return (new.astype(np.intp), feature[k[new]], value[k[new]]) if new.size else None


def mask_holes(holes: Holes | None, shape: tuple[int, int]) -> Bools | None:
    """(S, 1|A): where the holes are; None where there are none."""
    if holes is None:
        return None
    mask = np.zeros(shape, dtype=bool)
    mask.reshape(-1)[holes[0]] = True
    return mask


def holes_in(arrays: Sequence[Floats], tables: Sequence[Floats]) -> Bools:
    """(S, 1|A): the pairs, or else the states, of inputs that are not finite. `tables` are what a function makes of two
    ways to fill them: it may differ there alone, or else it looks at several states at once and needs all numbers."""
    S, A = tables[0].shape
    differ = ~np.isclose(tables[0], tables[1], rtol=1e-12, atol=0.0, equal_nan=True)
    gone = np.zeros((S, A), dtype=bool)
    for array in arrays:
        odd = ~np.isfinite(array)
        if odd.any() and (array.ndim == 0 or len(array) != S):
            raise InvalidReward("features", "finite numbers, since there is not one row per state", array[odd][0])
        pairs = odd.ndim > 1 and A > 1 and odd.shape[1] == A
        gone |= odd.reshape(S, A, -1).any(axis=2) if pairs else odd.reshape(S, -1).any(axis=1, keepdims=True)
    for wider in (gone, np.broadcast_to(gone.any(axis=1, keepdims=True), gone.shape)):
        if not (differ & ~wider).any():
            return wider.copy()
    s = int(np.argwhere(differ & ~gone.any(axis=1, keepdims=True))[0][0])
    expected = "finite numbers, since the function looks at several states at once"
    raise InvalidReward("features", expected, f"NaN or infinity, which affects the reward of state {s}")


def holes_at(gone: Bools, arrays: Sequence[Floats]) -> Holes:
    """The holes of a mask (S, 1|A), each with a number that is not finite."""
    rows = np.flatnonzero(gone)
    odd = next(array for array in arrays if not np.isfinite(array).all())
    value = odd[~np.isfinite(odd)][0]
    return rows.astype(np.intp), np.full(rows.size, -1, dtype=np.intp), np.full(rows.size, value)


def undefined(reward: Any) -> Bools | None:
    """(S, 1|A): where a reward has no value, for want of features or because they are not finite; None where it has
    one everywhere."""
    own = getattr(reward, "undefined", None)
    return own if isinstance(own, np.ndarray) and own.any() else None


def with_holes(table: Floats, gone: Bools | None) -> Floats:
    """A table of rewards, NaN where there is none."""
    return table if gone is None else np.where(gone, np.nan, table)


def filled(table: Any) -> Floats:
    """A table of rewards, or of their slopes, for computing: zero where there is none."""
    array = np.asarray(table, dtype=np.float64)
    return np.where(np.isnan(array), 0.0, array)


def require_defined(reward: Any, mdp: MDP) -> None:
    """No feature of a pair that `mdp`, of as many states, offers is NaN or infinite."""
    holes: Holes | None = getattr(reward, "holes", None)
    columns = getattr(reward, "n_columns", 1)
    if holes is None:
        return
    needed = mdp.feasible if columns > 1 else mdp.feasible.any(axis=1, keepdims=True)
    bad = np.flatnonzero(needed.reshape(-1)[holes[0]])
    if bad.size:
        row, feature, value = (int(holes[0][bad[0]]), int(holes[1][bad[0]]), holes[2][bad[0]])
        where = state_in_words(mdp, row) if columns == 1 else pair_in_words(mdp, *divmod(row, columns))
        expected = "finite features for every feasible pair of the model"
        raise InvalidReward("features", expected, value, where + _feature(reward, feature), _REMEDY)


def _feature(reward: Any, k: int) -> str:
    """Which feature it is, by its name where it has one, and nothing where that is not known."""
    names = getattr(reward, "names", ()) if getattr(reward, "linear", False) else ()
    return "" if k < 0 else f", feature {names[k]!r}" if k < len(names) else f", feature {k}"


_REMEDY = (
    f"Fill it in, or mark the pair infeasible or the state terminal ({either('feasible=, terminal=', '--terminal')})."
)
