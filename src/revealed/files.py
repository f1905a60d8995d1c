"""Files on disk: a folder that can be written, checked before the work; files that are whole or not there."""

from __future__ import annotations

import io
import os
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LONGEST_NAME, LONGEST_PATH = 255, 4095  # bytes that file systems take


def as_path(argument: str, value: Any) -> Path:
    """A path as a user gives it: text or a Path that a file system can hold."""
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(given, str) or not given:
        raise InvalidInput(argument, "a path", repr(value)[:60])
    try:
        longest = max(map(len, os.fsencode(given).split(os.fsencode(os.sep))))
    except UnicodeEncodeError as error:
        raise InvalidInput(argument, "a path that a file system can hold", repr(given)[:60]) from error
    if "\0" in given:
        raise InvalidInput(argument, "a path without NUL", repr(given)[:60])
    if longest > LONGEST_NAME or len(given) > LONGEST_PATH:
        expected = f"a path whose names have at most {LONGEST_NAME} bytes each"
        raise InvalidInput(argument, expected, f"{longest}: {given[:40]!r}…")
    return Path(given)


def prepare_folder(folder: str | os.PathLike[str], argument: str = "out") -> Path:
    """Make the folder if need be and see that files can be written there: better now than after the work.

    `argument` is the caller's name for it, in case it cannot be.
    """
    path = as_path(argument, folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise _unwritable(path, error, argument) from error
    return path


def write_atomically(path: Path, content: bytes, argument: str = "out") -> Path:
    """Write beside the target, then rename: a reader never sees half a file, and a failure leaves the old one.

    `argument` is the caller's name for the path, in case it cannot be written.
    """
    beside = path.with_name(f".{path.name[:40]}.{uuid.uuid4().hex}")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        raise _unwritable(path, error, argument) from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    return path


def append_line(path: Path, line: str) -> None:
    """Add a line that is on the disk when this returns. Where the last one was cut off, begin a new one."""
    try:
        with path.open("ab+") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            whole = file.read(1) in (b"", b"\n")
            file.write((b"" if whole else b"\n") + line.encode("utf-8") + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritable(path, error) from error


def render_png(figure: Figure, dpi: int = 150) -> bytes:
    """The figure as a PNG, the same bytes each time; the background is white, whatever the page's."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, facecolor="white", pil_kwargs={"optimize": True})
    return buffer.getvalue()


def render_pdf(figure: Figure) -> bytes:
    """The figure as a PDF, the same bytes each time, with fonts that publishers accept (TrueType, not Type 3)."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"pdf.fonttype": 42}):
        figure.savefig(buffer, format="pdf", facecolor="white", metadata={"CreationDate": None})
    return buffer.getvalue()


def _unwritable(path: Path, error: OSError, argument: str = "out") -> InvalidInput:
    got = f"{path}, which is a file" if isinstance(error, FileExistsError) else f"{path}: {error.strerror or error}"
    return InvalidInput(argument, "a folder that can be written", got)
