"""Decisions toward many goals as one table: what it holds is what the trips to each goal hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from networks import Trips, random_trips, steps_of, windy_trips
from oracle import Floats
from revealed.demonstrations import Demonstrations
from revealed.goal_rows import GoalRows
from revealed.logit_rows import InRows
from zoo import seeds


def some_trips(kind: str, seed: int) -> Trips:
    if kind == "windy":
        return windy_trips(0.9, seed, n=12)
    return random_trips(seed, n=12, parts=2 if kind == "parts" else 1, dead_ends=2)


trips = st.builds(some_trips, st.sampled_from(["network", "parts", "windy"]), seeds)


@given(trips)
def test_each_case_holds_the_decisions_of_the_trips_to_its_goal(made):
    rows, demos = made.rows, made.demos
    np.testing.assert_array_equal(rows.goal, demos.goals)
    assert (rows.origin == -1).all()
    assert rows.total == rows.sum() == demos.n_decisions
    for c, goal in enumerate(rows.goal):
        counts = demos.toward(int(goal)).counts
        np.testing.assert_array_equal(rows.dense(c), counts)
        np.testing.assert_array_equal(rows.state[rows.rows_of(c)], np.flatnonzero(counts.sum(axis=1)))


@given(trips)
def test_what_is_offered_is_what_the_model_toward_the_goal_offers(made):
    """By one search for goals that lead to each other, or goal by goal where moves are uncertain."""
    rows = made.rows
    for c, goal in enumerate(rows.goal):
        here = rows.rows_of(c)
        np.testing.assert_array_equal(rows.feasible[here], made.mdp.toward(int(goal)).feasible[rows.state[here]])


@given(trips, seeds)
def test_agents_parts_add_up_and_count_as_often_as_they_weigh(made, seed):
    weights = np.random.default_rng(seed).integers(0, 4, made.demos.n_agents).astype(float)
    weights[0] = 2.0
    demos = made.demos.reweighted(weights)
    rows = GoalRows.of(made.mdp, demos)
    np.testing.assert_allclose(np.asarray(rows.by_agent.sum(axis=0)).reshape(rows.rho.shape), rows.rho)
    np.testing.assert_allclose(np.asarray(rows.by_agent.sum(axis=1)), np.asarray(demos.by_agent.sum(axis=1)))
    assert (rows.rho.sum(axis=1) > 0.0).all()  # whoever counts nothing leaves no row
    assert rows.goal.tolist() == sorted({int(g) for g in steps_of(demos).goal[demos.step_weights > 0.0]})
    for c, goal in enumerate(rows.goal):
        np.testing.assert_allclose(rows.dense(c), demos.toward(int(goal)).counts)


@given(trips, seeds)
def test_every_decision_finds_its_row(made, seed):
    """The log likelihood of the rows is the sum over single decisions, by goal and by pair."""
    steps, demos = steps_of(made.demos), made.demos
    for by in ("goal", "pair"):
        rows = GoalRows.of(made.mdp, demos, by)
        place = rows.place(demos)
        np.testing.assert_array_equal(rows.state[place], steps.state)
        np.testing.assert_array_equal(rows.goal[rows.case[place]], steps.goal)
        table = np.random.default_rng(seed).normal(size=rows.rho.shape)
        assert float((rows.rho * table).sum()) == pytest.approx(float(table[place, steps.action].sum()))


@given(trips)
def test_pairs_are_goals_split_by_where_trips_began(made):
    rows = GoalRows.of(made.mdp, made.demos, "pair")
    steps = steps_of(made.demos)
    pairs = {(int(g), int(s)) for g, s in zip(steps.goal[steps.first], steps.state[steps.first], strict=True)}
    assert sorted(pairs) == list(zip(rows.goal.tolist(), rows.origin.tolist(), strict=True))
    for goal in made.rows.goal:
        together = sum(rows.dense(int(c)) for c in np.flatnonzero(rows.goal == goal))
        np.testing.assert_array_equal(together, made.demos.toward(int(goal)).counts)


def discounted(demos: Demonstrations, goal: int, gamma: float, n: tuple[int, int]) -> Floats:
    """γ^t in each pair, decision by decision."""
    steps, out = steps_of(demos), np.zeros(n)
    for t, s, a, g in zip(steps.time, steps.state, steps.action, steps.goal, strict=True):
        out[s, a] += gamma**t * (g == goal)
    return out


def test_visits_may_be_discounted():
    made = random_trips(3)
    demos = made.demos.discount_visits(0.8)
    rows, plain = (GoalRows.of(made.mdp, demos, discounted=flag) for flag in (True, False))
    for c, goal in enumerate(rows.goal):
        np.testing.assert_allclose(rows.dense(c), discounted(made.demos, int(goal), 0.8, made.mdp.feasible.shape))
        np.testing.assert_array_equal(plain.dense(c), made.rows.dense(c))
    np.testing.assert_allclose(np.asarray(rows.by_agent.sum(axis=0)).reshape(rows.rho.shape), rows.rho)


class InSomeRows(InRows):
    """Choices as they are given."""

    def __init__(self, rows: GoalRows, log_policy: Floats) -> None:
        self._rows, self._log = rows, log_policy

    @property
    def seen(self) -> GoalRows:
        return self._rows

    @property
    def row_log_policy(self) -> Floats:
        return self._log

    @property
    def slopes(self) -> Floats:
        return np.zeros((*self._log.shape, 0))


def test_what_nobody_did_may_be_impossible():
    """0 · log 0 = 0."""
    rows = random_trips(1).rows
    log = np.where(rows.rho > 0.0, -1.0, -np.inf)
    assert InSomeRows(rows, log).log_likelihood == -rows.total


def test_a_trip_cut_off_before_its_goal_counts_as_far_as_it_went():
    made = random_trips(2)
    path = made.demos.subset([int(np.bincount(steps_of(made.demos).agent).argmax())])
    steps = steps_of(path)
    assert steps.state.size > 2
    short = rv.Demonstrations.from_trajectories(
        [(steps.state[:-1], steps.action[:-1])], path.n_states, path.n_actions, goal=int(steps.goal[0])
    )
    whole, cut = GoalRows.of(made.mdp, path), GoalRows.of(made.mdp, short)
    assert (cut.total, cut.goal.tolist()) == (whole.total - 1.0, whole.goal.tolist())
