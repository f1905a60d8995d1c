"""Statuses that tell the truth where it is easy to lie: circling NPL, near misses of separation, failing solves."""

import numpy as np
import pytest

import revealed as rv
from revealed.environments import grid_transitions
from revealed.errors import SolverFailed
from revealed.linear_solvers import LUSolver


def small(seed: int) -> tuple[rv.MDP, rv.LinearReward, rv.Demonstrations]:
    rng = np.random.default_rng(seed)
    mdp = rv.MDP(rng.dirichlet(np.full(4, 0.2), size=(4, 2)), discount=0.99)
    reward = rv.LinearReward(rng.normal(size=(4, 2, 1)) * 2)
    counts = rng.integers(0, 20, size=(4, 2)) * 1.0 + (rng.random((4, 2)) < 0.3) * 50
    return mdp, reward, rv.Demonstrations.from_counts(counts)


@pytest.mark.parametrize("seed", [54, 79, 351])
def test_npl_that_circles_says_so(seed):
    """Far from the model's truth the NPL map need not contract (theory E4); NFXP finds the maximum all the same."""
    mdp, reward, demos = small(seed)
    npl = rv.NPL(reward, updates=200).fit(mdp, demos)
    assert (npl.status.code, npl.settled, npl.converged) == ("cycling", False, False)
    assert "NFXP" in npl.status.message
    assert rv.NFXP(reward).fit(mdp, demos).converged


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
@pytest.mark.parametrize("reward", [rv.LinearReward(np.arange(6.0).reshape(3, 2, 1)), rv.TabularReward(3)])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_a_fit_in_which_nobody_had_a_choice_says_so(method, reward, l2):
    """State 2 offers a choice, but nobody was there; a single decision in it is enough to say something."""
    T = np.zeros((3, 2, 3))
    T[np.arange(3), :, [1, 2, 0]] = 1.0
    mdp = rv.MDP(T, 0.9, feasible=np.array([[True, False], [True, False], [True, True]]))
    blind = rv.Demonstrations.from_trajectories([([0, 1], [0, 0])] * 5, 3, 2)
    status = method(reward, l2=l2).fit(mdp, blind).status
    assert status.notes[0].startswith(
        "nobody had a choice: every state in which decisions count offers a single action"
    )
    assert status.code == ("unidentified" if l2 == 0.0 and reward.n_params == 1 else "converged")
    seeing = rv.Demonstrations.from_trajectories([([0, 1, 2], [0, 0, 1]), ([2], [0])], 3, 2)
    assert not any("nobody had a choice" in note for note in method(reward, l2=l2).fit(mdp, seeing).status.notes)


def test_npl_that_settles_slowly_is_not_called_circling():
    mdp, reward, demos = small(134)
    npl = rv.NPL(reward, updates=200).fit(mdp, demos)
    assert npl.converged
    assert npl.settled
    assert npl.updates > 50
    np.testing.assert_allclose(npl.theta, rv.NFXP(reward).fit(mdp, demos).theta, atol=1e-5)


@pytest.mark.parametrize(("counts", "optimizer"), [([1, 1e8], "lbfgs"), ([1, 1e6], "adam"), ([1e3, 1e9], "lbfgs")])
def test_a_far_maximum_is_not_taken_for_none(counts, optimizer):
    """One contrary choice among very many: the maximum log(n₁/n₀) exists, however early the search stopped."""
    mdp = rv.MDP(np.ones((1, 2, 1)), discount=0.0)
    reward = rv.LinearReward(np.array([[[0.0], [1.0]]]))
    fit = rv.CCP(reward, optimizer=optimizer).fit(mdp, rv.Demonstrations.from_counts([counts]))
    assert fit.status.code != "separated"


def test_features_that_all_but_move_together_are_no_invisible_direction():
    """Where the choices do see a direction, if hardly, the estimate stands and a note warns."""
    mdp = rv.MDP(grid_transitions(6, 6, wind=0.2), discount=0.9)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(36, 2))
    demos = rv.simulate(mdp, rv.solve(mdp, x @ [1.0, -1.0]).policy, n=300, length=20, seed=0)
    twins = np.column_stack([x, x[:, 0] + 1e-5 * rng.normal(size=36)])
    fit = rv.CCP(rv.LinearReward(twins)).fit(mdp, demos)
    exact = rv.CCP(rv.LinearReward(np.column_stack([x, x[:, 0]]))).fit(mdp, demos)
    assert exact.status.code == "unidentified"
    assert exact.theta[0] == pytest.approx(exact.theta[2], rel=1e-8)  # minimum norm shares evenly
    assert fit.converged
    assert fit.llf > exact.llf


def test_a_solve_that_fails_on_the_way_is_a_status_not_an_exception(monkeypatch):
    mdp = rv.MDP(grid_transitions(6, 6, wind=0.2), discount=0.9)
    x = np.random.default_rng(3).normal(size=(36, 2))
    demos = rv.simulate(mdp, rv.solve(mdp, x @ [1.0, -1.0]).policy, n=100, length=20, seed=0)
    whole = LUSolver.solve_transpose
    for good in (2, 4):
        calls = iter(range(10**6))

        def fails_later(self, b, calls=calls, good=good):
            if next(calls) >= good:
                raise SolverFailed("it broke")
            return whole(self, b)

        monkeypatch.setattr(LUSolver, "solve_transpose", fails_later)
        fit = rv.CCP(rv.TabularReward(36), optimizer="lbfgs").fit(mdp, demos)
        assert fit.status.code == "inner_solve_failed"
        assert np.isfinite(fit.llf)


def test_the_same_reward_said_in_two_ways_has_the_same_behaviour():
    """A weight per state is a linear reward with one-hot features: same policy, though only one names directions."""
    mdp = rv.MDP(grid_transitions(3, 3, wind=0.3), discount=0.9)
    rng = np.random.default_rng(0)
    demos = rv.simulate(mdp, rv.solve(mdp, rng.normal(size=9)).policy, n=3000, length=20, seed=0)
    table = rv.NFXP(rv.TabularReward(9), tol=1e-9).fit(mdp, demos)
    linear = rv.NFXP(rv.LinearReward(np.eye(9))).fit(mdp, demos)
    assert (table.status.code, linear.status.code) == ("converged", "unidentified")
    np.testing.assert_allclose(table.policy, linear.policy, atol=1e-6)
    np.testing.assert_allclose(table.theta, linear.theta, atol=1e-4)  # both of smallest norm


@pytest.mark.parametrize("seed", range(5))
def test_a_search_that_was_stopped_early_is_not_called_separated(seed):
    """On the way to a maximum the likelihood rises and rises; past it, it falls."""
    world = rv.environments.rust_bus()
    demos = world.demonstrate(37, 116, seed)
    assert rv.NFXP(world.reward_model()).fit(world.mdp, demos).converged
    assert rv.NFXP(world.reward_model(), max_iter=2).fit(world.mdp, demos).status.code == "iteration_limit"
