"""The numbers behind an advice: a line per quantity with its meaning, and the table that is printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed.advisor.rules import MOST_READ, WELL_KNOWN, Evidence
from revealed.advisor.trials import ALIKE, METHODS, Trial
from revealed.coverage import ENOUGH
from revealed.errors import RevealedError
from revealed.hypotheses import quadratic_form
from revealed.rewards.base import is_linear
from revealed.sheet import MISSING, Row

NOTHING = 1e-6  # what is smaller is printed as 0


@dataclass(frozen=True)
class Quantity:
    """A line of the table: what was measured, its value, and what it means."""

    quantity: str
    value: Any
    meaning: str


def facts(found: Evidence) -> list[tuple[str, str]]:
    c, p = found.coverage, found.precision
    return [
        ("Well visited", f"{c.share:.0%} of occupancy"),
        ("Never seen", f"{c.unseen} of {c.choices} states"),
        ("Resampled", found.resampled),
        ("Error, features", _number(p.features)),
        ("Error, policy", _number(p.policy)),
        ("Refits", f"{found.refits.n}" + (f", {found.refits.failures} failed" if found.refits.failures else "")),
    ]


def rows(found: Evidence) -> list[Row]:
    lines = {head: [_number(v) if isinstance(v, float) else str(v) for v in cells] for head, cells in _cells(found)}
    return [(head, *cells) for head, cells in lines.items()]


def _cells(found: Evidence) -> list[tuple[str, list[Any]]]:
    """Per line a value for each method."""
    trials, refits = [found.trials[m] for m in METHODS], found.refits
    gaps = [refits.difference(m, refits.best) if m in refits.theta else (np.nan, np.nan) for m in METHODS]
    n = found.run.demos.counts.sum()
    return [
        ("status", [t.code for t in trials]),
        ("advised options", [", ".join(f"{k}={v}" for k, v in t.advised.items()) or MISSING for t in trials]),
        ("log likelihood per decision", [float(t.best.llf / n) if t.best else np.nan for t in trials]),
        ("KL from the reference", [found.kl(m) for m in METHODS]),
        ("held-out NLL", [refits.nll(m) if m in refits.theta else np.nan for m in METHODS]),
        ("worse than the best by", [gap for gap, _ in gaps]),
        ("standard error of that", [error for _, error in gaps]),
        ("parameters, distance", [found.distance(m) for m in METHODS]),
        ("same parameters, p", [_same_parameters(found, m) for m in METHODS]),
        ("expected seconds", [float(t.expected) for t in trials]),
        ("measured seconds", [float(t.fit.seconds) if t.fit else np.nan for t in trials]),
    ]


def _number(value: float) -> str:
    return MISSING if not np.isfinite(value) else "0" if abs(value) < NOTHING else f"{value:.3g}"


def _same_parameters(found: Evidence, method: str) -> float:
    """Probability of differences as large between a method and the reference if there were none (Hotelling's T²)."""
    from scipy.special import fdtrc

    reference, fit, draws = found.reference, found.trials[method].best, found.refits.theta
    if reference is None or fit is None or reference is fit or not is_linear(found.run.reward):
        return np.nan
    K, R = fit.theta.size, found.refits.n
    if K > MOST_READ or R < K + 2 or method not in draws or reference.method not in draws:
        return np.nan
    gaps = draws[method] - draws[reference.method]
    if np.abs(gaps).max() <= 1e-6 * max(1.0, np.abs(reference.theta).max()):
        return 1.0  # the same estimator, up to where searches end
    statistic, rank = quadratic_form(fit.theta - reference.theta, np.atleast_2d(np.cov(gaps, rowvar=False)))
    return float(fdtrc(rank, R - rank, statistic * (R - rank) / (rank * (R - 1)))) if rank else np.nan


def quantities(found: Evidence) -> list[Quantity]:
    c, p = found.coverage, found.precision
    lines = [
        Quantity("occupancy in well-visited states", c.share, _MEANS["covered"].format(by=c.by, enough=ENOUGH)),
        Quantity("occupancy in visited states", c.seen, "share of the occupancy in states with at least one visit"),
        Quantity("states never seen", c.unseen, f"of {c.choices} states with something to choose"),
        Quantity("error of feature counts", p.features, _MEANS["features"].format(reps=p.replications)),
        Quantity("error of the policy", p.policy, _MEANS["policy"]),
        Quantity("ratio of the two", p.ratio, f"at most {WELL_KNOWN}: feature counts are known more precisely"),
        Quantity("resampled", found.resampled, _MEANS["resampled"]),
    ]
    for head, cells in _cells(found):
        lines += [Quantity(f"{m}: {head}", v, _MEANS[head]) for m, v in zip(METHODS, cells, strict=True)]
    return lines + [Quantity(f"{m}: identification", _identified(t), _MEANS["id"]) for m, t in found.trials.items()]


def _identified(trial: Trial) -> str:
    fit = trial.best
    if fit is None or not is_linear(fit.reward_model) or fit.theta.size > MOST_READ:
        return MISSING
    try:
        return str(fit.identification)
    except RevealedError:
        return MISSING


_MEANS = {
    "covered": "share of the expert's {by} in states with {enough} visits per feasible action or more",
    "features": "relative standard error of expected feature counts (reward gradients), {reps} resamples",
    "policy": "relative standard error of π̂_E, weighted by occupancy; unseen states count as unknown",
    "resampled": "agents with replacement; decisions, in groups, where there is one agent",
    "status": "how the plain fit ended; separated: no maximum without a penalty",
    "advised options": "options that the fit turned out to need",
    "log likelihood per decision": "in sample; CCP's depends on π̂_E",
    "KL from the reference": "nats per decision between policies, weighted by visits; the reference is NFXP, else NPL",
    "held-out NLL": "per decision, of units that are not in the resample",
    "worse than the best by": f"nats per decision; up to {ALIKE} counts as alike",
    "standard error of that": "over units; differences below twice this are not significant",
    "parameters, distance": "largest difference from the reference's, in standard errors; up to 1 counts as alike",
    "same parameters, p": "joint test that the parameters are the reference's, from the same refits",
    "expected seconds": "time of one iteration × expected number of iterations",
    "measured seconds": "of the fit on all data",
    "id": "what the observed choices say about the parameters",
}
