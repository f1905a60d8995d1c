"""A random walk on a copy of a Gymnasium environment: what its step() does, to be compared with what its table says."""

from __future__ import annotations

import copy
import operator
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from revealed.checks import Bools

Step = tuple[int, int, int, float, bool]  # state, action, next state, reward, terminated
PROBES = 500


def try_out(base: Any, feasible: Bools | None, n_actions: int) -> tuple[list[int], list[Step]]:
    """Starts and random steps of a copy; none of either where it cannot be copied, reset or stepped.

    The user's environment and the global random states are left as they were, and nothing is drawn on a screen.
    """
    starts: list[int] = []
    steps: list[Step] = []
    with _randomness_restored():
        try:
            trial = copy.deepcopy(base)
            if getattr(trial, "render_mode", None) is not None:
                trial.render_mode = None
            for step in _walk(trial, feasible, n_actions):
                starts.append(step) if isinstance(step, int) else steps.append(step)
        except Exception:
            pass  # not every environment lets itself be tried out; the table is then all there is to go by
    return starts, steps


def _walk(trial: Any, feasible: Bools | None, n_actions: int) -> Iterator[int | Step]:
    """A random walk: the state at each reset, and each step."""
    rng, s = np.random.default_rng(0), -1
    for _ in range(PROBES):
        if s < 0:
            s = operator.index(trial.reset(seed=int(rng.integers(2**31)))[0])
            yield s
        a = int(rng.choice(n_actions if feasible is None else np.flatnonzero(feasible[s])))
        observed, reward, terminated, truncated, _ = trial.step(a)
        moved = operator.index(observed)
        yield s, a, moved, float(reward), bool(terminated)
        s = -1 if terminated or truncated else moved


@contextmanager
def _randomness_restored() -> Iterator[None]:
    """An environment may draw from the global generators; what it drew is put back."""
    plain, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpy)  # noqa: NPY002
