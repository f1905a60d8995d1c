"""Whether one model contains another, as a likelihood ratio needs: features of the one in the span of the other's.

A feature may also be spanned up to what choices cannot see (theory I1): a constant, or a potential γTΦ − Φ, changes no
policy. Its advantage under any one policy is zero then, and advantages are linear in features, so that one policy
decides. What cannot be compared (a network, other transitions) is said to be unverified, never passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats
from revealed.errors import RevealedError
from revealed.inference import MOST_NUMBERS
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy
from revealed.positions import AXES, same_labels
from revealed.rewards.base import is_linear, lift_reward, of_trips
from revealed.rewards.linear import LinearReward

SPANNED = 1e-6  # what is left of a feature, beside its size, that rounding leaves
UNSEEN = 1e-8  # advantage of a feature, beside its long-run sum, that counts as none
MOST_CASES = 20  # trips whose features are looked at, where they depend on where a trip goes


@dataclass(frozen=True)
class Nesting:
    """`lacking` are features of the restricted model that the full one does not span; `unverified`, why it is not
    known."""

    lacking: tuple[str, ...] = ()
    unverified: str = ""

    @property
    def holds(self) -> bool:
        return not self.lacking and not self.unverified


def find_nesting(restricted: Any, full: Any, joint: bool = False) -> Nesting:
    """Whether the full model can do what the restricted one can."""
    differs = _difference(restricted.mdp, full.mdp, joint)
    if differs:
        return Nesting(unverified=differs)
    small, large = _lifted(restricted), _lifted(full)
    if not (is_linear(small) and is_linear(large)):
        return Nesting(unverified="a reward is not linear in its parameters")
    if small is large:
        return Nesting()
    if full.mdp.feasible.size * min(small.n_params, large.n_params) > MOST_NUMBERS:
        return Nesting(unverified="the model is too large to compare features")
    by_case = of_trips(small) or of_trips(large)
    lost = np.flatnonzero(~_spanned(*(_features(full, reward, by_case) for reward in (small, large))))
    if lost.size and not by_case:
        lost = lost[~_unseen(full, small, large, lost)]
    return Nesting(tuple(str(small.names[k]) for k in lost))


def _difference(one: Any, other: Any, joint: bool) -> str:
    """What differs between the models besides the reward, in words; transitions that are counted as parameters may."""
    if one.feasible.shape != other.feasible.shape:
        return "their states or actions differ"
    if not all(same_labels(getattr(one, f"{role}_labels"), getattr(other, f"{role}_labels")) for role in AXES):
        return "their states or actions are in different orders"
    if one.discount != other.discount:
        return "their discounts differ"
    if not np.array_equal(one.feasible, other.feasible) or not np.array_equal(one.terminal, other.terminal):
        return "their feasible actions or terminal states differ"
    if joint and one.estimated is not None and other.estimated is not None:
        return ""
    gap = abs(sp.csr_array(one.transitions.matrix) - sp.csr_array(other.transitions.matrix))
    return "their transitions differ" if gap.nnz and gap.max() > SPANNED else ""


def _lifted(fit: Any) -> Any:
    """The reward on the fit's model, a horizon included."""
    return fit.reward_model if of_trips(fit.reward_model) else lift_reward(fit.reward_model, fit.mdp)


def _features(fit: Any, reward: Any, by_case: bool) -> Any:
    """(rows, K): features of the pairs that the model offers; where they depend on the trip, those of some cases."""
    tables = [reward]
    if by_case:
        trips = fit.demonstrations
        some = np.linspace(0, trips.origins.size - 1, min(trips.origins.size, MOST_CASES)).astype(int)
        pairs = [(int(trips.destinations[k]), int(trips.origins[k])) for k in some]
        tables = [reward.toward(*pair) if of_trips(reward) else reward for pair in pairs]
    parts = [sp.csr_array(_per_pair(table.jacobian(table.init()), fit.mdp)) for table in tables]
    return sp.csr_array(sp.vstack(parts))


def _per_pair(J: Any, mdp: Any) -> Any:
    """The rows of feasible pairs, also of features that belong to states."""
    pair = np.flatnonzero(mdp.feasible)
    return J[pair if J.shape[0] == mdp.feasible.size else pair // mdp.n_actions]


def _spanned(F: Any, X: Any) -> Any:
    """(K,): which columns of F are combinations of those of X, all in units of their own size."""
    F, size = _scaled(F)
    X, _ = _scaled(X)
    left = F.toarray() - X @ _coefficients(X, F) if F.shape[1] else np.zeros(F.shape)
    return (np.linalg.norm(left, axis=0) <= SPANNED) | (size == 0.0)


def _scaled(X: Any) -> tuple[Any, Floats]:
    size = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).reshape(-1))
    return sp.csr_array(X @ sp.diags_array(1.0 / np.where(size > 0.0, size, 1.0))), size


def _coefficients(X: Any, F: Any) -> Floats:
    """b of least squares Xb ≈ F, by the normal equations; where X is one column per state, they are a diagonal."""
    gram, cross = sp.csr_array(X.T @ X), (X.T @ F).toarray()
    diagonal = gram.diagonal()
    if gram.nnz == np.count_nonzero(diagonal):
        return cross / np.where(diagonal > 0.0, diagonal, 1.0)[:, None]
    return np.linalg.lstsq(gram.toarray(), cross, rcond=1e-13)[0]


def _unseen(full: Any, restricted: Any, own: Any, which: Any) -> Any:
    """Of some features of the restricted reward, those that differ from the full one's span by what no choice sees."""
    mdp = full.mdp
    if mdp.feasible.size * (own.n_params + which.size) > MOST_NUMBERS:
        return np.zeros(which.size, dtype=bool)
    tables = [_on_pairs(reward.jacobian(reward.init()), mdp) for reward in (own, restricted)]
    both = np.hstack([tables[0], tables[1][:, which]])
    both[~mdp.feasible.reshape(-1)] = 0.0
    reward = LinearReward(both.reshape(*mdp.feasible.shape, -1))
    try:
        slopes, policy, offered = _slopes(full, reward, np.append(full.theta, np.zeros(which.size)))
    except RevealedError:
        return np.zeros(which.size, dtype=bool)
    advantage = (slopes - np.einsum("sa,sak->sk", policy, slopes)[:, None, :])[offered]
    size = np.linalg.norm(slopes[offered], axis=0)
    A = advantage / np.where(size > 0.0, size, 1.0)
    X, F = A[:, : full.theta.size], A[:, full.theta.size :]
    norm = np.linalg.norm(X, axis=0)
    X = X[:, norm > UNSEEN] / norm[norm > UNSEEN]
    left = F - X @ np.linalg.lstsq(X, F, rcond=None)[0] if X.shape[1] else F
    return np.linalg.norm(left, axis=0) <= np.maximum(UNSEEN, SPANNED * np.linalg.norm(F, axis=0))


def _on_pairs(J: Any, mdp: Any) -> Floats:
    """(S*A, K), dense."""
    J = J if J.shape[0] == mdp.feasible.size else J[np.repeat(np.arange(mdp.n_states), mdp.n_actions)]
    return np.array(J.toarray() if hasattr(J, "toarray") else J, dtype=np.float64)


def _slopes(full: Any, reward: Any, theta: Floats) -> tuple[Floats, Floats, Any]:
    """∂Q/∂θ, π and what is offered, under the full model's policy: in all states, or on the way to each goal."""
    if full.demonstrations.goals is not None:
        part = full.cases.at(reward, theta, {})
        return part.slopes, np.exp(part.choices.log_policy), part.choices.feasible
    case = Case(full.mdp, full.demonstrations.weights, GivenPolicy(full.mdp, full.policy))
    part = Objective(reward, [case]).at(theta).parts[0]
    return part.jacobian, full.policy, full.mdp.feasible
