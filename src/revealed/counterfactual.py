"""What would they do if…: behaviour before and after a change, with bands (theory L3).

"Before" is the full solution at the estimate, whatever the method: CCP and NPL estimate θ, and θ has one soft optimum.
Bands come from the covariance of the estimate by exact derivatives (the delta method), or from solving both worlds
again for every draw of a bootstrap. The change has bands of its own: what both sides share cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.band_plots import plot_bands, plot_marks
from revealed.bands import Bounds, Later, blank, bootstrap_bounds, comparable, delta_bounds, difference
from revealed.behaviour import OVERALL, QUANTITIES, Banded, Behaviour, Derivatives, Quantities, Solved
from revealed.checks import Floats, as_number, is_index, require_option
from revealed.doubt import IN_WORDS, Doubt, doubt, require_known
from revealed.errors import InvalidInput
from revealed.inference import MOST_NUMBERS
from revealed.labels import spell
from revealed.mdp import MDP
from revealed.naming import action_index, label_index, state_index
from revealed.plots import MOST_MARKS, own_axes
from revealed.scenario import Side, after_change, discount_notes, find_action, lost_notes, sides
from revealed.sheet import MISSING, Printed, Row, Sheet
from revealed.voices import arg, shown, words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ("before", "after", "change", "se", "lower", "upper")


@dataclass(frozen=True, eq=False, repr=False)
class Counterfactual(Printed):
    """Behaviour `before` and `after` a change, and the `change` from one to the other.

    Each has `policy`, `value`, `q`, `occupancy`, `long_run`, `frequencies` and `welfare`, and `se`, `lower` and `upper`
    of the same form, as in `cf.change.se.welfare` (NaN where `bands` is None). The change is NaN where the two worlds
    do not have the same states and actions. Welfare is in units of the shocks.
    """

    before: Behaviour
    after: Behaviour
    change: Banded
    words: str
    bands: str | None
    level: float
    notes: tuple[str, ...] = field(default=())

    def table(self) -> pd.DataFrame:
        """The share of each action in the long run, and welfare: before, after, and the change with its band."""
        import pandas as pd

        welfare = pd.DataFrame([self._cells("welfare", ())], columns=COLUMNS, index=["welfare"])
        mdp = self.after.mdp  # labels of several columns are one name here, as "welfare" is
        shares = self.frame("frequencies").set_axis(label_index("action", mdp.action_labels, mdp.n_actions))
        table = pd.concat([shares, welfare]).rename_axis(None)
        table.attrs |= {"notes": list(self.notes), "starts": self._starts}
        return table

    def frame(self, quantity: str = "policy", action: Any = None) -> pd.DataFrame:
        """One quantity, a row per state (per action for "frequencies"); policy and q need an `action`.

        Rows are named by the labels of the model after the change; on a horizon by time and state. `.attrs["notes"]`
        has notes on the bands, `.attrs["starts"]` says where agents start.
        """
        import pandas as pd

        require_option("quantity", quantity, [name for name in QUANTITIES if name != "welfare"])
        mdp = self.after.mdp
        by_action = quantity in ("policy", "q")
        if action is not None and not by_action:
            raise InvalidInput.conflict("action", f"has no effect on {quantity!r}", remedy="Leave it out.")
        place: Any = (slice(None), self._action(action, quantity)) if by_action else ...
        index = action_index(mdp) if quantity == "frequencies" else state_index(mdp)
        frame = pd.DataFrame(self._cells(quantity, place), index=index)
        frame.attrs |= {"notes": list(self.notes), "starts": self._starts}
        return frame

    def _action(self, action: Any, quantity: str) -> int:
        if action is None:
            raise InvalidInput.conflict("action", f"is required for {quantity!r}", remedy="Pass a label or an index.")
        return find_action(self.after.mdp, action)

    def _cells(self, quantity: str, place: Any) -> dict[str, Any]:
        """What stands in each column; `before` is NaN where the worlds differ in size."""
        change, after = self.change, np.asarray(getattr(self.after, quantity))[place]
        before = np.asarray(getattr(self.before, quantity))
        same = before.shape == np.shape(getattr(self.after, quantity)) and comparable(self.after, self.before, quantity)
        cells = {"before": before[place] if same else np.full_like(after, np.nan), "after": after}
        cells["change"] = np.asarray(getattr(change, quantity))[place]
        for name, part in (("se", change.se), ("lower", change.lower), ("upper", change.upper)):
            cells[name] = np.asarray(getattr(part, quantity))[place]
        return {name: x.item() if np.ndim(x) == 0 else x for name, x in cells.items()}

    def plot(
        self, action: Any = None, ax: Axes | None = None, title: str | None = None, period: int = 0, **style: Any
    ) -> Figure:
        """The probability of an action (by default the last one) over the states, before and after, with bands.

        States with text labels have no order: they are drawn as marks, with their names if there are at most 40. On an
        unrolled horizon one `period` is shown, by default the first.
        """
        mdp, horizons = self.after.mdp, [side.mdp.horizon for side in (self.before, self.after) if side.mdp.horizon]
        last = min(horizons, default=1) - 1
        if not is_index(period) or not 0 <= period <= last:
            raise InvalidInput("period", f"a whole number in 0…{last}", shown(period))
        a = mdp.n_actions - 1 if action is None else find_action(mdp, action)
        curves = {"before": _curve(self.before, a, period), "after": _curve(self.after, a, period)}
        if len(curves["before"][0]) != len(curves["after"][0]) or not comparable(self.after, self.before, "policy"):
            what, remedy = "models with different states cannot share a plot", 'Use cf.frame("policy", …).'
            raise InvalidInput.impossible(what, None, remedy, "plot")
        told = f"{self.words}, period {period}" if horizons else self.words
        label = spell(mdp.action_labels[a]) if mdp.action_labels else f"action {a}"
        style = {"label": f"probability of {label}", "title": told if title is None else title} | style
        return _draw_curves(ax, curves, (mdp.base or mdp).state_labels, style)

    def _sheet(self) -> Sheet:
        table = self.table()
        head = ("", *map(str, table.columns))
        visits = "per episode" if self.after.ends else "in the long run"
        notes = [f"Shares of actions {visits}; welfare in units of the shocks.", self._starts]
        if self.bands is not None and bool(table["se"].notna().any()):
            notes.insert(0, f"Bands of the change at {100 * self.level:g} %, {IN_WORDS[self.bands]}.")
        notes += ["Note: " + note for note in self.notes]
        title = f"Counterfactual: {self.words}"
        return Sheet(title, head, (readable(table),), notes=tuple(notes), title=title)

    @property
    def _starts(self) -> str:
        """Welfare and visits depend on where agents begin, so that it must be said."""
        one, other = self.before.begins, self.after.begins
        return f"Starts: {one}." if one == other else f"Starts before: {one}; after: {other}."


def readable(frame: pd.DataFrame, label: str = "{}") -> tuple[Row, ...]:
    """A line per row: its name, put into the label, and five digits that count; a dash where nothing is known."""
    names = [label.format(spell(name)) for name in frame.index]
    cells = ([MISSING if np.isnan(value) else f"{value:.5g}" for value in row] for row in frame.to_numpy())
    return tuple((name, *row) for name, row in zip(names, cells, strict=True))


Curve = tuple[Floats, Floats | None, Floats | None]


def _curve(side: Behaviour, a: int, period: int) -> Curve:
    """A probability over the states of a period and its band; nobody acts in a terminal state."""
    states = _states_at(side.mdp, period)
    acts = [np.where(side.mdp.terminal, np.nan, p.policy[:, a])[states] for p in (side, side.lower, side.upper)]
    return (acts[0], None, None) if np.isnan(acts[1]).all() else (acts[0], acts[1], acts[2])


def _states_at(mdp: MDP, period: int) -> slice:
    """The states of one period of a horizon; all of a model without one."""
    if mdp.base is None:
        return slice(0, mdp.n_states)
    return slice(period * mdp.base.n_states, (period + 1) * mdp.base.n_states)


def _draw_curves(ax: Axes | None, curves: dict[str, Curve], labels: Any, style: dict[str, Any]) -> Figure:
    """Lines where states are numbers, marks where they are names."""
    n = len(curves["after"][0])
    x = np.arange(float(n)) if labels is None else np.array([as_number(label) for label in labels])
    if np.isfinite(x).all():
        figure, axes = own_axes(ax)
        order = np.argsort(x)
        along = {name: tuple(None if y is None else y[order] for y in curve) for name, curve in curves.items()}
        plot_bands(axes, x[order], along, **style)  # pyright: ignore[reportArgumentType]
        return figure
    named = n <= MOST_MARKS
    figure, axes = own_axes(ax, (max(5.4, 2.0 + 0.2 * n), 4.0) if named else (7.0, 3.4))
    plot_marks(axes, curves, labels if named else None, **style)
    return figure


def counterfactual(
    fit: Any,
    params: Any = None,
    mdp: Any = None,
    reward: Any = None,
    bands: str | None = "auto",
    level: float = 0.95,
    initial: Any = None,
    **bootstrap: Any,
) -> Counterfactual:
    """What agents with the estimated preferences would do if something changed.

    Parameters
    ----------
    params : name → number (set by hypothesis: it carries no uncertainty) or name → function of the estimate
        (`{"RC": lambda rc: 1.2 * rc}`, whose uncertainty follows by the derivative), or all K numbers.
    mdp : another model, such as `fit.mdp.replace(discount=0.9)`, with other transitions, or with other masks. Where
        both models have labels, states and actions are matched by label, and the answer is in the order of the fit.
    reward : another reward model with the same parameters, or an (S, A) or (S, 1) table of rewards: an array in the
        order of the model, or a DataFrame with labels.
    bands : "delta" (the covariance of the fit's own errors, `fit.errors`), "bootstrap", None, or "auto": "bootstrap"
        after `fit.with_errors("bootstrap")`, else "delta", and none where the fit has no covariance.
    level : of the bands.
    initial : where agents start; by default the model's start distribution, else the starts in the data, else uniform.
    bootstrap : options of `fit.bootstrap` (reps, seed, jobs, progress).

    Where the transitions were estimated, a bootstrap re-estimates them in every draw, and "delta" accounts for their
    sampling error with joint errors (`fit.with_errors(kind, joint=True)`); else a note says that bands take them as
    known. A model given as `mdp` follows if its transitions are the estimated ones (`fit.mdp.replace(discount=...)`),
    and otherwise does not change from draw to draw. Welfare p₀·V* is in units of the shocks (scale 1) and for centred
    shocks.
    """
    own = ("params", "mdp", "reward", "bands", "level", "initial")
    require_known("counterfactual", bootstrap, own, fit.reward_model.names)
    before, after, words = sides(fit, params, mdp, reward, initial)
    now = before.at(fit.theta)
    with after_change(words):
        then = after.at(fit.theta)
    doubts = doubt(fit, bands, level, bootstrap)
    notes = [*discount_notes(before.mdp, after.mdp), *lost_notes(before.mdp, after.mdp), *doubts.notes]
    found = _bands(doubts, (before, after), (now, then), fit.theta, notes)
    moved: dict[str, Any] = difference(then, now, QUANTITIES) | found[2]
    if any(np.isnan(s.long_run).any() for s in (now, then)):
        notes.append(_NO_LONG_RUN)
    both = now.behaviour(found[0], before.begins), then.behaviour(found[1], after.begins)
    return Counterfactual(*both, Banded(**moved), ", ".join(words), doubts.kind, level, tuple(notes))


_NO_LONG_RUN = "the long run cannot be computed: some states are left less than once in 1e12 decisions."


def behaviour_under(under: Any) -> Behaviour:
    """The behaviour to draw from: that after a counterfactual, or one of its two sides."""
    found = under.after if isinstance(under, Counterfactual) else under
    if not isinstance(found, Behaviour):
        remedy = "For example: fit.simulate(100, 20, under=fit.counterfactual(...)), or its `.before` or `.after`."
        raise InvalidInput("under", "a counterfactual or a behaviour", type(under).__name__, remedy=remedy)
    return found


Bands = dict[str, Quantities]  # se, lower and upper
Pair = tuple[Solved, Solved]
LIMITS = {
    "policy": (0.0, 1.0),
    "frequencies": (0.0, 1.0),
    "occupancy": (0.0, np.inf),
    "long_run": (0.0, np.inf),
}


def _bands(doubts: Doubt, both: tuple[Side, Side], at: Pair, theta: Floats, notes: list[str]) -> list[Bands]:
    """se, lower and upper of before, after and the change."""
    if doubts.kind == "delta":
        found = _delta_bands(doubts, both, at, theta, notes)
    elif doubts.kind == "bootstrap":
        found = _bootstrap_bands(doubts, both, at, notes)
    else:
        found = [blank(solved, QUANTITIES) for solved in (*at, at[1])]
    return [{part: _quantities(values) for part, values in bounds.items()} for bounds in found]


def _delta_bands(doubts: Doubt, both: tuple[Side, Side], at: Pair, theta: Floats, notes: list[str]) -> list[Bounds]:
    """By exact derivatives; where there are very many ψ those of shares and welfare come by themselves, and those of
    single states only if they are not too much work."""
    n_psi, own = len(np.asarray(doubts.cov)) - theta.size, np.asarray(doubts.own)[: theta.size]
    before, after = (side.derivatives(solved, theta, n_psi, own) for side, solved in zip(both, at, strict=True))
    bounds = partial(delta_bounds, doubts, at, (before, after), _size(before, after))
    if doubts.noise is None:
        return bounds(QUANTITIES, LIMITS)
    found = bounds(OVERALL, _within(OVERALL), _overall_slopes(doubts, both, at))
    n_pairs, single = max(solved.q.size for solved in at), [name for name in QUANTITIES if name not in OVERALL]
    if n_pairs * doubts.n_psi > MOST_WORK or n_pairs * doubts.most_at_once(n_pairs) > MOST_NUMBERS // 6:
        notes.append(_TOO_MANY.format(L=doubts.n_psi))
        others = [blank(solved, single) for solved in (*at, at[1])]
    else:
        others = bounds(single, _within(single), _state_slopes(both, at), n_pairs)
    return [
        {part: dict(one[part]) | dict(other[part]) for part in one} for one, other in zip(found, others, strict=True)
    ]


MOST_WORK = 5_000_000  # numbers of a derivative in very many ψ, each of which takes a solve
_TOO_MANY = words(
    "bands of shares and welfare only: there are too many transition parameters ({L}) for bands in every state; "
    f"{arg('bands', 'bootstrap')} provides them."
)


def _overall_slopes(doubts: Doubt, both: tuple[Side, Side], at: Pair) -> Later:
    before, after = (side.overall_slopes(solved, doubts.n_psi) for side, solved in zip(both, at, strict=True))
    size = np.maximum(before.size, after.size)
    return lambda begin, end: ((before.some(begin, end), after.some(begin, end)), size[begin:end])


def _state_slopes(both: tuple[Side, Side], at: Pair) -> Later:
    def later(begin: int, end: int) -> tuple[tuple[Derivatives, Derivatives], Floats]:
        before, after = (side.psi_derivatives(solved, begin, end) for side, solved in zip(both, at, strict=True))
        return (before, after), _size(before, after)

    return later


def _size(before: Derivatives, after: Derivatives) -> Floats:
    """(M,): how far each parameter moves values."""
    return np.maximum(*(np.abs(ways.q).max(axis=(0, 1)) for ways in (before, after)))


def _within(names: Sequence[str]) -> dict[str, tuple[float, float]]:
    return {name: LIMITS[name] for name in names if name in LIMITS}


def _quantities(found: dict[str, Floats]) -> Quantities:
    plain: dict[str, Any] = {name: x.item() if np.ndim(x) == 0 else x for name, x in found.items()}
    return Quantities(**plain)


def _bootstrap_bands(doubts: Doubt, both: tuple[Side, Side], at: Pair, notes: list[str]) -> list[Bounds]:
    """Percentiles over the draws; quantities per state only where all draws of them can be kept."""
    kept = QUANTITIES if len(np.asarray(doubts.theta)) * max(s.q.size for s in at) <= MOST_NUMBERS else OVERALL
    if len(kept) < len(QUANTITIES):
        notes.append("bands of shares and welfare only: there are too many states to keep every draw.")
    return bootstrap_bounds(doubts, both, at, kept, QUANTITIES, notes)
