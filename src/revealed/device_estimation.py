"""One fit under way on a placed model: what differs from `estimation.py`.

The weights ρ, the policies π̃ and the rewards lie on the device; the search itself, its stopping rule and the truth
about how it ended are the host's. This file loads JAX: import it inside functions.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from revealed import device_kernels as kernels
from revealed.device_cases import DeviceCase
from revealed.device_model import DeviceModel
from revealed.device_parts import DeviceRows
from revealed.device_pi_tilde import DeviceGiven, DeviceOwn, Warm
from revealed.estimation import Run
from revealed.objective import Evaluation, Objective


class DeviceRun(Run):
    """A fit on a device. π̃ is an array (S, A) of the host at first, and (A, S) of the device after an update."""

    @cached_property
    def _model(self) -> DeviceModel:
        return self.mdp.on_device

    @cached_property
    def _warm(self) -> Warm:
        """Shared by all updates of NPL, and by the CCP start of NFXP."""
        return Warm() if self.value is None else Warm(value=self._model.put(self.value))

    @cached_property
    def _rewards(self) -> list[tuple[Any, Any]]:
        return []

    @cached_property
    def _rows(self) -> DeviceRows:
        return DeviceRows.of(self._model, self._rho)

    def own(self) -> DeviceOwn:
        return DeviceOwn(self._model, self.work, self._warm)

    def given(self, pi_tilde: Any, log_pi_tilde: Any = None) -> DeviceGiven:
        return DeviceGiven(self._model, self._there(pi_tilde), log_pi_tilde, self.work, self._warm)

    def _there(self, policy: Any) -> Any:
        return self._model.put(policy) if isinstance(policy, np.ndarray) else policy

    def make_objective(self, rho: Any, pi_tilde: Any) -> Objective:
        case = DeviceCase(self._model, self._rows, pi_tilde, self.mdp, self._rewards)
        return Objective(self.reward, [case], self.options.l2)

    def improved(self, best: Evaluation) -> tuple[Any, Any]:
        """π_θ and log π_θ, which stay where they are."""
        _, _, policy, log_policy = best.parts[0].soft.all
        return policy, log_policy

    def _distance(self, before: Any, after: Any) -> float:
        return float(kernels.distance(self._there(before), self._there(after)))
