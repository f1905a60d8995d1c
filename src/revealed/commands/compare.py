"""`revealed compare`: all methods on the same data, side by side, and which of them suits it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.commands.fit import describe, end
from revealed.commands.flags import Config, Force, Json, with_options
from revealed.commands.terminal import one_line, print_json, show, tell
from revealed.errors import RevealedError

if TYPE_CHECKING:
    from revealed.fit import Fit
    from revealed.recipe import Recipe

METHODS = ("nfxp", "ccp", "npl")
SAME = "MCE-IRL is NFXP under its other name: its estimates are those of the column NFXP."


def compare(config: Config = None, json: Json = False, force: Force = False, **options: Any) -> None:
    """Run every method on the same data, and say which suits it.

    Prints estimates of NFXP (= MCE-IRL), CCP and NPL side by side, then the advice and what it rests on. With --out it
    writes compare.csv, advice.txt, compare.html, config.toml, and a folder per method as revealed fit does.

    \b
    Example:
      revealed compare trips.parquet --id rider --time t --state station --action choice \\
          --features stations.csv --discount 0.95 --out trips-compared
    """
    with one_line():
        from revealed.commands.folder import claim
        from revealed.recipe import Recipe

        recipe = Recipe.from_flags(options, config)
        folder = None if recipe.out is None else claim(recipe.out, force)
        fits, failed = _run(recipe)
        advice = _advise(recipe, failed)
        files = {} if folder is None else _write(folder, recipe, fits, advice, failed)
        if json:
            print_json(_describe(fits, advice, failed) | {"files": files})
        else:
            _show(fits, advice, failed, folder)
        end(*fits.values())


with_options(compare, leave_out=("method",))


def _run(recipe: Recipe) -> tuple[dict[str, Fit], list[str]]:
    """The fits, and what kept a method from having one; where none has, its error is the user's."""
    fits: dict[str, Fit] = {}
    failed: list[RevealedError] = []
    recipe.prepare()  # whose mistakes are no method's failure
    for method in METHODS:
        try:
            fits[method] = recipe.fit(method)
        except RevealedError as error:
            failed.append(error)
    if not fits:
        raise failed[0]
    missing = [method.upper() for method in METHODS if method not in fits]
    return fits, [f"{name} has no estimate: {error}" for name, error in zip(missing, failed, strict=True)]


def _advise(recipe: Recipe, failed: list[str]) -> Any:
    """What the advisor says; None, with a note, where it cannot say anything."""
    from revealed.advisor import advise

    try:
        return advise(recipe.mdp, recipe.demonstrations, recipe.reward_model, seed=recipe.seed)
    except RevealedError as error:
        failed.append(f"no advice: {error}")
        return None


def _table(fits: dict[str, Fit]) -> Any:
    from revealed.comparison import compare_fits

    return compare_fits(list(fits.values()))


def _show(fits: dict[str, Fit], advice: Any, failed: list[str], folder: Path | None) -> None:
    show(_table(fits))
    tell(SAME)
    for line in failed:
        tell(line)
    if advice is not None:
        print()
        show(advice)
    if folder is not None:
        tell(f"Wrote {folder / 'compare.html'}; also compare.csv, advice.txt and a folder per method there.")


def _write(folder: Path, recipe: Recipe, fits: dict[str, Fit], advice: Any, failed: list[str]) -> dict[str, Any]:
    from revealed.commands.folder import write_config, write_fit, write_frame, write_text

    table = _table(fits)
    frame = table.to_frame()
    frame.columns = [" ".join(pair) for pair in frame.columns]
    write_frame(folder / "compare.csv", frame.rename_axis("parameter").reset_index())
    said = [*([] if advice is None else [str(advice)]), SAME, *failed]
    write_text(folder / "advice.txt", "\n".join(said))
    write_text(folder / "compare.html", _page(table, advice, [SAME, *failed]))
    for method, fit in fits.items():
        (folder / method).mkdir(exist_ok=True)
        write_fit(fit, folder / method, recipe, method=method)
    write_config(folder, recipe, "compare")
    files = {name.partition(".")[0]: str(folder / name) for name in ("compare.csv", "advice.txt", "config.toml")}
    return files | {"page": str(folder / "compare.html"), **{method: str(folder / method) for method in fits}}


def _page(table: Any, advice: Any, said: list[str]) -> str:
    from revealed.page import Html, contents, document, join, paragraph, section, tag

    parts = [section("Estimates", Html(table.to_html()), *map(paragraph, said), id="estimates")]
    titles = {"estimates": "Estimates"}
    if advice is not None:
        parts.append(section("Which method", Html(advice.to_html()), id="advice"))
        titles["advice"] = "Which method"
    title = "Methods side by side"
    return document(title, tag("h1", title), contents(titles), join(parts, "\n"))


def _describe(fits: dict[str, Fit], advice: Any, failed: list[str]) -> dict[str, Any]:
    return {
        "fits": {method: describe(fit) for method, fit in fits.items()},
        "advice": None if advice is None else advice.to_dict(),
        "notes": [SAME, *failed],
    }
