"""Soft and hard Bellman fixed points (theory V3, B1–B4).

The soft optimum V = Λ(V), Λ(V)(s) = log Σ_a exp(r + γTV)(s, a), is found by Newton's method, which is policy
iteration in the soft sense: V ← V + (I − γT^{π_V})⁻¹(Λ(V) − V). A few relative sweeps come first. Across rewards
(θ in a fit) the value and the factorisation are kept: while steps with the old factorisation shrink the residual fast
they are taken (a chord step costs two triangular solves), and when one does not, it is undone and a new
factorisation is made. Convergence is judged by the residual Λ(V) − V alone, down to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from revealed.chain import Chain, goals_missing
from revealed.checks import as_floats, pass_instead
from revealed.errors import InvalidReward, SolverFailed, ValueDoesNotExist
from revealed.labels import how_many
from revealed.linear_solvers import EPS, Work
from revealed.mdp import MDP, Floats, require_mdp
from revealed.naming import pair_in_words, state_in_words
from revealed.progress import Progress
from revealed.transitions import way_to

SWEEPS = 10
MAX_NEWTON = 80
CHORD_STEPS = 8  # a factorisation costs about as much as so many chord steps, each of which an adjoint repeats


@dataclass(frozen=True)
class SoftOptimum:
    """The soft optimum of an MDP and an (S, A) reward: behaviour is π(a|s) = exp(Q(s,a) − V(s)).

    `residual` is ‖Λ(V) − V‖∞ relative to the size of V and r; `newton_steps` counts factorisations.
    """

    value: Floats
    q: Floats
    policy: Floats
    log_policy: Floats
    residual: float
    newton_steps: int
    chord_steps: int
    mdp: MDP = field(repr=False)
    _near: Chain | None = field(repr=False, default=None)
    _solver: str = field(repr=False, default="auto")
    _work: Work | None = field(repr=False, default=None)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "chain"} | {"_near": None}

    def __repr__(self) -> str:
        return f"SoftOptimum({self.mdp!r}, residual {self.residual:.0e}, {self.newton_steps} Newton steps)"

    @cached_property
    def chain(self) -> Chain:
        """The chain of the optimal policy; it leans on the factorisation that the solution was found with."""
        return Chain(self.mdp, self.policy, self._solver, stale=self._near, work=self._work, check=False)


@dataclass(frozen=True)
class HardOptimum:
    """The ordinary optimum (no shocks); ties in the greedy policy are split evenly."""

    value: Floats
    q: Floats
    policy: Floats
    iterations: int

    def __repr__(self) -> str:
        return f"HardOptimum({self.value.size} states, {self.iterations} iterations)"


def solve(mdp: MDP, reward: Any, solver: str = "auto", progress: bool | None = None) -> SoftOptimum:
    """The soft optimum (theory V3) for a reward of shape (S, A), (S, 1) or (S,): `.value`, `.q`, `.policy`.

    `progress=None` shows a bar on a terminal where it takes more than two seconds.
    """
    require_mdp(mdp)
    table = as_reward(mdp, reward)
    with Progress("soft optimum", progress) as bar:
        return SoftBellman(mdp, solver, bar=bar).solve(table)


@dataclass(frozen=True)
class _Point:
    """A value V, what one sweep makes of it, and how far the two are apart."""

    V: Floats
    Q: Floats
    LV: Floats
    reward_size: float

    @cached_property
    def residual(self) -> Floats:
        return self.LV - self.V

    @cached_property
    def size(self) -> float:
        return float(np.abs(self.residual).max(initial=0.0))

    @cached_property
    def scale(self) -> float:
        return 2.0 * float(np.abs(self.LV).max(initial=0.0)) + self.reward_size

    @property
    def at_rounding(self) -> bool:
        return self.size <= 4 * EPS * self.scale

    @property
    def nearly_at_rounding(self) -> bool:
        return self.size <= 1e3 * EPS * self.scale


class SoftBellman:
    """Solves the soft fixed point for one reward after another, each started from the last.

    `start` is the value of a similar problem, to start the first from.
    """

    def __init__(
        self,
        mdp: MDP,
        solver: str = "auto",
        work: Work | None = None,
        bar: Progress | None = None,
        start: Floats | None = None,
    ) -> None:
        self.mdp, self.solver, self.bar, self._start = mdp, solver, bar, start
        self.work = Work() if work is None else work
        self._last: SoftOptimum | None = None
        self._reward_size = 0.0

    def solve(self, reward: Floats) -> SoftOptimum:
        """Raises `ValueDoesNotExist` where γ = 1 and the value is infinite; what earlier solves left survives."""
        warm, factor = self._start, None
        if self._last is not None:
            warm, factor = self._last.value, self._factor_at_hand()
        if warm is not None:
            try:
                return self._keep(self._newton(reward, warm, factor))
            except (ValueDoesNotExist, SolverFailed):
                pass  # the warm start may be to blame: try cold before giving a verdict
        try:
            return self._keep(self._newton(reward, self._cold_start(reward), None))
        except ValueDoesNotExist as problem:
            if self.mdp.cannot_end.any():
                raise  # no reward would help: the message names a state that cannot end
            raise ValueDoesNotExist(_NO_VALUE + goals_missing(self.mdp)) from problem

    def _keep(self, optimum: SoftOptimum) -> SoftOptimum:
        self._last = optimum
        return optimum

    def _factor_at_hand(self) -> Chain | None:
        """The newest factorisation: that of the last solution's own chain if one was made since, else what found it."""
        assert self._last is not None
        chain = self._last.__dict__.get("chain", self._last._near)
        return chain.with_factor() if chain is not None and chain.reusable else None

    def _cold_start(self, reward: Floats) -> Floats:
        """A few sweeps V ← Λ(V) from zero; where nothing ends, each is shifted to the middle of its error bounds.

        At γ = 1 zero may lie far above the optimum, where nobody would ever end; there the start is the value of a
        policy that walks to the end, which lies below it, as do the sweeps from there.
        """
        mdp = self.mdp
        if mdp.discount == 1.0:
            walk = one_hot(mdp, _towards_the_end(mdp))
            return self._sweep(reward, Chain(mdp, walk, self.solver, work=self.work, check=False).soft_value(reward))
        shift = 0.0 if mdp.terminal.any() else mdp.discount / (1.0 - mdp.discount)
        V = np.zeros(mdp.n_states)
        for _ in range(SWEEPS):
            LV = log_sum_exp(q_values(mdp, reward, V))
            V = LV + shift * 0.5 * float((LV - V).max() + (LV - V).min())
        return V

    def _sweep(self, reward: Floats, V: Floats) -> Floats:
        for _ in range(SWEEPS):
            V = log_sum_exp(q_values(self.mdp, reward, V))
        return V

    def _look(self, reward: Floats, V: Floats) -> _Point:
        Q = q_values(self.mdp, reward, V)
        point = _Point(V, Q, log_sum_exp(Q), self._reward_size)
        if not np.isfinite(point.size):
            raise ValueDoesNotExist(_NO_VALUE)
        return point

    def _newton(self, reward: Floats, V: Floats, chain: Chain | None) -> SoftOptimum:
        self._reward_size = float(np.abs(reward).max(initial=0.0))
        point, newton, chord = self._look(reward, V), 0, 0
        while not self._at_rounding(reward, point):
            if chain is not None and chain.reusable and chord < MAX_NEWTON * (newton + 1):  # theory B2
                trial = self._look(reward, point.V + chain.chord_step(point.residual))
                chord += 1
                quick = _steps_to_rounding(point, trial) <= CHORD_STEPS
                if quick or trial.size < 0.9 * point.size:
                    point, chain = trial, chain if quick else None
                    continue
            if newton == MAX_NEWTON:
                raise ValueDoesNotExist(_NO_VALUE) if self.mdp.discount == 1.0 else SolverFailed(_NO_PROGRESS)
            if newton:  # sweeps carry news one move each, a Newton step carries it only to where it changes the policy
                point = self._look(reward, self._sweep(reward, point.LV))
            chain = Chain(self.mdp, soft_maximum(point.Q)[1], self.solver, work=self.work, check=False)
            trial = self._look(reward, point.V + chain.solve(point.residual))  # theory B1
            newton += 1
            if self.bar is not None:
                self.bar.update(f"residual {trial.size:.0e}")
            if trial.size >= 0.5 * point.size and point.nearly_at_rounding:
                break
            point = trial
        self._require_value(reward, point, chain)
        return self._optimum(point, newton, chord, chain)

    def _at_rounding(self, reward: Floats, point: _Point) -> bool:
        """Whether the residual is what rounding leaves: overall for γ < 1, and in every single state for γ = 1."""
        if not point.at_rounding or self.mdp.discount < 1.0:
            return point.at_rounding
        return bool(np.all(np.abs(point.residual) <= self._rounding(reward, point)))

    def _rounding(self, reward: Floats, point: _Point) -> Floats:
        """(S,): what rounding may leave of Λ(V) − V in each state, from the numbers that were added up there."""
        terms = np.abs(reward) + self.mdp.discount * self.mdp.transitions.expect(np.abs(point.V))
        return 8 * EPS * (np.abs(point.LV) + terms.max(axis=1))

    def _require_value(self, reward: Floats, point: _Point, chain: Chain | None) -> None:
        """At γ = 1 a residual at rounding is not enough: on its way to infinity V climbs while the residual fades.

        There each step still lifts V by about one, so that (I − T^π)⁻¹ times the rounding that hides the residual is
        at least one; it is also how well V is known where it exists.
        """
        if self.mdp.discount == 1.0:
            now = Chain(self.mdp, soft_maximum(point.Q)[1], self.solver, stale=chain, work=self.work, check=False)
            hidden = np.maximum(self._rounding(reward, point), np.abs(point.residual))
            if float(now.solve(hidden).max(initial=0.0)) > 0.3:
                raise ValueDoesNotExist(_NO_VALUE)

    def _optimum(self, point: _Point, newton: int, chord: int, chain: Chain | None) -> SoftOptimum:
        value, policy, log_policy = soft_maximum(point.Q)
        relative = point.size / max(point.scale, EPS)
        found = {"value": value, "q": point.Q, "policy": policy, "log_policy": log_policy, "residual": relative}
        how: dict[str, Any] = {"mdp": self.mdp, "_near": chain, "_solver": self.solver, "_work": self.work}
        return SoftOptimum(**found, newton_steps=newton, chord_steps=chord, **how)


def _steps_to_rounding(point: _Point, trial: _Point) -> float:
    """How many more steps like the one from `point` to `trial` it takes to bring the residual down to rounding."""
    if trial.size >= point.size:
        return np.inf
    if trial.at_rounding:
        return 0.0
    return float(np.log(trial.size / (4 * EPS * trial.scale)) / np.log(point.size / trial.size))


def solve_hard(
    mdp: MDP, reward: Any, solver: str = "auto", max_iter: int = 1_000, progress: bool | None = None
) -> HardOptimum:
    """The hard optimum (theory B4) by policy iteration; ties are split evenly in the policy returned."""
    require_mdp(mdp)
    with Progress("optimum", progress) as bar:
        return _iterate_policies(mdp, as_reward(mdp, reward), solver, max_iter, bar)


def _iterate_policies(mdp: MDP, r: Floats, solver: str, max_iter: int, bar: Progress) -> HardOptimum:
    # where nothing ends, a constant shifts every value alike: without it ties are told apart by smaller numbers
    shift = 0.5 * float(r.max() + r.min()) if mdp.discount < 1.0 and not mdp.terminal.any() else 0.0
    r = r - shift
    choice = _towards_the_end(mdp) if mdp.discount == 1.0 else _greedy_after_sweeps(mdp, r)
    rows = np.arange(mdp.n_states)
    for iteration in range(1, max_iter + 1):
        chain = Chain(mdp, one_hot(mdp, choice), solver, check=False)
        V = chain.solve(np.where(mdp.terminal, 0.0, r[rows, choice]))
        Q = q_values(mdp, r, V)
        slack = 64 * EPS * float(np.abs(V).max(initial=0.0) + np.abs(r).max(initial=0.0))
        better = Q.max(axis=1) > Q[rows, choice] + slack  # strictly: equal actions must not make it cycle
        bar.update(f"{int(better.sum())} states improve")
        if not better.any():
            later = shift / (1.0 - mdp.discount) if shift else 0.0
            return HardOptimum(V + later, Q + later, split_ties(mdp, Q, 1e4 * slack), iteration)
        choice = np.where(better, Q.argmax(axis=1), choice)
    raise SolverFailed(f"policy iteration did not settle within {max_iter} iterations. Raise `max_iter`.")


def one_hot(mdp: MDP, choice: npt.NDArray[np.intp]) -> Floats:
    """The policy that surely takes `choice[s]` in every state s that is not terminal."""
    policy = np.zeros(mdp.feasible.shape)
    policy[np.arange(mdp.n_states), choice] = ~mdp.terminal
    return policy


def split_ties(mdp: MDP, Q: Floats, slack: float) -> Floats:
    """The greedy policy for Q that shares its weight evenly among actions within `slack` of the best."""
    best = (Q >= Q.max(axis=1, keepdims=True) - slack) & mdp.feasible
    return best / np.maximum(best.sum(axis=1, keepdims=True), 1)


def _greedy_after_sweeps(mdp: MDP, r: Floats) -> npt.NDArray[np.intp]:
    V = np.zeros(mdp.n_states)
    for _ in range(SWEEPS):
        V = np.where(mdp.terminal, 0.0, q_values(mdp, r, V).max(axis=1))
    return q_values(mdp, r, V).argmax(axis=1)


def _towards_the_end(mdp: MDP) -> npt.NDArray[np.intp]:
    """A policy that surely ends: wherever it is, its action may lead to a state that is closer to a terminal one."""
    if mdp.cannot_end.any():
        s = int(np.flatnonzero(mdp.cannot_end)[0])
        raise ValueDoesNotExist(
            f"at discount 1 every state must be able to end, but no action leads from {state_in_words(mdp, s)} to a "
            f"terminal state ({how_many(int(mdp.cannot_end.sum()), 'such state')}). Mark terminal states, or use a "
            f"discount below 1.{goals_missing(mdp)}"
        )
    onwards = way_to(mdp.moves, mdp.terminal)[1]
    rows = (np.arange(mdp.n_states)[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).reshape(-1)
    chance = mdp.transitions.matrix[rows, np.repeat(onwards, mdp.n_actions)]
    return np.asarray(chance).reshape(mdp.n_states, mdp.n_actions).argmax(axis=1)


def q_values(mdp: MDP, reward: Floats, V: Floats) -> Floats:
    """Q = r + γ T V (theory V2), −∞ for infeasible actions."""
    Q = mdp.transitions.expect(V)
    Q *= mdp.discount
    Q += reward
    if mdp.masked:
        Q += mdp.log_feasible
    return Q


def log_sum_exp(Q: Floats) -> Floats:
    """log Σ_a exp Q(s, a) over the feasible actions (theory M2); 0 in terminal states, whose Q is −∞ throughout."""
    top, odds = _odds(Q)
    total = odds @ np.ones(Q.shape[1])
    np.log(total, out=total, where=total > 0.0)
    total += top
    return total


def soft_maximum(Q: Floats) -> tuple[Floats, Floats, Floats]:
    """(V, π, log π) with V = log Σ_a exp Q and π = exp(Q − V) (theory P1); log π is −∞ for infeasible actions.

    The largest Q is taken off before anything is summed, so that probabilities sum to one to the last digit even
    where values are in the tens of thousands (γ near 1); adjoint solves would blow up what is missing.
    """
    top, odds = _odds(Q)
    total = odds @ np.ones(Q.shape[1])
    total[total == 0.0] = 1.0  # terminal
    policy = odds / total[:, None]
    np.log(total, out=total)
    return total + top, policy, Q - top[:, None] - total[:, None]


def _odds(Q: Floats) -> tuple[Floats, Floats]:
    """The largest Q(s, ·) (0 where there is none) and exp(Q − it). Column by column: rows are short."""
    top = Q[:, 0].copy()
    for a in range(1, Q.shape[1]):
        np.maximum(top, Q[:, a], out=top)
    top[np.isneginf(top)] = 0.0
    odds = Q - top[:, None]
    np.exp(odds, out=odds)
    return top, odds


def as_reward(mdp: MDP, reward: Any, name: str = "reward") -> Floats:
    """Check a reward of shape (S, A), (S, 1) or (S,); entries of infeasible pairs are ignored and become zero."""
    array = as_floats(reward)
    if array is None:
        remedy = pass_instead(reward, "reward", "true_reward")
        raise InvalidReward(name, "an (S, A) array of numbers", f"{type(reward).__name__}", remedy=remedy)
    if array.shape == (mdp.n_states,):
        array = array[:, None]
    if array.shape not in ((mdp.n_states, 1), mdp.feasible.shape):
        raise InvalidReward(
            name,
            f"shape {mdp.feasible.shape}, ({mdp.n_states}, 1) or ({mdp.n_states},)",
            f"shape {array.shape}",
            remedy="Rewards of a base MDP go through mdp.lift(reward)." if mdp.base is not None else None,
        )
    bad = ~np.isfinite(array) & mdp.feasible
    if bad.any():
        s, a = (int(i) for i in np.argwhere(bad)[0])
        got = np.broadcast_to(array, mdp.feasible.shape)[s, a]
        raise InvalidReward(name, "finite rewards for feasible pairs", got, pair_in_words(mdp, s, a))
    return np.where(mdp.feasible, array, 0.0)


_NO_VALUE = (
    "the soft value does not exist for this reward, for all that float64 can tell: at discount 1 the agent would "
    "rather go on for ever than end. "
    'Make rewards more negative (in a fit: start= with such parameters, or start="ccp"), or use a discount below 1.'
)
_NO_PROGRESS = "Newton's method for the soft value made no progress: the reward is too large for float64."
