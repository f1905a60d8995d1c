"""Metrics against trajectories as one reading of the paper sees them: a table of rows, whoever measured it.

Everything that is judged is a share of what knowing nothing costs: the uniform policy's loss of value, its NLL above
the expert's entropy, and the EPIC distance of an unrelated reward. 0 is the truth; 1 is no knowledge at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from revealed.experiments.cells import METHODS, Results
from revealed.experiments.protocol import FEW, READINGS
from revealed.experiments.rules import Estimate
from revealed.mdp import Floats
from revealed.metrics import Truth

if TYPE_CHECKING:
    import pandas as pd

JUDGED = {"excess_nll": "NLL", "evd": "EVD", "stochastic_evd": "stochastic EVD", "epic": "EPIC"}  # the paper's four
UNRELATED = sqrt(0.5)  # EPIC of rewards without correlation


def yardsticks(truth: Truth) -> dict[str, float]:
    """What metrics of a world are measured against: the expert's own loss (`floor`), the uniform policy's (`span`),
    and the uniform policy's NLL above the expert's entropy (`blind`)."""
    assert truth.expert is not None
    uniform = truth.evaluate(policy=truth.mdp.uniform_policy())
    floor = truth.stochastic_evd(truth.expert)
    return {"floor": floor, "span": uniform["stochastic_evd"], "blind": uniform["excess_nll"]}


def shares(frame: pd.DataFrame) -> pd.DataFrame:
    """The judged metrics of rows as shares of what knowing nothing costs."""
    return frame.assign(
        excess_nll=frame["excess_nll"] / frame["blind"],
        evd=frame["evd"] / frame["span"],
        stochastic_evd=(frame["stochastic_evd"] - frame["floor"]) / (frame["span"] - frame["floor"]),
        epic=frame["epic"] / UNRELATED,
    )


@dataclass(frozen=True)
class Curves:
    """A row for each method, size and seed, metrics as shares; `similarity` by seed is the least correlation between
    two methods' rewards at the largest size."""

    frame: pd.DataFrame
    sizes: tuple[int, ...]
    similarity: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def few(self) -> list[int]:
        return [n for n in self.sizes if n <= FEW] or list(self.sizes[:1])

    @property
    def seeds(self) -> int:
        """Seeds that have every method at every size."""
        counts = self.frame.groupby("seed").size()
        return int((counts >= len(METHODS) * len(self.sizes)).sum())

    @cached_property
    def _by_seed(self) -> tuple[pd.Index, dict[tuple[str, str, int], Floats]]:
        """The seeds, and by metric, method and size what each of them has; NaN where it has nothing."""
        metrics = [name for name in JUDGED if name in self.frame]
        wide = self.frame.pivot(index="seed", columns=["method", "size"], values=metrics).astype(np.float64)
        return wide.index, {cast(Any, key): wide.to_numpy()[:, k] for k, key in enumerate(wide.columns)}

    def levels(self, metric: str, method: str, sizes: Sequence[int]) -> pd.Series:
        """A metric by seed, averaged over sizes. Seeds that lack one of the sizes are left out."""
        import pandas as pd

        seeds, columns = self._by_seed
        nothing = np.full(len(seeds), np.nan)
        levels = np.array([columns.get((metric, method, n), nothing) for n in sizes]).mean(axis=0)
        return pd.Series(levels, index=seeds).dropna()

    def level(self, metric: str, method: str, sizes: Sequence[int]) -> Estimate:
        return Estimate.of(self.levels(metric, method, sizes).to_numpy())

    def difference(self, metric: str, a: str, b: str, sizes: Sequence[int]) -> Estimate:
        """What method a has above method b, paired by seed."""
        gap = self.levels(metric, a, sizes) - self.levels(metric, b, sizes)
        return Estimate.of(gap.dropna().to_numpy())


def rows_of(results: Results, reading: str, prefix: str = "") -> pd.DataFrame:
    """The rows of a reading: of each method those with its weights. Variants are named by their weights, after a
    `prefix` where the world differs."""
    weights = READINGS[reading].weights
    frame = results.frame
    chosen = [(frame["method"] == method) & (frame["variant"] == prefix + used) for method, used in weights.items()]
    return frame[np.logical_or.reduce(chosen)]


def curves_of(results: Results, reading: str) -> Curves:
    """What a reading sees of an experiment's rows."""
    sizes = tuple(sorted(int(n) for n in results.config.trajectories))
    return Curves(shares(rows_of(results, reading)), sizes)
