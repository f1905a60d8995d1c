"""One case is one call: a door, and the names of the values that take the place of some of its arguments.

`fit:bootstrap(reps=int.1e30)` says it all, so that what a run prints can be played again. What a seed decides is only
which cases are played, and in which order.
"""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz import pool
from fuzz.calls import CHOICES, argument_names, arguments, may_be_unread, perform
from fuzz.doors import Door, all_doors, door_named
from fuzz.things import THINGS, thing
from revealed.errors import RevealedError

# What no argument can mean, labels and names apart: a call that goes through with it has not looked at it.
NEVER = ("complex", "np.complex", "np.0d.complex", "array.complex", "array.complex2", "sparse.complex", "list.complex")
NEVER += ("dict.complex", "series.complex", "array.masked", "array.masked2", "np.masked", "list.masked", "decimal.nan")
NEVER += ("np.timedelta", "np.nat", *(name for name in pool.POOL if name.startswith("malformed")))
REAL = "@"  # and the name of a thing: it stands where another kind of object was wanted
FINE, REFUSED, ESCAPED, THEIRS = "fine", "refused", "escaped", "theirs"
VALUES = (*pool.POOL, *(REAL + name for name in THINGS))


@dataclass(frozen=True)
class Case:
    door: str
    values: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.door}({', '.join(f'{name}={value}' for name, value in self.values)})"

    @staticmethod
    def parse(text: str) -> Case:
        door, _, rest = text.strip().removesuffix(")").partition("(")
        pairs = [part.partition("=") for part in rest.split(", ") if part]
        return Case(door, tuple((name, value) for name, _, value in pairs))


@dataclass(frozen=True)
class Outcome:
    """What came of a case: `said` is the error, `where` the last line of the library that it passed through."""

    case: str
    how: str
    said: str = ""
    where: str = ""
    warned: tuple[str, ...] = ()


def value_named(name: str) -> Any:
    return thing(name.removeprefix(REAL)) if name.startswith(REAL) else pool.value_named(name)


def play(case: Case) -> Outcome:
    """Call the door; only errors of the library may come out, and those of hostile objects themselves."""
    door = door_named(case.door)
    try:
        given = arguments(door) | {name: value_named(value) for name, value in case.values}
    except LookupError as missing:
        return Outcome(str(case), ESCAPED, f"no valid call is known: {missing}")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        how, said, where = _judged(door, given)
    blind = [name for name, value in case.values if value in NEVER and not may_be_unread(door, name)]
    if how == FINE and blind and not case.door.startswith("cli"):
        how, said = ESCAPED, f"accepted: {blind[0]} was not looked at"
    warned = {f"{one.category.__name__}: {one.message}"[:120] for one in found if issubclass(one.category, Warning)}
    return Outcome(str(case), how, said, where, tuple(sorted(warned)))


def _judged(door: Door, given: dict[str, Any]) -> tuple[str, str, str]:
    try:
        perform(door, given)
    except RevealedError as refused:
        return (REFUSED, "", "") if len(str(refused)) > 20 else (ESCAPED, f"says nothing: {refused}", _line(refused))
    except pool.Unkind:
        return THEIRS, "", ""
    except BaseException as escaped:
        if _is_unknown_keyword(escaped, given):
            return REFUSED, "", ""
        if type(escaped) is TypeError and ("<lambda>" in str(escaped) or "Anything" in str(escaped)):
            return THEIRS, "", ""  # a function that takes other arguments, an object that only seems to be what it is
        if type(escaped) is ValueError and str(escaped).endswith("is not a valid Colour"):
            return THEIRS, "", ""  # an enumeration that was called as the function that it seems to be
        said = f"{type(escaped).__name__}: {_words(escaped)}"
        return ESCAPED, " ".join(said.split())[:300], _line(escaped)
    return FINE, "", ""


def _is_unknown_keyword(error: BaseException, given: dict[str, Any]) -> bool:
    """Python's own complaint about an argument that a function does not have."""
    found = re.search(r"unexpected keyword argument '(\w+)'", str(error)) if type(error) is TypeError else None
    return found is not None and found.group(1) in given


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "no words"


def _line(error: BaseException) -> str:
    """The innermost line of the library, which is where a check is missing or near it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/revealed/" in frame.filename]
    return f"{frames[-1].filename.rpartition('/revealed/')[2]}:{frames[-1].lineno}" if frames else ""


def valid_cases() -> list[Case]:
    """Every door as it is meant to be called."""
    return [Case(door.name) for door in all_doors()]


def every_case() -> Iterator[Case]:
    """Each argument of each kind of door replaced by each value: long, but complete."""
    for door in {door.key: door for door in reversed(all_doors())}.values():
        for name in argument_names(door):
            for value in VALUES:
                yield Case(door.name, ((name, value),))


def some_cases(seed: int) -> Iterator[Case]:
    """Without end: a door, one of its arguments, sometimes two, and values; doors with the same recipe share turns."""
    rng = np.random.default_rng(seed)
    keys: dict[str, list[Door]] = {}
    for door in all_doors():
        if argument_names(door):
            keys.setdefault(door.key, []).append(door)
    while True:
        for key in rng.permutation(list(keys)):
            doors = keys[str(key)]
            yield drawn_case(rng, doors[int(rng.integers(len(doors)))])


def drawn_case(rng: np.random.Generator, door: Door) -> Case:
    names = argument_names(door)
    many = 1 if len(names) == 1 or rng.random() < 0.8 else 2
    chosen = [str(name) for name in rng.choice(names, size=many, replace=False)]
    beside = [name for name in CHOICES if name in names and name not in chosen and rng.random() < 0.1]
    right = [(name, str(rng.choice(CHOICES[name]))) for name in beside]
    return Case(door.name, (*((name, _drawn_value(rng)) for name in chosen), *right))


def _drawn_value(rng: np.random.Generator) -> str:
    if rng.random() < 0.2:
        return f"{pool.RANDOM}{rng.integers(2**31)}"
    return VALUES[int(rng.integers(len(VALUES)))]
