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

from revealed.checks import require_floats
from revealed.errors import InvalidInput
from revealed.kernels import CUT, MOST_STORED, Near, average_outcomes, gaussian, scaled_rows
from revealed.mdp import Floats
from revealed.voices import shown

BANDWIDTH = (1.0, 0.5)  # of φ and of ψ, in steps of the grid


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
            what = f"no step takes action {a}, so its transitions cannot be estimated"
            raise InvalidInput.impossible(what, None, remedy, "trajectories")
    steps = GridSteps(origin, outcome, action, bins, ended, h)
    nodes = np.column_stack(np.divmod(np.arange(bins * bins), bins)).astype(np.float64)
    at_once = max(1, MOST_STORED // (2 * int(np.ceil(CUT * h.max())) + 1) ** 2)
    T, lost = average_outcomes(steps, nodes, n_actions, np.repeat(~ended, bins), at_once)
    return T, int(lost.size)


@dataclass(frozen=True, eq=False)
class GridSteps:
    """Steps on the grid and the kernels around them, whose nodes need no search."""

    origin: Places
    outcome: Places
    action: npt.NDArray[np.intp]
    bins: int
    ended: npt.NDArray[np.bool_]
    h: Floats

    @property
    def places(self) -> Floats:
        return np.column_stack([self.origin.x, self.origin.y])

    @property
    def weight(self) -> Floats:
        return np.ones(self.action.size)

    def origins(self, part: slice) -> Near:
        return _kernel(self.origin[part], self.bins, self.h[0])

    def outcomes(self, which: Any) -> sp.csr_array:
        return _outcomes(self.outcome[which], self.bins, self.h[1], self.ended)


def check_bandwidth(bandwidth: Any) -> Floats:
    expected = "two numbers >= 0.25: of φ and ψ, in steps of the grid"
    h = require_floats("bandwidth", bandwidth, expected)
    if h.shape != (2,) or not np.all(np.isfinite(h) & (h >= 0.25)):
        raise InvalidInput("bandwidth", expected, shown(bandwidth))
    return h


def _kernel(place: Places, bins: int, h: float) -> Near:
    """(node, data point, weight) of a Gaussian product kernel around each place, where it is not cut off."""
    most = int(min(np.ceil(CUT * h), bins))  # farther is off the grid
    reach = np.arange(-most, most + 1)
    (i, u), (j, v) = (_axis(c, reach, bins, h) for c in (place.x, place.y))
    weight = u[:, :, None] * v[:, None, :]
    point, k, m = np.nonzero(weight > 0.0)
    return i[point, k] * bins + j[point, m], point, weight[point, k, m]


def _axis(center: Floats, reach: Any, bins: int, h: float) -> tuple[Any, Floats]:
    """Nodes around each centre along one axis and their weights; zero off the grid and beyond the cut-off."""
    node = np.floor(center + 0.5).astype(np.intp)[:, None] + reach
    distance = node - center[:, None]
    return node, np.where((node >= 0) & (node < bins), gaussian(distance / h), 0.0)


def _outcomes(outcome: Places, bins: int, h: float, ended: Any) -> sp.csr_array:
    """Ψ, sparse (n, S): where each step led, on nodes that are terminal if and only if it ended."""
    first = int(ended.argmax()) if ended.any() else bins
    x = np.where(outcome.ended, np.maximum(outcome.x, first), np.minimum(outcome.x, first - 1))
    node, data, w = _kernel(Places(x, outcome.y, outcome.ended), bins, h)
    right = ended[node // bins] == outcome.ended[data]
    table = sp.coo_array((w[right], (data[right], node[right])), shape=(x.size, bins * bins))
    return scaled_rows(sp.csr_array(table))
