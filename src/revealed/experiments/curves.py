"""What the paper's Figures 1 to 4, 6 and 7 share: metrics against trajectories, and the rewards that were recovered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.environments.world import World
from revealed.experiments.cells import METHODS, Measured, Picture, Results, Table, fit_row, per_state
from revealed.experiments.numbers import half_width, mean_and_half, short
from revealed.fit import Fit
from revealed.mdp import Floats
from revealed.metrics import Truth
from revealed.plots import label_axes

if TYPE_CHECKING:
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
WEIGHTINGS = {
    "occupancy": "with occupancy weights, as in the paper's algorithms",
    "sample": "with sample weights (maximum likelihood)",
}
FLOOR = {"color": "0.45", "linewidth": 1.1, "linestyle": (0, (1, 1.5))}


def measure_fit(world: World, fit: Fit, keep: bool, floor: float) -> Measured:
    """The row of a fit judged against its world; with `keep` also the reward and policy for pictures."""
    scores = world.evaluate(fit)
    row = fit_row(fit, scores) | {"floor": floor}
    return Measured(row, {"reward": per_state(fit.reward), "policy": fit.policy} if keep else {})


def expert_floor(truth: Truth) -> float:
    """The stochastic EVD of the expert itself: soft and noisy experts do not earn the optimum either."""
    return truth.stochastic_evd(truth.expert)


def draw_curves(results: Results, world: World, variant: str, setting: str) -> Figure:
    """The paper's arrangement: the true reward, then the metrics against trajectories with bands over seeds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 6.4), layout="constrained")
    (truth, evd, epic), (nll, stochastic, starc) = figure.subplots(2, 3)
    world.plot(ax=truth, title="true reward, and the expert", colorbar=False, label="")
    panels = {"evd": evd, "epic": epic, "excess_nll": nll, "stochastic_evd": stochastic, "starc": starc}
    for metric, ax in panels.items():
        draw_metric(ax, results, metric, variant=variant, setting=setting)
    evd.legend(fontsize=10, frameon=False)
    return figure


def draw_metric(ax: Axes, results: Results, metric: str, **place: Any) -> None:
    """One metric against size: the mean over seeds and its 95 % band, a line per method."""
    rows = results.where(**place)
    for method in METHODS:
        groups = rows[rows["method"] == method].groupby("size")[metric]
        if groups.ngroups == 0:
            continue
        x = np.array(list(groups.groups), dtype=np.float64)
        mean, half = groups.mean().to_numpy(), groups.apply(half_width).to_numpy()
        style = STYLE[method]
        ax.plot(x, mean, label=method, **style)
        ax.fill_between(x, mean - half, mean + half, color=style["color"], alpha=0.15, linewidth=0)
    if metric == "stochastic_evd" and len(rows):
        floor = float(rows["floor"].mean())
        ax.axhline(floor, **FLOOR)
        ax.annotate("the expert itself", (0.02, floor), xycoords=("axes fraction", "data"), xytext=(0, 3),
                    textcoords="offset points", ha="left", fontsize=9, color="0.35")  # fmt: skip
    label_axes(ax, METRICS[metric], 11.0, ("trajectories", ""))
    _size_axis(ax, sorted(set(rows["size"])))
    ax.set_ylim(0.0, 1.06 * ax.get_ylim()[1])
    ax.grid(alpha=0.25, linewidth=0.6)


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


def draw_recovered(results: Results, world: World, seed: int, **place: Any) -> Figure:
    """The true reward, then what each method recovered, each in its own grey scale: choices do not see its size."""
    from matplotlib.figure import Figure

    found = {row.method: arrays for row, arrays in results.arrays(seed=seed, **place)}
    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    axes = figure.subplots(1, 1 + len(METHODS), sharex=True, sharey=True)
    world.plot(ax=axes[0], title="true reward", colorbar=False, label="")
    for ax, method in zip(axes[1:], METHODS):
        if method not in found:
            ax.set_axis_off()
            ax.set_title(f"{method}: no result")
            continue
        world.plot(found[method]["reward"], found[method]["policy"], ax=ax, title=method, colorbar=False, label="")
    for ax in axes:
        ax.label_outer()
    return figure


def recovered_picture(results: Results, world: World, sample: str, **place: Any) -> Picture:
    """What was recovered from a `sample` (in words), seed 0."""
    caption = f"Rewards recovered from {sample} (seed 0), with the policies that go with them; lighter is higher."
    alt = "Four maps: the true reward and those of MCE-IRL, NPL and CCP, with red arrows for policies."
    return Picture(draw_recovered(results, world, seed=0, **place), caption, alt)


def variant_tables(results: Results, name: str, variants: dict[str, str], **place: Any) -> dict[str, Table]:
    """`means_table` of every variant; `variants` says in words what each is."""
    return {
        variant.replace(" ", "-"): means_table(
            results, f"{name}, {words}: mean over seeds ± half the 95 % interval.", variant=variant, **place
        )
        for variant, words in variants.items()
    }


def means_table(results: Results, caption: str, **place: Any) -> Table:
    """Every metric at every size: the mean over seeds ± half the 95 % interval."""
    import pandas as pd

    rows = results.where(**place)
    lines = []
    for (size, method), group in rows.groupby(["size", "method"]):
        cells = {name: mean_and_half(group[metric]) for metric, name in METRICS.items()}
        end = ", ".join(f"{n}× {code}" for code, n in group["status"].value_counts().items())
        lines.append({"trajectories": size, "method": method, **cells, "seeds": len(group), "ended": end})
    order = {method: k for k, method in enumerate(METHODS)}
    lines.sort(key=lambda line: (line["trajectories"], order[line["method"]]))
    return Table(pd.DataFrame(lines), caption)


def curve_pictures(
    results: Results, world: World, setting: str, notes: dict[str, str], where: str
) -> dict[str, Picture]:
    """A figure of curves for each variant that has results; `notes` says in words what each variant is."""
    pictures = {}
    for variant, words in notes.items():
        rows = results.where(variant=variant, setting=setting)
        if len(rows) == 0:
            continue
        seeds = rows["seed"].nunique()
        caption = (
            f"{where}, {words}. Mean over {seeds} seeds with its 95 % band (Student's t); lower is better. "
            "NLL is the expected one under the true expert less its entropy, per decision."
        )
        alt = f"Six panels for {where}: the true reward as a picture, and curves over trajectories of " + ", ".join(
            _in_words(rows, metric) for metric in METRICS
        )
        pictures[variant.replace(" ", "-")] = Picture(draw_curves(results, world, variant, setting), caption, alt + ".")
    return pictures


def _in_words(rows: Any, metric: str) -> str:
    """From where to where a curve runs, for those who cannot see it."""
    first, last = (rows[rows["size"] == size] for size in (rows["size"].min(), rows["size"].max()))
    ends = [
        f"{method} from {short(a.mean())} to {short(b.mean())}"
        for method in METHODS
        if len(a := first[first["method"] == method][metric]) and len(b := last[last["method"] == method][metric])
    ]
    return f"{METRICS[metric]} ({', '.join(ends)})"


def similarity(rewards: dict[str, Floats], states: Any) -> float:
    """The least correlation between two methods' recovered rewards, over `states`; NaN where one does not vary, or
    where there are no two."""
    if len(rewards) < 2:
        return np.nan
    tables = np.array([reward[states] for reward in rewards.values()])
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.corrcoef(tables).min())
