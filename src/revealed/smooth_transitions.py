"""Transitions where data are thin: smoothed towards what happens in the state under any action (theory N5a), or
averaged over what the same action did nearby (theory N5b). Neither has parameters; both stay sparse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, Floats, Ints, require_floats
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidInput
from revealed.kernels import (
    MOST_STORED,
    Near,
    average_outcomes,
    kernel_matrix,
    scaled_rows,
)
from revealed.labels import find
from revealed.naming import LED, index_keys
from revealed.positions import in_order
from revealed.seen_moves import Moves, WithoutParameters
from revealed.transitions.estimated import NO_PAIRS
from revealed.voices import arg, either, shown


class SmoothedFrequencies(WithoutParameters):
    """T(s'|s,a) = (n(s,a,s') + α q(s'|s)) / (n(s,a) + α), q the frequencies of s' after s under any action.

    Every pair of a state that was left has a row; of states that never were nothing is known.
    """

    def __init__(self, demos: Demonstrations, moves: Moves, rule: str, alpha: float) -> None:
        super().__init__(demos, moves, rule)
        self.alpha = alpha

    @property
    def unknown(self) -> Ints:
        pairs = self.unseen
        return pairs[~np.isin(pairs // self.n_actions, self.pair // self.n_actions)]

    @property
    def about(self) -> tuple[str, ...]:
        return (self.taken_as_known(f"smoothed transitions (α = {self.alpha:g})"),)

    def filled(self, pairs: Ints) -> str:
        return "use the next-state frequencies of the same state, pooled over actions"

    def _told(self, counts: Floats) -> Bools:
        state = self.pair // self.n_actions
        return (np.bincount(state, weights=counts, minlength=self.n_states) > 0.0)[state]

    def _estimated(self, counts: Floats) -> tuple[sp.csr_array, Ints]:
        S, A = self.n_states, self.n_actions
        moves = self.table(counts)
        by_state = sp.csr_array(sp.kron(sp.eye_array(S), np.ones((1, A)), format="csr"))  # sums over actions
        q = scaled_rows(sp.csr_array(by_state @ moves))
        return scaled_rows(sp.csr_array(moves + self.alpha * (by_state.T @ q))), NO_PAIRS


class KernelAverages(WithoutParameters):
    """T(s'|s,a) ∝ Σ n(s₀,a,s₁) φ(s₀, s) ψ(s₁, s'): what the same action did nearby.

    `nodes` (S, d) are coordinates of the states, `h` (2, d) the bandwidths of φ and ψ. A pair without a move of its
    action within two bandwidths takes what it did at the nearest place, in units of φ's bandwidth.
    """

    def __init__(self, demos: Demonstrations, moves: Moves, rule: str, nodes: Floats, h: Floats) -> None:
        super().__init__(demos, moves, rule)
        self.nodes, self.h = nodes, h
        self.at_once = max(1, MOST_STORED * self.n_states // max(1, self.phi.nnz))  # and a kernel too wide fails now

    @cached_property
    def phi(self) -> sp.csr_array:
        """(S, S): around where a move began; a column per node."""
        return kernel_matrix(self.nodes, self.nodes, self.h[0])

    @cached_property
    def spread(self) -> sp.csr_array:
        """(S, S): ψ around where a move led, as shares."""
        return scaled_rows(kernel_matrix(self.nodes, self.nodes, self.h[1]))

    @property
    def unknown(self) -> Ints:
        pairs = self.unseen
        return pairs[~np.isin(pairs % self.n_actions, self.pair % self.n_actions)]

    @property
    def about(self) -> tuple[str, ...]:
        return (self.taken_as_known("kernel estimates of transitions"),)

    def _remedy(self, states: Ints) -> str:
        stay = f"let such pairs stay where they are ({arg('unseen', 'stay')})"
        return f"Give the states after last decisions ({LED}), or {stay}."

    def filled(self, pairs: Ints) -> str:
        far = int(np.isin(pairs, self._found[1]).sum())
        beyond = f" ({far} of them at the nearest place, beyond two bandwidths)" if far else ""
        return f"take what the same action did nearby{beyond}"

    def _told(self, counts: Floats) -> Bools:
        action = self.pair % self.n_actions
        return (np.bincount(action, weights=counts, minlength=self.n_actions) > 0.0)[action]

    def _estimated(self, counts: Floats) -> tuple[sp.csr_array, Ints]:
        moves = self.table(counts)
        often = np.asarray(moves.sum(axis=1), dtype=np.float64).reshape(-1)
        taken = np.flatnonzero(often)
        led = sp.csr_array(scaled_rows(sp.csr_array(moves[taken])) @ self.spread)
        steps = PairSteps(taken, often[taken], led, self)
        everywhere = np.ones(self.n_states, dtype=bool)
        return average_outcomes(steps, self.nodes / self.h[0], self.n_actions, everywhere, self.at_once)


@dataclass(frozen=True, eq=False)
class PairSteps:
    """Pairs that were seen as steps of a kernel average: each counts as often as it was seen, and leads where its
    moves did, ψ around each."""

    pair: Ints
    weight: Floats
    led: sp.csr_array
    model: KernelAverages

    @property
    def action(self) -> Ints:
        return self.pair % self.model.n_actions

    @property
    def state(self) -> Ints:
        return self.pair // self.model.n_actions

    @property
    def places(self) -> Floats:
        return self.model.nodes[self.state] / self.model.h[0]

    def origins(self, part: slice) -> Near:
        near = sp.coo_array(self.model.phi[self.state[part]])
        node, step = (np.asarray(part, dtype=np.intp) for part in near.coords[::-1])
        return node, step, near.data

    def outcomes(self, which: Any) -> sp.csr_array:
        return sp.csr_array(self.led[which])


def as_coordinates(coordinates: Any, demos: Demonstrations) -> Floats:
    """(S, d) finite numbers; the rows of a frame that is indexed by labels are put in the order of the states."""
    index = getattr(coordinates, "index", None)
    if demos.state_labels is not None and hasattr(coordinates, "iloc") and index is not None:
        coordinates = coordinates.iloc[
            find("coordinates", demos.state_labels, index_keys(index, demos.state_labels), "state")
        ]
    else:
        coordinates = in_order(demos, coordinates, "coordinates", ("state",))
    expected = f"numbers of shape ({demos.n_states}, d), a row per state"
    nodes = require_floats("coordinates", coordinates, expected)
    if nodes.ndim not in (1, 2) or len(nodes) != demos.n_states or 0 in nodes.shape:
        raise InvalidInput("coordinates", expected, f"shape {nodes.shape}")
    nodes = nodes.reshape(demos.n_states, -1)
    bad = np.argwhere(~np.isfinite(nodes))
    if bad.size:
        s, k = (int(i) for i in bad[0])
        raise InvalidInput("coordinates", "finite numbers", nodes[s, k], f"state {s}, column {k}")
    return nodes


def as_bandwidths(bandwidth: Any, nodes: Floats) -> Floats:
    """(2, d): of φ and ψ along each axis, from one number, two, or a table of both."""
    d = nodes.shape[1]
    expected = f"a positive number, two (of φ and ψ), or a (2, {d}) table, in units of the coordinates"
    h = require_floats("bandwidth", bandwidth, expected, remedy=_suggestion(nodes))
    if h.shape in ((), (2,)):
        h = np.repeat(np.broadcast_to(h, (2,))[:, None], d, axis=1)
    if h.shape != (2, d) or not np.all(np.isfinite(h) & (h > 0.0)):
        raise InvalidInput("bandwidth", expected, shown(bandwidth), remedy=_suggestion(nodes))
    return h


def _suggestion(nodes: Floats) -> str | None:
    """About the paper's choice on a grid: one step for φ and half a step for ψ."""
    from scipy.spatial import KDTree

    distinct = np.unique(nodes, axis=0)
    if len(distinct) < 2:
        return None
    distance: Any = KDTree(distinct).query(distinct, k=2)[0]
    step = float(np.median(distance[:, 1]))
    pair = either(f"bandwidth=({step:.3g}, {step / 2:.3g})", f"--kernel {step:.3g}")
    return f"Neighbouring states are about {step:.3g} apart: try {pair}."
