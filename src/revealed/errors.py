"""Every failure a user can meet, one class each; the docstring says what went wrong and what to do.

All derive from `RevealedError`. Bad input is also a `ValueError`, so that callers who know nothing of this library
can catch it. Messages are built by `describe`: argument, expected, got, first offender, remedy.
"""

from __future__ import annotations


def describe(argument: str, expected: str, got: str, offender: str | None = None, remedy: str | None = None) -> str:
    """One message in the house form: what was expected of which argument, what came, where, and what to do."""
    text = f"`{argument}`: expected {expected}; got {got}"
    if offender:
        text += f" (first at {offender})"
    return text + "." + (f" {remedy}" if remedy else "")


class RevealedError(Exception):
    """Base of every error that this library raises on purpose. Remedy: read the message, it names one."""


class InvalidInput(RevealedError, ValueError):
    """An argument is not what the call needs. Remedy: the message names the argument, the offender and the fix."""

    def __init__(
        self,
        argument: str,
        expected: str,
        got: object,
        offender: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.argument, self.expected, self.got = argument, expected, got
        self.offender, self.remedy = offender, remedy
        super().__init__(describe(argument, expected, str(got), offender, remedy))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.argument, self.expected, self.got, self.offender, self.remedy)


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
    """An option has a value that is not offered. Remedy: choose one of those the message lists."""


class MissingData(InvalidInput):
    """Data files that the call needs are not there. Remedy: the message says which, and where they are looked for."""


class CannotWrite(InvalidInput):
    """A file or folder cannot be written. Remedy: the message says why; make room, or choose another place."""


class UnreadableFit(InvalidInput):
    """A file is no saved fit, is damaged, or comes from a newer version. Remedy: the message says which; save anew."""


class ValueDoesNotExist(RevealedError):
    """At γ = 1 the soft value is infinite: the agent would rather go on for ever than end.

    Remedy: more negative rewards (`start=`, or start NFXP from a CCP fit), a discount below 1, or, where a policy
    never reaches a terminal state, a first step that gives every way out some probability (`first_step="smoothed"`).
    """


class SolverFailed(RevealedError):
    """A linear system could not be solved to its tolerance, or float64 cannot tell the choices (theory B6).

    Remedy: `solver="lu"`, a smaller discount, or rewards of smaller size.
    """


class MissingDependency(RevealedError, ImportError):
    """An optional package is not installed. Remedy: the message shows the one command that installs it."""


class WorkersLost(RevealedError):
    """Worker processes died again and again. Remedy: often memory ran out; fewer workers, or more memory for each.

    What had finished before is kept where the call keeps it (a folder, a bootstrap), and a new call goes on from there.
    """

    def __init__(self, pieces: int, reason: object) -> None:
        why = f"{type(reason).__name__}: {reason}" if isinstance(reason, BaseException) else str(reason)
        self.pieces, self.reason = pieces, " ".join(why.split())
        super().__init__(
            f"workers died again and again; {pieces} pieces of work are left ({self.reason[:200]}). Often memory ran "
            "out: use fewer workers, or give each more memory."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.pieces, self.reason)
