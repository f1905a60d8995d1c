"""The same drivers in another world: links closed, an attribute changed. Preferences stay what they are."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats
from revealed.errors import InvalidInput
from revealed.labels import in_short, spell
from revealed.rewards.feature_table import with_entries
from revealed.rewards.linear import LinearReward
from revealed.routes.link_size import LinkSizeReward
from revealed.routes.network import RoadNetwork

if TYPE_CHECKING:
    from revealed.routes.choice import RouteChoice


def closed(model: RouteChoice, links: Any) -> RouteChoice:
    """See `RouteChoice.close`. Turns keep their numbers, so that the reward still fits; link sizes are those of the
    changed network."""
    network = model.network.without(links)
    names = [model.network.links[k] for k in model.network.indices(links)]
    return _moved(model, network, model.reward_model, f"{in_short(names)} closed")


def changed(model: RouteChoice, attribute: str, values: Any) -> RouteChoice:
    """See `RouteChoice.change`."""
    k, feature = model.column(attribute)
    own = model.network.attribute(attribute, "attribute")
    if not np.allclose(own, feature, rtol=1e-9, atol=0.0):
        e = int(np.flatnonzero(~np.isclose(own, feature, rtol=1e-9, atol=0.0))[0])
        ends = [spell(model.network.links[x]) for x in (model.network.source[e], model.network.target[e])]
        raise InvalidInput(
            "attribute",
            f"one that the reward takes from the network as it is: {own[e]:.5g}",
            f"the feature {attribute!r} is {feature[e]:.5g}",
            f"the turn from {ends[0]} to {ends[1]}",
            "Make a RouteChoice of the changed network and a reward that fits it.",
        )
    network = model.network.with_attribute(attribute, values)
    base = model.reward_model.base if isinstance(model.reward_model, LinkSizeReward) else model.reward_model
    reward = _with_column(base, k, network, network.attribute(attribute))
    return _moved(model, network, reward, f"{attribute} changed")


def _moved(model: RouteChoice, network: RoadNetwork, reward: Any, words: str) -> RouteChoice:
    from revealed.routes.choice import RouteChoice

    if isinstance(model.reward_model, LinkSizeReward):
        sizes = model.reward_model.sizes
        base = reward.base if isinstance(reward, LinkSizeReward) else reward
        reward = LinkSizeReward(base, sizes.again(network, _stated(sizes.at, network, base)))
    other = RouteChoice(network, reward, model.theta)
    other.words = words if model.words == RouteChoice.words else f"{model.words}, {words}"
    return other


def _stated(at: Any, network: RoadNetwork, base: Any) -> RouteChoice:
    """The model at which flows are expected, on the changed network; its attributes change where it shares them."""
    from revealed.routes.choice import RouteChoice

    reward = at.reward_model
    for name in at.names:
        if name in network.attributes and name in base.names and np.array_equal(*_before(at, name)):
            k, _ = at.column(name)
            reward = _with_column(reward, k, network, network.attribute(name))
    return RouteChoice(network, reward, at.theta)


def _before(at: Any, name: str) -> tuple[Floats, Floats]:
    known = name in at.network.attributes
    return (at.network.attribute(name) if known else np.zeros(0)), at.column(name)[1]


def _with_column(reward: LinearReward, k: int, network: RoadNetwork, values: Floats) -> LinearReward:
    """A linear reward with other numbers in the feature of one parameter."""
    if int(reward.matrix.shape[0]) != network.mdp.feasible.size:  # features of links that are left, alike for all turns
        raise InvalidInput("attribute", "a feature of turns", "one of the links that they leave")
    other = copy(reward)
    other.matrix = with_entries(reward.matrix, network.pair, k, values)
    return other
