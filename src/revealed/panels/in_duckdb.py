"""A panel counted inside DuckDB, out of core: one grouping, and one sort for what follows what.

Values are grouped as they are and coded afterwards, by their rank among the distinct ones: what is joined and fetched
has the size of the counts, not of the panel. In the queries columns are i (id), t (time), s0… (state), a0… (action),
n0… (next state, where there is a column for it) and w (weight).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from revealed.checks import Ints
from revealed.errors import InvalidDemonstrations
from revealed.frames import Column, as_plain, fetch, quoted
from revealed.panels.columns import (
    GAPS_REMEDY,
    MISSING_REMEDY,
    MONTHS,
    MOST_INDEX,
    SECONDS,
    Roles,
    are_indices,
    contradiction,
    index_of_ranks,
    note_gaps,
    note_singles,
    out_of_bins,
    require_dates,
    require_kind,
    too_short,
    twice,
    uneven_times,
)
from revealed.panels.groups import Coding, Counted, Groups
from revealed.progress import Progress

VIEW = "revealed_panel"  # a name within the query; the user's catalogue does not see it
FROM = f"FROM {VIEW}"


def count_relation(relation: Any, roles: Roles, states: Any, actions: Any) -> Counted:
    """The counts of a relation's rows."""
    with Progress("Counting the panel", total=4) as bar:
        count = _Count(relation, roles)
        count.require_values()
        bar.update("labels and ids")
        state = count.coding("state", states, count.state, count.after)
        action = count.coding("action", actions, count.action, [])
        ids = count.fetch(f"SELECT DISTINCT i FROM {count.base} ORDER BY i")["i"]
        bar.update("decisions")
        decisions = count.decisions(state, action)
        bar.update("moves")
        starts, moves, notes = count.what_follows(state, action, ids)
    return Counted(Groups(decisions, starts, moves), tuple(ids.tolist()), state, action, notes)


class _Count:
    """One count under way; `base` is the panel with short names."""

    def __init__(self, relation: Any, roles: Roles) -> None:
        self.relation, self.roles = relation, roles
        width = 1 if roles.bins is not None else len(roles.state)
        self.state = [f"s{j}" for j in range(width)]
        self.action = [f"a{j}" for j in range(len(roles.action))]
        self.after = [f"n{j}" for j in range(width)] if roles.next_state else []
        self.often = "count(*)" if roles.weight is None else "sum(w)"
        self.base = f"(SELECT {', '.join(self._columns())} {FROM})"
        self.whole_times = self._kind("t") in "iu"

    def fetch(self, sql: str) -> dict[str, Column]:
        return fetch(self.relation.query(VIEW, sql))

    def _columns(self) -> list[str]:
        roles = self.roles
        blocks = [(roles.state, self.state), (roles.next_state, self.after), (roles.action, self.action)]
        if roles.bins is not None:
            binned = [f"{roles.bins.sql(names)} AS {short[0]}" for names, short in blocks[:2] if names]
            blocks = blocks[2:]
        else:
            binned = []
        plain = [f"{quoted(name)} AS {short}" for names, shorts in blocks for name, short in zip(names, shorts)]
        weight = [] if roles.weight is None else [f"CAST({quoted(roles.weight)} AS DOUBLE) AS w"]
        return [f"{quoted(roles.id)} AS i", f"{self._time()} AS t", *binned, *plain, *weight]

    def _time(self) -> str:
        """Times as `in_periods` makes them."""
        t, period = quoted(self.roles.time), self.roles.period
        if period is None:
            return t
        require_dates(
            period, fetch(self.relation.query(VIEW, f"SELECT {t} AS t {FROM} WHERE {t} IS NOT NULL LIMIT 1"))["t"]
        )
        t = f"CAST({t} AS TIMESTAMP)"
        if period in SECONDS:
            return f"CAST(floor(epoch({t}) / {SECONDS[period]}) AS BIGINT)"
        if period == "week":
            return f"CAST(floor((floor(epoch({t}) / 86400) + 3) / 7) AS BIGINT)"
        return f"CAST(floor(((year({t}) - 1970) * 12 + month({t}) - 1) / {MONTHS[period]}) AS BIGINT)"

    def _one(self, column: str) -> Column:
        """One value of a column, or none: enough to know what it holds."""
        found = self.fetch(f"SELECT {column} AS x FROM {self.base} WHERE {column} IS NOT NULL LIMIT 1")["x"]
        return as_plain(column, found, InvalidDemonstrations) if found.size else found

    def _kind(self, column: str) -> str:
        return self._one(column).dtype.kind

    # what must hold of single rows

    def require_values(self) -> None:
        """No missing values, weights that are weights, times that order rows."""
        if not self.fetch(f"SELECT count(*) AS n {FROM}")["n"][0]:
            raise InvalidDemonstrations("frame", "at least one row", "no rows")
        shorts = {"i": "id", "t": "time"} | dict.fromkeys(self.state, "state") | dict.fromkeys(self.action, "action")
        shorts |= {} if self.roles.weight is None else {"w": "weight"}
        absent = {short: self._absent(short) for short in shorts}
        counts = ", ".join(f"count(*) FILTER (WHERE {test}) AS {short}" for short, test in absent.items())
        found = self.fetch(f"SELECT {counts} FROM {self.base}")
        for short, role in shorts.items():
            if found[short][0]:
                where = f"row {self.first_row(absent[short])}"
                got = f"{int(found[short][0])} missing"
                raise InvalidDemonstrations(role, "no missing values", got, where, MISSING_REMEDY)
        self._require_weights()
        if self._kind("t") in "UT":
            self._require_even_texts()

    def _absent(self, short: str) -> str:
        return f"{short} IS NULL OR isnan({short})" if self._kind(short) == "f" else f"{short} IS NULL"

    def _require_weights(self) -> None:
        if self.roles.weight is None:
            return
        low, total = (
            float(v[0]) for v in self.fetch(f"SELECT min(w) AS low, sum(w) AS total FROM {self.base}").values()
        )
        if low < 0.0 or not np.isfinite(total):
            row = self.first_row("w < 0 OR NOT isfinite(w)")
            raise InvalidDemonstrations("weight", "numbers >= 0: how often a row counts", low, f"row {row}")
        if not total > 0.0:
            raise InvalidDemonstrations("weight", "some weight above 0", "all zero")

    def _require_even_texts(self) -> None:
        found = self.fetch(f"SELECT arg_min(t, length(t)) AS x, arg_max(t, length(t)) AS y FROM {self.base}")
        one, other = str(found["x"][0]), str(found["y"][0])
        if len(one) != len(other):
            raise uneven_times(one, other, f"row {self.first_row(f'length(t) = {len(other)}')}")

    def first_row(self, test: str) -> int:
        """The first row of the panel for which a test holds."""
        numbered = f"SELECT row_number() OVER () - 1 AS r, * FROM {self.base}"
        return int(self.fetch(f"SELECT min(r) AS r FROM ({numbered}) WHERE {test}")["r"][0])

    # labels

    def coding(self, role: str, known: Any, columns: list[str], others: list[str]) -> Coding:
        """How the values of these columns become indices; `others` share their labels."""
        if role == "state" and self.roles.bins is not None:
            self._require_within_bins(columns + others)
            return Coding(self.roles.bins.labels, None, None)
        samples = [[self._one(column) for column in columns]]
        if others and all(self._one(column).size for column in others):
            samples.append([self._one(column) for column in others])
        for pair in zip(*samples, strict=True):
            require_kind(role, pair, known is not None)
        if are_indices(known, samples):
            self._require_indices(role, columns + others)
            return Coding(None, None, None)
        ranked = self._ranked(columns, others)
        found = self.fetch(f"SELECT {', '.join(columns)} FROM ({ranked}) ORDER BY k")
        distinct = [as_plain(role, found[column], InvalidDemonstrations) for column in columns]
        labels, codes = index_of_ranks(role, known, distinct, lambda k: self._row_of_rank(k, columns, ranked))
        return Coding(labels, codes, ranked)

    def _require_within_bins(self, columns: list[str]) -> None:
        for column in columns:
            if self.fetch(f"SELECT count(*) AS n FROM {self.base} WHERE {column} < 0")["n"][0]:
                raise out_of_bins(self.roles.state, f"row {self.first_row(f'{column} < 0')}")

    def _ranked(self, columns: list[str], others: list[str]) -> str:
        """The distinct values in their order, with their rank k."""
        listed = ", ".join(columns)
        rows = f"SELECT DISTINCT {listed} FROM {self.base}"
        if others:
            there = " AND ".join(f"{column} IS NOT NULL" for column in others)
            rows += f" UNION SELECT DISTINCT {', '.join(others)} FROM {self.base} WHERE {there}"
        return f"SELECT {listed}, CAST(row_number() OVER (ORDER BY {listed}) - 1 AS INTEGER) AS k FROM ({rows})"

    def _row_of_rank(self, k: int, columns: list[str], ranked: str) -> str:
        numbered = f"SELECT row_number() OVER () - 1 AS r, * FROM {self.base}"
        chosen = f"SELECT * FROM ({ranked}) WHERE k = {k}"
        found = self.fetch(f"SELECT min(r) AS r FROM ({numbered}) JOIN ({chosen}) USING ({', '.join(columns)})")["r"]
        return f"row {int(found[0])}" if found[0] is not None else "a next state"

    def _require_indices(self, role: str, columns: list[str]) -> None:
        for column in columns:
            test = f"{column} < 0 OR {column} > {MOST_INDEX}"
            bad = self.fetch(f"SELECT any_value({column}) AS x FROM {self.base} WHERE {test}")["x"]
            if bad[0] is not None:
                raise InvalidDemonstrations(role, "indices from 0", int(bad[0]), f"row {self.first_row(test)}")

    # counts

    def decisions(self, state: Coding, action: Coding) -> tuple[Ints, Ints, Ints, Any]:
        """How often each agent took each action in each state."""
        keys = ["i", *self.state, *self.action]
        grouped = f"SELECT {', '.join(keys)}, {self.often} AS often FROM {self.base} GROUP BY {', '.join(keys)}"
        joins = [f"JOIN ({_ranked_ids('SELECT DISTINCT i FROM g')}) AS agents ON g.i = agents.i"]
        s, a = _ranks("s", self.state, state, joins), _ranks("a", self.action, action, joins)
        found = self.fetch(
            f"WITH g AS MATERIALIZED ({grouped}) SELECT agents.k AS agent, {s} AS s, {a} AS a, "
            f"CAST(often AS DOUBLE) AS often FROM g {' '.join(joins)}"
        )
        return found["agent"], state.index(found["s"]), action.index(found["a"]), found["often"]

    def what_follows(self, state: Coding, action: Coding, ids: Column) -> tuple[Any, Any, tuple[str, ...]]:
        """Starts, moves and notes, from one sort by id and time."""
        grouped = self._followed()
        begun = "SELECT DISTINCT start AS i FROM g WHERE start IS NOT NULL"  # every id begins at least once
        joins = [f"LEFT JOIN ({_ranked_ids(begun)}) AS agents ON g.start = agents.i"]
        s, a = _ranks("s", self.state, state, joins), _ranks("a", self.action, action, joins)
        to = _ranks("z", [f"z{j}" for j in range(len(self.state))], state, joins, self.state, outer=True)
        found = self.fetch(
            f"WITH g AS MATERIALIZED ({grouped}) SELECT coalesce(agents.k, -1) AS agent, {s} AS s, {a} AS a, "
            f"coalesce({to}, -1) AS z, CAST(often AS DOUBLE) AS often, dup, gap, gap_of, alone, clash "
            f"FROM g {' '.join(joins)}"
        )
        notes = self._judge(found, ids, state)
        began, moved = found["agent"] >= 0, found["z"] >= 0
        at, often = state.index(found["s"]), found["often"]
        starts = (found["agent"][began], at[began], often[began])
        by, after = action.index(found["a"][moved]), state.index(found["z"][moved])
        return starts, (at[moved], by, after, often[moved]), notes

    def _followed(self) -> str:
        """Rows grouped by state, action, where they led (z) and, for those that begin a trajectory, whose they are."""
        whole, width = self.whole_times, range(len(self.state))
        near = "t2 = t + 1" if whole else "t2 IS NOT NULL"
        seen = [f"CASE WHEN {near} THEN f{j} END" for j in width]
        led = [f"coalesce({n}, {f})" for n, f in zip(self.after, seen, strict=True)] if self.after else seen
        clash = " OR ".join(f"{n} <> f{j}" for j, n in enumerate(self.after)) or "false"
        flags = {
            "dup": "t2 = t",
            "gap": "t2 > t + 1" if whole else "false",
            "alone": "t0 IS NULL AND t2 IS NULL",
            "clash": f"({near}) AND ({clash})",
        }
        begins = "t0 IS NULL OR t0 + 1 <> t" if whole else "t0 IS NULL"
        derived = [f"{expression} AS z{j}" for j, expression in enumerate(led)]
        derived += [
            f"CASE WHEN {begins} THEN i END AS start",
            *(f"{test} AS is_{name}" for name, test in flags.items()),
        ]
        rows = f"SELECT *, {', '.join(derived)} FROM ({self._neighbours()})"
        keys = ", ".join([*self.state, *self.action, *(f"z{j}" for j in width), "start"])
        counts = ", ".join(f"count(*) FILTER (WHERE is_{name}) AS {name}" for name in flags)
        gap_of = "min(CASE WHEN is_gap THEN i END) AS gap_of"
        return f"SELECT {keys}, {self.often} AS often, {counts}, {gap_of} FROM ({rows}) GROUP BY {keys}"

    def _neighbours(self) -> str:
        """Each row with the time before it and the time and state after it, of the same id."""
        ahead = ", ".join(f"lead({s}) OVER win AS f{j}" for j, s in enumerate(self.state))
        times = "lead(t) OVER win AS t2, lag(t) OVER win AS t0"
        return f"SELECT *, {times}, {ahead} FROM {self.base} WINDOW win AS (PARTITION BY i ORDER BY t)"

    def _judge(self, found: dict[str, Column], ids: Column, state: Coding) -> tuple[str, ...]:
        """Errors and notes about what follows what."""
        if found["dup"].sum():
            raise twice(*self._offender("lag(t) OVER win", "x = t"))
        if found["clash"].sum():
            raise self._clash(state)
        gaps, alone = int(found["gap"].sum()), int(found["alone"].sum())
        if not self.after and alone == len(ids):
            raise too_short(len(ids))
        notes = []
        if gaps and self.roles.gaps == "error":
            one, before, row = self._offender("lag(t) OVER win", "x + 1 < t")
            got = f"{gaps}, the first of id {one!r} before {before}"
            raise InvalidDemonstrations("time", "no gaps", got, f"row {row}", GAPS_REMEDY)
        if gaps:
            whose = found["gap_of"]
            notes.append(note_gaps(gaps, f"the first of id {min(x for x in whose.tolist() if x is not None)!r}"))
        if alone and not self.after:
            first = ids[int(found["agent"][found["alone"] > 0].min())]
            notes.append(note_singles(alone, len(ids), repr(first.item() if hasattr(first, "item") else first)))
        return tuple(notes)

    def _offender(self, expression: str, test: str, column: str = "t") -> tuple[Any, Any, int]:
        """id, value and row of the first offender in the order of ids and times."""
        numbered = f"SELECT row_number() OVER () - 1 AS r, * FROM {self.base}"
        rows = f"SELECT *, {expression} AS x FROM ({numbered}) WINDOW win AS (PARTITION BY i ORDER BY t, r)"
        found = self.fetch(f"SELECT i, {column} AS v, r FROM ({rows}) WHERE {test} ORDER BY i, t, r LIMIT 1")
        return found["i"].tolist()[0], found["v"].tolist()[0], int(found["r"][0])

    def _clash(self, state: Coding) -> InvalidDemonstrations:
        near = "lead(t) OVER win = t + 1" if self.whole_times else "true"
        differs = " OR ".join(f"{n} <> lead({s}) OVER win" for n, s in zip(self.after, self.state, strict=True))
        said = "(" + ", ".join(self.after) + ")" if len(self.after) > 1 else self.after[0]
        _, value, row = self._offender(f"({near}) AND ({differs})", "x", said)
        return contradiction(repr(value), row)


def _ranked_ids(ids: str) -> str:
    return f"SELECT i, CAST(row_number() OVER (ORDER BY i) - 1 AS INTEGER) AS k FROM ({ids})"


def _ranks(
    name: str,
    columns: Sequence[str],
    coding: Coding,
    joins: list[str],
    own: Sequence[str] | None = None,
    outer: bool = False,
) -> str:
    """The expression for the rank of these columns; a join is added where values have labels."""
    if coding.ranked is None:
        return f"CAST(g.{columns[0]} AS INTEGER)"
    equal = " AND ".join(f"g.{c} = {name}_ranks.{o}" for c, o in zip(columns, own or columns, strict=True))
    joins.append(f"{'LEFT ' if outer else ''}JOIN ({coding.ranked}) AS {name}_ranks ON {equal}")
    return f"{name}_ranks.k"
