"""Pictures with bands: what is drawn where, looked up among the artists."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import revealed as rv
from models import random_mdp
from revealed.band_plots import plot_marks
from revealed.counterfactual import Counterfactual, counterfactual
from revealed.errors import InvalidInput
from scenarios import COV, THETA, estimate, fleet

TOWNS = ("Zug", "Bern, the seat of the government", "$5 to $10", "Aarau", "Chur")


def towns(labels: Any, horizon: int | None = None, cov: float = 0.04) -> Counterfactual:
    """Two actions in as many states as there are labels."""
    n = len(labels)
    mdp = random_mdp(n, 2, initial=True).replace(state_labels=labels)
    reward = rv.LinearReward(np.random.default_rng(0).normal(size=(n, 2, 1)))
    model = mdp if horizon is None else mdp.unroll(horizon)
    return counterfactual(estimate(model, reward, np.ones(1), np.array([[cov]])), params={"theta0": lambda x: x / 2})


def bars(collection: Any) -> np.ndarray:
    """(n, 3): where a bar stands, its lower and its upper end."""
    return np.array([[line[0, 0], line[0, 1], line[1, 1]] for line in collection.get_segments()])


def test_the_picture_shows_both_sides_in_their_bands():
    cf = counterfactual(estimate(fleet().mdp, fleet().reward_model(), THETA, COV), params={"RC": 12.0})
    ax: Any = cf.plot("replace").axes[0]
    before, after = ax.get_lines()
    np.testing.assert_array_equal(before.get_ydata(), cf.before.policy[:, 1])
    np.testing.assert_array_equal(after.get_ydata(), cf.after.policy[:, 1])
    reach = ax.collections[1].get_paths()[0].vertices[:, 1]
    assert reach.max() == pytest.approx(cf.after.upper.policy[:, 1].max())
    assert ax.get_ylabel() == "probability of replace"
    assert ax.get_title() == "RC 4.5 → 12"


def test_states_with_names_are_marks_with_bars_over_their_names():
    """Their numbers mean nothing, so that no line joins them."""
    cf = towns(TOWNS)
    figure = cf.plot(1)
    ax: Any = figure.axes[0]
    for line, bar, side in zip(ax.get_lines(), ax.collections, (cf.before, cf.after), strict=True):
        assert line.get_linestyle() == "None"
        np.testing.assert_array_equal(line.get_ydata(), side.policy[:, 1])
        np.testing.assert_array_equal(np.round(line.get_xdata()), range(5))
        low_high = np.column_stack([line.get_xdata(), side.lower.policy[:, 1], side.upper.policy[:, 1]])
        np.testing.assert_allclose(bars(bar), low_high)
    apart = ax.get_lines()[1].get_xdata() - ax.get_lines()[0].get_xdata()
    assert (apart > 0.1).all()  # side by side
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert names == ["Zug", "Bern, the seat of t…", "$5 to $10", "Aarau", "Chur"]
    assert not any(text.get_parse_math() for text in ax.get_xticklabels())
    figure.draw_without_rendering()


def test_names_that_could_not_be_read_are_left_out():
    few, many = (towns([f"town {k}" for k in range(n)]).plot().axes[0] for n in (40, 41))
    assert [text.get_text() for text in few.get_xticklabels()][-1] == "town 39"
    assert not any("town" in text.get_text() for text in many.get_xticklabels())
    assert many.get_lines()[0].get_linestyle() == "None"


def test_states_that_are_numbers_are_joined_in_the_order_of_the_numbers():
    cf = towns((30, 10, 20))
    ax: Any = cf.plot(1).axes[0]
    line = ax.get_lines()[1]
    np.testing.assert_array_equal(line.get_xdata(), [10, 20, 30])
    np.testing.assert_array_equal(line.get_ydata(), cf.after.policy[[1, 2, 0], 1])
    assert line.get_linestyle() == "--"


@pytest.mark.parametrize("labels", [TOWNS, range(5)])
def test_of_a_horizon_one_period_is_shown_and_named(labels):
    cf = towns(labels, horizon=3)
    for period in (0, 2):
        ax: Any = (cf.plot(1) if period == 0 else cf.plot(1, period=period)).axes[0]
        for line, side in zip(ax.get_lines(), (cf.before, cf.after), strict=True):
            np.testing.assert_array_equal(line.get_ydata(), side.policy[5 * period : 5 * period + 5, 1])
        assert ax.get_title() == f"theta0 1 → 0.5, period {period}"
    assert np.abs(cf.after.policy[:5] - cf.after.policy[10:15]).max() > 1e-3
    for wrong in (3, -1, 0.5, True):
        with pytest.raises(InvalidInput, match="period"):
            cf.plot(1, period=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="0…0"):
        towns(labels).plot(period=1)


def test_a_horizon_is_compared_with_the_model_that_has_none():
    mdp = random_mdp(5, 2, initial=True)
    reward = rv.LinearReward(np.random.default_rng(0).normal(size=(5, 2, 1)))
    fit = estimate(mdp, reward, np.ones(1), np.eye(1))
    cf = counterfactual(fit, mdp=mdp.unroll(3))
    before, after = cf.plot(1, period=1).axes[0].get_lines()
    np.testing.assert_array_equal(before.get_ydata(), cf.before.policy[:, 1])
    np.testing.assert_array_equal(after.get_ydata(), cf.after.policy[5:10, 1])
    with pytest.raises(InvalidInput, match="different states cannot share a plot"):
        counterfactual(fit, mdp=random_mdp(6, 2), reward=np.zeros((6, 2))).plot()


def test_where_nothing_is_known_no_band_is_drawn():
    cf = towns(TOWNS, cov=np.nan)
    assert len(cf.plot().axes[0].collections) == 0


def test_marks_without_bounds_stand_alone_and_one_set_needs_no_legend():
    ax: Any = Figure().subplots()
    plot_marks(ax, {"only": (np.array([0.2, 0.4]), None, None)}, ("a", "b"))
    assert len(ax.collections) == 0
    assert ax.get_legend() is None
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), [0.0, 1.0])
