"""EPIC and STARC against their dense definitions, what they are blind to, and what they see (theory D4–D6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

import revealed as rv
from models import corridor, random_mdp, random_reward
from oracle import Floats
from revealed.errors import InvalidDistribution, InvalidReward, RevealedError
from revealed.metrics import epic, evd, starc
from revealed.transitions.csr import is_sparse
from zoo import KINDS, Problem, make_problem, problems, seeds

EPS = float(np.finfo(float).eps)
FORMS = ("pairs", "dense", "sparse")
COVERAGES = ("default", "pairs", "joint", "sparse joint")
Long = np.longdouble

# ------------------------------------------------------------------------------------------- the dense definitions


def draw_reward(mdp: rv.MDP, form: str, seed: int) -> Any:
    """A reward of pairs, or one that looks at s': dense, or sparse with about half of its numbers stored."""
    S, A = mdp.feasible.shape
    rng = np.random.default_rng([seed, 20])
    if form == "pairs":
        return rng.normal(size=(S, A))
    table = rng.normal(size=(S * A, S))
    return table.reshape(S, A, S) if form == "dense" else sp.csr_array(table * (rng.random(table.shape) < 0.5))


def as_dense(mdp: rv.MDP, reward: Any) -> Any:
    """R(s, a, s') as an array, in as much precision as there is."""
    S, A = mdp.feasible.shape
    if is_sparse(reward):
        return reward.toarray().reshape(S, A, S).astype(Long)
    array = np.asarray(reward, dtype=Long)
    return array if array.ndim == 3 else np.broadcast_to(array[:, :, None], (S, A, S))


def draw_coverage(mdp: rv.MDP, kind: str, seed: int) -> Any:
    S, A = mdp.feasible.shape
    rng = np.random.default_rng([seed, 21])
    if kind == "default":
        return None
    some = rng.random(S) < 0.7
    some[np.flatnonzero(~mdp.terminal)[0]] = True
    pairs = rng.uniform(0.1, 2.0, (S, A)) * mdp.feasible * some[:, None]
    if kind == "pairs":
        return pairs
    joint = pairs[:, :, None] * rng.uniform(0.0, 1.0, (S, A, S)) * (rng.random((S, A, S)) < 0.8)
    joint[:, :, 0] += 0.1 * pairs
    return joint if kind == "joint" else sp.csr_array(joint.reshape(S * A, S))


def dense_coverage(mdp: rv.MDP, coverage: Any) -> tuple[Any, Any, Any]:
    """D(s, a, s'), D_S(s) and D_A(a|s) of Gleave et al.; even over the actions where a state has no weight."""
    going, uniform = ~mdp.terminal, mdp.feasible / np.maximum(mdp.feasible.sum(axis=1, keepdims=True), 1)
    S, A = mdp.feasible.shape
    if coverage is None:
        coverage = going[:, None] * uniform
    weights = np.asarray(coverage.toarray().reshape(S, A, S) if is_sparse(coverage) else coverage, dtype=Long)
    weights = weights / weights.sum()
    pairs = weights if weights.ndim == 2 else weights.sum(axis=2)
    states = pairs.sum(axis=1)
    actions = np.where(states[:, None] > 0, pairs / np.where(states > 0, states, 1)[:, None], uniform)
    return (pairs[:, :, None] * states if weights.ndim == 2 else weights), states, actions


def canonical(gamma: float, R: Any, states: Any, actions: Any) -> Any:
    """R(s,a,s') + E[γR(s',A,S') − R(s,A,S') − γR(S,A,S')] (Gleave et al. 2020, Definition 4.1)."""
    M = np.einsum("sa,sat,t->s", actions, R, states)
    return R + gamma * M - M[:, None, None] - gamma * (states @ M)


def standardised(mdp: rv.MDP, reward: Any, coverage: Any = None) -> tuple[Any, Any, float]:
    """The canonical reward less its mean, the coverage, and its standard deviation; zeros where it vanishes."""
    D, states, actions = dense_coverage(mdp, coverage)
    R = np.where(mdp.feasible[:, :, None], as_dense(mdp, reward), 0.0)
    C = canonical(mdp.discount, R, states, actions)
    C = C - (D * C).sum()
    size = np.sqrt((D * C**2).sum())
    return (C / size if size > 1e-12 * np.abs(R).max() else 0.0 * C), D, float(size)


def dense_epic(mdp: rv.MDP, a: Any, b: Any, coverage: Any = None) -> float:
    """√((1 − ρ)/2), ρ the Pearson correlation of the canonical rewards."""
    (A, D, size_a), (B, _, size_b) = standardised(mdp, a, coverage), standardised(mdp, b, coverage)
    if not (A.any() and B.any()):
        return 0.0 if A.any() == B.any() else 0.5
    assert size_a > 0.0
    assert size_b > 0.0
    return float(np.sqrt(np.maximum(0, (1 - (D * A * B).sum()) / 2)))


def advantage(mdp: rv.MDP, reward: Any) -> tuple[Floats, float]:
    """r + γTV − V for the value V of the uniform policy, and the size of what it was made from."""
    S, A = mdp.feasible.shape
    T = mdp.transitions.matrix.toarray().reshape(S, A, S)
    r = np.where(mdp.feasible, (T * as_dense(mdp, reward)).sum(axis=2).astype(float), 0.0)
    if np.ndim(reward) == 2 and not is_sparse(reward):
        r = np.where(mdp.feasible, reward, 0.0)
    uniform = mdp.feasible / np.maximum(mdp.feasible.sum(axis=1, keepdims=True), 1)
    step = np.einsum("sa,sat->st", uniform, T)
    V = np.linalg.solve(np.eye(S) - mdp.discount * step, (uniform * r).sum(axis=1))
    return np.where(mdp.feasible, r + mdp.discount * T @ V - V[:, None], 0.0), float(np.abs(r).max() + np.abs(V).max())


def dense_starc(mdp: rv.MDP, a: Any, b: Any, coverage: Any = None) -> float:
    weights = dense_coverage(mdp, coverage)[0].sum(axis=2).astype(float)
    forms = []
    for reward in (a, b):
        form, made_from = advantage(mdp, reward)
        size = np.sqrt((weights * form**2).sum())
        forms.append(form / size if size > 1e-12 * made_from else 0.0 * form)
    if not (forms[0].any() and forms[1].any()):
        return 0.0 if forms[0].any() == forms[1].any() else 0.5
    return 0.5 * float(np.sqrt((weights * (forms[0] - forms[1]) ** 2).sum()))


def assert_same(distance: float, reference: float, tolerance: float = 1e-12) -> None:
    """Equal; near zero, where the reference's 1 − ρ has no digits left, equal squares."""
    assert 0.0 <= distance <= 1.0
    assert abs(distance**2 - reference**2) <= tolerance
    assert abs(distance - reference) <= tolerance or reference < 1e-3


def shaping(mdp: rv.MDP, phi: Floats) -> Floats:
    """γφ(s') − φ(s), dense (S, A, S)."""
    S, A = mdp.feasible.shape
    return np.broadcast_to((mdp.discount * phi - phi[:, None])[:, None, :], (S, A, S)).copy()


def known_shaping(mdp: rv.MDP, phi: Floats) -> Floats:
    """γTφ − φ, (S, A)."""
    return np.where(mdp.feasible, mdp.discount * mdp.transitions.expect(phi) - phi[:, None], 0.0)


def blow_up(mdp: rv.MDP, *rewards: Any) -> float:
    """How much larger than its canonical form a reward is, at worst: what rounding is multiplied by."""
    return max(float(np.abs(as_dense(mdp, r)).max()) / max(standardised(mdp, r)[2], 1e-300) for r in rewards)


# ---------------------------------------------------------------------------------------------------------- EPIC


@given(problems(), st.sampled_from(FORMS), st.sampled_from(FORMS), st.sampled_from(COVERAGES), seeds)
def test_epic_is_the_pearson_distance_of_canonical_rewards(animal, form_a, form_b, kind, seed):
    mdp = animal.mdp
    a, b = draw_reward(mdp, form_a, seed), draw_reward(mdp, form_b, seed + 1)
    coverage = draw_coverage(mdp, kind, seed)
    assert_same(epic(mdp, a, b, coverage), dense_epic(mdp, a, b, coverage))


@pytest.mark.parametrize("kind", COVERAGES)
@pytest.mark.parametrize("form_b", FORMS)
@pytest.mark.parametrize("form_a", FORMS)
def test_epic_in_every_form_with_every_coverage(form_a, form_b, kind):
    mdp = random_mdp(7, 3, masked=True, terminal=2, seed=5)
    a, b = draw_reward(mdp, form_a, 0), draw_reward(mdp, form_b, 1)
    coverage = draw_coverage(mdp, kind, 0)
    expected = dense_epic(mdp, a, b, coverage)
    assert 0.2 < expected < 0.95
    assert abs(epic(mdp, a, b, coverage) - expected) <= 1e-12


@given(problems(), seeds)
def test_the_covariance_of_canonical_rewards_of_pairs_needs_no_next_state(animal, seed):
    """(D5): Cov = E[(R₁ − μ₁)(R₂ − μ₂)] + γ² Cov_s(μ₁, μ₂)."""
    mdp = animal.mdp
    a, b = draw_reward(mdp, "pairs", seed), draw_reward(mdp, "pairs", seed + 1)
    D, p, actions = dense_coverage(mdp, draw_coverage(mdp, "pairs", seed))
    C = [canonical(mdp.discount, as_dense(mdp, r), p, actions) for r in (a, b)]
    covariance = (D * C[0] * C[1]).sum() - (D * C[0]).sum() * (D * C[1]).sum()
    mu = [(actions * r).sum(axis=1) for r in (a, b)]
    inside = (p[:, None] * actions * (a - mu[0][:, None]) * (b - mu[1][:, None])).sum()
    between = (p * mu[0] * mu[1]).sum() - (p @ mu[0]) * (p @ mu[1])
    assert abs(covariance - (inside + mdp.discount**2 * between)) <= 1e-14


def test_by_default_every_state_that_goes_on_and_each_of_its_actions_count_alike():
    mdp = random_mdp(7, 3, masked=True, terminal=2, seed=1)
    a, b = draw_reward(mdp, "dense", 0), draw_reward(mdp, "dense", 1)
    going = ~mdp.terminal
    joint = (going[:, None] * mdp.uniform_policy())[:, :, None] * going
    for distance in (epic, starc):
        assert distance(mdp, a, b) == pytest.approx(
            distance(mdp, a, b, going[:, None] * mdp.uniform_policy()), abs=1e-14
        )
        assert distance(mdp, a, b) == pytest.approx(distance(mdp, a, b, 7.0 * joint), abs=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_epic_keeps_its_digits_where_the_pearson_distance_loses_them(form):
    mdp = random_mdp(8, 3, masked=True, seed=2)
    a, noise = draw_reward(mdp, form, 0), draw_reward(mdp, form, 1)
    b = a + 1e-9 * noise
    (A, D, size), (B, _, _) = standardised(mdp, a), standardised(mdp, b)
    exact = 0.5 * float(np.sqrt((D * (A - B) ** 2).sum()))
    N = standardised(mdp, noise)
    along = float((D * A * N[0]).sum())
    first_order = 0.5 * 1e-9 * N[2] / size * np.sqrt(1.0 - along**2)
    assert exact == pytest.approx(first_order, rel=1e-5)
    assert epic(mdp, a, b) == pytest.approx(exact, rel=1e-6)
    A, B, D = A.astype(float), B.astype(float), D.astype(float)
    pearson = (D * A * B).sum() / np.sqrt((D * A * A).sum() * (D * B * B).sum())
    assert np.sqrt(max(0.0, 1.0 - pearson) / 2.0) != pytest.approx(exact, rel=0.1)


@given(problems(), st.sampled_from(FORMS), st.floats(1e-3, 1e3), st.floats(-5.0, 5.0), seeds)
def test_epic_sees_neither_scale_nor_shift_nor_shaping(animal, form, scale, shift, seed):
    mdp = animal.mdp
    a = draw_reward(mdp, form, seed)
    assume(blow_up(mdp, a) < 1e3)
    phi = np.random.default_rng(seed).normal(size=mdp.n_states)
    scaled = scale * a
    moved = as_dense(mdp, a).astype(float) + shift
    shaped = scale * (moved + shaping(mdp, phi))
    for b in (scaled, moved, shaped):
        assert epic(mdp, a, b) <= 32 * EPS * blow_up(mdp, a, b)


@pytest.mark.parametrize("kind", COVERAGES)
def test_epic_sees_no_shaping_under_any_coverage_of_states_that_go_on(kind):
    phi = np.random.default_rng(0).normal(size=9)
    mdp = random_mdp(9, 3, masked=True, seed=4)
    a = draw_reward(mdp, "dense", 0)
    assert epic(mdp, a, 2.0 * a + shaping(mdp, phi) + 1.0, draw_coverage(mdp, kind, 0)) <= 1e-14
    ends = random_mdp(9, 3, masked=True, seed=4, terminal=2)
    seen = epic(ends, a, a + shaping(ends, phi * ~ends.terminal), draw_coverage(ends, kind, 0))
    assert seen > 0.01 if "joint" in kind else seen <= 1e-14  # joint weights reach terminal s', where M = 0 (D5)


@pytest.mark.parametrize("full", [False, True])
def test_epic_sees_no_shaping_of_sparse_rewards(full):
    """What is not stored is zero, and counts; γφ(s') − φ(s) cancels against it, and no digit may be lost by that."""
    mdp = random_mdp(30, 3, masked=True, terminal=1, seed=3)
    S, A = mdp.feasible.shape
    a = draw_reward(mdp, "sparse", 0)
    phi = np.random.default_rng(0).normal(size=S) if full else np.eye(S)[4]
    shape = sp.csr_array(shaping(mdp, phi).reshape(S * A, S))
    assert shape.nnz == S * A * S if full else shape.nnz < 4 * S * A
    assert epic(mdp, a, a + shape) <= 1e-14
    assert epic(mdp, shape, np.zeros((S, A))) == 0.0
    assert epic(mdp, shape, a) == 0.5


def test_rewards_may_be_huge_or_tiny():
    mdp = random_mdp(6, 3)
    a, b = (draw_reward(mdp, "pairs", seed) for seed in (0, 1))
    for distance in (epic, starc):
        expected = distance(mdp, a, b)
        for scale in (1e-250, 1e-170, 1e170, 1e300):
            assert distance(mdp, scale * a, b) == pytest.approx(expected, rel=1e-12)


def test_numbers_stored_twice_in_a_sparse_reward_add_up():
    mdp = random_mdp(4, 2, seed=2)
    once = draw_reward(mdp, "sparse", 0)
    S, A = mdp.feasible.shape
    halves = np.repeat(once.data / 2.0, 2), np.repeat(once.indices, 2), 2 * once.indptr
    twice = sp.csr_array(halves, shape=(S * A, S))
    b = draw_reward(mdp, "pairs", 1)
    assert twice.nnz == 2 * once.nnz
    assert epic(mdp, twice, b) == pytest.approx(epic(mdp, once, b), abs=1e-14)
    assert starc(mdp, twice, b) == pytest.approx(starc(mdp, once, b), abs=1e-14)
    assert twice.nnz == 2 * once.nnz  # the argument is left alone


# ---------------------------------------------------------------------------------------------------- a distance


@pytest.mark.parametrize("distance", [epic, starc])
@given(animal=problems(), form=st.sampled_from(FORMS), kind=st.sampled_from(COVERAGES), seed=seeds)
def test_both_are_pseudometrics_between_zero_and_one(distance, animal, form, kind, seed):
    mdp = animal.mdp
    rewards = [draw_reward(mdp, f, seed + i) for i, f in enumerate((form, "pairs", form))]
    coverage = draw_coverage(mdp, kind, seed)
    d = np.array([[distance(mdp, a, b, coverage) for b in rewards] for a in rewards])
    assert (d >= 0.0).all()
    assert (d <= 1.0).all()
    assert np.abs(np.diag(d)).max() <= 1e-12
    assert np.abs(d - d.T).max() <= 1e-12
    for i, j, k in np.ndindex(3, 3, 3):
        assert d[i, k] <= d[i, j] + d[j, k] + 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("distance", [epic, starc])
def test_a_reward_and_its_negative_are_farthest_apart(distance, form):
    mdp = random_mdp(8, 3, masked=True, terminal=1)
    a = draw_reward(mdp, form, 0)
    assert distance(mdp, a, -1.0 * a) == pytest.approx(1.0, abs=1e-14)
    assert distance(mdp, a, -7.0 * a) == pytest.approx(1.0, abs=1e-14)


# --------------------------------------------------------------------------------------------------------- STARC


@given(problems(), st.sampled_from(FORMS), st.sampled_from(FORMS), st.sampled_from(COVERAGES), seeds)
def test_starc_is_half_the_distance_of_normalised_advantages(animal, form_a, form_b, kind, seed):
    mdp = animal.mdp
    a, b = draw_reward(mdp, form_a, seed), draw_reward(mdp, form_b, seed + 1)
    coverage = draw_coverage(mdp, kind, seed)
    assert_same(starc(mdp, a, b, coverage), dense_starc(mdp, a, b, coverage), 1e-10)


@given(problems(), st.floats(1e-3, 1e3), seeds)
def test_starc_sees_neither_scale_nor_shaping_by_known_dynamics(animal, scale, seed):
    mdp = animal.mdp
    a = draw_reward(mdp, "pairs", seed)
    phi = np.where(mdp.terminal, 0.0, np.random.default_rng(seed).normal(size=mdp.n_states))
    form, made_from = advantage(mdp, a)
    weights = dense_coverage(mdp, None)[0].sum(axis=2).astype(float)
    size = float(np.sqrt((weights * form**2).sum()))
    assume(size > 1e-3 * made_from)
    tolerance = 200 * EPS * (1.0 + (made_from + np.abs(phi).max()) / size)
    assert tolerance < 1e-9
    shaped = a + known_shaping(mdp, phi)
    for b in (scale * a, shaped, scale * shaped):
        assert starc(mdp, a, b) <= tolerance


def test_where_nothing_ends_starc_sees_no_shift():
    mdp = random_mdp(8, 3, masked=True)
    a = draw_reward(mdp, "pairs", 0)
    assert starc(mdp, a, a + 3.0) <= 1e-13
    ends = random_mdp(8, 3, masked=True, terminal=1)
    assert starc(ends, a, a + 3.0) > 0.01  # where it does, a shift is a price on time


@pytest.mark.parametrize("seed", range(3))
def test_under_known_dynamics_epic_is_far_where_behaviour_is_the_same(seed):
    """(D6): shaping with the model's own T; behaviour, STARC and EVD see nothing, EPIC nearly half the range."""
    mdp = random_mdp(30, 3, discount=0.9, seed=seed, branching=2)
    r = random_reward(mdp, seed)
    shaped = r + known_shaping(mdp, 10.0 * np.random.default_rng(seed).normal(size=30))
    assert epic(mdp, r, shaped) >= 0.45
    assert starc(mdp, r, shaped) <= 1e-12
    assert evd(mdp, r, shaped) <= 1e-12
    np.testing.assert_allclose(rv.solve(mdp, shaped).policy, rv.solve(mdp, r).policy, atol=1e-10)


def test_of_rewards_that_look_at_s_prime_starc_takes_the_mean():
    mdp = random_mdp(8, 3, masked=True, terminal=1)
    dense, sparse = draw_reward(mdp, "dense", 0), draw_reward(mdp, "sparse", 1)
    mean = (mdp.transitions.matrix.toarray() * dense.reshape(-1, 8)).sum(axis=1).reshape(8, 3)
    assert starc(mdp, dense, mean) <= 1e-14
    assert epic(mdp, dense, mean) > 0.1
    by_hand = np.asarray(mdp.transitions.matrix.multiply(sparse).sum(axis=1)).reshape(8, 3)
    assert starc(mdp, sparse, by_hand) <= 1e-14


# ----------------------------------------------------------------------------------------------------- constants


@pytest.mark.parametrize("discount", [0.0, 0.9, 0.9999])
@pytest.mark.parametrize("distance", [epic, starc])
def test_rewards_that_prefer_nothing_are_at_half_the_range_from_all_others(distance, discount):
    mdp = random_mdp(9, 3, discount=discount, masked=True)
    a = draw_reward(mdp, "pairs", 0)
    nothing = [np.zeros(9), np.full(9, 0.3), np.full((9, 3), -1e6), np.full((9, 3, 9), 1 / 3)]
    nothing += [sp.csr_array((27, 9)), sp.csr_array(np.full((27, 9), 0.1)), np.full(9, 1e-310)]
    if distance is starc:
        nothing.append(known_shaping(mdp, np.random.default_rng(0).normal(size=9)))
    else:
        nothing.append(shaping(mdp, np.random.default_rng(0).normal(size=9)))
    for x in nothing:
        assert distance(mdp, x, a) == 0.5
        assert distance(mdp, a, x) == 0.5
        for y in nothing:
            assert distance(mdp, x, y) == 0.0


def test_with_one_action_starc_has_nothing_to_compare_and_epic_still_does():
    mdp = random_mdp(6, 1)
    a, b = (draw_reward(mdp, "pairs", seed) for seed in (0, 1))
    assert starc(mdp, a, b) == 0.0
    assert epic(mdp, a, b) > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_base_rewards_are_lifted_to_a_horizon(kind):
    animal: Problem = make_problem(kind, seed=2)
    base = np.random.default_rng(0).normal(size=(2, *animal.base.shape))
    a, b = base
    for distance in (epic, starc):
        lifted = distance(animal.mdp, animal.lift(a), animal.lift(b))
        assert distance(animal.mdp, a, b) == lifted
        states = distance(animal.mdp, a[:, 0], b[:, :1])
        assert states == distance(animal.mdp, animal.lift(a[:, 0]), animal.lift(b[:, :1]))


# ----------------------------------------------------------------------------------------------------- bad input

MDP = random_mdp(4, 2, terminal=1)
GOOD = np.arange(8.0).reshape(4, 2)


def with_nan(shape: tuple[int, ...], index: tuple[int, ...], value: float = np.nan) -> Floats:
    table = np.ones(shape)
    table[index] = value
    return table


BAD_REWARDS = {
    "shape": (np.ones((4, 3)), r"shape \(4, 3\)"),
    "three axes": (np.ones((4, 2, 3)), "shape"),
    "text": ("reward", "str"),
    "ragged": ([[1.0], [1.0, 2.0]], "list"),
    "nan": (with_nan((4, 2), (1, 1)), "state 1, action 1"),
    "infinite": (with_nan((4, 2), (2, 0), -np.inf), "state 2, action 0"),
    "nan of a move": (with_nan((4, 2, 4), (1, 0, 3)), "state 1, action 0"),
    "nan in a sparse one": (sp.csr_array(with_nan((8, 4), (5, 2))), "state 2, action 1"),
    "sparse of another shape": (sp.csr_array(np.ones((7, 4))), "shape"),
    "sparse and complex": (sp.csr_array(np.ones((8, 4), dtype=complex)), "complex"),
}


@pytest.mark.parametrize("case", BAD_REWARDS)
@pytest.mark.parametrize("distance", [epic, starc])
def test_bad_rewards_are_named(distance, case):
    reward, match = BAD_REWARDS[case]
    for arguments, name in (((reward, GOOD), "reward_a"), ((GOOD, reward), "reward_b")):
        with pytest.raises(InvalidReward, match=match) as caught:
            distance(MDP, *arguments)
        assert caught.value.argument == name


def test_what_stands_at_infeasible_pairs_does_not_matter():
    for shape, index in (((4, 2), (3, 1)), ((4, 2, 4), (3, 1, 0))):
        a, b = with_nan(shape, index), with_nan(shape, index, 1e9)
        a[0], b[0] = 2.0, 2.0
        assert epic(MDP, a, b) == 0.0
        assert starc(MDP, a, b) == 0.0
    sparse = sp.csr_array(with_nan((8, 4), (7, 0)))
    assert epic(MDP, sparse, np.zeros(4)) == 0.0


BAD_COVERAGES = {
    "shape": (np.ones((4, 3)), r"shape \(4, 3\)"),
    "one axis": (np.ones(4), r"shape \(4,\)"),
    "sparse of another shape": (sp.csr_array(np.ones((7, 4))), "shape"),
    "text": ("uniform", "str"),
    "ragged": ([[1.0], [1.0, 2.0]], "list"),
    "negative": (with_nan((4, 2), (1, 1), -0.5), r"-0\.5"),
    "nan": (with_nan((4, 2), (1, 1)), "nan"),
    "infinite": (with_nan((4, 2, 4), (0, 1, 1), np.inf), "inf"),
    "all zero": (np.zeros((4, 2)), "all zero"),
    "all zero, sparse": (sp.csr_array((8, 4)), "all zero"),
    "on a terminal state": (np.ones((4, 2)), "state 3, action 0"),
    "on a terminal state, jointly": (np.ones((4, 2, 4)), "state 3, action 0"),
    "negative where it cancels": (with_nan((4, 2, 4), (0, 0, 0), -1.0), r"-1\.0"),
    "negative and sparse": (sp.csr_array(with_nan((8, 4), (0, 0), -1.0)), r"-1\.0"),
}


@pytest.mark.parametrize("case", BAD_COVERAGES)
@pytest.mark.parametrize("distance", [epic, starc])
def test_bad_coverages_are_named(distance, case):
    coverage, match = BAD_COVERAGES[case]
    with pytest.raises(InvalidDistribution, match=match) as caught:
        distance(MDP, GOOD, GOOD, coverage)
    assert caught.value.argument == "coverage"


def test_starc_at_discount_one_needs_an_end():
    with pytest.raises(RevealedError, match="terminal"):
        starc(corridor(4, discount=1.0), np.ones(4), np.ones(4))
    assert epic(corridor(4, discount=1.0), np.arange(4.0), np.arange(4.0)) <= 1e-15


def test_weights_of_any_size_weigh_alike():
    mdp = random_mdp(8, 3, 0.9, seed=0)
    a, b = random_reward(mdp, 1), random_reward(mdp, 2)
    table = np.random.default_rng(0).uniform(0.5, 1.0, (8, 3))
    for metric in (epic, starc):
        assert metric(mdp, a, b, 1.7e308 * table) == pytest.approx(metric(mdp, a, b, table), rel=1e-12)
        assert metric(mdp, a, b, 1e-300 * table) == pytest.approx(metric(mdp, a, b, table), rel=1e-12)


@pytest.mark.parametrize("shape", ["pairs", "joint", "sparse joint"])
def test_weights_near_the_largest_float_are_weights(shape, recwarn):
    """Their sum is none, and need not be."""
    mdp = random_mdp(4, 2, seed=3)
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 4, 2))
    weights: Any = np.ones((4, 2) if shape == "pairs" else (4, 2, 4))
    make: Any = (lambda x: sp.csr_array(x.reshape(8, 4))) if shape == "sparse joint" else (lambda x: x)
    assert epic(mdp, one, other, make(1e308 * weights)) == pytest.approx(
        epic(mdp, one, other, make(weights)), rel=1e-12
    )
    assert not recwarn.list


def test_a_wrong_weight_of_a_move_names_its_state():
    mdp = random_mdp(4, 2, seed=3)
    weights = np.ones((4, 2, 4))
    weights[3, 1, 0] = -1.0
    for odd in (weights, sp.csr_array(weights.reshape(8, 4)), weights.sum(axis=2) - 9.0 * (weights[..., 0] < 0)):
        with pytest.raises(InvalidDistribution, match=r"finite weights >= 0.*state 3"):
            epic(mdp, np.ones((4, 2)), np.ones((4, 2)), odd)


def test_an_initial_distribution_whose_sum_overflows_is_refused_without_a_warning(recwarn):
    mdp = random_mdp(4, 2, seed=3)
    for odd in ({0: 1e308, 1: 1e308}, [1e308] * 4):
        with pytest.raises(InvalidDistribution, match="sum to one; got sum inf"):
            mdp.replace(initial=odd)
    assert not recwarn.list
