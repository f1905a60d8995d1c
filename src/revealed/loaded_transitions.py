"""Estimated transitions in a saved fit (theory N5).

What standard errors read of them follows from the counted moves and, where these are those of the data in the file,
from the data. Complaints are plain `ValueError`s; `loading.py` says whose file it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from revealed.checks import Ints
from revealed.demonstrations import Demonstrations
from revealed.mdp import MDP
from revealed.seen_moves import TOGETHER, Moves, SeenMoves, WithoutParameters, moves_of
from revealed.transition_models import Frequencies, SharedOutcomes
from revealed.transitions import EstimatedTransitions

SAME = 1e-6  # relative difference that is rounding, on any machine


def is_same_table(found: Any, told: Any) -> bool:
    """Whether two tables of counts are the same but for rounding."""
    if found.shape != told.shape:
        return False
    gap, size = (float(abs(x).max()) if min(x.shape) else 0.0 for x in (found - told, found))
    return gap <= SAME * (1.0 + size)


def require_estimated(found: EstimatedTransitions, mdp: MDP) -> None:
    """Counts of classes, agents and probabilities that belong together."""
    if np.shape(found.psi) != (len(found.names),) or found.psi.dtype != np.float64:
        raise ValueError("the transitions' parameters are not numbers, or do not match their names")
    if not all(isinstance(name, str) for name in found.names):
        raise TypeError("the names of the transitions' parameters are not text")
    classes = found.by_agent.shape[1]
    if found.by_agent.shape[0] != len(found.ids) or found.joint.shape != (mdp.n_states * mdp.n_actions, classes):
        raise ValueError("the counted moves do not match the agents or pairs")
    for table in (found.joint, found.by_agent):
        if table.dtype.kind not in "iuf" or not (np.isfinite(table.data) & (table.data >= 0.0)).all():
            raise ValueError("the moves of the transitions are not counts")
    if not is_same_table(found.counts, np.asarray(found.joint.sum(axis=0)).reshape(-1)):
        raise ValueError("the moves of the transitions counted by agent are not those counted by decision")
    _require_pairs(found)
    if isinstance(found.model, SharedOutcomes):
        _require_outcomes(found.model, found)
    else:
        _require_classes(found.model, found)


def _require_pairs(found: EstimatedTransitions) -> None:
    """The pairs that the notes count, and the rule for them."""
    for name in ("unseen", "unknown"):
        if not np.array_equal(getattr(found, name), getattr(found.model, name, ())):
            raise ValueError(f"the {name} pairs of the transitions are not those without moves")
    if found.rule != getattr(found.model, "rule", "error"):
        raise ValueError("the rule for unseen pairs is not that of the transitions")


def _require_classes(model: Any, found: EstimatedTransitions) -> None:
    """Classes that are moves: what follows from them, and the decisions that they came with."""
    if not isinstance(model, SeenMoves):
        raise TypeError("the transitions were estimated in an unknown way")
    one_each = Moves(np.zeros(model.pair.size, dtype=np.intp), model.pair, model.to, found.counts, found.ids)
    again = (Frequencies if isinstance(model, Frequencies) else SeenMoves)(model, one_each, model.rule)
    known = {"counts"} if isinstance(model, WithoutParameters) else set()  # agents of other weights: known by T alone
    for name in vars(again).keys() - known:
        if not _is_same(vars(again)[name], vars(model)[name]):
            raise ValueError(f"the {name} of the transitions does not follow from the moves")
    if not is_same_table(again.counted(one_each)[0], found.joint):
        raise ValueError("the moves of the transitions do not belong to their decisions")


def _is_same(found: Any, told: Any) -> bool:
    if not isinstance(found, np.ndarray) or found.dtype.kind != "f":
        return np.array_equal(found, told) and np.asarray(found).dtype.kind == np.asarray(told).dtype.kind
    return isinstance(told, np.ndarray) and told.dtype.kind == "f" and is_same_table(found, told)


def _require_outcomes(model: SharedOutcomes, found: EstimatedTransitions) -> None:
    """Classes that are sets of outcomes, which lead to one state from each decision that they came with."""
    table, groups = model.landing, model.groups
    O = len(model.names) + 1
    if table.shape != (model.n_states, model.n_actions, O) or groups.shape != (found.joint.shape[1], O):
        raise ValueError("the outcomes of the transitions do not match their names or classes")
    if (
        table.dtype.kind not in "iu"
        or table.min(initial=0) < -1
        or table.max(initial=0) >= model.n_states
        or groups.dtype != bool
    ):
        raise ValueError("the outcomes of the transitions lead to unknown states")
    pair, kind = found.joint.tocoo().coords
    leads, possible = table.reshape(-1, O)[pair], groups[kind]
    first = np.take_along_axis(leads, possible.argmax(axis=1)[:, None], axis=1)
    if (possible & (leads != first)).any():
        raise ValueError("the moves of the transitions do not belong to their decisions")


def require_own_moves(mdp: MDP, demos: Demonstrations) -> None:
    """Moves that are those of the file's data by decision or by agent are those in both ways. Where they are neither,
    the transitions were estimated from other data, which are not in the file."""
    found = mdp.estimated
    if found is None or demos.transition_counts.nnz == 0:
        return
    model: Any = found.model
    partly = False
    for moves in _moves(mdp, demos):
        if moves.ids == found.ids != (TOGETHER,) and model.explains(moves):
            joint, by_agent = model.counted(moves)
            same = is_same_table(joint, found.joint), is_same_table(by_agent, found.by_agent)
            if all(same) and model.is_of(moves):
                return
            partly |= any(same)
    if partly:
        raise ValueError("the moves of the transitions are not those of the data")


def _moves(mdp: MDP, demos: Demonstrations) -> Iterator[Moves]:
    """The moves in the data, with the weights of agents and without."""
    yield _of_base(moves_of(demos), mdp)
    if demos.agent_weights is not None:
        yield _of_base(moves_of(replace(demos, agent_weights=None)), mdp)


def _of_base(moves: Moves, mdp: MDP) -> Moves:
    """Moves on a horizon, as those of its base."""
    if mdp.base is None:
        return moves
    pair: Ints = moves.pair % mdp.base.feasible.size
    return replace(moves, pair=pair, to=moves.to % mdp.base.n_states)
