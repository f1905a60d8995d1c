"""Rewards: the vjp is the derivative of the value, sparse forms equal dense ones, a user's own takes a few lines."""

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from models import corridor, draw, random_mdp, shuffled
from revealed.errors import InvalidReward
from revealed.rewards import LiftedWithJacobian, Reward, lift_reward

S, A, K = 6, 3, 2
RNG = np.random.default_rng(0)
STATE = RNG.normal(size=(S, K)) * (RNG.random((S, K)) < 0.7)
PAIR = RNG.normal(size=(S, A, K)) * (RNG.random((S, A, K)) < 0.7)


def as_blocks(pairs):
    return [sp.csr_array(pairs[:, a]) for a in range(pairs.shape[1])]


def jax_reward(columns: int = 1):
    import jax.numpy as jnp

    params = {"scale": np.array(0.3), "shift": np.zeros(columns)}
    return rv.JaxReward(lambda p, x: jnp.tanh(x[:, :1] * p["scale"]) + p["shift"], params, STATE)


def torch_reward(columns: int = 1):
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(K, 4), torch.nn.Tanh(), torch.nn.Linear(4, columns))
    return rv.TorchReward(net, STATE)


REWARDS = {
    "linear states": lambda: rv.LinearReward(STATE),
    "linear pairs": lambda: rv.LinearReward(PAIR),
    "sparse states": lambda: rv.LinearReward(sp.csc_array(STATE)),
    "sparse pairs": lambda: rv.LinearReward(sp.csr_array(PAIR.reshape(S * A, K)), n_actions=A),
    "sparse blocks": lambda: rv.LinearReward(as_blocks(PAIR)),
    "tabular": lambda: rv.TabularReward(S),
    "neural states": lambda: rv.NeuralReward(STATE, hidden=(5, 4), activation="tanh"),
    "neural pairs": lambda: rv.NeuralReward(PAIR, hidden=(5,), activation="softplus"),
    "no hidden layer": lambda: rv.NeuralReward(STATE, hidden=()),
    "jax": jax_reward,
    "jax by action": lambda: jax_reward(A),
    "lifted linear": lambda: LiftedWithJacobian(rv.LinearReward(PAIR), np.tile(np.arange(S), 3), S),
    "lifted tabular": lambda: LiftedWithJacobian(rv.TabularReward(S), np.tile(np.arange(S), 3), S),
}


def assert_vjp_is_the_derivative(reward) -> None:
    rng = np.random.default_rng(1)
    theta, v = reward.init() + 0.3 * rng.normal(size=reward.n_params), rng.normal(size=reward.n_params)
    rows, columns = np.shape(reward.value(theta))
    cotangent = rng.normal(size=(rows, A))  # always per pair, also where the reward is one of states
    h = 1e-5
    slope = (reward.value(theta + h * v) - reward.value(theta - h * v)) / (2 * h)
    expected = float((cotangent * np.broadcast_to(slope, (rows, A))).sum())
    assert columns in (1, A)
    assert reward.vjp(theta, cotangent) @ v == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert reward.vjp(theta, cotangent).dtype == np.float64
    assert reward.value(theta).dtype == np.float64


@pytest.mark.parametrize("cast", [np.asarray, lambda x: sp.csr_array(x.reshape(-1, 2))])
@pytest.mark.parametrize("size", [1e-101, 5e-324, 1e101, 1e308])
def test_features_in_units_without_squares_are_refused(cast, size):
    features = np.stack([np.eye(3), size * np.eye(3)], axis=2)
    with pytest.raises(InvalidReward, match=r"largest entry is between 1e-100 and .*for 'far'. Measure it in other"):
        rv.LinearReward(cast(features), ["near", "far"], n_actions=None if cast is np.asarray else 3)
    features[0, 0, 1] = 1.0 if size < 1.0 else 0.0
    features[1:, :, 1] *= 1.0 if size < 1.0 else 0.0
    rv.LinearReward(features)  # entries may be as small as they like beside others


@pytest.mark.parametrize("name", REWARDS)
def test_the_vjp_is_the_derivative_of_the_value(name):
    assert_vjp_is_the_derivative(REWARDS[name]())


@pytest.mark.torch
@pytest.mark.parametrize("columns", [1, A])
def test_the_vjp_of_a_torch_module_is_the_derivative_of_its_value(columns):
    assert_vjp_is_the_derivative(torch_reward(columns))


@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_keeps_the_protocol(name):
    reward = REWARDS[name]()
    assert isinstance(reward, Reward)
    assert reward.init().shape == (reward.n_params,)
    assert len(reward.names) == reward.n_params == len(set(reward.names))


@pytest.mark.parametrize("name", [n for n in REWARDS if "linear" in n or "sparse" in n])
def test_the_jacobian_of_a_linear_reward_reproduces_its_value(name):
    reward = REWARDS[name]()
    theta = np.array([0.7, -1.3])
    np.testing.assert_allclose(np.asarray(reward.jacobian(theta) @ theta), reward.value(theta).reshape(-1), atol=1e-15)


@pytest.mark.parametrize(
    ("form", "dense"),
    [
        (sp.csr_array(STATE), STATE),
        (sp.coo_array(STATE), STATE),
        (sp.dok_array(STATE), STATE),
        (sp.csr_matrix(STATE), STATE),
        (sp.coo_array(PAIR), PAIR),
        (as_blocks(PAIR), PAIR),
    ],
    ids=["csr", "coo", "dok", "matrix", "3-d coo", "blocks"],
)
def test_sparse_features_equal_dense_ones(form, dense):
    sparse, full = rv.LinearReward(form), rv.LinearReward(dense)
    theta, cotangent = np.array([0.7, -1.3]), np.random.default_rng(2).normal(size=(S, A))
    np.testing.assert_allclose(sparse.value(theta), full.value(theta), atol=1e-15)
    np.testing.assert_allclose(sparse.vjp(theta, cotangent), full.vjp(theta, cotangent), atol=1e-14)


def test_stacked_sparse_pairs_need_the_number_of_actions():
    stacked = sp.csr_array(PAIR.reshape(S * A, K))
    theta = np.array([0.7, -1.3])
    np.testing.assert_allclose(rv.LinearReward(stacked, n_actions=A).value(theta), PAIR @ theta, atol=1e-15)
    assert rv.LinearReward(stacked).value(theta).shape == (S * A, 1)
    with pytest.raises(rv.errors.InvalidReward, match="n_actions"):
        rv.LinearReward(stacked, n_actions=4)


@pytest.mark.parametrize("make", [np.array, sp.csr_array, sp.csc_array, sp.coo_array])
def test_features_are_a_copy(make):
    features = make(STATE)
    reward = rv.LinearReward(features)
    before = reward.value(np.ones(K)).copy()
    (features if isinstance(features, np.ndarray) else features.data)[:] = 9.0
    np.testing.assert_array_equal(reward.value(np.ones(K)), before)


def test_a_tabular_reward_is_a_linear_one_with_one_hot_features():
    tabular, linear = rv.TabularReward(S), rv.LinearReward(np.eye(S))
    theta, cotangent = RNG.normal(size=S), RNG.normal(size=(S, A))
    np.testing.assert_array_equal(tabular.value(theta), linear.value(theta))
    np.testing.assert_allclose(tabular.vjp(theta, cotangent), linear.vjp(theta, cotangent), atol=1e-15)


def test_names_label_the_weights():
    assert tuple(rv.LinearReward(STATE, names=["fuel", "wear"]).names) == ("fuel", "wear")
    assert tuple(rv.LinearReward(STATE).names) == ("theta0", "theta1")
    for bad in (["fuel"], ["fuel", "fuel"], ["a", "b", "c"]):
        with pytest.raises(rv.errors.InvalidReward, match="names"):
            rv.LinearReward(STATE, names=bad)


# networks


def test_the_default_network_has_the_papers_layers_and_smooth_units():
    reward = rv.NeuralReward(np.ones((4, 8)))
    assert reward.n_params == 8 * 32 + 32 + 32 * 16 + 16 + 16 + 1
    assert repr(reward) == "NeuralReward(8-32-16-1, tanh, 833 weights, inputs standardised)"
    old = rv.NeuralReward(np.ones((4, 8)), activation="relu", standardize=False)
    assert repr(old) == "NeuralReward(8-32-16-1, relu, 833 weights)"


def test_the_network_is_the_composition_of_its_layers():
    theta = np.random.default_rng(0).normal(size=K * 3 + 7)
    W, b, w, c = np.split(theta, [K * 3, K * 3 + 3, K * 3 + 6])
    scaled = (STATE - STATE.mean(axis=0)) / STATE.std(axis=0)
    for inputs, standardize in ((scaled, True), (STATE, False)):
        reward = rv.NeuralReward(STATE, hidden=(3,), activation="tanh", standardize=standardize)
        expected = np.tanh(inputs @ W.reshape(K, 3) + b) @ w + c
        np.testing.assert_allclose(reward.value(theta)[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "tanh", "softplus", "sigmoid", "gelu", "silu", "elu"])
def test_activations_by_name(activation):
    reward = rv.NeuralReward(STATE, hidden=(4,), activation=activation)
    assert np.ptp(reward.value(reward.init())) > 0


def test_the_seed_decides_the_start():
    one, two = rv.NeuralReward(STATE, seed=1), rv.NeuralReward(STATE, seed=2)
    assert (one.init() != two.init()).any()
    np.testing.assert_array_equal(one.init(2), two.init())
    np.testing.assert_array_equal(one.init(), rv.NeuralReward(STATE, seed=1).init())


def test_the_hosts_jax_settings_are_never_changed():
    import jax

    before = jax.config.read("jax_enable_x64")
    reward = rv.NeuralReward(STATE, hidden=(4,), activation="tanh")
    mdp = random_mdp(S, A, seed=1)
    rv.CCP(reward, first_step="smoothed", max_iter=3).fit(mdp, draw(mdp, np.zeros((S, A)), 20))
    reward.vjp(reward.init(), reward.value(reward.init()))
    assert jax.config.read("jax_enable_x64") == before
    assert jax.numpy.ones(1).dtype == (np.float64 if before else np.float32)


def test_a_network_in_single_precision_code_around_it_stays_in_double():
    import jax

    with jax.enable_x64(False):
        reward = rv.NeuralReward(STATE + 1e-9, hidden=(4,), activation="tanh")
        assert reward.value(reward.init()).dtype == np.float64
        assert_vjp_is_the_derivative(reward)


@pytest.mark.torch
def test_the_users_module_is_left_as_it_is():
    import torch

    module = torch.nn.Linear(K, 1)
    module.train()
    reward = rv.TorchReward(module, STATE)
    reward.vjp(reward.init(), np.ones((S, A)))
    assert module.weight.dtype == torch.float32
    assert module.training
    assert module.weight.grad is None
    fitted = reward.module_at(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(fitted.weight.detach().numpy(), [[1.0, 2.0]])
    np.testing.assert_array_equal(fitted.bias.detach().numpy(), [3.0])


@pytest.mark.torch
def test_a_torch_module_and_a_linear_reward_have_the_same_maximum():
    import torch

    mdp = random_mdp(S, A, seed=1)
    demos = draw(mdp, STATE @ np.array([[1.0], [-0.5]]), 100)
    module = torch.nn.Linear(K, 1, bias=False)
    torch.nn.init.zeros_(module.weight)
    options = {"optimizer": "lbfgs", "tol": 1e-8}
    one = rv.CCP(rv.TorchReward(module, STATE), **options).fit(mdp, demos)
    two = rv.CCP(rv.LinearReward(STATE)).fit(mdp, demos)
    np.testing.assert_allclose(one.theta, two.theta, atol=1e-6)


# a user's own


class Convex:
    """r(s, a) = −e^θ x(s): a cost that is positive whatever θ is."""

    n_params, names = 1, ("log cost",)

    def __init__(self, x):
        self.x = x

    def init(self, seed=None):
        return np.zeros(1)

    def value(self, theta):
        return -np.exp(theta[0]) * self.x[:, None]

    def vjp(self, theta, cotangent):
        return np.array([-np.exp(theta[0]) * (cotangent.sum(axis=1) @ self.x)])


def test_a_users_own_reward_in_a_few_lines():
    mdp, x = corridor(6), np.arange(6.0)
    demos = draw(mdp, -0.4 * x[:, None], 300)
    linear = rv.NFXP(rv.LinearReward(x[:, None])).fit(mdp, demos)
    own = rv.NFXP(Convex(x), optimizer="lbfgs", tol=1e-9).fit(mdp, demos)
    assert own.converged
    np.testing.assert_allclose(-np.exp(own.theta), linear.theta, rtol=1e-6)
    assert own.llf == pytest.approx(linear.llf, rel=1e-10)
    assert list(own.params.index) == ["log cost"]


def test_a_users_own_reward_with_a_jacobian_may_use_newton():
    class Mine(Convex):
        linear = True

        def value(self, theta):
            return theta[0] * self.x[:, None]

        def vjp(self, theta, cotangent):
            return np.array([cotangent.sum(axis=1) @ self.x])

        def jacobian(self, theta):
            return self.x[:, None]

    mdp, x = corridor(6), np.arange(6.0)
    demos = draw(mdp, -0.4 * x[:, None], 300)
    fit = rv.NFXP(Mine(x), optimizer="newton").fit(mdp, demos)
    np.testing.assert_allclose(fit.theta, rv.NFXP(rv.LinearReward(x[:, None])).fit(mdp, demos).theta, rtol=1e-9)


# lifted


@pytest.mark.parametrize("name", ["linear states", "linear pairs", "sparse blocks", "tabular", "neural pairs"])
def test_a_lifted_reward_is_the_same_table_at_every_time(name):
    reward, unrolled = REWARDS[name](), random_mdp(S, A).unroll(2)
    lifted = lift_reward(reward, unrolled)
    theta = reward.init() + 0.5
    np.testing.assert_array_equal(lifted.value(theta), np.tile(reward.value(theta), (3, 1)))
    assert_vjp_is_the_derivative(lifted)


def test_a_reward_that_fits_is_not_lifted():
    reward, mdp = rv.TabularReward(S), random_mdp(S, A)
    assert lift_reward(reward, mdp) is reward
    own_times = rv.TabularReward(3 * S)
    assert lift_reward(own_times, mdp.unroll(2)) is own_times
    with pytest.raises(rv.errors.InvalidReward, match="shape"):
        lift_reward(rv.TabularReward(S + 1), mdp)


def test_lifting_does_not_change_which_optimiser_is_chosen():
    from revealed.objective import Case, Objective
    from revealed.optimize import choose_optimizer
    from revealed.pi_tilde import OwnPolicy

    def chosen(reward, mdp) -> str:
        case = Case(mdp, np.ones(mdp.feasible.shape), OwnPolicy(mdp))
        return choose_optimizer(Objective(lift_reward(reward, mdp), [case]))

    mdp = random_mdp(S, A)
    for reward in (rv.LinearReward(STATE), rv.TabularReward(S), rv.NeuralReward(STATE, hidden=(2,))):
        assert chosen(reward, mdp.unroll(2)) == chosen(reward, mdp)
    assert chosen(rv.TabularReward(S), mdp) == "lbfgs"
    assert chosen(rv.LinearReward(STATE), mdp) == "newton"
    assert chosen(rv.NeuralReward(STATE, hidden=(2,)), mdp) == "lbfgs"
    assert chosen(rv.NeuralReward(STATE, hidden=(2,), activation="relu"), mdp) == "adam"  # kinks mislead line searches
    assert chosen(Convex(STATE[:, 0]), mdp) == "lbfgs"


def test_features_of_states_that_choices_cannot_move_do_not_break_a_fit():
    mdp = shuffled(4)
    fit = rv.CCP(rv.LinearReward(np.arange(4.0)[:, None])).fit(mdp, rv.Demonstrations.from_counts(np.ones((4, 2))))
    assert fit.status.code == "unidentified"  # where one goes tomorrow does not depend on what one does


def test_a_frame_lends_its_columns_as_names_and_its_index_as_labels():
    import pandas as pd

    frame = pd.DataFrame({"wage": [1.0, 2.0, 3.0], "health": [0.0, 1.0, 0.0]})
    reward = rv.LinearReward(frame)
    assert reward.names == ("wage", "health")
    assert reward.state_labels is None  # 0, 1, 2, … is the order of the states and nothing else
    np.testing.assert_array_equal(reward.matrix, frame.to_numpy())
    assert rv.LinearReward(frame, names=["a", "b"]).names == ("a", "b")
    assert rv.LinearReward(frame.iloc[::-1]).state_labels == (2, 1, 0)
    assert rv.LinearReward(frame.set_index(pd.Index(["x", "y", "z"]))).state_labels == ("x", "y", "z")


@pytest.mark.parametrize(
    ("apply", "features", "told"),
    [
        (lambda p, x: x @ p, np.zeros((0, 2)), "`features`: expected at least one row of numbers; got an empty array"),
        (lambda p, x: (x @ p)[:0], np.ones((3, 2)), "`apply`: .* one that gives shape \\(0, 1\\)"),
        (lambda p, x: x[:, :0], np.ones((3, 2)), "`apply`: .* one that gives shape \\(3, 0\\)"),
    ],
)
def test_a_function_of_no_states_or_actions_is_refused(apply, features, told):
    with pytest.raises(rv.errors.InvalidReward, match=told):
        rv.JaxReward(apply, np.ones(2), features)


def test_features_of_another_shape_are_told_as_they_were_given():
    mdp = random_mdp(3)
    S, A = mdp.n_states, mdp.n_actions
    pairs = np.arange(S * A * 4.0).reshape(S, A, 4)
    flat = rf"features of shape \({S}, K\) or \({S}, {A}, K\).* got shape \({S * A}, 4\)"
    with pytest.raises(InvalidReward, match=flat + rf".*features\.reshape\({S}, {A}, 4\)"):
        lift_reward(rv.LinearReward(pairs.reshape(-1, 4)), mdp)
    assert lift_reward(rv.LinearReward(pairs.reshape(-1, 4).reshape(S, A, 4)), mdp)
    sparse = sp.csr_array(pairs.reshape(-1, 4))
    with pytest.raises(InvalidReward, match=flat + rf".*n_actions={A}\."):
        lift_reward(rv.LinearReward(sparse), mdp)
    assert lift_reward(rv.LinearReward(sparse, n_actions=A), mdp)
    with pytest.raises(InvalidReward, match=rf"got shape \({S + 1}, 1\)\."):
        lift_reward(rv.LinearReward(np.ones((S + 1, 1))), mdp)
    with pytest.raises(InvalidReward, match="expected a table of shape"):
        lift_reward(rv.TabularReward(S + 1), mdp)
