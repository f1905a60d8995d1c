"""The questions that every door asks: is this a whole number of things, a number at all, an array of numbers?"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from revealed.errors import InvalidInput, InvalidOption

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.intp]


def is_count(value: Any) -> bool:
    """A whole number, at least 1; True and 3.0 are not."""
    return is_index(value) and int(value) >= 1


def is_index(value: Any) -> bool:
    """A whole number; True and 3.0 are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_seed(value: Any) -> bool:
    """What NumPy takes as a seed here: None, or a whole number >= 0."""
    return value is None or (is_index(value) and int(value) >= 0)


def require_count(name: str, value: Any, least: int = 1, error: type[InvalidInput] = InvalidInput) -> None:
    if not is_count(value) or value < least:
        raise error(name, f"a whole number, at least {least}", repr(value))


def require_number(name: str, value: Any) -> float:
    number = as_number(value)
    if not np.isfinite(number):
        raise InvalidInput(name, "a number", repr(value))
    return number


def require_probability(name: str, value: Any) -> None:
    if not 0.0 <= as_number(value) <= 1.0:
        raise InvalidInput(name, "a probability", repr(value))


def require_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidOption(name, "True or False", repr(value))


def require_option(name: str, value: Any, offered: Iterable[str]) -> None:
    """A text among those offered."""
    known = tuple(offered)
    if not isinstance(value, str) or value not in known:
        close = get_close_matches(value, known, 1) if isinstance(value, str) else []
        remedy = f"Did you mean {close[0]}?" if close else None
        raise InvalidOption(name, f"one of {', '.join(known)}", repr(value), remedy=remedy)


def pass_instead(value: Any, *names: str) -> str | None:
    """The remedy where an object came that only holds what was wanted, such as a fit for its reward."""
    return next((f"Pass its `.{name}`." for name in names if hasattr(value, name)), None)


def as_number(value: Any) -> float:
    """The value as a float; NaN where it is none (text, bools, arrays, None)."""
    if isinstance(value, bool | str | bytes):
        return float("nan")
    try:
        return float(value) if np.ndim(value) == 0 else float("nan")
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def as_floats(values: Any) -> Floats | None:
    """A float64 copy of an array, nested sequence or sparse matrix; None where it is not one of real numbers."""
    if values is None:
        return None
    try:
        raw = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
        return np.array(raw, dtype=np.float64) if raw.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def as_list(values: Any) -> list[Any] | None:
    """The values of a sequence, the letters of a text; None where it is neither."""
    try:
        return list(values)
    except TypeError:
        return None
