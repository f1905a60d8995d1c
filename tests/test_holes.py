"""Features and rewards that are NaN or infinite where nothing is chosen change nothing; elsewhere they are refused."""

import pickle
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import revealed as rv
from models import random_mdp, random_reward
from revealed.errors import InvalidReward, RevealedError
from revealed.rewards.base import lift_reward
from revealed.rewards.holes import undefined as find_undefined

S, A, K = 12, 3, 2
MODEL = random_mdp(S, A, 0.9, seed=3, terminal=2, masked=True)
PAIRS = np.random.default_rng(5).normal(size=(S, A, K)) + 1.0  # not centred: zeros would show in means
STATES = PAIRS[:, 0]
OUT = ~MODEL.feasible
ODD = {"nan": np.nan, "inf": np.inf, "minus inf": -np.inf}


@lru_cache
def demos(horizon=None):
    mdp = MODEL if horizon is None else MODEL.unroll(horizon)
    policy = rv.solve(mdp, mdp.lift(PAIRS @ [1.0, -0.5])).policy
    return rv.simulate(mdp, policy, 80, 12 if horizon is None else horizon, seed=1)


def undefined(reward: Any) -> Any:
    return find_undefined(reward)


def of_pairs(fill=np.nan, part: Any = slice(None)):
    """Features of pairs, with holes at infeasible ones, in all features or in some."""
    X = PAIRS.copy()
    X[..., part] = np.where(OUT[..., None], fill, X[..., part])
    return X


def of_states(fill=np.nan):
    return np.where(MODEL.terminal[:, None], fill, STATES)


def same(one, other):
    assert one.status.code == other.status.code
    assert np.allclose(one.theta, other.theta, rtol=1e-10, atol=1e-12)
    assert np.isclose(one.llf, other.llf, rtol=1e-12)
    assert np.allclose(one.policy, other.policy, atol=1e-12)
    if one.options["weighting"] == "sample":
        assert np.allclose(one.bse, other.bse, rtol=1e-8, equal_nan=True)
    assert np.isfinite(one.theta).all()


METHODS = {
    "NFXP": lambda r: rv.NFXP(r),
    "NFXP by gradients": lambda r: rv.NFXP(r, optimizer="lbfgs"),
    "CCP": lambda r: rv.CCP(r, first_step="smoothed"),
    "CCP, occupancy": lambda r: rv.CCP(r, first_step="smoothed", weighting="occupancy"),
    "NPL": lambda r: rv.NPL(r, updates=3, first_step="smoothed"),
    "CCP, logit": lambda r: rv.CCP(r, first_step="logit"),
}


@pytest.mark.parametrize("fill", ODD)
@pytest.mark.parametrize("method", METHODS)
def test_fits_with_holes_at_infeasible_pairs_are_those_with_zeros(method, fill):
    make, X = METHODS[method], of_pairs(ODD[fill])
    with_holes = make(rv.LinearReward(X)).fit(MODEL, demos())
    same(with_holes, make(rv.LinearReward(of_pairs(0.0))).fit(MODEL, demos()))
    sparse = make(rv.LinearReward(sp.csr_array(X.reshape(S * A, K)), n_actions=A)).fit(MODEL, demos())
    same(sparse, with_holes)


@pytest.mark.parametrize("method", METHODS)
def test_fits_with_holes_in_terminal_states(method):
    make = METHODS[method]
    numbers = make(rv.LinearReward(of_states(7.0))).fit(MODEL, demos())
    same(make(rv.LinearReward(of_states())).fit(MODEL, demos()), numbers)
    same(make(rv.LinearReward(sp.csr_array(of_states()))).fit(MODEL, demos()), numbers)


def test_the_kernel_looks_at_states_that_have_features():
    """What is not there is average, and distances are in units of the spread of what is."""
    for holed in (of_states(), of_pairs()):
        flat = holed.reshape(S, -1)
        X = np.where(np.isnan(flat), np.nanmean(flat, axis=0), flat) / np.nanstd(flat, axis=0)
        apart = np.linalg.norm(X[:, None] - X[None], axis=2)
        width = demos().counts.sum() ** (-1.0 / (X.shape[1] + 4))
        by_hand = rv.first_step.Kernel(distance=apart, bandwidth=width).estimate(MODEL, demos().counts)
        found = rv.first_step.Kernel().estimate(MODEL, demos().counts, rv.LinearReward(holed))
        assert np.allclose(found, by_hand, atol=1e-12)
        given = rv.first_step.Kernel(features=np.where(np.isnan(holed), np.inf, holed))
        assert np.allclose(given.estimate(MODEL, demos().counts), found, atol=1e-12)
    bad = STATES.copy()
    bad[0, 1] = np.nan
    with pytest.raises(RevealedError, match=r"first_step features.*state 0, feature 1"):
        rv.first_step.Kernel(features=bad).estimate(MODEL, demos().counts)


def test_a_hole_in_one_feature_leaves_no_reward():
    reward = rv.LinearReward(of_pairs(part=[1]))
    table = reward.value(np.ones(K))
    assert np.array_equal(np.isnan(table), OUT)
    assert np.array_equal(undefined(reward), OUT)
    assert undefined(rv.LinearReward(PAIRS)) is None


@pytest.mark.parametrize("form", ["dense", "sparse", "list", "three axes"])
def test_holes_at_feasible_pairs_are_refused_by_name(form):
    s, a = (int(i) for i in np.argwhere(MODEL.feasible)[4])
    X = PAIRS.copy()
    X[s, a, 1] = np.nan
    flat = sp.csr_array(X.reshape(S * A, K))
    forms = {
        "dense": lambda: rv.LinearReward(X, names=["x", "y"]),
        "sparse": lambda: rv.LinearReward(flat, names=["x", "y"], n_actions=A),
        "list": lambda: rv.LinearReward([sp.csr_array(X[:, b]) for b in range(A)], names=["x", "y"]),
        "three axes": lambda: rv.LinearReward(sp.coo_array(X), names=["x", "y"]),
    }
    with pytest.raises(InvalidReward, match=rf"got nan \(first at state {s}, action {a}, feature 'y'\)"):
        rv.NFXP(forms[form]()).fit(MODEL, demos())
    named = MODEL.with_labels([f"s{i}" for i in range(S)], ["left", "right", "stay"])
    with pytest.raises(InvalidReward, match=rf"state 's{s}', action '{['left', 'right', 'stay'][a]}', feature 'y'"):
        lift_reward(forms[form](), named)


def test_holes_of_states_that_go_on_are_refused():
    X = STATES.copy()
    X[3, 0] = -np.inf
    with pytest.raises(InvalidReward, match=r"got -inf \(first at state 3, feature 'theta0'\)"):
        rv.NFXP(rv.LinearReward(X)).fit(MODEL, demos())


# -- networks ---------------------------------------------------------------------------------------------------------


def network(X, **options):
    return rv.NeuralReward(X, hidden=(3,), **options)


@pytest.mark.parametrize("standardize", [True, False])
def test_networks_do_not_see_holes(standardize):
    holed, zeros = network(of_pairs(), standardize=standardize), network(of_pairs(0.0), standardize=False)
    known = PAIRS[MODEL.feasible]
    if standardize:
        assert np.allclose(holed.center, known.mean(axis=0))
        assert np.allclose(holed.scale, known.std(axis=0))
    theta = holed.init() + 0.1
    table = holed.value(theta)
    assert np.array_equal(np.isnan(table), OUT)
    if not standardize:
        assert np.allclose(table[~OUT], zeros.value(theta)[~OUT])
    assert np.isfinite(holed.vjp(theta, np.ones((S, A)))).all()
    assert np.array_equal(undefined(holed), OUT)
    assert np.array_equal(undefined(pickle.loads(pickle.dumps(holed))), OUT)
    assert np.array_equal(undefined(network(PAIRS).with_features(of_pairs())), OUT)


def test_a_network_is_fitted_saved_and_loaded(tmp_path):
    fit = rv.NFXP(network(of_pairs()), max_iter=30).fit(MODEL, demos())
    filled = np.where(OUT[..., None], PAIRS[MODEL.feasible].mean(axis=0), PAIRS)
    own = network(filled, standardize=(fit.reward_model.center, fit.reward_model.scale))
    other = rv.NFXP(own, max_iter=30).fit(MODEL, demos())
    assert np.allclose(fit.policy, other.policy, atol=1e-8)
    again = rv.load(fit.save(tmp_path / "fit"))
    assert np.array_equal(undefined(again.reward_model), OUT)
    assert np.array_equal(again.reward, fit.reward, equal_nan=True)
    bad = PAIRS.copy()
    bad[0, A - 1, 1] = np.nan
    with pytest.raises(InvalidReward, match=f"state 0, action {A - 1}, feature 1"):
        rv.NFXP(network(bad)).fit(MODEL, demos())


REWARDS = {
    "dense": lambda X: rv.LinearReward(X),
    "sparse": lambda X: rv.LinearReward(sp.csr_array(X.reshape(S * A, K)), n_actions=A),
    "neural": lambda X: rv.NeuralReward(X, [3], seed=0, standardize=False),
    "jax": lambda X: rv.JaxReward(lambda p, x: x @ p, np.ones(2), X),
}


@pytest.mark.parametrize("kind", REWARDS)
def test_another_model_does_not_take_a_hole_for_a_reward_of_zero(kind):
    """`reward.value(theta)` is what docs/transfer.md passes on: a model that offers the pair must refuse it."""
    reward, wider = REWARDS[kind](of_pairs()), MODEL.replace(feasible=None)
    zeros = REWARDS[kind](of_pairs(0.0))
    theta = np.random.default_rng(0).normal(size=reward.n_params)
    table = np.asarray(reward.value(theta))
    assert np.array_equal(np.isnan(table), OUT)
    assert np.allclose(table[~OUT], zeros.value(theta)[~OUT])
    lifted = lift_reward(reward, MODEL.unroll(2)).value(theta)
    assert np.array_equal(np.isnan(lifted), MODEL.unroll(2).lift(OUT))
    pulled = reward.vjp(theta, MODEL.feasible.astype(float))
    assert np.allclose(pulled, zeros.vjp(theta, MODEL.feasible.astype(float)))
    assert np.allclose(rv.solve(MODEL, table).policy, rv.solve(MODEL, zeros.value(theta)).policy)
    truth, fit = np.zeros((S, A)), rv.NFXP(rv.LinearReward(PAIRS)).fit(MODEL, demos())
    for call in (
        lambda: rv.solve(wider, table),
        lambda: rv.evaluate(mdp=wider, true_reward=truth, reward=table),
        lambda: rv.metrics.evd(wider, truth, table),
        lambda: rv.metrics.epic(wider, truth, table),
        lambda: fit.counterfactual(mdp=wider, reward=table),
    ):
        with pytest.raises(RevealedError, match=r"finite.*nan"):
            call()


def test_jax_functions_of_each_pair_do_not_see_holes():
    reward = rv.JaxReward(lambda p, x: x["pairs"] @ p, np.array([1.0, -0.5]), {"pairs": of_pairs(np.inf)})
    zeros = rv.JaxReward(lambda p, x: x["pairs"] @ p, np.array([1.0, -0.5]), {"pairs": of_pairs(0.0)})
    same_theta(reward, zeros)
    scaled = rv.JaxReward(lambda p, x: x @ p, np.array([1.0, -0.5]), of_pairs(), standardize=True)
    assert np.array_equal(np.isnan(scaled.value(np.ones(2))), OUT)
    assert np.array_equal(undefined(scaled), OUT)
    states = rv.JaxReward(lambda p, x: x @ p, np.array([1.0, -0.5]), of_states())
    assert np.array_equal(undefined(states)[:, 0], MODEL.terminal)


def same_theta(reward, zeros):
    assert np.array_equal(undefined(reward), OUT)
    fits = [rv.NFXP(one).fit(MODEL, demos()) for one in (reward, zeros)]
    assert fits[0].status.code == fits[1].status.code
    assert np.allclose(fits[0].theta, fits[1].theta, rtol=1e-8)


def test_jax_functions_of_many_states_need_all_numbers():
    with pytest.raises(InvalidReward, match="several states"):
        rv.JaxReward(lambda p, x: (x - x.mean(axis=0)) @ p, np.ones(2), of_states())
    with pytest.raises(InvalidReward, match="one row per state"):
        rv.JaxReward(lambda p, x: x["s"] @ p + x["m"].sum(), np.ones(2), {"s": STATES, "m": np.array([1.0, np.nan])})


def test_a_function_across_actions_has_no_value_in_the_whole_state():
    X = of_pairs()
    reward = rv.JaxReward(lambda p, x: (x - x.mean(axis=1, keepdims=True)) @ p, np.ones(2), X)
    assert np.array_equal(undefined(reward), np.broadcast_to(OUT.any(axis=1, keepdims=True), OUT.shape))
    with pytest.raises(InvalidReward, match="got nan"):
        rv.NFXP(reward).fit(MODEL, demos())  # some of those states go on


@pytest.mark.torch
def test_torch_modules_do_not_see_holes():
    import torch

    module = torch.nn.Linear(K, 1)
    same_theta(rv.TorchReward(module, of_pairs()), rv.TorchReward(module, of_pairs(0.0)))
    scaled = rv.TorchReward(module, of_pairs(np.inf), standardize=True)
    assert np.array_equal(np.isnan(scaled.value(scaled.init())), OUT)
    assert np.isfinite(scaled.vjp(scaled.init(), np.ones((S, A)))).all()
    bad = PAIRS.copy()
    bad[0, A - 1] = np.nan
    with pytest.raises(InvalidReward, match=f"got nan .first at state 0, action {A - 1}"):
        rv.NFXP(rv.TorchReward(module, bad)).fit(MODEL, demos())


def test_rewards_of_ones_own_are_told_where_their_slopes_are_nan():
    class Own:
        names, n_params = ("x", "y"), K

        def init(self, seed=None):
            return np.zeros(K)

        def value(self, theta):
            return of_pairs() @ theta

        def vjp(self, theta, cotangent):
            return np.einsum("sak,sa->k", of_pairs(), cotangent)

    with pytest.raises(InvalidReward, match=r"reward.vjp.*zeros.*infeasible"):
        rv.NFXP(Own()).fit(MODEL, demos())


# -- horizons, labels, tables, files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda r: rv.NFXP(r), lambda r: rv.CCP(r, first_step="smoothed")])
def test_holes_on_a_horizon(make):
    mdp = MODEL.unroll(4)
    zeros = make(rv.LinearReward(of_pairs(0.0))).fit(mdp, demos(4))
    same(make(rv.LinearReward(of_pairs())).fit(mdp, demos(4)), zeros)
    lifted = np.where(mdp.feasible[..., None], mdp.lift(PAIRS), np.nan)  # the last layer is terminal
    same(make(rv.LinearReward(lifted)).fit(mdp, demos(4)), zeros)
    reward = lift_reward(rv.LinearReward(of_pairs()), mdp)
    assert np.array_equal(undefined(reward), mdp.lift(OUT))
    states = make(rv.LinearReward(of_states())).fit(mdp, demos(4))
    same(states, make(rv.LinearReward(of_states(3.0))).fit(mdp, demos(4)))
    bad = PAIRS.copy()
    bad[1, A - 1] = np.nan
    with pytest.raises(InvalidReward, match=f"state 1, action {A - 1}"):
        make(rv.LinearReward(bad)).fit(mdp, demos(4))


def frame(X):
    rows = [(f"s{s}", f"a{a}", *X[s, a]) for s in reversed(range(S)) for a in range(A)]
    return pd.DataFrame(rows, columns=["state", "action", "x", "y"])


def test_tables_may_lack_what_nobody_needs(tmp_path):
    """Missing cells of infeasible pairs, whatever stands for missing; the order of rows is another one."""
    named = MODEL.with_labels([f"s{s}" for s in range(S)], [f"a{a}" for a in range(A)])
    zeros = rv.NFXP(rv.LinearReward(of_pairs(0.0))).fit(named, demos())
    table = frame(of_pairs())
    path = tmp_path / "features.csv"
    table.to_csv(path, index=False)
    tables = {"NaN": table, "NA": table.convert_dtypes(), "a file": path}
    for one in tables.values():
        reward = rv.LinearReward.from_frame(one, state="state", action="action")
        fit = rv.NFXP(reward).fit(named, demos())
        same(fit, zeros)
        assert np.array_equal(undefined(fit.reward_model), OUT)
    bad = PAIRS.copy()
    bad[0, A - 1, 1] = np.nan
    with pytest.raises(InvalidReward, match=f"state 's0', action 'a{A - 1}', feature 'y'"):
        rv.NFXP(rv.LinearReward.from_frame(frame(bad), "state", "action")).fit(named, demos())
    index = pd.DataFrame(of_states(), columns=["x", "y"], index=[f"s{s}" for s in range(S)])
    turned = rv.NFXP(rv.LinearReward(index.iloc[::-1])).fit(named, demos())
    same(turned, rv.NFXP(rv.LinearReward(of_states(2.0))).fit(named, demos()))


def test_a_column_without_any_number_is_no_feature():
    table = frame(PAIRS).assign(y=None)
    with pytest.raises(InvalidReward, match="column 'y'"):
        rv.LinearReward.from_frame(table, "state", "action")


def test_fits_with_holes_are_saved_and_loaded(tmp_path):
    for X in (of_pairs(), sp.csr_array(of_pairs().reshape(S * A, K))):
        fit = rv.NFXP(rv.LinearReward(X, n_actions=A if sp.issparse(X) else None)).fit(MODEL, demos())
        again = rv.load(fit.save(tmp_path / f"{type(X).__name__}"))
        assert np.array_equal(undefined(again.reward_model), OUT)
        assert np.array_equal(again.theta, fit.theta)
        assert np.allclose(again.bse, fit.bse)
        cf = again.counterfactual(params={"theta0": 0.0})
        assert np.isfinite(cf.change.welfare)


def test_everything_after_a_fit_is_finite():
    fit = rv.NFXP(rv.LinearReward(of_pairs())).fit(MODEL, demos())
    zeros = rv.NFXP(rv.LinearReward(of_pairs(0.0))).fit(MODEL, demos())
    for kind in ("hessian", "opg", "robust"):
        assert np.allclose(fit.cov_params(kind=kind), zeros.cov_params(kind=kind))
    assert str(fit.summary()) != ""
    assert np.isfinite(fit.value).all()
    assert fit.counterfactual(params={"theta0": 0.0}).change.welfare == pytest.approx(
        zeros.counterfactual(params={"theta0": 0.0}).change.welfare
    )
    moved = fit.counterfactual(reward=rv.LinearReward(of_pairs(np.inf) * 2.0))
    assert np.isfinite(moved.change.welfare)


@pytest.mark.parametrize("reward", ["linear", "network"])
def test_on_a_device(reward):
    from revealed.device_rewards import on_device

    here = {"linear": rv.LinearReward, "network": network}[reward](of_pairs())
    model = MODEL.to("cpu").on_device
    there, theta = on_device(here, model), here.init() + 0.3
    assert np.allclose(model.get(there.value(theta))[~OUT], here.value(theta)[~OUT])
    weights = np.where(OUT, 0.0, PAIRS[..., 0])
    assert np.allclose(there.vjp(theta, model.put(weights)), here.vjp(theta, weights))


# -- rewards that are given as numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ODD)
def test_given_rewards_may_have_holes_where_nothing_is_chosen(fill):
    R = random_reward(MODEL, 2)
    holed = np.where(OUT, ODD[fill], R)
    zeros, one = rv.solve(MODEL, R), rv.solve(MODEL, holed)
    assert np.array_equal(one.policy, zeros.policy)
    assert np.array_equal(one.value, zeros.value)
    assert rv.metrics.evd(MODEL, holed, R) == pytest.approx(0.0, abs=1e-12)
    assert rv.metrics.epic(MODEL, holed, R) == pytest.approx(0.0, abs=1e-6)
    assert rv.metrics.starc(MODEL, R, holed) == pytest.approx(0.0, abs=1e-6)
    assert rv.metrics.expected_return(MODEL, holed, zeros) == rv.metrics.expected_return(MODEL, R, zeros)
    fit = rv.NFXP(rv.LinearReward(of_pairs())).fit(MODEL, demos())
    numbers = [fit.counterfactual(reward=x).change.welfare for x in (R, holed)]
    assert numbers[0] == numbers[1]
    states = np.where(MODEL.terminal, ODD[fill], R[:, 0])
    assert np.isfinite(rv.solve(MODEL, states).value).all()
    assert np.isfinite(rv.solve(MODEL.unroll(3), MODEL.unroll(3).lift(holed)).value).all()
    assert np.isfinite(rv.solve_hard(MODEL, holed).value).all()


def test_a_table_of_rewards_goes_round():
    fit = rv.NFXP(rv.LinearReward(of_pairs())).fit(MODEL, demos())
    table = fit.table("reward")
    assert np.isnan(table.to_numpy()[OUT]).all()
    assert np.allclose(rv.solve(MODEL, table).policy, fit.policy, atol=1e-8)
    assert np.allclose(rv.solve(MODEL, table.to_numpy()).policy, fit.policy, atol=1e-8)
    assert rv.metrics.evd(MODEL, table, table.to_numpy()) == pytest.approx(0.0, abs=1e-9)
