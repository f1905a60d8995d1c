"""Labels of states and actions: kept as they came, matched by their text, named in errors with what was near.

The order of labels is *declared* if the user gave it, and *derived* if it was sorted from the data. Positions (rows of
an array, say) mean something in a declared order only: `require_declared` is where that is decided, for every door.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from revealed.checks import Ints
from revealed.errors import InvalidInput

SHOWN = 8
FEW = 4  # in a title
DEEPEST = 8  # tuples within tuples: a label that contains itself has no end
MOST_INDEX = 10**8  # states or actions that are numbered, not named: beyond, it is a name such as a postcode


class Order(tuple[Any, ...]):
    """Labels that know where their order comes from.

    `derived` says that it was sorted from data, so that the user never saw it; labels that are 0, 1, 2, … (or False and
    True) in this order are positions themselves, and so is a single one. `columns` are the names of the columns that
    the parts of labels stood in, where they have several.
    """

    derived: bool
    columns: tuple[str, ...]

    def __new__(cls, labels: Iterable[Any], derived: bool = False, columns: Sequence[str] = ()) -> Order:
        made = super().__new__(cls, labels)
        made.derived = derived and not are_positions(made)
        made.columns = tuple(columns)
        return made


def are_positions(labels: Sequence[Any]) -> bool:
    """Whether labels are their own places: 0, 1, 2, … in this order, False and True, or a single one."""
    n = len(labels)
    if n == 1 or ([spell(label) for label in labels[:2]] == ["False", "True"] and n == 2):
        return True
    return all(spell(label) == str(k) for k, label in enumerate(labels))


def is_derived(labels: Sequence[Any] | None) -> bool:
    """Whether the order of these labels was not declared."""
    return bool(getattr(labels, "derived", False))


def columns_of(labels: Sequence[Any] | None) -> tuple[str, ...]:
    """The columns that the parts of labels stood in, where that is known."""
    return getattr(labels, "columns", ())


def with_columns(labels: tuple[Any, ...] | None, columns: Sequence[Any]) -> tuple[Any, ...] | None:
    """The labels, knowing the columns that their parts stood in."""
    if labels is None or len(columns) < 2:
        return labels
    return Order(labels, is_derived(labels), [str(name) for name in columns])


def require_declared(
    argument: str,
    role: str,
    labels: Sequence[Any] | None,
    got: str = "positions",
    error: type[InvalidInput] = InvalidInput,
    where: str = "the data",
    instead: str = "pass something with labels (a Series or DataFrame)",
) -> None:
    """Positions refer to a declared order: if states or actions (`role`) were sorted from data, values without labels
    cannot be matched with them, and are refused."""
    if labels is None or not is_derived(labels):
        return
    shown = ", ".join(f"{k} = {spell(label)}" for k, label in enumerate(labels[:SHOWN])) + _more(labels)
    raise error.conflict(
        argument,
        f"requires labels of {role}s, because their order was sorted from {where}, not declared: {got} would mean "
        f"{shown}",
        remedy=f"Declare the order of the {role}s where the data are read, {role}s=[{_quoted(labels)}] in the order "
        f"that you mean, or {instead}.",
    )


def _more(labels: Sequence[Any]) -> str:
    return ", …" if len(labels) > SHOWN else ""


def _quoted(labels: Sequence[Any]) -> str:
    return ", ".join(repr(plain(label)) for label in labels[:FEW]) + (", …" if len(labels) > FEW else "")


def holds_numbers(labels: Sequence[Any]) -> bool:
    """Whether some label is a number, or text that reads as one: whole numbers are then labels, never positions."""
    return any(_is_number(plain(label)) for label in labels)


def _is_number(label: Any) -> bool:
    if isinstance(label, bool):
        return False
    if not isinstance(label, str):
        return isinstance(label, int | float)
    try:
        return label[:1] in "+-.0123456789" and bool(label) and float(label) == float(label)
    except ValueError:
        return False


def plain(label: Any, depth: int = 0) -> Any:
    """A label as Python's own value; those of several columns are tuples."""
    if isinstance(label, tuple | list) and depth < DEEPEST:
        return tuple(plain(part, depth + 1) for part in label)
    return label.item() if isinstance(label, np.generic) and not isinstance(label, np.datetime64) else label


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, NaT or pandas' NA, which is neither the same as itself nor another."""
    try:
        return value is None or not bool(value == value)
    except TypeError:
        return True


def spell(label: Any) -> str:
    """The text by which labels are matched: 3 and "3" are the same state, and so are np.int64(3) and 3."""
    return _spelled(plain(label))


def _spelled(value: Any) -> str:
    if not isinstance(value, tuple):
        return _text(value)
    parts = [_spelled(part) for part in value]
    return (
        f"({', '.join(repr(part) if ', ' in part else part for part in parts)})"  # ("a, b", "c") is not ("a", "b, c")
    )


def _text(value: Any) -> str:
    if hasattr(value, "toarray"):  # a sparse matrix is no label, and to print one whose parts do not fit may crash
        return object.__repr__(value)
    return str(value)


def listed(known: Sequence[Any]) -> str:
    """Some of the labels there are, for a message."""
    return ", ".join(spell(label) for label in known[:SHOWN]) + (", …" if len(known) > SHOWN else "")


def in_short(labels: Sequence[Any]) -> str:
    """The first few labels and how many more there are, as part of a title."""
    more = f" and {len(labels) - FEW} more" if len(labels) > FEW else ""
    return ", ".join(spell(label) for label in labels[:FEW]) + more


def how_many(n: int, what: str) -> str:
    """ "1 row", "2 rows", for a message."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def near(label: Any, known: Sequence[Any]) -> str | None:
    """A remedy that names the known label that looks most like this one; None where none does. Whole numbers that look
    alike mean nothing: 140 is no slip of 104."""
    wanted = spell(label)
    texts = [text for text in map(spell, known) if not (wanted.isdecimal() and text.isdecimal())]
    folded = {text.casefold(): text for text in texts}  # Airport is airport in other letters
    close = get_close_matches(wanted, texts, 1) or [
        folded[text] for text in get_close_matches(wanted.casefold(), folded, 1)
    ]
    return f"Did you mean {close[0]}?" if close else None


def places_by_text(labels: Iterable[Any]) -> dict[str, int]:
    """The place of each label by its text."""
    return {spell(label): k for k, label in enumerate(labels)}


def locate(wanted: Iterable[Any], known: Iterable[Any]) -> Ints:
    """The place of each wanted label among those known; −1 for those that are not."""
    place = places_by_text(known)
    return np.array([place.get(spell(label), -1) for label in wanted], dtype=np.intp)


def sorted_labels(labels: Iterable[Any]) -> tuple[Any, ...]:
    """Labels that differ in their text, sorted: by it where they are of several kinds."""
    distinct = {spell(label): label for label in labels}
    try:
        return tuple(sorted(distinct.values()))
    except TypeError:  # numbers in one column, text in the other
        return tuple(distinct[text] for text in sorted(distinct))


def find(
    argument: str,
    wanted: Sequence[Any],
    known: Sequence[Any],
    what: str = "label",
    error: type[InvalidInput] = InvalidInput,
) -> Ints:
    """The place of each wanted label among those known; the first that is not known is an error."""
    codes = locate(wanted, known)
    lost = np.flatnonzero(codes < 0)
    if lost.size:
        label = wanted[int(lost[0])]
        where = f"{what} {int(lost[0])}" if len(wanted) > 1 else None
        raise error(argument, f"one of {listed(known)}", repr(plain(label)), where, near(label, known))
    return codes
