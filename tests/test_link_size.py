"""Link sizes: expected visits of a trip at stated parameters, by hand where paths overlap, and as a fixed attribute."""

import pickle

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import revealed as rv
from revealed.errors import InvalidInput, InvalidOption, InvalidReward
from revealed.goal_fit import goal_cases
from revealed.goal_rows import GoalRows
from revealed.linear_solvers import Work
from revealed.objective import Objective
from revealed.progress import Progress
from revealed.rewards.base import is_linear
from revealed.route_cases import RouteCases
from streets import all_paths, dense_policy, model, named, streets, utilities

DEMAND = {("00-01", "22-23"): 3.0, ("22-21", "22-23"): 1.0, ("00-10", "02-03"): 4.0}


def overlapping():
    """From o to d by way of a, or by way of b and then c or e, all at the same cost; from p only by way of a."""
    turns = [("o", "a", 2.0), ("o", "b", 1.0), ("b", "c", 1.0), ("b", "e", 1.0), ("p", "a", 2.0)]
    turns += [("a", "d", 0.5), ("c", "d", 0.5), ("e", "d", 0.5)]
    return rv.RoadNetwork.from_turns(pd.DataFrame(turns, columns=["from_link", "to_link", "cost"]))


def sizes_of(network, demand, per="pair", params=(-1.0,)):
    return rv.link_size(network, network.reward("cost"), list(params), demand, per=per)


def by_name(network, sizes, destination, origin=None):
    start = None if origin is None else network.index(origin)
    return dict(zip(network.links, sizes.of(network.index(destination), start).round(12), strict=True))


def test_sizes_by_hand_where_two_of_three_paths_overlap():
    network = overlapping()
    sizes = sizes_of(network, {("o", "d"): 5.0, ("p", "d"): 1.0})
    third = round(1 / 3, 12)
    found = by_name(network, sizes, "d", "o")
    assert found == {"o": 1.0, "a": third, "b": round(2 / 3, 12), "c": third, "e": third, "p": 0.0, "d": 1.0}
    assert by_name(network, sizes, "d", "p") == dict.fromkeys("obce", 0.0) | dict.fromkeys("pad", 1.0)


def test_sizes_of_a_goal_are_means_over_its_trips_by_hand():
    network = overlapping()
    found = by_name(network, sizes_of(network, {("o", "d"): 3.0, ("p", "d"): 1.0}, per="goal"), "d")
    assert found == {"o": 0.75, "a": 0.5, "b": 0.5, "c": 0.25, "e": 0.25, "p": 0.25, "d": 1.0}


def test_the_correction_gives_the_path_that_shares_nothing_more_by_hand():
    """Along a the sizes sum to 1/3 + 1, along b and c to 2/3 + 1/3 + 1: with weight −3 the odds are e² to 1."""
    network = overlapping()
    reward = rv.LinkSizeReward(network.reward("cost"), sizes_of(network, {("o", "d"): 1.0}))
    plain = rv.RouteChoice(network, reward, [-1.0, 0.0])
    corrected = rv.RouteChoice(network, reward, [-1.0, -3.0])
    assert plain.path_probability(["o", "a", "d"]) == pytest.approx(1 / 3, rel=1e-12)
    assert corrected.path_probability(["o", "a", "d"]) == pytest.approx(np.e**2 / (np.e**2 + 2.0), rel=1e-12)
    assert corrected.path_probability(["o", "b", "c", "d"]) == pytest.approx(1.0 / (np.e**2 + 2.0), rel=1e-12)


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6))
def test_sizes_are_visits_of_the_dense_chain(seed):
    rng = np.random.default_rng(seed)
    network = streets(2, seed, wide=int(rng.integers(2, 5)))
    reward, theta = network.reward(["travel_time", "constant"]), [-rng.uniform(1.0, 2.0), -0.8]
    origin, other, goal = (network.links[k] for k in rng.choice(network.n_links, 3, replace=False))
    demand = {(origin, goal): 2.0, (other, goal): 6.0}
    P, _ = dense_policy(rv.RouteChoice(network, reward, theta), goal)
    starts = np.eye(network.n_links)[[network.index(origin), network.index(other)]]
    x, y = np.linalg.solve(np.eye(network.n_links) - P.T, starts.T).T
    pairs = rv.link_size(network, reward, theta, demand, per="pair")
    goals = rv.link_size(network, reward, theta, demand, per="goal")
    g = network.index(goal)
    np.testing.assert_allclose(pairs.of(g, network.index(origin)), x, atol=2e-10)
    np.testing.assert_allclose(pairs.of(g, network.index(other)), y, atol=2e-10)
    np.testing.assert_allclose(goals.of(g), 0.25 * x + 0.75 * y, atol=2e-10)


def test_trips_and_tables_ask_for_the_same_sizes():
    network = streets(3, wide=4)
    trips = model(network).simulate(DEMAND, seed=1)
    reward = network.reward(["travel_time", "constant"])
    for per in ("goal", "pair"):
        one, other = (rv.link_size(network, reward, [-1.5, -0.6], what, per=per) for what in (trips, DEMAND))
        assert one.goal.tolist() == other.goal.tolist()
        assert one.origin.tolist() == other.origin.tolist()
        np.testing.assert_allclose(one.matrix.toarray(), other.matrix.toarray())
        frame = one.to_frame()
        assert frame["size"].sum() == pytest.approx(one.matrix.sum())
        assert ("origin" in frame) == (per == "pair")


def test_only_links_that_are_used_are_stored():
    one_way = streets(5, both_ways=False)
    sizes = rv.link_size(one_way, one_way.reward("travel_time"), [-1.0], {("22-23", "43-44"): 1.0})
    assert sizes.matrix.nnz < 12 < one_way.n_links
    assert repr(sizes) == f"LinkSizes(by pair, {sizes.matrix.nnz} of 1 x {one_way.n_links} stored)"


def many_pairs(network, n=60):
    rng = np.random.default_rng(4)
    ends = rng.choice(network.n_links, 5, replace=False)
    return {(network.links[k], network.links[rng.choice(ends[ends != k])]): 1.0 for k in range(min(n, network.n_links))}


def test_the_sizes_of_all_pairs_come_from_one_factorisation_and_are_those_of_one_after_another():
    network = streets(3, wide=4)
    reward, demand = network.reward(["travel_time", "constant"]), many_pairs(network)
    sizes = rv.link_size(network, reward, [-1.5, -0.6], demand, per="pair")
    work = sizes.at._values.work
    assert work.factorisations == 2  # of the sums over paths, and of their transpose
    one_by_one = rv.RouteChoice(network, reward, [-1.5, -0.6])
    for goal, origin in zip(sizes.goal, sizes.origin, strict=True):
        visits = one_by_one._toward_link(network.links[goal], None).visits(np.eye(network.n_links)[origin])
        np.testing.assert_allclose(sizes.of(goal, origin), visits, atol=1e-10)


def test_a_pair_needs_one_factorisation_at_every_theta_and_an_evaluation_tells_how_far_it_is():
    network = streets(3, wide=4)
    base, demand = network.reward(["travel_time", "constant"]), many_pairs(network, 12)
    reward = rv.LinkSizeReward(base, rv.link_size(network, base, [-1.5, -0.6], demand))
    rows = GoalRows.of(network.mdp, model(network).simulate(demand, seed=0), "pair")
    work, told = Work(), []
    cases = goal_cases(rows, None, work=work)
    assert isinstance(cases, RouteCases)
    cases.tell = told.append
    point = Objective(reward, [cases]).at(np.array([-1.5, -0.6, -1.0]))
    assert np.isfinite(point.hessian).all()
    assert work.factorisations == rows.n_cases
    assert told[-1] == f"{rows.n_cases} of {rows.n_cases} cases, each with its own factorisation"
    assert len(told) == rows.n_cases


def test_a_bar_counts_the_pairs(monkeypatch):
    bars = []

    class Watched(Progress):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            bars.append(self)

    monkeypatch.setattr("revealed.routes.link_size.Progress", Watched)
    network = streets(3, wide=4)
    demand = many_pairs(network, 40)
    for per in ("goal", "pair"):
        rv.link_size(network, network.reward("constant"), [-2.0], demand, per=per)
        assert (bars[-1].done, bars[-1].total) == (len(demand), len(demand))
        assert bars[-1]._bar is None  # quiet: this is no terminal
    with pytest.raises(InvalidOption, match="`progress`: expected True or False; got 'yes'"):
        rv.link_size(network, network.reward("constant"), [-2.0], demand, progress="yes")  # pyright: ignore[reportArgumentType]


# -- the reward -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per", ["goal", "pair"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_reward_of_a_case_has_the_size_of_the_link_that_is_entered(per, sparse):
    network = streets(3, wide=4)
    base = network.reward(["travel_time", "toll"])
    if sparse:
        base = rv.LinearReward(sp.csr_array(base.matrix), base.names, n_actions=network.n_actions)
    sizes = rv.link_size(network, network.reward(["travel_time", "constant"]), [-1.5, -0.6], DEMAND, per=per)
    reward = rv.LinkSizeReward(base, sizes)
    assert (reward.by, reward.n_params, reward.names) == (per, 3, ("travel_time", "toll", "link_size"))
    assert is_linear(reward)
    theta = np.array([-1.0, -0.5, 2.0])
    goal, origin = network.index("22-23"), network.index("00-01")
    case = reward.toward(goal, origin)
    assert type(case) is rv.LinearReward
    assert case.names == reward.names
    table = case.value(theta).reshape(-1)[network.pair]
    expected = base.value(theta[:2]).reshape(-1)[network.pair] + 2.0 * sizes.of(goal, origin)[network.target]
    np.testing.assert_allclose(table, expected, rtol=1e-12)
    # the reward itself has size zero, and shapes that fit
    np.testing.assert_allclose(reward.value(theta), base.value(theta[:2]))
    assert reward.jacobian(theta).shape == case.jacobian(theta).shape
    cotangent = np.random.default_rng(0).normal(size=network.mdp.feasible.shape)
    np.testing.assert_allclose(reward.vjp(theta, cotangent), [*base.vjp(theta[:2], cotangent), 0.0])
    assert reward.init().tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("per", ["goal", "pair"])
def test_a_size_without_weight_changes_nothing(per):
    network = streets(3, wide=4)
    plain = model(network)
    sizes = rv.link_size(network, plain.reward_model, plain.theta, DEMAND, per=per)
    sized = rv.RouteChoice(network, rv.LinkSizeReward(plain.reward_model, sizes), [*plain.theta, 0.0])
    np.testing.assert_allclose(sized.flows(DEMAND), plain.flows(DEMAND), atol=1e-10)
    np.testing.assert_allclose(
        sized.welfare(DEMAND)["expected_maximum"], plain.welfare(DEMAND)["expected_maximum"], atol=1e-10
    )
    trips = plain.simulate(DEMAND, seed=3)
    np.testing.assert_allclose(sized.log_likelihood(trips), plain.log_likelihood(trips), atol=1e-10)


@pytest.mark.parametrize("per", ["goal", "pair"])
def test_with_sizes_choices_are_the_logit_of_paths_with_their_sizes(per):
    network = streets(5, both_ways=False)
    plain = model(network)
    demand = {("00-01", "43-44"): 300.0, ("00-10", "43-44"): 100.0}
    sizes = rv.link_size(network, plain.reward_model, plain.theta, demand, per=per)
    sized = rv.RouteChoice(network, rv.LinkSizeReward(plain.reward_model, sizes), [*plain.theta, -1.2])
    origin, goal = "00-01", "43-44"
    ways = all_paths(network, origin, goal)
    size = sizes.of(network.index(goal), network.index(origin))
    U = utilities(plain, ways) - 1.2 * np.array([size[network.target[list(way)]].sum() for way in ways])
    logit = np.exp(U) / np.exp(U).sum()
    paths = sized.paths(origin, goal, n=1000)
    assert list(paths["path"]) == [named(network, origin, ways[k]) for k in np.argsort(-logit)]
    np.testing.assert_allclose(paths["probability"], np.sort(logit)[::-1], rtol=1e-10)
    assert sized.value(goal, origin=origin)[origin] == pytest.approx(np.log(np.exp(U).sum()), rel=1e-10)
    trips = sized.simulate(demand, seed=0)
    assert trips.steps is not None
    entered = np.bincount(trips.steps.next_state, minlength=network.n_links) + trips.starts
    flows = sized.flows(demand)
    assert (np.abs(entered - flows) < 4.5 * np.sqrt(flows + 0.1)).all()
    assert rv.demand_of(trips, network).to_frame()["trips"].tolist() == [300.0, 100.0]


@pytest.mark.parametrize("per", ["goal", "pair"])
def test_in_another_world_sizes_are_those_of_that_world(per):
    network = streets(3, wide=4)
    base, stated = network.reward(["travel_time", "toll", "constant"]), network.reward(["travel_time", "constant"])
    sized = rv.RouteChoice(
        network,
        rv.LinkSizeReward(base, rv.link_size(network, stated, [-2.0, -0.5], DEMAND, per)),
        [-1.5, -0.4, -0.6, -1.0],
    )
    for other, world in (
        (sized.close("01-11"), network.without("01-11")),
        (sized.change("travel_time", {"01-11": 4.0}), network.with_attribute("travel_time", {"01-11": 4.0})),
    ):
        again = rv.link_size(world, world.reward(["travel_time", "constant"]), [-2.0, -0.5], DEMAND, per)
        np.testing.assert_allclose(other.reward_model.sizes.matrix.toarray(), again.matrix.toarray(), atol=1e-12)
        reward = rv.LinkSizeReward(world.reward(["travel_time", "toll", "constant"]), again)
        fresh = rv.RouteChoice(world, reward, sized.theta)
        np.testing.assert_allclose(other.flows(DEMAND), fresh.flows(DEMAND), atol=1e-10)
        assert not np.allclose(other.flows(DEMAND), sized.flows(DEMAND))


def test_a_comparison_with_sizes_names_what_is_lost():
    network = streets(3, wide=4)
    base = network.reward(["travel_time", "constant"])
    sizes = rv.link_size(network, base, [-2.0, -0.5], DEMAND)
    sized = rv.RouteChoice(network, rv.LinkSizeReward(base, sizes), [-1.5, -0.6, -1.0])
    found = sized.compare(sized.close("02-03"), DEMAND)
    assert found.lost["trips"].tolist() == [4.0]
    assert np.isfinite(found.totals.to_numpy()).all()


# -- the door ---------------------------------------------------------------------------------------------------------


def test_cases_that_were_not_asked_about_are_refused():
    network = overlapping()
    pairs, goals = (sizes_of(network, {("o", "d"): 1.0}, per=per) for per in ("pair", "goal"))
    d, p = network.index("d"), network.index("p")
    with pytest.raises(InvalidInput, match=r"`origin` is required: these link sizes are per pair of origin and goal"):
        pairs.of(d)
    with pytest.raises(
        InvalidInput,
        match=r"`trips`: expected trips of the 1 pairs for which link sizes were computed; got a trip from 'p' to 'd'",
    ):
        pairs.of(d, p)
    with pytest.raises(InvalidInput, match=r"got a trip to 'p'\. Compute the sizes for all trips that are needed"):
        goals.of(p)


def test_sizes_need_a_plain_model_and_known_options():
    network = overlapping()
    reward = rv.LinkSizeReward(network.reward("cost"), sizes_of(network, {("o", "d"): 1.0}))
    with pytest.raises(InvalidOption, match=r"`per`: expected one of goal, pair; got 'trip'"):
        sizes_of(network, {("o", "d"): 1.0}, per="trip")
    with pytest.raises(InvalidInput, match=r"`reward` cannot have link sizes itself"):
        rv.link_size(network, reward, [-1.0, -1.0], {("o", "d"): 1.0})
    with pytest.raises(InvalidInput, match=r"^1 trips of 1 pair cannot reach their destination"):
        sizes_of(network, {("d", "o"): 1.0})
    with pytest.raises(
        InvalidInput, match=r"`sizes`: expected link sizes, as returned by rv\.link_size\(\.\.\.\); got ndarray"
    ):
        rv.LinkSizeReward(network.reward("cost"), np.ones(3))  # pyright: ignore[reportArgumentType]
    same = rv.LinearReward(np.ones((network.n_links, network.n_actions, 1)), ["link_size"])
    with pytest.raises(InvalidReward, match=r"`reward` cannot have a parameter called 'link_size'"):
        rv.LinkSizeReward(same, reward.sizes)
    with pytest.raises(InvalidReward, match=r"`reward`: expected a linear reward; got NeuralReward"):
        rv.LinkSizeReward(rv.NeuralReward(network.features(["cost"])), reward.sizes)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("per", ["goal", "pair"])
def test_the_weight_of_the_size_is_recovered(per):
    network, rng = streets(3, wide=4), np.random.default_rng(0)
    pairs = [tuple(network.links[k] for k in rng.choice(network.n_links, 2, replace=False)) for _ in range(40)]
    demand = dict.fromkeys(pairs, 60.0)
    sizes = rv.link_size(network, network.reward(["travel_time", "constant"]), [-1.5, -0.6], demand, per=per)
    reward = rv.LinkSizeReward(network.reward(["travel_time", "toll", "constant"]), sizes)
    truth = rv.RouteChoice(network, reward, [-1.5, -0.4, -0.6, -1.0])
    trips = truth.simulate(demand, seed=1)
    fit = rv.NFXP(reward).fit(network.mdp, trips)
    assert fit.converged
    assert (np.abs(fit.theta - truth.theta) < 3.0 * fit.bse).all()
    assert abs(fit.theta[-1]) > 5.0 * fit.bse.iloc[-1]
    assert rv.RouteChoice.of(network, fit).log_likelihood(trips).sum() == pytest.approx(fit.llf, rel=1e-10)


def test_simulated_trips_feel_link_sizes():
    """Trips drawn from a fit are as long as its own expectation says, which is not that of a reward without sizes."""
    network = streets(3)
    reward = network.reward(["travel_time", "constant"])
    first = {"travel_time": -1.0, "constant": -0.5}
    links = list(network.links)
    demand = {(links[0], links[-1]): 400, (links[3], links[-1]): 400}
    for per in ("goal", "pair"):
        sizes = rv.link_size(network, reward, first, demand, per=per)
        model = rv.RouteChoice(network, rv.LinkSizeReward(reward, sizes), [-0.8, -0.9, 1.5])
        trips = model.simulate(demand, seed=1)
        fit = rv.NFXP(model.reward_model).fit(network.mdp, trips)
        again = fit.simulate(seed=2)
        for found, theta in ((trips, model.theta), (again, fit.theta)):
            expected = rv.RouteChoice(network, model.reward_model, theta).flows(demand)
            gap = (found.n_decisions + 800 - expected.sum()) / 800
            without = rv.RouteChoice(network, reward, theta[:2]).flows(demand)
            assert abs(gap) < 0.25
            assert abs(without.sum() - expected.sum()) / 800 > 0.5


def test_models_and_rewards_that_were_used_can_be_sent_elsewhere():
    """What holds factorisations stays behind and is made again."""
    network = streets(3)
    choice = model(network)
    before = choice.value("12-22")
    assert pickle.loads(pickle.dumps(choice)).value("12-22").equals(before)
    base, demand = network.reward(["travel_time", "constant"]), {("00-01", "12-22"): 2.0}
    reward = rv.LinkSizeReward(base, rv.link_size(network, base, [-1.5, -0.8], demand))
    assert "_values" in vars(reward.sizes.at)
    theta, ends = np.array([-1.5, -0.8, -0.5]), (network.index("12-22"), network.index("00-01"))
    again = pickle.loads(pickle.dumps(reward))
    np.testing.assert_array_equal(again.toward(*ends).value(theta), reward.toward(*ends).value(theta))


def test_a_fit_with_link_sizes_is_bootstrapped_side_by_side():
    network = streets(3)
    base = network.reward(["travel_time", "constant"])
    ends = {("00-01", "12-22"): 15, ("10-00", "12-22"): 15, ("22-12", "00-10"): 15}
    demos = model(network).simulate(ends, seed=0)
    reward = rv.LinkSizeReward(base, rv.link_size(network, base, [-1.5, -0.8], demos))
    fits = [rv.NFXP(reward, l2=1e-3).fit(network.mdp, demos) for _ in range(2)]  # a fit keeps what it has drawn
    one, two = (fit.bootstrap(reps=4, seed=1, jobs=jobs, progress=False) for jobs, fit in enumerate(fits, 1))
    np.testing.assert_allclose(two.theta, one.theta, rtol=1e-9)
    assert one.theta.std(axis=0).min() > 0.0


@pytest.mark.parametrize("per", ["pair", "goal"])
def test_sizes_of_another_order_of_the_links_are_refused(per):
    """Sizes and turns are known by number: on the same links in another order they would be those of other links."""
    network = streets(3)
    demand = {("00-01", "21-22"): 30, ("20-21", "01-02"): 30}
    trips = model(network).simulate(demand, seed=0)
    other = rv.RoadNetwork.from_frame(network.links_frame.sample(frac=1.0, random_state=1))
    rewards = [sized(each, demand, per) for each in (network, other)]
    with pytest.raises(
        InvalidReward, match=r"link sizes of the model's links in their order \(.*\); got sizes of 00-01"
    ):
        rv.NFXP(rewards[0], l2=1e-3).fit(other.mdp, trips)
    options = {"l2": 1e-3, "start": [-1.0, -1.5, 0.0]}
    fits = [rv.NFXP(r, **options).fit(n.mdp, trips) for r, n in zip(rewards, (network, other), strict=True)]
    np.testing.assert_allclose(fits[1].theta, fits[0].theta, rtol=1e-5)


def sized(network, demand, per):
    plain = network.reward(["travel_time", "constant"])
    return rv.LinkSizeReward(plain, rv.link_size(network, plain, [-1.0, -1.5], demand, per=per))
