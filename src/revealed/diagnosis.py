"""What a data set can tell: directions that choices cannot see (theory I1), and likelihoods without a maximum (I2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Ints
from revealed.logit_rows import widest_gap
from revealed.mdp import Floats
from revealed.objective import Evaluation, Objective
from revealed.optimize import Curvature, can_use_hessian

NULL_EIGENVALUE = 1e-10  # of the information, scaled to unit diagonal; collinear features give some 1e-16
NULL_COLUMN = 1e-9  # standard deviation of ∂Q/∂θ_k across actions, relative to its size
RUN_AWAY = 15.0  # log-odds: odds of three million to one
CLEAR, MOST_NAMED = 0.1, 3  # share of the largest move from which a weight counts as run away; named at most
STAND_OUT = 16  # weights among which run-away ones are looked for, where there are very many


CODES = ("converged", "iteration_limit", "separated", "unidentified", "inner_solve_failed", "cycling")


@dataclass(frozen=True)
class Status:
    """How a fit ended. `code` is one of converged, iteration_limit, separated, unidentified, inner_solve_failed,
    cycling; `message` says what to do; `notes` are facts beside a good end; `interrupted` tells of Ctrl-C.
    """

    code: str
    message: str
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + "".join(f" Note: {note}" for note in self.notes)


def nobody_chose(point: Evaluation) -> bool:
    """Whether every state that counts offers a single action, so that what was done tells nothing of the reward."""
    return not any(bool(np.any(part.choices.feasible.sum(axis=1) > 1)) for part in point.parts)


def invisible_directions(point: Evaluation) -> Floats:
    """Orthonormal rows (n, K) along which the observed choices do not change; n = 0 where θ is identified.

    Read off the information Σρ(s)Cov_s(∂Q/∂θ), scaled to unit diagonal so that units of features do not matter.
    """
    information = point.information
    K = information.shape[0]
    spread = np.sqrt(np.maximum(np.diag(information), 0.0))
    constant = spread <= NULL_COLUMN * point.size
    live = np.flatnonzero(~constant)
    rows = list(np.eye(K)[constant])
    if live.size:
        scaled = information[np.ix_(live, live)] / np.outer(spread[live], spread[live])
        values, vectors = np.linalg.eigh(scaled)
        for vector in vectors[:, values < NULL_EIGENVALUE * live.size].T:
            direction = np.zeros(K)
            direction[live] = vector / spread[live]
            rows.append(direction / np.linalg.norm(direction))
    if not rows:
        return np.zeros((0, K))
    return np.linalg.svd(np.array(rows), full_matrices=False)[2]


def without(theta: Floats, directions: Floats) -> Floats:
    """θ with its part along the (orthonormal) directions taken off: the minimum-norm choice among equals."""
    return theta - directions.T @ (directions @ theta)


def describe_directions(directions: Floats, names: Iterable[str]) -> str:
    """In words: "a + b − 2·c" for each direction, features that do not take part left out."""
    names = list(names)
    return "; ".join(_in_words(row, names) for row in _reduced(directions))


def _reduced(rows: Floats) -> Floats:
    """The same span in reduced echelon form: as many zeros as can be had, which reads best."""
    rows = rows.copy()
    for i in range(len(rows)):
        pivot = _largest(rows[i])
        rows[i] /= rows[i, pivot]
        for j in range(len(rows)):
            if j != i:
                rows[j] -= rows[j, pivot] * rows[i]
    return rows


def _largest(row: Floats) -> int:
    """The first of the largest entries: which of equal ones rounding makes larger must not show."""
    size = np.abs(row)
    return int(np.argmax(size >= (1.0 - 1e-9) * size.max()))


def _in_words(row: Floats, names: list[str]) -> str:
    row = row / row[_largest(row)]
    parts = []
    for k in np.flatnonzero(np.abs(row) > 1e-6):
        weight = f"{abs(row[k]):.3g}·" if abs(abs(row[k]) - 1.0) > 1e-6 else ""
        parts.append(("− " if row[k] < 0 else "+ " if parts else "") + f"{weight}`{names[k]}`")
    return " ".join(parts)


def suspects(best: Evaluation, travel: list[Floats]) -> list[Floats]:
    """Directions along which weights may be running away; none where the search has plainly come to rest.

    Where weights run away, slope and curvature fade together and Newton's next step moves log-odds by about one, for
    ever; at a maximum it moves nothing. Where they have gone so far that nothing is left of either, they are suspects
    themselves. Where there are too many weights for a Hessian, the step is taken among those that stand out and their
    neighbours; the directions in which the search went are suspects, too.
    """
    if not getattr(best.objective.reward, "linear", False):
        return travel
    if can_use_hessian(best.objective):
        step = _telling_step(best)
        return _faded(best) if step is None else [step, *travel]
    few = _few_that_stand_out(best)
    step = _telling_step(Objective(_Along(best, few), best.objective.cases).at(np.zeros(few.size)))
    if step is None:
        return travel
    direction = np.zeros(best.theta.size)
    direction[few] = step
    return [direction, *travel]


def _few_that_stand_out(best: Evaluation) -> Ints:
    """The weights farthest from the median; of a weight per state also those of adjacent states, which give way."""
    out = np.abs(best.theta - np.median(best.theta))
    few = np.argsort(-out)[:STAND_OUT].astype(np.intp)
    model = best.objective.cases[0].mdp.base or best.objective.cases[0].mdp
    if getattr(best.objective.reward, "tabular", False) and best.theta.size == model.n_states:
        graph = model.transitions.mix(model.feasible.astype(np.float64))
        near = np.setdiff1d(sp.csr_array(graph + graph.T)[few].indices, few)
        few = np.concatenate([few, near[: 8 * STAND_OUT]])
    return few


def _telling_step(point: Evaluation) -> Floats | None:
    """Newton's next step, if it would move the log-odds of any choice by a hundredth or more."""
    step = Curvature(point, floor=0.0).step(np.inf)[0]
    return step if _gap(point, step) >= 1e-2 else None


def _faded(best: Evaluation) -> list[Floats]:
    """θ's part along directions in which choices are so sure that they no longer change, although they could."""
    far = [(row @ best.theta) * row for row in invisible_directions(best)]
    return [direction for direction in far if _gap(best, direction) >= RUN_AWAY]


def _gap(point: Evaluation, direction: Floats) -> float:
    """The most that a step moves the log-odds of two actions in an observed state."""
    gaps = (widest_gap((part.slopes @ direction)[:, :, None], part.choices.feasible) for part in point.parts)
    return max(float(gap[0]) for gap in gaps)


class _Along:
    """The same reward as a function of a few of its weights, the others held where the search ended."""

    linear = True

    def __init__(self, best: Evaluation, index: Ints) -> None:
        self._reward, self._theta, self._index = best.objective.reward, best.theta, index
        self.n_params, self.names = index.size, tuple(map(str, index))

    def init(self, seed: int | None = None) -> Floats:
        return np.zeros(self.n_params)

    def _at(self, u: Floats) -> Floats:
        theta = self._theta.copy()
        theta[self._index] += u
        return theta

    def value(self, theta: Floats) -> Floats:
        return self._reward.value(self._at(theta))

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        return self._reward.vjp(self._at(theta), cotangent)[self._index]

    def jacobian(self, theta: Floats) -> Any:
        return self._reward.jacobian(self._at(theta))[:, self._index]  # pyright: ignore[reportAttributeAccessIssue]


def way_out(objective: Objective, best: Evaluation, directions: Iterable[Floats]) -> Floats | None:
    """The first of the directions along which the likelihood keeps rising for ever (theory I2); None where none is.

    From the end of the search go on along each direction, doubling the distance, until the log-odds of observed
    choices have moved by 15. At a maximum, however flat, some observed choice becomes a surprise on the way and the
    log likelihood falls by several nats; where it loses less than one observation's weight, there is no maximum. (With
    a penalty there always is one.)
    """
    weights = np.concatenate([part.choices.rho[part.choices.rho > 0.0] for part in best.parts])
    allowance = min(1.0, float(weights.min())) / objective.total
    tried = (d for d in directions if np.linalg.norm(d) > 0.0)
    return next((d for d in tried if _runs_away(objective, best, d, allowance)), None)


def runaways(best: Evaluation, direction: Floats) -> tuple[str, ...]:
    """The weights that move choices most along a direction, where they are few; none where it is not clear."""
    if not can_use_hessian(best.objective):
        return ()
    gaps = [widest_gap(part.slopes * direction, part.choices.feasible) for part in best.parts]
    moved = np.max(gaps, axis=0)
    clear = np.flatnonzero(moved >= CLEAR * moved.max())
    return tuple(str(best.objective.reward.names[int(k)]) for k in clear) if clear.size <= MOST_NAMED else ()


def _runs_away(objective: Objective, best: Evaluation, direction: Floats, allowance: float) -> bool:
    length, before, peak = 1.0, best.value, best.value
    while length < 1e9:
        trial = objective.at(best.theta + length * direction)
        if not trial.value > peak - allowance:  # of a search that was stopped early, the best may lie on the way
            return False
        if _shift(best, trial) >= RUN_AWAY:
            return trial.value > before - 0.25 * allowance  # else a maximum lies behind, not ahead
        length, before, peak = 2.0 * length, trial.value, max(peak, trial.value)
    return False  # nothing moves at all: a direction that choices cannot see, not one that runs away


def _shift(best: Evaluation, trial: Evaluation) -> float:
    """The largest change of a log choice probability in an observed state."""
    most = 0.0
    for old, new in zip(best.parts, trial.parts, strict=True):
        offered = old.choices.feasible
        shift = new.choices.log_policy[offered] - old.choices.log_policy[offered]
        most = max(most, float(np.abs(shift).max(initial=0.0)))
    return most
