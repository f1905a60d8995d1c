"""Demand curves: how often an action is taken in the long run, against one parameter of the reward.

Rust's (1987) picture: expected replacements a year against the cost of a new engine. The parameter that is swept is
set by hypothesis and carries no uncertainty; the other parameters stay at their estimates and carry theirs, as they
were estimated together with the swept one (their marginal covariance, or the draws of a bootstrap).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.band_plots import plot_demand
from revealed.behaviour import Derivatives, Solved
from revealed.bootstrap import draw_bounds
from revealed.checks import Floats, as_number, require_positive, require_vector
from revealed.doubt import IN_WORDS, Doubt, Spread, doubt, over_draws, require_known
from revealed.labels import plain
from revealed.plots import own_axes
from revealed.positions import parameter_named
from revealed.scenario import Setting, Side, after_change, estimated_side, find_action
from revealed.sheet import Printed, Sheet, number_column

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Band = tuple[Floats, Floats, Floats]
MOST_ROWS = 12  # of what is printed


@dataclass(frozen=True, eq=False, repr=False)
class DemandCurve(Printed):
    """How often `action` is taken per `per` decisions in the long run, at each of `values` of `parameter`.

    `frequency`, `se`, `lower` and `upper` are (n,) (NaN without bands). `estimate` is the parameter's estimate,
    `interval` its own confidence interval, `at_estimate` the frequency there; `begins` says where agents start.
    """

    parameter: str
    action: Any
    per: float
    values: Floats = field(repr=False)
    frequency: Floats = field(repr=False)
    se: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    estimate: float
    interval: tuple[float, float]
    at_estimate: float
    begins: str
    bands: str | None
    level: float
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """Columns value, frequency, lower, upper, se."""
        return self.to_frame()

    def to_frame(self) -> pd.DataFrame:
        """Columns value, frequency, lower, upper, se; rows as the values were given. `.attrs["notes"]` has notes on the
        bands."""
        import pandas as pd

        columns = {"value": self.values, "frequency": self.frequency, "lower": self.lower, "upper": self.upper}
        frame = pd.DataFrame(columns | {"se": self.se})
        frame.attrs |= {"notes": list(self.notes), "starts": f"Starts: {self.begins}."}
        return frame

    @property
    def _counted(self) -> str:
        """What the frequencies count, in words."""
        often = "decision" if self.per == 1.0 else f"{self.per:g} decisions"
        return f"expected choices of “{self.action}” per {often}"

    @property
    def _band(self) -> tuple[Floats, Floats] | None:
        return None if np.isnan(self.lower).all() else (self.lower, self.upper)

    def _sheet(self) -> Sheet:
        """A dozen of the values in their order, and the estimate below them."""
        n = self.values.size
        shown = np.argsort(self.values)[np.linspace(0, n - 1, min(n, MOST_ROWS)).round().astype(int)]
        columns = [x[shown] for x in (self.values, self.frequency, self.se, self.lower, self.upper)]
        rows = tuple(zip(*map(number_column, columns), strict=True))
        title = f"Demand curve: {self._counted}, by {self.parameter}"
        head = (self.parameter, "frequency", "se", "lower", "upper")
        return Sheet(title, head, (rows,), notes=(*self._remarks(len(shown)),), title=title)

    def _remarks(self, shown: int) -> list[str]:
        low, high = self.interval
        reach = f" ({low:.5g} to {high:.5g})" if np.isfinite([low, high]).all() else ""
        said = [f"At the estimate, {self.parameter} = {self.estimate:.5g}{reach}: {self.at_estimate:.5g}."]
        if self.bands is not None and self._band is not None:
            said.append(
                f"Bands at {100 * self.level:g} %, {IN_WORDS[self.bands]}; {self.parameter} is set, not estimated."
            )
        if shown < self.values.size:
            said.append(f"{shown} of {self.values.size} values; `to_frame()` has all.")
        return [*said, f"Starts: {self.begins}.", *("Note: " + note for note in self.notes)]

    def plot(
        self,
        ax: Axes | None = None,
        xlabel: str | None = None,
        ylabel: str | None = None,
        title: str = "",
        **style: Any,
    ) -> Figure:
        """The curve with its band, and the estimate with its confidence interval; returns the figure."""
        figure, axes = own_axes(ax, (5.8, 4.0))
        names = (self.parameter if xlabel is None else xlabel, self._counted if ylabel is None else ylabel)
        order = np.argsort(self.values)  # a line through values as they come would fold
        band = None if self._band is None else (self.lower[order], self.upper[order])
        mark = (self.estimate, *self.interval, self.at_estimate)
        style = {"title": title, "names": names, "level": self.level} | style
        plot_demand(axes, self.values[order], self.frequency[order], band, mark, **style)
        return figure


def demand_curve(
    fit: Any,
    parameter: str,
    values: Any,
    action: Any,
    per: float = 1.0,
    bands: str | None = "auto",
    level: float = 0.95,
    initial: Any = None,
    **bootstrap: Any,
) -> DemandCurve:
    """The expected number of times `action` (label or index) is taken per `per` decisions in the long run, against a
    parameter of the reward that is set to each of `values`.

    `fit.demand_curve("RC", np.linspace(4, 14, 41), action="replace", per=12)` is Rust's curve of replacements per bus
    and year. The swept parameter is set by hypothesis; the others are at their estimates and carry the uncertainty of
    the estimate: their block of its covariance, marginal and not conditional, because the hypothesis is about the
    world and not about what the data say about them. Bands are pointwise. `bands`, `level`,
    `initial` and the options of the bootstrap are those of `fit.counterfactual`.
    """
    require_known("demand_curve", bootstrap, ("parameter", "values", "action", "per", "bands", "level", "initial"))
    k = parameter_named("parameter", parameter, fit.reward_model.names)
    points = _as_values(values)
    a = find_action(fit.mdp, action)
    per = require_positive("per", per)
    doubts = doubt(fit, bands, level, bootstrap)
    sweep = _Sweep(fit.theta, estimated_side(fit, initial), k, a, per, points)
    frequency, spread = sweep.along(doubts)
    notes = list(doubts.notes)
    bounds = sweep.bands(frequency, spread, doubts, notes)
    name = plain(fit.mdp.action_labels[a]) if fit.mdp.action_labels else f"action {a}"
    mark = float(fit.theta[k]), sweep.interval(doubts), per * float(sweep.side.at(fit.theta).frequencies[a])
    told = sweep.side.begins, doubts.kind, as_number(level), tuple(notes)
    return DemandCurve(parameter, name, per, points, frequency, *bounds, *mark, *told)


@dataclass(frozen=True, eq=False)
class _Sweep:
    """One parameter k moved along `points`, one action a counted."""

    theta: Floats
    side: Side
    k: int
    a: int
    per: float
    points: Floats

    def along(self, doubts: Doubt) -> tuple[Floats, Floats | None]:
        """(n,) frequencies and, with a covariance, their standard errors: one factorisation per value for both."""
        found, spread = [], []
        for value in self.points:
            with after_change([f"{self.side.setting.names[self.k]} = {float(value):g}"]):
                solved = self.side.at(_with(self.theta, self.k, value))
            found.append(self.per * solved.frequencies[self.a])
            if doubts.cov is not None:
                hypothesis = Setting(self.side.setting.names, {self.k: float(value)})  # it moves with no estimate
                spread.append(self._spread(doubts, replace(self.side, setting=hypothesis), solved))
        return np.array(found), np.array(spread) if spread else None

    def _spread(self, doubts: Doubt, side: Side, solved: Solved) -> float:
        """The standard error at one value."""
        theta = self.theta
        n_psi, own = len(np.asarray(doubts.cov)) - theta.size, np.asarray(doubts.own)[: theta.size]
        sums = Spread(doubts, *self._slope(side.derivatives(solved, theta, n_psi, own)), self.per)
        if doubts.noise is None:
            return float(sums.se)
        overall = side.overall_slopes(solved, doubts.n_psi)
        for group in doubts.groups(1):
            for piece in group.pieces:
                some = overall.some(*piece)
                sums.add(group, piece, self.per * some.frequencies[self.a], some.size)
        return float(sums.se)

    def _slope(self, ways: Derivatives) -> tuple[Floats, Floats]:
        """(M,): of the frequency, and how far each parameter moves values."""
        return self.per * ways.frequencies[self.a], np.abs(ways.q).max(axis=(0, 1))

    def bands(self, frequency: Floats, se: Floats | None, doubts: Doubt, notes: list[str]) -> Band:
        """se, lower and upper (n,)."""
        if se is not None:
            reach = doubts.z * se
            return se, np.maximum(frequency - reach, 0.0), np.minimum(frequency + reach, self.per)
        if doubts.theta is None:
            blank = np.full(self.points.size, np.nan)
            return blank, blank, blank
        table = np.array(over_draws("demand curve", self.curve, doubts, notes))
        low, high = draw_bounds(table, doubts.tails)
        return table.std(axis=0, ddof=1), low, high

    def curve(self, theta: Floats, psi: Floats) -> Floats:
        """(n,): the whole curve at one draw, each point from the one before."""
        side = self.side.moved(psi)
        return self.per * np.array([side.at(_with(theta, self.k, v)).frequencies[self.a] for v in self.points])

    def interval(self, doubts: Doubt) -> tuple[float, float]:
        """The confidence interval of the swept parameter's own estimate."""
        estimate = float(self.theta[self.k])
        if doubts.theta is not None:
            low, high = draw_bounds(doubts.theta[:, self.k], doubts.tails)
            return float(low), float(high)
        reach = float("nan") if doubts.own is None else doubts.z * float(doubts.own[self.k])
        return estimate - reach, estimate + reach


def _with(theta: Floats, k: int, value: float) -> Floats:
    new = theta.copy()
    new[k] = value
    return new


def _as_values(values: Any) -> Floats:
    remedy = "For example: np.linspace(4, 14, 41)."
    return require_vector("values", values, None, "a sequence of finite numbers", remedy=remedy)
