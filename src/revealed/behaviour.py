"""What a model and a reward imply (theory V3, C2, L1), and how it moves with their parameters (theory L2, L3).

Behaviour is the soft optimum: choice probabilities, values, visits, shares of actions, welfare. One derivative feeds
all others: F = dQ*/dx (theory V5), where a change of T acts as a change γ(∂T/∂ψ)V of the reward. Then dπ = π(F − F̄)
and dV = F̄; visits follow by one solve with the transpose for all parameters together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.bellman import SoftBellman, SoftOptimum
from revealed.checks import Floats, frozen
from revealed.demonstrations import Demonstrations
from revealed.long_run import LongRun, long_run
from revealed.mdp import MDP
from revealed.positions import label_tables
from revealed.simulation import simulate
from revealed.slopes import mean_features
from revealed.transitions import TransitionSlopes

QUANTITIES = ("policy", "value", "q", "occupancy", "long_run", "frequencies", "welfare")
OVERALL = ("frequencies", "welfare")  # those that are not one number per state


@dataclass(frozen=True, eq=False)
class Quantities:
    """One array per quantity: levels, changes, standard errors or bounds.

    `policy` and `q` (S, A); `value` (S,) is V*; `occupancy` (S,) expected discounted visits from the start
    distribution; `long_run` (S,) the share of time in each state, or expected visits of one episode where decisions end
    with probability one; `frequencies` (A,) the share of each action among all decisions in the long run; `welfare` is
    p₀·V*, in units of the shocks (scale 1, centred): expected discounted rewards plus what agents gain by choosing
    after they see their shocks.
    """

    policy: Floats = field(repr=False)
    value: Floats = field(repr=False)
    q: Floats = field(repr=False)
    occupancy: Floats = field(repr=False)
    long_run: Floats = field(repr=False)
    frequencies: Floats
    welfare: float


@dataclass(frozen=True, eq=False)
class Banded(Quantities):
    """Quantities with standard errors `se` and bounds `lower` and `upper`, each of the same form.

    Bounds are pointwise: they hold for each number separately. NaN where they are unknown, or without bands.
    """

    se: Quantities = field(repr=False)
    lower: Quantities = field(repr=False)
    upper: Quantities = field(repr=False)


@dataclass(frozen=True, eq=False)
class Behaviour(Banded):
    """Behaviour of agents who solve `mdp` with rewards `reward` (S, A), which are those of all pairs, offered or not;
    `start` (S,) is where they begin, and `begins` says in words which start that is: welfare and occupancy depend on
    it.

    `ends` says whether decisions end with probability one; `long_run` then counts the visits of an episode.
    """

    mdp: MDP = field(kw_only=True)
    reward: Floats = field(kw_only=True, repr=False)
    start: Floats = field(kw_only=True, repr=False)
    begins: str = field(kw_only=True)
    ends: bool = field(kw_only=True)

    def __post_init__(self) -> None:
        label_tables(self, self.mdp, ("policy", "value", "q", "occupancy", "long_run", "reward", "start"))
        frozen(self.frequencies)

    def simulate(self, n: int, length: int, seed: int | None = None, initial: Any = None) -> Demonstrations:
        """`n` trajectories of at most `length` decisions; starts come from `initial`, else from `start`.

        They carry the labels of the model, so that `to_frame()` shows them.
        """
        demos = simulate(self.mdp, self.policy, n, length, seed, self.start if initial is None else initial)
        return replace(demos, state_labels=self.mdp.state_labels, action_labels=self.mdp.action_labels)


@dataclass(frozen=True, eq=False)
class Solved:
    """The soft optimum of one reward, and what follows from it when it is asked for."""

    mdp: MDP
    reward: Floats
    start: Floats
    optimum: SoftOptimum
    solver: str = "auto"

    @property
    def policy(self) -> Floats:
        return self.optimum.policy

    @property
    def value(self) -> Floats:
        return self.optimum.value

    @property
    def q(self) -> Floats:
        return self.optimum.q

    @cached_property
    def occupancy(self) -> Floats:
        return np.maximum(self.optimum.chain.backward(self.start), 0.0)  # C2

    @cached_property
    def run(self) -> LongRun:
        return long_run(self.mdp, self.policy, self.start, self.solver)

    @property
    def long_run(self) -> Floats:
        return self.run.visits

    @cached_property
    def decisions(self) -> float:
        """Per episode; one where nothing ends."""
        return float(self.long_run[~self.mdp.terminal].sum())

    @cached_property
    def frequencies(self) -> Floats:
        made = self.long_run @ self.policy
        return made / self.decisions if self.decisions > 0.0 else np.full_like(made, np.nan)

    @property
    def welfare(self) -> float:
        return float(self.start @ self.value)

    def derivatives(
        self, d_reward: Floats, d_transitions: TransitionSlopes | Sequence[sp.csr_array] = ()
    ) -> Derivatives:
        """Along the columns of ∂r/∂x (S, A, K), then along ∂T/∂ψ: by its entries, or one sparse (S*A, S) each."""
        if not isinstance(d_transitions, TransitionSlopes):
            d_transitions = TransitionSlopes.of(d_transitions, (self.mdp.feasible.size, self.mdp.n_states))
        return Derivatives(self, d_reward, d_transitions)

    def overall_slopes(self, moves: TransitionSlopes) -> Overall:
        """Quantities that are single numbers, along any number of ∂T/∂ψ: some solves with the transpose per number
        (theory L2) instead of some per parameter."""
        nobody = np.zeros_like(self.policy)
        going = (~self.mdp.terminal).astype(np.float64)
        shares = []
        for a, share in enumerate(self.frequencies):
            own = nobody.copy()
            own[:, a] = self.long_run / self.decisions
            shares.append(self._pulled(moves, own, self.run.pull((self.policy[:, a] - share * going) / self.decisions)))
        welfare = self._pulled(moves, nobody, [], self.start)
        direct: Any = abs(self.mdp.discount * moves.times(self.value)).max(axis=0)
        return Overall(np.array(shares), welfare, direct.toarray().reshape(-1))

    def _pulled(self, moves: TransitionSlopes, of_policy: Floats, of_chain: Any, of_value: Any = 0.0) -> Floats:
        """(L,): ⟨A, dπ⟩ + ⟨B, dV⟩ + Σ wᵀ dT^π x along each ψ. Through choices dT^π is dπ Tx, and dπ = π(F − F̄) with
        F = J + γT dV, dV = F̄ (V5), J = γ(∂T/∂ψ)V; so that all of it is ⟨Y, J⟩ with Y = X + π ⊙ λ, as in (G2, G3)."""
        mdp, pi, direct = self.mdp, self.policy, np.zeros(moves.shape[2])
        for w, x in of_chain:
            of_policy = of_policy + w[:, None] * mdp.transitions.expect(x)
            direct += moves.paired((w[:, None] * pi).reshape(-1), x)
        X = of_policy * pi
        ahead = mdp.discount * mdp.transitions.push(X) - X.sum(axis=1) + of_value
        Y = X + pi * self.optimum.chain.backward(ahead)[:, None]
        return direct + mdp.discount * moves.paired(Y.reshape(-1), self.value)

    def behaviour(self, bands: dict[str, Quantities], begins: str) -> Behaviour:
        """What is shown; `bands` holds se, lower and upper, `begins` says which start it is."""
        told: dict[str, Any] = {name: getattr(self, name) for name in QUANTITIES}
        told |= {"mdp": self.mdp, "reward": self.reward, "start": self.start, "ends": self.run.ends} | bands
        return Behaviour(**told, begins=begins)


@dataclass(frozen=True, eq=False)
class Overall:
    """Derivatives of `frequencies` (A, L) and `welfare` (L,); `size` (L,) is how far each parameter by itself moves the
    value of an action."""

    frequencies: Floats
    welfare: Floats
    size: Floats

    def some(self, begin: int, end: int) -> Overall:
        return Overall(self.frequencies[:, begin:end], self.welfare[begin:end], self.size[begin:end])


def solve_behaviour(bellman: SoftBellman, reward: Floats, start: Floats) -> Solved:
    """The soft optimum by a solver that keeps what it knows from reward to reward; `reward` (S, A) is checked."""
    optimum = bellman.solve(np.where(bellman.mdp.feasible, reward, 0.0))
    return Solved(bellman.mdp, reward, start, optimum, bellman.solver)


class Derivatives:
    """Derivatives of every quantity, the last axis over the M parameters; each computed when asked for."""

    def __init__(self, at: Solved, d_reward: Floats, d_transitions: TransitionSlopes) -> None:
        self.at, self._moves = at, d_transitions
        self._first = d_reward.shape[2]  # of the columns that move T
        V = at.optimum.relative  # rows of ∂T sum to zero: its level has no part in it
        through_T = at.mdp.discount * d_transitions.times(V).toarray().reshape(*at.policy.shape, -1)
        self._direct = np.where(at.mdp.feasible[:, :, None], np.concatenate([d_reward, through_T], axis=2), 0.0)

    @cached_property
    def _relative(self) -> tuple[Floats, Any]:
        return self.at.optimum.chain.solve_relative(np.einsum("sa,sam->sm", self.at.policy, self._direct))  # V5

    @cached_property
    def _level(self) -> Any:
        """(M,): what is missing to values where nothing ends (theory B5)."""
        return self._relative[1] / (1.0 - self.at.mdp.discount) if self.at.mdp.endless else 0.0

    @cached_property
    def value(self) -> Floats:
        return self._relative[0] + self._level

    @cached_property
    def _q(self) -> Floats:
        mdp = self.at.mdp
        return self._direct + mdp.discount * mdp.transitions.expect(self._relative[0])

    @property
    def q(self) -> Floats:
        mdp = self.at.mdp
        return np.where(mdp.feasible[:, :, None], self._q + mdp.discount * self._level, 0.0)

    @cached_property
    def policy(self) -> Floats:
        mean = np.einsum("sa,sam->sm", self.at.policy, self._q)
        return self.at.policy[:, :, None] * (self._q - mean[:, None, :])

    @cached_property
    def occupancy(self) -> Floats:
        return self.at.optimum.chain.solve_balanced(self.at.mdp.discount * self.push(self.at.occupancy))

    @cached_property
    def long_run(self) -> Floats:
        return self.at.run.derivative(self)

    @cached_property
    def frequencies(self) -> Floats:
        at, dm = self.at, self.long_run
        made = at.policy.T @ dm + np.einsum("s,sam->am", at.long_run, self.policy)
        more = dm[~at.mdp.terminal].sum(axis=0)
        return (made - np.outer(at.frequencies, more)) / at.decisions

    @cached_property
    def welfare(self) -> Floats:
        return self.at.start @ self.value

    def expect(self, x: Floats) -> Floats:
        """dT^π x, through the choices and through T."""
        out = np.einsum("sam,sa->sm", self.policy, self.at.mdp.transitions.expect(x))
        out[:, self._first :] += mean_features(self._moves.times(x), self.at.policy)
        return out

    def push(self, w: Floats) -> Floats:
        """wᵀdT^π, through the choices and through T."""
        mdp = self.at.mdp
        out = mdp.transitions.matrix.T @ (w[:, None, None] * self.policy).reshape(mdp.feasible.size, -1)
        out[:, self._first :] += self._moves.push((w[:, None] * self.at.policy).reshape(-1)).toarray()
        return out
