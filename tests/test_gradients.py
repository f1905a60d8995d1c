"""The gradient of every method × reward × weighting × kind of problem equals central finite differences (theory G4).

The objectives under test are the very ones that the estimators maximise: `objectives_of` listens in while they fit, so
that ρ, π̃ (NPL at its second update) and the lift to an unrolled horizon are the methods' own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from oracle import Floats, central_differences, relative_gap
from revealed import estimation
from revealed.objective import Case, Objective
from revealed.optimize import maximise
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from zoo import KINDS, Problem, problem

S, A, K = 8, 3, 3  # all kinds share their base sizes, so that each network is compiled once
TOLERANCE = 1e-6
PAIRS, STATES = problem("discounted").pair_features(K), problem("discounted").state_features(K)


def thinned(features: Floats) -> Floats:
    """The features with a third of the entries zero; two in three keep every reward negative enough at γ = 1."""
    kept = features.copy().reshape(-1, K)
    kept[np.arange(len(kept)), np.arange(len(kept)) % K] = 0.0
    return kept.reshape(features.shape)


def jax_reward() -> rv.JaxReward:
    """r = −1.2 − softplus(x·w + b)·exp(c): negative whatever the parameters, nested parameters, a table (S, A)."""
    import jax

    def apply(params: Any, x: Any) -> Any:
        return -1.2 - jax.nn.softplus(x @ params["w"] + params["b"]) * jax.numpy.exp(params["c"])

    return rv.JaxReward(apply, {"w": np.array([0.4, -0.7, 0.2]), "b": np.float64(0.1), "c": np.float64(-0.3)}, PAIRS)


def torch_reward(features: Floats) -> rv.TorchReward:
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(K, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        return rv.TorchReward(module, features)


REWARDS = {
    "linear-states": lambda: rv.LinearReward(STATES),
    "linear-pairs": lambda: rv.LinearReward(PAIRS),
    "sparse-states": lambda: rv.LinearReward(sp.csr_array(thinned(STATES))),
    "sparse-pairs": lambda: rv.LinearReward([sp.csr_array(thinned(PAIRS)[:, a]) for a in range(A)]),
    "tabular": lambda: rv.TabularReward(S),
    "neural-states-tanh": lambda: rv.NeuralReward(STATES, hidden=(4, 3), activation="tanh"),
    "neural-pairs-softplus": lambda: rv.NeuralReward(PAIRS, hidden=(4, 3), activation="softplus"),
    "jax": jax_reward,
    "torch-states": lambda: torch_reward(STATES),
    "torch-pairs": lambda: torch_reward(PAIRS),
}


@lru_cache
def make_reward(name: str) -> Any:
    return REWARDS[name]()


def make_theta(name: str) -> Floats:
    """Parameters of no special kind, at which every reward is below −log|A|."""
    rng = np.random.default_rng(5)
    reward = make_reward(name)
    if name.startswith(("linear", "sparse", "tabular")):
        theta = rng.uniform(-2.0, -1.2, reward.n_params)
    else:
        theta = reward.init() + rng.normal(0.0, 0.1, reward.n_params)
        if name != "jax":
            theta[-1] -= 5.0  # the bias of the last layer
    assert reward.value(theta).max() < -np.log(A)
    return theta


METHODS: dict[str, Any] = {
    "NFXP": rv.NFXP,
    "MCEIRL": rv.MCEIRL,
    "CCP": rv.CCP,
    "NPL": partial(rv.NPL, updates=2),
}


@lru_cache
def data(kind: str) -> rv.Demonstrations:
    """Few trajectories of an agent that is not soft-optimal, so that no residual D is small."""
    animal = problem(kind)
    return animal.simulate(animal.policy(), n=30, length=6)


def objectives_of(method: str, reward: Any, mdp: rv.MDP, demos: rv.Demonstrations, **options: Any) -> list[Objective]:
    """What the estimator maximises, in the order in which it does; one iteration each is enough."""
    heard: list[Objective] = []

    def listen(objective: Objective, *rest: Any) -> Any:
        heard.append(objective)
        return maximise(objective, *rest)

    with mock.patch.object(estimation, "maximise", listen):
        METHODS[method](reward, max_iter=1, first_step="smoothed", **options).fit(mdp, demos)
    return heard


def gap_to_differences(objective: Objective, theta: Floats) -> float:
    """Largest error of the gradient relative to the largest entry of the differenced one."""
    differences = central_differences(lambda t: objective.at(t).value, theta)
    return relative_gap(objective.at(theta).gradient, differences)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighting", ["sample", "occupancy"])
@pytest.mark.parametrize(
    "reward", [pytest.param(r, marks=pytest.mark.torch if r.startswith("torch") else ()) for r in REWARDS]
)
@pytest.mark.parametrize("method", METHODS)
def test_gradient_equals_finite_differences(method, reward, weighting, kind):
    """(G4): ∂g/∂θ = (∂r/∂θ)ᵀ(D + π̃ ⊙ λ), for fixed π̃ and for π̃ = π_θ."""
    theta, mdp, demos = make_theta(reward), problem(kind).mdp, data(kind)
    objective = objectives_of(method, make_reward(reward), mdp, demos, weighting=weighting, start=theta)[-1]
    assert gap_to_differences(objective, theta) < TOLERANCE


@pytest.mark.parametrize("method", METHODS)
def test_penalised_gradient_equals_finite_differences(method, animal):
    """(O4): the gradient of g/Σρ − (l2/2)‖θ‖²."""
    theta, demos = make_theta("linear-pairs"), data(animal.kind)
    objective = objectives_of(method, make_reward("linear-pairs"), animal.mdp, demos, start=theta, l2=0.3)[-1]
    assert gap_to_differences(objective, theta) < TOLERANCE


@pytest.mark.parametrize("own", [True, False], ids=["own-policy", "given-policy"])
def test_gradient_over_two_goals_equals_finite_differences(own):
    """(O4): cases with their own terminal sets share the reward; their objectives, weights and gradients add."""
    base, theta, reward = problem("undiscounted").base, make_theta("linear-pairs"), make_reward("linear-pairs")
    cases, g = [], 0.0
    for goal in (3, S - 1):
        dense = replace(base, terminal=np.arange(S) == goal)
        mdp = rv.MDP(sp.csr_array(base.raw.reshape(S * A, S)), discount=1.0, terminal=dense.terminal)
        rho = np.random.default_rng(goal).poisson(2.0, (S, A)).astype(np.float64) * mdp.feasible
        cases.append(Case(mdp, rho, OwnPolicy(mdp) if own else GivenPolicy(mdp, mdp.uniform_policy())))
        g += dense.objective(reward.value(theta), rho, None if own else mdp.uniform_policy())
    objective = Objective(reward, cases)
    assert objective.at(theta).value == pytest.approx(g / sum(case.rho.sum() for case in cases), rel=1e-10)
    assert gap_to_differences(objective, theta) < TOLERANCE


@pytest.mark.parametrize("form", ["list", "cube", "stacked"])
def test_sparse_features_are_the_dense_ones(form):
    """(G4): a reward does not depend on how its features are stored."""
    X = thinned(PAIRS)
    stored = {"list": [sp.csr_array(X[:, a]) for a in range(A)], "cube": sp.coo_array(X), "stacked": None}[form]
    sparse = (
        rv.LinearReward(sp.csr_array(X.reshape(S * A, K)), n_actions=A) if stored is None else rv.LinearReward(stored)
    )
    theta, mdp = make_theta("sparse-pairs"), problem("masked").mdp
    points = [
        Objective(r, [Case(mdp, problem("masked").counts(), OwnPolicy(mdp))]).at(theta)
        for r in (sparse, rv.LinearReward(X))
    ]
    np.testing.assert_allclose(points[0].parts[0].policy, points[1].parts[0].policy, atol=1e-13)
    np.testing.assert_allclose(points[0].gradient, points[1].gradient, atol=1e-13)
    np.testing.assert_allclose(points[0].hessian, points[1].hessian, atol=1e-13)


@pytest.mark.parametrize("weighting", ["sample", "occupancy"])
@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_its_choice_of_pi_tilde(method, weighting, animal):
    """(E1–E3): NFXP and MCE-IRL have π̃ = π_θ, CCP has π̂_E, NPL's second update the policy of its first."""
    reward, theta = make_reward("linear-pairs"), make_theta("linear-pairs")
    options = {"weighting": weighting, "start": theta}
    heard = objectives_of(method, reward, animal.mdp, data(animal.kind), **options)
    here = heard[-1].at(theta).parts[0]
    table = animal.lift(reward.value(theta))
    first_step = expert(animal)
    if method in ("NFXP", "MCEIRL"):
        expected = animal.dense.optimal_policy(table)
        np.testing.assert_allclose(here.policy, expected, atol=1e-10)
    elif method == "CCP":
        expected = first_step
    else:
        ccp = rv.CCP(reward, max_iter=1, first_step="smoothed", **options).fit(animal.mdp, data(animal.kind))
        expected = animal.dense.improved(first_step, animal.lift(reward.value(ccp.theta)))
    np.testing.assert_allclose(here.pi_tilde, expected, atol=1e-10)


@pytest.mark.parametrize("given_initial", [True, False], ids=["initial-of-the-mdp", "starts-of-the-data"])
@pytest.mark.parametrize("method", METHODS)
def test_occupancy_weights_are_visits_under_the_first_step(method, given_initial, animal):
    """(O3): ρ = Occ^π̂E ⊙ π̂_E with p₀ of the MDP, else of the data; sample weights are the counts (O2)."""
    demos = data(animal.kind)
    lifted = demos.lift(animal.mdp)
    mdp = animal.mdp if given_initial else animal.mdp.replace(initial=None)
    p0 = animal.dense.initial if given_initial else lifted.starts / lifted.starts.sum()
    expected = animal.dense.occupancy(expert(animal), p0)[:, None] * expert(animal)
    reward, start = make_reward("linear-pairs"), make_theta("linear-pairs")
    for objective in objectives_of(method, reward, mdp, demos, weighting="occupancy", start=start):
        np.testing.assert_allclose(objective.cases[0].rho, expected, rtol=1e-9, atol=1e-12)
    for objective in objectives_of(method, reward, mdp, demos, weighting="sample", start=start):
        np.testing.assert_array_equal(objective.cases[0].rho, lifted.counts)


def expert(animal: Problem) -> Floats:
    """Smoothed frequencies, written out: one more visit for every feasible action."""
    weights = data(animal.kind).lift(animal.mdp).counts + animal.dense.feasible
    return weights / np.where(animal.dense.terminal, 1.0, weights.sum(axis=1))[:, None]
