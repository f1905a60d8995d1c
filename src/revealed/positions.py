"""Labels against positions: what a user hands over, in the order of a model.

One rule for every function. Where both sides have labels they are matched by label. Where one side has only positions
(a plain array) they refer to the order of the model, if it was declared; positions cannot refer to an order that was
sorted from data, and an error shows it. The arrays that fits, solutions and demonstrations hand out are each a
`LabelledArray`: they know their states and actions, as the frames of `fit.table` do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from revealed.checks import INDEX, Ints, frozen, is_bare_table, is_mapping, kind_of_table, shape_of
from revealed.errors import InvalidInput
from revealed.labels import (
    SHOWN,
    Order,
    are_positions,
    columns_of,
    find,
    holds_numbers,
    in_parts_of,
    is_derived,
    listed,
    locate,
    near,
    places_by_text,
    plain,
    require_declared,
    require_ids,
    spell,
)
from revealed.naming import Labels, Names, are_row_numbers, index_keys, require_unmixed, rows_of
from revealed.voices import shown

AXES = ("state", "action")


class LabelledArray(np.ndarray[Any, Any]):
    """An array that knows what its states and actions are called: `state_labels`, `action_labels`.

    Copies know it too, and so do elementwise results (`2 * fit.reward`, `fit.reward - other.reward`, `np.where`) and
    sums over actions. Combining two whose labels differ is an error. What was combined with positions, although the
    order of the labels was sorted, is `mixed`: no function takes it. Slices and whatever else has another form are
    plain arrays.
    """

    state_labels: Labels
    action_labels: Labels
    mixed: Names | None  # the labels whose order nobody declared, beside which numbers stood by position

    def __array_finalize__(self, made_from: Any) -> None:
        self.state_labels = self.action_labels = self.mixed = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: tuple[Any, ...] = (), **options: Any) -> Any:
        elementwise = method == "__call__" and ufunc.signature is None
        names = _common_names((*inputs, *out)) if elementwise else None
        if any(map(_has_own_rules, (*inputs, *out))):
            return NotImplemented
        options = {name: _bare(value) for name, value in options.items()}
        if out:
            getattr(ufunc, method)(*map(_bare, inputs), out=tuple(map(_bare, out)), **options)
            return out[0] if len(out) == 1 else out
        made = getattr(ufunc, method)(*map(_bare, inputs), **options)
        if method == "reduce":
            return _reduced(made, inputs[0], options.get("axis", 0), bool(options.get("keepdims", False)))
        return made if names is None or np.shape(made) != names.shape else _named_as(made, names)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        made = super().__array_function__(func, types, args, kwargs)
        if func not in _IN_PLACE or not isinstance(made, np.ndarray):
            return made
        names = _common_names(args)
        return made if names is None or made.shape != names.shape else _named_as(made, names)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return _named_as(found, self) if _is_everything(key) and found.shape == self.shape else found

    def copy(self, order: Any = "C") -> LabelledArray:
        return _named_as(super().copy(order), self)

    def round(self, *arguments: Any, **options: Any) -> Any:
        return _named_as(super().round(*arguments, **options), self)

    def astype(self, *arguments: Any, **options: Any) -> Any:
        return _named_as(super().astype(*arguments, **options), self)

    def sort(self, *arguments: Any, **options: Any) -> None:
        self.state_labels = self.action_labels = self.mixed = None  # also of the copy that np.sort makes
        super().sort(*arguments, **options)

    def partition(self, *arguments: Any, **options: Any) -> None:
        self.state_labels = self.action_labels = self.mixed = None
        super().partition(*arguments, **options)

    def __copy__(self) -> LabelledArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> LabelledArray:
        return self.copy()

    def __reduce__(self) -> Any:
        make, arguments, state = super().__reduce__()
        return make, arguments, (state, self.state_labels, self.action_labels, self.mixed)

    def __setstate__(self, state: Any) -> None:
        own, self.state_labels, self.action_labels, self.mixed = state
        super().__setstate__(own)

    def __repr__(self) -> str:
        return repr(np.asarray(self))


def labelled(array: Any, named: Any) -> Any:
    """The array as one that knows the labels of `named` (a model, demonstrations); itself where there are none."""
    states, actions = getattr(named, "state_labels", None), getattr(named, "action_labels", None)
    if states is None and actions is None:
        return array
    made = np.asarray(array).view(LabelledArray)
    made.state_labels, made.action_labels = states, actions
    return made


_IN_PLACE = {np.where, np.copy, np.nan_to_num, np.round, np.around}  # functions that leave every number in its place


def _named_as(array: Any, named: Any) -> Any:
    if not isinstance(array, np.ndarray):
        return array
    made = labelled(array, named)
    if getattr(named, "mixed", None) is not None:
        made = np.asarray(array).view(LabelledArray)
        made.mixed = named.mixed
    return made


def _reduced(made: Any, array: Any, axis: Any, keepdims: bool) -> Any:
    """A sum, maximum or so along some axes: it knows the labels of the others where these are still in their place."""
    if not isinstance(array, LabelledArray) or not isinstance(made, np.ndarray):
        return made
    every = range(array.ndim)
    gone = set(every) if axis is None else {every[k] for k in (axis if isinstance(axis, tuple) else (axis,))}
    if array.mixed is not None:
        return _named_as(made, array) if 0 not in gone else made
    states = None if 0 in gone else array.state_labels
    actions = None if 1 in gone or (0 in gone and not keepdims) else array.action_labels
    return labelled(made, Names(states, actions))


def _bare(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, LabelledArray) else value


def _has_own_rules(value: Any) -> bool:
    """Whether it is one that says itself what sums with it are, as a Series does."""
    return hasattr(value, "__array_ufunc__") and not isinstance(value, np.ndarray | np.generic)


def _is_everything(key: Any) -> bool:
    keys = key if isinstance(key, tuple) else (key,)
    return all(one is Ellipsis or (isinstance(one, slice) and one == slice(None)) for one in keys)


def _common_names(values: Sequence[Any]) -> Any:
    """That of several values whose labels their result has; None if it has none. Labels that differ are an error.
    Positions beside labels mean something where the order was declared; elsewhere the result is mixed."""
    own = [value for value in values if isinstance(value, LabelledArray) and _roles(value)]
    if own and any(map(is_bare_table, values)):
        raise InvalidInput.conflict("table", "needs an index to be combined with an array of labels", None, INDEX)
    unclear = next((value for value in values if getattr(value, "mixed", None) is not None), None)
    first = max(own, key=np.ndim, default=None)
    if first is None or unclear is not None:
        return unclear
    for other in values:
        if other is not first and np.ndim(other) == first.ndim:
            _require_same_names(first, other)
    by_position = any(np.size(value) > 1 and not _roles(value) for value in values)
    derived = any(is_derived(getattr(first, f"{role}_labels")) for role in AXES[: first.ndim])
    if not (by_position and derived):
        return first
    mixed = np.broadcast_to(np.False_, first.shape).view(LabelledArray)
    mixed.mixed = Names(first.state_labels, first.action_labels)
    return mixed


def _roles(value: Any) -> tuple[str, ...]:
    """The axes of which a value knows the labels."""
    return tuple(role for role, labels in zip(AXES, _names_in(value), strict=False) if labels is not None)


def _names_in(value: Any) -> list[Labels]:
    """The labels of each axis of an array of a fit or solution, or of a Series or DataFrame; of others none."""
    if isinstance(value, LabelledArray):
        return [value.state_labels, value.action_labels][: value.ndim]
    index = rows_of(value)
    sides = () if index is None else (index, value.columns) if hasattr(value, "columns") else (index,)
    return [keys_of(side, None) for side in sides]


def names_in(value: Any, argument: str = "array") -> tuple[Names, tuple[str, ...]]:
    """The labels of states and actions that a table knows; and the roles whose axis of a frame counts 0, 1, 2, …, which
    are the labels of a model that has such numbers."""
    require_unmixed(argument, value)
    found = [*_names_in(value), None, None][:2]
    counted = [role for role, labels in zip(AXES, _names_in(value), strict=False) if labels is None]
    return Names(*found), tuple(counted) if rows_of(value) is not None else ()


def _require_same_names(one: LabelledArray, other: Any) -> None:
    for axis, (ours, theirs) in enumerate(zip(_names_in(one), _names_in(other), strict=False)):
        if one.shape[axis] == other.shape[axis] > 1 and not same_labels(ours, theirs):
            raise InvalidInput.conflict(
                f"{AXES[axis]}_labels",
                f"must be the same where arrays are combined elementwise: {listed(ours or ())} and "
                f"{listed(theirs or ())}",
                remedy="Combine frames, which are matched by label (fit.table(...)), or plain arrays (np.asarray) if "
                "positions are meant.",
            )


def label_tables(holder: Any, named: Any, tables: Sequence[str]) -> Any:
    """The same object, frozen or not, whose tables know the labels of `named` and cannot be written to."""
    for name in tables:
        table = getattr(holder, name)
        if isinstance(table, np.ndarray):
            object.__setattr__(holder, name, frozen(labelled(table[...], named)))
    return holder


def reordering(labels: Labels, wanted: Labels) -> Ints | None:
    """Where each of the wanted labels stands among `labels`, if these are the same but for their order; else None."""
    labels, wanted = labels or own_numbers(wanted), wanted or own_numbers(labels)
    if labels is None or wanted is None or len(labels) != len(wanted):
        return None
    turned: tuple[Any, ...] = in_parts_of(wanted, labels)
    if labels == turned:
        return None
    index = locate(turned, labels)
    return None if (index < 0).any() or np.array_equal(index, np.arange(len(index))) else index


def picked(labels: Labels, index: Ints) -> Labels:
    """Labels in another order, which is as declared or derived as it was."""
    if labels is None:
        return None
    return Order((labels[int(k)] for k in index), is_derived(labels), columns_of(labels))


def own_numbers(labels: Labels) -> Labels:
    """What a side without labels calls its states, 0, 1, 2, …, where the labels of the other side are just these
    numbers in another order, as the index of a sorted table is: what is called 2 is 2. None where they are not."""
    if labels is None or not holds_numbers(labels[:2]) or are_positions(labels):
        return None
    numbers = tuple(range(len(labels)))
    return None if (locate(numbers, labels) < 0).any() else numbers


def same_labels(one: Labels, other: Labels) -> bool:
    """Whether positions mean the same: labels are the same, in the same order, or one side has none (and those of the
    other are not the numbers 0, 1, 2, … in another order)."""
    one, other = one or own_numbers(other), other or own_numbers(one)
    if one is None or other is None or one is other:
        return True
    there: tuple[Any, ...] = in_parts_of(other, one)
    return one == there or (
        len(one) == len(there) and all(spell(a) == spell(b) for a, b in zip(one, there, strict=True))
    )


def in_order(
    named: Any,
    value: Any,
    argument: str,
    axes: Sequence[str] = AXES,
    error: type[InvalidInput] = InvalidInput,
    part: bool = False,
) -> Any:
    """A table in the order of `named`, a model or demonstrations: what has labels (an array of a fit or solution, a
    Series or DataFrame) is matched by them; what has none is returned as it is, where positions mean something.

    `axes` are the roles of the axes, as far as there are so many. On a horizon labels may be those of its states, which
    are (time, state), or of the states before unrolling; the table is then one of the base. With `part` an array of a
    fit may know more states and actions than `named` has.
    """
    if is_bare_table(value):
        raise error(
            argument, "an array, or a table whose index has labels", f"a table of {kind_of_table(value)}", None, INDEX
        )
    own = _labels_in(named, value, argument, axes, error)
    if own is None:
        _require_positions(named, shape_of(value), argument, axes, error)
        return value
    array = np.asarray(value)
    for axis, labels in enumerate(own):
        role = axes[axis]
        if array.shape[axis] == 1 and (role == "action" or labels is None):
            continue  # one number for all actions
        wanted = _wanted(named, role, labels) or own_numbers(labels)
        if labels is None or wanted is None:
            _require_positions(named, array.shape, argument, (role,), error, axis)
            if labels is not None:
                require_declared(argument, role, labels, "a model without labels", error)
                _require_ascending(argument, role, value, labels, error)
        elif not same_labels(labels, wanted):
            if role == "state" and array.ndim > axis + 1 and array.shape[axis + 1] > 1:
                _require_same_turns(named, own, argument, error)
            extra = part and isinstance(value, LabelledArray)
            array = _taken(named, array, axis, role, labels, wanted, argument, error, extra)
    return array


def _require_ascending(argument: str, role: str, value: Any, labels: Sequence[Any], error: type[InvalidInput]) -> None:
    """The rows of a table that are numbered otherwise than a model without labels numbers its states are in the order
    of the model only where they have not been sorted by something else."""
    keys = [plain(label) for label in labels]
    if rows_of(value) is None or not all(type(key) in (int, float) for key in keys):
        return
    odd = next((k for k in range(1, len(keys)) if keys[k] < keys[k - 1]), None)
    if odd is not None:
        rule = f"has {role}s labelled {listed(labels)}, and the model has no labels, so they cannot be matched"
        remedy = f"Give the model {role}_labels=[...], or pass table.to_numpy() if its order is the model's."
        raise error.conflict(argument, rule, f"{keys[odd]} after {keys[odd - 1]}", remedy)


def by_parameter(argument: str, given: Any, names: Sequence[str], error: type[InvalidInput] = InvalidInput) -> Any:
    """Numbers that are called by names, in a dict or Series, in the order of the parameters; others as they are."""
    index = list(given) if is_mapping(given) else rows_of(given)
    if index is None or hasattr(given, "columns"):
        return given
    keys = [spell(key) for key in index]
    if are_row_numbers([plain(key) for key in index], tuple(names)):
        return given
    if sorted(keys) != sorted(map(spell, names)):
        known = {spell(name): plain(name) for name in names}
        odd = next((key for key in keys if key not in known), None)
        remedy = None if odd is None else near(odd, names)
        got = f"numbers for {listed(keys)}" if len(keys) <= SHOWN else _miscounted(keys, known, odd)
        raise error(argument, f"a number for each of {listed(names)}", got, remedy=remedy)
    place = locate(names, keys)
    if is_mapping(given):
        numbers = list(given.values())
        return [numbers[k] for k in place]
    return given.to_numpy()[place]


def require_by_name(argument: str, given: Any, names: Sequence[str], error: type[InvalidInput] = InvalidInput) -> None:
    """Parameters without names need an order that somebody declared: those that are called as states are have none
    where the states were sorted."""
    if given is not None and not is_mapping(given) and not isinstance(given, str) and rows_of(given) is None:
        instead = "pass a dict or Series from names to numbers"
        require_declared(argument, "state", names, "numbers without names", error, instead=instead)


def by_id(argument: str, given: Any, ids: Sequence[Any], error: type[InvalidInput] = InvalidInput) -> Any:
    """Numbers of agents in the order of their ids; without ids they need one that was not sorted from data."""
    found = by_parameter(argument, given, ids, error)
    if found is given:
        require_ids(argument, ids, error)
    return found


def _miscounted(keys: Sequence[str], known: dict[str, Any], odd: str | None) -> str:
    """What is wrong with many numbers under these keys: one too many, two under one key, or one that is missing."""
    if odd is not None:
        return f"{len(keys)} numbers, one of them for {odd}"
    twice = next((key for key, n in Counter(keys).items() if n > 1), None)
    if twice is not None:
        return f"{len(keys)} numbers, more than one of them for {twice}"
    return f"{len(keys)} numbers, none for {next(name for name in known if name not in set(keys))}"


def by_column(argument: str, given: Any, names: Sequence[str], error: type[InvalidInput] = InvalidInput) -> Any:
    """A frame with its columns in the order of the parameters or features that they are called by; others as they
    are."""
    if rows_of(given) is None or not hasattr(given, "columns"):
        return given
    place = by_parameter(argument, {name: k for k, name in enumerate(given.columns)}, names, error)
    return given if is_mapping(place) else given.iloc[:, place]


def parameter_named(argument: str, name: Any, names: Sequence[str], error: type[InvalidInput] = InvalidInput) -> int:
    """The place of a parameter; an unknown name is an error that shows the nearest. Where parameters are called as
    states are, 20 is the one called "20"."""
    place = -1 if shape_of(name) else int(locate([name], names)[0])
    if place < 0:
        raise error(argument, f"one of {listed(names)}", shown(plain(name)), remedy=near(name, names))
    return place


def by_position(value: Any) -> bool:
    """Whether what was handed over (a table, a start, a reward model) knows states by position alone."""
    if hasattr(value, "n_params"):
        return getattr(value, "state_labels", None) is None and not getattr(value, "by_label", False)
    if (
        is_mapping(value)
        or isinstance(value, str | tuple)
        or (isinstance(value, LabelledArray) and value.state_labels is not None)
    ):
        return False
    index = rows_of(value)
    if index is not None:
        return keys_of(index, None) is None
    return len(shape_of(value)) > 0


def _wanted(named: Any, role: str, labels: Labels) -> Labels:
    """The labels of the model on an axis; those before unrolling where the labels are such."""
    own, base = getattr(named, f"{role}_labels"), getattr(named, "base", None)
    if base is None or role != "state" or labels is None or labels is own or base.state_labels is None:
        return own
    known = set(map(spell, base.state_labels))
    return base.state_labels if any(spell(label) in known for label in labels) else own


def _require_same_turns(named: Any, own: Sequence[Labels], argument: str, error: type[InvalidInput]) -> None:
    """States may change places beside actions that have no names, unless these are numbered state by state, as the
    turns at the end of a link are: by the order of the states."""
    nameless = getattr(named, "action_labels", None) is None or own[-1] is None
    if nameless and getattr(named, "certain", False):
        rule = "lists the states in a different order and has no action labels, so actions cannot be matched"
        remedy = "Pass the fit or the reward itself (rv.solve(mdp, fit)), or give action labels."
        raise error.conflict(argument, rule, remedy=remedy)


def _taken(
    named: Any,
    array: npt.NDArray[Any],
    axis: int,
    role: str,
    labels: Sequence[Any],
    wanted: Sequence[Any],
    argument: str,
    error: type[InvalidInput],
    part: bool,
) -> npt.NDArray[Any]:
    """The array with an axis in the wanted order; states that end may be missing, and are NaN then. Others may be left
    out where it is a `part`."""
    place = places_by_text(labels)
    if len(place) < len(labels):
        twice = next(label for k, label in enumerate(labels) if place[spell(label)] != k)
        raise error(argument, f"each {role} once", f"{plain(twice)!r} twice")
    if not part:
        find(argument, labels, wanted, what=f"{role}", error=error)  # an unknown one is an error
    index = locate(wanted, labels)
    lost = index < 0
    terminal = getattr(named, "terminal", None)
    if role == "state" and terminal is not None and terminal.shape == lost.shape:
        lost = lost & ~terminal
    if lost.any():
        missing = wanted[int(np.flatnonzero(lost)[0])]
        got = f"none for {int(lost.sum())} of {len(wanted)}"
        raise error(argument, f"a number for every {role}", got, f"{role} {plain(missing)!r}", near(missing, labels))
    taken = np.take(array, index, axis=axis)
    if (index < 0).any():
        taken = taken.astype(np.float64)
        taken[(slice(None),) * axis + (index < 0,)] = np.nan
    return taken


def _labels_in(
    named: Any, value: Any, argument: str, axes: Sequence[str], error: type[InvalidInput]
) -> list[Labels] | None:
    """The labels of each axis that has a role; None where the value has none at all."""
    require_unmixed(argument, value, error)
    if isinstance(value, LabelledArray):
        own = {"state": value.state_labels, "action": value.action_labels}
        if all(labels is None for labels in own.values()):
            return None
        return [own[role] for role in axes[: value.ndim]]
    index = rows_of(value)
    if index is None:
        return None
    sides = [index, value.columns] if hasattr(value, "columns") else [index]
    found = [keys_of(side, _wanted(named, role, None), role) for side, role in zip(sides, axes, strict=False)]
    return None if all(labels is None for labels in found) else found


def keys_of(index: Any, known: Labels, role: str = "state") -> Labels:
    """The labels of an index of pandas; None where it is 0, 1, 2, … and says nothing but the order of the rows."""
    keys = index_keys(index, known, role)
    return None if are_row_numbers(keys, known) else keys


def _require_positions(
    named: Any,
    shape: tuple[int, ...],
    argument: str,
    axes: Sequence[str],
    error: type[InvalidInput],
    first: int = 0,
) -> None:
    for role, size in zip(axes, shape[first:], strict=False):
        labels = getattr(named, f"{role}_labels")
        if is_derived(labels) and size > 1:
            require_declared(argument, role, labels, "an array without labels", error)
