"""The report of a run: one HTML file with verdicts, figures, tables and configuration, and the same as separate files.

It is made from the stored table alone, so that it can be made again at any time, and of a run that is not finished.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.experiments.catalogue import EXPERIMENTS, SCALES
from revealed.experiments.cells import L2, NETWORK_PATIENCE, NETWORK_TOL, TIGHTER, TOL, Table, fingerprint
from revealed.experiments.verdicts import FAILS, HOLDS, UNDECIDED, Verdict
from revealed.files import prepare_folder, write_atomically
from revealed.findings import Chapter, Findings, gather
from revealed.latex import tabular
from revealed.page import (
    Html,
    contents,
    document,
    facts,
    figure,
    foldable,
    join,
    note,
    paragraph,
    section,
    table,
    tag,
)

if TYPE_CHECKING:
    import pandas as pd

PAPER = "Inverse Reinforcement Learning with Explicit Policy Estimates"
TITLE = "The paper, reproduced"
LEAD = (
    f"Every experiment of “{PAPER}” (AAAI 2021), run again with the library `revealed`: its figures and tables, and a "
    "verdict on each of its claims, by the rule given with it."
)
MARKS = {HOLDS: ("holds", "✓"), FAILS: ("fails", "✗"), UNDECIDED: ("open", "?")}
COUNTED = {HOLDS: "hold", FAILS: "do not hold", UNDECIDED: "undecided"}
LONG = 12  # a table with more rows is folded away
ALONE = "tasks of experiments that measure time ran alone, one after the other"


def build_report(folder: str | os.PathLike[str], jobs: int | None = None, progress: bool | None = None) -> Path:
    """Write `report.html`, `figures/`, `tables/` and `table.csv` into the folder of a run, from what it has stored."""
    return write_report(gather(folder, jobs, progress))


def write_report(findings: Findings) -> Path:
    """All files of a report, each whole or not there; the page comes last and is returned."""
    figures, tables = (prepare_folder(findings.folder / name) for name in ("figures", "tables"))
    for chapter in findings.chapters:
        for key, picture in chapter.shown.pictures.items():
            write_atomically(figures / f"{file_name(chapter, key)}.png", picture.png)
            write_atomically(figures / f"{file_name(chapter, key)}.pdf", picture.pdf)
        for key, shown in chapter.shown.tables.items():
            write_table(tables / file_name(chapter, key), shown)
    write_table(tables / "verdicts", Table(claims_table(findings.verdicts), "The paper's claims and the results."))
    findings.store.write_csv(findings.rows)
    return write_atomically(findings.folder / "report.html", compose(findings).encode("utf-8"))


def write_table(stem: Path, shown: Table) -> None:
    """As CSV and as LaTeX."""
    csv = shown.frame.to_csv(index=False, lineterminator="\n")
    write_atomically(stem.with_name(f"{stem.name}.csv"), csv.encode("utf-8"))
    write_atomically(stem.with_name(f"{stem.name}.tex"), tabular(shown.frame, shown.caption).encode("utf-8"))


def file_name(chapter: Chapter, key: str) -> str:
    return re.sub(r"[^\w.-]+", "-", f"{chapter.experiment.NAME}-{key}")


def claims_table(verdicts: list[Verdict]) -> pd.DataFrame:
    """The verdicts, one row each."""
    import pandas as pd

    columns = ["experiment", "claim", "paper", "statistic", "rule", "verdict", "reason"]
    return pd.DataFrame([asdict(verdict) for verdict in verdicts], columns=columns)


def compose(findings: Findings) -> str:
    """The page."""
    chapters = {
        _anchor(one.experiment.NAME): (one.experiment.TITLE, _chapter(one, findings)) for one in findings.chapters
    }
    sections = {
        "summary": ("Summary", _summary(findings)),
        "verdicts": ("Verdicts", _claims(findings)),
        **chapters,
        "configuration": ("Configuration and machine", _configuration(findings)),
        "again": ("How to reproduce", _again(findings)),
    }
    nav = contents({anchor: title for anchor, (title, _) in sections.items()})
    main = join((section(title, *parts, id=anchor) for anchor, (title, parts) in sections.items()), "\n")
    return document(f"{TITLE}: {PAPER}", join([tag("h1", TITLE), paragraph(LEAD, "lead")], "\n"), nav, main)


def _anchor(name: str) -> str:
    return f"experiment-{name}"


def count_verdicts(verdicts: list[Verdict]) -> dict[str, int]:
    """How many hold, do not hold, and are undecided."""
    found = Counter(verdict.verdict for verdict in verdicts)
    return {verdict: found[verdict] for verdict in (HOLDS, FAILS, UNDECIDED)}


def _summary(findings: Findings) -> list[Html]:
    counts = count_verdicts(findings.verdicts)
    cards = [tag("li", tag("strong", str(n)), _badge(verdict, COUNTED[verdict])) for verdict, n in counts.items()]
    seeds = sorted({chapter.seeds for chapter in findings.chapters if chapter.seeds})
    machine = findings.machine
    listed = {
        "Scale": findings.scale,
        "Experiments": f"{len(findings.chapters)} of {len(EXPERIMENTS)}",
        "Seeds per experiment": " to ".join(dict.fromkeys(str(n) for n in (*seeds[:1], *seeds[-1:]))) or "none",
        "Cells": _progress(findings.count("done"), findings.count("failed"), findings.count("missing")),
        "Computing time, all tasks together": duration(findings.seconds),
        "Machine": ", ".join(
            filter(None, (str(machine.get("processor", "")), _amount(machine, "cores", "cores"), _memory(machine)))
        ),
    }
    parts = [tag("ul", join(cards), class_="counts", aria_label="Verdicts"), facts(listed)]
    if findings.count("missing"):
        parts.append(note(f"This run is not finished. {_go_on(findings)} computes what is missing and keeps the rest."))
    return parts + [note(text) for text in findings.notes]


def _progress(done: int, failed: int, missing: int) -> str:
    return f"{done} done, {failed} failed, {missing} missing"


def _badge(verdict: str, words: str = "") -> Html:
    """The verdict in words, with a sign and a colour."""
    kind, mark = MARKS.get(verdict, ("open", "?"))
    return tag("span", tag("span", mark, aria_hidden="true"), f" {words or verdict}", class_=f"badge {kind}")


def _claims(findings: Findings) -> list[Html]:
    """The table of verdicts; on a phone every row is a card."""
    if not findings.verdicts:
        return [note("No claim was judged.")]
    header = tag("tr", *(tag("th", name, scope="col", role="columnheader") for name in
                         ("Claim", "Verdict", "Result", "Rule")), role="row")  # fmt: skip
    here = {chapter.experiment.NAME for chapter in findings.chapters}
    groups = [
        tag("tbody", _group_line(name, name in here), *(_claim_line(verdict) for verdict in group), role="rowgroup")
        for name, group in groupby(findings.verdicts, key=lambda verdict: verdict.experiment)
    ]
    caption = tag("caption", "Each claim of the paper, the statistic of this run, and the rule that decides.")
    head = tag("thead", header, role="rowgroup")
    return [tag("table", join([caption, head, *groups], "\n"), class_="claims", role="table")]


def _group_line(name: str, here: bool) -> Html:
    """The experiment that the claims below are about, with a link where it is in this report."""
    known = EXPERIMENTS.get(name)
    title = known.TITLE if known else name
    shown = tag("a", title, href="#" + _anchor(name)) if here else title
    return tag("tr", tag("th", shown, colspan=4, scope="rowgroup", role="rowheader"), class_="group", role="row")


def _claim_line(verdict: Verdict) -> Html:
    reason = tag("span", tag("em", "Likely reason:"), " ", verdict.reason, class_="reason") if verdict.reason else ""
    cells = [
        tag("th", verdict.claim, " ", tag("span", verdict.paper, class_="where"), scope="row", role="rowheader"),
        tag("td", _badge(verdict.verdict), role="cell"),
        tag("td", verdict.statistic, " ", reason, role="cell", data_name="Result"),
        tag("td", verdict.rule, class_="rule", role="cell", data_name="Rule"),
    ]
    return tag("tr", *cells, role="row")


def _chapter(chapter: Chapter, findings: Findings) -> list[Html]:
    experiment = chapter.experiment
    state = _progress(chapter.done, chapter.failed, chapter.missing)
    of_paper = f"The paper's {experiment.PAPER[:1].lower()}{experiment.PAPER[1:]}. " if experiment.PAPER else ""
    parts = [paragraph(f"{of_paper}Tasks: {state}; {duration(chapter.seconds)} of computing.", "soft")]
    parts += [paragraph(experiment.ABOUT)] if experiment.ABOUT else []
    parts += _found([verdict for verdict in findings.verdicts if verdict.experiment == experiment.NAME])
    parts += [note(text) for text in chapter.shown.notes]
    if not chapter.done:
        parts.append(note("No task of this experiment is finished yet, so there is nothing to show."))
    for key, picture in chapter.shown.pictures.items():
        saved = f"figures/{file_name(chapter, key)}.png and .pdf"
        parts.append(figure(picture.png, picture.width, picture.caption, picture.alt, saved))
    parts += [_table(shown) for shown in chapter.shown.tables.values()]
    return parts + [_settings(chapter), *_failures(chapter)]


def _found(verdicts: list[Verdict]) -> list[Html]:
    """How many of an experiment's claims hold, and where they are."""
    if not verdicts:
        return []
    counts = [_badge(one, f"{n} {COUNTED[one]}") for one, n in count_verdicts(verdicts).items() if n]
    return [tag("p", "Claims: ", *counts, tag("a", "to the table", href="#verdicts"), class_="found")]


def _table(shown: Table) -> Html:
    frame = shown.frame
    rows = [["–" if _absent(cell) else str(cell) for cell in row] for row in frame.itertuples(index=False)]
    inside = table([str(name) for name in frame.columns], rows, shown.caption)
    return foldable(f"Table: {shown.caption} ({len(rows)} rows)", inside) if len(rows) > LONG else inside


def _absent(cell: Any) -> bool:
    return cell is None or cell == "" or cell != cell


def _settings(chapter: Chapter) -> Html:
    rows = [[name, text] for name, text in flat(asdict(chapter.results.config)).items()]
    inside = table(["setting", "value"], rows, f"Configuration of {chapter.experiment.NAME}.")
    return foldable("Configuration", inside, class_="twice")


def flat(config: dict[str, Any]) -> dict[str, str]:
    """A configuration as text by name; what is within another has a dot in its name."""
    lines: dict[str, str] = {}
    for name, value in config.items():
        within = flat(value) if isinstance(value, dict) else {"": _value(value)}
        lines |= {f"{name}.{key}".rstrip("."): text for key, text in within.items()}
    return lines


def _value(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(f"({_value(item)})" if isinstance(item, tuple | list) else _value(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _failures(chapter: Chapter) -> list[Html]:
    if not chapter.failed:
        return []
    columns = ["setting", "method", "variant", "size", "seed", "message"]
    rows = [[str(cell) for cell in row] for row in chapter.results.failed[columns].itertuples(index=False)]
    inside = table([*columns[:-1], "reason"], rows, "Cells that could not be computed.")
    return [
        tag("h3", f"Failed tasks: {chapter.failed}"),
        foldable("Which, and why", inside) if len(rows) > LONG else inside,
    ]


def _configuration(findings: Findings) -> list[Html]:
    beside = f"{TIGHTER:g} times tighter as well"
    common = {
        "Penalty on the weights (l2), all methods": f"{L2:g}",
        "Threshold of the gradient's norm": f"{TOL:g}; {beside}",
        "The same for networks": f"{NETWORK_TOL:g}, met {NETWORK_PATIENCE} times in a row; {beside}",
        "Threads of a worker": f"{findings.machine.get('threads', 'not recorded')}; {ALONE}.",
    }
    machine = [[_words(name), str(value)] for name, value in findings.machine.items()]
    processors = _processors(findings)
    mixed = f"Cells were computed on different processors: {', '.join(processors)}."
    return [
        tag("h3", "Common to all experiments"),
        facts(common),
        tag("h3", "By experiment"),
        _experiments(findings),
        tag("h3", "Machine and versions"),
        *([note(mixed)] if len(processors) > 1 else []),
        table(["what", "value"], machine, "Where the last run took place, and with which versions."),
    ]


def _experiments(findings: Findings) -> Html:
    """The cells of every experiment, and all settings in one table."""
    cells, settings = [], []
    for chapter in findings.chapters:
        name, config = chapter.experiment.NAME, chapter.results.config
        counts = [str(n) for n in (chapter.seeds, chapter.done, chapter.failed, chapter.missing)]
        cells.append([name, fingerprint(config), *counts, duration(chapter.seconds)])
        settings += [[name, *pair] for pair in flat(asdict(config)).items()]
    header = ["experiment", "configuration", "seeds", "done", "failed", "missing", "time"]
    caption = "Cells by experiment; results of other configurations are kept apart."
    every = table(["experiment", "setting", "value"], settings, "All settings.")
    return join([table(header, cells, caption), foldable("Every setting of every experiment", every)], "\n")


def _processors(findings: Findings) -> list[str]:
    rows = findings.rows
    return sorted(set(rows["processor"].dropna().astype(str))) if "processor" in rows else []


def _words(name: str) -> str:
    return {"memory_gib": "memory (GiB)", "revealed": "revealed (this library)"}.get(name, name)


def _amount(machine: dict[str, Any], name: str, unit: str) -> str:
    return f"{machine[name]} {unit}" if machine.get(name) else ""


def _memory(machine: dict[str, Any]) -> str:
    return _amount(machine, "memory_gib", "GiB of memory")


def _again(findings: Findings) -> list[Html]:
    return [
        paragraph("With `DIR` the folder of this page:"),
        facts(
            {
                "To rebuild this page from the stored table, without running anything": "`revealed report DIR`",
                "To resume the run where it stopped, or to retry failed tasks": _go_on(findings),
            }
        ),
        paragraph("`table.csv` has a row for each task; `figures/` and `tables/` have what is shown here as files."),
    ]


def _go_on(findings: Findings) -> str:
    """What to type, or to call where the protocol is the user's own."""
    if findings.scale not in SCALES:
        return "The same call of `run` or `run_plan`"
    names = [chapter.experiment.NAME for chapter in findings.chapters]
    only = "" if len(names) == len(EXPERIMENTS) else "".join(f"--only {name} " for name in names)
    return f"`revealed reproduce --scale {findings.scale} {only}--out DIR`"


def duration(seconds: float) -> str:
    """Time in words: 0.4 s, 12 s, 3 min 05 s, 2 h 10 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
