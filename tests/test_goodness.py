"""Observed choices against predicted ones: residuals in closed form, and a χ² that is one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

import revealed as rv
from models import counts, draw, random_mdp, shuffled
from networks import random_trips
from revealed.goodness import ENOUGH, ChiSquare, ChoiceFit, chi_square, standardise


def compared(table, policy, feasible=None) -> ChoiceFit:
    table, policy = np.array(table, dtype=float), np.array(policy, dtype=float)
    with np.errstate(divide="ignore"):
        return ChoiceFit(table, np.log(policy), policy > 0.0 if feasible is None else np.array(feasible))


def test_a_residual_is_the_difference_over_the_binomial_deviation():
    seen = compared([[3, 7], [0, 0], [6, 2]], [[0.5, 0.5], [0.5, 0.5], [0.75, 0.25]])
    z = (3 - 5) / np.sqrt(10 * 0.5 * 0.5)
    np.testing.assert_allclose(seen.residuals[0], [z, -z])
    assert np.isnan(seen.residuals[1]).all()  # nobody was there
    np.testing.assert_allclose(seen.residuals[2], 0.0, atol=1e-12)


def test_totals_are_sums_over_states_of_visits_times_probabilities():
    rng = np.random.default_rng(0)
    policy = rng.dirichlet(np.ones(3), size=5)
    table = rng.poisson(4.0, (5, 3))
    observed, expected, z = compared(table, policy).totals
    n = table.sum(axis=1)
    np.testing.assert_allclose(observed, table.sum(axis=0))
    np.testing.assert_allclose(expected, sum(n[s] * policy[s] for s in range(5)))
    variance = sum(n[s] * policy[s] * (1.0 - policy[s]) for s in range(5))
    np.testing.assert_allclose(z, (observed - expected) / np.sqrt(variance))


def test_what_is_all_but_impossible_is_infinitely_far_off_and_what_is_sure_is_not():
    seen = ChoiceFit(np.array([[1.0, 9.0], [0.0, 10.0]]), np.array([[-800.0, 0.0]] * 2), np.ones((2, 2), dtype=bool))
    assert seen.residuals[0, 0] == np.inf
    assert np.isnan(seen.residuals[1]).all()
    assert seen.worst(5).tolist() == [[0, 0]]  # of two actions the rarer one, which the other mirrors


def test_near_one_the_deviation_is_not_rounded_away():
    log_p = np.log1p(-1e-20)  # π = 1 in float64, 1 − π = 1e-20 in its logarithm
    seen = ChoiceFit(np.array([[99.0, 1.0]]), np.array([[log_p, np.log(1e-20)]]), np.ones((1, 2), dtype=bool))
    assert seen.residuals[0, 1] == pytest.approx(1.0 / np.sqrt(100 * 1e-20))


def test_the_worst_come_first_and_infeasible_pairs_never():
    seen = compared([[9, 1, 0], [5, 5, 0], [1, 9, 0]], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    order = seen.worst(4).tolist()
    assert sorted(order[:2]) == [[0, 0], [0, 1]]
    assert all(a < 2 for _, a in seen.worst(99))
    size = [abs(seen.residuals[s, a]) for s, a in seen.worst(99)]
    assert size == sorted(size, reverse=True)


def test_the_likelihood_lies_between_blind_choice_and_the_frequencies():
    mdp = random_mdp(masked=True, terminal=1, seed=3)
    features = np.random.default_rng(0).normal(size=(*mdp.feasible.shape, 2))
    demos = draw(mdp, features @ [1.0, -1.0], n=60, seed=1)
    fit = rv.NFXP(rv.LinearReward(features)).fit(mdp, demos)
    seen = ChoiceFit.of(fit)
    assert seen.llf_at_random < fit.llf < seen.llf_of_frequencies
    blind = sum(-demos.counts[s].sum() * np.log(mdp.feasible[s].sum()) for s in np.flatnonzero(~mdp.terminal))
    assert seen.llf_at_random == pytest.approx(blind)
    best = ChoiceFit(demos.counts, np.log(np.maximum(seen.frequencies, 1e-300)), mdp.feasible)
    assert best.llf_of_frequencies == pytest.approx(np.nansum(demos.counts * best.log_policy))


def test_groups_share_out_the_states_and_each_expects_enough():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.4, 60)
    n = rng.integers(1, 40, 60)
    feasible = np.ones((60, 3), dtype=bool)
    feasible[40:, 2] = False
    policy = np.column_stack([p, 1.0 - p - 0.1 * feasible[:, 2], 0.1 * feasible[:, 2]])
    seen = compared(rng.multinomial(n, policy), policy, feasible)
    groups = seen.groups()
    together = np.concatenate(groups)
    assert sorted(together.tolist()) == list(range(60))
    for group in groups:
        offered = feasible[group[0]]
        assert (feasible[group] == offered).all()
        assert (seen.expected[group].sum(axis=0)[offered] >= ENOUGH).all()
    assert len(groups) > 3


def test_one_by_one_it_is_pearsons_statistic():
    """Counts of a plain logit: X² by the textbook formula, with as many degrees as cells less those that are tied."""
    mdp = shuffled(6)
    x = np.linspace(-1.0, 1.0, 6)
    features = np.zeros((6, 2, 1))
    features[:, 1, 0] = x
    table = np.array([[80, 20], [70, 35], [50, 45], [60, 40], [30, 70], [15, 90]])
    fit = rv.NFXP(rv.LinearReward(features)).fit(mdp, counts(table))
    found = chi_square(fit, ChoiceFit.of(fit))
    assert isinstance(found, ChiSquare)
    expected = table.sum(axis=1, keepdims=True) * fit.policy
    X2 = ((table - expected) ** 2 / expected).sum()
    assert found.statistic == pytest.approx(X2)
    assert (found.least, found.groups, found.states) == (5, 6, 6)
    assert found.p[0] == pytest.approx(chi2.sf(X2, 5))
    assert str(found) == f"X² = {X2:.2f} on 5 degrees of freedom, p = {chi2.sf(X2, 5):.3f}"


def test_pooled_it_has_the_mean_of_a_chi_square_under_the_true_policy():
    """E d'C⁻¹d is the rank of C, however unlike the pooled states are."""
    from revealed.goodness import _distance

    rng = np.random.default_rng(1)
    policy = rng.dirichlet(np.ones(3), size=40)
    n = rng.integers(1, 6, 40)
    means, degrees = [], 0
    for _ in range(300):
        seen = compared(rng.multinomial(n, policy), policy)
        groups = seen.groups()
        degrees = 2 * len(groups)
        means.append(sum(_distance(seen, group) for group in groups))
    assert degrees >= 4
    assert abs(np.mean(means) - degrees) < 4.0 * np.sqrt(2.0 * degrees / 300)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"l2": 0.1}, "the penalty"),
        ({"weighting": "occupancy"}, "does not maximise the likelihood"),
        ({"max_iter": 1}, "did not finish"),
    ],
)
def test_where_there_is_no_test_the_reason_is_said(options, words):
    mdp = random_mdp(initial=True)
    features = np.random.default_rng(0).normal(size=(12, 3, 2))
    demos = draw(mdp, features @ [1.0, -1.0], n=20)
    fit = rv.NFXP(rv.LinearReward(features), **options).fit(mdp, demos)
    said = chi_square(fit, ChoiceFit.of(fit))
    assert isinstance(said, str)
    assert words in said


def test_few_decisions_weights_and_flexible_rewards_have_no_test():
    mdp, features = shuffled(6), np.zeros((6, 2, 1))
    features[:, 1, 0] = np.linspace(-1.0, 1.0, 6)
    tables = {
        "too few decisions": [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1]],
        "no degrees of freedom": [[1, 1]] * 6,
        "are weighted": [[20.5, 20.5]] * 6,
    }
    for words, table in tables.items():
        fit = rv.NFXP(rv.LinearReward(features)).fit(mdp, counts(table))
        said = chi_square(fit, ChoiceFit.of(fit))
        assert isinstance(said, str)
        assert words in said
    network = replace(
        fit, reward_model=rv.NeuralReward(features[:, 1], hidden=(2,)), demonstrations=counts([[9, 9]] * 6)
    )
    assert "such a flexible reward" in str(chi_square(network, ChoiceFit.of(network)))


def test_nothing_in_units_of_nothing_is_nothing():
    got = standardise(np.array([0.0, 1.0, -1.0, 2.0]), np.array([0.0, 0.0, 0.0, 4.0]))
    np.testing.assert_array_equal(got, [np.nan, np.inf, -np.inf, 1.0])


# trips with goals


def trips_fit(n: int = 400) -> rv.GoalFit:
    made = random_trips(3, S=10, n=n, goals=3)
    return rv.NFXP(made.reward).fit(made.mdp, made.demos)


def test_choices_of_trips_are_pooled_over_their_goals():
    fit = trips_fit()
    seen, S = ChoiceFit.of(fit), fit.mdp.n_states
    expected, variance = np.zeros(fit.mdp.feasible.shape), np.zeros(fit.mdp.feasible.shape)
    for goal in fit.goal_states:
        n = fit.demonstrations.toward(goal).counts.sum(axis=1, keepdims=True)
        policy = fit.policy_for(goal)
        expected += n * policy
        variance += n * policy * (1.0 - policy)
    np.testing.assert_allclose(seen.expected, expected, atol=1e-9)
    np.testing.assert_allclose(seen.variance, variance, atol=1e-9)
    np.testing.assert_array_equal(seen.counts, fit.demonstrations.counts)
    assert seen.visits.shape == (S,)
    assert seen.llf_at_random <= fit.llf <= seen.llf_of_frequencies
    used = seen.tested.counts > 0.0
    assert fit.llf == pytest.approx(seen.tested.counts[used] @ np.log(seen.tested.policy[used]))


def test_the_test_of_trips_has_the_size_that_it_states():
    """The probabilities of a larger X² that it tells lie on both sides of one that is uniform."""
    made, found = random_trips(3, S=14, goals=5), []
    for seed in range(20):
        fit = rv.NFXP(made.reward).fit(made.mdp, made.draw(400, seed))
        one = chi_square(fit, ChoiceFit.of(fit).tested)
        assert isinstance(one, ChiSquare)
        found.append(one.p)
    low, high = (np.array(found) < 0.5).mean(axis=0)
    assert low > 0.5 - 3.0 * np.sqrt(0.25 / 20)
    assert high < 0.5 + 3.0 * np.sqrt(0.25 / 20)


def a_fit(n: int = 200, **options) -> rv.Fit:
    mdp = random_mdp(6, 3)
    features = np.random.default_rng(1).normal(size=(6, 3, 2))
    return rv.NFXP(rv.LinearReward(features), **options).fit(mdp, draw(mdp, features @ [1.0, -0.5], n, seed=2))


def test_measures_of_fit_are_what_statsmodels_would_say():
    fit = a_fit()
    n = fit.demonstrations.counts
    offered = fit.mdp.feasible.sum(axis=1)
    null = -float(n.sum(axis=1)[offered > 0] @ np.log(offered[offered > 0]))
    share = n[n > 0] / np.broadcast_to(n.sum(axis=1, keepdims=True), n.shape)[n > 0]
    assert fit.llnull == pytest.approx(null, rel=1e-12)
    assert fit.llsat == pytest.approx(float(n[n > 0] @ np.log(share)), rel=1e-12)
    assert fit.llnull < fit.llf < fit.llsat
    assert fit.prsquared == pytest.approx(1.0 - fit.llf / null)
    assert fit.prsquared_adj == pytest.approx(1.0 - (fit.llf - 2) / null)
    best = fit.policy.argmax(axis=1)
    choice = offered > 1
    hits = n[np.arange(6), best][choice].sum() / n[choice].sum()
    assert fit.hit_rate == pytest.approx(hits)
    text = " ".join(str(fit.summary()).split())
    for told in (f"LL, null: {null:.3f}", f"LL, saturated: {fit.llsat:.3f}", f"Hit rate: {hits:.4f}"):
        assert told in text
    assert f"Pseudo R²: {fit.prsquared:.4f}" in text
    assert f"Pseudo R², adj.: {fit.prsquared_adj:.4f}" in text
    assert "Pseudo R" in fit.to_latex()
    assert f"{fit.hit_rate:.4f}" in fit.to_html()


def test_hits_are_shared_between_what_is_equally_likely_and_forced_moves_are_none():
    """Three of four for one of two equal actions, five where there was no choice, and two of three for the likelier."""
    third = [1 / 3, 2 / 3]
    seen = compared([[3, 1], [5, 0], [1, 2]], [[0.5, 0.5], [1.0, 0.0], third], [[1, 1], [1, 0], [1, 1]])
    seen = replace(seen, feasible=seen.feasible.astype(bool))
    assert seen.hit_rate == pytest.approx((0.5 * 4 + 2) / 7)
    assert np.isnan(compared([[5, 0]], [[1.0, 0.0]], np.array([[True, False]])).hit_rate)


def test_where_nobody_chose_there_is_no_share_of_it_explained():
    mdp = rv.MDP(np.eye(2)[:, None, :], discount=0.5)
    fit = rv.NFXP(rv.TabularReward(2)).fit(mdp, rv.Demonstrations.from_counts([[3], [4]]))
    assert fit.llnull == 0.0
    assert np.isnan(fit.prsquared)
    assert np.isnan(fit.hit_rate)
    assert "Pseudo R" not in str(fit.summary())
    assert "nan" not in str(rv.compare_fits([fit, fit]))


def test_measures_of_trips_are_those_toward_each_goal():
    made = random_trips(1, S=12, n=60)
    fit = rv.NFXP(made.reward).fit(made.mdp, made.demos)
    rows, log_policy = fit.seen_choices()
    offered = rows.feasible.sum(axis=1)
    assert fit.llnull == pytest.approx(-float(rows.rho.sum(axis=1) @ np.log(offered)))
    assert fit.llnull < fit.llf < fit.llsat <= 0.0
    best = np.where(rows.feasible, log_policy, -np.inf).argmax(axis=1)
    hits = rows.rho[np.arange(best.size), best]
    assert fit.hit_rate == pytest.approx(hits[offered > 1].sum() / rows.rho[offered > 1].sum())


def test_what_cannot_be_predicted_has_no_measures():
    """A search that failed has no choices to compare: the summary stays, without numbers that nobody has."""
    made = random_trips(1, S=12, n=60)
    fit = rv.NFXP(made.reward).fit(made.mdp, made.demos)
    assert "Hit rate" in str(fit.summary())
    lost = replace(fit, theta=np.full(fit.theta.size, 50.0), kept={})
    with pytest.raises(rv.errors.RevealedError):
        lost.seen_choices()
    assert np.isnan(lost.hit_rate)
    assert str(lost.goodness).startswith("No χ² test")
    text = str(lost.summary())
    assert "Hit rate" not in text
    assert "nan" not in text
    assert "nan" not in str(rv.compare_fits([fit, lost]))


def poor_fit() -> rv.Fit:
    """Choices that depend on something the reward does not know of."""
    mdp = random_mdp(6, 3)
    features = np.random.default_rng(1).normal(size=(6, 3, 2))
    demos = draw(mdp, features @ [1.0, -1.5], 800, seed=2)
    return rv.NFXP(rv.LinearReward(features[:, :, :1], names=["known"])).fit(mdp, demos)


def test_a_poor_fit_is_told_beside_a_good_end():
    fit, good = poor_fit(), a_fit(800)
    assert fit.status.code == good.status.code == "converged"
    assert isinstance(fit.goodness, ChiSquare)
    assert isinstance(good.goodness, ChiSquare)
    assert fit.goodness.poor
    assert not good.goodness.poor
    text = " ".join(str(fit.summary()).split())
    assert f"Goodness of fit: {fit.goodness.brief}" in text
    assert "Note: the model fits poorly: observed choices differ" in text
    assert "fits poorly" not in str(good.summary())
    both = " ".join(str(rv.compare_fits({"all": good, "half": fit})).split())
    assert "half: the model fits poorly" in both
    assert "all: the model fits poorly" not in both


def test_the_report_of_a_poor_fit_is_not_headed_by_a_plain_tick():
    page = rv.build_fit_report(poor_fit())
    badge = page[page.index('class="badge') :][:200]
    assert badge.startswith('class="badge mind"')
    assert "Converged · the model fits poorly" in badge
    assert "The model fits poorly: observed choices differ" in page
    good = rv.build_fit_report(a_fit(800))
    assert good[good.index('class="badge') :].startswith('class="badge holds"')
    assert "fits poorly" not in good


def test_units_of_features_do_not_matter():
    """Of two actions the ranges of predictions are equal: rounding must not decide by which states are ordered."""
    T = np.zeros((30, 2, 30))
    for s in range(30):
        for step, p in enumerate([0.3, 0.5, 0.2]):
            T[s, 0, min(s + step, 29)] += p
            T[s, 1, step] += p
    mdp, x = rv.MDP(T, discount=0.95), np.zeros((30, 2, 2))
    x[:, 0, 0], x[:, 1, 1] = -np.arange(30) / 10, -1.0
    demos = rv.simulate(mdp, rv.solve(mdp, x @ [2.0, 5.0]).policy, n=200, length=60, seed=0)
    found = [rv.NFXP(rv.LinearReward(x * [1.0, u])).fit(mdp, demos).goodness.statistic for u in (1.0, 1e-4, 1e5)]
    np.testing.assert_allclose(found, found[0], rtol=1e-8)


def test_separated_choices_are_no_search_that_did_not_end():
    mdp = shuffled(4)
    features = np.zeros((4, 2, 1))
    features[:, 1, 0] = 1.0
    fit = rv.NFXP(rv.LinearReward(features)).fit(mdp, rv.Demonstrations.from_counts(np.tile([0.0, 9.0], (4, 1))))
    assert fit.status.code == "separated"
    assert "the likelihood has no maximum" in str(fit.goodness)
