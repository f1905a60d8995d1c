"""Demand curves: closed forms, whose uncertainty they carry, and what the picture shows."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import revealed as rv
from oracle import Floats, central_differences
from revealed.demand import DemandCurve, demand_curve
from revealed.errors import InvalidInput, InvalidOption
from revealed.long_run import long_run
from scenarios import estimate, fleet_fit

COV = np.array([[0.30, 0.10], [0.10, 0.08]])
VALUES = np.linspace(0.0, 3.0, 7)


def shop(draws: Any = None) -> Any:
    """One state, two actions: to buy costs `price` and is worth `taste`. Choices are a plain logit."""
    mdp = rv.MDP(np.ones((1, 2, 1)), 0.9, action_labels=("leave", "buy"))
    reward = rv.LinearReward(np.array([[[0.0, 0.0], [-1.0, 1.0]]]), names=("price", "taste"))
    fit = estimate(mdp, reward, np.array([1.0, 0.7]), COV, draws)
    fit.drawn.n_failed = 3
    return fit


def logit(x: Any) -> Floats:
    return 1.0 / (1.0 + np.exp(-np.asarray(x)))


@pytest.fixture(scope="module")
def fit() -> rv.Fit:
    return fleet_fit()


def test_of_a_plain_logit_the_curve_and_its_errors_are_known():
    """f = per/(1 + exp(price − taste)); the price is set by hypothesis, so only the variance of taste counts."""
    curve = demand_curve(shop(), "price", VALUES, "buy", per=12)
    p = logit(0.7 - VALUES)
    np.testing.assert_allclose(curve.frequency, 12 * p, rtol=1e-12)
    np.testing.assert_allclose(curve.se, 12 * p * (1 - p) * np.sqrt(COV[1, 1]), rtol=1e-9)
    np.testing.assert_allclose(curve.upper - curve.frequency, 1.959963984540054 * curve.se, rtol=1e-9)
    assert curve.at_estimate == pytest.approx(12 * logit(-0.3), rel=1e-12)
    assert curve.interval == pytest.approx((1.0 - 1.959964 * np.sqrt(0.3), 1.0 + 1.959964 * np.sqrt(0.3)), rel=1e-6)


def test_bootstrap_bands_are_percentiles_over_the_draws_of_the_others():
    draws = np.random.default_rng(0).multivariate_normal([1.0, 0.7], COV, size=50)
    curve = demand_curve(shop(draws), "price", VALUES, 1, bands="bootstrap", level=0.9)
    table = logit(draws[:, 1:] - VALUES)
    np.testing.assert_allclose(curve.lower, np.quantile(table, 0.05, axis=0, method="weibull"), rtol=1e-10)
    np.testing.assert_allclose(curve.upper, np.quantile(table, 0.95, axis=0, method="weibull"), rtol=1e-10)
    np.testing.assert_allclose(curve.se, table.std(axis=0, ddof=1), rtol=1e-10)
    assert curve.interval == pytest.approx(tuple(np.quantile(draws[:, 0], [0.05, 0.95], method="weibull")))
    assert "3 replications failed" in curve.notes[0]


def test_without_bands_the_curve_is_the_same():
    curve = demand_curve(shop(), "price", VALUES, "buy", bands=None)
    np.testing.assert_allclose(curve.frequency, logit(0.7 - VALUES), rtol=1e-12)
    assert curve.frame[["lower", "upper", "se"]].isna().all(axis=None)
    assert list(curve.frame.columns) == ["value", "frequency", "lower", "upper", "se"]


def test_of_the_bus_each_point_is_a_solution_of_its_own(fit):
    values = np.array([3.0, 5.0, 8.0])
    curve = fit.demand_curve("RC", values, action="replace", per=12)

    def often(RC: float, theta11: float) -> float:
        policy = rv.solve(fit.mdp, fit.reward_model.value(np.array([RC, theta11]))).policy
        return 12 * float(long_run(fit.mdp, policy, fit.mdp.start()).visits @ policy[:, 1])

    np.testing.assert_allclose(curve.frequency, [often(v, fit.theta[1]) for v in values], rtol=1e-9)
    slope = [central_differences(lambda x, v=v: often(v, x[0]), fit.theta[1:])[0] for v in values]
    np.testing.assert_allclose(curve.se, np.abs(slope) * fit.bse["theta11"], rtol=1e-5)
    assert curve.at_estimate == pytest.approx(often(*fit.theta), rel=1e-9)
    assert curve.interval == pytest.approx(tuple(fit.conf_int().loc["RC"]), rel=1e-6)
    assert (np.diff(curve.frequency) < 0).all()  # demand slopes down


def test_where_the_estimate_lies_the_curve_meets_the_counterfactual(fit):
    curve = fit.demand_curve("RC", [fit.params["RC"]], action="replace")
    before = fit.counterfactual(params={"RC": 1.0}).before
    assert curve.frequency[0] == pytest.approx(before.frequencies[1], rel=1e-9)
    fixed = fit.counterfactual(params={"RC": fit.params["RC"]}).after
    assert curve.se[0] == pytest.approx(fixed.se.frequencies[1], rel=1e-9)
    assert curve.se[0] != pytest.approx(before.se.frequencies[1], rel=1e-2)  # there the cost is uncertain, too


def test_the_picture_has_the_curve_its_band_and_the_estimate():
    curve = demand_curve(shop(), "price", VALUES, "buy", per=12)
    ax: Any = curve.plot(xlabel="price", ylabel="expected purchases a year").axes[0]
    line, bar, dot = ax.get_lines()
    np.testing.assert_array_equal(line.get_xydata(), np.column_stack([VALUES, curve.frequency]))
    np.testing.assert_allclose(bar.get_xdata(), curve.interval)
    assert dot.get_xydata().tolist() == [[1.0, curve.at_estimate]]
    corners = ax.collections[0].get_paths()[0].vertices
    for x, low, high in zip(VALUES, curve.lower, curve.upper, strict=True):
        ends = corners[np.isclose(corners[:, 0], x), 1]
        assert (ends.min(), ends.max()) == pytest.approx((low, high))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("price", "expected purchases a year")
    assert ax.get_ylim()[0] == 0.0


def test_values_in_any_order_are_the_same_curve():
    """Rows stay as they were given; a line through them would fold."""
    mixed = np.array([2.0, 0.5, 3.0, 0.0])
    curve = demand_curve(shop(), "price", mixed, "buy")
    np.testing.assert_allclose(curve.to_frame()["frequency"], logit(0.7 - mixed), rtol=1e-12)
    line: Any = curve.plot().axes[0].get_lines()[0]
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([np.sort(mixed), logit(0.7 - np.sort(mixed))]))
    straight = demand_curve(shop(), "price", np.sort(mixed), "buy")
    one, other = (np.asarray(c.plot().axes[0].collections[0].get_paths()[0].vertices) for c in (curve, straight))
    np.testing.assert_allclose(one, other)


def printed(curve: DemandCurve) -> Floats:
    """The numbers between the rules."""
    lines = str(curve).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("--")) + 1
    last = next(i for i, line in enumerate(lines[first:], first) if line.startswith("=="))
    return np.array([line.split() for line in lines[first:last]], dtype=float)


def test_print_shows_the_numbers():
    curve = demand_curve(shop(), "price", VALUES, "buy", per=12)
    columns = ["value", "frequency", "se", "lower", "upper"]
    np.testing.assert_allclose(printed(curve), curve.frame[columns], atol=6e-5)
    assert "expected choices of “buy” per 12 decisions, by price" in str(curve)
    assert "At the estimate, price = 1 (-0.073516 to 2.0735): 5.1067." in str(curve)
    assert "Bands at 95 %, delta method" in str(curve)
    assert "Starts: uniform over the non-terminal states." in str(curve)
    assert "values;" not in str(curve)
    assert "5.1067" in curve.to_html()


def test_of_many_values_a_dozen_are_printed_from_end_to_end():
    curve = demand_curve(shop(), "price", np.linspace(3.0, 0.0, 101), "buy", bands=None)
    columns = str(curve).replace("–", "nan")
    assert "12 of 101 values; `to_frame()` has all." in columns
    shown = [float(line.split()[0]) for line in columns.splitlines() if "nan" in line]
    assert (shown[0], shown[-1], len(shown)) == (0.0, 3.0, 12)
    assert np.ptp(np.diff(shown)) <= 0.03 + 1e-9  # evenly, but for whole steps
    assert "Bands" not in columns


def test_it_draws_on_axes_that_are_given_and_says_what_it_shows():
    axes = Figure().subplots()
    figure = demand_curve(shop(), "price", VALUES, "buy", per=12, bands=None).plot(ax=axes)
    assert figure is axes.get_figure()
    assert axes.get_ylabel() == "expected choices of “buy” per 12 decisions"
    assert len(axes.collections) == 0
    with pytest.raises(InvalidInput, match="axes"):
        demand_curve(shop(), "price", VALUES, "buy").plot(ax="here")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("match", "error", "arguments"),
    [
        ("Did you mean price", InvalidInput, {"parameter": "prices"}),
        ("Did you mean buy", InvalidInput, {"action": "by"}),
        (r"one of leave, buy, or indices in 0…1; got 2", InvalidInput, {"action": 2}),
        ("one of leave, buy; got True", InvalidInput, {"action": True}),
        ("values", InvalidInput, {"values": []}),
        ("values", InvalidInput, {"values": 3.0}),
        ("values", InvalidInput, {"values": [1.0, np.nan]}),
        ("per", InvalidOption, {"per": 0}),
        ("bands", InvalidOption, {"bands": "jackknife"}),
        ("seed", InvalidOption, {"seed": 1}),
    ],
)
def test_questions_that_make_no_sense_are_refused(match, error, arguments):
    with pytest.raises(error, match=match):
        demand_curve(shop(), **{"parameter": "price", "values": VALUES, "action": "buy"} | arguments)


def test_the_value_that_is_no_number_is_named():
    with pytest.raises(InvalidInput, match=r"finite numbers; got nan \(first at position 1\)"):
        demand_curve(shop(), "price", [0.5, np.nan], "buy")
    with pytest.raises(InvalidInput, match=r"finite numbers; got \[\]"):
        demand_curve(shop(), "price", [], "buy")


def test_intervals_of_few_replications_say_so():
    rng = np.random.default_rng(0)
    for n, few in ((20, True), (100, False)):
        draws = rng.multivariate_normal([1.0, 0.7], COV, size=n)
        curve = demand_curve(shop(draws), "price", VALUES, "buy", bands="bootstrap")
        assert any("too few for confidence intervals" in note for note in curve.notes) == few
