"""Draw docs/images/worlds.png, the worlds of docs/worlds.md: `python tools/draw_worlds.py`."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from revealed.environments import mountain_car, objectworld, obstacleworld, rust_bus

OUTPUT = Path(__file__).parents[1] / "docs" / "images" / "worlds.png"


def draw() -> Figure:
    figure = Figure(figsize=(6.4, 6.8), layout="constrained")
    maze, objects, car, bus = obstacleworld(), objectworld(size=16), mountain_car(), rust_bus()
    panels = [
        (maze, "reward", {"title": "Obstacleworld"}),
        (maze, "occupancy", {"title": "Obstacleworld: visits", "policy": None}),
        (objects, "reward", {"title": "Objectworld", "objects": True}),
        (car, "reward", {"title": "Mountain Car"}),
        (car, "value", {"title": "Mountain Car: value", "policy": None}),
        (bus, "reward", {"title": "Bus engines", "label": "reward of keeping"}),
    ]
    parts = np.asarray(figure.subfigures(3, 2), dtype=object)  # each with a layout of its own
    for part, (world, values, style) in zip(parts.flat, panels, strict=True):
        world.plot(values, ax=part.subplots(), fontsize=10.0, **style)
    return figure


if __name__ == "__main__":
    draw().savefig(OUTPUT, dpi=200)
    print(f"wrote {OUTPUT}")
