"""A fit of trips with goals beside its road network in another order of the links: every question has the same answer,
link by link, or is refused."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from revealed.errors import InvalidInput
from revealed.fit_report import build_fit_report
from revealed.matching import match_labels
from revealed.metrics import evaluate, nll
from revealed.routes import maps
from revealed.routes.maps import draw_classes, draw_fan, draw_flows, draw_network
from revealed.trip_simulation import simulate_trips
from streets import streets

NAMES = ["travel_time", "toll", "constant"]
THETA = np.array([-1.5, -0.4, -0.6])
ENDS = (("00-01", "12-22"), ("10-00", "12-22"), ("01-11", "20-21"), ("22-12", "00-10"), ("22-12", "00-10"))
DEMAND = {("00-01", "12-22"): 10.0, ("22-12", "00-10"): 7.0}
METHODS: dict[str, Any] = {"nfxp": rv.NFXP, "ccp": rv.CCP, "npl": lambda reward: rv.NPL(reward, updates=1)}


def placed(links: pd.DataFrame) -> rv.RoadNetwork:
    nodes = pd.DataFrame(
        [(f"{i}{j}", float(j), float(i)) for i in range(3) for j in range(3)], columns=["node", "x", "y"]
    )
    return rv.RoadNetwork.from_frame(links, nodes=nodes)


@cache
def grid() -> rv.RoadNetwork:
    return placed(streets(3).links_frame)


@cache
def other() -> rv.RoadNetwork:
    """The same links, shuffled; the turns at the end of a link have other numbers."""
    return placed(streets(3).links_frame.sample(frac=1.0, random_state=1))


@cache
def town() -> rv.RoadNetwork:
    """Some of the links."""
    return placed(streets(2).links_frame)


@cache
def trips(times: int = 30, seed: int = 0) -> rv.Demonstrations:
    origins, goals = zip(*ENDS, strict=True)
    truth = grid().reward(NAMES).value(THETA)
    return simulate_trips(grid().mdp, truth, list(origins) * times, list(goals) * times, seed=seed)


@cache
def fitted(method: str) -> Any:
    return METHODS[method](grid().reward(NAMES)).fit(grid().mdp, trips())


def on(network: rv.RoadNetwork, demos: rv.Demonstrations) -> rv.Demonstrations:
    """The same trips in the order of a network's links."""
    return match_labels(demos, network.mdp)


def tolled(network: rv.RoadNetwork) -> rv.RoadNetwork:
    return network.with_attribute("toll", {"11-21": 3.0})


def again(network: rv.RoadNetwork, fit: Any) -> Any:
    """The estimator of a fit on this network, with the reward as it was there."""
    return METHODS[next(name for name in METHODS if fitted(name) is fit)](fit.reward_model).fit(network.mdp, trips())


def model(network: rv.RoadNetwork, fit: Any) -> rv.RouteChoice:
    return rv.RouteChoice.of(network, fit)


def goal_table(network: rv.RoadNetwork, table: Any) -> pd.Series:
    """(S, A) by the links that turns leave and enter."""
    turns = [network.links[s] for s in network.source], [network.links[t] for t in network.target]
    return pd.Series(np.asarray(table).reshape(-1)[network.pair], index=pd.MultiIndex.from_arrays(turns))


def at_ends(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.set_index(list(frame.select_dtypes(exclude="number").columns))


def colours(figure: Any, network: rv.RoadNetwork) -> pd.Series:
    """The values of the coloured lines of a map, or else the widths of all, by the middle of the line."""
    drawn = figure.axes[0].collections[-1]
    values = drawn.get_linewidths() if drawn.get_array() is None else drawn.get_array()
    ends = np.array([segment.mean(axis=0) for segment in drawn.get_segments()]) + np.array(drawn.get_offsets()) / 100.0
    return pd.Series(np.asarray(values), index=pd.MultiIndex.from_arrays(list(ends.round(6).T)))


def flow_series(fit: Any) -> pd.Series:
    """In the order of the fit's own network."""
    return rv.RouteChoice.of(grid(), fit).flows(DEMAND)


EQUAL: dict[str, Callable[[rv.RoadNetwork, Any], Any]] = {
    "counterfactual(mdp=)": lambda n, f: f.counterfactual(mdp=n.without(["11-21"]).mdp).frame(),
    "counterfactual(mdp=), totals": lambda n, f: f.counterfactual(mdp=n.without(["11-21"]).mdp).table(),
    "counterfactual(reward=)": lambda n, f: f.counterfactual(reward=tolled(n).reward(NAMES), bands=None).frame(),
    "counterfactual(mdp=, reward=)": lambda n, f: f.counterfactual(
        mdp=n.mdp, reward=tolled(n).reward(NAMES), bands=None
    ).frame(),
    "counterfactual(trips=)": lambda n, f: f.counterfactual(
        params={"toll": -1.0}, trips=on(n, trips()), bands=None
    ).frame(),
    "value": lambda n, f: model(n, f).value("12-22"),
    "link_probabilities": lambda n, f: at_ends(model(n, f).link_probabilities("12-22")),
    "flows": lambda n, f: model(n, f).flows(DEMAND),
    "flows of trips": lambda n, f: model(n, f).flows(trips()),
    "flows of trips there": lambda n, f: model(grid(), f).flows(on(n, trips())),
    "turns": lambda n, f: at_ends(model(n, f).flows(DEMAND, turns=True)),
    "expected": lambda n, f: pd.Series(model(n, f).expected(DEMAND).visits, index=list(n.links)),
    "welfare": lambda n, f: at_ends(model(n, f).welfare(DEMAND)),
    "paths": lambda n, f: model(n, f).paths("00-01", "12-22", n=5).set_index("path"),
    "log_likelihood": lambda n, f: model(n, f).log_likelihood(trips()),
    "log_likelihood there": lambda n, f: model(grid(), f).log_likelihood(on(n, trips())),
    "elasticity": lambda n, f: model(n, f).elasticity("toll", DEMAND, links=["11-21"]),
    "elasticities": lambda n, f: model(n, f).elasticities("toll", DEMAND, ["11-21", "12-22"]),
    "choice_elasticity": lambda n, f: at_ends(model(n, f).choice_elasticity("toll", "12-22", links=["11-21"])),
    "change": lambda n, f: model(n, f).change("toll", {"11-21": 3.0}).flows(DEMAND),
    "close": lambda n, f: model(n, f).close(["11-21"]).flows(DEMAND),
    "compare": lambda n, f: model(grid(), f).compare(model(tolled(n), f), DEMAND).flows,
    "compare, attributes": lambda n, f: model(grid(), f).compare(model(tolled(n), f), DEMAND).attributes,
    "compare, welfare": lambda n, f: at_ends(model(grid(), f).compare(model(tolled(n), f), DEMAND).welfare),
    "compare, closed": lambda n, f: pd.Series(
        1.0, index=list(model(grid(), f).compare(model(n, f).close(["11-21"]), DEMAND).closed)
    ),
    "evaluate": lambda n, f: pd.Series(dict(evaluate(f, n.mdp, n.reward(NAMES).value(THETA)))),
    "evaluate(demos=)": lambda n, f: pd.Series(
        dict(evaluate(f, n.mdp, n.reward(NAMES).value(THETA), on(n, trips(3, 9))))
    ),
    "nll": lambda n, f: pd.Series([nll(f, on(n, trips(3, 9))), nll(again(n, f), trips(3, 9))]),
    "log_likelihood_by_trip": lambda n, f: f.log_likelihood_by_trip(on(n, trips(3, 9))),
    "reward_on": lambda n, f: goal_table(n, f.reward_on(n.mdp)),
    "solve": lambda n, f: pd.Series(np.asarray(rv.solve(n.mdp.toward("12-22"), f).value), index=list(n.links)),
    "theta, bse": lambda n, f: pd.concat([again(n, f).params, again(n, f).bse]),
    "policy_for": lambda n, f: goal_table(n, again(n, f).policy_for("12-22")),
    "q_for": lambda n, f: goal_table(n, again(n, f).q_for("12-22")),
    "value_for": lambda n, f: pd.Series(np.asarray(again(n, f).value_for("12-22")), index=list(n.links)),
    "flows of the fit": lambda n, f: again(n, f).flows(),
    "link_size": lambda n, f: at_ends(rv.link_size(n, f.reward_model, f, trips()).to_frame()),
    "draw_flows": lambda n, f: colours(draw_flows(n, flow_series(f), colorbar=False), n),
    "draw_fan": lambda n, f: colours(draw_fan(n, flow_series(f) / 17.0, "00-01", "12-22", colorbar=False), n),
    "draw_network": lambda n, f: colours(draw_network(n, width=flow_series(f)), n),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("asked", EQUAL)
def test_every_question_has_the_same_answer_on_the_network_in_another_order(asked, method):
    fit = fitted(method)
    here, there = (EQUAL[asked](network, fit) for network in (grid(), other()))
    assert sorted(map(str, here.index)) == sorted(map(str, there.index))
    here, there = ((x if isinstance(x, pd.DataFrame) else x.to_frame()).select_dtypes("number") for x in (here, there))
    assert here.size > 0
    there = there.reindex(here.index) if here.index.is_unique else there
    np.testing.assert_allclose(there[list(here.columns)], here, rtol=1e-10, atol=1e-10, err_msg=asked)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an array of rewards": (
        lambda f: f.counterfactual(reward=tolled(other()).reward(NAMES).value(f.theta) * f.mdp.feasible, bands=None),
        "states in a different order|requires labels|`state_labels` must be the same",
    ),
    "an array of rewards with the model": (
        lambda f: f.counterfactual(mdp=other().mdp, reward=np.arange(96.0).reshape(24, 4)),
        "in different orders",
    ),
    "a true reward": (
        lambda f: evaluate(f, other().mdp, f.reward),
        "`true_reward` lists the states in a",
    ),
    "rewards of trips": (
        lambda f: simulate_trips(other().mdp, f.reward, ["00-01"], ["12-22"], seed=0),
        "`reward` lists the states in a different order",
    ),
    "other links": (
        lambda f: model(grid(), f).compare(model(town(), f), DEMAND),
        "got one with 8 links, not 24",
    ),
    "a map of other links": (lambda f: draw_flows(town(), flow_series(f)), "`flows`"),
    "classes of other links": (lambda f: draw_classes(town(), flow_series(f), ["a"]), "`kind`"),
}


@pytest.mark.parametrize("asked", REFUSED)
def test_what_cannot_be_matched_is_refused(asked):
    ask, says = REFUSED[asked]
    with pytest.raises(InvalidInput, match=says):
        ask(fitted("nfxp"))


@pytest.mark.parametrize("method", ["nfxp", "ccp"])
def test_trips_drawn_on_the_network_in_another_order_use_the_same_links(method):
    """Draws differ, their mean does not."""
    fit = fitted(method)
    there = again(other(), fit)
    for drawn in (there.simulate(n=4000, seed=1), model(other(), fit).simulate({ENDS[0]: 4000, ENDS[3]: 4000}, seed=1)):
        expected = model(grid(), fit).flows(drawn)
        seen = pd.Series(np.asarray(drawn.counts).sum(axis=1), index=list(drawn.state_labels or ()))
        arrived = drawn.to_frame().drop_duplicates("id")["goal"].value_counts()
        seen = seen.add(arrived, fill_value=0.0).reindex(expected.index)
        assert np.abs(seen - expected).max() < 6.0 * np.sqrt(2.0 * expected.max())


def test_a_report_takes_the_network_in_another_order(monkeypatch):
    """Its maps are those of the network as it was."""
    drawn: list[pd.Series] = []
    monkeypatch.setattr(maps, "_coloured", lambda ax, n, values, *_: drawn.append(pd.Series(values, list(n.links))))
    for network in (grid(), other()):
        build_fit_report(fitted("nfxp"), network=network)
    here, there = drawn[:2], drawn[2:]
    assert len(there) == 2
    for one, two in zip(here, there, strict=True):
        pd.testing.assert_series_equal(two.reindex(one.index), one)
    with pytest.raises(InvalidInput, match="`network`"):
        build_fit_report(fitted("nfxp"), network=town())
