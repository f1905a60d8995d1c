"""How states and actions are called: by their labels where there are any, else by their numbers.

Messages and tables speak of "state 'mid', action 'repair'" where the model or the data know such names. What a user
hands in by name (a start, a state to predict at) is found here too. Whole numbers are always indices; a label that is a
whole number itself goes in as text, since labels are matched by their text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Ints, as_number, is_index
from revealed.errors import InvalidDistribution, InvalidInput
from revealed.labels import find, plain, spell

if TYPE_CHECKING:
    import pandas as pd

Labels = tuple[Any, ...] | None


@dataclass(frozen=True)
class Names:
    """The labels of a model that is still being made."""

    state_labels: Labels
    action_labels: Labels


def in_words(role: str, labels: Labels, k: int) -> str:
    """`state 'mid'`, or `state 1` where there are no labels."""
    return f"{role} {int(k) if labels is None else repr(plain(labels[int(k)]))}"


def state_in_words(named: Any, s: int) -> str:
    """A state of a model or of demonstrations: of anything that has `state_labels`."""
    return in_words("state", named.state_labels, s)


def pair_in_words(named: Any, s: int, a: int) -> str:
    """`state 'mid', action 'repair'`."""
    return f"{state_in_words(named, s)}, {in_words('action', named.action_labels, a)}"


def never_left(named: Any, states: Sequence[int] | Ints) -> str:
    """A sentence on states of which T cannot be estimated from what followed them."""
    more = f" ({len(states)} such states)" if len(states) > 1 else ""
    return f"Nobody was seen to leave {state_in_words(named, int(states[0]))}{more}, so that smoothing cannot fill it."


def unrolled_labels(labels: Labels, layers: int) -> Labels:
    """(time, label) for each state of a horizon, in the order of its states (theory F1)."""
    return None if labels is None else tuple(product(range(layers), labels))


def places(
    argument: str, wanted: Sequence[Any], labels: Labels, n: int, error: type[InvalidInput] = InvalidInput
) -> Ints:
    """The index of each state that is named by its number or, where there are labels, by its label."""
    if all(is_index(one) for one in wanted):
        bad = next((one for one in wanted if not 0 <= one < n), None)
        if bad is not None:
            remedy = None if labels is None else "Labels that are whole numbers go in as text."
            raise error(argument, f"indices in 0…{n - 1}", bad, remedy=remedy)
        return np.array(wanted, dtype=np.intp)
    if labels is None:
        odd = next(one for one in wanted if not is_index(one))
        raise error(argument, f"indices in 0…{n - 1}: there are no labels", repr(plain(odd)))
    return find(argument, wanted, labels, error=error)


def by_name(argument: str, given: Any, labels: Labels, n: int, error: type[InvalidInput] = InvalidInput) -> int:
    """The index of a state that is known by its name: its label where there are labels, even one that is a whole
    number, as ids of links are; its index where there are none."""
    if labels is None:
        return int(places(argument, [given], None, n, error)[0])
    return int(find(argument, [given], labels, error=error)[0])


def is_label(value: Any, labels: Labels) -> bool:
    """Whether this is one label: a text, or a tuple that is written like one of them."""
    if labels is None:
        return isinstance(value, str)
    return isinstance(value, str) or (isinstance(value, tuple) and spell(value) in map(spell, labels))


def weights_by_name(argument: str, given: Any, labels: Labels, n: int) -> Any:
    """(n,) weights where states are named: one state, or a dict or Series from states to weights; else as given."""
    if is_index(given) or is_label(given, labels):
        given = {given: 1.0}
    named = _as_named(argument, given, n)
    if named is None:
        return given
    weights = np.zeros(n)
    index = places(argument, list(named), labels, n, InvalidDistribution)
    np.add.at(weights, index, [_number(argument, key, value) for key, value in named.items()])
    return weights


def _as_named(argument: str, given: Any, n: int) -> dict[Any, Any] | None:
    """Weights by name; None for what has no names, such as an array, or a Series in the states' own order."""
    if isinstance(given, Mapping):
        return dict(given)
    index = getattr(given, "index", None)
    if index is None or callable(index) or not hasattr(given, "to_numpy") or np.ndim(given) != 1:
        return None
    keys = [plain(key) for key in index]
    if keys == list(range(n)):
        return None
    twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None) if len(set(keys)) < len(keys) else None
    if twice is not None:
        raise InvalidDistribution(argument, "every state named once", f"{twice!r} twice")
    return dict(zip(keys, given.to_numpy().tolist(), strict=True))


def _number(argument: str, key: Any, value: Any) -> float:
    number = as_number(value)
    if np.isnan(number):
        expected = "a number for every state that is named"
        raise InvalidDistribution(argument, expected, repr(value)[:60], f"{plain(key)!r}")
    return number


def state_index(mdp: Any) -> pd.Index:
    """The states of a model as an index of pandas; on a horizon time and state stand apart."""
    import pandas as pd

    if mdp.base is None:
        return label_index("state", mdp.state_labels, mdp.n_states)
    labels = mdp.base.state_labels or range(mdp.base.n_states)
    time = np.repeat(np.arange(mdp.horizon + 1), len(labels))
    state = label_index("state", tuple(labels), len(labels)).take(mdp.base_state)
    return pd.MultiIndex.from_arrays([time, state], names=["time", "state"])


def action_index(mdp: Any) -> pd.Index:
    return label_index("action", mdp.action_labels, mdp.n_actions)


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
