"""Bins: code and SQL agree on every value, files and frames give the same edges, and what cannot be binned is named."""

import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from revealed.bins import Bins, discretize
from revealed.errors import InvalidInput, InvalidOption
from revealed.frames import Stored
from revealed.numeric_columns import StoredColumn

DUCK = duckdb.connect()
NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=True)
EDGES = st.lists(NUMBERS, min_size=2, max_size=12, unique=True).map(sorted).filter(lambda e: e[0] < e[-1])


def drives(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Miles with ties, ages without."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"miles": np.round(rng.gamma(2.0, 20.0, n)), "age": rng.normal(size=n)})


def stored(frame: pd.DataFrame, folder, kind: str):
    """The same frame in a file or elsewhere."""
    path = folder / f"drives.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "glob":
        for k in range(3):
            frame.iloc[k::3].to_parquet(folder / f"part{k}.parquet")
        return str(folder / "part*.parquet")
    elif kind == "relation":
        return DUCK.from_df(frame)
    else:
        lazy = pl.from_pandas(frame).lazy()
        return lazy if kind == "lazy" else lazy.collect() if kind == "polars" else frame
    return path


def by_sql(bins: Bins, frame: pd.DataFrame) -> list:
    return [row[0] for row in DUCK.from_df(frame).project(bins.sql()).fetchall()]


# codes


@given(edges=EDGES, values=st.lists(NUMBERS, max_size=20))
def test_code_and_sql_agree_inside_at_the_edges_and_outside(edges, values):
    bins = Bins(("x",), (edges,))
    inside = np.clip(np.array([*edges, *values, -0.0]), edges[0], edges[-1])
    assert by_sql(bins, pd.DataFrame({"x": inside})) == bins.code(inside).tolist()
    next_to = np.concatenate([np.nextafter(edges, -np.inf)[1:], np.nextafter(edges, np.inf)[:-1]])
    assert by_sql(bins, pd.DataFrame({"x": next_to})) == bins.code(next_to).tolist()
    outside = [np.nextafter(edges[0], -np.inf), np.nextafter(edges[-1], np.inf), np.inf, -np.inf]
    assert by_sql(bins, pd.DataFrame({"x": outside})) == [-1] * 4


@given(edges=EDGES, values=st.lists(NUMBERS, min_size=1, max_size=20))
def test_a_state_is_the_interval_that_holds_the_value(edges, values):
    inside = np.clip(values, edges[0], edges[-1])
    for value, k in zip(inside, Bins(("x",), (edges,)).code(inside), strict=True):
        last = k == len(edges) - 2
        assert edges[k] <= value < edges[k + 1] or (last and value == edges[-1])


@given(first=EDGES, second=EDGES, shares=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=9))
def test_several_columns_make_a_grid_numbered_row_by_row(first, second, shares):
    bins = Bins(("x", "y"), (first, second))
    p, q = np.array(shares).T
    x = np.clip(first[0] + p * (first[-1] - first[0]), first[0], first[-1])
    y = np.clip(second[0] + q * (second[-1] - second[0]), second[0], second[-1])
    own = Bins(("x",), (first,)).code(x), Bins(("y",), (second,)).code(y)
    np.testing.assert_array_equal(bins.code(x, y), np.ravel_multi_index(own, bins.shape))
    assert by_sql(bins, pd.DataFrame({"x": x, "y": y})) == bins.code(x, y).tolist()


def test_in_sql_missing_values_stay_missing_and_values_in_no_bin_are_minus_one():
    bins = Bins(("x", "y"), ([0.0, 1.0, 2.0], [0.0, 1.0]))
    rows = "(VALUES (NULL, 0.5), (0.5, NULL), ('nan'::DOUBLE, 0.5), (0.5, 7.0), (2.0, 1.0)) t(x, y)"
    assert DUCK.sql(f"SELECT {bins.sql()} FROM {rows}").fetchall() == [(None,), (None,), (None,), (-1,), (1,)]


def test_sql_reads_columns_of_other_names_whatever_letters_they_have():
    bins = Bins(("x",), ([0.0, 1.0, 2.0],))
    frame = pd.DataFrame({'a "b" c': [0, 1, 2], "select": [2.0, 0.5, 1.5]})
    relation = DUCK.from_df(frame)
    assert relation.project(bins.sql(['a "b" c'])).fetchall() == [(0,), (1,), (1,)]
    assert relation.project(bins.sql(["select"])).fetchall() == [(1,), (0,), (1,)]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "bool"])
def test_the_type_of_the_numbers_does_not_matter(dtype):
    bins = Bins(("x",), ([0.0, 0.5, 1.0],))
    frame = pd.DataFrame({"x": np.array([0, 1, 1, 0]).astype(dtype)})
    assert bins.code(frame["x"]).tolist() == by_sql(bins, frame) == [0, 1, 1, 0]
    assert discretize(frame, "x", 2) == Bins(("x",), ([0.0, 0.5, 1.0],), ("uniform",))


# edges


@pytest.mark.parametrize("kind", ["csv", "parquet", "glob", "relation", "polars", "lazy"])
@pytest.mark.parametrize("how", ["uniform", "quantile"])
def test_every_kind_of_frame_gives_the_same_bins(tmp_path, kind, how):
    frame = drives()
    elsewhere = discretize(stored(frame, tmp_path, kind), ["miles", "age"], [30, 7], how)
    assert elsewhere == discretize(frame, ["miles", "age"], [30, 7], how)


@given(values=st.lists(st.one_of(NUMBERS, st.sampled_from([0.0, 1.0, -0.0])), min_size=2, max_size=60))
def test_order_statistics_in_a_file_are_those_of_sorting(values):
    column = StoredColumn(Stored(DUCK.from_df(pd.DataFrame({"v": values}))), "v")
    np.testing.assert_array_equal(column.ranked(np.arange(len(values))), np.sort(values))
    np.testing.assert_array_equal(column.distinct(3), np.unique(values)[:3])


def test_order_statistics_are_exact_where_the_sample_sees_a_part_only():
    n = 200_000
    rng = np.random.default_rng(0)
    values = np.where(rng.random(n) < 0.4, 3.0, np.exp(4 * rng.normal(size=n)))  # a lump and a long tail
    ranks = np.unique(np.concatenate([[0, n - 1], rng.integers(0, n, 50)]))
    column = StoredColumn(Stored(DUCK.from_df(pd.DataFrame({"v": values}))), "v")
    np.testing.assert_array_equal(column.ranked(ranks), np.sort(values)[ranks])


@given(
    values=st.lists(NUMBERS, min_size=2, max_size=50, unique=True).filter(
        lambda v: len({x + 0.0 for x in v}) == len(v)
    ),
    bins=st.integers(1, 8),
)
def test_quantiles_of_different_values_make_bins_of_equal_size(values, bins):
    made = discretize(pd.DataFrame({"x": values}), "x", bins, "quantile")
    sizes = np.bincount(made.code(values), minlength=made.n_states)
    if bins < len(values):  # else the last bin would hold its one edge alone
        assert made.n_states == bins
        assert np.ptp(sizes) <= 1
        assert made.notes == ()


def test_quantiles_that_coincide_are_merged_and_said():
    made = discretize(pd.DataFrame({"x": [0.0] * 6 + [1.0, 2.0, 3.0, 4.0]}), "x", 5, "quantile")
    np.testing.assert_array_equal(made.edges[0], [0.0, 1.0, 3.0, 4.0])
    assert made.notes == ("x has 3 bins instead of 5, because some of its quantiles coincide.",)
    assert np.bincount(made.code([0.0] * 6 + [1.0, 2.0, 3.0, 4.0])).tolist() == [6, 2, 2]


def test_uniform_bins_divide_the_range_and_cover_the_data():
    frame = drives()
    made = discretize(frame, "miles", 10)
    np.testing.assert_allclose(np.diff(made.edges[0]), np.ptp(frame["miles"]) / 10)
    assert (made.edges[0][0], made.edges[0][-1]) == (frame["miles"].min(), frame["miles"].max())
    assert made.code(frame["miles"]).min() == 0
    assert made.code(frame["miles"]).max() == 9


def test_edges_may_be_given_for_some_columns():
    made = discretize(drives(), ["miles", "age"], 4, edges={"miles": [0, 10, 1000]})
    assert made.shape == (2, 4)
    assert made.how == ("given", "uniform")
    assert discretize(drives(), "miles", edges=[0, 10, 1000]).edges[0].tolist() == [0.0, 10.0, 1000.0]


# what is made of them


def test_labels_name_the_intervals_with_digits_that_tell_them_apart():
    assert Bins(("miles",), ([0, 5, 10],)).labels == ("miles [0, 5)", "miles [5, 10]")
    close = Bins(("x",), ([1.0, 1.0 + 1e-9, 1.0 + 2e-9],)).labels
    assert close == ("x [1, 1.000000001)", "x [1.000000001, 1.000000002]")
    neighbours = Bins(("x",), ([1.0, np.nextafter(1, 2), np.nextafter(1, 2) + 2**-52],)).labels
    assert len(set(neighbours)) == 2
    grid = Bins(("x", "y"), ([0, 1, 2], [5, 6, 7])).labels
    assert grid[1] == "x [0, 1), y [6, 7]"
    assert grid[2] == "x [1, 2], y [5, 6)"


@given(first=EDGES, second=EDGES)
def test_every_states_features_lie_in_that_state(first, second):
    bins = Bins(("x", "y"), (first, second))
    features = bins.features
    assert list(features.columns) == ["x", "y"]
    x, y = features["x"].to_numpy(), features["y"].to_numpy()
    wide = np.outer(np.diff(first) > 1e-9, np.diff(second) > 1e-9).reshape(-1)  # a midpoint must fit between the edges
    np.testing.assert_array_equal(bins.code(x, y)[wide], np.arange(bins.n_states)[wide])
    np.testing.assert_allclose(bins.centres[0], (np.array(first)[1:] + np.array(first)[:-1]) / 2)


@given(first=EDGES, second=EDGES)
def test_a_description_in_json_gives_the_same_bins_back(first, second):
    bins = Bins(("x", "y"), (first, second), ("uniform", "quantile"), ("a note",))
    again = Bins.from_description(json.loads(json.dumps(bins.describe())))
    assert again == bins
    assert again.labels == bins.labels
    assert again != Bins(("x", "z"), (first, second), ("uniform", "quantile"), ("a note",))


@pytest.mark.parametrize("kind", ["pandas", "parquet"])
def test_decisions_are_read_through_bins_and_their_centres_are_features(tmp_path, kind):
    frame = drives().assign(bus=lambda f: np.arange(len(f)) // 20, month=lambda f: np.arange(len(f)) % 20)
    frame["replace"] = (np.random.default_rng(1).random(len(frame)) < frame["miles"] / 200).astype(int)
    source = stored(frame, tmp_path, kind)
    bins = discretize(source, "miles", 6, "quantile")
    demos = rv.Demonstrations.from_frame(source, id="bus", time="month", state=bins, action="replace")
    counts = np.zeros((6, 2))
    np.add.at(counts, (bins.code(frame["miles"]), frame["replace"]), 1)
    np.testing.assert_array_equal(demos.counts, counts)
    assert demos.state_labels == bins.labels
    reward = rv.LinearReward(bins.features)
    assert reward.names == ("miles",)
    np.testing.assert_array_equal(reward.value(np.array([2.0]))[:, 0], 2.0 * bins.centres[0])


def test_bins_are_printed_in_a_line():
    bins = Bins(("miles", "age"), ([0, 5, 100], [0, 1]), ("quantile", "given"))
    assert repr(bins) == "Bins(miles: 2 quantile from 0 to 100; age: 1 given from 0 to 1; 2 states)"


def test_edges_cannot_be_changed_afterwards():
    edges = np.array([0.0, 1.0])
    bins = rv.Bins(("x",), (edges,))
    edges[0] = -9.0
    assert bins.edges[0].tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        bins.edges[0][0] = 2.0


# what cannot be binned

BAD = {
    "constant": ([2.0, 2.0, 2.0], "expected at least two different values; got only 2"),
    "missing": ([1.0, 2.0, None, None], "expected no missing values; got 2 missing (first at row 2)"),
    "infinite": ([1.0, -np.inf, 3.0, np.inf], "expected finite numbers; got -inf (first at row 1)"),
    "text": (["a", "b"], "expected numbers; got text such as a"),
}


@pytest.mark.parametrize("kind", ["pandas", "polars", "parquet", "relation"])
@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("how", ["uniform", "quantile"])
def test_bad_columns_are_named_with_their_first_bad_row_in_every_kind_of_frame(tmp_path, kind, what, how):
    values, message = BAD[what]
    with pytest.raises(InvalidInput) as caught:
        discretize(stored(pd.DataFrame({"x": values}), tmp_path, kind), "x", 3, how)
    assert str(caught.value).startswith(f"`column 'x'`: {message}")


@pytest.mark.parametrize("kind", ["pandas", "parquet"])
def test_given_edges_must_cover_the_values(tmp_path, kind):
    frame = stored(pd.DataFrame({"x": [1.0, 2.0, 9.5, -3.0]}), tmp_path, kind)
    with pytest.raises(InvalidInput) as caught:
        discretize(frame, "x", edges=[0, 5, 9])
    assert str(caught.value) == (
        "`column 'x'`: expected values from 0 to 9, the outer edges; got 9.5 (first at row 2). "
        "Give edges that cover it, or clip the values first."
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "parquet"])
def test_a_frame_without_rows_is_refused(tmp_path, kind):
    frame = stored(pd.DataFrame({"x": np.zeros(0)}), tmp_path, kind)
    with pytest.raises(InvalidInput, match="at least one row"):
        discretize(frame, "x")


@pytest.mark.parametrize("kind", ["pandas", "lazy", "parquet"])
def test_an_unknown_column_comes_with_a_near_one(tmp_path, kind):
    with pytest.raises(InvalidInput, match=r"one of the columns 'miles', 'age'; got 'mile'\. Did you mean miles\?"):
        discretize(stored(drives(), tmp_path, kind), "mile")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bins": 0}, "`bins`: expected a whole number, at least 1; got 0"),
        ({"bins": 2.5}, "`bins`: expected a whole number"),
        ({"bins": [3]}, "`bins`: expected a whole number, or 2 of them"),
        ({"bins": "20"}, "`bins`: expected a whole number"),
        ({"how": "equal"}, "`how`: expected one of uniform, quantile"),
        ({"edges": [0, 1]}, "`edges`: expected a dict of edges by column"),
        ({"edges": {"mile": [0, 1]}}, "`edges`: expected one of the columns 'miles', 'age'; got 'mile'"),
        ({"edges": {"miles": [0, 5, 5, 1e9]}}, "`edges of 'miles'`: expected increasing numbers; got 5 after 5"),
        ({"edges": {"miles": [0, np.nan]}}, "`edges of 'miles'`: expected finite numbers; got nan"),
        ({"edges": {"miles": [0]}}, "`edges of 'miles'`: expected at least two numbers"),
        ({"column": ["miles", "miles"]}, "`column`: expected distinct column names"),
        ({"column": []}, "`column`: expected distinct column names"),
        ({"column": 3}, "`column`: expected distinct column names"),
        ({"bins": 10**6}, "`bins`: expected at most 2147483646 states; got 1000000000000"),
    ],
)
def test_options_that_make_no_bins_are_named(arguments, words):
    with pytest.raises(InvalidInput) as caught:
        discretize(drives(), **{"column": ["miles", "age"], **arguments})
    assert str(caught.value).startswith(words)
    assert isinstance(caught.value, InvalidOption) == (
        words.startswith(("`bins`: expected a", "`how`")) and "at most" not in words
    )


@pytest.mark.parametrize("option", [{"bins": 3}, {"how": "quantile"}])
def test_what_edges_leave_nothing_to_do_for_is_refused(option):
    (name,) = option
    with pytest.raises(InvalidOption, match=f"`{name}` has no effect with `edges` of every column"):
        discretize(drives(), "miles", edges=[0, 10, 1000], **option)
    assert discretize(drives(), ["miles", "age"], edges={"miles": [0, 10, 1000]}, **option).how[0] == "given"


def test_a_range_too_narrow_for_so_many_bins_is_refused():
    frame = pd.DataFrame({"x": [1.0, np.nextafter(1.0, 2.0)]})
    with pytest.raises(InvalidInput, match="far enough apart for 20 bins"):
        discretize(frame, "x")
    with pytest.raises(InvalidInput, match="far enough apart"), np.errstate(over="ignore", invalid="ignore"):
        discretize(pd.DataFrame({"x": [-1.7e308, 1.7e308]}), "x")


def test_values_in_no_bin_are_named_with_their_row():
    bins = Bins(("x", "y"), ([0.0, 1.0], [0.0, 1.0]))
    with pytest.raises(InvalidInput, match=r"column 'y'`: .* got 1\.5 \(first at row 1\)"):
        bins.code([0.5, 0.5], [0.5, 1.5])
    with pytest.raises(InvalidInput, match=r"got nan \(first at row 0\)"):
        bins.code([np.nan], [0.5])
    for wrong in (([0.5],), ([0.5], ["a"]), ([0.5], [0.5, 0.5]), ([0.5], [[0.5]])):
        with pytest.raises(InvalidInput):
            bins.code(*wrong)
    with pytest.raises(InvalidInput, match="describe"):
        Bins.from_description({"columns": ["x"]})
