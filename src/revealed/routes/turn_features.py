"""Attributes of turns as features of the model's pairs, and a weight for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats, as_list, require_flag
from revealed.errors import InvalidInput
from revealed.labels import listed
from revealed.rewards.feature_table import pair_matrix
from revealed.rewards.linear import LinearReward
from revealed.transitions import is_sparse
from revealed.voices import shown

if TYPE_CHECKING:
    from revealed.routes.network import RoadNetwork

BUILT_IN = ("constant", "u_turn", "left_turn")


def make_features(network: RoadNetwork, columns: str | Sequence[str] | None, sparse: bool) -> Any:
    """See `RoadNetwork.features`."""
    require_flag("sparse", sparse)
    names, values = _chosen(network, columns)
    shape = (network.n_links * network.n_actions, len(names))
    if sparse:
        coo = sp.coo_array(values)
        return sp.csr_array((coo.data, (network.pair[coo.coords[0]], coo.coords[1])), shape=shape)
    table = np.zeros(shape)
    table[network.pair] = values
    return table.reshape(network.n_links, network.n_actions, -1)


def make_reward(network: RoadNetwork, columns: str | Sequence[str] | None) -> LinearReward:
    """See `RoadNetwork.reward`."""
    names, values = _chosen(network, columns)
    matrix = pair_matrix(network.pair, values, (network.n_links, network.n_actions), constants=False)
    n_actions = network.n_actions if is_sparse(matrix) else None
    features = matrix if is_sparse(matrix) else matrix.reshape(network.n_links, network.n_actions, -1)
    reward = LinearReward(features, names, n_actions=n_actions, state_labels=network.links)
    reward.leads = network.leads
    return reward


def _chosen(network: RoadNetwork, columns: str | Sequence[str] | None) -> tuple[list[str], Floats]:
    """The attributes that are meant, and their values (E, K)."""
    names = _names(network, columns)
    return names, np.column_stack([network.attribute(name, "columns") for name in names])


def _names(network: RoadNetwork, columns: str | Sequence[str] | None) -> list[str]:
    if columns is None:
        return [name for name in network.attributes if name not in BUILT_IN or network.attribute(name).any()]
    names = [columns] if isinstance(columns, str) else as_list(columns)
    if not names:
        raise InvalidInput("columns", f"one or more of {listed(network.attributes)}", shown(columns))
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput("columns", f"one or more of {listed(network.attributes)}", shown(columns))
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise InvalidInput("columns", "each attribute once", f"{twice!r} twice")
    return names
