"""The paper's propositions as equalities on random sparse MDPs; labels are those of docs/theory.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import revealed as rv
from oracle import Floats, assert_close, central_differences, relative_gap
from revealed.diagnosis import invisible_directions, parts_along
from revealed.objective import Case, Evaluation, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from revealed.sweeps import log_sum_exp
from zoo import KINDS, Problem, deterministic_problem, make_problem, problem, problems, seeds

WEIGHTINGS = ("sample", "occupancy")


def own(animal: Problem, reward: Any, rho: Floats) -> Objective:
    """NFXP's objective: π̃ = π_θ (E1)."""
    return Objective(reward, [Case(animal.mdp, rho, OwnPolicy(animal.mdp))])


def given_policy(animal: Problem, reward: Any, rho: Floats, pi_tilde: Floats) -> Objective:
    """The objective for a given π̃ (E2)."""
    return Objective(reward, [Case(animal.mdp, rho, GivenPolicy(animal.mdp, pi_tilde))])


def weights(animal: Problem, weighting: str, seed: int = 0) -> Floats:
    """ρ: random counts (O2), or the occupancy of a random expert (O3)."""
    expert = animal.policy(seed)
    occupancy = animal.dense.occupancy(expert, animal.dense.initial)[:, None] * expert
    return animal.counts(seed) if weighting == "sample" else occupancy


def linear(animal: Problem) -> rv.LinearReward:
    return rv.LinearReward(animal.lift(animal.pair_features()))


def reward_gradient(point: Evaluation) -> Floats:
    """∂g/∂r from a reward with one weight per pair, the division by Σρ undone."""
    return point.gradient.reshape(point.objective.cases[0].rho.shape) * point.objective.total


# ------------------------------------------------------------------------------- shocks, values, improvement


def test_log_sum_exp_is_the_expected_maximum_over_centred_shocks():
    """(M2): E max(Q + ε) = log Σ exp Q, the choice is softmax Q, and the chosen shock has mean −log P."""
    rng = np.random.default_rng(0)
    Q, n = np.array([[0.3, -1.0, 2.0, 0.0]]), 400_000
    payoff = Q + rng.gumbel(-np.euler_gamma, 1.0, (n, 4))
    best, choice = payoff.max(axis=1), payoff.argmax(axis=1)
    assert abs(best.mean() - log_sum_exp(Q)[0]) < 5.0 * best.std() / np.sqrt(n)
    for a, p in enumerate(np.exp(Q - log_sum_exp(Q)[:, None])[0]):
        chosen = choice == a
        assert abs(chosen.mean() - p) < 5.0 * np.sqrt(p * (1.0 - p) / n)
        shock = payoff[chosen, a] - Q[0, a]
        assert abs(shock.mean() + np.log(p)) < 5.0 * shock.std() / np.sqrt(chosen.sum())


def test_optimal_value_is_the_expected_maximum_of_its_own_continuation(animal):
    """(V3) by (M2): drawing shocks and taking the best of Q* + ε earns V* on average, state by state."""
    optimum, n = rv.solve(animal.mdp, animal.reward()), 20_000
    live = ~animal.mdp.terminal
    shocks = np.random.default_rng(1).gumbel(-np.euler_gamma, 1.0, (n, *optimum.q.shape))
    best = (optimum.q + shocks).max(axis=2)[:, live]
    assert np.all(np.abs(best.mean(axis=0) - optimum.value[live]) < 5.0 * best.std(axis=0) / np.sqrt(n))
    assert np.all(optimum.value[~live] == 0.0)


@given(problems(), seeds)
def test_policy_improvement(animal, seed):
    """(V4): V^{π⁺} − V^π̃ = (I − γT^{π⁺})⁻¹ KL(π̃‖π⁺) ≥ 0 for π⁺ = softmax Q^π̃, and V* is above both."""
    r, pi = animal.reward(seed), animal.policy(seed)
    part = GivenPolicy(animal.mdp, pi).soft_value(r)
    after = rv.Chain(animal.mdp, part.policy)
    V, V_plus = rv.Chain(animal.mdp, pi).soft_value(r), after.soft_value(r)
    log_ratio = np.where(pi > 0.0, np.log(np.where(pi > 0.0, pi, 1.0)) - part.log_policy, 0.0)
    assert_close(V_plus - V, after.solve((pi * log_ratio).sum(axis=1)))
    slack = 1e-11 * (1.0 + np.abs(V).max())
    assert np.all(V_plus >= V - slack)
    assert np.all(rv.solve(animal.mdp, r).value >= V_plus - slack)
    assert np.all(part.value >= V - slack)  # P1: log Σ exp Q^π̃ lies between V^π̃ and V*
    assert np.all(rv.solve(animal.mdp, r).value >= part.value - slack)


@given(problems(), seeds)
def test_value_gradient_is_the_implicit_function_theorem(animal, seed):
    """(V5): dQ*/dθ = ∂r/∂θ + γT(I − γT^π*)⁻¹Π*∂r/∂θ = (I − Λ')⁻¹∂Λ/∂θ, also by differencing Q*."""
    reward, theta = linear(animal), animal.theta(seed=seed)
    F = own(animal, reward, animal.counts(seed) + animal.dense.feasible).at(theta).parts[0].jacobian
    table = reward.value(theta)
    J = np.asarray(reward.jacobian(theta))
    feasible = animal.dense.feasible
    implicit = (animal.dense.implicit_gradient(animal.dense.optimal_policy(table)) @ J).reshape(F.shape)
    assert_close(F[feasible], implicit[feasible])
    differenced = central_differences(lambda t: rv.solve(animal.mdp, reward.value(t)).q[feasible], theta, 1e-4)
    assert_close(F[feasible], differenced, 1e-6)


def test_policy_map_is_flat_at_its_fixed_point_only(animal):
    """(E4): ∂Ψ_θ/∂π̃ = 0 at π̃ = Ψ_θ(π̃), and not elsewhere."""
    r, feasible = animal.reward(), animal.dense.feasible
    direction = np.random.default_rng(2).normal(size=feasible.shape) * feasible
    direction -= feasible * direction.sum(axis=1, keepdims=True) / np.maximum(feasible.sum(axis=1, keepdims=True), 1)

    def slope(pi: Floats) -> float:
        shift = 1e-4 * pi.min(where=feasible, initial=1.0) * direction / np.abs(direction).max()
        up, down = (GivenPolicy(animal.mdp, pi + sign * shift).soft_value(r).policy for sign in (1.0, -1.0))
        return float(np.abs(up - down).max() / (2.0 * np.abs(shift).max()))

    assert slope(rv.solve(animal.mdp, r).policy) < 1e-6
    assert slope(animal.policy()) > 1e-3


# ------------------------------------------------------------------------------- objective and gradient


@given(problems(), seeds)
def test_occupancy_weighted_objective_is_reward_minus_start_value(animal, seed):
    """(O3): g = ⟨ρ, r⟩ − p₀·V* with occupancy weights; for any ρ, g = ⟨ρ, r⟩ − q·V* with q = ρ(·) − γTᵀρ."""
    r = animal.reward(seed)
    V = rv.solve(animal.mdp, r).value
    for weighting in WEIGHTINGS:
        rho = weights(animal, weighting, seed)
        assume(rho.sum() > 0.0)
        q = rho.sum(axis=1) - animal.dense.gamma * np.einsum("sa,sat->t", rho, animal.dense.T)
        if weighting == "occupancy":
            q = animal.dense.initial
        objective = own(animal, animal.pair_table(), rho)
        g = objective.at(r.reshape(-1)).value * objective.total
        size = np.abs(rho * r).sum() + np.abs(q * V).sum()
        assert g == pytest.approx((rho * r).sum() - q @ V, abs=1e-11 * size)


@given(problems(), seeds, st.floats(0.1, 0.9))
def test_concave_along_chords(animal, seed, mix):
    """(O3, H1): with occupancy weights g is concave in r for π̃ = π_θ; with any weights it is for fixed π̃."""
    a, b = animal.reward(seed).reshape(-1), animal.reward(seed + 1).reshape(-1)
    table = animal.pair_table()
    sample = animal.counts(seed) + animal.dense.feasible
    for objective in (
        own(animal, table, weights(animal, "occupancy", seed)),
        given_policy(animal, table, sample, animal.policy(seed + 1)),
    ):
        first, last, middle = (objective.at(theta).value for theta in (a, b, mix * a + (1.0 - mix) * b))
        assert middle >= mix * first + (1.0 - mix) * last - 1e-11 * (1.0 + abs(middle))


@given(problems(), seeds)
def test_nfxp_gradient_is_the_mce_irl_gradient(animal, seed):
    """(G5): with occupancy weights the NFXP score, by the implicit function theorem, is μ^π̂E − μ^π_θ."""
    r, rho = animal.reward(seed), weights(animal, "occupancy", seed)
    point = own(animal, animal.pair_table(), rho).at(r.reshape(-1))
    policy = animal.dense.optimal_policy(r)
    occupancy = animal.dense.occupancy(policy, animal.dense.initial)[:, None] * policy
    assert_close(reward_gradient(point), rho - occupancy)
    assert_close(reward_gradient(point), animal.dense.reward_gradient(r, rho))
    features, theta = animal.lift(animal.pair_features(seed=seed)), animal.theta(seed=seed)
    objective = own(animal, rv.LinearReward(features), rho)
    policy = animal.dense.optimal_policy(features @ theta)
    expected = np.einsum("sa,sak->k", rho, features)
    predicted = np.einsum("s,sa,sak->k", animal.dense.occupancy(policy, animal.dense.initial), policy, features)
    assert_close(objective.at(theta).gradient * objective.total, expected - predicted)


@given(problems(), seeds, st.sampled_from(WEIGHTINGS))
def test_ccp_at_the_true_policy_has_the_nfxp_gradient(animal, seed, weighting):
    """(G3): with π̃ set to π_θ, CCP has NFXP's objective and gradient at that θ."""
    r, rho = animal.reward(seed), weights(animal, weighting, seed)
    assume(rho.sum() > 0.0)
    nfxp = own(animal, animal.pair_table(), rho).at(r.reshape(-1))
    ccp = given_policy(animal, animal.pair_table(), rho, rv.solve(animal.mdp, r).policy).at(r.reshape(-1))
    assert ccp.value == pytest.approx(nfxp.value, rel=1e-10, abs=1e-10)
    assert_close(reward_gradient(ccp), reward_gradient(nfxp))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("moves", [True, False], ids=["own-policy", "given-policy"])
@pytest.mark.parametrize("features", ["states", "pairs"])
def test_hessian_equals_differenced_gradient(moves, weighting, features, animal):
    """(H1): Σ_s (λ(s) − ρ(s)) Cov_s for π̃ = π_θ, −Σ_s ρ(s) Cov_s for fixed π̃."""
    X = animal.lift(animal.state_features() if features == "states" else animal.pair_features())
    reward, theta, rho = rv.LinearReward(X), animal.theta(), weights(animal, weighting)
    objective = own(animal, reward, rho) if moves else given_policy(animal, reward, rho, animal.policy(1))
    assert np.isfinite(objective.at(theta - 0.5).hessian).all()  # what this leaves behind must not be used below
    point = objective.at(theta)
    assert relative_gap(point.hessian, central_differences(lambda t: objective.at(t).gradient, theta)) < 1e-6
    if not moves:
        np.testing.assert_allclose(point.information, -point.hessian, rtol=1e-12)


def test_hessian_at_the_truth_is_fisher_information(animal):
    """(H1): where ρ(s,a) = n(s)π_θ(a|s), NFXP's score is zero and its Hessian is −Σ_s ρ(s) Cov_s."""
    reward, theta = linear(animal), animal.theta()
    policy = rv.solve(animal.mdp, reward.value(theta)).policy
    point = own(animal, reward, animal.counts().sum(axis=1, keepdims=True) * policy).at(theta)
    assert point.gradient_norm < 1e-12
    np.testing.assert_allclose(point.hessian, -point.information, atol=1e-12)


# ------------------------------------------------------------------------------- what choices cannot see


@given(problems(), seeds)
def test_shaping_changes_no_policy(animal, seed):
    """(I1): adding h − γTh, h = 0 at terminal states, changes no choice, for fixed π̃ and for π̃ = π_θ."""
    dense, r, pi = animal.dense, animal.reward(seed), animal.policy(seed)
    h = np.random.default_rng(seed).uniform(-0.5, 0.5, len(r)) * ~dense.terminal
    shaped = np.where(dense.feasible, r + h[:, None] - dense.gamma * dense.T @ h, 0.0)
    before, after = rv.solve(animal.mdp, r), rv.solve(animal.mdp, shaped)
    assert_close(after.policy, before.policy)
    assert_close(after.value, before.value + h)
    fixed = GivenPolicy(animal.mdp, pi)
    assert_close(fixed.soft_value(shaped).policy, fixed.soft_value(r).policy)


@pytest.mark.parametrize("moves", [True, False], ids=["own-policy", "given-policy"])
def test_nothing_else_is_invisible(moves, animal):
    """(I1): seen in all states, a table of pairs hides one direction per non-terminal state (and its dead entries)."""
    rho, dense = 1.0 * animal.dense.feasible, animal.dense
    table, theta = animal.pair_table(), animal.reward().reshape(-1)
    objective = own(animal, table, rho) if moves else given_policy(animal, table, rho, animal.policy())
    hidden = invisible_directions(objective.at(theta))
    live = np.flatnonzero(~dense.terminal)
    shaping = np.where(dense.feasible[None], np.eye(len(rho))[:, :, None] - dense.gamma * dense.T.transpose(2, 0, 1), 0)
    assert len(hidden) == len(live) + np.sum(~dense.feasible)
    along = shaping[live].reshape(len(live), -1)
    assert_close(np.array([parts_along(row, hidden).sum(axis=0) for row in along]), along)


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_minimum_norm_solution(method):
    """(I1): of all weights with the same choices the smallest is taken, which is also the limit of l2 → 0."""
    animal = problem("masked")
    X, T, gamma = animal.pair_features(), animal.base.T, animal.base.gamma
    h = np.random.default_rng(3).normal(size=len(X)) * ~animal.base.terminal
    shaping = h[:, None] - gamma * T @ h
    reward = rv.LinearReward(np.concatenate([X, X[:, :, :1] + X[:, :, 1:2], shaping[:, :, None]], axis=2))
    hidden = np.array([[1.0, 1.0, 0.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]])
    demos = animal.simulate(rv.solve(animal.mdp, X @ animal.theta()).policy, n=200)
    fit = method(reward).fit(animal.mdp, demos)
    assert fit.status.code == "unidentified"
    np.testing.assert_allclose(hidden @ fit.theta, 0.0, atol=1e-9)
    np.testing.assert_allclose(fit.theta, method(reward, l2=1e-8).fit(animal.mdp, demos).theta, atol=1e-5)
    away = method(reward, start=hidden.sum(axis=0)).fit(animal.mdp, demos)
    np.testing.assert_allclose(away.theta, fit.theta, atol=1e-6)
    plain = method(rv.LinearReward(X)).fit(animal.mdp, demos)
    np.testing.assert_allclose(reward.value(fit.theta), plain.reward_model.value(plain.theta), atol=1e-6)


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP])
def test_tabular_solution_stays_where_choices_see(method):
    """(I1): from zero the gradient leads only where choices can see, so a tabular reward has minimum norm."""
    animal = problem("discounted")
    truth = np.random.default_rng(4).normal(size=(8, 1)) + np.zeros(animal.dense.shape)
    demos = animal.simulate(rv.solve(animal.mdp, truth).policy, n=300)
    fit = method(rv.TabularReward(8), tol=1e-7).fit(animal.mdp, demos)
    assert fit.converged
    T, gamma = animal.base.T, animal.base.gamma
    shaping = np.eye(8)[:, None, :] - gamma * T  # (s, a, direction): r_h for each h
    differs = (shaping - shaping[:, :1]).reshape(-1, 8)
    _, size, rows = np.linalg.svd(differs)
    hidden = np.einsum("sk,hk->hs", shaping[:, 0], rows[size < 1e-12])  # the r_h that do not depend on the action
    assert len(hidden) >= 1  # nothing ends here, so a constant is among them
    np.testing.assert_allclose(hidden @ fit.theta, 0.0, atol=1e-8)


@given(problems(("discounted", "masked")), seeds, st.booleans())
def test_recession_value(animal, seed, fixed):
    """(I2): g(t·v)/t → Σ ρ(Q_v − max Q_v), with Q_v = Fv for fixed π̃ and the hard optimal Q for π̃ = π_θ."""
    rho, v, t = animal.counts(seed) + animal.dense.feasible, animal.reward(seed), 1e7
    if fixed:
        pi = animal.policy(seed)
        Qv = animal.dense.q((animal.dense.value_gradient(pi) @ v.reshape(-1)).reshape(v.shape), np.zeros(len(v)))
        objective = given_policy(animal, animal.pair_table(), rho, pi)
    else:
        Qv, objective = rv.solve_hard(animal.mdp, v).q, own(animal, animal.pair_table(), rho)
    live = ~animal.dense.terminal
    surplus = np.where(animal.dense.feasible, Qv, 0.0)[live] - Qv[live].max(axis=1, keepdims=True)
    limit = (rho[live] * surplus).sum()
    value = objective.at(t * v.reshape(-1)).value * objective.total
    assert abs(value / t - limit) <= 1e-4 * rho.sum()


# ------------------------------------------------------------------------------- four methods, one choice


def estimate(method: Any, animal: Problem, seed: int, n: int = 150, length: int = 12, **options: Any) -> rv.Fit:
    """From `n` trajectories of a soft-optimal agent, and a start far from the truth where values exist at γ = 1."""
    options = {"first_step": "smoothed", "start": np.full(3, -2.0), **options}
    policy = rv.solve(animal.mdp, linear(animal).value(animal.theta(seed=seed))).policy
    demos = animal.simulate(policy, n, length, seed)
    return method(rv.LinearReward(animal.pair_features()), **options).fit(animal.mdp, demos)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_nfxp_is_mce_irl(weighting, animal):
    """(E1): one estimator under two names, with either weighting."""
    nfxp, mce = (estimate(m, animal, seed=0, weighting=weighting) for m in (rv.NFXP, rv.MCEIRL))
    assert nfxp.converged
    assert mce.converged
    np.testing.assert_array_equal(nfxp.theta, mce.theta)
    np.testing.assert_array_equal(nfxp.policy, mce.policy)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_npl_with_one_update_is_ccp(weighting, animal):
    """(E3): K = 1 is CCP."""
    ccp, npl = (
        estimate(rv.CCP, animal, 0, weighting=weighting),
        estimate(rv.NPL, animal, 0, weighting=weighting, updates=1),
    )
    assert ccp.converged
    np.testing.assert_array_equal(npl.theta, ccp.theta)
    np.testing.assert_array_equal(npl.policy, ccp.policy)
    np.testing.assert_array_equal(npl.pi_tilde, ccp.pi_tilde)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_settled_npl_is_nfxp(seed, weighting, animal):
    """(E4): where NPL has settled the NFXP score is zero, and the NFXP maximum is reached."""
    npl = estimate(rv.NPL, animal, seed, weighting=weighting, updates=100)
    nfxp = estimate(rv.NFXP, animal, seed, weighting=weighting)
    assert npl.converged
    assert nfxp.converged
    assert npl.settled
    np.testing.assert_allclose(npl.policy, npl.pi_tilde, atol=1e-8)
    score = estimate(rv.NFXP, animal, seed, weighting=weighting, start=npl.theta, max_iter=1).history["gradient_norm"]
    assert score.iloc[0] < 1e-8
    np.testing.assert_allclose(npl.theta, nfxp.theta, atol=1e-5)
    np.testing.assert_allclose(npl.policy, nfxp.policy, atol=1e-5)
    assert npl.objective == pytest.approx(nfxp.objective, abs=1e-12)
    ccp = estimate(rv.CCP, animal, seed, weighting=weighting)
    assert np.abs(ccp.theta - nfxp.theta).max() > 1e-3  # it had a way to go


@pytest.mark.parametrize("kind", KINDS)
def test_npl_that_settles_on_little_data_has_zero_score(kind):
    """(E4): a π̃ that no longer moves is a fixed point only if θ is a maximum for it; else NPL has not settled."""
    settled = 0
    for seed in (*range(8), 10, 41, 46):
        animal = make_problem(kind, seed)
        npl = estimate(rv.NPL, animal, seed, n=5, updates=100)
        if npl.settled and npl.status.code != "separated":
            score = own(animal, linear(animal), npl.demonstrations.counts).at(npl.theta).gradient_norm
            assert score < 1e-7, f"seed {seed}: {npl.status}"
            settled += 1
    assert settled >= 4


@pytest.mark.parametrize("method", [rv.CCP, rv.NPL])
def test_separated_exactly_if_a_linear_programme_says_so(method, animal):
    """(I2): g has no maximum for the last π̃ exactly if some Fv ranks no observed action below another."""
    found = []
    for seed, n in np.ndindex(12, 4):
        fit = estimate(method, animal, seed, n + 1, length=4, start=None)
        S, A = animal.dense.shape
        dQ = animal.dense.value_gradient(fit.pi_tilde)
        F = (dQ @ animal.lift(animal.pair_features()).reshape(S * A, -1)).reshape(S, A, -1)
        found.append(animal.dense.separable(fit.demonstrations.counts, F))
        assert (fit.status.code == "separated") == found[-1], f"seed {seed}, {n + 1} trajectories: {fit.status}"
    assert 5 <= sum(found) <= len(found) - 5


@pytest.mark.parametrize("scale", [30.0, 300.0, 3000.0])
def test_ccp_does_not_depend_on_its_start(scale, animal):
    """(E2, H1): for a linear reward g is concave given π̃, so its maximum is found from everywhere."""
    direction = np.random.default_rng(1).normal(size=3)
    near, far = (estimate(rv.CCP, animal, seed=0, start=s) for s in (np.zeros(3), scale * direction))
    assert near.converged
    assert far.converged
    np.testing.assert_allclose(far.theta, near.theta, atol=1e-6)


@pytest.mark.parametrize("gamma", [0.8, 1.0])
def test_discounted_visits_are_the_occupancy_for_deterministic_moves(gamma):
    """(O3): finished trajectories, deterministic moves: Σ γ^t visits = starts × Occ^π̂E ⊙ π̂_E, and one estimate."""
    animal = deterministic_problem(seed=1, n_states=7, n_actions=3, gamma=gamma)
    policy = rv.solve(animal.mdp, animal.pair_features() @ animal.theta()).policy
    demos = animal.simulate(policy, n=200, length=10_000).discount_visits(gamma)
    steps, rho = demos.steps, demos.weights
    assert steps is not None
    assert rho.sum() == pytest.approx((gamma**steps.time).sum(), rel=1e-12)
    expert = rho / np.where(animal.dense.terminal, 1.0, rho.sum(axis=1))[:, None]
    assert_close(rho, animal.dense.occupancy(expert, demos.starts)[:, None] * expert)
    mdp, reward = animal.mdp.replace(initial=None), rv.LinearReward(animal.pair_features())
    options = {"first_step": expert, "start": animal.theta()}
    sample, occupancy = (rv.NFXP(reward, weighting=w, **options).fit(mdp, demos) for w in WEIGHTINGS)
    np.testing.assert_allclose(sample.theta, occupancy.theta, atol=1e-8)
