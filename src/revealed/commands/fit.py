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
)

if TYPE_CHECKING:
    from revealed.fit import Fit


def fit(config: Config = None, json: Json = False, force: Force = False, **options: Any) -> None:
    """Estimate a reward from a file of decisions.

    Prints the summary and, with --out, writes a folder: params.csv, policy.csv, states.csv, history.csv, summary.txt,
    report.html (coefficients, fit of choices, convergence, diagnostics, maps), fit.zip (which rv.load reads) and
    config.toml, from which the same run can be repeated.

    Exit status: 0 converged, 1 a mistake in the input, 3 ran but did not converge (results are written), 130 Ctrl-C.

    \b
    Example:
      revealed fit trips.parquet --id rider --time t --state station --action choice \\
          --features stations.csv --discount 0.95 --method npl --out trips-fit
    \b
    Example: continuous states
      revealed fit buses.csv --id bus --time month --state miles --action replace \\
          --bins miles=90 --constants --discount 0.9999 --method nfxp --out buses-fit
    \b
    Example: the same run again
      revealed fit --config trips-fit/config.toml --out again
    """
    with one_line():
        from revealed.commands.folder import claim, write_fit
        from revealed.recipe import Recipe

        recipe = Recipe.from_flags(options, config)
        folder = None if recipe.out is None else claim(recipe.out, force)
        found = recipe.fit()
        files = {} if folder is None else write_fit(found, folder, recipe)
        if json:
            print_json(describe(found) | {"files": files})
        else:
            show_fit(found, folder)
        end(found)


with_options(fit)


def show_fit(found: Fit, folder: Path | None) -> None:
    """The summary, what was left out of the data, and where things are."""
    show(found.summary())
    if folder is None:
        tell("Nothing was written: --out DIR does.")
    else:
        tell(f"Wrote {folder / 'report.html'}; also params.csv, policy.csv, states.csv and fit.zip there.")


def end(*fits: Fit) -> None:
    """Leave with the status that tells how the fits ended; the reason of a bad one goes to standard error."""
    for one in fits:
        if not one.converged:
            say(" ".join(f"{one.method} {one.status.code}: {one.status.message}".split()))
    interrupted = any(one.status.interrupted for one in fits)
    status = INTERRUPTED if interrupted else WELL if all(one.converged for one in fits) else UNCONVERGED
    if status:
        raise typer.Exit(status)


def describe(found: Fit) -> dict[str, Any]:
    """A fit for programs."""
    from revealed.commands.tables import params_frame

    frame = params_frame(found)
    status = found.status
    return {
        "method": found.method,
        "converged": found.converged,
        "status": {"code": status.code, "message": status.message, "interrupted": status.interrupted},
        "notes": list(status.notes),
        "params": [
            {str(name): value for name, value in zip(frame.columns, row, strict=True)}
            for row in frame.itertuples(index=False)
        ],
        "llf": found.llf,
        "aic": found.aic,
        "bic": found.bic,
        "nobs": found.nobs,
        "agents": found.demonstrations.n_agents,
        "states": found.mdp.n_states,
        "actions": found.mdp.n_actions,
        "discount": found.mdp.discount,
        "seconds": found.seconds,
    }
