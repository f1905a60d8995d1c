"""The hard optimum V(s) = max_a (r + γTV)(s, a): no shocks (theory B4).

Modified policy iteration. A look at all actions gives the greedy policy, and sweeps V ← Πr + γT^πV, which read the
rows of the chosen actions only, carry its value along the chain. Where nothing ends, the level is kept out (theory B5),
so that only differences between states are left to find: on graphs without locality some eighty sweeps reach rounding,
and nothing is ever factored. Where changes travel far and slowly, a policy is evaluated
exactly once sweeps have cost as much as that would. What is returned is exact to rounding: no action improves on it.
On a finite horizon one backward pass does it all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from revealed.bellman import as_reward
from revealed.chain import Chain, one_hot, towards_the_end
from revealed.checks import LARGEST, Bools, require_count, require_option
from revealed.errors import SolverFailed, ValueDoesNotExist
from revealed.layers import BackwardInduction, in_layers
from revealed.levels import TOLERANCE, level_of, rounding_of, spread_of, truly_tied, without_level
from revealed.linear_solvers import EPS, SOLVERS
from revealed.mdp import MDP, Floats, require_mdp
from revealed.positions import label_tables
from revealed.progress import Progress
from revealed.sweeps import RELATIVE, Choice, centred, greedy, q_values
from revealed.transitions import can_reach
from revealed.voices import named

# Multiples of rounding, relative to the size of values and rewards: what sweeps may leave, what counts as better, and
# what may be a tie, at which a second look is taken (theory B6).
SETTLED, GAIN, TIES = 8, 64, 640_000

FEW = 200  # states up to which every policy is evaluated exactly: that is quicker than many small steps
AT_A_TIME = 4  # sweeps from one check of the error to the next
PER_POLICY = 20  # most sweeps with one policy, unless they lead to the end
ENOUGH = 0.03  # share of a policy's error that is left when the next policy is looked for
UNSEEN = 640  # sweeps before the graph is looked at, which costs about as much
FEWEST, MOST = 100, 2_000  # sweeps between two exact evaluations


@dataclass(frozen=True)
class HardOptimum:
    """The ordinary optimum (no shocks); ties in the greedy policy are split evenly. `iterations` counts policies.

    `shortfall` (S, A) is what an action loses against the best one, zero for ties, ∞ where infeasible; where nothing
    ends, all digits of it, however large values are.
    """

    value: Floats
    q: Floats
    policy: Floats
    iterations: int
    shortfall: Floats = field(repr=False)

    def __repr__(self) -> str:
        return f"HardOptimum({self.value.size} states, {self.iterations} iterations)"


def solve_hard(
    mdp: MDP, reward: Any, solver: str = "auto", max_iter: int = 1_000, progress: bool | None = None
) -> HardOptimum:
    """The hard optimum (theory B4) by policy iteration; ties are split evenly in the policy returned."""
    require_mdp(mdp, other=reward, call="solve_hard(mdp, reward)")
    require_option("solver", solver, SOLVERS)
    require_count("max_iter", max_iter)
    table = as_reward(mdp, reward, largest=LARGEST)
    return label_tables(_optimum(mdp, table, solver, max_iter, progress), mdp, ("value", "q", "policy"))


def _optimum(mdp: MDP, table: Floats, solver: str, max_iter: int, progress: bool | None) -> HardOptimum:
    if in_layers(mdp, solver):
        return _backwards(mdp, table)
    with Progress("optimum", progress) as bar:
        try:
            return PolicyIteration(mdp, table, solver, max_iter, bar, sweeps=mdp.n_states > FEW).solve()
        except ValueDoesNotExist:
            if mdp.discount < 1.0 or mdp.cannot_end.any():
                raise
            # a value that is not yet known may make a free loop look good: exact values tell it from a tie
            return PolicyIteration(mdp, table, solver, max_iter, bar, sweeps=False).solve()


def _backwards(mdp: MDP, reward: Floats) -> HardOptimum:
    """On a horizon: one look a layer, from the last decision to the first."""
    V, Q, at, relative = BackwardInduction(mdp).hard(reward)
    short = _shortfall(mdp, relative)
    best = tied(mdp, at.reward, at.value, short, "auto", None)
    return HardOptimum(V, Q, split_ties(best), 1, np.where(best, 0.0, short))


@dataclass
class _Sweeps:
    """V ← b + Pv with P = γT^π and b = Πr, as often as it pays; `error` bounds ‖b + PV − V‖∞, `rate` is its share that
    a sweep leaves."""

    apply: Callable[[Floats], Floats]
    shift: float
    V: Floats
    error: float
    rate: float = 1.0

    def run(self, target: float, most: int) -> int:
        """Sweep until the error is below the target; returns how many sweeps it took."""
        first, done = self.error, 0
        while done < most and self.error > target:
            for _ in range(AT_A_TIME - 1):
                self.V = self.apply(self.V)
            self.step(self.apply(self.V))
            done += AT_A_TIME
        if done and first > 0.0:
            self.rate = float((self.error / first) ** (1.0 / done))
        return done

    def step(self, W: Floats) -> None:
        """Go on to W = b + PV, without its level where nothing ends."""
        self.V, self.error = centred(self.V, W, self.shift)
        if self.shift:
            self.V -= self.V[0]


class PolicyIteration:
    """Looks at all actions, then evaluates the better policy: by sweeps, or exactly where these take too long.

    `sweeps=False` evaluates every policy exactly.
    """

    def __init__(
        self, mdp: MDP, reward: Floats, solver: str, max_iter: int, bar: Progress, sweeps: bool = True
    ) -> None:
        self.mdp, self.solver, self.max_iter, self.bar, self.sweeps = mdp, solver, max_iter, bar, sweeps
        # where nothing ends, a constant shifts every value alike: without it ties are told apart by smaller numbers
        self.level = level_of(mdp, reward)
        self.r = without_level(mdp, reward, self.level)
        self.shift = RELATIVE if mdp.endless else 0.0
        self.reward_size = float(np.abs(self.r).max(initial=0.0))
        self.first_rows = np.arange(mdp.n_states) * mdp.n_actions
        self.left = UNSEEN
        self.chain: Chain | None = None

    def solve(self) -> HardOptimum:
        V, choice = self._start()
        exact, rate = False, None
        for iteration in range(1, self.max_iter + 1):
            unit = EPS * (float(np.abs(V).max(initial=0.0)) + self.reward_size)
            # strictly better: equal actions must not make it cycle
            before = choice
            top, choice, gains = greedy(self.mdp, self.r, V, choice, GAIN * unit)
            if self.mdp.discount == 1.0 and gains and not self.sweeps:
                choice, gains = self._that_ends(V, before, choice, TIES * unit)
            self.bar.update(f"{gains} states improve")
            if not gains and (exact or self._settled(V, top, SETTLED * unit)):
                return self._optimum(V, choice, iteration)
            V, exact, rate = self._evaluate(V, choice, top, SETTLED * unit, None if gains else rate)
        raise SolverFailed(
            f"policy iteration did not settle within {self.max_iter} iterations. Raise `{named('max_iter')}`."
        )

    def _that_ends(self, V: Floats, before: Choice, choice: Choice, tie: float) -> tuple[Choice, int]:
        """The better policy, and in how many states it is. Where it would never end, a loop that costs nothing looked
        better by rounding alone, of which a long walk gathers much: there the old choice stays, as in a tie."""
        stuck = np.flatnonzero(~can_reach(self.mdp.transitions.mix(one_hot(self.mdp, choice)), self.mdp.terminal))
        if stuck.size:
            Q = q_values(self.mdp, self.r, V)
            tied = stuck[Q[stuck, choice[stuck]] <= Q[stuck, before[stuck]] + tie]
            choice[tied] = before[tied]
        return choice, int(np.count_nonzero(choice != before))

    def _settled(self, V: Floats, top: Floats, rounding: float) -> bool:
        """Whether V is a fixed point to rounding; at γ = 1 only an exact evaluation can tell."""
        change = np.where(self.mdp.terminal, 0.0, top - V) if self.mdp.masked else top - V
        change = change - 0.5 * (change.max() + change.min()) if self.shift else change
        return self.mdp.discount < 1.0 and float(np.abs(change).max(initial=0.0)) <= rounding

    def _start(self) -> tuple[Floats, Choice]:
        """Zero and no policy yet; at γ = 1 a policy that surely ends, whose value lies below the optimum."""
        if self.mdp.discount < 1.0:
            return np.zeros(self.mdp.n_states), np.where(self.mdp.terminal, 0, -1)
        choice = towards_the_end(self.mdp)
        return self._exactly(choice), choice

    def _evaluate(
        self, V: Floats, choice: Choice, top: Floats, rounding: float, rate: float | None
    ) -> tuple[Floats, bool, float]:
        """A value of the policy, whether it is exact, and the share of its error that a sweep leaves.

        `rate` is that share where sweeps have this policy already: they go on if that leads to rounding soon.
        """
        if self.left <= 0 or not self.sweeps or (rate is not None and self.mdp.discount == 1.0):
            return self._exactly(choice), True, 1.0
        runs = _Sweeps(self._policy_operator(choice), self.shift, V, np.inf)
        runs.step(np.where(self.mdp.terminal, 0.0, top) if self.mdp.masked else top)
        if rate is None:
            self.left -= runs.run(max(ENOUGH * runs.error, rounding), PER_POLICY)
            return runs.V, False, runs.rate
        needed = np.log(0.5 * rounding / max(runs.error, rounding)) / np.log(rate) if 0.0 < rate < 1.0 else 0.0
        if rate >= 1.0 or needed > self.left:
            return self._exactly(choice), True, 1.0
        self.left -= runs.run(0.5 * rounding, int(needed) + 2 * AT_A_TIME)
        return runs.V, False, runs.rate

    def _policy_operator(self, choice: Choice) -> Callable[[Floats], Floats]:
        """V ↦ Πr + γT^πV; an action takes its rows of T, so that nothing is merged."""
        rows = self.first_rows + choice
        P, b = self.mdp.transitions.matrix[rows], self.r.reshape(-1)[rows]
        P.data *= self.mdp.discount

        def apply(V: Floats) -> Floats:
            W = P @ V
            W += b
            return W

        return apply

    def _exactly(self, choice: Choice) -> Floats:
        """V^π by a linear solve, which may lean on the factorisation of the policy before; where nothing ends, up to a
        constant."""
        self.chain = Chain(self.mdp, one_hot(self.mdp, choice), self.solver, stale=self.chain, check=False)
        self.left = self._between
        payoff = np.where(self.mdp.terminal, 0.0, self.r.reshape(-1)[self.first_rows + choice])
        return self.chain.solve_relative(payoff)[0]

    @cached_property
    def _between(self) -> int:
        """Sweeps between two exact evaluations: about as many as take the time of one."""
        one = 1e-5 + 1e-9 * (self.mdp.transitions.matrix.nnz / self.mdp.n_actions + 4 * self.mdp.n_states)
        return int(np.clip(self.mdp.structure.step_seconds(self.solver) / one, FEWEST, MOST))

    def _optimum(self, V: Floats, choice: Choice, iterations: int) -> HardOptimum:
        Q = q_values(self.mdp, self.r, V)
        short = _shortfall(self.mdp, Q)
        best = tied(self.mdp, self.r, V, short, self.solver, choice)
        if self.mdp.endless:
            gain, left = float(np.mean(Q.max(axis=1) - V)), 1.0 - self.mdp.discount
            V, Q = V + (self.level + gain) / left, Q + (self.level + self.mdp.discount * gain) / left
        return HardOptimum(V, Q, split_ties(best), iterations, np.where(best, 0.0, short))


def tied(mdp: MDP, reward: Floats, V: Floats, short: Floats, solver: str, choice: Choice | None) -> Bools:
    """(S, A): actions that are as good as the best one. What rounding of a long sum could make better or worse is
    looked at again, with the value of the policy `choice` solved for (None where V is exact), and its errors estimated
    (theory B6)."""
    unit = EPS * float(np.abs(V).max(initial=0.0) + np.abs(reward).max(initial=0.0))
    near = short <= TIES * unit
    if not np.any(np.count_nonzero(near, axis=1) > 1):
        return near
    own = 0.5 * GAIN * rounding_of(mdp, reward, V)
    doubtful = near & ((short > own) | (own > TOLERANCE * spread_of(mdp, reward)))
    if not doubtful.any():
        return near
    policy = one_hot(mdp, short.argmin(axis=1) if choice is None else choice)
    try:
        chain = Chain(mdp, policy, solver, check=False)
        if choice is not None:
            V = chain.solve_relative(np.sum(policy * reward, axis=1))[0]
            short = _shortfall(mdp, q_values(mdp, reward, V))
    except (SolverFailed, ValueDoesNotExist):
        return near
    return truly_tied(mdp, chain, reward, V, policy, near, short)


def _shortfall(mdp: MDP, Q: Floats) -> Floats:
    """(S, A): the largest Q of a state less each; ∞ where infeasible."""
    with np.errstate(invalid="ignore"):
        short = Q.max(axis=1, keepdims=True) - Q
    short[np.isnan(short)] = np.inf  # terminal states
    return short


def split_ties(best: Bools) -> Floats:
    """The policy that shares its weight evenly among the best actions (S, A) of a state."""
    return best / np.maximum(best.sum(axis=1, keepdims=True), 1)
