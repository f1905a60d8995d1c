"""Labels are matched by name, times and categories kept, and moves that T rules out are told."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed.environments import grid_transitions

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
    assert any("3 observed moves are impossible" in note and first in note for note in notes[1])


def test_a_list_of_dense_matrices_is_one_per_action():
    """Also where there are as many actions as states, and the shape alone could not tell."""
    T = sp.csr_array(grid_transitions(2, 2)).toarray().reshape(4, 4, 4)
    again = rv.MDP([np.ascontiguousarray(T[:, a]) for a in range(4)], discount=0.9)
    np.testing.assert_allclose(again.transitions.matrix.toarray().reshape(4, 4, 4), T)
