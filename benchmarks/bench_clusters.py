"""A sweep and a bootstrap in one process and on a cluster of two workers, undisturbed and with one of them killed.

    .venv/bin/python benchmarks/bench_clusters.py --on dask            needs dask[distributed]: a minute or two
    .venv/bin/python benchmarks/bench_clusters.py --on ray             needs ray
    .venv/bin/python benchmarks/bench_clusters.py --markdown           the table as docs/clusters.md has it

It starts the cluster here, by itself, and stops it. Every table is compared with that of one process, to the last
digit; a difference is an error. Seconds include what a cluster has to load: these are small pieces of work, on which it
hardly pays.
"""

from __future__ import annotations

from bench_core import in_words, machine  # first: it sets the thread counts  # isort: skip

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, cast

import pandas as pd
from joblib import parallel_config

import revealed as rv
from revealed.experiments.obstacleworld import Config
from revealed.experiments.runner import run_experiment
from revealed.progress import Progress

SWEEP = Config(size=10, trajectories=(1, 10), seeds=3)
REPS = 80
CLOCKS = ["seconds", "cell_seconds"]
HEADS = ("work", "one process", "two workers", "one worker killed mid-run", "the same numbers")

Kill = Callable[[], None]


def sweep(jobs: int | None) -> pd.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        return run_experiment("obstacleworld", SWEEP, folder, jobs=jobs, progress=False).frame.drop(columns=CLOCKS)


def bootstrap(jobs: int | None) -> pd.DataFrame:
    world = rv.environments.rust_bus()
    fit = rv.NFXP(world.reward_model(), progress=False).fit(world.mdp, world.demonstrate(30, 60, seed=1))
    return fit.bootstrap(reps=REPS, jobs=jobs, progress=False).params


WORK = {"sweep, 36 cells": (sweep, "reproduce"), f"bootstrap, {REPS} replications": (bootstrap, "bootstrap")}


@contextmanager
def on_dask() -> Iterator[Kill]:
    from distributed import Client, LocalCluster

    quiet: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50}
    made = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", **quiet)
    with cast(Any, made) as cluster, cast(Any, Client(made)) as client:

        def kill() -> None:
            client.wait_for_workers(2)
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

        with rv.on_cluster(cluster.scheduler_address):
            yield kill


@contextmanager
def on_ray() -> Iterator[Kill]:
    import ray
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()

    def kill() -> None:
        import psutil  # Ray brings it

        below = psutil.Process().children(recursive=True)
        next(one for one in below if "ray::PoolActor" in " ".join(one.cmdline())).kill()

    try:
        with parallel_config(backend="ray", n_jobs=-1):
            yield kill
    finally:
        ray.shutdown()


@contextmanager
def at_the_third_result(title: str, act: Kill) -> Iterator[list[int]]:
    """Something done once in the middle of the work whose bar has this title."""
    update, seen = Progress.update, []

    def updated(self: Progress, *given: Any, **named: Any) -> None:
        update(self, *given, **named)
        if self.title == title:
            seen.append(self.done)
            if len(seen) == 3:
                act()

    Progress.update = updated
    try:
        yield seen
    finally:
        Progress.update = update


def timed(act: Callable[[], pd.DataFrame]) -> tuple[float, pd.DataFrame]:
    born = time.perf_counter()
    found = act()
    return time.perf_counter() - born, found


def measure(work: Callable[[int | None], pd.DataFrame], title: str, kill: Kill) -> list[str]:
    """Seconds in one process, there, and there with a kill; a table that differs is an error."""
    alone, expected = timed(lambda: work(1))
    there, found = timed(lambda: work(None))
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    with at_the_third_result(title, kill) as seen:
        disturbed, found = timed(lambda: work(None))
    assert len(seen) >= 3, "nothing was killed"
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    return [*(in_words(seconds, "s") for seconds in (alone, there, disturbed)), "yes"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", choices=["dask", "ray"], default="dask")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    arguments = parser.parse_args()
    if find_spec({"dask": "distributed", "ray": "ray"}[arguments.on]) is None:
        parser.error(f"--on {arguments.on} needs it: pip install '.[{arguments.on}]'")
    with (on_ray if arguments.on == "ray" else on_dask)() as kill:
        rows = [[name, *measure(work, title, kill)] for name, (work, title) in WORK.items()]
    print(f"{machine()} On {arguments.on}.", end="\n\n")
    rows = [list(HEADS), *([["---"] * len(HEADS)] if arguments.markdown else []), *rows]
    for row in rows:
        print("| " + " | ".join(row) + " |" if arguments.markdown else "  ".join(f"{cell:>28}" for cell in row))


if __name__ == "__main__":
    main()
