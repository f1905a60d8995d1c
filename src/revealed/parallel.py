"""Independent pieces of work on several cores, or on a cluster: joblib, in one place.

Inside `joblib.parallel_config(backend="dask")` (or "ray") the same call runs there, unchanged. A piece carries all that
it needs, its random stream included, so that neither the number of workers nor the death of one changes a result.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from multiprocessing import parent_process
from threading import Lock, Thread
from typing import Any
from uuid import uuid4

from revealed.checks import require_count
from revealed.errors import InvalidInput, WorkersLost
from revealed.voices import shown

MOST_LOSSES = 3  # workers lost in a row, with no piece finished in between, after which we give up
MOST_JOBS = 10_000  # workers that somebody may mean
LOOK = 1.0  # seconds between two looks whether the process that hands out work is still there
AT_ONCE = 4  # pieces for each worker in a round, where a backend works in rounds

# How backends say that a worker died, or data with it: processes of joblib, Dask, Ray. By name, since none is loaded.
LOSSES = ("BrokenProcessPool", "CancelledError", "RayActorError", "WorkerCrashedError", "ObjectLostError")
HOPELESS = ("KilledWorker",)  # Dask says so when it has handed a piece out several times

_SHARES: ContextVar[bool] = ContextVar("shares the cores with other pieces", default=False)


def each(function: Callable[..., Any], items: Iterable[tuple[Any, ...]], jobs: int | None = None) -> Iterator[Any]:
    """`function(*item)` for every item, in the order in which they finish.

    `jobs` is the number of workers; 1 stays in this process, whatever `joblib.parallel_config` says, and None takes
    what it says (1 where it says nothing). Workers share the cores: joblib allows each so many threads for linear
    algebra that they do not fight over them. Pieces whose worker dies are handed out again.
    """
    if jobs is not None:
        require_count("jobs", jobs)
        if jobs > MOST_JOBS:
            raise InvalidInput("jobs", f"at most {MOST_JOBS} workers", shown(jobs))
    if jobs == 1:
        for item in items:
            with one_thread():  # as a worker does it, so that sums are taken in the same order
                result = function(*item)
            yield result
        return
    left, losses = dict(enumerate(items)), 0
    while left:
        try:
            with closing(_finished(function, left, jobs)) as found:
                for number, result in found:
                    losses = 0
                    del left[number]
                    yield result
        except Exception as error:
            if not (is_one_of(error, LOSSES) or is_one_of(error, HOPELESS)):
                raise
            losses += 1
            if losses > MOST_LOSSES or is_one_of(error, HOPELESS):
                raise WorkersLost(len(left), error) from error


@dataclass(frozen=True, eq=False)
class Piece:
    """A call with all that it needs inside: joblib would leave the only copy of a large argument with one of Dask's
    workers, and it would be lost with it."""

    function: Callable[..., Any]
    number: int
    item: tuple[Any, ...]
    shares: bool  # the cores, with other pieces
    maker: int = field(default_factory=os.getpid)  # the process that hands it out

    def __call__(self) -> tuple[int, Any]:
        _end_with(self.maker)
        before = _SHARES.set(self.shares or _SHARES.get())
        try:
            with one_thread():
                return self.number, self.function(*self.item)
        finally:
            _SHARES.reset(before)


def _end_with(maker: int) -> None:
    """Watch, in a worker, for the end of the process that started it: one that is killed cannot end its workers."""
    if os.getppid() == maker and maker not in _WATCHED:
        _WATCHED.add(maker)
        Thread(target=_watch, args=(maker,), name="revealed-watch", daemon=True).start()


def _follow(maker: int) -> None:
    """The same as soon as a worker of this machine's own pool begins: its maker may have been killed meanwhile."""
    if os.getppid() != maker:
        os._exit(1)
    _end_with(maker)


def _watch(maker: int) -> None:
    while os.getppid() == maker:
        time.sleep(LOOK)
    os._exit(1)


_WATCHED: set[int] = set()


def _finished(
    function: Callable[..., Any], items: dict[int, tuple[Any, ...]], jobs: int | None
) -> Generator[tuple[int, Any], None, None]:
    """Numbers and results, as they finish."""
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend

    # loky replaces a worker that has grown too large, and warns; pieces that are lost are handed out again here
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    together = workers(jobs)
    pieces = [Piece(function, number, item, together > 1) for number, item in items.items()]
    client = dask_client()
    if client is not None:
        yield from _on_dask(client, pieces)
        return
    pool: Any
    jobs = None if jobs is None else max(2, min(jobs, len(pieces)))  # a worker without a piece only takes memory
    options: dict[str, Any] = {"batch_size": 1, "pre_dispatch": "1.5*n_jobs"}  # pieces differ: none waits for another
    if type(get_active_backend()[0]).__name__ == "LokyBackend":
        options |= {"initializer": _follow, "initargs": (os.getpid(),)}
    try:
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered", **options)
    except ValueError:  # Ray's backend, and joblib's "multiprocessing", hand over nothing before a round is done
        with Parallel(n_jobs=jobs, **options) as pool:
            for k in range(0, len(pieces), AT_ONCE * together):
                yield from pool(delayed(piece)() for piece in pieces[k : k + AT_ONCE * together])
        return
    with ignored_interrupts():
        found = pool(delayed(piece)() for piece in pieces)
    try:
        for pair in found:  # noqa: UP028  # `yield from` would close `found` by itself
            yield pair
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that pieces were in vain, to whoever has stopped them
            found.close()


@contextmanager
def ignored_interrupts() -> Iterator[None]:
    """Processes that are started here ignore Ctrl-C, which a terminal sends to the whole group: this process handles it
    and ends them; each of them would print a traceback. A Ctrl-C in the meantime is handled afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # else it is started on the way, and unblocks what is blocked here
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def dask_client() -> Any:
    """The client of the Dask cluster that `joblib.parallel_config` names; None where it names none."""
    from joblib.parallel import get_active_backend

    return getattr(get_active_backend()[0], "client", None)


def _on_dask(client: Any, pieces: Sequence[Piece]) -> Iterator[tuple[int, Any]]:
    """By Dask's own futures: joblib would wait for ever for a piece that Dask has given up. Dask knows of all pieces:
    workers that join later find some to do, and those of a worker that dies go to others."""
    from distributed import as_completed

    names = [f"{getattr(piece.function, '__name__', 'piece')}-{uuid4().hex}" for piece in pieces]
    futures = [client.submit(piece, key=name, pure=False) for piece, name in zip(pieces, names, strict=True)]
    try:
        for future in as_completed(futures, loop=client.loop):
            yield future.result()
            future.release()
    finally:
        for future in futures:
            future.release()  # what has not begun never will


def is_one_of(error: BaseException, names: Sequence[str]) -> bool:
    """Whether an error is of a class with one of these names."""
    return any(kind.__name__ in names for kind in type(error).__mro__)


def side_by_side(function: Callable[[Any], Any], items: Sequence[Any], worth: bool = True) -> Iterator[Any]:
    """`function(item)` for every item, in their order, on threads: for work that leaves Python's lock alone, such as
    SuperLU's. Memory is shared, and at most two results a thread wait to be taken. `worth=False` stays on this thread:
    small pieces are Python's work, and do not run side by side."""
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


def elsewhere() -> bool:
    """Whether `joblib.parallel_config` names a cluster, such as Dask's or Ray's, and this is not work for one."""
    if in_worker() or "joblib" not in sys.modules:
        return False
    from joblib.parallel import get_active_backend

    return not type(get_active_backend()[0]).__module__.startswith("joblib._parallel_backends")


def in_order(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """`function(item)` for every item, in their order, by the workers of `each`, which take several at a time."""
    n, m = min(len(items), AT_ONCE * workers(None)), len(items)
    parts = [(k, function, items[m * k // n : m * (k + 1) // n]) for k in range(n)]
    found = dict(each(_some, parts))
    return (result for k in range(n) for result in found[k])


def _some(number: int, function: Callable[[Any], Any], items: Sequence[Any]) -> tuple[int, list[Any]]:
    return number, [function(item) for item in items]


def in_worker() -> bool:
    """Whether this is work for another process, or a piece among others, which have shared out the cores already."""
    return _SHARES.get() or parent_process() is not None


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
