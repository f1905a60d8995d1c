"""Files of other formats are named for what they are, and the remedy works."""

import shutil
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import revealed as rv
from shell import here

PANEL = pd.DataFrame({"id": [0, 0, 0, 1, 1, 1], "t": [0, 1, 2] * 2, "s": [0, 1, 0, 1, 0, 1], "a": [0, 1, 1, 0, 0, 1]})
TABULAR = ("--reward", "tabular")
COLUMNS: dict[str, Any] = {"id": "id", "time": "t", "state": "s", "action": "a"}


def refused(path: Path) -> str:
    with pytest.raises(rv.errors.InvalidInput) as error:
        rv.Demonstrations.from_frame(path, **COLUMNS)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("p.dta", "a Stata file. Read it with pandas.read_stata"),
        ("p.xlsx", "an Excel workbook. Read it with pandas.read_excel"),
        ("p.XLS", "an Excel workbook. Read it with pandas.read_excel"),
        ("p.sav", "an SPSS file. Read it with pandas.read_spss"),
        ("p.sas7bdat", "a SAS file. Read it with pandas.read_sas"),
        ("p.feather", "a Feather (Arrow) file. Read it with pandas.read_feather"),
        ("p.arrow", "a Feather (Arrow) file. Read it with pandas.read_feather"),
        ("p.json", "a JSON file. Read it with pandas.read_json"),
        ("p.rds", "an R data file. Save it as CSV or Parquet."),
        ("p.csv.bz2", "a compressed file. Unpack it first"),
    ],
)
def test_other_formats_are_named(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8b\x00anything")
    assert f"got {name}, {what}" in refused(tmp_path / name)


def test_formats_are_known_by_their_contents(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "book.csv", "w") as book:
        book.writestr("[Content_Types].xml", "<x/>")
    assert "book.csv, an Excel workbook" in refused(tmp_path / "book.csv")
    PANEL.to_feather(tmp_path / "arrow.csv")
    assert "arrow.csv, a Feather (Arrow) file" in refused(tmp_path / "arrow.csv")
    PANEL.to_parquet(tmp_path / "table.csv")
    assert "table.csv, a Parquet file. Rename it to table.parquet." in refused(tmp_path / "table.csv")
    PANEL.to_csv(tmp_path / "rows.parquet", index=False)
    assert "If it is a CSV file, rename it to end in .csv" in refused(tmp_path / "rows.parquet")
    PANEL.to_csv(tmp_path / "small.csv.gz", index=False)
    shutil.copy(tmp_path / "small.csv.gz", tmp_path / "small.csv")
    assert "rename it to small.csv.gz" in refused(tmp_path / "small.csv")


def test_remedies_work(tmp_path: Path) -> None:
    PANEL.to_stata(tmp_path / "p.dta", write_index=False)
    frame = pd.read_stata(tmp_path / "p.dta")
    assert rv.Demonstrations.from_frame(frame, **COLUMNS).counts.sum() == len(PANEL)
    for name, write in {"p.csv.gz": "to_csv", "p.pq": "to_parquet"}.items():
        getattr(PANEL, write)(tmp_path / name, index=False)
        assert rv.Demonstrations.from_frame(tmp_path / name, **COLUMNS).counts.sum() == len(PANEL)


@pytest.mark.parametrize("first", ["ORCID", "PAR1", "ARROW1", "BZh"])
def test_columns_named_like_formats_are_columns(tmp_path: Path, first: str) -> None:
    PANEL.rename(columns={"id": first}).to_csv(tmp_path / "p.csv", index=False)
    columns: dict[str, Any] = {**COLUMNS, "id": first}
    assert rv.Demonstrations.from_frame(tmp_path / "p.csv", **columns).counts.sum() == len(PANEL)


def test_command_line_says_what_to_do_without_python(tmp_path: Path) -> None:
    PANEL.to_stata(tmp_path / "p.dta", write_index=False)
    done = here("fit", str(tmp_path / "p.dta"), "--id", "id", "--time", "t", "--state", "s", "--action", "a", *TABULAR)
    assert done.exit_code == 1
    assert "PANEL" in done.stderr
    assert "p.dta, a Stata file. Save it as CSV or Parquet." in done.stderr
    assert "pandas" not in done.stderr
