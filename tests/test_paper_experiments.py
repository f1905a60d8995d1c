"""The experiments at a size for tests: what is measured, drawn and tabulated, and the theorems that they must obey."""

import io

import numpy as np
import pytest

from revealed.environments.obstacleworld import corridor
from revealed.experiments import mountaincar, objectworld, obstacleworld, partial_expert, updates
from revealed.experiments.cells import METHODS

GRID = obstacleworld.Config(size=5, trajectories=(1, 6), length=12, seeds=2)
CAR = mountaincar.Config(bins=12, trajectories=(3, 5), seeds=1, beside=1)
OBJECTS = objectworld.Config(size=7, picture=6, trajectories=(2, 4), max_iter=5, seeds=2, beside=1)
PARTIAL = partial_expert.Config(size=5, updates=20, learning_rate=0.15, tol=5e-5, max_iter=800, seeds=1)
UPDATES = updates.Config(updates=6, seeds=2, obstacleworld=GRID, mountaincar=CAR, objectworld=OBJECTS)
TINY = {obstacleworld: GRID, mountaincar: CAR, objectworld: OBJECTS, partial_expert: PARTIAL, updates: UPDATES}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return {module: module.run(config, folder, progress=False) for module, config in TINY.items()}


@pytest.mark.parametrize("module", TINY)
def test_every_cell_is_measured(module, results):
    assert len(results[module].failed) == 0, results[module].failed["message"].tolist()
    assert len(results[module].frame) == len(module.cells(TINY[module]))


@pytest.mark.parametrize("module", TINY)
def test_pictures_are_drawn_with_captions_and_words_for_those_who_cannot_see(module, results):
    pictures = module.draw(results[module])
    assert pictures
    for picture in pictures.values():
        assert len(picture.caption) > 40
        assert len(picture.alt) > 40
        assert "nan" not in picture.alt
        picture.figure.savefig(buffer := io.BytesIO(), dpi=40)
        assert buffer.getvalue()[:4] == b"\x89PNG"


@pytest.mark.parametrize("module", TINY)
def test_tables_have_rows_and_no_empty_numbers(module, results):
    for table in module.tables(results[module]).values():
        assert len(table.frame)
        assert not table.frame.astype(str).map(lambda cell: "nan" in cell).to_numpy().any()


@pytest.mark.parametrize("module", [obstacleworld, mountaincar, objectworld])
def test_methods_are_paired(module, results):
    """Every seed, size and variant has all three methods, on the same decisions."""
    groups = results[module].frame.groupby(["setting", "variant", "size", "seed"])
    assert (groups["method"].nunique() == len(METHODS)).all()
    assert (groups["decisions"].nunique() == 1).all()


@pytest.mark.parametrize("module", [obstacleworld, mountaincar, objectworld])
def test_rows_hold_metrics_time_and_status(module, results):
    frame = results[module].frame
    for column in ("excess_nll", "evd", "stochastic_evd", "epic", "starc", "floor", "seconds"):
        assert np.isfinite(frame[column]).all()
        assert (frame[column] >= 0.0).all()
    assert (frame["iterations"] > 0).all()
    assert (frame["linear_solves"] > 0).all()
    assert set(frame["weighting"]) == {"occupancy", "sample"}
    assert set(frame["l2"]) == {1e-5}


def test_smaller_samples_are_the_first_of_the_largest():
    _, demos, _ = obstacleworld.problem(GRID, 1)
    few = demos.subset(range(1))
    assert (few.counts <= demos.counts).all()
    assert few.n_decisions == 12


def test_the_floor_is_what_the_expert_itself_loses():
    world, _, floor = obstacleworld.problem(GRID, 0)
    assert floor == pytest.approx(world.truth.stochastic_evd(world.expert))
    assert floor > 0.0


def test_kernel_transitions_come_from_the_largest_sample_whatever_the_size():
    car, drives = mountaincar.problem(CAR, 0, False)
    assert len(drives) == max(CAR.trajectories)
    assert car.unsupported is not None
    assert car.exact.transitions.matrix.nnz != car.mdp.transitions.matrix.nnz


def test_with_exact_transitions_there_is_no_second_model(results):
    frame = results[mountaincar].frame
    exact = frame["variant"] == "exact T"
    assert frame.loc[exact, "evd_planned"].isna().all()
    assert frame.loc[~exact, "evd_planned"].notna().all()


def test_where_the_partial_expert_is_known():
    off, above, but_goal = (partial_expert.known(case, 5).reshape(5, 5) for case in partial_expert.CASES)
    assert np.array_equal(np.argwhere(off != but_goal), [[4, 4]])
    assert np.array_equal(off, ~corridor(5))
    assert np.array_equal(above, np.triu(np.ones((5, 5), dtype=bool)))
    world, _ = partial_expert.problem(PARTIAL, 0)
    policy = partial_expert.partial_policy(world, "triangle")
    assert np.array_equal(policy[above.reshape(-1)], world.expert[above.reshape(-1)])
    assert np.array_equal(policy[~above.reshape(-1)], np.full(((~above).sum(), 4), 0.25))


@pytest.mark.parametrize("case", partial_expert.CASES)
def test_with_the_same_weights_a_settled_npl_equals_mce_irl(case, results):
    """Reading (a): NPL's rest point is a stationary point of MCE-IRL's objective (theory E3), here its maximum."""
    frame = results[partial_expert].frame
    rows = frame[(frame["setting"] == case) & (frame["variant"] == "partial weights")].set_index("method")
    for metric, close in (("stochastic_evd", 1e-2), ("epic", 1e-3)):
        assert rows.loc["NPL", metric] == pytest.approx(rows.loc["MCE-IRL", metric], abs=close)


def test_with_full_weights_mce_irl_finds_the_truth(results):
    rows = results[partial_expert].where(method="MCE-IRL", variant="full weights")
    assert rows["evd"].max() < 1e-6
    assert rows["epic"].max() < 0.02


def test_paths_have_a_point_per_iteration_and_count_updates(results):
    for row, arrays in results[partial_expert].arrays(method="NPL"):
        assert len(arrays["evd"]) == len(arrays["stochastic_evd"]) == row.iterations + row.updates
        assert arrays["update"][0] == 1
        assert arrays["update"][-1] == row.updates
        assert arrays["evd"][-1] == pytest.approx(row.evd, abs=1e-9)
        assert arrays["stochastic_evd"][-1] == pytest.approx(row.stochastic_evd, abs=1e-6)


def test_moves_end_where_npl_settles(results):
    config = UPDATES
    for setting in {cell.setting for cell in updates.cells(config)}:
        largest = updates.series(results[updates], setting, "largest")
        assert largest.shape == (config.seeds, config.updates)
        assert (largest[:, 0] > 0.0).all()
        settled = results[updates].where(setting=setting).sort_values("seed")["settled"].to_numpy(dtype=bool)
        assert np.array_equal(settled, largest[:, -1] <= 1e-7)
