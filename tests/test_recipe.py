"""What a description makes is what the library's own calls make, number for number."""

import os
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
import trips as files
from revealed.commands.wording import PANEL, in_flags
from revealed.errors import InvalidInput, InvalidOption, RevealedError
from revealed.recipe import Recipe

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
    panel = pd.read_csv("trips.csv")
    orders: dict[str, Any] = {"states": sorted(panel["station"].unique()), "actions": sorted(panel["choice"].unique())}
    demos = rv.Demonstrations.from_frame("trips.csv", **files.NAMES, **orders)
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
    files.stations()[["station", "x", "y"]].to_csv("places.csv", index=False)
    with pytest.raises(InvalidOption, match="`coordinates` leaves no column of features for the reward"):
        _ = trips_recipe(features="places.csv", columns=(), coordinates="x,y").reward_model


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
        (
            {"features": None, "columns": ()},
            "`--features` is required for a linear reward. Or use --reward tabular, one weight per state.",
        ),
        ({"transitions": "moves.csv", "smoothing": 1.0}, "`--smoothing` cannot be combined with `--transitions`"),
        ({"transitions": "moves.csv", "kernel": 1.0}, "`--kernel` cannot be combined with `--transitions`"),
        ({"smoothing": 1.0, "kernel": 1.0}, "`--kernel` cannot be combined with `--smoothing`."),
        ({"hidden": [3]}, "`--hidden` requires `--reward neural`."),
        ({"constants": True, "reward": "tabular"}, "`--constants` requires a linear reward, not `--reward tabular`."),
        (
            {"features": None, "reward": "tabular", "columns": (), "coordinates": "x,y"},
            "`--coordinates` requires `--features FILE`",
        ),
        ({"kernel": 1.0}, "`--kernel` requires `--coordinates x,y` with `--features`"),
        ({"bins": "miles=3"}, "`--bins`: expected a state column (station) and its bins; got 'miles'."),
        (
            {"bins": "station"},
            "`--bins`: expected COLUMN=90, COLUMN=quantile:20 or COLUMN=edges:0,5,10; got 'station'.",
        ),
        ({"bins": "station=many"}, "got 'station=many'"),
        ({"bins": "station=log:3"}, "got 'station=log:3'"),
        ({"feature_state": "code"}, "`--feature-state`: expected one of the columns"),
        ({"feature_state": ["station", "x"]}, "`--feature-state`: expected 1 column, as --state has"),
        ({"terminal": "zo"}, "`--terminal`: expected one of airport"),
        ({"columns": ["shop"]}, "Did you mean shops?"),
        (
            {"transitions": "stations.csv"},
            "`--transitions`: expected a column next_station with the state that a decision leads to",
        ),
        ({"coordinates": "x,z"}, "'z'"),
    ],
)
def test_what_makes_no_sense_is_said(options, message):
    with pytest.raises(RevealedError) as caught:
        carry_out(options)
    assert message in in_flags(caught.value, PANEL)
    assert " --" not in str(caught.value)
    assert isinstance(caught.value, InvalidInput)


def carry_out(options: dict[str, object]) -> None:
    recipe = trips_recipe(**options)
    recipe.fit()
    assert recipe.places is not None


def test_every_state_column_needs_bins():
    with pytest.raises(InvalidOption, match="`bins` must cover every state column: y has no bins"):
        grid_recipe(bins="x=3").prepare()


def test_bins_that_a_remedy_names_keep_the_values_of_a_column_apart():
    panel = pd.read_csv("grid.csv").assign(size=lambda frame: frame["t"] * 1.5, old=lambda frame: frame["x"] * 10 + 1)
    panel.to_csv("old.csv", index=False)
    recipe = grid_recipe(panel="old.csv", state=["size", "old"], next_state=(), bins="size=3", reward=None)
    with pytest.raises(InvalidOption) as caught:
        recipe.prepare()
    assert in_flags(caught.value).endswith("for whole numbers, one bin each: --bins size=3,old=edges:1,11,21,22.")
    bins = replace(recipe, bins=("size=3", "old=edges:1,11,21,22")).binned
    assert bins is not None
    assert set(bins.code([0, 0, 0], [1, 11, 21])) == {0, 1, 2}


def test_columns_of_text_have_no_bins_and_others_have_some():
    panel = pd.read_csv("grid.csv").assign(far=lambda frame: frame["t"] / 7)
    panel.to_csv("far.csv", index=False)
    for column, remedy in (("go", "Bins are for numbers: leave go out of"), ("far", "such as --bins x=3,far=20.")):
        with pytest.raises(InvalidOption) as caught:
            grid_recipe(panel="far.csv", state=["x", column], next_state=(), bins="x=3").prepare()
        assert remedy in in_flags(caught.value)


def said(**options: object) -> Recipe:
    """As the command line says it."""
    flags = {"panel": ["trips.csv"], **files.NAMES, "features": "stations.csv", "discount": 0.9, **options}
    return Recipe.from_flags({name: [value] if name in LISTS else value for name, value in flags.items()})


LISTS = {"state", "action", "next_state", "columns", "bins", "terminal", "feature_state", "coordinates"}


def test_constants_alone_are_a_reward():
    alone = trips_recipe(features=None, columns=(), constants=True).fit()
    mdp, demos = by_hand()
    features = np.zeros((6, 3, 2))
    features[:, 1, 0] = features[:, 2, 1] = 1.0
    assert np.allclose(alone.theta, rv.NFXP(rv.LinearReward(features)).fit(mdp, demos).theta, atol=1e-10)
    assert alone.reward_model.names == ("constant_on", "constant_stay")


def test_constants_alone_are_a_reward_of_states_of_several_columns():
    options = {"reward": None, "constants": True, "terminal": (), "discount": 0.9, "method": "nfxp", "l2": None}
    fit = grid_recipe(**options, unseen="stay").fit()
    states = pd.DataFrame(fit.state_labels, columns=["x", "y"])
    own = rv.LinearReward.from_frame(states, state=["x", "y"], constants=True, actions=fit.action_labels)
    assert np.array_equal(fit.theta, rv.NFXP(own).fit(fit.mdp, fit.demonstrations).theta)
    assert fit.reward_model.state_labels == own.state_labels
    assert grid_recipe(**options, unseen="stay", horizon=20).fit().converged


@pytest.mark.parametrize("constants", [True, False])
def test_a_column_that_is_not_binned_is_no_feature(constants):
    with pytest.raises(InvalidInput, match=r"got 'mile'\. Did you mean miles"):
        bus_recipe(columns="mile", constants=constants).prepare()


def test_lists_are_taken_apart_where_files_tell_that_they_must_be():
    pd.read_csv("grid.csv").rename(columns={"x": "x,y"}).to_csv("comma.csv", index=False)
    names = {"id": "who", "time": "t", "action": "go", "features": None, "reward": "tabular"}
    assert said(panel=["grid.csv"], state="x,y", next_state="x2,y2", **names).state == ("x", "y")
    assert said(panel=["comma.csv"], state="x,y", **names).state == ("x,y",)
    assert said(columns="shops,green").columns == ("shops", "green")
    found = said(panel=["grid.csv"], state="x,y", bins="x=2,y=edges:0,1,2", **names | {"reward": None})
    assert found.bins == ("x=2", "y=edges:0,1,2")
    assert said(reward="neural", hidden=["3,2"]).hidden == (3, 2)
    assert said(terminal="zoo,park").mdp.terminal.tolist() == [False] * 4 + [True] * 2
    assert said(terminal="zoo,park", transitions="moves.csv").mdp.terminal.tolist() == [False] * 4 + [True] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"state": "statoin"}, "`--state`: expected one of the columns 'rider', 't', 'station', 'choice'; got"),
        ({"weight": "w", "features": "nowhere.csv"}, "`--weight`: expected one of the columns"),
        ({"features": "short.csv"}, "a row for every state; got no features for 'zoo' in short.csv. Add a row for it."),
        (
            {"features": "short.csv", "coordinates": "x,y", "kernel": 1.0},
            "no features for 'zoo' in short.csv. Add a row for it.",
        ),
        ({"features": "twice.csv"}, "`--features`: expected one row per state in twice.csv; got 'zoo' in rows 5 and 6"),
        (
            {"panel": ["coded.csv"], "features": "few.csv"},
            "no features for 507 in few.csv (first at row 2). Add a row for it.",
        ),
        (
            {"panel": ["moon.csv"], "next_state": "to", "unseen": "stay"},
            "that --next-state leads to; got no features for 'an attraction' in stations.csv. Add a row for it.",
        ),
        (
            {"panel": ["far.csv"], "next_state": "to", "features": "codes.csv"},
            "a row for every state that --next-state leads to; got no features for 999 in codes.csv",
        ),
    ],
)
def test_a_state_without_features_is_told_with_the_file(options, message):
    features, panel = files.stations(), pd.read_csv("trips.csv")
    features[:-1].to_csv("short.csv", index=False)
    pd.concat([features, features[-1:]]).to_csv("twice.csv", index=False)
    last = panel.groupby("rider")["station"].shift(-1)
    panel.assign(to=last.fillna("an attraction")).to_csv("moon.csv", index=False)
    codes = {name: 100 * k + 7 for k, name in enumerate(files.STATIONS)}
    coded = panel.assign(station=panel["station"].map(codes))
    coded.to_csv("coded.csv", index=False)
    coded.assign(to=last.map(codes).fillna(999).astype(int)).to_csv("far.csv", index=False)
    features = features.assign(station=features["station"].map(codes))
    features.to_csv("codes.csv", index=False)
    features[:-1].to_csv("few.csv", index=False)
    with pytest.raises(InvalidInput) as caught:
        said(**options).prepare()
    assert message in in_flags(caught.value, PANEL)
    assert " --" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ({"method": "npl", "start": "ccp"}, "`--method nfxp`"),
        ({"method": "nfxp", "updates": 3}, "`--method npl`"),
        ({"method": "nfxp", "first_step": "smoothed"}, "`--method ccp` or `--method npl`"),
        ({"method": "npl", "reps": 10}, "`--errors bootstrap`"),
        ({"method": "npl", "seed": 3}, "`--errors bootstrap` or `--reward neural`"),
        ({"method": "npl", "probability": "p"}, "`--transitions FILE`"),
        ({"method": "npl", "transitions": "moves.csv", "unseen": "stay"}, "estimated transitions"),
        ({"method": "npl", "features": None, "reward": "tabular", "feature_state": "code"}, "`--features FILE`"),
    ],
)
def test_a_flag_without_effect_is_a_mistake(options, needed):
    with pytest.raises(InvalidOption) as caught:
        said(**options)
    assert re.match(f"`--.*` requires {needed}", in_flags(caught.value))
    assert "--" not in str(caught.value)


def test_parts_that_were_looked_at_are_no_options():
    recipe = trips_recipe(method="ccp")
    recipe.prepare()
    assert recipe.fit().method == "CCP"


def test_a_file_may_say_more_than_a_run_needs_and_so_may_a_comparison(tmp_path):
    (tmp_path / "run.toml").write_text(trips_recipe(method="npl", updates=3).to_toml(tmp_path))
    assert Recipe.from_flags({"method": "nfxp"}, tmp_path / "run.toml").method == "nfxp"
    assert said(start="ccp", updates=3, first_step="smoothed", seed=2).updates == 3  # no --method: all of them run


def test_a_path_of_a_file_elsewhere_is_told_as_it_is_seen_from_here(tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    (tmp_path / "here").mkdir()
    text = trips_recipe(columns=()).to_toml(".").replace("stations.csv", "../nowhere.csv")
    (tmp_path / "runs/run.toml").write_text(text.replace('"trips.csv"', f'"{os.path.abspath("trips.csv")}"'))
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InvalidInput, match=r"got .*nowhere\.csv") as caught:
        Recipe.from_toml("../runs/run.toml").prepare()
    assert os.path.join("..", "nowhere.csv") in str(caught.value)


# whole numbers that are names


def numbered(folder, first: int, features: bool = False) -> Recipe:
    """The trips with stations and choices numbered from `first`, and where asked what a file says of both."""
    panel = pd.read_csv("trips.csv")
    codes = {name: sorted(panel[name].unique()) for name in ("station", "choice")}
    for name, known in codes.items():
        panel[name] = panel[name].map({label: i + first for i, label in enumerate(known)})
    panel.to_csv(f"from_{first}.csv", index=False)
    options: dict[str, Any] = {"features": None, "columns": [], "constants": True}
    if features:
        pairs = pd.MultiIndex.from_product(
            [range(first, first + len(known)) for known in codes.values()], names=list(codes)
        )
        table = pd.DataFrame({"x": np.random.default_rng(0).normal(size=len(pairs))}, index=pairs)
        table.reset_index().sample(frac=1.0, random_state=1).to_csv(f"pairs_{first}.csv", index=False)
        options = {"features": f"pairs_{first}.csv", "columns": ["x"]}
    return trips_recipe(panel=f"from_{first}.csv", l2=0.01, **options)


@pytest.mark.parametrize("features", [False, True])
def test_numbers_from_one_make_the_model_that_numbers_from_zero_make(folder, features):
    """No state 0 and no action 0 appear that nobody has seen."""
    own, other = numbered(folder, 0, features).fit(), numbered(folder, 1, features).fit()
    assert (other.mdp.n_states, other.mdp.n_actions) == (own.mdp.n_states, own.mdp.n_actions)
    np.testing.assert_allclose(other.theta, own.theta, rtol=0, atol=1e-9)
    assert other.mdp.state_labels == tuple(range(1, own.mdp.n_states + 1))
    assert other.mdp.action_labels == tuple(range(1, own.mdp.n_actions + 1))


def test_numbering_from_one_is_told(folder):
    assert numbered(folder, 1).demonstrations.notes[-2:] == (
        "States are numbered from 1: there is no state 0.",
        "Actions are numbered from 1: there is no action 0.",
    )
    assert not any("numbered from" in note for note in numbered(folder, 0).demonstrations.notes)


def test_an_action_that_no_file_lists_is_named(folder):
    recipe = numbered(folder, 1, features=True)
    panel = pd.read_csv("from_1.csv")
    panel.loc[3, "choice"] = 99
    panel.to_csv("odd.csv", index=False)
    odd = trips_recipe(panel="odd.csv", features=recipe.features, columns=["x"])
    with pytest.raises(InvalidInput, match="`action`: expected an action that the files list; got 99"):
        odd.demonstrations  # noqa: B018


@pytest.mark.parametrize("text", ["x=edges:0,1", "x=edges:0,5,2", "x=edges:0"])
def test_errors_about_bins_name_their_option(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"id": 0, "t": [0, 1, 2], "x": [0.5, 7.5, 0.5], "a": [0, 1, 0]}).to_csv("p.csv", index=False)
    recipe = Recipe(("p.csv",), id="id", time="t", state=("x",), action=("a",), bins=(text,), constants=True)
    with pytest.raises(RevealedError) as caught:
        recipe.fit()
    assert in_flags(caught.value, PANEL).startswith(f"`--bins {text}`: expected ")


def test_state_and_action_that_are_swapped_are_suspected():
    with pytest.raises(RevealedError) as caught:
        trips_recipe(state="choice", action="station").fit()
    assert "are `--state` and `--action` swapped?" in in_flags(caught.value, PANEL)
