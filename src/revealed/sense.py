"""Which options of a run make sense together: one that would have no effect beside others is a mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from revealed.description import Description, flag
from revealed.errors import InvalidOption

ROADS = ("link", "from_node", "to_node", "turn_from", "turn_to", "nodes", "u_turns", "arrivals")
ROADS += ("trip", "sequence", "trip_link", "traveller", "bad_trips")
# what a road network says by itself, and what to say instead
ELSEWHERE = {
    "id": "Name the column of trips with --trip.",
    "time": "Name the column of their order with --sequence.",
    "state": "Name the column of links with --link.",
    "action": "The action is the next link.",
    "goal": "The goal of a trip is its last link.",
    "features": "Features are the attributes of links and turns, chosen with --columns.",
    "coordinates": "Node coordinates come from --nodes, or from columns x_from, y_from, x_to, y_to of the links.",
}
ELSEWHERE |= dict.fromkeys(("next_state", "weight", "period", "gaps", "bins", "feature_state", "constants"), "")
ELSEWHERE |= dict.fromkeys(("transitions", "probability", "smoothing", "kernel", "unseen", "terminal", "horizon"), "")
ELSEWHERE |= {"episode": "Each trip is one episode.", "first_time": ""}


def require_effect(options: Description, said: Mapping[str, Any], method: str | None) -> None:
    """Nobody says a flag that would do nothing; a file may, since flags go over it. Without a `method`, all run."""
    for names, has_effect, needed in _effects(options, method):
        for name in names:
            if name in said and said[name] != type(options).__dataclass_fields__[name].default and not has_effect:
                raise InvalidOption.conflict(flag(name), f"requires {needed}")


def _effects(one: Description, method: str | None) -> list[tuple[tuple[str, ...], bool, str]]:
    """(options, whether they have an effect, what they need for it)."""
    steps = method in (None, "ccp", "npl") or one.weighting == "occupancy" or one.start == "ccp"
    drawn = one.errors == "bootstrap"
    return [
        (("start",), method in (None, "nfxp", "mce-irl"), "`--method nfxp`"),
        (("updates",), method in (None, "npl"), "`--method npl`"),
        (("first_step",), steps, "`--method ccp` or `--method npl`"),
        (("reps",), drawn, "`--errors bootstrap`"),
        (("seed",), drawn or one.reward == "neural" or method is None, "`--errors bootstrap` or `--reward neural`"),
        (("probability",), one.transitions is not None, "`--transitions FILE`"),
        (("unseen",), one.transitions is None, "estimated transitions (no `--transitions`)"),
        (("feature_state",), one.features is not None, "`--features FILE`"),
    ]


def require_sense(one: Description) -> None:
    """Options that would have no effect beside others are mistakes."""
    if one.on_roads:
        _require_roads(one)
    else:
        _require_panel(one)
    if one.cluster and one.errors not in (None, "cluster", "bootstrap"):
        rule = f"requires `--errors cluster` or `--errors bootstrap`, not `--errors {one.errors}`"
        raise InvalidOption.conflict("--cluster", rule)
    for name in ("hidden", "activation"):
        if getattr(one, name) != getattr(Description, name) and one.reward != "neural":
            raise InvalidOption.conflict(flag(name), "requires `--reward neural`")


def _require_panel(one: Description) -> None:
    for name in ROADS:
        if _given(one, name):
            raise InvalidOption.conflict(flag(name), "requires a road network: `--network FILE`")
    if one.goal and one.horizon:
        raise InvalidOption.conflict("--horizon", "cannot be combined with `--goal`, where trips end")
    if one.first_time is not None and not one.horizon:
        raise InvalidOption.conflict("--first-time", "requires `--horizon`, the number of periods")
    if one.transitions and (one.smoothing or one.kernel):
        option = "--smoothing" if one.smoothing else "--kernel"
        rule = "cannot be combined with `--transitions`: it smooths transitions that are estimated"
        raise InvalidOption.conflict(option, rule)
    if one.smoothing and one.kernel:
        raise InvalidOption.conflict("--kernel", "cannot be combined with `--smoothing`")
    if one.coordinates and not one.features:
        raise InvalidOption.conflict("--coordinates", "requires `--features FILE`, whose columns they are")
    _require_features(one, one.reward or "linear")


def _require_features(one: Description, kind: str) -> None:
    alone = one.constants and kind == "linear"  # a constant for each action but the first is a reward, too
    if kind != "tabular" and not one.features and not one.bins and not alone:
        remedy = "Or use --reward tabular, one weight per state."
        raise InvalidOption.conflict("--features", f"is required for a {kind} reward", remedy=remedy)
    if one.constants and kind != "linear":
        raise InvalidOption.conflict("--constants", f"requires a linear reward, not `--reward {kind}`")
    if one.columns and not one.features and not one.bins:
        raise InvalidOption.conflict("--columns", "requires `--features` or `--bins`")


def _require_roads(one: Description) -> None:
    for name, remedy in ELSEWHERE.items():
        if _given(one, name) and not one.network:
            rule = f"describes a road network, to which `{flag(name)}` does not apply"
            raise InvalidOption.conflict("--turns", rule, remedy=f"Leave out --turns. {remedy}".rstrip())
        if _given(one, name):
            raise InvalidOption.conflict(flag(name), "does not apply to a road network", remedy=remedy or None)
    if one.discount != 1.0:
        raise InvalidOption.conflict(
            "--discount", f"must be 1 on a road network, not {one.discount:g}: every trip arrives"
        )
    for name in ("from_node", "to_node", "nodes", "u_turns"):
        if _given(one, name) and not one.network:
            raise InvalidOption.conflict(flag(name), "requires `--network FILE`: turns alone have no nodes")
    for name in ("turn_from", "turn_to"):
        if _given(one, name) and not one.turns:
            raise InvalidOption.conflict(flag(name), "requires `--turns FILE`")
    if one.columns and one.reward == "tabular":
        raise InvalidOption.conflict("--columns", "cannot be combined with `--reward tabular`, one weight per link")


def _given(one: Description, name: str) -> bool:
    return getattr(one, name) != type(one).__dataclass_fields__[name].default
