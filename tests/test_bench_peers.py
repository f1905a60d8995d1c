"""The driver of benchmarks/bench_peers.py: its table and verdicts, and rivals that are missing, err or crash.

The rivals themselves are not installed here: a script of a few lines stands for one.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

FAKE = f"""
import sys
sys.path.insert(0, {str(BENCHMARKS / "peers")!r})
from serving import serve

def load():
    print("a rival that prints as it loads")

    def crash(request):
        print("out of memory", file=sys.stderr, flush=True)
        import os
        os._exit(3)

    def fail(request):
        raise ValueError("no such method")

    def work(request):
        print("a rival that prints as it works")
        return {{"seconds": request["seconds"], "threads": __import__("os").environ["OMP_NUM_THREADS"]}}

    return {{"work": work, "fail": fail, "crash": crash}}

serve(["numpy"], load)
"""


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The driver, with the environment as it was afterwards: the driver sets thread counts for its own process."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = dict(os.environ)
    module = importlib.import_module("bench_peers")
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)
    return module


@pytest.fixture
def fake(tmp_path: Path) -> str:
    script = tmp_path / "fake_rival.py"
    script.write_text(FAKE, encoding="utf-8")
    return str(script)


def task_that(bench: ModuleType, script: str, do: str, key: str, ours: float = 0.5, theirs: float = 5.0) -> Any:
    def measure(row: Any, rival: Any, folder: Path, laps: int) -> None:
        answer = rival.ask(do, seconds=theirs)
        row.ours, row.theirs, row.agreement = ours, answer["seconds"], f"threads {answer['threads']}"

    return bench.Task(bench.Row(key, f"the work {key}", "fake", aim=10.0), script, measure)


def run(bench: ModuleType, tasks: list[Any], path: Path, *arguments: str) -> int:
    return bench.main(["--markdown", "--json", str(path), *arguments], tasks, Path(sys.executable))


def test_a_verdict_compares_the_ratio_with_the_aim(bench: ModuleType):
    row = bench.Row("k", "work", "them", aim=10.0, ours=0.5, theirs=5.0)
    assert (row.ratio, row.verdict) == (10.0, "met")
    assert bench.Row("k", "work", "them", aim=10.0, ours=0.5, theirs=4.99).verdict == "missed"
    assert bench.Row("k", "work", "them", aim=10.0).verdict == "not measured"
    assert row.cells()[:6] == ["work", "500 ms", "them: 5 s", "10×", "≥ 10×", "met"]


def test_laps_alternate_and_keep_the_first_call_apart_from_the_best(bench: ModuleType, monkeypatch: pytest.MonkeyPatch):
    from peers.rows import Laps

    order: list[str] = []
    ours, theirs = iter([9.0, 2.0, 3.0, 4.0]), iter([90.0, 30.0])
    laps = Laps()
    laps.run(lambda: order.append("us") or next(ours), lambda: order.append("them") or next(theirs), 2, inner=2)
    assert order == ["us", "us", "them", "us", "us", "them"]
    assert laps.first == (9.0, 90.0)
    assert laps.best == (2.0, 30.0)


def test_what_a_rival_prints_does_not_reach_the_table(bench: ModuleType, fake: str, tmp_path: Path, capsys: Any):
    assert run(bench, [task_that(bench, fake, "work", "a")], tmp_path / "rows.json") == 0
    printed = capsys.readouterr().out
    assert "| the work a | 500 ms | fake: 5 s | 10× | ≥ 10× | met |  |\n\n- the work a: threads 1.\n" in printed
    assert "prints" not in printed
    assert "numpy" in printed.splitlines()[-2]
    assert "importing it takes" in printed.splitlines()[-2]


def test_a_rival_that_errs_or_crashes_loses_its_row_only(bench: ModuleType, fake: str, tmp_path: Path, capsys: Any):
    tasks = [task_that(bench, fake, do, key) for do, key in (("fail", "a"), ("crash", "b"), ("work", "c"))]
    assert run(bench, tasks, tmp_path / "rows.json") == 1
    rows = {row["key"]: row for row in json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["rows"]}
    assert rows["a"]["failed"] == "fake failed: ValueError: no such method"
    assert rows["b"]["failed"] == "fake stopped with code 3: out of memory"
    assert (rows["c"]["failed"], rows["c"]["theirs"]) == ("", 5.0)
    printed = capsys.readouterr().out
    assert "| the work b |  | fake |  | ≥ 10× | not measured |  |" in printed
    assert "- the work b: fake stopped with code 3: out of memory.\n" in printed


def test_a_missing_rival_is_said_in_one_sentence(bench: ModuleType, fake: str, tmp_path: Path):
    nowhere = tmp_path / "no" / "python"
    path = tmp_path / "rows.json"
    assert bench.main(["--json", str(path)], [task_that(bench, fake, "work", "a")], nowhere) == 1
    (row,) = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert row["failed"] == f"fake is not installed (there is no {nowhere}); `make bench-peers` installs it"


def test_what_was_finished_survives_an_interrupt_and_is_not_measured_again(
    bench: ModuleType, fake: str, tmp_path: Path
):
    path = tmp_path / "rows.json"

    def stop(row: Any, rival: Any, folder: Path, laps: int) -> None:
        raise KeyboardInterrupt

    first = task_that(bench, fake, "work", "a", theirs=5.0)
    interrupted = bench.Task(bench.Row("b", "the work b", "fake", 10.0), fake, stop)
    assert run(bench, [first, interrupted], path) == 1
    again = [task_that(bench, fake, "work", key, theirs=7.0) for key in ("a", "b")]
    assert run(bench, again, path, "--resume") == 0
    kept = {row["key"]: row["theirs"] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}
    assert kept == {"a": 5.0, "b": 7.0}
    # without --resume what is asked for is measured anew, and the other row stays
    assert run(bench, [task_that(bench, fake, "work", key, theirs=9.0) for key in ("a", "b")], path, "--only", "a") == 0
    kept = {row["key"]: row["theirs"] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}
    assert kept == {"a": 9.0, "b": 7.0}


def test_quick_and_only_choose_rows_by_their_keys(bench: ModuleType):
    keys = [task.row.key for task in bench.all_tasks()]
    assert len(set(keys)) == len(keys) == 21
    chosen = bench.chosen_tasks(bench.all_tasks(), quick=True, only=["garnet", "NFXP"])
    assert [task.row.key for task in chosen] == ["hard garnet 1000", "soft garnet 1000"]
