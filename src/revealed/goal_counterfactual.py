"""What travellers would do if…: flows, values and welfare of trips with goals before and after a change, with bands.

As `counterfactual.py`, for all trips together (theory R4, R6, L3): "before" is the full solution at the estimate,
bands come by exact derivatives or from a bootstrap, and the change has bands of its own. A trip that could not arrive
in one of the two worlds has no finite value there: such trips are counted, named and left out of both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.band_plots import plot_marks
from revealed.bands import Bounds, blank, bootstrap_bounds, delta_bounds, difference
from revealed.change_words import closed_states, told_changes
from revealed.checks import Floats, Ints, require_count, require_option
from revealed.counterfactual import COLUMNS, readable
from revealed.doubt import IN_WORDS, Doubt, doubt, require_known
from revealed.errors import InvalidInput
from revealed.goal_behaviour import QUANTITIES, Flows, GoalSide, countable
from revealed.inference import MOST_NUMBERS
from revealed.labels import spell
from revealed.mdp import MDP, require_mdp
from revealed.naming import action_index, joint_index, label_array, state_index
from revealed.plots import own_axes
from revealed.rewards.base import of_trips
from revealed.scenario import Side, after_change, discount_notes, lost_notes, sides
from revealed.sheet import Printed, Sheet
from revealed.trip_demand import Demand, as_demand
from revealed.voices import either, shown, words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 5  # states whose visits change most that are printed
LIMITS: dict[str, tuple[float, float]] = dict.fromkeys(("visits", "turns", "length"), (0.0, np.inf))
FRAMES = ("visits", "turns", "value")
OWN = ("params", "mdp", "reward", "bands", "level", "trips")


@dataclass(frozen=True, eq=False)
class TripQuantities:
    """One number or array per quantity: levels, changes, standard errors or bounds.

    `visits` (S,) and `turns` (S, A) are the expected use of states and actions by all trips together, origin and goal
    included; `value` (P,) is V at the origin, for each pair of origin and goal; `welfare` is its mean over the trips,
    in units of the shocks; `length` the mean number of decisions; `features` (K,) what a trip gathers of each feature
    of a linear reward (none for other rewards).
    """

    visits: Floats = field(repr=False)
    turns: Floats = field(repr=False)
    value: Floats = field(repr=False)
    welfare: float
    length: float
    features: Floats


@dataclass(frozen=True, eq=False)
class TripBands(TripQuantities):
    """Quantities with standard errors `se` and bounds `lower` and `upper`, each of the same form; NaN without bands."""

    se: TripQuantities = field(repr=False)
    lower: TripQuantities = field(repr=False)
    upper: TripQuantities = field(repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class GoalCounterfactual(Printed):
    """What trips do `before` and `after` a change, and the `change` from one to the other.

    Each has `visits`, `turns`, `value`, `welfare`, `length` and `features`, and `se`, `lower` and `upper` of the same
    form, as in `cf.change.se.welfare` (NaN where `bands` is None). `origins`, `goals` and `trips` (P,) are the pairs
    that `value` is for; `mdp` is the model after the change.
    """

    before: TripBands
    after: TripBands
    change: TripBands
    pairs: Demand
    mdp: MDP
    names: tuple[str, ...]
    words: str
    bands: str | None
    level: float
    notes: tuple[str, ...] = field(default=())

    @property
    def origins(self) -> tuple[Any, ...]:
        return tuple(label_array(self.mdp.state_labels, self.pairs.origin).tolist())

    @property
    def goals(self) -> tuple[Any, ...]:
        return tuple(label_array(self.mdp.state_labels, self.pairs.destination).tolist())

    @property
    def trips(self) -> Floats:
        return self.pairs.trips

    def table(self) -> pd.DataFrame:
        """Welfare, decisions and features per trip: before, after, and the change with its band."""
        import pandas as pd

        rows = [self._cells("welfare", ()), self._cells("length", ())]
        per_trip = pd.DataFrame(rows, columns=COLUMNS, index=["welfare", "decisions"])
        features = pd.DataFrame(self._cells("features", ...), columns=COLUMNS, index=list(self.names))
        return self._noted(pd.concat([per_trip, features]) if self.names else per_trip)

    def _noted(self, frame: pd.DataFrame) -> pd.DataFrame:
        frame.attrs["notes"] = list(self.notes)
        return frame

    def frame(self, quantity: str = "visits") -> pd.DataFrame:
        """One quantity by its labels: "visits" has a row per state, "turns" one per state and action that can be taken
        in either world, "value" one per origin and goal, with its number of `trips`."""
        import pandas as pd

        require_option("quantity", quantity, FRAMES)
        if quantity == "visits":
            return self._noted(pd.DataFrame(self._cells(quantity, ...), index=state_index(self.mdp)))
        if quantity == "value":
            ends = (("origin", self.pairs.origin), ("goal", self.pairs.destination))
            index = joint_index([(name, state_index(self.mdp).take(x)) for name, x in ends])
            return self._noted(pd.DataFrame({"trips": self.trips} | self._cells(quantity, ...), index=index))
        used = self.mdp.feasible | (self._column("before", quantity) > 0.0)
        s, a = np.nonzero(used)
        index = joint_index([(None, state_index(self.mdp).take(s)), (None, action_index(self.mdp).take(a))])
        return self._noted(pd.DataFrame(self._cells(quantity, (s, a)), index=index))

    def most_changed(self, n: int = SHOWN) -> pd.DataFrame:
        """The states whose visits change most, in either direction."""
        return self.frame("visits").iloc[self._most_changed(n)]

    def _most_changed(self, n: int) -> Ints:
        require_count("n", n)
        return np.argsort(-np.abs(self.change.visits), kind="stable")[:n]

    def _cells(self, quantity: str, place: Any) -> dict[str, Any]:
        cells = {name: self._column(name, quantity)[place] for name in COLUMNS}
        return {name: x.item() if np.ndim(x) == 0 else x for name, x in cells.items()}

    def _column(self, name: str, quantity: str) -> Floats:
        """`before` is NaN where the worlds differ in their actions."""
        where = getattr(self, name) if hasattr(self, name) else getattr(self.change, name)
        x, after = (np.asarray(getattr(side, quantity)) for side in (where, self.after))
        return x if x.shape == after.shape else np.full(after.shape, np.nan)

    def plot(self, n: int = 12, ax: Axes | None = None, title: str | None = None, **style: Any) -> Figure:
        """The visits of the states that change most, before and after, with bands."""
        place = self._most_changed(n)
        curves = {name: _curve(getattr(self, name), place) for name in ("before", "after")}
        figure, axes = own_axes(ax, (max(5.4, 2.0 + 0.4 * place.size), 4.0))
        style = {"label": "expected visits", "title": self.words if title is None else title} | style
        plot_marks(axes, curves, [spell(name) for name in state_index(self.mdp)[place]], **style)
        return figure

    def _sheet(self) -> Sheet:
        table, most = self.table(), self.most_changed()
        title = f"Counterfactual: {self.words}"
        blocks = (readable(table), readable(most[most["change"].abs() > 0.0], "visits to {}"))
        notes = [
            f"{self.pairs.size_in_words}. Welfare, in units of the shocks, decisions and "
            "features are means per trip; visits are those of all trips."
        ]
        if self.bands is not None and bool(table["se"].notna().any()):
            notes.insert(0, f"Bands of the change at {100 * self.level:g} %, {IN_WORDS[self.bands]}.")
        notes += ["Note: " + note for note in self.notes]
        return Sheet(title, ("", *COLUMNS), tuple(b for b in blocks if b), notes=tuple(notes), title=title)


def _curve(side: TripBands, place: Any) -> tuple[Floats, Floats | None, Floats | None]:
    low, high = side.lower.visits[place], side.upper.visits[place]
    return (side.visits[place], None, None) if np.isnan(low).all() else (side.visits[place], low, high)


def goal_counterfactual(
    fit: Any,
    params: Any = None,
    mdp: Any = None,
    reward: Any = None,
    bands: str | None = "auto",
    level: float = 0.95,
    trips: Any = None,
    **bootstrap: Any,
) -> GoalCounterfactual:
    """What travellers with the estimated preferences would do if something changed.

    Parameters
    ----------
    params : as in `fit.counterfactual` without goals: name → number or function of the estimate, or all K numbers.
    mdp : another model of the same states, such as `network.without(["a", "b"]).mdp`.
    reward : another reward of the same parameters, such as `network.with_attribute("toll", 2.0).reward(names)`, or an
        (S, A) array of rewards.
    bands, level, bootstrap : as without goals.
    trips : the trips to predict, by default those observed: demonstrations with goals, of which only origins and goals
        are used; or numbers of trips, as a dict or Series from (origin, destination) to trips, or a table with columns
        origin, destination and trips (labels of states; indices without labels).
    """
    require_known("counterfactual", bootstrap, OWN, fit.reward_model.names)
    pairs = _travellers(fit, trips)
    _require_same_states(mdp, fit.mdp)
    before, after, words = sides(fit, params, mdp, reward, None)
    words = told_changes(words, before, after)
    closed = closed_states(before.mdp, after.mdp)
    notes = [] if closed else lost_notes(before.mdp, after.mdp)
    notes += discount_notes(before.mdp, after.mdp) + _of_sizes(before, after, mdp is not None or reward is not None)
    pairs = _arriving(pairs, before.mdp, after.mdp, notes)
    counted = _counted(before, after)
    both = GoalSide(before, pairs, counted[0]), GoalSide(after, pairs, counted[1])
    doubts = doubt(fit, bands, level, bootstrap)
    notes += doubts.notes
    at, found = _bands(doubts, both, fit.theta, words, notes)
    levels = [{name: getattr(flows, name) for name in QUANTITIES} for flows in at]
    levels.append(difference(at[1], at[0], QUANTITIES))
    told = [_banded(x, bounds) for x, bounds in zip(levels, found, strict=True)]
    names = () if counted[0] is None else tuple(map(str, fit.reward_model.names))
    said = (pairs, after.mdp, names, ", ".join(words), doubts.kind, level, tuple(notes))
    return GoalCounterfactual(told[0], told[1], told[2], *said)


# -- who travels, and where -------------------------------------------------------------------------------------------


def _travellers(fit: Any, trips: Any) -> Demand:
    found = as_demand(fit.mdp, fit.demonstrations if trips is None else trips, "trips")
    if not found.total > 0.0:
        raise InvalidInput("trips", "at least one trip", shown(found))
    return found.keep(found.trips > 0.0)


def _require_same_states(mdp: Any, own: MDP) -> None:
    """Trips are known by the states where they begin and end, so that these must be the same."""
    if mdp is None:
        return
    require_mdp(mdp)
    remedy = "For example: network.without(links).mdp, which keeps them all."
    if mdp.n_states != own.n_states:
        raise InvalidInput("mdp", f"the {own.n_states} states of the fit's model", mdp.n_states, remedy=remedy)
    if mdp.state_labels is None or own.state_labels is None or mdp.state_labels == own.state_labels:
        return
    known = set(map(spell, own.state_labels))
    odd = next((label for label in mdp.state_labels if spell(label) not in known), None)
    if odd is not None:
        raise InvalidInput("mdp", "the states of the fit's model", shown(odd), remedy=remedy)


def _arriving(pairs: Demand, before: MDP, after: MDP, notes: list[str]) -> Demand:
    """The pairs that have a route in both worlds; the others are listed in `notes`."""
    then = pairs.arriving(after)
    now = then if after is before else pairs.arriving(before)
    told = {"can no longer arrive": now & ~then, "can arrive only after the change": ~now & then}
    for how, lost in (told | {"can never arrive": ~now & ~then}).items():
        if lost.any():
            notes.append(_left_out(pairs, lost, how))
    if not (now & then).any():
        what = f"none of {len(pairs)} pairs of origin and goal has a route both before and after the change"
        raise InvalidInput.impossible(what, pairs.where(0), argument="trips")
    return pairs.keep(now & then)


def _left_out(pairs: Demand, lost: Any, how: str) -> str:
    some = pairs.keep(lost)
    n = some.size_in_words
    return f"{n} {how} and are left out of both sides (first from {some.words(0)})."


def _of_sizes(before: Side, after: Side, changed: bool) -> list[str]:
    """A note where features of trips, such as link sizes, were made for the world before the change."""
    sizes = getattr(before.reward, "sizes", None)
    if not changed or sizes is None or getattr(after.reward, "sizes", None) is not sizes:
        return []
    anew = either("rv.RouteChoice.of(network, fit).close(...) and .change(...)", "rv.RouteChoice in Python")
    make = either("recompute", "recomputes")
    return [words(f"link sizes stay those of the network before the change; {anew} {make} them.")]


def _counted(before: Side, after: Side) -> tuple[Any, Any]:
    """The rewards whose features are summed along the way, where both worlds have some."""
    now, then = countable(before.reward), countable(after.reward)
    if (
        isinstance(after.reward, np.ndarray)
        and not of_trips(now)
        and before.mdp.feasible.shape == after.mdp.feasible.shape
    ):
        then = now  # numbers say nothing of the features, which stay what they are
    return (None, None) if now is None or then is None else (now, then)


# -- bands ------------------------------------------------------------------------------------------------------------

Both = tuple[GoalSide, GoalSide]


def _bands(
    doubts: Doubt, both: Both, theta: Floats, words: list[str], notes: list[str]
) -> tuple[tuple[Flows, Flows], list[Bounds]]:
    """The flows before and after; se, lower and upper of both and of the change."""
    if doubts.kind == "delta":
        own = np.asarray(doubts.own)[: theta.size]
        now = both[0].with_slopes(theta, own)
        with after_change(words):
            then = both[1].with_slopes(theta, own)
        at, size = (now[0], then[0]), np.maximum(now[1].size, then[1].size)
        return at, delta_bounds(doubts, at, (now[1].flows, then[1].flows), size, QUANTITIES, LIMITS)
    now = both[0].at(theta)
    with after_change(words):
        at = now, both[1].at(theta)
    if doubts.kind == "bootstrap":
        return at, _bootstrap_bands(doubts, both, at, notes)
    return at, [blank(flows, QUANTITIES) for flows in (*at, at[1])]


def _bootstrap_bands(doubts: Doubt, both: Both, at: tuple[Flows, Flows], notes: list[str]) -> list[Bounds]:
    """Percentiles over the draws, of what can be kept of all draws."""
    n = len(np.asarray(doubts.theta))
    kept = tuple(name for name in QUANTITIES if n * max(np.size(getattr(x, name)) for x in at) <= MOST_NUMBERS)
    if len(kept) < len(QUANTITIES):
        lost = ", ".join(name for name in QUANTITIES if name not in kept)
        notes.append(f"no bands of {lost}: there are too many numbers to keep every draw.")
    return bootstrap_bounds(doubts, both, at, kept, QUANTITIES, notes)


def _banded(levels: dict[str, Any], bounds: Bounds) -> TripBands:
    parts: dict[str, Any] = {part: TripQuantities(**_plain(values)) for part, values in bounds.items()}
    return TripBands(**_plain(levels), **parts)


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(x).item() if np.ndim(x) == 0 else x for name, x in found.items()}
