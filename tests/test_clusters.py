"""A real Dask cluster of two worker processes on this machine gives the tables of one process, whoever is killed."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

import revealed as rv
from killed_runs import CONFIG
from revealed.clusters import address_in, require_same
from revealed.errors import InvalidInput, WorkersLost
from revealed.experiments.obstacleworld import cells
from revealed.experiments.runner import run_experiment
from revealed.experiments.store import Store
from revealed.parallel import each, in_order, in_worker
from revealed.progress import Progress
from test_panel_counts import assert_same_counts, panel, read

distributed = pytest.importorskip("distributed", reason="needs dask[distributed]")

CLOCKS = ["seconds", "cell_seconds"]


class Cluster:
    """Two workers with one thread each, found by their process ids."""

    def __init__(self, made: Any, client: Any) -> None:
        self.made, self.client = made, client
        self.killed: list[int] = []

    @property
    def address(self) -> str:
        return self.made.scheduler_address

    def pids(self) -> list[int]:
        self.client.wait_for_workers(2, timeout=30)
        return sorted(self.client.run(os.getpid).values())

    def kill(self) -> None:
        """The older of the workers dies; Dask starts another in its place, but has to find out first."""
        self.killed.append(self.pids()[0])
        os.kill(self.killed[-1], signal.SIGKILL)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    options: dict[str, Any] = {"dashboard_address": None, "host": "127.0.0.1", "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield Cluster(made, client)


@pytest.fixture
def at_the_third_result(monkeypatch) -> Callable[[Callable[[], None]], None]:
    """Has something done in the middle of a run: when its third result has come in."""

    def arrange(act: Callable[[], None]) -> None:
        update, seen = Progress.update, []

        def updated(self: Progress, *given: Any, **named: Any) -> None:
            update(self, *given, **named)
            seen.append(self.done)
            if len(seen) == 3:
                act()

        monkeypatch.setattr(Progress, "update", updated)

    return arrange


def sweep(folder: Any, jobs: int | None = None) -> pd.DataFrame:
    results = run_experiment("obstacleworld", CONFIG, folder, progress=False, jobs=jobs)
    return results.frame.drop(columns=CLOCKS)


def test_a_sweep_survives_a_killed_worker_with_the_same_table(cluster, at_the_third_result, tmp_path):
    before = len(cluster.killed)
    at_the_third_result(cluster.kill)
    with rv.on_cluster(cluster.address) as n:
        assert n == 2
        there = sweep(tmp_path / "cluster")
    assert len(cluster.killed) == before + 1
    pd.testing.assert_frame_equal(there, sweep(tmp_path / "here", jobs=1), check_exact=True)


def garnet() -> Any:
    world = rv.environments.garnet(n_states=60, n_actions=3, seed=2)
    return rv.NPL(world.reward_model(), updates=2).fit(world.mdp, world.demonstrate(40, 60, seed=1))


def test_a_bootstrap_survives_a_killed_worker_with_the_same_replications(cluster, at_the_third_result):
    alone = garnet().bootstrap(reps=60, jobs=1, progress=False)
    before = len(cluster.killed)
    at_the_third_result(cluster.kill)
    with parallel_config(backend="dask", client=cluster.client):
        there = garnet().bootstrap(reps=60, progress=False)
    assert len(cluster.killed) == before + 1
    assert there.failures == alone.failures
    np.testing.assert_array_equal(there.index, alone.index)
    np.testing.assert_array_equal(there.theta, alone.theta)


def test_a_monte_carlo_study_of_trips_is_the_same_there(cluster):
    """Of trips with goals whole fits travel; within one the goals share a factorisation, which cannot."""
    city = rv.environments.city(100, seed=0)
    options: dict[str, Any] = {"replications": 4, "n": 60, "progress": False}
    alone = rv.monte_carlo(city, [rv.NFXP(city.reward)], jobs=1, **options)
    with rv.on_cluster(cluster.address):
        there = rv.monte_carlo(city, [rv.NFXP(city.reward)], **options)
    clocks = ["seconds", "error_seconds"]
    pd.testing.assert_frame_equal(there.frame.drop(columns=clocks), alone.frame.drop(columns=clocks), check_exact=True)


def test_goals_go_there_where_they_are_many(cluster, monkeypatch):
    """The cases of CCP, one for each goal, have nothing in common: the same estimate, and the work is counted."""
    monkeypatch.setattr("revealed.goal_cases.MOST_KEPT", 0)  # many pairs, as it were
    city = rv.environments.city(100, seed=0)
    trips = city.demonstrate(80, seed=1)
    alone = rv.CCP(city.reward).fit(city.mdp, trips)
    asked: list[int] = []
    monkeypatch.setattr(
        "revealed.goal_cases.in_order", lambda f, items: [asked.append(len(items)), in_order(f, items)][1]
    )
    with rv.on_cluster(cluster.address):
        there = rv.CCP(city.reward).fit(city.mdp, trips)
    assert sum(asked) > 0
    np.testing.assert_array_equal(there.theta, alone.theta)
    assert there.history["linear_solves"].to_list() == alone.history["linear_solves"].to_list()


def test_nothing_that_is_needed_later_lies_with_a_worker_alone(cluster):
    """Of large arguments joblib would leave the only copy with one worker, and with it all pieces would be lost."""
    table, lone = np.ones(100_000), []
    with parallel_config(backend="dask", client=cluster.client):
        for total in each(np.sum, [(table,) for _ in range(6)]):
            assert total == table.size
            lone += [key for key, task in cluster.made.scheduler.tasks.items() if task.run_spec is None]
    assert lone == []


def test_pieces_there_know_that_they_share_the_cores(cluster):
    assert not in_worker()
    with parallel_config(backend="dask", client=cluster.client):
        assert set(each(in_worker, [()] * 3)) == {True}


def test_a_panel_in_many_files_is_counted_by_the_cluster(cluster, tmp_path, monkeypatch):
    """Workers read, join and count the files; no more than counts comes here."""
    dd = pytest.importorskip("dask.dataframe")
    once = panel(0, 4)
    table = pd.concat([once.assign(month=once.month + 30 * k) for k in range(20)], ignore_index=True)
    for k in range(4):
        table.iloc[k::4].to_parquet(tmp_path / f"part{k}.parquet")
    travelled, compute = [], dd.DataFrame.compute

    def watch(self: Any, **options: Any) -> Any:
        found = compute(self, **options)
        travelled.append(len(found))
        return found

    monkeypatch.setattr(dd.DataFrame, "compute", watch)
    with cluster.client.as_current():
        frame = dd.read_parquet(tmp_path)
        assert frame.npartitions == 4
        there = read(frame, state="name", weight="w")
    assert 0 < max(travelled) < len(table) / 5
    assert_same_counts(there, read(table, state="name", weight="w"))


def test_an_interrupt_keeps_what_the_cluster_had_finished(cluster, at_the_third_result, tmp_path):
    def interrupt() -> None:
        raise KeyboardInterrupt

    at_the_third_result(interrupt)
    with rv.on_cluster(cluster.address), pytest.raises(KeyboardInterrupt):
        sweep(tmp_path)
    kept = Store(tmp_path).results(CONFIG, cells(CONFIG)).frame
    assert len(kept) == 3
    with rv.on_cluster(cluster.address):
        assert len(sweep(tmp_path)) == len(cells(CONFIG))
    again = Store(tmp_path).results(CONFIG, cells(CONFIG)).frame.set_index("key")
    assert (again.loc[kept["key"], "cell_seconds"].to_numpy() == kept["cell_seconds"].to_numpy()).all()


# addresses


def test_nobody_at_an_address_is_told_in_words(monkeypatch):
    monkeypatch.setattr("revealed.clusters.ANSWER_SECONDS", 0.2)
    with (
        pytest.raises(InvalidInput, match=r"`cluster`: expected a Dask scheduler that responds; got tcp://127.0.0.1:1"),
        rv.on_cluster("tcp://127.0.0.1:1"),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (None, "FILE: No such file or directory"),
        ("", "FILE, which is not JSON"),
        ("[" * 100_000, "FILE, which is not JSON"),
        ("tcp://127.0.0.1:1", "FILE, which is not JSON"),
        ('["tcp://127.0.0.1:1"]', "FILE, which has no address"),
        ('{"theta": 1.0}', "FILE, which has no address"),
        ('{"address": "here"}', "FILE, whose address is 'here'"),
    ],
)
def test_a_file_that_no_scheduler_wrote_is_refused_at_the_door(text, got, tmp_path, monkeypatch):
    def asked(*given: Any, **named: Any) -> Any:
        raise AssertionError("Dask was asked, which waits for ever")

    monkeypatch.setattr(distributed, "Client", asked)
    file = tmp_path / "s.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InvalidInput) as refused, rv.on_cluster(file):
        pass
    assert str(refused.value) == (
        f"`cluster`: expected a file that a Dask scheduler wrote; got {got.replace('FILE', str(file))}. `dask "
        "scheduler --scheduler-file FILE` writes one; the scheduler's address works, too."
    )


def test_the_file_of_a_scheduler_leads_to_its_cluster(cluster, tmp_path):
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"type": "Scheduler", "address": cluster.address, "workers": {}}))
    assert address_in(str(file)) == cluster.address
    with rv.on_cluster(file) as n:
        assert n == 2


def test_a_package_that_workers_lack_is_named(cluster, monkeypatch):
    """The workers are asked for a package that is nowhere; that it is here is pretended."""
    monkeypatch.setattr("revealed.clusters.SAME", ("no-such-package",))
    monkeypatch.setattr("revealed.clusters.version", Here())
    said = r"expected workers with no-such-package 1\.0, as here; got no installation \(first at tcp://.*\)\. Install "
    with pytest.raises(InvalidInput, match=said), rv.on_cluster(cluster.address):
        pass


class Here:
    """`version` as it is here, where every package has version 1.0; at a worker it is the real one."""

    def __call__(self, name: str) -> str:
        return "1.0"

    def __reduce__(self) -> Any:
        return getattr, (sys.modules["importlib.metadata"], "version")


class RayTaskError(PackageNotFoundError):
    """Ray's errors are of a class of Ray's and of the one that was raised at the worker."""

    def __str__(self) -> str:
        return "ray::version() (pid=1, ip=127.0.0.1)\n  a traceback of the worker's"


@pytest.mark.parametrize(
    ("error", "got"),
    [(RayTaskError("revealed"), "no installation"), (OSError("no\n room"), "OSError: no room")],
)
def test_a_package_that_workers_of_ray_lack_is_named(error, got, monkeypatch):
    """Ray is played: a cluster that runs, whose worker raises."""

    def get(asked: Any) -> Any:
        raise error

    remote = SimpleNamespace(remote=lambda name: None)
    ray: Any = SimpleNamespace(is_initialized=lambda: True, remote=lambda function: remote, get=get)
    joined: Any = SimpleNamespace(register_ray=lambda: None)
    for name, module in {"ray": ray, "ray.util": SimpleNamespace(), "ray.util.joblib": joined}.items():
        monkeypatch.setitem(sys.modules, name, module)
    said = rf"with revealed .*, as here; got {got} \(first at a Ray worker\)\. Install the same versions there"
    with pytest.raises(InvalidInput, match=said), rv.on_cluster("ray"):
        pass


def test_workers_with_another_version_are_named():
    require_same("revealed", {"tcp://here": rv.__version__})
    said = r"expected workers with revealed .*, as here; got 0\.0\.1 \(first at tcp://there\)\. Install the same"
    with pytest.raises(InvalidInput, match=said):
        require_same("revealed", {"tcp://here": rv.__version__, "tcp://there": "0.0.1"})


# the last one: it leaves the cluster without a worker


def test_a_piece_that_kills_every_worker_is_given_up_in_words(cluster):
    cluster.made.scheduler.allowed_failures = 0  # Dask's own patience, which is for three workers
    said = r"^worker processes kept dying; unfinished tasks: 1 \(KilledWorker: .* use fewer workers, or give each"
    with parallel_config(backend="dask", client=cluster.client), pytest.raises(WorkersLost, match=said):
        list(each(os._exit, [(1,)], 2))
