"""The commands as a user meets them: from files to answers, in a process of its own where that matters.

What a command writes is what the library's own calls give; what goes wrong is one line and an exit status.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len

import revealed as rv
import trips as files
from revealed.commands.questions import parse_change
from revealed.commands.wording import in_flags
from revealed.description import option_fields
from revealed.errors import InvalidOption
from revealed.sense import ROADS
from shell import here, leave_out_reports, one_line, well

TABLES = ("history.csv", "params.csv", "policy.csv", "states.csv")
FILES = sorted([*TABLES, "config.toml", "fit.zip", "report.html", "summary.txt"])
TRIPS = ("trips.csv", *files.FLAGS, "--features", "stations.csv", "--coordinates", "x,y", "--discount", "0.9")
BUSES = ("--id", "bus", "--time", "month", "--state", "miles", "--action", "decision")
# Ctrl-C arrives while the third iterate is computed
INTERRUPTED = """
import os, signal
from revealed import objective
at, done = objective.Objective.at, []
def interrupted(self, theta):
    done.append(theta)
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGINT)
    return at(self, theta)
objective.Objective.at = interrupted
from revealed.cli import app
app(prog_name='revealed')
"""


def process(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    own = os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"} | environment
    return subprocess.run([str(word) for word in command], capture_output=True, encoding="utf-8", env=own)


def installed(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as it is installed, beside this Python."""
    return process(Path(sys.executable).with_name("revealed"), *arguments, **environment)


def exact(path: str, index_col: str | None = None) -> pd.DataFrame:
    """A table with all the digits that its numbers have."""
    return pd.read_csv(path, index_col=index_col, engine="python")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return files.write(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def fitted(data):
    """The folder trips-fit, written by the installed command, and what it said."""
    with chdir(data):
        return installed("fit", *TRIPS, "--method", "npl", "--out", "trips-fit")


@pytest.fixture(autouse=True)
def inside(data, fitted, monkeypatch):
    monkeypatch.chdir(data)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="module")
def own(fitted, data):
    """The same estimate by the library's own calls."""
    demos = rv.Demonstrations.from_frame(data / "trips.csv", **files.NAMES)
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="infeasible"), discount=0.9)
    reward = rv.LinearReward.from_frame(data / "stations.csv", state="station", columns=["shops", "green"])
    return rv.NPL(reward).fit(mdp, demos)


@pytest.fixture
def no_report(monkeypatch):
    """Folders without figures, which take most of the time."""
    leave_out_reports(monkeypatch)


# fit


def test_fit_prints_the_summary_and_writes_the_folder(fitted, own):
    assert (fitted.returncode, fitted.stderr) == (0, "")
    assert sorted(os.listdir("trips-fit")) == FILES
    lines = fitted.stdout.splitlines()
    assert "\x1b" not in fitted.stdout  # no colours where there is no terminal
    assert all(cell_len(line) <= 80 for line in lines)
    summary = str(own.summary()).splitlines()
    told = [line for line in lines if "Seconds" not in line and not line.startswith("Wrote")]
    assert told[: len(summary) - 1] == [line for line in summary if "Seconds" not in line]
    assert Path("trips-fit/summary.txt").read_text().splitlines()[:6] == summary[:6]


def test_the_tables_are_the_fit_s_to_the_last_digit(own):
    params = exact("trips-fit/params.csv", index_col="parameter")
    assert params["coef"].to_dict() == own.params.to_dict()
    assert params["std_err"].to_dict() == own.bse.to_dict()
    policy = exact("trips-fit/policy.csv")
    table = policy.pivot(index="station", columns="choice", values="probability")
    assert np.array_equal(table, own.table("policy"))
    assert policy["visits"].sum() == own.nobs
    states = exact("trips-fit/states.csv", index_col="station")
    assert states["value"].to_dict() == own.table("value")["value"].to_dict()


def test_the_fit_itself_is_in_the_folder(own):
    loaded = rv.load("trips-fit")
    assert np.array_equal(loaded.theta, own.theta)
    assert loaded.converged


def test_the_run_is_repeated_to_the_last_byte(no_report):
    well("fit", "--config", "trips-fit/config.toml", "--out", "again")
    for name in ("params.csv", "policy.csv", "states.csv", "config.toml"):
        assert Path("again", name).read_bytes() == Path("trips-fit", name).read_bytes()


def test_without_a_folder_nothing_is_written():
    before = sorted(os.listdir())
    assert "Nothing was written; use --out DIR to save the results." in well("fit", *TRIPS)
    assert sorted(os.listdir()) == before


def test_json_is_one_object_and_nothing_else(own):
    done = installed("fit", *TRIPS, "--reward", "tabular", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["converged"] is True
    assert (found["nobs"], found["agents"], found["states"], found["actions"]) == (own.nobs, 40, 6, 3)
    assert [one["parameter"] for one in found["params"]] == list(files.STATIONS)
    assert found["params"][0]["std_err"] is None  # NaN is null: choices do not tell a single state's weight
    assert found["files"] == {}


def test_what_did_not_converge_is_written_with_its_reason_and_status_three():
    done = here("fit", *TRIPS, "--max-iter", "1", "--out", "short", "--json")
    assert done.exit_code == 3
    assert "NFXP did not converge (iteration_limit): 1 iterations" in one_line(done)
    assert sorted(os.listdir("short")) == FILES
    found = json.loads(done.stdout)
    assert (found["converged"], found["status"]["code"]) == (False, "iteration_limit")
    assert found["files"]["params"] == os.path.join("short", "params.csv")
    assert found["params"][0]["coef"] == rv.load("short").theta[0]
    asked = here("predict", "short", "--state", "zoo")
    assert (asked.exit_code, "note: the fit did not converge (iteration_limit)" in one_line(asked)) == (0, True)


def test_an_interrupt_keeps_what_was_reached():
    done = process(sys.executable, "-c", INTERRUPTED, "fit", *TRIPS, "--out", "stopped")
    assert done.returncode == 130, done.stderr
    assert "the best point so far is kept" in one_line(done)
    assert rv.load("stopped").status.interrupted


def test_what_nobody_chose_is_said():
    panel = pd.read_csv("trips.csv")
    never = (panel["station"] == "zoo") & (panel["choice"] == "stay")
    panel[~never].to_csv("rare.csv", index=False)
    told = " ".join(well("fit", "rare.csv", *TRIPS[1:], "--columns", "shops").split())
    assert "1 of 18 state-action pairs were never observed with a next state (first state 'zoo', action 'stay')" in told
    assert "they are treated as infeasible" in told
    assert "gap" in told  # the rows that are missing are told, too


def test_a_folder_that_holds_other_things_is_left_alone(no_report):
    os.makedirs("mine", exist_ok=True)
    Path("mine/thesis.txt").write_text("years")
    done = here("fit", *TRIPS, "--out", "mine")
    assert done.exit_code == 1
    assert "'mine', which contains other files. Choose another folder, or add --force." in one_line(done)
    assert os.listdir("mine") == ["thesis.txt"]
    well("fit", *TRIPS, "--out", "mine", "--force")
    assert sorted([*FILES, "thesis.txt"]) == sorted(os.listdir("mine"))


@pytest.mark.parametrize(
    "words", [("fit", *TRIPS, "--columns", "shops"), ("counterfactual", "trips-fit", "--set", "shops*2")]
)
def test_columns_of_narrow_terminals_are_respected(monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "60")
    lines = well(*words).splitlines()
    assert max(map(cell_len, lines)) <= 60


# what only roads have is in test_trip_commands.py
CHOICES = [(name, word) for name, about in option_fields().items() if name not in ROADS for word in about["offered"]]


@pytest.mark.parametrize(("name", "word"), CHOICES)
def test_every_choice_reaches_the_folder_as_plain_text(name, word, no_report, tmp_path):
    pd.read_csv("buses.csv").query("bus < 8").to_csv(tmp_path / "few.csv", index=False)
    data = (tmp_path / "few.csv", *BUSES, "--bins", "miles=4", "--constants") if name == "period" else TRIPS
    needed = {
        "start": ("--method", "nfxp"),
        "first_step": ("--method", "ccp"),
        "errors": ("--reps", "5") if word == "bootstrap" else (),
        "reward": ("--hidden", "2", "--max-iter", "3") if word == "neural" else (),
        "activation": ("--reward", "neural", "--hidden", "2", "--max-iter", "3"),
        "weighting": ("--errors", "bootstrap", "--reps", "5") if word == "occupancy" else (),
    }
    done = here("fit", *data, f"--{name.replace('_', '-')}", word, *needed.get(name, ()), "--out", tmp_path / "out")
    if name == "period" and word != "month":  # the file has one row per month
        assert done.exit_code in (0, 1, 3)
        assert "<" not in done.stderr
        return
    assert done.exit_code in (0, 3), done.stderr
    assert sorted(os.listdir(tmp_path / "out")) == FILES
    assert rv.load(tmp_path / "out").nobs > 0
    assert f'{name.replace("_", "-")} = "{word}"' in Path(tmp_path, "out", "config.toml").read_text()


def test_lists_may_have_commas_in_them():
    separate = well("fit", *TRIPS, "--columns", "shops", "--columns", "green", "--json")
    assert (
        json.loads(well("fit", *TRIPS, "--columns", "shops,green", "--json"))["params"]
        == json.loads(separate)["params"]
    )
    names = ("--id", "who", "--time", "t", "--state", "x,y", "--action", "go", "--next-state", "x2,y2")
    found = json.loads(well("fit", "grid.csv", *names, "--reward", "tabular", "--l2", "0.1", "--json"))
    assert (found["states"], found["params"][0]["parameter"]) == (9, "(0, 0)")
    both = json.loads(well("predict", "trips-fit", "--state", "zoo,park", "--json"))["choices"]
    assert [one["station"] for one in both] == ["zoo", "park"]
    words = [("--set", "shops=1,green*2"), ("--set", "shops=1", "--set", "green*2")]
    assert well("counterfactual", "trips-fit", *words[0]) == well("counterfactual", "trips-fit", *words[1])


def test_what_the_library_calls_otherwise_is_said_in_flags():
    panel = pd.read_csv("trips.csv").assign(miles=0.5)
    panel.to_csv("halves.csv", index=False)
    line = one_line(
        here("fit", "halves.csv", *TRIPS[1:3], "--time", "t", "--state", "miles", *TRIPS[7:9], "--constants")
    )
    assert "bins (--bins COLUMN=20)" in line
    done = here("fit", *TRIPS, "--max-iter", "1", "--json")
    assert "Raise --max-iter, loosen --tol, or set --l2 1e-4." in json.loads(done.stdout)["status"]["message"]
    assert "Raise --max-iter" in " ".join(here("fit", *TRIPS, "--max-iter", "1").stdout.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", *TRIPS, "--featurs", "x"), "--features"),
        (("fit", *TRIPS, "--methd", "npl"), "--method"),
        (("fit", *TRIPS, "--method", "nlp"), "expected one of nfxp, mce-irl, ccp, npl; got 'nlp'. Did you mean npl?"),
        (("fit", *TRIPS, "--method", "mceirl"), "Did you mean mce-irl?"),
        (("fit", *TRIPS, "--discount", "95"), "expected a number in [0, 1]; got 95.0. For example: --discount 0.95."),
        (
            ("fit", *TRIPS, "--discount", "high"),
            "`--discount`: expected a number; got 'high'. See revealed fit --help.",
        ),
        (("fit", *TRIPS, "--discount", "1.5"), "`--discount`: expected a number in [0, 1]; got 1.5."),
        (("fti",), "fit"),
        (("fit", "nowhere.csv", *TRIPS[1:]), "`PANEL`: expected a CSV or Parquet file that exists; got nowhere.csv."),
        (("fit", "trips.csv", "--id", "rider"), "`--time` is required (time column; orders the rows of each id)."),
        (("fit", *TRIPS, "--id", "ridr"), "`--id`: expected one of the columns 'rider'"),
        (("fit", *TRIPS, "--columns", "shop"), "got 'shop'. Did you mean shops?"),
        (("fit", *TRIPS[:-4], "--coordinates", "x,z"), "'z'"),
        (("fit", *TRIPS, "--coordinates", "x,z"), "`--coordinates`: expected two columns, as in x,y; got 'x,y,x,z'."),
        (("fit", *TRIPS[:-4], "--coordinates", "x"), "`--coordinates`: expected two columns, as in x,y; got 'x'."),
        (("fit", *TRIPS, "--discount", "-0.5"), "`--discount`: expected a number in [0, 1]; got -0.5."),
        (("fit", *TRIPS, "--horizon", "5"), "Use --horizon 25 or shorter trajectories."),
        (("fit", *TRIPS, "--period", "year"), "`--period` cannot be 'year': times are not dates."),
        (("fit", *TRIPS, "--method", "npl", "--start", "ccp"), "`--start` requires `--method nfxp`."),
        (("fit", *TRIPS, "--updates", "3"), "`--updates` requires `--method npl`."),
        (("fit", *TRIPS, "--reps", "30"), "`--reps` requires `--errors bootstrap`."),
        (("fit", *TRIPS, "--probability", "p"), "`--probability` requires `--transitions FILE`."),
        (("fit", *TRIPS, "--reward", "neural", "--hidden", "3,x"), "expected whole numbers, as in 32,16; got '3,x'."),
        (("fit", *TRIPS, "--out", "trips.csv"), "`--out`: expected a folder that can be written"),
        (("fit", "--config", "stations.csv"), "`--config`: expected a TOML file; got stations.csv"),
        (("compare", *TRIPS, "--method", "npl"), "`--method` has no effect with `compare`, which runs every method."),
        (
            ("predict", "nowhere"),
            "`FIT`: expected the folder or the fit.zip written by revealed fit; got nowhere, which does",
        ),
        (("predict", "trips.csv"), "trips.csv, which is not a zip file"),
        (("predict", "trips-fit", "--state", "zo"), "got 'zo'. Did you mean zoo?"),
        (
            ("predict", "trips-fit", "--states", "stations.csv", "--state", "zoo"),
            "`--states` cannot be combined with `--state`.",
        ),
        (("predict", "trips-fit", "--period", "1"), "`--period` requires a fit with --horizon."),
        (("predict", "trips-fit", "--out", "table.txt"), "a file that ends in .csv or .parquet; got table.txt."),
        (("simulate", "trips-fit", "--n", "0"), "`--n`: expected a whole number, at least 1; got '0'."),
        (("simulate", "trips-fit", "--seed", "x"), "`--seed`: expected a whole number, at least 0; got 'x'."),
        (("simulate", "trips-fit", "--initial", "moon"), "`--initial`: expected one of airport"),
        (("counterfactual", "trips-fit"), "`counterfactual` requires at least one change. For example: --set RC=12"),
        (("counterfactual", "trips-fit", "--set", "shop=1"), "got 'shop'. Did you mean shops?"),
        (
            ("counterfactual", "trips-fit", "--set", "shops"),
            "a parameter and its new value, as in shops=12 or shops*1.2",
        ),
        (
            ("counterfactual", "trips-fit", "--set", "moon"),
            "expected one of shops, green, with its new value, as in shops=12 or shops*1.2; got 'moon'.",
        ),
        (("counterfactual", "trips-fit", "--set", "shops=much"), "a number after the operator, as in shops=12"),
        (
            ("counterfactual", "trips-fit", "--set", "shops=1", "--bands", "wide"),
            "`--bands`: expected one of auto, delta, bootstrap, none; got 'wide'.",
        ),
        (
            ("counterfactual", "trips-fit", "--set", "shops=1", "--set", "shops=2"),
            "one change per parameter; got 'sh",
        ),
        (
            ("counterfactual", "trips-fit", "--set", "shops=1,shops=2"),
            "one change per parameter; got 'shops' twice.",
        ),
        (("counterfactual", "trips-fit", "--discount", "1.5"), "`--discount`: expected a number in [0, 1]; got 1.5."),
    ],
)
def test_a_mistake_is_one_line_and_status_one(arguments, message):
    done = here(*arguments)
    assert done.exit_code == 1
    assert message in one_line(done)
    assert done.stdout == ""


def test_a_mistake_in_a_process_of_its_own():
    done = installed("fit", *TRIPS, "--state", "statio")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Did you mean station?" in one_line(done)


@pytest.mark.parametrize("command", ["fit", "compare", "predict", "simulate", "counterfactual"])
def test_help_shows_a_full_example(command):
    told = well(command, "--help")
    assert "Example:\n" in told
    assert f"  revealed {command} " in told


def test_help_tells_of_lists():
    told = " ".join(well("fit", "--help").split())
    assert "--columns COLUMN Features to use. Repeatable, or separated by commas. [default: all]" in told
    assert "--hidden UNITS Units per hidden layer of a neural reward. Repeatable, or separated by commas." in told
    assert "[default: 32 16]" in told


@pytest.mark.parametrize("command", ["fit", "compare", "predict", "simulate", "counterfactual", "reproduce", "report"])
def test_help_names_values_in_words_not_types(command):
    found = re.findall(r"<[^>|]*>|list\[", well(command, "--help"))
    assert not found, found


def test_help_says_what_a_number_means_and_its_default():
    told = " ".join(well("fit", "--help").split())
    assert "--tol NUMBER Gradient-norm tolerance. [default: by optimizer: newton 1e-9," in told
    assert "--seed INTEGER Random seed of the bootstrap and of a neural reward's starting weights. [default: 0]" in told
    assert (
        "--smoothing NUMBER Pseudo-count that shrinks transitions towards the average over actions. [default: 0]"
        in told
    )


def test_help_tells_the_optimizers_own_defaults():
    """What `--tol` and `--max-iter` promise is what the optimisers do."""
    from revealed.optimize import _DEFAULTS  # pyright: ignore[reportPrivateUsage]

    about = option_fields()
    for name in ("tol", "max_iter"):
        said = {how: getattr(_DEFAULTS[how], name) for how in ("newton", "lbfgs", "network", "adam")}
        told = {
            how: f"{value:.0e}".replace("e-0", "e-") if name == "tol" else f"{value}" for how, value in said.items()
        }
        promise = "newton {newton}, lbfgs {lbfgs} (networks {network}), adam {adam}".format(**told)
        assert promise in about[name]["help"]


def test_the_examples_of_help_name_options_that_exist():
    import re

    for command in ("fit", "compare", "predict", "simulate", "counterfactual"):
        told = well(command, "--help")
        example, listed = told.split("Options:")
        assert set(re.findall(r"--[a-z][a-z-]*", example)) <= set(re.findall(r"--[a-z][a-z0-9-]*", listed))


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("revealed co", ["compare", "counterfactual"]),
        ("revealed fit --first-s", ["--first-step"]),
        ("revealed fit --method n", ["nfxp", "npl"]),
        ("revealed counterfactual trips-fit --bands d", ["delta"]),
    ],
)
def test_the_shell_completes(line, offered):
    words = line.split()
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": line}
    done = installed(_REVEALED_COMPLETE="complete_bash", **asked)
    assert (done.returncode, done.stdout.split()) == (0, offered)


def test_completion_can_be_shown_to_a_shell():
    """What `--show-completion` prints, asked for without a shell around to be recognised."""
    script = installed(_REVEALED_COMPLETE="source_bash").stdout
    assert "_REVEALED_COMPLETE=complete_bash" in script
    assert "complete -o default -F _revealed_completion revealed" in script


# predict


def test_predict_prints_the_policy(own):
    rows = [line.split() for line in well("predict", "trips-fit").splitlines()]
    assert rows[0] == ["station", *files.CHOICES]
    table = own.table("policy")
    assert [[row[0], *map(float, row[1:])] for row in rows[2:]] == [
        [name, *row] for name, row in zip(table.index, table.round(4).to_numpy().tolist(), strict=True)
    ]


def test_predict_answers_for_the_states_asked_in_their_order(own):
    pd.DataFrame({"station": ["park", "zoo", "park"]}).to_csv("asked.csv", index=False)
    asked = [("--states", "asked.csv"), ("--state", "park", "--state", "zoo", "--state", "park")]
    for words in asked:
        found = json.loads(well("predict", "trips-fit", *words, "--json"))["choices"]
        assert [one["station"] for one in found] == ["park", "zoo", "park"]
        assert found[1]["stay"] == own.table("policy").loc["zoo", "stay"]


def test_predict_names_the_most_likely_action(own):
    assert well("predict", "trips-fit", "--deterministic", "--out", "best.csv") == "Wrote 6 states to best.csv.\n"
    best = exact("best.csv", index_col="station")
    assert best["choice"].to_dict() == own.table("policy").idxmax(axis=1).to_dict()
    assert best["probability"].to_dict() == own.table("policy").max(axis=1).to_dict()


def test_a_zip_by_itself_answers_too(tmp_path):
    shutil.copy("trips-fit/fit.zip", tmp_path / "alone.zip")
    told = well("predict", tmp_path / "alone.zip", "--state", "zoo")
    assert told.split()[:2] == ["state", "back"]  # nobody tells what the columns were called


# simulate


def test_what_is_simulated_is_read_again_as_it_was_drawn():
    told = well("simulate", "trips-fit", "--n", 30, "--length", 12, "--seed", 4, "--out", "drawn.parquet")
    assert told == "Wrote 360 decisions of 30 agents to drawn.parquet.\nStarts: where the data started.\n"
    drawn = rv.load("trips-fit").simulate(30, 12, seed=4)
    read = rv.Demonstrations.from_frame("drawn.parquet", **files.NAMES, states=files.STATIONS, actions=files.CHOICES)
    assert np.array_equal(read.counts, drawn.counts)
    assert np.array_equal(read.starts, drawn.starts)
    printed = well("simulate", "trips-fit", "--n", 30, "--length", 12, "--seed", 4)
    assert pd.read_csv(StringIO(printed)).equals(pd.read_parquet("drawn.parquet"))
    well("fit", "drawn.parquet", "--config", "trips-fit/config.toml")


def test_a_panel_for_programs():
    found = json.loads(well("simulate", "trips-fit", "--n", 3, "--length", 4, "--json"))
    printed = pd.read_csv(StringIO(well("simulate", "trips-fit", "--n", 3, "--length", 4)))
    assert (found["agents"], found["decisions"], found["files"]) == (3, 12, {})
    assert found["starts"] == "where the data started"
    assert pd.DataFrame(found["panel"]).equals(printed)


def test_all_may_begin_in_one_state():
    panel = pd.read_csv(StringIO(well("simulate", "trips-fit", "--n", 20, "--length", 3, "--initial", "park")))
    assert set(panel.loc[panel["t"] == 0, "station"]) == {"park"}


def test_bins_and_dates_survive_the_round_trip(no_report):
    words = ("--id", "bus", "--time", "month", "--state", "miles", "--action", "decision", "--period", "month")
    bins = ("--bins", "miles=edges:0,25,50,75,100", "--constants")
    well("fit", "buses.csv", *words, *bins, "--out", "buses-fit")
    fit = rv.load("buses-fit")
    well("simulate", "buses-fit", "--n", 200, "--length", 30, "--out", "more.csv")
    read = rv.Demonstrations.from_frame(
        "more.csv", id="bus", time="month", state=fit.demonstrations.bins, action="decision", period="month"
    )
    assert np.array_equal(read.counts, fit.simulate(200, 30, seed=0).counts)
    assert "gap" not in " ".join(read.notes)
    well("fit", "more.csv", "--config", "buses-fit/config.toml")
    asked = well("predict", "buses-fit", "--state", "60", "--state", "miles [50, 75)", "--json")
    by_value = json.loads(asked)["choices"]
    assert by_value[0] == by_value[1]
    assert by_value[0]["replace"] == fit.policy[2, 1]
    pd.DataFrame({"miles": [99.0, 0.5]}).to_csv("odometers.csv", index=False)
    found = json.loads(well("predict", "buses-fit", "--states", "odometers.csv", "--json"))["choices"]
    assert [one["keep"] for one in found] == [fit.policy[3, 0], fit.policy[0, 0]]
    outside = here("predict", "buses-fit", "--state", "1e6")
    assert "outer edges of column 'miles'; got 1000000.0" in one_line(outside)
    assert "or a number for miles; got 'far'" in one_line(here("predict", "buses-fit", "--state", "far"))


@pytest.mark.parametrize("how", ["miles=6", "miles=quantile:6"])
def test_a_config_keeps_the_edges_of_bins(no_report, how):
    """Cut anew from the centres that a simulation writes, bins would have other edges, and the fit other estimates."""
    words = ("--id", "bus", "--time", "month", "--state", "miles", "--action", "decision", "--period", "month")
    well("fit", "buses.csv", *words, "--bins", how, "--constants", "--smoothing", "1", "--out", "cut-fit", "--force")
    fit = rv.load("cut-fit")
    bins = fit.demonstrations.bins
    kept: Any = rv.Recipe.from_toml("cut-fit/config.toml").binned
    assert kept.edges[0].tolist() == bins.edges[0].tolist()
    assert how in Path("cut-fit/config.toml").read_text(encoding="utf-8")
    well("simulate", "cut-fit", "--n", 300, "--length", 30, "--out", "cut.csv", "--force")
    again = rv.Recipe.from_toml("cut-fit/config.toml", panel="cut.csv").fit()
    direct = fit.simulate(300, 30, seed=0)
    np.testing.assert_array_equal(again.demonstrations.counts, direct.counts)
    labelled = direct.to_frame("bus", "month", "miles", "decision")  # its states are labels of the bins
    drawn = rv.Demonstrations.from_frame(labelled, id="bus", time="month", state=bins, action="decision")
    model = rv.MDP(rv.estimate_transitions(drawn, smoothing=1.0), discount=fit.mdp.discount)
    expected = rv.NFXP(again.reward_model).fit(model, drawn)
    np.testing.assert_allclose(again.theta, expected.theta, rtol=1e-6)
    assert rv.discretize("cut.csv", "miles", 6, how.rpartition(":")[0][6:] or "uniform").edges[0][0] > bins.edges[0][0]


def test_several_columns_and_an_end_survive_the_round_trip(no_report):
    names = ("--id", "who", "--time", "t", "--state", "x", "--state", "y", "--action", "go")
    more = ("--next-state", "x2", "--next-state", "y2", "--weight", "times", "--terminal", "2,2")
    model = ("--reward", "tabular", "--discount", "1", "--method", "ccp", "--l2", "0.01")
    well("fit", "grid.csv", *names, *more, *model, "--out", "grid-fit")
    fit = rv.load("grid-fit")
    well("simulate", "grid-fit", "--n", 50, "--length", 40, "--initial", "0,0", "--out", "walks.csv")
    walks = pd.read_csv("walks.csv")
    assert list(walks.columns) == list(pd.read_csv("grid.csv").columns)
    assert not ((walks["x"] == 2) & (walks["y"] == 2)).any()
    assert ((walks["x2"] == 2) & (walks["y2"] == 2)).any()
    well("fit", "walks.csv", "--config", "grid-fit/config.toml")
    (found,) = json.loads(well("predict", "grid-fit", "--state", "1,2", "--json"))["choices"]
    assert (found["x"], found["y"]) == (1, 2)
    assert found["e"] == fit.policy[fit.state_labels.index((1, 2)), 0]
    assert "no decision is made in (2, 2), which is terminal" in one_line(here("predict", "grid-fit", "--state", "2,2"))


def test_on_a_horizon_the_period_is_asked_for(own, no_report):
    well("fit", *TRIPS, "--horizon", "25", "--out", "horizon")
    fit = rv.load("horizon")
    found = json.loads(well("predict", "horizon", "--period", 24, "--json"))["choices"]
    assert {one["period"] for one in found} == {24}
    assert all(one[name] == pytest.approx(1 / 3) for one in found for name in files.CHOICES)  # the end is near
    first = json.loads(well("predict", "horizon", "--state", "zoo", "--json"))["choices"][0]
    assert first["stay"] == fit.policy[5, 2]
    panel = pd.read_csv(StringIO(well("simulate", "horizon", "--n", 3, "--length", 99)))
    assert panel.groupby("rider")["t"].max().tolist() == [24] * 3
    assert set(panel["station"]) <= set(files.STATIONS)


# counterfactual


def test_a_counterfactual_is_the_library_s():
    fit = rv.load("trips-fit")
    cf = fit.counterfactual(params={"shops": lambda x: 1.2 * x, "green": 0.0}, mdp=fit.mdp.replace(discount=0.8))
    words = ("--set", "shops*1.2", "--set", "green=0", "--discount", "0.8")
    assert well("counterfactual", "trips-fit", *words).splitlines() == cf.text(reword=in_flags).splitlines()
    assert "revealed fit --errors hessian --joint accounts" in cf.text(500, in_flags)
    well("counterfactual", "trips-fit", *words, "--out", "answer")
    assert sorted(os.listdir("answer")) == ["counterfactual.html", "policy.csv", "states.csv", "table.csv"]
    table = exact("answer/table.csv", index_col="quantity")
    assert np.array_equal(table, cf.table())
    policy = exact("answer/policy.csv")
    assert policy.loc[policy["choice"] == "on", "after"].tolist() == cf.after.policy[:, 1].tolist()


def test_the_page_of_a_counterfactual_shows_every_action_in_signs_that_the_font_has(no_report, tmp_path):
    names = {name: name for name in files.STATIONS} | {"zoo": "動物園", "park": "$park_{"}
    panel, features = pd.read_csv("trips.csv").replace({"station": names}), files.stations().replace({"station": names})
    panel.to_csv(tmp_path / "named.csv", index=False)
    features.to_csv(tmp_path / "places.csv", index=False)
    words = ("--features", tmp_path / "places.csv", "--columns", "shops", "--out", tmp_path / "named")
    well("fit", tmp_path / "named.csv", *files.FLAGS, *words)
    done = installed("counterfactual", tmp_path / "named", "--set", "shops*2", "--out", tmp_path / "answer")
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "answer/counterfactual.html").read_text()
    assert [f"Probability of {choice} by state" in page for choice in files.CHOICES] == [True] * 3


def other_moves(name: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> tuple[str, str]:
    """The table of transitions, changed, as an option."""
    change(pd.read_csv("moves.csv")).to_csv(name, index=False)
    return "--transitions", name


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: pd.concat([t, t]), "`--transitions`: expected one row per state, action and next state; got"),
        (lambda t: t.head(0), "`--transitions`: expected at least one row; got no rows."),
        (lambda t: t.assign(probability=100 * t["probability"]), "If these are percentages, divide them by 100."),
    ],
)
def test_what_is_wrong_with_a_table_of_transitions_is_told_under_its_option(change, told):
    table = other_moves("wrong.csv", change)
    assert told in one_line(here("fit", *TRIPS, "--features", "stations.csv", *table))
    assert told in one_line(here("counterfactual", "trips-fit", *table))


@pytest.mark.parametrize("file", [("--features", "none.csv"), ("--reward", "tabular", "--transitions", "none.csv")])
def test_a_file_without_rows_is_told_under_its_option(file):
    pd.read_csv("stations.csv" if "--features" in file else "moves.csv").head(0).to_csv("none.csv", index=False)
    assert f"`{file[-2]}`: expected at least one row; got no rows." in one_line(here("fit", *TRIPS, *file))


def test_states_without_rows_and_without_a_file_are_told_under_their_option():
    pd.read_csv("stations.csv").head(0).to_csv("none.csv", index=False)
    told = one_line(here("predict", "trips-fit", "--states", "none.csv"))
    assert "`--states`: expected at least one row; got no rows." in told


def test_the_column_of_probabilities_may_have_another_name_in_a_counterfactual():
    ask = "counterfactual", "trips-fit", "--bands", "none", "--json"
    table = other_moves("named.csv", lambda moves: moves.rename(columns={"probability": "p"}))
    told = one_line(here(*ask, *table))
    assert "`--probability`: expected one of the columns" in told
    usual = well(*ask, "--transitions", "moves.csv")
    assert well(*ask, *table, "--probability", "p") == usual


def test_rows_that_a_table_of_transitions_lacks_are_noted():
    ask = "counterfactual", "trips-fit", "--bands", "none", "--json"
    table = other_moves("short.csv", lambda moves: moves[moves["station"] != "zoo"])
    notes = " ".join(json.loads(well(*ask, *table))["notes"])
    assert "state zoo is terminal after the change, but not before" in notes
    table = other_moves("less.csv", lambda moves: moves[(moves["station"] != "zoo") | (moves["choice"] != "on")])
    notes = " ".join(json.loads(well(*ask, *table))["notes"])
    assert (
        "1 state-action pair is infeasible after the change, but not before (first state 'zoo', action 'on';" in notes
    )


def test_other_transitions_are_read_from_a_table():
    found = json.loads(well("counterfactual", "trips-fit", "--transitions", "moves.csv", "--bands", "none", "--json"))
    cf = rv.load("trips-fit").counterfactual(mdp=files.ring(), bands=None)
    assert [one["after"] for one in found["table"]] == pytest.approx(cf.table()["after"].tolist(), abs=1e-12)
    assert (found["bands"], found["table"][0]["se"]) == (None, None)


@pytest.mark.parametrize(
    ("text", "name", "at_two"),
    [
        ("a=3", "a", 3.0),
        ("a = -3e1", "a", -30.0),
        ("a*1.5", "a", 3.0),
        (" a / 4 ", "a", 0.5),
        ("a+1", "a", 3.0),
        ("a-1", "a", 1.0),
        ("a-1-1", "a-1", 1.0),
        ("a*b=5", "a*b", 5.0),
        ("a*b*2", "a*b", 4.0),
    ],
)
def test_a_change_in_a_word(text, name, at_two):
    found, rule = parse_change(text, ("a", "a-1", "a*b"))
    assert (found, rule(2.0) if callable(rule) else rule) == (name, at_two)


@pytest.mark.parametrize("text", ["a", "a=", "a/0", "=3", "", "a=nan", "a*x"])
def test_a_change_that_says_nothing(text):
    with pytest.raises((InvalidOption, ValueError), match="--set"):
        parse_change(text, ("a", "b"))


# compare


def test_compare_is_every_method_side_by_side_and_the_advice(no_report):
    out = well("compare", *TRIPS, "--out", "compared")
    wanted = ["advice.txt", "ccp", "compare.csv", "compare.html", "config.toml", "nfxp", "npl"]
    assert sorted(os.listdir("compared")) == wanted
    table = exact("compared/compare.csv", index_col="parameter")
    for method in ("nfxp", "ccp", "npl"):
        assert table[f"{method.upper()} coef"].tolist() == rv.load(f"compared/{method}").theta.tolist()
        assert f'method = "{method}"' in Path("compared", method, "config.toml").read_text()
    assert np.allclose(table["NFXP coef"], table["NPL coef"], atol=1e-7)  # a settled NPL is the maximum
    told = " ".join(out.split())
    assert "MCE-IRL is another name for NFXP" in told
    assert "Use " in told
    assert "Use " in Path("compared/advice.txt").read_text()


def test_the_advice_is_for_the_options_that_were_given():
    options = ("--l2", "0.5", "--first-step", "smoothed")
    found = json.loads(well("compare", *TRIPS, *options, "--json"))["advice"]["options"]
    assert {name: found[name] for name in ("l2", "first_step")} == {"l2": 0.5, "first_step": "smoothed"}


def test_the_other_name_has_the_same_estimates():
    found = [json.loads(well("fit", *TRIPS, "--method", method, "--json"))["params"] for method in ("nfxp", "mce-irl")]
    assert found[0] == found[1]
