"""What a description makes is what the library's own calls make, number for number."""

import numpy as np
import pandas as pd
import pytest

import revealed as rv
import trips as files
from revealed.errors import InvalidInput, InvalidOption, RevealedError
from revealed.recipe import Recipe, as_labels

pytestmark = pytest.mark.usefixtures("folder")
FEATURES = ["shops", "green"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return files.write(tmp_path_factory.mktemp("data"))


@pytest.fixture
def folder(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def trips_recipe(**options) -> Recipe:
    options = {"features": "stations.csv", "columns": FEATURES, "discount": 0.9, **options}
    return Recipe(**{"panel": "trips.csv", **files.NAMES, **options})


def by_hand(unseen: str = "infeasible", **options) -> tuple[rv.MDP, rv.Demonstrations]:
    demos = rv.Demonstrations.from_frame("trips.csv", **files.NAMES)
    return rv.MDP(rv.estimate_transitions(demos, unseen=unseen, **options), discount=0.9), demos


def linear() -> rv.LinearReward:
    return rv.LinearReward.from_frame("stations.csv", state="station", columns=FEATURES)


@pytest.mark.parametrize(
    ("method", "estimator"),
    [
        ("nfxp", "NFXP"),
        ("mce-irl", "MCEIRL"),
        ("ccp", "CCP"),
        ("npl", "NPL"),
    ],
)
def test_the_methods_are_the_library_s(method, estimator):
    mdp, demos = by_hand()
    mine, own = trips_recipe(method=method).fit(), getattr(rv, estimator)(linear()).fit(mdp, demos)
    assert np.array_equal(mine.theta, own.theta)
    assert mine.method == own.method
    assert list(mine.params.index) == FEATURES


def test_options_reach_the_estimator():
    options = {"l2": 0.1, "tol": 1e-3, "max_iter": 7, "weighting": "occupancy", "first_step": "smoothed"}
    fit = trips_recipe(method="npl", updates=2, optimizer="lbfgs", **options).fit()
    assert {name: fit.options[name] for name in options} == options
    assert (fit.options["optimizer"], fit.estimator.updates) == ("lbfgs", 2)


def test_nfxp_may_start_from_ccp_and_the_others_do_not_mind():
    assert trips_recipe(start="ccp").estimator().options.start == "ccp"
    assert trips_recipe(start="ccp").estimator("npl").options.start is None


@pytest.mark.parametrize("kind", ["opg", "robust", "cluster"])
def test_errors_are_of_the_kind_asked_for(kind):
    mdp, demos = by_hand()
    own = rv.NFXP(linear()).fit(mdp, demos).with_errors(kind)
    assert np.array_equal(trips_recipe(errors=kind).fit().bse, own.bse)


def test_a_bootstrap_has_its_replications_and_seed():
    fit = trips_recipe(errors="bootstrap", reps=5, seed=3).fit()
    assert fit.chosen == ("bootstrap", False, {"reps": 5, "seed": 3})


def test_joint_errors_count_the_noise_in_transitions():
    fit = trips_recipe(joint=True).fit()
    assert fit.errors == ("hessian", True)


def test_transitions_as_a_table_are_those_estimated():
    estimated = trips_recipe().fit()
    table = estimated.mdp.to_frame().set_axis(["station", "choice", "next_station", "probability"], axis=1)
    table.sample(frac=1.0, random_state=0).to_csv("estimated.csv", index=False)
    given = trips_recipe(transitions="estimated.csv").fit()
    assert given.mdp.estimated is None
    assert np.allclose(given.theta, estimated.theta, rtol=0, atol=1e-9)


def test_a_table_may_call_its_columns_as_the_panel_does():
    moves = pd.read_csv("moves.csv").rename(columns={"next_station": "to", "probability": "p"})
    moves.to_csv("renamed.csv", index=False)
    panel = pd.read_csv("trips.csv")
    panel["to"] = panel.groupby("rider")["station"].shift(-1)
    panel.to_csv("moved.csv", index=False)
    one = trips_recipe(panel="moved.csv", transitions="renamed.csv", next_state="to", probability="p").fit()
    other = trips_recipe(transitions="moves.csv").fit()
    assert np.array_equal(one.theta, other.theta)


@pytest.mark.parametrize("smoothing", [0.5, 3.0])
def test_smoothing_is_the_library_s(smoothing):
    own, _ = by_hand(smoothing=smoothing)
    mine = trips_recipe(smoothing=smoothing).mdp
    assert np.array_equal(mine.transitions.matrix.toarray(), own.transitions.matrix.toarray())


def test_a_kernel_takes_coordinates_from_the_features_file():
    places = files.stations()[["x", "y"]].to_numpy(dtype=float)
    own, _ = by_hand(coordinates=places, bandwidth=0.8)
    mine = trips_recipe(kernel=0.8, coordinates="x,y")
    assert mine.places is not None
    assert np.array_equal(mine.places, places)
    assert np.array_equal(mine.mdp.transitions.matrix.toarray(), own.transitions.matrix.toarray())


def test_coordinates_are_no_features_unless_they_are_named():
    assert trips_recipe(columns=(), coordinates="x,y").reward_model.names == ("shops", "green")
    assert trips_recipe(columns=()).reward_model.names == ("shops", "green", "x", "y")
    assert trips_recipe(columns=["x"], coordinates="x,y").reward_model.names == ("x",)


def test_whole_numbers_that_the_features_file_lists_are_names():
    codes = {name: 100 * k + 7 for k, name in enumerate(files.STATIONS)}
    panel, features = pd.read_csv("trips.csv"), files.stations()
    panel["station"], features["code"] = panel["station"].map(codes), features["station"].map(codes)
    panel.to_csv("coded.csv", index=False)
    features.drop(columns="station").sample(frac=1.0, random_state=1).to_csv("codes.csv", index=False)
    fit = trips_recipe(panel="coded.csv", features="codes.csv", feature_state="code").fit()
    assert np.array_equal(fit.theta, trips_recipe().fit().theta)
    assert fit.state_labels == tuple(codes.values())


def test_a_table_of_weights_is_one_per_state():
    mdp, demos = by_hand()
    mine = trips_recipe(features=None, columns=(), reward="tabular").fit()
    assert np.array_equal(mine.theta, rv.NFXP(rv.TabularReward(6)).fit(mdp, demos).theta)


def test_a_network_sees_the_features_in_the_order_of_the_states():
    shuffled = files.stations().sample(frac=1.0, random_state=4)
    shuffled.to_csv("shuffled.csv", index=False)
    recipe = trips_recipe(features="shuffled.csv", reward="neural", hidden=[3], seed=5)
    own = rv.NeuralReward(files.stations()[FEATURES].to_numpy(), hidden=(3,), seed=5)
    assert np.array_equal(recipe.reward_model.features, own.features)  # pyright: ignore[reportAttributeAccessIssue]
    assert np.array_equal(recipe.reward_model.init(), own.init())


def test_features_of_pairs_are_found_by_the_name_of_the_action():
    pairs = files.stations()[["station", "shops"]].merge(pd.DataFrame({"choice": files.CHOICES}), how="cross")
    pairs["moving"] = (pairs["choice"] != "stay").astype(float)
    pairs.to_csv("pairs.csv", index=False)
    fit = trips_recipe(features="pairs.csv", columns=()).fit()
    assert fit.reward_model.names == ("shops", "moving")
    gap = fit.reward[:, 0] - fit.reward[:, 2]
    assert np.allclose(gap, fit.params["moving"])


def test_constants_are_one_per_action_but_the_first():
    fit = trips_recipe(constants=True).fit()
    assert len(fit.theta) == len(FEATURES) + 2
    assert np.allclose(fit.reward[:, 1:] - fit.reward[:, :1], fit.theta[2:])


# bins, several columns, weights, horizons


def bus_recipe(**options) -> Recipe:
    names = {"id": "bus", "time": "month", "state": "miles", "action": "decision", "period": "month"}
    return Recipe(**{"panel": "buses.csv", **names, "bins": "miles=edges:0,25,50,75,100", "constants": True, **options})


def test_bins_are_states_and_their_centres_features():
    fit = bus_recipe().fit()
    assert fit.demonstrations.bins is not None
    assert fit.demonstrations.bins.edges[0].tolist() == [0, 25, 50, 75, 100]
    assert np.allclose(np.diff(fit.reward[:, 0]), 25.0 * fit.params["miles"])
    assert np.allclose(fit.reward[:, 1] - fit.reward[:, 0], fit.theta[1])


@pytest.mark.parametrize(("text", "how"), [("miles=12", "uniform"), ("miles=quantile:9", "quantile")])
def test_bins_in_a_word(text, how):
    n = int(text.removeprefix("miles=").removeprefix("quantile:"))
    own = rv.discretize("buses.csv", "miles", bins=n, how=how)
    assert bus_recipe(bins=text).binned == own


def test_bins_of_two_columns_are_cut_each_in_its_own_way():
    panel = pd.read_csv("buses.csv").assign(age=np.arange(1600.0) % 40)
    panel.to_csv("aged.csv", index=False)
    recipe = bus_recipe(panel="aged.csv", state=["miles", "age"], bins=["age=quantile:2", "miles=3"])
    assert recipe.binned is not None
    assert recipe.binned.columns == ("miles", "age")
    for k, own in enumerate([rv.discretize(panel, "miles", 3), rv.discretize(panel, "age", 2, how="quantile")]):
        assert np.array_equal(recipe.binned.edges[k], own.edges[0])
    assert recipe.places is not None
    assert recipe.places.shape == (6, 2)


def grid_recipe(**options) -> Recipe:
    names = {"id": "who", "time": "t", "state": ["x", "y"], "action": "go", "next_state": ["x2", "y2"]}
    given = {"reward": "tabular", "discount": 1.0, "terminal": "2,2", "method": "ccp", "l2": 0.01}
    return Recipe(**{"panel": "grid.csv", **names, **given, **options})


def test_several_columns_make_a_state_and_a_terminal_one_is_named_by_commas():
    mdp = grid_recipe().mdp
    assert mdp.state_labels is not None
    assert [label for label, ended in zip(mdp.state_labels, mdp.terminal, strict=True) if ended] == [(2, 2)]
    assert grid_recipe().fit().converged


def test_weights_of_two_count_twice():
    panel = pd.read_csv("grid.csv").assign(two=2)
    panel.to_csv("twice.csv", index=False)
    once, twice = grid_recipe().fit(), grid_recipe(panel="twice.csv", weight="two").fit()
    assert np.allclose(once.theta, twice.theta, atol=1e-8)
    assert np.isclose(2.0 * once.llf, twice.llf)


def test_a_horizon_unrolls_the_model():
    fit = trips_recipe(horizon=25).fit()
    mdp, demos = by_hand()
    assert np.array_equal(fit.theta, rv.NFXP(linear()).fit(mdp.unroll(25), demos).theta)


def test_files_in_pieces_are_one_panel():
    panel = pd.read_csv("trips.csv").sample(frac=1.0, random_state=2)
    for k, part in enumerate([panel[:100], panel[100:700], panel[700:]]):
        part.to_csv(f"piece{k}.csv", index=False)
    whole = trips_recipe().fit().theta
    assert np.array_equal(trips_recipe(panel="piece*.csv").fit().theta, whole)
    assert np.array_equal(trips_recipe(panel=["piece2.csv", "piece0.csv", "piece1.csv"]).fit().theta, whole)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": None, "columns": ()}, "Give --features FILE, or --reward tabular for one weight per state."),
        ({"transitions": "moves.csv", "smoothing": 1.0}, "`--smoothing`: expected estimated transitions"),
        ({"transitions": "moves.csv", "kernel": 1.0}, "`--kernel`: expected estimated transitions"),
        ({"smoothing": 1.0, "kernel": 1.0}, "`--kernel`: expected one way to smooth transitions"),
        ({"hidden": [3]}, "`--hidden`: expected a neural reward; got linear. Add --reward neural."),
        ({"constants": True, "reward": "tabular"}, "`--constants`: expected a linear reward; got tabular."),
        (
            {"features": None, "reward": "tabular", "columns": (), "coordinates": "x,y"},
            "expected columns of a features",
        ),
        ({"kernel": 1.0}, "Name the columns of the features file with --coordinates x,y."),
        ({"bins": "miles=3"}, "`--bins`: expected a state column (station) and its bins; got 'miles'."),
        (
            {"bins": "station"},
            "`--bins`: expected COLUMN=90, COLUMN=quantile:20 or COLUMN=edges:0,5,10; got 'station'.",
        ),
        ({"bins": "station=many"}, "got 'station=many'"),
        ({"bins": "station=log:3"}, "got 'station=log:3'"),
        ({"feature_state": "code"}, "expected the column 'code' of states"),
        ({"feature_state": ["station", "x"]}, "`--feature-state`: expected 1 columns, as --state has"),
        ({"terminal": "zo"}, "`--terminal`: expected one of airport"),
        ({"columns": ["shop"]}, "Did you mean shops?"),
        ({"transitions": "stations.csv"}, "`--transitions`: expected a column next_station for where a decision leads"),
        ({"coordinates": "x,z"}, "'z'"),
    ],
)
def test_what_makes_no_sense_is_said(options, message):
    with pytest.raises(RevealedError) as caught:
        carry_out(options)
    assert message in str(caught.value)
    assert isinstance(caught.value, InvalidInput)


def carry_out(options: dict[str, object]) -> None:
    recipe = trips_recipe(**options)
    recipe.fit()
    assert recipe.places is not None


def test_every_state_column_needs_bins():
    with pytest.raises(InvalidOption, match="bins of every state column, also of y"):
        grid_recipe(bins="x=3").prepare()


def test_labels_as_they_are_typed():
    assert as_labels(["3", "a"], [3, "a"]) == ["3", "a"]
    assert as_labels(["3,a", "(3, a)"], [(3, "a")]) == [("3", "a"), "(3, a)"]
