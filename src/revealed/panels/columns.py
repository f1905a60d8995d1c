"""The columns of a panel: which is which, what their values mean, and how labels become indices.

Whole numbers are indices as they are, unless labels are given; text becomes sorted labels; several columns together
make labels that are tuples. The same rules hold wherever a panel is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Ints, as_list, require_count, require_option
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.frames import Column, kind_of, require_column
from revealed.labels import listed, near, plain, spell

if TYPE_CHECKING:
    from revealed.bins import Bins

MOST_INDEX = 2**31 - 2
GAPS = ("break", "error")
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
PERIODS = (*SECONDS, "week", *MONTHS)
GAPS_REMEDY = 'Fill in the periods, or let gaps="break" end a trajectory there.'
MISSING_REMEDY = "Drop or fill those rows; where a last decision led goes into a column of its own (next_state=)."


@dataclass(frozen=True)
class Roles:
    """Which columns hold what; `state` and `action` may be several, `next_state` and `weight` none."""

    id: str
    time: str
    state: tuple[str, ...]
    action: tuple[str, ...]
    next_state: tuple[str, ...] = ()
    weight: str | None = None
    bins: Bins | None = None
    period: str | None = None
    gaps: str = "break"

    @classmethod
    def of(cls, state: Any, action: Any, next_state: Any, **others: Any) -> Roles:
        bins = state if hasattr(state, "edges") else None  # what rv.discretize made
        where = tuple(bins.columns) if bins is not None else _names("state", state)
        to = () if next_state is None else _names("next_state", next_state)
        if to and len(to) != len(where):
            raise InvalidInput("next_state", f"{len(where)} columns, as `state` has", repr(list(to)))
        require_option("gaps", others["gaps"], GAPS)
        if others["period"] is not None:
            require_option("period", others["period"], PERIODS)
        return cls(state=where, action=_names("action", action), next_state=to, bins=bins, **others)

    def require(self, known: Sequence[str]) -> list[str]:
        """Every column is there; their names."""
        for role, name in self.each():
            require_column(role, name, known)
        return [name for _, name in self.each()]

    def each(self) -> list[tuple[str, Any]]:
        """(role, column), for every column."""
        single = [("id", self.id), ("time", self.time)]
        several = [(role, name) for role in ("state", "action", "next_state") for name in getattr(self, role)]
        return single + several + ([] if self.weight is None else [("weight", self.weight)])


def _names(role: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, list | tuple):
        if not given or len(set(map(str, given))) < len(given):
            raise InvalidInput(role, "the name of a column, or a list of names that differ", repr(given))
        return tuple(given)
    return (given,)


def in_periods(clock: Column, period: str | None) -> Column:
    """Times as whole numbers of periods since 1970, where a period was named; else as they are."""
    if clock.dtype.kind in "UT":
        clock = _text_times(clock, parse=period is not None)
    if period is None:
        return clock
    require_dates(period, clock)
    if period in SECONDS:
        return clock.astype("datetime64[s]").astype(np.int64) // SECONDS[period]
    if period == "week":  # from Monday to Sunday; 1970 began on a Thursday
        return (clock.astype("datetime64[D]").astype(np.int64) + 3) // 7
    months = clock.astype("datetime64[M]").astype(np.int64)
    return months // MONTHS[period]


def require_dates(period: str, clock: Column) -> None:
    if clock.dtype.kind in "iufb":
        raise InvalidInput("period", "None, where times are not dates", repr(period))


def _text_times(clock: Column, parse: bool) -> Column:
    """Text orders rows only if it sorts as time does: dates, or texts of one length."""
    if not parse:
        return _of_one_length(clock)
    try:
        return clock.astype("datetime64[s]")
    except ValueError as error:
        raise InvalidDemonstrations("time", "dates such as 2024-07-31", f"{str(clock[0])!r}", "row 0") from error


def _of_one_length(clock: Column) -> Column:
    lengths = np.strings.str_len(clock)
    odd = np.flatnonzero(lengths != lengths[0])
    if odd.size:
        raise uneven_times(str(clock[0]), str(clock[odd[0]]), f"row {odd[0]}")
    return clock


def uneven_times(one: str, other: str, where: str) -> InvalidDemonstrations:
    remedy = "Text sorts letter by letter, 't10' before 't2': make the times numbers or dates."
    return InvalidDemonstrations(
        "time", "numbers, dates, or texts of one length", f"{one!r} and {other!r}", where, remedy
    )


def require_kind(role: str, columns: Sequence[Column], labelled: bool) -> None:
    """Values that can stand for states or actions, of one kind where they share their labels."""
    for column in columns:
        if column.dtype.kind not in "iuUTb" and not labelled:
            whole = column.dtype.kind == "f" and bool(np.all(column == np.round(column)))
            remedy = "They are whole: .astype(int) will do." if whole else _CONTINUOUS
            raise InvalidDemonstrations(role, "whole numbers or strings", f"dtype {column.dtype}", remedy=remedy)
    kinds = {kind_of(column) for column in columns}
    if len(kinds) > 1:
        raise InvalidDemonstrations(role, "states and next states of one kind", " and ".join(sorted(kinds)))


_CONTINUOUS = "Make states of them first: bins, or labels (rv.discretize makes bins)."


def are_indices(known: Any, blocks: Sequence[Sequence[Column]]) -> bool:
    """Whether values are indices as they are: one column of whole numbers, and no labels given."""
    return known is None and all(len(block) == 1 and block[0].dtype.kind in "iu" for block in blocks)


def as_indices(role: str, column: Column) -> Ints:
    bad = (column < 0) | (column > MOST_INDEX)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidDemonstrations(role, "indices from 0", int(column[row]), f"row {row}")
    return column.astype(np.intp)


def distinct_rows(blocks: Sequence[Sequence[Column]]) -> tuple[list[Column], list[Ints]]:
    """The sorted distinct rows over all blocks, a column each, and the rank of every row of every block."""
    sizes = [len(block[0]) for block in blocks]
    columns = [np.concatenate([block[j] for block in blocks]) for j in range(len(blocks[0]))]
    found: list[Column] = []
    rank = np.zeros(sum(sizes), dtype=np.intp)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        met, rank = np.unique(rank * len(values) + place, return_inverse=True)
        found = [column[met // len(values)] for column in found] + [values[met % len(values)]]
    return found, np.split(rank.reshape(-1), np.cumsum(sizes)[:-1])


def index_of_ranks(
    role: str, known: Any, distinct: Sequence[Column], where: Callable[[int], str]
) -> tuple[tuple[Any, ...], Ints]:
    """The labels, and the index of each distinct row; `where` tells where a row of that rank is met first.

    Labels that are `known` come in that order; else in their own.
    """
    texts = [column.astype(str) if column.dtype.kind == "b" else column for column in distinct]
    rows = [plain(row) for row in zip(*texts, strict=True)]
    seen = rows if len(distinct) > 1 else [row[0] for row in rows]
    if known is None:
        return tuple(seen), np.arange(len(seen), dtype=np.intp)
    labels = as_labels(role, known)
    place = {spell(label): k for k, label in enumerate(labels)}
    codes = np.array([place.get(spell(label), -1) for label in seen], dtype=np.intp)
    lost = np.flatnonzero(codes < 0)
    if lost.size:
        label = seen[int(lost[0])]
        remedy = near(label, labels)
        raise InvalidDemonstrations(role, f"one of {listed(labels)}", repr(label), where(int(lost[0])), remedy)
    return labels, codes


def as_labels(role: str, known: Any) -> tuple[Any, ...]:
    labels = [plain(label) for label in as_list(known) or ()]
    if not labels or len({spell(label) for label in labels}) != len(labels):
        raise InvalidInput(f"{role}s", "labels that differ, in the order of the model", repr(known)[:60])
    return tuple(labels)


def note_gaps(n: float, first: str) -> str:
    """What to say of gaps in time."""
    what = "1 gap in time broke a trajectory" if n == 1 else f"{n:g} gaps in time broke trajectories"
    return f"{what} ({first}): where the decision before it led was not seen."


def note_singles(n: float, of: int, first: str) -> str:
    """What to say of ids with one row."""
    what = "1 id has" if n == 1 else f"{n:g} ids have"
    return f"{what} a single period, of {of} (first {first}): their decisions count, but show no move."


def twice(one: Any, when: Any, row: int) -> InvalidDemonstrations:
    got = f"id {one!r} twice at time {when}"
    return InvalidDemonstrations("time", "one row per id and time", got, f"row {row}")


def contradiction(got: str, row: int) -> InvalidDemonstrations:
    return InvalidDemonstrations("next_state", "the state of the following row", got, f"row {row}")


def out_of_bins(columns: Sequence[str], where: str) -> InvalidDemonstrations:
    expected = f"values of {', '.join(columns)} within the edges of the bins"
    return InvalidDemonstrations("state", expected, "one outside", where, "Make bins from these data, or wider edges.")


def too_short(n: int) -> InvalidDemonstrations:
    remedy = "Give where decisions led (next_state=), or, with known transitions, use Demonstrations.from_counts."
    return InvalidDemonstrations(
        "time", "at least two periods of some id", f"one row for each of {n} ids", "row 0", remedy
    )


def size_of(role: str, given: Any, labels: tuple[Any, ...] | None, seen: int) -> int:
    """How many states or actions there are: as many as given, as labels, or as were seen."""
    if given is None:
        return len(labels) if labels else seen
    require_count(f"n_{role}s", given, error=InvalidDemonstrations)
    if given < seen:
        raise InvalidDemonstrations(f"n_{role}s", f"at least {seen}, which the {role} column needs", given)
    return int(given)
