"""How an experiment looks: its figures as files, its tables, and notes on what cannot be shown.

To draw takes nearly all the time of a report, so what was drawn is kept: `figures/` and `drawn/NAME.json`, which holds
the tables, the words of the figures and the digests of their files under a key. The key is made from all that a
drawing depends on; another key, a file that is missing or one that was changed means drawing again.
"""

from __future__ import annotations

import json
import platform
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from revealed.errors import RevealedError
from revealed.experiments.catalogue import EXPERIMENTS
from revealed.experiments.cells import Picture, Results, Table
from revealed.files import prepare_folder, render_pdf, render_png, write_atomically

if TYPE_CHECKING:
    import pandas as pd

Made = TypeVar("Made")
DRAW_WITH = ("matplotlib", "numpy", "pandas", "pillow")  # other versions of these may draw otherwise
DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Rendered:
    """A picture as files; `width` in inches says how large its text was meant to be, `paper` is the paper's number."""

    png: bytes
    pdf: bytes
    width: float
    caption: str
    alt: str
    paper: str = ""

    @classmethod
    def of(cls, picture: Picture) -> Rendered:
        figure = picture.figure
        png = render_png(figure)
        figure.set_layout_engine("none")  # as the PNG has it: to lay it out again would cost half of the PDF's time
        width = float(figure.get_figwidth())
        return cls(png, render_pdf(figure), width, picture.caption, picture.alt, picture.paper)


@dataclass(frozen=True)
class Shown:
    """How an experiment looks, and notes on what cannot be shown; `key` stands for what it was made from."""

    pictures: dict[str, Rendered]
    tables: dict[str, Table]
    notes: list[str]
    key: str = ""


def show(name: str, results: Results) -> tuple[str, Shown]:
    """What there is to see of an experiment; a figure that cannot be drawn, for want of cells say, is a note."""
    experiment, notes = EXPERIMENTS[name], []
    pictures: dict[str, Rendered] = {}
    tables: dict[str, Table] = {}
    if len(results.frame):
        drawn = or_note(lambda: experiment.draw(results), {}, "The figures could not be drawn", notes)
        for key, picture in drawn.items():
            rendered = or_note(lambda picture=picture: Rendered.of(picture), None, f"No figure “{key}”", notes)
            pictures |= {key: rendered} if rendered else {}
        tables = or_note(lambda: experiment.tables(results), {}, "The tables could not be made", notes)
    return name, Shown(pictures, {key: table for key, table in tables.items() if len(table.frame)}, notes)


def or_note(make: Callable[[], Made], otherwise: Made, what: str, notes: list[str]) -> Made:
    """One part that fails must not take the others with it."""
    try:
        return make()
    except Exception as error:
        notes.append(f"{what}: {type(error).__name__}: {' '.join(str(error).split())}")
        return otherwise


def file_name(experiment: str, key: str) -> str:
    """Under which name a figure or a table is saved, without its kind."""
    return re.sub(r"[^\w.-]+", "-", f"{experiment}-{key}")


# what was drawn before


def drawing_keys(folder: Path, results: dict[str, Results]) -> dict[str, str]:
    """For each experiment a key for all that its drawings depend on: rows, arrays, configuration, code, versions."""
    code = _code()
    return {name: _digest([*code, *_material(folder, one)]) for name, one in results.items()}


def _code() -> list[str]:
    """Every source file of the package, since an experiment may draw with any of them, and what draws."""
    root = Path(str(files("revealed")))
    sources = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.py"))}
    digests = [f"{name} {sha256(path.read_bytes()).hexdigest()}" for name, path in sources.items()]
    return [platform.python_version(), *(_version(name) for name in DRAW_WITH), *digests]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _material(folder: Path, results: Results) -> Iterator[str]:
    """The configuration, with its numbers of seeds, the rows, and the checksums of the arrays that go with them."""
    yield json.dumps(asdict(results.config), sort_keys=True, default=str)
    for frame in (results.frame, results.failed):
        yield frame.to_csv(index=False)
    if "arrays" in results.frame:
        kept = results.frame[results.frame["arrays"] == True]  # noqa: E712
        for key in kept["key"]:
            yield _checksums(folder / "arrays" / f"{key}.npz")


def _checksums(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as file:
            return " ".join(f"{one.filename} {one.CRC}" for one in file.infolist())
    except (OSError, zipfile.BadZipFile):
        return "lost"


def _digest(parts: list[str]) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def keep(folder: Path, name: str, shown: Shown) -> None:
    """Note what the files in `figures/` are, once they are there. What has notes is tried again the next time."""
    if not shown.key or shown.notes:
        return
    with suppress(RevealedError, TypeError):  # without it the report is as good: the next one takes longer
        text = json.dumps(_told(shown), default=_plain)
        whole = f"{_digest([text])}\n{text}\n"
        write_atomically(prepare_folder(folder / "drawn") / f"{name}.json", whole.encode("utf-8"))


def _told(shown: Shown) -> dict[str, Any]:
    """All of it but the files, which stand for themselves by their digests."""
    pictures = {
        key: asdict(picture) | {kind: sha256(getattr(picture, kind)).hexdigest() for kind in ("png", "pdf")}
        for key, picture in shown.pictures.items()
    }
    tables = {key: _cells(table.frame) | {"caption": table.caption} for key, table in shown.tables.items()}
    return {"key": shown.key, "pictures": pictures, "tables": tables}


def _cells(frame: pd.DataFrame) -> dict[str, Any]:
    if not all(isinstance(name, str) for name in frame.columns):
        raise TypeError("JSON has no other names than words")
    return {"columns": list(frame.columns), "rows": [list(row) for row in frame.itertuples(index=False, name=None)]}


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's own, which JSON knows."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a table's cells are words and numbers, not {type(value).__name__}")


def kept(folder: Path, name: str, key: str) -> Shown | None:
    """What was drawn under this key, if all of it is still there as it was."""
    try:
        digest, text, end = (folder / "drawn" / f"{name}.json").read_text(encoding="utf-8").split("\n")
        told = json.loads(text) if digest == _digest([text]) and not end else {}
        if told.get("key") != key:
            return None
        pictures = {one: _picture(folder, name, one, words) for one, words in told["pictures"].items()}
        return Shown(pictures, {one: _table(words) for one, words in told["tables"].items()}, [], key)
    except DAMAGED:
        return None


def _picture(folder: Path, name: str, key: str, words: dict[str, Any]) -> Rendered:
    made = {kind: (folder / "figures" / f"{file_name(name, key)}.{kind}").read_bytes() for kind in ("png", "pdf")}
    if any(sha256(content).hexdigest() != words[kind] for kind, content in made.items()):
        raise ValueError("not the file that was drawn")
    return replace(Rendered(**words), **made)


def _table(words: dict[str, Any]) -> Table:
    import pandas as pd

    return Table(pd.DataFrame(words["rows"], columns=words["columns"], dtype=object), words["caption"])
