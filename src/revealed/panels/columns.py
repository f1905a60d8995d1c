"""The columns of a panel: which is which, what their values mean, and how labels become indices.

Whole numbers are indices as they are, unless labels are given; text becomes sorted labels; several columns together
make labels that are tuples. The same rules hold wherever a panel is counted.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from revealed.checks import Ints, as_list, require_count, require_option
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.frames import At, Column, dates_as_text, in_row, kind_of, require_column, require_exact
from revealed.gates import require_memory
from revealed.labels import (
    MOST_INDEX,
    Order,
    PartOrders,
    distinct_labels,
    folded,
    how_many,
    is_missing,
    listed,
    locate,
    near,
    plain,
    sequence_of,
    spell,
)
from revealed.voices import arg, either, named, shown, words
from revealed.written import EXACT, ISO, ZONE

if TYPE_CHECKING:
    from revealed.bins import Bins

GAPS = ("break", "error")
NUMERAL = r"[+-]?[0-9]+(\.[0-9]*)?"
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
MONTHS = {"month": 1, "quarter": 3, "year": 12}
PERIODS = (*SECONDS, "week", *MONTHS)
GAPS_REMEDY = f"Fill in the periods, or let {arg('gaps', 'break')} end a trajectory there."
GOAL_REMEDY = "Every decision of a trip needs its goal; put trips without one into separate demonstrations."
KEEP_REMEDY = "Fill them in: every agent needs a value."
MISSING_REMEDY = (
    f"Drop or fill those rows; the state after a last decision goes into its own column ({arg('next_state')})."
)


@dataclass(frozen=True)
class Roles:
    """Which columns hold what; `state` and `action` may be several; `next_state`, `goal`, `weight`, `keep` and
    `episode` none."""

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
    episode: str | None = None

    @classmethod
    def of(cls, state: Any, action: Any, next_state: Any, goal: Any = None, keep: Any = (), **others: Any) -> Roles:
        bins = state if hasattr(state, "edges") else None  # what rv.discretize made
        where = tuple(bins.columns) if bins is not None else _names("state", state)
        alike = {"next_state": next_state, "goal": goal}  # they hold states too
        alike = {role: () if given is None else _names(role, given) for role, given in alike.items()}
        for role, names in alike.items():
            if names and len(names) != len(where):
                raise InvalidInput(
                    role, f"{how_many(len(where), 'column')}, as `{named('state')}` has", shown(list(names))
                )
        require_option("gaps", others["gaps"], GAPS)
        if others["period"] is not None:
            require_option("period", others["period"], PERIODS)
        kept = () if keep is None or as_list(keep) == [] else _names("keep", keep)
        return cls(state=where, action=_names("action", action), bins=bins, keep=kept, **alike, **others)

    @property
    def of_numbers(self) -> list[tuple[str, str]]:
        """(role, column) of weights and of what bins are made of, which must be numbers."""
        weight = [] if self.weight is None else [("weight", self.weight)]
        return weight + ([] if self.bins is None else [("state", name) for name in (*self.state, *self.next_state)])

    @property
    def of_labels(self) -> list[tuple[str, str]]:
        """(role, column) of what is read as labels, or indices; states are not where bins make them of numbers."""
        others = {"time", "weight"} | (set() if self.bins is None else {"state", "next_state", "goal"})
        return [(role, name) for role, name in self.each() if role not in others]

    @property
    def unit(self) -> str:
        """What begins and ends, in words."""
        return "id" if self.episode is None else "episode"

    def first_single(self, one: Any) -> str:
        """The id of one that has a single period, in words."""
        return shown(one) if self.episode is None else f"of id {one!r}"

    def require(self, known: Sequence[str]) -> list[str]:
        """Every column is there; their names."""
        for role, name in self.each():
            require_column(role, name, known)
        return [name for _, name in self.each()]

    def each(self) -> list[tuple[str, Any]]:
        """(role, column), for every column."""
        single = [("id", self.id), ("time", self.time)]
        single += [] if self.episode is None else [("episode", self.episode)]
        roles = ("state", "action", "next_state", "goal", "keep")
        several = [(role, name) for role in roles for name in getattr(self, role)]
        return single + several + ([] if self.weight is None else [("weight", self.weight)])


def _names(role: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, list | tuple):
        if not given or len(set(map(spell, given))) < len(given):
            raise InvalidInput(role, "the name of a column, or a list of distinct names", shown(given))
        return tuple(given)
    return (given,)


def in_periods(clock: Column, period: str | None) -> Column:
    """Times as whole numbers of periods since 1970, where a period was named; whole numbers as such, dates as dates."""
    clock = as_times("time", clock)
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


def as_times(argument: str, clock: Column) -> Column:
    """Times that have an order: finite numbers, or dates, also where they are written as text."""
    if clock.dtype.kind in "UT":
        return _dates_of(argument, clock)
    if clock.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(clock))
        if bad.size:
            raise not_finite(str(clock[bad[0]]), int(bad[0]), argument)
        require_exact(argument, clock, InvalidDemonstrations)
    elif clock.dtype.kind == "M":
        bad = np.flatnonzero(np.abs(clock.astype("datetime64[us]").astype(np.int64)) == np.iinfo(np.int64).max)
        if bad.size:  # as DuckDB has them
            raise not_finite("an infinite one", int(bad[0]), argument)
    elif clock.dtype.kind not in "iu":
        raise no_order(str(clock[0]), 0, argument)
    return clock


def as_agent_ids(ids: Column, argument: str = "id", at: At = in_row) -> Column:
    """Ids, and episodes of them, are whole numbers or text; whole numbers that came as floats are whole again."""
    if ids.dtype.kind != "f":
        return ids
    bad = np.flatnonzero(~np.isfinite(ids) | (ids != np.round(ids)))
    if bad.size:
        raise no_id(float(ids[bad[0]]), at(int(bad[0])), argument)
    return ids.astype(np.int64)


def are_slips(n: int, of: int) -> bool:
    """Whether n fractional times are mistakes among whole numbers; of times in half periods at least a third are
    fractional, and of irregular ones most."""
    return n == 1 < of - 1 or 0 < 4 * n < of


def slipped(n: int, of: int, first: str, where: str | None) -> InvalidDemonstrations:
    """The complaint about fractional times among whole ones, which would hide every gap of every id."""
    remedy = (
        "Correct them, or count shorter periods: there are gaps where times differ by more than 1. If the times are "
        "irregular, number the rows of each id 0, 1, 2, … in their order instead."
    )
    return InvalidDemonstrations("time", f"whole numbers, as {of - n} of {of} times are", first, where, remedy)


def require_no_slips(clock: Column) -> None:
    """Few times that are not whole are mistakes."""
    odd = np.flatnonzero(clock != np.round(clock) if clock.dtype.kind == "f" else [])
    if are_slips(odd.size, clock.size):
        raise slipped(odd.size, clock.size, f"{float(clock[odd[0]])!r}", f"row {odd[0]}")


def no_id(value: Any, where: str | None, argument: str = "id") -> InvalidDemonstrations:
    remedy = f"Round them, or convert them to text that identifies {'agents' if argument == 'id' else 'episodes'}."
    return InvalidDemonstrations(argument, "whole numbers or text", f"{value}", where, remedy)


def numbered_periods(clock: Column, period: str) -> Column:
    """Whole numbers that stand for periods: years, or months written as 202407; others are not dates."""
    if period == "year" and _are_years(clock).all():
        return clock
    if period in MONTHS and _are_months(clock).all():
        return (clock // 100 * 12 + clock % 100 - 1) // MONTHS[period]
    raise no_dates(period, np.unique(clock))


def _are_years(clock: Column) -> npt.NDArray[np.bool_]:
    return (clock >= 1000) & (clock <= 9999)


def _are_months(clock: Column) -> npt.NDArray[np.bool_]:
    return (clock % 100 >= 1) & (clock % 100 <= 12) & (clock >= 100001) & (clock <= 999912)


def may_be_dates(least: Any, most: Any) -> bool:
    """Whether whole numbers in this range may be written dates; if so, `require_counters` looks at all of them. Of no
    rows the range is None or NaN."""
    return least is not None and bool(19001 <= least <= most <= 21001231)


def require_counters(times: Column) -> None:
    """Distinct times without a period that all look like months (202012), quarters (20204) or days (20201231), with one
    after the end of a year or month: counted as numbers there are gaps, 89 from December to January."""
    known = set(times.tolist())
    for unit, (following, remedy) in _WRITTEN.items():
        if any(following(one) is None for one in known):
            continue
        turns = ((one, following(one) or one) for one in sorted(known))
        pair = next(((one, then) for one, then in turns if then > one + 1 and then in known), None)
        if pair is not None:
            rule = f"is required: the times look like {unit}s, since {pair[0]} and {pair[1]} are 1 {unit} apart, but "
            rule += f"{pair[1] - pair[0]} apart as plain numbers"
            counted = f"If they count periods, subtract the first time ({min(known)}) from all."
            raise InvalidDemonstrations.conflict("period", rule, remedy=f"{remedy} {counted}")


def _month_after(one: int) -> int | None:
    year, month = divmod(one, 100)
    return None if not (1900 <= year <= 2100 and 1 <= month <= 12) else one + 1 if month < 12 else one + 89


def _quarter_after(one: int) -> int | None:
    year, quarter = divmod(one, 10)
    return None if not (1900 <= year <= 2100 and 1 <= quarter <= 4) else one + 1 if quarter < 4 else one + 7


def _day_after(one: int) -> int | None:
    with suppress(ValueError):
        day = dt.date(one // 10000, one // 100 % 100, one % 100) + dt.timedelta(days=1)
        return day.year * 10000 + day.month * 100 + day.day
    return None


_AS_MONTH = f"If they are months, pass {arg('period', 'month')}."
_AS_QUARTER = "If they are quarters, write them as 4 * year + quarter, or as dates."
_AS_DAY = f"If they are days, write them as dates, such as 2020-01-31, with {arg('period', 'day')}."
_WRITTEN = {
    "month": (_month_after, _AS_MONTH),
    "quarter": (_quarter_after, _AS_QUARTER),
    "day": (_day_after, _AS_DAY),
}


def require_dates(period: str, clock: Column) -> None:
    if clock.dtype.kind != "M":
        raise no_dates(period)


def no_dates(period: str, times: Column | None = None) -> InvalidInput:
    """The complaint about times without dates; of distinct whole numbers that are years or months but for a few, about
    the first of these."""
    if times is not None and period in MONTHS:
        readings = {"years such as 2024": _are_years} if period == "year" else {}
        for expected, fits in (readings | {"months such as 202407": _are_months}).items():
            good = fits(times)
            if 2 * good.sum() > good.size:
                remedy = "There is no such year." if fits is _are_years else "There is no such month."
                return InvalidDemonstrations("time", expected, int(times[~good].min()), remedy=remedy)
    remedy = (
        "If whole numbers count periods already, leave it out; if they are dates such as 20200131, turn them into "
        "dates: pandas.to_datetime(column.astype(str))."
    )
    return InvalidInput.conflict("period", f"cannot be {period!r}: times are not dates", remedy=remedy)


def _dates_of(argument: str, clock: Column) -> Column:
    """Dates written as text, which must be such that they sort as time does."""
    texts, place = np.unique(clock, return_inverse=True)
    odd = [text for text in texts.tolist() if not re.fullmatch(ISO, text) or len(text) != len(texts[0])]
    dates = [None if text in odd else date_in(text) for text in texts.tolist()]
    if None in dates:
        wrong = [text for text, date in zip(texts.tolist(), dates, strict=True) if date is None]
        wrong = [text for text in wrong if not re.fullmatch(NUMERAL, text)] or wrong  # one cell made text of numbers
        row = int(np.flatnonzero(np.isin(clock, wrong))[0])
        raise no_order(str(clock[row]), row, argument)
    return np.array(dates, dtype="datetime64[us]")[place]


def date_in(text: str) -> np.datetime64 | None:
    """The date that a text is, in UTC; None where there is no such date."""
    try:
        if not re.search(f":.*{ZONE}$", text):
            return np.datetime64(text)
        return np.datetime64(dt.datetime.fromisoformat(text).astimezone(dt.UTC).replace(tzinfo=None), "us")
    except ValueError:  # such as month 13
        return None


def no_order(text: str, row: int, argument: str = "time") -> InvalidDemonstrations:
    expected = "numbers, or dates such as 2024-07-31, all in the same format"
    remedy = "Other text would be sorted alphabetically: 't10' before 't2', April before March."
    readings = _readings(text)
    if re.fullmatch(ISO, text) and date_in(text) is None:
        return InvalidDemonstrations(argument, expected, shown(text), f"row {row}", "There is no such date.")
    if re.match(r"\d{4}", text.strip()) and readings:
        remedy = f"Write dates as {readings[0]:%Y-%m-%d}, in every row and file."
        return InvalidDemonstrations(argument, expected, shown(text), f"row {row}", remedy)
    got = f"{text!r}, which may be {' or '.join(f'{one:%d %B %Y}' for one in readings)}" if readings else shown(text)
    if readings:
        remedy = f"Write dates as {readings[0]:%Y-%m-%d}, in every row and file: day and month are not guessed."
    return InvalidDemonstrations(argument, expected, got, f"row {row}", remedy)


def _readings(text: str) -> list[dt.date]:
    """The dates that a text such as 03/04/2020 may mean, day first and month first; 2020/04/03 means one."""
    whole = re.fullmatch(r"(\d{4})([/. -]?)(\d{1,2})\2(\d{1,2})\b.*", text.strip())
    if whole is not None and (whole[2] or re.match(r"\d{8}", text.strip())):
        with suppress(ValueError):
            return [dt.date(int(whole[1]), int(whole[3]), int(whole[4]))]
        return []
    parts = re.fullmatch(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4}|\d{2})\b.*", text.strip())
    if parts is None:
        return []
    first, second, year = (int(part) for part in parts.groups())
    found: list[dt.date] = []
    for day, month in ((first, second), (second, first)):
        with suppress(ValueError):
            found.append(dt.date(year + 2000 * (year < 100), month, day))
    return list(dict.fromkeys(found))


def no_values(role: str, n: int, where: str | None) -> InvalidDemonstrations:
    remedy = KEEP_REMEDY if role == "keep" else MISSING_REMEDY
    return InvalidDemonstrations(role, "no missing values", f"{n} missing", where, remedy)


def not_finite(text: str, row: int, argument: str = "time") -> InvalidDemonstrations:
    return InvalidDemonstrations(argument, "finite times", text, f"row {row}", MISSING_REMEDY.partition(";")[0] + ".")


def too_large(text: str, row: int, argument: str = "time") -> InvalidDemonstrations:
    remedy = "Read the column as whole numbers or as text: floats round it."
    return InvalidDemonstrations(argument, f"floats of at most 2^53 = {EXACT}", text, f"row {row}", remedy)


def in_words(when: Any) -> str:
    """A time as it is read: dates without their midnight."""
    if isinstance(when, np.datetime64):
        return str(when.astype("datetime64[s]")).replace("T00:00:00", "").replace("T", " ")
    return str(when.item() if hasattr(when, "item") else when).replace(" 00:00:00", "")


def require_kind(role: str, columns: Sequence[Column], known: Any, who: str = "states and next states") -> None:
    """Values that can stand for states or actions, of one kind where they share their labels."""
    labelled = known is not None and not isinstance(known, PartOrders)
    for column in columns:
        if column.dtype.kind not in "iuUTb" and not labelled:
            whole = column.dtype.kind == "f" and bool(np.all(column == np.round(column)))
            remedy = WHOLE if whole else _CONTINUOUS
            raise InvalidDemonstrations(role, "whole numbers or strings", f"dtype {column.dtype}", remedy=remedy)
    kinds = {kind_of(column) for column in columns}
    if len(kinds) > 1:
        raise InvalidDemonstrations(role, f"{who} of one kind", " and ".join(sorted(kinds)))


WHOLE = "They are whole: " + either(
    "use .astype(int); in a file write them without a decimal point.", "write them without a decimal point."
)
_BINS = either("rv.discretize", "--bins COLUMN=20")
_CONTINUOUS = f"Turn them into states first: bins ({_BINS}), or labels."


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
    remedy = names_remedy(role) if value > MOST_INDEX else None
    return InvalidDemonstrations(role, f"indices from 0 to {MOST_INDEX}", value, f"row {row}", remedy)


def names_remedy(role: str) -> str:
    option = "actions" if role == "action" else "states"
    text = f"If numbers are names, {either(f'pass {option}=, the list of them', 'write them as text')}"
    return text + (f"; if they are measurements, make bins of them ({_BINS})." if role != "action" else ".")


def _beyond_64_bits(labels: Sequence[Any]) -> Ints:
    """Which labels are whole numbers too large for 64 bits, where all are whole numbers: they had to become text."""
    if not all(isinstance(label, str) and re.fullmatch("-?(0|[1-9][0-9]*)", label) for label in labels):
        return np.array([], dtype=np.intp)
    return np.flatnonzero([not -(2**63) <= int(label) < 2**63 for label in labels])


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
    if known is None or isinstance(known, PartOrders):
        large = _beyond_64_bits(seen)
        if large.size:
            rank, role, where = first(large)
            raise InvalidDemonstrations(role, f"indices from 0 to {MOST_INDEX}", seen[rank], where, names_remedy(role))
        order = np.arange(len(seen)) if known is None else known.sort(seen)
        return Order([seen[k] for k in order], derived=True), np.argsort(order)
    labels = as_labels(role, known)
    codes = locate(seen, labels)
    lost = np.flatnonzero(codes < 0)
    if lost.size:
        rank, role, where = first(lost)
        label, remedy = seen[rank], near(seen[rank], labels)
        if role == "goal":  # which may look like its neighbours
            listing = either("states=", "--features or --transitions")
            remedy = (
                f"{remedy or ''} A goal is a state, even if no decision is made there: list it in {listing}.".strip()
            )
        raise InvalidDemonstrations(role, f"one of {listed(labels)}", shown(label), where, remedy).without(label)
    return labels, codes


def as_labels(role: str, known: Any) -> tuple[Any, ...]:
    labels = distinct_labels([_as_written(plain(label)) for label in sequence_of(known) or ()])
    if labels is None:
        raise InvalidInput(f"{role}s", "distinct labels, in the order of the model", shown(known))
    return tuple(labels)


def _as_written(label: Any) -> Any:
    """Dates as the text that they are as labels of a column of such dates."""
    if isinstance(label, tuple):
        return tuple(map(_as_written, label))
    if not isinstance(label, dt.date | np.datetime64) or is_missing(label):
        return label
    return str(dates_as_text(np.array([label], dtype="datetime64[us]"))[0])


def note_gaps(n: float, first: str) -> str:
    """What to say of gaps in time."""
    if n == 1:
        said = "the next state of the decision before the gap is unknown, and the row after the gap is not a start"
        return f"1 gap in time broke a trajectory ({first}): {said}."
    said = "the next states of the decisions before the gaps are unknown, and the rows after the gaps are not starts"
    return f"{n:g} gaps in time broke trajectories ({first}): {said}."


def note_labels(labels: Mapping[str, Sequence[Any] | None]) -> tuple[str, ...]:
    """What to say of labels of states and actions, by role: text because of a few cells, or hardly different."""
    return tuple(note for role, some in labels.items() for note in (*_slips(role, some), *_alike(role, some)))


def note_ghost(role: str, remedy: str) -> str:
    """What to say where state (or action) 0 is never seen, and every other is; `remedy` as of `naming.from_one`."""
    return words(f"{role} 0 occurs nowhere, and all others do. {remedy}")


def _alike(role: str, labels: Sequence[Any] | None) -> list[str]:
    first: dict[str, str] = {}
    texts = [spell(label) for label in labels or () if not isinstance(label, int | float)]
    pairs = [(one, text) for text in texts if (one := first.setdefault(folded(text), text)) != text]
    if not pairs:
        return []
    one, other = pairs[0]
    bare = "".join(one.split()) == "".join(other.split())
    how = "case" if one.casefold() == other.casefold() else "blanks" if bare else "case, blanks or Unicode form"
    n = "1 such pair" if len(pairs) == 1 else f"{len(pairs)} such pairs"
    return [
        f"{one!r} and {other!r} differ only in {how}, and are different {role}s ({n}): make them equal if they are the "
        f"same {role}."
    ]


def _slips(role: str, labels: Sequence[Any] | None) -> list[str]:
    texts = [label for label in labels or () if isinstance(label, str)]
    odd = [text for text in texts if not re.fullmatch(NUMERAL, text)]
    if not odd or len(odd) * 10 > len(texts):
        return []
    some = f"{len(odd)} of {len(texts)} {role}s are not numbers ({listed(odd)})"
    return [f"Labels of {role}s are text, sorted as such ('10' before '2'), because {some}."]


def note_singles(n: float, of: int, first: str, each: str = "id") -> str:
    """What to say of ids with one row; where ids have episodes, of episodes."""
    what, whose = ("has", "its decision counts") if n == 1 else ("have", "their decisions count")
    return f"{n:g} of {of} {each}s {what} a single period (first {first}): {whose}, but no transition is observed."


def note_unlooked() -> str:
    """What to say of dates whose period was not given."""
    return words(
        f"gaps in time were not checked: the times are dates, and their period was not given ({arg('period')})."
    )


def note_fractional(n: int, of: int, first: float, row: int) -> str:
    """What to say of times that are not all whole numbers."""
    are = "is not a whole number" if n == 1 else "are not whole numbers"
    what = f"{n} of {of} times {are} (first {first!r}, row {row})"
    return f"gaps in time were not checked: {what}; rows are only sorted by time."


def twice(one: Any, when: Any, row: int | None, roles: Roles) -> InvalidDemonstrations:
    rows = f"twice at time {in_words(when)}"
    if roles.period is not None:
        rows = f"in two rows of one {roles.period}, the second at {in_words(when)}"
    got = f"id {one!r} {rows}" + (" of one episode" if roles.episode else "")
    expected = "one row per id, episode and time" if roles.episode else "one row per id and time"
    remedy = (
        None
        if roles.episode
        else f"If each id has several episodes, name the column that distinguishes them: {arg('episode')}."
    )
    return InvalidDemonstrations("time", expected, got, None if row is None else f"row {row}", remedy)


def note_only_gaps() -> str:
    """What to say where no row follows another."""
    period = arg("period")
    return words(
        "no two rows of an id are one period apart. Times should count periods (0, 1, 2, …). If they are dates, use a "
        f"longer {period}."
    )


def unchecked_gaps() -> InvalidInput:
    remedy = f"Name the period of the dates ({arg('period')}), or make the times whole numbers."
    rule = f"cannot be error for irregular timestamps: it requires whole-number times, or dates with {arg('period')}"
    return InvalidInput.conflict("gaps", rule, remedy=remedy)


def contradiction(got: str, row: int) -> InvalidDemonstrations:
    return InvalidDemonstrations("next_state", "the state of the next row", got, f"row {row}")


def other_goal(was: Any, now: Any, one: Any, when: Any, row: int) -> InvalidDemonstrations:
    got = f"{was!r}, then {now!r} for id {one!r} at time {in_words(when)}"
    remedy = f"Give each trip its own id, or name the column that distinguishes an id's trips: {arg('episode')}."
    return InvalidDemonstrations("goal", "one goal per trip", got, f"row {row}", remedy)


def trip_or_two(one: Any, goal: Any, times: tuple[Any, Any], row: int, id: str) -> InvalidDemonstrations:
    """The complaint about a gap on the way to one goal, which may lie within a trip or between two."""
    what = (
        f"id {one!r} has no row between times {in_words(times[0])} and {in_words(times[1])} on the way to {goal!r}, so "
        "this may be one trip with missing rows or two trips"
    )
    remedy = (
        f"If each id is one trip, pass {arg('episode', id)}; else name the column that distinguishes an id's trips: "
        f"{arg('episode')}."
    )
    return InvalidDemonstrations.impossible(what, f"row {row}", remedy, "goal")


def varies(name: str, one: Any, first: Any, other: Any, where: str | None) -> InvalidDemonstrations:
    """The complaint about a column to be kept that is not a property of agents."""
    got = f"{first!r} and {other!r} for id {one!r}"
    remedy = "Keep a column that is constant within each id, or use a finer id."
    return InvalidDemonstrations("keep", f"one value of {name!r} per id", got, where, remedy)


def out_of_bins(columns: Sequence[str], where: str) -> InvalidDemonstrations:
    expected = f"values of {', '.join(columns)} within the edges of the bins"
    return InvalidDemonstrations(
        "state", expected, "a value outside", where, "Make bins from these data, or widen the edges."
    )


def too_short(n: int, each: str = "id") -> InvalidDemonstrations:
    counts = either(", or, with known transitions, use Demonstrations.from_counts", "")
    remedy = f"Give the next states ({arg('next_state')}){counts}."
    return InvalidDemonstrations(
        "time",
        f"at least two periods for some {each}",
        f"a single row for every {each} ({how_many(n, each)})",
        "row 0",
        remedy,
    )


def _too_few(role: str, given: int, seen: int, zero: bool) -> str:
    if seen == given + 1 and not zero:
        return f"Indices start at 0; if {role}s are numbered from 1, pass {role}s=range(1, {seen})."
    if role == "action":
        return "If numbers are names, pass actions=, the list of them."
    return f"Indices start at 0. If the column is a measurement, make bins of it: {_BINS}."


def size_of(
    role: str, given: Any, labels: tuple[Any, ...] | None, seen: int, has_zero: Callable[[], bool] = lambda: True
) -> int:
    """How many states or actions there are: as many as given, as labels, or as were seen; `has_zero` tells whether
    number 0 was."""
    if given is None:
        return len(labels) if labels else seen
    require_count(f"n_{role}s", given, error=InvalidDemonstrations)
    if given < seen:
        remedy = _too_few(role, given, seen, has_zero())
        raise InvalidDemonstrations(f"n_{role}s", f"at least {seen}, for the {role} column", given, remedy=remedy)
    if labels is not None and given != len(labels):
        rule = f"cannot be {given}, because the {role} column has {len(labels)} labels, and the rest would have none"
        raise InvalidDemonstrations.conflict(f"n_{role}s", rule, remedy=f"List all labels instead ({arg(f'{role}s')}).")
    require_memory(f"n_{role}s", given, 2 * int(given), InvalidDemonstrations)
    return int(given)
