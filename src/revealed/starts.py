"""Where agents start: one rule for every figure that depends on it.

Returns, welfare, visits and value differences are means over a start distribution. It is the one given, else the
model's own (`MDP(initial=...)`), else where the data started, else uniform over the non-terminal states. Results say in
words which of these it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revealed.alignment import align_models
from revealed.checks import Floats
from revealed.mdp import MDP
from revealed.positions import labelled

AS_GIVEN = "as given"
OF_MODEL = "the model's start distribution"
OF_DATA = "where the data started"
UNIFORM = "uniform over the non-terminal states"


@dataclass(frozen=True, eq=False)
class Starts:
    """`weights` (S,) sum to one; `words` say where they come from."""

    weights: Floats = field(repr=False)
    words: str


def starts_of(mdp: MDP, initial: Any = None, demos: Any = None, own: MDP | None = None) -> Starts:
    """Where agents start in `mdp`. `demos` are the data, where there are any, with states of the model `own`: by
    default of `mdp` itself."""
    if initial is not None:
        return Starts(mdp.start(initial), AS_GIVEN)
    if mdp.initial is not None:
        return Starts(mdp.start(), OF_MODEL)
    seen = None if demos is None else _observed(demos, mdp if own is None else own, mdp)
    if seen is not None:
        return Starts(mdp.start(labelled(seen / seen.sum(), mdp)), OF_DATA)
    return Starts(mdp.start(), UNIFORM)


def _observed(demos: Any, own: MDP, mdp: MDP) -> Floats | None:
    """How often the data started in each state of the model; on a horizon that is not the data's own, in the periods in
    which ids entered. None where that is not known, or where some started in a state that the model does not have."""
    starts = np.asarray(demos.starts, dtype=np.float64)
    if starts.sum() == 0.0:
        return None
    known, model = own, mdp
    if own.n_states != mdp.n_states:
        known, model = own.base or own, mdp.base or mdp
        if own.base is not None:
            starts = np.asarray(np.bincount(np.asarray(own.base_state), weights=starts), dtype=np.float64)
        elif getattr(demos, "steps", None) is not None and demos.goals is None:
            starts = demos.starts_by_period()
    places = align_models(model, known).states
    if places is None:
        return None
    met = places >= 0
    layers, n = np.atleast_2d(starts), mdp.n_states // met.size
    if np.delete(layers, places[met], axis=1).any() or layers[max(n - 1, 1) :].any():  # the last layer is the end
        return None
    seen = np.zeros((n, met.size))
    seen[: len(layers)] = np.where(met, layers[:n, places], 0.0)
    return seen.reshape(-1)
