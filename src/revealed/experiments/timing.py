"""Table 2: how long the three methods train, beside the paper's seconds and beside dense algebra on the same machine.

The paper's finding: NPL and CCP are faster than MCE-IRL in every setting, the more so the larger the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from revealed.experiments.cells import METHODS, TIGHTER, Cell, Measured, Picture, Results, Table, fit_row, run_with
from revealed.experiments.dense_baseline import DenseModel, fit_dense
from revealed.experiments.numbers import share
from revealed.experiments.published import PLATFORM, TRAINING_SECONDS
from revealed.experiments.seconds import NONE, draw_marks, in_seconds, legend, log_axis, times
from revealed.experiments.timed import Task, Worlds, car_setting, car_task, objects_setting, objects_task
from revealed.fit import Fit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NAME = "timing"
TITLE = "Training time"
PAPER = "Table 2"
ALONE = True
ABOUT = (
    "The time of whole fits with the largest samples and occupancy weights: estimating the expert's policy, weights, "
    "factorisations, and the search until the gradient's norm is below the threshold (for networks several times in a "
    "row) or the iteration limit is reached, for NPL in every update; updates end once π̃ no longer moves. Worlds, "
    "samples, compiling the network and judging the result are not timed. One fit at a time, linear algebra on one "
    "thread. Thresholds were fixed before any timing and are the same for all methods. “Dense” is the paper's way of "
    "computing (value iteration, matrix inverses, the tensor of occupancies) within the same search, step for step."
)
OWN = "lbfgs"  # the library's own choice for a weight per state; for networks, where that is Adam, the alternative
VARIANTS = {
    "adam": "Adam, as in the paper",
    "own": "L-BFGS",
    "adam tighter": "Adam, threshold ten times tighter",
    "own tighter": "L-BFGS, threshold ten times tighter",
    "dense adam": "Adam, dense algebra",
}
OFFSETS = tuple(zip((-0.24, 0.0, 0.24), METHODS))  # where a method's marks stand within its setting
AIMED = {"adam": "ours", "adam tighter": "tighter"}
AIMS = {"MCE-IRL": 100, "NPL": 30, "CCP": 20}  # so many times under the paper's seconds


@dataclass(frozen=True)
class Config(Worlds):
    """The full protocol. The paper gives settings, methods and K; thresholds, rates and the rest are ours.

    `grids` are (size, colours) of Objectworld; `tighter_grids` so many of them, the first, are searched with the
    tighter thresholds too (Mountain Car always is), and dense algebra is run up to `dense_states` states. `max_iter`
    bounds each maximisation. `beside` seeds are enough for these, which stand beside the others.
    """

    grids: tuple[tuple[int, int], ...] = ((16, 4), (32, 2), (32, 4), (64, 4))
    tighter_grids: int = 4
    dense_states: int = 1100
    max_iter: int = 1000
    tighter: float = TIGHTER
    own: str = OWN
    seeds: int = 3
    beside: int = 1


QUICK = Config(bins=40, tighter_grids=0, dense_states=300, max_iter=400, seeds=2)


def cells(config: Config) -> list[Cell]:
    return [
        Cell(NAME, where, method, trajectories, seed, variant, _guess(states, method, variant, config.max_iter))
        for where, states, trajectories, offered in _settings(config)
        for seed in range(config.seeds)
        for variant in offered
        if variant in ("adam", "own") or seed < config.beside
        for method in METHODS
    ]


def _settings(config: Config) -> Iterator[tuple[str, int, int, list[str]]]:
    """Each setting with its states, its trajectories and the variants that are run there."""
    yield car_setting(config), config.bins**2, config.drives, [name for name in VARIANTS if "dense" not in name]
    for k, (size, colors) in enumerate(config.grids):
        left_out = (
            "tighter" if k >= config.tighter_grids else None,
            "dense" if size**2 > config.dense_states else None,
        )
        offered = [name for name in VARIANTS if not any(word in name for word in left_out if word)]
        yield objects_setting(size, colors), size**2, config.walks, offered


def _guess(states: int, method: str, variant: str, max_iter: int) -> float:
    """Seconds, roughly: for the remaining time alone."""
    step = states * {"MCE-IRL": 5e-6, "NPL": 2e-6, "CCP": 2e-6}[method] + 8e-4
    tight = 0.7 * max_iter * (4 if method == "NPL" else 1)
    steps = tight if "tighter" in variant else 40 if variant == "own" else 120
    return step * steps * (30 if variant == "dense adam" and method == "MCE-IRL" else 1)


def task_of(config: Config, setting: str, seed: int) -> Task:
    if setting == car_setting(config):
        return car_task(config, seed)
    size, colors = next(grid for grid in config.grids if objects_setting(*grid) == setting)
    return objects_task(config, size, colors, seed)


def measure(config: Config, cell: Cell) -> Measured:
    task = task_of(config, cell.setting, cell.seed)
    tol = task.options["tol"] / (config.tighter if "tighter" in cell.variant else 1.0)
    optimizer = config.own if cell.variant.startswith("own") else "adam"
    estimator = task.estimator(cell.method, optimizer=optimizer, tol=tol, max_iter=config.max_iter)
    if cell.variant == "dense adam":
        fit = fit_dense(estimator, DenseModel.of(task.mdp), task.mdp, task.demos)
    else:
        fit = estimator.fit(task.mdp, task.demos)
    extra = {"states": task.mdp.n_states, "threshold": tol, "reached": reached(fit, tol, task.options["patience"])}
    return Measured(fit_row(fit) | extra | {"evd_share": evd_share(task, fit)})


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


def tables(results: Results) -> dict[str, Table]:
    made = {
        "table2": _paper_arrangement(results),
        "variants": _all_variants(results),
        "dense": _dense_beside_sparse(results),
        "aims": _aims(results),
    }
    return {name: table for name, table in made.items() if len(table.frame)}


def _mean(results: Results, setting: str, variant: str, method: str) -> pd.Series | None:
    """Means over seeds of what was measured there; None where nothing was."""
    rows = results.where(setting=setting, variant=variant, method=method)
    if not len(rows):
        return None
    mean = rows[["seconds", "iterations", "linear_solves", "updates", "reached", "evd_share"]].astype(float).mean()
    mean["searches"] = len(rows)
    return mean


def settings_of(results: Results) -> list[str]:
    """The settings that have results, in the order of the paper's table."""
    present = set(results.frame["setting"])
    return [where for where, *_ in _settings(results.config) if where in present]


def _paper_arrangement(results: Results) -> Table:
    import pandas as pd

    lines = []
    for setting in settings_of(results):
        line: dict[str, str] = {"Settings": setting}
        base = _mean(results, setting, "adam", "MCE-IRL")
        for method in METHODS:
            mean = _mean(results, setting, "adam", method)
            paper = TRAINING_SECONDS.get(setting, {}).get(method)
            line[f"{method} [s]"] = _seconds_with_speed_up(mean, base if method != "MCE-IRL" else None)
            line[f"{method}, EVD share"] = NONE if mean is None else share(mean["evd_share"])
            line[f"{method}, paper [s]"] = NONE if paper is None else f"{paper:.2f}"
            line[f"{method}, paper/ours"] = NONE if paper is None or mean is None else times(paper / mean["seconds"])
        lines.append(line)
    caption = (
        f"Training time in seconds, Adam, mean over {_seeds(results)} seeds; in brackets the speed-up against MCE-IRL. "
        "“EVD share” shows how far a search had come: EVD as a share of what the uniform policy loses. The threshold "
        "is the same number at every size, and on larger grids it is met by networks that have learnt less; the table "
        "of all searches has the tighter one. The paper's seconds are from another machine and other software "
        f"({PLATFORM}) and from searches of unknown length (it gives no threshold and speaks of thousands of "
        "iterations), so the ratios mix ways of computing with machines and thresholds; the breakdown compares single "
        "steps. – where the paper has no such setting; * where not every search reached the threshold."
    )
    return Table(pd.DataFrame(lines), caption)


def _seeds(results: Results) -> int:
    return int(results.where(variant="adam")["seed"].nunique())


def _seconds_with_speed_up(mean: pd.Series | None, base: pd.Series | None) -> str:
    if mean is None:
        return NONE
    star = "" if mean["reached"] == 1.0 else "*"
    speed_up = "" if base is None else f" ({times(base['seconds'] / mean['seconds'])})"
    return f"{in_seconds(mean['seconds'])}{star}{speed_up}"


def _all_variants(results: Results) -> Table:
    import pandas as pd

    lines = []
    for setting in settings_of(results):
        for variant, words in VARIANTS.items():
            base = _mean(results, setting, variant, "MCE-IRL")
            for method in METHODS:
                mean = _mean(results, setting, variant, method)
                if mean is None or variant == "dense adam":
                    continue
                lines.append({"Settings": setting, "search": words, "method": method} | _search_words(mean, base))
    caption = (
        "All searches: with Adam and L-BFGS, and with thresholds ten times tighter. Means over seeds; iterations and "
        "linear solves are sums over NPL's updates. “EVD share” shows how far a search had come: EVD as a share of "
        "what the uniform policy loses. A search that does not reach the threshold ends after "
        f"{results.config.max_iter} iterations (of each update): its seconds are those of the iterations, and no "
        "speed-up is given."
    )
    return Table(pd.DataFrame(lines), caption)


def _search_words(mean: pd.Series, base: pd.Series | None) -> dict[str, str]:
    return {
        "seconds": in_seconds(mean["seconds"]),
        "speed-up": times(base["seconds"] / mean["seconds"]) if base is not None and _whole(mean, base) else NONE,
        "iterations": f"{mean['iterations']:.0f}",
        "linear solves": f"{mean['linear_solves']:.0f}",
        "EVD share": share(mean["evd_share"]),
        "threshold reached": f"{mean['reached'] * mean['searches']:.0f} of {mean['searches']:.0f}",
    }


def _whole(mean: pd.Series, base: pd.Series) -> bool:
    """Whether both reached the threshold in all searches; else the seconds are those of the iterations allowed."""
    return mean["reached"] == 1.0 == base["reached"]


def _dense_beside_sparse(results: Results) -> Table:
    import pandas as pd

    lines = []
    for setting in settings_of(results):
        for method in METHODS:
            dense, sparse = equal_hardware(results, setting, method)
            if dense is None or sparse is None:
                continue
            paper = TRAINING_SECONDS.get(setting, {}).get(method)
            line = {"Settings": setting, "method": method, "iterations": f"{sparse['iterations']:.0f}"}
            line |= {"sparse [s]": in_seconds(sparse["seconds"]), "dense [s]": in_seconds(dense["seconds"])}
            line |= {"dense/sparse": times(dense["seconds"] / sparse["seconds"])}
            line |= {"paper [s]": NONE if paper is None else f"{paper:.2f}"}
            lines.append(line)
    caption = (
        "Sparse and dense algebra on equal hardware: the same searches with Adam, the same iterations and threads, "
        "the same seeds. The paper's seconds come from a different machine and different software "
        f"({PLATFORM}), so only the dense column is measured on equal hardware."
    )
    return Table(pd.DataFrame(lines), caption)


def equal_hardware(results: Results, setting: str, method: str) -> tuple[pd.Series | None, pd.Series | None]:
    """Means of dense and sparse searches over the seeds that have both."""
    dense = results.where(setting=setting, variant="dense adam", method=method)
    sparse = results.where(setting=setting, variant="adam", method=method)
    seeds = set(dense["seed"]) & set(sparse["seed"])
    if not seeds:
        return None, None
    dense, sparse = (rows[rows["seed"].isin(seeds)][["seconds", "iterations"]].mean() for rows in (dense, sparse))
    return dense, sparse


def _aims(results: Results) -> Table:
    import pandas as pd

    lines = []
    for setting in settings_of(results):
        for method, aim in AIMS.items():
            paper = TRAINING_SECONDS.get(setting, {}).get(method)
            means = {words: _mean(results, setting, variant, method) for variant, words in AIMED.items()}
            if paper is None or all(mean is None for mean in means.values()):
                continue
            line: dict[str, Any] = {
                "Settings": setting,
                "method": method,
                "paper [s]": f"{paper:.2f}",
                "aim": f"×{aim}",
            }
            for words, mean in means.items():
                line |= (
                    {f"{words} [s]": NONE, f"{words}, ratio": NONE} if mean is None else _aimed(words, mean, paper, aim)
                )
            lines.append(line)
    caption = (
        "Targets for the paper's settings: a given factor below its seconds, with Adam; ✓ where reached. “Tighter” is "
        f"the threshold ten times tighter, which networks do not meet: there they end after {results.config.max_iter} "
        f"iterations of each maximisation, about as many as the paper speaks of. The machines differ ({PLATFORM} "
        "there)."
    )
    return Table(pd.DataFrame(lines), caption)


def _aimed(words: str, mean: pd.Series | None, paper: float, aim: int) -> dict[str, str]:
    if mean is None:
        return {f"{words} [s]": NONE, f"{words}, ratio": NONE}
    ratio = paper / mean["seconds"]
    mark = " ✓" if ratio >= aim else ""
    return {f"{words} [s]": in_seconds(mean["seconds"]), f"{words}, ratio": times(ratio) + mark}


def draw(results: Results) -> dict[str, Picture]:
    if not len(results.frame):
        return {}
    caption = (
        "Training time with Adam: ours (filled), dense algebra in the same search on the same machine (crosses, where "
        f"it was run), and the paper's seconds (open, another machine: {PLATFORM}; only for its settings). Means over "
        "seeds; the axis is logarithmic."
    )
    return {"seconds": Picture(_draw_seconds(results), caption, _in_words(results))}


def _draw_seconds(results: Results) -> Figure:
    from matplotlib.figure import Figure

    from revealed.experiments.curves import STYLE

    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    ax = figure.subplots()
    settings = settings_of(results)
    styles = {method: (str(STYLE[method]["color"]), str(STYLE[method]["marker"])) for method in METHODS}
    places = [(x + offset, setting, method) for x, setting in enumerate(settings) for offset, method in OFFSETS]
    seconds = [_three_seconds(results, setting, method) for _, setting, method in places]
    for (x, _, method), three in zip(places, seconds):
        draw_marks(ax, x, three, *styles[method])
    for x in range(1, len(settings)):
        ax.axvline(x - 0.5, color="0.85", linewidth=0.8)
    ax.set_xticks(
        range(len(settings)), [name.replace("world ", "world\n").replace("Car ", "Car\n") for name in settings]
    )
    ax.set_xlim(-0.5, len(settings) - 0.5)
    log_axis(ax)
    legend(figure, styles, seconds)
    return figure


def _three_seconds(results: Results, setting: str, method: str) -> tuple[float | None, ...]:
    """Ours, dense, the paper's."""
    dense, ours = equal_hardware(results, setting, method)  # on the same seeds, so that marks can be compared
    ours = _mean(results, setting, "adam", method) if ours is None else ours
    measured = (None if row is None else float(row["seconds"]) for row in (ours, dense))
    return (*measured, TRAINING_SECONDS.get(setting, {}).get(method))


def _in_words(results: Results) -> str:
    parts = []
    for setting in settings_of(results):
        means = {method: _mean(results, setting, "adam", method) for method in METHODS}
        seen = [f"{method} {in_seconds(mean['seconds'])} s" for method, mean in means.items() if mean is not None]
        parts.append(f"{setting}: " + ", ".join(seen))
    return "Seconds on a logarithmic axis for each setting and method. Ours: " + "; ".join(parts) + "."
