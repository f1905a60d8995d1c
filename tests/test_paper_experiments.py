"""The experiments at a size for tests: what is measured, drawn and tabulated, and the theorems that they must obey."""

import io
import re
from collections import Counter

import numpy as np
import pytest

import revealed as rv
from revealed.environments.obstacleworld import corridor
from revealed.experiments import mountaincar, objectworld, obstacleworld, partial_expert, updates
from revealed.experiments.catalogue import EXPERIMENTS
from revealed.experiments.cells import METHODS
from revealed.experiments.protocol import ALGORITHM_1, READINGS, SECTION_5
from revealed.experiments.readings import curves_of, rows_of, shares
from revealed.optimize import Iterate

GRID = obstacleworld.Config(size=5, trajectories=(1, 6), length=12, seeds=2)
CAR = mountaincar.Config(bins=12, trajectories=(3, 5), seeds=1, beside=1)
OBJECTS = objectworld.Config(size=7, picture=6, trajectories=(2, 4), max_iter=5, seeds=2)
PARTIAL = partial_expert.Config(
    size=5, trajectories=400, updates=20, learning_rate=0.15, tol=5e-5, max_iter=300, seeds=1
)
UPDATES = updates.Config(updates=6, seeds=2, obstacleworld=GRID, mountaincar=CAR, objectworld=OBJECTS)
TINY = {obstacleworld: GRID, mountaincar: CAR, objectworld: OBJECTS, partial_expert: PARTIAL, updates: UPDATES}
CURVES = [obstacleworld, mountaincar, objectworld]


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


def test_the_paper_s_figures_are_each_drawn_once(results):
    """By the pictures' own numbers; each experiment announces those that it draws."""
    drawn = {module: [picture.paper for picture in module.draw(results[module]).values()] for module in TINY}
    counts = Counter(number for numbers in drawn.values() for number in numbers if number)
    assert counts == {f"Figure {k}": 1 for k in range(1, 8)}
    for module, numbers in drawn.items():
        told = set(re.findall(r"\d", module.PAPER)) if module.PAPER.startswith("Figure") else set()
        assert {number.removeprefix("Figure ") for number in numbers if number} == told
    others = [one for name, one in EXPERIMENTS.items() if name not in {module.NAME for module in TINY}]
    assert not any(re.fullmatch(r"Figures? [\d and]+", one.PAPER) for one in others)


@pytest.mark.parametrize("module", CURVES)
def test_pictures_and_tables_are_named_by_their_reading(module, results):
    pictures, tables = module.draw(results[module]), module.tables(results[module])
    assert list(pictures)[:2] == list(tables)[:2] == ["section5", "algorithm1"]
    assert list(pictures)[-1] == "recovered"
    assert pictures["section5"].paper
    assert not pictures["algorithm1"].paper


def test_the_real_car_stands_beside_the_known_model(results):
    beside = {"real-car-kernel-estimate", "real-car-exact-transitions"}
    assert beside < set(mountaincar.draw(results[mountaincar]))
    assert beside < set(mountaincar.tables(results[mountaincar]))
    known_alone = results[mountaincar].only(variant="sample")
    assert not beside & set(mountaincar.draw(known_alone))


@pytest.mark.parametrize("module", CURVES)
@pytest.mark.parametrize("reading", READINGS)
def test_in_every_reading_methods_are_paired(module, reading, results):
    """Every setting, seed and size has all three methods, on the same decisions."""
    rows = rows_of(results[module], reading)
    groups = rows.groupby(["setting", "size", "seed"])
    assert (groups.size() == len(METHODS)).all()
    assert (groups["method"].nunique() == len(METHODS)).all()
    assert (groups["decisions"].nunique() == 1).all()
    assert (groups["floor"].nunique() == 1).all()
    assert set(rows["size"]) == set(TINY[module].trajectories)
    assert curves_of(results[module], reading).seeds == TINY[module].seeds


@pytest.mark.parametrize("module", CURVES)
def test_the_readings_differ_in_mce_irl_s_weights_alone(module, results):
    """NPL and CCP run once for both."""
    five, one = (rows_of(results[module], reading).set_index("key") for reading in (SECTION_5, ALGORITHM_1))
    own = set(five.index) ^ set(one.index)
    assert {results[module].where(key=key)["method"].item() for key in own} == {"MCE-IRL"}
    assert set(five.loc[five["method"] == "MCE-IRL", "weighting"]) == {"sample"}
    assert set(one["weighting"]) == {"occupancy"}


@pytest.mark.parametrize("module", CURVES)
def test_rows_hold_metrics_time_and_status(module, results):
    frame = results[module].frame
    for column in ("excess_nll", "evd", "stochastic_evd", "epic", "starc", "floor", "span", "blind", "seconds"):
        assert np.isfinite(frame[column]).all()
        assert (frame[column] >= 0.0).all()
    assert (frame["iterations"] > 0).all()
    assert (frame["linear_solves"] > 0).all()
    assert [variant.rpartition(" ")[2] for variant in frame["variant"]] == frame["weighting"].tolist()
    assert (frame["floor"] < frame["span"]).all()
    assert set(frame["l2"]) == {1e-5}


@pytest.mark.parametrize("module", CURVES)
def test_smaller_samples_are_the_first_of_the_largest(module, results):
    """The cells' decisions are those of the first walks."""
    config = TINY[module]
    demos = {
        obstacleworld: lambda seed: obstacleworld.problem(GRID, seed)[1],
        mountaincar: lambda seed: mountaincar.sample_of(CAR, seed),
        objectworld: lambda seed: objectworld.problem(OBJECTS, OBJECTS.size, seed)[1],
    }[module]
    few = min(config.trajectories)
    for seed in range(config.seeds):
        whole, first = demos(seed), demos(seed).subset(range(few))
        assert whole.n_agents == max(config.trajectories)
        assert (first.counts <= whole.counts).all()
        rows = rows_of(results[module], SECTION_5)
        rows = rows[(rows["seed"] == seed) & (rows["size"] == few)]
        assert set(rows["decisions"]) == {first.n_decisions}


def test_the_floor_is_what_the_expert_himself_loses():
    world, _, yard = obstacleworld.problem(GRID, 0)
    assert yard["floor"] == pytest.approx(world.truth.stochastic_evd(world.expert))
    assert yard["span"] == pytest.approx(world.truth.stochastic_evd(world.mdp.uniform_policy()))
    assert 0.0 < yard["floor"] < yard["span"]


def test_walks_are_drawn_on_the_maps_that_the_protocol_names():
    world, _, _ = obstacleworld.problem(GRID, 1)
    assert (GRID.goal, GRID.start, GRID.width) == ("absorbing", "uniform", 1)
    same = rv.environments.obstacleworld(5, GRID.density, GRID.discount, GRID.scale, 1, goal="absorbing", width=1)
    assert world.layout == same.layout
    np.testing.assert_array_equal(world.expert, same.expert)


def test_the_car_s_kernel_model_is_one_for_all_seeds_and_the_world_itself():
    car, yard = mountaincar.known_car(CAR)
    real, _ = mountaincar.exact_car(CAR)
    by_hand = real.with_kernel_transitions(real.drive(5, seed=0), known=True)
    assert abs(car.mdp.transitions.matrix - by_hand.mdp.transitions.matrix).max() == 0.0
    assert car.exact is car.mdp
    assert car.truth.evd(car.true_reward) == pytest.approx(0.0, abs=1e-9)
    assert yard["floor"] == pytest.approx(car.truth.stochastic_evd(car.expert))


def test_the_real_car_s_kernels_come_from_the_largest_sample_whatever_the_size():
    car, drives = mountaincar.problem(CAR, 0, False)
    assert len(drives) == max(CAR.trajectories)
    assert car.unsupported is not None
    assert car.exact is mountaincar.exact_car(CAR)[0].mdp
    assert car.exact.transitions.matrix.nnz != car.mdp.transitions.matrix.nnz


def test_only_the_real_car_s_estimate_is_a_second_model(results):
    frame = results[mountaincar].frame
    estimated = frame["variant"].str.startswith(mountaincar.KERNEL)
    assert estimated.any()
    for column in ("evd_planned", "stochastic_evd_planned", "unsupported"):
        assert frame.loc[~estimated, column].isna().all()
        assert (frame.loc[estimated, column] >= 0.0).all()


@pytest.mark.parametrize(
    ("trajectories", "sizes"),
    [
        ((100, 200, 400, 500, 700, 1000), (100, 400, 1000)),
        ((3, 5), (3, 5)),
        ((7,), (7,)),
        ((900, 300, 10), (10, 300, 900)),
    ],
)
def test_the_real_car_runs_with_little_data_with_much_and_at_four_hundred(trajectories, sizes):
    assert mountaincar.real_sizes(mountaincar.Config(trajectories=trajectories)) == sizes


def test_where_the_partial_expert_is_known():
    """Off the corridor; or everywhere but below it."""
    rows, columns = np.indices((5, 5))
    for width in (1, 3):
        off, above = (partial_expert.known(case, 5, width).reshape(5, 5) for case in ("corridor", "triangle"))
        assert np.array_equal(off, ~corridor(5, width))
        assert np.array_equal(~above, (rows > columns) & ~corridor(5, width))
    assert np.array_equal(partial_expert.known("triangle", 5).reshape(5, 5), np.triu(np.ones((5, 5), dtype=bool)))
    assert list(partial_expert.CASES) == ["corridor", "triangle"]


@pytest.mark.parametrize("case", partial_expert.CASES)
def test_a_partial_policy_is_the_expert_s_where_it_is_known_and_uniform_elsewhere(case):
    world, _ = partial_expert.problem(PARTIAL, 0)
    policy, there = partial_expert.partial_policy(world, case), partial_expert.known(case, 5)
    assert np.array_equal(policy[there], world.expert[there])
    assert np.array_equal(policy[~there], np.full(((~there).sum(), 4), 0.25))


@pytest.mark.parametrize("case", partial_expert.CASES)
def test_with_the_same_weights_a_settled_npl_equals_mce_irl(case, results):
    """NPL's rest point is a stationary point of MCE-IRL's objective (theory E3), here its maximum: by Algorithm 1 no
    contrast can come out."""
    rows = partial_expert.results_at(results[partial_expert], case, ALGORITHM_1).set_index("method")
    assert rows.loc["NPL", "settled"] == True  # noqa: E712
    for metric, close in (("stochastic_evd", 0.05), ("epic", 5e-3)):
        assert rows.loc["NPL", metric] == pytest.approx(rows.loc["MCE-IRL", metric], abs=close)


def test_that_holds_from_walks_too(results):
    """Where NPL settled on Obstacleworld, whose search is by Newton's method."""
    rows = results[obstacleworld].where(variant="occupancy", size=6)
    npl, own = (rows[rows["method"] == method].set_index("seed") for method in ("NPL", "MCE-IRL"))
    settled = npl["settled"] == True  # noqa: E712
    assert settled.any()
    for metric, close in (("stochastic_evd", 1e-2), ("epic", 1e-3), ("excess_nll", 1e-4)):
        np.testing.assert_allclose(npl.loc[settled, metric], own.loc[settled, metric], atol=close)


def test_with_section_5_s_weights_mce_irl_finds_the_truth_and_no_policy_matters(results):
    """Its weights are counts of walks: what is known of the policy is not read."""
    rows = results[partial_expert].where(method="MCE-IRL", variant="sample")
    assert sorted(rows["setting"]) == ["corridor", "triangle"]
    for metric in ("evd", "stochastic_evd", "epic", "iterations"):
        assert rows[metric].nunique() == 1
    found = shares(rows)
    assert (found["evd"] < 0.01).all()
    assert (found["stochastic_evd"].abs() < 0.01).all()
    npl = results[partial_expert].where(setting="triangle", method="NPL")
    assert npl["stochastic_evd"].min() > rows["stochastic_evd"].max() + 1.0


def test_a_case_that_is_not_there_yet_is_left_blank_and_said_so(results):
    """As while a run goes on."""
    partial = results[partial_expert]
    picture = partial_expert.draw(partial.only(setting="triangle"))["section5"]
    assert "corridor, no result; triangle, MCE-IRL stochastic EVD" in picture.alt
    assert [ax.get_legend() is not None for ax in picture.figure.axes[:6]] == [False] * 4 + [True, False]
    assert list(partial_expert.draw(partial.only(variant="sample"))) == ["section5"]
    assert partial_expert.draw(partial.only(setting="nowhere")) == {}


def test_paths_have_a_point_per_iteration_and_count_updates(results):
    for row, arrays in results[partial_expert].arrays(method="NPL"):
        assert len(arrays["evd"]) == len(arrays["stochastic_evd"]) == row.iterations + row.updates
        assert arrays["update"][0] == 1
        assert arrays["update"][-1] == row.updates
        assert arrays["evd"][-1] == pytest.approx(row.evd, abs=1e-9)
        assert arrays["stochastic_evd"][-1] == pytest.approx(row.stochastic_evd, abs=1e-6)


def point(update: int, policy, theta) -> Iterate:
    p = np.asarray(policy, dtype=np.float64)
    return Iterate(0, update, np.asarray(theta, dtype=np.float64), np.zeros((len(p), 1)), p, np.log(p), 0.0, 0.0)


def test_moves_average_the_total_variation_over_visited_states():
    """Three states, of which the demonstrations visit the first and the last, however often."""
    demos = rv.Demonstrations.from_counts(np.array([[1, 8], [0, 0], [1, 0]]))
    first = np.full((3, 2), 0.5)
    last = {
        1: point(1, [[0.7, 0.3], [0.9, 0.1], [0.5, 0.5]], [3.0, 4.0]),
        2: point(2, [[0.7, 0.3], [0.5, 0.5], [0.1, 0.9]], [3.0, 4.0]),
        3: point(3, [[0.6, 0.4], [0.5, 0.5], [0.1, 0.9]], [0.0, 4.0]),
    }
    found = updates.moves(demos, first, np.zeros(2), last)
    np.testing.assert_allclose(found["average"], [0.1, 0.2, 0.05])  # means of (0.2, 0), (0, 0.4), (0.1, 0)
    np.testing.assert_allclose(found["largest"], [0.4, 0.4, 0.1])  # of all states
    np.testing.assert_allclose(found["theta"], [1.0, 0.0, 0.75])


def test_moves_from_nothing_to_nothing_are_none():
    demos = rv.Demonstrations.from_counts(np.array([[1, 1]]))
    still = updates.moves(demos, np.full((1, 2), 0.5), np.zeros(1), {1: point(1, [[0.5, 0.5]], [0.0])})
    assert {name: values.tolist() for name, values in still.items()} == {"average": [0], "largest": [0], "theta": [0]}


def test_average_moves_are_at_most_the_largest(results):
    """Half the sum over A actions is at most A/2 times the largest change."""
    for setting in {cell.setting for cell in updates.cells(UPDATES)}:
        average, largest = (updates.series(results[updates], setting, name) for name in updates.MOVES)
        assert (average <= 2.5 * largest + 1e-15).all()
        assert (average[:, 0] > 0.0).all()


def test_moves_end_where_npl_settles(results):
    config = UPDATES
    for setting in {cell.setting for cell in updates.cells(config)}:
        largest = updates.series(results[updates], setting, "largest")
        assert largest.shape == (config.seeds, config.updates)
        assert (largest[:, 0] > 0.0).all()
        settled = results[updates].where(setting=setting).sort_values("seed")["settled"].to_numpy(dtype=bool)
        assert np.array_equal(settled, largest[:, -1] <= 1e-7)
