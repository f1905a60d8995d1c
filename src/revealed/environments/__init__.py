"""Worlds whose reward is known, to judge methods by, and other people's environments."""

from revealed.environments.city import City, city
from revealed.environments.garnet import garnet
from revealed.environments.grid import ACTIONS, grid_transitions
from revealed.environments.gymnasium import from_gymnasium
from revealed.environments.mountain_car import mountain_car
from revealed.environments.objectworld import objectworld
from revealed.environments.obstacleworld import obstacleworld
from revealed.environments.rollouts import rollout
from revealed.environments.rust_bus import rust_bus
from revealed.environments.world import GridWorld, World

__all__ = [
    "ACTIONS",
    "City",
    "GridWorld",
    "World",
    "city",
    "from_gymnasium",
    "garnet",
    "grid_transitions",
    "mountain_car",
    "objectworld",
    "obstacleworld",
    "rollout",
    "rust_bus",
]
