"""Labels of states and actions: kept as they came, matched by their text, named in errors with what was near.

The order of labels is *declared* if the user gave it, and *derived* if it was sorted from the data. Positions (rows of
an array, say) mean something in a declared order only: `require_declared` is where that is decided, for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any
from unicodedata import normalize

import numpy as np

from revealed.checks import Ints, as_list
from revealed.errors import InvalidInput, InvalidOption
from revealed.voices import shown

SHOWN = 8
FEW = 4  # in a title
MOST_LISTED = 25  # names of options
DEEPEST = 8  # tuples within tuples: a label that contains itself has no end
EXACT = 2**53  # up to here a float tells whole numbers apart
MOST_INDEX = 10**8  # states or actions that are numbered, not named: beyond, it is a name such as a postcode


class Order(tuple[Any, ...]):
    """Labels that know where their order comes from.

    `derived` says that it was sorted from data, so that the user never saw it; labels that are 0, 1, 2, … (or False and
    True) in this order are positions themselves, and so is a single one. `columns` are the names of the columns that
    the parts of labels stood in, where they have several.
    """

    derived: bool
    columns: tuple[str, ...]

    def __new__(cls, labels: Iterable[Any], derived: bool = False, columns: Sequence[str] = ()) -> Order:
        made = super().__new__(cls, labels)
        made.derived = derived and not are_positions(made)
        made.columns = tuple(columns)
        return made


class PartOrders(tuple[Any, ...]):
    """Of labels of several parts the declared order of each part; None where a part has none, and is sorted."""

    def sort(self, labels: Sequence[Any]) -> Ints:
        """The places of the labels in their order."""
        parts = list(zip(*labels, strict=True))
        orders = (sorted_labels(part) if own is None else own for part, own in zip(parts, self, strict=True))
        return np.lexsort([locate(part, order) for part, order in zip(parts, orders, strict=True)][::-1])


def are_positions(labels: Sequence[Any]) -> bool:
    """Whether labels are their own places: 0, 1, 2, … in this order, False and True, or a single one."""
    n = len(labels)
    if n == 1 or ([spell(label) for label in labels[:2]] == ["False", "True"] and n == 2):
        return True
    return all(spell(label) == str(k) for k, label in enumerate(labels))


def is_derived(labels: Sequence[Any] | None) -> bool:
    """Whether the order of these labels was not declared."""
    return bool(getattr(labels, "derived", False))


def columns_of(labels: Sequence[Any] | None) -> tuple[str, ...]:
    """The columns that the parts of labels stood in, where that is known."""
    return labels.columns if isinstance(labels, Order) else ()


def index_columns(index: Any) -> tuple[str, ...]:
    """The names of the levels of an index of pandas, where it has several and all of them have names."""
    names: tuple[Any, ...] = tuple(getattr(index, "names", None) or ()) if hasattr(index, "levels") else ()
    return names if len(names) > 1 and all(isinstance(name, str) for name in names) else ()


def in_parts_of(labels: Any, others: Any) -> Any:
    """Labels with their parts in the order of those of `others`, where the columns of both are known and are the same
    but for their order; else as they are."""
    own, wanted = columns_of(labels), columns_of(others)
    if not same_columns(own, wanted):
        return labels
    nested = any(_is_nested(label) for label in others[:1])
    order = [own.index(name) for name in wanted]
    flat: list[Any] = [(label[0], *label[1]) if _is_nested(label) else label for label in labels]
    turned = (tuple(label[k] for k in order) for label in flat)
    return Order(((one[0], one[1:]) for one in turned) if nested else turned, is_derived(labels), wanted)


def same_columns(own: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether columns are the same, but in another order."""
    return own != wanted and len(set(own)) > 1 and sorted(own) == sorted(wanted)


def parts_for(argument: str, labels: Any, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """For each of the columns of these names the parts of the labels that it holds: its own, where the names are those
    of the labels' columns, in whatever order; else the parts in their order, under new names."""
    parts, own = list(zip(*labels, strict=True)), columns_of(labels)
    if same_columns(own, tuple(names)):
        return [parts[own.index(name)] for name in names]
    moved = [name for k, name in enumerate(names) if name in own and own.index(name) != k]
    if moved:
        expected = f"the columns {in_series(own)} in any order, or other names for them"
        raise InvalidInput(argument, expected, in_series(list(names)), repr(moved[0]))
    return parts


def _is_nested(label: Any) -> bool:
    """Whether this is a label of a horizon, whose state has a label of several parts."""
    return isinstance(label, tuple) and len(label) == 2 and isinstance(label[1], tuple)


def with_columns(labels: Any, columns: Sequence[Any]) -> Any:
    """The labels, knowing the columns that their parts stood in."""
    if labels is None or len(columns) < 2:
        return labels
    return Order(labels, is_derived(labels), [str(name) for name in columns])


def require_declared(
    argument: str,
    role: str,
    labels: Sequence[Any] | None,
    got: str = "positions",
    error: type[InvalidInput] = InvalidInput,
    where: str = "the data",
    instead: str = "pass a Series or DataFrame indexed by label",
) -> None:
    """Positions refer to a declared order: if states or actions (`role`) were sorted from data, values without labels
    cannot be matched with them, and are refused."""
    if labels is None or not is_derived(labels):
        return
    raise error.conflict(
        argument,
        f"requires {role} labels: {got} cannot be matched with {role}s whose order was not declared; {where} were "
        f"sorted ({_numbered(labels)})",
        remedy=f"Declare the order when you read the data, {role}s=[{_quoted(labels)}] in the order that you mean, or "
        f"{instead}.",
    )


def require_ids(
    argument: str,
    ids: Sequence[Any],
    error: type[InvalidInput] = InvalidInput,
    remedy: str = "Pass a dict or Series by id; pd.Series(values, index=demos.ids) if values are in this order.",
) -> None:
    """The same of agents: values without ids cannot be matched with ids that were sorted."""
    if is_derived(ids):
        rule = f"requires ids: the order of the agents comes from sorting them ({_numbered(ids)})"
        raise error.conflict(argument, rule, remedy=remedy)


def _numbered(labels: Sequence[Any]) -> str:
    return ", ".join(f"{k} = {spell(label)}" for k, label in enumerate(labels[:SHOWN])) + _more(labels)


def require_label(
    argument: str, role: str, labels: Sequence[Any] | None, index: int, error: type[InvalidInput] = InvalidInput
) -> None:
    """A number that stands for a state or action by its place needs a declared order; its label does not."""
    if labels is not None:
        instead = f"pass the label itself, such as {plain(labels[index])!r}"
        require_declared(argument, role, labels, f"position {index}", error, instead=instead)


def label_it(role: str) -> str:
    """The remedy for a model without labels."""
    return f"give the model labels, {role}_labels=[...] in its order"


def _more(labels: Sequence[Any]) -> str:
    return ", …" if len(labels) > SHOWN else ""


def _quoted(labels: Sequence[Any]) -> str:
    return ", ".join(repr(plain(label)) for label in labels[:FEW]) + (", …" if len(labels) > FEW else "")


def holds_numbers(labels: Sequence[Any]) -> bool:
    """Whether some label is a number, or text that reads as one: whole numbers are then labels, never positions. 1 and
    0 are no positions either where True comes before False."""
    return any(_is_number(plain(label)) for label in labels) or [spell(label) for label in labels] == ["True", "False"]


def _is_number(label: Any) -> bool:
    if isinstance(label, bool):
        return False
    if not isinstance(label, str):
        return isinstance(label, int | float)
    try:
        return label[:1] in "+-.0123456789" and bool(label) and float(label) == float(label)
    except ValueError:
        return False


def plain(label: Any, depth: int = 0) -> Any:
    """A label as Python's own value; those of several columns are tuples."""
    if isinstance(label, tuple | list) and depth < DEEPEST:
        return tuple(plain(part, depth + 1) for part in label)
    return label.item() if isinstance(label, np.generic) and not isinstance(label, np.datetime64) else label


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, NaT or pandas' NA, which is neither the same as itself nor another."""
    try:
        return value is None or not bool(value == value)
    except (TypeError, ValueError, ArithmeticError):  # NA, an array, a signalling NaN of Decimal
        return True


def holds_missing(label: Any) -> bool:
    """Whether a label, or a part of it, is missing: it would match nothing, not even itself."""
    return any(map(holds_missing, label)) if isinstance(label, tuple) else is_missing(label)


def sequence_of(labels: Any) -> list[Any] | None:
    """Labels as they were given, the letters of a text; None where that is no order: a set, a dict, a table."""
    unordered = isinstance(labels, bytes | set | frozenset | Mapping)
    return None if unordered or getattr(labels, "ndim", 1) != 1 else as_list(labels)


def distinct_labels(given: Any) -> list[Any] | None:
    """The same, at least one; None also where some are missing or cannot be told apart."""
    listed = sequence_of(given)
    if not listed or any(map(holds_missing, listed)) or len(set(map(spell, listed))) < len(listed):
        return None
    return listed


def spell(label: Any) -> str:
    """The text by which labels are matched: 3 and "3" are the same state, and so are np.int64(3) and 3."""
    return _spelled(plain(label))


def _spelled(value: Any) -> str:
    if not isinstance(value, tuple):
        return text_of(value)
    parts = [_spelled(part) for part in value]
    return (
        f"({', '.join(repr(part) if ', ' in part else part for part in parts)})"  # ("a, b", "c") is not ("a", "b, c")
    )


def text_of(value: Any) -> str:
    """`str(value)`, also of what cannot be written."""
    if hasattr(value, "toarray"):  # a sparse matrix is not a label, and to print one whose parts do not fit may crash
        return object.__repr__(value)
    try:
        return str(value)
    except (ValueError, RecursionError):  # a whole number with more digits than Python writes, lists without end
        return hex(value) if isinstance(value, int) else object.__repr__(value)


def listed(known: Sequence[Any]) -> str:
    """Some of the labels there are, for a message."""
    return ", ".join(spell(label) for label in known[:SHOWN]) + (", …" if len(known) > SHOWN else "")


def in_short(labels: Sequence[Any]) -> str:
    """The first few labels and how many more there are, as part of a title."""
    more = f" and {len(labels) - FEW} more" if len(labels) > FEW else ""
    return ", ".join(spell(label) for label in labels[:FEW]) + more


def in_series(words: Sequence[str]) -> str:
    """ "a, b and c", for a message."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def how_many(n: int, what: str) -> str:
    """ "1 row", "2 rows", for a message."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def sizes_in_words(n_states: int, n_actions: int) -> str:
    """ "3 states and 1 action", for a message."""
    return f"{how_many(n_states, 'state')} and {how_many(n_actions, 'action')}"


def near(label: Any, known: Sequence[Any]) -> str | None:
    """A remedy that names the known label that looks most like this one; None where none does. Whole numbers that look
    alike mean nothing: 140 is not a slip of 104."""
    label, wanted = plain(label), spell(label)
    texts = [spell(one) for one in known if _may_be_a_slip(label, plain(one))]
    folded = {text.casefold(): text for text in texts}  # Airport is airport in other letters
    close = get_close_matches(wanted, texts, 1) or [
        folded[text] for text in get_close_matches(wanted.casefold(), folded, 1)
    ]
    return f"Did you mean {close[0]}?" if close else None


def _may_be_a_slip(label: Any, other: Any) -> bool:
    """Whether one may have been typed for the other: not where whole numbers differ, or the number of parts."""
    if isinstance(label, tuple) and isinstance(other, tuple):
        return len(label) == len(other) and all(map(_may_be_a_slip, label, other))
    one, two = spell(label), spell(other)
    return one == two or not (one.isdecimal() and two.isdecimal())


def unknown(owner: str, kind: str, name: str, known: Sequence[str], remedy: str | None = None) -> InvalidOption:
    """ "NPL has no option `upates`, only weighting, l2, updates. Did you mean updates?" Or with another remedy."""
    what = f"{owner} has no {kind} `{name}`" + (f", only {', '.join(known)}" if len(known) <= MOST_LISTED else "")
    return InvalidOption.impossible(what, None, remedy or near(name, known), name)


def folded(label: Any) -> str:
    """The text of a label less its case, blanks and Unicode form, which are easily mistyped."""
    return "".join(normalize("NFKC", spell(label)).casefold().split())


def twin(label: Any, known: Iterable[Any]) -> Any:
    """The first known label that differs from this one only so; None where none does."""
    text, own = folded(label), spell(label)
    return next((plain(other) for other in known if folded(other) == text and spell(other) != own), None)


def places_by_text(labels: Iterable[Any]) -> dict[str, int]:
    """The place of each label by its text."""
    return {spell(label): k for k, label in enumerate(labels)}


def locate(wanted: Iterable[Any], known: Iterable[Any]) -> Ints:
    """The place of each wanted label among those known; −1 for those that are not. Parts of labels are matched by the
    names of their columns."""
    place = places_by_text(known)
    wanted = in_parts_of(wanted, known)
    found = ((label, place.get(spell(label), -1)) for label in wanted)
    return np.array([place.get(_other_text(label), -1) if k < 0 else k for label, k in found], dtype=np.intp)


def _other_text(label: Any) -> str:
    """How a number that equals this one is written, 1.0 for 1 and 1 for 1.0; what is no whole number as it is."""
    value = plain(label)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < EXACT:
        return spell(label)
    return str(float(value) if isinstance(value, int) else int(value)) if value == int(value) else spell(label)


def sorted_labels(labels: Iterable[Any]) -> tuple[Any, ...]:
    """Labels that differ in their text, sorted: by it where they are of several kinds."""
    distinct = {spell(label): label for label in labels}
    try:
        return tuple(sorted(distinct.values()))
    except TypeError:  # numbers in one column, text in the other
        return tuple(distinct[text] for text in sorted(distinct))


def find(
    argument: str,
    wanted: Sequence[Any],
    known: Sequence[Any],
    what: str | None = "label",
    error: type[InvalidInput] = InvalidInput,
) -> Ints:
    """The place of each wanted label among those known; the first that is not known is an error, which tells its
    position as `what` it is."""
    codes = locate(wanted, known)
    lost = np.flatnonzero(codes < 0)
    if lost.size:
        label = wanted[int(lost[0])]
        where = f"{what} {int(lost[0])}" if len(wanted) > 1 and what else None
        raise error(argument, f"one of {listed(known)}", shown(plain(label)), where, near(label, known))
    return codes
