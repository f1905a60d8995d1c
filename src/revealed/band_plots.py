"""Pictures of what is not known for sure: curves in their bands, marks with their bars, an estimate on its curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.plots import COLORS, RED, label_axes, name_states

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES = ("-", "--", "-.", ":")  # curves can be told apart without colour, too
MARKS = ("o", "s", "^", "D")
SPREAD = 0.22  # of the room of a state: its marks stand side by side

Curves = Mapping[str, tuple[Any, Any, Any]]  # values, lower and upper by name; bounds may be None


def plot_bands(
    ax: Axes,
    x: Any,
    curves: Curves,
    title: str = "",
    label: str = "",
    states: str = "state",
    fontsize: float = 11.0,
    colors: Sequence[str] = ("0.35", RED, *COLORS),
) -> None:
    """Curves over `x`, each in its band."""
    for (name, (values, lower, upper)), color, dashes in zip(curves.items(), colors, DASHES * 4, strict=False):
        if lower is not None and upper is not None:
            ax.fill_between(x, lower, upper, color=color, alpha=0.18, linewidth=0)
        ax.plot(x, values, color=color, linewidth=1.6, linestyle=dashes, label=name)
    label_axes(ax, title, fontsize, (states, label))
    ax.margins(x=0.01)
    if len(curves) > 1:
        ax.legend(fontsize=0.85 * fontsize, loc="best")


def plot_marks(
    ax: Axes,
    curves: Curves,
    names: Sequence[Any] | None = None,
    title: str = "",
    label: str = "",
    states: str = "state",
    fontsize: float = 11.0,
    colors: Sequence[str] = ("0.35", RED, *COLORS),
) -> None:
    """The same over states that have no order: a mark with a bar for each, side by side over the state's number, or
    over its name where `names` are given."""
    places = SPREAD * (np.arange(len(curves)) - (len(curves) - 1) / 2) / max(1, len(curves) - 1)
    for (name, (values, *bounds)), color, mark, shift in zip(curves.items(), colors, MARKS * 4, places, strict=False):
        at = np.arange(len(values)) + shift
        if bounds[0] is not None and bounds[1] is not None:
            ax.vlines(at, *bounds, color=color, linewidth=1.2, alpha=0.7)
        ax.plot(at, values, mark, color=color, markersize=4, label=name)
    label_axes(ax, title, fontsize, (states, label))
    ax.margins(x=0.02)
    if names is not None:
        name_states(ax, names, fontsize)
    if len(curves) > 1:
        ax.legend(fontsize=0.85 * fontsize, loc="best")


def plot_demand(
    ax: Axes,
    values: Any,
    frequency: Any,
    band: tuple[Any, Any] | None = None,
    mark: tuple[float, float, float, float] | None = None,
    title: str = "",
    names: tuple[str, str] = ("parameter", "frequency"),
    level: float = 0.95,
    fontsize: float = 11.0,
) -> None:
    """How often an action is taken against a parameter, with a `band` (lower, upper).

    `mark` (estimate, lower, upper, frequency) is a dot where the data put the parameter, with a horizontal bar for its
    confidence interval. `names` are those of x and y.
    """
    percent = f"{100 * level:g} %"
    if band is not None:
        ax.fill_between(values, *band, color="0.35", alpha=0.22, linewidth=0, label=f"{percent} band")
    ax.plot(values, frequency, color="0.2", linewidth=1.6)
    if mark is not None:
        _mark_estimate(ax, mark, percent)
    label_axes(ax, title, fontsize, names)
    ax.set_ylim(bottom=0.0)
    ax.margins(x=0.02)
    if band is not None or mark is not None:
        ax.legend(fontsize=0.85 * fontsize, loc="best")


def _mark_estimate(ax: Axes, mark: tuple[float, float, float, float], percent: str) -> None:
    """A dot at the estimate, and a bar with ends where its interval is known."""
    x, low, high, y = mark
    known = bool(np.isfinite([low, high]).all())
    if known:
        ax.plot([low, high], [y, y], "|-", color=RED, linewidth=1.4, markersize=8)
    ax.plot([x], [y], "o", color=RED, markersize=5, label="estimate" + (f", {percent} interval" if known else ""))
