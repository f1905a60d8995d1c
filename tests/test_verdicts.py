"""Verdicts from tables whose answer is known: each rule can say holds, does not hold and undecided."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from revealed.experiments import catalogue, mountaincar, objectworld, obstacleworld, partial_expert, timing, updates
from revealed.experiments.cells import METHODS, Results
from revealed.experiments.curve_claims import advantage, agreement, difference, improvement, levels, low_epic, similar
from revealed.experiments.reasons import REASONS, UNEXPECTED, likely_reason
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, Estimate, all_of
from revealed.experiments.runner import results_of
from revealed.experiments.store import Store
from revealed.experiments.verdicts import _CLAIMS, judge, partial_losses

METRICS = ("excess_nll", "evd", "stochastic_evd", "epic", "starc")
SIZES = (1, 3, 50)
CONFIG = obstacleworld.Config(trajectories=SIZES, seeds=6)


def nothing(key: str) -> dict:
    """No arrays."""
    return {}


def table(
    level, config: Any = CONFIG, setting="Obstacleworld 16²", noise=0.0, seeds=6, variants=("occupancy", "sample")
):
    """Rows whose every metric is `level(method, size)`, with noise over seeds and rewards that all are alike."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "key": f"{variant}{method}{size}{seed}",
            "setting": setting,
            "variant": variant,
            "method": method,
            "size": size,
            "seed": seed,
            "arrays": size == max(config.trajectories) and variant == "occupancy",
            **{metric: level(method, size) + noise * rng.normal() for metric in METRICS},
        }
        for variant in variants
        for method in METHODS
        for size in config.trajectories
        for seed in range(seeds)
    ]
    frame = pd.DataFrame(rows)
    return Results(config, frame, frame[:0], lambda key: {"reward": np.arange(256.0)})


def one(claim, results):
    return [verdict.verdict for verdict in claim(results)]


@pytest.mark.parametrize(
    ("values", "exceeds", "within", "above", "below"),
    [
        ([2.0, 2.1, 1.9, 2.0], HOLDS, FAILS, HOLDS, FAILS),
        ([0.0, 0.0, 0.0, 0.0], FAILS, HOLDS, FAILS, HOLDS),
        ([-2.0, -2.1, -1.9, -2.0], FAILS, FAILS, FAILS, HOLDS),
        ([3.0, -3.0, 2.0, -2.0], UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED),
        ([5.0], UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED),  # a single seed decides nothing
    ],
)
def test_rules_on_means(values, exceeds, within, above, below):
    found = Estimate.of(np.array(values))
    assert found.exceeds(0.5) == exceeds
    assert found.within(0.5) == within
    assert found.above(0.5) == above
    assert found.below(0.5) == below


def test_nothing_decides_nothing():
    nothing = Estimate.of(np.array([]))
    assert {nothing.exceeds(0.0), nothing.within(1.0), nothing.above(0.0), nothing.below(0.0)} == {UNDECIDED}
    assert all_of([]) == UNDECIDED


def test_a_claim_of_several_parts():
    assert all_of([HOLDS, HOLDS]) == HOLDS
    assert all_of([HOLDS, UNDECIDED]) == UNDECIDED
    assert all_of([UNDECIDED, FAILS, HOLDS]) == FAILS


def test_an_advantage_is_seen_and_its_absence_too():
    ahead = table(lambda method, size: 1.0 if method == "MCE-IRL" else 2.0, noise=0.01)
    assert one(advantage("occupancy"), ahead) == [HOLDS] * 6
    same = table(lambda method, size: 1.0)
    assert one(advantage("occupancy"), same) == [FAILS] * 6
    behind = table(lambda method, size: 2.0 if method == "MCE-IRL" else 1.0, noise=0.01)
    assert one(advantage("sample"), behind) == [FAILS] * 6
    unclear = table(lambda method, size: 1.0, noise=5.0)
    assert UNDECIDED in one(advantage("occupancy"), unclear)


def test_only_few_trajectories_count_as_little_data():
    late = table(lambda method, size: 1.0 if method == "MCE-IRL" or size < 10 else 2.0, noise=0.001)
    assert one(advantage("occupancy"), late) == [FAILS] * 6


def test_agreement_is_measured_against_the_level_with_the_least_data():
    last = agreement("obstacleworld", "alike", "Fig. 1", lambda n: n[-1:])
    near = table(lambda method, size: 10.0 / size + (0.3 if method == "CCP" else 0.0), noise=0.01)
    assert one(last, near) == [HOLDS]  # 0.3 of 10
    far = table(lambda method, size: 10.0 / size + (3.0 if method == "CCP" else 0.0), noise=0.01)
    assert one(last, far) == [FAILS]


def test_improvement_needs_every_method():
    gains = improvement("obstacleworld", "gains", "Fig. 1", ("epic",))
    assert one(gains, table(lambda method, size: 1.0 / size, noise=0.001)) == [HOLDS]
    assert one(gains, table(lambda m, size: size if m == "NPL" else 1.0 / size, noise=0.001)) == [FAILS]


def test_differences_are_paired_by_seed():
    results = table(lambda method, size: 0.0)
    frame = results.frame
    wild = frame["seed"] * 100.0  # what the methods share must not widen the interval
    results = Results(results.config, frame.assign(epic=wild + (frame["method"] == "CCP") * 1.0), frame[:0], nothing)
    gap = difference(results, "epic", "CCP", "MCE-IRL", [1], variant="occupancy")
    assert (gap.mean, gap.half) == (1.0, 0.0)


def test_similar_rewards_by_correlation():
    alike = table(lambda method, size: 1.0)
    assert one(similar("obstacleworld", "Fig. 6"), alike) == [HOLDS]
    rng = np.random.default_rng(0)
    other = Results(alike.config, alike.frame, alike.failed, lambda key: {"reward": rng.normal(size=256)})
    assert one(similar("obstacleworld", "Fig. 6"), other) == [FAILS]


def test_an_epic_far_below_at_equal_evd():
    config = objectworld.Config(trajectories=SIZES)
    setting = objectworld.setting(config.size, config.colors)
    results = table(lambda method, size: 1.0, config, setting, noise=0.01)
    assert one(low_epic, results) == [FAILS]
    low = results.frame.assign(epic=np.where(results.frame["method"] == "CCP", 0.4, 1.0))
    assert one(low_epic, Results(config, low, low[:0], results.load)) == [HOLDS]


def moving(largest):
    """NPL's moves in every world and seed."""
    config = updates.Config(seeds=4)
    frame = pd.DataFrame(
        [{**cell.place, "key": str(i), "arrays": True, "settled": True} for i, cell in enumerate(updates.cells(config))]
    )
    return Results(config, frame, frame[:0], lambda key: {"largest": np.array(largest)})


def test_settling_looks_at_updates_after_the_third():
    verdicts = _CLAIMS["updates"][0]
    assert one(verdicts, moving([0.9, 0.5, 0.2, 0.001, 0.001])) == [HOLDS] * 3
    assert one(verdicts, moving([0.9, 0.5, 0.2, 0.001, 0.05])) == [FAILS] * 3
    assert one(verdicts, moving([0.9, 0.5, 0.2])) == [HOLDS] * 3  # it ended early: no move afterwards


def partial(stochastic):
    """Ends of the searches: `stochastic(method, case, source)` above an expert's 1 of a span of 10."""
    config = partial_expert.Config(seeds=5)
    rows = [
        {**c.place, "evd": 0.0, "span": 10.0, "floor": 1.0, "stochastic_evd": 1.0 + stochastic(c) + 0.01 * c.seed}
        for c in partial_expert.cells(config)
    ]
    frame = pd.DataFrame(rows)
    return Results(config, frame, frame[:0], nothing)


def test_partial_experts_as_the_paper_tells_it():
    claims = _CLAIMS["partial-expert"][0]
    told = partial(lambda c: 5.0 if c.method == "NPL" and c.setting == "triangle" else 0.0)
    assert one(claims, told) == [HOLDS] * 6
    poor = partial(lambda c: 0.0 if c.variant == "full weights" else 5.0)  # as theory has it
    assert one(claims, poor) == [FAILS, FAILS, FAILS, HOLDS, FAILS, HOLDS]


def test_npl_is_the_same_in_both_readings():
    results = partial(lambda c: 5.0 if c.method == "NPL" else 0.0)
    first, second = (partial_losses(results, "NPL", "corridor", reading)[1] for reading in "ab")
    assert first.equals(second)
    assert first.to_dict() == pytest.approx({0: 0.5, 1: 0.501, 2: 0.502, 3: 0.503, 4: 0.504})


def test_a_seed_that_one_method_lacks_is_left_out_of_the_comparison():
    results = partial(lambda c: 5.0 if c.method == "NPL" and c.setting == "triangle" else 0.0)
    here = (results.frame["method"] == "NPL") & (results.frame["seed"] == 2)
    short = Results(results.config, results.frame[~here], results.failed, nothing)
    assert one(_CLAIMS["partial-expert"][0], short) == [HOLDS] * 6
    assert one(_CLAIMS["partial-expert"][1], short) == [HOLDS]


def test_the_triangle_is_compared_with_the_corridor():
    worse, better = (partial(lambda c, k=k: k if c.setting == "corridor" else 5.0) for k in (1.0, 9.0))
    assert one(_CLAIMS["partial-expert"][1], worse) == [HOLDS]
    assert one(_CLAIMS["partial-expert"][1], better) == [FAILS]


@pytest.fixture
def undecided(tmp_path):
    """The verdicts on a run that has no results yet, as its folder tells it."""
    return judge(results_of(Store(tmp_path), catalogue.plan_for("quick")))


def test_a_run_that_has_hardly_begun_is_undecided(undecided):
    verdicts = undecided
    assert len(verdicts) >= 30
    assert {verdict.verdict for verdict in verdicts} == {UNDECIDED}


def timed(seconds, seeds=3):
    """Training times with Adam: `seconds(method, states)`."""
    config = timing.Config(seeds=seeds)
    cells = [c for c in timing.cells(config) if c.variant in ("adam", "adam tighter")]
    states = {setting: k + 1 for k, setting in enumerate(dict.fromkeys(c.setting for c in cells))}
    frame = pd.DataFrame([{**c.place, "seconds": seconds(c.method, states[c.setting])} for c in cells])
    return Results(config, frame, frame[:0], nothing)


def test_speed_is_judged_at_every_setting_and_by_size():
    grows = timed(lambda method, states: states**2 if method == "MCE-IRL" else states / 2)
    assert [one(claim, grows) for claim in _CLAIMS["timing"]] == [[HOLDS], [HOLDS], [HOLDS]]
    slower = timed(lambda method, states: 0.9 / states if method == "MCE-IRL" else 1.0)
    assert [one(claim, slower) for claim in _CLAIMS["timing"]] == [[FAILS], [FAILS], [FAILS]]
    part = Results(grows.config, grows.frame[:3], grows.failed, nothing)  # a run that has only begun
    assert [one(claim, part) for claim in _CLAIMS["timing"]] == [[UNDECIDED], [UNDECIDED], [UNDECIDED]]


def test_a_run_that_lacks_its_largest_samples_is_undecided():
    begun = table(lambda method, size: 1.0 / size, noise=0.001)
    begun = Results(begun.config, begun.frame[begun.frame["size"] < 50], begun.failed, begun.load)
    assert one(improvement("obstacleworld", "gains", "Fig. 1", ("epic",)), begun) == [UNDECIDED]
    assert one(agreement("obstacleworld", "alike", "Fig. 1", lambda n: n[-1:]), begun) == [UNDECIDED]


def test_every_reason_belongs_to_a_claim(undecided):
    verdicts = undecided
    used = {
        (v.experiment, begin)
        for v in verdicts
        for name, begin in REASONS
        if name == v.experiment and v.claim.startswith(begin)
    }
    assert used == set(REASONS)
    assert likely_reason("obstacleworld", "no such claim") == UNEXPECTED


def test_the_largest_sample_of_mountain_car_is_compared_where_it_can_be_seen():
    """Terminal states have no reward; a constant there would make any two rewards look alike."""
    config = mountaincar.Config(bins=12, trajectories=(3,), seeds=2)
    ended = mountaincar.exact_car(config)[0].mdp.terminal
    rng = np.random.default_rng(0)
    results = table(lambda method, size: 1.0, config, "Mountain Car 12²", seeds=2)
    load = lambda key: {"reward": np.where(ended, 1e6, rng.normal(size=ended.size))}  # noqa: E731
    assert one(similar("mountaincar", "Fig. 7"), Results(config, results.frame, results.failed, load)) == [FAILS]


def test_a_claim_that_cannot_be_judged_leaves_the_others():
    results = table(lambda method, size: 1.0, noise=0.001)
    broken = Results(results.config, results.frame.drop(columns="epic"), results.failed, results.load)
    verdicts = judge({"obstacleworld": broken})
    assert [v.verdict for v in verdicts if "KeyError" in v.statistic] == [UNDECIDED] * 5
    assert any(v.claim.startswith("With the most data") and v.verdict == HOLDS for v in verdicts)


def test_an_improvement_that_is_negligible_is_none():
    gains = improvement("obstacleworld", "gains", "Fig. 1", ("epic",))
    assert one(gains, table(lambda m, size: 1.0 - 1e-4 * size, noise=1e-6)) == [FAILS]


def test_a_seed_without_all_sizes_is_not_averaged():
    results = table(lambda method, size: float(size))
    short = results.frame[~((results.frame["seed"] == 0) & (results.frame["size"] == 3))]
    short = Results(results.config, short, results.failed, results.load)
    assert difference(short, "epic", "CCP", "MCE-IRL", [1, 3], variant="occupancy").mean == 0.0
    assert len(levels(short, "epic", "CCP", [1, 3], variant="occupancy")) == 5
