"""Objectworld: one gradient step of MCE-IRL with a network reward, 8-32-16-1, on states.

imitation plans over a finite horizon and, where its discount is not one, ignores it when it makes the policy. Equal
work is therefore γ = 1 and 50 decisions: ours is `mdp.replace(discount=1.0).unroll(50)`, with the same start weights,
the same expert and the same learning rate; once compiled, `mdp.to("cpu")`, and once by SciPy, which is the default.
The rows named "no horizon" are what one would do instead with ours: the same world at γ = 0.9 for ever, beside
imitation's horizon of 50.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench_core import STEPS, time_steps

from peers.rows import Laps, Row, Task, clock
from peers.talking import Rival
from revealed.chain import Chain
from revealed.device_cases import DeviceCase
from revealed.device_parts import DeviceRows
from revealed.device_pi_tilde import DeviceOwn
from revealed.environments import objectworld
from revealed.objective import Case, Objective
from revealed.pi_tilde import OwnPolicy
from revealed.rewards.base import lift_reward

HORIZON = 50
THEIR_STEPS = 5


class World:
    """An Objectworld with its network and the expert's weights, on a horizon or for ever, on a device or by SciPy."""

    def __init__(self, size: int, horizon: int | None, device: str | None = None) -> None:
        world = objectworld(size)
        self.network: Any = world.reward_model()
        self.mdp = world.mdp if horizon is None else world.mdp.replace(discount=1.0).unroll(horizon)
        expert = world.expert if horizon is None else np.tile(world.expert, (horizon + 1, 1)) * self.mdp.feasible
        assert self.mdp.initial is not None
        self.rho = Chain(self.mdp, expert).occupancy(self.mdp.initial)[:, None] * expert
        self.reward = lift_reward(self.network, self.mdp)
        self.placed = None if device is None else self.mdp.to(device)

    def objective(self) -> Objective:
        if self.placed is None:
            return Objective(self.reward, [Case(self.mdp, self.rho, OwnPolicy(self.mdp))])
        model = self.placed.on_device
        return Objective(
            self.reward, [DeviceCase(model, DeviceRows.of(model, self.rho), DeviceOwn(model), self.placed)]
        )

    def write(self, path: Path) -> None:
        base = self.mdp if self.mdp.base is None else self.mdp.base
        T = base.transitions.matrix
        np.savez(
            path,
            data=T.data,
            indices=T.indices,
            indptr=T.indptr,
            features=self.network.features,
            hidden=self.network.hidden,
            theta=self.network.init(),
            horizon=HORIZON,
            initial=np.asarray(base.initial),
            visits=self.rho.sum(axis=1).reshape(-1, base.n_states).sum(axis=0),
        )


def measure_with(size: int, horizon: int | None, device: str | None) -> Callable[[Row, Rival, Path, int], None]:
    def measure(row: Row, rival: Rival, folder: Path, laps: int) -> None:
        world, path = World(size, horizon, device), folder / "objectworld.npz"
        world.write(path)
        rival.ask("hold", file=str(path))
        theta = world.network.init()
        first = clock(lambda: world.objective().at(theta).gradient), rival.ask("steps", steps=1)["whole"]
        rival.ask("hold", file=str(path))  # from the start again
        if horizon is not None:
            row.agreement = agreement(world, rival.ask("gradient")["gradient"])
        by_turns = Laps()
        by_turns.run(
            lambda: time_steps(world.objective, theta, repeats=1),
            lambda: rival.ask("steps", steps=THEIR_STEPS)["seconds"],
            laps,
        )
        (row.ours, row.theirs), row.first = by_turns.best, first
        kind = "equal work" if horizon is not None else "not equal work: no horizon, γ = 0.9"
        how = "" if device is None else f", compiled (`mdp.to({device!r})`),"
        row.note = f"{kind}; ours{how} the mean of Adam's first {STEPS} steps, float64 throughout"

    return measure


def agreement(world: World, theirs: list[float]) -> str:
    """Gradients at the same weights; ours is per decision, of which there are as many as the horizon is long."""
    ours = world.objective().at(world.network.init()).gradient * world.rho.sum()
    gap = np.abs(ours - np.asarray(theirs)).max() / np.abs(ours).max()
    return f"gradients {gap:.0e} apart (relative; its network is float32)"


SPAN = f"horizon {HORIZON}"
KINDS = {SPAN: (HORIZON, "cpu"), f"{SPAN}, by SciPy": (HORIZON, None), "no horizon": (None, None)}


def tasks() -> list[Task]:
    def task(size: int, kind: str, aim: float) -> Task:
        row = Row(f"objectworld {size} {kind}", f"Objectworld {size}²: MCE-IRL step, network, {kind}", "imitation", aim)
        return Task(row, "imitation_rival.py", measure_with(size, *KINDS[kind]), quick=size == 16)

    return [task(size, kind, aim) for size, aim in ((16, 10.0), (32, 40.0)) for kind in KINDS]
