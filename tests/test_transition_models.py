"""Estimated transitions (theory N5): maximum likelihood, derivatives, reweighting, and what an MDP keeps of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from models import random_mdp, random_policy
from revealed.bootstrap import draw_weights
from revealed.environments.kernel_transitions import Places, kernel_transitions
from revealed.environments.rust_bus import bus_transitions
from revealed.errors import InvalidDemonstrations, InvalidInput, InvalidMask, InvalidTransitions
from revealed.reestimation import Reestimation
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


def test_weights_of_estimated_transitions_are_matched_by_id():
    paths = [([0, 0], [0]), ([0, 1], [0]), ([1, 0], [0])]
    demos = rv.Demonstrations.from_trajectories(paths, 2, 1, ids=["kim", "ada", "bo"])
    estimated = rv.estimate_transitions(demos)
    by_hand = estimated.reweighted(np.array([3.0, 1.0, 1.0])).matrix.toarray()
    turned = pd.Series({"bo": 1.0, "ada": 1.0, "kim": 3.0})
    np.testing.assert_array_equal(estimated.reweighted(turned).matrix.toarray(), by_hand)
    assert by_hand[0, 0] == 0.75
    with pytest.raises(InvalidInput, match="weights"):
        estimated.reweighted(turned.rename({"bo": "al"}))


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
    with pytest.raises(InvalidTransitions, match=r"2 feasible state-action pairs that were .* state 0, action 1"):
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
        (np.zeros((BINS, 2, 3)), "no outcome leads from .* to .*, which was observed"),
        (np.zeros((BINS, 3, 3)), "2 actions"),
    ],
)
def test_a_landing_that_does_not_fit_is_refused(landing, message):
    with pytest.raises((InvalidInput, InvalidDemonstrations), match=message):
        rv.estimate_transitions(drives(), landing)


def test_plain_counts_have_no_moves():
    with pytest.raises(InvalidDemonstrations, match="next state was seen"):
        rv.estimate_transitions(rv.Demonstrations.from_counts(np.ones((3, 2))))


# -- pairs that were never seen ---------------------------------------------------------------------------------------


def walks(n: int = 6, length: int = 6, seed: int = 1) -> Any:
    """Few decisions in eight states, of which some are never left."""
    mdp = random_mdp(S=8, A=3, branching=3, initial=True, terminal=1)
    return rv.simulate(mdp, random_policy(mdp), n, length, seed=seed)


def labelled() -> Any:
    import pandas as pd

    frame = {"i": [0, 0, 0, 1, 1], "t": [0, 1, 2, 0, 1], "s": list("abaab"), "a": list("xxyxx"), "n": list("babbc")}
    columns: dict[str, Any] = {"id": "i", "time": "t", "state": "s", "action": "a", "next_state": "n"}
    return rv.Demonstrations.from_frame(pd.DataFrame(frame), **columns, states=list("abc"), actions=list("xy"))


def counted_only(demos: Any) -> Any:
    """Demonstrations whose single steps were not kept."""
    return replace(demos, steps=None)


def dense_counts(demos: Any) -> np.ndarray:
    """n(s, a, s')."""
    return demos.transition_counts.toarray().reshape(demos.n_states, demos.n_actions, demos.n_states)


def test_an_mdp_does_not_offer_what_was_never_seen_if_so_told():
    demos = walks()
    seen = dense_counts(demos).sum(axis=2) > 0
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="infeasible"))
    np.testing.assert_array_equal(mdp.feasible, seen)
    np.testing.assert_array_equal(mdp.terminal, ~seen.any(axis=1))
    assert 0 < mdp.terminal.sum() < 8


def test_what_is_not_offered_adds_to_the_masks_that_are_given():
    demos = walks()
    seen = dense_counts(demos).sum(axis=2) > 0
    ends = np.arange(8) == np.flatnonzero(seen.any(axis=1))[0]
    two = int(np.flatnonzero((seen.sum(axis=1) > 1) & ~ends)[0])
    feasible = np.ones((8, 3), dtype=bool)
    feasible[two, np.flatnonzero(seen[two])[0]] = False
    estimated = rv.estimate_transitions(demos, unseen="infeasible")
    mdp = rv.MDP(estimated, feasible=feasible, terminal=ends)
    np.testing.assert_array_equal(mdp.terminal, ends | ~seen.any(axis=1))
    np.testing.assert_array_equal(mdp.feasible, seen & feasible & ~ends[:, None])
    for other in (mdp.replace(terminal=np.zeros(8)), mdp.replace(terminal=None)):
        np.testing.assert_array_equal(other.terminal, ~seen.any(axis=1))
        np.testing.assert_array_equal(other.feasible, seen & feasible)
        assert other.estimated is estimated
    with pytest.raises(InvalidMask, match="at least one feasible action"):
        rv.MDP(estimated, feasible=~seen)


def test_a_pair_that_was_taken_cannot_be_called_infeasible():
    demos = rv.Demonstrations.from_trajectories([([0, 1, 0], [0, 0, 1])], 2, 2)  # where the last led was not seen
    with pytest.raises(
        InvalidDemonstrations, match=r"1 state-action pair was observed 1 time.*state 0, action 1.*next_state="
    ):
        rv.estimate_transitions(demos, unseen="infeasible")
    assert rv.MDP(rv.estimate_transitions(demos, unseen="infeasible", smoothing=1.0)).feasible[0].all()


LAST = 30


def lives(**more: Any) -> Any:
    """Everybody decides from 25 to 30 and is not seen any more: where the decisions at 30 led is not known."""
    rng = np.random.default_rng(0)
    columns: Any = {
        "id": np.repeat(np.arange(12), 6),
        "t": np.tile(np.arange(6), 12),
        "age": np.tile(range(25, 31), 12),
    }
    columns["act"] = np.where(rng.random(72) < 0.3, "rest", "work")
    frame = pd.DataFrame(columns | {"to": columns["age"] + 1})
    end = LAST + 1 if "next_state" in more else LAST
    named: Any = {
        "id": "id",
        "time": "t",
        "state": "age",
        "action": "act",
        "states": range(25, end + 1),
        "actions": ["rest", "work"],
    }
    return rv.Demonstrations.from_frame(frame, **named | more)


def fit_lives(demos: Any, **options: Any) -> Any:
    mdp = rv.MDP(rv.estimate_transitions(demos, **options), discount=0.9)
    return rv.NFXP(rv.LinearReward(np.tile([[1.0], [0.0]], (mdp.n_states, 1, 1)), names=["rest"])).fit(mdp, demos)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("unseen", ["error", "infeasible"])
def test_smoothing_is_no_remedy_for_a_state_that_was_never_left(unseen, smoothing):
    with pytest.raises(InvalidInput) as found:
        rv.MDP(rv.estimate_transitions(lives(), unseen=unseen, smoothing=smoothing))
    told = str(found.value)
    assert (
        "(first at state 30, action 'rest'). No transition out of state 30 was observed, so there is nothing to" in told
    )
    assert "smoothing=1.0" not in told
    for remedy in ('unseen="stay"', "next_state=", "coordinates="):
        assert remedy in told


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_what_is_advised_for_such_a_state_works(smoothing):
    stay = fit_lives(lives(), unseen="stay", smoothing=smoothing)
    assert stay.converged
    assert stay.mdp.transitions.matrix.toarray()[10:, 5].tolist() == [1.0, 1.0]
    told = fit_lives(lives(next_state="to"), unseen="infeasible", smoothing=smoothing)
    assert told.converged
    assert [told.mdp.state_labels[s] for s in np.flatnonzero(told.mdp.terminal)] == [31]
    ages = np.arange(6)
    ending = rv.Demonstrations.from_trajectories([(ages, np.arange(5) % 2), (ages, np.arange(1, 6) % 2)], 6, 2)
    left_out = fit_lives(ending, unseen="infeasible", smoothing=smoothing)
    assert left_out.converged
    assert np.flatnonzero(left_out.mdp.terminal).tolist() == [5]


def test_a_kernel_fills_a_state_that_was_never_left():
    nearby = fit_lives(lives(), coordinates=np.arange(6.0), bandwidth=1.0)
    assert nearby.converged
    np.testing.assert_allclose(nearby.mdp.transitions.matrix.toarray()[10:].sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, "they must be treated by a rule (unseen=) or be made infeasible"),
        ({"unseen": "stay"}, "they stay where they are"),
        ({"unseen": "infeasible"}, "they are treated as infeasible, and 1 state without another action is terminal"),
        (
            {"unseen": "stay", "smoothing": 2.0},
            "1 use the next-state frequencies of the same state, pooled over actions, 2 stay where they are",
        ),
        ({"coordinates": [0.0, 1.0, 9.0], "bandwidth": 1.0}, NEARBY := "they take what the same action did nearby"),
    ],
)
def test_notes_count_what_was_never_seen_and_tell_the_rule(options, rule):
    notes = rv.estimate_transitions(labelled(), **options).notes
    far = " (2 of them at the nearest place, beyond two bandwidths)" if rule == NEARBY else ""
    told = "3 of 6 state-action pairs were never observed with a next state (first state 'b', action 'y'): "
    assert notes[0] == f"{told}{rule}{far}."
    known = {"smoothing": "smoothed transitions (α = 2)", "coordinates": "kernel estimates of transitions"}
    about = [
        f"standard errors take {known[k]} as known; a bootstrap over agents re-estimates them."
        for k in known
        if k in options
    ]
    assert list(notes[1:]) == about


def test_fits_repeat_the_notes_for_the_pairs_that_are_feasible():
    demos = walks()
    seen = dense_counts(demos).sum(axis=2) > 0
    ends = np.arange(8) == 7
    reward = rv.LinearReward(np.random.default_rng(0).normal(size=(8, 3, 1)))
    fit = rv.NFXP(reward).fit(rv.MDP(rv.estimate_transitions(demos, unseen="stay"), terminal=ends), demos)
    told = f"{int((~seen[:7]).sum())} of 21 feasible state-action pairs were never observed with a next state"
    assert [note for note in fit.status.notes if told in note]
    only = rv.MDP(rv.estimate_transitions(demos), feasible=seen, terminal=~seen.any(axis=1))
    assert not [note for note in rv.NFXP(reward).fit(only, demos).status.notes if "never seen" in note]


def test_everything_seen_leaves_nothing_to_note(estimated):
    assert estimated.notes == ()


def test_parameters_are_named_by_labels():
    assert rv.estimate_transitions(labelled(), unseen="stay").names == ("T(b,x→a)",)


# -- smoothing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_smoothed_transitions_are_the_formula(alpha):
    demos = walks()
    n = dense_counts(demos)
    left = n.sum(axis=(1, 2)) > 0
    q = n.sum(axis=1)[left] / n.sum(axis=(1, 2))[left, None]
    expected = (n[left] + alpha * q[:, None, :]) / (n[left].sum(axis=2, keepdims=True) + alpha)
    found = rv.estimate_transitions(demos, smoothing=alpha)
    T = found.matrix.toarray().reshape(8, 3, 8)
    np.testing.assert_allclose(T[left], expected, atol=1e-15)
    np.testing.assert_array_equal(T[~left], 0.0)
    np.testing.assert_array_equal(found.unknown // 3, np.repeat(np.flatnonzero(~left), 3))
    never = (n[left].sum(axis=2) == 0).nonzero()
    assert never[0].size
    np.testing.assert_allclose(T[left][never], q[never[0]], atol=1e-15)


def test_smoothing_keeps_what_follows_a_state_on_average():
    demos, alpha = walks(), 1.5
    n = dense_counts(demos)
    left = n.sum(axis=(1, 2)) > 0
    T = rv.estimate_transitions(demos, smoothing=alpha).matrix.toarray().reshape(8, 3, 8)[left]
    weight = n[left].sum(axis=2) + alpha
    mean = (weight[:, :, None] * T).sum(axis=1) / weight.sum(axis=1)[:, None]
    np.testing.assert_allclose(mean, n[left].sum(axis=1) / n[left].sum(axis=(1, 2))[:, None], atol=1e-14)


def test_little_smoothing_is_frequencies_and_none_is_exactly():
    demos = rv.simulate(m := random_mdp(S=5, A=2, branching=3, initial=True), random_policy(m), 60, 30, seed=1)
    plain = rv.estimate_transitions(demos)
    np.testing.assert_array_equal(rv.estimate_transitions(demos, smoothing=0.0).psi, plain.psi)
    slightly = rv.estimate_transitions(demos, smoothing=1e-9)
    np.testing.assert_allclose(slightly.matrix.toarray(), plain.matrix.toarray(), atol=1e-10)
    assert slightly.llf == pytest.approx(plain.llf, rel=1e-9)
    assert slightly.names == ()


# -- kernels ----------------------------------------------------------------------------------------------------------


def by_the_formula(n: np.ndarray, x: np.ndarray, h: Any) -> np.ndarray:
    """(N5b) one number at a time; NaN where no move of the action is near."""

    def bell(z, h):
        inside = np.all(np.abs(z) <= 2 * h * (1 + 1e-9), axis=-1)
        return np.where(inside, np.exp(-0.5 * ((z / h) ** 2).sum(axis=-1)), 0.0)

    phi, psi = (bell(x[None, :, :] - x[:, None, :], h[k]) for k in (0, 1))
    psi = psi / psi.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.einsum("iaj,is,jt->sat", n, phi, psi) / np.einsum("iaj,is->sa", n, phi)[:, :, None]


@pytest.mark.parametrize("bandwidth", [0.6, (1.0, 0.5), [[0.7, 0.4], [0.5, 0.9]]])
def test_kernel_transitions_are_the_formula_wherever_states_lie(bandwidth):
    demos = walks(20, 10)
    x = np.random.default_rng(5).normal(size=(8, 2))
    found = rv.estimate_transitions(demos, coordinates=x, bandwidth=bandwidth)
    h = np.asarray(bandwidth) if np.ndim(bandwidth) == 2 else np.ones((2, 2)) * np.reshape(bandwidth, (-1, 1))
    expected = by_the_formula(dense_counts(demos), x, h)
    T = found.matrix.toarray().reshape(8, 3, 8)
    near = ~np.isnan(expected[:, :, 0])
    np.testing.assert_allclose(T[near], expected[near], atol=1e-14)
    np.testing.assert_allclose(T.sum(axis=2), 1.0, atol=1e-14)
    assert near.any()


@pytest.mark.parametrize("bandwidth", [(1.0, 0.5), (1.5, 1.0), (2.3, 0.25)])
def test_on_a_grid_it_is_the_grid_s_own_kernel(bandwidth):
    bins, n_actions = 6, 2
    rng = np.random.default_rng(2)
    state, action, after = rng.integers(36, size=300), rng.integers(2, size=300), rng.integers(36, size=300)
    demos = rv.Demonstrations.from_trajectories(
        [([s, t], [a]) for s, a, t in zip(state, action, after, strict=True)], 36, 2
    )
    still = np.zeros(300, dtype=bool)
    place = np.stack(np.divmod(np.stack([state, after]), bins)).astype(np.float64)
    at = [Places(place[0, k], place[1, k], still) for k in (0, 1)]
    T, lost = kernel_transitions(at[0], at[1], action, bins, np.zeros(bins, dtype=bool), n_actions, bandwidth)
    step = 0.1  # whose multiples are not exact: nodes two bandwidths away must be within on both ways
    x = 7.0 + step * np.column_stack(np.divmod(np.arange(36), bins))
    found = rv.estimate_transitions(demos, coordinates=x, bandwidth=tuple(step * h for h in bandwidth))
    np.testing.assert_allclose(found.matrix.toarray(), T.toarray(), atol=1e-9)
    assert lost == 0


def test_a_wide_kernel_is_one_distribution_per_action_and_a_narrow_one_frequencies():
    demos = walks(20, 10)
    n, x = dense_counts(demos), np.arange(8.0)
    wide = rv.estimate_transitions(demos, coordinates=x, bandwidth=(1e6, 0.1)).matrix.toarray().reshape(8, 3, 8)
    per_action = n.sum(axis=0) / n.sum(axis=(0, 2))[:, None]
    np.testing.assert_allclose(wide, np.broadcast_to(per_action, wide.shape), atol=1e-9)
    narrow = rv.estimate_transitions(demos, coordinates=x, bandwidth=0.1)
    seen = n.sum(axis=2) > 0
    plain = n[seen] / n[seen].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(narrow.matrix.toarray().reshape(8, 3, 8)[seen], plain, atol=1e-14)


def test_beyond_the_kernel_a_pair_takes_what_its_action_did_at_the_nearest_place():
    demos = rv.Demonstrations.from_trajectories([([0, 1], [0]), ([0, 0], [0]), ([0, 0], [0]), ([4, 3], [0])], 5, 2)
    found = rv.estimate_transitions(demos, coordinates=[0, 1, 2, 4, 5], bandwidth=0.25, unseen="stay")
    T = found.matrix.toarray().reshape(5, 2, 5)
    near_first, near_last = [2 / 3, 1 / 3, 0, 0, 0], [0, 0, 0, 1, 0]
    np.testing.assert_allclose(T[:, 0], [near_first] * 3 + [near_last] * 2, atol=1e-15)
    np.testing.assert_array_equal(T[:, 1], np.eye(5))  # never taken: the rule for unseen pairs
    assert "3 take what the same action did nearby (3 of them at the nearest place" in found.notes[0]


def test_coordinates_in_a_frame_are_found_by_label():
    import pandas as pd

    x = pd.DataFrame({"x": [9.0, 1.0, 0.0]}, index=["c", "b", "a"])
    by_label = rv.estimate_transitions(labelled(), coordinates=x, bandwidth=1.0)
    by_place = rv.estimate_transitions(labelled(), coordinates=[0.0, 1.0, 9.0], bandwidth=1.0)
    np.testing.assert_array_equal(by_label.matrix.toarray(), by_place.matrix.toarray())


# -- what inference makes of them -------------------------------------------------------------------------------------

SMOOTH = [{"smoothing": 1.0}, {"coordinates": np.arange(12.0), "bandwidth": (1.0, 0.5)}]


@pytest.mark.parametrize("options", SMOOTH, ids=["smoothed", "kernel"])
def test_reweighting_agents_repeats_their_moves_in_smooth_estimates(options):
    demos = drives(8, 10)
    weights = np.array([2, 0, 1, 1, 3, 0, 2, 1])
    found = rv.estimate_transitions(demos, unseen="stay", **options)
    again = found.reweighted(weights.astype(float))
    repeated = rv.estimate_transitions(demos.subset(np.flatnonzero(weights)), unseen="stay", **options)
    repeated = repeated.reweighted(weights[weights > 0].astype(float))
    known = np.setdiff1d(np.arange(2 * BINS), repeated.unknown)
    np.testing.assert_allclose(again.matrix.toarray()[known], repeated.matrix.toarray()[known], atol=1e-14)
    lost = np.setdiff1d(repeated.unknown, found.unknown)
    np.testing.assert_array_equal(again.matrix.toarray()[lost], found.matrix.toarray()[lost])  # as they were
    np.testing.assert_array_equal(found.reweighted(np.ones(8)).matrix.toarray(), found.matrix.toarray())
    assert abs(again.matrix - found.matrix).max() > 1e-3


@pytest.fixture(scope="module", params=SMOOTH, ids=["smoothed", "kernel"])
def smooth_fit(request):
    demos = drives(20, 30)
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="stay", **request.param), discount=0.9)
    x = np.arange(BINS) / BINS
    features = np.stack([np.column_stack([x, 0 * x]), np.column_stack([0 * x, 1 + 0 * x])], axis=2)
    return rv.NFXP(rv.LinearReward(features, names=["miles", "replace"])).fit(mdp, demos)


@pytest.mark.parametrize("kind", ["opg", "hessian", "robust", "cluster"])
def test_joint_errors_of_a_smooth_estimate_are_resampled(smooth_fit, kind):
    """It has no ψ to be joint with: what counts its noise is a bootstrap, which says so."""
    fit = smooth_fit.with_errors(kind, joint=True, reps=5, jobs=1, progress=False)
    joint, plain = fit.cov_params(), smooth_fit.cov_params(kind)
    np.testing.assert_allclose(joint, np.cov(fit.bootstrap(5).theta, rowvar=False))
    assert list(joint.columns) == ["miles", "replace"]
    assert f'joint errors of kind "{kind}" have no formula' in joint.attrs["note"]
    assert (np.diag(plain) > 0.0).all()
    assert "note" not in plain.attrs


def test_a_bootstrap_estimates_a_smooth_T_anew(smooth_fit, monkeypatch):
    drawn, inner = [], Reestimation._mdp

    def spy(self, weights):
        mdp, psi = inner(self, weights)
        drawn.append((weights.copy(), mdp.transitions.matrix.toarray()))
        return mdp, psi

    monkeypatch.setattr(Reestimation, "_mdp", spy)
    found = smooth_fit.bootstrap(reps=3, seed=0, jobs=1)
    assert "the transitions" in str(found)
    assert len(drawn) >= 3
    for weights, T in drawn:
        np.testing.assert_allclose(T.sum(axis=1), 1.0, atol=1e-12)
        expected = smooth_fit.mdp.estimated.reweighted(weights).matrix.toarray()
        np.testing.assert_allclose(T, expected, atol=1e-14)
    assert np.abs(drawn[0][1] - drawn[1][1]).max() > 1e-3
    assert np.abs(drawn[0][1] - smooth_fit.mdp.transitions.matrix.toarray()).max() > 1e-3


def test_a_saved_fit_can_still_estimate_a_smooth_T_anew(smooth_fit, tmp_path):
    again: Any = rv.load(smooth_fit.save(tmp_path / "fit.zip")).mdp.estimated
    weights = np.random.default_rng(0).integers(0, 3, 20).astype(float)
    expected = smooth_fit.mdp.estimated.reweighted(weights).matrix.toarray()
    np.testing.assert_array_equal(again.reweighted(weights).matrix.toarray(), expected)
    assert again.notes == smooth_fit.mdp.estimated.notes


# -- panels of which only counts were kept ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"unseen": "stay"},
        {"unseen": "infeasible"},
        {"unseen": "stay", "smoothing": 0.5},
        {"landing": bus_landing()},
        SMOOTH[1],
    ],
    ids=["stay", "infeasible", "smoothed", "landing", "kernel"],
)
def test_counts_of_moves_are_enough(options):
    demos = drives(12, 20)
    whole, counted = (rv.estimate_transitions(d, **options) for d in (demos, counted_only(demos)))
    np.testing.assert_allclose(counted.matrix.toarray(), whole.matrix.toarray(), atol=1e-14)
    np.testing.assert_allclose(counted.psi, whole.psi, atol=1e-14)
    np.testing.assert_allclose(counted.joint.toarray(), whole.joint.toarray())
    assert counted.names == whole.names
    assert counted.llf == pytest.approx(whole.llf, rel=1e-12)
    assert counted.by_agent.shape[0] == 1


def test_whose_moves_they_were_is_then_not_known():
    demos = counted_only(drives(12, 20))
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="stay"), discount=0.9)
    x = np.arange(BINS) / BINS
    fit = rv.NFXP(rv.LinearReward(np.stack([x[:, None] * [1, 0], np.ones((BINS, 1)) * [0, 1]], axis=2))).fit(mdp, demos)
    with pytest.raises(InvalidInput, match="`joint` requires transitions that were estimated from the same agents"):
        fit.cov_params("cluster", joint=True)
    again = Reestimation(None, mdp, demos, fit.theta, fit.value, True)
    assert again.estimated is None
    smoothed = rv.estimate_transitions(demos, smoothing=1.0, unseen="stay")
    assert smoothed.notes[-1] == "standard errors take smoothed transitions (α = 1) as known."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": -1.0}, "`smoothing`: expected a number >= 0; got -1.0"),
        ({"smoothing": True}, "`smoothing`: expected a number >= 0; got True"),
        ({"smoothing": 1.0, "landing": bus_landing()}, "`smoothing` cannot be combined with `landing`. Choose one."),
        ({"smoothing": 1.0, "coordinates": range(12)}, "`coordinates` cannot be combined with `smoothing`"),
        ({"bandwidth": 1.0}, "`bandwidth` requires `coordinates`."),
        ({"names": ["a"]}, "`names` requires `landing`."),
        ({"unseen": "drop"}, "one of error, stay, infeasible; got 'drop'"),
        ({"coordinates": range(12)}, r"apart: try bandwidth=\(1, 0\.5\)"),
        ({"coordinates": range(12), "bandwidth": (1.0, 0.0)}, "`bandwidth`: expected a positive number"),
        ({"coordinates": range(12), "bandwidth": [1.0, 1.0, 1.0]}, r"a \(2, 1\) table"),
        ({"coordinates": range(5), "bandwidth": 1.0}, r"shape \(12, d\), a row per state; got shape \(5,\)"),
        ({"coordinates": [0.0] * 11 + [np.nan], "bandwidth": 1.0}, "finite numbers; got nan .*state 11, column 0"),
    ],
)
def test_ways_of_estimating_that_do_not_fit_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        rv.estimate_transitions(drives(3), **options)


def test_a_kernel_that_would_fill_T_is_refused(monkeypatch):
    monkeypatch.setattr("revealed.kernels.MOST_NEIGHBOURS", 100)
    with pytest.raises(InvalidInput, match="T must stay sparse"):
        rv.estimate_transitions(drives(3), coordinates=np.arange(12.0), bandwidth=50.0)


# -- bands of counterfactuals -----------------------------------------------------------------------------------------


def test_bootstrap_bands_of_a_counterfactual_estimate_a_smooth_T_anew(smooth_fit):
    """Draw by draw: T from the agents that were drawn, θ of the same draw, both worlds solved."""
    other = smooth_fit.mdp.replace(discount=0.5)
    found = smooth_fit.counterfactual(mdp=other, bands="bootstrap", reps=12, seed=3, jobs=1, progress=False)
    draws = smooth_fit.bootstrap(reps=12, seed=3, jobs=1, progress=False)
    T = [smooth_fit.mdp.estimated.reweighted(draw_weights(20, 3, int(r))) for r in draws.index]
    for side, model in ((found.before, smooth_fit.mdp), (found.after, other)):
        solved = [
            rv.solve(model.replace(transitions=t), smooth_fit.reward_model.value(theta))
            for t, theta in zip(T, draws.theta, strict=True)
        ]
        np.testing.assert_allclose(side.se.value, np.std([one.value for one in solved], axis=0, ddof=1), rtol=1e-6)
        low = np.quantile([one.policy for one in solved], 0.025, axis=0, method="weibull")
        np.testing.assert_allclose(side.lower.policy, low, rtol=1e-6)
    fixed = [rv.solve(other, smooth_fit.reward_model.value(theta)).value for theta in draws.theta]
    assert np.abs(found.after.se.value - np.std(fixed, axis=0, ddof=1)).max() > 1e-3
    assert [note for note in found.notes if "sums discounted by" not in note and "12 replications" not in note] == []


def test_a_demand_curve_follows_a_smooth_T_too(smooth_fit):
    options: Any = {"bands": "bootstrap", "reps": 6, "seed": 3, "jobs": 1, "progress": False}
    at = float(smooth_fit.theta[1])
    curve = smooth_fit.demand_curve("replace", [at, at + 1.0], action=1, **options)
    whole = smooth_fit.counterfactual(params={"replace": at + 1.0}, **options)
    np.testing.assert_allclose(curve.se[1], whole.after.se.frequencies[1], rtol=1e-6)


def test_bands_say_where_transitions_are_not_drawn_with_the_agents():
    demos = drives(20, 30)
    estimated = rv.estimate_transitions(counted_only(demos), unseen="stay", smoothing=0.5)
    reward = rv.LinearReward(np.tile([[0.0], [1.0]], (BINS, 1, 1)), names=["replace"])
    fit = rv.NFXP(reward).fit(rv.MDP(estimated, discount=0.9), demos)
    found = fit.counterfactual(params={"replace": 0.0}, bands="bootstrap", reps=4, jobs=1, progress=False)
    known = "bands take the transitions as known: they were not estimated from the resampled agents."
    assert [note for note in found.notes if "4 replications" not in note] == [known]
