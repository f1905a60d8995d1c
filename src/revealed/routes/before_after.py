"""Route choice before and after a change: what happens to flows, to travel, and to welfare.

Trips that can no longer arrive have no flow and no finite loss: they are counted and named, and what is compared are
the trips that arrive in both worlds. Welfare is the change of the expected maximum V(origin), in units of the shocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, Ints, require_count
from revealed.counterfactual import readable
from revealed.errors import InvalidInput
from revealed.labels import in_short, locate, spell
from revealed.routes.expected import Expected, expect
from revealed.sheet import Printed, Sheet
from revealed.trip_demand import Demand

if TYPE_CHECKING:
    import pandas as pd

    from revealed.routes.choice import RouteChoice

SHOWN = 5  # links whose flows change most, and lost pairs, that are named
ROUNDING = 1e-13  # of all trips: a change of a flow that is none


@dataclass(frozen=True, eq=False, repr=False)
class RouteComparison(Printed):
    """Two worlds for the same trips.

    `flows` by link, `attributes` per trip (sums along the way; printed are those that the reward has) and `totals`
    (welfare) have columns before, after and change; `welfare` has a row per pair; `lost` are the pairs whose
    destination can be reached only before, `gained` those that can be only after. Flows and means are those of the
    trips that arrive in both.
    """

    words: str
    flows: pd.DataFrame
    attributes: pd.DataFrame
    welfare: pd.DataFrame
    lost: pd.DataFrame
    gained: pd.DataFrame
    trips: float
    money: str | None = field(default=None)
    valued: tuple[str, ...] = field(default=())  # attributes that drivers mind, which are printed
    closed: tuple[Any, ...] = field(default=())  # links that can be entered only before

    @property
    def arriving(self) -> float:
        """Trips that arrive in both worlds."""
        return float(self.welfare["trips"].sum())

    @property
    def totals(self) -> pd.DataFrame:
        """Welfare per trip and in all, over the trips that arrive in both worlds."""
        import pandas as pd

        rows = {"welfare per trip": self._mean("before", "after"), "welfare in all": self._sum("before", "after")}
        if self.money is not None:
            names = ("surplus_before", "surplus_after")
            rows |= {f"per trip, in {self.money}": self._mean(*names), f"in all, in {self.money}": self._sum(*names)}
        frame = pd.DataFrame(rows, index=["before", "after"]).T
        return frame.assign(change=frame["after"] - frame["before"])

    def _sum(self, *names: str) -> list[float]:
        return [float((self.welfare["trips"] * self.welfare[name]).sum()) for name in names]

    def _mean(self, *names: str) -> list[float]:
        return [total / self.arriving if self.arriving else np.nan for total in self._sum(*names)]

    def most_changed(self, n: int = SHOWN) -> pd.DataFrame:
        """The links whose flows change most, in either direction."""
        require_count("n", n)
        order = self.flows["change"].abs().sort_values(ascending=False, kind="stable").index[:n]
        return self.flows.loc[order]

    def _sheet(self) -> Sheet:
        title = f"Route choice: {self.words}"
        minded = self.attributes[self.attributes.index.isin(self.valued)]
        changed = self.most_changed()
        changed = changed[changed["change"] != 0.0]
        blocks = [readable(minded, "{} per trip"), readable(self.totals), readable(changed, "flow on {}")]
        left = (("Trips", f"{self.trips:.10g}"), ("Arriving in both", f"{self.arriving:.10g}"))
        right = (("Lost", f"{self.lost['trips'].sum():.10g}"), ("Gained", f"{self.gained['trips'].sum():.10g}"))
        told = _named(self.lost, "no longer"), _named(self.gained, "only afterwards"), self._begun_on_closed()
        level = (
            "Welfare is the expected maximum, in units of the shocks; only its changes are meaningful, not its level."
        )
        notes = [note for note in (*told, self._unmoved(changed), level) if note]
        head = ("", "before", "after", "change")
        return Sheet(title, head, tuple(b for b in blocks if b), left, right, tuple(notes), title)

    def _unmoved(self, changed: pd.DataFrame) -> str:
        """A sentence where there is no flow to show."""
        if self.arriving and len(changed):
            return ""
        return "No flow changes." if self.arriving else "No trip arrives in both worlds: no flows can be compared."

    def _begun_on_closed(self) -> str:
        """A sentence on closed links that keep a flow."""
        closed, after = set(self.closed), self.flows["after"]
        words = [f"{spell(link)} ({flow:.5g})" for link, flow in after.items() if link in closed and flow > 0.0]
        return f"Closed links keep the flow of trips that begin there: {in_short(words)}." if words else ""


def compare(before: RouteChoice, after: Any, demand: Demand, money: str | None) -> RouteComparison:
    """See `RouteChoice.compare`."""
    remedy = "Make it with `close` or `change`, or on a network with the same links."
    if not isinstance(after, type(before)):
        raise InvalidInput("other", "an rv.RouteChoice with the same links", type(after).__name__, remedy=remedy)
    odd = sorted(set(map(spell, before.network.links)) ^ set(map(spell, after.network.links)))
    if odd:
        where = f"link {odd[0]!r}, which one of the two lacks"
        got = f"one with {after.network.n_links} links, not {before.network.n_links}"
        raise InvalidInput("other", "an rv.RouteChoice with the same links", got, where, remedy)
    places = locate(before.network.links, after.network.links)  # the same links may stand in another order there
    asked = demand.keep(demand.trips > 0.0)
    now, then = asked.arriving(before.network.mdp), _there(asked, places).arriving(after.network.mdp)
    both = asked.keep(now & then)
    found = [
        expect(model.cases(some), some, model.network.pair)
        for model, some in ((before, both), (after, _there(both, places)))
    ]
    table = asked.to_frame()
    return RouteComparison(
        words=_words(before, after),
        flows=_without_rounding(
            _side_by_side([found[0].visits, found[1].visits[places]], before.link_index), both.total
        ),
        attributes=_attributes(before, after, found, both.total),
        welfare=_welfare(both, [part.value for part in found], before, money),
        lost=table[now & ~then].reset_index(drop=True),
        gained=table[~now & then].reset_index(drop=True),
        trips=asked.total,
        money=money,
        valued=before.names,
        closed=_closed(before, after),
    )


def _there(demand: Demand, places: Ints) -> Demand:
    """The same trips on a network whose links stand elsewhere."""
    return replace(demand, origin=places[demand.origin], destination=places[demand.destination])


def _words(before: RouteChoice, after: RouteChoice) -> str:
    """What the network went through in between, or else what is said of the parameters."""
    from revealed.routes.choice import AS_IT_IS

    told = after.network.words
    if told and after.network is not before.network:
        return told.removeprefix(f"{before.network.words}, ")
    return AS_IT_IS if np.array_equal(before.theta, after.theta) else "other parameters"


def _closed(before: RouteChoice, after: RouteChoice) -> tuple[Any, ...]:
    entered = {spell(after.network.links[k]) for k in np.unique(after.network.target)}
    names = (before.network.links[k] for k in np.unique(before.network.target))
    return tuple(link for link in names if spell(link) not in entered)


def _side_by_side(both: list[Floats], index: Any) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame({"before": both[0], "after": both[1]}, index=index)
    return frame.assign(change=frame["after"] - frame["before"])


def _without_rounding(flows: pd.DataFrame, trips: float) -> pd.DataFrame:
    """Changes that are rounding of a sum over all trips are none."""
    return flows.assign(change=flows["change"].where(flows["change"].abs() > ROUNDING * trips, 0.0))


def _attributes(before: RouteChoice, after: RouteChoice, found: list[Expected], trips: float) -> pd.DataFrame:
    """What a trip gathers of each attribute that both networks have; each at the values of its own network."""
    names = [name for name in before.network.attributes if name in after.network.attributes]
    means = [
        np.array([model.network.attribute(name) @ part.turns for name in names]) / (trips or np.nan)
        for model, part in zip((before, after), found, strict=True)
    ]
    return _side_by_side(means, names)


def _welfare(demand: Demand, values: list[Floats], model: RouteChoice, money: str | None) -> pd.DataFrame:
    frame = demand.to_frame().assign(before=values[0], after=values[1], change=values[1] - values[0])
    if money is not None:
        price = model.price(money)
        frame = frame.assign(surplus_before=values[0] / price, surplus_after=values[1] / price)
        frame["surplus_change"] = frame["surplus_after"] - frame["surplus_before"]
    return frame


def _named(pairs: pd.DataFrame, how: str) -> str:
    """A sentence on pairs that arrive in one of the worlds only."""
    if pairs.empty:
        return ""
    shown = [f"{spell(a)} to {spell(b)}" for a, b in zip(pairs["origin"], pairs["destination"], strict=True)]
    more = f" and {len(shown) - SHOWN} more pairs" if len(shown) > SHOWN else ""
    these = f"{pairs['trips'].sum():g}, from {', '.join(shown[:SHOWN])}{more}"
    return f"Trips that {how} arrive: {these}; left out of both sides."
