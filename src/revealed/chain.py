"""One policy's Markov chain (theory C1–C3): factor A = I − γT^π once, then solve with it and with its transpose.

Everything the paper computes with an |S|×|A|×|S| occupancy tensor is a solve with this factorisation.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import pass_instead, require_flag, require_floats, require_number
from revealed.errors import InvalidDistribution, InvalidInput, SolverFailed, ValueDoesNotExist
from revealed.gates import floats_of, require_instance
from revealed.krylov import KrylovSolver
from revealed.labels import how_many
from revealed.layers import LayerSolver, in_layers
from revealed.levels import typical
from revealed.linear_solvers import (
    EPS,
    LOOSE,
    MOST_REFINED,
    MOST_STEPS,
    NEAR_ONE,
    NEVER_ENDS,
    LinearSolver,
    LUSolver,
    Work,
    make_solver,
    no_differences,
    refine,
)
from revealed.mdp import MDP, Floats, require_mdp
from revealed.naming import in_words, pair_in_words, places, state_in_words
from revealed.positions import by_position, in_order
from revealed.transitions import can_reach, way_to
from revealed.voices import arg, either

MANY_COLUMNS = 4  # for so many right-hand sides a new factorisation costs less than refining each
MANY = 8.0  # systems with one policy in a fit: values, adjoints, a column per parameter


class Chain:
    """The Markov chain of `policy` on `mdp`, with I − γT^π factored.

    `solver` is "auto", "lu" or "krylov". `stale` may hand over the chain of a nearby policy: its factorisation then
    serves as a preconditioner (theory S1) and a new one is made only where that converges too slowly. `work` counts.
    `systems` is about how many systems will be solved: a factorisation may pay for many of them but not for one. `near`
    is the chain of a nearby policy, from which an iterative solver reuses what it can.
    """

    def __init__(
        self,
        mdp: MDP,
        policy: Any,
        solver: str = "auto",
        stale: Chain | None = None,
        work: Work | None = None,
        check: bool = True,
        systems: float = 1.0,
        near: Chain | None = None,
    ) -> None:
        self._check(mdp, stale, near, work, check, systems)
        self.mdp, self._systems = mdp, systems
        self._near: LinearSolver | None = None if near is None else near._solver
        self.policy: Floats = as_policy(mdp, policy) if check else floats_of("policy", policy, mdp.feasible.shape)
        self.solver_choice = solver
        self.work = Work() if work is None else work
        self._solver: LinearSolver | None = None
        self._stale = stale.with_factor() if stale is not None and stale.reusable else None
        if self._stale is None:
            self._factor()

    @staticmethod
    def _check(mdp: Any, stale: Any, near: Any, work: Any, check: Any, systems: Any) -> None:
        require_mdp(mdp)
        for name, chain in (("stale", stale), ("near", near)):
            if chain is not None:
                require_instance(name, chain, Chain, "the rv.Chain of a nearby policy")
        if work is not None:
            require_instance("work", work, Work, "a counter of work")
        require_flag("check", check)
        require_number("systems", systems)

    @cached_property
    def A(self) -> sp.csr_array:
        """I − γT^π, sparse (S, S)."""
        return self.mdp.transitions.identity_minus(self.mdp.discount, self.policy)

    def _factor(self) -> LinearSolver:
        """Factor now; at γ = 1 make sure that the chain ends (the expected number of steps is finite)."""
        if self._solver is not None:
            return self._solver
        undiscounted = self.mdp.discount == 1.0 and self.mdp.base is None  # a horizon ends by itself
        if undiscounted:
            _require_ends(self.mdp, self.policy)
        try:
            solver = self._make_solver()
            steps = solver.solve(np.ones(self.mdp.n_states)) if undiscounted else np.ones(1)
        except SolverFailed as error:
            if undiscounted:
                raise ValueDoesNotExist(NEVER_ENDS) from error
            raise
        if not (np.isfinite(steps).all() and steps.min() > 0.0 and steps.max() < MOST_STEPS):
            raise ValueDoesNotExist(NEVER_ENDS)
        self._solver, self._stale, self._near = solver, None, None
        self.work.factorisations += 1
        return solver

    def _make_solver(self) -> LinearSolver:
        """On the host, or where the MDP was placed, unless a solver of the host was asked for."""
        if in_layers(self.mdp, self.solver_choice):
            return LayerSolver(self.mdp, self.policy)
        if self.mdp.device is None or self.solver_choice != "auto":
            return make_solver(self.A, self.mdp.structure, self.solver_choice, self._systems, self._near)
        from revealed.device_model import DeviceSolver

        return DeviceSolver(self.mdp.on_device, self.policy)

    @property
    def reusable(self) -> bool:
        """Whether a factorisation stands behind this chain that a nearby policy could lean on."""
        return isinstance(self.with_factor()._solver, LUSolver)

    def with_factor(self) -> Chain:
        """The chain whose factorisation this one uses: itself, or the stale one it still leans on."""
        return self if self._stale is None else self._stale

    def solve(self, b: Any, accuracy: float | None = None) -> Floats:
        """(I − γT^π)⁻¹ b for b of shape (S,) or (S, K), to rounding, or to this relative residual where that is less
        work: an iterative method can stop there."""
        return self.forward(in_order(self.mdp, b, "b", ("state",)), accuracy)

    def solve_transpose(self, b: Any) -> Floats:
        """(I − γT^π)^{-T} b for b of shape (S,) or (S, K)."""
        return self.backward(in_order(self.mdp, b, "b", ("state",)))

    def forward(self, b: Floats, accuracy: float | None = None) -> Floats:
        """`solve` for an array that is known to be in the order of the MDP: what the library itself computes is."""
        return self._apply(b, False, accuracy)

    def backward(self, b: Floats) -> Floats:
        """`solve_transpose` for such an array."""
        b = self._right_side(b)
        x = self._apply(b, True)
        return self._with_total(x, b.sum(axis=0) / (1.0 - self.mdp.discount)) if self._near_one else x

    def solve_relative(self, b: Floats) -> tuple[Floats, Any]:
        """(I − γT^π)⁻¹ b up to a constant where nothing ends: h and g with (I − γT^π)h = b − g, hence h + g/(1 − γ) is
        the solution (theory B5); g has a number per column. Elsewhere the solution and zero."""
        b = self._right_side(b)
        if not self.mdp.endless:
            return self._apply(b, False), np.zeros(b.shape[1:])
        if self._near_one:
            return self._refined(b)
        level = typical(b)
        h, g = self._split(self._apply(b - level, False))
        return h, g + level

    def step(self, b: Floats, accuracy: float | None = None) -> Floats:
        """`solve` for a step of Newton's method; near γ = 1, where nothing ends, without the level, which affects no
        choice."""
        b = self._right_side(b)
        return self._apply(b - self._visits @ b if self._near_one else b, False, accuracy)

    def _split(self, x: Floats) -> tuple[Floats, Any]:
        """x without what is typical of it, and what that is worth a step."""
        level = typical(x)
        return x - level, (1.0 - self.mdp.discount) * level

    def _refined(self, b: Floats) -> tuple[Floats, Any]:
        """The same near γ = 1. What the chain visits is taken off first, so that the solution has no level, and what is
        left of the equation is solved for until it is at rounding."""
        before = excess = np.inf
        h, g = np.zeros_like(b), self._visits @ b
        for _ in range(MOST_REFINED):
            left = (b - g) - self.A @ h
            middle = self._visits @ left
            left, g = left - middle, g + middle
            goal = 8 * EPS * (np.abs(h).max(axis=0) + np.abs(b - g).max(axis=0)) + EPS * np.abs(b).max(axis=0)
            excess = float(np.max(np.abs(left).max(axis=0) / np.maximum(goal, np.finfo(np.float64).tiny)))
            if excess <= 1.0 or not excess <= 0.5 * before:
                break
            step, more = self._split(self._apply(left, False))
            h, g, before = h + step, g + more, excess
        if not excess <= LOOSE:
            raise no_differences(self.mdp.discount)
        return h, g

    @property
    def _near_one(self) -> bool:
        return self.mdp.endless and 1.0 - self.mdp.discount < NEAR_ONE

    def solve_pairs(self, D: Floats) -> Floats:
        """(I − γT^π)^{-T} γTᵀD for weights D (S, A) of pairs that sum to zero in every state (theory G2)."""
        D = floats_of("D", D, self.mdp.feasible.shape)
        if isinstance(self._solver, LayerSolver):
            self.work.solves += 1
            return self._solver.solve_pairs(D)
        return self.solve_balanced(self.mdp.discount * self.mdp.transitions.push(D))

    def solve_balanced(self, b: Floats) -> Floats:
        """(I − γT^π)^{-T} b for b that sums to zero over all states, (S,) or (S, K).

        Where nothing ends the solution sums to zero, too: what rounding leaves of that sum, which would be blown up by
        1/(1 − γ), is taken off along the visits that it would make (theory B5).
        """
        b = self._right_side(b)
        x = self._apply(b, True)
        if not self._near_one:
            return x
        x = self._with_total(x, 0.0)
        return self._with_total(x + self._apply(b - self._transposed @ x, True), 0.0)

    def _with_total(self, x: Floats, total: Any) -> Floats:
        """x with the sum over all states that it must have."""
        visits = self._visits if x.ndim == 1 else self._visits[:, None]
        return x + visits * (total - x.sum(axis=0))

    @cached_property
    def _visits(self) -> Floats:
        """(S,): discounted visits from anywhere, as shares."""
        visits = self._apply(np.full(self.mdp.n_states, 1.0 / self.mdp.n_states), True)
        return visits / visits.sum()

    def __repr__(self) -> str:
        return f"Chain({self.mdp!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Chain, (self.mdp, self.policy, self.solver_choice)  # a factorisation is made anew

    def _apply(self, b: Floats, transpose: bool, accuracy: float | None = None) -> Floats:
        b = self._right_side(b)
        if accuracy is not None:
            require_number("accuracy", accuracy)
        columns = 1 if b.ndim == 1 else b.shape[1]
        self.work.solves += columns
        if self._stale is not None and columns < MANY_COLUMNS:
            old = self._stale._factor()
            apply_old = old.solve_transpose if transpose else old.solve
            x, reached = refine(self._transposed if transpose else self.A, b, apply_old)
            if reached:
                return x
        solver = self._factor()
        if isinstance(solver, KrylovSolver) and accuracy is not None:
            return solver.solve(b, accuracy=accuracy)
        return solver.solve_transpose(b) if transpose else solver.solve(b)

    def _right_side(self, b: Any) -> Floats:
        if type(b) is not np.ndarray and not by_position(b):
            b = in_order(self.mdp, b, "b", ("state",))
        return floats_of("b", b, (self.mdp.n_states,), (self.mdp.n_states, None))

    @cached_property
    def _transposed(self) -> sp.csr_array:
        return sp.csr_array(self.A.T)

    def chord_step(self, b: Floats) -> Floats:
        """One application of whatever factorisation is at hand, stale or not: no refinement (theory B2)."""
        self.work.solves += 1
        return self.with_factor()._factor().solve(self._right_side(b))

    def soft_value(self, reward: Any, log_policy: Any = None) -> Floats:
        """V^π (theory V1): expected reward and entropy, accumulated along the chain."""
        shape = self.mdp.feasible.shape
        logs = None if log_policy is None else floats_of("log_policy", self._own(log_policy, "log_policy"), shape)
        payoff = floats_of("reward", self._own(reward, "reward"), shape, (shape[0], 1))
        return self._apply(expected_payoff(self.policy, payoff, logs), False)

    def _own(self, table: Any, name: str) -> Any:
        return in_order(self.mdp, table, name)

    def occupancy(self, initial: Any = None) -> Floats:
        """Occ(s) = p₀ᵀ(I − γT^π)⁻¹ (theory C2): expected discounted visits; `initial` defaults to the MDP's."""
        if initial is not None:
            return self.backward(self.mdp.start(initial))
        if self.mdp.initial is None:
            raise InvalidInput.conflict("initial", "is required: the MDP has no start distribution")
        return self.backward(self.mdp.initial)

    def occupancy_from(self, state: Any, action: Any) -> Floats:
        """Expected discounted visits when (state, action) comes first and π after (theory C3), the first included."""
        mdp = self.mdp
        state = int(places("state", [state], mdp.state_labels, mdp.n_states)[0])
        action = int(places("action", [action], mdp.action_labels, mdp.n_actions, role="action")[0])
        if not self.mdp.feasible[state, action]:
            what = f"{in_words('action', mdp.action_labels, action)} is not feasible in {state_in_words(mdp, state)}"
            raise InvalidInput.impossible(what, argument="action")
        row = self.mdp.transitions.matrix[[state * self.mdp.n_actions + action]].toarray().reshape(-1)
        visits = self.backward(self.mdp.discount * row)
        visits[state] += 1.0
        return visits

    def residual(self, x: Floats, b: Floats) -> float:
        """‖b − A x‖∞ relative to ‖b‖∞ + ‖x‖∞: what rounding leaves is a small multiple of 1e-16."""
        b, x = self._right_side(b), floats_of("x", x, np.shape(b))
        scale = float(np.abs(b).max(initial=0.0) + np.abs(x).max(initial=0.0))
        return float(np.abs(b - self.A @ x).max(initial=0.0)) / max(scale, EPS)


def expected_payoff(policy: Floats, reward: Floats, log_policy: Floats | None = None) -> Floats:
    """Σ_a π(a|s)(r(s,a) − log π(a|s)), with 0·log 0 = 0. Pass log π where π may have underflowed."""
    used = policy > 0.0
    if log_policy is None:
        log_policy = np.log(policy, out=np.zeros_like(policy), where=used)
    return np.sum(np.where(used, policy * (reward - np.where(used, log_policy, 0.0)), 0.0), axis=1)


def as_policy(mdp: MDP, policy: Any, name: str = "policy") -> Floats:
    """Check an (S, A) array of choice probabilities, brought into the order of the MDP where it has labels; rows of
    terminal states become zero."""
    remedy = pass_instead(policy, "policy", "expert")
    policy = in_order(mdp, policy, name, error=InvalidDistribution)
    array = require_floats(name, policy, "an (S, A) array of probabilities", InvalidDistribution, remedy)
    if array.shape != mdp.feasible.shape:
        raise InvalidDistribution(name, f"shape {mdp.feasible.shape}", f"shape {array.shape}")
    array = np.where(mdp.terminal[:, None], 0.0, array)
    bad = ~(array >= 0.0) | (~mdp.feasible & (array > 0.0)) | ~np.isfinite(array)
    if bad.any():
        s, a = (int(i) for i in np.argwhere(bad)[0])
        what = "zero probability for infeasible actions" if array[s, a] > 0 else "finite probabilities >= 0"
        raise InvalidDistribution(name, what, array[s, a], pair_in_words(mdp, s, a))
    off = ~mdp.terminal & (np.abs(array.sum(axis=1) - 1.0) > 1e-8)
    if off.any():
        s = int(np.flatnonzero(off)[0])
        where, got = state_in_words(mdp, s), f"sum {array[s].sum():.10g}"
        if not array[s].any():
            expected, remedy = "an action in every state that is not terminal", f"{_NO_ACTION} {_SOLVE_AGAIN}"
            raise InvalidDistribution(name, expected, "none", where, remedy)
        raise InvalidDistribution(name, "rows that sum to one", got, where, "Divide each row by its sum.")
    return array


_NO_ACTION = "A policy from a model where the state is terminal has no action for it."
_SOLVE_AGAIN = either("Solve for one on this model, as in rv.solve(mdp, fit).", "Estimate on this model.")


def goals_missing(mdp: MDP) -> str:
    """What else to say where nothing ends: on a road network each trip ends somewhere else."""
    if mdp.goal is not None:
        return ""
    return " If trips have destinations, " + either(
        f"read them with {arg('goal')} or network.trips.", "fit with --goal or --network."
    )


# a saved fit is asked about another discount, too: what is then decided already is said to be done by `fit`
_NO_END = either("Mark terminal states, or use a discount below 1.", "Use a discount below 1, or fit with --terminal.")
_LEAVE_NO_END = either(
    "Mark terminal states, use a discount below 1, unroll a finite horizon",
    "Use a discount below 1, or fit with --terminal, with --horizon",
)
_LEAVE_NO_END += f", or, for an estimated policy, {either('', 'with ')}{arg('first_step', 'smoothed')}."

# of trips, which end at their goals
_OTHER_STEP = f"For an estimated policy use {arg('first_step', 'smoothed')}."


def _require_ends(mdp: MDP, policy: Floats) -> None:
    everything = bool(np.all((policy > 0.0) | ~mdp.feasible))
    stuck = mdp.cannot_end if everything else ~can_reach(mdp.transitions.mix(policy), mdp.terminal)
    if stuck.any():
        s = int(np.flatnonzero(stuck)[0])
        whatever = "no sequence of actions leads" if mdp.cannot_end[s] else "this policy never leads"
        remedy = f"{_LEAVE_NO_END}{goals_missing(mdp)}" if mdp.goal is None else _OTHER_STEP
        raise ValueDoesNotExist(
            f"at discount 1 every trajectory must be able to end, but from {state_in_words(mdp, s)} {whatever} to a "
            f"terminal state ({how_many(int(stuck.sum()), 'such state')}). {remedy}"
        )


def one_hot(mdp: MDP, choice: npt.NDArray[np.intp]) -> Floats:
    """The policy that surely takes `choice[s]` in every state s that is not terminal."""
    policy = np.zeros(mdp.feasible.shape)
    policy[np.arange(mdp.n_states), choice] = ~mdp.terminal
    return policy


def towards_the_end(mdp: MDP) -> npt.NDArray[np.intp]:
    """A policy that surely ends: wherever it is, its action may lead to a state that is closer to a terminal one."""
    if mdp.cannot_end.any():
        s = int(np.flatnonzero(mdp.cannot_end)[0])
        raise ValueDoesNotExist(
            "at discount 1 every trajectory must be able to end, but no sequence of actions leads from "
            f"{state_in_words(mdp, s)} to a terminal state ({how_many(int(mdp.cannot_end.sum()), 'such state')}). "
            f"{_NO_END}{goals_missing(mdp)}"
        )
    onwards = way_to(mdp.moves, mdp.terminal)[1]
    rows = (np.arange(mdp.n_states)[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).reshape(-1)
    chance = mdp.transitions.matrix[rows, np.repeat(onwards, mdp.n_actions)]
    return np.asarray(chance).reshape(mdp.n_states, mdp.n_actions).argmax(axis=1)


MORE_NEGATIVE = either('start= with such parameters, or start="ccp"', "--start ccp")
NO_VALUE = (
    "the soft value does not exist for this reward (to float64 precision): at discount 1 the agent would rather go on "
    f"for ever than end. Make rewards more negative (when fitting: {MORE_NEGATIVE}), or use a discount below 1."
)
MAX_NEWTON, PASSED = 80, 100
NO_PROGRESS = (
    "Newton's method for the soft value made no progress: the reward is too large for float64, or γ too close to 1."
)


def most_steps(n_states: int, discount: float) -> int:
    """Newton steps before we give up. For γ < 1 they always converge (policies only become better), but on a large
    model near γ = 1 information may have to travel through all states, about a hundred of them a step."""
    return MAX_NEWTON + (n_states // PASSED if discount < 1.0 else 0)
