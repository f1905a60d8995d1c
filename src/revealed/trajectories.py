"""Trajectories as a user writes them, (states, actions) pairs or lists of (state, action) steps, checked and taken
apart into single steps. What could be read in both ways is refused with both readings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Floats, Ints, as_list, is_index, require_array, require_count, require_whole, shape_of
from revealed.errors import InvalidDemonstrations
from revealed.gates import require_memory
from revealed.labels import plain
from revealed.naming import Labels, is_label, places
from revealed.tables import sparse_table
from revealed.voices import arg, either


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
    trajectories: Any, n_states: Any, n_actions: Any, ids: Any, next_state: Any, goal: Any, goes_on: Any = None
) -> Written:
    """Steps of (states, actions) pairs; `Demonstrations.from_trajectories` explains the arguments.

    `goes_on` tells which trajectories are the rest of the one before them, with decisions between them that were not
    seen: these are no starts.
    """
    require_count("n_states", n_states, error=InvalidDemonstrations)
    require_count("n_actions", n_actions, error=InvalidDemonstrations)
    require_memory("n_states, n_actions", (n_states, n_actions), int(n_states) * int(n_actions), InvalidDemonstrations)
    written = [list(one) if isinstance(one, Iterator) else one for one in as_list(trajectories) or ()]
    steps_each = are_steps(written, n_states, n_actions)
    pairs = [as_pair(i, t, n_states, n_actions, steps_each[i]) for i, t in enumerate(written)]
    if not pairs:
        expected = "at least one trajectory, a (states, actions) pair"
        raise InvalidDemonstrations("trajectories", expected, repr(trajectories)[:60])
    n = len(pairs)
    names = one_each("ids", range(n) if ids is None else ids, n)
    after = one_each("next_state", [None] * n if next_state is None else next_state, n)
    if not all(isinstance(name, Hashable) for name in names):
        raise InvalidDemonstrations("ids", "names or numbers", repr(names[:3]))
    goes_on = [bool(goes_on and goes_on[i] and names[i] == names[i - 1]) for i in range(n)]
    code = {name: k for k, name in enumerate(dict.fromkeys(names))}
    steps = _joined([steps_of(i, code[names[i]], *pairs[i], after[i], n_states) for i in range(n)])
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


def has_text(role: str, trajectories: Any) -> bool:
    """Whether states or actions of (states, actions) pairs are written as text."""
    place = 0 if role == "state" else 1
    parts = [one[place] for one in trajectories if isinstance(one, tuple | list) and len(one) == 2]
    parts = [as_list(part) for part in parts if getattr(getattr(part, "dtype", None), "kind", "O") not in "iufb"]
    return any(isinstance(label, str) for part in parts for label in part or ())


def parts_of(trajectories: Any) -> list[tuple[list[Any], list[Any]]]:
    """The states and actions of pairs with labels. Two steps with labels look like a pair: only a tuple of two that are
    no tuples is one."""
    parts: list[tuple[list[Any], list[Any]]] = []
    for i, one in enumerate(trajectories):
        pair = [as_list(part) for part in one] if isinstance(one, tuple) and len(one) == 2 else []
        if len(pair) != 2 or None in pair or isinstance(one[0], tuple):
            remedy = "Where states or actions have labels, write ([state, …], [action, …])."
            expected = "tuples (states, actions) of two lists"
            raise InvalidDemonstrations("trajectories", expected, repr(one)[:60], f"trajectory {i}", remedy)
        parts.append((list(pair[0] or ()), list(pair[1] or ())))
    if not parts:
        raise InvalidDemonstrations("trajectories", "at least one trajectory, a (states, actions) pair", "none")
    return parts


def require_sizes(sizes: Mapping[str, Any], labelled: Any) -> None:
    """How many there are must be said of states or actions that are indices beside labels of the others."""
    for role, other in (("state", "action"), ("action", "state")):
        if role not in labelled and sizes[role] is None:
            rule = f"is required: {role}s without labels are indices, beside labels of {other}s"
            remedy = f"If they are labels, list them in {arg(f'{role}s')} instead."
            raise InvalidDemonstrations.conflict(f"n_{role}s", rule, remedy=remedy)


def _joined(parts: list[Steps]) -> Steps:
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
        raise InvalidDemonstrations("goal", expected, repr(plain(goals[bad]))[:60], f"{each} {bad}")
    return np.array(goals, dtype=np.intp)


def one_each(name: str, values: Any, n: int) -> list[Any]:
    listed = as_list(values)
    if listed is None or len(listed) != n:
        got = repr(values)[:60] if listed is None else f"{len(listed)}"
        raise InvalidDemonstrations(name, f"one entry per trajectory ({n})", got)
    return listed


def are_steps(written: Any, n_states: int, n_actions: int) -> list[bool]:
    """Which trajectories are lists of (state, action) steps, not (states, actions) pairs. One that could be both is
    what the others are; where they do not tell, it is refused."""
    forms = [_readings(trajectory, n_states, n_actions) for trajectory in written]
    told = {form[0] for form in forms if len(form) == 1} - {"alike"}
    unclear = next((i for i, form in enumerate(forms) if len(form) > 1), None)
    if unclear is not None and len(told) != 1:
        raise _two_readings(unclear, written[unclear])
    return [(form if len(form) == 1 else tuple(told))[0] == "steps" for form in forms]


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
    return table if table.ndim == 2 and table.shape[1] == 2 and np.issubdtype(table.dtype, np.integer) else None


def _some(parts: list[Any]) -> list[Any]:
    """Those with a length, which tells quickly that a long list of states is none of steps."""
    return [part if isinstance(part, list | tuple | np.ndarray) and len(part) == 2 else () for part in parts[:3]]


def _two_readings(i: int, trajectory: Any) -> InvalidDemonstrations:
    (a, b), (c, d) = ((int(k) for k in part) for part in np.asarray(trajectory).tolist())
    got = f"{trajectory!r}, which may be two steps, or a list of states and a list of actions"
    remedy = (
        f"Write ([{a}, {c}], [{b}, {d}]) for the steps: action {b} in state {a}, then action {d} in state {c}; or "
        f"([{a}, {b}], [{c}, {d}]) for states and actions: action {c} in state {a}, then action {d} in state {b}."
    )
    return InvalidDemonstrations("trajectories", "unambiguous trajectories", got, f"trajectory {i}", remedy)


def as_pair(i: int, trajectory: Any, n_states: int, n_actions: int, steps: bool = False) -> tuple[Ints, Ints]:
    try:
        states, actions = np.asarray(trajectory).T if steps else trajectory
    except (TypeError, ValueError) as error:
        remedy = "A trajectory may also be a list of (state, action) steps, all of them whole numbers."
        raise InvalidDemonstrations(
            "trajectories", "(states, actions) pairs", type(trajectory).__name__, f"trajectory {i}", remedy
        ) from error
    states = _as_indices("states", states, n_states, i)
    actions = _as_indices("actions", actions, n_actions, i)
    if len(states) not in (len(actions), len(actions) + 1):
        raise InvalidDemonstrations(
            "trajectories",
            "as many states as actions, or one more (the last state)",
            f"{len(states)} states and {len(actions)} actions",
            f"trajectory {i}",
        )
    return states, actions


def _as_indices(what: str, values: Any, n: int, i: int) -> Ints:
    expected = "a flat sequence of whole numbers"
    array = require_whole(what, values, expected, InvalidDemonstrations, f"trajectory {i}")
    if array.ndim != 1:
        raise InvalidDemonstrations(what, expected, f"shape {array.shape}", f"trajectory {i}")
    out = (array < 0) | (array >= n)
    if out.any():
        t = int(np.flatnonzero(out)[0])
        raise InvalidDemonstrations(what, f"indices in 0…{n - 1}", int(array[t]), f"trajectory {i}, time {t}")
    return array


def steps_of(i: int, agent: int, states: Ints, actions: Ints, after: Any, n_states: int) -> Steps:
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
            got = f"{given[clash][0]} where {known[clash][0]} follows"
            raise InvalidDemonstrations(
                "next_state", "the states that follow in the trajectory", got, f"trajectory {i}"
            )
        following[n - given.size :] = given
    return Steps(np.full(n, agent, dtype=np.intp), np.arange(n), states[:n], actions, following, np.arange(n) == 0)


def as_agents(agents: Any, n: int) -> Ints:
    """Which agents are meant, by index."""
    expected = f"indices, a mask or a slice of {n} agents, without duplicates"
    try:
        chosen = np.arange(n)[agents if isinstance(agents, slice) else _mask_or_indices(agents, expected)]
    except (IndexError, TypeError, ValueError) as error:
        if isinstance(error, InvalidDemonstrations):
            raise
        chosen = np.arange(n).reshape(1, n)
    if chosen.ndim != 1 or np.unique(chosen).size != chosen.size:
        raise InvalidDemonstrations("agents", expected, repr(agents)[:60])
    return chosen


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
            f"a decision at time {steps.time[late]} is beyond the horizon of {horizon} decisions",
            f"agent {ids[steps.agent[late]]!r}",
            f"Use {either(f'mdp.base.unroll({longer})', f'--horizon {longer}')} or shorter trajectories.",
            "demonstrations",
        )
    following = np.where(steps.next_state >= 0, (steps.time + 1) * n_states + steps.next_state, -1)
    return replace(steps, state=steps.time * n_states + steps.state, next_state=following)
