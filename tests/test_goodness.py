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
        ({"max_iter": 1}, "did not come to an end"),
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
        "no more than what was fitted": [[1, 1]] * 6,
        "carry weights": [[20.5, 20.5]] * 6,
    }
    for words, table in tables.items():
        fit = rv.NFXP(rv.LinearReward(features)).fit(mdp, counts(table))
        said = chi_square(fit, ChoiceFit.of(fit))
        assert isinstance(said, str)
        assert words in said
    network = replace(
        fit, reward_model=rv.NeuralReward(features[:, 1], hidden=(2,)), demonstrations=counts([[9, 9]] * 6)
    )
    assert "so flexible a reward" in str(chi_square(network, ChoiceFit.of(network)))


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
