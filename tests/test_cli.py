"""The command line as a user meets it: in a process of its own."""

import csv
import os
import subprocess
import sys

import pytest
from rich.cells import cell_len

from revealed import __version__

PNG = b"\x89PNG\r\n\x1a\n"


def revealed(*arguments: object, columns: int = 80) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "revealed", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environment)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out") / "made" / "on the way"
    return folder, revealed("reproduce", "--out", folder)


@pytest.mark.parametrize("arguments", [["--help"], ["reproduce", "--help"], ["reproduce", "-h"]])
def test_help_shows_a_full_example(arguments):
    done = revealed(*arguments)
    assert done.returncode == 0
    assert "revealed reproduce --out results/demonstration --seed 1" in done.stdout


def test_help_loads_nothing_heavy():
    code = "import sys; from revealed.cli import app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"jax", "matplotlib", "pandas", "torch", "duckdb", "joblib", "narwhals"} & set(loaded)


def test_version():
    done = revealed("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"revealed {__version__}")


def test_reproduce_writes_whole_files_and_nothing_else(reproduced):
    folder, done = reproduced
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no bar and no warning where there is no terminal
    assert sorted(p.name for p in folder.iterdir()) == ["estimates.csv", "rewards.png"]
    assert (folder / "rewards.png").read_bytes()[:8] == PNG


def test_the_estimates_are_near_the_truth_and_the_methods_agree(reproduced):
    folder, _ = reproduced
    with open(folder / "estimates.csv", newline="", encoding="utf-8") as file:
        rows = {(row["method"], row["reward"]): row for row in csv.DictReader(file)}
    names = ("goal", "road", "mud", "view")
    theta = {method: [float(row[k]) for k in names] for (method, kind), row in rows.items() if kind == "linear"}
    assert list(theta) == ["truth", "NFXP", "MCE-IRL", "CCP", "NPL"]
    assert theta["MCE-IRL"] == pytest.approx(theta["NFXP"], abs=1e-5)
    assert theta["NPL"] == pytest.approx(theta["NFXP"], abs=1e-5)
    assert theta["NFXP"] == pytest.approx(theta["truth"], abs=0.5)
    assert {row["status"] for row in rows.values()} == {"", "converged"}
    assert float(rows["NFXP", "linear"]["log_likelihood"]) > float(rows["truth", "linear"]["log_likelihood"])
    assert float(rows["NFXP", "tabular"]["correlation"]) > 0.7
    assert float(rows["NFXP", "neural"]["correlation"]) > 0.8


def test_the_report_fits_eighty_columns_and_says_what_it_found(reproduced):
    _, done = reproduced
    lines = done.stdout.splitlines()
    assert all(cell_len(line) <= 80 for line in lines if not line.startswith("Wrote"))
    assert "…" not in done.stdout.replace("π_θ, …", "")  # nothing was cut off
    for words in ("NFXP and MCE-IRL agree to", "NPL settled after", "CCP differs from NFXP by", "From the truth"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["reproduce", "--sed", "1"], "--seed"),
        (["reproduce", "--seed", "-1"], "--seed"),
        (["reproduce", "--seed", "one"], "--seed"),
        (["reproduc"], "reproduce"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(arguments, hint):
    done = revealed(*arguments)
    assert done.returncode == 2
    assert hint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("below", ["", "folder"])
def test_a_file_in_the_way_is_one_line_and_left_alone(tmp_path, below):
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    done = revealed("reproduce", "--out", file / below)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(file) in done.stderr
    assert file.read_text() == "mine"


def test_a_stream_without_greek_letters_gets_question_marks():
    code = "from revealed.cli import main; main(); print('π')"
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment)
    assert (done.returncode, done.stdout.strip()) == (0, b"?")
