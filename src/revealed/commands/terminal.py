"""How a command speaks: one clear line on standard error where something is wrong, and an exit status that tells how.

0 success, 1 a mistake of the user's (a mistyped option included), 3 it ran but did not converge, 130 Ctrl-C. A bug
keeps its traceback. What is printed takes the width of the terminal; where there is none, it has no colours and no
bars.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from enum import EnumType
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from revealed.commands.wording import PANEL, in_flags
from revealed.errors import InvalidOption, OutOfMemory, RevealedError, SolverFailed

if TYPE_CHECKING:
    from revealed.sheet import Printed

WELL, MISTAKE, UNCONVERGED, INTERRUPTED = 0, 1, 3, 130
WIDEST = 78  # characters of a table; one that needs more room takes it
Misuse: type[Exception] = typer.BadParameter.__mro__[2]  # click's exceptions, wherever typer keeps click


class Commands(TyperGroup):
    """The commands of the program: a wrong word ends as any other mistake does."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            status = super().main(*args, standalone_mode=False, **extra)
        except Misuse as error:
            _complain(error)
            sys.exit(MISTAKE)
        except typer.Abort:
            say("stopped.")
            sys.exit(INTERRUPTED)
        except (OSError, MemoryError) as error:  # while help was printed, say
            _blame_machine(error)
            sys.exit(MISTAKE)
        sys.exit(status if isinstance(status, int) else WELL)


class Command(TyperCommand):
    """A command whose help calls arguments by their names alone, without the type that some versions of Typer add."""

    def __init__(self, *args: Any, **extra: Any) -> None:
        super().__init__(*args, **extra)
        for one in self.params:
            if one.param_type_name == "argument" and getattr(one, "metavar", None):
                vars(one)["display_type_rich"] = _untyped


def _untyped(ctx: Any) -> None:
    return None


def _complain(error: Any) -> None:
    """What was wrong, with the nearest right word, and where to read on; with no words at all, the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    context = getattr(error, "ctx", None)
    wrong = _unknown_option(error, context) or _wrong_value(error)
    words = " ".join(error.format_message().split()) if wrong is None else in_flags(wrong)
    words += "" if words.endswith((".", "?")) else "."
    say(f"{words} See {context.command_path if context is not None else 'revealed'} --help.")


def _unknown_option(error: Any, context: Any) -> RevealedError | None:
    """An option that a command does not have, as an error of our own; None where that is not what is wrong."""
    name = getattr(error, "option_name", None)
    if context is None or type(error).__name__ != "NoSuchOption" or name is None:
        return None
    if (context.info_name, name) == ("compare", "--method"):
        return InvalidOption.conflict(name, "has no effect with `compare`, which runs every method")
    known = [option for one in context.command.params for option in one.opts if option.startswith("--")]
    return InvalidOption.impossible(f"`{context.info_name}` has no option `{name}`", None, _meant(name, known), name)


def _wrong_value(error: Any) -> RevealedError | None:
    """A value that cannot be read, as an error of our own made from the fields of Typer's; None where it has none."""
    found = next(iter(getattr(error.__cause__, "errors", tuple)()), None)
    parameter = getattr(error, "param", None)
    if found is None or parameter is None:
        return None
    wanted = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    given, name = found["input"], parameter.opts[0]
    if isinstance(wanted, EnumType):
        offered = [str(one) for one in wanted]
        near = _meant(str(given).casefold(), offered)
        return InvalidOption(name, f"one of {', '.join(offered)}", repr(given), remedy=near)
    if wanted not in (int, float):
        return None
    least = f", at least {parameter.min:g}" if getattr(parameter, "min", None) is not None else ""
    return InvalidOption(name, ("a whole number" if wanted is int else "a number") + least, repr(given))


def _meant(word: str, known: Sequence[str]) -> str | None:
    near = get_close_matches(word, known, 1)
    return f"Did you mean {near[0]}?" if near else None


@contextmanager
def one_line(arguments: Mapping[str, str] = PANEL) -> Iterator[None]:
    """A mistake of the user's ends in one line on standard error and exit status 1; a bug keeps its traceback.

    `arguments` are what the command calls arguments of the library that are not flags.
    """
    try:
        require_memory()
        yield
    except RevealedError as error:
        tells = isinstance(error, OutOfMemory | SolverFailed)  # of what memory lacks, if it does
        if not tells and _lacks_memory(error.__cause__ or error.__context__):
            say(NO_MEMORY)
            raise typer.Exit(MISTAKE) from None
        say(" ".join(in_flags(error, arguments).split()))
        raise typer.Exit(MISTAKE) from None
    except KeyboardInterrupt:
        say("stopped.")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        _blame_machine(error)
        raise typer.Exit(MISTAKE) from None


def _blame_machine(error: Exception) -> None:
    """Say what the machine lacks; raise what is a bug."""
    line = _about_machine(error)
    if line is None:
        raise error
    if line:
        say(line)


def _about_machine(error: Exception) -> str | None:
    """What to say where the machine, and not the program, is at its end: memory, threads, the disk, a reader that has
    gone (nothing then). None for anything else, which is a bug and keeps its traceback."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return ""
    if _lacks_memory(error):
        return NO_MEMORY
    if isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.ENFILE, errno.EMFILE):
        return f"the system allows no more processes or open files for this program ({error.strerror})."
    if isinstance(error, OSError) and error.errno is not None:
        sys.stdout = open(os.devnull, "w") if error.filename is None else sys.stdout  # noqa: SIM115
        where = "standard output" if error.filename is None else f"{error.filename}"
        return f"{where}: {error.strerror or text}."
    return None


def require_memory() -> None:
    """Say so where a limit (ulimit -v) leaves no room for the libraries: some of them abort the process, or wait for
    ever, where they cannot get their memory."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except ImportError:  # Windows
        return
    if limit != resource.RLIM_INFINITY and limit < LEAST_MEMORY:
        needed = f"the libraries need {LEAST_MEMORY / 1e9:.1f} GB of address space. Run `ulimit -v unlimited` first."
        say(f"memory is limited to {limit / 1e9:.2g} GB, and {needed}")
        raise typer.Exit(MISTAKE)


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it was raised from, is that memory ran out."""
    met: list[BaseException] = []
    while error is not None and error not in met:
        if isinstance(error, MemoryError) or any(word in str(error) for word in _SAID_OF_MEMORY):
            return True
        met.append(error)
        error = error.__cause__ or error.__context__
    return False


LEAST_MEMORY = 1_500_000_000  # bytes, measured: reading a small file, a fit and its report
NO_MEMORY = "memory ran out. Use a smaller model, fewer bins, or a machine with more memory."
# how libraries below say that there is no memory for another array, thread or module
_SAID_OF_MEMORY = (
    "can't start new thread",
    "annot allocate memory",
    "failed to map segment",
    "RESOURCE_EXHAUSTED",
    "Out of Memory Error",
    "Unable to allocate",
    "bad allocation",
    "std::bad_alloc",
)


def say(line: str) -> None:
    """One line on standard error."""
    typer.echo(f"revealed: {line}", err=True)


def take_any_letter() -> None:
    """A pipe or console that lacks a Greek letter gets a question mark, not an exception."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]


def width() -> int:
    """Columns of the terminal (or of COLUMNS); of a file or pipe, eighty."""
    from shutil import get_terminal_size

    return get_terminal_size((80, 24)).columns


def show(result: Printed, spare: Sequence[str] = ()) -> None:
    """Print a result in the width there is; a table is never cut, so that a very narrow terminal wraps it, but for
    `spare` columns, which narrow ones go without. Files and pipes have them."""
    from shutil import get_terminal_size

    asked = min(WIDEST, max(40, width()))
    text = result.text(asked, in_flags)
    if spare and max(map(len, text.splitlines())) > get_terminal_size((len(text), 24)).columns:
        text = result.text(asked, in_flags, spare)
    typer.echo(text)


def tell(text: str) -> None:
    """A sentence, wrapped to the width there is."""
    from textwrap import wrap

    typer.echo("\n".join(wrap(text, max(40, min(width(), 100)), break_on_hyphens=False)))


def tell_replaced(replaced: bool) -> None:
    """A line where results of an earlier run were in the way."""
    if replaced:
        tell("Results of an earlier run there were replaced.")


def show_rows(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """A plain table: the first `left` columns to the left, the others, which are numbers, to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from revealed.progress import is_terminal

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for k, name in enumerate(head):
        table.add_column(Text(name), justify="left" if k < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(highlight=False, width=None if is_terminal(sys.stdout) else max(40, width())).print(table)


def as_json(value: Any) -> Any:
    """What JSON can hold: NaN and infinities are null, labels of several columns lists, NumPy's numbers Python's."""
    from math import isfinite

    if isinstance(value, dict):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if isinstance(value, bool | int | str | None) else str(value)


def print_json(value: Any) -> None:
    """One JSON object on standard output."""
    import json

    typer.echo(json.dumps(as_json(value), ensure_ascii=False, indent=2))
