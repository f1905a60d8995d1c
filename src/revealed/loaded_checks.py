"""What is asked of a fit that comes from a file: checksums tell that its parts are as they were written, not that they
mean anything or belong together. A model goes through the same checks as one that is made; the numbers of a fit must be
those of its own model and data. Complaints are plain `ValueError`s; `loading.py` says whose file it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revealed.agent_groups import AgentGroups
from revealed.checks import as_floats, as_number, is_index
from revealed.demonstrations import Demonstrations
from revealed.diagnosis import CODES, Status
from revealed.fit import AnyFit, Fit
from revealed.goal_fit import GoalFit
from revealed.mdp import MDP
from revealed.model_checks import as_discount, as_distribution, as_labels, as_mask, clean_rows, require_an_action
from revealed.naming import Names
from revealed.transitions import EstimatedTransitions

Shape = tuple[int, ...]

SAME = 1e-6  # relative difference that is rounding, on any machine
TABLES = ("policy", "log_policy", "q", "pi_tilde")


def require_model(mdp: MDP) -> None:
    """What `MDP(...)` would have checked, of one that was put together from its parts."""
    S, A = mdp.n_states, mdp.n_actions
    if not is_index(S) or not is_index(A) or min(S, A) < 1:
        raise ValueError(f"the model has {S} states and {A} actions")
    _require_shape("mdp.transitions", mdp.transitions.matrix, (S * A, S))
    for name, shape in _model_shapes(mdp).items():
        _require_shape(f"mdp.{name}", getattr(mdp, name), shape)
    names = Names(as_labels("state_labels", mdp.state_labels, S), as_labels("action_labels", mdp.action_labels, A))
    terminal, feasible = as_mask("terminal", mdp.terminal, (S,), False), as_mask("feasible", mdp.feasible, (S, A), True)
    if (feasible & terminal[:, None]).any() or mdp.feasible.dtype != bool or mdp.terminal.dtype != bool:
        raise ValueError("the model's masks contradict each other")
    require_an_action(feasible, terminal, names)
    if clean_rows(mdp.transitions.matrix.copy(), feasible, names).nnz != mdp.transitions.matrix.nnz:
        raise ValueError("the model has transitions of pairs that it does not offer")
    if not isinstance(mdp.discount, float):
        raise TypeError(f"the discount is {mdp.discount!r}")
    as_discount(mdp.discount)
    if mdp.initial is not None:
        as_distribution("initial", mdp.initial, S)
    _require_original(mdp)
    _require_horizon(mdp)


def _require_original(mdp: MDP) -> None:
    """What `replace` starts from, and what a bootstrap estimates again."""
    S, A = mdp.n_states, mdp.n_actions
    _require_shape("mdp._original.transitions", mdp._original["transitions"], (S * A, S))
    _require_shape("mdp._original.feasible", mdp._original["feasible"], (S, A))
    if not isinstance(mdp.estimated, EstimatedTransitions | None):
        raise TypeError("what the transitions were estimated from is something else")


def _require_horizon(mdp: MDP) -> None:
    """The states of a horizon are those of its base, layer by layer."""
    if mdp.base is None and mdp.base_state is None:
        return
    if not isinstance(mdp.base, MDP) or mdp.base.base is not None or mdp.n_states % mdp.base.n_states:
        raise ValueError("the horizon does not consist of its base")
    layers = np.tile(np.arange(mdp.base.n_states), mdp.n_states // mdp.base.n_states)
    if mdp.n_actions != mdp.base.n_actions or not np.array_equal(np.asarray(mdp.base_state), layers):
        raise ValueError("the horizon does not consist of its base")


def require_consistent(fit: AnyFit) -> None:
    """Shapes that must agree do, and the numbers are those of this model and these data."""
    mdp, demos = fit.mdp, fit.demonstrations
    if not isinstance(mdp, MDP) or not isinstance(demos, Demonstrations):
        raise TypeError("model or demonstrations are missing")
    S, A, K = mdp.n_states, mdp.n_actions, int(fit.reward_model.n_params)
    _require_shape("theta", fit.theta, (K,))
    _require_shape("reward", fit.reward, (S, A))
    if (demos.n_states, demos.n_actions) != (S, A):
        raise ValueError(f"the data have {demos.n_states} states and {demos.n_actions} actions, the model {S} and {A}")
    for name, shape in _data_shapes(demos).items():
        _require_shape(f"demonstrations.{name}", getattr(demos, name), shape)
    _require_columns(fit)
    _require_steps(demos)
    for each in fit.kept.values():
        _require_shape("bootstrap", each.theta, (len(each.index), K))
    _require_numbers(fit)
    if not np.isfinite(fit.theta).all():
        raise ValueError("theta holds what are no numbers")
    if isinstance(fit, GoalFit):
        _require_goals(fit)
    elif isinstance(fit, Fit):
        _require_probabilities(fit)


def _model_shapes(mdp: MDP) -> dict[str, Shape]:
    S, A = mdp.n_states, mdp.n_actions
    shapes: dict[str, Shape] = {"initial": (S,), "feasible": (S, A), "terminal": (S,), "base_state": (S,)}
    return shapes | {"state_labels": (S,), "action_labels": (A,)}


def _data_shapes(demos: Demonstrations) -> dict[str, Shape]:
    N, S, A = demos.n_agents, demos.n_states, demos.n_actions
    shapes: dict[str, Shape] = {"by_agent": (N, S * A), "starts": (S,), "transition_counts": (S * A, S), "ids": (N,)}
    return shapes | {"agent_weights": (N,), "state_labels": (S,), "action_labels": (A,)}


def _require_columns(fit: AnyFit) -> None:
    """A value for every agent in the columns that were kept, and a group for each where errors are clustered."""
    demos, groups = fit.demonstrations, fit.groups
    for name, values in demos.columns.items():
        _require_shape(f"demonstrations.{name}", values, (demos.n_agents,))
    if groups is None:
        return
    if not isinstance(groups, AgentGroups) or np.shape(groups.code) != (demos.n_agents,):
        raise ValueError("the groups of agents are not those of the data")
    if not np.array_equal(np.unique(groups.code), np.arange(groups.n)):
        raise ValueError("the groups of agents have other numbers than names")


def _require_steps(demos: Demonstrations) -> None:
    if demos.steps is None:
        return
    arrays = {name: part for name, part in vars(demos.steps).items() if part is not None}
    for name, array in arrays.items():
        _require_shape(f"steps.{name}", array, demos.steps.state.shape)
    limits = {"agent": demos.n_agents, "state": demos.n_states, "action": demos.n_actions}
    places = dict.fromkeys([name for name in ("next_state", "goal") if name in arrays], demos.n_states)
    for name, n in (limits | places).items():
        least = -1 if name == "next_state" else 0
        if arrays[name].size and not least <= arrays[name].min() <= arrays[name].max() < n:
            raise ValueError(f"steps.{name} holds indices beyond {n}")


def _require_shape(name: str, value: Any, shape: Shape) -> None:
    """What is optional may be None; labels count as arrays of one axis."""
    if value is None and name.partition(".")[0] in ("mdp", "demonstrations"):
        return
    found = (len(value),) if isinstance(value, tuple) else getattr(value, "shape", None)
    if found != shape:
        raise ValueError(f"{name} has shape {found}, not {shape}")


def _require_numbers(fit: AnyFit) -> None:
    """Numbers where numbers belong, and counts that are counts."""
    for name in ("llf", "objective", "gradient_norm", "seconds"):
        if np.isnan(as_number(getattr(fit, name))) and not isinstance(getattr(fit, name), float):
            raise TypeError(f"{name} is {getattr(fit, name)!r}")
    for name in ("updates", "iterations"):
        if not is_index(getattr(fit, name)) or getattr(fit, name) < 0:
            raise ValueError(f"{name} is {getattr(fit, name)!r}")
    if not isinstance(fit.status, Status) or fit.status.code not in CODES:
        raise ValueError(f"the status is {getattr(fit.status, 'code', fit.status)!r}")
    demos = fit.demonstrations
    for name in ("by_agent", "transition_counts"):
        _require_counts(name, getattr(demos, name).data)
    _require_counts("starts", demos.starts)


def _require_counts(name: str, values: Any) -> None:
    numbers = as_floats(values)
    if numbers is None or not (np.isfinite(numbers) & (numbers >= 0.0)).all():
        raise ValueError(f"demonstrations.{name} holds what are no counts")


def _require_probabilities(fit: Fit) -> None:
    """The policy is one of the model."""
    S, A = fit.mdp.n_states, fit.mdp.n_actions
    for name in TABLES:
        _require_shape(name, getattr(fit, name), (S, A))
    _require_shape("value", fit.value, (S,))
    acting = (~fit.mdp.terminal).astype(np.float64)
    for name in ("policy", "pi_tilde"):
        table = getattr(fit, name)
        off = np.abs(table.sum(axis=1) - acting) > SAME
        if off.any() or not (table >= 0.0).all() or (table[~fit.mdp.feasible] != 0.0).any():
            raise ValueError(f"{name} holds what are no probabilities of the model's actions")
    if not np.allclose(np.exp(fit.log_policy), fit.policy, rtol=SAME, atol=SAME):
        raise ValueError("log_policy is not that of the policy")


def _require_goals(fit: GoalFit) -> None:
    """Policies that are stored belong to the goals of the data."""
    if fit.demonstrations.goals is None:
        raise ValueError("the trips have no goals")
    if fit.stored is not None:
        if len(fit.stored.log) != fit.cases.rows.n_cases:
            raise ValueError(f"{len(fit.stored.log)} policies are stored for {fit.cases.rows.n_cases} goals")
        for k, table in enumerate(fit.stored.log):
            _require_shape(f"stored[{k}]", table, fit.mdp.feasible.shape)
