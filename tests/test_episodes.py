"""Other people's episodes become decisions: Minari's, imitation's, Gymnasium's, and those of one's own loops."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from models import corridor
from revealed.matching import impossible_moves

STATES, ACTIONS = [0, 1, 2, 1], [1, 1, 0]
PLAIN = rv.Demonstrations.from_trajectories([(STATES, ACTIONS)], 4, 2)


@dataclass(frozen=True)
class Trajectory:
    """As imitation.data.types.Trajectory."""

    obs: Any
    acts: Any
    infos: Any = None
    terminal: bool = False

    def __len__(self) -> int:
        return len(self.acts)


@dataclass(frozen=True)
class TrajectoryWithRew(Trajectory):
    rews: Any = None


@dataclass(frozen=True)
class Transitions:
    """As imitation.data.types.Transitions: flat, and a sequence of dicts."""

    obs: Any
    acts: Any
    infos: Any
    next_obs: Any
    dones: Any

    def __len__(self) -> int:
        return len(self.obs)

    def __getitem__(self, key: int) -> Any:
        return {"obs": self.obs[key], "acts": self.acts[key]}


class DictObs:
    """As imitation.data.types.DictObs."""

    def __init__(self, parts: dict[str, Any]) -> None:
        self._d = parts

    def unwrap(self) -> dict[str, Any]:
        return self._d

    def __len__(self) -> int:
        return len(next(iter(self._d.values())))


def episode(observations: Any, actions: Any, ended: bool = False, cut: bool = False, **parts: Any) -> Any:
    """An episode with Minari's names."""
    T = len(actions)
    flags = np.arange(T) == T - 1
    return SimpleNamespace(
        observations=observations, actions=actions, terminations=flags & ended, truncations=flags & cut, **parts
    )


def steps_of(demos: rv.Demonstrations) -> list[list[int]]:
    steps = demos.steps
    assert steps is not None
    parts = (steps.agent, steps.time, steps.state, steps.action, steps.next_state, steps.first)
    return [part.astype(int).tolist() for part in parts]


# the same episode, however it is written


def flat(n: int = 1, **parts: Any) -> Transitions:
    told: dict[str, Any] = {
        "obs": np.tile(STATES[:3], n), "acts": np.tile(ACTIONS, n), "infos": np.array([{}] * 3 * n),
        "next_obs": np.tile(STATES[1:], n), "dones": np.tile([False, False, True], n),
    }  # fmt: skip
    return Transitions(**(told | parts))


hot = np.eye(4)
LED = [(STATES[t], ACTIONS[t], 0.5, STATES[t + 1]) for t in range(3)]  # obs, action, reward, next_obs
SAME: dict[str, Any] = {
    "minari": [episode(np.array(STATES), np.array(ACTIONS))],
    "imitation": [Trajectory(np.array(STATES), np.array(ACTIONS))],
    "with rewards": [TrajectoryWithRew(np.array(STATES), np.array(ACTIONS), rews=np.zeros(3))],
    "one alone": Trajectory(np.array(STATES), np.array(ACTIONS)),
    "transitions": flat(),
    "a data set": SimpleNamespace(iterate_episodes=lambda: iter([episode(STATES, ACTIONS)])),
    "whole floats": [episode(np.array(STATES, dtype=np.float32), ACTIONS)],
    "one-element arrays": [episode([np.array([s]) for s in STATES], np.array(ACTIONS)[:, None])],
    "one-hot": [episode(hot[STATES], np.eye(2)[ACTIONS])],
    "one-hot by hand": [episode([hot[s].astype(int).tolist() for s in STATES], ACTIONS)],
    "dicts": [episode([{"observation": s} for s in STATES], ACTIONS)],
    "a dict of arrays": [episode({"observation": np.array(STATES)}, ACTIONS)],
    "imitation's dicts": [Trajectory(DictObs({"observation": np.array(STATES)}), ACTIONS)],
    "a tuple of arrays": [episode((np.array(STATES),), ACTIONS)],
    "keys of Minari": [{"observations": np.array(STATES), "actions": np.array(ACTIONS)}],
    "keys of imitation": [{"obs": STATES, "acts": ACTIONS, "terminal": False}],
    "one dict alone": {"observations": STATES, "actions": ACTIONS, "rewards": np.zeros(3)},
    "flat keys": {"obs": STATES[:3], "acts": ACTIONS, "next_obs": STATES[1:], "dones": [False, False, True]},
    "next_obs, done, info": [(*step, k == 2, {}) for k, step in enumerate(LED)],
    "next_obs, done": [(*step, k == 2) for k, step in enumerate(LED)],
    "next_obs and flags": [(*step, k == 2, False) for k, step in enumerate(LED)],
    "next_obs, flags, info": [[(*step, np.False_, k == 2, {}) for k, step in enumerate(LED)]],
}


@pytest.mark.parametrize("written", SAME.values(), ids=list(SAME))
def test_one_episode_is_one_trajectory_however_it_is_written(written):
    demos = rv.Demonstrations.from_episodes(written, n_states=4, n_actions=2)
    assert steps_of(demos) == steps_of(PLAIN)
    np.testing.assert_array_equal(demos.starts, PLAIN.starts)
    np.testing.assert_array_equal(demos.transition_counts.toarray(), PLAIN.transition_counts.toarray())


def test_from_trajectories_reads_them_too():
    for written in (SAME["minari"], SAME["imitation"], SAME["transitions"], SAME["a data set"]):
        assert steps_of(rv.Demonstrations.from_trajectories(written, 4, 2)) == steps_of(PLAIN)


def test_a_real_minari_episode():
    data = pytest.importorskip("minari.dataset.episode_data")
    T = len(ACTIONS)
    one = data.EpisodeData(7, np.array(STATES), np.array(ACTIONS), np.zeros(T), np.zeros(T, bool), np.ones(T, bool), {})
    demos = rv.Demonstrations.from_episodes([one], n_states=4, n_actions=2)
    assert steps_of(demos) == steps_of(PLAIN)
    assert demos.ids == (7,)


def test_sizes_come_from_the_model_else_the_data_sets_spaces_else_the_data():
    data = SimpleNamespace(
        iterate_episodes=lambda: [episode(STATES, ACTIONS)],
        observation_space=SimpleNamespace(n=9),
        action_space=SimpleNamespace(n=5),
    )
    read = rv.Demonstrations.from_episodes
    sizes = [(d.n_states, d.n_actions) for d in (read(data, corridor(6)), read(data), read(SAME["minari"]))]
    assert sizes == [(6, 2), (9, 5), (3, 2)]
    with pytest.raises(rv.errors.InvalidDemonstrations, match=r"`n_states`: expected 6, as in the MDP; got 5"):
        read(data, corridor(6), n_states=5)


def test_state_of_turns_any_observation_into_a_state_one_at_a_time():
    seen = []

    def cell(obs: Any) -> int:
        seen.append(obs)
        return int(obs["row"] * 2 + obs["column"])

    told = {"row": np.array(STATES) // 2, "column": np.array(STATES) % 2}
    forces = [[0.2], [0.7], [-0.1]]
    demos = rv.Demonstrations.from_episodes(
        [episode(told, forces)], state_of=cell, action_of=lambda force: int(force[0] > 0), n_states=4
    )
    assert steps_of(demos) == steps_of(PLAIN)
    assert len(seen) == 4


def test_observations_may_be_labels_of_the_model():
    cells, moves = [(0, "a"), (0, "b"), (1, "a"), (1, "b")], ["left", "right"]
    mdp = corridor(4).replace(state_labels=cells, action_labels=moves)
    told = episode([cells[s] for s in STATES], [moves[a] for a in ACTIONS])
    demos = rv.Demonstrations.from_episodes([told], mdp)
    assert steps_of(demos) == steps_of(PLAIN)
    assert demos.state_labels == tuple(cells)
    assert demos.action_labels == ("left", "right")


def test_an_episode_without_a_decision_still_tells_where_it_began():
    demos = rv.Demonstrations.from_episodes([episode([2], []), episode(STATES, ACTIONS)], n_states=4)
    np.testing.assert_array_equal(demos.starts, [1, 0, 1, 0])
    assert demos.n_decisions == 3


# flat transitions, and steps of a loop


def test_transitions_are_cut_at_dones():
    demos = rv.Demonstrations.from_episodes(flat(3), n_states=4)
    assert steps_of(demos) == steps_of(rv.Demonstrations.from_trajectories([(STATES, ACTIONS)] * 3, 4, 2))
    assert demos.notes == ()


def test_transitions_that_do_not_follow_each_other_are_broken_and_it_is_said():
    """Rows are missing between them: what follows belongs to the same episode, and is no start."""
    demos = rv.Demonstrations.from_episodes(flat(dones=np.zeros(3, bool), next_obs=[3, 2, 1]), n_states=4)
    apart = rv.Demonstrations.from_trajectories([([0, 3], [1]), ([1, 2, 1], [1, 0])], 4, 2)
    np.testing.assert_array_equal(demos.transition_counts.toarray(), apart.transition_counts.toarray())
    np.testing.assert_array_equal(demos.counts, apart.counts)
    np.testing.assert_array_equal(demos.starts, [1, 0, 0, 0])
    assert demos.n_agents == 1
    assert demos.notes == (
        "1 transition does not begin where the previous one led; trajectories are split there, the second part is not "
        "a start, and times continue as if nothing were missing. `dones` must mark where episodes end.",
    )


def in_a_loop(ends: list[tuple[bool, bool]]) -> list[Any]:
    told = zip(STATES, ACTIONS, ends, strict=False)
    return [(s, a, 0.0, terminated, truncated, {}) for s, a, (terminated, truncated) in told]


def test_steps_of_a_loop_are_cut_where_an_episode_ends():
    one = in_a_loop([(False, False), (False, False), (False, True)])
    expected = rv.Demonstrations.from_trajectories([(STATES[:3], ACTIONS)] * 2, 4, 2)
    for written in (one + one, [one, one]):  # one long list, or a list per episode
        assert steps_of(rv.Demonstrations.from_episodes(written, n_states=4)) == steps_of(expected)
    split = in_a_loop([(False, False), (False, True), (False, False)])
    halves = rv.Demonstrations.from_trajectories([([0, 1], [1, 1]), ([2], [0])], 4, 2)
    assert steps_of(rv.Demonstrations.from_episodes(split, n_states=4)) == steps_of(halves)


# how episodes end


@pytest.mark.parametrize("info", [(), ({},)], ids=["plain", "info"])
@pytest.mark.parametrize("flags", [1, 2], ids=["done", "terminated and truncated"])
def test_steps_without_the_next_observation_are_cut_at_their_flags(flags, info):
    ends = [(0, 1, 0.0, False), (1, 0, 1.0, True), (2, 1, 0.0, False), (3, 1, 0.0, False)]
    written = [(*step, *[False] * (flags - 1), *info) for step in ends]
    demos = rv.Demonstrations.from_episodes(written, n_states=4, n_actions=2)
    assert steps_of(demos) == steps_of(rv.Demonstrations.from_trajectories([([0, 1], [1, 0]), ([2, 3], [1, 1])], 4, 2))


def test_steps_that_do_not_follow_each_other_are_broken_and_it_is_said():
    demos = rv.Demonstrations.from_episodes([(0, 1, 0.0, 1, False), (2, 1, 0.0, 3, False)], n_states=4, n_actions=2)
    apart = rv.Demonstrations.from_trajectories([([0, 1], [1]), ([2, 3], [1])], 4, 2)
    np.testing.assert_array_equal(demos.transition_counts.toarray(), apart.transition_counts.toarray())
    np.testing.assert_array_equal(demos.starts, [1, 0, 0, 0])
    assert demos.notes[0].startswith("1 transition does not begin where the previous one led")


@pytest.mark.parametrize("info", [{}, {"TimeLimit.truncated": True}])
def test_a_time_limit_is_no_end_where_done_says_both(info):
    """An ended episode led to the end that the model appended, a truncated one to what was seen."""
    mdp = ending()
    ended = rv.Demonstrations.from_episodes([(2, 1, 0.0, 2, True, info)], mdp)
    plain = rv.Demonstrations.from_episodes([episode([2, 2], [1], ended=not info, cut=bool(info))], mdp)
    assert steps_of(ended) == steps_of(plain)
    assert ended.steps is not None
    assert ended.steps.next_state.tolist() == [2 if info else 3]


def ending() -> rv.MDP:
    """A corridor of three cells; stepping right out of the last ends, in a state that was appended."""
    T = np.zeros((4, 2, 4))
    for s in range(3):
        T[s, 0, max(s - 1, 0)] = T[s, 1, s + 1] = 1.0
    return rv.MDP(T, 0.9, terminal=[False, False, False, True])


def led_to(written: Any, mdp: rv.MDP) -> int:
    demos = rv.Demonstrations.from_episodes(written, mdp)
    assert demos.steps is not None
    return int(demos.steps.next_state[-1])


def test_an_ended_episode_led_to_the_appended_end_and_a_truncated_one_to_what_was_seen():
    walk = ([0, 1, 2, 2], [1, 1, 1])  # the environment shows the last cell again
    assert led_to([episode(*walk, ended=True)], ending()) == 3
    assert led_to([episode(*walk, ended=True, cut=True)], ending()) == 3
    assert led_to([episode([0, 1, 2, 1], [1, 1, 0], cut=True)], ending()) == 1
    assert led_to([Trajectory(*walk, terminal=True)], ending()) == 3
    assert led_to([Trajectory([0, 1, 2, 1], [1, 1, 0], [{}, {}, {"TimeLimit.truncated": True}], True)], ending()) == 1
    assert led_to([episode([0, 1, 2, 3], [1, 1, 1], ended=True)], ending()) == 3  # seen as it is


def test_steps_of_a_loop_that_ended_led_to_the_only_end_there_is():
    step = [(2, 1, 1.0, True, False, {})]
    assert led_to(step, ending()) == 3
    assert led_to([(2, 0, 1.0, False, True, {})], ending()) == -1  # cut off: not seen
    two = ending().replace(transitions=np.concatenate([ending().transitions.matrix.toarray()[:5],
                                                       [[0.5, 0, 0, 0.5]], np.zeros((2, 4))]).reshape(4, 2, 4),
                           terminal=[True, False, False, True])  # fmt: skip
    assert led_to(step, two) == -1  # which of two ends was not written down


def test_an_end_that_the_model_does_not_know_is_an_error():
    with pytest.raises(rv.errors.InvalidDemonstrations) as caught:
        rv.Demonstrations.from_episodes([episode(STATES, ACTIONS), episode(STATES, ACTIONS, ended=True)], ending())
    assert str(caught.value) == (
        "an episode terminated in state 1, which is not terminal in "
        "the MDP (after action 0 in state 2) (first at episode 1, step 3). Take the model from MDP.from_gymnasium, "
        "mark the state terminal, or pass n_states= and n_actions= instead of mdp."
    )
    assert led_to([episode(STATES, ACTIONS, ended=True)], corridor(4)) == 1  # a model in which nothing ends


def test_an_end_that_was_seen_is_no_appended_one():
    """The last state of this model is observed elsewhere, so an end somewhere else is not it."""
    seen = episode([0, 1, 2, 3], [1, 1, 1], ended=True)
    with pytest.raises(rv.errors.InvalidDemonstrations, match="state 2, which is not terminal"):
        rv.Demonstrations.from_episodes([seen, episode([0, 1, 2, 2], [1, 1, 1], ended=True)], ending())


# what says nothing


FLAT_PARTS = {"obs": STATES[:-1], "acts": ACTIONS, "next_obs": STATES[1:]}
REFUSED: dict[str, tuple[Any, str]] = {
    "words": ([{"observations": STATES, "actions": ACTIONS, "terminations": ["False"] * 3}], "`terminations`: exp"),
    "masked flags": ({**FLAT_PARTS, "dones": np.ma.array([0, 0, 1], mask=[False, True, False])}, "`dones`: .*masked"),
    "unknown flags": ({**FLAT_PARTS, "dones": [0, np.nan, 1]}, r"`dones`: .* got nan \(first at episode 0, step 1\)"),
    "flags as text": ({**FLAT_PARTS, "dones": ["False", "False", "True"]}, "`dones`: expected True and False"),
    "few flags": ({**FLAT_PARTS, "dones": [False, True]}, r"one per step \(3\); got 2 \(first at episode 0\)"),
    "few next": ({**FLAT_PARTS, "dones": [0, 0, 1], "next_obs": [1, 2]}, "got 2 of `next_obs` and 3 of `acts`"),
    "more seen": ({**FLAT_PARTS, "dones": [0, 0, 1], "obs": STATES}, "got 4 of `obs` and 3 of `acts`"),
    "terminal as text": ([{"obs": STATES, "acts": ACTIONS, "terminal": "False"}], "`terminal`: expected True and"),
    "rewards as text": ([{"obs": STATES, "acts": ACTIONS, "rews": ["x"] * 3}], "`rewards`: expected numbers"),
    "flags too long": (
        [{"observations": STATES, "actions": ACTIONS, "truncations": [0, 0, 0, 0, 1]}],
        r"`truncations`: expected True and False, one per step \(3\); got 5 \(first at episode 0\)",
    ),
    "between": ([episode([0, 1, 2.5, 1], ACTIONS)], r"`observations`: .* in 0…3; got 2.5 \(.* 0, step 2\)"),
    "beyond": ([episode(STATES, ACTIONS), episode([0, 4], [1])], r"got 4 \(first at episode 1, step 1\)"),
    "negative": ([episode([0, -1], [1])], r"got -1 \(first at episode 0, step 1\)"),
    "two keys": ([episode([{"a": 0, "b": 1}] * 4, ACTIONS)], r"got {'a': 0, 'b': 1} \(first at episode 0, step 0\)"),
    "two hot": ([episode([[0, 1, 1, 0]] * 4, ACTIONS)], r"got \[?\(?0, 1, 1, 0"),
    "wrong width": ([episode([[0, 1]] * 4, ACTIONS)], "step 0"),
    "text": ([episode(["x"] * 4, ACTIONS)], r"got 'x'.*Pass state_of=, a function"),
    "nothing": ([episode([np.nan] * 4, ACTIONS)], "got nan"),
    "actions": ([episode(STATES, [0.5, 1, 1])], r"`actions`: .* got 0.5 \(first at episode 0, step 0\).*action_of="),
    "bad actions": ([episode(STATES, [0, 1, 2])], r"`actions`: expected indices in 0…1; got 2 \(.*step 2"),
    "lengths": ([episode([0, 1], ACTIONS)], r"got 2 observations and 3 actions \(first at episode 0"),
    "pairs": ([episode(STATES, ACTIONS), (STATES, ACTIONS)], r"a tuple of 2: list, list \(.* 1\).*from_trajectories"),
    "a dict of others": ([{"s": STATES, "a": ACTIONS}], r"a dict with the keys s, a \(.* 0\). A dict is an episode if"),
    "a dict alone": ({"s": STATES, "a": ACTIONS}, r"a dict with the keys s, a\. A dict is an episode if it has obs"),
    "what step returns": ([(1, 0.0, False, False, {})], r"a tuple of 5: int, float, bool, bool, dict .* the action"),
    "what step returned": ([(1, 0.0, False, {})], r"a tuple of 4: int, float, bool, dict \(.*\). What env.step"),
    "flags that are numbers": ([(0, 1, 0.0, 1, 0, {})], r"a tuple of 6: int, int, float, int, int, dict .*True or"),
    "a step of another kind": ([(0, 1, 0.0, False), (1, 1, 0.0)], r"\(obs, action, reward, done\); got a tuple of 3"),
    "a flat dict": ({"observations": STATES, "actions": ACTIONS, "terminals": [0, 1, 0]}, "arrays with `terminals`"),
    "two in one dict": (
        {"observations": STATES, "actions": ACTIONS, "terminations": [False, True, False]},
        r"`terminations` may be True only at the last step of an episode \(first at episode 0, step 1\)",
    ),
    "no episode": (3, "`episodes`: expected Minari"),
    "none": ([], "at least one"),
}  # fmt: skip


@pytest.mark.parametrize(("written", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_says_nothing_is_refused_with_its_place(written, message):
    with pytest.raises(rv.errors.InvalidDemonstrations, match=message):
        rv.Demonstrations.from_episodes(written, n_states=4, n_actions=2)


def test_what_state_of_returns_is_checked_too():
    with pytest.raises(
        rv.errors.InvalidDemonstrations, match=r"0…3 from state_of; got 8 \(first at episode 0, step 0\)"
    ):
        rv.Demonstrations.from_episodes(SAME["minari"], n_states=4, state_of=lambda s: s + 8)
    with pytest.raises(rv.errors.InvalidInput, match="state_of"):
        rv.Demonstrations.from_episodes(SAME["minari"], n_states=4, state_of="x")  # pyright: ignore[reportArgumentType]


# Gymnasium


SCALES = {"FrozenLake-v1": 20.0, "CliffWalking-v1": 3.0, "Taxi-v4": 1.0}


@pytest.mark.parametrize("name", SCALES)
def test_rollouts_of_a_known_expert_fit_without_impossible_moves(name):
    """CCP and NPL on roll-outs of an expert who is soft-optimal come as close to it as the sample allows."""
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make(name)
    world = rv.environments.from_gymnasium(env, 0.95, scale=SCALES[name], expert="soft")
    episodes = rv.environments.rollout(env, world.expert, 150, seed=0, length=100)
    assert any(one.ended for one in episodes)
    demos = rv.Demonstrations.from_episodes(episodes, world.mdp)
    assert impossible_moves(world.mdp, demos) is None
    assert demos.action_labels == world.mdp.action_labels
    for method in (rv.CCP, rv.NPL):
        fit = method(world.reward_model(), first_step="smoothed").fit(world.mdp, demos)
        assert not any("impossible" in note for note in fit.status.notes)
        assert world.evaluate(fit)["excess_nll"] < 0.03


def test_the_end_of_taxi_is_met_as_often_as_episodes_end():
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("Taxi-v4")
    world = rv.environments.from_gymnasium(env, 0.95)
    episodes = rv.environments.rollout(env, world.expert, 20, seed=3)
    demos = rv.Demonstrations.from_episodes(episodes, world.mdp)
    end = world.mdp.n_states - 1
    assert world.mdp.terminal[end]
    assert demos.transition_counts[:, [end]].sum() == sum(one.ended for one in episodes) > 0


# what could be read in two ways


@pytest.mark.parametrize("T", [1, 2])
def test_a_tuple_over_time_or_over_parts_is_refused_where_it_may_be_both(T):
    """Two parts over two times: transposed, it would be other observations."""
    told = (np.arange(2), np.arange(2) + 1)
    with pytest.raises(rv.errors.InvalidDemonstrations, match="which could be either"):
        rv.Demonstrations.from_episodes([episode(told, [0] * T)], state_of=lambda obs: int(obs[0]), n_states=4)
    space = SimpleNamespace(spaces=(None, None))
    data = SimpleNamespace(iterate_episodes=lambda: [episode(told, [0] * T)], observation_space=space)
    seen: list[Any] = []
    rv.Demonstrations.from_episodes(data, state_of=lambda obs: seen.append(obs) or int(obs[0]), n_states=4)
    assert [tuple(map(int, obs)) for obs in seen] == [(0, 1), (1, 2)]  # a data set says of how many parts it is


def test_next_observations_before_the_reward_are_noticed():
    """(s, a, s', r, done) is written, too: rewards of 0 and 1 would be next states."""
    right = [(0, 1, 1.0, 1, False), (1, 1, 0.0, 2, False), (2, 0, 1.0, 1, True)]
    swapped = [(s, a, led, r, done) for s, a, r, led, done in right]
    whole = [(s, a, led, int(r), done) for s, a, r, led, done in right]
    assert rv.Demonstrations.from_episodes(right, n_states=4).transition_counts.sum() == 3
    for written in (swapped, whole):
        with pytest.raises(
            rv.errors.InvalidDemonstrations, match=r"got what looks like \(obs, action, next_obs, reward"
        ):
            rv.Demonstrations.from_episodes(written, n_states=4)


def test_observations_that_look_like_flags_are_refused_where_that_matters():
    steps = [(False, 1, 0.0, True, False), (True, 0, 0.0, True, True)]  # next_obs and done, or two flags
    with pytest.raises(rv.errors.InvalidDemonstrations, match="write them as 0 and 1"):
        rv.Demonstrations.from_episodes(steps, state_of=int, n_states=2)


def test_rows_of_numbers_are_labels_of_several_parts_where_the_model_has_such():
    """[1, 0] is the one-hot vector of the first state, and the label of the second."""
    moves = np.full((2, 2, 2), 0.5)
    model = rv.MDP(moves, 0.9, state_labels=[(0, 1), (1, 0)], action_labels=["a", "b"])
    read = rv.Demonstrations.from_episodes
    for rows in ([[0, 1], [1, 0]], [(0, 1), (1, 0)], np.array([[0.0, 1.0], [1.0, 0.0]])):
        np.testing.assert_array_equal(read([episode(rows, ["a", "b"])], model).counts, [[1, 0], [0, 1]])
    with pytest.raises(rv.errors.InvalidDemonstrations, match="or labels; got"):
        read([episode([[0, 1], [1, 1]], ["a", "b"])], model)


def test_truth_values_are_labels_and_their_numbers_no_positions_in_another_order():
    model = rv.MDP(np.full((2, 2, 2), 0.5), 0.9, state_labels=[True, False])
    read = rv.Demonstrations.from_episodes
    for seen in ([True, True, False], np.array([True, True, False])):
        np.testing.assert_array_equal(read([episode(seen, [0, 1])], model).counts, [[1, 1], [0, 0]])
    with pytest.raises(rv.errors.InvalidDemonstrations, match="labels of the model; got 1"):
        read([episode([1, 1, 0], [0, 1])], model)
    with pytest.raises(rv.errors.InvalidInput, match="one of True, False; got 1"):
        model.replace(initial={1: 1.0})
