"""One class for each kind of error; the docstring says what went wrong and what to do.

All derive from `RevealedError`. Bad input is also a `ValueError`, so that callers who do not know this library can
catch it. Its message has one of three forms:

- a wrong value: ``InvalidOption("reps", "a whole number, at least 2", 1)``, argument, expected, got, first offender
  and remedy;
- a conflict, where a rule ties arguments together: ``InvalidOption.conflict("reps", f"requires `{arg('errors',
  'bootstrap')}`")`` says "`reps` requires `errors="bootstrap"`";
- something that cannot be: ``InvalidDemonstrations.impossible("goal 'yard' cannot be reached from 'mill'")``.

Texts name arguments through `voices.arg`, `named` and `either`: `str(error)` speaks Python, `error.told(flags)` the
words of the command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from revealed.voices import Flags, marked, named, renamed, speak, words

Form = Literal["value", "conflict", "impossible"]


def describe(argument: str, expected: str, got: str, offender: str | None = None, remedy: str | None = None) -> str:
    """One message in the house form: what was expected of which argument, what came, where, and what to do."""
    return _ended(f"`{argument}`: expected {expected}; got {got}", offender, remedy)


def _ended(text: str, offender: str | None, remedy: str | None) -> str:
    if offender:
        text += f" (first at {marked(offender)})"
    return text + "." + (f" {marked(remedy)}" if remedy else "")


class RevealedError(Exception):
    """Base of every error that this library raises on purpose. Remedy: read the message, it names one."""

    _marked: str = ""

    def __init__(self, *message: object) -> None:
        self._marked = marked(message[0]) if message and isinstance(message[0], str) else ""
        super().__init__(*(speak(part) if isinstance(part, str) else part for part in message))

    @property
    def message(self) -> str:
        """What `str(error)` says, as a sentence that the command line can put in its own words."""
        return words(self._marked or str(self))

    def told(self, flags: Flags | None = None) -> str:
        """The message in Python's voice or, given its `flags`, in the command line's."""
        return speak(self._marked or str(self), flags)


class InvalidInput(RevealedError, ValueError):
    """An argument is not what the call needs. Remedy: the message names the argument, the offender and the fix.

    `form` is "value", "conflict" or "impossible". For a wrong value, `expected` and `got` say what was needed and what
    was given; for a conflict, `expected` is the rule, and for something impossible, what cannot be; `got` is then None.
    `labels` are those that were not found, where labels were looked up: of a state, or of a state and an action.
    """

    labels: tuple[Any, ...] = ()

    def __init__(
        self,
        argument: str,
        expected: str,
        got: object,
        offender: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self._tell("value", argument, expected, got, offender, remedy)

    @classmethod
    def conflict(cls, argument: str, rule: str, offender: str | None = None, remedy: str | None = None) -> Self:
        """An argument that breaks a rule: `rule` continues the sentence after its name, as in "requires …", "has no
        effect with …"."""
        return cls._of("conflict", argument, rule, None, offender, remedy)

    @classmethod
    def impossible(cls, what: str, offender: str | None = None, remedy: str | None = None, argument: str = "") -> Self:
        """What cannot be, in a sentence without its full stop; `argument` is where it came in."""
        return cls._of("impossible", argument, what, None, offender, remedy)

    @classmethod
    def _of(cls, form: Form, *fields: Any) -> Self:
        error = cls.__new__(cls)
        error._tell(form, *fields)
        return error

    def _tell(
        self, form: Form, argument: str, expected: str, got: object, offender: str | None, remedy: str | None
    ) -> None:
        if not isinstance(argument, str):  # handed over as the name of an argument
            argument = type(argument).__name__
        self.form: Form = form
        self._fields = (argument, expected, got, offender, remedy)
        self.argument, self.expected, self.got, self.offender, self.remedy = map(_finished, self._fields)
        RevealedError.__init__(self, self._message())

    def _message(self) -> str:
        texts: list[Any] = [marked(field) if isinstance(field, str) else field for field in self._fields]
        argument, expected, got, offender, remedy = texts
        name = argument if speak(argument) != argument else named(argument)
        if self.form == "value":
            return describe(name, expected, _in_words(got), offender, remedy)
        return _ended(f"`{name}` {expected}" if self.form == "conflict" else expected, offender, remedy)

    def without(self, *labels: Any) -> Self:
        """The same error, which says what labels were not found."""
        self.labels = labels
        return self

    @property
    def reason(self) -> str:
        """The message without the name of the argument in front."""
        whole, name = marked(self.message), self._fields[0]
        return words(whole.removeprefix(f"`{named(name)}`: ")) if self.form == "value" else self.message

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same error with other names of arguments, for a caller who knows them under those."""
        argument, *texts = self._fields
        others = [renamed(text, names) if isinstance(text, str) else text for text in texts]
        return self._of(self.form, names.get(argument, renamed(argument, names)), *others).without(*self.labels)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self.form, self._fields)


def _in_words(got: Any) -> str:
    try:
        return str(got)
    except Exception:  # a whole number with more digits than Python writes, an object that cannot be shown
        return type(got).__name__


def _finished(field: Any) -> Any:
    return words(field) if isinstance(field, str) else field


def _made_again(kind: type[InvalidInput], form: Form, fields: tuple[Any, ...]) -> InvalidInput:
    return kind._of(form, *fields)  # pyright: ignore[reportPrivateUsage]


class InvalidTransitions(InvalidInput):
    """The transition probabilities are not probabilities. Remedy: fix the named row (it must sum to one)."""


class InvalidDiscount(InvalidInput):
    """The discount is not a number in [0, 1]. Remedy: pass γ in [0, 1]; γ = 1 needs terminal states."""


class InvalidMask(InvalidInput):
    """`feasible` or `terminal` is inconsistent. Remedy: give every non-terminal state at least one action."""


class InvalidDistribution(InvalidInput):
    """A start distribution or a policy does not consist of probabilities. Remedy: normalise the named row."""


class InvalidDemonstrations(InvalidInput):
    """The observed decisions do not fit the model. Remedy: fix the named trajectory, or the model's masks."""


class InvalidReward(InvalidInput):
    """The reward or its features do not fit the model, or are not finite. Remedy: check shape and values."""


class InvalidOption(InvalidInput):
    """An option has an unsupported value. Remedy: choose one of those the message lists."""


class MissingData(InvalidInput):
    """Required data files are missing. Remedy: the message says which, and where they are looked for."""


class OutOfMemory(InvalidInput, MemoryError):
    """Memory ran out. Remedy: the message names the sizes that asked for it; use smaller ones."""


class CannotWrite(InvalidInput):
    """A file or folder cannot be written. Remedy: the message says why; make room, or choose another place."""


class UnreadableFit(InvalidInput):
    """A file is not a saved fit, is damaged, or comes from a newer version. Remedy: the message says which; save it
    again."""


class ValueDoesNotExist(RevealedError):
    """At γ = 1 the soft value is infinite: the agent would rather go on for ever than end.

    Remedy: more negative rewards (`start=`, or start NFXP from a CCP fit), a discount below 1, or, where a policy
    never reaches a terminal state, a first step that takes every action that ends with positive probability
    (`first_step="smoothed"`).
    """


class SolverFailed(RevealedError):
    """A linear system could not be solved to its tolerance, or float64 is not precise enough for the choices (theory
    B6).

    Remedy: `solver="lu"`, a smaller discount, or rewards of smaller size.
    """


class MissingDependency(RevealedError, ImportError):
    """An optional package is not installed. Remedy: the message shows the one command that installs it."""


class WorkersLost(RevealedError):
    """Worker processes kept dying. Remedy: memory probably ran out; use fewer workers, or give each more memory.

    Finished work is kept (in a folder, or in a bootstrap), and a new call resumes from there.
    """

    def __init__(self, pieces: int, reason: object) -> None:
        why = f"{type(reason).__name__}: {reason}" if isinstance(reason, BaseException) else str(reason)
        self.pieces, self.reason = pieces, " ".join(why.split())
        super().__init__(
            f"worker processes kept dying; unfinished tasks: {pieces} ({self.reason[:200]}). Memory probably "
            "ran out: use fewer workers, or give each more memory."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.pieces, self.reason)
