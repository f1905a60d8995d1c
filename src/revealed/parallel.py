"""Independent pieces of work on several cores, or on a cluster: joblib, in one place.

Inside `joblib.parallel_config(backend="dask")` (or "ray") the same call runs there, unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def each(function: Callable[..., Any], items: Iterable[tuple[Any, ...]], jobs: int | None = None) -> Iterator[Any]:
    """`function(*item)` for every item, in the order in which they finish.

    `jobs` is the number of workers; 1 stays in this process, whatever `joblib.parallel_config` says, and None takes
    what it says (1 where it says nothing). Workers share the cores: joblib allows each so many threads for linear
    algebra that they do not fight over them.
    """
    if jobs == 1:
        for item in items:
            yield function(*item)
        return
    from joblib import Parallel, delayed

    options: dict[str, Any] = {"batch_size": 1, "pre_dispatch": "1.5*n_jobs"}  # pieces differ: none waits for another
    pool = Parallel(n_jobs=jobs, return_as="generator_unordered", **options)
    yield from pool(delayed(function)(*item) for item in items)


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
