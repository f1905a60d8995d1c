"""Many goals, case by case: the sum of plain objectives on the models toward each goal, whatever π̃."""

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import revealed as rv
from networks import Trips, random_trips, windy_trips
from oracle import Floats, assert_close, central_differences
from revealed import goal_cases, parallel
from revealed.goal_cases import EachGoal, EachPart, StoredPolicies
from revealed.objective import Case, Evaluation, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from zoo import seeds

KINDS = ("network", "parts", "windy", "windy to the end")


def some_trips(kind: str, seed: int) -> Trips:
    if kind.startswith("windy"):
        return windy_trips(0.9 if kind == "windy" else 1.0, seed, n=12, side=3)
    return random_trips(seed, n=12, parts=2 if kind == "parts" else 1)


trips = st.builds(some_trips, st.sampled_from(KINDS), seeds)


class Random:
    """A policy for each goal that takes every action it may, and often those that lead on."""

    def __init__(self, made: Trips) -> None:
        self.made = made

    def of(self, case: int, mdp: rv.MDP) -> tuple[Floats, None]:
        best = rv.solve(mdp, np.where(mdp.feasible, self.made.table, 0.0)).policy
        lots = np.random.default_rng(case).gamma(1.0, size=best.shape) * mdp.feasible
        mixed = best + 0.3 * lots
        return mixed / np.where(mdp.terminal[:, None], 1.0, mixed.sum(axis=1, keepdims=True)), None


def plain(made: Trips, reward: Any, policies: Any = None, l2: float = 0.0) -> Objective:
    """One ordinary case per goal."""
    cases = []
    for c, goal in enumerate(made.rows.goal):
        mdp = made.mdp.toward(int(goal))
        choice = OwnPolicy(mdp) if policies is None else GivenPolicy(mdp, *policies.of(c, mdp))
        cases.append(Case(mdp, made.demos.toward(int(goal)).weights, choice))
    return Objective(reward, cases, l2)


def assert_same(one: Evaluation, other: Evaluation, second: bool = True) -> None:
    assert one.value == pytest.approx(other.value, rel=1e-10)
    assert_close(one.gradient, other.gradient, 1e-9)
    if second:
        assert_close(one.hessian, other.hessian, 1e-8)
        assert_close(one.information, other.information, 1e-8)
        assert_close(one.spread, other.spread, 1e-8)


@settings(max_examples=16)
@given(trips, st.booleans())
def test_goals_together_are_the_sum_of_goals_apart(made, own):
    """Value, gradient, second derivatives and information, for π̃ = π_θ and for a given π̃."""
    policies = None if own else Random(made)
    each = Objective(made.reward, [EachGoal(made.rows, policies)], 0.01)
    for theta in (made.theta, 1.2 * made.theta):  # the second time linear rewards under a given π̃ are a logit in rows
        assert_same(each.at(theta), plain(made, made.reward, policies, 0.01).at(theta))


@settings(max_examples=16)
@given(trips)
def test_the_logit_in_rows_is_what_it_was_made_of(made):
    """Q is affine in θ while π̃ stays: one pass over the goals, and then no more models."""
    cases = EachGoal(made.rows, Random(made))
    point = Objective(made.reward, [cases]).at(made.theta + 0.3)
    kept = Objective(made.reward, [cases])
    kept.at(made.theta)
    again = kept.at(made.theta + 0.3)
    uncompressed = EachPart(cases, made.reward, made.theta + 0.3)
    for part in (point.parts[0], again.parts[0]):
        assert part.log_likelihood == pytest.approx(uncompressed.log_likelihood, rel=1e-10)
        for name in ("pull", "information", "hessian", "slopes"):
            assert_close(getattr(part, name), getattr(uncompressed, name), 1e-9)
        offered = made.rows.feasible
        assert_close(part.choices.log_policy[offered], uncompressed.choices.log_policy[offered], 1e-9)


@settings(max_examples=16)
@given(trips, st.booleans())
def test_derivatives_are_finite_differences(made, own):
    objective = Objective(made.reward, [EachGoal(made.rows, None if own else Random(made))], 0.1)
    point = objective.at(made.theta)
    assert_close(point.gradient, central_differences(lambda t: objective.at(t).value, made.theta), 1e-8)
    assert_close(point.hessian, central_differences(lambda t: objective.at(t).gradient, made.theta), 1e-7)


@lru_cache
def with_network(kind: str) -> tuple[Trips, rv.NeuralReward]:
    made = some_trips(kind, 3)
    return made, rv.NeuralReward(made.features, hidden=(2,), seed=1, activation="tanh")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("own", [True, False])
def test_gradients_of_rewards_without_second_derivatives(kind, own):
    """A weight per state, and a small network: goals apart, and finite differences."""
    made, neural = with_network(kind)
    policies = None if own else Random(made)
    low = neural.init()
    low[-1] -= 4.0  # the last bias: every move costs
    for reward, theta in ((rv.TabularReward(made.mdp.n_states), np.full(made.mdp.n_states, -2.5)), (neural, low)):
        objective = Objective(reward, [EachGoal(made.rows, policies)], 0.01)
        assert_same(objective.at(theta), plain(made, reward, policies, 0.01).at(theta), second=False)
        differences = central_differences(lambda t, o=objective: o.at(t).value, theta)
        assert_close(objective.at(theta).gradient, differences, 1e-7)


# ------------------------------------------------------------------------------------- what must not make a difference


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("own", [True, False])
def test_neither_memory_nor_threads_change_anything(kind, own, monkeypatch):
    made = some_trips(kind, 5)
    policies = None if own else Random(made)
    before = Objective(made.reward, [EachGoal(made.rows, policies)]).at(made.theta)
    _ = before.gradient, before.hessian
    monkeypatch.setattr(goal_cases, "MOST_KEPT", 0)
    for n in (1, 3):
        monkeypatch.setattr(parallel, "cores", lambda n=n: n)
        cases = EachGoal(made.rows, policies)
        assert not cases.small
        objective = Objective(made.reward, [cases])
        assert_same(objective.at(made.theta), before)
        assert_same(objective.at(made.theta), before)  # from the values of the first time


@pytest.mark.parametrize("solver", ["lu", "krylov"])
def test_solvers_agree(solver):
    made = some_trips("windy", 1)
    assert_same(
        Objective(made.reward, [EachGoal(made.rows, solver=solver)]).at(made.theta),
        Objective(made.reward, [EachGoal(made.rows)]).at(made.theta),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_policies_of_an_update_are_those_of_the_objective(kind):
    """What NPL hands on: softmax Q^π̃ for each goal, and the soft optimum stays where it is."""
    made = some_trips(kind, 2)
    cases = EachGoal(made.rows, Random(made))
    stored, apart = cases.policies(made.reward, made.theta), plain(made, made.reward, Random(made)).at(made.theta)
    for c in range(made.rows.n_cases):
        assert_close(stored.of(c, made.mdp)[0], apart.parts[c].policy, 1e-10)
    best = [rv.solve(made.mdp.toward(int(g)), made.table).log_policy for g in made.rows.goal]
    again = EachGoal(made.rows, StoredPolicies(best)).policies(made.reward, made.theta)
    for c, log in enumerate(best):
        assert_close(again.of(c, made.mdp)[0], np.exp(log), 1e-9)


class PerGoal:
    """A linear reward whose second feature depends on the goal, and on where the trip began."""

    linear, by = True, "pair"

    def __init__(self, made: Trips) -> None:
        self.made, self.names = made, tuple(made.reward.names)

    @property
    def n_params(self) -> int:
        return len(self.names)

    def toward(self, goal: int, origin: int) -> rv.LinearReward:
        X = self.made.features.copy()
        X[:, :, 1] += 0.1 * ((goal + 2 * origin) % 5)
        return rv.LinearReward(X)

    def init(self, seed: int | None = None) -> Floats:
        return np.zeros(self.n_params)

    def value(self, theta: Floats) -> Floats:
        return self.made.reward.value(theta)

    def vjp(self, theta: Floats, cotangent: Floats) -> Floats:
        return self.made.reward.vjp(theta, cotangent)

    def jacobian(self, theta: Floats) -> Any:
        return self.made.reward.jacobian(theta)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("own", [True, False])
def test_rewards_that_depend_on_the_trip(kind, own):
    """Each pair of origin and goal is a case with a reward of its own."""
    made = some_trips(kind, 4)
    reward, policies = PerGoal(made), None if own else Random(made)
    rows = goal_cases.GoalRows.of(made.mdp, made.demos, "pair")
    together = Objective(reward, [EachGoal(rows, policies)]).at(made.theta)
    value, gradient = 0.0, np.zeros(made.theta.size)
    for c in range(rows.n_cases):
        mdp = made.mdp.toward(int(rows.goal[c]))
        choice = OwnPolicy(mdp) if policies is None else GivenPolicy(mdp, *policies.of(c, mdp))
        own_reward = reward.toward(int(rows.goal[c]), int(rows.origin[c]))
        apart = Objective(own_reward, [Case(mdp, rows.dense(c), choice)]).at(made.theta)
        share = rows.dense(c).sum() / rows.total
        value, gradient = value + share * apart.value, gradient + share * apart.gradient
    assert together.value == pytest.approx(value, rel=1e-10)
    assert_close(together.gradient, gradient, 1e-9)
