"""The bootstrap over agents (theory N6): weights are repetitions, streams do not depend on workers, failures show."""

import time
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed import bootstrap
from revealed.bootstrap import Replication, draw_bounds, draw_weights, resample
from revealed.errors import InvalidInput, InvalidOption
from test_inference import bus_fit, one_state
from test_transition_models import BINS, bus_landing, drives


def repeated(demos: Any, weights: Any) -> rv.Demonstrations:
    """Every agent's trajectory written out as often as its weight says."""
    steps = demos.steps
    paths = []
    for agent, often in enumerate(weights):
        own = steps.agent == agent
        path = (np.append(steps.state[own], steps.next_state[own][-1]), steps.action[own])
        paths += [path] * int(often)
    return rv.Demonstrations.from_trajectories(paths, demos.n_states, demos.n_actions)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (rv.NFXP, {}),
        (rv.CCP, {"first_step": "smoothed"}),
        (rv.NPL, {"updates": 3}),
        (rv.NFXP, {"weighting": "occupancy", "first_step": "smoothed"}),
    ],
)
def test_a_replication_is_the_estimate_from_agents_written_out(method, options):
    """First step, transitions and start states are those of the resample, too."""
    fit = bus_fit(method, **options)
    found = fit.bootstrap(reps=3, seed=5)
    for k, r in enumerate(found.index):
        copies = repeated(fit.demonstrations, draw_weights(fit.demonstrations.n_agents, 5, int(r)))
        mdp: Any = rv.MDP(rv.estimate_transitions(copies, bus_landing()), 0.9)
        again = method(fit.reward_model, tol=1e-11, **options).fit(mdp, copies)
        np.testing.assert_allclose(found.psi[k], mdp.estimated.psi, atol=1e-9)
        np.testing.assert_allclose(found.theta[k], again.theta, rtol=1e-5)


def test_on_a_horizon_agents_are_resampled_there():
    demos = drives(n=60, length=8)
    mdp = rv.MDP(rv.estimate_transitions(demos, bus_landing()), 1.0, initial=np.eye(BINS)[0]).unroll(8)
    features = rv.environments.rust_bus(bins=BINS).features
    fit = rv.NFXP(rv.LinearReward(features[:, :, :1])).fit(mdp, demos)
    found = fit.bootstrap(reps=3, seed=1)
    copies = repeated(demos, draw_weights(60, 1, int(found.index[0])))
    again = rv.NFXP(rv.LinearReward(features[:, :, :1])).fit(
        rv.MDP(rv.estimate_transitions(copies, bus_landing()), 1.0, initial=np.eye(BINS)[0]).unroll(8), copies
    )
    np.testing.assert_allclose(found.theta[0], again.theta, rtol=1e-6)


def test_weights_are_draws_with_replacement_that_the_seed_fixes():
    weights = np.array([draw_weights(50, 3, r) for r in range(200)])
    assert (weights.sum(axis=1) == 50).all()
    np.testing.assert_array_equal(weights[7], draw_weights(50, 3, 7))
    assert len({tuple(w) for w in weights}) == 200
    assert weights.var() == pytest.approx(1 - 1 / 50, rel=0.05)  # of a multinomial with mean one


def test_the_result_does_not_depend_on_the_workers():
    one, two = bus_fit().bootstrap(reps=12, jobs=1), bus_fit().bootstrap(reps=12, jobs=2)
    np.testing.assert_array_equal(one.theta, two.theta)
    np.testing.assert_array_equal(one.psi, two.psi)


def test_the_bootstrap_of_a_logit_agrees_with_its_formula():
    mdp, reward, demos = one_state(0.3, agents=300, length=5)
    fit = rv.NFXP(reward).fit(mdp, demos)
    found = fit.with_errors("bootstrap", reps=150)
    assert found.bse["odds"] == pytest.approx(fit.with_errors("cluster").bse["odds"], rel=0.15)
    low, high = found.conf_int().to_numpy()[0]
    shares = np.array([draw_weights(300, 0, r) @ demos.by_agent.toarray()[:, 1] / 1500 for r in range(150)])
    odds = np.log(shares / (1 - shares))
    np.testing.assert_allclose([low, high], np.quantile(odds, [0.025, 0.975], method="weibull"), rtol=1e-6)


@pytest.mark.parametrize("draws", [39, 79, 399])
def test_one_more_draw_falls_beyond_each_end_as_often_as_the_tails_say(draws):
    """Of B + 1 exchangeable draws each is as likely to be at any rank: (B + 1)p of them must lie beyond an end."""
    low, high = draw_bounds(np.random.default_rng(0).permutation(np.arange(1.0, draws + 1)), (0.025, 0.975))
    np.testing.assert_allclose((low, high), (0.025 * (draws + 1), 0.975 * (draws + 1)), rtol=1e-12)


def test_failures_are_counted_and_shown():
    """One agent of six ever takes the other action; without it the weights run away."""
    mdp, reward, _ = one_state(0.5, 2, 2)
    paths = [([0, 0, 0], [0, 1, 0])] + [([0, 0, 0], [0, 0, 0])] * 5
    fit = rv.NFXP(reward).fit(mdp, rv.Demonstrations.from_trajectories(paths, 1, 2))
    found = fit.bootstrap(reps=40)
    without = sum(draw_weights(6, 0, r)[0] == 0 for r in range(40))
    assert 0 < without < 38
    assert found.failures == {"separated": without}
    assert found.n_used == 40 - without == len(found.params)
    assert f"{without} failed (separated: {without})" in str(found)
    assert "too small" in str(found)


def test_where_nearly_all_fail_there_is_no_spread():
    with pytest.raises(InvalidOption, match="1 of 10 succeeded \\(separated: 9\\)"):
        resample(lambda w: Replication(np.zeros(1), np.zeros(0), "" if calls() else "separated"), 5, ("a",), reps=10)


def calls(count=[0]):  # noqa: B006 (the list is the memory)
    count[0] += 1
    return count[0] == 1


def test_ctrl_c_keeps_what_was_finished():
    done = []

    def refit(weights):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(weights)
        return Replication(np.array([weights[0]]), np.zeros(0))

    found = resample(refit, 5, ("a",), reps=10, jobs=1)
    assert found.interrupted
    assert found.theta.reshape(-1).tolist() == [w[0] for w in done]
    assert "4 replications of 10 (interrupted)" in str(found)


def test_workers_hand_over_what_they_have_done_before_long(monkeypatch):
    """Else an interrupt of a long bootstrap would lose all of it: pieces are some seconds' work, not a share."""
    handed = []
    monkeypatch.setattr(bootstrap, "each", lambda function, pieces, jobs: handed.extend(pieces) or [])

    def refit(weights):
        time.sleep(2.0 * bootstrap.PIECE / 100)
        return Replication(weights, np.zeros(0))

    list(bootstrap._replications(refit, 5, list(range(5001)), seed=0, jobs=2))
    numbers = [r for *_, piece in handed for r in piece]
    assert numbers == list(range(1, 5001))
    assert max(len(piece) for *_, piece in handed) <= 50


def test_after_ctrl_c_the_errors_use_what_there_is_and_a_new_call_goes_on(monkeypatch):
    fit, whole = bus_fit(), bus_fit().bootstrap(reps=8, jobs=1)
    calls, once = [], type(fit.estimator).refit

    def stop_after_five(self, *arguments):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return once(self, *arguments)

    monkeypatch.setattr(type(fit.estimator), "refit", stop_after_five)
    told = fit.with_errors("bootstrap", reps=8, jobs=1)
    np.testing.assert_allclose(told.bse, np.sqrt(np.diag(np.cov(whole.theta[:5], rowvar=False))))
    _ = told.pvalues, told.conf_int(), str(told.summary())
    assert len(calls) == 6, "what was interrupted began again by itself"
    np.testing.assert_array_equal(told.bootstrap().theta, whole.theta)
    assert len(calls) == 9  # the three that were missing


def test_parameters_that_choices_cannot_see_have_no_bootstrap_error():
    fit = bus_fit()
    features = rv.environments.rust_bus(bins=BINS).features
    copies = np.concatenate([features, 2.0 * features[:, :, 1:]], axis=2)
    twice = rv.NFXP(rv.LinearReward(copies, names=["RC", "theta11", "copy"])).fit(fit.mdp, fit.demonstrations)
    found = twice.with_errors("bootstrap", reps=20)
    assert found.bse.isna().tolist() == [False, True, True]
    assert found.conf_int().isna().all(axis=1).tolist() == [False, True, True]
    assert found.bse["RC"] == pytest.approx(fit.with_errors("bootstrap", reps=20).bse["RC"], rel=1e-5)


def test_a_bootstrap_is_computed_once_and_kept():
    fit = bus_fit()
    first = fit.bootstrap(reps=4)
    assert fit.bootstrap(reps=4) is first
    assert fit.bootstrap(reps=4, seed=1) is not first
    assert fit.with_errors("bootstrap", reps=4).bootstrap() is first


def test_what_is_estimated_again_is_told():
    assert "θ and the transitions re-estimated" in str(bus_fit().bootstrap(reps=2))
    ccp = bus_fit(rv.CCP, first_step="smoothed")
    assert "θ, the first step and the transitions" in str(ccp.bootstrap(reps=2))
    given = bus_fit(rv.CCP, first_step=ccp.pi_tilde)
    assert "first step" not in str(given.bootstrap(reps=2))


def test_without_agents_there_is_nothing_to_resample():
    fit = bus_fit()
    counts = rv.NFXP(fit.reward_model).fit(fit.mdp, rv.Demonstrations.from_counts(fit.demonstrations.counts))
    with pytest.raises(InvalidOption, match="at least two agents"):
        counts.bootstrap()


@pytest.mark.parametrize("options", [{"reps": 1}, {"reps": 2.5}, {"seed": -1}, {"jobs": 0}])
def test_options_are_checked(options):
    (name,) = options
    with pytest.raises(InvalidInput, match=name):
        bus_fit().bootstrap(**options)
    with pytest.raises(InvalidInput, match=name):
        bus_fit().with_errors("bootstrap", **options)


@pytest.mark.parametrize("weights", [np.ones(3), np.full(30, -1.0), np.full(30, np.nan), "all"])
def test_agent_weights_are_checked(weights):
    with pytest.raises(InvalidInput, match="weights"):
        drives().reweighted(weights)


def test_weights_survive_lifting_subsets_and_repetition():
    demos = drives(n=6, length=4)
    weights = np.array([2.0, 0.0, 1.0, 3.0, 1.0, 0.5])
    mdp = rv.MDP(rv.estimate_transitions(demos, bus_landing()), 1.0).unroll(4)
    copies = demos.reweighted(weights)
    np.testing.assert_allclose(copies.lift(mdp).counts, demos.lift(mdp).reweighted(weights).counts)
    np.testing.assert_allclose(copies.lift(mdp).starts, demos.lift(mdp).reweighted(weights).starts)
    np.testing.assert_allclose(copies.subset([0, 3]).counts, demos.subset([0, 3]).reweighted(weights[[0, 3]]).counts)
    np.testing.assert_allclose(copies.reweighted(weights).counts, demos.reweighted(weights**2).counts)
    discounted = demos.discount_visits(0.8).reweighted(weights)
    by_hand = sum(w * demos.subset([i]).discount_visits(0.8).weights for i, w in enumerate(weights))
    np.testing.assert_allclose(discounted.weights, by_hand)
