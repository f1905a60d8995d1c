"""Tables of outcomes: which states end, and what is refused because it is more than its table."""

import pickle
import random
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.errors import InvalidInput, InvalidMask, InvalidTransitions
from revealed.gymnasium_table import read_table
from toy_tables import Tiny, ends, make, sure, tiny

gymnasium = pytest.importorskip("gymnasium")


# --------------------------------------------------------------------------------------------- terminal states, by rule


def test_duplicate_outcomes_add_up():
    row = [(0.25, 1, 4.0, False), (0.5, 0, 2.0, False), (0.25, 1, -8.0, False)]
    table = read_table(Tiny({0: {0: row}, 1: {0: sure(0, 1.0)}}))
    np.testing.assert_allclose(table.transitions.toarray(), [[0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_allclose(table.reward, [[0.25 * 4 + 0.5 * 2 - 0.25 * 8], [1.0]])


def test_a_state_entered_only_by_terminated_outcomes_is_terminal_whatever_its_own_rows_are():
    mdp = tiny({0: {0: sure(1, terminated=True)}, 1: {0: sure(0, -3.0)}})
    assert (mdp.n_states, ends(mdp)) == (2, [1])


def test_a_state_entered_both_ways_goes_on_and_the_end_is_appended():
    P = {0: {0: sure(1, 5.0, True), 1: sure(1, 7.0)}, 1: {0: sure(0), 1: sure(0)}}
    table = read_table(Tiny(P))
    np.testing.assert_array_equal(table.terminal, [False, False, True])
    np.testing.assert_array_equal(
        table.transitions.toarray(), [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    )
    np.testing.assert_array_equal(table.reward, [[5, 7], [0, 0], [0, 0]])


def test_only_one_state_is_appended_and_those_that_end_properly_stay():
    P = {0: {0: sure(1, 1.0, True), 1: sure(0, 1.0, True), 2: sure(2, 1.0, True)}, 1: {0: sure(1), 1: sure(0)}}
    P[1][2] = sure(1)  # going back to 1, with reward 0 but not by every action
    P[2] = {a: sure(2, terminated=True) for a in range(3)}
    mdp = tiny(P)
    assert (mdp.n_states, ends(mdp)) == (4, [2, 3])
    np.testing.assert_array_equal(mdp.transitions.matrix[[0, 1, 2]].indices, [3, 3, 2])


def test_outcomes_of_probability_zero_do_not_count():
    never = (0.0, 1, 0.0, False)
    mdp = tiny({0: {0: [*sure(1, terminated=True), never]}, 1: {0: [(0.0, -1, np.nan, None), *sure(1)]}})
    assert (mdp.n_states, ends(mdp)) == (2, [1])
    assert mdp.transitions.matrix.nnz == 1


@pytest.mark.parametrize("flag", [True, False])
def test_an_absorbing_state_does_not_enter_itself(flag):
    loops = {a: sure(2, terminated=flag) for a in range(2)}
    entered = {0: {0: sure(2, 1.0, True), 1: sure(1)}, 1: {0: sure(0), 1: sure(0)}, 2: loops}
    assert ends(tiny(entered)) == [2]
    gone_on = entered | {1: {0: sure(0), 1: sure(2)}}  # now it is entered without an end as well
    mdp = tiny(gone_on)
    assert (mdp.n_states, ends(mdp)) == (4, [3])


def test_a_state_that_can_be_left_or_pays_is_not_absorbing():
    for loop in (sure(1, -1.0), [(0.5, 1, 0.0, False), (0.5, 0, 0.0, False)]):
        mdp = tiny({0: {0: sure(1, 1.0, True)}, 1: {0: loop}})
        assert (mdp.n_states, ends(mdp)) == (3, [2])


def test_an_absorbing_state_that_nobody_enters_is_terminal_only_if_it_says_so():
    def mdp(flag: bool) -> rv.MDP:
        return tiny({0: {0: sure(1, 1.0, True)}, 1: {0: sure(1)}, 2: {0: sure(2, terminated=flag)}})

    assert ends(mdp(True)) == [1, 2]
    assert ends(mdp(False)) == [1]


def test_rows_of_terminal_states_keep_no_other_state_alive():
    """1 is terminal beyond doubt; 2 is entered without an end from 1 alone, and 3 from 2 alone."""
    P = {0: {a: sure(a + 1, terminated=True) for a in range(3)}}
    P |= {s: {a: sure(then) for a in range(3)} for s, then in ((1, 2), (2, 3), (3, 0))}
    mdp = tiny(P)
    assert (mdp.n_states, ends(mdp)) == (4, [1, 2, 3])


def test_rows_of_terminal_states_append_nothing():
    mdp = tiny({0: {0: sure(1, terminated=True)}, 1: {0: sure(0, terminated=True)}}, initial_state_distrib=[1.0, 0.0])
    assert (mdp.n_states, ends(mdp)) == (2, [1])


def test_two_states_that_lead_to_each_other_are_not_terminal():
    P = {0: {0: sure(1, terminated=True), 1: sure(2, terminated=True)}, 1: {0: sure(2), 1: sure(2)}}
    P[2] = {0: sure(1), 1: sure(1)}
    mdp = tiny(P)
    assert (mdp.n_states, ends(mdp)) == (4, [3])


def test_a_start_state_is_never_terminal():
    """Home is where episodes start and end: the end is appended."""
    P = {0: {0: sure(1)}, 1: {0: sure(0, 1.0, True)}}
    assert ends(tiny(P)) == [0]
    mdp = tiny(P, initial_state_distrib=np.array([1.0, 0.0]))
    assert (mdp.n_states, ends(mdp)) == (3, [2])
    assert mdp.initial is not None
    np.testing.assert_array_equal(mdp.initial, [1.0, 0.0, 0.0])


def test_without_a_start_distribution_starts_are_those_that_reset_was_seen_to_give():
    mdp = rv.MDP.from_gymnasium(Walker({0: {0: sure(1)}, 1: {0: sure(0, 1.0, True)}}), 0.9)
    assert (mdp.n_states, ends(mdp), mdp.initial) == (3, [2], None)


@pytest.mark.parametrize(
    "P",
    [
        [[sure(1)], [sure(0)]],
        (({0: sure(1)}), ([sure(0)])),
        np.array([{0: sure(1)}, {0: sure(0)}]),
        {0: {0: [[np.float32(1.0), np.int32(1), np.float64(0.0), np.False_]]}, 1: {0: [(1, np.int64(0), 0, 0)]}},
    ],
)
def test_lists_and_numpy_numbers_will_do(P):
    np.testing.assert_array_equal(rv.MDP.from_gymnasium(Tiny(P), 0.9).transitions.matrix.toarray(), [[0, 1], [1, 0]])


# ------------------------------------------------------------------------------------------------------ what is refused


def wrapped(name: str, *args: Any, **options: Any) -> Any:
    return getattr(gymnasium.wrappers, name)(make("lake"), *args, **options)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda: wrapped("TransformReward", lambda r: 2 * r),
        lambda: wrapped("StickyAction", 0.25),
        lambda: wrapped("DelayObservation", 2),
        lambda: wrapped("TransformAction", lambda a: 3 - a, None),
        lambda: gymnasium.wrappers.TimeLimit(wrapped("RepeatAction", 2), 10),
    ],
)
def test_wrappers_that_change_something_are_refused_by_name(wrap):
    env = wrap()
    with pytest.raises(InvalidInput, match=r"wrapper (\w+)\. Pass env\.unwrapped") as caught:
        rv.MDP.from_gymnasium(env, 0.9)
    assert caught.value.argument == "env"
    assert str(caught.value.got).split()[-1] in repr(env)
    assert rv.MDP.from_gymnasium(env.unwrapped, 0.9).n_states == 16


def test_a_wrapper_of_the_users_own_is_refused_whatever_its_name():
    class Monitor(gymnasium.RewardWrapper):
        def reward(self, reward: Any) -> float:
            return 3.0 * float(reward)

    with pytest.raises(InvalidInput, match="the wrapper Monitor"):
        rv.MDP.from_gymnasium(Monitor(make("lake")), 0.9)


def test_wrappers_that_only_watch_are_harmless():
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.wrappers.Autoreset(make("lake")))
    for name in ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker"):
        assert name in repr(env)
    assert rv.MDP.from_gymnasium(env, 0.9).n_states == 16


@pytest.mark.parametrize("name", ["CartPole-v1", "Blackjack-v1"])
def test_dynamics_that_are_not_a_table_are_refused(name):
    with pytest.raises(InvalidInput, match=r"`env`.*dynamics are not a table\. Build rv\.MDP"):
        rv.MDP.from_gymnasium(gymnasium.make(name), 0.9)


def test_a_fickle_passenger_is_refused():
    with pytest.raises(InvalidInput, match="fickle_passenger=False"):
        rv.MDP.from_gymnasium(gymnasium.make("Taxi-v4", fickle_passenger=True), 0.9)


def test_a_name_or_a_class_is_not_an_environment():
    with pytest.raises(InvalidInput, match=r"Pass gymnasium\.make\('FrozenLake-v1'\)"):
        rv.MDP.from_gymnasium("FrozenLake-v1", 0.9)
    with pytest.raises(InvalidInput, match=r"the class Tiny\. Pass Tiny\(\)"):
        rv.MDP.from_gymnasium(Tiny, 0.9)


@pytest.mark.parametrize(
    "space",
    [
        lambda: gymnasium.spaces.Box(0, 1),
        lambda: gymnasium.spaces.MultiDiscrete([2, 1]),
        lambda: gymnasium.spaces.MultiBinary(2),
        lambda: gymnasium.spaces.Discrete(2, start=1),
    ],
)
@pytest.mark.parametrize("which", ["observation_space", "action_space"])
def test_only_spaces_that_count_from_zero_are_tables(space, which):
    with pytest.raises(InvalidInput, match=rf"`env`.*{which}.*Discrete\(n\)"):
        tiny({0: {0: sure(0)}}, **{which: space()})


GOOD = {0: {0: sure(1)}, 1: {0: sure(0)}}


@pytest.mark.parametrize(
    ("P", "said"),
    [
        ({}, "0 states"),
        ({0: {}, 1: {}}, "0 actions"),
        (GOOD | {1: {}}, "got nothing.*state 1, action 0"),
        (GOOD | {1: None}, "no state 1"),
        ({0: GOOD[0], 2: GOOD[1]}, "no state 1"),
        (GOOD | {1: {0: sure(0), 1: sure(0)}}, "1 actions in every state of P; got 2.*state 1"),
        (GOOD | {1: {0: 3}}, "list of outcomes.*got 3.*state 1, action 0"),
        (GOOD | {1: {0: [(1.0, 0, 0.0)]}}, "four parts.*state 1, action 0"),
        (GOOD | {1: {0: [(1.0, (0, 1), 0.0)]}}, "four parts.*state 1, action 0"),
        (np.full((2, 1, 2), 0.5), r"state 0, action 0.*goes to rv\.MDP"),
        (GOOD | {1: {0: sure(2)}}, "next states 0 to 1.*got 2.*state 1, action 0"),
        (GOOD | {1: {0: sure(-1)}}, "next states 0 to 1.*got -1.*state 1, action 0"),
        (GOOD | {1: {0: [(1.0, 0.0, 0.0, False)]}}, r"whole numbers.*got 0\.0.*state 1, action 0"),
        (GOOD | {1: {0: [(np.nan, 0, 0.0, False)]}}, "probabilities.*nan.*state 1, action 0"),
        (GOOD | {1: {0: [(-0.5, 0, 0.0, False)]}}, "probabilities.*-0.5.*state 1, action 0"),
        (GOOD | {1: {0: sure(0, np.nan)}}, "finite rewards.*nan.*state 1, action 0"),
        (GOOD | {1: {0: [([1, [2]], 0, 0.0, False)]}}, "probabilities.*state 1, action 0"),
        (GOOD | {1: {0: [(1.0, 0, [1, [2]], False)]}}, "finite rewards.*state 1, action 0"),
        (GOOD | {1: {0: sure(0, np.inf)}}, "finite rewards.*inf.*state 1, action 0"),
        (GOOD | {1: {0: [(1.0, 0, "much", False)]}}, "finite rewards.*much.*state 1, action 0"),
        (GOOD | {1: {0: [(1.0, 0, 0.0, None)]}}, "True or False.*None.*state 1, action 0"),
        (GOOD | {1: {0: [(1.0, 0, 0.0, 2)]}}, "True or False.*2.*state 1, action 0"),
    ],
)
def test_bad_tables_are_refused_by_state_and_action(P, said):
    with pytest.raises(InvalidInput, match=f"`env`.*{said}"):
        rv.MDP.from_gymnasium(Tiny(P), 0.9)


def test_a_table_and_its_space_have_as_many_states():
    for n, said in ((1, "got 2 states"), (3, "no state 2")):
        with pytest.raises(InvalidInput, match=said):
            tiny(GOOD, observation_space=SimpleNamespace(n=n))


def test_a_defaultdict_is_not_filled_by_asking():
    P: Any = defaultdict(lambda: defaultdict(list), {0: defaultdict(list, {0: sure(0)})})
    with pytest.raises(InvalidInput, match="no state 1"):
        tiny(P, observation_space=SimpleNamespace(n=2))
    assert list(P) == [0]


def test_rows_that_do_not_sum_to_one_are_the_models_to_report():
    with pytest.raises(InvalidTransitions, match=r"row sum 0\.75.*state 1, action 0"):
        tiny(GOOD | {1: {0: [(0.75, 0, 0.0, False)]}})


@pytest.mark.parametrize("initial", [[0.5, 0.5, 0.0], "here", [[1.0, 0.0]]])
def test_start_distributions_of_another_shape_are_refused(initial):
    with pytest.raises(InvalidInput, match=r"`env`.*initial_state_distrib of 2"):
        tiny(GOOD, initial_state_distrib=initial)


@pytest.mark.parametrize("mask", [lambda s: [1, 0], lambda s: None, lambda s: [2], lambda: [1], lambda s: [1][s]])
def test_bad_masks_are_refused_unless_they_are_not_wanted(mask):
    env = Tiny(GOOD, action_mask=mask)
    with pytest.raises(InvalidInput, match=r"`env`.*action_mask\(state\).*state [01].*masks=False"):
        rv.MDP.from_gymnasium(env, 0.9)
    assert rv.MDP.from_gymnasium(env, 0.9, masks=False).n_states == 2


def test_a_mask_without_any_action_is_the_models_to_report():
    with pytest.raises(InvalidMask, match="state 1"):
        tiny(GOOD, action_mask=lambda s: [1 - s])


# ------------------------------------------------------------------------------------------------- step() against table


class Walker(Tiny):
    """An environment that can be walked: starts in state 0, follows its table, but in state 1 `strays` if told to."""

    strays: Any = None
    render_mode: str | None = None
    drawn: list[str] = []  # shared with copies
    s = -1

    def reset(self, *, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        self.s = 0
        return self.s, {}

    def step(self, a: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        random.random()
        np.random.random()  # noqa: NPY002
        if self.render_mode is not None:
            self.drawn.append(self.render_mode)
        _, moved, reward, terminated = self.P[self.s][a][0]
        if self.strays is not None and self.s == 1:
            moved, reward, terminated = self.strays
        self.s = moved
        return moved, reward, terminated, False, {}


RING = {0: {0: sure(1), 1: sure(1)}, 1: {0: sure(0, 1.0), 1: sure(2)}, 2: {0: sure(0), 1: sure(0)}}


@pytest.mark.parametrize(
    ("strays", "said"),
    [
        ((1, 0.0, False), "to state 1 with reward 0,"),
        ((2, 9.0, False), "to state 2 with reward 9,"),
        ((2, 0.0, True), "to state 2 with reward 0, terminated,"),
        ((7, 0.0, False), "to state 7 "),
    ],
)
def test_a_step_that_the_table_does_not_list_is_refused(strays, said):
    P = RING | {1: {0: sure(2), 1: sure(2)}}
    with pytest.raises(InvalidInput, match=rf"`env`.*{said}.*which P does not list.*state 1, action [01]"):
        rv.MDP.from_gymnasium(Walker(P, strays=strays), 0.9)
    assert rv.MDP.from_gymnasium(Walker(P, strays=(2, 0.0, False)), 0.9).n_states == 3


def test_a_subclass_with_rewards_of_its_own_is_refused():
    from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

    class Shaped(FrozenLakeEnv):
        def step(self, a: int) -> Any:
            s, r, terminated, truncated, info = super().step(a)
            return s, r + 0.1 * s, terminated, truncated, info

    with pytest.raises(InvalidInput, match="which P does not list"):
        rv.MDP.from_gymnasium(Shaped(), 0.9)


def test_a_reset_that_the_start_distribution_does_not_list_is_refused():
    with pytest.raises(InvalidInput, match=r"`env`.*reset\(\).*initial_state_distrib.*got state 0"):
        rv.MDP.from_gymnasium(Walker(RING, initial_state_distrib=[0.0, 1.0, 0.0]), 0.9)


def test_only_feasible_actions_are_tried():
    env = Walker(RING, strays=(0, 1.0, False), action_mask=lambda s: [1, s != 1])  # only action 1 strays in state 1
    assert rv.MDP.from_gymnasium(env, 0.9).n_states == 3
    with pytest.raises(InvalidInput, match="state 1, action 1"):
        rv.MDP.from_gymnasium(env, 0.9, masks=False)


def test_what_cannot_be_copied_or_stepped_is_taken_at_its_word():
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no")

    uncopied = type("Uncopied", (Walker,), {"__deepcopy__": refuse})
    for env in (uncopied(RING, strays=(7, 0.0, False)), Walker(RING, reset=refuse), Walker(RING, step=refuse)):
        assert rv.MDP.from_gymnasium(env, 0.9).n_states == 3


def trace(env: Walker) -> tuple[Any, ...]:
    return random.getstate(), pickle.dumps(np.random.get_state()), dict(env.__dict__)  # noqa: NPY002


def test_trying_out_leaves_no_trace():
    env = Walker(RING, render_mode="human", s=2)
    before = trace(env)
    rv.MDP.from_gymnasium(env, 0.9)
    assert trace(env) == before
    assert Walker.drawn == []
    env.reset()
    env.step(0)
    assert trace(env) != before


def test_the_users_episode_goes_on_as_if_nothing_had_happened():
    def episode(look: bool) -> list[int]:
        env = make("lake")
        env.reset(seed=3)
        env.action_space.seed(5)
        if look:
            rv.MDP.from_gymnasium(env, 0.9)
        return [int(env.step(env.action_space.sample())[0]) for _ in range(3)]

    assert episode(look=True) == episode(look=False)
