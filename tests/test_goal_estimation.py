"""All four methods on trips with goals: they agree where they must, find a start, and say what fails."""

from typing import Any

import numpy as np
import pytest

import revealed as rv
from networks import Trips, random_network, random_trips, windy_trips
from oracle import assert_close
from revealed.environments import city
from revealed.errors import InvalidOption, ValueDoesNotExist
from revealed.estimation import Options
from revealed.goal_estimation import run_for
from revealed.goal_values import GoalValues

METHODS = [rv.NFXP, rv.MCEIRL, rv.CCP, rv.NPL]
SMALL = {"network": random_trips(3, S=20, n=150), "windy": windy_trips(0.9, n=100, side=3)}
NETWORKS = {
    kind: rv.NeuralReward(made.features, hidden=(2,), seed=0, activation="tanh") for kind, made in SMALL.items()
}


@pytest.fixture(scope="module", params=SMALL)
def made(request) -> Trips:
    return SMALL[request.param]


# ------------------------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
@pytest.mark.parametrize("kind", SMALL)
def test_every_reward_goes_with_every_method(kind, method):
    """The end of each search is a stationary point of its own objective, and its likelihood that of its policies."""
    made, network = SMALL[kind], NETWORKS[kind]
    S = made.mdp.n_states
    updates = {"updates": 3} if method is rv.NPL else {}
    for reward, options in (
        (made.reward, {}),
        (rv.TabularReward(S), {"l2": 1e-2}),
        (network, {"l2": 1e-2, "optimizer": "lbfgs", "max_iter": 400, "tol": 1e-5}),
    ):
        fit = method(reward, **options, **updates).fit(made.mdp, made.demos)
        assert fit.status.code in (("converged", "iteration_limit") if method is rv.NPL else ("converged",))
        assert fit.gradient_norm <= options.get("tol", 1e-6)
        assert fit.history["objective"].iloc[-1] == pytest.approx(fit.objective, abs=1e-9)
        by_policy = sum(
            float((n := made.demos.toward(int(g)).counts)[n > 0] @ fit.log_policy_for(int(g))[n > 0])
            for g in made.goal_states
        )
        assert fit.llf == pytest.approx(by_policy, rel=1e-8)


@pytest.mark.parametrize("kind", ["linear", "tabular", "neural"])
def test_npl_settles_where_nfxp_ends(kind):
    made = SMALL["windy"]
    reward, options = {
        "linear": (made.reward, {}),
        "tabular": (rv.TabularReward(made.mdp.n_states), {"l2": 1e-2, "tol": 1e-9}),
        "neural": (NETWORKS["windy"], {"l2": 1e-2, "optimizer": "lbfgs", "tol": 1e-9}),
    }[kind]
    nfxp = rv.NFXP(reward, **options).fit(made.mdp, made.demos)
    npl = rv.NPL(reward, updates=40, **options).fit(made.mdp, made.demos)
    assert npl.settled
    np.testing.assert_allclose(npl.theta, nfxp.theta, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["newton", "lbfgs", "adam"])
def test_optimizers_end_in_one_place(optimizer):
    made = SMALL["network"]
    options = {"learning_rate": 0.1, "tol": 1e-5} if optimizer == "adam" else {}
    fit = rv.NFXP(made.reward, optimizer=optimizer, l2=1e-2, **options).fit(made.mdp, made.demos)
    expected = rv.NFXP(made.reward, l2=1e-2, solver="lu").fit(made.mdp, made.demos)
    assert fit.converged
    np.testing.assert_allclose(fit.theta, expected.theta, atol=1e-2 if optimizer == "adam" else 1e-4)


# -------------------------------------------------------------------------------------------------------- one goal


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
@pytest.mark.parametrize("kind", ["network", "windy"])
def test_with_a_single_goal_it_is_the_model_that_ends_there(kind, method):
    """The same estimate, errors and likelihood as without goals on a model in which the goal is terminal."""
    if kind == "network":
        mdp = random_network(4, S=15, dead_ends=0)
        X = np.random.default_rng(1).uniform(0.5, 1.5, (15, 3, 2))
        made = Trips(mdp, X, np.array([-1.2, -1.0]), n=200, goals=1)
    else:
        made = windy_trips(0.9, n=200, goals=1)
    goal = made.goal_states[0]
    ended = made.mdp.replace(terminal=np.arange(made.mdp.n_states) == goal)
    options = {"start": made.theta, "first_step": "smoothed"}
    one = method(made.reward, **options).fit(made.mdp, made.demos)
    other = method(made.reward, **options).fit(ended, made.demos.toward(goal))
    assert isinstance(one, rv.GoalFit)
    assert isinstance(other, rv.Fit)
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-8)
    np.testing.assert_allclose(one.with_errors("hessian").bse, other.with_errors("hessian").bse, rtol=1e-8)
    assert one.llf == pytest.approx(other.llf, rel=1e-8)
    assert_close(one.policy_for(goal), other.policy, 1e-8)
    if method is rv.NFXP:
        assert_close(one.value_for(goal), other.value, 1e-8)


# ----------------------------------------------------------------------------------------------------------- weighting


@pytest.mark.parametrize("method", METHODS)
def test_with_the_true_occupancy_the_truth_is_the_maximum(made, method):
    """ρ = Occ^π ⊙ π of the true policy toward each goal: the gradient is zero at the truth, and the fit ends there."""
    policies = GoalValues(made.mdp, made.table)
    options: dict[str, Any] = {"weighting": "occupancy", "first_step": lambda goal: policies.toward(goal).policy}
    run = run_for(method.method, made.reward, Options(**options), made.mdp, made.demos)
    rho = run.rho()
    for pi_tilde in (run.own(), run.given(run.expert)):
        assert run.make_objective(rho, pi_tilde).at(made.theta).gradient_norm < 1e-10
    fit = method(made.reward, **options).fit(made.mdp, made.demos)
    np.testing.assert_allclose(fit.theta, made.theta, atol=1e-6)
    assert fit.llf <= rv.NFXP(made.reward).fit(made.mdp, made.demos).llf


def test_occupancy_counts_trips_from_where_they_began():
    """As many trips per goal as were seen: what arrives at each goal are the shares of its trips."""
    made = SMALL["network"]
    run = run_for("NFXP", made.reward, Options(weighting="occupancy"), made.mdp, made.demos)
    rho, steps = run.rho(), made.steps
    for c, goal in enumerate(rho.goal):
        share = float((steps.goal[steps.first] == goal).mean())
        arriving = rho.dense(c).reshape(-1) @ made.mdp.transitions.matrix[:, [goal]].toarray()[:, 0]
        assert arriving == pytest.approx(share, rel=1e-9)


def test_a_start_distribution_of_the_model_comes_first():
    made = SMALL["windy"]
    initial = np.zeros(made.mdp.n_states)
    initial[[0, 5]] = 0.5
    options = Options(weighting="occupancy")
    there: Any = run_for("NFXP", made.reward, options, made.mdp.replace(initial=initial), made.demos)
    starts = there._starts()
    shares = [made.demos.toward(int(g)).starts.sum() for g in made.goal_states] / made.demos.starts.sum()
    np.testing.assert_allclose(starts, shares[:, None] * initial)


# -------------------------------------------------------------------------------------------------------------- starts


def test_zero_has_no_value_on_a_network_with_a_way_round_and_yet_a_start_is_found():
    made = SMALL["network"]
    run = run_for("NFXP", made.reward, Options(), made.mdp, made.demos)
    assert isinstance(run.make_objective(run.rho(), None).at(np.zeros(3)).problem, ValueDoesNotExist)
    fit = rv.NFXP(made.reward).fit(made.mdp, made.demos)
    assert fit.converged
    for start in ("ccp", 2.0 * made.theta):
        again = rv.NFXP(made.reward, start=start).fit(made.mdp, made.demos)
        np.testing.assert_allclose(again.theta, fit.theta, rtol=1e-7)


def test_a_start_is_found_for_features_of_either_sign_and_for_weights_of_states():
    """Costs, gains (written as their negatives), and a mix that tells nothing: CCP's estimate is the start then."""
    made = SMALL["network"]
    expected = rv.NFXP(made.reward).fit(made.mdp, made.demos)
    negative = rv.NFXP(rv.LinearReward(-made.features)).fit(made.mdp, made.demos)
    np.testing.assert_allclose(negative.theta, -expected.theta, rtol=1e-7)
    signed = made.features @ np.array([[1.0, 0.0, 1.0], [-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]])
    assert (signed.min(axis=(0, 1)) < 0.0).sum() == 2
    other = rv.NFXP(rv.LinearReward(signed)).fit(made.mdp, made.demos)
    assert other.llf == pytest.approx(expected.llf, rel=1e-9)
    assert rv.NFXP(rv.TabularReward(20), l2=1e-2).fit(made.mdp, made.demos).converged


def test_a_given_start_without_a_value_is_an_error_with_its_remedy():
    made = SMALL["network"]
    with pytest.raises(ValueDoesNotExist) as raised:
        rv.NFXP(made.reward, start=np.zeros(3)).fit(made.mdp, made.demos)
    goal = made.goal_states[0]
    told = f"the search cannot start: toward state {goal} the soft value does not exist for this reward"
    assert str(raised.value).startswith(told)
    assert 'start= with more negative parameters, or start="ccp"' in str(raised.value)


def test_a_model_without_a_value_anywhere_names_the_remedy():
    """A ring of two at no cost, whatever θ: who goes round for ever pays nothing."""
    T = np.zeros((4, 2, 4))
    T[0, 0, 1] = T[1, 0, 0] = T[0, 1, 2] = T[1, 1, 2] = T[2, :, 3] = 1.0
    mdp = rv.MDP(T, 1.0, terminal=[False, False, False, True])
    X = np.zeros((4, 2, 1))
    X[:2, 1] = 1.0
    demos = rv.Demonstrations.from_trajectories([([0, 1, 2, 3], [0, 1, 0]), ([1, 2, 3], [1, 1])], 4, 2, goal=3)
    with pytest.raises(ValueDoesNotExist) as raised:
        rv.NFXP(rv.LinearReward(X)).fit(mdp, demos)
    message = str(raised.value)
    assert message.startswith("no starting point was found: the soft value exists neither at the reward's own start")
    assert "add a feature that makes every move costly, such as a constant" in message
    assert rv.NFXP(rv.LinearReward(np.ones((4, 2, 1)))).fit(mdp, demos).theta[0] < -np.log(2.0) / 2.0


def test_models_on_a_horizon_and_rooms_too_small_are_refused(monkeypatch):
    made = SMALL["network"]
    with pytest.raises(rv.errors.RevealedError, match="`goal` cannot be combined with a horizon"):
        rv.NFXP(made.reward).fit(made.mdp.unroll(30), made.demos)
    monkeypatch.setattr("revealed.goal_estimation.MOST_STORED", 10)
    for fit in (rv.NPL(made.reward), rv.NFXP(made.reward, weighting="occupancy")):
        with pytest.raises(InvalidOption, match=r"Use NFXP, which goes through the goals one by one\."):
            fit.fit(made.mdp, made.demos)


# ----------------------------------------------------------------------------------------------------------- separation


@pytest.fixture(scope="module", params=[(0, 60), (1, 150), (3, 100)])
def straight_on(request):
    """Trips that never turn back: no weight on turning back is the best one."""
    seed, n = request.param
    made = city(110, seed=seed)
    trips = made.demonstrate(n, seed=seed, destinations=8)
    steps = trips.steps
    assert steps is not None
    back = np.asarray(made.network.reward(["u_turn"]).value(np.ones(1)))[steps.state, steps.action] > 0.0
    return made, trips.subset(np.setdiff1d(np.arange(n), steps.agent[back]))


@pytest.mark.parametrize("method", [rv.NFXP, rv.NPL])
def test_weights_that_run_away_are_never_called_converged(straight_on, method):
    """NPL runs so far that nothing is left of slope and curvature, and settles there."""
    made, trips = straight_on
    fit = method(made.reward).fit(made.mdp, trips)
    assert fit.status.code == "separated"
    assert "Add a penalty (l2=1e-3)" in fit.status.message
    assert fit.params["u_turn"] < -15.0


def test_a_penalty_brings_them_back(straight_on):
    made, trips = straight_on
    fit = rv.NFXP(made.reward, l2=1e-3).fit(made.mdp, trips)
    npl = rv.NPL(made.reward, l2=1e-3, updates=40).fit(made.mdp, trips)
    assert fit.converged
    assert npl.converged
    assert -10.0 < fit.params["u_turn"] < -1.0
    np.testing.assert_allclose(npl.theta, fit.theta, atol=1e-6)


GOALS_MISSING = " If trips have destinations, read them with goal= or network.trips."


@pytest.mark.parametrize(("method", "dead_ends"), [(rv.NFXP, 0), (rv.CCP, 0), (rv.NPL, 0), (rv.NFXP, 1)])
def test_trips_read_without_their_goals_are_told_what_they_lack(method, dead_ends):
    """On a network nothing ends, or only where nobody wants to go: more negative rewards are no remedy."""
    mdp = random_network(3, dead_ends=dead_ends)
    demos = rv.Demonstrations.from_trajectories([([0, 1, 2], [0, 0, 0])] * 3, mdp.n_states, mdp.n_actions)
    features = np.ones((*mdp.feasible.shape, 1))
    with pytest.raises(ValueDoesNotExist) as caught:
        method(rv.LinearReward(features)).fit(mdp, demos)
    assert str(caught.value).endswith(GOALS_MISSING)


def test_a_model_toward_a_goal_lacks_none():
    mdp = random_network(3, dead_ends=0)
    with pytest.raises(ValueDoesNotExist) as caught:
        rv.solve(mdp.toward(4), np.ones(mdp.feasible.shape))
    assert GOALS_MISSING not in str(caught.value)
    with pytest.raises(ValueDoesNotExist) as caught:
        rv.solve(mdp, np.ones(mdp.feasible.shape))
    assert str(caught.value) == (
        "at discount 1 every trajectory must be able to end, but no sequence of actions leads "
        "from state 0 to a terminal state (12 "
        f"such states). Mark terminal states, or use a discount below 1.{GOALS_MISSING}"
    )
