"""Monte Carlo: figures that can be checked by hand, data that depend on the seed alone, studies that go on."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from scipy.stats import binom

import revealed as rv
from revealed.diagnosis import Status
from revealed.environments import World, garnet
from revealed.errors import InvalidInput, InvalidOption, RevealedError, SolverFailed
from revealed.montecarlo import Study, name_of

THETA = 0.8
CLOCKS = ["seconds", "error_seconds"]


def coin(theta: float = THETA, discount: float = 0.9) -> World:
    """One state, two actions, the second worth θ more: a logit whose estimate is the log odds."""
    mdp = rv.MDP(np.ones((1, 2, 1)), discount, np.ones(1))
    features = np.array([[[0.0], [1.0]]])
    reward = features @ np.array([theta])
    expert = np.exp(reward) / np.exp(reward).sum()
    return World("a coin", mdp, features, reward, expert, ("theta",), np.array([theta]), length=1)


def draws(world: World, replications: int, n: int, seed: int = 0) -> list[rv.Demonstrations]:
    """The data sets of a study, as anybody can draw them."""
    study = Study(world, {}, n, world.length, seed, None, False, 0.95, None)
    return [study.draw(r) for r in range(replications)]


def row_of(found: Any, method: str) -> Any:
    return found.table().loc[(method, "theta")]


class Scripted:
    """A method whose k-th fit gives the k-th answer: (estimate, standard error), an exception, or a status."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers, self.calls = answers, 0

    def fit(self, mdp: rv.MDP, demos: rv.Demonstrations) -> Any:
        answer = self.answers[self.calls]
        self.calls += 1
        if isinstance(answer, type):
            raise answer("no solution")
        estimate, se = answer if isinstance(answer, tuple) else (9.0, 1.0)
        interval = {"lower": [estimate - 2.0 * se], "upper": [estimate + 2.0 * se]}
        return SimpleNamespace(
            theta=np.array([estimate]),
            bse=pd.Series([se]),
            conf_int=lambda alpha: pd.DataFrame(interval),
            status=Status(answer if isinstance(answer, str) else "converged", "as the script says"),
            settled=None,
            seconds=0.25,
        )


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
    assert row["coverage_se"] == pytest.approx(np.sqrt(1 / 3 * 2 / 3 / 3))
    told = found.by_method().to_dict("records")[0]
    assert (told["replications"], told["used"], told["failed"], told["seconds"]) == (6, 4, 2, 0.25)


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


def same(a: Any, b: Any) -> None:
    pd.testing.assert_frame_equal(a.frame.drop(columns=CLOCKS), b.frame.drop(columns=CLOCKS))


def study(replications: int = 12, **options: Any) -> Any:
    world = garnet(6, 2, 2, seed=1)
    fits = [rv.NFXP(world.reward_model(), l2=1e-3), rv.CCP(world.reward_model(), l2=1e-3)]
    given: dict[str, Any] = {"n": 20, "length": 10, "seed": 5}
    return rv.monte_carlo(world, fits, replications, **(given | options))


@pytest.fixture(scope="module")
def twelve():
    return study(jobs=1)


def test_workers_change_nothing(twelve):
    same(study(jobs=2), twelve)


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
    bus = rv.environments.rust_bus(bins=30, discount=0.99, RC=5.0, theta11=50.0)
    reward = bus.reward_model()
    fits = {"two": rv.NPL(reward, updates=2), "cut": rv.NFXP(reward, max_iter=1)}
    found = rv.monte_carlo(bus, fits, 3, n=50, length=50)
    two = found.frame[found.frame["method"] == "two"]
    assert set(two["status"]) == {"iteration_limit"}
    assert set(two["settled"]) == {False}
    assert found.by_method()["used"].to_dict() == {"two": 3, "cut": 0}


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
        fit.bootstrap = lambda: SimpleNamespace(interrupted=self.interrupted)

        def with_errors(kind: str, joint: bool, **options: Any) -> Any:
            self.asked.append((kind, joint, options))
            return fit

        fit.with_errors = with_errors
        return fit


def test_a_bootstrap_inside_a_study_keeps_to_its_worker():
    method = Resampled(interrupted=False)
    found = rv.monte_carlo(coin(), {"m": method}, 2, n=1, kind="bootstrap")
    assert method.asked == [("bootstrap", False, {"jobs": 1, "progress": False})] * 2
    assert found.table()["coverage"].tolist() == [1.0]


def test_half_a_bootstrap_is_no_result():
    with pytest.raises(KeyboardInterrupt):
        rv.monte_carlo(coin(), {"m": Resampled(interrupted=True)}, 2, n=1, kind="bootstrap")


# folders


def scripted(answers: list[Any], folder: Path, replications: int, **options: Any) -> tuple[Any, Scripted]:
    method = Scripted(answers)
    named = {"m": method}
    return rv.monte_carlo(coin(), named, replications, n=1, folder=folder, jobs=1, **options), method


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A folder with three replications; scripts have the same description, whatever they answer."""
    monkeypatch.setattr(Scripted, "__repr__", lambda self: "a script")
    scripted([(1.0, 1.0), (2.0, 1.0), (4.0, 1.0)], tmp_path, 3)
    return tmp_path


def test_a_second_call_goes_on(written):
    found, method = scripted([(7.0, 1.0), (8.0, 1.0)], written, 5)
    assert found.frame["estimate"].tolist() == [1.0, 2.0, 4.0, 7.0, 8.0]
    assert method.calls == 2
    again, method = scripted([], written, 4)  # fewer: those that come first
    assert again.frame["estimate"].tolist() == [1.0, 2.0, 4.0, 7.0]
    assert method.calls == 0


def test_what_comes_from_a_folder_is_the_same_to_the_last_bit(tmp_path, twelve):
    study(replications=7, folder=tmp_path, jobs=2)
    same(study(folder=tmp_path, jobs=1), twelve)
    same(study(folder=tmp_path, jobs=2), twelve)


def test_a_line_that_was_cut_off_is_computed_again(written):
    lines = written / "replications.jsonl"
    whole = lines.read_bytes()
    last = len(whole[:-1].rpartition(b"\n")[0]) + 1
    for cut in range(last, len(whole) - 1, 11):
        lines.write_bytes(whole[:cut])
        found, method = scripted([(4.0, 1.0)], written, 3)
        assert method.calls == 1
        assert found.frame["estimate"].tolist() == [1.0, 2.0, 4.0]
    scripted([], written, 3)  # and the one that replaced it is whole


def test_ctrl_c_keeps_what_was_finished(tmp_path, monkeypatch):
    monkeypatch.setattr(Scripted, "__repr__", lambda self: "a script")
    with pytest.raises(KeyboardInterrupt):
        scripted([(1.0, 1.0), (2.0, 1.0), KeyboardInterrupt], tmp_path, 5)
    found, method = scripted([(3.0, 1.0)], tmp_path, 3)
    assert method.calls == 1
    assert found.frame["estimate"].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"n": 21}, "n = 20 there, 21 here"),
        ({"length": 11}, "length = 10 there, 11 here"),
        ({"seed": 6}, "seed = 5 there, 6 here"),
        ({"level": 0.9}, "level = 0.95 there, 0.9 here"),
        ({"kind": "opg"}, 'kind = null there, "opg" here'),
        ({"model": lambda demos: garnet(6, 2, 2, seed=1, discount=0.5).mdp}, "model"),
    ],
)
def test_another_study_is_refused_and_told_apart(tmp_path, changed, words):
    study(replications=1, folder=tmp_path)
    with pytest.raises(InvalidInput, match=r"folder.*same study.*Pass another folder") as caught:
        study(replications=1, folder=tmp_path, **changed)
    assert words in str(caught.value)


def test_methods_and_worlds_that_read_the_same_are_told_apart(tmp_path):
    """Their names and options agree; what the rewards make of the truth, or the data, do not."""
    world = garnet(6, 2, 2, seed=1)
    rv.monte_carlo(world, {"m": rv.NPL(world.reward_model(), updates=3)}, 1, n=20, length=10, folder=tmp_path)
    other = garnet(6, 2, 2, seed=1, discount=0.5)
    for different, method in (
        (world, rv.NPL(world.reward_model(), updates=4)),
        (world, rv.NPL(rv.LinearReward(2.0 * np.asarray(world.features)), updates=3)),
        (other, rv.NPL(other.reward_model(), updates=3)),
    ):
        with pytest.raises(InvalidInput, match="same study"):
            rv.monte_carlo(different, {"m": method}, 1, n=20, length=10, folder=tmp_path)


def test_the_description_of_a_study_is_the_same_in_every_process(tmp_path):
    study(replications=1, folder=tmp_path, model=lambda demos: garnet(6, 2, 2, seed=1).mdp)
    assert "0x" not in (tmp_path / "study.json").read_text()
    study(replications=2, folder=tmp_path, model=lambda demos: garnet(6, 2, 2, seed=1).mdp)


@pytest.mark.parametrize("damage", ["{", "lost"])
def test_a_folder_whose_description_is_gone_is_a_clear_error(written, damage):
    about = written / "study.json"
    about.unlink() if damage == "lost" else about.write_text(damage)
    with pytest.raises(InvalidInput, match=r"study\.json.*Pass another folder"):
        scripted([], written, 3)


def test_a_folder_that_cannot_be_written_is_named_as_the_caller_named_it(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"`folder`.*can be written"):
        study(replications=1, folder=tmp_path / "file" / "below")


def test_lines_are_json_with_one_replication_each(written):
    rows = [json.loads(line) for line in (written / "replications.jsonl").read_text().splitlines()]
    assert [row["replication"] for row in rows] == [0, 1, 2]
    assert [row["fits"]["m"]["theta"] for row in rows] == [[1.0], [2.0], [4.0]]


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


def test_the_picture_shows_medians_beside_the_truth(logit):
    (ax,) = logit.plot().axes
    lines = [np.asarray(line.get_xdata(), dtype=float) for line in ax.get_lines()]
    assert any(line.shape == (1,) and np.isclose(line[0], logit.frame["estimate"].median()) for line in lines)
    np.testing.assert_array_equal(lines[-1], [THETA, THETA])


# doors


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
        ({"methods": ["NFXP"]}, r"estimators, such as rv\.NFXP"),
        ({"methods": [rv.NFXP(rv.LinearReward(np.ones((1, 2, 3))))]}, "1 parameters"),
        ({"methods": [rv.NFXP(coin().reward_model())] * 2}, "dict that names them"),
        ({"world": coin().mdp}, "World"),
        ({"world": World("no", coin().mdp, np.ones((1, 1)), np.zeros((1, 2)), np.ones((1, 2)) / 2)}, "true_weights"),
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
