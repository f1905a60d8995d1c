"""Gymnasium's tabular environments by a short name, and tables small enough to read."""

from typing import Any

import numpy as np

import revealed as rv

ENVIRONMENTS = {
    "lake": ("FrozenLake-v1", {}),
    "frozen solid": ("FrozenLake-v1", {"is_slippery": False}),
    "large lake": ("FrozenLake-v1", {"map_name": "8x8"}),
    "cliff": ("CliffWalking-v1", {}),
    "slippery cliff": ("CliffWalking-v1", {"is_slippery": True}),
    "taxi": ("Taxi-v4", {}),
    "taxi in the rain": ("Taxi-v4", {"is_rainy": True}),
}


def make(name: str) -> Any:
    import gymnasium

    known, options = ENVIRONMENTS[name]
    return gymnasium.make(known, **options)


class Tiny:
    """Looks enough like an environment: a table, and what else a test gives it."""

    def __init__(self, P: Any, **extra: Any) -> None:
        self.P = P
        self.__dict__.update(extra)


def ends(mdp: rv.MDP) -> list[int]:
    return np.flatnonzero(mdp.terminal).tolist()


def sure(state: int, reward: float = 0.0, terminated: bool = False) -> list[tuple[float, int, float, bool]]:
    return [(1.0, state, reward, terminated)]


def tiny(P: dict[int, Any], **extra: Any) -> rv.MDP:
    return rv.MDP.from_gymnasium(Tiny(P, **extra), 0.9)
