"""What the methods cost on this model, and what they say on this data: a timed iteration, fits, and refits on
resampled agents that are judged by the agents who were left out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from revealed.advisor.data import Units
from revealed.curvature import can_use_hessian
from revealed.errors import RevealedError, ValueDoesNotExist
from revealed.estimation import Options, Run
from revealed.estimators import CCP, NFXP, NPL, Estimator
from revealed.fit import Fit
from revealed.mdp import MDP, Floats
from revealed.optimize import Settings
from revealed.parallel import each, workers
from revealed.pi_tilde import PiTilde
from revealed.progress import Progress
from revealed.reestimation import with_transitions
from revealed.rewards.base import Reward, is_linear

METHODS = ("CCP", "NPL", "NFXP")  # by expected cost
# of one search that goes well, a network's by L-BFGS apart; Adam uses all it may
ITERATIONS = {"newton": 8, "lbfgs": 60, "network": 2_000}
# all searches of NPL, in iterations of the first; with Adam each is as long
LATER = {"newton": 3.0, "lbfgs": 1.5, "network": 2.0}
L2 = 1e-3  # offered where weights run away, as the status of such a fit does
UPDATES = 10  # of NPL that a forecast of its seconds counts on, unless told
ALIKE = 0.01  # nats per decision: predictions that differ by less are the same for all practical purposes
TOO_LONG = "it would not finish within the budget"
QUICK = 0.2  # seconds below which a timing is repeated
BATCH = 6  # refits after which differences are looked at


@dataclass(frozen=True)
class Timed:
    """Seconds of a search's preparation and of one iteration."""

    setup: float
    step: float


@dataclass(frozen=True)
class Costs:
    """A timed start per kind of π̃, given or π_θ itself (None where there is no value to start from)."""

    given: Timed
    own: Timed | None
    optimizer: str
    iterations: int
    updates: int | None

    def expected(self, method: str, iterations: int | None = None) -> float:
        """Seconds of a fit, from so many iterations of a first search."""
        n = self.iterations if iterations is None else iterations
        if method == "NFXP":
            timed = self.own or Timed(self.given.setup * n, self.given.setup)
            return timed.setup + n * timed.step
        if method == "CCP":
            return self.given.setup + n * self.given.step
        k = UPDATES if self.updates is None else self.updates
        return k * self.given.setup + LATER.get(self.optimizer, float(k)) * n * self.given.step


def time_methods(run: Run, updates: int | None) -> Costs:
    """One evaluation to prepare, one more to time: objective, gradient and, for Newton's method, curvature."""
    rho = run.rho()
    given = _timed(run, rho, run.given)
    if given is None:
        raise ValueDoesNotExist("the value does not exist at the reward's start.")
    objective = run.make_objective(rho, run.given(run.expert))
    o = run.options
    settings = Settings(o.optimizer, o.tol, o.max_iter, o.patience, o.learning_rate).resolved(objective)
    most = settings.max_iter or 1
    network = settings.optimizer == "lbfgs" and getattr(run.reward, "network", False)
    search = "network" if network else settings.optimizer
    n = min(ITERATIONS.get(search, most), most)
    return Costs(given, _timed(run, rho, None), search, n, updates)


def _timed(run: Run, rho: Floats, given: Any) -> Timed | None:
    """The best of three where that takes no time: the first one also pays for what is loaded and compiled."""
    found = _time_once(run, rho, given)
    if found is None or found.setup + found.step > QUICK:
        return found
    again = [one for one in (found, _time_once(run, rho, given), _time_once(run, rho, given)) if one is not None]
    return Timed(min(one.setup for one in again), min(one.step for one in again))


def _time_once(run: Run, rho: Floats, given: Any) -> Timed | None:
    born = time.perf_counter()
    pi_tilde: PiTilde = run.own() if given is None else given(run.expert)
    objective = run.make_objective(rho, pi_tilde)
    theta = run.start
    first = objective.at(theta)
    if first.problem is not None:
        return None
    size = float(np.linalg.norm(first.gradient))
    ready = time.perf_counter()
    then = objective.at(theta + 0.1 * first.gradient / (size if size > 0.0 else 1.0))
    if then.problem is None:
        _ = then.hessian if can_use_hessian(objective) else then.gradient
    return Timed(ready - born, time.perf_counter() - ready)


@dataclass(frozen=True, eq=False)
class Trial:
    """One method on this data: its `fit`, or `why` there is none; `advised` adds what the fit turned out to need.

    `expected` seconds are the forecast before it ran. `estimator` has the options `advised`; `best` is its fit.
    """

    method: str
    expected: float
    estimator: Estimator
    fit: Fit | None = None
    best: Fit | None = None
    why: str = ""
    advised: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Measured where it ran, expected elsewhere."""
        return self.expected if self.fit is None else self.fit.seconds

    @property
    def code(self) -> str:
        return "not run" if self.fit is None else self.fit.status.code

    def needs(self, name: str, value: Any) -> Trial:
        """The same with one more option, for a fit that needs it."""
        more = {name: value}
        return replace(self, advised=self.advised | more, estimator=self.estimator.with_options(**more))


def make_estimator(method: str, reward: Reward, updates: int | None = None, **options: Any) -> Estimator:
    """One of the three methods by its name."""
    if method == "NPL":
        return NPL(reward, updates=updates, **options)
    return {"CCP": CCP, "NFXP": NFXP}[method](reward, **options)


def run_trials(run: Run, costs: Costs, budget: float, progress: bool | None) -> dict[str, Trial]:
    """All methods in the order of their expected costs; those that would not end within the budget are left out."""
    trials: dict[str, Trial] = {}
    options = {name: getattr(run.options, name) for name in Options.__dataclass_fields__}
    iterations = None
    for method in METHODS:
        estimator = make_estimator(method, run.reward_model, costs.updates, **(options | {"progress": progress}))
        trial = Trial(method, costs.expected(method, iterations), estimator)
        trials[method] = _try(trial, run, budget - sum(t.seconds for t in trials.values() if t.fit is not None))
        first = trials["CCP"].fit
        iterations = None if first is None else first.iterations  # what a search takes here is known then
    return trials


def _try(trial: Trial, run: Run, left: float) -> Trial:
    """The trial with its fit, or with the reason for having none."""
    if trial.expected > left:
        return replace(trial, why=TOO_LONG)
    try:
        fit = trial.estimator.fit(run.mdp, run.demos)
    except ValueDoesNotExist as problem:
        if trial.method != "NFXP" or trial.estimator.options.start is not None:
            return replace(trial, why=problem.message)
        return _try(trial.needs("start", "ccp"), run, left)
    except RevealedError as problem:
        return replace(trial, why=problem.message)
    if fit.status.interrupted:
        raise KeyboardInterrupt
    return _with_remedies(replace(trial, fit=fit, best=fit), run)


def _with_remedies(trial: Trial, run: Run) -> Trial:
    """What the fit lacks: a penalty where weights run away."""
    assert trial.fit is not None
    if trial.fit.status.code != "separated":
        return trial
    trial = trial.needs("l2", L2)
    return replace(trial, best=trial.estimator.fit(run.mdp, run.demos))


# refits on resampled agents


@dataclass(frozen=True, eq=False)
class Refits:
    """Every method on the same resampled units: what replication r of `seed` gives depends on nothing else."""

    units: Units
    mdp: MDP
    trials: dict[str, Trial]
    seed: int

    def one(self, r: int) -> dict[str, tuple[Floats, Floats]] | str:
        """Per method θ and the log likelihood of each unit that was left out (NaN for the others); a word if one
        failed."""
        weights = self.units.draw(self.seed, r)
        out = np.flatnonzero(weights == 0.0)
        found = {}
        for method, trial in self.trials.items():
            try:
                fit = self._refit(trial, weights)
            except RevealedError as error:
                return type(error).__name__
            if fit.status.interrupted:
                raise KeyboardInterrupt
            ll = np.full(self.units.n, np.nan)
            log_policy = np.where(np.isfinite(fit.log_policy), fit.log_policy, 0.0)  # infeasible: never observed
            ll[out] = self.units.table[out] @ log_policy.reshape(-1)
            found[method] = (fit.theta, ll)
        return found

    def _refit(self, trial: Trial, weights: Floats) -> Fit:
        """From the estimate where that has no bearing on where a search ends; else from the beginning, since an
        unfinished search would remember agents who are left out."""
        fit, sample, mdp = trial.best, self.units.sample(weights), self._mdp(weights)
        assert fit is not None
        if is_linear(fit.reward_model) and fit.at_maximum:
            return trial.estimator.refit(mdp, sample, fit.theta, fit.value)
        return trial.estimator.with_options(progress=False).fit(mdp, sample)

    def _mdp(self, weights: Floats) -> MDP:
        """With its transitions estimated again, where they came from these agents."""
        found = self.mdp.estimated
        if found is None or self.units.kind != "agents" or found.ids != self.units.demos.ids:
            return self.mdp
        return with_transitions(self.mdp, found._reweighted(self.units.agent_weights(weights)))


@dataclass(frozen=True, eq=False)
class Replications:
    """`theta` (R, K) per method, and `left_out` (R, U): each method's log likelihood of units left out."""

    theta: dict[str, Floats]
    left_out: dict[str, Floats]
    sizes: Floats
    failures: int

    @property
    def n(self) -> int:
        return len(next(iter(self.theta.values()))) if self.theta else 0

    def nll(self, method: str) -> float:
        """Mean per decision of units that were left out, each averaged over the resamples without it."""
        ll, n = self._per_unit(self.left_out[method])
        return float(-ll.sum() / n.sum())

    def difference(self, first: str, second: str) -> tuple[float, float]:
        """How much worse the first predicts than the second, per decision, and the standard error over units."""
        gap, n = self._per_unit(self.left_out[second] - self.left_out[first])
        mean = float(gap.sum() / n.sum())
        error = np.sqrt(np.sum((gap - mean * n) ** 2) * n.size / max(n.size - 1, 1)) / n.sum()
        return mean, float(error)

    @property
    def best(self) -> str:
        return min(self.left_out, key=self.nll)

    def is_close(self, method: str) -> bool:
        """Whether it predicts as well as the best, for all practical purposes."""
        return self.difference(method, self.best)[0] <= ALIKE

    def is_open(self, method: str) -> bool:
        """Whether it seems to be worse than the best, by no more than chance could do."""
        gap, error = self.difference(method, self.best)
        return ALIKE < gap <= 2.0 * error

    def _per_unit(self, table: Floats) -> tuple[Floats, Floats]:
        known = np.isfinite(table).any(axis=0) & (self.sizes > 0.0)
        part = table[:, known]
        return np.nansum(part, axis=0) / np.isfinite(part).sum(axis=0), self.sizes[known]


def replicate(refits: Refits, reps: int, jobs: int | None, progress: bool | None) -> Replications:
    """At most `reps` resamples, in batches until every difference is distinguished from zero or from `ALIKE`.

    What comes out depends on the seed alone, not on the workers.
    """
    found: dict[int, Any] = {}
    with Progress("refits", progress, total=reps) as bar:
        while len(found) < reps:
            batch = range(len(found), min(len(found) + BATCH, reps))
            for finished in each(_one, [(refits, r) for r in batch], workers(jobs)):
                found |= finished
                bar.update()
            so_far = _gather(refits, found)
            if so_far.n and not any(so_far.is_open(m) for m in so_far.theta):
                break
    return _gather(refits, found)


def _one(refits: Refits, r: int) -> dict[int, Any]:
    return {r: refits.one(r)}


def _gather(refits: Refits, found: dict[int, Any]) -> Replications:
    good = [found[r] for r in sorted(found) if not isinstance(found[r], str)]
    theta, left_out = (
        {m: np.array([one[m][k] for one in good]) for m in refits.trials} if good else {} for k in (0, 1)
    )
    return Replications(theta, left_out, refits.units.sizes, len(found) - len(good))


def affordable(trials: dict[str, Trial], reps: int, left: float, jobs: int) -> tuple[dict[str, Trial], int]:
    """The methods and the number of refits that fit into the seconds left: the most expensive are left out first."""
    ran = {m: t for m, t in trials.items() if t.best is not None}
    while len(ran) > 1:
        each_one = sum(t.best.seconds for t in ran.values() if t.best is not None)
        possible = reps if each_one == 0.0 else int(min(reps, jobs * max(left, 0.0) / each_one))
        if possible >= min(BATCH, reps):
            return ran, possible
        ran = {m: t for m, t in ran.items() if t is not max(ran.values(), key=lambda t: t.seconds)}
    return {}, 0


def mean_kl(run_weights: Floats, first: Fit, second: Fit) -> float:
    """Σ_s w(s) KL(π₁(·|s) ‖ π₂(·|s)): nats per decision, w the visits."""
    used = first.policy > 0.0
    log_ratio = np.where(used, first.log_policy - np.where(used, second.log_policy, 0.0), 0.0)
    w = run_weights / run_weights.sum()
    return max(float(w @ np.sum(first.policy * log_ratio, axis=1)), 0.0)
