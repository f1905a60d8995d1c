"""The report: one file that asks for nothing, says what was found, and comes out the same from the same table."""

import csv
import html
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from browser import Page, chromium, console
from revealed import findings
from revealed.errors import RevealedError
from revealed.experiments import obstacleworld
from revealed.experiments.obstacleworld import Config
from revealed.experiments.runner import run_plan
from revealed.experiments.store import Store
from revealed.experiments.verdicts import Verdict
from revealed.findings import gather
from revealed.report import build_report, duration, flat

TINY = {"obstacleworld": Config(size=5, trajectories=(1, 3), seeds=2)}
EVIL = "<script>alert('1')</script> & π̃"
VERDICTS = [
    Verdict("obstacleworld", "MCE-IRL needs less data.", "Fig. 1", "0.1 ± 0.01", "Holds if below 0.", "holds"),
    Verdict("obstacleworld", EVIL, "Fig. 1", "5 < 6 & 7", "Holds if > 0.", "does not hold", "Because of “this”."),
    Verdict("timing", "NPL is faster.", "Table 2", "no cells", "Holds if the ratio is above 1.", "undecided"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A small run that is finished, with its report, and verdicts of every kind."""
    folder = tmp_path_factory.mktemp("run")
    run_plan(TINY, folder, jobs=1, progress=False, scale="quick")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "judge", lambda results: VERDICTS)
        build_report(folder)
    return folder


@pytest.fixture
def bare(run, tmp_path, monkeypatch) -> Path:
    """A copy of the stored results, and no pictures, which take the time."""
    for name in ("run.json", "table.jsonl"):
        shutil.copy(run / name, tmp_path)
    shutil.copytree(run / "arrays", tmp_path / "arrays")
    monkeypatch.setattr(obstacleworld, "draw", lambda results: {})
    return tmp_path


def page_of(folder: Path) -> Page:
    return Page((folder / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(run) -> Page:
    return page_of(run)


def test_the_page_asks_for_nothing_from_elsewhere(run, page):
    for attributes in (given for _, given in page.found):
        for name in ("src", "href", "srcset", "action", "data", "poster", "background"):
            assert re.match(r"data:|#|$", attributes.get(name, "")), attributes
    assert not page.all("script", "link", "iframe", "object", "base")
    style = page.text("style")
    assert "url(" not in style
    assert "@import" not in style
    assert any("default-src 'none'" in meta.get("content", "") for meta in page.all("meta"))


def test_links_lead_somewhere_and_names_are_given_once(page):
    names = [given["id"] for _, given in page.found if "id" in given]
    assert len(names) == len(set(names))
    links = {link["href"].removeprefix("#") for link in page.all("a")}
    assert {"summary", "verdicts", "experiment-obstacleworld", "configuration"} <= links <= set(names)


def test_headings_come_in_order_under_one_title(page):
    levels = [int(tag[1]) for tag, _ in page.found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.all("html")[0]["lang"] == "en"


def test_pictures_have_captions_and_words_for_those_who_cannot_see(page):
    images = page.all("img")
    assert len(images) == len(page.all("figure")) == len(page.all("figcaption")) == 3
    assert all(len(image["alt"]) > 40 for image in images)
    assert all(image["src"].startswith("data:image/png;base64,iVBOR") for image in images)


def test_tables_have_captions_and_scopes(page):
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(cell.get("scope") in ("col", "row", "rowgroup") for cell in page.all("th"))


def test_verdicts_come_first_with_badges_in_words(page):
    text = page.text("main")
    assert text.index("MCE-IRL needs less data.") < text.index(obstacleworld.ABOUT)
    kinds = [given["class"].split()[-1] for given in page.all("span") if "badge" in given.get("class", "")]
    assert {kind: kinds.count(kind) for kind in ("holds", "fails", "open")} == {"holds": 3, "fails": 3, "open": 2}
    for words in ("✓ holds", "✗ does not hold", "? undecided", "Likely reason: Because of “this”.", "Holds if > 0."):
        assert words in text


def test_text_is_escaped(run, page):
    assert EVIL in page.text()
    assert EVIL not in (run / "report.html").read_text(encoding="utf-8")


def test_the_summary_and_the_configuration_tell_what_ran(page):
    text = page.text()
    for words in ("24 done, 0 failed, 0 missing", "quick", "1 of 7", "revealed report DIR", "one for linear algebra"):
        assert words in text
    assert "1, 3" in page.text("td")  # the trajectories of the configuration


def test_figures_and_tables_are_files_too(run):
    figures = sorted(path.name for path in (run / "figures").iterdir())
    keys = ("occupancy", "recovered", "sample")
    assert figures == [f"obstacleworld-{key}.{kind}" for key in keys for kind in ("pdf", "png")]
    tables = sorted(path.name for path in (run / "tables").iterdir())
    assert tables == [
        *(f"obstacleworld-{key}.{kind}" for key in ("occupancy", "sample") for kind in ("csv", "tex")),
        "verdicts.csv",
        "verdicts.tex",
    ]
    assert not list(run.rglob(".*"))  # nothing half-written


def test_tables_as_csv_and_as_latex_have_the_same_cells(run):
    for path in (run / "tables").glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        assert len(rows) > 1
        tex = path.with_suffix(".tex").read_text(encoding="utf-8")
        lines = [line for line in tex.splitlines() if line.endswith(r"\\")]
        assert [len(re.split(r"(?<!\\)&", line)) for line in lines] == [len(row) for row in rows]
        body = "\n".join(tex.splitlines()[2:])
        assert body.count("{") - body.count(r"\{") == body.count("}") - body.count(r"\}")


def test_the_table_for_spreadsheets_has_every_row(run):
    frame = pd.read_csv(run / "table.csv")
    assert len(frame) == 24
    assert list(frame.columns[:6]) == ["experiment", "setting", "method", "variant", "size", "seed"]


def test_the_same_table_gives_the_same_files(run, tmp_path, monkeypatch):
    for name in ("run.json", "table.jsonl", "arrays"):
        (shutil.copytree if name == "arrays" else shutil.copy)(run / name, tmp_path / name)
    monkeypatch.setattr(findings, "judge", lambda results: VERDICTS)
    build_report(tmp_path)
    made = [path.relative_to(run) for path in run.rglob("*") if path.is_file()]
    assert sorted(made) == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert [name for name in made if (run / name).read_bytes() != (tmp_path / name).read_bytes()] == []


def test_a_run_that_has_hardly_begun_has_a_report(tmp_path):
    run_plan({"obstacleworld": Config(size=5, trajectories=(1,), seeds=1)}, tmp_path, jobs=1, progress=False)
    first = (tmp_path / "table.jsonl").read_text(encoding="utf-8").splitlines()[0]
    for lines, words in ((first + "\n", "1 done, 0 failed, 5 missing"), ("", "0 done, 0 failed, 6 missing")):
        (tmp_path / "table.jsonl").write_text(lines, encoding="utf-8")
        build_report(tmp_path)
        text = page_of(tmp_path).text()
        assert words in text
        assert "This run is not finished" in text
    assert "nothing to show" in text


def test_a_figure_that_cannot_be_drawn_is_a_note(bare, monkeypatch):
    def fails(results: Any) -> Any:
        raise KeyError("no such <method>")

    monkeypatch.setattr(obstacleworld, "draw", fails)
    build_report(bare)
    assert "The figures could not be drawn: KeyError: 'no such <method>'" in page_of(bare).text("main")
    assert "mean over seeds" in page_of(bare).text("main")  # the tables are there all the same


def test_failed_cells_are_listed_with_their_reasons(bare):
    lines = (bare / "table.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(lines[0]) | {"status": "failed", "message": "the <matrix> is singular", "arrays": False}
    (bare / "table.jsonl").write_text("\n".join([*lines, json.dumps(row)]) + "\n", encoding="utf-8")
    build_report(bare)
    text = page_of(bare).text("main")
    assert "23 done, 1 failed, 0 missing" in text
    assert "the <matrix> is singular" in text
    assert (pd.read_csv(bare / "table.csv")["status"] == "failed").sum() == 1


def test_what_another_version_made_is_left_out_with_a_note(bare):
    store = Store.existing(bare)
    about = store.read_run()
    about["configs"]["timing"] = {"fingerprint": "old", "rounds": 3}
    about["configs"]["figure-99"] = {"fingerprint": "older"}
    store.write_run(about)
    build_report(bare)
    text = page_of(bare).text("main")
    for name in ("timing", "figure-99"):
        assert f"{name} is left out: made by another version of the library" in text


@pytest.mark.parametrize(
    "change", [{"fingerprint": "old"}, {"scale": 99.0}, {"no_such_setting": 1}, {"trajectories": "many"}]
)
def test_a_run_of_another_version_is_a_clear_error_and_its_report_is_left_alone(bare, change):
    store = Store.existing(bare)
    about = store.read_run()
    about["configs"]["obstacleworld"] |= change
    store.write_run(about)
    (bare / "report.html").write_text("the old one")
    with pytest.raises(RevealedError, match=r"this version.*`revealed reproduce`"):
        build_report(bare)
    assert (bare / "report.html").read_text() == "the old one"


@pytest.mark.parametrize("about", ["[]", "{}", '{"configs": 3}', '{"configs": {"obstacleworld": 3}}'])
def test_a_note_that_says_nothing_is_a_clear_error(bare, about):
    (bare / "run.json").write_text(about)
    with pytest.raises(RevealedError, match="`revealed reproduce`"):
        build_report(bare)


def test_a_folder_without_a_run_is_a_clear_error_and_stays_as_it_is(tmp_path):
    with pytest.raises(RevealedError, match="written by `revealed reproduce`"):
        build_report(tmp_path)
    with pytest.raises(RevealedError, match="written by `revealed reproduce`"):
        build_report(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_configurations_within_configurations_come_back_as_they_were():
    from dataclasses import asdict

    from revealed.experiments import updates
    from revealed.experiments.cells import fingerprint

    stored = json.loads(json.dumps({"fingerprint": fingerprint(updates.QUICK), **asdict(updates.QUICK)}))
    plan, notes = findings.read_plan({"configs": {"updates": stored}}, Path("."))
    assert plan == {"updates": updates.QUICK}
    assert notes == []
    assert flat(asdict(updates.QUICK))["obstacleworld.trajectories"] == "1, 3, 5, 10, 50"


def test_a_claim_that_cannot_be_judged_does_not_stop_the_report(bare, monkeypatch):
    def fails(results: Any) -> Any:
        raise ZeroDivisionError("no seeds")

    monkeypatch.setattr(findings, "judge", fails)
    assert gather(bare).notes == ["The claims could not be judged: ZeroDivisionError: no seeds"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.42, "0.4 s"), (12.4, "12 s"), (185, "3 min 05 s"), (59.9, "1 min 00 s"), (7830, "2 h 10 min")],
)
def test_time_in_words(seconds, words):
    assert duration(seconds) == words


# in a browser


@pytest.mark.chromium
def test_a_browser_shows_the_page_without_a_word_of_complaint(run, tmp_path):
    done = chromium(tmp_path, run / "report.html", "--dump-dom")
    assert done.returncode == 0, done.stderr
    assert console(done) == []
    assert "MCE-IRL needs less data." in done.stdout


@pytest.mark.chromium
def test_a_request_would_be_seen(run, tmp_path):
    text = (run / "report.html").read_text(encoding="utf-8")
    page = tmp_path / "asks.html"
    page.write_text(text.replace("<main>", '<main><img src="https://example.invalid/x.png" alt="">'), encoding="utf-8")
    assert console(chromium(tmp_path, page, "--dump-dom"))


@pytest.mark.chromium
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_is_as_wide_as_the_window(run, tmp_path, width):
    """In a frame of that width, which a script outside of it measures; wide figures and tables scroll inside theirs."""
    text = html.escape((run / "report.html").read_text(encoding="utf-8"))
    page = tmp_path / "frame.html"
    page.write_text(
        f'<!doctype html><iframe id="f" style="width:{width}px;height:800px;border:0" srcdoc="{text}"></iframe>'
        "<p id='said'></p><script>f.onload = () => { const page = f.contentDocument.documentElement;"
        "said.textContent = `widths ${page.scrollWidth} ${page.clientWidth}`; }</script>",
        encoding="utf-8",
    )
    done = chromium(tmp_path, page, "--dump-dom", "--window-size=1600,1000")
    said = re.search(r"widths (\d+) (\d+)", done.stdout)
    assert said is not None, done.stderr
    scrolled, seen = map(int, said.groups())
    assert scrolled <= seen <= width


@pytest.mark.chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_a_picture_of_the_page_can_be_taken(run, tmp_path, width):
    picture = tmp_path / "page.png"
    done = chromium(tmp_path, run / "report.html", f"--screenshot={picture}", f"--window-size={width},900")
    assert console(done) == []
    with Image.open(picture) as image:
        assert image.width == width
        assert len(image.convert("RGB").getcolors(1 << 24) or []) > 50  # not blank
