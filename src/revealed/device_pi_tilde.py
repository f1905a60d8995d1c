"""π̃ on a device (theory E1–E3), in which the methods differ there as on the host.

`DeviceOwn` is π̃ = π_θ: the soft optimum at every reward. `DeviceGiven` holds π̃ and its chain. What was found for the
last θ, or under the last π̃, is where the next solves begin: `Warm`. This file loads JAX: import it inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from revealed import device_kernels as kernels
from revealed.checks import Floats
from revealed.device_bellman import doubt_about, soft_optimum, without_level
from revealed.device_model import DeviceModel
from revealed.device_solvers import DeviceChain
from revealed.errors import SolverFailed
from revealed.levels import surely_known
from revealed.linear_solvers import EPS, Work


def limits_of(model: DeviceModel) -> tuple[Any, Any]:
    """What the kernels ask to know what is offered."""
    return model.mask, model.going


@dataclass
class Warm:
    """Where the next solves begin: a value (S,), an adjoint (S,), and slopes of the value (K, S)."""

    value: Any = None
    adjoint: Any = None
    slopes: Any = None

    def slopes_like(self, columns: Any) -> Any:
        """The last slopes, where they are those of as many parameters."""
        return self.slopes if self.slopes is not None and self.slopes.shape == columns.shape else None


@dataclass(frozen=True, eq=False)
class DeviceSoft:
    """Q = r + γTV and what follows from it, on the device and when asked for: (A, S), and (S,) for the value.

    `given` is π̃ and its chain; None where π̃ is the policy that follows.
    """

    model: DeviceModel
    table: Any
    V: Any
    given: DeviceGiven | None = None
    decisions: Any = None  # Q and π_θ of the layers of a horizon
    level: float = 0.0  # what was taken off Q and the value (theory B5)

    @property
    def _known(self) -> tuple[Any, ...]:
        return self.model.transitions, self.model.gamma, limits_of(self.model), self.table, self.V

    @cached_property
    def all(self) -> tuple[Any, Any, Any, Any]:
        """The soft maximum of Q, Q, π_θ and log π_θ in all states; the first two without their level."""
        return kernels.choices(*self._known)

    @cached_property
    def doubt(self) -> SolverFailed | None:
        """Why float64 cannot tell the choices under a given π̃, where it cannot (theory B6); a soft optimum is refused
        when it is looked for."""
        if self.given is None or not isinstance(self.given.chain, DeviceChain):
            return None
        size = 2.0 * float(kernels.largest(self.V)) + float(kernels.largest(self.table))
        if surely_known(self.model.discount, 8 * EPS * size):
            return None
        payoff = self.given.payoff(self.table)
        left = kernels.policy_left(self.given.chain.rows, self.model.gamma, payoff, self.V)
        left = kernels.less_middle(self.model.going, left) if self.model.endless else left
        return doubt_about(self.model, self.given.chain, self.table, self.V, left, self.given.pi_tilde, self.all[3])

    @cached_property
    def policy(self) -> Any:
        return kernels.policy_alone(*self._known) if self.given is None else self.all[2]

    def q_in(self, index: Any) -> Any:
        """(A, R): Q in some rows."""
        return kernels.rows_of_q(*self._known, index)

    @property
    def pi_tilde(self) -> Any:
        return self.policy if self.given is None else self.given.pi_tilde

    @cached_property
    def chain(self) -> Any:
        return self.model.chain(self.policy) if self.given is None else self.given.chain


class DeviceOwn:
    """π̃ = π_θ (theory E1): NFXP and MCE-IRL."""

    moves = True

    def __init__(self, model: DeviceModel, work: Work | None = None, warm: Warm | None = None) -> None:
        self.model, self.work, self.warm = model, work or Work(), warm or Warm()

    def soft_value(self, table: Any) -> DeviceSoft:
        best = soft_optimum(self.model, table, self.warm.value)
        self.warm.value = best.relative
        self.work.solves += best.newton_steps
        return DeviceSoft(self.model, best.reward, best.at, decisions=best.decisions, level=best.level)


class DeviceGiven:
    """π̃ given (theory E2, E3), (A, S) on the device; log π̃ comes along where tiny probabilities have underflowed."""

    moves = False

    def __init__(
        self,
        model: DeviceModel,
        pi_tilde: Any,
        log_pi_tilde: Any = None,
        work: Work | None = None,
        warm: Warm | None = None,
    ) -> None:
        self.model, self.pi_tilde, self._log = model, pi_tilde, log_pi_tilde
        self.work, self.warm = work or Work(), warm or Warm()
        self.chain = model.chain(pi_tilde)

    def soft_value(self, table: Any) -> DeviceSoft:
        """One solve."""
        self.work.solves += 1
        with jax.enable_x64(True):
            table, level = without_level(self.model, table)
        self.warm.value, gain = self.chain.solve_relative(self.payoff(table), start=self.warm.value)  # V1
        return DeviceSoft(self.model, table, self.warm.value, self, level=self.level(level, float(gain)))

    def payoff(self, table: Any) -> Any:
        """(S,): what π̃ earns at once, its entropy included."""
        return kernels.payoff(self.pi_tilde, self._log, table)

    def level(self, taken: float, gain: float) -> float:
        """What to add to Q and to the value: the level removed from the reward, and V's gain per step."""
        gamma = self.model.discount
        return (taken + gamma * gain) / (1.0 - gamma) if self.model.endless else 0.0

    def affine(self, features: Any, offset: Any) -> tuple[Any, Floats]:
        """(K + 1, S): W and w₀ with V^π̃ = Wθ + w₀, by one batched solve; `offset` (1|A, S) does not depend on θ. Where
        nothing ends each up to a constant, which (K + 1,) times 1 − γ come along."""
        columns = kernels.affine_sides(self.pi_tilde, self._log, features, offset)
        self.work.solves += columns.shape[0]
        self.warm.slopes, gains = self.chain.solve_relative(columns, start=self.warm.slopes_like(columns))
        return self.warm.slopes, np.asarray(gains)
