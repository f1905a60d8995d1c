"""Ample trips with goals: the truth comes back within three standard errors, or as good a prediction as the truth's."""

from typing import Any

import numpy as np
import pytest

import revealed as rv
from networks import Trips, random_network, windy_trips
from oracle import Floats
from revealed.environments import city
from revealed.goal_values import GoalValues

METHODS = [rv.NFXP, rv.MCEIRL, rv.CCP, rv.NPL]


@pytest.fixture(scope="module")
def town():
    """A city of some 300 links, and 2,000 trips to 40 destinations."""
    made = city(300, seed=0)
    return made, made.demonstrate(2000, seed=0, destinations=40)


@pytest.fixture(scope="module")
def best(town) -> rv.GoalFit:
    made, trips = town
    return rv.NFXP(made.reward).fit(made.mdp, trips)


def test_drivers_preferences_are_recovered_within_three_standard_errors(town, best):
    truth = town[0].true_weights
    assert best.converged
    assert (np.abs(best.params - truth) <= 3.0 * best.bse).all()
    assert (best.bse <= 0.1 * np.abs(truth)).all()
    assert best.llf > GoalLogs(town[0].mdp, town[0].true_reward).total(town[1])


class GoalLogs:
    """log π of decisions under a reward table, from the value toward each goal."""

    def __init__(self, mdp: rv.MDP, table: Floats) -> None:
        self.values = GoalValues(mdp, table)

    def total(self, demos: rv.Demonstrations) -> float:
        steps = demos.steps
        assert steps is not None
        assert steps.goal is not None
        tables = {toward.goal: toward.log_policy for toward in self.values.each(np.unique(steps.goal))}
        return float(sum(tables[g][s, a] for s, a, g in zip(steps.state, steps.action, steps.goal, strict=True)))


def test_every_kind_of_standard_error_says_about_the_same_on_ample_data(best):
    expected = best.bse.to_numpy()
    for kind in ("opg", "robust", "cluster"):
        found = np.sqrt(np.diag(best.cov_params(kind=kind)))
        np.testing.assert_allclose(found, expected, rtol=0.15, err_msg=kind)


def test_ccp_from_the_true_policy_recovers_the_truth(town):
    made, trips = town
    fit = rv.CCP(made.reward, first_step=made.expert_for).fit(made.mdp, trips)
    assert fit.converged
    assert (np.abs(fit.params - made.true_weights) <= 3.0 * fit.bse).all()


def test_mce_irl_is_nfxp_and_a_settled_npl_ends_there_too(town, best):
    made, trips = town
    twin = rv.MCEIRL(made.reward).fit(made.mdp, trips)
    np.testing.assert_array_equal(twin.theta, best.theta)
    assert (twin.llf, twin.method) == (best.llf, "MCE-IRL")
    npl = rv.NPL(made.reward, updates=20).fit(made.mdp, trips)
    assert npl.settled
    assert npl.converged
    np.testing.assert_allclose(npl.theta, best.theta, atol=1e-7)
    assert npl.llf == pytest.approx(best.llf, rel=1e-10)


@pytest.mark.parametrize("discount", [0.95, 1.0])
@pytest.mark.parametrize("method", METHODS)
def test_uncertain_moves_recover_the_truth(method, discount):
    """A windy grid, with a discount and without; CCP from the true policies, since its first step is only a guess."""
    made = windy_trips(discount, n=1500, goals=4)
    policies = GoalValues(made.mdp, made.table)
    options = {"first_step": lambda goal: policies.toward(goal).policy} if method is rv.CCP else {}
    fit = method(made.reward, **options).fit(made.mdp, made.demos)
    assert fit.converged
    assert (np.abs(fit.theta - made.theta) <= 3.0 * fit.bse).all()


def test_a_network_predicts_held_out_trips_as_well_as_the_truth_does():
    """Rewards that bend, features that do not: within 0.02 nats per decision, where a linear reward stays behind."""
    mdp = random_network(8, S=40, A=4, dead_ends=0)
    x = np.random.default_rng(8).uniform(-1.0, 1.0, (*mdp.feasible.shape, 2))
    bent = np.stack([np.ones(mdp.feasible.shape), x[:, :, 0] ** 2, np.maximum(x[:, :, 1], 0.0)], axis=2)
    made = Trips(mdp, bent, np.array([-1.5, -3.0, -3.0]), goals=10)
    trips, held_out = made.draw(1500, 1), made.draw(1500, 2)
    truth = -GoalLogs(mdp, made.table).total(held_out) / held_out.n_decisions

    def nll(reward: Any, **options: Any) -> float:
        fit = rv.NFXP(reward, **options).fit(mdp, trips)
        return -float(fit.log_likelihood_by_trip(held_out).sum()) / held_out.n_decisions

    network = rv.NeuralReward(x, hidden=(8,), seed=0, activation="tanh")
    assert nll(network, optimizer="lbfgs", max_iter=120, l2=1e-4) < truth + 0.02
    assert nll(rv.LinearReward(np.concatenate([x, np.ones((*mdp.feasible.shape, 1))], axis=2))) > truth + 0.05
