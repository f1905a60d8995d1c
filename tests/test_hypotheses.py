"""Tests of hypotheses (theory N7): likelihood ratio, Wald, and differences of estimators."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import revealed as rv
from revealed.errors import InvalidInput, InvalidOption
from test_inference import bus_fit, one_state
from test_transition_models import BINS, bus_landing, drives


def logit(counts: list[list[float]]) -> rv.Fit:
    mdp, reward, _ = one_state(0.5, 2, 2)
    return rv.NFXP(reward).fit(mdp, rv.Demonstrations.from_counts(np.array(counts)))


def test_the_likelihood_ratio_of_two_groups_is_the_g_statistic():
    """Equal odds in two groups: 2 Σ n log(n/expected) on one degree of freedom."""
    table = np.array([[30.0, 10.0], [25.0, 20.0]])
    found = rv.likelihood_ratio_test(logit([list(table.sum(axis=0))]), [logit([list(row)]) for row in table])
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    g = 2 * np.sum(table * np.log(table / expected))
    assert found.statistic == pytest.approx(g, rel=1e-9)
    assert (found.df, found.pvalue) == (1, pytest.approx(chi2.sf(g, 1), rel=1e-9))


def test_a_restriction_on_the_discount_needs_its_degrees_of_freedom():
    fit = bus_fit()
    myopic = rv.NFXP(fit.reward_model).fit(fit.mdp.replace(discount=0.0), drives())
    better, worse = (fit, myopic) if fit.llf > myopic.llf else (myopic, fit)
    found = rv.likelihood_ratio_test(worse, better, df=1)
    assert found.statistic == pytest.approx(2 * (better.llf - worse.llf))
    with pytest.raises(InvalidInput, match="df"):
        rv.likelihood_ratio_test(worse, better)
    with pytest.raises(InvalidInput, match="swapped"):
        rv.likelihood_ratio_test(better, worse, df=1)


def test_joint_adds_the_likelihood_and_the_parameters_of_the_transitions():
    whole, halves = drives(n=40), [drives(n=40).subset(slice(0, 20)), drives(n=40).subset(slice(20, 40))]

    def fit(demos) -> Any:
        reward = rv.LinearReward(rv.environments.rust_bus(bins=BINS).features)
        return rv.NFXP(reward).fit(rv.MDP(rv.estimate_transitions(demos, bus_landing()), 0.9), demos)

    pooled, parts = fit(whole), [fit(half) for half in halves]
    found = rv.likelihood_ratio_test(pooled, parts, joint=True)
    full = sum(part.llf + part.mdp.estimated.llf for part in parts)
    assert found.statistic == pytest.approx(2 * (full - pooled.llf - pooled.mdp.estimated.llf))
    assert found.df == 4
    assert rv.likelihood_ratio_test(pooled, parts).df == 2


def test_joint_counts_the_transitions_of_a_horizon_too():
    """Two halves of a fleet, or all alike, over four months: one parameter and two probabilities each."""
    whole = drives(n=120, length=4)
    reward = rv.LinearReward(rv.environments.rust_bus(bins=BINS).features[:, :, :1])

    def fit(demos) -> Any:
        return rv.NFXP(reward).fit(rv.MDP(rv.estimate_transitions(demos, bus_landing()), 0.9).unroll(4), demos)

    found = rv.likelihood_ratio_test(
        fit(whole), [fit(whole.subset(slice(0, 60))), fit(whole.subset(slice(60, 120)))], joint=True
    )
    assert found.df == 3
    assert found.statistic > 0.0


def test_a_constant_that_choices_cannot_see_is_no_parameter():
    """Adding it changes neither likelihood nor degrees of freedom; adding a real feature to both counts one."""
    mdp = rv.environments.garnet(n_states=12, seed=0).mdp
    X = np.random.default_rng(0).normal(size=(12, 2))
    demos = rv.simulate(mdp, rv.solve(mdp, X @ [[1.0], [0.5]]).policy, 100, 20, seed=0)
    one = rv.NFXP(rv.LinearReward(X[:, :1])).fit(mdp, demos)
    more = rv.NFXP(rv.LinearReward(np.column_stack([X, np.ones(12)]))).fit(mdp, demos)
    assert more.status.code == "unidentified"
    assert rv.likelihood_ratio_test(one, more).df == 1


def test_likelihood_ratios_need_likelihoods_on_the_same_data():
    fit = bus_fit()
    with pytest.raises(InvalidInput, match="pseudo-likelihood"):
        rv.likelihood_ratio_test(bus_fit(rv.CCP, first_step="smoothed"), fit, df=1)
    with pytest.raises(InvalidInput, match="penalty"):
        rv.likelihood_ratio_test(bus_fit(l2=0.1), fit, df=1)
    other = rv.NFXP(fit.reward_model).fit(fit.mdp, drives(seed=9))
    with pytest.raises(InvalidInput, match="same decisions"):
        rv.likelihood_ratio_test(other, fit, df=1)
    with pytest.raises(InvalidInput, match="converged"):
        rv.likelihood_ratio_test(bus_fit(max_iter=1), fit, df=1)
    known = rv.NFXP(fit.reward_model).fit(rv.MDP(fit.mdp.transitions.matrix, 0.9), drives())
    with pytest.raises(InvalidOption, match="joint"):
        rv.likelihood_ratio_test(known, fit, df=1, joint=True)


def test_wald_is_the_squared_z_and_its_matrix_form():
    fit = bus_fit()
    one = fit.wald_test({"RC": 3.0})
    assert one.statistic == pytest.approx(((fit.params["RC"] - 3.0) / fit.bse["RC"]) ** 2)
    assert one.pvalue == pytest.approx(chi2.sf(one.statistic, 1), rel=1e-9)
    gap = fit.theta - [3.0, 2.0]
    both = fit.wald_test({"RC": 3.0, "theta11": 2.0})
    assert both.statistic == pytest.approx(gap @ np.linalg.solve(fit.cov_params().to_numpy(), gap))
    assert fit.wald_test((np.eye(2), [3.0, 2.0])).statistic == pytest.approx(both.statistic)
    equal = fit.wald_test({"RC": "theta11"})
    assert equal.statistic == pytest.approx(fit.wald_test(([[1.0, -1.0]], [0.0])).statistic)
    assert "chi2(2)" in str(both)


def test_wald_uses_the_errors_that_were_chosen():
    fit = bus_fit().with_errors("cluster")
    assert fit.wald_test({"RC": 0.0}).statistic == pytest.approx(fit.tvalues["RC"] ** 2)


@pytest.mark.parametrize(
    "hypothesis", [{"rc": 1.0}, {"RC": "x"}, {"RC": None}, {}, ([[1.0]], [0.0]), "RC = 1", {"RC": "RC"}]
)
def test_wald_refuses_what_it_cannot_read(hypothesis):
    with pytest.raises(InvalidInput) as told:
        bus_fit().wald_test(hypothesis)
    assert told.value.argument == "hypothesis"


def test_wald_and_likelihood_ratio_agree_with_much_data():
    """Both are the same to first order: θ = its true value, 60 000 decisions."""
    table = [[41000.0, 19000.0]]
    fit = logit(table)
    truth = np.log(0.32 / 0.68)
    wald = fit.wald_test({"odds": truth}).statistic
    ratio = 2 * (fit.llf - float(np.array(table[0]) @ np.log([0.68, 0.32])))
    assert wald == pytest.approx(ratio, rel=0.02)


def test_the_difference_of_ccp_and_nfxp_comes_from_joint_resamples():
    nfxp, ccp = bus_fit(), bus_fit(rv.CCP, first_step="smoothed")
    found = rv.difference_test(ccp, nfxp, reps=30, seed=2)
    draws = ccp.bootstrap(reps=30, seed=2).theta - nfxp.bootstrap(reps=30, seed=2).theta
    gap, V = ccp.theta - nfxp.theta, np.cov(draws, rowvar=False)
    np.testing.assert_allclose(found.frame["difference"], gap)
    np.testing.assert_allclose(found.frame["std err"], np.sqrt(np.diag(V)))
    assert found.joint.statistic == pytest.approx(gap @ np.linalg.solve(V, gap), rel=1e-6)
    assert found.joint.df == 2
    independent = np.sqrt(np.diag(ccp.bootstrap(reps=30, seed=2).cov + nfxp.bootstrap(reps=30, seed=2).cov))
    assert (found.frame["std err"] < independent).all()  # what the two share cancels
    assert "CCP − NFXP, 30 joint replications" in str(found) == repr(found)
    assert "<table" in found._repr_html_()
    assert "toprule" in found.to_latex()


def test_a_hypothesis_may_be_a_series_and_estimators_may_differ_in_the_order_of_their_parameters():
    nfxp, ccp = bus_fit(), bus_fit(rv.CCP, first_step="smoothed")
    asked = {"theta11": 2.0, "RC": 3.0}
    assert nfxp.wald_test(pd.Series(asked)).statistic == nfxp.wald_test(asked).statistic
    features = rv.environments.rust_bus(bins=BINS).features[..., ::-1]
    turned = rv.NFXP(rv.LinearReward(features, names=["theta11", "RC"])).fit(nfxp.mdp, nfxp.demonstrations)
    found, same = (rv.difference_test(ccp, other, reps=20) for other in (turned, nfxp))
    assert found.names == same.names == ("RC", "theta11")
    np.testing.assert_allclose(found.frame["difference"], same.frame["difference"], atol=1e-6)
    np.testing.assert_allclose(found.cov, same.cov, rtol=1e-3)
    assert found.joint.statistic == pytest.approx(same.joint.statistic, rel=1e-3)


def test_units_of_features_do_not_matter():
    """Wald's and the difference's statistics, with features in units of 1e-6 and 1e6."""
    nfxp, ccp = bus_fit(), bus_fit(rv.CCP, first_step="smoothed")
    features = rv.environments.rust_bus(bins=BINS).features * [1e-6, 1e6]
    reward = rv.LinearReward(features, names=["RC", "theta11"])
    others = [
        method.fit(nfxp.mdp, nfxp.demonstrations) for method in (rv.NFXP(reward), rv.CCP(reward, first_step="smoothed"))
    ]
    plain, scaled = (rv.difference_test(a, b, reps=20).joint for a, b in ((ccp, nfxp), (others[1], others[0])))
    assert (scaled.df, scaled.statistic) == (2, pytest.approx(plain.statistic, rel=1e-4))
    wald = others[0].wald_test({"RC": 3e6, "theta11": 2e-6}).statistic
    assert wald == pytest.approx(nfxp.wald_test({"RC": 3.0, "theta11": 2.0}).statistic, rel=1e-4)


def test_swapped_models_are_told_so():
    mdp = rv.environments.garnet(n_states=12, seed=0).mdp
    X = np.random.default_rng(0).normal(size=(12, 2))
    demos = rv.simulate(mdp, rv.solve(mdp, X @ [[1.0], [0.5]]).policy, 100, 20, seed=0)
    small, large = (rv.NFXP(rv.LinearReward(X[:, :k])).fit(mdp, demos) for k in (1, 2))
    with pytest.raises(InvalidInput, match="swapped"):
        rv.likelihood_ratio_test(large, small)


def test_only_resamples_in_which_both_end_well_are_compared():
    nfxp, ccp = bus_fit(), bus_fit(rv.CCP, first_step="smoothed")
    full = nfxp.bootstrap(reps=20)
    from dataclasses import replace

    nfxp.kept[("bootstrap", 20, 0)] = replace(
        full, theta=full.theta[3:], psi=full.psi[3:], index=full.index[3:], failures={"separated": 3}
    )
    found = rv.difference_test(ccp, nfxp, reps=20)
    assert (found.replications, found.failures) == (17, 3)
    draws = ccp.bootstrap(reps=20).theta[3:] - full.theta[3:]
    np.testing.assert_allclose(found.cov, np.cov(draws, rowvar=False))


def test_a_settled_npl_is_nfxp_and_there_is_nothing_to_test():
    nfxp, npl = bus_fit(), bus_fit(rv.NPL, updates=40)
    with pytest.raises(InvalidInput, match="settled"):
        rv.difference_test(npl, nfxp)
    with pytest.raises(InvalidInput, match="same"):
        rv.difference_test(bus_fit(rv.CCP), rv.NFXP(nfxp.reward_model).fit(nfxp.mdp, drives(seed=4)))
