"""Verdicts as text: the words and counts that the report, the terminal and the README share, and the whole table."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from revealed.experiments.numbers import whole_percent
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, UNTESTED, Outcome, Share, Verdict

if TYPE_CHECKING:
    import pandas as pd

READINGS = {"section5": "Method Dependencies", "algorithm1": "Algorithm 1"}
COUNTED = {HOLDS: "hold", FAILS: "do not hold", UNDECIDED: "undecided", UNTESTED: "not tested"}
SHORT = {UNTESTED: "not tested"}  # in a column of verdicts
SAME = "the same"  # a claim in which the two readings do not differ
COLUMNS = (
    "key", "experiment", "claim", "quote", "place", "verdict", "statistic", "algorithm1", "algorithm1_statistic",
    "specifications", "share", "flips", "rule", "reason",
)  # fmt: skip


def outcome(verdict: Verdict, reading: str) -> Outcome:
    """What came out in a reading; Algorithm 1 says what the first says where the two do not differ."""
    literal = verdict.algorithm1 if reading == "algorithm1" else None
    return literal or verdict.section5


def count_verdicts(verdicts: list[Verdict], reading: str = "section5") -> dict[str, int]:
    """How many hold, do not hold, are undecided and were not tested."""
    found = Counter(outcome(verdict, reading).verdict for verdict in verdicts)
    return {verdict: found[verdict] for verdict in COUNTED}


def counts_in_words(verdicts: list[Verdict], reading: str = "section5") -> str:
    return ", ".join(f"{n} {COUNTED[verdict]}" for verdict, n in count_verdicts(verdicts, reading).items())


def percent(share: Share) -> str:
    return whole_percent(share.holds / share.of)


def share_in_words(share: Share | None) -> str:
    """In how many specifications a claim holds, and in how many the intervals do not decide; nothing where none were
    run."""
    if not share or not share.of:
        return ""
    if share.by_world:  # none of them is of all worlds
        return "; ".join(f"{name}: {share_in_words(own)}" for name, own in share.by_world.items())
    undecided = f", {share.undecided} undecided" if share.undecided else ""
    return f"{share.holds} of {share.of} ({percent(share)}){undecided}"


def shown_where(place: str) -> str:
    """The figure or table alone: `Figures 4, 6 and 7` of `Figures 4, 6 and 7, “Discussion”`."""
    return re.split(r", (?=[“A])", place)[0]


def both_readings(verdicts: list[Verdict]) -> list[tuple[str, str]]:
    """The verdict of each claim, in either reading."""
    return [(verdict.section5.verdict, outcome(verdict, "algorithm1").verdict) for verdict in verdicts]


def in_one_reading(found: list[tuple[str, str]]) -> str:
    """How many of the claims that were tested hold in which reading, and that no single one gives them all, where that
    is so."""
    tested = [pair for pair in found if UNTESTED not in pair]
    counts = Counter((first == HOLDS, second == HOLDS) for first, second in tested)
    whose = f"{len(found)} claims" if len(tested) == len(found) else f"the {len(tested)} claims that were tested"
    told = (
        f"Of {whose}, {counts[True, True]} hold in both readings, {counts[True, False]} only in that of “Method "
        f"Dependencies”, {counts[False, True]} only with Algorithm 1 taken literally, {counts[False, False]} in "
        "neither."
    )
    whole = not counts[False, False] and 0 in (counts[True, False], counts[False, True])
    return told if whole else f"{told} No single reading gives all that the paper says."


def untested(verdicts: list[Verdict]) -> list[str]:
    """Claims that the run cannot decide in one reading or both, without their full stops."""
    return [
        verdict.claim.rstrip(".")
        for verdict in verdicts
        if UNTESTED in (verdict.section5.verdict, outcome(verdict, "algorithm1").verdict)
    ]


def claims_table(verdicts: list[Verdict]) -> pd.DataFrame:
    """The verdicts, one row each."""
    import pandas as pd

    return pd.DataFrame([_row(verdict) for verdict in verdicts], columns=list(COLUMNS))


def _row(verdict: Verdict) -> dict[str, Any]:
    literal = verdict.algorithm1
    share = verdict.share if verdict.share and verdict.share.of else None
    return {
        **{name: getattr(verdict, name) for name in ("key", "experiment", "claim", "quote", "place", "rule")},
        "verdict": verdict.section5.verdict,
        "statistic": verdict.section5.statistic,
        "algorithm1": literal.verdict if literal else "",
        "algorithm1_statistic": literal.statistic if literal else "",
        "specifications": share_in_words(share),
        "share": f"{share.holds / share.of:.3f}" if share else "",
        "flips": share.flips if share else "",
        "reason": "; ".join(_reasons(verdict)),
    }


def _reasons(verdict: Verdict) -> list[str]:
    """Of both readings, each named where they differ."""
    literal = verdict.algorithm1
    reasons = [verdict.section5.reason] if verdict.section5.reason else []
    if literal and literal.reason and literal.reason != verdict.section5.reason:
        reasons.append(f"Algorithm 1: {literal.reason}")
    return reasons
