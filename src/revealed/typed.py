"""What is typed at a command line: labels, bins, lists with commas in them, and tables that are named there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from revealed.checks import Ints, as_number
from revealed.errors import InvalidInput, InvalidOption
from revealed.frames import read_table
from revealed.labels import find, spell
from revealed.mdp import MDP
from revealed.voices import arg, shown

if TYPE_CHECKING:
    from revealed.bins import Bins


def as_labels(texts: Sequence[str], known: Sequence[Any]) -> list[Any]:
    """Labels as they are typed: those of several columns have commas between their parts, others between labels."""
    if len(known) == 0:
        return list(texts)
    spelled = {spell(label) for label in known}
    if not isinstance(known[0], tuple):
        return parted(texts, spelled, all_known=True)
    parts = [tuple(part.strip() for part in text.strip("() ").split(",")) for text in texts]
    return [text if text in spelled else both for text, both in zip(texts, parts, strict=True)]


def find_typed(argument: str, texts: Sequence[str], known: Sequence[Any]) -> Ints:
    """The place of each label that is typed among those known. What is wrong is told as it was typed, with no position:
    options may be given several times, and hold several labels each time."""
    wanted, parts = as_labels(texts, known), len(known[0]) if isinstance(known[0], tuple) else 1
    odd = next((k for k, label in enumerate(wanted) if isinstance(label, tuple) and len(label) != parts), None)
    if odd is not None:
        expected = f"labels of {parts} parts with commas between them, such as {','.join(map(spell, known[0]))}"
        raise InvalidInput(argument, expected, shown(texts[odd]))
    return find(argument, wanted, known, None)


def parted(texts: Sequence[str], known: Any, all_known: bool = False) -> list[str]:
    """Texts with those taken apart at their commas that are not a known name by themselves; with `all_known` only where
    every part is one."""
    out: list[str] = []
    for text in texts:
        parts = [part.strip() for part in text.split(",")]
        whole = text in known or not all(parts) or (all_known and not all(part in known for part in parts))
        out += [text] if whole else parts
    return out


def parted_paths(paths: Sequence[str]) -> list[str]:
    """Paths with commas between them, where there is no file of that name but one of every part."""
    out: list[str] = []
    for path in paths:
        parts = path.split(",")
        out += parts if not os.path.exists(path) and all(map(os.path.exists, parts)) else [path]
    return out


def parted_bins(texts: Sequence[str], columns: Sequence[str]) -> list[str]:
    """`miles=20,age=5` as two; commas between edges stay."""
    out: list[str] = []
    for text in texts:
        out += [text] if text.rpartition("=")[0] in columns else re.split(r",(?=[^,=]+=)", text)
    return out


def parse_bins(text: str) -> tuple[str, dict[str, Any]]:
    """`miles=90`, `miles=quantile:20`, `miles=edges:0,5,10` as a column and options of `rv.discretize`."""
    name, equals, how = text.rpartition("=")
    way, colon, rest = how.rpartition(":")
    try:
        if equals and way == "edges":
            return name.strip(), {"edges": [_number(part) for part in rest.split(",")]}
        if equals and (not colon or way in ("uniform", "quantile")):
            return name.strip(), {"bins": int(rest), "how": way or "uniform"}
    except ValueError:
        pass
    raise InvalidOption("bins", "COLUMN=90, COLUMN=quantile:20 or COLUMN=edges:0,5,10", shown(text))


def written_bins(bins: Bins) -> tuple[str, ...]:
    """The way back: every column by its edges, to the last digit, so that other data fall into the same bins."""
    each = zip(bins.columns, bins.edges, strict=True)
    return tuple(f"{name}=edges:{','.join(map(repr, edges.tolist()))}" for name, edges in each)


@contextmanager
def bins_as_typed(texts: Sequence[str]) -> Iterator[None]:
    """Complaints about bins name the option as it was given, not the column or edges that the library sees."""
    names: dict[str, str] = {}
    for text in texts:
        column = text.rpartition("=")[0].strip()
        given = arg("bins", [text if len(text) <= SHORT else f"{column}=…"])
        names |= dict.fromkeys((f"column {column!r}", f"edges of {column!r}"), given)
    try:
        yield
    except InvalidInput as error:
        raise error.renamed(names) from error


SHORT = 60  # characters of an option in a message


def _number(text: str) -> float:
    number = as_number(float(text))
    return int(number) if number.is_integer() else number


def one_or_list(names: Sequence[str]) -> Any:
    return names[0] if len(names) == 1 else list(names)


def texts_of(value: Any) -> list[str]:
    """The texts of an option that may have one, several or none."""
    many = value if isinstance(value, list | tuple) else [value]
    return [one for one in many if isinstance(one, str)]


def typed_terminal(texts: Sequence[str], state: Sequence[str], transitions: Any) -> list[Any]:
    """The states that end, in a table of transitions."""
    if len(state) > 1 or not any("," in text for text in texts):
        return as_labels(texts, [state] if len(state) > 1 else [])
    table = read_table(transitions, "transitions")
    return as_labels(texts, [label for name in table.names for label in table.raw_labels("transitions", name).tolist()])


def landing_columns(given: Sequence[str], state: Sequence[str], known: Sequence[str]) -> Any:
    """The columns that say where a decision led: those named, else `next_` and the state's name where `known` has them,
    as in panels of simulated trips; None where nothing tells."""
    usual = next_names(state)
    found = given or (usual if all(name in known for name in usual) else ())
    return one_or_list(found) if found else None


def next_names(state: Sequence[str]) -> tuple[str, ...]:
    """What the next state is called, unless one says otherwise."""
    return tuple(f"next_{name}" for name in state)


# arguments of `from_frame` that are the table itself, or columns of it that are called as the panel's
OF_A_FRAME = ("frame", "path", "state", "action", "next_state")


def read_model(table: Any, *, state: Any, next_state: Sequence[str], **others: Any) -> MDP:
    """A table of transitions. Its columns are called as the panel's; the next state's too, else `next_` and the
    state's name. `others` are those of `MDP.from_frame`."""
    names = read_table(table, "transitions").names
    own = [state] if isinstance(state, str) else list(state)
    for candidate in (list(next_state), list(next_names(own)), ["next_state"]):
        if len(candidate) == len(own) and all(name in names for name in candidate):
            try:
                return MDP.from_frame(table, state=state, next_state=one_or_list(candidate), **others)
            except InvalidInput as error:  # its columns are called as the panel's, whose they are not
                raise error.renamed(dict.fromkeys(OF_A_FRAME, "transitions")) from error
    expected = f"a column next_{own[0]} with the state that a decision leads to"
    remedy = f"Rename the column that holds this state to {', '.join(next_names(own))}."
    raise InvalidOption("transitions", expected, ", ".join(names), remedy=remedy)
