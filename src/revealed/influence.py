"""The covariance of two steps, ψ̂ from the moves and θ̂ at ψ̂ (theory N5), without writing it out.

There may be many thousands of ψ, but their noise is sparse: each pair's moves are a multinomial of its own, and an
agent made few of them. The covariance of (θ̂, ψ̂) is kept as own ⊕ 0 + BᵀB, a row of B per source of noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, Floats, Ints


@dataclass(frozen=True)
class Group:
    """Sources of noise, `rows` of B, and the parameters ψ that they move, in `pieces` (begin, end): these sources move
    no others, and no others move these."""

    rows: Ints
    pieces: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Influence:
    """`own` (K, K) is the noise of θ̂ were ψ known, where that is apart from B; B has the columns `theta` (R, K) and
    `psi`, sparse (R, L). `lost` (K + L,) are the parameters of which the data say nothing."""

    own: Floats = field(repr=False)
    theta: Floats = field(repr=False)
    psi: sp.csr_array = field(repr=False)
    lost: Bools = field(repr=False)

    @property
    def of_theta(self) -> Floats:
        """(K, K): the covariance of θ̂, NaN for what is lost."""
        return _without(self.own + self.theta.T @ self.theta, self.lost[: len(self.own)])

    @property
    def of_psi(self) -> Floats:
        """(L,): the variances of ψ̂, NaN for what is lost."""
        variance = np.asarray(self.psi.multiply(self.psi).sum(axis=0), dtype=np.float64).reshape(-1)
        return np.where(self.lost[len(self.own) :], np.nan, variance)

    def written_out(self) -> Floats:
        """(K + L, K + L), for few ψ."""
        cross = self.psi.T @ self.theta
        matrix = np.block([[self.own + self.theta.T @ self.theta, cross.T], [cross, (self.psi.T @ self.psi).toarray()]])
        return _without(matrix, self.lost)

    def groups(self, most: int) -> Iterator[Group]:
        """All sources of noise, in pieces of at most `most` parameters where that is possible."""
        rows, columns = np.repeat(np.arange(self.psi.shape[0]), np.diff(self.psi.indptr)), self.psi.indices
        L = self.psi.shape[1]
        first, last = np.full(self.psi.shape[0], L, dtype=np.intp), np.zeros(self.psi.shape[0], dtype=np.intp)
        np.minimum.at(first, rows, columns)
        np.maximum.at(last, rows, columns)
        cuts = _cuts(first[first < L], last[first < L], L, most)
        group = np.minimum(np.searchsorted(cuts, first, side="right") - 1, len(cuts) - 2)
        order = np.argsort(group, kind="stable")
        parts = np.split(order, np.searchsorted(group[order], np.arange(1, len(cuts) - 1)))
        for begin, end, part in zip(cuts[:-1], cuts[1:], parts, strict=True):
            ends = [*range(int(begin), int(end), most), int(end)]
            yield Group(part, tuple(pairwise(ends)))


def _cuts(first: Ints, last: Ints, L: int, most: int) -> Ints:
    """0 = c₀ < c₁ < … = L, between which lie the columns of groups that no row reaches beyond; groups that are small
    are taken together."""
    over = np.bincount(first + 1, minlength=L + 2)[: L + 1] - np.bincount(last + 1, minlength=L + 2)[: L + 1]
    free = np.flatnonzero(np.cumsum(over) == 0)  # c: no row has a column before it and another at it or after
    kept = [0]
    for k, cut in enumerate(free):
        after = free[k + 1] if k + 1 < free.size else L
        if cut > kept[-1] and after - kept[-1] > most:
            kept.append(int(cut))
    return np.array([*kept, L] if kept[-1] < L else kept, dtype=np.intp)


def _without(matrix: Floats, lost: Bools) -> Floats:
    matrix = (matrix + matrix.T) / 2.0
    matrix[lost], matrix[:, lost] = np.nan, np.nan
    return matrix
