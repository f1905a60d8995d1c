"""The documentation runs: every Python block of a page, in order and in one namespace, prints what the page shows.

So does every `bash` block, in the same folder. There `revealed` is the command in the process of the test, which does
not start an interpreter each time (that the installed one says the same is in test_commands.py). A block's output is
the ```text block right after it. `python tests/test_docs.py` writes the outputs anew.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from shell import here

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/econometrics.md",
    "docs/rewards.md",
    "docs/metrics.md",
    "docs/transfer.md",
    "docs/worlds.md",
    "docs/choosing.md",
    "docs/command_line.md",
    "docs/data.md",
    "docs/routes.md",
    "docs/devices.md",
)
BLOCK = re.compile(r"```(?P<language>python|bash)\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?", re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)?(?:#([^)\s]+))?\)|<img src=\"([^\"]+)\"")
# what may differ between machines: times, and numbers at the level of rounding
VARYING = re.compile(r"(Seconds:|Iterations:|gradient norm) +\S+|^(Seconds) .*$", re.MULTILINE)


def blocks(page: str, torch: bool) -> list[re.Match[str]]:
    """The blocks of a page; those that need PyTorch only if `torch`."""
    found = BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))
    return [block for block in found if torch or "torch" not in block["code"]]


def run(page: str, block: re.Match[str], namespace: dict[str, object]) -> str:
    """Execute a block; what it printed. Line numbers in a traceback are those of the page."""
    if block["language"] == "bash":
        return run_shell(block["code"])
    line = block.string[: block.start("code")].count("\n")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + block["code"], page, "exec"), namespace)
    return printed.getvalue()


# Bash hands the words of each command to the test through a pipe with a name, and none at its own end.
REVEALED = r"""
trap ': > "$TALK/ask"' EXIT
revealed() {
    printf '%s\0' "$@" > "$TALK/ask"
    local status
    read -r status < "$TALK/status"
    cat "$TALK/stdout"
    cat "$TALK/stderr" >&2
    return "$status"
}
"""


def run_shell(code: str) -> str:
    """What the commands print in eighty columns; standard error, which the page does not show, must be empty."""
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name, value in {"PATH": tools, "COLUMNS": "80", "LC_ALL": "C.UTF-8", "TALK": folder}.items():
            patch.setenv(name, value)
        talk = Path(folder)
        for name in ("ask", "status"):
            os.mkfifo(talk / name)
        with (talk / "out").open("wb") as out, (talk / "err").open("wb") as err:
            shell = subprocess.Popen(["bash", "-c", REVEALED + code], stdout=out, stderr=err)
            try:
                while asked := (talk / "ask").read_bytes():
                    answer(talk, asked.decode().split("\0")[:-1])
            except BaseException:
                shell.kill()  # it waits for an answer
                raise
            finally:
                shell.wait()
        assert (talk / "err").read_text(encoding="utf-8") == "", code
        return (talk / "out").read_text(encoding="utf-8")


def answer(talk: Path, words: list[str]) -> None:
    """Run a command for the shell. Warnings that Python shows on standard error by default are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for silent in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", silent)
        done = here(*words)
    (talk / "stdout").write_bytes(done.stdout_bytes)
    (talk / "stderr").write_bytes(done.stderr_bytes)
    (talk / "status").write_text(f"{done.exit_code}\n")


def still(text: str) -> str:
    """What a block prints, without what varies."""
    return VARYING.sub(r"\1\2…", text)


def check(page: str, torch: bool) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page, torch):
        printed = run(page, block, namespace)
        assert still(printed) == still(block["output"] or ""), f"{page}:\n{block['code']}"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(page, torch=False)


@pytest.mark.torch
@pytest.mark.parametrize("page", [page for page in PAGES if len(blocks(page, True)) > len(blocks(page, False))])
def test_blocks_with_torch_run_after_the_others(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(page, torch=True)


@pytest.mark.parametrize("page", PAGES)
def test_there_is_something_to_run(page):
    assert len(blocks(page, torch=False)) >= 2


def test_the_tutorial_takes_fewer_than_forty_lines():
    code = "\n".join(block["code"] for block in blocks("docs/tutorial.md", torch=False))
    assert sum(bool(line.strip()) for line in code.splitlines()) < 40


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target, anchor, image in LINK.findall(text):
        if target.startswith("http"):
            continue
        path = (ROOT / page).parent / (target or image) if target or image else ROOT / page
        assert path.exists(), f"{page} points to {target or image}, which is not there"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path.read_text(encoding="utf-8")), f"{page} points to #{anchor} of {path.name}"


def anchors(markdown: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ +(.*)$", re.sub(r"```.*?```", "", markdown, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def refresh(page: str) -> None:
    """Write the outputs into the page."""
    namespace: dict[str, object] = {"__name__": "__main__"}

    def with_output(block: re.Match[str]) -> str:
        printed = run(page, block, namespace)
        return f"```{block['language']}\n{block['code']}```\n" + (f"\n```text\n{printed}```\n" if printed else "")

    path = ROOT / page
    path.write_text(BLOCK.sub(with_output, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # what the blocks write stays there
        for name in sys.argv[1:] or PAGES:
            refresh(name)
