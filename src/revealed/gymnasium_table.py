"""Gymnasium's tables P[s][a] = [(probability, next state, reward, terminated), ...] as arrays for an `MDP`.

Gymnasium ends an episode by an outcome's flag, an `MDP` by a terminal state. A state that is entered only by
terminated outcomes becomes terminal itself; where terminated outcomes lead to a state that goes on as well, they go to
one terminal state that is appended. Whatever P does not tell, from wrappers to a step() of its own mind, is refused:
a model of something else would be worse than none. Nothing here imports gymnasium; what looks like it will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import TRUTH, Bools, Floats, as_floats, as_number, is_count, is_index, require_flag
from revealed.errors import InvalidInput
from revealed.gymnasium_trial import Step, try_out
from revealed.voices import shown

FORM = "P[s][a] = [(probability, next state, reward, terminated), ...]"
BUILD = "Build rv.MDP(transitions, discount, ...) from what you know of the dynamics."

# wrappers that count, check, record or cut off, but leave states, actions, rewards and dynamics as they are
HARMLESS = {
    *("TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordEpisodeStatistics", "Autoreset", "AutoResetWrapper"),
    *("RecordVideo", "HumanRendering", "RenderCollection", "AddWhiteNoise", "ObstructView"),
    *("DataCollector", "Monitor"),  # of Minari and of Stable-Baselines3: they record
}
MAKERS = ("gymnasium", "minari", "stable_baselines3")  # a wrapper of the user's own may have any of these names

ACTIONS = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pickup", "dropoff"),
}
GRIDS = {"FrozenLakeEnv": lambda env: env.desc.shape, "CliffWalkingEnv": lambda env: env.shape}


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The table's outcomes of positive probability, one position each in six arrays; duplicates still apart."""

    state: npt.NDArray[np.intp]
    action: npt.NDArray[np.intp]
    p: Floats
    next_state: npt.NDArray[np.intp]
    reward: Floats
    terminated: Bools


@dataclass(frozen=True, eq=False)
class Table:
    """What an `MDP` and a world need of an environment; S counts the appended terminal state, if there is one.

    `transitions` (S*A, S) with row s*A + a; `reward` (S, A) expected, zero in terminal states; `initial` (S,) and
    `feasible` (S, A) where the environment offers them; `shape` of the grid where the states are its cells.
    """

    name: str
    transitions: sp.csr_array = field(repr=False)
    terminal: Bools = field(repr=False)
    reward: Floats = field(repr=False)
    initial: Floats | None = field(repr=False)
    feasible: Bools | None = field(repr=False)
    action_labels: tuple[str, ...] | None
    shape: tuple[int, int] | None
    outcomes: Outcomes = field(repr=False)

    def model(self) -> dict[str, Any]:
        """The arguments of `MDP` but for the discount, which no environment knows."""
        names = ("transitions", "initial", "feasible", "terminal", "action_labels")
        return {name: getattr(self, name) for name in names}


def read_table(env: Any, masks: bool = True) -> Table:
    """The table of a Gymnasium environment; `masks=False` ignores the action masks that it may offer."""
    require_flag("masks", masks)
    base = _unwrap(env)
    P = _table_of(base)
    n_states, n_actions = _sizes(base, P)
    outcomes = _read_outcomes(P, n_states, n_actions)
    feasible = _read_masks(base, n_states, n_actions) if masks else None
    initial = _read_initial(base, n_states)
    starts, steps = try_out(base, feasible, n_actions)
    _require_listed(outcomes, steps)
    terminal = find_terminal(outcomes, _can_start(initial, starts, n_states))
    name = getattr(getattr(base, "spec", None), "id", None) or type(base).__name__
    return _assemble(name, outcomes, terminal, feasible, initial, n_actions, _known(base, n_states, n_actions))


def find_terminal(outcomes: Outcomes, can_start: Bools) -> Bools:
    """(S,) bool: states entered only by terminated outcomes, and nowhere to start.

    What enters a state from a terminal state does not count against it, since nobody ever moves on from there; this is
    settled from the states that are terminal beyond doubt onwards, so two states that only lead to each other are not.
    The rows of an absorbing state (certain self-loops with reward 0) do not enter it; one that nobody else enters is
    terminal if all its own outcomes say so, as a hole amid holes in FrozenLake does.
    """
    o, n_states = outcomes, can_start.size
    own = o.state == o.next_state
    absorbing = _among(o.state, n_states) & ~_among(o.state[~own | (o.reward != 0.0)], n_states)
    entering = ~(own & absorbing[o.state])
    says_so = absorbing & ~_among(o.state[~o.terminated], n_states)
    candidate = (_among(o.next_state[entering & o.terminated], n_states) | says_so) & ~can_start
    going_on = entering & ~o.terminated
    terminal = np.zeros(n_states, dtype=bool)
    while True:
        entered_alive = _among(o.next_state[going_on & ~terminal[o.state]], n_states)
        grown = candidate & ~entered_alive
        if np.array_equal(grown, terminal):
            return terminal
        terminal = grown


def _among(states: npt.NDArray[np.intp], n_states: int) -> Bools:
    return np.bincount(states, minlength=n_states) > 0


def _assemble(
    name: str,
    o: Outcomes,
    terminal: Bools,
    feasible: Bools | None,
    initial: Floats | None,
    A: int,
    known: tuple[tuple[str, ...] | None, tuple[int, int] | None],
) -> Table:
    """Move terminated outcomes to the appended state where they need it, and add up what shares a row and a column."""
    alive = ~terminal[o.state]
    homeless = alive & o.terminated & ~terminal[o.next_state]
    extra = int(homeless.any())
    S = terminal.size + extra
    row = (o.state * A + o.action)[alive]
    target = np.where(homeless, terminal.size, o.next_state)[alive]
    matrix = sp.csr_array(sp.coo_array((o.p[alive], (row, target)), shape=(S * A, S)))
    reward = np.asarray(np.bincount(row, weights=(o.p * o.reward)[alive], minlength=S * A), dtype=np.float64)
    return Table(
        name=name,
        transitions=matrix,
        terminal=np.pad(terminal, (0, extra), constant_values=True),
        reward=reward.reshape(S, A),
        initial=None if initial is None else np.pad(initial, (0, extra)),
        feasible=None if feasible is None else np.pad(feasible, ((0, extra), (0, 0))),
        action_labels=known[0],
        shape=known[1],
        outcomes=o,
    )


# ------------------------------------------------------------------------------------------ what is refused beforehand


def _unwrap(env: Any) -> Any:
    """The bare environment, if no wrapper on the way to it changes what it does."""
    if isinstance(env, str):
        raise InvalidInput("env", "an environment", f"the string {env!r}", remedy=f"Pass gymnasium.make({env!r}).")
    if isinstance(env, type):
        raise InvalidInput("env", "an environment", f"the class {env.__name__}", remedy=f"Pass {env.__name__}().")
    base = getattr(env, "unwrapped", env)
    layer = env
    while layer is not None and layer is not base:
        kind = type(layer)
        if kind.__name__ not in HARMLESS or kind.__module__.partition(".")[0] not in MAKERS:
            raise InvalidInput(
                "env",
                "wrappers that do not change states, actions, rewards or dynamics",
                f"the wrapper {type(layer).__name__}",
                remedy="Pass env.unwrapped to ignore the wrapper, or build rv.MDP from the wrapped dynamics.",
            )
        layer = getattr(layer, "env", None)
    return base


def _table_of(base: Any) -> Any:
    P = getattr(base, "P", None)
    if not isinstance(P, Mapping) and not _is_listing(P):
        got = f"{type(base).__name__}, whose dynamics are not a table"
        raise InvalidInput("env", f"dynamics in a table env.unwrapped.{FORM}", got, remedy=BUILD)
    if getattr(base, "fickle_passenger", False):
        raise InvalidInput(
            "env",
            "dynamics that the table P describes in full",
            "fickle_passenger=True, with which step() changes the destination, unknown to P",
            remedy="Make it with fickle_passenger=False.",
        )
    return P


def _sizes(base: Any, P: Any) -> tuple[int, int]:
    """(S, A) from the spaces where there are any, else from the table."""
    n_states, n_actions = _space_size(base, "observation_space"), _space_size(base, "action_space")
    n_states = len(P) if n_states is None else n_states
    if len(P) > n_states:
        raise InvalidInput("env", f"a table P of the {n_states} states of its observation space", f"{len(P)} states")
    if n_actions is None:
        first = _entry(P, 0)
        n_actions = len(first) if isinstance(first, Mapping) or _is_listing(first) else 0
    if n_states == 0 or n_actions == 0:
        raise InvalidInput("env", f"a table {FORM}", f"{n_states} states, {n_actions} actions in the first")
    return n_states, n_actions


def _space_size(base: Any, name: str) -> int | None:
    """How many things a space holds; None where there is no such space. Only Discrete(n) numbers them from 0."""
    space = getattr(base, name, None)
    if space is None:
        return None
    n = getattr(space, "n", None)
    if not is_count(n) or getattr(space, "shape", ()) != () or getattr(space, "start", 0) != 0:
        raise InvalidInput("env", f"a {name} that counts from 0, as Discrete(n) does", str(space), remedy=BUILD)
    return int(space.n)


def _known(base: Any, n_states: int, n_actions: int) -> tuple[tuple[str, ...] | None, tuple[int, int] | None]:
    """Names of the actions and shape of the grid, for the environments that come with Gymnasium."""
    for kind in type(base).__mro__:
        if kind.__name__ in ACTIONS and ".toy_text." in kind.__module__:
            labels = ACTIONS[kind.__name__] if len(ACTIONS[kind.__name__]) == n_actions else None
            rows, columns = (int(n) for n in GRIDS[kind.__name__](base)) if kind.__name__ in GRIDS else (0, 0)
            return labels, (rows, columns) if rows * columns == n_states else None
    return None, None


# ---------------------------------------------------------------------------------------------------- reading the table


def _entry(rows: Any, key: int) -> Any:
    """rows[key], or None. A defaultdict is not asked for what it lacks: it would write into the user's table."""
    if isinstance(rows, Mapping):
        return rows.get(key)
    return rows[key] if _is_listing(rows) and key < len(rows) else None


def _is_listing(rows: Any) -> bool:
    return isinstance(rows, list | tuple) or (isinstance(rows, np.ndarray) and rows.ndim > 0)


def _read_outcomes(P: Any, n_states: int, n_actions: int) -> Outcomes:
    found: list[tuple[int | float | bool, ...]] = []
    for s in range(n_states):
        actions = _entry(P, s)
        if actions is None:
            raise InvalidInput("env", f"a table P of {n_states} states", f"no state {s} in it")
        if isinstance(actions, Mapping | list | tuple) and len(actions) > n_actions:
            raise InvalidInput("env", f"{n_actions} actions in every state of P", len(actions), f"state {s}")
        for a in range(n_actions):
            outcomes = _entry(actions, a)
            if not _is_listing(outcomes):
                got = "nothing" if outcomes is None else shown(outcomes)
                raise InvalidInput("env", f"a list of outcomes as in {FORM}", got, f"state {s}, action {a}")
            for outcome in outcomes:
                parts = _as_outcome(outcome, n_states, s, a)
                if parts is not None:
                    found.append((s, a, *parts))
    kinds = (np.intp, np.intp, np.float64, np.intp, np.float64, np.bool_)
    columns = zip(*found) if found else ((),) * len(kinds)
    arrays: list[Any] = [np.array(column, dtype=kind) for column, kind in zip(columns, kinds)]
    return Outcomes(*arrays)


def _as_outcome(outcome: Any, n_states: int, s: int, a: int) -> tuple[float, int, float, bool] | None:
    """One outcome, checked; None for one of probability 0, of which nothing else matters."""
    where = f"state {s}, action {a}"
    if not _is_listing(outcome) or len(outcome) != 4:
        array = isinstance(outcome, float | np.floating)
        remedy = "A transition array (S, A, S) goes to rv.MDP(P, discount) itself." if array else None
        raise InvalidInput("env", f"outcomes of four parts as in {FORM}", shown(outcome), where, remedy)
    p, reward = as_number(outcome[0]), as_number(outcome[2])
    next_state, terminated = outcome[1], outcome[3]
    if not 0.0 <= p < np.inf:
        raise InvalidInput("env", "probabilities >= 0 in P", shown(outcome[0]), where)
    if p == 0.0:
        return None
    if not is_index(next_state) or not 0 <= next_state < n_states:
        raise InvalidInput("env", f"next states 0 to {n_states - 1} in P, whole numbers", shown(next_state), where)
    if not np.isfinite(reward):
        raise InvalidInput("env", "finite rewards in P", shown(outcome[2]), where)
    if not isinstance(terminated, bool | np.bool_) and not (is_index(terminated) and terminated in (0, 1)):
        raise InvalidInput("env", "True or False for terminated in P", shown(terminated), where)
    return p, int(next_state), reward, bool(terminated)


def _read_masks(base: Any, n_states: int, n_actions: int) -> Bools | None:
    """(S, A) bool from `action_mask(state)`; None where the environment has no such method."""
    ask = getattr(base, "action_mask", None)
    if not callable(ask):
        return None
    mask = np.empty((n_states, n_actions), dtype=np.bool_)
    for s in range(n_states):
        try:
            answer = ask(s)
        except Exception as problem:
            raise _bad_mask(f"{type(problem).__name__}: {problem}", n_actions, s) from problem
        # environments may mix True and 1, which mean the same in a mask
        listed = isinstance(answer, list | tuple)
        row = as_floats([int(x) if isinstance(x, TRUTH) else x for x in answer] if listed else answer)
        if row is None or row.shape != (n_actions,) or not np.isin(row, (0.0, 1.0)).all():
            raise _bad_mask(shown(answer), n_actions, s)
        mask[s] = row == 1.0
    return mask


def _bad_mask(got: str, n_actions: int, s: int) -> InvalidInput:
    expected = f"{n_actions} ones and zeros from its action_mask(state)"
    return InvalidInput("env", expected, got, f"state {s}", "Pass masks=False to ignore action masks.")


def _read_initial(base: Any, n_states: int) -> Floats | None:
    """(S,) where episodes start, if the environment says so; that they are probabilities is for `MDP` to check."""
    given = getattr(base, "initial_state_distrib", None)
    if given is None:
        return None
    initial = as_floats(given)
    if initial is None or initial.shape != (n_states,):
        got = type(given).__name__ if initial is None else f"shape {initial.shape}"
        raise InvalidInput("env", f"an initial_state_distrib of {n_states} probabilities", got)
    return initial


def _can_start(initial: Floats | None, starts: list[int], n_states: int) -> Bools:
    """(S,) bool: what the start distribution allows; without one, what reset() was seen to do."""
    if initial is None:
        return np.isin(np.arange(n_states), starts)
    for s in starts:
        if not 0 <= s < n_states or initial[s] == 0.0:
            expected = "a reset() that starts where initial_state_distrib says"
            raise InvalidInput("env", expected, f"state {s}", remedy=BUILD)
    return initial > 0.0


def _require_listed(o: Outcomes, steps: list[Step]) -> None:
    """Every step is an outcome of the table, reward and end included."""
    listed: dict[tuple[int, int], list[tuple[int, float, bool]]] = {}
    parts = (o.state, o.action, o.next_state, o.reward, o.terminated)
    for s, a, moved, reward, terminated in zip(*(part.tolist() for part in parts)):
        listed.setdefault((s, a), []).append((moved, reward, terminated))
    for s, a, moved, reward, terminated in steps:
        if not any((moved, terminated) == (t, e) and np.isclose(reward, r) for t, r, e in listed.get((s, a), [])):
            ended = ", terminated" if terminated else ""
            raise InvalidInput(
                "env",
                "a step() that does what the table P lists",
                f"a step to state {moved} with reward {reward:g}{ended}, which P does not list",
                f"state {s}, action {a}",
                remedy=f"P does not describe all of its dynamics. {BUILD}",
            )
