"""How sure: scores, information and the covariance of an estimate (theory N1–N5).

Scores are linear in the counts (theory G4), so that everything comes from one table of scores per pair (s, a) and
sparse products with the counts: of observations, or of agents. Where the transitions were estimated from the same
data their parameters ψ have scores, too: a change of T acts on Q as a change γ(∂T/∂ψ)V of the reward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, require_flag, require_option
from revealed.diagnosis import invisible_directions
from revealed.errors import InvalidInput, InvalidOption
from revealed.mdp import Floats
from revealed.objective import Case, Evaluation, adjoint, reward_gradient
from revealed.slopes import mean_features, slopes_of
from revealed.transitions import EstimatedTransitions

ANALYTIC = ("hessian", "opg", "robust", "cluster")
KINDS = (*ANALYTIC, "bootstrap")
MOST_PARAMETERS = 500  # beyond, a covariance matrix tells nobody anything
MOST_NUMBERS = 50_000_000  # of a table of scores, derivatives or draws: 400 MB
TAKES_PART = 1e-3  # share of a parameter in a direction of unit length
NULL = 1e-10  # eigenvalue of an information matrix with unit diagonal that counts as none


@dataclass(frozen=True, eq=False)
class Evidence:
    """An estimate and the decisions behind it: `point` is the objective with sample weights at θ̂, `weights` sparse
    (N, S*A) are the agents' counts, `ids` their names, `even` tells whether every decision counts once."""

    point: Evaluation = field(repr=False)
    weights: sp.csr_array = field(repr=False)
    ids: tuple[Any, ...] = field(repr=False)
    even: bool = True

    def covariance(self, kind: str, joint: bool = False, blank: bool = True) -> Floats:
        """(K, K), or (K + L, K + L) with the parameters of the transitions. NaN where nothing can be said.

        With `blank=False` parameters that hide behind directions in which choices do not change have numbers, too: the
        covariance on the complement of `blind`. It is that of every quantity that does not move along those either.
        """
        self.require(kind, joint)
        joint = joint and self.estimated is not None and self.estimated.psi.size > 0  # a smoothed T has no ψ
        if kind == "opg":
            outer, penalty = self._opg(joint)
            inverse, lost = invert(outer + penalty, self.blind(joint))
            meat = outer if self.point.objective.l2 > 0.0 else None
        elif joint:
            inverse, lost, meat = self._two_steps(kind)
        else:
            (inverse, lost), meat = invert(self.bread, self.blind()), self._meat(kind)
        matrix = inverse if meat is None else inverse @ meat @ inverse.T
        matrix[lost], matrix[:, lost] = np.nan, np.nan
        matrix = (matrix + matrix.T) / 2.0
        return self.blanked(matrix) if blank else matrix

    def blanked(self, matrix: Floats) -> Floats:
        """A covariance of θ (and ψ after it) with NaN for the parameters that are lost."""
        lost = np.flatnonzero(self.lost)
        matrix[lost], matrix[:, lost] = np.nan, np.nan
        return matrix

    @cached_property
    def lost(self) -> Bools:
        """(K,): parameters that take part in a direction that choices cannot see, features scaled alike."""
        blind = self.blind()
        if not len(blind):
            return np.zeros(self.point.theta.size, dtype=bool)
        size = self.point.size
        basis = np.linalg.qr((blind * np.where(size > 0.0, size, 1.0)).T)[0]
        return np.linalg.norm(basis, axis=1) > TAKES_PART

    def blind(self, joint: bool = False) -> Floats:
        """(n, K): directions in which choices do not change (theory I1); none where the Hessian is not analytic."""
        K = self.point.theta.size
        rows = invisible_directions(self.point) if self.point.objective.has_hessian else np.zeros((0, K))
        extra = self.estimated.psi.size if joint and self.estimated is not None else 0
        return np.hstack([rows, np.zeros((len(rows), extra))])

    def require(self, kind: str, joint: bool) -> None:
        """Raise where this kind of covariance has no meaning for these data."""
        require_option("kind", kind, ANALYTIC)
        require_flag("joint", joint)
        K = self.point.theta.size
        if K > MOST_PARAMETERS or K * self.seen.size > MOST_NUMBERS:
            got = f"{K} parameters, {self.seen.size} pairs"
            raise InvalidOption("kind", f"at most {MOST_PARAMETERS} parameters", got, remedy=_BOOTSTRAP)
        if not self.even and kind != "cluster":
            expected = '"cluster" or "bootstrap" where visits are discounted'
            raise InvalidOption("kind", expected, repr(kind), remedy='Use kind="cluster".')
        if kind == "cluster" and self.weights.shape[0] < 2:
            got = "one (plain counts have no agents)" if self.ids == (0,) else "one"
            raise InvalidOption("kind", "two agents or more to cluster by", got, remedy='Use kind="robust".')
        if joint:
            self._require_estimated(kind)

    def _require_estimated(self, kind: str) -> None:
        found = require_estimated(self.estimated)
        if not self.even or self.point.objective.cases[0].mdp.base is not None:
            expected = "False on an unrolled horizon and where visits are discounted"
            raise InvalidOption("joint", expected, "True", remedy='kind="bootstrap" estimates the transitions anew.')
        if kind == "cluster" and found.ids != self.ids:
            raise InvalidOption("joint", "transitions estimated from the same agents", "other agents")
        L, S = found.psi.size, self.point.objective.cases[0].mdp.feasible.size
        if L > MOST_PARAMETERS or L * S > MOST_NUMBERS:
            raise InvalidOption("joint", f"at most {MOST_PARAMETERS} transition parameters", f"{L}", remedy=_BOOTSTRAP)
        extra = np.asarray(found.joint.sum(axis=1)).reshape(-1) - self.counts
        if extra.max(initial=0.0) > 1e-9:
            raise InvalidOption("joint", "transitions estimated from the same decisions", "others")

    # -- scores -------------------------------------------------------------------------------------------------------

    @cached_property
    def counts(self) -> Floats:
        """(S*A,) decisions, or their weights."""
        return np.asarray(self.weights.sum(axis=0), dtype=np.float64).reshape(-1)

    @cached_property
    def seen(self) -> Any:
        return np.flatnonzero(self.counts)

    @cached_property
    def scores(self) -> Floats:
        """(pairs seen, K): ∂ log π_θ(a|s)/∂θ (theory N1)."""
        reward = self.point.objective.reward
        if hasattr(reward, "jacobian") and not getattr(reward, "tabular", False):
            mdp, part = self.point.objective.cases[0].mdp, self.point.parts[0]
            return self._centred(lambda states: slopes_of(mdp, part.features, part.response, states))
        return np.array([self._score_of(int(pair)) for pair in self.seen])

    def _centred(self, slopes: Callable[[Any], Floats]) -> Floats:
        """F(s, a) − Σ_a' π(a'|s) F(s, a') of the pairs seen, from F (R, A, K) in their states."""
        n_actions = self.point.objective.cases[0].mdp.n_actions
        states, row = np.unique(self.seen // n_actions, return_inverse=True)
        F = slopes(states)
        mean = np.einsum("sa,sak->sk", self.point.parts[0].policy[states], F)
        return F[row, self.seen % n_actions] - mean[row]

    def _score_of(self, pair: int) -> Floats:
        """The score of one decision by one product with the reward's Jacobian: the gradient with ρ = 1 there."""
        objective = self.point.objective
        case, part = objective.cases[0], self.point.parts[0]
        rho = np.zeros(case.rho.shape)
        rho.reshape(-1)[pair] = 1.0
        alone = Case(case.mdp, rho, case.pi_tilde)
        return objective.reward.vjp(self.point.theta, reward_gradient(alone, part, adjoint(alone, part)))

    @cached_property
    def agent_scores(self) -> Floats:
        """(N, K): each agent's part of the gradient, less its mean (zero but for a penalty)."""
        per_agent = np.asarray(self.weights[:, self.seen] @ self.scores)
        return per_agent - per_agent.mean(axis=0)

    # -- θ alone ------------------------------------------------------------------------------------------------------

    @cached_property
    def bread(self) -> Floats:
        """(K, K): minus the Hessian of the log likelihood (theory H1), the penalty included."""
        objective = self.point.objective
        H = self.point.hessian if objective.has_hessian else difference_gradient(self.point)
        return -objective.total * H

    @cached_property
    def _penalty(self) -> Floats:
        objective = self.point.objective
        return objective.total * objective.l2 * np.eye(self.point.theta.size)

    def _outer(self) -> Floats:
        n = self.counts[self.seen]
        centre = n @ self.scores / n.sum()
        U = self.scores - centre
        return (U * n[:, None]).T @ U

    def _meat(self, kind: str) -> Floats | None:
        if kind == "hessian":
            return None if self.point.objective.l2 == 0.0 else self.bread - self._penalty
        return self._outer() if kind == "robust" else clustered(self.agent_scores)

    # -- θ and ψ ------------------------------------------------------------------------------------------------------

    @property
    def estimated(self) -> EstimatedTransitions | None:
        return self.point.objective.cases[0].mdp.estimated

    @cached_property
    def _transition_jacobian(self) -> Floats:
        """(S, A, L): dQ/dψ, that of a reward whose derivative is γ(∂T/∂ψ)V (theory N4)."""
        mdp, part = self.point.objective.cases[0].mdp, self.point.parts[0]
        J = self._times(soft_value_of(part))
        return slopes_of(mdp, J, part.chain.solve_relative(mean_features(J, part.pi_tilde))[0])  # V5

    def _times(self, V: Floats) -> Floats:
        """(S*A, L): γ(∂T/∂ψ_l)V, zero for pairs that are not feasible."""
        assert self.estimated is not None
        mdp = self.point.objective.cases[0].mdp
        moved = self.estimated.model.times(V)
        moved = moved if isinstance(moved, np.ndarray) else moved.toarray()
        return mdp.discount * np.where(mdp.feasible.reshape(-1, 1), moved, 0.0)

    @cached_property
    def _outcome_scores(self) -> Any:
        """(C, L): scores of the classes seen; those never seen get none."""
        assert self.estimated is not None
        scores = sp.csr_array(self.estimated.model.scores(self.estimated.psi))
        return sp.csr_array(sp.diags_array((self.estimated.counts > 0).astype(np.float64)) @ scores)

    def _transition_information(self) -> Floats:
        """(L, L): minus the Hessian of the transitions' log likelihood; probabilities are linear in ψ."""
        assert self.estimated is not None
        W = self._outcome_scores
        return (W.T @ sp.diags_array(self.estimated.counts) @ W).toarray()

    def _opg(self, joint: bool) -> tuple[Floats, Floats]:
        """The outer product of the scores of observations, with the transitions of the full likelihood (N5), and the
        curvature of the penalty."""
        if not joint:
            return self._outer(), self._penalty
        assert self.estimated is not None
        K, L = self.point.theta.size, self.estimated.psi.size
        U = np.hstack([self.scores, self._centred(self._transition_jacobian.__getitem__)])
        together = U.T @ (self.estimated.joint[self.seen] @ self._outcome_scores).toarray()
        out = (U * self.counts[self.seen, None]).T @ U
        out[:, K:] += together
        out[K:] += together.T
        out[K:, K:] += self._transition_information()
        return out, np.pad(self._penalty, (0, L))

    def _two_steps(self, kind: str) -> tuple[Floats, Bools, Floats]:
        """Inverse of the bread, what it says nothing about, and the meat: ψ from the moves alone, then θ (N5)."""
        assert self.estimated is not None
        (own, lost), moves = invert(self.bread, self.blind()), self._transition_information()
        per_move, lost_moves = invert(moves)
        K, L = self.point.theta.size, moves.shape[0]
        inverse = np.block([[own, own @ self.cross_hessian @ per_move], [np.zeros((L, K)), per_move]])
        if kind == "cluster":
            per_agent = np.asarray((self.estimated.by_agent @ self._outcome_scores).toarray())
            meat = clustered(np.hstack([self.agent_scores, per_agent]))
        else:  # decisions and moves are uncorrelated: a move's score has mean zero whatever was decided
            choices = self.bread - self._penalty if kind == "hessian" else self._outer()
            meat = np.block([[choices, np.zeros((K, L))], [np.zeros((L, K)), moves]])
        return inverse, np.append(lost, lost_moves), meat

    @cached_property
    def cross_hessian(self) -> Floats:
        """(K, L): ∂²g/∂θ∂ψ (theory N4), for rewards with a Jacobian."""
        objective, part = self.point.objective, self.point.parts[0]
        case, reward = objective.cases[0], objective.reward
        if not hasattr(reward, "jacobian") or getattr(reward, "tabular", False):
            raise InvalidOption("joint", "a reward with a Jacobian", type(reward).__name__, remedy=_BOOTSTRAP)
        lam = adjoint(case, part)
        gradient = reward_gradient(case, part, lam)
        F, G = slopes_of(case.mdp, part.features, part.response), self._transition_jacobian
        weight = lam * case.pi_tilde.moves - case.rho_state
        mean = np.einsum("sa,sak->sk", part.policy, F)[:, None, :]
        out = np.einsum("s,sa,sak,sal->kl", weight, part.policy, F - mean, G, optimize=True)
        dV = np.einsum("sa,sak->sk", part.pi_tilde, F)  # dV/dθ, up to a constant, which ∂T does not see
        moved = [gradient.reshape(-1) @ self._times(column) for column in dV.T]
        return out + np.array(moved).reshape(out.shape)


def require_estimated(found: EstimatedTransitions | None) -> EstimatedTransitions:
    """Joint errors need transitions that were estimated."""
    if found is None:
        remedy = "Build the MDP as rv.MDP(rv.estimate_transitions(demos), discount=...)."
        raise InvalidOption("joint", "False where transitions were not estimated", "True", remedy=remedy)
    return found


def soft_value_of(part: Any) -> Floats:
    """V^π̃, of which Q = r + γTV was made, up to a constant where nothing ends: else π̃·(Q − log π̃)."""
    soft = getattr(part, "soft", part)
    if soft.relative is not None:
        return soft.relative
    log = np.log(part.pi_tilde, out=np.zeros_like(part.pi_tilde), where=part.pi_tilde > 0.0)
    gain = np.where(part.pi_tilde > 0.0, part.q, 0.0) - log  # of what is not feasible Q is −∞
    return np.sum(part.pi_tilde * gain, axis=1)


def clustered(scores: Floats) -> Floats:
    """Σ_i s_i s_iᵀ · N/(N − 1): the meat of agents whose own decisions may hang together (theory N3)."""
    N = len(scores)
    return scores.T @ scores * (N / (N - 1.0))


def difference_gradient(point: Evaluation) -> Floats:
    """The Hessian by central differences of the analytic gradient, made symmetric."""
    K = point.theta.size
    H = np.empty((K, K))
    for k in range(K):
        h = 1e-5 * max(1.0, abs(point.theta[k]))
        step = np.zeros(K)
        step[k] = h
        up, down = point.objective.at(point.theta + step), point.objective.at(point.theta - step)
        if up.problem or down.problem:
            raise InvalidInput("theta", "a value in the neighbourhood of the estimate", str(up.problem or down.problem))
        H[k] = (up.gradient - down.gradient) / (2.0 * h)
    return (H + H.T) / 2.0


def invert(matrix: Floats, blind: Floats | None = None) -> tuple[Floats, Bools]:
    """The inverse of an information matrix, and which parameters it says nothing about.

    Directions that choices cannot see (`blind`, orthonormal rows; theory I1) are left out, and so are those without
    information once units are alike; parameters that take part in the latter are lost. All are where the matrix is
    not positive: the point is no maximum.
    """
    n = len(matrix)
    Z = np.eye(n)
    if blind is not None and len(blind):
        Z = np.linalg.svd(blind)[2][len(blind) :].T  # an orthonormal basis of what is left
    seen = Z.T @ matrix @ Z
    d = np.sqrt(np.maximum(np.diag(seen), 0.0))
    d = np.where(d > 0.0, d, 1.0)
    scaled = seen / np.outer(d, d)
    if not np.isfinite(scaled).all():
        return np.full_like(matrix, np.nan), np.ones(n, dtype=bool)
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2.0)
    if values.min(initial=1.0) < -1e-7 * n:
        return np.full_like(matrix, np.nan), np.ones(n, dtype=bool)
    null = values < NULL * n
    half = (Z / d) @ vectors  # columns: shifts of the parameters, one per eigenvalue
    lost = np.asarray((np.abs(Z @ vectors[:, null]) > TAKES_PART).any(axis=1))
    return (half[:, ~null] / values[~null]) @ half[:, ~null].T, lost


_BOOTSTRAP = "fit.bootstrap() resamples agents instead; read functions of the reward, not single weights."
