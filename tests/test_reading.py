"""The same table gives the same labels, order, counts and refusals, whichever way it comes: routes × kinds × roles."""

import datetime as dt
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import revealed as rv
from revealed.errors import RevealedError

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
    "lists": pa.array([[0], [1], [2], [3]]),
    "durations": pa.array([dt.timedelta(days=k) for k in range(4)], pa.duration("us")),
}
# A CSV file has no types: cells that look like numbers or dates are such where numbers or times are wanted, zoned times
# are labels as they are written, and there is no list that is not text.
WITHOUT_TYPES = {
    "codes": ("time", "weight"),
    "exponents": ("time", "weight"),
    "Berlin": ("id", "state", "action", "next_state"),
    "ordered": ("state", "action", "next_state"),
    "NUL": ("id", "state", "action", "next_state"),
    "lists": ("id", "state", "action", "next_state"),
    "durations": ("id", "state", "action", "next_state"),
}
ROLES = ("id", "time", "months", "state", "action", "weight", "next_state")


def table(values: pa.Array, role: str) -> pa.Table:
    """Two agents, five decisions each; the column under test has one of the roles."""
    column = {
        "id": [1, 1, 1, 1, 1, 3, 3, 3, 3, 3],
        "time": [0, 1, 2, 3, None, 3, 2, 1, None, 0],
        "weight": [0, 1, 2, 3, 3, 2, 1, 0, 1, 2],
        "next_state": [3, 0, 2, 1, 1, 0, 2, 1, 3, 0],
    }.get("time" if role == "months" else role, [1, 3, 0, 2, 1, 0, 0, 2, 1, 3])
    rows = [k for k, place in enumerate(column) if place is not None]
    parts = {
        "i": pa.array([(1, 2)[k // 5] for k in rows]),
        "t": pa.array([(k % 5) + (k % 5 > 3) for k in rows]),  # the last decision of each after a gap
        "s": pa.array([(2, 0, 1, 1, 0, 1, 2, 0, 0, 1)[k] for k in rows]),
        "a": pa.array([("go", "stay")[k * k % 3 % 2] for k in rows]),
    }
    own = {"id": "i", "time": "t", "months": "t", "state": "s", "action": "a", "next_state": "s"}.get(role, "w")
    parts[own] = values.take(pa.array([column[k] for k in rows]))
    if role == "next_state":  # known of some decisions that no row follows
        after = [0, 2, 1, None, 3, 2, 1, 3, None, None]
        parts["z"] = values.take(pa.array(after))
    return pa.table(parts)


def read(frame: Any, role: str, **options: Any) -> rv.Demonstrations:
    more: dict[str, Any] = {"weight": "w"} if role == "weight" else {"next_state": "z"} if role == "next_state" else {}
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


IN_MEMORY = {
    "pandas": pandas_of,
    "pandas, pyarrow": lambda source: source.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": polars_of,
    "polars, lazy": lambda source: polars_of(source).lazy(),
    "arrow": lambda source: source,
}


def typed_outcomes(source: pa.Table, role: str, folder: Any) -> dict[str, tuple[Any, ...]]:
    found = {name: outcome(make(source), role) for name, make in IN_MEMORY.items()}
    found["polars, counted"] = outcome(polars_of(source).lazy(), role, keep_steps=False)
    for keep in (True, False):
        found[f"duckdb {keep}"] = outcome(duckdb_of(source), role, keep_steps=keep)
        for parts in (1, 2):
            try:
                path = files_of(source, "parquet", folder, parts)
            except pa.ArrowNotImplementedError:
                continue
            found[f"parquet {parts} {keep}"] = outcome(path, role, keep_steps=keep)
    return found


def csv_outcomes(source: pa.Table, role: str, folder: Any) -> dict[str, tuple[Any, ...]]:
    found = {}
    for parts in (1, 2):
        path = files_of(source, "csv", folder, parts)
        found |= {f"csv {parts} {keep}": outcome(path, role, keep_steps=keep) for keep in (True, False)}
    return found


def without_engine(found: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """A lazy engine counts by joins: irregular times are refused there, with the way to read them."""
    return {name: got for name, got in found.items() if not (name == "polars, counted" and got == ("engine",))}


@pytest.mark.parametrize("kind", KINDS)
def test_every_route_reads_the_same(kind, tmp_path):
    for role in ROLES:
        (tmp_path / role).mkdir()
        source = table(KINDS[kind], role)
        found = without_engine(typed_outcomes(source, role, tmp_path / role))
        written = csv_outcomes(source, role, tmp_path / role)
        assert len({repr(got) for got in written.values()}) == 1, (role, written)
        if role not in WITHOUT_TYPES.get(kind, ()):
            found |= written
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
    after = read(table(KINDS["big nulls"], "next_state").slice(0, 4), "next_state", states=[BIG, BIG + 1, BIG + 2])
    assert after.state_labels == (BIG, BIG + 1, BIG + 2)
