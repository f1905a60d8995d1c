"""The command line's table of flags: how it says what messages name (see `revealed.voices`).

Where the library says `next_state=`, the command line says --next-state. What came with the data stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from revealed.description import flag, flags
from revealed.errors import RevealedError
from revealed.voices import speak

OWN_FLAGS = ("bands", "initial", "states", "close", "links")  # of questions to a saved fit
PANEL = {"path": "PANEL", "frame": "PANEL", "demonstrations": "PANEL"}
PANEL |= {"state_labels": "--state", "action_labels": "--action"}  # of the panel, where a model has others
FIT = {"path": "FIT", "n": "--n", "length": "--length"}


def in_flags(said: str | RevealedError, arguments: Mapping[str, str] | None = None) -> str:
    """A message, a note or an error in words of the command line; `arguments` are what arguments of the library that
    have no flag are called."""
    known = flags() | {name: flag(name) for name in OWN_FLAGS} | dict(arguments or {})
    return said.told(known) if isinstance(said, RevealedError) else speak(said, known)
