"""Whole-number times that may be months, quarters or days are not counted as numbers without a word."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import revealed as rv
from shell import here

COLUMNS: dict[str, Any] = {"id": "id", "time": "t", "state": "s", "action": "a"}
ROUTES = ("frame", "lazy", "csv")
MONTHS, QUARTERS, DAYS = [202011, 202012, 202101], [20203, 20204, 20211], [20200130, 20200131, 20200201]


def read(times: list[int], route: str, folder: Path, **options: Any) -> rv.Demonstrations:
    n = len(times)
    frame: Any = pd.DataFrame({"id": [0] * n, "t": times, "s": [k % 2 for k in range(n)], "a": [0] * n})
    if route == "csv":
        frame.to_csv(folder / "p.csv", index=False)
        return rv.Demonstrations.from_frame(folder / "p.csv", keep_steps=False, **COLUMNS, **options)
    frame = pl.from_pandas(frame).lazy() if route == "lazy" else frame
    return rv.Demonstrations.from_frame(frame, **COLUMNS, **options)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("unit", "times"), [("month", MONTHS), ("quarter", QUARTERS), ("day", DAYS)])
def test_written_dates_need_a_period(unit: str, times: list[int], route: str, tmp_path: Path) -> None:
    with pytest.raises(rv.errors.InvalidDemonstrations, match=f"{times[1]} and {times[2]} are 1 {unit} apart, but "):
        read(times, route, tmp_path)
    counted = [time - times[0] for time in times]
    assert "gap" in " ".join(read(counted, route, tmp_path).notes)  # the remedy for numbers works


@pytest.mark.parametrize("route", ROUTES)
def test_months_with_their_period_have_no_gap(route: str, tmp_path: Path) -> None:
    assert not read(MONTHS, route, tmp_path, period="month").notes


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "times",
    [
        list(range(200001, 200013)),  # within a year both readings are the same
        list(range(200005, 200120)),  # numbers that are no months
        [200001, 200101, 200201],  # no two in succession
        list(range(20198, 20215)),
    ],
)
def test_plain_numbers_are_counted(times: list[int], route: str, tmp_path: Path) -> None:
    assert read(times, route, tmp_path).counts.sum() == len(times)


def test_entries_on_a_horizon_may_be_months(tmp_path: Path) -> None:
    demos = read(MONTHS, "frame", tmp_path, period="month", first_time=202011, keep_steps=True)
    assert not demos.notes


def test_command_line_names_its_flag(tmp_path: Path) -> None:
    pd.DataFrame({"id": 0, "t": MONTHS, "s": [0, 1, 0], "a": 0}).to_csv(tmp_path / "p.csv", index=False)
    flags = [word for name, column in COLUMNS.items() for word in (f"--{name}", column)]
    done = here("fit", tmp_path / "p.csv", *flags, "--reward", "tabular")
    assert done.exit_code == 1
    assert "`--period` is required: the times look like months" in done.stderr
    assert "If they are months, pass --period month." in done.stderr


def test_a_missing_time_among_months_is_named_by_a_lazy_frame_too():
    table = pl.DataFrame({"id": [1, 1, 1], "t": [202012, None, 202101], "s": [0, 1, 0], "a": [0, 0, 1]})
    with pytest.raises(rv.errors.InvalidDemonstrations, match=r"missing|look like months"):
        rv.Demonstrations.from_frame(table.lazy(), id="id", time="t", state="s", action="a", keep_steps=False)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("period", "odd", "what"), [("month", 202013, "month"), ("year", 20222, "year")])
def test_the_month_or_year_that_does_not_exist_is_named(
    period: str, odd: int, what: str, route: str, tmp_path: Path
) -> None:
    times = [202011, 202012, odd] if period == "month" else [2020, 2021, odd]
    with pytest.raises(rv.errors.InvalidDemonstrations, match=f"`time`: .* got {odd}. There is no such {what}"):
        read(times, route, tmp_path, period=period)


@pytest.mark.parametrize("text", ["2020-13", "2020-11-31"])
def test_a_date_that_does_not_exist_is_said_to_be_none(text: str) -> None:
    times = ["2020-11", "2020-12", text] if len(text) == 7 else ["2020-11-01", "2020-11-30", text]
    table = pd.DataFrame({"id": 0, "t": times, "s": [0, 1, 0], "a": 0})
    with pytest.raises(rv.errors.InvalidDemonstrations, match=rf"got '{text}' .*There is no such date\."):
        rv.Demonstrations.from_frame(table, **COLUMNS)
