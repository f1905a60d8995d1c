"""Files of decisions for tests of the command line: riders on a ring of six stations, who like shops and green."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import revealed as rv

STATIONS = ("airport", "centre", "harbour", "museum", "park", "zoo")
CHOICES = ("back", "on", "stay")
NAMES: dict[str, Any] = {"id": "rider", "time": "t", "state": "station", "action": "choice"}
FLAGS = tuple(part for name, column in NAMES.items() for part in (f"--{name}", column))


def stations() -> pd.DataFrame:
    shops, green = [0.5, 3.0, 1.0, 0.2, 0.0, 0.4], [0.0, 0.1, 0.6, 0.3, 2.0, 1.0]
    places = {"x": [0, 1, 2, 2, 1, 0], "y": [0, 0, 0, 1, 1, 1]}
    return pd.DataFrame({"station": STATIONS, "shops": shops, "green": green, **places})


def ring() -> rv.MDP:
    stay = np.eye(6)
    moves = [0.9 * np.roll(stay, step, axis=1) + 0.1 * stay for step in (-1, 1)]
    return rv.MDP(np.stack([*moves, stay], axis=1), 0.9, state_labels=STATIONS, action_labels=CHOICES)


def trips(n: int = 40, length: int = 25, seed: int = 1) -> pd.DataFrame:
    likes = stations()[["shops", "green"]].to_numpy() @ [0.4, 0.3]
    policy = rv.solve(ring(), np.tile(likes, (3, 1)).T).policy
    return rv.simulate(ring(), policy, n, length, seed).to_frame(**NAMES)


def buses(n: int = 40, months: int = 40) -> pd.DataFrame:
    """Odometers that grow, and engines that are replaced the sooner the more they show."""
    rng = np.random.default_rng(0)
    rows = []
    for bus in range(n):
        miles = 0.0
        for month in range(months):
            replaced = rng.random() < 1.0 / (1.0 + np.exp(4.0 - miles / 20.0))
            when = np.datetime64("1975-01", "M") + month
            rows.append((bus, str(when) + "-15", miles, "replace" if replaced else "keep"))
            miles = min(99.0, (0.0 if replaced else miles) + rng.exponential(8.0))
    return pd.DataFrame(rows, columns=["bus", "month", "miles", "decision"])


def grid() -> pd.DataFrame:
    """Walks on a square of three by three that end in its last corner; states have two columns, and weights."""
    rng, rows = np.random.default_rng(0), []
    steps = {"e": (1, 0), "n": (0, 1), "s": (0, -1), "w": (-1, 0)}
    for walker in range(60):
        (x, y), t = divmod(int(rng.integers(0, 8)), 3), 0
        while (x, y) != (2, 2) and t < 20:
            go = str(rng.choice(list(steps), p=[0.35, 0.35, 0.15, 0.15]))
            to = [int(np.clip(at + step, 0, 2)) for at, step in zip((x, y), steps[go], strict=True)]
            rows.append((f"w{walker}", t, x, y, go, *to, 1 + walker % 2))
            (x, y), t = to, t + 1
    return pd.DataFrame(rows, columns=["who", "t", "x", "y", "go", "x2", "y2", "times"])


def write(folder: Path) -> Path:
    """trips.csv, stations.csv, moves.csv, buses.csv, grid.csv in a folder."""
    trips().to_csv(folder / "trips.csv", index=False)
    stations().to_csv(folder / "stations.csv", index=False)
    moves = ring().to_frame()
    moves.columns = ["station", "choice", "next_station", "probability"]
    moves.to_csv(folder / "moves.csv", index=False)
    buses().to_csv(folder / "buses.csv", index=False)
    grid().to_csv(folder / "grid.csv", index=False)
    return folder
