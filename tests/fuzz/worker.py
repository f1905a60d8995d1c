"""Plays cases, one a line of its input, and tells the outcome of each, one a line of its output.

It runs in a folder of its own that is thrown away. Memory is limited, so that what wants too much is told so instead of
making the machine swap; a call that computes for longer than allowed ends the process, with a traceback.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import os
import resource
import signal
import sys
from typing import IO, Any

SECONDS = 20  # of computing, in one call
MEMORY = 3 << 30  # beyond what is in use when all is loaded


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    traces = open(os.environ["FUZZ_TRACE"], "w")  # noqa: SIM115  # open as long as the process lives
    _be_quiet()
    from fuzz.cases import Case, play

    _load()
    faulthandler.enable(traces)
    faulthandler.register(signal.SIGXCPU, traces, all_threads=False, chain=True)
    _limit_memory()
    _tell(answers, {"ready": True})
    for line in sys.stdin:
        _allow_seconds()
        _tell(answers, dataclasses.asdict(play(Case.parse(line))))
        _tidy()


def _be_quiet() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _load() -> None:
    """What takes long at first use: it should not count as part of a call."""
    from fuzz.things import THINGS, thing

    for name in {"reward.torch", "fit.neural", "fit.device"} & set(THINGS):
        thing(name)


def _limit_memory() -> None:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def _allow_seconds() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + SECONDS + 1, hard))


def _tell(answers: IO[str], what: Any) -> None:
    answers.write(json.dumps(what) + "\n")


def _tidy() -> None:
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


if __name__ == "__main__":
    main()
