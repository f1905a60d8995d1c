"""The result where trips have goals: behaviour toward each, by label or index; copies, interrupts, bootstrap."""

import pickle
from typing import Any

import numpy as np
import pytest

import revealed as rv
from networks import Trips, random_trips, windy_trips
from oracle import assert_close
from revealed.errors import InvalidInput, RevealedError
from revealed.goal_fit import GoalsHaveTheirOwn
from revealed.optimize import Iterate

MADE = {"network": random_trips(3, S=20, n=150), "windy": windy_trips(0.9, n=100)}


@pytest.fixture(scope="module", params=MADE)
def made(request) -> Trips:
    return MADE[request.param]


@pytest.fixture(scope="module")
def fit(made) -> rv.GoalFit:
    return rv.NFXP(made.reward).fit(made.mdp, made.demos)


# --------------------------------------------------------------------------------------------------------- toward each


def test_behaviour_is_the_soft_optimum_toward_any_state(made, fit):
    for goal in (0, 3, int(made.demos.goals[0])):
        model = made.mdp.toward(goal)
        best = rv.solve(model, fit.reward)
        alive = ~model.terminal
        assert_close(fit.policy_for(goal), best.policy, 1e-9)
        assert_close(np.exp(fit.log_policy_for(goal)), best.policy, 1e-9)
        assert_close(fit.value_for(goal)[alive], best.value[alive], 1e-9)
        assert_close(fit.q_for(goal)[model.feasible], best.q[model.feasible], 1e-9)
        assert np.isneginf(fit.value_for(goal)[model.terminal & (np.arange(model.n_states) != goal)]).all()
        assert fit.value_for(goal)[goal] == 0.0


def test_goals_are_called_by_their_labels_and_labels_come_first():
    """Links whose ids are whole numbers: 3 is the link called 3, not the fourth one."""
    made = MADE["network"]
    labels = [int(i) for i in np.roll(np.arange(20), 1)]  # state 0 is called 19, state 1 is called 0, …
    named = made.mdp.with_labels(labels)
    fit = rv.NFXP(made.reward).fit(named, made.demos)
    assert fit.goals == tuple(labels[g] for g in made.goal_states)
    np.testing.assert_array_equal(fit.goal_states, made.demos.goals)
    np.testing.assert_array_equal(fit.value_for(3), rv.NFXP(made.reward).fit(made.mdp, made.demos).value_for(4))
    assert fit.value_for("3")[4] == 0.0
    with pytest.raises(InvalidInput, match="`goal`: expected a state"):
        fit.policy_for("nowhere")


def test_without_labels_goals_are_indices(made, fit):
    assert fit.goals == tuple(int(g) for g in made.demos.goals)
    assert all(type(goal) is int for goal in fit.goals)
    assert fit.n_trips == made.demos.n_agents


@pytest.mark.parametrize("name", ["policy", "log_policy", "value", "q", "pi_tilde", "predict", "table"])
def test_what_each_goal_has_of_its_own_is_asked_for_by_goal(fit, name):
    with pytest.raises(GoalsHaveTheirOwn, match=r"a goal, for each has its own; got none\. Use fit\.\w+_for\("):
        getattr(fit, name)
    assert not hasattr(fit, name)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = fit.nonsense


def test_ccp_tells_the_probabilities_of_its_own_objective_for_the_goals_it_saw(made):
    """softmax Q^π̃ with π̃ the first step; toward other goals, where it has no π̃, the soft optimum."""
    uniform = lambda goal: made.mdp.toward(goal).uniform_policy()  # noqa: E731
    fit = rv.CCP(made.reward, first_step=uniform).fit(made.mdp, made.demos)
    goal = int(made.demos.goals[0])
    model = made.mdp.toward(goal)
    policy = model.uniform_policy()
    T = made.mdp.transitions.matrix.toarray().reshape(*model.feasible.shape, -1)
    log = np.where(policy > 0.0, np.log(np.where(policy > 0.0, policy, 1.0)), 0.0)
    P = np.einsum("sa,sat->st", policy, T)
    V = np.linalg.solve(np.eye(model.n_states) - model.discount * P, (policy * (fit.reward - log)).sum(axis=1))
    Q = np.where(model.feasible, fit.reward + model.discount * T @ V, -np.inf)
    alive = ~model.terminal
    expected = np.exp(Q[alive] - np.logaddexp.reduce(Q[alive], axis=1, keepdims=True))
    assert_close(fit.policy_for(goal)[alive], expected, 1e-9)
    other = next(s for s in range(model.n_states) if s not in made.demos.goals)
    assert_close(fit.policy_for(other), rv.solve(made.mdp.toward(other), fit.reward).policy, 1e-9)


def test_an_npl_that_has_not_settled_keeps_the_policies_it_used(made):
    one = rv.NPL(made.reward, updates=1).fit(made.mdp, made.demos)
    two = rv.NPL(made.reward, updates=2).fit(made.mdp, made.demos)
    assert not two.settled
    goal = int(made.demos.goals[0])
    assert_close(two.stored.of(0, made.mdp)[0], one.policy_for(goal), 1e-12)
    by_policies = sum(
        float((n := made.demos.toward(int(g)).counts)[n > 0] @ two.log_policy_for(int(g))[n > 0])
        for g in made.demos.goals
    )
    assert two.llf == pytest.approx(by_policies, rel=1e-10)
    settled = rv.NPL(made.reward, updates=40).fit(made.mdp, made.demos)
    assert settled.stored is None


# ------------------------------------------------------------------------------------------------ copies and interrupts


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_a_copy_tells_the_same(made, method):
    options = {"updates": 2} if method is rv.NPL else {}
    fit = method(made.reward, **options).fit(made.mdp, made.demos)
    goal = int(made.demos.goals[0])
    before = fit.policy_for(goal), fit.value_for(goal), fit.bse  # with all that is made on the way
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.theta, fit.theta)
    assert (again.llf, again.goals, again.status) == (fit.llf, fit.goals, fit.status)
    for one, other in zip((again.policy_for(goal), again.value_for(goal), again.bse), before, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_an_interrupt_keeps_what_was_reached(made):
    seen: list[Iterate] = []

    def callback(point: Iterate) -> None:
        seen.append(point)
        if point.iteration == 2:
            raise KeyboardInterrupt

    fit = rv.NFXP(made.reward, callback=callback).fit(made.mdp, made.demos)
    assert fit.status.interrupted
    assert fit.status.code == "iteration_limit"
    assert "what was reached is kept" in fit.status.message
    np.testing.assert_array_equal(fit.theta, seen[-1].theta)
    assert np.isfinite(fit.policy_for(int(made.demos.goals[0]))).all()


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_a_callback_sees_every_iterate_but_no_policy_for_there_is_one_per_goal(made, method):
    seen: list[Iterate] = []
    fit = method(made.reward, callback=seen.append).fit(made.mdp, made.demos)
    assert [p.iteration for p in seen] == list(range(len(fit.history)))
    assert [p.objective for p in seen] == list(fit.history["objective"])
    assert all(p.policy is None and p.log_policy is None for p in seen)
    for p in (seen[0], seen[-1]):
        np.testing.assert_array_equal(p.reward, np.where(made.mdp.feasible, made.features @ p.theta, 0.0))
    assert not pickle.loads(pickle.dumps(fit)).estimator.options.callback


# --------------------------------------------------------------------------------------------------------- bootstrap


def test_a_bootstrap_does_not_depend_on_who_does_it(made, fit):
    one, two = (fit.bootstrap(reps=6, seed=1, jobs=jobs, progress=False) for jobs in (1, 2))
    np.testing.assert_array_equal(one.theta, two.theta)
    assert one.n_failed == 0


def test_a_replication_is_a_fit_of_the_trips_drawn(made, fit):
    """Agents as often as they were drawn: the same as a fit of trips that are repeated so often."""
    n = made.demos.n_agents
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n))
    weighted = rv.NFXP(made.reward).fit(made.mdp, made.demos.reweighted(drawn.astype(float)))
    steps = made.demos.steps
    paths, goals = [], []
    for agent in np.repeat(np.arange(n), drawn):
        own = steps.agent == agent
        paths.append((steps.state[own], steps.action[own]))
        goals.append(int(steps.goal[own][0]))
    repeated = rv.Demonstrations.from_trajectories(paths, made.mdp.n_states, made.mdp.n_actions, goal=goals)
    again = rv.NFXP(made.reward).fit(made.mdp, repeated)
    np.testing.assert_allclose(weighted.theta, again.theta, rtol=1e-8)
    np.testing.assert_allclose(weighted.bse, again.bse, rtol=1e-7)
    assert weighted.llf == pytest.approx(again.llf, rel=1e-10)


# --------------------------------------------------------------------------------------------------------- simulation


def test_trips_drawn_from_a_fit_have_its_log_likelihood(made, fit):
    """Per decision within four standard errors of what is expected of trips between the same places."""
    trips = fit.simulate(seed=0)
    assert trips.n_agents == made.demos.n_agents
    np.testing.assert_array_equal(trips.origins, made.demos.origins)
    many = fit.simulate(3000, seed=1)
    other = fit.simulate(3000, seed=2)
    one, two = (fit.log_likelihood_by_trip(d).to_numpy() for d in (many, other))
    gap = abs(one.mean() - two.mean())
    assert gap < 4.0 * np.sqrt((one.var() + two.var()) / 3000.0)
    np.testing.assert_array_equal(fit.simulate(50, seed=3).counts, fit.simulate(50, seed=3).counts)


def test_places_to_simulate_between_are_checked(fit):
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"origins": [0]}, "both or neither"),
        ({"n": 3, "origins": [0], "destinations": [1]}, "Repeat them instead"),
        ({"origins": [0, 1], "destinations": [2]}, "as many as origins"),
    ]
    for arguments, message in wrong:
        with pytest.raises(RevealedError, match=message):
            fit.simulate(seed=0, **arguments)
