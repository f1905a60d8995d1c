"""∂Q/∂θ in rows, and the two ways to a logit where π̃ stays."""

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from models import random_policy
from revealed.environments import grid_transitions
from revealed.objective import AffinePart, Case, Objective, PlainPart
from revealed.pi_tilde import GivenPolicy
from revealed.slopes import mean_features, slopes_of
from zoo import Problem


class Unsaid:
    """A given π̃ whose class says nothing: the objective has to go the long way."""

    moves = False

    def __init__(self, own: GivenPolicy) -> None:
        self.soft_value = own.soft_value


@pytest.mark.parametrize("form", ["pairs", "states", "sparse"])
def test_the_logit_in_rows_is_the_objective(animal: Problem, form):
    mdp = animal.mdp
    if form == "states":
        reward = rv.LinearReward(animal.lift(animal.state_features()))
    else:
        table = animal.lift(animal.pair_features())
        sparse = sp.csr_array(table.reshape(-1, table.shape[2]))
        reward = rv.LinearReward(table) if form == "pairs" else rv.LinearReward(sparse, n_actions=mdp.n_actions)
    given = GivenPolicy(mdp, random_policy(mdp))
    rho = np.where(mdp.feasible, np.random.default_rng(1).poisson(0.5, mdp.feasible.shape), 0).astype(float)
    short, long = (Objective(reward, [Case(mdp, rho, way)], l2=0.1) for way in (given, Unsaid(given)))  # pyright: ignore
    for theta in (np.zeros(3), animal.theta()):
        a, b = short.at(theta), long.at(theta)
        assert isinstance(a.parts[0], AffinePart)
        assert type(b.parts[0]) is PlainPart
        assert a.value == pytest.approx(b.value, rel=1e-11)
        for name in ("gradient", "hessian", "information", "spread", "size"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-8, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(a.parts[0].policy, b.parts[0].policy, atol=1e-12)
        rows = a.objective.cases[0].rows
        off = (a.parts[0].jacobian[rows] - a.parts[0].slopes)[mdp.feasible[rows]]  # a constant per parameter
        np.testing.assert_allclose(off, np.broadcast_to(off[0], off.shape), atol=1e-10)
        assert mdp.endless or np.abs(off).max() <= 1e-10


class Offset:
    """A reward that is linear in θ, but for what it is without any."""

    linear = True

    def __init__(self, own: rv.LinearReward, offset: np.ndarray) -> None:
        self.own, self.offset = own, offset
        self.n_params, self.names, self.init, self.vjp, self.jacobian = (
            own.n_params,
            own.names,
            own.init,
            own.vjp,
            own.jacobian,
        )

    def value(self, theta: np.ndarray) -> np.ndarray:
        return self.own.value(theta) + self.offset


@pytest.mark.parametrize("method", [rv.CCP, rv.NPL])
def test_what_a_reward_is_without_parameters_counts(method):
    mdp = rv.MDP(grid_transitions(6, 6, 0.2), discount=0.9)
    rng = np.random.default_rng(0)
    x, offset = rng.normal(size=(36, 2)), rng.normal(size=(36, 4))
    truth = rv.solve(mdp, (x @ [0.7, -0.4])[:, None] + offset)
    demos = rv.Demonstrations.from_counts(1e6 * truth.policy)
    fit = method(Offset(rv.LinearReward(x), offset)).fit(mdp, demos)
    np.testing.assert_allclose(fit.theta, [0.7, -0.4], atol=1e-6)


def test_a_fixed_policy_is_solved_for_once(animal: Problem):
    from revealed.linear_solvers import Work

    mdp, work = animal.mdp, Work()
    reward = rv.LinearReward(animal.lift(animal.pair_features()))
    rho = np.where(mdp.feasible, 1.0, 0.0)
    objective = Objective(reward, [Case(mdp, rho, GivenPolicy(mdp, random_policy(mdp), work=work))])
    for k in range(3):
        point = objective.at(animal.theta() * k)
        _ = point.value, point.gradient, point.hessian
        assert work.solves == reward.n_params + 1


def test_rows_are_rows_of_the_whole(animal: Problem):
    mdp = animal.mdp
    J = animal.lift(animal.pair_features()).reshape(-1, 3)
    W = np.random.default_rng(0).normal(size=(mdp.n_states, 3))
    whole = slopes_of(mdp, J, W)
    np.testing.assert_allclose(whole.reshape(-1, 3)[~mdp.feasible.reshape(-1)], 0.0)
    for states in (np.array([0, 2, mdp.n_states - 1]), np.arange(1, 4)):
        np.testing.assert_allclose(slopes_of(mdp, J, W, states), whole[states])
    dense, sparse = (mean_features(form, random_policy(mdp)) for form in (J, sp.csr_array(J)))
    np.testing.assert_allclose(dense, sparse)
