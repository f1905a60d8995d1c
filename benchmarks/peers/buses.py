"""Rust's buses, groups 1 to 4, 90 bins: NFXP, NPL to its fixed point and CCP, each with robust standard errors.

Both sides are given the same decisions and the same transitions. Given those, a likelihood needs how often each
decision was taken in each bin and nothing else: where the raw files are absent, the counts that ship with the package
say the same, and decisions are dealt out to as many buses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import revealed as rv
from peers.rows import Laps, Row, Task, clock
from peers.talking import Rival
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy, PiTilde

GROUPS, BUSES = (1, 2, 3, 4), 104
WORK = "Rust's buses, groups 1–4, 90 bins, with standard errors"
SMOOTHING = 1e-6  # econirl's first step: frequencies after adding this much to each count
UPDATES = 100  # more than NPL needs

NOTES = {
    "NFXP": "both MLE with sandwich errors; econirl: θ in float32, numerical Hessian, stops at a gain of 1e-6",
    "NPL": "same fixed point; econirl's errors are the pseudo-likelihood's at the last update, ours the likelihood's",
    "CCP": "same first step: frequencies, 1e-6 added to each count; econirl stops at a plateau, short of the maximum",
}


class Buses:
    """The data once for both sides, and our fits of it."""

    def __init__(self) -> None:
        self.data = rv.datasets.rust_bus(GROUPS)

    def decisions(self) -> dict[str, Any]:
        """One entry per decision: bin, action, and a bus it is dealt out to."""
        counts = self.data.demonstrations.counts
        bins, actions = np.nonzero(counts)
        many = counts[bins, actions].astype(int)
        x, d = np.repeat(bins, many), np.repeat(actions, many)
        return {"x": x, "d": d, "bus": np.arange(x.size) % BUSES}

    def write(self, path: Path) -> None:
        mdp = self.data.mdp
        T = mdp.transitions.matrix.toarray().reshape(mdp.n_states, mdp.n_actions, -1).transpose(1, 0, 2)
        np.savez(path, T=T, discount=mdp.discount, **self.decisions())

    def fit(self, method: str) -> tuple[Any, Any]:
        """The fit and its standard errors: what is timed."""
        data = self.data
        first = rv.first_step.Smoothed(SMOOTHING)
        estimator = {
            "NFXP": lambda: rv.NFXP(data.reward),
            "NPL": lambda: rv.NPL(data.reward, updates=UPDATES, first_step=first),
            "CCP": lambda: rv.CCP(data.reward, first_step=first),
        }[method]()
        fit = estimator.fit(data.mdp, data.demonstrations)
        return fit, np.sqrt(np.diag(np.asarray(fit.cov_params(kind="robust"))))

    def llf_at(self, method: str, theta: Any) -> float:
        """The log likelihood that the method maximises, at a θ of someone else's."""
        mdp, counts = self.data.mdp, self.data.demonstrations.counts
        pi_tilde: PiTilde = OwnPolicy(mdp)
        if method == "CCP":
            pi_tilde = GivenPolicy(mdp, rv.first_step.Smoothed(SMOOTHING).estimate(mdp, counts))
        found = Objective(self.data.reward, [Case(mdp, counts, pi_tilde)]).at(np.asarray(theta))
        return float(found.value * counts.sum())


def measure(row: Row, rival: Rival, folder: Path, laps: int) -> None:
    buses, path = Buses(), folder / "buses.npz"
    buses.write(path)
    rival.ask("hold", file=str(path))
    mine: list[Any] = []
    yours: list[dict[str, Any]] = []

    def us() -> float:
        return clock(lambda: mine.append(buses.fit(row.key)))

    def them() -> float:
        yours.append(rival.ask("fit", method=row.key))
        return yours[-1]["seconds"]

    by_turns = Laps()
    by_turns.run(us, them, laps, inner=5)
    (row.ours, row.theirs), row.first = by_turns.best, by_turns.first
    fit, se = mine[-1]
    theirs = yours[-1]
    row.agreement = agreement(fit, se, theirs, buses.llf_at(row.key, theirs["theta"]))
    row.note = NOTES[row.key]


def agreement(fit: Any, se: Any, theirs: dict[str, Any], ours_there: float) -> str:
    """Both estimates, standard errors and log likelihoods; what econirl gives comes second.

    Our log likelihood at econirl's θ tells a stop before the maximum from another objective.
    """

    def pair(name: str, mine: float, yours: float, digits: int) -> str:
        return f"{name} {mine:.{digits}f} / {yours:.{digits}f}"

    parts = [pair(name, fit.theta[k], theirs["theta"][k], 4) for k, name in enumerate(("RC", "θ₁₁"))]
    parts += [pair(f"s.e. {name}", se[k], theirs["se"][k], 3) for k, name in enumerate(("RC", "θ₁₁"))]
    parts.append(pair("llf", fit.llf, theirs["llf"], 4))
    parts.append(f"ours at its θ {ours_there:.4f}")
    gap = np.abs(fit.theta - theirs["theta"]) / se
    settled = "" if theirs["converged"] else "; econirl did not converge"
    return f"{'; '.join(parts)}; {gap.max():.1e} standard errors apart{settled}"


def tasks() -> list[Task]:
    aims = {"NFXP": 300.0, "NPL": 300.0, "CCP": 100.0}
    return [
        Task(Row(method, f"{WORK}: {method}", "econirl", aim), "econirl_rival.py", measure, quick=method == "CCP")
        for method, aim in aims.items()
    ]
