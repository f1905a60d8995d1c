"""Pages as a test reads them, and a Chromium browser without a window: what it makes of a page, what it says on its
console.

The pages' own policy forbids every request, and a request that is forbidden is an error on the console; hence a silent
console also says that nothing was asked for.
"""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from plugin_required import BROWSERS


def chromium(folder: Path, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    browser = next(found for name in BROWSERS if (found := shutil.which(name)))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    logs = ["--enable-logging=stderr", "--v=0", f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000"]
    command = [browser, *flags, *quiet, *logs, *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=120)


def console(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def measure(folder: Path, text: str, width: int, script: str) -> Any:
    """What a script finds in a page that is shown in a frame of this width, whose document is `page` and whose window
    is `view`; it stands outside of the page, whose policy allows none."""
    around = folder / "frame.html"
    around.write_text(
        f'<!doctype html><iframe id="f" style="width:{width}px;height:800px;border:0" srcdoc="{html.escape(text)}">'
        "</iframe><p id='said'></p><script>f.onload = () => setTimeout(() => {"  # animations begin with a frame
        "const page = f.contentDocument, view = f.contentWindow;"
        f"said.textContent = 'found ' + JSON.stringify({script}); }}, 300)</script>",
        encoding="utf-8",
    )
    done = chromium(folder, around, "--dump-dom", "--window-size=1600,1000")
    said = re.search(r'<p id="said">found (.*?)</p>', done.stdout)
    assert said is not None, done.stderr
    return json.loads(html.unescape(said[1]))


class Page(HTMLParser):
    """Elements with attributes, text by the element that it stands in, and tables as rows of cells by caption."""

    VOID = {"img", "meta", "br"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    def all(self, *tags: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.found if tag in tags]

    def text(self, tag: str = "body") -> str:
        return " ".join("".join(data for within, data in self.texts if tag in within).split())

    def row(self, *begins: str) -> list[str]:
        """The first row that begins so."""
        return next(row for row in self.rows if row[: len(begins)] == list(begins))
