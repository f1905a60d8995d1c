"""Every flag of every command with hostile values: a mistake ends in one line, never in a traceback.

A share of flags × values is drawn anew in each run, with a seed that a failure prints; `REVEALED_FLAGS=all` tries them
all.
"""

import os
import random
import secrets
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import trips as files
from revealed import cli
from shell import leave_out_reports, quickly_in, well

ALL = os.environ.get("REVEALED_FLAGS") == "all"
SEED = int(os.environ.get("REVEALED_SEED", secrets.randbits(32)))
DRAWN = 90

HOSTILE = [
    *("", " ", "0", "-1", "1", "3", "1e308", "-1e308", "nan", "inf", "1e-320", "99999999999999999999", "0x1F", "1_000"),
    *(
        "none",
        "true",
        "x" * 300,
        "é" * 130,
        "日本語 🚌",
        "a,b,,c",
        "=",
        "a=b=c",
        "miles=0",
        "miles=-3",
        "miles=edges:1",
    ),
    *("miles=edges:nan,1", "shops*", "shops=*2", "*", "?", "[", "a_folder/..", ".", "~", "no_such_file.csv"),
    *(
        "a_folder",
        "empty.csv",
        "head.csv",
        "binary.csv",
        "trips.csv",
        "stations.csv",
        "moves.csv",
        "shops",
        "fit/fit.zip",
    ),
    *("/dev/null", "/proc/self/mem", "a\nb", "'", '"', "\\", "$(x)", "%s", "{}", "--", "-", "--out", "\udcff"),
]
TRIPS = ("fit", "trips.csv", *files.FLAGS, "--features", "stations.csv", "--columns", "shops", "--discount", "0.9")
BASE: dict[str, tuple[str, ...]] = {
    "fit": (*TRIPS, "--max-iter", "3"),
    "compare": ("compare", *TRIPS[1:], "--max-iter", "2"),
    "predict": ("predict", "fit"),
    "simulate": ("simulate", "fit", "--n", "3"),
    "counterfactual": ("counterfactual", "fit", "--discount", "0.8", "--bands", "none"),
    "reproduce": ("reproduce", "--only", "obstacleworld"),
    "report": ("report", "a_folder"),
}
ARGUMENTS = dict.fromkeys(BASE, 1) | {"reproduce": None}  # where the argument of a command stands


def commands() -> dict[str, Any]:
    return typer.main.get_command(cli.app).commands  # pyright: ignore[reportAttributeAccessIssue]


def flags(name: str) -> list[str]:
    """The longest name of each option of a command."""
    return [max(one.opts, key=len) for one in commands()[name].params if one.opts[0].startswith("-")]


def cases() -> list[tuple[str, ...]]:
    """What is typed: each flag with each value, and each argument."""
    found = []
    for name, words in BASE.items():
        found += [(*words, flag, value) for flag in flags(name) for value in HOSTILE]
        found += [(*words, flag) for flag in flags(name)]
        place = ARGUMENTS[name]
        found += [] if place is None else [(*words[:place], value, *words[place + 1 :]) for value in HOSTILE]
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = files.write(tmp_path_factory.mktemp("flags"))
    (folder / "a_folder").mkdir()
    (folder / "empty.csv").write_text("")
    (folder / "head.csv").write_text("station,shops\n")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 20)
    with quickly_in(folder):
        well(*TRIPS, "--out", "fit")
    return folder


@pytest.fixture(autouse=True)
def quick(data, monkeypatch):
    """No figures, no experiments, no sweeps of the advisor: their flags are read, and that is what is asked here."""
    monkeypatch.chdir(data)
    leave_out_reports(monkeypatch)
    monkeypatch.setattr("revealed.commands.reproduce._run", lambda *_: None)
    monkeypatch.setattr("revealed.commands.reproduce._report", lambda *_: None)
    monkeypatch.setattr("revealed.commands.reproduce._reproduce_rust", lambda *_: None)
    monkeypatch.setattr("revealed.commands.compare._advise", lambda *_: None)


def complaint(words: tuple[str, ...]) -> str | None:
    """What is wrong with how a command took these words; None where nothing is."""
    done = CliRunner().invoke(cli.app, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return f"{type(done.exception).__name__}: {str(done.exception)[:200]}"
    if "Traceback" in done.output or done.exit_code not in (0, 1, 3):
        return f"exit status {done.exit_code}: {done.output[-200:]}"
    lines = [line for line in done.stderr.splitlines() if line]
    odd = next((line for line in lines if not line.startswith("revealed: ")), None)
    return None if odd is None or "Warning" in odd else f"says {odd[:200]!r}"


@pytest.mark.filterwarnings("ignore")
def test_no_flag_ends_in_a_traceback():
    tried = cases() if ALL else random.Random(SEED).sample(cases(), DRAWN)
    wrong = [f"{' '.join(map(repr, words))}: {said}" for words in tried if (said := complaint(words)) is not None]
    assert not wrong, f"seed {SEED} (REVEALED_SEED), {len(wrong)} of {len(tried)}:\n" + "\n".join(wrong)


def test_every_command_is_tried():
    assert set(commands()) == set(BASE)
    assert len(cases()) > 3000
    assert Path("fit/fit.zip").is_file()
