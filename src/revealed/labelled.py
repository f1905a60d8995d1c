"""A fit spoken of by name: its tables under the labels of states and actions, and choices at states that are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Ints, require_array, require_option
from revealed.errors import InvalidInput
from revealed.labels import holds_numbers, is_derived, require_label, spell
from revealed.mdp import MDP, Floats
from revealed.naming import Labels, action_index, is_label, label_array, places, state_in_words, state_index
from revealed.voices import shown

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("policy", "reward", "q", "visits", "frequencies", "value")


def label_table(fit: Any, what: str) -> pd.DataFrame:
    """One quantity of a fit, a row per state and a column per action; see `Fit.table`."""
    import pandas as pd

    require_option("what", what, TABLES)
    rows = state_index(fit.mdp)
    if what == "value":
        return pd.DataFrame({"value": fit.value}, index=rows)
    return pd.DataFrame(_numbers(fit, what), index=rows, columns=action_index(fit.mdp))


def _numbers(fit: Any, what: str) -> Floats:
    """(S, A), as a copy."""
    counts = fit.demonstrations.counts
    if what == "visits":
        return counts.copy()
    if what == "frequencies":
        visits = counts.sum(axis=1, keepdims=True)
        return np.divide(counts, visits, out=np.full(counts.shape, np.nan), where=visits > 0.0)
    if what in ("policy", "reward"):
        return getattr(fit, what).copy()
    return np.where(fit.mdp.feasible, getattr(fit, what), np.nan)  # what cannot be done has no value


def find_states(mdp: MDP, obs: Any) -> tuple[Ints, bool]:
    """Indices of the states in `obs`, in its shape, and whether they were named by their labels.

    A label is a label, also one that is a whole number; whole numbers are indices where no label is a number (see
    `naming.places`). A text or, where labels are tuples, a tuple is one label; a sequence of them several.
    """
    labels = mdp.state_labels
    if _is_one(obs, labels):
        return places("obs", [obs], labels, mdp.n_states).reshape(()), True
    tuples = isinstance(obs, list | tuple) and len(obs) > 0 and all(_is_one(one, labels) for one in obs)
    array = np.zeros(0) if tuples else require_array("obs", obs, "state indices or labels")
    numbered = labels is not None and not tuples and array.dtype.kind in "iuf" and holds_numbers(labels)
    if not tuples and not numbered and (array.dtype.kind in "iu" or labels is None):
        return _indices(mdp, array), False
    wanted = list(obs) if tuples else list(array.reshape(-1))
    if not wanted or any(one is None for one in wanted):
        raise InvalidInput("obs", "state indices or labels", shown(obs))
    found = places("obs", wanted, labels, mdp.n_states)
    return found.reshape(len(wanted) if tuples else array.shape), True


def _is_one(obs: Any, labels: Labels) -> bool:
    """Whether this is one label, or one that was misspelt: where all labels are tuples, a tuple as long as they are
    whose parts are not labels themselves."""
    if is_label(obs, labels) or labels is None or not isinstance(obs, tuple):
        return is_label(obs, labels)
    alike = all(isinstance(label, tuple) and len(label) == len(obs) for label in labels)
    known = set(map(spell, labels)) if alike else set()
    return alike and not any(isinstance(part, list | tuple) or spell(part) in known for part in obs)


def _indices(mdp: MDP, states: Any) -> Ints:
    if states.dtype.kind not in "iu" or states.size == 0:
        raise InvalidInput("obs", "state indices", f"dtype {states.dtype}, shape {states.shape}")
    flat = states.reshape(-1)
    bad = (flat < 0) | (flat >= mdp.n_states)
    if bad.any():
        where = f"position {int(np.flatnonzero(bad)[0])}"
        raise InvalidInput("obs", f"indices in 0…{mdp.n_states - 1}", int(flat[bad][0]), where)
    require_label("obs", "state", mdp.state_labels, int(flat[0]))
    return states.astype(np.intp)


def require_going_on(mdp: MDP, states: Ints) -> None:
    """Nobody decides in a terminal state."""
    flat = states.reshape(-1)
    ended = flat[mdp.terminal[flat]]
    if ended.size:
        raise InvalidInput("obs", "non-terminal states", state_in_words(mdp, ended[0]))


def named_actions(mdp: MDP, actions: Ints, by_label: bool) -> Any:
    """Actions as they are handed out: an index or label for one state, else an array of the same shape. An index says
    nothing where nobody declared the order of the actions."""
    by_label = by_label or is_derived(mdp.action_labels)
    out = label_array(mdp.action_labels, actions) if by_label else actions
    if actions.ndim:
        return out
    return int(actions) if out is actions or mdp.action_labels is None else out


def labels_or_numbers(labels: Labels, n: int) -> tuple[Any, ...]:
    return tuple(range(n)) if labels is None else labels
