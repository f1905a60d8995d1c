"""The link-level model behind route choice: rewards of turns at given parameters, and values toward goals.

Where the reward depends on the trip (link sizes), every goal or pair has a table and a factorisation of its own;
elsewhere one factorisation serves all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints, as_list, as_number, is_mapping, require_vector
from revealed.errors import InvalidInput
from revealed.gates import floats_of, require_instance, require_list, require_place, require_places
from revealed.goal_values import GoalValues, Toward
from revealed.labels import listed, plain
from revealed.naming import label_index
from revealed.paths import Moves
from revealed.positions import parameter_named
from revealed.rewards.base import align_reward, is_linear, lift_reward, require_reward
from revealed.rewards.feature_table import column_of
from revealed.routes.network import RoadNetwork
from revealed.trip_demand import Demand, is_series
from revealed.voices import shown

if TYPE_CHECKING:
    import pandas as pd


class LinkModel:
    """A network, a reward and its parameters; whoever asks gets values by goal."""

    def __init__(self, network: RoadNetwork, reward: Any, params: Any) -> None:
        if not isinstance(network, RoadNetwork):
            raise InvalidInput("network", "an rv.RoadNetwork", type(network).__name__)
        require_reward(reward)
        self.network = network
        self.reward_model: Any = lift_reward(align_reward(reward, network.mdp), network.mdp)
        self.theta = as_theta(params, self.names)

    def __getstate__(self) -> dict[str, Any]:
        """Without what holds factorisations; it is made again when asked for."""
        return {name: value for name, value in vars(self).items() if name != "_values"}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.reward_model.names))

    @property
    def by(self) -> str | None:
        """On what the reward depends besides the turn: "goal", "pair", or nothing."""
        return getattr(self.reward_model, "by", None)

    @property
    def base(self) -> Any:
        """The reward without what depends on the trip."""
        return self.reward_model if self.by is None else self.reward_model.base

    # -- values -------------------------------------------------------------------------------------------------------

    def table(self, goal: int | None = None, origin: int | None = None) -> Floats:
        """Rewards of turns (S, A), or (S, 1); those of a case where they depend on the trip."""
        if self.by is None or goal is None:
            return self.reward_model.value(self.theta)
        require_place("goal", goal, self.network.n_links, "links")
        return self.reward_model.toward(goal, origin).value(self.theta)

    @cached_property
    def _values(self) -> GoalValues:
        return GoalValues(self.network.mdp, self.table())

    def toward(self, goal: int, origin: int | None = None) -> Toward:
        """Values and choices toward a link (an index); `origin` is needed where rewards depend on it."""
        require_place("goal", goal, self.network.n_links, "links")
        if self.by is None:
            return self._values.toward(goal)
        return GoalValues(self.network.mdp, self.table(goal, origin)).toward(goal)

    def cases(self, demand: Demand) -> Iterator[tuple[Toward, Ints]]:
        """Values toward one goal after another, each with the rows of the demand that they are for."""
        require_instance("demand", demand, Demand, "the demand that rv.demand_of returns")
        groups = demand.groups(pairs=self.by == "pair")
        if self.by is None:
            goals = [int(demand.destination[rows[0]]) for rows in groups]
            yield from zip(self._values.each(goals), groups, strict=True)
            return
        for rows in groups:
            yield self.toward(int(demand.destination[rows[0]]), int(demand.origin[rows[0]])), rows

    def values_of(self, demand: Demand) -> Floats:
        """(P,): V at the origin of each pair, −∞ if its destination cannot be reached."""
        require_instance("demand", demand, Demand, "the demand that rv.demand_of returns")
        out = np.full(len(demand), -np.inf)
        for toward, rows in self.cases(demand):
            out[rows] = toward.value[demand.origin[rows]]
        return out

    # -- attributes and parameters ------------------------------------------------------------------------------------

    def price(self, money: str) -> float:
        """−θ of a cost: how much the expected maximum falls with one more unit of it."""
        theta = float(self.theta[parameter_named("money", money, self.names)])
        if not theta < 0.0:
            expected = "the parameter of a cost, which is negative"
            raise InvalidInput("money", expected, f"{money} = {theta:.5g}")
        return -theta

    def column(self, attribute: str) -> tuple[int, Floats]:
        """The parameter of an attribute, by its place, and its feature (E,) of each turn; rewards must be linear."""
        base = self.base
        if not is_linear(base):
            raise InvalidInput("attribute", "an attribute of a linear reward", f"a {type(base).__name__}")
        k = parameter_named("attribute", attribute, base.names)
        J = base.jacobian(self.theta[: base.n_params])
        rows = self.network.pair if J.shape[0] == self.network.mdp.feasible.size else self.network.source
        return k, column_of(J, k)[rows]

    def direction(self, attribute: str, links: Any = None, turns: Any = None) -> Floats:
        """(E,): how rewards of turns move with the log of an attribute of some links or turns, or of all."""
        k, feature = self.column(attribute)
        moved = np.full(self.network.n_turns, links is None and turns is None)
        if links is not None:
            moved |= np.isin(self.network.target, self.network.indices(links))
        for turn in () if turns is None else require_list("turns", turns, "pairs (from link, to link)"):
            moved[self._turn(turn)] = True
        return np.where(moved, self.theta[k] * feature, 0.0)

    def _turn(self, turn: Any) -> int:
        pair = None if isinstance(turn, str) else as_list(turn)
        if pair is None or len(pair) != 2:
            raise InvalidInput("turns", "pairs (from link, to link)", shown(turn))
        return self.network.turn_index(*pair)

    # -- names --------------------------------------------------------------------------------------------------------

    def link(self, argument: str, label: Any) -> int:
        """The index of one link by its label."""
        return self.network.index(label, argument)

    def path(self, links: Any) -> tuple[Ints, Ints]:
        """The links of a path and its turns, by index; a turn that does not exist is an error."""
        given = None if isinstance(links, str) else as_list(links)
        if not given:
            raise InvalidInput("links", "the links of a path, the last its destination", shown(links))
        path = np.array([self.link("links", label) for label in given], dtype=np.intp)
        turns = self.network.turns_between(path[:-1], path[1:])
        missing = np.flatnonzero(turns < 0)
        if missing.size:
            i = int(missing[0])
            what = f"no turn leads from {plain(given[i])!r} to {plain(given[i + 1])!r}"
            remedy = self.network.ways_in_words(int(path[i]))
            raise InvalidInput.impossible(what, f"position {i}", remedy, "links")
        early = np.flatnonzero(path[:-1] == path[-1])
        if early.size:
            what = f"a path cannot pass its destination {plain(given[-1])!r} before it ends there"
            raise InvalidInput.impossible(what, f"position {early[0]}", argument="links")
        return path, turns

    def along(self, origin: int, turns: Ints) -> tuple[Any, ...]:
        """The labels of the links of a path."""
        require_place("origin", origin, self.network.n_links, "links")
        turns = require_places("turns", turns, self.network.n_turns, "turns")
        return tuple(self.network.links[k] for k in (origin, *self.network.target[turns]))

    @cached_property
    def moves(self) -> Moves:
        moves = Moves.of(self.network.mdp)
        assert moves is not None
        return moves

    @cached_property
    def link_index(self) -> pd.Index:
        return label_index("link", self.network.links, self.network.n_links)

    def turn_frame(self, values: dict[str, Floats], rows: Ints) -> pd.DataFrame:
        """A row per turn: its links, and these values by name."""
        import pandas as pd

        rows = require_places("rows", rows, self.network.n_turns, "turns")
        require_instance("values", values, dict, "a dict from names to a number per turn")
        columns = {name: floats_of(str(name), column, (None,)) for name, column in values.items()}
        for name, column in columns.items():
            require_places(f"rows of {name}", rows, column.size, "numbers")
        ends = {"from_link": self.network.source, "to_link": self.network.target}
        names = {name: self.link_index.take(index[rows]) for name, index in ends.items()}
        return pd.DataFrame(names | {name: column[rows] for name, column in columns.items()})


def as_theta(params: Any, names: Sequence[str]) -> Floats:
    """(K,) from numbers, from a dict or Series by name, or from a fit."""
    if hasattr(params, "theta"):
        own = tuple(map(str, getattr(getattr(params, "reward_model", None), "names", names)))
        if sorted(own) != sorted(names):
            raise InvalidInput("params", f"a fit of the parameters {listed(names)}", listed(own))
        params = params.theta if own == tuple(names) else dict(zip(own, params.theta, strict=True))
    if is_mapping(params) or is_series(params):
        return _by_name(dict(params.items()), names)
    expected = f"{len(names)} numbers ({listed(names)}), a dict or Series by name, or a fit"
    return require_vector("params", params, len(names), expected)


def _by_name(params: dict[Any, Any], names: Sequence[str]) -> Floats:
    theta = np.full(len(names), np.nan)
    for name, value in params.items():
        theta[parameter_named("params", name, names)] = as_number(value)
    bad = np.flatnonzero(~np.isfinite(theta))
    if bad.size:
        name = names[int(bad[0])]
        raise InvalidInput("params", "a number for every parameter", shown(params.get(name)), shown(name))
    return theta
