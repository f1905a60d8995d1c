"""Verdicts from tables whose answer is known: each rule can say holds, does not hold and undecided, and no claim holds
without what it speaks of."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from revealed.experiments import catalogue, mountaincar, obstacleworld, partial_expert, updates
from revealed.experiments import curve_claims as rules
from revealed.experiments import other_claims as other
from revealed.experiments.cells import METHODS, Results
from revealed.experiments.curves import FITS, LIMIT
from revealed.experiments.protocol import ALGORITHM_1, SECTION_5, SENTENCES
from revealed.experiments.readings import JUDGED, UNRELATED, Curves, shares
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, UNTESTED, Estimate, all_of
from revealed.experiments.runner import results_of
from revealed.experiments.store import Store
from revealed.experiments.verdicts import RunView, judge

SIZES = (1, 3, 5, 50)
CONFIG = obstacleworld.Config(trajectories=SIZES, seeds=6)
YARD = {"floor": 0.0, "span": 1.0, "blind": 1.0}


def nothing(key: str) -> dict:
    """No arrays."""
    return {}


def curves(level, noise=0.0, seeds=6, sizes=SIZES) -> Curves:
    """Curves whose every metric is `level(method, size)`, with noise over seeds."""
    rng = np.random.default_rng(0)
    rows = [
        {"method": m, "size": n, "seed": s} | {metric: level(m, n) + noise * rng.normal() for metric in JUDGED}
        for m in METHODS
        for n in sizes
        for s in range(seeds)
    ]
    return Curves(pd.DataFrame(rows), sizes)


def table(level, config: Any = CONFIG, setting="Obstacleworld 16²", noise=0.0, seeds=6, columns=()):
    """Stored rows of every method with every kind of weights; a level is the share of what knowing nothing costs."""
    rng = np.random.default_rng(0)
    rows = []
    for method, weights in FITS:
        for size in config.trajectories:
            for seed in range(seeds):
                share = level(method, weights, size) + noise * rng.normal()
                row = {
                    "key": f"{method}{weights}{size}{seed}",
                    "setting": setting,
                    "variant": weights,
                    "method": method,
                }
                row |= {"size": size, "seed": seed, "arrays": size == max(config.trajectories), "status": "converged"}
                row |= {"settled": True, "weighting": weights, **YARD, **dict.fromkeys(JUDGED, share), "starc": share}
                rows.append(row | {"epic": share * UNRELATED})
    frame = pd.DataFrame(rows).drop(columns=list(columns))
    return Results(config, frame, frame[:0], lambda key: {"reward": np.arange(256.0)})


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


# Curves


def test_who_does_well_and_who_poorly():
    near, far = curves(lambda m, n: 0.02, 0.001), curves(lambda m, n: 0.5, 0.001)
    assert rules.does_well(near, ["MCE-IRL"], near.few).verdict == HOLDS
    assert rules.does_well(far, ["MCE-IRL"], far.few).verdict == FAILS
    assert rules.does_poorly(far, far.few).verdict == HOLDS
    assert rules.does_poorly(near, near.few).verdict == FAILS
    unclear = curves(lambda m, n: 0.1, 0.2)
    assert rules.does_well(unclear, METHODS, unclear.few).verdict == UNDECIDED
    assert rules.does_poorly(unclear, unclear.few).verdict == UNDECIDED


def test_an_advantage_is_seen_and_its_absence_too():
    metrics = ("excess_nll", "stochastic_evd", "epic")
    ahead = rules.behind(curves(lambda m, n: 0.1 if m == "MCE-IRL" else 0.2, 0.001), metrics)
    assert (ahead.verdict, len(ahead.parts), set(ahead.parts.values())) == (HOLDS, 6, {HOLDS})
    assert ahead.score == pytest.approx(0.1, abs=0.01)
    assert rules.behind(curves(lambda m, n: 0.2), metrics).verdict == FAILS
    assert rules.behind(curves(lambda m, n: 0.2 if m == "MCE-IRL" else 0.1, 0.001), metrics).verdict == FAILS
    assert UNDECIDED in rules.behind(curves(lambda m, n: 0.2, 0.5), metrics).parts.values()


def test_only_few_trajectories_count_as_little_data():
    late = curves(lambda m, n: 0.1 if m == "MCE-IRL" or n < 10 else 0.2, 0.0001)
    assert rules.behind(late, ("epic",)).verdict == FAILS
    assert Curves(late.frame, (10, 50)).few == [10]


def test_agreement_is_measured_against_the_level_with_the_least_data():
    near = curves(lambda m, n: 1.0 / n + (0.03 if m == "CCP" else 0.0), 0.001)
    assert rules.agreement(near, [50]).verdict == HOLDS  # 0.03 of 1
    far = curves(lambda m, n: 1.0 / n + (0.3 if m == "CCP" else 0.0), 0.001)
    found = rules.agreement(far, [50])
    assert (found.verdict, found.parts["NLL, NPL (50 trajectories)"], found.parts["NLL, CCP (50 trajectories)"]) == (
        FAILS, HOLDS, FAILS,
    )  # fmt: skip
    assert found.score == pytest.approx(3.0, rel=0.2)  # in units of the bound, 0.11


def test_what_next_to_nothing_costs_is_no_difference():
    tiny = curves(lambda m, n: 0.005 if m == "CCP" else 0.001, 1e-4)
    assert rules.agreement(tiny, [50]).verdict == HOLDS  # half a percent of what knowing nothing costs
    nil = rules.agreement(curves(lambda m, n: 0.0), [50])
    assert (nil.verdict, nil.score) == (HOLDS, 0.0)


def test_improvement_needs_every_method():
    assert rules.improvement(curves(lambda m, n: 1.0 / n, 0.001), ("epic",)).verdict == HOLDS
    assert rules.improvement(curves(lambda m, n: n if m == "NPL" else 1.0 / n, 0.001), ("epic",)).verdict == FAILS
    assert rules.improvement(curves(lambda m, n: 1.0 - 1e-4 * n, 1e-6), ("epic",)).verdict == FAILS  # negligible


def test_differences_are_paired_by_seed():
    found = curves(lambda m, n: 0.0)
    wild = found.frame["seed"] * 100.0  # what the methods share must not widen the interval
    found = Curves(found.frame.assign(epic=wild + (found.frame["method"] == "CCP") * 1.0), SIZES)
    gap = found.difference("epic", "CCP", "MCE-IRL", [1])
    assert (gap.mean, gap.half) == (1.0, 0.0)


def test_a_seed_without_all_sizes_is_not_averaged():
    found = curves(lambda m, n: float(n))
    short = Curves(found.frame[~((found.frame["seed"] == 0) & (found.frame["size"] == 3))], SIZES)
    assert short.difference("epic", "CCP", "MCE-IRL", [1, 3]).mean == 0.0
    assert len(short.levels("epic", "CCP", [1, 3])) == 5
    assert (found.seeds, short.seeds) == (6, 5)


def test_similar_rewards_by_correlation():
    assert rules.similar(Curves(pd.DataFrame(), (), np.array([0.97, 0.98, 0.99]))).verdict == HOLDS
    assert rules.similar(Curves(pd.DataFrame(), (), np.array([0.1, 0.2, 0.15]))).verdict == FAILS


def test_an_epic_far_below_at_equal_values():
    same = curves(lambda m, n: 1.0, 0.01)
    assert rules.low_epic(same).verdict == FAILS
    low = same.frame.assign(epic=np.where(same.frame["method"] == "CCP", 0.4, 1.0))
    assert rules.low_epic(Curves(low, SIZES)).verdict == HOLDS


def test_shares_run_from_the_expert_to_knowing_nothing():
    row = {"floor": 2.0, "span": 12.0, "blind": 0.5, "evd": 0.0, "excess_nll": 0.0, "stochastic_evd": 2.0, "epic": 0.0}
    blind = {"evd": 12.0, "excess_nll": 0.5, "stochastic_evd": 12.0, "epic": UNRELATED}
    found = shares(pd.DataFrame([row, row | blind]))[list(JUDGED)]
    assert found.to_numpy() == pytest.approx(np.array([[0.0] * 4, [1.0] * 4]))


# A partial expert, and updates


def partial(stochastic, evd=lambda c: 0.0, seeds=5):
    """Ends of the searches: `stochastic(cell)` above an expert's 1, of a span of 11."""
    config = partial_expert.Config(seeds=seeds)
    rows = [
        {**c.place, "evd": evd(c), "span": 11.0, "floor": 1.0, "blind": 1.0, "epic": 0.1, "excess_nll": 0.1,
         "stochastic_evd": 1.0 + stochastic(c) + 0.01 * c.seed}
        for c in partial_expert.cells(config)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    return Results(config, frame, frame[:0], nothing)


def found(results, reading=SECTION_5):
    view = RunView({"partial-expert": results}, reading)
    claims = (other.mce_does_well, other.npl_as_well_without_corridor, other.npl_poor_without_triangle)
    return [claim(view.partial).verdict for claim in claims]


def test_partial_experts_as_the_paper_tells_it():
    told = partial(lambda c: 5.0 if c.setting == "triangle" and c.variant == "occupancy" else 0.0)
    assert found(told) == [HOLDS, HOLDS, HOLDS]
    assert found(told, ALGORITHM_1) == [FAILS, HOLDS, FAILS]  # MCE-IRL then has the same weights
    poor = partial(lambda c: 0.0 if c.variant == "sample" else 5.0)
    assert found(poor) == [HOLDS, FAILS, HOLDS]


def test_a_seed_that_one_method_lacks_is_left_out_of_the_comparison():
    results = partial(lambda c: 5.0 if c.method == "NPL" and c.setting == "triangle" else 0.0)
    here = (results.frame["method"] == "NPL") & (results.frame["seed"] == 2)
    assert found(replace(results, frame=results.frame[~here])) == [HOLDS] * 3


def test_the_reward_is_missed_by_its_own_metric():
    view = RunView({"partial-expert": partial(lambda c: 5.0)}, SECTION_5)
    assert other.npl_misses_reward(view.partial).verdict == FAILS  # a policy that does poorly is not enough
    lost = RunView({"partial-expert": partial(lambda c: 5.0, evd=lambda c: 8.0)}, SECTION_5)
    assert other.npl_misses_reward(lost.partial).verdict == HOLDS


def moving(average):
    """NPL's moves in every world and seed."""
    config = updates.Config(seeds=4)
    frame = pd.DataFrame(
        [{**cell.place, "key": str(i), "arrays": True, "settled": True} for i, cell in enumerate(updates.cells(config))]
    )
    return Results(config, frame, frame[:0], lambda key: {"average": np.array(average)})


@pytest.mark.parametrize(
    ("average", "verdict"),
    [
        ([0.9, 0.5, 0.2, 0.001, 0.001], HOLDS),
        ([0.9, 0.5, 0.2, 0.001, 0.05], FAILS),
        ([0.9, 0.5, 0.2], HOLDS),  # it ended early: no move afterwards
    ],
)
def test_settling_looks_at_updates_after_the_third(average, verdict):
    outcome = other.comes_to_rest(RunView({"updates": moving(average)}, SECTION_5).moved)
    assert (outcome.verdict, len(outcome.parts)) == (verdict, 3)


def test_settling_in_some_seeds_is_undecided():
    outcome = other.comes_to_rest({"a": np.array([0.0, 0.0, 0.05]), "b": np.zeros(3)})
    assert (outcome.verdict, outcome.parts) == (UNDECIDED, {"a": UNDECIDED, "b": HOLDS})


# Whole runs


def by_key(results):
    return {verdict.key: verdict for verdict in judge(results)}


def test_the_contrast_of_figure_1_depends_on_the_reading():
    contrast = table(lambda m, w, n: 0.02 if w == "sample" or n == 50 else 0.5, noise=0.001)
    few = by_key({"obstacleworld": contrast})["few-others-poor"]
    assert few.section5.verdict == HOLDS
    assert few.algorithm1 is not None
    assert few.algorithm1.verdict == FAILS
    assert "theory E3" in few.algorithm1.reason  # NPL settled there, on MCE-IRL's weights
    assert "settled in 100 % of the fits" in few.algorithm1.reason
    assert few.section5.reason == ""


def test_reasons_come_from_the_table_or_are_not_given():
    from revealed.experiments.claims import cut_short, same_objective

    rows = curves(lambda m, n: 0.1).frame.assign(status="converged", settled=False, weighting="occupancy")
    assert cut_short(Curves(rows, SIZES)) == same_objective(Curves(rows, SIZES)) == ""
    cut = rows.assign(status=np.where(rows["seed"] < 3, LIMIT, "converged"))
    assert cut_short(Curves(cut, SIZES)).startswith("50 % of the searches")


@pytest.fixture
def begun(tmp_path):
    """The verdicts on a run that has no results yet, as its folder tells it."""
    return judge(results_of(Store(tmp_path), catalogue.plan_for("quick")))


def test_a_run_that_has_hardly_begun_decides_nothing(begun):
    assert [verdict.key for verdict in begun] == [sentence.key for sentence in SENTENCES]
    decided = {verdict.section5.verdict for verdict in begun} | {v.algorithm1.verdict for v in begun if v.algorithm1}
    assert decided <= {UNTESTED, UNDECIDED}


@pytest.mark.parametrize(
    ("config", "needs"),
    [
        (replace(CONFIG, size=12), "Obstacleworld 16² (here Obstacleworld 12²)"),
        (replace(CONFIG, trajectories=(1, 3, 5, 20)), "50 trajectories"),
        (replace(CONFIG, seeds=2), "3 seeds (here 2)"),
    ],
)
def test_no_claim_holds_without_what_it_speaks_of(config, needs):
    """Whatever the rule would say: a smaller grid, less data or fewer seeds do not decide."""
    told = table(lambda m, w, n: 0.02 if w == "sample" or n > 5 else 0.5, config, noise=0.001, seeds=config.seeds)
    for verdict in judge({"obstacleworld": told}):
        assert verdict.section5.verdict in (UNTESTED, UNDECIDED)
    few = by_key({"obstacleworld": told})["few-others-poor"].section5
    assert needs in few.statistic
    assert "At this scale: holds" in few.statistic or config.seeds == 2


def test_rows_that_are_missing_count_as_missing_seeds():
    whole = table(lambda m, w, n: 0.02 if w == "sample" or n > 5 else 0.5, noise=0.001)
    rows = whole.frame[(whole.frame["seed"] < 2) | (whole.frame["size"] < 50)]
    few = by_key({"obstacleworld": replace(whole, frame=rows)})["few-others-poor"]
    assert few.section5.verdict == UNTESTED
    assert "3 seeds (here 2)" in few.section5.statistic


def test_claims_about_all_worlds_need_all_worlds():
    whole = table(lambda m, w, n: 0.5 / n, noise=0.001)
    epic = by_key({"obstacleworld": whole})["epic-improves"].section5
    assert epic.verdict == UNTESTED
    assert "mountaincar" in epic.statistic


def test_a_claim_that_cannot_be_judged_leaves_the_others():
    level = lambda m, w, n: 0.02 if w == "sample" else 0.5  # noqa: E731
    verdicts = by_key({"obstacleworld": table(level, noise=0.001, columns=["settled"])})
    literal = verdicts["few-others-poor"].algorithm1
    assert literal is not None
    assert literal.verdict == FAILS  # a reason that cannot be computed leaves the verdict
    assert "KeyError" in literal.reason
    verdicts = by_key({"obstacleworld": table(level, noise=0.001, columns=["arrays"])})
    assert verdicts["few-mce-well"].section5.verdict == HOLDS
    alone = RunView({"obstacleworld": table(level, columns=["arrays"])}, SECTION_5)
    with pytest.raises(KeyError):
        alone.maps("obstacleworld")


def test_the_rewards_of_mountain_car_are_compared_where_they_can_be_seen():
    """Terminal states have no reward; a constant there would make any two rewards look alike."""
    config = mountaincar.Config(bins=12, trajectories=(3,), seeds=3)
    ended = mountaincar.known_car(config)[0].mdp.terminal
    rng = np.random.default_rng(0)
    results = table(lambda m, w, n: 0.1, config, "Mountain Car 12²", seeds=3)
    load = lambda key: {"reward": np.where(ended, 1e6, rng.normal(size=ended.size))}  # noqa: E731
    view = RunView({"mountaincar": replace(results, load=load)}, SECTION_5)
    assert rules.similar(view.maps("mountaincar")).verdict == FAILS
