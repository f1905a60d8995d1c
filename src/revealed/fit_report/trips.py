"""The chapters of a report on trips with goals: where they go, how probable they are, and which states they use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats
from revealed.fit_report.chapters import Chapter, spread
from revealed.fit_report.figures import map_figure
from revealed.fit_report.material import Material, amount, decimal, picture, show
from revealed.fit_report.trip_figures import flow_maps, likelihood_figure, use_figure
from revealed.goal_flows import expected_use, observed_use
from revealed.goal_likelihood import trip_names
from revealed.labels import how_many
from revealed.page import Html, facts, paragraph, table
from revealed.positions import labelled
from revealed.sheet import typeset
from revealed.trip_demand import demand_of

if TYPE_CHECKING:
    from revealed.goal_fit import GoalFit

MOST_TRIPS = 10  # of the table of trips that are hardest to explain
MOST_USED = 20  # of the table of states whose use is farthest off


def trips(material: Material) -> Chapter:
    """Numbers, goals, lengths and probabilities of trips, and those that are hardest to explain."""
    fit: Any = material.fit
    llf = np.asarray(fit.log_likelihood_by_trip(), dtype=np.float64)
    decisions = np.bincount(fit.demonstrations.trajectory).astype(np.float64)
    caption = "Log likelihood of each trip: a histogram, and against its number of decisions."
    alt = f"Histogram of {how_many(llf.size, 'log likelihood')}, and a scatter of them against decisions."
    drawn = picture(likelihood_figure(llf, decisions), caption, alt)
    return [facts(_trip_facts(fit, llf, decisions)), drawn, _least_probable(material, llf, decisions)]


def _trip_facts(fit: GoalFit, llf: Floats, decisions: Floats) -> dict[str, str]:
    goal: Any = fit.demonstrations.destinations
    per_goal = np.unique(goal, return_counts=True)[1]
    ended = fit.demonstrations.steps
    assert ended is not None
    arrived = int((ended.next_state == ended.goal).sum())
    found = {
        "Trips": f"{llf.size}",
        "Goals": f"{per_goal.size}",
        "Pairs of origin and goal": f"{len(demand_of(fit.mdp, fit.demonstrations))}",
        "Trips to a goal: least, median, most": spread(per_goal.astype(np.float64)),
        "Decisions of a trip: least, median, most": spread(decisions),
        "Log likelihood of a trip: least, median, most": spread(llf, decimal),
        "Log likelihood per decision": typeset(f"{llf.sum() / decisions.sum():.4f}"),
    }
    return found if arrived == llf.size else found | {"Trips observed to arrive": f"{arrived}"}


def _least_probable(material: Material, llf: Floats, decisions: Floats) -> Html:
    """Of trips of one length the less probable are the odder; per decision, trips of all lengths compare."""
    demos: Any = material.fit.demonstrations
    names = trip_names(demos)
    per = llf / decisions
    worst = np.argsort(per, kind="stable")[:MOST_TRIPS]
    rows = [
        [
            show(names[k]),
            material.state(int(demos.origins[k])),
            material.state(int(demos.destinations[k])),
            amount(decisions[k]),
            decimal(llf[k]),
            decimal(per[k]),
        ]
        for k in map(int, worst)
    ]
    head = ["trip", "from", "to", "decisions", "log likelihood", "per decision"]
    return table(head, rows, f"The {len(rows)} trips that are hardest to explain, of {llf.size}.")


# use


def use(material: Material) -> Chapter:
    """Which states trips use, as observed and as expected of trips between the same places."""
    fit: Any = material.fit
    observed, expected = observed_use(fit.demonstrations), expected_use(fit)[0]
    used = (observed > 0.0) | (expected > 1e-6)
    what = material.what
    words = (
        f"Expected use depends only on each trip's origin and goal. {int(used.sum())} of "
        f"{how_many(used.size, what)} may be used by some trip, {int((observed > 0.0).sum())} were used."
    )
    caption = f"How often trips used each {what} against what is expected; square-root scales."
    alt = f"Scatter of observed against expected use of {how_many(int(used.sum()), what)}, with the diagonal."
    scatter = picture(use_figure(observed[used], expected[used], what), caption, alt)
    return [
        paragraph(words),
        scatter,
        *_maps(material, observed, expected),
        _farthest_off(material, observed, expected),
    ]


def _maps(material: Material, observed: Floats, expected: Floats) -> Chapter:
    """Maps of the network, or of states that have places."""
    caption = "Use as observed, and as expected."
    if material.network is not None and material.network.coordinates is not None:
        drawn = flow_maps(material.network, *(labelled(use, material.fit.mdp) for use in (observed, expected)))
        return [picture(drawn, caption, f"Two maps of {how_many(observed.size, 'link')}; wider lines are used more.")]
    places = material.places
    if places is None:
        return []
    panels = {"observed": (observed[places.index], False), "expected": (expected[places.index], False)}
    return [picture(map_figure(places, panels), caption, f"Two maps of {how_many(places.index.size, 'state')}.")]


def _farthest_off(material: Material, observed: Floats, expected: Floats) -> Html:
    gap = observed - expected
    size = np.abs(gap) / np.sqrt(np.maximum(expected, 1.0))  # a rare state is not far off for being seen once
    worst = np.argsort(-size, kind="stable")[:MOST_USED]
    rows = [
        [material.state(s), amount(observed[s]), decimal(expected[s]), decimal(gap[s])]
        for s in map(int, worst)
        if size[s] > 0.0
    ]
    caption = f"The {material.what}s whose use deviates most, relative to the square root of the expected use."
    return table([material.what, "observed", "expected", "difference"], rows, caption)
