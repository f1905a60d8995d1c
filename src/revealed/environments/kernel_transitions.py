"""Transitions estimated from continuous trajectories with Gaussian kernels, as in the paper's appendix D:

    T(s'|s, a) = Σ_i 1(a_i = a) φ_i(s) ψ_i(s') / Σ_i 1(a_i = a) φ_i(s),

where φ_i is a kernel around where step i began and ψ_i one around where it led. Both are evaluated on the nodes of a
grid, cut off at two bandwidths (so that T is sparse), and ψ_i is scaled to sum to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import as_floats
from revealed.errors import InvalidInput
from revealed.mdp import Floats

BANDWIDTH = (1.0, 0.5)  # of φ and of ψ, in steps of the grid
CUT = 2.0  # bandwidths
MOST_STORED = 2_000_000  # kernel weights at once


@dataclass(frozen=True, eq=False)
class Places:
    """Places on the grid, (n,) each: `x` and `y` in steps of the grid, and whether the trajectory has ended there."""

    x: Floats
    y: Floats
    ended: npt.NDArray[np.bool_]

    def __getitem__(self, which: Any) -> Places:
        return Places(self.x[which], self.y[which], self.ended[which])


def kernel_transitions(
    origin: Places,
    outcome: Places,
    action: npt.NDArray[np.intp],
    bins: int,
    ended: npt.NDArray[np.bool_],
    n_actions: int,
    bandwidth: tuple[float, float] = BANDWIDTH,
) -> tuple[sp.csr_array, int]:
    """Sparse (S*A, S) on a grid of bins × bins nodes (state = x · bins + y), and how many pairs had no data nearby.

    `ended` (bins,) tells which x are terminal; a step that ended leads to terminal nodes only, one that went on to
    others only. A pair without a step of its action within the cut-off takes the nearest such step's outcome. Work
    grows with the number of steps times the nodes under φ times those under ψ: (4h + 1)² each.
    """
    h = check_bandwidth(bandwidth)
    for a in range(n_actions):
        if not (action == a).any():
            remedy = "Use more trajectories, or a noisier expert."
            raise InvalidInput("trajectories", "every action taken at least once", f"action {a} never", remedy=remedy)
    T, weight = _smooth(origin, outcome, action, bins, ended, n_actions, h)
    going = np.repeat(~ended, bins)
    without = (weight.reshape(-1, n_actions) == 0.0) & going[:, None]
    weight[weight == 0.0] = 1.0
    T.data /= np.repeat(weight, np.diff(T.indptr))
    lost, step = _nearest(origin, action, without, bins)
    found = sp.coo_array((np.ones(lost.size), (lost, np.arange(lost.size))), shape=(T.shape[0], lost.size))
    return sp.csr_array(T + found.tocsr() @ _outcomes(outcome[step], bins, h[1], ended)), int(lost.size)


def _smooth(
    origin: Places, outcome: Places, action: Any, bins: int, ended: Any, n_actions: int, h: Floats
) -> tuple[sp.csr_array, Floats]:
    """Σ_i φ_i ψ_i and Σ_i φ_i over the steps of each pair's action, some steps at a time to bound memory."""
    S = bins * bins
    T, weight = sp.csr_array((S * n_actions, S)), np.zeros(S * n_actions)
    at_once = max(1, MOST_STORED // (2 * int(np.ceil(CUT * h.max())) + 1) ** 2)
    for first in range(0, action.size, at_once):
        part = slice(first, first + at_once)
        node, data, w = _kernel(origin[part], bins, h[0])
        rows = node * n_actions + action[part][data]
        phi = sp.csr_array(sp.coo_array((w, (rows, data)), shape=(S * n_actions, action[part].size)))
        T = sp.csr_array(T + phi @ _outcomes(outcome[part], bins, h[1], ended))
        weight += np.bincount(rows, w, minlength=weight.size)
    return T, weight


def check_bandwidth(bandwidth: Any) -> Floats:
    h = as_floats(bandwidth)
    if h is None or h.shape != (2,) or not np.all(np.isfinite(h) & (h >= 0.25)):
        raise InvalidInput("bandwidth", "two numbers >= 0.25: of φ and ψ, in steps of the grid", repr(bandwidth))
    return h


def _kernel(place: Places, bins: int, h: float) -> tuple[Any, Any, Any]:
    """(node, data point, weight) of a Gaussian product kernel around each place, where it is not cut off."""
    reach = np.arange(-int(np.ceil(CUT * h)), int(np.ceil(CUT * h)) + 1)
    (i, u), (j, v) = (_axis(c, reach, bins, h) for c in (place.x, place.y))
    weight = u[:, :, None] * v[:, None, :]
    point, k, m = np.nonzero(weight > 0.0)
    return i[point, k] * bins + j[point, m], point, weight[point, k, m]


def _axis(center: Floats, reach: Any, bins: int, h: float) -> tuple[Any, Floats]:
    """Nodes around each centre along one axis and their weights; zero off the grid and beyond the cut-off."""
    node = np.floor(center + 0.5).astype(np.intp)[:, None] + reach
    distance = node - center[:, None]
    inside = (node >= 0) & (node < bins) & (np.abs(distance) <= CUT * h)
    return node, np.where(inside, np.exp(-0.5 * (distance / h) ** 2), 0.0)


def _outcomes(outcome: Places, bins: int, h: float, ended: Any) -> sp.csr_array:
    """Ψ, sparse (n, S): where each step led, on nodes that are terminal if and only if it ended."""
    first = int(ended.argmax())
    x = np.where(outcome.ended, np.maximum(outcome.x, first), np.minimum(outcome.x, first - 1))
    node, data, w = _kernel(Places(x, outcome.y, outcome.ended), bins, h)
    right = ended[node // bins] == outcome.ended[data]
    psi = sp.csr_array(sp.coo_array((w[right], (data[right], node[right])), shape=(x.size, bins * bins)))
    psi.data /= np.repeat(np.asarray(psi.sum(axis=1)).reshape(-1), np.diff(psi.indptr))
    return psi


def _nearest(origin: Places, action: Any, without: Any, bins: int) -> tuple[Any, Any]:
    """The pairs without support and, for each, the nearest step of its action (in steps of the grid)."""
    from scipy.spatial import KDTree

    pairs, steps = [], []
    for a in range(without.shape[1]):
        own, lost = np.flatnonzero(action == a), np.flatnonzero(without[:, a])
        tree = KDTree(np.column_stack([origin.x[own], origin.y[own]]))
        pairs.append(lost * without.shape[1] + a)
        steps.append(own[tree.query(np.column_stack(np.divmod(lost, bins)))[1]])
    return np.concatenate(pairs), np.concatenate(steps)
