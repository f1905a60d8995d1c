"""The command line for tests, in the process of the test."""

from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from revealed import cli


def here(*arguments: object) -> Any:
    """The command in this process; an exception that it lets through, and a user would see, is ours."""
    done = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def leave_out_reports(patch: pytest.MonkeyPatch) -> None:
    """Folders without figures, which take most of the time."""
    patch.setattr("revealed.fit_report.write_fit_report", lambda fit, path, **_: path.write_text(fit.method))


def stand_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """In a folder, before a wide terminal, without figures."""
    patch.chdir(folder)
    patch.setenv("COLUMNS", "200")
    leave_out_reports(patch)


@contextmanager
def quickly_in(folder: Path) -> Iterator[None]:
    """In another folder, where fits are written without their figures."""
    with chdir(folder), pytest.MonkeyPatch.context() as patch:
        leave_out_reports(patch)
        yield


def well(*arguments: object) -> str:
    """What a command says that goes well."""
    done = here(*arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def one_line(done: Any) -> str:
    """All that was said on standard error, which is one line and no traceback."""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("revealed: ")
    return line
