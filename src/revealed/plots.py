"""Pictures: arrays → axes, and no computation.

Everything is drawn on axes that the caller made, through matplotlib's objects alone: no pyplot, and neither the
backend nor the settings of the host program are touched. `Figure(layout="constrained").subplots()` of
`matplotlib.figure` makes axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.errors import InvalidInput
from revealed.mdp import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.image import AxesImage
    from matplotlib.quiver import Quiver

# (down, right) of each action, in the order of `revealed.environments.ACTIONS`: up, down, left, right, stay
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
RED = "#e8000b"
LONGEST = 0.86  # in cells: the arrow of a policy that is sure of its direction


def plot_grid(
    ax: Axes,
    values: Any,
    shape: tuple[int, int],
    policy: Any = None,
    title: str = "",
    cmap: str = "gray",
    vmin: float | None = None,
    vmax: float | None = None,
    colorbar: bool = True,
    label: str = "",
    fontsize: float = 11.0,
) -> AxesImage:
    """A heat map of one value per state, light where high and dark where low, with red arrows for a policy.

    `values` (S,) and `policy` (S, A) have state = row · columns + column. An arrow points where the next move leads on
    average, and is as long as the policy is decided: nearly a cell for a sure move, a dot where the agent stays or
    every direction is alike. `vmin` and `vmax` fix the colours, `label` names the colour bar, `fontsize` is that of
    the labels in points (the title is a little larger).
    """
    image = ax.imshow(_as_grid(values, shape), cmap=cmap, vmin=vmin, vmax=vmax, interpolation="nearest")
    label_axes(ax, title, fontsize)
    if policy is not None:
        plot_arrows(ax, policy, shape)
    if colorbar:
        add_colorbar(image, [ax], label, fontsize)
    return image


def plot_arrows(ax: Axes, policy: Any, shape: tuple[int, int], color: str = RED) -> Quiver:
    """Arrows of a policy (S, 4) over up, down, left, right, or (S, 5) with stay, one in the middle of each cell."""
    probabilities = _as_policy(policy, shape)
    down, right = (probabilities @ np.array(MOVES[: probabilities.shape[1]])).T * LONGEST
    row, column = np.divmod(np.arange(len(probabilities)), shape[1])
    # rows run downwards on the axes, so "down" is a positive step of y once the angles follow the data
    return ax.quiver(
        column, row, right, down, color=color, pivot="middle", angles="xy", scale_units="xy", scale=1.0,
        units="xy", width=0.09, headwidth=4.2, headlength=4.2, headaxislength=3.8, minlength=1.2,
    )  # fmt: skip


def label_axes(ax: Axes, title: str, fontsize: float = 11.0) -> None:
    """Rows and columns as whole numbers, few enough to read."""
    from matplotlib.ticker import MaxNLocator

    ax.set_title(title, fontsize=1.1 * fontsize)
    ax.set_xlabel("column", fontsize=fontsize)
    ax.set_ylabel("row", fontsize=fontsize)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    ax.tick_params(labelsize=0.9 * fontsize)


def add_colorbar(
    image: AxesImage, axes: Sequence[Axes], label: str = "", fontsize: float = 11.0, **place: Any
) -> Colorbar:
    """One colour bar for the axes that share a scale; its ends are pointed where values lie beyond the colours."""
    figure = axes[0].get_figure(root=True)
    if figure is None:
        raise InvalidInput("ax", "axes on a figure", "axes without one")
    bar = figure.colorbar(image, ax=list(axes), **place)
    bar.set_label(label, fontsize=fontsize)
    bar.ax.tick_params(labelsize=0.9 * fontsize)
    return bar


def _as_grid(values: Any, shape: tuple[int, int]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.size != shape[0] * shape[1]:
        raise InvalidInput("values", f"one value per cell of {shape[0]} × {shape[1]}", f"shape {array.shape}")
    return array.reshape(shape)


def _as_policy(policy: Any, shape: tuple[int, int]) -> Floats:
    array = np.asarray(policy, dtype=np.float64)
    n = shape[0] * shape[1]
    if array.shape not in ((n, 4), (n, 5)):
        raise InvalidInput("policy", f"shape ({n}, 4) or ({n}, 5): up, down, left, right, stay", f"shape {array.shape}")
    return array
