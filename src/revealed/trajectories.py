"""Trajectories as a user writes them, (states, actions) pairs, checked and taken apart into single steps."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Floats, Ints, as_list, is_index, require_array, require_count, require_whole
from revealed.errors import InvalidDemonstrations
from revealed.labels import find, plain
from revealed.naming import Labels, is_label
from revealed.tables import sparse_table


@dataclass(frozen=True)
class Steps:
    """One entry per decision: whose, when, where, what, where it led (−1: not seen), whether a trajectory starts.

    `row` is where it came from in a frame, `weight` how often it counts, `goal` the state that the trip is heading for;
    None where there was no frame, where each counts once, where trips have no goals. Trajectories follow each other:
    the steps of one stand together, in the order of time.
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
    trajectories: Any, n_states: int, n_actions: int, ids: Any, next_state: Any, goal: Any
) -> Written:
    """Steps of (states, actions) pairs; `Demonstrations.from_trajectories` explains the arguments."""
    require_count("n_states", n_states, error=InvalidDemonstrations)
    require_count("n_actions", n_actions, error=InvalidDemonstrations)
    pairs = [as_pair(i, t, n_states, n_actions) for i, t in enumerate(as_list(trajectories) or ())]
    if not pairs:
        expected = "at least one trajectory, a (states, actions) pair"
        raise InvalidDemonstrations("trajectories", expected, repr(trajectories)[:60])
    n = len(pairs)
    names = one_each("ids", range(n) if ids is None else ids, n)
    after = one_each("next_state", [None] * n if next_state is None else next_state, n)
    if not all(isinstance(name, Hashable) for name in names):
        raise InvalidDemonstrations("ids", "names or numbers", repr(names[:3]))
    code = {name: k for k, name in enumerate(dict.fromkeys(names))}
    steps = _joined([steps_of(i, code[names[i]], *pairs[i], after[i], n_states) for i in range(n)])
    if steps.state.size == 0:
        raise InvalidDemonstrations("trajectories", "at least one decision", "trajectories without actions")
    if goal is not None:
        goals = np.repeat(as_goals(goal, n, n_states), [len(actions) for _, actions in pairs])
        steps = replace(steps, goal=goals)
    # a trip without a decision is over before it begins; it is heading nowhere
    began = [s[0] for s, a in pairs if len(s) and (goal is None or len(a))]
    return Written(steps, np.bincount(began, minlength=n_states).astype(np.float64), tuple(code))


def _joined(parts: list[Steps]) -> Steps:
    given = [name for name in Steps.__dataclass_fields__ if getattr(parts[0], name) is not None]
    return Steps(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in given})


def as_goals(goal: Any, n: int, n_states: int, labels: Labels = None, each: str = "trajectory") -> Ints:
    """The goal of each of n trajectories, from one per trajectory or one for all: indices, or labels of a model."""
    alone = is_index(goal) or is_label(goal, labels)
    goals = [goal] * n if alone else one_each("goal", goal, n)
    if labels is not None and not any(is_index(one) for one in goals):
        return find("goal", goals, labels, what=each, error=InvalidDemonstrations)
    bad = next((i for i, one in enumerate(goals) if not is_index(one) or not 0 <= one < n_states), None)
    if bad is not None:
        expected = f"states, indices in 0…{n_states - 1}" + ("" if labels is None else ", or labels of all")
        raise InvalidDemonstrations("goal", expected, repr(plain(goals[bad]))[:60], f"{each} {bad}")
    return np.array(goals, dtype=np.intp)


def one_each(name: str, values: Any, n: int) -> list[Any]:
    listed = as_list(values)
    if listed is None or len(listed) != n:
        got = repr(values)[:60] if listed is None else f"{len(listed)}"
        raise InvalidDemonstrations(name, f"one entry per trajectory ({n})", got)
    return listed


def as_pair(i: int, trajectory: Any, n_states: int, n_actions: int) -> tuple[Ints, Ints]:
    try:
        states, actions = trajectory
    except (TypeError, ValueError) as error:
        remedy = "A list of (state, action) steps goes in as tuple(zip(*steps))."
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
    expected = f"indices, a mask or a slice of {n} agents, none twice"
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
        raise InvalidDemonstrations(
            "demonstrations",
            f"at most {horizon} decisions per trajectory (the horizon)",
            f"a decision at time {steps.time[late]}",
            f"agent {ids[steps.agent[late]]!r}",
            f"Use mdp.base.unroll({int(steps.time.max()) + 1}) or shorter trajectories.",
        )
    following = np.where(steps.next_state >= 0, (steps.time + 1) * n_states + steps.next_state, -1)
    return replace(steps, state=steps.time * n_states + steps.state, next_state=following)
