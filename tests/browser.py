"""A Chromium browser without a window: what it makes of a page, and what it says on its console.

The pages' own policy forbids every request, and a request that is forbidden is an error on the console; hence a silent
console also says that nothing was asked for.
"""

import shutil
import subprocess
from pathlib import Path

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
