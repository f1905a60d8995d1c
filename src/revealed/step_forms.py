"""Single steps as loops and replay buffers write them: which part of a tuple is what is told by its length and by
where its flags stand. Whatever could be read in two ways is refused with what it looks like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from revealed.checks import Bools, is_mapping, require_floats
from revealed.errors import InvalidDemonstrations
from revealed.labels import listed

STEP = "(obs, action, reward, terminated, truncated, info)"
FORMS = (
    ("obs", "action", "reward", "terminated", "truncated", "info"),
    ("obs", "action", "reward", "terminated", "truncated"),
    ("obs", "action", "reward", "done", "info"),
    ("obs", "action", "reward", "done"),
    ("obs", "action", "reward", "next_obs", "terminated", "truncated", "info"),
    ("obs", "action", "reward", "next_obs", "terminated", "truncated"),
    ("obs", "action", "reward", "next_obs", "done", "info"),
    ("obs", "action", "reward", "next_obs", "done"),
)
FLAGS = ("terminated", "truncated", "done")
PAIRS = (("observations", "actions"), ("obs", "acts"))  # how Minari and imitation call them
OTHER_WORDS = "or with done for both flags, or with next_obs after the reward"


@dataclass(frozen=True)
class Step:
    """One decision; `next_obs` is in `led` where it was written down."""

    obs: Any
    action: Any
    reward: Any
    terminated: bool
    truncated: bool
    led: tuple[Any, ...] = ()


def form_of(item: Any) -> tuple[str, ...] | None:
    """The names of a step's parts; None for what is not a step."""
    if not isinstance(item, tuple | list) or not 4 <= len(item) <= 7:
        return None
    obs, reward = item[0], item[2]
    flags = {k for k in range(3, len(item)) if _is_flag(item[k])}
    if _is_flag(reward) and len(item) < 6:
        return None  # what env.step returns: (obs, reward, terminated, truncated, info)
    if _is_flag(obs) and len(item) < 7 and flags == {3, 4}:
        return None  # observations that are flags: (…, terminated, truncated, …) or (…, next_obs, done, …)
    alike = (form for form in FORMS if len(form) == len(item))
    return next((form for form in alike if {form.index(name) for name in FLAGS if name in form} == flags), None)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def as_step(k: int, item: Any, form: tuple[str, ...]) -> Step:
    """One of steps that are all of this form."""
    if form_of(item) != form:
        raise InvalidDemonstrations("episodes", f"steps ({', '.join(form)})", looks_like(item), f"step {k}")
    part = dict(zip(form, item, strict=True))
    done = bool(part.get("done", False))
    cut = done and was_cut(part.get("info"))
    ended, truncated = bool(part.get("terminated", done and not cut)), bool(part.get("truncated", cut))
    led = (part["next_obs"],) if "next_obs" in part else ()
    return Step(part["obs"], part["action"], part["reward"], ended, truncated, led)


def was_cut(info: Any) -> bool:
    """Stable-Baselines3's mark of an episode that a time limit ended, where `done` is true of both."""
    return isinstance(info, Mapping) and bool(info.get("TimeLimit.truncated", False))


def as_flags(name: str, values: Any, lengths: Sequence[int], where: str) -> Bools:
    """Flags along an episode, True and False or 1 and 0: text is always true, and masked ones are unknown."""
    expected = "True and False, one per step"
    flags = require_floats(
        name, [values] if _is_flag(values) else values, expected, InvalidDemonstrations, where=where
    ).reshape(-1)
    odd = np.flatnonzero(~np.isin(flags, (0.0, 1.0)))
    if odd.size:
        raise InvalidDemonstrations(name, expected, flags[odd[0]], f"{where}, step {int(odd[0])}")
    if flags.size not in lengths:
        raise InvalidDemonstrations(name, f"{expected} ({lengths[-1]})", f"{flags.size}", where)
    return flags == 1.0


def as_flat(steps: Sequence[Step]) -> SimpleNamespace:
    """Steps that say where they led, as imitation's flat transitions."""
    return SimpleNamespace(
        obs=[step.obs for step in steps],
        acts=[step.action for step in steps],
        next_obs=[step.led[0] for step in steps],
        dones=np.array([step.terminated or step.truncated for step in steps]),
        rews=np.array([step.reward for step in steps], dtype=np.float64),
        infos=[{"TimeLimit.truncated": step.truncated and not step.terminated} for step in steps],
    )


def same(one: Any, other: Any) -> bool:
    """Whether two observations are the same."""
    if is_mapping(one):
        return is_mapping(other) and all(key in other and same(one[key], other[key]) for key in one)
    return bool(np.array_equal(np.asarray(one), np.asarray(other)))


def require_order(steps: Sequence[Step]) -> None:
    """The next observation stands behind the reward. Where steps follow each other only if it stands before, or what
    stands there looks like observations and the other does not, they were written in another order."""
    going = [(a, b) for a, b in pairwise(steps) if not (a.terminated or a.truncated)]
    follows = all(same(a.led[0], b.obs) for a, b in going)
    swapped = bool(going) and not follows and all(same(a.reward, b.obs) for a, b in going)
    alike = all(_kind(step.reward) == _kind(step.obs) != _kind(step.led[0]) for step in steps)
    if swapped or alike:
        remedy = "Swap the two: next_obs goes after the reward."
        expected = "steps (obs, action, reward, next_obs, …)"
        raise InvalidDemonstrations(
            "episodes", expected, "what looks like (obs, action, next_obs, reward, …)", remedy=remedy
        )


def _kind(value: Any) -> Any:
    """What an observation or a reward is made of, roughly."""
    if isinstance(value, Mapping | str | tuple):
        return type(value).__name__
    return np.ndim(value), np.asarray(value).dtype.kind


def from_dict(item: Any) -> Any:
    """A dict of arrays with the attributes that its keys name, where they are those of Minari or imitation; else as it
    came."""
    if not is_mapping(item) or not any(all(name in item for name in both) for both in PAIRS):
        return item
    return SimpleNamespace(**{str(name): part for name, part in item.items()})


# complaints


def looks_like(item: Any) -> str:
    """What came, so that somebody who wrote it recognises it."""
    kind = type(item).__name__
    if is_mapping(item):
        return f"a {kind} with the keys {listed(list(item))}" if item else f"an empty {kind}"
    if isinstance(item, tuple | list):
        return f"a {kind} of {len(item)}: {', '.join(type(part).__name__ for part in item[:8])}"
    return kind


def remedy_for(item: Any) -> str | None:
    """What to do about something that is not an episode."""
    if is_mapping(item):
        return "A dict is an episode if it has observations and actions, or obs and acts."
    if not isinstance(item, tuple | list):
        return None
    if len(item) == 2:
        return "Pairs (states, actions) go to Demonstrations.from_trajectories."
    if 5 <= len(item) <= 6 and _is_flag(item[0]):
        return "Observations that are True or False look like end flags: write them as 0 and 1."
    if len(item) in (4, 5) and _is_flag(item[2]):
        return f"What env.step returns lacks the action and the observation before it: write {STEP}."
    if 4 <= len(item) <= 7:
        return f"Steps are {STEP}, {OTHER_WORDS}; flags are True or False."
    return None
