"""Where a run took place, and on how many threads: seconds mean nothing without it."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from math import isnan
from pathlib import Path
from typing import Any

from revealed import __version__
from revealed.parallel import cores

PACKAGES = ("numpy", "scipy", "jax", "pandas", "joblib", "matplotlib")
BUSY = 0.25  # cores that other work takes, from which on it may slow a measurement down
WINDOW = 1.0  # seconds: the system counts in hundredths, too coarse for less
JAX_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory and versions."""
    return {
        "processor": processor(),
        "cores": cores(),
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": f"one for linear algebra; JAX: {_jax_threads()}",
        "python": platform.python_version(),
        "revealed": __version__,
        **{name: _version(name) for name in PACKAGES},
    }


def processor() -> str:
    """The processor's name as its maker gives it, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return (names[0] if names else platform.processor()) or "unknown"


def _jax_threads() -> str:
    flags = os.environ.get("XLA_FLAGS", "")
    return "one" if flags == JAX_THREAD else f"XLA_FLAGS={flags}" if flags else "as JAX chooses"


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def ask_jax_for_one_thread() -> None:
    """For a program that owns its process, before JAX loads; workers inherit it. A choice that was made is kept."""
    os.environ.setdefault("XLA_FLAGS", JAX_THREAD)


class OtherWork:
    """How much of the machine other work takes while this process measures.

    `cores()` is the mean number of cores since the last call, or over at least a second where that was just now: busy
    time of the machine less this process's own. None where there was no second yet, or the system does not tell.
    """

    def __init__(self) -> None:
        self._seen = [_times()]

    def cores(self) -> float | None:
        now = _times()
        old = [seen for seen in self._seen if seen[0] <= now[0] - WINDOW]
        self._seen = [*old[-1:], *self._seen[len(old) :], now]
        if not old or isnan(now[1]):
            return None
        return round(max(0.0, (now[1] - old[-1][1]) / (now[0] - old[-1][0])), 2)


def _times() -> tuple[float, float]:
    """Seconds of the clock, and of all cores spent on others than this process and its children that have ended."""
    own = os.times()
    return time.perf_counter(), _busy() - (own.user + own.system + own.children_user + own.children_system)


def _busy() -> float:
    """Seconds that all cores were busy since the machine started, or taken by its host; NaN where unknown."""
    try:
        first = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()
        user, nice, system, _, _, irq, softirq, steal = map(int, first[1:9])
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return float("nan")
