"""Rust's Table IX as a reader meets it: on the terminal, and as CSV and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revealed.experiments.rust import LIKELIHOOD, LOOSER, TOLERANCE, Replication
from revealed.files import prepare_folder, write_atomically
from revealed.latex import tabular

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

WIDE = 80  # columns of a terminal for the roomy form
YES, NO = "✓", "differs"
CAPTIONS = {
    "estimates": "Rust (1987), Table IX: our estimates and the published ones, NFXP, 90 bins, linear cost; "
    "standard errors are the outer product of gradients of decisions and increments",
    "methods": "NFXP, CCP and NPL on Rust's buses, discount 0.9999, 90 bins, linear cost",
    "tests": "Likelihood-ratio tests on Rust's buses; published: twice the difference of the printed likelihoods",
}


def show(found: Replication) -> None:
    """Print the three tables and the notes, in the width of the terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    for beta, rows in found.estimates.groupby("discount", sort=False):
        title = f"Rust (1987), Table IX, discount {beta:g}: NFXP and published (s.e.)"
        _print(console, title, estimates_as_text(rows).drop(columns="discount"), "groups")
    title = "The same by every method, discount 0.9999 (NPL begins with frequencies)"
    _print(console, title, methods_as_text(found.methods), "groups")
    title = "Likelihood-ratio tests, ours and published"
    _print(console, title, tests_as_text(found.tests), "hypothesis")
    for line in _last_words(found):
        console.print(line, markup=False)


def write(found: Replication, folder: Path) -> list[Path]:
    """CSV files of all digits, and LaTeX of what a paper prints."""
    texts = {
        "estimates": estimates_as_text(found.estimates),
        "methods": methods_as_text(found.methods),
        "tests": tests_as_text(found.tests),
    }
    target = prepare_folder(folder)
    written = []
    for name, shown in texts.items():
        csv = getattr(found, name).to_csv(index=False, lineterminator="\n")
        latex = tabular(shown, CAPTIONS[name])
        written += [
            write_atomically(target / f"rust_{name}.csv", csv.encode("utf-8")),
            write_atomically(target / f"rust_{name}.tex", latex.encode("utf-8")),
        ]
    return written


def estimates_as_text(estimates: pd.DataFrame) -> pd.DataFrame:
    """Three rows per sample: ours, published, and whether they agree; a column per quantity."""
    import pandas as pd

    rows = []
    for (groups, beta), part in estimates.groupby(["groups", "discount"], sort=False):
        head = {"groups": groups, "discount": f"{beta:g}"}
        of = part.to_dict("records")
        ours = {q["quantity"]: _cell(q, "ours", "standard error") for q in of}
        published = {q["quantity"]: _cell(q, "published", "published error") for q in of}
        agree = {q["quantity"]: _verdict(q) for q in of}
        rows.append(head | {"": "ours"} | ours)
        if any(agree.values()):
            rows += [head | {"": "published"} | published, head | {"": "agree"} | agree]
    return pd.DataFrame(rows)


def _cell(row: dict[Any, Any], value: str, error: str) -> str:
    """Digits as published, the standard error below the estimate."""
    if isnan(row[value]):
        return ""
    if row["quantity"] == LIKELIHOOD:
        return f"{row[value]:.3f}"
    digits = 4 if row["quantity"].startswith("theta3") else 3
    return f"{row[value]:.4f}" + ("" if isnan(row[error]) else f"\n({row[error]:.{digits}f})")


def _verdict(row: dict[Any, Any]) -> str:
    """Empty where nothing was published to agree with."""
    judged = [row[name] for name in ("agrees", "error agrees") if row[name] is not None]
    return (YES if all(judged) else NO) if judged else ""


def methods_as_text(methods: pd.DataFrame) -> pd.DataFrame:
    shown = methods.astype(dict.fromkeys(methods.columns, object))
    for name, form in {
        "RC": "{:.4f}",
        "theta11": "{:.4f}",
        LIKELIHOOD: "{:.3f}",
        "from NFXP": "{:.1e}",
        "seconds": "{:.3f}",
    }.items():
        shown[name] = [form.format(value) for value in methods[name]]
    shown.loc[methods["method"] == "NFXP", "from NFXP"] = "–"
    return shown


def tests_as_text(tests: pd.DataFrame) -> pd.DataFrame:
    shown = tests.astype(dict.fromkeys(tests.columns, object))
    for name, form in {"statistic": "{:.3f}", "published": "{:.3f}", "df": "{:g}", "p-value": "{:.2g}"}.items():
        shown[name] = ["" if isnan(value) else form.format(value) for value in tests[name]]
    return shown


def _print(console: Console, title: str, shown: pd.DataFrame, section: str) -> None:
    """A number is never broken in two: a terminal that is too narrow even for the narrow form gets longer lines."""
    from rich.console import Console
    from rich.measure import Measurement

    table = _table(title, shown, section, narrow=console.width < WIDE)
    least = Measurement.get(console, console.options.update(width=WIDE), table).minimum
    wide_enough = console if least <= console.width else Console(highlight=False, width=least)
    wide_enough.print(table, "")


def _table(title: str, shown: pd.DataFrame, section: str, narrow: bool) -> Table:
    """A frame of texts; what the rows of a section share is said once, above them. Numbers have a line each; where it
    is narrow the heads and the first column take several."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=Text(title, style="bold"), title_justify="left", title_style="")
    table.show_edge = False
    if narrow:
        table.pad_edge, table.padding = False, (0, 1, 0, 0)
    columns = [str(name) for name in shown.columns if name != section]
    for k, name in enumerate(columns):
        head = Text(name.replace(" ", "\n") if narrow else name)
        table.add_column(head, justify="left" if k == 0 else "right", no_wrap=k > 0 or not narrow)
    for label, part in shown.groupby(section, sort=False):
        table.add_row(Text(str(label), style="bold"))
        for cells in part[columns].itertuples(index=False):
            table.add_row(*(Text(str(cell), style=_style(str(cell))) for cell in cells))
        table.add_section()
    return table


def _style(cell: str) -> str:
    return {YES: "green", NO: "red"}.get(cell, "")


def _last_words(found: Replication) -> Iterable[str]:
    yield (
        f"{YES}: within {TOLERANCE:g} in parameters and {LOOSER:g} in likelihood and standard errors. "
        "Log likelihoods are of decisions and increments, in the model solved at the estimate; published tests are "
        "from the printed ones. "
        f"Data: {found.source}."
    )
    yield from found.notes
