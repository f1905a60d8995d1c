"""The figures of a fit's report: arrays → figures, and no computation.

Names that came with the data are drawn as they are: a `$` starts no formula, and what the font has no sign for is a
question mark (the tables beside have the name in full).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints
from revealed.fit_report.places import Places
from revealed.labels import spell
from revealed.plots import BLANK, COLORS, RED, add_colorbar, label_axes, plot_plane, plot_states
from revealed.sheet import clean, typeset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT = 10.0
LONGEST_NAME = 28  # characters beside an axis
INK = COLORS[0]
APART = 30.0  # coefficients whose sizes differ by more have each a scale of its own
COLOR_MAP = "viridis"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LARGEST = 220.0  # points²: the mark of the most visited state
MOST_BY_ACTION = 4  # panels of rewards, one for each action


def make_figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


# names


def drawable(label: Any, longest: int = LONGEST_NAME) -> str:
    """A label for a figure: one line, cut, in signs that the font has."""
    text = clean(spell(label))
    known = _characters()
    text = "".join(c if ord(c) in known else "?" for c in text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _characters() -> frozenset[int]:
    """What the font that the host program draws with has a sign for."""
    from matplotlib.font_manager import FontProperties, findfont

    return _characters_of(str(findfont(FontProperties())))


@cache
def _characters_of(font: str) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset(get_font(font).get_charmap())


def _name_rows(ax: Axes, names: Sequence[Any], size: float) -> None:
    ax.set_yticks(range(len(names)), [drawable(name) for name in names], fontsize=size, parse_math=False)


def _name_legend(ax: Axes, names: Sequence[Any], **place: Any) -> None:
    """Texts are set afterwards: matplotlib leaves out names that begin with an underscore."""
    legend = ax.legend(fontsize=0.85 * FONT, **place)
    for text, name in zip(legend.get_texts(), names):
        text.set_parse_math(False)
        text.set_text(drawable(name))


# estimates


def coefficient_figure(names: Sequence[Any], coef: Floats, lower: Floats, upper: Floats) -> tuple[Figure, bool]:
    """Estimates with their intervals (NaN: a point alone), the first on top, and whether each has its own scale."""
    reach = np.nanmax(np.abs([coef, lower, upper]), axis=0)
    known = bool(np.isfinite(lower).any())  # a point alone says nothing on a scale of its own
    scaled = known and bool(reach.max() > APART * max(float(reach.min()), 1e-300))
    unit = np.where(reach > 0.0, reach, 1.0) if scaled else np.ones(coef.size)
    rows = np.arange(coef.size)
    figure = make_figure(8.2 if scaled else 7.2, 1.1 + (0.26 if coef.size <= 12 else 0.2) * coef.size)
    ax = figure.subplots()
    ax.axvline(0.0, color="0.6", linewidth=0.9)
    ax.hlines(rows, lower / unit, upper / unit, color=INK, linewidth=1.6)
    ax.plot(coef / unit, rows, "o", color=INK, markersize=5)
    label_axes(ax, "", FONT, ("relative to the largest of estimate and bounds" if scaled else "estimate", ""))
    _name_rows(ax, names, 0.9 * FONT)
    ax.set_ylim(coef.size - 0.4, -0.6)
    if scaled:
        _write_numbers(ax, coef, lower, upper)
    return figure, scaled


def _write_numbers(ax: Axes, coef: Floats, lower: Floats, upper: Floats) -> None:
    """The numbers themselves to the right: an axis that every row reads otherwise has none."""
    texts = [
        typeset(f"{c:.4g}") + ("" if np.isnan(low) else f"  [{typeset(f'{low:.3g}')}, {typeset(f'{high:.3g}')}]")
        for c, low, high in zip(coef, lower, upper)
    ]
    beside = ax.twinx()
    beside.set_ylim(ax.get_ylim())
    beside.set_yticks(range(coef.size), texts, fontsize=0.9 * FONT, parse_math=False)
    beside.tick_params(length=0)


# choices


def choice_figure(
    predicted: Floats, observed: Floats, visits: Floats, action: Ints, names: Mapping[int, Any]
) -> Figure:
    """Observed frequencies against predicted probabilities; the area of a mark is proportional to the visits.

    A colour and a mark per action where `names` has those drawn; one for all where it has none.
    """
    figure = make_figure(7.2, 5.2)
    ax = figure.subplots()
    right, top = (min(1.03, 1.06 * max(float(values.max()), 1e-9)) for values in (predicted, observed))
    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=0.9, zorder=1)
    area = np.maximum(LARGEST * visits / visits.max(), 3.0)
    groups = [(k, action == k) for k in names] if names else [(0, np.ones(action.size, dtype=bool))]
    for (k, mine), color, marker in zip(groups, COLORS * 2, MARKERS * 2):
        style = {"color": color, "alpha": 0.55, "linewidths": 0.4, "edgecolors": "white", "marker": marker}
        ax.scatter(predicted[mine], observed[mine], s=area[mine], label=f"{k}", zorder=2, **style)
    label_axes(ax, "", FONT, ("predicted probability", "observed frequency"))
    ax.set_xlim(-0.03 * right, right)
    ax.set_ylim(-0.03 * top, top)
    if len(names) > 1:
        _name_legend(ax, list(names.values()), loc="upper left")
        for handle in ax.get_legend().legend_handles:  # pyright: ignore[reportOptionalMemberAccess]
            handle.set_sizes([36.0])  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
    return figure


# the search


def convergence_figure(objective: Floats, gradient: Floats, tol: float | None, marks: Ints) -> Figure:
    """Objective and gradient norm by iteration; dotted lines where an update of π̃ begins."""
    from matplotlib.ticker import MaxNLocator

    figure = make_figure(10.0, 3.4)
    left, right = figure.subplots(1, 2)
    index = np.arange(objective.size)
    style = {"color": INK, "linewidth": 1.4} | ({"marker": "o", "markersize": 3.5} if index.size <= 60 else {})
    left.plot(index, objective, **style)
    right.plot(index, np.where(gradient > 0.0, gradient, np.nan), **style)
    right.set_yscale("log")
    if tol is not None:
        right.axhline(tol, color=RED, linewidth=1.0, linestyle="--", label=f"tolerance {tol:.0e}")
        right.legend(fontsize=0.85 * FONT, loc="best")
    for ax, name in ((left, "objective, per decision"), (right, "norm of the gradient")):
        label_axes(ax, "", FONT, ("iteration", name))
        ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
        for mark in marks:
            ax.axvline(mark, color="0.6", linewidth=0.9, linestyle=":")
    return figure


# states


def states_figure(
    labels: Sequence[Any], rewards: Mapping[str, Floats], value: Floats, along: tuple[str, Floats] | None = None
) -> Figure:
    """Bars over states in their order: a panel for each of the `rewards` (n,) by name, and one for the value.

    States that are bins of one column are called by numbers, their centres: `along` has the column and these (n,).
    """
    panels = {**rewards, "value": value}
    figure = make_figure(10.0, 1.4 + (2.0 if len(panels) < 4 else 1.5) * len(panels))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (name, heights) in zip(axes, panels.items()):
        plot_states(ax, heights, states="", fontsize=FONT, color=INK)
        ax.set_title(drawable(name, 60), loc="left", fontsize=FONT, parse_math=False)
    name = "state" if along is None else f"{along[0]}, centres of bins"
    axes[-1].set_xlabel(drawable(name, 60), fontsize=FONT, parse_math=False)
    if along is None:
        _name_columns(axes[-1], labels)
    else:
        _number_columns(axes[-1], along[1])
    return figure


def _number_columns(ax: Axes, centres: Floats) -> None:
    """Some of the numbers below an axis, with decimals enough to tell neighbours apart."""
    gap = float(np.abs(np.diff(centres)).min(initial=np.inf))
    decimals = int(np.clip(np.ceil(1.0 - np.log10(gap)), 0, 12)) if np.isfinite(gap) else 2
    long = len(f"{np.abs(centres).max():.{decimals}f}") > 12
    names = [f"{c:.6g}" if long else f"{c:.{decimals}f}" for c in centres + 0.0]
    step = -(-centres.size // (12 if max(map(len, names)) <= 7 else 8))
    ax.set_xticks(range(0, centres.size, step), [typeset(name) for name in names[::step]], fontsize=0.9 * FONT)


def _name_columns(ax: Axes, labels: Sequence[Any]) -> None:
    """Labels below an axis: slanted or upright where they need room; in steps where they only count."""
    n, names = len(labels), [drawable(label, 20) for label in labels]
    short = max(map(len, names)) <= 3
    counted = all(isinstance(label, int) for label in labels) and list(labels) == list(range(labels[0], labels[0] + n))
    step = -(-n // 20) if counted else 1
    turned: dict[str, Any] = {} if short and n <= 30 * step else {"rotation": 90} if n > 20 else SLANTED
    size = (0.9 if n <= 20 * step else 0.75) * FONT
    ax.set_xticks(range(0, n, step), names[::step], fontsize=size, parse_math=False, **turned)


SLANTED = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}


def map_figure(places: Places, panels: Mapping[str, tuple[Floats, bool]]) -> Figure:
    """Maps side by side, a panel each: values (n,) of the states that have a place, and whether on a log scale."""
    figure = make_figure(4.0 * len(panels), 3.6)
    grid = places.grid()
    names = drawable(places.names[0]), drawable(places.names[1])
    for ax, (title, (values, log)) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items()):
        if grid is None:
            _scatter(ax, places.xy, values, log)
            label_axes(ax, "", FONT, names)
        else:
            xs, ys, cell = grid
            table = np.full(xs.size * ys.size, np.nan)
            table[cell] = values
            image = plot_plane(ax, table, xs, ys, names=names, cmap=COLOR_MAP, colorbar=False, fontsize=FONT, log=log)
            _colorbar(image, ax)
        ax.set_title(title, fontsize=1.1 * FONT)
        for text in (ax.xaxis.label, ax.yaxis.label):
            text.set_parse_math(False)
        if places.alike:
            ax.set_aspect("equal")
        _whole_ticks(ax, places.xy)
    return figure


def _whole_ticks(ax: Axes, xy: Floats) -> None:
    """Where coordinates are whole numbers, so are the ticks."""
    from matplotlib.ticker import MaxNLocator

    for axis, values in ((ax.xaxis, xy[:, 0]), (ax.yaxis, xy[:, 1])):
        if np.array_equal(values, np.round(values)):
            axis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))


def _colorbar(image: Any, ax: Axes) -> None:
    """As high as the map, whatever its shape."""
    add_colorbar(image, [ax], fontsize=FONT, cax=ax.inset_axes((1.03, 0.0, 0.05, 1.0)))


def _scatter(ax: Axes, xy: Floats, values: Floats, log: bool) -> None:
    from matplotlib.colors import LogNorm

    ax.set_facecolor(BLANK)
    known = np.isfinite(values) & ((values > 0.0) | (not log))
    order = np.argsort(values[known], kind="stable")  # the highest on top
    size = float(np.clip(6000.0 / max(1, len(xy)), 4.0, 90.0))
    norm = LogNorm() if log and known.any() else None
    points = ax.scatter(*xy[known][order].T, c=values[known][order], s=size, cmap=COLOR_MAP, norm=norm, linewidths=0)
    if known.any():
        _colorbar(points, ax)
