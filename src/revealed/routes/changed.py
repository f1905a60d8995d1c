"""The same drivers in another world: links closed, an attribute changed. Preferences stay what they are."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats
from revealed.errors import InvalidInput
from revealed.labels import spell
from revealed.rewards.feature_table import with_entries
from revealed.rewards.linear import LinearReward
from revealed.routes.link_size import LinkSizeReward
from revealed.routes.network import RoadNetwork

if TYPE_CHECKING:
    from revealed.routes.choice import RouteChoice


def closed(model: RouteChoice, links: Any) -> RouteChoice:
    """See `RouteChoice.close`. Turns keep their numbers, so that the reward still fits; link sizes are those of the
    changed network."""
    return _moved(model, model.network.without(links), model.base)


def changed(model: RouteChoice, attribute: str, values: Any) -> RouteChoice:
    """See `RouteChoice.change`."""
    k, feature = model.column(attribute)
    own = model.network.attribute(attribute, "attribute")
    apart = np.flatnonzero(~np.isclose(own, feature, rtol=1e-9, atol=0.0))
    if apart.size:
        e = int(apart[0])
        ends = [spell(model.network.links[x]) for x in (model.network.source[e], model.network.target[e])]
        raise InvalidInput.impossible(
            f"the reward's feature {attribute!r} differs from the network's attribute ({feature[e]:.5g} and "
            f"{own[e]:.5g})",
            f"the turn from {ends[0]} to {ends[1]}",
            "Make a RouteChoice of the changed network and a reward that fits it.",
            "attribute",
        )
    network = model.network.with_attribute(attribute, values)
    return _moved(model, network, _with_column(model.base, k, network, network.attribute(attribute)))


def _moved(model: RouteChoice, network: RoadNetwork, base: Any) -> RouteChoice:
    """The model on a changed network; `base` is its reward there, without link sizes, which are made anew."""
    from revealed.routes.choice import RouteChoice

    reward = base
    if isinstance(model.reward_model, LinkSizeReward):
        sizes = model.reward_model.sizes
        reward = LinkSizeReward(base, sizes.again(network, _stated(sizes.at, network, base)))
    return RouteChoice(network, reward, model.theta)


def _stated(at: Any, network: RoadNetwork, base: Any) -> RouteChoice:
    """The model at which flows are expected, on the changed network; its attributes change where it shares them."""
    from revealed.routes.choice import RouteChoice

    reward = at.reward_model
    shared = set(at.network.attributes) & set(network.attributes) & set(base.names)
    for name in at.names:
        if name not in shared:
            continue
        k, feature = at.column(name)
        if np.array_equal(at.network.attribute(name), feature):
            reward = _with_column(reward, k, network, network.attribute(name))
    return RouteChoice(network, reward, at.theta)


def _with_column(reward: LinearReward, k: int, network: RoadNetwork, values: Floats) -> LinearReward:
    """A linear reward with other numbers in the feature of one parameter."""
    if int(reward.matrix.shape[0]) != network.mdp.feasible.size:  # features of links that are left, alike for all turns
        raise InvalidInput("attribute", "a feature of turns", "a feature of the links that they leave")
    other = copy(reward)
    other.matrix = with_entries(reward.matrix, network.pair, k, values)
    return other
