"""Trajectories drawn from a policy: reproducible, ending where the model ends, with the right shares."""

import numpy as np
import pytest

import revealed as rv
from models import corridor, dense, random_mdp, random_policy


def test_the_same_seed_gives_the_same_trajectories():
    mdp = random_mdp(8, 3)
    policy = random_policy(mdp)
    one, two, other = (rv.simulate(mdp, policy, 50, 10, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.by_agent.toarray(), two.by_agent.toarray())
    assert (one.counts != other.counts).any()


def test_the_hosts_random_state_is_left_alone():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002
    rv.simulate(corridor(4), corridor(4).uniform_policy(), 5, 5)
    after = np.random.get_state(legacy=False)["state"]["key"]  # noqa: NPY002
    np.testing.assert_array_equal(after, before)


def test_n_trajectories_of_the_asked_length_where_nothing_ends():
    mdp = random_mdp(8, 3)
    d = rv.simulate(mdp, random_policy(mdp), 30, 7, seed=0)
    assert d.n_agents == 30
    np.testing.assert_array_equal(np.asarray(d.by_agent.sum(axis=1)).reshape(-1), 7)
    assert d.transition_counts.sum() == 210  # the last state is kept


def test_choices_and_moves_have_their_probabilities_within_five_standard_errors():
    mdp = random_mdp(6, 3, masked=True, seed=4)
    policy = random_policy(mdp)
    d = rv.simulate(mdp, policy, 4_000, 20, seed=11)
    visits = d.counts.sum(axis=1, keepdims=True)
    error = np.sqrt(policy * (1 - policy) / visits)
    assert (np.abs(d.counts / visits - policy) <= 5 * error).all()
    moved = d.transition_counts.toarray().reshape(6, 3, 6)
    taken = np.maximum(d.counts, 1)[:, :, None]
    T = dense(mdp)
    assert (np.abs(moved / taken - T) <= 5 * np.sqrt(T * (1 - T) / taken) + 1e-12)[mdp.feasible].all()


def test_infeasible_actions_and_impossible_moves_never_happen():
    mdp = random_mdp(10, 4, masked=True, terminal=2)
    d = rv.simulate(mdp, random_policy(mdp), 2_000, 10, seed=3)
    assert d.counts[~mdp.feasible].sum() == 0
    assert d.transition_counts.toarray()[mdp.transitions.matrix.toarray() == 0].sum() == 0


def test_a_trajectory_ends_where_it_meets_a_terminal_state():
    mdp = corridor(5, end=True).replace(initial=np.eye(5)[0])
    d = rv.simulate(mdp, np.tile([0.0, 1.0], (5, 1)), 3, 100, seed=0)
    np.testing.assert_array_equal(d.counts, [[0, 3], [0, 3], [0, 3], [0, 3], [0, 0]])


def test_a_start_in_a_terminal_state_decides_nothing():
    mdp = corridor(5, end=True).replace(initial=[0.5, 0, 0, 0, 0.5])
    d = rv.simulate(mdp, corridor(5, end=True).uniform_policy(), 200, 5, seed=0)
    assert d.counts[4].sum() == 0
    assert d.starts.sum() == 200
    assert d.n_agents == 200


def test_starts_follow_the_models_distribution_and_the_one_given_overrules_it():
    p = np.array([0.1, 0.2, 0.7, 0.0])
    mdp = corridor(4).replace(initial=p)
    n = 20_000
    d = rv.simulate(mdp, mdp.uniform_policy(), n, 1, seed=5)
    assert (np.abs(d.starts / n - p) <= 5 * np.sqrt(p * (1 - p) / n)).all()
    given = rv.simulate(mdp, mdp.uniform_policy(), 100, 1, seed=5, initial=[0, 0, 0, 1])
    np.testing.assert_array_equal(given.starts, [0, 0, 0, 100])


def test_without_a_distribution_starts_are_even_over_states_that_go_on():
    mdp = corridor(5, end=True)
    n = 20_000
    d = rv.simulate(mdp, mdp.uniform_policy(), n, 1, seed=6)
    assert d.starts[4] == 0
    assert (np.abs(d.starts[:4] / n - 0.25) <= 5 * np.sqrt(0.25 * 0.75 / n)).all()


@pytest.mark.parametrize("bad", [[1.0], [1, -1, 1], [np.nan, 1, 0], [0, 0, 0], [0, 3, 1], "abc", [[1, 0, 0]]])
def test_a_distribution_of_starts_that_is_none_is_refused(bad):
    mdp = corridor(3)
    with pytest.raises(rv.errors.InvalidInput, match="initial"):
        rv.simulate(mdp, mdp.uniform_policy(), 2, 2, initial=bad)


@pytest.mark.parametrize(("name", "value"), [("n", 0), ("n", 2.0), ("length", -1), ("length", True), ("n", "3")])
def test_numbers_of_trajectories_and_decisions_are_whole_and_positive(name, value):
    mdp = corridor(3)
    arguments = {"n": 2, "length": 2, name: value}
    with pytest.raises(rv.errors.InvalidInput, match=f"`{name}`"):
        rv.simulate(mdp, mdp.uniform_policy(), **arguments)


def test_a_policy_that_is_none_is_refused():
    with pytest.raises(rv.errors.InvalidDistribution, match="state 0"):
        rv.simulate(corridor(3), np.full((3, 2), 0.4), 2, 2)


def test_time_runs_on_an_unrolled_model():
    mdp = corridor(4).unroll(3)
    d = rv.simulate(mdp, mdp.uniform_policy(), 100, 10, seed=0, initial=np.eye(16)[0])
    assert d.n_decisions == 300  # the horizon ends each trajectory
    np.testing.assert_array_equal(d.counts.reshape(4, 4, 2).sum(axis=(1, 2)), [100, 100, 100, 0])
