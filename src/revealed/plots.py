"""Pictures: arrays → axes, and no computation.

Everything is drawn on axes that the caller made, through matplotlib's objects alone: no pyplot, and neither the
backend nor the settings of the host program are touched. `Figure(layout="constrained").subplots()` of
`matplotlib.figure` makes axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from revealed.checks import as_floats, as_list, as_number, is_mapping
from revealed.errors import InvalidInput
from revealed.gates import require_list, require_text
from revealed.labels import locate, require_declared, spell
from revealed.mdp import Floats
from revealed.naming import Names
from revealed.plot_checks import as_heights, as_shape, require_axes, require_pair, require_style
from revealed.positions import in_order, labelled, names_in
from revealed.voices import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import QuadMesh
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.quiver import Quiver

# (down, right) of each move on a grid
MOVES: dict[str, tuple[int, int]] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1), "stay": (0, 0)}
RED = "#e8000b"
BLANK = "#b7d3ea"  # where there is no value: a colour that no grey can be taken for
# of objects on a grid; distinct for colour-blind readers (after Okabe and Ito)
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000")
MOST_MARKS = 40
LONGEST_NAME = 20  # characters below an axis
WIDE = 2.0  # with so many more columns than rows a map is too low for a colour bar at its side
ARROW = {
    "pivot": "middle",
    "angles": "xy",
    "scale_units": "xy",
    "scale": 1.0,
    "minlength": 1.2,
    "headwidth": 4.2,
    "headlength": 4.2,
    "headaxislength": 3.8,
}
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
    actions: Sequence[Any] | None = None,
    log: bool = False,
) -> AxesImage:
    """A heat map of one value per state, light where high and dark where low, with red arrows for a policy.

    `values` (S,) and `policy` (S, A) have state = row · columns + column. An arrow points where the next move leads on
    average, and is the longer the surer the policy is: nearly a cell for a certain move, a dot where the agent stays or
    every direction is alike. `actions` names the policy's columns where they are not up, down, left, right, stay in
    this order. `vmin` and `vmax` fix the colours, `log` makes them logarithmic (for visits), `label` names the colour
    bar, `fontsize` is that of the labels in points. Cells without a value (NaN) are blue.
    """
    require_axes(ax)
    require_style(title=title, cmap=cmap, vmin=vmin, vmax=vmax, colorbar=colorbar, label=label, fontsize=fontsize)
    require_style(log=log)
    shape = as_shape(shape)
    table = _as_grid(values, shape)
    policy = _beside(policy, names_in(values)[0].state_labels)
    ax.set_facecolor(BLANK)
    image = ax.imshow(table, cmap=cmap, norm=_norm(table, vmin, vmax, log), interpolation="nearest")
    label_axes(ax, title, fontsize)
    _number_cells(ax)
    if policy is not None:
        plot_arrows(ax, policy, shape, actions=actions)
    if colorbar:
        _colorbar_beside(image, ax, label, fontsize, shape[0] / shape[1])
    return image


def plot_arrows(
    ax: Axes, policy: Any, shape: tuple[int, int], color: str = RED, actions: Sequence[Any] | None = None
) -> Quiver:
    """Arrows of a policy over up, down, left, right (and stay), one in the middle of each cell.

    With `actions`, the policy's columns are found by these names, in any order; other actions are not drawn.
    """
    require_axes(ax)
    require_style(color=color)
    shape = as_shape(shape)
    probabilities, moves = _as_policy(policy, shape, actions)
    down, right = (probabilities @ np.array(moves, dtype=np.float64)).T * LONGEST
    row, column = np.divmod(np.arange(len(probabilities)), shape[1])
    acts = probabilities.any(axis=1)  # nobody acts in a terminal state
    width = 0.09 * min(1.0, max(shape) / 12)  # on a small grid cells are large
    # rows run downwards on the axes, so "down" is a positive step of y once the angles follow the data
    place = (column[acts], row[acts], right[acts], down[acts])
    return ax.quiver(*place, color=color, units="xy", width=width, **ARROW)


def plot_objects(ax: Axes, objects: Any, colors: Sequence[str] = COLORS) -> None:
    """Objects (n, 4) of row, column, inner and outer colour: a disc of the inner colour in a ring of the outer one."""
    require_axes(ax)
    row, column, inner, outer = _as_objects(objects).T
    colors = require_list("colors", colors, "colours, at least one")
    for color in colors or [None]:
        require_style(color=color)
    for color, size in ((outer, 0.62), (inner, 0.32)):
        _discs(ax, column, row, [str(colors[c % len(colors)]) for c in color], size)
    _name_colors(ax, [str(colors[c % len(colors)]) for c in np.unique(outer)], np.unique(outer))


def _as_objects(objects: Any) -> Any:
    """(n, 4) whole numbers."""
    array = as_floats(objects)
    if array is None or array.ndim != 2 or array.shape[1] != 4 or not (array == np.floor(array)).all():
        got = type(objects).__name__ if array is None else f"shape {array.shape}"
        raise InvalidInput("objects", "whole numbers of shape (n, 4): row, column, inner and outer colour", got)
    return array.astype(np.intp)


def _name_colors(ax: Axes, colors: list[str], numbers: Any) -> None:
    """Which outer colour is which, below the label of the axis (34 points below the axes, whatever their size)."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    handles = [Line2D([], [], color=c, marker="o", linestyle="", markersize=6) for c in colors]
    figure = ax.get_figure(root=True)
    below = ax.transAxes if figure is None else ax.transAxes + ScaledTranslation(0, -34 / 72, figure.dpi_scale_trans)
    style = {"ncols": 4, "frameon": False, "fontsize": 8, "handletextpad": 0.1, "columnspacing": 0.8}
    names = [f"colour {n}" for n in numbers]
    ax.legend(handles, names, loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=below, **style)


def _discs(ax: Axes, x: Any, y: Any, colors: list[str], size: float) -> None:
    from matplotlib.collections import EllipseCollection

    place = {"units": "xy", "offsets": np.column_stack([x, y]), "offset_transform": ax.transData, "zorder": 3}
    style = {"facecolors": colors, "edgecolors": "white", "linewidths": 0.4}
    ax.add_collection(EllipseCollection([size], [size], [0.0], **place, **style))


def plot_plane(
    ax: Axes,
    values: Any,
    x: Any,
    y: Any,
    push: Any = None,
    names: tuple[str, str] = ("x", "y"),
    title: str = "",
    cmap: str = "gray",
    vmin: float | None = None,
    vmax: float | None = None,
    colorbar: bool = True,
    label: str = "",
    fontsize: float = 11.0,
    mark: float | None = None,
    log: bool = False,
) -> QuadMesh:
    """A heat map over two continuous coordinates, as of Mountain Car: state = index in `x` · len(y) + index in `y`.

    `push` (S,) in [−1, 1] is drawn as red arrows to the left and right on some of the nodes; `mark` is a vertical
    line at one x (the goal).
    """
    require_axes(ax)
    require_style(title=title, cmap=cmap, vmin=vmin, vmax=vmax, colorbar=colorbar, label=label, fontsize=fontsize)
    require_style(mark=mark, log=log)
    names = require_pair("names", names, "strings, for x and y")
    xs, ys = _as_nodes("x", x), _as_nodes("y", y)
    table = _as_grid(values, (xs.size, ys.size))
    ax.set_facecolor(BLANK)
    norm = _norm(table, vmin, vmax, log)
    image = ax.pcolormesh(xs, ys, table.T, cmap=cmap, norm=norm, shading="nearest", rasterized=True)
    if push is not None:
        _plot_pushes(ax, _as_grid(push, table.shape), xs, ys)
    if mark is not None:
        ax.axvline(mark, color=RED, linewidth=1.2, linestyle=(0, (4, 2)))
    label_axes(ax, title, fontsize, names)
    if colorbar:
        _colorbar_beside(image, ax, label, fontsize)
    return image


def _as_nodes(name: str, values: Any) -> Floats:
    """Coordinates along an axis, in order."""
    nodes = as_heights(name, values).reshape(-1)
    if not (np.diff(nodes) > 0.0).all():
        raise InvalidInput(name, "increasing numbers", shown(values))
    return nodes


def _plot_pushes(ax: Axes, push: Floats, x: Floats, y: Floats, most: int = 18) -> None:
    """Arrows at about `most` nodes along each axis: one on every node could not be told apart."""
    i, j = (np.unique(np.linspace(0, u.size - 1, min(most, u.size)).round().astype(int)) for u in (x, y))
    X, Y = np.meshgrid(x[i], y[j], indexing="ij")
    length = 0.9 * (x[-1] - x[0]) / i.size * push[np.ix_(i, j)]
    ax.quiver(X, Y, length, np.zeros_like(length), color=RED, units="width", width=0.005, **ARROW)


def plot_states(
    ax: Axes,
    values: Any,
    policy: Any = None,
    title: str = "",
    label: str = "",
    actions: Sequence[Any] | None = None,
    states: str = "state",
    fontsize: float = 11.0,
    color: str = "0.35",
    ordered: bool = False,
    names: Sequence[Any] | None = None,
) -> None:
    """One value per state as bars over the states' numbers and, on a second axis, the probabilities of actions.

    For worlds whose states have no place on a map. `policy` (S, A) is drawn in red, with a mark per state and action,
    or a line per action where the states are `ordered`; only four actions can be told apart, and no marks among more
    than 40 states. `names` are written below the bars of at most as many states.
    """
    require_axes(ax)
    require_style(title=title, label=label, states=states, fontsize=fontsize, color=color, ordered=ordered)
    policy = _beside(_beside(policy, names_in(values)[0].state_labels), names, actions)
    heights = as_heights("values", _beside(values, names)).reshape(-1)
    index = np.arange(heights.size)
    edges = np.arange(heights.size + 1) - 0.5
    floor = _floor(heights)
    shown = np.where(np.isnan(heights), floor, heights)
    ax.stairs(shown, edges, baseline=floor, fill=True, color=color, alpha=0.75, linewidth=0)
    label_axes(ax, title, fontsize, (states, label))
    ax.margins(x=0.01)
    if names is not None and heights.size <= MOST_MARKS:
        name_states(ax, names, fontsize)
    policy = None if policy is None else _as_choices(policy, heights.size)
    if policy is not None and (ordered or heights.size <= MOST_MARKS):
        _plot_probabilities(ax, index, policy, actions, fontsize, ordered)


def _beside(table: Any, states: Any = None, actions: Any = None) -> Any:
    """A table with labels in the order of names, where these are the same; by position beside other names, which say
    how states are to be called."""
    own = names_in(table)[0]
    if own.state_labels is None and own.action_labels is None:
        return table
    wanted = Names(_shared(states, own.state_labels), _shared(actions, own.action_labels))
    return labelled(in_order(wanted, table, "names"), wanted)


def _shared(names: Any, labels: Any) -> Any:
    given = None if names is None or labels is None else as_list(names)
    return tuple(given) if given and (locate(labels or (), given) >= 0).any() else labels


def _as_choices(policy: Any, n: int) -> Floats:
    array = as_heights("policy", policy, "probabilities")
    if array.ndim != 2 or array.shape[0] != n:
        raise InvalidInput("policy", f"shape ({n}, A), a row per state", f"shape {array.shape}")
    return array


def name_states(ax: Axes, names: Sequence[Any], fontsize: float) -> None:
    """Names as they are (a $ starts no formula), long ones cut, slanted so that they do not run into each other."""
    require_axes(ax)
    require_style(fontsize=fontsize)
    names = require_list("names", names, "names of states")
    texts = [spell(name) for name in names]
    short = [t if len(t) <= LONGEST_NAME else t[: LONGEST_NAME - 1] + "…" for t in texts]
    size = (0.9 if len(names) <= 20 else 0.75) * fontsize
    slant: dict[str, Any] = (
        {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if len(names) <= 20 else {"rotation": 90}
    )
    ax.set_xticks(range(len(names)), short, fontsize=size, parse_math=False, **slant)


def _floor(heights: Floats) -> float:
    """Where bars begin: at zero, or just below the lowest where zero is so far off that all would look alike."""
    low, high = float(np.nanmin(heights)), float(np.nanmax(heights))
    far = max(abs(low), abs(high))
    alike = low * high > 0.0 and 0.0 < high - low < 0.3 * far
    return low - 0.1 * (high - low) if alike else 0.0


def _plot_probabilities(
    ax: Axes, index: Any, policy: Floats, actions: Sequence[Any] | None, fontsize: float, ordered: bool
) -> None:
    beside = ax.twinx()
    names = [f"action {a}" for a in range(policy.shape[1])] if actions is None else _as_actions(actions, policy)
    styles = ("-", "--", "-.", ":") if ordered else ("o", "^", "s", "x")
    for a, style in zip(range(policy.shape[1]), styles, strict=False):
        beside.plot(index, policy[:, a], style, color=RED, linewidth=1.4, markersize=3.5, label=names[a])
    beside.set_ylim(0.0, max(1e-9, 1.08 * float(policy[:, :4].max(initial=0.0))))
    alone = policy.shape[1] == 1
    beside.set_ylabel(f"probability of {names[0]}" if alone else "probability", fontsize=fontsize, color=RED)
    beside.tick_params(labelsize=0.9 * fontsize, colors=RED)
    if not alone:
        beside.legend(fontsize=0.85 * fontsize, loc="best")


def _as_actions(actions: Any, policy: Floats) -> list[str]:
    names = [str(a) for a in require_list("actions", actions, "names of actions")]
    if len(names) != policy.shape[1]:
        raise InvalidInput("actions", f"{policy.shape[1]} names, one per column of the policy", f"{len(names)}")
    return names


def plot_estimates(ax: Axes, draws: Mapping[str, Any], truth: float, title: str = "", fontsize: float = 11.0) -> None:
    """Estimates of one parameter by several methods, one line each: median, half of them, nine in ten; the truth."""
    require_axes(ax)
    require_style(title=title, fontsize=fontsize, truth=truth)
    if truth is None or not is_mapping(draws):
        raise InvalidInput("draws, truth", "a dict from methods to their estimates, and a number", shown(draws))
    told = {str(name): as_floats(values) for name, values in draws.items()}
    for row, (name, values) in enumerate(told.items()):
        if values is None:
            raise InvalidInput("draws", "numbers for each method", shown(draws), name)
        if values.size:
            low, left, middle, right, high = np.percentile(values, (5, 25, 50, 75, 95))
            ax.plot([low, high], [row, row], color=COLORS[0], linewidth=1.2)
            ax.plot([left, right], [row, row], color=COLORS[0], linewidth=6.0, alpha=0.5, solid_capstyle="butt")
            ax.plot(middle, row, "o", color=COLORS[0], markersize=5.0)
    ax.axvline(truth, color=RED, linewidth=1.0)
    ax.set_yticks(range(len(draws)), list(draws), fontsize=0.9 * fontsize)
    ax.set_ylim(len(draws) - 0.5, -0.5)
    ax.set_title(title, fontsize=fontsize)


def own_axes(ax: Axes | None, size: tuple[float, float] = (5.4, 3.4)) -> tuple[Figure, Axes]:
    """The axes given and their figure, or one of our own."""
    from matplotlib.figure import Figure

    if ax is None:
        for side in require_pair("size", size, "numbers of inches, width and height"):
            if not 0.0 < as_number(side) < 1e3:
                raise InvalidInput("size", "a width and a height in inches, above 0", shown(size))
        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.subplots()
    require_axes(ax)
    return cast("Figure", ax.get_figure(root=True)), ax


def label_axes(ax: Axes, title: str, fontsize: float = 11.0, names: tuple[str, str] = ("column", "row")) -> None:
    """The title and what runs along x and y."""
    require_axes(ax)
    require_style(title=title, fontsize=fontsize)
    names = require_pair("names", names, "strings, for x and y")
    for name in names:
        require_text("names", name, "two strings, for x and y")
    ax.set_title(title, fontsize=1.1 * fontsize)
    ax.set_xlabel(names[0], fontsize=fontsize)
    ax.set_ylabel(names[1], fontsize=fontsize)
    ax.tick_params(labelsize=0.9 * fontsize)


def _number_cells(ax: Axes) -> None:
    """Rows and columns as whole numbers, few enough to read."""
    from matplotlib.ticker import MaxNLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=4, integer=True, min_n_ticks=1))


def add_colorbar(
    image: ScalarMappable, axes: Sequence[Axes], label: str = "", fontsize: float = 11.0, **place: Any
) -> Colorbar:
    """One colour bar for the axes that share a scale; its ends are pointed where values lie beyond the colours."""
    axes = _as_several(image, axes)
    require_style(label=label, fontsize=fontsize)
    place.setdefault("extend", _beyond(image))
    figure = cast("Figure", axes[0].get_figure(root=True))
    try:
        bar = figure.colorbar(image, ax=None if "cax" in place else axes, **place)
    except Exception as error:  # matplotlib's own options, which it checks in many ways
        raise InvalidInput("add_colorbar", "options of Figure.colorbar", " ".join(str(error).split())[:200]) from error
    bar.set_label(label, fontsize=fontsize)
    bar.ax.tick_params(labelsize=0.9 * fontsize)
    return bar


def _as_several(image: Any, axes: Any) -> list[Axes]:
    """The axes that share a scale; `image` is what was drawn on one of them."""
    from matplotlib.cm import ScalarMappable

    if not isinstance(image, ScalarMappable):
        raise InvalidInput("image", "what imshow or pcolormesh returned", type(image).__name__)
    found = require_list("axes", axes, "a list of matplotlib axes")
    if not found:
        raise InvalidInput("axes", "at least one", "none")
    for ax in found:
        require_axes(ax, "axes")
    return found


def _colorbar_beside(image: ScalarMappable, ax: Axes, label: str, fontsize: float, tall: float = 1.0) -> None:
    """A colour bar as high as the map it belongs to, also in a row of panels; below a map that is very wide."""
    if tall * WIDE < 1.0:
        add_colorbar(image, [ax], label, fontsize, location="bottom", aspect=40)
    else:
        width = max(1.0, tall)
        add_colorbar(image, [ax], label, fontsize, cax=ax.inset_axes((1.0 + 0.03 * width, 0.0, 0.05 * width, 1.0)))


def _beyond(image: ScalarMappable) -> Any:
    """At which ends values lie beyond the colours."""
    values, (low, high) = np.ma.masked_invalid(np.ma.asarray(image.get_array())), image.get_clim()
    if values.count() == 0 or low is None or high is None:
        return "neither"
    below, above = bool(values.min() < low), bool(values.max() > high)
    return {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}[below, above]


def _norm(table: Floats, vmin: float | None, vmax: float | None, log: bool) -> Normalize:
    """From numbers to brightness. Logarithms end at most four powers of ten below the largest."""
    from matplotlib.colors import LogNorm, Normalize

    if not log:
        return Normalize(vmin, vmax)
    top = float(np.nanmax(table)) if vmax is None else vmax
    if not top > 0.0:
        raise InvalidInput("log", "some value above 0", f"a largest value of {top:g}", remedy="Use log=False.")
    least = float(np.nanmin(np.where(table > 0.0, table, np.nan)))
    return LogNorm(max(least, 1e-4 * top) if vmin is None else vmin, top, clip=True)


def _as_grid(values: Any, shape: tuple[int, int]) -> Floats:
    expected = f"one value per cell of {shape[0]} × {shape[1]}"
    array = as_heights("values", _by_cell("values", values, shape))
    if array.size != shape[0] * shape[1]:
        raise InvalidInput("values", expected, f"shape {array.shape}")
    return array.reshape(shape)


def _by_cell(argument: str, values: Any, shape: tuple[int, int]) -> Any:
    """Cells are states by position, unless the labels are (row, column). Positions cannot be those of labels that were
    sorted, so that what a fit of such states hands out is refused."""
    labels = names_in(values)[0].state_labels
    cells = tuple(divmod(k, shape[1]) for k in range(shape[0] * shape[1]))
    if labels is not None and len(labels) == len(cells) and (locate(cells, labels) >= 0).all():
        return in_order(Names(cells, None), values, argument, ("state",))
    require_declared(argument, "state", labels, "a grid of positions")
    return values


def _as_policy(
    policy: Any, shape: tuple[int, int], actions: Sequence[Any] | None
) -> tuple[Floats, Sequence[tuple[int, int]]]:
    """The policy and where each of its columns leads."""
    n, own = shape[0] * shape[1], getattr(policy, "action_labels", None)
    array = as_heights("policy", _by_cell("policy", policy, shape), "probabilities")
    if actions is not None:
        actions = require_list("actions", actions, "names of actions")
    elif own is not None and set(map(str, own)) <= set(MOVES):
        actions = own
    if actions is not None and array.shape == (n, len(actions)):
        return array, [MOVES.get(str(name), (0, 0)) for name in actions]
    if array.shape not in ((n, 4), (n, 5)):
        raise InvalidInput("policy", f"shape ({n}, 4) or ({n}, 5): up, down, left, right, stay", f"shape {array.shape}")
    return array, list(MOVES.values())[: array.shape[1]]
