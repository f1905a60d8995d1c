"""How long it takes to build worlds, to sample from them and to judge fits on them.

.venv/bin/python benchmarks/bench_worlds.py               half a minute
.venv/bin/python benchmarks/bench_worlds.py --markdown    the table as docs/performance.md holds it
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bench_core import Row, best_of, machine, print_markdown, print_table  # first: it sets the thread counts

# isort: split
import numpy as np

import revealed as rv
from revealed.environments import garnet, mountain_car, objectworld
from revealed.metrics import Truth


def mountain_car_rows() -> Iterator[Row]:
    car = mountain_car()
    n, length = 1000, 200
    yield Row("Mountain Car, 10⁴ states: model and expert", best_of(3, mountain_car))
    drives = car.drive(n, length, seed=0)
    seconds = best_of(3, lambda: car.with_kernel_transitions(drives))
    kernel = car.with_kernel_transitions(drives)
    yield Row("its transitions by kernels, 1000 drives", seconds, note=f"{kernel.mdp.transitions.matrix.nnz} stored")
    yield Row("1000 drives of up to 200 steps", best_of(3, lambda: car.demonstrate(n, length, seed=0)), aim=1.0)
    yield from judge_rows("Mountain Car", car)


def judge_rows(name: str, world: rv.environments.World) -> Iterator[Row]:
    """What it takes to judge one more estimate; the optimum of the true reward is known from the first."""
    reward = world.true_reward + np.random.default_rng(0).normal(size=world.true_reward.shape)
    truth = Truth(world.mdp, world.true_reward)
    yield Row(f"{name}: EVD, the optimum of the truth included", best_of(1, lambda: truth.evd(reward)))
    yield Row(f"{name}: EVD of one more", best_of(3, lambda: truth.evd(reward)))
    yield Row(f"{name}: EPIC", best_of(3, lambda: rv.metrics.epic(world.mdp, world.true_reward, reward)))
    yield Row(f"{name}: STARC", best_of(3, lambda: rv.metrics.starc(world.mdp, world.true_reward, reward)))


def garnet_rows() -> Iterator[Row]:
    world = garnet(10_000, 4, 5)
    sample = best_of(3, lambda: world.demonstrate(1000, 200, seed=0))
    yield Row("Garnet, 10⁴ states: 1000 trajectories of 200 steps", sample, aim=1.0)
    yield from judge_rows("Garnet, 10⁵ states", garnet(100_000, 4, 5, reach=10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    arguments = parser.parse_args()
    rows = [*mountain_car_rows(), *judge_rows("Objectworld 64×64", objectworld(64)), *garnet_rows()]
    if arguments.markdown:
        print_markdown(rows, [machine()])
    else:
        print_table(rows, [machine()], title="Worlds and metrics")


if __name__ == "__main__":
    main()
