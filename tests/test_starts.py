"""Where agents start: the same rule for evaluations, counterfactuals and simulations, and results that say which."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from models import random_mdp
from revealed.metrics import Truth, evaluate, evd, expected_return, stochastic_evd
from revealed.starts import starts_of

S, A = 6, 3
FEATURES = np.random.default_rng(1).normal(size=(S, A, 2))
TRUE = FEATURES @ np.array([1.0, -0.5])
MDP = random_mdp(S, A, 0.9, terminal=1)
GIVEN = np.array([0.5, 0.25, 0.25, 0.0, 0.0, 0.0])
LABELS = [f"s{s}" for s in range(S)]


@pytest.fixture(scope="module")
def fit() -> rv.Fit:
    """Of trajectories that begin in two states."""
    demos = rv.simulate(MDP, rv.solve(MDP, TRUE).policy, 200, 15, seed=0, initial=[0.75, 0.25, 0, 0, 0, 0])
    return rv.NFXP(rv.LinearReward(FEATURES)).fit(MDP, demos)


def test_the_rule(fit):
    demos, own = fit.demonstrations, MDP.replace(initial=GIVEN)
    told = starts_of(own, np.eye(S)[4], demos)
    assert told.words == "as given"
    np.testing.assert_array_equal(told.weights, np.eye(S)[4])
    assert starts_of(own, None, demos).words == "the model's start distribution"
    np.testing.assert_array_equal(starts_of(own, None, demos).weights, GIVEN)
    seen = starts_of(MDP, None, demos)
    assert seen.words == "where the data started"
    np.testing.assert_allclose(seen.weights, demos.starts / demos.starts.sum(), rtol=1e-15)
    for nobody in (None, rv.Demonstrations.from_counts(demos.counts)):
        even = starts_of(MDP, None, nobody)
        assert even.words == "uniform over the non-terminal states"
        np.testing.assert_array_equal(even.weights, ~MDP.terminal / 5.0)


def test_an_evaluation_and_a_counterfactual_start_alike(fit):
    for mdp in (MDP, MDP.replace(discount=0.8), MDP.replace(initial=GIVEN), MDP.unroll(3)):
        scores = evaluate(fit, mdp, TRUE)
        after = fit.counterfactual(mdp=mdp, bands=None).after
        assert scores.starts == after.begins
        np.testing.assert_array_equal(scores.initial, after.start)
        assert f"Starts: {scores.starts}." in str(scores)
        drawn = fit.counterfactual(mdp=mdp, bands=None).after.simulate(500, 1, seed=0).starts
        assert set(np.flatnonzero(drawn)) <= set(np.flatnonzero(after.start))


def test_the_figures_are_those_of_the_starts_that_are_named(fit):
    scores, where = evaluate(fit, MDP, TRUE), fit.demonstrations.starts / fit.demonstrations.starts.sum()
    assert scores["stochastic_evd"] == pytest.approx(stochastic_evd(MDP, TRUE, fit, where), rel=1e-12)
    assert scores["stochastic_evd"] == pytest.approx(
        stochastic_evd(MDP, TRUE, fit, demos=fit.demonstrations), rel=1e-12
    )
    assert scores["evd"] == pytest.approx(evd(MDP, TRUE, fit, demos=fit.demonstrations), abs=1e-12)
    evenly = evaluate(fit, MDP, TRUE, initial=MDP.start())
    assert evenly.starts == "as given"
    assert evenly["stochastic_evd"] == pytest.approx(stochastic_evd(MDP, TRUE, fit.policy), rel=1e-12)
    assert abs(evenly["stochastic_evd"] - scores["stochastic_evd"]) > 1e-3
    assert Truth(MDP, TRUE).evaluate(fit) == scores
    best = rv.solve_hard(MDP, TRUE)
    lost = expected_return(MDP, TRUE, best, where) - expected_return(MDP, TRUE, fit, demos=fit.demonstrations)
    assert scores["stochastic_evd"] == pytest.approx(lost, rel=1e-9)


def test_held_out_data_say_where_they_started(fit):
    held = rv.simulate(MDP, fit.policy, 50, 5, seed=1, initial=np.eye(S)[3])
    scores = evaluate(fit, MDP, TRUE, held)
    np.testing.assert_array_equal(scores.initial, np.eye(S)[3])
    assert scores.starts == "where the data started"


def test_starts_are_matched_by_label(fit):
    here: Any = replace(fit, mdp=MDP.with_labels(LABELS, ["a", "b", "c"]))
    order = [3, 1, 0, 5, 4, 2]
    T = np.random.default_rng(0).dirichlet(np.ones(S), size=(S, A))
    there = rv.MDP(T, 0.9, state_labels=[LABELS[k] for k in order], action_labels=["a", "b", "c"])
    scores = evaluate(here, there, TRUE[order])
    assert scores.initial is not None
    np.testing.assert_allclose(scores.initial, (fit.demonstrations.starts / fit.demonstrations.starts.sum())[order])
    fewer = rv.MDP(T[:4, :, :4] / T[:4, :, :4].sum(axis=2, keepdims=True), 0.9, state_labels=LABELS[1:5])
    elsewhere = starts_of(fewer, None, fit.demonstrations, here.mdp)
    assert elsewhere.words == "uniform over the non-terminal states"  # some began where nobody can begin here


def test_worlds_are_judged_from_where_they_start():
    world = rv.environments.obstacleworld(size=4)
    fit = rv.NFXP(world.reward_model()).fit(world.mdp, world.demonstrate(50, seed=0))
    scores = world.evaluate(fit)
    assert scores.starts == "the model's start distribution"
    np.testing.assert_array_equal(scores.initial, world.mdp.initial)


def test_scores_are_a_dict_that_prints_and_pickles(fit):
    scores = evaluate(fit, MDP, TRUE)
    assert isinstance(scores, dict)
    again = pickle.loads(pickle.dumps(scores))
    assert again == scores
    assert (again.starts, again.notes) == (scores.starts, scores.notes)
    assert scores == dict(scores)
    assert type(scores | {"x": 1.0}) is dict
    text = str(scores)
    assert [line.split()[0] for line in text.splitlines() if line[:1].islower()][1:] == list(scores)
    assert "<table" in scores._repr_html_()


def test_fractional_starts_are_those_of_the_data_in_any_order_of_states():
    """A sum of fractions depends on the order of its terms; which starts the model has does not."""
    rng = np.random.default_rng(0)
    T = rng.dirichlet(np.ones(40), size=(40, 2))
    own = rv.MDP(T, discount=0.9, state_labels=list(range(100, 140)), action_labels=["a", "b"])
    for _ in range(20):
        demos = rv.Demonstrations.from_counts(np.ones((40, 2)), starts=rng.uniform(0.1, 1.0, size=40))
        order = rng.permutation(40)
        moves = T[order][:, :, order]
        other = rv.MDP(moves, 0.9, state_labels=(100 + order).tolist(), action_labels=["a", "b"])
        told = starts_of(other, None, demos, own)
        assert told.words == "where the data started"
        np.testing.assert_allclose(told.weights, (demos.starts / demos.starts.sum())[order], rtol=1e-12)


def test_single_metrics_of_a_fit_start_where_evaluate_does(fit):
    scores = evaluate(fit, MDP, TRUE, expert=rv.solve(MDP, TRUE).policy)
    assert scores.starts == "where the data started"
    expert, m = rv.solve(MDP, TRUE).policy, rv.metrics
    assert m.evd(MDP, TRUE, fit) == scores["evd"]
    assert m.stochastic_evd(MDP, TRUE, fit) == pytest.approx(scores["stochastic_evd"], rel=1e-12)
    assert m.population_nll(MDP, expert, fit) == pytest.approx(scores["population_nll"], rel=1e-12)
    assert m.excess_nll(MDP, expert, fit) == pytest.approx(scores["excess_nll"], rel=1e-12)
    truth = m.Truth(MDP, TRUE)
    assert (truth.evd(fit), truth.stochastic_evd(fit)) == (m.evd(MDP, TRUE, fit), m.stochastic_evd(MDP, TRUE, fit))
    starts = {"initial": scores.initial}
    for at in (
        lambda **k: m.expected_return(MDP, TRUE, fit, **k),
        lambda **k: m.expected_return(MDP, fit, expert, **k),
    ):
        assert at() == pytest.approx(at(**starts), rel=1e-12)
    uniform = MDP.start()
    assert m.stochastic_evd(MDP, TRUE, fit, initial=uniform) == m.stochastic_evd(MDP, TRUE, fit.policy)
    assert m.stochastic_evd(MDP, TRUE, fit, initial=uniform) != pytest.approx(m.stochastic_evd(MDP, TRUE, fit))
    own = MDP.replace(initial=uniform)
    assert m.stochastic_evd(own, TRUE, fit) == pytest.approx(m.stochastic_evd(MDP, TRUE, fit.policy), rel=1e-12)
