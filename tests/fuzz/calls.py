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

# values that are right for arguments of these names, beside which others are tried: they open other ways through a call
CHOICES: dict[str, tuple[str, ...]] = {
    "bands": ("typed.delta", "typed.bootstrap"),
    "errors": ("typed.bootstrap", "typed.robust", "typed.cluster"),
    "first_step": ("typed.frequency", "typed.logit", "typed.kernel"),
    "how": ("typed.quantile",),
    "kind": ("typed.opg", "typed.hessian", "typed.cluster", "typed.bootstrap"),
    "method": ("typed.npl", "typed.ccp"),
    "of": ("typed.turns",),
    "optimizer": ("typed.lbfgs", "typed.newton", "typed.adam"),
    "per": ("typed.pair", "typed.trajectory"),
    "period": ("typed.month", "typed.day"),
    "quantity": ("typed.value", "typed.q", "typed.turns"),
    "reps": ("int.3",),
    "solver": ("typed.krylov", "typed.direct"),
    "start": ("typed.ccp", "typed.zero"),
    "unseen": ("typed.error", "typed.infeasible"),
    "weighting": ("typed.occupancy",),
    "what": ("typed.value", "typed.q"),
    **dict.fromkeys(("gaps", "bad_trips", "bad"), ("typed.error",)),
    **dict.fromkeys(("horizon", "updates", "jobs"), ("int.2",)),
    **dict.fromkeys(
        ("json", "joint", "constants", "turns", "u_turns", "deterministic", "standardize", "known"), ("bool.true",)
    ),
}


# Arguments that a call may accept with any value, each kind with its reason: elsewhere some values are always refused
# (`cases.NEVER`), so that a result where an error was due is seen, too.
COLUMNS_OF_TABLES = ("origin", "destination", "trips")
UNREAD: dict[str, tuple[str, ...]] = {
    # data classes that the library fills; users get them, and their fields are not checked one by one
    **dict.fromkeys(("Fit", "GoalFit", "Advice", "Demonstrations", "RoadNetwork", "datasets.BusData"), ("*",)),
    **dict.fromkeys(("environments.World", "environments.GridWorld", "environments.City", "metrics.Scores"), ("*",)),
    # a protocol in which not every kind needs every argument
    **{
        f"{kind}.{name}": ("mdp", "counts", "reward")
        for kind in ("Frequency", "Smoothed", "Kernel", "Logit", "GoalLogit")
        for name in ("details", "estimate", "estimate_with_notes")
    },
    "first_step.estimate_policy": ("reward",),
    **{
        f"{kind}Reward.{name}": ("theta", "seed")
        for kind in ("Linear", "Tabular", "Jax", "Torch", "LinkSize")
        for name in ("vjp", "jacobian", "init")
    },
    **{
        f"{kind}Reward.{name}": ("state_labels", "action_labels", "feasible", "targets", "features")
        for kind in ("Linear", "Tabular", "Neural", "Jax", "Torch", "LinkSize")
        for name in ("aligned", "along", "named", "standardized")
    },
    "Fit.predict": ("state", "episode_start"),
    "EstimatedTransitions.offered": ("feasible", "terminal"),
    "MDP.lift": ("values",),
    # checked where the model is known
    **dict.fromkeys(("NFXP", "MCEIRL", "CCP", "NPL", "Estimator.with_options"), ("first_step", "start")),
    **dict.fromkeys(("first_step.Smoothed", "first_step.Logit", "first_step.GoalLogit", "first_step.Kernel"), ("*",)),
    # names of columns of a table that is not there, and of what has no parts of that kind
    **{f"RouteChoice.{name}": COLUMNS_OF_TABLES for name in ("flows", "expected", "welfare", "simulate", "compare")},
    **dict.fromkeys(("RouteChoice.elasticity", "RouteChoice.elasticities", "link_size"), COLUMNS_OF_TABLES),
    **dict.fromkeys(
        ("RoadNetwork.from_frame", "RoadNetwork.from_networkx", "RoadNetwork.from_turns"),
        ("turn_from", "turn_to", "node", "x", "y", "link"),
    ),
    "Demonstrations.to_frame": ("goal", "episode"),
    "LinearReward.from_frame": ("actions",),
    "NeuralReward": ("action_labels",),
    **dict.fromkeys(("LinkModel.toward", "LinkModel.table", "GoalFit.case_table"), ("goal", "origin")),
    # what is only shown: any object has a text
    **dict.fromkeys(("LinkModel.link", "RoadNetwork.indices", "RoadNetwork.index"), ("argument",)),
    **dict.fromkeys(("RoadNetwork.attribute", "GoalFit.states", "MDP.state_named"), ("argument",)),
    **dict.fromkeys(
        ("LinearReward", "JaxReward", "compare_fits", "plots.name_states", "plots.plot_states"), ("names",)
    ),
    **dict.fromkeys(("plots.plot_states", "plots.plot_arrows", "plots.plot_grid"), ("names", "actions")),
    "Printed.text": ("spare",),
    "plots.add_colorbar": ("shrink",),
    "plots.own_axes": ("size",),
}


def may_be_unread(door: Any, argument: str) -> bool:
    """Whether a call may go through whatever this argument is."""
    own = UNREAD.get(door.key, ())
    return "*" in own or argument in own


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
