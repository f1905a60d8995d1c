"""`python -m revealed` is `revealed`."""

import atexit
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

INTERRUPTED = 130


def run() -> None:
    """The program; Ctrl-C ends it in the same way at any moment, also while it is still being read from disk."""
    try:
        try:
            from revealed.cli import app

            app(prog_name="revealed")
        except SystemExit as end:
            _leave(end.code)
    except KeyboardInterrupt:
        print("revealed: stopped.", file=sys.stderr)
        _leave(INTERRUPTED)


def _leave(status: object) -> NoReturn:
    """End with this status, whatever is pressed from now on: all is written, and Python is only tidying up.

    While it waits for threads and workers, Ctrl-C ends the process at once. Afterwards it is ignored: Python gives up
    its own handlers before it takes modules apart, and the signal itself would end the process.
    """
    code = status if isinstance(status, int) else 0 if status is None else 1
    with suppress(OSError, ValueError, AttributeError):  # nobody reads any more, or there is no such stream
        sys.stdout.flush()
        sys.stderr.flush()
    exec("pass")  # Python remembers a Ctrl-C in an exec, as in many imports, and would end by the signal; no longer
    signal.signal(signal.SIGINT, lambda *_: os._exit(code))
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    sys.exit(status if isinstance(status, int | str) else code)


if __name__ == "__main__":
    run()
