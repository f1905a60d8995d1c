"""What the data alone say about the choice of a method: how well π̂_E is covered, and how precise it is beside the
feature counts.

The paper's argument (its section on the suitability of methods): MCE-IRL = NFXP sees the data through expected feature
counts, or reward gradients where the reward is not linear; CCP and NPL see them through π̂_E, state by state. Which of
the two is better known is a property of data and features, and is measured here by resampling agents.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.bootstrap import draw_weights
from revealed.chain import Chain
from revealed.coverage import expert_occupancy
from revealed.demonstrations import Demonstrations
from revealed.errors import RevealedError
from revealed.estimation import Run
from revealed.first_step import Frequency, Kernel, Logit, estimate_policy, step_named
from revealed.mdp import Floats
from revealed.positions import labelled
from revealed.rewards.base import is_linear

GROUPS = 50  # into which the decisions of a single agent are split, to be resampled


@dataclass(frozen=True, eq=False)
class Units:
    """What is resampled: the agents, or, of a single agent, groups of its decisions as if they were independent.

    `table` sparse (U, S*A) has a row of counts per unit, in an order that depends on what they did alone: agents that
    are shuffled or renamed are resampled alike. `place` (U,) tells which agent a row is.
    """

    table: sp.csr_array = field(repr=False)
    demos: Demonstrations = field(repr=False)
    place: Any = field(repr=False)
    kind: str

    @property
    def n(self) -> int:
        return int(self.table.shape[0])

    @property
    def sizes(self) -> Floats:
        """(U,): decisions of each unit."""
        ones: Floats = np.ones(self.table.shape[1])
        return np.asarray(self.table @ ones, dtype=np.float64)

    def draw(self, seed: int, replication: int) -> Floats:
        """(U,): how often each unit was drawn."""
        return draw_weights(self.n, seed, replication)

    def counts(self, weights: Floats) -> Floats:
        """(S, A): visits with so many copies of each unit."""
        return np.asarray(self.table.T @ weights).reshape(self.demos.n_states, self.demos.n_actions)

    def agent_weights(self, weights: Floats) -> Floats:
        """(N,): the same draw in the order of the data."""
        given = np.empty(self.n)
        given[self.place] = weights
        return given

    def sample(self, weights: Floats) -> Demonstrations:
        if self.kind == "agents":
            return self.demos._reweighted(self.agent_weights(weights))
        return Demonstrations.from_counts(labelled(self.counts(weights), self.demos), starts=self.demos.starts)


def make_units(demos: Demonstrations, seed: int) -> Units:
    """Agents where there are several, else groups of decisions; weights of agents stay what they are."""
    if demos.n_agents > 1:
        table = sp.csr_array(demos.by_agent)
        key = table @ np.random.default_rng(0).random(table.shape[1])  # the same for the same decisions alone
        order = np.argsort(key, kind="stable")
        return Units(sp.csr_array(table[order]), demos, order, "agents")
    counts = np.rint(demos.counts.reshape(-1)).astype(np.int64)
    seen = np.flatnonzero(counts)
    n = max(1, min(GROUPS, int(counts.sum())))
    split = np.random.default_rng([seed, n]).multinomial(counts[seen], np.full(n, 1.0 / n))
    rows, columns = np.nonzero(split.T)
    table = sp.coo_array((split.T[rows, columns].astype(np.float64), (rows, seen[columns])), shape=(n, counts.size))
    return Units(sp.csr_array(table), demos, np.arange(n), "decisions")


@dataclass(frozen=True)
class Precision:
    """Relative standard errors: of expected feature counts (or reward gradients), and of π̂_E. NaN where unknown."""

    features: float
    policy: float
    replications: int

    @property
    def ratio(self) -> float:
        return self.features / self.policy if self.policy > 0.0 else np.nan


def measure_precision(run: Run, units: Units, reps: int, seed: int) -> Precision:
    """Both errors from the same resamples; none where there is a single unit, or π̂_E was given."""
    if units.n < 2:
        return Precision(np.nan, np.nan, 0)
    tables = [units.counts(units.draw(seed, r)) for r in range(reps)]
    tables = [table for table in tables if table.sum() > 0.0]
    return Precision(feature_error(run, tables), policy_error(run, tables), len(tables))


def feature_error(run: Run, tables: list[Floats]) -> float:
    """√Σ_k(se_k/σ_k)² / √Σ_k((φ_k − φ̄_k)/σ_k)²: the noise of mean features beside their distance from φ̄, the mean
    over the model's pairs, which an indifferent agent would reach. No matter their units or a constant."""
    theta, scale = run.start, _spread(run)
    live = scale > 1e-9 * scale.max(initial=0.0)

    def features(table: Floats) -> Floats:
        return np.asarray(run.reward.vjp(theta, table / table.sum()))[live] / scale[live]

    noise = np.var([features(table) for table in tables], axis=0).sum()
    signal = np.sum((features(run.demos.counts) - features(run.mdp.feasible.astype(np.float64))) ** 2)
    return float(np.sqrt(noise / signal)) if signal > 0.0 else np.inf


def _spread(run: Run) -> Floats:
    """(K,): σ_k of a feature over pairs, half of them drawn from the decisions, half from the model, so that a state
    that is seldom visited counts as much as one that is often; ones for the gradients of a network."""
    if not is_linear(run.reward):
        return np.ones(run.reward.n_params)
    J: Any = run.reward.jacobian(run.start)  # pyright: ignore[reportAttributeAccessIssue]
    counts, feasible = run.demos.counts, run.mdp.feasible
    weight = 0.5 * counts / counts.sum() + 0.5 * feasible / feasible.sum()
    weight = weight.reshape(-1) if J.shape[0] == weight.size else weight.sum(axis=1)
    mean = np.asarray(J.T @ weight).reshape(-1)
    if hasattr(J, "multiply"):
        return np.sqrt(np.maximum(np.asarray(J.multiply(J).T @ weight).reshape(-1) - mean**2, 0.0))
    return np.sqrt(weight @ (np.asarray(J) - mean) ** 2)


def policy_error(run: Run, tables: list[Floats]) -> float:
    """√Σ_s w(s)E‖π̂*(·|s) − π̂(·|s)‖² / √Σ_s w(s)‖π̂(·|s)‖², with w the occupancy.

    An unvisited state counts as one draw from the uniform choice, unless the first step generalises from other states.
    """
    step = run.options.first_step
    if not isinstance(step, str) and not hasattr(step, "estimate"):
        return np.nan
    squares = np.zeros(run.mdp.n_states)
    for table in tables:
        again = estimate_policy(run.mdp, labelled(table, run.mdp), step, run.reward)
        squares += np.sum((again - run.expert) ** 2, axis=1) / len(tables)
    if not isinstance(step_named(step), Kernel | Logit):
        n = np.maximum(run.mdp.feasible.sum(axis=1), 1)
        squares = np.where(run.demos.counts.sum(axis=1) > 0.0, squares, 1.0 - 1.0 / n)
    weight, _ = expert_occupancy(run)
    weight = np.where(run.mdp.feasible.sum(axis=1) > 1, weight, 0.0)
    size = float(weight @ np.sum(run.expert**2, axis=1))
    return float(np.sqrt(weight @ squares / size)) if size > 0.0 else 0.0


def make_run(method: str, reward: Any, options: Any, mdp: Any, demos: Any) -> Run:
    """The checked inputs, with a first step whose policy ends: at γ = 1 frequencies may not."""
    run = Run(method, reward, options, mdp, demos)
    if mdp.discount < 1.0 or not isinstance(step_named(run.options.first_step), Frequency):
        return run
    try:
        Chain(run.mdp, labelled(run.expert, run.mdp), options.solver)
    except RevealedError:
        return Run(method, reward, replace(options, first_step="smoothed"), mdp, demos)
    return run
