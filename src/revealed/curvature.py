"""How the objective bends: the parameters' units, second derivatives, and ways up from a stationary point.

A unit of a parameter is what moves the log-odds of an observed choice by about one (theory O5): searches, stopping
rules and finite differences go by these units, so that rescaling a feature changes nothing. Second derivatives are
exact for rewards with features (theory H1) and central differences of the gradient elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from revealed.checks import Bools
from revealed.eigen import symmetric_eigen
from revealed.errors import ValueDoesNotExist
from revealed.linear_solvers import EPS
from revealed.mdp import Floats
from revealed.objective import MOST_FEATURES, Evaluation, Objective, PlainPart
from revealed.rewards.base import has_features, is_linear, of_trips, plain

MOST_NEWTON_ENTRIES = 40_000_000  # of the value Jacobian (S, A, K): 320 MB
MOST_DIFFERENCED = 30  # parameters up to which a Hessian is made of differences, at two gradients each
INVISIBLE = 1e-9  # of what a parameter does to rewards: its effect on log-odds is rounding where it is smaller
FARTHEST = 1e8  # size of rewards whose rounding might be taken for a change of choices
PROBES = 8  # random tables by which the size of ∂r/∂θ is told where it cannot be written down
DIRECTIONS = 6  # of Krylov's, along which curvature is looked for where there are more parameters
SURE = 1e-4  # of an even gap, for rewards without features
LEAST = 1e-12  # of a gap in log-odds: what choices tell beyond that is that they are sure
STEP = 1e-4  # of a difference, in log-odds
UPWARDS = 1e-7, 1e-4  # curvature that counts as upwards: exact, and of differences
LEAVES = (1.0, 0.3, 0.1, 0.03, 0.01)  # log-odds by which a stationary point is left
MOVES = 0.1, 3.0  # log-odds, at least and at most, of a step that is neither small nor large


def can_use_hessian(objective: Objective) -> bool:
    """Whether second derivatives are exact and small enough to be held: K² and the value Jacobian (S, A, K)."""
    K = objective.reward.n_params
    return objective.has_hessian and K <= MOST_FEATURES and all(_holds(case, K) for case in objective.cases)


def _holds(case: Any, K: int) -> bool:
    """Cases on a device, which hold the Jacobian in parts, say so themselves."""
    return case.holds(K) if hasattr(case, "holds") else K * case.mdp.feasible.size <= MOST_NEWTON_ENTRIES


def is_concave(objective: Objective) -> bool:
    """Whether the objective is concave by its form: a logit in θ, as π̃ stays and the reward is linear (theory H1)."""
    return bool(getattr(objective.reward, "linear", False)) and not any(case.moves for case in objective.cases)


# units


def units_of(point: Evaluation) -> Floats:
    """(K,): by about how much a unit of each parameter moves log-odds (theory O5); positive.

    For features, the widest gap that a unit makes between two actions of an observed state; where ∂Q/∂θ is too large to
    be held, the range of the feature. A weight per state, and the weights of a `NeuralReward`, whose inputs are
    standardised, are units themselves. Of other rewards, the root mean square of those gaps; one unit for all
    parameters where there are many, since those of a network belong together.
    """
    objective = point.objective
    reward = objective.reward
    if can_use_hessian(objective):
        return _positive(point.spread, point.size)
    if has_features(reward) and not of_trips(reward):
        return _positive(*_ranges(objective, point.theta))
    if is_linear(reward) or getattr(plain(reward), "network", False):
        return np.ones(reward.n_params)
    return _in_common(point, _typical_slopes(point, evenly=True))


def _in_common(point: Evaluation, slopes: Floats) -> Floats:
    """The slopes as units: each its own where parameters are few, the steepest for all where they are many."""
    if slopes.size > MOST_DIFFERENCED:
        return _positive(np.full(slopes.size, slopes.max(initial=0.0)))
    flat = [1.0 / _reach(point, k) if slope == 0.0 else 0.0 for k, slope in enumerate(slopes)]
    return _positive(slopes, np.array(flat), _reward_slopes(point, np.random.default_rng(0)))


def units_at_end(point: Evaluation) -> Floats:
    """The units where a search ends: what the choices tell there, which leaves out gaps whose choices are all but sure
    (one state with a huge feature, say)."""
    reward = point.objective.reward
    if not can_use_hessian(point.objective):
        if is_linear(reward) or getattr(plain(reward), "network", False):
            return units_of(point)
        told, even = (_typical_slopes(point, evenly) for evenly in (False, True))
        return _in_common(point, np.where(told > SURE * even, told, even))
    told = np.sqrt(np.maximum(np.diag(point.information), 0.0))
    used = (point.spread > 0.0) & (told > LEAST * point.spread)
    return _positive(np.where(used, told, 0.0), units_of(point))


def _positive(*sizes: Floats) -> Floats:
    """The first of the sizes that is not zero, for each parameter; 1 where all are."""
    out = np.ones_like(sizes[0])
    for size in reversed(sizes):
        out = np.where(np.isfinite(size) & (size > 0.0), size, out)
    return out


def _ranges(objective: Objective, theta: Floats) -> tuple[Floats, Floats]:
    """Range and size of each feature where something may be chosen."""
    reward, mdp = objective.reward, objective.cases[0].mdp
    feasible = mdp.feasible if plain(reward) is reward else mdp.base.feasible
    J: Any = plain(reward).jacobian(theta)
    J = J[np.flatnonzero(feasible if J.shape[0] == feasible.size else feasible.any(axis=1))]
    low, high = (np.asarray(x.toarray() if hasattr(x, "toarray") else x).reshape(-1) for x in (J.min(0), J.max(0)))
    return high - low, np.maximum(np.abs(low), np.abs(high))


def _typical_slopes(point: Evaluation, evenly: bool) -> Floats:
    """(K,): the root mean square over observed decisions of ∂(Q − its mean)/∂θ_k, the mean taken with even chances or
    with those of π_θ, which leave out what is sure. From the slopes (G2–G4) of decisions drawn by lot."""
    rng = np.random.default_rng(0)
    pulled = np.zeros((PROBES, point.theta.size))
    for part in point.parts:
        if not isinstance(part, PlainPart):  # on a device, or with goals: of rewards alone
            return _reward_slopes(point, rng)
        for k in range(PROBES):
            pulled[k] += _slope_of_lots(part, _even_policy(part) if evenly else part.policy, rng)
    slopes = np.sqrt(np.mean(pulled**2, axis=0) / point.objective.total)
    return np.where(slopes > INVISIBLE * _reward_slopes(point, rng), slopes, 0.0)


def _even_policy(part: PlainPart) -> Floats:
    feasible = part.case.mdp.feasible
    return feasible / np.maximum(feasible.sum(axis=1, keepdims=True), 1)


def _slope_of_lots(part: PlainPart, policy: Floats, rng: np.random.Generator) -> Floats:
    """(K,): Σ_s ±√ρ(s) ∂(Q(s, a) − E_π Q(s, ·))/∂θ with an action drawn from π in every observed state."""
    case, rows = part.case, part.case.rows
    drawn = (rng.random(rows.size)[:, None] > np.cumsum(policy[rows], axis=1)).sum(axis=1)
    D = np.zeros(policy.shape)
    D[rows] = -policy[rows]
    D[rows, np.minimum(drawn, policy.shape[1] - 1)] += 1.0
    D[rows] *= (np.sqrt(case.rho_state[rows]) * rng.choice((-1.0, 1.0), rows.size))[:, None]
    cotangent = D + part.pi_tilde * part.chain.solve_pairs(D)[:, None]  # G3
    return part.reward.vjp(part.theta, np.where(case.mdp.feasible, cotangent, 0.0))


def _reward_slopes(point: Evaluation, rng: np.random.Generator) -> Floats:
    """(K,): the root mean square of ∂r/∂θ_k over feasible pairs, from products with random signs."""
    feasible = point.objective.cases[0].mdp.feasible
    signs = (rng.choice((-1.0, 1.0), size=feasible.shape) * feasible for _ in range(PROBES))
    pulled = np.array([point.objective.reward.vjp(point.theta, table) for table in signs])
    return np.sqrt(np.mean(pulled**2, axis=0) / feasible.sum())


def _reach(point: Evaluation, k: int) -> float:
    """How far a parameter without slope goes until it moves log-odds by about one; ∞ where it never does."""
    t, before = 1.0, 0
    for _ in range(40):
        theta = point.theta.copy()
        theta[k] += t
        if np.nanmax(np.abs(np.asarray(point.objective.reward.value(theta)))) > FARTHEST:
            return np.inf
        moved = shift(point, point.objective.at(theta))
        way = (moved < MOVES[0]) - (moved > MOVES[1])
        if way == 0 or way == -before:
            return t
        t, before = t * 10.0**way, way
    return np.inf


def shift(point: Evaluation, trial: Evaluation, rows: list[Bools] | None = None) -> float:
    """The largest change of a log choice probability in an observed state, or in one of these rows of the parts; ∞
    where there is no value."""
    most = 0.0 if trial.problem is None else np.inf
    for k, (old, new) in enumerate(zip(point.parts, trial.parts, strict=False)):
        offered = old.choices.feasible if rows is None else old.choices.feasible & rows[k][:, None]
        change = new.choices.log_policy[offered] - old.choices.log_policy[offered]
        most = max(most, float(np.abs(change).max(initial=0.0)))
    return most


# second derivatives


def difference_hessian(point: Evaluation) -> Floats:
    """(K, K): the Hessian by central differences of the analytic gradient, made symmetric; each step moves log-odds by
    about `STEP`. Raises where the objective has no value near by."""
    units = units_of(point)
    H = np.array([_slope_along(point, e) for e in np.diag(1.0 / units)]) * units[:, None]
    return 0.5 * (H + H.T)


def _slope_along(point: Evaluation, direction: Floats) -> Floats:
    """H d by a central difference."""
    up, down = (point.objective.at(point.theta + h * direction) for h in (STEP, -STEP))
    for trial in (up, down):
        if trial.problem is not None:
            raise ValueDoesNotExist(str(trial.problem))
    return (up.gradient - down.gradient) / (2.0 * STEP)


class Curvature:
    """Eigenvalues of the scaled curvature −H; the trust-region step for any radius is then a one-dimensional search.

    Parameters are scaled to unit curvature, but not below `floor` of what they can do to log-odds: far out, where
    choices are all but certain, curvature says nothing about how far to go. Where −H is indefinite (NFXP far from its
    maximum) the information takes its place: always positive, and equal to −H on average over data from the model.
    `ascent` is then the direction in which the objective bends upwards most, in θ; else None.
    """

    def __init__(self, point: Evaluation, floor: float = 0.05) -> None:
        blind = (point.spread == 0.0) & (point.objective.l2 == 0.0)
        self._decompose(np.where(blind[:, None] | blind, 0.0, -point.hessian), floor * point.spread)
        self.ascent = self.vectors[:, 0] / self.scale if self.values.min(initial=0.0) < -UPWARDS[0] else None
        if self.values.min(initial=0.0) < -1e-8 and floor > 0.0:
            expected = point.information + point.objective.l2 * np.eye(blind.size)
            self._decompose(np.where(blind[:, None] | blind, 0.0, expected), floor * point.spread)
        self.slope = self.vectors.T @ (np.where(blind, 0.0, point.gradient) / self.scale)
        self.dead = (np.abs(self.values) < 1e-12) & (np.abs(self.slope) <= 1e-12 * np.abs(self.slope).max(initial=0.0))

    def _decompose(self, curvature: Floats, least: Floats) -> None:
        scale = np.sqrt(np.maximum(np.abs(np.diag(curvature)), least**2))
        self.scale = np.where(scale > 0.0, scale, 1.0)
        scaled = curvature / np.outer(self.scale, self.scale)
        self.values, self.vectors = eigen(scaled)

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


def eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of a symmetric matrix; a `ValueDoesNotExist` where it has none."""
    found = symmetric_eigen(matrix)
    if found is None:
        raise ValueDoesNotExist("second derivatives of the objective are not finite at these parameters.")
    return found


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


# ways up from a stationary point


def way_up(point: Evaluation) -> Evaluation | None:
    """A higher point near a stationary one that is not a maximum; None where there is none, or none was found.

    The direction is that in which the objective bends upwards most: exact where there is a Hessian, from differences of
    gradients else, among a few directions where there are many parameters.
    """
    direction = None if is_concave(point.objective) else _upward(point)
    if direction is None:
        return None
    trials = (point.objective.at(point.theta + sign * t * direction) for t in LEAVES for sign in (1.0, -1.0))
    best = max(trials, key=lambda trial: trial.value)
    noise = 1e3 * EPS * max(1.0, abs(point.value))
    return best if best.value > point.value + noise else None


def _upward(point: Evaluation) -> Floats | None:
    """A direction in which the objective bends upwards, of about one in log-odds."""
    units = units_of(point)
    if can_use_hessian(point.objective):
        direction = Curvature(point).ascent
    else:
        direction = _steepest_bend(point, units)
    return None if direction is None else direction / np.linalg.norm(direction * units)


def _steepest_bend(point: Evaluation, units: Floats) -> Floats | None:
    """The same by Lanczos's method on differences of gradients, from a random direction."""
    K = point.theta.size
    basis, product = np.zeros((0, K)), np.zeros((0, K))
    v = np.random.default_rng(0).normal(size=K)
    while len(basis) < min(K, DIRECTIONS) and np.linalg.norm(v) > 1e-8:
        v = v / np.linalg.norm(v)
        try:
            slope = _slope_along(point, v / units) / units
        except ValueDoesNotExist:
            return None
        basis, product = np.vstack([basis, v]), np.vstack([product, slope])
        v = slope - basis.T @ (basis @ slope)
        v -= basis.T @ (basis @ v)
    small = basis @ product.T
    values, vectors = eigen(small)
    return (basis.T @ vectors[:, -1]) / units if values[-1] > UPWARDS[1] else None
