"""Garnet: random, but with the branching, the reach and the laws that were asked for."""

import math
from itertools import combinations

import numpy as np
import pytest

from revealed.environments import garnet
from revealed.environments.garnet import _distinct


@pytest.mark.parametrize(("S", "A", "branching"), [(100, 4, 3), (7, 2, 7), (5, 3, 1), (1, 1, 1), (50, 2, 49)])
def test_each_pair_leads_to_that_many_different_states(S, A, branching):
    world = garnet(S, A, branching)
    T = world.mdp.transitions.matrix.toarray()
    assert T.shape == (S * A, S)
    for row in T:
        assert np.count_nonzero(row) == branching
        assert abs(sum(row) - 1.0) <= 1e-12
        assert row.min() >= 0.0


def test_every_set_of_successors_is_alike():
    """χ² of the ten pairs among five states: its 99.9 % quantile with nine degrees of freedom is 27.9."""
    drawn = np.sort(_distinct(20_000, 2, 5, np.random.default_rng(0)), axis=1).tolist()
    counts = [sum(1 for pair in drawn if tuple(pair) == chosen) for chosen in combinations(range(5), 2)]
    assert sum(counts) == 20_000
    assert sum((n - 2000) ** 2 / 2000 for n in counts) < 27.9


def test_probabilities_are_uniform_on_the_simplex():
    """The first two moments of Dirichlet(1, 1, 1): mean 1/3, variance 1/18; P(p > ½) = ¼."""
    p = garnet(1000, 5, 3, seed=1).mdp.transitions.matrix.data
    n = p.size / 3
    assert p.mean() == pytest.approx(1 / 3, abs=1e-12)
    assert p.var() == pytest.approx(1 / 18, rel=0.03)
    assert np.mean(p > 0.5) == pytest.approx(0.25, abs=4 * math.sqrt(0.25 * 0.75 / n))


@pytest.mark.parametrize(("reach", "branching"), [(1, 3), (4, 5), (10, 3), (10, 20), (20, 3)])
def test_with_a_reach_successors_are_near_on_a_ring(reach, branching):
    S, A = 20, 3
    T = garnet(S, A, branching, reach=reach, seed=2).mdp.transitions.matrix.toarray()
    far = 0
    for s in range(S):
        for a in range(A):
            for there in np.flatnonzero(T[s * A + a]):
                apart = min((there - s) % S, (s - there) % S)
                assert apart <= reach
                far = max(far, apart)
    assert far == min(reach, S // 2)  # all of it is used


def test_features_are_standard_normal_and_the_weights_have_the_length_of_the_scale():
    world = garnet(5000, 2, 2, n_features=3, scale=7.0, discount=0.5, reach=2)
    assert world.features.shape == (5000, 3)
    assert np.abs(world.features.mean(axis=0)).max() < 4 / math.sqrt(5000)
    np.testing.assert_allclose(world.features.std(axis=0), 1.0, atol=4 / math.sqrt(2 * 5000))
    assert world.true_weights is not None
    assert math.sqrt(sum(w**2 for w in world.true_weights)) == pytest.approx(7.0)
    for s in range(0, 5000, 250):
        r = sum(f * w for f, w in zip(world.features[s], world.true_weights, strict=True))
        assert world.true_reward[s].tolist() == pytest.approx([r, r])


def test_the_seed_draws_everything():
    one, same, other = (garnet(30, 3, seed=seed) for seed in (1, 1, 2))
    for part in ("features", "true_weights", "true_reward", "expert"):
        np.testing.assert_array_equal(getattr(one, part), getattr(same, part))
        assert (getattr(one, part) != getattr(other, part)).any()
    assert abs(one.mdp.transitions.matrix - same.mdp.transitions.matrix).max() == 0.0
    assert abs(one.mdp.transitions.matrix - other.mdp.transitions.matrix).max() > 0.0


def test_starts_are_uniform_and_the_discount_is_as_asked():
    world = garnet(10, 2, discount=0.5)
    assert world.mdp.start().tolist() == pytest.approx([0.1] * 10)
    assert world.mdp.discount == 0.5
    assert garnet().mdp.n_states == 100


def test_only_the_successors_are_stored_however_many_states_there_are():
    world = garnet(30_000, 2, 2, expert="noisy", reach=3, discount=0.5)
    assert world.mdp.transitions.matrix.nnz == 30_000 * 2 * 2
