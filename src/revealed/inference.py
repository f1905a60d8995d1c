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

from revealed.agent_groups import AgentGroups
from revealed.checks import Bools, require_flag, require_option
from revealed.curvature import difference_hessian
from revealed.diagnosis import invisible_directions, with_features
from revealed.eigen import right_singular_vectors, symmetric_eigen
from revealed.errors import InvalidOption
from revealed.influence import Influence
from revealed.mdp import Floats
from revealed.objective import Case, Evaluation, adjoint, reward_gradient
from revealed.slopes import mean_features, slopes_of
from revealed.transitions import EstimatedTransitions, TransitionSlopes
from revealed.voices import arg, either

ANALYTIC = ("hessian", "opg", "robust", "cluster")
KINDS = (*ANALYTIC, "bootstrap")
MOST_PARAMETERS = 500  # beyond, a covariance matrix tells nobody anything
MOST_NUMBERS = 50_000_000  # of a table of scores, derivatives or draws: 400 MB
TAKES_PART = 1e-3  # share of a parameter in a direction of unit length
NULL = 1e-10  # eigenvalue of an information matrix with unit diagonal that counts as none


@dataclass(frozen=True, eq=False)
class Evidence:
    """An estimate and the decisions behind it: `point` is the objective with sample weights at θ̂, `weights` sparse
    (N, S*A) are the agents' counts, `ids` their names, `even` tells whether every decision counts once; `groups` are
    agents who count together in clusters, each agent by itself where there are none; `copies` (N,) is how often agents
    were counted (`Demonstrations.reweighted`), each copy a cluster of its own."""

    point: Evaluation = field(repr=False)
    weights: sp.csr_array = field(repr=False)
    ids: tuple[Any, ...] = field(repr=False)
    even: bool = True
    groups: AgentGroups | None = field(repr=False, default=None)
    copies: Floats | None = field(repr=False, default=None)

    def covariance(self, kind: str, joint: bool = False, blank: bool = True) -> Floats:
        """(K, K), or (K + L, K + L) with the parameters of the transitions. NaN where nothing can be said.

        Beyond 500 parameters of the transitions their noise counts as well, but what comes back is the covariance of θ
        alone; `influence` has the rest. With `blank=False` parameters that hide behind directions in which choices do
        not change have numbers, too: the covariance on the complement of `blind`. It is that of every quantity that
        does not move along those either.
        """
        self.require(kind, joint)
        if joint and kind != "opg":
            found = self.influence(kind)
            matrix = found.of_theta if too_wide(self.mdp) else found.written_out()
            return self.blanked(matrix) if blank else matrix
        if kind == "opg":
            outer, penalty = self._opg(joint)
            inverse, lost = invert(outer + penalty, self.blind(joint))
            meat = outer if self.point.objective.l2 > 0.0 else None
        else:
            (inverse, lost), meat = invert(self.bread, self.blind()), self._meat(kind)
        matrix = _sandwich(inverse, meat)
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
        size = self.with_hessian.size
        basis = np.linalg.qr((blind * np.where(size > 0.0, size, 1.0)).T)[0]
        return np.linalg.norm(basis, axis=1) > TAKES_PART

    @cached_property
    def with_hessian(self) -> Evaluation:
        """The point with second derivatives, where they can be had; a penalty settles every weight per state."""
        return self.point if self.point.objective.l2 > 0.0 else with_features(self.point)

    def blind(self, joint: bool = False) -> Floats:
        """(n, K): directions in which choices do not change (theory I1); none where the Hessian is not analytic."""
        K = self.point.theta.size
        rows = invisible_directions(self.with_hessian) if self.with_hessian.objective.has_hessian else np.zeros((0, K))
        extra = self.estimated.psi.size if joint and self.estimated is not None else 0
        return np.hstack([rows, np.zeros((len(rows), extra))])

    def require(self, kind: str, joint: bool) -> None:
        """Raise where this kind of covariance has no meaning for these data."""
        require_option("kind", kind, ANALYTIC)
        require_flag("joint", joint)
        K = self.point.theta.size
        if K > MOST_PARAMETERS or K * self.seen.size > MOST_NUMBERS:
            limit = f"at most {MOST_PARAMETERS} parameters" if K > MOST_PARAMETERS else f"{MOST_NUMBERS:g} scores"
            what = (
                f"{K} parameters and {self.seen.size} observed pairs are too many for standard errors by formula "
                f"(the limit is {limit})"
            )
            raise InvalidOption.impossible(what, None, _BOOTSTRAP, "kind")
        if not self.even and kind != "cluster":
            what = f"`{arg('kind', kind)}` cannot be used with discounted visits"
            raise InvalidOption.impossible(what, None, f"Use {arg('kind', 'cluster')}.", "kind")
        if kind == "cluster" and self.weights.shape[0] < 2:
            few = "plain counts have none" if self.ids == (0,) else "there is one"
            what = f"clustered errors need at least two agents, and {few}"
            raise InvalidOption.impossible(what, None, f"Use {arg('kind', 'robust')}.", "kind")
        if joint:
            self._require_estimated(kind)

    def _require_estimated(self, kind: str) -> None:
        found, reward = require_estimated(self.estimated), self.point.objective.reward
        if kind == "cluster" and found.ids != self.ids:
            raise InvalidOption.conflict("joint", "requires transitions that were estimated from the same agents")
        gap = no_formula(kind, found, reward, self.mdp.feasible.size)
        if gap:
            raise InvalidOption.conflict("joint", f"has no formula for {gap}", remedy=_ANEW)
        if kind == "opg" and (self._per_base_pair(found.joint.sum(axis=1)) - self._decisions).max(initial=0.0) > 1e-9:
            raise InvalidOption.conflict("joint", "requires transitions that were estimated from the same decisions")

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
        return self.agent_sums - self.agent_sums.mean(axis=0)

    @cached_property
    def agent_sums(self) -> Floats:
        """(N, K): each agent's part of the gradient."""
        return np.asarray(self.weights[:, self.seen] @ self.scores)

    # -- θ alone ------------------------------------------------------------------------------------------------------

    @cached_property
    def bread(self) -> Floats:
        """(K, K): minus the Hessian of the log likelihood (theory H1), the penalty included."""
        objective = self.point.objective
        H = self.point.hessian if objective.has_hessian else difference_hessian(self.point)
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
        if kind == "robust":
            return self._outer()
        if self.copies is None or self.groups is not None:
            return self._clustered(self.agent_scores)
        there = self.copies > 0.0
        return clustered(self.agent_sums[there] / self.copies[there, None], self.copies[there])

    def _clustered(self, scores: Floats) -> Floats:
        """The meat of agents (N, …), or of groups of them."""
        return clustered(scores if self.groups is None else self.groups.sums(scores))

    # -- θ and ψ ------------------------------------------------------------------------------------------------------

    @property
    def estimated(self) -> EstimatedTransitions | None:
        return self.point.objective.cases[0].mdp.estimated

    @property
    def mdp(self) -> Any:
        return self.point.objective.cases[0].mdp

    @cached_property
    def _slopes(self) -> TransitionSlopes:
        """∂T/∂ψ, on the horizon where there is one."""
        assert self.estimated is not None
        return slopes_on(self.mdp, self.estimated)

    @cached_property
    def _transition_jacobian(self) -> Floats:
        """(S, A, L): dQ/dψ, that of a reward whose derivative is γ(∂T/∂ψ)V (theory N4)."""
        mdp, part = self.mdp, self.point.parts[0]
        moved = self._slopes.times(soft_value_of(part)).toarray()
        J = mdp.discount * np.where(mdp.feasible.reshape(-1, 1), moved, 0.0)
        return slopes_of(mdp, J, part.chain.solve_relative(mean_features(J, part.pi_tilde))[0])  # V5

    @cached_property
    def _outcome_scores(self) -> sp.csr_array:
        """(C, L): scores of the classes seen; those never seen get none."""
        assert self.estimated is not None
        scores = sp.csr_array(self.estimated.model.scores(self.estimated.psi))
        unseen = np.repeat(self.estimated.counts <= 0.0, np.diff(scores.indptr))
        return sp.csr_array((np.where(unseen, 0.0, scores.data), scores.indices, scores.indptr), shape=scores.shape)

    def _transition_information(self) -> Floats:
        """(L, L): minus the Hessian of the transitions' log likelihood; probabilities are linear in ψ."""
        assert self.estimated is not None
        W = self._outcome_scores
        return (W.T @ sp.diags_array(self.estimated.counts) @ W).toarray()

    @cached_property
    def _transition_noise(self) -> tuple[sp.csr_array, Bools]:
        """R, sparse, with RᵀR the covariance of ψ̂ (L, L), and which of them the moves do not tell."""
        assert self.estimated is not None
        found = self.estimated.model.root(self.estimated.psi, self.estimated.counts)
        if found is not None:
            return found
        inverse, lost = invert(self._transition_information())
        pieces = symmetric_eigen(inverse)
        if pieces is None:
            return sp.csr_array(np.full_like(inverse, np.nan)), np.ones_like(lost)
        return sp.csr_array(np.sqrt(np.maximum(pieces[0], 0.0))[:, None] * pieces[1].T), lost

    def _per_base_pair(self, values: Any) -> Floats:
        """Numbers of pairs (on a horizon, of all its periods) summed over the periods."""
        table = np.asarray(values, dtype=np.float64).reshape(-1)
        return table.reshape(-1, (self.mdp.base or self.mdp).feasible.size).sum(axis=0)

    @cached_property
    def _decisions(self) -> Floats:
        """(S*A,): how often each pair was decided on, at any time."""
        return self._per_base_pair(self.counts)

    def _taken_together(self) -> sp.csr_array:
        """(pairs seen, C): the moves taken together with each decision; on a horizon they are shared among its periods
        as its decisions are."""
        assert self.estimated is not None
        pair = self.seen % self._decisions.size
        share = self.counts[self.seen] / self._decisions[pair]
        return sp.csr_array(sp.diags_array(share) @ self.estimated.joint[pair])

    def _opg(self, joint: bool) -> tuple[Floats, Floats]:
        """The outer product of the scores of observations, with the transitions of the full likelihood (N5), and the
        curvature of the penalty."""
        if not joint:
            return self._outer(), self._penalty
        assert self.estimated is not None
        K, L = self.point.theta.size, self.estimated.psi.size
        U = np.hstack([self.scores, self._centred(self._transition_jacobian.__getitem__)])
        together = U.T @ (self._taken_together() @ self._outcome_scores).toarray()
        out = (U * self.counts[self.seen, None]).T @ U
        out[:, K:] += together
        out[K:] += together.T
        out[K:, K:] += self._transition_information()
        return out, np.pad(self._penalty, (0, L))

    def influence(self, kind: str) -> Influence:
        """The covariance of (θ̂, ψ̂), ψ from the moves alone and then θ (N5), for any number of ψ."""
        assert self.estimated is not None
        (own, lost), (R, lost_moves) = invert(self.bread, self.blind()), self._transition_noise
        slope = own @ self.cross_hessian  # (K, L): dθ̂/dψ
        lost = np.append(lost, lost_moves)
        if kind != "cluster":  # decisions and moves are uncorrelated: a move's score has mean zero whatever was decided
            return Influence(_sandwich(own, self._meat(kind)), R @ slope.T, R, lost)
        together = sp.csr_array(sp.eye_array(len(self.agent_scores)) if self.groups is None else self.groups.members)
        grown = np.sqrt(together.shape[0] / (together.shape[0] - 1.0))
        per_cluster = sp.csr_array(together @ self.estimated.by_agent @ self._outcome_scores)
        psi = sp.csr_array(grown * ((per_cluster @ R.T) @ R))
        theta = grown * (together @ self.agent_scores) @ own.T + psi @ slope.T
        return Influence(np.zeros_like(own), theta, psi, lost)

    @cached_property
    def cross_hessian(self) -> Floats:
        """(K, L): ∂²g/∂θ∂ψ (theory N4), for rewards with a Jacobian: one solve with the transpose per parameter θ.

        With X_k = w π(F_k − F̄_k) the first term is ⟨X_k, G_l⟩ = ⟨X_k + π̃ ⊙ λ(X_k), γ(∂T/∂ψ_l)V⟩, λ as in (G2).
        """
        objective, part = self.point.objective, self.point.parts[0]
        case = objective.cases[0]
        lam = adjoint(case, part)
        gradient = reward_gradient(case, part, lam).reshape(-1)
        F, V = slopes_of(case.mdp, part.features, part.response), soft_value_of(part)
        weight = (lam * case.pi_tilde.moves - case.rho_state)[:, None] * part.policy
        mean = np.einsum("sa,sak->sk", part.policy, F)
        rows = []
        for k in range(F.shape[2]):
            X = weight * (F[:, :, k] - mean[:, k, None])
            pulled = X + part.pi_tilde * part.chain.solve_pairs(X)[:, None]
            dV = np.einsum("sa,sa->s", part.pi_tilde, F[:, :, k])  # dV/dθ, up to a constant, which ∂T does not see
            rows.append(self._slopes.paired(pulled.reshape(-1), V) + self._slopes.paired(gradient, dV))
        return self.mdp.discount * np.array(rows).reshape(F.shape[2], -1)


def require_estimated(found: EstimatedTransitions | None) -> EstimatedTransitions:
    """Joint errors need transitions that were estimated."""
    if found is None:
        remedy = either(
            "Build the MDP as rv.MDP(rv.estimate_transitions(demos), discount=...).", "Leave --transitions out."
        )
        raise InvalidOption.conflict("joint", "requires transitions that were estimated from the data", remedy=remedy)
    return found


def no_formula(kind: str, found: EstimatedTransitions, reward: Any, n_pairs: int) -> str:
    """Why joint errors of a kind have no formula here; empty where they have one."""
    L = found.psi.size
    if L == 0:
        return "transitions without parameters, such as smoothed ones"
    if kind != "opg":
        plain = hasattr(reward, "jacobian") and not getattr(reward, "tabular", False)
        return "" if plain else "a reward without a Jacobian"
    most = min(MOST_PARAMETERS, MOST_NUMBERS // n_pairs)
    return "" if most >= L else f"{L} transition parameters (at most {most} with {arg('kind', 'opg')})"


def too_wide(mdp: Any) -> bool:
    """Whether the transitions have more parameters than a covariance matrix, or a table of derivatives, should hold."""
    L = 0 if mdp.estimated is None else mdp.estimated.psi.size
    return L > MOST_PARAMETERS or L * mdp.feasible.size > MOST_NUMBERS


def slopes_on(mdp: Any, estimated: EstimatedTransitions) -> TransitionSlopes:
    """∂T/∂ψ in the states of a model, on its horizon if it has one."""
    return estimated.slopes if mdp.horizon is None else estimated.slopes.unrolled(mdp.horizon)


def _sandwich(inverse: Floats, meat: Floats | None) -> Floats:
    return inverse if meat is None else inverse @ meat @ inverse.T


def soft_value_of(part: Any) -> Floats:
    """V^π̃, of which Q = r + γTV was made, up to a constant where nothing ends: else π̃·(Q − log π̃)."""
    soft = getattr(part, "soft", part)
    if soft.relative is not None:
        return soft.relative
    log = np.log(part.pi_tilde, out=np.zeros_like(part.pi_tilde), where=part.pi_tilde > 0.0)
    gain = np.where(part.pi_tilde > 0.0, part.q, 0.0) - log  # of what is not feasible Q is −∞
    return np.sum(part.pi_tilde * gain, axis=1)


def clustered(scores: Floats, copies: Floats | None = None) -> Floats:
    """Σ_i s_i s_iᵀ · N/(N − 1): the meat where decisions are correlated within an agent or group (theory N3); with
    `copies`, of so many agents alike, around their mean."""
    if copies is None:
        N = len(scores)
        return scores.T @ scores * (N / (N - 1.0))
    N = float(copies.sum())
    centred = scores - copies @ scores / N
    return (centred * copies[:, None]).T @ centred * (N / (N - 1.0))


def invert(matrix: Floats, blind: Floats | None = None) -> tuple[Floats, Bools]:
    """The inverse of an information matrix, and which parameters it says nothing about.

    Everything is judged with parameters scaled to unit information, whatever their units. Directions that choices
    cannot see (`blind`, independent rows; theory I1) are left out, and so are those without information; parameters
    that take part in the latter are lost. All are where the matrix is not positive: the point is not a maximum.
    """
    n = len(matrix)
    d = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    d = np.where(d > 0.0, d, 1.0)
    Z = _complement(np.zeros((0, n)) if blind is None else blind * d)
    found = None if Z is None else symmetric_eigen(Z.T @ (matrix / np.outer(d, d)) @ Z)
    if Z is None or found is None or found[0].min(initial=1.0) < -1e-7 * n:
        return np.full_like(matrix, np.nan), np.ones(n, dtype=bool)
    values, vectors = found
    null = values < NULL * n
    half = Z @ vectors  # columns: shifts of the scaled parameters, one per eigenvalue
    lost = np.asarray((np.abs(half[:, null]) > TAKES_PART).any(axis=1))
    half /= d[:, None]
    return (half[:, ~null] / values[~null]) @ half[:, ~null].T, lost


def _complement(rows: Floats) -> Floats | None:
    """(n, n − m): an orthonormal basis of what is orthogonal to independent rows (m, n); None where there is none."""
    if not len(rows):
        return np.eye(rows.shape[1])
    basis = right_singular_vectors(rows / np.linalg.norm(rows, axis=1, keepdims=True), whole=True)
    return None if basis is None else basis[len(rows) :].T


_ANEW = f"{arg('kind', 'bootstrap')} re-estimates the transitions."
_RESAMPLE = either('fit.with_errors("bootstrap")', "--errors bootstrap")
_BOOTSTRAP = f"{_RESAMPLE} resamples agents instead; interpret functions of the reward, not single weights."
