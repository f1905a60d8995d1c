"""Estimated transitions (theory N5): maximum likelihood, derivatives, reweighting, and what an MDP keeps of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from models import random_mdp, random_policy
from revealed.environments.rust_bus import bus_transitions
from revealed.errors import InvalidDemonstrations, InvalidInput, InvalidTransitions
from revealed.transition_models import SharedOutcomes

BINS = 12


def bus_landing(bins: int = BINS, outcomes: int = 3) -> np.ndarray:
    """Keep: on by o bins; replace: o bins from the first; the last bin collects."""
    grow = np.arange(outcomes)
    return np.minimum(np.stack([np.arange(bins)[:, None] + grow, np.tile(grow, (bins, 1))], axis=1), bins - 1)


def drives(n: int = 30, length: int = 25, seed: int = 0) -> Any:
    """Buses that are rarely replaced, so that many sit in the last bin, where outcomes cannot be told apart."""
    world = rv.environments.rust_bus(bins=BINS, increments=(0.3, 0.5, 0.2), RC=4.0, theta11=3.0, discount=0.9)
    return world.demonstrate(n, length, seed)


@pytest.fixture(params=["shared", "frequencies"])
def estimated(request):
    if request.param == "shared":
        return rv.estimate_transitions(drives(), bus_landing())
    mdp = random_mdp(S=5, A=2, branching=3, initial=True)
    return rv.estimate_transitions(rv.simulate(mdp, random_policy(mdp), 60, 30, seed=1))


def test_shared_outcomes_that_can_be_told_apart_have_their_shares_as_probabilities():
    agent, pair, outcome = np.zeros(10, int), np.arange(10), np.array([0, 1, 1, 2, 1, 0, 1, 1, 1, 0])
    found = SharedOutcomes(bus_landing(), BINS).fit(agent, pair, outcome, 1)
    np.testing.assert_allclose(found.psi, [0.3, 0.6], rtol=1e-14)
    assert found.llf == pytest.approx(3 * np.log(0.3) + 6 * np.log(0.6) + np.log(0.1), rel=1e-14)
    np.testing.assert_allclose(found.matrix.toarray(), bus_transitions(BINS, [0.3, 0.6, 0.1]).toarray(), atol=1e-15)


def test_counts_and_single_observations_give_the_same_estimate():
    rng = np.random.default_rng(0)
    pair, outcome = rng.integers(2 * BINS, size=200), rng.integers(3, size=200)
    joint = np.zeros((2 * BINS, 3))
    np.add.at(joint, (pair, outcome), 1.0)
    model = SharedOutcomes(bus_landing(), BINS)
    single, counted = model.fit(np.zeros(200, int), pair, outcome, 1), model.from_counts(joint)
    np.testing.assert_allclose(single.psi, counted.psi, rtol=1e-15)
    np.testing.assert_allclose(single.joint.toarray(), counted.joint.toarray())
    assert single.llf == pytest.approx(counted.llf, rel=1e-14)


def test_an_outcome_that_was_never_seen_is_no_parameter():
    found = SharedOutcomes(bus_landing(outcomes=5), BINS, "abcde").fit(
        np.zeros(4, int), np.zeros(4, int), np.array([0, 0, 3, 1]), 1
    )
    assert found.names == ("a", "b")
    np.testing.assert_allclose(found.matrix.toarray(), bus_transitions(BINS, [0.5, 0.25, 0, 0.25]).toarray())


def test_where_outcomes_cannot_be_told_apart_the_estimate_has_zero_score():
    found: Any = rv.estimate_transitions(drives(), bus_landing())
    assert (found.model.groups.sum(axis=1) > 1).any(), "no bus in the last bins: the test tests nothing"
    np.testing.assert_allclose(found.counts @ found.model.scores(found.psi), 0.0, atol=1e-6 * found.counts.sum())


@given(st.integers(0, 2**16))
def test_no_other_probabilities_make_what_was_seen_more_likely(seed):
    found = rv.estimate_transitions(drives(seed=seed % 7), bus_landing())
    other = np.random.default_rng(seed).dirichlet(np.ones(3))[:2]
    assert found.at(other).llf <= found.llf + 1e-9


def test_frequencies_are_shares_of_moves():
    mdp = random_mdp(S=5, A=2, branching=3, initial=True)
    demos = rv.simulate(mdp, random_policy(mdp), 60, 30, seed=1)
    counts = demos.transition_counts.toarray()
    found = rv.estimate_transitions(demos)
    np.testing.assert_allclose(found.matrix.toarray(), counts / counts.sum(axis=1, keepdims=True), atol=1e-15)
    seen = counts[counts > 0]
    shares = (counts / counts.sum(axis=1, keepdims=True))[counts > 0]
    assert found.llf == pytest.approx(float(seen @ np.log(shares)), rel=1e-12)


def test_derivatives_of_transitions_and_of_log_probabilities(estimated):
    V = np.random.default_rng(0).normal(size=estimated.matrix.shape[1])
    times = estimated.model.times(V)
    times = times if isinstance(times, np.ndarray) else times.toarray()
    scores = estimated.model.scores(estimated.psi)
    scores = scores if isinstance(scores, np.ndarray) else scores.toarray()
    h = 1e-6
    for k in range(estimated.psi.size):
        step = np.zeros_like(estimated.psi)
        step[k] = h
        up, down = estimated.at(estimated.psi + step), estimated.at(estimated.psi - step)
        np.testing.assert_allclose(times[:, k], (up.matrix - down.matrix) @ V / (2 * h), rtol=1e-6, atol=1e-8)
        change = up.model.log_probabilities(up.psi) - down.model.log_probabilities(down.psi)
        np.testing.assert_allclose(scores[:, k], change / (2 * h), rtol=1e-6, atol=1e-6)


def test_reweighting_agents_is_repeating_them(estimated):
    n = len(estimated.ids)
    weights = np.random.default_rng(3).integers(0, 3, n).astype(float)
    counts = np.asarray(estimated.by_agent.toarray()).T @ weights
    again = estimated.reweighted(weights)
    np.testing.assert_allclose(counts @ again.model.scores(again.psi), 0.0, atol=1e-6 * counts.sum())
    np.testing.assert_array_equal(estimated.reweighted(np.ones(n)).psi, estimated.psi)


def test_a_probability_that_rounding_makes_negative_is_zero():
    found = SharedOutcomes(bus_landing(), BINS).from_counts(np.ones((2 * BINS, 3)))
    psi = np.array([0.7, 0.3 + 3e-16])
    assert 1.0 - psi.sum() < 0.0
    rv.MDP(found.at(psi), discount=0.9)
    with pytest.raises(InvalidInput, match="probabilities >= 0"):
        rv.MDP(found.at(np.array([0.7, 0.4])), discount=0.9)


def test_pairs_not_seen_in_a_resample_keep_their_frequencies():
    demos = rv.Demonstrations.from_trajectories([([0, 1, 0], [0, 0]), ([1, 1, 0], [0, 0]), ([0, 0], [0])], 2, 1)
    found = rv.estimate_transitions(demos)
    only_last = found.reweighted(np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(only_last.matrix.toarray(), [[1.0, 0.0], [2 / 3, 1 / 3]])


def test_agent_weights_count_in_the_estimate():
    demos = drives(n=6)
    weights = np.array([2.0, 0.0, 1.0, 1.0, 3.0, 0.0])
    found = rv.estimate_transitions(demos.reweighted(weights), bus_landing())
    whole = rv.estimate_transitions(demos, bus_landing()).reweighted(weights)
    np.testing.assert_allclose(found.psi, whole.psi, atol=1e-10)


def test_an_mdp_keeps_what_its_transitions_were_estimated_from():
    found = rv.estimate_transitions(drives(), bus_landing())
    mdp = rv.MDP(found, discount=0.9)
    assert mdp.estimated is found
    assert mdp.replace(discount=0.5).estimated is found
    assert mdp.unroll(3).estimated is found
    assert mdp.replace(initial=np.full(BINS, 1 / BINS)).estimated is found
    assert mdp.replace(transitions=mdp.transitions.matrix).estimated is None
    np.testing.assert_allclose(mdp.transitions.matrix.toarray(), found.matrix.toarray(), rtol=1e-14)


def test_labels_come_along_and_others_are_refused():
    frame = {"i": [0, 0, 0, 1, 1], "t": [0, 1, 2, 0, 1], "s": list("abaab"), "a": list("xxxxx")}
    import pandas as pd

    demos = rv.Demonstrations.from_frame(pd.DataFrame(frame), id="i", time="t", state="s", action="a")
    found = rv.estimate_transitions(demos)
    assert rv.MDP(found).state_labels == ("a", "b")
    with pytest.raises(InvalidInput, match="state_labels"):
        rv.MDP(found, state_labels=["b", "a"])


def test_pairs_that_were_not_seen():
    demos = rv.Demonstrations.from_trajectories([([0, 1, 0], [0, 0])], 2, 2)
    found = rv.estimate_transitions(demos)
    with pytest.raises(InvalidTransitions, match=r"2 pairs .* state 0, action 1"):
        rv.MDP(found)
    only = rv.MDP(found, feasible=np.array([[True, False], [True, False]]))  # they are no decisions: fine
    np.testing.assert_array_equal(only.transitions.matrix.toarray()[[0, 2]], [[0, 1], [1, 0]])
    stays = rv.estimate_transitions(demos, unseen="stay").matrix.toarray()
    np.testing.assert_array_equal(stays, [[0, 1], [1, 0], [1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("landing", "message"),
    [
        (np.zeros((3, 2, 3)), "shape"),
        (np.full((BINS, 2, 3), BINS), "states 0"),
        (np.full((BINS, 2, 3), 0.5), "states 0"),
        ("nonsense", "landing"),
        (np.zeros((BINS, 2, 3)), "an outcome for every move"),
        (np.zeros((BINS, 3, 3)), "2 actions"),
    ],
)
def test_a_landing_that_does_not_fit_is_refused(landing, message):
    with pytest.raises((InvalidInput, InvalidDemonstrations), match=message):
        rv.estimate_transitions(drives(), landing)


def test_plain_counts_have_no_moves():
    with pytest.raises(InvalidDemonstrations, match="next state was seen"):
        rv.estimate_transitions(rv.Demonstrations.from_counts(np.ones((3, 2))))
