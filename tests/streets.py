"""Small road networks for the tests of route choice, and oracles that list paths one by one."""

import numpy as np
import pandas as pd

import revealed as rv


def streets(n, seed=0, both_ways=True, wide=None):
    """A grid of n × wide crossings, with streets to the east and south only where `both_ways` is False (no cycles)."""
    rng = np.random.default_rng(seed)
    rows = []
    m = n if wide is None else wide
    ways = ((0, 1), (1, 0), (0, -1), (-1, 0)) if both_ways else ((0, 1), (1, 0))
    for i, j in np.ndindex(n, m):
        for di, dj in ways:
            if 0 <= i + di < n and 0 <= j + dj < m:
                here, there = f"{i}{j}", f"{i + di}{j + dj}"
                time, toll = rng.uniform(0.6, 1.6), float(rng.integers(0, 3))
                rows.append((f"{here}-{there}", here, there, time, toll))
    links = pd.DataFrame(rows, columns=["link", "from", "to", "travel_time", "toll"])
    return rv.RoadNetwork.from_frame(links)


def model(network, travel_time=-1.5, toll=-0.4, constant=-0.6):
    """Drivers who mind time, tolls and turns."""
    params = {"travel_time": travel_time, "toll": toll, "constant": constant}
    return rv.RouteChoice(network, network.reward(list(params)), params)


def all_paths(network, origin, destination, longest=10**6):
    """Every path (a tuple of turns) of at most `longest` turns from one link to the first entry into another."""
    start, goal = network.index(origin), network.index(destination)
    found, open_ways = [], [(start, ())]
    while open_ways:
        link, way = open_ways.pop()
        if link == goal:
            found.append(way)
        elif len(way) < longest:
            open_ways += [(int(network.target[e]), (*way, int(e))) for e in np.flatnonzero(network.source == link)]
    return found


def utilities(choice, paths):
    """The sum of the rewards along each path."""
    r = np.asarray(choice.reward_model.value(choice.theta)).reshape(-1)[choice.network.pair]
    return np.array([r[list(way)].sum() for way in paths])


def named(network, origin, way):
    """A path by the labels of its links."""
    return (origin, *(network.links[network.target[e]] for e in way))


def dense_policy(choice, destination):
    """P (S, S) from z = M z + e by a dense solve: the chain of trips that end at the destination."""
    network, S = choice.network, choice.network.n_links
    r = np.asarray(choice.reward_model.value(choice.theta)).reshape(-1)[network.pair]
    M = np.zeros((S, S))
    M[network.source, network.target] = np.exp(r)
    goal = network.index(destination)
    M[goal] = 0.0
    z = np.linalg.solve(np.eye(S) - M, np.eye(S)[goal])
    return np.divide(M * z, z[:, None], out=np.zeros((S, S)), where=z[:, None] > 0.0), z
