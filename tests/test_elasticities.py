"""Elasticities of flows and choices are exact derivatives: they equal differences of flows of changed networks."""

import numpy as np
import pytest

import revealed as rv
from revealed.errors import InvalidInput, InvalidOption
from revealed.goal_values import GoalValues
from revealed.paths import PathSums
from streets import dense_policy, model, streets

DEMAND = {("00-01", "22-23"): 3.0, ("22-21", "22-23"): 1.5, ("00-10", "02-03"): 4.0}
H = 1e-5


@pytest.fixture(scope="module")
def city():
    return model(streets(3, wide=4))


def scaled(choice, attribute, factor, links=None, turns=None):
    """The same model with an attribute of some turns times a factor."""
    network, values = choice.network, choice.network.attribute(attribute).copy()
    moved = np.isin(network.target, [network.index(x) for x in links or ()])
    for one, other in turns or ():
        moved[network.turn_index(one, other)] = True
    if links is None and turns is None:
        moved[:] = True
    return choice.change(attribute, np.where(moved, factor * values, values))


def differences(choice, attribute, ask, **where):
    """d log / d log attribute by central differences."""
    up, down = (np.log(ask(scaled(choice, attribute, 1.0 + h, **where))) for h in (H, -H))
    return (up - down) / (np.log1p(H) - np.log1p(-H))


@pytest.mark.parametrize(
    "where",
    [{"links": ["01-11"]}, {"links": ["01-11", "12-22"]}, {"turns": [("01-11", "11-12"), ("00-01", "01-02")]}, {}],
)
@pytest.mark.parametrize("attribute", ["travel_time", "toll"])
def test_elasticities_of_links_and_turns_equal_differences(city, attribute, where):
    found = city.elasticity(attribute, DEMAND, **where)
    expected = differences(city, attribute, lambda m: m.flows(DEMAND), **where)
    np.testing.assert_allclose(found, expected, atol=2e-8)
    assert found.abs().max() > 1e-3
    by_turn = city.elasticity(attribute, DEMAND, of="turns", **where)["elasticity"]
    used = by_turn.notna()  # from the destination itself nobody turns
    flows = differences(city, attribute, lambda m: m.flows(DEMAND, turns=True)["flow"][used], **where)
    np.testing.assert_allclose(by_turn[used], flows, atol=2e-8)


def test_own_and_cross_elasticities_stand_in_one_table(city):
    links = ["01-11", "12-22"]
    table = city.elasticities("travel_time", DEMAND, links)
    assert table.columns.tolist() == links
    assert table.index.tolist() == list(city.network.links)
    for link in links:
        np.testing.assert_allclose(table[link], city.elasticity("travel_time", DEMAND, links=[link]), atol=1e-12)
    assert (np.diag(table.loc[links]) < -0.1).all()
    both = city.elasticity("travel_time", DEMAND, links=links)
    np.testing.assert_allclose(table.sum(axis=1), both, atol=1e-10)  # derivatives add up


def test_elasticities_of_choices_equal_differences(city):
    found = city.choice_elasticity("travel_time", "22-23", links=["01-11"])
    chance = differences(city, "travel_time", lambda m: m.link_probabilities("22-23")["probability"], links=["01-11"])
    np.testing.assert_allclose(found["elasticity"], chance, atol=2e-8)
    weights = city.link_probabilities("22-23")["probability"]
    means = (found["elasticity"] * weights).groupby(found["from_link"]).sum()
    np.testing.assert_allclose(means, 0.0, atol=1e-10)  # what one turn wins the others lose


def test_links_that_nobody_drives_have_no_elasticity():
    one_way = model(streets(4, both_ways=False))
    found = one_way.elasticity("travel_time", {("11-12", "32-33"): 1.0})
    assert np.isnan(found["00-01"])
    assert found["11-12"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("per", ["goal", "pair"])
def test_link_sizes_stay_as_they_are(city, per):
    """They are fixed attributes: only the attribute's own term moves."""
    network = city.network
    sizes = rv.link_size(network, network.reward(["travel_time", "constant"]), [-2.0, -1.0], DEMAND, per=per)
    theta = [-1.5, -0.6, -0.8]

    def at(h):
        values = network.attribute("travel_time") * np.where(network.target == network.index("01-11"), 1.0 + h, 1.0)
        base = network.with_attribute("travel_time", values).reward(["travel_time", "constant"])
        return rv.RouteChoice(network, rv.LinkSizeReward(base, sizes), theta)

    found = at(0.0).elasticity("travel_time", DEMAND, links=["01-11"])
    up, down = (np.log(at(h).flows(DEMAND)) for h in (H, -H))
    np.testing.assert_allclose(found, (up - down) / (np.log1p(H) - np.log1p(-H)), atol=2e-8)


def test_sums_ahead_solve_the_chain_of_trips(city):
    """(I − P)⁻¹b by the shared factorisation, by the goal's own, and by the general solver."""
    goal, b = city.network.index("22-23"), np.random.default_rng(0).normal(size=(city.network.n_links, 2))
    P, _ = dense_policy(city, "22-23")
    paid = b.copy()
    paid[goal] = 0.0
    expected = np.linalg.solve(np.eye(len(P)) - P, paid)
    values = GoalValues(city.network.mdp, city.table())
    for toward in (values.toward("22-23"), values._alone(goal), values._by_newton(goal)):
        np.testing.assert_allclose(toward.ahead(b), expected, atol=1e-9)
        np.testing.assert_allclose(toward.ahead(b[:, 0]), expected[:, 0], atol=1e-9)
    assert isinstance(values._shared, PathSums)


def test_what_cannot_be_asked_is_refused(city):
    with pytest.raises(InvalidInput, match=r"`attribute`: expected one of travel_time, toll, constant; got 'tol'"):
        city.elasticity("tol", DEMAND)
    with pytest.raises(InvalidOption, match=r"`of`: expected one of links, turns; got 'all'"):
        city.elasticity("toll", DEMAND, of="all")
    with pytest.raises(InvalidInput, match=r"`turns`: expected pairs \(from link, to link\); got '01-11'"):
        city.elasticity("toll", DEMAND, turns=["01-11"])
    with pytest.raises(InvalidInput, match=r"`links`: expected one of"):
        city.elasticity("toll", DEMAND, links=["nowhere"])
    tabular = rv.RouteChoice(city.network, rv.TabularReward(city.network.n_links), np.full(city.network.n_links, -2.0))
    with pytest.raises(InvalidInput, match=r"`attribute`: expected"):
        tabular.elasticity("toll", DEMAND)
