"""Monte Carlo studies on disk: they go on where they were, and never mix with another study or with other files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.environments import garnet
from revealed.errors import InvalidInput
from studies import Scripted, assert_same, coin, study


def scripted(answers: list[Any], folder: Path, replications: int, **options: Any) -> tuple[Any, Scripted]:
    method = Scripted(answers)
    named = {"m": method}
    return rv.monte_carlo(coin(), named, replications, n=1, folder=folder, jobs=1, **options), method


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A folder with three replications; scripts have the same description, whatever they answer."""
    monkeypatch.setattr(Scripted, "__repr__", lambda self: "a script")
    scripted([(1.0, 1.0), (2.0, 1.0), (4.0, 1.0)], tmp_path, 3)
    return tmp_path


def test_a_second_call_goes_on(written):
    found, method = scripted([(7.0, 1.0), (8.0, 1.0)], written, 5)
    assert found.frame["estimate"].tolist() == [1.0, 2.0, 4.0, 7.0, 8.0]
    assert method.calls == 2
    again, method = scripted([], written, 4)  # fewer: those that come first
    assert again.frame["estimate"].tolist() == [1.0, 2.0, 4.0, 7.0]
    assert method.calls == 0


def test_what_comes_from_a_folder_is_the_same_to_the_last_bit(tmp_path):
    twelve = study(jobs=1)
    study(replications=7, folder=tmp_path, jobs=2)
    assert_same(study(folder=tmp_path, jobs=1), twelve)
    assert_same(study(folder=tmp_path, jobs=2), twelve)


def test_a_line_that_was_cut_off_is_computed_again(written):
    lines = written / "replications.jsonl"
    whole = lines.read_bytes()
    last = len(whole[:-1].rpartition(b"\n")[0]) + 1
    for cut in range(last, len(whole) - 1, 11):
        lines.write_bytes(whole[:cut])
        found, method = scripted([(4.0, 1.0)], written, 3)
        assert method.calls == 1
        assert found.frame["estimate"].tolist() == [1.0, 2.0, 4.0]
    scripted([], written, 3)  # and the one that replaced it is whole


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: record.pop("decisions"),
        lambda record: record.update(fits=None),
        lambda record: record["fits"].clear(),
        lambda record: record["fits"].update(m=3),
        lambda record: record["fits"]["m"].pop("status"),
        lambda record: record["fits"]["m"].pop("se"),
        lambda record: record["fits"]["m"].update(theta=[1.0, 2.0]),
        lambda record: record["fits"]["m"].update(theta="much"),
        lambda record: record["fits"]["m"].update(upper=[[1.0]]),
        lambda record: record["fits"]["m"].update(seconds=[]),
        lambda record: record["fits"]["m"].update(used="yes"),
    ],
)
def test_a_line_that_was_damaged_is_computed_again(written, damage):
    lines = (written / "replications.jsonl").read_text().splitlines()
    record = json.loads(lines[1])
    damage(record)
    (written / "replications.jsonl").write_text("\n".join([lines[0], json.dumps(record), lines[2], "[" * 9999, ""]))
    found, method = scripted([(2.0, 1.0)], written, 3)
    assert method.calls == 1
    assert found.frame["estimate"].tolist() == [1.0, 2.0, 4.0]
    assert "Monte Carlo" in str(found)


@pytest.mark.parametrize("name", ["study.json", "replications.jsonl"])
def test_a_folder_in_the_place_of_a_file_is_a_clear_error(written, name):
    (written / name).unlink()
    (written / name).mkdir()
    with pytest.raises(InvalidInput, match=rf"a {name} that can be read.*Pass another folder"):
        scripted([], written, 3)


def test_ctrl_c_keeps_what_was_finished(tmp_path, monkeypatch):
    monkeypatch.setattr(Scripted, "__repr__", lambda self: "a script")
    with pytest.raises(KeyboardInterrupt):
        scripted([(1.0, 1.0), (2.0, 1.0), KeyboardInterrupt], tmp_path, 5)
    found, method = scripted([(3.0, 1.0)], tmp_path, 3)
    assert method.calls == 1
    assert found.frame["estimate"].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"n": 21}, "n = 20 there, 21 here"),
        ({"length": 11}, "length = 10 there, 11 here"),
        ({"seed": 6}, "seed = 5 there, 6 here"),
        ({"level": 0.9}, "level = 0.95 there, 0.9 here"),
        ({"kind": "opg"}, 'kind = null there, "opg" here'),
        ({"model": lambda demos: garnet(6, 2, 2, seed=1, discount=0.5).mdp}, "model"),
    ],
)
def test_another_study_is_refused_and_told_apart(tmp_path, changed, words):
    study(replications=1, folder=tmp_path)
    with pytest.raises(InvalidInput, match=r"folder.*same study.*Pass another folder") as caught:
        study(replications=1, folder=tmp_path, **changed)
    assert words in str(caught.value)


def test_methods_and_worlds_that_read_the_same_are_told_apart(tmp_path):
    """Their names and options agree; what the rewards make of the truth, or the data, do not."""
    world = garnet(6, 2, 2, seed=1)
    rv.monte_carlo(world, {"m": rv.NPL(world.reward_model(), updates=3)}, 1, n=20, length=10, folder=tmp_path)
    other = garnet(6, 2, 2, seed=1, discount=0.5)
    for different, method in (
        (world, rv.NPL(world.reward_model(), updates=4)),
        (world, rv.NPL(rv.LinearReward(2.0 * np.asarray(world.features)), updates=3)),
        (other, rv.NPL(other.reward_model(), updates=3)),
    ):
        with pytest.raises(InvalidInput, match="same study"):
            rv.monte_carlo(different, {"m": method}, 1, n=20, length=10, folder=tmp_path)


def test_the_description_of_a_study_is_the_same_in_every_process(tmp_path):
    study(replications=1, folder=tmp_path, model=lambda demos: garnet(6, 2, 2, seed=1).mdp)
    assert "0x" not in (tmp_path / "study.json").read_text()
    study(replications=2, folder=tmp_path, model=lambda demos: garnet(6, 2, 2, seed=1).mdp)


@pytest.mark.parametrize("damage", ["{", "lost", "[" * 100_000])
def test_a_folder_whose_description_is_gone_is_a_clear_error(written, damage):
    about = written / "study.json"
    about.unlink() if damage == "lost" else about.write_text(damage)
    with pytest.raises(InvalidInput, match=r"study\.json.*Pass another folder"):
        scripted([], written, 3)


def test_a_folder_of_other_things_is_refused_and_left_as_it_was(tmp_path):
    (tmp_path / "paper.tex").write_text("mine")
    with pytest.raises(InvalidInput, match=r"`folder`.*empty one.*first at paper\.tex.*Pass a new or an empty one"):
        study(replications=1, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["paper.tex"]
    (tmp_path / "paper.tex").unlink()
    (tmp_path / ".git").mkdir()
    with pytest.raises(InvalidInput, match="empty one"):
        study(replications=1, folder=tmp_path)


@pytest.mark.parametrize("content", ["[1, 2]", "{}", '{"title": "of another program"}', '"text"'])
def test_a_study_of_another_program_is_refused_and_left_as_it_was(tmp_path, content):
    (tmp_path / "study.json").write_text(content)
    with pytest.raises(InvalidInput, match=r"a study\.json of a Monte Carlo study.*Pass another folder"):
        study(replications=1, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]
    assert (tmp_path / "study.json").read_text() == content


def test_a_kill_before_the_first_line_leaves_a_folder_that_can_be_used(tmp_path):
    (tmp_path / ".study.json.0123").write_text("{")  # written beside, never renamed
    assert study(replications=1, folder=tmp_path).replications == 1


def test_bootstraps_of_other_lengths_are_other_studies(tmp_path):
    bootstrap = {"n": 30, "length": 1, "kind": "bootstrap", "folder": tmp_path}
    fits = {"m": rv.NFXP(coin().reward_model())}
    rv.monte_carlo(coin(), fits, 1, reps=10, **bootstrap)
    with pytest.raises(InvalidInput, match="reps = 10 there, 20 here"):
        rv.monte_carlo(coin(), fits, 1, reps=20, **bootstrap)


def test_a_folder_that_cannot_be_written_is_named_as_the_caller_named_it(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"`folder`.*can be written"):
        study(replications=1, folder=tmp_path / "file" / "below")


def test_lines_are_json_with_one_replication_each(written):
    rows = [json.loads(line) for line in (written / "replications.jsonl").read_text().splitlines()]
    assert [row["replication"] for row in rows] == [0, 1, 2]
    assert [row["fits"]["m"]["theta"] for row in rows] == [[1.0], [2.0], [4.0]]
