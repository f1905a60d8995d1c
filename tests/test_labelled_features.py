"""Features known by labels: the order of their rows does not matter, none may be missing, what is unused is said."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import revealed as rv
from models import draw, random_mdp
from revealed.errors import InvalidInput, InvalidReward
from revealed.rewards.base import align_reward

S, A, K = 8, 3, 2
RNG = np.random.default_rng(0)
STATE, PAIR = RNG.normal(size=(S, K)), RNG.normal(size=(S, A, K))
STATIONS = ("Ash", "Birch", "Cedar", "Elm", "Fir", "Oak", "Pine", "Yew")
CHOICES = ("buy", "keep", "sell")
ORDER = np.random.default_rng(1).permutation(S)
THETA = np.array([0.8, -0.5])


def model(labels: bool = True, **options) -> rv.MDP:
    mdp = random_mdp(S, A, seed=1, **options)
    return mdp.replace(state_labels=STATIONS, action_labels=CHOICES) if labels else mdp


def state_frame(labels=STATIONS, order=ORDER) -> pd.DataFrame:
    """A row per state, shuffled: station, wage, dust."""
    frame = pd.DataFrame({"station": list(labels), "wage": STATE[:, 0], "dust": STATE[:, 1]})
    return frame.iloc[order].reset_index(drop=True)


def pair_frame(states=STATIONS, choices=CHOICES, keep=None) -> pd.DataFrame:
    """A row per pair, shuffled: station, choice, wage, dust."""
    s, a = np.divmod(np.random.default_rng(2).permutation(S * A), A)
    frame = pd.DataFrame({"station": np.array(states)[s], "choice": np.array(choices)[a]})
    frame["wage"], frame["dust"] = PAIR[s, a, 0], PAIR[s, a, 1]
    return frame if keep is None else frame[keep[s, a]].reset_index(drop=True)


def from_pairs(frame, **options) -> rv.LinearReward:
    return rv.LinearReward.from_frame(frame, state="station", action="choice", **options)


def assert_same_fit(one, two) -> None:
    np.testing.assert_array_equal(one.theta, two.theta)
    np.testing.assert_array_equal(one.policy, two.policy)
    assert one.status == two.status


# the order of rows does not matter


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_shuffled_rows_with_labels_give_the_estimates_of_ordered_ones(method):
    mdp = model()
    demos = draw(mdp, STATE @ THETA[:, None], 60)
    labelled = rv.LinearReward(state_frame().set_index("station"))
    fit = method(labelled).fit(mdp, demos)
    assert_same_fit(fit, method(rv.LinearReward(STATE)).fit(mdp, demos))
    assert fit.reward_model.state_labels == STATIONS
    np.testing.assert_array_equal(fit.reward_model.matrix, STATE)
    assert list(fit.params.index) == ["wage", "dust"]


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP])
def test_shuffled_pairs_give_the_estimates_of_an_ordered_table(method):
    mdp = model(masked=True)
    demos = draw(mdp, PAIR @ THETA, 60)
    assert_same_fit(method(from_pairs(pair_frame())).fit(mdp, demos), method(rv.LinearReward(PAIR)).fit(mdp, demos))


def test_bootstraps_and_standard_errors_are_those_of_ordered_rows():
    mdp = model()
    demos = draw(mdp, STATE @ THETA[:, None], 60)
    rewards = rv.LinearReward(state_frame().set_index("station")), rv.LinearReward(STATE)
    one, two = (rv.CCP(reward).fit(mdp, demos) for reward in rewards)
    np.testing.assert_array_equal(one.bse, two.bse)
    first, second = (fit.bootstrap(reps=5, seed=0, progress=False).theta for fit in (one, two))
    np.testing.assert_array_equal(first, second)


def test_the_labels_of_the_data_serve_where_the_model_has_none():
    mdp = model(labels=False)
    demos = draw(mdp, PAIR @ THETA, 60)
    names = list(STATIONS[::-1])  # an order of its own
    panel = demos.to_frame().assign(
        state=lambda f: np.array(names)[f["state"]], action=lambda f: np.array(CHOICES)[f["action"]]
    )
    labelled = rv.Demonstrations.from_frame(
        panel, id="id", time="time", state="state", action="action", states=names, actions=CHOICES
    )
    shuffled = from_pairs(pair_frame(states=names))
    fit, ordered = rv.NFXP(shuffled).fit(mdp, labelled), rv.NFXP(rv.LinearReward(PAIR)).fit(mdp, demos)
    np.testing.assert_allclose(fit.theta, ordered.theta, rtol=1e-12)


def test_without_labels_anywhere_the_rows_are_known_by_index():
    mdp = model(labels=False)
    demos = draw(mdp, STATE @ THETA[:, None], 60)
    by_index = rv.LinearReward(state_frame(labels=range(S)).set_index("station"))
    assert by_index.state_labels == tuple(ORDER.tolist())
    assert_same_fit(rv.NFXP(by_index).fit(mdp, demos), rv.NFXP(rv.LinearReward(STATE)).fit(mdp, demos))
    pairs = from_pairs(pair_frame(states=range(S), choices=range(A)))
    assert_same_fit(rv.NFXP(pairs).fit(mdp, demos), rv.NFXP(rv.LinearReward(PAIR)).fit(mdp, demos))


def test_a_frame_indexed_by_position_is_positional_whatever_the_labels():
    mdp = model()
    frame = state_frame(order=np.arange(S)).drop(columns="station")
    demos = draw(mdp, STATE @ THETA[:, None], 60)
    assert_same_fit(rv.NFXP(rv.LinearReward(frame)).fit(mdp, demos), rv.NFXP(rv.LinearReward(STATE)).fit(mdp, demos))


def test_labels_may_come_beside_an_array_dense_or_sparse():
    for features in (STATE[ORDER], sp.csr_array(STATE[ORDER])):
        reward = rv.LinearReward(features, state_labels=[STATIONS[s] for s in ORDER])
        found = reward.aligned(STATIONS)
        np.testing.assert_array_equal(found.matrix @ np.eye(K), STATE)
        assert sp.issparse(found.matrix) == sp.issparse(features)


def test_aligning_twice_is_aligning_once_and_any_order_can_be_undone():
    reward = from_pairs(pair_frame())
    backwards = reward.aligned(STATIONS[::-1], CHOICES[::-1])
    np.testing.assert_array_equal(backwards.value(THETA), (PAIR @ THETA)[::-1, ::-1])
    again = backwards.aligned(STATIONS, CHOICES)
    np.testing.assert_array_equal(again.value(THETA), PAIR @ THETA)
    assert again.aligned(STATIONS, CHOICES) is again
    positional = rv.LinearReward(STATE)
    assert positional.aligned(STATIONS, CHOICES) is positional


@pytest.mark.parametrize("timed", [False, True])
def test_on_a_horizon_features_are_those_of_states_or_of_states_at_a_time(timed):
    mdp = model().unroll(3)
    demos = draw(model(), STATE @ THETA[:, None], 60, length=3)
    frame = state_frame().set_index("station")
    if timed:
        frame = pd.concat(dict.fromkeys((2, 0, 1), frame))  # nothing is chosen at the end: no row is needed there
    fit = rv.NFXP(rv.LinearReward(frame)).fit(mdp, demos)
    ordered = rv.NFXP(rv.LinearReward(STATE)).fit(mdp, demos)
    np.testing.assert_allclose(fit.theta, ordered.theta, rtol=1e-9)


def test_a_counterfactual_model_of_another_order_finds_its_features_by_label():
    mdp = model()
    fit = rv.NFXP(rv.LinearReward(state_frame().set_index("station"))).fit(mdp, draw(mdp, STATE @ THETA[:, None], 60))
    T = mdp.transitions.matrix.toarray().reshape(S, A, S)[ORDER][:, :, ORDER]
    other = rv.MDP(T, discount=mdp.discount, state_labels=[STATIONS[s] for s in ORDER], action_labels=CHOICES)
    start = np.full(S, 1 / S)
    moved = fit.counterfactual(mdp=other, initial=start)
    np.testing.assert_allclose(moved.after.policy, fit.policy, rtol=1e-9)  # in the order of the fit
    np.testing.assert_allclose(moved.change.value, 0.0, atol=1e-9)
    unnamed = rv.MDP(mdp.transitions.matrix, discount=mdp.discount)
    np.testing.assert_allclose(fit.counterfactual(mdp=unnamed, initial=start).after.policy, fit.policy, rtol=1e-9)


# from_frame


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow", "relation", "csv", "parquet"])
def test_every_kind_of_table_gives_the_same_features(tmp_path, kind):
    frame = pair_frame()
    kinds = {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame),
        "lazy": lambda: pl.from_pandas(frame).lazy(),
        "arrow": lambda: pl.from_pandas(frame).to_arrow(),
        "relation": lambda: duckdb.connect().from_df(frame),
        "csv": lambda: frame.to_csv(tmp_path / "f.csv", index=False) or tmp_path / "f.csv",
        "parquet": lambda: frame.to_parquet(tmp_path / "f.parquet") or str(tmp_path / "f.parquet"),
    }
    reward = from_pairs(kinds[kind]())
    assert reward.names == ("wage", "dust")
    np.testing.assert_array_equal(reward.aligned(STATIONS, CHOICES).matrix, PAIR.reshape(-1, K))


def test_columns_are_chosen_in_the_order_given():
    reward = rv.LinearReward.from_frame(state_frame(), state="station", columns=["dust", "wage"])
    assert reward.names == ("dust", "wage")
    np.testing.assert_array_equal(reward.aligned(STATIONS).matrix, STATE[:, ::-1])
    assert rv.LinearReward.from_frame(state_frame(), state="station", columns="wage").names == ("wage",)


def test_states_of_several_columns_are_tuples():
    places = [(x, y) for x in range(4) for y in ("n", "s")]
    frame = state_frame(order=np.arange(S)).drop(columns="station")
    frame[["x", "y"]] = pd.DataFrame(places)
    reward = rv.LinearReward.from_frame(frame.sample(frac=1, random_state=0), state=["x", "y"])
    np.testing.assert_array_equal(reward.aligned(places).matrix, STATE)
    indexed = rv.LinearReward(frame.set_index(["x", "y"]).sample(frac=1, random_state=0))
    np.testing.assert_array_equal(indexed.aligned(places).matrix, STATE)


def test_constants_are_indicators_of_every_action_but_the_first():
    expected = np.concatenate([PAIR, np.broadcast_to(np.eye(A)[:, 1:], (S, A, A - 1))], axis=2)
    reward = from_pairs(pair_frame(), constants=True)
    assert reward.names == ("wage", "dust", "constant_keep", "constant_sell")
    np.testing.assert_array_equal(reward.aligned(STATIONS, CHOICES).matrix, expected.reshape(S * A, -1))
    other = from_pairs(pair_frame(), constants=True, actions=["sell", "buy", "keep"])
    assert other.names[2:] == ("constant_buy", "constant_keep")
    np.testing.assert_array_equal(other.aligned(STATIONS, CHOICES).matrix[:A, 2:], [[1, 0], [0, 1], [0, 0]])


def test_constants_beside_features_of_states_need_the_actions():
    reward = rv.LinearReward.from_frame(state_frame(), state="station", constants=True, actions=CHOICES)
    theta = np.array([*THETA, 0.3, -0.7])
    expected = (STATE @ THETA)[:, None] + [0.0, 0.3, -0.7]
    np.testing.assert_allclose(reward.aligned(STATIONS, CHOICES).value(theta), expected, atol=1e-15)
    with pytest.raises(InvalidReward, match=r"`constants` requires known actions.* Pass actions="):
        rv.LinearReward.from_frame(state_frame(), state="station", constants=True)


def test_which_constant_is_left_out_does_not_change_the_fit():
    mdp = model()
    demos = draw(mdp, PAIR @ THETA + [0.0, 0.5, -0.5], 150)
    one = rv.NFXP(from_pairs(pair_frame(), constants=True)).fit(mdp, demos)
    two = rv.NFXP(from_pairs(pair_frame(), constants=True, actions=CHOICES[::-1])).fit(mdp, demos)
    np.testing.assert_allclose(one.policy, two.policy, atol=1e-7)
    assert one.params["constant_sell"] == pytest.approx(-two.params["constant_buy"], abs=1e-6)


def test_many_constants_are_kept_sparse():
    many = [f"a{k:02d}" for k in range(30)]
    frame = pd.DataFrame([{"s": s, "c": c, "x": 1.0 + k} for s in "pq" for k, c in enumerate(many)])
    reward = rv.LinearReward.from_frame(frame.sample(frac=1, random_state=0), "s", "c", constants=True)
    assert sp.issparse(reward.matrix)
    found = reward.aligned(["q", "p"], many[::-1]).matrix.toarray().reshape(2, 30, 30)
    expected = np.concatenate([1.0 + np.arange(30)[:, None], np.eye(30)[:, 1:]], axis=1)[::-1]
    np.testing.assert_array_equal(found, np.stack([expected, expected]))


# what is missing and what is too much


def test_pairs_that_the_model_does_not_offer_may_be_left_out_and_have_no_value():
    mdp = model(masked=True)
    assert (~mdp.feasible).any()
    demos = draw(mdp, PAIR @ THETA, 60)
    partial = from_pairs(pair_frame(keep=mdp.feasible))
    assert_same_fit(rv.NFXP(partial).fit(mdp, demos), rv.NFXP(rv.LinearReward(PAIR)).fit(mdp, demos))
    aligned = align_reward(partial, mdp)
    np.testing.assert_array_equal(aligned.value(THETA), np.where(mdp.feasible, PAIR @ THETA, np.nan))
    everything = mdp.replace(feasible=None)
    with pytest.raises(InvalidReward, match="features for every feasible pair of the model"):
        align_reward(aligned, everything)  # zeros never pass for features


def test_a_pair_without_features_is_named():
    keep = np.ones((S, A), dtype=bool)
    keep[2, 1] = keep[5, 0] = False
    with pytest.raises(InvalidReward) as caught:
        rv.NFXP(from_pairs(pair_frame(keep=keep))).fit(model(), draw(model(), PAIR @ THETA, 5))
    assert str(caught.value) == (
        "`features`: expected features for every feasible pair of the model; got none for 2 pairs "
        "(first at state 'Cedar', action 'keep'). Add a row for it."
    )


@pytest.mark.parametrize(("written", "remedy"), [("cedar", "Did you mean cedar?"), ("x", "Add a row for it.")])
def test_a_state_without_features_is_named_with_what_looks_like_it_and_is_not_in_use(written, remedy):
    frame = state_frame(labels=[written if name == "Cedar" else name for name in STATIONS])
    for reward in (rv.LinearReward(frame.set_index("station")), rv.LinearReward.from_frame(frame, state="station")):
        with pytest.raises(InvalidReward) as caught:
            rv.CCP(reward).fit(model(), draw(model(), PAIR @ THETA, 5))
        assert str(caught.value) == (
            "`features`: expected features for every state of the model; got none for 1 state "
            f"(first at state 'Cedar'). {remedy}"
        )


def test_a_label_that_is_another_states_is_not_offered_as_a_remedy():
    twelve = [f"station {k}" for k in range(12)]
    reward = rv.LinearReward(np.ones((11, 1)), state_labels=twelve[:11])
    with pytest.raises(InvalidReward, match=r"state 'station 11'\)\. Add a row for it"):
        reward.aligned(twelve)


def test_labels_that_have_nothing_to_do_with_the_models_are_shown():
    with pytest.raises(InvalidReward, match=r"first at state 0\)\. There are features for Ash, Birch"):
        align_reward(rv.LinearReward(STATE, state_labels=STATIONS), model(labels=False))
    with pytest.raises(InvalidReward, match=r"state 'Ash', action 'buy'\)\. Did you mean buys\?"):
        align_reward(from_pairs(pair_frame(choices=("buys", "keep", "sell"))), model())


def test_a_terminal_state_needs_no_features():
    mdp = model(terminal=1)
    demos = draw(mdp, STATE @ THETA[:, None], 60)
    frame = state_frame().set_index("station").drop(index="Yew")
    assert_same_fit(rv.NFXP(rv.LinearReward(frame)).fit(mdp, demos), rv.NFXP(rv.LinearReward(STATE)).fit(mdp, demos))


def test_features_of_states_that_the_model_lacks_are_left_out_and_noted():
    mdp = model()
    unknown = pd.DataFrame({"station": ["Larch", "Lime"], "wage": [9.0, 9.0], "dust": [1.0, 2.0]})
    extra = pd.concat([state_frame(), unknown])
    demos = draw(mdp, STATE @ THETA[:, None], 60)
    fit = rv.NFXP(rv.LinearReward.from_frame(extra, state="station")).fit(mdp, demos)
    note = "features of 2 states (first 'Larch') were left out: the model does not have them."
    assert note in fit.status.notes
    assert getattr(fit.reward_model, "left_out", None) == note
    np.testing.assert_array_equal(fit.theta, rv.NFXP(rv.LinearReward(STATE)).fit(mdp, demos).theta)
    pairs = from_pairs(pair_frame(choices=("buy", "keep", "sell"))).aligned(STATIONS[:5], CHOICES[1:])
    assert pairs.left_out == (
        "features of 3 states (first 'Yew') and 1 action (first 'buy') were left out: the model does not have them."
    )


BAD = {
    "text": (
        lambda f: f.assign(line=["red"] * S),
        "`column 'line'`: expected numbers; got text such as red (first at row 0). "
        "Name the columns that are features, as in columns=['wage', 'dust'].",
    ),
    "twice": (
        lambda f: f.assign(station=["a", "b", "c", "d", "b", "a", "e", "f"]),
        "`state`: expected one row per state; got 'b' in rows 1 and 4 (first at row 4). Keep one of them.",
    ),
    "nameless": (
        lambda f: f.assign(station=["a", None, "c", "d", "e", "f", "g", "h"]),
        "`state`: expected no missing values; got 1 missing (first at row 1). Drop or fill those rows.",
    ),
    "no features": (
        lambda f: f[["station"]],
        "`columns`: expected at least one column of features; got none besides station.",
    ),
}


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("what", BAD)
def test_bad_tables_are_refused_with_the_first_bad_row(tmp_path, what, in_file):
    change, message = BAD[what]
    frame = change(state_frame())
    if in_file:
        frame.to_parquet(tmp_path / "f.parquet")
        frame = tmp_path / "f.parquet"
    with pytest.raises(InvalidReward) as caught:
        rv.LinearReward.from_frame(frame, state="station")
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_a_fit_needs_is_refused_by_name_where_it_is_missing(value):
    """Only the model knows where nothing is chosen, so that a hole in the table is told when they meet."""
    mdp = model()
    frame = state_frame()
    place = int(np.flatnonzero(frame["station"] == STATIONS[1])[0])
    frame.loc[frame.index[place], "wage"] = value
    reward = rv.LinearReward.from_frame(frame, state="station")
    with pytest.raises(InvalidReward, match=rf"got {value} \(first at state {STATIONS[1]!r}, feature 'wage'\)"):
        rv.NFXP(reward).fit(mdp, draw(mdp, STATE @ THETA[:, None], 60))


def test_a_pair_twice_and_a_frame_with_bad_labels_are_refused():
    frame = pair_frame()
    twice = pd.concat([frame, frame.iloc[[3]]], ignore_index=True)
    with pytest.raises(InvalidReward, match=r"per state and action; got .* in rows 3 and 24 \(first at row 24\)"):
        from_pairs(twice)
    indexed = state_frame().set_index("station")
    with pytest.raises(InvalidReward, match=r"one row per state; got 'Ash' in rows \d and 8"):
        rv.LinearReward(pd.concat([indexed, indexed.loc[["Ash"]]]))
    with pytest.raises(InvalidReward, match=r"an index without missing labels; got (None|nan) \(first at row 0\)"):
        rv.LinearReward(indexed.rename(index={indexed.index[0]: None}))
    with pytest.raises(InvalidReward, match=r"column 'line'`: expected numbers; got text such as red"):
        rv.LinearReward(indexed.assign(line="red"))
    with pytest.raises(InvalidReward, match="8 labels, one per state"):
        rv.LinearReward(STATE, state_labels=["a"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"state": "Station"}, "`state`: expected one of the columns"),
        ({"state": []}, "`state`: expected the name of a column, or a list of names"),
        ({"action": "chose"}, "`action`: expected one of the columns .*Did you mean choice"),
        ({"columns": ["wages"]}, "`columns`: expected one of the columns .*Did you mean wage"),
        ({"constants": "yes"}, "`constants`: expected True or False"),
        ({"actions": ["buy", "buy", "sell"]}, "`actions`: expected distinct labels of actions"),
        ({"actions": ["buy", "sell"]}, "`action`: expected one of buy, sell; got 'keep'"),
        ({"frame": "nowhere.csv"}, "expected a CSV or Parquet file that exists"),
        ({"frame": 3}, "expected a data frame or the path"),
    ],
)
def test_arguments_that_make_no_table_are_named(options, words):
    arguments = {"frame": pair_frame(), "state": "station", "action": "choice", **options}
    with pytest.raises(InvalidInput, match=words):
        rv.LinearReward.from_frame(**arguments)


def test_features_of_pairs_by_an_index_of_two_levels_name_the_way_in():
    mdp = rv.MDP(np.full((2, 2, 2), 0.5), 0.9, state_labels=["a", "b"], action_labels=["go", "stay"])
    pairs = pd.MultiIndex.from_product([["a", "b"], ["go", "stay"]], names=["state", "action"])
    reward = rv.LinearReward(pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}, index=pairs))
    demos = rv.simulate(mdp, mdp.uniform_policy(), 5, 5, seed=0)
    with pytest.raises(InvalidReward, match=r"features of pairs pass rv\.LinearReward\.from_frame"):
        rv.NFXP(reward).fit(mdp, demos)
