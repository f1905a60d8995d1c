"""`python -m revealed` is `revealed`."""

import signal
import sys
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


def _leave(status: str | int | None) -> NoReturn:
    """End with this status, whatever is pressed from now on: all is written, and Python only tidies up, for less than
    a second. It would let Ctrl-C through as a traceback from its hooks or, once it has given up its own handlers, as
    the signal that ends the process."""
    exec("pass")  # Python remembers a Ctrl-C in an exec, as in many imports, and would end by the signal; no longer
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


if __name__ == "__main__":
    run()
