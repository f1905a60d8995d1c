"""Frames and files of decisions → aligned arrays of agents, times, states and actions.

A frame is anything narwhals accepts (pandas, Polars, Arrow, …) or the path of a CSV or Parquet file. Rows may come in
any order: the time column is mandatory and orders them within each id.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from revealed.errors import InvalidDemonstrations, InvalidInput, MissingDependency

Ints = npt.NDArray[np.intp]
MOST_INDEX = 2**31 - 2


@dataclass(frozen=True)
class Panel:
    """Decisions sorted by agent and time; `next_state` is −1 where it was not seen."""

    agent: Ints
    time: Ints
    state: Ints
    action: Ints
    next_state: Ints
    starts_here: npt.NDArray[np.bool_]
    ids: tuple[Any, ...]
    state_labels: tuple[Any, ...] | None
    action_labels: tuple[Any, ...] | None


def read_panel(
    frame: Any,
    *,
    id: str,
    time: str,
    state: str,
    action: str,
    next_state: str | None = None,
) -> Panel:
    """Sort, check and code the columns of a frame or file."""
    columns = _columns(frame, {"id": id, "time": time, "state": state, "action": action, "next_state": next_state})
    ids, agent = np.unique(columns["id"], return_inverse=True)
    order = np.lexsort((columns["time"], agent))
    agent = agent[order]
    clock = columns["time"][order]
    same = agent[1:] == agent[:-1]
    _require_distinct_times(ids, agent, clock, order, same)
    followed, position = _positions(agent, clock, same)
    labels, states = _code("state", columns["state"], columns.get("next_state"))
    action_labels, actions = _code("action", columns["action"])
    state_index = states[0][order]
    following = np.full(agent.size, -1, dtype=np.intp)
    following[:-1][followed] = state_index[1:][followed]
    if "next_state" in columns:
        following = _given_next(states[1][order], following, followed, order)
    return Panel(
        agent=agent,
        time=position,
        state=state_index,
        action=actions[0][order],
        next_state=following,
        starts_here=np.concatenate([[True], ~followed]) if agent.size else np.zeros(0, bool),
        ids=tuple(ids.tolist()),
        state_labels=labels,
        action_labels=action_labels,
    )


def _columns(frame: Any, wanted: dict[str, str | None]) -> dict[str, npt.NDArray[Any]]:
    import narwhals as nw

    if isinstance(frame, str | Path):
        frame = _read_file(Path(frame))
    try:
        table = nw.from_native(frame)
    except TypeError as error:
        raise InvalidInput(
            "frame", "a data frame or the path of a CSV or Parquet file", type(frame).__name__
        ) from error
    except ValueError as error:  # columns of one name
        raise InvalidInput("frame", "a data frame whose columns have names that differ", str(error)) from error
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    found = {}
    for role, name in wanted.items():
        if name is None and role == "next_state":
            continue
        if not isinstance(name, str) or name not in table.columns:
            raise InvalidInput(role, f"the name of a column among {', '.join(map(repr, table.columns))}", repr(name))
        found[role] = _plain(role, table.get_column(name).to_numpy())
    return found


def _read_file(path: Path) -> Any:
    import pandas as pd

    if not path.is_file():
        raise InvalidInput("path", "a CSV or Parquet file that exists", str(path))
    try:
        return pd.read_parquet(path) if path.suffix.lower() == ".parquet" else pd.read_csv(path)
    except ImportError as error:
        raise MissingDependency(f"reading {path.name} needs pyarrow: pip install pyarrow") from error
    except (ValueError, OSError) as error:  # parser, encoding and Parquet errors are among them
        raise InvalidInput("path", "a CSV or Parquet file that can be read", f"{path.name}: {error}") from error


def _plain(role: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column without holes, of one plain type: whole numbers, other numbers, dates or text."""
    import pandas as pd

    if values.size == 0:
        raise InvalidDemonstrations("frame", "at least one decision", "no rows")
    missing = np.asarray(pd.isna(values))
    if missing.any():
        row, n = int(np.flatnonzero(missing)[0]), int(missing.sum())
        raise InvalidDemonstrations(role, "no missing values", f"{n} missing", f"row {row}", "Drop or fill those rows.")
    if values.dtype != object:
        return values
    for kind, dtype in ((str, np.str_), (int | np.integer, np.int64), (float | np.number, np.float64)):
        if all(isinstance(v, kind) and not isinstance(v, bool | np.complexfloating) for v in values):
            try:
                return values.astype(dtype)
            except OverflowError as error:
                raise InvalidDemonstrations(role, "numbers of moderate size", str(error)) from error
    odd = next((i for i, v in enumerate(values) if type(v) is not type(values[0])), 0)
    got = f"{type(values[0]).__name__} and {type(values[odd]).__name__}" if odd else type(values[0]).__name__
    raise InvalidDemonstrations(role, "one kind of values: numbers, dates or text", got, f"row {odd}")


def _require_distinct_times(
    ids: npt.NDArray[Any], agent: Ints, clock: npt.NDArray[Any], order: Ints, same: npt.NDArray[np.bool_]
) -> None:
    twice = same & (clock[1:] == clock[:-1])
    if twice.any():
        i = int(np.flatnonzero(twice)[0]) + 1
        raise InvalidDemonstrations(
            "time",
            "one row per id and time",
            f"id {ids[agent[i]].item()!r} twice at time {clock[i]}",
            f"row {order[i]}",
        )


def _positions(agent: Ints, clock: npt.NDArray[Any], same: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Which rows are followed by the next one, and each row's time since its agent's first.

    Whole-number times that skip a period break the trajectory there: the next state is not known.
    """
    first = np.concatenate([[0], np.flatnonzero(~same) + 1]) if agent.size else np.zeros(0, np.intp)
    if np.issubdtype(clock.dtype, np.integer):
        position = clock - clock[first][agent]
        return same & (np.diff(clock) == 1), position.astype(np.intp)
    return same, (np.arange(agent.size) - first[agent]).astype(np.intp)


def _code(role: str, *columns: npt.NDArray[Any] | None) -> tuple[tuple[Any, ...] | None, list[Ints]]:
    """Whole numbers are indices as they are; anything else becomes sorted labels, shared by the columns given."""
    given = [c for c in columns if c is not None]
    if all(np.issubdtype(c.dtype, np.integer) for c in given):
        for column in given:
            bad = (column < 0) | (column > MOST_INDEX)
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                raise InvalidDemonstrations(role, "indices from 0", int(column[row]), f"row {row}")
        return None, [c.astype(np.intp) for c in given]
    if any(c.dtype.kind not in "UTb" for c in given):
        raise InvalidDemonstrations(
            role,
            "whole numbers or strings",
            f"dtype {given[0].dtype}",
            remedy="Make states of them first: bins, or labels.",
        )
    labels = np.unique(np.concatenate([c.astype(str) for c in given]))
    return tuple(labels.tolist()), [np.searchsorted(labels, c.astype(str)) for c in given]


def _given_next(given: Ints, following: Ints, followed: npt.NDArray[np.bool_], order: Ints) -> Ints:
    clash = followed & (given[:-1] != following[:-1])
    if clash.any():
        i = int(np.flatnonzero(clash)[0])
        raise InvalidDemonstrations(
            "next_state",
            "the state of the following row",
            f"{given[i]} where {following[i]} follows",
            f"row {order[i]}",
        )
    return given
