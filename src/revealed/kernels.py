"""Where steps led, averaged over those that began nearby (theory N5b):

    T(s'|s, a) = Σ_i 1(a_i = a) w_i φ_i(s) ψ_i(s') / Σ_i 1(a_i = a) w_i φ_i(s),

where φ_i is a Gaussian product kernel around where step i began, cut off at two bandwidths so that T is sparse, and ψ_i
is where it led: a distribution over nodes, such as a kernel around one of them. Nodes may lie anywhere; their
neighbours are found by k-d trees, or computed where they form a grid.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, Floats, Ints
from revealed.errors import InvalidInput

CUT = 2.0  # bandwidths
ROUNDING = 1e-9  # a node that is two bandwidths away but for rounding is within
MOST_STORED = 2_000_000  # kernel weights at once
MOST_NEIGHBOURS = 100_000_000  # of all nodes together: 1.6 GB

Near = tuple[Ints, Ints, Floats]  # of each kernel weight: at which node, around which place, how much


class KernelSteps(Protocol):
    """Steps with an action each, where they began (n, d) and how often they count."""

    @property
    def action(self) -> Ints: ...
    @property
    def places(self) -> Floats: ...
    @property
    def weight(self) -> Floats: ...
    def origins(self, part: slice) -> Near:
        """φ of some of the steps; places are counted from the first of them."""
        ...

    def outcomes(self, which: Any) -> sp.csr_array:
        """ψ, sparse (n, S): where some of the steps led; rows sum to one."""
        ...


def average_outcomes(
    steps: KernelSteps, nodes: Floats, n_actions: int, going: Bools, at_once: int
) -> tuple[sp.csr_array, Ints]:
    """T, sparse (S*A, S), and the pairs s*A + a that have no step of their action within the cut-off.

    Those of them whose node is `going` (S,) take the outcome of the nearest step of their action; an action that was
    never taken has no row.
    """
    T, weight = _sums(steps, len(nodes), n_actions, at_once)
    without = (weight.reshape(-1, n_actions) == 0.0) & going[:, None]
    weight[weight == 0.0] = 1.0
    T.data /= np.repeat(weight, np.diff(T.indptr))
    lost, step = _nearest(steps, without, nodes)
    found = sp.coo_array((np.ones(lost.size), (lost, np.arange(lost.size))), shape=(T.shape[0], lost.size))
    return sp.csr_array(T + found.tocsr() @ steps.outcomes(step)), lost


def _sums(steps: KernelSteps, n_states: int, n_actions: int, at_once: int) -> tuple[sp.csr_array, Floats]:
    """Σ_i w_i φ_i ψ_i and Σ_i w_i φ_i over the steps of each pair's action, some steps at a time to bound memory."""
    pairs = n_states * n_actions
    T, weight = sp.csr_array((pairs, n_states)), np.zeros(pairs)
    for first in range(0, steps.action.size, at_once):
        part = slice(first, first + at_once)
        node, step, phi = steps.origins(part)
        phi = phi * steps.weight[part][step]
        rows = node * n_actions + steps.action[part][step]
        table = sp.csr_array(sp.coo_array((phi, (rows, step)), shape=(pairs, steps.action[part].size)))
        T = sp.csr_array(T + table @ steps.outcomes(part))
        weight += np.bincount(rows, phi, minlength=pairs)
    return T, weight


def _nearest(steps: KernelSteps, without: Bools, nodes: Floats) -> tuple[Ints, Ints]:
    """The pairs without support and, for each, the nearest step of its action."""
    from scipy.spatial import KDTree

    pairs, found = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)]
    for a in range(without.shape[1]):
        own, lost = np.flatnonzero((steps.action == a) & (steps.weight > 0.0)), np.flatnonzero(without[:, a])
        if own.size and lost.size:
            pairs.append(lost * without.shape[1] + a)
            found.append(own[KDTree(steps.places[own]).query(nodes[lost])[1]])
    return np.concatenate(pairs), np.concatenate(found)


def gaussian(distance: Any) -> Any:
    """exp(−z²/2) of distances in bandwidths, zero beyond the cut-off."""
    return np.where(np.abs(distance) <= CUT * (1.0 + ROUNDING), np.exp(-0.5 * distance**2), 0.0)


def kernel_around(places: Floats, nodes: Floats, h: Floats) -> Near:
    """The product kernel of bandwidths h (d,) around each place (n, d), at the nodes (S, d) where it is not cut off."""
    from scipy.spatial import KDTree

    at, around = KDTree(places / h), KDTree(nodes / h)
    reach = CUT * (1.0 + ROUNDING)
    n = int(at.count_neighbors(around, reach, p=np.inf))
    if n > MOST_NEIGHBOURS:
        expected = f"kernels that connect at most {MOST_NEIGHBOURS:,} pairs of states"
        raise InvalidInput("bandwidth", expected, f"{n:,}", remedy="Use a smaller one: T must stay sparse.")
    found: Any = at.sparse_distance_matrix(around, reach, p=np.inf, output_type="ndarray")
    place, node = found["i"].astype(np.intp), found["j"].astype(np.intp)
    return node, place, np.prod(gaussian((nodes[node] - places[place]) / h), axis=1)


def kernel_matrix(places: Floats, nodes: Floats, h: Floats) -> sp.csr_array:
    """The same as a sparse (n, S) table."""
    node, place, weight = kernel_around(places, nodes, h)
    return sp.csr_array(sp.coo_array((weight, (place, node)), shape=(len(places), len(nodes))))


def scaled_rows(table: sp.csr_array) -> sp.csr_array:
    """The table with rows that sum to one; empty ones stay empty."""
    sums = np.asarray(table.sum(axis=1)).reshape(-1)
    table.data /= np.repeat(np.where(sums > 0.0, sums, 1.0), np.diff(table.indptr))
    return table
