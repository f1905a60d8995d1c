"""The picture of the scaling study, and its tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scaling_tables import (
    KINDS,
    TASKS,
    Line,
    Record,
    Table,
    cautions,
    exponent_table,
    findings,
    lines_of,
    size_table,
    solver_of,
    work_table,
)

from revealed.plots import COLORS, label_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 0.99  # the discount that is drawn, where it was measured
MARKS = ("o", "s", "^", "D")
SHADE: dict[str, str] = dict(zip(TASKS, COLORS[:3] + COLORS[5:6]))
GREY = "#888888"


def picture(records: Sequence[Record]) -> Figure:
    """Seconds above, peak memory below, against |S| on logarithmic axes: a column per graph, a line per task."""
    from matplotlib.figure import Figure

    lines = lines_of(records)
    discount = SHOWN if any(line.discount == SHOWN for line in lines) else lines[0].discount
    lines = [line for line in lines if line.discount == discount]
    kinds = [kind for kind in KINDS if any(line.kind == kind for line in lines)]
    figure = Figure(figsize=(3.1 * len(kinds) + 0.6, 6.2), layout="constrained")
    axes = figure.subplots(2, len(kinds), sharex=True, sharey="row", squeeze=False)
    for column, kind in enumerate(kinds):
        mine = [line for line in lines if line.kind == kind]
        _draw_lines(axes[0, column], mine, "seconds")
        _draw_lines(axes[1, column], mine, "peak_mb")
        _draw_guides(axes[0, column], axes[1, column], mine)
        _name(axes[:, column], KINDS[kind].replace(", ", ",\n", 1), first=column == 0)
    _add_legend(figure, axes[0, 0], discount)
    return figure


def _draw_lines(ax: Axes, lines: Sequence[Line], what: str) -> None:
    """A filled mark where the direct solver did the work, an open one where the iterative one did."""
    for line in lines:
        states, heights = _column(line.records, "states"), _column(line.records, what)
        color, mark = SHADE[line.task], MARKS[TASKS.index(line.task)]
        ax.loglog(states, heights, color=color, linewidth=1.6)
        for direct in (True, False):
            chosen = np.array([(solver_of(r) == "LU") == direct for r in line.records])
            face = color if direct else "white"
            ax.loglog(states[chosen], heights[chosen], mark, color=color, markerfacecolor=face, markersize=5.5)


def _draw_guides(above: Axes, below: Axes, lines: Sequence[Line]) -> None:
    """|S|^1 through the first point of the soft optimum; the transitions' own size."""
    first = lines[0].records
    states = np.array([r["states"] for r in max((line.records for line in lines), key=len)], dtype=float)
    above.loglog(states, first[0]["seconds"] * states / first[0]["states"], ":", color=GREY, linewidth=1.3)
    longest = max((line.records for line in lines), key=len)
    below.loglog(_column(longest, "states"), _column(longest, "transitions_mb"), "--", color=GREY, linewidth=1.3)


def _name(axes: Any, title: str, first: bool) -> None:
    above, below = axes
    label_axes(above, title, 12.0, ("", "seconds" if first else ""))
    label_axes(below, "", 12.0, ("states |S|", "peak memory, MB" if first else ""))
    for ax in axes:
        ax.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)


def _add_legend(figure: Figure, ax: Axes, discount: float) -> None:
    from matplotlib.lines import Line2D

    parts: list[Line2D] = [
        Line2D([], [], color=SHADE[task], marker=mark, label=task) for task, mark in zip(TASKS, MARKS)
    ]
    parts += [
        Line2D([], [], color="black", linestyle="", marker="o", label="direct solver"),
        Line2D([], [], color="black", linestyle="", marker="o", markerfacecolor="white", label="iterative solver"),
        Line2D([], [], color=GREY, linestyle=":", label="∝ |S|"),
        Line2D([], [], color=GREY, linestyle="--", label="the transitions alone"),
    ]
    title = f"γ = {discount:g}"
    figure.legend(handles=parts, loc="outside lower center", ncols=4, fontsize=11.0, title=title, title_fontsize=11.0)


def _column(records: Sequence[Record], name: str) -> Any:
    return np.array([r[name] for r in records], dtype=np.float64)


def print_tables(records: Sequence[Record]) -> None:
    _console().print("\n".join(cautions(records)), highlight=False)
    for kind, words in KINDS.items():
        if any(r["kind"] == kind for r in records):
            print_table(size_table(records, kind), words)
    print_table(exponent_table(records), "Exponents of seconds in |S|")
    print_table(work_table(records), "What the solvers did at the largest size")
    _console().print("\n".join(findings(records)), highlight=False)


def print_table(table: Table, title: str) -> None:
    _console().print(_rich(table, title))


def _console() -> Any:
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=200)


def _rich(table: Table, title: str) -> Any:
    from rich.table import Table as RichTable

    heads, rows = table
    shown = RichTable(title=title)
    for head in heads:
        shown.add_column(head, overflow="fold")
    for row in rows:
        shown.add_row(*row)
    return shown
