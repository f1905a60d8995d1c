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
    unidentified = l2 == 0.0 and reward.n_params == 1
    said = status.message if unidentified else status.notes[0]
    assert said.startswith("there was nothing to choose: every state with decisions offers a single action")
    assert sum("nothing to choose" in one for one in (status.message, *status.notes)) == 1
    assert status.code == ("unidentified" if unidentified else "converged")
    seeing = rv.Demonstrations.from_trajectories([([0, 1, 2], [0, 0, 1]), ([2], [0])], 3, 2)
    assert not any(
        "there was nothing to choose" in note for note in method(reward, l2=l2).fit(mdp, seeing).status.notes
    )


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


# a penalty that alone holds the weights

SEPARATED = rv.Demonstrations.from_counts(np.array([[0.0, 5], [0, 9], [7, 0], [3, 0]]))
ONE_WAY = rv.LinearReward(np.stack([np.zeros((4, 1)), np.array([[1.0], [2.0], [-1.0], [-0.5]])], axis=1), ["x"])
EVENLY = rv.MDP(np.full((4, 2, 4), 0.25), discount=0.5)


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
@pytest.mark.parametrize("l2", [1e-300, 1e-20, 1e-12, 1e-6, 1e-3])
def test_a_penalty_that_alone_holds_the_weights_is_told(method, l2):
    """However small: either it has not stopped them yet, or it is said what holds them."""
    fit = method(ONE_WAY, l2=l2).fit(EVENLY, SEPARATED)
    held = [note for note in fit.status.notes if "without the penalty the likelihood has no maximum" in note]
    assert fit.status.code == ("converged" if held else "separated")
    assert np.isfinite(fit.bse["x"]) == bool(held)
    assert f"l2={l2:g}" in (held[0] if held else fit.status.message)
    assert "(x)" in (held[0] if held else fit.status.message)
    if l2 <= 1e-12:
        assert fit.status.code == "separated"
    if l2 >= 1e-6:
        assert fit.status.code == "converged"


@pytest.mark.parametrize("l2", [0.0, 1e-300, 1e-12, 1e-3])
def test_the_same_for_rewards_without_second_derivatives(l2):
    function = rv.JaxReward(lambda p, x: x @ p, np.zeros(1), np.asarray(ONE_WAY.matrix).reshape(4, 2, 1), ["x"])
    fit = rv.CCP(function, l2=l2).fit(EVENLY, SEPARATED)
    assert fit.status.code == ("converged" if l2 == 1e-3 else "separated")
    right = np.array([[0.0, 9.0]] * 5)
    T = np.zeros((5, 2, 5))
    T[np.arange(5), 0, np.maximum(np.arange(5) - 1, 0)] = T[np.arange(5), 1, np.minimum(np.arange(5) + 1, 4)] = 1.0
    table = rv.CCP(rv.TabularReward(5), l2=l2, first_step="smoothed").fit(
        rv.MDP(T, discount=0.9), rv.Demonstrations.from_counts(right)
    )
    assert table.status.code == ("converged" if l2 == 1e-3 else "separated")


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP])
def test_a_penalty_beside_a_maximum_is_not_blamed(method):
    demos = rv.Demonstrations.from_counts(np.array([[1.0, 5], [2, 9], [7, 1], [3, 1]]))
    for l2 in (1e-12, 1e-3):
        assert not any("penalty" in note for note in method(ONE_WAY, l2=l2).fit(EVENLY, demos).status.notes)


# a far start


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP])
@pytest.mark.parametrize("far", [50.0, 500.0, 5000.0])
def test_a_far_start_under_adam_is_neither_separated_nor_unidentified(method, far):
    """Its steps are too short to arrive; that says nothing about the data."""
    rng = np.random.default_rng(8)
    mdp = rv.MDP(rng.dirichlet(np.full(8, 0.3), size=(8, 3)), discount=0.9)
    F = rng.normal(size=(8, 3, 2))
    demos = rv.simulate(mdp, rv.solve(mdp, F @ [1.0, -0.5]).policy, n=60, length=20, seed=0)
    assert method(rv.LinearReward(F)).fit(mdp, demos).converged
    for way in ([1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [0.0, 1.0]):
        options = {"optimizer": "adam", "start": far * np.array(way), "max_iter": 200}
        assert method(rv.LinearReward(F), **options).fit(mdp, demos).status.code == "iteration_limit"


# NPL: a number of updates that was asked for, and what counts as settled


def test_a_number_of_updates_that_was_asked_for_is_an_estimator():
    bus = rv.datasets.rust_bus(groups=4)
    full = rv.NPL(bus.reward).fit(bus.mdp, bus.demonstrations)
    assert full.converged
    assert full.settled
    for k in (1, 2, 3):
        fit = rv.NPL(bus.reward, updates=k).fit(bus.mdp, bus.demonstrations)
        assert fit.converged
        assert fit.updates == k
        assert np.isfinite(fit.bse).all()
        if not fit.settled:
            assert f"{k}-step NPL, as requested" in fit.status.message
    ccp = rv.CCP(bus.reward).fit(bus.mdp, bus.demonstrations)
    one = rv.NPL(bus.reward, updates=1).fit(bus.mdp, bus.demonstrations)
    np.testing.assert_allclose(one.theta, ccp.theta, rtol=1e-9)


@pytest.mark.parametrize("optimizer", ["auto", "lbfgs", "adam"])
def test_npl_settles_however_it_searches(optimizer):
    """Within a hundredth of a standard error of the maximum likelihood, and then called settled."""
    bus = rv.datasets.rust_bus(groups=4)
    npl = rv.NPL(bus.reward, optimizer=optimizer, learning_rate=0.1).fit(bus.mdp, bus.demonstrations)
    nfxp = rv.NFXP(bus.reward).fit(bus.mdp, bus.demonstrations)
    assert npl.converged
    assert npl.settled
    assert np.all(np.abs(npl.theta - nfxp.theta) <= 0.05 * nfxp.bse.to_numpy())


def test_npl_that_has_not_settled_by_itself_says_so(monkeypatch):
    from revealed import estimators

    monkeypatch.setattr(estimators, "MOST_UPDATES", 2)
    mdp, reward, demos = small(134)  # which settles slowly
    fit = rv.NPL(reward).fit(mdp, demos)
    assert fit.status.code == "iteration_limit"
    assert not fit.settled
    assert "updates=" in fit.status.message


# what a reward without features cannot tell


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP])
def test_a_feature_that_stands_twice_in_a_function_is_named(method):
    mdp, _, demos = small(3)
    x = np.random.default_rng(0).normal(size=(4, 2))
    reward = rv.JaxReward(lambda p, x: (p[0] + p[1]) * x, np.zeros(2), x, names=["a", "b"])
    fit = method(reward, optimizer="lbfgs").fit(mdp, demos)
    assert fit.converged
    assert any("identify `a` − `b`" in note for note in fit.status.notes)
    alone = rv.JaxReward(lambda p, x: p[0] * x, np.zeros(1), x, names=["a"])
    assert not method(alone, optimizer="lbfgs").fit(mdp, demos).status.notes


def test_states_that_no_choice_tells_apart_are_named():
    """States 2 and 3 are reached together or not at all: choices see the sum of their weights."""
    T = np.zeros((4, 2, 4))
    T[0, 0, 1] = T[1, 0, 0] = T[1, 1, 1] = T[2, :, 0] = T[3, :, 0] = 1.0
    T[0, 1, [2, 3]] = 0.5
    demos = rv.Demonstrations.from_counts(np.array([[30.0, 20.0], [10.0, 30.0], [5, 5], [5, 5]]))
    fit = rv.CCP(rv.TabularReward(4)).fit(rv.MDP(T, discount=0.9), demos)
    assert fit.converged
    note = next(note for note in fit.status.notes if "choices do not identify" in note)
    assert "`state2` − `state3`" in note
