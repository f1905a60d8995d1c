"""π̂_E, the expert's policy estimated from the data alone: the first step of CCP and NPL, and the occupancy's policy.

Frequencies, frequencies with additive smoothing, kernel smoothing over features or a distance, a multinomial logit on
features, or an (S, A) array. A string names one with its defaults; an instance sets its options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from revealed.chain import as_policy
from revealed.checks import as_floats, as_number
from revealed.errors import InvalidInput, InvalidOption
from revealed.linear_solvers import Work
from revealed.mdp import MDP, Floats
from revealed.objective import Case, Objective
from revealed.optimize import Settings, Trace, maximise
from revealed.pi_tilde import GivenPolicy
from revealed.progress import Progress
from revealed.rewards.base import Reward, check_features
from revealed.rewards.linear import LinearReward
from revealed.transitions import is_sparse


class FirstStep(Protocol):
    """From counts (S, A) on an MDP to a policy (S, A); `reward` lends its features where none were given."""

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None) -> Floats: ...


@dataclass(frozen=True)
class Frequency:
    """How often each action was chosen; a state that was not seen is uniform over its feasible actions."""

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> Floats:
        return _shares(mdp, counts)


@dataclass(frozen=True)
class Smoothed:
    """Frequencies after adding `alpha` to the count of every feasible action: no choice has probability zero."""

    alpha: float = 1.0

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> Floats:
        if not 0.0 < as_number(self.alpha) < np.inf:
            raise InvalidOption("alpha", "a positive number", self.alpha)
        return _shares(mdp, counts + self.alpha * mdp.feasible)


@dataclass(frozen=True)
class Kernel:
    """Counts averaged over similar states, with Gaussian weights in the distance between their features.

    `features` (S, K) default to the reward's; each is scaled to unit spread. `distance` is an (S, S) sparse matrix
    instead (pairs that are not stored are infinitely far, the diagonal is zero) or a dense one. `bandwidth` defaults to
    Scott's rule n^(−1/(K+4)) on the number of decisions, and to 1 for a distance. The cost is states × states seen.
    """

    features: Any = None
    distance: Any = None
    bandwidth: float | None = None

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> Floats:
        if self.bandwidth is not None and not 0.0 < as_number(self.bandwidth) < np.inf:
            raise InvalidOption("bandwidth", "a positive number", self.bandwidth)
        if self.distance is not None:
            return _shares(mdp, self._by_distance(mdp, counts))
        X = _state_features(self.features, reward, mdp, "kernel")
        spread = X.std(axis=0)
        X = X[:, spread > 0.0] / spread[spread > 0.0]
        width = self.bandwidth or float(counts.sum()) ** (-1.0 / (X.shape[1] + 4))
        return _shares(mdp, _kernel_average(X / width, counts))

    def _by_distance(self, mdp: MDP, counts: Floats) -> Floats:
        shape = (mdp.n_states, mdp.n_states)
        given = self.distance if is_sparse(self.distance) else as_floats(self.distance)
        if given is None or given.shape != shape or given.dtype.kind not in "biuf":
            raise InvalidInput("distance", f"numbers of shape {shape}, sparse or dense", repr(self.distance)[:60])
        stored = sp.csr_array(given, dtype=np.float64, copy=True) if is_sparse(given) else None
        d = stored.data if stored is not None else given
        if not (d >= 0.0).all():
            raise InvalidInput("distance", "distances >= 0", float(d[~(d >= 0.0)][0]))
        weight = np.exp(-0.5 * (d / (self.bandwidth or 1.0)) ** 2)
        if stored is None:
            return weight @ counts  # the user's own dense matrix: zeros in it are distances
        stored.data = weight
        stored.setdiag(1.0)
        return np.asarray(stored @ counts)


@dataclass(frozen=True)
class Logit:
    """A multinomial logit: π(a|s) ∝ exp(x(s)·β_a) for state features, ∝ exp(x(s,a)·β) for features of pairs.

    `features` default to the reward's. It is our own objective at discount zero, with a small penalty `l2` so that a
    maximum always exists.
    """

    features: Any = None
    l2: float = 1e-4

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> Floats:
        if not 0.0 <= as_number(self.l2) < np.inf:
            raise InvalidOption("l2", "a number >= 0", repr(self.l2))
        X = _features(self.features, reward, mdp, "logit")
        if mdp.n_actions == 1:
            return mdp.uniform_policy()
        myopic = mdp.replace(discount=0.0)
        model = LinearReward(X if X.ndim == 3 else _by_action(X, mdp.n_actions))
        now = GivenPolicy(myopic, mdp.uniform_policy(), solver="lu")
        objective = Objective(model, [Case(myopic, counts, now)], l2=self.l2)
        settings = Settings(tol=1e-8, max_iter=500)
        found = maximise(objective, model.init(), settings, Trace(Progress("logit", enabled=False), Work()))
        return found.best.parts[0].policy


@dataclass(frozen=True)
class GoalLogit:
    """Where trips have goals: one logit for all of them, on the change in the least cost to the goal and on the
    reward's features (`first_step="logit"`, the default there).

    The cost of a move is one, plus each of the reward's features in units of its mean size; where the reward has no
    features, trips are measured in moves. `l2` keeps a maximum in reach.
    """

    l2: float = 1e-4

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> Floats:
        raise InvalidOption("first_step", "Logit where trips have no goals", "GoalLogit")


_BY_NAME: dict[str, FirstStep] = {
    "frequency": Frequency(),
    "smoothed": Smoothed(),
    "kernel": Kernel(),
    "logit": Logit(),
}


def estimate_policy(mdp: MDP, counts: Floats, first_step: Any = "frequency", reward: Reward | None = None) -> Floats:
    """π̂_E (S, A) by name, by instance (`rv.first_step.Kernel(bandwidth=2)`), or as given by the user."""
    require_first_step(first_step)
    if isinstance(first_step, str):
        first_step = _BY_NAME["frequency" if first_step == "auto" else first_step]
    if hasattr(first_step, "estimate"):
        return as_policy(mdp, first_step.estimate(mdp, counts, reward), "first_step")
    lifted = first_step if mdp.base is None else _lift_given(first_step, mdp)
    return as_policy(mdp, lifted, "first_step")


def require_first_step(first_step: Any) -> None:
    """A name must be one of those offered; instances and arrays are checked where the model is known."""
    if isinstance(first_step, str) and first_step not in ("auto", *_BY_NAME):
        offered = f"one of {', '.join(_BY_NAME)}, an instance, or an (S, A) array"
        raise InvalidOption("first_step", offered, repr(first_step))


def _lift_given(policy: Any, mdp: MDP) -> Any:
    """A given policy of the base MDP serves at every time."""
    array = np.asarray(policy)
    base = mdp.base
    return mdp.lift(array) if base is not None and array.shape == base.feasible.shape else array


def _shares(mdp: MDP, weights: Floats) -> Floats:
    """Rows to probabilities over feasible actions; rows without weight are uniform, terminal rows zero."""
    weights = np.where(mdp.feasible, weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, weights / np.where(total > 0.0, total, 1.0), mdp.uniform_policy())


def _features(given: Any, reward: Reward | None, mdp: MDP, who: str) -> Floats:
    """Dense features (S, K) or (S, A, K): those given, else those of a linear or neural reward."""
    if given is None:
        given = borrow_features(reward)
    if given is None:
        raise InvalidOption(
            "first_step",
            f'features for "{who}" (this reward has none to lend)',
            "none",
            remedy=f"Pass rv.first_step.{who.capitalize()}(features=...).",
        )
    X = check_features(given, "first_step features")
    if mdp.base is not None and len(X) == mdp.base.n_states:
        X = mdp.lift(X)
    if len(X) != mdp.n_states or (X.ndim == 3 and X.shape[1] != mdp.n_actions):
        raise InvalidInput("first_step features", f"{mdp.n_states} states, {mdp.n_actions} actions", f"shape {X.shape}")
    return X


def _state_features(given: Any, reward: Reward | None, mdp: MDP, who: str) -> Floats:
    X = _features(given, reward, mdp, who)
    return X if X.ndim == 2 else X.reshape(len(X), -1)


def borrow_features(reward: Any) -> Floats | None:
    """Dense features (S, K) or (S, A, K) of a linear or neural reward; None where it has none to lend."""
    reward = getattr(reward, "base", reward)
    if isinstance(reward, LinearReward):
        matrix = reward.matrix.toarray() if is_sparse(reward.matrix) else reward.matrix
        shape = (reward.n_states, -1) if reward.n_columns == 1 else (reward.n_states, reward.n_columns, reward.n_params)
        return np.asarray(matrix).reshape(shape)
    return getattr(reward, "features", None)


def _by_action(X: Floats, A: int) -> list[sp.csr_array]:
    """x(s) with its own weights for each action but the first, and a constant: (S, (A − 1)(K + 1)) per action."""
    with_constant = sp.csr_array(np.column_stack([np.ones(len(X)), X]))
    empty = sp.csr_array(with_constant.shape)
    return [sp.csr_array(sp.hstack([with_constant if a == b else empty for b in range(1, A)])) for a in range(A)]


def _kernel_average(X: Floats, counts: Floats) -> Floats:
    """Σ_j exp(−½‖x_i − x_j‖²) n(j, ·) over seen states j, relative to the nearest; equal rows once, in blocks."""
    seen = np.flatnonzero(counts.sum(axis=1) > 0.0)
    points, member = np.unique(X[seen], axis=0, return_inverse=True)
    mass = np.zeros((len(points), counts.shape[1]))
    np.add.at(mass, member.reshape(-1), counts[seen])
    targets, back = np.unique(X, axis=0, return_inverse=True)
    out = np.empty((len(targets), counts.shape[1]))
    block = max(1, 10_000_000 // len(points))  # 80 MB
    for i in range(0, len(targets), block):
        x = targets[i : i + block]
        gap = np.zeros((len(x), len(points)))
        for k in range(x.shape[1]):  # feature by feature: no (block, points, K) array
            gap += np.subtract.outer(x[:, k], points[:, k]) ** 2
        gap -= gap.min(axis=1, keepdims=True)
        out[i : i + block] = np.exp(-0.5 * gap) @ mass
    return out[back.reshape(-1)]
