"""What a user can call, found by looking: public names of `revealed`, methods and properties of real objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import revealed as rv
from fuzz.calls import INNER, ONLY
from fuzz.things import THINGS, thing

SHOWN = {"repr": repr, "str": str, "html": lambda x: x._repr_html_() if hasattr(x, "_repr_html_") else None}


@dataclass(frozen=True)
class Door:
    """Something to call. `name` is `rv.solve`, `rv.MDP.from_frame`, or `fit.ccp:bootstrap`, a thing and its method;
    `key` names it in calls.py: `solve`, `MDP.from_frame`, `Fit.bootstrap`."""

    name: str
    key: str
    owner: str | None = None  # the thing it is called on

    @property
    def own(self) -> Any:
        return None if self.owner is None else thing(self.owner)

    @cached_property
    def function(self) -> Callable[..., Any]:
        last = self.name.rpartition(":")[2]
        if self.owner is None:
            return _walk(rv, self.name.split(".")[1:])
        if last in SHOWN:
            return lambda: SHOWN[last](self.own)
        if callable(inspect.getattr_static(type(self.own), last)):
            return getattr(self.own, last)
        return lambda: getattr(self.own, last)

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.function).parameters)


def _walk(start: Any, names: list[str]) -> Any:
    for name in names:
        start = getattr(start, name)
    return start


@cache
def module_doors() -> tuple[Door, ...]:
    """Functions, classes and class methods that are public names of the package or of its public modules."""
    found: list[Door] = []
    for name in rv.__all__:
        value = getattr(rv, name)
        if name == "errors":
            continue  # nothing but exceptions and the words they are made of
        if inspect.ismodule(value):
            for inner in public_names(value):
                found += _named(f"rv.{name}.{inner}", f"{name}.{inner}", getattr(value, inner))
        else:
            found += _named(f"rv.{name}", name, value)
    return tuple(door for door in found if door.key not in INNER)


def public_names(module: Any) -> list[str]:
    """Those that a module says are public; else those it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [k for k, v in vars(module).items() if not k.startswith("_") and _is_of(v, module.__name__)]


def _is_of(value: Any, module: str) -> bool:
    return getattr(value, "__module__", None) == module and callable(value)


def _named(name: str, key: str, value: Any) -> Iterator[Door]:
    if not callable(value) or (inspect.isclass(value) and issubclass(value, BaseException)):
        return
    yield Door(name, key)
    if inspect.isclass(value):
        for part in public_attributes(value):
            if isinstance(inspect.getattr_static(value, part), classmethod | staticmethod):
                yield Door(f"{name}.{part}", f"{value.__name__}.{part}")


def public_attributes(kind: type) -> list[str]:
    """Methods and properties of the library's own; not the fields of a data class, which hold what they were given."""
    found = []
    for name in sorted(dir(kind)):
        if not owner_of(kind, name).__module__.startswith("revealed"):
            continue  # of a dict, a tuple or an array that knows more
        value = inspect.getattr_static(kind, name)
        if (not name.startswith("_") and (callable(value) or isinstance(value, property | cached_property))) or (
            isinstance(value, classmethod | staticmethod) and not name.startswith("_")
        ):
            found.append(name)
    return found


@cache
def thing_doors(name: str) -> tuple[Door, ...]:
    """Methods and properties of one thing, and how it is shown."""
    kind = type(thing(name))
    found = [Door(f"{name}:{way}", f"{kind.__name__}.{way}", name) for way in SHOWN]
    for part in public_attributes(kind):
        door = Door(f"{name}:{part}", key_of(kind, part), name)
        bound = isinstance(inspect.getattr_static(kind, part), classmethod | staticmethod)
        if not bound and door.key not in INNER and name in ONLY.get(door.key, (name,)):
            found.append(door)
    return tuple(found)


def key_of(kind: type, part: str) -> str:
    """`Fit.bootstrap`: the class that defines it, so that what is inherited has one recipe."""
    return f"{owner_of(kind, part).__name__}.{part}"


def owner_of(kind: type, part: str) -> type:
    return next((base for base in kind.__mro__ if part in vars(base)), kind)


def all_doors() -> list[Door]:
    from fuzz.commands import command_doors  # doors themselves

    return [*module_doors(), *command_doors(), *(door for name in THINGS for door in thing_doors(name))]


@cache
def door_named(name: str) -> Door:
    owner = name.rpartition(":")[0]
    doors = thing_doors(owner) if owner else all_doors()
    return next(door for door in doors if door.name == name)
