"""Units of a network's inputs: each feature with mean 0 and standard deviation 1 over the states (or pairs), or a word
of warning.

Weights of a network start at random sizes that suit inputs of size 1. Features in other units start it where it is flat
or saturated, and the search ends there: a change of units must not decide that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revealed.checks import require_floats
from revealed.errors import InvalidReward
from revealed.linear_solvers import EPS
from revealed.mdp import Floats
from revealed.voices import either, shown, words

SMALL, LARGE = 1e-3, 1e3  # deviations below, and sizes above, that a network of unit weights hardly handles


@dataclass(frozen=True, eq=False)
class Standard:
    """x ↦ (x − `center`) / `scale`, feature by feature (K,)."""

    center: Floats
    scale: Floats

    @classmethod
    def of(cls, features: Floats) -> Standard:
        """Mean and standard deviation of each column over all other axes, but for rows that are not finite. A constant
        keeps its size as unit: it becomes 0."""
        X = finite_rows(features.reshape(-1, features.shape[-1]))
        first, most = X[0], np.abs(X).max(axis=0)
        span = np.abs(X - first).max(axis=0)  # from the first row: shifted by a large number, squares would drown
        varies = span > 8 * EPS * most
        unit = np.where(varies, span, np.where(most > 0.0, most, 1.0))
        away = (X - first) / unit
        mean = away.mean(axis=0)
        deviation = np.where(varies, np.sqrt(((away - mean) ** 2).mean(axis=0)), 1.0)
        return cls(first + unit * mean, unit * deviation)

    @classmethod
    def given(cls, pair: Any, n_features: int) -> Standard:
        """From a pair (center, scale), as another network has it."""
        expected = f"True, False, or two rows of {n_features} finite numbers"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidReward("standardize", expected, shown(pair))
        center, scale = (require_floats("standardize", part, expected, InvalidReward) for part in pair)
        if any(part.shape != (n_features,) or not np.isfinite(part).all() for part in (center, scale)):
            raise InvalidReward("standardize", expected, shown(pair))
        if not np.all(scale > 0.0):
            at = int(np.flatnonzero(~(scale > 0.0))[0])
            raise InvalidReward("standardize", "scales above zero", f"{scale[at]:g}", f"feature {at}")
        return cls(center, scale)

    def __call__(self, features: Any) -> Any:
        return (features - self.center) / self.scale


def as_columns(x: Floats) -> Floats:
    """(rows, K), K = 1 for what has one axis."""
    return x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1]) if x.ndim > 1 else x.reshape(-1, 1)


def finite_rows(X: Floats) -> Floats:
    """The rows of (rows, K) that are finite, or a row of zeros where none is."""
    finite = np.isfinite(X).all(axis=1)
    if finite.all() and len(X):
        return X
    return X[finite] if finite.any() else np.zeros((1, X.shape[1]))


def unit_notes(arrays: dict[str, Floats]) -> tuple[str, ...]:
    """What to know of features in units far from 1, the first column of them named."""
    for name, array in arrays.items():
        X = finite_rows(as_columns(array))
        most, deviation, range_ = np.abs(X).max(axis=0), X.std(axis=0), np.ptp(X, axis=0)
        still = range_ <= 8 * EPS * most  # a constant may be small
        far = np.flatnonzero((most > LARGE) | (~still & (deviation < SMALL)))
        if far.size:
            k = int(far[0])
            what = f"reaches {most[k]:.3g}" if most[k] > LARGE else f"has standard deviation {deviation[k]:.3g}"
            return (_NOTE.format(name=f"{name}, column {k}," if X.shape[1] > 1 else name, what=what),)
    return ()


STANDARDISED = "inputs standardised: each feature enters with mean 0 and standard deviation 1."
_NOTE = words(
    "the inputs are far from unit scale ({name} {what}), which suits a network's initial weights badly. "
    + either("Pass standardize=True, or scale the features.", "Scale the features.")
)
