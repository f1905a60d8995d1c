"""Covariances in special cases: a penalty, a search that was stopped, a network, masks and ends, a horizon."""

from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.errors import InvalidInput, InvalidOption
from revealed.inference import Evidence, invert
from revealed.objective import Case, Objective
from revealed.pi_tilde import OwnPolicy
from test_inference import bus_fit
from test_transition_models import BINS, bus_landing, drives
from zoo import problem


def test_every_kind_with_a_penalty_written_out():
    """Bread with the penalty's curvature, meat without it, plain and joint (N2, N5)."""
    fit = bus_fit(l2=1e-3)
    own, estimated = fit.evidence, fit.mdp.estimated
    n, U = own.counts[own.seen], own.scores
    mean = n @ U / n.sum()
    B = (U - mean).T @ np.diag(n) @ (U - mean)
    P = n.sum() * 1e-3 * np.eye(2)
    A = own.bread
    np.testing.assert_allclose(A, -n.sum() * own.point.hessian)
    expected = {
        "hessian": np.linalg.inv(A) @ (A - P) @ np.linalg.inv(A),
        "opg": np.linalg.inv(B + P) @ B @ np.linalg.inv(B + P),
        "robust": np.linalg.inv(A) @ B @ np.linalg.inv(A),
    }
    for kind, matrix in expected.items():
        np.testing.assert_allclose(fit.cov_params(kind), matrix, rtol=1e-8, err_msg=kind)
    W = estimated.model.scores(estimated.psi)
    M = W.T @ np.diag(estimated.counts) @ W
    both = np.linalg.inv(np.block([[A, -own.cross_hessian], [np.zeros((2, 2)), M]]))
    for kind, meat in (("hessian", A - P), ("robust", B)):
        full = both @ np.block([[meat, np.zeros((2, 2))], [np.zeros((2, 2)), M]]) @ both.T
        np.testing.assert_allclose(fit.cov_params(kind, joint=True), full, rtol=1e-8, err_msg=kind)
    shrunk = fit.cov_params("opg", joint=True).to_numpy()
    plain, bend = own._opg(joint=True)
    bend_by_hand = np.zeros((4, 4))
    bend_by_hand[:2, :2] = P
    np.testing.assert_allclose(bend, bend_by_hand)
    np.testing.assert_allclose(shrunk, np.linalg.inv(plain + bend) @ plain @ np.linalg.inv(plain + bend), rtol=1e-8)


def test_agent_scores_of_a_penalised_fit_are_centred():
    """Their sum is the slope of the penalty, not zero; the meat is their spread around the mean."""
    fit = bus_fit(l2=1e-2)
    raw = np.asarray(fit.evidence.weights[:, fit.evidence.seen] @ fit.evidence.scores)
    np.testing.assert_allclose(raw.sum(axis=0), 1e-2 * fit.nobs * fit.theta, rtol=1e-5)
    N, half = len(raw), np.linalg.solve(fit.evidence.bread, (raw - raw.mean(axis=0)).T)
    np.testing.assert_allclose(fit.cov_params("cluster"), half @ half.T * N / (N - 1), rtol=1e-8)


def test_a_search_that_was_stopped_has_no_errors():
    fit = bus_fit(max_iter=2)
    assert fit.status.code == "iteration_limit"
    assert not fit.at_maximum
    for kind in ("hessian", "opg", "robust", "cluster"):
        assert np.isnan(fit.cov_params(kind).to_numpy()).all()
    with pytest.raises(InvalidInput, match="no standard error"):
        fit.wald_test({"RC": 1.0})
    with pytest.raises(InvalidOption, match="whose search finished"):
        fit.bootstrap()


def test_npl_that_was_stopped_after_its_updates_has_them():
    fit = bus_fit(rv.NPL, updates=2, first_step="smoothed")
    assert (fit.status.code, fit.settled, fit.at_maximum) == ("converged", False, True)
    assert np.isfinite(fit.cov_params().to_numpy()).all()


def test_a_point_that_is_no_maximum_has_no_covariance():
    matrix, lost = invert(np.array([[2.0, 0.0], [0.0, -1.0]]))
    assert np.isnan(matrix).all()
    assert lost.all()


def test_nearly_collinear_features_spoil_only_themselves():
    """At 1e-6 rounding decides on two of them; a third that has nothing to do with them keeps its error."""
    animal = problem("discounted")
    demos = animal.simulate(animal.policy(), 200)
    X = animal.state_features(2)
    noise = np.random.default_rng(0).normal(size=len(X))
    alone = rv.NFXP(rv.LinearReward(X)).fit(animal.mdp, demos)
    near = rv.NFXP(rv.LinearReward(np.column_stack([X, 2 * X[:, 1] + 1e-6 * noise]))).fit(animal.mdp, demos)
    assert near.bse.iloc[0] == pytest.approx(alone.bse.iloc[0], rel=0.1)  # the noise explains a little, too
    assert near.bse.iloc[1:].isna().all()


@pytest.mark.parametrize("discount", [0.9, 0.99, 0.9999, 0.99999])
def test_a_weight_per_state_has_no_error_where_a_constant_is_not_identified(discount):
    world = rv.environments.rust_bus(bins=10, RC=4.0)
    fit = rv.NFXP(rv.TabularReward(10)).fit(
        world.mdp.replace(discount=discount), world.demonstrate(50, 40, seed=0).lift(world.mdp)
    )
    for kind in ("hessian", "opg", "robust", "cluster"):
        assert fit.with_errors(kind).bse.isna().all()
    assert fit.identification.rank == 9
    assert fit.identification.words.startswith("choices do not change if every weight moves by the same amount")


def test_a_network_gets_errors_with_and_without_a_horizon():
    """Scores by products with the Jacobian alone, against central differences; then errors of a (loose) fit."""
    animal = problem("masked")
    demos = animal.simulate(animal.policy(), 200, length=4)
    base = rv.MDP(animal.mdp.transitions.matrix, 0.95, None, animal.base.allowed, animal.base.terminal)
    for mdp in (base, base.unroll(4)):
        reward = rv.NeuralReward(animal.state_features(2), hidden=(2,), seed=1)
        fit = rv.NFXP(reward, l2=0.1, tol=1e-4, optimizer="lbfgs").fit(mdp, demos)
        assert fit.at_maximum
        case = fit.evidence.point.objective.cases[0]
        point = Objective(fit.evidence.point.objective.reward, [case]).at(reward.init())
        found = Evidence(point, fit.evidence.weights, fit.evidence.ids)
        k = int(np.argmax(np.abs(found.scores).max(axis=0)))
        step = np.eye(fit.theta.size)[k] * 1e-5
        up, down = (point.objective.at(point.theta + d).parts[0].log_policy.reshape(-1) for d in (step, -step))
        expected = (up[found.seen] - down[found.seen]) / 2e-5
        np.testing.assert_allclose(found.scores[:, k], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
        assert np.isfinite(fit.cov_params("opg").to_numpy()).all()


@pytest.mark.parametrize("kind", ["undiscounted", "masked"])
@pytest.mark.filterwarnings("error")
def test_joint_errors_with_terminal_states_and_masks(kind):
    """∂²g/∂θ∂ψ (N4) where pairs are infeasible and states end."""
    animal = problem(kind)
    demos = animal.simulate(animal.policy(), 400)
    estimated = rv.estimate_transitions(demos)
    masks: dict[str, Any] = {"feasible": animal.base.allowed, "terminal": animal.base.terminal}
    mdp = rv.MDP(estimated, animal.base.gamma, **masks)
    reward = rv.LinearReward(animal.pair_features())
    fit = rv.NFXP(reward, start=animal.theta()).fit(mdp, demos)
    assert np.isfinite(fit.cov_params("cluster", joint=True).to_numpy()).all()

    def gradient(psi):
        other = rv.MDP(estimated.at(psi), animal.base.gamma, **masks)
        objective = Objective(reward, [Case(other, demos.counts, OwnPolicy(other))])
        return objective.total * objective.at(fit.theta).gradient

    step = np.eye(estimated.psi.size)[4] * 1e-6
    expected = (gradient(estimated.psi + step) - gradient(estimated.psi - step)) / 2e-6
    found = fit.evidence.cross_hessian
    np.testing.assert_allclose(found[:, 4], expected, rtol=1e-5, atol=1e-6 * np.abs(found).max())


def test_joint_is_a_flag():
    demos = drives(n=60, length=8)
    mdp = rv.MDP(rv.estimate_transitions(demos, bus_landing()), 0.9)
    reward = rv.LinearReward(rv.environments.rust_bus(bins=BINS).features[:, :, :1])
    with pytest.raises(InvalidOption, match="joint"):
        rv.NFXP(reward).fit(mdp, demos).cov_params("opg", joint="no")  # pyright: ignore[reportArgumentType]


def test_information_criteria_count_what_choices_can_see():
    animal = problem("discounted")
    demos = animal.simulate(animal.policy(), 200)
    X = animal.state_features(2)
    free = rv.NFXP(rv.LinearReward(X)).fit(animal.mdp, demos)
    tied = rv.NFXP(rv.LinearReward(np.column_stack([X, np.ones(len(X))]))).fit(animal.mdp, demos)
    assert (tied.aic, tied.bic) == (pytest.approx(free.aic, rel=1e-9), pytest.approx(free.bic, rel=1e-9))
