"""Groups of neighbouring states, for a coarse version of a chain (theory C4).

States that lead to each other are paired, pairs are paired again, and so on: a few passes give groups of some ten
states each. A pass takes every state's strongest link; where two states choose each other they become one. Ties are
broken at random, from a fixed seed, so that long lines of equal links do not wait for each other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

ROUNDS = 4  # of choosing within a pass: few states are left alone after so many


def aggregate(graph: sp.csr_array, passes: int) -> tuple[npt.NDArray[np.intp], int]:
    """(S,) group of each state, and how many groups there are; links are as strong as their entries are large."""
    rng = np.random.default_rng(0)
    links = _links(graph)
    group = np.arange(links.shape[0])
    for _ in range(passes):
        found, n = _pair(links, rng)
        group = found[group]
        member = sp.csr_array((np.ones(found.size), found, np.arange(found.size + 1)), shape=(found.size, n))
        links = _links(sp.csr_array(member.T @ links @ member), mirrored=True)
    return group, int(links.shape[0])


def _links(graph: sp.csr_array, mirrored: bool = False) -> sp.csr_array:
    """How strongly states are coupled, in either direction, without themselves."""
    both = graph if mirrored else sp.csr_array(abs(graph) + abs(graph.T))
    row = np.repeat(np.arange(both.shape[0]), np.diff(both.indptr))
    kept = (row != both.indices) & (both.data != 0.0)
    ends = np.concatenate([[0], np.cumsum(kept)])[both.indptr]
    return sp.csr_array((both.data[kept], both.indices[kept], ends), shape=both.shape)


def _pair(links: sp.csr_array, rng: np.random.Generator) -> tuple[npt.NDArray[np.intp], int]:
    """(S,) of which pair each state is; those that nobody is left for stay alone."""
    n = int(links.shape[0])
    row, column = np.repeat(np.arange(n), np.diff(links.indptr)), links.indices
    strength = links.data * (1.0 + 0.01 * rng.random(links.nnz))
    group, pairs = np.full(n, -1), 0
    for _ in range(ROUNDS):
        choice = _strongest(row, column, strength, n)
        first = np.flatnonzero(choice >= 0)
        first = first[(choice[choice[first]] == first) & (first < choice[first])]
        group[first] = group[choice[first]] = pairs + np.arange(first.size)
        pairs += first.size
        free = (group[row] < 0) & (group[column] < 0)
        row, column, strength = row[free], column[free], strength[free]
        if row.size == 0:
            break
    alone = np.flatnonzero(group < 0)
    group[alone] = pairs + np.arange(alone.size)
    return group, pairs + alone.size


def _strongest(
    row: npt.NDArray[np.intp], column: npt.NDArray[np.integer], strength: npt.NDArray[np.float64], n: int
) -> npt.NDArray[np.intp]:
    """(S,): the state that each is most strongly linked to; −1 for none. Rows are in order."""
    begins = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]])) if row.size else np.zeros(0, dtype=np.intp)
    best = np.repeat(np.maximum.reduceat(strength, begins), np.diff(np.append(begins, row.size))) if row.size else 0.0
    hit = np.flatnonzero(strength == best)
    choice = np.full(n, -1)
    choice[row[hit]] = column[hit]
    return choice
