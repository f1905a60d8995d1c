"""Frames of decisions in memory → aligned arrays of agents, times, states and actions, and the way back.

Rows may come in any order: the time column is mandatory and orders them within each id. Panels that stay where they
are, on disk or in a distributed engine, are counted there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from revealed.checks import Floats, Ints
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.frames import At, Column, Table, as_label_values, as_plain, in_row, missing_in, require_exact
from revealed.labels import parts_for, plain
from revealed.panels.clock import is_own, periods_late
from revealed.panels.columns import (
    GAPS_REMEDY,
    GOAL_REMEDY,
    KEEP_REMEDY,
    MISSING_REMEDY,
    Roles,
    are_indices,
    as_agent_ids,
    as_indices,
    contradiction,
    distinct_rows,
    in_periods,
    in_words,
    index_of_ranks,
    may_be_dates,
    note_fractional,
    note_gaps,
    note_only_gaps,
    note_singles,
    note_unlooked,
    other_goal,
    require_counters,
    require_kind,
    require_no_slips,
    too_short,
    trip_or_two,
    twice,
    unchecked_gaps,
    varies,
)
from revealed.tables import require_countable
from revealed.voices import shown

if TYPE_CHECKING:
    import pandas as pd

    from revealed.bins import Bins


@dataclass(frozen=True)
class Panel:
    """Decisions sorted by agent and time; `next_state` is −1 where it was not seen; `row` is where each came from;
    `goal` is None where trips have none; `entry` is when each one's trajectory entered, None where it was said which
    time is period 0."""

    agent: Ints
    time: Ints
    state: Ints
    action: Ints
    next_state: Ints
    starts_here: npt.NDArray[np.bool_]
    row: Ints
    weight: Floats | None
    goal: Ints | None
    ids: tuple[Any, ...]
    state_labels: tuple[Any, ...] | None
    action_labels: tuple[Any, ...] | None
    notes: tuple[str, ...]
    columns: dict[str, tuple[Any, ...]]
    entry: Column | None = None

    @property
    def n_states(self) -> int:
        """States that the rows show."""
        goals = [] if self.goal is None else [self.goal]
        return max(int(part.max()) for part in (self.state, self.next_state, *goals)) + 1

    @property
    def n_actions(self) -> int:
        return int(self.action.max()) + 1


def read_panel(table: Table, roles: Roles, states: Any, actions: Any, first_time: Any) -> Panel:
    """Sort, check and code the columns of a table in memory."""
    episode = None if roles.episode is None else as_agent_ids(_values(table, "episode", roles.episode), "episode")
    time = as_plain("time", table.raw("time", roles.time), table.error, MISSING_REMEDY)
    rows = _Rows.of(as_agent_ids(_values(table, "id", roles.id)), time, episode, roles)
    followed = rows.followed()
    labels, places = _code_states(table, roles, states)
    action_labels, action = _code_actions(table, roles, actions)
    order = rows.row
    state, given, goal = (None if (part := places.get(role)) is None else part[order] for role in _OF_STATES)
    assert state is not None
    following = np.full(order.size, -1, dtype=np.intp)
    following[:-1][followed] = state[1:][followed]
    if given is not None:
        following = _given_next(given, following, followed, order, labels)
    begins = rows.begins()
    if goal is not None:
        rows.require_one_goal(goal, followed, labels)
        begins = rows.begins_trip(goal, following, followed, labels)
    position, entry = rows.positions(begins, first_time)
    return Panel(
        agent=rows.agent,
        time=position,
        state=state,
        action=action[order],
        next_state=following,
        starts_here=begins,
        row=order,
        weight=None if roles.weight is None else _weights(table, roles.weight)[order],
        goal=goal,
        ids=tuple(rows.ids.tolist()),
        state_labels=labels,
        action_labels=action_labels,
        notes=rows.notes(followed, begins),
        entry=entry,
        columns={name: rows.one_each(name, _values(table, "keep", name, KEEP_REMEDY)) for name in roles.keep},
    )


@dataclass(frozen=True)
class _Rows:
    """Rows in the order of agents, episodes and times: whose, when (`clock` counts periods, `shown` is as it was
    written), where in the frame, and which are followed by a row of the same agent (and episode, where there are
    any)."""

    roles: Roles
    ids: Column
    agent: Ints
    clock: Column
    shown: Column
    row: Ints
    same: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, id: Column, time: Column, episode: Column | None, roles: Roles) -> _Rows:
        ids, agent = np.unique(id, return_inverse=True)
        clock = in_periods(time, roles.period)
        require_no_slips(clock)
        if roles.period is None and clock.dtype.kind in "iu" and may_be_dates(clock.min(), clock.max()):
            require_counters(np.unique(clock))
        part = np.zeros(agent.size, dtype=np.intp) if episode is None else np.unique(episode, return_inverse=True)[1]
        order = np.lexsort((clock, part, agent))
        agent, part, clock, shown = agent[order], part[order], clock[order], time[order]
        same = (agent[1:] == agent[:-1]) & (part[1:] == part[:-1])
        again = same & (clock[1:] == clock[:-1])
        if again.any():
            i = _first(again) + 1
            raise twice(ids[agent[i]].item(), shown[i], int(order[i]), roles)
        if not same.any() and not roles.next_state and not roles.goal:  # trips may be short
            raise too_short(int((~same).sum()) + 1, roles.unit)
        if clock.dtype.kind not in "iu" and roles.gaps == "error":
            raise unchecked_gaps()
        return cls(roles, ids, agent, clock, shown, order, same)

    def followed(self) -> npt.NDArray[np.bool_]:
        """(n − 1,): which rows are followed by the next one. Whole-number times that skip a period break the trajectory
        there: the next state is not known."""
        whole = self.clock.dtype.kind in "iu"
        return self.same & (np.diff(self.clock.astype(np.int64)) == 1) if whole else self.same  # small types would wrap

    def begins(self) -> npt.NDArray[np.bool_]:
        """(n,): the first row of each id, or of each of its episodes; a row after a gap is not a start."""
        return np.concatenate([[True], ~self.same])

    def begins_trip(
        self, goal: Ints, following: Ints, followed: npt.NDArray[np.bool_], labels: tuple[Any, ...] | None
    ) -> npt.NDArray[np.bool_]:
        """(n,): the first row of each trip. Behind a gap another one begins where the goal is another, or the one
        before had arrived; what else may lie in a gap on the way to one goal is for the user to say."""
        gap = self.same & ~followed
        other = gap & ((goal[1:] != goal[:-1]) | (following[:-1] == goal[:-1]))
        if self.roles.episode is None and (gap & ~other).any():
            i = _first(gap & ~other)
            whither = int(goal[i]) if labels is None else labels[goal[i]]
            times = (self.shown[i], self.shown[i + 1])
            raise trip_or_two(self.ids[self.agent[i]].item(), whither, times, int(self.row[i + 1]), self.roles.id)
        return np.concatenate([[True], ~self.same | other])

    def positions(self, begins: npt.NDArray[np.bool_], first_time: Any) -> tuple[Ints, Column | None]:
        """Each row's time since `first_time`, or since its trajectory's own first row; and when its trajectory entered,
        where nobody said which of the two is meant."""
        first, which = np.flatnonzero(begins), np.cumsum(begins) - 1
        whole = self.clock.dtype.kind in "iu"
        clock = self.clock.astype(np.int64) if whole else np.arange(which.size)
        position = (clock - clock[first][which]).astype(np.intp)
        if is_own(first_time):
            return position, None
        entry = self.shown[first] if self.clock.dtype.kind == "f" else in_periods(self.shown[first], None)
        if first_time is None:
            return position, entry[which]
        return position + periods_late(entry, first_time, self.roles.period)[which], None

    def require_one_goal(self, goal: Ints, followed: npt.NDArray[np.bool_], labels: tuple[Any, ...] | None) -> None:
        """Rows that follow each other belong to one trip, which has one goal."""
        changes = followed & (goal[1:] != goal[:-1])
        if changes.any():
            i = _first(changes) + 1
            was, now = (int(k) if labels is None else labels[k] for k in (goal[i - 1], goal[i]))
            raise other_goal(was, now, self.ids[self.agent[i]].item(), self.shown[i], int(self.row[i]))

    def one_each(self, name: str, column: Column) -> tuple[Any, ...]:
        """The value of a column for each agent, which has one."""
        values = column[self.row]
        own = values[np.concatenate([[True], self.agent[1:] != self.agent[:-1]])]
        other = values != own[self.agent]
        if other.any():
            i = _first(other)
            one, was, now = self.ids[self.agent[i]].item(), own[self.agent[i]], values[i]
            raise varies(name, one, plain(was), plain(now), f"row {self.row[i]}")
        return tuple(own.tolist())

    def notes(self, followed: npt.NDArray[np.bool_], begins: npt.NDArray[np.bool_]) -> tuple[str, ...]:
        """What a reader of the counts should know; a gap is an error where the user wants it so."""
        notes, gap = [], ~followed & ~begins[1:]
        if gap.any():
            i = _first(gap)
            between = f"{in_words(self.shown[i])} and {in_words(self.shown[i + 1])}"
            first = f"the first of id {self.ids[self.agent[i]].item()!r} between {between}, row {self.row[i + 1]}"
            if self.roles.gaps == "error":
                raise InvalidDemonstrations("time", "no gaps", f"{int(gap.sum())}, {first}", remedy=GAPS_REMEDY)
            notes.append(note_gaps(int(gap.sum()), first))
            notes += [] if followed.any() else [note_only_gaps()]
        if self.clock.dtype.kind == "M":
            notes.append(note_unlooked())
        if self.clock.dtype.kind == "f":
            notes.append(self._fractional())
        apart = np.concatenate([[True], ~self.same, [True]])
        alone = np.flatnonzero(apart[1:] & apart[:-1])
        if alone.size and not self.roles.next_state:
            first = self.roles.first_single(self.ids[self.agent[alone[0]]].item())
            notes.append(note_singles(alone.size, int(apart.sum()) - 1, first, self.roles.unit))
        return tuple(notes)

    def _fractional(self) -> str:
        odd = np.flatnonzero(self.clock != np.round(self.clock))
        first = odd[np.argmin(self.row[odd])]
        return note_fractional(odd.size, self.clock.size, float(self.clock[first]), int(self.row[first]))


_OF_STATES = {"state": "states", "next_state": "next states", "goal": "goals"}  # roles that share labels, in words


@dataclass(frozen=True)
class _Block:
    """Columns whose values together stand for one state or action per row; `rows` tells which, where not all, and
    `places` what they are called where they are no rows of a frame."""

    role: str
    columns: list[Column]
    rows: Ints | None = None
    places: list[str] | None = None

    def row(self, i: Any) -> int:
        return int(i if self.rows is None else self.rows[i])

    def at(self, i: Any) -> str:
        return in_row(self.row(i)) if self.places is None else self.places[int(i)]


def _code_states(table: Table, roles: Roles, known: Any) -> tuple[tuple[Any, ...] | None, dict[str, Ints]]:
    """Labels, and by role an index for every row: `state`, and where there are columns for them `next_state` (−1 where
    it is missing) and `goal`."""
    blocks = [_Block("state", [_of_state(table, "state", name, roles) for name in roles.state])]
    blocks += _next_states(table, roles)
    if roles.goal:
        blocks.append(_Block("goal", [_of_state(table, "goal", name, roles, GOAL_REMEDY) for name in roles.goal]))
    labels, codes = code("state", known, blocks, roles.bins)
    found = {"next_state": np.full(table.n_rows, -1, dtype=np.intp)} if roles.next_state else {}
    for block, index in zip(blocks, codes, strict=True):
        if block.rows is None:
            found[block.role] = index
        else:
            found[block.role][block.rows] = index
    return labels, found


def _next_states(table: Table, roles: Roles) -> list[_Block]:
    """Next states where they are not missing; nothing where all are."""
    if not roles.next_state:
        return []
    raw = [_raw(table, "next_state", name, roles) for name in roles.next_state]
    there = np.flatnonzero(~np.logical_or.reduce([missing_in(column) for column in raw]))
    if not there.size:
        return []
    at = _Block("next_state", [], there).at
    after = [as_plain("next_state", column[there], table.error, at=at) for column in raw]
    after = [_whole_again(column, at) for column in after] if roles.bins is None else after
    return [_Block("next_state", after, there)]


def _whole_again(column: Column, at: At) -> Column:
    """Whole numbers that became floats because some were missing."""
    require_exact("next_state", column, InvalidDemonstrations, at)
    whole = column.dtype.kind == "f" and bool(np.all(np.isfinite(column) & (column == np.round(column))))
    return column.astype(np.int64) if whole else column


def _raw(table: Table, role: str, name: str, roles: Roles) -> Column:
    """A column of states: labels, or numbers where bins make states of them."""
    return table.raw_labels(role, name) if roles.bins is None else table.raw(role, name)


def _of_state(table: Table, role: str, name: str, roles: Roles, remedy: str = MISSING_REMEDY) -> Column:
    if roles.bins is None:
        return _values(table, role, name, remedy)
    return as_plain(role, table.raw(role, name), table.error, remedy)


def _values(table: Table, role: str, name: str, remedy: str = MISSING_REMEDY) -> Column:
    return table.label_column(role, name, remedy)


def _code_actions(table: Table, roles: Roles, known: Any) -> tuple[tuple[Any, ...] | None, Ints]:
    block = _Block("action", [_values(table, "action", name) for name in roles.action])
    labels, (action,) = code("action", known, [block])
    return labels, action


def code(
    role: str,
    known: Any,
    blocks: Sequence[_Block],
    bins: Bins | None = None,
) -> tuple[tuple[Any, ...] | None, list[Ints]]:
    """Blocks of columns as indices, and the labels behind them, which the blocks share."""
    columns = [block.columns for block in blocks]
    if bins is not None:
        return bins.labels, [bins.code(*block) for block in columns]
    who = " and ".join(_OF_STATES.get(block.role, block.role) for block in blocks)
    for alike in zip(*columns, strict=True):
        require_kind(role, alike, known, who)
    if are_indices(known, columns):
        return None, [as_indices(block.role, block.columns[0], block.rows) for block in blocks]
    distinct, ranks = distinct_rows(columns)

    def first(lost: Ints) -> tuple[int, str, str]:
        met = [(k, np.flatnonzero(np.isin(rank, lost))) for k, rank in enumerate(ranks)]
        _, k, at = min((blocks[k].row(at[0]), k, at[0]) for k, at in met if at.size)
        return int(ranks[k][at]), blocks[k].role, blocks[k].at(at)

    labels, codes = index_of_ranks(role, known, distinct, first)
    return labels, [codes[rank] for rank in ranks]


class Listed(NamedTuple):
    """Labels of states or actions in some role, and where each was written, in words."""

    role: str
    labels: list[Any]
    places: list[str]


def code_lists(role: str, known: Any, lists: Sequence[Listed]) -> tuple[tuple[Any, ...] | None, list[Ints]]:
    """Lists of labels as indices, and the labels, which they share: as those of columns are read. Labels of several
    parts are tuples."""
    width = next((len(one) for one in lists[0].labels if isinstance(one, tuple)), 0)
    blocks = []
    for one in lists:
        odd = next((k for k, x in enumerate(one.labels) if (len(x) if isinstance(x, tuple) else 0) != width), None)
        if odd is not None:
            expected = f"labels of one form (elsewhere tuples of {width})"
            raise InvalidDemonstrations(one.role, expected, shown(plain(one.labels[odd])), one.places[odd])
        columns = [_column([label[j] for label in one.labels], one) for j in range(width)]
        blocks.append(_Block(one.role, columns or [_column(one.labels, one)], None, one.places))
    labels, codes = code(role, known, blocks)
    return labels, [np.asarray(index, dtype=np.intp) for index in codes]


def _column(labels: Sequence[Any], one: Listed) -> Column:
    values = np.empty(len(labels), dtype=object)
    values[:] = labels
    at = one.places.__getitem__
    found = as_label_values(one.role, values, False, InvalidDemonstrations, at)
    found = as_plain(one.role, found, InvalidDemonstrations, _MISSING, at)
    require_exact(one.role, found, InvalidDemonstrations, at)
    return found


_MISSING = "Drop or fill them."


def _first(where: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(where)[0])


def _weights(table: Table, name: str) -> Floats:
    weight = table.numbers("weight", name)
    if (weight < 0.0).any():
        row = _first(weight < 0.0)
        raise InvalidDemonstrations("weight", "row weights >= 0", weight[row], f"row {row}")
    require_countable("weight", weight)
    if not weight.any():
        raise InvalidDemonstrations("weight", "some weight above 0", "all zero")
    return weight


def _given_next(
    given: Ints, following: Ints, followed: npt.NDArray[np.bool_], order: Ints, labels: tuple[Any, ...] | None
) -> Ints:
    """Next states as given, where they are; they must be the state of the following row."""
    clash = followed & (given[:-1] >= 0) & (given[:-1] != following[:-1])
    if clash.any():
        i = _first(clash)
        said, seen = (k if labels is None else shown(labels[k]) for k in (int(given[i]), int(following[i])))
        raise contradiction(f"{said} where {seen} follows", int(order[i]))
    return np.where(given >= 0, given, following)


def write_panel(
    steps: Any, names: dict[str, Any], ids: Any, state_labels: Any, action_labels: Any, kept: dict[str, Any]
) -> pd.DataFrame:
    """Decisions as a frame, the way back from `read_panel`; `names` are those of the columns, None leaves one out.

    Labels of several columns are written into columns of as many names; those `kept` have a value per agent.
    """
    import pandas as pd

    labels = {"agent": ids, "action": action_labels} | dict.fromkeys(_OF_STATES, state_labels)
    columns: list[tuple[Any, Any]] = []
    several = names.get("episode") is not None
    for field, name in names.items():
        if name is not None or field == "time":
            _require_names(field, name)
        if field == "episode":
            columns += [(name, _number_within(steps.agent, steps.first))] if several else []
        elif field == "time":
            columns.append((name, steps.time if several else _apart(steps.agent, steps.time, steps.first)))
        elif isinstance(name, list | tuple):
            columns += _spread(field, name, labels[field], getattr(steps, field))
        elif name is not None:
            columns.append((name, _labelled(labels.get(field), getattr(steps, field))))
    columns += [(name, _labelled(values, steps.agent)) for name, values in kept.items()]
    if len({name for name, _ in columns}) < len(columns):
        raise InvalidInput("to_frame", "distinct column names", shown([name for name, _ in columns]))
    return pd.DataFrame(dict(columns))


def _require_names(field: str, given: Any) -> None:
    """The name of a column; of labels also several."""
    several = list(given) if isinstance(given, list | tuple) and field in ("action", *_OF_STATES) else [given]
    if not several or not all(isinstance(name, str) and name.isprintable() for name in several):
        role = "id" if field == "agent" else field
        raise InvalidInput(role, "the name of a column" + (", or several" if field != "time" else ""), shown(given))


def _spread(field: str, names: Sequence[str], labels: Any, index: Ints) -> list[tuple[str, Any]]:
    """A column per part of the labels."""
    if labels is None or not all(isinstance(label, tuple) and len(label) == len(names) for label in labels):
        raise InvalidInput(field, "one name, since labels do not have that many parts", shown(list(names)))
    parts = parts_for(field, labels, names)
    return [(name, _labelled(part, index)) for name, part in zip(names, parts, strict=True)]


def _labelled(labels: tuple[Any, ...] | None, index: Ints) -> Any:
    """What the indices stand for, or the indices themselves; missing where an index is −1."""
    import pandas as pd

    if labels is None:
        return index if (index >= 0).all() else pd.Series(index, dtype="Int64").where(index >= 0)
    names = np.empty(len(labels) + 1, dtype=object)
    names[:-1] = labels
    return pd.Series(names[index]).infer_objects()  # −1 picks the None at the end


def _number_within(agent: Ints, first: npt.NDArray[np.bool_]) -> Ints:
    """Of each row the number of its trajectory among those of its agent, from 0."""
    whose, which = agent[first], np.cumsum(first) - 1
    order = np.argsort(whose, kind="stable")
    begins = np.searchsorted(whose[order], whose[order])
    number = np.empty(whose.size, dtype=np.intp)
    number[order] = np.arange(whose.size) - begins
    return number[which]


def _apart(agent: Ints, time: Ints, first: npt.NDArray[np.bool_]) -> Ints:
    """Times at which no trajectory touches the one before it of the same agent: those in the way begin later."""
    clock, begins = time.copy(), np.flatnonzero(first)
    free: dict[int, int] = {}
    for i, j in pairwise([*begins.tolist(), time.size]):
        clock[i:j] += max(0, free.get(int(agent[i]), 0) - int(time[i]))
        free[int(agent[i])] = int(clock[j - 1]) + 2
    return clock
