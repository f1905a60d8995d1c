"""A panel counted inside DuckDB, out of core: one grouping, and one sort for what follows what.

Values are grouped as they are and coded afterwards, by their rank among the distinct ones: what is joined and fetched
has the size of the counts, not of the panel. The short names of columns are those of `sql.Source`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from revealed.checks import Ints
from revealed.errors import InvalidDemonstrations
from revealed.frames import Column, Stored, as_plain
from revealed.labels import MOST_INDEX
from revealed.panels.columns import (
    GAPS_REMEDY,
    Roles,
    are_indices,
    contradiction,
    in_words,
    index_of_ranks,
    no_index,
    note_fractional,
    note_gaps,
    note_only_gaps,
    note_singles,
    note_unlooked,
    out_of_bins,
    require_kind,
    too_short,
    twice,
    unchecked_gaps,
)
from revealed.panels.groups import Coding, Counted, Groups, one_each
from revealed.panels.sql import Source, as_ids
from revealed.progress import Progress
from revealed.voices import shown


def count_relation(stored: Stored, roles: Roles, states: Any, actions: Any) -> Counted:
    """The counts of a relation's rows."""
    with Progress("Counting the panel", total=4) as bar:
        count = _Count(stored, roles)
        count.require_values()
        bar.update("labels and ids")
        state = count.coding("state", states, count.state, count.after)
        action = count.coding("action", actions, count.action, [])
        ids = as_ids(count.fetch(f"SELECT DISTINCT i FROM {count.base} ORDER BY i")["i"])
        bar.update("decisions")
        decisions = count.decisions(state, action)
        bar.update("moves")
        starts, moves, notes = count.what_follows(state, action, ids)
        columns = count.columns(ids)
    return Counted(Groups(decisions, starts, moves), tuple(ids.tolist()), state, action, notes, columns)


class _Count(Source):
    """One count under way."""

    # labels

    def coding(self, role: str, known: Any, columns: list[str], others: list[str]) -> Coding:
        """How the values of these columns become indices; `others` share their labels."""
        if role == "state" and self.roles.bins is not None:
            self._require_within_bins(columns + others)
            return Coding(self.roles.bins.labels, None, None)
        samples = [[self.one(column) for column in columns]]
        if others and all(self.one(column).size for column in others):
            samples.append([self.one(column) for column in others])
        for pair in zip(*samples, strict=True):
            require_kind(role, pair, known)
        if are_indices(known, samples):
            self._require_indices(columns + others)
            return Coding(None, None, None)
        ranked = self._ranked(columns, others)
        found = self.fetch(f"SELECT {', '.join(columns)} FROM ({ranked}) ORDER BY k")
        distinct = [as_plain(role, found[column], InvalidDemonstrations) for column in columns]
        labels, codes = index_of_ranks(role, known, distinct, lambda k: self._first_of(k, columns, others, ranked))
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

    def _first_of(self, lost: Ints, columns: list[str], others: list[str], ranked: str) -> tuple[int, str, str]:
        """Of these ranks the one that is met first, in which role, and where."""
        chosen = f"SELECT * FROM ({ranked}) AS ranks WHERE k IN ({', '.join(map(str, lost.tolist()))})"
        places = []
        for block in filter(None, (columns, others)):
            equal = " AND ".join(f"p.{c} = l.{own}" for c, own in zip(block, columns, strict=True))
            joined = f"SELECT r, k FROM ({self.numbered()}) AS p JOIN ({chosen}) AS l ON {equal} ORDER BY r LIMIT 1"
            found = self.fetch(joined)
            places += [(int(r), self.role_of(block[0]), int(k)) for r, k in zip(found["r"], found["k"], strict=True)]
        row, role, rank = min(places, key=lambda place: place[0])
        return rank, role, f"row {row}"

    def _require_indices(self, columns: list[str]) -> None:
        for column in columns:
            test = f"{column} < 0 OR {column} > {MOST_INDEX}"
            bad = self.fetch(f"SELECT count(*) AS n FROM {self.base} WHERE {test}")["n"][0]
            if bad:
                row = self.first_row(test)
                value = self.fetch(f"SELECT {column} AS x FROM ({self.numbered()}) WHERE r = {row}")["x"][0]
                raise no_index(self.role_of(column), int(value), row)

    def columns(self, ids: Column) -> dict[str, tuple[Any, ...]]:
        """What is kept: a value per agent."""
        found = {}
        for name, short in zip(self.roles.keep, self.kept, strict=True):
            pairs = self.fetch(f"SELECT DISTINCT i, {short} AS k FROM {self.base} ORDER BY i, k")
            found[name] = one_each(name, ids, as_ids(pairs["i"]), as_plain("keep", pairs["k"], InvalidDemonstrations))
        return found

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
            f"coalesce({to}, -1) AS z, CAST(often AS DOUBLE) AS often, n_rows, dup, gap, gap_of, alone, clash "
            f"FROM g {' '.join(joins)}"
        )
        notes = self._judge(found, ids)
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
        derived = [f"{expression} AS z{j}" for j, expression in enumerate(led)]
        derived += [
            "CASE WHEN t0 IS NULL THEN i END AS start",  # a row after a gap is none
            *(f"{test} AS is_{name}" for name, test in flags.items()),
        ]
        rows = f"SELECT *, {', '.join(derived)} FROM ({self._neighbours()})"
        keys = ", ".join([*self.state, *self.action, *(f"z{j}" for j in width), "start"])
        counts = ", ".join(f"count(*) FILTER (WHERE is_{name}) AS {name}" for name in flags)
        gap_of = "min(CASE WHEN is_gap THEN i END) AS gap_of"
        sums = f"{self.often} AS often, count(*) AS n_rows, {counts}, {gap_of}"
        return f"SELECT {keys}, {sums} FROM ({rows}) GROUP BY {keys}"

    def _neighbours(self) -> str:
        """Each row with the time before it and the time and state after it, of the same id and episode."""
        ahead = ", ".join(f"lead({s}) OVER win AS f{j}" for j, s in enumerate(self.state))
        times = "lead(t) OVER win AS t2, lag(t) OVER win AS t0"
        return f"SELECT *, {times}, {ahead} FROM {self.base} WINDOW win AS (PARTITION BY {self.apart} ORDER BY t)"

    def _judge(self, found: dict[str, Column], ids: Column) -> tuple[str, ...]:
        """Errors and notes about what follows what."""
        if found["dup"].sum():
            raise twice(*self._offender("lag(t) OVER win", "x = t"), self.roles)
        if found["clash"].sum():
            raise self._clash()
        gaps, alone = int(found["gap"].sum()), int(found["alone"].sum())
        parts = len(ids) if self.roles.episode is None else int(found["n_rows"][found["agent"] >= 0].sum())
        if not self.after and alone == parts:
            raise too_short(parts, self.roles.unit)
        notes = self._gap_notes(gaps, found["gap_of"])
        notes += [note_only_gaps()] if gaps and not (found["z"] >= 0).any() else []
        if alone and not self.after:
            first = ids[int(found["agent"][found["alone"] > 0].min())]
            first = self.roles.first_single(first.item() if hasattr(first, "item") else first)
            notes.append(note_singles(alone, parts, first, self.roles.unit))
        return tuple(notes)

    def _gap_notes(self, gaps: int, whose: Column) -> list[str]:
        if self.roles.gaps == "error" and not self.whole_times:
            raise unchecked_gaps()
        if gaps and self.roles.gaps == "error":
            one, before, row = self._offender("lag(t) OVER win", "x + 1 < t")
            got = f"{gaps}, the first of id {one!r} before {in_words(before)}"
            raise InvalidDemonstrations("time", "no gaps", got, f"row {row}", GAPS_REMEDY)
        notes = [] if self.whole_times else [self._fractional() if self.kind("t") == "f" else note_unlooked()]
        if gaps:
            first = min(one for one in whose.tolist() if one is not None)
            notes.insert(0, note_gaps(gaps, f"the first of id {first!r}"))
        return notes

    def _fractional(self) -> str:
        odd = f"SELECT r, t, count(*) OVER () AS n FROM ({self.numbered()}) WHERE t <> round(t) ORDER BY r LIMIT 1"
        found = self.fetch(f"SELECT *, (SELECT count(*) FROM {self.base}) AS total FROM ({odd})")
        n, total, row = (int(found[name][0]) for name in ("n", "total", "r"))
        return note_fractional(n, total, float(found["t"][0]), row)

    def _offender(self, expression: str, test: str, column: str = "u") -> tuple[Any, Any, int]:
        """id, value and row of the first offender in the order of ids and times."""
        window = f"WINDOW win AS (PARTITION BY {self.apart} ORDER BY t, r)"
        rows = f"SELECT *, {expression} AS x FROM ({self.numbered()}) {window}"
        ordered = f"ORDER BY {self.apart}, t, r LIMIT 1"
        found = self.fetch(f"SELECT i, {column} AS v, r FROM ({rows}) WHERE {test} {ordered}")
        return found["i"].tolist()[0], found["v"][0], int(found["r"][0])

    def _clash(self) -> InvalidDemonstrations:
        near = "lead(t) OVER win = t + 1" if self.whole_times else "true"
        differs = " OR ".join(f"{n} <> lead({s}) OVER win" for n, s in zip(self.after, self.state, strict=True))
        said = "(" + ", ".join(self.after) + ")" if len(self.after) > 1 else self.after[0]
        _, value, row = self._offender(f"({near}) AND ({differs})", "x", said)
        return contradiction(shown(value.item() if hasattr(value, "item") else value), row)


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
