"""`revealed predict`, `revealed simulate` and `revealed counterfactual`: questions to a saved fit."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revealed.commands.flags import INTEGER, NUMBER, Force, Json
from revealed.commands.terminal import one_line, print_json, say, show, show_rows, tell, tell_replaced
from revealed.commands.wording import FIT, in_flags

if TYPE_CHECKING:
    import pandas as pd

    from revealed.commands.questions import Changes
    from revealed.commands.tables import Names
    from revealed.demonstrations import Demonstrations

Overwrite = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
Saved = Annotated[Path, typer.Argument(metavar="FIT", help="Folder of a fit, or its fit.zip.")]
Seed = Annotated[int, typer.Option(min=0, metavar=INTEGER, help="Random seed.")]


LENGTH = 50


class Bands(StrEnum):
    """Kinds of bands, which the shell completes."""

    auto = "auto"
    delta = "delta"
    bootstrap = "bootstrap"
    none = "none"


Goal = Annotated[
    str | None, typer.Option(metavar="LABEL", help="Goal of the trip; required for fits of trips with goals.")
]


def predict(
    saved: Saved,
    goal: Goal = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL", help="State label, or raw values to be binned. Repeatable.  [default: all states]"
        ),
    ] = None,
    states: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV or Parquet file of states, with the column names of the data."),
    ] = None,
    period: Annotated[int, typer.Option(min=0, metavar=INTEGER, help="Period on a finite horizon, from 0.")] = 0,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Show only the most likely action of each state.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output file, .csv or .parquet.  [default: print]")
    ] = None,
    json: Json = False,
    force: Overwrite = False,
) -> None:
    """Choice probabilities by state.

    Covers all states unless some are named. Labels are those of the data; a label of several columns is written with
    commas.

    \b
    Example:
      revealed predict trips-fit --state airport --state centre
    \b
    Example: choices on the way to a link of a road network
      revealed predict roads-fit --goal A17 --state B2
    \b
    Example: raw values from a file, for a fit with bins
      revealed predict buses-fit --states odometers.csv --deterministic --out next.csv
    """
    with one_line(FIT):
        from revealed.commands.placing import require_out, target_file, write_frame
        from revealed.commands.questions import choices_frame, find_states
        from revealed.commands.trip_questions import require_goals, toward_frame

        require_out(out, force)
        target = None if out is None else target_file(out, force)
        fit, names = _open(saved)
        require_goals(fit, goal=goal)
        if fit.demonstrations.goals is not None:
            frame = toward_frame(fit, names, goal, state or [], states, period, deterministic)
        else:
            chosen = find_states(fit, names, state or [], states, period)
            frame = choices_frame(fit, names, chosen, deterministic)
        if target is not None:
            write_frame(target, frame)
        if json:
            heading = {} if goal is None else {"goal": goal}
            print_json(heading | {"choices": frame.to_dict("records"), "files": _files(target)})
        elif target is None:
            _show_frame(frame)
        else:
            tell(f"Wrote {len(frame)} {'states' if goal is None else 'rows'} to {target}.")


def simulate(
    saved: Saved,
    n: Annotated[
        int, typer.Option("--n", min=1, metavar=INTEGER, help="Number of agents (or of trips, if they have goals).")
    ] = 100,
    length: Annotated[
        int | None,
        typer.Option(
            min=1, metavar=INTEGER, help="Maximum number of decisions each.  [default: 50; unlimited with goals]"
        ),
    ] = None,
    seed: Seed = 0,
    initial: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="Starting state of all.  [default: drawn from the starts in the data]"),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="Goal of all trips.  [default: drawn from the trips in the data]"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Output file, .csv or .parquet.  [default: CSV to standard output]"),
    ] = None,
    json: Json = False,
    force: Overwrite = False,
) -> None:
    """Simulate a panel of decisions from a fit.

    The columns have the names of the original data, so that revealed fit can read the file. Binned states are written
    as the centres of their bins.

    Trips with goals run between origins and destinations drawn from the data. With --goal alone, origins are those of
    observed trips to that goal or, if there were none, all observed origins that can reach it. With --initial alone,
    goals are those of observed trips from there or, if there were none, all observed goals that can be reached.

    \b
    Example:
      revealed simulate trips-fit --n 1000 --length 50 --seed 1 --out simulated.parquet
    \b
    Example: trips to a link of a road network
      revealed simulate roads-fit --goal A17 --n 500 --out to-A17.csv
    """
    with one_line(FIT):
        from revealed.commands.placing import require_out, target_file, write_frame
        from revealed.commands.trip_questions import drawn_trips, require_goals
        from revealed.commands.trip_tables import trip_panel

        require_out(out, force)
        target = None if out is None else target_file(out, force)
        fit, names = _open(saved)
        require_goals(fit, goal=goal)
        with_goals, begins = fit.demonstrations.goals is not None, ""
        if with_goals:
            demos = drawn_trips(fit, names, n, length, seed, initial, goal)
            frame = trip_panel(fit, demos, names)
        else:
            demos, frame, begins = _drawn_agents(fit, names, n, length or LENGTH, seed, initial)
        if target is not None:
            write_frame(target, frame)
        if json:
            panel = frame.to_dict("records") if target is None else None
            told = {"agents": n, "decisions": round(demos.n_decisions)} | ({"starts": begins} if begins else {})
            print_json(told | {"panel": panel, "files": _files(target)})
        elif target is None:
            typer.echo(frame.to_csv(index=False, lineterminator="\n"), nl=False)
        else:
            tell(f"Wrote {demos.n_decisions:.0f} decisions of {n} {'trips' if with_goals else 'agents'} to {target}.")
            if begins:
                tell(f"Starts: {begins}.")


def _drawn_agents(
    fit: Any, names: Names, n: int, length: int, seed: int, initial: str | None
) -> tuple[Demonstrations, pd.DataFrame, str]:
    """Simulated decisions, their panel, and where agents start, in words."""
    from revealed.commands.questions import start_at
    from revealed.commands.tables import panel_frame
    from revealed.starts import starts_of

    start = None if initial is None else start_at(fit, initial)
    demos = fit.simulate(n, length, seed=seed, initial=start)
    return demos, panel_frame(fit, demos, names), starts_of(fit.mdp, start, fit.demonstrations).words


def counterfactual(
    saved: Saved,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="CHANGE", help="Change a parameter: RC=12, price*1.2, price+1. Repeatable."),
    ] = None,
    discount: Annotated[float | None, typer.Option(metavar=NUMBER, help="New discount factor.")] = None,
    transitions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of new transition probabilities.")
    ] = None,
    probability: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Probability column of --transitions.  [default: that of the fit]"),
    ] = None,
    close: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="For trips with goals: link (or other state) to close. Repeatable."),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHANGE",
            help="For trips with goals: change a feature, as in toll=2 or time*1.5, on --links or everywhere.",
        ),
    ] = None,
    links: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL", help="Links on which --attribute changes (it applies to the turns into them). Repeatable."
        ),
    ] = None,
    bands: Annotated[
        Bands, typer.Option(help="Confidence bands; auto follows the standard errors of the fit.")
    ] = Bands.auto,
    reps: Annotated[
        int | None, typer.Option(min=2, metavar=INTEGER, help="Bootstrap replications.  [default: 400]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar=INTEGER, help="Seed of the bootstrap.  [default: 0]")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Output folder for tables and a report page.  [default: print only]"),
    ] = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Predict behaviour after a change.

    Prints action shares and welfare before and after the change, and the difference with a confidence band. With --out,
    also writes table.csv, policy.csv, states.csv and counterfactual.html. For trips with goals, prints welfare,
    decisions and features per trip and the states whose use changes most, and writes flows.csv and welfare.csv.

    \b
    Example:
      revealed counterfactual buses-fit --set RC=12 --set "miles*1.2" --out dearer
    \b
    Example: close one link and put a toll on another
      revealed counterfactual roads-fit --close A17 --attribute toll=2 --links B2 --out closed
    \b
    Example: more patient agents and new transitions
      revealed counterfactual trips-fit --discount 0.99 --transitions after.csv --json
    """
    with one_line(FIT):
        from revealed.commands.questions import Changes, band_options

        asked = Changes(change or (), discount, transitions, probability, close or (), attribute or (), links or ())
        _answer(saved, asked, band_options(str(bands), reps=reps, seed=seed), out, json, force)


def _answer(saved: Path, asked: Changes, bands: dict[str, Any], out: Path | None, json: bool, force: bool) -> None:
    """Ask, write, and show."""
    from revealed.commands.placing import claim, has_results, keep, require_out
    from revealed.commands.questions import ANSWER, ask, describe_answer, write_answer
    from revealed.commands.trip_questions import TRIP_ANSWER, ask_trips, require_goals, write_trip_answer

    ours = (*ANSWER, *TRIP_ANSWER)
    require_out(out, force)
    folder = None if out is None else claim(out, ours, force)
    fit, names = _open(saved)
    require_goals(fit, close=asked.close, attribute=asked.attributes, links=asked.links)
    if fit.demonstrations.goals is not None:
        answer, write = ask_trips(fit, names, asked, bands), write_trip_answer
    else:
        answer, write = ask(fit, names, asked, bands), write_answer
    replaced = has_results(folder, ours)
    files = keep(folder, ours, lambda beside, home: write(answer, fit, names, beside, home))
    if json:
        print_json(describe_answer(answer) | {"files": files, "replaced": replaced})
        return
    show(answer, spare=("se",))
    if folder is not None:
        tables = [f"{name}.csv" for name in files if name != "counterfactual"]
        from revealed.labels import in_series

        tell(f"Wrote {folder / 'counterfactual.html'}; also {in_series(tables)} there.")
        tell_replaced(replaced)


def _open(saved: Path) -> tuple[Any, Names]:
    """The fit; of one that did not converge it is said, since its answers are to be taken with care."""
    from revealed.commands.folder import open_fit

    fit, names = open_fit(saved)
    if not fit.converged:
        say(" ".join(f"note: the fit did not converge ({fit.status.code}): {in_flags(fit.status.message)}".split()))
    return fit, names


def _files(target: Path | None) -> dict[str, str]:
    return {} if target is None else {"table": str(target)}


def _show_frame(frame: pd.DataFrame) -> None:
    """Labels to the left, probabilities with four decimals to the right."""
    numbers = [kind.kind == "f" for kind in frame.dtypes]
    rows = [
        [f"{cell:.4f}" if number else str(cell) for cell, number in zip(row, numbers, strict=True)]
        for row in frame.itertuples(index=False)
    ]
    left = next((k for k, number in enumerate(numbers) if number), len(numbers))
    show_rows([str(name) for name in frame.columns], rows, left)
