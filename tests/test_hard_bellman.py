"""The hard optimum, against dense value iteration, policy iteration and closed forms."""

import numpy as np
import pytest

import revealed as rv
from models import CASES, dense, hard_value_iteration, loop, random_graph, random_mdp, random_reward
from revealed import hard_bellman
from revealed.environments import grid_transitions
from revealed.errors import InvalidInput, SolverFailed, ValueDoesNotExist
from revealed.hard_bellman import PolicyIteration
from revealed.progress import Progress
from revealed.sweeps import WORTH_BLOCKS, greedy, q_values


def exactly(mdp, reward, solver="auto"):
    """Policy iteration that evaluates every policy by a linear solve."""
    return PolicyIteration(mdp, reward, solver, 1_000, Progress("", False), sweeps=False).solve()


def dense_policy_iteration(mdp, reward):
    """Values by NumPy's dense solver, from the first feasible action on."""
    T, rows = dense(mdp), np.arange(mdp.n_states)
    choice = mdp.feasible.argmax(axis=1)
    while True:
        payoff = np.where(mdp.terminal, 0.0, reward[rows, choice])
        V = np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * T[rows, choice] * ~mdp.terminal[:, None], payoff)
        Q = np.where(mdp.feasible, reward + mdp.discount * T @ V, -np.inf)
        better = Q.max(axis=1) > Q[rows, choice] + 1e-10
        if not (better & ~mdp.terminal).any():
            return V
        choice = np.where(better, Q.argmax(axis=1), choice)


@pytest.mark.parametrize("case", CASES)
def test_the_hard_optimum_is_what_value_iteration_finds(case):
    mdp = random_mdp(15, 3, seed=3, **CASES[case])
    reward = random_reward(mdp, shift=-3.0 if mdp.discount == 1.0 else 0.0)
    solved = rv.solve_hard(mdp, reward)
    np.testing.assert_allclose(solved.value, hard_value_iteration(mdp, reward), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(solved.policy.sum(axis=1), ~mdp.terminal, atol=1e-15)


@pytest.mark.parametrize("case", [name for name in CASES if name != "undiscounted"])
@pytest.mark.parametrize("seed", range(3))
def test_sweeps_end_where_exact_policy_iteration_does(case, seed):
    mdp = random_mdp(60, 4, seed=seed, **CASES[case])
    reward = random_reward(mdp, seed=seed)
    found, exact = rv.solve_hard(mdp, reward), exactly(mdp, reward, "lu")
    V = dense_policy_iteration(mdp, reward)
    np.testing.assert_allclose(found.value, V, rtol=0, atol=1e-13 / (1 - mdp.discount) * np.abs(V).max())
    np.testing.assert_array_equal(found.policy, exact.policy)
    np.testing.assert_allclose(found.q, exact.q, rtol=1e-11)
    np.testing.assert_allclose(found.q.max(axis=1)[~mdp.terminal], found.value[~mdp.terminal], rtol=1e-13)


def test_where_news_spreads_quickly_nothing_is_factored(monkeypatch):
    mdp = random_graph(2_000, discount=0.99)
    reward = random_reward(mdp)
    exact = exactly(mdp, reward)
    monkeypatch.setattr(hard_bellman, "Chain", None)
    solved = rv.solve_hard(mdp.replace(discount=0.99), reward)
    np.testing.assert_allclose(solved.value, exact.value, rtol=1e-13)
    np.testing.assert_array_equal(solved.policy, exact.policy)


@pytest.mark.parametrize("discount", [0.99, 0.9999])
def test_where_news_travels_far_few_policies_are_evaluated_exactly(discount, monkeypatch):
    mdp = rv.MDP(grid_transitions(30, 30, wind=0.2), discount=discount)
    reward = random_reward(mdp) * (np.arange(900) % 7 == 0)[:, None]
    exact, made = exactly(mdp, reward), []

    def counted(*args, **kwargs):
        made.append(1)
        return rv.Chain(*args, **kwargs)

    monkeypatch.setattr(hard_bellman, "Chain", counted)
    solved = rv.solve_hard(mdp, reward)
    assert len(made) < exact.iterations
    np.testing.assert_allclose(solved.value, exact.value, rtol=1e-15 / (1 - discount), atol=0)
    np.testing.assert_array_equal(solved.policy, exact.policy)


def test_a_row_sum_that_is_nearly_one_is_taken_as_it_is():
    """Shifts assume that rows sum to one; the fixed point is that of the rows as they are."""
    mdp = random_mdp(30, 3, discount=0.99)
    T = dense(mdp) * (1.0 - 9e-9 * np.random.default_rng(0).random((30, 3, 1)))
    mdp, reward = rv.MDP(T, discount=0.99), random_reward(mdp)
    np.testing.assert_allclose(rv.solve_hard(mdp, reward).value, dense_policy_iteration(mdp, reward), rtol=1e-12)


def test_greedy_actions_of_large_models_go_block_by_block_to_the_same_end():
    mdp = rv.MDP(grid_transitions(320, 320, wind=0.1), discount=0.9)
    assert mdp.feasible.size >= WORTH_BLOCKS
    reward, V = random_reward(mdp), np.random.default_rng(1).normal(size=mdp.n_states)
    choice = np.random.default_rng(2).integers(-1, 4, size=mdp.n_states)
    Q = q_values(mdp, reward, V)
    own = np.where(choice < 0, -np.inf, Q[np.arange(mdp.n_states), choice])
    better = Q.max(axis=1) > own + 0.5
    top, chosen, gains = greedy(mdp, reward, V, choice, slack=0.5)
    np.testing.assert_array_equal(top, Q.max(axis=1))
    np.testing.assert_array_equal(chosen, np.where(better, Q.argmax(axis=1), choice))
    assert gains == better.sum() > (choice < 0).sum()


def test_shortest_paths_at_discount_one_with_ties_split_evenly():
    mdp = rv.MDP(grid_transitions(5, 5), discount=1.0, terminal=np.arange(25) == 12)
    solved = rv.solve_hard(mdp, np.full((25, 4), -1.0))
    steps = np.abs(np.arange(5)[:, None] - 2) + np.abs(np.arange(5) - 2)
    np.testing.assert_allclose(solved.value.reshape(5, 5), -steps, atol=1e-12)
    np.testing.assert_array_equal(solved.policy[0], [0.0, 0.5, 0.0, 0.5])  # the corner: down or right
    np.testing.assert_array_equal(solved.policy[2], [0.0, 1.0, 0.0, 0.0])  # straight above the goal: down
    np.testing.assert_array_equal(solved.policy[12], 0.0)


@pytest.mark.parametrize("discount", [0.9, 0.9999])
def test_where_everything_is_equal_every_action_is_optimal(discount):
    mdp = random_mdp(20, 4, discount=discount, masked=True)
    solved = rv.solve_hard(mdp, np.ones((20, 4)))
    np.testing.assert_allclose(solved.value, 1 / (1 - discount), rtol=1e-11)
    np.testing.assert_allclose(solved.policy, mdp.uniform_policy(), atol=1e-15)


def test_mirror_images_are_ties_and_are_split_evenly():
    """On a plane with its prize in the middle, what is left-right symmetric in the world is so in the policy."""
    T = grid_transitions(21, 21, wind=0.1)
    prize = np.arange(441) == 220
    solved = rv.solve_hard(rv.MDP(T, discount=0.99), prize[:, None] * np.ones((1, 4)))
    up, down, left, right = solved.policy.reshape(21, 21, 4).transpose(2, 0, 1)
    np.testing.assert_array_equal(left, right[:, ::-1])
    np.testing.assert_array_equal(up, down[::-1])


def test_a_loop_that_pays_has_no_hard_value_and_one_that_is_free_has():
    with pytest.raises(ValueDoesNotExist):
        rv.solve_hard(loop(), [[1.0, 0.0], [0.0, 0.0]])
    assert rv.solve_hard(loop(), [[0.0, -2.0], [0.0, 0.0]]).value[0] == pytest.approx(-2.0)
    assert rv.solve_hard(loop(), [[-1.0, -2.0], [0.0, 0.0]]).value[0] == pytest.approx(-2.0)


def test_costly_walks_at_discount_one_are_those_of_exact_policy_iteration():
    mdp = rv.MDP(grid_transitions(20, 20, wind=0.3), discount=1.0, terminal=np.arange(400) == 57)
    reward = -np.random.default_rng(0).random(mdp.feasible.shape)
    found, exact = rv.solve_hard(mdp, reward), exactly(mdp, reward)
    np.testing.assert_allclose(found.value, exact.value, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found.policy, exact.policy)


def slow_walk(seed: int) -> tuple[rv.MDP, np.ndarray]:
    """A way to the end, 100 tries a step under the seeds below, with shortcuts and loops, many of which are free."""
    S, A, rng = 230, 3, np.random.default_rng(seed)
    T, here = np.zeros((S, A, S)), np.arange(S)
    for s, a in np.ndindex(S, A):
        p = rng.random()
        T[s, a, rng.integers(max(0, s - 4), min(S, s + 5))] += p
        T[s, a, rng.integers(max(0, s - 2), min(S, s + 4))] += 1.0 - p
        if rng.random() < 0.3:
            T[s, a] = here == s
    T[:, 0] = 0.0
    T[here, 0, np.minimum(here + 1, S - 1)] = rng.choice([1.0, 0.01])
    T[here, 0, here] += 1.0 - T[:, 0].sum(axis=1)
    reward = -1.0 * (rng.random((S, A)) < 0.6) * rng.random((S, A))
    reward *= 10.0 ** rng.integers(-3, 4)
    return rv.MDP(T, 1.0, terminal=here == S - 1), reward


@pytest.mark.parametrize("seed", [138, 306, 318])
def test_a_free_loop_that_looks_better_by_rounding_alone_is_a_tie(seed):
    """Values are known to rounding times the length of the walk, some 10⁴, and loops are as good as going on."""
    mdp, reward = slow_walk(seed)
    best = rv.solve_hard(mdp, reward)
    stays = np.where(mdp.terminal, best.value, q_values(mdp, reward, best.value).max(axis=1))
    scale = np.abs(best.value).max()
    np.testing.assert_allclose(stays, best.value, rtol=0.0, atol=1e-11 * scale)
    chain, payoff = rv.Chain(mdp, best.policy), (best.policy * reward).sum(axis=1)
    np.testing.assert_allclose(
        chain.solve(payoff), best.value, atol=1e-9 * scale
    )  # it is reached, by a policy that ends


@pytest.mark.parametrize("count", [0, -1, 1.5, "a", None])
def test_a_number_of_iterations_that_is_none_is_refused(count):
    with pytest.raises(InvalidInput, match="`max_iter`: expected a whole number, at least 1; got"):
        rv.solve_hard(random_mdp(), random_reward(random_mdp()), max_iter=count)


@pytest.mark.parametrize("seed", range(3))
def test_rounding_in_long_free_waits_is_not_taken_for_a_loop_that_pays(seed):
    """Ten rooms that are left seldom, but for free, or surely backwards; then a walk that costs. All rooms are worth
    what the walk is. A wait of thousands of steps gathers rounding, so that the room before may look better."""
    S, rooms, rng = 220, 10, np.random.default_rng(seed)
    room, step, chance = np.arange(rooms), np.arange(rooms, S - 1), 1e-4 * (1.0 + rng.random(rooms))
    T = np.zeros((S, 2, S))
    T[room, 0, room], T[room, 0, room + 1] = 1.0 - chance, chance
    T[room, 1, np.maximum(room - 1, 0)] = 1.0
    T[step, :, step + 1] = 1.0
    mdp = rv.MDP(T, discount=1.0, terminal=np.arange(S) == S - 1)
    reward = np.zeros((S, 2))
    reward[step] = -rng.random((step.size, 1))
    V = rv.solve_hard(mdp, reward).value
    np.testing.assert_allclose(V, reward[::-1, 0].cumsum()[::-1], rtol=1e-10, atol=1e-12)
    reward[0, 1] = 1e-3  # now waiting does pay
    with pytest.raises(ValueDoesNotExist):
        rv.solve_hard(mdp, reward)


def test_on_a_horizon_backward_induction_is_policy_iteration_on_the_unrolled_model():
    mdp = random_mdp(8, 3, masked=True, discount=0.9).unroll(6)
    reward = np.random.default_rng(0).normal(size=mdp.feasible.shape)
    found, exact = rv.solve_hard(mdp, reward), rv.solve_hard(mdp, reward, solver="lu")
    np.testing.assert_allclose(found.value, exact.value, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(found.policy, exact.policy)


def test_too_few_iterations_are_said_to_be_too_few():
    mdp = random_mdp(15, 3)
    with pytest.raises(SolverFailed, match=r"did not settle within 1 iterations\. Raise `max_iter`"):
        rv.solve_hard(mdp, random_reward(mdp), max_iter=1)


def test_the_soft_value_of_large_rewards_is_the_hard_one():
    mdp = random_mdp(15, 3, discount=0.9)
    reward = random_reward(mdp)
    np.testing.assert_allclose(rv.solve(mdp, 1e7 * reward).value / 1e7, rv.solve_hard(mdp, reward).value, atol=1e-5)
