"""Rows spread over devices: the result does not depend on their number. Three devices are made of this CPU."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import revealed as rv
from models import random_mdp, random_policy, random_reward

S, COUNTS = 37, (1, 2, 3)  # 37 is a multiple of none of them but one

CODE = """
import json, sys
import numpy as np
import revealed as rv
from test_device_sharding import COUNTS, problem

mdp, policy, reward, features, demos = problem()
b = np.random.default_rng(0).normal(size=(mdp.n_states, 3))  # as many columns as the fit has: compiled once
out = {}
for n in COUNTS:
    placed = mdp.to("cpu", devices=n)
    chain, best = rv.Chain(placed, policy), rv.solve(placed, reward)
    fit = rv.CCP(rv.LinearReward(features), first_step=policy).fit(placed, demos)
    found = {"solve": chain.solve(b), "transpose": chain.solve_transpose(b), "value": best.value, "theta": fit.theta}
    index = placed.on_device.transitions.index
    rows = sorted(piece.data.shape[1] for piece in index.addressable_shards)
    out[n] = {name: x.tolist() for name, x in found.items()} | {"rows": rows}
print(json.dumps(out))
"""


def problem():
    mdp = random_mdp(S, 2, discount=0.95, terminal=2, masked=True)
    features = np.random.default_rng(3).normal(size=(S, 2))
    demos = rv.simulate(mdp, random_policy(mdp), n=40, length=10, seed=1)
    return mdp, random_policy(mdp), random_reward(mdp), features, demos


@pytest.fixture(scope="module")
def found():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=3"
    environment = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.path.dirname(__file__)}
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_states_are_shared_evenly_and_padded_to_a_multiple(found):
    assert {n: case["rows"] for n, case in found.items()} == {"1": [37], "2": [19, 19], "3": [13] * 3}


@pytest.mark.parametrize("what", ["solve", "transpose", "value", "theta"])
def test_the_result_is_the_same_for_every_number_of_devices(found, what):
    one = np.array(found["1"][what])
    for n in COUNTS:
        np.testing.assert_allclose(np.array(found[str(n)][what]), one, rtol=0, atol=1e-12 * np.abs(one).max())


def test_it_is_that_of_the_host(found):
    mdp, policy, reward, features, demos = problem()
    np.testing.assert_allclose(found["3"]["value"], rv.solve(mdp, reward).value, rtol=1e-11)
    fit = rv.CCP(rv.LinearReward(features), first_step=policy).fit(mdp, demos)
    np.testing.assert_allclose(found["3"]["theta"], fit.theta, rtol=1e-9)
