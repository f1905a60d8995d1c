"""Known truth comes back, and the sparse library agrees with the dense oracle on the way there."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import revealed as rv
from oracle import Floats, assert_close, central_differences
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from zoo import KINDS, Problem, deterministic_problem, make_problem, problem, problems, seeds

METHODS: dict[str, Any] = {
    "NFXP": rv.NFXP,
    "MCEIRL": rv.MCEIRL,
    "CCP": rv.CCP,
    "NPL": partial(rv.NPL, updates=30),
}
FAR = np.full(3, -2.0)  # a start at which values exist at γ = 1


# ------------------------------------------------------------------------------- known truth


@lru_cache
def truth(kind: str) -> tuple[Problem, rv.LinearReward, Floats, Floats]:
    """A problem, its reward, θ₀ and the policy of an agent with that θ₀."""
    animal = problem(kind)
    reward, theta = rv.LinearReward(animal.pair_features()), animal.theta()
    return animal, reward, theta, rv.solve(animal.mdp, animal.lift(reward.value(theta))).policy


@lru_cache
def sample(kind: str) -> rv.Demonstrations:
    animal, _, _, policy = truth(kind)
    return animal.simulate(policy, n=8_000, length=12, seed=11)


@lru_cache
def standard_errors(kind: str) -> Floats:
    """From the differenced NFXP score at θ₀: inverse information of a decision, over the number of decisions.

    They serve all methods: by (E4), CCP and NPL have the asymptotic variance of maximum likelihood.
    """
    animal, _, theta, _ = truth(kind)
    demos = sample(kind).lift(animal.mdp)
    lifted = rv.LinearReward(animal.lift(animal.pair_features()))
    objective = Objective(lifted, [Case(animal.mdp, demos.counts, OwnPolicy(animal.mdp))])
    information = -central_differences(lambda t: objective.at(t).gradient, theta)
    return np.sqrt(np.diag(np.linalg.inv(information)) / demos.n_decisions)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_truth_is_recovered_within_three_standard_errors(method, kind):
    """(O2, E1–E3): with ample data every method finds the θ₀ that the decisions were drawn from."""
    animal, reward, theta, policy = truth(kind)
    fit = METHODS[method](reward, start=FAR).fit(animal.mdp, sample(kind))
    error = standard_errors(kind)
    assert fit.converged
    assert np.all(error < 0.06)  # ample data: the weights lie between −1.6 and −0.8
    assert np.all(np.abs(fit.theta - theta) < 3.0 * error)
    seen = sample(kind).lift(animal.mdp).counts.sum(axis=1) > 0
    np.testing.assert_allclose(fit.policy[seen], policy[seen], atol=0.03)


def test_drawn_decisions_and_moves_follow_the_model():
    """(M1): shares of starts, actions and moves in simulated data are p₀, π and T within five standard errors."""
    animal, _, _, policy = truth("masked")
    demos, T = sample("masked"), animal.dense.T.reshape(-1, len(policy))
    moves = demos.transition_counts.toarray()
    for counts, p in ((demos.starts[None], animal.dense.initial[None]), (demos.counts, policy), (moves, T)):
        n = counts.sum(axis=1, keepdims=True)
        assert np.all(counts[np.broadcast_to(p == 0.0, counts.shape)] == 0.0)
        assert np.all(np.abs(counts - n * p) <= 5.0 * np.sqrt(n * p * (1.0 - p)) + 1e-9)
    assert moves.sum() == demos.n_decisions > 40_000


@pytest.mark.parametrize("weighting", ["sample", "occupancy"])
@pytest.mark.parametrize("method", METHODS)
def test_truth_is_recovered_exactly_from_the_population(method, weighting, animal):
    """(O1–O3): where ρ(a|s) = π_θ₀(a|s) and π̂_E = π_θ₀, the objective of every method has its maximum at θ₀."""
    _, reward, theta, policy = truth(animal.kind)
    visits = np.random.default_rng(12).uniform(1.0, 3.0, (len(policy), 1)) * ~animal.dense.terminal[:, None]
    demos = rv.Demonstrations.from_counts(visits * policy)
    fit = METHODS[method](reward, weighting=weighting, first_step=policy, start=FAR).fit(animal.mdp, demos)
    assert fit.converged
    np.testing.assert_allclose(fit.theta, theta, atol=1e-7)
    np.testing.assert_allclose(fit.policy, policy, atol=1e-8)


# ------------------------------------------------------------------------------- the dense oracle


@given(problems(), seeds)
def test_values_agree_with_the_oracle(animal, seed):
    """(V1–V3, P1): V^π̃, Q^π̃, V*, Q*, π* and softmax Q^π̃ equal dense solves and value iteration."""
    dense, r, pi = animal.dense, animal.reward(seed), animal.policy(seed)
    optimum, feasible = rv.solve(animal.mdp, r), dense.feasible
    V = dense.optimal_value(r)
    assert_close(optimum.value, V)
    assert_close(optimum.q[feasible], dense.q(r, V)[feasible])
    assert_close(optimum.policy, dense.optimal_policy(r))
    V = dense.soft_value(pi, r)
    part = GivenPolicy(animal.mdp, pi).soft_value(r)
    assert_close(rv.Chain(animal.mdp, pi).soft_value(r), V)
    assert_close(part.q[feasible], dense.q(r, V)[feasible])
    assert_close(part.policy, dense.improved(pi, r))
    assert np.all(part.policy[~feasible] == 0.0)
    assert np.all(optimum.policy[~feasible] == 0.0)


@given(problems(), seeds)
def test_occupancies_agree_with_the_oracle(animal, seed):
    """(C2, C3): a transposed solve equals the dense one and Σ_t γ^t P(s_t); (s, a) first and π after add up to it."""
    dense, pi = animal.dense, animal.policy(seed)
    chain = rv.Chain(animal.mdp, pi)
    visits = chain.occupancy()
    assert_close(visits, dense.occupancy(pi, dense.initial))
    assert_close(visits, dense.summed_occupancy(pi, dense.initial))
    after = np.zeros(len(visits))
    for s, a in np.argwhere(dense.feasible):
        after += dense.initial[s] * pi[s, a] * chain.occupancy_from(int(s), int(a))
    assert_close(after, visits)


@given(problems(), seeds, st.booleans())
def test_gradients_agree_with_the_oracle(animal, seed, fixed):
    """(G1–G3): one adjoint solve equals the score of a logit with the dense Jacobian ∂Q/∂r of (V5)."""
    r, rho = animal.reward(seed), animal.counts(seed) + animal.dense.feasible
    pi = animal.policy(seed) if fixed else None
    pi_tilde = OwnPolicy(animal.mdp) if pi is None else GivenPolicy(animal.mdp, pi)
    objective = Objective(animal.pair_table(), [Case(animal.mdp, rho, pi_tilde)])
    point = objective.at(r.reshape(-1))
    assert point.value * rho.sum() == pytest.approx(animal.dense.objective(r, rho, pi), rel=1e-9)
    assert_close(point.gradient.reshape(r.shape) * rho.sum(), animal.dense.reward_gradient(r, rho, pi))


@given(problems(), seeds, st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=6))
def test_a_warm_start_changes_nothing(animal, seed, path):
    """(S1, B2): values, policies and gradients found from an earlier θ's factorisation equal those found afresh."""
    rho, r = animal.counts(seed) + animal.dense.feasible, animal.reward(seed)
    bend = np.random.default_rng(seed).uniform(-1.0, 0.0, r.shape)
    warm = Objective(animal.pair_table(), [Case(animal.mdp, rho, OwnPolicy(animal.mdp))])
    for step in path:
        theta = (r + abs(step) * 4.0 * bend).reshape(-1)
        cold = Objective(animal.pair_table(), [Case(animal.mdp, rho, OwnPolicy(animal.mdp))]).at(theta)
        point = warm.at(theta)
        assert_close(point.parts[0].value, cold.parts[0].value, 1e-11)
        assert_close(point.parts[0].policy, cold.parts[0].policy, 1e-11)
        assert_close(point.gradient, cold.gradient, 1e-10)


@pytest.mark.parametrize("solver", ["lu", "krylov"])
def test_both_solvers_give_one_answer(solver, animal):
    """(C1): a factorisation and a Krylov method solve the same systems, forward and transposed."""
    pi, r = animal.policy(), animal.reward()
    chain = rv.Chain(animal.mdp, pi, solver)
    assert_close(chain.soft_value(r), animal.dense.soft_value(pi, r))
    assert_close(chain.occupancy(), animal.dense.occupancy(pi, animal.dense.initial))
    assert_close(rv.solve(animal.mdp, r, solver).value, animal.dense.optimal_value(r))


@given(problems(("discounted", "undiscounted", "masked")), seeds)
def test_hard_optimum_agrees_with_value_iteration(animal, seed):
    """(B4): policy iteration without shocks finds the value and the greedy policy of value iteration."""
    r = animal.reward(seed)
    V = animal.dense.hard_value(r)
    hard = rv.solve_hard(animal.mdp, r)
    assert_close(hard.value, V)
    Q = animal.dense.q(r, V)
    live = ~animal.dense.terminal
    np.testing.assert_array_equal(hard.policy[live].argmax(axis=1), Q[live].argmax(axis=1))
    np.testing.assert_allclose(hard.policy[live].max(axis=1), 1.0)  # rewards are drawn: no ties


# ------------------------------------------------------------------------------- horizons, patience


@given(problems(("unrolled",)), seeds)
def test_unrolled_solution_is_backward_induction(animal, seed):
    """(F1): the soft optimum of the unrolled MDP is plain backward induction, period by period."""
    r = animal.reward(seed)[: len(animal.base.raw)]
    values, policies = animal.base.backward_induction(r, animal.horizon)
    optimum = rv.solve(animal.mdp, animal.lift(r))
    S, A = animal.base.shape
    assert_close(optimum.value.reshape(-1, S), values, 1e-12)
    assert_close(optimum.policy.reshape(-1, S, A)[:-1], policies, 1e-12)


def test_long_horizon_approaches_the_stationary_solution():
    """(F1, V3): with γ < 1 the first period of a long horizon is the stationary optimum, up to γ^horizon."""
    animal = problem("discounted")
    r = animal.reward()
    unrolled, optimum = animal.mdp.unroll(60), rv.solve(animal.mdp, r)
    first = rv.solve(unrolled, unrolled.lift(r)).value[: len(r)]
    gap = np.abs(first - optimum.value).max()
    assert gap <= animal.mdp.discount**60 * np.abs(optimum.value).max()
    assert gap > 1e-6  # and it is a horizon still


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_patient_agents_are_solved_to_rounding(seed):
    """(V3, B1): at γ = 0.9999 the residual is at rounding level, and V* equals the dense solve at its policy."""
    animal = make_problem("discounted", seed, n_states=30, gamma=0.9999)
    dense, r = animal.dense, animal.reward(seed)
    optimum = rv.solve(animal.mdp, r)
    policy = dense.relative_value_iteration(r)
    np.testing.assert_allclose(optimum.policy, policy, atol=1e-12)
    V = dense.soft_value(policy, r)
    assert np.abs(V).max() > 1e3  # values are large: an error of 1e-4 would be easy to leave
    np.testing.assert_allclose(optimum.value, V, rtol=1e-11)
    residual = np.abs(dense.emax(dense.q(r, optimum.value)) - optimum.value).max()
    assert residual <= 16 * np.finfo(float).eps * np.abs(V).max()


@pytest.mark.parametrize("method", METHODS)
def test_patient_agents_are_estimated(method):
    """(G2): at γ = 0.9999 the gradient, whose adjoint is large, still equals the dense one, and θ₀ comes back."""
    animal = make_problem("discounted", gamma=0.9999, n_states=12)
    reward, theta = rv.LinearReward(animal.pair_features()), animal.theta()
    policy = rv.solve(animal.mdp, reward.value(theta)).policy
    fit: Any = METHODS[method](reward, first_step=policy).fit(animal.mdp, rv.Demonstrations.from_counts(policy))
    np.testing.assert_allclose(fit.theta, theta, atol=1e-6)
    rho, r = animal.counts() + 1.0, reward.value(theta)
    objective = Objective(animal.pair_table(), [Case(animal.mdp, rho, OwnPolicy(animal.mdp))])
    dQ = animal.dense.value_gradient(policy)  # (V5): the implicit one, without value iteration
    surplus = dQ - np.repeat(animal.dense.averaging(policy) @ dQ, 3, axis=0)
    assert_close(objective.at(r.reshape(-1)).gradient * rho.sum(), rho.reshape(-1) @ surplus, 1e-7)


# ------------------------------------------------------------------------------- existence and limits


@given(seeds, st.integers(3, 7), st.integers(1, 3), st.floats(-2.5, 1.0))
def test_undiscounted_value_exists_exactly_below_spectral_radius_one(seed, n_states, n_actions, level):
    """(B3): with deterministic moves at γ = 1, V* = log (I − W)⁻¹b exists exactly if W = exp(r)·T has radius < 1."""
    animal = deterministic_problem(seed, n_states, n_actions, gamma=1.0)
    r = np.random.default_rng(seed).uniform(-1.0, 1.0, animal.dense.shape) + level
    to = np.einsum("sa,sat->st", np.exp(r), animal.dense.T)
    W, b = to[:-1, :-1], to[:-1, -1]
    radius = np.abs(np.linalg.eigvals(W)).max()
    assume(abs(radius - 1.0) > 1e-3)
    if radius < 1.0:
        z = np.linalg.solve(np.eye(len(W)) - W, b)
        assert_close(rv.solve(animal.mdp, r).value[:-1], np.log(z))
    else:
        with pytest.raises(rv.errors.ValueDoesNotExist):
            rv.solve(animal.mdp, r)


@given(problems(("discounted", "masked")), seeds, st.sampled_from([1.0, 30.0, 1e4]))
def test_hard_optimum_is_the_limit_of_large_rewards(animal, seed, scale):
    """(B4): t·V ≤ V*(t·r) ≤ t·V + log|A|/(1−γ), V the hard optimum of r."""
    r = animal.reward(seed)
    hard, soft = rv.solve_hard(animal.mdp, r), rv.solve(animal.mdp, scale * r)
    slack = 1e-10 * scale * (1.0 + np.abs(hard.value).max())
    bonus = np.log(animal.mdp.n_actions) / (1.0 - animal.mdp.discount)
    assert np.all(soft.value >= scale * hard.value - slack)
    assert np.all(soft.value <= scale * hard.value + bonus + slack)
