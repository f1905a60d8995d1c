"""Moves (s, a, s') that were seen, as the classes that estimated transitions consist of (theory N5).

What every estimate of T that follows these counts shares: which moves there are, how often each agent made them, and
which pairs were never seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats, Ints
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations
from revealed.labels import how_many
from revealed.naming import A_KERNEL, LED, LED_TO_GOALS, never_left, pair_in_words
from revealed.tables import sparse_table
from revealed.transitions import EstimatedTransitions, TransitionSlopes
from revealed.voices import arg, either, marked

TOGETHER = "all agents together"
Counted = tuple[sp.csr_array, sp.csr_array]


@dataclass(frozen=True)
class Moves:
    """One entry per move that was seen, or per kind of move: whose, from which pair s*A + a, where to, how often.

    Demonstrations that kept only counts do not tell whose moves they are. Their agents are then one, with an id of its
    own, so that nobody takes T as estimated from the same agents as the reward.
    """

    agent: Ints
    pair: Ints
    to: Ints
    often: Floats
    ids: tuple[Any, ...]

    @property
    def of_agents(self) -> bool:
        return self.ids != (TOGETHER,)


def moves_of(demos: Demonstrations) -> Moves:
    """The moves in demonstrations, from single steps where they were kept, else from the counts of moves."""
    if demos.transition_counts.nnz == 0:
        remedy = (
            "Build them from trajectories or a frame; with one more state than actions, the last state is known, too."
        )
        remedy = " ".join(map(marked, demos.notes)) or remedy  # a frame without moves has told why
        raise InvalidDemonstrations("demonstrations", "decisions whose next state was seen", "none", remedy=remedy)
    steps = demos.steps
    if steps is None:
        counted = demos.transition_counts.tocoo()
        pair, to = (np.asarray(c, dtype=np.intp) for c in counted.coords)
        return Moves(np.zeros(pair.size, dtype=np.intp), pair, to, counted.data.astype(np.float64), (TOGETHER,))
    seen = steps.next_state >= 0
    pair = (steps.state * demos.n_actions + steps.action)[seen]
    return Moves(steps.agent[seen], pair, steps.next_state[seen], demos.step_weights[seen], demos.ids)


class SeenMoves:
    """Estimates of T whose classes are the moves seen, `pair` → `to`, sorted; `counts` (C,) is how often.

    `unknown` are the pairs that the estimate knows nothing of; with the rule "stay" they stay where they are.
    """

    def __init__(self, demos: Demonstrations | SeenMoves, moves: Moves, rule: str = "error") -> None:
        self.n_states, self.n_actions, self.rule = demos.n_states, demos.n_actions, rule
        self.state_labels, self.action_labels = demos.state_labels, demos.action_labels
        self.of_agents = moves.of_agents
        kinds = np.unique(moves.pair * self.n_states + moves.to)
        self.pair, self.to = np.divmod(kinds, self.n_states)
        counts = np.bincount(self._kinds(moves), weights=moves.often, minlength=kinds.size)
        self.counts: Floats = counts.astype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_states * self.n_actions, self.n_states

    @property
    def unseen(self) -> Ints:
        return np.setdiff1d(np.arange(self.shape[0]), self.pair)

    @property
    def unknown(self) -> Ints:
        return self.unseen

    @property
    def stays(self) -> Ints:
        return self.unknown if self.rule == "stay" else self.unknown[:0]

    @property
    def about(self) -> tuple[str, ...]:
        return ()

    def filled(self, pairs: Ints) -> str:
        """How the estimate fills these pairs, which were never seen; here none."""
        return ""

    def recounted(self, counts: Floats) -> Self:
        return self

    def estimate(self, counts: Floats, otherwise: Floats | None = None) -> Floats:
        return np.zeros(0)

    def table(self, counts: Floats) -> sp.csr_array:
        """Counts of moves, sparse (S*A, S)."""
        return sparse_table(counts, self.pair, self.to, self.shape)

    def with_stays(self, T: sp.csr_array) -> sp.csr_array:
        stays = self.stays
        if stays.size == 0:
            return T
        return sp.csr_array(T + sparse_table(np.ones(stays.size), stays, stays // self.n_actions, self.shape))

    def fit(self, demos: Demonstrations, moves: Moves) -> EstimatedTransitions:
        """With what inference wants to know: whose moves they were, and after which decision."""
        joint, by_agent = self.counted(moves)
        if self.rule == "infeasible":
            self._require_led_somewhere(demos)
        model: Any = self
        return EstimatedTransitions(
            model=model,
            psi=self.estimate(self.counts),
            joint=joint,
            by_agent=by_agent,
            ids=moves.ids,
            state_labels=self.state_labels,
            action_labels=self.action_labels,
            unseen=self.unseen,
            unknown=self.unknown,
            rule=self.rule,
        )

    def counted(self, moves: Moves) -> Counted:
        """How often moves of each class came with each decision (S*A, C), and by each agent (N, C)."""
        C, kind = self.pair.size, self._kinds(moves)
        joint = sparse_table(moves.often, moves.pair, kind, (self.shape[0], C))
        return joint, sparse_table(moves.often, moves.agent, kind, (len(moves.ids), C))

    def explains(self, moves: Moves) -> bool:
        """Whether all of these moves are of its classes."""
        kind = np.minimum(self._kinds(moves), self.pair.size - 1)
        return np.array_equal(self.pair[kind], moves.pair) and np.array_equal(self.to[kind], moves.to)

    def is_of(self, moves: Moves) -> bool:
        """Whether classes of these moves are numbered as its own are."""
        return self.explains(moves)

    def _kinds(self, moves: Moves) -> Ints:
        """Of which class each move is."""
        return np.searchsorted(self.pair * self.n_states + self.to, moves.pair * self.n_states + moves.to)

    def _require_led_somewhere(self, demos: Demonstrations) -> None:
        """A pair that was taken is feasible, whether or not it is known where it led."""
        taken = demos.counts.reshape(-1)
        lost = self.unknown[taken[self.unknown] > 0]
        if lost.size:
            n, often = lost.size, taken[lost].sum()
            times = f"{how_many(n, 'state-action pair')} {'was' if n == 1 else 'were'} observed {often:g} time"
            raise InvalidDemonstrations.impossible(
                f"{times}{'' if often == 1 else 's'}, never with a next state, and so cannot be infeasible",
                pair_in_words(self, *divmod(int(lost[0]), self.n_actions)),
                self._remedy(lost // self.n_actions) if demos.goals is None else LED_TO_GOALS,
                "unseen",
            )

    def _remedy(self, states: Ints) -> str:
        """What can be done for pairs of these states: of one that was never left, smoothing has nothing to go by."""
        never = np.setdiff1d(states, self.pair // self.n_actions)
        if never.size == 0:
            fill = f"{arg('smoothing', 1.0)}, or {arg('unseen', 'stay')}"
            return f"Give the states after last decisions ({LED}), or fill the pairs: {fill}."
        return f"{never_left(self, never)} {_NEVER_LEFT}"


_NEVER_LEFT = (
    f"Assume that the state does not change ({arg('unseen', 'stay')}), give the states after last decisions ({LED}, "
    f"with a separate state for the end), or use {A_KERNEL}."
    + either(" Or leave these decisions out: in from_trajectories the last state of a trajectory needs none.", "")
)


class WithoutParameters(SeenMoves, ABC):
    """An estimate that follows the counts as a whole: there is no ψ, inference takes T as known, and a bootstrap that
    resamples agents re-estimates it."""

    @property
    def names(self) -> tuple[str, ...]:
        return ()

    def recounted(self, counts: Floats) -> Self:
        """The same from other counts of the same moves; where those say nothing, the old ones stay."""
        model = copy(self)
        vars(model).pop("_found", None)
        model.counts = np.where(self._told(counts), counts, self.counts)
        return model

    @abstractmethod
    def _told(self, counts: Floats) -> Any:
        """(C,): of which moves the counts say something."""

    @abstractmethod
    def _estimated(self, counts: Floats) -> tuple[sp.csr_array, Ints]:
        """T, and the pairs that had to look far for it."""

    @cached_property
    def _found(self) -> tuple[sp.csr_array, Ints]:
        counts = np.where(self._told(self.counts), self.counts, 1.0)  # moves of agents without weight did happen
        T, far = self._estimated(counts)
        return self.with_stays(T), far

    def matrix(self, psi: Floats) -> sp.csr_array:
        return self._found[0]

    def slopes(self) -> TransitionSlopes:
        return TransitionSlopes.of((), self.shape)

    def times(self, V: Floats) -> sp.csr_array:
        return self.slopes().times(V)

    def root(self, psi: Floats, counts: Floats) -> None:
        return None

    def log_probabilities(self, psi: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(np.asarray(self._found[0][self.pair, self.to]).reshape(-1))

    def scores(self, psi: Floats) -> Floats:
        return np.zeros((self.pair.size, 0))

    def taken_as_known(self, what: str) -> str:
        """What standard errors make of an estimate without parameters."""
        anew = "; a bootstrap over agents re-estimates them" if self.of_agents else ""
        return f"standard errors take {what} as known{anew}."
