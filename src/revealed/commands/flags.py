"""The options of a run as flags of a command, made from the one table in `revealed.description`.

A flag that was not given is None (or empty), so that a file may say it instead; help shows the default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from revealed.description import flag, option_fields

# whole numbers of a list may have commas between them, and are texts until they are read
_TYPES: dict[str, Any] = {"text": str, "texts": str, "counts": str, "number": float, "count": int, "flag": bool}
_TYPES["time"] = str
INTEGER, NUMBER = "INTEGER", "NUMBER"
_CALLED = {"number": NUMBER, "count": INTEGER}  # in help


def with_options(command: Callable[..., None], leave_out: Sequence[str] = ()) -> Callable[..., None]:
    """The command with a flag for every option of a run, which it takes as `**options`, before its own."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    flags = [_parameter(name, about) for name, about in option_fields().items() if name not in leave_out]
    parameters = [*flags, *(one for one in own if one.kind is not one.VAR_KEYWORD)]
    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _parameter(name: str, about: dict[str, Any]) -> inspect.Parameter:
    """A flag; the panel is an argument."""
    kind = about["kind"]
    one = _TYPES[kind] if not about["offered"] else _choice(name, about["offered"])
    wanted = list[one] if kind.endswith("s") else one
    if name == "panel":
        info: Any = typer.Argument(help=about["help"], metavar="PANEL", show_default=False)
    else:
        info = typer.Option(
            *_names(name, kind),
            help=_help(about),
            metavar=about["metavar"] or _CALLED.get(kind),
            show_default=False,
            case_sensitive=False,  # --method NFXP
        )
    return inspect.Parameter(name, _KIND, default=None, annotation=Annotated[wanted | None, info])


def _names(name: str, kind: str) -> tuple[str, ...]:
    return (f"{flag(name)}/--no-{flag(name)[2:]}",) if kind == "flag" else (flag(name),)


def _choice(name: str, offered: Sequence[str]) -> Any:
    """As an enumeration, which the shell completes."""
    return StrEnum(name, [(word.replace("-", "_"), word) for word in offered])


def _help(about: dict[str, Any]) -> str:
    default = about["default"]
    again = " Repeatable, or separated by commas." if about["kind"].endswith("s") and about["metavar"] != "X,Y" else ""
    if default is None or default is False or default == () or "default" in about["help"]:
        words, bracket, rest = about["help"].partition("  [")
        return words + again + bracket + rest
    shown = " ".join(map(str, default if isinstance(default, tuple) else [default])).removesuffix(".0")
    return f"{about['help']}{again}  [default: {shown}]"


_KIND = inspect.Parameter.POSITIONAL_OR_KEYWORD
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="TOML file of options; flags override it.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")]
Force = Annotated[bool, typer.Option("--force", help="Write into a folder that holds other files.")]
