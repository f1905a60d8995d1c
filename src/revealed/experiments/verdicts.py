"""Every claim of the paper, the statistic from the run's own table, and a verdict by a rule written beside it.

Intervals are 95 % by Student's t over seeds. No verdict is forced: where the intervals do not decide, the verdict says
so, and where a claim does not come out, `reasons` gives a likely one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from revealed.experiments import partial_expert, timing, updates
from revealed.experiments.cells import Results
from revealed.experiments.curve_claims import (
    JUDGED,
    Claim,
    advantage,
    agreement,
    does_well,
    improvement,
    low_epic,
    similar,
    small,
)
from revealed.experiments.numbers import share, short
from revealed.experiments.reasons import likely_reason
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, Estimate, Verdict, all_of, join
from revealed.experiments.seconds import times

MOVED = updates.MOVED  # a larger change of a choice probability is one


def judge(results: dict[str, Results]) -> list[Verdict]:
    """All verdicts; a claim whose cells are missing is undecided."""
    return [
        _with_reason(verdict)
        for name, claims in _CLAIMS.items()
        if name in results
        for claim in claims
        for verdict in _judged(name, claim, results[name])
    ]


def _judged(name: str, claim: Claim, results: Results) -> list[Verdict]:
    """One that cannot be judged must not take the others with it."""
    try:
        return list(claim(results))
    except Exception as error:
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return [Verdict(name, "A claim that could not be judged.", "", what, "", UNDECIDED)]


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
            for case in ("corridor", "triangle")
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
        both = [("MCE-IRL", "corridor"), ("MCE-IRL", "triangle")]
        yield _partial_verdict("MCE-IRL does well in both cases", reading, _ends(both, words), rule,
                               all_of([good[key] for key in both]))  # fmt: skip
        yield _partial_verdict("NPL does well in the corridor case", reading, _ends([("NPL", "corridor")], words), rule,
                               good["NPL", "corridor"])  # fmt: skip
        gap = (loss["NPL", "triangle"][1] - loss["MCE-IRL", "triangle"][1]).dropna()
        keys = [("NPL", "triangle"), ("MCE-IRL", "triangle")]
        poor = (
            "Holds if the interval of the difference of stochastic EVDs lies above 10 % of what the uniform policy "
            "loses, does not hold if it lies below."
        )
        contrast = "NPL does poorly in the triangle case, unlike MCE-IRL"
        yield _partial_verdict(contrast, reading, _ends(keys, words), poor, Estimate.of(gap).above(0.1))


def _worse_in_triangle(results: Results) -> Iterator[Verdict]:
    """NPL is the same in both readings."""
    cases = ("triangle", "corridor", "corridor but goal")
    loss = {case: partial_losses(results, "NPL", case, "a")[1] for case in cases}
    gap = Estimate.of((loss["triangle"] - loss["corridor"]).dropna())
    yield Verdict(
        "partial-expert",
        "NPL does worse in the triangle case than in the corridor case.",
        "Fig. 5",
        join(f"{case}: {share(_mean(lost))}" for case, lost in loss.items()) + f"; triangle − corridor: {gap}",
        "Stochastic EVD above the expert's own, as a share of what the uniform policy loses, paired by seed: holds if "
        "the interval of the difference lies above 0, does not hold if it lies below.",
        gap.above(0.0),
    )


def partial_losses(results: Results, method: str, case: str, reading: str) -> tuple[Any, Any]:
    """Series by seed: EVD, and stochastic EVD above the expert's own, as shares of what the uniform policy loses."""
    source = partial_expert.SOURCES["a" if method == "NPL" else reading]
    rows = results.where(method=method, setting=case, variant=source).set_index("seed").sort_index()
    return rows["evd"] / rows["span"], (rows["stochastic_evd"] - rows["floor"]) / rows["span"]


def _ends(keys: Sequence[tuple[str, str]], words: dict[tuple[str, str], str]) -> str:
    return (
        join(f"{method}, {case}: {words[method, case]}" for method, case in keys) + " (EVD and stochastic EVD, shares)"
    )


def _partial_verdict(claim: str, reading: str, statistic: str, rule: str, verdict: str) -> Verdict:
    return Verdict("partial-expert", f"{claim} (reading {reading}).", "Fig. 5", statistic, rule, verdict)


def _faster(variant: str) -> Claim:
    """Both are ahead of MCE-IRL, at a threshold."""
    where = "" if variant == "adam" else " (threshold ten times tighter)"

    def judged(results: Results) -> Iterator[Verdict]:
        settings = dict.fromkeys(cell.setting for cell in timing.cells(results.config) if cell.variant == variant)
        pairs = {m: {s: seconds_beside(results, s, m, variant) for s in settings} for m in ("NPL", "CCP")}
        yield Verdict(
            "timing",
            f"NPL and CCP are faster than MCE-IRL at every setting{where}.",
            "Table 2",
            join(f"{m}: " + ", ".join(f"{_speed_up(p)} ({s})" for s, p in found.items()) for m, found in pairs.items()),
            "Speed-up over MCE-IRL with Adam. Holds if above 1 for every seed at every setting, does not hold if below "
            "1 for all seeds of one.",
            all_of([_above_one(pair) for found in pairs.values() for pair in found.values()]),
        )

    return judged


def seconds_beside(results: Results, setting: str, method: str, variant: str) -> Any:
    """Seconds of MCE-IRL and of another method, by seed: a frame with two columns."""
    rows = results.where(setting=setting, variant=variant)
    seconds = rows[rows["method"].isin(["MCE-IRL", method])].pivot(index="seed", columns="method", values="seconds")
    return seconds.reindex(columns=["MCE-IRL", method]).dropna()


def _speed_up(seconds: Any) -> str:
    """Mean over mean, as in the tables; and for how many seeds it is one, where not for all."""
    if not len(seconds):
        return "–"
    ahead = int((seconds.iloc[:, 0] > seconds.iloc[:, 1]).sum())
    return times(_ratio(seconds)) + ("" if ahead == len(seconds) else f" with {ahead} of {len(seconds)} seeds ahead")


def _ratio(seconds: Any) -> float:
    return float(seconds.iloc[:, 0].sum() / seconds.iloc[:, 1].sum()) if len(seconds) else np.nan


def _above_one(seconds: Any) -> str:
    ahead = seconds.iloc[:, 0] > seconds.iloc[:, 1]
    return UNDECIDED if ahead.empty else HOLDS if ahead.all() else FAILS if not ahead.any() else UNDECIDED


def _growing(results: Results) -> Iterator[Verdict]:
    grids = [timing.objects_setting(size, colors) for size, colors in sorted(results.config.grids) if colors == 4]
    found = {m: [_ratio(seconds_beside(results, grid, m, "adam")) for grid in grids] for m in ("NPL", "CCP")}
    rises = [bool((np.diff(ratios) > 0).all()) for ratios in found.values()]
    falls = [ratios[-1] < ratios[0] for ratios in found.values()]
    told = join(f"{m}: " + " → ".join("–" if x != x else times(x) for x in v) for m, v in found.items())
    yield Verdict(
        "timing",
        "The speed-up grows with the size of the problem.",
        "Table 2",
        f"{told} ({' → '.join(grids)})",
        "Mean seconds over mean seconds. Holds if the speed-ups of both methods rise from grid to grid, does not hold "
        "if one is lower on the largest grid than on the smallest.",
        HOLDS if all(rises) else FAILS if any(falls) else UNDECIDED,
    )


def _mean(values: Any) -> float:
    return float(values.mean()) if values.size else np.nan


_COMES = "With more data CCP and NPL reach MCE-IRL's performance"
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
            "mountaincar",
            "With little data all methods do poorly: all metrics fall until 400 trajectories.",
            "Fig. 2",
            JUDGED,
            400,
        ),
        agreement(
            "mountaincar",
            "From about 400 trajectories on, all methods perform alike",
            "Fig. 2",
            lambda n: [k for k in n if k >= 400] or n[-1:],
        ),
        does_well,
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
    "partial-expert": [_partial, _worse_in_triangle],
    "updates": [_settles],
    "timing": [_faster("adam"), _faster("adam tighter"), _growing],
}
