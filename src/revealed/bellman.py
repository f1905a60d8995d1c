"""The soft Bellman fixed point (theory V3, B1–B3).

The soft optimum V = Λ(V), Λ(V)(s) = log Σ_a exp(r + γTV)(s, a), is found by Newton's method, which is policy
iteration in the soft sense: V ← V + (I − γT^{π_V})⁻¹(Λ(V) − V). A few relative sweeps come first. Across rewards
(θ in a fit) the value and the factorisation are kept: while steps with the old factorisation shrink the residual fast
they are taken (a chord step costs two triangular solves), and when one does not, it is undone and a new
factorisation is made. Convergence is judged by the residual Λ(V) − V, down to rounding.

Choices follow from differences of values alone, so that the level comes out first (theory B5): where nothing ends, a
constant is not an error, and the residual is judged by its span. Where rounding could show in choices all the same
(very large values, γ very near 1), its effect is estimated (B6), and what float64 cannot tell is refused.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from revealed.chain import (
    MANY,
    MAX_NEWTON,
    NO_PROGRESS,
    NO_VALUE,
    Chain,
    goals_missing,
    most_steps,
    one_hot,
    towards_the_end,
)
from revealed.checks import LARGEST, pass_instead, require_floats, require_option
from revealed.cold_start import SWEEPS, cold_start
from revealed.errors import InvalidReward, SolverFailed, ValueDoesNotExist
from revealed.layers import BackwardInduction, Relative, in_layers
from revealed.levels import (
    ALIKE,
    IDLE,
    PATIENT,
    doubt_of,
    judged_by,
    less_patient,
    level_of,
    shaped,
    surely_known,
    typical,
    without_level,
)
from revealed.linear_solvers import EPS, SOLVERS, Work
from revealed.mdp import MDP, Floats, require_mdp
from revealed.naming import pair_in_words
from revealed.positions import in_order, label_tables, labelled
from revealed.progress import Progress
from revealed.sweeps import log_sum_exp, q_values, soft_maximum, sweep
from revealed.transitions.pattern import ROUGH

MOST_SWEEPS = 200
TINY = sys.float_info.min  # numbers below it have fewer digits than EPS says
CHORD_STEPS = 8  # a factorisation costs about as much as so many chord steps, each of which an adjoint repeats


@dataclass(frozen=True)
class SoftOptimum:
    """The soft optimum of an MDP and an (S, A) reward: behaviour is π(a|s) = exp(Q(s,a) − V(s)).

    `reward` (S, A) is what `rv.solve` was given, also for pairs that the model does not offer. `residual` is
    ‖Λ(V) − V‖∞ relative to the size of V and r; `newton_steps` counts factorisations.
    """

    value: Floats
    q: Floats
    policy: Floats
    log_policy: Floats
    residual: float
    newton_steps: int
    chord_steps: int
    mdp: MDP = field(repr=False)
    relative: Floats = field(repr=False)  # the value up to a constant, all digits of its differences kept
    reward: Floats | None = field(repr=False, default=None, kw_only=True)
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
        return Chain(self.mdp, self.policy, self._solver, self._near, self._work, check=False, systems=MANY)


def solve(mdp: MDP, reward: Any, solver: str = "auto", progress: bool | None = None) -> SoftOptimum:
    """The soft optimum (theory V3) for a reward of shape (S, A), (S, 1) or (S,): `.value`, `.q`, `.policy`.

    `reward` may be a fit: its reward on this model, whatever model it was estimated on (`fit.reward_on(mdp)`). Rewards
    of pairs that the model does not offer may be NaN.
    `progress=None` shows a progress bar on a terminal if solving takes more than two seconds.
    """
    require_mdp(mdp, other=reward, call="solve(mdp, reward)")
    require_option("solver", solver, SOLVERS)
    whole = whole_reward(mdp, reward, largest=LARGEST)
    with Progress("soft optimum", progress) as bar:
        found = SoftBellman(mdp, solver, bar=bar).solve(np.where(mdp.feasible, whole, 0.0))
    return label_tables(replace(found, reward=whole), mdp, ("value", "q", "policy", "log_policy", "relative", "reward"))


@dataclass(frozen=True)
class _Point:
    """A value V, what one sweep makes of it, and how far the two are apart; where nothing ends, but for a constant."""

    V: Floats
    Q: Floats
    LV: Floats
    reward_size: float
    discount: float
    level: float | None  # of the reward, where nothing ends

    @cached_property
    def _change(self) -> Floats:
        return self.LV - self.V

    @property
    def gain(self) -> float:
        """The constant by which Λ(V) − V may differ from zero: (1 − γ) times what V lacks in level."""
        return float(self._change.mean())

    @cached_property
    def residual(self) -> Floats:
        change = self._change
        return change if self.level is None else change - 0.5 * (change.max() + change.min())

    @cached_property
    def choices(self) -> tuple[Floats, Floats, Floats]:
        """The soft maximum of Q, π and log π."""
        return soft_maximum(self.Q)

    @cached_property
    def size(self) -> float:
        return float(np.abs(self.residual).max(initial=0.0))

    @cached_property
    def scale(self) -> float:
        size = 2.0 * float(np.abs(self.LV).max(initial=0.0)) + self.reward_size
        if self.level is None:
            return size
        level = abs(self.level + self.gain) / (1.0 - self.discount)
        return judged_by(self.discount, size, size + 2.0 * level)

    @property
    def at_rounding(self) -> bool:
        return self.size <= 4 * EPS * self.scale + TINY

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
        self._reward_size = self._level = 0.0

    def solve(self, reward: Floats) -> SoftOptimum:
        """Raises `ValueDoesNotExist` where γ = 1 and the value is infinite, `SolverFailed` where float64 is not precise
        enough; results of earlier solves stay valid."""
        if self.mdp.device is not None and self.solver == "auto":
            return self._keep(self._on_device(reward))
        if in_layers(self.mdp, self.solver):
            return self._backwards(reward)
        self._level = level_of(self.mdp, reward)
        reward = without_level(self.mdp, reward, self._level)
        warm, factor = self._start, None
        if self._last is not None:
            warm, factor = self._last.relative, self._factor_at_hand()
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
            raise ValueDoesNotExist(NO_VALUE + goals_missing(self.mdp)) from problem

    def _on_device(self, reward: Floats) -> SoftOptimum:
        """The same by the device that the MDP was placed on, NumPy in and out."""
        from revealed.device_bellman import soft_optimum

        model, warm = self.mdp.on_device, self._start if self._last is None else self._last.relative
        found = soft_optimum(model, model.put(reward), None if warm is None else model.put(warm))
        tables = {name: model.get(getattr(found, name)) for name in ("value", "q", "policy", "log_policy", "relative")}
        how: dict[str, Any] = {"mdp": self.mdp, "_solver": self.solver, "_work": self.work}
        how |= {"residual": found.residual, "newton_steps": found.newton_steps, "chord_steps": found.sweeps}
        return SoftOptimum(**tables, **how)

    @cached_property
    def _induction(self) -> BackwardInduction:
        return BackwardInduction(self.mdp)

    def _backwards(self, reward: Floats) -> SoftOptimum:
        """On a horizon: one sweep a layer, whose residual is nothing, since the next sweep would repeat it."""
        value, q, policy, log_policy, relative = self._induction.soft(reward)
        if not np.isfinite(value).all():
            raise ValueDoesNotExist(NO_VALUE)
        self._require_known(relative, policy, log_policy)
        how: dict[str, Any] = {"mdp": self.mdp, "_solver": self.solver, "_work": self.work}
        how |= {"residual": 0.0, "newton_steps": 0, "chord_steps": 0}
        return SoftOptimum(value, q, policy, log_policy, **how, relative=value)

    def _require_known(self, at: Relative, policy: Floats, log_policy: Floats) -> None:
        """On a horizon: rounding adds up over as many layers as there are, at most."""
        size = 4 * EPS * float(2.0 * np.abs(at.value).max(initial=0.0) + np.abs(at.reward).max(initial=0.0))
        if surely_known(1.0 - 1.0 / (1.0 + (self.mdp.horizon or 0)), size) or surely_known(self.mdp.discount, size):
            return
        chain = Chain(self.mdp, policy, self.solver, work=self.work, check=False)
        doubt = doubt_of(self.mdp, chain, at.reward, at.value, np.zeros(self.mdp.n_states), policy, log_policy)
        if doubt is not None:
            raise doubt

    def _keep(self, optimum: SoftOptimum) -> SoftOptimum:
        self._last = optimum
        return optimum

    @property
    def _last_chain(self) -> Chain | None:
        return None if self._last is None else self._last._near

    def _factor_at_hand(self) -> Chain | None:
        """The newest factorisation: that of the last solution's own chain if one was made since, else what found it."""
        assert self._last is not None
        chain = self._last.__dict__.get("chain", self._last._near)
        return chain.with_factor() if chain is not None and chain.reusable else None

    def _cold_start(self, reward: Floats) -> Floats:
        """Sweeps from zero. At γ = 1 zero may lie far above the optimum, where nobody would ever end; there the start
        is the value of a policy that walks to the end, which lies below it, as do the sweeps from there. Very near 1,
        where nothing ends, it is what agents want who are not quite as patient: differences of values have a limit."""
        mdp = self.mdp
        if mdp.endless and 1.0 - mdp.discount < PATIENT:
            other = mdp.replace(discount=less_patient(mdp.discount))
            try:
                return SoftBellman(other, self.solver, self.work).solve(reward).relative
            except SolverFailed:
                pass
        if mdp.discount == 1.0:
            walk = one_hot(mdp, towards_the_end(mdp))
            value = Chain(mdp, walk, self.solver, work=self.work, check=False).soft_value(labelled(reward, mdp))
            return sweep(mdp, reward, value, SWEEPS)
        return cold_start(mdp, reward)

    @cached_property
    def _between(self) -> int:
        """Sweeps between two factorisations: about as many as take the time of one."""
        one = 2e-9 * (self.mdp.transitions.matrix.nnz + 4 * self.mdp.feasible.size)
        return int(np.clip(self.mdp.structure.step_seconds(self.solver) / one, SWEEPS, MOST_SWEEPS))

    def _look(self, reward: Floats, V: Floats) -> _Point:
        if self.mdp.endless:
            V = V - typical(V)
        Q = q_values(self.mdp, reward, V)
        level = self._level if self.mdp.endless else None
        point = _Point(V, Q, log_sum_exp(Q), self._reward_size, self.mdp.discount, level)
        if not np.isfinite(point.size):
            raise self._lost
        return point

    @property
    def _lost(self) -> Exception:
        """The error of a search that does not converge."""
        return ValueDoesNotExist(NO_VALUE) if self.mdp.discount == 1.0 else SolverFailed(NO_PROGRESS)

    def _newton(self, reward: Floats, V: Floats, chain: Chain | None) -> SoftOptimum:
        """The optimum; once more with its level off where rounding would show in choices otherwise (theory B5)."""
        point, newton, chord, chain = self._descend(reward, V, chain)
        found = self._optimum(point, 0.0, newton, chord, chain)
        doubt = self._doubt(reward, point, found)
        if doubt is not None and self.mdp.ends:
            m = float(np.median(point.V[~self.mdp.terminal]))
            lower = shaped(self.mdp, reward, m)
            point, more, chords, chain = self._descend(lower, np.where(self.mdp.terminal, 0.0, point.V - m), chain)
            found = self._optimum(point, m, newton + more, chord + chords, chain)
            doubt = self._doubt(lower, point, found)
        if doubt is not None:
            raise doubt
        return found

    def _descend(self, reward: Floats, V: Floats, chain: Chain | None) -> tuple[_Point, int, int, Chain | None]:
        """The fixed point to rounding, how many factorisations and chord steps it took, and the last chain."""
        self._reward_size = float(np.abs(reward).max(initial=0.0))
        point, newton, chord, idle = self._look(reward, V), 0, 0, 0
        before, last = point, self._last_chain
        while not self._at_rounding(reward, point):
            if chain is not None and chain.reusable and chord < MAX_NEWTON * (newton + 1):  # theory B2
                trial = self._look(reward, point.V + chain.chord_step(point.residual))
                chord += 1
                quick = _steps_to_rounding(point, trial) <= CHORD_STEPS
                if quick or trial.size < 0.9 * point.size:
                    point, chain = trial, chain if quick else None
                    continue
            if newton == most_steps(self.mdp.n_states, self.mdp.discount):
                raise self._lost
            if newton:  # a sweep carries changes one move on, a Newton step only to where they change the policy
                point = self._look(reward, sweep(self.mdp, reward, point.LV, self._between))
            last = chain = Chain(self.mdp, point.choices[1], self.solver, None, self.work, False, ROUGH, near=last)
            accuracy = _accuracy(point, before)
            trial = self._look(reward, point.V + chain.step(point.residual, accuracy))  # theory B1
            newton, before = newton + 1, point
            if self.bar is not None:
                self.bar.update(f"residual {trial.size:.0e}")
            if trial.size >= 0.5 * point.size and point.nearly_at_rounding:
                # a step that overshoots is not a floor of rounding: one is where choices stay as they are, too
                idle += 1
                if idle >= IDLE or _alike(point, trial):
                    break
            point = trial
        self._require_value(reward, point, chain)
        return point, newton, chord, chain

    def _at_rounding(self, reward: Floats, point: _Point) -> bool:
        """Whether the residual is what rounding leaves: overall where that cannot show in choices, and in every single
        state elsewhere."""
        if not point.at_rounding or self._surely_known(point):
            return point.at_rounding
        residual, noise = point.residual, self._rounding(reward, point)
        if point.level is None:
            return bool(np.all(np.abs(residual) <= noise))
        return bool((residual - noise).max() <= (residual + noise).min())  # one constant explains them all

    def _surely_known(self, point: _Point) -> bool:
        """Whether the contraction's bound is enough, which costs nothing to look at."""
        return surely_known(self.mdp.discount, point.size + 4 * EPS * point.scale)

    def _rounding(self, reward: Floats, point: _Point) -> Floats:
        """(S,): what rounding may leave of Λ(V) − V in each state, from the numbers that were added up there."""
        terms = np.abs(reward) + self.mdp.discount * self.mdp.transitions.expect(np.abs(point.V))
        ends = np.maximum(np.abs(point.LV), np.abs(point.V))  # where nothing ends they differ by a constant
        return 8 * EPS * (ends + (point.choices[1] * terms).sum(axis=1)) + TINY

    def _doubt(self, reward: Floats, point: _Point, found: SoftOptimum) -> SolverFailed | None:
        """Why choices are not known to `TOLERANCE`, where they are not (theory B6)."""
        if self._surely_known(point):
            return None
        return doubt_of(self.mdp, found.chain, reward, point.V, point.residual, *point.choices[1:])

    def _require_value(self, reward: Floats, point: _Point, chain: Chain | None) -> None:
        """At γ = 1 a residual at rounding is not enough: on its way to infinity V climbs while the residual fades.

        There each step still lifts V by about one, so that (I − T^π)⁻¹ times the rounding that hides the residual is
        at least one; it is also how well V is known where it exists.
        """
        if self.mdp.discount == 1.0:
            now = Chain(self.mdp, point.choices[1], self.solver, stale=chain, work=self.work, check=False)
            hidden = np.maximum(self._rounding(reward, point), np.abs(point.residual))
            if float(now._apply(hidden, False).max(initial=0.0)) > 0.3:
                raise ValueDoesNotExist(NO_VALUE)

    def _optimum(self, point: _Point, m: float, newton: int, chord: int, chain: Chain | None) -> SoftOptimum:
        """With the level restored: m in every non-terminal state, or the constant that is free where nothing ends."""
        value, policy, log_policy = point.choices
        if self.mdp.endless:
            m = (self._level + self.mdp.discount * point.gain) / (1.0 - self.mdp.discount)
        if m:
            value = np.where(self.mdp.terminal, 0.0, value + m)
        q, relative = (point.Q + m if m else point.Q), point.V if self.mdp.endless else value
        found = {"value": value, "q": q, "policy": policy, "log_policy": log_policy, "relative": relative}
        how: dict[str, Any] = {"mdp": self.mdp, "_near": chain, "_solver": self.solver, "_work": self.work}
        size = point.size / max(point.scale, EPS)
        return SoftOptimum(**found, residual=size, newton_steps=newton, chord_steps=chord, **how)


def _alike(point: _Point, trial: _Point) -> bool:
    """Whether two points make the same choices."""
    return bool(np.all(np.abs(point.choices[1] - trial.choices[1]) <= ALIKE))


def _accuracy(point: _Point, before: _Point) -> float:
    """How well a step needs to be known: the better, the faster steps have become; never better than rounding."""
    size = max(point.size, EPS * EPS)
    least = 0.4 * EPS * point.scale / size
    return float(np.clip(0.1 * size / max(before.size, size), min(max(least, 1e-13), 1e-2), 1e-2))


def _steps_to_rounding(point: _Point, trial: _Point) -> float:
    """How many more steps like the one from `point` to `trial` it takes to bring the residual down to rounding."""
    if trial.size >= point.size:
        return np.inf
    if trial.at_rounding:
        return 0.0
    return float(np.log(trial.size / (4 * EPS * trial.scale)) / np.log(point.size / trial.size))


def as_reward(mdp: MDP, reward: Any, name: str = "reward", largest: float = sys.float_info.max) -> Floats:
    """Check a reward of shape (S, A), (S, 1) or (S,), or a fit's, brought into the order of the MDP where it has
    labels; entries of infeasible pairs are ignored and become zero."""
    return np.where(mdp.feasible, whole_reward(mdp, reward, name, largest), 0.0)


def numbers_of(reward: Any) -> str | None:
    """The remedy for an object that contains or computes rewards instead of being them."""
    if hasattr(reward, "n_params") and hasattr(reward, "value"):
        return "Pass its rewards at some parameters: reward.value(theta)."
    return pass_instead(reward, "reward", "true_reward")


def whole_reward(mdp: MDP, reward: Any, name: str = "reward", largest: float = sys.float_info.max) -> Floats:
    """(S, A): the same with what was given for infeasible pairs, which another model may offer."""
    if callable(getattr(reward, "reward_on", None)) and not isinstance(reward, type):
        reward = reward.reward_on(mdp)
    remedy = numbers_of(reward)
    reward = in_order(mdp, reward, name, error=InvalidReward, part=True)
    array = require_floats(name, reward, "an (S, A) array of numbers", InvalidReward, remedy)
    if array.shape == (mdp.n_states,):
        array = array[:, None]
    if array.shape not in ((mdp.n_states, 1), mdp.feasible.shape):
        raise InvalidReward(
            name,
            f"shape {mdp.feasible.shape}, ({mdp.n_states}, 1) or ({mdp.n_states},)",
            f"shape {array.shape}",
            remedy="Lift rewards of the base MDP with mdp.lift(reward)." if mdp.base is not None else None,
        )
    bad = ~(np.abs(array) <= largest) & mdp.feasible
    if bad.any():
        s, a = (int(i) for i in np.argwhere(bad)[0])
        got = np.broadcast_to(array, mdp.feasible.shape)[s, a]
        expected = f"rewards of at most {largest:g}" if np.isfinite(got) else "finite rewards"
        raise InvalidReward(name, f"{expected} for feasible pairs", got, pair_in_words(mdp, s, a))
    return np.broadcast_to(array, mdp.feasible.shape)
