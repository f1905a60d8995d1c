"""The specification curve: what is drawn is what the code ran, and the claims' own rules judge each specification."""

import io
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import revealed as rv
from revealed.experiments import mountaincar, objectworld, obstacleworld, partial_expert, specifications
from revealed.experiments import specification_curves as drawn
from revealed.experiments.cells import L2, make_estimator
from revealed.experiments.claims import CLAIMS
from revealed.experiments.protocol import ALGORITHM_1, SECTION_5, SENTENCES
from revealed.experiments.rules import FAILS, HOLDS, UNDECIDED, Outcome
from revealed.experiments.specification_fits import MEASURES
from revealed.experiments.specification_grid import (
    CHOICES,
    POPULATION,
    WEIGHTS,
    WORDS,
    ZIEBART,
    Config,
    name_of,
)

SMALL = Config(
    plan=(("obstacleworld", 19, 2), ("partial-expert", 6, 2), ("mountaincar", 4, 2), ("objectworld", 3, 2)),
    obstacleworld=obstacleworld.Config(size=5, trajectories=(1, 3, 6)),
    partial=partial_expert.Config(size=5, trajectories=6),
    mountaincar=mountaincar.Config(bins=12, trajectories=(4, 8)),
    objectworld=objectworld.Config(size=5, trajectories=(1, 4), max_iter=5),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return specifications.run(SMALL, tmp_path_factory.mktemp("run"), progress=False)


@pytest.fixture(scope="module")
def found(results):
    return drawn.judged(results)


@pytest.fixture(scope="module")
def pictures(results):
    return specifications.draw(results)


def test_every_specification_is_run_with_every_seed(results):
    assert len(results.failed) == 0, results.failed["message"].tolist()
    assert len(results.frame) == sum(n * seeds for _, n, seeds in SMALL.plan)


def test_the_grid_is_what_the_code_ran(results):
    """The choices of a stored row are those of its cell, and its fits are those of a world with these choices."""
    for world, n, _ in SMALL.plan:
        rows = results.where(setting=world)
        ran = [dict(one) for one in rows.sort_values(["size", "seed"])["specification"][::2]]
        assert ran == specifications.specifications(world, n)
        assert [name_of(one) for one in ran] == list(rows.drop_duplicates("size").sort_values("size")["variant"])
    row = results.where(setting="obstacleworld", size=2, seed=1).iloc[0]
    assert (row["specification"]["weights"], row["specification"]["goal"]) == ("all sample", "absorbing")
    world, demos, yard = obstacleworld.problem(SMALL.obstacleworld, 1)
    for fit in row["fits"]:
        again = make_estimator(fit["method"], world.reward_model(), 10, weighting="sample", tol=1e-4)
        scores = world.evaluate(again.fit(world.mdp, demos.subset(range(fit["size"]))))
        assert fit["stochastic_evd"] == pytest.approx(scores["stochastic_evd"])
    assert row["span"] == pytest.approx(yard["span"])


@pytest.mark.parametrize(("world", "name"), [(world, name) for world in CHOICES for name in CHOICES[world]])
def test_every_value_of_every_choice_reaches_the_fits(world, name):
    """A choice whose name nothing knows would leave the fits what they are."""
    small = replace(SMALL, objectworld=objectworld.Config(size=9, trajectories=(1, 4), max_iter=3))
    first = {key: values[0] for key, values in CHOICES[world].items()}
    fits = [str(MEASURES[world](small, first | {name: value}, 0)["fits"]) for value in CHOICES[world][name]]
    assert len(set(fits)) == len(fits)


@pytest.mark.parametrize("world", CHOICES)
def test_the_readings_come_first_then_one_choice_at_a_time(world):
    first = {name: values[0] for name, values in CHOICES[world].items()}
    changes = sum(len(values) - 1 for values in CHOICES[world].values())
    found = specifications.specifications(world, 200)
    assert found[0] == first
    assert found[1] == first | {"weights": ALGORITHM_1}
    apart = [sum(one[name] != first[name] for name in first) for one in found[: 1 + changes]]
    assert apart == [0] + [1] * changes
    assert len({name_of(one) for one in found}) == len(found)
    assert found[:40] == specifications.specifications(world, 40)  # more of them leave the first what they are


@pytest.mark.parametrize("world", CHOICES)
def test_random_specifications_are_balanced(world):
    found = specifications.specifications(world, 120)
    for name, values in CHOICES[world].items():
        counts = Counter(one[name] for one in found[20:])
        assert set(counts) == set(values)
        assert max(counts.values()) <= 1.5 * min(counts.values()) + 2, (name, counts)


def test_ziebart_matches_discounted_feature_counts_over_the_walks_length():
    """The walks' discounted feature counts equal those of the model over as many steps (less the penalty's pull)."""
    config = replace(SMALL.obstacleworld, length=12)
    world, demos, _ = obstacleworld.problem(config, 0)
    fit = rv.MCEIRL(world.reward_model(), weighting="sample", l2=0.0, progress=False, tol=1e-9).fit(
        world.mdp.unroll(12), demos.discount_visits(world.mdp.discount)
    )
    features, gamma = world.features, world.mdp.discount
    steps = demos.steps
    assert steps is not None
    told = (gamma**steps.time) @ features[steps.state]
    state = np.zeros((13, 25))
    state[0] = demos.starts
    policy = fit.policy.reshape(13, 25, 4)
    for t in range(12):
        state[t + 1] = (state[t][:, None] * policy[t]).reshape(-1) @ world.mdp.transitions.matrix
    expected = sum(gamma**t * state[t] @ features for t in range(12))
    assert expected == pytest.approx(told, rel=1e-6)
    row = MEASURES["obstacleworld"](replace(SMALL, obstacleworld=config), _first("obstacleworld", ZIEBART, 12), 0)
    mine = next(one for one in row["fits"] if one["method"] == "MCE-IRL" and one["size"] == 6)
    close = rv.MCEIRL(world.reward_model(), weighting="sample", l2=L2, progress=False, tol=1e-4).fit(
        world.mdp.unroll(12), demos.discount_visits(gamma)
    )
    reward = np.broadcast_to(world.reward_model().value(close.theta), (25, 4))
    assert mine["stochastic_evd"] == pytest.approx(world.truth.evaluate(reward=reward)["stochastic_evd"], rel=1e-6)


def _first(world, weights, length):
    return {name: values[0] for name, values in CHOICES[world].items()} | {"weights": weights, "length": length}


def test_exact_counts_let_mce_irl_find_the_truth():
    """With the expert's own occupancy its feature counts are exact, and the maximum is the truth."""
    tight = replace(SMALL, partial=replace(SMALL.partial, tol=1e-9))
    found = MEASURES["partial-expert"](tight, _first("partial-expert", POPULATION, 30), 0)
    ends = [one["stochastic_evd"] - found["floor"] for one in found["fits"] if one["method"] == "MCE-IRL"]
    assert ends == pytest.approx([0.0, 0.0], abs=1e-3 * found["span"])


def test_weights_name_all_methods():
    assert all(set(weights) == {"MCE-IRL", "NPL", "CCP"} for weights in WEIGHTS.values())
    assert {value for values in CHOICES.values() for value in values["weights"]} == set(WEIGHTS)
    assert {name for choices in CHOICES.values() for name in choices} == set(WORDS)


def test_every_claim_of_the_figures_is_judged_in_every_specification(found):
    counted = Counter((one.claim, one.world) for one in found)
    plan = {world: n for world, n, _ in SMALL.plan}
    assert counted == {(key, world): plan[world] for world, keys in drawn.CLAIMS_OF.items() for key in keys}
    timed = {"faster", "steps-cheaper", "speed-up-grows"}
    assert {key for key, _ in counted} == {sentence.key for sentence in SENTENCES} - timed
    assert set(drawn.SCORES) == set(CLAIMS) - timed


def test_shares_count_every_specification_once(results):
    for key, share in drawn.shares_of(results).items():
        worlds = [world for world, keys in drawn.CLAIMS_OF.items() if key in keys]
        assert share.of == sum(n for world, n, _ in SMALL.plan if world in worlds)


def test_a_specification_without_all_its_seeds_is_left_out(results, found):
    some = replace(results, frame=results.frame[~((results.frame["size"] == 0) & (results.frame["seed"] == 1))])
    assert len(drawn.judged(some)) < len(found)
    none = replace(results, frame=results.frame[:0])
    assert drawn.judged(none) == []
    assert drawn.pictures(none) == {}


def judged(verdict, **chosen):
    base = {"weights": SECTION_5, "discount": 0.95}
    return drawn.Judged("few-others-poor", "obstacleworld", base | chosen, Outcome(verdict, "", score=0.0))


def test_what_flips_a_claim_is_a_choice_whose_values_differ():
    found = [judged(HOLDS)] * 6 + [judged(FAILS, weights=ALGORITHM_1)] * 6
    assert drawn.what_flips(found) == "weights (Method Dependencies: 100 %, Algorithm 1: 0 %)"
    assert drawn.what_flips([judged(HOLDS)] * 6 + [judged(HOLDS, weights=ALGORITHM_1)] * 6) == ""
    few = [judged(HOLDS)] * 6 + [judged(FAILS, weights=ALGORITHM_1)] * 2  # too few to tell
    assert drawn.what_flips(few) == ""
    undecided = [judged(HOLDS)] * 6 + [judged(UNDECIDED, discount=0.9)] * 5
    assert drawn.what_flips(undecided) == "discount (0.95: 100 %, 0.9: 0 %)"


def test_a_picture_has_one_mark_for_each_specification_sorted(pictures, found):
    picture = pictures["few-others-poor"]
    marks, choices = picture.figure.axes
    x = np.concatenate([line.get_xdata() for line in marks.lines if "(" in line.get_label()])
    assert sorted(x) == list(range(19))
    scores = sorted(one.outcome.score for one in found if one.claim == "few-others-poor")
    shown = {k: v for line in marks.lines if "(" in line.get_label() for k, v in zip(*line.get_data())}
    assert [shown[k] for k in range(19)] == pytest.approx(scores)
    dots = sum(len(one.get_offsets()) for one in choices.collections)
    assert dots == 19 * len(CHOICES["obstacleworld"])  # every specification has one value of every choice
    rings = [line for line in marks.lines if line.get_markersize() == 11]
    assert len(rings) == 2  # both readings
    picture.figure.savefig(buffer := io.BytesIO(), dpi=40)
    assert buffer.getvalue()[:4] == b"\x89PNG"


def test_pictures_and_tables_of_all_claims(results, pictures, found):
    tables = specifications.tables(results)
    claims = {key for keys in drawn.CLAIMS_OF.values() for key in keys}
    assert {key for key in claims if any(name.startswith(key) for name in pictures)} == claims
    for picture in pictures.values():
        assert "nan" not in picture.alt + picture.caption
        assert "specifications, one mark each" in picture.caption
    assert len(tables["all"].frame) == len(found)
    assert list(tables["shares"].frame["claim"]) == [drawn.SHORT[key] for key in drawn.shares_of(results)]
