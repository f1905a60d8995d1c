"""Table 2: how long the three methods train, by the paper's way of computing and by ours, beside the paper's seconds.

The paper's finding: NPL and CCP are faster than MCE-IRL in every setting. It is judged by its own way of computing, on
one machine (`time_claims`); what sparse algebra leaves of the gap is a finding of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from revealed.experiments.cells import METHODS, TIGHTER, Cell, Measured, Picture, Results, fit_row, run_with
from revealed.experiments.dense_baseline import DenseModel, fit_dense
from revealed.experiments.paper_way import ALL, COSTS, OURS, WHOLE, measure_costs, paper_way
from revealed.experiments.published import PLATFORM, TRAINING_SECONDS
from revealed.experiments.seconds import draw_marks, in_seconds, legend, log_axis
from revealed.experiments.steps import seconds_of_a_step
from revealed.experiments.time_tables import SEARCHES, mean_of, settings_of
from revealed.experiments.time_tables import tables as tables
from revealed.experiments.timed import Task, Worlds, car_setting, car_task, objects_setting, objects_task
from revealed.fit import Fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "timing"
TITLE = "Training time"
PAPER = "Table 2"
ALONE = True
ABOUT = (
    "The time of whole fits with the largest samples: the paper's Algorithms 1 and 2 as they are written, so with "
    "occupancy weights for all methods (its Tables 5 and 6 list “Occ. under expert policy” for both families). That "
    "is estimating the expert's policy, weights, and the search until the gradient's norm is below the threshold (for "
    "networks several times in a row) or the limit of steps is reached, for NPL in every update; updates end once π̃ no "
    "longer moves. Worlds, samples, compiling the network and judging the result are not timed. Every search is timed "
    "twice: by the paper's way of computing (value iteration, matrix inverses, the tensor of occupancies), where a "
    "whole search is too long as steps × seconds of a step, and by this library, step for step the same. One fit at a "
    "time, linear algebra on one thread. Thresholds were fixed before any timing and are the same for all methods."
)
OWN = "lbfgs"  # the library's own choice for a weight per state; for networks, where that is Adam, the alternative
OFFSETS = tuple(zip((-0.24, 0.0, 0.24), METHODS))  # where a method's marks stand within its setting


@dataclass(frozen=True)
class Config(Worlds):
    """The full protocol. The paper gives settings, methods and K; thresholds, rates and the rest are ours.

    `grids` are (size, colours) of Objectworld; `tighter_grids` so many of them, the first, are searched with the
    tighter threshold too (Mountain Car always is). The paper's way of computing goes to the threshold up to
    `dense_states` states; up to `cost_states` its computations are timed once. `max_iter` bounds each maximisation.
    `beside` seeds are enough for the other searches.
    """

    grids: tuple[tuple[int, int], ...] = ((16, 4), (32, 2), (32, 4), (64, 4))
    tighter_grids: int = 4
    dense_states: int = 1100
    cost_states: int = 10_000
    max_iter: int = 1000
    tighter: float = TIGHTER
    own: str = OWN
    seeds: int = 3
    beside: int = 1


QUICK = Config(bins=40, tighter_grids=0, dense_states=300, cost_states=2_000, max_iter=400, seeds=2)


def cells(config: Config) -> list[Cell]:
    return [
        Cell(NAME, where, method, trajectories, seed, variant, _guess(states, method, variant, config.max_iter))
        for where, states, trajectories, offered in _settings(config)
        for seed in range(config.seeds)
        for variant in offered
        if seed < _seeds_of(config, variant)
        for method in ((ALL,) if variant == COSTS else METHODS)
    ]


def _seeds_of(config: Config, variant: str) -> int:
    return config.seeds if variant in (OURS, WHOLE) else 1 if variant == COSTS else config.beside


def _settings(config: Config) -> Iterator[tuple[str, int, int, list[str]]]:
    """Each setting with its states, its trajectories and the variants that are run there."""
    places = [(car_setting(config), config.bins**2, config.drives, True)]
    for k, (size, colors) in enumerate(config.grids):
        places.append((objects_setting(size, colors), size**2, config.walks, k < config.tighter_grids))
    for where, states, trajectories, tighter in places:
        searches = [name for name in SEARCHES if tighter or name != "adam tighter"]
        yield where, states, trajectories, searches + _paper_way_at(config, states)


def _paper_way_at(config: Config, states: int) -> list[str]:
    """Whole searches where they are short; else the time of each computation, up to a size."""
    if states <= config.dense_states:
        return [WHOLE]
    return [COSTS] if states <= config.cost_states else []


def _guess(states: int, method: str, variant: str, max_iter: int) -> float:
    """Seconds, roughly: for the remaining time alone."""
    if variant == COSTS:
        return 2.5e-10 * states**3 + 1.0
    step = states * {"MCE-IRL": 5e-6, "NPL": 2e-6, "CCP": 2e-6}[method] + 8e-4
    tight = 0.7 * max_iter * (4 if method == "NPL" else 1)
    steps = tight if "tighter" in variant else 40 if variant == "own" else 120
    return step * steps * (30 if variant == WHOLE and method == "MCE-IRL" else 1)


def task_of(config: Config, setting: str, seed: int) -> Task:
    if setting == car_setting(config):
        return car_task(config, seed)
    size, colors = next(grid for grid in config.grids if objects_setting(*grid) == setting)
    return objects_task(config, size, colors, seed)


def measure(config: Config, cell: Cell) -> Measured:
    task = task_of(config, cell.setting, cell.seed)
    if cell.variant == COSTS:
        return measure_costs(task, config.max_iter)
    tol = task.options["tol"] / (config.tighter if "tighter" in cell.variant else 1.0)
    optimizer = config.own if cell.variant == "own" else "adam"
    estimator = task.estimator(cell.method, optimizer=optimizer, tol=tol, max_iter=config.max_iter)
    if cell.variant == WHOLE:
        fit = fit_dense(estimator, DenseModel.of(task.mdp), task.mdp, task.demos)
    else:
        fit = estimator.fit(task.mdp, task.demos)
    return Measured(fit_row(fit) | _details(task, fit, tol))


def _details(task: Task, fit: Fit, tol: float) -> dict[str, Any]:
    return {
        "states": task.mdp.n_states,
        "step": seconds_of_a_step(fit),
        "threshold": tol,
        "reached": reached(fit, tol, task.options["patience"]),
        "evd_share": evd_share(task, fit),
        "extrapolated": False,
    }


def evd_share(task: Task, fit: Fit) -> float:
    """EVD as a share of what the uniform policy loses: how far the search had come. Not timed."""
    truth = task.world.truth
    return truth.evd(fit.reward) / truth.stochastic_evd(truth.mdp.uniform_policy())


def reached(fit: Fit, tol: float, patience: int) -> bool:
    """Whether every maximisation of the fit ended at the threshold: NPL may do so and still not have settled."""
    trails: dict[int, list[float]] = {}
    for row in fit.rows:
        trails.setdefault(row["update"], []).append(row["gradient_norm"])
    return all(_ended(trail, tol, patience) for trail in trails.values())


def _ended(trail: list[float], tol: float, patience: int) -> bool:
    """At the threshold, so many times in a row; a search that begins there is at its end at once."""
    return max(trail[-patience:]) <= tol and (len(trail) >= patience or len(trail) == 1)


run = run_with(NAME, Config)


def draw(results: Results) -> dict[str, Picture]:
    if not len(results.frame):
        return {}
    caption = (
        "Training time with Adam: ours (filled), the paper's dense way of computing on the same machine (crosses; "
        "upright ones are extrapolated, steps × the time of a step), and the paper's seconds (open, another machine: "
        f"{PLATFORM}; only for its settings). Means over seeds; the axis is logarithmic."
    )
    return {"seconds": Picture(_draw_seconds(results), caption, _in_words(results), PAPER)}


def _draw_seconds(results: Results) -> Figure:
    from matplotlib.figure import Figure

    from revealed.experiments.curves import STYLE

    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    ax = figure.subplots()
    settings = settings_of(results)
    styles = {method: (str(STYLE[method]["color"]), str(STYLE[method]["marker"])) for method in METHODS}
    places = [(x + offset, setting, method) for x, setting in enumerate(settings) for offset, method in OFFSETS]
    seconds = [_all_seconds(results, setting, method) for _, setting, method in places]
    for (x, _, method), each in zip(places, seconds):
        draw_marks(ax, x, each, *styles[method])
    for x in range(1, len(settings)):
        ax.axvline(x - 0.5, color="0.85", linewidth=0.8)
    ax.set_xticks(
        range(len(settings)), [name.replace("world ", "world\n").replace("Car ", "Car\n") for name in settings]
    )
    ax.set_xlim(-0.5, len(settings) - 0.5)
    log_axis(ax)
    legend(figure, styles, seconds)
    return figure


def _all_seconds(results: Results, setting: str, method: str) -> tuple[float | None, ...]:
    """Ours, the paper's way measured, the paper's way extrapolated, the paper's."""
    ours, dense = mean_of(results.where(variant=OURS), setting, method), mean_of(paper_way(results), setting, method)
    way = None if dense is None else float(dense["seconds"])
    whole = dense is not None and not dense["sign"]
    return (
        None if ours is None else float(ours["seconds"]),
        way if whole else None,
        None if whole else way,
        TRAINING_SECONDS.get(setting, {}).get(method),
    )


def _in_words(results: Results) -> str:
    told = {"Ours": results.where(variant=OURS), "The paper's way, same machine": paper_way(results)}
    return "Seconds on a logarithmic axis for each setting and method. " + " ".join(
        f"{who}: {'; '.join(parts)}." for who, rows in told.items() if (parts := _parts(results, rows))
    )


def _parts(results: Results, rows: Any) -> list[str]:
    parts = []
    for setting in settings_of(results):
        means = {method: mean_of(rows, setting, method) for method in METHODS}
        seen = [f"{m} {mean['sign']}{in_seconds(mean['seconds'])} s" for m, mean in means.items() if mean is not None]
        if seen:
            parts.append(f"{setting}: " + ", ".join(seen))
    return parts
