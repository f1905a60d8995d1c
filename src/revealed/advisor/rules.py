"""The rules of the advisor, from what was measured to a method; they follow the paper's discussion of suitability.

1. Methods are alike that predict left-out agents equally well (within 0.01 nats per decision of the best) and, where
   parameters can be read (linear rewards), lie within a standard error of NFXP's, or NPL's. If all are, as the paper
   finds with much data, the cheapest is taken: CCP or NPL unless NFXP costs no more.
2. A method that predicts worse, by more than two standard errors, is out.
3. What is worse by less than that is undecided, and the paper decides. Where the expert's time is mostly spent in
   states with too few visits for π̂_E (less than 90 % covered) while feature counts are known well beside it (a relative
   error of at most half the policy's), it is NFXP = MCE-IRL, which needs nothing but feature counts. Elsewhere feature
   counts and policy are known alike, all methods do similarly well or poorly, and the cheapest will do; but where less
   than 10 % is covered π̂_E is guesswork, which is not built upon to save seconds: NFXP again.
4. The left-out decisions of a single agent lie in states that were seen, so that they tell something only where these
   cover the expert's time (90 %); else rule 3 decides. Without refits (a single decision, or no budget) CCP must have
   come within 0.01 nats of NFXP's policy, or NPL's, in states that cover the expert's time, to count as alike; else
   rule 3 decides, with NPL in NFXP's place where that would cost more than the budget.

"The cheapest" takes less than half the seconds and saves at least half a second, NPL a whole one (it comes to NFXP's
estimate, if it settles): else NFXP is preferred to NPL, and NPL to CCP, as they assume less. So milliseconds decide
nothing. Seconds are those of this machine: where a saving lies near one of these bounds, another machine, or this one
under load, may choose another of the methods that are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revealed.advisor.data import Precision
from revealed.advisor.trials import ALIKE, METHODS, Replications, Trial, mean_kl
from revealed.coverage import COVERED, GUESSWORK, Coverage
from revealed.estimation import Run
from revealed.fit import Fit
from revealed.labels import in_series
from revealed.rewards.base import is_linear

WELL_KNOWN = 0.5  # error of feature counts beside that of the policy below which they are the better known
MOST_READ = 30  # parameters of a linear reward that somebody reads one by one
CHEAPER = 2.0  # times: what counts as a saving
WORTH = {"CCP": 0.5, "NPL": 1.0}  # seconds that a method must save for which something is assumed that others do not


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that was measured."""

    run: Run
    coverage: Coverage
    precision: Precision
    trials: dict[str, Trial]
    refits: Replications
    resampled: str
    budget: float

    @property
    def reference(self) -> Fit | None:
        """The fit that the others are held against: NFXP's, else NPL's."""
        return next((f for f in (self.trials["NFXP"].best, self.trials["NPL"].best) if f is not None), None)

    def kl(self, method: str) -> float:
        """Mean KL divergence per decision of a method's policy from the reference's; NaN where one is missing."""
        fit, reference = self.trials[method].best, self.reference
        if fit is None or reference is None:
            return np.nan
        return mean_kl(self.run.demos.counts.sum(axis=1), reference, fit)

    def distance(self, method: str) -> float:
        """The largest difference of a parameter from the reference's, in standard errors; NaN where none is read."""
        fit, reference, draws = self.trials[method].best, self.reference, self.refits.theta
        if fit is None or reference is None or method not in draws or reference.method not in draws:
            return np.nan
        if not is_linear(self.run.reward) or fit.theta.size > MOST_READ or self.refits.n < 2:
            return np.nan
        error = draws[reference.method].std(axis=0, ddof=1)
        gap = np.abs(fit.theta - reference.theta)
        return float(np.max(np.where(gap > 1e-6, gap / np.maximum(error, 1e-12), 0.0), initial=0.0))

    @property
    def alike(self) -> list[str]:
        """Rule 1: those that predict as well as the best; none whose parameters say something else than NFXP's."""
        close = [m for m in self.refits.theta if self.refits.is_close(m)]
        if self.reference is None or self.reference.method not in close:
            return close
        return [m for m in close if not self.distance(m) > 1.0]

    @property
    def telling(self) -> bool:
        """Whether predictions of what was left out tell how a method would do elsewhere (rule 4)."""
        return self.refits.n > 0 and (self.resampled == "agents" or self.coverage.share >= COVERED)

    @property
    def features_known(self) -> bool:
        """The paper's first scenario: feature counts are known well while π̂_E is not."""
        return self.coverage.share < COVERED and self.precision.ratio <= WELL_KNOWN


def decide(found: Evidence) -> tuple[str, str]:
    """The method by the rules above, and the reason in a sentence or two."""
    if found.telling:
        return _by_refits(found)
    kl = found.kl("CCP") if found.coverage.seen >= COVERED else np.nan  # agreement where nobody has been tells nothing
    if kl <= ALIKE and found.reference is not None and not found.refits.n:
        method = _cheapest(found, [m for m in METHODS if found.trials[m].best is not None])
        return method, f"The methods agree: CCP's policy is {kl:.2g} nats per decision from {found.reference.method}'s."
    return _by_the_paper(found, METHODS)


def _by_refits(found: Evidence) -> tuple[str, str]:
    undecided = [m for m in found.refits.theta if found.refits.is_open(m)]
    if undecided:
        method, reason = _by_the_paper(found, [m for m in METHODS if m in (*found.alike, *undecided)])
        return method, f"Held-out predictions differ by no more than chance would explain. {reason}"
    method = _cheapest(found, found.alike)
    return method, f"{method} predicts {_left_out(found)} {_beside_others(found, method)}."


def _beside_others(found: Evidence, method: str) -> str:
    """How the method predicts beside the others, which are as good, worse, or as good with other parameters."""
    refits, said = found.refits, []
    others = [m for m in refits.theta if m != method]
    alike = [m for m in others if m in found.alike]
    apart = [m for m in others if refits.is_close(m) and m not in alike]
    if worse := [m for m in others if not refits.is_close(m)]:
        gaps = [f"{gap:.2g} ± {error:.1g}" for gap, error in (refits.difference(m, refits.best) for m in worse)]
        said.append(f"better than {in_series(worse)} (by {in_series(gaps)} nats per decision)")
    if alike:
        said.append(f"as well as {in_series(alike)}{_saving(found, method, alike)}")
    if apart:
        gaps = [f"{found.distance(m):.2g}" for m in apart]
        away = f"up to {in_series(gaps)} standard errors away"
        said.append(f"as well as {in_series(apart)}, whose parameters are {away}")
    return ", and ".join(said)


def _by_the_paper(found: Evidence, adequate: Sequence[str]) -> tuple[str, str]:
    """Rule 3."""
    share, precision = found.coverage.share, found.precision
    known = f"the relative error of feature counts is {precision.features:.2g}, that of π̂_E {precision.policy:.2g}"
    if found.features_known or share < GUESSWORK:
        why = f"Only {share:.0%} of the expert's time is spent in well-visited states"
        why += f", while {known}" if found.features_known else ": π̂_E is unreliable there"
        if "NFXP" in adequate and (found.trials["NFXP"].best is not None or "NPL" not in adequate):
            return "NFXP", f"{why}{':' if found.features_known else ', and'} NFXP needs only feature counts."
        method = "NPL" if "NPL" in adequate else adequate[0]
        return method, f"{why}. NFXP would need only feature counts, but does not fit into the budget or failed."
    method = _cheapest(found, adequate)
    if share >= COVERED:
        return (
            method,
            f"{share:.0%} of the expert's time is spent in well-visited states: its policy is well estimated.",
        )
    detail = f" ({known})" if np.isfinite(precision.ratio) else ""
    return method, f"Feature counts are hardly more precise than the policy{detail}: the methods share their errors."


def _cheapest(found: Evidence, adequate: Sequence[str]) -> str:
    """The one that assumes least, or the cheapest of those that save enough beside it."""
    cost = {m: found.trials[m].seconds for m in adequate if not found.trials[m].why}
    cost = cost or {m: found.trials[m].seconds for m in adequate}
    preferred = next(m for m in reversed(METHODS) if m in cost)
    saving = [m for m in cost if m != preferred and _saves(m, cost[m], cost[preferred])]
    return min(saving, key=lambda m: cost[m], default=preferred)


def _saves(method: str, own: float, other: float) -> bool:
    """Whether so many seconds instead of others are worth the method's assumptions."""
    return CHEAPER * own < other and other - own >= WORTH[method]


def _left_out(found: Evidence) -> str:
    return "held-out agents" if found.resampled == "agents" else "held-out decisions"


def _saving(found: Evidence, method: str, alike: Sequence[str]) -> str:
    own, others = found.trials[method].seconds, [found.trials[m].seconds for m in alike]
    if CHEAPER * own < max(others):
        return f" at {own / max(others):.0%} of the seconds"
    similar = own < CHEAPER * min(others) or own - min(others) < min(WORTH.values())
    return " at similar cost" if similar else ""
