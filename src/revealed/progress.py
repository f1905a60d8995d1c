"""A bar on a terminal, silence elsewhere; for a log, a line a minute.

`progress=None` decides automatically: a bar on standard error if that is a terminal and the work takes over two
seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from types import TracebackType
from typing import Any

from revealed.checks import require_flag

QUIET_SECONDS = 2.0
MINUTE = 60.0


def is_terminal(stream: Any) -> bool:
    """Whether standard error is a terminal; a program without a terminal may have no streams at all."""
    return stream is not None and stream.isatty()


class Progress:
    """Context manager: `with Progress("NFXP", enabled=None) as bar: bar.update("gradient 1e-3")`."""

    def __init__(self, title: str, enabled: bool | None = None, total: int | None = None) -> None:
        if enabled is not None:
            require_flag("progress", enabled)
        self.title, self.total, self.done = title, total, 0
        self.enabled = is_terminal(sys.stderr) if enabled is None else enabled
        self._born = time.perf_counter()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, text: str = "", advance: int = 1) -> None:
        """Count `advance` steps and show `text` beside the bar; nothing is drawn in the first two seconds."""
        self.done += advance
        if not self.enabled or time.perf_counter() - self._born < QUIET_SECONDS:
            return
        bar = self._bar if self._bar is not None else self._open()
        bar.update(self._task, completed=self.done, note=text)

    def _open(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task(self.title, total=self.total, note="")
        return self._bar


@contextmanager
def every_minute(tell: Callable[[str], object] | None, line: Callable[[], str]) -> Iterator[None]:
    """While the work goes on, `tell` a new `line` each minute, also where one piece of it takes longer than that."""
    if tell is None:
        yield
        return
    stopped = Event()
    thread = Thread(target=say_lines, args=(tell, line, stopped.wait), name="revealed-minutes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def say_lines(tell: Callable[[str], object], line: Callable[[], str], wait: Callable[[float], bool]) -> None:
    """A line after every minute in which `wait` did not say that the work had ended."""
    with suppress(OSError, ValueError):  # nobody reads it any more, or the stream was closed: the work goes on
        while not wait(MINUTE):
            tell(line())
