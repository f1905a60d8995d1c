"""The printed form of a fit: its numbers are the fit's, its words tell what to believe, and it never fails to print."""

import re

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import revealed as rv
from fits import MadeUp, Reader
from models import corridor, draw, random_mdp
from networks import random_trips
from revealed.summary import Summary, covariance_words

MOVES = ("p0", "p1")
NUMBER = r"(-?[\d.]+(?:e[+-]\d+)?|–)"


def words(fit: MadeUp | rv.Fit) -> str:
    """The summary's text with lines joined, so that sentences can be found."""
    return " ".join(str(fit.summary()).split())


def row(text: str, name: str) -> list[str]:
    """The cells of a parameter's line."""
    (line,) = [line for line in text.splitlines() if line.startswith(name + " ")]
    return re.findall(NUMBER, line[len(name) :])


def test_a_line_holds_coefficient_error_z_p_and_interval():
    cells = [float(cell) for cell in row(str(MadeUp().summary()), "RC")]
    z = 10.075 / 1.582
    expected = [10.075, 1.582, z, 2 * ndtr(-z), 10.075 - ndtri(0.975) * 1.582, 10.075 + ndtri(0.975) * 1.582]
    np.testing.assert_allclose(cells, expected, atol=5.01e-4)
    np.testing.assert_allclose(cells[:2] + cells[4:], expected[:2] + expected[4:], atol=5.01e-5)


def test_another_alpha_changes_the_interval_and_its_name():
    text = str(MadeUp().summary(alpha=0.1))
    assert "[0.05" in text
    assert "0.95]" in text
    assert float(row(text, "RC")[4]) == pytest.approx(10.075 - ndtri(0.95) * 1.582, abs=5.01e-5)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, "a", None, True])
def test_an_interval_needs_a_level(alpha):
    with pytest.raises(rv.errors.InvalidOption, match="alpha"):
        MadeUp().summary(alpha=alpha)


def test_the_header_gives_the_facts():
    text = words(MadeUp(method="NPL", settled=True, updates=5))
    for fact in (
        "Method: NPL",
        "Reward: MileageReward",
        "Weighting: sample",
        "First step: frequency",
        "States, actions: 90, 2",
        "Discount: 0.9999",
        "Status: converged",
        "Observations: 4292",
        "Agents: 37",
        "Log likelihood: -163.581",
        "AIC: 331.16",
        f"BIC: {2 * np.log(4292) + 2 * 163.581:.2f}",
        "Iterations: 7 in 5 updates",
        "Seconds: 0.021",
        "Covariance type: hessian",
    ):
        assert fact in text
    assert "First step" not in words(MadeUp())


def test_the_table_is_as_wide_as_a_terminal_and_wider_only_for_long_names():
    assert {len(line) for line in str(MadeUp().summary()).splitlines() if set(line) <= set("=-")} == {78}
    assert max(len(line) for line in str(MadeUp().summary()).splitlines()) == 78
    wide = str(MadeUp(names=("RC", "what it costs to run an engine over one more bin of mileage")).summary())
    assert len(wide.splitlines()[0]) > 80


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"errors": ("hessian", False)}, "hessian"),
        ({"errors": ("hessian", False), "moves": MOVES}, "hessian; transitions taken as known"),
        ({"errors": ("opg", True), "moves": MOVES}, "opg, joint with 2 transition parameters"),
        ({"errors": ("opg", True), "moves": ("p0",)}, "opg, joint with 1 transition parameter"),
        ({"errors": ("cluster", False), "moves": MOVES}, "cluster by agent (37); transitions taken as known"),
        ({"errors": ("hessian", False), "moves": ()}, "hessian"),
        ({"errors": ("robust", False)}, "robust (sandwich)"),
        ({"errors": ("cluster", False)}, "cluster by agent (37)"),
        ({"errors": ("bootstrap", False)}, "bootstrap (400 replications)"),
        ({"errors": ("bootstrap", False), "moves": MOVES}, "bootstrap (400 replications)"),
        (
            {"errors": ("bootstrap", False), "moves": MOVES, "resampled": False},
            "bootstrap (400 replications); transitions taken as known",
        ),
        ({"errors": ("bootstrap", False), "failures": {"separated": 3}}, "bootstrap (400 replications, 3 failed)"),
    ],
)
def test_the_covariance_is_named(options, expected):
    fit = MadeUp(**options)
    assert covariance_words(fit) == expected
    assert f"Covariance type: {expected}" in words(fit)


def test_joint_errors_show_the_transitions_below_the_reward():
    joint, plain = (MadeUp(errors=("opg", flag), moves=MOVES).summary() for flag in (True, False))
    assert row(str(joint), "theta11") == row(str(plain), "theta11")
    lines = str(joint).splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("p0 "))
    assert lines[first - 2].startswith("theta11")
    assert set(lines[first - 1]) == {"-"}
    z = 0.3919 / 0.0075
    expected = [0.3919, 0.0075, z, 0.0, 0.3919 - ndtri(0.975) * 0.0075, 0.3919 + ndtri(0.975) * 0.0075]
    np.testing.assert_allclose([float(cell) for cell in row(str(joint), "p0")], expected, atol=5.01e-4)
    assert "p0" not in str(plain)
    assert r"\midrule" + "\np0 & 0.3919 & 0.0075" in joint.to_latex()


def test_the_frame_has_the_transitions_with_joint_errors():
    joint, plain = (MadeUp(errors=("opg", flag), moves=MOVES).summary().to_frame() for flag in (True, False))
    assert list(joint.index) == ["RC", "theta11", "p0", "p1"]
    assert joint[:2].equals(plain)
    np.testing.assert_allclose(joint["coef"][2:], [0.3919, 0.5953])
    np.testing.assert_allclose(joint["std err"][2:], 0.0075)


def test_the_bootstrap_gives_transitions_the_interval_of_its_percentiles():
    frame = MadeUp(errors=("bootstrap", True), moves=MOVES).summary(alpha=0.1).to_frame()
    reach = 2.0 - 4.0 * (401 * 0.05 - 1) / 399  # draws spread evenly over ±2 standard errors; the 20.05th of 400
    np.testing.assert_allclose(frame["lower"]["p0"], 0.3919 - reach * 0.0075)
    np.testing.assert_allclose(frame["upper"]["p1"], 0.5953 + reach * 0.0075)


def test_of_very_many_transition_parameters_the_number_is_told():
    fit = MadeUp(errors=("opg", True), moves=[f"p{k}" for k in range(31)])
    assert "p7" not in str(fit.summary())
    assert "And 31 transition parameters, which summary().to_frame() lists." in words(fit)
    assert len(fit.summary().to_frame()) == 33
    assert len(row(str(MadeUp(errors=("opg", True), moves=[f"p{k}" for k in range(30)]).summary()), "p29")) == 6


def test_what_moves_do_not_tell_apart_has_no_error_and_a_reason():
    fit = MadeUp(errors=("opg", True), moves=MOVES)
    fit.psi_errs[1] = np.nan
    assert row(str(fit.summary()), "p1") == ["0.5953", "–", "–", "–", "–", "–"]
    assert "the observed moves do not identify it" in words(fit)
    fit.at_maximum = False
    assert "the moves seen" not in words(fit)


def test_counts_do_not_tell_how_many_agents_made_them():
    assert "Agents: not known" in words(MadeUp(agents=None))
    assert "Agents: 1 " in words(MadeUp(agents=1))


def test_numbers_of_all_sizes_stay_readable_and_aligned():
    fit = MadeUp((1e-6, 1e8, -3.0), (2e-7, 3e6, 0.01), ("small", "large", "plain"))
    lines = [line for line in str(fit.summary()).splitlines() if line.startswith(("small", "large", "plain"))]
    assert len({len(line) for line in lines}) == 1
    for line, coef, err in zip(lines, fit.theta, fit.bse, strict=True):
        cells = re.findall(NUMBER, line)
        assert float(cells[0]) == pytest.approx(coef, rel=1e-4)
        assert float(cells[1]) == pytest.approx(err, rel=1e-4)


# what to believe


def test_without_standard_errors_the_coefficients_remain_and_one_line_says_why():
    problem = rv.errors.InvalidOption("kind", "bootstrap with occupancy weighting", "'hessian'")
    fit = MadeUp(weighting="occupancy", raises=problem)
    assert row(str(fit.summary()), "RC") == ["10.0750"]
    assert "std err" not in str(fit.summary())
    assert "Covariance type" not in str(fit.summary())
    assert "No standard errors: with occupancy weighting the objective is not a likelihood" in words(fit)
    frame = fit.summary().to_frame()
    np.testing.assert_array_equal(frame["coef"], fit.theta)
    assert frame.drop(columns="coef").isna().all(axis=None)


def test_any_other_reason_is_told_in_its_own_words():
    problem = rv.errors.InvalidOption("kind", "two agents or more to cluster by", "one", remedy='Use kind="robust".')
    text = words(MadeUp(raises=problem))
    assert 'No standard errors: expected two agents or more to cluster by; got one. Use kind="robust".' in text
    assert "No standard errors: singular" in words(MadeUp(raises=rv.errors.SolverFailed("singular")))


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("separated", "the likelihood is separated"),
        ("unidentified", "choices do not identify"),
        ("converged", "not that of a maximum"),
    ],
)
def test_what_has_no_error_is_a_dash_with_its_reason(code, why):
    fit = MadeUp(errs=(np.nan, 0.639), code=code)
    assert row(str(fit.summary()), "RC") == ["10.0750", "–", "–", "–", "–", "–"]
    assert why in words(fit)
    assert why not in words(MadeUp(code=code))


def test_a_search_that_was_stopped_gives_no_errors_and_says_so():
    text = words(MadeUp(errs=(np.nan, np.nan), code="iteration_limit", at_maximum=False))
    assert "–: no standard error, since the search did not finish." in text
    assert "not that of a maximum" not in text


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ({"method": "CCP"}, True),
        ({"method": "NPL", "settled": False}, True),
        ({"method": "NPL", "settled": True}, False),
        ({"method": "NFXP"}, False),
        ({"method": "MCE-IRL"}, False),
    ],
)
def test_only_an_unsettled_first_step_is_warned_of(options, warned):
    text = words(MadeUp(**options))
    assert ("asymptotically valid (the first step enters with zero derivative)" in text) is warned
    assert ('fit.with_errors("bootstrap") re-estimates the first step' in text) is warned
    assert ("spread, not bias" in text) is warned


def test_the_bootstrap_of_a_first_step_measures_spread_alone():
    text = words(MadeUp(method="CCP", errors=("bootstrap", False), failures={"separated": 30}))
    assert "measures spread, not the bias" in text
    assert "asymptotically valid" not in text
    assert "30 failed (separated: 30); with this many failures" in text


class Guess:
    """A first step of one's own."""

    def estimate(self, mdp, counts, reward):
        return mdp.uniform_policy()


FORMS = [
    ("frequency", ""),
    ("smoothed", ""),
    ("kernel", ""),
    (rv.first_step.Frequency(), ""),
    (rv.first_step.Smoothed(0.1), ""),
    (rv.first_step.Kernel(), ""),
    (rv.first_step.Kernel(bandwidth=0.3), "a kernel of fixed width that is too wide"),
    (rv.first_step.Kernel(distance=np.ones((90, 90))), "a kernel of fixed width that is too wide"),
    ("logit", "a misspecified logit"),
    (rv.first_step.Logit(), "a misspecified logit"),
    (rv.first_step.Logit(l2=0.01), "a penalised or misspecified logit"),
    (rv.first_step.GoalLogit(l2=0.01), "a penalised or misspecified logit"),
    (Guess(), "a misspecified one"),
]


SHOWN = [
    ("frequency", "frequency"),
    ("smoothed", "smoothed (alpha=1)"),
    (rv.first_step.Smoothed(0.1), "smoothed (alpha=0.1)"),
    ("kernel", f"kernel (Scott's bandwidth={1200 ** (-1 / 5):.3g})"),  # of the mileage alone: RC does not vary
    (rv.first_step.Kernel(bandwidth=0.3), "kernel (bandwidth=0.3)"),
    (rv.first_step.Kernel(distance=1.0 - np.eye(90)), "kernel (bandwidth=1)"),
    ("logit", "logit"),
    (rv.first_step.Logit(l2=0.01), "logit (l2=0.01, standardised)"),
]


@pytest.mark.parametrize(
    ("method", "options"), [(rv.CCP, {}), (rv.NPL, {"updates": 2}), (rv.NFXP, {"weighting": "occupancy"})]
)
@pytest.mark.parametrize(("first_step", "shown"), SHOWN)
def test_what_shapes_a_first_step_beside_the_data_is_shown(first_step, shown, method, options):
    """A penalty, a pseudo-count, a bandwidth: by every method that uses π̂_E."""
    world = rv.environments.rust_bus()
    demos = world.demonstrate(10, 120, seed=0)
    fit = method(world.reward_model(), first_step=first_step, max_iter=2, **options).fit(world.mdp, demos)
    assert re.search(rf"^First step: +{re.escape(shown)}( |$)", str(fit.summary()), re.MULTILINE)


@pytest.mark.parametrize("kind", ["hessian", "bootstrap"])
@pytest.mark.parametrize(("first_step", "what"), FORMS)
def test_a_first_step_of_one_form_is_valid_only_if_the_form_is_right(first_step, what, kind):
    text = words(MadeUp(method="CCP", first_step=first_step, errors=(kind, False)))
    assert (
        f"only if the first step is correctly specified: {what} leaves a bias that more data do not" in text
    ) is bool(what)
    consistent = "asymptotically valid" if kind == "hessian" else "measures spread, not the bias"
    assert (consistent in text) is not bool(what)
    narrowing = not what and "kernel" in str(first_step).lower()
    assert ("only if its features distinguish states" in text) is narrowing


def test_the_form_of_a_first_step_matters_where_estimates_hang_on_it():
    assert "correctly specified" not in words(MadeUp(method="NPL", settled=True, first_step="logit"))
    assert "correctly specified" in words(MadeUp(method="NPL", settled=False, first_step="logit"))
    resampled = {"weighting": "occupancy", "errors": ("bootstrap", False)}
    assert "correctly specified" in words(MadeUp(method="NPL", settled=True, first_step="logit", **resampled))
    assert "correctly specified" not in words(MadeUp(method="MCE-IRL", **resampled))


def test_a_given_first_step_is_taken_as_true():
    text = words(MadeUp(method="CCP", first_step=np.ones((90, 2))))
    assert "First step: given" in text
    assert "as known" in text
    assert "re-estimates" not in text


def test_a_penalty_is_told_of():
    assert "ignore the shrinkage by the penalty (l2 = 0.01)" in words(MadeUp(l2=0.01))
    assert "Penalty l2: 0.01" in words(MadeUp(l2=0.01))
    assert "shrinkage" not in words(MadeUp())


def test_status_notes_and_weak_directions_stand_below_the_table():
    fit = MadeUp(remarks=("three moves are impossible.",), weak="features `a` and `b` are nearly collinear")
    text = words(fit)
    assert "converged: gradient norm 9.8e-10 <= tol 1.0e-09. Note: three moves are impossible." in text
    assert "Weak identification: features `a` and `b` are nearly collinear." in text
    assert "Weak identification" not in words(MadeUp())
    assert "Weak identification" not in words(MadeUp(code="unidentified", weak="what the status says already"))


def test_of_a_network_one_sentence_tells_what_choices_tell():
    text = words(MadeUp(linear=False, rank=1, weak="features `w0` and `w1` are collinear"))
    assert "Choices identify 1 of 2 parameters." in text
    assert "Weak identification" not in text
    assert "condition index 120" in words(MadeUp(linear=False, weak="features `w0` and `w1` are nearly collinear"))
    assert "apart" not in words(MadeUp(linear=False))


def test_many_parameters_are_shown_by_quantiles_without_asking_for_errors():
    theta = np.arange(101.0)
    fit = MadeUp(theta, theta, [f"s{k}" for k in range(101)], raises=AssertionError("errors were computed"))
    text = str(fit.summary())
    assert "101 parameters, by quantile" in text
    assert row(text, "coef") == ["0.0000", "5.0000", "25.0000", "50.0000", "75.0000", "95.0000", "100.0000"]


# other forms


def test_the_frame_has_the_numbers():
    frame = MadeUp().summary().to_frame()
    assert list(frame.index) == ["RC", "theta11"]
    assert list(frame.columns) == ["coef", "std err", "z", "P>|z|", "lower", "upper"]
    np.testing.assert_allclose(frame["z"], frame["coef"] / frame["std err"], rtol=1e-12)
    np.testing.assert_allclose(frame["upper"] + frame["lower"], 2 * frame["coef"], rtol=1e-12)
    np.testing.assert_allclose(frame["P>|z|"], 2 * ndtr(-frame["z"]), rtol=1e-12)


def test_html_shows_what_the_text_shows_and_a_notebook_shows_it_by_itself():
    fit = MadeUp((10.075, -2.293))
    page = Reader(fit.summary().to_html())
    assert fit.summary().to_html() == fit.summary()._repr_html_()
    assert ["theta11", *(cell.replace("-", "−") for cell in row(str(fit.summary()), "theta11"))] in page.rows
    assert ["", "coef", "std err", "z", "P>|z|", "[0.025", "0.975]"] in page.rows
    assert "converged: gradient norm" in page.words


def test_a_name_from_the_data_does_no_harm():
    fit = MadeUp(names=("<script>alert(1)</script>", "50% & more_x"))
    page = Reader(fit.summary().to_html())
    assert "script" not in page.kinds
    assert page.rows[-2][0] == "<script>alert(1)</script>"
    assert r"50\% \& more\_x & 2.2930 & 0.6390" in fit.summary().to_latex()


def test_latex_is_for_a_paper():
    latex = MadeUp((10.075, -1.5e-6)).summary().to_latex()
    assert r"RC & 10.0750 & 1.5820 & 6.369 & 0.000 & 6.9743 & 13.1757 \\" in latex
    assert r"theta11 & $-$1.5000$\times$10$^{-}$$^{6}$ & 0.6390" in latex
    assert r"Log likelihood: $-$163.581." in latex
    assert "Covariance type: hessian." in latex
    assert "Seconds" not in latex
    assert "gradient norm" not in latex
    assert r"iteration\_limit: too few" in MadeUp(code="iteration_limit", message="too few").summary().to_latex()


def test_the_repr_is_the_text():
    summary = MadeUp().summary()
    assert isinstance(summary, Summary)
    assert repr(summary) == str(summary)


# real fits

COIN = rv.MDP(np.ones((1, 2, 1)), discount=0.0)
SIDE = rv.LinearReward(np.array([[[0.0], [1.0]]]), names=["heads"])


def test_a_logit_has_the_log_odds_and_their_textbook_error():
    fit = rv.NFXP(SIDE).fit(COIN, rv.Demonstrations.from_counts([[25, 75]]))
    coef, error, z, p, lower, upper = (float(cell) for cell in row(str(fit.summary()), "heads"))
    assert coef == pytest.approx(np.log(3), abs=5.01e-5)
    assert error == pytest.approx(np.sqrt(1 / 25 + 1 / 75), abs=5.01e-5)
    assert z == pytest.approx(np.log(3) / np.sqrt(1 / 25 + 1 / 75), abs=5.01e-4)
    assert p == 0.0
    assert (lower + upper) / 2 == pytest.approx(coef, abs=1e-4)
    assert "Log likelihood: " + f"{25 * np.log(0.25) + 75 * np.log(0.75):.3f}" in words(fit)


@pytest.fixture(scope="module")
def walk():
    """Trajectories on a random model, with two features and a third that is their sum."""
    mdp = random_mdp(10, 3, seed=1, initial=True)
    features = np.random.default_rng(0).normal(size=(10, 3, 2))
    return mdp, features, draw(mdp, features @ [1.0, -0.5], 300, 30)


@pytest.mark.parametrize("method", [rv.NFXP, rv.MCEIRL, rv.CCP, rv.NPL])
def test_all_forms_of_a_real_fit_agree(walk, method):
    mdp, features, demos = walk
    fit = method(rv.LinearReward(features, names=["fuel", "wear"])).fit(mdp, demos)
    frame = fit.summary().to_frame()
    np.testing.assert_array_equal(frame["std err"], fit.bse)
    np.testing.assert_array_equal(frame[["lower", "upper"]], fit.conf_int())
    assert ("asymptotically valid" in words(fit)) is (method is rv.CCP)
    cells = row(str(fit.summary()), "wear")
    np.testing.assert_allclose([float(cell) for cell in cells], frame.loc["wear"], atol=5.01e-4)
    assert fit.to_html() == fit._repr_html_() == fit.summary().to_html()
    assert ["wear", *(cell.replace("-", "−") for cell in cells)] in Reader(fit.to_html()).rows
    assert "wear & " + " & ".join(cell.replace("-", "$-$") for cell in cells) in fit.to_latex()


def test_a_feature_that_others_make_up_has_no_error(walk):
    mdp, features, demos = walk
    both = np.concatenate([features, features.sum(axis=2, keepdims=True)], axis=2)
    fit = rv.NFXP(rv.LinearReward(both, names=["a", "b", "c"])).fit(mdp, demos)
    assert row(str(fit.summary()), "a")[1:] == ["–"] * 5
    assert "choices do not identify the parameter on its own" in words(fit)


def test_features_that_nearly_move_together_are_named(walk):
    mdp, features, demos = walk
    noise = np.random.default_rng(3).normal(size=(10, 3, 1))
    near = np.concatenate([features, features[:, :, :1] + 1e-3 * noise], axis=2)
    fit = rv.NFXP(rv.LinearReward(near, names=["a", "b", "c"])).fit(mdp, demos)
    assert "Weak identification: features `a` and `c` are nearly collinear" in words(fit)


def test_occupancy_weighting_prints_without_errors_until_it_is_resampled(walk):
    mdp, features, demos = walk
    fit = rv.MCEIRL(rv.LinearReward(features, names=["fuel", "wear"]), weighting="occupancy").fit(mdp, demos)
    assert len(row(str(fit.summary()), "fuel")) == 1
    assert "with occupancy weighting the objective is not a likelihood" in words(fit)
    resampled = fit.with_errors("bootstrap", reps=8, jobs=1)
    assert len(row(str(resampled.summary()), "fuel")) == 6
    assert "Covariance type: bootstrap (8 replications)" in words(resampled)
    assert "θ and the first step re-estimated" in words(resampled)


@pytest.mark.parametrize("kind", ["hessian", "opg", "robust", "cluster"])
def test_of_a_coin_seen_n_times_the_error_is_the_textbooks(kind):
    """Two outcomes that do not depend on the state: ψ is a share, with √(p(1 − p)/n)."""
    landing = np.broadcast_to([0, 1], (2, 2, 2))
    features = np.array([[[0.0], [1.0]], [[0.0], [0.0]]])
    mdp = rv.MDP(np.broadcast_to([0.3, 0.7], (2, 2, 2)).copy(), discount=0.5)
    demos = draw(mdp, features @ [1.0], 200, 20)
    estimated = rv.estimate_transitions(demos, landing, names=["tails", "heads"])
    fit = rv.NFXP(rv.LinearReward(features, names=["keep"])).fit(rv.MDP(estimated, discount=0.5), demos)
    assert "Covariance type: hessian; transitions taken as known" in words(fit)
    joint = fit.with_errors(kind, joint=True)
    assert "joint with 1 transition parameter" in words(joint)
    share, n = estimated.psi[0], estimated.n_outcomes_seen
    frame = joint.summary().to_frame()
    assert list(frame.index) == ["keep", "tails"]
    assert frame.loc["keep", "std err"] == joint.bse["keep"]
    assert frame.loc["tails", "coef"] == share
    exact = np.sqrt(share * (1 - share) / n)
    assert frame.loc["tails", "std err"] == pytest.approx(exact, rel=0.15 if kind == "cluster" else 0.01)
    assert float(row(str(joint.summary()), "tails")[1]) == pytest.approx(frame.loc["tails", "std err"], rel=1e-2)


def test_a_bootstrap_counts_the_transitions_it_estimates_again(walk):
    mdp, features, demos = walk
    model = rv.MDP(rv.estimate_transitions(demos), discount=mdp.discount)
    fit = rv.NFXP(rv.LinearReward(features)).fit(model, demos).with_errors("bootstrap", joint=True, reps=8, jobs=1)
    assert model.estimated is not None
    frame, draws = fit.summary().to_frame()[2:], fit.drawn.psi
    np.testing.assert_array_equal(frame["coef"], model.estimated.psi)
    np.testing.assert_allclose(frame["std err"], draws.std(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(frame["upper"], np.quantile(draws, 0.975, axis=0, method="weibull"), rtol=1e-12)
    assert f"And {draws.shape[1]} transition parameters" in words(fit)
    others = rv.MDP(rv.estimate_transitions(demos.subset(range(299))), discount=mdp.discount)
    known = rv.NFXP(rv.LinearReward(features)).fit(others, demos).with_errors("bootstrap", joint=True, reps=8, jobs=1)
    assert "bootstrap (8 replications); transitions taken as known" in words(known)
    assert len(known.summary().to_frame()) == 2


def test_a_search_cut_short_has_no_errors(walk):
    mdp, features, demos = walk
    fit = rv.NFXP(rv.LinearReward(features, names=["fuel", "wear"]), max_iter=1).fit(mdp, demos)
    assert row(str(fit.summary()), "fuel")[1:] == ["–"] * 5
    assert "since the search did not finish" in words(fit)


def test_plain_counts_have_no_agents(walk):
    fit = rv.NFXP(SIDE).fit(COIN, rv.Demonstrations.from_counts([[25, 75]]))
    assert "Agents: not known" in words(fit)
    mdp, features, demos = walk
    assert "Agents: 1 " in words(rv.NFXP(rv.LinearReward(features)).fit(mdp, demos.subset([0])))


def test_a_logit_on_the_rewards_features_does_not_come_to_the_truth():
    """Why it is warned of: with choices as often as their probabilities, frequencies give θ exactly, a logit never."""
    mdp = random_mdp(10, 3, seed=1, initial=True)
    features = np.random.default_rng(0).normal(size=(10, 3, 2))
    truth = np.array([1.0, -0.5])
    population = rv.Demonstrations.from_counts(1e9 * rv.solve(mdp, features @ truth).policy)
    reward = rv.LinearReward(features)
    right, wrong = (rv.CCP(reward, first_step=step).fit(mdp, population) for step in ("frequency", "logit"))
    np.testing.assert_allclose(right.theta, truth, atol=1e-6)
    assert (np.abs(wrong.theta - truth) > 100 * wrong.bse).any()
    assert "correctly specified" in words(wrong)
    assert "correctly specified" not in words(right)


def test_discounted_visits_are_told_of(walk):
    mdp, features, demos = walk
    text = words(rv.NFXP(rv.LinearReward(features)).fit(mdp, demos.discount_visits(0.9)))
    assert "Weighting: sample, times 0.9^t" in text
    assert "Covariance type: cluster by agent (300)" in text


def test_a_table_of_weights_is_printed_without_the_list_of_what_moves_together():
    mdp = corridor(8)
    fit = rv.NFXP(rv.TabularReward(8)).fit(mdp, draw(mdp, np.arange(8.0)[:, None] * 0.1, 200))
    assert "Weak identification" not in words(fit)
    assert row(str(fit.summary()), "state3")[1:] == ["–"] * 5


def test_a_fit_of_trips_tells_how_many_go_to_how_many_goals():
    made = random_trips(1, S=12, n=60)
    fit = rv.CCP(made.reward).fit(made.mdp, made.demos)
    text = words(fit)
    for told in ("Trips: 60", f"Decisions: {made.demos.n_decisions:.0f}", "Goals: 5", "cluster by trip (60)"):
        assert told in text
    assert "First step: logit " in text
    penalised = rv.CCP(made.reward, first_step=rv.first_step.GoalLogit(l2=0.1)).fit(made.mdp, made.demos)
    assert "First step: logit (l2=0.1, standardised)" in words(penalised)
    tabular = rv.CCP(rv.TabularReward(12), l2=0.1).fit(made.mdp, made.demos)
    assert "First step: logit (of moves alone)" in words(tabular)
    assert "First step: kernel (goal by goal)" in words(
        rv.CCP(made.reward, first_step="kernel").fit(made.mdp, made.demos)
    )
    assert "a misspecified logit leaves a bias" in text
    assert repr(fit).startswith("<GoalFit CCP: 3 parameters, llf ")
    assert f"{fit.n_decisions} decisions toward 5 goals, converged" in repr(fit)
    assert "Trips" not in words(MadeUp())
