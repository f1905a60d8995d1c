"""How each door is called validly: arguments by their name, and by door where the name alone does not tell."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz import things
from fuzz.recipes import EXTRAS, RECIPES, Several
from fuzz.things import WITH_TORCH, thing

# Doors that are not tried, each with its reason.
INNER: dict[str, str] = {
    "first_step.FirstStep": "a protocol: nothing to call",
    "GoalLogit.estimate": "refuses: trips with goals come by another way",
    "BusData.panel": "needs files that do not ship",
}
if not WITH_TORCH:
    INNER["TorchReward"] = "needs PyTorch"
# Doors that do much work unless told otherwise: on these things only.
ONLY: dict[str, tuple[str, ...]] = {"Uncertain.drawn": ("fit.drawn",)}

# by the name of an argument, where nothing else is said
ARGUMENTS: dict[str, Callable[[], Any]] = {
    "mdp": lambda: thing("mdp"),
    "demonstrations": lambda: thing("demos"),
    "demos": lambda: thing("demos"),
    "reward": things.table,
    "true_reward": things.table,
    "policy": lambda: thing("mdp").uniform_policy(),
    "expert": lambda: thing("mdp").uniform_policy(),
    "fit": lambda: thing("fit"),
    "seed": lambda: 0,
    "counts": lambda: thing("demos").counts,
    "theta": lambda: np.array([0.5, -0.5]),
    "params": lambda: np.array([0.5, -0.5]),
    "features": lambda: np.eye(4)[:, :2],
    "n_states": lambda: 4,
    "n_actions": lambda: 2,
    "discount": lambda: 0.9,
    "network": lambda: thing("network"),
    "demand": lambda: things.DEMAND,
    "trips": lambda: thing("demos.roads"),
    "path": lambda: "written.zip",
    "progress": lambda: False,
    "ax": lambda: axes(),
    "title": lambda: "a title",
    "alpha": lambda: 0.1,
    "n": lambda: 3,
    "length": lambda: 3,
    "first_step": lambda: "smoothed",
}


def axes() -> Any:
    from matplotlib.figure import Figure

    return Figure().subplots()


def arguments(door: Any) -> dict[str, Any]:
    """Valid arguments: those of its own recipe, then those that its names tell."""
    given = RECIPES.get(door.key, lambda own: {})(door.own)
    for name, parameter in door.parameters.items():
        if name not in given and is_required(parameter):
            if name not in ARGUMENTS:
                raise LookupError(f"{door.key}: no recipe for `{name}`; add one to tests/fuzz/recipes.py")
            given[name] = ARGUMENTS[name]()
    return given


def is_required(parameter: inspect.Parameter) -> bool:
    various = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return parameter.default is inspect.Parameter.empty and parameter.kind not in various


def argument_names(door: Any) -> list[str]:
    """Every argument of a door, those that go through **options too."""
    kinds = {name: parameter.kind for name, parameter in door.parameters.items()}
    named = [name for name, kind in kinds.items() if kind != inspect.Parameter.VAR_KEYWORD]
    more = EXTRAS.get(door.key, ()) if inspect.Parameter.VAR_KEYWORD in kinds.values() else ()
    return [*named, *more]


def perform(door: Any, given: dict[str, Any]) -> Any:
    """Call it, with its positional arguments in their places; iterators and contexts are gone through."""
    several = [n for n, p in door.parameters.items() if p.kind == inspect.Parameter.VAR_POSITIONAL]
    given = dict(given)
    spread = _spread(given.pop(several[0], Several())) if several else ()
    ahead = [given.pop(n) for n, p in door.parameters.items() if n in given and _is_ahead(p, bool(several))]
    result = door.function(*ahead, *spread, **given)
    if hasattr(result, "__enter__") and door.key == "on_cluster":
        with result as entered:
            return entered
    if hasattr(result, "canvas"):
        result.canvas.draw()  # much of what matplotlib refuses it refuses only then
    return list(result) if inspect.isgenerator(result) else result


def _spread(value: Any) -> tuple[Any, ...]:
    """Several arguments of one name; a value that took their place is the only one."""
    return tuple(value.all) if isinstance(value, Several) else (value,)


def _is_ahead(parameter: inspect.Parameter, several: bool) -> bool:
    kind = parameter.kind
    return kind == inspect.Parameter.POSITIONAL_ONLY or (several and kind == inspect.Parameter.POSITIONAL_OR_KEYWORD)
