"""The theorem: one objective and one gradient for NFXP = MCE-IRL, CCP and NPL, which differ in π̃ alone.

    Q = Q^π̃_θ (V2),  π_θ = softmax Q (P1),  g(θ) = Σ ρ(s,a) log π_θ(a|s) (O1)
    D = ρ − ρ(s)π_θ (G1),  λ = (I − γT^π̃)^{-T} γTᵀD (G2),  ∂g/∂r = D + π̃ ⊙ λ (G3),  ∂g/∂θ = vjp of the reward (G4)

Labels are those of docs/theory.md. What is optimised is g/Σρ − (l2/2)‖θ‖² (O4), summed over cases (a terminal set and
its ρ).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from revealed.chain import Chain
from revealed.errors import SolverFailed, ValueDoesNotExist
from revealed.levels import level_of, without_level
from revealed.logit_rows import Choices, RowCases, RowsPart, covariances, widest_gap
from revealed.mdp import MDP, Floats
from revealed.pi_tilde import GivenPolicy, PiTilde, SoftValue
from revealed.rewards.base import Reward, has_features, is_linear
from revealed.slopes import mean_features, slopes_of

MOST_FEATURES = 400  # for which second derivatives, and a solve for each, are worth it
MOST_ENTRIES = 100_000_000  # numbers of ∂V/∂θ, or of ∂Q/∂θ in the states that count


@dataclass(frozen=True)
class Case:
    """A terminal set (through its MDP), the expert's weights ρ (S, A) there, and the choice of π̃."""

    mdp: MDP
    rho: Floats
    pi_tilde: PiTilde

    def __post_init__(self) -> None:
        if self.mdp.base is not None:  # in memory as all that it meets on a horizon (layers.py)
            object.__setattr__(self, "rho", np.asfortranarray(self.rho))

    @property
    def moves(self) -> bool:
        """Whether π̃ follows θ."""
        return self.pi_tilde.moves

    @cached_property
    def rho_state(self) -> Floats:
        return self.rho.sum(axis=1)

    @property
    def total(self) -> float:
        return float(self.rho.sum())

    @cached_property
    def seen(self) -> tuple[npt.NDArray[np.intp], Floats]:
        """Positions and weights of the pairs with weight: the others may be infeasible, and 0·log 0 = 0."""
        where = np.flatnonzero(self._flat(self.rho))
        return where, self._flat(self.rho).take(where)

    def _flat(self, table: Floats) -> Floats:
        return table.reshape(-1, order="C" if self.mdp.base is None else "F")

    def log_likelihood(self, log_policy: Floats) -> float:
        """Σ ρ log π (theory O1)."""
        where, weight = self.seen
        return float(weight @ self._flat(log_policy).take(where))

    def at(self, reward: Reward, theta: Floats, kept: dict[str, Any]) -> PlainPart:
        """The case at θ; raises where it has no value. `kept` is what an earlier θ left, where that still holds."""
        if isinstance(self.pi_tilde, GivenPolicy) and has_features(reward) and self.holds(reward.n_params):
            return self._affine(reward, theta, kept)
        soft = self.pi_tilde.soft_value(feasible_table(self.mdp, reward.value(theta)))
        require_known(soft)
        return PlainPart(self, lambda: soft, reward, theta, kept)

    def _affine(self, reward: Any, theta: Floats, kept: dict[str, Any]) -> AffinePart:
        """π̃ stays and the reward is linear: Q is affine in θ, and what is observed of it is found once (theory V6)."""
        given, table = cast(GivenPolicy, self.pi_tilde), lambda: feasible_table(self.mdp, reward.value(theta))
        if "rows" not in kept:
            J, r = reward.jacobian(theta), table()
            r = without_level(self.mdp, r, level_of(self.mdp, r))
            kept["response"], V, kept["gains"] = given.affine(J, r)
            q = r[self.rows] + slopes_of(self.mdp, None, V[:, None], self.rows)[:, :, 0]
            F = slopes_of(self.mdp, J, kept["response"], self.rows)
            kept["rows"] = RowCases(self.rho[self.rows], self.mdp.feasible[self.rows], q, F, theta)
        logit = kept["rows"].at(reward, theta, kept)
        return AffinePart(self, lambda: given.soft_value(table()), reward, theta, kept, logit.rows, logit.found)

    @cached_property
    def rows(self) -> npt.NDArray[np.intp]:
        """The states in which decisions count."""
        return np.flatnonzero(self.rho_state)

    def holds(self, K: int) -> bool:
        """Whether there is room for ∂V/∂θ (S, K), and for ∂Q/∂θ (R, A, K) in the states that count."""
        most = MOST_ENTRIES // max(self.mdp.n_states, self.rows.size * self.mdp.n_actions)
        return K <= min(MOST_FEATURES, most)


def feasible_table(mdp: MDP, table: Any) -> Floats:
    """(S, A): rewards of feasible pairs, zero elsewhere; a `ValueDoesNotExist` where one is not finite."""
    found = np.where(mdp.feasible, np.asarray(table, dtype=np.float64), 0.0)
    if not np.isfinite(found).all():
        raise ValueDoesNotExist("the reward is not finite at these parameters.")
    return found


def require_known(soft: Any) -> None:
    """Raise where float64 cannot tell the choices of a soft value, or of a part (theory B6)."""
    if soft.doubt is not None:
        raise soft.doubt


class Part(Protocol):
    """A case, or many that differ in their goal, at one θ: what the objective and those who judge it ask for."""

    @property
    def log_likelihood(self) -> float:
        """Σ ρ log π_θ."""
        ...

    @property
    def pull(self) -> Floats:
        """(K,): its gradient in θ."""
        ...

    @property
    def information(self) -> Floats:
        """(K, K): Σ_s ρ(s) Cov_s(∂Q/∂θ)."""
        ...

    @property
    def hessian(self) -> Floats:
        """(K, K): second derivatives for rewards linear in θ (theory H1)."""
        ...

    @property
    def spread(self) -> tuple[Floats, Floats]:
        """(K,) each: the widest gap of `slopes` between actions of one observed state, and their size."""
        ...

    @property
    def choices(self) -> Choices: ...

    @property
    def slopes(self) -> Floats:
        """(R, A, K): ∂Q/∂θ in the rows of `choices`, up to a constant per parameter where nothing ends (theory B5), and
        zero for what is not offered."""
        ...


@dataclass(frozen=True, eq=False)
class PlainPart:
    """One case at one θ; `kept` is shared with other θ where π̃ stays and the reward is linear."""

    case: Case = field(repr=False)
    _soft: Callable[[], SoftValue] = field(repr=False)
    reward: Reward = field(repr=False)
    theta: Floats
    kept: dict[str, Any] = field(repr=False)

    @cached_property
    def soft(self) -> SoftValue:
        return self._soft()

    @property
    def policy(self) -> Floats:
        return self.soft.policy

    @property
    def log_policy(self) -> Floats:
        return self.soft.log_policy

    @property
    def value(self) -> Floats:
        return self.soft.value

    @property
    def q(self) -> Floats:
        return self.soft.q

    @property
    def pi_tilde(self) -> Floats:
        return self.soft.pi_tilde

    @property
    def chain(self) -> Chain:
        return self.soft.chain

    @cached_property
    def log_likelihood(self) -> float:
        return self.case.log_likelihood(self.soft.log_policy)

    @cached_property
    def adjoint(self) -> Floats:
        """λ; a choice of π̃ that does not factor, such as the paper's dense one, brings its own."""
        own = getattr(self.case.pi_tilde, "adjoint", adjoint)
        return own(self.case, self.soft)

    @cached_property
    def cotangent(self) -> Floats:
        """(S, A): ∂g/∂r."""
        return reward_gradient(self.case, self.soft, self.adjoint)

    @cached_property
    def pull(self) -> Floats:
        return self.reward.vjp(self.theta, self.cotangent)  # G4

    @cached_property
    def features(self) -> Any:
        return self.reward.jacobian(self.theta)  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def response(self) -> Floats:
        """(S, K): (I − γT^π̃)⁻¹E_π̃ ∂r/∂θ, what one more of each parameter does to V^π̃ (theory V5); where nothing ends,
        up to a constant, which no choice sees (B5)."""
        if "response" not in self.kept:
            found = self.chain.solve_relative(mean_features(self.features, self.pi_tilde))
            self.kept["response"], self.kept["gains"] = found
        return self.kept["response"]

    @property
    def jacobian(self) -> Floats:
        """F = ∂Q^π̃/∂θ (S, A, K) (theory V5), with its level."""
        mdp, F = self.case.mdp, slopes_of(self.case.mdp, self.features, self.response)
        if mdp.endless:
            F[mdp.feasible] += mdp.discount * self.kept["gains"] / (1.0 - mdp.discount)
        return F

    @cached_property
    def slopes(self) -> Floats:
        return slopes_of(self.case.mdp, self.features, self.response, self.case.rows)

    @cached_property
    def information(self) -> Floats:
        rows = self.case.rows
        return covariances(self.slopes, self.soft.policy[rows], self.case.rho_state[rows])

    @cached_property
    def hessian(self) -> Floats:
        return self._covariances(self.adjoint) - self.information if self.case.moves else -self.information

    def _covariances(self, state_weights: Floats) -> Floats:
        """Σ_s w(s) Cov_{a∼π_θ(·|s)} F(s, ·), some states at a time: F of all of them may be large."""
        mdp, total = self.case.mdp, np.zeros((self.theta.size,) * 2)
        for block in mdp.transitions.row_blocks:
            F = slopes_of(mdp, self.features, self.response, block.states, block.rows)
            total += covariances(F, self.soft.policy[block.states], state_weights[block.states])
        return total

    @cached_property
    def spread(self) -> tuple[Floats, Floats]:
        return widest_gap(self.slopes, self.case.mdp.feasible[self.case.rows]), np.abs(self.slopes).max(axis=(0, 1))

    @property
    def choices(self) -> Choices:
        rows = self.case.rows
        return Choices(self.case.rho[rows], self.soft.log_policy[rows], self.case.mdp.feasible[rows])


@dataclass(frozen=True, eq=False)
class AffinePart(RowsPart, PlainPart):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A case whose π̃ stays, under a reward linear in θ: a logit in the observed states (theory V6). What concerns all
    states is found where it is asked for."""

    @property
    def policy(self) -> Floats:
        return self.soft.policy

    @property
    def log_policy(self) -> Floats:
        return self.soft.log_policy

    @property
    def doubt(self) -> SolverFailed | None:
        """Why float64 cannot tell the choices, where it cannot (theory B6)."""
        return self.soft.doubt


class Cases(Protocol):
    """A case, or many that differ in their goal."""

    @property
    def mdp(self) -> MDP: ...

    @property
    def moves(self) -> bool: ...

    @property
    def total(self) -> float: ...

    def at(self, reward: Reward, theta: Floats, kept: dict[str, Any]) -> Any: ...  # a `Part`


class Objective:
    """g/Σρ − (l2/2)‖θ‖² for a reward and cases; `at(theta)` evaluates it."""

    def __init__(self, reward: Reward, cases: Sequence[Cases], l2: float = 0.0) -> None:
        self.reward, self.l2 = reward, float(l2)
        self.cases: tuple[Any, ...] = tuple(cases)
        self.total = float(sum(case.total for case in self.cases))
        self.units: Floats | None = None  # of the parameters, in which a search judges gradients (theory O5)
        self._kept: list[dict[str, Any]] = [{} for _ in self.cases]

    @property
    def has_hessian(self) -> bool:
        """Whether second derivatives are offered: for features, not for a weight per state (∂Q/∂θ would be S×A×S)."""
        return has_features(self.reward)

    def without_penalty(self) -> Objective:
        """The same with l2 = 0; what was found for this one serves it, too."""
        other = copy(self)
        other.l2 = 0.0
        return other

    def at(self, theta: Floats) -> Evaluation:
        """The objective at θ. Where the value does not exist, the evaluation says why and its `value` is −∞."""
        theta = np.asarray(theta, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                pairs = zip(self.cases, self._kept, strict=True)
                parts = tuple(case.at(self.reward, theta, self._still(case, kept)) for case, kept in pairs)
            except (ValueDoesNotExist, SolverFailed) as problem:
                return Evaluation(self, theta, (), problem)
        return Evaluation(self, theta, parts, None)

    def _still(self, case: Cases, kept: dict[str, Any]) -> dict[str, Any]:
        """What holds at every θ: ∂Q/∂θ of a linear reward while π̃ stays."""
        return kept if is_linear(self.reward) and not case.moves else {}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The objective at one θ; gradient and curvature are computed when asked for."""

    objective: Objective = field(repr=False)
    theta: Floats
    parts: tuple[Any, ...] = field(repr=False)
    problem: Exception | None = None

    @cached_property
    def value(self) -> float:
        """g/Σρ − (l2/2)‖θ‖²; −∞ where the value does not exist."""
        if self.problem is not None:
            return -np.inf
        g = sum(part.log_likelihood for part in self.parts)
        penalty = 0.5 * self.objective.l2 * float(self.theta @ self.theta)
        total = g / self.objective.total - penalty
        return total if np.isfinite(total) else -np.inf

    @cached_property
    def gradient(self) -> Floats:
        pulled = np.sum([part.pull for part in self.parts], axis=0)
        return pulled / self.objective.total - self.objective.l2 * self.theta

    @property
    def gradient_norm(self) -> float:
        """The 2-norm of the gradient, each parameter in the objective's units (theory O5)."""
        units = self.objective.units
        return vector_length(self.gradient, 1.0 if units is None else units)

    @cached_property
    def hessian(self) -> Floats:
        """Second derivatives for rewards linear in θ (theory H1)."""
        curvature = np.sum([part.hessian for part in self.parts], axis=0) / self.objective.total
        return curvature - self.objective.l2 * np.eye(self.theta.size)

    @cached_property
    def information(self) -> Floats:
        """Σ_s ρ(s) Cov_s(∂Q/∂θ)/Σρ, without the penalty: what the observed choices tell about θ."""
        return np.sum([part.information for part in self.parts], axis=0) / self.objective.total

    @cached_property
    def size(self) -> Floats:
        """(K,): how large ∂Q/∂θ is; what is below rounding beside it is nothing."""
        return np.max([part.spread[1] for part in self.parts], axis=0)

    @cached_property
    def spread(self) -> Floats:
        """(K,): by how much a unit of each parameter can move the log-odds of an observed choice; 0 if by nothing.

        What is below rounding is nothing: a constant, for one, moves no choice where nothing ends.
        """
        spread = np.max([part.spread[0] for part in self.parts], axis=0)
        return np.where(spread > 1e-11 * self.size, spread, 0.0)


def adjoint(case: Case, part: SoftValue) -> Floats:
    """λ = (I − γT^π̃)^{-T} γTᵀD with D = ρ − ρ(s)π_θ (theory G1, G2): one solve with the transpose."""
    D = case.rho - case.rho_state[:, None] * part.policy
    return part.chain.solve_pairs(D)


def reward_gradient(case: Case, part: SoftValue, lam: Floats) -> Floats:
    """∂g/∂r = D + π̃ ⊙ λ (theory G3), shape (S, A)."""
    if part.pi_tilde is part.policy:
        return case.rho + (lam - case.rho_state)[:, None] * part.policy
    return case.rho - case.rho_state[:, None] * part.policy + part.pi_tilde * lam[:, None]


def vector_length(vector: Floats, units: Floats | float = 1.0) -> float:
    """The 2-norm in units, also where squares overflow: a parameter that choices hardly see has a tiny one."""
    with np.errstate(over="ignore"):
        vector = vector / units
    size = float(np.abs(vector).max(initial=0.0))
    return size * float(np.linalg.norm(vector / size)) if 0.0 < size < np.inf else size
