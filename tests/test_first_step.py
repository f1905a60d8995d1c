"""π̂_E: frequencies, smoothing, kernels, logit, given; closed forms where they exist."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import revealed as rv
from models import corridor, counts, draw, random_mdp
from revealed.first_step import Frequency, Kernel, Logit, Smoothed, estimate_policy, estimate_with_notes

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


PAIRS = np.random.default_rng(1).normal(size=(6, 3, 2))


def test_a_logit_has_no_penalty_unless_it_is_given_one():
    """With a dummy for every state, all that was chosen comes back: a penalty would move it."""
    table = COUNTS + 1.0
    shares = table / table.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(estimate_policy(MDP, table, Logit(features=np.eye(6))), shares, atol=1e-9)


def test_rusts_group_four_by_ccp_with_a_logit():
    """The logit by other means (BFGS on mileage in bins), then CCP given its policy: RC 9.93, not the 8.63 of a penalty
    on mileage in thousands of bins."""
    bus = rv.datasets.rust_bus([4])
    keep, replace = bus.demonstrations.counts.T
    x = np.arange(90.0) / 45.0 - 1.0

    def loss(b):
        odds = b[0] + b[1] * x
        return (replace @ np.logaddexp(0.0, -odds) + keep @ np.logaddexp(0.0, odds)) / (keep + replace).sum()

    b = minimize(loss, [-5.0, 1.0], method="BFGS", options={"gtol": 1e-9}).x
    p = 1.0 / (1.0 + np.exp(-b[0] - b[1] * x))
    by_hand = rv.CCP(bus.reward, first_step=np.column_stack([1 - p, p])).fit(bus.mdp, bus.demonstrations)
    ours = rv.CCP(bus.reward, first_step="logit").fit(bus.mdp, bus.demonstrations)
    np.testing.assert_allclose(ours.theta, by_hand.theta, rtol=1e-5)
    np.testing.assert_allclose(ours.theta, [9.927, 2.173], atol=1e-3)


@pytest.mark.parametrize("l2", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("features", [X, PAIRS], ids=["states", "pairs"])
def test_a_logit_does_not_mind_units(features, l2):
    """Nor where zero is, nor what all actions of a state have in common, nor features that do not vary."""
    plain = estimate_policy(MDP, COUNTS, Logit(features=features, l2=l2))
    common = np.random.default_rng(3).normal(size=(6, 1, 1)) if features.ndim == 3 else 5.0
    changed = (features + common) * [1e6, 1e-6]
    still = np.full((*features.shape[:-1], 1), 7.0)
    changed = np.concatenate([changed, still], axis=-1)
    np.testing.assert_allclose(estimate_policy(MDP, COUNTS, Logit(features=changed, l2=l2)), plain, atol=1e-9)


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_a_logit_does_not_mind_the_order_of_actions(l2):
    order = [2, 0, 1]
    turned = rv.MDP(MDP.transitions.matrix.toarray().reshape(6, 3, 6)[:, order], MDP.discount)
    plain, other = (estimate_policy(m, c, Logit(X, l2)) for m, c in ((MDP, COUNTS), (turned, COUNTS[:, order])))
    np.testing.assert_allclose(other, plain[:, order], atol=1e-9)


def penalised(Z, mdp, table, l2):
    """Largest by BFGS: the mean log likelihood of a logit on Z (S, A, K), less (l2/2)Σ(σβ)² with σ² the variance of a
    feature across the actions offered, over the decisions."""
    n, seen = table.sum(axis=1), table[table.sum(axis=1) > 0]
    variance = [Z[s][mdp.feasible[s]].var(axis=0) for s in np.flatnonzero(n)]
    sigma2 = np.average(variance, axis=0, weights=n[n > 0])

    def log_policy(beta):
        Q = np.where(mdp.feasible, Z @ beta, -np.inf)[table.sum(axis=1) > 0]
        return Q - np.logaddexp.reduce(Q, axis=1, keepdims=True)

    def loss(beta):
        return -(seen[seen > 0] @ log_policy(beta)[seen > 0]) / n.sum() + 0.5 * l2 * sigma2 @ beta**2

    found = minimize(loss, np.zeros(Z.shape[2]), method="BFGS", options={"gtol": 1e-8})
    return np.exp(log_policy(found.x))


@pytest.mark.parametrize("mdp", [MDP, MASKED], ids=["all", "masked"])
@pytest.mark.parametrize("kind", ["states", "pairs"])
def test_a_penalty_is_in_units_of_what_choices_see(kind, mdp):
    table = COUNTS * mdp.feasible * ~mdp.terminal[:, None]
    n = table.sum(axis=1)
    Z, features = PAIRS, PAIRS
    if kind == "states":  # centred over the decisions, a constant beside them, and weights for every action
        features = X
        one_and_x = np.column_stack([np.ones(6), X - np.average(X, axis=0, weights=n)])
        Z = np.einsum("sk,ab->sabk", one_and_x, np.eye(3)).reshape(6, 3, 9)
    policy = estimate_policy(mdp, table, Logit(features=features, l2=0.05))
    np.testing.assert_allclose(policy[n > 0], penalised(Z, mdp, table, 0.05), atol=1e-5)


SEPARATED = np.array([[9.0, 0, 0], [0, 9, 0], [0, 0, 9], [9, 0, 0], [0, 9, 0], [0, 0, 9]])


FIRST = PAIRS[:, :, :1] * [[1.0], [0.0], [0.0]]  # a feature of the first action, taken exactly where it is positive
CUT = np.where(FIRST[:, :1, 0] > 0.0, [[9.0, 0.0, 0.0]], [[0.0, 4.0, 4.0]])


@pytest.mark.parametrize(
    ("features", "table"),
    [(np.eye(6), SEPARATED), (X, SEPARATED), (FIRST, CUT), (np.ones((6, 1)), COUNTS * [1, 0, 1])],
    ids=["dummies", "states", "pairs", "an action that nobody took"],
)
def test_a_logit_without_a_maximum_is_told_and_gives_a_policy(features, table):
    fit = rv.CCP(rv.LinearReward(PAIRS), first_step=Logit(features)).fit(MDP, counts(table))
    (note,) = fit.status.notes
    assert note.startswith("the first step's logit has no maximum: some of its weights diverge")
    assert "rv.first_step.Logit(l2=1e-3)" in note
    assert note in " ".join(str(fit.summary()).split())
    assert np.isfinite(fit.theta).all()
    taken = table.sum(axis=0) if features.shape[1:] == (1,) else table  # with a constant alone: shares of all
    shares = np.broadcast_to(taken / taken.sum(axis=-1, keepdims=True), table.shape)
    np.testing.assert_allclose(fit.pi_tilde, shares, atol=1e-3)
    assert (fit.pi_tilde > 0.0).all()
    penalised = rv.CCP(rv.LinearReward(PAIRS), first_step=Logit(features, l2=1e-3)).fit(MDP, counts(table))
    assert not penalised.status.notes


@pytest.mark.parametrize("features", [X, PAIRS, np.ones((6, 1))], ids=["states", "pairs", "a constant"])
def test_a_logit_with_a_maximum_has_nothing_to_tell(features):
    assert not estimate_with_notes(MDP, COUNTS, Logit(features))[1]


def test_choices_that_a_logit_holds_for_impossible_do_not_break_ccp():
    """A separated logit drawn out to a state far away: probabilities of exactly zero, and 0·log 0 = 0."""
    x = np.array([-1.0, -0.5, 0.5, 1.0, 1e5, -1e5])
    table = np.where(x[:, None] > 0.0, [[9.0, 0.0, 0.0]], [[0.0, 5.0, 4.0]]) * (np.abs(x) < 2)[:, None]
    fit = rv.CCP(rv.LinearReward(PAIRS), first_step=Logit(x[:, None])).fit(MDP, counts(table))
    assert (fit.pi_tilde == 0.0).any()
    assert np.isfinite(fit.theta).all()
    assert np.isfinite(fit.value).all()
    assert fit.bse.notna().all()


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
