"""Results on disk, all together or not at all: files are written beside their folder and put into place at the end.

Two runs that write into one folder leave the files of the one that ended last; a run that fails leaves what was there
before. A folder or a file that holds something else is not written to unless one insists.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.errors import CannotWrite, InvalidInput, InvalidOption
from revealed.files import followed, hidden, prepare_folder, regular, require_writable, sweep, write_atomically
from revealed.gates import require_address_space
from revealed.written import interruptible

if TYPE_CHECKING:
    import pandas as pd

CONFIG = "config.toml"
HEAD = "# To repeat this run: revealed "
LOCK = ".writing"
PATIENCE = 10.0  # seconds for another run to put its files into place, which takes it milliseconds


def claim(out: str | os.PathLike[str], ours: Iterable[str], force: bool = False) -> Path:
    """The folder for results, which need not be there yet; one that holds other things than `ours` is refused, and
    so is one that cannot be written: better now than after the work."""
    folder = Path(out)
    require_writable(folder, "--out")
    if os.path.lexists(folder):
        prepare_folder(folder, "--out")
    sweep(followed(folder))
    if CONFIG not in ours:
        refuse_fit(folder)
    for name in ours:
        regular(folder / name, "--out")
    if folder.is_dir() and not force and not _is_ours(folder, {*ours, LOCK}):
        expected, got = "a new folder, or one from an earlier run", f"{str(folder)!r}, which contains other files"
        raise InvalidOption("--out", expected, got, remedy="Choose another folder, or add --force.")
    return folder


def _is_ours(folder: Path, ours: set[str]) -> bool:
    """Whether such a run wrote it: its config.toml says so, or there is nothing else in it."""
    if (folder / CONFIG).is_file():
        return CONFIG in ours and _holds_a_fit(folder)
    return {file.name for file in folder.iterdir()} <= ours - {CONFIG}


def _holds_a_fit(folder: Path) -> bool:
    """Whether `revealed fit` or `revealed compare` wrote its config.toml."""
    config = folder / CONFIG
    return config.is_file() and config.read_text(encoding="utf-8", errors="replace").startswith(HEAD)


def refuse_fit(folder: Path) -> None:
    """A folder of another kind of results, which do not go into the folder of a fit."""
    if _holds_a_fit(folder):
        rule = f"cannot be {folder}, which holds a fit"
        raise InvalidOption.conflict("--out", rule, remedy="Choose another folder.")


@contextmanager
def placed(folder: Path, ours: Iterable[str]) -> Iterator[Path]:
    """A new folder beside this one to write into; at the end its files take their place, on a failure they go.

    What an earlier run left there (`ours`) and this one did not write goes, too.
    """
    target = followed(folder.absolute())
    made = [path for path in target.parents if not path.exists()]
    beside = hidden(target)
    prepare_folder(beside, "--out")
    try:
        with as_out(beside, folder):
            yield beside
            _put(beside, target, set(ours))
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        for path in made:
            with suppress(OSError):  # another run's files are in it by now
                path.rmdir()
        raise
    shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def as_out(beside: Path | None = None, folder: Path | None = None) -> Iterator[None]:
    """What cannot be written here is what --out names, whatever a function below calls it, and where it will be."""
    try:
        yield
    except CannotWrite as error:
        got = str(error.got) if beside is None else str(error.got).replace(str(beside), str(folder))
        raise CannotWrite("--out", error.expected, got, error.offender, error.remedy) from error
    except OSError as error:
        raise CannotWrite("--out", "a folder that can be written", error.strerror or str(error)) from error


def has_results(folder: Path | None, ours: Iterable[str]) -> bool:
    """Whether an earlier run's results are there, which will be replaced."""
    return folder is not None and any(os.path.lexists(folder / name) for name in ours)


def keep(folder: Path | None, ours: Iterable[str], write: Callable[[Path, Path], dict[str, Any]]) -> dict[str, Any]:
    """What `write(beside, folder)` says it wrote, put in place; nothing where no folder was asked for."""
    if folder is None:
        return {}
    with placed(folder, ours) as beside:
        return write(beside, folder)


def _put(beside: Path, folder: Path, ours: set[str]) -> None:
    """Into place: as a whole where there is nothing yet, else file by file, the config last."""
    if not folder.exists():
        with suppress(OSError):  # another run was quicker
            os.rename(beside, folder)
            return
    with _lock(folder):
        if (folder / CONFIG).is_file() and _is_ours(folder, ours):
            for name in ours - {file.name for file in beside.iterdir()}:
                _remove(folder / name)
        if CONFIG in ours:
            _remove(regular(folder / CONFIG))  # without it a folder is not complete
        for file in sorted(beside.rglob("*"), key=lambda file: (file.name == CONFIG, file)):
            target = folder / file.relative_to(beside)
            if file.is_dir():
                target.mkdir(exist_ok=True)
            elif target.is_symlink() or (os.path.lexists(target) and not target.is_file()):
                write_atomically(target, file.read_bytes())
            else:
                os.replace(file, target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One run at a time puts files into this folder; what a run that was killed left behind is not waited for long."""
    lock, end = folder / LOCK, time.monotonic() + PATIENCE
    while True:
        try:
            lock.touch(exist_ok=False)
            break
        except FileExistsError:
            if time.monotonic() > end:
                break
            time.sleep(0.02)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def require_out(out: str | os.PathLike[str] | None, force: bool) -> None:
    """Nothing is overwritten where nothing is written."""
    if force and out is None:
        raise InvalidOption.conflict("--force", "requires `--out`")


# single files


def target_file(out: str | os.PathLike[str], force: bool = False) -> Path:
    """A file that can be written, checked before the work; one that is there already is refused."""
    path = Path(out)
    require_writable(path, "--out")
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InvalidOption("--out", "a file that ends in .csv or .parquet", str(path))
    if path.suffix.lower() == ".parquet":
        require_address_space("writing Parquet needs", "Write a .csv file, or use ulimit -v unlimited.")
    if path.is_dir():
        raise InvalidInput("--out", "the path of a file", f"{path}, which is a folder")
    if path.exists() and not force:
        raise InvalidOption.conflict("--out", f"cannot be {path}, which exists", remedy="Add --force to overwrite it.")
    prepare_folder(followed(path).parent, "--out")
    return path


def write_frame(path: Path, frame: pd.DataFrame) -> Path:
    """CSV, or Parquet by the ending; numbers in CSV have all their digits."""
    with as_out():
        parquet = path.suffix.lower() in (".parquet", ".pq")
        text = "" if parquet else frame.to_csv(index=False, lineterminator="\n")
        return write_atomically(path, _as_parquet(frame, path) if parquet else text.encode("utf-8", "replace"))


def _as_parquet(frame: pd.DataFrame, path: Path) -> bytes:
    """By DuckDB, which is there where files are read; pandas would need another package for it."""
    import duckdb
    import pandas as pd

    beside = hidden(path)
    texts = [name for name in frame if pd.api.types.is_string_dtype(frame[name])]
    try:
        with interruptible(), duckdb.connect() as connection:
            connection.from_df(frame.astype(dict.fromkeys(texts, object))).write_parquet(str(beside))
        return beside.read_bytes()
    except duckdb.IOException as error:
        number = re.search(r'"errno":"(\d+)"', str(error))
        why = os.strerror(int(number[1])) if number else str(error).splitlines()[0]
        raise CannotWrite("--out", "a folder that can be written", f"{path}: {why}") from error
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> Path:
    return write_atomically(path, (text.rstrip("\n") + "\n").encode("utf-8"))
