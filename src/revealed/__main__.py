"""`python -m revealed` is `revealed`."""

import sys


def run() -> None:
    """The program; Ctrl-C while it is still being read from disk ends it as at any other moment."""
    try:
        from revealed.cli import app
    except KeyboardInterrupt:
        print("stopped.", file=sys.stderr)
        sys.exit(130)
    app(prog_name="revealed")


if __name__ == "__main__":
    run()
