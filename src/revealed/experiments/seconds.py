"""How seconds are written and drawn: ours, those of the paper's way of computing on the same machine, the paper's, and
what was measured beside other work."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, log10
from typing import TYPE_CHECKING, Any

from revealed.experiments.machine import BUSY

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOURCES = ("ours", "dense, same machine", "dense, extrapolated", "the paper's")
NONE = "–"


def in_seconds(value: float) -> str:
    """Two or three digits that count, never a power of ten."""
    digits = (3 if value >= 0.01 else 2) - 1 - floor(log10(value))
    return f"{value:.{max(0, digits)}f}"


def times(ratio: float) -> str:
    """A ratio as ×7.3 or ×120."""
    return f"×{ratio:,.0f}" if ratio >= 9.5 else f"×{ratio:.2g}"


def load_of(rows: pd.DataFrame) -> float:
    """The most cores that other work took during one of these measurements; 0 where nothing is known of it."""
    known = rows["other_work"].dropna() if "other_work" in rows else ()
    return max(known, default=0.0)


def load_column(rows: pd.DataFrame) -> str:
    """The mark of what was measured beside other work: "+0.9" cores; empty where the machine was ours."""
    load = load_of(rows)
    return f"+{load:.1f}" if load >= BUSY else ""


def with_load(lines: list[dict[str, str]]) -> list[dict[str, str]]:
    """The lines of a table; their "load" only where there is any."""
    if any(line["load"] for line in lines):
        return lines
    return [{name: text for name, text in line.items() if name != "load"} for line in lines]


LOAD = "“load”, where a column has it: so many cores were taken by other work meanwhile, and the seconds are too long."


def draw_marks(
    ax: Axes, place: float, seconds: tuple[float | None, ...], color: str, marker: str, across: bool = False
) -> None:
    """A mark for each of `SOURCES` that there is, joined by a line: above each other, or with `across` side by side."""
    there = [value for value in seconds if value]
    line = [place] * len(there)
    ax.plot(*((there, line) if across else (line, there)), color=color, linewidth=1.0, alpha=0.5)
    for value, look in zip(seconds, looks(color, marker)):
        if value:
            ax.plot(*((value, place) if across else (place, value)), **look)


def looks(color: str, marker: str) -> tuple[dict[str, Any], ...]:
    """Ours filled, dense a cross, extrapolated an upright and thinner one, the paper's open."""
    plain: dict[str, Any] = {"color": color, "markersize": 8, "linestyle": "none"}
    return (
        plain | {"marker": marker},
        plain | {"marker": "x", "markeredgewidth": 2.0},
        plain | {"marker": "+", "markersize": 11, "markeredgewidth": 1.4},
        plain | {"marker": marker, "markerfacecolor": "white", "markeredgewidth": 1.6},
    )


def legend(figure: Figure, colors: dict[str, tuple[str, str]], drawn: Iterable[tuple[float | None, ...]]) -> None:
    """Names by colour and mark, the sources that were `drawn` by how a mark is filled; above everything else."""
    from matplotlib.lines import Line2D

    keys = [Line2D([], [], label=name, **looks(*style)[0]) for name, style in colors.items()]
    present = [any(values) for values in zip(*drawn)]
    sources = zip(SOURCES, looks("0.35", "D"), present)
    keys += [Line2D([], [], label=word, **look) for word, look, there in sources if there]
    figure.legend(handles=keys, ncols=len(keys), fontsize=10, frameon=False, loc="outside upper center")


def log_axis(ax: Axes, across: bool = False) -> None:
    """Seconds on a logarithmic axis, written out."""
    axis = ax.xaxis if across else ax.yaxis
    if across:
        ax.set_xscale("log")
    else:
        ax.set_yscale("log")
    axis.set_label_text("seconds")
    axis.set_major_formatter(lambda value, _: f"{value:.10f}".rstrip("0").rstrip("."))
    ax.grid(axis="x" if across else "y", alpha=0.25, linewidth=0.6)
