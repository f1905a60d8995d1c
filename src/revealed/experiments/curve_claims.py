"""Claims about metrics against trajectories (Figures 1 to 4, 6 and 7): who does well, who is ahead, who is alike, who
gains from data. Each is a function of the curves alone, so that the same rule judges a figure and a specification.

Metrics are shares of what knowing nothing costs (`readings`); differences are paired by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from revealed.experiments.cells import METHODS
from revealed.experiments.numbers import percent
from revealed.experiments.protocol import ALIKE, FAR, NEGLIGIBLE, NIL, SIMILAR, WELL
from revealed.experiments.readings import JUDGED, Curves
from revealed.experiments.rules import Estimate, Outcome, all_of, at, join

OTHERS = ("NPL", "CCP")


def does_well(curves: Curves, methods: Sequence[str], sizes: Sequence[int]) -> Outcome:
    """All metrics are near the truth."""
    return _levels(curves, methods, sizes, lambda level: level.below(WELL), max)


def does_poorly(curves: Curves, sizes: Sequence[int]) -> Outcome:
    """All metrics of all methods are far from the truth."""
    return _levels(curves, METHODS, sizes, lambda level: level.above(WELL), min)


def _levels(
    curves: Curves,
    methods: Sequence[str],
    sizes: Sequence[int],
    judged: Callable[[Estimate], str],
    worst: Callable[[Iterable[float]], float],
) -> Outcome:
    found = {(metric, m): curves.level(metric, m, sizes) for metric in JUDGED for m in methods}
    parts = {f"{JUDGED[metric]}, {m}": judged(level) for (metric, m), level in found.items()}
    words = (_listed(JUDGED[metric], {m: found[metric, m] for m in methods}) for metric in JUDGED)
    score = worst(level.mean for level in found.values())
    return Outcome(all_of(list(parts.values())), f"{join(words)} ({at(sizes)})", parts, score=score)


def behind(curves: Curves, metrics: Sequence[str]) -> Outcome:
    """NPL and CCP are behind MCE-IRL with few trajectories."""
    parts, words, means = {}, [], []
    for metric in metrics:
        own = curves.level(metric, "MCE-IRL", curves.few)
        gaps = {a: curves.difference(metric, a, "MCE-IRL", curves.few) for a in OTHERS}
        margin = max(NEGLIGIBLE * own.mean, NIL)
        parts |= {f"{JUDGED[metric]}, {a}": gap.exceeds(margin) for a, gap in gaps.items()}
        levels = {m: curves.level(metric, m, curves.few) for m in METHODS}
        words.append(_listed(JUDGED[metric], levels))
        means += [gap.mean for gap in gaps.values()]
    return Outcome(all_of(list(parts.values())), f"{join(words)} ({at(curves.few)})", parts, score=min(means))


def agreement(curves: Curves, *sizes: Sequence[int]) -> Outcome:
    """The methods are alike, averaged over each group of sizes."""
    parts, words, ratios = {}, [], []
    for chosen in sizes:
        told = []
        for metric in JUDGED:
            margin = max(ALIKE * _level(curves, metric), NIL)
            gaps = {a: curves.difference(metric, a, "MCE-IRL", chosen) for a in OTHERS}
            parts |= {f"{JUDGED[metric]}, {a} ({at(chosen)})": gap.within(margin) for a, gap in gaps.items()}
            ratios += [_in_bounds(gap.mean, margin) for gap in gaps.values()]
            told.append(f"{_listed(JUDGED[metric], gaps)}, bound {percent(margin)}")
        words.append(f"differences from MCE-IRL: {join(told)} ({at(chosen)})")
    return Outcome(all_of(list(parts.values())), join(words), parts, score=max(ratios))


def _in_bounds(gap: float, margin: float) -> float:
    """A difference in units of its bound; where all methods lose nothing, the bound is 0."""
    return 0.0 if gap == 0.0 else abs(gap) / margin if margin else np.inf


def improvement(curves: Curves, metrics: Sequence[str]) -> Outcome:
    """Every method gains from data."""
    first, last = curves.sizes[:1], curves.sizes[-1:]
    parts, words, means = {}, [], []
    for metric in metrics:
        margin = max(NEGLIGIBLE * _level(curves, metric), NIL)
        gains = {m: _gain(curves, metric, m, first, last) for m in METHODS}
        open_ = [m for m in METHODS if curves.level(metric, m, first).mean > NIL]  # else nothing is left to gain
        parts |= {f"{JUDGED[metric]}, {m}": gains[m].exceeds(margin) for m in open_}
        words.append(_listed(JUDGED[metric], gains))
        means += [gain.mean for gain in gains.values()]
    told = f"falls: {join(words)} (from {at(first)} to {at(last)})"
    return Outcome(all_of(list(parts.values())), told, parts, score=min(means))


def _level(curves: Curves, metric: str) -> float:
    """The mean of all methods with the least data."""
    return float(np.mean([curves.levels(metric, m, curves.sizes[:1]).mean() for m in METHODS]))


def _gain(curves: Curves, metric: str, method: str, first: Sequence[int], last: Sequence[int]) -> Estimate:
    gain = curves.levels(metric, method, first) - curves.levels(metric, method, last)
    return Estimate.of(gain.dropna().to_numpy())


def low_epic(curves: Curves) -> Outcome:
    """CCP's EPIC is far below the others' at similar values."""
    ratios = {metric: _ratio(curves, metric) for metric in ("epic", "evd", "stochastic_evd")}
    parts = {"EPIC": ratios["epic"].below(FAR)}
    parts |= {
        JUDGED[metric]: Estimate(ratios[metric].mean - 1.0, ratios[metric].half).within(0.2)
        for metric in ("evd", "stochastic_evd")
    }
    words = f"CCP's over the mean of the others': {_ratios(ratios)}"
    return Outcome(all_of(list(parts.values())), words, parts, score=ratios["epic"].mean)


def _ratio(curves: Curves, metric: str) -> Estimate:
    own, *others = (curves.levels(metric, m, curves.sizes) for m in ("CCP", "MCE-IRL", "NPL"))
    return Estimate.of((2 * own / (others[0] + others[1])).dropna().to_numpy())


def _ratios(ratios: dict[str, Estimate]) -> str:
    return ", ".join(f"{JUDGED[metric]} {ratio}" for metric, ratio in ratios.items())


def similar(curves: Curves) -> Outcome:
    """The methods recover similar rewards from the largest sample."""
    found = Estimate.of(curves.similarity)
    return Outcome(found.above(SIMILAR), f"least correlation between two methods' rewards: {found}", score=found.mean)


def _listed(name: str, found: dict[str, Estimate]) -> str:
    """NLL: MCE-IRL 2 ± 1 %, NPL 20 ± 5 %."""
    return f"{name}: " + ", ".join(f"{method} {share.in_percent()}" for method, share in found.items())
