"""Watches a worker: gives it cases, collects outcomes, and counts it as a hang or a crash when it does not answer."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fuzz.cases import ESCAPED, Case, Outcome
from fuzz.pool import LARGE
from fuzz.worker import SECONDS

TESTS = Path(__file__).parents[1]
PATIENCE = 10 * SECONDS  # of waiting: a machine that does other things as well is no hang
START = 600  # seconds for a worker to load
HUNG, CRASHED = "hung", "crashed"
LONG = "long"  # a call that was asked for much was at work when its time was over: no failure
MALFORMED = "malformed"  # values that may damage memory, so that a later call pays for it
FAILURES = (ESCAPED, HUNG, CRASHED)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": "Agg"}


@dataclass
class Worker:
    """A process that plays cases in a folder of its own."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="fuzz-")))

    def __post_init__(self) -> None:
        paths = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
        own = {"FUZZ_TRACE": str(self.folder / "trace.txt"), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        own |= ONE_THREAD | {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
        (self.folder / "here").mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.folder / "here",
            env=os.environ | own,
            start_new_session=True,
        )
        if self._answer(START) != {"ready": True}:
            raise RuntimeError("the worker did not start")

    def play(self, case: Case) -> Outcome:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{case}\n".encode("utf-8", "surrogatepass"))
            self.process.stdin.flush()
            told = self._answer(PATIENCE)
        except BrokenPipeError:
            told = None
        if isinstance(told, dict):
            warned = tuple(told.pop("warned"))
            return Outcome(**told, warned=warned)
        return self._lost(case, waiting=told == "waiting")

    def _answer(self, seconds: float) -> Any:
        """A dict; None where the process has ended, "waiting" where it has not answered."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        if not ready:
            return "waiting"
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def _lost(self, case: Case, waiting: bool) -> Outcome:
        if waiting:
            self.process.kill()
        self.process.wait()
        trace = (self.folder / "trace.txt").read_text(errors="replace").strip()
        ended = -(self.process.returncode or 0)
        hung = waiting or ended == signal.SIGXCPU
        said = f"no answer in {SECONDS} s" if hung else f"ended by signal {ended}" if ended > 0 else f"exit {-ended}"
        inner = next((line for line in trace.splitlines() if "/revealed/" in line), "")
        where = inner.strip().rpartition("/revealed/")[2].replace('", line ', ":").partition(" in ")[0]
        return Outcome(str(case), HUNG if hung else CRASHED, said, where)

    def stop(self) -> None:
        """It, and what it may have started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def played(cases: Iterable[Case]) -> Iterator[Outcome]:
    """The outcomes of cases; a new worker takes over where one was lost."""
    worker, suspect = None, None
    try:
        for case in cases:
            worker = Worker() if worker is None else worker
            outcome = worker.play(case)
            suspect = outcome.case if MALFORMED in outcome.case else suspect
            if outcome.how in (HUNG, CRASHED):
                worker.stop()
                worker = None
                if outcome.how == HUNG and any(value in LARGE for _, value in case.values):
                    outcome = replace(outcome, how=LONG)
                else:
                    outcome, suspect = _alone(case, outcome, suspect), None
            yield outcome
    finally:
        if worker is not None:
            worker.stop()


def _alone(case: Case, before: Outcome, suspect: str | None) -> Outcome:
    """What is lost is played once more, in a worker of its own: an earlier call may have damaged memory. What answers
    then was no hang; threads of earlier calls, or another program, had used the time."""
    worker = Worker()
    again = worker.play(case)
    worker.stop()
    if again.how in (HUNG, CRASHED):
        return again
    if before.how == HUNG:
        return replace(again, warned=(*again.warned, f"{before.said} at first"))
    if suspect is not None:
        return replace(before, case=suspect, said=f"{before.said}, in a later call: {case}")
    return replace(before, said=f"{before.said}, but not when played alone")


@dataclass
class Tally:
    """How many cases ended how; the failures, and what was warned of."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Outcome] = field(default_factory=list)
    warned: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.counts[outcome.how] += 1
        self.warned.update(outcome.warned)
        if outcome.how in FAILURES:
            self.failures.append(outcome)

    @property
    def cases(self) -> int:
        return sum(self.counts.values())

    @property
    def sites(self) -> Counter[str]:
        """Lines of the library at which failures ended."""
        return Counter(
            f"{one.where or one.case.partition('(')[0]} {one.said.partition(':')[0]}" for one in self.failures
        )

    def words(self) -> str:
        names = {ESCAPED: "escapes", HUNG: "hangs", CRASHED: "crashes"}
        parts = [f"{self.counts[how]} {name}" for how, name in names.items()]
        parts += [f"{self.counts[LONG]} of large sizes cut off"] if self.counts[LONG] else []
        return f"{self.cases} cases, {', '.join(parts)}, {len(self.sites)} sites, {sum(self.warned.values())} warnings"
