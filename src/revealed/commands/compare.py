"""`revealed compare`: all methods on the same data, side by side, and which of them suits it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.commands.fit import describe, end, with_bootstrap
from revealed.commands.flags import Config, Force, Json, with_options
from revealed.commands.terminal import one_line, print_json, show, tell, tell_replaced
from revealed.commands.wording import PANEL, in_flags
from revealed.errors import RevealedError

if TYPE_CHECKING:
    from revealed.fit import AnyFit
    from revealed.recipe import Recipe

METHODS = ("nfxp", "ccp", "npl")
GOALS = (
    "No recommendation for trips with goals: use NFXP, which shares computations across goals and needs no first step."
)
SAME = "MCE-IRL is another name for NFXP: its estimates are those in the column NFXP."


def compare(config: Config = None, json: Json = False, force: Force = False, **options: Any) -> None:
    """Run every method on the same data and recommend one.

    Prints the estimates of NFXP (= MCE-IRL), CCP and NPL side by side, then a recommendation and the measurements
    behind it. With --out, also writes compare.csv, advice.txt, compare.html, config.toml, and one folder per method, as
    revealed fit does.

    \b
    Example:
      revealed compare trips.parquet --id rider --time t --state station --action choice \\
          --features stations.csv --discount 0.95 --out trips-compared
    """
    with one_line():
        from revealed.commands.folder import OURS
        from revealed.commands.placing import claim, has_results, keep, require_out
        from revealed.recipe import Recipe

        recipe = Recipe.from_flags(options, config)
        require_out(recipe.out, force)
        folder = None if recipe.out is None else claim(recipe.out, OURS, force)
        found = _run(recipe)
        replaced = has_results(folder, OURS)
        files = keep(folder, OURS, lambda beside, home: _write(beside, home, recipe, found))
        if json:
            print_json(_describe(found) | {"files": files, "replaced": replaced})
        else:
            _show(found, folder)
            tell_replaced(replaced)
        end(*found.fits.values(), stopped=found.stopped)


with_options(compare, leave_out=("method",))


@dataclass
class Compared:
    """What came of it: fits by method, the advice, and why there is no more; `stopped` says what Ctrl-C ended."""

    fits: dict[str, AnyFit] = field(default_factory=dict)
    advice: Any = None
    failed: list[str] = field(default_factory=list)
    stopped: str = ""

    @property
    def notes(self) -> list[str]:
        return [SAME, *self.failed, *([self.stopped] if self.stopped else [])]


def _run(recipe: Recipe) -> Compared:
    """Every method, then the advice. Where no method has an estimate, the first error is the user's; Ctrl-C keeps what
    was finished."""
    recipe.prepare()  # whose mistakes are no method's failure
    found = Compared()
    first: RevealedError | None = None
    try:
        for method in METHODS:
            try:
                found.fits[method], found.stopped = with_bootstrap(recipe.fit(method))
            except RevealedError as error:
                first = first or error
                found.failed.append(f"{method.upper()} has no estimate: {in_flags(error, PANEL)}")
            if found.stopped or (method in found.fits and found.fits[method].status.interrupted):
                found.stopped = found.stopped or "stopped: the remaining methods were not run."
                return found
        if not found.fits and first is not None:
            raise first
        found.advice = _advise(recipe, found.failed)
    except KeyboardInterrupt:
        if not found.fits:
            raise
        missing = [method.upper() for method in METHODS if method not in found.fits]
        found.stopped = f"stopped before {', '.join(missing) or 'the recommendation'}; finished results are kept."
    return found


def _advise(recipe: Recipe, failed: list[str]) -> Any:
    """What the advisor says of the methods with these options; None, with a note, where it cannot say anything."""
    from revealed.advisor import advise

    if recipe.demonstrations.goals is not None:
        failed.append(GOALS)
        return None
    options: dict[str, Any] = recipe.options | ({} if recipe.updates is None else {"updates": recipe.updates})
    try:
        return advise(recipe.mdp, recipe.demonstrations, recipe.reward_model, seed=recipe.seed, **options)
    except RevealedError as error:
        failed.append(f"no advice: {in_flags(error, PANEL)}")
        return None


def _table(fits: dict[str, AnyFit]) -> Any:
    from revealed.comparison import compare_fits

    return compare_fits(list(fits.values()))


def _show(found: Compared, folder: Path | None) -> None:
    show(_table(found.fits))
    tell(SAME)
    for line in found.failed:
        tell(line)
    if found.advice is not None:
        print()
        show(found.advice)
    if folder is not None:
        tell(f"Wrote {folder / 'compare.html'}; also compare.csv, advice.txt and a folder per method there.")


def _write(beside: Path, home: Path, recipe: Recipe, found: Compared) -> dict[str, Any]:
    from revealed.commands.folder import write_config, write_fit
    from revealed.commands.placing import write_frame, write_text

    table = _table(found.fits)
    frame = table.to_frame()
    frame.columns = [" ".join(pair) for pair in frame.columns]
    write_frame(beside / "compare.csv", frame.rename_axis("parameter").reset_index())
    advice = [] if found.advice is None else [found.advice.text(reword=in_flags)]
    write_text(beside / "advice.txt", "\n".join([*advice, *found.notes]))
    write_text(beside / "compare.html", _page(table, found.advice, found.notes))
    for method, fit in found.fits.items():
        (beside / method).mkdir()
        write_fit(fit, beside / method, recipe, home / method, method=method)
    write_config(beside, recipe, home, "compare")
    files = {name.partition(".")[0]: str(home / name) for name in ("compare.csv", "advice.txt", "config.toml")}
    return files | {"page": str(home / "compare.html"), **{method: str(home / method) for method in found.fits}}


def _page(table: Any, advice: Any, said: list[str]) -> str:
    from revealed.page import Html, contents, document, join, paragraph, section, tag

    parts = [section("Estimates", Html(table.to_html()), *map(paragraph, said), id="estimates")]
    titles = {"estimates": "Estimates"}
    if advice is not None:
        parts.append(section("Which method", Html(advice.to_html()), id="advice"))
        titles["advice"] = "Which method"
    title = "Methods side by side"
    return document(title, tag("h1", title), contents(titles), join(parts, "\n"))


def _describe(found: Compared) -> dict[str, Any]:
    return {
        "fits": {method: describe(fit) for method, fit in found.fits.items()},
        "advice": None if found.advice is None else found.advice.to_dict(),
        "notes": found.notes,
    }
