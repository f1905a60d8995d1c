"""Large levels, small differences: choices are right whatever the level of rewards and however near γ is to 1, or they
are refused. The oracle has sixty digits (`precise.py`)."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings

import revealed as rv
from models import corridor, random_mdp, random_policy, random_reward
from precise import Precise
from revealed.bellman import SoftBellman
from revealed.environments import grid_transitions
from revealed.errors import SolverFailed
from revealed.levels import typical
from revealed.metrics import Truth, epic, evd, expected_return, starc, stochastic_evd
from revealed.pi_tilde import GivenPolicy

TOLERANCE = 1e-6


def fork(discount: float = 0.9999, ends: bool = False) -> rv.MDP:
    """State 0 leads to one of two states that are never left; with `ends`, a last state is terminal (and far away)."""
    T = np.zeros((4 if ends else 3, 2, 4 if ends else 3))
    T[0, 0, 1] = T[0, 1, 2] = T[1, :, 1] = T[2, :, 2] = 1.0
    return rv.MDP(T, discount=discount, terminal=np.arange(4) == 3 if ends else None)


def worth(level: float, more: float, n: int = 3) -> np.ndarray:
    reward = np.full((n, 2), level)
    reward[2] += more
    return reward


def chance(mdp: rv.MDP, reward: np.ndarray) -> float:
    """That of the better branch, from the difference of rewards as float64 has them."""
    return float(1.0 / (1.0 + np.exp(-mdp.discount * (reward[2, 0] - reward[1, 0]) / (1.0 - mdp.discount))))


# the fork of the issue, by every way to solve it


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("level", [0.0, 1e5, -1e7])
@pytest.mark.parametrize("solver", ["auto", "lu", "krylov"])
def test_a_fork_between_two_rich_states_is_decided_by_their_difference(solver, level, ends):
    mdp = fork(ends=ends)
    reward = worth(level, 8e-4, mdp.n_states)
    expected = chance(mdp, reward)
    assert 0.999 < expected < 0.9999
    assert rv.solve(mdp, reward, solver=solver).policy[0, 1] == pytest.approx(expected, abs=TOLERANCE)
    found = GivenPolicy(mdp, mdp.uniform_policy(), solver=solver).soft_value(np.where(mdp.feasible, reward, 0.0))
    assert found.doubt is None
    assert found.policy[0, 1] == pytest.approx(expected, abs=TOLERANCE)
    np.testing.assert_array_equal(rv.solve_hard(mdp, reward, solver=solver).policy[0], [0.0, 1.0])


@pytest.mark.parametrize("level", [0.0, 1e5])
def test_a_fork_on_a_device_is_decided_alike(level):
    mdp = fork()
    reward = worth(level, 8e-4)
    assert rv.solve(mdp.to("cpu"), reward).policy[0, 1] == pytest.approx(chance(mdp, reward), abs=TOLERANCE)


def test_values_come_back_with_their_level():
    mdp, reward = random_mdp(12, 3, discount=0.99), random_reward(random_mdp(12, 3))
    low, high = rv.solve(mdp, reward), rv.solve(mdp, reward + 1e6)
    for name in ("value", "q"):
        np.testing.assert_allclose(getattr(high, name), getattr(low, name) + 1e8, rtol=1e-13)
    np.testing.assert_allclose(high.policy, low.policy, atol=1e-8)  # reward + 1e6 has lost digits
    given = GivenPolicy(mdp, mdp.uniform_policy())
    np.testing.assert_allclose(given.soft_value(reward + 1e6).q, given.soft_value(reward).q + 1e8, rtol=1e-13)
    hard = rv.solve_hard(mdp, reward + 1e6)
    np.testing.assert_allclose(hard.q, rv.solve_hard(mdp, reward).q + 1e8, rtol=1e-13)
    np.testing.assert_allclose(hard.value, hard.q.max(axis=1), rtol=1e-13)


@pytest.mark.parametrize("level", [0.0, 1e8])
def test_on_a_horizon_the_level_comes_out_layer_by_layer(level):
    mdp = fork(1.0).unroll(200)
    base = worth(level, 0.04)
    expected = 1.0 / (1.0 + np.exp(-199 * (base[2, 0] - base[1, 0])))
    found = rv.solve(mdp, mdp.lift(base))
    assert found.policy[0, 1] == pytest.approx(expected, abs=TOLERANCE)
    np.testing.assert_array_equal(rv.solve_hard(mdp, mdp.lift(base)).policy[0], [0.0, 1.0])
    again = rv.solve(mdp, mdp.lift(worth(0.0, 0.04)))
    left = np.repeat(np.arange(200, -1, -1), 3)
    np.testing.assert_allclose(found.value, again.value + level * left, rtol=1e-9)
    np.testing.assert_allclose(found.q[:600], (again.q + level * left[:, None])[:600], rtol=1e-9)


def test_penalties_that_forbid_do_not_blur_the_rest():
    mdp = random_mdp(12, 3, discount=0.9999)
    reward = random_reward(mdp)
    forbidding = np.where(np.random.default_rng(1).random((12, 3)) < 0.2, -1e12, reward)
    forbidding[:, 0] = reward[:, 0]
    masked = mdp.replace(feasible=forbidding > -1e11)
    np.testing.assert_allclose(rv.solve(mdp, forbidding).policy, rv.solve(masked, reward).policy, atol=1e-9)


def test_a_warm_start_at_another_level_leads_to_the_same_choices():
    mdp = rv.MDP(grid_transitions(6, 6, wind=0.2), discount=0.9999)
    bellman, reward = SoftBellman(mdp), random_reward(mdp)
    cold = bellman.solve(reward).policy
    for level in (1e8, -1e4, 0.0):
        np.testing.assert_allclose(bellman.solve(reward + level).policy, cold, atol=1e-6)


def test_what_is_typical_is_not_moved_by_outliers():
    assert typical(np.array([3.0, 3.0, -1e12, 3.0])) == 3.0
    np.testing.assert_array_equal(typical(np.array([[1.0, 5.0], [1.0, 7.0], [9.0, 7.0]])), [1.0, 7.0])
    assert 4e4 < typical(np.arange(1e5)) < 6e4


# against sixty digits


@st.composite
def worlds(draw: st.DrawFn) -> tuple[rv.MDP, np.ndarray]:
    """Small sparse models: masks, several parts that never meet, an end or none; levels, gaps and discounts of all
    sizes. At 1 − 1e-12 most have one recurrent class."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    S, A = draw(st.integers(2, 6)), draw(st.integers(2, 3))
    apart, ends = draw(st.booleans()), draw(st.booleans())
    near = draw(st.sampled_from([1.0, 0.5, 1e-1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12]))
    level = draw(st.sampled_from([0.0, 1.0, 1e3, 1e5, 1e6, 1e8])) * draw(st.sampled_from([-1.0, 1.0]))
    gap = draw(st.sampled_from([1e-6, 1e-4, 1e-2, 1.0, 10.0]))
    T = np.zeros((S, A, S))
    for s in range(S):
        pool = np.arange(1, S)[np.arange(1, S) % 2 == s % 2] if apart and s and S > 2 else np.arange(S)
        for a in range(A):
            to = rng.choice(pool, size=rng.integers(1, min(3, pool.size) + 1), replace=False)
            T[s, a, to] = rng.dirichlet(np.ones(to.size))
    feasible = rng.random((S, A)) < 0.75
    feasible[:, 0] = True
    terminal = np.arange(S) == S - 1 if ends else None
    return rv.MDP(T, 1.0 - near, feasible=feasible, terminal=terminal), level + gap * rng.normal(size=(S, A))


@settings(max_examples=150)
@given(worlds(), st.sampled_from(["auto", "krylov"]))
def test_soft_choices_are_right_or_refused(world, solver):
    mdp, reward = world
    try:
        found = rv.solve(mdp, reward, solver=solver).policy
    except SolverFailed:
        return
    np.testing.assert_allclose(found, Precise.of(mdp).soft(reward), atol=TOLERANCE)


@settings(max_examples=100)
@given(worlds())
def test_choices_under_a_given_policy_are_right_or_refused(world):
    mdp, reward = world
    policy = random_policy(mdp)
    try:
        found = GivenPolicy(mdp, policy).soft_value(np.where(mdp.feasible, reward, 0.0))
    except SolverFailed:
        return
    if found.doubt is None:
        np.testing.assert_allclose(found.policy, Precise.of(mdp).improved(policy, reward), atol=TOLERANCE)


@settings(max_examples=100)
@given(worlds())
def test_ties_are_split_where_actions_are_tied_and_nowhere_else(world):
    mdp, reward = world
    try:
        found = rv.solve_hard(mdp, reward)
    except SolverFailed:
        return
    short = Precise.of(mdp).hard(reward)
    size = np.abs(found.q[mdp.feasible]).max() if mdp.ends else np.ptp(found.q[mdp.feasible])
    best, hidden = (short < 1e-25) & mdp.feasible, short <= 1e-13 * size  # the second: all that float64 may see as tied
    assert hidden[found.policy > 0].all()
    clear = (best == hidden & mdp.feasible).all(axis=1)
    np.testing.assert_array_equal(found.policy[clear], (best / np.maximum(best.sum(axis=1, keepdims=True), 1))[clear])
    known = 1e-15 / (1.0 - mdp.discount)  # rows of T sum to one within rounding, which is as if γ were known no better
    if known < 1e-6:
        found, short = found.shortfall[mdp.feasible], short[mdp.feasible]
        atol = 1e-9 * short.max() + (1e-13 + known * mdp.ends) * size
        np.testing.assert_allclose(found, short, rtol=1e-6, atol=atol)


def test_refusals_are_rare_where_everything_meets():
    """One recurrent class, no end: float64 can tell at any level, gap and discount of the property above."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        mdp = random_mdp(6, 3, discount=1.0 - 10.0 ** -rng.integers(1, 13), seed=seed, masked=True)
        reward = 10.0 ** rng.uniform(0, 8) + 10.0 ** rng.uniform(-6, 1) * rng.normal(size=(6, 3))
        np.testing.assert_allclose(rv.solve(mdp, reward).policy, Precise.of(mdp).soft(reward), atol=TOLERANCE)


# linear systems


@pytest.mark.parametrize("near", [1e-2, 1e-5, 1e-9, 1e-12])
@pytest.mark.parametrize("solver", ["lu", "krylov"])
def test_solutions_without_their_level_are_known_to_rounding(solver, near):
    mdp = random_mdp(12, 3, discount=1.0 - near, seed=4)
    policy = random_policy(mdp)
    chain, b = rv.Chain(mdp, policy, solver), np.random.default_rng(0).normal(size=(12, 2)) + 1e3
    h, g = chain.solve_relative(b)
    for k in range(2):
        apart, first = Precise.of(mdp).solution(policy, b[:, k])
        np.testing.assert_allclose(h[:, k] - h[0, k], apart, atol=1e-11)
        assert h[0, k] + g[k] / (1.0 - mdp.discount) == pytest.approx(first, rel=1e-9)
    one, gain = chain.solve_relative(b[:, 0])
    np.testing.assert_allclose(one - one[0], h[:, 0] - h[0, 0], atol=1e-11)
    assert float(gain) == pytest.approx(g[0], rel=1e-12)


@pytest.mark.parametrize("near", [1e-4, 1e-6, 1e-12])
@pytest.mark.parametrize("value", [0.0, -0.5, 1e8])
def test_what_is_the_same_in_every_state_is_all_level(near, value):
    mdp = random_mdp(12, 3, discount=1.0 - near, seed=4)
    h, g = rv.Chain(mdp, random_policy(mdp)).solve_relative(np.full((12, 2), value))
    np.testing.assert_allclose(g, value, rtol=1e-14)
    np.testing.assert_allclose(h, 0.0, atol=1e-11 * abs(value))


@pytest.mark.parametrize("near", [1e-2, 1e-5, 1e-9, 1e-12])
@pytest.mark.parametrize("solver", ["lu", "krylov"])
def test_adjoints_of_weights_that_balance_keep_their_balance(solver, near):
    mdp = random_mdp(12, 3, discount=1.0 - near, seed=4)
    policy, D = random_policy(mdp), np.random.default_rng(0).normal(size=(12, 3))
    D -= D.mean(axis=1, keepdims=True)
    found = rv.Chain(mdp, policy, solver).solve_pairs(D)
    np.testing.assert_allclose(found, Precise.of(mdp).balanced(policy, D), atol=1e-12)


def test_visits_near_one_add_up_to_how_long_they_last():
    mdp = random_mdp(12, 3, discount=1.0 - 1e-12, seed=4)
    visits = rv.Chain(mdp, random_policy(mdp)).occupancy(np.eye(12)[3])
    assert visits.sum() == pytest.approx(1.0 / (1.0 - mdp.discount), rel=1e-12)


# refusals


def islands(near: float) -> rv.MDP:
    """State 0 leads to one of two parts of two states each, which are alike and never meet again."""
    T = np.zeros((5, 2, 5))
    T[0, 0, 1] = T[0, 1, 3] = 1.0
    T[1, 0, 1:3] = T[2, 1, 1:3] = [0.3, 0.7]
    T[1, 1, 1:3] = T[2, 0, 1:3] = [0.6, 0.4]
    T[3, :, 3:], T[4, :, 3:] = T[1, :, 1:3], T[2, :, 1:3]
    return rv.MDP(T, discount=1.0 - near)


def on_islands(more: float) -> np.ndarray:
    """Rewards that are alike on both, but for `more` on the second."""
    reward = np.random.default_rng(0).normal(size=(5, 2))
    reward[3:] = reward[1:3] + more
    return reward


@pytest.mark.parametrize("near", [1e-2, 1e-5, 1e-8])
def test_parts_that_never_meet_are_compared_as_long_as_float64_can(near):
    mdp, reward = islands(near), on_islands(0.3 * near)
    np.testing.assert_allclose(rv.solve(mdp, reward).policy, Precise.of(mdp).soft(reward), atol=TOLERANCE)
    policy, offered = random_policy(mdp), GivenPolicy(mdp, random_policy(mdp)).soft_value(reward)
    assert offered.doubt is None
    np.testing.assert_allclose(offered.policy, Precise.of(mdp).improved(policy, reward), atol=TOLERANCE)


@pytest.mark.parametrize("device", [False, True])
def test_parts_that_never_meet_are_refused_where_it_cannot(device):
    mdp, reward = islands(1e-12), on_islands(0.3e-12)
    mdp = mdp.to("cpu") if device else mdp
    told = r"not precise enough .* the discount is 1 − 1\.0e-12, .* in state 0 uncertain by .* Use a smaller discount"
    with pytest.raises(SolverFailed, match=told):
        rv.solve(mdp, reward)
    rich = reward.copy()
    rich[3:] += 1e-6  # a million more in value: there is no doubt
    np.testing.assert_array_equal(rv.solve(mdp, rich).policy[0], [0.0, 1.0])


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP])
def test_a_fit_that_float64_cannot_tell_does_not_converge(method):
    """At 1 − 1e-12 the choice between two islands that are alike is lost in rounding."""
    features = np.random.default_rng(3).normal(size=(5, 2, 2))
    features[3:] = features[1:3]
    demos = rv.Demonstrations.from_counts(np.array([[40.0, 30], [20, 10], [15, 30], [20, 10], [15, 30]]))
    found = fit_or_refusal(method(rv.LinearReward(features), start=[0.5, -0.5]), islands(1e-12), demos)
    assert isinstance(found, SolverFailed) or found.status.code == "inner_solve_failed"
    assert "float64 is not precise enough" in str(found if isinstance(found, SolverFailed) else found.status)


def fit_or_refusal(method, mdp: rv.MDP, demos: rv.Demonstrations):
    try:
        return method.fit(mdp, demos)
    except SolverFailed as refusal:
        return refusal


# fits near discount 1 have a limit


def observed(mdp: rv.MDP) -> tuple[rv.LinearReward, rv.Demonstrations]:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(*mdp.feasible.shape, 3))
    policy = rv.solve(mdp.replace(discount=0.99), features @ np.array([0.8, -0.6, 0.3])).policy
    return rv.LinearReward(features), rv.Demonstrations.from_counts(rng.poisson(40 * policy).astype(float))


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP])
@pytest.mark.parametrize("world", ["graph", "masks", "grid"])
def test_near_one_estimates_and_standard_errors_are_those_of_the_limit(method, world):
    mdp = random_mdp(20, 3, seed=2, masked=world == "masks")
    mdp = rv.MDP(grid_transitions(8, 8, wind=0.2)) if world == "grid" else mdp
    reward, demos = observed(mdp)
    limit = method(reward).fit(mdp.replace(discount=1.0 - 1e-6), demos)
    assert limit.converged
    for near in (1e-9, 1e-12):
        fit = method(reward).fit(mdp.replace(discount=1.0 - near), demos)
        assert fit.converged, fit.status
        np.testing.assert_allclose(fit.theta, limit.theta, atol=1e-3 * float(np.min(limit.bse)))
        for kind in ("hessian", "opg", "robust"):
            found, expected = (np.sqrt(np.diag(f.cov_params(kind))) for f in (fit, limit))
            np.testing.assert_allclose(found, expected, rtol=1e-4, err_msg=kind)


def test_near_one_a_fit_on_a_device_is_that_of_the_host():
    mdp = random_mdp(20, 3, seed=2, discount=1.0 - 1e-12)
    reward, demos = observed(mdp)
    here, there = rv.NFXP(reward).fit(mdp, demos), rv.NFXP(reward).fit(mdp.to("cpu"), demos)
    assert there.converged
    np.testing.assert_allclose(there.theta, here.theta, atol=1e-8)
    np.testing.assert_allclose(there.bse, here.bse, rtol=1e-8)
    np.testing.assert_allclose(there.value, here.value, rtol=1e-8)


# distances between rewards


@pytest.mark.parametrize("near", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("level", [1e5, 1e8])
def test_value_differences_and_distances_do_not_depend_on_the_level(near, level):
    mdp = random_mdp(20, 3, discount=1.0 - near, seed=2, masked=True)
    a, b = random_reward(mdp, 1), random_reward(mdp, 2)
    policy = rv.solve(mdp, b).policy
    for distance in (evd, epic, starc):
        low, high = distance(mdp, a, b), distance(mdp, a + level, b + level)
        assert low > 0.0
        assert high == pytest.approx(low, rel=1e-6), distance.__name__
    assert stochastic_evd(mdp, a + level, policy) == pytest.approx(stochastic_evd(mdp, a, policy), rel=1e-6)


def test_value_differences_are_those_of_the_returns():
    mdp = random_mdp(20, 3, discount=0.95, seed=2, masked=True, terminal=2)
    truth, policy = Truth(mdp, random_reward(mdp)), random_policy(mdp)
    expected = truth.best - expected_return(mdp, truth.reward, policy)
    assert truth.stochastic_evd(policy) == pytest.approx(expected, rel=1e-11)


def test_with_masks_actions_that_are_not_tied_are_not_split():
    """Zeros of infeasible pairs are no rewards: they must not enter the level."""
    mdp = corridor(6, discount=0.9999).replace(feasible=np.arange(12).reshape(6, 2) != 5)
    reward = 1e5 + 1e-3 * np.random.default_rng(0).normal(size=(6, 2))
    found, short = rv.solve_hard(mdp, reward), Precise.of(mdp).hard(reward)
    np.testing.assert_array_equal(found.policy[mdp.feasible], (short == 0.0)[mdp.feasible])
    assert evd(mdp, reward, -reward) > 1e-3


@pytest.mark.parametrize("device", [None, "cpu"])
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from([1e5, 1e7, 1e9]))
@example(17, 3, 1e7)  # Newton's method never ended on these two
@example(27, 3, 1e7)
@settings(max_examples=30, deadline=None)
def test_a_single_action_is_solved_at_any_size_of_reward(device, seed, n_states, size):
    """With one action V = (I − γT)⁻¹r: no choice to be wrong about, also where one state's numbers cancel to zero."""
    rng = np.random.default_rng(seed)
    T = np.roll(np.eye(n_states), 1, axis=1) if seed % 2 else rng.dirichlet(np.full(n_states, 0.3), n_states)
    mdp, reward = rv.MDP(T[:, None], discount=0.9), size * rng.normal(size=(n_states, 1))
    found = rv.solve(mdp if device is None else mdp.to(device), reward)
    exact = np.linalg.solve(np.eye(n_states) - 0.9 * T, reward[:, 0])
    np.testing.assert_allclose(found.value, exact, rtol=1e-10, atol=1e-10 * size)
