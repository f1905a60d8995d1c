"""A town of six links for tests, of which everything is known by hand.

D --cd-- C --ce-- E      x to the east, y to the north, blocks of length 1; ab and ba are two directions of one
|        |               street, the others are one-way: a ring ab, bc, cd, da, and ce, which is a dead end.
da       bc
|        |
A --ab-- B
  --ba--
"""

import pandas as pd

import revealed as rv
from revealed.trajectories import Steps

LINKS = ("ab", "ba", "bc", "cd", "da", "ce")
TIMES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
# turns in their order: by the link that is left, then by the link that is entered
TURNS = [("ab", "ba"), ("ab", "bc"), ("ba", "ab"), ("bc", "cd"), ("bc", "ce"), ("cd", "da"), ("da", "ab")]
BACK = [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
LEFT = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0]
POINTS = {"A": (0.0, 0.0), "B": (1.0, 0.0), "C": (1.0, 1.0), "D": (0.0, 1.0), "E": (2.0, 1.0)}


def links() -> pd.DataFrame:
    ends = {"from": [link[0].upper() for link in LINKS], "to": [link[1].upper() for link in LINKS]}
    return pd.DataFrame({"link": LINKS, **ends, "time": TIMES})


def nodes() -> pd.DataFrame:
    return pd.DataFrame([(name, *point) for name, point in POINTS.items()], columns=["node", "x", "y"])


def town(**options) -> rv.RoadNetwork:
    return rv.RoadNetwork.from_frame(links(), nodes=nodes(), **options)


def turns_of(network: rv.RoadNetwork) -> list[tuple]:
    return [(network.links[s], network.links[t]) for s, t in zip(network.source, network.target, strict=True)]


def steps_of(demos: rv.Demonstrations) -> Steps:
    assert demos.steps is not None
    return demos.steps


def trip_table(*trips: tuple[str, str]) -> pd.DataFrame:
    """("T1", "ab bc cd") → rows with sequence 1, 2, 3."""
    rows = [(name, k, link) for name, path in trips for k, link in enumerate(path.split(), 1)]
    return pd.DataFrame(rows, columns=["trip", "sequence", "link"])
