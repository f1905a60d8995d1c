"""Whether a value that comes from a file is of the kind that its field declares: text where text belongs, arrays of
whole numbers where indices do. What a class says of its fields is said once, in its annotations; they are read here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from revealed.checks import is_index
from revealed.saving import KNOWN

_KINDS = {np.floating: "f", np.integer: "iu", np.bool_: "b"}  # of arrays


def require_kinds(cls: type, fields: Mapping[str, Any]) -> None:
    """Every field of an object of this class is of the kind that the class declares."""
    for name, value in fields.items():
        hint = _hint(cls, name)
        if not is_of_kind(value, hint):
            raise TypeError(f"{cls.__name__}.{name} has the wrong type: {type(value).__name__}")


def is_of_kind(value: Any, hint: Any) -> bool:
    """Whether a value is what a type hint says; a hint that says nothing that could be checked allows everything."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is None or hint is NoneType:
        return value is None
    if origin in (Union, UnionType):
        return any(is_of_kind(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and _all_of(value, inner)
    if origin is list:
        return isinstance(value, list) and all(is_of_kind(one, inner[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            is_of_kind(key, inner[0]) and is_of_kind(one, inner[1]) for key, one in value.items()
        )
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _has_kind(value, inner)
    return _is_a(value, hint)


def _all_of(values: tuple[Any, ...], inner: tuple[Any, ...]) -> bool:
    if inner[1:] == (...,):
        return all(is_of_kind(one, inner[0]) for one in values)
    return len(values) == len(inner) and all(map(is_of_kind, values, inner))


def _has_kind(array: Any, inner: tuple[Any, ...]) -> bool:
    scalar: Any = next(iter(get_args(inner[1])), Any)  # of np.dtype[...]
    kinds = [kinds for base, kinds in _KINDS.items() if isinstance(scalar, type) and issubclass(scalar, base)]
    return not kinds or array.dtype.kind in kinds[0]


def _is_a(value: Any, hint: Any) -> bool:
    if hint is Any or not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return True
    if hint is int:
        return is_index(value)
    if hint is float:
        return isinstance(value, float | np.floating) or is_index(value)
    return isinstance(value, hint)


def _hint(cls: type, name: str) -> Any:
    """What a class declares of a field, its bases included; Any where it declares nothing or another package's types
    that are not loaded."""
    for kind in cls.__mro__:
        written = vars(kind).get("__annotations__", {}).get(name)
        if written is not None:
            return _read(written, vars(sys.modules[kind.__module__]))
    return Any


def _read(written: Any, around: dict[str, Any]) -> Any:
    if not isinstance(written, str):
        return written
    try:
        return eval(written, around, _Ours())
    except (NameError, TypeError):
        return Any


class _Ours(dict[str, Any]):
    """The classes of saved fits, which a module may import for its annotations only."""

    def __missing__(self, name: str) -> Any:
        if name not in KNOWN:
            raise KeyError(name)
        return getattr(import_module(KNOWN[name]), name)
