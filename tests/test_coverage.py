"""What thin data leave of π̂_E is told by every fit that rests on it: in its status, its summary, and beside others."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import revealed as rv
from revealed.coverage import COVERED, QUICK, Coverage, measure_coverage
from revealed.estimation import Options, Run
from shell import here
from trips import FLAGS, write

SAID = "π̂_E is poorly known"


@cache
def walks(n: int) -> tuple[Any, rv.Demonstrations]:
    """A world of 800 states of which two end, and some walks in it."""
    world = rv.environments.garnet(n_states=800, n_actions=4, seed=1)
    mdp = world.mdp.replace(terminal=np.arange(800) >= 798)
    X = np.random.default_rng(0).normal(size=(800, 3))
    truth = np.tile(X @ [1.0, 0.5, -0.5], (4, 1)).T
    policy = rv.solve(mdp, truth).policy
    return (mdp, X, truth), rv.simulate(mdp, policy, n, 20, seed=0)


def fit(n: int, method: Any = rv.CCP, **options: Any) -> rv.Fit:
    (mdp, X, _), demos = walks(n)
    return method(rv.LinearReward(X, names=["a", "b", "c"]), **options).fit(mdp, demos)


def test_a_fit_on_thin_data_says_what_it_does_not_know():
    """It converges, and it is far from the truth: the status has to carry what the advisor knows."""
    found = fit(22)
    (mdp, X, truth), demos = walks(22)
    lost = [rv.metrics.stochastic_evd(mdp, truth, policy) for policy in (found.policy, mdp.uniform_policy())]
    assert lost[0] > 0.3 * lost[1]
    unseen = int(((demos.counts.sum(axis=1) == 0.0) & ~mdp.terminal).sum())
    assert unseen > 400
    assert found.status.code == "converged"  # which is how the search ended, and no praise
    (note,) = found.status.notes
    assert note.startswith(f"{SAID}: {unseen} of 798 states with a choice were never seen, so π̂_E is uniform there; ")
    assert "compare with NFXP" in note
    coverage = measure_coverage(Run("CCP", rv.LinearReward(X), Options(), mdp, demos))
    assert coverage.share < COVERED
    assert f"{coverage.share:.0%} of the expert's time" in note
    assert SAID in str(found.status)
    assert SAID in str(found.summary())
    assert SAID in found.to_html()
    advice = rv.advise(mdp, demos, rv.LinearReward(X), reps=2, budget=0.0, progress=False)
    told = {one.quantity: one.value for one in advice.quantities}
    assert any(abs(float(value) - coverage.share) < 1e-9 for value in told.values() if isinstance(value, float))


def test_side_by_side_the_note_has_a_name():
    text = " ".join(str(rv.compare_fits([fit(22, rv.NFXP), fit(22)])).split())
    assert f"CCP: {SAID}" in text
    assert f"NFXP: {SAID}" not in text


@pytest.mark.parametrize(
    ("n", "method", "options", "said"),
    [
        (22, rv.NFXP, {}, False),
        (22, rv.NFXP, {"weighting": "occupancy"}, True),
        (22, rv.CCP, {"first_step": "smoothed"}, True),
        (22, rv.CCP, {"first_step": rv.first_step.Smoothed(0.5)}, True),
        (22, rv.CCP, {"first_step": "logit"}, False),
        (22, rv.NPL, {"updates": 1}, True),
        (22, rv.NPL, {"updates": 60}, False),
        (20_000, rv.CCP, {}, False),
    ],
)
def test_it_is_said_of_fits_that_rest_on_frequencies(n, method, options, said):
    found = fit(n, method, **options)
    assert (found.settled is not False) or said
    assert any(SAID in note for note in found.status.notes) is said


def test_a_given_policy_is_nobodys_frequencies():
    (mdp, *_), _ = walks(22)
    assert not fit(22, first_step=mdp.uniform_policy()).status.notes


def test_refits_say_nothing():
    found = fit(22)
    again = found.estimator.refit(found.mdp, found.demonstrations, found.theta)
    assert not again.status.notes


def test_a_large_model_is_judged_by_its_visits():
    """The solve that weighs states by occupancy is left out where it would be felt."""
    n = QUICK + 1
    T = np.zeros((n, 2), dtype=int)
    T[:, 1] = 1
    import scipy.sparse as sp

    rows = sp.csr_array((np.ones(2 * n), (np.arange(2 * n), T.reshape(-1))), shape=(2 * n, n))
    demos = rv.Demonstrations.from_trajectories([([0, 0, 1, 0], [0, 1, 0, 1])] * 10, n, 2)
    run = Run("CCP", rv.TabularReward(n), Options(), rv.MDP(rows, 0.9), demos)
    found = measure_coverage(run, quick=True)
    assert found == Coverage(1.0, 1.0, n - 2, n, "visits")
    assert measure_coverage(run).by == "estimated occupancy"


def test_the_command_line_says_it_too(tmp_path):
    write(tmp_path)
    (tmp_path / "few.csv").write_text("".join((tmp_path / "trips.csv").read_text().splitlines(keepends=True)[:40]))
    words = (tmp_path / "few.csv", *FLAGS, "--features", tmp_path / "stations.csv", "--columns", "shops,green")
    done = here("compare", *words, "--transitions", tmp_path / "moves.csv", "--discount", "0.9", "--l2", "0.01")
    assert "CCP: π̂_E is poorly known" in " ".join(done.stdout.split()), done.stdout + done.stderr
    assert "--first-step logit" in " ".join(done.stdout.split())
