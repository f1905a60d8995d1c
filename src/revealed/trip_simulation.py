"""Draw trips, each with its own goal, from the choice model of a reward: all trips to one goal at once.

Goals are streamed: only a few policies are held at a time. The trips to each goal have a random stream of their own,
made of the seed and the goal, so that draws do not depend on which other goals there are, nor on the order in which
they are solved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from revealed.checks import Floats, Ints, as_list, require_count
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidInput, ValueDoesNotExist
from revealed.gates import require_memory, within_memory
from revealed.goal_values import GoalValues, Toward
from revealed.mdp import MDP, require_mdp
from revealed.naming import in_words, indices_or_labels, state_in_words
from revealed.positions import in_order
from revealed.rewards.base import cases_by, of_trips
from revealed.simulation import demonstrations_of, draw_actions, draw_moves, make_rng, steps_of_walks
from revealed.trajectories import Steps, joined
from revealed.voices import shown

MOST_DECISIONS = 1e5  # that a trip is expected to take


@within_memory("origins", "destinations")
def simulate_trips(
    mdp: MDP,
    reward: Any,
    origins: Any,
    destinations: Any,
    seed: int | None = None,
    longest: int | None = None,
    by: str = "goal",
) -> Demonstrations:
    """One trip from each origin to the destination beside it, by drivers with this reward (S, A); ids are 0, 1, ….

    `origins` and `destinations` are states, by index or by a label that is text, as many of one as of the other. A trip
    ends on entering its destination. Where `longest` is given, trips that are not there after so many decisions are cut
    off; without it, trips that would hardly ever arrive are an error. A reward that depends on the trip is a function
    of goal and origin that gives a table; `by` is "goal" or "pair".
    """
    require_mdp(mdp)
    if longest is not None:
        require_count("longest", longest)
    starts, goals = _states(mdp, "origins", origins), _states(mdp, "destinations", destinations)
    _require_trips(mdp, starts, goals)
    entropy = make_rng(seed).integers(2**63)
    drawn: list[Steps] = []
    reward = reward if callable(reward) else in_order(mdp, reward, "reward")
    for toward, trips in _cases(mdp, reward, starts, goals, by):
        _require_reached(mdp, toward, starts[trips], trips)
        if longest is None:
            _require_an_end(mdp, toward, starts[trips])
        key = [int(entropy), toward.goal, *([int(starts[trips[0]])] if by == "pair" else [])]
        rng = np.random.default_rng(key)
        drawn.append(steps_of_walks(*_walk(toward, starts[trips], longest, rng), trips))
    steps = joined(drawn)
    steps = steps[np.argsort(steps.agent, kind="stable")]
    return demonstrations_of(mdp, replace(steps, goal=goals[steps.agent]), starts)


def _cases(mdp: MDP, reward: Any, starts: Ints, goals: Ints, by: str) -> Iterator[tuple[Toward, Ints]]:
    """Values toward each goal, or of each pair, and the trips that they are for."""
    if not callable(reward):
        for toward in GoalValues(mdp, reward).each(np.unique(goals)):
            yield toward, np.flatnonzero(goals == toward.goal)
        return
    origin = starts if by == "pair" else np.full(starts.size, -1)
    for goal, first in np.unique(np.stack([goals, origin]), axis=1).T:
        values = GoalValues(mdp, reward(int(goal), int(first)))
        yield values.toward(int(goal)), np.flatnonzero((goals == goal) & (origin == first))


def _walk(toward: Toward, starts: Ints, longest: int | None, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """States (n, L + 1) and actions (n, L), −1 from where a trip is over; the last state is the goal where the trip
    came so far."""
    mdp, policy = toward.base, toward.policy
    states, actions, alive = [starts], [], np.arange(starts.size)
    while alive.size and (longest is None or len(actions) < longest):
        here = states[-1][alive]
        action, state = np.full(starts.size, -1), np.full(starts.size, -1)
        action[alive] = draw_actions(policy[here], rng)
        state[alive] = draw_moves(mdp, here * mdp.n_actions + action[alive], rng)
        states.append(state)
        actions.append(action)
        alive = alive[(state[alive] != toward.goal) & ~mdp.terminal[state[alive]]]
    return np.stack(states, axis=1), np.stack(actions, axis=1)


def _states(mdp: MDP, name: str, given: Any) -> Ints:
    listed = None if isinstance(given, str) else as_list(given)
    if not listed:
        raise InvalidInput(name, "a sequence of states, one per trip", shown(given))
    return indices_or_labels(name, listed, mdp.state_labels, mdp.n_states)


def _require_trips(mdp: MDP, starts: Ints, goals: Ints) -> None:
    if starts.size != goals.size:
        raise InvalidInput("destinations", f"as many as origins ({starts.size})", goals.size)
    nowhere = np.flatnonzero(starts == goals)
    if nowhere.size:
        what = f"a trip cannot start at its destination {state_in_words(mdp, int(starts[nowhere[0]]))}"
        raise InvalidInput.impossible(what, f"trip {nowhere[0]}", argument="origins")


def _require_reached(mdp: MDP, toward: Toward, starts: Ints, trips: Ints) -> None:
    lost = np.flatnonzero(np.isneginf(toward.value[starts]))
    if lost.size:
        goal = in_words("goal", mdp.state_labels, toward.goal)
        what = f"{goal} cannot be reached from {state_in_words(mdp, int(starts[lost[0]]))}"
        raise InvalidInput.impossible(what, f"trip {trips[lost[0]]}", argument="origins")


def _require_an_end(mdp: MDP, toward: Toward, starts: Ints) -> None:
    """Trips that arrive surely, but after ages, would never be drawn to their end."""
    try:
        visits = toward.visits(np.bincount(starts, minlength=mdp.n_states).astype(np.float64))
        decisions = float(visits.sum()) / starts.size - 1.0
    except ValueDoesNotExist:
        decisions = np.inf
    if not decisions <= MOST_DECISIONS:
        goal = in_words("goal", mdp.state_labels, toward.goal)
        rule = f"is required, because trips are long: {decisions:.2g} decisions are expected on the way to {goal}"
        remedy = "Trips that have not arrived by then are cut off; or make rewards more negative."
        raise InvalidInput.conflict("longest", rule, remedy=remedy)


def trip_weights(demos: Demonstrations) -> Floats:
    """(n_trajectories,): how often each trip counts."""
    steps: Any = demos.steps
    return demos.step_weights[steps.first]


def picked_trips(demos: Demonstrations, n: int | None, seed: int | None) -> Ints:
    """Which of the observed trips to repeat: `n` that are drawn as often as they count, or by default each as often as
    it counts (to the next whole number, so that all together are as many as were observed)."""
    weight = trip_weights(demos)
    if n is not None:
        return draw_weighted(weight, n, seed)
    total = max(round(float(weight.sum())), 1)
    places = (np.arange(total) + 0.5) / total * weight.sum()
    return np.searchsorted(np.cumsum(weight), places, side="right").clip(max=weight.size - 1)


def draw_weighted(weight: Floats, n: int, seed: int | None) -> Ints:
    """`n` places among these, each drawn as often as its weight says."""
    rng = make_rng(seed)
    if np.all(weight == weight[0]):
        return rng.integers(weight.size, size=n)
    return rng.choice(weight.size, size=n, p=weight / weight.sum())


@within_memory("n", "origins", "destinations")
def simulate_like(
    fit: Any, n: int | None, seed: int | None, origins: Any, destinations: Any, longest: int | None
) -> Demonstrations:
    """Trips of a fit with goals between the places given, or between pairs drawn from those that were observed."""
    if (origins is None) != (destinations is None):
        given, missing = ("origins", "destinations")[:: 1 if destinations is None else -1]
        raise InvalidInput.conflict(given, f"requires `{missing}`")
    if origins is None:
        if n is not None:
            require_count("n", n)
            require_memory("n", n, 64 * int(n))
        pick = picked_trips(fit.demonstrations, n, seed)
        origins, destinations = fit.demonstrations.origins[pick], fit.demonstrations.destinations[pick]
    elif n is not None:
        raise InvalidInput.conflict(
            "n", "cannot be combined with `origins` and `destinations`", None, "Repeat them instead."
        )
    else:
        origins, destinations = fit.states("origins", origins), fit.states("destinations", destinations)
    own = fit.reward_model
    reward, by = (fit.case_table, cases_by(own)) if of_trips(own) else (fit.reward, "goal")
    return simulate_trips(fit.mdp, reward, origins, destinations, seed, longest, by)
