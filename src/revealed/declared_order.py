"""The order that a column of labels declares: an Enum, or an ordered category, in a frame, in DuckDB or in files.

A declared order is the user's own; where there is none, labels are sorted, and positions in that order mean nothing to
the user.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from revealed.checks import as_list
from revealed.errors import InvalidInput, MissingDependency
from revealed.frames import (
    as_narwhals,
    column_of,
    duckdb_module,
    is_path,
    relation_of,
    table_files,
    under_names,
)
from revealed.labels import PartOrders
from revealed.voices import either
from revealed.written import rows_in


def declared_order(frame: Any, *names: Any) -> list[Any] | None:
    """The labels of columns that declare them in an order, all the same one (Enum, ordered categories); None where no
    column does. Where only some do, or in another order, the order is ambiguous."""
    found = [_declared_order(frame, name) for name in names]
    if all(order is None for order in found):
        return None
    odd = next((k for k, order in enumerate(found) if order != found[0]), None)
    if odd is not None:
        got = " and ".join(f"{n!r}: {_in_order(o)}" for n, o in ((names[0], found[0]), (names[odd], found[odd])))
        give = either("Pass the order (states=), or give", "Give")
        remedy = f"{give} both columns the same categories."
        raise InvalidInput("frame", "state columns with the same declared order of labels", got, remedy=remedy)
    return found[0]


def declared_orders(frame: Any, *columns: Any) -> Any:
    """The same of columns that share their labels, each a name or, for labels of several parts, as many names."""
    named = [[one] if isinstance(one, str) else as_list(one) or [] for one in columns]
    if len({len(names) for names in named}) != 1:
        return None  # who reads them will say so
    found = [declared_order(frame, *names) for names in zip(*named, strict=True)]
    return PartOrders(found) if len(found) > 1 and found != [None] * len(found) else next(iter(found), None)


def _in_order(labels: Sequence[Any] | None) -> str:
    return "no order" if labels is None else " < ".join(map(str, labels[:8])) + (" < …" if len(labels) > 8 else "")


def _declared_order(frame: Any, name: Any) -> list[Any] | None:
    import narwhals as nw

    if not isinstance(name, str):
        return None
    if is_path(frame):
        return _order_in_files(frame, name)
    stored = relation_of(frame)
    if stored is not None:
        kind = dict(zip(stored.columns, stored.relation.types, strict=True)).get(column_of(name, stored.columns) or "")
        order = list(kind.children[0][1]) if kind is not None and kind.id == "enum" else []
        if order == sorted(order):  # DuckDB makes an Enum of any category, also of an unordered one
            return None
        if "PANDAS" in stored.relation.explain() and "ENUM(" not in stored.relation.sql_query().upper():
            got = f"{name!r} with {_in_order(order)}, a category of pandas (DuckDB does not know if it is ordered)"
            remedy = "Pass the data frame itself, or the order (states=, actions=)."
            raise InvalidInput("frame", "labels with a declared order, or with none", got, remedy=remedy)
        return order
    table = under_names(as_narwhals(frame), [name])
    kind = table.collect_schema().get(name)
    if isinstance(kind, nw.Enum):
        return list(kind.categories)
    if not isinstance(kind, nw.Categorical) or not hasattr(table, "get_column"):
        return None
    return _order_in_arrow(table.get_column(name).to_native())


def order_of(column: Any) -> list[Any] | None:
    """The labels of a Series or a column of Arrow that declares them in an order."""
    import narwhals as nw

    series = nw.from_native(column, series_only=True, pass_through=True)
    return _declared_order(series.alias("x").to_frame(), "x") if isinstance(series, nw.Series) else None


def _order_in_arrow(column: Any) -> list[Any] | None:
    """Of a dictionary of Arrow, in a table of its own or in pandas."""
    kind = getattr(getattr(column, "dtype", None), "pyarrow_dtype", None) or getattr(column, "type", None)
    if not getattr(kind, "ordered", False):
        return None
    import pyarrow as pa

    chunked = column if hasattr(column, "chunks") else pa.chunked_array(pa.array(column))
    chunks = chunked.unify_dictionaries().chunks
    return chunks[0].dictionary.to_pylist() if chunks else None


def _order_in_files(paths: Any, name: str) -> list[Any] | None:
    """Of a category in Parquet files, as pandas, Polars and Arrow write it there; DuckDB reads it as text."""
    files, kind = table_files(paths, "path")
    if kind != "parquet":
        return None
    orders = [_order_in_parquet(file, name) for file in files]
    if any(order != orders[0] for order in orders):
        got = f"{_in_order(orders[0])}, and another in {Path(files[orders.index(_other(orders))]).name}"
        raise InvalidInput("path", f"files in which {name!r} has one declared order of labels", got)
    return orders[0]


def _other(orders: list[Any]) -> Any:
    return next(order for order in orders if order != orders[0])


def _order_in_parquet(file: str, name: str) -> list[Any] | None:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        return _refuse_unseen_order(file, name)
    try:
        one = parquet.ParquetFile(file)
    except (ArrowException, OSError):  # whoever reads the file will say so
        return None
    schema = one.schema_arrow
    name = column_of(name, schema.names) or name
    kind = schema.field(name).type if schema.names.count(name) == 1 else None
    if getattr(kind, "ordered", False):
        return _order_in_arrow(one.read_row_group(0, columns=[name]).column(name)) if one.num_row_groups else None
    if kind is not None and _ordered_by_pandas((schema.metadata or {}).get(b"pandas", b"{}"), name):
        remedy = either("Pass the order (states=, actions=).", "Write the labels as text.")
        got = f"{name!r} in {Path(file).name}, an ordered category of {kind}, whose order Parquet does not keep"
        raise InvalidInput("path", "ordered categories of text", got, remedy=remedy)
    return None


def _refuse_unseen_order(file: str, name: str) -> None:
    """Without pyarrow it can only be told that a column had an order."""
    query = "SELECT decode(key), value FROM parquet_kv_metadata(?)"
    try:
        with duckdb_module().connect() as connection:
            notes = {key: bytes(value) for key, value in rows_in(connection.execute(query, [file]))}
    except duckdb_module().Error:
        return
    enums = b"_PL_ENUM" in b64decode(notes.get("ARROW:schema", b""))
    if enums or _ordered_by_pandas(notes.get("pandas", b"{}"), name):
        what = f"reading the order of the categories in {Path(file).name} needs pyarrow: pip install pyarrow"
        raise MissingDependency(f"{what}. Or pass {either('states= and actions=', 'the labels as text')}.")


def _ordered_by_pandas(notes: bytes, name: str) -> bool:
    """Whether pandas noted that a column was an ordered category."""
    columns = json.loads(notes).get("columns", [])
    return any(one.get("name") == name and (one.get("metadata") or {}).get("ordered") for one in columns)
