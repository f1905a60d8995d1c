"""Maps of road networks: where links run, how much they are used, and the fan of routes between two links.

Every link is a line. The two directions of a street lie side by side, the right one as on a road where one drives on
the right, and as far apart as they are wide, whatever the scale of the map. Pictures only: flows and shares are
computed elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Bools, Floats, Ints, require_vector
from revealed.errors import InvalidInput
from revealed.naming import rows_of
from revealed.plot_checks import require_axes, require_style
from revealed.plots import COLORS, add_colorbar, own_axes
from revealed.positions import in_order
from revealed.routes.network import RoadNetwork
from revealed.voices import arg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

GREY = "0.86"
FLOW = ("#ffe0a3", "#f5a623", "#d9480f", "#7a0c2e")  # light where few, dark where many
FAN = ("#c6ddf0", "#6fb1dd", "#0072b2", "#08306b")
SIZE = (6.4, 6.4)
BETWEEN = 0.25  # points between the two directions of a street
FAINT = 0.005  # share of trips below which a link is not part of a fan
CLASSES = (("0.82", 0.5), ("#f0b860", 1.1), ("#c1440e", 1.8))  # colour and width by class


def draw_network(
    network: RoadNetwork,
    ax: Axes | None = None,
    width: Any = 0.6,
    colour: Any = "0.6",
    title: str = "",
    unit: str = "",
    fontsize: float = 11.0,
) -> Figure:
    """The links of a network; `width` in points and `colour` are one for all, or one per link.

    With `unit`, that of the coordinates, a bar shows how long a round number of them is. Draws on `ax` if there is one,
    else on a figure of its own, and returns the figure.
    """
    figure, ax = own_axes(ax, SIZE)
    draw_links(ax, network, width, colour)
    set_map(ax, network, title, unit, fontsize)
    return figure


def draw_classes(
    network: RoadNetwork, kind: Any, names: Sequence[str], ax: Axes | None = None, fontsize: float = 11.0, **style: Any
) -> Figure:
    """The links in the colours of their classes: `kind` (S,) are indices into `names`, the higher, the wider."""
    from matplotlib.lines import Line2D

    kind = np.asarray(in_order(network.mdp, kind, "kind", ("state",)))
    looks = [CLASSES[min(k, len(CLASSES) - 1)] for k in range(len(names))]
    figure, ax = own_axes(ax, SIZE)
    for k, (colour, width) in enumerate(looks):
        draw_links(ax, network, width, colour, which=kind == k, zorder=1.0 + 0.1 * k)
    set_map(ax, network, fontsize=fontsize, **style)
    _legend(ax, [Line2D([], [], color=c, linewidth=2.0 * w) for c, w in looks], names, fontsize)
    return figure


def draw_flows(
    network: RoadNetwork,
    flows: Any,
    ax: Axes | None = None,
    title: str = "",
    label: str = "trips per link",
    unit: str = "",
    most: float | None = None,
    widest: float = 4.0,
    colorbar: bool = True,
    fontsize: float = 11.0,
) -> Figure:
    """How much each link is used: the more, the wider and darker.

    `flows` (S,) are numbers >= 0; a Series is matched by link. `most` is the flow of the widest and darkest lines (by
    default the largest), `widest` their width in points, `label` what the colour bar says.
    """
    values = _per_link("flows", flows, network)
    top = float(values.max()) if most is None else most
    figure, ax = own_axes(ax, SIZE)
    draw_links(ax, network, 0.3, GREY, zorder=1.0)
    lines = _coloured(ax, network, values, values > 0.0, FLOW, top, widest)
    set_map(ax, network, title, unit, fontsize)
    if colorbar:
        add_colorbar(lines, [ax], label, fontsize, location="right", shrink=0.6, aspect=28, pad=0.02)
    return figure


def draw_fan(
    network: RoadNetwork,
    visits: Any,
    origin: Any,
    destination: Any,
    ax: Axes | None = None,
    title: str = "",
    unit: str = "",
    widest: float = 5.0,
    colorbar: bool = True,
    fontsize: float = 11.0,
    around: Any = None,
) -> Figure:
    """The routes that trips take from one link to another: `visits` (S,) is the expected use of each link by one trip.

    The map shows the part of the network around the links that at least one trip in two hundred uses, or around those
    of `around`, visits of another fan, so that two can be compared.
    """
    shares = _per_link("visits", visits, network)
    seen = shares if around is None else np.maximum(shares, _per_link("around", around, network))
    ends = [network.index(link) for link in (origin, destination)]
    figure, ax = own_axes(ax, SIZE)
    draw_links(ax, network, 0.5, GREY, zorder=1.0)
    lines = _coloured(ax, network, np.minimum(100.0 * shares, 100.0), shares >= FAINT, FAN, 100.0, widest)
    set_map(ax, network, title, unit, fontsize, seen >= FAINT)
    _mark_ends(ax, network, ends, fontsize)
    if colorbar:
        add_colorbar(lines, [ax], "trips that use the link (%)", fontsize, shrink=0.6, aspect=28, pad=0.02)
    return figure


def draw_links(
    ax: Axes, network: RoadNetwork, width: Any, colour: Any, which: Bools | Ints | None = None, zorder: float = 1.0
) -> LineCollection:
    """Some of the links, a mask or indices, as lines beside the middle of their streets; later ones lie on top.

    Without a `colour` they wait for values and a colour map.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.transforms import Affine2D

    figure, _ = own_axes(ax)
    places = require_places(network)
    chosen = np.arange(len(places)) if which is None else which
    one = width if np.ndim(width) == 0 else _per_link("width", width, network)
    lines, widths = places[chosen], np.broadcast_to(one, len(places))[chosen]
    given = colour if rows_of(colour) is None else in_order(network.mdp, colour, "colour", ("state",))
    colours = given if given is None or isinstance(given, str) else np.asarray(given)[chosen]
    beside = _right_of(lines) * (has_return(places)[chosen] * (widths + BETWEEN) / 2.0)[:, None]
    points = Affine2D().scale(1.0 / 72.0) + figure.dpi_scale_trans
    place = {"offsets": beside, "offset_transform": points, "zorder": zorder}
    drawn = LineCollection(list(lines), linewidths=list(widths), colors=colours, capstyle="round", **place)
    ax.add_collection(drawn, autolim=False)
    return drawn


def set_map(
    ax: Axes, network: RoadNetwork, title: str = "", unit: str = "", fontsize: float = 11.0, which: Bools | None = None
) -> None:
    """A map has no axes but, where the unit is known, a bar to measure by; it shows all links or those of `which`."""
    require_axes(ax)
    require_style(title=title, fontsize=fontsize)
    places = require_places(network)
    points = (places if which is None or not which.any() else places[which]).reshape(-1, 2)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.03 * float((high - low).max()) if which is None else 0.08 * float((high - low).max())
    ax.set_xlim(low[0] - margin, high[0] + margin)
    ax.set_ylim(low[1] - margin, high[1] + margin)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(title, fontsize=1.1 * fontsize)
    if unit:
        _scale_bar(ax, unit, fontsize)


def require_places(network: RoadNetwork) -> Floats:
    """(S, 2, 2): where each link starts and ends."""
    if network.coordinates is None:
        remedy = f"Pass {arg('nodes')} with x and y, or columns x_from, y_from, x_to, y_to, to RoadNetwork.from_frame."
        raise InvalidInput("network", "a network with coordinates", "one without", remedy=remedy)
    return network.coordinates


def has_return(places: Floats) -> Bools:
    """(S,): whether some link leads back where this one comes from."""
    there, back = places.reshape(-1, 4), places[:, ::-1].reshape(-1, 4)
    code = np.unique(np.concatenate([there, back]), axis=0, return_inverse=True)[1].reshape(-1)
    return np.isin(code[len(there) :], code[: len(there)])


def _right_of(lines: Floats) -> Floats:
    """(n, 2) unit vectors to the right of each line's direction."""
    along = lines[:, 1] - lines[:, 0]
    length = np.maximum(np.hypot(*along.T), np.finfo(np.float64).tiny)
    return np.column_stack([along[:, 1], -along[:, 0]]) / length[:, None]


def _coloured(
    ax: Axes, network: RoadNetwork, values: Floats, which: Bools, colours: Sequence[str], top: float, widest: float
) -> LineCollection:
    """Links in colour and width by their values, the largest on top."""
    from matplotlib.colors import Normalize

    top = top if top > 0.0 else 1.0
    order = np.argsort(values, kind="stable")
    shown = order[which[order]]
    width = 0.5 + (widest - 0.5) * np.clip(values / top, 0.0, 1.0)
    lines = draw_links(ax, network, width, None, shown, zorder=2.0)
    lines.set(array=values[shown], cmap=_colormap(colours), norm=Normalize(0.0, top))
    return lines


def _colormap(colours: Sequence[str]) -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("map", list(colours))


def _mark_ends(ax: Axes, network: RoadNetwork, ends: Sequence[int], fontsize: float) -> None:
    """A disc on the first link, a square on the last, with a legend below."""
    middle = require_places(network).mean(axis=1)
    looks = (("o", COLORS[2]), ("s", COLORS[5]))
    style: dict[str, Any] = {"linestyle": "", "markersize": 9.0, "markeredgecolor": "white", "zorder": 4.0}
    marks = [
        ax.plot(*middle[end], marker=marker, color=colour, **style)[0]
        for end, (marker, colour) in zip(ends, looks, strict=True)
    ]
    _legend(ax, marks, ("origin", "destination"), fontsize)


def _legend(ax: Axes, handles: Sequence[Any], names: Sequence[str], fontsize: float) -> None:
    """Below the map, where no street runs."""
    style = {"ncols": len(names), "frameon": False, "fontsize": 0.9 * fontsize, "handletextpad": 0.5}
    ax.legend(handles, names, loc="upper center", bbox_to_anchor=(0.5, 0.0), borderaxespad=0.4, **style)


def _scale_bar(ax: Axes, unit: str, fontsize: float) -> None:
    """A round length, a fifth of the map at most, above the upper left corner's streets."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    length = round_below((right - left) / 5.0)
    y = high + 0.01 * (high - low)
    ax.plot([left, left + length], [y, y], color="0.35", linewidth=1.6, solid_capstyle="butt", clip_on=False)
    text = f" {length:g} {unit}"
    ax.text(left + length, y, text, fontsize=0.85 * fontsize, color="0.35", va="center", ha="left", parse_math=False)


def round_below(length: float) -> float:
    """The largest of 1, 2, 5, 10, 20, … (or 0.5, 0.2, …) that is not above."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(step for step in (1.0, 2.0, 5.0) if step * power <= length * (1.0 + 1e-12)))


def _per_link(name: str, values: Any, network: RoadNetwork) -> Floats:
    expected = f"{network.n_links} numbers >= 0, one per link"
    given = in_order(network.mdp, values, name, ("state",))
    return require_vector(name, given, network.n_links, expected, least=0.0)
