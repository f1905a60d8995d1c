"""The paper-style dense baseline computes what the library computes; otherwise a race against it would mean nothing."""

import numpy as np
import pytest

from revealed.bellman import solve
from revealed.chain import Chain
from revealed.experiments.dense_baseline import DenseCCP, DenseModel, dense_mce_step, dense_soft_optimum
from revealed.mdp import MDP
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from revealed.rewards.linear import LinearReward

S, A = 12, 3


def random_mdp(seed: int, masked: bool) -> MDP:
    """Three successors per pair; with `masked`, some pairs infeasible and one state terminal."""
    rng = np.random.default_rng(seed)
    T = np.zeros((S, A, S))
    for s, a in np.ndindex(S, A):
        T[s, a, rng.choice(S, 3, replace=False)] = rng.dirichlet(np.ones(3))
    feasible, terminal = np.ones((S, A), dtype=bool), np.zeros(S, dtype=bool)
    if masked:
        feasible[:, 1:] = rng.random((S, A - 1)) < 0.7
        terminal[S - 1] = True
    return MDP(T, discount=0.9, initial=rng.dirichlet(np.ones(S)), feasible=feasible, terminal=terminal)


def random_problem(mdp: MDP, weighting: str, seed: int = 5):
    """A reward, an expert's policy and its weights ρ: counts, or occupancy times policy."""
    rng = np.random.default_rng(seed)
    policy = np.where(mdp.feasible, rng.uniform(0.2, 1.0, (S, A)), 0.0)
    policy /= np.maximum(policy.sum(axis=1, keepdims=True), 1e-300)
    rho = np.where(mdp.feasible, rng.integers(0, 9, (S, A)), 0).astype(np.float64)
    if weighting == "occupancy":
        rho = Chain(mdp, policy).occupancy()[:, None] * policy
    return np.where(mdp.feasible, rng.normal(size=(S, A)), 0.0), policy, rho


def library_step(mdp: MDP, pi_tilde, reward, rho):
    """g and ∂g/∂r by the library: the gradient in θ of a reward with one weight per pair."""
    one_weight_per_pair = LinearReward(np.eye(S * A).reshape(S, A, S * A))
    point = Objective(one_weight_per_pair, [Case(mdp, rho, pi_tilde)]).at(reward.reshape(-1))
    gradient = np.where(mdp.feasible, point.gradient.reshape(S, A), 0.0)
    return point.value * rho.sum(), gradient * rho.sum()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_value_iteration_finds_the_soft_optimum(seed, masked):
    mdp = random_mdp(seed, masked)
    reward, _, _ = random_problem(mdp, "sample")
    ours, dense = solve(mdp, reward), dense_soft_optimum(DenseModel.of(mdp), reward, tol=1e-11)
    assert dense.value == pytest.approx(ours.value, abs=1e-10)
    assert dense.policy == pytest.approx(ours.policy, abs=1e-10)


def test_value_iteration_keeps_its_tolerance_and_starts_warm():
    mdp = random_mdp(0, masked=False)
    reward, _, _ = random_problem(mdp, "sample")
    model, exact = DenseModel.of(mdp), solve(mdp, reward).value
    cold = dense_soft_optimum(model, reward, tol=1e-4)
    assert np.abs(cold.value - exact).max() <= 1e-4
    assert dense_soft_optimum(model, reward, tol=1e-4, start=exact).sweeps < cold.sweeps
    with pytest.raises(ArithmeticError):
        dense_soft_optimum(model, reward, tol=1e-4, max_sweeps=3)


@pytest.mark.parametrize("method", ["mce", "ccp"])
@pytest.mark.parametrize("weighting", ["sample", "occupancy"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_agree_with_the_librarys(seed, masked, weighting, method):
    mdp = random_mdp(seed, masked)
    reward, policy, rho = random_problem(mdp, weighting)
    model = DenseModel.of(mdp)
    if method == "mce":
        dense, pi_tilde = dense_mce_step(model, reward, rho, tol=1e-11), OwnPolicy(mdp)
    else:
        dense, pi_tilde = DenseCCP(model, policy).step(reward, rho), GivenPolicy(mdp, policy)
    g, gradient = library_step(mdp, pi_tilde, reward, rho)
    assert dense.g == pytest.approx(g, rel=1e-9)
    assert np.where(mdp.feasible, dense.gradient, 0.0) == pytest.approx(gradient, abs=1e-8)


def test_a_reward_of_states_stands_for_all_actions():
    mdp = random_mdp(0, masked=False)
    _, policy, rho = random_problem(mdp, "sample")
    column = np.random.default_rng(1).normal(size=(S, 1))
    table = np.repeat(column, A, axis=1)
    model = DenseModel.of(mdp)
    ccp = DenseCCP(model, policy)
    assert np.array_equal(ccp.step(column, rho).gradient, ccp.step(table, rho).gradient)
    assert np.array_equal(dense_mce_step(model, column, rho).gradient, dense_mce_step(model, table, rho).gradient)
