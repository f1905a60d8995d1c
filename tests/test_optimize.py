"""Newton, L-BFGS and Adam: one maximum, one stopping rule; trials without value are rejected, interrupts kept."""

import numpy as np
import pytest

import revealed as rv
from models import corridor, draw, random_mdp
from revealed.objective import Objective

OPTIMIZERS = ("newton", "lbfgs", "adam")
HISTORY = ["update", "objective", "gradient_norm", "step", "seconds", "linear_solves"]
FEATURES = np.random.default_rng(0).normal(size=(10, 3, 3))
TRUTH = np.array([1.0, -0.5, 0.3])
MDP = random_mdp(10, 3, seed=1)
DEMOS = draw(MDP, FEATURES @ TRUTH, 100, 20)


class Recording(rv.LinearReward):
    """A linear reward that notes where it was evaluated, and may be interrupted there."""

    def __init__(self, features, interrupt_at: int | None = None):
        super().__init__(features)
        self.seen: list[np.ndarray] = []
        self.interrupt_at = interrupt_at

    def value(self, theta):
        self.seen.append(np.array(theta))
        if len(self.seen) == self.interrupt_at:
            raise KeyboardInterrupt
        return super().value(theta)


@pytest.mark.parametrize("method", [rv.CCP, rv.NFXP])
@pytest.mark.parametrize("weighting", ["sample", "occupancy"])
def test_all_optimisers_find_the_same_maximum(method, weighting):
    options = {"weighting": weighting, "tol": 1e-7, "learning_rate": 0.05}
    reward = rv.LinearReward(FEATURES)
    fits = {name: method(reward, optimizer=name, **options).fit(MDP, DEMOS) for name in OPTIMIZERS}
    for fit in fits.values():
        assert fit.converged
        np.testing.assert_allclose(fit.theta, fits["newton"].theta, atol=1e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_the_rule_that_is_reported_is_the_rule_that_holds(name, tol):
    fit = rv.NFXP(rv.LinearReward(FEATURES), optimizer=name, tol=tol).fit(MDP, DEMOS)
    assert fit.converged
    assert fit.gradient_norm <= tol
    assert fit.history.gradient_norm.iloc[-1] <= tol
    assert f"tol {tol:.1e}" in fit.status.message


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_gradient_that_is_reported_is_that_of_the_estimate(name):
    """Each parameter measured by the widest gap that a unit of it makes between two actions of an observed state."""
    fit = rv.CCP(rv.LinearReward(FEATURES), optimizer=name, tol=1e-3).fit(MDP, DEMOS)
    counts, F = DEMOS.counts, FEATURES
    D = counts - counts.sum(axis=1, keepdims=True) * fit.policy
    T = MDP.transitions.matrix.toarray().reshape(10, 3, 10)
    A = np.eye(10) - 0.9 * np.einsum("sa,sat->st", fit.pi_tilde, T)
    lam = np.linalg.solve(A.T, 0.9 * np.einsum("sat,sa->t", T, D))
    gradient = np.einsum("sa,sak->k", D + fit.pi_tilde * lam[:, None], F) / counts.sum()
    W = np.linalg.solve(A, np.einsum("sa,sak->sk", fit.pi_tilde, F))
    slopes = (F + 0.9 * np.einsum("sat,tk->sak", T, W))[counts.sum(axis=1) > 0]
    units = np.ptp(slopes, axis=1).max(axis=0)
    assert fit.gradient_norm == pytest.approx(np.linalg.norm(gradient / units), rel=1e-6, abs=1e-14)


def test_adam_wants_several_small_gradients_in_a_row():
    fit = rv.CCP(rv.LinearReward(FEATURES), optimizer="adam", tol=1e-3, patience=7).fit(MDP, DEMOS)
    small = (fit.history.gradient_norm <= 1e-3).to_numpy()
    assert small[-7:].all()
    runs = np.convolve(small, np.ones(7), mode="valid") == 7
    assert runs.sum() == 1  # it stopped at the first such run


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_history_has_a_row_per_iteration_and_the_promised_columns(name):
    fit = rv.NFXP(rv.LinearReward(FEATURES), optimizer=name, max_iter=3, tol=1e-12).fit(MDP, DEMOS)
    assert list(fit.history.columns) == HISTORY
    assert fit.iterations == 3
    assert len(fit.history) == 4  # the start, then three
    assert fit.history.step.iloc[0] == 0.0
    assert (fit.history.step.iloc[1:] > 0).all()
    assert (np.diff(fit.history.seconds) >= 0).all()
    assert (np.diff(fit.history.linear_solves) > 0).all()


@pytest.mark.parametrize("name", ["newton", "lbfgs"])
def test_the_objective_never_falls(name):
    fit = rv.NFXP(rv.LinearReward(FEATURES), optimizer=name).fit(MDP, DEMOS)
    assert (np.diff(fit.history.objective) >= -1e-12).all()


@pytest.mark.parametrize("start", ["ccp", None])
def test_iterations_are_the_steps_that_were_taken(start):
    fit = rv.NFXP(rv.LinearReward(FEATURES), start=start).fit(MDP, DEMOS)
    assert fit.iterations == int((fit.history.step > 0).sum())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_limit_of_iterations_is_reported_as_such(name):
    fit = rv.NFXP(rv.LinearReward(FEATURES), optimizer=name, max_iter=1, tol=1e-12).fit(MDP, DEMOS)
    assert fit.status.code == "iteration_limit"
    assert not fit.converged
    assert "max_iter" in fit.status.message


def test_a_start_at_the_maximum_stays_there():
    best = rv.NFXP(rv.LinearReward(FEATURES)).fit(MDP, DEMOS)
    again = rv.NFXP(rv.LinearReward(FEATURES), start=best.theta).fit(MDP, DEMOS)
    assert again.converged
    assert again.iterations <= 1
    np.testing.assert_allclose(again.theta, best.theta, atol=1e-8)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_far_start_finds_the_same_maximum(name):
    best = rv.NFXP(rv.LinearReward(FEATURES)).fit(MDP, DEMOS)
    options = {"tol": 1e-6, "learning_rate": 0.1}
    far = rv.NFXP(rv.LinearReward(FEATURES), optimizer=name, start=[8.0, 8.0, -8.0], **options).fit(MDP, DEMOS)
    assert far.converged
    np.testing.assert_allclose(far.theta, best.theta, atol=1e-4)


def test_newton_needs_a_linear_reward():
    with pytest.raises(rv.errors.InvalidOption, match="newton"):
        rv.CCP(rv.NeuralReward(FEATURES, hidden=(2,)), optimizer="newton").fit(MDP, DEMOS)


# discount one: a cost of θ per step, whose value exists above the critical cost


COSTS = -np.ones((6, 1))
ENDING = corridor(6, discount=1.0, end=True)
CRITICAL = float(
    np.log(np.abs(np.linalg.eigvals(np.eye(5, k=1) + np.eye(5, k=-1) + np.eye(1, 25).reshape(5, 5))).max())
)
ENDED = draw(ENDING, COSTS * 0.8, 300, 10_000)


@pytest.mark.parametrize(
    ("name", "start", "options"),
    [
        ("newton", 12.0, {}),
        ("newton", CRITICAL + 1e-3, {}),
        ("lbfgs", 3.0, {}),
        ("lbfgs", CRITICAL + 1e-3, {}),
        ("adam", 1.2, {"learning_rate": 1.0, "tol": 1e-5}),
    ],
)
def test_trials_without_value_are_rejected_and_never_raise(name, start, options):
    reward = Recording(COSTS)
    fit = rv.NFXP(reward, optimizer=name, start=[start], **options).fit(ENDING, ENDED)
    assert fit.converged
    assert fit.theta[0] == pytest.approx(0.8, abs=0.1)
    assert np.isfinite(fit.history.objective).all()


@pytest.mark.parametrize(("name", "options"), [("adam", {"learning_rate": 5.0}), ("lbfgs", {})])
def test_there_were_such_trials(name, options):
    reward = Recording(COSTS)
    rv.NFXP(reward, optimizer=name, start=[1.5], **options).fit(ENDING, ENDED)
    assert any(theta[0] <= CRITICAL for theta in reward.seen[1:])  # the first is the shape check at zero


@pytest.mark.parametrize("method", [rv.NFXP, rv.MCEIRL])
def test_a_start_without_value_is_an_error_with_its_remedy(method):
    with pytest.raises(rv.errors.ValueDoesNotExist, match="start="):
        method(rv.LinearReward(COSTS)).fit(ENDING, ENDED)
    with pytest.raises(rv.errors.ValueDoesNotExist, match="start="):
        method(rv.LinearReward(COSTS), start=[CRITICAL - 1e-3]).fit(ENDING, ENDED)


def test_the_remedy_works():
    ccp = rv.CCP(rv.LinearReward(COSTS)).fit(ENDING, ENDED)
    by_hand = rv.NFXP(rv.LinearReward(COSTS), start=ccp.theta).fit(ENDING, ENDED)
    by_name = rv.NFXP(rv.LinearReward(COSTS), start="ccp").fit(ENDING, ENDED)
    assert by_hand.converged
    np.testing.assert_allclose(by_name.theta, by_hand.theta, atol=1e-8)


# interrupts


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_an_interrupt_keeps_what_was_reached(method, name, monkeypatch):
    full = method(rv.LinearReward(FEATURES), optimizer=name).fit(MDP, DEMOS)
    whole, seen = Objective.at, []

    def interrupted(self, theta):
        if len(seen) == 4:
            seen.append(None)  # once
            raise KeyboardInterrupt
        seen.append(np.array(theta))
        return whole(self, theta)

    monkeypatch.setattr(Objective, "at", interrupted)
    fit = method(rv.LinearReward(FEATURES), optimizer=name).fit(MDP, DEMOS)
    assert fit.status.code == "iteration_limit"
    assert "interrupted" in fit.status.message
    assert not fit.converged
    assert fit.iterations >= 1
    start = rv.CCP(rv.LinearReward(FEATURES), max_iter=1).fit(MDP, DEMOS).history.objective.iloc[0]
    assert start < fit.objective < full.objective + 1e-6
    assert any(np.array_equal(fit.theta, theta) for theta in seen[:4])


def test_an_interrupt_before_there_is_anything_to_keep_goes_through():
    with pytest.raises(KeyboardInterrupt):
        rv.NFXP(Recording(FEATURES, interrupt_at=2)).fit(MDP, DEMOS)


def test_methods_share_their_options():
    """A comparison passes the same to all, whether each of them has a use for it or not."""
    options = {"first_step": "smoothed", "start": "ccp", "learning_rate": 0.5, "weighting": "sample"}
    for method in (rv.NFXP, rv.MCEIRL, rv.CCP, rv.NPL):
        assert method(rv.LinearReward(FEATURES), **options).fit(MDP, DEMOS).converged


def test_a_tightened_tolerance_is_told_as_such_and_loads(tmp_path):
    """Adam's default is 1e-4; where that ends too far from the maximum, the search goes on with a tenth of it."""
    reward = rv.LinearReward(FEATURES)
    fit = rv.NFXP(reward, optimizer="adam").fit(MDP, DEMOS)
    assert "<= tol 1.0e-05, tightened from 1.0e-04 to come nearer to the maximum" in fit.status.message
    assert rv.load(fit.save(tmp_path / "fit.zip")).status == fit.status
    given = rv.NFXP(reward, optimizer="adam", tol=1e-4).fit(MDP, DEMOS)
    assert "<= tol 1.0e-04." in given.status.message
