"""Trips against a model: their goals are states of it, and can be reached from wherever a trip was seen (theory R1).

Single decisions are asked, one goal after another; no table of all states and actions is made for a goal where moves
are deterministic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed.checks import Bools, Ints
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidDemonstrations
from revealed.goal_steps import first_met, whose
from revealed.labels import listed, near, plain, spell
from revealed.mdp import MDP
from revealed.naming import LED_TO_GOALS, in_words, state_in_words
from revealed.tables import sparse_table
from revealed.trajectories import Steps
from revealed.transitions.graph import reaching, ways_to
from revealed.voices import shown

UNREACHED = "Drop the trip, correct its goal, or check that the model has all moves."


def require_named_goals(demos: Demonstrations, known: tuple[Any, ...]) -> None:
    """Every goal has a label that the model knows."""
    steps, labels = demos.steps, demos.state_labels
    if steps is None or steps.goal is None or labels is None or demos.goal_states is None:
        return
    spelled = set(map(spell, known))
    lost = [int(g) for g in demos.goal_states if spell(labels[g]) not in spelled]
    if lost:
        i = first_met(steps, np.flatnonzero(np.isin(steps.goal, lost)))
        label = plain(labels[steps.goal[i]])
        remedy = (
            f"{near(label, known) or ''} A goal is a state of the model, even if no decision is made there.".strip()
        )
        where = whose(steps, demos.ids, i)
        raise InvalidDemonstrations(
            "goal", f"a state of the model, one of {listed(known)}", shown(label), where, remedy
        )


def require_goals_within(mdp: MDP, demos: Demonstrations) -> None:
    """Every goal is the index of a state of the model."""
    steps = demos.steps
    if steps is None or steps.goal is None or steps.goal.max() < mdp.n_states:
        return
    i = first_met(steps, np.flatnonzero(steps.goal >= mdp.n_states))
    expected = f"states of the model, indices in 0…{mdp.n_states - 1}"
    got = in_words("goal", demos.state_labels, int(steps.goal[i]))
    raise InvalidDemonstrations("goal", expected, got, whose(steps, demos.ids, i))


def require_ways(mdp: MDP, demos: Demonstrations) -> None:
    """Each decision was made where the goal can be reached, and does not lead to where it cannot.

    `mdp` names states and actions in messages; the decisions are feasible ones of it.
    """
    if demos.steps is None or demos.steps.goal is None:
        return
    steps = demos.steps[demos.step_weights > 0.0]
    assert steps.goal is not None
    _require_moves(mdp, demos, steps)
    alive, kept = _sure_ways(mdp, steps) if mdp.certain else _ways(mdp, steps)
    if not alive.all():
        i = first_met(steps, np.flatnonzero(~alive))
        what = f"{_goal(mdp, steps, i)} cannot be reached from {state_in_words(mdp, steps.state[i])}"
        _refuse(mdp, demos, steps, i, what)
    if not kept.all():
        i = first_met(steps, np.flatnonzero(~kept))
        act = in_words("action", mdp.action_labels, steps.action[i])
        lost = "cannot be reached" if mdp.certain else "may be out of reach"
        where = f"{act} in {state_in_words(mdp, steps.state[i])}"
        _refuse(mdp, demos, steps, i, f"{_goal(mdp, steps, i)} {lost} after {where}")


def _require_moves(mdp: MDP, demos: Demonstrations, steps: Steps) -> None:
    """Where moves are certain a decision leads where the model says, or the model is another one."""
    if not mdp.certain:
        return
    after = mdp.targets[steps.state, steps.action]
    odd = np.flatnonzero((steps.next_state >= 0) & (steps.next_state != after))
    if odd.size:
        i = first_met(steps, odd)
        to, seen = (state_in_words(mdp, int(s)) for s in (after[i], steps.next_state[i]))
        what = f"no trip can go to {seen} from {state_in_words(mdp, steps.state[i])}: its action leads to {to}"
        remedy = "Read the trips with the network on which you fit the model."
        raise InvalidDemonstrations.impossible(what, whose(steps, demos.ids, i), remedy, "demonstrations")


def _refuse(mdp: MDP, demos: Demonstrations, steps: Steps, i: int, what: str) -> None:
    unknown = mdp.estimated is not None and bool((steps.next_state < 0).any())
    remedy = LED_TO_GOALS if unknown else UNREACHED
    raise InvalidDemonstrations.impossible(what, whose(steps, demos.ids, i), remedy, "demonstrations")


def _goal(mdp: MDP, steps: Steps, i: int) -> str:
    assert steps.goal is not None
    return in_words("goal", mdp.state_labels, steps.goal[i])


def _sure_ways(mdp: MDP, steps: Steps) -> tuple[Bools, Bools]:
    """Whether the goal can be reached from where each decision was made, and from where it led."""
    goal = steps.goal
    assert goal is not None
    after = mdp.targets[steps.state, steps.action]
    both = _lead_to(mdp, np.concatenate([steps.state, after]), np.concatenate([goal, goal]))
    return both[: goal.size], both[goal.size :]


def have_ways(mdp: MDP, states: Ints, goals: Ints) -> Bools:
    """Whether those who set out in each state can arrive at the goal beside it."""
    if np.size(states) and max(int(states.max()), int(goals.max())) >= mdp.n_states:
        raise InvalidDemonstrations("mdp", "a model that has the states of the trips", f"{mdp.n_states} states")
    if mdp.certain:
        return _lead_to(mdp, states, goals)
    found = states == goals
    for goal in np.unique(goals):
        ended, _ = ways_to(mdp.transitions.matrix, mdp.backwards, mdp.feasible, mdp.terminal, int(goal))
        ours = goals == goal
        found[ours] |= ~ended[states[ours]]
    return found


def _lead_to(mdp: MDP, states: Ints, goals: Ints) -> Bools:
    """Whether the moves lead from each state to the goal beside it.

    States of one strong component lead to each other, which settles most pairs on a road network at once. The others
    are looked up in the graph of components, by one search for each component that holds a goal.
    """
    from scipy.sparse.csgraph import connected_components

    backwards = mdp.backwards
    n, part = connected_components(backwards, connection="strong")
    here, there = part[states], part[goals]
    found = here == there
    rest = np.flatnonzero(~found)
    if rest.size:
        edges = backwards.tocoo()
        graph = sparse_table(np.ones(edges.nnz), part[edges.coords[0]], part[edges.coords[1]], (n, n))
        for goal in np.unique(there[rest]):
            ours = rest[there[rest] == goal]
            found[ours] = reaching(graph, int(goal))[here[ours]]
    return found


def _ways(mdp: MDP, steps: Steps) -> tuple[Bools, Bools]:
    """The same where moves are uncertain: what is left of the model on the way to each goal."""
    goals = steps.goal
    assert goals is not None
    alive, kept = np.ones(goals.size, dtype=bool), np.ones(goals.size, dtype=bool)
    for goal in np.unique(goals):
        ours = np.flatnonzero(goals == goal)
        state, action = steps.state[ours], steps.action[ours]
        ended, left = ways_to(mdp.transitions.matrix, mdp.backwards, mdp.feasible, mdp.terminal, int(goal))
        alive[ours], kept[ours] = ~ended[state], left[state, action]
    return alive, kept
