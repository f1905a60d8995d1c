"""The library's messages in words of the command line; names that came with the data stay."""

import ast
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
import trips as files
from revealed.bins import discretize
from revealed.chain import NO_VALUE
from revealed.commands.wording import FIT, OWN_FLAGS, PANEL, in_flags
from revealed.description import flags
from revealed.errors import InvalidInput, InvalidOption, RevealedError, SolverFailed
from revealed.goal_estimation import _NO_START  # pyright: ignore[reportPrivateUsage]
from revealed.voices import MARKS, arg, either, named, words


@pytest.mark.parametrize(
    ("said", "python", "typed"),
    [
        (named("columns"), "columns", "--columns"),
        (named("path"), "path", "PANEL"),
        (arg("columns", ["shops", "green"]), "columns=['shops', 'green']", "--columns shops,green"),
        (arg("next_state"), "next_state=", "--next-state"),
        (arg("smoothing", 1.0), "smoothing=1.0", "--smoothing 1.0"),
        (arg("unseen", "stay"), 'unseen="stay"', "--unseen stay"),
        (arg("coordinates"), "coordinates=", "--coordinates"),
        (arg("bands", None), "bands=None", "--bands none"),
        (arg("bands", "bootstrap"), 'bands="bootstrap"', "--bands bootstrap"),
        (arg("kind", "cluster"), 'kind="cluster"', "--errors cluster"),
        (arg("kind"), "kind=", "--errors"),
        (named("keep"), "keep", "--cluster"),
        (named("bandwidth"), "bandwidth", "--kernel"),
        (named("max_iter"), "max_iter", "--max-iter"),
        (arg("l2", 1e-4), "l2=1e-4", "--l2 1e-4"),
        (arg("discount", 0.95), "discount=0.95", "--discount 0.95"),
        (arg("gaps", "break"), 'gaps="break"', "--gaps break"),
        (arg("joint", True), "joint=True", "--joint"),
        (arg("n_states"), "n_states=", "n_states="),
    ],
)
def test_arguments_are_flags(said, python, typed):
    note = words(f"Use {said}, or not.")
    assert note == f"Use {python}, or not."
    assert in_flags(note, PANEL) == f"Use {typed}, or not."
    assert in_flags(typed, PANEL) == typed  # and what is in flags already stays


@pytest.mark.parametrize(
    "text",
    [
        "got 'next_state=5'.",
        "got 'max_iter' and 'rv.discretize' (first at row 3).",
        r"got 'it\'s l2=3'.",
        "rv.load('trips-fit', reward=...).",
        "gradient norm 1.8e-10 <= tol 1.0e-09.",
        "choices do not change along `weight` − 2·`l2=3`.",
        "reps= and `kind`: of max_iter, mdp.base.unroll(3).",
    ],
)
def test_what_came_with_the_data_stays(text):
    assert in_flags(text, PANEL) == text
    assert in_flags(text) == text
    told = in_flags(InvalidInput("l2", f"no {text}", text, text, f"Mind {text}"), PANEL)
    assert told == f"`--l2`: expected no {text}; got {text} (first at {text}). Mind {text}"


def test_each_command_calls_its_argument_by_its_name():
    error = InvalidInput("path", "x", "y")
    assert [re.findall("`(.*?)`", in_flags(error, names)) for names in (PANEL, FIT, {})] == [
        ["PANEL"],
        ["FIT"],
        ["path"],
    ]


def test_rules_are_told_in_flags():
    error = InvalidOption.conflict("reps", f"requires `{arg('kind', 'bootstrap')}`")
    assert in_flags(error) == "`--reps` requires `--errors bootstrap`."
    assert str(error) == '`reps` requires `kind="bootstrap"`.'


def test_what_has_no_flag_has_words_of_its_own():
    assert in_flags(words(f"Use {either('fit.bootstrap()', '--errors bootstrap')}.")) == "Use --errors bootstrap."
    assert in_flags(SolverFailed(NO_VALUE)).endswith("(when fitting: --start ccp), or use a discount below 1.")
    with pytest.raises(RevealedError) as caught:
        discretize(pd.DataFrame({"x": [1.0, 1.0]}), "x", 2)
    assert str(caught.value).endswith("leave it out, or give edges=.")
    assert in_flags(caught.value).endswith("leave it out, or give edges, as in --bins COLUMN=edges:0,5,10.")


def test_what_a_road_network_refuses_is_not_offered():
    """A start by numbers has no flag, and the discount of a road network is 1."""
    typed = in_flags(_NO_START, PANEL)
    assert not set(_NO_START) & set(MARKS)
    assert "start=" not in typed
    assert "--start" not in typed
    assert typed.endswith(
        "add a feature that makes every move costly, such as the constant of a road network (--columns …,constant); "
        "without a road network, a --discount below 1 works, too."
    )


def runaway():
    """A fit whose status and notes name arguments: everybody chose the same, with a network's own kind of advice."""
    mdp = rv.MDP(np.full((2, 2, 2), 0.5), 0.9)
    demos = rv.Demonstrations.from_counts([[5, 0], [4, 0]])
    return rv.CCP(rv.LinearReward(np.eye(2)[None].repeat(2, 0), ["reps=", "`kind`: l2=3"])).fit(mdp, demos)


def test_no_mark_reaches_a_reader_or_a_file(tmp_path):
    fit = runaway()
    assert fit.status.code == "separated"
    sheet = fit.summary()
    file = fit.save(tmp_path / "fit.zip")
    with zipfile.ZipFile(file) as archive:
        written = [archive.read(name).decode("utf-8", "replace") for name in archive.namelist()]
    seen = [str(fit.status), fit.status.message, *fit.status.notes, str(sheet), sheet.to_latex(), sheet._repr_html_()]
    for text in [*seen, *written, repr(fit.status), json.dumps(fit.status.notes)]:
        assert not set(text) & set(MARKS)
        assert not re.search(r"\\ufdd[012]", text)


def test_a_saved_fit_still_speaks_both_languages(tmp_path):
    fit = runaway()
    again = rv.load(fit.save(tmp_path / "fit.zip"))
    assert again.status == fit.status
    assert "Add a penalty (l2=1e-3)" in again.status.message
    assert "Add a penalty (--l2 1e-3)" in in_flags(again.status.message)
    assert [in_flags(note) for note in again.status.notes] == [in_flags(note) for note in fit.status.notes]


def test_names_of_parameters_that_look_like_arguments_stay():
    """In the status, in notes and in the table, as typed and as in Python."""
    fit = runaway()
    for text in (in_flags(fit.status.message), fit.summary().text(200, in_flags)):
        assert "reps=" in text or "`kind`: l2=3" in text
        assert "--reps" not in text
        assert "--errors:" not in text


# what only Python asks for, with arguments that happen to be called as flags are
PYTHON_ONLY = ("commands/", "experiments/", "datasets/", "environments/", "fit_report/whole.py", "loading.py")
PYTHON_ONLY += (
    "gymnasium_table.py",
    "metrics.py",
    "montecarlo.py",
    "first_step.py",
)  # the latter describes settings, as in "l2=0.1, standardised"


def plain_arguments() -> Iterator[str]:
    """Arguments with a flag that a text of the library names without `arg`, `named` or `either`."""
    root = Path(rv.__file__).parent
    known = "|".join(sorted({*flags(), *OWN_FLAGS} - {"path", "state", "id"}))
    name = re.compile(rf"(?<![\w.(])({known})=(?!=)")
    for file in sorted(root.rglob("*.py")):
        where = file.relative_to(root).as_posix()
        if where.startswith(PYTHON_ONLY):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        kept = {id(inner) for node in ast.walk(tree) for inner in _of_two_voices(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in kept:
                yield from (f"{where}:{node.lineno}: {found[0]}" for found in name.finditer(node.value))


def _of_two_voices(node: ast.AST) -> Iterator[ast.AST]:
    """What a call of `either` says, and docstrings."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("either", "arg", "named"):
        yield from ast.walk(node)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value


def test_no_message_names_an_argument_for_python_alone():
    """What the command line can meet is written in both voices."""
    assert list(plain_arguments()) == []


# commands alone, help texts, and programs of others
SHELL_ONLY = (
    "commands/",
    "experiments/",
    "cli.py",
    "report.py",
    "clusters.py",
    "device_model.py",
    "fit_report/whole.py",
)
SHELL_ONLY += ("voices.py",)
SHELL_NAMES = {"_FILE", "OTHER_NAMES"}  # said by the command line alone


def plain_flags() -> Iterator[str]:
    """Flags that a text of the library names for Python, too."""
    root = Path(rv.__file__).parent
    for file in sorted(root.rglob("*.py")):
        where = file.relative_to(root).as_posix()
        if where.startswith(SHELL_ONLY):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        kept = {id(inner) for node in ast.walk(tree) for inner in (*_of_two_voices(node), *_of_the_shell(node))}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in kept:
                yield from (
                    f"{where}:{node.lineno}: {found}" for found in re.findall(r"(?<![\w-])--[a-z]+", node.value)
                )


def _of_the_shell(node: ast.AST) -> Iterator[ast.AST]:
    """Help texts, and what is named in `SHELL_NAMES`."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_option":
        yield from ast.walk(node)
    if isinstance(node, ast.Assign) and {getattr(target, "id", "") for target in node.targets} & SHELL_NAMES:
        yield from ast.walk(node)


def test_no_message_names_a_flag_for_the_command_line_alone():
    """What Python can meet is written in both voices."""
    assert list(plain_flags()) == []


WRONG: list[dict[str, Any]] = [
    {"reps": 30},
    {"reps": 1},
    {"reps": "many"},
    {"seed": 3},
    {"discount": 2.0},
    {"discount": "high"},
    {"method": "nlp"},
    {"state": None},
    {"id": None},
    {"id": "nobody"},
    {"time": "choice"},
    {"state": ["station", "nowhere"]},
    {"features": None},
    {"features": "none.csv"},
    {"features": "trips.csv"},
    {"feature_state": "stop"},
    {"columns": "shop"},
    {"coordinates": "x"},
    {"coordinates": "x,z"},
    {"kernel": 1.0},
    {"kernel": 1.0, "smoothing": 1.0},
    {"terminal": "zo"},
    {"terminal": ["zoo", "centr"]},
    {"transitions": "trips.csv"},
    {"transitions": "stations.csv", "unseen": "stay"},
    {"transitions": "stations.csv", "smoothing": 1.0},
    {"probability": "p"},
    {"bins": "station=x"},
    {"bins": "miles=3"},
    {"bins": "station=3"},
    {"horizon": 3},
    {"horizon": 30, "first_time": "x"},
    {"first_time": 2},
    {"goal": "station", "horizon": 3},
    {"goal": "rider"},
    {"constants": True, "reward": "tabular"},
    {"hidden": 3},
    {"cluster": "rider", "errors": "opg"},
    {"cluster": "nobody"},
    {"joint": True, "transitions": "trips.csv"},
    {"weight": "choice"},
    {"period": "month"},
    {"next_state": "choice"},
    {"trip": "rider"},
    {"network": "stations.csv"},
    {"turns": "stations.csv"},
    {"weighting": "occupancy", "errors": "robust"},
    {"out": ""},
    {"panel": "none.csv"},
    {"panel": ()},
]
IN_PYTHON = re.compile(rf"(?<![\w'\"])({'|'.join(sorted(flags()))}|states|actions|start|edges)=|rv\.|mdp\.|fit\.")


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_each_voice_keeps_to_its_own_words(options, tmp_path, monkeypatch):
    """The same mistake, from Python and at the command line."""
    monkeypatch.chdir(files.write(tmp_path))
    given = {"panel": "trips.csv", **files.NAMES, "features": "stations.csv", "max_iter": 3, **options}
    with pytest.raises(RevealedError) as caught:
        _ = rv.Recipe(**given).fit().summary()
    assert not re.search("(?<![a-z])--[a-z]|PANEL", str(caught.value))
    assert not IN_PYTHON.search(in_flags(caught.value, PANEL))
