"""Joint errors of θ and estimated transitions (theory N4, N5): of very many parameters, on horizons, or resampled."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import revealed as rv
from models import random_mdp, random_policy
from oracle import Floats
from revealed import inference
from revealed.behaviour import QUANTITIES
from revealed.errors import InvalidOption
from revealed.objective import Case, Objective
from revealed.pi_tilde import GivenPolicy, OwnPolicy
from scenarios import fleet_with_estimated_moves
from test_inference import bus_fit
from test_transition_models import BINS, bus_landing, drives

TWO_STEPS = ("hessian", "robust", "cluster")
NAMES = ("low", "high")


def estimated_model(S: int, seed: int = 0, n: int = 80, horizon: int | None = None) -> tuple[rv.MDP, Any, Any]:
    """A frequency per move, the reward, and what was done."""
    world = random_mdp(S=S, A=2, branching=4, seed=seed, initial=True)
    length = 25 if horizon is None else horizon
    demos = rv.simulate(world, random_policy(world), n, length, seed=seed)
    moves = rv.estimate_transitions(demos, unseen="stay")
    mdp = rv.MDP(moves, 0.9, world.initial)
    features = np.random.default_rng(seed).normal(size=(S, 2, 2))
    return mdp if horizon is None else mdp.unroll(horizon), rv.LinearReward(features, names=NAMES), demos


@cache
def small(kind: str) -> rv.Fit:
    """Few transition parameters: plain, on a horizon, under a given π̃, or with shared outcomes on a horizon."""
    if kind == "shared":
        demos = drives(n=80, length=8)
        mdp = rv.MDP(rv.estimate_transitions(demos, bus_landing()), 0.9)
        features = rv.environments.rust_bus(bins=BINS).features
        return rv.NFXP(rv.LinearReward(features, names=NAMES)).fit(mdp.unroll(8), demos)
    mdp, reward, demos = estimated_model(6, horizon=5 if kind == "horizon" else None)
    return (rv.CCP if kind == "given" else rv.NFXP)(reward).fit(mdp, demos)


@cache
def large() -> rv.Fit:
    """More transition parameters than a matrix holds."""
    mdp, reward, demos = estimated_model(130, n=400)
    assert mdp.estimated is not None
    assert mdp.estimated.psi.size > inference.MOST_PARAMETERS
    return rv.NFXP(reward).fit(mdp, demos)


def at_psi(fit: rv.Fit, psi: Floats) -> rv.MDP:
    estimated: Any = fit.mdp.estimated
    base = (fit.mdp.base or fit.mdp).replace(transitions=estimated.at(psi))
    return base if fit.mdp.horizon is None else base.unroll(fit.mdp.horizon)


# -- the transitions' own noise ---------------------------------------------------------------------------------------


def test_the_noise_of_frequencies_is_that_of_multinomials():
    """(diag p − ppᵀ)/n for every pair, against the inverse of the information written out."""
    estimated: Any = small("plain").mdp.estimated
    root, lost = estimated.model.root(estimated.psi, estimated.counts)
    found = (root.T @ root).toarray()
    W = estimated.model.scores(estimated.psi).toarray()
    np.testing.assert_allclose(found, np.linalg.inv(W.T @ np.diag(estimated.counts) @ W), rtol=1e-9, atol=1e-15)
    assert not lost.any()
    pair = estimated.model.pair[estimated.model.free]
    n = np.bincount(estimated.model.pair, weights=estimated.counts)[pair]
    expected = (np.diag(estimated.psi) - np.outer(estimated.psi, estimated.psi) * (pair[:, None] == pair)) / n
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


def test_moves_of_agents_without_weight_have_no_noise_and_spoil_none():
    mdp, reward, demos = estimated_model(6)
    weights = np.ones(80)
    weights[:40] = 0.0
    half = rv.MDP(rv.estimate_transitions(demos.reweighted(weights), unseen="stay"), 0.9, mdp.initial)
    estimated: Any = half.estimated
    assert (estimated.counts == 0.0).any()
    fit = rv.NFXP(reward).fit(half, demos.reweighted(weights))
    found = np.diag(fit.cov_params("hessian", joint=True))
    assert np.isfinite(found).all()
    gone = estimated.counts[estimated.model.free] == 0.0
    np.testing.assert_allclose(found[2:][gone], 0.0, atol=1e-15)
    alone = rv.NFXP(reward).fit(mdp, demos.subset(range(40, 80)))
    assert alone.theta == pytest.approx(fit.theta, abs=0.5)


# -- θ moves with ψ ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "horizon", "given", "shared"])
def test_the_mixed_derivative_is_that_of_the_gradient(kind):
    """∂²g/∂θ∂ψ (N4): by solves with the transpose, against central differences over transitions."""
    fit = small(kind)
    estimated: Any = fit.mdp.estimated
    found = fit.evidence.cross_hessian
    assert found.shape == (2, estimated.psi.size)

    def gradient(psi: Floats) -> Floats:
        mdp = at_psi(fit, psi)
        pi_tilde = OwnPolicy(mdp) if kind != "given" else GivenPolicy(mdp, fit.pi_tilde)
        case = Case(mdp, fit.demonstrations.weights, pi_tilde)
        objective = Objective(fit.evidence.point.objective.reward, [case])
        return objective.total * objective.at(fit.theta).gradient

    for k in range(0, estimated.psi.size, 5):
        step = np.eye(estimated.psi.size)[k] * 1e-5
        expected = (gradient(estimated.psi + step) - gradient(estimated.psi - step)) / 2e-5
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-6, atol=1e-6 * np.abs(found).max())


@pytest.mark.parametrize("kind", ["plain", "horizon"])
def test_the_estimate_moves_with_the_transitions_as_the_formula_says(kind):
    """dθ̂/dψ = −H⁻¹ ∂²g/∂θ∂ψ, against estimating again at other transitions."""
    fit = small(kind)
    estimated: Any = fit.mdp.estimated
    found = np.linalg.solve(fit.evidence.bread, fit.evidence.cross_hessian)
    for k in (0, 7):
        step = np.eye(estimated.psi.size)[k] * 1e-4
        ends = [
            rv.NFXP(fit.reward_model, start=fit.theta, tol=1e-13).fit(at_psi(fit, psi), fit.demonstrations).theta
            for psi in (estimated.psi + step, estimated.psi - step)
        ]
        np.testing.assert_allclose(found[:, k], (ends[0] - ends[1]) / 2e-4, rtol=1e-6, atol=1e-6 * np.abs(found).max())


def sandwich(fit: rv.Fit, kind: str) -> Floats:
    """The covariance of two steps with every matrix written out."""
    own, estimated = fit.evidence, fit.mdp.estimated
    assert estimated is not None
    K, L = fit.theta.size, estimated.psi.size
    W: Any = estimated.model.scores(estimated.psi)
    W = W if isinstance(W, np.ndarray) else W.toarray()
    M = W.T @ np.diag(estimated.counts) @ W
    inverse = np.linalg.inv(np.block([[own.bread, -own.cross_hessian], [np.zeros((L, K)), M]]))
    if kind == "cluster":
        scores = np.hstack([own.agent_scores, estimated.by_agent.toarray() @ W])
        meat = scores.T @ scores * len(scores) / (len(scores) - 1.0)
    else:
        n, U = own.counts[own.seen], own.scores
        first = own.bread if kind == "hessian" else (U * n[:, None]).T @ U
        meat = np.block([[first, np.zeros((K, L))], [np.zeros((L, K)), M]])
    return inverse @ meat @ inverse.T


@pytest.mark.parametrize("case", ["plain", "horizon", "given", "shared"])
@pytest.mark.parametrize("kind", TWO_STEPS)
def test_two_steps_are_the_sandwich_written_out(case, kind):
    fit = small(case)
    np.testing.assert_allclose(fit.cov_params(kind, joint=True), sandwich(fit, kind), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", TWO_STEPS)
def test_more_transition_parameters_than_a_matrix_holds(kind):
    """The same sandwich, of which θ's part comes back, and ψ's standard errors."""
    fit = large().with_errors(kind, joint=True)
    expected = sandwich(fit, kind)
    found = fit.cov_params()
    assert list(found.columns) == list(NAMES)
    np.testing.assert_allclose(found, expected[:2, :2], rtol=1e-6)
    assert "transition_bse" in found.attrs["note"]
    np.testing.assert_allclose(fit.bse, np.sqrt(np.diag(expected)[:2]), rtol=1e-6)
    np.testing.assert_allclose(fit.transition_bse, np.sqrt(np.diag(expected)[2:]), rtol=1e-5)
    assert (fit.bse > large().with_errors(kind).bse).all()
    summary = fit.summary()
    frame, L = summary.to_frame(), len(fit.transition_bse)
    assert f"joint with {L} transition parameters" in str(summary)
    assert len(frame) == L + 2
    np.testing.assert_allclose(frame["std err"].iloc[2:], fit.transition_bse)


def test_discounted_visits_have_the_sandwich_over_agents_with_their_weights():
    mdp, reward, demos = estimated_model(6)
    fit = rv.NFXP(reward).fit(mdp, demos.discount_visits(0.9))
    np.testing.assert_allclose(fit.cov_params("cluster", joint=True), sandwich(fit, "cluster"), rtol=1e-6, atol=1e-12)


def test_observations_on_a_horizon_have_the_scores_of_their_periods():
    """opg: each decision's score in θ and ψ, with the score of a move; moves are shared among the periods."""
    fit = small("horizon")
    own, estimated = fit.evidence, fit.mdp.estimated
    assert estimated is not None
    W, S = estimated.model.scores(estimated.psi).toarray(), 6
    steps, n_pairs = fit.demonstrations.steps, 2 * S
    base = np.asarray(own.seen) % n_pairs
    G = own._transition_jacobian.reshape(-1, estimated.psi.size)
    policy = own.point.parts[0].policy
    mean = np.einsum("sa,sal->sl", policy, own._transition_jacobian)
    U = np.hstack([own.scores, G[own.seen] - mean[np.asarray(own.seen) // 2]])
    total = np.bincount(base, weights=own.counts[own.seen], minlength=n_pairs)[base]
    out = np.zeros((U.shape[1], U.shape[1]))
    for row, pair, n, all_of_them in zip(U, base, own.counts[own.seen], total, strict=True):
        moves = estimated.joint[[pair]].toarray()[0] * n / all_of_them
        for c in np.flatnonzero(moves):
            z = row + np.append(np.zeros(2), W[c])
            out += moves[c] * np.outer(z, z)
        out += (n - moves.sum()) * np.outer(row, row)
    assert steps is not None
    np.testing.assert_allclose(np.linalg.inv(fit.cov_params("opg", joint=True).to_numpy()), out, rtol=1e-6, atol=1e-6)


def test_transitions_of_other_agents_count_where_they_are_independent():
    """T from one fleet, θ from another: variances add up, whoever was seen."""
    fit = bus_fit()
    other = rv.NFXP(fit.reward_model).fit(fit.mdp, drives(n=25, seed=5).subset(range(20)))
    for kind in ("hessian", "robust"):
        found, alone = other.cov_params(kind, joint=True).to_numpy(), other.cov_params(kind).to_numpy()
        slope = np.linalg.solve(other.evidence.bread, other.evidence.cross_hessian)
        np.testing.assert_allclose(found[:2, :2], alone + slope @ found[2:, 2:] @ slope.T, rtol=1e-9)
    with pytest.raises(InvalidOption, match="`joint` requires transitions that were estimated from the same agents"):
        other.cov_params("cluster", joint=True)


# -- bands ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["plain", "horizon"])
@pytest.mark.parametrize("kind", TWO_STEPS)
def test_bands_do_not_depend_on_whether_the_covariance_is_written_out(case, kind, monkeypatch):
    """All quantities of a counterfactual and a demand curve, some ψ at a time, against the matrix."""
    fit = small(case).with_errors(kind, joint=True)

    def answers() -> list[Floats]:
        cf = fit.counterfactual(params={"low": lambda x: 1.5 * x + 0.2})
        curve = fit.demand_curve("low", [-0.5, 0.5], action=1)
        sides = (cf.before.se, cf.after.se, cf.change.se)
        return [np.ravel(getattr(s, n)) for s in sides for n in QUANTITIES] + [curve.se, curve.lower]

    whole = answers()
    fit.kept.clear()
    monkeypatch.setattr(inference, "MOST_PARAMETERS", 3)
    monkeypatch.setattr("revealed.doubt.PIECE", 3 * fit.mdp.feasible.size)  # three ψ at a time
    assert len(fit.cov_params()) == 2
    for one, other in zip(whole, answers(), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-7, atol=1e-10)


def test_bands_with_very_many_transition_parameters():
    """Welfare's standard error against its gradient by differences and the sandwich written out."""
    fit = large().with_errors("hessian", joint=True)
    cov, estimated = sandwich(fit, "hessian"), fit.mdp.estimated
    assert estimated is not None
    cf = fit.counterfactual(params={"low": 0.0})
    x = np.append(fit.theta, estimated.psi)

    def welfare(x: Floats) -> float:
        mdp = at_psi(fit, x[2:])
        return float(np.asarray(mdp.initial) @ rv.solve(mdp, fit.reward_model.value(x[:2])).value)

    best = rv.solve(fit.mdp, fit.reward_model.value(fit.theta))
    visits = best.chain.solve_transpose(np.asarray(fit.mdp.initial))
    G = 0.9 * estimated.slopes.paired((visits[:, None] * best.policy).reshape(-1), best.value)
    for k in (0, 100, 400):
        step = np.eye(x.size)[2 + k] * 1e-5
        assert (welfare(x + step) - welfare(x - step)) / 2e-5 == pytest.approx(G[k], rel=1e-5, abs=1e-9)
    g = np.append([(welfare(x + e) - welfare(x - e)) / 2e-5 for e in 1e-5 * np.eye(x.size)[:2]], G)
    assert cf.before.se.welfare == pytest.approx(np.sqrt(g @ cov @ g), rel=1e-6)
    assert cf.before.se.welfare > 1.1 * large().counterfactual(params={"low": 0.0}).before.se.welfare
    assert np.isfinite(cf.change.se.policy).all()


def test_where_states_and_agents_are_too_many_shares_and_welfare_keep_their_bands(monkeypatch):
    fit = large().with_errors("cluster", joint=True)
    every = fit.counterfactual(params={"low": 0.0})
    monkeypatch.setattr("revealed.counterfactual.MOST_NUMBERS", 1000)
    few = fit.counterfactual(params={"low": 0.0})
    assert few.change.se.welfare == pytest.approx(every.change.se.welfare, rel=1e-9)
    np.testing.assert_allclose(few.change.se.frequencies, every.change.se.frequencies, rtol=1e-9)
    assert np.isnan(few.change.se.policy).all()
    assert any("bands of shares and welfare only" in note for note in few.notes)


# -- no formula: a bootstrap by itself, and a note --------------------------------------------------------------------


def test_outer_products_of_very_many_parameters_are_resampled_instead():
    fit = large().with_errors("opg", joint=True, reps=4, jobs=1, progress=False)
    assert fit.errors == ("bootstrap", True)
    drawn = fit.drawn
    assert drawn.psi.shape == (4, len(fit.transition_bse))
    np.testing.assert_allclose(fit.bse, drawn.theta.std(axis=0, ddof=1))
    np.testing.assert_allclose(fit.transition_bse, drawn.psi.std(axis=0, ddof=1))
    assert 'joint errors of kind "opg" have no formula for' in fit.errors_note
    assert 'Joint errors of kind "opg" have no formula' in " ".join(str(fit.summary()).split())
    cf = fit.counterfactual(params={"low": 0.0})
    assert cf.bands == "bootstrap"
    assert fit.errors_note in cf.notes
    assert fit.cov_params().attrs["note"].startswith(fit.errors_note)


def test_options_of_a_bootstrap_go_with_nothing_else():
    with pytest.raises(InvalidOption, match='`reps` requires `kind="bootstrap"`'):
        large().with_errors("hessian", joint=True, reps=4)


def test_joint_errors_of_one_agent_are_refused_with_the_reason():
    demos = drives(n=1, length=200)
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="stay", smoothing=1.0), 0.9)
    reward = rv.LinearReward(rv.environments.rust_bus(bins=BINS).features[:, :, :1])
    with pytest.raises(InvalidOption, match="without parameters, such as smoothed"):
        rv.NFXP(reward).fit(mdp, demos).cov_params("hessian", joint=True)


# -- what an answer says of its bands ---------------------------------------------------------------------------------

KNOWN = "bands take the transitions as known"


def said(answer: Any) -> list[str]:
    """As text, LaTeX and HTML, in single spaces."""
    return [" ".join(text.split()) for text in (str(answer), answer.to_latex(), answer.to_html())]


def test_bands_that_take_estimated_transitions_as_known_say_so():
    fit = fleet_with_estimated_moves()
    answers = [
        fit.counterfactual(params={"RC": 4.0}),
        fit.counterfactual(mdp=fit.mdp.replace(discount=0.9)),
        fit.demand_curve("RC", [4.0, 5.0], action="replace"),
    ]
    for answer in answers:
        assert all(KNOWN in text for text in said(answer))
        assert 'with_errors("hessian", joint=True)' in answer.notes[-1]
    for frame in (answers[0].table(), answers[0].frame("policy", 1), answers[2].to_frame()):
        assert KNOWN in frame.attrs["notes"][0]
    for none in (fit.counterfactual(params={"RC": 4.0}, bands=None), fit.demand_curve("RC", [4.0], 1, bands=None)):
        assert not any(KNOWN in text for text in said(none))


def test_bands_that_count_them_do_not():
    fit = fleet_with_estimated_moves().with_errors("cluster", joint=True)
    drawn = fleet_with_estimated_moves().with_errors("bootstrap", reps=4, jobs=1, progress=False)
    for one in (fit, drawn):
        for answer in (one.counterfactual(params={"RC": 4.0}), one.demand_curve("RC", [4.0], action="replace")):
            assert not any("as known" in text for text in said(answer))


def test_bands_from_other_agents_say_which_errors_count_them():
    fit = bus_fit()
    other = rv.NFXP(fit.reward_model).fit(fit.mdp, drives(n=25, seed=5).subset(range(20)))
    assert 'with_errors("hessian", joint=True)' in other.counterfactual(params={"RC": 1.0}).notes[0]
    told = other.with_errors("cluster").counterfactual(params={"RC": 1.0}).notes
    assert told == (f"{KNOWN}: they were estimated from other agents.",)


def test_smoothed_transitions_point_to_the_bootstrap():
    demos = drives(20, 30)
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="stay", smoothing=0.5), discount=0.9)
    reward = rv.LinearReward(np.tile([[0.0], [1.0]], (BINS, 1, 1)), names=["replace"])
    fit = rv.NFXP(reward).fit(mdp, demos)
    note = fit.counterfactual(params={"replace": 0.0}).notes[0]
    assert note == f'{KNOWN}; with_errors("bootstrap") re-estimates them in every draw.'
    joint = fit.with_errors("hessian", joint=True, reps=6, jobs=1, progress=False)
    assert joint.errors == ("bootstrap", True)
    cf = joint.counterfactual(params={"replace": 0.0})
    assert cf.notes[0] == joint.errors_note
    assert "6 replications are too few" in cf.notes[1]
    assert cf.bands == "bootstrap"


def test_the_noise_of_the_transitions_is_not_small():
    """A world whose T is what it is beside one whose T was estimated: all of the band is that of T."""
    fit = fleet_with_estimated_moves()
    mdp = rv.MDP(fit.mdp.transitions.matrix, 0.99, fit.mdp.initial, action_labels=fit.mdp.action_labels)
    alone, joint = (f.counterfactual(mdp=mdp) for f in (fit, fit.with_errors("hessian", joint=True)))
    assert alone.change.se.welfare < 1e-6 * joint.change.se.welfare
    assert KNOWN in str(alone)


def test_a_model_made_again_from_the_same_data_has_the_same_doubts_about_its_moves():
    """Its transitions say what those of the fit say, whatever it leaves out of them."""
    mdp, reward, demos = estimated_model(6)
    fit = rv.NFXP(reward).fit(mdp, demos).with_errors("hessian", joint=True)
    ends = np.arange(6) == 5
    again = rv.MDP(rv.estimate_transitions(demos, unseen="stay"), 0.9, mdp.initial, terminal=ends)
    one, other = (fit.counterfactual(mdp=m).after.se for m in (again, mdp.replace(terminal=ends)))
    np.testing.assert_allclose(one.policy, other.policy, rtol=1e-12)
    assert one.welfare == pytest.approx(other.welfare, rel=1e-12)
