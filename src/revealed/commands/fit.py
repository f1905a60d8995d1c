"""`revealed fit`: from a file of decisions to estimates, a folder of results, and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from revealed.commands.flags import Config, Force, Json, with_options
from revealed.commands.terminal import (
    INTERRUPTED,
    UNCONVERGED,
    WELL,
    one_line,
    print_json,
    say,
    show,
    tell,
    tell_replaced,
)
from revealed.commands.wording import in_flags

if TYPE_CHECKING:
    from revealed.fit import AnyFit


def fit(config: Config = None, json: Json = False, force: Force = False, **options: Any) -> None:
    """Estimate a reward from a file of decisions.

    Prints a summary. With --out, also writes a folder: params.csv, policy.csv, states.csv, history.csv, summary.txt,
    report.html (coefficients, fit of choices, convergence, diagnostics, maps), fit.zip (for rv.load) and config.toml,
    which repeats the run. For trips with goals, flows.csv (observed and expected use of each state) and trips.csv
    (log likelihood of each trip) replace policy.csv and states.csv, since every goal has its own policy.

    Exit status: 0 converged, 1 invalid input, 3 not converged (results are written), 130 interrupted (Ctrl-C).

    \b
    Example:
      revealed fit trips.parquet --id rider --time t --state station --action choice \\
          --features stations.csv --discount 0.95 --method npl --out trips-fit
    \b
    Example: continuous states
      revealed fit buses.csv --id bus --time month --state miles --action replace \\
          --bins miles=90 --constants --discount 0.9999 --method nfxp --out buses-fit
    \b
    Example: trips on a road network; the last link of each is its goal
      revealed fit trips.csv --network links.csv --turns turns.csv \\
          --columns travel_time,left_turn,constant --out roads-fit
    \b
    Example: the same run again
      revealed fit --config trips-fit/config.toml --out again
    """
    with one_line():
        from revealed.commands.folder import OURS, write_fit
        from revealed.commands.placing import claim, has_results, keep, require_out
        from revealed.recipe import Recipe

        recipe = Recipe.from_flags(options, config)
        require_out(recipe.out, force)
        folder = None if recipe.out is None else claim(recipe.out, OURS, force)
        found, stopped = with_bootstrap(recipe.fit())
        replaced = has_results(folder, OURS)
        files = keep(folder, OURS, lambda beside, home: write_fit(found, beside, recipe, home))
        if json:
            print_json(describe(found) | {"files": files, "replaced": replaced})
        else:
            show_fit(found, folder, replaced)
        end(found, stopped=stopped)


with_options(fit)


def with_bootstrap(found: AnyFit) -> tuple[Any, str]:
    """The fit after its bootstrap, where one was asked for. Ctrl-C leaves the estimate, which was finished, with the
    errors that need no resampling, and a line that says so."""
    from dataclasses import replace

    if found.errors[0] != "bootstrap":
        return found, ""
    try:
        drawn = found.drawn
        if not drawn.interrupted:
            return found, ""
        when = f"after {len(drawn.done)} of {drawn.asked} replications"
    except KeyboardInterrupt:
        when = "before two replications were done"
    plain = replace(found, chosen=None)
    known = found.options["weighting"] == "sample"  # with occupancy weighting nothing but a bootstrap has them
    kind = f"{plain.errors[0]} standard errors are shown instead" if known else "there are no standard errors"
    line = f"the bootstrap was stopped {when}: {kind}."
    status = replace(found.status, notes=(*found.status.notes, line))
    return replace(plain, status=status), line


def show_fit(found: AnyFit, folder: Path | None, replaced: bool) -> None:
    """The summary, what was left out of the data, and where things are."""
    show(found.summary())
    if folder is None:
        tell("Nothing was written; use --out DIR to save the results.")
    else:
        from revealed.commands.folder import tables_of

        tables = ", ".join(tables_of(found))
        tell(f"Wrote {folder / 'report.html'}; also params.csv, {tables} and fit.zip there.")
        tell_replaced(replaced)


def end(*fits: AnyFit, stopped: str = "") -> None:
    """Leave with the status that tells how the fits ended; the reason of a bad one goes to standard error, and so does
    what Ctrl-C `stopped`."""
    for one in fits:
        if not one.converged:
            say(" ".join(f"{one.method} did not converge ({one.status.code}): {in_flags(one.status.message)}".split()))
    if stopped:
        say(stopped)
    interrupted = bool(stopped) or any(one.status.interrupted for one in fits)
    status = INTERRUPTED if interrupted else WELL if all(one.converged for one in fits) else UNCONVERGED
    if status:
        raise typer.Exit(status)


def describe(found: AnyFit) -> dict[str, Any]:
    """A fit for programs."""
    goals = found.demonstrations.goal_states
    trips = {} if goals is None else {"trips": found.demonstrations.origins.size, "goals": goals.size}
    from revealed.commands.tables import params_frame

    frame = params_frame(found)
    status, goodness = found.status, found.goodness
    return {
        "method": found.method,
        "converged": found.converged,
        "status": {"code": status.code, "message": in_flags(status.message), "interrupted": status.interrupted},
        "notes": [in_flags(note) for note in status.notes],
        "params": [
            {str(name): value for name, value in zip(frame.columns, row, strict=True)}
            for row in frame.itertuples(index=False)
        ],
        "llf": found.llf,
        "llnull": found.llnull,
        "llsat": found.llsat,
        "prsquared": found.prsquared,
        "prsquared_adj": found.prsquared_adj,
        "hit_rate": found.hit_rate,
        "goodness_of_fit": None if isinstance(goodness, str) else goodness.to_dict(),
        "aic": found.aic,
        "bic": found.bic,
        "nobs": found.nobs,
        "decisions": found.n_decisions,
        "agents": found.demonstrations.n_agents,
        **trips,
        "states": found.mdp.n_states,
        "actions": found.mdp.n_actions,
        "discount": found.mdp.discount,
        "seconds": found.seconds,
    }
