"""What a fit's report shows, chapter by chapter: estimates, choices, states, the search, diagnostics.

A chapter is a list of elements of a page. Of a large model the most telling rows are shown, and what is left out is
said; labels of the data are escaped by `page.py` on their way in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from revealed.checks import Floats, Ints
from revealed.errors import RevealedError
from revealed.estimates import Estimates, read_estimates
from revealed.fit_report.figures import (
    MOST_BY_ACTION,
    choice_figure,
    coefficient_figure,
    convergence_figure,
    map_figure,
    states_figure,
)
from revealed.fit_report.material import Material, amount, decimal, picture, sentence, show, z_text
from revealed.fit_report.places import Places, along_a_column
from revealed.goodness import ChiSquare, ChoiceFit
from revealed.labels import how_many
from revealed.page import Html, facts, foldable, note, paragraph, table, tag
from revealed.sheet import number_column, typeset
from revealed.summary import MOST_NAMED, MOST_ROWS, status_notes

if TYPE_CHECKING:
    from revealed.fit import AnyFit

MOST_COEFFICIENTS = 40  # of the plot, and of the table beside it
MOST_ERRORS = 200  # parameters whose standard errors are worth the wait
MOST_PAIRS = 20  # of the table of misfits
MOST_ACTIONS = 20  # of the table of totals
MOST_POINTS = 5000  # of the scatter
MOST_COLORS = 8
MOST_BARS = 60
BEYOND, BY_CHANCE = 2.0, 0.0455  # |z| of a standard normal exceeds the one with the probability of the other
JUDGED = 5.0  # variance of a count from which its z may be read as a normal one
VISIT_CLASSES = (0, 1, 2, 5, 10, 100, 1000, 10_000, 100_000, 1_000_000)

Chapter = list[Html]


# estimates


def estimates(material: Material) -> Chapter:
    """The table of the summary and a plot of it; of many parameters the most telling."""
    fit, sheet = material.fit, material.sheet
    said = set(status_notes(fit))  # in the head and among the diagnostics
    notes = tuple(text for text in sheet.notes if text not in said)
    shown = Html(replace(sheet, left=(), right=(), notes=notes).html())
    if not material.linear and fit.theta.size > MOST_ROWS:
        few = f"The {fit.theta.size} weights of this reward have no meaning one by one, and are not drawn."
        return [shown, paragraph(few)]
    found = read_estimates(fit) if fit.theta.size <= MOST_ERRORS else _without_errors(fit)
    index, words = most_telling(found)
    unsaid = [note(found.reason)] if found.reason and found.reason not in notes else []
    listed = [_coefficient_table(found, index)] if fit.theta.size > MOST_ROWS else []
    return [shown, *unsaid, _coefficient_plot(found, index, words), *listed]


def _without_errors(fit: AnyFit) -> Estimates:
    none = np.full(fit.theta.size, np.nan)
    why = f"Standard errors of {fit.theta.size} parameters are not computed for a report; `fit.bse` has them."
    return Estimates(tuple(map(str, fit.reward_model.names)), fit.theta, none, none, none, none, none, why)


def most_telling(found: Estimates) -> tuple[Ints, str]:
    """All in their order, or of many those with the largest |z|, else the largest ones; and what is left out."""
    K = found.coef.size
    if K <= MOST_COEFFICIENTS:
        return np.arange(K, dtype=np.intp), ""
    known = bool(np.isfinite(found.z).any())
    size = np.nan_to_num(np.abs(found.z), nan=-1.0) if known else np.abs(found.coef)
    index = np.argsort(-size, kind="stable")[:MOST_COEFFICIENTS].astype(np.intp)
    which = "with the largest |z|" if known else "largest by size"
    return index, f"The {MOST_COEFFICIENTS} {which} of {K} are shown; `fit.params` has all."


def _coefficient_plot(found: Estimates, index: Ints, words: str) -> Html:
    names = [found.names[k] for k in index]
    drawn, scaled = coefficient_figure(names, found.coef[index], found.lower[index], found.upper[index])
    known = int(np.isfinite(found.lower[index]).sum())
    bars = "Bars are 95 % intervals." if known else "Points only, since there are no standard errors."
    some = f" {len(names) - known} have none." if 0 < known < len(names) else ""
    own = " Each row has its own scale, because the magnitudes differ too much for a common scale." if scaled else ""
    caption = f"Estimates. {bars}{some}{own} {words}".replace("`", "").strip()
    return picture(drawn, caption, f"{len(names)} estimates as points, {known} of them with intervals.")


def _coefficient_table(found: Estimates, index: Ints) -> Html:
    names = [show(found.names[k]) for k in index]
    columns = {"coef": found.coef, "std err": found.bse, "lower": found.lower, "upper": found.upper}
    columns = columns if np.isfinite(found.bse).any() else {"coef": found.coef}
    texts = [[typeset(text) for text in number_column(column[index])] for column in columns.values()]
    rows = [[name, *cells] for name, *cells in zip(names, *texts)]
    return foldable(f"The same as a table ({len(rows)} rows)", table(["parameter", *columns], rows, "Estimates."))


# choices


def choices(material: Material) -> Chapter:
    """Observed and predicted: a picture of all, totals, the worst, and whether chance can explain it."""
    totals = [] if material.by_target else [_totals(material)]
    return [_scatter(material), *totals, _misfits(material), *_goodness(material)]


def _scatter(material: Material) -> Html:
    seen = material.choices
    state, action, words = _points(seen)
    few = seen.counts.shape[1] <= MOST_COLORS and not material.by_target
    names = {int(a): material.action_labels[int(a)] for a in np.unique(action)} if few else {}
    at = (state, action)
    drawn = choice_figure(seen.policy[at], seen.frequencies[at], seen.visits[state], action, names)
    if seen.mirrored:
        words = f"With two actions one mirrors the other, so only “{material.action(int(action[0]))}” is drawn. {words}"
    caption = (
        "How often an action was taken in a state against its predicted probability: a point per state and action, "
        f"its area proportional to the visits (a dot where they are few). {words or _pooled(seen)}"
    )
    alt = f"Scatter of {state.size} observed frequencies against predicted probabilities, with the diagonal."
    return picture(drawn, caption.strip(), alt)


def _pooled(seen: ChoiceFit) -> str:
    return (
        ""
        if seen.tested is seen
        else "Probabilities are means over the trips that passed, each on the way to its goal."
    )


def _points(seen: ChoiceFit) -> tuple[Ints, Ints, str]:
    """The pairs to draw, the most visited states first and so at the back, and what is left out."""
    drawn = seen.feasible & (seen.visits > 0.0)[:, None]
    if seen.mirrored:
        drawn[:, int(np.argmax(seen.counts.sum(axis=0)))] = False
    state, action = np.nonzero(drawn)
    order = np.argsort(-seen.visits[state], kind="stable")[:MOST_POINTS]
    left_out = state.size - order.size
    words = f"The {MOST_POINTS} of the most visited states are drawn; {left_out} are left out." if left_out else ""
    return state[order].astype(np.intp), action[order].astype(np.intp), words


def _totals(material: Material) -> Html:
    observed, expected, z = material.choices.totals
    shown = np.sort(np.argsort(-np.maximum(observed, expected), kind="stable")[:MOST_ACTIONS])
    few = f" The {MOST_ACTIONS} most frequent of {observed.size} are listed." if shown.size < observed.size else ""
    rows = [
        [material.action(a), amount(o), decimal(e), decimal(o - e), z_text(float(z[a]))]
        for a in map(int, shown)
        for o, e in [(float(observed[a]), float(expected[a]))]
    ]
    caption = f"Decisions by action: as observed, and as expected in the states that were visited.{few}"
    return table(["action", "observed", "expected", "difference", "z"], rows, caption)


def _misfits(material: Material) -> Html:
    seen, worst = material.choices, material.choices.worst(MOST_PAIRS)
    columns: dict[str, Callable[[int, int], str]] = {
        material.what if material.fit.mdp.base is None else "(period, state)": lambda s, a: material.state(s),
        "choice" if material.by_target else "action": material.choice,
        "visits": lambda s, a: amount(seen.visits[s]),
        "observed": lambda s, a: amount(seen.counts[s, a]),
        "expected": lambda s, a: decimal(seen.expected[s, a]),
        "frequency": lambda s, a: f"{seen.frequencies[s, a]:.4f}",
        "predicted": lambda s, a: f"{seen.policy[s, a]:.4f}",
        "z": lambda s, a: z_text(seen.residuals[s, a]),
    }
    rows = [[write(int(s), int(a)) for write in columns.values()] for s, a in worst]
    compared = int(seen.compared.sum())
    few = f": {len(worst)} of {compared} pairs of a state and an action" if compared > len(worst) else ""
    return table(list(columns), rows, f"The largest deviations, by |z|{few}.")


def _goodness(material: Material) -> Chapter:
    seen, fit = material.choices, material.fit
    judged = seen.compared & np.isfinite(seen.residuals) & (seen.variance >= JUDGED)
    n, far = int(judged.sum()), int((np.abs(seen.residuals[judged]) > BEYOND).sum())
    words = "z is the difference of observed and expected in units of its standard deviation, √(n π (1 − π))"
    words += ". " if seen.tested is seen else "; variances are summed over the goals. "
    words += (
        f"Of {how_many(n, 'pair')} with enough visits to judge, {far} {'lies' if far == 1 else 'lie'} beyond "
        f"±{BEYOND:g}; by chance alone about {BY_CHANCE * n:.1f} would."
        if n
        else "No pair has enough visits to be judged on its own."
    )
    found = fit.goodness
    scale = {
        "Log likelihood of uniform choice": typeset(f"{fit.llnull:.3f}"),
        "Log likelihood of this fit": typeset(f"{fit.llf:.3f}"),
        "Highest of any policy on these data": typeset(f"{fit.llsat:.3f}"),
        "Pseudo-R² (McFadden), adjusted": f"{fit.prsquared:.4f}, {fit.prsquared_adj:.4f}",
        "Hit rate, of decisions with a choice": f"{fit.hit_rate:.4f}",
    }
    once = "" if seen.tested is seen else " (counted once per goal)"
    told = _in_words(found, once) if isinstance(found, ChiSquare) else found
    return [paragraph(words), paragraph(told), facts(scale)]


def _in_words(found: ChiSquare, once: str) -> str:
    where = f"{how_many(found.states, 'visited state')} with a choice{once}"
    where += f", pooled into {how_many(found.groups, 'group')} by what is predicted" if found.pooled else ""
    return f"Goodness of fit: {found}, over {where}. A small p means that the model does not fit these data."


# states


def states(material: Material) -> Chapter:
    """Maps where states have places, else bars."""
    return [_bars(material) if material.places is None else _maps(material, material.places)]


def _maps(material: Material, places: Places) -> Html:
    (reward, name), at = material.mean_reward, places.index
    visits = material.choices.visits
    seen = np.where(visits > 0.0, visits, np.nan)[at]
    log = bool(np.isfinite(seen).any() and np.nanmax(seen) > 10.0 * np.nanmin(seen))
    panels = {name: (reward[at], False), "value": (material.value[at], False), "visits observed": (seen, log)}
    missing = material.fit.mdp.n_states - at.size if material.fit.mdp.base is None else 0
    words = f" {how_many(missing, 'state')} without coordinates not shown." if missing else ""
    when = f" {places.words}" if places.words else ""
    caption = (
        f"Reward, value and visits{when} on the map of the states; light blue where there is none.{words} In states "
        "that were never visited, reward and value are extrapolated by the model."
    )
    return picture(map_figure(places, panels), caption, f"Maps of reward, value and visits of {at.size} states.")


def _bars(material: Material) -> Html:
    fit, (mean, name) = material.fit, material.mean_reward
    shown, words = _most_visited(material)
    by_action = material.depends_on_action and fit.mdp.n_actions <= MOST_BY_ACTION
    rewards = _by_action(material, shown) if by_action else {name: mean[shown]}
    along = along_a_column(fit)
    along = None if along is None else (along[0], along[1][shown])
    drawn = states_figure([material.state_labels[int(s)] for s in shown], rewards, material.value[shown], along)
    caption = f"Reward{' by action' if by_action else ''} and value by state. {words}"
    return picture(drawn, caption.strip(), f"Reward and value of {how_many(shown.size, 'state')}.")


def _by_action(material: Material, shown: Ints) -> dict[str, Floats]:
    """The reward of each action that some of the states offer."""
    mdp = material.fit.mdp
    table_of = np.where(mdp.feasible, material.fit.reward, np.nan)[shown]
    offered = np.flatnonzero(mdp.feasible[shown].any(axis=0))
    return {f"reward: {material.action(int(a))}": table_of[:, a] for a in offered}


def _most_visited(material: Material) -> tuple[Ints, str]:
    """States in which somebody decides, in the order of the model, and what is left out."""
    acting = np.flatnonzero(~material.fit.mdp.terminal)
    order = acting[np.argsort(-material.choices.visits[acting], kind="stable")]
    shown = np.sort(order[:MOST_BARS]).astype(np.intp)
    left_out = order.size - shown.size
    return shown, f"The {shown.size} most visited are drawn; {left_out} are left out." if left_out else ""


# the search


def search(material: Material) -> Chapter:
    """Objective and gradient by iteration."""
    fit = material.fit
    rows = fit.rows
    ended = f"{how_many(fit.iterations, 'iteration')} in {fit.seconds:.3g} s; the gradient of the last "
    ended += f"maximisation has norm {fit.gradient_norm:.1e}."
    if fit.settled is not None:
        ended += f" {how_many(fit.updates, 'update')} of π̃, which {'settled' if fit.settled else 'did not settle'}."
    if not rows:
        return [paragraph(ended)]
    objective, gradient = (
        np.array([float(row.get(name, np.nan)) for row in rows]) for name in ("objective", "gradient_norm")
    )
    marks = np.flatnonzero(np.diff([int(row.get("update", 1)) for row in rows])).astype(np.intp) + 1
    drawn = convergence_figure(objective, gradient, fit.options.get("tol"), marks)
    dotted = " Dotted lines mark updates of π̃, after which the objective is a different one." if marks.size else ""
    caption = f"Objective and norm of its gradient by iteration.{dotted}"
    return [paragraph(ended), picture(drawn, caption, f"Two curves over {how_many(len(rows), 'iteration')}.")]


# diagnostics


def diagnostics(material: Material) -> Chapter:
    """What to know before the estimates are believed."""
    fit = material.fit
    found = [] if fit.converged else [fit.status.message]
    found += [*fit.status.notes, *fit.demonstrations.notes]
    for source in (fit.demonstrations.bins, fit.mdp.estimated):
        found += getattr(source, "notes", ())
    found += [getattr(fit.reward_model, "left_out", "")]
    notes = [note(sentence(text)) for text in dict.fromkeys(found) if text]
    return [*notes, paragraph(_identification(material)), tag("h3", "Coverage"), *_coverage(material)]


def _identification(material: Material) -> str:
    fit = material.fit
    if not material.linear or fit.theta.size > MOST_NAMED:
        return "Identification was not checked: the reward has many parameters, or is not linear in them."
    try:
        found = fit.identification
    except RevealedError as error:
        return f"Identification is not known: {error}"
    index = f", with condition index {found.condition:.3g}" if np.isfinite(found.condition) else ""
    told = f"Choices identify {found.rank} of {how_many(found.n_params, 'parameter')}{index}."
    return told + (f" {sentence(found.words)}" if found.words else "")


def _coverage(material: Material) -> Chapter:
    offered, acting = material.fit.mdp.feasible, ~material.fit.mdp.terminal
    visits = material.choices.visits[acting]
    n, seen = visits.size, int((visits > 0.0).sum())
    chosen = int((material.choices.counts[offered] > 0.0).sum())
    found = {
        "States visited, of those with a decision": f"{seen} of {n}",
        "Pairs of state and action seen, of those offered": f"{chosen} of {int(offered.sum())}",
        "Visits of a visited state: least, median, most": spread(visits[visits > 0.0]),
    }
    unseen = f"{how_many(n - seen, 'state')} {'was' if n - seen == 1 else 'were'} never visited: results for them "
    words = [paragraph(unseen + "come from the model and the other states only.")] if seen < n else []
    return [facts(found), *words, _visit_table(visits)]


def spread(values: Floats, form: Callable[[float], str] = amount) -> str:
    """Least, median and most."""
    return ", ".join(form(float(v)) for v in np.quantile(values, (0.0, 0.5, 1.0))) if values.size else "none"


def _visit_table(visits: Floats) -> Html:
    """How many states were visited how often, and their share of the decisions."""
    edges = [*VISIT_CLASSES, np.inf]
    rows = []
    for low, high in pairwise(edges):
        mine = (visits >= low) & (visits < high) if low else visits <= 0.0
        mine = mine | ((visits > 0.0) & (visits < 1.0)) if low == 1 else mine  # decisions with weights below one
        if mine.any():
            share = f"{100.0 * visits[mine].sum() / visits.sum():.1f} %"
            rows.append([_class_name(low, high), f"{int(mine.sum())}", share])
    return table(["visits", "states", "share of the decisions"], rows, "States by how often they were visited.")


def _class_name(low: float, high: float) -> str:
    if not np.isfinite(high):
        return f"{low:.0f} or more"
    return f"{low:.0f}" if high <= low + 1 else f"{low:.0f} to {high - 1:.0f}"
