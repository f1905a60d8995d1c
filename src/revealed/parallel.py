"""Independent pieces of work on several cores, or on a cluster: joblib, in one place.

Inside `joblib.parallel_config(backend="dask")` (or "ray") the same call runs there, unchanged.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import parent_process
from threading import Lock
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


def side_by_side(function: Callable[[Any], Any], items: Sequence[Any], worth: bool = True) -> Iterator[Any]:
    """`function(item)` for every item, in their order, on threads: for work that leaves Python's lock alone, such as
    SuperLU's. Memory is shared, and at most two results a thread wait to be taken. `worth=False`
    stays on this thread: small pieces are Python's work, and do not run side by side."""
    n = 1 if in_worker() or not worth else min(cores(), len(items))
    if n <= 1:
        with one_thread():
            yield from map(function, items)
        return
    with one_thread(), ThreadPoolExecutor(n) as pool:
        waiting = deque(pool.submit(function, item) for item in items[: 2 * n])
        for item in items[2 * n :]:
            yield waiting.popleft().result()
            waiting.append(pool.submit(function, item))
        while waiting:
            yield waiting.popleft().result()


def in_worker() -> bool:
    """Whether this process works for another one, which has shared out the cores already."""
    return parent_process() is not None


def workers(jobs: int | None) -> int:
    """How many workers `each` has for this number of jobs."""
    if jobs is not None:
        return jobs
    from joblib import effective_n_jobs

    return max(1, effective_n_jobs(None))  # pyright: ignore[reportArgumentType]  # None: what the surroundings say


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Limit:
    """One thread for linear algebra while anybody asks for it; the last to leave puts back what the first found."""

    def __init__(self) -> None:
        self._lock, self._asking = Lock(), 0
        self._controller: Any = None
        self._found: Any = None
        self._modules = 0

    def enter(self) -> None:
        with self._lock:
            self._asking += 1
            if self._asking == 1:
                self._found = self._libraries().limit(limits=1)

    def _libraries(self) -> Any:
        """Those that are loaded; looking takes milliseconds, so that it is done again only where there may be more."""
        if self._controller is None or self._modules != len(sys.modules):
            from threadpoolctl import ThreadpoolController

            self._controller, self._modules = ThreadpoolController(), len(sys.modules)
        return self._controller

    def leave(self) -> None:
        with self._lock:
            self._asking -= 1
            if self._asking == 0:
                self._found.restore_original_limits()


_LIMIT = _Limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread while this lasts, so that neither seconds nor rounding depend on the workers, and
    our own threads do not fight with those of BLAS for the cores."""
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
