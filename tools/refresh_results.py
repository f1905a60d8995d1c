"""Bring a run's picture, verdicts and times into README.md and docs/reproduce.md:

    revealed reproduce --scale paper
    python tools/refresh_results.py results/paper

Blocks between `<!-- NAME: begin -->` and `<!-- NAME: end -->` are replaced; everything else stays.
"""

import json
import re
import shutil
import sys
from pathlib import Path

import pandas as pd

from revealed.experiments.catalogue import EXPERIMENTS

ROOT = Path(__file__).parents[1]
MARKS = {"holds": "**holds**", "does not hold": "does not hold", "undecided": "*undecided*"}


def main(folder: Path) -> None:
    shutil.copy(folder / "figures" / "obstacleworld-occupancy.png", ROOT / "docs" / "images" / "reproduced.png")
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    rows = pd.read_csv(folder / "table.csv", low_memory=False)
    verdicts = pd.read_csv(folder / "tables" / "verdicts.csv", keep_default_na=False)
    blocks = {
        "counts": count(verdicts),
        "verdicts": claims(verdicts),
        "findings": claims(verdicts, statistics=True),
        "minutes": minutes(rows, about["scale"]),
        "machine": machine(about, rows),
        "speed": stored(folder / "tables" / "timing-table2.csv"),
        "aims": stored(folder / "tables" / "timing-aims.csv"),
        "dense": stored(folder / "tables" / "timing-dense.csv"),
    }
    for page in (ROOT / "README.md", ROOT / "docs" / "reproduce.md"):
        text = page.read_text(encoding="utf-8")
        for name, block in blocks.items():
            between = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
            text = between.sub(lambda found, block=block: f"{found[1]}{block}\n{found[2]}", text)
        page.write_text(text, encoding="utf-8")


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return (
        "\n".join("| " + " | ".join(line) + " |" for line in lines)
        .replace("| --- |", "|---|")
        .replace(" --- |", "---|")
    )


def count(verdicts: pd.DataFrame) -> str:
    found = verdicts["verdict"].value_counts()
    words = {"holds": "hold", "does not hold": "do not hold", "undecided": "are undecided"}
    return f"Of {len(verdicts)} claims " + ", ".join(f"{found.get(key, 0)} {word}" for key, word in words.items()) + "."


def claims(verdicts: pd.DataFrame, statistics: bool = False) -> str:
    rows = [
        [v.paper, world(v.experiment), v.claim, MARKS[v.verdict], *([v.statistic] if statistics else [])]
        for v in verdicts.itertuples()
    ]
    return markdown(["paper", "experiment", "claim", "verdict", *(["what came out"] if statistics else [])], rows)


def world(name: str) -> str:
    return EXPERIMENTS[name].TITLE.partition(":")[0]


def minutes(rows: pd.DataFrame, scale: str) -> str:
    spent = rows.groupby("experiment")["cell_seconds"].agg(["count", "sum"])
    lines = [
        [experiment.PAPER, f"`revealed reproduce --scale {scale} --only {name}`", str(spent["count"][name]),
         f"{spent['sum'][name] / 60:.1f}"]
        for name, experiment in EXPERIMENTS.items() if name in spent.index
    ]  # fmt: skip
    return markdown(["paper", "command", "cells", "minutes of one core"], lines)


def machine(about: dict, rows: pd.DataFrame) -> str:
    it = about["machine"]
    failed = int((rows["status"] == "failed").sum())
    return (
        f"Made by `revealed reproduce --scale {about['scale']}` ({len(rows)} tasks, {failed} of them failed) on "
        f"{it['cores']} cores\n({it['processor']}), with Python {it['python']}, NumPy {it['numpy']}, SciPy "
        f"{it['scipy']} and JAX {it['jax']}."
    )


def stored(file: Path) -> str:
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    return markdown(list(table.columns), table.to_numpy().tolist())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
