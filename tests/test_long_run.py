"""Shares of time in the long run and their derivatives, against dense projections on the chain's invariant space."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import null_space

import revealed as rv
from models import corridor, random_mdp
from oracle import Dense, Floats, central_differences, relative_gap
from revealed.behaviour import QUANTITIES, Solved, solve_behaviour
from revealed.bellman import SoftBellman
from revealed.long_run import long_run
from revealed.transitions import TransitionSlopes
from zoo import KINDS, make_problem


def cesaro(P: Floats, start: Floats) -> Floats:
    """p₀ lim (I + P + … + Pⁿ⁻¹)/n, by the projection on the space that P leaves alone."""
    right, left = null_space(np.eye(len(P)) - P), null_space((np.eye(len(P)) - P).T)
    return start @ right @ np.linalg.solve(left.T @ right, left.T)


def mixed(mdp: rv.MDP, policy: Floats) -> Floats:
    return mdp.transitions.mix(policy).toarray()


def two_classes(end: bool = False, seed: int = 0) -> rv.MDP:
    """States 0–2 are left for one of two closed classes, 3–5 and 6–8; with `end` some of it ends in state 9."""
    rng = np.random.default_rng(seed)
    T = np.zeros((10, 2, 10))
    for a in range(2):
        T[:3, a] = rng.dirichlet(np.ones(10), 3)
        T[3:6, a, 3:6] = rng.dirichlet(np.ones(3), 3)
        T[6:9, a, 6:9] = rng.dirichlet(np.ones(3), 3)
        T[9, a, 9] = 1.0
    start = np.array([0.5, 0.2, 0.1, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
    if end:
        return rv.MDP(T, 0.9, start, terminal=np.arange(10) == 9)
    T[:3, :, 9] = 0.0
    T[:3] /= T[:3].sum(axis=2, keepdims=True)
    return rv.MDP(T, 0.9, start)


def cycle(n: int = 5) -> rv.MDP:
    """Whatever is done, the next state follows: a chain of period n with two ways to take each step."""
    T = np.zeros((n, 2, n))
    T[np.arange(n), :, (np.arange(n) + 1) % n] = 1.0
    return rv.MDP(T, 0.9, np.eye(n)[0])


def solved(mdp: rv.MDP, features: Floats, theta: Floats) -> Solved:
    assert mdp.initial is not None
    return solve_behaviour(SoftBellman(mdp), features @ theta, mdp.initial)


@pytest.mark.parametrize("seed", range(3))
def test_where_nothing_ends_the_long_run_is_the_limit_of_averages(seed):
    problem = make_problem("discounted", seed)
    policy = problem.policy(seed)
    found = long_run(problem.mdp, policy, problem.base.initial)
    expected = cesaro(problem.dense.mixed(policy), problem.base.initial)
    np.testing.assert_allclose(found.visits, expected, rtol=1e-10, atol=1e-13)
    assert not found.ends


def test_a_period_does_no_harm():
    found = long_run(cycle(5), cycle(5).uniform_policy(), np.eye(5)[2])
    np.testing.assert_allclose(found.visits, 0.2, rtol=1e-14)


def test_several_classes_weigh_as_much_as_agents_end_up_in_them():
    mdp = two_classes()
    policy = mdp.uniform_policy()
    found = long_run(mdp, policy, mdp.start())
    np.testing.assert_allclose(found.visits, cesaro(mixed(mdp, policy), mdp.start()), rtol=1e-11, atol=1e-14)
    assert found.visits[:3].max() == 0.0


def test_those_who_never_end_make_the_long_run_where_others_do_end():
    mdp = two_classes(end=True)
    policy = mdp.uniform_policy()
    found = long_run(mdp, policy, mdp.start())
    for_ever = cesaro(mixed(mdp, policy), mdp.start())
    assert 0.1 < for_ever.sum() < 0.9
    np.testing.assert_allclose(found.visits, for_ever / for_ever.sum(), rtol=1e-11, atol=1e-14)


def test_only_what_can_be_reached_counts():
    mdp = two_classes(end=True).replace(initial=np.eye(10)[9])
    found = long_run(mdp, mdp.uniform_policy(), mdp.start())
    assert found.ends
    np.testing.assert_array_equal(found.visits, np.eye(10)[9])
    inside = long_run(mdp, mdp.uniform_policy(), np.eye(10)[4])
    assert inside.visits[3:6].sum() == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize("kind", ["undiscounted", "masked", "unrolled"])
def test_where_decisions_surely_end_the_visits_of_an_episode_are_counted(kind):
    problem = make_problem(kind, seed=2)
    policy = problem.policy()
    found = long_run(problem.mdp, policy, problem.dense.initial)
    once = Dense(problem.dense.raw, 1.0, problem.dense.allowed, problem.dense.terminal, problem.dense.initial)
    np.testing.assert_allclose(found.visits, once.summed_occupancy(policy, once.initial), rtol=1e-9, atol=1e-12)
    assert found.ends


def test_each_layer_of_a_horizon_is_visited_once():
    mdp = random_mdp(6, 3, initial=True).unroll(4)
    found = long_run(mdp, mdp.uniform_policy(), mdp.start())
    np.testing.assert_allclose(found.visits.reshape(5, 6).sum(axis=1), 1.0, rtol=1e-13)


def test_the_long_run_is_not_told_where_float64_cannot_tell():
    mdp = corridor(2).replace(initial=[1.0, 0.0])
    stuck = np.array([[1.0 - 1e-14, 1e-14], [1e-14, 1.0 - 1e-14]])
    found = long_run(mdp, stuck, mdp.start())
    assert np.isnan(found.visits).all()
    rarely = np.array([[1.0 - 1e-9, 1e-9], [3e-9, 1.0 - 3e-9]])  # left, right: still known
    np.testing.assert_allclose(long_run(mdp, rarely, mdp.start()).visits, [0.75, 0.25], rtol=1e-6)


def test_shares_hold_on_a_long_corridor():
    """A birth and death chain has its shares in closed form: μ(s + 1)/μ(s) = up/down."""
    n = 800
    mdp = corridor(n)
    policy = np.tile([0.501, 0.499], (n, 1))
    found = long_run(mdp, policy, np.eye(n)[0])
    expected = (0.499 / 0.501) ** np.arange(n)
    np.testing.assert_allclose(found.visits, expected / expected.sum(), rtol=1e-8)


CASES = {
    **{kind: make_problem(kind, seed=1).mdp for kind in KINDS},
    "two classes": two_classes(),
    "two classes and an end": two_classes(end=True),
    "a period": cycle(4),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_derivatives_are_those_of_central_differences(name, quantity):
    mdp = CASES[name]
    rng = np.random.default_rng(3)
    features = rng.uniform(0.5, 1.5, (*mdp.feasible.shape, 3))
    theta = rng.uniform(-1.6, -0.8, 3)

    def at(x: Floats) -> Floats:
        values = np.asarray(getattr(solved(mdp, features, x), quantity))
        return np.where(np.isfinite(values), values, 0.0)

    numeric = central_differences(at, theta)
    exact = getattr(solved(mdp, features, theta).derivatives(features), quantity)
    if np.abs(numeric).max() < 1e-9:  # shares of a cycle are what they are, whatever agents do
        assert np.abs(exact).max() < 1e-12
    else:
        assert relative_gap(exact, numeric) < 1e-6


@pytest.mark.parametrize("name", CASES)
def test_the_derivative_of_welfare_in_a_reward_is_the_occupancy_of_its_pair(name):
    mdp = CASES[name]
    S, A = mdp.feasible.shape
    reward = np.random.default_rng(0).uniform(-3.0, -1.2, (S, A))
    one = solved(mdp, reward[:, :, None], np.ones(1))
    every_pair = np.eye(S * A).reshape(S, A, S * A)
    slope = one.derivatives(every_pair).welfare.reshape(S, A)
    np.testing.assert_allclose(slope, one.occupancy[:, None] * one.policy, rtol=1e-9, atol=1e-13)


def test_derivatives_in_the_transitions_are_those_of_central_differences():
    """T(ψ) = ψ₁T₁ + ψ₂T₂ + (1 − ψ₁ − ψ₂)T₃, with the reward's parameter beside it."""
    parts = [random_mdp(7, 2, seed=s, initial=True) for s in range(3)]
    matrices = [p.transitions.matrix for p in parts]
    features = np.random.default_rng(5).normal(size=(7, 2, 1))

    def at(x: Floats) -> Solved:
        T = x[1] * matrices[0] + x[2] * matrices[1] + (1.0 - x[1] - x[2]) * matrices[2]
        return solved(parts[0].replace(transitions=sp.csr_array(T)), features, x[:1])

    x = np.array([0.7, 0.3, 0.5])
    exact = at(x).derivatives(features, [sp.csr_array(m - matrices[2]) for m in matrices[:2]])
    for quantity in QUANTITIES:
        numeric = central_differences(lambda y, q=quantity: getattr(at(y), q), x)
        assert relative_gap(getattr(exact, quantity), numeric) < 1e-6, quantity


@pytest.mark.parametrize("name", CASES)
def test_shares_and_welfare_along_many_changes_of_the_moves_are_the_same_from_the_other_side(name):
    """One transposed solve per number against one solve per change: mass moved between next states that exist."""
    mdp = CASES[name]
    rng = np.random.default_rng(4)
    one = solved(mdp, rng.uniform(0.5, 1.5, (*mdp.feasible.shape, 3)), rng.uniform(-1.6, -0.8, 3))
    changes = []
    for _ in range(6):
        change = mdp.transitions.matrix.copy()
        change.data = change.data * rng.normal(size=change.nnz)
        gone = np.asarray(change.sum(axis=1)).reshape(-1)
        often = np.maximum(np.diff(change.indptr), 1)
        change.data -= np.repeat(gone / often, np.diff(change.indptr))  # rows still sum to one
        changes.append(sp.csr_array(change))
    forward = one.derivatives(np.zeros((*mdp.feasible.shape, 0)), changes)
    found = one.overall_slopes(TransitionSlopes.of(changes, (mdp.feasible.size, mdp.n_states)))
    np.testing.assert_allclose(found.welfare, forward.welfare, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.frequencies, forward.frequencies, rtol=1e-8, atol=1e-11)
