"""The bootstrap over agents: everything that was estimated from the data is estimated again (theory N6).

Agents are drawn with replacement, as weights on their counts. Each replication has its own random stream, so that the
result depends on `seed` alone, not on how many workers share the work. Those that fail are counted and shown.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.agent_groups import AgentGroups
from revealed.checks import is_seed, require_count, require_flag, require_probability
from revealed.errors import InvalidInput, InvalidOption
from revealed.gates import require_memory
from revealed.mdp import Floats
from revealed.parallel import cores, each, one_thread, workers
from revealed.progress import Progress
from revealed.voices import arg, shown

if TYPE_CHECKING:
    import pandas as pd

WORTH_WORKERS = 4.0  # seconds of work for which starting other processes pays
PIECE = 1.0  # seconds that a worker is busy before it hands over what it has done
MANY_FAILURES = 0.05
EACH_REPLICATION = 128  # numbers that one takes in memory, at least
FEW = 100  # replications below which percentiles near 2.5 % are hardly more than the extremes
TOO_FEW = f"too few for confidence intervals, whose bounds are hardly more than extremes: use {FEW} or more"


@dataclass(frozen=True)
class Replication:
    """One estimate from resampled agents: θ (K,), ψ (L,) of the transitions, and how it ended ("" for well)."""

    theta: Floats
    psi: Floats
    failure: str = ""


Refit = Callable[[Floats], Replication]  # from a weight per agent (N,) to the estimate with these weights


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """What the replications gave: `theta` (R, K) and `psi` (R, L) of those that converged, at `index` (R,) of `asked`.

    `failures` counts the others by reason. Failures are not random: often the likelihood of the resampled data has no
    maximum, so that with many of them the spread of the rest is too small.
    """

    names: tuple[str, ...]
    theta: Floats = field(repr=False)
    psi: Floats = field(repr=False)
    index: Any = field(repr=False)
    asked: int
    seed: int
    failures: dict[str, int]
    re_estimated: str
    done: dict[int, Replication] = field(repr=False)
    by: str = ""  # the key of the groups that were drawn, where it was not agents
    units: str = ""  # and how many of what

    @property
    def interrupted(self) -> bool:
        """Whether replications are missing; `fit.bootstrap()` with the same `reps` and `seed` resumes from here."""
        return len(self.done) < self.asked

    @property
    def n_failed(self) -> int:
        return sum(self.failures.values())

    @property
    def n_used(self) -> int:
        return len(self.theta)

    @cached_property
    def cov(self) -> Floats:
        """(K, K): covariance of the replications."""
        return np.atleast_2d(np.cov(self.theta, rowvar=False))

    @property
    def params(self) -> pd.DataFrame:
        """A row per replication that converged, a column per parameter."""
        import pandas as pd

        return pd.DataFrame(self.theta, columns=list(self.names), index=pd.Index(self.index, name="replication"))

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Percentiles of the replications."""
        import pandas as pd

        alpha = require_probability("alpha", alpha)
        low, high = draw_bounds(self.theta, (alpha / 2.0, 1.0 - alpha / 2.0))
        return pd.DataFrame({"lower": low, "upper": high}, index=list(self.names))

    def __str__(self) -> str:
        done = self.n_used + self.n_failed
        text = f"{done} replications" + (f" of {self.asked} (interrupted)" if self.interrupted else "")
        if self.failures:
            text += f", {self.n_failed} failed (" + ", ".join(f"{k}: {n}" for k, n in self.failures.items()) + ")"
            if self.n_failed > MANY_FAILURES * done:
                text += "; with this many failures the spread of the others is likely too small"
        if self.n_used < FEW:
            text += f"; {TOO_FEW}"
        text += f"; {self.units} drawn" if self.units else ""
        return text + f"; {self.re_estimated}"

    def __repr__(self) -> str:
        return f"<Bootstrap: {self}>"


def draw_bounds(draws: Floats, tails: tuple[float, float]) -> Floats:
    """The ends of an interval from B draws (B, …), the (B + 1)p-th of them: so that one more would lie below the lower
    and above the upper end as often as the tails say, with few draws as with many (theory N6)."""
    return np.quantile(draws, tails, axis=0, method="weibull")


def resample(
    refit: Refit,
    n_agents: int,
    names: tuple[str, ...],
    reps: int = 400,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | None = None,
    re_estimated: str = "",
    done: dict[int, Replication] | None = None,
    groups: AgentGroups | None = None,
) -> Bootstrap:
    """Draw agents, or `groups` of them, with replacement `reps` times and estimate again, but for those that are
    `done`.

    Ctrl-C keeps what was finished.
    """
    check_options(reps, seed, jobs)
    if n_agents < 2:
        remedy = "Plain counts have no agents: build demonstrations from trajectories or a frame."
        raise InvalidOption.conflict("bootstrap", f"requires at least two agents, not {n_agents}", remedy=remedy)
    if groups is not None:
        refit, n_agents = _ByGroup(refit, groups), groups.n
    found = dict(done or {})
    missing = [r for r in range(reps) if r not in found]
    with Progress("bootstrap", progress, total=len(missing)) as bar, suppress(KeyboardInterrupt):
        for r, replication in _replications(refit, n_agents, missing, seed, jobs):
            found[r] = replication
            bar.update()
    drawn = _gather(found, names, reps, seed, re_estimated)
    if groups is None:
        return drawn
    return replace(drawn, by=groups.key, units=f"{groups.n} clusters by {groups.by}")


@dataclass(frozen=True)
class _ByGroup:
    """The estimate with a weight per group of agents."""

    refit: Refit
    groups: AgentGroups

    def __call__(self, weights: Floats) -> Replication:
        return self.refit(self.groups.spread(weights))


def check_options(reps: Any = 2, seed: Any = 0, jobs: Any = None, progress: Any = None) -> None:
    """Raise where the options of a bootstrap cannot be meant."""
    require_count("reps", reps, least=2)
    require_memory("reps", reps, EACH_REPLICATION * int(reps))
    if not is_seed(seed) or seed is None:
        raise InvalidInput("seed", "a whole number >= 0", shown(seed))
    if jobs is not None:
        require_count("jobs", jobs)
    if progress is not None:
        require_flag("progress", progress)


def _replications(
    refit: Refit, n_agents: int, numbers: list[int], seed: int, jobs: int | None
) -> Iterator[tuple[int, Replication]]:
    """The first one here, which tells how long the others will take; then the rest, where that pays on workers."""
    born = time.perf_counter()
    first, rest = numbers[:1], numbers[1:]
    yield from _some(refit, n_agents, seed, first)
    if not rest:
        return
    seconds = (time.perf_counter() - born) * len(rest)
    n = _workers(jobs, seconds)
    few = max(8 * n, math.ceil(seconds / PIECE))  # pieces: an interrupt loses those that are on their way
    pieces = [[r] for r in rest] if n == 1 else np.array_split(rest, min(len(rest), few))
    chunks = [(refit, n_agents, seed, [int(r) for r in piece]) for piece in pieces]
    for finished in each(_some, chunks, n if jobs is not None or workers(None) == 1 else None):
        yield from finished


def _some(refit: Refit, n_agents: int, seed: int, numbers: list[int]) -> list[tuple[int, Replication]]:
    with one_thread():  # so that rounding does not depend on where it runs
        return [(r, refit(draw_weights(n_agents, seed, r))) for r in numbers]


def draw_weights(n_agents: int, seed: int, replication: int) -> Floats:
    """(N,): how often each agent was drawn in this replication."""
    rng = np.random.default_rng([seed, replication])
    return rng.multinomial(n_agents, np.full(n_agents, 1.0 / n_agents)).astype(np.float64)


def _workers(jobs: int | None, seconds: float) -> int:
    """What was asked for, or what the surrounding `joblib.parallel_config` offers, or all cores if it pays."""
    offered = workers(jobs)
    return offered if jobs is not None or offered > 1 or seconds < WORTH_WORKERS else cores()


def _gather(
    done: dict[int, Replication], names: tuple[str, ...], asked: int, seed: int, re_estimated: str
) -> Bootstrap:
    good = [r for r in sorted(done) if not done[r].failure]
    failures = dict(Counter(done[r].failure for r in sorted(done) if done[r].failure))
    if len(good) < 2 and len(done) < asked:
        raise KeyboardInterrupt  # there is nothing yet that could be kept
    if len(good) < 2:
        why = ", ".join(f"{k}: {n}" for k, n in failures.items())
        remedy = f"More agents or a penalty ({arg('l2', 1e-3)}) may help."
        what = f"a bootstrap requires two successful replications, and {len(good)} of {len(done)} succeeded ({why})"
        raise InvalidOption.impossible(what, remedy=remedy, argument="bootstrap")
    theta = np.array([done[r].theta for r in good])
    psi = np.array([done[r].psi for r in good])
    return Bootstrap(names, theta, psi, np.array(good), asked, seed, failures, re_estimated, done)
