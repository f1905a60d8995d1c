"""Curves over trajectories: intervals, bands and tables say what pandas and SciPy say of the same rows."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from revealed.experiments import obstacleworld
from revealed.experiments.cells import METHODS, Results
from revealed.experiments.curves import (
    FITS,
    KEYS,
    LIMIT,
    METRICS,
    STYLE,
    curve_picture,
    draw_metric,
    draw_recovered,
    means_table,
    reading_pictures,
    reading_tables,
    recovered_picture,
    similarities,
    similarity,
)
from revealed.experiments.numbers import half_width, mean_and_half, short, whole_percent
from revealed.experiments.obstacleworld import Config
from revealed.experiments.protocol import ALGORITHM_1, READINGS, SECTION_5
from revealed.experiments.readings import curves_of, rows_of, shares, yardsticks
from revealed.metrics import epic

CONFIG = Config(size=4, trajectories=(2, 10, 50))
SIZES = CONFIG.trajectories
WORLD = obstacleworld.problem(CONFIG, 0)[0]


def make_results(seeds: int = 4, sizes: tuple[int, ...] = SIZES, methods: tuple[str, ...] = METHODS) -> Results:
    """Rows with random metrics of every method and its weights; seed 0 has a status of its own."""
    rng = np.random.default_rng(0)
    rows = [
        {"key": f"{method}-{weights}-{seed}-{size}", "setting": "here", "method": method, "variant": weights}
        | {
            "size": size,
            "seed": seed,
            "arrays": size == max(sizes),
            "status": "separated" if seed == 0 else "converged",
        }
        | {"floor": 0.5 + seed, "span": 9.0 + seed, "blind": 2.0}
        | {metric: rng.gamma(2.0) for metric in METRICS}
        for size in sizes
        for method, weights in reversed(FITS)
        if method in methods
        for seed in range(seeds)
    ]
    tables = {"reward": rng.normal(size=WORLD.mdp.n_states), "policy": WORLD.expert}
    return Results(replace(CONFIG, trajectories=sizes), pd.DataFrame(rows), pd.DataFrame(), lambda key: tables)


def cut(results: Results, **place: Any) -> Results:
    """The same, but the searches at a place ended at the iteration limit."""
    there = np.logical_and.reduce([results.frame[name] == value for name, value in place.items()])
    return replace(results, frame=results.frame.assign(status=results.frame["status"].mask(there, LIMIT)))


def axes() -> Any:
    return Figure().subplots()


# the readings


def test_a_reading_has_each_method_once_with_its_own_weights():
    results = make_results()
    for reading, weights in {SECTION_5: "sample", ALGORITHM_1: "occupancy"}.items():
        rows = rows_of(results, reading)
        assert not rows.duplicated(["method", "size", "seed"]).any()
        assert len(rows) == len(METHODS) * len(SIZES) * 4
        assert set(rows.loc[rows["method"] == "MCE-IRL", "variant"]) == {weights}
        assert set(rows.loc[rows["method"] != "MCE-IRL", "variant"]) == {"occupancy"}
    assert len(set(FITS)) == len(FITS) == 4
    assert set(FITS) == set(zip(results.frame["method"], results.frame["variant"]))


def test_another_world_s_rows_are_told_by_the_prefix_of_their_variant():
    results = make_results()
    other = results.frame.assign(variant="real car, " + results.frame["variant"], evd=-1.0)
    both = replace(results, frame=pd.concat([results.frame, other], ignore_index=True))
    for reading in READINGS:
        pd.testing.assert_frame_equal(rows_of(both, reading), rows_of(results, reading))
        assert (rows_of(both, reading, "real car, ")["evd"] == -1.0).all()
        assert len(rows_of(both, reading, "real car, ")) == len(rows_of(results, reading))


def test_shares_are_nil_for_the_truth_and_one_for_who_knows_nothing():
    truth = {"excess_nll": 0.0, "evd": 0.0, "stochastic_evd": 3.0, "epic": 0.0, "starc": 0.4}
    nothing = {"excess_nll": 0.8, "evd": 7.0, "stochastic_evd": 7.0, "epic": np.sqrt(0.5), "starc": 0.4}
    between = {"excess_nll": 0.2, "evd": 3.5, "stochastic_evd": 4.0, "epic": np.sqrt(0.5) / 10, "starc": 0.4}
    frame = pd.DataFrame([truth, nothing, between]).assign(floor=3.0, span=7.0, blind=0.8)
    found = shares(frame)[["excess_nll", "evd", "stochastic_evd", "epic"]].to_numpy()
    np.testing.assert_allclose(found, [[0, 0, 0, 0], [1, 1, 1, 1], [0.25, 0.5, 0.25, 0.1]], atol=1e-15)
    np.testing.assert_array_equal(shares(frame)["starc"], 0.4)


@pytest.mark.parametrize("expert", ["soft", "noisy"])
def test_in_a_world_the_expert_has_share_nil_and_the_uniform_policy_one(expert):
    truth = WORLD.with_expert(expert).truth
    for policy, expected in ((truth.expert, 0.0), (truth.mdp.uniform_policy(), 1.0)):
        row = dict(truth.evaluate(policy=policy, reward=WORLD.true_reward)) | yardsticks(truth)
        found = shares(pd.DataFrame([row])).iloc[0]
        assert found[["excess_nll", "stochastic_evd"]].tolist() == pytest.approx([expected] * 2, abs=1e-9)
        assert found[["evd", "epic"]].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)  # those of the reward


def test_an_unrelated_reward_has_epic_share_one():
    rng = np.random.default_rng(0)
    found = [epic(WORLD.mdp, rng.normal(size=(16, 1)) * np.ones(4), WORLD.true_reward) for _ in range(200)]
    assert np.mean(found) / np.sqrt(0.5) == pytest.approx(1.0, abs=0.04)


def test_curves_are_means_by_seed_and_differences_are_paired():
    results = make_results()
    curves = replace(curves_of(results, SECTION_5), similarity=np.array([0.5]))
    frame = shares(rows_of(results, SECTION_5))
    assert (curves.sizes, curves.few, curves.seeds) == (SIZES, [2], 4)
    by_seed = {m: frame[frame["method"] == m].pivot(index="seed", columns="size", values="evd") for m in METHODS}
    for sizes in ([2], [10, 50], list(SIZES)):
        own = {m: by_seed[m][sizes].mean(axis=1) for m in METHODS}
        np.testing.assert_allclose(curves.levels("evd", "NPL", sizes), own["NPL"])
        gap = own["NPL"] - own["MCE-IRL"]
        found = curves.difference("evd", "NPL", "MCE-IRL", sizes)
        assert (found.mean, found.half) == pytest.approx((gap.mean(), half_width(gap)))


def test_a_seed_that_lacks_a_fit_does_not_count():
    results = make_results()
    lost = (results.frame["seed"] == 1) & (results.frame["size"] == 10) & (results.frame["method"] == "NPL")
    curves = curves_of(replace(results, frame=results.frame[~lost]), SECTION_5)
    assert curves.seeds == 3
    assert list(curves.levels("epic", "NPL", [2, 10]).index) == [0, 2, 3]
    assert list(curves.levels("epic", "NPL", [2]).index) == [0, 1, 2, 3]
    full = curves_of(make_results(), SECTION_5)
    without = (full.levels("epic", "NPL", [10]) - full.levels("epic", "CCP", [10])).drop(1)
    assert curves.difference("epic", "NPL", "CCP", [10]).mean == pytest.approx(without.mean())


def test_where_no_size_is_five_or_less_the_least_is_few():
    assert curves_of(make_results(sizes=(100, 400)), SECTION_5).few == [100]
    assert curves_of(make_results(sizes=(1, 3, 5, 10)), SECTION_5).few == [1, 3, 5]


# means and intervals


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
    alike, other = 3.0 * a + 1.0, np.array([0.0, 1.0, 1.0, -90.0])
    states = np.array([True, True, True, False])
    assert similarity([a, alike, other], states) == pytest.approx(np.corrcoef([0, 1, 2], [0, 1, 1])[0, 1])
    assert similarity([a, alike, other]) < -0.9
    assert similarity([a, alike]) == pytest.approx(1.0)


def test_similarity_of_a_reward_that_does_not_vary_or_of_one_alone_is_not_a_number():
    varies = np.arange(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rewards in ([varies, varies, np.ones(4)], [np.ones(4), varies], [varies], []):
            assert np.isnan(similarity(rewards))


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_is_drawn_as_a_line_and_a_band_per_method(metric):
    rows, ax = rows_of(make_results(), SECTION_5), axes()
    draw_metric(ax, rows, metric)
    lines = {line.get_label(): line for line in ax.get_lines() if line.get_label() in METHODS}
    assert list(lines) == list(METHODS)
    assert len(ax.collections) == len(METHODS)
    for band, (method, line) in zip(ax.collections, lines.items(), strict=True):
        groups = rows[rows["method"] == method].groupby("size")[metric]
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
    draw_metric(ax, rows_of(make_results(), ALGORITHM_1), metric)
    levels = [line for line in ax.get_lines() if line.get_label() not in METHODS and len(line.get_xdata())]
    if metric != "stochastic_evd":
        assert not levels
        assert not ax.texts
        return
    assert [set(line.get_ydata()) for line in levels] == [{2.0}]  # the mean of 0.5, 1.5, 2.5, 3.5
    assert [text.get_text() for text in ax.texts] == ["expert"]


def open_marks(ax: Any) -> list[Any]:
    """The marks that are not filled, as they are drawn."""
    return [line for line in ax.get_lines() if line.get_marker() != "None" and len(line.get_xdata())
            and same_color(line.get_markerfacecolor(), "white")]  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
def test_marks_are_open_where_a_search_ended_at_the_iteration_limit(metric):
    """One seed of many is enough; the mark lies on its method's mean and has its colour and shape."""
    results = cut(cut(make_results(), method="NPL", size=10, seed=2), method="CCP", size=50)
    rows, ax = rows_of(results, SECTION_5), axes()
    draw_metric(ax, rows, metric)
    marks = {line.get_marker(): line for line in open_marks(ax)}
    assert set(marks) == {STYLE["NPL"]["marker"], STYLE["CCP"]["marker"]}
    for method, size in {"NPL": 10, "CCP": 50}.items():
        mark = marks[STYLE[method]["marker"]]
        mean = rows[(rows["method"] == method) & (rows["size"] == size)][metric].mean()
        assert (list(mark.get_xdata()), list(mark.get_ydata())) == ([size], [pytest.approx(mean)])
        assert same_color(mark.get_markeredgecolor(), STYLE[method]["color"])
        (line,) = (line for line in ax.get_lines() if line.get_label() == method)
        assert mark.get_zorder() > line.get_zorder()


def test_where_every_search_converged_no_mark_is_open_and_the_caption_has_no_word_of_them():
    rows, ax = rows_of(make_results(), SECTION_5), axes()
    draw_metric(ax, rows, "evd")
    assert not open_marks(ax)
    picture = curve_picture(rows, WORLD, "Somewhere")
    assert picture is not None
    assert "limit" not in picture.caption
    picture = curve_picture(rows_of(cut(make_results(), size=50), SECTION_5), WORLD, "Somewhere")
    assert picture is not None
    assert "Open marks: at least one search ended at the iteration limit (33 % of all)" in picture.caption


def test_a_method_without_results_has_no_line():
    ax = axes()
    draw_metric(ax, rows_of(make_results(methods=("NPL",)), SECTION_5), "evd")
    assert [line.get_label() for line in ax.get_lines() if len(line.get_xdata())] == ["NPL"]


@pytest.mark.parametrize("results", [make_results(seeds=1), make_results(sizes=(7,))])
def test_one_seed_or_one_size_can_be_drawn(results):
    figure = Figure()
    ax = figure.subplots()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_metric(ax, rows_of(results, SECTION_5), "stochastic_evd")
        figure.draw_without_rendering()
    assert np.isfinite(ax.get_ylim()).all()


def test_sizes_are_named_on_the_axis_unless_they_are_too_close():
    for sizes, named in (((2, 10, 50), [2, 10, 50]), ((100, 700, 701), [100, 701])):
        ax = axes()
        draw_metric(ax, rows_of(make_results(sizes=sizes), SECTION_5), "evd")
        assert sorted(ax.get_xticks()) == named
        assert ax.xaxis.get_major_formatter()(named[0], 0) == str(named[0])


def test_the_table_has_means_and_half_intervals_as_pandas_has_them():
    rows = rows_of(make_results(), SECTION_5)
    table = means_table(rows, "a caption")
    assert table.caption == "a caption"
    frame = table.frame
    assert list(frame.columns) == ["trajectories", "method", *METRICS.values(), "seeds", "ended"]
    assert list(zip(frame["trajectories"], frame["method"])) == [(n, method) for n in SIZES for method in METHODS]
    for line in frame.to_dict("records"):
        group = rows[(rows["size"] == line["trajectories"]) & (rows["method"] == line["method"])]
        for metric, name in METRICS.items():
            half = scipy.stats.t.ppf(0.975, 3) * scipy.stats.sem(group[metric].to_numpy())
            assert line[name] == f"{short(group[metric].mean(), 3)} ± {short(float(half))}"
        assert line["seeds"] == 4
        assert line["ended"] == "3× converged, 1× separated"


def test_a_table_of_nothing_is_empty():
    rows = rows_of(make_results(), SECTION_5)
    assert len(means_table(rows[:0], "").frame) == 0


def test_each_reading_has_a_table():
    results = make_results()
    tables = reading_tables(results, "Somewhere")
    assert list(tables) == ["section5", "algorithm1"] == list(KEYS.values())
    for reading, key in KEYS.items():
        same = means_table(rows_of(results, reading), "")
        pd.testing.assert_frame_equal(tables[key].frame, same.frame)
        assert tables[key].caption.startswith("Somewhere, ")
    own = [table.frame[table.frame["method"] == "MCE-IRL"] for table in tables.values()]
    others = [table.frame[table.frame["method"] != "MCE-IRL"] for table in tables.values()]
    assert not own[0].equals(own[1])
    pd.testing.assert_frame_equal(others[0], others[1])


# pictures


def test_recovered_rewards_are_drawn_side_by_side_and_what_is_missing_is_named():
    results = make_results(methods=("MCE-IRL", "CCP"))
    figure = recovered_picture(results, WORLD, "50 walks", "Figure 0").figure
    assert [ax.get_title() for ax in figure.axes] == ["true reward", "MCE-IRL", "NPL: no result", "CCP"]
    assert [bool(ax.images) for ax in figure.axes] == [True, True, False, True]


def test_what_is_drawn_as_recovered_is_the_first_seed_of_the_largest_sample_as_section_5_reads():
    seen: list[str] = []
    results = make_results()
    counted = replace(results, load=lambda key: (seen.append(key), results.load(key))[1])
    picture = recovered_picture(counted, WORLD, "50 walks", "Figure 0")
    assert sorted(seen) == ["CCP-occupancy-0-50", "MCE-IRL-sample-0-50", "NPL-occupancy-0-50"]
    assert picture.paper == "Figure 0"
    assert "50 walks" in picture.caption
    empty = draw_recovered(results, WORLD, rows_of(results, SECTION_5)[:0])
    assert [ax.get_title() for ax in empty.axes][1:] == [f"{method}: no result" for method in METHODS]


def test_similarities_are_those_of_the_seeds_with_all_methods():
    results = make_results()
    lost = (results.frame["seed"] == 2) & (results.frame["method"] == "NPL")
    rng = np.random.default_rng(1)
    rewards = {key: {"reward": rng.normal(size=16)} for key in results.frame["key"]}
    results = replace(results, frame=results.frame[~lost], load=rewards.__getitem__)
    rows = rows_of(results, SECTION_5)
    found = similarities(results, rows)
    expected = [
        np.corrcoef([rewards[f"{m}-{READINGS[SECTION_5].weights[m]}-{seed}-50"]["reward"] for m in METHODS]).min()
        for seed in (0, 1, 3)
    ]
    np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(similarities(results, rows[:0]), [])


def test_each_reading_with_results_has_a_picture_with_words_for_those_who_cannot_see_it():
    results = make_results()
    pictures = reading_pictures(results, WORLD, "Somewhere", "Figure 0")
    assert [(key, picture.paper) for key, picture in pictures.items()] == [("section5", "Figure 0"), ("algorithm1", "")]
    picture = pictures["section5"]
    assert picture.caption.startswith("Somewhere, as “Method Dependencies” reads")
    assert "Mean over 4 seeds" in picture.caption
    rows = rows_of(results, SECTION_5)
    means = rows[rows["method"] == "MCE-IRL"].groupby("size")["evd"].mean()
    assert f"EVD (MCE-IRL from {short(means[2])} to {short(means[50])}" in picture.alt
    assert len(picture.figure.axes) == 6
    only = reading_pictures(results.only(variant="sample"), WORLD, "Somewhere", "Figure 0")
    assert list(only) == ["section5"]  # of the other there is nothing


def test_results_can_be_narrowed_to_a_place():
    results = make_results()
    few = results.only(method="NPL", size=2)
    pd.testing.assert_frame_equal(few.frame, results.where(method="NPL", size=2))
    assert few.config is results.config
    assert len(results.frame) > len(few.frame) == 4


# numbers


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
    assert whole_percent(value) == text
