"""Options that would do nothing beside others are mistakes, told in a line with what to do instead."""

from typing import Any

import pytest

from revealed.commands.wording import in_flags
from revealed.description import Description, flag
from revealed.errors import InvalidOption
from revealed.sense import ELSEWHERE, ROADS, require_effect, require_sense

PANEL: dict[str, Any] = {
    "panel": "trips.csv",
    "id": "rider",
    "time": "t",
    "state": "station",
    "action": "choice",
    "reward": "tabular",
}
ROAD: dict[str, Any] = {"panel": "trips.csv", "network": "links.csv"}
SOME: dict[str, Any] = {
    "gaps": "error",
    "unseen": "stay",
    "constants": True,
    "smoothing": 1.0,
    "kernel": 1.0,
    "horizon": 3,
}
SOME |= {"u_turns": False, "arrivals": True, "probability": "p", "period": "day", "bad_trips": "drop"}
SOME |= {"coordinates": ("x", "y"), "joint": True}


def _require_all(one: Description, said: dict[str, Any]) -> None:
    require_sense(one)
    require_effect(one, said, one.method)


def told(**options: Any) -> str:
    with pytest.raises(InvalidOption) as caught:
        _require_all(Description(**options), options)
    assert "--" not in str(caught.value)  # which Python users read
    return in_flags(caught.value)


@pytest.mark.parametrize(
    ("sensible", "one_more", "flag_of_it"),
    [
        (PANEL, {"arrivals": True}, "--arrivals"),
        ({**PANEL, "goal": ("to",), "discount": 1.0}, {"horizon": 3}, "--horizon"),
        (ROAD, {"id": "rider"}, "--id"),
        ({"panel": ("trips.csv",), "turns": "turns.csv", "turn_from": "a"}, {"to_node": "b"}, "--to-node"),
    ],
)
def test_plain_descriptions_make_sense_until_one_word_too_many_is_said(sensible, one_more, flag_of_it):
    assert require_sense(Description(**sensible)) is None
    assert told(**sensible, **one_more).startswith(f"`{flag_of_it}` ")


@pytest.mark.parametrize("name", ROADS)
def test_what_only_roads_have_needs_a_network(name):
    message = told(**PANEL, **{name: SOME.get(name, "x")})
    assert message == f"`{flag(name)}` requires a road network: `--network FILE`."


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_a_network_says_by_itself_is_not_said_again(name):
    said = SOME.get(name, "x")
    message = f"`{flag(name)}` does not apply to a road network. {in_flags(ELSEWHERE[name])}"
    assert told(**ROAD, **{name: said}) == message.rstrip()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {**ROAD, "discount": 0.9},
            "`--discount` must be 1 on a road network, not 0.9, because trips end at their destination.",
        ),
        (
            {"panel": "trips.csv", "turns": "turns.csv", "from_node": "a"},
            "`--from-node` requires `--network FILE`: turns alone have no nodes.",
        ),
        ({**ROAD, "turn_to": "b"}, "`--turn-to` requires `--turns FILE`."),
        (
            {**ROAD, "columns": "time", "reward": "tabular"},
            "`--columns` cannot be combined with `--reward tabular`, which has one weight per link.",
        ),
        ({**ROAD, "hidden": 3}, "`--hidden` requires `--reward neural`."),
        (
            {**PANEL, "goal": "to", "horizon": 3},
            "`--horizon` cannot be combined with `--goal`, where trips end.",
        ),
    ],
)
def test_contradictions_are_told(options, message):
    assert told(**options) == message


def test_the_discount_depends_on_what_the_data_are():
    assert Description(**PANEL).discount == 0.95
    assert Description(**ROAD).discount == 1.0


def test_a_first_step_needs_a_method_that_has_one():
    with pytest.raises(InvalidOption, match='`first_step` requires `method="ccp"` or `method="npl"`'):
        require_effect(Description(**ROAD, first_step="logit"), {"first_step": "logit"}, "nfxp")
    require_effect(Description(**ROAD, first_step="auto"), {"first_step": "auto"}, "nfxp")
