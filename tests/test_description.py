"""The description of a run: the same words on the command line, in a file and in Python."""

import os
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from revealed.commands.wording import in_flags
from revealed.description import METHODS, Description, flag, option_fields
from revealed.errors import InvalidOption

NEEDED = {"panel": "trips.csv", "id": "rider", "time": "t", "state": "station", "action": "choice"}


def text_of(options: Mapping[str, Any], folder: Any) -> str:
    return Description(**{**NEEDED, **options}).to_toml(folder)


@given(
    state=st.lists(st.text(min_size=1), min_size=1, max_size=3),
    terminal=st.lists(st.text(min_size=1), max_size=3),
    discount=st.floats(0.0, 1.0),
    tol=st.none() | st.floats(1e-300, 1.0),
    constants=st.booleans(),
    hidden=st.lists(st.integers(1, 2**40), max_size=3),
    method=st.sampled_from(METHODS),
)
def test_a_file_says_exactly_what_was_described(tmp_path_factory, **options):
    folder = tmp_path_factory.mktemp("config")
    before = Description(**{**NEEDED, "panel": str(folder / "trips.csv"), **options})
    (folder / "config.toml").write_text(before.to_toml(folder), encoding="utf-8", newline="")
    assert Description.from_toml(folder / "config.toml") == before


def test_a_file_has_every_option_that_has_a_value():
    found = tomllib.loads(text_of({}, "."))
    wanted = {name for name, about in option_fields().items() if about["default"] not in (None, ())}
    wanted |= {*NEEDED, "discount"}  # whose default depends on the data
    assert {name.replace("-", "_") for name in found} == wanted


def test_paths_move_with_their_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = {"panel": "data/trips*.csv", "features": "data/stations.csv", "out": "results"}
    text = text_of(paths, "runs/first")
    assert tomllib.loads(text)["panel"][0] == "../../data/trips*.csv"
    os.makedirs("moved/runs/first")
    (tmp_path / "moved/runs/first/config.toml").write_text(text)
    found = Description.from_toml("moved/runs/first/config.toml")
    assert found.panel[0] == os.path.join("moved", "data", "trips*.csv")
    assert found.features == os.path.join("moved", "data", "stations.csv")
    assert found.out == os.path.join("moved", "results")
    (tmp_path / "absolute.toml").write_text(text.replace("../../data/trips*.csv", "/far/trips.csv"))
    assert Description.from_toml("absolute.toml").panel[0] == "/far/trips.csv"


def test_a_glob_in_a_folder_whose_name_has_brackets_finds_its_files(tmp_path):
    from glob import glob

    folder = tmp_path / "run [1]"
    folder.mkdir()
    (folder / "trips1.csv").touch()
    (folder / "run.toml").write_text('panel = "trips?.csv"\nid = "a"\ntime = "b"\nstate = "c"\naction = "d"\n')
    (pattern,) = Description.from_toml(folder / "run.toml").panel
    assert glob(pattern) == [str(folder / "trips1.csv")]


def test_flags_go_over_the_file_and_what_was_not_said_stays(tmp_path):
    (tmp_path / "run.toml").write_text(text_of({"discount": 0.8, "method": "ccp", "terminal": ["a"]}, tmp_path))
    said = {"discount": 0.7, "method": None, "terminal": [], "max_iter": None}
    found = Description.from_flags(said, tmp_path / "run.toml")
    assert (found.discount, found.method, found.terminal, found.max_iter) == (0.7, "ccp", ("a",), None)


def test_one_text_is_a_list_of_one_and_hyphens_are_underscores(tmp_path):
    text = 'panel="p.csv"\nid="a"\ntime="b"\nstate="c"\naction=["d"]\nfirst_step="logit"\nnext-state="e"\nhidden=3\n'
    (tmp_path / "run.toml").write_text("\ufeff" + text, encoding="utf-8")
    found = Description.from_toml(tmp_path / "run.toml")
    assert (found.state, found.next_state, found.hidden, found.first_step) == (("c",), ("e",), (3,), "logit")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('metod = "npl"', "'metod' in {file}. Did you mean method?"),
        ("[deep]\nx = 1", "'deep' in {file}."),
        ('discount = "high"', "`--discount`: expected a number; got 'high' in {file}."),
        ("discount = true", "`--discount`: expected a number; got True in {file}."),
        ("l2 = nan", "`--l2`: expected a number; got nan in {file}."),
        ("l2 = -1", "`--l2`: expected a number, at least 0; got -1 in {file}."),
        ("updates = 1.5", "`--updates`: expected a whole number; got 1.5 in {file}."),
        ("updates = 0", "`--updates`: expected a whole number, at least 1; got 0 in {file}."),
        ("max-iter = 3\nmax_iter = 4", "expected every option only once; got max-iter and max_iter in {file}."),
        ("state = [1]", "`--state`: expected text; got 1 in {file}."),
        ("state = {a = 1}", "`--state`: expected a string, or a list of strings; got {{'a': 1}} in {file}."),
        ("id = ''", "`--id`: expected text; got '' in {file}."),
        ("constants = 1", "`--constants`: expected true or false; got 1 in {file}."),
        ('method = "nlp"', "expected one of nfxp, mce-irl, ccp, npl; got 'nlp' in {file}. Did you mean npl?"),
        ('id = "a"\ntime = = 2', "expected a TOML file; got {file}: Invalid value (at line 2, column 8)."),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, text, message):
    file = tmp_path / "run.toml"
    file.write_text(text)
    with pytest.raises(InvalidOption) as caught:
        Description.from_toml(file)
    assert message.format(file=file) in in_flags(caught.value)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xff", b"updates = " + b"9" * 5000, b"bins = " + b"[" * 5000])
def test_a_file_that_cannot_be_read_is_named(tmp_path, content):
    file = tmp_path / "run.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidOption, match=r"`path`: expected a TOML file.*run\.toml") as caught:
        Description.from_toml(file)
    assert in_flags(caught.value).startswith("`--config`: expected a TOML file")


def test_a_file_is_read_to_a_limit(tmp_path, monkeypatch):
    """A device has no end: /dev/zero took all the memory there was."""
    monkeypatch.setattr("revealed.description.MOST_BYTES", 10)
    (tmp_path / "run.toml").write_text('id = "a name"')
    with pytest.raises(InvalidOption, match="at most 10 bytes"):
        Description.from_toml(tmp_path / "run.toml")


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_missing_is_asked_for(name):
    with pytest.raises(InvalidOption) as caught:
        Description(**{key: value for key, value in NEEDED.items() if key != name})  # pyright: ignore
    assert str(caught.value).startswith(f"`{name}` is required (")
    assert "--" not in str(caught.value)
    assert in_flags(caught.value).startswith(f"`{flag(name)}` is required (")
    assert in_flags(caught.value).endswith(" in the --config file.")


def test_the_discount_is_one_everywhere():
    for wrong in (1.01, -0.5):
        with pytest.raises(InvalidOption, match=rf"`discount`: expected a number in \[0, 1\]; got {wrong}"):
            text_of({"discount": wrong}, ".")


@pytest.mark.parametrize("given", ["x", "x,y,z", ["x", "y", "z"], "x,x", "x,"])
def test_coordinates_are_two(given):
    with pytest.raises(InvalidOption, match="`coordinates`: expected two columns, as in x,y"):
        Description(**{**NEEDED, "coordinates": given})  # pyright: ignore


def test_members_of_enumerations_become_plain_text():
    found = Description.from_flags({**NEEDED, "method": StrEnum("method", ["npl"]).npl, "state": ["station"]})  # pyright: ignore
    assert type(found.method) is str
    assert repr(found.method) == "'npl'"


def test_coordinates_may_be_written_in_one_word():
    both = [Description(**{**NEEDED, "coordinates": given}).coordinates for given in ("x, y", ["x", "y"])]  # pyright: ignore
    assert both == [("x", "y")] * 2
