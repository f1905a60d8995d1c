"""A fit on a device is the host's fit: the same estimates, the same verdicts, and all that a fit can be asked."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from networks import GOAL_TRIPS
from revealed.device_estimation import DeviceRun
from revealed.estimation import Options, Run
from revealed.goal_estimation import GoalRun, run_for
from rings import KINDS, N_STATES, ring

METHODS = {"NFXP": rv.NFXP, "MCEIRL": rv.MCEIRL, "CCP": rv.CCP, "NPL": rv.NPL}


def both(method: str, reward: Any, kind: str = "discounted", demos: Any = None, **options: Any) -> Any:
    """The same fit on the host and on the device."""
    here = ring(kind)
    estimator = METHODS[method](reward, **{"first_step": "smoothed", "progress": False} | options)
    demos = here.seen if demos is None else demos
    return estimator.fit(here.mdp, demos), estimator.fit(here.placed, demos)


def assert_same_fit(host, device, rtol=1e-8):
    assert device.mdp.device is not None
    assert device.status.code == host.status.code
    assert device.iterations == host.iterations
    assert device.settled == host.settled
    assert device.llf == pytest.approx(host.llf, rel=1e-10)
    scale = max(1.0, float(np.abs(host.theta).max()))
    np.testing.assert_allclose(device.theta, host.theta, rtol=rtol, atol=rtol * scale)
    for name in ("policy", "log_policy", "value", "q", "pi_tilde", "reward"):
        np.testing.assert_allclose(getattr(device, name), getattr(host, name), rtol=1e-7, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("method", ["CCP", "NPL", "NFXP"])
@pytest.mark.parametrize("kind", KINDS)
def test_estimates_are_those_of_the_host(kind, method):
    start = "ccp" if kind != "discounted" and method == "NFXP" else None
    host, device = both(method, rv.LinearReward(ring(kind).pairs), kind, start=start)
    assert host.status.code == "converged"
    assert_same_fit(host, device)


@pytest.mark.parametrize("method", ["CCP", "MCEIRL"])
def test_with_features_of_states_sparse_ones_and_a_weight_per_state(method):
    here = ring("discounted")
    for reward, l2 in (
        (rv.LinearReward(here.states), 0.0),
        (rv.LinearReward(sp.csr_array(here.states)), 0.0),
        (rv.TabularReward(N_STATES), 0.01),  # without a penalty the few choices of a state may run away
    ):
        host, device = both(method, reward, l2=l2, tol=1e-9)
        assert host.status.code == "converged"
        assert_same_fit(host, device)


@pytest.mark.parametrize("method", ["CCP", "NFXP"])
def test_networks_take_the_same_steps(method):
    host, device = both(method, rv.NeuralReward(ring("discounted").pairs, hidden=(4,)), max_iter=4)
    assert host.status.code == "iteration_limit"
    assert_same_fit(host, device)


@pytest.mark.parametrize("method", ["CCP", "NFXP"])
def test_with_the_papers_weights_and_a_penalty(method):
    reward = rv.LinearReward(ring("discounted").pairs)
    assert_same_fit(*both(method, reward, weighting="occupancy"))
    assert_same_fit(*both(method, reward, l2=0.1))


def test_verdicts_are_those_of_the_host():
    here = ring("discounted")
    twice = here.pairs[:, :, [0, 1, 0]]
    surely = np.zeros((N_STATES, 3))
    surely[0, 0] = 3.0
    for features, counts, max_iter, code in (
        (twice, here.counts, None, "unidentified"),
        (here.pairs, surely, None, "separated"),
        (here.pairs, here.counts, 1, "iteration_limit"),
    ):
        demos = rv.Demonstrations.from_counts(counts)
        host, device = both("CCP", rv.LinearReward(features), demos=demos, max_iter=max_iter)
        assert host.status.code == code
        assert (device.status.code, device.status.message) == (host.status.code, host.status.message)


def test_single_precision_inside_gives_double_precision_outside():
    here = ring("discounted")
    host = rv.CCP(rv.LinearReward(here.pairs), first_step="smoothed").fit(here.mdp, here.demos)
    single = here.mdp.to("cpu", dtype="float32", devices=1)
    device = rv.CCP(rv.LinearReward(here.pairs), first_step="smoothed").fit(single, here.demos)
    np.testing.assert_allclose(device.theta, host.theta, rtol=1e-9)


@pytest.fixture(scope="module")
def pair():
    return both("NFXP", rv.LinearReward(ring("discounted").pairs))


@pytest.mark.parametrize("kind", ["hessian", "opg", "robust", "cluster"])
def test_standard_errors_are_those_of_the_host(pair, kind):
    host, device = pair
    np.testing.assert_allclose(device.cov_params(kind), host.cov_params(kind), rtol=1e-7)


def test_resampled_errors_are_those_of_the_host(pair):
    host, device = (fit.bootstrap(reps=3, seed=0, jobs=1, progress=False) for fit in pair)
    np.testing.assert_allclose(device.theta, host.theta, rtol=1e-6)


def test_a_fit_can_be_asked_what_the_hosts_can_be_asked(pair):
    host, device = pair
    told = [str(fit.summary()).splitlines() for fit in pair]
    kept = [[line for line in lines if "Seconds" not in line and "norm" not in line] for lines in told]
    assert kept[0] == kept[1]
    assert np.array_equal(host.simulate(5, 6, seed=0).counts, device.simulate(5, 6, seed=0).counts)
    moved = [fit.counterfactual(params={"theta0": -3.0}) for fit in pair]
    np.testing.assert_allclose(moved[1].after.policy, moved[0].after.policy, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(moved[1].after.value, moved[0].after.value, rtol=1e-8)


def test_files_go_to_other_machines_without_a_device_and_pickles_with_it(pair, tmp_path):
    _, device = pair
    loaded = rv.load(device.save(tmp_path / "fit"))
    assert loaded.mdp.device is None
    np.testing.assert_array_equal(loaded.theta, device.theta)
    np.testing.assert_allclose(loaded.bse, device.bse, rtol=1e-7)
    again = pickle.loads(pickle.dumps(device))
    assert again.mdp.device == device.mdp.device
    np.testing.assert_allclose(again.bse, device.bse, rtol=1e-12)


def test_a_callback_sees_the_same_iterates():
    seen = []
    both("CCP", rv.LinearReward(ring("discounted").pairs), callback=lambda it: seen.append(it))
    host, device = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    for one, other in zip(host, device, strict=True):
        np.testing.assert_allclose(other.policy, one.policy, rtol=1e-9, atol=1e-12)
        assert other.objective == pytest.approx(one.objective, rel=1e-12)


def test_trips_with_goals_and_factorisations_are_the_hosts():
    trips = GOAL_TRIPS[next(iter(GOAL_TRIPS))]
    placed = trips.mdp.to("cpu", devices=1)
    assert type(run_for("CCP", trips.reward, Options(), placed, trips.demos)) is GoalRun
    wanted, found = (rv.NFXP(trips.reward).fit(mdp, trips.demos) for mdp in (trips.mdp, placed))
    np.testing.assert_array_equal(found.theta, wanted.theta)
    here = ring("discounted")
    reward = rv.LinearReward(here.pairs)
    assert type(run_for("CCP", reward, Options(), here.placed, here.demos)) is DeviceRun
    on_host = run_for("CCP", reward, Options(solver="lu"), here.placed, here.demos)
    assert type(on_host) is Run
    assert on_host.mdp.device is None
