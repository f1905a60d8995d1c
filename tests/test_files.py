"""Results on disk are whole or not there, and the same figure gives the same bytes."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import revealed as rv
from models import draw, random_mdp
from revealed import files
from revealed.commands.placing import claim, placed, target_file, write_frame
from revealed.errors import CannotWrite, RevealedError


def figure() -> Figure:
    made = Figure(figsize=(3.0, 2.0), layout="constrained")
    made.subplots().plot([0, 1, 2], label="a line")
    return made


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "estimates.csv"
    files.write_atomically(path, b"old")
    files.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", fails)
    with pytest.raises(RevealedError, match="No space left"):
        files.write_atomically(path, b"newer")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("estimates.csv", b"new")]


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RevealedError, match="file"):
        files.prepare_folder(tmp_path / "file" / "below")


@pytest.mark.parametrize(("render", "start"), [(files.render_png, b"\x89PNG"), (files.render_pdf, b"%PDF")])
def test_the_same_figure_gives_the_same_bytes(render, start):
    first, second = render(figure()), render(figure())
    assert first.startswith(start)
    assert first == second


# what is not a regular file is never replaced


@pytest.fixture(scope="module")
def fit():
    mdp = random_mdp(3, 2, seed=1)
    features = np.random.default_rng(0).normal(size=(3, 2, 1))
    return rv.NFXP(rv.LinearReward(features), l2=0.1).fit(mdp, draw(mdp, features @ [1.0], 20, 5))


WRITERS: dict[str, Callable[[Any, Path], Any]] = {
    "save": lambda fit, path: fit.save(path),
    "report": lambda fit, path: rv.write_fit_report(fit, path),
    "atomically": lambda fit, path: files.write_atomically(path, b"new"),
    "frame": lambda fit, path: write_frame(path, fit.table()),
    "line": lambda fit, path: files.append_line(path, "new"),
    "asked before": lambda fit, path: files.require_writable(path),
    "out": lambda fit, path: target_file(path, force=True),
}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


def device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError as error:
        pytest.skip(f"no device can be made here: {error}")


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("make", [pipe, listening, device])
@pytest.mark.parametrize("writer", WRITERS)
def test_pipes_sockets_and_devices_are_refused_and_stay(fit, writer, make, linked, tmp_path):
    special = path = tmp_path / "special.csv"
    make(special)
    before = os.lstat(special)
    if linked:
        path = tmp_path / "link.csv"
        path.symlink_to("special.csv")
    with pytest.raises(CannotWrite, match=r"regular file.*which is a (pipe|socket|device)"):
        WRITERS[writer](fit, path)
    after = os.lstat(special)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert len(os.listdir(tmp_path)) == 1 + linked


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("writer", ["save", "report", "atomically", "frame", "line"])
def test_a_link_is_followed_and_stays_a_link(fit, writer, there, tmp_path):
    (tmp_path / "far").mkdir()
    real, link, over = tmp_path / "far" / "real.csv", tmp_path / "link.csv", tmp_path / "over.csv"
    if there:
        real.write_text("old\n")
    link.symlink_to("far/real.csv")
    over.symlink_to("link.csv")
    WRITERS[writer](fit, over)
    assert link.is_symlink()
    assert over.is_symlink()
    assert not real.is_symlink()
    assert real.read_bytes() not in (b"old\n", b"")
    assert os.listdir(tmp_path / "far") == ["real.csv"]


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(CannotWrite, match="a link to itself"):
        files.write_atomically(tmp_path / "a", b"new")


def test_folders_of_results_keep_links_and_refuse_pipes(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    (tmp_path / "elsewhere.csv").write_text("old")
    (tmp_path / "real" / "params.csv").symlink_to("../elsewhere.csv")
    with placed(tmp_path / "out", ("params.csv",)) as beside:
        (beside / "params.csv").write_text("new")
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "real" / "params.csv").is_symlink()
    assert (tmp_path / "elsewhere.csv").read_text() == "new"
    (tmp_path / "real" / "params.csv").unlink()
    pipe(tmp_path / "real" / "params.csv")
    with pytest.raises(CannotWrite, match=r"--out.*params\.csv, which is a pipe"):
        claim(tmp_path / "out", ("params.csv",))
    with pytest.raises(CannotWrite, match="which is a pipe"), placed(tmp_path / "out", ("params.csv",)) as beside:
        (beside / "params.csv").write_text("new")
    assert (tmp_path / "real" / "params.csv").is_fifo()


def test_a_folder_may_be_a_link_to_one_that_is_not_there_yet(tmp_path):
    (tmp_path / "out").symlink_to("real")
    folder = claim(tmp_path / "out", ("params.csv",))
    with placed(folder, ("params.csv",)) as beside:
        (beside / "params.csv").write_text("new")
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "real" / "params.csv").read_text() == "new"


@pytest.mark.parametrize(
    ("path", "said"), [("a" * 300, "255 bytes each; got 300"), ("é/" * 2000, "4096 bytes; got 6000")]
)
def test_what_is_too_long_is_said(path, said):
    with pytest.raises(RevealedError, match=said):
        rv.load(path)
