"""Monte Carlo: figures that can be checked by hand, and data that depend on the seed alone."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from scipy.stats import binom

import revealed as rv
from revealed.diagnosis import Status
from revealed.environments import World, garnet, objectworld
from revealed.errors import InvalidOption, RevealedError, SolverFailed
from revealed.montecarlo import Study, name_of
from studies import THETA, Scripted, assert_same, coin, draws, row_of, study

# figures


def test_bias_spread_and_coverage_are_their_formulas():
    world = coin(theta=2.0)
    script = [(1.0, 1.0), (2.0, np.nan), (3.0, 0.4), (6.0, 1.0), "separated", SolverFailed]
    found = rv.monte_carlo(world, {"m": Scripted(script)}, replications=6, n=1)
    row = row_of(found, "m")
    assert (row["used"], row["no_interval"]) == (4, 1)
    assert row["bias"] == pytest.approx(1.0)  # (1 + 2 + 3 + 6)/4 − 2
    assert row["sd"] == pytest.approx(np.sqrt((4 + 1 + 0 + 9) / 3))
    assert row["bias_se"] == pytest.approx(row["sd"] / 2)
    assert row["rmse"] == pytest.approx(np.sqrt((1 + 0 + 1 + 16) / 4))
    assert row["mean_se"] == pytest.approx((1.0 + 0.4 + 1.0) / 3)
    assert row["coverage"] == pytest.approx(1 / 3)  # [−1, 3] holds 2; [2.2, 3.8] and [4, 8] do not
    assert row["coverage_se"] == pytest.approx(np.sqrt(3 / 7 * 4 / 7 / 7))  # (1 + 2) of (3 + 4)
    told = found.by_method().to_dict("records")[0]
    assert (told["replications"], told["used"], told["failed"], told["seconds"]) == (6, 4, 2, 0.25)


@pytest.mark.parametrize(("estimate", "coverage"), [(2.0, 1.0), (9.0, 0.0)])
def test_coverage_of_all_or_none_has_an_error_of_its_own(estimate, coverage):
    found = rv.monte_carlo(coin(theta=2.0), {"m": Scripted([(estimate, 1.0)] * 12)}, replications=12, n=1)
    row = row_of(found, "m")
    assert row["coverage"] == coverage
    assert row["coverage_se"] == pytest.approx(np.sqrt(14 / 16 * 2 / 16 / 16))


def test_failures_are_counted_by_code_with_the_first_reason():
    script = ["separated", SolverFailed, (1.0, 1.0), "separated"]
    found = rv.monte_carlo(coin(), {"m": Scripted(script)}, replications=4, n=1)
    assert found.failures["count"].to_dict() == {("m", "separated"): 2, ("m", "SolverFailed"): 1}
    assert found.failures.loc[("m", "SolverFailed"), "reason"] == "no solution"
    assert "2 left out, separated: as the script says" in " ".join(str(found).split())


def test_a_method_that_always_fails_has_a_row_without_figures():
    found = rv.monte_carlo(coin(), {"bad": Scripted([SolverFailed] * 3)}, replications=3, n=1)
    row = row_of(found, "bad")
    assert row["used"] == 0
    assert row[["bias", "sd", "coverage"]].isna().all()
    assert "–" in str(found)


@pytest.fixture(scope="module")
def logit():
    """200 data sets of 60 throws, fitted by maximum likelihood."""
    world = coin()
    fits = {"NFXP": rv.NFXP(world.reward_model())}
    return rv.monte_carlo(world, fits, replications=200, n=60, seed=7, kind="hessian", jobs=1)


def test_estimates_of_the_logit_are_log_odds_with_the_textbook_errors(logit):
    counts = np.array([demos.counts[0] for demos in draws(coin(), 200, 60, seed=7)])
    np.testing.assert_allclose(logit.frame["estimate"], np.log(counts[:, 1] / counts[:, 0]), rtol=1e-7)
    np.testing.assert_allclose(logit.frame["se"], np.sqrt(1.0 / counts[:, 0] + 1.0 / counts[:, 1]), rtol=1e-7)


def test_figures_of_the_logit_agree_with_the_binomial_distribution(logit):
    k = np.arange(1, 60)  # none or all of 60 has probability 1e-10
    weight = binom.pmf(k, 60, 1.0 / (1.0 + np.exp(-THETA)))
    estimate, se = np.log(k / (60 - k)), np.sqrt(1.0 / k + 1.0 / (60 - k))
    mean = weight @ estimate
    coverage = weight @ (np.abs(estimate - THETA) <= ndtri(0.975) * se)
    row = row_of(logit, "NFXP")
    assert abs(row["coverage"] - coverage) < 3.0 * row["coverage_se"]
    assert abs(row["bias"] - (mean - THETA)) < 3.0 * row["bias_se"]
    assert row["sd"] == pytest.approx(np.sqrt(weight @ (estimate - mean) ** 2), rel=0.15)
    assert row["mean_se"] == pytest.approx(weight @ se, rel=0.02)
    assert row["mean_se"] == pytest.approx(row["sd"], rel=0.15)


def test_data_without_a_maximum_are_left_out_and_counted():
    world = coin()
    found = rv.monte_carlo(world, [rv.NFXP(world.reward_model())], replications=40, n=4, seed=3)
    one_sided = sum(demos.counts.min() == 0 for demos in draws(world, 40, 4, seed=3))
    assert one_sided > 3
    assert found.failures.loc[("NFXP", "separated"), "count"] == one_sided
    assert found.table()["used"].tolist() == [40 - one_sided]


def test_the_level_is_that_of_the_intervals():
    world = coin()
    fits = {"NFXP": rv.NFXP(world.reward_model())}
    wide, narrow = (rv.monte_carlo(world, fits, 5, n=60, kind="hessian", level=q).frame for q in (0.95, 0.5))
    ratio = (narrow["upper"] - narrow["lower"]) / (wide["upper"] - wide["lower"])
    np.testing.assert_allclose(ratio, ndtri(0.75) / ndtri(0.975), rtol=1e-9)


# what is repeated


@pytest.fixture(scope="module")
def twelve():
    return study(jobs=1)


def test_workers_change_nothing(twelve):
    assert_same(study(jobs=2), twelve)


def test_every_method_sees_the_data_of_the_seed(twelve):
    world = garnet(6, 2, 2, seed=1)
    demos = Study(world, {}, 20, 10, 5, None, False, 0.95, None).draw(3)
    for name, method in (("NFXP(l2=0.001)", rv.NFXP), ("CCP(l2=0.001)", rv.CCP)):
        rows = twelve.frame[(twelve.frame["replication"] == 3) & (twelve.frame["method"] == name)]
        theta = method(world.reward_model(), l2=1e-3).fit(world.mdp, demos).theta
        np.testing.assert_array_equal(rows["estimate"], theta)


def test_replications_are_independent_of_each_other_and_of_their_number(twelve):
    few = study(replications=3)
    pd.testing.assert_frame_equal(few.frame[["estimate"]], twelve.frame[["estimate"]].head(len(few.frame)))
    assert twelve.frame.groupby("replication")["estimate"].first().nunique() == 12
    other = study(replications=3, seed=6)
    assert not np.isclose(other.frame["estimate"], few.frame["estimate"]).any()


def test_a_model_is_built_from_each_replication_s_own_data():
    world = coin()
    seen: list[float] = []

    def model(demos: rv.Demonstrations) -> rv.MDP:
        seen.append(demos.counts[0, 1])
        if len(seen) == 2:
            raise SolverFailed("this model cannot be built")
        return world.mdp

    found = rv.monte_carlo(world, [rv.NFXP(world.reward_model())], 3, n=50, model=model)
    assert seen == [demos.counts[0, 1] for demos in draws(world, 3, 50)]
    assert found.frame["used"].tolist() == [True, False, True]
    assert found.failures.loc[("NFXP", "SolverFailed"), "count"] == 1


def test_transitions_estimated_from_the_same_data_widen_the_errors():
    bus = rv.environments.rust_bus(bins=10, discount=0.9, RC=3.0, theta11=150.0)
    start = np.column_stack([np.arange(10), np.zeros(10, dtype=int)])
    landing = np.minimum(start[:, :, None] + np.arange(3), 9)

    def run(joint: bool) -> Any:
        def model(demos: rv.Demonstrations) -> rv.MDP:
            return rv.MDP(rv.estimate_transitions(demos, landing), bus.mdp.discount)

        fits = [rv.NFXP(bus.reward_model())]
        return rv.monte_carlo(bus, fits, 3, n=30, length=40, kind="hessian", joint=joint, model=model).frame

    alone, together = run(joint=False), run(joint=True)
    np.testing.assert_array_equal(alone["estimate"], together["estimate"])
    assert (together["se"] > alone["se"] * (1.0 + 1e-6)).all()


def test_npl_that_stops_on_purpose_counts_and_a_search_cut_short_does_not():
    """A number of updates that was asked for is an estimator; a search that was cut short is none, asked for or not."""
    bus = rv.environments.rust_bus(bins=30, discount=0.99, RC=5.0, theta11=50.0)
    reward = bus.reward_model()
    fits = {
        "two": rv.NPL(reward, updates=2),
        "cut": rv.NFXP(reward, max_iter=1),
        "both": rv.NPL(reward, updates=2, max_iter=1),
    }
    found = rv.monte_carlo(bus, fits, 3, n=50, length=50)
    status = found.frame.groupby("method")["status"].unique().str[0].to_dict()
    assert status == {"two": "converged", "cut": "iteration_limit", "both": "iteration_limit"}
    settled = found.frame.groupby("method")["settled"].unique().str[0].to_dict()
    assert settled == {"two": False, "cut": None, "both": False}
    assert found.by_method()["used"].to_dict() == {"two": 3, "cut": 0, "both": 0}
    assert found.table()["no_interval"].to_list() == [0] * 6
    assert found.frame.loc[found.frame["method"] != "two", "se"].isna().all()


def test_a_fit_without_standard_errors_counts_for_bias_and_says_why():
    world = coin()
    fits = {"occ": rv.NFXP(world.reward_model(), weighting="occupancy"), "ml": rv.NFXP(world.reward_model())}
    found = rv.monte_carlo(world, fits, 4, n=50)
    assert found.table()["no_interval"].to_dict() == {("occ", "theta"): 4, ("ml", "theta"): 0}
    assert found.table()["used"].tolist() == [4, 4]
    assert any("occ: 4 without an interval" in note and "bootstrap" in note for note in found.notes)


class Resampled(Scripted):
    """Its errors come from a bootstrap, which Ctrl-C may cut short."""

    def __init__(self, interrupted: bool) -> None:
        super().__init__([(0.8, 0.5)] * 2)
        self.interrupted, self.asked = interrupted, []

    def fit(self, mdp: rv.MDP, demos: rv.Demonstrations) -> Any:
        fit = super().fit(mdp, demos)
        fit.drawn = SimpleNamespace(interrupted=self.interrupted)

        def with_errors(kind: str, joint: bool, **options: Any) -> Any:
            self.asked.append((kind, joint, options))
            return fit

        fit.with_errors = with_errors
        return fit


def test_a_bootstrap_inside_a_study_keeps_to_its_worker():
    method = Resampled(interrupted=False)
    found = rv.monte_carlo(coin(), {"m": method}, 2, n=1, kind="bootstrap")
    assert method.asked == [("bootstrap", False, {"jobs": 1, "progress": False, "reps": 400})] * 2
    assert found.table()["coverage"].tolist() == [1.0]


def test_errors_are_those_of_a_bootstrap_with_as_many_draws_as_asked_for():
    world = coin()
    method = rv.NFXP(world.reward_model())
    found = rv.monte_carlo(world, {"m": method}, 2, n=50, kind="bootstrap", reps=30)
    for estimated, demos in zip(found.frame.itertuples(), draws(world, 2, 50), strict=True):
        told = method.fit(world.mdp, demos).with_errors("bootstrap", reps=30)
        assert estimated.se == pytest.approx(told.bse["theta"], rel=1e-12)
        interval = [estimated.lower, estimated.upper]
        assert interval == pytest.approx(told.conf_int().to_numpy()[0], rel=1e-12)
    assert found.about["reps"] == 30
    assert "bootstrap standard errors (30 replications each)" in " ".join(found.notes)


def test_half_a_bootstrap_is_no_result():
    with pytest.raises(KeyboardInterrupt):
        rv.monte_carlo(coin(), {"m": Resampled(interrupted=True)}, 2, n=1, kind="bootstrap")


# names and words


def test_methods_in_a_list_are_named_by_what_was_chosen():
    reward = coin().reward_model()
    named = [rv.NFXP(reward), rv.CCP(reward, first_step="kernel"), rv.NPL(reward, updates=2, l2=0.1)]
    assert [name_of(m) for m in named] == ["NFXP", "CCP(first_step=kernel)", "NPL(updates=2, l2=0.1)"]


def test_printed_forms_carry_the_same_figures_and_break_nothing():
    bad = "<script>&|_"
    found = rv.monte_carlo(coin(), {bad: Scripted([(1.0, 0.5), (1.25, 0.5)])}, 2, n=1)
    for text in (str(found), found._repr_html_(), found.to_latex(), found.to_markdown()):
        assert "0.325" in text  # the bias: 1.125 − 0.8
    assert "<script>" not in found._repr_html_()
    assert r"<script>&\|_: theta" in found.to_markdown()
    assert r"\&" in found.to_latex()


def test_what_is_printed_fits_a_terminal_and_is_what_the_table_says():
    """With the names that estimators get by themselves and numbers of usual size; the rest is in `table()`."""
    bus = rv.environments.rust_bus()
    names = ("CCP(first_step=smoothed)", "NPL(updates=2, l2=0.1)", "NFXP")
    fits = {name: Pair([-11.25 - k, 2.5 + k], [1.5, 0.25]) for k, name in enumerate(names)}
    found = rv.monte_carlo(bus, fits, 3, n=1, length=1)
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 80
    figures = found.table()[["bias", "sd", "rmse", "mean_se", "coverage", "coverage_se"]]
    assert bus.true_weights is not None
    for name, truth in zip(("RC", "theta11"), bus.true_weights, strict=True):
        start = lines.index(f"{name} = {truth:.3f}") + 1
        for method, line in zip(names, lines[start:], strict=False):
            shown = figures.loc[[(method, name)]].to_numpy()[0]
            cells = line.removeprefix(method).split()
            assert line.startswith(method)
            assert cells == [f"{x:.3f}" for x in shown] + (["0.250"] if name == "RC" else [])


class Pair:
    """A method that always gives the same estimates of two parameters."""

    def __init__(self, theta: list[float], se: list[float]) -> None:
        self.theta, self.se = np.array(theta), np.array(se)

    def fit(self, mdp: rv.MDP, demos: rv.Demonstrations) -> Any:
        interval = {"lower": self.theta - 2.0 * self.se, "upper": self.theta + 2.0 * self.se}
        return SimpleNamespace(
            theta=self.theta,
            bse=pd.Series(self.se),
            conf_int=lambda alpha: pd.DataFrame(interval),
            status=Status("converged", ""),
            settled=None,
            seconds=0.25,
        )


def test_the_picture_shows_medians_beside_the_truth(logit):
    (ax,) = logit.plot().axes
    lines = [np.asarray(line.get_xdata(), dtype=float) for line in ax.get_lines()]
    assert any(line.shape == (1,) and np.isclose(line[0], logit.frame["estimate"].median()) for line in lines)
    np.testing.assert_array_equal(lines[-1], [THETA, THETA])


# doors


A_RECIPE = rv.Recipe(panel=("p.csv",), id="i", time="t", state=("s",), action=("a",), reward="tabular")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replications": 0}, "replications"),
        ({"n": 2.5}, "`n`"),
        ({"seed": None}, "seed"),
        ({"seed": -1}, "seed"),
        ({"level": 95}, "level"),
        ({"kind": "jackknife"}, "hessian"),
        ({"joint": 1}, "joint"),
        ({"model": 3}, "model"),
        ({"jobs": 0}, "jobs"),
        ({"methods": {}}, "at least one"),
        (
            {"methods": [rv.NFXP]},
            r"the class NFXP \(first at methods\[0\]\)\. Pass rv\.NFXP\(world\.rew",
        ),
        ({"methods": rv.CCP}, r"the class CCP .* Pass rv\.CCP\(world\.reward_model\(\)\)"),
        ({"methods": {"mine": rv.NPL}}, r"first at methods\['mine'\].* Pass rv\.NPL\(world\.reward_model\(\)\)"),
        ({"methods": ["NFXP"]}, r"got 'NFXP' \(first at methods\[0\]\)\. Pass rv\.NFXP\(world\.reward_model\(\)\)"),
        ({"methods": "npl"}, r"got 'npl' .* Pass rv\.NPL\(world\.reward_model\(\)\)"),
        ({"methods": [Scripted]}, r"the class Scripted .* Pass an instance, Scripted\(\.\.\.\)"),
        ({"methods": [coin().mdp]}, r"got MDP .* Pass rv\.NFXP\(world\.reward_model\(\)\)"),
        ({"methods": [A_RECIPE]}, r"got Recipe .* Pass rv\.NFXP\(world\.reward_model\(\)\)"),
        ({"reps": 50}, r"`reps` requires `kind=\"bootstrap\"`\. The number of data sets is `replications`\."),
        ({"reps": 50, "kind": "hessian"}, r"`reps` requires `kind=\"bootstrap\"`"),
        ({"reps": 1, "kind": "bootstrap"}, "`reps`: expected a whole number, at least 2"),
        ({"model": lambda demos: None}, r"`model`: expected a function that returns an rv\.MDP; got NoneType"),
        ({"methods": [rv.NFXP(rv.LinearReward(np.ones((1, 2, 3))))]}, "1 parameters"),
        ({"methods": [rv.NFXP(coin().reward_model())] * 2}, "dict that names them"),
        ({"world": coin().mdp}, "World"),
        ({"world": World("no", coin().mdp, np.ones((1, 1)), np.zeros((1, 2)), np.ones((1, 2)) / 2)}, "true_weights"),
        ({"world": objectworld(size=4)}, r"Objectworld.*rust_bus, garnet, obstacleworld.*world\.evaluate\(fit\)"),
    ],
)
def test_bad_arguments_are_named(options, words):
    given: dict[str, Any] = {"world": coin(), "methods": [rv.NFXP(coin().reward_model())], "replications": 1, "n": 5}
    with pytest.raises(RevealedError, match=words):
        rv.monte_carlo(**(given | options))


def test_errors_that_no_data_would_give_end_the_study():
    world = coin()
    with pytest.raises(InvalidOption, match="bootstrap"):
        rv.monte_carlo(world, [rv.NFXP(world.reward_model(), weighting="occupancy")], 2, n=20, kind="hessian")
    with pytest.raises(InvalidOption, match="joint"):
        rv.monte_carlo(world, [rv.NFXP(world.reward_model())], 2, n=20, joint=True)
