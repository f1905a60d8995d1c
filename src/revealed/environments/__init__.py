"""Worlds to try methods on. So far: the moves of a rectangular grid."""

from revealed.environments.grid import ACTIONS, grid_transitions

__all__ = ["ACTIONS", "grid_transitions"]
