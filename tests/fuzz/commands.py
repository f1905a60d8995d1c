"""The commands as doors: each option of each command given a hostile text.

A command that goes well is fine; one that ends with status 1 or 3 and one line on standard error has refused. Anything
else, a traceback or several lines, is an escape. Reports are written without figures, which take most
of the time.
"""

from __future__ import annotations

import inspect
import os
from contextlib import chdir
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

import streets
import trips
from fuzz.doors import Door
from networks import WINDY_NAMES, windy_tables
from revealed.cli import app
from revealed.errors import RevealedError
from revealed.labels import text_of
from shell import here, leave_out_reports

UNFINISHED = 3  # the status of a command whose fit did not converge
HOME = "cli"  # the folder of the files below
PANEL: dict[str, Any] = {"panel": "cli/trips.csv", **trips.NAMES, "features": "cli/stations.csv", "columns": "shops"}
BUSES: dict[str, Any] = {"panel": "cli/buses.csv", "id": "bus", "time": "month", "period": "month", "state": "miles"}
BUSES |= {"action": "decision", "bins": "miles=4", "discount": "0.9", "reward": "tabular", "l2": "0.01"}
GRID: dict[str, Any] = {"panel": "cli/grid.csv", "id": "who", "time": "t", "state": "x,y", "action": "go"}
GRID |= {"next_state": "x2,y2", "weight": "times", "terminal": "2,2", "reward": "tabular", "l2": "0.01"}
ROADS: dict[str, Any] = {"panel": "cli/roads.csv", "network": "cli/links.csv", "columns": "travel_time", "l2": "0.01"}
GOALS: dict[str, Any] = {"panel": "cli/panel.csv", **WINDY_NAMES, "features": "cli/pairs.csv", "discount": "0.9"}
# a name, the command and its valid options
LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "cli.fit": ("fit", PANEL | {"discount": "0.9"}),
    "cli.fit/out": ("fit", PANEL | {"discount": "0.9", "out": "made", "force": True}),
    "cli.fit/npl": ("fit", PANEL | {"discount": "0.9", "method": "npl", "transitions": "cli/moves.csv"}),
    "cli.fit/horizon": ("fit", PANEL | {"discount": "0.9", "horizon": "25", "method": "ccp"}),
    "cli.fit/buses": ("fit", BUSES),
    "cli.fit/grid": ("fit", GRID | {"discount": "0.9"}),
    "cli.fit/goals": ("fit", GOALS),
    "cli.fit/roads": ("fit", ROADS),
    "cli.fit/errors": ("fit", PANEL | {"discount": "0.9", "errors": "bootstrap", "reps": "3", "joint": True}),
    "cli.fit/config": ("fit", {"config": "cli/fit/config.toml"}),
    "cli.compare": ("compare", PANEL | {"discount": "0.9"}),
    "cli.predict": ("predict", {"saved": "cli/fit"}),
    "cli.predict/goals": ("predict", {"saved": "cli/goals", "goal": "c2"}),
    "cli.simulate": ("simulate", {"saved": "cli/fit", "n": "3", "length": "4"}),
    "cli.simulate/goals": ("simulate", {"saved": "cli/goals", "n": "3"}),
    "cli.predict/roads": ("predict", {"saved": "cli/roads", "goal": "11-10"}),
    "cli.counterfactual": ("counterfactual", {"saved": "cli/fit", "change": "shops=1"}),
    "cli.counterfactual/goals": ("counterfactual", {"saved": "cli/goals", "change": "x0=-1"}),
    "cli.counterfactual/roads": ("counterfactual", {"saved": "cli/roads", "close": "00-01"}),
}


@dataclass(frozen=True)
class CommandDoor(Door):
    """A command line; what takes the place of an option is given as its text, None leaves the option out."""

    @cached_property
    def function(self) -> Any:  # type: ignore[override]
        command, valid = LINES[self.name]

        def call(**changes: Any) -> None:
            run(command, valid | changes)

        free = inspect.Parameter.KEYWORD_ONLY
        own = [inspect.Parameter(name, free, default=None) for name in _options(command)]
        call.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
        return call


@cache
def command_doors() -> tuple[Door, ...]:
    return tuple(CommandDoor(name, name.partition("/")[0]) for name in LINES)


@cache
def _options(command: str) -> dict[str, Any]:
    return {option.name: option for option in typer.main.get_command(app).commands[command].params}  # type: ignore[attr-defined]


def run(command: str, given: dict[str, Any]) -> None:
    """The command in this process. A refusal is raised as an error with its line."""
    files()
    words = [word for name, value in given.items() for word in _words(_options(command)[name], value)]
    with pytest.MonkeyPatch.context() as patch:
        leave_out_reports(patch)
        done = here(command, *words)
    if done.exit_code == 0:
        return
    said = [line for line in done.stderr.strip().splitlines() if line]
    errors = [line for line in said if not line.startswith("revealed: note: ")]  # notes on a saved fit come first
    plain = bool(said) and all(line.startswith("revealed: ") for line in said)
    one = len(errors) == 1 or done.exit_code == UNFINISHED  # then each fit says what is wrong with it
    if done.exit_code not in (1, UNFINISHED) or not (plain and one):
        raise AssertionError(f"exit {done.exit_code}: {done.stderr}")
    raise RevealedError(said[-1])


def _words(option: Any, value: Any) -> list[str]:
    """`--discount 0.9`; a switch is on with True; an argument has no flag."""
    if value is None:
        return []
    if getattr(option, "is_flag", False):
        return [] if not isinstance(value, bool) else option.opts[:1] if value else option.secondary_opts[:1]
    flags = option.opts if option.opts[0].startswith("-") else []
    return [*flags, _text(value)]


def _text(value: Any) -> str:
    """Texts and numbers as they would be typed; of anything else, what kind of thing it is."""
    if isinstance(value, str | bytes | os.PathLike):
        return os.fsdecode(value)
    return text_of(value) if isinstance(value, int | float) else type(value).__name__


def files() -> None:
    """Tables and the fits made of them, once in a folder."""
    if os.path.exists(f"{HOME}/done"):
        return
    os.makedirs(HOME, exist_ok=True)
    trips.write(Path(HOME))
    with chdir(HOME):
        write_goals()
        write_roads()
    with pytest.MonkeyPatch.context() as patch:
        leave_out_reports(patch)
        for options, folder in ((LINES["cli.fit"][1], "fit"), (GOALS, "goals"), (ROADS, "roads")):
            words = [word for name, value in options.items() for word in _words(_options("fit")[name], value)]
            done = here("fit", *words, "--out", f"{HOME}/{folder}", "--force")
            assert done.exit_code == 0, done.stderr
    Path(f"{HOME}/done").touch()


def write_roads() -> None:
    """Links of a small network, and trips on it: a row per link passed."""
    streets.streets(2).links_frame.to_csv("links.csv", index=False)
    ways = (("00-01", "01-11", "11-10"), ("00-10", "10-11"), ("01-00", "00-10", "10-11"), ("01-11", "11-10"))
    rows = [(trip, k, link) for trip in range(12) for k, link in enumerate(ways[trip % 4])]
    pd.DataFrame(rows, columns=["trip", "sequence", "link"]).to_csv("roads.csv", index=False)


def write_goals() -> None:
    walks, pairs = windy_tables()
    walks.to_csv("panel.csv", index=False)
    pairs.to_csv("pairs.csv", index=False)
