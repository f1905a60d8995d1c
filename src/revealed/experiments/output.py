"""Results on disk: a folder that can be written, checked before the work; files that are whole or not there."""

from __future__ import annotations

import csv
import io
import os
import tempfile
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def prepare_folder(folder: str | os.PathLike[str]) -> Path:
    """Make the folder if need be and see that files can be written there: better now than after the work."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error
    return path


def write_atomically(path: Path, content: bytes) -> Path:
    """Write beside the target, then rename: a reader never sees half a file, and a failure leaves the old one."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        beside.unlink(missing_ok=True)
    return path


def write_figure(path: Path, figure: Figure, dpi: int = 125) -> Path:
    """The figure as a PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, pil_kwargs={"optimize": True})
    return write_atomically(path, buffer.getvalue())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """A table as CSV; numbers at full precision, None as an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return write_atomically(path, text.getvalue().encode("utf-8"))


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    got = f"{path}, which is a file" if isinstance(error, FileExistsError) else f"{path}: {error.strerror or error}"
    return InvalidInput("out", "a folder that can be written", got)
