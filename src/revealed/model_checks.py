"""What a model must be, asked when an `MDP` is made: probabilities, masks, labels, a discount. Complaints name the
first offender by its labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import (
    TRUTH,
    Bools,
    Floats,
    Ints,
    as_list,
    as_number,
    frozen,
    is_number,
    remedy_for,
    require_floats,
)
from revealed.errors import InvalidDiscount, InvalidDistribution, InvalidInput, InvalidMask, InvalidTransitions
from revealed.gates import is_hashable
from revealed.labels import (
    Order,
    columns_of,
    find,
    holds_missing,
    how_many,
    index_columns,
    is_derived,
    plain,
    sequence_of,
    spell,
    with_columns,
)
from revealed.naming import (
    A_KERNEL,
    LED,
    Names,
    from_one,
    in_words,
    never_left,
    pair_in_words,
    rows_of,
    state_in_words,
    weights_by_name,
)
from revealed.positions import in_order, keys_of
from revealed.voices import arg, either, shown

ROW_SUM_TOLERANCE = 1e-8


def clean_rows(matrix: sp.csr_array, feasible: Bools, names: Names) -> sp.csr_array:
    """Empty the ignored rows, check the others, and scale them to sum to one exactly."""
    keep, n_actions = feasible.reshape(-1), feasible.shape[1]
    in_use = np.repeat(keep, np.diff(matrix.indptr))
    matrix.data[~in_use] = 0.0
    matrix.eliminate_zeros()
    rows = np.repeat(np.arange(keep.size), np.diff(matrix.indptr))
    for wrong, what in ((~np.isfinite(matrix.data), "finite probabilities"), (matrix.data < 0, "probabilities >= 0")):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            where = pair_in_words(names, *divmod(rows[first], n_actions))
            moved = in_words("next state", names.state_labels, matrix.indices[first])
            raise InvalidTransitions("transitions", what, matrix.data[first], f"{where}, {moved}")
    sums = np.asarray(matrix.sum(axis=1)).reshape(-1)
    off = keep & (np.abs(sums - 1.0) > ROW_SUM_TOLERANCE)
    if off.any():
        first = int(np.flatnonzero(off)[0])
        raise InvalidTransitions(
            "transitions",
            "rows that sum to one within 1e-8",
            f"row sum {sums[first]:.10g}",
            f"{pair_in_words(names, *divmod(first, n_actions))}; {how_many(int(off.sum()), 'such row')}",
            "Divide the rows by their sums (float32 and rounded numbers often need it)."
            if abs(sums[first] - 1.0) < 1e-4
            else "Normalise the row, or "
            + either(
                "mark the pair infeasible (feasible=) or the state terminal (terminal=).",
                "leave the pair out, or make the state terminal with --terminal.",
            ),
        )
    rounding = np.finfo(np.float64).eps * (np.diff(matrix.indptr) + 1)
    sums[np.abs(sums - 1.0) <= rounding] = 1.0  # such rows stay as they are to the last bit
    matrix.data /= sums[rows]
    matrix.sort_indices()
    return frozen(matrix)


def as_discount(discount: Any) -> float:
    gamma = as_number(discount)
    if not 0.0 <= gamma <= 1.0:
        remedy = remedy_for(discount) or f"For example: {arg('discount', 0.95)}."
        raise InvalidDiscount("discount", "a number in [0, 1]", shown(discount), remedy=remedy)
    return gamma


def as_mask(name: str, mask: Any, shape: tuple[int, ...], default: bool, names: Names | None = None) -> Bools:
    """A mask over states, or states and actions: by position, or a Series or DataFrame by the labels in `names`."""
    if mask is None:
        return np.full(shape, default)
    if names is not None:
        by_name = _listed_states(name, mask, shape, names)
        if by_name is not None:
            return by_name
        mask = in_order(names, mask, name, error=InvalidMask)
    remedy = _of_states(name, mask, shape[0], names) if len(shape) == 1 else None
    array = require_floats(name, mask, f"a bool array of shape {shape}", InvalidMask, remedy)
    if array.shape != shape:
        got = f"shape {array.shape}" if array.ndim else shown(mask)
        raise InvalidMask(name, f"a bool array of shape {shape}", got, remedy=remedy if array.ndim < 2 else None)
    other = ~np.isin(array, (0.0, 1.0))
    if other.any():
        raise InvalidMask(name, "True and False (or 1 and 0)", array[other][0], f"position {np.argwhere(other)[0]}")
    return array == 1.0


def _of_states(name: str, given: Any, n_states: int, names: Names | None) -> str:
    """The remedy for states that are named, or given by number, where a mask is wanted."""
    labels = () if names is None or names.state_labels is None else names.state_labels
    if is_hashable(given) and given in labels:
        return f"Pass a list of labels: {arg(name, [plain(given)])}."
    return f"Convert indices with np.isin(np.arange({n_states}), indices)." + (
        f" Or pass a list of labels, as in {arg(name, [plain(labels[0])])}." if labels else ""
    )


def _listed_states(name: str, mask: Any, shape: tuple[int, ...], names: Names) -> Bools | None:
    """The mask of states that are listed by label, as in terminal=["gym"]; None where it is something else."""
    listed = list(mask) if isinstance(mask, list | tuple | set | frozenset) else []
    if not listed or names.state_labels is None or len(shape) != 1 or not all(map(is_hashable, listed)):
        return None
    if all(isinstance(one, TRUTH) for one in listed) or (len(listed) == shape[0] and all(map(is_number, listed))):
        return None  # one for every state
    found = np.zeros(shape, dtype=bool)
    found[find(name, listed, names.state_labels, "state", InvalidMask)] = True
    return found


def require_an_action(feasible: Bools, terminal: Bools, names: Names) -> None:
    if terminal.all():
        raise InvalidMask("terminal", "at least one non-terminal state", "all terminal")
    stuck = ~feasible.any(axis=1) & ~terminal
    if stuck.any():
        raise InvalidMask(
            "feasible",
            "at least one feasible action in every non-terminal state",
            "no action",
            f"{state_in_words(names, np.flatnonzero(stuck)[0])}; {how_many(int(stuck.sum()), 'such state')}",
            "Allow an action there, or mark the state terminal.",
        )


def as_distribution(name: str, values: Any, n: int, labels: tuple[Any, ...] | None = None) -> Floats:
    """(n,) probabilities over states, given as such or by the names of the states."""
    p = require_floats(name, weights_by_name(name, values, labels, n), f"{n} probabilities", InvalidDistribution)
    if p.shape != (n,):
        raise InvalidDistribution(name, f"an array of shape ({n},)", f"shape {p.shape}")
    bad = ~np.isfinite(p) | (p < 0)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise InvalidDistribution(name, "finite probabilities >= 0", p[first], in_words("state", labels, first))
    with np.errstate(over="ignore"):
        total = p.sum()
    if abs(total - 1.0) > ROW_SUM_TOLERANCE:
        raise InvalidDistribution(
            name, "probabilities that sum to one", f"sum {total:.10g}", remedy="Divide by the sum."
        )
    return frozen(p / total)


def require_seen(unseen: Ints, feasible: Bools, names: Names, matrix: Any) -> None:
    """Transitions that were estimated, `matrix` (S*A, S), know nothing of pairs that were never seen."""
    lost = unseen[feasible.reshape(-1)[unseen]]
    n_actions = feasible.shape[1]
    if lost.size:
        states = np.unique(lost // n_actions)
        never = states[np.bincount(unseen // n_actions, minlength=len(feasible))[states] == n_actions]
        pairs = (
            "1 feasible state-action pair that was"
            if lost.size == 1
            else f"{lost.size} feasible state-action pairs that were"
        )
        raise InvalidTransitions.conflict(
            "transitions",
            f"cannot be estimated for {pairs} never observed with a next state",
            pair_in_words(names, *divmod(int(lost[0]), n_actions)),
            _UNSEEN
            if never.size == 0
            else f"{_numbered(unseen, names, matrix)}{never_left(names, never)} {_NEVER_LEFT}",
        )


def _numbered(unseen: Ints, names: Names, matrix: Any) -> str:
    """The remedy where states seem to be numbered from 1: 0 is neither left nor entered, all others are."""
    n_states = matrix.shape[1]
    met = np.bincount(unseen // (matrix.shape[0] // n_states), minlength=n_states) * n_states < matrix.shape[0]
    met[matrix.indices[matrix.data > 0.0]] = True
    told = from_one("state", names.state_labels, met)
    return f"{told} Otherwise: " if told else ""


_SHARED = either(", or share outcomes between pairs (landing=)", "")
_UNSEEN = (
    f"Mark them with {either('feasible= or terminal=', '--terminal')}, offer only the actions that were seen "
    f"({arg('unseen', 'infeasible')}), assume that the state does not change there ({arg('unseen', 'stay')}), smooth "
    f"({arg('smoothing', 1.0)}, or {A_KERNEL}){_SHARED}. The state after a last decision is given by {LED}."
)
_NEVER_LEFT = (
    f"Assume that the state does not change there ({arg('unseen', 'stay')}), give the states after last decisions "
    f"({LED}), or use {A_KERNEL}{_SHARED}. States without decisions may be terminal: {arg('terminal')}, or "
    f"{arg('unseen', 'infeasible')}."
)


def own_labels(name: str, given: Any, own: tuple[Any, ...] | None) -> Any:
    """Estimated transitions bring their labels along; others would put T in one order and the data in another."""
    if own is None or given is None:
        return own if given is None else given
    if list(map(spell, as_list(given) or ())) == list(map(spell, own)):
        return own if is_derived(given) else Order(given, columns=columns_of(own))
    raise InvalidInput(name, "the labels of the demonstrations that the transitions come from", shown(given))


def as_labels(name: str, labels: Sequence[Any] | None, n: int) -> tuple[Any, ...] | None:
    """Labels that differ, one for each; those of an `Order` stay one."""
    if labels is None:
        return None
    listed = sequence_of(labels)
    if listed is None or len(listed) != n:
        raise InvalidInput(name, f"a sequence of {n} labels", shown(labels) if listed is None else f"{len(listed)}")
    if not all(is_hashable(x) for x in listed):
        raise InvalidInput(name, "labels that are names or numbers", shown(listed[:3]))
    _require_distinct(name, listed, listed)
    if not _are_of_one_kind(listed):
        lost = next((i for i, x in enumerate(listed) if holds_missing(x)), None)
        if lost is not None:
            raise InvalidInput(name, "labels without missing values", shown(plain(listed[lost])), f"position {lost}")
        _require_distinct(name, listed, list(map(spell, listed)))
    return labels if isinstance(labels, Order) else with_columns(tuple(listed), index_columns(labels))


def frames_in_order(transitions: Any, state_labels: Any) -> Any:
    """Of a list with a data frame (S, S) per action, the numbers in the order of the labels; others as they are."""
    if not isinstance(transitions, list | tuple) or not any(_is_frame(block) for block in transitions):
        return transitions
    known = None if state_labels is None else as_labels("state_labels", state_labels, len(transitions[0]))
    if known is None and any(keys_of(side, None) is not None for side in _sides(transitions)):
        remedy = "For example: state_labels=list(frame.index)."
        raise InvalidTransitions.conflict(
            "transitions", "as data frames with labels require `state_labels`", None, remedy
        )
    names, axes = Names(known, None), ("state", "state")
    found = list(transitions)
    for a, block in enumerate(found):
        if _is_frame(block):
            found[a] = np.asarray(in_order(names, block, f"transitions[{a}]", axes, InvalidTransitions))
    return found


def _is_frame(block: Any) -> bool:
    return rows_of(block) is not None and hasattr(block, "columns")


def _sides(blocks: Sequence[Any]) -> list[Any]:
    return [side for block in blocks if _is_frame(block) for side in (block.index, block.columns)]


def _require_distinct(name: str, labels: list[Any], keys: list[Any]) -> None:
    """Labels are looked up as they are, and matched by their text: neither may stand for two."""
    if len(set(keys)) != len(keys):
        at = next(i for i, key in enumerate(keys) if key in keys[:i])
        one, other = (shown(plain(labels[i])) for i in (keys.index(keys[at]), at))
        got = f"{one} twice" if one == other else f"{one} and {other}, which count as the same"
        raise InvalidInput(name, "distinct labels", got, f"position {at}")


def _are_of_one_kind(labels: list[Any]) -> bool:
    """Whether all are text, or all whole numbers, or tuples of such: what differs then differs in its text, too."""
    kinds = {tuple(map(type, label)) if type(label) is tuple else (type(label),) for label in labels}
    return len(kinds) == 1 and {str, int}.issuperset(*kinds)
