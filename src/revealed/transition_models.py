"""Transitions estimated from demonstrations: a frequency per move, or outcomes that all pairs share (theory N5).

Frequencies need every pair to be seen, or a rule for the others: `smooth_transitions` fills them from the same state or
from nearby. Where the same few things can happen everywhere (mileage grows by 0, 1 or 2 bins), `landing` says where
each leads, and only their probabilities are estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, Floats, Ints, require_floats, require_option, require_positive
from revealed.demonstrations import Demonstrations, require_demonstrations
from revealed.errors import InvalidDemonstrations, InvalidInput, InvalidOption
from revealed.gates import require_text, within_memory
from revealed.labels import spell
from revealed.naming import in_words, pair_in_words
from revealed.positions import in_order
from revealed.seen_moves import Counted, Moves, SeenMoves, moves_of
from revealed.smooth_transitions import KernelAverages, SmoothedFrequencies, as_bandwidths, as_coordinates
from revealed.tables import sparse_table
from revealed.transitions import EstimatedTransitions, TransitionSlopes
from revealed.voices import named

UNSEEN = ("error", "stay", "infeasible")
MOST_ROUNDS = 1000  # of expectation and maximisation, where outcomes cannot be told apart


@within_memory("demonstrations")
def estimate_transitions(
    demonstrations: Demonstrations,
    landing: Any = None,
    names: Sequence[str] | None = None,
    unseen: str = "error",
    smoothing: float = 0.0,
    coordinates: Any = None,
    bandwidth: Any = None,
) -> EstimatedTransitions:
    """T from the moves that were seen; `rv.MDP(rv.estimate_transitions(demos), discount=0.95)`.

    Parameters
    ----------
    landing, names : (S, A, O): outcome o leads from (s, a) to state `landing[s, a, o]` and has the same probability
        everywhere; −1 marks pairs that are not feasible. Where several outcomes lead to the same state they share what
        was seen there (maximum likelihood, by expectation and maximisation). `names` are those of the outcomes.
    smoothing : α ≥ 0: T(s'|s,a) = (n(s,a,s') + α q(s'|s)) / (n(s,a) + α), q(s'|s) the frequency of s' after s under any
        action (theory N5a). With α = 0, the default, T(s'|s,a) is the frequency of s' after (s, a).
    coordinates, bandwidth : (S, d) coordinates of the states, and T is an average over the moves of the same action
        nearby (theory N5b): a Gaussian product kernel φ around where a move began and another, ψ, around where it led,
        both cut off at two bandwidths. `bandwidth` is one number, two (of φ and ψ) or a (2, d) table, in units of the
        coordinates. The kernel knows nothing of terminal states: moves next to one spill over into it.
    unseen : what becomes of pairs that were never seen and that the estimate does not fill either: "error" once an MDP
        is made in which they are feasible, "stay" where they are, or "infeasible": the MDP does not offer them, and
        states without any other are terminal (the default of `rv.Recipe` and the command line).
        `feasible=` and `terminal=` of the MDP apply as well.

    The result's `notes` say how many pairs were never seen and what became of them. Frequencies and shared outcomes
    have parameters, whose sampling error can be included in standard errors (`joint=True`). Smoothed and kernel
    estimates have none: formulas take T as known, and joint errors come from a bootstrap over agents, which
    re-estimates T.
    """
    require_demonstrations("demonstrations", demonstrations)
    require_option("unseen", unseen, UNSEEN)
    alpha = _as_smoothing(smoothing)
    _require_one_way(landing, names, alpha, coordinates, bandwidth)
    moves = moves_of(demonstrations)
    if landing is not None:
        landing = in_order(demonstrations, landing, "landing")  # by position, hence in an order that was declared
        return SharedOutcomes(landing, demonstrations.n_states, names).fit_moves(demonstrations, moves)
    return _model(demonstrations, moves, unseen, alpha, coordinates, bandwidth).fit(demonstrations, moves)


def _model(
    demos: Demonstrations, moves: Moves, unseen: str, alpha: float, coordinates: Any, bandwidth: Any
) -> SeenMoves:
    if coordinates is not None:
        nodes = as_coordinates(coordinates, demos)
        return KernelAverages(demos, moves, unseen, nodes, as_bandwidths(bandwidth, nodes))
    return SmoothedFrequencies(demos, moves, unseen, alpha) if alpha > 0.0 else Frequencies(demos, moves, unseen)


def _as_smoothing(smoothing: Any) -> float:
    return require_positive("smoothing", smoothing, zero=True)


def _require_one_way(landing: Any, names: Any, alpha: float, coordinates: Any, bandwidth: Any) -> None:
    """T is estimated in one way only, and every argument belongs to it."""
    ways = {"landing": landing is not None, "smoothing": alpha > 0.0, "coordinates": coordinates is not None}
    chosen = [name for name, is_given in ways.items() if is_given]
    if len(chosen) > 1:
        raise InvalidOption.conflict(chosen[1], f"cannot be combined with `{named(chosen[0])}`", remedy="Choose one.")
    if names is not None and landing is None:
        raise InvalidInput.conflict("names", "requires `landing`")
    if bandwidth is not None and coordinates is None:
        raise InvalidInput.conflict("bandwidth", f"requires `{named('coordinates')}`")


class SharedOutcomes:
    """O outcomes with one probability each, the same for every pair: T(s'|s,a) = Σ_o p_o [landing(s,a,o) = s'].

    ψ are the probabilities of all outcomes but the last. `groups` (C, O) tells which outcomes each class of what was
    seen may stand for: one, but where several lead to the same state.
    """

    def __init__(self, landing: Any, n_states: int, names: Sequence[str] | None = None) -> None:
        expected = f"states of shape ({n_states}, A, O)"
        table = require_floats("landing", landing, expected)
        if table.ndim != 3 or table.shape[0] != n_states or 0 in table.shape:
            raise InvalidInput("landing", expected, f"shape {table.shape}")
        bad = (table != np.floor(table)) | (table < -1) | (table >= n_states)
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise InvalidInput("landing", f"states 0…{n_states - 1}, or −1", table[where], f"(s, a, o) = {where}")
        self.landing, self.n_states = table.astype(np.intp), n_states
        O = self.landing.shape[2]
        self._names = tuple(names) if names is not None else tuple(f"outcome {o}" for o in range(O))
        if len(self._names) != O:
            raise InvalidInput("names", f"{O} names, one per outcome", f"{len(self._names)}")
        for name in self._names:
            require_text("names", name, "texts, one per outcome")
        self.groups = np.eye(O, dtype=bool)

    @property
    def names(self) -> tuple[str, ...]:
        return self._names[:-1]

    @property
    def n_actions(self) -> int:
        return int(self.landing.shape[1])

    @property
    def about(self) -> tuple[str, ...]:
        return ()

    def filled(self, pairs: Ints) -> str:
        return "share the outcomes of all pairs"

    def recounted(self, counts: Floats) -> Self:
        return self

    def probabilities(self, psi: Floats) -> Floats:
        """(O,): of all outcomes."""
        return np.append(psi, _what_is_left(1.0 - psi.sum()))

    def fit(
        self, agent: Ints, pair: Ints, outcome: Ints, n_agents: int, ids: tuple[Any, ...] | None = None
    ) -> EstimatedTransitions:
        """From observed outcomes: of which agent, taken together with which decision s*A + a, and which it was."""
        O, pairs = self.landing.shape[2], self.n_states * self.n_actions
        often = np.ones(len(outcome))
        joint = sparse_table(often, pair, outcome, (pairs, O))
        return self._estimated(self.groups, joint, sparse_table(often, agent, outcome, (n_agents, O)), ids)

    def from_counts(self, joint: Any) -> EstimatedTransitions:
        """From how often each outcome came with each decision (S*A, O), as one agent."""
        table: Any = sp.csr_array(joint, dtype=np.float64)
        total = sp.csr_array(np.asarray(table.sum(axis=0)).reshape(1, -1))
        return self._estimated(self.groups, table, total, (0,))

    def fit_moves(self, demos: Demonstrations, moves: Moves) -> EstimatedTransitions:
        """From the moves in demonstrations: which outcomes may have led to each is seen from `landing`."""
        if demos.n_actions != self.n_actions:
            raise InvalidInput("landing", f"{demos.n_actions} actions", f"{self.n_actions}")
        lost = np.flatnonzero(~self._possible(moves).any(axis=1))
        if lost.size:
            pair, to = int(moves.pair[lost[0]]), int(moves.to[lost[0]])
            where = pair_in_words(demos, *divmod(pair, self.n_actions))
            what = f"no outcome leads from {where} to {in_words('state', demos.state_labels, to)}, which was observed"
            raise InvalidDemonstrations.impossible(what, argument="landing")
        groups, kind = self._classes(moves)
        found = self._estimated(groups, *self._counted(moves, kind, len(groups)), moves.ids)
        return replace(found, state_labels=demos.state_labels, action_labels=demos.action_labels)

    def _possible(self, moves: Moves) -> Bools:
        """(moves, O): the outcomes that lead where each move led."""
        return self.landing.reshape(-1, self.landing.shape[2])[moves.pair] == moves.to[:, None]

    def _classes(self, moves: Moves) -> tuple[Bools, Ints]:
        """(C, O) the sets of outcomes that moves may stand for, and of which each move is."""
        groups, kind = np.unique(self._possible(moves), axis=0, return_inverse=True)
        return groups, kind.reshape(-1)

    def _counted(self, moves: Moves, kind: Ints, C: int) -> Counted:
        joint = sparse_table(moves.often, moves.pair, kind, (self.n_states * self.n_actions, C))
        return joint, sparse_table(moves.often, moves.agent, kind, (len(moves.ids), C))

    def counted(self, moves: Moves) -> Counted:
        """How often each class came with each decision (S*A, C), and by each agent (N, C)."""
        groups, kind = self._classes(moves)
        return self._counted(moves, kind, len(groups))

    def explains(self, moves: Moves) -> bool:
        """Whether an outcome leads where each of these moves led."""
        return bool(self._possible(moves).any(axis=1).all())

    def is_of(self, moves: Moves) -> bool:
        """Whether classes of these moves are numbered as its own are."""
        return np.array_equal(self._classes(moves)[0], self.groups)

    def _estimated(
        self, groups: Bools, joint: sp.csr_array, by_agent: sp.csr_array, ids: tuple[Any, ...] | None
    ) -> EstimatedTransitions:
        counts = np.asarray(by_agent.sum(axis=0), dtype=np.float64).reshape(-1)
        if not counts.sum() > 0:
            raise InvalidDemonstrations("demonstrations", "at least one outcome that was seen", "none")
        model = self._of_those_seen(groups, np.asarray(groups[counts > 0].any(axis=0)))
        ids = tuple(range(by_agent.shape[0])) if ids is None else ids
        return EstimatedTransitions(model, model.estimate(counts), joint, by_agent, ids)

    def _of_those_seen(self, groups: Bools, kept: Bools) -> SharedOutcomes:
        """Outcomes that nothing seen can stand for have probability zero and are not parameters."""
        model = copy(self)
        model.landing, model.groups = self.landing[:, :, kept], groups[:, kept]
        model._names = tuple(name for name, keep in zip(self._names, kept, strict=True) if keep)
        return model

    def estimate(self, counts: Floats, otherwise: Floats | None = None) -> Floats:
        """The shares of outcomes. Where some cannot be told apart: what was seen is split by their probabilities, and
        their probabilities are the shares (expectation and maximisation, from even ones)."""
        if counts.sum() <= 0.0 and otherwise is not None:
            return otherwise
        p = np.full(self.groups.shape[1], 1.0 / self.groups.shape[1])
        for _ in range(MOST_ROUNDS):
            share = self.groups * p
            total = share.sum(axis=1, keepdims=True)
            before, p = p, counts @ (share / np.where(total > 0.0, total, 1.0)) / counts.sum()
            if float(np.abs(p - before).max()) < 1e-14:
                break
        return p[:-1]

    def matrix(self, psi: Floats) -> sp.csr_array:
        return self._spread(self.probabilities(psi))

    def _spread(self, weights: Floats) -> sp.csr_array:
        """Sparse (S*A, S) with `weights[o]` where outcome o leads."""
        pairs = self.n_states * self.n_actions
        columns = self.landing.reshape(-1)
        rows, values = np.repeat(np.arange(pairs), weights.size), np.tile(weights, pairs)
        used = columns >= 0
        return sparse_table(values[used], rows[used], columns[used], (pairs, self.n_states))

    def slopes(self) -> TransitionSlopes:
        """More of outcome l is less of the last one."""
        flat = self.landing.reshape(-1, self.landing.shape[2])
        pairs, L = flat.shape[0], flat.shape[1] - 1
        column, pair = (np.tile(x.reshape(-1), 2) for x in np.indices((L, pairs)))
        to = np.concatenate([flat[:, :-1].T.reshape(-1), np.tile(flat[:, -1], L)])
        weight, leads = np.repeat([1.0, -1.0], L * pairs), to >= 0
        shape = (pairs, self.n_states, L)
        return TransitionSlopes.sorted(column[leads], pair[leads], to[leads], weight[leads], shape)

    def times(self, V: Floats) -> sp.csr_array:
        return self.slopes().times(V)

    def root(self, psi: Floats, counts: Floats) -> None:
        return None

    def log_probabilities(self, psi: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.groups @ self.probabilities(psi))

    def scores(self, psi: Floats) -> Floats:
        share = self.groups / np.exp(self.log_probabilities(psi))[:, None]
        return share[:, :-1] - share[:, -1:]


class Frequencies(SeenMoves):
    """T(s'|s,a) = n(s,a,s')/n(s,a). A class is a move that was seen; ψ are all moves of a pair but its last."""

    def __init__(self, demos: Demonstrations | SeenMoves, moves: Moves, rule: str = "error") -> None:
        super().__init__(demos, moves, rule)
        last = np.append(self.pair[1:] != self.pair[:-1], True)
        self.free, self._last = np.flatnonzero(~last), np.flatnonzero(last)
        self.last_of = self._last[np.searchsorted(self.pair[self._last], self.pair)]  # the last move of the same pair

    @property
    def names(self) -> tuple[str, ...]:
        states = self.state_labels or range(self.n_states)
        actions = self.action_labels or range(self.n_actions)
        state, action = np.divmod(self.pair[self.free], self.n_actions)
        moves = zip(state, action, self.to[self.free], strict=True)
        return tuple(f"T({spell(states[s])},{spell(actions[a])}→{spell(states[to])})" for s, a, to in moves)

    def estimate(self, counts: Floats, otherwise: Floats | None = None) -> Floats:
        total = np.bincount(self.pair, weights=counts, minlength=self.shape[0])[self.pair]
        p = counts / np.where(total > 0.0, total, 1.0)
        return p[self.free] if otherwise is None else np.where(total[self.free] > 0.0, p[self.free], otherwise)

    def _probabilities(self, psi: Floats) -> Floats:
        p = np.zeros(self.pair.size)
        p[self.free] = psi
        rest = 1.0 - np.bincount(self.pair, weights=p, minlength=self.shape[0])
        p[self._last] = _what_is_left(rest[self.pair[self._last]])
        return p

    def matrix(self, psi: Floats) -> sp.csr_array:
        return self.with_stays(self.table(self._probabilities(psi)))

    def slopes(self) -> TransitionSlopes:
        """More of a move is less of the last one of its pair."""
        L = self.free.size
        to = np.concatenate([self.to[self.free], self.to[self.last_of[self.free]]])
        column, pair = np.tile(np.arange(L), 2), np.tile(self.pair[self.free], 2)
        return TransitionSlopes.sorted(column, pair, to, np.repeat([1.0, -1.0], L), (*self.shape, L))

    def times(self, V: Floats) -> sp.csr_array:
        return self.slopes().times(V)

    def root(self, psi: Floats, counts: Floats) -> tuple[sp.csr_array, Bools]:
        """The moves of a pair are a multinomial of its own: the covariance of its shares is (diag p − ppᵀ)/n, which
        is Σ_c (p_c/n)(e_c − p)(e_c − p)ᵀ over all its moves c, the last one included (theory N5)."""
        often = np.bincount(self.pair, weights=counts, minlength=self.shape[0])[self.pair]
        size = np.sqrt(self._probabilities(psi) / np.where(often > 0.0, often, 1.0))
        place = np.cumsum(np.bincount(self.pair[self.free], minlength=self.shape[0]))
        per_pair = np.bincount(self.pair[self.free], minlength=self.shape[0])[self.pair]  # free moves beside each move
        row = np.repeat(np.arange(self.pair.size), per_pair)
        first = np.repeat(place[self.pair] - per_pair, per_pair)
        column = first + np.arange(row.size) - np.repeat(np.cumsum(per_pair) - per_pair, per_pair)
        value = size[row] * ((self.free[column] == row) - psi[column])
        return sparse_table(value, row, column, (self.pair.size, psi.size)), often[self.free] <= 0.0

    def log_probabilities(self, psi: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(self._probabilities(psi), 0.0))

    def scores(self, psi: Floats) -> sp.csr_array:
        p = self._probabilities(psi)
        own, base = self.free, self.last_of[self.free]
        columns = np.arange(own.size)
        with np.errstate(divide="ignore"):
            values = np.concatenate([1.0 / p[own], -1.0 / p[base]])
        return sparse_table(values, np.concatenate([own, base]), np.tile(columns, 2), (p.size, own.size))


def _what_is_left(rest: Any) -> Any:
    """One less the others; a hair below zero is rounding."""
    return np.where((rest < 0.0) & (rest > -1e-12), 0.0, rest)
