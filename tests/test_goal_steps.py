"""Trips with goals: alike from trajectories, frames and episodes, split by goal, refused where they make no sense."""

from dataclasses import fields, replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from models import corridor
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.loaded_checks import _require_steps
from revealed.loading import _Decoder
from revealed.matching import match_labels
from revealed.saving import Encoder

S, A = 7, 3
LINKS = ("quay", "arch", "gate", "mill", "yard", "kiln", "dock")  # not in the alphabet's order
TURNS = ("left", "ahead", "right")
COLUMNS: Any = {"id": "trip", "time": "n", "state": "at", "action": "turn"}

# to 3, to 5 and to 3 again; the second is not there yet
PATHS = [([0, 1, 2, 3], [0, 1, 2]), ([2, 3], [0, 2]), ([3 - 1, 4, 3], [1, 0])]
GOALS = [3, 5, 3]


def demos(**options: Any) -> rv.Demonstrations:
    return rv.Demonstrations.from_trajectories(PATHS, S, A, **{"goal": GOALS} | options)


@st.composite
def trips(draw: st.DrawFn) -> list[tuple[list[int], list[int], int]]:
    """(states, actions, goal): the last state may be the goal, no earlier one is."""
    found = []
    for _ in range(draw(st.integers(1, 6))):
        goal = draw(st.integers(0, S - 1))
        others = st.sampled_from([s for s in range(S) if s != goal])
        states = draw(st.lists(others, min_size=1, max_size=5))
        last = draw(st.one_of(st.just(goal), others))
        actions = draw(st.lists(st.integers(0, A - 1), min_size=len(states), max_size=len(states)))
        found.append(([*states, last], actions, goal))
    return found


def from_trips(found: list[tuple[list[int], list[int], int]], **options: Any) -> rv.Demonstrations:
    pairs = [(s, a) for s, a, _ in found]
    return rv.Demonstrations.from_trajectories(pairs, S, A, goal=[g for _, _, g in found], **options)


def as_frame(found: list[tuple[list[int], list[int], int]]) -> pd.DataFrame:
    rows = [
        (trip, n, s[n], a[n], s[n + 1], goal) for trip, (s, a, goal) in enumerate(found) for n in range(len(a))
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["trip", "n", "at", "turn", "to", "goal"])


def assert_same_steps(one: rv.Demonstrations, other: rv.Demonstrations) -> None:
    """The same decisions on the same trips; where they stood in a frame does not count."""
    assert one.steps is not None
    assert other.steps is not None
    for field in fields(one.steps):
        mine, theirs = getattr(one.steps, field.name), getattr(other.steps, field.name)
        if field.name not in ("row", "weight", "entry"):
            np.testing.assert_array_equal(mine, theirs, err_msg=field.name)
    np.testing.assert_array_equal(one.starts, other.starts)
    np.testing.assert_array_equal(one.by_agent.toarray(), other.by_agent.toarray())
    np.testing.assert_array_equal(one.transition_counts.toarray(), other.transition_counts.toarray())


# ------------------------------------------------------------------------------------------- three ways to say the same


@given(trips(), st.randoms(use_true_random=False))
def test_a_frame_says_the_same_as_trajectories(found, random):
    """Rows in any order, by index and by label."""
    table = as_frame(found)
    order = list(range(len(table)))
    random.shuffle(order)
    plain = from_trips(found)
    table = table.iloc[order]
    by_index = rv.Demonstrations.from_frame(table, **COLUMNS, next_state="to", goal="goal", n_states=S, n_actions=A)
    assert_same_steps(by_index, plain)
    named = table.assign(**{name: np.array(LINKS)[table[name]] for name in ("at", "to", "goal")})
    sizes: Any = {"states": LINKS, "n_actions": A}
    assert_same_steps(rv.Demonstrations.from_frame(named, **COLUMNS, next_state="to", goal="goal", **sizes), plain)


@given(trips())
def test_the_parts_by_goal_add_up_to_the_whole(found):
    """Each part is what its trips alone would give; every agent keeps its place."""
    whole = from_trips(found).reweighted(np.arange(1.0, len(found) + 1)).discount_visits(0.5)
    assert whole.goals is not None
    np.testing.assert_array_equal(whole.goals, sorted({goal for _, _, goal in found}))
    parts = [whole.toward(goal) for goal in whole.goals]
    for name in ("counts", "weights", "starts"):
        np.testing.assert_allclose(sum(getattr(part, name) for part in parts), getattr(whole, name))
    for name in ("by_agent", "weights_by_agent", "transition_counts"):
        total = sum(getattr(part, name).toarray() for part in parts)
        np.testing.assert_allclose(total, getattr(whole, name).toarray())
    for goal, part in zip(whole.goals, parts, strict=True):
        assert part.goals is None
        assert part.ids == whole.ids
        ours = [k for k, trip in enumerate(found) if trip[2] == goal]
        alone = rv.Demonstrations.from_trajectories([found[k][:2] for k in ours], S, A, ids=ours)
        np.testing.assert_array_equal(part.subset(ours).transition_counts.toarray(), alone.transition_counts.toarray())


@given(trips(), st.lists(st.sampled_from("abc"), min_size=6, max_size=6))
def test_a_frame_and_back_keeps_goals(found, names):
    """Also of agents with several trips, each to its own goal, which a column tells apart."""
    given_ids = names[: len(found)]
    first = replace(from_trips(found, ids=given_ids), state_labels=LINKS, action_labels=TURNS)
    frame = first.to_frame(**COLUMNS, next_state="to", goal="goal")
    known: Any = {"states": LINKS, "actions": TURNS, "episode": "episode" if "episode" in frame else None}
    back = rv.Demonstrations.from_frame(frame, **COLUMNS, next_state="to", goal="goal", **known)
    assert back.steps is not None
    assert back.destinations is not None
    assert first.destinations is not None
    order = sorted(range(len(found)), key=lambda k: given_ids[k])  # a frame is read in the order of ids
    np.testing.assert_array_equal(back.destinations, first.destinations[order])
    np.testing.assert_array_equal(back.origins, first.origins[order])
    np.testing.assert_array_equal(back.transition_counts.toarray(), first.transition_counts.toarray())


def test_trajectories_are_told_apart_step_by_step():
    whole = demos(ids=["ann", "bob", "ann"])
    np.testing.assert_array_equal(whole.trajectory, [0, 0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(whole.origins, [0, 2, 2])
    np.testing.assert_array_equal(whole.destinations, GOALS)
    assert whole.steps is not None
    np.testing.assert_array_equal(whole.steps.goal, np.array(GOALS)[whole.trajectory])
    table = whole.to_frame(**COLUMNS, goal="goal").sample(frac=1.0, random_state=1)
    read = rv.Demonstrations.from_frame(table, **COLUMNS, goal="goal", n_states=S, episode="episode")
    np.testing.assert_array_equal(read.trajectory, [0, 0, 0, 1, 1, 2, 2])  # both of ann's, then bob's
    np.testing.assert_array_equal(read.destinations, [3, 3, 5])


def test_without_goals_there_are_trajectories_all_the_same():
    plain = demos(goal=None)
    assert plain.goals is None
    assert plain.destinations is None
    np.testing.assert_array_equal(plain.origins, [0, 2, 2])
    np.testing.assert_array_equal(plain.trajectory, demos().trajectory)


def test_one_goal_may_be_for_all():
    for goal in (6, np.int64(6), [6, 6, 6], np.array([6, 6, 6])):
        np.testing.assert_array_equal(demos(goal=goal).destinations, [6, 6, 6])


def test_a_trip_without_a_decision_is_no_trip():
    found = rv.Demonstrations.from_trajectories([([4], []), ([1, 4], [0])], S, A, goal=4)
    np.testing.assert_array_equal(found.starts, np.eye(S)[1])
    np.testing.assert_array_equal(found.origins, [1])
    np.testing.assert_array_equal(found.starts, found.toward(4).starts)


def test_goals_that_nobody_has_been_to_are_states():
    """Whole numbers count up to the goal; labels are those of states, next states and goals together."""
    table = pd.DataFrame({"trip": [1, 1], "n": [0, 1], "at": [0, 1], "turn": 0, "goal": [5, 5]})
    assert rv.Demonstrations.from_frame(table, **COLUMNS, goal="goal").n_states == 6
    named = table.assign(at=["yard", "mill"], goal="arch", to=["mill", "gate"])
    read = rv.Demonstrations.from_frame(named, **COLUMNS, goal="goal", next_state="to")
    assert read.state_labels == ("arch", "gate", "mill", "yard")
    assert (read.goals, read.goal_states) == (("arch",), [0])
    assert rv.Demonstrations.from_frame(named, **COLUMNS, goal="goal").state_labels == ("arch", "mill", "yard")


def test_goals_of_several_columns_and_of_bins():
    table = pd.DataFrame({"trip": [1, 1], "n": [0, 1], "x": [0, 1], "y": [5, 5], "turn": 0, "gx": 2, "gy": 5})
    several: Any = COLUMNS | {"state": ["x", "y"]}
    pairs = rv.Demonstrations.from_frame(table, **several, goal=["gx", "gy"])
    assert pairs.state_labels == ((0, 5), (1, 5), (2, 5))
    assert (pairs.goals, pairs.goal_states) == (((2, 5),), [2])
    assert pairs.to_frame(state=["x", "y"], goal=["gx", "gy"])[["gx", "gy"]].to_numpy().tolist() == [[2, 5]] * 2
    bins = rv.discretize(table, "x", edges=[0.0, 0.5, 1.5, 3.0])
    binned = rv.Demonstrations.from_frame(table, **COLUMNS | {"state": bins}, goal="gx")
    np.testing.assert_array_equal(binned.goal_states, [2])
    with pytest.raises(InvalidInput, match=r"`goal`: expected 2 columns, as `state` has; got \['gx'\]"):
        rv.Demonstrations.from_frame(table, **several, goal="gx")


def test_trips_of_one_decision_each_are_trips():
    table = pd.DataFrame({"trip": [1, 2], "n": [0, 0], "at": [0, 1], "turn": [0, 1], "goal": [2, 2]})
    np.testing.assert_array_equal(rv.Demonstrations.from_frame(table, **COLUMNS, goal="goal").origins, [0, 1])
    with pytest.raises(InvalidDemonstrations, match="at least two periods"):
        rv.Demonstrations.from_frame(table, **COLUMNS)


def test_episodes_may_have_goals():
    """By index, or by a label of the model; from_trajectories passes them on."""
    mdp = corridor(4).with_labels(LINKS[:4])
    steps = [(s, 1, 0.0, s == 2, False, {}) for s in range(3)]
    for goal in (3, "mill", [3, 3], ["mill", "mill"]):
        found = rv.Demonstrations.from_episodes([steps, steps[1:]], mdp, goal=goal)
        np.testing.assert_array_equal(found.destinations, [3, 3])
    assert found.state_labels == LINKS[:4]
    passed = rv.Demonstrations.from_trajectories([steps], 4, 2, goal=[3])  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(passed.destinations, [3])
    with pytest.raises(InvalidDemonstrations, match=r"`goal`.*'mil' \(first at episode 1\). Did you mean mill"):
        rv.Demonstrations.from_episodes([steps, steps], mdp, goal=["mill", "mil"])
    with pytest.raises(InvalidDemonstrations, match=r"cannot continue after.*trip 0, time 2, state 'gate'"):
        rv.Demonstrations.from_episodes([steps], mdp, goal="gate")


# ------------------------------------------------------------------------------------ one from another, kept and read


def test_what_is_made_of_trips_keeps_their_goals():
    whole = demos(ids=["ann", "bob", "cas"])
    np.testing.assert_array_equal(whole.subset([2, 1]).destinations, [5, 3])
    np.testing.assert_array_equal(whole.subset([0, 2]).goals, [3])
    for other in (whole.reweighted(np.array([0.0, 2.0, 1.0])), whole.discount_visits(0.5)):
        np.testing.assert_array_equal(other.destinations, GOALS)
    assert repr(whole) == "Demonstrations(7 decisions by 3 agents toward 2 goals, 5 of 7 states seen, 3 actions)"
    assert "toward 1 goal," in repr(whole.subset([0, 2]))


def test_labels_of_goals_are_matched_to_those_of_the_model():
    """The same trips by names, whatever the order of the names."""
    mdp = rv.MDP(np.full((S, A, S), 1.0 / S), discount=0.9, state_labels=LINKS, action_labels=TURNS)
    table = replace(demos(), state_labels=LINKS, action_labels=TURNS).to_frame(**COLUMNS, goal="goal")
    read = rv.Demonstrations.from_frame(table, **COLUMNS, goal="goal")
    assert read.state_labels == ("arch", "gate", "kiln", "mill", "quay", "yard")
    matched = match_labels(read, mdp)
    np.testing.assert_array_equal(matched.destinations, GOALS)
    np.testing.assert_array_equal(matched.toward("kiln").counts, demos().toward(5).counts)


def test_a_saved_copy_has_the_same_goals():
    whole = replace(demos(), state_labels=LINKS)
    assert whole.goals is not None  # what is computed is not written
    encoder = Encoder()
    node = encoder.encode(whole, "demonstrations")
    again = _Decoder(encoder.arrays, None).decode(node)
    assert_same_steps(again, whole)
    np.testing.assert_array_equal(again.toward("kiln").counts, demos().toward(5).counts)
    _require_steps(again)
    beyond = replace(again, steps=replace(again.steps, goal=again.steps.goal + 3))
    with pytest.raises(ValueError, match=r"steps\.goal holds indices beyond 7"):
        _require_steps(beyond)


# --------------------------------------------------------------------------------------- what is refused, and how


def message(call: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        call()
    return str(caught.value)


def test_goals_that_are_none_are_refused_with_the_trajectory():
    expected = "`goal`: expected states, indices in 0…6; got {} (first at trajectory {})."
    assert message(lambda: demos(goal=[3, 7, 3])) == expected.format(7, 1)
    assert message(lambda: demos(goal=[3, 5, -1])) == expected.format(-1, 2)
    assert message(lambda: demos(goal="mill")) == expected.format("'mill'", 0)
    assert message(lambda: demos(goal=[3, 5, None])) == expected.format(None, 2)
    assert message(lambda: demos(goal=[3, 5])) == "`goal`: expected one entry per trajectory (3); got 2."


def test_a_trip_does_not_go_on_behind_its_goal():
    remedy = "Drop the rows after its arrival, or give each trip its own id."
    text = "a trip cannot continue after it has reached its goal"
    assert message(lambda: demos(goal=[3, 3, 3], ids=["ann", "bob", "cas"])) == (
        f"{text} (first at trip 'bob', time 1, state 3). {remedy}"
    )
    table = pd.DataFrame({"trip": "b", "n": [12, 11, 10], "at": ["mill", "arch", "quay"], "turn": 0, "goal": "arch"})
    read = lambda: rv.Demonstrations.from_frame(table, **COLUMNS, goal="goal")  # noqa: E731
    assert message(read) == f"{text} (first at trip 'b', time 1, row 1, state 'arch'). {remedy}"


def test_a_goal_that_changes_on_the_way_is_refused():
    table = pd.DataFrame({"trip": "b", "n": [6, 5, 4], "at": [0, 1, 2], "turn": 0, "goal": ["x", "y", "y"]})
    table["at"] = table["at"].map(str)
    assert message(lambda: rv.Demonstrations.from_frame(table, **COLUMNS, goal="goal")) == (
        "`goal`: expected one goal per trip; got 'y', then 'x' for id 'b' at time 6 (first at row 0). "
        "Give each trip its own id, or name the column that distinguishes an id's trips: episode=."
    )
    apart = table.assign(n=[7, 5, 4])
    read = rv.Demonstrations.from_frame(apart, **COLUMNS, goal="goal", states=["0", "1", "2", "x", "y"])
    np.testing.assert_array_equal(read.destinations, [4, 3])


def test_bad_columns_of_goals_are_refused():
    table = pd.DataFrame({"trip": 1, "n": [0, 1, 2], "at": list("abc"), "turn": 0, "goal": ["z", None, "z"]})
    read = lambda t, **o: rv.Demonstrations.from_frame(t, **COLUMNS, goal="goal", **o)  # noqa: E731
    assert message(lambda: read(table)) == (
        "`goal`: expected no missing values; got 1 missing (first at row 1). "
        "Every decision of a trip needs its goal; put trips without one into separate demonstrations."
    )
    filled = table.assign(goal="mlil")
    assert message(lambda: read(filled, states=["a", "b", "c", "mill"])) == (
        "`goal`: expected one of a, b, c, mill; got 'mlil' (first at row 0). Did you mean mill? A goal is a state, "
        "even if no decision is made there: list it in states=."
    )
    assert "states and goals of one kind; got text and whole numbers" in message(lambda: read(table.assign(goal=3)))
    numbers = table.assign(at=[0, 1, 2], goal=[-1, -1, -1])
    assert "`goal`: expected indices from 0" in message(lambda: read(numbers))
    assert "`goal`: expected one of the columns" in message(lambda: read(table.drop(columns="goal")))


def test_goals_need_single_decisions():
    table = demos().to_frame(**COLUMNS, goal="goal")
    remedy = "Pass keep_steps=True to read it into memory, or use part of the trips."
    expected = f"`goal` requires individual decisions, but for a panel this large only counts are kept. {remedy}"
    for frame in (table, duckdb.from_df(table), pl.from_pandas(table).lazy()):
        with pytest.raises(InvalidInput) as caught:
            rv.Demonstrations.from_frame(frame, **COLUMNS, goal="goal", keep_steps=False)
        assert str(caught.value) == expected
        read = rv.Demonstrations.from_frame(frame, **COLUMNS, goal="goal", n_states=S, keep_steps=True)
        np.testing.assert_array_equal(read.destinations, GOALS)


def test_large_files_are_not_counted_behind_the_users_back(monkeypatch):
    monkeypatch.setattr("revealed.panels.where.MOST_STEPS", 3)
    table = demos().to_frame(**COLUMNS, goal="goal")
    for frame in (duckdb.from_df(table), pl.from_pandas(table).lazy()):
        with pytest.raises(InvalidInput, match=r"`goal`.*keep_steps=True"):
            rv.Demonstrations.from_frame(frame, **COLUMNS, goal="goal")


def test_a_horizon_has_no_goals():
    found = rv.Demonstrations.from_trajectories([([0, 1], [1])], 4, 2, goal=3)
    assert message(lambda: found.lift(corridor(4).unroll(3))) == (
        "`goal` cannot be combined with a horizon, which ends every trip. "
        "Use mdp.base, where trips end at their goals, or leave goals out."
    )
    assert found.lift(corridor(4)) is found


def test_only_a_goal_of_these_trips_has_a_part():
    named = replace(demos(), state_labels=LINKS)
    assert message(lambda: named.toward("dock")) == (
        "`goal`: expected a goal of these trips, one of mill, kiln; got state 'dock'."
    )
    assert "Did you mean kiln?" in message(lambda: named.toward("klin"))
    assert "indices in 0…6" in message(lambda: demos().toward(7))
    assert message(lambda: demos(goal=None).toward(3)) == (
        "`goal`: expected trips with goals; got trajectories without. Pass goal= when building the demonstrations."
    )
    assert "plain counts" in message(lambda: rv.Demonstrations.from_counts(np.ones((2, 2))).toward(0))


def test_frames_have_a_column_of_goals_where_there_are_any():
    assert "goal" in demos().to_frame()
    assert "goal" not in demos().to_frame(goal=None)
    assert "goal" not in demos(goal=None).to_frame()
