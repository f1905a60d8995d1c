"""How states and actions are called: by their labels where there are any, else by their numbers.

Messages and tables speak of "state 'mid', action 'repair'" where the model or the data know such names. What a user
hands in by name (a start, a state to predict at, a goal) is found here too, by one rule. Where there are labels, what
is one of them is a label, also a whole number. Whole numbers are positions only where no label is a number, and the
order of the labels was declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Bools, Ints, as_list, as_number, is_index, is_mapping, shape_of
from revealed.errors import InvalidDistribution, InvalidInput
from revealed.labels import (
    FEW,
    Order,
    columns_of,
    find,
    holds_numbers,
    in_parts_of,
    index_columns,
    is_derived,
    listed,
    locate,
    plain,
    require_declared,
    require_label,
)
from revealed.voices import Written, arg, either, shown

if TYPE_CHECKING:
    import pandas as pd

Labels = tuple[Any, ...] | None

# where a decision led, and a kernel estimate of transitions: as remedies name them
LED = f"{arg('next_state')}{either(', an argument of from_frame and from_trajectories', '')}"
LED_TO_GOALS = f"Give the states after last decisions ({LED}): the last decision of a trip leads to its goal."
A_KERNEL = either(
    "a kernel over coordinates=", "a kernel (--kernel 1.0, with --features and --coordinates x,y, or with bins)"
)


@dataclass(frozen=True)
class Names:
    """The labels of a model that is still being made."""

    state_labels: Labels
    action_labels: Labels


def require_unmixed(argument: str, value: Any, error: type[InvalidInput] = InvalidInput) -> None:
    """Labels in an order that was sorted were not combined with numbers that stood there by position."""
    mixed = getattr(value, "mixed", None)
    for name, labels in vars(mixed or Names(None, None)).items():
        role = name.removesuffix("_labels")
        require_declared(argument, role, labels, "an array without labels, with which it was combined,", error)


def in_words(role: str, labels: Labels, k: int) -> str:
    """`state 'mid'`, or `state 1` where there are no labels."""
    return f"{role} {int(k) if labels is None else repr(plain(labels[int(k)]))}"


def state_in_words(named: Any, s: int) -> str:
    """A state of a model or of demonstrations: of anything that has `state_labels`."""
    return in_words("state", named.state_labels, s)


def pair_in_words(named: Any, s: int, a: int) -> str:
    """`state 'mid', action 'repair'`."""
    return f"{state_in_words(named, s)}, {in_words('action', named.action_labels, a)}"


def from_one(role: str, labels: Labels, seen: Bools) -> str:
    """The remedy where states or actions look numbered from 1: all of them were seen but 0. Empty where they do not."""
    n = seen.size - 1
    if labels is not None or n < 2 or seen[0] or not seen[1:].all():
        return ""
    listing = arg(f"{role}s", list(range(1, n + 1)) if n <= FEW else Written(f"range(1, {n + 1})"))
    return f"If {role}s are numbered from 1, {either(f'pass {listing}', 'list them in --features or --transitions')}."


def never_left(named: Any, states: Sequence[int] | Ints) -> str:
    """A sentence on states of which T cannot be estimated from what followed them."""
    more = f" ({len(states)} such states)" if len(states) > 1 else ""
    state = state_in_words(named, int(states[0]))
    return f"No transition out of {state} was observed{more}, so there is nothing to smooth."


def unrolled_labels(labels: Labels, layers: int) -> Labels:
    """(time, label) for each state of a horizon, in the order of its states (theory F1)."""
    if labels is None:
        return None
    columns = ("time", *level_names("state", labels))
    return Order(product(range(layers), labels), is_derived(labels), columns)


def places(
    argument: str,
    wanted: Sequence[Any],
    labels: Labels,
    n: int,
    error: type[InvalidInput] = InvalidInput,
    role: str = "state",
    each: str = "label",
) -> Ints:
    """The index of each state (or action) that is named by its label; by its number where there are no labels, or
    where no label could be meant: none of them is a number, and their order was declared."""
    if not all(is_index(one) for one in wanted) or (labels is not None and holds_numbers(labels)):
        return find(argument, wanted, _labels_for(argument, wanted, labels, n, error), each, error)
    index = indices(argument, wanted, n, error, labels)
    if index.size:
        require_label(argument, role, labels, int(index[0]), error)
    return index


def indices(
    argument: str, wanted: Sequence[Any], n: int, error: type[InvalidInput] = InvalidInput, labels: Labels = None
) -> Ints:
    """Whole numbers that are positions, whatever labels there are."""
    bad = next((one for one in wanted if not 0 <= one < n), None)  # before NumPy: it may be beyond its numbers
    if bad is not None:
        known = "" if labels is None else f"one of {listed(labels)}, or "
        raise error(argument, f"{known}indices in 0…{n - 1}", bad)
    return np.array(wanted, dtype=np.intp)


def indices_or_labels(argument: str, wanted: Sequence[Any], labels: Labels, n: int) -> Ints:
    """States that are given by what other functions here found, hence by position, or by labels that are text."""
    inside = all(is_index(one) for one in wanted)
    return indices(argument, wanted, n) if inside else places(argument, wanted, labels, n)


def _labels_for(
    argument: str, wanted: Sequence[Any], labels: Labels, n: int, error: type[InvalidInput]
) -> tuple[Any, ...]:
    if labels is None:
        odd = next(one for one in wanted if not is_index(one))
        raise error(argument, f"indices in 0…{n - 1}, since there are no labels", shown(plain(odd)))
    return labels


def by_name(argument: str, given: Any, labels: Labels, n: int, error: type[InvalidInput] = InvalidInput) -> int:
    """The index of a state, given by its label if there are labels (also if these are whole numbers, such as the ids
    of links), else by its index."""
    if labels is None:
        return int(places(argument, [given], None, n, error)[0])
    return int(find(argument, [given], labels, error=error)[0])


def is_label(value: Any, labels: Labels) -> bool:
    """Whether this is one label: a text, or a tuple, float or truth value that is one of them."""
    if labels is None or isinstance(value, str):
        return isinstance(value, str)
    one = isinstance(value, tuple | bool | np.bool_ | float | np.floating)
    return one and bool(locate([value], labels)[0] >= 0)


def weights_by_name(argument: str, given: Any, labels: Labels, n: int) -> Any:
    """(n,) weights where states are named: one state, or a dict or Series from states to weights; else as given."""
    if is_index(given) or is_label(given, labels):
        given = {given: 1.0}
    named = _as_named(argument, given, labels, n)
    if named is None:
        if not isinstance(given, set | frozenset | type(None)):
            require_declared(argument, "state", labels, "numbers without labels", InvalidDistribution)
        return given
    weights = np.zeros(n)
    index = places(argument, list(named), labels, n, InvalidDistribution)
    np.add.at(weights, index, [_number(argument, key, value) for key, value in named.items()])
    return weights


def _as_named(argument: str, given: Any, labels: Labels, n: int) -> dict[Any, Any] | None:
    """Weights by name; None for what has no names, such as an array, or a Series in the states' own order."""
    if is_mapping(given):
        return dict(given)
    require_unmixed(argument, given, InvalidDistribution)
    own = getattr(given, "state_labels", None)
    if isinstance(own, tuple) and shape_of(given) == (len(own),):  # an array of a fit or solution
        known = own if labels is None else in_parts_of(own, labels)
        return dict(zip(map(plain, known), given.tolist(), strict=True))
    index = rows_of(given)
    if index is None or np.ndim(given) != 1:
        return None
    keys = index_keys(index, labels)
    if len(keys) == n and are_row_numbers(keys, labels):
        return None
    twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None) if len(set(keys)) < len(keys) else None
    if twice is not None:
        raise InvalidDistribution(argument, "each state once", f"{twice!r} twice")
    return dict(zip(keys, np.asarray(given).tolist(), strict=True))


def rows_of(value: Any) -> Any:
    """The index of a Series or DataFrame; None of anything else: that of a list, or a column of Arrow, is a method."""
    index = getattr(value, "index", None)
    return index if hasattr(value, "to_numpy") and not callable(index) else None


def are_row_numbers(keys: Sequence[Any], labels: Labels) -> bool:
    """Whether the index of a frame, 0, 1, 2, …, says nothing but the order of its rows: none of these is a label."""
    if not all(type(key) is int and key == k for k, key in enumerate(keys)):
        return False
    return labels is None or bool((locate(keys, labels) < 0).all())


def _number(argument: str, key: Any, value: Any) -> float:
    number = as_number(value)
    if np.isnan(number):
        expected = "a number for every state named"
        raise InvalidDistribution(argument, expected, shown(value), f"{plain(key)!r}")
    return number


def state_index(mdp: Any) -> pd.Index:
    """The states of a model as an index of pandas, with a level for each part of labels of several columns; on a
    horizon the time stands first."""
    if mdp.base is None:
        return levels_index("state", mdp.state_labels, mdp.n_states)
    states = levels_index("state", mdp.base.state_labels, mdp.base.n_states).take(mdp.base_state)
    time = np.repeat(np.arange(mdp.horizon + 1), mdp.base.n_states)
    return joint_index([("time", time), (None, states)])


def action_index(mdp: Any) -> pd.Index:
    return levels_index("action", mdp.action_labels, mdp.n_actions)


def levels_index(role: str, labels: Labels, n: int) -> pd.Index:
    """Labels or numbers under the name `role`; where all labels are tuples of as many parts, a level for each, called
    as the columns that they stood in (where that is known) or by number."""
    import pandas as pd

    names = level_names(role, labels)
    if labels is None or len(names) == 1:
        return label_index(role, labels, n)
    return pd.MultiIndex.from_arrays(list(zip(*labels, strict=True)), names=list(names))


def level_names(role: str, labels: Labels) -> tuple[str, ...]:
    """What the levels of an index of these labels are called: one, or one for each part of labels that are tuples of as
    many parts."""
    widths = {len(label) if isinstance(label, tuple) else 0 for label in labels or ()}
    if len(widths) != 1 or min(widths) < 2:
        return (role,)
    columns = columns_of(labels)
    return columns if len(columns) == min(widths) else tuple(f"{role}_{k}" for k in range(min(widths)))


def index_keys(index: Any, known: Labels, role: str = "state") -> tuple[Any, ...]:
    """The entries of an index of pandas as labels. Levels with names are matched by them with the columns of known
    labels; on a horizon these are the time and the parts of a label, as tables show them."""
    keys = tuple(plain(key) for key in as_list(index) or ())
    columns = index_columns(index)
    if known is None or not known:
        return Order(keys, columns=columns) if columns else keys
    nested = isinstance(known[0], tuple) and len(known[0]) == 2 and isinstance(known[0][1], tuple)
    names = columns_of(known) if nested else level_names(role, known)
    numbered = ("time", *level_names(role, known[0][1:])) if nested else level_names(role, tuple(known))
    names = numbered if sorted(columns) == sorted(numbered) else names  # of a table whose model knows no names of parts
    if columns and len(names) > 1:
        keys = tuple(in_parts_of(Order(keys, columns=columns), Order((), columns=names)))
    if nested and all(isinstance(key, tuple) and len(key) == 1 + len(known[0][1]) for key in keys):
        keys = tuple((key[0], key[1:]) for key in keys)
    return keys


def pair_keys(index: Any, first: Any, second: Any) -> list[Any]:
    """The entries of an index of pairs, with levels that are called so in the order (first, second)."""
    keys = Order((plain(key) for key in as_list(index) or ()), columns=index_columns(index))
    named = isinstance(first, str) and isinstance(second, str)
    return list(in_parts_of(keys, Order((), columns=(first, second))) if named else keys)


def joint_index(parts: Sequence[tuple[str | None, Any]]) -> pd.MultiIndex:
    """Several indices side by side as one. Each is called by the name beside it; where it has several levels by both
    names, as in origin_x and origin_y; without a name levels keep their own."""
    import pandas as pd

    arrays: list[Any] = []
    names: list[str] = []
    for name, index in parts:
        many = isinstance(index, pd.MultiIndex)
        levels = [index.get_level_values(k) for k in range(index.nlevels)] if many else [index]
        own = [str(name) if name and not many else "_".join(filter(None, (name, str(x.name)))) for x in levels]
        names += [f"state_{each}" if each in names else each for each in own]
        arrays += levels
    return pd.MultiIndex.from_arrays(arrays, names=names)


def label_index(role: str, labels: Labels, n: int) -> pd.Index:
    """Labels or numbers under the name `role`. Labels of several columns stay tuples: one entry per state."""
    import pandas as pd

    if labels is None:
        return pd.RangeIndex(n, name=role)
    return pd.Index(list(labels), name=role, tupleize_cols=False)


def label_array(labels: Labels, index: Any) -> Any:
    """What the indices stand for, as an array of objects of the same shape; the indices where there are no labels."""
    if labels is None:
        return index
    names = np.empty(len(labels), dtype=object)
    for k, label in enumerate(labels):  # one by one: a list of tuples would become a table
        names[k] = plain(label)
    return names[index]
