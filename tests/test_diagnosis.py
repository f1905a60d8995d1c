"""What a data set cannot tell: separated data and unidentified features, and near misses that are neither."""

import numpy as np
import pytest
from scipy.optimize import linprog

import revealed as rv
from models import corridor, counts, dense, dense_matrix, draw, random_mdp, shuffled

METHODS = [rv.CCP, rv.NFXP, rv.NPL]
SAFE = {"first_step": "smoothed"}


def by_action(*columns) -> np.ndarray:
    """Features (S, 2, K) that speak for action 1: in `shuffled` models θ is then that of a plain logit."""
    x = np.column_stack(columns)
    return np.stack([np.zeros_like(x), x], axis=1)


def log_odds(zero: float, one: float) -> float:
    return float(np.log(one / zero))


# separated: the likelihood has no maximum


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighting", ["sample", "occupancy"])
def test_complete_separation(method, weighting):
    mdp = shuffled(4).replace(initial=np.full(4, 0.25))
    reward = rv.LinearReward(by_action([1.0, 2.0, -1.0, -0.5]))
    fit = method(reward, weighting=weighting).fit(mdp, counts([[0, 5], [0, 9], [7, 0], [3, 0]]))
    assert fit.status.code == "separated"
    assert not fit.converged
    assert "l2" in fit.status.message


@pytest.mark.parametrize("method", METHODS)
def test_quasi_separation_beside_a_weight_that_has_a_maximum(method):
    reward = rv.LinearReward(by_action([1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]))
    fit = method(reward).fit(shuffled(4), counts([[40, 60], [55, 45], [30, 70], [0, 20]]))
    assert fit.status.code == "separated"


@pytest.mark.parametrize("optimizer", ["newton", "lbfgs"])
@pytest.mark.parametrize("method", METHODS)
def test_weights_that_run_away_are_named(method, optimizer):
    """Of three one has a maximum; of many that run away none is named."""
    rows = [[40, 60], [55, 45], [0, 20], [9, 0]]
    columns = [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]
    fit = method(rv.LinearReward(by_action(*columns), ["fine", "up", "down"]), optimizer=optimizer).fit(
        shuffled(4), counts(rows)
    )
    assert "it keeps rising as some weights grow (up, down), because every observed choice" in fit.status.message
    many = rv.LinearReward(by_action(*np.eye(4)))
    fit = method(many, optimizer=optimizer).fit(shuffled(4), counts([[0, 9]] * 4))
    assert "it keeps rising as some weights grow, because every observed choice" in fit.status.message


def test_quasi_separation_with_ties():
    reward = rv.LinearReward(by_action([1.0, -1.0, 0.0]))  # in the last state the feature says nothing
    assert rv.CCP(reward).fit(shuffled(3), counts([[0, 9], [9, 0], [5, 5]])).status.code == "separated"


@pytest.mark.parametrize("scale", [1e-4, 1e4])
@pytest.mark.parametrize("method", METHODS)
def test_separation_does_not_depend_on_units(method, scale):
    reward = rv.LinearReward(scale * by_action([1.0, 2.0, -1.0, -0.5]))
    fit = method(reward).fit(shuffled(4), counts([[0, 5], [0, 9], [7, 0], [3, 0]]))
    assert fit.status.code == "separated"


@pytest.mark.parametrize("optimizer", ["newton", "lbfgs"])
@pytest.mark.parametrize("method", METHODS)
def test_separation_is_found_whichever_way_one_searches(method, optimizer):
    reward = rv.LinearReward(by_action([1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]))
    fit = method(reward, optimizer=optimizer).fit(shuffled(4), counts([[40, 60], [55, 45], [30, 70], [0, 20]]))
    assert fit.status.code == "separated"


@pytest.mark.parametrize("method", METHODS)
def test_an_expert_without_a_slip_on_a_corridor(method):
    mdp = corridor(6)
    always_right = counts([[0, 9]] * 6)
    goal = rv.LinearReward((np.arange(6) == 5).astype(float)[:, None])
    assert method(goal, **SAFE).fit(mdp, always_right).status.code == "separated"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("first", [[0, 9], [4, 5]], ids=["complete", "quasi"])
def test_separation_of_a_tabular_reward(method, first):
    data = counts([first] + [[0, 9]] * 5)
    assert method(rv.TabularReward(6), **SAFE).fit(corridor(6), data).status.code == "separated"


@pytest.mark.parametrize("method", METHODS)
def test_a_penalty_gives_separated_data_a_maximum(method):
    reward = rv.LinearReward(by_action([1.0, 2.0, -1.0, -0.5]))
    fit = method(reward, l2=1e-3, **({"updates": 50} if method is rv.NPL else {})).fit(
        shuffled(4), counts([[0, 5], [0, 9], [7, 0], [3, 0]])
    )
    assert fit.converged
    assert np.isfinite(fit.theta).all()


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_a_network_that_explains_every_choice_has_not_converged(optimizer):
    reward = rv.NeuralReward(by_action([1.0, 2.0, -1.0, -0.5]), hidden=(4,), activation="tanh")
    options = {"optimizer": optimizer, "l2": 0.0} | ({"learning_rate": 0.1} if optimizer == "adam" else {})
    data = counts([[0, 5], [0, 9], [7, 0], [3, 0]])
    fit = rv.CCP(reward, **options).fit(shuffled(4), data)
    assert not fit.converged
    assert rv.CCP(reward).fit(shuffled(4), data).converged  # with its own penalty there is a maximum


def test_separated_data_are_never_reported_as_converged_by_adam_either():
    reward = rv.LinearReward(by_action([1.0, 2.0, -1.0, -0.5]))
    options = {"optimizer": "adam", "learning_rate": 0.1}
    fit = rv.CCP(reward, **options).fit(shuffled(4), counts([[0, 5], [0, 9], [7, 0], [3, 0]]))
    assert fit.status.code == "separated"


def separates(differences: np.ndarray) -> bool:
    """Whether some v has d·v >= 0 for all rows d and > 0 for one: a linear programme, exact for concave problems."""
    K = differences.shape[1]
    found = linprog(-differences.sum(axis=0), A_ub=-differences, b_ub=np.zeros(len(differences)), bounds=[(-1, 1)] * K)
    return found.fun is not None and found.fun < -1e-7


def value_features(mdp: rv.MDP, policy: np.ndarray, features: np.ndarray) -> np.ndarray:
    """F = φ + γT(I − γT^π̃)⁻¹ Π̃φ (theory V5), densely."""
    T = dense(mdp)
    W = np.linalg.solve(dense_matrix(mdp, policy), np.einsum("sa,sak->sk", policy, features))
    return features + mdp.discount * np.einsum("sat,tk->sak", T, W)


@pytest.mark.parametrize("optimizer", ["newton", "lbfgs"])
def test_small_samples_are_judged_as_a_linear_programme_judges_them(optimizer):
    rng = np.random.default_rng(0)
    verdicts = []
    for k in range(60):
        mdp = random_mdp(5, 3, seed=k)
        features = rng.normal(size=(5, 3, 2))
        data = rng.multinomial(rng.integers(4, 12), rng.dirichlet(np.full(15, 0.4))).reshape(5, 3).astype(float)
        fit = rv.CCP(rv.LinearReward(features), optimizer=optimizer, **SAFE).fit(mdp, counts(data))
        F = value_features(mdp, fit.pi_tilde, features)
        rows = np.array([F[s, a] - F[s, b] for s, a in np.argwhere(data > 0) for b in range(3) if b != a])
        truth = separates(rows)
        assert (fit.status.code == "separated") == truth, f"sample {k}: {fit.status.code}, separated in truth: {truth}"
        verdicts.append(truth)
    assert 10 <= sum(verdicts) <= 50  # both kinds were met


# near misses: a maximum exists, however far or flat


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("optimizer", ["newton", "lbfgs"])
def test_one_contrary_observation_among_ten_thousand(method, optimizer):
    reward = rv.LinearReward(by_action([1.0, 1.0]))
    options = {"optimizer": optimizer, "tol": 1e-8}
    fit = method(reward, **options).fit(shuffled(2), counts([[0, 5_000], [1, 4_999]]))
    assert fit.converged
    assert fit.theta[0] == pytest.approx(log_odds(1, 9_999), abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_strong_but_finite_weights(method):
    reward = rv.LinearReward(by_action([1.0, 0.0, 1.0], [0.0, 1.0, -0.5]))
    truth = np.array([7.0, -6.0])
    p = 1 / (1 + np.exp(-np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -0.5]]) @ truth))
    fit = method(reward).fit(shuffled(3), counts(1e6 * np.column_stack([1 - p, p])))
    assert fit.converged
    np.testing.assert_allclose(fit.theta, truth, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("optimizer", ["newton", "lbfgs"])
@pytest.mark.parametrize("size", [100.0, 1_000.0])
def test_one_state_with_a_huge_feature_and_one_sided_choices(method, optimizer, size):
    reward = rv.LinearReward(by_action([1.0, 1.0, size]))
    fit = method(reward, optimizer=optimizer).fit(shuffled(3), counts([[40, 60], [40, 60], [0, 20]]))
    assert fit.converged
    assert fit.theta[0] == pytest.approx(log_odds(40, 60), rel=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_a_choice_seen_once_in_a_rich_model_is_not_separation(method):
    mdp = random_mdp(12, 3, seed=1)
    F = np.random.default_rng(0).normal(size=(12, 3, 2))
    demos = draw(mdp, F @ np.array([2.0, -1.0]), 4, 30, seed=3)  # many states see one action only
    options = {"updates": 40} if method is rv.NPL else {}
    assert method(rv.LinearReward(F), **options).fit(mdp, demos).converged


@pytest.mark.parametrize("method", METHODS)
def test_discounted_visits_of_little_weight_do_not_make_separation(method):
    mdp = corridor(5)
    demos = draw(mdp, 0.5 * np.arange(5.0)[:, None], 50, 60).discount_visits(0.5)
    fit = method(rv.LinearReward(np.arange(5.0)[:, None]), **({"updates": 40} if method is rv.NPL else {})).fit(
        mdp, demos
    )
    assert fit.converged


@pytest.mark.parametrize("method", METHODS)
def test_ill_conditioned_but_identified(method):
    rng = np.random.default_rng(3)
    one = rng.normal(size=50)
    two = one + np.sqrt(2e-5) * rng.normal(size=50)
    assert 1 - 1e-4 < np.corrcoef(one, two)[0, 1] < 1
    p = 1 / (1 + np.exp(-(0.8 * one - 0.3 * two)))
    data = counts(1e5 * np.column_stack([1 - p, p]))
    fit = method(rv.LinearReward(by_action(one, two), names=["one", "two"])).fit(shuffled(50), data)
    assert fit.converged
    np.testing.assert_allclose(fit.theta, [0.8, -0.3], atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_badly_scaled_but_identified(method):
    mdp = random_mdp(12, 3, seed=1)
    F = np.random.default_rng(0).normal(size=(12, 3, 2))
    demos = draw(mdp, F @ np.array([0.8, -0.5]), 200, 20)
    options = {"updates": 40} if method is rv.NPL else {}
    plain = method(rv.LinearReward(F), **options).fit(mdp, demos)
    scaled = method(rv.LinearReward(F * [1e4, 1e-4]), **options).fit(mdp, demos)
    assert plain.converged
    assert scaled.converged
    np.testing.assert_allclose(scaled.theta * [1e4, 1e-4], plain.theta, rtol=1e-4)


# unidentified: choices do not change along a direction


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.9999])
@pytest.mark.parametrize("method", METHODS)
def test_a_constant_feature_where_nothing_ends(method, discount):
    mdp = random_mdp(12, 3, discount=discount, seed=1)
    x = np.random.default_rng(0).normal(size=12)
    demos = draw(mdp, 0.5 * x[:, None], 200, 20)
    options = {"updates": 60} if method is rv.NPL else {}
    fit = method(rv.LinearReward(np.column_stack([x, np.ones(12)]), names=["x", "constant"]), **options).fit(mdp, demos)
    assert fit.status.code == "unidentified"
    assert "`constant`" in fit.status.message
    assert "`x`" not in fit.status.message
    assert fit.theta[1] == pytest.approx(0.0, abs=1e-9)  # the smallest norm
    alone = method(rv.LinearReward(x[:, None]), **options).fit(mdp, demos)
    assert alone.converged
    assert fit.theta[0] == pytest.approx(alone.theta[0], abs=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e-4])
@pytest.mark.parametrize("method", METHODS)
def test_a_feature_twice(method, scale):
    mdp = random_mdp(12, 3, seed=1)
    F = np.random.default_rng(0).normal(size=(12, 3, 2))
    demos = draw(mdp, F @ np.array([0.8, -0.5]), 200, 20)
    twice = np.concatenate([F, scale * F[:, :, :1]], axis=2)
    options = {"updates": 60} if method is rv.NPL else {}
    fit = method(rv.LinearReward(twice, names=["speed", "fuel", "again"]), **options).fit(mdp, demos)
    assert fit.status.code == "unidentified"
    assert "`speed`" in fit.status.message
    assert "`again`" in fit.status.message
    assert "`fuel`" not in fit.status.message
    once = method(rv.LinearReward(F), **options).fit(mdp, demos)
    assert fit.theta[0] + scale * fit.theta[2] == pytest.approx(once.theta[0], rel=1e-6)
    assert fit.theta[2] == pytest.approx(scale * fit.theta[0], rel=1e-4)  # the smallest norm shares the weight


@pytest.mark.parametrize("method", METHODS)
def test_a_linear_combination(method):
    mdp = random_mdp(12, 3, seed=1)
    F = np.random.default_rng(0).normal(size=(12, 3, 3))
    F[:, :, 2] = F[:, :, 0] - 2 * F[:, :, 1]
    demos = draw(mdp, F @ np.array([0.8, -0.5, 0.0]), 200, 20)
    options = {"updates": 60} if method is rv.NPL else {}
    fit = method(rv.LinearReward(F, names=["a", "b", "c"]), **options).fit(mdp, demos)
    assert fit.status.code == "unidentified"
    assert all(f"`{name}`" in fit.status.message for name in "abc")
    assert fit.theta @ [1, -2, -1] == pytest.approx(0.0, abs=1e-8)


def test_two_directions_are_both_named():
    mdp = random_mdp(12, 3, seed=1)
    x = np.random.default_rng(0).normal(size=(12, 2))
    demos = draw(mdp, 0.5 * x[:, :1], 200, 20)
    F = np.column_stack([x, x[:, 0], np.ones(12)])
    fit = rv.NFXP(rv.LinearReward(F, names=["x", "y", "copy", "constant"])).fit(mdp, demos)
    assert fit.status.code == "unidentified"
    assert all(f"`{name}`" in fit.status.message for name in ("x", "copy", "constant"))
    assert "`y`" not in fit.status.message


@pytest.mark.parametrize("method", METHODS)
def test_a_feature_that_no_choice_can_reach(method):
    T = np.zeros((8, 2, 8))  # two corridors side by side; the agents live in the first
    T[:4, :, :4] = T[4:, :, 4:] = corridor(4).transitions.matrix.toarray().reshape(4, 2, 4)
    x = np.array([0.0, 1, 2, 3, 0, 1, 2, 3])
    data = np.zeros((8, 2))
    data[:4] = [[30, 70], [25, 75], [35, 65], [50, 50]]
    F = np.column_stack([np.where(np.arange(8) < 4, x, 0), np.where(np.arange(8) >= 4, x, 0)])
    options = {"updates": 60} if method is rv.NPL else {}
    fit = method(rv.LinearReward(F, names=["here", "there"]), **options).fit(rv.MDP(T, discount=0.9), counts(data))
    assert fit.status.code == "unidentified"
    assert "`there`" in fit.status.message
    assert "`here`" not in fit.status.message


@pytest.mark.parametrize("method", METHODS)
def test_a_penalty_identifies_and_says_where_it_alone_decides(method):
    mdp = random_mdp(12, 3, seed=1)
    x = np.random.default_rng(0).normal(size=12)
    demos = draw(mdp, 0.5 * x[:, None], 200, 20)
    options = {"updates": 60} if method is rv.NPL else {}
    reward = rv.LinearReward(np.column_stack([x, np.ones(12)]), names=["x", "constant"])
    fit = method(reward, l2=1e-3, **options).fit(mdp, demos)
    assert fit.converged
    assert any("`constant`" in note for note in fit.status.notes)


# near misses: identified after all


@pytest.mark.parametrize("method", [rv.CCP, rv.NPL])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_a_constant_feature_where_decisions_end_is_identified(method, discount):
    mdp = corridor(6, discount=discount, end=True)
    reward = rv.LinearReward(np.column_stack([-np.ones(6), -np.arange(6.0)]), names=["step", "x"])
    demos = draw(mdp, reward.value(np.array([0.9, 0.1])), 2_000, 10_000)
    fit = method(reward, **({"updates": 60} if method is rv.NPL else {})).fit(mdp, demos)
    assert fit.converged
    np.testing.assert_allclose(fit.theta, [0.9, 0.1], atol=0.15)


def test_a_nearly_doubled_feature_is_identified():
    mdp = random_mdp(12, 3, seed=1)
    rng = np.random.default_rng(0)
    F = rng.normal(size=(12, 3, 2))
    F[:, :, 1] = F[:, :, 0] + 1e-3 * rng.normal(size=(12, 3))
    demos = draw(mdp, F @ np.array([0.8, -0.5]), 200, 20)
    for method in (rv.CCP, rv.NFXP):
        fit = method(rv.LinearReward(F)).fit(mdp, demos)
        assert fit.converged
        assert fit.gradient_norm <= 1e-9


@pytest.mark.parametrize("method", [rv.CCP, rv.NFXP])
def test_a_feature_with_a_large_offset_is_identified(method):
    mdp = random_mdp(12, 3, discount=0.99, seed=1)
    x = np.random.default_rng(0).normal(size=12)
    demos = draw(mdp, 0.5 * x[:, None], 200, 20)
    plain = method(rv.LinearReward(x[:, None])).fit(mdp, demos)
    offset = method(rv.LinearReward(x[:, None] + 2_000.0)).fit(mdp, demos)  # years, say
    assert offset.converged
    assert offset.theta[0] == pytest.approx(plain.theta[0], rel=1e-5)


def test_a_feature_that_few_choices_see_is_identified():
    data = counts([[4_000, 6_000]] * 9 + [[4, 6]])
    rare = (np.arange(10) == 9).astype(float)
    fit = rv.NFXP(rv.LinearReward(by_action(np.ones(10), rare))).fit(shuffled(10), data)
    assert fit.converged
    assert fit.theta.sum() == pytest.approx(log_odds(4, 6), abs=1e-6)


def test_directions_that_a_tabular_reward_cannot_see_are_a_note_beside_converged():
    mdp = random_mdp(8, 3, seed=1)
    demos = draw(mdp, np.random.default_rng(0).normal(size=(8, 1)) * np.ones((8, 3)), 300, 30)
    fit = rv.NFXP(rv.TabularReward(8)).fit(mdp, demos)
    assert fit.converged
    assert any("if every weight moves by the same amount" in note for note in fit.status.notes)
    assert fit.theta.mean() == pytest.approx(0.0, abs=1e-6)  # a constant is invisible: smallest norm
