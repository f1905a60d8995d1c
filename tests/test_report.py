"""The report: one file that asks for nothing, says what was found, and comes out the same from the same table."""

import csv
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from browser import Page, chromium, console, measure
from judged import EVIL, SAYS, VERDICTS
from revealed import drawn, findings
from revealed.claim_words import COLUMNS, claims_table, count_verdicts, share_in_words
from revealed.errors import RevealedError
from revealed.experiments import mountaincar, obstacleworld, timing
from revealed.experiments.cells import Measured, Picture, Results
from revealed.experiments.obstacleworld import Config
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, UNTESTED, Share
from revealed.experiments.runner import run_plan
from revealed.experiments.store import Store
from revealed.findings import Chapter, Findings, gather
from revealed.page import document, figure, join, table
from revealed.report import _busy, build_report, duration, flat

TINY = {"obstacleworld": Config(size=5, trajectories=(1, 3), seeds=2)}


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
    expected = {"summary", "claims", "experiment-obstacleworld", "configuration", "claim-less-data", "claim-faster"}
    assert expected <= links <= set(names)


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


def test_a_figure_of_the_paper_begins_with_its_number():
    assert "<figcaption><strong>Figure 1.</strong> All curves.</figcaption>" in figure(b"", 5, "All curves.", "…",
                                                                                     number="Figure 1")  # fmt: skip
    assert "<figcaption>All curves.</figcaption>" in figure(b"", 5, "All curves.", "…")


def test_the_number_of_a_figure_comes_from_the_picture(bare, monkeypatch):
    def draw(results: Any) -> dict[str, Picture]:
        from matplotlib.figure import Figure

        return {"one": Picture(Figure(figsize=(1, 1)), "All curves.", "Curves.", "Figure 1")}

    monkeypatch.setattr(obstacleworld, "draw", draw)
    for _ in range(2):  # drawn, and as it was kept
        build_report(bare)
        assert page_of(bare).text("figcaption").startswith("Figure 1. All curves.")


def test_tables_have_captions_and_scopes(page):
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(cell.get("scope") in ("col", "row", "rowgroup") for cell in page.all("th"))


def test_the_summary_is_one_table_of_claims_with_both_readings(page):
    text = page.text("main")
    assert text.index("MCE-IRL needs less data.") < text.index(obstacleworld.ABOUT)
    row = page.row("MCE-IRL needs less data. Figure 1")
    assert row[1:] == ["✓ holds", "✗ does not hold", "212 of 300 (71 %), 28 undecided", "Weights of the states."]
    assert page.row("All perform alike. Figure 1")[1:] == ["– not tested", "the same", "–", "–"]
    assert (
        "This run cannot decide (each claim says what is missing): All perform alike. --scale paper has what they need."
        in text
    )
    for counts in (
        "Method Dependencies 1✓ hold1✗ do not hold1? undecided1– not tested",
        "Algorithm 1 0✓ hold2✗ do not hold",
    ):
        assert counts.replace(" ", "") in text.replace(" ", "")


def test_each_claim_has_its_quotation_statistics_parts_rule_and_reason(page):
    assert SAYS in page.text("blockquote")
    claims = page.text("article")
    for words in ("0.1 ± 0.01", "−0.2 ± 0.01", "✗ does not hold EPIC", "Likely reason: Because of “this”.",
                  "Rule: Holds if > 0.", "Both readings", "does not hold in 60, undecided in 28"):  # fmt: skip
        assert words in claims
    assert "✓ holds NLL" not in claims  # as the whole claim
    assert (
        "NPL is faster."
        in page.text("section").partition("Claims about all worlds, and about experiments that were not run")[2]
    )


def test_claims_with_one_name_still_have_a_place_each(bare, monkeypatch):
    monkeypatch.setattr(findings, "judge", lambda results: [VERDICTS[0], VERDICTS[0]])
    build_report(bare)
    names = [given["id"] for _, given in page_of(bare).found if "id" in given]
    assert len(names) == len(set(names))


def test_the_table_of_verdicts_has_a_column_for_everything():
    frame = claims_table(VERDICTS)
    assert tuple(frame.columns) == COLUMNS
    first, second, *_ = frame.to_dict("records")
    assert (first["verdict"], first["algorithm1"], first["specifications"], first["share"], first["flips"]) == (
        "holds", "does not hold", "212 of 300 (71 %), 28 undecided", "0.707", "Weights of the states.",
    )  # fmt: skip
    assert [second[name] for name in ("algorithm1", "algorithm1_statistic", "specifications", "share")] == [""] * 4
    assert second["reason"] == "Because of “this”."
    assert count_verdicts(VERDICTS, "algorithm1") == {HOLDS: 0, FAILS: 2, UNDECIDED: 1, UNTESTED: 1}


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (None, ""),
        (Share(0, 0, 0), ""),
        (Share(299, 1, 0), "299 of 300 (99 %)"),
        (Share(1, 299, 0), "1 of 300 (1 %)"),
        (Share(3, 0, 0), "3 of 3 (100 %)"),
    ],
)
def test_a_share_is_whole_only_where_it_is(share, words):
    assert share_in_words(share) == words


def test_text_is_escaped(run, page):
    assert EVIL in page.text()
    assert EVIL not in (run / "report.html").read_text(encoding="utf-8")


def test_the_summary_and_the_configuration_tell_what_ran(page):
    text = page.text()
    for words in ("16 done, 0 failed, 0 missing", "quick", "1 of 8", "revealed report DIR", "one for linear algebra"):
        assert words in text
    assert "1, 3" in page.text("td")  # the trajectories of the configuration


def test_figures_and_tables_are_files_too(run):
    figures = sorted(path.name for path in (run / "figures").iterdir())
    keys = ("algorithm1", "recovered", "section5")
    assert figures == [f"obstacleworld-{key}.{kind}" for key in keys for kind in ("pdf", "png")]
    tables = sorted(path.name for path in (run / "tables").iterdir())
    assert tables == [
        *(f"obstacleworld-{key}.{kind}" for key in ("algorithm1", "section5") for kind in ("csv", "tex")),
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
    assert len(frame) == 16
    assert list(frame.columns[:6]) == ["experiment", "setting", "method", "variant", "size", "seed"]


def test_the_same_table_gives_the_same_files(run, tmp_path, monkeypatch):
    for name in ("run.json", "table.jsonl", "arrays"):
        (shutil.copytree if name == "arrays" else shutil.copy)(run / name, tmp_path / name)
    monkeypatch.setattr(findings, "judge", lambda results: VERDICTS)
    build_report(tmp_path)
    made = [path.relative_to(run) for path in run.rglob("*") if path.is_file()]
    assert sorted(made) == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert [name for name in made if (run / name).read_bytes() != (tmp_path / name).read_bytes()] == []


# what was drawn before


class Drawing:
    """Draws a blank figure for each of two experiments, and counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        for module in (obstacleworld, mountaincar):
            monkeypatch.setattr(module, "draw", lambda results, name=module.NAME: self.draw(name))

    def draw(self, name: str) -> dict[str, Picture]:
        from matplotlib.figure import Figure

        self.calls.append(name)
        return {"blank": Picture(Figure(figsize=(1, 1)), "Nothing.", "Nothing at all.")}

    def since(self) -> list[str]:
        calls, self.calls = self.calls, []
        return calls


@pytest.fixture
def two(tmp_path, monkeypatch) -> tuple[Path, Drawing]:
    """A run of two experiments whose report was written once."""
    drawing = Drawing(monkeypatch)
    monkeypatch.setattr(findings, "judge", lambda results: VERDICTS)
    monkeypatch.setattr(mountaincar, "measure", lambda *_: Measured({"status": "converged", "message": "", "evd": 1.0}))
    monkeypatch.setattr(mountaincar, "tables", lambda results: {})
    cars = mountaincar.Config(trajectories=(3,), seeds=1, beside=0)
    run_plan(TINY | {"mountaincar": cars}, tmp_path, jobs=1, progress=False)
    build_report(tmp_path)
    assert drawing.since() == ["obstacleworld", "mountaincar"]
    return tmp_path, drawing


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_report_draws_nothing_and_is_the_same(two):
    folder, drawing = two
    before = contents(folder)
    build_report(folder)
    assert drawing.since() == []
    assert contents(folder) == before
    shutil.rmtree(folder / "drawn")
    build_report(folder)
    assert len(drawing.since()) == 2
    assert contents(folder) == before


def test_a_row_that_changed_draws_its_experiment_again_and_no_other(two):
    folder, drawing = two
    lines = (folder / "table.jsonl").read_text(encoding="utf-8").splitlines()
    row = next(row for row in map(json.loads, lines) if row["experiment"] == "obstacleworld")
    with (folder / "table.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row | {"evd": 7.5}) + "\n")
    build_report(folder)
    assert drawing.since() == ["obstacleworld"]
    build_report(folder)
    assert drawing.since() == []


def test_arrays_that_changed_are_drawn_again(two):
    folder, drawing = two
    first, *others = (folder / "arrays").glob("obstacleworld-*.npz")
    shutil.copy(next(one for one in others if one.read_bytes() != first.read_bytes()), first)
    build_report(folder)
    assert drawing.since() == ["obstacleworld"]


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\n\n", b"0\n[1]\n", None])
def test_a_note_of_what_was_drawn_that_is_damaged_is_ignored(two, content):
    folder, drawing = two
    before, path = contents(folder), folder / "drawn" / "mountaincar.json"
    path.write_bytes(path.read_bytes().replace(b"Nothing", b"Nothink") if content is None else content)
    build_report(folder)
    assert drawing.since() == ["mountaincar"]
    assert contents(folder) == before


def test_a_figure_that_was_lost_or_changed_is_drawn_again(two):
    folder, drawing = two
    before = contents(folder)
    (folder / "figures" / "mountaincar-blank.pdf").unlink()
    (folder / "figures" / "obstacleworld-blank.png").write_bytes(b"mine")
    build_report(folder)
    assert drawing.since() == ["obstacleworld", "mountaincar"]
    assert contents(folder) == before


def test_other_code_draws_again(two, monkeypatch):
    folder, drawing = two
    monkeypatch.setattr(drawn, "_code", lambda: ["another version"])
    build_report(folder)
    assert len(drawing.since()) == 2


def test_where_nothing_can_be_kept_the_report_is_written_all_the_same(two):
    folder, drawing = two
    shutil.rmtree(folder / "drawn")
    (folder / "drawn").write_text("in the way")
    build_report(folder)
    assert len(drawing.since()) == 2
    assert "in the way" in (folder / "drawn").read_text()


def test_what_could_not_be_drawn_is_tried_again(bare, monkeypatch):
    def fails(results: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(obstacleworld, "draw", fails)
    build_report(bare)
    assert not (bare / "drawn").exists()
    monkeypatch.setattr(obstacleworld, "draw", lambda results: {})
    build_report(bare)
    assert "could not be drawn" not in page_of(bare).text()


def test_a_run_that_has_hardly_begun_has_a_report(tmp_path):
    run_plan({"obstacleworld": Config(size=5, trajectories=(1,), seeds=1)}, tmp_path, jobs=1, progress=False)
    first = (tmp_path / "table.jsonl").read_text(encoding="utf-8").splitlines()[0]
    for lines, words in ((first + "\n", "1 done, 0 failed, 3 missing"), ("", "0 done, 0 failed, 4 missing")):
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
    assert "15 done, 1 failed, 0 missing" in text
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


def findings_with(**columns: Any) -> Findings:
    frame = pd.DataFrame({"key": ["a", "b", "c"], **columns})
    chapter = Chapter(timing, timing_results(frame), drawn.Shown({}, {}, []))
    return Findings(None, "quick", {}, [chapter], [], [])  # pyright: ignore[reportArgumentType]


def timing_results(frame: pd.DataFrame) -> Results:
    return Results(timing.QUICK, frame, frame[:0], lambda key: {})


def test_cells_that_were_timed_beside_other_work_are_counted():
    assert _busy(findings_with()) == []
    assert _busy(findings_with(other_work=[0.0, 0.24, None])) == []
    (said,) = _busy(findings_with(other_work=[0.25, 1.5, 0.0]))
    assert said.startswith("2 of 3 timing cells were measured beside other work")
    assert "up to 1.5" in said


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
    text = (run / "report.html").read_text(encoding="utf-8")
    script = "[page.documentElement.scrollWidth, page.documentElement.clientWidth]"
    scrolled, seen = measure(tmp_path, text, width, script)
    assert scrolled <= seen <= width


def wide_tables() -> str:
    """Tables of numbers with more and more columns, of words, of both, and a figure as wide as the page."""
    numbers = [["0.123 ± 0.045"] * 14] * 3
    mixed = ["Objectworld 32², C4", "MCE-IRL", "4× iteration_limit, 1× converged", *numbers[0][:7], "a long text " * 9]
    tables = [table(["stochastic EVD"] * n, [row[:n] for row in numbers], f"{n} columns") for n in (5, 9, 10, 12, 14)]
    tables.append(table(["percentage"] * 11, [["occupancy"] * 11] * 2, "Words in brief."))
    tables.append(table(["setting"] * len(mixed), [mixed] * 2, "Words and numbers."))
    return document("Wide", "", "", join([*tables, figure(b"", 10.5, "A figure.", "Nothing.")]))


BOXES = (
    '[...page.querySelectorAll(".scroll")].map(box => ({inside: box.scrollWidth, width: box.clientWidth,'
    " bar: box.offsetHeight - box.clientHeight, overflow: view.getComputedStyle(box).overflowX,"
    ' hint: parseFloat(view.getComputedStyle(box, "::before").height)}))'
)


@pytest.mark.chromium
def test_no_table_is_wider_than_a_page_of_1200_pixels(run, tmp_path):
    report = (run / "report.html").read_text(encoding="utf-8").replace("<details", "<details open")
    for text in (wide_tables(), report):
        boxes = measure(tmp_path, text, 1200, BOXES)
        assert len(boxes) > 3
        assert [box for box in boxes if box["inside"] > box["width"]] == []
        assert all(box["hint"] == 0 for box in boxes)


@pytest.mark.chromium
def test_what_scrolls_on_a_phone_shows_that_it_does(tmp_path):
    boxes = measure(tmp_path, wide_tables(), 390, BOXES)
    scrolls = [box for box in boxes if box["inside"] > box["width"]]
    assert len(scrolls) == len(boxes) == 8
    for box in scrolls:
        assert box["overflow"] == "auto"
        assert box["bar"] >= 8  # a bar that takes room is always there
        assert box["hint"] > 10  # “scroll →”


@pytest.mark.chromium
@pytest.mark.parametrize("width", [390, 1280])
def test_a_picture_of_the_page_can_be_taken(run, tmp_path, width):
    picture = tmp_path / "page.png"
    done = chromium(tmp_path, run / "report.html", f"--screenshot={picture}", f"--window-size={width},900")
    assert console(done) == []
    with Image.open(picture) as image:
        assert image.width == width
        assert len(image.convert("RGB").getcolors(1 << 24) or []) > 50  # not blank
