"""`revealed reproduce rust`: what it prints and writes is the published table, and every method ends at the MLE."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len
from scipy.stats import chi2
from typer.testing import CliRunner

from revealed import cli
from revealed.datasets import bus_files
from revealed.experiments import rust, rust_tables
from revealed.experiments.rust import LIKELIHOOD, SAMPLES, name_groups

TABLES = ("estimates", "methods", "tests")


def revealed(*arguments: object, **environment: str | None) -> Any:
    """The command in this process, eighty columns wide; an exception that it lets through is ours."""
    settings = {"COLUMNS": "80", "REVEALED_DATA": None} | environment
    done = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], env=settings)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def one_line(done: Any) -> str:
    (line,) = done.stderr.strip().splitlines()
    assert done.exit_code == 1
    assert line.startswith("revealed: ")
    return line


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """The folder and what was said, from the shipped counts."""
    folder = tmp_path_factory.mktemp("rust") / "made on the way"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bus_files, "_user_cache", lambda: folder / "nothing here")
        return folder, revealed("reproduce", "rust", "--out", folder)


@pytest.fixture(scope="module")
def tables(reproduced) -> dict[str, pd.DataFrame]:
    return {name: pd.read_csv(reproduced[0] / f"rust_{name}.csv") for name in TABLES}


def test_it_says_what_agrees_in_eighty_columns(reproduced):
    folder, done = reproduced
    assert (done.exit_code, done.stderr) == (0, "")
    *lines, last = done.stdout.splitlines()
    assert all(cell_len(line) <= 80 for line in lines)
    assert last == f"Wrote {', '.join(f'rust_{t}.{end}' for t in TABLES for end in ('csv', 'tex'))} into {folder}."
    agree = [line.split() for line in lines if line.strip().startswith("agree")]
    assert [line.count("✓") for line in agree] == [5, 5, 5, 3]
    said = " ".join(done.stdout.split())
    assert "Data: counts that ship with revealed." in said


def test_what_is_written_is_the_published_table(tables):
    rows = tables["estimates"]
    assert len(rows) == 6 * 5
    gap = (rows["ours"] - rows["published"]).abs()
    likelihood = rows["quantity"] == LIKELIHOOD
    assert (gap[~likelihood].dropna() <= 1.5e-4).all()
    assert (gap[likelihood].dropna() <= 1.5e-3).all()
    errors = (rows["standard error"] - rows["published error"]).abs().dropna()
    assert (errors <= 1.5e-3).all()
    assert (len(gap.dropna()), len(errors)) == (18, 8)  # three samples of five numbers, one of three


def test_what_differs_is_said_in_words(monkeypatch):
    key = ((4,), rust.MYOPIC)
    wrong = rust.Published((7.7, *rust.PUBLISHED[key].estimates[1:]), rust.PUBLISHED[key].errors, -3306.028)
    monkeypatch.setattr(rust, "PUBLISHED", {**rust.PUBLISHED, key: wrong})
    assert rust.run().notes == ("For group 4 at discount 0 the published RC is 7.7000, ours is 7.6358.",)


def test_a_number_that_is_off_by_two_in_the_last_digit_is_marked():
    row = {"quantity": "RC"}
    assert rust._row(row, 10.0750, 10.0751, 1.582, 1.583)["agrees"]
    assert not rust._row(row, 10.0750, 10.0752, 1.582, 1.582)["agrees"]
    assert not rust._row(row, 10.0750, 10.0750, 1.582, 1.584)["error agrees"]
    assert rust._row({"quantity": LIKELIHOOD}, -3304.155, -3304.156)["agrees"]
    assert not rust._row({"quantity": LIKELIHOOD}, -3304.155, -3304.157)["agrees"]


@pytest.mark.parametrize("groups", SAMPLES)
def test_npl_is_ccp_at_first_and_the_mle_at_last(tables, groups):
    table = tables["methods"]
    rows = table[table["groups"] == name_groups(groups)].set_index("method")
    estimates = rows[["RC", "theta11"]]
    npl = estimates[estimates.index.str.startswith("NPL")].to_numpy()
    assert npl[0] == pytest.approx(estimates.loc["CCP, frequency"].to_numpy(), rel=1e-12)
    gaps = np.abs(npl - estimates.loc["NFXP"].to_numpy()).max(axis=1)
    assert gaps[-1] <= 1.5e-4 < gaps[:-1].min()
    assert gaps == pytest.approx(rows["from NFXP"][rows.index.str.startswith("NPL")].to_numpy(), rel=1e-9)
    assert (rows[LIKELIHOOD] <= rows.loc["NFXP", LIKELIHOOD] + 1e-9).all()


def test_likelihood_ratios_are_those_of_the_likelihoods(tables):
    estimates = tables["estimates"].query("quantity == @LIKELIHOOD").set_index(["groups", "discount"])["ours"]
    all_groups, parts = name_groups(SAMPLES[2]), [name_groups(s) for s in SAMPLES[:2]]
    expected = [2 * (estimates[name_groups(s), 0.9999] - estimates[name_groups(s), 0.0]) for s in SAMPLES]
    expected += [2 * (sum(estimates[p, beta] for p in parts) - estimates[all_groups, beta]) for beta in (0.9999, 0.0)]
    tests = tables["tests"]
    assert tests["statistic"].to_numpy() == pytest.approx(expected, rel=1e-9)
    assert tests["df"].tolist() == [1, 1, 1, 4, 4]
    assert tests["p-value"].to_numpy() == pytest.approx(chi2.sf(expected, [1, 1, 1, 4, 4]), rel=1e-9)
    given = tests["published"].notna().to_numpy()
    assert given.tolist() == [False, True, False, True, False]
    assert tests["published"].to_numpy()[given] == pytest.approx(np.array(expected)[given], abs=6e-3)


def test_latex_has_a_row_per_line_of_the_table(reproduced, tables):
    lengths = {"estimates": 4 * 3 + 2, "methods": len(tables["methods"]), "tests": 5}
    for name, rows in lengths.items():
        text = (reproduced[0] / f"rust_{name}.tex").read_text(encoding="utf-8")
        body = text.partition("\\midrule")[2].partition("\\bottomrule")[0]
        assert body.count("\\\\\n") == rows
        assert text.isascii()
    estimates = (reproduced[0] / "rust_estimates.tex").read_text(encoding="utf-8")
    assert "group 4 & 0.9999 & ours & 10.0749 (1.582) & 2.2931 (0.639) & 0.3919 (0.0075)" in estimates


@pytest.mark.parametrize("option", [("--scale", "paper"), ("--jobs", 2), ("--only", "timing"), ("--fresh",)])
def test_options_of_the_paper_are_refused(option):
    said = f"`{option[0]}` has no effect with `rust`. Only --out applies to it."
    assert one_line(revealed("reproduce", "rust", *option)) == f"revealed: {said}"


@pytest.fixture(scope="module")
def found():
    return rust.run()


def words(found: rust.Replication, columns: int, capsys: Any, monkeypatch: Any) -> tuple[Counter[str], int]:
    """What stands between spaces on a terminal of so many columns, but rules; and its longest line."""
    monkeypatch.setenv("COLUMNS", str(columns))
    rust_tables.show(found)
    said = capsys.readouterr().out
    counted = Counter(word for word in said.split() if set(word) != {"─"})
    return counted, max(cell_len(line) for line in said.splitlines())


@pytest.mark.parametrize("columns", [30, 60, 70, 79, 200])
def test_no_terminal_breaks_a_number_in_two(found, columns, capsys, monkeypatch):
    usual, _ = words(found, 80, capsys, monkeypatch)
    here, longest = words(found, columns, capsys, monkeypatch)
    assert here == usual
    assert longest <= max(columns, 60)  # below sixty the numbers need more than there is


def test_a_folder_that_cannot_be_written_is_said_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(rust, "run", lambda: pytest.fail("the work was done first"))
    (tmp_path / "file").write_text("")
    assert "a folder that can be written" in one_line(revealed("reproduce", "rust", "--out", tmp_path / "file"))


def test_raw_files_that_are_wrong_are_one_line(tmp_path):
    for name, _, _ in bus_files.FILES.values():
        (tmp_path / name).write_text("1\nmiles\n")
    said = one_line(revealed("reproduce", "rust", REVEALED_DATA=str(tmp_path)))
    assert "got 'miles' (first at g870.asc, line 2)" in said


def test_something_else_is_a_usage_error():
    done = revealed("reproduce", "zurcher")
    assert done.exit_code == 1
    assert "`what`: expected one of paper, rust; got 'zurcher'." in " ".join(done.stderr.replace("│", " ").split())


def test_help_tells_of_it():
    assert "revealed reproduce rust --out results/rust" in revealed("reproduce", "--help").stdout
