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


def require_effect(options: Description, said: Mapping[str, Any], method: str | None) -> None:
    """Nobody says an option that would do nothing; a file may, since others go over it. Without a `method`, all run."""
    for name, needed in without_effect(options, method).items():
        if name in said:
            raise InvalidOption.conflict(name, f"requires {needed}")


def without_effect(options: Description, method: str | None) -> dict[str, str]:
    """Options that were chosen and do nothing beside others, and what each would need."""
    idle = ((names, needed) for names, has_effect, needed in _effects(options, method) if not has_effect)
    return {name: needed for names, needed in idle for name in names if _given(options, name)}


def _effects(one: Description, method: str | None) -> list[tuple[tuple[str, ...], bool, str]]:
    """(options, whether they have an effect, what they need for it)."""
    steps = method in (None, "ccp", "npl") or one.weighting == "occupancy" or one.start == "ccp"
    drawn, bootstrap = one.errors == "bootstrap", f"`{arg('errors', 'bootstrap')}`"
    return [
        (("start",), method in (None, "nfxp", "mce-irl"), f"`{arg('method', 'nfxp')}`"),
        (("updates",), method in (None, "npl"), f"`{arg('method', 'npl')}`"),
        (("first_step",), steps, f"`{arg('method', 'ccp')}` or `{arg('method', 'npl')}`"),
        (("reps",), drawn, bootstrap),
        (("seed",), drawn or one.reward == "neural" or method is None, f"{bootstrap} or {NEURAL}"),
        (("probability",), one.transitions is not None, file_of("transitions")),
        (("unseen",), one.transitions is None, f"estimated transitions (no `{arg('transitions')}`)"),
        (("feature_state",), one.features is not None, file_of("features")),
    ]


def require_sense(one: Description) -> None:
    """Options that would have no effect beside others are mistakes."""
    if one.on_roads:
        _require_roads(one)
    else:
        _require_panel(one)
    if one.cluster and one.errors not in (None, "cluster", "bootstrap"):
        fit, other, given = (arg("errors", kind) for kind in ("cluster", "bootstrap", one.errors))
        raise InvalidOption.conflict("cluster", f"requires `{fit}` or `{other}`, not `{given}`")
    for name in ("hidden", "activation"):
        if getattr(one, name) != getattr(Description, name) and one.reward != "neural":
            raise InvalidOption.conflict(name, f"requires {NEURAL}")


def _require_panel(one: Description) -> None:
    for name in ROADS:
        if _given(one, name):
            raise InvalidOption.conflict(name, f"requires a road network: {file_of('network')}")
    if one.goal and one.horizon:
        raise InvalidOption.conflict("horizon", f"cannot be combined with `{named('goal')}`, where trips end")
    if one.first_time is not None and not one.horizon:
        raise InvalidOption.conflict("first_time", f"requires `{named('horizon')}`, the number of periods")
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
    if one.constants and kind != "linear":
        raise InvalidOption.conflict("constants", f"requires a linear reward, not `{arg('reward', kind)}`")
    if one.columns and not one.features and not one.bins:
        raise InvalidOption.conflict("columns", f"requires `{named('features')}` or `{named('bins')}`")


def _require_roads(one: Description) -> None:
    for name, remedy in ELSEWHERE.items():
        if _given(one, name) and not one.network:
            rule = f"describes a road network, to which `{named(name)}` does not apply"
            remedy = f"Leave out {arg('turns')}. {marked(remedy)}".rstrip()
            raise InvalidOption.conflict("turns", rule, remedy=remedy)
        if _given(one, name):
            raise InvalidOption.conflict(name, "does not apply to a road network", remedy=remedy or None)
    if one.discount != 1.0:
        rule = f"must be 1 on a road network, not {one.discount:g}: every trip arrives"
        raise InvalidOption.conflict("discount", rule)
    for name in ("from_node", "to_node", "nodes", "u_turns"):
        if _given(one, name) and not one.network:
            raise InvalidOption.conflict(name, f"requires {file_of('network')}: turns alone have no nodes")
    for name in ("turn_from", "turn_to"):
        if _given(one, name) and not one.turns:
            raise InvalidOption.conflict(name, f"requires {file_of('turns')}")
    if one.columns and one.reward == "tabular":
        rule = f"cannot be combined with `{arg('reward', 'tabular')}`, one weight per link"
        raise InvalidOption.conflict("columns", rule)


def file_of(name: str) -> str:
    """An option that is a file: `features=` or `--features FILE`."""
    return either(f"`{arg(name)}`", f"`{arg(name)} FILE`")


def _given(one: Description, name: str) -> bool:
    return getattr(one, name) != type(one).__dataclass_fields__[name].default
