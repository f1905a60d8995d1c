"""What goes to other processes comes back whole: pickles of models, data, rewards and fits."""

import pickle

import numpy as np
import pytest

import revealed as rv
from revealed.environments import grid_transitions

MDP = rv.MDP(grid_transitions(4, 4, wind=0.2), discount=0.9)
X = np.random.default_rng(0).normal(size=(16, 2))
DEMOS = rv.simulate(MDP, rv.solve(MDP, X @ [1.0, -1.0]).policy, n=50, length=20, seed=0)


@pytest.mark.parametrize("reward", [rv.LinearReward(X), rv.TabularReward(16), rv.NeuralReward(X, hidden=(4,))])
def test_a_fit_survives_a_pickle(reward):
    fit = rv.CCP(reward, l2=0.01, max_iter=20).fit(MDP, DEMOS)
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.policy, fit.policy)
    np.testing.assert_allclose(again.reward_model.value(fit.theta), fit.reward_model.value(fit.theta), rtol=1e-12)
    assert str(again.status) == str(fit.status)
    assert again.params.index.equals(fit.params.index)


def test_solutions_and_chains_survive_a_pickle():
    best = rv.solve(MDP, X @ [1.0, -1.0])
    b = np.arange(16.0)
    again = pickle.loads(pickle.dumps(best))
    np.testing.assert_array_equal(again.policy, best.policy)
    np.testing.assert_allclose(again.chain.solve(b), best.chain.solve(b), rtol=1e-10)
    chain = pickle.loads(pickle.dumps(rv.Chain(MDP, best.policy)))
    np.testing.assert_allclose(chain.solve_transpose(b), rv.Chain(MDP, best.policy).solve_transpose(b), rtol=1e-12)


def test_a_model_is_as_frozen_after_the_journey_as_before():
    for mdp in (pickle.loads(pickle.dumps(MDP)), MDP.unroll(3)):
        for array in (mdp.feasible, mdp.terminal, mdp.transitions.matrix.data):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


def test_everything_says_what_it_is_in_a_line():
    things = [MDP, DEMOS, rv.LinearReward(X), rv.Chain(MDP, MDP.uniform_policy()), rv.solve(MDP, X[:, 0]),
              rv.solve_hard(MDP, X[:, 0]), rv.NFXP(rv.LinearReward(X), l2=0.5)]  # fmt: skip
    for thing in things:
        assert "\n" not in repr(thing)
        assert " at 0x" not in repr(thing)
    assert "l2=0.5" in repr(things[-1])
