"""The recursive logit is the logit of whole paths, link by link: probabilities, paths, flows, trips, likelihoods."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import revealed as rv
from revealed.errors import InvalidDemonstrations, InvalidInput, InvalidReward, ValueDoesNotExist
from revealed.routes.best_paths import best_paths
from streets import all_paths, dense_policy, model, named, streets, utilities

ORIGIN, GOAL, FAR = "00-01", "22-23", "43-44"


@pytest.fixture(scope="module")
def one_way():
    """Streets to the east and south: no path goes round, so that all can be listed."""
    return model(streets(5, both_ways=False))


@pytest.fixture(scope="module")
def city():
    return model(streets(3, wide=4))


# -- the theorem ------------------------------------------------------------------------------------------------------


def test_without_cycles_path_probabilities_are_the_logit_of_all_paths(one_way):
    ways = all_paths(one_way.network, ORIGIN, FAR)
    U = utilities(one_way, ways)
    logit = np.exp(U) / np.exp(U).sum()
    found = [one_way.path_probability(named(one_way.network, ORIGIN, way)) for way in ways]
    assert len(ways) > 5
    np.testing.assert_allclose(found, logit, rtol=1e-12)
    assert one_way.value(FAR)[ORIGIN] == pytest.approx(np.log(np.exp(U).sum()), rel=1e-12)


def test_with_cycles_they_are_the_logit_up_to_a_tail_that_is_bounded(city):
    network = city.network
    longest = 11
    ways = all_paths(network, ORIGIN, GOAL, longest)
    U = utilities(city, ways)
    log_p = np.array([city.log_path_probability(named(network, ORIGIN, way)) for way in ways[:200]])
    np.testing.assert_allclose(log_p - log_p[0], (U - U[0])[:200], atol=1e-10)
    np.testing.assert_allclose(log_p, U[:200] - city.value(GOAL)[ORIGIN], atol=1e-10)
    # the rest: the chance to be still on the way after so many turns, from powers of the chain
    P, _ = dense_policy(city, GOAL)
    still = np.linalg.matrix_power(P, longest)[network.index(ORIGIN)]
    tail = still.sum() - still[network.index(GOAL)]
    total = np.exp(U - city.value(GOAL)[ORIGIN]).sum()
    assert total < 1.0
    assert total == pytest.approx(1.0 - tail, abs=1e-12)
    assert 1e-6 < tail < 0.05


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), cheap=st.floats(-2.0, -0.9))
def test_on_random_networks_of_turns_choices_are_those_of_the_dense_model(seed, cheap):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    pairs = [(f"L{i}", f"L{j}") for i in range(n) for j in range(n) if i != j and rng.random() < 0.5]
    pairs += [(f"L{i}", f"L{(i + 1) % n}") for i in range(n) if (f"L{i}", f"L{(i + 1) % n}") not in pairs]
    frame = pd.DataFrame(pairs, columns=["from_link", "to_link"]).assign(cost=rng.uniform(0.8, 2.0, len(pairs)))
    network = rv.RoadNetwork.from_turns(frame)
    choice = rv.RouteChoice(network, network.reward(["cost", "constant"]), [cheap, -1.0])
    P, z = dense_policy(choice, "L0")
    found = choice.link_probabilities("L0")
    assert (found["from_link"] != "L0").all()  # the trip is over there
    places = [[network.index(label) for label in found[c]] for c in ("from_link", "to_link")]
    np.testing.assert_allclose(found["probability"], P[places[0], places[1]], rtol=1e-10)
    np.testing.assert_allclose(choice.value("L0"), np.log(z), atol=1e-10)
    x = np.linalg.solve(np.eye(n) - P.T, np.full(n, 2.0))
    flows = choice.flows({(label, "L0"): 2.0 for label in network.links})
    np.testing.assert_allclose(flows, x, rtol=1e-9)


def test_choices_at_the_end_of_each_link_sum_to_one(city):
    chances = city.link_probabilities(GOAL)
    sums = chances.groupby("from_link")["probability"].sum()
    np.testing.assert_allclose(sums, 1.0, rtol=1e-12)
    assert set(sums.index) == set(city.network.links) - {GOAL}


def test_links_that_cannot_reach_the_destination_have_no_value_and_no_choice(one_way):
    back = one_way.value("00-01")
    assert back["00-01"] == 0.0
    assert np.isneginf(back.drop("00-01")).all()
    assert one_way.link_probabilities("00-01").empty


# -- the most probable paths ------------------------------------------------------------------------------------------


def test_paths_come_in_exact_order_with_what_they_gather(one_way):
    network = one_way.network
    ways = all_paths(network, ORIGIN, FAR)
    U = utilities(one_way, ways)
    order = np.argsort(-U)
    found = one_way.paths(ORIGIN, FAR, n=10**4)
    assert list(found["path"]) == [named(network, ORIGIN, ways[k]) for k in order]
    np.testing.assert_allclose(found["probability"], np.exp(U[order]) / np.exp(U).sum(), rtol=1e-12)
    assert found["cumulative"].iloc[-1] == pytest.approx(1.0, abs=1e-12)
    for name in ("travel_time", "toll", "constant"):
        sums = [network.attribute(name)[list(ways[k])].sum() for k in order]
        np.testing.assert_allclose(found[name], sums, rtol=1e-12)


def test_with_cycles_the_first_paths_are_the_best_of_all_that_are_not_longer(city):
    ways = all_paths(city.network, ORIGIN, GOAL, 11)
    best = np.sort(utilities(city, ways))[::-1][:40] - city.value(GOAL)[ORIGIN]
    found = city.paths(ORIGIN, GOAL, n=40)
    assert (found["constant"] <= 11).all()  # so that the list above holds them all
    np.testing.assert_allclose(np.log(found["probability"]), best, atol=1e-10)
    assert found["path"].is_unique


def test_coverage_takes_as_many_paths_as_it_needs_and_no_more(city):
    found = city.paths(ORIGIN, GOAL, coverage=0.9)
    assert found["cumulative"].iloc[-1] >= 0.9 > found["cumulative"].iloc[-2]
    assert len(city.paths(ORIGIN, GOAL, n=3, coverage=0.9)) == 3
    assert len(city.paths(ORIGIN, GOAL)) == 10


def test_equal_paths_are_all_found():
    """All streets alike: the paths of six turns between two corners are equally probable, C(6, 3) of them or so."""
    network = streets(4).with_attribute("travel_time", 1.0)
    choice = rv.RouteChoice(network, network.reward("travel_time"), [-2.0])
    ways = all_paths(network, "00-01", "32-33", 5)
    found = choice.paths("00-01", "32-33", n=len(ways) + 1)
    assert found["probability"].iloc[: len(ways)].nunique() <= 3  # to rounding
    np.testing.assert_allclose(found["probability"].iloc[: len(ways)], found["probability"].iloc[0], rtol=1e-12)
    assert found["probability"].iloc[-1] < 0.5 * found["probability"].iloc[0]


def test_the_path_to_where_one_is_has_no_turn(city):
    found = city.paths(GOAL, GOAL)
    assert list(found["path"]) == [(GOAL,)]
    assert found["probability"].tolist() == [1.0]
    assert city.path_probability([GOAL]) == 1.0


def test_a_search_that_would_not_fit_says_so(city):
    with pytest.raises(
        InvalidInput, match=r"`coverage`: expected paths with 0\.999 of the probability, with at most 50 partial paths"
    ):
        city.paths(ORIGIN, GOAL, coverage=0.999, most=50)
    with pytest.raises(InvalidInput, match=r"`n`: .*Ask for fewer paths or less coverage, or allow more with most=\."):
        city.paths(ORIGIN, GOAL, n=1000, most=50)


def test_the_outlook_does_not_change_the_answer(city):
    """Best-first with the outlook agrees with a search that has none, which must list more to be sure."""
    toward = city.toward(city.network.index(GOAL))
    found = best_paths(toward, city.moves, city.network.index(ORIGIN), 15, None)
    log_p = toward.log_policy.reshape(-1)[city.network.pair]
    for path in found:
        assert path.log_probability == pytest.approx(log_p[path.turns].sum(), abs=1e-12)


# -- flows ------------------------------------------------------------------------------------------------------------


def test_without_cycles_flows_are_sums_over_paths(one_way):
    network = one_way.network
    demand = {(ORIGIN, FAR): 7.0, ("00-10", FAR): 2.0, ("00-10", "32-33"): 5.0}
    links, turns = np.zeros(network.n_links), np.zeros(network.n_turns)
    for (origin, destination), trips in demand.items():
        ways = all_paths(network, origin, destination)
        U = utilities(one_way, ways)
        links[network.index(origin)] += trips
        for way, p in zip(ways, np.exp(U) / np.exp(U).sum(), strict=True):
            np.add.at(turns, list(way), trips * p)
            np.add.at(links, network.target[list(way)], trips * p)
    np.testing.assert_allclose(one_way.flows(demand), links, atol=1e-12)
    by_turn = one_way.flows(demand, turns=True)
    np.testing.assert_allclose(by_turn["flow"], turns, atol=1e-12)
    assert by_turn["from_link"].tolist() == [network.links[k] for k in network.source]


def test_with_cycles_flows_are_conserved(city):
    """What enters a link, or starts there, leaves it, or ends there."""
    demand = {(ORIGIN, GOAL): 3.0, ("22-21", GOAL): 1.5, ("00-10", "02-03"): 4.0}
    flows, turns = city.flows(demand), city.flows(demand, turns=True)
    start, end = pd.Series(0.0, flows.index), pd.Series(0.0, flows.index)
    for (origin, destination), trips in demand.items():
        start[origin] += trips
        end[destination] += trips
    entered = turns.groupby("to_link")["flow"].sum().reindex(flows.index, fill_value=0.0)
    left = turns.groupby("from_link")["flow"].sum().reindex(flows.index, fill_value=0.0)
    np.testing.assert_allclose(flows, entered + start, atol=1e-10)
    np.testing.assert_allclose(flows, left + end, atol=1e-10)


def test_simulated_trips_use_links_as_often_as_expected(city):
    n = 4000
    demand = {(ORIGIN, GOAL): float(n), ("22-21", GOAL): n / 2, ("00-10", "02-03"): n / 2}
    trips = city.simulate(demand, seed=5)
    assert (
        rv.demand_of(trips, city.network).to_frame().set_index(["origin", "destination"])["trips"].to_dict() == demand
    )
    flows = city.flows(demand)
    entered = np.bincount(trips.steps.next_state, minlength=city.network.n_links) + trips.starts
    # a link is visited at most a few times by a trip: a visit count's variance is below thrice its mean
    assert (np.abs(entered - flows) < 4.5 * np.sqrt(3.0 * flows + 1.0)).all()


def test_the_same_seed_draws_the_same_trips(city):
    one, two, other = (city.simulate({(ORIGIN, GOAL): 50}, seed=s) for s in (3, 3, 4))
    assert np.array_equal(one.steps.state, two.steps.state)
    assert not np.array_equal(one.steps.state, other.steps.state)


def test_the_derivative_of_welfare_in_a_toll_is_its_price_times_the_flow(city):
    demand = {(ORIGIN, GOAL): 3.0, ("22-21", GOAL): 1.5, ("00-10", "02-03"): 4.0}
    h, link = 1e-5, "01-11"
    toll = city.network.links_frame.set_index("link")["toll"][link]
    both = [city.change("toll", {link: toll + step}).welfare(demand) for step in (h, -h)]
    slope = ((both[0]["expected_maximum"] - both[1]["expected_maximum"]) * both[0]["trips"]).sum() / (2.0 * h)
    entered = city.flows(demand, turns=True).groupby("to_link")["flow"].sum()[link]
    assert slope == pytest.approx(-0.4 * entered, rel=1e-7)


def test_consumer_surplus_is_welfare_over_the_price_of_money(city):
    found = city.welfare({(ORIGIN, GOAL): 3.0}, money="toll")
    assert found["expected_maximum"].tolist() == [city.value(GOAL)[ORIGIN]]
    np.testing.assert_allclose(found["consumer_surplus"], found["expected_maximum"] / 0.4)
    gift = rv.RouteChoice(city.network, city.reward_model, {"travel_time": -2.0, "toll": 0.1, "constant": -1.0})
    with pytest.raises(
        InvalidInput, match=r"`money`: expected the parameter of a cost, which is negative; got toll = 0.1"
    ):
        gift.welfare({(ORIGIN, GOAL): 1.0}, money="toll")


# -- likelihood -------------------------------------------------------------------------------------------------------


def test_the_log_likelihood_of_a_trip_is_the_log_probability_of_its_path(city):
    trips = city.simulate({(ORIGIN, GOAL): 20, ("00-10", "02-03"): 15, ("22-21", GOAL): 5}, seed=2)
    found = city.log_likelihood(trips)
    assert found.index.tolist() == list(trips.ids)
    steps = trips.steps
    for k, part in enumerate(np.split(np.arange(steps.state.size), np.flatnonzero(steps.first)[1:])):
        path = [city.network.links[s] for s in (*steps.state[part], steps.goal[part[0]])]
        assert found.iloc[k] == pytest.approx(city.log_path_probability(path), abs=1e-10)


def test_trips_count_as_often_as_they_are_weighted(city):
    trips = city.simulate({(ORIGIN, GOAL): 4}, seed=2)
    twice = trips.reweighted(np.array([2.0, 1.0, 0.0, 1.0]))
    np.testing.assert_allclose(city.log_likelihood(twice), city.log_likelihood(trips) * [2.0, 1.0, 0.0, 1.0])
    assert rv.demand_of(twice, city.network).trips.tolist() == [4.0]


def test_at_the_estimate_it_is_the_likelihood_of_the_fit(city):
    trips = city.simulate({(ORIGIN, GOAL): 200, ("00-10", "02-03"): 200, ("22-21", "00-10"): 200}, seed=0)
    fit = rv.NFXP(city.reward_model).fit(city.network.mdp, trips)
    for choice in (rv.RouteChoice.of(city.network, fit), rv.RouteChoice(city.network, city.reward_model, fit)):
        assert choice.log_likelihood(trips).sum() == pytest.approx(fit.llf, rel=1e-10)
    assert fit.llf > city.log_likelihood(trips).sum()


def test_trips_over_a_closed_link_are_named(city):
    trips = city.simulate({(ORIGIN, GOAL): 3}, seed=0)
    crossed = city.network.links[trips.steps.next_state[0]]
    with pytest.raises(InvalidDemonstrations, match=r"state '00-01', action \d+, trip 0, time 0"):
        city.close(crossed).log_likelihood(trips)


# -- the door ---------------------------------------------------------------------------------------------------------


def test_parameters_come_in_any_form(city):
    network, reward, theta = city.network, city.reward_model, city.theta
    named_ones = pd.Series(theta[::-1], index=list(city.names)[::-1])
    for params in (theta, list(theta), dict(zip(city.names, theta, strict=True)), named_ones, city):
        assert np.array_equal(rv.RouteChoice(network, reward, params).theta, theta)
    assert rv.RouteChoice.of(network, city).value(GOAL).equals(city.value(GOAL))
    assert city.params.to_dict() == {"travel_time": -1.5, "toll": -0.4, "constant": -0.6}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"travel_time": -1.0}, "`params`: expected a number for every parameter; got None (first at 'toll')."),
        ({"travel_tim": -1.0}, "got 'travel_tim'. Did you mean travel_time?"),
        ([1.0, 2.0], "`params`: expected 3 numbers (travel_time, toll, constant), a dict or Series by name, or a fit"),
        ([1.0, np.nan, 1.0], "got nan (first at position 1)."),
        ("fast", "got str 'fast'."),
    ],
)
def test_parameters_that_do_not_fit_are_refused(city, params, message):
    with pytest.raises(InvalidInput) as caught:
        rv.RouteChoice(city.network, city.reward_model, params)
    assert message in str(caught.value)


def test_a_fit_of_other_parameters_is_refused(city):
    other = rv.RouteChoice(city.network, city.network.reward("travel_time"), [-2.0])
    with pytest.raises(
        InvalidInput, match=r"`params`: expected a fit of the parameters travel_time, toll, constant; got"
    ):
        rv.RouteChoice(city.network, city.reward_model, other)


def test_what_is_no_network_or_fit_is_refused(city):
    with pytest.raises(InvalidInput, match=r"`network`: expected an rv\.RoadNetwork; got MDP"):
        rv.RouteChoice(city.network.mdp, city.reward_model, city.theta)
    with pytest.raises(InvalidInput, match=r"`fit`: expected a fit, as returned by rv\.NFXP\(reward\)\.fit"):
        rv.RouteChoice.of(city.network, [1.0])


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (["00-01", "01-12"], "got '01-12'."),
        (["00-01", "11-12"], "no turn leads from '00-01' to '11-12' (first at position 0). "),
        (["00-01", "11-12"], "Turns from link '00-01' lead to 01-02, 01-11, 01-00."),
        (
            ["00-01", "01-02", "02-01", "01-02"],
            "a path cannot pass its destination '01-02' before it ends there (first at position 1).",
        ),
        ([], "`links`: expected the links of a path, the last its destination; got []."),
        ("00-01", "`links`: expected the links of a path, the last its destination; got '00-01'."),
    ],
)
def test_paths_that_are_none_are_refused(city, links, message):
    with pytest.raises(InvalidInput) as caught:
        city.path_probability(links)
    assert message in str(caught.value)


def test_questions_without_an_answer_are_refused(one_way):
    with pytest.raises(InvalidInput, match=r"`destination`: expected one of .*; got 'nowhere'"):
        one_way.value("nowhere")
    with pytest.raises(InvalidInput, match=r"^'00-01' cannot be reached from '22-23'"):
        one_way.paths("22-23", "00-01")
    with pytest.raises(InvalidInput, match=r"`n`: expected a whole number, at least 1; got 0"):
        one_way.paths(ORIGIN, FAR, n=0)
    with pytest.raises(InvalidInput, match=r"`coverage`: expected a share between 0 and 1; got 1.0"):
        one_way.paths(ORIGIN, FAR, coverage=1.0)


def test_trips_without_a_way_are_an_error_but_for_welfare(one_way):
    demand = {(ORIGIN, FAR): 3.0, ("22-23", "00-01"): 2.0}
    message = r"^2 trips of 1 pair cannot reach their destination \(first at the trip from '22-23' to"
    for ask in (one_way.flows, one_way.simulate, lambda d: one_way.elasticity("toll", d)):
        with pytest.raises(InvalidInput, match=message):
            ask(demand)
    assert np.isneginf(one_way.welfare(demand)["expected_maximum"]).tolist() == [False, True]


def test_driving_that_is_too_cheap_has_no_value():
    network = streets(3)
    free = rv.RouteChoice(network, network.reward("travel_time"), [-0.1])
    with pytest.raises(ValueDoesNotExist, match="Make every move cost more"):
        free.value("00-01")


def test_labels_that_are_numbers_are_labels():
    """Link 1 is the label, not the second of the links."""
    frame = pd.DataFrame({"from_link": [3, 1, 2, 2], "to_link": [1, 2, 3, 1], "cost": [1.0, 2.0, 1.0, 1.5]})
    network = rv.RoadNetwork.from_turns(frame)
    choice = rv.RouteChoice(network, network.reward("cost"), [-1.0])
    assert choice.value(1).index.tolist() == [1, 2, 3]
    assert choice.value(1)[1] == 0.0
    assert choice.value(1)[3] == pytest.approx(-1.0)
    assert choice.path_probability([3, 1]) == 1.0
    assert choice.flows({(3, 1): 2.0}).to_dict() == {1: 2.0, 2: 0.0, 3: 2.0}
    destinations = choice.simulate({(3, 1): 2}, seed=0).destinations
    assert destinations is not None
    assert destinations.tolist() == [0, 0]


def test_trips_that_are_there_already_are_left_out_with_a_note():
    network = streets(3)
    choice, demand = model(network), {("00-01", "12-22"): 2, ("12-22", "12-22"): 3, ("00-01", "00-01"): 0}
    drawn = choice.simulate(demand, seed=0)
    assert drawn.notes == (
        "3 trips from a link to itself left out (first '12-22' to '12-22'): nothing is decided there.",
    )
    alone = choice.simulate({("00-01", "12-22"): 2}, seed=0)
    assert alone.notes == ()
    np.testing.assert_array_equal(drawn.counts, alone.counts)
    flows = choice.flows(demand) - choice.flows({("00-01", "12-22"): 2})
    assert flows[flows.abs() > 1e-12].to_dict() == {"12-22": pytest.approx(3.0)}
    with pytest.raises(InvalidInput, match=r"`demand`: expected trips between different links; got Demand\(1 trip of"):
        choice.simulate({("12-22", "12-22"): 1})


def test_drawn_trips_are_cut_off_at_the_longest():
    choice = model(streets(3))
    whole, cut = (choice.simulate({("00-01", "12-22"): 50}, seed=0, longest=most) for most in (None, 4))
    lengths = np.bincount(whole.trajectory)
    assert lengths.max() > 4
    np.testing.assert_array_equal(np.bincount(cut.trajectory), np.minimum(lengths, 4))


def test_a_fit_is_the_same_on_a_network_whose_links_stand_in_another_order():
    """Turns are known by where they lead: features, estimates and answers follow the links' names, not their order."""
    network = streets(3)
    demand = {("00-01", "21-22"): 60, ("20-21", "01-02"): 60, ("11-12", "10-00"): 60}
    trips = model(network).simulate(demand, seed=0)
    names = ["travel_time", "toll", "constant"]
    fit = rv.NFXP(network.reward(names), l2=1e-3).fit(network.mdp, trips)
    other = rv.RoadNetwork.from_frame(network.links_frame.sample(frac=1.0, random_state=1))
    assert other.links != network.links
    here, there = rv.RouteChoice.of(network, fit), rv.RouteChoice.of(other, fit)
    pd.testing.assert_series_equal(there.flows(demand).sort_index(), here.flows(demand).sort_index())
    assert there.paths("00-01", "21-22", n=3)["path"].tolist() == here.paths("00-01", "21-22", n=3)["path"].tolist()
    again = rv.NFXP(network.reward(names), l2=1e-3).fit(other.mdp, other.trips(as_table(trips)))
    np.testing.assert_allclose(again.theta, fit.theta, rtol=1e-6)
    brought = rv.NFXP(other.reward(names), l2=1e-3).fit(other.mdp, trips)  # turns are those that lead there
    np.testing.assert_allclose(brought.theta, fit.theta, rtol=1e-6)
    fewer = rv.RoadNetwork.from_turns(network.turns_frame.iloc[1:], links=network.links_frame)
    with pytest.raises(InvalidReward, match=r"features for every move of the model; got none for 1 move .*another"):
        rv.RouteChoice(network, fewer.reward(names), fit.theta)


def as_table(trips):
    """Trips as a table of links."""
    frame = trips.to_frame("trip", "sequence", "link", next_state="next")
    ends = frame.groupby("trip").tail(1)
    whole = pd.concat([frame, ends.assign(sequence=ends["sequence"] + 1, link=ends["next"])])
    return whole[["trip", "sequence", "link"]]
