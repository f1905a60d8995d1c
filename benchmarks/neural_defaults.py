"""Which network, search and penalty to take by default: fits over a table of worlds whose true reward is known.

    python benchmarks/neural_defaults.py                   # the finalists on every world, as in docs/rewards.md
    python benchmarks/neural_defaults.py --every           # the whole grid of L-BFGS, on the small worlds
    python benchmarks/neural_defaults.py --worlds buses --seeds 5

Every fit has a network of 32 and 16 units. EVD is what a policy that is optimal for the estimate falls short of the
best, excess NLL how much worse than the expert itself it predicts the expert's choices (nats per decision, no noise of
a sample), both medians over seeds. Seconds are medians of the processor's time on one thread, which other work on the
machine does not change, without the compilation of a network, which happens once.
"""

# ruff: noqa: E402 (thread counts are set before the imports that read them)

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import revealed as rv
from revealed.environments import grid_transitions, objectworld, rust_bus

METHODS = {"MCE-IRL": rv.MCEIRL, "CCP": rv.CCP, "NPL": rv.NPL}
SMALL = ("objectworld 16²", "key and door", "buses")
WORLDS = ("objectworld 16²", "objectworld 32²", "key and door", "buses")


@dataclass(frozen=True)
class Candidate:
    """`l2` None is a network's own penalty, 4/n for n decisions."""

    activation: str
    optimizer: str
    l2: float | None

    def __str__(self) -> str:
        return f"{self.activation}, {self.optimizer}, l2 = " + ("4/n" if self.l2 is None else f"{self.l2:g}")


FINALISTS = (
    Candidate("tanh", "lbfgs", None),
    Candidate("silu", "lbfgs", None),
    Candidate("softplus", "lbfgs", None),
    Candidate("relu", "lbfgs", None),
    Candidate("tanh", "lbfgs", 1e-5),
    Candidate("tanh", "lbfgs", 0.0),
    Candidate("tanh", "adam", None),
    Candidate("relu", "adam", 0.0),
)
EVERY = tuple(
    Candidate(activation, "lbfgs", l2)
    for activation, l2 in itertools.product(("relu", "tanh", "softplus", "silu"), (0.0, 1e-6, 1e-5, 1e-4, None))
)


@dataclass(frozen=True)
class Problem:
    features: Any
    truth: rv.metrics.Truth
    demos: rv.Demonstrations


def problem(name: str, seed: int) -> Problem:
    """A world and decisions of its expert."""
    kind, _, size = name.partition(" ")
    if kind == "objectworld":
        world = objectworld(int(size.rstrip("²")), seed=seed)
        return Problem(world.features, world.truth, world.demonstrate(256, 15, seed))
    if kind == "buses":
        world = rust_bus()
        return Problem(world.features, world.truth, world.demonstrate(100, 120, seed))
    return key_and_door(seed=seed)


def key_and_door(side: int = 8, seed: int = 0, prize: float = 40.0) -> Problem:
    """A grid times a flag: only with the key, which lies in one corner, is the door in another worth anything.

    Whoever passes it begins again without a key. Swamps cost a little. Features are the place, the flag, and distances
    to key and door, in cells: the reward is a product of two of them.
    """
    cells = side * side
    row, column = np.divmod(np.arange(cells), side)
    key, door = side - 1, cells - side
    moves = sp.coo_array(grid_transitions(side, side, wind=0.1, stay=True))
    actions = moves.shape[0] // cells
    source, action = np.divmod(moves.coords[0], actions)
    target, p = moves.coords[1], moves.data
    without = (source * actions + action, np.where(target == key, cells + target, target))
    after = np.where(source == door, 0, cells + target)  # begins anew
    held = ((cells + source) * actions + action, after)
    rows, columns = (np.concatenate(pair) for pair in zip(without, held, strict=True))
    T = sp.csr_array((np.tile(p, 2), (rows, columns)), shape=(2 * cells * actions, 2 * cells))
    initial = np.zeros(2 * cells)
    initial[:cells] = 1.0 / cells
    mdp = rv.MDP(T, discount=0.95, initial=initial)
    rng = np.random.default_rng(seed)
    swamp = rng.random(cells) < 0.15
    far = [np.abs(row - row[k]) + np.abs(column - column[k]) for k in (key, door)]
    flag = np.repeat([0.0, 1.0], cells)
    features = np.column_stack([np.tile(x, 2) for x in (row, column, *far, swamp)] + [flag])
    reward = np.where((np.arange(2 * cells) == cells + door), prize, 0.0) - 2.0 * np.tile(swamp, 2)
    table = np.asarray(np.repeat(reward[:, None], actions, axis=1), dtype=np.float64)
    expert = rv.solve(mdp, table).policy
    demos = rv.simulate(mdp, expert, n=300, length=60, seed=seed)
    return Problem(features, rv.metrics.Truth(mdp, table, expert), demos)


def measure(name: str, candidate: Candidate, method: str, seed: int) -> dict[str, Any]:
    """One fit beside the truth."""
    here = problem(name, seed)
    mdp = here.truth.mdp
    reward = rv.NeuralReward(here.features, seed=seed, activation=candidate.activation)
    reward.vjp(reward.init(), np.zeros(mdp.feasible.shape))
    reward.value(reward.init())  # compiled before seconds count
    options = {"optimizer": candidate.optimizer, "l2": candidate.l2, "progress": False}
    begun = time.process_time()
    fit = METHODS[method](reward, **options).fit(mdp, here.demos)
    seconds = time.process_time() - begun
    scores = here.truth.evaluate(fit)
    return {
        "world": name,
        "candidate": str(candidate),
        "method": method,
        "seed": seed,
        "evd": scores["evd"],
        "excess": scores["excess_nll"],
        "seconds": seconds,
        "iterations": fit.iterations,
        "status": fit.status.code,
    }


def lines(found: list[dict[str, Any]]) -> Iterator[str]:
    """A markdown table: a row per world and candidate, for each method EVD, excess NLL, seconds and converged fits."""
    yield (
        "| world | network, search, penalty | "
        + " | ".join(f"{m}: EVD, excess NLL, s, converged" for m in METHODS)
        + " |"
    )
    yield "|---|---|" + "---|" * len(METHODS)
    worlds = list(dict.fromkeys(row["world"] for row in found))
    keys = dict.fromkeys((row["world"], row["candidate"]) for row in found)
    for world, candidate in sorted(keys, key=lambda key: worlds.index(key[0])):
        cells = [
            cell([r for r in found if (r["world"], r["candidate"], r["method"]) == (world, candidate, m)])
            for m in METHODS
        ]
        yield f"| {world} | {candidate} | " + " | ".join(cells) + " |"


def cell(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    evd, excess, seconds = (statistics.median(row[name] for row in rows) for name in ("evd", "excess", "seconds"))
    good = sum(row["status"] == "converged" for row in rows)
    return f"{evd:.3g}, {excess:.3f}, {seconds:.2g}, {good}/{len(rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", action="store_true", help="the whole grid of L-BFGS on the small worlds")
    parser.add_argument("--worlds", nargs="+", help=f"some of {', '.join(WORLDS)}, or another objectworld")
    parser.add_argument("--candidates", nargs="+", help="as in tanh,lbfgs,1e-5 or tanh,lbfgs,4/n")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", help="a file to which every fit is added, a line each")
    parser.add_argument("--table", nargs="+", help="only the table, of the fits in such files")
    asked = parser.parse_args()
    if asked.table:
        texts = [line for name in asked.table for line in Path(name).read_text().splitlines()]
        print("\n".join(lines([json.loads(text) for text in texts])))
        return
    candidates = EVERY if asked.every else FINALISTS
    if asked.candidates:
        parts = [text.split(",") for text in asked.candidates]
        candidates = tuple(Candidate(a, o, None if l2 == "4/n" else float(l2)) for a, o, l2 in parts)
    worlds = asked.worlds or (SMALL if asked.every else WORLDS)
    found = []
    cells: Any = itertools.product(worlds, candidates, asked.methods, range(asked.seeds))
    for world, candidate, method, seed in cells:
        found.append(measure(world, candidate, method, seed))
        print(found[-1], file=sys.stderr, flush=True)
        if asked.json:
            with Path(asked.json).open("a") as file:
                print(json.dumps(found[-1]), file=file)
    print("\n".join(lines(found)))


if __name__ == "__main__":
    main()
