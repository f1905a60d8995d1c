"""Advice: everything measured, the decision, and its words."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.advisor.data import make_run, make_units, measure_precision
from revealed.advisor.rules import Evidence, decide
from revealed.advisor.table import Quantity, facts, quantities, rows
from revealed.advisor.trials import (
    METHODS,
    TOO_LONG,
    Refits,
    Trial,
    affordable,
    make_estimator,
    replicate,
    run_trials,
    time_methods,
)
from revealed.bootstrap import check_options
from revealed.checks import as_number, require_count
from revealed.coverage import ENOUGH, measure_coverage
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations, InvalidInput, InvalidOption
from revealed.estimation import Run
from revealed.estimators import Estimator
from revealed.first_step import describe_step
from revealed.fit import Fit
from revealed.labels import in_series
from revealed.mdp import MDP
from revealed.parallel import workers
from revealed.rewards.base import Reward
from revealed.sheet import Printed, Row, Sheet
from revealed.voices import Written, arg, marked, shown, words

if TYPE_CHECKING:
    import pandas as pd

BUDGET = 30.0


@dataclass(frozen=True, eq=False, repr=False)
class Advice(Printed):
    """What `advise` found: `method` with its `assumption`, a `paragraph` to act on, and the numbers behind it.

    `estimator()` builds the advised method with the options that these data call for; `fits` are those that were made
    on the way. `seconds` is the time that the advice took.
    """

    method: str
    paragraph: str
    assumption: str
    quantities: tuple[Quantity, ...] = field(repr=False)
    options: dict[str, Any]
    fits: dict[str, Fit] = field(repr=False)
    seconds: float
    reward: Reward = field(repr=False)
    updates: int | None = None
    rows: tuple[Row, ...] = field(repr=False, default=())
    facts: tuple[tuple[str, str], ...] = field(repr=False, default=())

    @property
    def table(self) -> pd.DataFrame:
        """quantity, value and meaning of everything that was measured."""
        import pandas as pd

        return pd.DataFrame([vars(one) for one in self.quantities], columns=["quantity", "value", "meaning"])

    def estimator(self, reward: Reward | None = None) -> Estimator:
        """The advised method with the advised options, for this reward or for another one."""
        return make_estimator(self.method, self.reward if reward is None else reward, self.updates, **self.options)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, for JSON; what is not known is None."""
        return {
            "method": self.method,
            "paragraph": self.paragraph,
            "assumption": self.assumption,
            "options": {name: _plain(value) for name, value in self.options.items()} | self._updates(),
            "seconds": self.seconds,
            "quantities": [vars(one) | {"value": _plain(one.value)} for one in self.quantities],
        }

    def _updates(self) -> dict[str, int]:
        return {"updates": self.updates} if self.method == "NPL" and self.updates is not None else {}

    def _sheet(self) -> Sheet:
        half = (len(self.facts) + 1) // 2
        return Sheet(
            caption=f"Advice: {self.method}",
            head=("", *METHODS),
            blocks=(self.rows,),
            left=self.facts[:half],
            right=self.facts[half:],
            notes=(self.paragraph,),
        )


def advise(
    mdp: MDP,
    demos: Demonstrations,
    reward: Reward,
    reps: int = 24,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | None = None,
    budget: float | None = None,
    **options: Any,
) -> Advice:
    """Which of CCP, NPL and NFXP suits this data, why, and with which options.

    Parameters
    ----------
    mdp, demos, reward : as for `fit`; trips with goals are not supported (use `NFXP`).
    reps, seed, jobs : maximum number of resamples of agents, their random seed, and the number of parallel workers.
        Refits stop early, in batches of six, once every difference is clear. A single agent's decisions are resampled
        in groups.
    progress : None shows a bar on a terminal; True and False force it.
    budget : seconds for fits and refits together (30). What is expected to take longer is left out, and the advice
        says so.
    options : estimator options, such as `weighting="occupancy"`, or `updates` for NPL; the advised estimator gets them,
        too.

    What is measured on the data depends on `seed` alone. Seconds depend on the machine and on what else it does. They
    decide two things: what fits into the budget, and, among methods that do equally well, whether a cheaper one saves
    enough (half the seconds, and half a second for CCP or one for NPL). Savings near these bounds may go either way.
    """
    born = time.perf_counter()
    _require_order(mdp, demos, reward)
    _require_no_goals(demos)
    check_options(reps, seed, jobs, progress)
    seconds = _as_budget(budget)
    updates = options.pop("updates", None)
    if updates is not None:
        require_count("updates", updates, error=InvalidOption)
    settings = make_estimator("CCP", reward, **options).options
    run = make_run("CCP", reward, settings, mdp, demos)
    evidence = _gather(run, updates, reps, seed, jobs, progress, seconds)
    method, reason = decide(evidence)
    return _advice(evidence, method, reason, options, updates, reward, time.perf_counter() - born)


def _require_order(mdp: Any, demos: Any, reward: Any) -> None:
    """`fit` takes its reward first, so that the order is easily mistaken."""
    kinds = {"mdp": (MDP, "an rv.MDP"), "demos": (Demonstrations, "rv.Demonstrations"), "reward": (Reward, "a reward")}
    for given, (name, (kind, expected)) in zip((mdp, demos, reward), kinds.items(), strict=True):
        others = tuple(other for other, _ in kinds.values() if other is not kind)
        if isinstance(given, others) and not isinstance(given, type):
            remedy = "The arguments are swapped: advise(mdp, demos, reward)."
            raise InvalidInput(name, expected, type(given).__name__, remedy=remedy)


def _require_no_goals(demos: Any) -> None:
    if isinstance(demos, Demonstrations) and demos.goals is not None:
        remedy = "Use rv.NFXP(reward).fit(mdp, demos): it shares computations across goals."
        raise InvalidDemonstrations.impossible("there is no advice for trips with goals", None, remedy, "demos")


def _as_budget(budget: Any) -> float:
    seconds = BUDGET if budget is None else as_number(budget)
    if not seconds >= 0.0:
        raise InvalidOption("budget", "a number of seconds >= 0", shown(budget))
    return seconds


def _gather(
    run: Run, updates: int | None, reps: int, seed: int, jobs: int | None, progress: bool | None, budget: float
) -> Evidence:
    units = make_units(run.demos, seed)
    coverage, precision = measure_coverage(run), measure_precision(run, units, reps, seed)
    costs = time_methods(run, updates)
    trials = run_trials(run, costs, budget, progress)
    left = budget - sum(trial.fit.seconds for trial in trials.values() if trial.fit is not None)
    chosen, number = affordable(trials, reps if units.n > 1 else 0, left, workers(jobs))
    refits = replicate(Refits(units, run.mdp, chosen, seed), number, jobs, progress)
    return Evidence(run, coverage, precision, trials, refits, units.kind, budget)


# words


def _assumption(found: Evidence, method: str) -> str:
    if method == "NFXP":
        return _ASSUMES["NFXP"]
    run = found.run
    how = ", ".join(w for w in describe_step(run.options.first_step, run.mdp, run.demos.counts, run.reward) if w)
    return _ASSUMES[method].format(how=how, share=f"{found.coverage.share:.0%}", enough=ENOUGH)


_ASSUMES = {
    "NFXP": "NFXP assumes that agents plan with the model's transitions and that the reward has the given form; it "
    "does not use π̂_E.",
    "CCP": "CCP assumes that π̂_E ({how}) is the expert's policy wherever the expert goes; {share} of its time is "
    "spent in states with {enough} visits per action or more.",
    "NPL": "NPL assumes that π̂_E ({how}) is near enough to the expert's policy for the updates to converge to the "
    "maximum of the likelihood.",
}


_NEVER_ENDS = words(
    f"Under the observed frequencies a trajectory may never end; {arg('first_step', 'smoothed')} is set."
)


def _remedies(trial: Trial) -> list[str]:
    """What the advised method's own fit needs or lacks."""
    said = []
    if "l2" in trial.advised:
        penalty = arg("l2", Written(f"{trial.advised['l2']:g}"))
        said.append(f"Without a penalty its weights diverge (separated); {penalty} is set.")
    if "start" in trial.advised:
        said.append(f"At its default start the value does not exist; {arg('start', 'ccp')} is set.")
    fit = trial.best
    if fit is not None and fit.status.code in ("unidentified", "cycling", "inner_solve_failed"):
        said.append(f"Note its status, {fit.status.code}: {marked(fit.status.message)}")
    return said


def _advice(
    found: Evidence,
    method: str,
    reason: str,
    given: dict[str, Any],
    updates: int | None,
    reward: Reward,
    seconds: float,
) -> Advice:
    trial, assumption = found.trials[method], _assumption(found, method)
    options = given | trial.advised
    remedies, step, asked = _remedies(trial), found.run.options.first_step, given.get("first_step", "auto")
    if isinstance(step, str) and step == "smoothed" and asked is not step:
        options["first_step"] = step
        remedies += [] if method == "NFXP" else [_NEVER_ENDS]
    said = [f"Use {method}.", reason, assumption, *remedies, *_left_undone(found)]
    paragraph = words(" ".join(map(marked, said)))
    return Advice(
        method,
        paragraph,
        assumption,
        tuple(quantities(found)),
        options,
        {m: t.best for m, t in found.trials.items() if t.best is not None},
        seconds,
        reward,
        updates,
        tuple(rows(found)),
        tuple(facts(found)),
    )


def _left_undone(found: Evidence) -> list[str]:
    said = [f"{m} was not run: {marked(t.why)}" for m, t in found.trials.items() if t.why and t.why != TOO_LONG]
    if long := [m for m, t in found.trials.items() if t.why == TOO_LONG]:
        seconds = in_series([f"{found.trials[m].expected:.2g}" for m in long])
        said.append(f"Not run within a budget of {found.budget:g} s: {in_series(long)} ({seconds} s expected).")
    ran = [m for m, t in found.trials.items() if t.best is not None]
    dropped = [m for m in ran if m not in found.refits.theta]
    if found.refits.n and dropped:
        said.append(f"{in_series(dropped)} was not refitted: the budget of {found.budget:g} s was too short.")
    if not found.refits.n:
        said.append("Nothing was refitted: " + _why_no_refits(found, ran))
    elif found.resampled == "decisions":
        said.append("There is one agent: its decisions were resampled as if they were independent.")
        if not found.telling:
            said.append("Held-out decisions lie in observed states, so predicting them says little about other states.")
    return said


def _why_no_refits(found: Evidence, ran: list[str]) -> str:
    if found.precision.replications == 0:
        return "there is only one decision to resample."
    if len(ran) < 2:
        return "there are fewer than two fits to compare."
    return f"every resample failed, or the budget of {found.budget:g} s was too short."


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return value if value is None or isinstance(value, bool | int | str) else repr(value)
