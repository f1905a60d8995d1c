"""Where a run took place, and on how many threads: seconds mean nothing without it."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from revealed import __version__
from revealed.parallel import cores

PACKAGES = ("numpy", "scipy", "jax", "pandas", "joblib", "matplotlib")
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
