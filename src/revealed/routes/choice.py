"""Route choice at given parameters: the recursive logit, and what the field asks of it (theory R1–R4).

A driver on a link takes the turn whose reward plus expected maximum V toward the destination, plus a shock, is largest.
Choices link by link multiply to the logit of whole paths: P(path) = exp(Σ r) / Σ over all paths = exp(Σ r − V(origin)).
Links go in and come out by their labels. Nothing here is estimated: parameters come from a fit, or are stated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, as_floats, as_number, require_count, require_flag, require_option
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidInput
from revealed.gates import require_memory
from revealed.goal_fit import goal_cases
from revealed.goal_likelihood import by_trip, trip_names
from revealed.goal_values import Toward
from revealed.labels import plain
from revealed.routes.best_paths import MOST, best_paths, sums_along
from revealed.routes.demand import as_demand
from revealed.routes.elasticities import Response, share_of
from revealed.routes.expected import Expected, expect, require_ways
from revealed.routes.link_model import LinkModel
from revealed.routes.network import RoadNetwork
from revealed.trip_demand import Demand, trips_on
from revealed.trip_simulation import simulate_trips
from revealed.voices import shown

if TYPE_CHECKING:
    import pandas as pd

    from revealed.routes.before_after import RouteComparison

AS_IT_IS = "as it is"


class RouteChoice(LinkModel):
    """How drivers with these preferences choose their way on a network.

    Parameters
    ----------
    network : an `rv.RoadNetwork`.
    reward : what a turn is worth, such as `network.reward(["travel_time", "left_turn"])`; an `rv.LinkSizeReward` too.
    params : one number per parameter of the reward: an array, a dict or Series by name, or a fit, whose estimates are
        taken. `RouteChoice.of(network, fit)` takes the reward from the fit as well.

    Destinations are links, and a trip ends on entering its own. If the parameters make driving so cheap that trips
    would never arrive, methods that need values raise `ValueDoesNotExist`.

    Methods that take `demand` accept a table with columns origin, destination and trips (other names as arguments, as
    in `flows(table, origin="from")`), a dict or Series from (origin, destination) to trips, or trips with goals.
    """

    @classmethod
    def of(cls, network: RoadNetwork, fit: Any) -> RouteChoice:
        """With the reward and the estimates of a fit."""
        if as_floats(getattr(fit, "theta", None)) is None or not hasattr(fit, "reward_model"):
            raise InvalidInput("fit", "a fit, as returned by rv.NFXP(reward).fit(...)", type(fit).__name__)
        return cls(network, fit.reward_model, fit.theta)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value:.5g}" for name, value in zip(self.names, self.theta, strict=True))
        return f"RouteChoice({self.network.n_links} links, {self.network.n_turns} turns; {shown})"

    @property
    def words(self) -> str:
        """What was changed, in words."""
        return self.network.words or AS_IT_IS

    @property
    def params(self) -> pd.Series:
        import pandas as pd

        return pd.Series(self.theta, index=list(self.names), name="params")

    # -- one destination ----------------------------------------------------------------------------------------------

    def value(self, destination: Any, origin: Any = None) -> pd.Series:
        """The expected maximum V of a trip from each link to the destination, 0 there, −inf if it cannot be reached.

        `origin` is needed only where the reward depends on it (link sizes by pair)."""
        import pandas as pd

        return pd.Series(self._toward_link(destination, origin).value, index=self.link_index, name="value")

    def link_probabilities(self, destination: Any, origin: Any = None) -> pd.DataFrame:
        """The turns that drivers to the destination may take, each with its probability at the link's end."""
        toward = self._toward_link(destination, origin)
        chance = toward.policy.reshape(-1)[self.network.pair]
        used = np.flatnonzero(np.isfinite(toward.log_policy.reshape(-1)[self.network.pair]))
        return self.turn_frame({"probability": chance}, used)

    def _toward_link(self, destination: Any, origin: Any) -> Toward:
        goal = self.link("destination", destination)
        return self.toward(goal, None if origin is None else self.link("origin", origin))

    def log_path_probability(self, links: Any) -> float:
        """The log of the probability that a trip from the first of these links to the last takes just this path."""
        path, turns = self.path(links)
        toward = self.toward(int(path[-1]), int(path[0]))
        return float(toward.log_policy.reshape(-1)[self.network.pair[turns]].sum())

    def path_probability(self, links: Any) -> float:
        """The probability that a trip from the first of these links to the last takes just this path."""
        return float(np.exp(self.log_path_probability(links)))

    def paths(
        self, origin: Any, destination: Any, n: int | None = None, coverage: float | None = None, most: int = MOST
    ) -> pd.DataFrame:
        """The most probable paths in their order: path, probability, cumulative, and the sum of every attribute.

        `n` of them (by default 10), or as many as cover the share `coverage` of the probability, whichever comes first.
        Paths may contain cycles. At most `most` partial paths are kept in memory; needing more is an error.
        """
        import pandas as pd

        n = 10 if n is None and coverage is None else n
        _require_extent(n, coverage, most)
        start, goal = self.link("origin", origin), self.link("destination", destination)
        toward = self.toward(goal, start)
        if np.isneginf(toward.value[start]):
            what = f"{plain(destination)!r} cannot be reached from {plain(origin)!r}"
            raise InvalidInput.impossible(what, argument="origin")
        found = best_paths(toward, self.moves, start, n, coverage, most)
        chance = np.exp([path.log_probability for path in found])
        told: dict[str, Any] = {"path": [self.along(start, path.turns) for path in found]}
        told |= {"probability": chance, "cumulative": np.cumsum(chance)}
        for name in self.network.attributes:
            told.setdefault(name, sums_along(found, self.network.attribute(name)))
        return pd.DataFrame(told)

    # -- many trips ---------------------------------------------------------------------------------------------------

    def flows(self, demand: Any, turns: bool = False, **columns: Any) -> Any:
        """How often each link is expected to be used by these trips, the first and the last link of each included; with
        `turns` a table of turns. Trips whose destination cannot be reached are an error."""
        import pandas as pd

        require_flag("turns", turns)
        found = self.expected(demand, **columns)
        if turns:
            return self.turn_frame({"flow": found.turns}, np.arange(self.network.n_turns))
        return pd.Series(found.visits, index=self.link_index, name="flow")

    def expected(self, demand: Any, **columns: Any) -> Expected:
        """Visits of links, use of turns and values of pairs in arrays, by one pass over the destinations."""
        table = as_demand(self.network, demand, **columns)
        require_ways(table, self.network.mdp)
        return expect(self.cases(table), table, self.network.pair)

    def welfare(self, demand: Any, money: str | None = None, **columns: Any) -> pd.DataFrame:
        """The expected maximum of a trip of each pair, V(origin), in units of the shocks; −inf if there is no route.

        With `money`, the name of a cost's parameter, also in its units: consumer surplus V / −θ, up to a constant."""
        table = as_demand(self.network, demand, **columns)
        frame = table.to_frame().assign(expected_maximum=self.values_of(table))
        if money is not None:
            frame["consumer_surplus"] = frame["expected_maximum"] / self.price(money)
        return frame

    def log_likelihood(self, trips: Demonstrations) -> pd.Series:
        """The log of the probability of each trip's choices, by trip; its sum is the model's log likelihood."""
        import pandas as pd

        trips_on(self.network.mdp, trips)  # or it says what is wrong with them
        where = (self.network.mdp, trips, lambda rows: goal_cases(rows, None), self.reward_model, self.theta)
        index = pd.Index(trip_names(trips), name="trip", tupleize_cols=False)
        return pd.Series(by_trip(*where), index=index, name="log_likelihood")

    def simulate(
        self, demand: Any, seed: int | None = None, longest: int | None = None, **columns: Any
    ) -> Demonstrations:
        """Trips drawn from the model, as many per pair as the demand says, with their goals; ids are 0, 1, ….

        Trips that have not arrived after `longest` decisions, if it is given, are cut off. Trips that begin at their
        destination decide nothing (in `flows` they are one visit): they are left out, and the notes say so.
        """
        table = as_demand(self.network, demand, **columns)
        odd = np.flatnonzero(table.trips != np.round(table.trips))
        if odd.size:
            got, where = f"{table.trips[odd[0]]:g}", table.where(int(odd[0]))
            raise InvalidInput("trips", "whole numbers of trips", got, where, "Round them first.")
        there = (table.trips > 0.0) & (table.origin == table.destination)
        kept = table.keep((table.trips > 0.0) & ~there)
        if not len(kept):
            raise InvalidInput("demand", "trips between different links", shown(table))
        require_ways(kept, self.network.mdp)
        often = kept.trips.astype(np.intp)
        starts, ends = (np.repeat(x, often) for x in (kept.origin, kept.destination))
        reward = self.table() if self.by is None else self.table
        demos = simulate_trips(self.network.mdp, reward, starts, ends, seed, longest, self.by or "goal")
        return replace(demos, notes=(*demos.notes, *_left_out(table.keep(there))))

    # -- how behaviour answers ----------------------------------------------------------------------------------------

    def elasticity(
        self, attribute: str, demand: Any, links: Any = None, turns: Any = None, of: str = "links", **columns: Any
    ) -> Any:
        """The percentage by which flows change if an attribute rises by one per cent on some links at once.

        `links` are those whose attribute changes (of every turn into them), or `turns`, pairs (from link, to link); all
        turns where neither is given. `of` "links" gives a Series over all links, "turns" a table of turns. NaN where
        there is no flow. Derivatives are exact; only the attribute's own term of a linear reward changes.
        """
        import pandas as pd

        require_option("of", of, ("links", "turns"))
        direction = self.direction(attribute, links, turns)[:, None]
        table = as_demand(self.network, demand, **columns)
        per_link, per_turn = self._shares(direction, table)
        if of == "turns":
            return self.turn_frame({"elasticity": per_turn[:, 0]}, np.arange(self.network.n_turns))
        return pd.Series(per_link[:, 0], index=self.link_index, name="elasticity")

    def elasticities(self, attribute: str, demand: Any, links: Any, **columns: Any) -> pd.DataFrame:
        """Own and cross elasticities of link flows: a row per link, a column per link whose attribute changes."""
        import pandas as pd

        changed = self.network.indices(links)
        if len(changed) == 0:
            raise InvalidInput("links", "at least one link", "none")
        directions = np.column_stack([self.direction(attribute, [self.network.links[k]]) for k in changed])
        per_link, _ = self._shares(directions, as_demand(self.network, demand, **columns))
        return pd.DataFrame(per_link, index=self.link_index, columns=self.link_index.take(changed).rename("changed"))

    def choice_elasticity(
        self, attribute: str, destination: Any, links: Any = None, turns: Any = None, origin: Any = None
    ) -> pd.DataFrame:
        """The same for the choice of each turn at its link's end by drivers to one destination."""
        toward = self._toward_link(destination, origin)
        direction = self.direction(attribute, links, turns)[:, None]
        found = Response(toward, self.moves, direction).log_policy()[:, 0]
        used = np.flatnonzero(np.isfinite(toward.log_policy.reshape(-1)[self.network.pair]))
        return self.turn_frame({"elasticity": found}, used)

    def _shares(self, directions: Floats, demand: Demand) -> tuple[Floats, Floats]:
        """Elasticities of links (S, B) and of turns (E, B)."""
        require_ways(demand, self.network.mdp)
        totals: list[Any] = [0.0] * 4
        for toward, rows in self.cases(demand):
            found = Response(toward, self.moves, directions).flows(demand.starts(rows))
            totals = [total + part for total, part in zip(totals, found, strict=True)]
        return share_of(totals[1], totals[0], demand.total), share_of(totals[3], totals[2], demand.total)

    # -- other worlds -------------------------------------------------------------------------------------------------

    def close(self, links: Any) -> RouteChoice:
        """The same drivers with these links closed."""
        from revealed.routes.changed import closed

        return closed(self, links)

    def change(self, attribute: str, values: Any) -> RouteChoice:
        """The same drivers with an attribute changed, as in `model.change("toll", {"A17": 2.0})`; see
        `RoadNetwork.with_attribute` for the forms of `values`. The reward must have a parameter for it."""
        from revealed.routes.changed import changed

        return changed(self, attribute, values)

    def compare(self, other: RouteChoice, demand: Any, money: str | None = None, **columns: Any) -> RouteComparison:
        """What changes for these trips from this model to another on the same links: flows, attributes per trip,
        welfare; with `money`, the name of a cost's parameter, also in its units."""
        from revealed.routes.before_after import compare

        return compare(self, other, as_demand(self.network, demand, **columns), money)


def _left_out(there: Demand) -> tuple[str, ...]:
    """A note on trips that begin at their destination."""
    if not len(there):
        return ()
    trips = f"{there.total:g} trip{'s' if there.total > 1.0 else ''}"
    return (f"{trips} from a link to itself left out (first {there.words(0)}): nothing is decided there.",)


def _require_extent(n: Any, coverage: Any, most: Any) -> None:
    """How many paths are asked for."""
    if n is not None:
        require_count("n", n)
        require_memory("n", n, 64 * int(n))
    if coverage is not None and not 0.0 < as_number(coverage) < 1.0:
        raise InvalidInput("coverage", "a share between 0 and 1", shown(coverage))
    require_count("most", most)
