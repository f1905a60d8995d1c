"""A fit taken apart into JSON and arrays; `loading.py` is the way back, `archive.py` the file between.

Every attribute of a fit and of what it holds is written, new ones included, but for what is computed from others. What
JSON cannot say is a dict with one key that begins with `$`: tuples, dates, NaN, arrays, objects of this library. What
cannot be written at all is an error here and now, never a part that is silently missing later.
"""

from __future__ import annotations

import os
import re
from datetime import date, datetime, timezone
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import scipy.sparse as sp

from revealed.archive import Arrays, write_archive
from revealed.errors import InvalidInput
from revealed.files import as_path, prepare_folder
from revealed.labels import Order
from revealed.voices import Words

FILE = "fit.zip"  # what a fit is called inside a folder

# the classes that are written with all their attributes, and where they live
KNOWN = {
    "AgentGroups": "revealed.agent_groups",
    "Bins": "revealed.bins",
    "CsrTransitions": "revealed.transitions.csr",
    "Demand": "revealed.trip_demand",
    "Demonstrations": "revealed.demonstrations",
    "EstimatedTransitions": "revealed.transitions.estimated",
    "Frequencies": "revealed.transition_models",
    "Frequency": "revealed.first_step",
    "GoalLogit": "revealed.first_step",
    "Kernel": "revealed.first_step",
    "KernelAverages": "revealed.smooth_transitions",
    "LinearReward": "revealed.rewards.linear",
    "LinkSizeReward": "revealed.routes.link_size",
    "LinkSizes": "revealed.routes.link_size",
    "Logit": "revealed.first_step",
    "MDP": "revealed.mdp",
    "Nodes": "revealed.routes.link_tables",
    "RoadNetwork": "revealed.routes.network",
    "RouteChoice": "revealed.routes.choice",
    "SharedOutcomes": "revealed.transition_models",
    "Smoothed": "revealed.first_step",
    "SmoothedFrequencies": "revealed.smooth_transitions",
    "Status": "revealed.diagnosis",
    "Steps": "revealed.trajectories",
    "StoredPolicies": "revealed.goal_cases",
    "TabularReward": "revealed.rewards.tabular",
}
_NEURAL = ("features", "hidden", "seed", "activation", "standardize", "state_labels", "action_labels", "columns")
# those that are made again by their constructor, and its arguments; what older files do not say of them
MADE_AGAIN = {"NeuralReward": ("revealed.rewards.neural", _NEURAL)}
UNSAID = {"NeuralReward": {"standardize": False}}
REWARDS = ("LinearReward", "TabularReward", "NeuralReward", "LinkSizeReward")
ESTIMATORS = ("NFXP", "MCEIRL", "CCP", "NPL")

LONG = 16  # entries from which a tuple that occurs twice (labels, ids) is written once
MOST_BITS = 10_000  # of a whole number: longer ones are not read back from text


def save_fit(fit: Any, path: str | os.PathLike[str]) -> Path:
    """Write the fit to one file and return its path.

    A folder gets a `fit.zip`; a path without a suffix gets `.zip`; folders on the way are made.
    """
    target = _target(path)
    encoder = Encoder()
    document = {"fit": encoder.fit(fit)}
    prepare_folder(target.parent, "path")
    return write_archive(target, document, encoder.arrays)


def _target(path: Any) -> Path:
    target = as_path("path", path)
    if os.path.isdir(target):
        return target / FILE
    return target if target.suffix else target.with_name(f"{target.name}.zip")


class Encoder:
    """Values as JSON; `arrays` collects what is written beside it. What occurs twice is written once."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self._names: dict[int, tuple[Any, str]] = {}  # with the object, lest its id be given to another
        self._taken: set[str] = set()

    def fit(self, fit: Any) -> dict[str, Any]:
        special = {"reward_model": self.reward, "kept": self.bootstraps}
        parts = {
            name: special.get(name, self.encode)(value, name)
            for name, value in own_attributes(fit).items()
            if name != "estimator"
        }
        return parts | {"estimator": self.estimator(fit.estimator, fit.reward_model)}

    def reward(self, reward: Any, where: str) -> Any:
        """One of ours, or what is needed to recognise another: `rv.load(path, reward=...)` is then given it."""
        if _class_of(reward) in REWARDS:
            return self.encode(reward, where)
        names = [str(name) for name in reward.names]
        return {"$reward": type(reward).__name__, "n_params": int(reward.n_params), "names": names}

    def estimator(self, estimator: Any, reward_model: Any) -> Any:
        """Its class and arguments; the reward only where it is not the fit's own (labels in another order)."""
        if estimator is None:
            return None
        kind, where = type(estimator), "estimator"
        if kind.__name__ not in ESTIMATORS or kind.__module__ != "revealed.estimators":
            raise _cannot(kind.__name__, where, f"Use one of rv.{', rv.'.join(ESTIMATORS)}.")
        own = {name: value for name, value in vars(estimator).items() if name not in ("reward", "options")}
        options = {name: value for name, value in vars(estimator.options).items() if name != "callback"}
        other = estimator.reward is not reward_model
        return {
            "class": kind.__name__,
            "arguments": self.encode(own | options, where),
            "reward": self.reward(estimator.reward, f"{where}.reward") if other else None,
        }

    def bootstraps(self, kept: dict[Any, Any], where: str) -> list[Any]:
        """Those of the results kept that take long to compute again; each is a few stacked arrays."""
        found = [value for key, value in kept.items() if isinstance(key, tuple) and key[0] == "bootstrap"]
        return [self._bootstrap(value, f"{where}.bootstrap{i}") for i, value in enumerate(found)]

    def _bootstrap(self, found: Any, where: str) -> dict[str, Any]:
        parts = {name: value for name, value in own_attributes(found).items() if name != "done"}
        done = {
            "number": np.array(list(found.done), dtype=np.int64),
            "theta": np.array([each.theta for each in found.done.values()]),
            "psi": np.array([each.psi for each in found.done.values()]),
            "failure": [each.failure for each in found.done.values()],
        }
        return self.encode(parts | {"done": done}, where)

    def encode(self, value: Any, where: str) -> Any:
        """The value as JSON; `where` tells which it is, in errors and in the names of arrays."""
        if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
            value = value.item()
        if value is None or type(value) in (bool, str):
            return value
        if isinstance(value, Words):
            return {"$words": value.parts}
        if type(value) in (int, float):
            return _number(value, where)
        if type(value) in (list, tuple, range, Order):
            return self._sequence(value, where)
        if type(value) is dict:
            return self._dict(value, where)
        if _class_of(value) is not None:
            return self._object(value, where)
        return self._moment(value, where) or self._table(value, where)

    def _sequence(self, values: Any, where: str) -> Any:
        if not isinstance(values, tuple):
            return self._entries(values, where)
        told = {"derived": values.derived, "columns": list(values.columns)} if isinstance(values, Order) else {}
        if len(values) < LONG:
            return {"$tuple": self._entries(values, where)} | told
        name, known = self._name(values, where)
        return {"$same": name} if known else {"$tuple": self._entries(values, where), "name": name} | told

    def _entries(self, values: Any, where: str) -> list[Any]:
        if set(map(type, values)) <= {str, bool, type(None)}:
            return list(values)
        return [self.encode(value, f"{where}[{i}]") for i, value in enumerate(values)]

    def _dict(self, values: dict[Any, Any], where: str) -> dict[str, Any]:
        if all(type(key) is str and not key.startswith("$") for key in values):
            return {key: self.encode(value, f"{where}.{key}") for key, value in values.items()}
        pairs = [[self.encode(k, where), self.encode(v, f"{where}[{k!r}]")] for k, v in values.items()]
        return {"$dict": pairs}

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        name, known = self._name(value, where)
        if known:
            return {"$same": name}
        kind = str(_class_of(value))
        if kind == "Bins":
            fields = value.describe()
        elif kind in MADE_AGAIN:
            fields = {argument: getattr(value, argument) for argument in MADE_AGAIN[kind][1]}
        else:
            fields = own_attributes(value)
        return {"$object": kind, "name": name, "fields": self._dict(fields, where)}

    def _table(self, value: Any, where: str) -> dict[str, Any]:
        """Arrays, sparse matrices, and what can be made an array (a column of a data frame, a tensor)."""
        if not sp.issparse(value) and not isinstance(value, np.ndarray) and not hasattr(value, "__array__"):
            raise _cannot(type(value).__name__, where)
        name, known = self._name(value, where)
        if sp.issparse(value):
            return self._sparse(value, name, known, where)
        if not known:
            array = np.asarray(value)
            if array.dtype.kind not in "biufcMmSU":
                raise _cannot(f"an array of {array.dtype}", where)
            self.arrays[name] = array
        return {"$array": name}

    def _sparse(self, value: Any, name: str, known: bool, where: str) -> dict[str, Any]:
        if value.ndim != 2:
            raise _cannot(f"a sparse array of {value.ndim} axes", where, "Pass it as a matrix, or as a dense array.")
        matrix = sp.csr_array(value)
        if not known:
            for part in ("data", "indices", "indptr"):
                self.arrays[f"{name}/{part}"] = getattr(matrix, part)
        return {"$sparse": name, "shape": [int(n) for n in matrix.shape]}

    def _moment(self, value: Any, where: str) -> dict[str, Any] | None:
        """Dates and times; None for anything else."""
        if isinstance(value, np.datetime64 | np.timedelta64):
            return {"$numpy time": [int(value.astype(np.int64)), value.dtype.str]}
        if type(value) is date:
            return {"$date": value.isoformat()}
        if type(value).__name__ == "Timestamp" and type(value).__module__.startswith("pandas"):
            return {"$timestamp": [value.isoformat(), None if value.tz is None else str(value.tz), value.unit]}
        if type(value) is not datetime:
            return None
        if value.tzinfo is None or type(value.tzinfo) is timezone:
            return {"$datetime": [value.isoformat(), None]}
        if isinstance(value.tzinfo, ZoneInfo) and value.tzinfo.key:
            return {"$datetime": [value.isoformat(), value.tzinfo.key]}
        raise _cannot(f"a time in the zone {value.tzinfo!r}", where, "Use a zone of the zoneinfo module, or UTC.")

    def _name(self, value: Any, where: str) -> tuple[str, bool]:
        """The name under which this very object is written, and whether it has been."""
        if id(value) in self._names:
            return self._names[id(value)][1], True
        name = re.sub(r"[^A-Za-z0-9_/]+", "_", where.replace(".", "/")).strip("_")
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        self._names[id(value)] = (value, name)
        return name, False


def own_attributes(value: Any) -> dict[str, Any]:
    """What an object consists of, less what it computed from that and keeps."""
    computed = {
        name for kind in type(value).__mro__ for name, what in vars(kind).items() if isinstance(what, cached_property)
    }
    return {name: part for name, part in vars(value).items() if name not in computed}


def _class_of(value: Any) -> str | None:
    """The name of the class, where it is one of ours that can be written; a subclass is another class."""
    name, module = type(value).__name__, type(value).__module__
    known = MADE_AGAIN[name][0] if name in MADE_AGAIN else KNOWN.get(name)
    return name if module == known else None


def _number(value: Any, where: str) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else {"$float": str(value)}
    if value.bit_length() > MOST_BITS:
        raise _cannot(f"a whole number of {value.bit_length()} bits", where)
    return value


def _cannot(what: str, where: str, remedy: str | None = None) -> InvalidInput:
    if remedy is None and ("label" in where or ".ids" in where):
        remedy = "Labels and ids are text, numbers, dates, or tuples of these: turn others into text first."
    if remedy is None and "first_step" in where:
        remedy = 'Use one of the library\'s own, such as "logit"; without goals, an (S, A) array that yours estimates.'
    if remedy is None and where.endswith(".model"):
        remedy = "Only the library's own models of transitions can be saved."
    return InvalidInput("save", "parts that are text, numbers, dates, arrays or the library's own", what, where, remedy)
