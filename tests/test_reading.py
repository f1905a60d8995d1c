"""The same table gives the same labels, order, counts and refusals, whichever way it comes: routes × kinds × roles."""

import datetime as dt
import os
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import revealed as rv
from revealed.errors import InvalidInput, RevealedError

pl = pytest.importorskip("polars")

UTC, BERLIN = "UTC", "Europe/Berlin"
BIG = 2**53
DAYS = [dt.date(2020, 1, 31), dt.date(2020, 2, 1), dt.date(2020, 3, 1), dt.date(2020, 5, 1)]
HOURS = [dt.datetime(2020, 1, 31, 23), dt.datetime(2020, 2, 1), dt.datetime(2020, 3, 1, 4), dt.datetime(2020, 5, 1)]
FRACTIONS = [when.replace(microsecond=k) for k, when in enumerate(HOURS)]
ORDER = ["low", "mid", "high", "top"]

# four values of each kind, in increasing order, as Arrow holds them
KINDS: dict[str, pa.Array] = {
    "ints": pa.array([0, 1, 2, 4]),
    "small ints": pa.array([0, 1, 2, 4], pa.int8()),
    "negative ints": pa.array([-2, -1, 0, 1]),
    "big ints": pa.array([BIG - 1, BIG, BIG + 1, BIG + 2]),
    "unsigned": pa.array([0, 1, 2**63, 2**63 + 1], pa.uint64()),
    "beyond 64 bits": pa.array([Decimal(10**20 + k) for k in range(4)], pa.decimal128(38, 0)),
    "whole floats": pa.array([0.0, 1.0, 2.0, 4.0]),
    "floats": pa.array([0.5, 1.0, 2.25, 4.0]),
    "single floats": pa.array([0.5, 1.0, 2.25, 4.0], pa.float32()),
    "large floats": pa.array([1.0, 2.0, 3.0, float(2 * BIG)]),
    "infinite": pa.array([0.0, 1.0, 2.0, np.inf]),
    "bools": pa.array([False, True, False, True]),
    "bool-like": pa.array(["no", "t", "true", "yes"]),
    "text": pa.array(["a", "b", "c", "d"]),
    "zeros": pa.array(["001", "007", "01", "1x"]),
    "codes": pa.array(["007", "010", "100", "101"]),
    "hex": pa.array(["0x0A", "0x1F", "1F", "31"]),
    "exponents": pa.array(["100000", "10e4", "1e5", "2e5"]),
    "slashes": pa.array(["03/04/2020", "04/04/2020", "05/04/2020", "06/04/2020"]),
    "months": pa.array(["2020-01", "2020-02", "2020-03", "2020-05"]),
    "words": pa.array(["NA", "None", "nan", "null"]),
    "empty": pa.array(["", "a", "b", "c"]),
    "blanks": pa.array([" a", "a", "a ", "b"]),
    "thousands": pa.array(["1,234", "2,345", "3,456", "4,567"]),
    "quotes": pa.array(['"a"', "'b'", 'c"c', "d\ne"]),
    "unicode": pa.array(["e\u0301", "z", "\u00e9", "日本"]),
    "NUL": pa.array(["a", "a\0", "b", "c"]),
    "dates": pa.array(DAYS),
    "midnights": pa.array([dt.datetime.combine(day, dt.time()) for day in DAYS], pa.timestamp("us")),
    "timestamps": pa.array(HOURS, pa.timestamp("us")),
    "seconds": pa.array(HOURS, pa.timestamp("s")),
    "nanoseconds": pa.array(HOURS, pa.timestamp("ns")),
    "fractions": pa.array(FRACTIONS, pa.timestamp("us")),
    "zoned": pa.array(HOURS, pa.timestamp("us", tz=UTC)),
    "Berlin": pa.array(HOURS, pa.timestamp("us", tz=BERLIN)),
    "hours": pa.array([dt.time(8), dt.time(9, 30), dt.time(9, 30, 1), dt.time(23)], pa.time64("us")),
    "decimals": pa.array([Decimal("0.50"), Decimal("1.00"), Decimal("2.25"), Decimal("4.00")], pa.decimal128(9, 2)),
    "whole decimals": pa.array([Decimal(k) for k in (0, 1, 2, 4)], pa.decimal128(9, 0)),
    "categories": pa.array(["a", "b", "c", "d"]).dictionary_encode(),
    "ordered": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3], pa.int8()), pa.array(ORDER), ordered=True),
    "nulls": pa.array([None, 1, 2, 4]),
    "big nulls": pa.array([None, BIG, BIG + 1, BIG + 2]),
    "null text": pa.array([None, "a", "b", "c"]),
    "null dates": pa.array([None, *DAYS[1:]]),
    "NaN": pa.array([np.nan, 1.0, 2.0, 4.0]),
    "lists": pa.array([[0], [1], [2], [3]]),
    "arrays": pa.array([[0, 1], [1, 2], [2, 3], [3, 4]], pa.list_(pa.int64(), 2)),
    "structs": pa.array([{"p": k, "q": 1} for k in range(4)]),
    "periods": pa.array(pd.period_range("2020-01", periods=4, freq="M")),
    "bytes": pa.array([b"a", b"b", b"c", b"d"]),
    "durations": pa.array([dt.timedelta(days=k) for k in range(4)], pa.duration("us")),
}
# A CSV file has no types: cells that look like numbers or dates are such where numbers or times are wanted, zoned times
# are labels as they are written, and there is no list that is not text.
WITHOUT_TYPES: dict[str, tuple[str, ...]] = {
    "codes": ("time", "months", "weight"),
    "exponents": ("time", "months", "weight"),
    "ordered": ("state", "action", "next_state"),
}
LABELS = ("id", "state", "action", "next_state", "episode")
WITHOUT_TYPES |= dict.fromkeys(("Berlin", "NUL", "lists", "arrays", "structs", "bytes", "durations"), LABELS)
WITHOUT_TYPES["periods"] = (*LABELS, "time", "months")
ROLES = ("id", "time", "months", "state", "action", "weight", "next_state", "episode")


def table(values: pa.Array, role: str) -> pa.Table:
    """Two agents, five decisions each; the column under test has one of the roles."""
    column = {
        "id": [1, 1, 1, 1, 1, 3, 3, 3, 3, 3],
        "time": [0, 1, 2, 3, None, 3, 2, 1, None, 0],
        "weight": [0, 1, 2, 3, 3, 2, 1, 0, 1, 2],
        "next_state": [3, 0, 2, 1, 1, 0, 2, 1, 3, 0],
        "episode": [1, 1, 0, 0, 0, 3, 3, 1, 1, 2],
    }.get("time" if role == "months" else role, [1, 3, 0, 2, 1, 0, 0, 2, 1, 3])
    rows = [k for k, place in enumerate(column) if place is not None]
    parts = {
        "i": pa.array([(1, 2)[k // 5] for k in rows]),
        "t": pa.array([(k % 5) + (k % 5 > 3) for k in rows]),  # the last decision of each after a gap
        "s": pa.array([(2, 0, 1, 1, 0, 1, 2, 0, 0, 1)[k] for k in rows]),
        "a": pa.array([("go", "stay")[k * k % 3 % 2] for k in rows]),
    }
    own = {"id": "i", "time": "t", "months": "t", "state": "s", "action": "a", "next_state": "s"}.get(role, "w")
    own = "e" if role == "episode" else own
    parts[own] = values.take(pa.array([column[k] for k in rows]))
    if role == "next_state":  # known of some decisions that no row follows
        after = [0, 2, 1, None, 3, 2, 1, 3, None, None]
        parts["z"] = values.take(pa.array(after))
    return pa.table(parts)


def read(frame: Any, role: str, **options: Any) -> rv.Demonstrations:
    others = {"weight": "w", "next_state": "z", "episode": "e"}
    more: dict[str, Any] = {role: others[role]} if role in others else {}
    more |= {"period": "month"} if role == "months" else {}
    return rv.Demonstrations.from_frame(frame, id="i", time="t", state="s", action="a", **more, **options)


def outcome(frame: Any, role: str, **options: Any) -> tuple[Any, ...]:
    """All that is known of a panel, or who complains about what."""
    try:
        found = read(frame, role, **options)
    except RevealedError as error:
        in_memory = "keep_steps=True" in str(error)
        return ("engine",) if in_memory else ("refused", getattr(error, "argument", "") or type(error).__name__)
    tables = (found.by_agent.toarray(), found.starts, found.transition_counts.toarray())
    notes = tuple(note.partition(" (")[0] for note in found.notes)
    labels = found.state_labels, found.action_labels, found.ids, tuple(map(type, found.ids))
    return "read", *labels, *(t.tolist() for t in tables), notes


def pandas_of(source: pa.Table) -> pd.DataFrame:
    """Whole numbers with holes as pandas' own, which are whole; the rest in NumPy's types."""
    kinds = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.int8(): pd.Int8Dtype()}
    holed = any(column.null_count for column in source.columns)
    return source.to_pandas(types_mapper=kinds.get) if holed else source.to_pandas()


def polars_of(source: pa.Table) -> Any:
    found: Any = pl.from_arrow(source)
    enums = [f.name for f in source.schema if getattr(f.type, "ordered", False)]
    return found.with_columns(pl.col(name).cast(pl.String).cast(pl.Enum(ORDER)) for name in enums)


def duckdb_of(source: pa.Table) -> Any:
    found = duckdb.connect().from_arrow(source)
    enums = [f.name for f in source.schema if getattr(f.type, "ordered", False)]
    listed = ", ".join(f"'{label}'" for label in ORDER)
    cast = ", ".join(f"CAST({name} AS ENUM({listed})) AS {name}" for name in enums)
    return found.project(f"* REPLACE ({cast})") if enums else found


def files_of(source: pa.Table, kind: str, folder: Any, parts: int) -> str:
    folder = folder / f"{parts}"
    folder.mkdir(exist_ok=True)
    for k in range(parts):
        half = source.take(pa.array(range(k, source.num_rows, parts)))
        if kind == "csv":
            pandas_of(half).to_csv(folder / f"part{k}.csv", index=False)
        else:
            pq.write_table(half, folder / f"part{k}.parquet")
    return f"{folder}/part*.{kind}"


Route = Callable[[pa.Table, str, Any], tuple[Any, ...]]


def in_memory(make: Callable[[pa.Table], Any], **options: Any) -> Route:
    return lambda source, role, _: outcome(make(source), role, **options)


def in_files(kind: str, parts: int, keep: bool) -> Route:
    return lambda source, role, folder: outcome(files_of(source, kind, folder, parts), role, keep_steps=keep)


TYPED: dict[str, Route] = {
    "pandas": in_memory(pandas_of),
    "pandas, pyarrow": in_memory(lambda source: source.to_pandas(types_mapper=pd.ArrowDtype)),
    "polars": in_memory(polars_of),
    "polars, lazy": in_memory(lambda source: polars_of(source).lazy()),
    "polars, counted": in_memory(lambda source: polars_of(source).lazy(), keep_steps=False),
    "arrow": in_memory(lambda source: source),
    "duckdb": in_memory(duckdb_of, keep_steps=True),
    "duckdb, counted": in_memory(duckdb_of, keep_steps=False),
    "parquet": in_files("parquet", 1, True),
    "parquet, counted": in_files("parquet", 1, False),
    "parquet, two files": in_files("parquet", 2, True),
    "parquet, two files, counted": in_files("parquet", 2, False),
}
WRITTEN: dict[str, Route] = {
    "csv": in_files("csv", 1, True),
    "csv, counted": in_files("csv", 1, False),
    "csv, two files": in_files("csv", 2, True),
    "csv, two files, counted": in_files("csv", 2, False),
}
ROUTES = TYPED | WRITTEN
ALL = os.environ.get("REVEALED_READS") == "all"  # else each kind takes every other route, and each role all of them


def chosen(kind: str, role: str) -> list[str]:
    """The routes by which a cell of the matrix is read; the first is what the others are compared with."""
    k, r = list(KINDS).index(kind), ROLES.index(role)
    names = list(ROUTES)[1:]
    some = names if ALL else [names[(k + 2 * r) % len(names)]]
    own = role not in WITHOUT_TYPES.get(kind, ())
    lost = {"durations": "parquet", "periods": "duckdb"}.get(kind, "-")  # which know them as whole numbers alone
    return ["pandas", *(n for n in some if (own or n in TYPED) and not n.startswith(lost))]


def test_the_matrix_meets_every_route_and_role():
    met = {(role, name) for kind in KINDS for role in ROLES for name in chosen(kind, role)}
    assert met == {(role, name) for role in ROLES for name in ROUTES}


@pytest.mark.parametrize("kind", KINDS)
def test_every_route_reads_the_same(kind, tmp_path):
    """A lazy engine counts by joins: irregular times are refused there, with the way to read them."""
    for role in ROLES:
        (tmp_path / role).mkdir()
        source = table(KINDS[kind], role)
        found = {name: ROUTES[name](source, role, tmp_path / role) for name in chosen(kind, role)}
        if found.get("polars, counted") == ("engine",):
            del found["polars, counted"]
        assert len({repr(got) for got in found.values()}) == 1, (role, found)


@pytest.mark.parametrize("kind", WITHOUT_TYPES)
def test_text_without_types_reads_the_same_in_one_file_and_in_two(kind, tmp_path):
    for role in WITHOUT_TYPES[kind] if ALL else WITHOUT_TYPES[kind][:1]:
        source = table(KINDS[kind], role)
        found = {name: read(source, role, tmp_path) for name, read in WRITTEN.items()}
        assert len({repr(got) for got in found.values()}) == 1, (role, found)


def labels(kind: str) -> Any:
    found = outcome(table(KINDS[kind], "state"), "state")
    return found[1] if found[0] == "read" else found


def test_labels_are_what_was_written():
    """Else every route might be wrong in the same way."""
    assert labels("bool-like") == ("no", "t", "true", "yes")
    assert labels("bools") == ("False", "True")
    assert labels("hex") == ("0x0A", "0x1F", "1F", "31")
    assert labels("exponents") == ("100000", "10e4", "1e5", "2e5")
    assert labels("codes") == ("007", "010", "100", "101")
    assert labels("words") == ("NA", "None", "nan", "null")
    assert labels("dates") == labels("midnights") == tuple(map(str, DAYS))
    assert labels("timestamps")[0] == "2020-01-31 23:00:00"
    assert labels("fractions")[1] == "2020-02-01 00:00:00.000001"
    assert labels("zoned")[0] == "2020-01-31 23:00:00+00:00"
    assert labels("ordered") == tuple(ORDER)
    assert labels("ints") is None
    assert labels("floats") == labels("whole floats") == labels("empty") == ("refused", "state")


def test_ids_above_two_to_the_fifty_third_stay_apart():
    assert outcome(table(KINDS["big ints"], "id"), "id")[3] == (BIG, BIG + 2)
    holed = pa.array([BIG, BIG + 1, None])
    source = pa.table({"i": [1, 2, 3], "t": [0, 0, 0], "s": [BIG] * 3, "a": [0, 0, 0], "z": holed})
    for make in (lambda t: t, pandas_of, polars_of, duckdb_of):
        moved = read(make(source), "next_state", states=[BIG, BIG + 1])
        assert moved.transition_counts.toarray().tolist() == [[1.0, 1.0], [0.0, 0.0]]


# single defects, in CSV files as people write them


def csv(folder: Any, *files: str) -> str:
    for k, text in enumerate(files):
        (folder / f"day{k}.csv").write_text(text, encoding="utf-8")
    return f"{folder}/day*.csv"


def rows(*cells: str, head: str = "i,t,s,a") -> str:
    return "\n".join([head, *cells]) + "\n"


def refusal(frame: Any, **options: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        rv.Demonstrations.from_frame(frame, id="i", time="t", state="s", action="a", **options)
    return caught.value


@pytest.mark.parametrize("keep", [True, False])
def test_dates_with_slashes_are_refused_with_both_readings(tmp_path, keep):
    first = rows("1,03/04/2020,0,0", "1,04/04/2020,1,0")
    second = rows("2,25/04/2020,0,0", "2,26/04/2020,1,0")  # day first beyond doubt, but it is another file
    error = refusal(csv(tmp_path, first, second), keep_steps=keep)
    assert error.argument == "time"
    assert "03 April 2020 or 04 March 2020" in str(error)
    assert "Write dates as 2020-04-03" in str(error)
    assert "which may be 25 April 2020 (first" in str(refusal(csv(tmp_path, second, second), keep_steps=keep))


@pytest.mark.parametrize("keep", [True, False])
def test_infinite_times_are_refused(tmp_path, keep):
    text = rows("1,0,0,0", "1,inf,1,0", "1,1,0,0")
    error = refusal(csv(tmp_path, text), keep_steps=keep)
    assert (error.argument, error.offender) == ("time", "row 1")
    assert "finite times" in str(error)
    relation = duckdb.sql("SELECT 1 AS i, unnest([TIMESTAMP 'infinity', TIMESTAMP '2020-01-01']) AS t, 0 AS s, 0 AS a")
    assert "finite times" in str(refusal(relation, keep_steps=keep))


def every_source(folder: Any, frame: pd.DataFrame) -> list[tuple[str, Any, dict[str, Any]]]:
    """One frame by every route, kept in memory and counted."""
    frame.to_csv(folder / "one.csv", index=False)
    frame.to_parquet(folder / "one.parquet", index=False)
    polars = pl.from_pandas(frame)
    sources = {"pandas": frame, "polars": polars, "arrow": pa.Table.from_pandas(frame, preserve_index=False)}
    sources |= {"csv": folder / "one.csv", "parquet": folder / "one.parquet", "duckdb": duckdb.from_df(frame)}
    found = [(name, source, {}) for name, source in sources.items()] + [("lazy", polars.lazy(), {})]
    counted = [(name, sources[name], {"keep_steps": False}) for name in ("csv", "parquet", "duckdb")]
    return [*found, *counted, ("lazy, counted", polars.lazy(), {"keep_steps": False})]


def test_one_fractional_time_among_whole_ones_is_refused_by_every_route(tmp_path):
    """It would switch the detection of gaps off for every id."""
    frame = pd.DataFrame({"i": 1, "t": [0.0, 1.0, 2.5, 3.0, 9.0], "s": [0, 1, 0, 1, 0], "a": 0})
    for name, source, options in every_source(tmp_path, frame):
        error = refusal(source, **options)
        assert (error.argument, error.got) == ("time", "2.5")
        assert error.offender == ("id 1, time 2.5" if name == "lazy, counted" else "row 2")
        assert "whole numbers, as 4 of 5 times are" in str(error)
        assert "number the rows of each id 0, 1, 2" in str(error)


def test_few_fractional_times_are_slips_and_half_periods_are_not(tmp_path):
    for n, of, refused in ((1, 3, True), (2, 9, True), (2, 8, False), (3, 7, False), (1, 2, False)):
        times = [float(k) if k < of - n else k + 0.5 for k in range(of)]
        frame = pd.DataFrame({"i": 1, "t": times, "s": 0, "a": 0})
        for name, source, options in every_source(tmp_path, frame):
            if refused:
                assert f"as {of - n} of {of} times are" in str(refusal(source, **options))
            elif name != "lazy, counted":  # which cannot join by irregular times
                (note,) = rv.Demonstrations.from_frame(source, id="i", time="t", state="s", action="a", **options).notes
                assert "gaps in time were not checked" in note


@pytest.mark.parametrize("keep", [True, False])
def test_irregular_times_are_told(tmp_path, keep):
    path = csv(tmp_path, rows("1,0,0,0", "1,1.5,1,0", "1,7.25,0,0"))
    demos = rv.Demonstrations.from_frame(path, id="i", time="t", state="s", action="a", keep_steps=keep)
    (note,) = [note for note in demos.notes if "gaps" in note]
    assert "not checked: 2 of 3 times are not whole numbers (first 1.5, row 1)" in note


@pytest.mark.parametrize(
    ("written", "remedy"),
    [("2020/04/0{}", "2020-04-01"), ("2020040{}", "2020-04-01"), ("2020.4.{} 08:00", "2020-04-01")],
)
def test_dates_with_the_year_first_are_refused_with_how_to_write_them(written, remedy, tmp_path):
    frame = pd.DataFrame({"i": 1, "t": [written.format(k) for k in (1, 2, 3)], "s": [0, 1, 0], "a": 0})
    for name, source, options in every_source(tmp_path, frame):
        if not name.startswith("lazy, ") and not (name == "csv" and written.startswith("202004")):
            error = refusal(source, **options)
            assert (error.argument, error.offender) == ("time", "row 0")
            assert f"Write dates as {remedy}, in every row and file." in str(error)


@pytest.mark.parametrize("slip", ["x", "50%", "1,5"])
def test_the_cell_that_is_no_number_is_shown_with_its_row(slip, tmp_path):
    cells = ["1", " 2.5", slip, "4", "y"]
    frame = pd.DataFrame({"i": 1, "t": range(5), "s": [0, 1, 0, 1, 0], "a": 0, "w": cells})
    bins = rv.Bins(("w",), (np.array([0.0, 2.0, 5.0]),))
    for name, source, options in every_source(tmp_path, frame):
        columns: dict[str, Any] = {"id": "i", "time": "t", "action": "a", **options}
        roles: list[dict[str, Any]] = [{"state": "s", "weight": "w"}, {"state": bins}]
        for more in roles:
            with pytest.raises(InvalidInput, match="numbers in column 'w'") as caught:
                rv.Demonstrations.from_frame(source, **columns, **more)
            assert caught.value.got == f"text such as {slip}"
            assert caught.value.offender == ("id 1, time 2" if name == "lazy, counted" else "row 2")
        if "counted" not in name:
            with pytest.raises(InvalidInput, match=rf"text such as {slip} \(first at row 2\)"):
                rv.discretize(source, "w", 2)
    table = pd.DataFrame({"s": [0, 1, 2, 3, 4], "a": 0, "z": 0, "p": cells})
    with pytest.raises(InvalidInput, match=rf"text such as {slip} \(first at row 2\)"):
        rv.MDP.from_frame(table, state="s", action="a", next_state="z", probability="p", discount=0.9)


def test_an_ordered_part_of_a_state_keeps_its_order(tmp_path):
    frame = pd.DataFrame({"i": 1, "t": range(6), "s": ["mid", "low", "top"] * 2, "y": [1, 0, 1, 0, 1, 0], "a": 0})
    frame["s"] = pd.Categorical(frame["s"], ORDER, ordered=True)
    expected = [(s, y) for s in ("low", "mid", "top") for y in (0, 1)]
    names: dict[str, Any] = {"id": "i", "time": "t", "state": ["s", "y"], "action": "a"}
    for name, source, options in every_source(tmp_path, frame):
        if "duckdb" in name:  # which does not know whether a category of pandas is ordered
            with pytest.raises(InvalidInput, match="DuckDB does not know"):
                rv.Demonstrations.from_frame(source, **names, **options)
            continue
        found = rv.Demonstrations.from_frame(source, **names, **options)
        same = sorted(expected) if name.startswith("csv") else expected  # a CSV file has no categories
        if not name.startswith("lazy") and name != "polars":  # a category of Polars has no order; an Enum has
            assert list(found.state_labels or ()) == same, name
    enum = pl.from_pandas(frame).with_columns(pl.col("s").cast(pl.String).cast(pl.Enum(ORDER)))
    for source in (enum, enum.lazy()):
        for keep in (None, False):
            assert list(rv.Demonstrations.from_frame(source, **names, keep_steps=keep).state_labels or ()) == expected
    moves = frame.assign(z=frame["s"], w=frame["y"], p=1.0).drop_duplicates(["s", "y"])
    model = rv.MDP.from_frame(moves, state=["s", "y"], action="a", next_state=["z", "w"], probability="p", discount=0.9)
    assert list(model.state_labels or ()) == expected


def test_columns_of_one_name_are_refused_by_every_route(tmp_path):
    text = rows("1,0,0,0,1", "1,1,1,0,0", head="i,t,s,a,s")
    twice = pa.table([pa.array([1, 1]), *[pa.array([0, 1])] * 4], names=["i", "t", "s", "a", "s"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    relation = duckdb.sql("SELECT 1 AS i, unnest([0, 1]) AS t, 0 AS s, 0 AS a, 1 AS s")
    frames = [csv(tmp_path, text), tmp_path / "twice.parquet", twice, twice.to_pandas(), relation]
    for frame in frames:
        assert "names" in str(refusal(frame))
    fine = csv(tmp_path, text.replace("i,t,s,a,s", "i,t,s,a,s_1"))
    assert rv.Demonstrations.from_frame(fine, id="i", time="t", state="s", action="a").n_decisions == 2


def every_way(folder: Any, head: list[str], cells: list[list[int]]) -> list[tuple[Any, dict[str, Any]]]:
    """One table with columns of these names by every route."""
    source = pa.table([pa.array(column) for column in cells], names=head)
    (folder / "names.csv").write_text("\n".join([",".join(head), *(",".join(map(str, r)) for r in zip(*cells))]) + "\n")
    pq.write_table(source, folder / "names.parquet")
    either: list[dict[str, Any]] = [{"keep_steps": None}, {"keep_steps": False}]
    frames = [pandas_of(source), polars_of(source), source]
    stored = [polars_of(source).lazy(), duckdb_of(source), folder / "names.csv", folder / "names.parquet"]
    if len({name.lower() for name in head}) < len(head):  # DuckDB itself renames S beside s
        del stored[1]
    return [(frame, {}) for frame in frames] + [(frame, options) for frame in stored for options in either]


CELLS = [[1, 1, 1], [0, 1, 2], [2, 0, 1], [0, 1, 0], [0, 1, 2]]


@pytest.mark.parametrize(
    ("head", "state", "expected"),
    [
        ("i,t, s,a,s", "s", [0, 1, 2]),  # the exact name wins
        ("i,t, s,a,s", " s", [2, 0, 1]),
        ("i,t,s ,a,s", "s", [0, 1, 2]),
        ("i,t,s,a, s", "s", [2, 0, 1]),
        ("i, t, s, a,x", "s", [2, 0, 1]),  # else the only one that fits but for blanks
        ("i,t,s,a,x", " s", [2, 0, 1]),
        ("i,t,s,a,S", "s", [2, 0, 1]),
        ("i,t,s,a,S", "S", [0, 1, 2]),
        ("i,t,S,a,s", "S", [2, 0, 1]),
        ("i,t,s,a,s_1", "s", [2, 0, 1]),
        ("i,t, s,a,s ", "s", "differ in blanks alone"),
        ("i,t,S,a,x", "s", "got 's'"),
        ("0,1,2,3,4", "s", "Is the header line missing?"),
    ],
)
def test_a_name_means_the_same_column_by_every_route(head, state, expected, tmp_path):
    names: dict[str, Any] = {"id": "i", "time": "t", "state": state, "action": "a"}
    for frame, options in every_way(tmp_path, head.split(","), CELLS):
        if isinstance(expected, str):
            with pytest.raises(InvalidInput) as caught:
                rv.Demonstrations.from_frame(frame, **names, **options)
            assert caught.value.argument in ("state", "id")
            assert expected in str(caught.value)
        else:
            found = rv.Demonstrations.from_frame(frame, **names, **options)
            assert np.argmax(found.counts, axis=1).tolist() == [int(expected.index(k) == 1) for k in range(3)]
            moves = [(s, a, to) for s, a, to in zip(expected, [0, 1], expected[1:], strict=False)]
            assert sorted(zip(*np.nonzero(found.transition_counts.toarray().reshape(3, 2, 3)), strict=True)) == sorted(
                moves
            )


def test_columns_that_differ_in_case_are_read_together(tmp_path):
    names: dict[str, Any] = {"id": "i", "time": "t", "state": ["s", "S"], "action": "a"}
    relation = duckdb.sql(
        "SELECT 1 AS i, unnest([0, 1, 2]) AS t, unnest([2, 0, 1]) AS s, 0 AS a, unnest([0, 1, 2]) AS S"
    )
    for frame, options in [*every_way(tmp_path, ["i", "t", "s", "a", "S"], CELLS), (relation, {})]:
        assert rv.Demonstrations.from_frame(frame, **names, **options).state_labels == ((0, 1), (1, 2), (2, 0))


def test_names_of_features_and_models_have_no_blanks_around_them(tmp_path):
    """A padded key would be a feature, and a feature would be called " x"."""
    (tmp_path / "padded.csv").write_text("x, at, y \n0.5,0,1\n1.5,1,2\n")
    for frame in (tmp_path / "padded.csv", pd.read_csv(tmp_path / "padded.csv")):
        assert list(rv.LinearReward.from_frame(frame, state="at").names) == ["x", "y"]
    (tmp_path / "moves.csv").write_text("at, go, to, p\n0,0,1,1\n1,0,0,1\n")
    for frame in (tmp_path / "moves.csv", pd.read_csv(tmp_path / "moves.csv")):
        names: dict[str, Any] = {"state": "at", "action": "go", "next_state": "to", "probability": "p"}
        assert rv.MDP.from_frame(frame, **names, discount=0.9).n_states == 2


def test_names_that_differ_in_case_between_files_are_refused(tmp_path):
    """DuckDB would take them for one."""
    files = csv(tmp_path, rows("1,0,0,0", "1,1,1,0"), rows("2,0,0,0", "2,1,1,0", head="i,t,S,a"))
    assert "'s' in day0.csv and 'S' in day1.csv" in str(refusal(files))
    padded = csv(tmp_path, rows("1,0,0,0", "1,1,1,0"), rows("0,2,0,0", "0,2,1,1", head=" a,i, t, s"))
    assert rv.Demonstrations.from_frame(padded, id="i", time="t", state="s", action="a").n_decisions == 4


def test_a_file_without_a_header_line_is_told(tmp_path):
    error = refusal(csv(tmp_path, "0,0,1,0\n0,1,0,1\n"))
    assert "'0' twice" in str(error)
    assert "Is the header line missing? The column name '0' looks like a value." in str(error)


@pytest.mark.parametrize("keep", [True, False])
def test_words_for_missing_values_are_missing_among_numbers_and_text_among_text(tmp_path, keep):
    numbers = csv(tmp_path, rows("1,0,2,0", "1,1,NA,0", "1,2,1,0"))
    error = refusal(numbers, keep_steps=keep)
    assert (error.argument, error.got, error.offender) == ("state", "1 missing", "row 1")
    text = csv(tmp_path, rows("1,0,DE,0", "1,1,NA,0", "1,2,FR,0"))
    found = rv.Demonstrations.from_frame(text, id="i", time="t", state="s", action="a", keep_steps=keep)
    assert found.state_labels == ("DE", "FR", "NA")


def test_numbers_may_be_padded_and_written_in_many_ways_where_numbers_are_wanted(tmp_path):
    cells = ("1, 0, 2,0,.5", "1, 1, 1,0,1E+02", "1, 2, 0,0,+3", "1, 3, 0,0,007")
    path = csv(tmp_path, rows(*cells, head="i,t,s,a,w"))
    found = rv.Demonstrations.from_frame(path, id="i", time="t", state="s", action="a", weight="w")
    assert found.state_labels is None
    np.testing.assert_array_equal(found.counts[:, 0], [10.0, 100.0, 0.5])


def test_whole_numbers_in_text_stay_whole(tmp_path):
    path = csv(tmp_path, *(rows(f"{BIG + k},0,0,0", f"{BIG + k},1,1,0") for k in range(2)))
    for keep in (True, False):
        found = rv.Demonstrations.from_frame(path, id="i", time="t", state="s", action="a", keep_steps=keep)
        assert found.ids == (BIG, BIG + 1)


def test_zoned_months_are_those_of_utc_everywhere(tmp_path):
    """Half past midnight in Berlin is the evening before in Greenwich, another month."""
    when = pd.to_datetime(["2020-01-15 12:00", "2020-02-15 12:00", "2020-04-01 00:30"]).tz_localize(BERLIN)
    frame = pd.DataFrame({"i": 1, "t": when, "s": [0, 1, 0], "a": 0})
    frame.to_csv(tmp_path / "zoned.csv", index=False)
    frame.to_parquet(tmp_path / "zoned.parquet")
    sources = (frame, pl.from_pandas(frame).lazy(), tmp_path / "zoned.csv", tmp_path / "zoned.parquet")
    for source in sources:
        for keep in (True, False):
            names: dict[str, Any] = {"id": "i", "time": "t", "state": "s", "action": "a", "period": "month"}
            found = rv.Demonstrations.from_frame(source, **names, keep_steps=keep)
            assert not found.notes
            assert found.transition_counts.sum() == 2


def test_an_order_that_only_one_column_declares_is_asked_for():
    frame = pd.DataFrame({"i": 1, "t": [0, 1], "s": ["low", "high"], "z": ["high", "low"], "a": 0})
    frame["s"] = pd.Categorical(frame["s"], ["low", "high"], ordered=True)
    error = refusal(frame, next_state="z")
    assert "'s': low < high and 'z': no order" in str(error)
    found = rv.Demonstrations.from_frame(
        frame, id="i", time="t", state="s", action="a", next_state="z", states=["low", "high"]
    )
    assert found.state_labels == ("low", "high")


def test_transitions_and_features_are_read_alike(tmp_path):
    """A model and a features file whose states are codes have the labels of the panel."""
    moves = "at,go,to,p\n007,0x1F,010,1.0\n010,0x1F,007,1\n"
    (tmp_path / "moves.csv").write_text(moves)
    model = rv.MDP.from_frame(
        tmp_path / "moves.csv", state="at", action="go", next_state="to", probability="p", discount=0.9
    )
    assert (model.state_labels, model.action_labels) == (("007", "010"), ("0x1F",))
    (tmp_path / "features.csv").write_text("at,open,x\n007,true,1e0\n010,false,2\n")
    reward = rv.LinearReward.from_frame(tmp_path / "features.csv", state="at")
    assert reward.state_labels == ("007", "010")
    assert np.asarray(reward.matrix).tolist() == [[1.0, 1.0], [0.0, 2.0]]


def test_labels_of_bins_are_read_as_their_bins(tmp_path):
    frame = pd.DataFrame({"i": 1, "t": range(4), "s": [0.5, 1.5, 2.5, 0.1], "a": 0})
    bins = rv.discretize(frame, "s", edges=[0, 1, 2, 3])
    labelled = frame.assign(s=[bins.labels[k] for k in (0, 1, 2, 0)])
    names: dict[str, Any] = {"id": "i", "time": "t", "state": bins, "action": "a"}
    expected = rv.Demonstrations.from_frame(frame, **names)
    for source in (labelled, duckdb.from_df(labelled)):
        for keep in (True, False):
            found = rv.Demonstrations.from_frame(source, **names, keep_steps=keep)
            np.testing.assert_array_equal(found.counts, expected.counts)
    with pytest.raises(InvalidInput, match="s"):
        rv.Demonstrations.from_frame(labelled.assign(s="s [7, 8)"), **names)


@pytest.mark.parametrize("pyarrow", [True, False])
@pytest.mark.parametrize("role", ["t", "s", "a", "id"])
def test_durations_in_parquet_files_are_refused_as_in_frames(role, pyarrow, tmp_path, monkeypatch):
    columns: dict[str, Any] = {"id": "id", "time": "t", "state": "s", "action": "a"}
    table = pd.DataFrame({"id": [0, 0, 0], "t": [1, 2, 3], "s": [0, 1, 0], "a": [0, 0, 1]})
    table[role] = pd.to_timedelta(table[role], "D")
    table.assign(spare=pd.to_timedelta([1, 2, 3], "D")).to_parquet(tmp_path / "panel.parquet", index=False)
    if not pyarrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    for source in (table, tmp_path / "panel.parquet"):
        with pytest.raises(
            RevealedError, match=r"(?i)expected .*(numbers|text).*; got .*(interval|timedelta|duration|days|seconds)"
        ):
            rv.Demonstrations.from_frame(source, **columns)
    plain = table.assign(**{role: [0, 0, 0] if role == "id" else [0, 1, 2]}, spare=pd.to_timedelta([1, 2, 3], "D"))
    monkeypatch.undo()
    plain.to_parquet(tmp_path / "plain.parquet", index=False)
    assert rv.Demonstrations.from_frame(tmp_path / "plain.parquet", **columns).n_decisions == 3


@pytest.mark.parametrize("pyarrow", [True, False])
@pytest.mark.parametrize("keep", [True, False])
def test_periods_of_pandas_in_parquet_files_are_refused_as_in_frames(keep, pyarrow, tmp_path, monkeypatch):
    """They are stored as numbers, which only notes in the file tell from others."""
    table = pd.DataFrame({"i": [0, 0, 0], "t": [0, 1, 2], "s": [0, 1, 0], "a": [0, 0, 1]})
    table["p"] = pd.period_range("2020-01", periods=3, freq="M")
    table.to_parquet(tmp_path / "panel.parquet", index=False)
    if not pyarrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    columns: dict[str, Any] = {"id": "i", "time": "t", "state": "s", "action": "a", "keep_steps": keep}
    assert rv.Demonstrations.from_frame(tmp_path / "panel.parquet", **columns).n_decisions == 3
    for role in ("id", "time", "state", "action", "weight", "next_state", "episode", "keep"):
        own: dict[str, Any] = columns | {role: "p"}
        with pytest.raises(InvalidInput) as caught:
            rv.Demonstrations.from_frame(tmp_path / "panel.parquet", **own)
        assert (caught.value.argument, caught.value.offender) == (role, "row 0")
    with pytest.raises(InvalidInput, match=r"column 'p'.*expected numbers"):
        rv.discretize(tmp_path / "panel.parquet", "p")


def test_periods_of_arrow_are_refused_where_some_are_missing():
    source = pa.table(
        {"i": [0, 0], "t": [0, 1], "s": [0, 1], "a": [0, 0], "z": pa.array(pd.PeriodIndex(["2020-01", None], freq="M"))}
    )
    for frame in (source, source.to_pandas(), source.to_pandas(types_mapper=pd.ArrowDtype), pl.from_arrow(source)):
        assert "got Period such as" in str(refusal(frame, next_state="z"))


@pytest.mark.parametrize("keep", [None, False])
@pytest.mark.parametrize("where", ["memory", "file"])
def test_one_cell_that_is_no_number_is_named(where, keep, tmp_path):
    frame = pd.DataFrame({"i": 0, "t": range(12), "s": range(12), "a": 0}).astype({"t": str, "s": str})

    def read(table: pd.DataFrame) -> rv.Demonstrations:
        table.to_csv(tmp_path / "panel.csv", index=False)
        source = table if where == "memory" else tmp_path / "panel.csv"
        return rv.Demonstrations.from_frame(source, id="i", time="t", state="s", action="a", keep_steps=keep)

    slip = frame.copy()
    slip.loc[7, "t"] = "seven"
    with pytest.raises(rv.errors.InvalidInput, match=r"`time`.*got 'seven' \(first at row 7\)"):
        read(slip)
    slip = frame.assign(t=range(12))
    slip.loc[7, "s"] = "seven"
    said = " ".join(read(slip).notes)
    assert "Labels of states are text, sorted as such ('10' before '2'), because 1 of 12 states are not numbers" in said
    assert "seven" in said


def test_an_unordered_category_declares_no_order_through_duckdb_either():
    duckdb = pytest.importorskip("duckdb")
    frame = pd.DataFrame({"i": [1, 1], "t": [0, 1], "s": pd.Categorical(["b", "a"]), "a": [0, 1]})
    for source in (frame, duckdb.from_df(frame)):
        labels = rv.Demonstrations.from_frame(source, id="i", time="t", state="s", action="a").state_labels
        assert labels == ("a", "b")
        assert getattr(labels, "derived", False)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("keep", [None, False])
def test_categories_of_pandas_in_another_order_are_refused_through_duckdb(ordered, keep):
    """DuckDB has the same Enum for both; pandas sorts the labels of one, and keeps the order of the other."""
    source = pd.DataFrame({"i": [1, 1, 1], "t": [0, 1, 2], "s": ["low", "high", "low"], "a": [0, 1, 0]})
    frame = source.assign(s=pd.Categorical(source["s"], ["low", "high", "none"], ordered=ordered))
    relation = duckdb.connect().from_df(frame)
    with pytest.raises(InvalidInput, match=r"DuckDB does not know if it is ordered\)\. Pass the data"):
        read(relation, "state", keep_steps=keep)
    order = ("low", "high", "none") if ordered else ("high", "low")
    assert read(frame, "state").state_labels == order
    assert read(relation, "state", keep_steps=keep, states=list(order)).state_labels == order


TWINS = pd.DataFrame(
    {
        "id": [0, 0, 0, 1, 1, 1],
        "t": [0, 1, 2] * 2,
        "s": ["high", "low", "High", "low ", "high", "low"],
        "a": list("xyxyxy"),
    }
)


def _anywhere(demos: rv.Demonstrations) -> rv.MDP:
    assert demos.state_labels is not None
    assert demos.action_labels is not None
    names = {"state_labels": list(demos.state_labels), "action_labels": list(demos.action_labels)}
    return rv.MDP(np.full((4, 2, 4), 0.25), 0.9, **names)


@pytest.mark.parametrize("route", ["pandas", "Polars", "DuckDB", "CSV", "Parquet", "counted", "trajectories", "counts"])
def test_labels_that_hardly_differ_are_noted_by_every_route(route, tmp_path):
    names: dict[str, Any] = {"id": "id", "time": "t", "state": "s", "action": "a"}
    if route == "trajectories":
        parts = [(own["s"].tolist(), own["a"].tolist()) for _, own in TWINS.groupby("id")]
        demos = rv.Demonstrations.from_trajectories(parts)
    elif route == "counts":
        demos = rv.Demonstrations.from_counts(pd.crosstab(TWINS["s"], TWINS["a"]))
    else:
        made = {
            "pandas": lambda: TWINS,
            "Polars": lambda: pl.from_pandas(TWINS),
            "DuckDB": lambda: duckdb.from_arrow(pa.Table.from_pandas(TWINS)),
            "CSV": lambda: TWINS.to_csv(tmp_path / "t.csv", index=False) or tmp_path / "t.csv",
            "Parquet": lambda: TWINS.to_parquet(tmp_path / "t.parquet") or tmp_path / "t.parquet",
        }
        made["counted"] = made["CSV"]
        demos = rv.Demonstrations.from_frame(made[route](), keep_steps=route != "counted", **names)
    note = (
        "'High' and 'high' differ only in case, and are different states (2 such pairs): make them equal if they are "
        "the same state."
    )
    assert note in demos.notes
    reward = rv.LinearReward(pd.DataFrame({"x": np.arange(4.0)}, index=list(demos.state_labels or ())))
    told = rv.CCP(reward, l2=0.1, first_step="smoothed").fit(_anywhere(demos), demos).summary()
    assert "differ only in case" in " ".join(str(told).split())


@pytest.mark.parametrize(
    ("labels", "how"),
    [
        (["a b", "a  b", "c"], "'a b' and 'a  b' differ only in blanks"),
        (["e\u0301", "\u00e9", "c"], "differ only in case, blanks or Unicode form"),
        (["A", "a ", "c"], "'A' and 'a ' differ only in case, blanks or Unicode form"),
    ],
)
def test_what_labels_differ_in_is_said(labels, how):
    frame = pd.DataFrame({"id": 0, "t": range(3), "s": labels, "a": "x"})
    demos = rv.Demonstrations.from_frame(frame, id="id", time="t", state="s", action="a", states=labels)
    assert how in demos.notes[0]
    assert "1 such pair" in demos.notes[0]


def test_a_state_without_features_names_the_label_that_hardly_differs():
    demos = rv.Demonstrations.from_frame(TWINS, id="id", time="t", state="s", action="a")
    mdp = _anywhere(demos)
    reward = rv.LinearReward.from_frame(pd.DataFrame({"s": ["high", "low"], "x": [1.0, 0.0]}), state="s")
    with pytest.raises(InvalidInput, match="'high' has features: do they mean the same") as caught:
        rv.CCP(reward, first_step="smoothed").fit(mdp, demos)
    assert caught.value.offender == "state 'High'"


def _numbered(first: int, actions: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    own = {"s": rng.integers(first, first + 3, 60), "a": rng.integers(actions, actions + 2, 60)}
    return pd.DataFrame({"id": np.repeat(range(6), 10), "t": list(range(10)) * 6, **own})


@pytest.mark.parametrize("keep", [None, False])
def test_states_numbered_from_one_are_noted_with_the_remedy(keep):
    read: Any = {"id": "id", "time": "t", "state": "s", "action": "a", "keep_steps": keep}
    note = "state 0 occurs nowhere, and all others do. If states are numbered from 1, pass states=[1, 2, 3]."
    demos = rv.Demonstrations.from_frame(_numbered(1, actions=1), **read)
    assert demos.notes == (note, note.replace("state", "action").replace("[1, 2, 3]", "[1, 2]"))
    assert rv.Demonstrations.from_frame(_numbered(1), **read, states=[1, 2, 3]).notes == ()
    assert rv.Demonstrations.from_frame(_numbered(1), **read, n_states=4).notes == ()
    assert rv.Demonstrations.from_frame(_numbered(0), **read).notes == ()
    assert rv.Demonstrations.from_frame(_numbered(2), **read).notes == ()
    for ask in (
        lambda: rv.MDP(rv.estimate_transitions(demos, smoothing=1.0), 0.9),
        lambda: rv.CCP(rv.LinearReward(np.eye(3))).fit(rv.MDP(np.full((3, 3, 3), 1 / 3), 0.9), demos),
    ):
        with pytest.raises(InvalidInput) as caught:
            ask()
        assert str(caught.value.remedy).startswith("If states are numbered from 1, pass states=[1, 2, 3].")


@pytest.mark.parametrize(
    ("scale", "n", "remedy"),
    [
        (1, 3, "Indices start at 0; if states are numbered from 1, pass states=range(1, 4)."),
        (5000, 30, "Indices start at 0. If the column is a measurement, make bins of it: rv.discretize."),
    ],
)
def test_more_states_than_there_are_names_what_they_may_be(scale, n, remedy):
    frame = _numbered(1).assign(s=lambda one: scale * one["s"])
    with pytest.raises(InvalidInput, match="for the state column") as caught:
        rv.Demonstrations.from_frame(frame, id="id", time="t", state="s", action="a", n_states=n)
    assert caught.value.remedy == remedy
    assert scale == 1 or "--bins COLUMN=20" in caught.value.told({})
