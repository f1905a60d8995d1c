"""How much of the expert's time is spent where its policy can be read off the data, and what to say where it is not.

CCP, NPL until it settles, and occupancy weights see the data through π̂_E, state by state. In a state that nobody
visited it is uniform, whatever the expert would do there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed.chain import Chain
from revealed.checks import Floats
from revealed.errors import RevealedError
from revealed.first_step import Frequency, Smoothed
from revealed.positions import labelled
from revealed.voices import arg, words

# So many visits per feasible action leave a standard error of at most ½/√(5·A) on a choice probability: 0.16 where
# there are two actions, 0.11 where there are four.
ENOUGH = 5
COVERED = 0.9  # share of occupancy in well visited states from which π̂_E is known
GUESSWORK = 0.1  # share below which it is not known at all
QUICK = 20_000  # states up to which one more solve, for a note, is hardly felt; beyond, visits weigh the states


@dataclass(frozen=True)
class Coverage:
    """`share` of the expert's occupancy in states with enough visits; `unseen` of `choices` states were never seen.

    Only states in which there is something to choose count. `by` tells what weighs the states."""

    share: float
    seen: float
    unseen: int
    choices: int
    by: str


def measure_coverage(run: Any, quick: bool = False) -> Coverage:
    """How much of the expert's time is spent where its policy can be read off the data. `quick` leaves the solve out
    where it would take long."""
    feasible, visits = run.mdp.feasible, run.demos.counts.sum(axis=1)
    choice = feasible.sum(axis=1) > 1
    enough = visits >= ENOUGH * feasible.sum(axis=1)
    if quick and bool(enough[choice].all()):
        return Coverage(1.0, 1.0, 0, int(choice.sum()), "visits")
    plain = quick and (run.mdp.n_states > QUICK or run.demos.goal_states is not None)
    weight, by = (visits, "visits") if plain else expert_occupancy(run)
    weight = np.where(choice, weight, 0.0)
    total = float(weight.sum())
    if total == 0.0:  # nowhere is there anything to choose
        return Coverage(1.0, 1.0, 0, 0, by)
    shares = [float(weight[where].sum()) / total for where in (enough, visits > 0.0)]
    return Coverage(shares[0], shares[1], int((choice & (visits == 0.0)).sum()), int(choice.sum()), by)


def expert_occupancy(run: Any) -> tuple[Floats, str]:
    """(S,): discounted visits from the starts (theory C2), or plain visits where starts are not known.

    They are those under the observed frequencies, whatever the first step, with one visit's worth of doubt spread over
    the actions of each state. Else a state in which one action was seen, once, could hold the expert for ever, and with
    it all the weight.
    """
    visits = run.demos.counts.sum(axis=1)
    p0 = run.mdp.initial
    if p0 is None and run.demos.starts.sum() > 0.0:
        p0 = run.demos.starts / run.demos.starts.sum()
    if p0 is None:
        return visits, "visits (no start states are known)"
    try:
        policy = Smoothed(1.0 / run.mdp.n_actions).estimate(run.mdp, run.demos.counts)
        chain = Chain(run.mdp, labelled(policy, run.mdp), run.options.solver)
        occupancy = chain.occupancy(labelled(p0, run.mdp))
    except RevealedError:
        return visits, "visits (occupancy has no solution)"
    return np.maximum(occupancy, 0.0), "estimated occupancy"


def coverage_notes(run: Any) -> list[str]:
    """A note where a fit rests on π̂_E, state by state, and much of the expert's time is spent where that is not known
    (rule 3 of the advisor); none for the refits of a bootstrap, whose notes nobody reads."""
    if run.again or not _rests_on_first_step(run) or not _by_state(run.options.first_step):
        return []
    found = measure_coverage(run, quick=True)
    if found.share >= COVERED:
        return []
    never = f"{found.unseen} of {found.choices} states with a choice were never seen, so π̂_E is uniform there; "
    spent = f"{found.share:.0%} of the expert's time is spent in states with {ENOUGH} visits per action or more. "
    return [_THIN + (never if found.unseen else "") + ("only " if found.unseen == 0 else "") + spent + _remedy(run)]


def _rests_on_first_step(run: Any) -> bool:
    return run.options.weighting == "occupancy" or run.method == "CCP" or (run.method == "NPL" and not run.settled)


def _by_state(step: Any) -> bool:
    """Whether nothing is carried over from one state to others."""
    return step in ("frequency", "smoothed") if isinstance(step, str) else isinstance(step, Frequency | Smoothed)


def _remedy(run: Any) -> str:
    if run.options.weighting == "occupancy":
        return _MATCHED
    return _VALUED.format(method=run.method)


_THIN = "π̂_E is poorly known: "
_LOGIT = f"{arg('first_step', 'logit')}, which generalises to unseen states."
_MATCHED = words(f"The matched occupancy is that of π̂_E: compare with {arg('weighting', 'sample')}, or use {_LOGIT}")
_VALUED = words("{method} computes future values from it: compare with NFXP, or use " + _LOGIT)
