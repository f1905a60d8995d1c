"""Whether NPL's updates ended as a saved fit says: π̃ is updated again from the estimate, and what moves is compared
with what the file claims. Only what is plainly otherwise is refused, since the moves of the last updates are not kept.
Complaints are plain `ValueError`s; `loading.py` says whose file it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed.curvature import can_use_hessian
from revealed.errors import RevealedError
from revealed.estimation import CIRCLE, HARDLY, SETTLED, Run
from revealed.estimators import most_updates
from revealed.fit import AnyFit, Fit
from revealed.goal_fit import GoalFit
from revealed.mdp import Floats
from revealed.objective import Evaluation

PLAINLY = 5.0  # times a tolerance: what is beyond is not the rounding or the curvature of another update
ROUNDED = 1e-7  # change of a choice probability that rounding may have made
LOOSELY = 1e-2  # change of a choice probability by which π̃ may still move when the estimates hardly do
CIRCLING, AT_REST = 1e-6, 0.1  # least move of a circle; share of a move to which those of a circle do not fall
AS_REQUESTED = "as requested"  # what the status of a fit says that was asked for a number of updates


def require_updates(fit: AnyFit, run: Run, point: Evaluation, pi_tilde: Any, ended: bool) -> None:
    """π̃ had settled, circled or neither, as the status says; `ended` where the last search plainly came to its end."""
    asked = was_asked(fit)
    _require_number(fit, asked)
    if fit.settled:
        return _require_settled(fit, run, point, asked)
    if fit.status.interrupted or not ended:
        return None
    moved = last_move(fit, run, point, pi_tilde)
    if fit.status.code == "iteration_limit" and asked:
        raise ValueError("its status is iteration_limit, but its search has ended at a maximum")
    if moved is not None and moved <= SETTLED / PLAINLY:
        raise ValueError(f"its π̃ is marked as not settled, but moves by {moved:.3g} only")
    if fit.status.code == "cycling":
        return _require_circle(fit, run, point, moved)
    if fit.status.code == "iteration_limit" and fit.updates > 2 and _steps_left(run, point) < HARDLY / PLAINLY:
        raise ValueError("its status is iteration_limit, but its updates have settled")
    return None


def was_asked(fit: AnyFit) -> bool:
    """Whether the user chose the number of updates; without an estimator only the status tells."""
    return AS_REQUESTED in fit.status.message if fit.estimator is None else fit.estimator.updates is not None


def last_move(fit: AnyFit, run: Run, point: Evaluation, pi_tilde: Any) -> float | None:
    """How far the last update moved π̃; None where π̃ is not kept."""
    if isinstance(fit, Fit):
        return float(np.abs(fit.policy - fit.pi_tilde).max(initial=0.0))
    if fit.settled:
        return None
    return run._distance(pi_tilde, run.improved(point)[0])


def _require_number(fit: AnyFit, asked: bool) -> None:
    """Updates that neither settle nor circle go on to the number that was asked for, or to the default one."""
    code, settled = fit.status.code, fit.settled
    most = most_updates(fit.reward_model, getattr(fit.estimator, "updates", fit.updates if asked else None))
    if fit.updates > most:
        raise ValueError(f"it has {fit.updates} updates, of at most {most}")
    if code == "iteration_limit" and settled:
        raise ValueError("its status is iteration_limit, but its π̃ is marked as settled")
    if code in ("converged", "unidentified") and not settled and not asked:
        raise ValueError(f"its status is {code}, but its π̃ has not settled")
    stopped = code in ("iteration_limit", "converged", "unidentified") and not settled and not fit.status.interrupted
    if stopped and fit.updates != most:
        raise ValueError(f"its status is {code} without settling, but it made {fit.updates} of {most} updates")


def _require_settled(fit: AnyFit, run: Run, point: Evaluation, asked: bool) -> None:
    """π̃ hardly moves or, unless a number of updates was asked for, the estimates hardly do."""
    if fit.status.code == "cycling":
        raise ValueError("its status is cycling, but its updates do not cycle")
    if isinstance(fit, GoalFit):  # whose π̃ is not kept: its likelihood was looked at
        return
    moved = last_move(fit, run, point, None) or 0.0
    if moved <= SETTLED + ROUNDED:
        return
    if asked or moved > LOOSELY or _steps_left(run, point) > PLAINLY * HARDLY:
        raise ValueError(f"its π̃ is marked as settled, but moves by {moved:.3g}")


def _require_circle(fit: AnyFit, run: Run, point: Evaluation, moved: float | None) -> None:
    """π̃ does not come to rest within the updates over which a circle is told."""
    moves = () if moved is None or moved < CIRCLING / PLAINLY else _more(run, point, CIRCLE - 1)[1]
    if fit.updates < CIRCLE or moved is None or (len(moves) == CIRCLE - 1 and moves[-1] <= AT_REST * moved):
        raise ValueError("its status is cycling, but its updates do not cycle")


def _steps_left(run: Run, point: Evaluation) -> float:
    """How far the estimates are from where updates lead, in standard errors; NaN where that cannot be told."""
    if not can_use_hessian(point.objective):
        return np.nan
    steps = _more(run, point, 2)[0]
    if len(steps) < 2:
        return np.nan
    information = point.information * run.demos.counts.sum()
    first, second = (float(np.sqrt(max(d @ information @ d, 0.0))) for d in steps)
    rate = second / first if first > 0.0 else 0.0
    return first / (1.0 - rate) if rate < 1.0 else np.nan


def _more(run: Run, point: Evaluation, n: int) -> tuple[list[Floats], list[float]]:
    """Steps of θ and moves of π̃ in `n` more updates; fewer where a search does not come to its end."""
    run.rehearse()
    theta, (policy, log_policy) = point.theta, run.improved(point)
    steps: list[Floats] = []
    moves: list[float] = []
    for _ in range(n):
        try:
            found = run.maximise(run.given(policy, log_policy), theta)
            after, log_policy = run.improved(found.best)
        except RevealedError:
            break
        if not found.reached:
            break
        steps.append(found.best.theta - theta)
        moves.append(run._distance(policy, after))
        theta, policy = found.best.theta, after
    return steps, moves
