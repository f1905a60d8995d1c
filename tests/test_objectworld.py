"""Objectworld's distances and its rule against loops over cells and objects."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.environments import objectworld
from revealed.environments.objectworld import Objectworld

ROW, COLUMN, INNER, OUTER = range(4)


def distance(metric: str, one: Any, other: Any) -> float:
    down, right = abs(int(one[0]) - int(other[0])), abs(int(one[1]) - int(other[1]))
    return {"euclidean": math.sqrt(down**2 + right**2), "chebyshev": max(down, right), "manhattan": down + right}[
        metric
    ]


def nearest(world: Objectworld, cell: tuple[int, int], side: int, color: int, metric: str = "euclidean") -> float:
    found = [distance(metric, cell, thing) for thing in world.objects if thing[side] == color]
    return min(found, default=math.sqrt(2) * world.shape[0])


def objects_of(world: Objectworld) -> np.ndarray:
    return world.objects


@pytest.mark.parametrize(
    "given", [{"size": 12}, {"size": 7, "seed": 4, "colors": 2}, {"size": 9, "colors": 8, "object_probability": 0.03}]
)
def test_features_are_the_distances_to_the_nearest_object_of_each_colour(given):
    world = objectworld(**given, normalise="none")
    size, colors = world.shape[0], given.get("colors", 4)
    assert world.features.shape == (size * size, 2 * colors)
    for s in range(size * size):
        for c in range(colors):
            cell = divmod(s, size)
            assert world.features[s, 2 * c] == pytest.approx(nearest(world, cell, INNER, c), rel=1e-14)
            assert world.features[s, 2 * c + 1] == pytest.approx(nearest(world, cell, OUTER, c), rel=1e-14)
    assert world.feature_names == tuple(f"{side} {c}" for c in range(colors) for side in ("inner", "outer"))


def test_a_colour_that_is_absent_is_farther_away_than_any_cell():
    world = objectworld(size=6, colors=5, object_probability=0.0, normalise="none")
    for c in (2, 3, 4):
        np.testing.assert_allclose(world.features[:, 2 * c : 2 * c + 2], math.sqrt(2) * 6, rtol=1e-15)
    np.testing.assert_allclose(objectworld(size=6, colors=5, object_probability=0.0).features[:, 4:], 1.0, rtol=1e-15)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", "manhattan"])
def test_the_reward_is_the_rule(metric, strict):
    radii, values, size = (3.0, 2.0), (2.0, -3.0, 0.5), 16
    world = objectworld(size=size, metric=metric, strict=strict, values=values, scale=1.5, seed=2)
    seen = set()
    for s in range(size * size):
        first, second = (nearest(world, divmod(s, size), OUTER, c, metric) for c in (0, 1))
        near, both = (first < radii[0], second < radii[1]) if strict else (first <= radii[0], second <= radii[1])
        value = values[0] if near and both else values[1] if near else values[2]
        seen.add(value)
        assert world.true_reward[s].tolist() == [1.5 * value] * 5
    assert seen == set(values)  # the rule's three cases all occur


def test_radii_strictness_and_metric_make_a_difference():
    make = partial(objectworld, size=16, seed=2)
    worlds = [make(), make(strict=True), make(metric="chebyshev"), make(metric="manhattan"), make(radii=(2.0, 1.0))]
    rewards = {tuple(world.true_reward[:, 0]) for world in worlds}
    assert len(rewards) == 5


def test_by_default_the_values_are_one_minus_one_and_nothing():
    assert set(np.unique(objectworld().true_reward)) == {-1.0, 0.0, 1.0}


def test_a_place_near_both_colours_is_good_near_the_first_alone_bad():
    """Two objects only: every cell's reward is told by its distance to them."""
    world = objectworld(size=9, object_probability=0.0, seed=11)
    first, second = objects_of(world)
    assert (first[OUTER], second[OUTER]) == (0, 1)
    here = int(first[ROW]) * 9 + int(first[COLUMN])
    apart = distance("euclidean", first, second)
    assert world.true_reward[here, 0] == (1.0 if apart <= 2.0 else -1.0)
    there = int(second[ROW]) * 9 + int(second[COLUMN])
    assert world.true_reward[there, 0] == (1.0 if apart <= 3.0 else 0.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_first_two_colours_are_always_there_inside_and_outside(seed):
    for p in (0.0, 0.02, 0.3):
        things = objects_of(objectworld(size=5, object_probability=p, seed=seed))
        assert {0, 1} <= set(things[:, INNER])
        assert {0, 1} <= set(things[:, OUTER])
        assert things.min() >= 0
        assert things[:, :2].max() < 5
        assert things[:, 2:].max() < 4
        assert len({(r, c) for r, c, _, _ in things.tolist()}) == len(things)  # one object per cell
        assert len(things) >= 2


def test_there_are_as_many_objects_as_the_probability_says():
    assert len(objects_of(objectworld(size=4, object_probability=0.0))) == 2
    assert len(objects_of(objectworld(size=4, object_probability=1.0))) == 16
    counts = [len(objects_of(objectworld(size=16, object_probability=0.2, seed=seed))) for seed in range(60)]
    error = math.sqrt(256 * 0.2 * 0.8 / 60)
    assert abs(np.mean(counts) - 256 * 0.2) < 4.0 * error


def test_objects_lie_anywhere_the_two_with_fixed_colours_too():
    cells = [objects_of(objectworld(size=4, object_probability=0.0, seed=seed))[:2, :2] for seed in range(150)]
    for k in (0, 1):
        assert len({tuple(cell[k].tolist()) for cell in cells}) == 16


def test_wind_moves_to_a_random_neighbour_three_times_in_ten():
    world = objectworld(size=5)
    middle, up, stay = 12, 0, 4
    T = world.mdp.transitions.matrix.toarray()
    assert T[middle * 5 + up, 7] == pytest.approx(0.7 + 0.3 / 4)
    assert T[middle * 5 + stay, middle] == pytest.approx(0.7)
    for neighbour in (7, 17, 11, 13):
        assert T[middle * 5 + stay, neighbour] == pytest.approx(0.3 / 4)
    assert T[0 * 5 + up, 0] == pytest.approx(0.7 + 2 * 0.3 / 4)  # the corner: up and left go nowhere
    assert world.mdp.action_labels == ("up", "down", "left", "right", "stay")


def test_the_defaults():
    world = objectworld()
    assert world.shape == (32, 32)
    assert world.mdp.discount == 0.9
    assert world.features.shape == (1024, 8)
    np.testing.assert_allclose(world.mdp.start(), 1 / 1024)
    best = rv.solve_hard(world.mdp, world.true_reward).policy
    np.testing.assert_allclose(world.expert, 0.7 * best + 0.3 / 5, atol=1e-12)
    assert world.expert.min() == pytest.approx(0.06)
    soft = objectworld(expert="soft")
    np.testing.assert_allclose(soft.expert, rv.solve(world.mdp, world.true_reward).policy, atol=1e-12)


def test_normalised_features():
    raw, ranged, standard = (objectworld(size=10, normalise=how) for how in ("none", "range", "standard"))
    np.testing.assert_allclose(ranged.features, raw.features / (math.sqrt(2) * 10), rtol=1e-15)
    assert 0.0 <= ranged.features.min() <= ranged.features.max() <= 1.0
    np.testing.assert_allclose(standard.features.mean(axis=0), 0.0, atol=1e-12)
    absent = np.ptp(raw.features, axis=0) == 0.0  # on a map this small colour 2 is missing
    np.testing.assert_allclose(standard.features.std(axis=0), ~absent, atol=1e-12)
    for world in (raw, ranged, standard):
        np.testing.assert_array_equal(world.distances, raw.features)
        np.testing.assert_array_equal(world.true_reward, raw.true_reward)


def test_a_feature_that_is_the_same_everywhere_is_standardised_to_nothing():
    world = objectworld(size=6, colors=3, object_probability=0.0, normalise="standard")
    np.testing.assert_allclose(world.features[:, 4:], 0.0, atol=1e-12)


def test_the_seed_strews_the_objects():
    one, same, other = (objectworld(size=8, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.objects, same.objects)
    assert objects_of(one).tolist() != objects_of(other).tolist()


def test_the_reward_model_is_the_paper_s_network():
    """Two hidden layers of 32 and 16 units on the eight features."""
    model = objectworld(size=6).reward_model()
    assert model.n_params == (8 * 32 + 32) + (32 * 16 + 16) + (16 + 1)
