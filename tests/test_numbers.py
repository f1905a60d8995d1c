"""One rule for numbers at every door (checks.py): what looks like a number and is none is refused, wherever it comes
in; what is one means the same in every form."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import revealed as rv
from models import random_mdp
from revealed import checks
from revealed.checks import as_number, is_count, is_index, require_floats
from revealed.errors import InvalidInput, RevealedError
from revealed.fit_report import places
from roads import town, trip_table

S, A, K = 6, 2, 2
MODEL = random_mdp(S, A, 0.9, seed=2)
FEATURES = np.random.default_rng(0).integers(1, 4, size=(S, A, K)).astype(float)
COUNTS = np.random.default_rng(1).integers(1, 9, size=(S, A)).astype(float)
POLICY = np.full((S, A), 0.5)
REWARD = np.random.default_rng(2).integers(-2, 3, size=(S, A)).astype(float)
EVEN = np.full(S, 1.0 / S)


def as_floats(values: Any) -> Any:
    return checks.as_floats(values)


@lru_cache
def demos():
    return rv.simulate(MODEL, POLICY, 30, 5, seed=1)


@lru_cache
def fit():
    return rv.NFXP(rv.LinearReward(FEATURES)).fit(MODEL, demos())


@lru_cache
def network():
    return town()


@lru_cache
def choice():
    return rv.RouteChoice(network(), network().reward("time"), [-1.0])


def fitted(**options):
    return rv.NFXP(rv.LinearReward(FEATURES), **{"max_iter": 3} | options).fit(MODEL, demos()).theta


def first_step(step):
    return rv.CCP(rv.LinearReward(FEATURES), first_step=step, max_iter=3).fit(MODEL, demos()).theta


# ------------------------------------------------------------------------------------------------------ single numbers

HOSTILE = {
    "True": lambda v: True,
    "np.True_": lambda v: np.True_,
    "Decimal": lambda v: Decimal(str(v)),
    "Fraction": lambda v: Fraction(str(v)),
    "complex": complex,
    "np.complex128": np.complex128,
    "complex with an imaginary part": lambda v: np.complex64(v + 1j),
    "datetime64": lambda v: np.datetime64(int(np.ceil(v)), "D"),
    "timedelta64": lambda v: np.timedelta64(int(np.ceil(v)), "D"),
    "timedelta": lambda v: dt.timedelta(days=v),
    "Timestamp": lambda v: pd.Timestamp(int(np.ceil(v))),
    "str": str,
    "np.str_": lambda v: np.str_(v),
    "bytes": lambda v: str(v).encode(),
    "masked": lambda v: np.ma.masked,
    "masked number": lambda v: np.ma.array(v, mask=False),
    "array of one": lambda v: np.array([v]),
    "list of one": lambda v: [v],
    "0-d object": lambda v: np.array(Decimal(str(v)), dtype=object),
    "0-d truth": lambda v: np.array(True),
    "0-d date": lambda v: np.array(np.timedelta64(int(np.ceil(v)), "D")),
    "record": lambda v: np.array((v,), dtype=[("x", float)])[()],
    "pd.NA": lambda v: pd.NA,
    "beyond floats": lambda v: 10**400,
    "NaN": lambda v: float("nan"),
}
FORMS = {
    "float": float,
    "np.float64": np.float64,
    "np.float32": np.float32,
    "np.longdouble": np.longdouble,
    "0-d array": lambda v: np.array(float(v)),
}
WHOLE = {"int": int, "np.int64": np.int64, "np.uint8": np.uint8}

# door → (a call, a number that it takes; exact in float32)
NUMBERS = {
    "MDP(discount)": (lambda v: rv.MDP(np.full((2, 2, 2), 0.5), discount=v).discount, 0.5),
    "replace(discount)": (lambda v: MODEL.replace(discount=v).discount, 0.5),
    "initial by name": (lambda v: MODEL.start({0: v, 1: 0.5}).tolist(), 0.5),
    "discount_visits": (lambda v: demos().discount_visits(v).visit_discount, 0.5),
    "l2": (lambda v: fitted(l2=v).tolist(), 0.25),
    "tol": (lambda v: fitted(tol=v).tolist(), 0.25),
    "learning_rate": (lambda v: fitted(learning_rate=v, optimizer="adam").tolist(), 0.25),
    "Smoothed": (lambda v: first_step(rv.first_step.Smoothed(v)).tolist(), 0.5),
    "Kernel(bandwidth)": (lambda v: first_step(rv.first_step.Kernel(bandwidth=v)).tolist(), 0.5),
    "Logit(l2)": (lambda v: first_step(rv.first_step.Logit(l2=v)).tolist(), 0.5),
    "conf_int": (lambda v: fit().conf_int(v).to_numpy().tolist(), 0.25),
    "summary": (lambda v: str(fit().summary(v)), 0.25),
    "counterfactual(params)": (lambda v: fit().counterfactual(params={"theta0": v}).after.welfare, 0.5),
    "counterfactual(function)": (lambda v: fit().counterfactual(params={"theta0": lambda _: v}).after.welfare, 0.5),
    "counterfactual(level)": (
        lambda v: fit().counterfactual(params={"theta0": 0.5}, level=v).frame("value").to_numpy().tolist(),
        0.5,
    ),
    "demand_curve(per)": (lambda v: fit().demand_curve("theta0", [0.0], 0, per=v).frame.to_numpy().tolist(), 0.5),
    "demand_curve(level)": (
        lambda v: fit().demand_curve("theta0", [0.0], 0, level=v).frame.to_numpy().tolist(),
        0.5,
    ),
    "wald_test": (lambda v: fit().wald_test({"theta0": v}).statistic, 0.5),
    "smoothing": (lambda v: rv.estimate_transitions(demos(), smoothing=v).matrix.toarray().tolist(), 0.5),
    "bandwidth": (
        lambda v: (
            rv.estimate_transitions(demos(), coordinates=np.arange(float(S)), bandwidth=v).matrix.toarray().tolist()
        ),
        0.5,
    ),
    "rust_bus(RC)": (lambda v: rv.environments.rust_bus(bins=5, RC=v).true_reward.tolist(), 0.5),
    "rust_bus(scale)": (lambda v: rv.environments.rust_bus(bins=5, scale=v).true_reward.tolist(), 0.5),
    "garnet(discount)": (lambda v: rv.environments.garnet(9, discount=v).mdp.discount, 0.5),
    "obstacleworld(density)": (lambda v: rv.environments.obstacleworld(4, density=v).mdp.n_states, 0.5),
    "obstacleworld(noise)": (
        lambda v: rv.environments.obstacleworld(4, noise=v, expert="noisy").expert.tolist(),
        0.5,
    ),
    "objectworld(wind)": (lambda v: rv.environments.objectworld(3, wind=v).expert.tolist(), 0.5),
    "grid(wind)": (lambda v: rv.environments.grid_transitions(2, 2, v).toarray().tolist(), 0.5),
    "mountain_car(target)": (lambda v: rv.environments.mountain_car(4, target=v).true_reward.tolist(), 0.5),
    "with_attribute": (lambda v: network().with_attribute("time", {"ab": v}).attribute("time").tolist(), 0.5),
    "RouteChoice(params)": (lambda v: rv.RouteChoice(network(), network().reward("time"), {"time": v}).theta[0], -0.5),
    "paths(coverage)": (lambda v: choice().paths("ab", "cd", coverage=v)["probability"].tolist(), 0.5),
    "flows(demand)": (lambda v: choice().flows({("ab", "cd"): v}).to_numpy().tolist(), 0.5),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("door", NUMBERS)
def test_what_is_no_number_is_refused(door, kind):
    call, good = NUMBERS[door]
    value = HOSTILE[kind](good)
    with pytest.raises(RevealedError):
        call(value)


@pytest.mark.parametrize("door", NUMBERS)
def test_a_number_means_the_same_in_every_form(door):
    call, good = NUMBERS[door]
    answers = [call(make(good)) for make in FORMS.values()]
    assert all(np.array_equal(np.asarray(one), np.asarray(answers[0])) for one in answers[1:])


COUNTED = {
    "unroll": lambda v: MODEL.unroll(v).n_states,
    "max_iter": lambda v: fitted(max_iter=v).tolist(),
    "patience": lambda v: fitted(patience=v, optimizer="adam").tolist(),
    "updates": lambda v: rv.NPL(rv.LinearReward(FEATURES), updates=v, max_iter=2).fit(MODEL, demos()).updates,
    "simulate(n)": lambda v: rv.simulate(MODEL, POLICY, v, 2, seed=0).n_agents,
    "simulate(length)": lambda v: rv.simulate(MODEL, POLICY, 2, v, seed=0).n_decisions,
    "simulate(seed)": lambda v: rv.simulate(MODEL, POLICY, 2, 2, seed=v).counts.tolist(),
    "fit.simulate(n)": lambda v: fit().simulate(v, 2, seed=0).n_agents,
    "bootstrap(reps)": lambda v: len(fit().bootstrap(reps=v, seed=0, progress=False).theta),
    "bootstrap(seed)": lambda v: fit().bootstrap(reps=2, seed=v, progress=False).theta.tolist(),
    "bootstrap(jobs)": lambda v: fit().bootstrap(reps=2, seed=1, jobs=v, progress=False).theta.tolist(),
    "TabularReward": lambda v: rv.TabularReward(v).n_params,
    "n_actions": lambda v: rv.LinearReward(__import__("scipy.sparse").sparse.eye_array(6), n_actions=v).n_columns,
    "hidden": lambda v: rv.NeuralReward(np.ones((2, 2)), hidden=(v,)).n_params,
    "seed of a network": lambda v: rv.NeuralReward(np.ones((2, 2)), hidden=(2,), seed=v).init().tolist(),
    "n_states": lambda v: rv.Demonstrations.from_trajectories([([0, 1], [0, 1])], n_states=v, n_actions=2).n_states,
    "solve_hard": lambda v: rv.solve_hard(MODEL, REWARD, max_iter=100 * v if type(v) is int else v).value.shape,
    "bins": lambda v: rv.discretize(pd.DataFrame({"x": [0.0, 1.0, 2.0]}), "x", bins=v).n_states,
    "garnet": lambda v: rv.environments.garnet(9, branching=v).mdp.n_states,
    "predict(seed)": lambda v: fit().predict([0, 1], seed=v)[0].tolist(),
    "paths(n)": lambda v: len(choice().paths("ab", "cd", n=v)),
    "df": lambda v: rv.likelihood_ratio_test(fit(), fit(), df=v).df,
    "monte_carlo": lambda v: (
        rv.monte_carlo(
            rv.environments.garnet(9), {"NFXP": rv.NFXP}, replications=v, n=4, length=3, progress=False, jobs=1
        ).replications
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [*HOSTILE, "float", "0-d array"])
@pytest.mark.parametrize("door", COUNTED)
def test_what_is_no_whole_number_is_refused(door, kind):
    value = (HOSTILE | FORMS)[kind](2)
    if door == "bins" and kind in ("array of one", "list of one"):
        return  # one number per column
    if kind == "beyond floats" and "seed" in door:
        return  # NumPy takes seeds of any size
    if kind == "beyond floats":
        value = -value
    with pytest.raises(RevealedError):
        COUNTED[door](value)


# ------------------------------------------------------------------------------------------------------------- arrays


def objects(x):
    return np.asarray(x, dtype=object)


def with_first(x, value):
    """The array as objects, the first of which is something else."""
    out = objects(x).copy()
    out.reshape(-1)[0] = value(out.reshape(-1)[0]) if callable(value) else value
    return out


def list_with_first(x, value):
    return with_first(x, value).tolist()


def records(x):
    x = np.asarray(x, dtype=float)
    return x.view([("x", float)]) if x.ndim else np.array((x,), dtype=[("x", float)])


ODD = {
    "masked": lambda x: np.ma.array(x, mask=np.arange(x.size).reshape(x.shape) == 0),
    "masked, nothing hidden": lambda x: np.ma.array(x),
    "rows that are masked": lambda x: [np.ma.array(row, mask=True) for row in np.atleast_1d(x)],
    "np.ma.masked among numbers": lambda x: list_with_first(x, np.ma.masked),
    "datetime64": lambda x: x.astype("datetime64[s]"),
    "timedelta64": lambda x: x.astype("timedelta64[s]"),
    "complex": lambda x: x.astype(complex),
    "text": lambda x: x.astype(str),
    "bytes": lambda x: x.astype("S8"),
    "records": records,
    "Decimal": lambda x: with_first(x, lambda v: Decimal(str(v))),
    "Fraction": lambda x: with_first(x, lambda v: Fraction(str(v))),
    "Decimal in a list": lambda x: list_with_first(x, lambda v: Decimal(str(v))),
    "None": lambda x: with_first(x, None),
    "None in a list": lambda x: list_with_first(x, None),
    "pd.NA": lambda x: with_first(x, pd.NA),
    "complex object": lambda x: with_first(x, complex),
    "text object": lambda x: with_first(x, str),
    "timedelta object": lambda x: with_first(x, np.timedelta64(1, "D")),
    "True among numbers": lambda x: with_first(x, True),
    "True in a list": lambda x: list_with_first(x, True),
    "np.True_ in a list": lambda x: list_with_first(x, np.True_),
    "beyond floats": lambda x: with_first(x, 10**400),
    "ragged": lambda x: [[1.0], [1.0, 2.0]],
    "a dict of rows": lambda x: {"x": {0: 1.0}},
    "truth": lambda x: True,
}
ALIKE = {
    "array": lambda x: x,
    "Fortran order": np.asfortranarray,
    "float32": lambda x: x.astype(np.float32),
    "float16": lambda x: x.astype(np.float16),
    "longdouble": lambda x: x.astype(np.longdouble),
    "list": lambda x: x.tolist(),
    "objects": objects,
    "read only": lambda x: np.broadcast_to(x, x.shape),
}

Q = np.array([0.25, 0.25, 0.25, 0.25, 0.0, 0.0])  # exact in every type
HALVES = np.full((S, A), 0.5)


def trained(reward):
    return rv.NFXP(reward, max_iter=2).fit(MODEL, demos()).theta.tolist()


def numbers_of(x):
    return np.asarray(x).tolist()


# door → (a call, an array that it takes; exact in float16)
ARRAYS = {
    "MDP": (lambda x: numbers_of(rv.MDP(x).transitions.matrix.toarray()), np.full((2, 2, 2), 0.5)),
    "MDP by action": (
        lambda x: numbers_of(rv.MDP([np.eye(2), x]).transitions.matrix.toarray()),
        np.full((2, 2), 0.5),
    ),
    "replace(transitions)": (lambda x: MODEL.replace(transitions=x).n_states, np.tile(np.eye(S)[:, None], (1, A, 1))),
    "initial": (lambda x: numbers_of(MODEL.start(x)), Q),
    "MDP(initial)": (lambda x: numbers_of(MODEL.replace(initial=x).initial), Q),
    "feasible": (lambda x: numbers_of(MODEL.replace(feasible=x).feasible), np.ones((S, A))),
    "terminal": (lambda x: numbers_of(MODEL.replace(terminal=x).terminal), (np.arange(S) == 1).astype(float)),
    "from_counts": (lambda x: numbers_of(rv.Demonstrations.from_counts(x).counts), COUNTS),
    "starts": (lambda x: numbers_of(rv.Demonstrations.from_counts(COUNTS, x).starts), np.arange(float(S))),
    "reweighted": (lambda x: numbers_of(demos().reweighted(x).counts), np.arange(30.0)),
    "LinearReward": (lambda x: numbers_of(rv.LinearReward(x).value(np.ones(K))), FEATURES),
    "NeuralReward": (lambda x: numbers_of(rv.NeuralReward(x, hidden=(2,)).features), FEATURES),
    "with_features": (
        lambda x: numbers_of(rv.NeuralReward(FEATURES, hidden=(2,)).with_features(x).features),
        FEATURES,
    ),
    "standardize": (
        lambda x: numbers_of(rv.NeuralReward(FEATURES, hidden=(2,), standardize=(x, [1.0, 1.0])).center),
        np.array([1.0, 2.0]),
    ),
    "JaxReward": (
        lambda x: numbers_of(rv.JaxReward(lambda p, y: y[0] @ p, np.ones(K), [x]).value(np.ones(K))),
        FEATURES,
    ),
    "JaxReward(params)": (lambda x: rv.JaxReward(lambda p, y: y @ p[0], [x], FEATURES).n_params, np.ones(K)),
    "start": (lambda x: fitted(start=x).tolist(), np.ones(K)),
    "first_step": (lambda x: first_step(x).tolist(), HALVES),
    "first_step on a horizon": (
        lambda x: (
            rv.CCP(rv.LinearReward(FEATURES), first_step=x, max_iter=2).fit(MODEL.unroll(5), demos()).theta.tolist()
        ),
        HALVES,
    ),
    "Kernel(features)": (lambda x: first_step(rv.first_step.Kernel(features=x)).tolist(), FEATURES[:, 0]),
    "Kernel(distance)": (
        lambda x: first_step(rv.first_step.Kernel(distance=x)).tolist(),
        np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0))),
    ),
    "Logit(features)": (lambda x: first_step(rv.first_step.Logit(features=x)).tolist(), FEATURES),
    "solve": (lambda x: numbers_of(rv.solve(MODEL, x).value), REWARD),
    "solve_hard": (lambda x: numbers_of(rv.solve_hard(MODEL, x).value), REWARD),
    "Chain": (lambda x: numbers_of(rv.Chain(MODEL, x).occupancy(EVEN)), HALVES),
    "occupancy": (lambda x: numbers_of(rv.Chain(MODEL, HALVES).occupancy(x)), Q),
    "nll": (lambda x: rv.metrics.nll(x, demos()), HALVES),
    "evd": (lambda x: rv.metrics.evd(MODEL, x, REWARD), REWARD),
    "evd, other": (lambda x: rv.metrics.evd(MODEL, REWARD, x), REWARD),
    "stochastic_evd": (lambda x: rv.metrics.stochastic_evd(MODEL, REWARD, x), HALVES),
    "policy_value": (lambda x: numbers_of(rv.metrics.policy_value(MODEL, x, HALVES)), REWARD),
    "population_nll": (lambda x: rv.metrics.population_nll(MODEL, x, HALVES), HALVES),
    "epic": (lambda x: rv.metrics.epic(MODEL, x, REWARD + np.eye(S, A)), REWARD),
    "starc": (lambda x: rv.metrics.starc(MODEL, REWARD + np.eye(S, A), x), REWARD),
    "epic of moves": (lambda x: rv.metrics.epic(MODEL, x, REWARD), np.ones((S, A, S)) + np.eye(S)[:, None]),
    "coverage": (lambda x: rv.metrics.epic(MODEL, REWARD + np.eye(S, A), REWARD, x), COUNTS),
    "evaluate": (lambda x: rv.evaluate(fit(), MODEL, x)["evd"], REWARD),
    "evaluate(expert)": (lambda x: list(rv.evaluate(fit(), MODEL, REWARD, expert=x).values()), HALVES),
    "counterfactual(reward)": (lambda x: fit().counterfactual(reward=x).after.welfare, REWARD),
    "counterfactual(params)": (lambda x: fit().counterfactual(params=x).after.welfare, np.ones(K)),
    "counterfactual(initial)": (lambda x: fit().counterfactual(params={"theta0": 0.0}, initial=x).after.welfare, Q),
    "demand_curve": (lambda x: numbers_of(fit().demand_curve("theta0", x, 0, bands=None).frequency), np.ones(2)),
    "wald_test(R)": (lambda x: fit().wald_test((x, [0.0])).statistic, np.ones((1, K))),
    "wald_test(q)": (lambda x: fit().wald_test((np.eye(K), x)).statistic, np.ones(K)),
    "landing": (
        lambda x: rv.estimate_transitions(demos(), landing=x, unseen="stay").matrix.shape,
        np.tile(np.arange(float(S)), (S, A, 1)),
    ),
    "coordinates": (
        lambda x: numbers_of(rv.estimate_transitions(demos(), coordinates=x, bandwidth=1.0).matrix.toarray()),
        np.arange(float(S)),
    ),
    "simulate(policy)": (lambda x: numbers_of(rv.simulate(MODEL, x, 2, 2, seed=0).counts), HALVES),
    "simulate(initial)": (lambda x: numbers_of(rv.simulate(MODEL, HALVES, 2, 2, seed=0, initial=x).counts), Q),
    "edges": (
        lambda x: rv.discretize(pd.DataFrame({"x": [0.0, 1.0]}), "x", edges=x).n_states,
        np.array([0.0, 0.5, 2.0]),
    ),
    "Bins.code": (lambda x: numbers_of(rv.Bins(["x"], [[0.0, 1.0, 4.0]]).code(x)), np.array([0.5, 2.0])),
    "increments": (
        lambda x: rv.environments.rust_bus(bins=5, increments=x).mdp.n_states,
        np.array([0.25, 0.5, 0.25]),
    ),
    "cost": (lambda x: numbers_of(rv.environments.rust_bus(bins=4, cost=x).true_reward), np.arange(4.0)),
    "radii": (lambda x: rv.environments.objectworld(3, radii=x).mdp.n_states, np.array([3.0, 2.0])),
    "values": (
        lambda x: numbers_of(rv.environments.objectworld(3, values=x).true_reward),
        np.array([1.0, -1.0, 0.5]),
    ),
    "RouteChoice(params)": (
        lambda x: rv.RouteChoice(network(), network().reward(["time", "u_turn"]), x).theta.tolist(),
        np.array([-1.0, -2.0]),
    ),
    "with_attribute": (
        lambda x: network().with_attribute("toll", x).attribute("toll").tolist(),
        np.arange(7.0),
    ),
    "left_turn": (lambda x: town(left_turn=x).attribute("left_turn").tolist(), np.array([40.0, 170.0])),
    "report": (lambda x: places._given(x, S).xy.tolist(), np.arange(12.0).reshape(6, 2)),
}
INDICES = np.array([0, 1, 2, 0])
WHOLE_ARRAYS = {
    "states": lambda x: rv.Demonstrations.from_trajectories([(x, [0, 1, 0, 1])], 4, 2).counts.tolist(),
    "actions": lambda x: rv.Demonstrations.from_trajectories([([0, 1, 2, 0], x)], 4, 3).counts.tolist(),
    "next_state": lambda x: rv.Demonstrations.from_trajectories(
        [([0, 0, 1, 2], [0, 1, 0, 1])], 4, 3, next_state=[x]
    ).starts.tolist(),
    "subset": lambda x: demos().subset(x[:3] if isinstance(x, np.ndarray | list) else x).counts.tolist(),
    "predict": lambda x: fit().predict(x, seed=1)[0].tolist(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("door", WHOLE_ARRAYS)
def test_what_are_no_indices_is_refused(door, kind):
    with pytest.raises(RevealedError):
        WHOLE_ARRAYS[door](ODD[kind](INDICES))


AXES = {
    "plot_grid": (lambda ax, x: rv.plots.plot_grid(ax, x, (2, 3)), np.arange(6.0)),
    "plot_grid(policy)": (lambda ax, x: rv.plots.plot_grid(ax, EVEN, (2, 3), policy=x), np.full((6, 4), 0.25)),
    "plot_arrows": (lambda ax, x: rv.plots.plot_arrows(ax, x, (2, 3)), np.full((6, 4), 0.25)),
    "plot_states": (lambda ax, x: rv.plots.plot_states(ax, x), np.arange(6.0)),
    "plot_states(policy)": (lambda ax, x: rv.plots.plot_states(ax, EVEN, policy=x), HALVES),
    "plot_plane": (lambda ax, x: rv.plots.plot_plane(ax, x, [0.0, 1.0], [0.0, 1.0, 2.0]), np.arange(6.0)),
    "plot_plane(x)": (lambda ax, x: rv.plots.plot_plane(ax, EVEN, x, [0.0, 1.0, 2.0]), np.arange(2.0)),
    "plot_objects": (lambda ax, x: rv.plots.plot_objects(ax, x), np.array([[0, 1, 0, 1]])),
    "plot_estimates": (lambda ax, x: rv.plots.plot_estimates(ax, {"NFXP": x}, 0.5), np.arange(6.0)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [kind for kind in ODD if kind != "truth"])
@pytest.mark.parametrize("door", AXES)
def test_what_are_no_numbers_is_not_drawn(door, kind):
    call, good = AXES[door]
    with pytest.raises(RevealedError):
        call(Figure().add_subplot(), ODD[kind](good))
    if kind == "masked":
        call(Figure().add_subplot(), good)


NO_LISTS = {"JaxReward", "JaxReward(params)"}  # a list is a tree of numbers there


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("door", ARRAYS)
def test_what_are_no_numbers_is_refused(door, kind):
    call, good = ARRAYS[door]
    with pytest.raises(RevealedError) as caught:
        call(ODD[kind](good))
    if "masked" in kind and door not in NO_LISTS:
        assert "filled" in str(caught.value)


@pytest.mark.parametrize("door", ARRAYS)
def test_an_array_means_the_same_in_every_form(door):
    call, good = ARRAYS[door]
    answers = {form: call(make(good)) for form, make in ALIKE.items() if form != "list" or door not in NO_LISTS}
    for form, answer in answers.items():
        assert np.allclose(answer, answers["array"], rtol=1e-10, atol=1e-12), form  # memory order moves last digits


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ODD)
def test_what_are_no_numbers_is_no_input_of_a_module(kind):
    import torch

    with pytest.raises(RevealedError):
        rv.TorchReward(torch.nn.Linear(K, 1), ODD[kind](FEATURES))


# ------------------------------------------------------------------------------------------------------ the rule itself


def test_which_values_are_numbers():
    for value in (3, 3.0, np.float16(3), np.int8(3), np.array(3), np.array(3.0), np.longdouble(3)):
        assert as_number(value) == 3.0
    for make in HOSTILE.values():
        assert np.isnan(as_number(make(2.0)))
    assert as_number(-np.inf) == -np.inf
    assert [is_index(v) for v in (3, np.int16(3), True, np.True_, 3.0, np.timedelta64(3, "D"), np.array(3))] == [
        *(True, True, False, False, False, False, False)
    ]
    assert not is_count(0)


def test_numbers_of_jax_and_torch():
    import jax.numpy as jnp

    assert as_number(jnp.float32(0.5)) == 0.5
    assert as_floats(jnp.ones((2, 2))).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    torch = pytest.importorskip("torch")
    assert as_number(torch.tensor(0.5)) == 0.5
    assert as_floats(torch.ones(2)).tolist() == [1.0, 1.0]
    assert as_floats(torch.ones(2, requires_grad=True)) is None


def test_arrays_of_truth_values_are_zeros_and_ones():
    for form in (np.array([True, False]), [True, False], pd.Series([True, False]), pd.array([True, False])):
        assert as_floats(form).tolist() == [1.0, 0.0]
    dummies = rv.LinearReward(FEATURES > 2.0)
    assert np.array_equal(dummies.value(np.ones(K)), (FEATURES > 2.0).sum(axis=2))


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "int64[pyarrow]", "float64[pyarrow]"])
def test_columns_of_pandas_are_numbers_unless_one_is_missing(dtype):
    table = pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]}, dtype=dtype)
    assert rv.Demonstrations.from_counts(table).counts.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    table.loc[1, "b"] = pd.NA
    with pytest.raises(RevealedError, match=r"got (nan|<NA>) \(first at (state 1, action 1|position \(1, 1\))\)"):
        rv.Demonstrations.from_counts(table)


def test_the_first_offender_is_named_with_a_remedy():
    with pytest.raises(InvalidInput, match=r"got Decimal\('1'\) \(first at position \(0, 1\)\). Pass float\(x\)"):
        require_floats("x", [[1.0, Decimal(1)], [2.0, 3.0]], "numbers")
    with pytest.raises(InvalidInput, match=r"durations.*timedelta64"):
        require_floats("x", np.array([1, 2], dtype="m8[D]"), "numbers")
    with pytest.raises(InvalidInput, match=r"discount.*Pass float\(x\)"):
        MODEL.replace(discount=Decimal("0.9"))


def test_large_whole_numbers_are_rounded_and_small_numbers_are_kept():
    assert as_floats([2**53 + 1]).tolist() == [2.0**53]
    assert as_number(2**1000) == 2.0**1000
    assert as_floats(np.array([5e-324, -0.0])).tolist() == [5e-324, 0.0]


def test_the_array_of_the_user_stays_as_it_is():
    mine = np.ones((2, 2))
    as_floats(mine)[0, 0] = 5.0
    assert mine[0, 0] == 1.0


# -------------------------------------------------------------------------------------------------- counts and weights

HUGE = 1e308


@pytest.mark.parametrize("value", [HUGE, 9e307, 1e101])
def test_counts_that_cannot_be_added_up_are_refused(value):
    table = np.full((S, A), value)
    for call in (
        lambda: rv.Demonstrations.from_counts(table),
        lambda: rv.Demonstrations.from_counts(COUNTS, starts=np.full(S, value)),
        lambda: demos().reweighted(np.full(30, value)),
        lambda: choice().flows({("ab", "cd"): value, ("da", "cd"): value}),
        lambda: from_panel(value),
    ):
        with pytest.raises(RevealedError, match=r"at most 1e\+100"):
            call()


def from_panel(weight):
    frame = pd.DataFrame({"i": [0, 0, 1, 1], "t": [0, 1, 0, 1], "s": [0, 1, 0, 1], "a": [0, 1, 1, 0], "w": weight})
    return rv.Demonstrations.from_frame(frame, id="i", time="t", state="s", action="a", weight="w")


def test_counts_of_any_reasonable_size_are_fine():
    base = rv.NFXP(rv.LinearReward(FEATURES)).fit(MODEL, rv.Demonstrations.from_counts(COUNTS))
    for scale in (1e-30, 1e30):
        scaled = rv.NFXP(rv.LinearReward(FEATURES)).fit(MODEL, rv.Demonstrations.from_counts(COUNTS * scale))
        assert np.allclose(scaled.theta, base.theta, rtol=1e-6)
    table = COUNTS.copy()
    table[0] = [-0.0, 5e-324]
    assert rv.Demonstrations.from_counts(table).counts[0].tolist() == [0.0, 5e-324]


def test_trips_of_a_network_are_counted():
    trips = network().trips(trip_table(("T1", "ab bc cd"), ("T2", "da ab bc ce")))
    with pytest.raises(RevealedError, match="at most"):
        trips.reweighted(dict.fromkeys(trips.ids, HUGE))


# -------------------------------------------------------------------------------- rewards of one's own, episodes


class Own:
    """A reward whose answers pass through `change`."""

    names, n_params = ("x", "y"), K

    def __init__(self, **changes):
        self.changes = changes

    def answer(self, name, found):
        return self.changes.get(name, lambda x: x)(found)

    def init(self, seed=None):
        return self.answer("init", np.zeros(K))

    def value(self, theta):
        return self.answer("value", FEATURES @ theta)

    def vjp(self, theta, cotangent):
        return self.answer("vjp", np.einsum("sak,sa->k", FEATURES, cotangent))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("answer", ["value", "vjp"])
def test_rewards_of_ones_own_answer_in_numbers(answer, kind):
    with pytest.raises(RevealedError):
        rv.NFXP(Own(**{answer: ODD[kind]}), start=np.zeros(K)).fit(MODEL, demos())


def test_a_start_of_ones_own_is_checked():
    for odd in (np.ma.zeros(K), np.zeros(K, dtype=complex), np.zeros(K + 1), np.full(K, np.nan)):
        with pytest.raises(RevealedError):
            rv.NFXP(Own(init=lambda x, odd=odd: odd)).fit(MODEL, demos())
    assert rv.NFXP(Own()).fit(MODEL, demos()).converged


def test_steps_that_are_masked_are_refused():
    plain = {"observations": np.array([0, 1, 2]), "actions": np.array([0, 1]), "rewards": np.zeros(2)}
    sizes: dict[str, Any] = {"n_states": 3, "n_actions": 2}
    assert rv.Demonstrations.from_episodes([plain], **sizes).n_decisions == 2
    for name, odd in (
        ("observations", np.ma.array([0, 1, 2], mask=[False, True, False])),
        ("observations", [0, np.ma.masked, 2]),
        ("actions", np.ma.array([0, 1])),
        ("actions", np.array([0, 1], dtype="m8[s]")),
        ("actions", [True, False]),
    ):
        with pytest.raises(RevealedError):
            rv.Demonstrations.from_episodes([plain | {name: odd}], **sizes)


@pytest.mark.parametrize("kind", [kind for kind in HOSTILE if kind != "0-d object"])
def test_options_of_a_recipe_are_numbers(kind):
    for name in ("l2", "discount", "max_iter"):
        with pytest.raises(RevealedError):
            rv.Recipe(panel=("p.csv",), id="i", time="t", state=("s",), action=("a",), **{name: HOSTILE[kind](2)})
