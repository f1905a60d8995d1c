"""Closing links and changing attributes: the same drivers in another world, and what it does to them."""

import numpy as np
import pytest

import revealed as rv
from revealed.errors import InvalidInput
from streets import all_paths, model, streets, utilities

ORIGIN, GOAL = "00-01", "22-23"
DEMAND = {(ORIGIN, GOAL): 3.0, ("22-21", GOAL): 1.5, ("00-10", "02-03"): 4.0}


@pytest.fixture(scope="module")
def city():
    return model(streets(3, wide=4))


def test_closing_a_link_equals_the_network_that_never_had_it(city):
    frame = city.network.links_frame
    smaller = rv.RoadNetwork.from_frame(frame[frame["link"] != "01-11"])
    never = rv.RouteChoice(smaller, smaller.reward(list(city.names)), city.theta)
    closed = city.close("01-11")
    for goal in (GOAL, "02-03"):
        np.testing.assert_allclose(closed.value(goal).drop("01-11"), never.value(goal), atol=1e-10)
    flows = closed.flows(DEMAND)
    assert flows["01-11"] == 0.0
    np.testing.assert_allclose(flows.drop("01-11"), never.flows(DEMAND), atol=1e-10)


def test_closing_links_leaves_the_logit_of_the_paths_that_are_left():
    one_way = model(streets(5, both_ways=False))
    network, closed = one_way.network, one_way.close(["11-12", "12-22"])
    shut = [network.index("11-12"), network.index("12-22")]
    ways = [w for w in all_paths(network, ORIGIN, "43-44") if not np.isin(network.target[list(w)], shut).any()]
    U = utilities(one_way, ways)
    assert closed.value("43-44")[ORIGIN] == pytest.approx(np.log(np.exp(U).sum()), rel=1e-12)
    assert len(closed.paths(ORIGIN, "43-44", n=1000)) == len(ways)


def test_a_toll_changes_the_reward_of_the_turns_into_its_link_only(city):
    tolled = city.change("toll", {"01-11": 5.0})
    before, after = (np.asarray(m.table()).reshape(-1)[city.network.pair] for m in (city, tolled))
    into = city.network.target == city.network.index("01-11")
    np.testing.assert_allclose(after[~into], before[~into])
    np.testing.assert_allclose(after[into] - before[into], -0.4 * (5.0 - city.network.attribute("toll")[into]))
    assert tolled.network.attribute("toll")[into].tolist() == [5.0] * into.sum()


def test_changes_of_sparse_rewards_are_those_of_dense_ones(city):
    import scipy.sparse as sp

    matrix = sp.csr_array(city.reward_model.matrix)
    sparse = rv.LinearReward(matrix, city.names, n_actions=city.network.n_actions)
    other = rv.RouteChoice(city.network, sparse, city.theta).change("travel_time", {"01-11": 9.0})
    assert sp.issparse(other.reward_model.matrix)
    turns = city.network.mdp.feasible  # elsewhere the reward of the network has no value
    np.testing.assert_allclose(other.table()[turns], city.change("travel_time", {"01-11": 9.0}).table()[turns])
    assert not np.allclose(other.table(), city.table())


def test_changes_add_up_and_are_told(city):
    both = city.close("01-11").change("toll", {"12-22": 3.0})
    assert both.words == "01-11 closed, toll changed"
    assert "Route choice: 01-11 closed, toll changed" in str(city.compare(both, DEMAND))
    assert "Route choice: toll changed" in str(city.close("01-11").compare(both, DEMAND))
    dearer = city.change("toll", {"12-22": 9.0})
    assert "Route choice: toll changed" in str(city.change("toll", {"12-22": 3.0}).compare(dearer, DEMAND))
    assert city.words == "as it is"


def test_an_attribute_that_the_reward_does_not_have_cannot_be_changed(city):
    with pytest.raises(InvalidInput, match=r"`attribute`: expected one of travel_time, toll, constant; got 'u_turn'"):
        city.change("u_turn", 0.0)
    features = city.reward_model.matrix.reshape(city.network.n_links, -1, 3) * [60.0, 1.0, 1.0]
    seconds = rv.RouteChoice(city.network, rv.LinearReward(features, city.names), [-0.1, -0.4, -0.6])
    with pytest.raises(InvalidInput, match=r"the reward's feature 'travel_time' differs from the network's attribute"):
        seconds.change("travel_time", {"01-11": 2.0})


# -- what is printed ---------------------------------------------------------------------------------------------------


def test_flows_that_do_not_change_are_not_shown_and_lost_trips_are_told_first(city):
    """Rows of zeros, or of rounding, said nothing."""
    stranded = city.compare(city.close("22-23"), {(ORIGIN, GOAL): 3.0})
    assert stranded.arriving == 0.0
    assert "flow on" not in str(stranded)
    notes = stranded._sheet().notes
    assert notes[0].startswith("Trips that no longer arrive: 3, from 00-01 to 22-23")
    assert notes[1] == "No trip arrives in both worlds: no flows can be compared."
    assert "No flow changes." in str(city.compare(city, DEMAND))
    tiny = city.compare(city.change("toll", {"00-01": 1e-14 + city.network.attribute("toll")[0]}), DEMAND).flows[
        "change"
    ]
    assert (tiny[tiny != 0.0].abs() > 1e-13 * 8.5).all()
    some = str(city.compare(city.close("22-23"), DEMAND))
    assert some.index("Trips that no longer arrive: 4.5") < some.index("Welfare is the expected maximum")


# -- the comparison ---------------------------------------------------------------------------------------------------


def test_a_comparison_is_made_of_both_worlds(city):
    tolled = city.change("toll", {"01-11": 5.0})
    found = city.compare(tolled, DEMAND, money="toll")
    assert found.flows["before"].equals(city.flows(DEMAND).rename("before"))
    assert found.flows["after"].equals(tolled.flows(DEMAND).rename("after"))
    np.testing.assert_allclose(found.flows["change"], found.flows["after"] - found.flows["before"])
    welfare = [m.welfare(DEMAND)["expected_maximum"] for m in (city, tolled)]
    np.testing.assert_allclose(found.welfare["change"], welfare[1] - welfare[0])
    trips = np.array(list(DEMAND.values()))
    assert found.totals.loc["welfare per trip", "change"] == pytest.approx(trips @ (welfare[1] - welfare[0]) / 8.5)
    assert found.totals.loc["in all, in toll", "change"] == pytest.approx(trips @ (welfare[1] - welfare[0]) / 0.4)
    assert (found.welfare["change"] < 0.0).all()


def test_attributes_per_trip_are_means_over_paths():
    one_way = model(streets(5, both_ways=False))
    tolled = one_way.change("toll", {"11-12": 4.0})
    found = one_way.compare(tolled, {(ORIGIN, "43-44"): 6.0, ("00-10", "43-44"): 2.0}).attributes
    for column, choice in (("before", one_way), ("after", tolled)):
        means = []
        for origin in (ORIGIN, "00-10"):
            ways = all_paths(one_way.network, origin, "43-44")
            p = np.exp(utilities(choice, ways) - choice.value("43-44")[origin])
            sums = [choice.network.attribute("toll")[list(way)].sum() for way in ways]
            means.append(p @ sums)
        assert found.loc["toll", column] == pytest.approx((6.0 * means[0] + 2.0 * means[1]) / 8.0, rel=1e-10)


def test_the_gain_of_no_change_is_nothing(city):
    found = city.compare(city, DEMAND)
    assert (found.flows["change"] == 0.0).all()
    assert (found.welfare["change"] == 0.0).all()
    assert found.lost.empty
    assert found.gained.empty


def test_trips_that_no_longer_arrive_are_counted_and_named(city):
    closed = city.close(["02-03", "01-11"])
    found = city.compare(closed, DEMAND)
    assert found.lost.to_dict("list") == {"origin": ["00-10"], "destination": ["02-03"], "trips": [4.0]}
    assert found.trips == 8.5
    assert found.arriving == 4.5
    assert "Trips that no longer arrive: 4, from 00-10 to 02-03; left out of both sides." in prose(found)
    rest = {pair: n for pair, n in DEMAND.items() if pair[1] == GOAL}
    assert found.flows["before"].equals(city.flows(rest).rename("before"))
    assert np.isfinite(found.totals.to_numpy()).all()
    back = closed.compare(city, DEMAND)
    assert back.gained.equals(found.lost)
    assert "Trips that only afterwards arrive: 4, from 00-10 to 02-03; left out of both sides." in prose(back)


def prose(found) -> str:
    return " ".join(str(found).split())


def test_trips_that_begin_on_a_closed_link_are_told(city):
    """They are there before it closes, and their flow is all that the closed link keeps."""
    demand = DEMAND | {("01-11", GOAL): 2.0}
    found = city.compare(city.close(["01-11", "11-12"]), demand)
    assert found.closed == ("01-11", "11-12")
    assert found.flows["after"]["01-11"] == pytest.approx(2.0)
    assert found.flows["after"]["11-12"] == 0.0
    assert "Closed links keep the flow of trips that begin there: 01-11 (2)." in prose(found)
    assert "begin there" not in prose(city.compare(city.close("01-11"), DEMAND))


def test_what_a_network_went_through_is_told(city):
    network = city.network.without(["01-11", "11-12"]).with_attribute("toll", {"12-22": 3.0})
    assert network.words == "01-11, 11-12 closed, toll changed"
    other = rv.RouteChoice(network, network.reward(list(city.names)), city.theta)
    assert "Route choice: 01-11, 11-12 closed, toll changed" in str(city.compare(other, DEMAND))
    cheaper = rv.RouteChoice(city.network, city.reward_model, 2.0 * city.theta)
    assert "Route choice: other parameters" in str(city.compare(cheaper, DEMAND))
    assert "Route choice: as it is" in str(city.compare(city, DEMAND))
    assert "Route choice: as it is" in str(other.compare(other, DEMAND))


def test_most_changed_are_the_links_with_the_largest_changes(city):
    found = city.compare(city.close("01-11"), DEMAND)
    order = found.most_changed(4)["change"].abs()
    assert order.is_monotonic_decreasing
    assert order.iloc[-1] >= found.flows["change"].abs().drop(order.index).max()
    assert "flow on 01-11" in str(found)


def test_a_comparison_prints_as_a_page_and_for_latex(city):
    found = city.compare(city.close("01-11"), DEMAND)
    assert "<table" in found.to_html()
    assert r"\toprule" in found.to_latex()


def test_worlds_with_other_links_cannot_be_compared(city):
    with pytest.raises(
        InvalidInput,
        match=r"`other`: expected an rv\.RouteChoice with the same links; got one with 24 .*'02-03'",
    ):
        city.compare(model(streets(3)), DEMAND)
    with pytest.raises(InvalidInput, match=r"got RoadNetwork"):
        city.compare(city.network.with_arrivals(["00-01"]), DEMAND)


def test_attributes_that_drivers_do_not_mind_are_kept_but_not_printed(city):
    found = city.compare(city.close("01-11"), DEMAND)
    assert "u_turn" in found.attributes.index
    assert "u_turn per trip" not in str(found)
    assert "travel_time per trip" in str(found)
