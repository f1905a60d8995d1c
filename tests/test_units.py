"""Units of features do not matter: estimates, standard errors and status are the same in all of them (theory O5)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import revealed as rv
from models import corridor, draw, random_mdp, shuffled
from networks import GOAL_TRIPS
from revealed.curvature import difference_hessian, units_of
from revealed.objective import Case, Objective
from revealed.pi_tilde import OwnPolicy

METHODS = {"nfxp": rv.NFXP, "ccp": rv.CCP, "npl": rv.NPL}
FEATURES = np.random.default_rng(0).normal(size=(10, 3, 2))
MDP = random_mdp(10, 3, seed=1)
DEMOS = draw(MDP, FEATURES @ [1.0, -0.5], 60, 20)
FAST = {"adam": {"learning_rate": 0.1}}


def told(fit, units) -> tuple:
    """What must not depend on the units of the features."""
    return fit.status.code, fit.iterations, fit.llf, fit.theta * units, fit.bse.to_numpy() * units


def assert_alike(one: tuple, other: tuple, rtol: float = 1e-6) -> None:
    assert one[:2] == other[:2]
    for mine, yours in zip(one[2:], other[2:], strict=True):
        np.testing.assert_allclose(mine, yours, rtol=rtol)


@pytest.mark.parametrize("optimizer", ["newton", "lbfgs", "adam"])
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=6, deadline=None)
@given(powers=st.tuples(st.integers(-12, 12), st.integers(-12, 12)))
def test_scaling_a_feature_changes_nothing(method, optimizer, powers):
    units = 10.0 ** np.array(powers)
    make = METHODS[method]
    plain = make(rv.LinearReward(FEATURES), optimizer=optimizer, **FAST.get(optimizer, {})).fit(MDP, DEMOS)
    scaled = make(rv.LinearReward(FEATURES * units), optimizer=optimizer, **FAST.get(optimizer, {})).fit(MDP, DEMOS)
    assert plain.converged
    assert_alike(told(plain, 1.0), told(scaled, units))


@pytest.mark.parametrize("weighting", ["sample", "occupancy"])
@pytest.mark.parametrize("kind", ["states", "sparse", "unrolled", "terminal", "device"])
@pytest.mark.parametrize("method", METHODS)
def test_nor_in_other_models(method, kind, weighting):
    units = np.array([1e-11, 1e9])
    F = FEATURES[:, 0] if kind in ("states", "unrolled") else FEATURES
    mdp = random_mdp(10, 3, seed=2, terminal=2, initial=True) if kind == "terminal" else MDP
    mdp = mdp.replace(initial=np.full(10, 0.1))
    table = np.broadcast_to((F @ [1.0, -0.5]).reshape(10, -1), (10, 3))
    if kind == "unrolled":
        mdp = mdp.unroll(5)
        table = mdp.lift(table)
    demos = draw(mdp, table, 100, 5 if kind == "unrolled" else 15)
    if kind == "device":
        mdp = mdp.to("cpu")

    def fit(features):
        reward = rv.LinearReward(rv_sparse(features) if kind == "sparse" else features)
        return METHODS[method](reward, weighting=weighting).fit(mdp, demos)

    one, other = fit(F), fit(F * units)
    assert one.status.code == other.status.code == "converged"
    np.testing.assert_allclose(other.theta * units, one.theta, rtol=1e-6)
    if weighting == "sample":
        np.testing.assert_allclose(other.bse.to_numpy() * units, one.bse.to_numpy(), rtol=1e-6)


def rv_sparse(features):
    import scipy.sparse as sp

    return [sp.csr_array(features[:, a]) for a in range(features.shape[1])]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", GOAL_TRIPS)
def test_trips_with_goals_in_any_units(kind, method):
    trips = GOAL_TRIPS[kind]
    units = 10.0 ** np.array([-11, 9, 0])[: trips.features.shape[2]]
    one, other = (
        METHODS[method](rv.LinearReward(trips.features * u)).fit(trips.mdp, trips.demos) for u in (1.0, units)
    )
    assert one.status.code == other.status.code == "converged"
    np.testing.assert_allclose(other.theta * units, one.theta, rtol=1e-6)
    np.testing.assert_allclose(other.bse.to_numpy() * units, one.bse.to_numpy(), rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_many_features_without_second_derivatives(scale):
    """More features than Newton's method takes: L-BFGS goes by their ranges."""
    rng = np.random.default_rng(1)
    F = rng.normal(size=(500, 401)) * (rng.random((500, 401)) < 0.05)
    mdp = random_mdp(500, 3, seed=3)
    demos = draw(mdp, F[:, :1] * np.ones(3), 50, 40)
    one = rv.CCP(rv.LinearReward(F), l2=0.0, max_iter=40).fit(mdp, demos)
    other = rv.CCP(rv.LinearReward(F * scale), l2=0.0, max_iter=40).fit(mdp, demos)
    assert one.iterations == other.iterations > 10
    assert other.llf == pytest.approx(one.llf, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_a_function_of_parameters_in_any_units(optimizer, scale):
    import jax.numpy as jnp

    def fit(unit):
        reward = rv.JaxReward(lambda p, x: (x * unit) @ p, np.zeros(2), FEATURES, ["a", "b"])
        return rv.CCP(reward, optimizer=optimizer, **FAST.get(optimizer, {})).fit(MDP, DEMOS)

    one, other = fit(jnp.ones(2)), fit(jnp.array([scale, 1.0]))
    assert one.converged
    assert_alike(told(one, 1.0), told(other, np.array([scale, 1.0])), rtol=1e-5)


def test_a_level_that_no_choice_sees_is_no_way_to_go():
    """The last bias of a small network on a model that never ends: its slope is rounding, which as a unit would make
    steps of 1e14 that drown the rest of the reward."""
    import jax.numpy as jnp

    def network(p, x):
        return jnp.tanh(x @ p[:8].reshape(2, 4) + p[8:12]) @ p[12:16] + p[16]

    rng = np.random.default_rng(0)
    start, x = 0.5 * rng.normal(size=17), rng.normal(size=(MDP.n_states, 2))
    without = rv.JaxReward(lambda p, x: network(jnp.append(p, 0.0), x), start[:16], x)
    fit, other = (rv.NFXP(reward, l2=1e-3).fit(MDP, DEMOS) for reward in (rv.JaxReward(network, start, x), without))
    assert np.abs(fit.reward).max() < 1e3
    assert fit.converged
    assert fit.llf == pytest.approx(other.llf, abs=0.5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", [1e3, 1e6])
def test_a_level_that_no_choice_sees_changes_nothing(method, level):
    """Of a function of parameters, too, whose slopes are large and hardly differ between actions."""
    plain, lifted = (
        METHODS[method](rv.JaxReward(lambda p, x: x @ p, np.zeros(2), FEATURES + c)).fit(MDP, DEMOS)
        for c in (0.0, level)
    )
    assert lifted.status.code == plain.status.code == "converged"
    np.testing.assert_allclose(lifted.theta, plain.theta, rtol=1e-4)
    np.testing.assert_allclose(lifted.bse, plain.bse, rtol=1e-3)


def test_many_parameters_of_a_function_in_any_units():
    """Beyond some thirty they share one unit."""
    rng = np.random.default_rng(1)
    F = rng.normal(size=(60, 40))
    mdp = random_mdp(60, 3, seed=3)
    demos = draw(mdp, F[:, :1] * np.ones(3), 50, 40)

    def fit(unit):
        return rv.CCP(rv.JaxReward(lambda p, x: x @ p, np.zeros(40), F * unit), max_iter=300).fit(mdp, demos)

    one, other = fit(1.0), fit(1e-8)
    assert one.status.code == other.status.code
    assert other.llf == pytest.approx(one.llf, rel=1e-6)
    assert one.iterations == other.iterations > 5


@pytest.mark.parametrize("optimizer", ["newton", "lbfgs"])
@pytest.mark.parametrize("size", [1e3, 1e6])
def test_a_feature_that_is_huge_where_choices_are_sure(optimizer, size):
    """What counts is the scale of the choices that tell something, not the largest gap of all."""
    by_action = np.zeros((3, 2, 1))
    by_action[:, 1, 0] = [1.0, 1.0, size]
    counts = rv.Demonstrations.from_counts(np.array([[40.0, 60.0], [45.0, 55.0], [0.0, 20.0]]))
    fit = rv.CCP(rv.LinearReward(by_action), optimizer=optimizer).fit(shuffled(3), counts)
    assert fit.converged
    assert fit.theta[0] == pytest.approx(np.log(115 / 85), rel=1e-4)


def test_invisible_directions_are_named_in_any_units():
    x = np.random.default_rng(0).normal(size=12)
    mdp = random_mdp(12, 3, seed=1)
    demos = draw(mdp, 0.5 * x[:, None], 200, 20)
    F = np.column_stack([x, 1e-9 * x, np.random.default_rng(1).normal(size=12) * 1e6])
    fit = rv.NFXP(rv.LinearReward(F, names=["metres", "gigametres", "other"])).fit(mdp, demos)
    assert fit.status.code == "unidentified"
    assert "1e-09·`metres`" in fit.status.message or "1e+09·`gigametres`" in fit.status.message
    assert "`other`" not in fit.status.message
    assert np.isfinite(fit.bse["other"])
    assert fit.bse[["metres", "gigametres"]].isna().all()


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_differences_of_the_gradient_are_the_hessian_in_any_units(scale):
    """Of a reward with a Hessian, so that there is something to compare with."""
    F = FEATURES * np.array([scale, 1.0])
    case = Case(MDP, DEMOS.counts, OwnPolicy(MDP))
    point = Objective(rv.LinearReward(F), [case]).at(np.array([0.4 / scale, -0.2]))
    units = units_of(point)
    exact = point.hessian / np.outer(units, units)
    np.testing.assert_allclose(difference_hessian(point) / np.outer(units, units), exact, atol=1e-6 * abs(exact).max())


# a stationary point is not always a maximum


def even(features):
    """A reward that is even in its parameter, so that zero is stationary whatever was chosen."""
    return rv.JaxReward(lambda p, x: x[..., 0] * p[0] ** 2, np.zeros(1), features, ["squared"])


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_minimum_is_left_and_said_so(optimizer, unit):
    x = np.zeros((4, 2, 1))
    x[:, 0, 0] = unit
    demos = rv.Demonstrations.from_counts(np.array([[80.0, 20.0], [3.0, 3.0], [5.0, 4.0], [9.0, 2.0]]))
    options = {"optimizer": optimizer, **FAST.get(optimizer, {})}
    fit = rv.CCP(even(x), **options).fit(shuffled(4), demos)
    assert fit.converged
    assert fit.theta[0] ** 2 * unit == pytest.approx(np.log(97 / 29), rel=1e-2)
    assert any("stationary point that is not a maximum" in note for note in fit.status.notes)
    other_way = demos.counts[:, ::-1]
    held = rv.CCP(even(x), **options).fit(shuffled(4), rv.Demonstrations.from_counts(other_way))
    assert held.theta[0] == pytest.approx(0.0, abs=1e-2 / np.sqrt(unit))  # there zero is the maximum
    assert not any("stationary" in note for note in held.status.notes)


def fork() -> tuple[rv.MDP, np.ndarray]:
    """State 0 leads to a state where one may take or pay one unit, or to one where nothing matters: to have the choice
    is worth more the farther θ is from zero, either way."""
    T = np.zeros((3, 2, 3))
    T[0, 0, 1] = T[0, 1, 2] = T[1, :, 0] = T[2, :, 0] = 1.0
    x = np.zeros((3, 2, 1))
    x[1, :, 0] = 1.0, -1.0
    return rv.MDP(T, discount=0.9), x


@pytest.mark.parametrize("optimizer", ["newton", "lbfgs", "adam"])
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_linear_reward_does_not_stay_where_the_likelihood_bends_upwards(optimizer, unit):
    """Under NFXP the likelihood is even in θ, and where the choice was sought zero is its minimum."""
    mdp, x = fork()
    demos = rv.Demonstrations.from_counts(np.array([[80.0, 20.0], [3.0, 3.0], [3.0, 3.0]]))
    options = {"optimizer": optimizer, **FAST.get(optimizer, {})}
    fit = rv.NFXP(rv.LinearReward(unit * x), **options).fit(mdp, demos)
    elsewhere = rv.NFXP(rv.LinearReward(x), start=[0.5], **options).fit(mdp, demos)
    assert fit.converged
    assert fit.llf == pytest.approx(elsewhere.llf, abs=1e-3)
    assert any("stationary point that is not a maximum" in note for note in fit.status.notes)
    assert np.isfinite(fit.bse).all()


def test_a_maximum_is_not_left():
    mdp, x = fork()
    demos = rv.Demonstrations.from_counts(np.array([[20.0, 80.0], [3.0, 3.0], [3.0, 3.0]]))
    fit = rv.NFXP(rv.LinearReward(x)).fit(mdp, demos)
    assert fit.converged
    assert fit.theta[0] == pytest.approx(0.0, abs=1e-6)
    assert not fit.status.notes


def test_a_corridor_in_kilometres():
    """The same in one sentence, for the method's own policy: metres, kilometres, light years."""
    x = np.arange(6.0)[:, None]
    demos = draw(corridor(6), 0.3 * x, 100, 20)
    thetas = [rv.MCEIRL(rv.LinearReward(x * u)).fit(corridor(6), demos).theta[0] * u for u in (1.0, 1e-3, 1e-12)]
    np.testing.assert_allclose(thetas, thetas[0], rtol=1e-8)
