"""Train here, use it there: an estimated reward on other models, and what it is worth there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from models import draw, random_mdp
from revealed.alignment import align_models, same_model
from revealed.errors import InvalidInput, InvalidReward, RevealedError
from revealed.metrics import epic, evaluate, evd, expected_return, nll, population_nll, starc, stochastic_evd
from revealed.trip_simulation import simulate_trips
from streets import streets

S, A = 8, 3
FEATURES = np.random.default_rng(5).normal(size=(S, A, 2))
THETA = np.array([1.0, -0.6])
TRUE = FEATURES @ THETA
HERE = random_mdp(S, A, 0.9, masked=True, terminal=1)
THERE = rv.MDP(  # everything is on offer, other states end, other moves
    random_mdp(S, A, 0.9, seed=3).transitions.matrix, discount=0.95, terminal=np.arange(S) == 2
)
SHUFFLED = ([3, 0, 7, 5, 1, 6, 2, 4], [2, 0, 1])


@pytest.fixture(scope="module")
def fit() -> rv.Fit:
    return rv.NFXP(rv.LinearReward(FEATURES)).fit(HERE, draw(HERE, TRUE, 300, 20))


@pytest.fixture(scope="module")
def exact(fit) -> rv.Fit:
    """The same at the true weights."""
    return replace(fit, theta=THETA, reward=TRUE)


def named(mdp: rv.MDP) -> rv.MDP:
    return mdp.with_labels([f"s{s}" for s in range(S)], ["stay", "go", "end"])


def shuffled(mdp: rv.MDP) -> rv.MDP:
    """The same model with its states and actions in another order, under their names."""
    s, a = SHUFFLED
    T = mdp.transitions.matrix.toarray().reshape(S, A, S)[np.ix_(s, a, s)]
    labels = [np.array(x)[i].tolist() for x, i in ((mdp.state_labels, s), (mdp.action_labels, a))]
    return rv.MDP(T, mdp.discount, None, mdp.feasible[np.ix_(s, a)], mdp.terminal[s], *labels)


# ---- the reward of all pairs -----------------------------------------------------------------------------------------


def test_the_reward_of_a_fit_is_that_of_every_pair(fit):
    assert (~HERE.feasible).any()
    np.testing.assert_allclose(fit.reward, FEATURES @ fit.theta, rtol=1e-14)
    np.testing.assert_array_equal(fit.table("reward").to_numpy(), fit.reward)


@pytest.mark.parametrize(
    "change", [{"params": {"theta0": 2.0}}, {"reward": 2.0 * TRUE}, {"mdp": HERE.replace(discount=0.8)}]
)
def test_rewards_of_counterfactuals_are_those_of_every_pair(fit, change):
    """Also of pairs that its own model does not offer: another model may."""
    answer = fit.counterfactual(**change, bands=None)
    theta = np.array([2.0, fit.theta[1]]) if "params" in change else fit.theta
    after = change.get("reward", FEATURES @ theta)
    for side, wanted in ((answer.before, FEATURES @ fit.theta), (answer.after, after)):
        np.testing.assert_allclose(side.reward, wanted, rtol=1e-12)
        np.testing.assert_allclose(rv.solve(THERE, side.reward).policy, rv.solve(THERE, wanted).policy, rtol=1e-9)
        assert evaluate(mdp=THERE, true_reward=wanted, reward=side.reward)["evd"] < 1e-9


def test_solving_another_model_with_a_fit_is_solving_it_with_the_reward(exact):
    """More actions on offer and other ends: linear rewards at the true weights give the true solution, exactly."""
    best = rv.solve(THERE, TRUE)
    for given in (exact, exact.reward, exact.reward_on(THERE)):
        found = rv.solve(THERE, given)
        np.testing.assert_array_equal(found.policy, best.policy)
        np.testing.assert_array_equal(found.value, best.value)
    assert evd(THERE, TRUE, exact) == 0.0
    masked = rv.solve(THERE, np.where(HERE.feasible, TRUE, 0.0)).policy  # what the table used to be
    assert np.abs(masked - best.policy).max() > 0.2


def test_rewards_of_states_and_of_networks_travel(fit):
    demos = fit.demonstrations
    for model in (rv.TabularReward(S), rv.NeuralReward(FEATURES[:, 0], hidden=(4,), seed=0)):
        other = rv.NFXP(model, l2=0.1).fit(HERE, demos)
        table = np.broadcast_to(model.value(other.theta), (S, A))
        np.testing.assert_allclose(other.reward, table, rtol=1e-12)
        np.testing.assert_array_equal(rv.solve(THERE, other).policy, rv.solve(THERE, table).policy)


def test_the_callback_sees_the_reward_of_a_fit(fit):
    seen = []
    rv.NFXP(rv.LinearReward(FEATURES), callback=seen.append).fit(HERE, fit.demonstrations)
    np.testing.assert_allclose(seen[-1].reward, FEATURES @ seen[-1].theta, rtol=1e-14)


def feature_frame(pairs: Any) -> rv.LinearReward:
    rows = [{"s": f"s{s}", "a": ("stay", "go", "end")[a], "x": FEATURES[s, a, 0]} for s, a in pairs]
    return rv.LinearReward.from_frame(pd.DataFrame(rows), state="s", action="a", actions=["stay", "go", "end"])


def test_pairs_without_features_have_no_reward_and_are_refused_where_they_are_offered():
    here = named(HERE)
    reward = feature_frame(np.argwhere(HERE.feasible))
    demos = replace(draw(HERE, TRUE, 100, 20), state_labels=here.state_labels, action_labels=here.action_labels)
    fit = rv.NFXP(reward).fit(here, demos)
    np.testing.assert_array_equal(np.isnan(fit.reward), ~HERE.feasible)
    assert fit.table("reward").isna().to_numpy().sum() == (~HERE.feasible).sum()
    rv.solve(here.replace(discount=0.5), fit)
    s, a = np.argwhere(~HERE.feasible)[0]
    more = HERE.feasible.copy()
    more[s, a] = True
    T = random_mdp(S, A, 0.9, masked=False, terminal=1).transitions.matrix
    wider = named(rv.MDP(T, 0.9, feasible=more, terminal=HERE.terminal))
    with pytest.raises(InvalidReward, match=rf"none for 1 pair.*state 's{s}', action") as caught:
        rv.solve(wider, fit)
    assert caught.value.argument == "fit"
    with pytest.raises(InvalidReward, match=rf"got nan.*'s{s}'"):
        rv.solve(wider, fit.reward)


def test_turns_that_do_not_exist_have_no_reward(grid_fit):
    network, fit = grid_fit
    np.testing.assert_array_equal(np.isnan(fit.reward), ~network.mdp.feasible)
    assert (~network.mdp.feasible).any()
    np.testing.assert_allclose(
        fit.reward_on(network.mdp)[network.mdp.feasible], fit.reward[network.mdp.feasible], rtol=1e-14
    )


# ---- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["linear", "neural"])
def test_older_files_get_the_whole_table(fit, tmp_path, model):
    """They hold zeros for what the model did not offer."""
    if model == "neural":
        reward = rv.NeuralReward(FEATURES, hidden=(4,), seed=0)
        fit = rv.NFXP(reward, l2=0.1).fit(HERE, fit.demonstrations)
    new = rv.load(fit.save(tmp_path / "new"))
    old = rv.load(replace(fit, reward=np.where(HERE.feasible, fit.reward, 0.0)).save(tmp_path / "old"))
    for loaded in (new, old):
        np.testing.assert_allclose(loaded.reward, fit.reward, rtol=1e-10)
        np.testing.assert_allclose(rv.solve(THERE, loaded).policy, rv.solve(THERE, fit).policy, rtol=1e-10)


def test_a_table_without_some_values_is_saved_and_loaded(grid_fit, tmp_path):
    _, fit = grid_fit
    loaded = rv.load(fit.save(tmp_path / "trips"))
    np.testing.assert_allclose(loaded.reward, fit.reward, rtol=1e-12)  # NaN and all


# ---- labels, sizes, horizons -----------------------------------------------------------------------------------------


def test_labels_are_matched(exact):
    here = replace(exact, mdp=named(HERE))
    there = named(THERE)
    s, a = SHUFFLED
    found, best = rv.solve(shuffled(there), here), rv.solve(THERE, TRUE)
    np.testing.assert_allclose(found.policy, best.policy[np.ix_(s, a)], rtol=1e-12)
    np.testing.assert_allclose(found.value, best.value[s], rtol=1e-12)


def test_a_part_of_the_model_is_matched_by_its_labels(exact):
    here, states, actions = replace(exact, mdp=named(HERE)), ["s6", "s1", "s3"], ["go", "stay"]
    T = np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 2))
    part = rv.MDP(T, 0.9, state_labels=states, action_labels=actions)
    np.testing.assert_array_equal(here.reward_on(part), TRUE[np.ix_([6, 1, 3], [1, 0])])
    strange = rv.MDP(T, 0.9, state_labels=["s6", "s1", "sea"], action_labels=actions)
    with pytest.raises(InvalidReward, match=r"none for 2 pairs \(state 'sea', action 'go'\)|state 'sea'"):
        rv.solve(strange, here)
    with pytest.raises(InvalidReward, match=r"3 states and 2 actions.*8 states and 3 actions"):
        rv.solve(part, exact)  # nothing tells which states these are


def test_rewards_travel_between_a_horizon_and_its_base(fit):
    long, demos = HERE.unroll(4), draw(HERE, TRUE, 300, 4)
    timed = rv.NFXP(rv.LinearReward(FEATURES)).fit(long, demos)
    np.testing.assert_allclose(timed.reward, np.tile(FEATURES @ timed.theta, (5, 1)), rtol=1e-12)  # the last layer, too
    np.testing.assert_allclose(timed.reward_on(THERE), FEATURES @ timed.theta, rtol=1e-12)
    np.testing.assert_allclose(timed.reward_on(THERE.unroll(2)), np.tile(FEATURES @ timed.theta, (3, 1)), rtol=1e-12)
    np.testing.assert_allclose(fit.reward_on(THERE.unroll(2)), np.tile(FEATURES @ fit.theta, (3, 1)), rtol=1e-12)


def test_a_model_is_the_same_in_another_order_and_another_in_anything_else():
    here = named(HERE)
    assert same_model(shuffled(here), here)
    found = align_models(shuffled(here), here)
    assert [np.asarray(x).tolist() for x in (found.states, found.actions)] == [list(x) for x in SHUFFLED]
    assert same_model(HERE, HERE.replace(initial=np.eye(S)[0]))
    assert not same_model(here.replace(state_labels=[f"t{s}" for s in range(S)]), here)
    T = HERE.transitions.matrix.copy()
    row = int(np.flatnonzero(np.diff(T.indptr) > 1)[0])
    T.data[T.indptr[row] : T.indptr[row] + 2] += [1e-3, -1e-3]
    others = [HERE.replace(discount=0.8), HERE.replace(terminal=np.zeros(S, bool)), HERE.unroll(2)]
    others += [rv.MDP(T, 0.9, feasible=HERE.feasible, terminal=HERE.terminal), rv.MDP(np.ones((1, 1, 1)), 0.9)]
    assert not any(same_model(other, HERE) for other in others)


# ---- judging ---------------------------------------------------------------------------------------------------------


def test_on_another_model_a_fit_is_solved_anew(fit):
    scores = rv.evaluate(fit, THERE, TRUE)
    solved = rv.solve(THERE, FEATURES @ fit.theta)
    expected = {
        "evd": evd(THERE, TRUE, solved.reward, scores.initial),
        "stochastic_evd": stochastic_evd(THERE, TRUE, solved, scores.initial),
        "epic": epic(THERE, TRUE, solved.reward),
        "starc": starc(THERE, TRUE, solved.reward),
    }
    assert list(scores) == ["nll", "evd", "stochastic_evd", "epic", "starc"]
    assert {name: scores[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert np.isnan(scores["nll"])
    assert "nll: there are no decisions of this model" in str(scores)
    assert "soft optimum of the reward on this model" in str(scores)
    new = draw(THERE, TRUE, 50, 10)
    assert rv.evaluate(fit, THERE, TRUE, new)["nll"] == pytest.approx(nll(solved, new), rel=1e-12)
    assert rv.evaluate(fit, THERE, FEATURES @ fit.theta)["evd"] == 0.0  # its own reward against itself


def test_a_fit_as_a_policy_is_solved_anew_on_another_model(fit):
    solved, uniform = rv.solve(THERE, fit), THERE.uniform_policy()
    at: dict[str, Any] = {"initial": evaluate(fit, THERE, TRUE).initial}  # where the data of the fit started
    assert stochastic_evd(THERE, TRUE, fit) == stochastic_evd(THERE, TRUE, solved, **at)
    assert expected_return(THERE, TRUE, fit) == expected_return(THERE, TRUE, solved, **at)
    assert population_nll(THERE, uniform, fit) == pytest.approx(population_nll(THERE, uniform, solved, **at), rel=1e-14)


def test_on_its_own_model_nothing_is_solved_anew(fit):
    """CCP's policy is not the soft optimum: it is judged as it is."""
    ccp = rv.CCP(rv.LinearReward(FEATURES), first_step="smoothed").fit(HERE, fit.demonstrations)
    for start in (None, np.eye(S)[0]):
        scores = evaluate(ccp, HERE, TRUE, initial=start)
        where = scores.initial if start is None else start
        assert dict(scores) == {
            "nll": nll(ccp, ccp.demonstrations),
            "evd": evd(HERE, TRUE, ccp.reward, where),
            "stochastic_evd": stochastic_evd(HERE, TRUE, ccp.policy, where),
            "epic": epic(HERE, TRUE, ccp.reward),
            "starc": starc(HERE, TRUE, ccp.reward),
        }
        assert scores.notes == ()


def test_another_order_of_the_same_model_changes_nothing(fit):
    here = named(HERE)
    ccp: Any = rv.CCP(rv.LinearReward(FEATURES), first_step="smoothed").fit(here, fit.demonstrations)
    s, a = SHUFFLED
    one, other = evaluate(ccp, here, TRUE), evaluate(ccp, shuffled(here), TRUE[np.ix_(s, a)])
    assert other == pytest.approx(one, rel=1e-10)
    assert other.starts == one.starts == "where the data started"
    assert "Read in the order of mdp, which is not that of fit.mdp: true_reward." in " ".join(other.notes)
    frame = pd.DataFrame(TRUE, list(here.state_labels or ()), list(here.action_labels or ()))
    by_label = evaluate(ccp, shuffled(here), frame)
    assert by_label == pytest.approx(one, rel=1e-10)
    assert not any("positions" in note for note in (*by_label.notes, *one.notes))


def test_solutions_policies_and_rewards_are_judged_for_what_they_are(fit):
    solution = rv.solve(HERE, TRUE)
    by_solution = evaluate(solution, HERE, TRUE, fit.demonstrations)
    by_reward = evaluate(mdp=HERE, true_reward=TRUE, reward=TRUE, demos=fit.demonstrations)
    assert by_solution == pytest.approx(by_reward, rel=1e-12)
    assert by_solution["evd"] == by_solution["epic"] == 0.0
    by_policy = evaluate(mdp=HERE, true_reward=TRUE, policy=solution.policy, demos=fit.demonstrations)
    assert by_policy["stochastic_evd"] == by_solution["stochastic_evd"]
    assert by_policy["nll"] == pytest.approx(by_solution["nll"], rel=1e-12)
    assert [name for name, value in by_policy.items() if np.isnan(value)] == ["evd", "epic", "starc"]
    assert "a policy alone has no reward" in str(by_policy)
    both = evaluate(mdp=HERE, true_reward=TRUE, policy=HERE.uniform_policy(), reward=TRUE)
    assert both["evd"] == 0.0
    assert both["stochastic_evd"] == stochastic_evd(HERE, TRUE, HERE.uniform_policy())
    hard = evaluate(rv.solve_hard(HERE, TRUE), HERE, TRUE)
    assert hard["stochastic_evd"] == pytest.approx(0.0, abs=1e-12)
    assert np.isnan(hard["evd"])


def test_frames_are_matched_by_label(fit):
    here = named(HERE)
    solution = rv.solve(here, TRUE)
    frame = pd.DataFrame(solution.policy, index=list(here.state_labels or ()), columns=list(here.action_labels or ()))
    s, a = SHUFFLED
    mixed, reward = frame.iloc[s, a], pd.DataFrame(TRUE, index=frame.index, columns=frame.columns).iloc[s, a]
    scores = evaluate(mdp=here, true_reward=reward, policy=mixed, reward=reward)
    assert scores["stochastic_evd"] == pytest.approx(stochastic_evd(HERE, TRUE, rv.solve(HERE, TRUE)), rel=1e-12)
    assert scores["evd"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"fit": TRUE}, r"`fit`.*may be a policy or a reward.*policy=table"),
        ({"fit": HERE.uniform_policy()}, r"`fit`.*may be a policy or a reward.*reward=table"),
        ({}, r"`fit` is required, or `policy` or `reward` in its place"),
        ({"fit": "NFXP"}, r"`fit`.*a fit or a solution.*str"),
        ({"fit": rv.NFXP}, r"`fit`.*a fit or a solution"),
        ({"fit": rv.solve(THERE, TRUE)}, r"`policy`.*a solution of this model.*rv.solve\(mdp, reward\)"),
        ({"fit": rv.solve(HERE, TRUE), "reward": TRUE}, r"`fit` cannot be combined with `reward`"),
        ({"policy": TRUE}, r"`policy`"),
        ({"reward": TRUE[:2]}, r"`reward`.*shape"),
    ],
)
def test_what_has_no_reading_is_refused(arguments, words):
    with pytest.raises(RevealedError, match=words):
        evaluate(**{"mdp": HERE, "true_reward": TRUE} | arguments)


def test_what_is_not_a_model_is_refused(fit):
    with pytest.raises(InvalidInput, match="`mdp`"):
        evaluate(fit, None, TRUE)
    with pytest.raises(InvalidInput, match="`mdp`"):
        fit.reward_on("there")


def test_a_policy_planned_with_an_estimated_model_is_judged_as_it_is_in_the_exact_one():
    car: Any = rv.environments.mountain_car(bins=10, transitions="kernel", trajectories=40)
    fit = rv.CCP(car.reward_model(), l2=1e-2, first_step="smoothed").fit(car.mdp, car.demonstrate(50, seed=0))
    assert not same_model(car.exact, car.mdp)
    scores = car.evaluate(fit)
    assert scores["stochastic_evd"] == car.truth.stochastic_evd(np.asarray(fit.policy))
    assert scores["evd"] == car.truth.evd(np.asarray(fit.reward))
    assert scores["nll"] == pytest.approx(-fit.llf / fit.nobs, rel=1e-12)


# ---- trips -----------------------------------------------------------------------------------------------------------

NAMES = ["travel_time", "toll", "constant"]
TASTES = np.array([-1.5, -0.4, -0.6])
ENDS = (("00-01", "12-22"), ("10-00", "12-22"), ("01-11", "20-21"), ("22-12", "00-10"))


@pytest.fixture(scope="module")
def grid_fit() -> tuple[rv.RoadNetwork, Any]:
    network = streets(3)
    origins, goals = zip(*ENDS, strict=True)
    truth = network.reward(NAMES).value(TASTES)
    trips = simulate_trips(network.mdp, truth, list(origins) * 30, list(goals) * 30, seed=0)
    return network, rv.NFXP(network.reward(NAMES)).fit(network.mdp, trips)


def test_trips_are_judged_on_another_network_by_their_reward_there(grid_fit):
    """A link is closed: everybody finds another way, as the reward says."""
    network, fit = grid_fit
    closed = network.without(["11-12"])
    truth = closed.reward(NAMES).value(TASTES)
    scores = evaluate(fit, closed.mdp, truth)
    reward, expected = fit.reward_on(closed.mdp), dict.fromkeys(("evd", "stochastic_evd", "starc"), 0.0)
    for origin, goal in ENDS:
        model, start = closed.mdp.toward(goal), np.eye(closed.n_links)[closed.index(origin)]
        expected["evd"] += evd(model, truth, reward, start) / len(ENDS)
        best = rv.solve(model, np.where(model.feasible, reward, 0.0))
        expected["stochastic_evd"] += stochastic_evd(model, truth, best, start) / len(ENDS)
        expected["starc"] += starc(model, truth, reward) / len(ENDS)
    assert {name: scores[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert np.isnan(scores["nll"])
    assert scores.starts == "the origins of the trips"
    origins, goals = zip(*ENDS, strict=True)
    new = simulate_trips(closed.mdp, truth, origins, goals, seed=1)
    ours = evaluate(fit, closed.mdp, truth, new)["nll"]
    again: Any = rv.NFXP(closed.reward(NAMES), start=fit.theta, max_iter=1).fit(closed.mdp, new)
    judged = replace(again, theta=fit.theta, reward=np.asarray(closed.reward(NAMES).value(fit.theta)))
    assert ours == pytest.approx(nll(judged, new), rel=1e-8)
    assert evaluate(fit, closed.mdp, reward)["evd"] == pytest.approx(0.0, abs=1e-12)


def test_link_sizes_belong_to_their_trips(grid_fit):
    network, fit = grid_fit
    base = network.reward(["travel_time", "constant"])
    sizes = rv.link_size(network, base, [-1.5, -0.8], fit.demonstrations)
    sized: Any = rv.NFXP(rv.LinkSizeReward(base, sizes), start=[-1.5, -0.8, -0.5]).fit(network.mdp, fit.demonstrations)
    with pytest.raises(InvalidReward, match=r"depends on the trip.*reward_for"):
        rv.solve(network.mdp.toward("12-22"), sized)
    np.testing.assert_array_equal(np.isnan(sized.reward_for("12-22", "00-01")), ~network.mdp.feasible)


def test_the_table_of_a_fit_is_taken_by_label_on_a_smaller_model():
    T = np.random.default_rng(1).dirichlet(np.ones(4), size=(4, 2))
    mdp = rv.MDP(T, 0.9, state_labels=list("abcd"), action_labels=["x", "y"])
    demos = rv.simulate(mdp, mdp.uniform_policy(), 60, 8, seed=0)
    fit = rv.NFXP(rv.LinearReward(np.random.default_rng(2).normal(size=(4, 2, 1)))).fit(mdp, demos)
    part = T[[3, 1]][:, :, [3, 1]]
    small = rv.MDP(part / part.sum(axis=2, keepdims=True), 0.9, state_labels=["d", "b"], action_labels=["x", "y"])
    expected = rv.solve(small, fit).policy
    np.testing.assert_array_equal(rv.solve(small, fit.reward).policy, expected)
    np.testing.assert_array_equal(rv.solve(small, fit.reward[...].copy()).policy, expected)
    assert rv.metrics.epic(small, fit.reward_on(small), fit.reward) == pytest.approx(0.0, abs=1e-7)
    with pytest.raises(RevealedError, match="one of d, b"):
        rv.solve(small, fit.table("reward"))  # a frame of the caller's may hold a slip
    other = rv.MDP(T, 0.9, state_labels=list("abce"), action_labels=["x", "y"])
    with pytest.raises(RevealedError, match="'e'"):
        rv.solve(other, fit.reward)


def test_a_policy_of_a_model_whose_terminal_states_go_on_here_has_no_action_there():
    T = np.random.default_rng(1).dirichlet(np.ones(3), size=(3, 2))
    ending, wider = (rv.MDP(T, 0.9, terminal=ends, state_labels=list("abc")) for ends in (["c"], None))
    policy = rv.solve(ending, np.zeros((3, 2))).policy
    for given in (policy, np.asarray(policy), pd.DataFrame(policy, list("abc"), [0, 1])):
        with pytest.raises(RevealedError, match=r"got none .*state 'c'.*is terminal has no action for it.*rv.solve"):
            rv.evaluate(mdp=wider, true_reward=np.zeros((3, 2)), policy=given)
    with pytest.raises(RevealedError, match=r"sum to one; got sum 0\.5"):
        rv.evaluate(mdp=wider, true_reward=np.zeros((3, 2)), policy=np.full((3, 2), 0.25))
