"""The whole page: headline, chapters, how to go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from revealed.errors import InvalidInput
from revealed.files import as_path, prepare_folder, regular, write_atomically
from revealed.fit import AnyFit, Fit
from revealed.fit_report.chapters import Chapter, choices, diagnostics, estimates, search, states
from revealed.fit_report.material import Material, sentence
from revealed.fit_report.places import find_places
from revealed.fit_report.trips import trips, use
from revealed.gates import require_list, require_text
from revealed.goal_fit import GoalFit
from revealed.labels import how_many, spell
from revealed.page import Html, contents, document, facts, join, note, paragraph, section, tag
from revealed.positions import reordering
from revealed.routes.network import RoadNetwork
from revealed.sheet import clean, typeset
from revealed.summary import MOST_NAMED, poor_fit_words
from revealed.voices import shown

CHAPTERS: dict[str, tuple[str, Callable[[Material], Chapter]]] = {
    "estimates": ("Estimates", estimates),
    "choices": ("Choices, observed and predicted", choices),
    "states": ("Reward and value", states),
    "search": ("The search", search),
    "diagnostics": ("Diagnostics", diagnostics),
}
WITH_GOALS = {
    "estimates": CHAPTERS["estimates"],
    "trips": ("Trips", trips),
    "use": ("Use, observed and expected", use),
    **{anchor: CHAPTERS[anchor] for anchor in ("choices", "search", "diagnostics")},
}
ENDINGS = {
    "converged": ("holds", "✓", "Converged"),
    "unidentified": ("open", "?", "Not every parameter is identified"),
    "iteration_limit": ("fails", "✗", "Stopped early"),
    "separated": ("fails", "✗", "No finite estimate"),
    "inner_solve_failed": ("fails", "✗", "The model could not be solved"),
    "cycling": ("fails", "✗", "Did not settle"),
}
FIRST = ("Method", "Reward", "Trips", "Decisions", "Travellers", "Agents", "States", "Actions", "Discount")
HIDDEN = ("Observations", "States, actions", "Status")  # told under another name


def write_fit_report(
    fit: AnyFit,
    path: str | os.PathLike[str],
    title: str | None = None,
    coordinates: Any = None,
    sections: Sequence[tuple[str, str]] = (),
    network: RoadNetwork | None = None,
) -> Path:
    """Write `build_fit_report` to a file, completely or not at all; in a folder it is called `report.html`."""
    target = as_path("path", path)
    target = target / "report.html" if os.path.isdir(target) else target
    regular(target, "path")  # or refused, before the work
    page = build_fit_report(fit, title, coordinates, sections, network)
    prepare_folder(target.parent, "path")
    return write_atomically(target, page.encode("utf-8", "replace"), "path")


def build_fit_report(
    fit: AnyFit,
    title: str | None = None,
    coordinates: Any = None,
    sections: Sequence[tuple[str, str]] = (),
    network: RoadNetwork | None = None,
) -> str:
    """The report of a fit as an HTML page.

    `coordinates` (S, 2) place the states on maps of reward, value and visits (a row of NaN for a state without a
    place); without them bins of two columns do, or labels that are pairs of numbers. `sections` are (title, text)
    pairs to add: plain text becomes a paragraph, and the output of a result's `to_html()` is inserted as it is. For
    trips with goals, `network` is their road network, whose map then shows how its links are used.
    """
    if not isinstance(fit, Fit | GoalFit):
        raise InvalidInput("fit", "a fit", type(fit).__name__)
    material = Material(fit, find_places(fit, coordinates), _as_network(fit, network))
    pairs = require_list("sections", sections, "(title, text) pairs")
    if title is not None:
        require_text("title", title, "None or a string")
    added = {f"extra-{k}": _extra(k, given) for k, given in enumerate(pairs)}
    chapters = WITH_GOALS if isinstance(fit, GoalFit) else CHAPTERS
    made = {anchor: (name, _or_note(make, material)) for anchor, (name, make) in chapters.items()}
    made |= {**added, "further": ("Next steps", _further(fit))}
    heading = _heading(fit) if title is None else clean(title)
    header = join([tag("h1", heading), *_headline(material)], "\n")
    nav = contents({anchor: name for anchor, (name, _) in made.items()})
    main = join((section(name, *inside, id=anchor) for anchor, (name, inside) in made.items()), "\n")
    return document(heading, header, nav, main)


def _heading(fit: AnyFit) -> str:
    of = how_many(fit.n_trips, "trip") if isinstance(fit, GoalFit) else how_many(fit.n_decisions, "decision")
    return f"{fit.method} fit of {of}"


def _as_network(fit: AnyFit, network: Any) -> RoadNetwork | None:
    if network is None:
        return None
    if not isinstance(fit, GoalFit):
        raise InvalidInput.conflict("network", "requires a fit of trips with goals")
    own = fit.mdp.state_labels
    if not isinstance(network, RoadNetwork) or (
        network.links != own and reordering(network.links, own) is None  # of the same links in another order: by label
    ):
        got = shown(network) if isinstance(network, RoadNetwork) else type(network).__name__
        raise InvalidInput("network", "the rv.RoadNetwork that the trips were on", got)
    return network


def _extra(k: int, given: Any) -> tuple[str, Chapter]:
    pair = tuple(given) if isinstance(given, tuple | list) else ()
    if len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        raise InvalidInput("sections", "(title, text) pairs", shown(given), f"section {k}")
    name, inside = pair
    return clean(name), [inside if isinstance(inside, Html) else paragraph(inside)]


def _or_note(make: Callable[[Material], Chapter], material: Material) -> Chapter:
    try:
        return make(material)
    except Exception as error:
        return [note(f"This chapter could not be created: {type(error).__name__}: {clean(error)}")]


# the head


def _headline(material: Material) -> Chapter:
    """How the fit ended, what to do about it, and the facts."""
    status = material.fit.status
    kind, mark, words = ENDINGS.get(status.code, ("open", "?", status.code))
    words = "Interrupted" if status.interrupted else words
    poor = poor_fit_words(material.fit)
    if kind == "holds" and poor:  # it converged, but nobody should read that as praise of the model
        kind, words = "mind", f"{words} · the model fits poorly"
    badge = tag("span", tag("span", mark, aria_hidden="true"), f" {words}", class_=f"badge {kind}")
    told = [paragraph(sentence(text), "lead") for text in (status.message, poor) if text]
    return [tag("p", badge), *told, facts(_facts(material))]


def _facts(material: Material) -> dict[str, str]:
    """Those of the summary, and the sizes one by one."""
    fit, sheet = material.fit, material.sheet
    found = {name: typeset(text) for name, text in (*sheet.left, *sheet.right)}
    found |= {"Decisions": str(fit.n_decisions), "States": _states_fact(fit), "Actions": str(fit.mdp.n_actions)}
    rest = [name for name in found if name not in (*FIRST, *HIDDEN)]
    return {name: found[name] for name in (*FIRST, *rest) if name in found}


def _states_fact(fit: AnyFit) -> str:
    mdp = fit.mdp
    if mdp.base is not None:
        return f"{mdp.base.n_states} in each of {how_many(int(mdp.horizon or 0), 'period')}"
    ends = int(mdp.terminal.sum())
    return f"{mdp.n_states}" + (f", {ends} of them terminal" if ends else "")


# what to do next


def _further(fit: AnyFit) -> Chapter:
    return [
        paragraph("In Python, with `FIT` for the file or folder that the fit was saved to:"),
        _code(python_lines(fit)),
        paragraph("At the command line:"),
        _code(shell_lines(fit)),
    ]


def _code(text: str) -> Html:
    return tag("pre", tag("code", text), tabindex=0)


def python_lines(fit: AnyFit) -> str:
    """How to take the fit up again."""
    name = _example(fit)
    if isinstance(fit, GoalFit):
        return _trip_lines(fit, name)
    change = f"params={{{name!r}: lambda value: 1.1 * value}}" if name else "mdp=fit.mdp.replace(discount=0.9)"
    lines = [
        "import revealed as rv",
        "",
        'fit = rv.load("FIT")',
        "print(fit.summary())",
        'policy = fit.table("policy")              # a row per state, a column per action',
        "others = fit.simulate(100, 50, seed=0)    # 100 trajectories of at most 50 decisions",
        f"changed = fit.counterfactual({change})",
        "print(changed)",
    ]
    return "\n".join(lines)


def _trip_lines(fit: GoalFit, name: str) -> str:
    lines = [
        "import revealed as rv",
        "",
        'fit = rv.load("FIT")',
        "print(fit.summary())",
        f"policy = fit.policy_for({_goal(fit)!r})",
        "flows = fit.flows()                       # a row per state: observed, expected",
        "others = fit.simulate(100, seed=0)        # 100 trips between places that were observed",
    ]
    if name:
        lines += [f"changed = fit.counterfactual(params={{{name!r}: lambda value: 1.1 * value}})", "print(changed)"]
    return "\n".join(lines)


def _goal(fit: GoalFit) -> Any:
    """The goal that the examples ask about: the one with the shortest name."""
    return min(fit.goals, key=lambda goal: len(spell(goal)))


def shell_lines(fit: AnyFit) -> str:
    from shlex import quote

    name = _example(fit)
    change = f"--set {quote(f'{name}*1.1')}" if name.isidentifier() else "--discount 0.9"
    if isinstance(fit, GoalFit):
        change = change if name.isidentifier() else "--help"
        lines = [
            f"revealed predict FIT --goal {quote(spell(_goal(fit)))}",
            "revealed simulate FIT --n 100 --seed 0 --out simulated.csv",
            f"revealed counterfactual FIT {change}",
        ]
        return "\n".join(lines)
    lines = [
        "revealed predict FIT",
        "revealed simulate FIT --n 100 --length 50 --seed 0 --out simulated.csv",
        f"revealed counterfactual FIT {change}",
    ]
    return "\n".join(lines)


def _example(fit: AnyFit) -> str:
    """The parameter that the examples change: the first, where parameters mean something one by one."""
    named = getattr(fit.reward_model, "linear", False) and fit.theta.size <= MOST_NAMED
    return str(fit.reward_model.names[0]) if named else ""
