"""Results cannot be edited in place: an array that a fit, a model or demonstrations hand out is theirs, so that writing
to it is an error, or it is a copy. Else `P = fit.policy; P[3] = …` would change the fit behind its likelihood."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import revealed as rv


def line(n=6):
    """Keep going to the right, or return to the first state."""
    T = np.zeros((n, 2, n))
    T[np.arange(n), 0, np.minimum(np.arange(n) + 1, n - 1)] = 1.0
    T[:, 1, 0] = 1.0
    features = np.zeros((n, 2, 2))
    features[:, 0, 0], features[:, 1, 1] = -np.arange(n) / 5, -1.0
    return rv.MDP(T, discount=0.9), features


@pytest.fixture(scope="module", params=["plain", "labels", "goals"])
def held(request):
    if request.param == "goals":
        city = rv.environments.city(100, seed=1)
        demos = city.demonstrate(20, destinations=2, seed=2)
        fit = rv.NFXP(city.reward).fit(city.mdp, demos)
        return [fit, city.mdp, demos, city.reward, city.network]
    mdp, features = line()
    if request.param == "labels":
        mdp = mdp.replace(state_labels=list("abcdef"), action_labels=["on", "back"])
    solution = rv.solve(mdp, features @ [1.0, 2.0])
    demos = rv.simulate(mdp, solution.policy, n=50, length=20, seed=1)
    reward = rv.LinearReward(features, names=["distance", "return"])
    fit = rv.NPL(reward).fit(mdp, demos)
    unrolled = mdp.unroll(3)
    return [fit, mdp, unrolled, solution, demos, reward, fit.counterfactual(params={"return": 1.0}).after]


def arrays_of(value):
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, sp.csr_array):
        return [value.data, value.indices, value.indptr]
    if isinstance(value, pd.Series | pd.DataFrame):
        return [np.asarray(value)]
    return []


def shared(one, name):
    """Arrays of a public attribute that are handed out again at the next look, and can be written to."""
    try:
        first = [array for array in arrays_of(getattr(one, name)) if array.flags.writeable]
    except (rv.errors.RevealedError, AttributeError):
        return []
    again = arrays_of(getattr(one, name)) if first else []
    return [array for array in first if any(np.shares_memory(array, other) for other in again)]


INTERNAL = {"moves", "backwards"}  # graphs that are computed once, of interest to solvers


def test_no_public_array_can_be_written_to(held):
    open_doors = [
        f"{type(one).__name__}.{name}"
        for one in held
        for name in dir(one)
        if not name.startswith("_") and name not in INTERNAL and shared(one, name)
    ]
    assert not open_doors


def test_arrays_of_the_caller_stay_writeable():
    mdp, features = line()
    counts, reward, starts = np.full((6, 2), 3.0), features @ [1.0, 2.0], np.ones(6)
    rv.Demonstrations.from_counts(counts, starts)
    rv.solve(mdp, reward)
    rv.LinearReward(features)
    rv.MDP(mdp.transitions.matrix, discount=0.5, initial=starts / 6)
    assert all(array.flags.writeable for array in (counts, reward, starts, features))


def test_a_table_of_estimates_is_a_copy():
    mdp, features = line()
    demos = rv.Demonstrations.from_counts(np.arange(1.0, 13.0).reshape(6, 2))
    fit = rv.NFXP(rv.LinearReward(features, names=["a", "b"])).fit(mdp, demos)
    before = fit.params.copy()
    params, history = fit.params, fit.history
    params["a"], history["objective"] = 99.0, 0.0
    assert fit.params.equals(before)
    assert (fit.history["objective"] != 0.0).any()


def test_an_option_set_on_an_estimator_has_a_door_of_its_own():
    _, features = line()
    estimator = rv.CCP(rv.LinearReward(features))
    with pytest.raises(AttributeError, match=r"with_options\(l2=\.\.\.\)"):
        estimator.l2 = 0.5
    assert estimator.with_options(l2=0.5).options.l2 == 0.5
