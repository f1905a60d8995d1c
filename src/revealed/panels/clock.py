"""Which time is period 0 on a finite horizon: one time for everybody, where times are ages or dates, or each one's own.

A trajectory's entry is the time of its first row, as the frame has it. Where entries differ, nothing but the user can
tell whether those who enter later are at a later period, or begin at period 0 like all others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from revealed.checks import Ints, is_index
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.frames import Column, in_utc
from revealed.panels.columns import ISO, date_in, in_periods, in_words
from revealed.voices import arg, either, shown

FARTHEST = 2**62  # times beyond do not differ by whole numbers of int64
OWN = "own"  # the clock of every id begins with its first row
_OWN = either(f'"{OWN}"', OWN)  # as it is written
_LATER = "Choose this time or an earlier one, or drop the earlier rows."


def is_own(first_time: Any) -> bool:
    return isinstance(first_time, str) and first_time == OWN


def periods_late(entry: Column, first_time: Any, period: str | None) -> Ints:
    """How many periods after `first_time` each of these entries is."""
    clock = entry if entry.dtype.kind == "f" else in_periods(entry, period)  # some times of these were not whole
    if clock.dtype.kind not in "iu":
        dates = clock.dtype.kind == "M"
        rule = f"cannot be {first_time!r}: times are {'dates' if dates else 'numbers'} without a period"
        remedy = f"Name the period of the dates (as in {arg('period', 'month')}), or let" if dates else "Let"
        remedy += f" every id's clock start at its first row ({arg('first_time', OWN)})."
        raise InvalidInput.conflict("first_time", rule, remedy=remedy)
    clock = clock.astype(np.int64)  # small types would wrap around
    late = clock - _zero(entry, first_time, period)
    if late.min() < 0:
        first = in_words(entry[clock.argmin()])
        expected, remedy = f"a time no later than {first}, the first in the data", _LATER
        raise InvalidInput("first_time", expected, shown(first_time), remedy=remedy)
    return late.astype(np.intp)


def times_as_read(time: Ints, entry: Column, period: str | None) -> Ints:
    """Times that count from each trajectory's entry, on the one clock of the data where entries differ: its own
    numbers, or periods since the first. As they are where times were not whole numbers of periods."""
    counted = entry.dtype.kind in "iu"
    if np.all(entry == entry[0]) or not (counted or (period is not None and entry.dtype.kind == "M")):
        return time
    if counted and period is None:
        return time + entry.astype(np.int64)
    first = int(entry.min()) if counted else entry.min()
    return time + periods_late(entry, first, period)


def _zero(entry: Column, first_time: Any, period: str | None) -> int:
    """`first_time` in periods, written as the times are."""
    if entry.dtype.kind in "iuf":
        if not is_index(first_time) or abs(int(first_time)) > FARTHEST:
            expected = f"a whole number, like the times in the data, such as {in_words(entry.min())}, or {_OWN}"
            raise InvalidInput("first_time", expected, shown(first_time))
        return int(in_periods(np.array([int(first_time)]), period)[0])
    date = as_date(first_time)
    if date is None:
        first = either(f'"{in_words(entry.min())}"', in_words(entry.min()))
        expected = f"a date, like the times in the data, such as {first}, or {_OWN}"
        raise InvalidInput("first_time", expected, shown(first_time))
    return int(in_periods(np.array([date], dtype="datetime64[us]"), period)[0])


def as_date(given: Any) -> np.datetime64 | None:
    """A date, also as text, and years and months as numbers such as 2024 and 202407; None for what is none."""
    if is_index(given):
        text = f"{given}"
        given = text if len(text) == 4 else f"{text[:4]}-{text[4:]}" if len(text) == 6 else ""
    if isinstance(given, str):
        return date_in(given) if re.fullmatch(rf"\d{{4}}|{ISO}", given) else None
    try:
        date = np.datetime64(in_utc(given))
    except (TypeError, ValueError):
        return None
    return None if np.isnat(date) else date


def require_one_clock(entry: Column, agent: Ints, ids: Sequence[Any]) -> None:
    """Everybody enters at one time; else the user must say what time means."""
    other = np.flatnonzero(entry != entry[0])
    if not other.size:
        return
    i, j = sorted((0, int(other[0])), key=lambda k: entry[k])
    early, late = (in_words(entry[k]) for k in (i, j))
    who = [shown(ids[agent[k]]) for k in (i, j)]
    entries = f"id {who[0]} enters at {early}, id {who[1]} at {late}"
    start = in_words(entry.min())
    written = int(start) if entry.dtype.kind in "iu" else start
    dates = "" if entry.dtype.kind != "M" else f" (with {arg('period')})"
    remedy = (
        f"If the times are ages or dates, say which one is period 0: {arg('first_time', written)} or an earlier one"
        f"{dates}. "
        f"If every id starts at period 0 when it enters: {arg('first_time', OWN)}."
    )
    if entry.dtype.kind == "f":  # some times are not whole
        remedy = (
            f"If every id starts at period 0 when it enters: {arg('first_time', OWN)}. Else write times as whole "
            "numbers of periods."
        )
    rule = f"is required on a finite horizon where ids enter at different times: {entries}"
    raise InvalidDemonstrations.conflict("first_time", rule, remedy=remedy)
