"""A cluster by its address: inside `on_cluster`, whatever goes through joblib runs there.

It is `joblib.parallel_config` with clear errors: no such file, no response, no workers, other versions there, or none.
The latter matter, since a result is the same to the last digit only where the same code computes it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from revealed.errors import InvalidInput, MissingDependency
from revealed.voices import shown

ANSWER_SECONDS = 30  # for a scheduler to answer, and for a first worker to join it
SAME = ("revealed", "numpy", "scipy")  # packages whose versions decide what a number is
RAY = "ray"
DASK_REMEDY = "Start one with `dask scheduler`, and on every machine `dask worker ADDRESS`."
FILE_REMEDY = "`dask scheduler --scheduler-file FILE` writes one; the scheduler's address works, too."
RAY_REMEDY = "Start one with `ray start --head`, or set RAY_ADDRESS to one that is running."


@contextmanager
def on_cluster(address: str | os.PathLike[str]) -> Iterator[int]:
    """Context manager: run sweeps, Monte Carlo studies and bootstraps on a cluster; yields its number of workers.

    `address` is that of a Dask scheduler ("tcp://host:8786") or the JSON file that it wrote (--scheduler-file), or
    "ray" for the Ray cluster that runs here, or that RAY_ADDRESS names.
    """
    from revealed.parallel import workers

    place = os.fspath(address) if isinstance(address, os.PathLike) else address
    if not isinstance(place, str) or not (place == RAY or "://" in place or place.endswith(".json")):
        expected = 'the address of a Dask scheduler (tcp://host:8786), its .json file, or "ray"'
        raise InvalidInput("cluster", expected, shown(address), remedy=DASK_REMEDY)
    with _ray() if place == RAY else _dask(place):
        yield workers(None)


@contextmanager
def _dask(place: str) -> Iterator[None]:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependency("a Dask cluster needs Dask's client: pip install 'dask[distributed]'") from error
    from joblib import parallel_config

    # the file is read here: of one that is not there Dask would wait for ever
    where = address_in(place) if place.endswith(".json") else place
    try:
        _knock(where)
        client: Any = Client(where, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:  # nobody there, or no such protocol
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InvalidInput(
            "cluster", "a Dask scheduler that responds", f"{place}: {reason}", None, DASK_REMEDY
        ) from error
    with client:
        _require_workers(client, place)
        with parallel_config(backend="dask", client=client):
            yield


def _knock(address: str) -> None:
    """Wait until a scheduler answers. A client does that, too, but leaves a thread behind where none does."""
    from distributed import Security
    from distributed.comm.core import connect

    async def visit() -> None:
        await (await connect(address, timeout=ANSWER_SECONDS, **Security().get_connection_args("client"))).close()

    with ThreadPoolExecutor(1) as pool:  # a notebook has a loop of its own running here
        pool.submit(lambda: asyncio.run(visit())).result()


def address_in(file: str) -> str:
    """The address of a scheduler, from the file that it wrote."""
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise _not_written(f"{file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # neither JSON nor, perhaps, text
        raise _not_written(f"{file}, which is not JSON") from error
    address = found.get("address") if isinstance(found, dict) else None
    if address is None:
        raise _not_written(f"{file}, which has no address")
    if not isinstance(address, str) or "://" not in address:
        raise _not_written(f"{file}, whose address is {address!r}")
    return address


def _not_written(got: str) -> InvalidInput:
    return InvalidInput("cluster", "a file that a Dask scheduler wrote", got, remedy=FILE_REMEDY)


def _require_workers(client: Any, place: str) -> None:
    """Some workers, with the versions that are here."""
    try:
        client.wait_for_workers(1, timeout=ANSWER_SECONDS)
    except TimeoutError as error:
        got = f"none in {ANSWER_SECONDS} seconds at {place}"
        raise InvalidInput("cluster", "at least one worker", got, remedy=DASK_REMEDY) from error
    for name in SAME:
        require_same(name, client.run(version, name, on_error="return"))


def require_same(name: str, there: Mapping[str, str | BaseException]) -> None:
    """The version of a package at every worker, or what came of asking for it, is the one here."""
    here = version(name)
    for worker, found in there.items():
        if found != here:
            remedy = "Install the same versions there: different versions may give different numbers."
            raise InvalidInput("cluster", f"workers with {name} {here}, as here", _in_words(found), worker, remedy)


def _in_words(found: str | BaseException) -> str:
    """A version, or why there is none."""
    if isinstance(found, str):
        return found
    if isinstance(found, PackageNotFoundError):  # an error of Ray's is one of the error's own class, too
        return "no installation"
    return " ".join(f"{type(found).__name__}: {found}".split())[:200]


@contextmanager
def _ray() -> Iterator[None]:
    """Joins the cluster that runs, and leaves it; of the versions there it sees those of one worker."""
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise MissingDependency("a Ray cluster needs Ray: pip install ray") from error
    from joblib import parallel_config

    found = ray.is_initialized()
    if not found:
        try:
            ray.init(address="auto", log_to_driver=False)
        except (ConnectionError, OSError) as error:
            raise InvalidInput("cluster", "a running Ray cluster", "none", remedy=RAY_REMEDY) from error
    try:
        for name in SAME:
            require_same(name, {"a Ray worker": _ray_version(ray, name)})
        register_ray()
        with parallel_config(backend="ray", n_jobs=-1):
            yield
    finally:
        if not found:
            ray.shutdown()


def _ray_version(ray: Any, name: str) -> str | BaseException:
    """Of a package at a worker; the error where it has none. Ray's errors are of its own classes."""
    try:
        return ray.get(ray.remote(version).remote(name))
    except Exception as error:
        return error
