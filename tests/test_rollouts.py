"""Policies let loose in an environment: every kind of policy, the same seed the same episodes, and fits that drive."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import revealed as rv
from models import corridor
from revealed.environments import rollout
from revealed.errors import InvalidInput


class Walk:
    """A corridor of `n` cells as a Gymnasium environment: 0 left, 1 right; out of the last cell it ends.

    With `slip` a step goes the other way, drawn from a generator seeded as Gymnasium seeds its own.
    """

    def __init__(self, n: int = 5, slip: float = 0.0, limit: int | None = None) -> None:
        self.n, self.slip, self.limit = n, slip, limit
        self.rng, self.drawn, self.seeds = np.random.default_rng(), [], []

    def reset(self, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        self.seeds.append(seed)
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.s, self.t = 0, 0
        return self.s, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.drawn.append(self.rng.random())
        right = bool(action) != (self.drawn[-1] < self.slip)
        self.s, self.t = max(0, self.s + (1 if right else -1)), self.t + 1
        ended = self.s >= self.n
        self.s = min(self.s, self.n - 1)
        return self.s, float(ended), ended, self.limit is not None and self.t >= self.limit, {}


RIGHT = np.tile([0.0, 1.0], (5, 1))


class Predicts:
    """As a model of Stable-Baselines3: arrays out, and a `policy` that is no table."""

    policy = object()

    def predict(self, obs: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False) -> Any:
        return np.array(1), None


POLICIES: dict[str, Any] = {
    "array": RIGHT,
    "nested list": RIGHT.tolist(),
    "solution": SimpleNamespace(policy=RIGHT),
    "predicts": Predicts(),
    "function": lambda obs: 1,
    "function of arrays": lambda obs: np.array([1]),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
def test_every_kind_of_policy_walks_the_same_way(policy):
    for one in rollout(Walk(), policy, 2, seed=0):
        assert one.observations == [0, 1, 2, 3, 4, 4]
        assert one.actions == [1] * 5
        assert one.rewards.tolist() == [0, 0, 0, 0, 1]
        assert (one.ended, bool(one.truncations.any())) == (True, False)
        assert repr(one) == "Episode(5 steps, return 1, terminated)"


def test_a_seed_gives_the_same_episodes_and_seeds_the_environment_once():
    half, env = np.full((5, 2), 0.5), Walk(slip=0.3)
    one, two, other = (rollout(env, half, 20, seed=s, length=50) for s in (1, 1, 2))
    assert [e.observations for e in one] == [e.observations for e in two]
    assert [e.observations for e in one] != [e.observations for e in other]
    assert env.seeds == [1, *[None] * 19] * 2 + [2, *[None] * 19]


def test_choices_and_moves_are_not_drawn_from_the_same_numbers():
    """An environment seeds a generator as we would: the same stream would make slips depend on choices."""
    env = Walk(slip=0.5)
    actions = np.concatenate([e.actions for e in rollout(env, np.full((5, 2), 0.5), 200, seed=5, length=40)])
    assert abs(np.corrcoef(actions, env.drawn)[0, 1]) < 4 / np.sqrt(actions.size)


def test_length_and_time_limits_cut_off():
    for one in (rollout(Walk(), RIGHT, 1, length=3)[0], rollout(Walk(limit=3), RIGHT, 1)[0]):
        assert one.observations == [0, 1, 2, 3]
        assert one.truncations.tolist() == [False, False, True]
        assert not one.ended
    assert rollout(Walk(), RIGHT, 1, length=5)[0].truncations.tolist() == [False] * 5  # it ended at the last step


def test_an_episode_that_nothing_ends_asks_for_a_length(monkeypatch):
    monkeypatch.setattr("revealed.environments.rollouts.MOST_STEPS", 50)
    with pytest.raises(rv.errors.InvalidInput, match=r"at most 50 steps; got a longer one. Pass length="):
        rollout(Walk(), lambda obs: 0, 1)


def test_observations_are_kept_as_they_were():
    """Some environments write into the array that they handed out."""

    class Reuses(Walk):
        out = np.zeros(1, dtype=int)

        def reset(self, seed: int | None = None) -> Any:
            self.out[0] = super().reset(seed)[0]
            return self.out, {}

        def step(self, action: int) -> Any:
            obs, *rest = super().step(action)
            self.out[0] = obs
            return self.out, *rest

    (one,) = rollout(Reuses(), RIGHT, 1)
    assert [int(o[0]) for o in one.observations] == [0, 1, 2, 3, 4, 4]


def test_a_fit_drives_by_its_own_policy_and_a_horizons_fit_by_that_of_the_time():
    mdp = corridor(5)
    demos = rv.simulate(mdp, rv.solve(mdp, 0.5 * np.arange(5.0)[:, None]).policy, 200, 20, seed=0)
    reward = rv.LinearReward(np.arange(5.0)[:, None])
    fit = rv.NFXP(reward).fit(mdp, demos)
    asarray, asfit = (rollout(Walk(), policy, 20, seed=1, length=30) for policy in (fit.policy, fit))
    assert [e.actions for e in asfit] == [e.actions for e in asarray]
    unrolled = rv.NFXP(reward).fit(mdp.unroll(20), demos)
    episodes = rollout(Walk(), unrolled, 400, seed=2)
    assert max(len(e) for e in episodes) == 20
    first = np.mean([e.actions[0] for e in episodes])
    p = unrolled.policy[0, 1]
    assert abs(first - p) < 4 * np.sqrt(p * (1 - p) / 400)


def test_predict_drives_an_environment_in_a_loop():
    """Observation in, action out, as Stable-Baselines3's models do; whole numbers stay whole numbers."""
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    world = rv.environments.from_gymnasium(env, 0.9, scale=40.0, expert="soft")
    fit = rv.NFXP(world.reward_model()).fit(world.mdp, world.demonstrate(100, seed=0))
    obs, _ = env.reset(seed=0)
    for _ in range(100):
        action, _ = fit.predict(obs, deterministic=True)
        assert isinstance(action, int)
        obs, reward, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            break
    assert reward == 1.0  # the goal, without a hole on the way
    assert world.mdp.action_labels is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": 3}, "`policy`: expected an \\(S, A\\) array, a fit"),
        ({"policy": RIGHT[:2]}, r"states in 0…1; got 2 \(first at time 2\)"),
        ({"policy": np.zeros((5, 2))}, "probabilities in every state visited"),
        ({"policy": -RIGHT}, "finite probabilities >= 0"),
        ({"n": 0}, "`n`"),
        ({"length": 0}, "`length`"),
        ({"seed": -1}, "`seed`"),
        ({"env": 3}, "reset"),
        ({"env": SimpleNamespace(reset=print, step=print, num_envs=4)}, "one environment; got 4"),
    ],
)
def test_what_cannot_be_rolled_out_is_refused(change, message):
    arguments: dict[str, Any] = {"env": Walk(), "policy": RIGHT, "n": 1} | change
    with pytest.raises(rv.errors.InvalidInput, match=message):
        rollout(**arguments)


def test_an_action_that_the_environment_does_not_have_is_the_policy_s_mistake():
    gymnasium = pytest.importorskip("gymnasium")
    lake = gymnasium.make("FrozenLake-v1")
    with pytest.raises(InvalidInput, match=r"`policy`: expected actions in Discrete\(4\); got 'a' \(first at time 0\)"):
        rv.environments.rollout(lake, lambda obs: "a", n=1)
