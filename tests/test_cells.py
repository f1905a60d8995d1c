"""Experiments consist of cells: every module has the parts, configurations are plain, keys tell cells apart."""

import json
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, fields, is_dataclass, make_dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from models import corridor, draw
from revealed.errors import InvalidInput, InvalidOption
from revealed.experiments import mountaincar, objectworld, obstacleworld, updates
from revealed.experiments.catalogue import EXPERIMENTS, SCALES, plan_for
from revealed.experiments.cells import (
    L2,
    METHODS,
    Cell,
    Experiment,
    Measured,
    Results,
    failed_row,
    fingerprint,
    fit_row,
    key_of,
    make_estimator,
    per_state,
)

TINY = {
    "obstacleworld": obstacleworld.Config(size=5, trajectories=(1, 3), seeds=1),
    "mountaincar": mountaincar.Config(bins=12, trajectories=(3, 5), seeds=1, beside=1),
    "objectworld": objectworld.Config(size=6, picture=6, trajectories=(2,), max_iter=5, seeds=1),
}
MDP = corridor(6)
DEMOS = draw(MDP, np.arange(6.0)[:, None] * 0.3, 50, 10)
REWARD = rv.TabularReward(6)


@pytest.fixture(params=EXPERIMENTS)
def experiment(request) -> Experiment:
    return EXPERIMENTS[request.param]


@pytest.fixture(params=SCALES)
def config(experiment, request) -> Any:
    return plan_for(request.param)[experiment.NAME]


# the parts of an experiment


def test_an_experiment_has_all_the_parts(experiment):
    assert EXPERIMENTS[experiment.NAME] is experiment
    assert all(len(text) > 5 for text in (experiment.TITLE, experiment.PAPER, experiment.ABOUT))
    assert isinstance(experiment.ALONE, bool)
    assert all(callable(getattr(experiment, part)) for part in ("Config", "cells", "measure", "draw", "tables", "run"))
    assert isinstance(experiment.QUICK, type(experiment.Config()))


def test_the_scales_are_the_quick_and_the_full_protocol(experiment):
    assert plan_for("quick")[experiment.NAME] == experiment.QUICK
    assert plan_for("paper")[experiment.NAME] == experiment.Config()
    assert experiment.QUICK != experiment.Config()


def test_quick_asks_for_the_same_kinds_of_cells_and_not_for_more_work(experiment):
    quick, full = (experiment.cells(config) for config in (experiment.QUICK, experiment.Config()))
    for kind in ("method", "variant"):
        here, there = ({getattr(cell, kind) for cell in cells} for cells in (quick, full))
        # quick leaves out the real car, and most specifications
        left_out = experiment.NAME in ("mountaincar", "specifications") and kind == "variant"
        assert here < there if left_out else here == there
        assert here
    assert sum(cell.cost for cell in quick) <= sum(cell.cost for cell in full)


def test_cells_are_plain_and_belong_to_their_experiment(experiment, config):
    for cell in experiment.cells(config):
        assert cell.experiment == experiment.NAME
        assert cell.setting
        assert cell.cost > 0.0
        assert 0 <= cell.seed < config.seeds
        assert json.loads(json.dumps(cell.place)) == cell.place


def test_methods_are_paired_over_seeds(experiment, config):
    asked = pd.DataFrame([cell.place for cell in experiment.cells(config)])
    seeds = asked.groupby(["setting", "variant", "size", "method"])["seed"].apply(frozenset)
    for _, at_one_place in seeds.groupby(level=["setting", "variant", "size"]):
        assert at_one_place.nunique() == 1


def test_keys_of_cells_are_unique(experiment, config):
    cells = experiment.cells(config)
    assert len({key_of(config, cell) for cell in cells}) == len(set(cells)) == len(cells)


# configurations


def tuples(value: Any) -> Any:
    """What JSON made of a configuration, with tuples where it has lists."""
    if isinstance(value, list):
        return tuple(tuples(v) for v in value)
    return {name: tuples(v) for name, v in value.items()} if isinstance(value, dict) else value


def test_a_configuration_is_frozen_hashable_and_plain(config):
    with pytest.raises(FrozenInstanceError):
        config.seeds = 1
    assert hash(config) == hash(replace(config))
    assert config == replace(config)
    assert tuples(json.loads(json.dumps(asdict(config)))) == asdict(config)


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if is_dataclass(value):
        first = fields(value)[0].name
        return replace(value, **{first: other(getattr(value, first))})  # pyright: ignore[reportArgumentType]
    if isinstance(value, tuple):
        return (*value, *value[:1])
    return {bool: lambda: not value, str: lambda: value + "x"}.get(type(value), lambda: value + 1)()


def test_the_fingerprint_differs_by_any_field_but_not_by_seeds(config):
    prints = {
        field.name: fingerprint(replace(config, **{field.name: other(getattr(config, field.name))}))
        for field in fields(config)
    }
    for more in {"seeds", "beside", "plan"} & set(prints):
        assert prints.pop(more) == fingerprint(config)
    assert fingerprint(config) not in prints.values()
    assert len(set(prints.values())) == len(prints)


def test_more_seeds_of_a_world_within_leave_the_fingerprint():
    config = updates.Config()
    more = replace(config, mountaincar=replace(config.mountaincar, seeds=99, beside=9))
    assert fingerprint(more) == fingerprint(config)


def test_experiments_with_equal_fields_have_different_fingerprints():
    here, there = (
        make_dataclass("Config", [("size", int, 3)], namespace={"__module__": f"experiments.{name}"}, frozen=True)
        for name in ("here", "there")
    )
    assert asdict(here()) == asdict(there())
    assert fingerprint(here()) != fingerprint(there())


def test_another_version_of_the_library_has_other_fingerprints(monkeypatch):
    before = fingerprint(TINY["obstacleworld"])
    monkeypatch.setattr("revealed.experiments.cells.__version__", "99.0")
    assert fingerprint(TINY["obstacleworld"]) != before


def test_fingerprints_and_keys_are_the_same_in_another_process():
    config = TINY["objectworld"]
    code = f"""
from revealed.experiments.cells import fingerprint, key_of
from revealed.experiments.objectworld import Config, cells
config = {config!r}
print(fingerprint(config), *(key_of(config, cell) for cell in cells(config)))
"""
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    here = [fingerprint(config), *(key_of(config, cell) for cell in objectworld.cells(config))]
    assert done.stdout.split() == here


def test_a_key_depends_on_every_part_of_the_place_but_not_on_the_cost():
    config, cell = TINY["obstacleworld"], Cell("obstacleworld", "there", "CCP", 3, 0, "sample", cost=1.0)
    keys = {name: key_of(config, replace(cell, **{name: other(value)})) for name, value in asdict(cell).items()}
    assert keys.pop("cost") == key_of(config, cell)
    assert len({*keys.values(), key_of(config, cell)}) == 1 + len(keys)
    assert key_of(replace(config, scale=1.0), cell) != key_of(config, cell)


# measuring


def plain_row(measured: Measured) -> dict[str, Any]:
    return {name: value for name, value in measured.row.items() if name != "seconds"}


@pytest.mark.parametrize("name", TINY)
def test_measuring_a_cell_twice_gives_the_same_row_and_arrays(name):
    module, config = sys.modules[f"revealed.experiments.{name}"], TINY[name]
    for cell in module.cells(config):
        if cell.size != max(config.trajectories):
            continue
        first = module.measure(config, cell)
        module.problem.cache_clear()  # and it is not the memory that makes them alike
        again = module.measure(config, cell)
        assert json.dumps(plain_row(first), sort_keys=True) == json.dumps(plain_row(again), sort_keys=True)
        assert first.arrays.keys() == again.arrays.keys()
        for table in first.arrays:
            np.testing.assert_array_equal(first.arrays[table], again.arrays[table])


@pytest.mark.parametrize("name", TINY)
def test_pictures_are_kept_of_the_largest_sample_alone(name):
    module, config = sys.modules[f"revealed.experiments.{name}"], TINY[name]
    cell = module.cells(config)[-1]
    world = module.problem(config, *{"mountaincar": (0, True), "objectworld": (6, 0)}.get(name, (0,)))[0]
    first = replace(cell, method="CCP", variant="occupancy", size=config.trajectories[-1])
    measured = module.measure(config, first)
    assert measured.arrays["policy"].shape == world.mdp.feasible.shape
    assert measured.arrays["reward"].shape == (world.mdp.n_states,)
    if len(config.trajectories) > 1:
        assert module.measure(config, replace(first, size=config.trajectories[0])).arrays == {}
    if len(config.trajectories) > 1:
        assert module.measure(config, replace(first, size=config.trajectories[0])).arrays == {}


@pytest.mark.parametrize(("method", "kind"), [("MCE-IRL", rv.MCEIRL), ("NPL", rv.NPL), ("CCP", rv.CCP)])
def test_methods_go_by_the_names_of_the_paper_and_share_one_penalty(method, kind):
    assert method in METHODS
    estimator = make_estimator(method, REWARD, 4, weighting="occupancy")
    assert type(estimator) is kind
    assert (estimator.options.l2, estimator.options.weighting, estimator.options.progress) == (L2, "occupancy", False)
    assert getattr(estimator, "updates", 4) == 4
    assert make_estimator(method, REWARD, 4, l2=0.5).options.l2 == 0.5


def test_the_row_of_a_fit_tells_how_it_ended_and_what_it_took():
    fit = make_estimator("NPL", REWARD, 2, tol=1e-5).fit(MDP, DEMOS)
    row = fit_row(fit, {"evd": np.float64(0.25)})
    assert row["linear_solves"] == fit.history["linear_solves"].iloc[-1]
    told = ("seconds", "iterations", "updates", "settled", "gradient_norm")
    assert [row[name] for name in told] == [getattr(fit, name) for name in told]
    assert (row["status"], row["message"]) == (fit.status.code, fit.status.message)
    assert (row["tol"], row["l2"], row["optimizer"], row["decisions"]) == (1e-5, L2, "auto", DEMOS.n_decisions)
    assert row["evd"] == 0.25
    assert json.loads(json.dumps(row)) == row


def test_half_a_fit_has_no_row():
    def enough(point: Any) -> None:
        if point.iteration == 1:
            raise KeyboardInterrupt

    fit = make_estimator("CCP", REWARD, 1, callback=enough).fit(MDP, DEMOS)
    assert fit.status.interrupted
    with pytest.raises(KeyboardInterrupt):
        fit_row(fit)


def test_a_failure_is_a_row_with_its_reason_on_one_line():
    assert failed_row(MemoryError("out of\n   it")) == {"status": "failed", "message": "MemoryError: out of it"}
    own = failed_row(InvalidInput("size", "a count", 0))
    assert own["message"] == "`size`: expected a count; got 0."  # the library's own errors speak for themselves


# results


def results() -> Results:
    rows = [
        {"key": f"{method}{size}{seed}", "method": method, "size": size, "seed": seed, "arrays": size == 3}
        for seed in (1, 0)
        for size in (1, 3)
        for method in METHODS
    ]
    return Results(TINY["obstacleworld"], pd.DataFrame(rows), pd.DataFrame(), lambda key: {"name": np.array([key])})


def test_rows_at_a_place():
    found = results()
    assert list(found.where(method="CCP", size=3)["key"]) == ["CCP31", "CCP30"]
    assert len(found.where()) == 12
    assert len(found.where(method="CCP", size=2)) == 0


def test_arrays_at_a_place_come_with_their_rows_in_the_order_of_seeds():
    found = [(row.seed, str(arrays["name"][0])) for row, arrays in results().arrays(method="NPL")]
    assert found == [(0, "NPL30"), (1, "NPL31")]
    assert list(results().arrays(method="NPL", size=1)) == []


@pytest.mark.parametrize("columns", [1, 3])
def test_a_reward_per_state_is_the_mean_over_actions(columns):
    table = np.arange(6.0).reshape(-1, columns)
    np.testing.assert_array_equal(per_state(table), [1.0, 4.0] if columns == 3 else np.arange(6.0))


def test_a_scale_that_is_none_is_refused():
    with pytest.raises(InvalidOption, match="quick, paper"):
        plan_for("big")
