"""What pictures ask of their arguments before anything is drawn: axes, sizes, colours, texts, and numbers to show."""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed.checks import Floats, as_number, is_count, require_flag, require_floats
from revealed.errors import InvalidInput, InvalidOption
from revealed.gates import require_list, require_memory
from revealed.voices import shown


def require_axes(ax: Any, name: str = "ax") -> None:
    """Axes of matplotlib, on a figure."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        remedy = "For example: matplotlib.figure.Figure().subplots()."
        raise InvalidInput(name, "matplotlib axes", type(ax).__name__, remedy=remedy)
    if ax.get_figure(root=True) is None:
        raise InvalidInput(name, "axes on a figure", "axes without a figure")


def require_style(**given: Any) -> None:
    """Texts, sizes, colours and limits, each by its usual name."""
    for name, value in given.items():
        _STYLES[name](name, value)


def _require_words(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise InvalidOption(name, "a string", shown(value))


def _require_points(name: str, value: Any) -> None:
    if not 0.0 < as_number(value) < 1e4:
        raise InvalidOption(name, "a size in points, above 0", shown(value))


def _require_color(name: str, value: Any) -> None:
    from matplotlib.colors import is_color_like

    if not (isinstance(value, str | tuple) and is_color_like(value)):
        raise InvalidOption(name, 'a matplotlib colour, such as "#0072b2" or "0.35"', shown(value))


def _require_colormap(name: str, value: Any) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import Colormap

    if not isinstance(value, Colormap) and not (isinstance(value, str) and value in colormaps):
        raise InvalidOption(name, 'a matplotlib colour map, such as "gray" or "viridis"', shown(value))


def _require_limit(name: str, value: Any) -> None:
    if value is not None and not np.isfinite(as_number(value)):
        raise InvalidOption(name, "None or a number", shown(value))


_STYLES = {
    **dict.fromkeys(("title", "label", "states"), _require_words),
    **dict.fromkeys(("vmin", "vmax", "mark", "truth"), _require_limit),
    **dict.fromkeys(("colorbar", "ordered", "log"), require_flag),
    "fontsize": _require_points,
    "color": _require_color,
    "cmap": _require_colormap,
}


def require_pair(name: str, value: Any, what: str) -> tuple[Any, Any]:
    """Two of something, as (rows, columns)."""
    found = require_list(name, value, f"two {what}")
    if len(found) != 2:
        raise InvalidInput(name, f"two {what}", shown(value))
    return found[0], found[1]


def as_shape(shape: Any) -> tuple[int, int]:
    """(rows, columns) of a grid."""
    rows, columns = require_pair("shape", shape, "whole numbers, (rows, columns)")
    for n in (rows, columns):
        if not is_count(n):
            raise InvalidInput("shape", "two whole numbers, (rows, columns), at least 1 each", shown(shape))
    require_memory("shape", shape, rows * columns)
    return int(rows), int(columns)


def as_heights(name: str, values: Any, expected: str = "numbers") -> Floats:
    """Numbers to be drawn; NaN is a gap."""
    wanted = f"{expected}, at least one, without infinities"
    array = require_floats(name, values, wanted)
    if not array.size or np.isinf(array).any():
        raise InvalidInput(name, wanted, shown(values))
    return array
