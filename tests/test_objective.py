"""Lengths of vectors whose squares do not fit into float64, and the fit that met them."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import revealed as rv
from revealed.diagnosis import parts_along, without
from revealed.objective import vector_length

ORDINARY = st.just(0.0) | st.floats(1e-100, 1e100) | st.floats(-1e100, -1e-100)
LARGE = st.floats(1e190, 1e300) | st.floats(-1e300, -1e190) | st.floats(-1.0, 1.0)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@given(arrays(np.float64, st.integers(0, 6), elements=ORDINARY))
def test_a_length_is_the_2_norm(vector):
    assert vector_length(vector) == pytest.approx(float(np.linalg.norm(vector)), rel=1e-14, abs=0.0)


@given(arrays(np.float64, st.integers(1, 6), elements=st.floats(-10.0, 10.0)), st.sampled_from([1e-200, 1e200]))
def test_it_grows_with_its_vector_also_where_squares_do_not_fit(vector, unit):
    tiny = np.abs(vector) < 1e-100  # in the small unit these would not be numbers of full precision
    vector = np.where(tiny, 0.0, vector)
    assert vector_length(unit * vector) == pytest.approx(unit * float(np.linalg.norm(vector)), rel=1e-14, abs=0.0)


@pytest.mark.parametrize(
    ("vector", "length"),
    [([3e200, -4e200], 5e200), ([3e-200, 4e-200], 5e-200), ([5e-324], 5e-324), ([1.5e308, 1.5e308], np.inf),
     ([0.0, -0.0], 0.0), ([], 0.0), ([1.0, -np.inf], np.inf), ([1e200, 0.0], 1e200)],
)  # fmt: skip
def test_a_length_at_the_ends_of_float64(vector, length):
    assert vector_length(np.array(vector)) == pytest.approx(length, rel=1e-15, abs=0.0)


def test_a_vector_with_a_hole_has_no_length():
    assert np.isnan(vector_length(np.array([1.0, np.nan])))


@given(arrays(np.float64, 4, elements=LARGE), st.integers(0, 3))
def test_parts_along_a_direction_do_not_depend_on_its_length(direction, where):
    """What is left is at right angles to it; and it is the same for the direction in any unit."""
    direction[where] = 1e300
    theta = np.array([1.0, -2.0, 0.5, 4.0])
    short = direction / 1e300
    np.testing.assert_allclose(parts_along(theta, direction[None]), parts_along(theta, short[None]), atol=1e-12)
    assert without(theta, direction[None]) @ short == pytest.approx(0.0, abs=1e-12)


def test_features_that_choices_hardly_see_overflow_nowhere():
    """From one walk on this map the first update makes π̃ nearly certain, and no way in it leads to the goal: the unit
    of that feature is then some 1e-245, and a gradient in such units is beyond float64 once it is squared."""
    world = rv.environments.obstacleworld(16, 0.3, 0.95, 3.0, seed=8, goal="absorbing", start="corner", width=1)
    demos = world.demonstrate(50, 30, 8).subset(range(1))
    options = {"weighting": "occupancy", "updates": 10, "l2": 1e-5, "tol": 1e-4}
    fit = rv.NPL(world.reward_model(), **options).fit(world.mdp, demos)
    assert np.isfinite(fit.theta).all()
    assert np.isfinite(fit.gradient_norm)
