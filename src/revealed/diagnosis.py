"""What a data set can tell: directions that choices cannot see (theory I1), and likelihoods without a maximum (I2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, Ints
from revealed.curvature import MOST_DIFFERENCED, Curvature, can_use_hessian, difference_hessian, eigen, shift, units_of
from revealed.labels import in_series
from revealed.logit_rows import widest_gap
from revealed.mdp import Floats
from revealed.objective import MOST_FEATURES, Evaluation, Objective
from revealed.optimize import Search
from revealed.rewards.base import is_linear
from revealed.voices import words

NULL_EIGENVALUE = 1e-10  # of the information, scaled to unit diagonal; collinear features give some 1e-16
NULL_COLUMN = 1e-9  # standard deviation of ∂Q/∂θ_k across actions, relative to its size
RUN_AWAY = 15.0  # log-odds: odds of three million to one
CLEAR, MOST_NAMED = 0.1, 3  # share of the largest move from which a weight counts as run away; named at most
NOTICED = 0.1  # log-odds: a step that is neither rounding nor far
TELLING = 1e-6  # share of the most that an observed state tells about a direction, from which it counts
STAND_OUT = 16  # weights among which run-away ones are looked for, where there are very many


CODES = ("converged", "iteration_limit", "separated", "unidentified", "inner_solve_failed", "cycling")


@dataclass(frozen=True)
class Status:
    """How a fit ended. `code` is one of converged, iteration_limit, separated, unidentified, inner_solve_failed,
    cycling; `message` says what to do; `notes` are further facts about the fit; `interrupted` is True after Ctrl-C.
    """

    code: str
    message: str
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", words(self.message))
        object.__setattr__(self, "notes", tuple(map(words, self.notes)))

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + "".join(f" Note: {note}" for note in self.notes)


def nobody_chose(point: Evaluation) -> bool:
    """Whether every state that counts offers a single action, so that what was done tells nothing of the reward."""
    return not any(bool(np.any(part.choices.feasible.sum(axis=1) > 1)) for part in point.parts)


def invisible_directions(point: Evaluation) -> Floats:
    """Independent rows (n, K) along which the observed choices do not change; n = 0 where θ is identified.

    Read off the information Σρ(s)Cov_s(∂Q/∂θ), scaled to unit diagonal so that units of features do not matter. Rows
    are shifts of θ; in the units of the features (`point.size`) their entries compare.
    """
    return null_directions(point.information, point.size)


def with_features(point: Evaluation) -> Evaluation:
    """The same point with second derivatives: a weight per state is a feature per state, where there are few enough."""
    K = point.theta.size
    if point.objective.has_hessian or not is_linear(point.objective.reward) or K > MOST_FEATURES:
        return point
    return Objective(_Along(point, np.arange(K)), point.objective.cases).at(np.zeros(K))


def null_directions(information: Floats, size: Floats) -> Floats:
    """The same of any information matrix (K, K) whose parameters have these sizes (K,)."""
    K = information.shape[0]
    spread = np.sqrt(np.maximum(np.diag(information), 0.0))
    constant = spread <= NULL_COLUMN * size
    live = np.flatnonzero(~constant)
    alone = np.eye(K)[constant] / np.where(size > 0.0, size, 1.0)
    scaled = information[np.ix_(live, live)] / np.outer(spread[live], spread[live])
    values, vectors = eigen(scaled)
    null = np.flatnonzero(values < NULL_EIGENVALUE * live.size)
    together = np.zeros((null.size, K))
    together[:, live] = (vectors[:, null] / spread[live, None]).T
    return np.vstack([alone, together])


def parts_along(theta: Floats, directions: Floats) -> Floats:
    """(n, K): what θ has of each direction, so that θ less their sum is as small as can be."""
    if not len(directions):
        return np.zeros((0, theta.size))
    rows = directions / np.abs(directions).max(axis=1, keepdims=True)  # first, since squares may overflow
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.linalg.lstsq(rows.T, theta, rcond=None)[0][:, None] * rows


def without(theta: Floats, directions: Floats) -> Floats:
    """θ with its part along the directions taken off: the minimum-norm choice among equals."""
    return theta - parts_along(theta, directions).sum(axis=0)


def describe_directions(directions: Floats, names: Iterable[str], size: Floats | None = None) -> str:
    """In words: "a + b − 2·c" for each direction. Features that do not take part, judged by `size` (K,), the size of
    each, are left out."""
    names = list(names)
    size = np.ones(len(names)) if size is None else np.where(size > 0.0, size, 1.0)
    return in_series([_in_words(row, size, names) for row in _reduced(directions * size)])


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


def _in_words(row: Floats, size: Floats, names: list[str]) -> str:
    """A row in units of the features, as weights of the parameters."""
    top = _largest(row)
    weights, part = row / size / (row[top] / size[top]), np.flatnonzero(np.abs(row) > 1e-6 * abs(row[top]))
    weights, parts = weights * np.sign(weights[part[0]]), []
    for k in part:
        weight = f"{abs(weights[k]):.3g}·" if abs(abs(weights[k]) - 1.0) > 1e-6 else ""
        parts.append(("− " if weights[k] < 0 else "+ " if parts else "") + f"{weight}`{names[k]}`")
    return " ".join(parts)


def unseen_in_words(found: Search) -> list[str]:
    """What choices cannot see of a reward without features, as notes: directions where there are few parameters."""
    point = found.best
    K, tabular = point.theta.size, is_linear(point.objective.reward)
    if found.reached and tabular and K <= MOST_FEATURES:
        spot = with_features(point)
        return _as_note(invisible_directions(spot), point, spot.size)
    if found.reached and not tabular and K <= MOST_DIFFERENCED:
        units = units_of(point)
        return _as_note(null_directions(-difference_hessian(point), units), point, units)
    return [UNSEEN.format(which="the part of this reward that does not affect choices")]


def _as_note(directions: Floats, point: Evaluation, size: Floats) -> list[str]:
    n = len(directions)
    if n == 0:
        return []
    if n == 1 and np.allclose(directions[0], directions[0, 0], rtol=1e-6, atol=0.0):
        return [UNSEEN.format(which="choices do not change if every weight moves by the same amount; this constant")]
    words = describe_directions(directions[:MOST_NAMED], point.objective.reward.names, size)
    if n > MOST_NAMED or len(words) > 300:
        words = f"{n} directions of the {point.theta.size} weights"
    return [UNSEEN.format(which=f"choices do not identify {words}; this part")]


UNSEEN = "{which} keeps its starting value."


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
    return step if _gap(point, step, _telling_rows(point, step)) >= 1e-2 else None


def _telling_rows(point: Evaluation, direction: Floats) -> list[Bools]:
    """(R,) for each part: the observed states that tell anything about a direction. Where a feature is huge in one
    state, say, choices there are sure at once, and how far their log-odds move says nothing about a maximum."""
    told = []
    for part in point.parts:
        moved, policy = part.slopes @ direction, np.exp(part.choices.log_policy)
        with np.errstate(over="ignore", invalid="ignore"):  # a step without end
            mean = (policy * moved).sum(axis=1, keepdims=True)
            told.append(part.choices.rho.sum(axis=1) * (policy * (moved - mean) ** 2).sum(axis=1))
    most = max(float(row.max(initial=0.0)) for row in told)
    return [row >= TELLING * most for row in told]


def _faded(best: Evaluation) -> list[Floats]:
    """θ's part along directions in which choices are so sure that they no longer change, although they could."""
    far = parts_along(best.theta, invisible_directions(best))
    return [direction for direction in far if _gap(best, direction) >= RUN_AWAY]


def _gap(point: Evaluation, direction: Floats, rows: list[Bools] | None = None) -> float:
    """The most that a step moves the log-odds of two actions in an observed state, or in one of these rows."""
    picked = [np.ones(len(part.choices.rho), dtype=bool) for part in point.parts] if rows is None else rows
    moved = ((part.slopes @ direction, part.choices.feasible, of) for part, of in zip(point.parts, picked, strict=True))
    return max(float(widest_gap(F[of][:, :, None], offered[of])[0]) if of.any() else 0.0 for F, offered, of in moved)


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
    choices have moved by 15 and nothing more is gained. At a maximum, however flat or far, some observed choice becomes
    a surprise on the way and the log likelihood falls by several nats; where it loses less than one observation's
    weight, there is no maximum. (With a penalty there always is one.)
    """
    weights = np.concatenate([part.choices.rho[part.choices.rho > 0.0] for part in best.parts])
    allowance = min(1.0, float(weights.min())) / objective.total
    tried = (d for d in directions if np.linalg.norm(d) > 0.0)
    return next((d for d in tried if _runs_away(objective, best, d, allowance)), None)


def still_moving(point: Evaluation) -> bool:
    """Whether Newton's next step would move log-odds by a hundredth or more: the penalty has not stopped it yet. True
    where there are no second derivatives to tell."""
    return not can_use_hessian(point.objective) or _telling_step(point) is not None


def still_rises(point: Evaluation, direction: Floats) -> bool:
    """Whether the objective, its penalty included, still rises along a direction by which weights run away."""
    length = 1e-6
    while length < 1e9:
        trial = point.objective.at(point.theta + length * direction)
        if shift(point, trial) >= NOTICED:
            return trial.value > point.value
        length *= 2.0
    return False


def runaways(best: Evaluation, direction: Floats) -> tuple[str, ...]:
    """The weights that move choices most along a direction, where they are few; none where it is not clear."""
    if not can_use_hessian(best.objective):
        return ()
    gaps = [widest_gap(part.slopes * direction, part.choices.feasible) for part in best.parts]
    moved = np.max(gaps, axis=0)
    clear = np.flatnonzero(moved >= CLEAR * moved.max())
    return tuple(str(best.objective.reward.names[int(k)]) for k in clear) if clear.size <= MOST_NAMED else ()


def _runs_away(objective: Objective, best: Evaluation, direction: Floats, allowance: float) -> bool:
    length, before, peak, flat = 1.0, best.value, best.value, 0
    rows = _telling_rows(best, direction) if can_use_hessian(best.objective) else None
    while length < 1e9:
        trial = objective.at(best.theta + length * direction)
        if not trial.value > peak - allowance:  # of a search that was stopped early, the best may lie on the way
            return False
        far = shift(best, trial, rows) >= RUN_AWAY
        if far and trial.value <= before - 0.25 * allowance:
            return False  # a maximum lies behind, not ahead
        flat = flat + 1 if far and trial.value <= before + allowance else 0  # else one may lie far ahead
        if flat == 2:  # twice, since between two points alike there may be a maximum
            return True
        length, before, peak = 2.0 * length, trial.value, max(peak, trial.value)
    return False  # nothing moves at all: a direction that choices cannot see, not one that runs away
