"""The folder of a fit: what is written there, and how it is found again."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.commands.placing import CONFIG, HEAD, write_frame, write_text
from revealed.commands.tables import Names, history_frame, params_frame, policy_frame, states_frame
from revealed.commands.trip_tables import trips_frame, use_frame
from revealed.commands.wording import in_flags
from revealed.errors import RevealedError
from revealed.fit import AnyFit
from revealed.goal_fit import GoalFit
from revealed.typed import written_bins

if TYPE_CHECKING:
    import pandas as pd

    from revealed.recipe import Recipe

ZIP = "fit.zip"
TABLES = {"policy.csv": policy_frame, "states.csv": states_frame}
TRIP_TABLES = {"flows.csv": use_frame, "trips.csv": trips_frame}  # with goals a state has a policy for each
SHARED = ("params.csv", "history.csv", "summary.txt", ZIP, "report.html", CONFIG)
COMPARED = ("compare.csv", "advice.txt", "compare.html", "nfxp", "ccp", "npl")
OURS = (*SHARED, *TABLES, *TRIP_TABLES, *COMPARED)  # what a folder of results may hold


def tables_of(fit: AnyFit) -> Mapping[str, Callable[[Any, Names], pd.DataFrame]]:
    """The tables that tell of states, by the names of their files."""
    return TRIP_TABLES if isinstance(fit, GoalFit) else TABLES


def write_fit(fit: AnyFit, folder: Path, recipe: Recipe, home: Path, **changes: Any) -> dict[str, str]:
    """Everything that is known of a fit, into a folder whose files will be in `home`; what each is called there, by
    what it holds. `changes` are what the fit's own options are beside the recipe's."""
    from revealed.fit_report import write_fit_report

    names = names_of(recipe)
    write_frame(folder / "params.csv", params_frame(fit))
    for name, make in tables_of(fit).items():
        write_frame(folder / name, make(fit, names))
    write_frame(folder / "history.csv", history_frame(fit))
    write_text(folder / "summary.txt", fit.summary().text(reword=in_flags))
    fit.save(folder / ZIP)
    places = recipe.places
    flat = places if places is not None and places.shape[1] == 2 and recipe.coordinates else None
    roads = recipe.road_network if recipe.on_roads else None
    write_fit_report(fit, folder / "report.html", coordinates=flat, network=roads)
    write_config(folder, recipe, home, **changes)
    return {Path(name).stem: str(home / name) for name in (*SHARED, *tables_of(fit))}


def write_config(folder: Path, recipe: Recipe, home: Path, command: str = "fit", **changes: Any) -> Path:
    """Every option but where the results go: a run that is repeated, with changes maybe, must not go over the first."""
    from dataclasses import replace

    head = f"{HEAD}{command} --config {CONFIG} --out DIR\n# Paths are relative to this file.\n"
    if recipe.binned is not None:  # cut anew, other data would fall into other bins
        changes["bins"] = written_bins(recipe.binned)
        asked = ", ".join(text for text in recipe.bins if text not in changes["bins"])
        head += f"# Bins by their edges; originally given as {' '.join(asked.split())}.\n" if asked else ""
    return write_text(folder / CONFIG, head + replace(recipe, out=None, **changes).to_toml(home))


def names_of(recipe: Recipe) -> Names:
    return _names({name: getattr(recipe, name) for name in Names.__dataclass_fields__})


def _names(found: Mapping[str, Any]) -> Names:
    """Those that were given; the others have names of their own."""
    known = Names.__dataclass_fields__
    return Names(**{name: found[name] for name in known if name in found and found[name] not in (None, ())})


def open_fit(path: str | os.PathLike[str]) -> tuple[Any, Names]:
    """A saved fit, a folder or its zip, and what the columns of its data were called (plain names if it is not
    known)."""
    from revealed.loading import load

    fit = load(path)
    return fit, _names_beside(Path(path))


def _names_beside(path: Path) -> Names:
    from revealed.description import Description, read_toml

    file = (path if path.is_dir() else path.parent) / CONFIG
    if not file.is_file():
        return Names()
    try:
        found: Mapping[str, Any] = read_toml(Description, file)
    except RevealedError:
        return Names()
    return _names(found)
