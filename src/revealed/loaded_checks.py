"""What is asked of a fit that comes from a file: checksums tell that its parts are as they were written, not that they
mean anything or belong together. A model goes through the same checks as one that is made; the numbers of a fit must be
those of its own model and data. Complaints are plain `ValueError`s; `loading.py` says whose file it is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.agent_groups import AgentGroups
from revealed.bootstrap import Bootstrap, check_options
from revealed.checks import as_floats, as_number, is_index
from revealed.demonstrations import Demonstrations
from revealed.diagnosis import CODES, Status
from revealed.estimation import Options
from revealed.fit import AnyFit, Fit
from revealed.goal_fit import GoalFit
from revealed.inference import KINDS
from revealed.labels import is_missing
from revealed.loaded_transitions import SAME, is_same_table, require_estimated, require_own_moves
from revealed.mdp import MDP, Floats
from revealed.model_checks import (
    ROW_SUM_TOLERANCE,
    as_discount,
    as_distribution,
    as_labels,
    as_mask,
    clean_rows,
    require_an_action,
)
from revealed.naming import Names
from revealed.trajectories import Steps
from revealed.transitions import EstimatedTransitions
from revealed.uncertainty import BOOTSTRAP

Shape = tuple[int, ...]

OPTIONS = {option.name for option in fields(Options)} - {"callback"}  # which is a function and not in the file
MOST_REPS = 10**7  # of a bootstrap that anybody would wait for
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
        raise ValueError("the model has transitions of infeasible pairs")
    if not isinstance(mdp.discount, float):
        raise TypeError(f"the discount is {mdp.discount!r}")
    as_discount(mdp.discount)
    if mdp.initial is not None:
        as_distribution("initial", mdp.initial, S)
    _require_original(mdp)
    _require_horizon(mdp)


def _require_original(mdp: MDP) -> None:
    """What `replace` starts from, and what a bootstrap estimates again. A terminal state may have had actions."""
    S, A = mdp.n_states, mdp.n_actions
    original, actions = mdp._original["transitions"], mdp._original["feasible"]
    _require_shape("mdp._original.transitions", original, (S * A, S))
    _require_shape("mdp._original.feasible", actions, (S, A))
    if actions.dtype != bool or (actions != mdp.feasible)[~mdp.terminal].any():
        raise ValueError("the model's actions are not those it was made of")
    if not isinstance(mdp.estimated, EstimatedTransitions | None):
        raise TypeError("the record of what the transitions were estimated from is invalid")
    offered = mdp.feasible.reshape(-1)
    _require_same_rows(mdp.transitions.matrix, original, offered, "those it was made of")
    if mdp.estimated is not None and mdp.base is None:
        require_estimated(mdp.estimated, mdp)
        _require_same_rows(original, mdp.estimated.matrix, np.ones(S * A, dtype=bool), "those that were estimated")


def _require_same_rows(matrix: Any, other: Any, rows: Any, what: str) -> None:
    """The rows of two matrices are the same but for rounding."""
    gap = abs(matrix - sp.csr_array(other))[np.flatnonzero(rows)]
    if gap.nnz and not gap.data.max() <= ROW_SUM_TOLERANCE:
        raise ValueError(f"the model's transitions are not {what}")


def _require_horizon(mdp: MDP) -> None:
    """The states of a horizon are those of its base, layer by layer."""
    if mdp.base is None and mdp.base_state is None:
        return
    if not isinstance(mdp.base, MDP) or mdp.base.base is not None or mdp.n_states % mdp.base.n_states:
        raise ValueError("the horizon does not match its base model")
    layers = np.tile(np.arange(mdp.base.n_states), mdp.n_states // mdp.base.n_states)
    if mdp.n_actions != mdp.base.n_actions or not np.array_equal(np.asarray(mdp.base_state), layers):
        raise ValueError("the horizon does not match its base model")
    again = mdp.base.unroll(mdp.n_states // mdp.base.n_states - 1)
    _require_same_rows(again.transitions.matrix, mdp.transitions.matrix, mdp.feasible.reshape(-1), "those of its base")
    every = np.ones(mdp.feasible.size, dtype=bool)
    _require_same_rows(again._original["transitions"], mdp._original["transitions"], every, "those of its base")
    if mdp.estimated is not mdp.base.estimated:
        raise ValueError("the estimated transitions of a horizon are not those of its base model")
    if mdp.discount != mdp.base.discount or (mdp.feasible & ~again.feasible).any():
        raise ValueError("the horizon does not match its base model")


def require_consistent(fit: AnyFit) -> None:
    """Shapes that must agree do, and the numbers are those of this model and these data."""
    mdp, demos = fit.mdp, fit.demonstrations
    if not isinstance(mdp, MDP) or not isinstance(demos, Demonstrations):
        raise TypeError("model or demonstrations are missing")
    S, A, K = mdp.n_states, mdp.n_actions, int(fit.reward_model.n_params)
    _require_shape("theta", fit.theta, (K,))
    if fit.units is not None:
        _require_shape("units", fit.units, (K,))
        if not (np.isfinite(fit.units) & (fit.units > 0.0)).all():
            raise ValueError("units holds values that are not units")
    _require_shape("reward", fit.reward, (S, A))
    if len(fit.reward_model.names) != K or not all(isinstance(name, str) for name in fit.reward_model.names):
        raise ValueError(f"the reward has {K} parameters with other names")
    if (demos.n_states, demos.n_actions) != (S, A):
        raise ValueError(f"the data have {demos.n_states} states and {demos.n_actions} actions, the model {S} and {A}")
    for name, shape in _data_shapes(demos).items():
        _require_shape(f"demonstrations.{name}", getattr(demos, name), shape)
    _require_columns(fit)
    _require_steps(demos)
    for each in fit.kept.values():
        _require_bootstrap(each, tuple(str(name) for name in fit.reward_model.names))
    _require_numbers(fit)
    _require_counted(demos)
    require_own_moves(mdp, demos)
    if not np.isfinite(fit.theta).all():
        raise ValueError("theta holds values that are not numbers")
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
    if len(set(demos.ids)) < demos.n_agents or any(map(is_missing, demos.ids)):
        raise ValueError("the ids of agents are not distinct")
    for name, values in demos.columns.items():
        _require_shape(f"demonstrations.{name}", values, (demos.n_agents,))
    if groups is None:
        return
    if not isinstance(groups, AgentGroups) or np.shape(groups.code) != (demos.n_agents,):
        raise ValueError("the groups of agents are not those of the data")
    if not np.array_equal(np.unique(groups.code), np.arange(groups.n)):
        raise ValueError("the groups of agents do not match their names")


def _require_steps(demos: Demonstrations) -> None:
    if demos.steps is None:
        return
    arrays = {name: part for name, part in vars(demos.steps).items() if part is not None}
    for name, array in arrays.items():
        _require_shape(f"steps.{name}", array, demos.steps.state.shape)
    kinds = {"first": "b", "weight": "f", "entry": "iufMU"}
    if any(array.dtype.kind not in kinds.get(name, "iu") for name, array in arrays.items()):
        raise TypeError("steps hold values that are not indices")
    if demos.steps.first.size and not demos.steps.first[0]:
        raise ValueError("the first step does not start a trajectory")
    _require_order(demos.steps)
    limits = {"agent": demos.n_agents, "state": demos.n_states, "action": demos.n_actions}
    places = dict.fromkeys([name for name in ("next_state", "goal") if name in arrays], demos.n_states)
    for name, n in (limits | places).items():
        least = -1 if name == "next_state" else 0
        if arrays[name].size and not least <= arrays[name].min() <= arrays[name].max() < n:
            raise ValueError(f"steps.{name} holds indices beyond {n}")


def _require_order(steps: Steps) -> None:
    """The steps of a trajectory are those of one agent, in the order of time; only a frame may have gaps."""
    within = ~steps.first[1:]
    passed, same = np.diff(steps.time.astype(np.int64))[within], steps.agent[1:][within] == steps.agent[:-1][within]
    gaps = steps.row is not None
    if not same.all() or not (passed >= 1).all() or not (gaps or (passed == 1).all()) or (steps.time < 0).any():
        raise ValueError("steps.time is not the order of the decisions")


def _require_starts(again: Demonstrations, demos: Demonstrations) -> None:
    """Starts are the first steps, and perhaps trajectories without a decision, which only those that were not read
    from a frame may have; at most one for each agent without a decision, if each trajectory is an agent."""
    more = demos.starts - again.starts
    least = SAME * (1.0 + float(again.starts.max(initial=0.0)))
    without = np.zeros(demos.n_states) if demos.steps is None or demos.steps.row is not None else np.round(more)
    each_its_own = demos.ids == tuple(range(demos.n_agents))
    silent = demos.n_agents - np.unique(again.by_agent.tocoo().row).size if each_its_own else np.inf
    if not (np.abs(more - without) <= least).all() or without.min(initial=0.0) < 0.0 or without.sum() > silent:
        raise ValueError("demonstrations.starts does not match the decisions")


def _require_counted(demos: Demonstrations) -> None:
    """Counts are those of the single decisions, where these are there."""
    weights, starts = demos.agent_weights, demos.starts_by_agent
    if weights is not None:
        _require_counts("agent_weights", weights)
    if demos.steps is not None:
        again = demos.counted_again()
        for name in ("by_agent", "transition_counts"):
            _require_same_table(name, getattr(again, name), getattr(demos, name))
        _require_starts(again, demos)
    elif starts is not None:
        _require_shape("demonstrations.starts_by_agent", starts, (demos.n_agents, demos.n_states))
        often = np.ones(demos.n_agents) if weights is None else weights
        _require_same_table("starts", np.asarray(starts.T @ often), demos.starts)


def _require_same_table(name: str, found: Any, told: Any) -> None:
    if not is_same_table(found, told):
        raise ValueError(f"demonstrations.{name} does not match the decisions")


def _require_bootstrap(found: Bootstrap, names: tuple[str, ...]) -> None:
    """The replications that are used are those that converged, and the others are counted."""
    for table in (found.theta, found.psi):
        if not isinstance(table, np.ndarray) or table.dtype != np.float64 or table.ndim != 2:
            raise TypeError("the bootstrap replications are not numbers")
    good = [r for r in sorted(found.done) if not found.done[r].failure]
    _require_shape("bootstrap", found.theta, (len(good), len(names)))
    used = [found.done[r].theta for r in good], [found.done[r].psi for r in good]
    same = np.array_equal(found.index, good) and np.array_equal(found.theta, used[0])
    same = same and np.array_equal(found.psi, np.array(used[1]).reshape(len(good), -1))
    failed = Counter(each.failure for each in found.done.values() if each.failure)
    if not same or failed != found.failures or tuple(found.names) != names or not np.isfinite(found.theta).all():
        raise ValueError("the bootstrap replications do not match the draws")
    if not all(0 <= r < found.asked for r in found.done):
        raise ValueError(f"the bootstrap has replications beyond {found.asked}")


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
    _require_kinds(fit)
    demos = fit.demonstrations
    for name in ("by_agent", "transition_counts"):
        _require_counts(name, getattr(demos, name).data)
    _require_counts("starts", demos.starts)


def _require_kinds(fit: AnyFit) -> None:
    """Words, switches and numbers are what they must be."""
    status, demos, options = fit.status, fit.demonstrations, fit.options
    notes = (status.message, *(status.notes if isinstance(status.notes, tuple) else (None,)), *demos.notes)
    if not all(isinstance(note, str) for note in notes) or not isinstance(status.interrupted, bool):
        raise TypeError("the status holds values that are not text")
    if not isinstance(fit.settled, bool | None) or not isinstance(fit.own_policy, bool):
        raise TypeError("settled and own_policy must be True or False")
    if not isinstance(options, dict) or not OPTIONS <= options.keys() or np.isnan(as_number(options["l2"])):
        raise ValueError("its options are missing")
    if not isinstance(demos.visit_discount, float) or not 0.0 <= demos.visit_discount <= 1.0:
        raise ValueError(f"visits are discounted by {demos.visit_discount!r}")
    if fit.theta.dtype != np.float64 or fit.reward.dtype != np.float64:
        raise TypeError("theta and reward are not numbers")
    _require_chosen(fit)


def _require_chosen(fit: AnyFit) -> None:
    """The errors that were chosen are of a kind that exists."""
    if fit.chosen is None:
        return
    if not isinstance(fit.chosen, tuple) or len(fit.chosen) != 3:
        raise ValueError("the chosen standard errors are of an unknown kind")
    kind, joint, drawn = fit.chosen
    if (
        kind not in KINDS
        or not isinstance(joint, bool)
        or not isinstance(drawn, dict)
        or not set(drawn) <= {*BOOTSTRAP}
    ):
        raise ValueError("the chosen standard errors are of an unknown kind")
    if joint and fit.mdp.estimated is None:
        raise ValueError("joint errors were chosen, but the transitions were not estimated")
    check_options(**drawn)
    if drawn.get("reps", 2) > MOST_REPS:
        raise ValueError(f"{drawn['reps']} replications were chosen")


def _require_counts(name: str, values: Any) -> None:
    numbers = as_floats(values)
    if numbers is None or not (np.isfinite(numbers) & (numbers >= 0.0)).all():
        raise ValueError(f"demonstrations.{name} holds values that are not counts")


def _require_probabilities(fit: Fit) -> None:
    """The policy is one of the model."""
    S, A = fit.mdp.n_states, fit.mdp.n_actions
    for name in TABLES:
        _require_shape(name, getattr(fit, name), (S, A))
    _require_shape("value", fit.value, (S,))
    if any(getattr(fit, name).dtype != np.float64 for name in (*TABLES, "value")):
        raise TypeError("the fit's tables are not float64")
    for name in ("policy", "pi_tilde"):
        _require_policy(name, getattr(fit, name), fit.mdp)
    if not np.allclose(np.exp(fit.log_policy), fit.policy, rtol=SAME, atol=SAME):
        raise ValueError("log_policy does not match the policy")


def _require_policy(name: str, table: Floats, mdp: MDP) -> None:
    """A distribution over feasible actions where decisions are made, nothing elsewhere."""
    off = np.abs(table.sum(axis=1) - ~mdp.terminal) > SAME
    if off.any() or not (table >= 0.0).all() or (table[~mdp.feasible] != 0.0).any():
        raise ValueError(f"{name} holds values that are not probabilities of the model's actions")


def _require_goals(fit: GoalFit) -> None:
    """Policies that are stored belong to the goals of the data."""
    if fit.demonstrations.goals is None:
        raise ValueError("the trips have no goals")
    if (fit.stored is not None) is not (fit.method == "NPL" and not fit.settled and fit.updates > 1):
        raise ValueError("policies must be stored exactly where NPL has not converged")
    if fit.stored is not None:
        if len(fit.stored.log) != fit.cases.rows.n_cases:
            raise ValueError(f"{len(fit.stored.log)} policies are stored for {fit.cases.rows.n_cases} goals")
        for k, table in enumerate(fit.stored.log):
            _require_shape(f"stored[{k}]", table, fit.mdp.feasible.shape)
            _require_policy(f"stored[{k}]", np.exp(table), fit.cases.case(k).mdp)
