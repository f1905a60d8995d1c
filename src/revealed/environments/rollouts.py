"""Roll-outs: a policy run in a Gymnasium environment, episode by episode.

`rv.Demonstrations.from_episodes(rollout(env, policy, 200), mdp)` makes demonstrations of them, and their rewards tell
what a fitted policy earns where it was not fitted: in the environment itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from revealed.checks import as_floats, is_index, require_count
from revealed.episodes import Episode
from revealed.errors import InvalidInput
from revealed.gates import require_memory, within_memory
from revealed.mdp import MDP, Floats
from revealed.simulation import draw_actions, make_rng
from revealed.voices import shown

MOST_STEPS = 100_000  # of an episode that nothing ends
CHOOSERS = "an (S, A) array, a fit, an object with predict(obs), or a function of an observation"
Choose = Callable[[Any, int], Any]


@within_memory("n", "length")
def rollout(env: Any, policy: Any, n: int, seed: int | None = None, length: int | None = None) -> list[Episode]:
    """`n` episodes of `policy` in a Gymnasium environment, each until it ends or `length` steps are made.

    `policy` is an (S, A) array of choice probabilities over state indices, a fit or solution (actions are drawn from
    its policy; on a horizon, from that of the period), an object with `predict(obs)` as Stable-Baselines3's have, or a
    function from an observation to an action. The same `seed` gives the same episodes, unless a function draws
    random numbers of its own.
    """
    require_count("n", n)
    require_memory("n", n, 64 * int(n))
    if length is not None:
        require_count("length", length)
    if not callable(getattr(env, "reset", None)) or not callable(getattr(env, "step", None)):
        raise InvalidInput("env", "a Gymnasium environment, with reset() and step()", type(env).__name__)
    if hasattr(env, "num_envs"):
        raise InvalidInput("env", "one environment", f"{env.num_envs} in one", remedy="Create it with gymnasium.make.")
    make_rng(seed)  # checks it
    # not the environment's own stream: its moves and our choices must not come from the same numbers
    choose = _chooser(policy, np.random.default_rng(None if seed is None else [int(seed), 1]))
    horizon = getattr(getattr(policy, "mdp", None), "horizon", None)
    most = min(x for x in (length, horizon, MOST_STEPS) if x is not None)
    cut = length is not None or horizon is not None
    return [_episode(env, choose, None if seed is None or i > 0 else int(seed), most, cut, i) for i in range(n)]


def _episode(env: Any, choose: Choose, seed: int | None, most: int, cut: bool, i: int) -> Episode:
    obs, _ = env.reset(seed=seed)
    observed, actions, rewards, terminated, truncated = [copy.deepcopy(obs)], [], [], [], []
    for t in range(most):
        action = choose(obs, t)
        obs, reward, ended, stopped, _ = _step(env, action, t)
        observed.append(copy.deepcopy(obs))  # some environments write into the array they handed out
        actions.append(action)
        rewards.append(float(reward))
        terminated.append(bool(ended))
        truncated.append(bool(stopped) or (cut and t == most - 1 and not ended))
        if ended or truncated[-1]:
            return Episode(observed, actions, np.array(rewards), np.array(terminated), np.array(truncated), i)
    raise InvalidInput("env", f"episodes of at most {most} steps", "a longer one", remedy="Pass length=.")


def _step(env: Any, action: Any, t: int) -> Any:
    """The environment's own answer; where it fails at an action that it does not have, the policy is to blame."""
    try:
        return env.step(action)
    except Exception as error:
        space: Any = getattr(env, "action_space", None)
        if not callable(getattr(space, "contains", None)) or space.contains(action):
            raise
        raise InvalidInput("policy", f"actions in {space}", shown(action), f"time {t}") from error


def _chooser(policy: Any, rng: np.random.Generator) -> Choose:
    """From an observation and the time to an action."""
    table = as_floats(getattr(policy, "policy", policy)) if not callable(policy) else None
    if table is not None and table.ndim == 2:
        return _drawing(table, getattr(policy, "mdp", None), rng)
    predict = getattr(policy, "predict", None)
    if callable(predict):
        return lambda obs, t: _as_action(predict(obs))
    if callable(policy):
        return lambda obs, t: _as_action(policy(obs))
    raise InvalidInput("policy", CHOOSERS, type(policy).__name__)


def _drawing(table: Floats, mdp: Any, rng: np.random.Generator) -> Choose:
    layer = mdp.base.n_states if isinstance(mdp, MDP) and mdp.base is not None else 0
    wrong = ~np.isfinite(table) | (table < 0.0)
    if wrong.any():
        s, a = (int(k) for k in np.argwhere(wrong)[0])
        raise InvalidInput("policy", "finite probabilities >= 0", table[s, a], f"state {s}, action {a}")

    def choose(obs: Any, t: int) -> int:
        state = np.asarray(obs)
        if state.size != 1 or state.dtype.kind not in "iu" or not 0 <= int(state.item()) < (layer or len(table)):
            remedy = "Pass a function of an observation, such as lambda obs: ..."
            expected = f"observations that are states in 0…{(layer or len(table)) - 1}"
            raise InvalidInput("policy", expected, shown(obs), f"time {t}", remedy)
        row = table[int(state.item()) + layer * t]
        if not row.sum() > 0.0:
            raise InvalidInput("policy", "probabilities in every state visited", "none", f"state {state.item()}")
        return int(draw_actions(row[None, :], rng)[0])

    return choose


def _as_action(answer: Any) -> Any:
    """An action as an environment takes it: predict() answers (actions, state), and one action as an array."""
    action = answer[0] if isinstance(answer, tuple) and len(answer) == 2 else answer
    array = np.asarray(action)
    return int(array.item()) if is_index(action) or (array.size == 1 and array.dtype.kind in "iu") else action
