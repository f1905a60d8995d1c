"""Obstacleworld (the paper's Figure 1): paths, obstacles and a goal, seen only by which of the three a cell is.

Three features describe every cell, so a few demonstrations tell what all cells are worth; what an estimated policy
knows of cells that nobody visited is another matter. That contrast is what the paper uses this world for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Ints, require_count, require_option, require_probability
from revealed.environments.grid import ACTIONS, grid_transitions
from revealed.environments.world import GridWorld, check_scale, make_expert
from revealed.errors import InvalidInput
from revealed.gates import require_memory, within_memory
from revealed.mdp import MDP, Floats
from revealed.simulation import make_rng
from revealed.voices import shown

MARKS = ".#G"  # path, obstacle, goal: the order of the features
NAMES = ("path", "obstacle", "goal")
WEIGHTS = (0.2, 0.0, 1.0)
GOALS = ("ordinary", "absorbing")
STARTS = ("uniform", "corner")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Obstacleworld(GridWorld):
    """`layout` is the map as text, one line per row: `.` path, `#` obstacle, `G` goal."""

    layout: str


@within_memory("size")
def obstacleworld(
    size: int = 16,
    density: float = 0.3,
    discount: float = 0.95,
    scale: float = 3.0,
    seed: int = 0,
    layout: str | None = None,
    expert: str = "soft",
    noise: float = 0.3,
    goal: str = "ordinary",
    start: str = "uniform",
    width: int = 3,
) -> Obstacleworld:
    """A grid with obstacles that can be entered but are worth nothing, and a goal in a corner.

    Moves up, down, left and right are deterministic; a move off the grid stays put. True weights are `scale` ×
    (0.2, 0, 1) for path, obstacle and goal. An "ordinary" `goal` can be left again; in an "absorbing" one, who has
    arrived stays, and is paid for every step. Walks `start` anywhere ("uniform") or in the upper left "corner".

    Each cell off the diagonal corridor, which is `width` cells wide, is an obstacle with probability `density`, drawn
    from `seed`; or `layout` is the map itself, one line per row, as in `".#.\\n..G"`; it may be any rectangle, and
    `size`, `density`, `seed` and `width` are then ignored.
    """
    require_option("goal", goal, GOALS)
    require_option("start", start, STARTS)
    cells = _random_cells(size, density, seed, width) if layout is None else _read(layout)
    weights = check_scale(scale) * np.array(WEIGHTS)
    rows, columns = cells.shape
    T = grid_transitions(rows, columns)
    if goal == "absorbing":
        T = _absorbing(T, np.flatnonzero(cells.reshape(-1) == "G"))
    mdp = MDP(T, discount, _starts(cells.size, start), action_labels=ACTIONS[:4])
    features = np.stack([cells.reshape(-1) == mark for mark in MARKS], axis=1).astype(np.float64)
    true_reward = np.repeat((features @ weights)[:, None], 4, axis=1)
    return Obstacleworld(
        name="Obstacleworld",
        mdp=mdp,
        features=features,
        true_reward=true_reward,
        expert=make_expert(mdp, true_reward, expert, noise),
        feature_names=NAMES,
        true_weights=weights,
        length=30,
        shape=(rows, columns),
        layout="\n".join("".join(row) for row in cells),
    )


def corridor(size: int, width: int = 3) -> Any:
    """(size, size) bool: the diagonal from the upper left corner to the goal, and the cells beside it up to `width`
    cells in all."""
    row, column = np.indices((size, size))
    return np.abs(row - column) <= width // 2


def _starts(cells: int, start: str) -> Floats:
    if start == "uniform":
        return np.full(cells, 1.0 / cells)
    return np.eye(1, cells)[0]


def _absorbing(T: sp.csr_array, goals: Ints) -> sp.csr_array:
    """The same moves, but whoever is at a goal stays there."""
    rows = (goals[:, None] * 4 + np.arange(4)).reshape(-1)
    keep = np.ones(T.shape[0])
    keep[rows] = 0.0
    stay = sp.csr_array((np.ones(rows.size), (rows, np.repeat(goals, 4))), shape=T.shape)
    return sp.csr_array(sp.diags_array(keep) @ T + stay)


def _random_cells(size: Any, density: Any, seed: Any, width: Any) -> Any:
    require_count("size", size, least=2)
    require_memory("size", size, 100 * int(size) ** 2)
    require_probability("density", density)
    require_count("width", width)
    if width % 2 == 0:
        raise InvalidInput("width", "an odd number of cells: the diagonal, and as many on either side", shown(width))
    blocked = (make_rng(seed).random((size, size)) < density) & ~corridor(size, width)
    cells = np.where(blocked, "#", ".")
    cells[-1, -1] = "G"
    return cells


def _read(layout: Any) -> Any:
    """Lines of marks as an array; blanks around lines and empty lines are ignored."""
    lines = [line.strip() for line in layout.splitlines() if line.strip()] if isinstance(layout, str) else []
    if not lines:
        raise InvalidInput("layout", 'a map as text, one line per row, as in ".#.\\n..G"', shown(layout))
    for i, line in enumerate(lines):
        if len(line) != len(lines[0]):
            raise InvalidInput("layout", f"lines of equal length ({len(lines[0])})", f"{len(line)}", f"line {i + 1}")
        wrong = sorted(set(line) - set(MARKS))
        if wrong:
            expected = '"." for path, "#" for obstacle, "G" for goal'
            raise InvalidInput("layout", expected, shown(wrong[0]), f"line {i + 1}, column {line.index(wrong[0]) + 1}")
    cells = np.array([list(line) for line in lines])
    if not (cells == "G").any():
        raise InvalidInput("layout", 'at least one goal "G"', "none")
    return cells
