"""Sums over paths: the same values as dense algebra and as the soft fixed point, wherever they exist and only there."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from models import corridor, random_mdp
from networks import (
    dense_value,
    newton_value,
    radius,
    random_network,
    random_reward,
    reaches,
    scaled_to,
    weights,
    weights_toward,
)
from oracle import Floats
from revealed.errors import ValueDoesNotExist
from revealed.linear_solvers import Work
from revealed.paths import Moves, PathSums, cheapest_moves, shortest_costs
from zoo import seeds

networks = st.builds(
    random_network,
    seeds,
    S=st.integers(4, 14),
    A=st.integers(1, 4),
    parts=st.integers(1, 2),
    dead_ends=st.integers(0, 2),
)


def moves_of(mdp: rv.MDP) -> Moves:
    moves = Moves.of(mdp)
    assert moves is not None
    return moves


def on_moves(mdp: rv.MDP, reward: Floats) -> Floats:
    return reward.reshape(-1)[moves_of(mdp).pair]


def shared(mdp: rv.MDP, reward: Floats) -> PathSums:
    return PathSums(moves_of(mdp), on_moves(mdp, reward))


def alone(mdp: rv.MDP, reward: Floats, goal: int) -> PathSums:
    return PathSums.alone(moves_of(mdp), on_moves(mdp, reward), goal)


def value(sums: PathSums, goal: int) -> Floats:
    return sums.values(sums.toward(np.array([goal]))[:, 0])


def exists(make, *arguments) -> bool:
    try:
        make(*arguments)
    except ValueDoesNotExist:
        return False
    return True


# ----------------------------------------------------------------------------------------------------- what they are


@given(networks, seeds)
def test_paths_newton_and_dense_algebra_give_one_value(mdp, seed):
    """One factorisation for all goals, one of its own for each, and two other methods (theory R2, R3)."""
    reward = random_reward(mdp, seed)
    reward = scaled_to(mdp, reward, weights(mdp, reward), 0.9)
    together = shared(mdp, reward)
    V = together.values(together.toward(np.arange(mdp.n_states)))
    for goal in range(mdp.n_states):
        expected = dense_value(mdp, reward, goal)
        np.testing.assert_allclose(V[:, goal], expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(value(alone(mdp, reward, goal), goal), expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(newton_value(mdp, reward, goal), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(np.isfinite(V[:, goal]), reaches(mdp, goal))
        assert V[goal, goal] == 0.0


@given(networks, seeds)
def test_positive_rewards_are_no_obstacle_while_going_round_does_not_pay(mdp, seed):
    """A gain on the way is a cost below zero, which no shortest path can be measured in; values exist all the same."""
    reward = random_reward(mdp, seed)
    pays = np.random.default_rng(seed).random(reward.shape) < 0.2
    reward = np.where(pays, 1.5, reward)
    reward = scaled_to(mdp, reward, weights(mdp, reward), 0.8)
    for goal in range(mdp.n_states):
        np.testing.assert_allclose(
            value(alone(mdp, reward, goal), goal), dense_value(mdp, reward, goal), rtol=1e-10, atol=1e-10
        )


def test_a_ring_of_two_by_hand():
    """From b to a directly, or by the loop at b first: z = e^r/(1 − e^l)."""
    r, loop = -0.7, -1.1
    T = sp.csr_array(([1.0] * 3, ([0, 2, 3], [1, 0, 1])), shape=(4, 2))
    mdp = rv.MDP(T, 1.0, feasible=[[True, False], [True, True]])
    reward = np.array([[-3.0, 0.0], [r, loop]])
    assert value(shared(mdp, reward), 0)[1] == pytest.approx(r - np.log1p(-np.exp(loop)), rel=1e-14)


@given(seeds)
def test_forward_and_backward_solves_are_each_other_s_transpose(seed):
    mdp = random_network(seed)
    reward = scaled_to(mdp, random_reward(mdp, seed), weights(mdp, random_reward(mdp, seed)), 0.9)
    sums, rng = shared(mdp, reward), np.random.default_rng(seed)
    b, c = rng.normal(size=(2, mdp.n_states, 3))
    dense = np.eye(mdp.n_states) - weights(mdp, reward)
    np.testing.assert_allclose(dense @ sums.solve(b), b, atol=1e-10)
    np.testing.assert_allclose(dense.T @ sums.solve_transpose(c), c, atol=1e-10)


def test_one_factorisation_serves_all_goals_and_a_second_one_many_columns_of_the_transpose():
    mdp, work = random_network(1), Work()
    reward = random_reward(mdp) - 2.0
    sums = PathSums(moves_of(mdp), on_moves(mdp, reward), work=work)
    sums.toward(np.arange(mdp.n_states))
    assert work.factorisations == 1
    b = np.random.default_rng(0).normal(size=(mdp.n_states, 2))
    one_by_one = np.column_stack([sums.solve_transpose(column) for column in b.T])
    assert work.factorisations == 1
    for _ in range(2):
        np.testing.assert_allclose(sums.solve_transpose(b), one_by_one, rtol=1e-12, atol=1e-14)
    assert work.factorisations == 2


# ------------------------------------------------------------------------------------------------------ where they are


@given(seeds, st.sampled_from([1e-2, 1e-5, 1e-8]))
def test_a_value_exists_where_the_spectral_radius_without_the_goal_is_below_one(seed, margin):
    """Just below and just above, as numpy's eigenvalues tell; and by the general solver the same."""
    mdp, reward = random_network(seed, S=9), random_reward(random_network(seed, S=9), seed)
    goal = seed % 8
    M = weights_toward(mdp, reward, goal)
    if radius(M) == 0.0:  # no way round but through the goal
        return
    below, above = (scaled_to(mdp, reward, M, 1.0 + side * margin) for side in (-1.0, 1.0))
    assert radius(weights_toward(mdp, below, goal)) < 1.0 < radius(weights_toward(mdp, above, goal))
    V = value(alone(mdp, below, goal), goal)
    np.testing.assert_allclose(V, dense_value(mdp, below, goal), rtol=1e-15 / margin, atol=1e-14 / margin)
    assert not exists(alone, mdp, above, goal)
    assert not exists(rv.solve, mdp.toward(goal), above)


@given(seeds, st.sampled_from([1e-1, 1e-2, 1e-3]))
def test_the_sums_of_all_goals_exist_where_the_spectral_radius_is_below_one(seed, margin):
    mdp, reward = random_network(seed, S=9), random_reward(random_network(seed, S=9), seed)
    M = weights(mdp, reward)
    assert exists(shared, mdp, scaled_to(mdp, reward, M, 1.0 - margin))
    assert not exists(shared, mdp, scaled_to(mdp, reward, M, 1.0 + margin))


@given(seeds, st.floats(-2.0, 2.0))
def test_existence_agrees_with_eigenvalues_at_any_level_of_rewards(seed, level):
    mdp, goal = random_network(seed, S=8, A=2), seed % 7
    reward = random_reward(mdp, seed) + level
    assert exists(alone, mdp, reward, goal) == (radius(weights_toward(mdp, reward, goal)) < 1.0)
    assert exists(shared, mdp, reward) == (radius(weights(mdp, reward)) < 1.0)


def test_goals_that_close_the_only_ways_round_have_values_where_the_sums_of_all_paths_have_none():
    """A figure of eight a ⇄ m ⇄ b with rewards above zero: whoever heads for m never goes round."""
    T = sp.csr_array(([1.0] * 4, ([0, 2, 3, 4], [1, 0, 2, 1])), shape=(6, 3))
    mdp = rv.MDP(T, 1.0, feasible=[[True, False], [True, True], [True, False]])
    reward = np.array([[0.3, 0.0], [0.4, 0.5], [0.6, 0.0]])
    assert radius(weights(mdp, reward)) > 1.0
    assert not exists(shared, mdp, reward)
    np.testing.assert_allclose(value(alone(mdp, reward, 1), 1), [0.3, 0.0, 0.6], atol=1e-14)
    np.testing.assert_allclose(newton_value(mdp, reward, 1), [0.3, 0.0, 0.6], atol=1e-14)
    assert not exists(alone, mdp, reward, 0)  # on the way to a the ring m ⇄ b pays for ever


def test_two_goals_on_one_ring_have_values_although_going_round_pays():
    T = sp.csr_array(np.eye(3)[[1, 2, 0]])
    mdp, reward = rv.MDP(T, 1.0), np.array([[0.5], [0.25], [1.0]])
    assert not exists(shared, mdp, reward)
    np.testing.assert_allclose(value(alone(mdp, reward, 0), 0), [0.0, 1.25, 1.0], atol=1e-14)
    np.testing.assert_allclose(value(alone(mdp, reward, 1), 1), [0.5, 0.0, 1.5], atol=1e-14)


def test_going_round_where_the_goal_is_out_of_reach_concerns_nobody():
    """A ring of two that pays for ever, and beside it a state that leads to the goal."""
    T = sp.csr_array(np.eye(4)[[1, 0, 3, 3]])
    mdp, reward = rv.MDP(T, 1.0, terminal=[False, False, False, True]), np.array([[2.0], [2.0], [-1.0], [0.0]])
    assert not exists(shared, mdp, reward)
    np.testing.assert_array_equal(value(alone(mdp, reward, 3), 3), [-np.inf, -np.inf, -1.0, 0.0])


def test_rewards_of_zero_are_refused_before_anything_is_factored():
    """Whole weights can make pivots exactly zero, on which SuperLU may fail loudly (theory R3: Mx ≥ x)."""
    mdp, work = random_network(3, S=40, A=3, parts=1, dead_ends=0), Work()
    with pytest.raises(ValueDoesNotExist):
        PathSums(moves_of(mdp), on_moves(mdp, np.zeros(mdp.feasible.shape)), work=work)
    assert work.factorisations == 0


def test_rewards_that_overflow_have_no_value():
    mdp = random_network(0)
    with pytest.raises(
        ValueDoesNotExist, match=r"no trip would ever arrive\. Make every move cost more .when fitting: st"
    ):
        shared(mdp, np.full(mdp.feasible.shape, 1e4))


# ---------------------------------------------------------------------------------------------------- small and large


def test_small_numbers_are_exact_in_all_their_digits():
    """Sixty links of −5 each: z = e^{−5k}, down to 1e-130, as exactly as the first."""
    mdp = rv.MDP(sp.csr_array(np.eye(61)[np.minimum(np.arange(61) + 1, 60)]), 1.0, terminal=np.arange(61) == 60)
    z = shared(mdp, np.full((61, 1), -5.0)).toward(np.array([60]))[:, 0]
    np.testing.assert_allclose(z, np.exp(-5.0 * np.arange(60, -1, -1)), rtol=1e-13)


@pytest.mark.parametrize("cost", [2.0, 50.0, 1e4])
def test_where_sums_underflow_paths_are_measured_from_the_shortest(cost):
    """A street of 101 states both ways: e^{−5000} is zero, but log z is not."""
    mdp = corridor(101, 1.0)
    reward = np.full((101, 2), -cost) + 0.1 * random_reward(mdp)
    for goal in (0, 50, 100):
        V = value(alone(mdp, reward, goal), goal)
        assert V.min() < -50.0 * cost + 1.0
        np.testing.assert_allclose(V, newton_value(mdp, reward, goal), rtol=1e-12, atol=1e-10)


@given(seeds, st.integers(-3, 4))
def test_costs_of_any_size_on_any_network(seed, size):
    """From thousandths above the edge of existence to ten thousands a move."""
    mdp = random_network(seed, S=10)
    reward = random_reward(mdp, seed) * 10.0**size
    goal = seed % 9
    reward = reward - np.log(max(1.0, radius(weights(mdp, reward)) / 0.9))
    np.testing.assert_allclose(
        value(alone(mdp, reward, goal), goal), newton_value(mdp, reward, goal), rtol=1e-9, atol=1e-9
    )


# -------------------------------------------------------------------------------------------------------------- moves


def test_moves_are_the_feasible_pairs_and_parallel_ones_add_up():
    for seed in range(5):
        mdp = random_network(seed, S=5, A=4)
        moves, reward = moves_of(mdp), random_reward(random_network(seed, S=5, A=4), seed)
        pair = [s * 4 + a for s, a in np.argwhere(mdp.feasible)]
        assert moves.pair.tolist() == pair
        assert moves.source.tolist() == [p // 4 for p in pair]
        assert moves.target.tolist() == [int(mdp.transitions.matrix[[p]].indices[0]) for p in pair]
        np.testing.assert_allclose(moves.matrix(np.exp(on_moves(mdp, reward))).toarray(), weights(mdp, reward))
        np.testing.assert_array_equal(moves.table(on_moves(mdp, reward)), np.where(mdp.feasible, reward, 0.0))
    assert moves.matrix(np.ones(moves.pair.size)).nnz < moves.pair.size  # some are parallel


def test_uncertain_moves_and_a_discount_have_no_sums_over_paths():
    assert Moves.of(random_network(0).replace(discount=0.99)) is None
    assert Moves.of(random_mdp(5, 2, 1.0, terminal=1)) is None


@given(networks, seeds)
def test_shortest_costs_are_those_of_a_plain_search(mdp, seed):
    """Free moves included: a stored zero is no edge for SciPy."""
    moves = moves_of(mdp)
    cost = np.random.default_rng(seed).integers(0, 4, moves.pair.size).astype(float)
    best = np.where(np.eye(mdp.n_states, dtype=bool), 0.0, np.inf)
    for _ in range(mdp.n_states):
        for e in range(cost.size):
            best[moves.source[e]] = np.minimum(best[moves.source[e]], cost[e] + best[moves.target[e]])
    if moves.pair.size:
        graph = cheapest_moves(moves, cost)
        np.testing.assert_allclose(shortest_costs(graph, np.arange(mdp.n_states)), best.T, atol=1e-300)
        np.testing.assert_allclose(shortest_costs(graph, 0), best[:, 0], atol=1e-300)
