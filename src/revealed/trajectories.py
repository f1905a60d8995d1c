"""Trajectories as a user writes them, (states, actions) pairs, checked and taken apart into single steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Floats, Ints, as_list, is_index
from revealed.errors import InvalidDemonstrations
from revealed.tables import sparse_table


@dataclass(frozen=True)
class Steps:
    """One entry per decision: whose, when, where, what, where it led (−1: not seen), whether a trajectory starts.

    `row` is where it came from in a frame, `weight` how often it counts; None where there was no frame, or once each.
    """

    agent: Ints
    time: Ints
    state: Ints
    action: Ints
    next_state: Ints
    first: npt.NDArray[np.bool_]
    row: Ints | None = None
    weight: Floats | None = None

    def __getitem__(self, which: Any) -> Steps:
        """Some of the steps."""
        given = {name: part for name in self.__dataclass_fields__ if (part := getattr(self, name)) is not None}
        return replace(self, **{name: part[which] for name, part in given.items()})


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
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InvalidDemonstrations(what, "a flat sequence of indices", "ragged", f"trajectory {i}") from error
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        got = f"dtype {array.dtype}, shape {array.shape}"
        raise InvalidDemonstrations(what, "a flat sequence of whole numbers", got, f"trajectory {i}")
    out = (array < 0) | (array >= n)
    if out.any():
        t = int(np.flatnonzero(out)[0])
        raise InvalidDemonstrations(what, f"indices in 0…{n - 1}", int(array[t]), f"trajectory {i}, time {t}")
    return array.astype(np.intp)


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
    try:
        chosen = np.arange(n)[agents if isinstance(agents, slice) else np.asarray(agents)]
    except (IndexError, TypeError, ValueError):
        chosen = np.arange(n).reshape(1, n)
    if chosen.ndim != 1 or np.unique(chosen).size != chosen.size:
        expected = f"indices, a mask or a slice of {n} agents, none twice"
        raise InvalidDemonstrations("agents", expected, repr(agents)[:60])
    return chosen


def agent_table(steps: Steps, often: Floats, n_agents: int, n_states: int, n_actions: int) -> sp.csr_array:
    """Sparse (N, S*A): how often each agent took each action in each state."""
    return sparse_table(often, steps.agent, steps.state * n_actions + steps.action, (n_agents, n_states * n_actions))
