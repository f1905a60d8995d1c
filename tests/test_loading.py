"""A fit that was saved and loaded is the fit: the same parts bit for bit, the same numbers from all it can compute."""

import json
import zipfile
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import revealed as rv
from models import draw, random_mdp
from networks import random_trips, windy_trips
from revealed.archive import write_archive
from revealed.first_step import GoalLogit
from zoo import KINDS, problem

MDP = random_mdp(10, 3, seed=1, masked=True, terminal=1, initial=True)
FEATURES = np.random.default_rng(0).normal(size=(10, 3, 2))
REWARD = rv.LinearReward(FEATURES, names=["fuel", "wear"])
DEMOS = draw(MDP, FEATURES @ [1.0, -0.5], 60, 20)
METHODS = {"NFXP": rv.NFXP, "MCE-IRL": rv.MCEIRL, "CCP": rv.CCP, "NPL": rv.NPL}


def assert_same(one: Any, two: Any, where: str = "fit") -> None:
    """The same types, values and bits all the way down, but for what an object computed from the rest of itself."""
    assert type(one) is type(two), where
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (two.dtype, two.shape), where
        assert one.tobytes() == two.tobytes(), where
    elif sp.issparse(one):
        for part in ("data", "indices", "indptr", "shape"):
            assert_same(np.asarray(getattr(one, part)), np.asarray(getattr(two, part)), f"{where}.{part}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(two), where
        for i, (x, y) in enumerate(zip(one, two, strict=True)):
            assert_same(x, y, f"{where}[{i}]")
    elif isinstance(one, dict):
        assert list(one) == list(two), where
        for key in one:
            assert_same(one[key], two[key], f"{where}.{key}")
    elif hasattr(one, "__dict__") and type(one).__module__.startswith("revealed"):
        own = [name for name in vars(one) if not isinstance(getattr(type(one), name, None), cached_property)]
        for name in own:
            if name not in ("kept", "_table", "_pull", "unravel", "_recipe", "_features"):  # compiled, or not kept
                assert_same(getattr(one, name), getattr(two, name), f"{where}.{name}")
    else:
        assert one == two or (one != one and two != two), where


def assert_behaves_the_same(one: rv.Fit, two: rv.Fit, errors: bool = True) -> None:
    bands = "delta" if errors and not isinstance(one.reward_model, rv.TabularReward) else None
    pd.testing.assert_series_equal(one.params, two.params, check_exact=True)
    pd.testing.assert_frame_equal(one.history, two.history, check_exact=True)
    assert str(one.status) == str(two.status)
    assert_same(one.simulate(5, 6, seed=3).steps, two.simulate(5, 6, seed=3).steps)
    going = np.flatnonzero(~one.mdp.terminal)
    np.testing.assert_array_equal(one.predict(going, seed=1)[0], two.predict(going, seed=1)[0])
    more = one.mdp.replace(discount=0.8 * one.mdp.discount)
    changed = [fit.counterfactual(mdp=more, bands=bands).table() for fit in (one, two)]
    pd.testing.assert_frame_equal(changed[0], changed[1], check_exact=True)
    if errors:
        pd.testing.assert_series_equal(one.bse, two.bse, check_exact=True)
        pd.testing.assert_frame_equal(one.conf_int(0.1), two.conf_int(0.1), check_exact=True)
        pd.testing.assert_frame_equal(one.cov_params("cluster"), two.cov_params("cluster"), check_exact=True)
        assert str(one.summary()) == str(two.summary())


def assert_resamples_the_same(one: Any, two: Any) -> None:
    draws = [replace(fit, kept={}).bootstrap(reps=4, seed=2, jobs=1) for fit in (one, two)]
    assert_same(draws[0], draws[1])


def round_trip(fit: Any, folder: Path, reward: Any = None) -> Any:
    loaded = rv.load(fit.save(folder / "made" / "here"), reward)
    assert_same(fit, loaded)
    assert fit.save(folder / "one.zip").read_bytes() == loaded.save(folder / "two.zip").read_bytes()
    return loaded


@pytest.mark.parametrize("weighting", ["sample", "occupancy"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_and_weighting(tmp_path, method, weighting):
    options = {"updates": 20} if method == "NPL" else {}
    fit = METHODS[method](REWARD, weighting=weighting, first_step="smoothed", **options).fit(MDP, DEMOS)
    loaded = round_trip(fit, tmp_path)
    assert_behaves_the_same(fit, loaded, errors=weighting == "sample")
    assert_resamples_the_same(fit, loaded)
    assert repr(loaded) == repr(fit)
    assert repr(loaded.estimator) == repr(fit.estimator)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model(tmp_path, kind):
    animal = problem(kind)
    theta = animal.theta()
    policy = rv.solve(animal.mdp, animal.lift(animal.pair_features() @ theta)).policy
    demos = animal.simulate(policy, 40, 4)
    fit = rv.NFXP(rv.LinearReward(animal.pair_features()), start=theta).fit(animal.mdp, demos)
    loaded = round_trip(fit, tmp_path)
    assert_behaves_the_same(fit, loaded)
    assert_resamples_the_same(fit, loaded)
    assert loaded.mdp.horizon == fit.mdp.horizon
    with pytest.raises(ValueError, match="read-only"):
        loaded.mdp.transitions.matrix.data[0] = 0.5
    if kind != "unrolled":  # rows that terminal states had lost are back
        one, two = (mdp.replace(terminal=np.zeros(mdp.n_states, bool)) for mdp in (fit.mdp, loaded.mdp))
        assert_same(one, two)


REWARDS = {
    "states": lambda: rv.LinearReward(FEATURES[:, 0]),
    "sparse": lambda: rv.LinearReward(sp.csr_array(FEATURES.reshape(30, 2)), n_actions=3),
    "tabular": lambda: rv.TabularReward(10),
    "neural": lambda: rv.NeuralReward(FEATURES[:, 0], hidden=(3,), seed=4, activation="tanh"),
}


@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_of_ours(tmp_path, name):
    fit = rv.CCP(REWARDS[name](), l2=1e-2, max_iter=50).fit(MDP, DEMOS)
    loaded = round_trip(fit, tmp_path)
    assert_behaves_the_same(fit, loaded, errors=name != "neural")
    np.testing.assert_array_equal(loaded.reward_model.value(fit.theta), fit.reward_model.value(fit.theta))
    if name != "neural":
        assert_resamples_the_same(fit, loaded)


class Own:
    """A user's reward: the square of one weight."""

    def __init__(self, n: int = 1, name: str = "a", scale: float = 1.0) -> None:
        self.n_params, self.names, self.scale = n, [f"{name}{i}" for i in range(n)], scale

    def init(self, seed: int | None = None) -> Any:
        return np.full(self.n_params, 0.5)

    def value(self, theta: Any) -> Any:
        return self.scale * FEATURES[:, :, 0] * (theta**2).sum()

    def vjp(self, theta: Any, cotangent: Any) -> Any:
        return 2.0 * theta * self.scale * (cotangent * FEATURES[:, :, 0]).sum()


def test_a_reward_of_ones_own_is_passed_again(tmp_path):
    own = Own()
    fit = rv.NFXP(own, optimizer="lbfgs").fit(MDP, DEMOS)
    loaded = round_trip(fit, tmp_path, own)
    assert loaded.reward_model is own
    assert loaded.estimator.reward is own
    assert_behaves_the_same(fit, loaded)
    assert_resamples_the_same(fit, loaded)
    path = fit.save(tmp_path / "own.zip")
    wrong: list[tuple[Any, str]] = [
        (
            None,
            r"`reward` is required: the file cannot hold the Own of this fit\. Create the Own as",
        ),
        (Own(2), "expected 1 parameter, like the saved one; got 2"),
        (Own(name="b"), r"expected the names of the saved one \('a0'\); got 'b0' \(first at parameter 0\)"),
        (Own(scale=2.0), r"the saved table of rewards.*features the same"),
        (Own, "n_params, names, init, value, vjp"),
    ]
    for reward, message in wrong:
        with pytest.raises(rv.errors.InvalidInput, match=message) as told:
            rv.load(path, reward)
        assert not isinstance(told.value, rv.errors.UnreadableFit)


def test_a_reward_that_is_passed_takes_the_place_of_the_one_in_the_file(tmp_path):
    path = rv.CCP(REWARD).fit(MDP, DEMOS).save(tmp_path / "fit.zip")
    other = rv.LinearReward(FEATURES, names=["fuel", "wear"])
    assert rv.load(path, other).reward_model is other
    for wrong, message in (
        (rv.LinearReward(FEATURES), r"\('fuel'\)"),
        (rv.LinearReward(FEATURES[::-1], names=["fuel", "wear"]), "differs by"),
        (rv.LinearReward(FEATURES[1:], names=["fuel", "wear"]), "shape"),
    ):
        with pytest.raises(rv.errors.InvalidReward, match=message):
            rv.load(path, wrong)


def test_a_reward_in_jax_is_passed_again(tmp_path):
    def network(params: Any, x: Any) -> Any:
        return x @ params["slope"]

    reward = rv.JaxReward(network, {"slope": np.zeros(2)}, FEATURES)
    fit = rv.CCP(reward).fit(MDP, DEMOS)
    assert_behaves_the_same(fit, round_trip(fit, tmp_path, reward), errors=False)


@pytest.mark.torch
def test_a_module_of_torch_is_passed_again(tmp_path):
    import torch

    torch.manual_seed(0)
    reward = rv.TorchReward(torch.nn.Linear(2, 1), FEATURES)
    fit = rv.CCP(reward, max_iter=30).fit(MDP, DEMOS)
    assert_behaves_the_same(fit, round_trip(fit, tmp_path, reward), errors=False)
    with pytest.raises(rv.errors.InvalidInput, match="the TorchReward of this fit"):
        rv.load(tmp_path / "one.zip")


# what fits carry along


def bus_log() -> pd.DataFrame:
    """Four buses of four kinds of mileage, five years each."""
    frame = pd.DataFrame({"bus": np.repeat(["a", "b", "c", "d"], 60), "month": np.tile(np.arange(60), 4)})
    rng = np.random.default_rng(5)
    miles = np.zeros(240, dtype=int)
    keep = rng.random(240) < 0.7
    for i in range(1, 240):
        miles[i] = 0 if i % 60 == 0 or not keep[i - 1] else min(3, miles[i - 1] + rng.integers(2))
    frame["miles"] = np.array(["few", "more", "many", "most"])[miles]
    frame["what"] = np.where(keep, "keep", "replace")
    frame["odometer"] = miles + rng.random(240)
    return frame


ROLES: dict[str, Any] = {"id": "bus", "time": "month", "state": "miles", "action": "what"}
ESTIMATES: dict[str, dict[str, Any]] = {
    "frequencies": {"unseen": "stay"},
    "infeasible": {"unseen": "infeasible"},
    "smoothed": {"smoothing": 0.5},
    "kernel": {"coordinates": [0.0, 2.0, 1.0, 3.0], "bandwidth": (1.0, 0.5)},
}


@pytest.mark.parametrize("how", ESTIMATES)
def test_labels_and_transitions_that_were_estimated(tmp_path, how):
    orders: Any = {"states": ["few", "many", "more", "most"], "actions": ["keep", "replace"]}
    demos = rv.Demonstrations.from_frame(bus_log(), **ROLES, **orders)
    mdp = rv.MDP(rv.estimate_transitions(demos, **ESTIMATES[how]), discount=0.9)
    x = np.column_stack([np.arange(4.0), [0.0, 1.0, 1.0, 0.0]])
    fit = rv.NFXP(rv.LinearReward(np.stack([x, 0 * x + [0.0, 1.0]], axis=1), names=["x", "y"])).fit(mdp, demos)
    loaded = round_trip(fit, tmp_path)
    assert_behaves_the_same(fit, loaded)
    assert_resamples_the_same(fit, loaded)
    assert loaded.mdp.state_labels == ("few", "many", "more", "most")
    both = [fit.cov_params("cluster", joint=True) for fit in (fit, loaded)]
    pd.testing.assert_frame_equal(both[0], both[1], check_exact=True)
    assert "transitions" in loaded.bootstrap(reps=3, jobs=1).re_estimated


def test_bins_weights_and_features_with_labels(tmp_path):
    frame = bus_log().assign(often=np.tile([1.0, 0.5, 2.0], 80))
    bins: Any = rv.discretize(frame, "odometer", bins=3)
    demos = rv.Demonstrations.from_frame(frame, **ROLES | {"state": bins}, weight="often")
    mdp = rv.MDP(rv.estimate_transitions(demos, smoothing=1.0), discount=0.9)
    names = mdp.state_labels or tuple(range(3))
    far = pd.DataFrame({"miles": [9.0, 2.0, 1.0, 0.0], "old": [1.0, 1.0, 0.0, 0.0]}, index=["moon", *names[::-1]])
    table = pd.concat({"keep": far, "replace": 0.0 * far + [0.0, 2.0]}, names=["choice", "state"]).reset_index()
    fit = rv.NFXP(rv.LinearReward.from_frame(table, state="state", action="choice"), l2=1e-3).fit(mdp, demos)
    assert "moon" in str(fit.status)
    loaded = round_trip(fit, tmp_path)
    assert_same(loaded.demonstrations.bins, bins)
    assert_behaves_the_same(fit, loaded)
    assert_resamples_the_same(fit, loaded)
    again: Any = rv.load(tmp_path / "one.zip", rv.LinearReward.from_frame(table, state="state", action="choice"))
    assert_same(again.reward_model, fit.reward_model)  # brought into the model's order again


def test_a_panel_that_was_only_counted(tmp_path):
    demos = rv.Demonstrations.from_frame(bus_log(), **ROLES, keep_steps=False)
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="stay"), discount=0.9)
    fit = rv.CCP(rv.TabularReward(4), l2=0.1).fit(mdp, demos)
    loaded = round_trip(fit, tmp_path)
    assert loaded.demonstrations.steps is None
    assert_resamples_the_same(fit, loaded)


def test_outcomes_that_pairs_share(tmp_path):
    n = 6
    here = np.arange(n)
    landing = np.stack([np.minimum(np.stack([here, 0 * here], 1) + k, n - 1) for k in (0, 1)], axis=2)
    policy = np.tile([0.8, 0.2], (n, 1))
    T = rv.MDP(sp.csr_array(np.eye(n)[landing].mean(axis=2).reshape(2 * n, n)), discount=0.9)
    demos = rv.simulate(T, policy, 30, 10, seed=0)
    mdp = rv.MDP(rv.estimate_transitions(demos, landing=landing, names=["stay", "on"]), discount=0.9)
    X = np.stack([np.column_stack([-here, 0 * here]), np.column_stack([0 * here, 1 + 0 * here])], axis=1)
    for model in (mdp, mdp.unroll(12)):
        fit = rv.NFXP(rv.LinearReward(X)).fit(model, demos)
        loaded = round_trip(fit, tmp_path)
        assert_behaves_the_same(fit, loaded)
        assert_resamples_the_same(fit, loaded)


@pytest.mark.parametrize(
    "first_step",
    [
        rv.first_step.Kernel(bandwidth=2.0),
        rv.first_step.Kernel(distance=sp.csr_array(np.abs(np.subtract.outer(np.arange(10.0), np.arange(10.0))))),
        rv.first_step.Logit(features=FEATURES[:, 0], l2=0.1),
        rv.first_step.Smoothed(0.5),
        MDP.uniform_policy(),
        MDP.uniform_policy().tolist(),
    ],
    ids=["kernel", "distance", "logit", "smoothed", "array", "list"],
)
def test_first_steps_and_starts_come_back(tmp_path, first_step):
    fit = rv.NPL(REWARD, updates=2, first_step=first_step, start=[0.1, 0.2], tol=1e-8).fit(MDP, DEMOS)
    loaded = round_trip(fit, tmp_path)
    assert loaded.estimator.updates == 2
    assert loaded.options["start"] == [0.1, 0.2]
    assert_resamples_the_same(fit, loaded)


def test_the_chosen_errors_and_their_bootstrap_are_kept(tmp_path):
    fit = rv.CCP(REWARD).fit(MDP, DEMOS).with_errors("bootstrap", reps=6, seed=3, jobs=1)
    before = fit.conf_int()
    loaded = round_trip(fit, tmp_path)
    assert loaded.errors == ("bootstrap", False)
    assert_same(fit.drawn, loaded.kept["bootstrap", 6, 3])  # not drawn again
    pd.testing.assert_frame_equal(loaded.conf_int(), before, check_exact=True)


def test_agents_with_weights_and_visits_that_are_discounted(tmp_path):
    demos = DEMOS.reweighted(np.arange(60.0) % 3).discount_visits(0.9)
    fit = rv.NFXP(REWARD).fit(MDP, demos)
    assert_behaves_the_same(fit, round_trip(fit, tmp_path))


def test_ids_that_are_dates_and_pairs_come_back(tmp_path):
    ids = [(date(2020, 1, 1 + i % 30), i, None) for i in range(60)]
    frame = DEMOS.to_frame()
    pairs = [(part["state"].to_numpy(), part["action"].to_numpy()) for _, part in frame.groupby("id")]
    demos = rv.Demonstrations.from_trajectories(pairs, 10, 3, ids=ids[: len(pairs)])
    loaded = round_trip(rv.CCP(REWARD).fit(MDP, demos), tmp_path)
    assert loaded.demonstrations.ids == tuple(ids[: len(pairs)])


def test_plain_counts_and_a_fit_that_did_not_end_well(tmp_path):
    demos = rv.Demonstrations.from_counts(DEMOS.counts)
    fit = rv.NPL(REWARD, updates=1, max_iter=1, optimizer="lbfgs").fit(MDP, demos)
    loaded = round_trip(fit, tmp_path)
    assert loaded.status.code == "iteration_limit"
    assert not loaded.converged


def test_a_fit_without_its_estimator_stays_one(tmp_path):
    fit = replace(rv.CCP(REWARD).fit(MDP, DEMOS), estimator=None)
    loaded = round_trip(fit, tmp_path)
    with pytest.raises(rv.errors.InvalidOption, match="built by hand"):
        loaded.bootstrap(reps=2)


# where files are


def test_paths_are_found_as_save_names_them(tmp_path, monkeypatch):
    fit = rv.CCP(REWARD).fit(MDP, DEMOS)
    monkeypatch.chdir(tmp_path)
    assert fit.save("plain") == Path("plain.zip")
    assert rv.load("plain").llf == rv.load("plain.zip").llf == fit.llf
    Path("folder").mkdir()
    assert fit.save("folder") == Path("folder/fit.zip")
    assert rv.load("folder").llf == rv.load("folder/fit.zip").llf == fit.llf
    assert fit.save("a/b/c.fit") == Path("a/b/c.fit")
    assert rv.load(Path("a/b/c.fit")).llf == fit.llf


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none.zip", r"none\.zip, which does not exist\.$"),
        ("none", "none, which does not exist"),
        (".", r"\., a folder without fit\.zip\.$"),
        ("data.csv", r"data\.csv, which is not a zip file"),
    ],
)
def test_what_is_no_fit_is_refused(tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("id,time\n")
    with pytest.raises(rv.errors.UnreadableFit, match=message):
        rv.load(path)


@pytest.mark.parametrize("path", [None, 3, ["a"]])
def test_what_is_no_path_is_told(path):
    with pytest.raises(rv.errors.InvalidInput, match="`path`"):
        rv.load(path)
    with pytest.raises(rv.errors.InvalidInput, match="`path`"):
        rv.CCP(REWARD).fit(MDP, DEMOS).save(path)


# damage and contradictions

SMALL = rv.CCP(rv.LinearReward(np.eye(2)[:, :, None]), l2=0.1).fit(
    rv.MDP(np.full((2, 2, 2), 0.5)), rv.Demonstrations.from_trajectories([([0, 1, 0], [0, 1, 0]), ([1], [0])], 2, 2)
)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    return SMALL.save(tmp_path_factory.mktemp("small") / "fit.zip")


@settings(max_examples=150)
@given(place=st.floats(0.0, 1.0, exclude_max=True), bits=st.integers(1, 255))
def test_a_flipped_byte_gives_the_same_fit_or_is_refused(small, place, bits):
    whole = bytearray(small.read_bytes())
    whole[int(place * len(whole))] ^= bits
    other = small.with_name("flipped.zip")
    other.write_bytes(whole)
    with suppress(rv.errors.UnreadableFit):
        assert_same(SMALL, rv.load(other))


@given(place=st.floats(0.0, 1.0, exclude_max=True))
def test_a_file_that_was_cut_off_is_refused(small, place):
    other, whole = small.with_name("cut.zip"), small.read_bytes()
    other.write_bytes(whole[: int(place * len(whole))])
    with pytest.raises(rv.errors.UnreadableFit):
        rv.load(other)


def forged(small: Path, change: Any) -> Path:
    """The small fit with its document or arrays changed by `change(document, arrays)`, and sums that hold."""
    with zipfile.ZipFile(small) as old:
        document = json.loads(old.read("fit.json"))
        arrays = {n.removesuffix(".npy"): np.load(old.open(n)) for n in old.namelist() if n.endswith(".npy")}
    change(document["fit"], arrays)
    return write_archive(small.with_name("forged.zip"), document, arrays)


def put(*path: str, value: Any) -> Any:
    def change(document: Any, arrays: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, a: a.update(theta=np.zeros(2)), r"theta has shape \(2,\), not \(1,\)"),
        (lambda d, a: a.update(policy=np.zeros((2, 3))), r"policy has shape \(2, 3\), not \(2, 2\)"),
        (lambda d, a: a.update({"mdp/terminal": np.zeros(3, bool)}), r"mdp\.terminal has shape \(3,\), not \(2,\)"),
        (
            lambda d, a: a.update({"demonstrations/starts": np.zeros(5)}),
            r"`starts`: expected shape .*; got shape \(5,\)",
        ),
        (lambda d, a: a.update({"demonstrations/steps/time": np.zeros(5)}), r"steps\.time has shape \(5,\)"),
        (lambda d, a: a.update({"demonstrations/steps/state": np.full(4, 9)}), r"steps\.state holds indices beyond 2"),
        (lambda d, a: a.update({"mdp/_original/transitions/indices": np.full(8, 7)}), "are inconsistent"),
        (lambda d, a: a.update({"mdp/_original/transitions/indptr": np.zeros(2, int)}), "are inconsistent"),
        (lambda d, a: a.update({"reward_model/matrix": np.ones((4, 1))}), "whose reward does not fit its model"),
        (lambda d, a: a.update({"reward_model/matrix": np.ones((3, 1))}), "are inconsistent"),
        (lambda d, a: a.pop("value"), "are inconsistent: 'value'"),
        (put("value", value=None), "value has shape None"),
        (put("mdp", value=None), "model or demonstrations are missing"),
        (put("mdp", "fields", "state_labels", value={"$tuple": ["a"]}), r"state_labels has shape \(1,\), not \(2,\)"),
        (put("mdp", "$object", value="Popen"), "are inconsistent: 'Popen'"),
        (put("estimator", "class", value="Run"), "there is no estimator 'Run'"),
        (put("estimator", "arguments", "tol", value=-1.0), "`tol`: expected a positive number"),
        (put("status", value={"$unknown": 1}), r"are inconsistent: '\$unknown'"),
        (put("another", value=1), "another"),
        (put("mdp", "fields", "discount", value=-3.0), r"`discount`: expected a number in \[0, 1\]; got -3.0"),
        (put("mdp", "fields", "discount", value="abc"), "the discount is 'abc'"),
        (put("mdp", "fields", "discount", value=None), "the discount is None"),
        (
            put("mdp", "fields", "transitions", "fields", "n_states", value=4),
            r"mdp.transitions has shape \(4, 2\), not",
        ),
        (
            put("mdp", "fields", "transitions", "fields", "n_actions", value="2"),
            "CsrTransitions.n_actions has the wrong type: str",
        ),
        (put("mdp", "fields", "transitions", value=3), "are inconsistent"),
        (put("mdp", "fields", "base_state", value={"$array": "value"}), "the horizon does not match its base model"),
        (put("mdp", "fields", "action_labels", value={"$tuple": ["a", "a"]}), "expected distinct labels"),
        (
            lambda d, a: a.update({"mdp/_original/transitions/data": np.full(8, 0.7)}),
            "rows that sum to one within 1e-8",
        ),
        (
            lambda d, a: a.update({"mdp/feasible": np.zeros((2, 2), bool)}),
            "at least one feasible action in every non-terminal state",
        ),
        (lambda d, a: a.update({"mdp/feasible": np.eye(2, dtype=bool)}), "transitions of infeasible pairs"),
        (lambda d, a: a.update({"mdp/terminal": np.array([True, False])}), "masks contradict each other"),
        (
            put("demonstrations", "fields", "n_actions", value=3),
            r"`by_agent`: expected shape \(2, 6\); got shape \(2, 4\)",
        ),
        (
            lambda d, a: a.update({"demonstrations/by_agent/data": np.full(3, -1.0)}),
            "by_agent holds values that are not counts",
        ),
        (
            lambda d, a: a.update({"demonstrations/starts": np.full(2, np.nan)}),
            "starts holds values that are not counts",
        ),
        (lambda d, a: a.update(policy=np.full((2, 2), 0.6)), "policy holds values that are not probabilities"),
        (lambda d, a: a.update(policy=np.full((2, 2), 0.5)), "log_policy does not match the policy"),
        (put("llf", value=-1.0), "the log likelihood is -1, but these data under this policy give -"),
        (put("llf", value="abc"), "llf is 'abc'"),
        (put("iterations", value=-2), "iterations is -2"),
        (put("status", "fields", "code", value="fine"), "the status is 'fine'"),
        (lambda d, a: d["mdp"]["fields"].pop("base"), "the model lacks base"),
        (lambda d, a: d.pop("method"), "method"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(small, change, message):
    with pytest.raises(rv.errors.UnreadableFit, match=message):
        rv.load(forged(small, change))


# what follows from θ: edits whose checksums hold

MASKED = rv.NFXP(REWARD).fit(MDP, DEMOS)
STOPPED = rv.NFXP(REWARD, max_iter=1, optimizer="lbfgs").fit(MDP, DEMOS)
APART = rv.NFXP(rv.LinearReward(np.eye(2)[:, :, None]), max_iter=8).fit(
    rv.MDP(np.full((2, 2, 2), 0.5)), rv.Demonstrations.from_counts([[5, 0], [0, 5]])
)
BLIND = rv.NFXP(rv.LinearReward(np.dstack([FEATURES, FEATURES[:, :, :1]]))).fit(MDP, DEMOS)


def more(name: str, place: Any, by: float) -> Any:
    def change(document: Any, arrays: Any) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][place] += by

    return change


def moved(document: Any, arrays: Any) -> None:
    """T leads elsewhere from a pair that is offered, wherever it is written."""
    for name in ("mdp/transitions/matrix", "mdp/_original/transitions"):
        indices = arrays[f"{name}/indices"].copy()
        row = int(np.flatnonzero(MDP.feasible.reshape(-1))[3])
        first = slice(*arrays[f"{name}/indptr"][row : row + 2])
        indices[first] = np.sort((indices[first] + 1) % MDP.n_states)
        arrays[f"{name}/indices"] = indices


def uphill(document: Any, arrays: Any) -> None:
    """A stopped search that calls itself converged, with the numbers that would go with it."""
    document["status"]["fields"]["code"] = "converged"
    document["gradient_norm"] = 1e-12
    arrays["units"] = arrays["units"] * 1e12


def all_but_q(document: Any, arrays: Any) -> None:
    """Another reward and θ, which go together, with the behaviour of the old."""
    arrays["theta"] = 2.0 * arrays["theta"]
    arrays["reward"] = 2.0 * arrays["reward"]


PAIR = tuple(int(i) for i in np.argwhere(MDP.feasible)[4])
OFFERED = int(MDP._original["transitions"].indptr[np.flatnonzero(MDP.feasible.reshape(-1))[4]])  # in the data of T


@pytest.mark.parametrize(
    ("fit", "change", "message"),
    [
        (MASKED, more("q", PAIR, 0.1), "Bellman's equation"),
        (MASKED, more("value", PAIR[0], 0.1), "Bellman's equation"),
        (MASKED, more("q", ..., 1.0), "Bellman's equation"),
        (MASKED, more("reward", PAIR, 0.1), "whose reward does not fit its model"),
        (MASKED, more("theta", 0, 0.01), "whose reward does not fit its model"),
        (MASKED, all_but_q, "Bellman's equation"),
        (MASKED, moved, "Bellman's equation"),
        (MASKED, more("mdp/_original/transitions/data", OFFERED, 1e-4), "transitions are not those it was made of"),
        (MASKED, more("demonstrations/by_agent/data", 0, 1.0), "by_agent does not match the decisions"),
        (MASKED, more("demonstrations/transition_counts/data", 0, 1.0), "transition_counts does not match"),
        (MASKED, put("objective", value=-0.5), "the objective is -0.5, but -"),
        (MASKED, put("gradient_norm", value=0.5), "the gradient norm is 0.5, but"),
        (MASKED, put("own_policy", value=False), "its π̃ is that of another"),
        (MASKED, put("settled", value=True), "cannot be marked as settled"),
        (MASKED, put("options", "l2", value=0.5), "the options of its estimator differ"),
        (MASKED, put("options", "max_iter", value=5), "the options of its estimator differ"),
        (STOPPED, put("status", "fields", "code", value="converged"), "its estimate is not a maximum"),
        (STOPPED, put("gradient_norm", value=1e-12), "the gradient norm is 1e-12, but"),
        (STOPPED, uphill, "its estimate is not a maximum"),
        (APART, put("status", "fields", "code", value="converged"), "its estimate is separated|not a maximum"),
        (APART, put("status", "fields", "code", value="unidentified"), "weights diverge|not a maximum"),
        (BLIND, put("status", "fields", "code", value="converged"), "its estimate is unidentified"),
    ],
)
def test_what_follows_from_the_estimate_is_recomputed(tmp_path, fit, change, message):
    assert {id(STOPPED): "iteration_limit", id(APART): "separated", id(BLIND): "unidentified"}.get(
        id(fit), "converged"
    ) == fit.status.code
    with pytest.raises(rv.errors.UnreadableFit, match=message):
        rv.load(forged(fit.save(tmp_path / "fit.zip"), change))


def smoothed(document: Any, arrays: Any) -> None:
    document["options"]["first_step"] = document["estimator"]["arguments"]["first_step"] = "smoothed"


def test_pi_tilde_of_ccp_is_estimated_again_and_that_of_npl_must_have_settled(tmp_path):
    file = rv.CCP(REWARD, first_step="smoothed").fit(MDP, DEMOS).save(tmp_path / "fit.zip")
    other = rv.CCP(REWARD, first_step="frequency").fit(MDP, DEMOS).save(tmp_path / "other.zip")
    with zipfile.ZipFile(other) as archive:
        theirs = {n.removesuffix(".npy"): np.load(archive.open(n)) for n in archive.namelist() if n.endswith(".npy")}
    with pytest.raises(rv.errors.UnreadableFit, match=r"Bellman|pi_tilde"):
        rv.load(forged(file, lambda d, a: a.update(pi_tilde=theirs["pi_tilde"])))
    with pytest.raises(rv.errors.UnreadableFit, match="pi_tilde does not follow"):
        rv.load(forged(other, smoothed))
    fit = rv.NPL(REWARD, updates=2, first_step="smoothed").fit(MDP, DEMOS)
    assert fit.settled is False
    with pytest.raises(rv.errors.UnreadableFit, match="is marked as settled, but moves by"):
        rv.load(forged(fit.save(tmp_path / "npl.zip"), put("settled", value=True)))


def test_files_without_units_are_read_and_their_gradients_come_near(tmp_path):
    """As they were written before `units` was."""

    def older(gradient: float | None = None) -> Any:
        def change(document: Any, arrays: Any) -> None:
            del document["units"], arrays["units"]
            if gradient is not None:
                document["gradient_norm"] = gradient

        return change

    for fit in (MASKED, STOPPED):
        saved = fit.save(tmp_path / "fit.zip")
        loaded: Any = rv.load(forged(saved, older()))
        assert (loaded.units, loaded.gradient_norm) == (None, fit.gradient_norm)
    with pytest.raises(rv.errors.UnreadableFit, match=r"the gradient norm is 1e\+12, but"):
        rv.load(forged(saved, older(1e12)))


def test_rewards_where_nothing_is_chosen_do_not_count(tmp_path):
    """A table of the reward may be zero there, or what the reward would be."""
    table = np.where(MDP.feasible, MASKED.reward, 7.0)
    loaded: Any = rv.load(forged(MASKED.save(tmp_path / "fit.zip"), lambda d, a: a.update(reward=table)))
    np.testing.assert_array_equal(loaded.policy, MASKED.policy)


def test_an_archive_behind_a_fit_is_not_loaded_for_it(tmp_path):
    one, two = MASKED.save(tmp_path / "one.zip"), STOPPED.save(tmp_path / "two.zip")
    one.write_bytes(one.read_bytes() + two.read_bytes())
    with pytest.raises(rv.errors.UnreadableFit, match="damaged"):
        rv.load(one)


def test_of_very_large_models_only_the_product_with_t_is_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("revealed.recomputed.MOST_SOLVED", 5)
    file = STOPPED.save(tmp_path / "fit.zip")
    assert rv.load(forged(file, put("gradient_norm", value=1e-12))).gradient_norm == 1e-12
    with pytest.raises(rv.errors.UnreadableFit, match="Bellman's equation"):
        rv.load(forged(file, more("q", PAIR, 0.1)))


def test_nothing_is_wrong_with_a_forgery_that_changes_nothing(small):
    assert_same(SMALL, rv.load(forged(small, lambda d, a: None)))


# trips with goals

ROADS = random_trips(1, S=12, n=60)
WINDY = windy_trips(0.9, n=40)
GOAL_FITS = {
    "NFXP": lambda: rv.NFXP(ROADS.reward).fit(ROADS.mdp, ROADS.demos),
    "uncertain moves": lambda: rv.NFXP(WINDY.reward).fit(WINDY.mdp, WINDY.demos),
    "CCP": lambda: rv.CCP(ROADS.reward, first_step=GoalLogit(1e-3)).fit(ROADS.mdp, ROADS.demos),
    "settled NPL": lambda: rv.NPL(ROADS.reward, updates=40).fit(ROADS.mdp, ROADS.demos),
    "unsettled NPL": lambda: rv.NPL(ROADS.reward, updates=2).fit(ROADS.mdp, ROADS.demos),
    "tabular": lambda: rv.NFXP(rv.TabularReward(12), l2=0.1).fit(ROADS.mdp, ROADS.demos),
    "occupancy": lambda: rv.NFXP(ROADS.reward, weighting="occupancy").fit(ROADS.mdp, ROADS.demos),
}


@pytest.mark.parametrize("name", GOAL_FITS)
def test_fits_of_trips_with_goals_come_back(tmp_path, name):
    fit: Any = GOAL_FITS[name]()
    loaded = round_trip(fit, tmp_path)
    assert isinstance(loaded, rv.GoalFit)
    assert (loaded.stored is not None) == (name == "unsettled NPL")
    goal = fit.goals[0]
    np.testing.assert_array_equal(loaded.policy_for(goal), fit.policy_for(goal))
    np.testing.assert_array_equal(loaded.value_for(goal), fit.value_for(goal))
    pd.testing.assert_series_equal(loaded.log_likelihood_by_trip(), fit.log_likelihood_by_trip(), check_exact=True)
    assert_same(fit.simulate(5, seed=3).steps, loaded.simulate(5, seed=3).steps)
    assert (str(loaded.summary()), repr(loaded)) == (str(fit.summary()), repr(fit))
    if name in ("NFXP", "CCP"):
        assert_resamples_the_same(fit, loaded)


def test_link_sizes_come_back(tmp_path):
    city = rv.environments.city(100, seed=0)
    trips: Any = city.demonstrate(25, seed=1, destinations=4)
    for per in ("goal", "pair"):
        sizes = rv.link_size(city.network, city.reward, city.true_weights, trips, per=per)
        fit = rv.NFXP(rv.LinkSizeReward(city.reward, sizes), l2=0.01).fit(city.mdp, trips)
        loaded = round_trip(fit, tmp_path)
        ends = [city.network.links[at[0]] for at in (trips.destinations, trips.origins)]
        np.testing.assert_array_equal(loaded.policy_for(*ends), fit.policy_for(*ends))
        pd.testing.assert_series_equal(loaded.bse, fit.bse, check_exact=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("llf", value=-1.0), "the log likelihood is -1, but these data under this policy give -"),
        (lambda d, a: a.update(reward=np.zeros((3, 3))), r"reward has shape \(3, 3\), not \(12, 3\)"),
        (lambda d, a: d["stored"]["fields"]["log"].pop(), "4 policies are stored for 5 goals"),
        (put("stored", "fields", "log", value=[{"$array": "theta"}] * 5), r"stored\[0\] has shape \(3,\)"),
        (put("demonstrations", "fields", "steps", "fields", "goal", value=None), "the trips have no goals"),
    ],
)
def test_parts_of_a_fit_with_goals_that_contradict_each_other_are_refused(tmp_path, change, message):
    saved = GOAL_FITS["unsettled NPL"]().save(tmp_path / "fit.zip")
    with pytest.raises(rv.errors.UnreadableFit, match=message):
        rv.load(forged(saved, change))
