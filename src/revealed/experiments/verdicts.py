"""Every claim of the paper, the statistic from the run's own table, and a verdict by a rule written beside it.

Intervals are 95 % by Student's t over seeds. No verdict is forced: where the intervals do not decide, the verdict says
so, and where a claim does not come out, `reasons` gives a likely one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from revealed.experiments import partial_expert, timing, updates
from revealed.experiments.cells import Results
from revealed.experiments.curve_claims import (
    JUDGED,
    Claim,
    advantage,
    agreement,
    improvement,
    low_epic,
    similar,
    small,
)
from revealed.experiments.numbers import share, short
from revealed.experiments.reasons import likely_reason
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, Estimate, Verdict, all_of, join
from revealed.experiments.seconds import times
from revealed.mdp import Floats

MOVED = 0.01  # a larger change of a choice probability is one


def judge(results: dict[str, Results]) -> list[Verdict]:
    """All verdicts; a claim whose cells are missing is undecided."""
    return [
        _with_reason(verdict)
        for name, claims in _CLAIMS.items()
        if name in results
        for claim in claims
        for verdict in claim(results[name])
    ]


def _with_reason(verdict: Verdict) -> Verdict:
    if verdict.verdict != FAILS:
        return verdict
    return replace(verdict, reason=likely_reason(verdict.experiment, verdict.claim))


def _settles(results: Results) -> Iterator[Verdict]:
    for setting in dict.fromkeys(cell.setting for cell in updates.cells(results.config)):
        lines = updates.series(results, setting, "largest")
        after = lines[:, 3:].max(axis=1, initial=0.0)
        calm, median = _mean(after <= MOVED), float(np.median(after)) if len(after) else np.nan
        settled = int((results.where(setting=setting)["settled"] == True).sum())  # noqa: E712
        yield Verdict(
            "updates",
            f"π̃ does not change after K = 3 ({setting}).",
            "App. D",
            f"{share(calm)} of {len(after)} seeds; largest change of a probability in later updates: median "
            f"{short(median, 1)}; settled within {results.config.updates} updates: {settled}",
            f"Holds if in at least 90 % of seeds no probability changes by more than {MOVED} in any later update, does "
            "not hold if in at most half.",
            HOLDS if calm >= 0.9 else FAILS if calm <= 0.5 else UNDECIDED,
        )


def _partial(results: Results) -> Iterator[Verdict]:
    for reading in partial_expert.READINGS:
        loss = {
            (method, case): partial_losses(results, method, case, reading)
            for method in ("MCE-IRL", "NPL")
            for case in partial_expert.CASES
        }
        good = {
            key: all_of([Estimate.of(evd).within(0.05), Estimate.of(excess).below(0.1)])
            for key, (evd, excess) in loss.items()
        }
        words = {key: f"{share(_mean(evd))} and {share(_mean(excess))}" for key, (evd, excess) in loss.items()}
        rule = (
            "“Well” is EVD within 5 %, and stochastic EVD above the expert's own within 10 %, of what the uniform "
            "policy loses: holds if the intervals are, does not hold if one lies outside."
        )
        both = [("MCE-IRL", case) for case in partial_expert.CASES]
        yield _partial_verdict("MCE-IRL does well in both cases", reading, _ends(both, words), rule,
                               all_of([good[key] for key in both]))  # fmt: skip
        yield _partial_verdict("NPL does well in the corridor case", reading, _ends([("NPL", "corridor")], words), rule,
                               good["NPL", "corridor"])  # fmt: skip
        gap = loss["NPL", "triangle"][1] - loss["MCE-IRL", "triangle"][1]
        keys = [("NPL", "triangle"), ("MCE-IRL", "triangle")]
        poor = (
            "Holds if the interval of the difference of stochastic EVDs lies above 10 % of what the uniform policy "
            "loses, does not hold if it lies below."
        )
        contrast = "NPL does poorly in the triangle case, unlike MCE-IRL"
        yield _partial_verdict(contrast, reading, _ends(keys, words), poor, Estimate.of(gap).above(0.1))


def partial_losses(results: Results, method: str, case: str, reading: str) -> tuple[Floats, Floats]:
    """By seed: EVD, and stochastic EVD above the expert's own, as shares of what the uniform policy loses."""
    source = partial_expert.SOURCES["a" if method == "NPL" else reading]
    rows = results.where(method=method, setting=case, variant=source).sort_values("seed")
    evd = (rows["evd"] / rows["span"]).to_numpy()
    return evd, ((rows["stochastic_evd"] - rows["floor"]) / rows["span"]).to_numpy()


def _ends(keys: Sequence[tuple[str, str]], words: dict[tuple[str, str], str]) -> str:
    return (
        join(f"{method}, {case}: {words[method, case]}" for method, case in keys) + " (EVD and stochastic EVD, shares)"
    )


def _partial_verdict(claim: str, reading: str, statistic: str, rule: str, verdict: str) -> Verdict:
    return Verdict("partial-expert", f"{claim} (reading {reading}).", "Fig. 5", statistic, rule, verdict)


def _faster(results: Results) -> Iterator[Verdict]:
    ratios = {m: speedups(results, m) for m in ("NPL", "CCP")}
    settings = dict.fromkeys(cell.setting for cell in timing.cells(results.config))
    parts = [_above_one(found.get(setting, np.array([]))) for found in ratios.values() for setting in settings]
    yield Verdict(
        "timing",
        "NPL and CCP are faster than MCE-IRL at every setting.",
        "Table 2",
        join(f"{m}: " + ", ".join(f"{times(v.mean())} ({s})" for s, v in found.items()) for m, found in ratios.items()),
        "Speed-up over MCE-IRL with Adam at the threshold, paired by seed. Holds if above 1 for every seed at every "
        "setting, does not hold if below 1 for all seeds of one.",
        all_of(parts),
    )


def _above_one(ratios: Floats) -> str:
    if ratios.size == 0:
        return UNDECIDED
    return HOLDS if (ratios > 1.0).all() else FAILS if (ratios < 1.0).all() else UNDECIDED


def speedups(results: Results, method: str, variant: str = "adam") -> dict[str, Floats]:
    """How many times as long MCE-IRL takes, seed by seed, for each setting that was timed."""
    rows = results.where(variant=variant)
    found = {}
    for setting in dict.fromkeys(cell.setting for cell in timing.cells(results.config)):
        here = rows[rows["setting"] == setting]
        seconds = {m: here[here["method"] == m].set_index("seed")["seconds"] for m in ("MCE-IRL", method)}
        ratio = (seconds["MCE-IRL"] / seconds[method]).dropna().to_numpy(dtype=np.float64)
        found |= {setting: ratio} if ratio.size else {}
    return found


def grids(config: timing.Config) -> list[str]:
    """Objectworld with four colours, from the smallest grid to the largest."""
    return [timing.objects_setting(size, colors) for size, colors in sorted(config.grids) if colors == 4]


def _growing(results: Results) -> Iterator[Verdict]:
    settings = grids(results.config)
    found = {m: np.array([v.mean() for s, v in speedups(results, m).items() if s in settings]) for m in ("NPL", "CCP")}
    whole = [v for v in found.values() if v.size == len(settings) > 1]
    rises, falls = all((np.diff(v) > 0).all() for v in whole), all(v[-1] < v[0] for v in whole)
    yield Verdict(
        "timing",
        "The speed-up grows with the size of the problem.",
        "Table 2",
        join(f"{m}: " + " → ".join(f"{times(x)}" for x in v) for m, v in found.items()) + f" ({' → '.join(settings)})",
        "Holds if the mean speed-ups of both methods rise from grid to grid, does not hold if both are lower on the "
        "largest grid than on the smallest.",
        UNDECIDED if len(whole) < 2 else HOLDS if rises else FAILS if falls else UNDECIDED,
    )


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if values.size else np.nan


_COMES = "With more data CCP and NPL come to MCE-IRL's performance"
_CLAIMS: dict[str, list[Claim]] = {
    "obstacleworld": [
        advantage("occupancy"),
        advantage("sample"),
        agreement("obstacleworld", _COMES, "Fig. 1", lambda n: n[-1:]),
        agreement("obstacleworld", _COMES, "Fig. 1", lambda n: n[-1:], "sample"),
        improvement("obstacleworld", "EPIC improves with data.", "App. D", ("epic",)),
        similar("obstacleworld", "Fig. 6"),
    ],
    "mountaincar": [
        improvement(
            "mountaincar", "With little data all methods do poorly: all metrics fall up to 400.", "Fig. 2", JUDGED, 400
        ),
        agreement(
            "mountaincar",
            "From about 400 trajectories on all methods are alike",
            "Fig. 2",
            lambda n: [k for k in n if k >= 400] or n[-1:],
        ),
        improvement("mountaincar", "EPIC improves with data.", "App. D", ("epic",)),
        similar("mountaincar", "Fig. 7"),
    ],
    "objectworld": [
        agreement("objectworld", "No difference between the families with little data", "Fig. 3", small),
        agreement("objectworld", "No difference between the families with much data", "Fig. 3", lambda n: n[-1:]),
        improvement("objectworld", "All methods improve with data.", "Fig. 3", JUDGED),
        improvement("objectworld", "EPIC improves with data.", "App. D", ("epic",)),
        low_epic,
        similar("objectworld", "Fig. 4"),
    ],
    "partial-expert": [_partial],
    "updates": [_settles],
    "timing": [_faster, _growing],
}
