"""How sure, where trips have goals: scores, and the four covariances they make."""

import numpy as np
import pytest

import revealed as rv
from networks import GOAL_TRIPS, Trips
from oracle import Floats, assert_close, central_differences
from revealed.errors import InvalidOption
from revealed.goal_cases import EachGoal
from revealed.objective import Objective


def log_of_each(made: Trips, theta: Floats) -> Floats:
    """(n_steps,): log π of every single decision, by the general solver."""
    steps = made.demos.steps
    assert steps is not None
    part = Objective(made.reward, [EachGoal(made.rows, solver="lu")]).at(theta).parts[0]
    return part.choices.log_policy[made.rows.place(made.demos), steps.action]


def scores(made: Trips, theta: Floats) -> Floats:
    """(n_steps, K): finite differences, decision by decision."""
    return central_differences(lambda t: log_of_each(made, t), theta)


def test_scores_are_derivatives_of_log_probabilities(goal_trips, goal_fit):
    steps = goal_trips.demos.steps
    cell = goal_trips.rows.place(goal_trips.demos) * goal_trips.mdp.n_actions + steps.action
    evidence = goal_fit.evidence
    assert evidence.seen.tolist() == np.unique(cell).tolist()
    own = evidence.scores[np.searchsorted(evidence.seen, cell)]
    assert_close(own, scores(goal_trips, goal_fit.theta), 1e-7)
    assert np.abs(own.sum(axis=0)).max() < 1e-6  # they add up to the gradient, which is zero here


def test_scores_add_up_to_the_gradient_anywhere(goal_trips):
    """Away from the estimate too, agent by agent."""
    away = rv.NFXP(goal_trips.reward, start=1.1 * goal_trips.theta, max_iter=1).fit(goal_trips.mdp, goal_trips.demos)
    evidence = away.evidence
    total = goal_trips.demos.n_decisions
    assert_close(evidence.counts[evidence.seen] @ evidence.scores / total, evidence.point.gradient, 1e-9)
    per_agent = np.zeros((goal_trips.demos.n_agents, goal_trips.theta.size))
    np.add.at(per_agent, goal_trips.demos.steps.agent, scores(goal_trips, away.theta))
    assert_close(evidence.agent_scores, per_agent - per_agent.mean(axis=0), 1e-6)


def test_the_four_kinds_are_what_they_are_called(goal_trips, goal_fit):
    """From finite differences of single decisions and of the gradient: inverse Hessian, outer product of the scores of
    whole trips, sandwiches."""
    objective = Objective(goal_trips.reward, [EachGoal(goal_trips.rows, solver="lu")])
    U = scores(goal_trips, goal_fit.theta)
    H = -goal_trips.demos.n_decisions * central_differences(lambda t: objective.at(t).gradient, goal_fit.theta)
    per_agent = np.zeros((goal_trips.demos.n_agents, goal_fit.theta.size))
    np.add.at(per_agent, goal_trips.demos.steps.agent, U)
    N, trip = len(per_agent), goal_trips.demos.trajectory
    V = np.zeros((trip[-1] + 1, goal_fit.theta.size))
    np.add.at(V, trip, U)
    inverse = np.linalg.inv(H)
    meat = per_agent.T @ per_agent * N / (N - 1)
    for kind, expected in {
        "hessian": inverse,
        "opg": np.linalg.inv(V.T @ V),
        "robust": inverse @ V.T @ V @ inverse,
        "cluster": inverse @ meat @ inverse,
    }.items():
        found = np.asarray(goal_fit.cov_params(kind=kind))
        assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max(), kind


def test_paths_and_the_general_solver_are_equally_sure():
    made = GOAL_TRIPS["network"]
    one, other = (rv.NFXP(made.reward, solver=solver).fit(made.mdp, made.demos) for solver in ("auto", "lu"))
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-8)
    for kind in ("hessian", "opg", "robust", "cluster"):
        np.testing.assert_allclose(one.cov_params(kind=kind), other.cov_params(kind=kind), rtol=1e-7)


def test_a_settled_npl_is_as_sure_as_maximum_likelihood(goal_trips, goal_fit):
    npl = rv.NPL(goal_trips.reward, updates=40).fit(goal_trips.mdp, goal_trips.demos)
    assert npl.settled
    np.testing.assert_allclose(npl.bse, goal_fit.bse, rtol=1e-6)


def test_what_cannot_be_told_is_said(goal_trips, goal_fit):
    network = rv.NeuralReward(goal_trips.features, hidden=(2,), seed=0, activation="tanh")
    neural = rv.NFXP(network, l2=1e-2, max_iter=3, optimizer="lbfgs").fit(goal_trips.mdp, goal_trips.demos)
    with pytest.raises(InvalidOption, match=r"needs scores of single decisions.* Use fit\.bootstrap\(\)"):
        neural.cov_params(kind="opg")
    with pytest.raises(InvalidOption, match="`joint`"):
        goal_fit.cov_params(joint=True)


def test_discounted_visits_leave_clusters(goal_trips):
    fit = rv.NFXP(goal_trips.reward).fit(goal_trips.mdp, goal_trips.demos.discount_visits(0.9))
    assert np.isfinite(fit.cov_params(kind="cluster").to_numpy()).all()
    with pytest.raises(InvalidOption, match='`kind="hessian"` cannot be used with discounted visits'):
        fit.cov_params(kind="hessian")
