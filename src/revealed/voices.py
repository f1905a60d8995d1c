"""One sentence, two voices: Python users read `errors="bootstrap"`, users of the command line --errors bootstrap.

Messages name arguments through `arg`, `named` and `either`, which leave private marks in the text; f-strings and joins
keep them. `speak` turns the marks into words: Python's, or the command line's, given its table of flags. Whatever else
stands in a sentence, labels and names from the data above all, is never touched. `words` makes a finished sentence: a
text in Python's voice that still knows the marks. No mark ever reaches a reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# noncharacters of Unicode, which no text may contain: a mark opens, separates its parts, and closes
_OPEN, _NEXT, _CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
MARKS = _OPEN + _NEXT + _CLOSE
_INNERMOST = re.compile(f"{_OPEN}([^{MARKS}]*(?:{_NEXT}[^{MARKS}]*)*){_CLOSE}")
_STRAY = re.compile(f"[{MARKS}]")
_NAMED = re.compile(f"({_OPEN}(?:arg|name){_NEXT})([^{MARKS}]*)")
_NOTHING: Any = object()

Flags = Mapping[str, str]  # argument → what the command line calls it


def arg(name: str, value: Any = _NOTHING) -> str:
    """An argument, in running text: `reps=` or --reps; with a value `errors="bootstrap"` or --errors bootstrap.

    A switch is `joint=True` or --joint, `joint=False` or --no-joint. A name that begins with `--` is a flag already.
    """
    if value is _NOTHING:
        return _mark("arg", name, "", "")
    return _mark("arg", name, _in_python(value), _in_shell(value))


class Written(str):
    """A value of an argument that both voices write as it stands."""

    __slots__ = ()


def named(name: str) -> str:
    """The bare name of an argument: reps or --reps. The writer sets the backquotes."""
    return _mark("name", name)


def either(python: str, shell: str) -> str:
    """What the two voices say differently; both texts may name arguments."""
    return _mark("either", python, shell)


class Words(str):
    """A finished sentence: as text it is in Python's voice, `marked` keeps the arguments that it names.

    Sums and `.format` keep them, too; an f-string does where it says `marked(sentence)`.
    """

    __slots__ = ("marked",)
    marked: str

    def __new__(cls, text: str) -> Words:
        self = super().__new__(cls, speak(text))
        self.marked = marked(text)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Words, (self.marked,)

    def __add__(self, other: str) -> str:
        return words(self.marked + marked(other))

    def __radd__(self, other: str) -> str:
        return words(marked(other) + self.marked)

    def format(self, *given: object, **named: object) -> str:
        return words(self.marked.format(*given, **named))

    @property
    def parts(self) -> list[str | list[str]]:
        """For files: plain pieces, and where an argument is named, a list of [kind, part, ...]; see `from_parts`."""
        return _parts(self.marked)


def words(text: str) -> str:
    """The finished sentence; a text that names no argument is returned as it is."""
    return Words(text) if _STRAY.search(marked(text)) else text


def marked(text: str) -> str:
    """The text with its marks, to build a longer one from."""
    return text.marked if isinstance(text, Words) else text


def from_parts(parts: Any) -> str:
    """A sentence that was taken apart by `Words.parts`."""
    texts = [part if isinstance(part, str) else _mark(*(marked(from_parts(one)) for one in part)) for part in parts]
    return words("".join(texts))


def speak(text: str, flags: Flags | None = None) -> str:
    """The text in Python's voice or, given its `flags`, in the command line's; arguments without a flag are said as in
    Python."""
    text, found = marked(text if isinstance(text, str) else str(text)), 1
    while found:
        text, found = _INNERMOST.subn(lambda mark: _spoken(mark[1].split(_NEXT), flags), text)
    return _STRAY.sub("", text)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text, marks and all, with other names for some arguments."""
    return _NAMED.sub(lambda mark: mark[1] + names.get(mark[2], mark[2]), marked(text))


def _mark(*parts: str) -> str:
    return _OPEN + _NEXT.join(map(marked, parts)) + _CLOSE


def _spoken(parts: list[str], flags: Flags | None) -> str:
    kind, name, *rest = [*parts, "", "", ""][:4]
    if kind not in ("arg", "name"):
        return rest[0] if kind == "either" and flags is not None else name
    flag = name if name.startswith("--") else (flags or {}).get(name)
    if flag is None:
        return name if kind == "name" else f"{name}={rest[0]}"
    return flag if kind == "name" else _typed(flag, rest[1])


def _typed(flag: str, value: str) -> str:
    if value in ("--", "--no"):  # a switch
        return flag if value == "--" else f"--no-{flag.removeprefix('--')}"
    return f"{flag} {value}".rstrip()


def _in_python(value: Any) -> str:
    if isinstance(value, str) and not isinstance(value, Written):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return _number(value) if isinstance(value, float) else str(value) if isinstance(value, str) else repr(value)


def _in_shell(value: Any) -> str:
    if isinstance(value, bool):
        return "--" if value else "--no"
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ",".join(map(_in_shell, value))
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    """The shorter of 0.0001 and 1e-4."""
    digits, power = f"{value:e}".split("e")
    short = f"{float(digits):g}e{int(power)}"
    return min(repr(value), short, key=len) if float(short) == value else repr(value)


def _parts(text: str) -> list[str | list[str]]:
    """Pieces of a text with marks, one level deep; marks inside a piece stand as further lists."""
    found: list[Any] = []
    stack: list[list[list[Any]]] = []
    for piece in re.split(f"([{MARKS}])", text):
        here = stack[-1][-1] if stack else found
        if piece == _OPEN:
            stack.append([[]])
        elif piece == _NEXT and stack:
            stack[-1].append([])
        elif piece == _CLOSE and stack:
            done = stack.pop()
            (stack[-1][-1] if stack else found).append(done)
        elif piece and piece not in MARKS:
            here.append(piece)
    return found


def shown(value: Any) -> str:
    """A value in a message, shortened."""
    try:
        text = repr(value)
    except Exception:  # an object that cannot even be shown
        text = type(value).__name__
    return text if len(text) <= 80 else text[:79] + "…"
