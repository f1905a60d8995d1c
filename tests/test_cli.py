"""The command line as a user meets it: in a process of its own where that matters, and quickly elsewhere."""

import os
import subprocess
import sys

import pandas as pd
import pytest
from rich.cells import cell_len

from judged import VERDICTS
from revealed import __version__, findings
from revealed.claim_words import READINGS, count_verdicts
from revealed.commands import reproduce as command
from revealed.errors import RevealedError, WorkersLost
from revealed.experiments import catalogue, machine, runner
from revealed.experiments.obstacleworld import Config
from revealed.experiments.store import Store
from revealed.findings import Findings
from shell import here, one_line

TINY = {"obstacleworld": Config(size=5, trajectories=(1, 3), seeds=2)}
# the same command with a plan for tests: 24 small cells, and no pictures, which take the time
SMALL = """
from revealed.experiments import catalogue, obstacleworld
catalogue.plan_for = lambda scale: {"obstacleworld": obstacleworld.Config(size=5, trajectories=(1, 3), seeds=2)}
obstacleworld.draw = lambda results: {}
"""
# Ctrl-C arrives while the sixth cell is computed
INTERRUPTED = """
import os, signal
measure, done = obstacleworld.measure, []
def interrupted(config, cell):
    done.append(cell)
    if len(done) == 6:
        os.kill(os.getpid(), signal.SIGINT)
    return measure(config, cell)
obstacleworld.measure = interrupted
"""
START = "\nfrom revealed.cli import app\napp(prog_name='revealed')"


def python(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environment)


def revealed(*arguments: object) -> subprocess.CompletedProcess[str]:
    return python("-m", "revealed", *arguments)


@pytest.fixture(autouse=True)
def guest(monkeypatch):
    """The command owns its process, and sets JAX's threads; run in this one, it does not."""
    monkeypatch.setattr(machine, "ask_jax_for_one_thread", lambda: None)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out") / "made" / "on the way"
    return folder, python("-c", SMALL + START, "reproduce", "--out", folder, "--jobs", 1)


@pytest.mark.parametrize(
    ("arguments", "example"),
    [
        (["--help"], "revealed reproduce --scale quick --out results/quick --jobs 2"),
        (["reproduce", "--help"], "revealed reproduce --scale quick --out results/quick --jobs 2"),
        (["report", "-h"], "revealed report results/quick"),
    ],
)
def test_help_shows_a_full_example(arguments, example):
    done = here(*arguments)
    assert done.exit_code == 0
    assert example in done.stdout


def test_help_loads_nothing_heavy():
    loaded = python("-c", "import sys; from revealed.cli import app; print(*sys.modules)").stdout.split()
    assert "revealed.cli" in loaded
    assert not {"jax", "matplotlib", "pandas", "torch", "duckdb", "joblib", "narwhals", "numpy", "scipy"} & set(loaded)


def test_version():
    done = revealed("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"revealed {__version__}")


def test_reproduce_writes_the_run_and_its_report(reproduced):
    folder, done = reproduced
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no bar and no warning where there is no terminal
    names = ["arrays", "drawn", "figures", "report.html", "run.json", "table.csv", "table.jsonl", "tables"]
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == names
    assert Store.existing(folder).read_run()["scale"] == "quick"


def test_the_summary_is_printed_whole_in_eighty_columns(reproduced):
    folder, done = reproduced
    lines = done.stdout.splitlines()
    assert lines[0] == f"1 experiment, 16 tasks (0 done), 1 at a time, into {folder}"
    assert lines[-1] == f"Wrote {folder / 'report.html'}; also figures/, tables/ and table.csv there."
    assert all(cell_len(line) <= 80 for line in lines[1:-1])
    assert "…" not in done.stdout  # nothing was cut off
    said = " ".join(done.stdout.split())
    verdicts = findings.judge(findings.results_of(Store.existing(folder), TINY))
    assert verdicts
    for reading, name in READINGS.items():
        assert f"{name}: {count_verdicts(verdicts, reading)['holds']} hold, " in said


def told(found: Findings, monkeypatch, capsys) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    command._print_verdicts(found)
    return capsys.readouterr().out


def test_a_row_has_the_claim_both_verdicts_and_the_share(tmp_path, monkeypatch, capsys):
    said = told(Findings(Store(tmp_path), "quick", {}, [], VERDICTS, []), monkeypatch, capsys)
    assert all(cell_len(line) <= 80 for line in said.splitlines())
    first = next(line for line in said.splitlines() if line.split()[:2] == ["MCE-IRL", "needs"])
    assert first.split()[-7:] == ["holds", "does", "not", "hold", "212", "of", "300"]
    for words in ("Figure 1)", "(71 %)", "the same", "not tested"):
        assert words in said
    assert "Algorithm 1: 0 hold, 2 do not hold, 1 undecided, 1 not tested." in said


@pytest.mark.parametrize("columns", [["Settings", "method", "ours [s]"], ["Settings", "method", "aim", "tighter [s]"]])
def test_the_table_of_seconds_may_have_other_columns(columns):
    table = command._seconds(pd.DataFrame([["a"] * len(columns)], columns=columns))
    assert [str(one.header) for one in table.columns] == [one for one in columns if one not in ("aim", "tighter [s]")]


def test_where_there_is_no_terminal_each_finished_experiment_is_a_line(reproduced):
    _, done = reproduced
    lines = [line for line in done.stdout.splitlines() if "is finished, " in line]
    assert [line.split()[0] for line in lines] == list(TINY)
    assert "Nothing is left to compute" not in done.stdout


def test_a_second_run_computes_nothing_and_says_so(reproduced, monkeypatch):
    folder, _ = reproduced
    monkeypatch.setattr(catalogue, "plan_for", lambda scale: TINY)
    monkeypatch.setattr(command, "_report", lambda *_: None)
    before = (folder / "table.jsonl").read_bytes()
    done = here("reproduce", "--out", folder, "--jobs", 1)
    assert "16 tasks (16 done)" in done.output
    assert "Nothing is left to compute: the report is rebuilt from the stored results." in done.output
    assert (folder / "table.jsonl").read_bytes() == before


def test_an_interrupt_keeps_what_was_done_and_the_same_command_goes_on(tmp_path):
    command = ["reproduce", "--out", tmp_path / "out", "--jobs", 1]
    done = python("-c", SMALL + INTERRUPTED + START, *command)
    assert done.returncode == 130
    assert "stopped: 5 of 16 tasks are done and kept" in one_line(done)
    assert "the same command resumes from there" in done.stderr
    again = python("-c", SMALL + START, *command)
    assert again.returncode == 0, again.stderr
    assert "16 tasks (5 done)" in again.stdout


def test_a_worker_that_was_killed_is_one_line_with_its_remedy(tmp_path, monkeypatch):
    def killed(*_, **__):
        raise WorkersLost(24, "A worker process managed by the executor was unexpectedly terminated.")

    monkeypatch.setattr(catalogue, "plan_for", lambda scale: TINY)
    monkeypatch.setattr(runner, "run_plan", killed)
    done = here("reproduce", "--out", tmp_path, "--jobs", 2)
    assert done.exit_code == 1
    assert "0 of 16 tasks are done" in one_line(done)
    assert "fewer --jobs" in one_line(done)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--cluster", "host"], "--cluster: expected the address of a Dask scheduler (tcp://host:8786)"),
        (["--cluster", "no.json"], "--cluster: expected a file that a Dask scheduler wrote; got no.json: No such file"),
        (["--cluster", "tcp://127.0.0.1:8786", "--jobs", "2"], "--jobs cannot be combined with --cluster"),
        (["rust", "--cluster", "ray"], "--cluster has no effect with rust"),
    ],
)
def test_a_cluster_that_cannot_be_meant_is_one_line(given, said, tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "plan_for", lambda scale: TINY)
    done = here("reproduce", *given, "--out", tmp_path)
    assert done.exit_code == 1
    assert said in one_line(done).replace("`", "")


def test_cells_that_failed_are_named(tmp_path):
    broken = "def fails(config, cell):\n    raise ArithmeticError('no [such] number')\nobstacleworld.measure = fails\n"
    done = python("-c", SMALL + broken + START, "reproduce", "--out", tmp_path, "--jobs", 1)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "16 tasks failed" in said
    assert "ArithmeticError: no [such] number" in said


@pytest.mark.parametrize("call", ["_plan('quick', [])", "_report('.')"])
def test_threads_are_asked_for_before_jax_is_there(call):
    code = (
        "import sys; from revealed.experiments import machine; from revealed.commands import reproduce\n"
        "machine.ask_jax_for_one_thread = lambda: print('jax' in sys.modules)\n"
        f"reproduce.{call}"
    )
    assert python("-c", code).stdout.strip() == "False"


@pytest.mark.parametrize(
    ("only", "names"),
    [
        ([], ["obstacleworld", "timing", "updates"]),
        (["timing"], ["timing"]),
        (["updates", "obstacleworld"], ["obstacleworld", "updates"]),
        (["updates,timing"], ["timing", "updates"]),
    ],
)
def test_only_some_experiments(only, names):
    plan = command._plan("quick", only)
    assert sorted(set(plan) & {"obstacleworld", "timing", "updates"}) == names
    assert not only or sorted(plan) == names


def test_the_folder_is_named_after_the_scale_and_jobs_are_the_cores(tmp_path, monkeypatch):
    asked = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_run", lambda *given: asked.append(given))
    monkeypatch.setattr(command, "_report", lambda *_: None)
    done = here("reproduce", "--scale", "paper", "--only", "obstacleworld", "--fresh")
    assert done.exit_code == 0
    ((plan, folder, jobs, fresh, scale, cluster),) = asked
    assert cluster is None
    assert (plan, folder.as_posix(), jobs, fresh, scale) == (
        {"obstacleworld": Config()},
        "results/paper",
        None,
        True,
        "paper",
    )


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["reproduce", "--scal", "quick"], "--scale"),
        (["reproduce", "--scale", "big"], "quick"),
        (["reproduce", "--jobs", "0"], "--jobs"),
        (["reproduc"], "reproduce"),
        (["report"], "DIR"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(arguments, hint):
    done = here(*arguments)
    assert done.exit_code == 1
    assert hint in one_line(done)


def test_an_unknown_experiment_is_one_line_with_the_names(tmp_path):
    done = revealed("reproduce", "--only", "figure1", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert all(name in one_line(done) for name in catalogue.EXPERIMENTS)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("below", ["", "folder"])
def test_a_file_in_the_way_is_one_line_and_left_alone(tmp_path, below):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    done = here("reproduce", "--out", file / below)
    assert done.exit_code == 1
    assert str(file) in one_line(done)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("folder", ["nowhere", "file", "."])
def test_a_folder_without_a_run_has_no_report(tmp_path, folder):
    (tmp_path / "file").write_text("mine")
    done = here("report", tmp_path / folder)
    assert done.exit_code == 1
    assert "written by `revealed reproduce`" in one_line(done)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_stream_without_greek_letters_gets_question_marks():
    code = "from revealed.cli import main; main(); print('π')"
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert (done.returncode, done.stdout.strip()) == (0, b"?")


@pytest.mark.parametrize("only", [",", "", " "])
def test_only_nothing_is_an_error_too(only):
    with pytest.raises(RevealedError, match="--only"):
        command._plan("quick", [only])


def test_help_names_the_experiments():
    assert command.NAMES.split(", ") == list(catalogue.EXPERIMENTS)


def test_another_scale_in_the_same_folder_is_said(tmp_path, capsys):
    store = Store(tmp_path)
    store.write_run({"scale": "quick"})
    command._note_other_scale(tmp_path, "paper")
    assert "has results at scale quick" in capsys.readouterr().out
    command._note_other_scale(tmp_path, "quick")
    assert capsys.readouterr().out == ""
