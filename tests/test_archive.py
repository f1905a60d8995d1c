"""The container of saved fits: what was written comes back bit for bit, or the file is refused, and told why."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from revealed import archive, files
from revealed.archive import read_archive, write_archive
from revealed.errors import InvalidInput, RevealedError, UnreadableFit

DOCUMENT: dict[str, Any] = {"words": ["π̃", "<b>", "\ud800"], "numbers": [1, 2.5, 10**30, None, True]}
ARRAYS = {"theta": np.array([0.1, -np.inf, np.nan]), "mdp/mask": np.array([[True], [False]])}


@pytest.fixture
def file(tmp_path) -> Path:
    return write_archive(tmp_path / "a.zip", DOCUMENT, ARRAYS)


def rewritten(file: Path, **changes: Any) -> Path:
    """The same zip with some members replaced (None: left out), the manifest's sums made anew, as a forger would."""
    with zipfile.ZipFile(file) as old:
        members = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(members[archive.MANIFEST]) | changes.pop("manifest", {})
    for name, content in changes.items():
        name = name.replace("__", "/") + ".npy"
        members[name] = content
        manifest["members"][name] = hashlib.sha256(content or b"").hexdigest()
    members[archive.MANIFEST] = json.dumps(manifest).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            if content is not None:
                new.writestr(name, content)
    return file


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def assert_same(found: tuple[Any, Any], document: Any = DOCUMENT, arrays: Any = ARRAYS) -> None:
    assert found[0] == document
    assert list(found[1]) == list(arrays)
    for name, array in arrays.items():
        assert found[1][name].dtype == array.dtype
        assert found[1][name].shape == array.shape
        assert found[1][name].tobytes() == array.tobytes()


def test_what_was_written_is_read(file):
    assert_same(read_archive(file))


@given(
    array=hnp.arrays(
        st.sampled_from(["f8", "f4", "i8", "i4", "u2", "?", "M8[D]", "U3"]), hnp.array_shapes(min_side=0, max_dims=3)
    )
)
def test_arrays_of_every_kind_come_back_bit_for_bit(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("arrays") / "a.zip"
    assert_same(read_archive(write_archive(path, {}, {"x": array})), {}, {"x": array})


def test_the_order_in_memory_is_kept(tmp_path):
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    found = read_archive(write_archive(tmp_path / "a.zip", {}, {"x": x}))[1]["x"]
    assert found.flags.f_contiguous
    np.testing.assert_array_equal(found, x)


def test_the_same_content_gives_the_same_bytes(file, tmp_path):
    again = write_archive(tmp_path / "b.zip", DOCUMENT, ARRAYS)
    assert again.read_bytes() == file.read_bytes()


def test_any_zip_program_can_read_it(file):
    with zipfile.ZipFile(file) as found:
        assert found.testzip() is None
        assert found.namelist() == ["revealed.json", "fit.json", "theta.npy", "mdp/mask.npy"]
        assert json.loads(found.read("revealed.json"))["version"] == 1
        assert json.loads(found.read("fit.json")) == DOCUMENT


def test_objects_are_never_written(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        write_archive(tmp_path / "a.zip", {}, {"x": np.array([{}], dtype=object)})
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_survives_a_failure_half_way(file, monkeypatch):
    before = file.read_bytes()

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", fails)
    with pytest.raises(InvalidInput, match=r"`path`.*No space left on device"):
        write_archive(file, {}, {})
    assert [(p.name, p.read_bytes()) for p in file.parent.iterdir()] == [("a.zip", before)]


# what is refused


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_a_flipped_byte_anywhere_changes_nothing_or_is_refused(file, mask):
    whole = file.read_bytes()
    refused = 0
    for i in range(len(whole)):
        file.write_bytes(whole[:i] + bytes([whole[i] ^ mask]) + whole[i + 1 :])
        try:
            assert_same(read_archive(file))
        except UnreadableFit:
            refused += 1
    assert refused > len(whole) / 2  # the rest are dates and attributes of the members


def test_a_file_that_was_cut_off_anywhere_is_refused(file):
    whole = file.read_bytes()
    for n in range(len(whole)):
        file.write_bytes(whole[:n])
        with pytest.raises(UnreadableFit):
            read_archive(file)


def test_each_reason_is_told(file, tmp_path):
    def why(content: bytes) -> str:
        (tmp_path / "x.zip").write_bytes(content)
        with pytest.raises(UnreadableFit) as told:
            read_archive(tmp_path / "x.zip")
        assert isinstance(told.value, RevealedError)
        assert str(told.value).startswith("`path`: expected a file written by fit.save(); got ")
        return str(told.value)

    whole = file.read_bytes()
    place = whole.index(b"\x93NUMPY") if b"\x93NUMPY" in whole else whole.index(b"theta.npy") + 20
    foreign = io.BytesIO()
    with zipfile.ZipFile(foreign, "w") as other:
        other.writestr("letter.txt", "dear")
    assert "which is not a zip file" in why(b"id,time\n1,2\n")
    assert "which is not a zip file" in why(b"")
    assert "a zip file that is not a saved fit" in why(foreign.getvalue())
    assert "truncated or damaged" in why(whole[:-30])
    assert "truncated or damaged" in why(whole[:place] + b"\0" + whole[place + 1 :])


def test_a_path_that_cannot_be_opened_is_told(tmp_path):
    with pytest.raises(UnreadableFit, match="cannot be opened: Is a directory"):
        read_archive(tmp_path)


def test_a_newer_format_is_refused_with_its_remedy(file):
    rewritten(file, manifest={"version": 2, "library": "9.1"})
    with pytest.raises(
        UnreadableFit, match=r"in format 2 of revealed 9\.1; this version reads up to 1.*pip install -U"
    ):
        read_archive(file)


@pytest.mark.parametrize("manifest", [{"format": "another"}, {"version": "1"}, {"version": 0}, {"version": True}])
def test_a_manifest_of_something_else_is_refused(file, manifest):
    with pytest.raises(UnreadableFit, match="a zip file that is not a saved fit"):
        read_archive(rewritten(file, manifest=manifest))


def test_a_missing_member_is_named(file):
    with pytest.raises(UnreadableFit, match=r"lacks mdp/mask\.npy"):
        read_archive(rewritten(file, mdp__mask=None))
    with pytest.raises(UnreadableFit, match="list of members is missing"):
        read_archive(rewritten(file, manifest={"members": None}))
    with pytest.raises(UnreadableFit, match=r"lacks fit\.json"):
        read_archive(rewritten(file, manifest={"members": {}}))


def test_a_member_that_was_exchanged_is_named(file):
    sums = dict.fromkeys(("fit.json", "theta.npy"), "0" * 64)
    with pytest.raises(UnreadableFit, match=r"the checksum of fit\.json does not match"):
        read_archive(rewritten(file, manifest={"members": sums}))


def test_pickles_are_refused_even_with_the_right_checksum(file):
    harm = npy(np.array([{"a": 1}], dtype=object), allow_pickle=True)
    for content in (harm, b"\x80\x04N.", b"PK\x05\x06" + bytes(18), b"", npy(np.ones(3))[:-8]):
        with pytest.raises(UnreadableFit, match=r"theta\.npy"):
            read_archive(rewritten(file, theta=content))


@pytest.mark.parametrize("shape", ["(3000000000000000,)", "(-3,)", "(4,)", "3", "(3,", "__import__('os')"])
def test_an_array_that_claims_what_it_has_not_is_refused(file, shape):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + np.ones(3).tobytes()
    with pytest.raises(UnreadableFit, match=r"theta\.npy"):
        read_archive(rewritten(file, theta=content))


def test_a_bomb_is_refused_and_masks_that_are_all_true_are_not(file, tmp_path):
    with pytest.raises(UnreadableFit, match=r"it claims to hold 24000\d+ bytes in"):
        read_archive(rewritten(file, theta=npy(np.zeros(3_000_000))))
    arrays = {"mask": np.ones(20_000_000, dtype=bool)}
    assert_same(read_archive(write_archive(tmp_path / "b.zip", {}, arrays)), {}, arrays)


def test_a_file_is_one_archive_from_its_first_byte_to_its_last(file, tmp_path):
    one, two = file.read_bytes(), write_archive(tmp_path / "b.zip", {"another": 1}, {"theta": np.ones(2)}).read_bytes()
    end = one.rindex(b"PK\x05\x06")
    commented = one[:-2] + b"\x03\x00abc"
    shifted = (
        one[: end + 16] + (int.from_bytes(one[end + 16 : end + 20], "little") + 9).to_bytes(4, "little") + one[-2:]
    )
    other = {
        "a second archive": one + two,
        "a second archive before": two + one,
        "the same twice": one + one,
        "a second end": one + one[end:],
        "bytes before": b"PK\x03\x04 none" + one,
        "bytes after": one + b"\0",
        "a comment": commented,
        "bytes before the directory": one[:end] + b"123456789" + one[end:],
        "a directory elsewhere": shifted,
    }
    for what, content in other.items():
        with pytest.raises(UnreadableFit, match=r"truncated or damaged|not a zip file"):
            read_archive(_written(file, content))
        assert what
    read_archive(_written(file, one))


def _written(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


def test_members_that_overlap_or_stand_twice_are_refused(file):
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("theta.npy", npy(np.zeros(3)))
    with pytest.raises(UnreadableFit, match="not a single archive"):
        read_archive(file)


def test_a_member_that_nobody_lists_is_refused(file):
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("../../etc/passwd", "x")
    with pytest.raises(UnreadableFit, match="not in its list of members"):
        read_archive(file)


def test_archives_beyond_four_gigabytes_keep_their_numbers_elsewhere(file, monkeypatch):
    """As zipfile writes them then; its limit is lowered, since such a file would be large."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
    write_archive(file, DOCUMENT, ARRAYS)
    assert b"PK\x06\x06" in file.read_bytes()
    assert_same(read_archive(file))
    file.write_bytes(file.read_bytes() + file.read_bytes())
    with pytest.raises(UnreadableFit, match="damaged"):
        read_archive(file)
