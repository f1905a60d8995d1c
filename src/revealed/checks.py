"""The questions that every function asks: is this a whole number of things, a number at all, an array of numbers?

A *number* is an int or a float of Python, a real number of NumPy, or an array of no axes that holds one (of NumPy, JAX
or PyTorch). Truth values are not numbers, `np.True_` included; neither are dates and durations, complex numbers, text,
`Decimal` and `Fraction`: float(x) says that rounding is meant.

An *array of numbers* is an array, a sparse matrix, a frame, or nested sequences of these, also where NumPy holds them
as objects, as pandas often does. An array of truth values stands for zeros and ones: masks, dummies, deterministic
policies. Truth values among numbers are a slip. Missing values (None, NA) are refused where they stand, and masked
arrays as a whole: nothing tells what a masked entry stands for.

NaN and infinity are numbers here; each function says by itself where it cannot use them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.errors import InvalidInput, InvalidOption
from revealed.sparse_input import REMEDY, Fault, as_dense, is_sparse
from revealed.voices import shown

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.intp]

TRUTH = (bool, np.bool_)
DEEPEST = 5  # axes of nested lists, and one more
LARGEST = 1e100  # numbers of which sums and squares are float64 numbers, too
INDEX = (
    "Pass table.to_pandas().set_index(...), whose index and columns are matched by label, or table.to_numpy() if "
    "positions are meant."
)
UNMASK = "Fill it first: x.filled(value), with the number that the masked entries should have."


def is_count(value: Any) -> bool:
    """A whole number, at least 1; True and 3.0 are not."""
    return is_index(value) and int(value) >= 1


def is_index(value: Any) -> bool:
    """A whole number; True, 3.0 and durations, which NumPy counts among whole numbers, are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_mapping(value: Any) -> bool:
    """A dict or its like; not a sparse matrix, one kind of which is a dict of its entries."""
    return isinstance(value, Mapping) and not is_sparse(value)


def is_seed(value: Any) -> bool:
    """What NumPy takes as a seed here: None, or a whole number >= 0."""
    return value is None or (is_index(value) and int(value) >= 0)


def is_number(value: Any) -> bool:
    """Whether it is a number in the sense above; NaN and infinity are."""
    if isinstance(value, int | float | np.integer | np.floating):
        return not isinstance(value, bool | np.timedelta64)
    array = _array_of_none(value)
    return array is not None and array.dtype.kind in "iuf"


def require_count(name: str, value: Any, least: int = 1, error: type[InvalidInput] = InvalidInput) -> None:
    if not is_count(value) or value < least:
        raise error(name, f"a whole number, at least {least}", shown(value), remedy=remedy_for(value))
    if value > LARGEST:
        raise error(name, "a whole number of at most 100 digits", "a longer one")


def require_number(name: str, value: Any) -> float:
    number = as_number(value)
    if not np.isfinite(number):
        raise InvalidInput(name, "a number", shown(value), remedy=remedy_for(value))
    return number


def require_positive(name: str, value: Any, zero: bool = False) -> float:
    """A finite number above zero, or from zero on."""
    number = as_number(value)
    if not (0.0 < number < np.inf or (zero and number == 0.0)):
        expected = "a number >= 0" if zero else "a positive number"
        raise InvalidOption(name, expected, shown(value), remedy=remedy_for(value))
    return number


def require_probability(name: str, value: Any) -> float:
    number = as_number(value)
    if not 0.0 <= number <= 1.0:
        raise InvalidInput(name, "a probability", shown(value), remedy=remedy_for(value))
    return number


def require_share(name: str, value: Any, error: type[InvalidInput] = InvalidOption) -> float:
    """A number between 0 and 1, neither of them."""
    number = as_number(value)
    if not 0.0 < number < 1.0:
        raise error(name, "a number between 0 and 1", shown(value), remedy=remedy_for(value))
    return number


def require_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidOption(name, "True or False", shown(value))


def require_option(name: str, value: Any, offered: Iterable[str]) -> None:
    """A text among those offered."""
    known = tuple(offered)
    if not isinstance(value, str) or value not in known:
        close = get_close_matches(value, known, 1) if isinstance(value, str) else []
        remedy = f"Did you mean {close[0]}?" if close else None
        raise InvalidOption(name, f"one of {', '.join(known)}", shown(value), remedy=remedy)


def pass_instead(value: Any, *names: str) -> str | None:
    """The remedy for an object that contains what was wanted, such as a fit for its reward."""
    return next((f"Pass its `.{name}`." for name in names if hasattr(value, name)), None)


def is_bare_table(value: Any) -> bool:
    """Whether it is a table whose columns have names and whose rows have none, as of Polars, Arrow or DuckDB: as an
    array it would lose the names, and its columns would count by position."""
    kind = type(value)  # of a lazy table its own `columns` would be computed
    named = hasattr(kind, "columns") and not hasattr(kind, "index")
    return named and any(hasattr(kind, name) for name in ("to_pandas", "df", "to_native", "collect"))


def kind_of_table(value: Any) -> str:
    """Whose it is, as people call it."""
    module = type(value).__module__.partition(".")[0].lstrip("_")
    return {"polars": "Polars", "pyarrow": "Arrow", "duckdb": "DuckDB"}.get(module, module)


def as_number(value: Any) -> float:
    """The value as a float; NaN where it is not a number."""
    if not is_number(value):
        return float("nan")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats
        return float("nan")


def remedy_for(value: Any) -> str | None:
    """How to convert something that only looks like a number."""
    if isinstance(value, Decimal | Fraction):
        return "Pass float(x)."
    if isinstance(value, np.ma.MaskedArray):
        return UNMASK
    if isinstance(value, np.timedelta64 | dt.timedelta):
        return 'Divide by a unit, as in x / np.timedelta64(1, "D").'
    return None


def as_floats(values: Any) -> Floats | None:
    """A float64 copy of an array, nested sequence or sparse matrix; None where it is not one of real numbers."""
    found = _read(values)
    return None if isinstance(found, Odd) else found


def require_floats(
    name: str,
    values: Any,
    expected: str,
    error: type[InvalidInput] = InvalidInput,
    remedy: str | None = None,
    where: str | None = None,
) -> Floats:
    """The same, or an error that tells what came instead, and where; `remedy` stands where nothing better is known."""
    found = _read(values)
    if isinstance(found, Odd):
        place = ", ".join(part for part in (where, found.offender) if part)
        raise error(name, expected, found.got, place or None, found.remedy or remedy)
    return found


def require_vector(
    name: str,
    values: Any,
    n: int | None,
    expected: str,
    error: type[InvalidInput] = InvalidInput,
    remedy: str | None = None,
    least: float = -np.inf,
) -> Floats:
    """(n,) finite numbers of at least `least`, any number of them where `n` is None; an error tells a wrong shape from
    the first wrong number."""
    found = require_floats(name, values, expected, error, remedy)
    if found.ndim != 1 or (found.size != n if n is not None else found.size == 0):
        long = found.ndim > 0 and (hasattr(values, "shape") or shown(values).endswith("…"))
        raise error(name, expected, f"shape {found.shape}" if long else shown(values), None, remedy)
    bad = np.flatnonzero(~(np.isfinite(found) & (found >= least)))
    if bad.size:
        raise error(name, expected, f"{found[bad[0]]:g}", f"position {bad[0]}", remedy)
    return found


def require_whole(
    name: str, values: Any, expected: str, error: type[InvalidInput] = InvalidInput, offender: str | None = None
) -> Ints:
    """A copy of an array or nested sequence of whole numbers; the numbers of an empty one may be of any kind."""
    found = require_array(name, values, expected, error, offender)
    if found.size and found.dtype.kind not in "iu":
        raise error(name, expected, f"dtype {found.dtype}, shape {found.shape}", offender)
    return found.astype(np.intp)


def require_array(
    name: str, values: Any, expected: str, error: type[InvalidInput] = InvalidInput, offender: str | None = None
) -> npt.NDArray[Any]:
    """An array of anything, as NumPy reads it, of which nothing is masked."""
    found = _as_array(values)
    if isinstance(found, Odd):
        raise error(name, expected, found.got, offender or found.offender, found.remedy)
    return found


class Odd(NamedTuple):
    """What came where numbers were wanted."""

    got: str
    offender: str | None = None
    remedy: str | None = None


def _read(values: Any) -> Floats | Odd:
    if is_sparse(values):
        return _read_sparse(values)
    raw = _as_array(values)
    return raw if isinstance(raw, Odd) else _as_float64(raw, values)


def _as_array(values: Any) -> npt.NDArray[Any] | Odd:
    """As NumPy reads it, unless that hides something."""
    if values is None or isinstance(values, str | bytes):
        return Odd("None" if values is None else f"{type(values).__name__} {shown(values)}")
    if holds_masked(values):
        got = "a masked array" if isinstance(values, np.ma.MaskedArray) else "a masked array or value"
        return Odd(got, remedy=UNMASK)
    if is_bare_table(values):
        return Odd(f"a table of {kind_of_table(values)}", remedy=INDEX)
    try:
        raw = np.asarray(values)
    except Exception as error:  # rows of different lengths, or whatever an object's own conversion raises
        return Odd(f"{type(values).__name__} ({' '.join(str(error).split())[:120]})")
    return _odd_within(values, raw) or raw


def _read_sparse(matrix: Any) -> Floats | Odd:
    try:
        return as_dense(matrix)
    except Fault as fault:
        return Odd(f"{fault.got} instead of {fault.expected}", fault.offender, REMEDY)
    except (MemoryError, ValueError) as error:
        return Odd(f"a sparse matrix of shape {matrix.shape} ({error})")


def _odd_within(values: Any, raw: npt.NDArray[Any]) -> Odd | None:
    """What NumPy hides when it makes an array of nested sequences: tables, and truth values among numbers."""
    if not isinstance(values, list | tuple):
        return None
    if any(map(is_bare_table, {type(x): x for x in values}.values())):
        return Odd("a list of tables", remedy=INDEX)
    if raw.dtype.kind in "iuf":
        leaves: list[Any] = list(values)
        for _ in range(raw.ndim - 1):
            leaves = list(chain.from_iterable(x if isinstance(x, list | tuple) else (x,) for x in leaves))
        at = next((i for i, x in enumerate(leaves) if _is_truth(x)), None)
        if at is not None:
            return Odd(f"{shown(leaves[at])} among numbers", f"position {at}", "Write 1 or 0 instead.")
    return None


def holds_masked(values: Any) -> bool:
    """Whether this is a masked array or value, or nested lists that hold one: NumPy would read NaN, with a warning."""
    level = [values]
    for _ in range(DEEPEST):
        if any(issubclass(kind, np.ma.MaskedArray) for kind in set(map(type, level))):
            return True
        inner = {id(x): x for x in level if isinstance(x, list | tuple)}  # a list may hold itself
        level = list(chain.from_iterable(inner.values()))
    return False


def _is_truth(value: Any) -> bool:
    """A truth value, or an array of them."""
    return isinstance(value, TRUTH) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def _as_float64(raw: npt.NDArray[Any], values: Any) -> Floats | Odd:
    if raw.dtype.kind in "iuf" or (raw.dtype.kind == "b" and raw.ndim > 0):
        return np.array(raw, dtype=np.float64)
    if raw.dtype.kind == "b":
        return Odd(shown(values))
    if raw.dtype.kind != "O":
        return Odd(f"{_KINDS.get(raw.dtype.kind, 'values')} (dtype {raw.dtype})", remedy=_REMEDIES.get(raw.dtype.kind))
    flat: list[Any] = raw.reshape(-1).tolist()
    if raw.ndim == 0:
        return Odd(type(values).__name__, remedy=remedy_for(values))
    if not all(isinstance(x, TRUTH) for x in flat):
        at = next((i for i, x in enumerate(flat) if not is_number(x) or (is_index(x) and _beyond_floats(x))), None)
        if at is not None:
            where = tuple(int(i) for i in np.unravel_index(at, raw.shape))
            return Odd(shown(flat[at]), f"position {where if raw.ndim > 1 else where[0]}", remedy_for(flat[at]))
    return np.array([float(x) for x in flat], dtype=np.float64).reshape(raw.shape)


_KINDS = {
    "c": "complex numbers",
    "M": "dates",
    "m": "durations",
    "U": "text",
    "S": "bytes",
    "V": "records",
    "T": "text",
}
_REMEDIES = {
    "c": "Use x.real if the real part is meant.",
    "m": 'Divide by a unit, as in x / np.timedelta64(1, "D").',
    "M": 'Subtract a reference date and divide by a unit, as in (x - x.min()) / np.timedelta64(1, "D").',
}


def _array_of_none(value: Any) -> npt.NDArray[Any] | None:
    """An array of no axes, unless it is masked; None for anything else."""
    if not hasattr(value, "__array__") or isinstance(value, np.ma.MaskedArray) or getattr(value, "ndim", 1) != 0:
        return None
    try:
        array = np.asarray(value)
    except Exception:  # whatever an object's own conversion raises
        return None
    return array if array.ndim == 0 else None


def _beyond_floats(value: int) -> bool:
    try:
        float(value)
    except OverflowError:
        return True
    return False


def as_list(values: Any) -> list[Any] | None:
    """The values of a sequence, the letters of a text; None where it is neither, as a sparse matrix is not."""
    if hasattr(values, "toarray"):
        return None
    try:
        return list(values)
    except TypeError:
        return None


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array or nested sequence; () where it has none, as of a ragged one or one with masked values."""
    try:
        return tuple(getattr(value, "shape", None) or (() if holds_masked(value) else np.shape(value)))
    except (ValueError, TypeError):
        return ()


def frozen(array: Any) -> Any:
    """The same array, dense or CSR, which can no longer be written to; anything else stays as it is."""
    if isinstance(array, sp.csr_array):
        array.sum_duplicates()  # which SciPy would else do in place when it is first needed
    for part in (array.data, array.indices, array.indptr) if isinstance(array, sp.csr_array) else (array,):
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return array
