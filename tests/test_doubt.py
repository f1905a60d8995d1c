"""Bands: what follows from a covariance, from draws, and from what the data cannot tell."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from models import random_mdp
from oracle import Floats, central_differences, relative_gap
from revealed.behaviour import QUANTITIES
from revealed.counterfactual import counterfactual
from revealed.errors import InvalidOption
from revealed.scenario import as_setting
from scenarios import (
    COV,
    THETA,
    estimate,
    fleet,
    fleet_demos,
    fleet_fit,
    fleet_with_estimated_moves,
    whitened,
)
from zoo import KINDS, problem


@pytest.fixture(scope="module")
def world() -> rv.environments.World:
    return fleet()


@pytest.fixture(scope="module")
def bus() -> Any:
    return estimate(fleet().mdp, fleet().reward_model(), THETA, COV)


# ---- from a covariance and from draws ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_standard_errors_are_those_of_the_delta_method_by_central_differences(kind):
    animal = problem(kind)
    features = animal.pair_features()
    theta, cov = animal.theta(), 0.01 * (np.eye(3) + 0.5)
    fit = estimate(animal.mdp, rv.LinearReward(features), theta, cov)
    rules: Any = {"theta0": lambda x: 1.3 * x - 0.1 * x**2, "theta2": -1.1}
    cf = counterfactual(fit, params=rules)

    def solution(x: Floats) -> tuple[Floats, Floats]:
        new = np.array([1.3 * x[0] - 0.1 * x[0] ** 2, x[1], -1.1])
        both = [rv.solve(animal.mdp, animal.lift(features @ t)) for t in (x, new)]
        return both[0].policy, both[1].policy

    def spread(G: Floats) -> Floats:
        return np.sqrt(np.einsum("sak,kl,sal->sa", G, cov, G))

    G_before = central_differences(lambda x: solution(x)[0], theta)
    G_after = central_differences(lambda x: solution(x)[1], theta)
    for part, G in ((cf.before, G_before), (cf.after, G_after), (cf.change, G_after - G_before)):
        assert relative_gap(part.se.policy, spread(G)) < 1e-6


def test_bands_reach_z_standard_errors_but_not_beyond_what_can_be(bus):
    cf = counterfactual(bus, params={"RC": lambda rc: 1.2 * rc}, level=0.9)
    reach = 1.6448536269514722 * cf.change.se.welfare
    assert cf.change.lower.welfare == pytest.approx(cf.change.welfare - reach, rel=1e-12)
    assert cf.change.upper.welfare == pytest.approx(cf.change.welfare + reach, rel=1e-12)
    assert cf.before.lower.policy.min() >= 0.0
    assert cf.before.upper.policy.max() <= 1.0
    assert cf.before.lower.occupancy.min() >= 0.0


def test_with_small_errors_bootstrap_and_delta_method_coincide(world):
    """For draws with covariance C → 0 every quantity is linear in them, and the spread is √(g'Cg)."""
    small = 1e-8 * COV
    fit = estimate(world.mdp, world.reward_model(), THETA, small, THETA + whitened(small, n=60))
    rules: Any = {"RC": lambda rc: 1.2 * rc}
    exact, drawn = (counterfactual(fit, params=rules, bands=bands) for bands in ("delta", "bootstrap"))
    for part in ("before", "after", "change"):
        for name in QUANTITIES:
            one, other = (np.asarray(getattr(getattr(cf, part).se, name)) for cf in (exact, drawn))
            np.testing.assert_allclose(other, one, rtol=2e-3, atol=1e-3 * np.abs(one).max(), err_msg=f"{part} {name}")


def test_percentiles_of_draws_are_those_of_the_quantity(world):
    draws = THETA + whitened(COV, n=40)
    fit = estimate(world.mdp, world.reward_model(), THETA, COV, draws)
    cf = counterfactual(fit, params={"RC": lambda rc: 1.2 * rc}, bands="bootstrap", level=0.8)
    change = []
    for theta in draws:
        sides = [rv.solve(world.mdp, world.features @ (theta * scale)) for scale in ([1.0, 1.0], [1.2, 1.0])]
        change.append(sides[1].value[0] - sides[0].value[0])
    low, high = np.quantile(change, [0.1, 0.9], method="weibull")
    assert cf.change.lower.welfare == pytest.approx(low, rel=1e-9)
    assert cf.change.upper.welfare == pytest.approx(high, rel=1e-9)
    assert cf.change.se.welfare == pytest.approx(np.std(change, ddof=1), rel=1e-9)


def test_draws_without_a_value_are_left_out_and_told():
    mdp = rv.MDP(np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2), 1.0, [1.0, 0.0], terminal=[False, True])
    reward = rv.LinearReward(np.array([[[1.0], [0.0]]] * 2), names=("stay",))  # to stay pays θ < 0, or nobody ends
    draws = np.array([[-1.0], [-1.2], [0.5], [-0.8]])
    fit = estimate(mdp, reward, np.array([-1.0]), np.eye(1), draws)
    cf = counterfactual(fit, params={"stay": -2.0}, bands="bootstrap")
    assert any("1 draws are left out" in note for note in cf.notes)
    values = -np.log(1.0 - np.exp(draws[[0, 1, 3], 0]))  # exp V = exp(θ + V) + 1
    assert cf.before.se.welfare == pytest.approx(np.std(values, ddof=1), rel=1e-9)


def test_what_an_unidentified_parameter_cannot_move_still_has_a_band(world):
    """A constant moves no choice where nothing ends: choices keep their bands, welfare has none."""
    constant = rv.LinearReward(np.concatenate([world.features, np.ones((40, 2, 1))], axis=2), ("RC", "theta11", "c"))
    with_it, without = rv.NFXP(constant).fit(world.mdp, fleet_demos()), fleet_fit()
    one, other = (f.counterfactual(params={"RC": lambda rc: 1.2 * rc}) for f in (with_it, without))
    assert np.isnan(one.before.se.welfare)
    assert np.isnan(one.before.se.value).all()
    for name in ("policy", "occupancy", "long_run", "frequencies"):
        np.testing.assert_allclose(getattr(one.change.se, name), getattr(other.change.se, name), rtol=1e-6, atol=1e-9)
    assert one.notes == ("the data say nothing about `c`; quantities that depend on it have no band.",)
    assert one.change.se.welfare == pytest.approx(other.change.se.welfare, rel=1e-6)  # of both sides it cancels


def doubled() -> rv.Fit:
    """The cost of an engine stands in the reward twice: only its sum can be told."""
    twice = np.concatenate([fleet().features, fleet().features[:, :, :1]], axis=2)
    return rv.NFXP(rv.LinearReward(twice, ("RC", "theta11", "RC2"))).fit(fleet().mdp, fleet_demos())


@pytest.mark.parametrize("kind", ["hessian", "opg", "robust", "cluster"])
def test_collinear_features_hide_weights_but_not_what_follows_from_their_sum(kind):
    """With θ_RC + θ_RC2 in the place of θ_RC behaviour is the same, and so is what is known of it."""
    less_patient: Any = {"mdp": fleet().mdp.replace(discount=0.9)}
    fit = doubled().with_errors(kind)
    assert fit.bse.isna().tolist() == [True, False, True]
    one, other = (f.counterfactual(**less_patient) for f in (fit, fleet_fit().with_errors(kind)))
    assert fit.bse.isna().tolist() == [True, False, True]  # the weights themselves stay unknown
    for part in ("before", "after", "change"):
        for name in QUANTITIES:
            found, expected = (np.asarray(getattr(getattr(cf, part).se, name)) for cf in (one, other))
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9, err_msg=f"{part} {name}")
    assert "Bands of the change" in str(one)
    assert one.notes[1:] == ("the data say nothing about `RC` − `RC2`; quantities that depend on it have no band.",)


def test_a_change_to_one_of_two_collinear_weights_has_no_band_and_none_is_announced():
    """RC = 12 with RC2 at its estimate: the data say nothing about RC2."""
    cf = doubled().counterfactual(params={"RC": 12.0})
    assert np.isfinite(cf.before.se.welfare)
    assert np.isnan(cf.after.se.welfare)
    assert cf.table()["se"].isna().all()
    assert "Bands of the change" not in str(cf)
    assert "`RC` − `RC2`" in str(cf)
    both = doubled().counterfactual(params={"RC": lambda rc: 1.2 * rc, "RC2": lambda rc: 1.2 * rc})
    alone = fleet_fit().counterfactual(params={"RC": lambda rc: 1.2 * rc})
    assert both.change.se.welfare == pytest.approx(alone.change.se.welfare, rel=1e-6)


def test_what_was_never_seen_has_no_band_though_the_rest_has():
    """Without foresight, choices in a state that was not observed are not told by the others, but shares need them."""
    mdp = random_mdp(4, 2, discount=0.0)
    X = np.random.default_rng(0).normal(size=(4, 2, 2))
    X[:, :, 1] = 0.0
    X[3, 1, 1] = 1.0
    counts = np.array([[30, 20], [25, 40], [30, 10], [0, 0]])
    fit = rv.NFXP(rv.LinearReward(X)).fit(mdp, rv.Demonstrations.from_counts(counts))
    cf = fit.counterfactual(params={"theta0": 0.0})
    assert (cf.before.se.policy[:3] > 0.0).all()
    assert np.isnan(cf.before.se.policy[3]).all()
    assert np.isnan(cf.before.se.frequencies).all()


def test_a_parameter_without_a_variance_counts_only_where_it_moves_something(world):
    cov = np.array([[0.1, np.nan], [np.nan, np.nan]])
    fit = estimate(world.mdp, world.reward_model(), THETA, cov)
    cf = counterfactual(fit, params={"theta11": 30.0})
    assert np.isnan(cf.before.se.welfare)
    slope = central_differences(
        lambda rc: rv.solve(world.mdp, world.features @ np.array([rc[0], 30.0])).value[0], THETA[:1]
    )
    assert cf.after.se.welfare == pytest.approx(abs(slope[0]) * np.sqrt(0.1), rel=1e-6)


def test_a_reward_without_a_jacobian_has_the_same_bands(world, bus):
    linear = world.reward_model()
    plain = SimpleNamespace(
        n_params=2, names=linear.names, init=linear.init, value=linear.value, vjp=linear.vjp
    )  # the protocol, and nothing more
    one, other = (counterfactual(f, params={"RC": 12.0}) for f in (estimate(world.mdp, plain, THETA, COV), bus))
    np.testing.assert_allclose(one.change.se.policy, other.change.se.policy, rtol=1e-6)
    assert one.change.se.welfare == pytest.approx(other.change.se.welfare, rel=1e-8)


def test_bands_use_the_kind_of_errors_that_the_fit_uses():
    fit = fleet_fit()
    rules: Any = {"RC": lambda rc: 1.2 * rc}
    G = np.array([
        (rv.solve(fit.mdp, fit.reward_model.value(fit.theta * [1.2, 1.0] + e * [1.2, 1.0])).value[0]
         - rv.solve(fit.mdp, fit.reward_model.value(fit.theta + e)).value[0])
        for e in np.vstack([np.eye(2), -np.eye(2)]) * 1e-5
    ])  # fmt: skip
    slope = (G[:2] - G[2:]) / 2e-5
    for kind in ("hessian", "cluster"):
        cov = fit.cov_params(kind).to_numpy()
        found = fit.with_errors(kind).counterfactual(params=rules).change.se.welfare
        assert found == pytest.approx(np.sqrt(slope @ cov @ slope), rel=1e-6)


def test_by_default_bands_follow_a_fit_whose_errors_are_those_of_a_bootstrap():
    rules: Any = {"params": {"RC": lambda rc: 1.2 * rc}}
    plain = fleet_fit()
    drawn: Any = {"bands": "bootstrap", "reps": 8, "seed": 3}
    fit = plain.with_errors("bootstrap", reps=8, seed=3)
    own, asked = fit.counterfactual(**rules), plain.counterfactual(**rules, **drawn)
    assert own.bands == "bootstrap"
    for part in ("se", "lower", "upper"):
        np.testing.assert_array_equal(getattr(own.change, part).policy, getattr(asked.change, part).policy)
    curve = fit.demand_curve("RC", [5.0], "replace")
    assert curve.se[0] == plain.demand_curve("RC", [5.0], "replace", **drawn).se[0]
    assert curve.interval == pytest.approx(tuple(fit.conf_int().loc["RC"]))
    fewer = fit.counterfactual(**rules, reps=4)
    assert fewer.change.se.welfare == fit.counterfactual(**rules, bands="bootstrap", reps=4).change.se.welfare
    assert fewer.change.se.welfare != own.change.se.welfare
    assert fit.counterfactual(**rules, bands="delta").bands == "delta"


def test_draws_that_were_interrupted_are_used_and_told(world):
    draws = THETA + whitened(COV, n=5)
    fit = estimate(world.mdp, world.reward_model(), THETA, COV, draws, errors=("bootstrap", False), bootstrap=None)
    fit.drawn.interrupted, fit.drawn.asked = True, 400  # which is not begun again
    cf = counterfactual(fit, params={"RC": 12.0})
    assert cf.notes[0] == "the bootstrap was interrupted: 5 draws of 400."
    assert cf.notes[1].startswith("5 replications are too few for confidence intervals")
    assert cf.before.se.welfare > 0.0


@pytest.mark.parametrize("bands", ["auto", "delta"])
def test_a_search_that_did_not_end_gives_an_answer_without_bands(world, bands):
    fit = rv.NFXP(world.reward_model(), max_iter=1).fit(world.mdp, fleet_demos())
    assert fit.status.code == "iteration_limit"
    cf = fit.counterfactual(params={"RC": 12.0}, bands=bands)
    np.testing.assert_allclose(cf.before.policy, rv.solve(world.mdp, fit.reward).policy, rtol=1e-10)
    assert cf.bands is None
    assert "the search did not finish (iteration_limit)" in cf.notes[0]
    assert "Bands" not in str(cf)
    curve = fit.demand_curve("RC", [5.0], "replace", bands=bands)
    assert np.isnan(curve.se).all()
    assert np.isnan(curve.interval).all()
    assert "Bands" not in str(curve)


def test_where_a_variance_would_be_negative_there_is_no_band(world):
    """A penalised fit can have such a covariance; a standard error of zero would be a lie."""
    cov = np.array([[0.1, 0.0], [0.0, -12.0]])
    fit = estimate(world.mdp, world.reward_model(), THETA, cov)
    cf = counterfactual(fit, params={"RC": 12.0})  # what moves it is theta11 alone
    assert np.isnan(cf.after.se.welfare)
    assert "not positive" in cf.notes[0]
    assert counterfactual(fit, params={"theta11": 12.0}).after.se.welfare > 0.0


NETWORK = np.random.default_rng(0).normal(size=(5, 3, 2))


@pytest.mark.parametrize("horizon", [None, 4])
def test_bands_of_a_network_are_those_of_its_weights_by_central_differences(horizon):
    plain = random_mdp(5, 3, initial=True, discount=0.8)
    demos = rv.simulate(plain, rv.solve(plain, np.tanh(NETWORK @ [2.0, -1.0])).policy, 400, 4, seed=0)
    mdp = plain if horizon is None else plain.unroll(horizon)
    reward = rv.NeuralReward(NETWORK, hidden=(2,), activation="tanh")
    fit = rv.NFXP(reward, l2=1e-3, optimizer="lbfgs", tol=1e-6, max_iter=2000).fit(mdp, demos)
    assert fit.converged
    cf = fit.counterfactual(mdp=mdp.replace(discount=0.5))
    cov, hidden = fit.partial_covariance()
    assert len(hidden) == 0

    def both(theta: Floats) -> Floats:
        now, then = (rv.solve(mdp.replace(discount=g), mdp.lift(reward.value(theta))) for g in (0.8, 0.5))
        return np.append(then.policy - now.policy, mdp.start() @ (then.value - now.value))

    G = central_differences(both, fit.theta)
    spread = np.sqrt(np.einsum("im,mn,in->i", G, cov, G))
    found = np.append(cf.change.se.policy, cf.change.se.welfare)
    assert found[-1] > 0.01
    assert relative_gap(found, spread) < 1e-5


def test_where_the_fit_has_no_covariance_there_are_no_bands_and_a_reason(world):
    fit = rv.NFXP(world.reward_model(), weighting="occupancy").fit(world.mdp, fleet_demos())
    cf = fit.counterfactual(params={"RC": 12.0})
    assert cf.bands is None
    assert np.isnan(cf.change.se.welfare)
    assert "no bands" in cf.notes[0]
    assert cf.table()["se"].isna().all()
    with pytest.raises(InvalidOption):
        fit.counterfactual(params={"RC": 12.0}, bands="delta")


def test_bands_of_a_weight_per_state_need_the_bootstrap():
    mdp = random_mdp(5, 2, initial=True)
    fit = estimate(mdp, rv.TabularReward(5), np.zeros(5), np.eye(5))
    assert "weight per state" in counterfactual(fit, params={"state0": 1.0}).notes[0]
    with pytest.raises(InvalidOption, match="bootstrap"):
        counterfactual(fit, params={"state0": 1.0}, bands="delta")


# ---- estimated transitions ---------------------------------------------------------------------------------------


def test_joint_errors_count_the_noise_in_the_transitions():
    estimated_fit = fleet_with_estimated_moves()
    """The derivative in ψ, by differences of whole solutions, beside that in θ."""
    fit = estimated_fit.with_errors("cluster", joint=True)
    cov = fit.cov_params().to_numpy()
    model: Any = fit.mdp.estimated

    def welfare(x: Floats) -> float:
        mdp = fit.mdp.replace(transitions=model.at(x[2:]).matrix)
        after, before = (rv.solve(mdp, fit.reward_model.value(x[:2] * s)).value[0] for s in ([1.2, 1.0], [1.0, 1.0]))
        return after - before

    G = central_differences(welfare, np.concatenate([fit.theta, model.psi]))
    found = fit.counterfactual(params={"RC": lambda rc: 1.2 * rc}).change.se.welfare
    assert found == pytest.approx(np.sqrt(G @ cov @ G), rel=1e-6)
    assert found != pytest.approx(np.sqrt(G[:2] @ cov[:2, :2] @ G[:2]), rel=1e-3)


def test_joint_errors_on_a_horizon_move_the_same_probabilities_in_every_period():
    """∂T/∂ψ acts between each period and the next (theory F1): against whole solutions of the unrolled model."""
    base = fleet_with_estimated_moves().mdp
    moves: Any = base.estimated
    mdp, reward = base.unroll(6), fleet().reward_model()
    x, K = np.concatenate([THETA, moves.psi]), THETA.size
    root = np.diag([0.3, 3.0, 0.05, 0.05]) @ np.random.default_rng(0).normal(size=(4, 4))
    cov = root @ root.T
    fit = estimate(mdp, reward, THETA, cov, errors=("cluster", True))
    cf = counterfactual(fit, params={"RC": lambda rc: 0.5 * rc})

    def answer(x: Floats) -> Floats:
        out = []
        for scale in ([1.0, 1.0], [0.5, 1.0]):
            model = base.replace(transitions=moves.at(x[K:]).matrix).unroll(6)
            best = rv.solve(model, model.lift(reward.value(x[:K] * scale)))
            visits = best.chain.solve_transpose(model.start())
            out.append([model.start() @ best.value, *best.policy[:, 1], *visits])
        return np.array(out)

    G = central_differences(answer, x)
    spread = np.sqrt(np.einsum("ijm,mn,ijn->ij", G, cov, G))
    for side, expected in zip((cf.before, cf.after), spread, strict=True):
        found = [side.se.welfare, *side.se.policy[:, 1], *side.se.occupancy]
        assert relative_gap(np.array(found), expected) < 1e-6
    without = np.sqrt(np.einsum("ijm,mn,ijn->ij", G[:, :, :K], cov[:K, :K], G[:, :, :K]))
    assert abs(without[0, 0] - spread[0, 0]) > 0.1 * spread[0, 0]


def test_a_model_with_the_estimated_transitions_follows_them_and_another_stays():
    estimated_fit = fleet_with_estimated_moves()
    fit = estimated_fit
    same = fit.counterfactual(mdp=fit.mdp.replace(discount=0.99), bands="bootstrap", reps=6)
    assert same.before.se.long_run.max() > 0.0
    assert np.nanmax(same.change.se.value) == 0.0  # in every draw both sides are one world
    mdp = rv.MDP(fit.mdp.transitions.matrix, 0.99, fit.mdp.initial, action_labels=fit.mdp.action_labels)
    fixed = fit.counterfactual(mdp=mdp, bands="bootstrap", reps=6)
    assert fixed.change.welfare == pytest.approx(0.0, abs=1e-9)
    assert fixed.change.se.welfare > 1e-3
    joint = fit.with_errors("cluster", joint=True).counterfactual(mdp=mdp)
    assert joint.change.se.welfare > 1e-3
    assert fit.counterfactual(mdp=mdp).change.se.welfare == pytest.approx(0.0, abs=1e-9)  # T is taken as known


def test_bootstrap_bands_depend_on_the_seed_alone():
    estimated_fit = fleet_with_estimated_moves()
    options: Any = {"params": {"RC": 12.0}, "bands": "bootstrap", "reps": 6}
    one, two, other = (estimated_fit.counterfactual(**options, seed=s, jobs=j) for s, j in ((1, 1), (1, 2), (2, 1)))
    np.testing.assert_allclose(one.change.se.policy, two.change.se.policy, rtol=1e-8)
    assert one.change.se.welfare != pytest.approx(other.change.se.welfare, rel=1e-3)


# ---- slopes by differences ---------------------------------------------------------------------------------------


def curved(unit: float) -> Any:
    """The same hypothesis about RC, whose weight is counted in other units."""
    return {"RC": lambda x: 4.0 * np.exp((x / unit - 4.5) / 3.0) * unit}


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_the_slope_of_a_function_does_not_depend_on_units(world, unit):
    """RC in cents or in millions: bands by a step in standard errors are the same, and the derivative's."""
    U = np.array([unit, 1.0])
    fit = estimate(
        world.mdp, rv.LinearReward(world.features / U, names=["RC", "theta11"]), THETA * U, COV * np.outer(U, U)
    )
    cf = counterfactual(fit, params=curved(unit))

    def after(x: Floats) -> Floats:
        new = np.array([4.0 * np.exp((x[0] - 4.5) / 3.0), x[1]])
        return world.mdp.start() @ rv.solve(world.mdp, world.features @ new).value

    G = central_differences(after, THETA)
    assert cf.after.se.welfare == pytest.approx(np.sqrt(G @ COV @ G), rel=1e-6)
    plain = estimate(world.mdp, world.reward_model(), THETA, COV)
    assert cf.change.se.welfare == pytest.approx(counterfactual(plain, params=curved(1.0)).change.se.welfare, rel=1e-8)


def test_a_step_is_a_small_part_of_the_standard_error_wherever_zero_lies():
    """A function that bends within a standard error, far from zero: a step in proportion to θ would miss it."""
    setting = as_setting({"a": lambda x: np.sin(x - 1e6), "b": lambda x: x**3}, ("a", "b", "c"))
    slope = setting.slope(np.array([1e6, 2.0, 1.0]), np.array([0.5, np.nan, 0.1]))
    np.testing.assert_allclose(slope, [1.0, 12.0, 1.0], rtol=1e-6)
    precise = setting.slope(np.array([1e6, 2.0, 1.0]), np.array([1e-30, 1e-30, 0.1]))  # rounding must not show
    np.testing.assert_allclose(precise, [1.0, 12.0, 1.0], rtol=1e-4)


class Told:
    """A reward that is told only by its values, its weights counted in other units."""

    def __init__(self, features: Floats, unit: float) -> None:
        self.features, self.unit, self.n_params, self.names = features, unit, 2, ("RC", "theta11")

    def init(self, seed: int | None = None) -> Floats:
        return np.zeros(2)

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        bent = (1.0 - self.value(theta) ** 2) * cotangent
        return np.tensordot(bent, self.features, axes=2) / (40.0 * self.unit)

    def value(self, theta: Floats) -> Floats:
        return np.tanh(self.features @ (theta / self.unit) / 40.0)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_a_reward_without_derivatives_has_the_same_bands_in_any_units(world, unit):
    fit = estimate(world.mdp, Told(world.features, unit), THETA * unit, COV * unit**2)
    cf = counterfactual(fit, params={"RC": lambda x: 0.5 * x})

    def change(x: Floats) -> Floats:
        one = Told(world.features, 1.0)
        both = [rv.solve(world.mdp, one.value(x * s)).value for s in ([1.0, 1.0], [0.5, 1.0])]
        return world.mdp.start() @ (both[1] - both[0])

    G = central_differences(change, THETA)
    assert cf.change.se.welfare == pytest.approx(np.sqrt(G @ COV @ G), rel=1e-6)
