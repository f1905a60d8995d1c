"""Small random networks for tests of goals, and what is asked of them answered by dense arrays, states one by one.

`random_network` has parallel moves, dead ends and, where asked for, several parts without a way between them.
`windy` is a grid on which moves are uncertain. `Trips` is a model with a linear reward and trips whose truth is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import revealed as rv
from oracle import Bools, Floats
from revealed.goal_rows import GoalRows
from revealed.trip_simulation import simulate_trips


def random_network(seed: int = 0, S: int = 12, A: int = 3, *, parts: int = 1, dead_ends: int = 1) -> rv.MDP:
    """Certain moves, nothing discounted. State s belongs to part s % parts; the last `dead_ends` states end. The first
    action of every other state leads round its part, so that what is no dead end can be reached from everywhere."""
    rng = np.random.default_rng([seed, 11])
    target = np.empty((S, A), dtype=int)
    for s in range(S):
        own = np.arange(s % parts, S, parts)
        ring = own[own < S - dead_ends]
        target[s] = rng.choice(own, size=A)
        target[s, 0] = ring[(np.searchsorted(ring, s) + 1) % ring.size]
    feasible = rng.random((S, A)) < 0.7
    feasible[:, 0] = True
    T = sp.csr_array((np.ones(S * A), target.reshape(-1), np.arange(S * A + 1)), shape=(S * A, S))
    return rv.MDP(T, 1.0, feasible=feasible, terminal=np.arange(S) >= S - dead_ends)


def random_reward(mdp: rv.MDP, seed: int = 0) -> Floats:
    return np.random.default_rng([seed, 12]).uniform(-2.0, 0.0, mdp.feasible.shape)


def weights(mdp: rv.MDP, reward: Floats) -> Floats:
    """M (S, S): Σ exp r(s, a) over the actions that lead from s to s'."""
    M = np.zeros((mdp.n_states, mdp.n_states))
    for s, a in np.argwhere(mdp.feasible):
        row = mdp.transitions.matrix[[s * mdp.n_actions + a]].toarray()[0]
        M[s, int(row.argmax())] += np.exp(reward[s, a])
    return M


def reaches(mdp: rv.MDP, goal: int) -> Bools:
    """(S,): states with a path to the goal, the goal itself included: by powers of the graph."""
    T = mdp.transitions.matrix.toarray().reshape(*mdp.feasible.shape, -1) > 0.0
    graph = (T & mdp.feasible[:, :, None]).any(axis=1)
    found = np.arange(mdp.n_states) == goal
    for _ in range(mdp.n_states):
        found = found | (graph & found).any(axis=1)
    return found


def weights_toward(mdp: rv.MDP, reward: Floats, goal: int) -> Floats:
    """M without the goal's row, and without those from which no path leads to it."""
    alive = reaches(mdp, goal)
    M = weights(mdp, reward) * np.outer(alive, alive)
    M[goal] = 0.0
    return M


def radius(M: Floats) -> float:
    return float(np.abs(np.linalg.eigvals(M)).max())


def scaled_to(mdp: rv.MDP, reward: Floats, M: Floats, wanted: float) -> Floats:
    """The reward with a constant added to every move, such that the spectral radius of M becomes the one wanted."""
    return reward + np.log(wanted / radius(M))


def dense_value(mdp: rv.MDP, reward: Floats, goal: int) -> Floats:
    """V = log z with z = M̃z + e_g, −∞ where no path leads to the goal."""
    S = mdp.n_states
    A, b = np.eye(S) - weights_toward(mdp, reward, goal), np.eye(S)[goal]
    z = np.linalg.solve(A, b)
    for _ in range(2):  # near a radius of one the solution alone has lost the digits that the library keeps
        z = z + np.linalg.solve(A, (b - A.astype(np.longdouble) @ z).astype(np.float64))
    alive = reaches(mdp, goal)
    return np.where(alive, np.log(np.where(alive, z, 1.0)), -np.inf)


def newton_value(mdp: rv.MDP, reward: Floats, goal: int) -> Floats:
    """The soft Bellman fixed point of the model toward the goal; −∞ at its other ends, where nobody arrives."""
    model = mdp.toward(goal)
    V = rv.solve(model, np.where(model.feasible, reward, 0.0), solver="lu").value
    return np.where(model.terminal & (np.arange(mdp.n_states) != goal), -np.inf, V)


def windy(n: int = 4, discount: float = 0.95, seed: int = 0) -> rv.MDP:
    """A grid of n × n squares and four moves, each of which the wind turns into a random one now and then."""
    rng = np.random.default_rng([seed, 13])
    T = np.zeros((n * n, 4, n * n))
    for s in range(n * n):
        near = [_step(s, a, n) for a in range(4)]
        for a in range(4):
            T[s, a, near[a]] += 0.8
            T[s, a, near[int(rng.integers(4))]] += 0.2
    return rv.MDP(T, discount)


def _step(s: int, a: int, n: int) -> int:
    i, j = divmod(s, n)
    di, dj = ((0, 1), (1, 0), (0, -1), (-1, 0))[a]
    return min(max(i + di, 0), n - 1) * n + min(max(j + dj, 0), n - 1)


def steps_of(demos: rv.Demonstrations) -> Any:
    """The single decisions; trips have them."""
    return demos.steps


@dataclass(frozen=True, eq=False)
class Trips:
    """A model, features of its pairs (S, A, K), true weights, and trips between states that lead to each other."""

    mdp: rv.MDP
    features: Floats
    theta: Floats
    n: int = 40
    goals: int = 5
    seed: int = 0

    @cached_property
    def reward(self) -> rv.LinearReward:
        return rv.LinearReward(self.features)

    @cached_property
    def table(self) -> Floats:
        return np.where(self.mdp.feasible, self.features @ self.theta, 0.0)

    @cached_property
    def demos(self) -> rv.Demonstrations:
        return self.draw(self.n, self.seed)

    def draw(self, n: int, seed: int, longest: int | None = None) -> rv.Demonstrations:
        """`n` trips by lot between states with a way between them."""
        rng = np.random.default_rng([self.seed, 14])
        goals = np.sort(rng.choice(self.mdp.n_states, size=self.goals, replace=False))
        ways = {int(g): self._sources(int(g)) for g in goals}
        goals = [g for g in ways if ways[g].size]
        rng = np.random.default_rng([seed, 15])
        ends = [goals[i % len(goals)] for i in range(n)]
        return simulate_trips(self.mdp, self.table, [rng.choice(ways[g]) for g in ends], ends, seed, longest)

    def _sources(self, goal: int) -> Any:
        model = self.mdp.toward(goal)
        return np.flatnonzero(model.feasible.any(axis=1))

    @property
    def steps(self) -> Any:
        return self.demos.steps

    @property
    def goal_states(self) -> list[int]:
        """The goals of the trips, which need not be all that were meant."""
        found: Any = self.demos.goal_states
        return found.tolist()

    @cached_property
    def rows(self) -> GoalRows:
        return GoalRows.of(self.mdp, self.demos)


def random_trips(seed: int = 0, S: int = 14, A: int = 3, K: int = 3, **options: Any) -> Trips:
    """Features in [0.5, 1.5] and negative weights, so that every move costs more than log |A| and values exist."""
    shape = {name: options.pop(name) for name in ("parts", "dead_ends") if name in options}
    rng = np.random.default_rng([seed, 16])
    X = rng.uniform(0.5, 1.5, (S, A, K))
    return Trips(random_network(seed, S, A, **shape), X, rng.uniform(-1.6, -0.8, K), seed=seed, **options)


def windy_trips(discount: float = 0.95, seed: int = 0, n: int = 60, goals: int = 3, side: int = 4) -> Trips:
    """Trips on the windy grid. Without a discount every move costs more than log 4."""
    mdp = windy(side, discount, seed)
    X = np.random.default_rng([seed, 17]).uniform(0.5, 1.5, (*mdp.feasible.shape, 2))
    return Trips(mdp, X, np.array([-1.2, -1.0]), n, goals, seed)


SQUARES = [f"{'abc'[s // 3]}{s % 3}" for s in range(9)]
MOVES = ["east", "south", "west", "north"]
WINDY_NAMES: dict[str, Any] = {"id": "who", "time": "t", "state": "square", "action": "move"}
WINDY_NAMES |= {"next_state": "after", "goal": "goal"}


def windy_tables(trips: Trips | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Walks on the windy grid of three by three as a panel, and features of its moves; squares and moves have names."""
    trips = windy_trips(0.9, n=80, side=3) if trips is None else trips
    mdp = trips.mdp.with_labels(SQUARES, MOVES)
    demos = replace(trips.demos, state_labels=mdp.state_labels, action_labels=mdp.action_labels)
    rows = [(SQUARES[s], MOVES[a], *trips.features[s, a]) for s, a in np.ndindex(9, 4)]
    return demos.to_frame(**WINDY_NAMES), pd.DataFrame(rows, columns=["square", "move", "x0", "x1"])


GOAL_TRIPS = {"network": random_trips(3, S=20, n=150), "windy": windy_trips(0.9, n=100)}
