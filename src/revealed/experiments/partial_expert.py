"""Figure 5: what if the expert's policy is known in a part of the world only?

On Obstacleworld the policy is given off the diagonal alone ("corridor"), or on and above it alone ("triangle"), and is
uniform elsewhere. As “Method Dependencies” reads, MCE-IRL takes its weights from walks, NPL its weights and π̃ from the
partial policy. By Algorithm 1 both take weights from the partial policy: they then maximise the same objective at NPL's
rest point (theory E3), a settled NPL equals MCE-IRL, and no contrast can come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.environments.obstacleworld import Obstacleworld, corridor
from revealed.estimators import Estimator
from revealed.experiments import obstacleworld
from revealed.experiments.cells import (
    TOL,
    Cell,
    Measured,
    Picture,
    Results,
    Table,
    fit_row,
    make_estimator,
    run_with,
)
from revealed.experiments.curves import FLOOR, KEYS, LIMIT, STYLE
from revealed.experiments.numbers import mean_and_half, short
from revealed.experiments.protocol import ALGORITHM_1, OCCUPANCY, READINGS, SAMPLE, SECTION_5
from revealed.experiments.readings import rows_of, shares, yardsticks
from revealed.mdp import Floats
from revealed.optimize import Iterate
from revealed.plots import label_axes, plot_grid

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "partial-expert"
TITLE = "A partial expert: the policy known here and not there"
PAPER = "Figure 5"
ALONE = False
ABOUT = (
    "Obstacleworld again. The expert's own policy is handed to the methods where it is known, and the uniform one "
    "elsewhere; MCE-IRL's feature counts, as “Method Dependencies” reads, come from walks. EVD and stochastic EVD are "
    "taken at every iteration of Adam. The seed draws the map and the walks."
)
SEEN = {
    SECTION_5: "MCE-IRL's weights from the walks, NPL's weights and π̃ from the partial policy (“Method Dependencies”)",
    ALGORITHM_1: "both methods' weights from the partial policy (Algorithm 1 taken literally)",
}
CASES = {"corridor": "unknown in the corridor", "triangle": "unknown below the corridor"}
METHODS = ("MCE-IRL", "NPL")
FITS = (("MCE-IRL", SAMPLE), ("MCE-IRL", OCCUPANCY), ("NPL", OCCUPANCY))


@dataclass(frozen=True)
class Config:
    """The paper gives grid, cases and K; the rest is ours. `max_iter` bounds each maximisation."""

    size: int = 16
    density: float = 0.3
    discount: float = 0.95
    scale: float = 3.0
    length: int = 30
    goal: str = "absorbing"
    start: str = "uniform"
    width: int = 1
    trajectories: int = 50
    updates: int = 10
    learning_rate: float = 0.15  # in log-odds: some 0.05 in each weight
    tol: float = TOL
    max_iter: int = 600
    seeds: int = 10


QUICK = Config(seeds=5)


def cells(config: Config) -> list[Cell]:
    return [
        Cell(NAME, case, method, config.trajectories, seed, weights, 6.0 if method == "NPL" else 2.0)
        for seed in range(config.seeds)
        for case in CASES
        for method, weights in FITS
    ]


@lru_cache(maxsize=2)
def problem(config: Config, seed: int) -> tuple[Obstacleworld, dict[str, float]]:
    world = obstacleworld.world_of(_of_walks(config), seed)
    return world, yardsticks(world.truth)


def _of_walks(config: Config) -> obstacleworld.Config:
    """The same world in the experiment of walks."""
    shared = ("size", "density", "discount", "scale", "length", "goal", "start", "width")
    return obstacleworld.Config(**{name: getattr(config, name) for name in shared})


def known(case: str, size: int, width: int = 1) -> Any:
    """(S,) bool: the cells where the expert's policy is known."""
    here = ~np.tril(np.ones((size, size), dtype=bool), -1 - width // 2)
    return (here if case == "triangle" else ~corridor(size, width)).reshape(-1)


def partial_policy(world: Obstacleworld, case: str, width: int = 1) -> Floats:
    """The expert's policy where it is known, the uniform one elsewhere."""
    there = known(case, world.shape[0], width)
    return np.where(there[:, None], world.expert, world.mdp.uniform_policy())


def estimator_of(config: Config, world: Obstacleworld, cell: Cell, **options: Any) -> Estimator:
    """A method whose π̂_E is the partial policy; with sample weights it counts the walks instead."""
    policy = partial_policy(world, cell.setting, config.width)
    options = {"weighting": cell.variant, "first_step": policy, "tol": config.tol} | options
    return make_estimator(cell.method, world.reward_model(), config.updates, **options)


def measure(config: Config, cell: Cell) -> Measured:
    world, yard = problem(config, cell.seed)
    path = _Path(world)
    options = {"optimizer": "adam", "learning_rate": config.learning_rate, "patience": 1, "max_iter": config.max_iter}
    estimator = estimator_of(config, world, cell, callback=path, **options)
    fit = estimator.fit(world.mdp, world.demonstrate(config.trajectories, config.length, cell.seed))
    return Measured(fit_row(fit, world.evaluate(fit)) | yard, path.arrays)


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
    for reading in READINGS:
        if not len(rows_of(results, reading)):
            continue
        caption = (
            f"Obstacleworld, {SEEN[reading]}. Left: the partial policy; warm colours: nearly certain choices; "
            "darkest: uniform, because unknown (or at the goal, which absorbs). Right: EVD (solid) and stochastic EVD "
            "(dashed) by iteration, seed "
            f"0; dotted: the expert's own stochastic EVD; grey vertical lines: updates of π̃. {_cut(results, reading)}"
        )
        alt = "Two rows, corridor and triangle: the partial policy, and the EVDs of MCE-IRL and NPL against "
        alt += "iterations. At the end: " + "; ".join(_end(results, case, reading) for case in CASES) + "."
        paper = "Figure 5" if reading == SECTION_5 else ""
        pictures[KEYS[reading]] = Picture(_draw(results, reading), caption, alt, paper)
    return pictures


def _cut(results: Results, reading: str) -> str:
    """How many searches ended at the iteration limit, and not at a maximum."""
    ended = rows_of(results, reading)["status"]
    return f"{int((ended == LIMIT).sum())} of {len(ended)} searches, over all seeds, ended at the iteration limit."


def _end(results: Results, case: str, reading: str) -> str:
    ends = results_at(results, case, reading).groupby("method")["stochastic_evd"].mean()
    told = ", ".join(f"{method} stochastic EVD {short(value)}" for method, value in ends.items())
    return f"{case}, {told or 'no result'}"


def results_at(results: Results, case: str, reading: str) -> pd.DataFrame:
    """The rows of both methods in one panel row."""
    rows = rows_of(results, reading)
    return rows[rows["setting"] == case]


def _draw(results: Results, reading: str) -> Figure:
    from matplotlib.figure import Figure

    world, yard = problem(results.config, 0)
    figure = Figure(figsize=(10.5, 3.1 * len(CASES)), layout="constrained")
    axes = figure.subplots(len(CASES), 3, width_ratios=(1.25, 1.25, 1.25))
    for line, case in zip(axes, CASES):
        _draw_policy(line[0], world, case, results.config.width)
        rows = results_at(results, case, reading)
        top = 0.0
        for ax, method in zip(line[1:], METHODS):
            for row in rows[(rows["method"] == method) & (rows["seed"] == 0)].itertuples():
                top = max(top, _draw_path(ax, results.load(str(row.key)), method, yard["floor"]))
            label_axes(
                ax, f"{method} (K = {results.config.updates})" if method == "NPL" else method, 11.0, ("iteration", "")
            )
        for ax in line[1:]:
            ax.set_ylim(0.0, 1.08 * max(top, 1e-9))
    for ax in axes[:, 1]:
        if ax.lines:  # the first case may lack its results
            ax.legend(fontsize=10, frameon=False)
            break
    return figure


def _draw_policy(ax: Axes, world: Obstacleworld, case: str, width: int) -> None:
    policy = partial_policy(world, case, width)
    sure = policy.max(axis=1)
    style = {"cmap": "turbo", "vmin": 0.25, "vmax": 1.0, "label": "most likely action's probability"}
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

    lines = [
        _line(reading, case, method, rows[rows["method"] == method])
        for reading in READINGS
        for case in CASES
        for rows in [results_at(results, case, reading)]
        for method in METHODS
        if (rows["method"] == method).any()
    ]
    caption = (
        "At the end of the search, mean over seeds ± half the 95 % interval. “Share lost” is EVD over what the uniform "
        "policy loses, “its stochastic share” the same of stochastic EVD above the expert's own."
    )
    return {"ends": Table(pd.DataFrame(lines), caption)}


def _line(reading: str, case: str, method: str, rows: pd.DataFrame) -> dict[str, Any]:
    ended = ", ".join(f"{n}× {code}" for code, n in rows["status"].value_counts().items())
    lost = shares(rows)
    return {
        "reading": READINGS[reading].title,
        "case": case,
        "method": method,
        "EVD": mean_and_half(rows["evd"]),
        "share lost": mean_and_half(lost["evd"]),
        "stochastic EVD": mean_and_half(rows["stochastic_evd"]),
        "its stochastic share": mean_and_half(lost["stochastic_evd"]),
        "EPIC": mean_and_half(rows["epic"]),
        "seeds": len(rows),
        "ended": ended,
    }
