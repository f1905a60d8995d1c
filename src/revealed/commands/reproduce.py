"""`revealed reproduce` and `revealed report`: the paper's experiments, and Rust's estimates."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revealed.commands.flags import INTEGER
from revealed.commands.terminal import one_line, say
from revealed.errors import InvalidOption, WorkersLost
from revealed.voices import shown

if TYPE_CHECKING:
    from rich.table import Table

    from revealed.experiments.rules import Verdict
    from revealed.findings import Findings

SHOWN_FAILURES = 5
NAMES = "obstacleworld, mountaincar, objectworld, partial-expert, updates, timing, breakdown, specifications"
STYLES = {"holds": "green", "does not hold": "red", "undecided": "yellow"}


class What(StrEnum):
    """Whose results."""

    paper = "paper"
    rust = "rust"


class Scale(StrEnum):
    """How much of the paper's protocol."""

    quick = "quick"
    paper = "paper"


def reproduce(
    ctx: typer.Context,
    what: Annotated[
        What, typer.Argument(help="The paper's experiments (paper), or the estimates and tests of Rust, 1987 (rust).")
    ] = What.paper,
    scale: Annotated[
        Scale,
        typer.Option(help="quick: smaller grids and fewer points, takes minutes. paper: full protocol, up to an hour."),
    ] = Scale.quick,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Output folder, created if needed.  [default: results/SCALE; with rust, print only]"
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar=INTEGER, help="Number of parallel workers.  [default: all cores]")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on a cluster: address of a Dask scheduler (tcp://host:8786), its .json file, or ray.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Run only this experiment: {NAMES}. Repeatable, or separated by commas."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Recompute everything, including stored results.")] = False,
) -> None:
    """Reproduce the paper's experiments, or Rust's (1987) estimates.

    paper runs the experiments and writes a report. rust prints the estimates of Table IX in Rust (1987) by every
    method, next to the published ones, with tests; the only option that applies is --out.

    Only missing results are computed, so an interrupted run resumes where it stopped. Writes report.html (verdicts,
    figures, tables and configuration in one file), figures/ (PNG and PDF), tables/ (CSV and LaTeX) and table.csv, and
    prints the verdicts. Where the output goes to a file, a line each minute says how far the run is.

    \b
    Example:
      revealed reproduce --scale quick --out results/quick --jobs 2
    \b
    Example: two experiments of the full protocol
      revealed reproduce --scale paper --only obstacleworld --only timing
    \b
    Example: on a Dask cluster started with `dask scheduler` and `dask worker tcp://host:8786`
      revealed reproduce --scale paper --cluster tcp://host:8786
    \b
    Example: Rust (1987), printed and written as CSV and LaTeX
      revealed reproduce rust --out results/rust
    """
    from revealed.commands.placing import refuse_fit

    if what is What.rust:
        with one_line({}):
            if out is not None:
                refuse_fit(out)
            _reproduce_rust(ctx, out)
        return
    folder = out or Path("results") / scale.value
    with one_line({"cluster": "--cluster"}):
        refuse_fit(folder)
        _require_one_place(jobs, cluster)
        plan = _plan(scale.value, only or [])
        _require_parallel(plan, jobs, cluster)
        with _goes_on(plan, folder):
            _run(plan, folder, jobs, fresh, scale.value, cluster)
            _report(folder, jobs)


def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")]) -> None:
    """Rewrite the report of a run from its stored results.

    Nothing is computed. Also works for an unfinished run.

    \b
    Example:
      revealed report results/quick
    """
    with one_line({"out": "DIR", "folder": "DIR"}):
        _report(folder)


def _reproduce_rust(ctx: typer.Context, out: Path | None) -> None:
    for name in ("scale", "jobs", "cluster", "only", "fresh"):
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            remedy = "Only --out applies to it."
            raise InvalidOption.conflict(f"--{name}", "has no effect with `rust`", remedy=remedy)
    from revealed.experiments import rust, rust_tables
    from revealed.files import prepare_folder

    if out is not None:
        prepare_folder(out)  # better now than after the work
    found = rust.run()
    rust_tables.show(found)
    if out is not None:
        names = ", ".join(path.name for path in rust_tables.write(found, out))
        typer.echo(f"Wrote {names} into {out}.")


def _plan(scale: str, only: list[str]) -> dict[str, Any]:
    """The configurations of a scale, of the experiments asked for."""
    from revealed.experiments.machine import ask_jax_for_one_thread

    ask_jax_for_one_thread()  # before the experiments, which load JAX
    from revealed.experiments import catalogue

    plan = catalogue.plan_for(scale)
    names = [name for text in only for name in text.replace(",", " ").split() or [text]]
    for name in names:
        if name not in plan:
            raise InvalidOption("--only", f"one of {', '.join(plan)}", shown(name))
    return {name: config for name, config in plan.items() if name in names or not names}


def _require_one_place(jobs: int | None, cluster: str | None) -> None:
    if jobs is not None and cluster is not None:
        remedy = "The cluster sets the number of workers."
        raise InvalidOption.conflict("--jobs", "cannot be combined with `--cluster`", remedy=remedy)


def _require_parallel(plan: Mapping[str, Any], jobs: int | None, cluster: str | None) -> None:
    """What measures time runs alone, wherever it runs; the figures of several experiments share the workers."""
    from revealed.experiments.catalogue import EXPERIMENTS

    alone = all(EXPERIMENTS[name].ALONE for name in plan)
    for flag, given in (("--jobs", jobs is not None and len(plan) == 1), ("--cluster", cluster is not None)):
        if alone and given:
            rule = f"has no effect on {' and '.join(plan)}: timing experiments run one cell at a time, on this machine"
            raise InvalidOption.conflict(flag, rule)


def _run(
    plan: Mapping[str, Any], folder: Path, jobs: int | None, fresh: bool, scale: str, cluster: str | None = None
) -> None:
    from revealed.clusters import on_cluster
    from revealed.experiments.runner import run_plan
    from revealed.parallel import cores
    from revealed.progress import is_terminal

    jobs = jobs or cores()
    done, wanted = (0, _counts(plan, folder)[1]) if fresh else _counts(plan, folder)
    experiments = "1 experiment" if len(plan) == 1 else f"{len(plan)} experiments"
    _note_other_scale(folder, scale)
    with nullcontext(jobs) if cluster is None else on_cluster(cluster) as together:
        where = "" if cluster is None else f" on {cluster}"
        typer.echo(f"{experiments}, {wanted} tasks ({done} done), {together} at a time{where}, into {folder}")
        if done == wanted:
            typer.echo("Nothing is left to compute: the report is rebuilt from the stored results.")
        tell = None if is_terminal(sys.stdout) and is_terminal(sys.stderr) else typer.echo  # else there is a bar
        run_plan(plan, folder, jobs if cluster is None else None, fresh=fresh, scale=scale, tell=tell)


def _note_other_scale(folder: Path, scale: str) -> None:
    from revealed.experiments.store import Store

    before = Store(folder).read_run().get("scale", scale)
    if before != scale:
        typer.echo(f"{folder} has results at scale {before}: they are kept, but the report will be for scale {scale}.")


def _counts(plan: Mapping[str, Any], folder: Path) -> tuple[int, int]:
    """How many tasks of a plan are done, and how many there are."""
    from revealed.experiments.catalogue import EXPERIMENTS
    from revealed.experiments.store import Store

    store = Store(folder)
    have = [store.has(plan[name], cell) for name in plan for cell in EXPERIMENTS[name].cells(plan[name])]
    return sum(have), len(have)


def _report(folder: Path, jobs: int | None = None) -> None:
    from revealed.experiments.machine import ask_jax_for_one_thread

    ask_jax_for_one_thread()
    from revealed.findings import gather
    from revealed.gates import address_space
    from revealed.parallel import cores
    from revealed.report import write_report

    alone = jobs is None and address_space() is not None  # a worker that finds no memory leaves a traceback
    findings = gather(folder, 1 if alone else jobs or cores())
    page = write_report(findings)
    _print_verdicts(findings)
    typer.echo(f"Wrote {page}; also figures/, tables/ and table.csv there.")


def _print_verdicts(findings: Findings) -> None:
    """The report's summary in the width of the terminal; then counts, and what went wrong."""
    from rich.console import Console

    from revealed.claim_words import READINGS, counts_in_words

    console = Console(highlight=False)
    if findings.verdicts:
        console.print(_claims(findings.verdicts), "")
    for chapter in findings.chapters:
        if "aims" in chapter.shown.tables:
            console.print(_seconds(chapter.shown.tables["aims"].frame), "")
    for reading, name in READINGS.items():
        console.print(f"{name}: {counts_in_words(findings.verdicts, reading)}.", markup=False)
    for line in _troubles(findings):
        console.print(line, markup=False)


def _claims(verdicts: Iterable[Verdict]) -> Table:
    """Claim, both verdicts and the share of specifications; long ones are wrapped, never cut."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from revealed.claim_words import READINGS, SAME, SHORT, share_in_words, shown_where

    table = Table(box=box.SIMPLE_HEAD, title=Text("The paper's claims", style="bold"), title_justify="left")
    table.title_style, table.expand, table.show_edge = "", True, False
    table.add_column("claim", overflow="fold", ratio=1)
    for name in READINGS.values():
        table.add_column(name, overflow="fold", width=13)
    table.add_column("holds in", overflow="fold", width=10)
    for one in verdicts:
        found = (one.section5.verdict, one.algorithm1.verdict if one.algorithm1 else SAME)
        words = [Text(SHORT.get(verdict, verdict), style=STYLES.get(verdict, "")) for verdict in found]
        claim = f"{one.claim.rstrip('.')} ({shown_where(one.place)})" if one.place else one.claim
        held = "by world" if one.share and one.share.by_world else share_in_words(one.share).partition(",")[0]
        table.add_row(Text(claim), *words, held)
    return table


def _seconds(aims: Any) -> Table:
    """The paper's seconds beside ours."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = Text("Training time: the paper's seconds, on its machine, next to ours (✓ target reached)", style="bold")
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="", show_edge=False)
    shown = aims.drop(columns=["aim", "tighter [s]"], errors="ignore")  # the report has them, too
    for k, name in enumerate(shown.columns):
        table.add_column(Text(str(name)), justify="left" if k < 2 else "right", overflow="fold", no_wrap=k < 2)
    for row in shown.itertuples(index=False):
        table.add_row(*(Text(str(cell)) for cell in row))
    return table


def _troubles(findings: Findings) -> list[str]:
    """What a reader of the verdicts should know: tasks that failed or are missing, and what could not be shown."""
    from revealed.labels import how_many

    lines = list(findings.notes)
    for chapter in findings.chapters:
        name = chapter.experiment.NAME
        lines += [f"{name}: {text}" for text in chapter.shown.notes]
        failed = chapter.results.failed
        if len(failed):
            lines.append(f"{name}: {how_many(len(failed), 'task')} failed; run the same command to try again.")
            shown = failed.head(SHOWN_FAILURES).itertuples()
            lines += [
                f"  {row.method}, {row.setting}, size {row.size}, seed {row.seed}: {row.message}" for row in shown
            ]
    missing = findings.count("missing")
    return lines + ([f"{how_many(missing, 'task')} missing; run the same command to resume."] if missing else [])


@contextmanager
def _goes_on(plan: Mapping[str, Any], folder: Path) -> Iterator[None]:
    """Ctrl-C, or workers that were killed from outside: what was finished is kept, and one line says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"stopped: {_done(plan, folder)}; the same command resumes from there.")
        raise typer.Exit(130) from None
    except WorkersLost:
        remedy = "Memory probably ran out: run the command again with fewer --jobs, and it resumes from there"
        say(f"workers were killed repeatedly: {_done(plan, folder)}. {remedy}.")
        raise typer.Exit(1) from None


def _done(plan: Mapping[str, Any], folder: Path) -> str:
    done, wanted = _counts(plan, folder)
    return f"{done} of {wanted} tasks are done and kept in {folder}"
