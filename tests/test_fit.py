"""The result of every method: estimates, behaviour, status, summary; and that the methods differ in π̃ alone."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from models import corridor, counts, dense, dense_matrix, draw, random_mdp

METHODS = [rv.NFXP, rv.MCEIRL, rv.CCP, rv.NPL]
MDP = random_mdp(10, 3, seed=1, masked=True, terminal=1, initial=True)
FEATURES = np.random.default_rng(0).normal(size=(10, 3, 2))
TRUTH = np.array([1.0, -0.5])
REWARD = rv.LinearReward(FEATURES, names=["fuel", "wear"])
DEMOS = draw(MDP, FEATURES @ TRUTH, 300, 30)


@pytest.fixture(scope="module", params=METHODS, ids=lambda m: m.__name__)
def fit(request) -> rv.Fit:
    return request.param(REWARD, **({"updates": 30} if request.param is rv.NPL else {})).fit(MDP, DEMOS)


def test_the_pieces_of_a_fit_belong_together(fit):
    assert fit.converged
    assert fit.status.code == "converged"
    table = np.where(MDP.feasible, FEATURES @ fit.theta, 0.0)
    np.testing.assert_allclose(fit.reward, FEATURES @ fit.theta, atol=1e-14)  # of all pairs, offered or not
    used = np.where(fit.pi_tilde > 0, fit.pi_tilde, 1.0)
    payoff = (fit.pi_tilde * (table - np.log(used))).sum(axis=1)
    V = np.linalg.solve(dense_matrix(MDP, fit.pi_tilde), payoff)
    Q = np.where(MDP.feasible, table + MDP.discount * dense(MDP) @ V, -np.inf)
    value = np.where(MDP.terminal, 0.0, np.logaddexp.reduce(Q, axis=1))
    np.testing.assert_allclose(fit.value, value, atol=1e-10)
    np.testing.assert_allclose(fit.policy, np.exp(Q - value[:, None]), atol=1e-10)
    np.testing.assert_allclose(np.exp(fit.log_policy), fit.policy, atol=1e-15)
    np.testing.assert_array_equal(fit.policy[~MDP.feasible], 0.0)


def test_the_log_likelihood_is_over_observed_decisions_and_its_criteria_follow(fit):
    seen = DEMOS.counts > 0
    llf = float((DEMOS.counts[seen] * np.log(fit.policy[seen])).sum())
    n = DEMOS.counts.sum()
    assert fit.llf == pytest.approx(llf, rel=1e-12)
    assert fit.objective == pytest.approx(llf / n, rel=1e-12)
    assert fit.nobs == n
    assert fit.aic == pytest.approx(4 - 2 * llf, rel=1e-12)
    assert fit.bic == pytest.approx(2 * np.log(n) - 2 * llf, rel=1e-12)


def test_params_carry_the_names(fit):
    assert isinstance(fit.params, pd.Series)
    assert list(fit.params.index) == ["fuel", "wear"]
    np.testing.assert_array_equal(fit.params.to_numpy(), fit.theta)


def test_the_summary_can_be_read_by_a_person(fit):
    text = str(fit.summary())
    for word in (fit.method, "fuel", "wear", f"{fit.llf:.3f}", f"{fit.nobs}", "converged", "LinearReward", "sample"):
        assert word in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_the_repr_is_one_line(fit):
    assert "\n" not in repr(fit)
    assert fit.method in repr(fit)
    assert "converged" in repr(fit)


def test_a_long_parameter_vector_is_summarised_by_quantiles():
    mdp = corridor(50)
    fit = rv.CCP(rv.TabularReward(50), l2=1e-3).fit(mdp, draw(mdp, np.arange(50.0)[:, None] * 0.01, 200))
    assert "50 parameters, by quantile" in str(fit.summary())


def test_a_fit_is_frozen_and_can_be_pickled(fit):
    with pytest.raises(dataclasses.FrozenInstanceError):
        fit.llf = 0.0
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.theta, fit.theta)
    assert str(again.summary()) == str(fit.summary())


# methods


def test_mce_irl_is_nfxp_under_its_other_name():
    one, two = (method(REWARD).fit(MDP, DEMOS) for method in (rv.NFXP, rv.MCEIRL))
    np.testing.assert_array_equal(one.theta, two.theta)
    assert (one.method, two.method) == ("NFXP", "MCE-IRL")
    np.testing.assert_array_equal(one.pi_tilde, one.policy)


def test_ccp_uses_the_first_step_as_it_is():
    fit = rv.CCP(REWARD, first_step="smoothed").fit(MDP, DEMOS)
    shares = (DEMOS.counts + 1) * MDP.feasible
    going = ~MDP.terminal
    expected = shares[going] / shares[going].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fit.pi_tilde[going], expected, rtol=1e-14)
    assert fit.settled is None


def test_options_are_kept_as_they_were_given():
    kernel = rv.first_step.Kernel(features=np.eye(10), bandwidth=2.0)
    fit = rv.CCP(REWARD, first_step=kernel, l2=0.1).fit(MDP, DEMOS)
    assert fit.options["first_step"] is kernel
    assert fit.options["l2"] == 0.1


def test_npl_with_one_update_is_ccp():
    npl, ccp = rv.NPL(REWARD, updates=1).fit(MDP, DEMOS), rv.CCP(REWARD).fit(MDP, DEMOS)
    np.testing.assert_array_equal(npl.theta, ccp.theta)
    assert npl.updates == 1
    assert npl.converged


def test_npl_that_settled_says_so_and_is_nfxp():
    npl, nfxp = rv.NPL(REWARD, updates=60).fit(MDP, DEMOS), rv.NFXP(REWARD).fit(MDP, DEMOS)
    assert npl.settled
    assert npl.converged
    assert 1 < npl.updates < 60  # it stopped early
    assert f"settled after {npl.updates} updates" in npl.status.message
    np.testing.assert_allclose(npl.theta, nfxp.theta, atol=1e-6)
    np.testing.assert_allclose(npl.pi_tilde, npl.policy, atol=1e-8)
    assert npl.history["update"].max() == npl.updates
    assert npl.history["update"].is_monotonic_increasing


def test_npl_that_was_asked_for_two_updates_says_that_it_has_not_settled():
    fit = rv.NPL(REWARD, updates=2).fit(MDP, DEMOS)
    assert fit.settled is False
    assert fit.status.code == "converged"
    assert "2-step NPL, as requested" in fit.status.message
    assert fit.updates == 2


# weightings


@pytest.mark.parametrize("method", METHODS)
def test_the_log_likelihood_is_over_counts_whichever_weighting(method):
    fit = method(REWARD, weighting="occupancy").fit(MDP, DEMOS)
    seen = DEMOS.counts > 0
    assert fit.llf == pytest.approx(float((DEMOS.counts[seen] * np.log(fit.policy[seen])).sum()), rel=1e-12)
    assert fit.objective != pytest.approx(fit.llf / fit.nobs, rel=1e-6)


def test_discounted_visits_change_the_estimate_but_not_what_the_likelihood_counts():
    discounted = DEMOS.discount_visits(0.8)
    plain, fit = rv.NFXP(REWARD).fit(MDP, DEMOS), rv.NFXP(REWARD).fit(MDP, discounted)
    seen = DEMOS.counts > 0
    assert np.abs(fit.theta - plain.theta).max() > 1e-6
    assert fit.llf == pytest.approx(float((DEMOS.counts[seen] * np.log(fit.policy[seen])).sum()), rel=1e-12)
    assert fit.llf < plain.llf
    assert fit.nobs == plain.nobs


def test_occupancy_weighting_matches_expected_features():
    fit = rv.MCEIRL(REWARD, weighting="occupancy", first_step="smoothed").fit(MDP, DEMOS)
    expert = rv.CCP(REWARD, first_step="smoothed").fit(MDP, DEMOS).pi_tilde

    def expected_features(policy):
        occupancy = np.linalg.solve(dense_matrix(MDP, policy).T, np.full(10, 0.1))
        return np.einsum("s,sa,sak->k", occupancy, policy, FEATURES)

    np.testing.assert_allclose(expected_features(fit.policy), expected_features(expert), atol=1e-7)


def test_occupancy_weighting_starts_from_the_data_where_the_model_has_no_start():
    mdp = random_mdp(10, 3, seed=1, masked=True, terminal=1)
    starts = DEMOS.starts / DEMOS.starts.sum()
    one = rv.NFXP(REWARD, weighting="occupancy").fit(mdp, DEMOS)
    two = rv.NFXP(REWARD, weighting="occupancy").fit(mdp.replace(initial=starts), DEMOS)
    np.testing.assert_allclose(one.theta, two.theta, atol=1e-10)
    with pytest.raises(rv.errors.InvalidDemonstrations, match="initial"):
        rv.NFXP(REWARD, weighting="occupancy").fit(mdp, counts(DEMOS.counts))


def test_scaling_the_counts_changes_nothing_but_the_likelihood():
    one = rv.NFXP(REWARD, l2=1e-2).fit(MDP, counts(DEMOS.counts))
    ten = rv.NFXP(REWARD, l2=1e-2).fit(MDP, counts(10 * DEMOS.counts))
    np.testing.assert_allclose(one.theta, ten.theta, atol=1e-9)
    assert ten.llf == pytest.approx(10 * one.llf, rel=1e-9)


def test_the_penalty_is_part_of_the_objective_and_not_of_the_likelihood():
    fit = rv.NFXP(REWARD, l2=0.1).fit(MDP, DEMOS)
    assert fit.objective == pytest.approx(fit.llf / fit.nobs - 0.05 * float(fit.theta @ fit.theta), rel=1e-12)
    assert np.linalg.norm(fit.theta) < np.linalg.norm(rv.NFXP(REWARD).fit(MDP, DEMOS).theta)


def test_a_fit_on_an_unrolled_model_has_the_shapes_of_that_model():
    mdp = corridor(5, discount=1.0)
    x = np.arange(5.0)[:, None]
    demos = rv.simulate(mdp, rv.solve(mdp.replace(discount=0.8), 0.3 * x).policy, 200, 4, seed=0)
    fit = rv.NFXP(rv.LinearReward(x)).fit(mdp.unroll(4), demos)
    assert fit.converged
    assert fit.policy.shape == (25, 2)
    assert fit.nobs == 800


# behaviour


def test_predict_is_called_as_stable_baselines_policies_are():
    fit = rv.CCP(REWARD).fit(MDP, DEMOS)
    actions, state = fit.predict(np.arange(9), deterministic=True)
    np.testing.assert_array_equal(actions, fit.policy[:9].argmax(axis=1))
    assert state is None
    action, passed = fit.predict(3, state="memory", deterministic=True)
    assert action == fit.policy[3].argmax()
    assert passed == "memory"
    assert fit.predict(np.arange(8).reshape(2, 4), seed=0)[0].shape == (2, 4)


def test_predicted_actions_have_the_policys_shares():
    fit = rv.CCP(REWARD).fit(MDP, DEMOS)
    n = 50_000
    drawn, _ = fit.predict(np.zeros(n, dtype=int), seed=1)
    share, p = np.bincount(drawn, minlength=3) / n, fit.policy[0]
    assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n)).all()
    again, _ = fit.predict(np.zeros(n, dtype=int), seed=1)
    np.testing.assert_array_equal(drawn, again)


@pytest.mark.parametrize("obs", [9, 10, -1, 0.5, "a", [], [[0, 1], [2]], None])
def test_predict_refuses_what_is_no_state_or_has_ended(obs):
    with pytest.raises(rv.errors.InvalidInput, match="obs"):
        rv.CCP(REWARD).fit(MDP, DEMOS).predict(obs)


def test_simulate_follows_the_estimated_policy_from_the_right_starts():
    fit = rv.CCP(REWARD).fit(MDP, DEMOS)
    one = fit.simulate(50, 10, seed=3)
    np.testing.assert_array_equal(one.counts, rv.simulate(MDP, fit.policy, 50, 10, seed=3).counts)
    mdp = random_mdp(10, 3, seed=1)
    data = rv.simulate(mdp, mdp.uniform_policy(), 50, 10, seed=0, initial=np.eye(10)[4])
    refit = rv.CCP(REWARD).fit(mdp, data).simulate(20, 5, seed=1)
    assert refit.starts[4] == 20  # no start in the model: from where the data started
