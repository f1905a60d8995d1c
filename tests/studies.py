"""Small Monte Carlo studies: a logit that can be checked by hand, and a method that answers as it is told."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

import revealed as rv
from revealed.diagnosis import Status
from revealed.environments import World, garnet
from revealed.montecarlo import Study

THETA = 0.8
CLOCKS = ["seconds", "error_seconds"]


def coin(theta: float = THETA, discount: float = 0.9) -> World:
    """One state, two actions, the second worth θ more: a logit whose estimate is the log odds."""
    mdp = rv.MDP(np.ones((1, 2, 1)), discount, np.ones(1))
    features = np.array([[[0.0], [1.0]]])
    reward = features @ np.array([theta])
    expert = np.exp(reward) / np.exp(reward).sum()
    return World("a coin", mdp, features, reward, expert, ("theta",), np.array([theta]), length=1)


def draws(world: World, replications: int, n: int, seed: int = 0) -> list[rv.Demonstrations]:
    """The data sets of a study, as anybody can draw them."""
    study = Study(world, {}, n, world.length, seed, None, False, 0.95, None)
    return [study.draw(r) for r in range(replications)]


def row_of(found: Any, method: str) -> Any:
    return found.table().loc[(method, "theta")]


class Scripted:
    """A method whose k-th fit gives the k-th answer: (estimate, standard error), an exception, or a status."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers, self.calls = answers, 0

    def fit(self, mdp: rv.MDP, demos: rv.Demonstrations) -> Any:
        answer = self.answers[self.calls]
        self.calls += 1
        if isinstance(answer, type):
            raise answer("no solution")
        estimate, se = answer if isinstance(answer, tuple) else (9.0, 1.0)
        interval = {"lower": [estimate - 2.0 * se], "upper": [estimate + 2.0 * se]}
        return SimpleNamespace(
            theta=np.array([estimate]),
            bse=pd.Series([se]),
            conf_int=lambda alpha: pd.DataFrame(interval),
            status=Status(answer if isinstance(answer, str) else "converged", "as the script says"),
            settled=None,
            seconds=0.25,
        )


def assert_same(a: Any, b: Any) -> None:
    pd.testing.assert_frame_equal(a.frame.drop(columns=CLOCKS), b.frame.drop(columns=CLOCKS))


def study(replications: int = 12, **options: Any) -> Any:
    world = garnet(6, 2, 2, seed=1)
    fits = [rv.NFXP(world.reward_model(), l2=1e-3), rv.CCP(world.reward_model(), l2=1e-3)]
    given: dict[str, Any] = {"n": 20, "length": 10, "seed": 5}
    return rv.monte_carlo(world, fits, replications, **(given | options))
