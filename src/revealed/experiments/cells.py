"""What an experiment consists of: cells. A cell is one method in one setting at one size with one seed, and one row.

Each experiment is a module of this folder with the parts of `Experiment` below: a frozen `Config` (whose defaults are
the full protocol; `QUICK` is a smaller one), the `cells` it asks for, `measure`, which computes one, and `draw` and
`tables`, which show the results. `run` does it all for one experiment.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from revealed import __version__
from revealed.errors import RevealedError
from revealed.estimators import CCP, MCEIRL, NPL, Estimator
from revealed.fit import Fit
from revealed.mdp import Floats
from revealed.rewards.base import Reward

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

METHODS = ("MCE-IRL", "NPL", "CCP")
L2 = 1e-5  # the common penalty
# thresholds of the gradient's norm, fixed before any timing and the same for all methods; TIGHTER times as tight beside
TOL, NETWORK_TOL, TIGHTER = 1e-3, 0.1, 10.0
NETWORK_PATIENCE = 5  # networks have noisy gradients: so many iterations in a row, as the paper asks


@dataclass(frozen=True)
class Cell:
    """One row to be: `setting` is the world in words, `size` what runs along the x axis (trajectories, say), `variant`
    a way of running the method ("occupancy", "sample", …). `cost` is a guess at its seconds, for progress alone."""

    experiment: str
    setting: str
    method: str
    size: int
    seed: int
    variant: str = ""
    cost: float = field(default=1.0, compare=False)

    @property
    def place(self) -> dict[str, Any]:
        """What tells this cell from the others of its experiment."""
        return {name: value for name, value in asdict(self).items() if name != "cost"}


@dataclass(frozen=True)
class Measured:
    """A cell's result: `row` of plain numbers and words, and `arrays` for the pictures where there are any."""

    row: dict[str, Any]
    arrays: dict[str, Floats] = field(default_factory=dict)


class Experiment(Protocol):
    """The parts of an experiment's module: `PAPER` names the paper's figures and tables, `ABOUT` tells the protocol in
    words, `ALONE` whether cells measure time, and so run one at a time."""

    @property
    def NAME(self) -> str: ...
    @property
    def TITLE(self) -> str: ...
    @property
    def PAPER(self) -> str: ...
    @property
    def ABOUT(self) -> str: ...
    @property
    def ALONE(self) -> bool: ...
    @property
    def QUICK(self) -> Any: ...
    @property
    def Config(self) -> Callable[..., Any]: ...
    @property
    def cells(self) -> Callable[[Any], list[Cell]]: ...
    @property
    def measure(self) -> Callable[[Any, Cell], Measured]: ...
    @property
    def run(self) -> Callable[..., Results]: ...
    @property
    def draw(self) -> Callable[[Results], dict[str, Picture]]: ...
    @property
    def tables(self) -> Callable[[Results], dict[str, Table]]: ...


@dataclass(frozen=True)
class Picture:
    """A figure with its caption, a description for those who cannot see it, and the paper's number of it, if it has
    one there: "Figure 1"."""

    figure: Figure
    caption: str
    alt: str
    paper: str = ""


@dataclass(frozen=True)
class Table:
    """A table as text cells, ready to be read; columns as in the paper."""

    frame: pd.DataFrame
    caption: str


@dataclass(frozen=True)
class Results:
    """The finished cells of one experiment under one configuration: `frame` has a row each, failed ones left out."""

    config: Any
    frame: pd.DataFrame
    failed: pd.DataFrame
    load: Callable[[str], Mapping[str, Floats]] = field(repr=False)

    def where(self, **place: Any) -> pd.DataFrame:
        """The rows at a place: `results.where(method="CCP", size=50)`."""
        frame = self.frame
        for name, value in place.items():
            frame = frame[frame[name] == value]
        return frame

    def only(self, **place: Any) -> Results:
        """The same with the rows at a place alone."""
        return replace(self, frame=self.where(**place))

    def arrays(self, **place: Any) -> Iterator[tuple[Any, Mapping[str, Floats]]]:
        """The rows at a place that come with arrays, each with its own, in the order of seeds."""
        rows = self.where(**place)
        if "arrays" in rows:
            for row in rows[rows["arrays"] == True].sort_values("seed").itertuples():  # noqa: E712
                yield row, self.load(str(row.key))


def fingerprint(config: Any) -> str:
    """A name for a configuration and the version of the library; results under another name are not mixed with it.

    How many seeds (or specifications) there are is left out: more of them leave each cell what it is.
    """
    return _fingerprint(config, __version__)


@lru_cache(maxsize=64)
def _fingerprint(config: Any, version: str) -> str:
    shared = [version, L2, NETWORK_PATIENCE]
    text = json.dumps([*shared, type(config).__module__, _without_seeds(asdict(config))], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _without_seeds(given: dict[str, Any]) -> dict[str, Any]:
    """Also in configurations within a configuration."""
    kept = {name: value for name, value in given.items() if name not in ("seeds", "beside", "plan")}
    return {name: _without_seeds(value) if isinstance(value, dict) else value for name, value in kept.items()}


def key_of(config: Any, cell: Cell) -> str:
    """The name of a cell's result on disk."""
    text = json.dumps([fingerprint(config), cell.place], sort_keys=True)
    return f"{cell.experiment}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def make_estimator(method: str, reward: Reward, updates: int, **options: Any) -> Estimator:
    """One of the three methods by the paper's name."""
    options = {"l2": L2, "progress": False} | options
    if method == "NPL":
        return NPL(reward, updates=updates, **options)
    return {"MCE-IRL": MCEIRL, "CCP": CCP}[method](reward, **options)


def fit_row(fit: Fit, scores: Mapping[str, float] | None = None) -> dict[str, Any]:
    """What every row tells of a fit."""
    if fit.status.interrupted:
        raise KeyboardInterrupt  # half a fit is no result
    options = {name: fit.options[name] for name in ("weighting", "optimizer", "tol", "l2")}
    return {
        "status": fit.status.code,
        "message": fit.status.message,
        "seconds": fit.seconds,
        "iterations": fit.iterations,
        "linear_solves": int(fit.rows[-1]["linear_solves"]),
        "updates": fit.updates,
        "settled": fit.settled,
        "gradient_norm": fit.gradient_norm,
        "decisions": fit.n_decisions,
        **options,
        **{name: float(value) for name, value in (scores or {}).items()},
    }


def failed_row(error: Exception) -> dict[str, Any]:
    """A cell that could not be computed, with its reason."""
    known = "" if isinstance(error, RevealedError) else f"{type(error).__name__}: "
    return {"status": "failed", "message": known + " ".join(str(error).split())}


def run_with(name: str, default: Callable[[], Any]) -> Callable[..., Results]:
    """An experiment's `run`: `run(config, folder, jobs=2)` computes what `folder` lacks and returns the results.

    Without `config` it is the full protocol; options as for `revealed.experiments.runner.run_plan`.
    """

    def run(config: Any = None, folder: str | os.PathLike[str] = f"results/{name}", **options: Any) -> Results:
        """Compute the cells that `folder` lacks and return the results, for `draw` and `tables`.

        `config` is the full protocol unless given. Options: `jobs`, `progress`, `fresh` (see `runner.run_plan`).
        """
        from revealed.experiments.runner import run_experiment

        return run_experiment(name, config or default(), folder, **options)

    return run


def per_state(table: Floats) -> Floats:
    """(S,) the mean of a reward over actions: all that a reward of states has."""
    return np.asarray(table, dtype=np.float64).reshape(len(table), -1).mean(axis=1)
