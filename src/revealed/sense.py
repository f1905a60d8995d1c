"""Which options of a run make sense together: one that would have no effect beside others is a mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from revealed.description import Description
from revealed.errors import InvalidOption
from revealed.voices import arg, either, marked, named, words

ROADS = ("link", "from_node", "to_node", "turn_from", "turn_to", "nodes", "u_turns", "arrivals")
ROADS += ("trip", "sequence", "trip_link", "traveller", "bad_trips")
# what a road network says by itself, and what to say instead
ELSEWHERE = {
    "id": words(f"Name the column of trips with {arg('trip')}."),
    "time": words(f"Name the column of their order with {arg('sequence')}."),
    "state": words(f"Name the column of links with {arg('link')}."),
    "action": "The action is the next link.",
    "goal": "The goal of a trip is its last link.",
    "features": words(f"Features are the attributes of links and turns, chosen with {arg('columns')}."),
    "coordinates": words(
        f"Node coordinates come from {arg('nodes')}, or from columns x_from, y_from, x_to, y_to of the links."
    ),
}
ELSEWHERE |= dict.fromkeys(("next_state", "weight", "period", "gaps", "bins", "feature_state", "constants"), "")
ELSEWHERE |= dict.fromkeys(("transitions", "probability", "smoothing", "kernel", "unseen", "terminal", "horizon"), "")
NEURAL = f"`{arg('reward', 'neural')}`"
ELSEWHERE |= {"episode": "Each trip is one episode.", "first_time": ""}
ELSEWHERE |= {"joint": "Transitions on roads are certain, not estimated."}


NO_CHOICE: dict[str, Any] = {"smoothing": 0.0, "first_step": "auto", "start": "zero"}


def chosen(options: Description) -> dict[str, Any]:
    """The options that differ from their defaults: all that can be known of those of a recipe made in Python."""
    return {name: getattr(options, name) for name in type(options).__dataclass_fields__ if _given(options, name)}


def _asking(said: Mapping[str, Any]) -> dict[str, Any]:
    """The options given, without those that only switch something off (`--no-joint`, `--smoothing 0`)."""
    return {name: value for name, value in said.items() if value is not False and NO_CHOICE.get(name) != value}


def require_effect(options: Description, said: Mapping[str, Any], method: str | None) -> None:
    """An option without effect is an error, but not in a file, which options override. Without a `method`, all run."""
    for name, rule in without_effect(options, method).items():
        if name in _asking(said):
            raise InvalidOption.conflict(name, rule)


def without_effect(options: Description, method: str | None) -> dict[str, str]:
    """Options that do nothing beside others, and the rule that each breaks."""
    return {name: rule for names, has_effect, rule in _effects(options, method) if not has_effect for name in names}


def _effects(one: Description, method: str | None) -> list[tuple[tuple[str, ...], bool, str]]:
    """(options, whether they have an effect, the rule)."""
    steps = method in (None, "ccp", "npl") or one.weighting == "occupancy" or one.start == "ccp"
    drawn, bootstrap = one.errors == "bootstrap", f"`{arg('errors', 'bootstrap')}`"
    kind, per = one.reward or "linear", "link" if one.on_roads else "state"
    advised = method is None and not (one.on_roads or one.goal)  # the advice of `revealed compare` draws, too
    clustered, given = f"`{arg('errors', 'cluster')}` or {bootstrap}", f"`{arg('errors', one.errors)}`"
    rules = [
        (("start",), method in (None, "nfxp", "mce-irl"), f"`{arg('method', 'nfxp')}`"),
        (("updates",), method in (None, "npl"), f"`{arg('method', 'npl')}`"),
        (("first_step",), steps, f"`{arg('method', 'ccp')}` or `{arg('method', 'npl')}`"),
        (("reps",), drawn, bootstrap),
        (("seed",), drawn or kind == "neural" or advised, f"{bootstrap} or {NEURAL}"),
        (("cluster",), one.errors in (None, "cluster", "bootstrap"), f"{clustered}, not {given}"),
        (("probability",), one.transitions is not None, file_of("transitions")),
        (("unseen",), one.transitions is None, f"estimated transitions (no `{arg('transitions')}`)"),
        (("feature_state",), one.features is not None, file_of("features")),
        (("hidden", "activation"), kind == "neural", NEURAL),
        (("constants",), kind == "linear", f"a linear reward, not `{arg('reward', kind)}`"),
    ]
    tabular = f"cannot be combined with `{arg('reward', 'tabular')}`, which has one weight per {per}"
    return [*((*rule, f"requires {needed}") for *rule, needed in rules), (("columns",), kind != "tabular", tabular)]


def require_sense(one: Description, said: Mapping[str, Any] | None = None) -> None:
    """Options that contradict each other are mistakes; what was `said` counts even where it says the default."""
    given = {**chosen(one), **_asking(said or {})}
    if one.on_roads:
        _require_roads(one, given)
    else:
        _require_panel(one, given)


def _require_panel(one: Description, given: Mapping[str, Any]) -> None:
    for name in ROADS:
        if name in given:
            raise InvalidOption.conflict(name, f"requires a road network: {file_of('network')}")
    if one.goal and one.horizon:
        raise InvalidOption.conflict("horizon", f"cannot be combined with `{named('goal')}`, where trips end")
    if one.first_time is not None and not one.horizon:
        raise InvalidOption.conflict("first_time", f"requires `{named('horizon')}`, the number of periods")
    if one.transitions and one.joint:
        rule = f"requires estimated transitions: it cannot be combined with `{named('transitions')}`"
        raise InvalidOption.conflict("joint", rule)
    if one.transitions and (one.smoothing or one.kernel):
        option = "smoothing" if one.smoothing else "kernel"
        rule = f"cannot be combined with `{named('transitions')}`: it smooths transitions that are estimated"
        raise InvalidOption.conflict(option, rule)
    if one.smoothing and one.kernel:
        raise InvalidOption.conflict("kernel", f"cannot be combined with `{named('smoothing')}`")
    if one.coordinates and not one.features:
        raise InvalidOption.conflict("coordinates", f"requires {file_of('features')}, whose columns they are")
    _require_features(one, one.reward or "linear")


def _require_features(one: Description, kind: str) -> None:
    alone = one.constants and kind == "linear"  # a constant for each action but the first is a reward, too
    if kind != "tabular" and not one.features and not one.bins and not alone:
        remedy = f"Or use {arg('reward', 'tabular')}, one weight per state."
        raise InvalidOption.conflict("features", f"is required for a {kind} reward", remedy=remedy)
    if one.columns and not one.features and not one.bins:
        raise InvalidOption.conflict("columns", f"requires `{named('features')}` or `{named('bins')}`")


def _require_roads(one: Description, given: Mapping[str, Any]) -> None:
    for name, remedy in ELSEWHERE.items():
        if name in given and not one.network:
            rule = f"describes a road network, to which `{named(name)}` does not apply"
            told = marked(remedy)
            told = f" Or, for a road network: {told[:1].lower()}{told[1:]}" if told else ""
            remedy = f"Leave out {arg('turns')}.{told}"
            raise InvalidOption.conflict("turns", rule, remedy=remedy)
        if name in given:
            raise InvalidOption.conflict(name, "does not apply to a road network", remedy=remedy or None)
    if one.discount != 1.0:
        rule = f"must be 1 on a road network, not {one.discount:g}, because trips end at their destination"
        raise InvalidOption.conflict("discount", rule)
    for name in ("from_node", "to_node", "nodes", "u_turns"):
        if name in given and not one.network:
            raise InvalidOption.conflict(name, f"requires {file_of('network')}: turns alone have no nodes")
    for name in ("turn_from", "turn_to"):
        if name in given and not one.turns:
            raise InvalidOption.conflict(name, f"requires {file_of('turns')}")


def file_of(name: str) -> str:
    """An option that is a file: `features=` or `--features FILE`."""
    return either(f"`{arg(name)}`", f"`{arg(name)} FILE`")


def _given(one: Description, name: str) -> bool:
    return getattr(one, name) != type(one).__dataclass_fields__[name].default
