"""The report of a run: one HTML file with verdicts, figures, tables and configuration, and the same as separate files.

It is made from the stored table alone, so that it can be made again at any time, and of a run that is not finished.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from revealed.claim_words import (
    COUNTED,
    READINGS,
    both_readings,
    claims_table,
    count_verdicts,
    in_one_reading,
    untested,
)
from revealed.claims_page import anchors, badge, counts, details, protocol_page, summary
from revealed.drawn import file_name, keep
from revealed.experiments.catalogue import EXPERIMENTS, SCALES
from revealed.experiments.cells import L2, NETWORK_PATIENCE, NETWORK_TOL, TIGHTER, TOL, Table, fingerprint
from revealed.experiments.machine import BUSY
from revealed.experiments.rules import Verdict
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

PAPER = "Inverse Reinforcement Learning with Explicit Policy Estimates"
TITLE = "The paper, reproduced"
LEAD = (
    f"Every experiment of “{PAPER}” (AAAI 2021), run again with the library `revealed`: its figures and tables, and a "
    "verdict on each of its claims, by the rule given with it."
)
# What the two readings and the specifications are, in a reader's words, before the table of verdicts.
READ_AS = (
    "The paper can be read in two ways, and each claim is judged in both. Its paragraph “Method Dependencies”: MCE-IRL "
    "sees the demonstrations, NPL and CCP what the estimated expert policy makes of them. Algorithm 1, taken "
    "literally: all methods see the estimated policy. What the paper leaves open altogether (discount, scale of the "
    "reward and more) is varied: the table tells in how many such specifications a claim holds, and which choice flips "
    "it (in brackets: the share of the specifications with that value in which it holds). Specifications are of "
    "smaller worlds and fewer seeds, so that many are undecided, and the columns need not agree. A claim links to its "
    "quotation, statistics and rule."
)
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
            write_atomically(figures / f"{file_name(chapter.name, key)}.png", picture.png)
            write_atomically(figures / f"{file_name(chapter.name, key)}.pdf", picture.pdf)
        for key, shown in chapter.shown.tables.items():
            write_table(tables / file_name(chapter.name, key), shown)
        keep(findings.folder, chapter.name, chapter.shown)
    write_table(tables / "verdicts", Table(claims_table(findings.verdicts), "The paper's claims and the results."))
    findings.store.write_csv(findings.rows)
    return write_atomically(findings.folder / "report.html", compose(findings).encode("utf-8"))


def write_table(stem: Path, shown: Table) -> None:
    """As CSV and as LaTeX."""
    csv = shown.frame.to_csv(index=False, lineterminator="\n")
    write_atomically(stem.with_name(f"{stem.name}.csv"), csv.encode("utf-8"))
    write_atomically(stem.with_name(f"{stem.name}.tex"), tabular(shown.frame, shown.caption).encode("utf-8"))


def compose(findings: Findings) -> str:
    """The page."""
    chapters = {_anchor(one.name): (one.experiment.TITLE, _chapter(one, findings)) for one in findings.chapters}
    sections = {
        "summary": ("Summary", _summary(findings)),
        **chapters,
        **_elsewhere(findings),
        "protocol": ("How the paper is read", protocol_page()),
        "configuration": ("Configuration and machine", _configuration(findings)),
        "again": ("How to reproduce", _again(findings)),
    }
    nav = contents({anchor: title for anchor, (title, _) in sections.items()})
    main = join((section(title, *parts, id=anchor) for anchor, (title, parts) in sections.items()), "\n")
    return document(f"{TITLE}: {PAPER}", join([tag("h1", TITLE), paragraph(LEAD, "lead")], "\n"), nav, main)


def _anchor(name: str) -> str:
    return f"experiment-{name}"


def _summary(findings: Findings) -> list[Html]:
    """One page: what the readings are, how many claims hold, each claim, and what to know of the run."""
    judged = findings.verdicts
    parts = (
        [paragraph(READ_AS), counts(judged), paragraph(in_one_reading(both_readings(judged))), summary(judged)]
        if judged
        else [note("No claim was judged.")]
    )
    parts += [*_undecidable(findings), _run(findings)]
    if findings.count("missing"):
        parts.append(note(f"This run is not finished. {_go_on(findings)} computes what is missing and keeps the rest."))
    return parts + [note(text) for text in (*findings.notes, *_busy(findings))]


def _undecidable(findings: Findings) -> list[Html]:
    """Claims that this run cannot decide: at the quick scale for want of the paper's settings."""
    claims = "; ".join(untested(findings.verdicts))
    if not claims:
        return []
    quick = findings.scale == "quick"
    remedy = " `--scale paper` has what they need." if quick else ""
    flips = " It has too few specifications to tell what flips a claim." if quick else ""
    return [note(f"This run cannot decide (each claim says what is missing): {claims}.{remedy}{flips}")]


def _run(findings: Findings) -> Html:
    """What ran, where, and for how long."""
    seeds = sorted({chapter.seeds for chapter in findings.chapters if chapter.seeds})
    machine = findings.machine
    listed = {
        "Scale": findings.scale,
        "Experiments": f"{len(findings.chapters)} of {len(EXPERIMENTS)}",
        "Seeds per experiment": " to ".join(dict.fromkeys(str(n) for n in (*seeds[:1], *seeds[-1:]))) or "none",
        "Tasks": _progress(findings.count("done"), findings.count("failed"), findings.count("missing")),
        "Computing time, all tasks together": duration(findings.seconds),
        "Machine": ", ".join(
            filter(None, (str(machine.get("processor", "")), _amount(machine, "cores", "cores"), _memory(machine)))
        ),
    }
    return facts(listed)


def _progress(done: int, failed: int, missing: int) -> str:
    return f"{done} done, {failed} failed, {missing} missing"


def _busy(findings: Findings) -> list[str]:
    """How many tasks measured time while other programs used the machine."""
    import pandas as pd

    rows = findings.rows
    if "other_work" not in rows:
        return []
    measured = pd.to_numeric(rows["other_work"], errors="coerce").dropna()
    busy = int((measured >= BUSY).sum())
    if not busy:
        return []
    least = f"other programs used {BUSY:g} cores or more, up to {measured.max():.1f}"
    return [f"{busy} of {len(measured)} timing cells were measured beside other work ({least}): they may be too slow."]


def _elsewhere(findings: Findings) -> dict[str, tuple[str, list[Html]]]:
    """A section for claims about experiments that have no chapter here."""
    here = {chapter.name for chapter in findings.chapters}
    others = {verdict.experiment for verdict in findings.verdicts} - here
    parts = _found(findings, others)
    title = "Claims about all worlds" + (", and about experiments that were not run" if others - {""} else "")
    return {"claims": (title, parts)} if parts else {}


def _chapter(chapter: Chapter, findings: Findings) -> list[Html]:
    experiment = chapter.experiment
    state = _progress(chapter.done, chapter.failed, chapter.missing)
    of_paper = f"The paper's {experiment.PAPER[:1].lower()}{experiment.PAPER[1:]}. " if experiment.PAPER else ""
    parts = [paragraph(f"{of_paper}Tasks: {state}; {duration(chapter.seconds)} of computing.", "soft")]
    parts += [paragraph(experiment.ABOUT)] if experiment.ABOUT else []
    parts += [note(text) for text in chapter.shown.notes]
    if not chapter.done:
        parts.append(note("No task of this experiment is finished yet, so there is nothing to show."))
    parts += [_picture(chapter, key) for key in chapter.shown.pictures]
    parts += _found(findings, {chapter.name})
    parts += [_table(shown) for shown in chapter.shown.tables.values()]
    return parts + [_settings(chapter), *_failures(chapter)]


def _picture(chapter: Chapter, key: str) -> Html:
    picture = chapter.shown.pictures[key]
    saved = f"figures/{file_name(chapter.name, key)}.png and .pdf"
    return figure(picture.png, picture.width, picture.caption, picture.alt, saved, picture.paper)


def _found(findings: Findings, experiments: set[str]) -> list[Html]:
    """The claims on some experiments: how many of them hold, and each with what came out."""
    names = anchors(findings.verdicts)
    about = {names[k]: one for k, one in enumerate(findings.verdicts) if one.experiment in experiments}
    if not about:
        return []
    lines = [_tally(list(about.values()), reading) for reading in READINGS]
    back = tag("p", tag("a", "to all claims", href="#summary"), class_="soft")
    return [tag("h3", "What the paper says, and what came out"), *lines, *details(about), back]


def _tally(verdicts: list[Verdict], reading: str) -> Html:
    found = count_verdicts(verdicts, reading)
    badges = [badge(one, f"{n} {COUNTED[one]}") for one, n in found.items() if n]
    return tag("p", tag("span", READINGS[reading], class_="name"), " ", *badges, class_="found")


def _table(shown: Table) -> Html:
    frame = shown.frame
    rows = [["–" if _absent(cell) else str(cell) for cell in row] for row in frame.itertuples(index=False)]
    inside = table([str(name) for name in frame.columns], rows, shown.caption)
    return foldable(f"Table: {shown.caption} ({len(rows)} rows)", inside) if len(rows) > LONG else inside


def _absent(cell: Any) -> bool:
    return cell is None or cell == "" or cell != cell


def _settings(chapter: Chapter) -> Html:
    rows = [[name, text] for name, text in flat(asdict(chapter.results.config)).items()]
    inside = table(["setting", "value"], rows, f"Configuration of {chapter.name}.")
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
    inside = table([*columns[:-1], "reason"], rows, "Tasks that could not be computed.")
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
    mixed = f"Tasks were computed on different processors: {', '.join(processors)}."
    return [
        tag("h3", "Common to all experiments"),
        facts(common),
        tag("h3", "By experiment"),
        _experiments(findings),
        tag("h3", "Machine and versions"),
        *([note(mixed)] if len(processors) > 1 else []),
        *(note(text) for text in _busy(findings)),
        table(["what", "value"], machine, "Where the last run took place, and with which versions."),
    ]


def _experiments(findings: Findings) -> Html:
    """The cells of every experiment, and all settings in one table."""
    cells, settings = [], []
    for chapter in findings.chapters:
        name, config = chapter.name, chapter.results.config
        counts = [str(n) for n in (chapter.seeds, chapter.done, chapter.failed, chapter.missing)]
        cells.append([name, fingerprint(config), *counts, duration(chapter.seconds)])
        settings += [[name, *pair] for pair in flat(asdict(config)).items()]
    header = ["experiment", "configuration", "seeds", "done", "failed", "missing", "time"]
    caption = "Tasks by experiment; results of other configurations are kept apart."
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
    names = [chapter.name for chapter in findings.chapters]
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
