"""Values by name that take the place of an argument, hostile and plausible ones; each call makes them anew."""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import functools
import io
import math
import os
import pathlib
import stat
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

Maker = Callable[[], Any]


class Unkind(Exception):
    """What objects raise that are asked for something and will not tell: theirs, not the library's."""


class Colour(enum.Enum):
    RED = "red"


class Unmade:
    """Nothing can be made of it: where a function was wanted, calling it fails."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise Unkind("no instance")


class NoLength:
    def __len__(self) -> int:
        raise Unkind("no length")

    def __getitem__(self, key: Any) -> Any:
        raise Unkind("no item")


class NoArray:
    def __array__(self, *args: Any, **options: Any) -> Any:
        raise Unkind("no array")


class NoEquality:
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise Unkind("no equality")


class NoWords:
    def __repr__(self) -> str:
        raise Unkind("no words")


class NoIteration:
    def __iter__(self) -> Iterator[Any]:
        raise Unkind("no iteration")


class NoIndex:
    def __index__(self) -> int:
        raise Unkind("no index")

    def __float__(self) -> float:
        raise Unkind("no number")


class NoTruth:
    def __bool__(self) -> bool:
        raise Unkind("no truth")


class NoHash:
    def __hash__(self) -> int:
        raise Unkind("no hash")


class NoPath:
    def __fspath__(self) -> str:
        raise Unkind("no path")


class NoAttributes:
    def __getattr__(self, name: str) -> Any:
        raise Unkind("no attributes")


class Text(str):
    """A text of another class."""


class Number(float):
    """A number of another class."""


class Pair(NamedTuple):
    states: Any = (0, 1)
    actions: Any = (0, 1)


class Anything:
    """Has every attribute, and each is another of its kind."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


def _fails(*args: Any, **options: Any) -> Any:
    raise Unkind("no answer")


def _breaks_off() -> Iterator[int]:
    yield 1
    raise Unkind("no more")


def _deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(3000):
        found = [found]
    return found


def _within_itself() -> list[Any]:
    found: list[Any] = [1]
    found.append(found)
    return found


def _sparse(kind: str) -> Any:
    return getattr(sp, kind)(np.eye(4))


def _malformed(kind: str = "csr_array", /, **changes: Any) -> Any:
    """A sparse array whose parts contradict each other."""
    made = _sparse(kind)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _malformed_rows() -> Any:
    made = sp.lil_array(np.eye(4))
    made.rows[0] = [99]
    return made


def _malformed_keys() -> Any:
    made: Any = sp.dok_array(np.eye(4))
    made._dict[(99, 99)] = 1.0
    return made


def _unsorted() -> Any:
    """A CSR array that is valid: columns in any order, and one entry in two parts."""
    return sp.csr_array((np.array([0.5, 0.5, 1.0, 0.25, 0.75]), [1, 0, 2, 3, 3], [0, 2, 3, 5, 5]), shape=(4, 4))


def _polars(lazy: bool = False, **columns: Any) -> Any:
    import polars

    made = polars.DataFrame(columns or {"id": [1, 1], "time": [0, 1], "state": [0, 1], "action": [0, 1]})
    return made.lazy() if lazy else made


def _arrow(kind: str = "table") -> Any:
    import pyarrow

    made = pyarrow.table({"id": [1, 1], "time": [0, 1], "state": [0, None], "action": [0, 1]})
    return made if kind == "table" else made.column("state") if kind == "column" else made.to_batches()[0]


def _relation() -> Any:
    import duckdb

    return duckdb.sql("select 1 as id, 2 as time, 'a' as state, null as action")


def _jax(values: Any) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(values)


def _frame(**changes: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": [1, 1], "time": [0, 1], "state": [0, 1], "action": [0, 1]} | changes)


def _no_rights() -> Any:
    os.makedirs("locked", exist_ok=True)
    os.chmod("locked", stat.S_IRUSR)
    return os.path.join("locked", "file")


def _folder() -> str:
    os.makedirs("folder.zip", exist_ok=True)
    return "folder.zip"


def _file(content: bytes, name: str) -> str:
    with open(name, "wb") as file:
        file.write(content)
    return name


def _ragged() -> Any:
    made = np.empty(2, dtype=object)
    made[0], made[1] = [1], [1, 2]
    return made


LARGE = tuple(f"int.1e{k}" for k in range(4, 9))  # sizes that somebody may mean: work for them may take long
NUMBERS: dict[str, Maker] = {
    **{f"int.{n}": (lambda n=n: n) for n in (0, 1, 2, 3, 5, 7, -1, -5, 100, 1000)},
    **{name: (lambda name=name: int(float(name.removeprefix("int.")))) for name in LARGE},
    "int.1e9": lambda: 10**9,
    "int.1e12": lambda: 10**12,
    "int.2^31": lambda: 2**31,
    "int.2^62": lambda: 2**62,
    "int.2^63": lambda: 2**63,
    "int.1e30": lambda: 10**30,
    "int.-1e30": lambda: -(10**30),
    "int.1e400": lambda: 10**400,
    "int.1e5000": lambda: 10**5000,  # which Python does not even write
    "int.2^53": lambda: 2**53 + 1,
    **{f"float.{x}": (lambda x=x: x) for x in (0.0, 0.5, 1.0, 2.0, 3.7, -1.5, 1e-300, 1e10, 1e308)},
    "float.nan": lambda: math.nan,
    "float.inf": lambda: math.inf,
    "float.-inf": lambda: -math.inf,
    "bool.true": lambda: True,
    "bool.false": lambda: False,
    "np.true": lambda: np.True_,
    "np.int8": lambda: np.int8(3),
    "np.uint64": lambda: np.uint64(2**63),
    "np.float32": lambda: np.float32(0.5),
    "np.nan": lambda: np.float64("nan"),
    "np.datetime": lambda: np.datetime64("2020-01-01"),
    "np.timedelta": lambda: np.timedelta64(3, "D"),
    "np.nat": lambda: np.datetime64("NaT"),
    "np.0d": lambda: np.array(2),
    "np.0d.true": lambda: np.array(True),
    "np.0d.object": lambda: np.array(None),
    "np.0d.complex": lambda: np.array(1j),
    "np.0d.text": lambda: np.array("a"),
    "np.complex": lambda: np.complex64(1j),
    "np.text": lambda: np.str_("a"),
    "np.bytes": lambda: np.bytes_(b"a"),
    "np.void": lambda: np.void(b"ab"),
    "np.longdouble": lambda: np.longdouble("1e4000"),
    "np.half": lambda: np.float16("inf"),
    "np.masked": lambda: np.ma.masked,
    "jax": lambda: _jax(0.5),
    "complex": lambda: 1 + 2j,
    "decimal": lambda: decimal.Decimal("0.5"),
    "decimal.nan": lambda: decimal.Decimal("sNaN"),  # which cannot even be compared
    "decimal.big": lambda: decimal.Decimal("1e999999"),
    "fraction": lambda: fractions.Fraction(1, 2),
    "fraction.big": lambda: fractions.Fraction(10**400, 3),
    "number.own": lambda: Number(0.5),
    "date": lambda: datetime.date(2020, 1, 1),
    "date.zoned": lambda: datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    "time": lambda: datetime.time(1, 2),
    "timedelta": lambda: datetime.timedelta(days=1),
    "pd.timedelta": lambda: pd.Timedelta("1D"),
    "pd.period": lambda: pd.Period("2020-01"),
    "pd.interval": lambda: pd.Interval(0, 1),
    "pd.na": lambda: pd.NA,
    "pd.nat": lambda: pd.NaT,
    "pd.timestamp": lambda: pd.Timestamp("2020-01-01"),
}
# as options of commands are typed, among them columns and files of `commands.py`
TYPED = ("shops=2", "green=x0.5", "shops,green", "station", "-1", "--force", "month", "1,2,3", "miles=edges:0,5,10")
TYPED += ("a0,a1", "npl", "bootstrap", "own", "cli/trips.csv", "cli/stations.csv", "cli/moves.csv", "cli/pairs.csv")
TYPED += ("cli/fit/config.toml", "cli/goals", "cli/links.csv", "cli/roads.csv", "cli/roads")
# as options are chosen; `calls.py` says where
TYPED += ("delta", "robust", "cluster", "frequency", "logit", "kernel", "quantile", "opg", "hessian", "ccp", "turns")
TYPED += ("lbfgs", "newton", "adam", "pair", "trajectory", "day", "value", "q", "krylov", "direct", "zero", "error")
TYPED += ("infeasible", "occupancy", "tabular", "neural", "linear")
TEXTS: dict[str, Maker] = {
    "none": lambda: None,
    "ellipsis": lambda: ...,
    "not implemented": lambda: NotImplemented,
    "text.empty": lambda: "",
    "text.a": lambda: "a",
    "text.auto": lambda: "auto",
    "text.state": lambda: "state",
    "text.number": lambda: "0.5",
    "text.1e400": lambda: "1e400",
    "text.digits": lambda: "9" * 5000,  # which int() refuses
    "text.hex": lambda: "0x1F",
    "text.nan": lambda: "nan",
    "text.space": lambda: " ",
    "text.own": lambda: Text("a"),
    "text.date": lambda: "2020-01-01",
    "text.pattern": lambda: "*.csv",
    "text.regex": lambda: "[a(*",
    "text.long": lambda: "x" * 300,
    "text.huge": lambda: "x" * 100_000,
    "text.nul": lambda: "a\0b",
    "text.unicode": lambda: "Straße 東京 \U0001f600",
    "text.surrogate": lambda: "\ud800",
    "text.newlines": lambda: "a\nb\r\n\tc",
    "text.braces": lambda: "{0} %s $x_1$ \\frac{",
    "text.query": lambda: "a' or 1=1; --",
    "text.url": lambda: "tcp://127.0.0.1:1",
    "text.home": lambda: "~nobody/x",
    **{f"typed.{text}": (lambda text=text: text) for text in TYPED},
    "bytes": lambda: b"abc",
    "bytes.nul": lambda: b"\0\xff",
    "bytearray": lambda: bytearray(b"ab"),
    "path": lambda: pathlib.Path("missing.csv"),
    "path.long": lambda: pathlib.Path("x" * 300),
    "path.nul": lambda: pathlib.Path("a\0b"),
    "path.deep": lambda: "missing/folder/file.zip",
    "path.through": lambda: os.path.join(_file(b"x", "plain.txt"), "below.zip"),
    "path.folder": _folder,
    "path.here": lambda: ".",
    "path.root": lambda: "/",
    "path.folders": lambda: "x/" * 3000 + "file.zip",
    "path.null": lambda: os.devnull,
    "path.locked": _no_rights,
    "path.empty": lambda: _file(b"", "empty.csv"),
    "path.noise": lambda: _file(bytes(range(256)) * 4, "noise.csv"),
    "path.zip": lambda: _file(b"PK\x03\x04" + b"\0" * 40, "noise.zip"),
    "path.parquet": lambda: _file(b"PAR1" + b"\0" * 40 + b"PAR1", "noise.parquet"),
    "path.json": lambda: _file(b'{"address": 3}', "noise.json"),
    "path.toml": lambda: _file(b'panel = 3\n[id]\nx = "y"\n', "noise.toml"),
}
SEQUENCES: dict[str, Maker] = {
    "list.empty": list,
    "list.zeros": lambda: [0, 0],
    "list.floats": lambda: [0.5, 0.5],
    "list.deep": _deep,
    "list.complex": lambda: [1j, 1.0, 1.0, 1.0],
    "list.dates": lambda: [datetime.date(2020, 1, 1), np.datetime64("NaT")],
    "list.decimals": lambda: [decimal.Decimal("sNaN"), decimal.Decimal(1)],
    "list.masked": lambda: [np.ma.masked, 1.0, 1.0, 1.0],
    "list.truth": lambda: [np.True_, 1.0, 0.0, 1.0],
    "list.alike": lambda: [1, "1", 2, 3],
    "list.lost": lambda: [pd.NA, "a", "b", "c"],
    "list.digits": lambda: [10**5000, 1],
    "list.dicts": lambda: [{}, {"a": []}],
    "list.arrays": lambda: [np.eye(4), np.ones(4)],
    "list.frames": lambda: [_frame(), _frame()],
    "list.texts": lambda: ["a", "b"],
    "list.same": lambda: ["a", "a"],
    "list.mixed": lambda: [1, "a", None],
    "list.nan": lambda: [math.nan, 1.0],
    "list.none": lambda: [None],
    "list.ragged": lambda: [[1], [1, 2]],
    "list.nested": lambda: [[[[[1]]]]],
    "list.self": _within_itself,
    "list.huge": lambda: [10**30, 1],
    "list.negative": lambda: [-1, -2],
    "list.pairs": lambda: [([0, 1], [0, 1])],
    "list.lists": lambda: [[0, 1], [1, 0]],
    "list.long": lambda: list(range(2000)),
    "tuple.empty": tuple,
    "tuple.floats": lambda: (0.5, 1.5),
    "tuple.texts": lambda: ("state", "action"),
    "tuple.lists": lambda: ([1], {}),
    "tuple.named": Pair,
    "array.array": lambda: array.array("d", [0.5, 0.5]),
    "deque": lambda: collections.deque([0.5, 0.5]),
    "range": lambda: range(4),
    "set": lambda: {1, 2},
    "set.texts": lambda: frozenset({"a", "b"}),
    "dict.empty": dict,
    "dict.numbers": lambda: {0: 0.5, 1: 0.5},
    "dict.texts": lambda: {"a": 1.0, "b": -1.0},
    "dict.pairs": lambda: {("a", "b"): 3.0},
    "dict.huge": lambda: {10**30: 1.0},
    "dict.none": lambda: {None: None},
    "dict.complex": lambda: {0: 1j, "a": 1j},
    "dict.nan": lambda: {0: math.nan, math.nan: 1.0},
    "dict.decimals": lambda: {0: decimal.Decimal("sNaN"), "a": decimal.Decimal(1)},
    "dict.alike": lambda: {1: 0.5, "1": 0.5},
    "dict.frozen": lambda: types.MappingProxyType({"a": 1.0}),
    "dict.view": lambda: {"a": 1.0}.items(),
    "generator.fails": _breaks_off,
    "generator": lambda: (i for i in range(3)),
    "iterator": lambda: iter(["a", "b"]),
    "map": lambda: map(int, "12"),
    "memoryview": lambda: memoryview(b"ab"),
}
ARRAYS: dict[str, Maker] = {
    "array.empty": lambda: np.zeros(0),
    "array.empty2": lambda: np.zeros((0, 3)),
    "array.ints": lambda: np.arange(4),
    "array.zeros": lambda: np.zeros(4),
    "array.ones2": lambda: np.ones((4, 2)),
    "array.square": lambda: np.eye(4),
    "array.3d": lambda: np.ones((4, 2, 4)),
    "array.4d": lambda: np.ones((1, 2, 2, 2)),
    "array.nan": lambda: np.full((4, 2), np.nan),
    "array.inf": lambda: np.full(4, np.inf),
    "array.big": lambda: np.full((4, 2), 1e308),
    "array.big1": lambda: np.full(4, 1e308),
    "array.huge": lambda: np.full((4, 2), 2**62),
    "array.uint64": lambda: np.full(4, 2**64 - 1, dtype=np.uint64),
    "array.negative": lambda: np.full((4, 2), -1.0),
    "array.probabilities": lambda: np.full((4, 2), 0.5),
    "array.nan1": lambda: np.array([0.5, np.nan, 0.5, 0.0]),
    "array.digits": lambda: np.array([10**400, 1], dtype=object),
    "array.complex2": lambda: np.ones((4, 2), dtype=complex),
    "array.record": lambda: np.rec.array([(1.0, 2)], dtype=[("x", float), ("y", int)]),
    "array.jax": lambda: _jax(np.ones((4, 2))),
    "array.bools": lambda: np.ones(4, dtype=bool),
    "array.bools2": lambda: np.zeros((4, 2), dtype=bool),
    "array.float16": lambda: np.ones((4, 2), dtype=np.float16),
    "array.longdouble": lambda: np.ones(4, dtype=np.longdouble),
    "array.bigendian": lambda: np.ones(4, dtype=">f8"),
    "array.fortran": lambda: np.asfortranarray(np.ones((4, 2))),
    "array.readonly": lambda: np.broadcast_to(1.0, (4, 2)),
    "array.texts": lambda: np.array(["a", "b"]),
    "array.bytes": lambda: np.array([b"a", b"b"]),
    "array.objects": lambda: np.array([1, "a", None], dtype=object),
    "array.ragged": _ragged,
    "array.complex": lambda: np.ones(4, dtype=complex),
    "array.masked": lambda: np.ma.masked_array(np.ones(4), mask=np.arange(4) == 1),
    "array.masked2": lambda: np.ma.masked_array(np.ones((4, 2)), mask=np.eye(4, 2, dtype=bool)),
    "array.datetime": lambda: np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    "array.timedelta": lambda: np.array([1, 2], dtype="timedelta64[s]"),
    "array.void": lambda: np.zeros(2, dtype=[("x", float), ("y", int)]),
    "array.decimals": lambda: np.array([decimal.Decimal(1), decimal.Decimal(2)], dtype=object),
    "array.matrix": lambda: np.matrix(np.eye(4)),
    **{f"sparse.{kind}": (lambda kind=kind: _sparse(f"{kind}_array")) for kind in ("csr", "csc", "coo", "lil", "dok")},
    **{f"sparse.{kind}": (lambda kind=kind: _sparse(f"{kind}_array")) for kind in ("dia", "bsr")},
    "sparse.matrix": lambda: _sparse("csr_matrix"),
    "sparse.empty": lambda: sp.csr_array((0, 4)),
    "sparse.1d": lambda: sp.coo_array(np.ones(4)),
    "sparse.complex": lambda: sp.csr_array(np.eye(4) * 1j),
    "sparse.list": lambda: [sp.csr_array(np.eye(4)), sp.csr_array(np.eye(4))],
    "sparse.wide": lambda: sp.csr_array((4, 2**40)),
    "sparse.tall": lambda: sp.coo_array((2**40, 4)),
    "sparse.unsorted": _unsorted,
    "sparse.nan": lambda: sp.csr_array(np.eye(4) * np.nan),
    "sparse.big": lambda: sp.csr_array(np.eye(4) * 1e308),
    "sparse.bools": lambda: sp.csr_array(np.eye(4, dtype=bool)),
    "sparse.pairs": lambda: sp.csr_array(np.ones((8, 4)) / 4),
    "malformed.range": lambda: _malformed(indices=np.array([0, 1, 2, 99], dtype=np.int32)),
    "malformed.negative": lambda: _malformed(indices=np.array([0, 1, 2, -7], dtype=np.int32)),
    "malformed.indptr": lambda: _malformed(indptr=np.array([0, 1], dtype=np.int32)),
    "malformed.falling": lambda: _malformed(indptr=np.array([0, 3, 1, 2, 4], dtype=np.int32)),
    "malformed.short": lambda: _malformed(data=np.ones(2)),
    "malformed.far": lambda: _malformed(indices=np.array([0, 1, 2, 2**40], dtype=np.int64)),
    "malformed.floats": lambda: _malformed(indices=np.array([0.0, 1.0, 2.0, 3.0])),
    "malformed.none": lambda: _malformed(data=None),
    "malformed.table": lambda: _malformed(data=np.ones((4, 2))),
    "malformed.dates": lambda: _malformed(data=np.zeros(4, dtype="datetime64[D]")),
    "malformed.masked": lambda: _malformed(data=np.ma.masked_array(np.ones(4), mask=np.arange(4) == 1)),
    "malformed.objects": lambda: _malformed(data=np.array([1, "a", None, []], dtype=object)),
    "malformed.shape": lambda: _malformed(_shape=(9, 9)),
    "malformed.csc": lambda: _malformed("csc_array", indices=np.array([0, 1, 2, 99], dtype=np.int32)),
    "malformed.bsr": lambda: _malformed("bsr_array", indices=np.array([0, 1, 2, 99], dtype=np.int32)),
    "malformed.coo": lambda: _malformed("coo_array", coords=(np.arange(4), np.array([0, 1, 2, 99]))),
    "malformed.dia": lambda: _malformed("dia_array", offsets=np.array([0, 1], dtype=np.int32)),
    "malformed.lil": _malformed_rows,
    "malformed.dok": _malformed_keys,
    "malformed.list": lambda: [_sparse("csr_array"), _malformed(indptr=np.array([0, 1], dtype=np.int32))],
}
TABLES: dict[str, Maker] = {
    "frame": lambda: pd.DataFrame({"id": [1, 1], "time": [0, 1], "state": [0, 1], "action": [0, 1]}),
    "frame.empty": pd.DataFrame,
    "frame.rows": lambda: pd.DataFrame({"state": [], "action": []}),
    "frame.texts": lambda: pd.DataFrame({"state": ["a", "b"], "action": ["x", "y"], "probability": [1.0, 0.5]}),
    "frame.twice": lambda: pd.DataFrame([[1, 2]], columns=["state", "state"]),
    "frame.multi": lambda: pd.DataFrame(np.eye(2), index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])),
    "frame.objects": lambda: pd.DataFrame({"state": [1, "a"], "action": [None, [1]]}),
    "frame.nan": lambda: pd.DataFrame({"state": [np.nan, 1.0], "action": [0, 1]}),
    "frame.complex": lambda: _frame(state=[1j, 2j]),
    "frame.dates": lambda: _frame(state=pd.to_datetime(["2020-01-01", "NaT"])),
    "frame.durations": lambda: _frame(time=pd.to_timedelta([1, 2], unit="D")),
    "frame.decimals": lambda: _frame(time=[decimal.Decimal(1), decimal.Decimal("NaN")]),
    "frame.lists": lambda: _frame(state=[[1], [2]], id=[{}, {}]),
    "frame.digits": lambda: _frame(id=[10**400, 1]),
    "frame.category": lambda: _frame(state=pd.Categorical(["a", "b"], ["b", "a", "c"], ordered=True)),
    "frame.masked": lambda: _frame(state=pd.array([1, None], dtype="Int64")),
    "frame.sparse": lambda: _frame(state=pd.arrays.SparseArray([0, 1])),
    "frame.intervals": lambda: _frame(state=pd.interval_range(0, 2)),
    "frame.columns": lambda: pd.DataFrame(np.ones((4, 2)), columns=pd.MultiIndex.from_product([["a"], [1, 2]])),
    "frame.numbered": lambda: pd.DataFrame(np.ones((4, 2)), index=[0, 1, 2, 3], columns=[10**30, None]),
    "frame.table": lambda: pd.DataFrame(np.ones((4, 2)), index=list("dcba"), columns=["stay", "go"]),
    "series": lambda: pd.Series([0.5, 0.5]),
    "series.labelled": lambda: pd.Series([0.25] * 4, index=list("dcba")),
    "series.complex": lambda: pd.Series([1j] * 4, index=list("abcd")),
    "series.dates": lambda: pd.Series(pd.to_datetime(["2020-01-01", "NaT"])),
    "series.lost": lambda: pd.Series([0.5, 0.5], index=["a", None]),
    "series.arrow": lambda: pd.Series([0.5, None], dtype="double[pyarrow]"),
    "series.named": lambda: pd.Series([0.5, 0.5], index=["a", "b"], name="x"),
    "series.twice": lambda: pd.Series([0.5, 0.5], index=["a", "a"]),
    "series.empty": lambda: pd.Series([], dtype=float),
    "series.category": lambda: pd.Series(["a", "b"], dtype="category"),
    "series.na": lambda: pd.Series([1, None], dtype="Int64"),
    "index": lambda: pd.Index(["a", "b"]),
    "index.multi": lambda: pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]),
    "polars": _polars,
    "polars.lazy": lambda: _polars(lazy=True),
    "polars.lists": lambda: _polars(state=[[1], [2]], action=[{"x": 1}, None]),
    "polars.empty": lambda: _polars(state=[], action=[]),
    "polars.series": lambda: _polars().get_column("state"),
    "arrow": _arrow,
    "arrow.column": lambda: _arrow("column"),
    "arrow.batch": lambda: _arrow("batch"),
    "duckdb": _relation,
}
OBJECTS: dict[str, Maker] = {
    "object": object,
    "class": lambda: Unmade,
    "class.own": lambda: Anything,
    "module": lambda: np,
    "lambda": lambda: lambda x: x,
    "lambda.none": lambda: lambda: None,
    "lambda.many": lambda: lambda *args, **options: "a",
    "function.fails": lambda: _fails,
    "enum": lambda: Colour.RED,
    "enum.class": lambda: Colour,
    "file": lambda: io.StringIO("a,b\n1,2\n"),
    "file.bytes": lambda: io.BytesIO(b"PK"),
    "rng": lambda: np.random.default_rng(0),
    "error": lambda: ValueError("x"),
    "anything": Anything,
    "no length": NoLength,
    "no array": NoArray,
    "no equality": NoEquality,
    "no words": NoWords,
    "no iteration": NoIteration,
    "no index": NoIndex,
    "no truth": NoTruth,
    "no hash": NoHash,
    "no path": NoPath,
    "no attributes": NoAttributes,
    "lock": threading.Lock,
    "property": lambda: property(),
    "partial": lambda: functools.partial(_fails, 1),
}
POOL: dict[str, Maker] = {**NUMBERS, **TEXTS, **SEQUENCES, **ARRAYS, **TABLES, **OBJECTS}
RANDOM = "random."  # and a number: drawn by it


def value_named(name: str) -> Any:
    """The value of that name: one of the pool, or `random.` and the seed that it is drawn with."""
    if name.startswith(RANDOM):
        return drawn(np.random.default_rng(int(name.removeprefix(RANDOM))))
    return POOL[name]()


def drawn(rng: np.random.Generator, depth: int = 0) -> Any:
    """A number, a text, an array of any shape, or a list or dict of such."""
    kind = rng.integers(7 if depth < 3 else 4)
    if kind == 0:
        return float(rng.choice([0.0, 1.0, -1.0, 0.5, np.nan, np.inf, 1e-8, 1e8, rng.normal()]))
    if kind == 1:
        return int(rng.integers(-3, 12))
    if kind == 2:
        return "".join(chr(int(c)) for c in rng.integers(1, 0x2FF, size=rng.integers(4)))
    if kind == 3:
        return drawn_array(rng)
    parts = [drawn(rng, depth + 1) for _ in range(int(rng.integers(5)))]
    if kind == 4:
        return parts
    if kind == 5:
        return tuple(parts)
    return {str(drawn(rng, 4)): part for part in parts}


def drawn_array(rng: np.random.Generator) -> Any:
    shape = tuple(int(n) for n in rng.integers(0, 6, size=rng.integers(4)))
    values = rng.choice([0.0, 1.0, 0.5, -1.0, 2.0, 3.0, np.nan, np.inf, 1e300], size=shape)
    if rng.random() < 0.6:
        values = np.abs(np.nan_to_num(values, nan=1.0, posinf=1.0)) % 7.0
    kind = str(rng.choice(["float64", "float32", "int64", "bool", "object", "str"]))
    with np.errstate(invalid="ignore"):
        return values.astype(kind)
