"""The command line. What is heavy is imported inside the commands, so that `--help` is quick."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from revealed import __version__
from revealed.errors import RevealedError

app = typer.Typer(
    name="revealed",
    no_args_is_help=True,
    add_completion=False,
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
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """What agents want, from what they do.

    Inverse reinforcement learning and dynamic discrete choice as one problem: NFXP = MCE-IRL, CCP and NPL.

    \b
    Example: recover a known reward by all four methods
      revealed reproduce --out results/demonstration --seed 1
    """
    # a pipe or console that lacks a Greek letter gets a question mark, not an exception
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for the results; made if it is not there.")] = Path(
        "results/demonstration"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated walks and of the network's start.")] = 0,
) -> None:
    """Recover a known reward by the four methods, side by side.

    Prints the estimates beside the truth, and writes rewards.png (true and recovered rewards) and estimates.csv.
    It takes some ten seconds.

    \b
    Example:
      revealed reproduce --out results/demonstration --seed 1
    """
    with _one_line():
        from revealed.experiments.demonstration import Config, run

        run(Config(seed=seed), out)


@contextmanager
def _one_line() -> Iterator[None]:
    """A mistake of the user's ends in one line on standard error and exit status 1; a bug keeps its traceback."""
    try:
        yield
    except RevealedError as error:
        typer.echo(f"revealed: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(1) from None
