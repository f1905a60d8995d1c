"""Maximise an objective: trust-region Newton, L-BFGS, Adam. One stopping rule, reported the same way by all.

The rule: the 2-norm of the gradient of g/Σρ − (l2/2)‖θ‖² is at most `tol`, for `patience` iterations in a row. A θ at
which the value does not exist is a rejected trial, never an exception; only a start at such a θ is an error. (Features
in very large units may keep the gradient above any `tol`; Newton's method then stops, and says so, where its next step
could gain less than rounding.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revealed.errors import InvalidOption, SolverFailed, ValueDoesNotExist
from revealed.linear_solvers import EPS, Work
from revealed.mdp import Floats
from revealed.objective import MOST_FEATURES, Evaluation, Objective
from revealed.progress import Progress

OPTIMIZERS = ("auto", "newton", "lbfgs", "adam")
MOST_NEWTON_ENTRIES = 40_000_000  # of the value Jacobian (S, A, K): 320 MB


@dataclass(frozen=True)
class Settings:
    """How to search. `tol`, `max_iter` and `patience` of None take the optimiser's own defaults."""

    optimizer: str = "auto"
    tol: float | None = None
    max_iter: int | None = None
    patience: int | None = None
    learning_rate: float = 0.01

    def resolved(self, objective: Objective) -> Settings:
        name = choose_optimizer(objective) if self.optimizer == "auto" else self.optimizer
        if name == "newton" and not objective.has_hessian:
            raise InvalidOption("optimizer", "lbfgs or adam (newton is for linear rewards with features)", "'newton'")
        network = name == "lbfgs" and getattr(objective.reward, "network", False)
        default = _DEFAULTS["network" if network else name]
        return Settings(
            name,
            default.tol if self.tol is None else self.tol,
            default.max_iter if self.max_iter is None else self.max_iter,
            default.patience if self.patience is None else self.patience,
            self.learning_rate,
        )


_DEFAULTS = {
    "newton": Settings("newton", tol=1e-9, max_iter=200, patience=1),
    "lbfgs": Settings("lbfgs", tol=1e-6, max_iter=2_000, patience=1),
    "adam": Settings("adam", tol=1e-4, max_iter=5_000, patience=5),
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
        part, feasible = point.parts[0], point.objective.cases[0].mdp.feasible
        table = np.where(feasible, point.objective.reward.value(point.theta), 0.0)
        seen = (table, part.policy, part.log_policy, point.value, point.gradient_norm)
        self.calling = True
        callback(Iterate(len(self.rows) - 1, self.update, point.theta, *seen))
        self.calling = False


@dataclass(frozen=True, eq=False)
class Search:
    """Where a search ended. `reached` is the stopping rule; `earlier` an iterate from its second half."""

    best: Evaluation
    reached: bool
    reason: str
    iterations: int
    earlier: Floats
    failed: bool = False
    interrupted: bool = False


def choose_optimizer(objective: Objective) -> str:
    """Newton for linear rewards of moderate size, L-BFGS for others, Adam for networks with kinks (ReLU)."""
    if not getattr(objective.reward, "smooth", True):
        return "adam"
    return "newton" if can_use_hessian(objective) else "lbfgs"


def can_use_hessian(objective: Objective) -> bool:
    """Whether second derivatives are exact and small enough to be held: K² and the value Jacobian (S, A, K)."""
    K = objective.reward.n_params
    return objective.has_hessian and K <= MOST_FEATURES and all(_holds(case, K) for case in objective.cases)


def _holds(case: Any, K: int) -> bool:
    """Cases on a device, which hold the Jacobian in parts, say so themselves."""
    return case.holds(K) if hasattr(case, "holds") else K * case.mdp.feasible.size <= MOST_NEWTON_ENTRIES


def maximise(objective: Objective, start: Floats, settings: Settings, trace: Trace) -> Search:
    """Search from `start`. An interrupt (Ctrl-C) ends the search and keeps the best point so far."""
    settings = settings.resolved(objective)
    first = objective.at(start)
    if not np.isfinite(first.value):
        raise _bad_start(first)
    walk = _Walk(first, settings, trace)
    try:
        _METHODS[settings.optimizer](objective, walk)
    except KeyboardInterrupt:
        walk.stop("interrupted by the user", interrupted=True)
    except SolverFailed as problem:
        if trace.calling:
            raise
        walk.stall(problem)
    return walk.result()


class _Walk:
    """The present point of a search, its trail, and the stopping rule."""

    def __init__(self, first: Evaluation, settings: Settings, trace: Trace) -> None:
        self.point, self.settings, self.trace = first, settings, trace
        self.iterations, self._quiet = 0, 0
        self.trail: list[Floats] = [first.theta]
        self._stop: dict[str, Any] | None = None
        self._judge(0.0)

    @property
    def running(self) -> bool:
        return self._stop is None

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
        if self._quiet >= (self.settings.patience or 1):
            self.stop(f"gradient norm {norm:.1e} <= tol {tol:.1e}", reached=True)
        elif self.iterations >= (self.settings.max_iter or 1):
            self.stop(f"{self.iterations} iterations, gradient norm {norm:.1e} > tol {tol:.1e}")

    def stop(self, reason: str, **flags: bool) -> None:
        self._stop = {"reason": reason, **flags}

    def stall(self, problem: Exception | None = None) -> None:
        norm = self.point.gradient_norm
        self.stop(
            f"no further progress at gradient norm {norm:.1e}" + (f" ({problem})" if problem else ""),
            failed=isinstance(problem, SolverFailed),
        )

    def result(self) -> Search:
        stop: dict[str, Any] = {"reached": False} | (self._stop or {"reason": "not finished"})
        earlier = self.trail[len(self.trail) // 2] if len(self.trail) > 1 else np.zeros_like(self.point.theta)
        return Search(best=self.point, iterations=self.iterations, earlier=earlier, **stop)


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
        elif 0.0 < predicted <= 16 * EPS * abs(point.value):  # nothing left to gain: features may have large units
            walk.stop(f"gradient norm {point.gradient_norm:.1e} is what rounding leaves of it", reached=True)
        else:
            radius = 0.25 * min(radius, length)
            if radius < 1e-12:
                walk.stall(trial.problem)
    _polish(objective, walk)


def _polish(objective: Objective, walk: _Walk) -> None:
    if walk.point.gradient_norm == 0.0 or not walk._stop or not walk._stop.get("reached"):
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


class Curvature:
    """Eigenvalues of the scaled curvature −H; the trust-region step for any radius is then a one-dimensional search.

    Parameters are scaled to unit curvature, but not below `floor` of what they can do to log-odds: far out, where
    choices are all but certain, curvature says nothing about how far to go. Where −H is indefinite (NFXP far from its
    maximum) the information takes its place: always positive, and equal to −H on average over data from the model.
    """

    def __init__(self, point: Evaluation, floor: float = 0.05) -> None:
        blind = (point.spread == 0.0) & (point.objective.l2 == 0.0)
        self._decompose(np.where(blind[:, None] | blind, 0.0, -point.hessian), floor * point.spread)
        if self.values.min(initial=0.0) < -1e-8 and floor > 0.0:
            expected = point.information + point.objective.l2 * np.eye(blind.size)
            self._decompose(np.where(blind[:, None] | blind, 0.0, expected), floor * point.spread)
        self.slope = self.vectors.T @ (np.where(blind, 0.0, point.gradient) / self.scale)
        self.dead = (np.abs(self.values) < 1e-12) & (np.abs(self.slope) <= 1e-12 * np.abs(self.slope).max(initial=0.0))

    def _decompose(self, curvature: Floats, least: Floats) -> None:
        scale = np.sqrt(np.maximum(np.abs(np.diag(curvature)), least**2))
        self.scale = np.where(scale > 0.0, scale, 1.0)
        scaled = curvature / np.outer(self.scale, self.scale)
        self.values, self.vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))

    def length(self, step: Floats) -> float:
        return float(np.linalg.norm(self.scale * step))

    def step(self, radius: float) -> tuple[Floats, float]:
        """The maximiser of the quadratic model within `radius`, and the gain it predicts."""
        slope = np.where(self.dead, 0.0, self.slope)
        lowest = float(self.values[~self.dead].min(initial=np.inf))
        if np.isinf(lowest):
            return np.zeros_like(slope), 0.0

        def at(shift: float) -> Floats:
            return np.where(self.dead, 0.0, slope / np.where(self.dead, 1.0, self.values + shift))

        low = max(0.0, -lowest) + 1e-14 * max(1.0, abs(lowest))
        shift = 0.0 if lowest > 1e-14 and np.linalg.norm(at(0.0)) <= radius else _shift_for(at, low, radius)
        u = at(shift)
        predicted = float(slope @ u - 0.5 * u @ (self.values * u))
        return (self.vectors @ u) / self.scale, predicted


def _shift_for(at: Callable[[float], Floats], low: float, radius: float) -> float:
    """The shift at which the step is as long as the radius: Newton on 1/‖u‖, which is nearly linear in the shift."""
    length = float(np.linalg.norm(at(low)))
    high, shift = np.inf, low
    for _ in range(60):
        if abs(length - radius) <= 1e-3 * radius or (shift == low and length <= radius):
            return shift
        low, high = (shift, high) if length > radius else (low, shift)
        ahead = max(1e-6 * shift, 1e-12)
        slope = (1.0 / float(np.linalg.norm(at(shift + ahead))) - 1.0 / length) / ahead
        guess = shift + (1.0 / radius - 1.0 / length) / slope if slope > 0.0 else np.inf
        inside = low < guess < high
        shift = guess if inside else (0.5 * (low + high) if np.isfinite(high) else max(2.0 * low, 1e-8))
        length = float(np.linalg.norm(at(shift)))
    return shift


def _lbfgs(objective: Objective, walk: _Walk, memory: int = 20) -> None:
    """Limited-memory BFGS with a bisection for the weak Wolfe conditions; trials without a value count as too long."""
    pairs: list[tuple[Floats, Floats]] = []
    while walk.running:
        point = walk.point
        direction = _two_loop(point.gradient, pairs)
        if direction @ point.gradient <= 0.0:
            pairs, direction = [], point.gradient
        first = 1.0 if pairs else min(1.0, 1.0 / point.gradient_norm)
        trial, problem = _wolfe(objective, point, direction, first)
        if trial is None and pairs:
            pairs = []
            continue
        if trial is None:
            return walk.stall(problem)
        s, y = trial.theta - point.theta, point.gradient - trial.gradient
        if s @ y > 1e-12 * np.linalg.norm(s) * np.linalg.norm(y):
            pairs = [*pairs[1 - memory :], (s, y)]
        walk.move(trial)
    return None


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
    """Adam, as in the paper; a trial without a value is undone and the learning rate halved."""
    rate = walk.settings.learning_rate
    mean, square = np.zeros_like(walk.point.theta), np.zeros_like(walk.point.theta)
    k = 0
    while walk.running:
        k += 1
        gradient = walk.point.gradient
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        step = (mean / (1 - 0.9**k)) / (np.sqrt(square / (1 - 0.999**k)) + 1e-8)
        trial = objective.at(walk.point.theta + rate * step)
        while not np.isfinite(trial.value):
            rate *= 0.5
            if rate < 1e-12:
                return walk.stall(trial.problem)
            trial = objective.at(walk.point.theta + rate * step)
        walk.move(trial)
    return None


_METHODS: dict[str, Callable[[Objective, _Walk], None]] = {"newton": _newton, "lbfgs": _lbfgs, "adam": _adam}


def _bad_start(first: Evaluation) -> Exception:
    if isinstance(first.problem, SolverFailed):
        return first.problem
    reason = first.problem or (
        "an observed decision has probability zero at the start. Pass start= with smaller parameters."
    )
    return ValueDoesNotExist(f"the search cannot start: {reason}")
