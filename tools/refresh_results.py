"""Bring a run's picture, verdicts and minutes into README.md and docs/reproduce.md.

    .venv/bin/python tools/refresh_results.py results/paper

Blocks between `<!-- NAME: begin -->` and `<!-- NAME: end -->` are replaced; everything else stays.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from revealed.experiments.catalogue import EXPERIMENTS
from revealed.experiments.runner import results_of
from revealed.experiments.store import Store
from revealed.experiments.verdicts import judge
from revealed.findings import plan_of

ROOT = Path(__file__).parents[1]
PICTURE = ("obstacleworld-occupancy.png", "reproduced.png")


def main(folder: Path) -> None:
    store = Store.existing(folder)
    about = store.read_run()
    plan = plan_of(store)
    results = results_of(store, plan)
    shutil.copy(folder / "figures" / PICTURE[0], ROOT / "docs" / "images" / PICTURE[1])
    blocks = {
        "verdicts": _verdicts(judge(results)),
        "minutes": _minutes(results, about["scale"]),
        "machine": _machine(about, results),
    }
    for page in (ROOT / "README.md", ROOT / "docs" / "reproduce.md"):
        text = page.read_text(encoding="utf-8")
        for name, block in blocks.items():
            text = re.sub(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", rf"\1{block}\n\2", text, flags=re.S)
        page.write_text(text, encoding="utf-8")


def _verdicts(verdicts: list) -> str:
    mark = {"holds": "**holds**", "does not hold": "does not hold", "undecided": "*undecided*"}
    rows = [
        f"| {v.paper} | {EXPERIMENTS[v.experiment].TITLE.partition(':')[0]} | {v.claim} | {mark[v.verdict]} |"
        for v in verdicts
    ]
    return "\n".join(["| paper | world | claim | verdict |", "|---|---|---|---|", *rows])


def _minutes(results: dict, scale: str) -> str:
    head = "| paper | command | cells | minutes of one core |\n|---|---|---|---|"
    rows = [
        f"| {EXPERIMENTS[name].PAPER} | `revealed reproduce --scale {scale} --only {name}` | {len(found.frame)} | "
        f"{found.frame['cell_seconds'].sum() / 60:.1f} |"
        for name, found in results.items()
    ]
    return "\n".join([head, *rows])


def _machine(about: dict, results: dict) -> str:
    machine = about["machine"]
    cells, failed = sum(len(r.frame) for r in results.values()), sum(len(r.failed) for r in results.values())
    return (
        f"One run of `revealed reproduce --scale {about['scale']}`: {cells} cells, {failed} failed; {machine['cores']} cores "
        f"({machine['processor']}), Python {machine['python']}, NumPy {machine['numpy']}, SciPy {machine['scipy']}, JAX "
        f"{machine['jax']}."
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
