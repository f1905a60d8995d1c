"""Results on disk are whole or not there, and the same figure gives the same bytes."""

import pytest
from matplotlib.figure import Figure

from revealed import files
from revealed.errors import RevealedError


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
