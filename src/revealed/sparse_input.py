"""Sparse matrices as users give them, of any SciPy format, checked once before compiled code follows their indices.

SciPy trusts the inner arrays of a matrix: an index beyond the shape, or an `indptr` that is too short, reads or writes
memory that belongs to nobody. Here every format becomes coordinates that are known to lie within the shape, or a CSR
array whose inner arrays are known to fit together; what comes out is a copy, sorted, with duplicates added up. The
work is proportional to what is stored.
"""

from __future__ import annotations

from itertools import chain
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.errors import InvalidInput

REMEDY = "Rebuild it from coordinates: scipy.sparse.coo_array((data, (row, column)), shape=shape)."
_MOST = np.iinfo(np.int32).max
_FITTING = "a sparse matrix that fits into memory"


class Fault(Exception):
    """The inner arrays of a sparse matrix do not fit together."""

    def __init__(self, expected: str, got: str, offender: str | None = None) -> None:
        self.expected, self.got, self.offender = expected, got, offender
        super().__init__(f"expected {expected}; got {got}")


class Entries(NamedTuple):
    """Stored numbers at coordinates, one array per axis, that lie within the shape; a place may occur twice."""

    data: npt.NDArray[Any]
    coords: tuple[npt.NDArray[np.integer[Any]], ...]
    shape: Any  # as long as `coords`


def is_sparse(x: Any) -> bool:
    """`scipy.sparse.issparse` for arguments of any type."""
    return bool(sp.issparse(x))


def as_float_csr(
    name: str, matrix: Any, error: type[InvalidInput] = InvalidInput, where: str | None = None
) -> sp.csr_array:
    """A float64 copy in CSR: sorted, duplicates added up, stored zeros kept. `matrix` has two axes; `where` tells which
    one of several it is."""
    try:
        return _canonical(matrix)
    except Fault as fault:
        raise _refusal(name, fault, error, where) from None


def as_float_entries(name: str, matrix: Any, error: type[InvalidInput] = InvalidInput) -> Entries:
    """The entries of a sparse array of any number of axes, as float64."""
    try:
        found = entries_of(matrix)
    except Fault as fault:
        raise _refusal(name, fault, error) from None
    return found._replace(data=found.data.astype(np.float64))


def csr_from_parts(data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> sp.csr_array:
    """A CSR array of inner arrays that come from elsewhere, such as a file; a `Fault` where they do not fit together.

    SciPy's own check looks at the last of `indptr` first, so that one that wrapped round in a narrow type passes."""
    parts = SimpleNamespace(data=data, indices=indices, indptr=indptr)
    columns, ends, values = _compressed(parts, *shape)
    if not (columns.dtype == ends.dtype and ends.dtype in (np.int32, np.int64)):
        kind = np.int32 if max(columns.size, *shape) <= _MOST else np.int64
        columns, ends = columns.astype(kind), ends.astype(kind)
    return sp.csr_array((values, columns, ends), shape=shape)


def require_structure(name: str, matrix: sp.csr_array, error: type[InvalidInput] = InvalidInput) -> None:
    """The inner arrays of a CSR array fit together: SciPy would read beyond them, or write there."""
    try:
        _compressed(matrix, *matrix.shape)
    except Fault as fault:
        raise _refusal(name, fault, error) from fault


def as_dense(matrix: Any) -> npt.NDArray[np.float64]:
    """A sparse array as a dense one of float64; a `Fault` where its inner arrays do not fit together."""
    data, coords, shape = entries_of(matrix)
    return sp.coo_array((_wide(data), coords), shape=shape).toarray().astype(np.float64)


def entries_of(matrix: Any) -> Entries:
    """The entries of any SciPy format, in its own type of real numbers."""
    kind = getattr(matrix, "format", None)
    read = _READERS.get(str(kind))
    if read is None:
        raise Fault("a SciPy sparse matrix", f"format {kind!r}")
    data, coords, shape = read(matrix)
    for axis, (index, size) in enumerate(zip(coords, shape, strict=True)):
        _require_within(f"axis {axis}", index, size)
    return Entries(_real(data), coords, shape)


def _refusal(name: str, fault: Fault, error: type[InvalidInput], where: str | None = None) -> InvalidInput:
    remedy = None if fault.expected in (_NUMBERS, _FITTING) else REMEDY
    place = ", ".join(part for part in (where, fault.offender) if part)
    return error(name, fault.expected, fault.got, place or None, remedy)


def _canonical(matrix: Any) -> sp.csr_array:
    if getattr(matrix, "format", None) == "csr" and len(matrix.shape) == 2:
        indices, indptr, data = _compressed(matrix, *matrix.shape)
        kind = np.int32 if max(indices.size, *matrix.shape) <= _MOST else np.int64
        parts = _wide(data).copy(), indices.astype(kind), indptr.astype(kind)
        found = sp.csr_array(parts, shape=matrix.shape)
    else:
        data, coords, shape = entries_of(matrix)
        try:
            found = sp.csr_array(sp.coo_array((_wide(data), coords), shape=shape))
        except MemoryError:  # a number for every row
            raise Fault(_FITTING, f"shape {shape}") from None
    found.sum_duplicates()
    return found.astype(np.float64, copy=False)


def _wide(data: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers that can be added up; truth values stay, since True and True make True."""
    return data if data.dtype == bool else data.astype(np.float64, copy=False)


# -- the formats: each gives data and coordinates whose lengths agree -------------------------------------------------


def _compressed(matrix: Any, major: int, minor: int, ndim: int = 1) -> tuple[Any, Any, Any]:
    """`indices`, `indptr` and `data` of rows (columns, rows of blocks), checked, without what no row points to."""
    indptr, indices = _whole("indptr", matrix.indptr), _whole("indices", matrix.indices)
    if indptr.size != major + 1:
        raise Fault(f"{major + 1} numbers in `indptr`", f"{indptr.size}")
    back = np.flatnonzero(indptr[1:] < indptr[:-1])
    if indptr[0] != 0 or back.size:
        where = f"position {int(back[0]) + 1}" if indptr[0] == 0 else "position 0"
        raise Fault("an `indptr` that starts at 0 and never decreases", _some(indptr), where)
    stored = int(indptr[-1])
    data = _array("data", matrix.data, ndim)
    if stored > indices.size or stored > len(data):
        got = f"`indptr` that ends at {stored}, {indices.size} indices and {len(data)} numbers"
        raise Fault("as many indices and values as `indptr` says", got)
    _require_within("`indices`", indices[:stored], minor)
    return indices[:stored], indptr, _real(data[:stored])


def _from_compressed(matrix: Any) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    shape = tuple(matrix.shape)
    if len(shape) == 1:
        indices, _, data = _compressed(matrix, 1, shape[0])
        return data, (indices,), shape
    by_row = matrix.format == "csr"
    major, minor = shape if by_row else shape[::-1]
    indices, indptr, data = _compressed(matrix, major, minor)
    owner = np.repeat(np.arange(major), np.diff(indptr))
    return data, (owner, indices) if by_row else (indices, owner), shape


def _from_blocks(matrix: Any) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    data, (M, N) = _array("data", matrix.data, 3), matrix.shape
    R, C = data.shape[1:]
    if min(R, C) == 0 or M % R or N % C:
        raise Fault(f"blocks that fit into shape {(M, N)}", f"blocks of shape {(R, C)}")
    indices, indptr, data = _compressed(matrix, M // R, N // C, 3)
    owner = np.repeat(np.arange(M // R), np.diff(indptr))
    row = np.broadcast_to((owner * R)[:, None, None] + np.arange(R)[:, None], data.shape)
    column = np.broadcast_to((indices * C)[:, None, None] + np.arange(C), data.shape)
    return data.reshape(-1), (row.reshape(-1), column.reshape(-1)), (M, N)


def _from_coordinates(matrix: Any) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    shape, data = tuple(matrix.shape), _array("data", matrix.data)
    coords = tuple(_whole("coords", index) for index in matrix.coords)
    if len(coords) != len(shape) or any(index.size != data.size for index in coords):
        got = f"{data.size} numbers and {', '.join(str(index.size) for index in coords)} coordinates"
        raise Fault("one coordinate per number and axis", got)
    return data, coords, shape


def _from_diagonals(matrix: Any) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    data, offsets, (M, N) = _array("data", matrix.data, 2), _whole("offsets", matrix.offsets), matrix.shape
    if offsets.size != len(data) or np.unique(offsets).size != offsets.size:
        raise Fault("one row per diagonal, and distinct offsets", f"{len(data)} rows, {_some(offsets)}")
    parts = []
    for offset, values in zip(offsets.tolist(), data, strict=True):
        column = np.arange(max(offset, 0), min(N, M + offset, values.size))
        parts.append((values[column], column - offset, column))
    empty = data[:0].reshape(-1), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    values, row, column = (np.concatenate(part) for part in zip(empty, *parts, strict=True))
    return values, (row, column), (M, N)


def _from_lists(matrix: Any) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    rows, data, (M, N) = list(matrix.rows), list(matrix.data), matrix.shape
    if len(rows) != M or len(data) != M:
        raise Fault(f"{M} lists of columns and of numbers", f"{len(rows)} and {len(data)}")
    apart = next((i for i in range(M) if len(rows[i]) != len(data[i])), None)
    if apart is not None:
        got = f"{len(rows[apart])} columns and {len(data[apart])} numbers"
        raise Fault("one column per number", got, f"row {apart}")
    owner = np.repeat(np.arange(M), [len(row) for row in rows])
    column = _whole("rows", list(chain.from_iterable(rows)))
    return _cast(list(chain.from_iterable(data)), matrix.dtype), (owner, column), (M, N)


def _from_keys(matrix: Any) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    shape = tuple(matrix.shape)
    keys = [key if isinstance(key, tuple) else (key,) for key in matrix.keys()]  # noqa: SIM118
    odd = next((key for key in keys if len(key) != len(shape)), None)
    if odd is not None:
        raise Fault(f"keys of {len(shape)} coordinates", repr(odd))
    coords = tuple(_whole("keys", [key[axis] for key in keys]) for axis in range(len(shape)))
    return _cast(list(matrix.values()), matrix.dtype), coords, shape


_READERS = {
    "csr": _from_compressed,
    "csc": _from_compressed,
    "bsr": _from_blocks,
    "coo": _from_coordinates,
    "dia": _from_diagonals,
    "lil": _from_lists,
    "dok": _from_keys,
}


# -- what an inner array must be --------------------------------------------------------------------------------------

_NUMBERS = "a sparse matrix of real numbers"


def _array(what: str, values: Any, ndim: int = 1) -> npt.NDArray[Any]:
    if not isinstance(values, np.ndarray) or values.ndim != ndim or isinstance(values, np.ma.MaskedArray):
        got = f"shape {values.shape}" if type(values) is np.ndarray else type(values).__name__
        raise Fault(f"`{what}` that is a plain array with {ndim} ax{'is' if ndim == 1 else 'es'}", got)
    return values


def _whole(what: str, values: Any) -> npt.NDArray[np.integer[Any]]:
    """Indices: whole numbers along one axis."""
    if isinstance(values, list):
        values = np.array(values) if values else np.zeros(0, dtype=np.intp)
    array = _array(what, values)
    if array.dtype.kind not in "iu":
        raise Fault(f"whole numbers in `{what}`", f"dtype {array.dtype}")
    return array


def _require_within(what: str, index: npt.NDArray[Any], size: int) -> None:
    if index.size and (index.min() < 0 or index.max() >= size):
        at = int(np.flatnonzero((index < 0) | (index >= size))[0])
        raise Fault(f"indices in 0…{size - 1} ({what})", f"{index[at]}", f"stored number {at}")


def _real(data: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if data.dtype.kind not in "biuf":
        raise Fault(_NUMBERS, f"dtype {data.dtype}")
    return data


def _cast(values: list[Any], dtype: Any) -> npt.NDArray[Any]:
    """Numbers that stand in lists, in the type that the matrix says it has."""
    try:
        return np.array(values, dtype=dtype).reshape(len(values))
    except (TypeError, ValueError, OverflowError) as error:
        raise Fault(_NUMBERS, str(error)) from error


def _some(values: npt.NDArray[Any]) -> str:
    shown = ", ".join(map(str, values[:6].tolist()))
    return f"[{shown}{', …' if values.size > 6 else ''}]"
