"""The four methods side by side on a windy grid world whose reward is known, and a picture of what they recover.

An expert walks a 12 × 12 map. It likes the goal, the roads and the view from a hill, and avoids mud; each step, wind
may carry it elsewhere. From its walks NFXP, MCE-IRL, CCP and NPL recover the four weights; a table of one weight per
cell and a network that sees only distances recover the reward without knowing that it is linear. Plain ground has no
feature, so no constant can be added to the reward within the linear model: the weights are identified.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.demonstrations import Demonstrations
from revealed.environments.grid import ACTIONS, grid_transitions
from revealed.environments.world import GridWorld, make_expert
from revealed.estimators import CCP, MCEIRL, NFXP, NPL, Estimator
from revealed.experiments.output import prepare_folder, write_csv, write_figure
from revealed.fit import Fit
from revealed.mdp import MDP, Floats
from revealed.metrics import nll
from revealed.plots import add_colorbar, plot_grid
from revealed.progress import Progress
from revealed.rewards.tabular import TabularReward

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table

FOLDER = Path("results") / "demonstration"
NAMES = ("goal", "road", "mud", "view")
MAP = """
...~~~......
.==.~~...GG.
.==.~~...GG.
.=........=.
.=..=======.
.=..=.....=.
.====.~~..=.
.=...~~~~.=.
.=...~~~~.=.
.=....~~..=.
.==========.
............
"""
SAME = 1e-5  # two searches that end this close have found the same maximum


@dataclass(frozen=True)
class Config:
    """The world, the sample and the searches. `weights` are those of `NAMES`, `hill` is (row, column) of the view."""

    map: str = MAP
    weights: tuple[float, float, float, float] = (3.0, 1.0, -2.0, 1.0)
    hill: tuple[float, float] = (8.0, 3.0)
    wind: float = 0.2
    discount: float = 0.95
    trajectories: int = 200
    length: int = 50
    seed: int = 0
    updates: int = 30  # of NPL, at most
    tabular_l2: float = 1e-4  # a weight per cell needs some: cells that nobody visits say nothing
    network_l2: float = 1e-4
    network_tol: float = 1e-3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MapWorld(GridWorld):
    """The map as a world; `distances` (S, 4) are what a network sees of it, `demos` the sample of walks."""

    config: Config
    distances: Floats

    @classmethod
    def build(cls, config: Config) -> MapWorld:
        cells = np.array([list(line) for line in config.map.split()])
        rows, columns = cells.shape
        mdp = MDP(grid_transitions(rows, columns, config.wind, stay=True), config.discount, action_labels=ACTIONS)
        features, distances = _features(cells, config.hill)
        weights = np.array(config.weights)
        reward = np.repeat((features @ weights)[:, None], len(ACTIONS), axis=1)
        return cls(
            name="the map",
            mdp=mdp,
            features=features,
            true_reward=reward,
            expert=make_expert(mdp, reward),
            feature_names=NAMES,
            true_weights=weights,
            length=config.length,
            shape=(rows, columns),
            config=config,
            distances=distances,
        )

    @cached_property
    def demos(self) -> Demonstrations:
        return self.demonstrate(self.config.trajectories, seed=self.config.seed)


def _features(cells: Any, hill: tuple[float, float]) -> tuple[Floats, Floats]:
    """(S, 4) goal, road and mud as 0 or 1 and the view; (S, 4) the distances from which a network has to guess them."""
    place = np.argwhere(np.ones_like(cells, dtype=bool))
    kinds = [cells.reshape(-1) == mark for mark in "G=~"]
    nearest = [np.linalg.norm(place[:, None] - place[None, kind], axis=2).min(axis=1) for kind in kinds]
    climb = np.linalg.norm(place - np.array(hill), axis=1)
    return np.column_stack([*kinds, np.exp(-(climb**2) / 8.0)]), np.column_stack([*nearest, climb])


@dataclass(frozen=True)
class Outcome:
    """The fits: `methods` with the linear reward (NFXP, MCE-IRL, CCP, NPL), `tabular` and `network` with NFXP."""

    world: MapWorld
    methods: dict[str, Fit]
    tabular: Fit
    network: Fit

    @cached_property
    def verdicts(self) -> tuple[str, ...]:
        """What the numbers say, in words; fits that did not converge say why."""
        fits = (*self.methods.values(), self.tabular, self.network)
        troubles = (f"{fit.method}, {_kind(fit)} reward: {fit.status}" for fit in fits if not fit.converged)
        return (*_verdicts(self.world, self.methods), *troubles)


def run(
    config: Config | None = None,
    folder: str | os.PathLike[str] = FOLDER,
    console: Console | None = None,
    quiet: bool = False,
) -> Outcome:
    """Simulate, estimate, write `rewards.png` and `estimates.csv` to `folder`, and print the tables unless `quiet`."""
    target = prepare_folder(folder)
    outcome = estimate(MapWorld.build(config or Config()), progress=False if quiet else None)
    files = [
        write_figure(target / "rewards.png", draw(outcome)),
        write_csv(target / "estimates.csv", _HEADER, _csv_rows(outcome)),
    ]
    if not quiet:
        report(outcome, files, console)
    return outcome


def estimate(world: MapWorld, progress: bool | None = None) -> Outcome:
    """All fits, one after the other."""
    config, reward = world.config, world.reward_model()
    linear: dict[str, Callable[[], Estimator]] = {
        "NFXP": lambda: NFXP(reward, progress=False),
        # the same maximum by another road: gradients alone, as is usual in inverse reinforcement learning
        "MCE-IRL": lambda: MCEIRL(reward, progress=False, optimizer="lbfgs", tol=1e-8),
        "CCP": lambda: CCP(reward, progress=False),
        "NPL": lambda: NPL(reward, updates=config.updates, progress=False),
    }
    with Progress("demonstration", progress, total=len(linear) + 2) as bar:
        methods = {name: _fit(make(), world, bar) for name, make in linear.items()}
        table = TabularReward(world.mdp.n_states)
        tabular = _fit(NFXP(table, l2=config.tabular_l2, progress=False), world, bar)
        network = _fit(_network(world), world, bar)
    return Outcome(world, methods, tabular, network)


def _network(world: MapWorld) -> Estimator:
    from revealed.rewards.neural import NeuralReward

    config = world.config
    net = NeuralReward(world.distances / 4.0, activation="tanh", seed=config.seed)
    return NFXP(net, optimizer="lbfgs", l2=config.network_l2, tol=config.network_tol, progress=False)


def _fit(estimator: Estimator, world: MapWorld, bar: Progress) -> Fit:
    fit = estimator.fit(world.mdp, world.demos)
    if fit.status.interrupted:
        raise KeyboardInterrupt  # a fit keeps what it has reached; here the user wants out
    bar.update(fit.method)
    return fit


def centred(reward: Floats) -> Floats:
    """(S,) the reward of each state less the mean over states: choices do not see a constant (theory I1)."""
    per_state = reward if reward.ndim == 1 else reward[:, 0]
    return per_state - per_state.mean()


def _verdicts(world: MapWorld, fits: dict[str, Fit]) -> Iterator[str]:
    """Which methods agree, and how far each is from the truth."""
    nfxp, mce, ccp, npl = (fits[name] for name in ("NFXP", "MCE-IRL", "CCP", "NPL"))
    gap, _ = _gap(nfxp.theta, mce.theta)
    if gap <= SAME:
        yield f"NFXP and MCE-IRL agree to {gap:.0e}: one estimator under two names, here by two searches."
    else:
        yield f"NFXP and MCE-IRL differ by {gap:.1e} (NFXP: {nfxp.status.code}, MCE-IRL: {mce.status.code})."
    gap, _ = _gap(npl.theta, nfxp.theta)
    settled = f"settled after {npl.updates}" if npl.settled else f"had not settled after {npl.updates}"
    yield f"NPL {settled} updates; it differs from NFXP by {gap:.0e}."
    gap, name = _gap(ccp.theta, nfxp.theta)
    yield f"CCP differs from NFXP by {gap:.2g} ({name}); it took {ccp.seconds:.3f} s, NFXP {nfxp.seconds:.3f} s."
    off = [(fit.method, *_gap(fit.theta, np.array(world.config.weights))) for fit in (nfxp, ccp)]
    yield "From the truth: " + ", ".join(f"{method} by {gap:.2g} ({name})" for method, gap, name in off) + " at most."


def _gap(a: Floats, b: Floats) -> tuple[float, str]:
    """The largest difference between two estimates, and whose it is."""
    k = int(np.argmax(np.abs(a - b)))
    return float(np.abs(a - b)[k]), NAMES[k]


def report(outcome: Outcome, files: list[Path], console: Console | None = None) -> None:
    """Tables and verdicts for a reader; plain text where there is no terminal."""
    from rich.console import Console
    from rich.table import Table

    console = console or Console()
    world, config = outcome.world, outcome.world.config
    rows, columns = world.shape
    console.print(
        f"A {rows} × {columns} grid world with wind {config.wind:g}, discount {config.discount:g}: "
        f"{world.demos.n_decisions:.0f} decisions in {config.trajectories} walks (seed {config.seed}).",
        highlight=False,
    )
    fits = list(outcome.methods.values())
    per_table = max(1, (console.width - 28) // 12)  # a narrow terminal gets several tables, not broken words
    for i in range(0, len(fits), per_table):
        console.print(_methods_table(world, fits[i : i + per_table]))
    console.print(_rewards_table(outcome))
    points = Table.grid(padding=(0, 1))
    for verdict in outcome.verdicts:
        points.add_row("•", verdict)
    console.print(points)
    console.print("Wrote " + " and ".join(str(file) for file in files), highlight=False, soft_wrap=True)


def _methods_table(world: MapWorld, fits: list[Fit]) -> Table:
    """Parameters and facts down, methods across."""
    table = _table("A linear reward: the truth, and four estimates", "", "truth", *(fit.method for fit in fits))
    for k, name in enumerate(NAMES):
        table.add_row(name, f"{world.config.weights[k]:.3f}", *(f"{fit.theta[k]:.3f}" for fit in fits))
    table.add_section()
    tilde = {"NFXP": "π_θ", "MCE-IRL": "π_θ", "CCP": "π̂_E", "NPL": "π̂_E, π_θ, …"}
    truth = f"{_llf(world):.2f}"
    table.add_row("π̃", "", *(tilde[fit.method] for fit in fits))
    table.add_row("updates of π̃", "", *(_settled(fit) for fit in fits))
    for name, cell in _FACTS.items():
        table.add_row(name, truth if name == "log likelihood" else "", *(cell(fit) for fit in fits))
    return table


def _rewards_table(outcome: Outcome) -> Table:
    """The rewards that do not know the features."""
    fits = (outcome.tabular, outcome.network)
    table = _table("Other rewards, both by NFXP", "", "a weight per cell", "network on distances")
    rows: dict[str, Callable[[Fit], str]] = {
        "weights": lambda fit: str(fit.theta.size),
        "correlation with the truth": lambda fit: f"{_correlation(outcome.world, fit):.3f}",
        **_FACTS,
    }
    for name, cell in rows.items():
        table.add_row(name, *(cell(fit) for fit in fits))
    return table


# what is told of every fit
_FACTS: dict[str, Callable[[Fit], str]] = {
    "log likelihood": lambda fit: f"{fit.llf:.2f}",
    "iterations": lambda fit: str(fit.iterations),
    "seconds": lambda fit: f"{fit.seconds:.3f}",
    "status": lambda fit: fit.status.code,
}


def _table(title: str, first: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    return table


def _kind(fit: Fit) -> str:
    """linear, tabular or neural"""
    return type(fit.reward_model).__name__.removesuffix("Reward").lower()


def _settled(fit: Fit) -> str:
    return "" if fit.settled is None else f"{fit.updates}, {'settled' if fit.settled else 'not settled'}"


def _llf(world: MapWorld) -> float:
    """The log likelihood of the sample at the true reward."""
    return -nll(world.expert, world.demos) * world.demos.n_decisions


def _correlation(world: MapWorld, fit: Fit) -> float:
    """Of the recovered reward with the true one, over states."""
    return float(np.corrcoef(centred(world.true_reward), centred(fit.reward))[0, 1])


_HEADER = (
    "method", "reward", *NAMES, "log_likelihood", "decisions", "correlation", "iterations", "updates", "settled",
    "seconds", "status",
)  # fmt: skip


def _csv_rows(outcome: Outcome) -> Iterator[tuple[Any, ...]]:
    world = outcome.world
    yield ("truth", "linear", *world.config.weights, _llf(world), world.demos.n_decisions, 1.0, *[None] * 5)
    for fit in (*outcome.methods.values(), outcome.tabular, outcome.network):
        weights = fit.theta.tolist() if _kind(fit) == "linear" else [None] * len(NAMES)
        facts = (fit.llf, fit.nobs, _correlation(world, fit), fit.iterations, fit.updates, fit.settled, fit.seconds)
        yield (fit.method, _kind(fit), *weights, *facts, fit.status.code)


def draw(outcome: Outcome) -> Figure:
    """The true reward with the expert's arrows, then what was recovered, all on the true reward's colours."""
    from matplotlib.figure import Figure

    world, fits = outcome.world, outcome.methods
    same = _gap(fits["NFXP"].theta, fits["MCE-IRL"].theta)[0] <= SAME
    panels: list[tuple[str, Floats, Floats]] = [
        ("truth, and the expert", world.true_reward, world.expert),
        ("NFXP = MCE-IRL" if same else "NFXP", fits["NFXP"].reward, fits["NFXP"].policy),
        ("CCP", fits["CCP"].reward, fits["CCP"].policy),
        ("NPL", fits["NPL"].reward, fits["NPL"].policy),
        ("a weight per cell", outcome.tabular.reward, outcome.tabular.policy),
        ("network on distances", outcome.network.reward, outcome.network.policy),
    ]
    figure = Figure(figsize=(6.4, 10.3), layout="constrained")
    axes = list(figure.subplots(3, 2, sharex=True, sharey=True).flat)
    scale = {"vmin": centred(world.true_reward).min(), "vmax": centred(world.true_reward).max(), "colorbar": False}
    for ax, (title, reward, policy) in zip(axes, panels, strict=True):
        plot_grid(ax, centred(reward), world.shape, policy, title, fontsize=12, **scale)
        ax.label_outer()
    label = "reward less its mean over cells (choices do not\nsee a constant); red: the policy that goes with it"
    add_colorbar(axes[0].images[0], axes, label, 12, location="bottom", extend="both", aspect=36, pad=0.015)
    return figure
