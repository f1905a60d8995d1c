"""The figures of a report on trips with goals: arrays → figures, and no computation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from revealed.checks import Floats
from revealed.fit_report.figures import FONT, INK, make_figure
from revealed.plots import RED, label_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from revealed.routes.network import RoadNetwork

MOST_BINS = 40


def use_figure(observed: Floats, expected: Floats, what: str) -> Figure:
    """Observed against expected use on scales of square roots, on which counts scatter alike wherever they are."""
    figure = make_figure(7.2, 5.2)
    ax = figure.subplots()
    top = 1.05 * max(float(observed.max()), float(expected.max()), 1.0)
    ax.plot([0.0, top], [0.0, top], color="0.6", linewidth=0.9, zorder=1)
    style = {"s": 14.0, "color": INK, "alpha": 0.45, "linewidths": 0.0, "zorder": 2}
    ax.scatter(expected, observed, **style)
    for scale, limit, axis in ((ax.set_xscale, ax.set_xlim, ax.xaxis), (ax.set_yscale, ax.set_ylim, ax.yaxis)):
        scale("function", functions=(_root, np.square))
        limit(0.0, top)
        axis.set_ticks(_squares(top))
    label_axes(ax, "", FONT, (f"expected trips per {what}", "observed"))
    return figure


def _root(values: Floats) -> Floats:
    return np.sqrt(np.maximum(values, 0.0))


def _squares(top: float) -> list[float]:
    """Numbers of one digit and zeros whose square roots are about evenly spaced."""
    wanted = (float(f"{value:.0e}") for value in top * np.linspace(0.0, 1.0, 7) ** 2)
    return sorted({value for value in wanted if value <= top})


def likelihood_figure(llf: Floats, decisions: Floats) -> Figure:
    """How probable single trips are: a histogram, and log likelihood against length."""
    from matplotlib.ticker import MaxNLocator

    figure = make_figure(10.0, 3.6)
    left, right = figure.subplots(1, 2)
    _histogram(left, llf)
    label_axes(left, "", FONT, ("log likelihood of a trip", "trips"))
    right.scatter(decisions, llf, s=12.0, color=INK, alpha=0.45, linewidths=0.0)
    label_axes(right, "", FONT, ("decisions of a trip", "log likelihood"))
    right.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    return figure


def _histogram(ax: Axes, values: Floats) -> None:
    known = values[np.isfinite(values)]
    bins = int(np.clip(np.sqrt(known.size), 5, MOST_BINS))
    ax.hist(known, bins=bins, color=INK, alpha=0.85)
    ax.axvline(float(np.median(known)), color=RED, linewidth=1.2, linestyle="--", label="median")
    ax.legend(fontsize=0.85 * FONT, loc="upper left")


def flow_maps(network: RoadNetwork, observed: Floats, expected: Floats) -> Figure:
    """Two maps on one scale."""
    from revealed.routes.maps import draw_flows

    figure = make_figure(11.0, 5.2)
    left, right = figure.subplots(1, 2)
    top = float(max(observed.max(), expected.max()))
    draw_flows(network, observed, left, "observed", most=top, colorbar=False, fontsize=FONT)
    draw_flows(network, expected, right, "expected", most=top, fontsize=FONT)
    return figure
