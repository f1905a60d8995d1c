"""Solves on a device against dense linear algebra; the true residual decides; stalls go to the host, or are said."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

import revealed as rv
from models import dense_matrix, loop, random_mdp, random_policy
from revealed import device_solvers
from revealed.device_model import DeviceModel, DeviceSolver, Placement
from revealed.device_solvers import DeviceChain
from revealed.errors import InvalidInput, InvalidOption, InvalidTransitions, SolverFailed, ValueDoesNotExist

S = 15
CASES = {
    "discounted": {"discount": 0.9},
    "near one": {"discount": 0.9999},
    "ends": {"discount": 1.0, "terminal": 2, "masked": True},
}


def model_of(case: str) -> rv.MDP:
    return random_mdp(S, 3, seed=2, **CASES[case])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_solves_agree_with_dense_ones_whatever_the_precision_inside(case, dtype):
    mdp = model_of(case)
    policy, b = random_policy(mdp, 1), np.random.default_rng(0).normal(size=(S, 3))
    A = dense_matrix(mdp, policy)
    chain = rv.Chain(mdp.to("cpu", dtype=dtype), policy)
    assert isinstance(chain._solver, DeviceSolver)
    for x, M in ((chain.solve(b), A), (chain.solve_transpose(b), A.T)):
        assert x.dtype == np.float64
        size = np.linalg.norm(b, axis=0) + np.linalg.norm(x, axis=0)
        assert np.all(np.linalg.norm(b - M @ x, axis=0) <= 1e-13 * size)
        np.testing.assert_allclose(x, np.linalg.solve(M, b), rtol=0, atol=1e-12 * np.linalg.cond(A))


def test_columns_start_values_and_blocks_change_nothing(monkeypatch):
    mdp = model_of("discounted")
    model, rng = mdp.to("cpu").on_device, np.random.default_rng(0)
    chain, b = model.chain(model.put(random_policy(mdp))), model.put(rng.normal(size=(S, 3)))
    x = model.get(chain.solve(b))
    near: Any = {"rtol": 0.0, "atol": 1e-11}
    np.testing.assert_allclose(model.get(chain.solve(b, start=b)), x, **near)
    np.testing.assert_array_equal(model.get(chain.solve(b, start=model.put(x))), x)  # nothing is left to do
    monkeypatch.setattr(device_solvers, "BLOCK", 2 * S)
    np.testing.assert_allclose(model.get(chain.solve(b)), x, **near)
    np.testing.assert_allclose(model.get(chain.solve(b[1])), x[:, 1], **near)
    assert not model.get(chain.solve(model.put(np.zeros((S, 3))))).any()


def test_where_iterations_stall_the_host_factors(monkeypatch):
    def stall(*_):
        raise SolverFailed("stalled")

    monkeypatch.setattr(device_solvers, "solve_rows", stall)
    mdp = model_of("ends")
    b, policy = np.random.default_rng(0).normal(size=(S, 3)), random_policy(mdp)
    device, host = rv.Chain(mdp.to("cpu"), policy), rv.Chain(mdp, policy)
    for x in (b, b[:, 0]):
        np.testing.assert_array_equal(device.solve(x), host.solve(x))
        np.testing.assert_array_equal(device.solve_transpose(x), host.solve_transpose(x))


def test_where_bicgstab_stalls_sweeps_finish_without_the_host():
    """One visit, on a long cycle: BiCGSTAB has no direction to go on from there. Sweeps shrink errors by γ each."""
    n = 100
    mdp = rv.MDP(np.roll(np.eye(n), 1, axis=1)[:, None], discount=0.99)
    policy, b = mdp.uniform_policy(), np.eye(n)[:, :2]
    A, model = dense_matrix(mdp, policy), mdp.to("cpu").on_device
    chain = DeviceChain(model.transitions, model.gamma, model.put(policy), model.going, rescue=lambda: None)
    for x, M in ((chain.solve(model.put(b)), A), (chain.solve_transpose(model.put(b)), A.T)):
        np.testing.assert_allclose(model.get(x), np.linalg.solve(M, b), rtol=0, atol=1e-11)


def test_without_a_host_a_stall_is_said():
    host = loop(1.0).to("cpu").on_device
    alone = replace(host, mdp=None)
    stays = alone.put(np.array([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(ValueDoesNotExist, match="agents would never stop"):
        alone.chain(stays)
    with jax.enable_x64(True):
        chain = replace(alone, gamma=0.5 * alone.gamma).chain(stays)
    assert isinstance(chain, DeviceChain)
    chain.gamma = alone.gamma  # singular, behind its back
    with pytest.raises(SolverFailed, match=r"stopped at a relative residual of 7\.1e-01\. Use mdp\.to\(\"host\"\)"):
        chain.solve(alone.put(np.ones(2)))  # the terminal state is solved, the other is not: √½ is left


# the model on its device


def test_arrays_come_back_as_they_went():
    model = model_of("ends").to("cpu").on_device
    rng = np.random.default_rng(0)
    for array in (rng.normal(size=S), rng.normal(size=(S, 3)), rng.normal(size=(S, 4, 2)).astype(np.float32)):
        there = model.put(array)
        assert there.shape == (*array.shape[1:], S)
        assert there.dtype == array.dtype
        np.testing.assert_array_equal(model.get(there), array)


def test_a_model_made_on_the_device_is_the_one_of_the_host():
    mdp = model_of("ends")
    host = mdp.to("cpu").on_device
    T = host.transitions
    made = DeviceModel.from_padded(T.index, T.p, 0.9, n_actions=3, terminal=mdp.terminal, feasible=mdp.feasible.T)
    b, policy = made.put(np.random.default_rng(0).normal(size=S)), made.put(random_policy(mdp))
    expected = rv.Chain(mdp.replace(discount=0.9), random_policy(mdp)).solve(model_b := host.get(b))
    np.testing.assert_allclose(made.get(made.chain(policy).solve(b)), expected, rtol=1e-12)
    assert model_b.shape == (S,)
    assert made.ends
    np.testing.assert_array_equal(np.asarray(made.mask) == 0.0, mdp.feasible.T)


def test_what_cannot_be_placed_is_named():
    mdp = model_of("discounted")
    model = mdp.to("cpu").on_device
    index, p = model.transitions.index, model.transitions.p
    with pytest.raises(InvalidOption, match=r"`kind`: expected one of .*cpu.*, host on this machine; got 'abacus'"):
        mdp.to("abacus")
    with pytest.raises(InvalidOption, match=r"`dtype`: expected one of float64, float32; got 'float16'"):
        mdp.to("cpu", dtype="float16")
    with pytest.raises(InvalidOption, match=rf"a whole number, 1 to {len(jax.devices('cpu'))} \(cpu\); got 99"):
        mdp.to("cpu", devices=99)
    with pytest.raises(InvalidOption, match=r"the model was placed on 99 × cpu, of which"):
        _ = Placement("cpu", 99).where
    with pytest.raises(InvalidTransitions, match=r"expected int32 \(W, S\) and \(A, W, S\) or \(W, S\)"):
        DeviceModel.from_padded(index, None if p is None else p[:, :4], 0.9, n_actions=3)
    with pytest.raises(InvalidInput, match=r"`n_actions`: expected a number that divides 9; got 2"):
        DeviceModel.from_padded(index, p, 0.9, n_actions=2)
    with pytest.raises(InvalidInput, match=rf"`array`: expected first axis {S}; got shape \(4,\)"):
        model.put(np.zeros(4))
