"""Maximise an objective: trust-region Newton, L-BFGS, Adam. One stopping rule, reported the same way by all.

The rule (theory O5): the 2-norm of the gradient of g/Σρ − (l2/2)‖θ‖², each parameter in units of log-odds, is at most
`tol` for `patience` iterations in a row. L-BFGS and Adam search in these units, too, so that rescaling a feature
changes nothing. Where the rule is met the point is looked at once more: a stationary point that is not a maximum is
left uphill, and a gradient that is small only in the units of the start is not a reason to stop. A θ at which the value
does not exist is a rejected trial, never an exception; only a start at such a θ is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from revealed.curvature import Curvature, can_use_hessian, units_at_end, units_of, way_up
from revealed.errors import InvalidOption, RevealedError, SolverFailed, ValueDoesNotExist
from revealed.linear_solvers import EPS, Work
from revealed.mdp import Floats
from revealed.objective import Evaluation, Objective, vector_length
from revealed.progress import Progress
from revealed.rewards.base import reward_table
from revealed.voices import either, words

OPTIMIZERS = ("auto", "newton", "lbfgs", "adam")
MOST_DEPARTURES, MOST_ROUNDS = 5, 5  # from stationary points that are not maxima; in new units
SLACK = 100.0  # times `tol`: the gradient in the units of the last point
STATIONARY = 1e-2  # gradient norm up to which curvature decides whether a point is a maximum
ROUNDED = 1e-6  # gradient norm above which rounding is no excuse for stopping


@dataclass(frozen=True)
class Settings:
    """How to search. `tol`, `max_iter` and `patience` of None take the optimiser's own defaults."""

    optimizer: str = "auto"
    tol: float | None = None
    max_iter: int | None = None
    patience: int | None = None
    learning_rate: float = 0.01
    near: float | None = None  # standard errors from the maximum; None where `tol` was given, which is taken as meant

    def resolved(self, objective: Objective) -> Settings:
        name = choose_optimizer(objective) if self.optimizer == "auto" else self.optimizer
        if name == "newton" and not objective.has_hessian:
            rule = "cannot be newton, which requires a linear reward with features"
            raise InvalidOption.conflict("optimizer", rule, remedy="Use lbfgs or adam.")
        network = name == "lbfgs" and getattr(objective.reward, "network", False)
        default = _DEFAULTS["network" if network else name]
        return Settings(
            name,
            default.tol if self.tol is None else self.tol,
            default.max_iter if self.max_iter is None else self.max_iter,
            default.patience if self.patience is None else self.patience,
            self.learning_rate,
            near=default.near if self.tol is None else None,
        )


_DEFAULTS = {
    "newton": Settings("newton", tol=1e-9, max_iter=200, patience=1, near=1e-4),
    "lbfgs": Settings("lbfgs", tol=1e-6, max_iter=2_000, patience=1, near=1e-4),
    "adam": Settings("adam", tol=1e-4, max_iter=5_000, patience=5, near=1e-2),
    "network": Settings("lbfgs", tol=1e-3, max_iter=5_000, patience=1),  # far below what the sample tells
}


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point that a search passes, as `callback` sees it: the parameters, and the reward, policy and log-policy (S, A)
    that go with them, as a fit has them. `iteration` counts from 0 through all updates of π̃, `update` from 1."""

    iteration: int
    update: int
    theta: Floats
    reward: Floats = field(repr=False)
    policy: Floats = field(repr=False)
    log_policy: Floats = field(repr=False)
    objective: float
    gradient_norm: float


@dataclass
class Trace:
    """The iterations of a fit, across NPL's updates: one row each, a bar on a terminal, and whoever else listens."""

    bar: Progress
    work: Work
    callback: Callable[[Iterate], object] | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    update: int = 1
    born: float = field(default_factory=time.perf_counter)
    calling: bool = False  # whether the callback is at work: its failures are not the search's

    def add(self, point: Evaluation, step: float) -> None:
        row = {
            "update": self.update,
            "objective": point.value,
            "gradient_norm": point.gradient_norm,
            "step": step,
            "seconds": time.perf_counter() - self.born,
            "linear_solves": self.work.solves,
        }
        self.rows.append(row)
        if self.callback is not None:
            self._call(self.callback, point)
        self.bar.update(f"update {self.update}  objective {point.value:.6f}  gradient {row['gradient_norm']:.1e}")

    def _call(self, callback: Callable[[Iterate], object], point: Evaluation) -> None:
        part = point.parts[0]
        table = reward_table(point.objective.reward, point.theta, point.objective.cases[0].mdp)
        seen = (table, part.policy, part.log_policy, point.value, point.gradient_norm)
        self.calling = True
        callback(Iterate(len(self.rows) - 1, self.update, point.theta, *seen))
        self.calling = False


@dataclass(frozen=True, eq=False)
class Search:
    """Where a search ended. `reached` is the stopping rule; `earlier` an iterate from its second half; `departures`
    counts stationary points that were left uphill."""

    best: Evaluation
    reached: bool
    reason: str
    iterations: int
    earlier: Floats
    departures: int = 0
    failed: bool = False
    interrupted: bool = False


def choose_optimizer(objective: Objective) -> str:
    """Newton for linear rewards of moderate size, L-BFGS for others, Adam for networks with kinks (ReLU)."""
    if not getattr(objective.reward, "smooth", True):
        return "adam"
    return "newton" if can_use_hessian(objective) else "lbfgs"


def maximise(objective: Objective, start: Floats, settings: Settings, trace: Trace) -> Search:
    """Search from `start`. An interrupt (Ctrl-C) ends the search and keeps the best point so far."""
    settings = settings.resolved(objective)
    first = objective.at(start)
    if not np.isfinite(first.value):
        raise _bad_start(first)
    objective.units = units_of(first)
    walk = _Walk(first, settings, trace)
    try:
        _METHODS[settings.optimizer](objective, walk)
        while walk.reached and _goes_on(objective, walk):
            _METHODS[settings.optimizer](objective, walk)
    except KeyboardInterrupt:
        walk.stop("interrupted by the user", interrupted=True)
    except (SolverFailed, ValueDoesNotExist) as problem:
        if trace.calling:
            raise
        walk.stall(problem)
    return walk.result()


def _goes_on(objective: Objective, walk: _Walk) -> bool:
    """Whether there is more to find where the rule was met: uphill, or in the units of this point."""
    stationary = walk.point.gradient_norm <= STATIONARY and walk.departures < MOST_DEPARTURES
    higher = way_up(walk.point) if stationary else None
    if higher is not None:
        walk.leave(higher)
        return True
    if walk.rounds == MOST_ROUNDS or is_near(walk.point, walk.settings):
        return False
    objective.units = units_at_end(walk.point)
    walk.resume(tighter=walk.settings.near is not None)
    return True


def is_near(point: Evaluation, settings: Settings, slack: float = 1.0) -> bool:
    """Whether the end is near enough: by what Newton's next step would gain where second derivatives exist, else by the
    gradient in the units of this point. A tolerance that the user gave is taken as meant."""
    objective, tol, near = point.objective, slack * (settings.tol or 0.0), settings.near
    if can_use_hessian(objective):
        left = (2.0 * Curvature(point, floor=0.0).step(np.inf)[1]) ** 0.5  # standard errors of one decision
        return left <= SLACK * tol if near is None else left * objective.total**0.5 <= slack * near
    return vector_length(point.gradient, units_at_end(point)) <= SLACK * tol


def tol_words(tol: float, asked: float) -> str:
    """The tolerance of a search, and what it was where the search went on with a smaller one."""
    less = "" if tol == asked else f", tightened from {asked:.1e} to come nearer to the maximum"
    return f"tol {tol:.1e}{less}"


class _Walk:
    """The present point of a search, its trail, and the stopping rule."""

    def __init__(self, first: Evaluation, settings: Settings, trace: Trace) -> None:
        self.point, self.settings, self.trace = first, settings, trace
        self._asked = settings.tol or 0.0
        self.iterations, self._quiet = 0, 0
        self.departures, self.rounds = 0, 0
        self.trail: list[Floats] = [first.theta]
        self._stop: dict[str, Any] | None = None
        self._judge(0.0)

    @property
    def running(self) -> bool:
        return self._stop is None

    @property
    def reached(self) -> bool:
        return self._stop is not None and bool(self._stop.get("reached"))

    def leave(self, higher: Evaluation) -> None:
        """Go on from a higher point near one that was stationary, but no maximum."""
        self.departures += 1
        self.resume()
        self.move(higher)

    def resume(self, tighter: bool = False) -> None:
        self.rounds += 1
        if tighter:
            self.settings = replace(self.settings, tol=0.1 * (self.settings.tol or 0.0))
        self._stop, self._quiet = None, 0

    def move(self, point: Evaluation) -> None:
        _ = point.gradient  # a solve that fails here leaves the walk where it was
        step = float(np.linalg.norm(point.theta - self.point.theta))
        self.point = point
        self.iterations += 1
        self.trail.append(point.theta)
        if len(self.trail) > 64:  # thin it out: only a point from the second half is wanted in the end
            self.trail = self.trail[::2]
        self._judge(step)

    def _judge(self, step: float) -> None:
        norm, tol = self.point.gradient_norm, self.settings.tol
        self.trace.add(self.point, step)
        self._quiet = self._quiet + 1 if tol is not None and norm <= tol else 0
        patience = (self.settings.patience or 1) if self.iterations else 1  # a start at a maximum need not be left
        if self._quiet >= patience:
            self.stop(f"gradient norm {norm:.1e} <= {self._tol_words}", reached=True)
        elif self.iterations >= (self.settings.max_iter or 1):
            self.stop(f"{self.iterations} iterations, gradient norm {norm:.1e} > {self._tol_words}")

    @property
    def _tol_words(self) -> str:
        return tol_words(self.settings.tol or 0.0, self._asked)

    def stop(self, reason: str, **flags: bool) -> None:
        self._stop = {"reason": reason, **flags}

    def stall(self, problem: Exception | None = None) -> None:
        norm = self.point.gradient_norm
        self.stop(
            f"no further progress at gradient norm {norm:.1e}" + (" (" + _said(problem) + ")" if problem else ""),
            failed=isinstance(problem, SolverFailed),
        )

    def result(self) -> Search:
        stop: dict[str, Any] = {"reached": False} | (self._stop or {"reason": "not finished"})
        earlier = self.trail[len(self.trail) // 2] if len(self.trail) > 1 else np.zeros_like(self.point.theta)
        told = {"iterations": self.iterations, "departures": self.departures}
        return Search(best=self.point, earlier=earlier, **told, **stop)


def _newton(objective: Objective, walk: _Walk) -> None:
    """Trust region with the exact Hessian (theory H1), in coordinates scaled to unit curvature, solved by eigenvalues.

    Directions without curvature and without slope are left alone, so that from zero the search stays where choices
    can see. Once the rule is met one more full step is tried: it costs little and squares the error.
    """
    radius = 4.0
    spectrum = Curvature(walk.point)
    while walk.running:
        point = walk.point
        step, predicted = spectrum.step(radius)
        trial = objective.at(point.theta + step)
        gain, length = trial.value - point.value, spectrum.length(step)
        if gain >= 0.1 * predicted > 0.0 or _better_at_rounding(point, trial, predicted):
            radius = max(radius, 2.5 * length) if gain > 0.7 * predicted else radius
            spectrum = Curvature(trial)
            walk.move(trial)
        elif 0.0 < predicted <= 16 * EPS * abs(point.value) and point.gradient_norm <= ROUNDED:
            walk.stop(f"gradient norm {point.gradient_norm:.1e}, as small as rounding allows", reached=True)
        else:
            radius = 0.25 * min(radius, length)
            if radius < 1e-12:
                walk.stall(trial.problem)
    _polish(objective, walk)


def _polish(objective: Objective, walk: _Walk) -> None:
    if walk.point.gradient_norm == 0.0 or not walk.reached:
        return
    step, _ = Curvature(walk.point).step(np.inf)
    trial = objective.at(walk.point.theta + step)
    if np.isfinite(trial.value) and trial.gradient_norm < walk.point.gradient_norm:
        walk.point = trial


def _better_at_rounding(point: Evaluation, trial: Evaluation, predicted: float) -> bool:
    """Where the predicted gain drowns in rounding, the gradient decides."""
    if predicted > 1e3 * EPS * abs(point.value) or not np.isfinite(trial.value):
        return False
    return trial.gradient_norm < 0.9 * point.gradient_norm


def _lbfgs(objective: Objective, walk: _Walk, memory: int = 20) -> None:
    """Limited-memory BFGS with a bisection for the weak Wolfe conditions, in the objective's units; trials without a
    value count as too long."""
    pairs: list[tuple[Floats, Floats]] = []
    units = _units(objective)
    while walk.running:
        point = walk.point
        direction = _two_loop(point.gradient / units, pairs) / units
        if direction @ point.gradient <= 0.0:
            pairs, direction = [], point.gradient / units**2
        first = 1.0 if pairs else min(1.0, 1.0 / point.gradient_norm)
        trial, problem = _wolfe(objective, point, direction, first)
        if trial is None and pairs:
            pairs = []
            continue
        if trial is None:
            return walk.stall(problem)
        s, y = (trial.theta - point.theta) * units, (point.gradient - trial.gradient) / units
        if s @ y > 1e-12 * np.linalg.norm(s) * np.linalg.norm(y):
            pairs = [*pairs[1 - memory :], (s, y)]
        walk.move(trial)
    return None


def _units(objective: Objective) -> Floats:
    assert objective.units is not None  # `maximise` sets them
    return objective.units


def _two_loop(gradient: Floats, pairs: list[tuple[Floats, Floats]]) -> Floats:
    q, weights = gradient.copy(), []
    for s, y in reversed(pairs):
        weights.append((s @ q) / (s @ y))
        q -= weights[-1] * y
    if pairs:
        s, y = pairs[-1]
        q *= (s @ y) / (y @ y)
    for (s, y), weight in zip(pairs, reversed(weights), strict=True):
        q += (weight - (y @ q) / (s @ y)) * s
    return q


def _wolfe(
    objective: Objective, point: Evaluation, direction: Floats, length: float
) -> tuple[Evaluation | None, Exception | None]:
    slope = float(direction @ point.gradient)
    low, high, problem = 0.0, np.inf, None
    noise = 8 * EPS * abs(point.value)
    for _ in range(60):
        trial = objective.at(point.theta + length * direction)
        if not trial.value >= point.value + 1e-4 * length * slope - noise:
            high, problem = length, trial.problem or problem
        elif float(direction @ trial.gradient) > 0.9 * slope:
            low = length
        else:
            return trial, None
        length = 0.5 * (low + high) if np.isfinite(high) else 2.0 * length
        if np.isfinite(high) and high - low <= 1e-14 * high:
            break
    if low > 0.0:  # enough ascent, though the slope did not flatten: still a better point
        return objective.at(point.theta + low * direction), None
    return None, problem


def _adam(objective: Objective, walk: _Walk) -> None:
    """Adam, as in the paper, in the objective's units; a trial without a value is undone, the learning rate halved."""
    rate, units = walk.settings.learning_rate, _units(objective)
    mean, square = np.zeros_like(walk.point.theta), np.zeros_like(walk.point.theta)
    k = 0
    while walk.running:
        k += 1
        gradient = walk.point.gradient / units
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        step = (mean / (1 - 0.9**k)) / (np.sqrt(square / (1 - 0.999**k)) + 1e-8)
        trial = objective.at(walk.point.theta + rate * step / units)
        while not np.isfinite(trial.value):
            rate *= 0.5
            if rate < 1e-12:
                return walk.stall(trial.problem)
            trial = objective.at(walk.point.theta + rate * step / units)
        walk.move(trial)
    return None


_METHODS: dict[str, Callable[[Objective, _Walk], None]] = {"newton": _newton, "lbfgs": _lbfgs, "adam": _adam}


def _bad_start(first: Evaluation) -> Exception:
    if isinstance(first.problem, SolverFailed):
        return first.problem
    return ValueDoesNotExist("the search cannot start: " + (_ZERO if first.problem is None else _said(first.problem)))


def _said(problem: Exception) -> str:
    return problem.message if isinstance(problem, RevealedError) else str(problem)


_ZERO = words(
    "an observed decision has probability zero at the start. "
    + either("Pass start= with smaller parameters.", "Use --start ccp.")
)
