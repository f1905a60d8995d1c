"""A PyTorch reward on one thread, as the library calls it, beside all the threads that PyTorch has of its own.

.venv/bin/python benchmarks/bench_torch.py               CCP on Objectworld 16² and 32², 300 iterations each

A search calls a small module thousands of times. Threads that wake for every call fight with ours for the cores, the
more so the busier the machine is.
"""

from __future__ import annotations

import time

import torch

import revealed as rv
from revealed.rewards import torch as ours


def seconds(size: int, many_rows: int) -> float:
    """Of a fit; modules with at least so many inputs keep their threads."""
    world = rv.environments.objectworld(size)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)]
    ours.MANY_ROWS = many_rows
    reward = rv.TorchReward(torch.nn.Sequential(*layers), world.features)
    demos = world.demonstrate(256, 15, seed=0)
    begun = time.perf_counter()
    rv.CCP(reward, optimizer="lbfgs", l2=1e-3, max_iter=300).fit(world.mdp, demos)
    return time.perf_counter() - begun


def main() -> None:
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads of its own\n")
    print("| Objectworld | its own threads | one | ratio |\n|---|---|---|---|")
    for size in (16, 32):
        seconds(size, 0)  # what is loaded and compiled once
        own, one = (min(seconds(size, rows) for _ in range(2)) for rows in (0, 50_000))
        print(f"| {size}² | {own:.2f} s | {one:.2f} s | {own / one:.1f}× |", flush=True)


if __name__ == "__main__":
    main()
