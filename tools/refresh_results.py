"""Bring a run's figures, verdicts and times into README.md and docs/reproduce.md:

    revealed reproduce --scale paper
    python tools/refresh_results.py results/paper

Blocks between `<!-- NAME: begin -->` and `<!-- NAME: end -->` are replaced; everything else stays.
"""

import csv
import json
import re
import shutil
import sys
from pathlib import Path

import pandas as pd

from revealed.claim_words import COUNTED, READINGS, SAME, in_one_reading, shown_where
from revealed.experiments.catalogue import EXPERIMENTS
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, UNTESTED
from revealed.experiments.runner import results_of
from revealed.experiments.store import Store
from revealed.experiments.time_tables import cost_of_a_step
from revealed.findings import read_plan

Row = dict[str, str]  # a verdict: what the report's `claims_table` writes
ROOT = Path(__file__).parents[1]
MARKS = {HOLDS: "**holds**", FAILS: "does not hold", UNDECIDED: "*undecided*", UNTESTED: "*not tested*", "": SAME}
# which figure of a run is shown under which name; one that the run does not have stays as it is
IMAGES = {"obstacleworld-section5.png": "reproduced.png", "specifications-few-others-poor.png": "specifications.png"}


def main(folder: Path) -> None:
    copy_images(folder / "figures", ROOT / "docs" / "images")
    shutil.copy(folder / "tables" / "verdicts.csv", ROOT / "docs" / "verdicts.csv")
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    rows = pd.read_csv(folder / "table.csv", low_memory=False)
    verdicts = read_verdicts(folder / "tables" / "verdicts.csv")
    blocks = {
        "counts": counts(verdicts),
        "verdicts": summary(verdicts),
        "summary": specifications(verdicts),
        "findings": findings(verdicts),
        "minutes": minutes(rows, about["scale"]),
        "machine": machine(about, rows),
        "speed": stored(folder / "tables" / "timing-table2.csv"),
        "aims": stored(folder / "tables" / "timing-aims.csv"),
        "ours": stored(folder / "tables" / "timing-ours.csv"),
        "cost": step_cost(folder),
    }
    for page in (ROOT / "README.md", ROOT / "docs" / "reproduce.md"):
        text = page.read_text(encoding="utf-8")
        for name, block in blocks.items():
            between = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
            text = between.sub(lambda found, block=block: f"{found[1]}{block}\n{found[2]}", text)
        page.write_text(text, encoding="utf-8")


def read_verdicts(file: Path) -> list[Row]:
    with file.open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def copy_images(figures: Path, images: Path) -> None:
    for name, shown in IMAGES.items():
        if (figures / name).is_file():
            shutil.copy(figures / name, images / shown)


def markdown(header: list[str], rows: list[list[str]]) -> str:
    escaped = [[" ".join(cell.split()).replace("|", r"\|") for cell in row] for row in rows]
    lines = ["| " + " | ".join(line) + " |" for line in (header, *escaped)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def counts(verdicts: list[Row]) -> str:
    """A sentence for each reading."""
    literal = [v["algorithm1"] or v["verdict"] for v in verdicts]
    first = tally([v["verdict"] for v in verdicts])
    pairs = [(v["verdict"], v["algorithm1"] or v["verdict"]) for v in verdicts]
    return (
        f"Of {len(verdicts)} claims, in the reading of “Method Dependencies”: {first}.\n"
        f"With Algorithm 1 taken literally: {tally(literal)}.\n\n{in_one_reading(pairs)}"
    )


def tally(found: list[str]) -> str:
    """How many of each kind; kinds that did not occur are left out, but for the first two."""
    return ", ".join(f"{found.count(one)} {COUNTED[one]}" for one in COUNTED if one in found or one in (HOLDS, FAILS))


def summary(verdicts: list[Row]) -> str:
    """The report's one page."""
    rows = [
        [
            shown_where(v["place"]),
            v["claim"],
            MARKS[v["verdict"]],
            MARKS[v["algorithm1"]],
            v["specifications"],
            v["flips"],
        ]
        for v in verdicts
    ]
    return markdown(["paper", "claim", *READINGS.values(), "holds in", "what flips it"], rows)


def specifications(verdicts: list[Row]) -> str:
    """In how many specifications each claim holds, and what flips it."""
    rows = [[v["claim"], v["specifications"], v["flips"]] for v in verdicts if v["specifications"]]
    return markdown(["claim", "holds in", "what flips it"], rows)


def findings(verdicts: list[Row]) -> str:
    """The long list: the sentence of the paper, and what came out in each reading."""
    rows = [
        [v["place"], v["claim"], quoted(v["quote"]), MARKS[v["verdict"]], v["statistic"], MARKS[v["algorithm1"]],
         v["algorithm1_statistic"]]
        for v in verdicts
    ]  # fmt: skip
    titles = [f"{name}{what}" for name in READINGS.values() for what in ("", ": what came out")]
    return markdown(["paper", "claim", "quotation", *titles], rows)


def quoted(text: str) -> str:
    return f"“{text.strip('“”')}”" if text else ""


def minutes(rows: pd.DataFrame, scale: str) -> str:
    spent = rows.groupby("experiment")["cell_seconds"].agg(["count", "sum"])
    lines = [
        [experiment.PAPER, f"`revealed reproduce --scale {scale} --only {name}`", str(spent["count"][name]),
         f"{spent['sum'][name] / 60:.1f}"]
        for name, experiment in EXPERIMENTS.items() if name in spent.index
    ]  # fmt: skip
    return markdown(["paper", "command", "tasks", "minutes of one core"], lines)


def machine(about: dict, rows: pd.DataFrame) -> str:
    it = about["machine"]
    failed = int((rows["status"] == "failed").sum())
    return (
        f"Made by `revealed reproduce --scale {about['scale']}` ({len(rows)} tasks, {failed} of them failed) on "
        f"{it['cores']} cores\n({it['processor']}), with Python {it['python']}, NumPy {it['numpy']}, SciPy "
        f"{it['scipy']} and JAX {it['jax']}."
    )


def step_cost(folder: Path) -> str:
    """What a step of MCE-IRL costs here."""
    store = Store.existing(folder)
    plan, _ = read_plan(store.read_run(), folder)
    return cost_of_a_step(results_of(store, plan)["timing"])


def stored(file: Path) -> str:
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    return markdown(list(table.columns), table.to_numpy().tolist())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
