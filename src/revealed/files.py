"""Files on disk: a folder that can be written, checked before the work; files that are whole or not there.

A file is written next to its target under a hidden name that names its process; what a killed process left behind is
removed when the same target is written again. Links are followed; devices, pipes and sockets are never replaced.
"""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
import stat
import tempfile
import uuid
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.errors import CannotWrite, InvalidInput
from revealed.voices import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LONGEST, DEEPEST = 255, 4096  # bytes of a name and of a path, where the system does not say
SHOWN = 80  # bytes of the name that a hidden one begins with, so that it is not too long itself
ROOM = 200  # bytes beyond a folder's path for what is written there


def as_path(argument: str, value: Any) -> Path:
    """A path as a user gives it: text or a Path that a file system can hold."""
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(given, str) or not given:
        raise InvalidInput(argument, "a path", shown(value))
    try:
        encoded = os.fsencode(given)
    except UnicodeEncodeError as error:
        raise InvalidInput(argument, "a valid path", shown(given)) from error
    if "\0" in given:
        raise InvalidInput(argument, "a path without NUL characters", shown(given))
    if len(encoded) > DEEPEST:
        raise InvalidInput(argument, f"a path of at most {DEEPEST} bytes", f"{len(encoded)}: {given[:40]!r}…")
    longest = max(map(len, encoded.split(os.fsencode(os.sep))))
    if longest > LONGEST:
        expected = f"a path whose names have at most {LONGEST} bytes each"
        raise InvalidInput(argument, expected, f"{longest}: {given[:40]!r}…")
    return Path(given)


def prepare_folder(folder: str | os.PathLike[str], argument: str = "out") -> Path:
    """Make the folder if need be and see that files can be written there: better now than after the work.

    `argument` is the caller's name for it, in case it cannot be.
    """
    path = as_path(argument, folder)
    try:
        followed(path).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:  # a path with a NUL in it is a ValueError
        raise _unwritable(path, error, argument) from error
    return path


def followed(path: Path) -> Path:
    """Where a symbolic link leads, whether or not anything is there yet; any other path as it is."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def regular(path: Path, argument: str = "out") -> Path:
    """The file that writing to this path makes or replaces: a link is followed, so that it stays a link. What is there
    and neither a file nor a folder (a device, a pipe, a socket) is refused: a file in its place would destroy it."""
    target = followed(path)
    if os.path.lexists(target) and not target.is_file() and not target.is_dir():
        expected = "a regular file, or a path where there is nothing yet"
        what = next((word for is_one, word in _SPECIAL if is_one(os.lstat(target).st_mode)), "no regular file")
        raise CannotWrite(argument, expected, f"{path}, which is {what}")
    return target


_SPECIAL = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISLNK, "a link to itself"),
)


def require_writable(path: Path, argument: str = "out") -> None:
    """See that this folder or file could be made and written, without making it."""
    try:
        path = regular(path, argument)
        there = next(one for one in (path, *path.absolute().parents) if os.path.lexists(one))
        longest, deepest = (_limit(there, name) for name in ("PC_NAME_MAX", "PC_PATH_MAX"))
        absolute = path.absolute()
        too_long = next((part for part in absolute.parts if len(os.fsencode(part)) > longest), None)
        if too_long is not None:
            got = f"a name of {len(os.fsencode(too_long))} bytes ({too_long[:20]}…)"
            raise CannotWrite(argument, f"names of at most {longest} bytes", got)
        if len(os.fsencode(absolute)) + ROOM > deepest or "\0" in str(path):
            raise CannotWrite(argument, "a path that can be written", f"{str(path)[:60]!r}…")
        if there.is_dir() or there != path:
            prepare_folder(there, argument)
    except CannotWrite:
        raise
    except (OSError, ValueError) as error:
        raise _unwritable(path, error, argument) from error


def _limit(folder: Path, name: str) -> int:
    with suppress(OSError, ValueError, AttributeError):
        return os.pathconf(folder, name)
    return LONGEST if name == "PC_NAME_MAX" else DEEPEST


def write_atomically(path: Path, content: bytes, argument: str = "out") -> Path:
    """Write beside the target, then rename: a reader never sees half a file, and a failure leaves the old one.

    `argument` is the caller's name for the path, in case it cannot be written.
    """
    try:
        target = regular(path, argument)
        sweep(target)
        beside = hidden(target)
        try:
            beside.write_bytes(content)
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)
    except CannotWrite:
        raise
    except (OSError, ValueError) as error:
        raise _unwritable(path, error, argument) from error
    return path


def hidden(path: Path) -> Path:
    """A new name beside a file or folder for what will take its place: .NAME.UNIQUE.MACHINE.PROCESS."""
    return path.with_name(f"{_stem(path)}{uuid.uuid4().hex}.{_machine()}.{os.getpid()}")


def sweep(path: Path) -> None:
    """Remove what was to take this place and belongs to a process of this machine that is gone."""
    pattern = re.compile(re.escape(_stem(path)) + rf"[0-9a-f]{{32}}\.{_machine()}\.(\d+)")
    with suppress(OSError):
        for one in os.scandir(path.absolute().parent):
            found = pattern.fullmatch(one.name)
            if found is not None and not _is_alive(int(found[1])):
                shutil.rmtree(one.path, ignore_errors=True) if one.is_dir(follow_symlinks=False) else os.unlink(
                    one.path
                )


def _stem(path: Path) -> str:
    return f".{os.fsencode(path.absolute().name)[:SHOWN].decode('utf-8', 'ignore')}."


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _is_alive(process: int) -> bool:
    """Whether the process exists; one that may not be signalled does."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def append_line(path: Path, line: str) -> None:
    """Add a line that is on the disk when this returns. Where the last one was cut off, begin a new one."""
    try:
        with regular(path).open("ab+") as file:
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


def _unwritable(path: Path, error: Exception, argument: str = "out") -> CannotWrite:
    why = error.strerror if isinstance(error, OSError) else None
    got = f"{path}, which is a file" if isinstance(error, FileExistsError) else f"{path}: {why or error}"
    return CannotWrite(argument, "a folder that can be written", shown(got) if "\0" in got else got)
