"""The two questions that every door asks: is this a whole number of things, and is this a number at all?"""

from __future__ import annotations

from typing import Any

import numpy as np


def is_count(value: Any) -> bool:
    """A whole number, at least 1; True and 3.0 are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 1


def as_number(value: Any) -> float:
    """The value as a float; NaN where it is none (text, bools, arrays, None)."""
    if isinstance(value, bool | str | bytes):
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
