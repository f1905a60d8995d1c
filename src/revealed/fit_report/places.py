"""Where states lie on a map: by coordinates given, by bins of two columns, or by labels that are pairs of numbers.

On a horizon, states have the places of their base states (what is shown of them is then the first period), or lie by
period and number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from revealed.checks import Floats, Ints, as_number, require_floats
from revealed.errors import InvalidInput
from revealed.positions import in_order

HALF = 0.5  # of the cells of a grid hold a state, at least: fewer are points


@dataclass(frozen=True, eq=False)
class Places:
    """`xy` (n, 2) of the states `index` (n,), what x and y are called, and whether they are measured alike.

    `words` say what of each state is shown where that needs saying.
    """

    xy: Floats = field(repr=False)
    index: Ints = field(repr=False)
    names: tuple[str, str] = ("x", "y")
    alike: bool = False
    words: str = ""

    def grid(self) -> tuple[Floats, Floats, Ints] | None:
        """The distinct x and y and the cell x·len(y) + y of each state, where states fill most of such a grid."""
        (xs, i), (ys, j) = (np.unique(column, return_inverse=True) for column in self.xy.T)
        cell = i * ys.size + j
        if min(xs.size, ys.size) < 2 or np.unique(cell).size < cell.size or cell.size < HALF * xs.size * ys.size:
            return None
        return xs, ys, cell.astype(np.intp)


def find_places(fit: Any, coordinates: Any = None) -> Places | None:
    """The states that have a place; None where the fit knows of none."""
    mdp = fit.mdp
    model = mdp.base or mdp
    if coordinates is not None:
        columns = [str(name) for name in getattr(coordinates, "columns", ())]
        placed = in_order(model, coordinates, "coordinates", ("state",))
        return _of_first_period(mdp, _given(placed, model.n_states, columns))
    labels = model.state_labels or (fit.demonstrations.state_labels if mdp.base is None else None)
    found = _of_bins(getattr(fit.demonstrations, "bins", None), labels, model.n_states) or _of_labels(labels)
    if found is not None:
        return _of_first_period(mdp, found)
    return None if mdp.base is None else _by_period(mdp)


def _given(coordinates: Any, n_states: int, columns: Sequence[str] = ()) -> Places:
    """An (S, 2) array or frame; a state whose row is NaN has no place, such as one that stands for "ended"."""
    expected = f"an array of shape ({n_states}, 2), a row per state"
    xy = require_floats("coordinates", coordinates, expected)
    if xy.shape != (n_states, 2):
        raise InvalidInput("coordinates", expected, f"shape {xy.shape}")
    known = np.flatnonzero(np.isfinite(xy).all(axis=1)).astype(np.intp)
    if known.size == 0:
        raise InvalidInput("coordinates", "a place for at least one state", "none that is finite")
    names = (columns[0], columns[1]) if len(columns) == 2 else ("x", "y")
    return Places(xy[known], known, names, _measured_alike(xy[known]))


def _of_bins(bins: Any, labels: Any, n_states: int) -> Places | None:
    """Bins of two columns."""
    centres = _centres(bins, labels, n_states, 2)
    if centres is None:
        return None
    return Places(centres, np.arange(n_states, dtype=np.intp), (str(bins.columns[0]), str(bins.columns[1])))


def _centres(bins: Any, labels: Any, n_states: int, d: int) -> Floats | None:
    """(S, d): the centres of bins of d columns, in the order in which the model has their labels."""
    if bins is None or len(bins.columns) != d or bins.n_states != n_states:
        return None
    centres = np.asarray(bins.features, dtype=np.float64)
    if labels is not None and tuple(map(str, labels)) != tuple(map(str, bins.labels)):
        place = {str(label): k for k, label in enumerate(bins.labels)}
        if not all(str(label) in place for label in labels):
            return None
        centres = centres[[place[str(label)] for label in labels]]
    return centres


def along_a_column(fit: Any) -> tuple[str, Floats] | None:
    """The column whose bins the states are, and their centres (S,); None where they are something else."""
    mdp, bins = fit.mdp, fit.demonstrations.bins
    if mdp.base is not None:
        return None
    centres = _centres(bins, mdp.state_labels or fit.demonstrations.state_labels, mdp.n_states, 1)
    return None if centres is None else (str(bins.columns[0]), centres[:, 0])


def _of_labels(labels: Any) -> Places | None:
    """Labels such as (3, 0.5); all of them, or there is no map."""
    if labels is None or not all(isinstance(label, tuple) and len(label) == 2 for label in labels):
        return None
    xy = np.array([[as_number(part) for part in label] for label in labels])
    if not np.isfinite(xy).all():
        return None
    return Places(xy, np.arange(len(labels), dtype=np.intp), ("first part of the label", "second"), _measured_alike(xy))


def _of_first_period(mdp: Any, places: Places) -> Places:
    """Base states have the numbers of the first layer."""
    return places if mdp.base is None else replace(places, words="in the first period")


def _by_period(mdp: Any) -> Places | None:
    """Period against number of the base state, but for the last layer, in which nobody acts."""
    S, horizon = mdp.base.n_states, int(mdp.horizon)
    if min(S, horizon) < 2:
        return None
    index = np.arange(S * horizon, dtype=np.intp)
    return Places(np.column_stack(np.divmod(index, S)).astype(np.float64), index, ("period", "number of the state"))


def _measured_alike(xy: Floats) -> bool:
    """Whether a unit of x and one of y may be drawn alike: as far apart in both directions, give or take."""
    width, height = np.ptp(xy, axis=0)
    return bool(min(width, height) > 0.0 and 0.25 <= width / height <= 4.0)
