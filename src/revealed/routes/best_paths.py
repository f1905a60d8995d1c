"""The most probable paths in their exact order: a search on the link model that is told how far each link still is.

A path's probability is the product of its link choices, so that −log π is a length ≥ 0. With the shortest such length
from every link to the goal as the outlook, the first partial path to be taken up always leads to the best path that is
left; paths may go round, as they may in the model. Partial paths share what they have in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from revealed.checks import Floats, Ints
from revealed.errors import InvalidInput
from revealed.goal_values import Toward
from revealed.labels import how_many
from revealed.paths import Moves, cheapest_moves, shortest_costs

MOST = 1_000_000  # partial paths that are held; each takes some 200 bytes


@dataclass(frozen=True)
class FoundPath:
    """The turns of a path, in order, and the log of its probability."""

    turns: Ints
    log_probability: float


def best_paths(
    toward: Toward, moves: Moves, origin: int, n: int | None, coverage: float | None, most: int = MOST
) -> list[FoundPath]:
    """`n` paths, or as many as have `coverage` of the probability together, whichever comes first."""
    cost = np.maximum(-toward.log_policy.reshape(-1)[moves.pair], 0.0)
    left = shortest_costs(cheapest_moves(moves, cost), toward.goal)
    first = np.searchsorted(moves.source, np.arange(moves.n_states + 1))
    number = count()
    found: list[FoundPath] = []
    covered = 0.0
    # (length of the best path from here, −turns so far, a number against ties, link, length so far, turns so far)
    heap: list[tuple[float, int, int, int, float, Any]] = [(left[origin], 0, next(number), origin, 0.0, None)]
    while heap and np.isfinite(heap[0][0]):
        _, depth, _, link, length, way = heappop(heap)
        if link == toward.goal:
            found.append(FoundPath(_unwound(way), -length))
            covered += float(np.exp(-length))
            if len(found) == n or (coverage is not None and covered >= coverage):
                break
            continue
        for e in range(first[link], first[link + 1]):
            total = length + cost[e]
            whole = total + left[moves.target[e]]
            if np.isfinite(whole):
                heappush(heap, (whole, depth - 1, next(number), int(moves.target[e]), total, (e, way)))
        if len(heap) > most:
            raise _too_many(found, covered, n, coverage, most)
    return sorted(found, key=lambda path: -path.log_probability)  # rounding may have swapped equals


def _unwound(way: Any) -> Ints:
    turns = []
    while way is not None:
        turn, way = way
        turns.append(turn)
    return np.array(turns[::-1], dtype=np.intp)


def _too_many(found: list[FoundPath], covered: float, n: int | None, coverage: float | None, most: int) -> InvalidInput:
    asked = "coverage" if coverage is not None else "n"
    got = f"{how_many(len(found), 'path')} with {covered:.4f} of the probability at that limit"
    remedy = "Ask for fewer paths or less coverage, or allow more with most=."
    wanted = f"{n} paths" if coverage is None else f"paths with {coverage:g} of the probability"
    expected = f"{wanted}, with at most {most:,} partial paths in memory"
    return InvalidInput(asked, expected, got, remedy=remedy)


def sums_along(paths: list[FoundPath], attribute: Floats) -> Floats:
    """What each path gathers of an attribute of turns."""
    return np.array([attribute[path.turns].sum() for path in paths], dtype=np.float64)
