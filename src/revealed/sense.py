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
    "action": "What is chosen is the next link.",
    "goal": "A trip goes to its last link.",
    "features": "Features are the attributes of links and turns, chosen with --columns.",
    "coordinates": "Places of nodes come from --nodes, or from columns x_from, y_from, x_to, y_to of the links.",
}
ELSEWHERE |= dict.fromkeys(("next_state", "weight", "period", "gaps", "bins", "feature_state", "constants"), "")
ELSEWHERE |= dict.fromkeys(("transitions", "probability", "smoothing", "kernel", "unseen", "terminal", "horizon"), "")
ELSEWHERE |= {"episode": "Each trip is one.", "first_time": ""}


def require_effect(options: Description, said: Mapping[str, Any], method: str | None) -> None:
    """Nobody says a flag that would do nothing; a file may, since flags go over it. Without a `method`, all run."""
    for names, has_effect, needed in _effects(options, method):
        for name in names:
            if name in said and said[name] != type(options).__dataclass_fields__[name].default and not has_effect:
                got = f"{flag(name)} {said[name]}"
                raise InvalidOption(flag(name), needed, f"{got}, which would have no effect")


def _effects(one: Description, method: str | None) -> list[tuple[tuple[str, ...], bool, str]]:
    """(options, whether they have an effect, what they need for it)."""
    steps = method in (None, "ccp", "npl") or one.weighting == "occupancy" or one.start == "ccp"
    drawn = one.errors == "bootstrap"
    return [
        (("start",), method in (None, "nfxp", "mce-irl"), "--method nfxp"),
        (("updates",), method in (None, "npl"), "--method npl"),
        (("first_step",), steps, "--method ccp or npl"),
        (("reps",), drawn, "--errors bootstrap"),
        (("seed",), drawn or one.reward == "neural" or method is None, "--errors bootstrap or --reward neural"),
        (("probability",), one.transitions is not None, "--transitions FILE"),
        (("unseen",), one.transitions is None, "estimated transitions (no --transitions)"),
        (("feature_state",), one.features is not None, "--features FILE"),
    ]


def require_sense(one: Description) -> None:
    """Options that would have no effect beside others are mistakes."""
    if one.on_roads:
        _require_roads(one)
    else:
        _require_panel(one)
    if one.cluster and one.errors not in (None, "cluster", "bootstrap"):
        raise InvalidOption("--cluster", "--errors cluster or bootstrap", f"--errors {one.errors}")
    for name in ("hidden", "activation"):
        if getattr(one, name) != getattr(Description, name) and one.reward != "neural":
            raise InvalidOption(flag(name), "a neural reward", one.reward or "linear", remedy="Add --reward neural.")


def _require_panel(one: Description) -> None:
    for name in ROADS:
        if _given(one, name):
            raise InvalidOption(flag(name), "a road network", "none", remedy="Give --network FILE.")
    if one.goal and one.horizon:
        raise InvalidOption("--horizon", "trips without --goal, at which they end", f"{one.horizon}")
    if one.first_time is not None and not one.horizon:
        got, remedy = f"--first-time {one.first_time} without it", "Give --horizon, the number of periods."
        raise InvalidOption("--first-time", "--horizon, whose period 0 it is", got, remedy=remedy)
    if one.transitions and (one.smoothing or one.kernel):
        option = "--smoothing" if one.smoothing else "--kernel"
        raise InvalidOption(option, "estimated transitions", "a table of them", remedy="Leave --transitions out.")
    if one.smoothing and one.kernel:
        raise InvalidOption("--kernel", "one way to smooth transitions", "--smoothing as well")
    if one.coordinates and not one.features:
        raise InvalidOption("--coordinates", "columns of a features file", "no --features")
    _require_features(one, one.reward or "linear")


def _require_features(one: Description, kind: str) -> None:
    alone = one.constants and kind == "linear"  # a constant for each action but the first is a reward, too
    if kind != "tabular" and not one.features and not one.bins and not alone:
        remedy = "Give --features FILE, or --reward tabular for one weight per state."
        raise InvalidOption("--features", f"features for a {kind} reward", "nothing", remedy=remedy)
    if one.constants and kind != "linear":
        raise InvalidOption("--constants", "a linear reward", kind)
    if one.columns and not one.features and not one.bins:
        raise InvalidOption("--columns", "columns of a features file, or of bins", "neither")


def _require_roads(one: Description) -> None:
    for name, remedy in ELSEWHERE.items():
        if _given(one, name):
            got = ", ".join(map(str, v)) if isinstance(v := getattr(one, name), tuple) else str(v)
            raise InvalidOption(flag(name), "nothing on a road network", got, remedy=remedy or None)
    if one.discount != 1.0:
        raise InvalidOption("--discount", "1 on a road network, where every trip arrives", repr(one.discount))
    for name in ("from_node", "to_node", "nodes", "u_turns"):
        if _given(one, name) and not one.network:
            raise InvalidOption(flag(name), "a file of links", "turns alone", remedy="Give --network FILE.")
    for name in ("turn_from", "turn_to"):
        if _given(one, name) and not one.turns:
            raise InvalidOption(flag(name), "a file of turns", "none", remedy="Give --turns FILE.")
    if one.columns and one.reward == "tabular":
        raise InvalidOption("--columns", "a reward of attributes", "--reward tabular, one weight per link")


def _given(one: Description, name: str) -> bool:
    return getattr(one, name) != type(one).__dataclass_fields__[name].default
