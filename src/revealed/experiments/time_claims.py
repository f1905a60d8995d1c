"""What the paper says of training time (its Table 2), judged by its own way of computing.

Each judgement is a pure function of the results of `timing`. Seconds are those of `paper_way`: whole dense searches, or
steps × the seconds of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from revealed.experiments.cells import METHODS, Results
from revealed.experiments.numbers import whole_percent
from revealed.experiments.paper_way import paper_way
from revealed.experiments.published import BREAKDOWN_SETTINGS, TRAINING_SECONDS
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, UNTESTED, Outcome, join
from revealed.experiments.seconds import times
from revealed.experiments.time_tables import Mean, mean_of

if TYPE_CHECKING:
    import pandas as pd

FASTER = ("NPL", "CCP")  # the approximation-based methods
GRIDS = tuple(f"Objectworld {size}², C4" for size in (16, 32, 64))  # those that differ in nothing but their size
RUNS = 2  # the paper averages "across multiple runs"
MUCH = 10.0  # so many times as long is "much"
WAY = (
    "By the paper's way of computing (dense) on this machine; ≈ where whole searches are too long: steps × the time "
    "of a step, and what is computed once and once for each π̃."
)
FASTER_RULE = (
    f"{WAY} Holds if NPL and CCP take less time than MCE-IRL for every seed at every setting, does not hold if one "
    "takes more for all seeds of a setting. It cannot hold without all settings of Table 2, with at least "
    f"{RUNS} seeds each."
)
STEPS_RULE = (
    "Seconds of a step by the paper's way of computing (dense) on this machine, in the settings of Tables 5 and 6. "
    f"Holds if a step of MCE-IRL takes at least {MUCH:.0f} times as long as one of CCP in both, does not hold if it "
    "does not in one."
)
GROWS_RULE = (
    f"{WAY} Speed-up of NPL and of CCP against MCE-IRL on the grids with 4 colours. Holds if both rise from 16² to 32² "
    "to 64² for every seed, does not hold if one is lower at 64² than at 16² for every seed. Not tested without all "
    f"three grids, with at least {RUNS} seeds each."
)


def faster_everywhere(results: Results) -> Outcome:
    """Whether NPL and CCP take less time than MCE-IRL, at every setting."""
    found = paper_way(results)
    others = [place for place in dict.fromkeys(found["setting"]) if place not in TRAINING_SECONDS]  # told, not judged
    places = [*TRAINING_SECONDS, *others]
    ratios = {(method, place): speed_ups(found, place, method) for method in FASTER for place in TRAINING_SECONDS}
    parts = {f"{method}, {place}": _above_one(by_seed) for (method, place), by_seed in ratios.items()}
    slower = [key for key, verdict in zip(ratios, parts.values()) if verdict == FAILS]
    told = join(f"{method}: {_at_each(found, method, places)}" for method in FASTER)
    return Outcome(
        _all_of(list(parts.values())),
        told + _lacking([place for place in TRAINING_SECONDS if not _enough(found, place)]),
        parts,
        " ".join(_why_slower(found, method, place) for method, place in slower),
    )


def cheaper_steps(results: Results) -> Outcome:
    """Whether a step of MCE-IRL takes many times as long as one of CCP, where the paper breaks its time down."""
    found = paper_way(results)
    parts, told = {}, []
    for place in BREAKDOWN_SETTINGS:
        one, other = mean_of(found, place, "MCE-IRL"), mean_of(found, place, "CCP")
        ratio = one["step"] / other["step"] if one and other else np.nan
        parts[place] = UNTESTED if ratio != ratio else HOLDS if ratio >= MUCH else FAILS
        told += [] if ratio != ratio or not one else [f"{one['sign']}{times(ratio)} ({place})"]
    lacking = _lacking([place for place, verdict in parts.items() if verdict == UNTESTED])
    return Outcome(_all_of(list(parts.values())), f"MCE-IRL over CCP: {', '.join(told) or '–'}{lacking}", parts)


def grows_with_size(results: Results) -> Outcome:
    """Whether the speed-up over MCE-IRL rises with the size of the grid."""
    found = paper_way(results)
    parts = {method: _rises([speed_ups(found, grid, method) for grid in GRIDS]) for method in FASTER}
    told = join(f"{m}: " + " → ".join(_speed_up(found, grid, m) for grid in GRIDS) for m in FASTER)
    return Outcome(
        _all_of(list(parts.values())),
        f"{told} ({' → '.join(GRIDS)})" + _lacking([grid for grid in GRIDS if not _enough(found, grid)]),
        parts,
        _why_falling(found, [m for m, part in parts.items() if part == FAILS]),
    )


def speed_ups(found: pd.DataFrame, setting: str, method: str) -> pd.Series:
    """Seconds of MCE-IRL over those of a method, by seed; only seeds that have both."""
    base, other = (
        found[(found["setting"] == setting) & (found["method"] == name)].set_index("seed")["seconds"]
        for name in ("MCE-IRL", method)
    )
    return (base.astype(float) / other.astype(float)).dropna()


def _enough(found: pd.DataFrame, setting: str) -> bool:
    return all(len(speed_ups(found, setting, method)) >= RUNS for method in FASTER)


def _above_one(ratios: pd.Series) -> str:
    if len(ratios) < RUNS:
        return UNTESTED
    ahead = ratios > 1.0
    return HOLDS if ahead.all() else UNDECIDED if ahead.any() else FAILS


def _rises(by_grid: Sequence[pd.Series]) -> str:
    """From grid to grid, paired by seed."""
    import pandas as pd

    seeds = pd.concat(by_grid, axis=1, join="inner").to_numpy()
    if len(seeds) < RUNS:
        return UNTESTED
    if (np.diff(seeds, axis=1) > 0.0).all():
        return HOLDS
    return FAILS if (seeds[:, -1] < seeds[:, 0]).all() else UNDECIDED


def _all_of(parts: Sequence[str]) -> str:
    """A claim of several parts fails if one does, and holds if all do: what was not tested keeps it from that."""
    return next((verdict for verdict in (FAILS, UNDECIDED, UNTESTED) if verdict in parts), HOLDS)


def _at_each(found: pd.DataFrame, method: str, places: Sequence[str]) -> str:
    measured = [place for place in places if len(speed_ups(found, place, method))]
    return ", ".join(f"{_speed_up(found, place, method)} ({place})" for place in measured) or "–"


def _speed_up(found: pd.DataFrame, setting: str, method: str) -> str:
    """Mean over mean, as in the tables; and for how many seeds it is one, where not for all."""
    base, mean = mean_of(found, setting, "MCE-IRL"), mean_of(found, setting, method)
    if base is None or mean is None:
        return "–"
    ratios = speed_ups(found, setting, method)
    ahead = int((ratios > 1.0).sum())
    few = "" if ahead == len(ratios) else f" with {ahead} of {len(ratios)} seeds ahead"
    return mean["sign"] + times(base["seconds"] / mean["seconds"]) + few


def _lacking(places: Sequence[str]) -> str:
    return f"; not run with {RUNS} seeds or more: {', '.join(places)}" if places else ""


def _why_slower(found: pd.DataFrame, method: str, setting: str) -> str:
    """How many more steps the method took, and what each of them cost."""
    base, mean = mean_of(found, setting, "MCE-IRL"), mean_of(found, setting, method)
    if base is None or mean is None:
        return ""
    missed = round((1.0 - mean["reached"]) * mean["searches"])
    limit = f"; {missed} of {mean['searches']} searches did not reach the threshold" if missed else ""
    more, dearer = mean["iterations"] / base["iterations"], mean["step"] / base["step"]
    return (
        f"{setting}: {method} took {times(more)} MCE-IRL's steps, each at {times(dearer)} its seconds, and spent "
        f"{whole_percent(_beside_steps(mean))} of its time outside of steps{limit}."
    )


def _beside_steps(mean: Mean) -> float:
    """The share of seconds that are not steps: Occ. under π̂_E, and under each π̃."""
    return float(np.clip(1.0 - mean["iterations"] * mean["step"] / mean["seconds"], 0.0, 1.0))


def _why_falling(found: pd.DataFrame, methods: Sequence[str]) -> str:
    """Fewer steps on the largest grid, and more weight of what is done outside of them: where the table shows both."""
    small, large = ({name: mean_of(found, grid, name) for name in METHODS} for grid in (GRIDS[0], GRIDS[-1]))
    steps, shares = [], []
    for name in METHODS:
        before, after = small[name], large[name]
        if before is None or after is None or after["iterations"] >= before["iterations"]:
            continue
        steps.append(f"{name} {after['iterations']:.0f} instead of {before['iterations']:.0f}")
        if name in methods and _beside_steps(after) > _beside_steps(before):
            shares.append(
                f"{whole_percent(_beside_steps(after))} of {name}'s seconds instead of "
                f"{whole_percent(_beside_steps(before))}"
            )
    if not shares or not steps[0].startswith("MCE-IRL"):
        return ""
    return (
        f"The threshold is met in fewer steps on the largest grid than on the smallest ({', '.join(steps)}), and the "
        f"inverses and tensors that are made outside of steps weigh more: {', '.join(shares)}.{_single_steps(found)}"
    )


def _single_steps(found: pd.DataFrame) -> str:
    """Whether the gap of single steps grows with the grid."""
    pairs = [(mean_of(found, grid, "MCE-IRL"), mean_of(found, grid, "CCP")) for grid in GRIDS]
    ratios = [one["step"] / other["step"] for one, other in pairs if one and other]
    if len(ratios) < len(GRIDS) or not (np.diff(ratios) > 0.0).all():
        return ""
    told = " → ".join((one["sign"] if one else "") + times(ratio) for (one, _), ratio in zip(pairs, ratios))
    return f" The gap of a single step does grow: one of MCE-IRL costs {told} of CCP's."
