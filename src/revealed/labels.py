"""Labels of states and actions: kept as they came, matched by their text, named in errors with what was near."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from revealed.checks import Ints
from revealed.errors import InvalidInput

SHOWN = 8
FEW = 4  # in a title
DEEPEST = 8  # tuples within tuples: a label that contains itself has no end
MOST_INDEX = 10**8  # states or actions that are numbered, not named: beyond, it is a name such as a postcode


def plain(label: Any, depth: int = 0) -> Any:
    """A label as Python's own value; those of several columns are tuples."""
    if isinstance(label, tuple | list) and depth < DEEPEST:
        return tuple(plain(part, depth + 1) for part in label)
    return label.item() if isinstance(label, np.generic) and not isinstance(label, np.datetime64) else label


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
    try:
        return str(value)
    except (TypeError, ValueError, IndexError):  # a matrix in pieces cannot be printed, and is no label
        return object.__repr__(value)


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
    close = get_close_matches(wanted, texts, 1)
    return f"Did you mean {close[0]}?" if close else None


def find(
    argument: str,
    wanted: Sequence[Any],
    known: Sequence[Any],
    what: str = "label",
    error: type[InvalidInput] = InvalidInput,
) -> Ints:
    """The place of each wanted label among those known; the first that is not known is an error."""
    place = {spell(label): k for k, label in enumerate(known)}
    codes = np.array([place.get(spell(label), -1) for label in wanted], dtype=np.intp)
    lost = np.flatnonzero(codes < 0)
    if lost.size:
        label = wanted[int(lost[0])]
        where = f"{what} {int(lost[0])}" if len(wanted) > 1 else None
        raise error(argument, f"one of {listed(known)}", repr(plain(label)), where, near(label, known))
    return codes
