"""Any frame or file is the same table: the same names, values and complaints."""

import datetime as dt

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from revealed.errors import InvalidInput
from revealed.frames import read_table, relation_of

pl = pytest.importorskip("polars")

FRAME = pd.DataFrame(
    {
        "name": ["b", "a", "c"],
        "n": [1, 2, 3],
        "x": [0.5, 1.5, -1.0],
        "yes": [True, False, True],
        "day": pd.to_datetime(["2020-01-01", "2020-02-01", "2020-03-01"]),
    }
)


def sources(tmp_path):
    FRAME.to_csv(tmp_path / "table.csv", index=False)
    FRAME.to_csv(tmp_path / "table.tsv", index=False, sep="\t")
    FRAME.to_csv(tmp_path / "table.csv.gz", index=False)
    FRAME.to_parquet(tmp_path / "table.parquet")
    files = [tmp_path / f"table.{kind}" for kind in ("csv", "tsv", "csv.gz", "parquet")]
    frames = [FRAME, pl.from_pandas(FRAME), pl.from_pandas(FRAME).lazy(), pa.Table.from_pandas(FRAME)]
    return [*files, *frames, duckdb.from_df(FRAME)]


def test_every_source_gives_the_same_columns(tmp_path):
    for source in sources(tmp_path):
        table = read_table(source)
        assert table.names == list(FRAME.columns)
        assert table.n_rows == 3
        assert table.column("x", "name").tolist() == ["b", "a", "c"]
        assert table.column("x", "n").dtype.kind == "i"
        np.testing.assert_array_equal(table.numbers("x", "x"), FRAME.x)
        assert table.column("x", "yes").dtype == bool
        assert (table.column("x", "day").astype("datetime64[D]") == FRAME.day.to_numpy()).all()
        assert table.labels("x", ["name", "n"]) == [("b", 1), ("a", 2), ("c", 3)]
        assert table.labels("x", "n") == [1, 2, 3]


def test_only_what_is_needed_is_read(tmp_path):
    for source in sources(tmp_path):
        assert read_table(source, needed=lambda names: [name for name in names if name != "yes"]).names == [
            "name", "n", "x", "day",
        ]  # fmt: skip


def test_a_misspelt_column_is_named_with_what_is_near():
    with pytest.raises(
        InvalidInput, match=r"one of the columns 'name', 'n', 'x', 'yes', 'day'; got 'nam'. Did you mean name"
    ):
        read_table(FRAME).column("state", "nam")


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([1.0, None, 2.0], r"no missing values; got 1 missing \(first at row 1\)"),
        ([1.0, 2.0, np.inf], r"finite numbers in column 'v'; got inf \(first at row 2\)"),
        (["a", "b", "c"], r"numbers in column 'v'; got text such as a"),
        (pd.Series([1, "b", 2], dtype=object), r"values of one kind.*got int and str \(first at row 1\)"),
    ],
)
def test_what_is_no_number_is_named(values, match):
    with pytest.raises(InvalidInput, match=match):
        read_table(pd.DataFrame({"v": values})).numbers("weight", "v")


def test_dates_as_objects_are_dates():
    table = read_table(pd.DataFrame({"v": pd.Series([dt.date(2020, 1, 1), dt.date(2020, 1, 3)], dtype=object)}))
    days = table.column("time", "v")
    assert days.dtype.kind == "M"
    assert (days[1] - days[0]).astype("timedelta64[D]") == np.timedelta64(2, "D")


def test_a_column_of_text_that_looks_like_numbers_at_first_is_text(tmp_path):
    """Types are judged by all rows of a CSV file, not by the first few thousand."""
    pd.DataFrame({"v": [str(k) for k in range(30_000)] + ["A1"]}).to_csv(tmp_path / "late.csv", index=False)
    assert read_table(tmp_path / "late.csv").column("v", "v").dtype.kind == "U"


def test_files_of_two_kinds_are_refused(tmp_path):
    sources(tmp_path)
    with pytest.raises(InvalidInput, match=r"files of one format; got table.csv and table.parquet"):
        relation_of([tmp_path / "table.csv", tmp_path / "table.parquet"])


@pytest.mark.parametrize("pattern", ["nothing-*.csv", "no.csv"])
def test_paths_without_files_are_refused(tmp_path, pattern):
    with pytest.raises(InvalidInput, match=r"a CSV or Parquet file that exists"):
        read_table(tmp_path / pattern)


def test_a_name_with_brackets_is_a_file_and_no_pattern(tmp_path):
    FRAME.to_csv(tmp_path / "table[1].csv", index=False)
    assert read_table(tmp_path / "table[1].csv").n_rows == 3


def test_reading_prints_nothing(tmp_path, capfd):
    sources(tmp_path)
    read_table(tmp_path / "table.csv")
    assert capfd.readouterr() == ("", "")
