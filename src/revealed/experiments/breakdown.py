"""Tables 5 and 6: how long each computation of a step takes, for the two families.

The paper's finding: an optimisation-based method pays for dynamic programming in every step, an approximation-based
one only once for each π̃.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from revealed.estimation import Run
from revealed.experiments.cells import Cell, Measured, Picture, Results, Table, run_with
from revealed.experiments.dense_baseline import DenseModel, DenseRun
from revealed.experiments.published import (
    APPROXIMATION_SECONDS,
    BREAKDOWN_SETTINGS,
    OPTIMISATION_SECONDS,
    PLATFORM,
)
from revealed.experiments.seconds import (
    LOAD,
    NONE,
    draw_marks,
    in_seconds,
    legend,
    load_column,
    log_axis,
    times,
    with_load,
)
from revealed.experiments.steps import along, clock, trail_of
from revealed.experiments.timed import Task, Worlds, car_setting, car_task, objects_setting, objects_task
from revealed.mdp import Floats
from revealed.pi_tilde import PiTilde

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "breakdown"
TITLE = "Where the time goes"
PAPER = "Tables 5 and 6"
ALONE = True
OPTIMISATION, APPROXIMATION = "optimisation-based", "approximation-based"
FAMILIES = {OPTIMISATION: "MCE-IRL", APPROXIMATION: "CCP"}
ABOUT = (
    "The paper's computations one by one, a few Adam steps into a search (MCE-IRL for one family, CCP for the "
    "other), with occupancy weights: each number is the median over the last steps, computed "
    "as in the search, where MCE-IRL starts from the last value and factorisation. Linear algebra on one thread, the "
    "network compiled beforehand. Where the paper inverts a matrix or forms a tensor, the library factors I − γT^π and "
    "solves; expected derivative counts and gradient are one product with the reward's Jacobian."
)
# The paper's rows: whether once, once per π̃ or in every step, its words, the column of the store, what it took there.
ROWS: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    OPTIMISATION: (
        ("Pre-computed", "Occ. under expert policy π̂_E", "precomputed", "DP / Matrix inverse"),
        ("Within loop", "1. Optimal soft value and policy", "value", "DP / Value Iteration"),
        ("Within loop", "2. Occ. under optimal policy π_θ", "adjoint", "DP / Matrix inverse"),
        ("Within loop", "3. Exp. reward deriv. counts under π_θ", "", "Matrix multiplication"),
        ("Within loop", "4. Objective gradient", "gradient", "Matrix multiplication"),
        ("Within loop", "Inner Loop Per-Step Totals", "step", ""),
    ),
    APPROXIMATION: (
        ("Pre-computed", "Occ. under expert policy π̂_E", "precomputed", "DP / Matrix inverse"),
        ("Within outer loop", "Occ. under policy π̃", "update", "DP / Matrix inverse"),
        ("Within inner loop", "1. Soft value and policy", "value", "Matrix multiplication"),
        ("Within inner loop", "2. Value derivatives", "adjoint", "Matrix multiplication"),
        ("Within inner loop", "3. Objective gradient", "gradient", "Matrix multiplication"),
        ("Within inner loop", "Inner Loop Per-Step Totals", "step", ""),
    ),
}
WHEN = {
    "Pre-computed": "once",
    "At the start": "first step",
    "Within loop": "every step",
    "Within inner loop": "every step",
    "Within outer loop": "once per π̃",
}
SECONDS = {OPTIMISATION: OPTIMISATION_SECONDS, APPROXIMATION: APPROXIMATION_SECONDS}


@dataclass(frozen=True)
class Config(Worlds):
    """The full protocol. `steps` of Adam come first, then `repeats` are timed; dense algebra is run on Objectworld, up
    to `dense_states` states, `dense_repeats` times."""

    size: int = 64
    colors: int = 4
    steps: int = 25
    repeats: int = 7
    dense_states: int = 4096
    dense_repeats: int = 1
    seeds: int = 1


QUICK = Config(bins=50, size=32, dense_states=1100, dense_repeats=3)


def cells(config: Config) -> list[Cell]:
    objects = objects_setting(config.size, config.colors)
    places = [(car_setting(config), config.drives, "sparse"), (objects, config.walks, "sparse")]
    if config.size**2 <= config.dense_states:
        places.append((objects, config.walks, "dense"))
    return [
        Cell(NAME, where, family, trajectories, seed, variant, cost=60.0 if variant == "dense" else 5.0)
        for seed in range(config.seeds)
        for where, trajectories, variant in places
        for family in FAMILIES
    ]


def measure(config: Config, cell: Cell) -> Measured:
    car = cell.setting == car_setting(config)
    task = car_task(config, cell.seed) if car else objects_task(config, config.size, config.colors, cell.seed)
    dense = cell.variant == "dense"
    repeats = config.dense_repeats if dense else config.repeats
    steps = config.steps + repeats
    trail = trail_of(task, FAMILIES[cell.method], tol=1e-12, max_iter=steps)[-repeats - 1 :]
    seconds = time_steps(_start(task, cell.method, dense), cell.method, trail)
    done = {"status": "measured", "message": "", "states": task.mdp.n_states, "repeats": repeats}
    return Measured(done | seconds)


def _start(task: Task, family: str, dense: bool) -> Run:
    estimator = task.estimator(FAMILIES[family])
    if dense:
        return DenseRun(estimator, DenseModel.of(task.mdp), task.mdp, task.demos)
    return Run(estimator.method, estimator.reward, estimator.options, task.mdp, task.demos)


def time_steps(run: Run, family: str, trail: Sequence[Floats]) -> dict[str, float]:
    """Seconds of every computation along `trail`, whose first point only gets things going."""
    repeats = len(trail) - 1
    expert = run.expert  # estimated before the clock starts, as in the paper
    precomputed, rho = clock(run.rho, repeats)
    made: dict[str, float] = {"precomputed": precomputed}
    if family == APPROXIMATION:
        made["update"], pi_tilde = clock(lambda: run.given(expert), repeats)
    else:
        made["cold"], pi_tilde = clock(lambda: _cold(run, trail[0]), repeats)
    made |= along(run.make_objective(rho, pi_tilde), trail)
    return made | {"step": made["value"] + made["adjoint"] + made["gradient"]}


def _cold(run: Run, theta: Floats) -> PiTilde:
    """π_θ from nothing, as at the start of a search."""
    pi_tilde = run.own()
    pi_tilde.soft_value(np.where(run.mdp.feasible, run.reward.value(theta), 0.0))
    return pi_tilde


run = run_with(NAME, Config)


def tables(results: Results) -> dict[str, Table]:
    import pandas as pd

    made = {}
    for family, rows in ROWS.items():
        if not len(results.where(method=family)):
            continue
        at_start = [("At the start", "1. Optimal soft value and policy", "cold", "")] if family == OPTIMISATION else []
        lines = [_line(results, family, setting, *row) for setting in worlds_of(results) for row in [*rows, *at_start]]
        made[family] = Table(pd.DataFrame(with_load(lines)), _caption(family))
    return made


def _caption(family: str) -> str:
    counts = (
        "Derivative counts and gradient (3. and 4.) are one product here; the paper's are added for the ratio. "
        "In a search the soft value starts from the last one and its factorisation; at the start, from nothing. "
    )
    return (
        f"{family.capitalize()} methods: seconds for each computation, done once (median). "
        + (counts if family == OPTIMISATION else "The occupancy under π̃ is a factorisation here, never a tensor. ")
        + f"The paper's seconds, for its sizes ({' and '.join(BREAKDOWN_SETTINGS)}), are from another machine "
        f"({PLATFORM}); “dense” is its way of computing on ours, on one thread, where the paper does not say how "
        f"many it used. “ratio”: the paper's seconds over ours. {LOAD}"
    )


def _line(results: Results, family: str, setting: str, when: str, words: str, column: str, way: str) -> dict[str, str]:
    """A row of the paper's table for a world: ours, dense where it was measured, the paper's and the ratio."""
    ours, dense, paper = three_seconds(results, setting, family, words, column)
    printed = None if column == "cold" else paper_seconds(setting, family, words)
    unknown = NONE if column else "with 4."
    return {
        "Settings": setting,
        "When?": WHEN[when],
        "Computation": words,
        "requirement": way,
        "ours [s]": in_seconds(ours) if ours else unknown,
        "dense [s]": in_seconds(dense) if dense else NONE if not _has_dense(results, setting) else unknown,
        "paper [s]": NONE if printed is None else f"{printed:.2f}",
        "ratio": times(paper / ours) if paper and ours else NONE,
        "load": load_column(results.where(setting=setting, method=family)),
    }


def _has_dense(results: Results, setting: str) -> bool:
    return len(results.where(setting=setting, variant="dense")) > 0


def worlds_of(results: Results) -> list[str]:
    """The settings that have results."""
    config = results.config
    named = (car_setting(config), objects_setting(config.size, config.colors))
    return [setting for setting in named if len(results.where(setting=setting))]


def three_seconds(
    results: Results, setting: str, family: str, words: str, column: str
) -> tuple[float | None, float | None, float | None]:
    """Ours, dense, the paper's; what the paper splits in two (3. and 4.) is added up."""
    ours, dense = (_measured(results, setting, family, variant, column) for variant in ("sparse", "dense"))
    paper = None if column in ("", "cold") else paper_seconds(setting, family, words)
    if paper is not None and words.startswith("4."):
        paper += paper_seconds(setting, family, "3. Exp. reward deriv. counts under π_θ") or 0.0
    return ours, dense, paper


def _measured(results: Results, setting: str, family: str, variant: str, column: str) -> float | None:
    rows: pd.DataFrame = results.where(setting=setting, method=family, variant=variant)
    return float(rows[column].mean()) if column in rows and len(rows) else None


def paper_seconds(setting: str, family: str, words: str) -> float | None:
    """What the paper's table says; None where it has no such setting."""
    if setting not in BREAKDOWN_SETTINGS:
        return None
    return SECONDS[family][words][BREAKDOWN_SETTINGS.index(setting)]


def draw(results: Results) -> dict[str, Picture]:
    if not len(results.frame):
        return {}
    caption = (
        "Seconds for each computation, done once (logarithmic): ours (filled), the paper's way of computing on our "
        f"machine (crosses, where it was run), and the paper's own (open; {PLATFORM}; only for its sizes). In every "
        "step an optimisation-based method solves for the soft optimum; an approximation-based one multiplies (here: "
        "solves with a factorisation that is kept)."
    )
    return {"steps": Picture(_draw_steps(results), caption, _in_words(results), PAPER)}


def _draw_steps(results: Results) -> Figure:
    from matplotlib.figure import Figure

    worlds = worlds_of(results)
    figure = Figure(figsize=(10.5, 5.6), layout="constrained")
    drawn: list[tuple[float | None, ...]] = []
    for ax, setting in zip(figure.subplots(1, len(worlds), sharey=True, squeeze=False)[0], worlds):
        drawn += _draw_world(ax, results, setting)
        ax.label_outer()
    legend(figure, _styles(), drawn)
    return figure


def _styles() -> dict[str, tuple[str, str]]:
    """Each family in the colour and mark of its method."""
    from revealed.experiments.curves import STYLE

    return {family: (str(STYLE[name]["color"]), str(STYLE[name]["marker"])) for family, name in FAMILIES.items()}


def _draw_world(ax: Axes, results: Results, setting: str) -> list[tuple[float | None, ...]]:
    """The rows of both tables from top to bottom; returns the seconds that were drawn."""
    shown = [(family, row) for family, rows in ROWS.items() for row in rows if row[2]]
    drawn = [_marks(results, setting, family, words, column) for family, (_, words, column, _) in shown]
    for place, ((family, _), seconds) in enumerate(zip(shown, drawn)):
        draw_marks(ax, place, seconds, *_styles()[family], across=True)
    border = sum(family == OPTIMISATION for family, _ in shown)
    ax.axhline(border - 0.5, color="0.75", linewidth=0.8)
    ax.set_yticks(range(len(shown)), [_short(when, words) for _, (when, words, _, _) in shown])
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_title(setting, fontsize=11)
    log_axis(ax, across=True)
    return drawn


def _marks(results: Results, setting: str, family: str, words: str, column: str) -> tuple[float | None, ...]:
    """What is drawn: ours, the paper's way measured, and extrapolated (never here), the paper's."""
    ours, dense, paper = three_seconds(results, setting, family, words, column)
    return ours, dense, None, paper


def _short(when: str, words: str) -> str:
    """The paper's words, with how often the computation is made where that is not every step."""
    if words.startswith("Inner"):
        return "every step, in all"
    if words.startswith("4."):
        return "3. + 4. Counts and gradient"
    often = {"Pre-computed": "once: ", "Within outer loop": f"once per {_SHORTER['π̃']}: "}.get(when, "")
    for long, short in _SHORTER.items():
        words = words.replace(long, short)
    return often + words


_SHORTER = {
    "expert policy ": "",
    "optimal policy ": "",
    "under policy": "under",
    "π̂_E": r"$\hat{\pi}_E$",
    "π_θ": r"$\pi_\theta$",
    "π̃": r"$\tilde{\pi}$",
}


def _in_words(results: Results) -> str:
    parts = [
        f"{setting}, {family}: {in_seconds(step)} s in every step"
        for setting in worlds_of(results)
        for family in FAMILIES
        if (step := _measured(results, setting, family, "sparse", "step"))
    ]
    return "Seconds on a logarithmic axis for each computation of both families. Ours: " + "; ".join(parts) + "."
