"""The advisor: constructed data in which the answer must be what it is, and what must not change it."""

import json
from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from models import corridor, draw, random_mdp, shuffled
from revealed.advisor.advice import _assumption
from revealed.advisor.data import (
    feature_error,
    make_run,
    make_units,
    measure_precision,
    policy_error,
)
from revealed.advisor.rules import Evidence, decide
from revealed.advisor.trials import Replications, Timed, Trial, affordable, mean_kl, time_methods
from revealed.coverage import ENOUGH, expert_occupancy, measure_coverage
from revealed.environments import obstacleworld
from revealed.estimation import Options
from revealed.mdp import Floats

QUIET: dict[str, Any] = {"progress": False}


def a_run(mdp: rv.MDP, demos: rv.Demonstrations, reward: Any, **options: Any) -> Any:
    return make_run("CCP", reward, Options(**options), mdp, demos)


def features(S: int, A: int, K: int = 2, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(S, A, K))


def a_small_world(n: int = 400, seed: int = 0) -> tuple[rv.MDP, rv.Demonstrations, rv.LinearReward]:
    """Ten states, each visited hundreds of times."""
    mdp = random_mdp(10, 3, 0.9, seed=1, initial=True)
    X = features(10, 3)
    return mdp, draw(mdp, X @ np.array([1.0, -0.5]), n, 15, seed), rv.LinearReward(X, ["a", "b"])


# what the data say


def test_coverage_is_the_share_of_occupancy_where_visits_suffice_by_hand():
    """A corridor that leads from 0 over 1 to the end 2, with a visit too few in 1."""
    mdp = corridor(3, discount=1.0, end=True)
    forward = rv.Demonstrations.from_counts([[0, 2 * ENOUGH], [0, 2 * ENOUGH - 1], [0, 0]], starts=[1, 0, 0])
    found = measure_coverage(a_run(mdp, forward, rv.TabularReward(3)))
    # the walk 0 → 1 → 2 with doubt ½ of so many: each state is left backwards with chance d
    d = [0.5 / (2 * ENOUGH + 1), 0.5 / (2 * ENOUGH)]
    visits = np.linalg.solve((np.eye(2) - np.array([[d[0], 1 - d[0]], [d[1], 0.0]])).T, [1.0, 0.0])
    assert found.share == pytest.approx(visits[0] / visits.sum())
    assert (found.seen, found.unseen, found.choices) == (1.0, 0, 2)
    assert found.by == "estimated occupancy"


def test_occupancy_is_under_frequencies_with_a_visit_of_doubt_whatever_the_first_step():
    mdp, demos, reward = a_small_world(3)
    n, A = demos.counts, mdp.n_actions
    policy = (n + 1.0 / A) / (n.sum(axis=1, keepdims=True) + 1.0)
    by_hand = rv.Chain(mdp, policy).occupancy(mdp.initial)
    for step in ("frequency", "logit"):
        found, by = expert_occupancy(a_run(mdp, demos, reward, first_step=step))
        np.testing.assert_allclose(found, by_hand, rtol=1e-10)
        assert by == "estimated occupancy"


def test_states_without_a_choice_do_not_count():
    T = np.full((3, 2, 3), 1 / 3)
    mdp = rv.MDP(T, discount=0.5, feasible=np.array([[True, True], [True, False], [True, True]]))
    found = measure_coverage(a_run(mdp, rv.Demonstrations.from_counts([[50, 50], [0, 0], [0, 0]]), rv.TabularReward(3)))
    assert (found.unseen, found.choices) == (1, 2)
    assert found.share == 1.0  # plain counts have no starts: what was visited weighs
    assert "no start states" in found.by


def test_a_state_seen_once_does_not_hold_the_expert_for_ever():
    """Two states; in the second somebody stayed, once. With doubt ½ per action of two it is left with chance 1/4."""
    T = np.zeros((2, 2, 2))
    T[0, :, 1] = T[1, 0, 1] = T[1, 1, 0] = 1.0
    mdp = rv.MDP(T, discount=0.9, initial=[1.0, 0.0])
    demos = rv.Demonstrations.from_counts([[10, 10], [1, 0]])
    weight, by = expert_occupancy(a_run(mdp, demos, rv.TabularReward(2)))
    np.testing.assert_allclose(
        weight @ (np.eye(2) - 0.9 * np.array([[0.0, 1.0], [0.25, 0.75]])), [1.0, 0.0], atol=1e-12
    )
    assert by == "estimated occupancy"


def test_the_error_of_one_feature_is_the_binomial_one():
    """A feature that marks one of two actions has the mean p with standard error √(p(1−p)/n); φ̄ is ½, σ is ½."""
    mdp, n, p = shuffled(1), 400, 0.8
    one = rv.LinearReward(np.array([[[0.0], [1.0]]]))
    demos = rv.Demonstrations.from_trajectories([([0], [int(i < p * n)]) for i in range(n)], 1, 2)
    run = a_run(mdp, demos, one)
    units = make_units(run.demos, 0)
    tables = [units.counts(units.draw(0, r)) for r in range(1000)]
    expected = np.sqrt(p * (1 - p) / n) / (p - 0.5)
    assert feature_error(run, tables) == pytest.approx(expected, rel=0.1)
    # the policy is the pair (p, 1 − p): twice the same variance, beside its length
    assert policy_error(run, tables) == pytest.approx(np.sqrt(2 * p * (1 - p) / n / (p**2 + (1 - p) ** 2)), rel=0.1)


def test_neither_units_nor_a_constant_change_the_error_of_features():
    mdp, demos, reward = a_small_world(50)
    other = rv.LinearReward(features(10, 3) * np.array([100.0, 1e-3]) + 7.0)
    errors = [measure_precision(a_run(mdp, demos, r), make_units(demos, 0), 20, 0).features for r in (reward, other)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)


def test_one_hot_features_need_more_data_than_a_few_that_many_states_share():
    """The paper's second scenario: what a weight per state needs to know is how often each state is visited."""
    world = obstacleworld(8, seed=3)
    demos = world.demonstrate(10, 20, seed=3)
    found = [
        measure_precision(a_run(world.mdp, demos, reward), make_units(demos, 0), 30, 0)
        for reward in (world.reward_model(), rv.TabularReward(world.mdp.n_states))
    ]
    assert 2.0 * found[0].features < found[1].features
    assert found[0].policy == found[1].policy  # which knows nothing of features


def test_weights_of_states_are_one_hot_features():
    mdp, demos, _ = a_small_world(30)
    pairs = [rv.TabularReward(10), rv.LinearReward(np.eye(10))]
    errors = [measure_precision(a_run(mdp, demos, r), make_units(demos, 0), 20, 0).features for r in pairs]
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)


def test_a_policy_that_was_given_has_no_error():
    mdp, demos, reward = a_small_world(20)
    assert np.isnan(policy_error(a_run(mdp, demos, reward, first_step=np.full((10, 3), 1 / 3)), [demos.counts]))


def test_the_decisions_of_one_agent_are_split_without_loss():
    counts = np.random.default_rng(0).integers(0, 30, size=(6, 3)).astype(float)
    units = make_units(rv.Demonstrations.from_counts(counts), seed=4)
    assert units.kind == "decisions"
    np.testing.assert_array_equal(units.counts(np.ones(units.n)), counts)
    np.testing.assert_array_equal(units.sample(np.ones(units.n)).counts, counts)


def test_a_draw_of_agents_is_the_same_set_of_agents_however_they_stand():
    _, demos, _ = a_small_world(30)
    mixed = demos.subset(np.random.default_rng(1).permutation(30))
    ours, theirs = make_units(demos, 0), make_units(mixed, 0)
    w = ours.draw(0, 3)
    np.testing.assert_array_equal(ours.counts(w), theirs.counts(w))
    np.testing.assert_array_equal(ours.sample(w).counts, ours.counts(w))
    np.testing.assert_array_equal(theirs.sample(w).counts, ours.counts(w))


# what refits say


def some_replications(**nll: Floats) -> Replications:
    """Three units of 10, 20 and 30 decisions, each left out once in every replication but the first."""
    sizes = np.array([10.0, 20.0, 30.0])
    tables = {m: np.where(np.eye(4, 3, -1) > 0, np.nan, -np.asarray(v) * sizes) for m, v in nll.items()}
    return Replications({m: np.zeros((4, 2)) for m in nll}, tables, sizes, 0)


def test_differences_are_means_per_decision_with_errors_over_units():
    found = some_replications(CCP=np.array([1.0, 1.5, 2.0]), NFXP=np.array([0.5, 1.0, 1.0]))
    assert found.nll("NFXP") == pytest.approx((5 + 20 + 30) / 60)
    gap, error = found.difference("CCP", "NFXP")
    g, n = np.array([5.0, 10.0, 30.0]), np.array([10.0, 20.0, 30.0])
    assert gap == pytest.approx(45 / 60)
    assert error == pytest.approx(np.sqrt(np.sum((g - 0.75 * n) ** 2) * 3 / 2) / 60)
    assert found.best == "NFXP"
    assert not found.is_close("CCP")
    assert found.difference("NFXP", "CCP")[0] == pytest.approx(-gap)


def test_kl_between_fits_is_weighted_by_visits():
    mdp, demos, reward = a_small_world(30)
    first, second = rv.NFXP(reward).fit(mdp, demos), rv.CCP(reward).fit(mdp, demos)
    w = demos.counts.sum(axis=1)
    by_hand = sum(w[s] * np.sum(first.policy[s] * np.log(first.policy[s] / second.policy[s])) for s in range(10))
    assert mean_kl(w, first, second) == pytest.approx(by_hand / w.sum())
    assert mean_kl(w, first, first) == 0.0


def test_the_dearest_methods_are_not_refitted_first():
    mdp, demos, reward = a_small_world(30)
    fit = rv.CCP(reward).fit(mdp, demos)
    seconds = {"CCP": 0.1, "NPL": 1.0, "NFXP": 9.0}
    trials = {m: Trial(m, s, rv.CCP(reward), f, f) for m, s in seconds.items() if (f := replace(fit, seconds=s))}
    assert affordable(trials, 24, 1000.0, 1)[1] == 24
    kept, number = affordable(trials, 24, 20.0, 1)
    assert (sorted(kept), number) == (["CCP", "NPL"], 18)
    assert affordable(trials, 24, 1.0, 1) == ({}, 0)


def test_expected_seconds_are_setups_and_iterations():
    mdp, demos, reward = a_small_world(30)
    costs = replace(time_methods(a_run(mdp, demos, reward), 10), given=Timed(2.0, 0.5), own=Timed(3.0, 4.0))
    assert costs.optimizer == "newton"
    assert costs.expected("CCP", 6) == 2.0 + 6 * 0.5
    assert costs.expected("NPL", 6) == 10 * 2.0 + 3 * 6 * 0.5
    assert costs.expected("NFXP", 6) == 3.0 + 6 * 4.0


# the rules, by hand


def evidence(
    seconds: tuple[float, float, float], share: float, ratio: float, refits: Replications, kind: str = "agents"
) -> Evidence:
    mdp, demos, reward = a_small_world(30)
    run = a_run(mdp, demos, reward)
    fits = {"CCP": rv.CCP(reward), "NPL": rv.NPL(reward), "NFXP": rv.NFXP(reward)}
    trials = {}
    for (name, estimator), s in zip(fits.items(), seconds, strict=True):
        fit = replace(estimator.fit(mdp, demos), seconds=s)
        trials[name] = Trial(name, s, estimator, fit, fit)
    coverage = replace(measure_coverage(run), share=share)
    precision = replace(measure_precision(run, make_units(demos, 0), 2, 0), features=ratio, policy=1.0)
    refits = replace(refits, theta={m: np.random.default_rng(0).normal(size=(4, 2)) for m in refits.theta})
    return Evidence(run, coverage, precision, trials, refits, kind, 30.0)


SAME = np.array([1.0, 1.0, 1.0])


def told(ccp: Any, npl: Any = SAME, nfxp: Any = SAME) -> Replications:
    return some_replications(CCP=np.asarray(ccp), NPL=np.asarray(npl), NFXP=np.asarray(nfxp))


@pytest.mark.parametrize(
    ("seconds", "share", "ratio", "ccp", "expected"),
    [
        ((1, 3, 9), 0.95, 0.3, SAME, "CCP"),  # rule 1: alike, and cheap
        ((1, 3, 1.5), 0.95, 0.3, SAME, "NFXP"),  # … but for a saving
        ((0.2, 3, 0.8), 0.95, 0.3, SAME, "CCP"),  # … of half a second
        ((0.2, 3, 0.6), 0.95, 0.3, SAME, "NFXP"),  # … and no less
        ((3, 0.2, 1.5), 0.95, 0.3, SAME, "NPL"),  # … of a second with NPL
        ((3, 0.2, 0.9), 0.95, 0.3, SAME, "NFXP"),
        ((0.4, 0.2, 1.0), 0.95, 0.3, SAME, "CCP"),  # … the cheapest of those that save enough
        ((1, 3, 9), 0.95, 0.3, SAME + 0.5, "NPL"),  # rule 2: worse, so the cheaper of the others
        ((1, 8, 9), 0.95, 0.3, SAME + 0.5, "NFXP"),
        ((1, 3, 9), 0.50, 0.3, SAME + [0.5, -0.4, 0.2], "NFXP"),  # rule 3: undecided, features known
        ((1, 3, 9), 0.50, 0.8, SAME + [0.5, -0.4, 0.2], "CCP"),  # … no more precise than the policy
        ((1, 3, 9), 0.05, 0.8, SAME + [0.5, -0.4, 0.2], "NFXP"),  # … and the policy is guesswork
        ((1, 3, 9), 0.95, 0.3, SAME + [0.5, -0.4, 0.2], "CCP"),  # … the policy is known
    ],
)
def test_each_rule(seconds, share, ratio, ccp, expected):
    assert decide(evidence(seconds, share, ratio, told(ccp)))[0] == expected


@pytest.mark.parametrize("load", [(1, 1, 1), (1, 1, 4), (1, 4, 1), (6, 1, 1), (6, 4, 4)])
def test_milliseconds_do_not_decide(load):
    """A machine under load may take several times as long over any of the fits, and the advice stays what it is."""
    seconds = tuple(s * times for s, times in zip((0.005, 0.03, 0.08), load, strict=True))
    for ccp in (SAME, SAME + [0.5, -0.4, 0.2]):
        assert decide(evidence(seconds, 0.95, 0.3, told(ccp)))[0] == "NFXP"


def test_what_one_agent_left_out_tells_little_where_it_has_not_been():
    """Rule 4: the same predictions count with much coverage, and the paper decides with little."""
    found = evidence((1, 3, 9), 0.95, 0.3, told(SAME), "decisions")
    assert decide(found)[0] == "CCP"
    assert decide(replace(found, coverage=replace(found.coverage, share=0.1)))[0] == "NFXP"


@pytest.mark.parametrize(("seen", "expected"), [(0.95, "CCP"), (0.5, "NFXP")])
def test_agreement_where_nobody_has_been_tells_nothing(seen, expected):
    found = evidence((1, 3, 9), 0.05, 0.8, told(SAME))
    found = replace(found, coverage=replace(found.coverage, seen=seen), refits=replace(found.refits, theta={}))
    same = {name: replace(trial, best=found.trials["NFXP"].best) for name, trial in found.trials.items()}
    assert decide(replace(found, trials=same))[0] == expected


def test_a_method_with_other_parameters_is_not_alike():
    found = evidence((1, 3, 9), 0.95, 0.3, told(SAME))
    tight = {m: 1e-3 * draws for m, draws in found.refits.theta.items()}
    apart = replace(found, refits=replace(found.refits, theta=tight))
    assert found.distance("CCP") < 1.0 < apart.distance("CCP")
    method, reason = decide(apart)
    assert method == "NPL"
    assert "as well as CCP, whose parameters are up to" in reason


# whole advice


def test_well_covered_experts_need_no_fixed_point():
    """With every state visited hundreds of times CCP agrees with the others, in predictions and parameters."""
    mdp, demos, reward = a_small_world(1500)
    advice = rv.advise(mdp, demos, reward, **QUIET)
    found = advice.table.set_index("quantity")["value"]
    assert found["occupancy in well-visited states"] == 1.0
    assert found["CCP: worse than the best by"] < 0.001
    assert found["CCP: parameters, distance"] < 1.0
    assert found["NPL: same parameters, p"] == 1.0  # settled: the same estimator
    assert {m: fit.status.code for m, fit in advice.fits.items()} == dict.fromkeys(("CCP", "NPL", "NFXP"), "converged")


def test_few_demonstrations_of_many_states_ask_for_the_fixed_point():
    world = obstacleworld(16, seed=100)
    advice = rv.advise(world.mdp, world.demonstrate(10, 30, seed=100), world.reward_model(), **QUIET)
    assert advice.method == "NFXP"
    assert "better than CCP" in advice.paragraph
    assert advice.assumption in advice.paragraph
    fresh = world.demonstrate(200, 30, seed=7)
    nll = {m: rv.metrics.nll(fit.policy, fresh) for m, fit in advice.fits.items()}
    assert nll["NFXP"] < nll["CCP"] - 0.1


def test_directions_that_choices_cannot_see_are_named():
    world = obstacleworld(16, seed=100)
    advice = rv.advise(world.mdp, world.demonstrate(10, 30, seed=100), world.reward_model(), reps=6, **QUIET)
    assert "`path` + `obstacle` + `goal`" in advice.paragraph
    identified = advice.table.set_index("quantity")["value"]["NFXP: identification"]
    assert identified.startswith("rank 2 of 3")


def separated() -> tuple[rv.MDP, rv.Demonstrations, rv.LinearReward]:
    """A feature of one action that everybody takes: its weight runs away."""
    X = np.zeros((4, 2, 1))
    X[:, 1] = 1.0
    demos = rv.Demonstrations.from_trajectories([([0, 1, 2, 3], [1, 1, 1, 1])] * 6, 4, 2)
    return shuffled(4), demos, rv.LinearReward(X, ["take"])


def test_weights_that_run_away_are_told_and_held_by_a_penalty():
    mdp, demos, reward = separated()
    advice = rv.advise(mdp, demos, reward, **QUIET)
    assert rv.NFXP(reward).fit(mdp, demos).status.code == "separated"
    assert "diverge (separated); l2=0.001 is set" in advice.paragraph
    assert advice.options == {"l2": 1e-3}
    assert advice.estimator().fit(mdp, demos).status.code == "converged"


def test_a_penalty_that_was_asked_for_stays():
    mdp, demos, reward = separated()
    advice = rv.advise(mdp, demos, reward, l2=0.5, **QUIET)
    assert advice.options["l2"] == 0.5
    assert "diverge" not in advice.paragraph


def without_seconds(advice: rv.Advice) -> list[tuple[str, Any]]:
    return [(q.quantity, q.value) for q in advice.quantities if "seconds" not in q.quantity]


def test_the_same_seed_gives_the_same_advice_and_another_one_other_resamples():
    mdp, demos, reward = a_small_world(40)
    one, two, other = (rv.advise(mdp, demos, reward, seed=s, reps=6, **QUIET) for s in (0, 0, 1))
    np.testing.assert_equal(without_seconds(one), without_seconds(two))
    assert one.table["value"][3] != other.table["value"][3]


def test_workers_do_not_change_what_comes_out():
    mdp, demos, reward = a_small_world(40)
    one, two = (rv.advise(mdp, demos, reward, reps=6, jobs=jobs, **QUIET) for jobs in (1, 2))
    np.testing.assert_equal(without_seconds(one), without_seconds(two))


def test_shuffled_and_renamed_agents_get_the_same_advice():
    mdp, demos, reward = a_small_world(40)
    mixed = demos.subset(np.random.default_rng(5).permutation(40))
    mixed = replace(mixed, ids=tuple(f"agent {k}" for k in range(40)))
    one, two = (rv.advise(mdp, d, reward, reps=6, **QUIET) for d in (demos, mixed))
    for (name, a), (_, b) in zip(without_seconds(one), without_seconds(two), strict=True):
        if isinstance(a, float):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9, err_msg=name)
        elif "identification" not in name:
            assert a == b, name


def test_labels_in_another_order_are_the_same_states():
    mdp, demos, reward = a_small_world(40)
    names = tuple("abcdefghij")
    mdp = rv.MDP(mdp.transitions.matrix, discount=0.9, initial=mdp.initial, state_labels=names)
    frame = demos.to_frame()
    frame["state"] = [names[s] for s in frame["state"]]
    advice = []
    for order in (names, names[::-1]):
        data = rv.Demonstrations.from_frame(
            frame, id="id", time="time", state="state", action="action", states=order, n_actions=3
        )
        advice.append(rv.advise(mdp, data, reward, reps=6, **QUIET))
    one, two = map(without_seconds, advice)
    assert [name for name, _ in one] == [name for name, _ in two]
    for (name, a), (_, b) in zip(one, two, strict=True):
        if isinstance(a, float):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9, err_msg=name)


def test_plain_counts_are_resampled_by_decisions():
    mdp, demos, reward = a_small_world(300)
    advice = rv.advise(mdp, rv.Demonstrations.from_counts(demos.counts), reward, **QUIET)
    assert "There is one agent: its decisions were resampled" in advice.paragraph
    assert advice.table.set_index("quantity")["value"]["CCP: worse than the best by"] < 0.01


def test_a_single_decision_cannot_be_resampled():
    mdp, _, reward = a_small_world(2)
    counts = np.zeros((10, 3))
    counts[0, 0] = 1
    advice = rv.advise(mdp, rv.Demonstrations.from_counts(counts), reward, **QUIET)
    assert "Nothing was refitted: there is only one decision to resample." in advice.paragraph


def test_without_a_budget_nothing_is_fitted_and_the_data_decide():
    mdp, demos, reward = a_small_world(300)
    advice = rv.advise(mdp, demos, reward, budget=0, **QUIET)
    assert advice.fits == {}
    assert "100% of the expert's time is spent in well-visited states" in advice.paragraph
    assert "Not run within a budget of 0 s: CCP, NPL and NFXP" in advice.paragraph
    assert (advice.table.set_index("quantity")["value"][["CCP: expected seconds", "NFXP: expected seconds"]] > 0).all()


@pytest.mark.parametrize("weighting", ["sample", "occupancy"])
def test_undiscounted_masked_problems_that_end(weighting):
    mdp = random_mdp(8, 3, 1.0, seed=2, terminal=1, masked=True, initial=False)
    X = features(8, 3) - 2.0
    demos = draw(mdp, np.where(mdp.feasible, X @ np.array([0.5, 0.5]), 0.0), 60, 40, 0)
    advice = rv.advise(mdp, demos, rv.LinearReward(X), reps=6, weighting=weighting, **QUIET)
    fit = advice.estimator().fit(mdp, demos)
    assert fit.options["weighting"] == weighting
    assert fit.method == advice.method
    assert np.isfinite(rv.metrics.nll(fit.policy, demos))


def test_a_policy_that_never_ends_is_smoothed():
    """At discount 1 somebody who was only seen going back and forth has a first step without an end."""
    mdp = corridor(4, discount=1.0, end=True)
    back = rv.Demonstrations.from_trajectories([([0, 1, 0, 1, 0], [1, 0, 1, 0, 1])] * 5, 4, 2)
    reward = rv.LinearReward(np.array([[-1.0], [-1.5], [-1.0], [0.0]]))
    advice = rv.advise(mdp, back, reward, reps=6, **QUIET)
    assert advice.options["first_step"] == "smoothed"
    assert ('first_step="smoothed" is set' in advice.paragraph) is (advice.method != "NFXP")
    own = rv.advise(mdp, back, reward, reps=6, first_step=mdp.uniform_policy(), **QUIET)  # an array has no name
    assert own.options["first_step"].shape == (4, 2)


def test_the_assumption_tells_what_shapes_the_first_step():
    mdp, demos, reward = a_small_world(40)
    run = a_run(mdp, demos, reward, first_step=rv.first_step.Logit(l2=0.5))
    found: Any = SimpleNamespace(run=run, coverage=SimpleNamespace(share=0.9))
    assert "CCP assumes that π̂_E (logit, l2=0.5, standardised) is the expert's policy" in _assumption(found, "CCP")


@pytest.mark.parametrize("reward", ["tabular", "network"])
def test_other_rewards(reward):
    mdp, demos, _ = a_small_world(40)
    model = rv.TabularReward(10) if reward == "tabular" else rv.NeuralReward(np.eye(10), (4,), seed=0)
    options: dict[str, Any] = {"l2": 1e-3, "max_iter": 5, "updates": 2}
    advice = rv.advise(mdp, demos, model, reps=2, **options, **QUIET)
    found = advice.table.set_index("quantity")["value"]
    assert 0.0 < found["error of feature counts"] < np.inf
    assert np.isnan(found["CCP: same parameters, p"])
    assert advice.estimator().options.max_iter == 5


def test_the_number_of_updates_is_npls_alone():
    mdp, demos, reward = a_small_world(40)
    advice = rv.advise(mdp, demos, reward, reps=6, updates=25, **QUIET)
    npl = replace(advice, method="NPL").estimator()
    assert isinstance(npl, rv.NPL)
    assert npl.updates == 25
    assert isinstance(replace(advice, method="CCP").estimator(), rv.CCP)


def test_advice_prints_and_travels():
    mdp, demos, reward = a_small_world(40)
    advice = rv.advise(mdp, demos, reward, reps=6, **QUIET)
    assert f"Use {advice.method}." in str(advice)
    assert advice.method in advice.to_html()
    assert "tabular" in advice.to_latex()
    back = json.loads(json.dumps(advice.to_dict()))
    assert back["method"] == advice.method
    assert [q["quantity"] for q in back["quantities"]] == list(advice.table["quantity"])
    assert all(list(q) == ["quantity", "value", "meaning"] and q["meaning"] for q in back["quantities"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reps": 1}, "`reps`: expected a whole number, at least 2; got 1"),
        ({"budget": -1}, "`budget`: expected a number of seconds >= 0; got -1"),
        ({"budget": "long"}, "`budget`: expected a number of seconds >= 0; got 'long'"),
        ({"updates": 0}, "`updates`: expected a whole number, at least 1; got 0"),
        ({"seed": None}, "`seed`: expected a whole number >= 0; got None"),
        ({"weigthing": "sample"}, "Did you mean weighting?"),
    ],
)
def test_bad_arguments(options, message):
    mdp, demos, reward = a_small_world(10)
    with pytest.raises(rv.errors.InvalidInput) as problem:
        rv.advise(mdp, demos, reward, **options)
    assert message in str(problem.value)


def test_swapped_arguments_and_arrays_for_rewards_are_told():
    mdp, demos, reward = a_small_world(10)
    with pytest.raises(rv.errors.InvalidInput, match="swapped"):
        rv.advise(demos, mdp, reward)  # pyright: ignore[reportArgumentType]
    with pytest.raises(rv.errors.InvalidReward, match="LinearReward"):
        rv.advise(mdp, demos, features(10, 3))  # pyright: ignore[reportArgumentType]


def test_arguments_of_advise_in_any_other_order_are_called_swapped():
    demos = rv.Demonstrations.from_trajectories([([0, 1, 2], [0, 1])], n_states=3, n_actions=2)
    right = (rv.MDP(np.full((3, 2, 3), 1 / 3), 0.9), demos, rv.TabularReward(3))
    for given in permutations(right):
        if given != right:
            with pytest.raises(rv.errors.InvalidInput, match=r"swapped: advise\(mdp, demos, reward\)"):
                rv.advise(*given)  # pyright: ignore[reportArgumentType]
