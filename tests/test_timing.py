"""Training times and their breakdown: every cell is measured, tables say what the rows say, and the dense searches that
they are compared with go the same way as the library's. Nothing here depends on how fast the machine is."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from revealed.estimators import CCP, MCEIRL, NPL
from revealed.experiments import breakdown, published, timing
from revealed.experiments.cells import METHODS, Results
from revealed.experiments.dense_baseline import DenseCCP, DenseMCE, DenseModel, DenseObjective, fit_dense
from revealed.experiments.runner import run_experiment
from revealed.experiments.seconds import in_seconds, times
from revealed.experiments.timed import Worlds, objects_task
from revealed.latex import tabular
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy

SMALL = {"bins": 12, "drives": 20, "walks": 20, "hidden": (4,)}
TIMING = timing.Config(**SMALL, grids=((5, 2), (6, 4)), tighter_grids=1, dense_states=30, max_iter=15, seeds=1)
BREAKDOWN = breakdown.Config(**SMALL, size=5, colors=2, steps=3, repeats=2)
PAPER = Path(__file__).parents[2] / "shared" / "paper"


@pytest.fixture(scope="module")
def timed(tmp_path_factory) -> Results:
    return run_experiment("timing", TIMING, tmp_path_factory.mktemp("timing"), progress=False)


@pytest.fixture(scope="module")
def broken_down(tmp_path_factory) -> Results:
    return run_experiment("breakdown", BREAKDOWN, tmp_path_factory.mktemp("breakdown"), progress=False)


@pytest.fixture(scope="module")
def task():
    return objects_task(Worlds(**SMALL), 6, 2, 0)


def as_if_measured(config: timing.Config) -> Results:
    """Results in which MCE-IRL always takes 4 s, NPL 2 s, CCP 0.5 s, and three times that by dense algebra."""
    seconds = {"MCE-IRL": 4.0, "NPL": 2.0, "CCP": 0.5}
    same = {
        "iterations": 10,
        "linear_solves": 20,
        "updates": 1,
        "reached": True,
        "status": "converged",
        "evd_share": 0.25,
    }
    rows = [
        cell.place | same | {"seconds": seconds[cell.method] * (3 if "dense" in cell.variant else 1)}
        for cell in timing.cells(config)
    ]
    frame = pd.DataFrame(rows)
    return Results(config, frame, frame[:0], lambda key: {})


# What is measured


def test_every_cell_of_the_timing_is_measured(timed):
    assert len(timed.failed) == 0
    assert len(timed.frame) == len(timing.cells(TIMING)) == 3 * (4 + 5 + 2)
    needed = [
        "seconds",
        "iterations",
        "linear_solves",
        "states",
        "optimizer",
        "threshold",
        "reached",
        "status",
        "evd_share",
    ]
    assert not timed.frame[needed].isna().any().any()
    assert set(timed.where(setting="Mountain Car 12²")["states"]) == {144}
    assert set(timed.where(variant="own")["optimizer"]) == {"lbfgs"}


def test_thresholds_are_those_of_all_methods_and_ten_times_tighter(timed):
    for setting in timing.settings_of(timed):
        loose = set(timed.where(setting=setting, variant="adam")["threshold"])
        tight = set(timed.where(setting=setting, variant="adam tighter")["threshold"])
        assert len(loose) == 1
        assert not tight or tight.pop() == pytest.approx(loose.pop() / 10)


def test_dense_searches_make_the_same_iterations(timed):
    for method in METHODS:
        dense, sparse = timing.equal_hardware(timed, "Objectworld 5², C2", method)
        assert dense is not None
        assert sparse is not None
        assert dense["iterations"] == sparse["iterations"]


def test_the_full_protocol_is_the_papers():
    settings = list(dict.fromkeys(cell.setting for cell in timing.cells(timing.Config())))
    assert settings == list(published.TRAINING_SECONDS)
    config = breakdown.Config()
    assert {cell.setting for cell in breakdown.cells(config)} == set(published.BREAKDOWN_SETTINGS)
    variants = {cell.variant for cell in timing.cells(timing.QUICK)}
    assert variants == set(timing.VARIANTS)  # every kind, also in the quick one


def test_the_threshold_counts_as_reached_only_if_every_update_reached_it(task):
    fit = task.estimator("NPL", optimizer="adam", max_iter=3, tol=1e9, patience=2).fit(task.mdp, task.demos)
    assert timing.reached(fit, 1e9, 2)
    worst = max(row["gradient_norm"] for row in fit.rows)
    assert not timing.reached(fit, 0.999 * worst, 2)
    cut = task.estimator("CCP", optimizer="adam", max_iter=3, tol=1e-12).fit(task.mdp, task.demos)
    assert len(cut.rows) == 4
    assert timing.reached(cut, 1e9, 4)
    assert not timing.reached(cut, 1e9, 50)


# What the tables say


def test_the_table_has_the_papers_arrangement_and_speed_ups_from_the_rows(timed):
    frame = timing.tables(timed)["table2"].frame
    assert list(frame["Settings"]) == ["Mountain Car 12²", "Objectworld 5², C2", "Objectworld 6², C4"]
    assert [name for name in map(str, frame) if name.endswith(" [s]") and "paper" not in name] == [
        f"{m} [s]" for m in METHODS
    ]
    for line in frame.to_dict("records"):
        mean = timed.where(setting=line["Settings"], variant="adam").groupby("method")["seconds"].mean()
        speed_up = times(mean["MCE-IRL"] / mean["CCP"])
        assert line["CCP [s]"].endswith(f"({speed_up})")
        assert line["CCP [s]"].startswith(in_seconds(mean["CCP"]))
        assert line["CCP, paper [s]"] == line["CCP, paper/ours"] == "–"  # the paper has no such setting


def test_the_papers_seconds_stand_beside_ours_with_the_ratio():
    tables = timing.tables(as_if_measured(timing.Config()))
    car = tables["table2"].frame.iloc[0]
    assert car["MCE-IRL [s]"] == "4.00"
    assert car["NPL [s]"] == "2.00 (×2)"
    assert car["CCP [s]"] == "0.500 (×8)"
    assert car["MCE-IRL, paper [s]"] == "4195.76"
    assert car["MCE-IRL, paper/ours"] == "×1,049"
    assert len(tables["variants"].frame) == 5 * 4 * 3
    assert set(tables["dense"].frame["dense/sparse"]) == {"×3"}
    assert set(tables["dense"].frame["Settings"]) == {
        "Objectworld 16², C4",
        "Objectworld 32², C2",
        "Objectworld 32², C4",
    }


def test_aims_are_judged_where_the_setting_is_the_papers(timed):
    aims = timing.tables(as_if_measured(timing.Config()))["aims"].frame.set_index(["Settings", "method"])
    for ratio in (aims["ours, ratio"], aims["tighter, ratio"]):
        assert ratio["Mountain Car 100²", "MCE-IRL"] == "×1,049 ✓"  # 4195.76 / 4
        assert ratio["Objectworld 16², C4", "MCE-IRL"] == "×8.1"  # 32.21 / 4
        assert ratio["Objectworld 64², C4", "NPL"] == "×170 ✓"  # 340.55 / 2
        assert ratio["Objectworld 32², C4", "CCP"] == "×22 ✓"  # 11.19 / 0.5
    assert "aims" not in timing.tables(timed)


def test_searches_that_end_early_are_marked():
    results = as_if_measured(timing.Config())
    results.frame.loc[results.frame["method"] == "NPL", "reached"] = False
    tables = timing.tables(results)
    assert tables["table2"].frame.iloc[0]["NPL [s]"] == "2.00* (×2)"
    assert set(tables["table2"].frame["NPL, EVD share"]) == {"25 %"}
    lines = tables["variants"].frame.set_index(["method", "search"])
    assert set(lines["speed-up"]["NPL"]) == {"–"}  # seconds of the iterations allowed tell no speed
    assert set(lines["speed-up"]["CCP"]) == {"×8"}
    reached = lines["threshold reached"]
    assert set(reached["NPL"]["L-BFGS"]) == {"0 of 3"}
    assert set(reached["CCP"]["L-BFGS"]) == {"3 of 3"}


def test_every_sign_of_the_tables_has_a_form_in_latex(broken_down):
    """What has none would be a question mark."""
    for tables in (timing.tables(as_if_measured(timing.Config())), breakdown.tables(broken_down)):
        for table in tables.values():
            assert "?" not in tabular(table.frame, "").replace("When?", "")


def test_nothing_measured_gives_no_tables_and_no_picture():
    empty = as_if_measured(timing.Config())
    empty = replace(empty, frame=empty.frame[:0])
    assert timing.tables(empty) == {}
    assert timing.draw(empty) == {}
    assert breakdown.tables(replace(empty, config=BREAKDOWN)) == {}
    assert breakdown.draw(replace(empty, config=BREAKDOWN)) == {}


def test_pictures_are_drawn_with_words_for_those_who_cannot_see_them(timed, broken_down):
    for pictures in (timing.draw(timed), timing.draw(as_if_measured(timing.Config())), breakdown.draw(broken_down)):
        for picture in pictures.values():
            picture.figure.draw_without_rendering()
            assert "Ours:" in picture.alt
    assert "MCE-IRL 4.00 s" in timing.draw(as_if_measured(timing.Config()))["seconds"].alt


@pytest.mark.parametrize(
    ("value", "words"), [(4195.76, "4196"), (12.345, "12.3"), (0.5, "0.500"), (0.00123, "0.0012"), (7.8e-5, "0.000078")]
)
def test_seconds_are_written_without_powers_of_ten(value, words):
    assert in_seconds(value) == words


# The breakdown


def test_every_computation_of_a_step_is_timed(broken_down):
    assert len(broken_down.failed) == 0
    assert len(broken_down.frame) == len(breakdown.cells(BREAKDOWN)) == 6
    frame = broken_down.frame
    assert (frame[["precomputed", "value", "adjoint", "gradient"]] > 0).all().all()
    assert frame["step"].to_numpy() == pytest.approx(frame[["value", "adjoint", "gradient"]].sum(axis=1).to_numpy())
    assert frame["update"].notna().tolist() == [family == breakdown.APPROXIMATION for family in frame["method"]]
    assert frame["cold"].notna().tolist() == [family == breakdown.OPTIMISATION for family in frame["method"]]


@pytest.mark.parametrize("family", list(breakdown.FAMILIES))
def test_the_breakdown_has_the_papers_rows(broken_down, family):
    frame = breakdown.tables(broken_down)[family].frame
    words = list(breakdown.SECONDS[family])
    assert list(frame["Computation"])[: len(words)] == words
    total = broken_down.where(setting="Mountain Car 12²", method=family)["step"].item()
    assert frame.set_index("Computation").loc["Inner Loop Per-Step Totals", "Mountain Car 12² [s]"] == in_seconds(total)
    assert not any("paper [s]" in str(name) for name in frame)  # these sizes are not the paper's


def test_the_papers_breakdown_stands_beside_ours(broken_down):
    frame = broken_down.frame.assign(precomputed=0.01, value=0.5, gradient=0.01, step=0.52)
    frame["setting"] = frame["setting"].replace(
        {"Mountain Car 12²": "Mountain Car 100²", "Objectworld 5², C2": "Objectworld 64², C4"}
    )
    table = breakdown.tables(replace(broken_down, config=breakdown.Config(), frame=frame))[breakdown.OPTIMISATION].frame
    car = table[["Mountain Car 100², paper [s]", "Mountain Car 100², paper/ours"]].to_numpy()
    assert list(car[1]) == ["105.75", "×212"]
    assert list(car[3]) == ["0.01", "–"]
    assert list(car[4]) == ["0.03", "×4"]  # 0.01 + 0.03: one product here
    assert list(car[6]) == ["–", "–"]  # the paper does not tell a first step from later ones


# Dense searches are the library's


@pytest.mark.parametrize("l2", [0.0, 1e-2])
@pytest.mark.parametrize("method", ["MCE-IRL", "CCP"])
def test_the_dense_objective_is_the_librarys(task, method, l2):
    mdp, model = task.mdp, DenseModel.of(task.mdp)
    fit = task.estimator("CCP", optimizer="adam", max_iter=3).fit(mdp, task.demos)
    expert = fit.pi_tilde
    rho = np.random.default_rng(0).uniform(0.0, 3.0, mdp.feasible.shape)
    own = method == "MCE-IRL"
    dense = DenseMCE(model, tol=1e-12) if own else DenseCCP(model, expert)
    sparse = OwnPolicy(mdp) if own else GivenPolicy(mdp, expert)
    here = DenseObjective(task.reward, mdp, rho, dense, l2).at(fit.theta)
    there = Objective(task.reward, [Case(mdp, rho, sparse)], l2).at(fit.theta)
    assert here.value == pytest.approx(there.value, rel=1e-10)
    assert here.gradient == pytest.approx(there.gradient, abs=1e-8)
    assert here.gradient_norm == pytest.approx(there.gradient_norm, abs=1e-8)
    assert here.parts[0].policy == pytest.approx(there.parts[0].policy, abs=1e-9)


@pytest.mark.parametrize("make", [MCEIRL, CCP, NPL])
@pytest.mark.parametrize("weighting", ["occupancy", "sample"])
def test_dense_and_sparse_searches_go_the_same_way(task, make, weighting):
    paths: list[list[np.ndarray]] = []
    options = {"weighting": weighting, "optimizer": "adam", "max_iter": 20, "tol": 1e-9, "l2": 1e-5, "progress": False}
    if make is NPL:
        options["updates"] = 2
    for dense in (False, True):
        paths.append([])
        estimator = make(task.reward, callback=lambda point: paths[-1].append(point.theta), **options)
        fit = (
            fit_dense(estimator, DenseModel.of(task.mdp), task.mdp, task.demos)
            if dense
            else estimator.fit(task.mdp, task.demos)
        )
        assert fit.iterations == 20 * (2 if make is NPL else 1)
    assert np.array(paths[1]) == pytest.approx(np.array(paths[0]), abs=1e-6)


def test_a_dense_search_has_gradients_only(task):
    estimator = CCP(task.reward, optimizer="newton", progress=False)
    with pytest.raises(ValueError, match="newton"):
        fit_dense(estimator, DenseModel.of(task.mdp), task.mdp, task.demos)


# The paper's numbers are the paper's


@pytest.fixture(scope="module")
def paper() -> str:
    texts = [path.read_text(encoding="utf-8") for path in sorted(PAPER.glob("*.txt"))]
    if not texts:
        pytest.skip("the paper's text is not beside this checkout (../shared/paper)")
    return "".join(texts)


def block(text: str, label: str) -> str:
    """The table that ends with a label."""
    return text[: text.index("\\label{" + label + "}")].rpartition("\\begin{table")[2]


def test_the_published_training_times_are_the_papers(paper):
    table = block(paper, "table:table_time_result")
    seconds = [float(number) for number in re.findall(r"\d+\.\d\d", table)]
    assert seconds == [value for row in published.TRAINING_SECONDS.values() for value in row.values()]
    speed_ups = [int(number) for number in re.findall(r"\\times\$\s*(?:\\textbf\{)?(\d+)", table)]
    assert speed_ups == [value for row in published.TRAINING_SPEED_UPS.values() for value in row.values()]


@pytest.mark.parametrize("label", ["tab:optim_time_breakdown", "tab:approx_time_breakdown"])
def test_the_published_breakdown_is_the_papers(paper, label):
    ours = published.OPTIMISATION_SECONDS if "optim" in label else published.APPROXIMATION_SECONDS
    seconds = [float(number) for number in re.findall(r"\d+\.\d\d", block(paper, label))]
    assert seconds == [value for row in ours.values() for value in row]


def test_the_published_speed_ups_are_ratios_of_its_seconds():
    for setting, row in published.TRAINING_SPEED_UPS.items():
        seconds = published.TRAINING_SECONDS[setting]
        for method, speed_up in row.items():
            assert speed_up == pytest.approx(seconds["MCE-IRL"] / seconds[method], abs=1.0)
