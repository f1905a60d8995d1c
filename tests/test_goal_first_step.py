"""π̂_E toward many goals: a logit that pools them, or an ordinary first step for each."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import revealed as rv
from networks import random_trips, steps_of, windy_trips
from oracle import Floats, assert_close, central_differences
from revealed.errors import InvalidOption, RevealedError
from revealed.first_step import MOST_FEATURES, GoalLogit, Logit, estimate_policy
from revealed.goal_first_step import GoalCosts, goal_policies, pooled_logit
from revealed.goal_rows import GoalRows
from zoo import seeds

trips = st.one_of(
    st.builds(random_trips, seeds, S=st.integers(6, 12), parts=st.integers(1, 2), n=st.just(15)),
    st.builds(windy_trips, st.just(0.9), seeds, n=st.just(15), side=st.just(3)),
)


def least_costs(mdp: rv.MDP, cost: Floats, goal: int) -> Floats:
    """By sweeps: the least cost of a sequence of moves that may end at the goal; 0 where there is none."""
    T = mdp.transitions.matrix.toarray().reshape(*mdp.feasible.shape, -1)
    far = np.where(np.arange(mdp.n_states) == goal, 0.0, np.inf)
    for _ in range(mdp.n_states):
        for s, a in np.argwhere(mdp.feasible):
            far[s] = min(far[s], *(cost[s, a] + far[T[s, a] > 0.0]))
    return np.where(np.isfinite(far), far, 0.0)


@given(trips)
def test_features_are_those_of_the_reward_and_the_change_in_the_least_cost(made):
    """The cost of a move is one, plus each feature in units of its mean size over what is offered."""
    costs, X = GoalCosts.of(made.mdp, made.reward), made.features
    offered = made.mdp.feasible
    cost = 1.0 + (np.abs(X) / np.abs(X[offered]).mean(axis=0)).sum(axis=2)
    T = made.mdp.transitions.matrix.toarray().reshape(*offered.shape, -1)
    for goal in (0, 3):
        far = least_costs(made.mdp, cost, goal)
        found = costs.features(goal, np.arange(made.mdp.n_states))
        assert_close(found[:, :, -1][offered], (T @ far - far[:, None])[offered], 1e-12)
        assert_close(found[:, :, :-1][offered], X[offered], 1e-15)


@given(trips, st.sampled_from([1e-4, 0.1]))
def test_the_logit_is_at_the_maximum_of_its_penalised_likelihood(made, l2):
    """Over the decisions of all goals together, with each feature in units of its spread across what is offered."""
    rows = made.rows
    found = pooled_logit(rows, made.reward, l2)
    X = np.concatenate([found.costs.features(int(g), rows.state[rows.rows_of(c)]) for c, g in enumerate(rows.goal)])
    variance = [x[offered].var(axis=0) for x, offered in zip(X, rows.feasible, strict=True)]
    scale = np.sqrt(np.average(variance, axis=0, weights=rows.rho.sum(axis=1)))
    assume((scale > 1e-9).all())

    def objective(b: Floats) -> float:
        Q = np.where(rows.feasible, X / scale @ b, -np.inf)
        log = Q - np.logaddexp.reduce(Q, axis=1, keepdims=True)
        return float((rows.rho[rows.rho > 0] * log[rows.rho > 0]).sum() / rows.total - l2 / 2 * b @ b)

    assert np.abs(central_differences(objective, found.beta * scale)).max() < 1e-6


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_logit_does_not_mind_units(l2):
    made = random_trips(5)
    K = made.features.shape[2]
    other = rv.LinearReward(made.features * np.resize([1e5, 1e-5], K))
    for rows in (made.rows, GoalRows.of(made.mdp, made.draw(200, 1))):
        one, two = (pooled_logit(rows, reward, l2) for reward in (made.reward, other))
        for c, goal in enumerate(rows.goal):
            mdp = made.mdp.toward(int(goal))
            np.testing.assert_allclose(two.of(c, mdp)[0], one.of(c, mdp)[0], atol=1e-8)


def test_a_logit_without_a_maximum_is_told():
    """A single trip: what it took is explained perfectly, in this sample."""
    made = random_trips(5)
    one = made.demos.subset([0])
    fit = rv.CCP(made.reward, l2=1e-2).fit(made.mdp, one)
    assert [note for note in fit.status.notes if "rv.first_step.GoalLogit(l2=1e-3)" in note]
    assert np.isfinite(fit.theta).all()
    many = rv.CCP(made.reward).fit(made.mdp, made.draw(600, 1))
    assert not many.status.notes
    penalised = rv.CCP(made.reward, l2=1e-2, first_step=GoalLogit(l2=1e-3)).fit(made.mdp, one)
    without = rv.NFXP(made.reward, l2=1e-2).fit(made.mdp, one)  # which does not use it
    assert not [note for other in (penalised, without) for note in other.status.notes if "logit" in note]


def test_logits_of_single_goals_that_have_no_maximum_are_counted():
    made = random_trips(5)
    fit = rv.CCP(made.reward, l2=1e-2, first_step=Logit(made.features)).fit(made.mdp, made.demos.subset(range(8)))
    n = len(fit.goals)
    (note,) = fit.status.notes
    assert re.match(rf"[1-{n}] of {n} goals: the first step's logit has no maximum", note)


@given(trips)
def test_it_offers_what_leads_to_the_goal_and_nothing_else(made):
    found = goal_policies(made.rows, "logit", made.reward)
    for c, goal in enumerate(made.rows.goal):
        mdp = made.mdp.toward(int(goal))
        policy, log_policy = found.of(c, mdp)
        assert ((log_policy > -np.inf) == mdp.feasible).all()  # probabilities of a separated logit underflow
        np.testing.assert_allclose(policy.sum(axis=1), ~mdp.terminal)
        np.testing.assert_allclose(np.exp(log_policy), policy, atol=np.finfo(float).tiny)  # smaller ones have no digits


def test_drivers_who_follow_such_a_logit_are_found_out():
    """Decisions in the shares that the logit itself expects: its weights come back, from all goals at once."""
    made = random_trips(5)
    rows, true = made.rows, goal_policies(made.rows, "logit", made.reward)
    beta = np.array([-0.4, 0.3, 0.2, -0.5])
    shares = np.zeros_like(rows.rho)
    for c, goal in enumerate(rows.goal):
        here = rows.rows_of(c)
        shares[here] = replace(true, beta=beta).of(c, made.mdp.toward(int(goal)))[0][rows.state[here]]
    expected = replace(rows, rho=rows.rho.sum(axis=1, keepdims=True) * shares)
    np.testing.assert_allclose(pooled_logit(expected, made.reward, 0.0).beta, beta, atol=1e-5)


def test_goals_lend_each_other_their_trips():
    """A goal with a single trip has nearly the policy that many trips to other goals tell of."""
    made = random_trips(5, S=12)
    demos = made.draw(600, 1)
    goal, steps = made.goal_states[0], steps_of(demos)
    ours = np.unique(steps.agent[steps.goal == goal])
    few = demos.subset(np.setdiff1d(np.arange(600), ours[1:]))
    mdp = made.mdp.toward(goal)
    all_trips, one = (goal_policies(GoalRows.of(made.mdp, d), "logit", made.reward).of(0, mdp)[0] for d in (demos, few))
    alone = goal_policies(GoalRows.of(made.mdp, few), "frequency", made.reward).of(0, mdp)[0]
    assert np.abs(one - all_trips).max() < 0.1 < np.abs(alone - all_trips).max()


@pytest.mark.parametrize("name", ["frequency", "smoothed"])
def test_ordinary_first_steps_are_those_of_each_goal_s_own_trips(name):
    made = random_trips(2)
    found = goal_policies(made.rows, name, made.reward)
    for c, goal in enumerate(made.rows.goal):
        mdp = made.mdp.toward(int(goal))
        own = estimate_policy(mdp, made.demos.toward(int(goal)).counts, name, made.reward)
        np.testing.assert_array_equal(found.of(c, mdp)[0], own)


def test_a_function_is_asked_for_each_goal_by_its_label():
    made = random_trips(2)
    named = made.mdp.with_labels([f"link {i}" for i in range(14)])
    asked = []

    def policy(goal: str) -> Floats:
        asked.append(goal)
        return named.toward(goal).uniform_policy()

    rows = GoalRows.of(named, made.demos)
    found = goal_policies(rows, policy, made.reward)
    for c, goal in enumerate(rows.goal):
        mdp = named.toward_state(int(goal))
        np.testing.assert_array_equal(found.of(c, mdp)[0], mdp.uniform_policy())
    assert asked == [f"link {goal}" for goal in rows.goal]
    wrong = goal_policies(rows, lambda goal: np.ones((14, 3)), made.reward)
    with pytest.raises(RevealedError, match="`first_step`"):
        wrong.of(0, named.toward_state(int(rows.goal[0])))


def test_an_array_for_all_goals_alike_is_refused():
    made = random_trips(2)
    with pytest.raises(InvalidOption, match=r"a function from a goal to an \(S, A\) array where trips have goals"):
        rv.CCP(made.reward, first_step=made.mdp.uniform_policy()).fit(made.mdp, made.demos)
    with pytest.raises(InvalidOption, match="`l2`: expected a number >= 0"):
        pooled_logit(made.rows, made.reward, -1.0)


def test_without_features_or_with_very_many_trips_are_measured_in_moves():
    made = random_trips(3)
    S, A, _ = made.features.shape
    many = rv.LinearReward(np.ones((S, A, MOST_FEATURES + 1)))
    for reward in (rv.TabularReward(S), many, None):
        costs = GoalCosts.of(made.mdp, reward)
        assert (costs.cost == 1.0).all()
        assert costs.features(0, np.arange(S)).shape[2] == 1


def test_features_of_states_are_those_of_where_a_move_leads():
    made = windy_trips(0.9, side=3)
    X = np.random.default_rng(0).normal(size=(9, 2))
    T = made.mdp.transitions.matrix.toarray().reshape(9, 4, 9)
    assert_close(GoalCosts.of(made.mdp, rv.LinearReward(X)).features(0, np.arange(9))[:, :, :2], T @ X, 1e-14)


def test_the_default_pools_goals():
    made = random_trips(1)
    fit = rv.CCP(made.reward).fit(made.mdp, made.demos)
    assert fit.options["first_step"] == "logit"
    np.testing.assert_array_equal(
        fit.theta, rv.CCP(made.reward, first_step=GoalLogit()).fit(made.mdp, made.demos).theta
    )
