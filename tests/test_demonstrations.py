"""What was observed, from trajectories and counts. Frames and files: test_panels.py; bad input: test_errors.py."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import revealed as rv
from models import corridor, random_mdp
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.matching import require_fit

TRAJECTORIES = [([0, 1, 2], [1, 1, 0]), ([2, 1, 0], [0, 0]), ([3], [1])]


def demos(**options) -> rv.Demonstrations:
    return rv.Demonstrations.from_trajectories(TRAJECTORIES, n_states=4, n_actions=2, **options)


def moves(d: rv.Demonstrations) -> set[tuple[int, int, int, float]]:
    """(s, a, s', how often)."""
    seen = d.transition_counts.tocoo()
    pair, following = seen.coords
    return {
        (int(p) // d.n_actions, int(p) % d.n_actions, int(t), float(v)) for p, t, v in zip(pair, following, seen.data)
    }


def test_counts_are_how_often_each_action_was_taken():
    np.testing.assert_array_equal(demos().counts, [[0, 1], [1, 1], [2, 0], [0, 1]])
    assert demos().n_decisions == 6


def test_a_last_state_without_action_is_no_decision_but_tells_where_the_last_one_led():
    d = demos()
    assert moves(d) == {(0, 1, 1, 1.0), (1, 1, 2, 1.0), (2, 0, 1, 1.0), (1, 0, 0, 1.0)}
    assert d.transition_counts.sum() == 4  # the last moves of the first and third trajectory were not seen


def test_next_state_tells_where_the_last_decision_led():
    d = demos(next_state=[1, 0, 3])
    assert d.transition_counts.sum() == 6
    assert (2, 0, 1, 2.0) in moves(d)
    assert (3, 1, 3, 1.0) in moves(d)


def test_next_state_may_be_given_for_every_decision():
    assert moves(demos(next_state=[[1, 2, 1], [1, 0], [3]])) == moves(demos(next_state=[1, 0, 3]))


def test_next_states_that_contradict_the_trajectory_are_refused():
    with pytest.raises(rv.errors.InvalidDemonstrations, match="next_state"):
        demos(next_state=[1, 3, 3])  # the second trajectory itself says that its last decision led to 0
    with pytest.raises(rv.errors.InvalidDemonstrations, match="next_state"):
        demos(next_state=[[3, 2, 1], [1, 0], [3]])


def test_starts_are_the_first_states():
    np.testing.assert_array_equal(demos().starts, [1, 0, 1, 1])


def test_agents_are_rows_and_the_rows_add_up_to_the_counts():
    d = demos(ids=["ann", "bob", "ann"])
    assert d.ids == ("ann", "bob")
    assert d.n_agents == 2
    assert d.by_agent.shape == (2, 8)
    np.testing.assert_array_equal(d.by_agent.toarray()[0].reshape(4, 2), [[0, 1], [0, 1], [1, 0], [0, 1]])
    np.testing.assert_array_equal(d.by_agent.toarray().sum(axis=0).reshape(4, 2), d.counts)
    np.testing.assert_array_equal(d.starts, demos().starts)  # each trajectory starts, whoever made it


def test_without_ids_each_trajectory_is_its_own_agent():
    assert demos().ids == (0, 1, 2)


def test_empty_trajectories_start_but_decide_nothing():
    d = rv.Demonstrations.from_trajectories([([1], []), ([], []), ([0, 1], [0, 0])], n_states=2, n_actions=1)
    np.testing.assert_array_equal(d.starts, [1, 1])
    assert d.n_decisions == 2
    assert d.n_agents == 3


def test_any_sequence_of_whole_numbers_will_do():
    pairs = [(np.array([0, 1], dtype=np.uint8), (1, 0)), ([2, 3], np.array([1, 1], dtype=np.int16))]
    d = rv.Demonstrations.from_trajectories((p for p in pairs), n_states=4, n_actions=2)
    np.testing.assert_array_equal(d.counts, [[0, 1], [1, 0], [0, 1], [0, 1]])


def test_discounted_visits_weigh_by_time_and_leave_the_counts():
    d = demos().discount_visits(0.5)
    np.testing.assert_array_equal(d.counts, demos().counts)
    np.testing.assert_allclose(d.weights, [[0, 1], [0.5, 0.5], [0.25 + 1, 0], [0, 1]])
    np.testing.assert_allclose(d.weights_by_agent.toarray().sum(axis=0).reshape(4, 2), d.weights)
    np.testing.assert_array_equal(demos().weights, demos().counts)


def test_visits_discounted_by_zero_leave_the_first_decisions():
    np.testing.assert_array_equal(demos().discount_visits(0.0).weights, [[0, 1], [0, 0], [1, 0], [0, 1]])


def test_lift_puts_each_decision_at_its_time():
    unrolled = corridor(4).unroll(3)
    d = demos(next_state=[1, 0, 3]).lift(unrolled)
    expected = np.zeros((4, 4, 2))
    for t, s, a in [(0, 0, 1), (1, 1, 1), (2, 2, 0), (0, 2, 0), (1, 1, 0), (0, 3, 1)]:
        expected[t, s, a] += 1
    np.testing.assert_array_equal(d.counts.reshape(4, 4, 2), expected)
    np.testing.assert_array_equal(d.starts, [*demos().starts, *np.zeros(12)])
    assert (0, 1, 5, 1.0) in moves(d)
    assert (10, 0, 13, 1.0) in moves(d)


def test_lift_keeps_discounted_visits_and_agents():
    unrolled = corridor(4).unroll(3)
    d = demos(ids=["ann", "bob", "ann"]).discount_visits(0.5).lift(unrolled)
    assert d.ids == ("ann", "bob")
    np.testing.assert_allclose(d.weights.reshape(4, 4, 2).sum(axis=0), demos().discount_visits(0.5).weights)


def test_lift_to_a_plain_model_changes_nothing():
    d = demos()
    assert d.lift(corridor(4)) is d
    lifted = d.lift(corridor(4).unroll(3))
    assert lifted.lift(corridor(4).unroll(3)) is lifted


def test_decisions_beyond_the_horizon_are_refused():
    with pytest.raises(rv.errors.InvalidDemonstrations, match=r"unroll\(3\)"):
        demos().lift(corridor(4).unroll(2))


def test_demonstrations_of_another_number_of_states_are_not_lifted():
    with pytest.raises(rv.errors.InvalidDemonstrations, match="states"):
        demos().lift(corridor(5).unroll(3))
    with pytest.raises(rv.errors.InvalidDemonstrations, match="states"):
        rv.NFXP(rv.TabularReward(5)).fit(corridor(5).unroll(3), demos())


def test_counts_cannot_be_lifted_or_discounted():
    d = rv.Demonstrations.from_counts(np.ones((4, 2)))
    for act in (lambda: d.lift(corridor(4).unroll(3)), lambda: d.discount_visits(0.9)):
        with pytest.raises(rv.errors.InvalidDemonstrations, match="plain counts"):
            act()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, lambda x: x.tolist()])
def test_plain_counts_are_one_agent(form):
    table = np.array([[1.0, 2.5], [0.0, 3.0]])
    d = rv.Demonstrations.from_counts(form(table))
    np.testing.assert_array_equal(d.counts, table)
    np.testing.assert_array_equal(d.weights, table)
    assert d.n_agents == 1
    assert d.n_decisions == 6.5
    assert d.starts.sum() == 0.0
    assert d.transition_counts.nnz == 0


def test_counts_may_come_with_starts():
    np.testing.assert_array_equal(rv.Demonstrations.from_counts(np.ones((2, 2)), starts=[3, 1]).starts, [3, 1])


def test_counts_are_a_copy():
    table = np.ones((2, 2))
    d = rv.Demonstrations.from_counts(table)
    table[:] = 7.0
    np.testing.assert_array_equal(d.counts, 1.0)


def test_decisions_must_be_decisions_of_the_model():
    with pytest.raises(rv.errors.InvalidDemonstrations, match="n_states="):
        require_fit(corridor(5), demos())
    with pytest.raises(
        rv.errors.InvalidDemonstrations, match=r"in terminal states \(first at state 3, action 1, agent 2, time 0\)"
    ):
        require_fit(corridor(4, end=True), demos())
    mdp = random_mdp(4, 2)
    closed = mdp.replace(feasible=[[True, True], [True, False], [True, True], [True, True]])
    with pytest.raises(
        rv.errors.InvalidDemonstrations, match=r"infeasible \(first at state 1, action 1, agent \d, time \d\)"
    ):
        require_fit(closed, demos())
    require_fit(mdp, demos())


def test_repr_says_how_much_was_seen():
    assert repr(demos()) == "Demonstrations(6 decisions by 3 agents, 4 of 4 states seen, 2 actions)"


def test_a_subset_is_what_its_agents_alone_would_give():
    paths = [([0, 1, 2], [0, 1]), ([2, 0], [1, 0]), ([1], [1]), ([0, 2, 2], [1, 1])]
    demos = rv.Demonstrations.from_trajectories(paths, 3, 2, ids=["a", "b", "a", "c"])
    part = demos.subset([2, 0])
    alone = rv.Demonstrations.from_trajectories([paths[i] for i in (3, 0, 2)], 3, 2, ids=["c", "a", "a"])
    assert part.ids == alone.ids == ("c", "a")
    for name in ("counts", "starts"):
        np.testing.assert_array_equal(getattr(part, name), getattr(alone, name))
    for name in ("by_agent", "transition_counts"):
        np.testing.assert_array_equal(getattr(part, name).toarray(), getattr(alone, name).toarray())
    np.testing.assert_array_equal(demos.subset(np.array([True, False, False])).counts, demos.subset(range(1)).counts)
    np.testing.assert_array_equal(demos.subset(slice(1, None)).counts + demos.subset([0]).counts, demos.counts)


def test_a_subset_keeps_what_the_whole_knows():
    frame = pd.DataFrame({"id": [1, 1, 2, 2], "t": [0, 1, 0, 1], "s": list("xyxx"), "a": list("uvvu")})
    demos = rv.Demonstrations.from_frame(frame, id="id", time="t", state="s", action="a").discount_visits(0.5)
    part = demos.subset([1])
    assert (part.state_labels, part.action_labels) == (("x", "y"), ("u", "v"))
    np.testing.assert_array_equal(part.weights, [[0.5, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize("agents", [[0, 0], [5], "first", [[0]], 0, [], [0.5], [True]])
def test_agents_that_are_none_are_refused(agents):
    demos = rv.Demonstrations.from_trajectories([([0, 1], [0, 1]), ([1], [0])], 2, 2)
    with pytest.raises(InvalidDemonstrations, match="`agents`"):
        demos.subset(agents)


STEPS = [(0, 1), (1, 0), (0, 0)]


@pytest.mark.parametrize("written", [STEPS, tuple(STEPS), np.array(STEPS), iter(STEPS), [list(step) for step in STEPS]])
def test_steps_that_cannot_be_a_pair_are_steps(written):
    demos = rv.Demonstrations.from_trajectories([written], 2, 2)
    pair = rv.Demonstrations.from_trajectories([([0, 1, 0], [1, 0, 0])], 2, 2)
    np.testing.assert_array_equal(demos.transition_counts.toarray(), pair.transition_counts.toarray())
    np.testing.assert_array_equal(demos.counts, pair.counts)


SQUARE = [(0, 1), (2, 1)]


@pytest.mark.parametrize(
    "written", [SQUARE, tuple(SQUARE), np.array(SQUARE), [[0, 1], [2, 1]], np.array(SQUARE).tolist()]
)
def test_what_may_be_steps_or_a_pair_is_refused_with_both(written):
    with pytest.raises(InvalidDemonstrations) as caught:
        rv.Demonstrations.from_trajectories([written], 3, 3)
    told = str(caught.value)
    assert "two steps, or a list of states and a list of actions (first at trajectory 0)" in told
    assert "([0, 2], [1, 1]) for the steps: action 1 in state 0, then action 1 in state 2" in told
    assert "([0, 1], [2, 1]) for states and actions: action 2 in state 0, then action 1 in state 1" in told
    for clear, counts in ((([0, 2], [1, 1]), {(0, 1), (2, 1)}), (([0, 1], [2, 1]), {(0, 2), (1, 1)})):
        found = rv.Demonstrations.from_trajectories([clear], 3, 3).counts
        assert {(int(s), int(a)) for s, a in np.argwhere(found)} == counts


def test_of_two_readings_the_one_that_is_possible_is_taken():
    by_range = rv.Demonstrations.from_trajectories([SQUARE], 3, 2)  # there is no action 2: these are steps
    np.testing.assert_array_equal(by_range.counts, [[0, 1], [0, 0], [0, 1]])
    pair = rv.Demonstrations.from_trajectories([[[1, 2], [0, 1]]], 3, 2)  # nor here: states 1 and 2
    np.testing.assert_array_equal(pair.counts, [[0, 0], [1, 0], [0, 1]])
    others = rv.Demonstrations.from_trajectories([SQUARE, [(0, 1)]], 3, 3)  # the second can only be a step
    assert others.counts[2, 1] == 1.0
    pairs = rv.Demonstrations.from_trajectories([SQUARE, ([0, 1, 2], [2, 1])], 3, 3)  # the second can only be a pair
    assert pairs.counts[0, 2] == 2.0
    with pytest.raises(InvalidDemonstrations, match="trajectory 2"):
        rv.Demonstrations.from_trajectories([[(0, 1)], ([0, 1, 2], [2, 1]), SQUARE], 3, 3)


def test_a_frame_and_back_is_the_same():
    """Two trajectories of one agent, labels, agents in an order of their own, and where the last decision led."""
    states, actions = ("new", "worn", "broken"), ("keep", "replace")
    pairs = [([0, 1, 2], [0, 0]), ([2, 0], [1]), ([1, 2, 0], [0, 1])]
    given = rv.Demonstrations.from_trajectories(pairs, 3, 2, ids=["b", "b", "a"])
    demos = replace(given, state_labels=states, action_labels=actions)
    frame = demos.to_frame(id="bus", time="month", state="x", action="d", next_state="x'")
    assert frame["x"].tolist() == ["new", "worn", "broken", "worn", "broken"]
    assert frame["month"].tolist() == [0, 1, 0, 0, 1]
    assert frame["episode"].tolist() == [0, 0, 1, 0, 0]
    assert demos.to_frame(episode=None)["time"].tolist() == [
        0,
        1,
        3,
        0,
        1,
    ]  # where nothing tells them apart, a gap does
    names: Any = {"id": "bus", "time": "month", "state": "x", "action": "d", "next_state": "x'", "episode": "episode"}
    back = rv.Demonstrations.from_frame(frame, **names, states=states, actions=actions)
    order = [back.ids.index(name) for name in demos.ids]
    np.testing.assert_array_equal(back.by_agent.toarray()[order], demos.by_agent.toarray())
    np.testing.assert_array_equal(back.starts, demos.starts)
    np.testing.assert_array_equal(back.transition_counts.toarray(), demos.transition_counts.toarray())
    assert (back.state_labels, back.action_labels) == (states, actions)


def test_a_frame_keeps_gaps_in_time_and_says_what_was_not_seen():
    frame = pd.DataFrame({"i": [1, 1, 1], "t": [3, 4, 7], "s": [0, 1, 1], "a": [0, 1, 0]})
    demos = rv.Demonstrations.from_frame(frame, id="i", time="t", state="s", action="a")
    out = demos.to_frame(next_state="next")
    assert out["time"].tolist() == [0, 1, 4]
    assert out["next"].isna().tolist() == [False, True, True]
    again = rv.Demonstrations.from_frame(out, id="id", time="time", state="state", action="action")
    np.testing.assert_array_equal(again.starts, demos.starts)


def test_plain_counts_have_no_frame_and_columns_need_names_of_their_own():
    with pytest.raises(rv.errors.InvalidDemonstrations, match="plain counts"):
        rv.Demonstrations.from_counts([[1, 2]]).to_frame()
    with pytest.raises(rv.errors.InvalidInput, match="distinct column names"):
        rv.Demonstrations.from_trajectories([([0], [0])], 1, 1).to_frame(state="x", action="x")


def test_trajectories_with_labels_are_read_as_a_frame_with_them_is():
    walks = [(["home", "work", "home"], ["go", "stay"]), (["work"], ["go"])]
    demos = rv.Demonstrations.from_trajectories(walks)
    assert (demos.state_labels, demos.action_labels) == (("home", "work"), ("go", "stay"))
    np.testing.assert_array_equal(demos.counts, [[1, 0], [1, 1]])
    moves = np.full((2, 2, 2), 0.5)
    reward = rv.LinearReward(np.array([[[0.0], [1.0]], [[1.0], [0.0]]]))
    with pytest.raises(InvalidInput, match="sorted from the data, not declared"):
        rv.NFXP(reward, l2=0.1).fit(rv.MDP(moves, 0.9), demos)
    declared = rv.Demonstrations.from_trajectories(walks, states=["work", "home"], actions=["stay", "go"])
    np.testing.assert_array_equal(declared.counts, [[1, 1], [0, 1]])
    rv.NFXP(reward, l2=0.1).fit(rv.MDP(moves, 0.9), declared)


def test_whole_numbers_are_labels_where_labels_of_trajectories_are_declared():
    demos = rv.Demonstrations.from_trajectories([([20, 10], [0, 1])], n_actions=2, states=[20, 10])
    assert demos.state_labels == (20, 10)
    np.testing.assert_array_equal(demos.counts, [[1, 0], [0, 1]])
    with pytest.raises(InvalidInput, match=r"one of 20, 10; got 0"):
        rv.Demonstrations.from_trajectories([([0, 1], [0, 1])], n_actions=2, states=[20, 10])


def test_two_steps_with_labels_are_not_read_as_a_pair():
    with pytest.raises(InvalidInput, match=r"tuples \(states, actions\)"):
        rv.Demonstrations.from_trajectories([[("home", "go"), ("work", "stay")]])


def test_what_trajectories_with_labels_lack_is_named():
    """Not a size that nobody was asked for."""
    read = rv.Demonstrations.from_trajectories
    with pytest.raises(InvalidDemonstrations, match="`n_actions` is required: actions without labels are indices"):
        read([(["a", "b"], [0, 1])])
    with pytest.raises(InvalidDemonstrations, match="`n_states` is required: states without labels are indices"):
        read([([("a", 1), ("b", 2)], ["x", "y"])])
    with pytest.raises(InvalidDemonstrations, match="at least one trajectory"):
        read([], states=["a", "b"])
