"""A zip of JSON and NumPy arrays, whole or refused: the container of saved fits.

`revealed.json` names the format, its version and the SHA-256 of every other member; `fit.json` is the document; each
array is a `.npy` file of its own. Nothing is ever pickled, nothing is extracted to disk, and the same content gives the
same bytes. Any program that reads zip, JSON and NumPy's format can read it. Read back, a file is one archive from its
first byte to its last: what stands before, between or after its members, a second archive included, is damage.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from revealed.checks import is_count
from revealed.errors import UnreadableFit
from revealed.files import write_atomically
from revealed.voices import either

Arrays = dict[str, npt.NDArray[Any]]

FORMAT = "revealed fit"
VERSION = 1
MANIFEST, DOCUMENT = "revealed.json", "fit.json"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can tell: no clock in the bytes
MOST_RATIO = 100  # by which a file may grow when it is read: none of a few bytes can fill the memory
ROOM = 1 << 24  # bytes up to which it does not matter by how much
LEVEL = 1  # of compression: several times faster than the usual 6, and hardly larger
SAVE_ANEW = "Copy it again, or save the fit again."
KINDS = "biufcMmSU"  # of NumPy's types: no objects, which would be pickled, and no records

# the last record of a zip, without a comment; of large files the two records before it, whose numbers are wider (zip64)
END, END64, LOCATOR = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
LOCAL = struct.Struct("<4s5H3L2H")  # what stands before each member

# what zipfile, zlib and NumPy make of damaged bytes (NotImplementedError is a RuntimeError, UnicodeError a ValueError)
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, MemoryError),
    *(ValueError, KeyError, TypeError, RuntimeError, OverflowError),
)


def write_archive(path: Path, document: dict[str, Any], arrays: Arrays) -> Path:
    """Write the document and its arrays to `path`; a file that was there is replaced whole, or not at all."""
    from revealed import __version__

    members = {DOCUMENT: _as_json(document)} | {f"{name}.npy": _as_npy(array) for name, array in arrays.items()}
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    manifest = {"format": FORMAT, "version": VERSION, "library": __version__, "members": sums}
    members = {MANIFEST: _as_json(manifest)} | members
    content = _pack(members, zipfile.ZIP_DEFLATED)
    if is_bomb(sum(map(len, members.values())), len(content)):  # no reader would open it
        content = _pack(members, zipfile.ZIP_STORED)
    return write_atomically(path, content, "path")


def is_bomb(size: int, packed: int) -> bool:
    """Whether so many bytes from so few are beyond what a fit can be."""
    return size > max(ROOM, MOST_RATIO * packed)


def _as_json(value: Any) -> bytes:
    """ASCII, so that text of any kind survives; NaN is not JSON and has been spelt otherwise."""
    return json.dumps(value, allow_nan=False).encode("ascii")


def _as_npy(array: npt.NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _pack(members: dict[str, bytes], method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system = 3  # else it depends on the machine
            info.external_attr = 0o644 << 16
            archive.writestr(info, content, method, LEVEL)
    return buffer.getvalue()


def read_archive(path: Path) -> tuple[dict[str, Any], Arrays]:
    """The document and the arrays, every one checked against its sum; `UnreadableFit` for anything else."""
    with _open(path) as archive:
        _require_one_archive(archive, path)
        _require_moderate(archive, path)
        sums = _read_manifest(archive, path)
        missing, unknown = set(sums) - set(archive.namelist()), set(archive.namelist()) - set(sums) - {MANIFEST}
        if missing or DOCUMENT not in sums:
            raise unreadable(path, f"which lacks {min(missing, default=DOCUMENT)}")
        document: dict[str, Any] = {}
        arrays: Arrays = {}
        for name, expected in sums.items():
            content = _read(archive, name, path)
            if hashlib.sha256(content).hexdigest() != expected:
                raise damaged(path, f"the checksum of {name} does not match")
            if name == DOCUMENT:
                document = _parse(content, name, path)
            else:
                arrays[name.removesuffix(".npy")] = _load(content, name, path)
    if unknown:
        raise damaged(path, f"{min(unknown)} is not in its list of members")
    return document, arrays


def unreadable(path: Path, why: str, remedy: str | None = SAVE_ANEW) -> UnreadableFit:
    expected = either("a file written by fit.save()", "the folder or the fit.zip written by revealed fit")
    return UnreadableFit("path", expected, f"{path}, {why}", remedy=remedy)


def damaged(path: Path, why: object) -> UnreadableFit:
    return unreadable(path, f"which is truncated or damaged: {why or 'it cannot be read'}")


def _open(path: Path) -> zipfile.ZipFile:
    try:
        with path.open("rb") as file:
            is_zip = file.read(4) == b"PK\x03\x04"
        if not is_zip:
            raise unreadable(path, "which is not a zip file", remedy=None)
        return zipfile.ZipFile(path)
    except UnreadableFit:
        raise
    except OSError as error:
        raise unreadable(path, f"which cannot be opened: {error.strerror or error}", remedy=None) from error
    except DAMAGE as error:
        raise damaged(path, error) from error


def _require_one_archive(archive: zipfile.ZipFile, path: Path) -> None:
    """The members stand one after another from the first byte on, then the directory, then the end of the file.

    Readers look for the directory from the end, so that a second archive that is appended would be read instead of the
    first, and one put before would pass for part of it."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, io.SEEK_END)
            begin, end = _directory(file, size)
            at = 0
            for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
                if info.header_offset != at:
                    raise damaged(path, f"it has extra bytes before {info.filename}")
                at += _length(file, at) + info.compress_size
    except UnreadableFit:
        raise
    except DAMAGE as error:
        raise damaged(path, error) from error
    if at != begin or end != size or len(set(archive.namelist())) != len(archive.namelist()):
        raise damaged(path, "it is not a single archive")


def _directory(file: BinaryIO, size: int) -> tuple[int, int]:
    """Where the directory begins, and where the file ends if the last record is where it must be."""
    file.seek(max(0, size - END.size))
    signature, *_, length, begin, comment = END.unpack(file.read(END.size))
    end = size - END.size
    if signature != b"PK\x05\x06" or comment:
        raise ValueError("its end record is misplaced")
    before = max(0, end - LOCATOR.size - END64.size)
    file.seek(before)
    wide, locator = END64.unpack(file.read(END64.size)), file.read(LOCATOR.size)
    if locator.startswith(b"PK\x06\x07"):
        (*_, length, begin), end = wide, before
    return begin, size if begin + length == end else -1


def _length(file: BinaryIO, at: int) -> int:
    """Of what stands before a member; the library writes none whose size follows its data."""
    file.seek(at)
    signature, _, flags, *_, name, extra = LOCAL.unpack(file.read(LOCAL.size))
    if signature != b"PK\x03\x04" or flags & 0x8:
        raise ValueError(f"there is no member at byte {at}")
    return LOCAL.size + name + extra


def _require_moderate(archive: zipfile.ZipFile, path: Path) -> None:
    """Before anything is unpacked: a member yields no more bytes than it claims."""
    claimed, packed = sum(info.file_size for info in archive.infolist()), path.stat().st_size
    if is_bomb(claimed, packed):
        raise damaged(path, f"it claims to hold {claimed} bytes in {packed}")


def _read_manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, str]:
    """The checksums of the other members, of a file that is ours and not newer than we are."""
    if MANIFEST not in archive.namelist():
        raise unreadable(path, "a zip file that is not a saved fit", remedy=None)
    manifest = _parse(_read(archive, MANIFEST, path), MANIFEST, path)
    if manifest.get("format") != FORMAT or not is_count(manifest.get("version")):
        raise unreadable(path, "a zip file that is not a saved fit", remedy=None)
    if manifest["version"] > VERSION:
        why = f"in format {manifest['version']} of revealed {manifest.get('library')}; this version reads up to "
        raise unreadable(path, f"{why}{VERSION}", remedy="Install a newer revealed: pip install -U revealed.")
    sums = manifest.get("members")
    if not isinstance(sums, dict):
        raise damaged(path, "its list of members is missing")
    return sums


def _read(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    try:
        info = archive.getinfo(name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise damaged(path, f"{name} uses an unsupported compression")
        return archive.read(info)
    except UnreadableFit:
        raise
    except DAMAGE as error:
        raise damaged(path, error) from error


def _parse(content: bytes, name: str, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"{name}: {error}") from error
    if not isinstance(found, dict):
        raise damaged(path, f"{name} holds no document")
    return found


def _load(content: bytes, name: str, path: Path) -> npt.NDArray[Any]:
    try:
        _require_whole(content)
        return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # NumPy parses the header as Python and raises whatever that raises
        raise damaged(path, f"{name}: {error}") from error


def _require_whole(content: bytes) -> None:
    """The array has as many bytes as its header says, before room is made for so many."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version} of NumPy's format is not supported")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.kind not in KINDS or dtype.hasobject:
        raise ValueError(f"it holds {dtype}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"it has {len(content) - file.tell()} bytes for the shape {shape}")


_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
