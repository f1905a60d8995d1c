"""Inputs of networks have units of their own, and the penalty of a network is told."""

import re

import numpy as np
import pytest

import revealed as rv
from models import corridor, draw, random_mdp
from revealed import saving
from revealed.rewards.units import Standard, unit_notes

S, A = 8, 2
RNG = np.random.default_rng(3)
X = RNG.normal(size=(S, 2))
PAIRS = RNG.normal(size=(S, A, 2))
LINE = np.arange(S, dtype=float)[:, None]


def fitted(features, method=rv.NFXP, **options):
    mdp = corridor(S)
    demos = draw(mdp, -0.3 * (LINE - 2.0) ** 2, 300)
    return method(rv.NeuralReward(features, hidden=(4,)), **options).fit(mdp, demos)


@pytest.mark.parametrize("features", [X, PAIRS], ids=["states", "pairs"])
@pytest.mark.parametrize(("unit", "shift"), [(1e-12, 3e-12), (1e12, -5e13), (1e-4, 0.0), (1e300, 0.0)])
def test_a_network_sees_neither_units_nor_offsets(features, unit, shift):
    one, other = rv.NeuralReward(features), rv.NeuralReward(unit * features + shift)
    theta = RNG.normal(size=one.n_params)
    np.testing.assert_allclose(other.value(theta), one.value(theta), rtol=1e-9, atol=1e-9)
    assert one.inputs.std(axis=tuple(range(features.ndim - 1))) == pytest.approx(1.0)


@pytest.mark.parametrize("unit", [1e-12, 1e-4, 1e12])
@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP])
def test_fits_in_other_units_are_the_same(unit, method):
    one, other = fitted(LINE, method, tol=1e-6), fitted(unit * (LINE + 7.0), method, tol=1e-6)
    assert one.converged
    assert other.converged
    assert one.iterations > 20  # it does not end where it began
    np.testing.assert_allclose(other.policy, one.policy, atol=1e-5)
    assert other.llf == pytest.approx(one.llf, rel=1e-6)


def test_a_constant_feature_is_harmless():
    for constant in (0.0, 1.0, 1e12, 0.1 + 1e-17):
        reward = rv.NeuralReward(np.column_stack([X, np.full(S, constant)]))
        np.testing.assert_allclose(reward.inputs[:, 2], 0.0, atol=1e-15)
        assert np.isfinite(reward.value(reward.init())).all()


def test_the_same_network_on_other_features_keeps_its_scale():
    reward = rv.NeuralReward(X)
    elsewhere = reward.with_features(2.0 * X[:3] + 1.0)
    theta = reward.init(7)
    np.testing.assert_allclose(reward.with_features(X).value(theta), reward.value(theta), rtol=1e-14)
    np.testing.assert_allclose(elsewhere.inputs, (2.0 * X[:3] + 1.0 - X.mean(axis=0)) / X.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose([reward.center, reward.scale], [X.mean(axis=0), X.std(axis=0)], rtol=1e-12)
    with pytest.raises(rv.errors.InvalidReward, match="`features`: expected 2 columns, as the network takes; got 3"):
        reward.with_features(np.ones((4, 3)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("yes", "expected True, False, or two rows of 2 finite numbers; got 'yes'"),
        (([0.0], [1.0]), "expected True, False, or two rows of 2 finite numbers"),
        (([0.0, 0.0], [1.0, 0.0]), r"expected scales above zero; got 0 \(first at feature 1\)"),
    ],
)
def test_what_is_no_standard_is_named(given, message):
    with pytest.raises(rv.errors.InvalidReward, match=message):
        rv.NeuralReward(X, standardize=given)


def test_the_scale_travels_with_a_saved_network(tmp_path):
    fit = fitted(1e6 * LINE, max_iter=3)
    moved = rv.NFXP(fit.reward_model.with_features(1e6 * LINE + 5.0), max_iter=3).fit(fit.mdp, fit.demonstrations)
    for one in (fit, moved):
        again = rv.load(one.save(tmp_path / "fit.zip"))
        np.testing.assert_array_equal(again.reward_model.value(one.theta), one.reward_model.value(one.theta))
        assert "inputs standardised" in repr(again.reward_model)


def test_a_network_saved_before_inputs_were_standardised_takes_them_as_they_are(tmp_path, monkeypatch):
    mdp = corridor(S)
    reward = rv.NeuralReward(LINE, hidden=(4,), activation="relu", standardize=False)
    fit = rv.CCP(reward, max_iter=3).fit(mdp, draw(mdp, -LINE, 100))
    where, arguments = saving.MADE_AGAIN["NeuralReward"]
    monkeypatch.setitem(saving.MADE_AGAIN, "NeuralReward", (where, arguments[:4]))  # as it was
    again = rv.load(fit.save(tmp_path / "fit.zip"))
    assert again.reward_model.standardize is False
    np.testing.assert_array_equal(again.reward_model.value(again.theta), reward.value(fit.theta))


# what a fit says


def test_a_fit_tells_that_inputs_were_standardised_and_what_its_penalty_is():
    fit = fitted(LINE, max_iter=3)
    n = fit.demonstrations.n_decisions
    assert fit.options["l2"] == pytest.approx(min(4.0 / n, 0.01))
    assert any(note.startswith("inputs standardised") for note in fit.status.notes)
    assert any("the penalty is the network's default" in note for note in fit.status.notes)
    assert "Penalty l2" in str(fit.summary())
    for l2 in (0.0, 1e-3):
        told = fitted(LINE, max_iter=3, l2=l2)
        assert told.options["l2"] == l2
        assert not any("the network's default" in note for note in told.status.notes)


def test_other_rewards_have_no_penalty_unless_one_is_set():
    mdp = corridor(S)
    demos = draw(mdp, -LINE, 100)
    own = rv.JaxReward(lambda p, x: x @ p, np.zeros(1), LINE)
    for reward in (rv.LinearReward(LINE), rv.TabularReward(S), own):
        fit = rv.CCP(reward, max_iter=2).fit(mdp, demos)
        assert fit.options["l2"] == 0.0
        assert not any("penalty" in note for note in fit.status.notes)


def test_the_penalty_is_a_prior_of_the_same_spread_for_any_number_of_decisions():
    reward = rv.NeuralReward(X)
    assert reward.usual_l2(4_000) == pytest.approx(1e-3)
    assert reward.usual_l2(4_000_000) == pytest.approx(1e-6)
    assert reward.usual_l2(10) == 0.01


def test_a_network_of_defaults_comes_to_its_end():
    fit = fitted(LINE)
    assert fit.status.code == "converged"
    truth = rv.solve(corridor(S), -0.3 * (LINE - 2.0) ** 2).policy
    np.testing.assert_allclose(fit.policy, truth, atol=0.08)


def test_units_far_from_one_are_told_with_the_remedy():
    mdp = corridor(S)
    demos = draw(mdp, -LINE, 100)
    for unit in (1e5, 1e-5):
        reward = rv.JaxReward(
            lambda p, x: x["far"] * p[0] + x["near"][:, 1] * p[1], np.zeros(2), {"far": LINE[:, 0] * unit, "near": X}
        )
        notes = rv.CCP(reward, max_iter=1).fit(mdp, demos).status.notes
        assert any("features['far'] " in note and "standardize=True" in note for note in notes)
        scaled = rv.JaxReward(reward._recipe[0], np.zeros(2), reward._recipe[2], standardize=True)
        notes = rv.CCP(scaled, max_iter=1).fit(mdp, demos).status.notes
        assert not any("far from unit scale" in note for note in notes)
        x = LINE[:, 0]
        np.testing.assert_allclose(scaled.value(np.array([2.0, 0.0]))[:, 0], 2.0 * (x - x.mean()) / x.std(), rtol=1e-12)
        inputs = scaled.standardized(reward._recipe[2])
        np.testing.assert_allclose(inputs["near"], (X - X.mean(axis=0)) / X.std(axis=0), rtol=1e-12)


def test_units_near_one_are_not_worth_a_word():
    assert unit_notes({"features": np.column_stack([X, np.full(S, 1e-5)])}) == ()  # a small constant is no trouble
    assert "column 1," in unit_notes({"features": np.column_stack([X[:, 0], 1e4 * X[:, 1]])})[0]
    assert Standard.of(X).scale == pytest.approx(X.std(axis=0))


# PyTorch


def module(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


@pytest.mark.torch
def test_a_torch_module_with_standardised_inputs_takes_raw_features_elsewhere():
    import torch

    raw = 1e6 * X + 5.0
    reward = rv.TorchReward(module(torch), raw, standardize=True)
    theta = RNG.normal(size=reward.n_params)
    here = reward.module_at(theta)(torch.tensor(raw)).detach().numpy()
    np.testing.assert_allclose(here, reward.value(theta), rtol=1e-12)
    np.testing.assert_allclose(rv.TorchReward(module(torch), X, standardize=True).value(theta), here, rtol=1e-8)
    assert "inputs standardised" in repr(reward)
    assert reward.notes[0].startswith("inputs standardised")
    plain = rv.TorchReward(module(torch), raw)
    assert "standardize=True" in plain.notes[0]
    np.testing.assert_allclose(plain.module_at(theta)(torch.tensor(raw)).detach().numpy(), plain.value(theta))


@pytest.mark.torch
def test_torch_has_one_thread_while_we_call_it_and_its_own_afterwards():
    import torch

    seen: list[int] = []

    class Watched(torch.nn.Module):
        fails = False

        def __init__(self):
            super().__init__()
            self.inner = module(torch)

        def forward(self, x):
            seen.append(torch.get_num_threads())
            if Watched.fails:
                raise RuntimeError("no")
            return self.inner(x)

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        reward = rv.TorchReward(Watched(), X)
        reward.vjp(reward.init(), reward.value(reward.init()))
        assert set(seen) == {1}
        assert torch.get_num_threads() == 3
        Watched.fails = True
        for act in (lambda: reward.value(reward.init()), lambda: reward.vjp(reward.init(), np.ones((S, A)))):
            with pytest.raises(RuntimeError):
                act()
            assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_a_device_has_the_standardised_inputs():
    mdp = random_mdp(S, A, seed=2)
    reward = rv.NeuralReward(1e5 * PAIRS - 3.0, hidden=(4,))
    demos = draw(mdp, np.zeros((S, A)), 50)
    one, other = (rv.CCP(reward, first_step="smoothed", max_iter=4).fit(m, demos) for m in (mdp, mdp.to("cpu")))
    np.testing.assert_allclose(other.theta, one.theta, atol=1e-8)


# where defaults are not meant


def test_adam_at_its_limit_names_the_alternative():
    mdp = corridor(S)
    demos = draw(mdp, -LINE, 100)
    kinked = rv.CCP(rv.NeuralReward(LINE, hidden=(4,), activation="relu"), max_iter=2).fit(mdp, demos)
    chosen = rv.CCP(rv.NeuralReward(LINE, hidden=(4,)), max_iter=2, optimizer="adam").fit(mdp, demos)
    smooth = rv.CCP(rv.NeuralReward(LINE, hidden=(4,)), max_iter=2).fit(mdp, demos)
    assert [fit.status.code for fit in (kinked, chosen, smooth)] == ["iteration_limit"] * 3
    assert ["Adam is slow" in fit.status.message for fit in (kinked, chosen, smooth)] == [True, True, False]
    for fit in (kinked, chosen, smooth):  # never a smaller penalty than there is
        l2 = re.search(r"l2=([0-9.e-]+)[ .]", fit.status.message + " ")
        assert l2 is not None
        assert float(l2[1].rstrip(".")) > fit.options["l2"] > 0.0
    assert "set both l2=0.02 and tol=0.01" in kinked.status.message
    plain = rv.CCP(rv.LinearReward(LINE), max_iter=1, optimizer="lbfgs").fit(mdp, demos)
    assert "or set l2=1e-4." in plain.status.message


def test_the_papers_experiments_keep_the_papers_network():
    from revealed.experiments.objectworld import QUICK, network

    reward = network(QUICK, 16, 0)
    assert (reward.activation, reward.hidden, reward.standardize) == ("relu", (32, 16), False)
    rng = np.random.default_rng(0)
    assert (reward.init()[: 8 * 32] == rng.normal(0.0, np.sqrt(2.0 / 8), (8, 32)).reshape(-1)).all()  # He's start


def test_the_command_line_offers_the_activations_of_a_network():
    from revealed.description import ACTIVATIONS as offered
    from revealed.rewards.neural import ACTIVATIONS

    assert offered == ACTIVATIONS
    given = {"panel": "p.csv", "id": "a", "time": "t", "state": "s", "action": "d", "discount": 0.9, "bins": "s=3"}
    with pytest.raises(rv.errors.InvalidOption, match='`activation` requires `reward="neural"`'):
        rv.Recipe(**given, activation="relu")
    assert rv.Recipe(**given, reward="neural", activation="relu").activation == "relu"
    assert rv.Recipe(**given).options["l2"] is None
