"""One weight per state: one-hot features that are never built."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from revealed.checks import require_count
from revealed.errors import InvalidReward
from revealed.mdp import Floats
from revealed.rewards.base import sum_actions


class TabularReward:
    """r(s, a) = θ(s). Choices see only differences, so most of it is found in the minimum-norm sense (theory I1)."""

    linear = True
    tabular = True

    def __init__(self, n_states: int) -> None:
        require_count("n_states", n_states, error=InvalidReward)
        self.n_states = int(n_states)

    @property
    def n_params(self) -> int:
        return self.n_states

    @property
    def names(self) -> Sequence[str]:
        return tuple(f"state{s}" for s in range(self.n_states))

    def init(self, seed: int | None = None) -> Floats:
        return np.zeros(self.n_states)

    def value(self, theta: Floats) -> Floats:
        return theta[:, None]

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        return sum_actions(cotangent)

    def jacobian(self, theta: Floats) -> sp.csr_array:
        return sp.csr_array(sp.eye_array(self.n_states))

    def __repr__(self) -> str:
        return f"TabularReward({self.n_states} states)"
