"""Metrics, studies and advice where trips have goals: sums over the goals of what is known for one (theory D1–D6)."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.errors import InvalidDemonstrations, InvalidDistribution, InvalidInput
from revealed.metrics import Truth, epic, evaluate, evd, nll, starc, stochastic_evd
from revealed.trip_simulation import simulate_trips
from streets import streets

NAMES = ["travel_time", "toll", "constant"]
THETA = np.array([-1.5, -0.4, -0.6])
ENDS = (("00-01", "12-22"), ("10-00", "12-22"), ("01-11", "20-21"), ("22-12", "00-10"), ("22-12", "00-10"))


@cache
def grid() -> rv.RoadNetwork:
    return streets(3)


def truth() -> Any:
    return grid().reward(NAMES).value(THETA)


def trips(times: int = 1, seed: int = 0) -> rv.Demonstrations:
    origins, goals = zip(*ENDS, strict=True)
    return simulate_trips(grid().mdp, truth(), list(origins) * times, list(goals) * times, seed=seed)


@cache
def fitted() -> Any:
    return rv.NFXP(grid().reward(NAMES)).fit(grid().mdp, trips(30))


# ---- likelihood ----------------------------------------------------------------------------------------------------


def test_nll_of_a_fit_is_its_log_likelihood_per_decision_or_trip():
    fit = fitted()
    assert nll(fit, fit.demonstrations) == pytest.approx(-fit.llf / fit.n_decisions, rel=1e-12)
    assert nll(fit, fit.demonstrations, per="trajectory") == pytest.approx(-fit.llf / 150, rel=1e-12)


def test_held_out_trips_are_judged_decision_by_decision_each_on_its_way():
    fit, held = fitted(), trips(2, seed=9)
    steps: Any = held.steps
    policies = {goal: fit.policy_for(grid().links[goal]) for goal in np.unique(steps.goal)}
    each = [-np.log(policies[g][s, a]) for g, s, a in zip(steps.goal, steps.state, steps.action, strict=True)]
    assert nll(fit, held) == pytest.approx(np.mean(each), rel=1e-10)
    assert nll(fit.policy_for, held) == pytest.approx(np.mean(each), rel=1e-10)
    assert nll(fit, held, per="trajectory") == pytest.approx(np.sum(each) / 10, rel=1e-10)


def test_a_function_gets_labels_as_they_are_and_indices_where_there_are_none():
    mdp = rv.MDP(np.eye(3)[[[1, 2], [2, 0], [0, 1]]], discount=1.0, state_labels=[30, 20, 10])
    demos = rv.Demonstrations.from_trajectories([([0, 1], [0, 1])], 3, 2, goal=[2])
    asked: list[Any] = []

    def policy(goal: Any) -> Any:
        asked.append(goal)
        return np.full((3, 2), 0.5)

    assert nll(policy, demos) == pytest.approx(np.log(2.0))
    labelled = simulate_trips(mdp, -3.0 * mdp.feasible, ["30"], ["10"], seed=0)
    assert nll(policy, labelled) == pytest.approx(np.log(2.0))
    table = np.where(mdp.feasible, -3.0, 0.0)
    stochastic_evd(mdp, table, policy, demos=labelled)
    assert asked == [2, 10, 10]


def test_one_policy_for_all_goals_is_refused():
    with pytest.raises(InvalidInput) as caught:
        nll(np.full((24, 4), 0.25), trips())
    assert str(caught.value) == (
        "`policy`: expected a fit of trips with goals, or a function from a goal to an (S, A) policy; got ndarray. "
        "Each goal has its own policy; demos.toward(goal) are the trips to one."
    )
    with pytest.raises(InvalidDemonstrations, match="expected trips with goals, like those of the fit; got none"):
        nll(fitted(), trips().toward("12-22"))


# ---- value differences and distances -------------------------------------------------------------------------------


def by_goal(function: Any) -> float:
    """The mean over the trips of a figure on the model of one goal, from where trips to it set out."""
    total, mdp = 0.0, grid().mdp
    for goal in {g for _, g in ENDS}:
        starts = np.zeros(24)
        np.add.at(starts, [grid().index(o) for o, g in ENDS if g == goal], 1.0)
        total += starts.sum() / len(ENDS) * function(goal, mdp.toward(goal), starts / starts.sum())
    return total


def test_value_differences_are_means_over_goals_and_their_starts():
    fit, mdp, demos = fitted(), grid().mdp, trips()
    other = truth() * np.random.default_rng(0).uniform(0.2, 3.0, truth().shape)
    expected = by_goal(lambda g, m, start: evd(m, truth(), other, start))
    assert evd(mdp, truth(), other, demos=demos) == pytest.approx(expected, rel=1e-12)
    assert expected > 0.05
    assert evd(mdp, truth(), truth(), demos=demos) == 0.0
    expected = by_goal(lambda g, m, start: stochastic_evd(m, truth(), fit.policy_for(g), start))
    assert stochastic_evd(mdp, truth(), fit, demos=demos) == pytest.approx(expected, rel=1e-12)
    assert stochastic_evd(mdp, truth(), fit.policy_for, demos=demos) == pytest.approx(expected, rel=1e-12)


def test_evaluate_gives_every_figure():
    fit, mdp, demos = fitted(), grid().mdp, trips()
    scores = rv.evaluate(fit, mdp, truth(), demos)
    assert scores == pytest.approx(
        {
            "nll": nll(fit, demos),
            "evd": evd(mdp, truth(), fit.reward, demos=demos),
            "stochastic_evd": stochastic_evd(mdp, truth(), fit, demos=demos),
            "epic": epic(mdp, truth(), fit.reward),
            "starc": by_goal(lambda g, m, start: starc(m, truth(), fit.reward)),
        }
    )
    assert list(scores) == ["nll", "evd", "stochastic_evd", "epic", "starc"]
    assert scores["starc"] > 1e-4
    assert Truth(mdp, truth()).evaluate(fit) == pytest.approx(scores | {"nll": nll(fit, fit.demonstrations)})


def test_rewards_that_depend_on_the_trip_are_compared_trip_by_trip():
    base, demos = grid().reward(["travel_time", "constant"]), trips(4)
    sizes = rv.link_size(grid(), base, [-1.5, -0.8], demos)
    fit: Any = rv.NFXP(rv.LinkSizeReward(base, sizes), start=[-1.5, -0.8, -0.5]).fit(grid().mdp, demos)
    scores, expected, each = evaluate(fit, grid().mdp, truth()), 0.0, 0.0
    for origin, goal in ENDS:
        model, reward = grid().mdp.toward(goal), fit.reward_for(goal, origin)
        expected += epic(model, truth(), reward) / len(ENDS)
        start = np.eye(24)[grid().index(origin)]
        each += stochastic_evd(model, truth(), fit.policy_for(goal, origin), start) / len(ENDS)
    assert scores["epic"] == pytest.approx(expected, rel=1e-9)
    assert scores["stochastic_evd"] == pytest.approx(each, rel=1e-9)


def test_coverage_is_a_table_of_pairs_and_no_expert_is_asked_for():
    fit, mdp = fitted(), grid().mdp
    weights = np.where(mdp.feasible, np.random.default_rng(1).uniform(size=mdp.feasible.shape), 0.0)
    found = evaluate(fit, mdp, truth(), coverage=weights)["starc"]
    expected = by_goal(lambda g, m, start: starc(m, truth(), fit.reward, np.where(m.feasible, weights, 0.0)))
    assert found == pytest.approx(expected, rel=1e-12)
    with pytest.raises(InvalidDistribution, match="where trips have goals"):
        evaluate(fit, mdp, truth(), coverage=np.ones(24))
    with pytest.raises(InvalidInput, match="each goal has its own"):
        evaluate(fit, mdp, truth(), expert=mdp.uniform_policy())


# ---- studies, advice, demand ---------------------------------------------------------------------------------------


def test_a_city_can_be_studied_by_monte_carlo():
    city = rv.environments.city(100)
    found = rv.monte_carlo(city, [rv.NFXP(city.reward)], replications=3, n=120, seed=4, jobs=1, progress=False)
    demos = city.demonstrate(120, seed=int(np.random.SeedSequence(4, spawn_key=(2,)).generate_state(1, np.uint64)[0]))
    last = found.frame[found.frame["replication"] == 2]
    fit = rv.NFXP(city.reward).fit(city.mdp, demos)
    np.testing.assert_allclose(last["estimate"], fit.theta, rtol=1e-7)
    assert "3 replications of 120 trips" in str(found)
    with pytest.raises(InvalidInput, match="`length` has no effect where trips have goals: they end on arrival"):
        rv.monte_carlo(city, [rv.NFXP(city.reward)], length=5)


def test_what_does_not_know_goals_says_what_to_use():
    with pytest.raises(InvalidDemonstrations) as caught:
        rv.advise(grid().mdp, trips(), grid().reward(NAMES))
    assert str(caught.value) == (
        "there is no advice for trips with goals. Use rv.NFXP(reward).fit(mdp, demos): it shares computations across "
        "goals."
    )
    with pytest.raises(InvalidInput, match=r"Use fit.counterfactual\(params=\{name: value\}\) for each value"):
        fitted().demand_curve("toll", [0.0], 0)


# ---- another order of the same model -------------------------------------------------------------------------------


def test_a_fit_of_trips_scores_the_same_on_its_network_in_another_order_of_the_links():
    fit = fitted()
    other = rv.RoadNetwork.from_frame(grid().links_frame.sample(frac=1.0, random_state=1))
    assert other.links != grid().links
    here = evaluate(fit, grid().mdp, grid().reward(NAMES).value(THETA))
    for demos in (None, trips(30)):
        there = evaluate(fit, other.mdp, other.reward(NAMES).value(THETA), demos)
        assert dict(there) == pytest.approx(dict(here), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP])
def test_a_fit_of_trips_scores_the_same_on_its_model_in_another_order_of_the_labels(method):
    moves = np.eye(3)[[[1, 2], [2, 0], [0, 1]]]
    states, actions = ["zoo", "home", "park"], ["road", "path"]
    mdp = rv.MDP(moves, 1.0, state_labels=states, action_labels=actions)
    mixed = np.eye(3)[[[2, 1], [0, 2], [1, 0]]]  # home, park, zoo; path, road
    other = rv.MDP(mixed, 1.0, state_labels=["home", "park", "zoo"], action_labels=["path", "road"])
    demos = rv.Demonstrations.from_trajectories([([1, 2], [0, 0]), ([1], [1]), ([2], [0])], 3, 2, goal=0)
    cost = -np.arange(1.0, 7.0).reshape(3, 2, 1)
    fit = method(rv.LinearReward(cost), l2=0.1).fit(mdp, demos)
    there = evaluate(fit, other, fit.reward)
    assert dict(there) == pytest.approx(dict(evaluate(fit, mdp, fit.reward)), rel=1e-6, abs=1e-9)


def test_starts_that_would_not_be_read_are_refused():
    mdp, start = grid().mdp, {"00-01": 1.0}
    for call in (
        lambda: evaluate(fitted(), mdp, truth(), initial=start),
        lambda: evd(mdp, truth(), fitted(), start, trips()),
        lambda: stochastic_evd(mdp, truth(), fitted(), start, trips()),
    ):
        with pytest.raises(InvalidInput, match="`initial` cannot be given for trips with goals"):
            call()


@pytest.mark.parametrize("given", ["reward", "policy"])
def test_parts_of_a_fit_of_trips_are_sent_to_the_metrics_that_take_them(given):
    parts: Any = {"reward": fitted().reward, "policy": fitted().policy_for}
    with pytest.raises(InvalidInput, match=r"`demos` cannot be trips with goals.*rv\.metrics\.evd takes a reward"):
        evaluate(mdp=grid().mdp, true_reward=truth(), demos=trips(), **{given: parts[given]})
    scores = evaluate(fitted(), grid().mdp, truth(), trips())
    assert evd(grid().mdp, truth(), parts["reward"], demos=trips()) == pytest.approx(scores["evd"])
    assert nll(parts["policy"], trips()) == pytest.approx(scores["nll"])
    assert stochastic_evd(grid().mdp, truth(), parts["policy"], demos=trips()) == pytest.approx(
        scores["stochastic_evd"]
    )
