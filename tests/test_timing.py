"""Training times and their breakdown: every cell is measured, tables say what the rows say, and the dense searches that
they are compared with go the same way as the library's. Nothing here depends on how fast the machine is."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from revealed.estimators import CCP, MCEIRL, NPL
from revealed.experiments import breakdown, dense_baseline, paper_way, published, time_claims, time_tables, timing
from revealed.experiments.cells import METHODS, Cell, Results
from revealed.experiments.dense_baseline import (
    DenseCCP,
    DenseMCE,
    DenseModel,
    DenseObjective,
    DenseOptimum,
    dense_soft_optimum,
    fit_dense,
)
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, UNTESTED
from revealed.experiments.runner import run_experiment
from revealed.experiments.seconds import in_seconds, times
from revealed.experiments.steps import seconds_of_a_step, trail_of
from revealed.experiments.timed import Worlds, objects_task
from revealed.latex import tabular
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy

SMALL = {"bins": 12, "drives": 20, "walks": 20, "hidden": (4,)}
TIMING = timing.Config(
    **SMALL, grids=((5, 2), (6, 4)), tighter_grids=1, dense_states=30, cost_states=100, max_iter=15, seeds=1
)
BREAKDOWN = breakdown.Config(**SMALL, size=5, colors=2, steps=3, repeats=2)
WHOLE_SEARCHES = timing.Config(dense_states=10_000)  # as a machine with much time would run them
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


SECONDS = {"MCE-IRL": 4.0, "NPL": 2.0, "CCP": 0.5}
COSTS = {"once": 10.0, "per_update": 20.0, "optimisation_step": 5.0, "approximation_step": 0.1, "sweeps": 100.0}
SEARCH = {
    "iterations": 10,
    "linear_solves": 20,
    "updates": 1,
    "reached": True,
    "status": "converged",
    "evd_share": 0.25,
    "other_work": 0.0,
}


def as_if_measured(config: timing.Config) -> Results:
    """Results in which MCE-IRL always takes 4 s, NPL 2 s, CCP 0.5 s, and three times that by dense algebra."""
    frame = pd.DataFrame([cell.place | as_if(cell) for cell in timing.cells(config)])
    return Results(config, frame, frame[:0], lambda key: {})


def as_if(cell: Cell) -> dict[str, Any]:
    states = int("".join(digit for digit in cell.setting.partition("²")[0] if digit.isdigit())) ** 2
    if cell.variant == paper_way.COSTS:
        return {"status": paper_way.MEASURED, "states": states, "other_work": 0.0} | COSTS
    seconds = SECONDS[cell.method] * (3 if cell.variant == paper_way.WHOLE else 1)
    return SEARCH | {"states": states, "seconds": seconds, "step": seconds / 20}


def slowed(results: Results, factor: float, **place: object) -> Results:
    """The same results with the seconds at a place multiplied."""
    frame = results.frame.copy()
    there = np.logical_and.reduce([frame[name] == value for name, value in place.items()])
    frame.loc[there, "seconds"] *= factor
    return replace(results, frame=frame)


def without(results: Results, **place: object) -> Results:
    there = np.logical_and.reduce([results.frame[name] == value for name, value in place.items()])
    return replace(results, frame=results.frame[~there])


# What is measured


def test_every_cell_of_the_timing_is_measured(timed):
    assert len(timed.failed) == 0
    assert len(timed.frame) == len(timing.cells(TIMING)) == 3 * (3 + 4 + 2) + 1
    searches = timed.frame[timed.frame["variant"] != paper_way.COSTS]
    needed = [*SEARCH, "seconds", "step", "states", "optimizer", "threshold", "extrapolated"]
    assert not searches[[name for name in needed if name != "other_work"]].isna().any().any()
    assert set(timed.where(setting="Mountain Car 12²", method="CCP")["states"]) == {144}
    assert set(timed.where(variant="own")["optimizer"]) == {"lbfgs"}


def test_costs_are_measured_where_whole_searches_are_too_long_up_to_a_size(timed):
    costs = timed.where(variant=paper_way.COSTS)
    assert list(costs["setting"]) == ["Objectworld 6², C4"]  # Mountain Car has 144 states, 5² has 25
    assert (costs[list(COSTS)] > 0.0).all().all()
    assert set(costs["status"]) == {paper_way.MEASURED}


def test_thresholds_are_those_of_all_methods_and_ten_times_tighter(timed):
    for setting in timing.settings_of(timed):
        loose = set(timed.where(setting=setting, variant="adam")["threshold"])
        tight = set(timed.where(setting=setting, variant="adam tighter")["threshold"])
        assert len(loose) == 1
        assert not tight or tight.pop() == pytest.approx(loose.pop() / 10)


def test_dense_searches_make_the_same_iterations(timed):
    for method in METHODS:
        place = {"setting": "Objectworld 5², C2", "method": method}
        dense, sparse = timed.where(variant=paper_way.WHOLE, **place), timed.where(variant=paper_way.OURS, **place)
        assert list(dense["iterations"]) == list(sparse["iterations"])
        assert list(dense["updates"]) == list(sparse["updates"])


def test_the_full_protocol_is_the_papers():
    settings = list(dict.fromkeys(cell.setting for cell in timing.cells(timing.Config())))
    assert settings == list(published.TRAINING_SECONDS)
    config = breakdown.Config()
    assert {cell.setting for cell in breakdown.cells(config)} == set(published.BREAKDOWN_SETTINGS)
    for config in (timing.Config(), timing.QUICK):
        kinds = {cell.variant for cell in timing.cells(config)}
        assert kinds == {*time_tables.SEARCHES, paper_way.WHOLE, paper_way.COSTS}
    ways = {
        cell.setting: cell.variant
        for cell in timing.cells(timing.Config())
        if cell.variant in (paper_way.WHOLE, paper_way.COSTS)
    }
    assert list(ways) == list(published.TRAINING_SECONDS)  # the paper's way of computing everywhere, whole up to 32²
    assert [ways[setting] for setting in ways] == [paper_way.COSTS, *[paper_way.WHOLE] * 3, paper_way.COSTS]


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


def test_table_2_has_a_row_for_each_setting_and_method_with_speed_ups_from_the_rows(timed):
    frame = timing.tables(timed)["table2"].frame
    assert list(frame["Settings"]) == ["Objectworld 5², C2"] * 3 + ["Objectworld 6², C4"] * 3
    assert list(frame["method"]) == [*METHODS] * 2
    found = paper_way.paper_way(timed).set_index(["setting", "method"])["seconds"]
    for line in frame.to_dict("records"):
        seconds, base = found[line["Settings"], line["method"]], found[line["Settings"], "MCE-IRL"]
        sign = "≈" if line["Settings"] == "Objectworld 6², C4" else ""
        assert line["seconds"].rstrip("*") == sign + in_seconds(seconds)
        assert line["speed-up"] == ("–" if line["method"] == "MCE-IRL" else sign + times(base / seconds))
        assert line["paper [s]"] == line["its speed-up"] == "–"  # the paper has no such setting
    assert "Not measured here: Mountain Car 12²." in timing.tables(timed)["table2"].caption


def test_ours_stands_beside_the_papers_way_of_computing(timed):
    frame = timing.tables(timed)["ours"].frame.set_index(["Settings", "method"])
    assert len(frame) == 9
    dense = {setting: frame.loc[setting]["dense [s]"].tolist() for setting in frame.index.unique(0)}
    assert set(dense["Mountain Car 12²"]) == {"–"}
    assert all(cell.startswith("≈") for cell in dense["Objectworld 6², C4"])
    assert not any("≈" in cell for cell in frame.loc["Objectworld 5², C2"]["dense/ours"].tolist())
    steps = timed.where(setting="Objectworld 5², C2", variant=paper_way.OURS).set_index("method")["step"]
    assert frame.loc[("Objectworld 5², C2", "MCE-IRL"), "CCP's steps"] == times(steps["MCE-IRL"] / steps["CCP"])


def test_the_papers_seconds_stand_beside_those_of_its_way_of_computing():
    tables = timing.tables(as_if_measured(timing.Config()))
    frame = tables["table2"].frame.set_index(["Settings", "method"])
    car, grid = frame.loc["Mountain Car 100²"], frame.loc["Objectworld 16², C4"]
    assert list(car["seconds"]) == ["≈65.0", "≈31.1", "≈31.1"]  # 10 + 11 · 5; 10 + 20 + 11 · 0.1
    assert list(car["CCP's steps"]) == ["≈×50", "≈×1", "≈×1"]
    assert list(car["paper [s]"]) == ["4195.76", "589.21", "193.95"]
    assert list(car["its speed-up"]) == ["–", "×7", "×22"]
    assert list(grid["seconds"]) == ["12.0", "6.00", "1.50"]
    assert list(grid["speed-up"]) == ["–", "×2", "×8"]
    assert len(tables["variants"].frame) == 5 * 3 * 3
    ours = tables["ours"].frame.set_index(["Settings", "method"])
    assert ours.loc["Objectworld 16², C4"]["dense/ours"].tolist() == ["×3"] * 3
    assert "Not measured" not in tables["table2"].caption


def test_a_setting_whose_tensors_leave_no_memory_is_not_measured_and_the_caption_says_why(task, monkeypatch):
    monkeypatch.setattr(paper_way, "memory_left", lambda: 1000)
    row = paper_way.measure_costs(task, 3).row
    assert row["status"] == paper_way.TOO_LARGE
    assert row["message"] == "dense tensors need 135 kB, too much for 1 kB of memory"  # 36² · (2 · 5 + 3) · 8 bytes
    results = as_if_measured(timing.Config())
    results.frame.loc[results.frame["setting"] == "Mountain Car 100²", [*COSTS]] = np.nan
    results.frame.loc[results.frame["variant"] == paper_way.COSTS, "status"] = paper_way.TOO_LARGE
    caption = timing.tables(results)["table2"].caption
    assert "Not measured here: Mountain Car 100² (too large for this machine's memory), Objectworld 64², C4" in caption
    assert time_claims.faster_everywhere(results).verdict == UNTESTED


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
    npl = tables["table2"].frame.set_index(["method", "Settings"]).loc["NPL"]
    assert npl.loc["Objectworld 16², C4", "seconds"] == "6.00*"
    assert npl.loc["Mountain Car 100²", "seconds"] == "≈31.1*"
    assert set(tables["ours"].frame["EVD share"]) == {"25 %"}
    lines = tables["variants"].frame.set_index(["method", "search"])
    assert set(lines["speed-up"]["NPL"]) == {"–"}  # seconds of the steps allowed tell no speed
    assert set(lines["speed-up"]["CCP"]) == {"×8"}
    reached = lines["threshold reached"]
    assert set(reached["NPL"]["L-BFGS"]) == {"0 of 1"}
    assert set(reached["CCP"]["Adam, as in the paper"]) == {"3 of 3"}


def test_what_was_measured_beside_other_work_is_marked():
    results = as_if_measured(timing.Config())
    assert all("load" not in table.frame for table in timing.tables(results).values())
    results.frame["other_work"] = results.frame["other_work"].astype(object)
    at = (results.frame["setting"] == "Objectworld 16², C4") & (results.frame["method"] == "NPL")
    results.frame.loc[at, "other_work"] = 0.96
    results.frame.loc[results.frame["setting"] == "Mountain Car 100²", "other_work"] = None  # where nobody can tell
    for name in ("table2", "ours", "variants"):
        frame = timing.tables(results)[name].frame
        marked = (frame["Settings"] == "Objectworld 16², C4") & (frame["method"] == "NPL")
        assert set(frame["load"][marked]) == {"+1.0"}
        assert set(frame["load"][~marked]) == {""}


def test_no_table_is_wider_than_the_page(broken_down):
    """In characters: a page of 1200 points was seen to have room for these, in Chromium."""
    results = as_if_measured(timing.Config())
    results.frame["other_work"] = 1.0
    steps = replace(broken_down, frame=broken_down.frame.assign(other_work=1.0))
    for table in [*timing.tables(results).values(), *breakdown.tables(steps).values()]:
        widths = [max(len(str(column)), *map(len, table.frame[column])) for column in table.frame]
        assert sum(widths) + 2 * len(widths) <= 140


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
            assert picture.paper in ("Table 2", "Tables 5 and 6")
    alt = timing.draw(as_if_measured(timing.Config()))["seconds"].alt
    assert "MCE-IRL 4.00 s" in alt
    assert "MCE-IRL ≈65.0 s" in alt


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
    assert list(frame["Settings"].unique()) == ["Mountain Car 12²", "Objectworld 5², C2"]
    total = broken_down.where(setting="Mountain Car 12²", method=family)["step"].item()
    car = frame[frame["Settings"] == "Mountain Car 12²"].set_index("Computation")
    assert car.loc["Inner Loop Per-Step Totals", "ours [s]"] == in_seconds(total)
    assert set(car["dense [s]"]) == set(frame["paper [s]"]) == {"–"}  # not measured; these sizes are not the paper's
    grid = frame[frame["Settings"] == "Objectworld 5², C2"].set_index("Computation")
    assert "–" not in set(grid["dense [s]"])


def test_the_papers_breakdown_stands_beside_ours(broken_down):
    frame = broken_down.frame.assign(precomputed=0.01, value=0.5, gradient=0.01, step=0.52)
    frame["setting"] = frame["setting"].replace(
        {"Mountain Car 12²": "Mountain Car 100²", "Objectworld 5², C2": "Objectworld 64², C4"}
    )
    table = breakdown.tables(replace(broken_down, config=breakdown.Config(), frame=frame))[breakdown.OPTIMISATION].frame
    car = table[table["Settings"] == "Mountain Car 100²"][["paper [s]", "ratio"]].to_numpy()
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


def test_value_iteration_takes_the_same_sweeps_with_a_sparse_model(task, monkeypatch):
    dense: list[int] = []

    def counting(*args: Any, **options: Any) -> DenseOptimum:
        best = dense_soft_optimum(*args, **options)
        dense.append(best.sweeps)
        return best

    monkeypatch.setattr(dense_baseline, "dense_soft_optimum", counting)
    options = {"tol": 1e-9, "max_iter": 20}
    fit_dense(task.estimator("MCE-IRL", optimizer="adam", **options), DenseModel.of(task.mdp), task.mdp, task.demos)
    rewards = [task.reward.value(theta) for theta in trail_of(task, "MCE-IRL", **options)]
    assert [best.sweeps for best in paper_way.soft_optima(task.mdp, rewards)] == dense
    assert len(dense) == 21


def test_extrapolated_seconds_are_made_of_as_many_parts_as_a_dense_search_makes(task, monkeypatch):
    made: Counter[str] = Counter()

    def counted(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def count(*args: Any, **options: Any) -> Any:
            made[f"{owner.__name__}.{name}"] += 1
            return original(*args, **options)

        monkeypatch.setattr(owner, name, count)

    for owner, name in ((DenseModel, "inverse"), (DenseCCP, "__init__"), (DenseCCP, "adjoint")):
        counted(owner, name)
    options = {"optimizer": "adam", "tol": 1e-9, "max_iter": 5}
    for method in METHODS:
        made.clear()
        fit = fit_dense(task.estimator(method, **options), DenseModel.of(task.mdp), task.mdp, task.demos)
        if method == "MCE-IRL":
            assert made == {"DenseModel.inverse": 1 + fit.iterations + fit.updates}
        else:
            steps = fit.iterations + fit.updates
            assert made == {
                "DenseModel.inverse": 1 + fit.updates, "DenseCCP.__init__": fit.updates, "DenseCCP.adjoint": steps,
            }  # fmt: skip


def test_the_seconds_of_a_step_leave_out_what_comes_before_the_first():
    rows = [(1, 5.0), (1, 6.0), (1, 8.0), (2, 20.0), (2, 21.0)]
    fit: Any = SimpleNamespace(rows=[{"update": update, "seconds": seconds} for update, seconds in rows])
    assert seconds_of_a_step(fit) == pytest.approx(4.0 / 3.0)
    fit.rows = fit.rows[:1]
    assert np.isnan(seconds_of_a_step(fit))


def test_a_dense_search_has_gradients_only(task):
    estimator = CCP(task.reward, optimizer="newton", progress=False)
    with pytest.raises(ValueError, match="newton"):
        fit_dense(estimator, DenseModel.of(task.mdp), task.mdp, task.demos)


# What the paper says of time


def test_faster_at_every_setting_can_hold_and_fail_and_be_open():
    results = as_if_measured(timing.Config())
    outcome = time_claims.faster_everywhere(results)
    assert outcome.verdict == HOLDS
    assert outcome.reason == ""
    assert list(outcome.parts) == [f"{m}, {s}" for m in ("NPL", "CCP") for s in published.TRAINING_SECONDS]
    assert "NPL: ≈×2.1 (Mountain Car 100²), ×2 (Objectworld 16², C4)" in outcome.statistic
    grid = {"setting": "Objectworld 32², C2", "variant": paper_way.WHOLE}
    one_seed = time_claims.faster_everywhere(slowed(results, 10.0, method="NPL", seed=1, **grid))
    assert one_seed.verdict == one_seed.parts["NPL, Objectworld 32², C2"] == UNDECIDED
    assert "with 2 of 3 seeds ahead (Objectworld 32², C2)" in one_seed.statistic
    failed = time_claims.faster_everywhere(slowed(results, 10.0, method="NPL", **grid))
    assert failed.verdict == failed.parts["NPL, Objectworld 32², C2"] == FAILS
    assert failed.reason.startswith("Objectworld 32², C2: NPL took ×1 MCE-IRL's steps, each at ×0.5 its seconds")


@pytest.mark.parametrize("setting", list(published.TRAINING_SECONDS))
def test_faster_at_every_setting_cannot_hold_without_all_of_them(setting):
    results = without(as_if_measured(timing.Config()), setting=setting)
    outcome = time_claims.faster_everywhere(results)
    assert outcome.verdict == outcome.parts[f"CCP, {setting}"] == UNTESTED
    assert outcome.statistic.endswith(f"not run with 2 seeds or more: {setting}")
    grid = next(
        cell for cell in timing.cells(timing.Config()) if cell.variant == "dense adam" and cell.setting != setting
    )
    slow = slowed(results, 10.0, setting=grid.setting, method="CCP", variant=paper_way.WHOLE)
    assert time_claims.faster_everywhere(slow).verdict == FAILS  # one place is enough for that


def test_one_seed_is_not_several_runs():
    for claim in (time_claims.faster_everywhere, time_claims.grows_with_size):
        assert claim(as_if_measured(replace(WHOLE_SEARCHES, seeds=1))).verdict == UNTESTED


def test_the_quick_scale_does_not_test_the_claims():
    results = as_if_measured(timing.QUICK)
    for claim in (time_claims.faster_everywhere, time_claims.grows_with_size):
        assert claim(results).verdict == UNTESTED
    statistic = time_claims.faster_everywhere(results).statistic
    assert statistic.endswith("not run with 2 seeds or more: Mountain Car 100², Objectworld 64², C4")
    assert "(Mountain Car 40²)" in statistic


def test_a_speed_up_that_grows_with_the_grid_can_hold_and_fail_and_be_open():
    results = as_if_measured(WHOLE_SEARCHES)
    for size, factor in ((16, 1.0), (32, 2.0), (64, 3.0)):
        results = slowed(results, factor, setting=f"Objectworld {size}², C4", method="MCE-IRL")
    outcome = time_claims.grows_with_size(results)
    assert (outcome.verdict, outcome.reason) == (HOLDS, "")
    assert outcome.parts == {"NPL": HOLDS, "CCP": HOLDS}
    assert outcome.statistic.startswith("NPL: ×2 → ×4 → ×6; CCP: ×8 → ×16 → ×24 (Objectworld 16², C4 → ")
    dip = slowed(results, 0.1, setting="Objectworld 32², C4", method="MCE-IRL")
    assert time_claims.grows_with_size(dip).verdict == UNDECIDED
    large = slowed(results, 10.0, setting="Objectworld 64², C4", method="NPL")
    falls = time_claims.grows_with_size(large)
    assert falls.parts == {"NPL": FAILS, "CCP": HOLDS}
    assert falls.verdict == FAILS
    assert time_claims.grows_with_size(without(results, setting="Objectworld 64², C4")).verdict == UNTESTED


def test_why_a_speed_up_falls_is_said_where_the_table_shows_it():
    results = slowed(as_if_measured(WHOLE_SEARCHES), 10.0, setting="Objectworld 64², C4", method="NPL")
    assert time_claims.grows_with_size(results).reason == ""  # as many steps as on the small grid
    results.frame.loc[results.frame["setting"] == "Objectworld 64², C4", "iterations"] = 4
    reason = time_claims.grows_with_size(results).reason
    assert "(MCE-IRL 4 instead of 10, NPL 4 instead of 10, CCP 4 instead of 10)" in reason
    assert reason.endswith("98 % of NPL's seconds instead of 50 %.")  # 1 − 4 · 0.3 / 60
    for size, factor in ((32, 2.0), (64, 3.0)):
        there = (results.frame["setting"] == f"Objectworld {size}², C4") & (results.frame["method"] == "MCE-IRL")
        results.frame.loc[there, "step"] *= factor
    grows = time_claims.grows_with_size(results).reason
    assert grows.endswith("does grow: one of MCE-IRL costs ×8 → ×16 → ×24 of CCP's.")


def test_a_step_of_mce_irl_is_told_in_steps_of_ccp():
    way = "(by the paper's way of computing ≈50)"
    assert time_tables.cost_of_a_step(as_if_measured(timing.Config())) == (
        "With sparse algebra, warm starts and reuse a step of MCE-IRL costs 8 steps of CCP on Mountain Car 100² "
        f"{way} and 8 steps of CCP on Objectworld 64², C4 {way}."
    )
    empty = as_if_measured(timing.Config())
    assert time_tables.cost_of_a_step(replace(empty, frame=empty.frame[:0])) == ""
    for claim in (time_claims.faster_everywhere, time_claims.grows_with_size):
        assert claim(replace(empty, frame=empty.frame[:0])).verdict == UNTESTED


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
