"""A run on disk: whatever part of it was cut off, lost or damaged, no more than the cells concerned are missing."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from revealed import files
from revealed.errors import InvalidInput
from revealed.experiments.cells import Cell, Measured, key_of
from revealed.experiments.obstacleworld import Config, cells
from revealed.experiments.store import Store

CONFIG = Config(size=5, trajectories=(1, 3), seeds=1)
CELLS = cells(CONFIG)[1:5]  # three of size 1, then one of size 3


def result(cell: Cell) -> Measured:
    row = {"status": "converged", "message": "π̃ settled", "seconds": 0.5, "value": cell.size / 3}
    return Measured(row, {"x": np.arange(cell.size) / 7} if cell.size == 3 else {})


def fill(folder: Path) -> Store:
    store = Store(folder)
    for cell in CELLS:
        store.add(CONFIG, cell, result(cell))
    return store


def has(folder: Path) -> list[bool]:
    store = Store(folder)
    return [store.has(CONFIG, cell) for cell in CELLS]


def npz(folder: Path) -> Path:
    return folder / "arrays" / f"{key_of(CONFIG, CELLS[3])}.npz"


def test_what_was_stored_is_found_again_here_and_by_another(tmp_path):
    here = fill(tmp_path).results(CONFIG, CELLS)
    there = Store(tmp_path).results(CONFIG, CELLS)
    pd.testing.assert_frame_equal(here.frame, there.frame)
    assert list(there.frame["value"]) == [1 / 3, 1 / 3, 1 / 3, 1.0]  # to the last bit
    assert list(there.frame["arrays"]) == [False, False, False, True]
    ((row, arrays),) = there.arrays()
    assert row.method == CELLS[3].method
    np.testing.assert_array_equal(arrays["x"], np.arange(3) / 7)


def test_results_come_in_the_order_of_the_cells_and_only_those_asked_for(tmp_path):
    store = fill(tmp_path)
    asked = [CELLS[2], CELLS[0]]
    assert list(store.results(CONFIG, asked).frame["method"]) == [cell.method for cell in asked]


def test_a_table_cut_off_at_any_byte_of_its_last_line_loses_that_cell_at_most(tmp_path):
    fill(tmp_path)
    table = (tmp_path / "table.jsonl").read_bytes()
    assert table.count(b"\n") == len(CELLS)
    last = len(table[:-1].rpartition(b"\n")[0]) + 1
    for cut in range(last, len(table)):
        (tmp_path / "table.jsonl").write_bytes(table[:cut])
        store = Store(tmp_path)
        whole = cut == len(table) - 1  # all but the line's end
        assert [store.has(CONFIG, cell) for cell in CELLS] == [True, True, True, whole]
        files.append_line(store.table, json.dumps({"key": "next", "status": "failed"}))  # what a later cell would do
        lines = store.table.read_bytes().splitlines()
        assert json.loads(lines[-1])["key"] == "next"
        assert lines[:3] == table.splitlines()[:3]


def test_a_line_of_lists_too_deep_to_read_is_passed_over(tmp_path):
    fill(tmp_path)
    files.append_line(tmp_path / "table.jsonl", "[" * 100_000)
    assert all(Store(tmp_path).has(CONFIG, cell) for cell in CELLS)


def test_a_cell_that_is_stored_after_a_cut_is_whole(tmp_path):
    store = fill(tmp_path)
    store.table.write_bytes(store.table.read_bytes()[:-20])
    again = Store(tmp_path)
    again.add(CONFIG, CELLS[3], result(CELLS[3]))
    assert has(tmp_path) == [True] * 4


JUNK = [b"\x00" * 300, b"\xff\xfe{", b"[]", b"7", b"{}", b'{"key": 3}', b'{"key": ["x"], "status": 1}']


@pytest.mark.parametrize("junk", JUNK)
def test_lines_that_are_no_rows_are_passed_over(tmp_path, junk):
    fill(tmp_path)
    table = tmp_path / "table.jsonl"
    table.write_bytes(junk + b"\n" + table.read_bytes() + b"\n\n" + junk)
    assert has(tmp_path) == [True] * 4


def test_of_several_rows_of_a_cell_the_last_one_counts(tmp_path):
    store = fill(tmp_path)
    store.add(CONFIG, CELLS[0], Measured({"status": "failed", "message": "once"}))
    assert has(tmp_path) == [False, True, True, True]
    store.add(CONFIG, CELLS[0], Measured({"status": "converged", "message": "", "value": 9.0}))
    assert Store(tmp_path).results(CONFIG, CELLS).frame["value"][0] == 9.0


# arrays


def damaged(content: bytes) -> dict[str, bytes]:
    middle = bytearray(content)
    middle[len(content) // 2] ^= 0xFF
    cuts = {f"cut at {cut}": content[:cut] for cut in range(0, len(content), 37)}
    return cuts | {"flipped": bytes(middle), "zeros": bytes(len(content)), "text": b"no arrays"}


def test_a_cell_whose_arrays_are_damaged_counts_as_missing(tmp_path):
    fill(tmp_path)
    content = npz(tmp_path).read_bytes()
    for what, bad in damaged(content).items():
        npz(tmp_path).write_bytes(bad)
        assert has(tmp_path) == [True, True, True, False], what
        assert len(Store(tmp_path).results(CONFIG, CELLS).frame) == 3
    npz(tmp_path).write_bytes(content)
    assert has(tmp_path) == [True] * 4


def test_a_cell_whose_arrays_are_lost_counts_as_missing_until_it_is_computed_again(tmp_path):
    fill(tmp_path)
    npz(tmp_path).unlink()
    assert has(tmp_path) == [True, True, True, False]
    Store(tmp_path).add(CONFIG, CELLS[3], result(CELLS[3]))
    assert has(tmp_path) == [True] * 4


def test_arrays_are_there_before_their_row_is(tmp_path, monkeypatch):
    seen = []

    def append(path: Path, line: str) -> None:
        seen.append((json.loads(line)["arrays"], zipfile.is_zipfile(npz(tmp_path))))

    monkeypatch.setattr("revealed.experiments.store.append_line", append)
    fill(tmp_path)
    assert seen == [(False, False)] * 3 + [(True, True)]


# rows


def test_numbers_of_numpy_become_plain_ones(tmp_path):
    row = {"status": "converged", "a": np.float64(0.1), "b": np.int64(3), "c": np.bool_(True), "d": np.inf, "e": np.nan}
    Store(tmp_path).add(CONFIG, CELLS[0], Measured(dict(row)))
    found = Store(tmp_path).results(CONFIG, CELLS).frame.iloc[0]
    assert (found["a"], found["b"], bool(found["c"]), found["d"]) == (0.1, 3, True, np.inf)
    assert np.isnan(found["e"])


def test_a_row_that_holds_an_array_is_refused(tmp_path):
    with pytest.raises(TypeError, match="not ndarray"):
        Store(tmp_path).add(CONFIG, CELLS[0], Measured({"status": "converged", "x": np.zeros(2)}))
    assert has(tmp_path) == [False] * 4


def test_an_empty_folder_has_empty_results_that_can_be_asked(tmp_path):
    results = Store(tmp_path).results(CONFIG, CELLS)
    assert len(results.frame) == len(results.failed) == 0
    assert len(results.where(experiment="obstacleworld", size=3)) == 0
    assert list(results.arrays(seed=0)) == []


def test_the_table_for_spreadsheets_begins_with_the_place(tmp_path):
    store = fill(tmp_path)
    path = store.write_csv(store.results(CONFIG, CELLS).frame)
    frame = pd.read_csv(path)
    assert list(frame.columns[:6]) == ["experiment", "setting", "method", "variant", "size", "seed"]
    assert len(frame) == 4
    assert frame["value"][0] == 1 / 3


# folders


@pytest.mark.parametrize("missing", ["run.json", "table.jsonl"])
def test_a_folder_without_a_run_is_a_clear_error(tmp_path, missing):
    fill(tmp_path).write_run({"scale": "quick"})
    assert Store.existing(tmp_path).read_run() == {"scale": "quick"}
    (tmp_path / missing).unlink()
    with pytest.raises(InvalidInput, match=r"written by `revealed reproduce`"):
        Store.existing(tmp_path)


def test_a_folder_that_is_only_looked_for_is_not_made(tmp_path):
    with pytest.raises(InvalidInput, match="nowhere"):
        Store.existing(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ['{"scale": ', "[" * 100_000])
def test_a_note_that_cannot_be_read_is_a_clear_error(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(InvalidInput, match=r"run\.json.*finished tasks are kept"):
        Store(tmp_path).read_run()


def test_a_disk_that_is_full_is_a_clear_error(tmp_path, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    store = fill(tmp_path)
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(InvalidInput, match=r"table\.jsonl: No space left"):
        store.add(CONFIG, CELLS[0], result(CELLS[0]))


def test_what_was_discarded_is_gone_for_later_runs_too(tmp_path):
    store = fill(tmp_path)
    store.discard(CONFIG, CELLS[1])
    assert has(tmp_path) == [True, False, True, True]
    assert len(Store(tmp_path).results(CONFIG, CELLS).frame) == 3
    store.add(CONFIG, CELLS[1], result(CELLS[1]))
    assert has(tmp_path) == [True] * 4


def test_a_frame_without_rows_has_the_columns_that_rows_have(tmp_path):
    empty = Store(tmp_path).results(CONFIG, CELLS).frame
    assert len(empty) == 0
    assert {"method", "size", "seed", "epic", "evd", "settled", "seconds"} <= set(empty.columns)
