"""What the paper's Figures 1 to 4, 6 and 7 share: metrics against trajectories, and the rewards that were recovered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.environments.world import World
from revealed.experiments.cells import METHODS, Measured, Picture, Results, Table, fit_row, per_state
from revealed.experiments.numbers import half_width, mean_and_half, percent, short
from revealed.experiments.protocol import ALGORITHM_1, READINGS, SECTION_5
from revealed.experiments.readings import rows_of
from revealed.fit import Fit
from revealed.mdp import Floats
from revealed.plots import label_axes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# the five metrics as the report names them; lower is better for all
METRICS = {
    "excess_nll": "NLL less entropy",
    "evd": "EVD",
    "stochastic_evd": "stochastic EVD",
    "epic": "EPIC",
    "starc": "STARC",
}
# colours that colour-blind readers can tell apart (after Okabe and Ito), and a mark and dash each for print; the first
# line is broad, so that it shows below another that lies on it
STYLE = {
    "MCE-IRL": {"color": "#0072b2", "marker": "o", "linestyle": "-", "linewidth": 3.0, "markersize": 6.0},
    "NPL": {"color": "#d55e00", "marker": "s", "linestyle": "--", "linewidth": 1.5, "markersize": 3.5},
    "CCP": {"color": "#009e73", "marker": "^", "linestyle": "-.", "linewidth": 1.6, "markersize": 4.5},
}
# every method with every kind of weights that a reading gives it
FITS = tuple(dict.fromkeys((method, used) for reading in READINGS.values() for method, used in reading.weights.items()))
WORDS = {
    SECTION_5: "as “Method Dependencies” reads (MCE-IRL's weights from walks, the others' from the estimated policy)",
    ALGORITHM_1: "Algorithm 1 taken literally (all weights from the estimated policy)",
}
LIMIT = "iteration_limit"
KEYS = {SECTION_5: "section5", ALGORITHM_1: "algorithm1"}  # of pictures, tables and files
FLOOR = {"color": "0.45", "linewidth": 1.1, "linestyle": (0, (1, 1.5))}


def measure_fit(world: World, fit: Fit, keep: bool, yard: dict[str, float]) -> Measured:
    """The row of a fit judged against its world; with `keep` also the reward and policy for pictures."""
    row = fit_row(fit, world.evaluate(fit)) | yard
    return Measured(row, {"reward": per_state(fit.reward), "policy": fit.policy} if keep else {})


def draw_curves(rows: pd.DataFrame, world: World) -> Figure:
    """The paper's arrangement: the true reward, then the metrics against trajectories with bands over seeds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 6.4), layout="constrained")
    (truth, evd, epic), (nll, stochastic, starc) = figure.subplots(2, 3)
    world.plot(ax=truth, title="true reward, and the expert", label="")
    panels = {"evd": evd, "epic": epic, "excess_nll": nll, "stochastic_evd": stochastic, "starc": starc}
    for metric, ax in panels.items():
        draw_metric(ax, rows, metric)
    evd.legend(fontsize=10, frameon=False)
    return figure


def draw_metric(ax: Axes, rows: pd.DataFrame, metric: str) -> None:
    """One metric against size: the mean over seeds and its 95 % band, a line per method; open marks where searches
    ended at the iteration limit."""
    for method in METHODS:
        groups = rows[rows["method"] == method].groupby("size")
        if groups.ngroups:
            _draw_method(ax, groups, metric, method)
    if metric == "stochastic_evd" and len(rows):
        floor = float(rows["floor"].mean())
        ax.axhline(floor, **FLOOR)
        ax.annotate("expert", (1.01, floor), xycoords=("axes fraction", "data"), va="center", fontsize=9, color="0.35")
    label_axes(ax, METRICS[metric], 11.0, ("trajectories", ""))
    _size_axis(ax, sorted(set(rows["size"])))
    ax.set_ylim(0.0, 1.06 * ax.get_ylim()[1])
    ax.grid(alpha=0.25, linewidth=0.6)


def _draw_method(ax: Axes, groups: Any, metric: str, method: str) -> None:
    x = np.array(list(groups.groups), dtype=np.float64)
    mean, half = groups[metric].mean().to_numpy(), groups[metric].apply(half_width).to_numpy()
    style = STYLE[method]
    ax.plot(x, mean, label=method, **style)
    ax.fill_between(x, mean - half, mean + half, color=style["color"], alpha=0.15, linewidth=0)
    cut = groups["status"].apply(lambda codes: bool((codes == LIMIT).any())).to_numpy()
    hollow = {key: style[key] for key in ("color", "marker", "markersize")}
    ax.plot(x[cut], mean[cut], linestyle="none", markerfacecolor="white", zorder=3, **hollow)


def _size_axis(ax: Axes, sizes: Sequence[int]) -> None:
    """Sizes on a logarithmic axis, each named, but for those too close to their neighbour."""
    from matplotlib.ticker import FixedLocator, NullLocator

    ax.set_xscale("log")
    shown: list[int] = []
    for size in reversed(sizes):
        if not shown or np.log(shown[-1] / size) > 0.12 * np.log(max(sizes) / min(sizes)):
            shown.append(int(size))
    ax.xaxis.set_major_locator(FixedLocator(shown))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")


def draw_recovered(results: Results, world: World, rows: pd.DataFrame) -> Figure:
    """The true reward, then what each method recovered, each on its own scale: choices do not see its size."""
    from matplotlib.figure import Figure

    found = {row.method: results.load(str(row.key)) for row in rows.itertuples()}
    figure = Figure(figsize=(11.5, 3.4), layout="constrained")
    axes = figure.subplots(1, 1 + len(METHODS), sharex=True, sharey=True)
    world.plot(ax=axes[0], title="true reward", label="")
    for ax, method in zip(axes[1:], METHODS):
        if method not in found:
            ax.set_axis_off()
            ax.set_title(f"{method}: no result")
            continue
        world.plot(found[method]["reward"], found[method]["policy"], ax=ax, title=method, label="")
    for ax in axes:
        ax.label_outer()
    return figure


def recovered_picture(results: Results, world: World, sample: str, paper: str) -> Picture:
    """What was recovered from the largest `sample` (in words), seed 0, in the first reading."""
    rows = rows_of(results, SECTION_5)
    rows = rows[(rows["arrays"] == True) & (rows["seed"] == 0)]  # noqa: E712
    caption = (
        f"Rewards recovered from {sample} (seed 0), with the policies that go with them, weights as “Method "
        "Dependencies” reads, each on its own scale: choices do not identify its scale."
    )
    alt = "Four maps: the true reward and those of MCE-IRL, NPL and CCP, with red arrows for policies."
    return Picture(draw_recovered(results, world, rows), caption, alt, paper)


def reading_tables(results: Results, name: str) -> dict[str, Table]:
    """`means_table` of either reading."""
    return {
        KEYS[reading]: means_table(
            rows_of(results, reading), f"{name}, {WORDS[reading]}: mean over seeds ± half the 95 % interval."
        )
        for reading in READINGS
    }


def means_table(rows: pd.DataFrame, caption: str) -> Table:
    """Every metric at every size: the mean over seeds ± half the 95 % interval."""
    import pandas as pd

    lines = []
    for (size, method), group in rows.groupby(["size", "method"]):
        cells = {name: mean_and_half(group[metric]) for metric, name in METRICS.items()}
        end = ", ".join(f"{n}× {code}" for code, n in group["status"].value_counts().items())
        lines.append({"trajectories": size, "method": method, **cells, "seeds": len(group), "ended": end})
    order = {method: k for k, method in enumerate(METHODS)}
    lines.sort(key=lambda line: (line["trajectories"], order[line["method"]]))
    return Table(pd.DataFrame(lines), caption)


def reading_pictures(results: Results, world: World, name: str, paper: str) -> dict[str, Picture]:
    """The paper's figure in either reading; the first has its number."""
    made = {
        KEYS[reading]: curve_picture(
            rows_of(results, reading), world, f"{name}, {WORDS[reading]}", paper if reading == SECTION_5 else ""
        )
        for reading in READINGS
    }
    return {key: picture for key, picture in made.items() if picture}


def curve_picture(rows: pd.DataFrame, world: World, what: str, paper: str = "") -> Picture | None:
    """Curves of rows that belong together; None without any."""
    if not len(rows):
        return None
    cut = float((rows["status"] == LIMIT).mean())
    ended = f" Open marks: at least one search ended at the iteration limit ({percent(cut)} of all)." if cut else ""
    caption = (
        f"{what}. Mean over {rows['seed'].nunique()} seeds with its 95 % band (Student's t); lower is better. "
        f"NLL is the expected one under the true expert less its entropy, per decision. Dotted: the expert's own "
        f"stochastic EVD. Upper left: the world of seed 0, arrows for the expert's policy.{ended}"
    )
    alt = f"Six panels, {what}: the true reward as a picture, and curves over trajectories of " + ", ".join(
        _in_words(rows, metric) for metric in METRICS
    )
    return Picture(draw_curves(rows, world), caption, alt + ".", paper)


def _in_words(rows: Any, metric: str) -> str:
    """From where to where a curve runs, for those who cannot see it."""
    first, last = (rows[rows["size"] == size] for size in (rows["size"].min(), rows["size"].max()))
    ends = [
        f"{method} from {short(a.mean())} to {short(b.mean())}"
        for method in METHODS
        if len(a := first[first["method"] == method][metric]) and len(b := last[last["method"] == method][metric])
    ]
    return f"{METRICS[metric]} ({', '.join(ends)})"


def similarities(results: Results, rows: pd.DataFrame, states: Any = slice(None)) -> Floats:
    """By seed, the least correlation between the rewards of two methods, over `states`; seeds without all three are
    left out."""
    by_seed: dict[int, list[Floats]] = {}
    for row in rows[rows["arrays"] == True].itertuples():  # noqa: E712
        by_seed.setdefault(int(str(row.seed)), []).append(results.load(str(row.key))["reward"])
    return np.array([similarity(found, states) for found in by_seed.values() if len(found) == len(METHODS)])


def similarity(rewards: Sequence[Floats], states: Any = slice(None)) -> float:
    """The least correlation between two of the rewards; NaN where one does not vary, or where there are no two."""
    if len(rewards) < 2:
        return np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.corrcoef(np.array([reward[states] for reward in rewards])).min())
