"""The objective on a device is the host's: value, gradient, curvature, and what those who judge a fit ask for."""

import numpy as np
import pytest

import revealed as rv
from revealed import device_parts
from revealed.curvature import can_use_hessian
from revealed.device_cases import DeviceCase
from revealed.device_model import DeviceModel
from revealed.device_parts import AffinePart, DeviceRows, LayeredPart, SolvedPart
from revealed.device_pi_tilde import DeviceGiven, DeviceOwn
from revealed.device_rewards import DeviceLinear
from revealed.linear_solvers import Work
from revealed.objective import Case, Objective
from revealed.optimize import Settings, Trace, maximise
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from revealed.progress import Progress
from revealed.rewards.base import lift_reward
from rings import KINDS, N_STATES, ring


def host_objective(kind, reward, own=False, l2=0.0):
    here = ring(kind)
    choice = OwnPolicy(here.mdp) if own else GivenPolicy(here.mdp, here.policy)
    return Objective(lift_reward(reward, here.mdp), [Case(here.mdp, here.counts, choice)], l2)


def device_objective(kind, reward, own=False, l2=0.0):
    here = ring(kind)
    model = here.placed.on_device
    choice = DeviceOwn(model) if own else DeviceGiven(model, model.put(here.policy))
    case = DeviceCase(model, DeviceRows.of(model, here.counts), choice, here.placed)
    return Objective(lift_reward(reward, here.mdp), [case], l2)


def assert_same_part(found, wanted):
    for name in ("policy", "log_policy", "value", "q", "pi_tilde", "log_likelihood", "pull"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-10, atol=1e-10, err_msg=name)
    assert np.array_equal(found.choices.rho, wanted.choices.rho)
    assert np.array_equal(found.choices.feasible, wanted.choices.feasible)
    np.testing.assert_allclose(found.choices.log_policy, wanted.choices.log_policy, rtol=1e-10)


def assert_same_curvature(found, wanted):
    for name in ("information", "hessian", "slopes"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-9, err_msg=name)
    for one, other in zip(found.spread, wanted.spread, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("own", [False, True], ids=["given", "own"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_part_on_the_device_is_the_hosts(kind, own):
    reward, theta = rv.LinearReward(ring(kind).pairs), ring(kind).theta
    found = device_objective(kind, reward, own).at(theta).parts[0]
    wanted = host_objective(kind, reward, own).at(theta).parts[0]
    moving = LayeredPart if kind == "unrolled" else SolvedPart
    assert type(found) is (moving if own else AffinePart)
    assert_same_part(found, wanted)
    assert_same_curvature(found, wanted)


@pytest.mark.parametrize("own", [False, True], ids=["given", "own"])
def test_features_of_states_and_weights_of_states(own):
    here = ring("discounted")
    for reward, theta in (
        (rv.LinearReward(here.states), here.theta),
        (rv.TabularReward(N_STATES), np.linspace(-2, -1, N_STATES)),
    ):
        found = device_objective("discounted", reward, own).at(theta).parts[0]
        wanted = host_objective("discounted", reward, own).at(theta).parts[0]
        assert_same_part(found, wanted)
        if reward.n_params == 3:
            assert_same_curvature(found, wanted)


@pytest.mark.parametrize("own", [False, True], ids=["given", "own"])
def test_the_gradient_is_the_slope_and_the_hessian_the_slope_of_the_gradient(own):
    objective = device_objective("discounted", rv.LinearReward(ring("discounted").pairs), own, l2=0.01)
    theta, h = ring("discounted").theta, 1e-5
    point = objective.at(theta)
    for k, step in enumerate(h * np.eye(3)):
        up, down = objective.at(theta + step), objective.at(theta - step)
        assert point.gradient[k] == pytest.approx((up.value - down.value) / (2 * h), abs=1e-8)
        np.testing.assert_allclose(point.hessian[k], (up.gradient - down.gradient) / (2 * h), atol=1e-6)


@pytest.mark.parametrize(("kind", "part"), [("discounted", SolvedPart), ("unrolled", LayeredPart)])
def test_a_network_has_the_slope_that_it_has_on_the_host(kind, part):
    network = rv.NeuralReward(ring(kind).states, hidden=(4,))
    theta = network.init(1)
    found = device_objective(kind, network, own=True).at(theta)
    wanted = host_objective(kind, network, own=True).at(theta)
    assert type(found.parts[0]) is part
    np.testing.assert_allclose(found.value, wanted.value, rtol=1e-12)
    np.testing.assert_allclose(found.gradient, wanted.gradient, rtol=1e-10, atol=1e-12)


def test_given_a_policy_features_are_solved_for_once():
    objective = device_objective("discounted", rv.LinearReward(ring("discounted").pairs))
    work = objective.cases[0].pi_tilde.work
    for scale in (0.5, 1.0, 2.0):
        point = objective.at(scale * ring("discounted").theta)
        assert point.gradient.shape == point.hessian[0].shape == (3,)
    assert work.solves == 4  # a column for each feature, and one for the entropy of π̃


@pytest.mark.parametrize("own", [False, True], ids=["given", "own"])
def test_slopes_held_one_parameter_at_a_time_are_the_same(own, monkeypatch):
    reward, theta = rv.LinearReward(ring("discounted").pairs), ring("discounted").theta
    wanted = host_objective("discounted", reward, own).at(theta).parts[0]
    monkeypatch.setattr(device_parts, "MOST_STORED", 2 * 3 * N_STATES)  # two of three: blocks of different width
    assert_same_curvature(device_objective("discounted", reward, own).at(theta).parts[0], wanted)


def test_rows_are_rounded_up_and_count_once():
    """Eleven states were seen; on the device they are as many as where all twelve were, and nothing counts twice."""
    here, reward = ring("discounted"), rv.LinearReward(ring("discounted").pairs)
    counts = np.where(np.arange(N_STATES)[:, None] == 4, 0.0, here.counts)
    model = here.placed.on_device
    rows = DeviceRows.of(model, counts)
    assert rows.weights.shape == (11, 3)
    assert rows.rho.shape == DeviceRows.of(model, here.counts).rho.shape == (3, 16)
    found = DeviceCase(model, rows, DeviceGiven(model, model.put(here.policy))).at(reward, here.theta, {})
    wanted = Case(here.mdp, counts, GivenPolicy(here.mdp, here.policy)).at(reward, here.theta, {})
    assert_same_part(found, wanted)
    assert_same_curvature(found, wanted)


def test_a_reward_that_is_not_finite_has_no_value():
    objective = device_objective("discounted", rv.TabularReward(N_STATES))
    theta = np.zeros(N_STATES)
    theta[N_STATES - 1] = np.inf  # a terminal state: nothing is earned there
    assert np.isfinite(objective.cases[0].at(objective.reward, theta, {}).log_likelihood)
    theta[0] = np.inf
    point = objective.at(theta)
    assert point.value == -np.inf
    assert str(point.problem) == "the reward is not finite at these parameters."


def test_a_reward_is_brought_over_once():
    here = ring("discounted")
    objective = device_objective("discounted", rv.LinearReward(here.pairs))
    case, features = objective.cases[0], objective.at(here.theta).parts[0].reward.features
    case.at(rv.TabularReward(N_STATES), np.zeros(N_STATES), {})
    case.at(rv.LinearReward(here.states), here.theta, {})
    assert objective.at(0.5 * here.theta).parts[0].reward.features is features
    assert len(case.rewards) == 2


def test_a_model_that_only_the_device_knows_is_estimated_by_the_same_search():
    """Features and moves that never were on the host: what models of 10⁷ states are."""
    here = ring("discounted")
    known = here.placed.on_device
    T = known.transitions
    model = DeviceModel.from_padded(T.index, T.p, 0.95, terminal=here.mdp.terminal, feasible=here.mdp.feasible.T)
    reward = DeviceLinear(model, known.put(here.pairs.transpose(0, 2, 1)))
    case = DeviceCase(model, DeviceRows.of(model, here.counts), DeviceGiven(model, model.put(here.policy)))
    objective = Objective(reward, [case])
    assert can_use_hessian(objective)
    found = maximise(objective, np.zeros(3), Settings(), Trace(Progress("fit", enabled=False), Work()))
    host = host_objective("discounted", rv.LinearReward(here.pairs))
    wanted = maximise(host, np.zeros(3), Settings(), Trace(Progress("fit", enabled=False), Work()))
    np.testing.assert_allclose(found.best.theta, wanted.best.theta, rtol=1e-9)
    assert found.reached
    assert found.iterations == wanted.iterations
