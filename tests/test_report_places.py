"""Where states lie: from coordinates, bins, labels and horizons, in the order of the model."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from models import corridor, random_mdp
from revealed.errors import InvalidInput
from revealed.fit_report.places import along_a_column, find_places


def fit_like(mdp: rv.MDP, labels: Any = None, bins: Any = None) -> Any:
    return SimpleNamespace(mdp=mdp, demonstrations=SimpleNamespace(state_labels=labels, bins=bins))


def test_coordinates_are_taken_as_given_and_their_columns_name_the_axes():
    frame = pd.DataFrame({"lon": [8.5, 8.6, np.nan, 8.7], "lat": [47.1, 47.2, 47.3, 47.4]})
    found = find_places(fit_like(corridor(4)), frame)
    assert found is not None
    assert found.names == ("lon", "lat")
    assert found.index.tolist() == [0, 1, 3]  # a state without a place is left out
    np.testing.assert_array_equal(found.xy, frame.to_numpy()[[0, 1, 3]])
    assert found.grid() is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((3, 2)), r"`coordinates`: expected an array of shape \(4, 2\), a row per state; got shape \(3, 2\)."),
        ("somewhere", r"got str."),
        (np.full((4, 2), np.nan), r"a place for at least one state"),
    ],
)
def test_other_coordinates_are_refused(given, message):
    with pytest.raises(InvalidInput, match=message):
        find_places(fit_like(corridor(4)), given)


def test_states_on_a_grid_are_cells_wherever_they_stand_in_the_order():
    rng = np.random.default_rng(0)
    xs, ys = np.array([0.0, 1.0, 3.0]), np.array([-1.0, 5.0])
    xy = np.array([(x, y) for x in xs for y in ys])[rng.permutation(6)]
    found = find_places(fit_like(corridor(6)), xy)
    assert found is not None
    grid = found.grid()
    assert grid is not None
    np.testing.assert_array_equal(grid[0], xs)
    np.testing.assert_array_equal(np.column_stack([xs[grid[2] // 2], ys[grid[2] % 2]]), xy)


def test_two_states_in_one_place_or_points_far_and_wide_are_no_grid():
    twice = find_places(fit_like(corridor(4)), [[0, 0], [0, 1], [1, 0], [1, 0]])
    wide = find_places(fit_like(corridor(4)), [[0, 0], [1, 1], [2, 2], [3, 3]])
    line = find_places(fit_like(corridor(4)), [[0, 0], [1, 0], [2, 0], [3, 0]])
    assert all(found is not None and found.grid() is None for found in (twice, wide, line))


def test_bins_of_two_columns_are_a_grid_of_their_centres_also_in_another_order():
    frame = pd.DataFrame({"miles": [0.0, 10.0, 20.0], "age": [0.0, 2.0, 4.0]})
    bins = rv.discretize(frame, ["miles", "age"], bins=[2, 3])
    order = [3, 0, 5, 1, 4, 2]
    mdp = corridor(6)
    straight = find_places(fit_like(mdp, bins.labels, bins))
    mixed = find_places(fit_like(mdp, tuple(bins.labels[k] for k in order), bins))
    assert straight is not None
    assert mixed is not None
    assert straight.names == ("miles", "age")
    np.testing.assert_array_equal(straight.xy, bins.features.to_numpy())
    np.testing.assert_array_equal(mixed.xy, straight.xy[order])
    assert straight.grid() is not None
    assert find_places(fit_like(mdp, tuple("abcdef"), bins)) is None  # other states than the bins'
    assert find_places(fit_like(mdp, None, rv.discretize(frame, "miles", bins=6))) is None


def test_labels_that_are_pairs_of_numbers_are_places_and_others_are_not():
    pairs = ((0, 1.5), (2, np.float64(3.0)), (np.int64(4), 5))
    found = find_places(fit_like(corridor(3), pairs))
    assert found is not None
    np.testing.assert_array_equal(found.xy, [[0, 1.5], [2, 3], [4, 5]])
    for labels in (None, (0, 1, 2), ((0, 1), (1, 2), "end"), ((0, "a"), (1, "b"), (2, "c")), ((0, 1, 2),) * 3):
        assert find_places(fit_like(corridor(3), labels)) is None


def test_on_a_horizon_states_lie_where_their_base_states_do_or_by_period():
    mdp = corridor(3).unroll(4)
    found = find_places(fit_like(mdp), [[0, 0], [1, 0], [0, 1]])
    assert found is not None
    assert found.index.tolist() == [0, 1, 2]
    assert found.words == "in the first period"
    by_period = find_places(fit_like(mdp))
    assert by_period is not None
    assert by_period.names[0] == "period"
    assert by_period.index.tolist() == list(range(12))  # nobody acts in the last layer
    np.testing.assert_array_equal(by_period.xy[7], [2, 1])  # state 7 is state 1 in period 2


def test_bins_of_one_column_lie_along_it_also_in_another_order():
    bins = rv.discretize(pd.DataFrame({"odometer": np.linspace(195.1, 64_000.0, 50)}), "odometer", bins=4)
    mdp = random_mdp(4, 2)
    found = along_a_column(fit_like(mdp, bins.labels, bins))
    assert found is not None
    assert found[0] == "odometer"
    np.testing.assert_array_equal(found[1], bins.centres[0])
    mixed = along_a_column(fit_like(mdp, tuple(bins.labels[k] for k in (2, 0, 3, 1)), bins))
    assert mixed is not None
    np.testing.assert_array_equal(mixed[1], bins.centres[0][[2, 0, 3, 1]])
    assert along_a_column(fit_like(mdp, tuple("abcd"), bins)) is None
    assert along_a_column(fit_like(mdp)) is None
    assert along_a_column(fit_like(mdp.unroll(2), None, bins)) is None
