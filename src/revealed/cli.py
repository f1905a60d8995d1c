"""The command line: what the program is called and which commands it has. They are in `revealed.commands`.

What is heavy is imported inside the commands, so that `--help` is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from revealed import __version__
from revealed.commands.compare import compare
from revealed.commands.fit import fit
from revealed.commands.reproduce import report, reproduce
from revealed.commands.saved import counterfactual, predict, simulate
from revealed.commands.terminal import Command, Commands, take_any_letter

app = typer.Typer(
    name="revealed",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"revealed {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Recover what agents want from what they do.

    Inverse reinforcement learning and dynamic discrete choice estimation as one problem: NFXP = MCE-IRL, CCP and NPL.

    \b
    Example: estimate from a file of decisions; write a folder of results with a report
      revealed fit trips.parquet --id rider --time t --state station --action choice \\
          --features stations.csv --discount 0.95 --method npl --out trips-fit
    \b
    Example: the paper's experiments, with figures, tables and verdicts
      revealed reproduce --scale quick --out results/quick --jobs 2
    """
    take_any_letter()


for command in (fit, compare, predict, simulate, counterfactual, reproduce, report):
    app.command(cls=Command)(command)
