"""One weight per state: one-hot features that are never built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import require_count
from revealed.errors import InvalidReward
from revealed.gates import require_memory
from revealed.labels import Order, is_derived, sequence_of, spell
from revealed.mdp import Floats
from revealed.naming import Names
from revealed.positions import labelled
from revealed.rewards.base import as_cotangent, as_theta, check_names, sum_actions
from revealed.voices import shown


class TabularReward:
    """r(s, a) = θ(s). Choices see only differences, so most of it is found in the minimum-norm sense (theory I1).

    The weights are called state0, state1, … unless there are `names`; a fit names them by the states' labels.
    """

    linear = True
    tabular = True
    _of_labels = False  # whether the names are the states' own
    _labels: tuple[Any, ...] | None = None  # those of the states, then

    def __init__(self, n_states: int, names: Sequence[str] | None = None) -> None:
        if hasattr(n_states, "n_states"):  # a model, demonstrations
            expected, remedy = "a whole number, the number of states", "Pass its `.n_states`."
            raise InvalidReward("n_states", expected, type(n_states).__name__, remedy=remedy)
        require_count("n_states", n_states, error=InvalidReward)
        require_memory("n_states", n_states, int(n_states), error=InvalidReward)
        self.n_states = int(n_states)
        self._names = None if names is None else check_names(names, self.n_states)

    @property
    def by_label(self) -> bool:
        """Whether a fit names the weights by the labels of the states, so that no order is needed."""
        return self._names is None or self._of_labels

    @property
    def n_params(self) -> int:
        return self.n_states

    @property
    def names(self) -> Sequence[str]:
        return tuple(f"state{s}" for s in range(self.n_states)) if self._names is None else self._names

    def named(self, state_labels: Sequence[Any]) -> TabularReward:
        """The same with the states' labels as names of the weights, unless it has names."""
        labels = _as_labels(state_labels)
        texts = [spell(label) for label in labels]
        fits = self._names is None and len(texts) == self.n_states == len(set(texts))
        if not fits:
            return self
        other = TabularReward(self.n_states, texts)
        other._names = Order(other.names, is_derived(state_labels))
        other._of_labels = True
        other._labels = state_labels if isinstance(state_labels, Order) else tuple(labels)
        return other

    def init(self, seed: int | None = None) -> Floats:
        return np.zeros(self.n_states)

    def value(self, theta: Floats) -> Floats:
        return labelled(as_theta(theta, self)[:, None], Names(self._labels, None))

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        return sum_actions(as_cotangent(cotangent, self.n_states, 1))

    def jacobian(self, theta: Floats) -> sp.csr_array:
        return sp.csr_array(sp.eye_array(self.n_states))

    def __repr__(self) -> str:
        return f"TabularReward({self.n_states} states)"


def _as_labels(given: Any) -> list[Any]:
    found = sequence_of(given)
    if found is None:
        raise InvalidReward("state_labels", "labels that are names or numbers", shown(given))
    return found
