"""Draw docs/images/demand.png: run the blocks of docs/tutorial.md and keep the picture that they save."""

import contextlib
import re
import shutil
import tempfile
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PICTURE = "demand.png"


def run_blocks(page: Path) -> None:
    """Every Python block of a page, in order and in one namespace."""
    code = "\n".join(re.findall(r"```python\n(.*?)```\n", page.read_text(encoding="utf-8"), re.DOTALL))
    exec(compile(code, page.name, "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(None):
        run_blocks(DOCS / "tutorial.md")
        shutil.copyfile(PICTURE, DOCS / "images" / PICTURE)
    print(f"wrote {DOCS / 'images' / PICTURE}")
