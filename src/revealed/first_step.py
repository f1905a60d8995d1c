"""π̂_E, the expert's policy estimated from the data alone: the first step of CCP and NPL, and the occupancy's policy.

Frequencies, frequencies with additive smoothing, kernel smoothing over features or a distance, a multinomial logit on
features, or an (S, A) array. A string names one with its defaults; an instance sets its options. Whatever shapes the
estimate beside the data (a penalty, a pseudo-count, a bandwidth) is given by `details` and shown in the summary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from revealed.chain import as_policy
from revealed.checks import Bools, as_floats, as_number, require_floats, require_positive, shape_of
from revealed.diagnosis import suspects, way_out
from revealed.errors import InvalidDemonstrations, InvalidDistribution, InvalidInput, InvalidOption
from revealed.gates import floats_of
from revealed.linear_solvers import Work
from revealed.mdp import MDP, Floats, require_mdp
from revealed.naming import pair_in_words, state_in_words
from revealed.objective import Case, Evaluation, Objective
from revealed.optimize import Search, Settings, Trace, maximise
from revealed.pi_tilde import GivenPolicy
from revealed.positions import AXES, in_order, labelled
from revealed.progress import Progress
from revealed.rewards.base import Reward, as_features
from revealed.rewards.linear import LinearReward
from revealed.sparse_input import as_float_csr, is_sparse
from revealed.voices import either, marked, shown, words

__all__ = ["FirstStep", "Frequency", "GoalLogit", "Kernel", "Logit", "Smoothed", "estimate_policy"]

MOST_FEATURES = 20  # of the reward that the logit of all goals takes along
TOL, ALL_BUT_CERTAIN = 1e-8, 1e-4  # gradient of a logit at its end; where it has no maximum
NO_SPREAD = 1e-12  # of a feature across the actions offered, relative to its size


class FirstStep(Protocol):
    """From counts (S, A) on an MDP to a policy (S, A); the features are those of `reward` where none were given."""

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None) -> Floats: ...


@dataclass(frozen=True)
class Frequency:
    """How often each action was chosen; a state that was not seen is uniform over its feasible actions."""

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> Floats:
        return _shares(mdp, _counts(mdp, counts))

    def details(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> str:
        return ""


@dataclass(frozen=True)
class Smoothed:
    """Frequencies after adding `alpha` to the count of every feasible action: no choice has probability zero.

    A state with n visits and A actions is pulled to equal shares with weight αA/(n + αA): the mean under a Dirichlet
    prior.
    """

    alpha: float = 1.0

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> Floats:
        return _shares(mdp, _counts(mdp, counts) + require_positive("alpha", self.alpha) * mdp.feasible)

    def details(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> str:
        return f"alpha={as_number(self.alpha):g}"


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
        if self.bandwidth is not None:
            require_positive("bandwidth", self.bandwidth)
        counts = _some_counts(mdp, counts)
        if self.distance is not None:
            return _shares(mdp, self._by_distance(mdp, counts))
        X = self._scaled(mdp, reward)
        return _shares(mdp, _kernel_average(X / self._width(X, counts), counts))

    def details(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> str:
        if self.distance is not None or self.bandwidth is not None:
            return f"bandwidth={self._given(1.0):g}"
        if self.features is None and borrow_features(reward) is None:
            return "Scott's bandwidth"
        visits = _some_counts(mdp, counts)
        return f"Scott's bandwidth={self._width(self._scaled(mdp, reward), visits):.3g}"

    def _scaled(self, mdp: MDP, reward: Reward | None) -> Floats:
        """(S, K): features of states in units of their spread, less those that are constant. What has none, where
        nothing is chosen, is taken to be average."""
        X, spread = _spread(_state_features(self.features, reward, mdp, "kernel"))
        return X[:, spread > 0.0] / spread[spread > 0.0]

    def _width(self, X: Floats, counts: Floats) -> float:
        return self._given(float(counts.sum()) ** (-1.0 / (X.shape[1] + 4)))

    def _given(self, otherwise: float) -> float:
        return otherwise if self.bandwidth is None else as_number(self.bandwidth)

    def _by_distance(self, mdp: MDP, counts: Floats) -> Floats:
        shape = (mdp.n_states, mdp.n_states)
        expected = f"numbers of shape {shape}, sparse or dense"
        given = in_order(mdp, self.distance, "distance", ("state", "state"))
        given = given if is_sparse(given) else require_floats("distance", given, expected)
        if given.shape != shape:
            raise InvalidInput("distance", expected, f"shape {given.shape}")
        stored = as_float_csr("distance", given) if is_sparse(given) else None
        d = given if stored is None else stored.data
        if not (d >= 0.0).all():
            raise InvalidInput("distance", "distances >= 0", float(d[~(d >= 0.0)][0]))
        weight = np.exp(-0.5 * (d / self._given(1.0)) ** 2)
        if stored is None:
            return weight @ counts  # the user's own dense matrix: zeros in it are distances
        stored.data = weight
        stored.setdiag(1.0)
        return np.asarray(stored @ counts)


@dataclass(frozen=True)
class Logit:
    """A multinomial logit: π(a|s) ∝ exp(x(s)·β_a) for state features, ∝ exp(x(s,a)·β) for features of pairs.

    `features` default to the reward's. It maximises the library's own objective at discount zero, without a penalty: if
    the data are separated, so that there is no maximum, the search stops where choices are nearly certain and the fit's
    status says so. `l2` subtracts (l2/2)Σ(σ_kβ_k)² from the mean log likelihood (theory E5). σ_k is the standard
    deviation of the k-th feature across the actions offered in a state, over the observed decisions, so that neither
    its units matter nor what it has in common for all actions. State features are centred over the observed decisions,
    and each action has a constant.
    """

    features: Any = None
    l2: float = 0.0

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> Floats:
        return self.estimate_with_notes(mdp, counts, reward)[0]

    def estimate_with_notes(
        self, mdp: MDP, counts: Floats, reward: Reward | None = None
    ) -> tuple[Floats, tuple[str, ...]]:
        """The policy, and what to know about it."""
        l2 = require_penalty(self.l2)
        counts = _some_counts(mdp, counts)
        X = _features(self.features, reward, mdp, "logit")
        X = np.where(np.isfinite(X), X, 0.0)
        if mdp.n_actions == 1:
            return mdp.uniform_policy(), ()
        visits = counts.sum(axis=1)
        share = visits / max(float(visits.sum()), 1e-300)
        if X.ndim == 3:
            Z = within_states(X, mdp.feasible)
            model = LinearReward(Z / units(spread_across_actions(Z, mdp.feasible, share)))
        else:
            model = LinearReward(_by_action(X, mdp.feasible, share, first=0 if l2 > 0.0 else 1))
        myopic = mdp.replace(discount=0.0)
        now = GivenPolicy(myopic, mdp.uniform_policy(), solver="lu")
        best, notes = climb(Objective(model, [Case(myopic, counts, now)], l2=l2), "Logit")
        return best.parts[0].policy, notes

    def details(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> str:
        return _penalty_words(self.l2)


@dataclass(frozen=True)
class GoalLogit:
    """Where trips have goals: one logit for all of them, on the change in the least cost to the goal and on the
    reward's features (`first_step="logit"`, the default there).

    The cost of a move is one, plus each of the reward's features in units of its mean size; where the reward has no
    features, or more than twenty, trips are measured in moves. `l2` is a penalty as in `Logit`; there is none unless
    it is given.
    """

    l2: float = 0.0

    def estimate(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> Floats:
        raise InvalidOption.conflict("first_step", "cannot be GoalLogit where trips have no goals", remedy="Use Logit.")

    def details(self, mdp: MDP, counts: Floats, reward: Reward | None = None) -> str:
        words = ("of moves alone" if pooled_features(reward) is None else "", _penalty_words(self.l2))
        return ", ".join(word for word in words if word)


def require_penalty(l2: Any) -> float:
    return require_positive("l2", l2, zero=True)


def _penalty_words(l2: float) -> str:
    return f"l2={as_number(l2):g}, standardised" if as_number(l2) > 0.0 else ""


def climb(objective: Objective, who: str) -> tuple[Evaluation, tuple[str, ...]]:
    """The maximum of a logit whose features are in units of their spread, so that the tolerance means the same for all
    of them; and notes where it was not reached, or where there is none (theory I2, E5). Then the search is stopped
    where choices are all but certain, since a policy that never leaves a loop would have no value at discount 1."""
    found = _search(objective, TOL)
    travel = [found.best.theta - found.earlier, found.best.theta]
    if objective.l2 == 0.0 and way_out(objective, found.best, suspects(found.best, travel)) is not None:
        return _search(objective, ALL_BUT_CERTAIN).best, (_SEPARATED.format(who=who),)
    return found.best, () if found.reached else (_STOPPED.format(reason=marked(found.reason), who=who),)


def _search(objective: Objective, tol: float) -> Search:
    quiet = Trace(Progress("logit", enabled=False), Work())
    return maximise(objective, np.zeros(objective.reward.n_params), Settings(tol=tol, max_iter=500), quiet)


_BY_NAME: dict[str, FirstStep] = {
    "frequency": Frequency(),
    "smoothed": Smoothed(),
    "kernel": Kernel(),
    "logit": Logit(),
}


def estimate_policy(mdp: MDP, counts: Floats, first_step: Any = "frequency", reward: Reward | None = None) -> Floats:
    """π̂_E (S, A) by name, by instance (`rv.first_step.Kernel(bandwidth=2)`), or as given by the user."""
    return estimate_with_notes(mdp, counts, first_step, reward)[0]


def estimate_with_notes(
    mdp: MDP, counts: Floats, first_step: Any = "frequency", reward: Reward | None = None
) -> tuple[Floats, tuple[str, ...]]:
    """π̂_E (S, A), and what to know about it, where the first step says something."""
    require_first_step(first_step)
    require_mdp(mdp)
    step, notes = step_named(first_step), ()
    counts = in_order(mdp, counts, "counts", error=InvalidDemonstrations)
    if callable(getattr(step, "estimate_with_notes", None)):
        step, notes = step.estimate_with_notes(mdp, counts, reward)
    elif callable(getattr(step, "estimate", None)):
        step = step.estimate(mdp, counts, reward)
    else:
        step = _lift_given(in_order(mdp, step, "first_step", error=InvalidDistribution), mdp)
    return as_policy(mdp, labelled(step, mdp), "first_step"), notes


def step_named(first_step: Any) -> Any:
    """The first step that a name stands for; anything else as it is."""
    if not isinstance(first_step, str):
        return first_step
    return _BY_NAME["frequency" if first_step == "auto" else first_step]


def require_first_step(first_step: Any) -> None:
    """A name must be one of those offered; instances and arrays are checked where the model is known."""
    if isinstance(first_step, str) and first_step not in ("auto", *_BY_NAME):
        offered = f"one of {', '.join(_BY_NAME)}, an instance, or an (S, A) array"
        raise InvalidOption("first_step", offered, shown(first_step))


def _lift_given(policy: Any, mdp: MDP) -> Any:
    """A given policy of the base MDP serves at every time."""
    array = as_floats(policy)
    base = mdp.base
    return mdp.lift(array) if base is not None and array is not None and array.shape == base.feasible.shape else policy


def _counts(mdp: Any, counts: Any) -> Floats:
    """Visits (S, A) of a model."""
    require_mdp(mdp)
    found = floats_of("counts", counts, mdp.feasible.shape)
    if not (np.isfinite(found) & (found >= 0.0)).all():
        raise InvalidInput("counts", "finite counts >= 0", float(found[~(np.isfinite(found) & (found >= 0.0))][0]))
    return found


def _some_counts(mdp: Any, counts: Any) -> Floats:
    """The same, with a decision at least."""
    found = _counts(mdp, counts)
    if not found.any():
        raise InvalidInput("counts", "at least one decision", "none")
    return found


def _shares(mdp: MDP, weights: Floats) -> Floats:
    """Rows to probabilities over feasible actions; rows without weight are uniform, terminal rows zero."""
    weights = np.where(mdp.feasible, weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, weights / np.where(total > 0.0, total, 1.0), mdp.uniform_policy())


def _features(given: Any, reward: Reward | None, mdp: MDP, who: str) -> Floats:
    """Dense features (S, K) or (S, A, K): those given, else those of a linear or neural reward; not finite only where
    nothing is chosen."""
    if given is None:
        given = borrow_features(reward)
    else:
        given = in_order(mdp, given, "first_step features", AXES[: max(0, len(shape_of(given)) - 1)])
    if given is None:
        raise InvalidOption.conflict(
            "first_step",
            f'"{who}" requires features, and this reward has none',
            remedy=either(
                f"Pass rv.first_step.{who.capitalize()}(features=...).", "Give --features, or another --first-step."
            ),
        )
    require_mdp(mdp)
    X = as_features(given, "first_step features")
    if mdp.base is not None and len(X) == mdp.base.n_states:
        X = mdp.lift(X)
    if len(X) != mdp.n_states or (X.ndim == 3 and X.shape[1] != mdp.n_actions):
        raise InvalidInput("first_step features", f"{mdp.n_states} states, {mdp.n_actions} actions", f"shape {X.shape}")
    needed = mdp.feasible[:, :, None] if X.ndim == 3 else ~mdp.terminal[:, None]
    bad = np.argwhere(~np.isfinite(X) & needed)
    if bad.size:
        s, *a, k = (int(i) for i in bad[0])
        where = pair_in_words(mdp, s, a[0]) if a else state_in_words(mdp, s)
        raise InvalidInput("first_step features", "finite numbers", X[tuple(bad[0])], f"{where}, feature {k}")
    return X


def _state_features(given: Any, reward: Reward | None, mdp: MDP, who: str) -> Floats:
    X = _features(given, reward, mdp, who)
    return X if X.ndim == 2 else X.reshape(len(X), -1)


def borrow_features(reward: Any) -> Floats | None:
    """Dense features (S, K) or (S, A, K) of a linear or neural reward, NaN where it was given no finite ones; None
    where it has none to lend."""
    reward = getattr(reward, "base", reward)
    return reward.dense_features() if isinstance(reward, LinearReward) else getattr(reward, "features", None)


def pooled_features(reward: Any) -> Floats | None:
    """Those of the reward that the logit of all goals takes along; None where there are none, or very many."""
    X = borrow_features(reward)
    return (
        None
        if not isinstance(X, np.ndarray) or X.ndim == 0 or X.shape[-1] > MOST_FEATURES
        else np.where(np.isfinite(X), X, 0.0)
    )


def describe_step(first_step: Any, mdp: MDP, counts: Floats, reward: Reward | None) -> tuple[str, str]:
    """A first step's name, and what shapes it beside the data: a penalty, a pseudo-count, a bandwidth."""
    step = step_named(first_step)
    if not hasattr(step, "estimate"):
        return "given", ""
    if not isinstance(step, Frequency | Smoothed | Kernel | Logit | GoalLogit):
        return type(step).__name__, ""
    name = "logit" if isinstance(step, GoalLogit) else type(step).__name__.lower()
    return name, step.details(mdp, counts, reward)


def _by_action(X: Floats, feasible: Bools, share: Floats, first: int) -> list[sp.csr_array]:
    """x(s) and a constant with weights of their own for each action from `first` on, in units of their spread.

    Without a penalty the first action's weights are zero, since differences alone matter; with one, all actions have
    weights, lest it matter which comes first.
    """
    Z = np.column_stack([np.ones(len(X)), X - share @ X])
    Z[:, 1:][:, ~(np.sqrt(share @ Z[:, 1:] ** 2) > NO_SPREAD * np.abs(X).max(axis=0, initial=0.0))] = 0.0
    chance = feasible / np.maximum(feasible.sum(axis=1, keepdims=True), 1)
    spread = np.sqrt((share[:, None] * chance * (1.0 - chance)).T @ Z**2)  # (A, K + 1): of z(s) on one action
    A = feasible.shape[1]
    own = [sp.csr_array(Z / units(spread[a])) for a in range(A)]
    empty = sp.csr_array(Z.shape)
    return [sp.csr_array(sp.hstack([own[a] if a == b else empty for b in range(first, A)])) for a in range(A)]


def within_states(X: Floats, feasible: Bools) -> Floats:
    """(R, A, K): features less their mean over the actions offered, which no choice sees; zero where none is offered
    and where nothing but rounding is left."""
    offered = feasible[:, :, None]
    mean = (X * offered).sum(axis=1, keepdims=True) / np.maximum(offered.sum(axis=1, keepdims=True), 1)
    Z = np.where(offered, X - mean, 0.0)
    return np.where(np.abs(Z) > NO_SPREAD * np.abs(X).max(axis=(0, 1), initial=0.0), Z, 0.0)


def spread_across_actions(Z: Floats, feasible: Bools, share: Floats) -> Floats:
    """(K,): σ_k of centred features (R, A, K), actions at equal chances and rows by their share of decisions (E5)."""
    chance = feasible / np.maximum(feasible.sum(axis=1, keepdims=True), 1)
    return np.sqrt(np.einsum("ra,rak->k", share[:, None] * chance, Z**2))


def units(spread: Floats) -> Floats:
    """What to divide features by: their spread, and infinity where they have none, which leaves them out."""
    return np.where(spread > 0.0, spread, np.inf)


def _spread(X: Floats) -> tuple[Floats, Floats]:
    """(S, K) features, average where they are not finite, and the standard deviation (K,) of the others."""
    odd = ~np.isfinite(X)
    if not odd.any():
        return X, X.std(axis=0)
    known = np.maximum((~odd).sum(axis=0), 1)
    mean = np.where(odd, 0.0, X).sum(axis=0) / known
    X = np.where(odd, mean, X)
    return X, np.sqrt(((X - mean) ** 2).sum(axis=0) / known)


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


_ANOTHER = either(
    "Pass first_step=rv.first_step.{who}(l2=1e-3), fewer features, or another first step.",
    "Use fewer features, or another --first-step.",
)
_SEPARATED = words(
    "the first step's logit has no maximum: some of its weights diverge because they predict choices perfectly, so "
    "that π̂_E gives some actions almost no probability. " + _ANOTHER
)
_STOPPED = words("the first step's logit did not converge ({reason}). " + _ANOTHER)
