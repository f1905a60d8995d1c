"""Hard and soft optima on windy grids and Garnet graphs, 10³ to 10⁵ states, γ = 0.99, beside QuantEcon's hard one.

Of QuantEcon's methods the quickest counts: policy iteration, modified policy iteration or value iteration. The last
two stop where the span of a step bounds the loss of their policy by ε: with its default of 1e-3 the policy on the
largest grid is not the optimal one, with 1e-8 it is everywhere, and that is what it is asked for. Ours is exact to
rounding. QuantEcon has no soft optimum: its hard one stands beside ours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from bench_core import grid, landmarks, true_theta

import revealed as rv
from peers.rows import Laps, Row, Task, clock, seconds
from peers.talking import Rival
from revealed.environments import garnet

GAMMA, EPSILON = 0.99, 1e-8
METHODS = ("modified_policy_iteration", "policy_iteration", "value_iteration")
FULL = 5_000  # beyond so many states without locality, factors are dense and policy iteration takes minutes


@lru_cache(maxsize=1)
def problem(graph: str, size: int) -> tuple[rv.MDP, Any, Any]:
    """The MDP, the reward (S, A) and our hard optimum."""
    if graph == "grid":
        mdp = grid(size, size, GAMMA)
        reward = np.repeat((landmarks(size, size) @ true_theta())[:, None], mdp.n_actions, axis=1)
    else:
        world = garnet(size, 4, 5, seed=2, discount=GAMMA)
        mdp, reward = world.mdp, world.true_reward
    return mdp, reward, rv.solve_hard(mdp, reward)


def write(path: Path, graph: str, size: int) -> None:
    mdp, reward, best = problem(graph, size)
    T = mdp.transitions.matrix
    where = {"data": T.data, "indices": T.indices, "indptr": T.indptr}
    np.savez(path, reward=reward, value=best.value, best=best.policy > 0.0, discount=mdp.discount, **where)


def measure_with(graph: str, size: int, solve: Callable[..., Any]) -> Callable[[Row, Rival, Path, int], None]:
    def measure(row: Row, rival: Rival, folder: Path, laps: int) -> None:
        path = folder / "problem.npz"
        write(path, graph, size)
        mdp, reward, _ = problem(graph, size)
        made = rival.ask("hold", file=str(path))["seconds"]
        methods = candidates(graph, mdp.n_states)
        first, tried = try_all(rival, methods)
        best = min(tried, key=lambda name: tried[name]["seconds"])
        by_turns = Laps()
        by_turns.run(
            lambda: clock(partial(solve, fresh(mdp), reward)),
            lambda: rival.ask("solve", method=best, epsilon=EPSILON)["seconds"],
            laps,
        )
        (row.ours, row.theirs), row.first = by_turns.best, (by_turns.first[0], first[best])
        row.agreement = agreement(tried[best]) if solve is rv.solve_hard else ""
        others = ", ".join(f"{spoken(name)} {seconds(tried[name]['seconds'])}" for name in tried if name != best)
        row.note = f"its {spoken(best)} ({others}); building its problem, {seconds(made)}, is not counted"

    return measure


def agreement(answer: dict[str, Any]) -> str:
    others = answer["others"]
    policy = f"another policy in {others} states" if others else "the same policy"
    return f"its value within {answer['gap']:.0e} of ours, {policy}"


def try_all(rival: Rival, methods: list[str]) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds of each method's first call, and its answer; the quick ones again, for the first may have compiled."""
    first = {name: rival.ask("solve", method=name, epsilon=EPSILON) for name in methods}
    quick = [name for name in methods if first[name]["seconds"] < 2.0]
    again = {name: rival.ask("solve", method=name, epsilon=EPSILON) for name in quick}
    return {name: first[name]["seconds"] for name in methods}, first | again


def candidates(graph: str, n_states: int) -> list[str]:
    return [m for m in METHODS if m != "policy_iteration" or graph == "grid" or n_states < FULL]


def fresh(mdp: rv.MDP) -> rv.MDP:
    """The same model with nothing known about it: looking at its graph is part of our time, as making it is not."""
    return rv.MDP(mdp.transitions.matrix, discount=mdp.discount)


def spoken(method: str) -> str:
    return method.replace("_", " ")


def tasks() -> list[Task]:
    def task(graph: str, size: int, kind: str) -> Task:
        states = f"{size}² states" if graph == "grid" else f"{size:,} states"
        solve = rv.solve_hard if kind == "hard" else rv.solve
        what = f"{kind} optimum, {'windy grid' if graph == 'grid' else 'Garnet graph'}, {states}"
        rival = "QuantEcon" if kind == "hard" else "QuantEcon (hard)"
        small = size in (32, 1_000)
        row = Row(f"{kind} {graph} {size}", what, rival, 1.0)
        return Task(row, "quantecon_rival.py", measure_with(graph, size, solve), quick=small)

    sizes = [("grid", 32), ("grid", 100), ("grid", 316), ("garnet", 1_000), ("garnet", 10_000), ("garnet", 100_000)]
    return [task(graph, size, kind) for graph, size in sizes for kind in ("hard", "soft")]
