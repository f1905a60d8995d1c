"""Likelihoods and value differences against dense computations, by hand, and in the limit (theory D1–D3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import revealed as rv
from models import corridor, counts, draw, loop, random_mdp, random_policy, random_reward
from oracle import Dense, Floats
from revealed.errors import (
    InvalidDemonstrations,
    InvalidDistribution,
    InvalidInput,
    InvalidOption,
    InvalidReward,
    RevealedError,
    ValueDoesNotExist,
)
from revealed.metrics import (
    Truth,
    entropy,
    epic,
    evaluate,
    evd,
    excess_nll,
    expected_return,
    nll,
    policy_value,
    population_nll,
    starc,
    stochastic_evd,
)
from zoo import KINDS, Problem, make_problem, problem, problems, seeds

HALF = np.array([[0.5, 0.5], [0.25, 0.75]])

# ------------------------------------------------------------------------------------------------------ likelihood


def test_nll_by_hand():
    """Three decisions of two agents: −(log ½ + log ½ + log ¾), per decision and per trajectory (D1)."""
    demos = rv.Demonstrations.from_trajectories([([0, 0], [0, 1]), ([1], [1])], 2, 2)
    total = 2.0 * np.log(2.0) + np.log(4.0 / 3.0)
    assert nll(HALF, demos) == pytest.approx(total / 3.0, rel=1e-15)
    assert nll(HALF, demos, per="trajectory") == pytest.approx(total / 2.0, rel=1e-15)
    assert nll(HALF, counts([[3.0, 3.0], [0.0, 3.0]])) == pytest.approx(total / 3.0, rel=1e-15)


def test_one_impossible_decision_makes_the_nll_infinite_and_an_unseen_one_does_nothing():
    policy = np.array([[1.0, 0.0], [0.25, 0.75]])
    assert nll(policy, counts([[5.0, 1e-9], [0.0, 0.0]])) == np.inf
    assert nll(policy, counts([[5.0, 0.0], [0.0, 0.0]])) == 0.0


def test_the_nll_of_a_fit_is_its_log_likelihood(animal):
    demos = animal.simulate(rv.solve(animal.mdp, animal.reward()).policy, 200, seed=1)
    fit = rv.NFXP(rv.LinearReward(animal.pair_features()), l2=1e-3, start=animal.theta()).fit(animal.mdp, demos)
    seen = demos.lift(animal.mdp)
    assert nll(fit, seen) == pytest.approx(-fit.llf / fit.nobs, rel=1e-12)
    assert nll(fit.policy, seen) == pytest.approx(nll(fit, seen), rel=1e-10)
    assert nll(fit, seen, per="trajectory") == pytest.approx(-fit.llf / demos.starts.sum(), rel=1e-12)


def test_log_policies_do_not_underflow():
    mdp = random_mdp(6, 3, seed=1)
    solution = rv.solve(mdp, 1_000.0 * random_reward(mdp, 1))
    s, a = (int(i) for i in np.argwhere(solution.policy == 0.0)[0])
    seen = np.zeros((6, 3))
    seen[s, a] = 2.0
    assert nll(solution, counts(seen)) == pytest.approx(-solution.log_policy[s, a])
    assert 700.0 < nll(solution, counts(seen)) < 1e6
    assert nll(solution.policy, counts(seen)) == np.inf
    expert = random_policy(mdp)
    assert np.isfinite(population_nll(mdp, expert, solution))
    assert population_nll(mdp, expert, solution.policy) == np.inf
    assert excess_nll(mdp, expert, solution) == pytest.approx(
        population_nll(mdp, expert, solution) - entropy(mdp, expert), rel=1e-12
    )


def test_the_experts_nll_is_its_entropy_over_the_visits_within_five_standard_errors(animal):
    """Given the states, −log π(a|s) has the entropy as its mean, and a variance that is known too."""
    policy = animal.policy(1)
    demos = rv.simulate(animal.mdp, policy, 3_000, 20, seed=3)
    surprise = -np.log(np.where(policy > 0.0, policy, 1.0))
    H = (policy * surprise).sum(axis=1)
    variance = (policy * surprise**2).sum(axis=1) - H**2
    visits = demos.counts.sum(axis=1)
    error = np.sqrt(visits @ variance) / demos.n_decisions
    assert 0.0 < error < 0.02
    assert abs(nll(policy, demos) - visits @ H / demos.n_decisions) <= 5.0 * error


@pytest.mark.parametrize("kind", ["undiscounted", "unrolled"])
def test_where_trajectories_end_the_nll_of_many_is_the_population_nll(kind):
    """γ = 1: the shares of the visits are those of the occupancy. A ratio of means, hence its delta-method error."""
    animal = problem(kind)
    expert, other = animal.policy(1), animal.policy(2)
    demos = rv.simulate(animal.mdp, expert, 4_000, 1_000, seed=4)
    surprise = -np.log(np.where(other > 0.0, other, 1.0)).reshape(-1)
    totals, lengths = demos.by_agent @ surprise, np.asarray(demos.by_agent.sum(axis=1)).reshape(-1)
    expected = population_nll(animal.mdp, expert, other)
    error = (totals - expected * lengths).std() / lengths.mean() / np.sqrt(demos.n_agents)
    assert abs(nll(other, demos) - expected) <= 5.0 * error
    assert error < 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_discounted_visits_of_many_are_the_occupancy_within_five_standard_errors(kind):
    """p₀ᵀ Σ_{t<L} (γT^π)^t, which is Occ less its part after L, γ^L p₀ᵀ(T^π)^L (I − γT^π)⁻¹ (C2)."""
    animal, n, L = problem(kind), 5_000, 6
    mdp, oracle, policy = animal.mdp, animal.dense, animal.policy(2)
    expected, now = np.zeros(mdp.n_states), oracle.initial
    for _ in range(L):
        expected, now = expected + now, oracle.gamma * now @ oracle.mixed(policy)
    whole = rv.Chain(mdp, policy).occupancy()
    np.testing.assert_allclose(expected, whole - oracle.occupancy(policy, now), atol=1e-12 * whole.max())

    steps = rv.simulate(mdp, policy, n, L, seed=5).steps
    assert steps is not None
    each = np.zeros((n, mdp.n_states))
    np.add.at(each, (steps.agent, steps.state), mdp.discount**steps.time)
    error = each.std(axis=0) / np.sqrt(n)
    going = ~mdp.terminal
    assert (np.abs(each.mean(axis=0) - expected) <= 5.0 * error + 1e-12)[going].all()
    assert (error[going & (expected > 0.0)] > 0.0).all()


# ------------------------------------------------------------------------------------------------- population NLL


def dense_weights(oracle: Dense, expert: Floats, initial: Floats) -> Floats:
    rho = oracle.occupancy(expert, initial)[:, None] * expert
    return rho / rho.sum()


@given(problems(), seeds)
def test_population_nll_is_entropy_plus_what_the_policy_is_off(animal, seed):
    mdp, expert, other = animal.mdp, animal.policy(seed), animal.policy(seed + 1)
    weights = dense_weights(animal.dense, expert, animal.dense.initial)
    log = [np.log(np.where(p > 0.0, p, 1.0)) for p in (expert, other)]
    scale = 1e-11 * (1.0 + np.abs(log).max())
    assert population_nll(mdp, expert, other) == pytest.approx(-(weights * log[1]).sum(), abs=scale)
    assert entropy(mdp, expert) == pytest.approx(-(weights * log[0]).sum(), abs=scale)
    excess = excess_nll(mdp, expert, other)
    assert excess >= 0.0
    assert excess == pytest.approx((weights * (log[0] - log[1])).sum(), abs=scale)
    assert excess == pytest.approx(population_nll(mdp, expert, other) - entropy(mdp, expert), abs=scale)
    assert excess_nll(mdp, expert, expert) == 0.0


def test_excess_keeps_its_digits_near_the_expert():
    """To second order it is half the variance of the relative error, which a difference of NLLs would drown."""
    mdp = random_mdp(8, 3, masked=True, seed=3)
    expert = random_policy(mdp, 0)
    tilt = np.random.default_rng(0).normal(size=expert.shape) * mdp.feasible
    tilt -= (expert * tilt).sum(axis=1, keepdims=True)
    weights = rv.Chain(mdp, expert).occupancy(np.full(8, 1 / 8))[:, None] * expert
    for size in (1e-4, 1e-7):
        half = 0.5 * size**2 * (weights * tilt**2).sum() / weights.sum()
        assert excess_nll(mdp, expert, expert * (1.0 + size * tilt)) == pytest.approx(half, rel=1e-3)


def test_a_policy_that_never_does_what_the_expert_does_is_infinitely_off():
    mdp = corridor(3)
    expert, right = np.full((3, 2), 0.5), np.tile([0.0, 1.0], (3, 1))
    assert population_nll(mdp, expert, right) == np.inf
    assert excess_nll(mdp, expert, right) == np.inf
    assert population_nll(mdp, right, expert) == pytest.approx(np.log(2.0))
    assert excess_nll(mdp, right, expert) == pytest.approx(np.log(2.0))
    assert entropy(mdp, right) == 0.0
    assert population_nll(mdp, right, right) == 0.0
    never_there = np.array([[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])  # from state 2, going right, state 0 is not met
    assert excess_nll(mdp, right, never_there, initial=[0.0, 0.0, 1.0]) == 0.0


def test_the_start_distribution_matters_and_may_be_given():
    mdp, start = random_mdp(8, 3, terminal=2, masked=True), np.eye(8)[2]
    expert, other = random_policy(mdp, 0), random_policy(mdp, 1)
    there = population_nll(mdp.replace(initial=start), expert, other)
    assert population_nll(mdp, expert, other, start) == there
    assert population_nll(mdp, expert, other) != pytest.approx(there, rel=1e-3)
    going = ~mdp.terminal / 6.0
    assert population_nll(mdp, expert, other) == population_nll(mdp, expert, other, going)


def test_solutions_and_fits_serve_as_policies(animal):
    mdp = animal.mdp
    soft, hard = rv.solve(mdp, animal.reward()), rv.solve_hard(mdp, animal.reward())
    other = animal.policy(3)
    assert population_nll(mdp, soft, other) == population_nll(mdp, soft.policy, other)
    assert population_nll(mdp, other, soft) == pytest.approx(population_nll(mdp, other, soft.policy), rel=1e-12)
    assert excess_nll(mdp, soft, soft) <= 1e-25
    assert stochastic_evd(mdp, animal.reward(), soft) == stochastic_evd(mdp, animal.reward(), soft.policy)
    assert expected_return(mdp, animal.reward(), hard) == expected_return(mdp, animal.reward(), hard.policy)
    one = np.zeros(mdp.feasible.shape)
    one[0] = hard.policy[0] > 0.0
    assert nll(hard, counts(one)) == pytest.approx(np.log(one.sum()))


# ---------------------------------------------------------------------------------------------- value differences


def dense_return(oracle: Dense, r: Floats, policy: Floats, initial: Floats) -> float:
    payoff = (policy * np.where(oracle.feasible, r, 0.0)).sum(axis=1)
    return float(initial @ np.linalg.solve(np.eye(len(r)) - oracle.gamma * oracle.mixed(policy), payoff))


def dense_greedy(oracle: Dense, r: Floats) -> Floats:
    """By value iteration; ties are split evenly."""
    Q = oracle.q(r, oracle.hard_value(r))
    best = (Q >= Q.max(axis=1, keepdims=True) - 1e-9 * (1.0 + np.abs(Q[oracle.feasible]).max())) & oracle.feasible
    return best / np.maximum(best.sum(axis=1, keepdims=True), 1)


@given(problems(), seeds)
def test_values_without_entropy_are_dense_solves(animal, seed):
    r, policy = animal.reward(seed), animal.policy(seed)
    expected = dense_return(animal.dense, r, policy, animal.dense.initial)
    assert expected_return(animal.mdp, r, policy) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    from_each = [expected_return(animal.mdp, r, policy, p) for p in np.eye(animal.mdp.n_states)]
    np.testing.assert_allclose(policy_value(animal.mdp, r, policy), from_each, rtol=1e-9, atol=1e-12)


@given(problems(), seeds)
def test_evd_is_the_loss_of_the_other_rewards_optimal_policy(animal, seed):
    mdp, oracle = animal.mdp, animal.dense
    truth, other, policy = animal.reward(seed), animal.reward(seed + 1), animal.policy(seed)
    start = oracle.initial
    best = float(start @ oracle.hard_value(truth))
    scale = 1e-8 * (1.0 + abs(best))
    loss = evd(mdp, truth, other)
    assert loss >= 0.0
    assert loss == pytest.approx(best - dense_return(oracle, truth, dense_greedy(oracle, other), start), abs=scale)
    stochastic = stochastic_evd(mdp, truth, policy)
    assert stochastic >= 0.0
    assert stochastic == pytest.approx(best - dense_return(oracle, truth, policy, start), abs=scale)
    assert Truth(mdp, truth).best == pytest.approx(best, abs=scale)


@given(problems(), st.floats(1e-3, 1e3), seeds)
def test_nothing_is_lost_at_the_truth_and_at_its_multiples(animal, scale, seed):
    mdp, truth = animal.mdp, animal.reward(seed)
    assert evd(mdp, truth, truth) == 0.0
    assert evd(mdp, truth, scale * truth) <= 1e-9 * (1.0 + abs(Truth(mdp, truth).best))
    hard = rv.solve_hard(mdp, truth)
    assert stochastic_evd(mdp, truth, hard.policy) == 0.0


def test_the_soft_expert_does_not_reach_the_optimum(animal):
    """(D3): exploring costs; the floor fades where rewards are large."""
    mdp, truth = animal.mdp, animal.reward()
    floor = stochastic_evd(mdp, truth, rv.solve(mdp, truth))
    assert floor > 0.01
    assert evd(mdp, truth, truth) == 0.0
    assert stochastic_evd(mdp, 1e3 * truth, rv.solve(mdp, 1e3 * truth)) / 1e3 < 0.2 * floor


def tied(order: list[int], true_left: float = 1.0) -> tuple[rv.MDP, Floats, Floats]:
    """Left, right and stay on five states, from the middle; the found reward likes both ends alike."""
    n = 5
    T = np.zeros((n, 3, n))
    here = np.arange(n)
    T[here, 0, np.maximum(here - 1, 0)] = T[here, 1, np.minimum(here + 1, n - 1)] = T[here, 2, here] = 1.0
    truth, found = np.array([true_left, 0.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    return rv.MDP(T[:, order], discount=0.5, initial=np.eye(n)[2]), truth, found


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1], [0, 2, 1]])
def test_the_order_of_actions_does_not_matter_where_actions_tie(order):
    """Half of the walkers go left: by hand, the best is γ²/(1−γ) = ½, and half of it is lost."""
    mdp, truth, found = tied(order)
    assert rv.solve_hard(mdp, found).policy[2].max() == 0.5
    assert evd(mdp, truth, found) == pytest.approx(0.25, abs=1e-14)


@given(problems(), seeds)
def test_permuting_the_actions_permutes_nothing_that_is_measured(animal, seed):
    """Rewards of −2 and −1 alone and a twin of every action: exact ties everywhere."""
    assume(animal.horizon is None)
    twins = np.tile(np.arange(animal.base.shape[1]), 2)
    order = np.random.default_rng(seed).permutation(twins.size)
    rng = np.random.default_rng([seed, 8])
    truth, found = rng.integers(-3, -1, (2, *animal.base.shape)).astype(float)
    truth, found = np.column_stack([truth, truth - 1.0]), np.column_stack([found, found])
    base = animal.base
    losses = []
    for columns in (np.arange(twins.size), order):
        T, allowed = base.raw[:, twins[columns]], base.allowed[:, twins[columns]]
        mdp = rv.MDP(T, base.gamma, base.initial, allowed, base.terminal)
        losses.append(evd(mdp, truth[:, columns], found[:, columns]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-9, abs=1e-9)
    assert losses[0] > 0.0


def test_returns_are_taken_from_the_start_that_is_given():
    mdp = random_mdp(8, 3, masked=True, seed=2)
    truth, other = random_reward(mdp, 0), random_reward(mdp, 1)
    from_each = np.array([evd(mdp, truth, other, initial=p) for p in np.eye(8)])
    p = np.random.default_rng(0).dirichlet(np.ones(8))
    assert evd(mdp, truth, other, initial=p) == pytest.approx(p @ from_each, rel=1e-10)
    assert evd(mdp.replace(initial=p), truth, other) == pytest.approx(p @ from_each, rel=1e-10)
    assert evd(mdp, truth, other) == pytest.approx(from_each.mean(), rel=1e-10)
    policy = random_policy(mdp)
    from_each = np.array([stochastic_evd(mdp, truth, policy, initial=p) for p in np.eye(8)])
    assert stochastic_evd(mdp, truth, policy, p) == pytest.approx(p @ from_each, rel=1e-10)


def test_rewards_that_look_at_s_prime_count_in_expectation():
    mdp = random_mdp(8, 3, masked=True, terminal=1)
    R = np.random.default_rng(0).normal(size=(8, 3, 8))
    mean = (mdp.transitions.matrix.toarray().reshape(8, 3, 8) * R).sum(axis=2)
    other, policy = random_reward(mdp, 1), random_policy(mdp)
    assert evd(mdp, R, other) == pytest.approx(evd(mdp, mean, other), rel=1e-12)
    assert evd(mdp, other, R) == pytest.approx(evd(mdp, other, mean), rel=1e-12)
    np.testing.assert_allclose(policy_value(mdp, R, policy), policy_value(mdp, mean, policy), rtol=1e-12)


def test_at_discount_one_what_does_not_end_has_no_value():
    mdp = loop(1.0)
    stays, ends = np.array([[1.0, -1.0], [0.0, 0.0]]), np.array([[-1.0, -1.0], [0.0, 0.0]])
    never = np.array([[1.0, 0.0], [0.0, 0.0]])
    for call in (
        lambda: evd(mdp, stays, ends),
        lambda: evd(mdp, ends, stays),
        lambda: stochastic_evd(mdp, ends, never),
        lambda: policy_value(mdp, ends, never),
        lambda: entropy(mdp, never),
        lambda: evd(corridor(4, discount=1.0), np.ones(4), np.ones(4)),
    ):
        with pytest.raises(ValueDoesNotExist, match="discount"):
            call()
    assert evd(mdp, ends, ends) == 0.0


# -------------------------------------------------------------------------------------------------- all at once

FIVE = {"nll", "evd", "stochastic_evd", "epic", "starc"}


@pytest.fixture(scope="module")
def fits() -> dict[str, tuple[Problem, Any, rv.Demonstrations, Floats]]:
    """For each kind: an NFXP fit to much data, the demonstrations and the true reward, both of the base problem."""
    found = {}
    for kind in KINDS:
        animal = problem(kind)
        truth = animal.pair_features() @ animal.theta()
        demos = animal.simulate(rv.solve(animal.mdp, animal.lift(truth)).policy, 6_000, seed=2)
        fit = rv.NFXP(rv.LinearReward(animal.pair_features()), start=animal.theta()).fit(animal.mdp, demos)
        found[kind] = (animal, fit, demos, truth)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_is_the_single_metrics_by_name(fits, kind):
    animal, fit, demos, base = fits[kind]
    mdp, truth = animal.mdp, animal.lift(base)
    scores = evaluate(fit, mdp, base, demos)
    assert set(scores) == FIVE
    assert scores == {
        "nll": nll(fit, demos.lift(mdp)),
        "evd": evd(mdp, truth, fit.reward),
        "stochastic_evd": stochastic_evd(mdp, truth, fit.policy),
        "epic": epic(mdp, truth, fit.reward),
        "starc": starc(mdp, truth, fit.reward),
    }
    assert all(type(value) is float for value in scores.values())
    assert evaluate(fit, mdp, base) == scores  # the fit's own demonstrations
    assert rv.evaluate(fit, mdp, truth, demos) == scores
    expert = rv.solve(mdp, truth)
    for known in (expert, expert.policy):
        more = evaluate(fit, mdp, base, demos, expert=known)
        assert set(more) == FIVE | {"population_nll", "excess_nll"}
        assert more["population_nll"] == population_nll(mdp, expert.policy, fit)
        assert more["excess_nll"] == excess_nll(mdp, expert.policy, fit)
        assert {name: more[name] for name in FIVE} == scores


@pytest.mark.parametrize("kind", KINDS)
def test_with_much_data_everything_is_near_the_truth(fits, kind):
    animal, fit, demos, base = fits[kind]
    expert = rv.solve(animal.mdp, animal.lift(base))
    scores = evaluate(fit, animal.mdp, base, demos, expert=expert)
    floor = stochastic_evd(animal.mdp, animal.lift(base), expert)
    assert abs(scores["nll"] - nll(expert, demos.lift(animal.mdp))) < 1e-3
    assert scores["evd"] < 0.02
    assert scores["stochastic_evd"] == pytest.approx(floor, rel=0.1)
    assert scores["epic"] < 0.1
    assert scores["starc"] < 0.1
    assert scores["excess_nll"] < 1e-3


def test_coverage_and_start_reach_the_metrics_they_concern(fits):
    animal, fit, demos, truth = fits["masked"]
    mdp = animal.mdp
    coverage, start = animal.policy(4) * np.arange(8.0)[:, None], np.eye(8)[1]
    expert = animal.policy(5)
    scores = evaluate(fit, mdp, truth, demos, expert=expert, coverage=coverage, initial=start)
    assert scores["epic"] == epic(mdp, truth, fit.reward, coverage)
    assert scores["starc"] == starc(mdp, truth, fit.reward, coverage)
    assert scores["stochastic_evd"] == stochastic_evd(mdp, truth, fit, start)
    assert scores["population_nll"] == population_nll(mdp, expert, fit, start)
    assert scores["nll"] == evaluate(fit, mdp, truth, demos)["nll"]


def test_one_truth_judges_many_fits(fits):
    animal, fit, demos, truth = fits["discounted"]
    judge = Truth(animal.mdp, truth, animal.policy(1))
    for reward in (rv.LinearReward(animal.pair_features()), rv.LinearReward(animal.state_features())):
        other = rv.CCP(reward, first_step="smoothed").fit(animal.mdp, demos)
        assert judge.evaluate(other) == evaluate(other, animal.mdp, truth, expert=animal.policy(1))
    held_out = animal.simulate(fit.policy, 50, seed=9)
    assert judge.evaluate(fit, held_out)["nll"] == nll(fit, held_out)


def test_labels_of_held_out_demonstrations_are_matched_by_name():
    mdp = corridor(3).replace(state_labels=["low", "mid", "top"], action_labels=["left", "right"])
    truth = np.array([0.0, 0.0, 1.0])
    fit = rv.NFXP(rv.LinearReward(truth[:, None]), l2=1e-2).fit(mdp, draw(mdp, truth))
    rows = [("low", "right"), ("mid", "right"), ("top", "left"), ("mid", "right"), ("top", "right")]
    frame = pd.DataFrame(rows, columns=["state", "action"]).assign(id=0, time=range(5))
    columns: dict[str, Any] = {"id": "id", "time": "time", "state": "state", "action": "action"}
    named = rv.Demonstrations.from_frame(frame, **columns, states=["top", "mid", "low"], actions=["right", "left"])
    place = {"low": 0, "mid": 1, "top": 2, "left": 0, "right": 1}
    plain = rv.Demonstrations.from_trajectories([([place[s] for s, _ in rows], [place[a] for _, a in rows])], 3, 2)
    assert evaluate(fit, mdp, truth, named) == evaluate(fit, mdp, truth, plain)
    assert nll(fit, named) == nll(fit, plain)
    assert nll(fit.policy, named) == nll(fit.table("policy"), named) == nll(fit, named)  # they know their names
    assert nll(np.asarray(fit.policy), named) != pytest.approx(nll(fit, named), rel=0.01)  # an array knows no names


# ----------------------------------------------------------------------------------------------------- bad input

MDP = random_mdp(4, 2, terminal=1)
SHAPE = (4, 2)
FINE = MDP.uniform_policy()
SEEN = counts([[1, 1], [1, 0], [0, 1], [0, 0]])
ZERO = np.zeros(SHAPE)


def edited(index: tuple[int, int], value: float) -> Floats:
    table = np.array(FINE)
    table[index] = value
    return table


BAD_POLICIES = {
    "shape": (np.full((4, 3), 1 / 3), r"shape \(4, 3\)"),
    "text": ("policy", "str"),
    "nothing": (None, "got None"),
    "nan": (edited((1, 0), np.nan), "state 1, action 0"),
    "negative": (edited((1, 0), -0.5), "state 1, action 0"),
    "row sum": (edited((2, 1), 0.4), r"sum 0\.9 \(first at state 2"),
    "above one": (edited((2, 1), 1.5), "state 2"),
}


@pytest.mark.parametrize("case", BAD_POLICIES)
def test_bad_policies_are_named(case):
    policy, match = BAD_POLICIES[case]
    calls: list[tuple[Any, str]] = [
        (lambda: nll(policy, SEEN), "policy"),
        (lambda: population_nll(MDP, FINE, policy), "policy"),
        (lambda: excess_nll(MDP, FINE, policy), "policy"),
        (lambda: stochastic_evd(MDP, ZERO, policy), "policy"),
        (lambda: policy_value(MDP, ZERO, policy), "policy"),
        (lambda: expected_return(MDP, ZERO, policy), "policy"),
        (lambda: population_nll(MDP, policy, FINE), "expert"),
        (lambda: excess_nll(MDP, policy, FINE), "expert"),
        (lambda: entropy(MDP, policy), "expert"),
    ]
    if policy is not None:
        calls.append((lambda: Truth(MDP, ZERO, expert=policy), "expert"))
    for call, name in calls:
        with pytest.raises(InvalidDistribution, match=match) as caught:
            call()
        assert caught.value.argument == name


def test_policies_of_a_model_are_zero_where_it_forbids_and_nowhere_else_throughout():
    mdp = rv.MDP(np.full((2, 2, 2), 0.5), feasible=[[True, False], [True, True]])
    fine = mdp.uniform_policy()
    for policy, match in (
        (np.full((2, 2), 0.5), "infeasible"),
        (np.array([[1.0, 0.0], [0.0, 0.0]]), r"got none .*no action"),
    ):
        with pytest.raises(InvalidDistribution, match=match):
            population_nll(mdp, fine, policy)
        with pytest.raises(InvalidDistribution, match=match):
            excess_nll(mdp, fine, policy)


@pytest.mark.parametrize(
    ("reward", "match"),
    [
        (np.ones((4, 3)), "shape"),
        (np.full(SHAPE, np.nan), "state 0, action 0"),
        (np.full((4, 2, 4), np.inf), "state 0, action 0"),
        ("reward", "str"),
        (None, "got None"),
    ],
)
def test_bad_rewards_are_named(reward, match):
    calls: list[tuple[Any, str]] = [
        (lambda: evd(MDP, reward, ZERO), "true_reward"),
        (lambda: evd(MDP, ZERO, reward), "reward"),
        (lambda: stochastic_evd(MDP, reward, FINE), "true_reward"),
        (lambda: policy_value(MDP, reward, FINE), "reward"),
        (lambda: Truth(MDP, reward), "true_reward"),
    ]
    for call, name in calls:
        with pytest.raises(InvalidReward, match=match) as caught:
            call()
        assert caught.value.argument == name


@pytest.mark.parametrize("initial", [np.ones(4), np.ones(3) / 3, [0.5, np.nan, 0.5, 0.0], [-1.0, 1.0, 1.0, 0.0], "all"])
def test_bad_starts_are_named(initial):
    for call in (
        lambda: evd(MDP, ZERO, ZERO, initial),
        lambda: stochastic_evd(MDP, ZERO, FINE, initial),
        lambda: expected_return(MDP, ZERO, FINE, initial),
        lambda: population_nll(MDP, FINE, FINE, initial),
        lambda: entropy(MDP, FINE, initial),
    ):
        with pytest.raises(InvalidDistribution) as caught:
            call()
        assert caught.value.argument == "initial"


def test_without_a_decision_there_is_no_nll_per_decision():
    with pytest.raises(InvalidDistribution, match="terminal states only"):
        entropy(MDP, FINE, initial=np.eye(4)[3])


def test_plain_counts_know_no_trajectories():
    with pytest.raises(InvalidDemonstrations, match='per="decision"') as caught:
        nll(FINE, SEEN, per="trajectory")
    assert caught.value.argument == "demos"
    with_starts = rv.Demonstrations.from_counts(SEEN.counts, starts=[1.0, 1.0, 0.0, 0.0])
    assert nll(FINE, with_starts, per="trajectory") == pytest.approx(2.0 * np.log(2.0))


@pytest.mark.parametrize("per", ["step", None, 1])
def test_bad_units_are_named(per):
    with pytest.raises(InvalidOption, match="trajectory"):
        nll(FINE, SEEN, per=per)


def test_bad_demonstrations_are_named(fits):
    animal, fit, _, truth = fits["masked"]
    with pytest.raises(InvalidInput, match=r"`demos`: expected rv\.Demonstrations; got list"):
        nll(FINE, [[0, 1]])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match=r"`demos`: expected rv\.Demonstrations; got list"):
        evaluate(fit, animal.mdp, truth, [[0, 1]])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidDemonstrations, match="8 states and 3 actions"):
        evaluate(fit, animal.mdp, truth, SEEN)
    impossible = np.where(animal.mdp.feasible, 0.0, 1.0)
    with pytest.raises(InvalidDemonstrations, match="feasible"):
        evaluate(fit, animal.mdp, truth, counts(impossible))


def test_on_a_horizon_longer_demonstrations_are_refused(fits):
    animal, fit, _, truth = fits["unrolled"]
    base = make_problem("unrolled").mdp.base
    assert base is not None
    long = rv.simulate(base, base.uniform_policy(), 50, 30, seed=0)
    with pytest.raises(RevealedError, match="horizon"):
        evaluate(fit, animal.mdp, truth, long)


@pytest.mark.parametrize("constant", [1e4, 1e6, 1e7])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_constant_where_nothing_ends_costs_nothing_however_large(constant, seed):
    mdp = random_mdp(50, 4, 0.99, seed)
    reward = random_reward(mdp, seed)
    assert evd(mdp, reward, reward + constant) <= 1e-9
    behaviour = random_policy(mdp, seed)
    gap = stochastic_evd(mdp, reward, behaviour)
    assert stochastic_evd(mdp, reward + constant, behaviour) == pytest.approx(gap, rel=1e-5)


def test_what_is_not_a_model_or_a_fit_is_refused_with_a_remedy():
    world = rv.environments.obstacleworld(size=4)
    with pytest.raises(InvalidInput, match=r"`mdp`.*Obstacleworld.*`\.mdp`"):
        evd(world, world.true_reward, world.true_reward)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match=r"`fit`.*an array.*policy or a reward.*policy=table"):
        rv.evaluate(world.expert, world.mdp, world.true_reward)


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        (lambda world, fit: evd(world.mdp, world.true_reward, rv.solve(world.mdp, fit)), "`.reward`"),
        (lambda world, fit: evd(world.mdp, world, fit.reward), "`.true_reward`"),
        (lambda world, fit: rv.solve(world.mdp, rv.solve(world.mdp, fit)), "`.reward`"),
        (lambda world, fit: nll(world, fit.demonstrations), "`.expert`"),
        (lambda world, fit: rv.simulate(world.mdp, world, 1, 1), "`.expert`"),
        (lambda world, fit: epic(world.mdp, fit.reward, fit.reward, fit.demonstrations), "`.counts`"),
        (lambda world, fit: rv.NFXP(fit.reward_model).fit(fit.demonstrations, world.mdp), "swapped"),
        (lambda world, fit: rv.NFXP(world.reward_model), r"reward_model\(\)"),
    ],
)
def test_what_only_holds_what_was_wanted_is_refused_with_the_way_to_it(wrong, remedy):
    world = rv.environments.obstacleworld(size=3)
    fit = rv.NFXP(world.reward_model()).fit(world.mdp, world.demonstrate(50, seed=0))
    with pytest.raises(RevealedError, match=remedy):
        wrong(world, fit)


def test_a_fit_of_another_size_is_named_as_the_culprit():
    world, other = rv.environments.obstacleworld(size=3), rv.environments.obstacleworld(size=4)
    fit = rv.NFXP(world.reward_model()).fit(world.mdp, world.demonstrate(50, seed=0))
    with pytest.raises(InvalidInput, match=r"`fit`.*16 states"):
        rv.evaluate(fit, other.mdp, other.true_reward)
