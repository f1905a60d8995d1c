"""Claims about metrics against trajectories (Figures 1 to 4, 6 and 7): who is ahead, who is alike, who gains from data.

Differences are paired by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from revealed.experiments import mountaincar, objectworld
from revealed.experiments.cells import METHODS, Results
from revealed.experiments.curves import METRICS, similarity
from revealed.experiments.numbers import short
from revealed.experiments.rules import Estimate, Verdict, all_of, at, join
from revealed.mdp import Floats

Claim = Callable[[Results], Iterator[Verdict]]

NEGLIGIBLE = 0.05  # of MCE-IRL's own figure: a smaller advantage is none
ALIKE = 0.10  # of the level with the least data: a smaller difference is none
SIMILAR = 0.9  # correlation between recovered rewards
FEW = 5  # trajectories or less are little data, where there are so few
PAIRS = (("CCP", "MCE-IRL"), ("NPL", "MCE-IRL"))
SHORT = {**METRICS, "excess_nll": "NLL"}
JUDGED = ("excess_nll", "evd", "stochastic_evd", "epic")  # the paper's four


def levels(results: Results, metric: str, method: str, sizes: Sequence[int], **place: Any) -> Any:
    """A metric by seed, averaged over sizes: a Series. Seeds that lack one of the sizes are left out."""
    rows = results.where(method=method, **place)
    by_seed = rows[rows["size"].isin(list(sizes))].groupby("seed")[metric]
    return by_seed.mean()[by_seed.count() == len(sizes)]


def difference(results: Results, metric: str, a: str, b: str, sizes: Sequence[int], **place: Any) -> Estimate:
    """What method a has above method b, paired by seed."""
    gap = levels(results, metric, a, sizes, **place) - levels(results, metric, b, sizes, **place)
    return Estimate.of(gap.dropna().to_numpy())


# Metrics against trajectories


def primary(results: Results, variant: str = "occupancy") -> tuple[Results, list[int]]:
    """The rows of a variant (of the curves' grid, where there are two), and the sizes asked for."""
    config = results.config
    rows = results.where(variant=variant)
    if hasattr(config, "picture"):
        rows = rows[rows["setting"] == objectworld.setting(config.size, config.colors)]
    return Results(config, rows, results.failed, results.load), sorted(config.trajectories)


def small(sizes: Sequence[int]) -> list[int]:
    return [n for n in sizes if n <= FEW] or list(sizes[:1])


def advantage(variant: str) -> Claim:
    """MCE-IRL is ahead of one of the others with few trajectories."""

    def judged(results: Results) -> Iterator[Verdict]:
        rows, sizes = primary(results, variant)
        few = small(sizes)
        for metric in ("excess_nll", "stochastic_evd", "epic"):
            own = float(levels(rows, metric, "MCE-IRL", few).mean())
            for other, mce in PAIRS:
                gap = difference(rows, metric, other, mce, few)
                yield Verdict(
                    "obstacleworld",
                    f"With few trajectories MCE-IRL has a lower {SHORT[metric]} than {other}{_weights(variant)}.",
                    "Fig. 1",
                    f"{other} − MCE-IRL: {gap}, MCE-IRL: {short(own)} ({at(few)})",
                    f"Holds if the interval lies above 0 and its mean is at least {NEGLIGIBLE:.0%} of MCE-IRL's; "
                    "does not hold if the interval lies below that.",
                    gap.exceeds(NEGLIGIBLE * own),
                )

    return judged


def _weights(variant: str) -> str:
    """The paper's algorithms have occupancy weights; others are named."""
    return "" if variant == "occupancy" else f" ({variant} weights)"


def agreement(
    name: str, claim: str, paper: str, which: Callable[[list[int]], list[int]], variant: str = "occupancy"
) -> Claim:
    """The methods are alike at some sizes."""

    def judged(results: Results) -> Iterator[Verdict]:
        rows, sizes = primary(results, variant)
        chosen = which(sizes)
        parts, words = [], []
        for metric in JUDGED:
            level = _level(rows, metric, sizes)
            gaps = {a: difference(rows, metric, a, b, chosen) for a, b in PAIRS}
            parts += [gap.within(ALIKE * level) for gap in gaps.values()]
            words.append(f"{SHORT[metric]}: {_listed(gaps)} (level {short(level)})")
        rule = (
            f"Differences from MCE-IRL, averaged over these sizes: holds if all intervals lie within ± {ALIKE:.0%} of "
            "the level with the least data; does not hold if one lies outside."
        )
        yield Verdict(
            name, f"{claim}{_weights(variant)}.", paper, join(words) + f" ({at(chosen)})", rule, all_of(parts)
        )

    return judged


def improvement(name: str, claim: str, paper: str, metrics: Sequence[str], last: int | None = None) -> Claim:
    """Every method gains from data."""

    def judged(results: Results) -> Iterator[Verdict]:
        rows, sizes = primary(results)
        end = [n for n in sizes if last is None or n <= last][-1:]
        parts, words = [], []
        for metric in metrics:
            level = _level(rows, metric, sizes)
            gains = {m: _gain(rows, metric, m, sizes[:1], end) for m in METHODS}
            parts += [gain.exceeds(NEGLIGIBLE * level) for gain in gains.values()]
            words.append(f"{SHORT[metric]}: {_listed(gains)} (level {short(level)})")
        rule = (
            f"Fall from the least to the most data: holds if all intervals lie above 0 and all means are at least "
            f"{NEGLIGIBLE:.0%} of the level with the least data; does not hold if one interval lies below that."
        )
        yield Verdict(name, claim, paper, join(words) + f" (from {at(sizes[:1])} to {at(end)})", rule, all_of(parts))

    return judged


def _level(rows: Results, metric: str, sizes: Sequence[int]) -> float:
    """The mean of all methods with the least data."""
    return float(np.mean([levels(rows, metric, m, sizes[:1]).mean() for m in METHODS]))


def _listed(found: dict[str, Estimate]) -> str:
    return ", ".join(f"{name} {estimate}" for name, estimate in found.items())


def _gain(rows: Results, metric: str, method: str, first: Sequence[int], last: Sequence[int]) -> Estimate:
    gain = levels(rows, metric, method, first) - levels(rows, metric, method, last)
    return Estimate.of(gain.dropna().to_numpy())


def similar(name: str, paper: str) -> Claim:
    def judged(results: Results) -> Iterator[Verdict]:
        found = Estimate.of(reward_similarities(name, results))
        yield Verdict(
            name,
            "With the most data the methods recover similar rewards.",
            paper,
            f"least correlation between two methods' rewards: {found}",
            f"Holds if the interval lies above {SIMILAR}, does not hold if it lies below.",
            found.above(SIMILAR),
        )

    return judged


def reward_similarities(name: str, results: Results) -> Floats:
    """By seed, the least correlation between the rewards of two methods at the largest sample, over its states."""
    config = results.config
    place: dict[str, Any] = {"variant": "occupancy", "size": max(config.trajectories)}
    if hasattr(config, "picture"):
        place["setting"] = objectworld.setting(config.size, config.colors)
    by_seed: dict[int, dict[str, Floats]] = {}
    for row, arrays in results.arrays(**place):
        by_seed.setdefault(int(row.seed), {})[str(row.method)] = arrays["reward"]
    whole = [rewards for rewards in by_seed.values() if len(rewards) == 3]
    ends = mountaincar.exact_car(config)[0].mdp.terminal if name == "mountaincar" and whole else None
    return np.array([similarity(rewards, slice(None) if ends is None else ~ends) for rewards in whole])


def does_well(results: Results) -> Iterator[Verdict]:
    """Mountain Car: not only alike, but well."""
    rows, sizes = primary(results)
    chosen = [n for n in sizes if n >= 400] or sizes[-1:]
    truth = mountaincar.exact_car(results.config)[0].truth
    lost = truth.stochastic_evd(truth.mdp.uniform_policy())
    shares = {m: Estimate.of((levels(rows, "evd", m, chosen) / lost).to_numpy()) for m in METHODS}
    yield Verdict(
        "mountaincar",
        "From about 400 trajectories on, all methods do well.",
        "Fig. 2",
        f"EVD as a share of what the uniform policy loses: {_listed(shares)} ({at(chosen)})",
        f"Holds if all intervals lie below {ALIKE:.0%}, does not hold if one lies above.",
        all_of([found.below(ALIKE) for found in shares.values()]),
    )


def low_epic(results: Results) -> Iterator[Verdict]:
    rows, sizes = primary(results)
    ratios = {}
    for metric in ("epic", "starc", "evd"):
        own = levels(rows, metric, "CCP", sizes)
        others = (levels(rows, metric, "MCE-IRL", sizes) + levels(rows, metric, "NPL", sizes)) / 2
        ratios[metric] = Estimate.of((own / others).dropna().to_numpy())
    far = ratios["epic"].below(0.8)
    equal = Estimate(ratios["evd"].mean - 1.0, ratios["evd"].half).within(0.2)
    yield Verdict(
        "objectworld",
        "CCP's EPIC is far below the others' at equal EVD.",
        "Fig. 3, App. D",
        join(f"CCP's {SHORT[m]} over the mean of the others': {ratio}" for m, ratio in ratios.items()),
        "Averages over all sizes. Holds if the ratio's interval lies below 0.8 for EPIC and within 0.8 … 1.2 for EVD; "
        "does not hold if one lies outside.",
        all_of([far, equal]),
    )
