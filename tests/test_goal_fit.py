"""The result where trips have goals: behaviour toward each, by label or index; copies, interrupts, bootstrap."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from networks import GOAL_TRIPS
from oracle import assert_close
from revealed.errors import InvalidInput, RevealedError
from revealed.goal_fit import GoalsHaveTheirOwn
from revealed.optimize import Iterate

# --------------------------------------------------------------------------------------------------------- toward each


def test_behaviour_is_the_soft_optimum_toward_any_state(goal_trips, goal_fit):
    for goal in (0, 3, int(goal_trips.demos.goals[0])):
        model = goal_trips.mdp.toward(goal)
        best = rv.solve(model, goal_fit.reward)
        alive = ~model.terminal
        assert_close(goal_fit.policy_for(goal), best.policy, 1e-9)
        assert_close(np.exp(goal_fit.log_policy_for(goal)), best.policy, 1e-9)
        assert_close(goal_fit.value_for(goal)[alive], best.value[alive], 1e-9)
        assert_close(goal_fit.q_for(goal)[model.feasible], best.q[model.feasible], 1e-9)
        assert np.isneginf(goal_fit.value_for(goal)[model.terminal & (np.arange(model.n_states) != goal)]).all()
        assert goal_fit.value_for(goal)[goal] == 0.0


def test_goals_are_called_by_their_labels_and_labels_come_first():
    """Links whose ids are whole numbers: 3 is the link called 3, not the fourth one."""
    made = GOAL_TRIPS["network"]
    labels = [int(i) for i in np.roll(np.arange(2, 22), 1)]  # state 0 is called 21, state 1 is called 2, …
    named = made.mdp.with_labels(labels)
    fit = rv.NFXP(made.reward).fit(named, made.demos)
    assert fit.goals == tuple(labels[g] for g in made.goal_states)
    np.testing.assert_array_equal(fit.goal_states, made.demos.goals)
    np.testing.assert_array_equal(fit.value_for(3), rv.NFXP(made.reward).fit(made.mdp, made.demos).value_for(2))
    assert fit.value_for("3")[2] == 0.0
    for nowhere in ("nowhere", 0, -1):
        with pytest.raises(InvalidInput, match="`goal`: expected one of 21, 2, 3"):
            fit.policy_for(nowhere)


def test_decisions_of_a_network_without_labels_are_not_read_in_another_order():
    """Its links are 0, 1, 2, …; where a model calls them so in another order, turns without names are not guessed."""
    made = GOAL_TRIPS["network"]
    other = made.mdp.with_labels([int(i) for i in np.roll(np.arange(20), 1)])
    with pytest.raises(InvalidInput, match="list the states in a different order from the model"):
        rv.NFXP(made.reward).fit(other, made.demos)


def test_without_labels_goals_are_indices(goal_trips, goal_fit):
    assert goal_fit.goals == tuple(int(g) for g in goal_trips.demos.goals)
    assert all(type(goal) is int for goal in goal_fit.goals)
    assert goal_fit.n_trips == goal_trips.demos.n_agents


@pytest.mark.parametrize("name", ["policy", "log_policy", "value", "q", "pi_tilde", "predict", "table"])
def test_what_each_goal_has_of_its_own_is_asked_for_by_goal(goal_fit, name):
    with pytest.raises(
        GoalsHaveTheirOwn,
        match=rf"`fit\.{name}` depends on the goal of a trip\. Use fit\.\w+_for\(goal\)\.$",
    ):
        getattr(goal_fit, name)
    assert not hasattr(goal_fit, name)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = goal_fit.nonsense


def test_ccp_tells_the_probabilities_of_its_own_objective_for_the_goals_it_saw(goal_trips):
    """softmax Q^π̃ with π̃ the first step; toward other goals, where it has no π̃, the soft optimum."""
    uniform = lambda goal: goal_trips.mdp.toward(goal).uniform_policy()  # noqa: E731
    fit = rv.CCP(goal_trips.reward, first_step=uniform).fit(goal_trips.mdp, goal_trips.demos)
    goal = int(goal_trips.demos.goals[0])
    model = goal_trips.mdp.toward(goal)
    policy = model.uniform_policy()
    T = goal_trips.mdp.transitions.matrix.toarray().reshape(*model.feasible.shape, -1)
    log = np.where(policy > 0.0, np.log(np.where(policy > 0.0, policy, 1.0)), 0.0)
    P = np.einsum("sa,sat->st", policy, T)
    V = np.linalg.solve(np.eye(model.n_states) - model.discount * P, (policy * (fit.reward - log)).sum(axis=1))
    Q = np.where(model.feasible, fit.reward + model.discount * T @ V, -np.inf)
    alive = ~model.terminal
    expected = np.exp(Q[alive] - np.logaddexp.reduce(Q[alive], axis=1, keepdims=True))
    assert_close(fit.policy_for(goal)[alive], expected, 1e-9)
    other = next(s for s in range(model.n_states) if s not in goal_trips.demos.goals)
    assert_close(fit.policy_for(other), rv.solve(goal_trips.mdp.toward(other), fit.reward).policy, 1e-9)


def test_an_npl_that_has_not_settled_keeps_the_policies_it_used(goal_trips):
    one = rv.NPL(goal_trips.reward, updates=1).fit(goal_trips.mdp, goal_trips.demos)
    two = rv.NPL(goal_trips.reward, updates=2).fit(goal_trips.mdp, goal_trips.demos)
    assert not two.settled
    goal = int(goal_trips.demos.goals[0])
    assert_close(two.stored.of(0, goal_trips.mdp)[0], one.policy_for(goal), 1e-12)
    by_policies = sum(
        float((n := goal_trips.demos.toward(int(g)).counts)[n > 0] @ two.log_policy_for(int(g))[n > 0])
        for g in goal_trips.demos.goals
    )
    assert two.llf == pytest.approx(by_policies, rel=1e-10)
    settled = rv.NPL(goal_trips.reward, updates=40).fit(goal_trips.mdp, goal_trips.demos)
    assert settled.stored is None


# ------------------------------------------------------------------------------------------------ copies and interrupts


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_a_copy_tells_the_same(goal_trips, method):
    options = {"updates": 2} if method is rv.NPL else {}
    fit = method(goal_trips.reward, **options).fit(goal_trips.mdp, goal_trips.demos)
    goal = int(goal_trips.demos.goals[0])
    before = fit.policy_for(goal), fit.value_for(goal), fit.bse  # with all that is made on the way
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.theta, fit.theta)
    assert (again.llf, again.goals, again.status) == (fit.llf, fit.goals, fit.status)
    for one, other in zip((again.policy_for(goal), again.value_for(goal), again.bse), before, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_an_interrupt_keeps_what_was_reached(goal_trips):
    seen: list[Iterate] = []

    def callback(point: Iterate) -> None:
        seen.append(point)
        if point.iteration == 2:
            raise KeyboardInterrupt

    fit = rv.NFXP(goal_trips.reward, callback=callback).fit(goal_trips.mdp, goal_trips.demos)
    assert fit.status.interrupted
    assert fit.status.code == "iteration_limit"
    assert "the best point so far is kept" in fit.status.message
    np.testing.assert_array_equal(fit.theta, seen[-1].theta)
    assert np.isfinite(fit.policy_for(int(goal_trips.demos.goals[0]))).all()


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_a_callback_sees_every_iterate_but_no_policy_for_there_is_one_per_goal(goal_trips, method):
    seen: list[Iterate] = []
    fit = method(goal_trips.reward, callback=seen.append).fit(goal_trips.mdp, goal_trips.demos)
    assert [p.iteration for p in seen] == list(range(len(fit.history)))
    assert [p.objective for p in seen] == list(fit.history["objective"])
    assert all(p.policy is None and p.log_policy is None for p in seen)
    for p in (seen[0], seen[-1]):
        np.testing.assert_array_equal(p.reward, goal_trips.features @ p.theta)
    assert not pickle.loads(pickle.dumps(fit)).estimator.options.callback


# --------------------------------------------------------------------------------------------------------- bootstrap


def test_a_bootstrap_does_not_depend_on_who_does_it(goal_trips, goal_fit):
    fits = [replace(goal_fit, kept={}) for _ in range(2)]  # draws that are kept would be compared with themselves
    one, two = (fit.bootstrap(reps=6, seed=1, jobs=k + 1, progress=False) for k, fit in enumerate(fits))
    np.testing.assert_array_equal(one.theta, two.theta)
    assert one.n_failed == 0


def test_a_replication_is_a_fit_of_the_trips_drawn(goal_trips, goal_fit):
    """Agents as often as they were drawn: the same as a fit of trips that are repeated so often."""
    n = goal_trips.demos.n_agents
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n))
    weighted = rv.NFXP(goal_trips.reward).fit(goal_trips.mdp, goal_trips.demos.reweighted(drawn.astype(float)))
    steps = goal_trips.demos.steps
    paths, goals = [], []
    for agent in np.repeat(np.arange(n), drawn):
        own = steps.agent == agent
        paths.append((steps.state[own], steps.action[own]))
        goals.append(int(steps.goal[own][0]))
    repeated = rv.Demonstrations.from_trajectories(paths, goal_trips.mdp.n_states, goal_trips.mdp.n_actions, goal=goals)
    again = rv.NFXP(goal_trips.reward).fit(goal_trips.mdp, repeated)
    np.testing.assert_allclose(weighted.theta, again.theta, rtol=1e-8)
    for kind in ("hessian", "robust", "cluster"):
        np.testing.assert_allclose(weighted.covariance(kind), again.covariance(kind), rtol=1e-7)
    assert weighted.llf == pytest.approx(again.llf, rel=1e-10)


# --------------------------------------------------------------------------------------------------------- simulation


def test_trips_drawn_from_a_fit_have_its_log_likelihood(goal_trips, goal_fit):
    """Per decision within four standard errors of what is expected of trips between the same places."""
    trips = goal_fit.simulate(seed=0)
    assert trips.n_agents == goal_trips.demos.n_agents
    np.testing.assert_array_equal(trips.origins, goal_trips.demos.origins)
    many = goal_fit.simulate(3000, seed=1)
    other = goal_fit.simulate(3000, seed=2)
    one, two = (goal_fit.log_likelihood_by_trip(d).to_numpy() for d in (many, other))
    gap = abs(one.mean() - two.mean())
    assert gap < 4.0 * np.sqrt((one.var() + two.var()) / 3000.0)
    np.testing.assert_array_equal(goal_fit.simulate(50, seed=3).counts, goal_fit.simulate(50, seed=3).counts)


def test_weights_count_in_simulations_as_in_flows(goal_trips):
    """Of trips that count five times as often there are five times as many; those that do not count are not drawn."""
    places = np.unique(goal_trips.demos.destinations, return_inverse=True)[1]
    weight = np.array([0.0, 5.0, *np.ones(places.max())])[places]
    fit = rv.NFXP(goal_trips.reward).fit(goal_trips.mdp, goal_trips.demos.reweighted(weight))
    often = lambda demos, w=None: np.bincount(demos.destinations, w, goal_trips.mdp.n_states)  # noqa: E731
    first = goal_trips.demos.steps.first
    wanted = often(goal_trips.demos, weight[goal_trips.demos.steps.agent[first]])
    same = fit.simulate(seed=0)
    np.testing.assert_array_equal(often(same), wanted)
    assert same.origins.size == fit.n_observations == wanted.sum()
    drawn = often(fit.simulate(4000, seed=1)) / 4000
    np.testing.assert_allclose(drawn, wanted / wanted.sum(), atol=0.035)
    even = often(goal_trips.demos) / goal_trips.demos.origins.size
    assert np.abs(even - wanted / wanted.sum()).max() > 0.035  # the test could tell
    total = fit.flows()["expected"].sum()
    assert abs(same.n_decisions + same.origins.size - total) < 0.15 * total


def test_places_to_simulate_between_are_checked(goal_fit):
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"origins": [0]}, "`origins` requires `destinations`"),
        ({"n": 3, "origins": [0], "destinations": [1]}, "Repeat them instead"),
        ({"origins": [0, 1], "destinations": [2]}, "as many as origins"),
    ]
    for arguments, message in wrong:
        with pytest.raises(RevealedError, match=message):
            goal_fit.simulate(seed=0, **arguments)


@pytest.mark.parametrize("kind", ["network", "windy"])
def test_ccp_tells_value_and_q_of_its_own_objective(kind):
    """For a goal that was seen value, q and policy belong together: V = log Σ exp Q^π̃, π = exp(Q − V)."""
    made = GOAL_TRIPS[kind]
    fit = rv.CCP(made.reward).fit(made.mdp, made.demos)
    goal = made.goal_states[0]
    V, Q, model = fit.value_for(goal), fit.q_for(goal), made.mdp.toward(goal)
    here = ~model.terminal
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(V[here], np.log(np.exp(Q[here]).sum(axis=1)), rtol=1e-10)
    np.testing.assert_allclose(fit.policy_for(goal)[here], np.exp(Q[here] - V[here, None]), atol=1e-12)
    plain = rv.CCP(made.reward, first_step=fit.cases.given.of(0, model)[0], start=fit.theta, max_iter=1).fit(
        model, made.demos.toward(goal)
    )
    assert_close(np.where(here, V, 0.0), np.where(here, replace_theta(plain, fit.theta), 0.0), 1e-9)


def replace_theta(plain, theta):
    """log Σ exp Q^π̃ of a plain CCP fit at another θ."""
    from revealed.objective import Case
    from revealed.pi_tilde import GivenPolicy

    case = Case(plain.mdp, plain.demonstrations.counts, GivenPolicy(plain.mdp, plain.pi_tilde))
    return case.at(plain.reward_model, theta, {}).value


@pytest.mark.parametrize("kind", ["network", "windy"])
def test_the_likelihood_of_a_trip_does_not_hang_on_the_others(kind):
    """Held-out trips, alone or among others, to goals that were seen or not, have the likelihood that they have."""
    made = GOAL_TRIPS[kind]
    first, second = (made.demos.subset(range(k, made.demos.n_agents, 2)) for k in (0, 1))
    for method, options in ((rv.CCP, {}), (rv.NPL, {"updates": 1}), (rv.NFXP, {})):
        fit = method(made.reward, l2=1e-3, **options).fit(made.mdp, first)
        together = fit.log_likelihood_by_trip(made.demos)
        for part in (first, second, made.demos.subset([0]), made.demos.subset([1, 3])):
            alone = fit.log_likelihood_by_trip(part)
            np.testing.assert_allclose(alone, together[alone.index], rtol=1e-9)


def test_an_occupancy_fit_can_be_resampled():
    """Goals that no drawn trip heads for drop out."""
    made = GOAL_TRIPS["network"]
    fit = rv.NFXP(made.reward, weighting="occupancy", l2=1e-3).fit(made.mdp, made.demos)
    draws = fit.bootstrap(reps=6, seed=0, jobs=1)
    assert draws.n_used == 6
    assert (draws.theta.std(axis=0) > 0.0).all()
