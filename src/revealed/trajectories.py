"""Trajectories as a user writes them, (states, actions) pairs or lists of (state, action) steps, checked and taken
apart into single steps. What could be read in both ways is refused with both readings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Floats, Ints, as_list, is_index, require_array, require_count, require_whole, shape_of
from revealed.declared_order import order_of
from revealed.errors import InvalidDemonstrations
from revealed.gates import is_hashable, require_memory
from revealed.labels import (
    MOST_INDEX,
    are_positions,
    holds_numbers,
    is_missing,
    plain,
    require_ids,
    sizes_in_words,
    spell,
)
from revealed.naming import Labels, is_label, label_array, places, rows_of
from revealed.positions import by_parameter
from revealed.tables import sparse_table
from revealed.voices import arg, either, shown


@dataclass(frozen=True)
class Steps:
    """One entry per decision: whose, when, where, what, where it led (−1: not seen), whether a trajectory starts.

    `row` is where it came from in a frame, `weight` how often it counts, `goal` the state that the trip is heading for;
    None where there was no frame, where each counts once, where trips have no goals. `entry` is when its trajectory
    entered, as the frame has it, unless it was said which time is period 0. Trajectories follow each other: the steps
    of one stand together, in the order of time; there may be gaps in it.
    """

    agent: Ints
    time: Ints
    state: Ints
    action: Ints
    next_state: Ints
    first: npt.NDArray[np.bool_]
    row: Ints | None = None
    weight: Floats | None = None
    goal: Ints | None = None
    entry: npt.NDArray[Any] | None = None

    def __getitem__(self, which: Any) -> Steps:
        """Some of the steps."""
        given = {name: part for name in self.__dataclass_fields__ if (part := getattr(self, name)) is not None}
        return replace(self, **{name: part[which] for name, part in given.items()})

    def without_goals(self) -> Steps:
        return replace(self, goal=None)


@dataclass(frozen=True)
class Written:
    """Trajectories as they were written: single steps, where trajectories start (S,), and the agents' names."""

    steps: Steps
    starts: Floats
    ids: tuple[Any, ...]


def read_trajectories(
    trajectories: Any,
    n_states: Any,
    n_actions: Any,
    ids: Any,
    next_state: Any,
    goal: Any,
    goes_on: Any = None,
    labels: Labels = None,
) -> Written:
    """Steps of (states, actions) pairs; `Demonstrations.from_trajectories` explains the arguments.

    `labels` are those of the states, for messages. `goes_on` tells which trajectories are the rest of the one before
    them, with decisions between them that were not seen: these are not starts.
    """
    written = [list(one) if isinstance(one, Iterator) else one for one in as_list(trajectories) or ()]
    if not written:
        expected = "at least one trajectory, a (states, actions) pair"
        raise InvalidDemonstrations("trajectories", expected, shown(trajectories))
    sizes: list[Any] = [n_states, n_actions]
    if any(n is None for n in sizes):  # what can be read in two ways is told before that a size is missing
        are_steps(written, *(MOST_INDEX if n is None else as_whole(n) or 0 for n in sizes))
    for role, size in (("state", n_states), ("action", n_actions)):
        if size is None:
            raise _size_required(role)
        require_count(f"n_{role}s", size, error=InvalidDemonstrations)
    rows = 3 * int(n_states) * int(n_actions)  # in tables that are being made
    require_memory("n_states, n_actions", (n_states, n_actions), rows, InvalidDemonstrations)
    steps_each = are_steps(written, n_states, n_actions)
    pairs = [as_pair(i, t, n_states, n_actions, steps_each[i]) for i, t in enumerate(written)]
    n = len(pairs)
    names = one_each("ids", range(n) if ids is None else ids, n)
    after = one_each("next_state", [None] * n if next_state is None else next_state, n)
    odd = next((i for i, name in enumerate(names) if not is_hashable(name) or is_missing(name)), None)
    if odd is not None:
        raise InvalidDemonstrations("ids", "names or numbers", shown(names[odd]), f"trajectory {odd}")
    goes_on = [bool(goes_on and goes_on[i] and names[i] == names[i - 1]) for i in range(n)]
    code = {name: k for k, name in enumerate(dict.fromkeys(names))}
    steps = joined([steps_of(i, code[names[i]], *pairs[i], after[i], n_states, labels) for i in range(n)])
    if steps.state.size == 0:
        raise InvalidDemonstrations("trajectories", "at least one decision", "trajectories without actions")
    if goal is not None:
        goals = np.repeat(as_goals(goal, n, n_states), [len(actions) for _, actions in pairs])
        steps = replace(steps, goal=goals)
    # a trip without a decision is over before it begins; it is heading nowhere
    began = [
        s[0] for (s, a), rest in zip(pairs, goes_on, strict=True) if len(s) and not rest and (goal is None or len(a))
    ]
    steps = _with_rests(steps, [len(actions) for _, actions in pairs], goes_on)
    return Written(steps, np.bincount(began, minlength=n_states).astype(np.float64), tuple(code))


@dataclass(frozen=True)
class Coded:
    """Trajectories whose labels became indices, and those labels by the names of fields."""

    pairs: list[tuple[Any, Any]]
    sizes: dict[str, Any]
    names: dict[str, Any]
    next_state: Any
    goal: Any


def code_labels(
    written: Any, known: Mapping[str, Any], sizes: Mapping[str, Any], next_state: Any, goal: Any
) -> Coded | None:
    """Trajectories with labels as such with indices; None where nothing is a label. Labels are those `known`, ordered
    categories, and text or tuples where it was not said how many indices there are."""
    from revealed.panels.columns import size_of
    from revealed.panels.memory import Listed, code_lists

    orders = {role: _declared_order(role, written) if given is None else given for role, given in known.items()}
    wanted = [role for role in known if orders[role] is not None or sizes[role] is None]
    if not wanted or not (any(orders[role] is not None for role in wanted) or any(map(_may_have_labels, written))):
        return None
    parts: dict[str, Any] = dict(zip(known, zip(*_parts_of(written, orders, sizes), strict=True), strict=False))
    roles = [role for role in wanted if orders[role] is not None or any(map(_has_labels, parts[role]))]
    if not roles:
        return None
    sizes, names = dict(sizes), {}
    require_sizes(sizes, roles)
    for role in roles:
        lengths = [len(part) for part in parts[role]]
        at = [f"trajectory {i}, step {t}" for i, n in enumerate(lengths) for t in range(n)]
        if not at:
            raise InvalidDemonstrations("trajectories", "at least one decision", "trajectories without actions")
        lists = [Listed(role, [as_label(label) for part in parts[role] for label in part], at)]
        width = max(len(label) if isinstance(label, tuple) else 0 for label in lists[0].labels)
        after = _each_next(next_state, len(lengths), width) if role == "state" else {}
        if after:
            at = [f"trajectory {i}, step {t}" for i, some in after.items() for t in range(len(some))]
            lists.append(Listed("next_state", [label for some in after.values() for label in some], at))
        if role == "state" and goal is not None:
            goals = [goal] * len(lengths) if is_one(goal, width) else one_each("goal", goal, len(lengths))
            lists.append(Listed("goal", list(map(as_label, goals)), [f"trajectory {i}" for i in range(len(goals))]))
        names[f"{role}_labels"], codes = code_lists(role, orders[role], lists)
        found = {one.role: code for one, code in zip(lists, codes, strict=True)}
        parts[role] = _cut(found[role], lengths)
        sizes[role] = size_of(role, sizes[role], names[f"{role}_labels"], 0)
        if after:
            cut = dict(zip(after, _cut(found["next_state"], list(map(len, after.values()))), strict=True))
            next_state = [cut.get(i) for i in range(len(lengths))]
        goal = found["goal"].tolist() if "goal" in found else goal
    return Coded(list(zip(parts["state"], parts["action"], strict=True)), sizes, names, next_state, goal)


def _cut(codes: Ints, lengths: list[int]) -> list[Ints]:
    return np.split(codes, np.cumsum(lengths)[:-1])


def _may_have_labels(one: Any) -> bool:
    """Whether a trajectory has text, or several parts, where a state or an action stands, or is text itself."""
    rows = () if _is_numeric(one) else _parts(one) or ()
    return any(isinstance(row, str) or (not _is_numeric(row) and _has_labels(_parts(row) or ())) for row in rows)


def _is_numeric(part: Any) -> bool:
    return getattr(getattr(part, "dtype", None), "kind", "O") in "iufb" and np.ndim(part) < 3


def _has_labels(part: Any) -> bool:
    return any(isinstance(label, str | tuple | list | np.ndarray) for label in part)


def _parts(one: Any) -> list[Any] | None:
    """What something holds, if it is a sequence and no label."""
    return None if isinstance(one, str | bytes | Mapping | Set) else as_list(one)


def _parts_of(written: Any, orders: Mapping[str, Any], sizes: Mapping[str, Any]) -> list[tuple[list[Any], list[Any]]]:
    """The states and actions of trajectories with labels, pairs or steps."""
    from revealed.panels.columns import as_labels

    known = {role: None if order is None else set(map(spell, as_labels(role, order))) for role, order in orders.items()}
    rows = [_as_rows(i, one) for i, one in enumerate(written)]
    if not rows:
        raise InvalidDemonstrations("trajectories", "at least one trajectory, a (states, actions) pair", "none")
    found = [_label_readings(one, some, known, sizes) for one, some in zip(written, rows, strict=True)]
    steps = _decided(written, found)
    parts = [
        tuple(map(list, zip(*some, strict=True))) if are else tuple(some) for some, are in zip(rows, steps, strict=True)
    ]
    return [(states, actions) for states, actions in parts]


def _as_rows(i: int, one: Any) -> list[list[Any]]:
    """A trajectory as two lists, or as steps of two."""
    rows = [_as_labels(row, i) for row in _parts(one) or ()]
    lists = [row for row in rows if row is not None]
    if len(lists) < len(rows) or (len(rows) != 2 and (not rows or any(len(row) != 2 for row in lists))):
        raise no_trajectory(i, one)
    return lists


def _label_readings(
    one: Any, rows: list[list[Any]], known: Mapping[str, set[str] | None], sizes: Mapping[str, Any]
) -> tuple[str, ...]:
    """As `_readings`, of labels: those of a role are of one kind and, if they are known, among them."""
    if len(rows) != 2:
        return ("steps",)
    if any(len(row) != 2 for row in rows) or (isinstance(one, tuple) and not isinstance(one[0], tuple)):
        return ("pair",)
    (a, b), (c, d) = rows
    if spell(b) == spell(c):
        return ("alike",)

    def may(role: str, *labels: Any) -> bool:
        if len({"" if isinstance(x, str) else shape_of(x) for x in labels}) > 1:
            return False
        if known[role] is not None:
            return {spell(as_label(label)) for label in labels} <= (known[role] or set())
        return sizes[role] is None or all(is_index(label) and 0 <= label < sizes[role] for label in labels)

    ways = {"pair": ((a, b), (c, d)), "steps": ((a, c), (b, d))}
    fit = tuple(way for way, (s, x) in ways.items() if may("state", *s) and may("action", *x))
    return fit or tuple(ways)


def _as_labels(part: Any, i: int) -> list[Any] | None:
    if isinstance(part, np.ma.MaskedArray):
        require_array("trajectories", part, "labels of which none is masked", InvalidDemonstrations, f"trajectory {i}")
    return None if isinstance(part, str | Mapping | Set) else as_list(part)


def as_label(label: Any) -> Any:
    """A label; one of several parts, also a row of an array, is a tuple."""
    several = isinstance(label, list) or (isinstance(label, np.ndarray) and label.ndim > 0)
    return tuple(label) if several else label


def is_one(given: Any, width: int) -> bool:
    """Whether this is a single label, of `width` parts, not a list of them."""
    listed = None if isinstance(given, str) else as_list(given)
    if listed is None or width == 0:
        return listed is None
    return len(listed) == width and not any(isinstance(part, tuple | list | np.ndarray) for part in listed)


def _each_next(given: Any, n: int, width: int) -> dict[int, list[Any]]:
    """The next states of each trajectory for which some were given."""
    each = {} if given is None else dict(enumerate(one_each("next_state", given, n)))
    listed = {i: [one] if is_one(one, width) else as_list(one) or [] for i, one in each.items() if one is not None}
    return {i: list(map(as_label, some)) for i, some in listed.items()}


def _declared_order(role: str, written: Any) -> list[Any] | None:
    """The order of the labels where these are a category that has one."""
    place = 0 if role == "state" else 1
    parts = [one[place] for one in written if isinstance(one, tuple | list) and len(one) == 2]
    found = [order_of(part) for part in parts if hasattr(part, "dtype") and not isinstance(part, np.ndarray)]
    orders = {str(order): order for order in found}
    if len(orders) > 1 or (len(found) < len(parts) and any(orders.values())):
        remedy = f"List the labels in {arg(f'{role}s')}."
        got = "several orders, or ordered categories mixed with plain labels"
        raise InvalidDemonstrations("trajectories", f"{role}s with one declared order of labels", got, remedy=remedy)
    return found[0] if found else None


def require_sizes(sizes: Mapping[str, Any], labelled: Any) -> None:
    """Where only states or only actions have labels, the others are indices, and their number must be given."""
    for role in ("state", "action"):
        if role not in labelled and sizes[role] is None:
            raise _size_required(role)


def _size_required(role: str) -> InvalidDemonstrations:
    rule = f"is required: {role}s without labels are indices"
    remedy = f"If they are labels, list them in {arg(f'{role}s')} instead."
    return InvalidDemonstrations.conflict(f"n_{role}s", rule, remedy=remedy)


def joined(parts: list[Steps]) -> Steps:
    given = [name for name in Steps.__dataclass_fields__ if getattr(parts[0], name) is not None]
    return Steps(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in given})


def _with_rests(steps: Steps, lengths: list[int], goes_on: Any) -> Steps:
    """Pieces that go on belong to the trajectory before them, and come after it."""
    if not any(goes_on):
        return steps
    first, time, at, clock = steps.first.copy(), steps.time.copy(), 0, 0
    for length, rest in zip(lengths, goes_on, strict=True):
        if rest and length and clock:
            first[at], time[at : at + length] = False, time[at : at + length] + clock
        clock = (clock if rest else 0) + length
        at += length
    return replace(steps, first=first, time=time)


def as_goals(goal: Any, n: int, n_states: int, labels: Labels = None, each: str = "trajectory") -> Ints:
    """The goal of each of n trajectories, from one per trajectory or one for all: indices, or labels of a model."""
    alone = is_index(goal) or is_label(goal, labels)
    goals = [goal] * n if alone else one_each("goal", goal, n)
    if labels is not None:
        return places("goal", goals, labels, n_states, InvalidDemonstrations, each=each)
    bad = next((i for i, one in enumerate(goals) if not is_index(one) or not 0 <= one < n_states), None)
    if bad is not None:
        expected = f"states, indices in 0…{n_states - 1}"
        raise InvalidDemonstrations("goal", expected, shown(plain(goals[bad])), f"{each} {bad}")
    return np.array(goals, dtype=np.intp)


def one_each(name: str, values: Any, n: int) -> list[Any]:
    listed = None if isinstance(values, Mapping | set | frozenset) else as_list(values)
    if listed is None or len(listed) != n:
        got = shown(values) if listed is None else f"{len(listed)}"
        raise InvalidDemonstrations(name, f"one entry per trajectory ({n})", got)
    return listed


def are_steps(written: Any, n_states: int, n_actions: int) -> list[bool]:
    """Which trajectories are lists of (state, action) steps, not (states, actions) pairs."""
    return _decided(written, [_readings(trajectory, n_states, n_actions) for trajectory in written])


def _decided(written: Any, readings: list[tuple[str, ...]]) -> list[bool]:
    """Which are steps. One that could be both is what others of the same form are, such as lists of tuples; where these
    do not tell, or trajectories of another form are read otherwise, it is refused."""
    unclear = [i for i, found in enumerate(readings) if len(found) > 1]
    clear = [i for i, found in enumerate(readings) if unclear and len(found) == 1 and found != ("alike",)]
    ways, forms = {readings[i][0] for i in clear}, {_form(written[i]) for i in clear}
    lost = next((i for i in unclear if len(ways) != 1 or _form(written[i]) not in forms), None)
    if lost is not None:
        raise _two_readings(lost, written[lost])
    return [(found if len(found) == 1 else tuple(ways))[0] == "steps" for found in readings]


def _form(trajectory: Any) -> tuple[str, str]:
    """What it is written as, such as a list of tuples."""
    return type(trajectory).__name__, type(next(iter(_parts(trajectory) or ()), None)).__name__


def _readings(trajectory: Any, n_states: int, n_actions: int) -> tuple[str, ...]:
    """`("pair",)`, `("steps",)`, both, or `("alike",)` where they say the same. A tuple of two lists or arrays is a
    pair, as documented."""
    if isinstance(trajectory, tuple) and len(trajectory) == 2 and not isinstance(trajectory[0], tuple):
        return ("pair",)
    steps = _table_of_steps(trajectory)
    if steps is None:
        return ("pair",)
    if len(steps) != 2:
        return ("steps",)
    if steps[0, 1] == steps[1, 0]:
        return ("alike",)  # both readings are the same
    limits = np.array([n_states, n_actions])
    within = {"pair": (steps >= 0) & (steps < limits[:, None]), "steps": (steps >= 0) & (steps < limits)}
    return tuple(name for name, inside in within.items() if inside.all()) or ("pair",)


def _table_of_steps(trajectory: Any) -> Ints | None:
    """(T, 2): states and actions, if every part has two whole numbers; else None."""
    listed = trajectory if isinstance(trajectory, np.ndarray) and trajectory.ndim else as_list(trajectory)
    if listed is None or len(listed) == 0 or isinstance(trajectory, str | Mapping):
        return None
    if not isinstance(listed, np.ndarray) and not all(shape_of(part) == (2,) for part in _some(listed)):
        return None
    try:
        table = np.asarray(listed)
    except (TypeError, ValueError):
        return None
    if table.ndim != 2 or table.shape[1] != 2 or table.dtype.kind not in "iuf":
        return None
    return table if table.dtype.kind != "f" or bool(np.all(table == np.round(table))) else None


def _some(parts: list[Any]) -> list[Any]:
    """Those with a length, which tells quickly that a long list of states is none of steps."""
    return [part if _is_listed(part) and hasattr(part, "__len__") and len(part) == 2 else () for part in parts[:3]]


def _two_readings(i: int, trajectory: Any) -> InvalidDemonstrations:
    (a, b), (c, d) = ([repr(plain(k)) for k in as_list(part) or ()] for part in trajectory)
    got = f"{trajectory!r}, which may be two steps, or a list of states and a list of actions"
    remedy = (
        f"Write ([{a}, {c}], [{b}, {d}]) for the steps: action {b} in state {a}, then action {d} in state {c}; or "
        f"([{a}, {b}], [{c}, {d}]) for states and actions: action {c} in state {a}, then action {d} in state {b}."
    )
    expected = "unambiguous trajectories, such as tuples (states, actions) of two lists"
    return InvalidDemonstrations("trajectories", expected, got, f"trajectory {i}", remedy)


def as_pair(i: int, trajectory: Any, n_states: int, n_actions: int, steps: bool = False) -> tuple[Ints, Ints]:
    rows = None if hasattr(trajectory, "toarray") else _parts(trajectory)
    if not steps and (
        rows is None or len(rows) != 2 or not all(map(_is_listed, rows)) or _are_longer_steps(trajectory)
    ):
        raise no_trajectory(i, trajectory)
    expected, where = "whole numbers", f"trajectory {i}"
    table = require_array("trajectories", trajectory, expected, InvalidDemonstrations, where).T if steps else trajectory
    states, actions = table
    states = _as_indices("states", states, n_states, i)
    actions = _as_indices("actions", actions, n_actions, i)
    if len(states) not in (len(actions), len(actions) + 1):
        raise InvalidDemonstrations(
            "trajectories",
            "as many states as actions, or one more (the last state)",
            sizes_in_words(len(states), len(actions)),
            f"trajectory {i}",
        )
    return states, actions


def _is_listed(part: Any) -> bool:
    return bool(part.ndim) if isinstance(part, np.ndarray) else _parts(part) is not None


def _are_longer_steps(trajectory: Any) -> bool:
    """Whether a list of two tuples is one of steps with a reward behind state and action: (0, 1, 0.5), (1, 0, 1.0)."""
    if not isinstance(trajectory, list) or not all(isinstance(row, tuple) and len(row) >= 3 for row in trajectory):
        return False
    return any(isinstance(row[2], float) for row in trajectory) and all(is_index(x) for r in trajectory for x in r[:2])


def refuse_tables(trajectories: Any, written: list[Any] | None) -> None:
    """Tables call their columns by names, which a trajectory would read by position."""
    for where, one in ((None, trajectories), *((f"trajectory {i}", one) for i, one in enumerate(written or ()))):
        if hasattr(type(one), "columns"):
            remedy = "Use from_frame(table, ...), which reads columns by name."
            expected = "lists of (state, action) steps, or tuples (states, actions) of two lists"
            raise InvalidDemonstrations("trajectories", expected, "a table", where, remedy)


def no_trajectory(i: int, trajectory: Any) -> InvalidDemonstrations:
    """The complaint about something that is neither a pair nor steps: the first step that is none, or a value in it."""
    expected = "lists of (state, action) steps, or tuples (states, actions) of two lists"
    where = f"trajectory {i}"
    rows = _parts(trajectory)
    got, remedy = shown(trajectory), f"Pass a list of trajectories, {either('[trajectory]', 'trajectories')} for one."
    if trajectory is None or rows == []:
        got, remedy = "None" if trajectory is None else "an empty one", "Leave it out."
    elif isinstance(trajectory, tuple) and len(trajectory) == 2 and sum(map(_is_listed, trajectory)) == 1:
        remedy = "Write ([state, …], [action, …])."
    elif rows is not None and any(map(_is_listed, rows)):
        odd = next((t for t, row in enumerate(rows) if len(_parts(row) or ()) != 2), None)
        if odd is None:
            wrong = next(filter(None, (_no_index(i, t, row) for t, row in enumerate(rows))), None)
            return wrong or InvalidDemonstrations("trajectories", expected, got, where)
        got, where, expected = shown(rows[odd]), f"{where}, step {odd}", "(state, action) steps"
        remedy = f"Give a state and an action; where decisions led goes into {arg('next_state')}, rewards are not used."
    return InvalidDemonstrations("trajectories", expected, got, where, remedy)


def _no_index(i: int, t: int, row: Any) -> InvalidDemonstrations | None:
    """The complaint about a step that holds something else than whole numbers, where it does."""
    for role, value in zip(("state", "action"), row, strict=True):
        if as_whole(value) is None:
            return not_whole(f"{role}s", value, f"trajectory {i}, step {t}")
    return None


def as_whole(value: Any) -> int | None:
    """A whole number, also as 1.0; None for anything else."""
    if is_index(value):
        return int(value)
    return int(value) if isinstance(value, float | np.floating) and float(value).is_integer() else None


def not_whole(what: str, value: Any, where: str) -> InvalidDemonstrations:
    role = what.removesuffix("s").removeprefix("next_")
    remedy = f"If these are labels, list them in {arg(f'{role}s')}, or leave {arg(f'n_{role}s')} out."
    if value is None or isinstance(value, float | np.floating):
        remedy = "Drop or fill it." if value is None or value != value else _NUMBERED
    return InvalidDemonstrations(what, "whole numbers", shown(plain(value)), where, remedy)


_NUMBERED = f"Number them 0, 1, 2, …; bins of continuous ones are made by {either('rv.discretize', '--bins')}."


def _as_indices(what: str, values: Any, n: int, i: int) -> Ints:
    expected = "a flat sequence of whole numbers"
    array = require_array(what, values, expected, InvalidDemonstrations, f"trajectory {i}")
    if array.size and array.dtype.kind not in "iu":
        odd = next(((t, x) for t, x in enumerate(as_list(values) or ()) if as_whole(x) is None), None)
        if odd is not None and array.ndim == 1:
            raise not_whole(what, odd[1], f"trajectory {i}, step {odd[0]}")
    if array.ndim > 1 and isinstance(values, list | tuple):
        raise not_whole(what, values[0], f"trajectory {i}, step 0")
    if array.ndim != 1:
        raise InvalidDemonstrations(what, expected, f"shape {array.shape}", f"trajectory {i}")
    out = (array < 0) | (array >= n)
    if out.any():
        t = int(np.flatnonzero(out)[0])
        raise InvalidDemonstrations(what, f"indices in 0…{n - 1}", int(array[t]), f"trajectory {i}, step {t}")
    return array.astype(np.intp)


def steps_of(
    i: int, agent: int, states: Ints, actions: Ints, after: Any, n_states: int, labels: Labels = None
) -> Steps:
    n = len(actions)
    following = np.full(n, -1, dtype=np.intp)
    following[: len(states) - 1] = states[1 : n + 1]
    if after is not None and n > 0:
        given = _as_indices("next_state", [after] if is_index(after) else after, n_states, i)
        if given.size not in (1, n):
            raise InvalidDemonstrations("next_state", f"1 or {n} next states", f"{given.size}", f"trajectory {i}")
        known = following[n - given.size :]
        clash = (known >= 0) & (known != given)
        if clash.any():
            said, seen = (repr(plain(label_array(labels, part[clash][:1])[0])) for part in (given, known))
            where = f"trajectory {i}, step {n - given.size + int(np.flatnonzero(clash)[0])}"
            got = f"{said} where {seen} follows"
            raise InvalidDemonstrations("next_state", "the states that follow in the trajectory", got, where)
        following[n - given.size :] = given
    return Steps(np.full(n, agent, dtype=np.intp), np.arange(n), states[:n], actions, following, np.arange(n) == 0)


def as_agents(agents: Any, ids: tuple[Any, ...]) -> Ints:
    """Which agents are meant, by index. Numbers that are ids are never read as positions."""
    n = len(ids)
    expected = f"ids, indices, a mask or a slice of {n} agents, without duplicates"
    agents = _by_id(agents, ids)
    try:
        chosen = np.arange(n)[agents if isinstance(agents, slice) else _mask_or_indices(agents, expected)]
    except (IndexError, TypeError, ValueError) as error:
        if isinstance(error, InvalidDemonstrations):
            raise
        chosen = np.arange(n).reshape(1, n)
    if chosen.ndim != 1 or np.unique(chosen).size != chosen.size:
        raise InvalidDemonstrations("agents", expected, shown(agents))
    return chosen


def _by_id(agents: Any, ids: tuple[Any, ...]) -> Any:
    """Positions of the agents that are named by their ids, or by a Series of bools under them; else as given."""
    if rows_of(agents) is not None and np.asarray(agents).dtype.kind == "b":
        return by_parameter("agents", agents, ids, InvalidDemonstrations)
    listed = None if isinstance(agents, slice | str | bytes | dict) or are_positions(ids) else as_list(agents)
    if not listed:
        return agents
    wanted = [plain(one) for one in listed]
    are_mask = all(isinstance(one, bool) for one in wanted)
    if are_mask or (all(map(is_index, wanted)) and not holds_numbers(ids)):
        remedy = "Pass ids, a slice, or a mask as pd.Series(mask, index=demos.ids)."
        require_ids("agents", ids, InvalidDemonstrations, remedy)
        return agents
    try:
        return places("agents", wanted, ids, len(ids), InvalidDemonstrations, "agent", "agent")
    except InvalidDemonstrations as error:
        if error.remedy is not None or not all(map(is_index, wanted)):
            raise
        remedy = "Whole numbers are ids where ids are numbers; for positions pass a slice, subset(slice(0, 80))."
        raise InvalidDemonstrations("agents", error.expected, error.got, error.offender, remedy) from error


def _mask_or_indices(agents: Any, expected: str) -> Any:
    array = require_array("agents", agents, expected, InvalidDemonstrations)
    return array if array.dtype.kind == "b" else require_whole("agents", agents, expected, InvalidDemonstrations)


def agent_table(steps: Steps, often: Floats, n_agents: int, n_states: int, n_actions: int) -> sp.csr_array:
    """Sparse (N, S*A): how often each agent took each action in each state."""
    return sparse_table(often, steps.agent, steps.state * n_actions + steps.action, (n_agents, n_states * n_actions))


def lifted(steps: Steps, n_states: int, horizon: int, ids: tuple[Any, ...]) -> Steps:
    """The same steps on an unrolled horizon (theory F1): state s at time t is t·S + s."""
    if steps.time.max() >= horizon:
        late = int(steps.time.argmax())
        longer = int(steps.time.max()) + 1
        raise InvalidDemonstrations.impossible(
            f"a decision in period {steps.time[late]} is beyond the horizon of {horizon} decisions",
            f"agent {ids[steps.agent[late]]!r}",
            f"Use {either(f'mdp.base.unroll({longer})', f'--horizon {longer}')} or shorter trajectories.",
            "demonstrations",
        )
    following = np.where(steps.next_state >= 0, (steps.time + 1) * n_states + steps.next_state, -1)
    return replace(steps, state=steps.time * n_states + steps.state, next_state=following)
