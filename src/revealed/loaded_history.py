"""Whether the history of a saved fit can be that of a search, and ends where the fit does. Earlier rows follow from
nothing that is kept: of them only the order is asked. Complaints are plain `ValueError`s.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from revealed.checks import is_index
from revealed.fit import AnyFit

COLUMNS = {"update", "objective", "gradient_norm", "step", "seconds", "linear_solves"}
SAME = 1e-6  # relative difference that is rounding, on any machine
LOOSEST = 1e-3  # of the tolerances that optimisers have by default
POLISHED = 10.0  # log-odds: Newton's last step, after the last row, gains less than this times the gradient


def require_history(fit: AnyFit) -> None:
    """A row for each iteration and each start of a search, in order."""
    if not isinstance(fit.rows, list) or not all(isinstance(row, dict) and set(row) == COLUMNS for row in fit.rows):
        raise ValueError("the history is not a table of iterations")
    for row in fit.rows:
        _require_numbers(row)
    if not (np.isfinite(fit.seconds) and fit.seconds >= 0.0):
        raise ValueError(f"seconds is {fit.seconds!r}")
    starts = len({row["update"] for row in fit.rows})
    if abs(len(fit.rows) - fit.iterations - starts) > fit.status.interrupted:
        raise ValueError(f"the history has {len(fit.rows)} rows, but the fit {fit.iterations} iterations")
    for name in ("update", "seconds", "linear_solves"):
        if any(two[name] < one[name] for one, two in pairwise(fit.rows)):
            raise ValueError(f"{name} decreases in the history")


def _require_numbers(row: dict[str, Any]) -> None:
    whole = ("update", "linear_solves")
    if not all(is_index(row[name]) and row[name] >= 0 for name in whole):
        raise ValueError("the history holds values that are not counts")
    rest = [row[name] for name in COLUMNS.difference(whole)]
    if not all(isinstance(value, float | int) and not isinstance(value, bool) for value in rest):
        raise ValueError("the history holds values that are not numbers")
    if not np.isfinite(rest).all() or min(row["gradient_norm"], row["step"], row["seconds"]) < 0.0:
        raise ValueError("the history holds values that are not numbers")


def require_last(fit: AnyFit) -> None:
    """The last row is the end of the search, but for Newton's last step."""
    if not fit.rows:
        return
    last = fit.rows[-1]
    if last["update"] != fit.updates:
        raise ValueError(f"the history has {last['update']} updates, the fit {fit.updates}")
    if last["seconds"] > fit.seconds:
        raise ValueError("the history takes longer than the fit")
    norm = last["gradient_norm"]
    if fit.status.code in ("converged", "unidentified", "cycling") and norm > max(fit.options["tol"] or 0.0, LOOSEST):
        raise ValueError(f"the history ends at a gradient norm of {norm:.3g}, but its status is {fit.status.code}")
    if not abs(last["objective"] - fit.objective) <= SAME * (1.0 + abs(fit.objective)) + POLISHED * norm:
        raise ValueError(f"the history ends at the objective {last['objective']:.6g}, the fit at {fit.objective:.6g}")
