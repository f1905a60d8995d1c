"""Labels are matched by name, times and categories kept, and moves that T rules out are told."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed.environments import grid_transitions
from revealed.matching import match_labels

CONDITIONS = ["low", "mid", "high"]


def machine(labels: bool = True) -> rv.MDP:
    """A machine that wears out (keep) and is renewed (repair); its states are not in the alphabet's order."""
    T = np.zeros((3, 2, 3))
    T[0, 0], T[1, 0], T[2, 0] = [0.6, 0.4, 0], [0, 0.6, 0.4], [0, 0, 1]
    T[:, 1, 0] = 1.0
    names = {"state_labels": CONDITIONS, "action_labels": ["keep", "repair"]} if labels else {}
    return rv.MDP(T, discount=0.9, **names)


def features() -> np.ndarray:
    x = np.zeros((3, 2, 2))
    x[:, 0, 0] = -np.arange(3.0)
    x[:, 1, 1] = -1.0
    return x


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    demos = rv.simulate(machine(), rv.solve(machine(), features() @ [1.0, 2.0]).policy, n=80, length=20, seed=1)
    steps = demos.steps
    assert steps is not None
    return pd.DataFrame({"who": steps.agent, "t": steps.time, "x": steps.state, "d": steps.action})


def read(frame: pd.DataFrame, **options) -> rv.Demonstrations:
    return rv.Demonstrations.from_frame(frame, id="who", time="t", state="x", action="d", **options)


def with_names(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(x=np.array(CONDITIONS)[frame.x], d=np.array(["keep", "repair"])[frame.d])


def test_labels_of_the_data_meet_those_of_the_model(frame):
    """Whatever order the alphabet has, the estimate is that of the indices."""
    by_index = rv.NFXP(rv.LinearReward(features())).fit(machine(), read(frame))
    by_name = rv.NFXP(rv.LinearReward(features())).fit(machine(), read(with_names(frame)))
    assert read(with_names(frame)).state_labels == ("high", "low", "mid")
    np.testing.assert_allclose(by_name.theta, by_index.theta, rtol=1e-10)
    np.testing.assert_array_equal(by_name.demonstrations.counts, by_index.demonstrations.counts)
    np.testing.assert_array_equal(by_name.demonstrations.starts, by_index.demonstrations.starts)
    moves = (by_name.demonstrations.transition_counts - by_index.demonstrations.transition_counts).toarray()
    assert not moves.any()


def test_labels_that_the_data_do_not_show_are_filled_in(frame):
    """A condition that never occurs in the data is still a state of the model."""
    seen = with_names(frame[frame.x < 2])
    assert read(seen).n_states == 2
    fit = rv.NFXP(rv.LinearReward(features()), l2=1e-3).fit(machine(), read(seen))
    assert fit.demonstrations.counts.shape == (3, 2)
    assert fit.demonstrations.counts[2].sum() == 0


def test_a_label_that_the_model_does_not_know_is_named(frame):
    table = with_names(frame)
    table.loc[3, "x"] = "hihg"
    with pytest.raises(rv.errors.InvalidDemonstrations, match=r"low, mid, high.*'hihg'"):
        rv.NFXP(rv.LinearReward(features())).fit(machine(), read(table))
    with pytest.raises(rv.errors.InvalidDemonstrations, match=r"'hihg' \(first at row 3\)"):
        read(table, states=CONDITIONS)


def test_given_labels_and_ordered_categories_set_the_order(frame):
    plain = read(frame).counts
    table = with_names(frame)
    np.testing.assert_array_equal(read(table, states=CONDITIONS, actions=["keep", "repair"]).counts, plain)
    ordered = table.assign(
        x=pd.Categorical(table.x, categories=CONDITIONS, ordered=True),
        d=pd.Categorical(table.d, categories=["keep", "repair"]),
    )
    np.testing.assert_array_equal(read(ordered).counts, plain)


def test_labels_on_a_finite_horizon(frame):
    mdp = machine().unroll(20)
    by_name, by_index = (rv.CCP(rv.LinearReward(features()), first_step="smoothed").fit(mdp, d)
                         for d in (read(with_names(frame)), read(frame)))  # fmt: skip
    np.testing.assert_array_equal(by_name.demonstrations.counts, by_index.demonstrations.counts)


def test_first_time_puts_late_entrants_where_they_are():
    table = pd.DataFrame({"who": [1, 1, 2, 2], "t": [3, 4, 5, 6], "x": [0, 1, 0, 1], "d": 0})
    horizon = machine(labels=False).unroll(5)
    own, common = (read(table, n_states=3, n_actions=2, first_time=zero) for zero in ("own", 3))
    np.testing.assert_array_equal(np.flatnonzero(own.lift(horizon).counts[:, 0]), [0, 4])
    np.testing.assert_array_equal(np.flatnonzero(common.lift(horizon).counts[:, 0]), [0, 4, 6, 10])
    np.testing.assert_array_equal(np.flatnonzero(common.lift(horizon).starts), [0, 6])
    with pytest.raises(rv.errors.InvalidInput, match="no later than 3"):
        read(table, n_states=3, n_actions=2, first_time=4)


def test_times_of_a_small_type_do_not_wrap_around():
    t = np.arange(-100, 100).astype(np.int8)
    table = pd.DataFrame({"who": 0, "t": t, "x": 0, "d": 0})
    steps = read(table).steps
    assert steps is not None
    np.testing.assert_array_equal(steps.time, np.arange(200))


def test_impossible_moves_are_noted_and_possible_ones_are_not():
    mdp = machine()
    good = rv.Demonstrations.from_trajectories([([0, 1, 2, 0], [0, 0, 1])] * 3 + [([0, 0], [1])], 3, 2)
    bad = rv.Demonstrations.from_trajectories([([0, 2, 0], [0, 1])] * 3 + [([0, 0], [1])], 3, 2)
    notes = [rv.CCP(rv.LinearReward(features()), l2=0.01).fit(mdp, d).status.notes for d in (good, bad)]
    assert not any("impossible" in note for note in notes[0])
    first = "from state 'low' by action 'keep' to state 'high'"
    assert any("3 of 7 observed moves are impossible" in note and first in note for note in notes[1])


def _walked() -> tuple[rv.environments.World, rv.Demonstrations, rv.LinearReward]:
    world = rv.environments.obstacleworld(size=6, seed=0)
    return world, world.demonstrate(20, 20, seed=1), rv.LinearReward(np.asarray(world.features))


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
@pytest.mark.parametrize("horizon", [None, 20])
def test_a_model_that_contradicts_the_moves_is_refused(method, horizon):
    """Rows stacked as a*S + s, and permuted actions: most moves cannot happen, and no estimate means anything."""
    world, demos, reward = _walked()
    T, S, A = world.mdp.transitions.matrix, world.mdp.n_states, world.mdp.n_actions
    rows = np.arange(S * A).reshape(S, A)
    stacked = rv.MDP(T[rows.T.reshape(-1)], 0.9)
    turned = rv.MDP(T[np.roll(rows, 1, axis=1).reshape(-1)], 0.9)
    for mdp in (stacked, turned):
        with pytest.raises(rv.errors.InvalidDemonstrations, match="of 400 observed moves are impossible") as caught:
            method(reward).fit(mdp if horizon is None else mdp.unroll(horizon), demos)
        assert caught.value.form == "impossible"
        assert "s*A + a" in str(caught.value.remedy)
    with pytest.raises(
        rv.errors.InvalidDemonstrations, match=r"possible if the rows .* stacked as a\*S \+ s: stack them"
    ):
        method(reward).fit(stacked, demos)


def test_trips_on_a_model_that_contradicts_them_are_refused_for_their_moves():
    world, demos, reward = _walked()
    assert demos.steps is not None
    after = demos.steps.next_state[demos.steps.next_state >= 0]
    trips = [([s, t], [a]) for s, a, t in zip(demos.steps.state, demos.steps.action, after, strict=True) if s != t]
    T = world.mdp.transitions.matrix
    rows = np.arange(T.shape[0]).reshape(world.mdp.feasible.shape)
    uncertain = rv.MDP(
        0.5 * T[np.roll(rows, 1, axis=1).reshape(-1)] + 0.5 * T[np.roll(rows, 2, axis=1).reshape(-1)], 1.0
    )
    data = rv.Demonstrations.from_trajectories(
        trips, *world.mdp.feasible.shape, goal=[states[-1] for states, _ in trips]
    )
    with pytest.raises(rv.errors.InvalidDemonstrations, match="observed moves are impossible"):
        rv.NFXP(reward).fit(uncertain, data)


def test_few_impossible_moves_are_noted_with_their_causes_and_estimated_transitions_are_not_refused():
    """What never was seen has no chance in transitions that were estimated, from other agents for example."""
    world, demos, reward = _walked()
    ways = [(one.tolist(), act.tolist()) for one, act in _paths(demos)]
    odd = [([0, 35], [0])]
    few = rv.Demonstrations.from_trajectories(ways + odd * 20, *world.mdp.feasible.shape)
    note = next(note for note in rv.CCP(reward, l2=1e-3).fit(world.mdp, few).status.notes if "impossible" in note)
    assert note.startswith("20 of ")
    assert "s*A + a" in note
    estimated = rv.MDP(rv.estimate_transitions(demos.subset(range(4)), unseen="stay"), 0.9)
    assert any("impossible" in note for note in rv.CCP(reward, l2=1e-3).fit(estimated, demos).status.notes)


def _paths(demos: rv.Demonstrations):
    assert demos.steps is not None
    first = np.flatnonzero(demos.steps.first)[1:]
    acts = np.split(demos.steps.action, first)
    states = np.split(demos.steps.state, first)
    return [(np.append(s, after[-1]), a) for s, a, after in zip(states, acts, np.split(demos.steps.next_state, first))]


def test_a_list_of_dense_matrices_is_one_per_action():
    """Also where there are as many actions as states, and the shape alone could not tell."""
    T = sp.csr_array(grid_transitions(2, 2)).toarray().reshape(4, 4, 4)
    again = rv.MDP([np.ascontiguousarray(T[:, a]) for a in range(4)], discount=0.9)
    np.testing.assert_allclose(again.transitions.matrix.toarray().reshape(4, 4, 4), T)


# ---- turns: actions without labels, numbered by where they lead -----------------------------------------------------

PLACES = ["a", "b", "c", "d"]
ORDER = ["c", "d", "a", "b"]
WAYS = {"a": ["b", "c"], "b": ["c", "d"], "c": ["d", "a"], "d": ["a", "b"]}


def turns(places: list[str], ways: dict[str, list[str]] = WAYS) -> rv.MDP:
    """A model whose actions are numbered by the order of the states that they lead to."""
    at = {place: k for k, place in enumerate(places)}
    moves = np.eye(4)[[sorted(at[to] for to in ways[place]) for place in places]]
    return rv.MDP(moves, 0.9, state_labels=places)


def where_they_led(demos: rv.Demonstrations, mdp: rv.MDP) -> dict[tuple[str, str], float]:
    """How often each state was left for each other, by label."""
    labels, targets = mdp.state_labels, mdp.targets
    assert labels is not None
    pairs = np.argwhere(np.asarray(demos.counts) > 0)
    told: dict[tuple[str, str], float] = {}
    for s, a in pairs.tolist():
        key = (labels[s], labels[targets[s, a]])
        told[key] = told.get(key, 0.0) + float(demos.counts[s, a])
    return told


def walks(seed: int = 0, length: int = 3) -> rv.Demonstrations:
    """Walks of few steps; where the last of each led is not known."""
    steps = rv.simulate(turns(PLACES), np.full((4, 2), 0.5), 60, length, seed=seed).steps
    assert steps is not None
    parts = [(steps.state[steps.agent == i], steps.action[steps.agent == i]) for i in range(60)]
    made = rv.Demonstrations.from_trajectories(parts, 4, 2)
    return replace(made, state_labels=tuple(PLACES))


def test_every_turn_is_the_one_that_it_was_in_another_order_of_the_states():
    """Also the last of a trajectory, whose next state nobody saw, and turns that were only counted."""
    demos, own, other = walks(), turns(PLACES), turns(ORDER)
    expected = where_they_led(demos, own)
    for data in (demos, demos._without_steps(), demos.reweighted(np.ones(60))):
        there = match_labels(data, other)
        assert where_they_led(there, other) == expected
        moves = there.transition_counts.tocoo()
        np.testing.assert_array_equal(other.targets.reshape(-1)[moves.coords[0]], moves.coords[1])
    steps = match_labels(demos, other).steps
    assert steps is not None
    assert demos.steps is not None
    led = own.targets[demos.steps.state, demos.steps.action]
    there = other.targets[steps.state, steps.action]
    assert [ORDER[s] for s in there] == [PLACES[s] for s in led]


def test_turns_that_nothing_tells_apart_are_refused():
    alone = rv.Demonstrations.from_trajectories([(["a"], [0])], n_actions=2, states=PLACES)
    counted = replace(rv.Demonstrations.from_counts(np.ones((4, 2))), state_labels=tuple(PLACES))
    for demos in (alone, counted):
        with pytest.raises(rv.errors.InvalidDemonstrations, match="the observed next state does not determine which"):
            match_labels(demos, turns(ORDER))
        match_labels(demos, turns(PLACES))


def test_two_turns_to_one_state_are_matched_in_their_order_or_refused():
    ways = {**WAYS, "a": ["b", "b"]}
    both = rv.Demonstrations.from_trajectories([(["a", "b"], [1]), (["b", "d"], [1])], n_actions=2, states=PLACES)
    there = match_labels(both, turns(ORDER, ways))
    assert there.counts[2].tolist() == [0.0, 1.0]  # the second stays the second
    assert there.counts[3].tolist() == [0.0, 1.0]
    other = rv.Demonstrations.from_trajectories(
        [(["a", "b"], [1]), (["b", "d"], [0]), (["c", "d"], [0])], n_actions=2, states=PLACES
    )  # numbered neither as here nor as there
    with pytest.raises(rv.errors.InvalidDemonstrations, match=r"first at state 'a', action 1"):
        match_labels(other, turns(ORDER, ways))
