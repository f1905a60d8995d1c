"""π̂_E: frequencies, smoothing, kernels, logit, given; closed forms where they exist."""

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from models import corridor, counts, draw, random_mdp
from revealed.first_step import Frequency, Kernel, Logit, Smoothed, estimate_policy

MDP = random_mdp(6, 3, seed=2)
MASKED = random_mdp(6, 3, seed=2, masked=True, terminal=1)
COUNTS = np.array([[3.0, 1, 0], [0, 0, 0], [2, 2, 4], [1, 0, 0], [0, 5, 5], [7, 2, 1]])
SEEN = COUNTS.sum(axis=1) > 0
SHARES = COUNTS[SEEN] / COUNTS[SEEN].sum(axis=1, keepdims=True)
X = np.random.default_rng(0).normal(size=(6, 2))

ALL = [
    "frequency",
    "smoothed",
    Smoothed(0.1),
    Kernel(features=X),
    Kernel(features=X, bandwidth=5.0),
    Kernel(distance=sp.csr_array(np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0))))),
    Logit(features=X),
    Logit(features=np.random.default_rng(1).normal(size=(6, 3, 2))),
]


def ids(step) -> str:
    return step if isinstance(step, str) else type(step).__name__.lower()


@pytest.mark.parametrize("step", ALL, ids=ids)
def test_every_first_step_is_a_policy_that_respects_the_masks(step):
    table = COUNTS * MASKED.feasible
    policy = estimate_policy(MASKED, table, step)
    np.testing.assert_array_equal(policy[~MASKED.feasible], 0.0)
    np.testing.assert_allclose(policy.sum(axis=1), ~MASKED.terminal, atol=1e-12)
    assert (policy >= 0).all()


def test_frequencies_are_shares_and_unseen_states_uniform():
    policy = estimate_policy(MDP, COUNTS)
    np.testing.assert_allclose(policy[SEEN], SHARES, rtol=1e-15)
    np.testing.assert_allclose(policy[1], 1 / 3, rtol=1e-15)
    np.testing.assert_array_equal(Frequency().estimate(MDP, COUNTS), policy)


def test_an_unseen_state_is_uniform_over_its_feasible_actions():
    policy = estimate_policy(MASKED, np.zeros((6, 3)))
    np.testing.assert_allclose(policy, MASKED.uniform_policy(), rtol=1e-15)


@pytest.mark.parametrize("alpha", [0.01, 1.0, 7.0])
def test_smoothing_adds_alpha_to_every_feasible_action(alpha):
    policy = estimate_policy(MDP, COUNTS, Smoothed(alpha))
    expected = (COUNTS + alpha) / (COUNTS.sum(axis=1, keepdims=True) + 3 * alpha)
    np.testing.assert_allclose(policy, expected, rtol=1e-14)
    masked = estimate_policy(MASKED, COUNTS * MASKED.feasible, Smoothed(alpha))
    assert (masked[MASKED.feasible] > 0).all()


def test_smoothed_by_name_adds_one():
    np.testing.assert_array_equal(estimate_policy(MDP, COUNTS, "smoothed"), estimate_policy(MDP, COUNTS, Smoothed(1.0)))


# kernels


def test_a_kernel_of_tiny_bandwidth_gives_frequencies_where_there_are_any():
    policy = estimate_policy(MDP, COUNTS, Kernel(features=X, bandwidth=1e-3))
    np.testing.assert_allclose(policy[SEEN], SHARES, atol=1e-14)


def test_a_kernel_of_tiny_bandwidth_gives_an_unseen_state_its_nearest_neighbours_frequencies():
    nearest = SEEN.nonzero()[0][np.argmin((((X - X[1]) / X.std(axis=0)) ** 2).sum(axis=1)[SEEN])]
    policy = estimate_policy(MDP, COUNTS, Kernel(features=X, bandwidth=1e-3))
    np.testing.assert_allclose(policy[1], COUNTS[nearest] / COUNTS[nearest].sum(), atol=1e-14)


def test_a_kernel_of_huge_bandwidth_gives_the_pooled_shares():
    policy = estimate_policy(MDP, COUNTS, Kernel(features=X, bandwidth=1e6))
    np.testing.assert_allclose(policy, np.tile(COUNTS.sum(axis=0) / COUNTS.sum(), (6, 1)), rtol=1e-10)


def test_a_kernel_is_the_weighted_average_it_says():
    gap = X / X.std(axis=0) / 0.8
    weight = np.exp(-0.5 * ((gap[:, None] - gap[None]) ** 2).sum(axis=2))
    expected = weight @ COUNTS
    policy = estimate_policy(MDP, COUNTS, Kernel(features=X, bandwidth=0.8))
    np.testing.assert_allclose(policy, expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)


def test_a_kernel_does_not_mind_units_and_constant_features():
    plain = estimate_policy(MDP, COUNTS, Kernel(features=X, bandwidth=0.8))
    changed = np.column_stack([X * [1e4, 1e-4] + 3.0, np.full(6, 2.0)])
    np.testing.assert_allclose(estimate_policy(MDP, COUNTS, Kernel(features=changed, bandwidth=0.8)), plain, rtol=1e-9)


def test_a_kernel_on_constant_features_gives_the_pooled_shares():
    policy = estimate_policy(MDP, COUNTS, Kernel(features=np.ones((6, 1))))
    np.testing.assert_allclose(policy, np.tile(COUNTS.sum(axis=0) / COUNTS.sum(), (6, 1)), rtol=1e-14)


def test_a_kernel_over_a_distance():
    d = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    near = sp.csr_array(np.where(d <= 1, d, 0.0))  # what is not stored is infinitely far
    weight = np.where(d == 0, 1.0, np.where(d == 1, np.exp(-0.5 / 4), 0.0)) @ COUNTS
    policy = estimate_policy(MDP, COUNTS, Kernel(distance=near, bandwidth=2.0))
    np.testing.assert_allclose(policy, weight / weight.sum(axis=1, keepdims=True), rtol=1e-14)


def test_the_default_bandwidth_shrinks_with_the_data():
    few, many = (estimate_policy(MDP, c, Kernel(features=X)) for c in (COUNTS, 1e9 * COUNTS))
    apart = np.abs(few[SEEN] - SHARES).max()
    assert np.abs(many[SEEN] - SHARES).max() < 0.5 * apart


# logit


def test_a_logit_with_saturated_dummies_gives_the_frequencies_as_its_penalty_vanishes():
    table = COUNTS + 1.0  # no zeros: with them the logit has no maximum
    shares = table / table.sum(axis=1, keepdims=True)
    error = [
        np.abs(estimate_policy(MDP, table, Logit(features=np.eye(6), l2=l2)) - shares).max() for l2 in (1e-3, 1e-9)
    ]
    assert error[1] < 1e-5
    assert error[1] < error[0]


def test_a_logit_with_a_constant_alone_gives_the_pooled_shares():
    policy = estimate_policy(MDP, COUNTS, Logit(features=np.ones((6, 1)), l2=1e-10))
    np.testing.assert_allclose(policy, np.tile(COUNTS.sum(axis=0) / COUNTS.sum(), (6, 1)), atol=1e-7)


def test_a_logit_on_features_of_pairs_satisfies_its_first_order_condition():
    F = np.random.default_rng(1).normal(size=(6, 3, 2))
    policy = estimate_policy(MDP, COUNTS, Logit(features=F, l2=1e-12))
    residual = COUNTS - COUNTS.sum(axis=1, keepdims=True) * policy
    np.testing.assert_allclose(np.einsum("sa,sak->k", residual, F) / COUNTS.sum(), 0.0, atol=1e-7)


def test_a_logit_where_there_is_nothing_to_choose():
    mdp = rv.MDP(np.full((2, 1, 2), 0.5))
    np.testing.assert_array_equal(estimate_policy(mdp, np.ones((2, 1)), Logit(features=np.eye(2))), 1.0)


def test_separated_data_do_not_break_a_logit():
    table = np.array([[9.0, 0, 0], [0, 9, 0], [0, 0, 9], [9, 0, 0], [0, 9, 0], [0, 0, 9]])
    policy = estimate_policy(MDP, table, Logit(features=np.eye(6)))
    assert (policy[table > 0] > 0.9).all()
    assert np.isfinite(policy).all()


# given


def test_a_given_policy_is_taken_as_it_is():
    given = MASKED.uniform_policy()
    np.testing.assert_array_equal(estimate_policy(MASKED, COUNTS, given), given)
    np.testing.assert_array_equal(estimate_policy(MASKED, COUNTS, given.tolist()), given)


def test_a_given_policy_of_the_base_serves_at_every_time():
    unrolled = MASKED.unroll(2)
    policy = estimate_policy(unrolled, np.zeros((18, 3)), MASKED.uniform_policy())
    np.testing.assert_array_equal(policy, unrolled.uniform_policy())


@pytest.mark.parametrize("bad", [np.full((6, 3), 0.5), -np.ones((6, 3)), np.full((6, 3), np.nan), np.ones((3, 6))])
def test_a_given_policy_that_is_none_is_refused(bad):
    with pytest.raises(rv.errors.InvalidDistribution, match="first_step"):
        estimate_policy(MDP, COUNTS, bad)


def test_a_given_policy_must_respect_the_masks():
    with pytest.raises(rv.errors.InvalidDistribution, match="infeasible"):
        estimate_policy(MASKED, COUNTS, np.full((6, 3), 1 / 3))


def test_a_users_own_first_step():
    class Stubborn:
        def estimate(self, mdp, counts, reward):
            return np.tile([1.0, 0.0, 0.0], (6, 1))

    np.testing.assert_array_equal(estimate_policy(MDP, COUNTS, Stubborn())[:, 0], 1.0)


@pytest.mark.parametrize(
    "step",
    [
        "frequencies",
        Smoothed(0.0),
        Smoothed(-1.0),
        Smoothed(np.nan),
        Smoothed("much"),  # pyright: ignore[reportArgumentType]
        Kernel(features=X, bandwidth=0.0),
        Kernel(features=X, bandwidth="wide"),  # pyright: ignore[reportArgumentType]
        Kernel(features=X[:3]),
        Kernel(features=X * np.nan),
        Kernel(distance=np.eye(3)),
        Kernel(distance="far"),
        Kernel(distance=-np.ones((6, 6))),
        Kernel(distance=np.full((6, 6), np.nan)),
        Kernel(),
        Logit(),
        Logit(features=X, l2=-1.0),
        Logit(features=X, l2="some"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_bad_options_of_a_first_step_are_refused(step):
    with pytest.raises(rv.errors.InvalidInput):
        estimate_policy(MDP, COUNTS, step)


# features are lent by the reward


@pytest.mark.parametrize("name", ["kernel", "logit"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_linear_reward_lends_its_features(name, sparse):
    reward = rv.LinearReward(sp.csr_array(X) if sparse else X)
    step = Kernel(features=X) if name == "kernel" else Logit(features=X)
    lent = estimate_policy(MDP, COUNTS, name, reward)
    np.testing.assert_array_equal(lent, estimate_policy(MDP, COUNTS, step))


@pytest.mark.parametrize("name", ["kernel", "logit"])
def test_a_network_lends_its_features(name):
    step = Kernel(features=X) if name == "kernel" else Logit(features=X)
    lent = estimate_policy(MDP, COUNTS, name, rv.NeuralReward(X, hidden=(3,)))
    np.testing.assert_array_equal(lent, estimate_policy(MDP, COUNTS, step))


def test_a_lifted_reward_lends_its_features_at_every_time():
    mdp = corridor(6)
    demos = draw(mdp, np.arange(6.0)[:, None] * 0.3, 50, length=3)
    reward = rv.LinearReward(np.arange(6.0)[:, None])
    fit = rv.CCP(reward, first_step="kernel").fit(mdp.unroll(3), demos)
    assert fit.pi_tilde.shape == (24, 2)


def test_a_reward_without_features_says_what_to_pass():
    with pytest.raises(rv.errors.InvalidOption, match=r"rv\.first_step\.Kernel\(features=\.\.\.\)"):
        estimate_policy(MDP, COUNTS, "kernel", rv.TabularReward(6))


def test_discounting_visits_does_not_change_the_estimate_of_the_policy():
    mdp = corridor(5)
    demos = draw(mdp, np.arange(5.0)[:, None] * 0.3, 50, length=6)
    reward = rv.LinearReward(np.arange(5.0)[:, None])
    one, two = (rv.CCP(reward).fit(mdp, d) for d in (demos, demos.discount_visits(0.5)))
    np.testing.assert_array_equal(one.pi_tilde, two.pi_tilde)


def test_at_discount_one_an_estimated_policy_that_never_ends_names_the_remedy():
    mdp = corridor(4, discount=1.0, end=True)
    stuck = counts([[1, 0], [1, 0], [1, 0], [0, 0]])  # nobody was seen to leave
    with pytest.raises(rv.errors.ValueDoesNotExist, match="smoothed"):
        rv.CCP(rv.LinearReward(-np.ones((4, 1)))).fit(mdp, stuck)
    assert np.isfinite(rv.CCP(rv.LinearReward(-np.ones((4, 1))), first_step="smoothed").fit(mdp, stuck).theta).all()
