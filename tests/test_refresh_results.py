"""The tool that brings a run's verdicts into README.md and docs/reproduce.md."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from judged import SAYS, VERDICTS
from revealed.claim_words import claims_table
from revealed.experiments.protocol import SENTENCES

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = Path(__file__).parents[1] / "tools" / "refresh_results.py"
    spec = importlib.util.spec_from_file_location("refresh_results", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def rows(tool, tmp_path) -> list[dict[str, str]]:
    file = tmp_path / "verdicts.csv"
    claims_table(VERDICTS).to_csv(file, index=False)
    return tool.read_verdicts(file)


def test_the_summary_is_a_row_for_each_claim(tool, rows):
    lines = tool.summary(rows).splitlines()
    assert lines[0] == "| paper | claim | Method Dependencies | Algorithm 1 | holds in | what flips it |"
    assert lines[2] == (
        "| Figure 1 | MCE-IRL needs less data. | **holds** | does not hold | 212 of 300 (71 %), "
        "28 undecided | Weights of the states. |"
    )
    assert lines[4] == "| Figure 1 | All perform alike. | *not tested* | the same |  |  |"
    assert len(lines) == len(VERDICTS) + 2


def test_the_long_list_has_the_quotation_and_both_statistics(tool, rows):
    lines = tool.findings(rows).splitlines()
    assert lines[2].endswith(f"| “{SAYS}” | **holds** | 0.1 ± 0.01 | does not hold | −0.2 ± 0.01 |")
    assert all(line.count("|") == lines[0].count("|") for line in lines)


def test_a_sentence_counts_each_reading(tool, rows):
    assert tool.counts(rows) == (
        "Of 4 claims, in the reading of “Method Dependencies”: 1 hold, 1 do not hold, 1 undecided, 1 not tested.\n"
        "With Algorithm 1 taken literally: 0 hold, 2 do not hold, 1 undecided, 1 not tested.\n\n"
        "Of the 3 claims that were tested, 0 hold in both readings, 1 only in that of “Method Dependencies”, 0 only "
        "with Algorithm 1 taken literally, 2 in neither. No single reading gives all that the paper says."
    )


def test_a_bar_in_a_cell_does_not_end_it(tool):
    assert tool.markdown(["a"], [["p(a|s)\nhere"]]).splitlines()[2] == r"| p(a\|s) here |"


def test_figures_that_a_run_does_not_have_stay_as_they_are(tool, tmp_path):
    figures, images = tmp_path / "figures", tmp_path / "images"
    for folder in (figures, images):
        folder.mkdir()
    (figures / "obstacleworld-section5.png").write_bytes(b"new")
    (images / "specifications.png").write_bytes(b"old")
    tool.copy_images(figures, images)
    assert (images / "reproduced.png").read_bytes() == b"new"
    assert (images / "specifications.png").read_bytes() == b"old"


def test_the_readme_shows_the_verdicts_of_the_run_that_is_kept(tool):
    """README.md and docs/reproduce.md were written from docs/verdicts.csv, by the tool and not by hand."""
    kept = tool.read_verdicts(ROOT / "docs" / "verdicts.csv")
    readme, page = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/reproduce.md"))
    for name, block in {"counts": tool.counts(kept), "verdicts": tool.summary(kept)}.items():
        assert f"<!-- {name}: begin -->\n{block}\n<!-- {name}: end -->" in readme
    assert f"<!-- findings: begin -->\n{tool.findings(kept)}\n<!-- findings: end -->" in page


def test_the_verdicts_that_are_kept_are_those_of_the_protocol(tool):
    kept = tool.read_verdicts(ROOT / "docs" / "verdicts.csv")
    told = [(sentence.key, sentence.claim, sentence.quote, sentence.place) for sentence in SENTENCES]
    assert [(v["key"], v["claim"], v["quote"], v["place"]) for v in kept] == told
