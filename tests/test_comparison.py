"""Fits side by side: the union of their parameters, errors in brackets, and a word where they cannot be compared."""

from dataclasses import replace

import numpy as np
import pytest

import revealed as rv
from fits import MadeUp, Reader
from models import draw, random_mdp
from networks import random_trips
from revealed.comparison import compare_fits

GROUP4 = MadeUp()
MYOPIC = MadeUp((7.6358, 71.5133), (0.7197, 13.778), llf=-165.458)
OTHER = MadeUp((11.727, 4.8259, 0.5), (2.602, 1.792, 0.1), ("RC", "theta12", "scrap"), nobs=3864, llf=-131.08)


def cells(comparison, row: str) -> list[str]:
    """The cells of a row, by way of HTML, where they have no spaces."""
    (found,) = [line[1:] for line in Reader(comparison.to_html()).rows if line[0] == row]
    return found


def below(comparison, row: str) -> list[str]:
    """The cells under a row."""
    rows = Reader(comparison.to_html()).rows
    return rows[[line[0] for line in rows].index(row) + 1]


def test_one_column_per_fit_and_one_row_per_parameter_in_order_of_appearance():
    table = compare_fits([GROUP4, OTHER], names=["4", "1-3"])
    names = [row[0] for row in Reader(table.to_html()).rows if row[0]]
    assert names[:4] == ["RC", "theta11", "theta12", "scrap"]
    assert cells(table, "RC") == ["10.0750", "11.7270"]
    assert below(table, "RC") == ["", "(1.5820)", "(2.6020)"]
    assert cells(table, "theta11") == ["2.2930", ""]
    assert below(table, "theta12") == ["", "", "(1.7920)"]


def test_statistics_follow():
    table = compare_fits({"dynamic": GROUP4, "myopic": MYOPIC})
    assert cells(table, "Log likelihood") == ["−163.581", "−165.458"]
    assert cells(table, "Observations") == ["4292", "4292"]
    assert cells(table, "AIC") == ["331.16", "334.92"]
    assert cells(table, "BIC") == [f"{fit.bic:.2f}" for fit in (GROUP4, MYOPIC)]
    facts = {"Method": "NFXP", "Covariance": "hessian", "Status": "converged", "Seconds": "0.021", "Agents": "37"}
    for row, text in facts.items():
        assert cells(table, row) == [text, text]
    assert table.statistics.loc["AIC", "myopic"] == pytest.approx(2 * 2 + 2 * 165.458)


def test_points_stand_below_points():
    lines = str(compare_fits([GROUP4, MYOPIC], names=["a", "b"])).splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("RC"))
    points = [[k for k, sign in enumerate(line) if sign == "."] for line in lines[start : start + 4]]
    assert points[0] == points[1] == points[2] == points[3]
    starred = str(compare_fits([GROUP4, MYOPIC], stars=True)).splitlines()
    assert len({line.index(".") for line in starred[start : start + 4]}) == 1


def test_stars_follow_the_p_values():
    fit = MadeUp((2.58, 1.97, 1.65, 1.64), (1, 1, 1, 1), "abcd")
    table = compare_fits([fit], stars=True)
    assert [cells(table, name)[0] for name in "abcd"] == ["2.5800***", "1.9700**", "1.6500*", "1.6400"]
    assert "*** p < 0.01" in str(table)
    assert "*" not in str(compare_fits([fit]))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (None, ["NFXP (1)", "NFXP (2)", "NFXP (3)"]),
        (["a", "b", "a"], ["a (1)", "b", "a (2)"]),
        (["a", "a", "a (1)"], ["a (2)", "a (3)", "a (1)"]),
    ],
)
def test_names_that_occur_twice_are_numbered(names, expected):
    table = compare_fits([GROUP4, MYOPIC, MadeUp(llf=-170.0)], names=names)
    assert list(table.statistics.columns) == expected
    assert Reader(table.to_html()).rows[0][1:] == expected


def test_discount_agents_and_first_step_have_rows():
    table = compare_fits([MadeUp(discount=0.0), MadeUp(method="CCP", first_step="smoothed", agents=None)])
    assert cells(table, "Discount") == ["0", "0.9999"]
    assert cells(table, "Agents") == ["37", "not known"]
    assert cells(table, "First step") == ["", "smoothed (alpha=1)"]
    assert "First step" not in str(compare_fits([GROUP4, MYOPIC]))
    assert "First step" not in compare_fits([GROUP4, MYOPIC]).statistics.index
    assert list(table.statistics.loc["Discount"]) == [0.0, 0.9999]


@pytest.mark.parametrize(
    ("fits", "expected"),
    [
        ([{}, {"discount": 0.0}], ["NFXP (γ = 0.9999)", "NFXP (γ = 0)"]),
        ([{"method": "CCP"}, {"method": "CCP", "first_step": "logit"}], ["CCP (frequency)", "CCP (logit)"]),
        (
            [{"method": "CCP", "first_step": step} for step in ("logit", rv.first_step.Logit(l2=0.01), "smoothed")],
            ["CCP (logit)", "CCP (logit, l2=0.01, standardised)", "CCP (smoothed, alpha=1)"],
        ),
        ([{}, {"weighting": "occupancy"}], ["NFXP (sample)", "NFXP (occupancy)"]),
        ([{}, {"l2": 0.1}], ["NFXP (l2 = 0)", "NFXP (l2 = 0.1)"]),
        ([{}, {"l2": 1.0 / 3000.0}], ["NFXP (l2 = 0)", "NFXP (l2 = 0.000333)"]),
        ([{"names": ("RC", "x")}, {"names": ("RC", "y")}], ["NFXP (RC, x)", "NFXP (RC, y)"]),
        (
            [{}, {"coef": (1.0,) * 3, "errs": (1.0,) * 3, "names": ("RC", "x", "y"), "l2": 0.1}],
            ["NFXP (2 features)", "NFXP (3 features)"],
        ),
        ([{}, {"linear": False}], ["NFXP (2 features)", "NFXP (function of 2 parameters)"]),
        ([{}, {"errors": ("cluster", False)}], ["NFXP (hessian)", "NFXP (cluster)"]),
        ([{"method": "NPL", "settled": False, "updates": k} for k in (2, 3)], ["NPL (2 updates)", "NPL (3 updates)"]),
        ([{}, {"discount": 0.0}, {"method": "CCP"}], ["NFXP (γ = 0.9999)", "NFXP (γ = 0)", "CCP"]),
        (
            [{}, {"discount": 0.0}, {"discount": 0.0, "l2": 0.1}],
            ["NFXP (γ = 0.9999, l2 = 0)", "NFXP (γ = 0, l2 = 0)", "NFXP (γ = 0, l2 = 0.1)"],
        ),
        ([{}, {"discount": 0.0}, {"discount": 0.0}], ["NFXP (γ = 0.9999)", "NFXP (γ = 0) (1)", "NFXP (γ = 0) (2)"]),
    ],
)
def test_names_that_occur_twice_are_told_apart_by_what_differs(fits, expected):
    assert list(compare_fits([MadeUp(**options) for options in fits]).statistics.columns) == expected


def test_each_first_step_is_told_what_it_hangs_on():
    steps = {"NFXP": None, "freq": "frequency", "logit": "logit", "kernel": "kernel", "mine": np.ones((90, 2))}
    fits = {name: MadeUp(method="CCP", first_step=step) if name != "NFXP" else GROUP4 for name, step in steps.items()}
    text = " ".join(str(compare_fits(fits)).split())
    assert "whose finite-sample bias the standard errors ignore: freq; kernel." in text
    assert "otherwise a bias remains that more data do not remove: logit." in text
    assert "which is taken as the truth: mine." in text
    assert "are not comparable with the others: freq; logit; kernel; mine." in text


def test_fits_on_different_data_are_told_apart():
    assert "cannot be compared" not in str(compare_fits([GROUP4, MYOPIC]))
    assert "different numbers of observations" in str(compare_fits([GROUP4, OTHER]))
    moved, wider = MadeUp(), MadeUp()
    moved.demonstrations.counts = np.array([[4260.0, 32.0]])
    wider.demonstrations.counts = np.array([[4259.0, 33.0], [0.0, 0.0]])
    assert "different decisions" in str(compare_fits([GROUP4, moved]))
    assert "different states or actions" in str(compare_fits([GROUP4, wider]))


def test_what_a_column_lacks_is_told_below():
    bare = MadeUp(
        method="MCE-IRL", weighting="occupancy", raises=rv.errors.InvalidOption("kind", "bootstrap", "hessian")
    )
    table = compare_fits([GROUP4, bare, MadeUp(method="CCP", l2=0.1), MadeUp(errs=(np.nan, 0.6), method="NPL")])
    text = str(table)
    assert below(table, "RC") == ["", "(1.5820)", "", "(1.5820)", "(–)"]
    assert cells(table, "Covariance") == ["hessian", "none", "hessian", "hessian"]
    assert "Without standard errors: MCE-IRL" in text
    assert "occupancy weighting the log likelihood is not what was maximised" in text
    assert "the standard errors ignore the shrinkage: CCP." in text
    assert "whose finite-sample bias the standard errors ignore: CCP." in text


def test_a_fit_with_very_many_parameters_gives_statistics_only():
    many = MadeUp(np.ones(50), np.ones(50), [f"s{k}" for k in range(50)], method="MCE-IRL")
    table = compare_fits([GROUP4, many])
    assert "s7" not in str(table)
    assert cells(table, "Parameters") == ["2", "50"]
    assert "Too many parameters to list: MCE-IRL." in str(table)
    assert len(table.to_frame()) == 52
    assert "Log likelihood" in str(compare_fits([many]))


def test_the_frame_has_coefficients_and_errors_of_each_fit():
    frame = compare_fits({"4": GROUP4, "1-3": OTHER}).to_frame()
    assert list(frame.index) == ["RC", "theta11", "theta12", "scrap"]
    assert list(frame.columns) == [("4", "coef"), ("4", "std err"), ("1-3", "coef"), ("1-3", "std err")]
    assert frame.loc["RC", ("1-3", "std err")] == 2.602
    assert frame["4", "coef"].isna().tolist() == [False, False, True, True]


def test_latex_has_a_rule_before_the_statistics():
    latex = compare_fits([GROUP4, OTHER], names=["a_1", "b"], stars=True).to_latex()
    lines = latex.splitlines()
    assert r" & a\_1 & b \\" in lines
    assert r"RC & 10.0750{*}{*}{*} & 11.7270{*}{*}{*} \\" in lines
    assert r" & (1.5820) & (2.6020) \\" in lines
    assert lines[lines.index(r"Log likelihood & $-$163.581 & $-$131.080 \\") - 1] == r"\midrule"


@pytest.mark.parametrize("fits", [[], {}, None, 3, [3], [GROUP4, None], "fits", [MadeUp], GROUP4])
def test_what_is_no_list_of_fits_is_refused(fits):
    with pytest.raises(rv.errors.InvalidInput, match="fits"):
        compare_fits(fits)


@pytest.mark.parametrize("names", [["a"], "ab", 3, ["a", "b", "c"]])
def test_names_must_be_one_per_fit(names):
    with pytest.raises(rv.errors.InvalidInput, match="names"):
        compare_fits([GROUP4, MYOPIC], names=names)


def test_a_dictionary_has_its_names_already():
    with pytest.raises(rv.errors.InvalidInput, match="dictionary"):
        compare_fits({"a": GROUP4}, names=["b"])
    with pytest.raises(rv.errors.InvalidOption, match="stars"):
        compare_fits([GROUP4], stars="yes")  # pyright: ignore[reportArgumentType]


def test_real_fits_stand_side_by_side():
    mdp = random_mdp(10, 3, seed=1, initial=True)
    features = np.random.default_rng(0).normal(size=(10, 3, 2))
    demos = draw(mdp, features @ [1.0, -0.5], 300, 30)
    reward = rv.LinearReward(features, names=["fuel", "wear"])
    nfxp, npl = rv.NFXP(reward).fit(mdp, demos), rv.NPL(reward, updates=30).fit(mdp, demos)
    table = rv.compare_fits([nfxp, npl])
    one, two = cells(table, "fuel")
    assert one == two  # NPL that has settled is NFXP
    assert below(table, "fuel")[1] == below(table, "fuel")[2] == f"({nfxp.bse['fuel']:.{len(one.partition('.')[2])}f})"
    assert "cannot be compared" not in str(table)
    some = rv.NFXP(reward).fit(mdp, demos.subset(range(150)))
    assert "cannot be compared" in str(rv.compare_fits([nfxp, some]))


def test_trips_to_other_goals_are_other_data():
    made = random_trips(1, S=12, n=40)
    demos = made.demos
    steps = demos.steps
    assert steps is not None
    one = rv.NFXP(made.reward).fit(made.mdp, demos)
    table = compare_fits([one, one])
    for row, told in {"Trips": "40", "Decisions": f"{one.n_decisions}", "Goals": "5"}.items():
        assert cells(table, row) == [told, told]
    assert cells(table, "Covariance") == ["cluster by trip"] * 2
    assert "different data" not in str(table)
    cut = replace(steps, goal=np.where(steps.goal == one.goal_states[0], one.goal_states[1], steps.goal))
    other = replace(one, demonstrations=replace(demos, steps=cut))
    assert "different data (different goals)" in " ".join(str(compare_fits([one, other])).split())
    assert "Trips" not in str(compare_fits([GROUP4, MYOPIC]))


def test_fits_may_come_one_by_one():
    names = list(compare_fits(GROUP4, MYOPIC, OTHER, names=["a", "b", "c"]).statistics.columns)
    assert names == ["a", "b", "c"]
    assert str(compare_fits(GROUP4, MYOPIC)) == str(compare_fits([GROUP4, MYOPIC]))
    assert str(compare_fits([GROUP4, MYOPIC], ["a", "b"], True)) == str(
        compare_fits([GROUP4, MYOPIC], names=["a", "b"], stars=True)
    )
    with pytest.raises(rv.errors.InvalidInput, match=r"one list of fits.*compare_fits\(\[a, b, c\]"):
        compare_fits([GROUP4], MYOPIC)
    with pytest.raises(rv.errors.InvalidInput, match=r"position 1"):
        compare_fits(GROUP4, "MYOPIC")
    with pytest.raises(rv.errors.InvalidInput, match=r"`names` is given twice"):
        compare_fits([GROUP4, MYOPIC], ["c", "d"], names=["a", "b"])
    with pytest.raises(rv.errors.InvalidInput, match=r"`names`: expected a list of 2 names"):
        compare_fits([GROUP4, MYOPIC], [["a"], ["b"]])


def test_a_fit_that_did_not_converge_has_a_footnote():
    lost = MadeUp(method="CCP", code="separated", message="the likelihood has no maximum.")
    assert "CCP: the likelihood has no maximum." in str(compare_fits([GROUP4, lost]))
    assert "gradient norm" not in str(compare_fits([GROUP4, lost]))
