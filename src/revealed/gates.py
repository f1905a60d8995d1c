"""What public functions ask of objects, sizes and arrays of a known shape; `checks` asks what is a number at all."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from revealed.checks import Floats, Ints, as_list, is_index, require_floats, require_whole
from revealed.errors import InvalidInput, OutOfMemory
from revealed.voices import arg, named, shown

P = ParamSpec("P")
R = TypeVar("R")
EACH = 8  # bytes of a number
ROOM = 2_200_000_000  # bytes of address space: a small fit of a network, with JAX or PyTorch, went through with 2.1 GB


def require_instance(
    name: str, value: Any, kind: type | tuple[type, ...], expected: str, remedy: str | None = None
) -> None:
    """An object of this kind; a class in its place is told apart from an object."""
    if not isinstance(value, kind):
        got = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise InvalidInput(name, expected, got, remedy=remedy)


def require_text(name: str, value: Any, expected: str = "a string") -> None:
    """A text that can be written: halves of characters (surrogates) cannot."""
    require_instance(name, value, str, expected)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(name, f"{expected} of valid characters", ascii(value)[:60]) from error


def require_function(name: str, value: Any, expected: str = "a function") -> None:
    if not callable(value):
        raise InvalidInput(name, expected, shown(value))


def require_place(name: str, value: Any, n: int, of: str = "states") -> int:
    """An index: a whole number below n."""
    if not is_index(value) or not 0 <= value < n:
        raise InvalidInput(name, f"an index in 0…{n - 1}, one of {n} {of}", shown(value))
    return int(value)


def require_places(name: str, values: Any, n: int, of: str = "states") -> Ints:
    """Indices, each below n; one alone will do."""
    expected = f"indices in 0…{n - 1} of {of}"
    index = require_whole(name, values, expected)
    if index.ndim > 1:
        raise InvalidInput(name, expected, f"shape {index.shape}")
    bad = np.flatnonzero((index < 0) | (index >= n))
    if bad.size:
        raise InvalidInput(name, expected, index.reshape(-1)[bad[0]], f"entry {bad[0]}")
    return index.reshape(-1)


def is_hashable(value: Any) -> bool:
    """Whether something can be a key: a tuple of lists says that it can, and cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def require_list(name: str, values: Any, expected: str) -> list[Any]:
    """The entries of a sequence; a text is not taken for its letters."""
    found = None if isinstance(values, str | bytes) else as_list(values)
    if found is None:
        raise InvalidInput(name, expected, shown(values))
    return found


def floats_of(
    name: str, values: Any, *shapes: tuple[int | None, ...], error: type[InvalidInput] = InvalidInput
) -> Floats:
    """An array of numbers with one of these shapes, where None is any length; such an array is passed on as it is."""
    if _is_plain(values):
        array = values
    else:
        array = require_floats(name, values, f"an array of numbers of shape {_in_words(shapes)}", error)
    if not any(_has(array.shape, shape) for shape in shapes):
        raise error(name, f"shape {_in_words(shapes)}", f"shape {array.shape}")
    return array


def _is_plain(values: Any) -> bool:
    return type(values) is np.ndarray and values.dtype == np.float64


def _has(found: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    return len(found) == len(shape) and all(n is None or n == m for n, m in zip(shape, found, strict=True))


def _in_words(shapes: Iterable[tuple[int | None, ...]]) -> str:
    each = [", ".join("any" if n is None else str(n) for n in shape) for shape in shapes]
    return " or ".join(f"({text},)" if "," not in text else f"({text})" for text in each)


def require_memory(name: str, value: Any, numbers: int, error: type[InvalidInput] = InvalidInput) -> None:
    """Refuse a size whose arrays, of about so many numbers, would not fit into memory: before they are made."""
    needed, most = EACH * int(numbers), memory_left()
    if needed > most:
        got = f"{shown(value)}, which needs at least {in_bytes(needed)}"
        raise error(name, f"a size that fits into memory ({in_bytes(most)} here)", got)


def within_memory(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """For a function whose work grows with these arguments: where memory runs out after all, the error names them.

    `require_memory` refuses before the work what certainly does not fit. Where one such function calls another, the
    outer one names its own arguments, which the caller knows.
    """

    def guard(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def guarded(*args: P.args, **options: P.kwargs) -> R:
            try:
                return function(*args, **options)
            except MemoryError as error:
                given = signature.bind(*args, **options)
                given.apply_defaults()
                raise _out_of_memory({name: given.arguments[name] for name in names}) from error

        return guarded

    return guard


def _out_of_memory(sizes: dict[str, Any]) -> OutOfMemory:
    told = [_sized(name, value) for name, value in sizes.items() if value is not None]
    remedy = "Use smaller sizes, or a machine with more memory."
    return OutOfMemory.impossible(f"memory ran out at {', '.join(told)}", remedy=remedy, argument=next(iter(sizes)))


def _sized(name: str, value: Any) -> str:
    """An argument in running text, with what tells its size."""
    if isinstance(value, int | float | str | tuple):
        return f"`{arg(name, value)}`"
    shape = getattr(value, "shape", None)
    if shape is None and hasattr(value, "__len__"):
        return f"`{named(name)}` of {len(value)} entries"
    return f"`{named(name)}`" if shape is None else f"`{named(name)}` of shape {tuple(shape)}"


def memory_left() -> int:
    """Bytes that this process may still take: what the machine has, or less where a limit is set (`ulimit -v`)."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 62
    limit = _limit()
    return most if limit is None else min(most, limit)


def require_room(library: str, module: str) -> None:
    """Refuse to load a library that aborts the process where a limit (`ulimit -v`) leaves it too little memory."""
    if module not in sys.modules:
        require_address_space(f"{library} needs", "Run `ulimit -v unlimited` first.")


def require_address_space(what: str, remedy: str) -> None:
    """Refuse `what` ("PyTorch needs") under a limit below which libraries abort the process."""
    soft = address_space()
    if soft is not None and soft < ROOM:
        told = f"memory is limited to {in_bytes(soft)}, and {what} {in_bytes(ROOM)} of address space"
        raise InvalidInput.impossible(told, remedy=remedy)


def address_space() -> int | None:
    """The limit of `ulimit -v`; None where nothing is limited."""
    try:
        import resource

        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        return None if soft == resource.RLIM_INFINITY else soft
    except ImportError:  # Windows
        return None


def _limit() -> int | None:
    """What `ulimit -v` leaves; None where nothing is limited."""
    soft = address_space()
    if soft is None:
        return None
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        return max(0, soft - used)
    except (ImportError, OSError):
        return None


def in_bytes(n: int) -> str:
    """ "3.2 GB"; with the largest unit that leaves a figure of at least 1."""
    size, unit = float(min(n, 10**300)), "bytes"
    for larger in ("kB", "MB", "GB", "TB", "PB", "EB"):
        if size < 1000.0:
            break
        size, unit = size / 1000.0, larger
    return f"{size:.3g} {unit}"
