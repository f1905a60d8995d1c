"""T(ψ) that was estimated from the same data as the reward, with what inference needs to know of it (theory N5).

An MDP built from it keeps it as `mdp.estimated`: standard errors can then count the noise in T, and a bootstrap can
re-estimate T. ψ are free probabilities; a *class* is something that was seen to happen (an increment, a move).
Estimates that are smoothed (theory N5a, N5b) have no ψ: they follow the counts of the classes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, Floats, Ints
from revealed.errors import InvalidMask
from revealed.gates import floats_of
from revealed.naming import pair_in_words
from revealed.positions import by_id
from revealed.tables import sparse_table
from revealed.voices import arg, shown, words

NO_PAIRS: Ints = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class TransitionSlopes:
    """∂T/∂ψ by its entries: one more of ψ_l, l = `column[i]`, adds `weight[i]` to T(`to[i]` | `pair[i]`).

    Entries are sorted by column; `shape` counts pairs, states and parameters. There is never a table of all three.
    """

    column: Ints
    pair: Ints
    to: Ints
    weight: Floats
    shape: tuple[int, int, int]

    @classmethod
    def sorted(cls, column: Any, pair: Any, to: Any, weight: Any, shape: tuple[int, int, int]) -> Self:
        order = np.argsort(column, kind="stable")
        return cls(column[order], pair[order], to[order], np.asarray(weight, dtype=np.float64)[order], shape)

    @classmethod
    def of(cls, matrices: Sequence[Any], shape: tuple[int, int]) -> Self:
        """From ∂T/∂ψ_l, sparse (S*A, S) each."""
        tables: list[Any] = [sp.coo_array(matrix) for matrix in matrices]
        column: Any = np.repeat(np.arange(len(tables)), [table.nnz for table in tables])
        pair, to = (np.concatenate([NO_PAIRS, *(table.coords[k] for table in tables)]) for k in (0, 1))
        weight = np.concatenate([np.zeros(0), *(table.data for table in tables)])
        return cls(column, pair.astype(np.intp), to.astype(np.intp), weight.astype(np.float64), (*shape, len(tables)))

    def times(self, x: Floats) -> sp.csr_array:
        """(S*A, L): (∂T/∂ψ_l) x."""
        return sparse_table(self.weight * x[self.to], self.pair, self.column, (self.shape[0], self.shape[2]))

    def push(self, d: Floats) -> sp.csr_array:
        """(S, L): dᵀ ∂T/∂ψ_l for weights d (S*A,) of pairs."""
        return sparse_table(self.weight * d[self.pair], self.to, self.column, (self.shape[1], self.shape[2]))

    def paired(self, d: Floats, x: Floats) -> Floats:
        """(L,): dᵀ (∂T/∂ψ_l) x."""
        gain = self.weight * d[self.pair] * x[self.to]
        return np.bincount(self.column, weights=gain, minlength=self.shape[2]).astype(np.float64)

    def some(self, begin: int, end: int) -> TransitionSlopes:
        """Those of the parameters from `begin` up to `end`."""
        first, last = np.searchsorted(self.column, (begin, end))
        kept = slice(int(first), int(last))
        shape = (*self.shape[:2], end - begin)
        return TransitionSlopes(self.column[kept] - begin, self.pair[kept], self.to[kept], self.weight[kept], shape)

    def unrolled(self, horizon: int) -> TransitionSlopes:
        """The same on a horizon, where ψ acts between each period and the next (theory F1)."""
        pairs, states, L = self.shape
        time = np.tile(np.arange(horizon), self.column.size)
        column, pair, to = (np.repeat(x, horizon) for x in (self.column, self.pair, self.to))
        weight = np.repeat(self.weight, horizon)
        shape = ((horizon + 1) * pairs, (horizon + 1) * states, L)
        return TransitionSlopes(column, pair + time * pairs, to + (time + 1) * states, weight, shape)


class TransitionModel(Protocol):
    """T as a function of ψ (L,), and the probabilities of the C classes that data consist of.

    `estimate` is maximum likelihood from counts (C,). T is affine in ψ, and `slopes` are its derivatives; `times` has a
    column ∂T/∂ψ_l V per parameter, a row per pair. `scores` (C, L) is ∂ log p_c/∂ψ; p_c is linear in ψ, so that minus
    the outer product of scores is the Hessian. `root` is sparse (R, L) with RᵀR the inverse of that of the counts, and
    which parameters they say nothing about; None where it has to be found by inverting the Hessian.
    `recounted` is the model had the classes been seen so often: itself, but where there is more to T than ψ. `about`
    are sentences on what T is; `filled` says how pairs that were never seen got a row, where they did.
    """

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def about(self) -> tuple[str, ...]: ...
    def filled(self, pairs: Ints) -> str: ...
    def recounted(self, counts: Floats) -> Self: ...
    def estimate(self, counts: Floats, otherwise: Floats | None = None) -> Floats: ...
    def matrix(self, psi: Floats) -> sp.csr_array: ...
    def slopes(self) -> TransitionSlopes: ...
    def times(self, V: Floats) -> Any: ...
    def log_probabilities(self, psi: Floats) -> Floats: ...
    def scores(self, psi: Floats) -> Any: ...
    def root(self, psi: Floats, counts: Floats) -> tuple[sp.csr_array, Bools] | None: ...


@dataclass(frozen=True, eq=False)
class EstimatedTransitions:
    """Transitions estimated from data: `rv.MDP(estimated, discount=...)`.

    `psi` (L,) with `names`; `matrix` (S*A, S) is T at ψ; `joint` sparse (S*A, C) counts with which decision each
    observed class is taken together (any pairing in time will do: their scores are uncorrelated); `by_agent` sparse
    (N, C) counts per agent, in the order of `ids`. `unseen` are the pairs s*A + a that were never seen with their next
    state; the estimate knows nothing of those in `unknown`, and `rule` is what becomes of these: "error" (an MDP must
    not offer them), "stay" (they stay where they are) or "infeasible" (an MDP does not offer them, and states
    that have no other action are terminal). `notes` say so in sentences.
    """

    model: TransitionModel = field(repr=False)
    psi: Floats
    joint: sp.csr_array = field(repr=False)
    by_agent: sp.csr_array = field(repr=False)
    ids: tuple[Any, ...] = field(repr=False)
    state_labels: tuple[Any, ...] | None = field(repr=False, default=None)
    action_labels: tuple[Any, ...] | None = field(repr=False, default=None)
    unseen: Ints = field(repr=False, default_factory=NO_PAIRS.copy)
    unknown: Ints = field(repr=False, default_factory=NO_PAIRS.copy)
    rule: str = field(repr=False, default="error")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {p:.4g}" for name, p in zip(self.names[:4], self.psi[:4], strict=True))
        shown += ", …" if self.psi.size > 4 else ""
        parameters = f"{self.psi.size} parameters" + (f" ({shown})" if shown else "")
        return f"<EstimatedTransitions: {self.n_outcomes_seen:g} moves, {parameters}>"

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

    @cached_property
    def slopes(self) -> TransitionSlopes:
        """∂T/∂ψ."""
        return self.model.slopes()

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
        return replace(self, psi=floats_of("psi", psi, self.psi.shape))

    def drawn(self, draw: Floats) -> EstimatedTransitions:
        """The same model at one draw of what was estimated: ψ, or the counts of classes where there is no ψ."""
        if self.psi.size:
            return self.at(draw)
        return replace(self, model=self.model.recounted(floats_of("draw", draw, self.counts.shape)))

    def reweighted(self, weights: Any) -> EstimatedTransitions:
        """Re-estimated with agent i counting `weights[i]` times, a dict or Series by id; what was then not seen at all
        stays as it was."""
        weights = by_id("weights", weights, self.ids)
        return self._reweighted(floats_of("weights", weights, (self.by_agent.shape[0],)))

    def _reweighted(self, weights: Floats) -> EstimatedTransitions:
        counts = np.asarray(self.by_agent.T @ weights)
        model = self.model.recounted(counts)
        return replace(self, model=model, psi=model.estimate(counts, self.psi))

    # -- pairs that were never seen -----------------------------------------------------------------------------------

    def offered(self, feasible: Bools, terminal: Bools) -> tuple[Bools, Bools]:
        """`feasible` (S, A) and `terminal` (S,) with what the rule adds to them."""
        if self.rule != "infeasible" or self.unknown.size == 0:
            return feasible, terminal
        require_pairs(feasible, self.matrix.shape)
        known = np.ones(feasible.size, dtype=bool)
        known[self.unknown] = False
        known = known.reshape(feasible.shape)
        return feasible & known, terminal | ~known.any(axis=1)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of T: how many pairs were never seen, the first of them, and the rule that was applied."""
        return self.notes_on(None)

    def notes_on(self, feasible: Bools | None) -> tuple[str, ...]:
        """The same of the pairs that are feasible (S, A) in a model; of all where that is None."""
        pairs, n_states = self.matrix.shape
        if feasible is not None:
            require_pairs(feasible, self.matrix.shape)
        counted = np.ones(pairs, dtype=bool) if feasible is None else feasible.reshape(-1).copy()
        if self.rule == "infeasible":  # a model does not show any more what it did not offer for this reason
            counted[self.unknown] = True
        unseen, unknown = self.unseen[counted[self.unseen]], self.unknown[counted[self.unknown]]
        if unseen.size == 0:
            return self.model.about
        n_actions = pairs // n_states
        first = pair_in_words(self, *divmod(int(unseen[0]), n_actions))
        which = "" if feasible is None or self.rule == "infeasible" else "feasible "
        told = f"{unseen.size} of {int(counted.sum())} {which}state-action pairs were never observed with a next state"
        return (words(f"{told} (first {first}): {self._in_words(unseen, unknown, n_actions)}."), *self.model.about)

    def _in_words(self, unseen: Ints, unknown: Ints, n_actions: int) -> str:
        """What becomes of pairs that were never seen: those that the estimate fills, and those that it does not."""
        rules = {
            "error": f"must be treated by a rule ({arg('unseen')}) or be made infeasible",
            "stay": "stay where they are",
            "infeasible": "are treated as infeasible" + self._ends(unknown, n_actions),
        }
        if unknown.size == unseen.size:
            return f"they {rules[self.rule]}"
        filled = np.setdiff1d(unseen, unknown)
        words = self.model.filled(filled)
        return f"{filled.size} {words}, {unknown.size} {rules[self.rule]}" if unknown.size else f"they {words}"

    def _ends(self, unknown: Ints, n_actions: int) -> str:
        per_state = np.bincount(unknown // n_actions)
        ends = int((per_state == n_actions).sum())
        if ends == 0:
            return ""
        return (
            f", and {ends} {'states without another action are' if ends > 1 else 'state without another action is'} "
            "terminal"
        )


def require_pairs(feasible: Any, shape: tuple[int, int]) -> None:
    """A mask of pairs (S, A), for transitions (S*A, S)."""
    pairs, n_states = shape
    wanted = (n_states, pairs // n_states)
    if not isinstance(feasible, np.ndarray) or feasible.dtype != bool or feasible.shape != wanted:
        array = isinstance(feasible, np.ndarray)
        got = f"dtype {feasible.dtype}, shape {feasible.shape}" if array else shown(feasible)
        raise InvalidMask("feasible", f"an array of bools of shape {wanted}", got)
