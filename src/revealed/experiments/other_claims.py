"""Claims about a partial expert (Figure 5) and about NPL's updates (appendix D)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.experiments.numbers import percent, short
from revealed.experiments.protocol import CALM, MOVED, WELL
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, Estimate, Outcome, all_of, join
from revealed.mdp import Floats

if TYPE_CHECKING:
    import pandas as pd

CORRIDOR, TRIANGLE = "corridor", "triangle"


# A partial expert: rows of `readings.shares`, their case in the column "setting"


def _by_seed(frame: pd.DataFrame, metric: str, method: str, case: str) -> Any:
    rows = frame[(frame["method"] == method) & (frame["setting"] == case)]
    return rows.set_index("seed")[metric].sort_index()


def _estimate(frame: pd.DataFrame, metric: str, method: str, case: str) -> Estimate:
    return Estimate.of(_by_seed(frame, metric, method, case).to_numpy())


def _excess(frame: pd.DataFrame, case: str) -> Estimate:
    """By how much NPL's stochastic EVD exceeds MCE-IRL's, paired by seed."""
    gap = _by_seed(frame, "stochastic_evd", "NPL", case) - _by_seed(frame, "stochastic_evd", "MCE-IRL", case)
    return Estimate.of(gap.dropna().to_numpy())


def mce_does_well(frame: pd.DataFrame) -> Outcome:
    found = {
        f"{words}, {case}": _estimate(frame, metric, "MCE-IRL", case)
        for case in (CORRIDOR, TRIANGLE)
        for metric, words in (("evd", "EVD"), ("stochastic_evd", "stochastic EVD"))
    }
    parts = {name: level.below(WELL) for name, level in found.items()}
    words = (f"{name} {level.in_percent()}" for name, level in found.items())
    score = max(level.mean for level in found.values())
    return Outcome(all_of(list(parts.values())), f"MCE-IRL: {join(words)}", parts, score=score)


def npl_as_well_without_corridor(frame: pd.DataFrame) -> Outcome:
    evd, excess = _estimate(frame, "evd", "NPL", CORRIDOR), _excess(frame, CORRIDOR)
    own = _estimate(frame, "stochastic_evd", "NPL", CORRIDOR)
    parts = {"recovers the reward (EVD)": evd.below(WELL), "as well as MCE-IRL (stochastic EVD)": excess.below(WELL)}
    words = f"NPL: EVD {evd.in_percent()}, stochastic EVD {own.in_percent()}, above MCE-IRL's by {excess.in_percent()}"
    return Outcome(all_of(list(parts.values())), words, parts, score=excess.mean)


def npl_poor_without_triangle(frame: pd.DataFrame) -> Outcome:
    excess = _excess(frame, TRIANGLE)
    levels = {m: _estimate(frame, "stochastic_evd", m, TRIANGLE) for m in ("NPL", "MCE-IRL")}
    words = ", ".join(f"{method} {level.in_percent()}" for method, level in levels.items())
    return Outcome(excess.above(WELL), f"stochastic EVD: {words}; difference {excess.in_percent()}", score=excess.mean)


def npl_misses_reward(frame: pd.DataFrame) -> Outcome:
    evd, epic = (_estimate(frame, metric, "NPL", TRIANGLE) for metric in ("evd", "epic"))
    return Outcome(evd.above(WELL), f"NPL: EVD {evd.in_percent()} (its EPIC: {epic.in_percent()})", score=evd.mean)


# Updates of π̃: by world, the largest mean change after update 3, by seed


def comes_to_rest(moved: dict[str, Floats]) -> Outcome:
    parts, words = {}, []
    for world, after in moved.items():
        calm = float(np.mean(after <= MOVED)) if len(after) else np.nan
        parts[world] = HOLDS if calm >= CALM else FAILS if calm <= 0.5 else UNDECIDED
        middle = short(float(np.median(after))) if len(after) else "–"
        words.append(f"{world}: {percent(calm)} of {len(after)} seeds, median {middle}")
    score = max((float(np.median(after)) for after in moved.values() if len(after)), default=np.nan)
    told = f"mean change of π̃ after update 3 at most {MOVED}: {join(words)}"
    return Outcome(all_of(list(parts.values())), told, parts, score=score)
