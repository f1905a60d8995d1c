"""A lazy frame counted by its own engine (Dask, Spark, Polars, …, through narwhals): only the counts travel.

Engines that spread rows over machines have no order to shift by, so that what follows a decision is found by a join:
the same id, one period later. Times must therefore be whole numbers of periods. Such rows have no number either:
errors name id and time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from revealed.errors import InvalidDemonstrations, InvalidInput, RevealedError
from revealed.frames import EXACT, At, Column, as_label_values, as_plain, missing_in, require_exact, to_numpy
from revealed.panels.columns import (
    GAPS_REMEDY,
    MONTHS,
    SECONDS,
    Roles,
    are_indices,
    are_slips,
    as_agent_ids,
    as_indices,
    distinct_rows,
    index_of_ranks,
    may_be_dates,
    no_dates,
    no_values,
    note_gaps,
    note_only_gaps,
    note_singles,
    out_of_bins,
    require_counters,
    require_kind,
    slipped,
    too_short,
    twice,
)
from revealed.panels.groups import ROLES, Coding, Counted, Groups, one_each
from revealed.progress import Progress
from revealed.voices import arg, either
from revealed.written import NUMBER

IN_MEMORY = either("Pass keep_steps=True to read the frame into memory.", "Use a smaller panel.")


def count_lazy(frame: Any, roles: Roles, states: Any, actions: Any) -> Counted:
    """The counts of a lazy frame of narwhals."""
    try:
        return _count(frame, roles, states, actions)
    except RevealedError:
        raise
    except Exception as error:  # every engine fails in its own way
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InvalidInput("frame", "a frame that its engine can count", reason, remedy=IN_MEMORY) from error


def _count(frame: Any, roles: Roles, states: Any, actions: Any) -> Counted:
    with Progress("Counting the panel", total=4) as bar:
        count = _Count(frame, roles)
        count.require_values()
        bar.update("decisions")
        decisions = count.grouped(count.base, ["i", *count.state, *count.action])
        bar.update("starts")
        starts = count.grouped(count.beginnings(), ["i", *count.state])
        pieces = count.pieces()
        bar.update("moves")
        moves = count.moves()
    ids, notes = count.judge(decisions, starts, pieces, moves)
    seen = [[table[c] for c in count.state] for table in (decisions, starts, moves)]
    led = [moves[f"z{j}"] for j in range(len(count.state))]
    state, (s, at, frm, to) = _code("state", states, [*seen, led], roles.bins, count.first_of)
    blocks = [[table[c] for c in count.action] for table in (decisions, moves)]
    action, (a, by) = _code("action", actions, blocks, None, count.first_of)
    agent, began = (np.searchsorted(ids, table["i"]) for table in (decisions, starts))
    groups = Groups((agent, s, a, _floats(decisions)), (began, at, _floats(starts)), (frm, by, to, _floats(moves)))
    return Counted(groups, tuple(ids.tolist()), state, action, notes, count.columns(ids))


def collect(frame: Any) -> dict[str, Column]:
    """A small result in memory."""
    table = frame.collect()
    return {name: _settled(table.get_column(name), name) for name in table.columns}


def _settled(column: Any, name: str, at: At = lambda _: None) -> Column:
    """Labels as everywhere, in the columns of ids, episodes, states, actions and what is kept. Rows of results are none
    of the panel."""
    values, role = to_numpy(column, name), ROLES.get(name[0]) or name
    if not values.size:
        return values
    if name[:1] not in _LABELS or name[1:].strip("0123456789"):
        return as_plain(role, values, InvalidDemonstrations, at=at) if values.dtype == object else values
    zoned = bool(getattr(column.dtype, "time_zone", None))
    labels = as_label_values(role, values, zoned, InvalidDemonstrations, at)
    labels = as_plain(role, labels, InvalidDemonstrations, at=at)
    require_exact(role, labels, InvalidDemonstrations, at)
    return as_agent_ids(labels, role, at) if name in ("i", "e") else labels


_LABELS = "iesanzfk"  # how the short names of columns of labels begin


def _floats(table: dict[str, Column]) -> Any:
    return table["often"].astype(np.float64)


def _code(
    role: str, known: Any, blocks: list[list[Column]], bins: Any, first_of: Callable[[str, list[Any]], str | None]
) -> tuple[Coding, list[Any]]:
    """How values become indices, and the indices of each block; the blocks share their labels."""
    sizes = np.cumsum([len(block[0]) for block in blocks])[:-1]
    columns = [np.concatenate([part for part in parts if part.size]) for parts in zip(*blocks, strict=True)]
    if bins is not None:
        return Coding(bins.labels, None), np.split(columns[0].astype(np.intp), sizes)
    for column in columns:
        require_kind(role, [column], known)
    if are_indices(known, [columns]):
        return Coding(None, None), np.split(as_indices(role, columns[0]), sizes)
    distinct, (ranks,) = distinct_rows([columns])

    def first(lost: Any) -> tuple[int, str, str]:
        rank = int(lost[0])
        where = first_of(role, [column[rank].item() for column in distinct])
        return (rank, f"next_{role}", "") if where is None else (rank, role, where)

    labels, codes = index_of_ranks(role, known, distinct, first)
    return Coding(labels, None), np.split(codes[ranks], sizes)


class _Count:
    """One count under way; columns of `base` are i, e, t, s0…, a0…, n0… and w, as in `in_duckdb`."""

    def __init__(self, frame: Any, roles: Roles) -> None:
        import narwhals as nw

        self.roles, self.schema = roles, frame.collect_schema()
        self._require_numbers(frame)
        frame = self._without_nan(frame)
        self._require_labels(frame)
        width = 1 if roles.bins is not None else len(roles.state)
        self.state = [f"s{j}" for j in range(width)]
        self.action = [f"a{j}" for j in range(len(roles.action))]
        self.after = [f"n{j}" for j in range(width)] if roles.next_state else []
        self.kept = [f"k{j}" for j in range(len(roles.keep))]
        self.apart = ["i"] if roles.episode is None else ["i", "e"]  # rows of different ones never follow each other
        columns = [nw.col(roles.id).alias("i"), self._time(frame).alias("t")]
        columns += [] if roles.episode is None else [nw.col(roles.episode).alias("e")]
        columns += self._states(roles.state, self.state) + self._states(roles.next_state, self.after)
        others = (*zip(roles.action, self.action, strict=True), *zip(roles.keep, self.kept, strict=True))
        columns += [nw.col(name).alias(short) for name, short in others]
        columns += [] if roles.weight is None else [nw.col(roles.weight).cast(nw.Float64).alias("w")]
        self.base = frame.select(*columns)

    def _require_numbers(self, frame: Any) -> None:
        """Weights and what bins are made of are numbers."""
        import narwhals as nw

        for role, name in self.roles.of_numbers:
            kind, expected = self.schema[name], f"numbers in column {name!r}"
            if kind == nw.String:
                numbers = nw.col(name).str.contains(rf"^\s*({NUMBER})\s*$")
                table, where = self._offender(frame, ~numbers, name)
                if table is not None:
                    raise InvalidDemonstrations(role, expected, f"text such as {table['value'][0]}", where)
            if not kind.is_numeric() and kind != nw.Boolean:
                raise InvalidDemonstrations(role, expected, _of_kind(kind))

    def _without_nan(self, frame: Any) -> Any:
        """NaN as missing, as which some engines know it, and some do not."""
        import narwhals as nw

        floats = {name for _, name in self.roles.each() if self.schema[name].is_float()}
        known = [nw.when(~nw.col(name).is_nan()).then(nw.col(name)).alias(name) for name in floats]
        return frame.with_columns(*known) if known else frame

    def _require_labels(self, frame: Any) -> None:
        """Values that may be no labels are looked at before an engine is asked to group by them, and those of episodes,
        which are never fetched, in every row."""
        import narwhals as nw

        shorts = {role: short for short, role in ROLES.items() if short != "z"}
        for role, name in self.roles.of_labels:
            odd, short = _odd_label(name, self.schema[name], role == "episode"), shorts[role]
            if odd is None:
                continue
            table, where = self._offender(frame, odd & ~nw.col(name).is_null(), name, short)
            if table is not None:
                _settled(table.get_column(short), short, lambda _, where=where: where)

    def _offender(self, frame: Any, test: Any, name: str, short: str = "value") -> tuple[Any, str | None]:
        """One row of the frame for which a test holds, with the value of a column under a short name, and where that
        is."""
        import narwhals as nw

        columns = {"i": self.roles.id, "t": self.roles.time, short: name}
        found = frame.filter(test).select(*(nw.col(column).alias(own) for own, column in columns.items()))
        table = found.head(1).collect()
        return (table, _place(table)) if len(table) else (None, None)

    def _states(self, names: Any, shorts: list[str]) -> list[Any]:
        import narwhals as nw

        if self.roles.bins is None or not names:
            return [nw.col(name).alias(short) for name, short in zip(names, shorts, strict=True)]
        return [_binned(self.roles.bins, names).alias(shorts[0])]

    def _time(self, frame: Any) -> Any:
        """Times as `in_periods` makes them."""
        import narwhals as nw

        name, period = self.roles.time, self.roles.period
        t, kind = nw.col(name), self.schema[name]
        absent = _missing(t, kind)
        n = int(collect(frame.select(absent.sum().alias("n")))["n"][0])
        if n:
            raise no_values("time", n, self._offender(frame, absent, name)[1])
        if kind.is_float() and self._all(frame, (t.abs() <= EXACT) & (t == t.round())):
            t, kind = t.cast(nw.Int64), nw.Int64()
        if kind.is_float() and period is None:
            odd = t != t.round()
            counts = collect(frame.select(odd.sum().alias("n"), nw.len().alias("total")))
            n, total = (int(counts[name][0]) for name in ("n", "total"))
            if are_slips(n, total):
                table, where = self._offender(frame, odd, name)
                raise slipped(n, total, f"{table['value'][0]!r}", where)
        if kind.is_integer():
            t = t.cast(nw.Int64)
            return self._counters(frame, t) if period is None else self._numbered_periods(frame, t, period)
        if not kind.is_temporal() or period is None:
            expected = f"whole numbers of periods, or dates with {arg('period')}"
            raise InvalidDemonstrations("time", expected, _of_kind(kind), remedy=IN_MEMORY)
        if getattr(kind, "time_zone", None):
            t = t.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        if period in MONTHS:
            return ((t.dt.year() - 1970) * 12 + t.dt.month() - 1).cast(nw.Int64) // MONTHS[period]
        seconds = t.cast(nw.Datetime("us")).dt.timestamp("ms") // 1000
        return (seconds // 86400 + 3) // 7 if period == "week" else seconds // SECONDS[period]

    def _counters(self, frame: Any, t: Any) -> Any:
        """As they are, unless they look like written dates."""
        ends = collect(frame.select(t.min().alias("least"), t.max().alias("most")))
        if may_be_dates(ends["least"][0], ends["most"][0]):
            require_counters(self._distinct(frame, t))
        return t

    def _distinct(self, frame: Any, t: Any) -> Column:
        return collect(frame.select(t.alias("seen")).drop_nulls().unique())["seen"]

    def _numbered_periods(self, frame: Any, t: Any, period: str) -> Any:
        """As `numbered_periods`."""
        if period == "year" and self._all(frame, t.is_null() | (t >= 1000) & (t <= 9999)):
            return t
        month = t % 100
        written = (month >= 1) & (month <= 12) & (t >= 100001) & (t <= 999912)
        if period in MONTHS and self._all(frame, t.is_null() | written):
            return (t // 100 * 12 + month - 1) // MONTHS[period]
        raise no_dates(period, self._distinct(frame, t))

    def _all(self, frame: Any, test: Any) -> bool:
        """Whether a test holds in every row."""
        return not collect(frame.filter(~test).select(self.roles.time).head(1))[self.roles.time].size

    def grouped(self, frame: Any, keys: list[str]) -> dict[str, Column]:
        """How often each combination of keys occurs, and how many rows that is."""
        import narwhals as nw

        weighted = [] if self.roles.weight is None else [nw.col("w").sum().alias("often")]
        table = collect(frame.group_by(*keys).agg(nw.len().alias("rows"), *weighted))
        return {"often": table["rows"]} | table

    def require_values(self) -> None:
        """No missing values, weights that are weights, one row per id and time."""
        import narwhals as nw

        roles = {**{short: ROLES[short] for short in self.apart}, "t": "time"}
        roles |= dict.fromkeys(self.state, "state") | dict.fromkeys(self.action, "action")
        roles |= dict.fromkeys(self.kept, "keep") | ({} if self.roles.weight is None else {"w": "weight"})
        schema = self.base.collect_schema()
        tests = {short: _missing(nw.col(short), schema[short]) for short in roles}
        absent = [test.sum().alias(f"no {short}") for short, test in tests.items()]
        counts = collect(self.base.select(nw.len().alias("n"), *absent))
        if not counts["n"][0]:
            raise InvalidDemonstrations("frame", "at least one row", "no rows")
        for short, role in roles.items():
            if counts[f"no {short}"][0]:
                raise no_values(role, int(counts[f"no {short}"][0]), self._first(tests[short]))
        if self.roles.weight is not None:
            self._require_weights()
        if self.roles.bins is not None:
            self._require_inside()
        again = self.base.group_by(*self.apart, "t").agg(nw.len().alias("n")).filter(nw.col("n") > 1)
        found = collect(again.select("i", "t"))
        if found["i"].size:
            k = np.lexsort((found["t"], found["i"]))[0]
            raise twice(found["i"].tolist()[k], found["t"].tolist()[k], None, replace(self.roles, period=None))

    def _require_weights(self) -> None:
        import narwhals as nw

        bad = (nw.col("w") < 0.0) | ~nw.col("w").is_finite()
        total = float(collect(self.base.select(nw.col("w").sum()))["w"][0])
        found = collect(self.base.filter(bad).select("w").head(1))["w"]
        if found.size:
            got = float(found[0])
            raise InvalidDemonstrations("weight", "row weights >= 0", got, self._first(bad))
        if not total > 0.0:
            raise InvalidDemonstrations("weight", "some weight above 0", "all zero")

    def _require_inside(self) -> None:
        """No value outside the outer edges: it is −1 here."""
        import narwhals as nw

        for short in [*self.state, *self.after]:
            where = self._first(nw.col(short) < 0)
            if where is not None:
                raise out_of_bins(self.roles.state, where)

    def _first(self, test: Any) -> str | None:
        return _place(self.base.filter(test).select("i", "t").head(1).collect())

    def first_of(self, role: str, values: list[Any]) -> str | None:
        """Where a value of the states or actions is met; None where it is only a next state."""
        import narwhals as nw

        test: Any = None
        for short, value in zip(getattr(self, role), values, strict=True):
            here = nw.col(short) == value
            test = here if test is None else test & here
        return self._first(test)

    def beginnings(self) -> Any:
        """The first row of each id, or of each of its episodes; a row after a gap is none."""
        import narwhals as nw

        first = self.base.group_by(*self.apart).agg(nw.col("t").min())
        return self.base.join(first, on=[*self.apart, "t"], how="inner")

    def pieces(self) -> dict[str, Column]:
        """How many rows of each id have none one period before: its beginnings, and its rows after a gap."""
        import narwhals as nw

        before = self.base.select(*self.apart, (nw.col("t") + 1).alias("t"))
        return self.grouped(self.base.join(before, on=[*self.apart, "t"], how="anti"), ["i"])

    def moves(self) -> dict[str, Column]:
        """Decisions whose next state was seen, in the following row or in its own column, grouped."""
        import narwhals as nw

        width = range(len(self.state))
        ahead = [nw.col(s).alias(f"f{j}") for j, s in enumerate(self.state)]
        following = self.base.select(*self.apart, (nw.col("t") - 1).alias("t"), *ahead)
        joined = self.base.join(following, on=[*self.apart, "t"], how="left")
        if len(self.after) > 1:  # where one of several is missing, the next state is
            there = ~nw.any_horizontal(*(nw.col(n).is_null() for n in self.after), ignore_nulls=False)
            joined = joined.with_columns(*(nw.when(there).then(nw.col(n)).alias(n) for n in self.after))
        if self.after:
            self._require_agreement(joined)
            led = [nw.coalesce(nw.col(n), nw.col(f"f{j}")).alias(f"z{j}") for j, n in enumerate(self.after)]
        else:
            led = [nw.col(f"f{j}").alias(f"z{j}") for j in width]
        joined = joined.with_columns(*led).filter(~nw.col("z0").is_null())
        table = self.grouped(joined, [*self.state, *self.action, *(f"z{j}" for j in width)])
        return table | {f"z{j}": _as(table[f"z{j}"], table[s]) for j, s in enumerate(self.state)}

    def _require_agreement(self, joined: Any) -> None:
        import narwhals as nw

        for j, n in enumerate(self.after):
            both = joined.filter(~nw.col(n).is_null() & ~nw.col(f"f{j}").is_null() & (nw.col(n) != nw.col(f"f{j}")))
            found = collect(both.select("i", "t", n, f"f{j}").head(1))
            if found["i"].size:
                one, when, said, seen = (column.tolist()[0] for column in found.values())
                got, where = f"{said!r} where {seen!r} follows", f"id {one!r}, time {when}"
                raise InvalidDemonstrations("next_state", "the state of the next row", got, where)

    def columns(self, ids: Column) -> dict[str, tuple[Any, ...]]:
        """What is kept: a value per agent."""
        found = {}
        for name, short in zip(self.roles.keep, self.kept, strict=True):
            pairs = collect(self.base.select("i", short).unique())
            found[name] = one_each(name, ids, pairs["i"], pairs[short])
        return found

    def judge(
        self,
        decisions: dict[str, Column],
        starts: dict[str, Column],
        pieces: dict[str, Column],
        moves: dict[str, Column],
    ) -> tuple[Column, tuple[str, ...]]:
        """The ids in order, and notes on gaps and single periods."""
        ids = np.unique(decisions["i"])
        begun, broken = (np.bincount(np.searchsorted(ids, t["i"]), t["rows"], ids.size) for t in (starts, pieces))
        parts, gaps = int(begun.sum()), int((broken - begun).sum())
        alone, whose = self._singles(ids, decisions)
        if not self.after and alone == parts:
            raise too_short(parts, self.roles.unit)
        notes = []
        if gaps:
            first = f"the first of id {ids[np.flatnonzero(broken > begun)[0]].item()!r}"
            if self.roles.gaps == "error":
                raise InvalidDemonstrations("time", "no gaps", f"{gaps}, {first}", remedy=GAPS_REMEDY)
            notes.append(note_gaps(gaps, first))
            notes += [] if moves["rows"].size else [note_only_gaps()]
        if alone and not self.after:
            notes.append(note_singles(alone, parts, self.roles.first_single(whose), self.roles.unit))
        return ids, tuple(notes)

    def _singles(self, ids: Column, decisions: dict[str, Column]) -> tuple[int, Any]:
        """How many ids, or episodes of them, have a single row, and the first such id."""
        import narwhals as nw

        if self.roles.episode is None:
            alone = np.flatnonzero(np.bincount(np.searchsorted(ids, decisions["i"]), decisions["rows"]) == 1)
            return alone.size, ids[alone[0]].item() if alone.size else None
        rows = self.base.group_by(*self.apart).agg(nw.len().alias("rows")).filter(nw.col("rows") == 1)
        found = collect(rows.group_by("i").agg(nw.len().alias("rows")))
        return int(found["rows"].sum()), np.sort(found["i"])[0].item() if found["i"].size else None


def _place(table: Any) -> str | None:
    """Where the first row of a small table is, as far as its id and time are known; None where it has no rows."""
    said = []
    for name, words in (("i", "id {!r}"), ("t", "time {}")) if len(table) else ():
        column = table.get_column(name).head(1)
        if not missing_in(to_numpy(column, name))[0]:
            said.append(words.format(_settled(column, name).tolist()[0]))
    return ", ".join(said) or None


def _odd_label(name: str, kind: Any, in_full: bool) -> Any:
    """A test of which values of a column may be no labels; None where all are, or where they are seen later on."""
    import narwhals as nw

    x = nw.col(name)
    if kind.is_integer() or kind == nw.Boolean or (kind.is_temporal() and kind != nw.Duration):
        return None
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return x.cast(nw.String).str.contains("\0", literal=True) if in_full else None
    if kind.is_numeric():
        return ~((x.abs() <= EXACT) & (x == x.round())) if in_full else None
    return nw.lit(True)


def _of_kind(kind: Any) -> str:
    import narwhals as nw

    return "a column of another kind" if kind == nw.Unknown else f"a column of {kind}"


def _missing(column: Any, kind: Any) -> Any:
    """Missing values: also empty text."""
    import narwhals as nw

    return column.is_null() | (column == "") if kind == nw.String else column.is_null()


def _as(values: Column, like: Column) -> Column:
    """Whole numbers again, where missing ones had made them floats."""
    were = values.dtype.kind == "f" and like.dtype.kind in "iu"
    return values.astype(like.dtype) if were and np.all(np.isfinite(values) & (values == np.round(values))) else values


def _binned(bins: Any, names: Any) -> Any:
    """The state of continuous columns: how many inner edges each value has reached; −1 outside the outer ones, and
    missing where a value is."""
    import narwhals as nw

    state: Any = 0
    inside: Any = 1
    missing = nw.any_horizontal(*(nw.col(name).is_null() for name in names), ignore_nulls=False)
    for name, edges in zip(names, bins.edges, strict=True):
        value = nw.col(name).cast(nw.Float64)
        reached: Any = 0
        for edge in edges[1:-1]:  # sums and products alone: all that every engine does row by row
            reached = (value >= float(edge)).cast(nw.Int64) + reached
        state = state * (len(edges) - 1) + reached
        within = (value >= float(edges[0])) & (value <= float(edges[-1]))
        inside = within.cast(nw.Int64) * inside
    return nw.when(~missing).then((state + 1) * inside - 1)
