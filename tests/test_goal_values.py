"""Toward one goal after another: values, policies, visits, on networks by sums over paths and elsewhere by Newton."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from models import corridor, random_mdp
from networks import newton_value, random_network, random_reward, reaches, scaled_to, weights, windy
from oracle import Floats
from revealed import goal_values, parallel
from revealed.errors import InvalidInput, ValueDoesNotExist
from revealed.goal_values import GoalValues, Toward
from zoo import seeds

MODELS = ("network", "parts", "discounted network", "windy", "windy to the end", "random")


def model(kind: str, seed: int = 0) -> tuple[rv.MDP, Floats]:
    """A model and a reward with which values exist toward every goal."""
    if kind == "windy":
        mdp = windy(3, 0.9, seed)
        return mdp, random_reward(mdp, seed)
    if kind == "windy to the end":
        mdp = windy(3, 1.0, seed)
        return mdp, random_reward(mdp, seed) - 1.5  # below −log 4 everywhere
    if kind == "random":
        mdp = random_mdp(9, 3, 0.95, seed, terminal=2, masked=True)
        return mdp, random_reward(mdp, seed)
    mdp = random_network(seed, parts=2 if kind == "parts" else 1, dead_ends=2)
    reward = random_reward(mdp, seed)
    reward = scaled_to(mdp, reward, weights(mdp, reward), 0.95)
    return (mdp.replace(discount=0.9) if kind == "discounted network" else mdp), reward


models = st.builds(model, st.sampled_from(MODELS), seeds)


def moved(found: Toward) -> Floats:
    """P (S, S): where trips to the goal go next."""
    mdp = found.base
    T = mdp.transitions.matrix.toarray().reshape(*mdp.feasible.shape, mdp.n_states)
    return np.einsum("sa,sat->st", found.policy, T)


@given(models, st.integers(0, 8))
def test_value_q_and_policy_are_those_of_the_model_toward_the_goal(pair, goal):
    mdp, reward = pair
    found, best = GoalValues(mdp, reward).toward(goal), rv.solve(mdp.toward(goal), reward)
    expected = newton_value(mdp, reward, goal)
    if not mdp.certain:  # a trip may fall into another end, which is worth nothing
        expected = np.where(mdp.terminal & (np.arange(mdp.n_states) != goal), 0.0, expected)
    np.testing.assert_allclose(found.value, expected, rtol=1e-9, atol=1e-9)
    alive = np.isfinite(expected) & (np.arange(mdp.n_states) != goal) & ~mdp.terminal
    np.testing.assert_allclose(found.policy, best.policy, atol=1e-9)
    np.testing.assert_allclose(found.log_policy[alive], best.log_policy[alive], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.q[alive], best.q[alive], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.policy.sum(axis=1), alive, atol=1e-9)
    assert np.isneginf(found.log_policy[~mdp.toward(goal).feasible]).all()
    np.testing.assert_array_equal(found.mdp.feasible, mdp.toward(goal).feasible)


@given(models, st.integers(0, 8), seeds)
def test_visits_turns_and_what_lies_ahead_are_those_of_the_chain(pair, goal, seed):
    """(I − P)^{-T}p, which counts visits, and (I − γP)⁻¹b by dense solves; what starts arrives."""
    mdp, reward = pair
    found = GoalValues(mdp, reward).toward(goal)
    S, rng = mdp.n_states, np.random.default_rng(seed)
    starts = rng.poisson(1.0, S) * np.isfinite(found.value).astype(float)
    system, counting = np.eye(S) - mdp.discount * moved(found), np.eye(S) - moved(found)
    visits = found.visits(starts)
    np.testing.assert_allclose(visits, np.linalg.solve(counting.T, starts), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.turns(starts), visits[:, None] * found.policy, atol=1e-12)
    b = rng.normal(size=(S, 2))
    given_there = np.where((np.isfinite(found.value) & (np.arange(S) != goal))[:, None], b, 0.0)
    np.testing.assert_allclose(found.ahead(b), np.linalg.solve(system, given_there), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.ahead(b[:, 0]), found.ahead(b)[:, 0], rtol=1e-10, atol=1e-10)
    if not mdp.terminal.any():
        assert visits[goal] == pytest.approx(starts.sum(), rel=1e-9)


@pytest.mark.parametrize("kind", ["network", "windy"])
def test_a_trip_that_starts_at_its_goal_counts_one_visit_and_no_decision(kind):
    mdp, reward = model(kind)
    found, there = GoalValues(mdp, reward).toward(2), np.eye(mdp.n_states)[2]
    np.testing.assert_allclose(found.visits(there), there, atol=1e-12)
    assert not found.turns(there).any()


def test_values_are_expected_rewards_and_surprise_of_the_way():
    """V(s) = E Σ (r − log π): what lies ahead, in payoffs."""
    mdp, reward = model("network", 3)
    found = GoalValues(mdp, reward).toward(0)
    surprise = np.where(found.policy > 0.0, found.log_policy, 0.0)
    payoff = (found.policy * (reward - surprise)).sum(axis=1)
    alive = np.isfinite(found.value)
    np.testing.assert_allclose(found.ahead(payoff)[alive], found.value[alive], atol=1e-10)


# ---------------------------------------------------------------------------------------------------- many at a time


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("block", [1, 2, 32])
def test_goals_come_in_their_order_whoever_else_is_asked_for(kind, block, monkeypatch):
    mdp, reward = model(kind)
    monkeypatch.setattr(goal_values, "BLOCK", block)
    goals = [5, 0, 3, 5, 1]
    values, starts = GoalValues(mdp, reward), np.ones(mdp.n_states)
    for goal, found in zip(goals, values.each(goals), strict=True):
        by_itself = GoalValues(mdp, reward).toward(goal)
        assert found.goal == goal
        np.testing.assert_allclose(found.value, by_itself.value, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found.policy, by_itself.policy, atol=1e-10)
        there = starts * np.isfinite(found.value)
        np.testing.assert_allclose(found.visits(there), by_itself.visits(there), rtol=1e-9, atol=1e-9)


def test_threads_change_nothing(monkeypatch):
    mdp, reward = model("network", 5)
    monkeypatch.setattr(goal_values, "BLOCK", 2)
    found = {}
    for n in (1, 4):
        monkeypatch.setattr(parallel, "cores", lambda n=n: n)
        found[n] = np.array([t.value for t in GoalValues(mdp, reward).each(range(mdp.n_states))])
    np.testing.assert_array_equal(found[1], found[4])


def test_one_factorisation_for_all_goals():
    mdp, reward = model("network")
    values = GoalValues(mdp, reward)
    list(values.each(range(mdp.n_states)))
    assert values.work.factorisations == 1


# ------------------------------------------------------------------------------------------------------ hard cases


def test_long_and_dear_trips_do_not_underflow():
    """A hundred links at 50 each: e^{−5000}; only goals that are so far away pay for a factorisation of their own."""
    mdp = corridor(101, 1.0)
    reward = np.full((101, 2), -50.0)
    values = GoalValues(mdp, reward)
    for goal, found in zip((0, 100), values.each([0, 100]), strict=True):
        np.testing.assert_allclose(found.value, -50.0 * np.abs(np.arange(101) - goal), rtol=1e-12)
        visits = found.visits(np.eye(101)[100 - goal])
        np.testing.assert_allclose(visits, np.ones(101), rtol=1e-12)
        np.testing.assert_allclose(found.ahead(np.ones(101)), np.abs(np.arange(101.0) - goal), rtol=1e-12)
    near = GoalValues(corridor(5, 1.0), np.full((5, 2), -50.0))
    list(near.each(range(5)))
    assert (values.work.factorisations, near.work.factorisations) == (
        1 + 2,
        1,
    )  # single columns need none for the transpose


def test_values_that_only_some_goals_have():
    """Round the ring 0 → 1 → 0 it pays to drive for ever, unless the goal is on it; the last state ends."""
    T = np.zeros((3, 2, 3))
    T[0, 0, 1] = T[1, 0, 0] = T[1, 1, 2] = 1.0
    mdp = rv.MDP(T, 1.0, feasible=[[True, False], [True, True], [False, False]], terminal=[False, False, True])
    values = GoalValues(mdp, np.full((3, 2), 0.5))
    np.testing.assert_allclose(values.toward(0).value, [0.0, 0.5, -np.inf])
    np.testing.assert_allclose(values.toward(1).value, [0.5, 0.0, -np.inf])
    with pytest.raises(ValueDoesNotExist, match="going round in circles is worth more than arriving"):
        values.toward(2)
    np.testing.assert_allclose(values.toward(0).value, [0.0, 0.5, -np.inf])  # and goes on after that


def test_a_windy_grid_at_no_cost_has_no_values():
    mdp = windy(3, 1.0)
    with pytest.raises(ValueDoesNotExist):
        GoalValues(mdp, np.zeros(mdp.feasible.shape)).toward(0)


def test_starts_without_a_way_are_named():
    mdp = random_network(0, parts=2).with_labels([f"link {i}" for i in range(12)])
    found = GoalValues(mdp, random_reward(mdp) - 1.0).toward("link 0")
    assert not reaches(mdp, 0)[1]
    with pytest.raises(InvalidInput) as raised:
        found.visits(np.ones(12))
    assert str(raised.value) == "goal 'link 0' cannot be reached from state 'link 1'."


def test_goals_that_are_no_states_and_models_that_are_none_are_refused():
    mdp, reward = model("network")
    with pytest.raises(InvalidInput, match="`goal`: expected indices in 0…11; got 12"):
        GoalValues(mdp, reward).toward(12)
    with pytest.raises(InvalidInput, match=r"an rv\.MDP"):
        GoalValues("road", reward)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match=r"\(12, 3\)"):
        GoalValues(mdp, np.zeros((3, 3)))
