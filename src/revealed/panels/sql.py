"""A panel as one sub-query of DuckDB with short names, and what must hold of its single rows.

Columns are i (id), e (episode, where there is a column for it), t (time), u (the time as it was written), s0… (state),
a0… (action), n0… (next state, where there is a column for it), k0… (what is kept) and w (weight).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from revealed.errors import InvalidDemonstrations
from revealed.frames import WITHOUT_NUL, Column, Stored, as_plain, in_row, labelled, no_number
from revealed.panels.columns import (
    MONTHS,
    NUMERAL,
    SECONDS,
    Roles,
    are_slips,
    may_be_dates,
    no_dates,
    no_id,
    no_order,
    no_values,
    not_finite,
    require_counters,
    slipped,
    too_large,
)
from revealed.panels.groups import ROLES
from revealed.voices import shown
from revealed.written import EXACT, ISO, ZONE, number_last, quoted, sql_text, unmarked

if TYPE_CHECKING:
    from revealed.bins import Bins

VIEW = "revealed_panel"  # a name within the query; the user's catalogue does not see it
FROM = f"FROM {VIEW}"
WHOLE = ("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint")
REAL = ("float", "double", "decimal")


class Source:
    """The panel: `base` is the sub-query, `whole_times` tells whether times count periods."""

    def __init__(self, stored: Stored, roles: Roles) -> None:
        states, weights = (*roles.state, *roles.next_state), () if roles.weight is None else (roles.weight,)
        values = (roles.time, *weights, *(states if roles.bins is not None else ()))
        labels = [name for _, name in roles.of_labels]
        self.relation, self.roles, self._stored = stored.read(values, labels, apart=True, keep=True), roles, stored
        self.types = dict(
            zip(map(unmarked, self.relation.columns), (kind.id for kind in self.relation.types), strict=True)
        )
        self._ones: dict[str, Column] = {}
        width = 1 if roles.bins is not None else len(roles.state)
        self.state = [f"s{j}" for j in range(width)]
        self.action = [f"a{j}" for j in range(len(roles.action))]
        self.after = [f"n{j}" for j in range(width)] if roles.next_state else []
        self.kept = [f"k{j}" for j in range(len(roles.keep))]
        self.apart = "i" if roles.episode is None else "i, e"  # rows of different ones never follow each other
        self.often = "count(*)" if roles.weight is None else "sum(w)"
        self.base = f"(SELECT {', '.join(self._columns())} {FROM})"
        self.whole_times = self.kind("t") in "iu"

    def fetch(self, sql: str) -> dict[str, Column]:
        return self._stored.fetch(self.relation.query(VIEW, sql))

    def holds(self, test: str, x: str) -> bool:
        """Whether a test holds of every value of a column that is not missing."""
        sql = f"SELECT count(*) AS n {FROM} WHERE {x} IS NOT NULL AND NOT ({test})"
        return int(self.fetch(sql)["n"][0]) == 0

    def one(self, column: str) -> Column:
        """One value of a column, or none: enough to know what it holds."""
        if column not in self._ones:
            found = self.fetch(f"SELECT {column} AS x FROM {self.base} WHERE {column} IS NOT NULL LIMIT 1")["x"]
            plain = as_plain(self.role_of(column), found, InvalidDemonstrations) if found.size else found
            self._ones[column] = plain
        return self._ones[column]

    def kind(self, column: str) -> str:
        return self.one(column).dtype.kind

    def role_of(self, short: str) -> str:
        return ROLES[short[0]]

    def first_row(self, test: str) -> int:
        """The first row of the panel for which a test holds."""
        return int(self.fetch(f"SELECT min(r) AS r FROM ({self.numbered()}) WHERE {test}")["r"][0])

    def numbered(self) -> str:
        return f"SELECT row_number() OVER () - 1 AS r, * FROM {self.base}"

    # columns

    def _columns(self) -> list[str]:
        roles = self.roles
        self._require_numbers()
        self._require_exact()
        found = [f"{self._whole_or_text('id', roles.id)} AS i", f"{self._time()} AS t", f"{quoted(roles.time)} AS u"]
        found += [] if roles.episode is None else [f"{self._whole_or_text('episode', roles.episode)} AS e"]
        if roles.bins is not None:
            found += [f"{self._binned(roles.bins, roles.state)} AS s0"]
            found += [f"{self._binned(roles.bins, roles.next_state)} AS n0"] if roles.next_state else []
        else:
            found += [f"{label(name)} AS {short}" for name, short in zip(roles.state, self.state, strict=True)]
            found += [f"{sql} AS {short}" for sql, short in zip(self._next_states(), self.after, strict=True)]
        others = (*zip(roles.action, self.action, strict=True), *zip(roles.keep, self.kept, strict=True))
        found += [f"{label(name)} AS {short}" for name, short in others]
        return found + ([] if roles.weight is None else [f"CAST({quoted(roles.weight)} AS DOUBLE) AS w"])

    def _binned(self, bins: Bins, names: Sequence[str]) -> str:
        if len(names) == 1 and self.types[names[0]] == "varchar":
            return bins.sql_of_labels(names[0])
        return bins.sql(names)

    def _next_states(self) -> list[str]:
        """Next states; those of several columns are missing where one of them is, and whole numbers that missing ones
        made floats are whole again."""
        names, found = self.roles.next_state, []
        there = " AND ".join(f"{label(name)} IS NOT NULL" for name in names)
        for name, own in zip(names, self.roles.state, strict=False):
            x, kind, kind_of_state = label(name), self.types[labelled(name)], self.types[labelled(own)]
            whole = kind in REAL and kind_of_state in WHOLE and self.holds(f"isfinite({x}) AND {x} = round({x})", x)
            x = f"CAST({x} AS BIGINT)" if whole else x
            found.append(f"CASE WHEN {there} THEN {x} END" if len(names) > 1 else x)
        return found

    def _time(self) -> str:
        """Times as `in_periods` makes them."""
        name, period = self.roles.time, self.roles.period
        t, kind = quoted(name), self.types[name]
        self._require_present(f"{t} IS NULL")
        if kind == "varchar":
            t, kind = self._dates(name), "timestamp"
        elif kind in REAL or kind == "timestamp":
            self._require_times(t, kind in REAL)
        elif kind not in WHOLE:
            self._refuse_first(t, "true", no_order)
        if kind in REAL and self.holds(f"{t} = round({t})", t):
            kind = "bigint"
        elif kind in REAL and period is None:
            self._require_no_slips(t)
        if kind in WHOLE:
            t = f"CAST({t} AS BIGINT)"
            return self._counters(t) if period is None else self._numbered_periods(t, period)
        if period is None:
            return t
        if kind in REAL:
            raise no_dates(period)
        t = f"CAST({t} AS TIMESTAMP)"
        if period in SECONDS:
            return f"CAST(floor(epoch({t}) / {SECONDS[period]}) AS BIGINT)"
        if period == "week":
            return f"CAST(floor((floor(epoch({t}) / 86400) + 3) / 7) AS BIGINT)"
        return f"CAST(floor(((year({t}) - 1970) * 12 + month({t}) - 1) / {MONTHS[period]}) AS BIGINT)"

    def _counters(self, t: str) -> str:
        """As they are, unless they look like written dates."""
        ends = self.fetch(f"SELECT min({t}) AS a, max({t}) AS b {FROM}")
        if may_be_dates(ends["a"][0], ends["b"][0]):
            require_counters(self._distinct(t))
        return t

    def _distinct(self, t: str) -> Column:
        return self.fetch(f"SELECT DISTINCT {t} AS x {FROM} WHERE {t} IS NOT NULL")["x"]

    def _numbered_periods(self, t: str, period: str) -> str:
        if period == "year" and self.holds(f"{t} BETWEEN 1000 AND 9999", t):
            return t
        written = f"{t} % 100 BETWEEN 1 AND 12 AND {t} BETWEEN 100001 AND 999912"
        if period in MONTHS and self.holds(written, t):
            return f"(({t} // 100 * 12 + {t} % 100 - 1) // {MONTHS[period]})"
        raise no_dates(period, self._distinct(t))

    def _dates(self, name: str) -> str:
        """Dates written as text, all alike."""
        x = quoted(name)
        length = self.fetch(f"SELECT max(length({x})) AS n {FROM}")["n"][0]
        day = "" if length and int(length) > len("2024-07") else " || '-01'"
        good = f"regexp_full_match({x}, '{ISO}') AND length({x}) = {length or 0}"
        good += f" AND TRY_CAST({x}{day} AS TIMESTAMP) IS NOT NULL"
        if not self.holds(good, x):
            rows = f"SELECT row_number() OVER () - 1 AS r, {x} AS x {FROM}"
            bad, number = good.replace(x, "x"), f"regexp_full_match(x, '{NUMERAL}')"  # as in memory
            found = self.fetch(
                f"SELECT r, x FROM ({rows}) WHERE x IS NOT NULL AND NOT ({bad}) ORDER BY {number}, r LIMIT 1"
            )
            raise no_order(str(found["x"][0]), int(found["r"][0]))
        zoned = f"regexp_matches({x}, {sql_text(':.*' + ZONE + '$')})"
        at = f"CAST({x}{day} AS TIMESTAMPTZ) AT TIME ZONE 'UTC'"
        return f"CASE WHEN {zoned} THEN {at} ELSE CAST({x}{day} AS TIMESTAMP) END"

    def _require_no_slips(self, t: str) -> None:
        """As in memory."""
        found = self.fetch(f"SELECT count(*) FILTER ({t} <> round({t})) AS n, count(*) AS total {FROM}")
        n, total = int(found["n"][0]), int(found["total"][0])
        if are_slips(n, total):
            complaint = partial(slipped, n, total)
            self._refuse_first(t, f"{t} <> round({t})", lambda text, row: complaint(text, f"row {row}"))

    def _require_times(self, t: str, real: bool) -> None:
        """Times are finite, and floats among them small enough to be whole numbers where they are."""
        tests = [(f"NOT isfinite({t})", not_finite), *([(f"abs({t}) > {EXACT}", too_large)] if real else [])]
        for bad, complaint in tests:
            self._refuse_first(t, bad, complaint)

    def _require_present(self, missing: str) -> None:
        """No time is missing: asked before it is asked what they are."""
        n = int(self.fetch(f"SELECT count(*) AS n {FROM} WHERE {missing}")["n"][0])
        if n:
            self._refuse_first("1", missing, lambda _, row: no_values("time", n, f"row {row}"))

    def _refuse_first(self, x: str, bad: str, complaint: Callable[[str, int], InvalidDemonstrations]) -> None:
        """Complain about the first row, if there is one, for which a test holds."""
        rows = f"SELECT row_number() OVER () - 1 AS r, {x} AS x, {bad} AS bad {FROM}"
        found = self.fetch(f"SELECT r, CAST(x AS VARCHAR) AS x FROM ({rows}) WHERE bad ORDER BY r LIMIT 1")
        if found["r"].size:
            raise complaint(str(found["x"][0]), int(found["r"][0]))

    def _require_exact(self) -> None:
        """No label is a whole number that floats have rounded."""
        for role, name in self.roles.each():
            if self.types.get(labelled(name)) in REAL:
                large = f"abs({label(name)}) > {EXACT} AND isfinite({label(name)})"
                self._refuse_first(label(name), large, partial(too_large, argument=role))

    def _whole_or_text(self, role: str, name: str) -> str:
        """Ids and episodes as `as_agent_ids` makes them."""
        x, odd = label(name), partial(no_id, argument=role)
        if self.types[labelled(name)] not in REAL:
            return x
        self._refuse_first(x, f"{x} <> round({x}) OR NOT isfinite({x})", lambda text, row: odd(text, in_row(row)))
        return f"CAST({x} AS BIGINT)"

    def _require_numbers(self) -> None:
        """Weights and what bins are made of are numbers."""
        for role, name in self.roles.of_numbers:
            labels = role == "state" and len(self.roles.state) == 1 and self.types[name] == "varchar"  # of the bins
            labels = labels and self.holds(f"{number_last(quoted(name))} < 2", quoted(name))
            if self.types[name] not in (*WHOLE, *REAL, "boolean", "null") and not labels:
                rows = f"SELECT row_number() OVER () - 1 AS r, {quoted(name)} AS x {FROM}"
                order = f"{number_last('x')}, r" if self.types[name] == "varchar" else "r"
                found = self.fetch(f"SELECT r, x FROM ({rows}) WHERE x IS NOT NULL ORDER BY {order} LIMIT 1")
                values = as_plain(role, found["x"], InvalidDemonstrations)
                raise no_number(role, name, values, InvalidDemonstrations, lambda _, r=int(found["r"][0]): in_row(r))

    # what must hold of single rows

    def require_values(self) -> None:
        """No missing values, and weights that are weights."""
        if not self.fetch(f"SELECT count(*) AS n {FROM}")["n"][0]:
            raise InvalidDemonstrations("frame", "at least one row", "no rows")
        shorts = [
            *self.apart.split(", "),
            "t",
            *self.state,
            *self.action,
            *self.kept,
            *(["w"] if self.roles.weight else []),
        ]
        absent = {short: f"{short} IS NULL" for short in shorts}
        counts = ", ".join(f"count(*) FILTER (WHERE {test}) AS {short}" for short, test in absent.items())
        found = self.fetch(f"SELECT {counts} FROM {self.base}")
        for short, test in absent.items():
            if found[short][0]:
                raise no_values(self.role_of(short), int(found[short][0]), f"row {self.first_row(test)}")
        if self.roles.episode is not None:
            self._require_episodes(label(self.roles.episode))
        if self.roles.weight is not None:
            self._require_weights()

    def _require_episodes(self, e: str) -> None:
        """Episodes are labels, as ids are, although they are never fetched."""
        if self.kind("e") in "UT":
            nul = partial(InvalidDemonstrations, "episode", WITHOUT_NUL)
            self._refuse_first(e, f"contains({e}, chr(0))", lambda text, row: nul(shown(text), in_row(row)))

    def _require_weights(self) -> None:
        bad = "w < 0 OR NOT isfinite(w)"
        found = self.fetch(f"SELECT count(*) FILTER (WHERE {bad}) AS n, sum(w) AS total FROM {self.base}")
        if found["n"][0]:
            row = self.first_row(bad)
            value = self.fetch(f"SELECT w FROM ({self.numbered()}) WHERE r = {row}")["w"][0]
            raise InvalidDemonstrations("weight", "row weights >= 0", value, f"row {row}")
        if not float(found["total"][0]) > 0.0:
            raise InvalidDemonstrations("weight", "some weight above 0", "all zero")


def label(name: str) -> str:
    """The labels of a column, in SQL."""
    return quoted(labelled(name))


def as_ids(values: Column) -> Column:
    """Ids as they are kept, in order."""
    return as_plain("id", values, InvalidDemonstrations) if values.size else values
