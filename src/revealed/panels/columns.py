"""The columns of a panel: which is which, what their values mean, and how labels become indices.

Whole numbers are indices as they are, unless labels are given; text becomes sorted labels; several columns together
make labels that are tuples. The same rules hold wherever a panel is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Ints, as_list, require_count, require_option
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.frames import Column, kind_of, require_column
from revealed.labels import MOST_INDEX, listed, near, plain, spell

if TYPE_CHECKING:
    from revealed.bins import Bins

GAPS = ("break", "error")
ISO = r"\d{4}-\d{2}(-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?)?"
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
PERIODS = (*SECONDS, "week", *MONTHS)
GAPS_REMEDY = 'Fill in the periods, or let gaps="break" end a trajectory there.'
GOAL_REMEDY = "Every decision of a trip needs its goal; trips without one go into demonstrations of their own."
KEEP_REMEDY = "Fill them in: every agent belongs somewhere."
MISSING_REMEDY = "Drop or fill those rows; where a last decision led goes into a column of its own (next_state=)."


@dataclass(frozen=True)
class Roles:
    """Which columns hold what; `state` and `action` may be several, `next_state`, `goal`, `weight` and `keep` none."""

    id: str
    time: str
    state: tuple[str, ...]
    action: tuple[str, ...]
    next_state: tuple[str, ...] = ()
    goal: tuple[str, ...] = ()
    weight: str | None = None
    keep: tuple[str, ...] = ()
    bins: Bins | None = None
    period: str | None = None
    gaps: str = "break"

    @classmethod
    def of(cls, state: Any, action: Any, next_state: Any, goal: Any = None, keep: Any = (), **others: Any) -> Roles:
        bins = state if hasattr(state, "edges") else None  # what rv.discretize made
        where = tuple(bins.columns) if bins is not None else _names("state", state)
        alike = {"next_state": next_state, "goal": goal}  # they hold states too
        alike = {role: () if given is None else _names(role, given) for role, given in alike.items()}
        for role, names in alike.items():
            if names and len(names) != len(where):
                raise InvalidInput(role, f"{len(where)} columns, as `state` has", repr(list(names)))
        require_option("gaps", others["gaps"], GAPS)
        if others["period"] is not None:
            require_option("period", others["period"], PERIODS)
        kept = () if keep is None or as_list(keep) == [] else _names("keep", keep)
        return cls(state=where, action=_names("action", action), bins=bins, keep=kept, **alike, **others)

    @property
    def of_states(self) -> tuple[str, ...]:
        """The columns whose values are labels of states, or indices; none where bins make states of numbers."""
        return () if self.bins is not None else (*self.state, *self.next_state, *self.goal)

    def require(self, known: Sequence[str]) -> list[str]:
        """Every column is there; their names."""
        for role, name in self.each():
            require_column(role, name, known)
        return [name for _, name in self.each()]

    def each(self) -> list[tuple[str, Any]]:
        """(role, column), for every column."""
        single = [("id", self.id), ("time", self.time)]
        roles = ("state", "action", "next_state", "goal", "keep")
        several = [(role, name) for role in roles for name in getattr(self, role)]
        return single + several + ([] if self.weight is None else [("weight", self.weight)])


def _names(role: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, list | tuple):
        if not given or len(set(map(str, given))) < len(given):
            raise InvalidInput(role, "the name of a column, or a list of names that differ", repr(given))
        return tuple(given)
    return (given,)


def in_periods(clock: Column, period: str | None) -> Column:
    """Times as whole numbers of periods since 1970, where a period was named; whole numbers as such, dates as dates."""
    if clock.dtype.kind in "UT":
        clock = _dates_of(clock)
    if clock.dtype.kind == "f" and np.all(clock == np.round(clock)):
        clock = clock.astype(np.int64)
    if period is None:
        return clock
    if clock.dtype.kind in "iu":
        return numbered_periods(clock, period)
    require_dates(period, clock)
    if period in SECONDS:
        return clock.astype("datetime64[s]").astype(np.int64) // SECONDS[period]
    if period == "week":  # from Monday to Sunday; 1970 began on a Thursday
        return (clock.astype("datetime64[D]").astype(np.int64) + 3) // 7
    months = clock.astype("datetime64[M]").astype(np.int64)
    return months // MONTHS[period]


def numbered_periods(clock: Column, period: str) -> Column:
    """Whole numbers that stand for periods: years, or months written as 202407; others are no dates."""
    if period == "year" and np.all((clock >= 1000) & (clock <= 9999)):
        return clock
    month = clock % 100
    if period in MONTHS and np.all((month >= 1) & (month <= 12) & (clock >= 100001) & (clock <= 999912)):
        return (clock // 100 * 12 + month - 1) // MONTHS[period]
    raise no_dates(period)


def require_dates(period: str, clock: Column) -> None:
    if clock.dtype.kind != "M":
        raise no_dates(period)


def no_dates(period: str) -> InvalidInput:
    remedy = "Leave it out: whole numbers count periods already."
    return InvalidInput("period", "None, where times are not dates", repr(period), remedy=remedy)


def _dates_of(clock: Column) -> Column:
    """Dates written as text, which must be such that they sort as time does."""
    texts, place = np.unique(clock, return_inverse=True)
    odd = [text for text in texts.tolist() if not re.fullmatch(ISO, text) or len(text) != len(texts[0])]
    dates = [None if text in odd else _date(text) for text in texts.tolist()]
    if None in dates:
        wrong = [text for text, date in zip(texts.tolist(), dates, strict=True) if date is None]
        row = int(np.flatnonzero(np.isin(clock, wrong))[0])
        raise no_order(str(clock[row]), row)
    return np.array(dates, dtype="datetime64[us]")[place]


def _date(text: str) -> np.datetime64 | None:
    try:
        return np.datetime64(text)
    except ValueError:  # such as month 13
        return None


def no_order(text: str, row: int) -> InvalidDemonstrations:
    remedy = "Other text has an order of its own, letter by letter: 't10' before 't2', April before March."
    expected = "numbers, or dates such as 2024-07-31, all written alike"
    return InvalidDemonstrations("time", expected, repr(text), f"row {row}", remedy)


def in_words(when: Any) -> str:
    """A time as it is read: dates without their midnight."""
    if isinstance(when, np.datetime64):
        return str(when.astype("datetime64[s]")).replace("T00:00:00", "").replace("T", " ")
    return str(when.item() if hasattr(when, "item") else when).replace(" 00:00:00", "")


def require_kind(role: str, columns: Sequence[Column], labelled: bool, who: str = "states and next states") -> None:
    """Values that can stand for states or actions, of one kind where they share their labels."""
    for column in columns:
        if column.dtype.kind not in "iuUTb" and not labelled:
            whole = column.dtype.kind == "f" and bool(np.all(column == np.round(column)))
            remedy = "They are whole: .astype(int) will do." if whole else _CONTINUOUS
            raise InvalidDemonstrations(role, "whole numbers or strings", f"dtype {column.dtype}", remedy=remedy)
    kinds = {kind_of(column) for column in columns}
    if len(kinds) > 1:
        raise InvalidDemonstrations(role, f"{who} of one kind", " and ".join(sorted(kinds)))


_CONTINUOUS = "Make states of them first: bins, or labels (rv.discretize makes bins)."


def are_indices(known: Any, blocks: Sequence[Sequence[Column]]) -> bool:
    """Whether values are indices as they are: one column of whole numbers, and no labels given."""
    return known is None and all(len(block) == 1 and block[0].dtype.kind in "iu" for block in blocks)


def as_indices(role: str, column: Column, rows: Ints | None = None) -> Ints:
    """Whole numbers as indices; `rows` tells where in the frame they stand, where not in all of it."""
    bad = (column < 0) | (column > MOST_INDEX)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        raise no_index(role, int(column[i]), i if rows is None else int(rows[i]))
    return column.astype(np.intp)


def no_index(role: str, value: int, row: int) -> InvalidDemonstrations:
    option = "actions" if role == "action" else "states"
    remedy = f"Where numbers are names, pass {option}=, the list of them." if value > MOST_INDEX else None
    return InvalidDemonstrations(role, f"indices from 0 to {MOST_INDEX}", value, f"row {row}", remedy)


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
    role: str, known: Any, distinct: Sequence[Column], first: Callable[[Ints], tuple[int, str, str]]
) -> tuple[tuple[Any, ...], Ints]:
    """The labels, and the index of each distinct row.

    Labels that are `known` come in that order; else in their own. Of the ranks that are not known `first` tells which
    is met first, in which role, and where.
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
        rank, role, where = first(lost)
        label, remedy = seen[rank], near(seen[rank], labels)
        if role == "goal":  # which may look like its neighbours
            remedy = f"{remedy or ''} A goal is a state, even if nobody decides there: list it in states=.".strip()
        raise InvalidDemonstrations(role, f"one of {listed(labels)}", repr(label), where, remedy)
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


def note_unlooked() -> str:
    """What to say of dates whose period nobody named."""
    return "gaps in time were not looked for: the times are dates, and their period was not given (period=)."


def twice(one: Any, when: Any, row: int, period: str | None = None) -> InvalidDemonstrations:
    within = "" if period is None else f" within a {period}"
    got = f"id {one!r} twice at time {in_words(when)}{within}"
    return InvalidDemonstrations("time", "one row per id and time", got, f"row {row}")


def note_only_gaps() -> str:
    """What to say where no row follows another."""
    return "no two rows of an id are one period apart: do times count periods 0, 1, 2, …, or is period= too short?"


def unchecked_gaps() -> InvalidInput:
    remedy = "Name the period of the dates (period=), or make the times whole numbers."
    return InvalidInput(
        "gaps", 'whole-number times or a period, with "error"', "times that may lie anyhow", remedy=remedy
    )


def contradiction(got: str, row: int) -> InvalidDemonstrations:
    return InvalidDemonstrations("next_state", "the state of the following row", got, f"row {row}")


def other_goal(was: Any, now: Any, one: Any, when: Any, row: int) -> InvalidDemonstrations:
    got = f"{was!r} and then {now!r}, of id {one!r} at time {in_words(when)}"
    remedy = "Give each trip an id of its own, or leave a gap in time between trips."
    return InvalidDemonstrations("goal", "one goal for the whole of a trip", got, f"row {row}", remedy)


def varies(name: str, one: Any, first: Any, other: Any, where: str | None) -> InvalidDemonstrations:
    """The complaint about a column to be kept that is no property of agents."""
    got = f"{first!r} and {other!r} of id {one!r}"
    remedy = "Agents are what is told apart: keep a column that does not change, or name a finer one as the id."
    return InvalidDemonstrations("keep", f"one value of {name!r} per id", got, where, remedy)


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
