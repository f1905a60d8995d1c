"""`callback=` follows a search: it sees every iterate as it is, and changes nothing."""

import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

import revealed as rv
from models import draw, random_mdp
from revealed.optimize import Iterate

METHODS = [rv.NFXP, rv.MCEIRL, rv.CCP, rv.NPL]
OPTIMIZERS = ["newton", "lbfgs", "adam"]
MDP = random_mdp(10, 3, seed=1, masked=True, terminal=1, initial=True)
FEATURES = np.random.default_rng(0).normal(size=(10, 3, 2))
DEMOS = draw(MDP, FEATURES @ np.array([1.0, -0.5]), 300, 30)
REWARD = rv.LinearReward(FEATURES)


def follow(method: Any = rv.NFXP, reward: Any = REWARD, **options: Any) -> tuple[rv.Fit, list[Iterate]]:
    """A fit and what a callback saw of it."""
    seen: list[Iterate] = []
    return method(reward, callback=seen.append, **options).fit(MDP, DEMOS), seen


@pytest.fixture(scope="module", params=METHODS)
def method(request) -> Any:
    return request.param


@pytest.fixture(scope="module", params=OPTIMIZERS)
def followed(method, request) -> tuple[rv.Fit, list[Iterate]]:
    return follow(method, optimizer=request.param, tol=1e-4, max_iter=40)


def test_every_iterate_is_seen_with_its_number_update_objective_and_gradient(followed):
    fit, seen = followed
    assert len(seen) == len(fit.history) > 3
    assert [point.iteration for point in seen] == list(range(len(seen)))
    for name in ("update", "objective", "gradient_norm"):
        assert [getattr(point, name) for point in seen] == list(fit.history[name])


def test_reward_policy_and_objective_of_an_iterate_are_those_of_its_parameters(followed):
    fit, seen = followed
    for point in (seen[0], seen[len(seen) // 2], seen[-1]):
        np.testing.assert_allclose(point.reward, FEATURES @ point.theta, atol=1e-14)
        np.testing.assert_allclose(np.exp(point.log_policy), point.policy, atol=1e-15)
        where = DEMOS.counts > 0
        mean = float((DEMOS.counts[where] * point.log_policy[where]).sum() / DEMOS.counts.sum())
        assert point.objective == pytest.approx(mean, rel=1e-12)
        if fit.method in ("NFXP", "MCE-IRL"):
            np.testing.assert_allclose(point.policy, rv.solve(MDP, point.reward).policy, atol=1e-9)


def test_the_first_iterate_is_the_start(followed):
    np.testing.assert_array_equal(followed[1][0].theta, np.zeros(2))


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_the_last_iterate_is_the_estimate(method, optimizer):
    fit, seen = follow(method, optimizer=optimizer, tol=1e-3, learning_rate=0.1)
    for name in ("theta", "policy", "log_policy", "reward"):
        np.testing.assert_array_equal(getattr(seen[-1], name), getattr(fit, name))
    assert (seen[-1].objective, seen[-1].gradient_norm) == (fit.objective, fit.gradient_norm)


def test_newton_takes_one_more_step_after_the_last_iterate_once_the_rule_is_met(method):
    fit, seen = follow(method, optimizer="newton", tol=1e-4)
    assert fit.gradient_norm < seen[-1].gradient_norm <= 1e-4
    assert 0.0 < np.abs(fit.theta - seen[-1].theta).max() < 1e-3
    short, seen = follow(
        method, optimizer="newton", tol=1e-12, max_iter=2, **({"updates": 1} if method is rv.NPL else {})
    )
    assert short.status.code == "iteration_limit"  # the rule was not met, so there is no such step
    np.testing.assert_array_equal(seen[-1].theta, short.theta)


def test_what_choices_cannot_see_is_taken_out_of_the_estimate_after_the_last_iterate():
    twins = rv.LinearReward(np.concatenate([FEATURES, FEATURES[:, :, :1]], axis=2))
    fit, seen = follow(reward=twins, optimizer="lbfgs", start=[1.0, 0.0, -1.0])
    assert fit.status.code == "unidentified"
    assert fit.theta[0] == pytest.approx(fit.theta[2])
    assert seen[-1].theta[0] - seen[-1].theta[2] == pytest.approx(2.0, abs=0.1)
    np.testing.assert_allclose(seen[-1].policy, fit.policy, atol=1e-8)


def test_updates_of_npl_are_counted_and_iterations_go_on_through_them():
    fit, seen = follow(rv.NPL, updates=4)
    assert sorted({point.update for point in seen}) == [1, 2, 3, 4]
    assert fit.updates == 4
    assert (np.diff([point.update for point in seen]) >= 0).all()
    assert [point.iteration for point in seen] == list(range(len(seen)))


def test_an_update_begins_with_the_parameters_of_the_last_one_under_its_policy():
    _, seen = follow(rv.NPL, updates=2, optimizer="lbfgs", tol=1e-3)
    second = next(k for k, point in enumerate(seen) if point.update == 2)
    np.testing.assert_array_equal(seen[second].theta, seen[second - 1].theta)
    assert np.abs(seen[second].policy - seen[second - 1].policy).max() > 1e-6


def test_the_search_for_a_start_is_update_zero():
    _, seen = follow(start="ccp")
    assert [point.update for point in seen] == sorted(point.update for point in seen)
    assert {point.update for point in seen} == {0, 1}


def test_a_reward_of_states_is_seen_per_pair():
    _, seen = follow(reward=rv.TabularReward(10), l2=1e-3, max_iter=3)
    assert all(point.reward.shape == MDP.feasible.shape for point in seen)
    np.testing.assert_array_equal(seen[-1].reward, np.tile(seen[-1].theta[:, None], MDP.n_actions))


def test_iterates_that_are_kept_stay_what_they_were():
    kept: list[Iterate] = []
    then: list[tuple[np.ndarray, ...]] = []

    def keep(point: Iterate) -> None:
        kept.append(point)
        then.append((point.theta.copy(), point.policy.copy(), point.reward.copy()))

    rv.NPL(REWARD, callback=keep).fit(MDP, DEMOS)
    for point, arrays in zip(kept, then, strict=True):
        for now, before in zip((point.theta, point.policy, point.reward), arrays, strict=True):
            np.testing.assert_array_equal(now, before)
    with pytest.raises(FrozenInstanceError):
        kept[0].iteration = 7  # pyright: ignore[reportAttributeAccessIssue]


def test_an_iterate_can_be_judged_like_a_fit():
    truth = rv.metrics.Truth(MDP, np.where(MDP.feasible, FEATURES @ [1.0, -0.5], 0.0))
    fit, seen = follow(optimizer="lbfgs")
    assert truth.evaluate(seen[-1], DEMOS) == truth.evaluate(fit)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_listening_does_not_change_the_estimate(method, optimizer):
    alone = method(REWARD, optimizer=optimizer, max_iter=20).fit(MDP, DEMOS)
    fit = method(REWARD, optimizer=optimizer, max_iter=20, callback=lambda point: "ignored").fit(MDP, DEMOS)
    for name in ("theta", "policy", "reward", "status", "iterations", "updates", "objective"):
        np.testing.assert_array_equal(getattr(fit, name), getattr(alone, name))


def test_a_fit_that_was_followed_can_be_pickled():
    fit, _ = follow()
    again = pickle.loads(pickle.dumps(rv.NFXP(REWARD, callback=lambda point: None).fit(MDP, DEMOS)))
    np.testing.assert_array_equal(again.theta, fit.theta)
    assert "callback" not in fit.options


@pytest.mark.parametrize("given", [3, "print", [print], False])
def test_what_cannot_be_called_is_refused_before_the_work(given):
    with pytest.raises(rv.errors.InvalidOption, match="`callback`: expected a function"):
        rv.CCP(REWARD, callback=given)


class OwnError(Exception):
    """Something that only the caller knows of."""


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("error", [OwnError, ValueError, rv.errors.SolverFailed, rv.errors.ValueDoesNotExist])
@pytest.mark.parametrize("at", [0, 2])
def test_what_it_raises_reaches_the_caller(method, optimizer, error, at):
    def fails(point: Iterate) -> None:
        if point.iteration == at:
            raise error("from the callback")

    with pytest.raises(error, match="from the callback"):
        method(REWARD, optimizer=optimizer, callback=fails).fit(MDP, DEMOS)


def test_an_interrupt_ends_the_search_and_keeps_what_was_reached():
    seen: list[Iterate] = []

    def enough(point: Iterate) -> None:
        seen.append(point)
        if point.iteration == 2:
            raise KeyboardInterrupt

    fit = rv.NPL(REWARD, callback=enough).fit(MDP, DEMOS)
    assert fit.status.interrupted
    assert len(seen) == 3
    np.testing.assert_array_equal(fit.theta, seen[-1].theta)
