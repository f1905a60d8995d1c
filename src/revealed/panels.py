"""Frames and files of decisions → aligned arrays of agents, times, states and actions.

A frame is anything narwhals accepts (pandas, Polars, Arrow, …) or the path of a CSV or Parquet file. Rows may come in
any order: the time column is mandatory and orders them within each id.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from revealed.checks import Ints, as_list, is_index
from revealed.errors import InvalidDemonstrations, InvalidInput, MissingDependency

if TYPE_CHECKING:
    import pandas as pd

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
    states: Any = None,
    actions: Any = None,
    first_time: int | None = None,
) -> Panel:
    """Sort, check and code the columns of a frame or file."""
    columns = _columns(frame, {"id": id, "time": time, "state": state, "action": action, "next_state": next_state})
    ids, agent = np.unique(columns["id"], return_inverse=True)
    order = np.lexsort((columns["time"], agent))
    agent = agent[order]
    clock = columns["time"][order]
    same = agent[1:] == agent[:-1]
    _require_distinct_times(ids, agent, clock, order, same)
    followed, position = _positions(agent, clock, same, first_time)
    states = _categories(frame, state) if states is None and next_state is None else states
    actions = _categories(frame, action) if actions is None else actions
    labels, state_codes = _code("state", states, columns["state"], columns.get("next_state"))
    action_labels, action_codes = _code("action", actions, columns["action"])
    state_index = state_codes[0][order]
    following = np.full(agent.size, -1, dtype=np.intp)
    following[:-1][followed] = state_index[1:][followed]
    if "next_state" in columns:
        following = _given_next(state_codes[1][order], following, followed, order)
    return Panel(
        agent=agent,
        time=position,
        state=state_index,
        action=action_codes[0][order],
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


def _categories(frame: Any, column: str) -> list[Any] | None:
    """The labels of a categorical column in their own order (pandas, Polars' Enum); None for other columns."""
    if isinstance(frame, str | Path) or not hasattr(frame, "__getitem__"):
        return None
    known = getattr(getattr(frame[column], "dtype", None), "categories", None)
    return None if known is None else as_list(known)


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
        remedy = "Drop or fill those rows; where a last decision led goes into a column of its own (next_state=)."
        raise InvalidDemonstrations(role, "no missing values", f"{n} missing", f"row {row}", remedy)
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


def _positions(
    agent: Ints, clock: npt.NDArray[Any], same: npt.NDArray[np.bool_], first_time: int | None
) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Which rows are followed by the next one, and each row's time since `first_time`, or since its agent's first.

    Whole-number times that skip a period break the trajectory there: the next state is not known.
    """
    first = np.concatenate([[0], np.flatnonzero(~same) + 1])
    if clock.dtype.kind not in "iu":
        if first_time is not None:
            raise InvalidInput("first_time", "None, where times are not whole numbers", repr(first_time))
        return same, (np.arange(agent.size) - first[agent]).astype(np.intp)
    clock = clock.astype(np.int64)  # small types would wrap around
    if first_time is not None and (not is_index(first_time) or first_time > clock.min()):
        raise InvalidInput(
            "first_time", f"a whole number, at most {clock.min()}, the first time seen", repr(first_time)
        )
    position = clock - (clock[first][agent] if first_time is None else first_time)
    return same & (np.diff(clock) == 1), position.astype(np.intp)


def _code(role: str, known: Any, *columns: npt.NDArray[Any] | None) -> tuple[tuple[Any, ...] | None, list[Ints]]:
    """Columns as indices, and the labels behind them.

    Labels that are `known` come in that order; else whole numbers are indices as they are, and text becomes sorted
    labels, shared by the columns given.
    """
    given = [c for c in columns if c is not None]
    if known is not None:
        return _code_by(role, known, given)
    if all(np.issubdtype(c.dtype, np.integer) for c in given):
        for column in given:
            bad = (column < 0) | (column > MOST_INDEX)
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                raise InvalidDemonstrations(role, "indices from 0", int(column[row]), f"row {row}")
        return None, [c.astype(np.intp) for c in given]
    if any(c.dtype.kind not in "UTb" for c in given):
        whole = all(c.dtype.kind == "f" and np.all(c == np.round(c)) for c in given)
        remedy = "They are whole: .astype(int) will do." if whole else "Make states of them first: bins, or labels."
        raise InvalidDemonstrations(role, "whole numbers or strings", f"dtype {given[0].dtype}", remedy=remedy)
    return _code_by(role, np.unique(np.concatenate([c.astype(str) for c in given])).tolist(), given)


def _code_by(role: str, known: Any, columns: list[npt.NDArray[Any]]) -> tuple[tuple[Any, ...], list[Ints]]:
    labels = as_list(known)
    if not labels or not all(isinstance(x, Hashable) for x in labels) or len(set(map(str, labels))) != len(labels):
        raise InvalidInput(f"{role}s", "labels that differ, in the order of the model", repr(known)[:60])
    place = {str(label): k for k, label in enumerate(labels)}
    codes = []
    for column in columns:
        texts, inverse = np.unique(column.astype(str), return_inverse=True)
        code = np.array([place.get(text, -1) for text in texts.tolist()])[inverse]
        if (code < 0).any():
            row = int(np.flatnonzero(code < 0)[0])
            got = repr(column[row].item() if hasattr(column[row], "item") else column[row])
            raise InvalidDemonstrations(role, f"one of {', '.join(list(place)[:8])}", got, f"row {row}")
        codes.append(code.astype(np.intp))
    return tuple(labels), codes


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


def write_panel(
    steps: Any, names: dict[str, str | None], ids: Any, state_labels: Any, action_labels: Any
) -> pd.DataFrame:
    """Decisions as a frame, the way back from `read_panel`; `names` are those of the columns, None leaves one out."""
    import pandas as pd

    wanted = {field: name for field, name in names.items() if name is not None}
    if len(set(wanted.values())) < len(wanted):
        raise InvalidInput("to_frame", "columns of different names", repr(list(wanted.values())))
    labels = {"agent": ids, "state": state_labels, "action": action_labels, "next_state": state_labels}
    columns = {name: _labelled(labels.get(field), getattr(steps, field)) for field, name in wanted.items()}
    return pd.DataFrame(columns | {wanted["time"]: _apart(steps.agent, steps.time, steps.first)})


def _labelled(labels: tuple[Any, ...] | None, index: Ints) -> Any:
    """What the indices stand for, or the indices themselves; missing where an index is −1."""
    import pandas as pd

    if labels is None:
        return index if (index >= 0).all() else pd.Series(index, dtype="Int64").where(index >= 0)
    names = np.empty(len(labels) + 1, dtype=object)
    names[:-1] = labels
    return pd.Series(names[index]).infer_objects()  # −1 picks the None at the end


def _apart(agent: Ints, time: Ints, first: npt.NDArray[np.bool_]) -> Ints:
    """Times at which no trajectory touches the one before it of the same agent: those in the way begin later."""
    clock, begins = time.copy(), np.flatnonzero(first)
    free: dict[int, int] = {}
    for i, j in pairwise([*begins.tolist(), time.size]):
        clock[i:j] += max(0, free.get(int(agent[i]), 0) - int(time[i]))
        free[int(agent[i])] = int(clock[j - 1]) + 2
    return clock
