"""Results on disk are all of one run or not there: failures, Ctrl-C, two runs at once, and other people's files."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import revealed as rv
import trips as files
from revealed import bootstrap
from revealed.commands.placing import CONFIG, HEAD, LOCK, claim, placed, write_frame
from revealed.errors import InvalidOption
from shell import here, leave_out_reports, one_line, well
from test_commands import FILES, TRIPS

NAMES = ("params.csv", "policy.csv", CONFIG)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return files.write(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def inside(data, monkeypatch):
    monkeypatch.chdir(data)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    """Folders without figures, which take most of the time."""
    leave_out_reports(monkeypatch)


def write(folder: Path, word: str) -> None:
    with placed(folder, NAMES) as beside:
        for name in NAMES:
            (beside / name).write_text(HEAD + word)


def words_in(folder: Path) -> set[str]:
    return {file.read_text().removeprefix(HEAD) for file in folder.iterdir()}


def test_of_two_runs_at_once_the_files_of_the_last_are_there(tmp_path):
    with placed(tmp_path / "out", NAMES) as slow:
        write(tmp_path / "out", "quick")
        for name in NAMES:
            (slow / name).write_text(HEAD + "slow")
    assert words_in(tmp_path / "out") == {"slow"}
    assert os.listdir(tmp_path) == ["out"]


def test_many_runs_at_once_never_mix(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: write(tmp_path / "out", f"run {k}"), range(40)))
    assert len(words_in(tmp_path / "out")) == 1
    assert sorted(os.listdir(tmp_path / "out")) == sorted(NAMES)
    assert os.listdir(tmp_path) == ["out"]


def test_what_an_earlier_run_left_goes_and_other_files_stay(tmp_path):
    write(tmp_path, "old")
    (tmp_path / "thesis.txt").write_text("years")
    with placed(tmp_path, NAMES) as beside:
        (beside / CONFIG).write_text(HEAD + "new")
    assert sorted(os.listdir(tmp_path)) == [CONFIG, "thesis.txt"]
    assert (tmp_path / CONFIG).read_text() == HEAD + "new"


def test_a_run_that_was_killed_while_it_put_files_into_place_is_no_obstacle(tmp_path, monkeypatch):
    monkeypatch.setattr("revealed.commands.placing.PATIENCE", 0.05)
    (tmp_path / LOCK).touch()
    (tmp_path / "params.csv").write_text("half")
    assert claim(tmp_path, NAMES) == tmp_path
    write(tmp_path, "whole")
    assert words_in(tmp_path) == {"whole"}


def test_other_results_do_not_go_into_the_folder_of_a_fit(tmp_path):
    """They would replace some of its tables and take its config.toml, with which it can be repeated."""
    folder = tmp_path / "fit"
    well("fit", *TRIPS, "--out", str(folder))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    first = next(iter(pd.read_csv(folder / "params.csv").iloc[:, 0]))
    for words in (
        ("counterfactual", str(folder), "--set", f"{first}=1", "--out", str(folder)),
        ("reproduce", "--only", "updates", "--out", str(folder)),
        ("reproduce", "rust", "--out", str(folder)),
    ):
        assert "--out" in one_line(here(*words))
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_claim_makes_nothing(tmp_path):
    claim(tmp_path / "a" / "b", NAMES)
    assert os.listdir(tmp_path) == []


def test_parquet_needs_no_other_package(tmp_path):
    code = f"""
import sys
sys.modules["pyarrow"] = None
import pandas as pd
from pathlib import Path
from revealed.commands.placing import write_frame
days = pd.to_datetime(["2000-01-03", "2000-02-03"])
frame = pd.DataFrame({{"a": ["x", "é'"], "t": days, "n": [1, 2], "p": [0.1, 1e-300]}})
write_frame(Path({str(tmp_path)!r}, "it's.parquet"), frame)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert os.listdir(tmp_path) == ["it's.parquet"]
    read = pd.read_parquet(tmp_path / "it's.parquet")
    assert read["a"].tolist() == ["x", "é'"]
    assert (read["n"].tolist(), read["p"].tolist()) == ([1, 2], [0.1, 1e-300])
    assert read["t"].dt.day.tolist() == [3, 3]


def test_a_parquet_file_takes_the_place_of_another_only_when_it_is_whole(tmp_path, monkeypatch):
    target = tmp_path / "a.parquet"
    write_frame(target, pd.DataFrame({"a": [1]}))
    monkeypatch.setattr("revealed.files.os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(rv.errors.InvalidInput):
        write_frame(target, pd.DataFrame({"a": [2]}))
    assert pd.read_parquet(target)["a"].tolist() == [1]
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_a_failure_half_way_leaves_nothing_and_a_retry_is_welcome(monkeypatch, tmp_path):
    def fails(*_):
        raise InvalidOption("history", "a disk with room", "none")

    with monkeypatch.context() as broken:
        broken.setattr("revealed.commands.folder.history_frame", fails)
        assert here("fit", *TRIPS, "--out", tmp_path / "deep" / "out").exit_code == 1
        assert os.listdir(tmp_path) == []
    well("fit", *TRIPS, "--out", tmp_path / "deep" / "out")
    before = {name: (tmp_path / "deep/out" / name).read_bytes() for name in FILES}
    with monkeypatch.context() as broken:
        broken.setattr("revealed.commands.folder.history_frame", fails)
        assert here("fit", *TRIPS, "--l2", "1", "--out", tmp_path / "deep" / "out").exit_code == 1
    assert {file.name: file.read_bytes() for file in (tmp_path / "deep/out").iterdir()} == before
    assert os.listdir(tmp_path / "deep") == ["out"]


def test_a_config_of_one_s_own_is_not_written_over(tmp_path):
    (tmp_path / "config.toml").write_text("[tool]\n")
    assert "which contains other files" in one_line(here("fit", *TRIPS, "--out", tmp_path))


@pytest.mark.parametrize("command", [("predict", "trips-fit"), ("simulate", "trips-fit", "--n", "2")])
def test_a_file_that_is_there_is_left_alone(command, tmp_path):
    well("fit", *TRIPS, "--out", "trips-fit")
    target = tmp_path / "mine.csv"
    target.write_text("years")
    line = one_line(here(*command, "--out", target))
    assert "mine.csv, which exists. Add --force to overwrite it." in line
    assert target.read_text() == "years"
    well(*command, "--out", target, "--force")
    assert target.read_text().startswith(("station,", "rider,"))


def interrupt_at(call: int, function: Any) -> Any:
    """The function, during whose call of this number Ctrl-C is pressed."""
    calls = []

    def interrupted(*words: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return function(*words, **options)

    return interrupted


@pytest.mark.parametrize(
    ("call", "when"), [(1, "before two replications were done"), (8, "after 7 of 50 replications")]
)
def test_an_interrupted_bootstrap_leaves_the_estimate(call, when, monkeypatch, tmp_path):
    plain = json.loads(well("fit", *TRIPS, "--json"))["params"]
    monkeypatch.setattr(bootstrap, "draw_weights", interrupt_at(call, bootstrap.draw_weights))
    words = ("--errors", "bootstrap", "--reps", "50", "--json", "--out", tmp_path / "out")
    stopped = here("fit", *TRIPS, *words)
    assert stopped.exit_code == 130
    told = f"the bootstrap was stopped {when}: hessian standard errors are shown instead."
    assert told in one_line(stopped)
    found = json.loads(stopped.stdout)
    assert found["params"] == plain
    assert told in found["notes"]
    assert rv.load(tmp_path / "out").bse.tolist() == [one["std_err"] for one in plain]


def test_an_interrupted_comparison_keeps_what_was_finished(monkeypatch, tmp_path):
    from revealed.recipe import Recipe

    own = Recipe.fit
    for call, kept in [(1, None), (3, ["ccp", "nfxp"])]:
        monkeypatch.setattr(Recipe, "fit", interrupt_at(call, own))
        done = here("compare", *TRIPS, "--out", tmp_path / f"at{call}")
        assert done.exit_code == 130
        one_line(done)
        found = sorted(os.listdir(tmp_path / f"at{call}")) if (tmp_path / f"at{call}").exists() else None
        assert found == (kept and sorted(["advice.txt", *kept, "compare.csv", "compare.html", "config.toml"]))
    monkeypatch.setattr(Recipe, "fit", own)
    monkeypatch.setattr("revealed.advisor.advise", interrupt_at(1, None))
    done = here("compare", *TRIPS, "--out", tmp_path / "advice")
    assert (done.exit_code, "stopped before the recommendation" in one_line(done)) == (
        130,
        True,
    )
    assert {"ccp", "nfxp", "npl"} <= set(os.listdir(tmp_path / "advice"))
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
