"""Likelihood ratios compare nested models and nothing else; Vuong's test compares the others (theory N7)."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, norm

import revealed as rv
from networks import random_trips
from revealed.errors import InvalidInput, InvalidOption
from revealed.nesting import find_nesting

S = 14


@cache
def world(terminal: bool = False) -> tuple[rv.MDP, Any, rv.Demonstrations]:
    mdp = rv.environments.garnet(n_states=S, seed=0).mdp
    if terminal:
        mdp = mdp.replace(terminal=np.arange(S) == S - 1)
    X = np.random.default_rng(0).normal(size=(S, mdp.n_actions, 4))
    demos = rv.simulate(mdp, rv.solve(mdp, X @ [1.0, 0.5, 0.0, 0.0]).policy, 80, 15, seed=0)
    return mdp, X, demos


def fit(features: Any, mdp: rv.MDP | None = None, method: Any = rv.NFXP, **options: Any) -> rv.Fit:
    own, _, demos = world()
    names = [f"x{k}" for k in range(np.shape(features)[-1])]
    return method(rv.LinearReward(features, names=names), **options).fit(own if mdp is None else mdp, demos)


def test_a_model_that_is_not_nested_is_refused_by_name():
    _, X, _ = world()
    one, two = fit(X[:, :, [2]]), fit(X[:, :, :2])
    assert two.llf > one.llf  # so that nothing but the features tells
    with pytest.raises(InvalidInput, match=r"do not span `x0`: not nested.*vuong_test"):
        rv.likelihood_ratio_test(one, two)
    with pytest.raises(InvalidInput, match="not nested"):
        rv.likelihood_ratio_test(one, two, df=1)


def test_combinations_and_other_units_are_nested():
    _, X, _ = world()
    full = fit(X[:, :, :3])
    sums = fit((X[:, :, [0]] + 2.0 * X[:, :, [1]]) * 1e6)
    found = rv.likelihood_ratio_test(sums, full)
    assert (found.df, found.detail) == (2, "")
    assert found.statistic == pytest.approx(2.0 * (full.llf - sums.llf))
    assert found.pvalue == pytest.approx(chi2.sf(found.statistic, 2), rel=1e-9)


def test_what_choices_cannot_see_is_spanned_by_anything():
    """A feature plus a potential γTΦ − Φ is the same model as the feature."""
    mdp, X, _ = world()
    potential = np.random.default_rng(1).normal(size=S)
    T = mdp.transitions.matrix.toarray().reshape(S, mdp.n_actions, S)
    shaped = X[:, :, [0]] + (mdp.discount * T @ potential - potential[:, None])[:, :, None]
    small, large = fit(shaped), fit(X[:, :, :2])
    assert find_nesting(small, large).holds
    assert rv.likelihood_ratio_test(small, large).df == 1
    shaped[3, 0, 0] += 0.1  # no potential any more
    assert find_nesting(fit(shaped), large).lacking == ("x0",)
    constant = fit(np.dstack([X[:, :, [0]], np.ones((S, mdp.n_actions, 1))]))
    assert find_nesting(constant, large).holds


def test_a_constant_matters_where_something_ends():
    mdp, X, _ = world(terminal=True)
    ones = np.ones((S, mdp.n_actions, 1))
    demos = rv.simulate(mdp, rv.solve(mdp, X @ [1.0, 0.5, 0.0, 0.0]).policy, 80, 15, seed=0)
    one = rv.NFXP(rv.LinearReward(np.dstack([X[:, :, [0]], ones]))).fit(mdp, demos)
    two = rv.NFXP(rv.LinearReward(X[:, :, :3])).fit(mdp, demos)
    assert find_nesting(one, two).lacking == (one.reward_model.names[1],)


def test_features_of_states_lie_in_a_weight_per_state_and_features_of_pairs_do_not():
    mdp, X, demos = world()
    table = rv.NFXP(rv.TabularReward(S)).fit(mdp, demos)
    own = fit(X[:, 0, :2])
    assert find_nesting(own, table).holds
    found = rv.likelihood_ratio_test(own, table)
    assert found.df == table.identification.rank - 2 < S - 2  # weights that no choice tells are no parameters
    assert find_nesting(fit(X[:, :, :1]), table).lacking == ("x0",)


def test_what_cannot_be_verified_is_named():
    mdp, X, demos = world()
    full = fit(X[:, :, :2])
    myopic = fit(X[:, :, :2], mdp.replace(discount=0.0))
    better, worse = (full, myopic) if full.llf > myopic.llf else (myopic, full)
    assert rv.likelihood_ratio_test(worse, better, df=1).detail == "nesting not verified: their discounts differ"
    assert "nesting not verified" in str(rv.likelihood_ratio_test(worse, better, df=1))
    neural = rv.NFXP(rv.NeuralReward(X, hidden=(3,), seed=0), max_iter=400).fit(mdp, demos)
    assert find_nesting(full, neural).unverified == "a reward is not linear in its parameters"
    T = mdp.transitions.matrix.toarray()
    T = np.where(T > 0.0, 1.0, 0.0)
    T /= np.maximum(T.sum(axis=1, keepdims=True), 1.0)
    other = fit(X[:, :, :3], mdp.replace(transitions=T.reshape(S, -1, S)))
    assert find_nesting(full, other).unverified == "their transitions differ"
    assert find_nesting(full, fit(X[:, :, :3])).holds


def test_trips_are_nested_by_the_same_rule():
    made = random_trips(2, S=12, n=80)
    X = made.features

    def fitted(features: Any, demos: Any = None) -> Any:
        return rv.NFXP(rv.LinearReward(features)).fit(made.mdp, made.demos if demos is None else demos)

    full, small = fitted(X), fitted(X[:, :, :2])
    assert rv.likelihood_ratio_test(small, full).df == X.shape[2] - 2
    potential = np.random.default_rng(0).normal(size=made.mdp.n_states)
    towards = potential[made.mdp.targets] - potential[:, None]
    moved = X[:, :, :2] + np.dstack([towards, 0.0 * towards])
    assert find_nesting(fitted(moved), full).holds  # every path to a goal gains the same
    noise = np.random.default_rng(0).uniform(0.5, 1.0, X[:, :, :1].shape)
    assert find_nesting(fitted(np.dstack([X[:, :, :1], noise])), full).lacking


def test_a_link_size_is_one_feature_more():
    """Features that depend on where a trip goes are compared case by case."""
    network = rv.environments.city(100, seed=2).network
    names = ["travel_time", "u_turn", "constant"]
    plain = network.reward(names)
    truth = [-2.0, -2.5, -1.0]
    model = rv.RouteChoice(network, plain, truth)
    demand = {(network.links[k], network.links[end]): 4.0 for k in range(20, 60) for end in (0, 7)}
    demos = model.simulate(demand, seed=0)
    sized = rv.LinkSizeReward(plain, rv.link_size(network, plain, truth, demos))
    small, large = (rv.NFXP(reward).fit(network.mdp, demos) for reward in (plain, sized))
    found = rv.likelihood_ratio_test(small, large)
    assert (found.df, found.detail) == (1, "")
    other = rv.NFXP(network.reward(["length", "constant"])).fit(network.mdp, demos)
    assert find_nesting(other, large).lacking == ("length",)
    assert find_nesting(large, small).lacking == ("link_size",)


def test_the_same_turns_to_other_goals_are_other_data():
    """Counts alone do not tell: the same decisions mean another thing on the way elsewhere."""
    T = np.zeros((5, 2, 5))
    for s, ends in {0: (2, 2), 1: (2, 2), 2: (3, 4), 3: (2, 2), 4: (2, 2)}.items():
        for a, end in enumerate(ends):
            T[s, a, end] = 1.0
    mdp = rv.MDP(T, discount=0.9)
    X = np.random.default_rng(0).normal(size=(5, 2, 2))

    def trips(with_goals: bool) -> rv.Demonstrations:
        """Every turn at the middle is taken on the way to one goal and on the way to the other."""
        direct = [([0, 2, 3], [0, 0]), ([1, 2, 4], [1, 1])]
        round_about = [([0, 2, 4, 2, 3], [1, 1, 0, 0]), ([1, 2, 3, 2, 4], [0, 0, 1, 1])]
        goals = [3, 4, 3, 4] * 10 if with_goals else None
        return rv.Demonstrations.from_trajectories((direct + round_about) * 10, 5, 2, goal=goals)

    one = rv.NFXP(rv.LinearReward(X[:, :, :1])).fit(mdp, trips(True))
    other = rv.NFXP(rv.LinearReward(X)).fit(mdp, trips(False))
    np.testing.assert_array_equal(one.demonstrations.counts, other.demonstrations.counts)
    with pytest.raises(InvalidInput, match="same decisions"):
        rv.likelihood_ratio_test(one, other)


# Vuong


def test_vuong_is_the_mean_of_agents_differences_in_standard_errors():
    _, X, demos = world()
    one, two = fit(X[:, :, [0]]), fit(X[:, :, [1]])
    found = rv.vuong_test(one, two)
    per_agent = [
        np.array(
            [
                demos.by_agent[[i]].toarray().reshape(-1)
                @ np.where(np.isfinite(f.log_policy), f.log_policy, 0.0).reshape(-1)
                for i in range(demos.n_agents)
            ]
        )
        for f in (one, two)
    ]
    m = per_agent[0] - per_agent[1]
    z = m.sum() / (np.sqrt(m.size) * m.std())
    assert found.statistic == pytest.approx(z, rel=1e-9)
    assert found.pvalue == pytest.approx(2 * norm.sf(abs(z)), rel=1e-9)
    assert (found.n_units, found.unit) == (80, "agent")
    assert found.difference == pytest.approx(one.llf - two.llf)
    assert found.preferred == "the first"
    assert "the first predicts better" in str(found)
    turned = rv.vuong_test(two, one)
    assert turned.statistic == pytest.approx(-found.statistic)
    assert turned.preferred == "the second"


def test_vuong_takes_off_what_parameters_earn():
    _, X, _ = world()
    one, two = fit(X[:, :, [0, 2]]), fit(X[:, :, [1]])
    plain, aic, bic = (rv.vuong_test(one, two, correction) for correction in (None, "aic", "bic"))
    assert aic.difference == pytest.approx(plain.difference - 1.0)
    assert bic.difference == pytest.approx(plain.difference - np.log(80) / 2.0)
    assert aic.statistic / plain.statistic == pytest.approx(aic.difference / plain.difference)
    assert "corrected by BIC" in str(bic)
    with pytest.raises(InvalidOption, match="correction"):
        rv.vuong_test(one, two, "hq")


def test_vuong_counts_clusters_as_one_and_decisions_where_nobody_is_known():
    mdp, X, demos = world()
    one, two = fit(X[:, :, [0]]), fit(X[:, :, [1]])
    half = rv.vuong_test(one.with_errors("cluster", by=[i // 4 for i in range(80)]), two)
    assert (half.n_units, half.unit) == (20, "cluster")
    counts = rv.Demonstrations.from_counts(demos.counts)
    flat = [rv.NFXP(f.reward_model).fit(mdp, counts) for f in (one, two)]
    found = rv.vuong_test(*flat)
    assert (found.n_units, found.unit) == (1200, "decision")
    gap = (flat[0].log_policy - flat[1].log_policy)[demos.counts > 0]
    m = np.repeat(gap, demos.counts[demos.counts > 0].astype(int))
    assert found.statistic == pytest.approx(m.sum() / (np.sqrt(m.size) * m.std()), rel=1e-9)


def test_vuong_refuses_nested_models_and_other_data():
    _, X, _ = world()
    one, two = fit(X[:, :, [0]]), fit(X[:, :, :2])
    with pytest.raises(InvalidInput, match=r"likelihood_ratio_test\(first, second\)"):
        rv.vuong_test(one, two)
    with pytest.raises(InvalidInput, match=r"likelihood_ratio_test\(second, first\)"):
        rv.vuong_test(two, one)
    mdp, _, demos = world()
    part = rv.NFXP(rv.LinearReward(X[:, :, [1]])).fit(mdp, demos.subset(range(40)))
    with pytest.raises(InvalidInput, match="other data"):
        rv.vuong_test(one, part)
    with pytest.raises(InvalidInput, match="pseudo-likelihood"):
        rv.vuong_test(one, fit(X[:, :, [1]], method=rv.CCP, first_step="smoothed"))


def test_vuong_has_its_size_where_both_models_are_equally_wrong():
    """Of three actions two are liked alike, and each model knows of one: by symmetry neither is nearer to the truth,
    and z is a standard normal deviate."""
    mdp = rv.MDP(np.ones((1, 3, 1)), discount=0.0)
    rewards = [rv.LinearReward(np.eye(3)[None, :, [k]]) for k in (0, 1)]
    policy = np.exp([[1.0, 1.0, 0.0]]) / np.exp([1.0, 1.0, 0.0]).sum()
    zs = []
    for seed in range(200):
        demos = rv.simulate(mdp, policy, 60, 5, seed=seed)
        zs.append(rv.vuong_test(*(rv.NFXP(reward).fit(mdp, demos) for reward in rewards)).statistic)
    # of 200 draws the mean is uncertain by 0.07, the standard deviation by 0.05, the share beyond 1.96 by 0.015
    assert abs(np.mean(zs)) < 0.25
    assert abs(np.std(zs) - 1.0) < 0.2
    assert np.mean(np.abs(zs) > 1.96) < 0.11
