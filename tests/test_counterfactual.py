"""Counterfactuals: both sides are full solutions, what is not asked does not change, what is shown says what it is."""

from typing import Any

import numpy as np
import pytest

import revealed as rv
from models import random_mdp
from revealed.behaviour import QUANTITIES
from revealed.counterfactual import Counterfactual, counterfactual
from revealed.demand import demand_curve
from revealed.errors import InvalidInput, InvalidOption, InvalidReward, ValueDoesNotExist
from scenarios import COV, THETA, estimate, fleet, fleet_demos, fleet_fit


@pytest.fixture(scope="module")
def world() -> rv.environments.World:
    return fleet()


@pytest.fixture(scope="module")
def bus() -> Any:
    return estimate(fleet().mdp, fleet().reward_model(), THETA, COV)


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
    fit = rv.CCP(world.reward_model(), first_step="smoothed").fit(world.mdp, fleet_demos())
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


def test_it_says_which_start_was_used():
    """Welfare and visits mean nothing without it."""
    mdp = random_mdp(4, 2)
    reward = rv.LinearReward(np.random.default_rng(0).normal(size=(4, 2, 1)))
    fit = estimate(mdp, reward, np.ones(1), np.eye(1))
    change: Any = {"params": {"theta0": 0.0}}
    assert "Starts: uniform over the non-terminal states." in str(counterfactual(fit, **change))
    assert "Starts: as given." in str(counterfactual(fit, **change, initial=np.eye(4)[1]))
    fit.demonstrations.starts = np.array([3.0, 1.0, 0.0, 0.0])
    assert "Starts: where the data started." in str(counterfactual(fit, **change))
    elsewhere = counterfactual(fit, mdp=mdp.replace(initial=np.eye(4)[2]))
    assert "Starts before: where the data started; after: the model's start distribution." in str(elsewhere)
    same = counterfactual(estimate(mdp.replace(initial=np.eye(4)[2]), reward, np.ones(1), np.eye(1)), **change)
    assert "Starts: the model's start distribution." in same.to_latex()


def test_on_a_horizon_of_the_question_agents_start_where_the_data_did_in_the_first_period():
    mdp = random_mdp(4, 2)
    reward = rv.LinearReward(np.random.default_rng(0).normal(size=(4, 2, 1)))
    starts = np.array([3.0, 1.0, 0.0, 0.0])
    short, plain = (estimate(m, reward, np.ones(1), np.eye(1)) for m in (mdp.unroll(2), mdp))
    plain.demonstrations.starts, short.demonstrations.starts = starts, np.append(starts, np.zeros(8))
    for fit, new in ((plain, mdp.unroll(3)), (short, mdp.unroll(3)), (short, mdp)):
        after = counterfactual(fit, mdp=new).after
        np.testing.assert_array_equal(after.start, np.append(starts / 4, np.zeros(new.n_states - 4)))
        assert after.begins == "where the data started"


# ---- other sizes -------------------------------------------------------------------------------------------------


def test_a_model_of_another_size_needs_its_reward_and_is_compared_in_what_they_share(world, bus):
    finer = rv.environments.rust_bus(bins=60, RC=5.0, theta11=40.0, discount=0.99)
    with pytest.raises(InvalidInput, match="Pass reward= as well"):
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


# ---- panels ------------------------------------------------------------------------------------------------------


def test_panels_are_drawn_under_either_side():
    fit = fleet_fit()
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
        wrong(match="`counterfactual` requires at least one change"),
        wrong(match="Did you mean theta11", params={"theta_11": 1.0}),
        wrong(match="a number, or a function", params={"RC": "high"}),
        wrong(match="a number, or a function", params={"RC": np.nan}),
        wrong(match="into a number", params={"RC": lambda rc: "twice"}),
        wrong(match="all 2 numbers", params=[1.0, 2.0, 3.0]),
        wrong(match="rv.MDP", mdp=0.9),
        wrong(match="2 parameters", error=InvalidReward, reward=rv.LinearReward(np.zeros((40, 2, 3)))),
        wrong(match="shape", error=InvalidReward, reward=np.zeros((39, 2))),
        wrong(match="n_params, names", error=InvalidReward, reward="linear"),
        wrong(
            match="`params` cannot be combined with `reward` given as numbers",
            error=InvalidOption,
            params={"RC": 1.0},
            reward=np.zeros((40, 2)),
        ),
        wrong(match="bands", error=InvalidOption, params={"RC": 1.0}, bands="jackknife"),
        wrong(match="level", error=InvalidOption, params={"RC": 1.0}, level=95),
        wrong(match="reps", error=InvalidOption, params={"RC": 1.0}, bands="delta", reps=10),
        wrong(match="initial", params={"RC": 1.0}, initial=[1.0]),
    ],
)
def test_questions_that_make_no_sense_are_refused_with_a_reason(bus, match, error, arguments):
    with pytest.raises(error, match=match):
        counterfactual(bus, **arguments)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"discount": 0.5}, "It belongs to the model: fit.counterfactual(mdp=fit.mdp.replace(discount=0.5))."),
        ({"discount": 0.5, "params": {"RC": 1.0}}, "fit.counterfactual(mdp=fit.mdp.replace(discount=0.5))."),
        ({"terminal": np.zeros(40)}, "fit.counterfactual(mdp=fit.mdp.replace(terminal=...))."),
        ({"RC": 12.0}, "It is a parameter of the reward: params={'RC': 12.0}."),
        ({"parms": {"RC": 12.0}}, "Did you mean params?"),
        ({"params": {"RC": 12.0}, "bands": "bootstrap", "rep": 10}, "Did you mean reps?"),
    ],
)
def test_an_argument_that_is_not_known_gets_its_remedy(bus, options, remedy):
    with pytest.raises(
        InvalidOption, match=r"counterfactual\(\) has no argument `.*`, only params, mdp, reward"
    ) as found:
        counterfactual(bus, **options)
    assert str(found.value).endswith(remedy)


def test_a_model_that_is_replaced_as_told_is_another_discount(bus):
    cf = counterfactual(bus, mdp=bus.mdp.replace(discount=0.5))
    assert cf.words == "discount 0.99 → 0.5"


def test_demand_curves_refuse_what_they_do_not_know(bus):
    with pytest.raises(
        InvalidOption, match=r"demand_curve\(\) has no argument `leevl`, only .*\. Did you mean level\?"
    ):
        demand_curve(bus, "RC", [1.0, 2.0], action=1, leevl=0.9)


def test_frames_ask_for_an_action_and_a_known_quantity(bus):
    cf: Counterfactual = counterfactual(bus, params={"RC": 12.0}, bands=None)
    for arguments, match in ((("policy",), "action"), (("policy", "repalce"), "replace"), (("polcy",), "policy")):
        with pytest.raises(InvalidInput, match=match):
            cf.frame(*arguments)


def test_welfare_at_two_discounts_carries_a_caveat(bus):
    other = counterfactual(bus, mdp=bus.mdp.replace(discount=0.5))
    assert "discounted by 0.99 and 0.5: their change does not say whether agents are better off" in " ".join(
        str(other).split()
    )
    assert "discounted by" not in str(counterfactual(bus, params={"RC": 3.0}))
    assert other.table().attrs["starts"] == other.frame("value").attrs["starts"] == f"Starts: {other.after.begins}."


def test_a_change_after_which_nobody_would_end_is_named():
    fit = ending_fit()
    told = r"after the change \(go -2 → 9\) the soft value does not exist .* Make the change smaller\.$"
    with pytest.raises(ValueDoesNotExist, match=told):
        counterfactual(fit, params={"go": 9.0})
    with pytest.raises(ValueDoesNotExist, match=r"after the change \(go = 9\) the soft value does not exist"):
        demand_curve(fit, "go", [-2.0, 9.0], action=0)


def ending_fit() -> Any:
    """At discount 1, where going on costs something."""
    T = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    mdp = rv.MDP(T, discount=1.0, terminal=[False, True])
    reward = rv.LinearReward(np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]), names=["go", "left"])
    counts = rv.Demonstrations.from_counts([[30.0, 20.0], [0.0, 0.0]], starts=[50.0, 0.0])
    return estimate(mdp, reward, np.array([-2.0, 0.3]), COV, demonstrations=counts)
