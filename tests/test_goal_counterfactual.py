"""Counterfactuals of trips with goals: by enumeration, by the route without goals, by a model made anew (R4, L3)."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from revealed.errors import InvalidDemonstrations, InvalidInput, InvalidOption, ValueDoesNotExist
from revealed.goal_counterfactual import GoalCounterfactual, goal_counterfactual
from revealed.trip_simulation import simulate_trips
from scenarios import estimate, whitened
from streets import all_paths, model, streets, utilities

NAMES = ["travel_time", "toll", "constant"]
THETA = np.array([-1.5, -0.4, -0.6])
COV = np.array([[0.02, 0.001, -0.01], [0.001, 0.01, 0.0], [-0.01, 0.0, 0.03]])
QUANTITIES = ("visits", "turns", "value", "welfare", "length", "features")


def between(network: rv.RoadNetwork, *ends: tuple[str, str], times: int = 1, seed: int = 0) -> rv.Demonstrations:
    """Trips of drivers with the weights THETA."""
    origins, goals = zip(*ends, strict=True)
    reward = network.reward(NAMES).value(THETA)
    return simulate_trips(network.mdp, reward, list(origins) * times, list(goals) * times, seed=seed)


ENDS = (("00-01", "12-22"), ("10-00", "12-22"), ("01-11", "20-21"), ("22-12", "00-10"))


def stated(network: rv.RoadNetwork, demos: rv.Demonstrations, cov: Any = COV, **more: Any) -> Any:
    """A fit at known parameters with a known covariance."""
    return estimate(network.mdp, network.reward(NAMES), THETA, cov, demonstrations=demos, **more)


@cache
def grid() -> rv.RoadNetwork:
    return streets(3)


@cache
def grid_fit() -> Any:
    return stated(grid(), between(grid(), *ENDS))


@cache
def estimated() -> Any:
    return rv.NFXP(grid().reward(NAMES)).fit(grid().mdp, between(grid(), *ENDS, times=40))


# ---- what the two sides are --------------------------------------------------------------------------------------


def test_flows_features_and_welfare_are_those_of_all_paths_listed_one_by_one():
    """On a network without cycles V is the log-sum over all paths, and a path has the probability exp(u − V)."""
    network = streets(3, both_ways=False)
    ends = (("00-01", "12-22"), ("00-10", "21-22"), ("00-10", "12-22"))
    dearer = network.with_attribute("toll", {"11-12": 4.0, "10-11": 3.0})
    cf = goal_counterfactual(stated(network, between(network, *ends)), reward=dearer.reward(NAMES))
    for side, net in ((cf.before, network), (cf.after, dearer)):
        visits, gathered, values = np.zeros(net.n_links), np.zeros(3), {}
        for origin, goal in ends:
            paths = all_paths(net, origin, goal)
            u = utilities(model(net, *THETA), paths)
            values[origin, goal] = np.log(np.exp(u).sum())
            for way, p in zip(paths, np.exp(u - values[origin, goal]), strict=True):
                visits[net.index(origin)] += p
                np.add.at(visits, net.target[list(way)], p)
                gathered += p * np.array([net.attribute(name)[list(way)].sum() for name in NAMES])
        np.testing.assert_allclose(side.visits, visits, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(side.features, gathered / 3, rtol=1e-10)
        assert dict(zip(zip(cf.origins, cf.goals, strict=True), side.value, strict=True)) == pytest.approx(values)
        assert side.welfare == pytest.approx(np.mean(list(values.values())), rel=1e-12)
        assert side.length == pytest.approx(gathered[2] / 3, rel=1e-12)
    assert cf.change.welfare == pytest.approx(cf.after.welfare - cf.before.welfare, rel=1e-12)
    assert cf.change.welfare < -0.1


def test_closing_links_is_a_model_that_was_made_without_them():
    network, closed = grid(), ["11-12", "01-11"]
    fit = stated(network, between(network, *(ENDS[0], ENDS[1], ENDS[3])))
    cf = goal_counterfactual(fit, mdp=network.without(closed).mdp)
    kept = [link for link in network.links if link not in closed]
    links = pd.DataFrame({"link": kept, "from": [x[:2] for x in kept], "to": [x[3:] for x in kept]})
    for name in ("travel_time", "toll"):
        links[name] = [network.link_values[name][network.index(link)] for link in kept]
    other = rv.RoadNetwork.from_frame(links)
    anew = goal_counterfactual(stated(other, between(other, *(ENDS[0], ENDS[1], ENDS[3]))), params=THETA)
    place = [network.index(link) for link in kept]
    np.testing.assert_allclose(cf.after.visits[place], anew.before.visits, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(cf.after.visits[[network.index(link) for link in closed]], 0.0)
    np.testing.assert_allclose(cf.after.se.visits[place], anew.before.se.visits, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(cf.frame("value")["after"], anew.frame("value")["before"].loc[cf.frame("value").index])
    assert cf.after.welfare == pytest.approx(anew.before.welfare, rel=1e-12)
    assert cf.after.se.welfare == pytest.approx(anew.before.se.welfare, rel=1e-10)
    assert cf.change.welfare < 0.0


def test_one_goal_is_the_ordinary_counterfactual_of_a_model_that_ends_there():
    network = grid()
    demos = between(network, ("00-01", "12-22"), ("10-00", "12-22"), times=60)
    plain = network.mdp.toward("12-22")
    fit = rv.NFXP(network.reward(NAMES)).fit(network.mdp, demos).with_errors("hessian")
    other = rv.NFXP(network.reward(NAMES), start=THETA).fit(plain, demos.toward("12-22"))
    np.testing.assert_allclose(fit.theta, other.theta, rtol=1e-6)
    change: Any = {"params": {"toll": lambda x: 2.0 * x}}
    cf, ordinary = fit.counterfactual(**change), other.counterfactual(**change)
    going = ~plain.terminal
    for part in ("before", "after", "change"):
        for level in ("", "se", "lower", "upper"):
            one, two = (getattr(getattr(x, part), level, getattr(x, part)) for x in (cf, ordinary))
            assert one.welfare == pytest.approx(two.welfare, rel=1e-5), (part, level)
            visits = one.visits / 120
            np.testing.assert_allclose(visits[going], two.occupancy[going], rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(one.value, two.value[cf.pairs.origin], rtol=1e-5)
        length = getattr(ordinary, part).long_run[going].sum()
        assert getattr(cf, part).length == pytest.approx(length, rel=1e-5)


def test_the_same_parameters_change_nothing_and_surely():
    cf = goal_counterfactual(grid_fit(), params={"toll": lambda x: x})
    for name in QUANTITIES:
        np.testing.assert_array_equal(getattr(cf.change, name), 0.0)
        np.testing.assert_allclose(getattr(cf.change.se, name), 0.0, atol=1e-9)
    assert cf.before.se.welfare > 0.1


def test_rewards_given_as_numbers_carry_no_uncertainty():
    cf = goal_counterfactual(grid_fit(), reward=grid().reward(NAMES).value(THETA))
    np.testing.assert_array_equal(cf.change.visits, 0.0)
    assert cf.after.se.welfare == 0.0
    assert cf.change.se.welfare == pytest.approx(cf.before.se.welfare, rel=1e-12)
    np.testing.assert_array_equal(cf.change.features, 0.0)


# ---- who travels ---------------------------------------------------------------------------------------------------


def test_trips_are_those_observed_unless_others_are_given():
    others = between(grid(), ENDS[0], ENDS[0], ENDS[2])
    cf = goal_counterfactual(grid_fit(), params={"toll": -1.0}, trips=others)
    assert sorted(zip(cf.origins, cf.goals, cf.trips, strict=True)) == [(*ENDS[0], 2.0), (*ENDS[2], 1.0)]
    value = cf.frame("value")["before"]
    assert cf.before.welfare == pytest.approx((2 * value[ENDS[0]] + value[ENDS[2]]) / 3, rel=1e-12)
    assert cf.after.visits.sum() == pytest.approx(3 * (cf.after.length + 1), rel=1e-12)  # a trip also visits its goal
    assert len(goal_counterfactual(grid_fit(), params={"toll": -1.0}).trips) == 4


def test_a_table_of_origins_and_destinations_is_those_trips():
    trips = goal_counterfactual(grid_fit(), params={"toll": -1.0}, trips=between(grid(), ENDS[0], ENDS[0], ENDS[2]))
    table = {ENDS[0]: 2.0, ENDS[2]: 1.0, ENDS[1]: 0.0}
    series = pd.Series(list(table.values()), index=pd.MultiIndex.from_tuples(list(table)))
    frame = series.rename("trips").rename_axis(["origin", "destination"]).reset_index()
    for form in (table, series, frame):
        cf = goal_counterfactual(grid_fit(), params={"toll": -1.0}, trips=form)
        assert list(zip(cf.origins, cf.goals, cf.trips, strict=True)) == [(*ENDS[0], 2.0), (*ENDS[2], 1.0)]
        for quantity in QUANTITIES:
            np.testing.assert_allclose(getattr(cf.change, quantity), getattr(trips.change, quantity), rtol=1e-10)
            np.testing.assert_allclose(getattr(cf.change.se, quantity), getattr(trips.change.se, quantity), rtol=1e-8)
    half = goal_counterfactual(grid_fit(), params={"toll": -1.0}, trips={ENDS[0]: 1.0, ENDS[2]: 0.5})
    np.testing.assert_allclose(half.after.visits, trips.after.visits / 2.0, rtol=1e-10)
    assert half.change.welfare == pytest.approx(trips.change.welfare, rel=1e-12)


def test_link_sizes_that_stay_what_they_were_are_noted():
    """A fit knows no other world in which to expect flows: RouteChoice makes sizes anew, and says something else."""
    network, base = grid(), grid().reward(["travel_time", "constant"])
    demos = between(network, *ENDS)
    reward = rv.LinkSizeReward(base, rv.link_size(network, base, [-1.5, -0.8], demos))
    theta = np.array([-1.5, -0.8, -0.5])
    fit = estimate(network.mdp, reward, theta, np.eye(3), demonstrations=demos)
    closed = network.without(["01-11"])
    note = (
        "link sizes stay those of the network before the change; rv.RouteChoice.of(network, fit).close(...) and "
        ".change(...) recompute them."
    )
    stale = goal_counterfactual(fit, mdp=closed.mdp, bands=None, trips=between(network, *ENDS[:2], *ENDS[3:]))
    assert stale.notes == (note,)
    model = rv.RouteChoice(network, reward, theta).close(["01-11"])
    anew = goal_counterfactual(fit, mdp=closed.mdp, reward=model.reward_model, bands=None, trips=stale_trips(stale))
    assert anew.notes == ()
    assert anew.after.welfare == pytest.approx(float(model.welfare(stale_trips(stale))["expected_maximum"].mean()))
    assert abs(anew.after.welfare - stale.after.welfare) > 1e-3
    assert goal_counterfactual(fit, params={"constant": -1.0}, bands=None).notes == ()


def stale_trips(cf: GoalCounterfactual) -> dict[Any, float]:
    return dict(zip(zip(cf.origins, cf.goals, strict=True), cf.trips.tolist(), strict=True))


def test_trips_that_can_no_longer_arrive_are_named_and_left_out_of_both_sides():
    network = grid()
    closed = network.without(["12-22"]).mdp  # the goal of two pairs
    cf = goal_counterfactual(grid_fit(), mdp=closed)
    first = "2 trips of 2 pairs can no longer arrive and are left out of both sides"
    assert cf.notes == (f"{first} (first from '00-01' to '12-22').",)
    kept = goal_counterfactual(stated(network, between(network, *ENDS[2:])), mdp=closed)
    for part in ("before", "after", "change"):
        np.testing.assert_allclose(getattr(cf, part).visits, getattr(kept, part).visits, rtol=1e-12)
        assert getattr(cf, part).welfare == pytest.approx(getattr(kept, part).welfare)
    assert np.isfinite(cf.change.se.welfare)
    assert first in " ".join(str(cf).split())


def test_trips_that_arrive_only_afterwards_are_told_too():
    network = grid()
    before = network.without(["12-22"])
    fit = stated(before, between(before, *ENDS[2:]))
    trips = between(network, *ENDS)
    cf = goal_counterfactual(fit, mdp=network.mdp, reward=network.reward(NAMES), trips=trips)
    assert cf.notes[0].startswith("2 trips of 2 pairs can arrive only after the change and are left out")
    assert len(cf.trips) == 2


def test_it_is_an_error_where_no_trip_arrives_in_both_worlds():
    network = grid()
    fit = stated(network, between(network, ENDS[0]))
    with pytest.raises(InvalidInput) as caught:
        goal_counterfactual(fit, mdp=network.without(["12-22"]).mdp)
    assert str(caught.value) == (
        "none of 1 pairs of origin and goal has a route both before and after the change (first at the trip from "
        "'00-01' to '12-22')."
    )


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_a_change_after_which_nobody_arrives_is_named(discount):
    """Rather than a discount, which may be below 1 already, or an option of a fit."""
    better = grid().with_attribute("toll", {"11-12": -50.0}).reward(NAMES)
    model = None if discount == 1.0 else grid().mdp.replace(discount=discount)
    with pytest.raises(ValueDoesNotExist, match=r"after the change \((discount .*, )?toll changed\) ") as caught:
        goal_counterfactual(grid_fit(), reward=better, mdp=model)
    assert str(caught.value).endswith("Make the change smaller.")
    assert ("at discount 1" in str(caught.value)) is (discount == 1.0)
    with pytest.raises(ValueDoesNotExist, match=r"after the change \(toll .* → 50\) .* Make the change smaller"):
        goal_counterfactual(grid_fit(), params={"toll": 50.0}, bands=None)


def test_each_wrong_argument_is_refused_with_its_remedy():
    network, fit = grid(), grid_fit()
    with pytest.raises(InvalidInput, match="`counterfactual` requires at least one change"):
        goal_counterfactual(fit)
    with pytest.raises(InvalidInput, match=r"`mdp`: expected the 24 states of the fit's model; got 14.*without"):
        goal_counterfactual(fit, mdp=streets(3, wide=2).mdp)
    swapped = network.mdp.replace(state_labels=[*network.links[1::-1], *network.links[2:]])
    with pytest.raises(InvalidInput, match=r"features for every move of the model; got none for \d+ move"):
        goal_counterfactual(fit, mdp=swapped)
    with pytest.raises(InvalidDemonstrations, match="`trips`: expected demonstrations with goals; got none"):
        goal_counterfactual(fit, params={"toll": -1}, trips=between(network, ENDS[0]).toward("12-22"))
    with pytest.raises(InvalidInput, match=r"`trips`: expected "):
        goal_counterfactual(fit, params={"toll": -1}, trips=[3])
    with pytest.raises(InvalidInput, match=r"got '12-2' \(first at the trip from '00-01' to '12-2'\)\. Did you mean"):
        goal_counterfactual(fit, params={"toll": -1}, trips={("00-01", "12-2"): 1.0})
    with pytest.raises(InvalidInput, match=r"`trips`: expected at least one trip; got Demand\(0 trips of 1 pair"):
        goal_counterfactual(fit, params={"toll": -1}, trips={ENDS[0]: 0.0})
    with pytest.raises(InvalidOption, match="Did you mean trips"):
        goal_counterfactual(fit, params={"toll": -1}, trip=2)
    with pytest.raises(InvalidInput, match="Did you mean toll"):
        goal_counterfactual(fit, params={"tol": -1})


def test_rewards_that_depend_on_the_trip_have_their_own_values_for_each_pair():
    """With weight zero the size of links does not matter; with another it is `fit.toward` of each pair."""
    network = grid()
    base = network.reward(["travel_time", "constant"])
    demos = between(network, *ENDS)
    sizes = rv.link_size(network, base, [-1.5, -0.8], demos)
    theta = np.array([-1.5, -0.8, 0.0])
    fit = estimate(network.mdp, rv.LinkSizeReward(base, sizes), theta, COV, demonstrations=demos)
    without = estimate(network.mdp, base, theta[:2], COV[:2, :2], demonstrations=demos)
    one = goal_counterfactual(fit, params={"link_size": -0.5})
    two = goal_counterfactual(without, params={"constant": -0.9})
    np.testing.assert_allclose(one.before.visits, two.before.visits, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(one.before.features[:2], two.before.features, rtol=1e-10)
    assert one.names == ("travel_time", "constant", "link_size")
    real = rv.NFXP(rv.LinkSizeReward(base, sizes), start=[-1.5, -0.8, -0.5], max_iter=1).fit(network.mdp, demos)
    values = [real.value_for(g, o)[network.index(o)] for o, g in zip(one.origins, one.goals, strict=True)]
    at = goal_counterfactual(real, params=real.theta, bands=None)
    np.testing.assert_allclose(at.after.value, values, rtol=1e-10)


# ---- how sure ------------------------------------------------------------------------------------------------------


def test_standard_errors_are_the_spread_of_small_draws():
    """A bootstrap whose draws are close together sees the derivatives that the delta method uses."""
    small = 1e-8 * COV
    draws = THETA + whitened(small)
    fit = stated(grid(), between(grid(), *ENDS), small, draws=draws)
    change: Any = {"params": {"toll": lambda x: 1.5 * x}, "mdp": grid().without(["11-12"]).mdp}
    delta, drawn = (goal_counterfactual(fit, **change, bands=kind) for kind in ("delta", "bootstrap"))
    assert (delta.bands, drawn.bands) == ("delta", "bootstrap")
    for part in ("before", "after", "change"):
        for name in QUANTITIES:
            one, two = (np.asarray(getattr(getattr(cf, part).se, name)) for cf in (delta, drawn))
            np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-9, err_msg=f"{part} {name}")


def test_four_times_the_trips_halve_the_bands():
    network, found = grid(), []
    once = between(network, *ENDS, times=30)
    for times in (1.0, 4.0):
        fit = rv.NFXP(network.reward(NAMES)).fit(network.mdp, once.reweighted(np.full(once.n_agents, times)))
        found.append(fit.with_errors("robust").counterfactual(params={"toll": -1.0}))  # clusters also have N/(N − 1)
    one, four = found
    assert (one.trips.sum(), four.trips.sum()) == (120.0, 480.0)
    assert one.change.se.welfare == pytest.approx(2.0 * four.change.se.welfare, rel=1e-5)
    np.testing.assert_allclose(one.before.se.value, 2.0 * four.before.se.value, rtol=1e-5)
    np.testing.assert_allclose(4.0 * one.change.se.visits, 2.0 * four.change.se.visits, rtol=1e-5, atol=1e-9)
    assert one.change.upper.welfare - one.change.welfare == pytest.approx(1.959964 * one.change.se.welfare, rel=1e-6)


def test_a_bootstrap_of_trips_gives_bands_beside_those_of_the_delta_method():
    fit = estimated()
    change: Any = {"mdp": grid().without(["11-12"]).mdp}
    delta = fit.counterfactual(**change)
    drawn = fit.counterfactual(**change, bands="bootstrap", reps=40, seed=1, jobs=1)
    assert drawn.change.welfare == delta.change.welfare
    assert drawn.change.se.welfare == pytest.approx(delta.change.se.welfare, rel=0.5)
    assert drawn.change.lower.welfare < drawn.change.welfare < drawn.change.upper.welfare
    assert np.isfinite(drawn.after.se.visits).all()


def test_without_bands_nothing_is_claimed():
    cf = goal_counterfactual(grid_fit(), params={"toll": -1.0}, bands=None)
    assert np.isnan(cf.change.se.welfare)
    assert np.isnan(cf.after.lower.visits).all()
    assert "Bands" not in str(cf)


def test_what_the_data_do_not_tell_has_no_band():
    """A direction that is not known: what moves along it has none, what does not has one."""
    hidden = np.array([[0.0, 1.0, 0.0]])
    network = grid().with_attribute("toll", 0.0)  # a toll that nobody pays
    fit = stated(network, between(grid(), *ENDS), partial_covariance=lambda kind, joint: (COV, hidden))
    cf = goal_counterfactual(fit, params={"travel_time": -2.0})
    assert np.isfinite(cf.change.se.welfare)
    paid = goal_counterfactual(fit, reward=grid().reward(NAMES))
    assert np.isnan(paid.after.se.welfare)
    assert np.isfinite(paid.before.se.welfare)


def test_bands_say_that_they_take_estimated_moves_as_known_and_joint_errors_are_resampled():
    network = grid()
    demos = between(network, *ENDS, times=12)
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="infeasible"), discount=0.95)
    constant = rv.LinearReward(-np.ones((*mdp.feasible.shape, 1)))
    fit = rv.NFXP(constant, start=[2.0]).fit(mdp, demos)
    told = 'bands take the transitions as known; with_errors("bootstrap") re-estimates them in every draw.'
    cf = fit.counterfactual(params={"theta0": 1.0})
    assert told in cf.notes
    for text in (str(cf), cf.to_html(), cf.to_latex()):
        assert "bands take the transitions as known" in " ".join(text.split())
    assert told in cf.table().attrs["notes"]
    assert told in cf.frame("visits").attrs["notes"]
    joint = fit.with_errors("hessian", joint=True, reps=3, jobs=1, progress=False)
    assert joint.errors == ("bootstrap", True)
    assert "no formula for trips with goals" in joint.errors_note
    assert joint.errors_note in joint.counterfactual(params={"theta0": 1.0}).notes


# ---- what is shown -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dearer() -> GoalCounterfactual:
    return estimated().counterfactual(params={"toll": lambda x: 2.0 * x})


def test_the_table_has_what_a_trip_is_worth_and_gathers(dearer):
    table = dearer.table()
    assert list(table.index) == ["welfare", "decisions", *NAMES]
    assert list(table.columns) == ["before", "after", "change", "se", "lower", "upper"]
    row = table.loc["toll"]
    assert row["change"] == pytest.approx(row["after"] - row["before"])
    assert row["upper"] < 0.0  # a toll that hurts more is avoided
    assert table.loc["decisions", "after"] == pytest.approx(dearer.after.length)
    assert table.loc["decisions"].to_list() == pytest.approx(table.loc["constant"].to_list())


def test_frames_are_named_by_links_turns_and_pairs(dearer):
    visits, turns, value = (dearer.frame(name) for name in ("visits", "turns", "value"))
    assert list(visits.index) == list(grid().links)
    assert len(turns) == grid().n_turns
    using = turns["after"].groupby("state").sum()
    arrived = value["trips"].groupby("goal").sum().reindex(using.index, fill_value=0.0)
    np.testing.assert_allclose(visits["after"].reindex(using.index), using + arrived, rtol=1e-9)
    assert value["trips"].to_list() == [40.0] * 4
    most = dearer.most_changed(3)
    assert most["change"].abs().to_list() == sorted(visits["change"].abs(), reverse=True)[:3]
    with pytest.raises(InvalidOption, match="visits, turns, value"):
        dearer.frame("welfare")


def test_it_prints_a_table_with_the_links_that_change_most(dearer):
    text = str(dearer)
    assert "Counterfactual: toll" in text
    assert "Bands of the change at 95 %, delta method." in text
    assert f"visits to {dearer.most_changed(1).index[0]}" in text
    assert "160 trips of 4 pairs." in text
    assert "welfare" in dearer.to_html()
    assert "\\begin{tabular}" in dearer.to_latex()


def test_the_picture_shows_the_links_that_change_most(dearer):
    figure = dearer.plot(4)
    axes = figure.axes[0]
    after = axes.lines[1].get_ydata()
    np.testing.assert_allclose(after, dearer.most_changed(4)["after"])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == list(dearer.most_changed(4).index)


def test_attributes_of_another_reward_are_matched_by_name():
    """The same attributes in another order took each other's weights."""
    network = grid()
    fit = stated(network, between(network, *ENDS))
    turned = goal_counterfactual(fit, reward=network.reward(NAMES[::-1]))
    same = goal_counterfactual(fit, reward=network.reward(NAMES))
    assert turned.change.welfare == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(turned.after.visits, same.after.visits, rtol=1e-12)
    one, other = rv.RouteChoice(network, network.reward(NAMES[::-1]), fit), rv.RouteChoice.of(network, fit)
    np.testing.assert_allclose(one.value("12-22"), other.value("12-22"), rtol=1e-12)
