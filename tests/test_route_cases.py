"""Sums over paths under the objective: the same numbers as goal by goal, whatever is shared, kept or cut off."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from networks import Trips, random_network, random_trips
from oracle import Floats, assert_close, central_differences
from revealed import parallel, route_cases
from revealed.errors import ValueDoesNotExist
from revealed.goal_cases import EachGoal
from revealed.goal_fit import goal_cases
from revealed.goal_rows import GoalRows
from revealed.objective import Case, Evaluation, Objective
from revealed.paths import Moves
from revealed.pi_tilde import OwnPolicy
from revealed.route_cases import RouteCases
from test_goal_cases import PerGoal
from zoo import seeds

trips = st.builds(
    random_trips, seeds, S=st.integers(6, 14), A=st.integers(2, 4), parts=st.integers(1, 2), dead_ends=st.integers(0, 2)
)

MADE = random_trips(4)
NETWORK = rv.NeuralReward(MADE.features, hidden=(2,), seed=0, activation="tanh")


def by_paths(made: Trips, reward: Any = None, rows: GoalRows | None = None, l2: float = 0.0) -> Objective:
    moves = Moves.of(made.mdp)
    assert moves is not None
    cases = RouteCases(made.rows if rows is None else rows, moves)
    return Objective(made.reward if reward is None else reward, [cases], l2)


def by_goal(made: Trips, reward: Any = None, rows: GoalRows | None = None, l2: float = 0.0) -> Objective:
    cases = EachGoal(made.rows if rows is None else rows, solver="lu")
    return Objective(made.reward if reward is None else reward, [cases], l2)


def assert_same(one: Evaluation, other: Evaluation, tolerance: float = 1e-9, second: bool = True) -> None:
    assert one.value == pytest.approx(other.value, rel=tolerance)
    assert_close(one.gradient, other.gradient, tolerance)
    if second:
        assert_close(one.hessian, other.hessian, tolerance)
        assert_close(one.information, other.information, tolerance)
        assert_close(one.spread, other.spread, tolerance)
        for mine, theirs in zip(one.parts, other.parts, strict=True):
            assert_close(mine.slopes, theirs.slopes, tolerance)
            np.testing.assert_allclose(mine.choices.log_policy, theirs.choices.log_policy, rtol=tolerance, atol=1e-9)


def test_sums_over_paths_are_used_where_they_apply_and_the_general_solver_where_it_is_asked_for():
    made = random_trips(0)
    assert isinstance(goal_cases(made.rows, None), RouteCases)
    assert isinstance(goal_cases(made.rows, None, "lu"), EachGoal)
    discounted = Trips(made.mdp.replace(discount=0.9), made.features, made.theta)
    assert isinstance(goal_cases(discounted.rows, None), EachGoal)


# ---------------------------------------------------------------------------------------------------- the same numbers


@given(trips)
def test_paths_and_the_general_solver_agree(made):
    for theta in (made.theta, 0.9 * made.theta - 0.2):
        assert_same(by_paths(made, l2=0.02).at(theta), by_goal(made, l2=0.02).at(theta))


@given(trips)
def test_the_objective_is_the_sum_of_plain_ones(made):
    cases = []
    for goal in made.rows.goal:
        mdp = made.mdp.toward(int(goal))
        cases.append(Case(mdp, made.demos.toward(int(goal)).weights, OwnPolicy(mdp)))
    one, other = by_paths(made).at(made.theta), Objective(made.reward, cases).at(made.theta)
    assert one.value == pytest.approx(other.value, rel=1e-10)
    assert_close(one.gradient, other.gradient, 1e-10)
    assert_close(one.hessian, other.hessian, 1e-9)


@given(trips)
def test_gradient_and_hessian_are_finite_differences(made):
    objective = by_paths(made, l2=0.05)
    point = objective.at(made.theta)
    gradient = central_differences(lambda t: objective.at(t).value, made.theta)
    hessian = central_differences(lambda t: objective.at(t).gradient, made.theta)
    assert np.abs(point.gradient - gradient).max() <= 1e-6 * np.abs(gradient).max()
    assert np.abs(point.hessian - hessian).max() <= 1e-6 * np.abs(hessian).max()


@given(trips)
def test_the_gradient_in_the_reward_is_use_less_expected_use(made):
    """∂g/∂r = ρ − expected use (theory R4), from visits of the trips to each goal, begun where they began."""
    part = by_paths(made).at(made.theta).parts[0]
    expected, steps = np.zeros(made.mdp.feasible.shape), made.demos.steps
    assert steps is not None
    for toward in rv.goal_values.GoalValues(made.mdp, made.table).each(made.rows.goal):
        ours = steps.first & (steps.goal == toward.goal)
        expected += toward.turns(np.bincount(steps.state[ours], minlength=made.mdp.n_states).astype(float))
    assert_close(part.cotangent, made.demos.counts - expected, 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_rewards_of_states_a_weight_per_state_and_a_network(seed):
    """Features (S, K), sparse ones, tabular and neural rewards: as goal by goal, and as finite differences."""
    made = random_trips(seed, parts=1 + seed % 2)
    S, A, K = made.features.shape
    of_states = made.features[:, 0]
    neural = rv.NeuralReward(made.features, hidden=(3,), seed=seed, activation="tanh")
    low = neural.init()
    low[-1] -= 4.0  # the last bias: every move costs
    for reward, theta, second in (
        (rv.LinearReward(of_states), made.theta, True),
        (rv.LinearReward(sp.csr_array(of_states)), made.theta, True),
        (rv.LinearReward(sp.csr_array(made.features.reshape(S * A, K)), n_actions=A), made.theta, True),
        (rv.TabularReward(S), np.linspace(-3.0, -2.0, S), False),
        (neural, low, False),
    ):
        objective = by_paths(made, reward, l2=0.01)
        assert_same(objective.at(theta), by_goal(made, reward, l2=0.01).at(theta), second=second)
        gradient = central_differences(lambda t, o=objective: o.at(t).value, theta)
        assert_close(objective.at(theta).gradient, gradient, 1e-7)


def test_the_gradient_that_comes_with_the_hessian_is_that_of_expected_use():
    """Σ D F, which second derivatives bring along, is the product of the Jacobian with ∂g/∂r."""
    made = random_trips(1, K=20)
    theta = made.theta / 6.0
    together, alone = by_paths(made).at(theta), by_paths(made).at(theta)
    assert together.hessian.shape == (20, 20)
    assert "cotangent" not in together.parts[0].__dict__ | {"gradient": together.gradient}
    assert_close(alone.gradient, together.gradient, 1e-10)
    assert "_derivatives" not in alone.parts[0].__dict__
    assert_same(together, by_goal(made).at(theta))


@pytest.mark.parametrize("seed", range(3))
def test_rewards_that_depend_on_the_trip(seed):
    made = random_trips(seed, n=15)
    rows, reward = GoalRows.of(made.mdp, made.demos, "pair"), PerGoal(made)
    objective = by_paths(made, reward, rows)
    assert rows.n_cases > made.rows.n_cases
    assert_same(objective.at(made.theta), by_goal(made, reward, rows).at(made.theta))
    gradient = central_differences(lambda t: objective.at(t).value, made.theta)
    assert_close(objective.at(made.theta).gradient, gradient, 1e-8)


# ------------------------------------------------------------------------------------- what must not make a difference


@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize("kept", [0, 10**9])
@pytest.mark.parametrize("threads", [1, 4])
def test_neither_blocks_nor_memory_nor_threads_change_anything(block, kept, threads, monkeypatch):
    made, neural = MADE, NETWORK
    low = neural.init() - 2.0
    before, network = by_paths(made).at(made.theta), by_paths(made, neural).at(low)
    _ = before.hessian, network.gradient
    monkeypatch.setattr(route_cases, "BLOCK", block)
    monkeypatch.setattr(route_cases, "MOST_KEPT", kept)
    monkeypatch.setattr(parallel, "cores", lambda: threads)
    after = by_paths(made).at(made.theta)
    assert_same(after, before, 1e-12)
    assert_close(by_paths(made, neural).at(low).gradient, network.gradient, 1e-12)
    blocks = after.parts[0]._first[0]
    assert len(blocks) == -(-made.rows.n_cases // block)
    assert all((one.z is None) == (kept == 0) for one in blocks)


# ------------------------------------------------------------------------------------------------------------- weights


def test_trips_cut_off_before_their_goals():
    made = random_trips(6, S=20, A=2)
    cut = Trips(made.mdp, made.features, made.theta, seed=6)
    cut.__dict__["demos"] = made.draw(60, 1, longest=3)
    steps = cut.steps
    last = np.append(steps.first[1:], True)
    assert 0 < (steps.next_state[last] == steps.goal[last]).sum() < last.sum()
    assert_same(by_paths(cut).at(made.theta), by_goal(cut).at(made.theta))
    gradient = central_differences(lambda t: by_paths(cut).at(t).value, made.theta)
    assert_close(by_paths(cut).at(made.theta).gradient, gradient, 1e-8)


def test_agents_that_weigh_twice_are_there_twice():
    made = random_trips(7)
    weights = (np.arange(made.demos.n_agents) % 3).astype(np.float64)
    rows = GoalRows.of(made.mdp, made.demos.reweighted(weights))
    one = by_paths(made, rows=rows).at(made.theta)
    assert_same(one, by_goal(made, rows=rows).at(made.theta))
    steps = made.demos.steps
    assert steps is not None
    log = by_paths(made).at(made.theta).parts[0].choices.log_policy[made.rows.place(made.demos), steps.action]
    assert one.value == pytest.approx(float(weights[steps.agent] @ log / weights[steps.agent].sum()), rel=1e-12)


def test_discounted_visits():
    made = random_trips(8)
    rows = GoalRows.of(made.mdp, made.demos.discount_visits(0.7))
    objective = by_paths(made, rows=rows)
    assert_same(objective.at(made.theta), by_goal(made, rows=rows).at(made.theta))
    assert_close(
        objective.at(made.theta).gradient, central_differences(lambda t: objective.at(t).value, made.theta), 1e-8
    )


# --------------------------------------------------------------------------------------------------- edges of existence


def test_a_value_that_does_not_exist_is_a_problem_and_not_an_exception():
    made = random_trips(0)
    point = by_paths(made).at(np.zeros(3))
    assert isinstance(point.problem, ValueDoesNotExist)
    assert point.value == -np.inf


@pytest.mark.parametrize("cost", [30.0, 300.0])
def test_long_and_dear_trips_do_not_underflow(cost):
    """A street of sixty links there and back: z to the farthest is e^{−60·300}. Half of the trips are short."""
    S = 60
    ahead, back = np.minimum(np.arange(S) + 1, S - 1), np.maximum(np.arange(S) - 1, 0)
    T = sp.csr_array((np.ones(2 * S), np.stack([ahead, back], axis=1).reshape(-1), np.arange(2 * S + 1)))
    X = np.random.default_rng(0).uniform(0.9, 1.1, (S, 2, 2))
    made = Trips(rv.MDP(T, 1.0), X, np.array([-cost / 2.0, -cost / 2.0]))
    paths = [(np.arange(S), np.zeros(S - 1, dtype=int)), (np.arange(S)[::-1], np.ones(S - 1, dtype=int)), ([3, 4], [0])]
    made.__dict__["demos"] = rv.Demonstrations.from_trajectories(paths, S, 2, goal=[S - 1, 0, 4])
    point = by_paths(made).at(made.theta)
    assert_same(point, by_goal(made).at(made.theta), 1e-8)
    gradient = central_differences(lambda t: by_paths(made).at(t).value, made.theta)
    assert_close(point.gradient, gradient, 1e-6)


def detour(*paths: Any) -> Trips:
    """From state 0 straight to the goal 3, or by 1, from where all ways are so dear that their sums are zero."""
    target = np.array([[3, 1], [2, 0], [3, 3], [3, 3]])
    T = sp.csr_array((np.ones(8), target.reshape(-1), np.arange(9)), shape=(8, 4))
    dear = [[[0.3, 800.0], [0.8, 900.0]], [[0.5, 5.0], [0.2, 5.1]]]
    X = np.array([[[1.0, 0.5], [1.0, 1.0]], *dear, np.zeros((2, 2))])
    made = Trips(rv.MDP(T, 1.0, terminal=[False, False, False, True]), X, np.array([-1.0, -1.0]))
    made.__dict__["demos"] = rv.Demonstrations.from_trajectories(paths, 4, 2, goal=3)
    return made


@pytest.mark.parametrize("paths", [[([0, 3], [0])], [([0, 3], [0]), ([0, 1], [1])], [([0, 1, 0, 3], [1, 1, 0])]])
def test_ways_whose_sums_underflow_are_judged_all_the_same(paths):
    """An alternative that nobody takes, that somebody takes and is not seen again, that somebody takes and returns."""
    made = detour(*paths)
    point = by_paths(made).at(made.theta)
    assert_same(point, by_goal(made).at(made.theta), 1e-8)
    assert point.parts[0].choices.log_policy[0, 1] < -790.0


def test_goals_that_close_the_ways_round_each_have_their_own_sums():
    """Rewards above zero on a ring: no sum of all paths exists, but every trip ends."""
    ring = sp.csr_array((np.ones(8), [1, 1, 2, 2, 3, 3, 0, 0], np.arange(9)), shape=(8, 4))  # two parallel moves each
    X = np.random.default_rng(0).uniform(0.5, 1.5, (4, 2, 2))
    made = Trips(rv.MDP(ring, 1.0), X, np.array([0.4, 0.3]), n=30, goals=4)
    part = by_paths(made).at(made.theta)
    assert part.parts[0]._shared is None
    assert_same(part, by_goal(made).at(made.theta))


def test_moves_of_the_goal_itself_do_not_matter():
    """What happens after arrival is over: rewards of the goal's own moves change nothing for the only goal."""
    mdp = random_network(3, dead_ends=0)
    X = np.random.default_rng(1).uniform(0.5, 1.5, (*mdp.feasible.shape, 3))
    made = Trips(mdp, X, np.full(3, -1.2), goals=1)
    goal = int(made.rows.goal[0])
    other: Floats = X.copy()
    other[goal] = 7.0
    assert_same(by_paths(made, rv.LinearReward(other)).at(made.theta), by_paths(made).at(made.theta))
