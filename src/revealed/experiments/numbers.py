"""Means over seeds, and numbers as a person would write them."""

from __future__ import annotations

from math import floor, isfinite, log10
from typing import Any

import numpy as np
from scipy.special import stdtrit


def half_width(values: Any) -> float:
    """Half the 95 % interval of a mean, by Student's t over seeds; infinite for a single one."""
    x = np.asarray(values, dtype=np.float64)
    if x.size < 2:
        return np.inf
    return float(stdtrit(x.size - 1, 0.975) * x.std(ddof=1) / np.sqrt(x.size))


def short(value: float, digits: int = 2) -> str:
    """So many digits that count: 420, 0.013, −2e-6; powers of ten only where zeros would be many."""
    if not isfinite(value):
        return "–" if value != value else "∞" if value > 0 else "−∞"
    size = abs(value)
    if size == 0.0:
        return "0"
    size = float(f"{size:.{digits - 1}e}")  # rounded first: 0.0996 to one digit is 0.1
    first = floor(log10(size))
    if first < -4 or first > 5:
        mantissa, _, power = f"{size:.{digits - 1}e}".partition("e")
        text = f"{mantissa}e{int(power)}"
    else:
        text = f"{size:.{max(0, digits - 1 - first)}f}"
    return ("−" if value < 0 else "") + text


def mean_and_half(values: Any) -> str:
    """A mean and half its 95 % interval: 0.42 ± 0.03."""
    return f"{short(float(np.mean(values)), 3)} ± {short(half_width(values))}"


def whole_percent(value: float) -> str:
    """A share in whole percent; 100 only for all and 0 only for nothing."""
    if value != value:
        return "–"
    rounded = round(100 * value)
    if 0.0 < value < 1.0:
        rounded = min(max(rounded, 1), 99)
    return f"{rounded + 0:.0f} %".replace("-", "−")


def short_percent(value: float) -> str:
    """A share in percent without the sign: two digits that count, but at most two after the point."""
    if not isfinite(value):
        return short(value)
    places = 0 if value == 0.0 or abs(value) >= 0.0995 else 1 if abs(value) >= 0.00995 else 2
    return f"{100 * value:.{places}f}".replace("-0.00", "0.00").replace("-", "−")


def percent(value: float) -> str:
    """The same with its sign: 58 %, 2.3 %, 0.14 %."""
    return f"{short_percent(value)} %"
