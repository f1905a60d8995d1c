"""How claims are judged: means over seeds with their 95 % intervals, and verdicts by rules that are written out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

from revealed.experiments.numbers import half_width, percent, short, short_percent

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
UNTESTED = "not tested at this scale"  # the run lacks seeds, sizes or settings that the claim speaks of


@dataclass(frozen=True)
class Outcome:
    """What came out for a claim in one reading: the `verdict`, the `statistic` in words, the verdict of each of its
    `parts`, and a `reason` computed from the same table where the claim does not come out and one can be computed.
    `score` is the one number that tells most, by which specifications are sorted."""

    verdict: str
    statistic: str
    parts: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    score: float = nan


@dataclass(frozen=True)
class Share:
    """Over a grid of choices that the paper leaves open: in how many specifications a claim holds, fails or is
    undecided, and which choices `flips` it. For a claim about several worlds `by_world` has the share of each: one
    specification is of one world."""

    holds: int
    fails: int
    undecided: int
    flips: str = ""
    by_world: dict[str, Share] = field(default_factory=dict)

    @property
    def of(self) -> int:
        return self.holds + self.fails + self.undecided


@dataclass(frozen=True)
class Verdict:
    """A sentence of the paper, judged. `claim` says it in a few words, `quote` is the sentence and `place` where it
    stands; `rule` decides. `section5` is the reading of its “Method Dependencies”, `algorithm1` its Algorithm 1 taken
    literally (None where the two do not differ), `share` how it fares over the specifications (None where none ran)."""

    key: str
    experiment: str
    claim: str
    quote: str
    place: str
    rule: str
    section5: Outcome
    algorithm1: Outcome | None = None
    share: Share | None = None


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and half its 95 % interval."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: Any) -> Estimate:
        return cls(float(np.mean(values)) if len(values) else np.nan, half_width(values))

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    def exceeds(self, margin: float) -> str:
        """Whether it is above zero by more than a margin."""
        if self.low > 0.0 and self.mean >= margin:
            return HOLDS
        return FAILS if self.high < margin else UNDECIDED

    def within(self, margin: float) -> str:
        """Whether it is as good as zero."""
        if abs(self.mean) + self.half <= margin:
            return HOLDS
        return FAILS if abs(self.mean) - self.half > margin else UNDECIDED

    def __str__(self) -> str:
        return f"{short(self.mean)} ± {short(self.half)}"

    def in_percent(self) -> str:
        """For shares: 12 ± 3 %."""
        return f"{short_percent(self.mean)} ± {percent(self.half)}"

    def above(self, bound: float) -> str:
        """Whether it is above a bound."""
        return HOLDS if self.low > bound else FAILS if self.high < bound else UNDECIDED

    def below(self, bound: float) -> str:
        """Whether it is not above a bound."""
        return HOLDS if self.high <= bound else FAILS if self.low > bound else UNDECIDED


def all_of(parts: Sequence[str]) -> str:
    """A claim of several parts holds if all do, and fails if one does."""
    if FAILS in parts:
        return FAILS
    return HOLDS if parts and set(parts) == {HOLDS} else UNDECIDED


def join(parts: Iterable[str]) -> str:
    return "; ".join(parts)


def at(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes)) + (" trajectory" if list(sizes) == [1] else " trajectories")
