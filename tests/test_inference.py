"""Scores, information and covariances (theory N1–N5) against closed forms, finite differences and brute force."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from models import draw, random_mdp
from revealed.curvature import difference_hessian
from revealed.errors import InvalidOption
from revealed.inference import Evidence
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from test_transition_models import BINS, bus_landing, drives
from zoo import KINDS, Problem, problem


def one_state(p: float, agents: int, length: int, seed: int = 0) -> tuple[rv.MDP, rv.LinearReward, rv.Demonstrations]:
    """A logit: one state, two actions, θ the log odds of the second."""
    mdp = rv.MDP(np.ones((1, 2, 1)), discount=0.0)
    rng = np.random.default_rng(seed)
    paths = [(np.zeros(length, int), (rng.random(length) < p).astype(int)) for _ in range(agents)]
    reward = rv.LinearReward(np.array([[[0.0], [1.0]]]), names=["odds"])
    return mdp, reward, rv.Demonstrations.from_trajectories(paths, 1, 2)


def evidence(case: Case, reward: rv.LinearReward, theta: np.ndarray, l2: float = 0.0) -> Evidence:
    point = Objective(reward, [case], l2).at(theta)
    return Evidence(point, sp.csr_array(case.rho.reshape(1, -1)), ("one",))


@pytest.fixture(params=["own", "given"])
def animal_evidence(request, animal: Problem) -> Evidence:
    mdp = animal.mdp
    reward = rv.LinearReward(animal.lift(animal.pair_features()))
    pi_tilde = OwnPolicy(mdp) if request.param == "own" else GivenPolicy(mdp, animal.policy())
    return evidence(Case(mdp, animal.counts(), pi_tilde), reward, animal.theta())


def test_a_score_is_the_derivative_of_a_log_probability(animal_evidence):
    """N1, per pair, by central differences."""
    at, theta = animal_evidence.point.objective.at, animal_evidence.point.theta
    found = animal_evidence.scores
    for k in range(theta.size):
        step = np.eye(theta.size)[k] * 1e-5
        up, down = at(theta + step).parts[0].log_policy, at(theta - step).parts[0].log_policy
        expected = (up.reshape(-1)[animal_evidence.seen] - down.reshape(-1)[animal_evidence.seen]) / 2e-5
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-6, atol=1e-7)


def test_scores_add_up_to_the_gradient(animal_evidence):
    n = animal_evidence.counts[animal_evidence.seen]
    total = animal_evidence.point.objective.total
    np.testing.assert_allclose(n @ animal_evidence.scores, total * animal_evidence.point.gradient, rtol=1e-9, atol=1e-9)


class WithoutJacobian:
    """The same reward, told only by its value and its vjp."""

    def __init__(self, reward):
        self._reward = reward
        self.n_params, self.names, self.init = reward.n_params, reward.names, reward.init
        self.value, self.vjp = reward.value, reward.vjp


def test_without_a_jacobian_scores_and_hessian_are_the_same(animal_evidence):
    objective = animal_evidence.point.objective
    plain = Objective(WithoutJacobian(objective.reward), objective.cases).at(animal_evidence.point.theta)
    other = Evidence(plain, animal_evidence.weights, animal_evidence.ids)
    np.testing.assert_allclose(other.scores, animal_evidence.scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(difference_hessian(plain), animal_evidence.point.hessian, rtol=1e-6, atol=1e-8)


def test_the_logit_has_its_textbook_errors():
    """θ̂ = log p/(1 − p); the inverse information is 1/(n p q); observations or Hessian, it is the same number."""
    mdp, reward, demos = one_state(0.3, agents=20, length=10)
    fit = rv.NFXP(reward).fit(mdp, demos)
    p = demos.counts[0, 1] / 200
    assert fit.theta[0] == pytest.approx(np.log(p / (1 - p)), rel=1e-8)
    for kind in ("hessian", "opg", "robust"):
        assert fit.cov_params(kind).loc["odds", "odds"] == pytest.approx(1 / (200 * p * (1 - p)), rel=1e-7), kind


def test_the_logit_clustered_by_agents():
    """Σ_i (Σ_t (y_it − p))² · N/(N − 1) between two inverse informations."""
    mdp, reward, demos = one_state(0.3, agents=20, length=10)
    fit = rv.NFXP(reward).fit(mdp, demos)
    y = demos.by_agent.toarray()[:, 1]
    p = y.sum() / 200
    expected = np.sum((y - 10 * p) ** 2) * 20 / 19 / (200 * p * (1 - p)) ** 2
    assert fit.cov_params("cluster").iloc[0, 0] == pytest.approx(expected, rel=1e-7)


def test_the_penalised_logit():
    """θ minimises the penalised likelihood; its variance is information between two penalised informations."""
    mdp, reward, demos = one_state(0.3, agents=20, length=10)
    fit = rv.NFXP(reward, l2=0.05).fit(mdp, demos)
    p = 1 / (1 + np.exp(-fit.theta[0]))
    information = 200 * p * (1 - p)
    expected = information / (information + 200 * 0.05) ** 2
    assert fit.cov_params("hessian").iloc[0, 0] == pytest.approx(expected, rel=1e-7)


def test_a_feature_in_other_units_has_its_error_in_other_units():
    demos = drives()
    mdp = rv.MDP(rv.estimate_transitions(demos, bus_landing()), 0.9)
    features = rv.environments.rust_bus(bins=BINS).features
    plain = rv.NFXP(rv.LinearReward(features)).fit(mdp, demos)
    scaled = rv.NFXP(rv.LinearReward(features * [1.0, 1e4])).fit(mdp, demos)
    for kind in ("hessian", "opg", "cluster"):
        ratio = plain.cov_params(kind).to_numpy() / scaled.cov_params(kind).to_numpy()
        np.testing.assert_allclose(ratio, [[1.0, 1e4], [1e4, 1e8]], rtol=1e-5)


def bus_fit(method: Any = rv.NFXP, **options: Any) -> Any:
    demos = drives()
    mdp = rv.MDP(rv.estimate_transitions(demos, bus_landing()), 0.9)
    features = rv.environments.rust_bus(bins=BINS).features
    return method(rv.LinearReward(features, names=["RC", "theta11"]), **options).fit(mdp, demos)


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP])
@pytest.mark.parametrize("landing", [bus_landing(), None], ids=["shared", "frequencies"])
def test_the_derivative_of_the_score_in_the_transitions(method, landing):
    """∂²g/∂θ∂ψ (N4) by central differences of the analytic gradient in ψ, π̃ moving with θ or not."""
    demos = drives(n=60)
    estimated = rv.estimate_transitions(demos, landing, unseen="stay")
    mdp = rv.MDP(estimated, 0.9)
    reward = rv.LinearReward(rv.environments.rust_bus(bins=BINS).features)
    fit = method(reward, first_step="smoothed").fit(mdp, demos)
    found = fit.evidence.cross_hessian

    def gradient(psi):
        other = rv.MDP(estimated.at(psi), 0.9)
        pi_tilde = OwnPolicy(other) if method is rv.NFXP else GivenPolicy(other, fit.pi_tilde)
        objective = Objective(reward, [Case(other, demos.counts, pi_tilde)])
        return objective.total * objective.at(fit.theta).gradient

    for k in range(min(3, estimated.psi.size)):
        step = np.eye(estimated.psi.size)[k] * 1e-5
        expected = (gradient(estimated.psi + step) - gradient(estimated.psi - step)) / 2e-5
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-6, atol=1e-6 * np.abs(found).max())


def test_two_steps_add_what_the_transitions_bring():
    """V_θ + (dθ̂/dψ) V_ψ (dθ̂/dψ)ᵀ, with dθ̂/dψ from estimating again at other transitions (N5)."""
    fit = bus_fit()
    estimated = fit.mdp.estimated
    slope = []
    for k in range(2):
        step = np.eye(2)[k] * 1e-4
        ends = [
            rv.NFXP(fit.reward_model, start=fit.theta, tol=1e-12).fit(rv.MDP(estimated.at(psi), 0.9), drives()).theta
            for psi in (estimated.psi + step, estimated.psi - step)
        ]
        slope.append((ends[0] - ends[1]) / 2e-4)
    G = np.array(slope).T
    joint = fit.cov_params("hessian", joint=True)
    assert list(joint.index) == ["RC", "theta11", "outcome 0", "outcome 1"]
    V = joint.to_numpy()
    expected = fit.cov_params("hessian").to_numpy() + G @ V[2:, 2:] @ G.T
    np.testing.assert_allclose(V[:2, :2], expected, rtol=1e-5)
    np.testing.assert_allclose(V[:2, 2:], G @ V[2:, 2:], rtol=1e-5, atol=1e-9)


def test_the_joint_outer_product_is_that_of_single_observations():
    """Every observation written out: the score of its decision in θ and ψ, and that of its move in ψ."""
    fit = bus_fit()
    demos, estimated = fit.demonstrations, fit.mdp.estimated
    steps = demos.steps
    found = np.linalg.inv(fit.cov_params("opg", joint=True).to_numpy())

    def log_policy(theta, psi):
        mdp = rv.MDP(estimated.at(psi), 0.9)
        return (
            rv.solve(mdp, fit.reward_model.value(theta)).q - rv.solve(mdp, fit.reward_model.value(theta)).value[:, None]
        )

    point = np.concatenate([fit.theta, estimated.psi])
    columns = []
    for k in range(4):
        step = np.eye(4)[k] * 1e-5
        up, down = point + step, point - step
        choice = (log_policy(up[:2], up[2:]) - log_policy(down[:2], down[2:]))[steps.state, steps.action] / 2e-5
        T = [rv.MDP(estimated.at(x[2:]), 0.9).transitions.matrix.toarray() for x in (up, down)]
        pair, seen = steps.state * 2 + steps.action, steps.next_state >= 0
        move = np.where(seen, (np.log(T[0][pair, steps.next_state]) - np.log(T[1][pair, steps.next_state])) / 2e-5, 0.0)
        columns.append(choice + move)
    scores = np.array(columns).T
    np.testing.assert_allclose(found, scores.T @ scores, rtol=1e-5)


def test_joint_and_clustered_is_the_sandwich_of_agents_written_out():
    fit = bus_fit()
    own, estimated = fit.evidence, fit.mdp.estimated
    W = estimated.model.scores(estimated.psi)
    scores = np.hstack([own.agent_scores, estimated.by_agent.toarray() @ W])
    A = np.block(
        [
            [own.bread, -own.cross_hessian],
            [np.zeros((2, 2)), W.T @ np.diag(estimated.counts) @ W],
        ]
    )
    N = fit.demonstrations.n_agents
    half = np.linalg.solve(A, scores.T)
    expected = half @ half.T * N / (N - 1)
    np.testing.assert_allclose(fit.cov_params("cluster", joint=True).to_numpy(), expected, rtol=1e-7)


def test_a_settled_npl_has_the_errors_of_nfxp():
    nfxp, npl = bus_fit(), bus_fit(rv.NPL, updates=40)
    assert npl.settled
    for kind in ("hessian", "opg", "robust", "cluster"):
        for joint in (False, True):
            np.testing.assert_allclose(
                npl.cov_params(kind, joint), nfxp.cov_params(kind, joint), rtol=1e-5, err_msg=kind
            )


def test_ccp_has_the_errors_of_its_pseudo_logit():
    """Σ_s n(s) Cov_s F (H1), inverted: π̃ is taken as known."""
    fit = bus_fit(rv.CCP, first_step="smoothed")
    point = fit.evidence.point
    expected = np.linalg.inv(point.information * point.objective.total)
    np.testing.assert_allclose(fit.cov_params("hessian"), expected, rtol=1e-8)


def test_what_is_not_identified_has_no_error_and_spoils_no_other():
    """Where nothing ends choices do not see a constant: its error is NaN, the others' are as without it."""
    animal = problem("discounted")
    demos = animal.simulate(animal.policy(), 200)
    features = animal.state_features(2)
    with_constant = np.column_stack([features, np.ones(len(features))])
    free = rv.NFXP(rv.LinearReward(features)).fit(animal.mdp, demos)
    tied = rv.NFXP(rv.LinearReward(with_constant)).fit(animal.mdp, demos)
    assert tied.status.code == "unidentified"
    for kind in ("hessian", "opg", "cluster"):
        found = tied.cov_params(kind).to_numpy()
        assert np.isnan(found[2]).all()
        assert np.isnan(found[:, 2]).all()
        np.testing.assert_allclose(found[:2, :2], free.cov_params(kind), rtol=1e-6)
    assert np.isnan(tied.bse.iloc[2])
    assert np.isnan(tied.pvalues.iloc[2])


def test_where_weights_run_away_there_are_no_errors():
    mdp, reward, _ = one_state(0.3, 2, 2)
    always = rv.Demonstrations.from_trajectories([([0, 0], [1, 1]), ([0], [1])], 1, 2)
    fit = rv.NFXP(reward).fit(mdp, always)
    assert fit.status.code == "separated"
    assert fit.bse.isna().all()
    assert fit.conf_int().isna().all().all()


@pytest.mark.parametrize("kind", KINDS)
def test_z_p_and_intervals_follow_from_the_errors(kind):
    animal = problem(kind)
    demos = animal.simulate(animal.policy(), 100)
    fit = rv.NFXP(rv.LinearReward(animal.pair_features()), start="ccp", first_step="smoothed").fit(animal.mdp, demos)
    se = np.sqrt(np.diag(fit.cov_params()))
    np.testing.assert_allclose(fit.bse, se)
    np.testing.assert_allclose(fit.tvalues, fit.theta / se)
    from scipy.stats import norm

    np.testing.assert_allclose(fit.pvalues, 2 * norm.sf(np.abs(fit.theta / se)), rtol=1e-9)
    np.testing.assert_allclose(fit.conf_int(0.1)["upper"], fit.theta + norm.ppf(0.95) * se, rtol=1e-9)
    np.testing.assert_allclose(fit.conf_int(0.1)["lower"], fit.theta - norm.ppf(0.95) * se, rtol=1e-9)


def test_discounted_visits_are_clustered_with_their_weights():
    fit = bus_fit()
    demos = drives().discount_visits(0.9)
    weighted = rv.NFXP(fit.reward_model).fit(fit.mdp, demos)
    assert weighted.errors == ("cluster", False)
    scores = np.asarray(demos.weights_by_agent[:, weighted.evidence.seen] @ weighted.evidence.scores)
    N, half = len(scores), np.linalg.solve(weighted.evidence.bread, scores.T)
    np.testing.assert_allclose(weighted.cov_params(), half @ half.T * N / (N - 1), rtol=1e-6)
    with pytest.raises(InvalidOption, match="cluster"):
        weighted.cov_params("opg")


def test_kinds_that_have_no_meaning_are_refused():
    fit = bus_fit()
    counts = rv.NFXP(fit.reward_model).fit(fit.mdp, rv.Demonstrations.from_counts(fit.demonstrations.counts))
    with pytest.raises(InvalidOption, match="at least two agents"):
        counts.cov_params("cluster")
    occupancy = bus_fit(weighting="occupancy", first_step="smoothed")
    with pytest.raises(InvalidOption, match="bootstrap"):
        occupancy.cov_params("hessian")
    with pytest.raises(InvalidOption, match="bootstrap"):
        _ = occupancy.bse
    world = rv.environments.rust_bus(bins=BINS, discount=0.9)
    known = rv.NFXP(fit.reward_model).fit(world.mdp, drives())
    with pytest.raises(InvalidOption, match="estimate_transitions"):
        known.cov_params("opg", joint=True)
    with pytest.raises(InvalidOption, match="kind"):
        fit.cov_params("hc3")
    with pytest.raises(InvalidOption, match='`reps` requires `kind="bootstrap"`'):
        fit.with_errors("opg", reps=10)


def test_transitions_of_other_decisions_are_refused():
    fit = bus_fit()
    other = rv.NFXP(fit.reward_model).fit(fit.mdp, drives(n=5))
    with pytest.raises(InvalidOption, match="same decisions"):
        other.cov_params("opg", joint=True)
    with pytest.raises(InvalidOption, match="same agents"):
        other.cov_params("cluster", joint=True)


def test_with_errors_changes_the_errors_and_nothing_else():
    fit = bus_fit()
    other = fit.with_errors("opg", joint=True)
    assert other.errors == ("opg", True)
    assert fit.errors == ("hessian", False)
    np.testing.assert_allclose(other.bse, np.sqrt(np.diag(fit.cov_params("opg", joint=True)))[:2])
    assert other.theta is fit.theta


def test_a_weight_per_state_and_a_network_get_errors_from_products_alone():
    """No Jacobian of Q (S×A×S) is formed: scores by vjp, whose outer product has the rank that data can have."""
    animal = problem("undiscounted")
    demos = animal.simulate(animal.policy(), 300)
    fit = rv.NFXP(rv.TabularReward(8), start=np.full(8, -2.0), l2=1e-4).fit(animal.mdp, demos)
    at, seen = fit.evidence.point.objective.at, fit.evidence.seen
    k, step = 3, np.eye(8)[3] * 1e-5
    up, down = at(fit.theta + step).parts[0].log_policy, at(fit.theta - step).parts[0].log_policy
    expected = (up.reshape(-1)[seen] - down.reshape(-1)[seen]) / 2e-5
    np.testing.assert_allclose(fit.evidence.scores[:, k], expected, rtol=1e-6, atol=1e-7)
    assert np.isfinite(fit.cov_params("robust").to_numpy()).all()


def test_errors_of_a_large_network_say_what_to_do_instead(monkeypatch):
    mdp = random_mdp(6, 2)
    features = np.random.default_rng(0).normal(size=(6, 2, 3))
    demos = draw(mdp, features @ np.ones(3), n=20)
    monkeypatch.setattr("revealed.inference.MOST_PARAMETERS", 2)
    fit = rv.NFXP(rv.LinearReward(features)).fit(mdp, demos)
    for asked in (fit, fit.with_errors("cluster")):
        with pytest.raises(InvalidOption, match=r"too many .*at most 2 parameters.*with_errors\(.bootstrap"):
            _ = asked.bse
    with pytest.raises(InvalidOption, match=r"`kind`.*Did you mean cluster\?"):
        fit.with_errors("clustered")
