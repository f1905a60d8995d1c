"""A panel counted where it lives, by DuckDB out of core or by a lazy engine, gives the counts of the one in memory."""

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import revealed as rv
from revealed import frames
from revealed.errors import InvalidDemonstrations, InvalidInput

dd = pytest.importorskip("dask.dataframe")
pl = pytest.importorskip("polars")

NAMES = {"id": "bus", "time": "month", "state": "x", "action": "d"}
COLUMNS = ["bus", "month", "x", "d", "w"]


def panel(seed: int = 0, buses: int = 12) -> pd.DataFrame:
    """Buses of different lengths with gaps, rows shuffled; columns of every kind."""
    rng = np.random.default_rng(seed)
    rows = []
    for bus in range(buses):
        first, length = rng.integers(0, 5), rng.integers(1, 20)
        months = np.arange(first, first + length)[rng.random(length) > 0.1 * (length > 2)]
        rows += [(f"bus {bus:02d}", m, *rng.integers(0, (6, 3)), rng.integers(1, 4)) for m in months]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["name"], table["half"] = table.x.map("zyxwvu".__getitem__), table.x % 2
    table["choice"] = table.d.map(["go", "stop", "back"].__getitem__)
    table["miles"] = table.x * 1000.0 + table.month
    table["date"] = pd.to_datetime([f"{2000 + m // 12}-{m % 12 + 1:02d}-17" for m in table.month])
    return table.sample(frac=1.0, random_state=seed).reset_index(drop=True)


def read(frame: Any, **options: Any) -> rv.Demonstrations:
    arguments: dict[str, Any] = NAMES | options
    return rv.Demonstrations.from_frame(frame, **arguments)


def assert_same_counts(one: rv.Demonstrations, other: rv.Demonstrations) -> None:
    assert (one.ids, one.state_labels, one.action_labels) == (other.ids, other.state_labels, other.action_labels)
    assert (one.n_states, one.n_actions) == (other.n_states, other.n_actions)
    np.testing.assert_array_equal(one.by_agent.toarray(), other.by_agent.toarray())
    np.testing.assert_array_equal(one.transition_counts.toarray(), other.transition_counts.toarray())
    weights = {name: float(k % 3) for k, name in enumerate(one.ids)}
    np.testing.assert_array_equal(one.starts, other.starts)
    np.testing.assert_array_equal(one.reweighted(weights).starts, other.reweighted(weights).starts)


ROLES = [
    {},
    {"state": "name", "action": "choice"},
    {"state": ["x", "name"], "action": ["d", "choice"]},
    {"weight": "w"},
    {"time": "date", "period": "month"},
    {"state": "name", "states": list("uvwxyz"[::-1])},
    {"states": [5, 4, 3, 2, 1, 0], "actions": [2, 0, 1]},
]
ENGINES = {
    "duckdb": lambda table: duckdb.from_df(table),
    "polars": lambda table: pl.from_pandas(table).lazy(),
    "dask": lambda table: dd.from_pandas(table, npartitions=3),
}


@pytest.mark.parametrize("roles", ROLES, ids=str)
@pytest.mark.parametrize("engine", ENGINES)
def test_counts_do_not_depend_on_where_they_are_made(engine, roles):
    table = panel()
    counted = read(ENGINES[engine](table), keep_steps=False, **roles)
    assert counted.steps is None
    assert_same_counts(counted, read(table, **roles))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_frame_read_into_memory_is_the_same_from_every_library(engine):
    kept = read(ENGINES[engine](panel()), state="name", keep_steps=True)
    assert kept.steps is not None
    assert_same_counts(kept, read(panel(), state="name"))


def test_of_a_distributed_frame_only_counts_travel(monkeypatch):
    """Whatever is computed has the size of the counts, never that of the panel."""
    once = panel(0, 4)
    table = pd.concat([once.assign(month=once.month + 100 * k) for k in range(20)], ignore_index=True)
    travelled: list[int] = []
    compute = dd.DataFrame.compute

    def watch(self, **options):
        found = compute(self, **options)
        travelled.append(len(found))
        return found

    monkeypatch.setattr(dd.DataFrame, "compute", watch)
    demos = read(dd.from_pandas(table, npartitions=4))
    assert demos.steps is None
    assert travelled
    assert max(travelled) < len(table) / 5
    monkeypatch.undo()
    assert_same_counts(demos, read(table))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("keep", [None, False])
def test_files_globs_folders_and_lists_are_one_panel(tmp_path, suffix, keep):
    table = panel()
    parts = [table.iloc[k::3][COLUMNS[k:] + COLUMNS[:k]] for k in range(3)]  # columns in another order in each file
    for k, part in enumerate(parts):
        target = tmp_path / f"part{k}.{suffix}"
        part.to_csv(target, index=False) if suffix == "csv" else part.to_parquet(target)
    files = [tmp_path / f"part{k}.{suffix}" for k in range(3)]
    for source in (f"{tmp_path}/part*.{suffix}", files, [str(f) for f in files]):
        assert_same_counts(read(source, keep_steps=keep), read(table))
    if suffix == "parquet":
        assert_same_counts(read(tmp_path, keep_steps=keep), read(table))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(-2, 6), st.integers(0, 3), st.integers(0, 2)),
        min_size=2,
        max_size=40,
        unique_by=lambda row: row[:2],
    ).filter(lambda rows: len({row[0] for row in rows}) < len(rows))
)
def test_counts_of_any_panel_coincide(rows):
    table = pd.DataFrame(rows, columns=["bus", "month", "x", "d"])
    plain = read(table)
    assert_same_counts(read(duckdb.from_df(table), keep_steps=False), plain)
    assert_same_counts(read(pl.from_pandas(table).lazy(), keep_steps=False), plain)


def test_next_states_of_their_own_column(tmp_path):
    table = panel()
    led = read(table).to_frame("bus", "month", "x", "d", next_state="to", weight="w")
    led.loc[led.to.isna() & (led.index % 2 == 0), "to"] = 5
    plain = read(led, next_state="to")
    assert plain.transition_counts.sum() > read(table).transition_counts.sum()
    for engine in ENGINES.values():
        assert_same_counts(read(engine(led), next_state="to", keep_steps=False), plain)


def test_bins_make_the_same_states_everywhere(tmp_path):
    table = panel()
    bins = rv.discretize(table, "miles", bins=4)
    plain = read(table, state=bins)
    assert plain.bins == bins
    assert plain.n_states == 4
    for engine in ENGINES.values():
        assert_same_counts(read(engine(table), state=bins, keep_steps=False), plain)


@pytest.mark.parametrize("engine", ENGINES)
def test_values_outside_the_bins_are_refused_everywhere(engine):
    table = panel()
    bins = rv.discretize(table[table.miles < 4000], "miles", bins=4)
    with pytest.raises(InvalidInput, match="miles"):
        read(ENGINES[engine](table), state=bins, keep_steps=False)


def test_each_of_several_paths_must_exist(tmp_path):
    panel().to_csv(tmp_path / "part.csv", index=False)
    for absent in (tmp_path / "nope.csv", f"{tmp_path}/nope-*.csv"):
        with pytest.raises(InvalidInput, match="nope"):
            read([tmp_path / "part.csv", absent])


def test_a_folder_of_csv_files_is_a_panel(tmp_path):
    for k in range(2):
        panel().iloc[k::2].to_csv(tmp_path / f"part{k}.csv", index=False)
    assert_same_counts(read(tmp_path), read(panel()))


def test_a_folder_is_not_searched_for_ever(tmp_path, monkeypatch):
    panel().to_csv(tmp_path / "part.csv", index=False)
    (tmp_path / "again").symlink_to(tmp_path)  # a folder in itself
    monkeypatch.setattr(frames, "MOST_FILES", 20)
    with pytest.raises(InvalidInput, match=r"at most 20 files; got .*, which has more\. Name the folder of the panel"):
        read(tmp_path)


def test_categories_without_an_order_are_sorted_and_those_with_one_keep_it(tmp_path):
    text = read(panel(), state="name")
    plain, order = panel(), list("vzxwyu")
    for cast in (
        plain.astype({"name": "category"}),
        pl.from_pandas(plain).with_columns(pl.col("name").cast(pl.Categorical)),
    ):
        assert_same_counts(read(cast, state="name"), text)
    ordered = read(plain, state="name", states=order)
    enum = pl.from_pandas(plain).with_columns(pl.col("name").cast(pl.Enum(order)))
    listed = ", ".join(f"'{label}'" for label in order)
    stored = duckdb.from_df(plain).project(f"* EXCLUDE (name), CAST(name AS ENUM({listed})) AS name")
    declared = plain.astype({"name": pd.CategoricalDtype(order, ordered=True)})
    for frame in (declared, enum, enum.lazy(), stored):
        for keep in (None, False):
            assert_same_counts(read(frame, state="name", keep_steps=keep), ordered)


def test_ids_beyond_sixty_four_bits_stay_apart(tmp_path):
    table = panel()
    table["bus"] = [f"123456789012345678901{text[-2:]}" for text in table.bus]
    table.to_csv(tmp_path / "panel.csv", index=False)
    for keep in (None, False):
        assert_same_counts(read(tmp_path / "panel.csv", keep_steps=keep), read(table))


def test_zoned_times_do_not_depend_on_where_the_machine_stands(tmp_path, monkeypatch):
    table = panel()
    table["date"] = table.date.dt.tz_localize("UTC") + pd.Timedelta(hours=3)
    table.to_parquet(tmp_path / "panel.parquet")
    monkeypatch.setenv("TZ", "America/New_York")
    for keep in (None, False):
        got = read(tmp_path / "panel.parquet", time="date", period="month", keep_steps=keep)
        assert_same_counts(got, read(panel(), time="date", period="month"))


@pytest.mark.parametrize("kind", ["int8", "uint8", "float64"])
def test_the_type_of_whole_times_does_not_matter(kind):
    table = panel().assign(month=lambda t: (t.month + (100 if kind == "int8" else 0)).astype(kind))
    for keep in (True, False):
        got = read(duckdb.from_df(table), keep_steps=keep)
        assert_same_counts(got, read(panel()))


@pytest.mark.parametrize("period", ["month", "year"])
def test_periods_written_as_numbers(period):
    table = panel()
    written = table.month if period == "month" else table.month + 1990
    numbers = 202411 + written + 88 * (written >= 2) + 88 * (written >= 14) if period == "month" else written
    for keep in (True, False):
        got = read(duckdb.from_df(table.assign(month=numbers)), period=period, keep_steps=keep)
        assert_same_counts(got, read(table))


def test_next_states_of_several_columns_that_are_partly_missing_are_missing():
    table = broken(y=[0, 0, 1, 1, 0], to=[1, 1, None, 0, 2], to_y=[0, None, 1, 0, None])
    roles: dict[str, Any] = {"state": ["x", "y"], "next_state": ["to", "to_y"]}
    plain = read(table, **roles)
    assert plain.transition_counts.sum() == 3
    for engine in (duckdb.from_df, lambda t: pl.from_pandas(t).lazy()):
        assert_same_counts(read(engine(table), keep_steps=False, **roles), plain)


def test_where_no_row_follows_another_that_is_said():
    table = broken(month=[0, 2, 4, 1, 3])
    for frame, keep in ((table, None), *((engine(table), False) for engine in ENGINES.values())):
        notes = read(frame, keep_steps=keep).notes
        assert notes[0].startswith("3 gaps in time")
        assert notes[1].startswith("no two rows of an id are one period apart")
    with pytest.raises(InvalidDemonstrations, match="no two rows of an id are one period apart"):
        rv.estimate_transitions(read(table))


def test_dates_without_a_period_are_said_not_to_show_gaps():
    for keep in (True, False):
        notes = read(duckdb.from_df(panel()), time="date", keep_steps=keep).notes
        assert any("gaps in time were not checked" in note for note in notes)


@pytest.mark.parametrize("written", ["12:3{}", "2024-03-1{}"])
def test_text_that_looks_like_dates_or_hours_may_name_states(tmp_path, written):
    table = panel().assign(x=lambda t: t.x.map(written.format))
    table.to_csv(tmp_path / "panel.csv", index=False)
    for keep in (None, False):
        assert_same_counts(read(tmp_path / "panel.csv", keep_steps=keep), read(table))


def test_a_fit_from_counts_is_the_fit_from_steps():
    world = rv.environments.rust_bus(bins=20, RC=4.0)
    frame = world.demonstrate(n=30, length=60, seed=1).to_frame()
    kept = rv.Demonstrations.from_frame(frame, id="id", time="time", state="state", action="action", n_states=20)
    counted = rv.Demonstrations.from_frame(
        duckdb.from_df(frame), id="id", time="time", state="state", action="action", n_states=20, keep_steps=False
    )
    fits = [rv.NFXP(world.reward_model()).fit(world.mdp, demos) for demos in (kept, counted)]
    np.testing.assert_allclose(fits[1].theta, fits[0].theta, rtol=1e-10)
    np.testing.assert_allclose(fits[1].cov_params("cluster"), fits[0].cov_params("cluster"), rtol=1e-8)
    draws = [fit.bootstrap(reps=3, seed=0).theta for fit in fits]
    np.testing.assert_allclose(draws[1], draws[0], rtol=1e-8)


# what bad data gets, wherever it is counted


def broken(**changes: Any) -> pd.DataFrame:
    table = pd.DataFrame({"bus": list("aaabb"), "month": [0, 1, 2, 0, 1], "x": [0, 1, 2, 3, 0], "d": [0, 1, 0, 1, 0]})
    return table.assign(**changes)


BAD = {
    "twice": (broken(month=[0, 1, 1, 0, 1]), {}, "time", r"id 'a' twice at time 1", "row 2"),
    "gap": (broken(month=[0, 1, 3, 0, 1]), {"gaps": "error"}, "time", r"expected no gaps; got 1.*'a'", "row 2"),
    "missing": (broken(x=[0, 1, None, 3, 0]), {}, "state", "1 missing", "row 2"),
    "contradiction": (broken(to=[1, 0, 2, 0, 1]), {"next_state": "to"}, "next_state", "0", "row 1"),
    "negative": (broken(x=[0, 1, 2, -3, 0]), {}, "state", "indices from 0 to 100000000; got -3", "row 3"),
    "unknown": (broken(x=list("pqrps")), {"states": list("pqr")}, "state", r"one of p, q, r; got 's'", "row 4"),
    "short": (broken(bus=list("abcde")), {}, "time", "two periods for some id", "row 0"),
    "weight": (broken(w=[1.0, 1.0, -2.0, 1.0, 1.0]), {"weight": "w"}, "weight", ">= 0.*-2", "row 2"),
    "weightless": (broken(w=[0.0] * 5), {"weight": "w"}, "weight", "all zero", ""),
    "uneven": (
        broken(month=["2024-01", "2024-02", "2024-3", "2024-01", "2024-02"]),
        {},
        "time",
        "in the same format",
        "row 2",
    ),
    "months": (
        broken(month=["Mar 2018", "Apr 2018", "May 2018", "Mar 2018", "Apr 2018"]),
        {},
        "time",
        "April",
        "row 0",
    ),
    "period": (
        broken(),
        {"period": "month"},
        "period",
        "cannot be 'month': times are not dates. If whole",
        "",
    ),
    "unknown period": (broken(), {"period": "fortnight"}, "period", "one of second", ""),
    "first unknown": (broken(x=list("zqcqq")), {"states": ["q"]}, "state", "got 'z'", "row 0"),
    "unknown next": (
        broken(x=list("pqppq"), to=["q", "p", "p", "q", "y"]),
        {"states": ["p", "q"], "next_state": "to"},
        "next_state",
        "got 'y'",
        "row 4",
    ),
    "holed next": (
        broken(x=list("pqppq"), to=[None, None, "z", "q", None]),
        {"states": ["p", "q"], "next_state": "to"},
        "next_state",
        "got 'z'",
        "row 2",
    ),
    "large": (broken(x=[0, 1, 2, 10**9, 0]), {}, "state", "got 1000000000.*states=", "row 3"),
    "infinite": (broken(w=[1.0, np.inf, 1.0, 1.0, 1.0]), {"weight": "w"}, "weight", "got inf", "row 1"),
    "NUL": (broken(x=["p", "p\0", "p", "q", "p"]), {}, "state", "NUL", ""),
    "gaps": (
        broken(month=[0.5, 1.5, 2.5, 0.5, 1.0]),
        {"gaps": "error"},
        "gaps",
        "irregular timestamps.*whole-number times, or dates with period=",
        "",
    ),
    "slip": (broken(month=[0.0, 1.5, 2.0, 0.0, 1.0]), {}, "time", "whole numbers, as 4 of 5 .*got 1.5", "row 1"),
    "no weight": (broken(w=["1", "2", "50%", "4", "x"]), {"weight": "w"}, "weight", "got text such as 50%", "row 2"),
    "real": (broken(x=[0.5, 1.0, 2.0, 3.0, 4.0]), {}, "state", "rv.discretize", ""),
    "empty": (broken().iloc[:0], {}, "frame", "at least one row", ""),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_bad_data_are_named_with_the_first_row(what, engine):
    table, options, argument, match, row = BAD[what]
    frame = table if engine == "memory" else duckdb.from_df(table)
    with pytest.raises(InvalidInput, match=match) as caught:
        read(frame, keep_steps=None if engine == "memory" else False, **options)
    assert caught.value.argument == argument
    assert row in str(caught.value)


NOT_LAZY = (
    "uneven",
    "months",
    "no month",
    "gaps",
    "infinite",
    "first unknown",
)  # there is no first row, nor an order of text


@pytest.mark.parametrize("what", [name for name in BAD if name not in NOT_LAZY])
def test_bad_data_in_a_lazy_frame_are_named_too(what):
    table, options, argument, match, _ = BAD[what]
    with pytest.raises(InvalidInput, match=match) as caught:
        read(pl.from_pandas(table).lazy(), keep_steps=False, **options)
    assert caught.value.argument == argument


def test_a_lazy_engine_needs_times_that_can_be_joined():
    with pytest.raises(InvalidDemonstrations, match=r"whole numbers of periods.*keep_steps=True"):
        read(dd.from_pandas(panel(), npartitions=2), time="date")


def test_what_was_left_out_is_said_everywhere():
    table = broken(month=[0, 1, 3, 0, 1], bus=list("aaabc"))
    notes = read(table).notes
    assert notes[0].startswith("1 gap in time broke a trajectory (the first of id 'a' between 1 and 3, row 2)")
    assert notes[1].startswith("2 of 3 ids have a single period (first 'b')")
    for engine in ENGINES.values():
        counted = read(engine(table), keep_steps=False).notes
        assert counted[0].startswith("1 gap in time broke a trajectory (the first of id 'a')")
        assert counted[1] == notes[1]


def test_the_notes_come_back_with_the_fit():
    world = rv.environments.rust_bus(bins=20, RC=4.0)
    frame = world.demonstrate(n=20, length=60, seed=1).to_frame()
    demos = rv.Demonstrations.from_frame(
        frame[(frame.time != 7) | (frame.id != 3)], id="id", time="time", state="state", action="action", n_states=20
    )
    assert any("1 gap in time" in note for note in rv.CCP(world.reward_model()).fit(world.mdp, demos).status.notes)


def test_a_count_has_no_first_time():
    with pytest.raises(InvalidInput, match="keep_steps=True"):
        read(duckdb.from_df(panel()), keep_steps=False, first_time=0)


def test_the_users_own_catalogue_is_left_alone():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE buses AS SELECT * FROM (VALUES ('a', 0, 0, 0), ('a', 1, 1, 0)) AS t(bus, month, x, d)"
    )
    before = connection.execute("SHOW ALL TABLES").fetchall()
    assert read(connection.table("buses"), keep_steps=False).n_decisions == 2
    assert connection.execute("SHOW ALL TABLES").fetchall() == before


def test_columns_with_odd_names_are_read():
    odd = {'my "bus"': "bus", "select": "month", "x;--": "x", "d'": "d"}
    table = panel().rename(columns={short: name for name, short in odd.items()})
    names = dict(zip(("id", "time", "state", "action"), odd))
    plain = rv.Demonstrations.from_frame(table, **names)
    assert_same_counts(rv.Demonstrations.from_frame(duckdb.from_df(table), keep_steps=False, **names), plain)


# NaN, which DuckDB does not see among the numbers of a Parquet file where it asks the file for their range


def with_nan(table: dict[str, Any], folder: Any) -> dict[str, Any]:
    """One table by every route that counts it where it is; NaN stays NaN."""
    pq.write_table(pa.table(table), folder / "panel.parquet")
    pd.DataFrame(table).to_csv(folder / "panel.csv", index=False)
    return {
        "parquet": folder / "panel.parquet",
        "csv": folder / "panel.csv",
        "relation": duckdb.connect().read_parquet(str(folder / "panel.parquet")),
        "arrow": duckdb.connect().from_arrow(pa.table(table)),
        "polars": pl.DataFrame(table).lazy(),
        "scan": pl.scan_parquet(folder / "panel.parquet"),
        "dask": dd.from_pandas(pd.DataFrame(table), npartitions=2),
    }


NAN = float("nan")
HOLED: dict[str, list[float]] = {
    "bus": [1, 1, 1, 2, 2, 2],
    "month": [0, 1, 2, 0, 1, 2],
    "x": [0, 1, 0, 1, 0, 1],
    "d": [0, 0, 1, 1, 0, 1],
    "mile": [0.0, 1.0, NAN, 1.0, 0.0, 1.0],
    "to": [1.0, 0.0, NAN, 0.0, 1.0, NAN],
}
MILES = rv.Bins(("mile",), ([0.0, 0.5, 1.0],))
WANTED: list[dict[str, Any]] = [
    {"state": MILES}, {"state": "mile"}, {"state": ["x", "mile"]}, {"action": "mile"}, {"id": "mile"},
    {"time": "mile"}, {"episode": "mile"}, {"weight": "mile"}, {"keep": "mile"},
]  # fmt: skip


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("roles", WANTED, ids=str)
def test_nan_is_missing_by_every_route_and_its_first_row_is_named(roles, keep, tmp_path):
    (role,) = roles
    for route, frame in with_nan(HOLED, tmp_path).items():
        with pytest.raises(InvalidDemonstrations) as caught:
            read(frame, keep_steps=keep, **roles)
        assert (caught.value.argument, caught.value.expected, caught.value.got) == (
            role, "no missing values", "1 missing",
        )  # fmt: skip
        known = [word for word in ("id 1", "time 2") if word.split()[0] != role]
        lazy = route in ("polars", "scan", "dask") and not keep
        assert caught.value.offender == (", ".join(known) if lazy else "row 2"), route


@pytest.mark.parametrize("keep", [True, False])
def test_next_states_that_are_nan_were_not_observed(keep, tmp_path):
    expected = read(pd.DataFrame(HOLED), next_state="to")
    assert expected.transition_counts.sum() == 4.0
    binned = read(pd.DataFrame(HOLED).assign(mile=HOLED["x"]), state=MILES, next_state=["to"])
    for frame in with_nan(HOLED, tmp_path).values():
        assert_same_counts(read(frame, next_state="to", keep_steps=keep), expected)
    for frame in with_nan(HOLED | {"mile": HOLED["x"]}, tmp_path).values():
        assert_same_counts(read(frame, state=MILES, next_state=["to"], keep_steps=keep), binned)


@pytest.mark.parametrize("odd", [0.5, np.inf])
def test_next_states_that_are_no_whole_numbers_are_not_rounded(odd, tmp_path):
    holed = HOLED | {"to": [1.0, 0.0, odd, 0.0, 1.0, NAN]}
    for frame in with_nan(holed, tmp_path).values():
        with pytest.raises(InvalidDemonstrations, match="whole numbers or strings"):
            read(frame, next_state="to", keep_steps=False)


def test_large_parquet_files_hide_no_nan_in_the_last_bin(tmp_path):
    rng = np.random.default_rng(0)
    miles = np.where(rng.random(5000) < 0.1, np.nan, rng.random(5000) * 10)
    row = int(np.flatnonzero(np.isnan(miles))[0])
    table: dict[str, Any] = {"bus": np.repeat(np.arange(500), 10), "month": np.tile(np.arange(10), 500), "mile": miles}
    bins, told = rv.Bins(("mile",), (np.linspace(0.0, 10.0, 6),)), f"{np.isnan(miles).sum()} missing.*row {row}"
    frames = with_nan({name: column.tolist() for name, column in table.items()} | {"d": [0] * 5000}, tmp_path)
    for route in ("parquet", "relation", "csv"):
        with pytest.raises(InvalidDemonstrations, match=told):
            read(frames[route], state=bins, keep_steps=False)
        every: list[dict[str, Any]] = [{"bins": 5}, {"edges": [0.0, 5.0, 10.0]}, {"bins": 5, "how": "quantile"}]
        for options in every:
            with pytest.raises(InvalidInput, match=told):
                rv.discretize(frames[route], "mile", **options)
    states = frames["relation"].query("drives", f"SELECT {bins.sql()} AS s FROM drives").fetchnumpy()["s"]
    np.testing.assert_array_equal(np.ma.getmaskarray(states), np.isnan(miles))


@pytest.mark.parametrize("keep", [True, False])
def test_what_duckdb_cannot_compute_is_told_without_the_query(keep):
    relation = duckdb.sql("SELECT 1 AS bus, unnest([0, 1]) AS month, 0 AS x, CAST(unnest(['1', 'y']) AS INTEGER) AS d")
    with pytest.raises(InvalidInput, match="'y'") as caught:
        read(relation, keep_steps=keep)
    assert (caught.value.argument, caught.value.expected) == ("frame", "a relation that DuckDB can read")
    assert not {"SELECT", "LINE", "unnamed", "path"} & set(str(caught.value).replace("_", " ").split())


# what a lazy engine would group by, and no label can be


@pytest.mark.parametrize("kind", ["struct", "array", "list", "period"])
@pytest.mark.parametrize("role", ["id", "time", "state", "action", "next_state", "weight", "episode", "keep"])
def test_nested_columns_of_polars_are_refused_in_every_role(kind, role):
    values = {
        "struct": pl.Series([{"p": 1, "q": 2}, {"p": 2, "q": 2}] * 3),
        "array": pl.Series([[1, 2], [2, 2]] * 3, dtype=pl.Array(pl.Int64, 2)),
        "list": pl.Series([[1, 2], [2]] * 3),
        "period": pl.from_arrow(pa.table({"x": pa.array(pd.period_range("2020-01", periods=6, freq="M"))}))["x"],
    }
    frame = pl.DataFrame(HOLED).with_columns(values[kind].alias("odd"))
    for source, keep in ((frame, None), (frame.lazy(), True), (frame.lazy(), False)):
        with pytest.raises(InvalidDemonstrations) as caught:
            read(source, keep_steps=keep, **{role: "odd"})
        assert caught.value.argument == role
    for door in (
        lambda: rv.discretize(frame, "odd"),
        lambda: rv.LinearReward.from_frame(frame, state="month", columns=["odd"]),
    ):
        with pytest.raises(InvalidInput, match=r"column 'odd'.*values of one kind"):
            door()


@pytest.mark.parametrize("keep", [True, False])
def test_episodes_are_labels_as_ids_are(keep, tmp_path):
    """Whole numbers above 2^53 differ, and what is no label is refused, although episodes are counted and not kept."""
    table = pd.DataFrame(HOLED).drop(columns=["mile", "to"]).astype(int).assign(month=[0, 1, 0, 0, 1, 0])
    for base in (2**53, 2**63):
        whole = table.assign(e=np.array([base, base, base + 1, base, base, base + 1], dtype="uint64"))
        expected = read(table.assign(e=[0, 0, 1, 0, 0, 1]), episode="e")
        whole.to_csv(tmp_path / "e.csv", index=False)
        whole.to_parquet(tmp_path / "e.parquet", index=False)
        for frame in (tmp_path / "e.csv", tmp_path / "e.parquet", duckdb.from_df(whole), pl.from_pandas(whole).lazy()):
            assert_same_counts(read(frame, episode="e", keep_steps=keep), expected)
    bad: dict[str, Any] = {
        "NUL": ["a", "a", "b", "a", "a", "b\0"], "large": [0.0, 0.0, 1.0, 0.0, 0.0, 2.0**53 + 2],
        "half": [0.0, 0.0, 1.0, 0.0, 0.0, 0.5], "infinite": [0.0, 0.0, 1.0, 0.0, 0.0, np.inf],
    }  # fmt: skip
    for episodes in bad.values():
        frame = table.assign(e=episodes)
        for source in (
            frame,
            pl.from_pandas(frame).lazy(),
            duckdb.from_df(frame),
            dd.from_pandas(frame, npartitions=2),
        ):
            with pytest.raises(InvalidDemonstrations) as caught:
                read(source, episode="e", keep_steps=keep)
            assert caught.value.argument == "episode"
            assert caught.value.offender in ("row 5", "id 2, time 0")
