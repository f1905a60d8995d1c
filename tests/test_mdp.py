"""The model at the door: what is accepted, what it becomes, what stays frozen. Bad input is in test_errors.py."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from models import corridor, dense, random_mdp, random_policy, random_reward
from networks import random_network, reaches
from zoo import seeds


def test_the_three_forms_of_transitions_give_one_model():
    mdp = random_mdp(7, 3, seed=1)
    T = dense(mdp)
    forms = [T, sp.csr_array(T.reshape(21, 7)), [sp.coo_array(T[:, a]) for a in range(3)]]
    for form in forms:
        again = rv.MDP(form, discount=0.9)
        assert (again.n_states, again.n_actions) == (7, 3)
        np.testing.assert_allclose(dense(again), T, rtol=1e-15)  # rows are scaled to sum to one


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.dok_array, sp.csr_matrix])
def test_every_sparse_format_is_accepted(kind):
    T = dense(random_mdp(5, 2))
    np.testing.assert_allclose(dense(rv.MDP(kind(T.reshape(10, 5)))), T, rtol=1e-15)


def test_stored_duplicates_add_up():
    matrix = sp.coo_array(([0.25, 0.75, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(dense(rv.MDP(matrix)), [[[0, 1]], [[1, 0]]])


def test_rows_within_the_tolerance_are_scaled_to_sum_to_one():
    T = dense(random_mdp(5, 2)) * (1 + 5e-9)
    assert np.abs(dense(rv.MDP(T)).sum(axis=2) - 1).max() < 1e-15


def test_rows_of_terminal_states_and_infeasible_pairs_are_ignored_whatever_they_hold():
    T = dense(random_mdp(4, 2))
    T[3] = np.nan
    T[1, 0] = -7.0
    feasible = np.ones((4, 2), dtype=bool)
    feasible[1, 0] = False
    mdp = rv.MDP(T, terminal=[0, 0, 0, 1], feasible=feasible)
    assert dense(mdp)[3].sum() == 0.0
    assert dense(mdp)[1, 0].sum() == 0.0
    assert not mdp.feasible[3].any()


def test_input_arrays_stay_the_users_own():
    T = dense(random_mdp(4, 2))
    feasible, terminal, initial = np.ones((4, 2), bool), np.zeros(4, bool), np.full(4, 0.25)
    stacked = sp.csr_array(T.reshape(8, 4))
    mdp = rv.MDP(stacked, feasible=feasible, terminal=terminal, initial=initial)
    before = dense(mdp).copy()
    stacked.data[:] = 9.0
    feasible[:], terminal[:], initial[:] = False, True, 7.0
    np.testing.assert_array_equal(dense(mdp), before)
    assert mdp.feasible.all()
    assert not mdp.terminal.any()
    np.testing.assert_array_equal(mdp.initial, 0.25)


def test_an_mdp_is_frozen():
    mdp = random_mdp(4, 2, initial=True)
    with pytest.raises(AttributeError, match=r"mdp\.replace\(discount=\.\.\.\)"):
        mdp.discount = 0.5
    with pytest.raises(AttributeError):
        del mdp.discount
    assert mdp.initial is not None
    for array in (mdp.feasible, mdp.terminal, mdp.initial, mdp.transitions.matrix.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_copies_and_pickles_behave_as_the_original():
    mdp = random_mdp(6, 2, terminal=1)
    reward = random_reward(mdp)
    for other in (copy.deepcopy(mdp), pickle.loads(pickle.dumps(mdp))):
        np.testing.assert_array_equal(rv.solve(other, reward).value, rv.solve(mdp, reward).value)
        with pytest.raises(AttributeError):
            other.discount = 0.1


def test_terminal_states_can_be_moved_from_one_replace_to_the_next():
    """A state that was terminal for one trip gets its moves back for the next."""
    mdp = random_mdp(6, 2)
    ends = [np.arange(6) == s for s in range(2)]
    once = mdp.replace(terminal=ends[1])
    twice = mdp.replace(terminal=ends[0]).replace(terminal=ends[1])
    np.testing.assert_allclose(dense(twice), dense(once), rtol=1e-15)
    np.testing.assert_array_equal(twice.feasible, once.feasible)
    np.testing.assert_allclose(dense(twice.replace(terminal=None)), dense(mdp), rtol=1e-15)
    closed = mdp.replace(feasible=np.tile([True, False], (6, 1)), terminal=ends[0]).replace(terminal=None)
    assert not closed.feasible[:, 1].any()
    assert closed.feasible[0, 0]


def test_replace_discount_keeps_the_rest_and_the_original():
    mdp = random_mdp(6, 2, discount=0.9, initial=True, terminal=1)
    other = mdp.replace(discount=0.5)
    assert (mdp.discount, other.discount) == (0.9, 0.5)
    assert other.transitions is mdp.transitions
    np.testing.assert_array_equal(other.initial, mdp.initial)


def test_replace_validates_like_the_constructor():
    mdp = random_mdp(6, 2)
    with pytest.raises(rv.errors.InvalidDiscount):
        mdp.replace(discount=1.5)
    with pytest.raises(rv.errors.InvalidDistribution):
        mdp.replace(initial=[1.0])
    with pytest.raises(rv.errors.InvalidInput, match="gamma"):
        mdp.replace(gamma=0.5)
    ended = mdp.replace(terminal=np.arange(6) == 2)
    assert dense(ended)[2].sum() == 0.0


def test_uniform_policy_is_even_over_feasible_actions():
    mdp = random_mdp(9, 3, masked=True, terminal=2)
    policy = mdp.uniform_policy()
    np.testing.assert_allclose(policy.sum(axis=1), ~mdp.terminal, atol=1e-15)
    assert (policy[~mdp.feasible] == 0.0).all()
    rows = policy[~mdp.terminal]
    positive = np.where(rows > 0, rows, np.nan)
    np.testing.assert_array_equal(np.nanmax(positive, axis=1), np.nanmin(positive, axis=1))


def test_cannot_end_names_the_states_without_a_way_out():
    T = np.zeros((4, 1, 4))
    T[0, 0, 1] = T[1, 0, 3] = T[2, 0, 2] = T[3, 0, 3] = 1.0
    mdp = rv.MDP(T, terminal=[0, 0, 0, 1])
    np.testing.assert_array_equal(mdp.cannot_end, [False, False, True, False])


def test_unroll_has_a_layer_per_time_and_ends_in_the_last():
    mdp = random_mdp(5, 2, terminal=1, masked=True, initial=True)
    unrolled = mdp.unroll(3)
    assert unrolled.n_states == 20
    assert unrolled.horizon == 3
    assert mdp.horizon is None
    T, base = dense(unrolled), dense(mdp)
    for t in range(3):
        np.testing.assert_array_equal(T[5 * t : 5 * t + 5, :, 5 * t + 5 : 5 * t + 10], base)
        np.testing.assert_array_equal(unrolled.feasible[5 * t : 5 * t + 5], mdp.feasible)
        np.testing.assert_array_equal(unrolled.terminal[5 * t : 5 * t + 5], mdp.terminal)
    assert T.sum() == pytest.approx(3 * base.sum(), abs=1e-12)
    assert unrolled.terminal[15:].all()
    assert unrolled.initial is not None
    assert mdp.initial is not None
    np.testing.assert_array_equal(unrolled.initial[:5], mdp.initial)
    assert unrolled.initial[5:].sum() == 0.0


def test_unrolled_values_are_backward_induction():
    mdp = random_mdp(6, 3, discount=1.0, masked=True)
    reward = random_reward(mdp, seed=3)
    V, layers = np.zeros(6), [np.zeros(6)]
    for _ in range(4):
        V = np.logaddexp.reduce(np.where(mdp.feasible, reward + dense(mdp) @ V, -np.inf), axis=1)
        layers.insert(0, V)
    unrolled = mdp.unroll(4)
    solved = rv.solve(unrolled, unrolled.lift(reward)).value.reshape(5, 6)
    np.testing.assert_allclose(solved, layers, rtol=0, atol=1e-12)


def test_lift_repeats_base_values_at_every_time_and_leaves_plain_ones_alone():
    mdp = corridor(3)
    values = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(mdp.unroll(2).lift(values), np.tile(values, 3))
    assert mdp.lift(values) is values


def test_replace_on_an_unrolled_model_keeps_its_base():
    unrolled = random_mdp(4, 2, discount=0.9).unroll(3)
    other = unrolled.replace(discount=0.5)
    assert other.base is not None
    assert other.base.discount == 0.5
    with_start = unrolled.replace(initial=np.eye(16)[2])
    assert with_start.horizon == 3


def test_unroll_takes_a_whole_positive_horizon_once():
    mdp = random_mdp(4, 2)
    for bad in (0, -1, 2.0, True, "3", None):
        with pytest.raises(rv.errors.InvalidInput, match="horizon"):
            mdp.unroll(bad)  # pyright: ignore[reportArgumentType]
    with pytest.raises(rv.errors.InvalidInput, match=r"Unroll `mdp\.base`"):
        mdp.unroll(2).unroll(2)


def test_labels_must_be_as_many_as_states_and_differ():
    T = dense(random_mdp(3, 2, branching=2))
    assert rv.MDP(T, state_labels="abc").state_labels == ("a", "b", "c")
    with pytest.raises(rv.errors.InvalidInput, match="state_labels"):
        rv.MDP(T, state_labels=["a", "b"])
    with pytest.raises(rv.errors.InvalidInput, match="'a' twice"):
        rv.MDP(T, state_labels=["a", "b", "a"])


@pytest.mark.parametrize(
    "labels",
    [["a", None, "b"], [float("nan"), "a", "b"], [("a", None), ("a", 1), ("b", 1)], [1, "1", 2], [True, 1.0, 2]],
)
def test_labels_that_are_missing_or_count_as_the_same_are_refused(labels):
    """They are matched by their text, so that 1 and "1" would be one state."""
    with pytest.raises(rv.errors.InvalidInput, match="labels"):
        rv.MDP(dense(random_mdp(3, 2, branching=2)), state_labels=labels)


@pytest.mark.parametrize("labels", [{"a", "b", "c"}, {"a": 2, "b": 1, "c": 0}])
def test_labels_without_an_order_are_refused(labels):
    with pytest.raises(rv.errors.InvalidInput, match="a sequence of 3 labels"):
        rv.MDP(dense(random_mdp(3, 2, branching=2)), state_labels=labels)


def test_repr_says_what_it_is():
    assert repr(random_mdp(4, 2, discount=0.9, terminal=1).unroll(3)).startswith("MDP(16 states, 2 actions, ")
    assert "discount 0.9" in repr(random_mdp(4, 2, discount=0.9))
    assert "horizon 3" in repr(random_mdp(4, 2).unroll(3))


def test_one_state_one_action_is_a_model():
    mdp = rv.MDP(np.ones((1, 1, 1)), discount=0.5)
    assert rv.solve(mdp, [[2.0]]).value[0] == pytest.approx(4.0, rel=1e-14)
    np.testing.assert_array_equal(random_policy(mdp), [[1.0]])


# ----------------------------------------------------------------------------------------------------------- toward


def ways_by_hand(mdp: rv.MDP, goal: int):
    """What is left on the way to a goal, straight from the words (theory R1): an action stays if it may lead to where
    the goal can be reached, and to nowhere else but ends of the model; until nothing changes."""
    T, kept = dense(mdp) > 0.0, mdp.feasible.copy()
    kept[goal] = False
    while True:
        alive = np.arange(mdp.n_states) == goal
        for _ in range(mdp.n_states):
            alive |= (T & kept[:, :, None] & alive).any(axis=(1, 2))
        fits = (T & alive).any(axis=2) & (~T | alive | mdp.terminal).all(axis=2)
        if np.array_equal(kept, kept & fits):
            return ~alive | (np.arange(mdp.n_states) == goal), kept
        kept &= fits


@given(seeds, st.booleans(), st.sampled_from([0.9, 1.0]))
def test_toward_leaves_what_leads_to_the_goal(seed, certain, discount):
    if certain:
        mdp = random_network(seed, S=9, A=3, parts=1 + seed % 2, dead_ends=seed % 4).replace(discount=discount)
    else:
        mdp = random_mdp(9, 3, discount, seed, masked=True, branching=1 + seed % 2, terminal=seed % 3)
    for goal in range(9):
        model, (terminal, kept) = mdp.toward(goal), ways_by_hand(mdp, goal)
        np.testing.assert_array_equal(model.feasible, kept)
        np.testing.assert_array_equal(model.terminal, terminal)
        assert (model.goal, model.discount) == (goal, discount)
        if certain:  # an action is kept if and only if its successor can reach the goal
            reached = reaches(mdp, goal)[dense(mdp).argmax(axis=2)]
            reached[goal] = False
            np.testing.assert_array_equal(model.feasible, mdp.feasible & reached)


def test_toward_shares_the_transitions_and_leaves_the_model_as_it_was():
    mdp = random_network(2)
    before = mdp.feasible.copy()
    model = mdp.toward(3)
    assert model.transitions is mdp.transitions
    assert model.structure is mdp.structure
    assert mdp.goal is None
    np.testing.assert_array_equal(mdp.feasible, before)
    with pytest.raises(ValueError, match="read-only"):
        model.feasible[0, 0] = True
    assert repr(model).endswith("toward state 3)")
    again = pickle.loads(pickle.dumps(model))
    assert again.goal == 3
    np.testing.assert_array_equal(again.feasible, model.feasible)


def test_arrival_links_of_other_destinations_are_dead_ends():
    """A ring of three with an arrival link at each: toward one of them, the other two are masked."""
    T = np.zeros((6, 2, 6))
    for i in range(3):
        T[i, 0, (i + 1) % 3] = T[i, 1, 3 + i] = 1.0
    mdp = rv.MDP(T, 1.0, terminal=np.arange(6) >= 3, state_labels=["a", "b", "c", "at a", "at b", "at c"])
    model = mdp.toward("at b")
    assert model.goal == 4
    assert model.feasible[:3].tolist() == [[True, False], [True, True], [True, False]]
    assert model.terminal.tolist() == [False, False, False, True, True, True]


def test_toward_a_goal_out_of_reach_everybody_stands_still():
    mdp = random_network(1, S=8, parts=2, dead_ends=0).toward(0)
    assert mdp.terminal[1::2].all()
    assert not mdp.feasible[1::2].any()


def test_goals_are_known_by_their_labels_where_there_are_any():
    """A whole number is the label written like it, never an index, where states have labels."""
    mdp = random_network(0, S=4, A=2).with_labels(["a", "3", 2, "d"])
    assert [mdp.toward(goal).goal for goal in ("a", 3, "2", "3", np.int64(2))] == [0, 1, 2, 1, 2]
    assert [mdp.toward_state(s).goal for s in range(4)] == [0, 1, 2, 3]
    with pytest.raises(rv.errors.InvalidInput, match="`goal`: expected one of a, 3, 2, d; got 1"):
        mdp.toward(1)


def test_goals_that_are_no_states_are_refused():
    mdp = random_network(0, S=4, A=2)
    for goal in (4, -1, 1.5, None, "a"):
        with pytest.raises(rv.errors.InvalidInput, match="`goal`: expected indices in 0…3"):
            mdp.toward(goal)
    with pytest.raises(rv.errors.InvalidInput, match=r"one of north.*Did you mean north\?"):
        mdp.with_labels(["north", "east", "south", "west"]).toward("nort")
    with pytest.raises(rv.errors.InvalidInput, match=r"a model without a horizon.*Use `mdp.base`"):
        mdp.unroll(3).toward(0)


@pytest.mark.parametrize("listed", [["gym"], ("gym",), {"gym"}])
def test_terminal_states_may_be_listed_by_label(listed):
    T, places = np.full((3, 2, 3), 1 / 3), ["home", "cafe", "gym"]
    assert rv.MDP(T, 0.9, state_labels=places, terminal=listed).terminal.tolist() == [False, False, True]
    assert rv.MDP(T, 0.9, state_labels=[5, 0, 2], terminal=[2]).terminal.tolist() == [False, False, True]
    assert rv.MDP(T, 0.9, state_labels=[1, 0, 2], terminal=[1, 0, 0]).terminal.tolist() == [True, False, False]
    with pytest.raises(rv.errors.InvalidMask, match=r"`terminal`.*got 'gim'.*Did you mean gym"):
        rv.MDP(T, 0.9, state_labels=places, terminal=["gim"])


def test_labels_that_a_model_has_are_not_changed_silently():
    mdp = random_network(0, S=4, A=2).with_labels(["a", "b", "c", "d"])
    assert mdp.with_labels(["a", "b", "c", "d"]).state_labels == mdp.with_labels().state_labels == mdp.state_labels
    assert mdp.with_labels(action_labels=["x", "y"]).action_labels == ("x", "y")
    for model in (mdp, mdp.unroll(2)):
        for other in (["d", "c", "b", "a"], ["a", "b", "c", "e"]):
            with pytest.raises(rv.errors.InvalidInput, match=r"has labels.*replace\(state_labels="):
                model.with_labels(other)
    assert mdp.replace(state_labels=["d", "c", "b", "a"]).state_labels == ("d", "c", "b", "a")


@pytest.mark.parametrize(("order", "back"), [((1, 0, 2), (0, 1)), ((0, 2, 1), (2, 1))])
def test_the_axes_that_a_remedy_moves_are_the_right_ones(order, back):
    T = np.random.default_rng(0).dirichlet(np.ones(4), size=(4, 3))
    wrong = np.transpose(T, order)
    with pytest.raises(rv.errors.InvalidTransitions, match=rf"np\.moveaxis\(array, {back[0]}, {back[1]}\)"):
        rv.MDP(wrong, 0.9)
    np.testing.assert_array_equal(np.moveaxis(wrong, *back), T)


def test_axes_in_no_known_order_get_no_remedy_that_moves_them():
    with pytest.raises(rv.errors.InvalidTransitions, match=r"shape \(2, 3, 4\)\.$"):
        rv.MDP(np.ones((2, 3, 4)), 0.9)


def test_one_terminal_state_that_is_no_mask_gets_a_remedy():
    T = np.full((4, 1, 4), 0.25)
    for one in (2, "p"):
        with pytest.raises(rv.errors.InvalidMask, match=r"Convert indices with np\.isin\(np\.arange\(4\), indices\)"):
            rv.MDP(T, 0.9, terminal=one)
    with pytest.raises(rv.errors.InvalidMask, match=r"Pass a list of labels: terminal=\['p'\]"):
        rv.MDP(T, 0.9, terminal="p", state_labels=list("pqrs"))
    assert rv.MDP(T, 0.9, terminal=["p"], state_labels=list("pqrs")).terminal[0]
