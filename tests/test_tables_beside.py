"""Tables beside labelled things: what has names and is not pandas, names that are given twice, pairs whose levels stand
the other way, values of agents, sums with frames. Each is matched by name or refused; none goes by position."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import revealed as rv
from revealed.errors import InvalidInput, RevealedError

STATES, ACTIONS = ["a", "b", "c"], ["stay", "go"]
RNG = np.random.default_rng(0)
T = RNG.dirichlet(np.ones(3), size=(3, 2))
X = RNG.normal(size=(3, 2, 2))
MODEL = rv.MDP(T, 0.9, state_labels=STATES, action_labels=ACTIONS)
REWARD = X @ [1.0, 1.0]
COLUMNS: dict[str, Any] = {"id": "id", "time": "time", "state": "state", "action": "action"}


def written() -> pd.DataFrame:
    """Ids whose order as text is not that of their numbers."""
    frame = rv.simulate(MODEL, rv.solve(MODEL, REWARD).policy, n=40, length=20, seed=0).to_frame()
    village = frame["id"] // 4
    return frame.assign(id=[f"bus{k}" for k in frame["id"]], village=village)


@pytest.fixture(scope="module")
def demos() -> rv.Demonstrations:
    return rv.Demonstrations.from_frame(written(), **COLUMNS, keep="village", states=STATES, actions=ACTIONS)


@pytest.fixture(scope="module")
def fit(demos) -> rv.Fit:
    return rv.NFXP(rv.LinearReward(X, ["p", "q"])).fit(MODEL, demos)


# -- tables without an index ------------------------------------------------------------------------------------------

TURNED = pd.DataFrame({"go": REWARD[:, 1], "stay": REWARD[:, 0]})


def tables() -> dict[str, Any]:
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    found = {"polars": pl.from_pandas(TURNED), "lazy": pl.from_pandas(TURNED).lazy()}
    found["arrow"] = found["polars"].to_arrow()
    return found | {"duckdb": duckdb.from_arrow(found["arrow"])}


DOORS = {
    "solve": lambda t, fit: rv.solve(MODEL, t),
    "evaluate": lambda t, fit: rv.evaluate(fit, MODEL, t),
    "nll": lambda t, fit: rv.metrics.nll(t, fit.demonstrations),
    "feasible": lambda t, fit: MODEL.replace(feasible=t),
    "initial": lambda t, fit: MODEL.replace(initial=t),
    "transitions": lambda t, fit: rv.MDP([t, t], 0.9, state_labels=STATES),
    "first_step": lambda t, fit: rv.CCP(rv.LinearReward(X), first_step=t).fit(MODEL, fit.demonstrations),
    "start": lambda t, fit: rv.NFXP(rv.LinearReward(X), start=t).fit(MODEL, fit.demonstrations),
    "wald_test": lambda t, fit: fit.wald_test((t, [0.0])),
    "params": lambda t, fit: fit.counterfactual(params=t),
    "reward": lambda t, fit: fit.counterfactual(reward=t),
    "from_counts": lambda t, fit: rv.Demonstrations.from_counts(t),
    "from_trajectories": lambda t, fit: rv.Demonstrations.from_trajectories([t], n_states=3, n_actions=2),
    "LinearReward": lambda t, fit: rv.LinearReward(t),
    "NeuralReward": lambda t, fit: rv.NeuralReward(t),
    "lift": lambda t, fit: MODEL.unroll(2).lift(t),
    "added": lambda t, fit: fit.reward + t,
    "expect": lambda t, fit: MODEL.transitions.expect(t),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ["polars", "arrow", "duckdb", "lazy"])
def test_columns_without_an_index_are_not_read_by_position(door, kind, fit):
    """Columns are called go and stay here, and an array of them would be taken for stay and go."""
    with pytest.raises(RevealedError):
        DOORS[door](tables()[kind], fit)


def test_the_remedy_for_tables_without_an_index_works(fit):
    with pytest.raises(InvalidInput, match="got a table of Polars") as caught:
        rv.solve(MODEL, tables()["polars"])
    assert "Pass table.to_pandas().set_index(...)" in str(caught.value.remedy)
    table = tables()["polars"].with_columns(pytest.importorskip("polars").Series("state", STATES))
    labelled = table.to_pandas().set_index("state")
    np.testing.assert_allclose(rv.solve(MODEL, labelled).policy, rv.solve(MODEL, REWARD).policy)


# -- names that are given twice ---------------------------------------------------------------------------------------

FEATURES = pd.DataFrame(X[:, 0, :], index=STATES, columns=["p", "q"])


@pytest.mark.parametrize("given", [{"state_labels": STATES}, {"names": ["q", "p"]}, {"state_labels": STATES[::-1]}])
def test_labels_beside_those_of_a_frame_do_not_replace_them(given, demos):
    turned = FEATURES.loc[["c", "a", "b"]]
    own = rv.NFXP(rv.LinearReward(FEATURES), l2=1e-3).fit(MODEL, demos).params
    found = rv.NFXP(rv.LinearReward(turned, **given), l2=1e-3).fit(MODEL, demos).params
    assert list(found.index) == given.get("names", ["p", "q"])
    pd.testing.assert_series_equal(found[["p", "q"]], own, rtol=1e-6)


def test_names_that_are_no_columns_rename_them():
    assert rv.LinearReward(FEATURES, ["u", "v"]).names == ("u", "v")
    assert rv.LinearReward(FEATURES.to_numpy(), ["u", "v"], state_labels=STATES).state_labels == tuple(STATES)
    lazy: Any = {"names": (c for c in "uv"), "state_labels": iter(STATES)}
    assert rv.LinearReward(FEATURES, **lazy).names == ("u", "v")
    with pytest.raises(InvalidInput, match="2 distinct names"):
        rv.LinearReward(FEATURES, ["p", "p"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"names": ["q", "v"]}, "`names` must be the columns of the features"),
        ({"state_labels": ["x", "y", "z"]}, "`state_labels` must be the labels in the index"),
        ({"state_labels": ["a", "b"]}, "`state_labels` must be the labels in the index"),
    ],
)
def test_other_labels_than_those_of_a_frame_are_refused(given, said):
    with pytest.raises(InvalidInput, match=said):
        rv.LinearReward(FEATURES, **given)


def test_networks_keep_rows_and_columns_under_their_names():
    own = rv.NeuralReward(FEATURES)
    other = rv.NeuralReward(FEATURES.loc[["c", "a", "b"]], state_labels=STATES, columns=["p", "q"])
    np.testing.assert_allclose(other.value(own.init()), own.value(own.init()))
    turned = rv.NeuralReward(FEATURES, columns=["q", "p"])
    np.testing.assert_allclose(turned.features, FEATURES[["q", "p"]].to_numpy())


@pytest.mark.parametrize("make", [rv.LinearReward, rv.NeuralReward])
def test_a_list_of_matrices_may_mean_two_things(make):
    """One for each action, as transitions are, or one for each state, as NumPy reads it."""
    with pytest.raises(InvalidInput, match=r"one \(S, K\) for each action or one \(A, K\) for each state"):
        make([X[:, 0], X[:, 1]])
    with pytest.raises(InvalidInput, match="a list of data frames"):
        make([FEATURES, FEATURES])
    np.testing.assert_array_equal(rv.LinearReward(np.stack([X[:, 0], X[:, 1]], axis=1)).dense_features(), X)
    np.testing.assert_array_equal(rv.LinearReward(X.tolist()).dense_features(), X)


# -- pairs ------------------------------------------------------------------------------------------------------------


def test_pairs_are_read_by_the_names_of_their_levels():
    city = rv.environments.city(120, seed=1)
    trips = city.demonstrate(60, seed=2)
    choice = rv.RouteChoice.of(city.network, rv.NFXP(city.reward).fit(city.mdp, trips))
    table = rv.demand_of(trips, city.network).to_frame()
    one, other = (
        table.groupby(names)["trips"].sum() for names in (["origin", "destination"], ["destination", "origin"])
    )
    np.testing.assert_allclose(choice.flows(other), choice.flows(one))
    nameless = one.rename_axis([None, None])
    np.testing.assert_allclose(choice.flows(nameless), choice.flows(one))


def test_turns_are_read_by_the_names_of_their_levels():
    links = pd.DataFrame({"link": ["ab", "ba", "bc", "cb"], "from": list("abbc"), "to": list("bacb"), "time": 1.0})
    network = rv.RoadNetwork.from_frame(links)
    tolls = pd.DataFrame({"to_link": ["ab", "ba"], "from_link": ["ba", "ab"], "toll": [9.0, 1.0]})
    for names in (["from_link", "to_link"], ["to_link", "from_link"]):
        turns = network.with_attribute("toll", tolls.set_index(names)["toll"]).turns_frame
        paid = turns[turns["toll"] > 0].set_index(["from_link", "to_link"])["toll"]
        assert paid.to_dict() == {("ba", "ab"): 9.0, ("ab", "ba"): 1.0}


# -- agents -----------------------------------------------------------------------------------------------------------


def test_values_of_agents_need_ids_where_these_were_sorted(fit, demos):
    """bus10 comes after bus1 and before bus2: an array in the order of the file belongs to others."""
    frame = written()
    in_file = frame.groupby("id", sort=False)["village"].first()
    own = fit.with_errors("cluster", by="village").bse
    pd.testing.assert_series_equal(fit.with_errors("cluster", by=in_file).bse, own)
    for ask in (
        lambda: fit.with_errors("cluster", by=in_file.to_numpy()),
        lambda: demos.reweighted(np.ones(40)),
        lambda: demos.subset(np.arange(40) < 10),
        lambda: demos.subset([0, 1, 2]),
        lambda: rv.estimate_transitions(demos, smoothing=1.0).reweighted(np.ones(40)),
    ):
        with pytest.raises(InvalidInput, match=r"requires ids: .* \(0 = bus0, 1 = bus1, 2 = bus10") as caught:
            ask()
        assert "index=demos.ids" in str(caught.value.remedy)


def test_agents_that_were_listed_are_in_a_declared_order(demos):
    two = demos.subset(["bus7", "bus3"])
    np.testing.assert_array_equal(two.reweighted([1.0, 0.0]).counts, demos.subset(["bus7"]).counts)
    assert two.subset([1]).ids == ("bus3",)


def test_ids_slices_and_series_name_agents(demos):
    mask = pd.Series(np.arange(40) < 2, index=demos.ids)
    for agents in (["bus0", "bus1"], slice(0, 2), mask, mask.iloc[::-1]):
        assert set(demos.subset(agents).ids) == {"bus0", "bus1"}
    twice = demos.reweighted(pd.Series(2.0, index=demos.ids))
    np.testing.assert_array_equal(twice.counts, 2.0 * demos.counts)
    with pytest.raises(InvalidInput, match="requires ids"):
        demos.subset(slice(0, 20)).reweighted(np.ones(20))


def test_positions_are_fine_where_ids_are_their_own_or_were_listed():
    """Simulated agents are 0, 1, 2, …; ids of trajectories are in the order in which they were given."""
    numbered = rv.simulate(MODEL, rv.solve(MODEL, REWARD).policy, n=4, length=5, seed=0)
    assert numbered.subset([2, 0]).ids == (2, 0)
    listed = rv.Demonstrations.from_trajectories(
        [([0, 1], [0])] * 3, n_states=3, n_actions=2, ids=["kim", "bo", "al"], next_state=[1, 1, 1]
    )
    assert listed.subset([0]).ids == ("kim",)
    assert listed.reweighted(np.array([1.0, 0.0, 0.0])).counts.sum() == 1.0


def test_a_saved_fit_knows_that_its_ids_were_sorted(fit, tmp_path):
    again = rv.load(fit.save(tmp_path / "fit.zip"))
    with pytest.raises(InvalidInput, match="requires ids"):
        again.demonstrations.reweighted(np.ones(40))


def test_the_same_agents_in_another_order_are_named_as_such(fit, demos):
    other = rv.CCP(rv.LinearReward(X, ["p", "q"])).fit(MODEL, demos.subset(list(demos.ids[::-1])))
    with pytest.raises(InvalidInput, match="the same agents in another order"):
        rv.difference_test(fit, other)
    same = rv.CCP(rv.LinearReward(X, ["p", "q"])).fit(MODEL, other.demonstrations.subset(list(demos.ids)))
    assert rv.difference_test(fit, same).names == ("p", "q")


def test_ids_may_be_numbers_in_one_fit_and_text_in_the_other():
    frame = written().assign(id=lambda f: f["id"].str[3:].astype(int)).loc[lambda f: f["id"] < 8]
    fits = [
        method(rv.LinearReward(X, ["p", "q"])).fit(
            MODEL,
            rv.Demonstrations.from_frame(
                frame.assign(id=frame["id"].astype(kind)), **COLUMNS, states=STATES, actions=ACTIONS
            ),
        )
        for method, kind in ((rv.CCP, int), (rv.NFXP, str))
    ]
    assert rv.difference_test(*fits).names == ("p", "q")


# -- sums with frames -------------------------------------------------------------------------------------------------

TAX = pd.DataFrame({"go": [10.0, 20.0, 30.0], "stay": [1.0, 2.0, 3.0]}, index=["c", "a", "b"])


def test_an_array_is_not_combined_with_a_frame_in_another_order(fit):
    with pytest.raises(InvalidInput, match="`state_labels` must be the same"):
        _ = fit.reward + TAX
    own = TAX.loc[STATES, ACTIONS]
    np.testing.assert_allclose(fit.reward + own, own.to_numpy() + np.asarray(fit.reward))
    pd.testing.assert_frame_equal(TAX.loc[STATES, ACTIONS] + fit.table("reward"), own + fit.table("reward").to_numpy())


def test_labels_stand_in_the_way_of_no_arithmetic(fit, demos):
    """Arrays that know their labels are arrays: for sparse matrices, in place, and with pandas on the left."""
    own, M = fit.table("reward"), sp.csr_array(np.eye(3))
    own += fit.reward
    own["go"] *= fit.policy[:, 1]
    series = pd.Series([1.0, 2.0, 3.0])
    series -= fit.value
    np.testing.assert_array_equal(fit.value @ M, np.asarray(fit.value))
    np.testing.assert_array_equal(demos.counts.T @ M, np.asarray(demos.counts).T)
    np.testing.assert_array_equal(fit.policy[:, 0] @ M, np.asarray(fit.policy)[:, 0])
    assert sp.issparse(fit.policy * sp.csr_array(np.ones((3, 2))))


# -- files and clocks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["action=stay", "state=7", "id=2020-01-01", "village=north"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_names_of_folders_are_no_columns(folder, kind, tmp_path):
    path = tmp_path / folder / f"panel.{kind}"
    path.parent.mkdir()
    frame = written()
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path, index=False)
    for keep_steps in (None, False):
        read = rv.Demonstrations.from_frame(path, **COLUMNS, keep="village", keep_steps=keep_steps)
        own = rv.Demonstrations.from_frame(frame, **COLUMNS, keep="village", keep_steps=keep_steps)
        assert (read.ids, read.columns, read.action_labels) == (own.ids, own.columns, own.action_labels)
        np.testing.assert_array_equal(read.counts, own.counts)


@pytest.mark.parametrize("how", ["age", "date", "months"])
def test_when_ids_entered_survives_the_way_through_a_frame(how):
    """Late entry on a horizon has to be told (`first_time=`); data that went through `to_frame` are not exempt."""
    horizon = MODEL.unroll(8)
    frame = written().loc[lambda f: f["time"] < 4]
    age = 18 + frame["time"] + frame["village"] % 3
    dates = pd.DatetimeIndex([pd.Timestamp("2000-01-01") + pd.DateOffset(months=int(k)) for k in age])
    times = {"age": age, "date": dates, "months": dates.year * 100 + dates.month}
    read: dict[str, Any] = {**COLUMNS, "states": STATES, "actions": ACTIONS}
    period: dict[str, Any] = {} if how == "age" else {"period": "month"}
    entered = rv.Demonstrations.from_frame(frame.assign(time=times[how]), **read, **period)
    again = rv.Demonstrations.from_frame(entered.to_frame(), **read)
    for demos in (entered, again):
        with pytest.raises(InvalidInput, match="`first_time` is required on a finite horizon"):
            demos.lift(horizon)
    first = {"age": 18, "date": dates.min().isoformat()[:10], "months": int(times["months"].min())}[how]
    lifted = entered.lift(horizon, first_time=first)
    np.testing.assert_array_equal(lifted.counts, again.lift(horizon, first_time=18 if how == "age" else 0).counts)
    if how == "age":
        assert entered.to_frame()["time"].min() == 18


def test_a_model_beside_itself_is_named_as_such(fit):
    """Likelihood ratios would refuse it, too."""
    with pytest.raises(InvalidInput, match="both fits are of the same model"):
        rv.vuong_test(fit, fit)


def test_trips_that_never_arrive_get_a_remedy_of_trips():
    """Terminal states, horizons and discounts are refused on a road network."""
    links = pd.DataFrame({"link": ["ab", "ba", "bc"], "from": list("abb"), "to": list("bac"), "time": 1.0})
    mdp = rv.RoadNetwork.from_frame(links).mdp.toward("bc")
    turns = {(0, 1), (1, 0)}
    leads = mdp.transitions.matrix.toarray().reshape(*mdp.feasible.shape, -1).argmax(axis=2)
    circling = np.array([[float((s, t) in turns) for t in row] for s, row in enumerate(leads)]) * mdp.feasible
    with pytest.raises(RevealedError, match="must be able to end") as caught:
        rv.Chain(mdp, circling).soft_value(np.zeros_like(circling))
    assert str(caught.value).endswith('For an estimated policy use first_step="smoothed".')
