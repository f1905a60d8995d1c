"""What data can tell: rank, conditioning, and the weak direction in words."""

import numpy as np
import pytest

import revealed as rv
from revealed.identification import WEAK, identify


def garnet_fit(features, names=None, **options) -> rv.Fit:
    mdp = rv.environments.garnet(n_states=30, seed=0).mdp
    X = np.random.default_rng(0).normal(size=(30, 2))
    demos = rv.simulate(mdp, rv.solve(mdp, X @ [[1.0], [0.5]]).policy, 100, 30, seed=0)
    return rv.NFXP(rv.LinearReward(features(X), names), **options).fit(mdp, demos)


def test_two_features_that_move_together_are_named():
    rng = np.random.default_rng(1)
    fit = garnet_fit(lambda X: np.column_stack([X, X[:, 0] + 1e-3 * rng.normal(size=30)]), ["a", "b", "c"])
    found = fit.identification
    assert found.rank == 3
    assert found.condition > WEAK
    assert "features `a` and `c` are nearly collinear" in found.words
    assert "`b`" not in found.words
    assert "`a` and `c`" in str(fit.summary())
    assert fit.bse["a"] > 30 * fit.bse["b"]


def test_exact_copies_lower_the_rank():
    found = garnet_fit(lambda X: np.column_stack([X, X[:, 0]]), ["a", "b", "c"]).identification
    assert (found.rank, found.condition) == (2, np.inf)
    assert "features `a` and `c` are collinear" in found.words


def test_a_constant_is_not_seen_where_nothing_ends():
    found = garnet_fit(lambda X: np.column_stack([X, np.ones(30)]), ["a", "b", "one"]).identification
    assert found.rank == 2
    assert found.words == "choices do not depend on `one`"


def test_good_features_say_nothing():
    found = garnet_fit(lambda X: X).identification
    assert found.strong
    assert found.words == ""
    assert found.rank == 2
    assert found.condition < 10


def test_the_condition_is_that_of_alike_columns():
    """Columns of unit length: the ratio of singular values; units of features do not enter."""
    Z = np.random.default_rng(0).normal(size=(50, 4)) @ np.random.default_rng(1).normal(size=(4, 4))
    unit = Z / np.linalg.norm(Z, axis=0)
    expected = np.linalg.cond(unit)
    for scale in (1.0, np.array([1.0, 1e5, 1e-5, 10.0])):
        assert identify((Z * scale).T @ (Z * scale), "abcd").condition == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("smallest", "weak"), [(1.0 / 29.0, False), (1.0 / 31.0, True)])
def test_a_condition_above_thirty_is_weak(smallest, weak):
    rotate = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2.0)
    information = rotate @ np.diag([1.0, smallest**2]) @ rotate.T
    assert bool(identify(information, "ab").words) is weak


def test_weak_directions_are_shifts_that_hardly_matter():
    rng = np.random.default_rng(1)
    fit = garnet_fit(lambda X: np.column_stack([X, 100.0 * X[:, 0] + 1e-2 * rng.normal(size=30)]))
    weak = fit.identification.weak[0]
    information = fit.evidence.point.information
    weak = weak / np.abs(weak).max()
    mixed = np.abs(weak) * np.array([1.0, 0.0, 0.0])
    assert weak @ information @ weak < 1e-4 * (mixed @ information @ mixed)
