"""Bring Rust's table and the Monte Carlo study into docs/econometrics.md:

    python benchmarks/monte_carlo_buses.py --folder results/montecarlo > results/montecarlo.md
    python benchmarks/monte_carlo_buses.py --coverage --folder results/montecarlo > results/coverage.md
    python tools/refresh_econometrics.py results/montecarlo.md results/coverage.md

Blocks between `<!-- NAME: begin -->` and `<!-- NAME: end -->`, where NAME is that of the file, are replaced; without a
file only Rust's.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "econometrics.md"


def rust() -> str:
    """What the command prints, from the counts that ship with the package."""
    settings = {name: value for name, value in os.environ.items() if name != "REVEALED_DATA"} | {"COLUMNS": "80"}
    command = [sys.executable, "-m", "revealed", "reproduce", "rust"]
    printed = subprocess.run(command, env=settings, check=True, capture_output=True, text=True).stdout
    return "```text\n" + "\n".join(line.rstrip() for line in printed.splitlines()) + "\n```"


def main(studies: list[Path]) -> None:
    blocks = {"rust": rust()} | {study.stem: study.read_text(encoding="utf-8").strip() for study in studies}
    text = PAGE.read_text(encoding="utf-8")
    for name, block in blocks.items():
        if f"<!-- {name}: begin -->" not in text:
            sys.exit(f"{PAGE.name} has no block for {name}.md")
        between = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
        text = between.sub(lambda found, block=block: f"{found[1]}{block}\n{found[2]}", text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
