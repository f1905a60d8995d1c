"""A case on a device: the model there, the observed rows and the choice of π̃, as `objective.py` asks for it.

`DeviceCase` needs no MDP on the host: models that are made on a card (`DeviceModel.from_padded`) and features that lie
there (`DeviceLinear`) are estimated by the same `Objective` and `maximise`. This file loads JAX: import it inside
functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from revealed import device_kernels as kernels
from revealed.checks import Floats
from revealed.device_model import DeviceModel
from revealed.device_parts import AffinePart, DevicePart, DeviceRows, LayeredPart, SolvedPart
from revealed.device_pi_tilde import DeviceGiven, DeviceOwn, limits_of
from revealed.device_rewards import MOST_COLUMNS, on_device
from revealed.errors import ValueDoesNotExist
from revealed.objective import require_known

MOST_ENTRIES = 4_000_000_000  # of ∂Q/∂θ (K, A, S), of which a few parameters are held at a time


@dataclass(frozen=True, eq=False)
class DeviceCase:
    """A terminal set (through its model), the observed rows, and the choice of π̃. `mdp` is the host's, if it has one.

    `rewards` are those that were brought over; cases of one fit share them.
    """

    model: DeviceModel
    rows: DeviceRows
    pi_tilde: DeviceOwn | DeviceGiven
    mdp: Any = None
    rewards: list[tuple[Any, Any]] = field(default_factory=list, repr=False)

    @property
    def moves(self) -> bool:
        """Whether π̃ follows θ."""
        return self.pi_tilde.moves

    def holds(self, K: int) -> bool:
        """Whether ∂Q/∂θ of so many parameters can be passed through."""
        return K * self.model.n_actions * self.model.n_states <= MOST_ENTRIES

    @property
    def total(self) -> float:
        return float(self.rows.weights.sum())

    def at(self, reward: Any, theta: Floats, kept: dict[str, Any]) -> DevicePart:
        """The case at θ; raises where it has no value. `kept` is what an earlier θ left, where that still holds."""
        there = self.there(reward)
        known = self.model, self.rows, self.pi_tilde, there, theta, kept
        if isinstance(self.pi_tilde, DeviceGiven) and there.features is not None and theta.size <= MOST_COLUMNS:
            return AffinePart(*known)
        solved = self.pi_tilde.soft_value(self._table(there.value(theta)))
        require_known(solved)
        if solved.decisions is not None:
            return LayeredPart(*known, solved, self._weights)
        return SolvedPart(*known, solved)

    @cached_property
    def _weights(self) -> Any:
        """ρ by decisions, where the model is a horizon."""
        return kernels.by_decision(self.model.transitions, self.rows.rho, self.rows.slot)

    def there(self, reward: Any) -> Any:
        """The reward on the device. The first is kept, and beside it one that was asked about in between."""
        for known, there in self.rewards:
            if known is reward:
                return there
        del self.rewards[1:]
        self.rewards.append((reward, on_device(reward, self.model)))
        return self.rewards[-1][1]

    def _table(self, table: Any) -> Any:
        """(1|A, S): rewards of feasible pairs, zero elsewhere; a `ValueDoesNotExist` where one is not finite."""
        found, finite = kernels.feasible_table(limits_of(self.model), table)
        if not bool(finite):
            raise ValueDoesNotExist("the reward is not finite at these parameters.")
        return found
