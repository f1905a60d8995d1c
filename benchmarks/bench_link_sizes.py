"""What link sizes cost, by goal and by pair: making them, one evaluation with all derivatives, and a fit.

.venv/bin/python benchmarks/bench_link_sizes.py                       about 1,000 links, 600 trips
.venv/bin/python benchmarks/bench_link_sizes.py --links 7500 --trips 1800 --no-fit

Seconds are the processor's on one thread: other work on the machine does not change them.
"""

# ruff: noqa: E402 (thread counts are set before the imports that read them)

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import revealed as rv
from revealed.environments import city
from revealed.goal_fit import goal_cases
from revealed.goal_rows import GoalRows
from revealed.objective import Objective

NAMES = ("travel_time", "left_turn", "u_turn", "constant")
STATED = (-2.0, -0.5, -3.0, -1.0)


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    found = act()
    return time.process_time() - begun, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", type=int, default=1_000)
    parser.add_argument("--trips", type=int, default=600)
    parser.add_argument("--no-fit", action="store_true")
    asked = parser.parse_args()
    town = city(asked.links)
    trips, reward = town.demonstrate(asked.trips, seed=0), town.network.reward(list(NAMES))
    print(f"{town.network.n_links} links, {asked.trips} trips\n")
    print("| sizes per | cases | making them | one evaluation | fit | iterations |")
    print("|---|---|---|---|---|---|")
    for per in ("goal", "pair"):
        made, sizes = timed(lambda per=per: rv.link_size(town.network, reward, list(STATED), trips, per=per))
        sized = rv.LinkSizeReward(reward, sizes)
        objective = Objective(sized, [goal_cases(GoalRows.of(town.mdp, trips, per), None)])
        once, _ = timed(lambda objective=objective: objective.at(np.array([*STATED, -0.5])).hessian)
        cells = [f"{made:.2f} s", f"{once:.2f} s", "", ""]
        if not asked.no_fit:
            whole, fit = timed(lambda sized=sized: rv.NFXP(sized, start=[*STATED, 0.0]).fit(town.mdp, trips))
            cells[2:] = [f"{whole:.1f} s", f"{fit.iterations}, {fit.status.code}"]
        print(f"| {per} | {len(sizes.goal)} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
