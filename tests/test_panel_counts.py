"""A panel counted where it lives, by DuckDB out of core or by a lazy engine, gives the counts of the one in memory."""

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import revealed as rv
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
    weights = np.asarray(np.arange(one.n_agents) % 3, dtype=np.float64)
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


def test_a_distributed_frame_is_not_collected():
    """Only groups come back: the frame itself would fail if it were computed in one piece."""
    frame = dd.from_pandas(panel(), npartitions=4)
    whole: list[int] = []

    def watch(part):
        whole.append(len(part.columns))
        return part

    demos = read(frame.map_partitions(watch, meta=frame._meta))
    assert demos.steps is None
    assert_same_counts(demos, read(panel()))
    assert len(whole) >= 4  # its partitions were read where they are


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
    "negative": (broken(x=[0, 1, 2, -3, 0]), {}, "state", "indices from 0; got -3", "row 3"),
    "unknown": (broken(x=list("pqrps")), {"states": list("pqr")}, "state", r"one of p, q, r; got 's'", "row 4"),
    "short": (broken(bus=list("abcde")), {}, "time", "two periods of some id", "row 0"),
    "weight": (broken(w=[1.0, 1.0, -2.0, 1.0, 1.0]), {"weight": "w"}, "weight", ">= 0.*-2", "row 2"),
    "weightless": (broken(w=[0.0] * 5), {"weight": "w"}, "weight", "all zero", ""),
    "uneven": (broken(month=["t1", "t2", "t10", "t1", "t2"]), {}, "time", "letter by letter", "row 2"),
    "period": (broken(), {"period": "month"}, "period", "not dates", ""),
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


@pytest.mark.parametrize("what", [name for name in BAD if name not in ("uneven",)])
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
    assert notes[1].startswith("2 ids have a single period, of 3 (first 'b')")
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
