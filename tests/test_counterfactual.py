"""Counterfactuals: both sides are full solutions, bands follow from the estimate, what is not asked does not change."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from models import random_mdp
from oracle import Floats, central_differences, relative_gap
from revealed.behaviour import QUANTITIES
from revealed.counterfactual import Counterfactual, counterfactual
from revealed.errors import InvalidInput, InvalidOption, InvalidReward
from zoo import KINDS, problem

THETA = np.array([4.5, 36.0])
COV = np.array([[0.1, 0.8], [0.8, 12.0]])


def estimate(mdp: rv.MDP, reward: Any, theta: Floats, cov: Floats, draws: Floats | None = None) -> Any:
    """What a counterfactual needs to know of a fit."""
    psi = np.zeros((0 if draws is None else len(draws), 0))
    return SimpleNamespace(
        mdp=mdp,
        reward_model=reward,
        theta=theta,
        demonstrations=SimpleNamespace(starts=np.zeros(mdp.n_states)),
        options={"solver": "auto"},
        errors=("hessian", False),
        cov_params=lambda kind, joint: cov,
        bootstrap=lambda **options: SimpleNamespace(theta=draws, psi=psi, n_failed=0),
    )


@pytest.fixture(scope="module")
def world() -> rv.environments.World:
    return rv.environments.rust_bus(bins=40, RC=5.0, theta11=40.0, discount=0.99)


@pytest.fixture(scope="module")
def bus(world) -> Any:
    return estimate(world.mdp, world.reward_model(), THETA, COV)


@pytest.fixture(scope="module")
def fit(world) -> rv.Fit:
    return rv.NFXP(world.reward_model()).fit(world.mdp, world.demonstrate(60, seed=1))


@pytest.fixture(scope="module")
def estimated_fit(world) -> rv.Fit:
    """Transitions estimated from the same buses."""
    demos = world.demonstrate(60, seed=1)
    origin = np.column_stack([np.arange(40), np.zeros(40, dtype=int)])
    landing = np.minimum(origin[:, :, None] + np.arange(3), 39)
    labels = world.mdp.action_labels
    mdp = rv.MDP(rv.estimate_transitions(demos, landing), 0.99, np.eye(40)[0], action_labels=labels)
    return rv.NFXP(world.reward_model()).fit(mdp, demos)


def whitened(cov: Floats, n: int = 400, seed: int = 0) -> Floats:
    """(n, K) draws whose mean is zero and whose covariance is exactly `cov`."""
    x = np.random.default_rng(seed).normal(size=(n, len(cov)))
    x -= x.mean(axis=0)
    return x @ np.linalg.inv(np.linalg.cholesky(np.cov(x, rowvar=False))).T @ np.linalg.cholesky(cov).T


# ---- what the two sides are --------------------------------------------------------------------------------------


def test_both_sides_are_soft_optima(world, bus):
    cf = counterfactual(bus, params={"RC": 12.0}, mdp=world.mdp.replace(discount=0.9))
    for side, theta, gamma in ((cf.before, THETA, 0.99), (cf.after, np.array([12.0, 36.0]), 0.9)):
        best = rv.solve(world.mdp.replace(discount=gamma), world.features @ theta)
        np.testing.assert_allclose(side.policy, best.policy, rtol=1e-10)
        np.testing.assert_allclose(side.value, best.value, rtol=1e-10)
        np.testing.assert_allclose(side.occupancy, best.chain.occupancy(), rtol=1e-8, atol=1e-12)
        assert side.welfare == pytest.approx(best.value[0], rel=1e-10)
        assert side.frequencies.sum() == pytest.approx(1.0, rel=1e-12)


def test_ccp_starts_from_the_full_solution_at_its_estimate(world):
    fit = rv.CCP(world.reward_model(), first_step="smoothed").fit(world.mdp, world.demonstrate(60, seed=1))
    before = fit.counterfactual(params={"RC": 12.0}).before
    np.testing.assert_allclose(before.policy, rv.solve(world.mdp, fit.reward).policy, rtol=1e-10)
    assert np.abs(before.policy - fit.policy).max() > 1e-4


@pytest.mark.parametrize("change", [{"params": {"RC": lambda rc: rc}}, {"params": THETA}, {"params": {"RC": 4.5}}])
def test_the_same_parameters_change_nothing(bus, change):
    cf = counterfactual(bus, **change)
    for name in QUANTITIES:
        gap = np.asarray(getattr(cf.change, name))
        assert np.abs(gap[np.isfinite(gap)]).max() == 0.0, name


def test_the_same_model_and_the_same_reward_change_nothing_either_and_surely(world, bus):
    for change in ({"mdp": world.mdp.replace(discount=0.99)}, {"reward": world.reward_model()}):
        cf = counterfactual(bus, **change)
        assert cf.change.welfare == 0.0
        assert cf.change.se.welfare == 0.0
        assert np.abs(cf.change.se.policy).max() == 0.0


def test_rewards_given_as_numbers_carry_no_uncertainty(world, bus):
    cf = counterfactual(bus, reward=world.features @ THETA)
    np.testing.assert_array_equal(cf.change.policy, 0.0)
    assert cf.after.se.welfare == 0.0
    assert cf.change.se.welfare == pytest.approx(cf.before.se.welfare, rel=1e-12)
    assert cf.before.se.welfare > 1.0


def test_a_reward_and_parameters_go_together(world, bus):
    doubled = rv.LinearReward(2.0 * world.features, names=("RC", "theta11"))
    halved = {"RC": lambda x: x / 2, "theta11": lambda x: x / 2}
    cf = counterfactual(bus, params=halved, reward=doubled)
    np.testing.assert_allclose(cf.after.policy, cf.before.policy, rtol=1e-12)
    np.testing.assert_allclose(cf.change.se.policy, 0.0, atol=1e-12)


def test_choice_frequencies_are_the_shares_of_a_long_panel(bus):
    cf = counterfactual(bus, params={"RC": 3.0})
    n, length = 400, 300
    panel = cf.after.simulate(n, length, seed=0, initial=cf.after.long_run)  # a stationary start
    by_bus = panel.by_agent.toarray().reshape(n, 40, 2)[:, :, 1].sum(axis=1) / length
    assert abs(by_bus.mean() - cf.after.frequencies[1]) < 4 * by_bus.std() / np.sqrt(n)
    assert cf.after.frequencies[1] > 1.5 * cf.before.frequencies[1]


def test_on_a_horizon_frequencies_are_those_of_an_episode():
    mdp = random_mdp(6, 3, initial=True, discount=1.0).unroll(5)
    reward = rv.LinearReward(np.random.default_rng(0).normal(size=(6, 3, 2)))
    cf = counterfactual(estimate(mdp, reward, np.array([1.0, -0.5]), np.eye(2)), params={"theta0": 0.0})
    assert cf.before.ends
    path, shares = mdp.start(), np.zeros(3)
    for t in range(5):
        shares += path @ cf.before.policy / 5
        path = path @ mdp.transitions.mix(cf.before.policy).toarray()
        assert path.reshape(6, 6)[t + 1].sum() == pytest.approx(1.0)
    np.testing.assert_allclose(cf.before.frequencies, shares, rtol=1e-12)


# ---- where agents start ------------------------------------------------------------------------------------------


def test_agents_start_where_told_else_as_the_model_says_else_as_the_data_did_else_evenly():
    mdp = random_mdp(4, 2)
    reward = rv.LinearReward(np.random.default_rng(0).normal(size=(4, 2, 1)))
    fit = estimate(mdp, reward, np.ones(1), np.eye(1))
    np.testing.assert_array_equal(counterfactual(fit, params={"theta0": 0.0}).before.start, 0.25)
    fit.demonstrations.starts = np.array([3.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(counterfactual(fit, params={"theta0": 0.0}).before.start, [0.75, 0.25, 0, 0])
    given = counterfactual(fit, mdp=mdp.replace(initial=np.eye(4)[2]))
    np.testing.assert_array_equal(given.before.start, [0.75, 0.25, 0, 0])
    np.testing.assert_array_equal(given.after.start, np.eye(4)[2])
    told = counterfactual(fit, params={"theta0": 0.0}, initial=np.eye(4)[1])
    assert told.after.welfare == pytest.approx(told.after.value[1])


# ---- bands -------------------------------------------------------------------------------------------------------


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
    low, high = np.quantile(change, [0.1, 0.9])
    assert cf.change.lower.welfare == pytest.approx(low, rel=1e-9)
    assert cf.change.upper.welfare == pytest.approx(high, rel=1e-9)
    assert cf.change.se.welfare == pytest.approx(np.std(change, ddof=1), rel=1e-9)


def test_draws_without_a_value_are_left_out_and_told():
    mdp = rv.MDP(np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2), 1.0, [1.0, 0.0], terminal=[False, True])
    reward = rv.LinearReward(np.array([[[1.0], [0.0]]] * 2), names=("stay",))  # to stay pays θ < 0, or nobody ends
    draws = np.array([[-1.0], [-1.2], [0.5], [-0.8]])
    fit = estimate(mdp, reward, np.array([-1.0]), np.eye(1), draws)
    cf = counterfactual(fit, params={"stay": -2.0}, bands="bootstrap")
    assert any("1 draws have no value" in note for note in cf.notes)
    values = -np.log(1.0 - np.exp(draws[[0, 1, 3], 0]))  # exp V = exp(θ + V) + 1
    assert cf.before.se.welfare == pytest.approx(np.std(values, ddof=1), rel=1e-9)


def test_what_an_unidentified_parameter_cannot_move_still_has_a_band(world):
    """A constant moves no choice where nothing ends: choices keep their bands, welfare has none."""
    constant = np.concatenate([world.features, np.ones((40, 2, 1))], axis=2)
    lost = np.full((3, 3), np.nan)
    lost[:2, :2] = COV
    with_it = estimate(world.mdp, rv.LinearReward(constant, names=("RC", "theta11", "c")), np.append(THETA, 0.7), lost)
    without = estimate(world.mdp, world.reward_model(), THETA, COV)
    one, other = (counterfactual(f, params={"RC": lambda rc: 1.2 * rc}) for f in (with_it, without))
    assert np.isnan(one.before.se.welfare)
    assert np.isnan(one.before.se.value).all()
    for name in ("policy", "occupancy", "long_run", "frequencies"):
        np.testing.assert_allclose(getattr(one.change.se, name), getattr(other.change.se, name), rtol=1e-6, atol=1e-9)
    assert any("no standard error" in note for note in one.notes)
    assert one.change.se.welfare == pytest.approx(other.change.se.welfare, rel=1e-6)  # of both sides it cancels


def test_a_reward_without_a_jacobian_has_the_same_bands(world, bus):
    linear = world.reward_model()
    plain = SimpleNamespace(
        n_params=2, names=linear.names, init=linear.init, value=linear.value, vjp=linear.vjp
    )  # the protocol, and nothing more
    one, other = (counterfactual(f, params={"RC": 12.0}) for f in (estimate(world.mdp, plain, THETA, COV), bus))
    np.testing.assert_allclose(one.change.se.policy, other.change.se.policy, rtol=1e-6)
    assert one.change.se.welfare == pytest.approx(other.change.se.welfare, rel=1e-8)


def test_bands_use_the_kind_of_errors_that_the_fit_uses(fit):
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


def test_where_the_fit_has_no_covariance_there_are_no_bands_and_a_reason(world):
    fit = rv.NFXP(world.reward_model(), weighting="occupancy").fit(world.mdp, world.demonstrate(60, seed=1))
    cf = fit.counterfactual(params={"RC": 12.0})
    assert cf.bands is None
    assert np.isnan(cf.change.se.welfare)
    assert "no bands" in cf.notes[0]
    assert cf.table()["se"].isna().all()
    with pytest.raises(InvalidOption):
        fit.counterfactual(params={"RC": 12.0}, bands="delta")


# ---- estimated transitions ---------------------------------------------------------------------------------------


def test_joint_errors_count_the_noise_in_the_transitions(estimated_fit):
    """The derivative in ψ, by differences of whole solutions, beside that in θ."""
    fit = estimated_fit.with_errors("cluster", joint=True)
    cov = fit.cov_params().to_numpy()
    model = fit.mdp.estimated

    def welfare(x: Floats) -> float:
        mdp = fit.mdp.replace(transitions=model.at(x[2:]).matrix)
        after, before = (rv.solve(mdp, fit.reward_model.value(x[:2] * s)).value[0] for s in ([1.2, 1.0], [1.0, 1.0]))
        return after - before

    G = central_differences(welfare, np.concatenate([fit.theta, model.psi]))
    found = fit.counterfactual(params={"RC": lambda rc: 1.2 * rc}).change.se.welfare
    assert found == pytest.approx(np.sqrt(G @ cov @ G), rel=1e-6)
    assert found != pytest.approx(np.sqrt(G[:2] @ cov[:2, :2] @ G[:2]), rel=1e-3)


def test_a_model_with_the_estimated_transitions_follows_them_and_another_stays(estimated_fit):
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


def test_bootstrap_bands_depend_on_the_seed_alone(estimated_fit):
    options: Any = {"params": {"RC": 12.0}, "bands": "bootstrap", "reps": 6}
    one, two, other = (estimated_fit.counterfactual(**options, seed=s, jobs=j) for s, j in ((1, 1), (1, 2), (2, 1)))
    np.testing.assert_allclose(one.change.se.policy, two.change.se.policy, rtol=1e-8)
    assert one.change.se.welfare != pytest.approx(other.change.se.welfare, rel=1e-3)


# ---- other sizes -------------------------------------------------------------------------------------------------


def test_a_model_of_another_size_needs_its_reward_and_is_compared_in_what_they_share(world, bus):
    finer = rv.environments.rust_bus(bins=60, RC=5.0, theta11=40.0, discount=0.99)
    with pytest.raises(InvalidInput, match="reward= must come along"):
        counterfactual(bus, mdp=finer.mdp)
    cf = counterfactual(bus, mdp=finer.mdp, reward=finer.reward_model())
    best = rv.solve(finer.mdp, finer.features @ THETA)
    np.testing.assert_allclose(cf.after.policy, best.policy, rtol=1e-10)
    assert cf.change.welfare == pytest.approx(best.value[0] - rv.solve(world.mdp, world.features @ THETA).value[0])
    assert np.isfinite(cf.change.se.frequencies).all()
    assert np.isnan(cf.change.policy).all()
    assert np.isnan(cf.change.se.policy).all()
    assert cf.frame("value")["before"].isna().all()


def test_a_fit_can_be_asked_about_a_horizon(world, bus):
    cf = counterfactual(bus, mdp=world.mdp.unroll(12))
    best = rv.solve(world.mdp.unroll(12), np.tile(world.features @ THETA, (13, 1)))
    np.testing.assert_allclose(cf.after.policy, best.policy, rtol=1e-10)
    assert cf.after.ends
    assert not cf.before.ends


# ---- what a person sees ------------------------------------------------------------------------------------------


def test_the_table_names_actions_and_welfare(bus):
    cf = counterfactual(bus, params={"RC": 12.0})
    table: Any = cf.table()
    assert list(table.index) == ["keep", "replace", "welfare"]
    assert list(table.columns) == ["before", "after", "change", "se", "lower", "upper"]
    assert table.loc["welfare", "change"] == cf.change.welfare
    assert table.loc["replace", "se"] == cf.change.se.frequencies[1]
    assert table.loc["replace", "before"] + table.loc["replace", "change"] == pytest.approx(
        table.loc["replace", "after"]
    )
    frame = cf.frame("policy", "replace")
    np.testing.assert_array_equal(frame["after"], cf.after.policy[:, 1])
    np.testing.assert_array_equal(frame["lower"], cf.change.lower.policy[:, 1])
    for text in (str(cf), cf._repr_html_()):
        assert "RC 4.5 → 12" in text
        assert "replace" in text


def test_the_picture_shows_both_sides_in_their_bands(bus):
    cf = counterfactual(bus, params={"RC": 12.0})
    ax: Any = cf.plot("replace").axes[0]
    before, after = ax.get_lines()
    np.testing.assert_array_equal(before.get_ydata(), cf.before.policy[:, 1])
    np.testing.assert_array_equal(after.get_ydata(), cf.after.policy[:, 1])
    reach = ax.collections[1].get_paths()[0].vertices[:, 1]
    assert reach.max() == pytest.approx(cf.after.upper.policy[:, 1].max())
    assert ax.get_ylabel() == "probability to replace"


# ---- panels ------------------------------------------------------------------------------------------------------


def test_panels_are_drawn_under_either_side(fit):
    cf = fit.counterfactual(params={"RC": 3.0})
    after, before = (fit.simulate(200, 60, seed=3, under=u) for u in (cf, cf.before))
    for demos, side in ((after, cf.after), (before, cf.before)):
        visits = demos.counts.sum(axis=1)
        expected = visits @ side.policy[:, 1]
        noise = np.sqrt(visits @ (side.policy[:, 1] * side.policy[:, 0]))
        assert abs(demos.counts[:, 1].sum() - expected) < 4 * noise
    assert after.counts[:, 1].sum() > 1.5 * before.counts[:, 1].sum()
    assert set(after.to_frame()["action"]) == {"keep", "replace"}
    with pytest.raises(InvalidInput, match="under"):
        fit.simulate(5, 5, under=fit)


# ---- what is refused ---------------------------------------------------------------------------------------------


def wrong(**arguments: Any) -> Any:
    return pytest.param(arguments.pop("match"), arguments.pop("error", InvalidInput), arguments)


@pytest.mark.parametrize(
    ("match", "error", "arguments"),
    [
        wrong(match="something that changes"),
        wrong(match="Did you mean theta11", params={"theta_11": 1.0}),
        wrong(match="a number, or a function", params={"RC": "high"}),
        wrong(match="a number, or a function", params={"RC": np.nan}),
        wrong(match="makes a number", params={"RC": lambda rc: "twice"}),
        wrong(match="all 2 numbers", params=[1.0, 2.0, 3.0]),
        wrong(match="rv.MDP", mdp=0.9),
        wrong(match="2 parameters", error=InvalidReward, reward=rv.LinearReward(np.zeros((40, 2, 3)))),
        wrong(match="shape", error=InvalidReward, reward=np.zeros((39, 2))),
        wrong(match="n_params, names", error=InvalidReward, reward="linear"),
        wrong(match="both", error=InvalidOption, params={"RC": 1.0}, reward=np.zeros((40, 2))),
        wrong(match="bands", error=InvalidOption, params={"RC": 1.0}, bands="jackknife"),
        wrong(match="level", error=InvalidOption, params={"RC": 1.0}, level=95),
        wrong(match="reps", error=InvalidOption, params={"RC": 1.0}, bands="delta", reps=10),
        wrong(match="initial", params={"RC": 1.0}, initial=[1.0]),
    ],
)
def test_questions_that_make_no_sense_are_refused_with_a_reason(bus, match, error, arguments):
    with pytest.raises(error, match=match):
        counterfactual(bus, **arguments)


def test_frames_ask_for_an_action_and_a_known_quantity(bus):
    cf: Counterfactual = counterfactual(bus, params={"RC": 12.0}, bands=None)
    for arguments, match in ((("policy",), "action"), (("policy", "repalce"), "replace"), (("polcy",), "policy")):
        with pytest.raises(InvalidInput, match=match):
            cf.frame(*arguments)


def test_bands_of_a_weight_per_state_need_the_bootstrap():
    mdp = random_mdp(5, 2, initial=True)
    fit = estimate(mdp, rv.TabularReward(5), np.zeros(5), np.eye(5))
    assert "weight per state" in counterfactual(fit, params={"state0": 1.0}).notes[0]
    with pytest.raises(InvalidOption, match="bootstrap"):
        counterfactual(fit, params={"state0": 1.0}, bands="delta")
