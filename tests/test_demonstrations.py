"""What was observed, from trajectories and counts. Frames and files: test_panels.py; bad input: test_errors.py."""

import datetime as dt
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
        rv.errors.InvalidDemonstrations,
        match=r"infeasible decisions? \(first at state 1, action 1, agent \d, time \d\)",
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
    part = demos.subset([2])  # an id: numbers that are ids are no positions
    assert (part.state_labels, part.action_labels) == (("x", "y"), ("u", "v"))
    np.testing.assert_array_equal(part.weights, [[0.5, 1.0], [0.0, 0.0]])


def by_agents(ids):
    """Agent k decides k + 1 times."""
    paths = [([0] * k, [0] * k) for k in range(1, len(ids) + 1)]
    return rv.Demonstrations.from_trajectories(paths, 1, 1, ids=ids)


@pytest.mark.parametrize("ids", [[5, 6, 7], [2, 1, 0], ["5", "6", "7"], [5.0, 6.0, 7.0]])
def test_ids_that_are_numbers_are_never_positions(ids):
    demos = by_agents(ids)
    part = demos.subset([ids[2], ids[1]])
    assert part.ids == (ids[2], ids[1])
    assert part.n_decisions == 5.0
    assert demos.subset(slice(0, 2)).ids == tuple(ids[:2])
    assert demos.subset([True, False, True]).ids == (ids[0], ids[2])
    assert demos.subset(pd.Series([ids[2], ids[1]], index=[8, 9])).ids == part.ids
    for unknown in ([3], range(3, 5), [int(ids[0]), 99]):
        with pytest.raises(InvalidDemonstrations, match=r"`agents`.*one of"):
            demos.subset(unknown)


def test_agents_are_picked_by_text_and_by_a_mask_under_their_ids():
    demos = by_agents(["kim", "ada", "bo"])
    assert demos.subset(["bo", "kim"]).ids == ("bo", "kim")
    assert demos.subset([1]).ids == ("ada",)  # no id is a number
    assert demos.subset(pd.Series({"bo": True, "kim": False, "ada": False})).ids == ("bo",)
    assert by_agents([0, 1, 2]).subset(pd.Series({2: True, 0: False, 1: False})).ids == (2,)
    for wrong in (["bo", "al"], pd.Series({"bo": True}), pd.Series({"bo": True, "kim": True, "al": True})):
        with pytest.raises(InvalidDemonstrations, match="agents"):
            demos.subset(wrong)


@pytest.mark.parametrize("ids", [["kim", "ada", "bo"], [5, 6, 7], [0, 1, 2]])
def test_weights_under_ids_are_matched_by_id(ids):
    demos = by_agents(ids)
    by_hand = demos.reweighted(np.array([1.0, 0.0, 10.0]))
    turned = pd.Series([10.0, 0.0, 1.0], index=ids[::-1])
    for given in (turned, dict(turned), pd.Series([1.0, 0.0, 10.0], index=ids)):
        np.testing.assert_array_equal(demos.reweighted(given).by_agent.toarray(), by_hand.by_agent.toarray())
    for wrong in (turned.rename({ids[0]: 99}), turned.iloc[:2], pd.concat([turned, turned])):
        with pytest.raises(InvalidDemonstrations, match="`weights`"):
            demos.reweighted(wrong)


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
    for states, actions in ((3, 3), (None, None), (None, 3)):  # also where a size is missing
        with pytest.raises(InvalidDemonstrations) as caught:
            rv.Demonstrations.from_trajectories([written], states, actions)
        told = str(caught.value)
        assert "two steps, or a list" in told
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
    lists = [list(step) for step in SQUARE]
    pairs = rv.Demonstrations.from_trajectories([lists, [[0, 1, 2], [2, 1]]], 3, 3)  # the second can only be a pair
    assert pairs.counts[0, 2] == 2.0
    for mixed in ([SQUARE, ([0, 1, 2], [2, 1])], [lists, [(0, 1)]], [SQUARE, np.array([(0, 1)] * 3)]):
        with pytest.raises(InvalidDemonstrations, match=r"may be two steps, or .* \(first at trajectory 0\)"):
            rv.Demonstrations.from_trajectories(mixed, 3, 3)  # written in another form, it tells nothing
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
    with pytest.raises(InvalidInput, match="not declared; the data were sorted"):
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
    two = [("home", "go"), ("work", "stay")]
    with pytest.raises(InvalidInput, match=r"tuples \(states, actions\)") as caught:
        rv.Demonstrations.from_trajectories([two])
    assert "Write (['home', 'work'], ['go', 'stay']) for the steps" in str(caught.value)
    listed: dict[str, Any] = {"states": ["home", "work"], "actions": ["go", "stay"]}
    for more, known in (([[("home", "go")]], {}), ([], listed)):
        clear = rv.Demonstrations.from_trajectories([two, *more], **known)  # others tell, or the labels do
        assert clear.counts[0, 0] == 1 + len(more)
        assert clear.counts[1, 1] == 1
    with pytest.raises(InvalidInput, match="may be two steps"):
        rv.Demonstrations.from_trajectories([two, (["home"], ["go"])])


LABELLED = [("a", "up"), ("b", "down"), ("a", "up")]


@pytest.mark.parametrize("written", [LABELLED, tuple(LABELLED), np.array(LABELLED), [list(s) for s in LABELLED]])
def test_steps_with_labels_are_read_as_the_pair_that_they_are(written):
    pair = rv.Demonstrations.from_trajectories([(["a", "b", "a"], ["up", "down", "up"])])
    found = rv.Demonstrations.from_trajectories([written])
    assert (found.state_labels, found.action_labels) == (("a", "b"), ("down", "up"))
    np.testing.assert_array_equal(found.transition_counts.toarray(), pair.transition_counts.toarray())


def test_steps_whose_states_are_numbers_that_are_labels_or_of_several_parts():
    steps = [(20, "up"), (10, "down"), (20, "up")]
    found = rv.Demonstrations.from_trajectories([steps, steps[:2]], states=[10, 20])
    np.testing.assert_array_equal(found.counts, [[2, 0], [0, 3]])
    alone = rv.Demonstrations.from_trajectories([[(20, 0), (10, 1)]], n_actions=2, states=[10, 20])
    np.testing.assert_array_equal(alone.counts, [[0, 1], [1, 0]])
    grid = rv.Demonstrations.from_trajectories([[((0, 0), 0), ((0, 1), 1), ((1, 1), 0)]], n_actions=2)
    assert grid.state_labels == ((0, 0), (0, 1), (1, 1))
    with pytest.raises(InvalidInput, match=r"`states`: expected whole numbers; got 'a' .*leave n_states= out"):
        rv.Demonstrations.from_trajectories([LABELLED], 2, 2)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ([(0, 1), (0.5, 0), (0, 0)], r"`states`: .*got 0.5 \(first at trajectory 1, step 1\). Number them 0, 1, 2"),
        ([((0, 0), 1), ((0, 1), 0), ((1, 1), 0)], r"`states`: .*got \(0, 0\) \(.*step 0\). If these are labels"),
        ([(0, 1, 2.5), (1, 0, 0.0), (0, 0, 1.0)], r"\(state, action\) steps; got \(0, 1, 2.5\) \(.*step 0\). Give"),
        ([(0, 1, 1.0), (1, 0, 0.0)], r"steps; got \(0, 1, 1.0\) \(first at trajectory 1, step 0\)"),
        ([(0, 1, 1), (1, 0, 0), (0, 0, 1)], r"got \(0, 1, 1\) \(.*step 0\). .*next_state="),
        ([(0, 1), None, (0, 0)], r"steps; got None \(first at trajectory 1, step 1\)"),
        ([(0, 1), (1, None), (0, 0)], r"`actions`: .*got None \(first at trajectory 1, step 1\). Drop or fill it"),
        (([0, 1.5], [0, 0]), r"`states`: .*got 1.5 \(first at trajectory 1, step 1\)"),
        (([0, 1], [0, np.nan]), r"`actions`: .*got nan \(first at trajectory 1, step 1\)"),
        (([(0, 0), (0, 1)], [0, 1]), r"`states`: .*got \(0, 0\) \(first at trajectory 1, step 0\)"),
        (([0, 1], 0), r"of two lists; got .*trajectory 1\). Write \(\[state, …\], \[action, …\]\)"),
        ([(0, 1), (1, 0), (0, True)], r"got True among numbers \(first at trajectory 1\)"),
        (None, r"got None \(first at trajectory 1\). Leave it out"),
        ([], r"got an empty one \(first at trajectory 1\). Leave it out"),
        ((0, 1), r"got \(0, 1\) \(first at trajectory 1\). Pass a list of trajectories, \[trajectory\] for one"),
    ],
)
def test_mistakes_in_trajectories_are_named_with_their_step_and_the_remedy(wrong, says):
    with pytest.raises(InvalidDemonstrations, match=says):
        rv.Demonstrations.from_trajectories([STEPS, wrong], 2, 2)


@pytest.mark.parametrize("alone", [STEPS, np.array(STEPS), ([0, 1, 0], [1, 0, 0])])
def test_one_trajectory_that_is_not_in_a_list_is_told(alone):
    with pytest.raises(InvalidDemonstrations, match="Pass a list of trajectories"):
        rv.Demonstrations.from_trajectories(alone, 2, 2)
    rv.Demonstrations.from_trajectories([alone], 2, 2)
    with pytest.raises(InvalidDemonstrations, match="Pass a list of trajectories"):
        rv.Demonstrations.from_trajectories(LABELLED)


@pytest.mark.parametrize(
    "written", [[(0, 1), (1.0, 0), (0, 0)], np.array(STEPS) * 1.0, ([0.0, 1, 0], np.array([1.0, 0, 0]))]
)
def test_whole_floats_are_indices(written):
    found, expected = (rv.Demonstrations.from_trajectories([one], 2, 2) for one in (written, STEPS))
    np.testing.assert_array_equal(found.transition_counts.toarray(), expected.transition_counts.toarray())


def test_what_trajectories_with_labels_lack_is_named():
    """Not a size that nobody was asked for."""
    read = rv.Demonstrations.from_trajectories
    with pytest.raises(InvalidDemonstrations, match="`n_actions` is required: actions without labels are indices"):
        read([(["a", "b"], [0, 1])])
    with pytest.raises(InvalidDemonstrations, match="`n_states` is required: states without labels are indices"):
        read([([1, 2], ["x", "y"])])
    with pytest.raises(InvalidDemonstrations, match="`n_states` is required: states without labels are indices"):
        read([([1, 2], [0, 1])])
    with pytest.raises(InvalidDemonstrations, match="at least one trajectory"):
        read([], states=["a", "b"])


def test_labels_of_several_parts_goals_and_next_states_are_read_as_a_frame_with_them_is():
    """Tuples, dates and ordered categories, from trajectories as from the columns of a frame."""
    home, work, yard = ("north", 1), ("north", 2), ("south", 1)
    walks = [([home, work], ["go", "stay"]), ([work], ["go"])]
    rows = [("a", 0, "north", 1, "go", "north", 2), ("a", 1, "north", 2, "stay", "south", 1)]
    rows += [("b", 0, "north", 2, "go", "south", 1)]
    frame = pd.DataFrame(rows, columns=["id", "t", "x", "y", "d", "x2", "y2"]).assign(gx="south", gy=1)
    roles: dict[str, Any] = {"id": "id", "time": "t", "state": ["x", "y"], "action": "d"}
    for order in (None, [yard, work, home]):
        for after in ([yard, yard], [[work, yard], [yard]]):
            said = {"ids": ["a", "b"], "next_state": after, "goal": yard}
            found = rv.Demonstrations.from_trajectories(walks, **said, states=order)
            columns: dict[str, Any] = {"next_state": ["x2", "y2"], "goal": ["gx", "gy"]}
            read = rv.Demonstrations.from_frame(frame, **roles, **columns, states=order)
            pd.testing.assert_frame_equal(found.to_frame(next_state="z"), read.to_frame(next_state="z"))
            assert found.state_labels == read.state_labels == tuple(order or [home, work, yard])
            np.testing.assert_array_equal(found.goal_states, read.goal_states)
    table = np.array([[0, 5], [2, 5]])  # a row for each state
    read = rv.Demonstrations.from_trajectories([(table, ["x", "y"])], actions=["y", "x"], states=[(2, 5), (0, 5)])
    np.testing.assert_array_equal(read.counts, [[1, 0], [0, 1]])


def test_trajectories_keep_the_order_that_a_category_declares():
    kind = pd.CategoricalDtype(["low", "high", "none"], ordered=True)
    walks = [(pd.Series(some, dtype=kind), [0] * len(some)) for some in (["high", "low"], ["low"])]
    assert rv.Demonstrations.from_trajectories(walks, n_actions=1).state_labels == ("low", "high", "none")
    with pytest.raises(InvalidDemonstrations, match="one declared order"):
        rv.Demonstrations.from_trajectories([*walks, (["none"], [0])], n_actions=1)
    days = [dt.date(2020, 1, 2), dt.date(2020, 1, 1)]
    assert rv.Demonstrations.from_trajectories([(days, [0, 0])], n_actions=1, states=days).starts.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("wrong", "options", "says"),
    [
        ((["a", "q"], [0, 0]), {}, r"`state`: expected one of a, b; got 'q' \(first at trajectory 1, step 1\)"),
        ((["a", None], [0, 0]), {}, r"`state`: .*1 missing \(first at trajectory 1, step 1\)"),
        ((["a", ""], [0, 0]), {}, r"`state`: .*1 missing \(first at trajectory 1, step 1\)"),
        ((["a", 1], [0, 0]), {}, r"str and int \(first at trajectory 1, step 1\)"),
        ((["a", ("a", 1)], [0, 0]), {}, r"of one form .*; got 'a' \(first at trajectory 0, step 0\)"),
        ((np.ma.array(["a", "b"], mask=[False, True]), [0, 0]), {}, r"a masked array \(first at trajectory 1\)"),
        ((["a", "b"], [0, 0]), {"goal": ["b", "q"]}, r"`goal`: .*'q' \(first at trajectory 1\)"),
        ((["a", "b"], [0, 0]), {"next_state": [None, ["b", "q"]]}, r"`next_state`: .*'q' .*trajectory 1, step 1\)"),
        ((["a", "b"], [0, 0]), {"next_state": [None, ["a", "b"]]}, r"'a' where 'b' follows .*trajectory 1, step 0\)"),
        ((["b", "a"], [0, 0]), {"goal": "b"}, r"after it has reached its goal \(first at trip 1, time 0, state 'b'\)"),
        (("ab", [0, 0]), {}, r"of two lists; got \('ab', \[0, 0\]\) \(first at trajectory 1\)"),
    ],
)  # fmt: skip
def test_errors_name_the_trajectory_and_the_step(wrong, options, says):
    with pytest.raises(InvalidDemonstrations, match=says):
        rv.Demonstrations.from_trajectories([(["a"], [0]), wrong], n_actions=1, states=["a", "b"], **options)


def test_rows_are_counted_as_they_stand_where_some_are_missing():
    """The first next state is missing; the odd one of the others stands in row 2."""
    frame = pd.DataFrame({"id": [0, 0, 0], "t": [0, 1, 2], "s": list("aba"), "d": 0})
    frame["s2"] = [None, "a", 7]
    with pytest.raises(InvalidInput, match=r"str and int \(first at row 2\)"):
        rv.Demonstrations.from_frame(frame, id="id", time="t", state="s", action="d", next_state="s2")


@pytest.mark.parametrize(
    ("given", "options", "argument"),
    [
        ([LABELLED], {"states": 3}, "states"),
        ([LABELLED], {"states": ["a", "a"]}, "states"),
        ([LABELLED], {"goal": [[["a"], "b"]]}, "goal"),
        ([([0], [0])], {"n_states": 1, "n_actions": 1, "ids": [([],)]}, "ids"),
        ([[np.array(3), (0, 1)]], {"n_states": 1, "n_actions": 1}, "trajectories"),
    ],
)
def test_what_cannot_be_read_is_refused(given, options, argument):
    with pytest.raises(InvalidInput) as caught:
        rv.Demonstrations.from_trajectories(given, **options)
    assert caught.value.argument == argument


def test_missing_ids_are_not_one_agent():
    with pytest.raises(InvalidDemonstrations, match=r"`ids`: .*nan \(first at trajectory 1\)"):
        rv.Demonstrations.from_trajectories([([0], [0])] * 3, 1, 1, ids=["a", np.nan, np.nan])


@pytest.mark.parametrize("part", ["by_agent", "starts", "transition_counts", "ids"])
def test_parts_that_do_not_fit_together_are_refused(part):
    def table(*shape):
        return sp.csr_array(shape, dtype=float)

    parts: dict[str, Any] = {
        "by_agent": table(1, 6),
        "starts": np.zeros(3),
        "transition_counts": table(6, 3),
        "ids": (0,),
    }
    assert rv.Demonstrations(3, 2, **parts).n_agents == 1
    wrong = {"by_agent": table(1, 5), "starts": np.zeros(4), "transition_counts": table(5, 3), "ids": (0, 1)}
    with pytest.raises(InvalidDemonstrations, match=r"expected shape .*; got shape .*from_frame"):
        rv.Demonstrations(3, 2, **parts | {part: wrong[part]})
