"""What changed between two worlds, read off them: which states were closed, which features have other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from revealed.labels import in_short
from revealed.mdp import MDP
from revealed.naming import label_array
from revealed.rewards.feature_table import column_of
from revealed.rewards.linear import LinearReward
from revealed.scenario import CHANGED_MOVES, CHANGED_REWARD, Side


def told_changes(words: Sequence[str], before: Side, after: Side) -> list[str]:
    """The words, in which the changes that were detected replace those that name nothing."""
    seen = {
        CHANGED_MOVES: closed_states(before.mdp, after.mdp),
        CHANGED_REWARD: changed_features(before.reward, after.reward, after.mdp),
    }
    return [seen.get(word) or word for word in words]


def closed_states(before: MDP, after: MDP) -> str:
    """ "a, b closed" where the models differ in just this, that nothing leads to some states any more; else empty."""
    if before.feasible.shape != after.feasible.shape or not (before.certain and after.certain):
        return ""
    kept, lost = after.feasible, before.feasible & ~after.feasible
    if (kept & ~before.feasible).any() or not np.array_equal(before.targets[kept], after.targets[kept]):
        return ""
    closed = np.setdiff1d(before.targets[before.feasible], after.targets[kept])
    if not lost.any() or not np.isin(before.targets[lost], closed).all():
        return ""
    return f"{in_short(label_array(before.state_labels, closed).tolist())} closed"


def changed_features(before: Any, after: Any, mdp: MDP) -> str:
    """ "toll changed" where linear rewards of the same parameters differ in some features; else empty."""
    if not isinstance(before, LinearReward) or not isinstance(after, LinearReward):
        return ""
    if before.names != after.names or before.matrix.shape != after.matrix.shape:
        return ""
    rows = mdp.feasible.reshape(-1) if before.matrix.shape[0] == mdp.feasible.size else slice(None)
    same = [
        np.array_equal(column_of(before.matrix, k)[rows], column_of(after.matrix, k)[rows])
        for k in range(len(before.names))
    ]
    names = [name for name, alike in zip(before.names, same, strict=True) if not alike]
    return f"{in_short(names)} changed" if names else ""
