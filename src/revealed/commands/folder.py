"""The folder of a fit: what is written there, and how it is found again.

Every file is there whole or not at all. A folder that holds other things is not written to unless one insists.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.commands.tables import Names, history_frame, params_frame, policy_frame, states_frame
from revealed.errors import InvalidInput, InvalidOption, RevealedError
from revealed.files import prepare_folder, write_atomically
from revealed.fit import Fit

if TYPE_CHECKING:
    import pandas as pd

    from revealed.recipe import Recipe

CONFIG = "config.toml"
ZIP = "fit.zip"


def claim(out: str | os.PathLike[str], force: bool = False) -> Path:
    """The folder, made if need be, before the work; one that holds other things is refused."""
    folder = Path(out)
    if folder.is_dir() and not force and any(folder.iterdir()) and not (folder / CONFIG).is_file():
        raise occupied(folder)
    return prepare_folder(folder, "--out")


def occupied(folder: Path) -> InvalidOption:
    expected = "a new or empty folder, or one that this command wrote"
    return InvalidOption("--out", expected, f"{folder}, which holds other things", remedy="Or add --force.")


def write_frame(path: Path, frame: pd.DataFrame) -> Path:
    """CSV, or Parquet by the ending; numbers in CSV have all their digits."""
    import io

    if path.suffix.lower() in (".parquet", ".pq"):
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        return write_atomically(path, buffer.getvalue())
    return write_atomically(path, frame.to_csv(index=False, lineterminator="\n").encode("utf-8"))


def write_text(path: Path, text: str) -> Path:
    return write_atomically(path, (text.rstrip("\n") + "\n").encode("utf-8"))


def write_fit(fit: Fit, folder: Path, recipe: Recipe, **changes: Any) -> dict[str, str]:
    """Everything that is known of a fit; what each file is called, by what it holds. `changes` are what the fit's own
    options are beside the recipe's."""
    from revealed.fit_report import write_fit_report

    names = names_of(recipe)
    write_frame(folder / "params.csv", params_frame(fit))
    write_frame(folder / "policy.csv", policy_frame(fit, names))
    write_frame(folder / "states.csv", states_frame(fit, names))
    write_frame(folder / "history.csv", history_frame(fit))
    write_text(folder / "summary.txt", str(fit.summary()))
    fit.save(folder / ZIP)
    places = recipe.places
    flat = places if places is not None and places.shape[1] == 2 and recipe.coordinates else None
    write_fit_report(fit, folder / "report.html", coordinates=flat)
    write_config(folder, recipe, **changes)  # the last: a folder with it is complete
    written = ("params.csv", "policy.csv", "states.csv", "history.csv", "summary.txt", ZIP, "report.html", CONFIG)
    return {Path(name).stem: str(folder / name) for name in written}


def write_config(folder: Path, recipe: Recipe, command: str = "fit", **changes: Any) -> Path:
    """Every option but where the results go: a run that is repeated, with changes maybe, must not go over the first."""
    from dataclasses import replace

    head = f"# To repeat this run: revealed {command} --config {CONFIG} --out DIR\n# Paths are relative to this file.\n"
    return write_text(folder / CONFIG, head + replace(recipe, out=None, **changes).to_toml(folder))


def names_of(recipe: Recipe) -> Names:
    return Names(**{name: getattr(recipe, name) for name in Names.__dataclass_fields__})


def open_fit(path: str | os.PathLike[str]) -> tuple[Fit, Names]:
    """A saved fit, a folder or its zip, and what the columns of its data were called (plain names if nobody tells)."""
    from revealed.loading import load

    fit = load(path)
    return fit, _names_beside(Path(path))


def _names_beside(path: Path) -> Names:
    from revealed.description import Description, read_toml

    file = (path if path.is_dir() else path.parent) / CONFIG
    if not file.is_file():
        return Names()
    try:
        found: Mapping[str, Any] = read_toml(Description, file)
    except RevealedError:
        return Names()
    return Names(**{name: found[name] for name in Names.__dataclass_fields__ if name in found})


def target_file(out: str | os.PathLike[str], endings: tuple[str, ...] = (".csv", ".parquet")) -> Path:
    """A file that can be written, checked before the work."""
    path = Path(out)
    if path.suffix.lower() not in endings:
        raise InvalidOption("--out", f"a file that ends in {' or '.join(endings)}", str(path))
    if path.is_dir():
        raise InvalidInput("--out", "a file", f"{path}, which is a folder")
    prepare_folder(path.parent, "--out")
    return path
