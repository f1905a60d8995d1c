"""Figure 5: what if the expert's policy is known in a part of the world only?

On Obstacleworld the policy is given off the corridor alone ("corridor"), or above the diagonal alone ("triangle"), and
is uniform elsewhere. The goal is where the corridor ends, so its cell is unknown in the first case and known in the
second; a third case tells what that one cell does. The paper's text can be read in two ways, and both are run:

(a) MCE-IRL and NPL both take their expert weights from the partial policy. They then maximise the same objective at
    NPL's rest point (theory E3), so that a settled NPL equals MCE-IRL, and no contrast can come out.
(b) MCE-IRL takes its weights (feature counts) from full data; NPL takes weights and π̃ from the partial policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.environments.obstacleworld import Obstacleworld, corridor, obstacleworld
from revealed.experiments.cells import TOL, Cell, Measured, Picture, Results, Table, fit_row, make_estimator, run_with
from revealed.experiments.curves import FLOOR, STYLE, expert_floor
from revealed.experiments.numbers import mean_and_half, short
from revealed.mdp import Floats
from revealed.optimize import Iterate
from revealed.plots import label_axes, plot_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "partial-expert"
TITLE = "A partial expert: the policy known here and not there"
PAPER = "Figure 5"
ALONE = False
ABOUT = (
    "Obstacleworld again; no sampling: the expert's own policy is handed to the methods where it is known, and the "
    "uniform one elsewhere. The goal lies at the corridor's end: its cell is unknown in the corridor case and known in "
    "the triangle case; the third case shows the effect of that one cell. EVD and stochastic EVD are taken at every "
    "iteration of Adam. The seed draws the map."
)
CASES = {
    "corridor": "unknown in the corridor",
    "triangle": "unknown below the diagonal",
    "corridor but goal": "unknown in the corridor but the goal",
}
READINGS = {
    "a": "both methods' expert weights from the partial policy",
    "b": "MCE-IRL's expert weights from full data, NPL's weights and π̃ from the partial policy",
}
# NPL is the same in both readings; where MCE-IRL's weights come from is what tells them apart
SOURCES = {"a": "partial weights", "b": "full weights"}


@dataclass(frozen=True)
class Config:
    """The paper gives grid, cases and K; the rest is ours. `max_iter` bounds each maximisation."""

    size: int = 16
    density: float = 0.3
    discount: float = 0.95
    scale: float = 3.0
    updates: int = 10
    learning_rate: float = 0.15  # in log-odds: some 0.05 in each weight
    tol: float = TOL
    max_iter: int = 300
    seeds: int = 10


QUICK = Config(seeds=5)


def cells(config: Config) -> list[Cell]:
    kinds = [("MCE-IRL", SOURCES["a"], 2.0), ("MCE-IRL", SOURCES["b"], 2.0), ("NPL", SOURCES["a"], 6.0)]
    return [
        Cell(NAME, case, method, config.size, seed, source, cost)
        for seed in range(config.seeds)
        for case in CASES
        for method, source, cost in kinds
    ]


@lru_cache(maxsize=2)
def problem(config: Config, seed: int) -> tuple[Obstacleworld, float]:
    world = obstacleworld(config.size, config.density, config.discount, config.scale, seed)
    return world, expert_floor(world.truth)


def known(case: str, size: int) -> Any:
    """(S,) bool: the cells where the expert's policy is known."""
    here = np.triu(np.ones((size, size), dtype=bool)) if case == "triangle" else ~corridor(size)
    here[-1, -1] |= case == "corridor but goal"
    return here.reshape(-1)


def partial_policy(world: Obstacleworld, case: str) -> Floats:
    """The expert's policy where it is known, the uniform one elsewhere."""
    return np.where(known(case, world.shape[0])[:, None], world.expert, world.mdp.uniform_policy())


def measure(config: Config, cell: Cell) -> Measured:
    world, floor = problem(config, cell.seed)
    policy = partial_policy(world, cell.setting) if cell.variant == SOURCES["a"] else world.expert
    path = _Path(world)
    estimator = make_estimator(
        cell.method,
        world.reward_model(),
        config.updates,
        weighting="occupancy",
        first_step=policy,
        optimizer="adam",
        learning_rate=config.learning_rate,
        tol=config.tol,
        patience=1,
        max_iter=config.max_iter,
        callback=path,
    )
    fit = estimator.fit(world.mdp, world.demonstrate(50, seed=cell.seed))  # given weights leave them nothing to say
    span = world.truth.stochastic_evd(world.mdp.uniform_policy())
    row = fit_row(fit, world.evaluate(fit)) | {"floor": floor, "span": span}
    return Measured(row, path.arrays)


class _Path:
    """The metrics along a search: a callback."""

    def __init__(self, world: Obstacleworld) -> None:
        self.truth = world.truth
        self.rows: list[tuple[float, float, float]] = []

    def __call__(self, point: Iterate) -> None:
        reward = np.broadcast_to(point.reward, point.policy.shape)
        self.rows.append((point.update, self.truth.evd(reward), self.truth.stochastic_evd(point.policy)))

    @property
    def arrays(self) -> dict[str, Floats]:
        update, evd, stochastic = np.array(self.rows, dtype=np.float64).T
        return {"update": update, "evd": evd, "stochastic_evd": stochastic}


run = run_with(NAME, Config)


def draw(results: Results) -> dict[str, Picture]:
    pictures = {}
    for reading, words in READINGS.items():
        caption = (
            f"Reading ({reading}): {words}. Left: the partial policy; warm colours: nearly certain choices; "
            "darkest blue: uniform (policy unknown). Right: EVD (solid) and stochastic EVD (dashed) by iteration, seed "
            "0; dotted: the expert's own stochastic EVD; grey vertical lines: updates of π̃."
        )
        alt = "Three rows, corridor, triangle and corridor with the goal known: the partial policy, and the EVDs of "
        alt += (
            "MCE-IRL and NPL against iterations. At the end: "
            + "; ".join(_end(results, case, reading) for case in CASES)
            + "."
        )
        pictures[f"reading-{reading}"] = Picture(_draw(results, reading), caption, alt)
    return pictures


def _end(results: Results, case: str, reading: str) -> str:
    return f"{case}, " + ", ".join(
        f"{method} EVD {short(rows['evd'].mean())}" for method, rows in _rows(results, case, reading).items()
    )


def _rows(results: Results, case: str, reading: str) -> dict[str, Any]:
    """The rows of both methods in one panel row."""
    sources = {"MCE-IRL": SOURCES[reading], "NPL": SOURCES["a"]}
    return {method: results.where(setting=case, method=method, variant=source) for method, source in sources.items()}


def _draw(results: Results, reading: str) -> Figure:
    from matplotlib.figure import Figure

    world, floor = problem(results.config, 0)
    figure = Figure(figsize=(10.5, 3.1 * len(CASES)), layout="constrained")
    axes = figure.subplots(len(CASES), 3, width_ratios=(1.0, 1.25, 1.25))
    sources = {"MCE-IRL": SOURCES[reading], "NPL": SOURCES["a"]}
    for line, case in zip(axes, CASES):
        _draw_policy(line[0], world, case)
        top = 0.0
        for ax, (method, source) in zip(line[1:], sources.items()):
            for _, arrays in results.arrays(setting=case, method=method, variant=source, seed=0):
                top = max(top, _draw_path(ax, arrays, method, floor))
            label_axes(
                ax, f"{method} (K = {results.config.updates})" if method == "NPL" else method, 11.0, ("iteration", "")
            )
        for ax in line[1:]:
            ax.set_ylim(0.0, 1.08 * max(top, 1e-9))
    axes[0][1].legend(fontsize=10, frameon=False)
    return figure


def _draw_policy(ax: Axes, world: Obstacleworld, case: str) -> None:
    policy = partial_policy(world, case)
    sure = policy.max(axis=1)
    style = {"cmap": "turbo", "vmin": 0.25, "vmax": 1.0, "colorbar": False}
    plot_grid(ax, sure, world.shape, policy, CASES[case], **style)


def _draw_path(ax: Axes, arrays: Mapping[str, Floats], method: str, floor: float) -> float:
    """Both EVDs along the iterations, and a line where π̃ is updated; the highest value drawn."""
    color = STYLE[method]["color"]
    ax.plot(arrays["evd"], color=color, linewidth=1.7, label="EVD")
    ax.plot(arrays["stochastic_evd"], color=color, linewidth=1.4, linestyle="--", label="stochastic EVD")
    for i in np.flatnonzero(np.diff(arrays["update"])):
        ax.axvline(int(i) + 1, color="0.7", linewidth=0.8, zorder=0)
    ax.axhline(floor, **FLOOR)
    ax.grid(alpha=0.25, linewidth=0.6)
    return float(max(arrays["evd"].max(), arrays["stochastic_evd"].max()))


def tables(results: Results) -> dict[str, Table]:
    import pandas as pd

    lines = []
    for reading in READINGS:
        for case in CASES:
            for method, rows in _rows(results, case, reading).items():
                lines += [_line(reading, case, method, rows)] if len(rows) else []
    caption = (
        "At the end of the search, mean over seeds ± half the 95 % interval. “Share lost” is EVD over what the uniform "
        "policy loses, “its stochastic share” the same of stochastic EVD above the expert's own."
    )
    return {"ends": Table(pd.DataFrame(lines), caption)}


def _line(reading: str, case: str, method: str, rows: Any) -> dict[str, Any]:
    ended = ", ".join(f"{n}× {code}" for code, n in rows["status"].value_counts().items())
    return {
        "reading": f"({reading})",
        "case": case,
        "method": method,
        "EVD": mean_and_half(rows["evd"]),
        "share lost": mean_and_half(rows["evd"] / rows["span"]),
        "its stochastic share": mean_and_half((rows["stochastic_evd"] - rows["floor"]) / rows["span"]),
        "stochastic EVD": mean_and_half(rows["stochastic_evd"]),
        "expert's own": short(rows["floor"].mean(), 3),
        "EPIC": mean_and_half(rows["epic"]),
        "seeds": len(rows),
        "ended": ended,
    }
