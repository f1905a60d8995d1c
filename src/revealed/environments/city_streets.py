"""The streets of a generated city: where they run, what class they are, which ways they may be driven.

Crossings lie on a shaken grid, denser in the middle, cleared along a ring. Every street is an edge of their Delaunay
triangulation, hence no two of them cross. The ring is a motorway: its neighbouring nodes have nothing between them,
hence are joined in the triangulation. Arterials are shortest ways between hubs, found by one search from all hubs at
once; they alone meet the motorway. Of the other edges a spanning tree and then the shortest stay as local streets,
until there are as many as wanted. Some of those become one-way, as far as everybody can still get everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from revealed.checks import Bools, Floats, Ints
from revealed.tables import sparse_table

LOCAL, ARTERIAL, MOTORWAY = 0, 1, 2
KINDS = ("local street", "arterial", "motorway")
SPEEDS = (30.0, 50.0, 90.0)  # km/h
BLOCK = 0.22  # km between crossings, on average
SHAKE = 0.24  # of a block: how far a crossing may lie from its place on the grid, in each direction
BENT = 0.08  # how much long waves stretch and turn the grid
DENSER = 0.12  # how much closer crossings are in the middle than on average
RING = 0.58  # of the city's radius: where the motorway runs
PER_NODE = 1.65  # streets
PER_HUB = 45.0  # crossings
ONE_WAY = 0.12  # share of all streets, of which some turn out to be needed both ways
DRIVEN = 1.894  # directions per street that come of it


@dataclass(frozen=True)
class Streets:
    """`nodes` (N, 2) in km; `ends` (E, 2) nodes of streets, with `kind` and `one_way` (E,): from the first end only."""

    nodes: Floats
    ends: Ints
    kind: Ints
    one_way: Bools


def lay_streets(n_links: int, rng: np.random.Generator) -> Streets:
    """Streets that have about `n_links` directions to be driven in, all joined."""
    n_streets = round(n_links / DRIVEN)
    nodes, n_ring = _crossings(round(n_streets / PER_NODE), rng)
    edges, clear = triangulate(nodes)
    length = np.linalg.norm(nodes[edges[:, 0]] - nodes[edges[:, 1]], axis=1)
    kind = np.where(_on_ring(edges, n_ring), MOTORWAY, LOCAL)
    kind[_arterials(nodes, edges, length, rng) & (kind == LOCAL)] = ARTERIAL
    barred = (kind == LOCAL) & (edges < n_ring).any(axis=1)
    wish = length / BLOCK + np.where(clear, 0.0, 0.5) + rng.uniform(0.0, 0.6, len(edges))
    kept = _keep(edges, kind, wish + 1e3 * barred, n_streets)
    ends = np.where(rng.random((len(edges), 1)) < 0.5, edges, edges[:, ::-1])[kept]
    return Streets(nodes, ends, kind[kept], _one_way(ends, kind[kept], len(nodes), rng))


def _crossings(n: int, rng: np.random.Generator) -> tuple[Floats, int]:
    """(n, 2) places in km, those on the ring first and in order, and how many they are."""
    half = int(np.ceil(0.7 * np.sqrt(n))) + 2
    grid = np.stack(np.meshgrid(*(np.arange(-half, half + 1.0),) * 2), axis=-1).reshape(-1, 2)
    grid = grid + rng.uniform(-SHAKE, SHAKE, grid.shape)
    radius = np.sqrt(n / np.pi)
    n_ring = round(2.0 * np.pi * RING * radius)
    around = 2.0 * np.pi * np.arange(n_ring) / n_ring
    ring = RING * radius * np.column_stack([np.cos(around), np.sin(around)])
    away, angle = np.linalg.norm(grid, axis=1), np.arctan2(grid[:, 1], grid[:, 0])
    lobes = sum(0.05 * np.cos(k * angle + rng.uniform(0.0, 2.0 * np.pi)) for k in (2, 3, 5))
    free = np.abs(away - RING * radius) > 0.65
    inner = grid[free][np.argsort((away * (1.0 + lobes))[free], kind="stable")][: n - n_ring]
    return BLOCK * _bend(np.concatenate([ring, inner]), radius, rng), n_ring


def _bend(places: Floats, radius: float, rng: np.random.Generator) -> Floats:
    """Blocks are smaller in the middle, and long waves keep straight lines from being straight."""
    away = np.linalg.norm(places, axis=1, keepdims=True)
    places = places * (1.0 - DENSER + DENSER * away / radius)
    for _ in range(3):
        wave, push = rng.normal(size=(2, 2))
        push *= BENT / np.linalg.norm(push) / np.linalg.norm(wave)
        phase = places @ wave * np.pi / radius + rng.uniform(0.0, 2.0 * np.pi)
        places = places + radius / np.pi * push * np.sin(phase)[:, None]
    return places


def triangulate(nodes: Floats) -> tuple[Ints, Bools]:
    """(E, 2) the edges of the Delaunay triangulation, sorted, and which are Gabriel's: those with no third node in the
    circle over them."""
    from scipy.spatial import Delaunay

    corners = Delaunay(nodes).simplices.astype(np.intp)
    sides = np.concatenate([corners[:, [i, j]] for i, j in ((0, 1), (1, 2), (2, 0))])
    opposite = np.concatenate([corners[:, k] for k in (2, 0, 1)])
    to_first, to_second = (nodes[sides[:, i]] - nodes[opposite] for i in (0, 1))
    blunt = (to_first * to_second).sum(axis=1) <= 0.0
    edges, which = np.unique(np.sort(sides, axis=1), axis=0, return_inverse=True)
    return edges, np.bincount(which.reshape(-1), weights=blunt) == 0.0


def _on_ring(edges: Ints, n_ring: int) -> Bools:
    """Whether an edge joins neighbours on the ring, whose nodes come first and in order."""
    step = np.abs(edges[:, 0] - edges[:, 1])
    return (edges < n_ring).all(axis=1) & ((step == 1) | (step == n_ring - 1))


def _arterials(nodes: Floats, edges: Ints, length: Floats, rng: np.random.Generator) -> Bools:
    """(E,) whether an edge lies on a shortest way between two neighbouring hubs.

    One search from all hubs tells each node its nearest hub and the way there. Where an edge joins the regions of two
    hubs there is a way between them; the shortest one is kept where the hubs are neighbours in Gabriel's sense.
    """
    from scipy.sparse.csgraph import dijkstra

    hubs = _hubs(nodes, rng)
    graph = _graph(edges, length, len(nodes))
    far, before, source = dijkstra(graph, directed=False, indices=hubs, min_only=True, return_predecessors=True)
    place = np.searchsorted(hubs, source)
    pair = np.sort(place[edges], axis=1)
    between = np.flatnonzero(pair[:, 0] != pair[:, 1])
    total = far[edges[between]].sum(axis=1) + length[between]
    between = between[np.argsort(total, kind="stable")]
    pairs, first = np.unique(pair[between], axis=0, return_index=True)
    near, clear = triangulate(nodes[hubs])
    chosen = between[first[_among(pairs, near[clear], len(hubs))]]
    return _traced(edges, chosen, before.astype(np.intp))


def _hubs(nodes: Floats, rng: np.random.Generator) -> Ints:
    """Nodes about evenly over the city, sorted."""
    from scipy.spatial import cKDTree

    low, high = nodes.min(axis=0), nodes.max(axis=0)
    side = max(2, round(np.sqrt(len(nodes) * 4.0 / np.pi / PER_HUB)))
    grid = np.stack(np.meshgrid(*(np.arange(side) + 0.5,) * 2), axis=-1).reshape(-1, 2)
    places = low + (grid + rng.uniform(-0.2, 0.2, grid.shape)) / side * (high - low)
    gap, nearest = cKDTree(nodes).query(places)
    return np.unique(np.asarray(nearest)[gap < 1.5 * BLOCK])


def _traced(edges: Ints, chosen: Ints, before: Ints) -> Bools:
    """The chosen edges and those on the ways back from their ends to the hubs."""
    marked = np.zeros(len(edges), dtype=bool)
    marked[chosen] = True
    n = len(before)
    seen = before < 0  # the hubs, where the ways end
    here = np.unique(edges[chosen])
    here = here[~seen[here]]
    code = edges[:, 0] * n + edges[:, 1]  # ascending: the edges are sorted
    while here.size:
        seen[here] = True
        back = before[here]
        marked[np.searchsorted(code, np.minimum(here, back) * n + np.maximum(here, back))] = True
        here = np.unique(back[~seen[back]])
    return marked


def _among(pairs: Ints, known: Ints, n: int) -> Bools:
    return np.isin(pairs[:, 0] * n + pairs[:, 1], known[:, 0] * n + known[:, 1])


def _keep(edges: Ints, kind: Ints, wish: Floats, n_streets: int) -> Ints:
    """Which edges become streets: all of a higher class, what joins the rest to them, then by wish."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    n = int(edges.max()) + 1
    weight = np.where(kind == LOCAL, wish, 1e-3 * wish)
    tree = sp.coo_array(minimum_spanning_tree(_graph(edges, weight, n)))
    low, high = np.sort(np.stack(tree.coords).astype(np.intp), axis=0)
    needed = (kind != LOCAL) | _among(edges, np.column_stack([low, high]), n)
    order = np.argsort(np.where(needed, -1.0, wish), kind="stable")
    return np.sort(order[: max(n_streets, int(needed.sum()))])


def _one_way(ends: Ints, kind: Ints, n: int, rng: np.random.Generator) -> Bools:
    """Local streets by lot, but none that nobody could come back from.

    With two-way streets alone everybody gets everywhere. One-way streets within a strong component leave it one, and
    the others become two-way again.
    """
    from scipy.sparse.csgraph import connected_components

    drawn = (kind == LOCAL) & (rng.random(len(ends)) < ONE_WAY * len(ends) / (kind == LOCAL).sum())
    both = np.concatenate([ends, ends[~drawn][:, ::-1]])
    part = connected_components(_graph(both, np.ones(len(both)), n), connection="strong")[1]
    return drawn & (part[ends[:, 0]] == part[ends[:, 1]])


def _graph(edges: Ints, weight: Floats, n: int) -> sp.csr_array:
    return sparse_table(weight, edges[:, 0], edges[:, 1], (n, n))
