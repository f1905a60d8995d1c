"""A generated city: a road network with a hierarchy of streets, and drivers whose preferences are known.

States are links, a street in one direction; actions are the turns at a link's end; every trip has its own goal and
nothing is discounted (theory R1). Drivers dislike minutes, links, turns to the left and turning back. The shocks of
each turn have scale 1, and the true weights are such that the value exists for every goal by a good margin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints, as_list, frozen, is_index, require_count
from revealed.demonstrations import Demonstrations
from revealed.environments.city_links import links_of
from revealed.environments.city_streets import KINDS, lay_streets
from revealed.errors import InvalidInput
from revealed.gates import require_memory, within_memory
from revealed.goal_values import GoalValues
from revealed.mdp import MDP
from revealed.rewards.linear import LinearReward
from revealed.routes.network import RoadNetwork
from revealed.simulation import make_rng
from revealed.trip_simulation import simulate_trips
from revealed.voices import shown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRUTH = {"travel_time": -2.0, "left_turn": -0.5, "u_turn": -3.0, "constant": -1.0}
LEAST_LINKS = 100


@dataclass(frozen=True, eq=False)
class City:
    """A city whose drivers' preferences are known: `rv.environments.city` builds one.

    `network` is the rv.RoadNetwork; `kind` (S,) the class of each link, an index into `kinds`; `weights` the truth.
    Drivers have no policy of their own but one per goal: `expert_for(goal)`.
    """

    network: RoadNetwork
    kind: Ints = field(repr=False)
    weights: dict[str, float]
    name: str = "City"
    kinds: tuple[str, ...] = KINDS

    @property
    def mdp(self) -> MDP:
        return self.network.mdp

    @cached_property
    def reward(self) -> LinearReward:
        """A reward to estimate that can represent the true one: linear in the attributes of turns."""
        return self.network.reward(list(self.weights))

    def reward_model(self) -> LinearReward:
        """As every world has it."""
        return self.reward

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(self.weights)

    @cached_property
    def features(self) -> Any:
        """(S, A, K), zero where there is no turn: what drivers see of each."""
        return self.network.features(list(self.weights))

    @property
    def true_weights(self) -> pd.Series:
        """What a minute, a turn to the left, turning back and every link are worth to drivers."""
        import pandas as pd

        return pd.Series(self.weights, name="true weight")

    @cached_property
    def true_reward(self) -> Floats:
        """(S, A), zero where there is no turn."""
        return frozen(self.reward.value(np.array(list(self.weights.values()))))

    def expert_for(self, goal: Any) -> Floats:
        """(S, A): the true choice probabilities of trips to `goal`, a link."""
        return GoalValues(self.mdp, self.true_reward).toward(goal).policy

    @within_memory("n")
    def demonstrate(
        self, n: int = 1000, seed: int | None = 0, destinations: Any = None, origins: Any = None
    ) -> Demonstrations:
        """`n` trips drawn from the true choice model, with goals.

        Parameters
        ----------
        destinations : how many different ones there are, or the links to draw them from; by default one per four
            trips. Each is the goal of at least one trip where there are as many trips.
        origins : likewise; by default all links are equally likely.
        """
        require_count("n", n)
        require_memory("n", n, 64 * int(n))
        rng = make_rng(seed)
        several = max(1, min(n // 4, self.mdp.n_states)) if destinations is None else destinations
        goals = _drawn(self._pool("destinations", several, rng), n, rng)
        pool = np.arange(self.mdp.n_states) if origins is None else self._pool("origins", origins, rng)
        starts = _apart(pool, goals, rng)
        return simulate_trips(self.mdp, self.true_reward, starts, goals, seed=int(rng.integers(2**62)))

    def _pool(self, name: str, given: Any, rng: np.random.Generator) -> Ints:
        """The links that are meant, or so many by lot."""
        if is_index(given):
            if not 1 <= given <= self.mdp.n_states:
                raise InvalidInput(name, f"1…{self.mdp.n_states} links", given)
            return np.sort(rng.choice(self.mdp.n_states, size=int(given), replace=False))
        listed = None if isinstance(given, str) else as_list(given)
        if not listed:
            raise InvalidInput(name, "a number of links, or a sequence of links", shown(given))
        return np.unique([self.mdp.state_named(link, name) for link in listed])

    def plot(self, values: Any = None, ax: Axes | None = None, title: str | None = None, **style: Any) -> Figure:
        """The map of the city, or of how much its links are used: `city.plot()`, or `city.plot(trips)`.

        `values` are demonstrations, whose trips are counted on each link, or an array (S,) of flows. The rest of
        `style` goes to `draw_classes` or `draw_flows` of `revealed.routes.maps`.
        """
        from revealed.goal_flows import observed_use
        from revealed.routes.maps import draw_classes, draw_flows

        style = {"title": self.name if title is None else title, "unit": "km"} | style
        if values is None:
            return draw_classes(self.network, self.kind, self.kinds, ax=ax, **style)
        if isinstance(values, Demonstrations):
            values = observed_use(values)
        return draw_flows(self.network, values, ax=ax, **style)


@within_memory("n_links")
def city(n_links: int = 2000, seed: int = 0) -> City:
    """A city of about `n_links` links, 100 to 10⁵ and more: a ring motorway, arterials, and local streets.

    Every link can be reached from every other. At about 7,500 links there are 2.8 turns per link, and the city is 12 km
    across. `city.demonstrate(1800, destinations=470)` draws trips, `rv.NFXP(city.reward).fit(city.mdp, trips)` recovers
    `city.true_weights`.
    """
    require_count("n_links", n_links, least=LEAST_LINKS)
    require_memory("n_links", n_links, 200 * int(n_links))
    links = links_of(lay_streets(n_links, make_rng(seed)))
    table, turns = links.to_frames()
    return City(RoadNetwork.from_frame(table, turns=turns), links.kind, dict(TRUTH))


def _drawn(pool: Ints, n: int, rng: np.random.Generator) -> Ints:
    """n of the pool, in any order, each at least once if there is room."""
    sure = rng.permutation(pool)[:n]
    return rng.permutation(np.concatenate([sure, rng.choice(pool, size=n - sure.size)]))


def _apart(pool: Ints, goals: Ints, rng: np.random.Generator) -> Ints:
    """One of the sorted pool for each goal, but not the goal itself."""
    place = np.minimum(np.searchsorted(pool, goals), pool.size - 1)
    own = pool[place] == goals
    if pool.size == 1 and own.any():
        raise InvalidInput.impossible(
            f"no trip can start at link {int(pool[0])}: it is the only destination", argument="origins"
        )
    k = rng.integers(pool.size - own)
    return pool[k + (own & (k >= place))]
