"""Maps of networks: lines where links are, as broad and dark as they are used, both directions of a street in view."""

from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import revealed as rv
from revealed.environments import city
from revealed.plots import COLORS
from revealed.routes.maps import draw_fan, draw_flows, draw_network, has_return, round_below

LINKS = pd.DataFrame(
    {
        "link": ["ab", "ba", "bc", "ca"],
        "from": ["a", "b", "b", "c"],
        "to": ["b", "a", "c", "a"],
        "x_from": [0.0, 4.0, 4.0, 4.0],
        "y_from": [0.0, 0.0, 0.0, 3.0],
        "x_to": [4.0, 0.0, 4.0, 0.0],
        "y_to": [0.0, 0.0, 3.0, 0.0],
    }
)


@pytest.fixture(scope="module")
def triangle() -> rv.RoadNetwork:
    """a ⇄ b → c → a."""
    return rv.RoadNetwork.from_frame(LINKS)


def map_of(figure: Figure) -> Any:
    """The axes of the map."""
    return figure.axes[0]


def lines(figure: Figure) -> list[Any]:
    return [c for c in map_of(figure).collections if isinstance(c, LineCollection)]


def test_links_are_drawn_where_they_are(triangle):
    (drawn,) = lines(draw_network(triangle))
    np.testing.assert_array_equal([path.vertices for path in drawn.get_paths()], triangle.coordinates)


def test_the_two_directions_of_a_street_keep_to_their_right(triangle):
    """Eastbound a → b lies to the south, westbound b → a to the north, half their width apart; one-way links lie in
    the middle."""
    np.testing.assert_array_equal(has_return(triangle.coordinates), [True, True, False, False])
    (drawn,) = lines(draw_network(triangle, width=2.0))
    beside = drawn.get_offsets()
    np.testing.assert_allclose(beside[0], [0.0, -1.125], atol=1e-12)
    np.testing.assert_allclose(beside[1], [0.0, 1.125], atol=1e-12)
    assert not np.any(beside[2:])


def test_more_flow_is_broader_darker_and_on_top(triangle):
    figure = draw_flows(triangle, [5.0, 0.0, 20.0, 10.0], widest=4.5)
    base, flows = lines(figure)
    assert len(base.get_paths()) == 4
    np.testing.assert_array_equal(flows.get_array(), [5.0, 10.0, 20.0])  # the largest last, nothing where nobody goes
    np.testing.assert_allclose(flows.get_linewidths(), [1.5, 2.5, 4.5])
    figure.draw_without_rendering()
    brightness = flows.get_colors()[:, :3].sum(axis=1)
    assert (np.diff(brightness) < 0.0).all()
    assert figure.axes[1].get_ylabel() == "trips per link"


def test_one_scale_for_two_maps(triangle):
    _, flows = lines(draw_flows(triangle, [5.0, 0.0, 20.0, 10.0], most=40.0, widest=4.5, colorbar=False))
    assert flows.get_clim() == (0.0, 40.0)
    np.testing.assert_allclose(flows.get_linewidths(), [1.0, 1.5, 2.5])


def test_a_fan_shows_shares_of_trips_and_marks_where_they_start_and_end(triangle):
    figure = draw_fan(triangle, [1.0, 0.002, 0.6, 1.2], "ab", "ca")
    fan = lines(figure)[1]
    np.testing.assert_allclose(fan.get_array(), [60.0, 100.0, 100.0])  # the faint one is left out
    start, end = map_of(figure).get_lines()
    assert (start.get_xdata()[0], start.get_ydata()[0], start.get_color()) == (2.0, 0.0, COLORS[2])
    assert (end.get_xdata()[0], end.get_ydata()[0], end.get_color()) == (2.0, 1.5, COLORS[5])
    assert [text.get_text() for text in map_of(figure).get_legend().get_texts()] == ["origin", "destination"]


def test_a_fan_of_a_city_shows_only_its_surroundings_and_two_can_share_them():
    town = city(400)
    near, far = np.zeros((2, town.network.n_links))
    near[0] = far[1] = 1.0
    places = town.network.coordinates
    assert places is not None
    limits = [draw_fan(town.network, near, 0, 1, around=around).axes[0].get_xlim() for around in (None, far)]
    for (low, high), shown in zip(limits, (places[[0]], places[[0, 1]])):
        assert low < shown[..., 0].min() <= shown[..., 0].max() < high
    assert limits[0][1] - limits[0][0] < limits[1][1] - limits[1][0] < np.ptp(places[..., 0])


def test_a_city_draws_its_classes_and_its_flows():
    town = city(200)
    figure = town.plot(title="Town")
    assert sum(len(part.get_paths()) for part in lines(figure)) == town.network.n_links
    assert [text.get_text() for text in map_of(figure).get_legend().get_texts()] == list(town.kinds)
    assert figure.axes[0].get_title() == "Town"
    trips = town.demonstrate(30, destinations=5)
    flows = lines(town.plot(trips))[1]
    assert flows.get_array().sum() == trips.n_decisions + 30


@pytest.mark.parametrize(("length", "expected"), [(1.0, 1.0), (4.9, 2.0), (0.51, 0.5), (19.0, 10.0), (0.02, 0.02)])
def test_the_bar_has_a_round_length(length, expected):
    assert round_below(length) == pytest.approx(expected)


def test_what_cannot_be_drawn_is_said(triangle):
    with pytest.raises(rv.errors.InvalidInput, match=r"`flows`: expected 4 numbers >= 0, .*; got \[1\.0, 2\.0, 3\.0\]"):
        draw_flows(triangle, [1.0, 2.0, 3.0])
    with pytest.raises(
        rv.errors.InvalidInput, match=r"`visits`: expected 4 numbers .*; got -1 \(first at position 1\)"
    ):
        draw_fan(triangle, [1.0, -1.0, 0.0, 0.0], "ab", "ca")
    with pytest.raises(rv.errors.InvalidInput, match="`ax`: expected matplotlib axes; got int"):
        draw_network(triangle, ax=cast("Any", 3))
    nowhere = rv.RoadNetwork.from_frame(LINKS[["link", "from", "to"]])
    with pytest.raises(rv.errors.InvalidInput, match="`network`: expected a network with coordinates; got one without"):
        draw_network(nowhere)
