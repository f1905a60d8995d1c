"""Trips must fit the model: goals that it has, that can be reached from wherever a trip was seen, by what was done."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from models import random_mdp
from revealed.errors import InvalidDemonstrations
from revealed.matching import match_labels, require_fit

LINKS = ("quay", "arch", "gate", "mill", "yard", "dead end")
# quay → arch or gate; arch → gate or dead end; gate → quay or mill; mill → quay; yard → quay; nothing leads to yard
NEXT = {(0, 0): 1, (0, 1): 2, (1, 0): 2, (1, 1): 5, (2, 0): 0, (2, 1): 3, (3, 0): 0, (4, 0): 0}
REMEDY = "Drop the trip, correct its goal, or check that the model has all moves."


def network(moves: dict[tuple[int, int], int] = NEXT, S: int = 6, A: int = 2, labels: Any = LINKS) -> rv.MDP:
    pair, to = [s * A + a for s, a in moves], list(moves.values())
    T = sp.csr_array((np.ones(len(to)), (pair, to)), shape=(S * A, S))
    feasible = np.zeros((S, A), dtype=bool)
    feasible.reshape(-1)[pair] = True
    kinds: Any = {"feasible": feasible, "terminal": ~feasible.any(axis=1), "state_labels": labels}
    return rv.MDP(T, discount=1.0, **kinds)


def trips(*found: tuple[list[int], list[int], int], n_states: int = 6, **options: Any) -> rv.Demonstrations:
    pairs = [(s, a) for s, a, _ in found]
    goals = [goal for _, _, goal in found]
    return rv.Demonstrations.from_trajectories(
        pairs, n_states, 2, ids=list("abcdefg")[: len(pairs)], goal=goals, **options
    )


GOOD = ([0, 1, 2, 3], [0, 0, 1], 3)


def complaint(mdp: rv.MDP, demos: rv.Demonstrations) -> str:
    with pytest.raises(InvalidDemonstrations) as caught:
        require_fit(mdp, match_labels(demos, mdp))
    return str(caught.value)


def test_trips_that_fit_are_let_through():
    """Also to a dead end, and where a goal is on the way to another; with one that does not, none is."""
    good = (GOOD, ([4, 0, 1, 5], [0, 0, 1], 5), ([3, 0], [0], 0), ([0, 1], [0], 1))
    assert require_fit(network(), trips(*good)) is None
    assert "goal 'yard' cannot be reached" in complaint(network(), trips(*good, ([3, 0, 2], [0, 1], 4)))


def test_a_goal_that_cannot_be_reached_is_named_with_the_trip():
    assert complaint(network(), trips(GOOD, ([3, 0, 2], [0, 1], 4))) == (
        f"goal 'yard' cannot be reached from state 'mill' (first at trip 'b', time 0). {REMEDY}"
    )


def test_a_turn_to_where_the_goal_is_out_of_reach_is_named_with_the_trip():
    assert complaint(network(), trips(GOOD, ([0, 1, 5], [0, 1], 3))) == (
        f"goal 'mill' cannot be reached after action 1 in state 'arch' (first at trip 'b', time 1). {REMEDY}"
    )


def test_a_turn_that_does_not_exist_is_named_with_the_trip():
    assert complaint(network(), trips(GOOD, ([3, 0, 2], [1, 1], 2))) == (
        "`demonstrations`: expected feasible actions in non-terminal states; got 1 infeasible decision "
        "(first at state 'mill', action 1, trip 'b', time 0). "
        "Drop those decisions, or change the MDP's feasible= or terminal=."
    )


def test_a_goal_that_the_model_does_not_have_is_named_with_the_trip():
    assert complaint(network(labels=None), trips(GOOD, ([3, 0], [0], 8), n_states=9)) == (
        "`goal`: expected states of the model, indices in 0…5; got goal 8 (first at trip 'b', time 0)."
    )
    named = replace(trips(GOOD, ([3, 0], [0], 6), n_states=7), state_labels=(*LINKS, "quai"))
    assert complaint(network(), named) == (
        "`goal`: expected a state of the model, one of quay, arch, gate, mill, yard, dead end; got 'quai' (first at "
        "trip 'b', time 0). Did you mean quay? A goal is a state of the model, even if no decision is made there."
    )
    assert "got goal 'quai' (first at trip 'b', time 0)" in complaint(network(labels=None), named)


def test_the_first_offender_is_the_first_row_of_a_frame():
    frame = trips(([3, 0], [0], 4), ([2, 0], [0], 4), GOOD).to_frame(goal="goal").iloc[::-1].reset_index(drop=True)
    names: Any = {"id": "id", "time": "time", "state": "state", "action": "action", "goal": "goal"}
    read = rv.Demonstrations.from_frame(frame, **names, n_states=6)
    told = "goal 'yard' cannot be reached from state 'gate' (first at trip 'b', time 0, row 3)"
    assert told in complaint(network(), read)


def test_decisions_that_do_not_count_are_not_asked():
    both = trips(GOOD, ([3, 0, 2], [0, 1], 4))
    assert require_fit(network(), both.reweighted(np.array([1.0, 0.0]))) is None
    assert "goal 'yard' cannot be reached" in complaint(network(), both.reweighted(np.array([0.0, 1.0])))


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_what_is_let_through_is_what_the_model_toward_each_goal_offers(seed, sure):
    """The search by components, and the models that `toward` makes one by one: they agree about every decision."""
    rng = np.random.default_rng(seed)
    S, A = 8, 2
    if sure:
        offered = rng.random((S, A)) < 0.6
        mdp = network({(int(s), int(a)): int(rng.integers(S)) for s, a in np.argwhere(offered)}, S, A, None)
    else:
        mdp = random_mdp(S, A, 1.0, seed, masked=True, branching=2, terminal=2)
    for _ in range(12):
        (s, a), goal = rng.choice(np.argwhere(mdp.feasible)) if mdp.feasible.any() else (0, 0), int(rng.integers(S))
        if s == goal or not mdp.feasible[s, a]:
            continue
        demos = rv.Demonstrations.from_trajectories([([s], [a])], S, A, goal=goal)
        model = mdp.toward(goal)
        if model.feasible[s, a]:
            require_fit(mdp, demos)
        else:
            with pytest.raises(InvalidDemonstrations, match="reached from" if model.terminal[s] else "reach.* after"):
                require_fit(mdp, demos)
