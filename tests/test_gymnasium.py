"""The environments that Gymnasium brings: the model says what the table says, and they are worlds."""

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.environments.gymnasium import from_gymnasium
from revealed.environments.world import GridWorld
from revealed.errors import InvalidDiscount, InvalidInput
from revealed.gymnasium_table import read_table
from revealed.mdp import Floats
from toy_tables import ENVIRONMENTS, Tiny, make, sure

gymnasium = pytest.importorskip("gymnasium")

ISLAND = ["SFHH", "FFHH", "FFFF", "FFFG"]  # the hole in the corner is next to holes only


def value_iteration(P: Any, discount: float) -> Floats:
    """The best value of every state of the original table; what is terminated is worth its reward and no more."""
    A, flat = len(P[0]), [(s * len(P[s]) + a, *outcome) for s in P for a in P[s] for outcome in P[s][a]]
    pair, p, moved, reward, terminated = (np.array(part) for part in zip(*flat))
    V = np.zeros(len(P))
    for _ in range(100_000):
        worth = p * (reward + discount * np.where(terminated, 0.0, V[moved]))
        new = np.bincount(pair, weights=worth, minlength=len(P) * A).reshape(-1, A).max(axis=1)
        if np.abs(new - V).max() <= 1e-14 * max(1.0, np.abs(new).max()):
            return new
        V = new
    raise AssertionError("value iteration did not settle")


# ------------------------------------------------------------------------------------------ those that Gymnasium brings


@pytest.mark.parametrize("masks", [True, False])
@pytest.mark.parametrize("discount", [0.95, 0.99, 1.0])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_best_value_of_the_model_is_that_of_the_original_table(name, discount, masks):
    """Taxi's masks rule out only what changes nothing, and that is never better than what does."""
    env = make(name)
    mdp, reward = rv.MDP.from_gymnasium(env, discount, masks=masks), read_table(env, masks).reward
    alive = np.flatnonzero(~mdp.terminal[: len(env.unwrapped.P)])
    value = rv.solve_hard(mdp, reward).value
    np.testing.assert_allclose(value[alive], value_iteration(env.unwrapped.P, discount)[alive], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_rows_of_the_table_sum_to_one_but_for_those_of_terminal_states(name):
    table = read_table(make(name))
    sums = np.asarray(table.transitions.sum(axis=1)).reshape(table.reward.shape)
    np.testing.assert_allclose(sums[~table.terminal], 1.0, rtol=0, atol=1e-12)
    assert not sums[table.terminal].any()
    assert not table.reward[table.terminal].any()


@pytest.mark.parametrize(
    ("name", "n_states", "terminal"),
    [
        ("lake", 16, [5, 7, 11, 12, 15]),
        ("frozen solid", 16, [5, 7, 11, 12, 15]),
        ("large lake", 64, [19, 29, 35, 41, 42, 46, 49, 52, 54, 59, 63]),
        ("cliff", 48, [47]),
        ("slippery cliff", 48, [47]),
        ("taxi", 501, [500]),  # beside a passenger who is already there one can drive on: such states are no end
        ("taxi in the rain", 501, [500]),
    ],
)
def test_states_where_episodes_only_end_are_terminal(name, n_states, terminal):
    mdp = rv.MDP.from_gymnasium(make(name), 0.99)
    assert mdp.n_states == n_states
    np.testing.assert_array_equal(np.flatnonzero(mdp.terminal), terminal)


def test_a_hole_that_only_holes_surround_is_terminal_too():
    mdp = rv.MDP.from_gymnasium(gymnasium.make("FrozenLake-v1", desc=ISLAND), 0.99)
    np.testing.assert_array_equal(np.flatnonzero(mdp.terminal), [2, 3, 6, 7, 15])
    assert mdp.n_states == 16


@pytest.mark.parametrize("name", ["lake", "cliff", "taxi"])
def test_the_start_distribution_comes_along(name):
    env = make(name)
    initial = rv.MDP.from_gymnasium(env, 0.99).initial
    assert initial is not None
    original = env.unwrapped.initial_state_distrib
    np.testing.assert_allclose(initial[: original.size], original, rtol=1e-15)
    assert not initial[original.size :].any()


def test_masks_come_along_and_can_be_left_out():
    env = make("taxi")
    masked, free = rv.MDP.from_gymnasium(env, 0.99), rv.MDP.from_gymnasium(env, 0.99, masks=False)
    offered = np.array([env.unwrapped.action_mask(s) for s in range(500)]) == 1
    np.testing.assert_array_equal(masked.feasible[:500], offered)
    assert free.feasible[:500].all()
    assert 0 < offered.sum() < offered.size


@pytest.mark.parametrize(
    ("name", "action", "move"),
    [
        *(("frozen solid", action, move) for action, move in [("left", -1), ("right", 1), ("up", -4), ("down", 4)]),
        *(("cliff", action, move) for action, move in [("left", -1), ("right", 1), ("up", -12), ("down", 12)]),
        *(("taxi", action, move) for action, move in [("west", -20), ("east", 20), ("north", -100), ("south", 100)]),
    ],
)
def test_actions_do_what_their_names_say(name, action, move):
    """From a cell with free neighbours: the third row of the lake, the second of the cliff, the middle of the town."""
    mdp = rv.MDP.from_gymnasium(make(name), 0.99)
    state = {"frozen solid": 9, "cliff": 17, "taxi": 240}[name]
    assert mdp.action_labels is not None
    row = mdp.transitions.matrix[[state * mdp.n_actions + mdp.action_labels.index(action)]]
    np.testing.assert_array_equal(row.indices, [state + move])


def test_taxi_picks_up_and_drops_off_by_name():
    mdp, taxi = rv.MDP.from_gymnasium(make("taxi"), 0.99), make("taxi").unwrapped
    assert mdp.action_labels is not None
    waiting, riding, there = taxi.encode(0, 0, 0, 1), taxi.encode(0, 0, 4, 1), taxi.encode(0, 4, 4, 1)
    for state, action, then in ((waiting, "pickup", riding), (riding, "dropoff", waiting), (there, "dropoff", 500)):
        row = mdp.transitions.matrix[[state * 6 + mdp.action_labels.index(action)]]
        np.testing.assert_array_equal(row.indices, [then])


def test_the_discount_is_for_the_model_to_judge():
    with pytest.raises(InvalidDiscount):
        rv.MDP.from_gymnasium(make("lake"), 1.5)


# ------------------------------------------------------------------------------------------------------------ as worlds


@pytest.mark.parametrize("masks", [True, False])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_true_reward_is_linear_in_the_chances_of_each_amount(name, masks):
    env = make(name)
    world = from_gymnasium(env, 0.99, scale=3.0, masks=masks)
    assert world.true_weights is not None
    np.testing.assert_array_equal(world.features @ world.true_weights, world.true_reward)
    expected = np.where(world.mdp.feasible, 3.0 * read_table(env, masks).reward, 0.0)
    np.testing.assert_allclose(world.true_reward, expected, rtol=1e-14)
    assert world.features.sum(axis=2).max() <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("name", "masks", "amounts"),
    [("lake", True, [1]), ("cliff", True, [-100, -1]), ("taxi", True, [-1, 20]), ("taxi", False, [-10, -1, 20])],
)
def test_the_amounts_are_those_that_can_be_paid(name, masks, amounts):
    world = from_gymnasium(make(name), 0.99, scale=0.5, masks=masks)
    assert world.feature_names == tuple(f"reward {amount}" for amount in amounts)
    np.testing.assert_array_equal(world.true_weights, 0.5 * np.array(amounts))


def test_amounts_of_terminal_states_and_duplicates():
    """Both ways to be paid 2 count; what the goal's own rows promise does not."""
    P = {0: {0: [(0.5, 0, 2.0, False), (0.25, 1, 2.0, True), (0.25, 1, 0.0, True)]}, 1: {0: sure(0, 99.0)}}
    world = from_gymnasium(Tiny(P), 0.9)
    np.testing.assert_array_equal(world.features, [[[0.75]], [[0.0]]])
    np.testing.assert_array_equal(world.true_reward, [[1.5], [0.0]])


def test_amounts_that_look_alike_have_names_that_do_not():
    world = from_gymnasium(Tiny({0: {0: sure(0, 1.0), 1: sure(0, 1.0 + 1e-9)}}), 0.9)
    assert world.feature_names == ("reward 1.0", "reward 1.000000001")


@pytest.mark.parametrize(("amounts", "linear"), [(0, False), (20, True), (21, False)])
def test_without_amounts_or_with_too_many_of_them_states_are_the_features(amounts, linear):
    """Action a pays a, but for the last, which the mask rules out."""
    paid = [*range(amounts + 1), 99]
    P = {0: {a: sure(1, r) for a, r in enumerate(paid)}, 1: {a: sure(0) for a, _ in enumerate(paid)}}
    world = from_gymnasium(Tiny(P, action_mask=lambda s: [r != 99 for r in paid]), 0.9, scale=2.0)
    np.testing.assert_array_equal(world.true_reward, [[2.0 * r * (r != 99) for r in paid], np.zeros(amounts + 2)])
    assert (world.true_weights is not None) is linear
    if not linear:
        np.testing.assert_array_equal(world.features.toarray(), np.eye(2))
        assert world.reward_model().n_params == 2


@pytest.mark.parametrize(("name", "shape"), [("lake", (4, 4)), ("large lake", (8, 8)), ("cliff", (4, 12))])
def test_lakes_and_cliffs_are_grids(name, shape):
    world = from_gymnasium(make(name), 0.99)
    assert isinstance(world, GridWorld)
    assert world.shape == shape
    assert world.name == make(name).spec.id


def test_taxi_is_a_world_but_no_grid():
    world = from_gymnasium(make("taxi"), 0.99, length=7)
    assert not isinstance(world, GridWorld)
    assert (world.name, world.mdp.n_states, world.length) == ("Taxi-v4", 501, 7)
    demos = world.demonstrate(30, seed=0)
    assert demos.n_decisions <= 30 * 7
    assert not demos.counts[~world.mdp.feasible].any()


def test_the_noisy_expert_errs_as_often_as_told():
    """On solid ice every state has an action that is not best, so mistakes are seen everywhere."""
    world = from_gymnasium(make("frozen solid"), 0.9, noise=0.2)
    best = rv.solve_hard(world.mdp, world.true_reward).policy
    expected = 0.8 * best + 0.2 * world.mdp.uniform_policy()
    np.testing.assert_allclose(world.expert, expected, atol=1e-15)
    assert np.all(world.expert[world.mdp.feasible] > 0.0)


@pytest.mark.parametrize(("option", "value"), [("scale", 0.0), ("length", 0), ("expert", "lazy"), ("noise", 2.0)])
def test_bad_options_of_a_world_are_refused_by_name(option, value):
    with pytest.raises(InvalidInput, match=f"`{option}`"):
        from_gymnasium(make("lake"), 0.9, **{option: value})


def test_a_soft_fit_recovers_what_the_goal_is_worth():
    """From the expert's exact choice frequencies to the last digits, from 4 000 episodes to 3 in 100."""
    world = from_gymnasium(make("lake"), 0.95, scale=20.0, expert="soft")
    visits = rv.Chain(world.mdp, world.expert).occupancy(world.mdp.start())
    exact = rv.Demonstrations.from_counts(1e4 * visits[:, None] * world.expert)
    for demos, tolerance in ((exact, 1e-6), (world.demonstrate(4_000, seed=1), 0.6)):
        fit = rv.NFXP(world.reward_model()).fit(world.mdp, demos)
        assert fit.converged
        np.testing.assert_allclose(fit.theta, [20.0], rtol=0, atol=tolerance)
