"""Curves over trajectories: intervals, bands and tables say what pandas and SciPy say of the same rows."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib.figure import Figure

from revealed.experiments import obstacleworld
from revealed.experiments.cells import METHODS, Results
from revealed.experiments.curves import (
    METRICS,
    curve_pictures,
    draw_metric,
    draw_recovered,
    means_table,
    similarity,
)
from revealed.experiments.numbers import half_width, mean_and_half, share, short
from revealed.experiments.obstacleworld import Config

CONFIG = Config(size=4, trajectories=(2, 10, 50))
SIZES = CONFIG.trajectories
WORLD = obstacleworld.problem(CONFIG, 0)[0]


def make_results(seeds: int = 4, sizes: tuple[int, ...] = SIZES, methods: tuple[str, ...] = METHODS) -> Results:
    """Rows with random metrics in two variants; "sample" has a status of its own."""
    rng = np.random.default_rng(0)
    rows = [
        {"key": f"{method}-{seed}", "setting": "here", "method": method, "variant": variant, "size": size, "seed": seed}
        | {"arrays": size == max(sizes), "floor": 0.5 + seed, "status": "separated" if seed == 0 else "converged"}
        | {metric: rng.gamma(2.0) for metric in METRICS}
        for variant in ("occupancy", "sample")
        for size in sizes
        for method in reversed(methods)
        for seed in range(seeds)
    ]
    tables = {"reward": rng.normal(size=WORLD.mdp.n_states), "policy": WORLD.expert}
    return Results(CONFIG, pd.DataFrame(rows), pd.DataFrame(), lambda key: tables)


def axes() -> Any:
    return Figure().subplots()


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20, 21, 40, 200])
def test_half_an_interval_is_students(n):
    values = np.random.default_rng(n).normal(size=n)
    low, high = scipy.stats.t.interval(0.95, n - 1, loc=values.mean(), scale=scipy.stats.sem(values))
    assert half_width(values) == pytest.approx((high - low) / 2, rel=1e-10)
    assert half_width(pd.Series(values)) == half_width(list(values))


def test_a_single_value_tells_nothing_of_its_spread():
    assert half_width([3.0]) == np.inf


def test_similarity_is_the_least_correlation_on_the_states_that_count():
    a = np.array([0.0, 1.0, 2.0, 50.0])
    rewards = {"MCE-IRL": a, "NPL": 3.0 * a + 1.0, "CCP": np.array([0.0, 1.0, 1.0, -90.0])}
    states = np.array([True, True, True, False])
    assert similarity(rewards, states) == pytest.approx(np.corrcoef([0, 1, 2], [0, 1, 1])[0, 1])
    assert similarity(rewards, slice(None)) < -0.9
    del rewards["CCP"]
    assert similarity(rewards, states) == pytest.approx(1.0)


def test_similarity_of_a_reward_that_does_not_vary_or_of_one_alone_is_not_a_number():
    varies = np.arange(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rewards in ({"a": varies, "b": varies, "c": np.ones(4)}, {"c": np.ones(4), "a": varies}, {"a": varies}):
            assert np.isnan(similarity(rewards, slice(None)))


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_is_drawn_as_a_line_and_a_band_per_method(metric):
    results, ax = make_results(), axes()
    draw_metric(ax, results, metric, variant="occupancy", setting="here")
    lines = {line.get_label(): line for line in ax.get_lines() if line.get_label() in METHODS}
    assert list(lines) == list(METHODS)
    assert len(ax.collections) == len(METHODS)
    for band, (method, line) in zip(ax.collections, lines.items(), strict=True):
        groups = results.where(variant="occupancy", method=method).groupby("size")[metric]
        t = scipy.stats.t.ppf(0.975, 3)
        np.testing.assert_array_equal(line.get_xdata(), SIZES)
        np.testing.assert_allclose(line.get_ydata(), groups.mean())
        corners = band.get_paths()[0].vertices
        for size, mean, half in zip(SIZES, groups.mean(), t * groups.sem(), strict=True):
            heights = corners[corners[:, 0] == size, 1]
            assert (heights.min(), heights.max()) == (pytest.approx(mean - half), pytest.approx(mean + half))
    assert ax.get_title() or ax.get_ylabel()
    assert ax.get_xscale() == "log"
    assert ax.get_ylim()[0] == 0.0


@pytest.mark.parametrize("metric", METRICS)
def test_the_floor_is_drawn_where_there_is_one(metric):
    ax = axes()
    draw_metric(ax, make_results(), metric, variant="occupancy")
    levels = [line for line in ax.get_lines() if line.get_label() not in METHODS]
    if metric != "stochastic_evd":
        assert not levels
        assert not ax.texts
        return
    assert [set(line.get_ydata()) for line in levels] == [{2.0}]  # the mean of 0.5, 1.5, 2.5, 3.5
    assert [text.get_text() for text in ax.texts] == ["the expert itself"]


def test_a_method_without_results_has_no_line():
    ax = axes()
    draw_metric(ax, make_results(methods=("NPL",)), "evd", variant="sample")
    assert [line.get_label() for line in ax.get_lines()] == ["NPL"]


@pytest.mark.parametrize("results", [make_results(seeds=1), make_results(sizes=(7,))])
def test_one_seed_or_one_size_can_be_drawn(results):
    figure = Figure()
    ax = figure.subplots()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_metric(ax, results, "stochastic_evd", variant="occupancy")
        figure.draw_without_rendering()
    assert np.isfinite(ax.get_ylim()).all()


def test_sizes_are_named_on_the_axis_unless_they_are_too_close():
    for sizes, named in (((2, 10, 50), [2, 10, 50]), ((100, 700, 701), [100, 701])):
        ax = axes()
        draw_metric(ax, make_results(sizes=sizes), "evd", variant="occupancy")
        assert sorted(ax.get_xticks()) == named
        assert ax.xaxis.get_major_formatter()(named[0], 0) == str(named[0])


def test_the_table_has_means_and_half_intervals_as_pandas_has_them():
    results = make_results()
    table = means_table(results, "a caption", variant="sample", setting="here")
    assert table.caption == "a caption"
    frame = table.frame
    assert list(frame.columns) == ["trajectories", "method", *METRICS.values(), "seeds", "ended"]
    assert list(zip(frame["trajectories"], frame["method"])) == [(n, method) for n in SIZES for method in METHODS]
    for line in frame.to_dict("records"):
        rows = results.where(variant="sample", size=line["trajectories"], method=line["method"])
        for metric, name in METRICS.items():
            half = scipy.stats.t.ppf(0.975, 3) * scipy.stats.sem(rows[metric].to_numpy())
            assert line[name] == f"{short(rows[metric].mean(), 3)} ± {short(float(half))}"
        assert line["seeds"] == 4
        assert line["ended"] == "3× converged, 1× separated"


def test_a_table_of_nothing_is_empty():
    assert len(means_table(make_results(), "", variant="no such").frame) == 0


def test_recovered_rewards_are_drawn_side_by_side_and_what_is_missing_is_named():
    results = make_results(methods=("MCE-IRL", "CCP"))
    figure = draw_recovered(results, WORLD, seed=0, variant="occupancy")
    assert [ax.get_title() for ax in figure.axes] == ["true reward", "MCE-IRL", "NPL: no result", "CCP"]
    assert [bool(ax.images) for ax in figure.axes] == [True, True, False, True]


def test_each_variant_with_results_has_a_picture_with_words_for_those_who_cannot_see_it():
    results = make_results()
    notes = {"occupancy": "with weights", "sample": "without", "exact T": "never run"}
    pictures = curve_pictures(results, WORLD, "here", notes, "Somewhere")
    assert list(pictures) == ["occupancy", "sample"]
    picture = pictures["sample"]
    assert picture.caption.startswith("Somewhere, without. Mean over 4 seeds")
    means = results.where(variant="sample", method="NPL").groupby("size")["evd"].mean()
    assert f"NPL from {means[2]:.2g} to {means[50]:.2g}" in picture.alt
    assert len(picture.figure.axes) == 6


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(419.3, 3, "419"), (14.2, 1, "10"), (0.01349, 2, "0.013"), (-2.1e-6, 2, "−2.1e-6"), (0.0, 2, "0"),
     (1.0, 3, "1.00"), (np.inf, 1, "∞"), (np.nan, 1, "–"), (4.2e7, 2, "4.2e7"), (0.0996, 1, "0.1"), (-14.0, 2, "−14")],
)  # fmt: skip
def test_numbers_as_a_person_would_write_them(value, digits, text):
    assert short(value, digits) == text


def test_a_mean_and_half_its_interval():
    assert mean_and_half([1.0, 3.0]) == "2.00 ± 13"  # t of one degree of freedom is 12.7
    assert mean_and_half([5.0]) == "5.00 ± ∞"


@pytest.mark.parametrize(("value", "text"), [(0.443, "44 %"), (-0.0004, "0 %"), (-0.2, "−20 %"), (np.nan, "–")])
def test_shares_in_percent(value, text):
    assert share(value) == text
