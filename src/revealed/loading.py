"""A saved fit put together again: `rv.load(path)`, the way back from `saving.py`.

Only classes that are listed there are ever made, and only from JSON and arrays whose checksums hold. What does not fit
together is an `UnreadableFit`, whatever is wrong with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import scipy.sparse as sp

from revealed import estimators
from revealed.archive import Arrays, read_archive, unreadable
from revealed.bootstrap import Bootstrap, Replication
from revealed.checks import is_index
from revealed.errors import InvalidInput, InvalidReward
from revealed.estimation import Options
from revealed.files import as_path
from revealed.fit import AnyFit, Fit
from revealed.goal_fit import GoalFit
from revealed.labels import Order, how_many
from revealed.loaded_checks import require_consistent, require_model
from revealed.loaded_history import require_history, require_last
from revealed.loaded_kinds import require_kinds
from revealed.loaded_words import bootstrap_retold
from revealed.mdp import MDP
from revealed.recomputed import require_recomputed, require_replications, table_gap
from revealed.rewards.base import Reward, align_reward, lift_reward, require_reward, reward_table
from revealed.saving import ESTIMATORS, FILE, KNOWN, MADE_AGAIN, UNSAID
from revealed.sparse_input import Fault, csr_from_parts
from revealed.voices import from_parts


def load(path: str | os.PathLike[str], reward: Reward | None = None) -> Any:
    """The fit that `fit.save(path)` wrote, or the `fit.zip` inside a folder; it behaves as the original did, a `Fit`
    or, if trips have goals, a `GoalFit`.

    Rewards of your own (a `TorchReward`, a `JaxReward`, another object) are not in the file: pass the same one as
    `reward`. Its parameters and its table at the estimate are compared with what was saved.
    """
    file = _find(path)
    if reward is not None:
        require_reward(reward)
    document, arrays = read_archive(file)
    try:
        return _Decoder(arrays, reward).fit(document["fit"])
    except _NeedsReward as needed:
        raise needed.told(file) from None
    except InvalidReward:
        if reward is not None:
            raise
        raise unreadable(file, "whose reward does not fit its model") from None
    except Exception as error:  # of any kind: what a damaged part does to NumPy or SciPy is theirs to choose
        why = str(error).rstrip(".") or type(error).__name__
        raise unreadable(file, f"whose parts are inconsistent: {why}") from error


def _find(path: Any) -> Path:
    given = as_path("path", path)
    if os.path.isdir(given):
        if not os.path.isfile(given / FILE):
            raise unreadable(given, f"a folder without {FILE}", remedy=None)
        return given / FILE
    there = os.path.exists(given)
    if not there and not given.suffix and os.path.isfile(given.with_name(f"{given.name}.zip")):
        return given.with_name(f"{given.name}.zip")  # as save named it
    if not there:
        raise unreadable(given, "which does not exist", remedy=None)
    return given


class _NeedsReward(Exception):
    """The file only knows what its reward was called."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def told(self, file: Path) -> InvalidInput:
        remedy = f"Create the {self.kind} as for the fit and pass it: rv.load({str(file)!r}, reward=...)."
        rule = f"is required: the file cannot hold the {self.kind} of this fit"
        return InvalidInput.conflict("reward", rule, remedy=remedy)


class _Decoder:
    """JSON as values; what was written once and meant twice is one object again."""

    def __init__(self, arrays: Arrays, reward: Reward | None) -> None:
        self.arrays, self.given = arrays, reward
        self._made: dict[str, Any] = {}
        self._tags: dict[str, Callable[[Any], Any]] = {
            "$array": lambda node: self._array(node["$array"]),
            "$date": lambda node: date.fromisoformat(node["$date"]),
            "$datetime": lambda node: _datetime(*node["$datetime"]),
            "$dict": lambda node: {self.decode(k): self.decode(v) for k, v in node["$dict"]},
            "$float": lambda node: float(node["$float"]),
            "$numpy time": lambda node: _numpy_time(*node["$numpy time"]),
            "$object": self._object,
            "$same": lambda node: self._made[node["$same"]],
            "$sparse": self._sparse,
            "$timestamp": lambda node: _timestamp(*node["$timestamp"]),
            "$tuple": self._tuple,
            "$words": lambda node: from_parts(node["$words"]),
        }

    def fit(self, node: dict[str, Any]) -> AnyFit:
        special = {"reward_model": self._reward, "kept": self._bootstraps}
        parts = {name: special.get(name, self.decode)(part) for name, part in node.items() if name != "estimator"}
        estimator = self._estimator(node["estimator"], parts["reward_model"])
        if self.given is not None:
            _require_names(self.given, self._saved_names(node["reward_model"]))
            parts["reward_model"] = align_reward(self.given, parts["mdp"])
        fit = (Fit if "policy" in parts else GoalFit)(**parts, estimator=estimator)
        require_consistent(fit)
        require_kinds(type(fit), parts)
        _require_table(fit)
        require_history(fit)
        status = require_recomputed(fit)
        require_last(fit)
        require_replications(fit)
        whole = reward_table(lift_reward(fit.reward_model, fit.mdp), fit.theta, fit.mdp)
        kept = {key: bootstrap_retold(fit, found) for key, found in fit.kept.items()}
        return replace(fit, reward=whole, status=status, kept=kept)  # older files have zeros where nothing is offered

    def _saved_names(self, node: dict[str, Any]) -> list[str]:
        return node["names"] if "$reward" in node else [str(name) for name in self.decode(node).names]

    def decode(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.decode(each) for each in node]
        if not isinstance(node, dict):
            return node
        tag = next((key for key in node if key.startswith("$")), None)
        return {key: self.decode(each) for key, each in node.items()} if tag is None else self._tags[tag](node)

    def _tuple(self, node: dict[str, Any]) -> tuple[Any, ...]:
        made = tuple(self.decode(node["$tuple"]))
        if "derived" in node:  # labels that know where their order comes from; older files do not tell
            made = Order(made, bool(node["derived"]), [str(name) for name in node.get("columns", ())])
        if "name" in node:
            self._made[node["name"]] = made
        return made

    def _array(self, name: str) -> Any:
        if self.arrays[name].dtype.kind == "c":
            raise ValueError(f"{name} holds complex numbers, which no part of a fit may hold")
        return self.arrays[name]

    def _sparse(self, node: dict[str, Any]) -> sp.csr_array:
        name, (rows, columns) = node["$sparse"], node["shape"]
        if name not in self._made:
            data, indices, indptr = (self._array(f"{name}/{part}") for part in ("data", "indices", "indptr"))
            if not is_index(rows) or not is_index(columns) or min(rows, columns) < 0:
                raise ValueError(f"{name} has the shape {node['shape']}")
            try:
                self._made[name] = csr_from_parts(data, indices, indptr, (rows, columns))
            except Fault as fault:
                raise ValueError(f"{name}: {fault}") from fault
        return self._made[name]

    def _object(self, node: dict[str, Any]) -> Any:
        kind, fields = node["$object"], {name: self.decode(part) for name, part in node["fields"].items()}
        self._made[node["name"]] = made = _make(kind, fields)
        return made

    def _reward(self, node: Any) -> Reward:
        if self.given is not None:
            return self.given
        if isinstance(node, dict) and "$reward" in node:
            raise _NeedsReward(str(node["$reward"]))
        return self.decode(node)

    def _estimator(self, node: Any, reward: Reward) -> Any:
        if node is None:
            return None
        if node["class"] not in ESTIMATORS:
            raise ValueError(f"there is no estimator {node['class']!r}")
        own = reward if node["reward"] is None else self._reward(node["reward"])
        arguments = self.decode(node["arguments"])
        told = {name: value for name, value in arguments.items() if not _is_default(name, value)}  # as it was written
        return getattr(estimators, node["class"])(own, **told)

    def _bootstraps(self, nodes: list[Any]) -> dict[Any, Any]:
        found = [_bootstrap(self.decode(node)) for node in nodes]
        return {("bootstrap", each.asked, each.seed, *([each.by] if each.by else [])): each for each in found}


def _make(kind: str, fields: dict[str, Any]) -> Any:
    """An object of one of the classes that are known, from its attributes."""
    if kind in MADE_AGAIN:
        return getattr(import_module(MADE_AGAIN[kind][0]), kind)(**(UNSAID.get(kind, {}) | fields))
    cls: Any = getattr(import_module(KNOWN[kind]), kind)
    if kind == "Bins":
        return cls.from_description(fields)
    if kind not in ("MDP", "Steps"):  # which are asked more below, and for single steps with their demonstrations
        require_kinds(cls, fields)
    if hasattr(cls, "__dataclass_fields__"):
        return cls(**fields)
    hidden = [name for name in fields if callable(getattr(cls, name, None))]
    if hidden:
        raise ValueError(f"{kind} has no field {hidden[0]}")
    made = cls.__new__(cls)
    if kind == "MDP":
        _require_fields(fields, MDP.__annotations__)
        made.__setstate__(fields)  # frozen, as every MDP is
        require_model(made)
        require_kinds(cls, fields)
    else:
        vars(made).update(fields)
    return made


def _is_default(option: str, value: Any) -> bool:
    field = Options.__dataclass_fields__.get(option)
    return field is not None and type(value) is type(field.default) and value == field.default


def _require_fields(found: dict[str, Any], needed: Iterable[str]) -> None:
    missing = [name for name in needed if name not in found]
    if missing:
        raise ValueError(f"the model lacks {missing[0]}")


def _bootstrap(parts: dict[str, Any]) -> Bootstrap:
    done = parts.pop("done")
    rows = zip(done["number"].tolist(), done["theta"], done["psi"], done["failure"], strict=True)
    return Bootstrap(**parts, done={r: Replication(theta, psi, failure) for r, theta, psi, failure in rows})


def _datetime(text: str, zone: str | None) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if zone is None else moment.astimezone(ZoneInfo(zone))


def _timestamp(text: str, zone: str | None, unit: str) -> Any:
    import pandas as pd

    moment = pd.Timestamp(text).as_unit(unit)  # pyright: ignore[reportArgumentType]
    return moment if zone is None else moment.tz_convert(zone)


def _numpy_time(number: int, dtype: str) -> Any:
    if np.dtype(dtype).kind not in "mM":
        raise ValueError(f"{dtype} is not a date type")
    return np.array(number, dtype=np.int64).view(np.dtype(dtype))[()]


def _require_names(reward: Reward, saved: list[str]) -> None:
    """A reward that was passed has the parameters of the file."""
    own = [str(name) for name in reward.names]
    if reward.n_params != len(saved):
        raise InvalidReward("reward", f"{how_many(len(saved), 'parameter')}, like the saved one", f"{reward.n_params}")
    first = next((i for i, (here, there) in enumerate(zip(own, saved, strict=True)) if here != there), None)
    if first is not None:
        expected = f"the names of the saved one ({saved[first]!r})"
        raise InvalidReward("reward", expected, repr(own[first]), f"parameter {first}")


def _require_table(fit: AnyFit) -> None:
    """The reward gives at the estimate what it gave when the fit was saved."""
    gap = table_gap(fit)
    if gap:
        remedy = "Are the features the same, and in the same order?"
        expected = "the saved table of rewards at the saved weights"
        raise InvalidReward("reward", expected, f"one that differs by {gap:.3g}", None, remedy)
