"""A run computes what is missing, whatever stopped the one before; the table does not depend on who computed it."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

import killed_runs
from killed_runs import CONFIG
from revealed import progress
from revealed.errors import InvalidInput, InvalidOption, SolverFailed
from revealed.experiments import mountaincar, obstacleworld, runner
from revealed.experiments.cells import Cell, Measured, Results, fingerprint, make_estimator
from revealed.experiments.obstacleworld import Config, cells
from revealed.experiments.runner import measure_cell, results_of, run_experiment, run_plan
from revealed.experiments.store import Store

CELLS = cells(CONFIG)
CLOCKS = ["seconds", "cell_seconds"]


def run(folder: Path, config: Config = CONFIG, **options: Any) -> Results:
    return run_experiment("obstacleworld", config, folder, progress=False, **options)


def without_clocks(results: Results) -> pd.DataFrame:
    """The table but for the seconds, which are never twice the same."""
    return results.frame.drop(columns=CLOCKS)


class Counting:
    """Takes the place of the estimation: quick rows with known values, and a list of the cells that were asked for."""

    def __init__(self) -> None:
        self.calls: list[Cell] = []
        self.fails_at: dict[Cell, BaseException] = {}

    def __call__(self, config: Config, cell: Cell) -> Measured:
        self.calls.append(cell)
        if cell in self.fails_at:
            raise self.fails_at[cell]
        row = {"status": "converged", "message": "", "seconds": 0.0, "iterations": cell.size, "value": config.scale}
        return Measured(row, {"x": np.arange(5.0)} if cell.size == 3 else {})

    def since(self) -> list[Cell]:
        """The cells that were asked for since the last time."""
        calls, self.calls = self.calls, []
        return calls


@pytest.fixture
def measure(monkeypatch) -> Counting:
    counting = Counting()
    monkeypatch.setattr(obstacleworld, "measure", counting)
    return counting


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Results:
    """A run in this process that nothing disturbed."""
    return run(tmp_path_factory.mktemp("straight"), jobs=1)


def test_a_row_for_every_cell_with_where_how_and_what(straight):
    frame = straight.frame
    assert len(straight.failed) == 0
    places = [tuple(cell.place.values()) for cell in CELLS]
    assert [tuple(row) for row in frame[list(CELLS[0].place)].itertuples(index=False)] == places
    told = "status seconds iterations linear_solves weighting tol l2 excess_nll evd stochastic_evd epic starc processor"
    assert frame[told.split()].notna().all(axis=None)
    assert set(frame["config"]) == {fingerprint(CONFIG)}
    assert (frame["weighting"] == frame["variant"]).all()
    assert (frame["cell_seconds"] >= frame["seconds"]).all()


def test_two_workers_give_the_same_table_as_one(straight, tmp_path):
    two = run(tmp_path, jobs=2)
    pd.testing.assert_frame_equal(without_clocks(two), without_clocks(straight), check_exact=True)
    pairs = list(zip(two.arrays(), straight.arrays(), strict=True))
    assert len(pairs) == 4 * CONFIG.seeds  # MCE-IRL twice
    for (_, a), (_, b) in pairs:
        assert a.keys() == b.keys() == {"reward", "policy"}
        assert all((a[name] == b[name]).all() for name in a)


def test_threads_give_the_same_table_too(straight, tmp_path):
    with parallel_config(backend="threading", n_jobs=2):
        threads = run(tmp_path)
    pd.testing.assert_frame_equal(without_clocks(threads), without_clocks(straight), check_exact=True)


def test_a_second_call_computes_nothing(measure, tmp_path):
    first = run(tmp_path)
    assert measure.since() == CELLS
    second = run(tmp_path)
    assert measure.since() == []
    pd.testing.assert_frame_equal(first.frame, second.frame)


# what stops a run


def killed(folder: Path, *words: str) -> list[int]:
    """The numbers of cells that were there after each kill."""
    command = [sys.executable, killed_runs.__file__, *words[:1], str(folder), *words[1:]]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork processes")


@needs_fork
def test_runs_that_are_killed_go_on_and_end_with_the_same_table(straight, tmp_path, monkeypatch):
    left = killed(tmp_path, "killed")
    assert len(left) == killed_runs.KILLS
    assert 0 < left[0] < left[-1] < len(CELLS)  # each kill left more than the one before found
    assert sorted(left) == left
    calls: list[Cell] = []
    measured = obstacleworld.measure
    monkeypatch.setattr(obstacleworld, "measure", lambda config, cell: [calls.append(cell), measured(config, cell)][1])
    ended = run(tmp_path)
    assert len(calls) == len(CELLS) - left[-1]  # nothing was computed twice
    pd.testing.assert_frame_equal(without_clocks(ended), without_clocks(straight), check_exact=True)


def has_all_of_heavy(results: Results) -> None:
    """Whether every row and array is what `killed_runs.heavy` gave."""
    assert len(results.frame) == len(CELLS)
    assert list(results.frame["value"]) == [cell.size + cell.seed / 8 for cell in CELLS]
    found = {row.key: arrays["noise"] for row, arrays in results.arrays()}
    for key, cell in zip(results.frame["key"], CELLS, strict=True):
        np.testing.assert_array_equal(found[key], killed_runs.noise(cell))


@needs_fork
def test_runs_that_are_killed_while_they_write_go_on_as_well(tmp_path, monkeypatch):
    left = killed(tmp_path, "killed", "heavy")
    assert len(left) == killed_runs.KILLS
    assert left[-1] < len(CELLS)  # something is left to do, and what the kills cut off is not taken for whole
    assert len(Store(tmp_path).results(CONFIG, CELLS).frame) == left[-1]
    monkeypatch.setattr(obstacleworld, "measure", killed_runs.heavy)
    has_all_of_heavy(run(tmp_path))


@needs_fork
def test_two_runs_at_once_in_one_folder_do_no_harm(tmp_path, measure):
    killed(tmp_path, "together", "heavy")
    has_all_of_heavy(run(tmp_path))
    assert measure.since() == []
    rows = [json.loads(line) for line in (tmp_path / "table.jsonl").read_text().splitlines() if line]
    assert len(rows) == 2 * len(CELLS)  # they knew nothing of each other, and no line was torn


def test_an_interrupt_stops_the_run_and_keeps_what_was_finished(measure, tmp_path):
    measure.fails_at = {CELLS[7]: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    assert measure.since() == CELLS[:8]
    measure.fails_at = {}
    assert len(run(tmp_path).frame) == len(CELLS)
    assert measure.since() == CELLS[7:]


def interrupted_at_the_eighth(config: Config, cell: Cell) -> tuple[Any, Cell, Measured]:
    if cell == CELLS[7]:
        raise KeyboardInterrupt
    return measure_cell(config, cell)


def test_an_interrupt_in_a_worker_stops_the_run_and_keeps_what_was_finished(straight, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "measure_cell", interrupted_at_the_eighth)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, jobs=2)
    monkeypatch.undo()
    kept = Store(tmp_path).results(CONFIG, CELLS).frame
    assert 0 < len(kept) < len(CELLS)
    pd.testing.assert_frame_equal(without_clocks(run(tmp_path)), without_clocks(straight), check_exact=True)


def test_half_a_fit_is_not_stored(tmp_path, monkeypatch):
    def enough(point: Any) -> None:
        if point.iteration == 1:
            raise KeyboardInterrupt  # as if by Ctrl-C in the middle of a search, which then ends and keeps its point

    def make(*given: Any, **options: Any) -> Any:
        return make_estimator(*given, **options, callback=enough)

    monkeypatch.setattr(obstacleworld, "make_estimator", make)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    assert (tmp_path / "table.jsonl").read_bytes() == b""


# cells that fail


def test_a_cell_that_fails_is_recorded_with_its_reason_and_tried_again(measure, tmp_path):
    measure.fails_at = {CELLS[3]: ArithmeticError("no end\n  in sight"), CELLS[5]: SolverFailed("`x`: too far.")}
    results = run(tmp_path)
    assert measure.since() == CELLS
    assert len(results.frame) == len(CELLS) - 2
    assert list(results.failed["message"]) == ["ArithmeticError: no end in sight", "`x`: too far."]
    assert list(results.failed["method"]) == [CELLS[3].method, CELLS[5].method]
    assert results.frame["iterations"].dtype == np.int64  # not turned into floats by what the failed cells lack
    measure.fails_at = {}
    again = run(tmp_path)
    assert measure.since() == [CELLS[3], CELLS[5]]
    assert len(again.frame) == len(CELLS)
    assert len(again.failed) == 0


def test_a_run_in_which_everything_fails_still_ends(measure, tmp_path):
    measure.fails_at = {cell: ValueError("never") for cell in CELLS}
    results = run(tmp_path)
    assert len(results.failed) == len(CELLS)
    assert len(results.where(method="CCP", variant="sample")) == 0
    assert list(results.arrays(seed=0)) == []


# configurations


def test_another_configuration_is_not_mixed_with_the_old_one(measure, tmp_path):
    other = replace(CONFIG, scale=2.0)
    run(tmp_path)
    measure.since()
    assert set(run(tmp_path, other).frame["value"]) == {2.0}
    assert measure.since() == CELLS
    back = run(tmp_path)
    assert measure.since() == []
    assert set(back.frame["value"]) == {CONFIG.scale}
    assert len((tmp_path / "table.jsonl").read_text().splitlines()) == 2 * len(CELLS)


def test_more_seeds_keep_the_old_cells_and_fewer_leave_the_others_out(measure, tmp_path):
    run(tmp_path, replace(CONFIG, seeds=1))
    assert {cell.seed for cell in measure.since()} == {0}
    run(tmp_path, replace(CONFIG, seeds=3))
    assert {cell.seed for cell in measure.since()} == {1, 2}
    results = run(tmp_path, replace(CONFIG, seeds=2))
    assert measure.since() == []
    assert set(results.frame["seed"]) == {0, 1}


def test_fresh_computes_everything_anew(measure, tmp_path):
    before = run(tmp_path)
    measure.since()
    after = run(tmp_path, fresh=True)
    assert measure.since() == CELLS
    assert (after.frame["cell_seconds"] != before.frame["cell_seconds"]).any()  # two of them may tick alike
    pd.testing.assert_frame_equal(after.frame, run(tmp_path).frame)  # and it is the new rows that are found later


def test_a_folder_says_what_was_asked_for_and_where(measure, tmp_path):
    run_plan({"obstacleworld": CONFIG}, tmp_path, scale="quick")
    about = json.loads((tmp_path / "run.json").read_text())
    assert about["scale"] == "quick"
    told = about["configs"]["obstacleworld"]
    assert told.pop("fingerprint") == fingerprint(CONFIG)
    assert told == json.loads(json.dumps(asdict(CONFIG)))
    assert {"processor", "cores", "python", "revealed", "numpy"} <= about["machine"].keys()


def test_a_run_of_some_experiments_leaves_the_configurations_of_the_others_at_the_same_scale(measure, tmp_path):
    cars = mountaincar.Config(seeds=0)
    run_plan({"mountaincar": cars}, tmp_path, scale="quick")
    run_plan({"obstacleworld": replace(CONFIG, seeds=1)}, tmp_path, scale="quick")
    run_plan({"obstacleworld": CONFIG}, tmp_path, scale="quick")
    about = Store.existing(tmp_path).read_run()
    assert about["configs"].keys() == {"mountaincar", "obstacleworld"}
    assert about["configs"]["obstacleworld"]["seeds"] == CONFIG.seeds
    run_plan({"obstacleworld": CONFIG}, tmp_path, scale="paper")
    assert Store.existing(tmp_path).read_run()["configs"].keys() == {"obstacleworld"}


def test_results_of_a_plan_come_by_experiment(measure, tmp_path):
    plan = {"obstacleworld": CONFIG, "mountaincar": mountaincar.Config(seeds=0)}
    found = results_of(run_plan(plan, tmp_path), plan)
    counts = {name: len(results.frame) for name, results in found.items()}
    assert counts == {"obstacleworld": len(CELLS), "mountaincar": 0}


# workers


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "2", True])
def test_a_number_of_jobs_that_is_none_is_a_clear_error(jobs, tmp_path):
    with pytest.raises(InvalidInput, match="`jobs`: expected a whole number, at least 1"):
        run_plan({"obstacleworld": CONFIG}, tmp_path / "new", jobs=jobs)
    assert not (tmp_path / "new").exists()


def test_an_experiment_that_is_not_known_is_a_clear_error(tmp_path):
    with pytest.raises(InvalidOption, match=r"one of obstacleworld, .*; got 'obstacles'"):
        run_plan({"obstacles": CONFIG}, tmp_path)


def test_cells_that_measure_time_run_here_one_at_a_time_after_the_others(measure, tmp_path, monkeypatch):
    busy, order = threading.Lock(), []

    def alone(config: Any, cell: Cell) -> Measured:
        assert busy.acquire(blocking=False)
        order.append((cell.experiment, threading.current_thread() is threading.main_thread()))
        busy.release()
        return Measured({"status": "converged", "message": ""})

    def shared(config: Any, cell: Cell) -> Measured:
        order.append((cell.experiment, None))
        return measure(config, cell)

    monkeypatch.setattr(mountaincar, "measure", alone)
    monkeypatch.setattr(mountaincar, "ALONE", True)
    monkeypatch.setattr(obstacleworld, "measure", shared)
    cars = mountaincar.Config(trajectories=(3,), seeds=1, beside=1)
    with parallel_config(backend="threading"):
        run_plan({"mountaincar": cars, "obstacleworld": CONFIG}, tmp_path, jobs=2)
    assert order == [("obstacleworld", None)] * len(CELLS) + [("mountaincar", True)] * 10
    rows = [json.loads(line) for line in (tmp_path / "table.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["experiment"] for row in rows if "other_work" in row} == {"mountaincar"}


def test_linear_algebra_keeps_to_one_thread_in_every_worker(tmp_path, monkeypatch):
    meeting, gone = threading.Barrier(2, timeout=10.0), threading.Event()
    seen: list[int] = []

    def measure(config: Any, cell: Cell) -> Measured:
        if not gone.is_set() and meeting.wait() == 0:
            gone.wait(10.0)  # the other one leaves first
        gone.set()
        seen.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return Measured({"status": "converged", "message": ""})

    monkeypatch.setattr(obstacleworld, "measure", measure)
    with threadpool_limits(2), parallel_config(backend="threading", n_jobs=2):
        assert len(run(tmp_path, replace(CONFIG, seeds=1)).frame) == 8
    assert set(seen) == {1}


# progress


@pytest.fixture
def clock(monkeypatch) -> dict[str, float]:
    now = {"seconds": 100.0}
    monkeypatch.setattr(runner.time, "perf_counter", lambda: now["seconds"])
    return now


def place(cost: float, seed: int = 0) -> tuple[Any, Cell]:
    return CONFIG, Cell("obstacleworld", "", "CCP", 1, seed, cost=cost)


def test_the_remaining_time_follows_the_pace_of_the_finished_cells(clock):
    work = [place(1.0, 0), place(3.0, 1), place(40.0, 2)]
    left = runner._Clock(work, [], 1)
    clock["seconds"] += 2.0
    assert left.after(work[0][1]) == "1 running, about 1 min 26 s left"
    clock["seconds"] += 2.0  # the next three guessed seconds took two as well
    assert left.after(work[1][1]) == "1 running, about 40 s left"
    assert left.after(work[2][1]) == "0 running, about 0 s left"


def test_cells_that_run_alone_are_not_shared_among_the_workers(clock):
    together, alone = [place(4.0, seed) for seed in range(3)], [place(10.0, 3), place(10.0, 4)]
    left = runner._Clock(together, alone, 2)
    clock["seconds"] += 2.0  # two workers: four guessed seconds in two
    assert left.after(together[0][1]) == "2 running, about 24 s left"
    clock["seconds"] += 4.0
    left.after(together[1][1])
    assert left.after(together[2][1]) == "1 running, about 20 s left"
    clock["seconds"] += 10.0
    assert left.after(alone[0][1]) == "1 running, about 10 s left"
    assert left.after(alone[1][1]).startswith("0 running")


def test_a_line_says_how_far_the_whole_run_is(clock):
    together, alone = [place(10.0, seed) for seed in range(2)], [place(100.0, 2)]
    left = runner._Clock(together, alone, 2, before=5)
    assert left.line() == "5 of 8 tasks done"  # nothing to guess from
    clock["seconds"] += 10.0
    left.after(together[0][1])
    assert left.line() == "6 of 8 tasks done, about 4 min left"
    clock["seconds"] += 10.0
    left.after(together[1][1])
    clock["seconds"] += 80.0
    assert left.line() == "7 of 8 tasks done, about 17 min left"


def test_a_line_is_told_after_each_minute_that_the_work_takes():
    said: list[str] = []
    waited: list[float] = []
    minutes = iter([False, False, True])
    progress.say_lines(said.append, lambda: f"line {len(said)}", lambda s: [waited.append(s), next(minutes)][1])
    assert said == ["line 0", "line 1"]
    assert waited == [60.0, 60.0, 60.0]


def test_a_run_that_is_told_about_has_such_lines_while_it_lasts(measure, tmp_path, monkeypatch):
    told: list[str] = []
    spoken = threading.Event()

    def at_once(tell: Any, line: Any, wait: Any) -> None:
        tell(line())
        spoken.set()
        assert wait(10.0)  # until the work has ended

    def slow(config: Config, cell: Cell) -> Measured:
        spoken.wait(10.0)
        return measure(config, cell)

    monkeypatch.setattr(progress, "say_lines", at_once)
    monkeypatch.setattr(obstacleworld, "measure", slow)
    run_plan({"obstacleworld": CONFIG}, tmp_path, jobs=1, progress=False, tell=told.append)
    assert told[0] == f"0 of {len(CELLS)} tasks done"
    assert told[1].startswith("obstacleworld is finished, ")
    assert "revealed-minutes" not in [thread.name for thread in threading.enumerate()]


def test_a_reader_who_is_gone_ends_the_lines_and_not_the_run():
    def tell(line: str) -> None:
        raise BrokenPipeError

    progress.say_lines(tell, str, lambda seconds: False)


def test_a_cell_without_cost_is_no_obstacle(clock):
    assert runner._Clock([place(0.0)], [], 1).after(place(0.0)[1]) == "0 running, about 0 s left"
