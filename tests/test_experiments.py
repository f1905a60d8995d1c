"""The demonstration says what its numbers say, and results on disk are whole or not there."""

from dataclasses import replace

import numpy as np
import pytest

from revealed.errors import RevealedError
from revealed.experiments import demonstration, output
from revealed.experiments.demonstration import Config, MapWorld, centred, draw, estimate

QUICK = Config(trajectories=60, length=30, network_tol=10.0)  # a network that is content at once


@pytest.fixture(scope="module")
def outcome():
    return estimate(MapWorld.build(QUICK))


def test_the_expert_is_soft_optimal_for_the_true_weights():
    world = MapWorld.build(QUICK)
    np.testing.assert_allclose(world.true_reward, (world.features @ QUICK.weights)[:, None].repeat(5, axis=1))
    assert world.demos.n_decisions == QUICK.trajectories * QUICK.length


def test_no_combination_of_the_features_is_constant():
    X = MapWorld.build(QUICK).features
    assert np.linalg.matrix_rank(np.column_stack([np.ones(len(X)), X])) == 5


def test_the_network_sees_distances():
    world = MapWorld.build(QUICK)
    for k in range(3):
        np.testing.assert_array_equal(world.distances[:, k] == 0.0, world.features[:, k] == 1.0)


def test_the_same_seed_gives_the_same_walks():
    a, b, c = (MapWorld.build(replace(QUICK, seed=seed)).demos.counts for seed in (3, 3, 4))
    assert (a == b).all()
    assert (a != c).any()


def test_centred_rewards_differ_from_rewards_by_a_constant():
    reward = np.array([[1.0, 1.0], [4.0, 4.0]])
    np.testing.assert_array_equal(centred(reward), [-1.5, 1.5])


def test_verdicts_follow_from_the_fits(outcome):
    methods = outcome.methods
    gap = np.abs(methods["CCP"].theta - methods["NFXP"].theta).max()
    text = " ".join(outcome.verdicts)
    assert "NFXP and MCE-IRL agree to" in text
    assert f"CCP differs from NFXP by {gap:.2g}" in text
    assert f"NPL settled after {methods['NPL'].updates} updates" in text


def test_verdicts_do_not_claim_what_did_not_happen(outcome):
    elsewhere = replace(outcome.methods["MCE-IRL"], theta=outcome.methods["MCE-IRL"].theta + 0.25)
    early = demonstration.NPL(outcome.methods["NPL"].reward_model, updates=2).fit(
        outcome.world.mdp, outcome.world.demos
    )
    other = replace(outcome, methods=outcome.methods | {"MCE-IRL": elsewhere, "NPL": early})
    text = " ".join(other.verdicts)
    assert "NFXP and MCE-IRL differ by 2.5e-01" in text
    assert "NPL had not settled after 2 updates" in text
    assert "iteration_limit" in text  # the fit that did not converge says so, with its remedy
    assert draw(other).axes[1].get_title() == "NFXP"


def test_panels_share_the_colours_of_the_truth(outcome):
    figure = draw(outcome)
    panels = [ax for ax in figure.axes if ax.images]
    low, high = centred(outcome.world.true_reward).min(), centred(outcome.world.true_reward).max()
    assert [panel.images[0].get_clim() for panel in panels] == [(low, high)] * 6
    assert all(len(panel.collections) == 1 and panel.get_title() for panel in panels)
    assert "less its mean" in figure.axes[-1].get_xlabel()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "estimates.csv"
    output.write_atomically(path, b"old")
    output.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output.os, "replace", fails)
    with pytest.raises(RevealedError, match="No space left"):
        output.write_atomically(path, b"newer")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("estimates.csv", b"new")]


def test_a_folder_that_cannot_be_made_is_found_out_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RevealedError, match="file"):
        demonstration.run(QUICK, tmp_path / "file" / "below", quiet=True)
