"""T(ψ) that was estimated from the same data as the reward, with what inference needs to know of it (theory N5).

An MDP built from it keeps it as `mdp.estimated`: standard errors can then count the noise in T, and a bootstrap can
estimate T anew. ψ are free probabilities; a *class* is something that was seen to happen (an increment, a move).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Floats = npt.NDArray[np.float64]


class TransitionModel(Protocol):
    """T as a function of ψ (L,), and the probabilities of the C classes that data consist of.

    `estimate` is maximum likelihood from counts (C,). `times` has a column ∂T/∂ψ_l V per parameter, a row per pair.
    `scores` (C, L) is ∂ log p_c/∂ψ; p_c is linear in ψ, so that minus the outer product of scores is the Hessian.
    """

    @property
    def names(self) -> tuple[str, ...]: ...
    def estimate(self, counts: Floats, otherwise: Floats | None = None) -> Floats: ...
    def matrix(self, psi: Floats) -> sp.csr_array: ...
    def times(self, V: Floats) -> Any: ...
    def log_probabilities(self, psi: Floats) -> Floats: ...
    def scores(self, psi: Floats) -> Any: ...


@dataclass(frozen=True, eq=False)
class EstimatedTransitions:
    """Transitions estimated from data: `rv.MDP(estimated, discount=...)`.

    `psi` (L,) with `names`; `matrix` (S*A, S) is T at ψ; `joint` sparse (S*A, C) counts with which decision each
    observed class is taken together (any pairing in time will do: their scores are uncorrelated); `by_agent` sparse
    (N, C) counts per agent, in the order of `ids`; `unseen` pairs s*A + a have no row, and must not be feasible.
    """

    model: TransitionModel = field(repr=False)
    psi: Floats
    joint: sp.csr_array = field(repr=False)
    by_agent: sp.csr_array = field(repr=False)
    ids: tuple[Any, ...] = field(repr=False)
    state_labels: tuple[Any, ...] | None = field(repr=False, default=None)
    action_labels: tuple[Any, ...] | None = field(repr=False, default=None)
    unseen: npt.NDArray[np.intp] | None = field(repr=False, default=None)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {p:.4g}" for name, p in zip(self.names[:4], self.psi[:4], strict=True))
        rest = ", …" if self.psi.size > 4 else ""
        return f"<EstimatedTransitions: {self.n_outcomes_seen:g} moves, {self.psi.size} parameters ({shown}{rest})>"

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.names

    @cached_property
    def matrix(self) -> sp.csr_array:
        return self.model.matrix(self.psi)

    @cached_property
    def counts(self) -> Floats:
        """(C,): how often each class was seen."""
        return np.asarray(self.by_agent.sum(axis=0), dtype=np.float64).reshape(-1)

    @property
    def n_outcomes_seen(self) -> float:
        return float(self.counts.sum())

    @cached_property
    def llf(self) -> float:
        """Σ n_c log p_c: the transitions' part of the full log likelihood."""
        seen = np.flatnonzero(self.counts)
        return float(self.counts[seen] @ self.model.log_probabilities(self.psi)[seen])

    def at(self, psi: Floats) -> EstimatedTransitions:
        """The same model at other probabilities."""
        return replace(self, psi=np.asarray(psi, dtype=np.float64))

    def reweighted(self, weights: Floats) -> EstimatedTransitions:
        """Estimated anew, agent i counting `weights[i]` times; what was then not seen at all stays as it was."""
        return self.at(self.model.estimate(np.asarray(self.by_agent.T @ weights), self.psi))
