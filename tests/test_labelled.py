"""Labels come back in every result: tables, predictions, counterfactuals, simulations, messages, pictures."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from models import corridor
from revealed.errors import InvalidInput
from revealed.matching import impossible_moves

PLACES = ("office", "home", "road", "gym")  # not in the order of the alphabet
MOVES = ("stay", "go")
TRUTH = np.array([0.8, -0.5])


def model(states: Any = PLACES, actions: Any = MOVES, **options: Any) -> rv.MDP:
    """Staying stays with probability 0.9, going leads on around a circle."""
    S = 4
    T = np.zeros((S, 2, S))
    for s in range(S):
        T[s, 0, s], T[s, 0, (s + 1) % S] = 0.9, 0.1
        T[s, 1, (s + 1) % S] = 1.0
    return rv.MDP(T, **({"discount": 0.8, "state_labels": states, "action_labels": actions} | options))


def features() -> np.ndarray:
    x = np.zeros((4, 2, 2))
    x[:, 0, 0], x[:, 1, 1] = [1.0, 2.0, 0.0, -1.0], 1.0
    return x


REWARD = rv.LinearReward(features(), names=["comfort", "effort"])


def draw(mdp: rv.MDP, n: int = 100) -> rv.Demonstrations:
    return rv.simulate(mdp, rv.solve(mdp, features() @ TRUTH).policy, n, 30, seed=2)


@pytest.fixture(scope="module")
def fit() -> rv.Fit:
    return rv.NFXP(REWARD).fit(model(), draw(model()))


# tables


def test_tables_stand_under_their_labels(fit):
    assert fit.state_labels == PLACES
    assert fit.action_labels == MOVES
    counts = fit.demonstrations.counts
    arrays = {
        "policy": fit.policy, "reward": fit.reward, "q": fit.q, "visits": counts,
        "frequencies": counts / counts.sum(axis=1, keepdims=True),
    }  # fmt: skip
    for what, array in arrays.items():
        table = fit.table(what)
        assert (table.index.name, table.columns.name) == ("state", "action")
        for s, place in enumerate(PLACES):
            for a, move in enumerate(MOVES):
                assert table.loc[place, move] == array[s, a]
    assert fit.table().equals(fit.table("policy"))
    assert fit.table("value")["value"].to_dict() == dict(zip(PLACES, fit.value, strict=True))


def test_without_labels_states_and_actions_are_numbers():
    fit = rv.CCP(REWARD).fit(model(None, None), draw(model(None, None)))
    assert fit.state_labels == (0, 1, 2, 3)
    assert fit.action_labels == (0, 1)
    assert list(fit.table().index) == [0, 1, 2, 3]
    assert fit.table().loc[2, 1] == fit.policy[2, 1]


def test_what_cannot_be_done_has_no_value_and_who_was_not_seen_has_no_frequencies():
    feasible = np.array([[True, True], [True, False], [True, True], [True, True]])
    terminal = np.array([False, False, False, True])
    mdp = model(feasible=feasible, terminal=terminal)
    demos = rv.Demonstrations.from_trajectories([([0, 1, 1], [1, 0]), ([0, 0], [0])], 4, 2)
    fit = rv.CCP(REWARD, l2=0.1).fit(mdp, demos)
    blank = ~mdp.feasible
    np.testing.assert_array_equal(fit.table("q").isna().to_numpy(), blank)
    np.testing.assert_array_equal(fit.table("reward").to_numpy(), fit.reward)  # the reward model knows all pairs
    assert fit.reward[blank].all()
    np.testing.assert_array_equal(fit.table("policy").to_numpy()[blank], 0.0)
    assert fit.table("frequencies").isna().all(axis=1).tolist() == [False, False, True, True]
    table = fit.table("policy")
    table.iloc[0, 0] = 9.0
    assert fit.policy[0, 0] != 9.0  # a table is a copy


def test_an_unknown_table_is_an_error(fit):
    with pytest.raises(rv.errors.InvalidOption, match="one of policy, reward, q, visits, frequencies, value; got 'x'"):
        fit.table("x")


def test_labels_of_the_data_serve_where_the_model_has_none():
    """States k of the model are then those of the k-th label."""
    demos = draw(model())
    plain = model(None, None)
    fit = rv.NFXP(REWARD).fit(plain, demos)
    assert fit.state_labels == PLACES
    assert fit.action_labels == MOVES
    assert plain.state_labels is None  # the user's own stays as it is
    assert fit.mdp.transitions.matrix is plain.transitions.matrix
    changed = fit.counterfactual(mdp=plain.replace(discount=0.5), bands=None)
    assert changed.words == "discount 0.8 → 0.5"
    assert list(changed.frame("value").index) == list(PLACES)
    assert fit.simulate(5, 5, seed=0).state_labels == PLACES


def test_labels_of_several_columns_are_tuples():
    cells = ((0, "n"), (0, "s"), (1, "n"), (1, "s"))
    fit = rv.NFXP(REWARD).fit(model(cells), draw(model(cells)))
    assert list(fit.table().index) == list(cells)
    assert list(fit.table().index.names) == ["state_0", "state_1"]
    assert fit.table().at[(1, "n"), "go"] == fit.policy[2, 1]
    assert fit.predict((1, "n"), deterministic=True)[0] == MOVES[fit.policy[2].argmax()]
    answer, _ = fit.predict([(1, "n"), (0, "s")], deterministic=True)
    assert answer.tolist() == [MOVES[fit.policy[s].argmax()] for s in (2, 1)]
    assert list(fit.counterfactual({"effort": 0.0}, bands=None).frame("value").index) == list(cells)


def test_weights_of_states_are_called_as_the_states_are():
    fit = rv.CCP(rv.TabularReward(4), l2=1e-2).fit(model(), draw(model()))
    assert list(fit.params.index) == list(PLACES)
    assert fit.counterfactual({"gym": 1.0}, bands=None).words.startswith("gym ")
    unnamed = rv.CCP(rv.TabularReward(4), l2=1e-2).fit(model(None), draw(model(None)))
    assert list(unnamed.params.index) == ["state0", "state1", "state2", "state3"]
    own = rv.CCP(rv.TabularReward(4, names=list("abcd")), l2=1e-2).fit(model(), draw(model()))
    assert list(own.params.index) == list("abcd")
    np.testing.assert_array_equal(fit.theta, unnamed.theta)


# the theorem


@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_other_names_permute_the_results_and_change_nothing_else(method):
    """Labels in another order of the alphabet make another order of states: the estimates are the same, and tables
    hold the same numbers under the same names."""
    frame = draw(model()).to_frame(next_state="to")
    new_place = dict(zip(PLACES, ("d", "a", "c", "b"), strict=True))
    new_move = dict(zip(MOVES, ("b", "a"), strict=True))
    renamed = frame.assign(
        state=frame.state.map(new_place), action=frame.action.map(new_move), to=frame.to.map(new_place)
    )
    fits = [_from_data_alone(method, table) for table in (frame, renamed)]
    np.testing.assert_allclose(fits[1].theta, fits[0].theta, rtol=0, atol=1e-10)
    np.testing.assert_allclose(fits[1].bse, fits[0].bse, rtol=1e-7)
    assert fits[1].llf == pytest.approx(fits[0].llf, rel=1e-12)
    for what in ("policy", "reward", "q", "visits", "frequencies", "value"):
        expected = fits[0].table(what).rename(index=new_place, columns=new_move)
        found = fits[1].table(what).loc[expected.index, expected.columns]
        pd.testing.assert_frame_equal(found, expected, rtol=0, atol=1e-8)
    one, two = (fit.counterfactual({"effort": 0.0}, bands=None).frame("long_run") for fit in fits)
    pd.testing.assert_frame_equal(two.sort_index(), one.rename(index=new_place).sort_index(), atol=1e-8)


def _from_data_alone(method: Any, table: pd.DataFrame) -> rv.Fit:
    """States in the order of their labels; the model and its features follow that order."""
    roles: Any = {"id": "id", "time": "time", "state": "state", "action": "action", "next_state": "to"}
    orders: Any = {"states": sorted(table.state.unique()), "actions": sorted(table.action.unique())}
    demos = rv.Demonstrations.from_frame(table, **roles, **orders)
    assert demos.state_labels is not None
    assert demos.action_labels is not None
    place = [_old(label, PLACES, ("d", "a", "c", "b")) for label in demos.state_labels]
    move = [_old(label, MOVES, ("b", "a")) for label in demos.action_labels]
    x = features()[place][:, move]
    known = model(None, None).transitions.matrix.toarray().reshape(4, 2, 4)[place][:, move][:, :, place]
    options = {} if method is rv.NFXP else {"first_step": "smoothed"}
    reward = rv.LinearReward(x, names=["comfort", "effort"])
    return method(reward, tol=1e-12, **options).fit(rv.MDP(known, discount=0.8), demos)


def _old(label: str, old: tuple[str, ...], new: tuple[str, ...]) -> int:
    return old.index(label) if label in old else new.index(label)


# prediction


def test_predict_takes_labels_and_returns_labels(fit):
    best = [MOVES[a] for a in fit.policy.argmax(axis=1)]
    assert fit.predict("road", deterministic=True) == (best[2], None)
    answer, _ = fit.predict(["gym", "home"], deterministic=True)
    assert answer.tolist() == [best[3], best[1]]
    answer, _ = fit.predict(np.array([["gym", "home"], ["road", "office"]]), deterministic=True)
    assert answer.tolist() == [[best[3], best[1]], [best[2], best[0]]]
    answer, _ = fit.predict(pd.Series(["gym", "home"]), deterministic=True)
    assert answer.tolist() == [best[3], best[1]]


def test_whole_numbers_stay_indices_in_and_out(fit):
    assert fit.predict(2, deterministic=True)[0] == fit.policy[2].argmax()
    answer, _ = fit.predict([0, 3], deterministic=True)
    assert answer.dtype.kind == "i"
    by_name, _ = fit.predict(["office", "gym"], seed=3)
    assert [MOVES[a] for a in fit.predict([0, 3], seed=3)[0]] == by_name.tolist()  # the same draws


def test_labels_that_are_whole_numbers_are_labels_and_never_indices():
    years = (30, 20, 10, 0)
    fit = rv.NFXP(REWARD).fit(model(years), draw(model(years)))
    for zero in (0, "0", np.int64(0)):
        assert fit.predict(zero, deterministic=True)[0] == MOVES[fit.policy[3].argmax()]
    answer, _ = fit.predict(np.array([[20], [0]]), deterministic=True)
    assert answer.tolist() == [[MOVES[fit.policy[s].argmax()]] for s in (1, 3)]
    with pytest.raises(rv.errors.InvalidInput, match="one of 30, 20, 10, 0; got 1"):
        fit.predict(1)


def test_states_by_name_and_actions_by_number_where_actions_have_no_labels():
    fit = rv.NFXP(REWARD).fit(model(PLACES, None), draw(model(PLACES, None)))
    action, _ = fit.predict("road", deterministic=True)
    assert action == fit.policy[2].argmax()
    assert isinstance(action, int)


@pytest.mark.parametrize(
    ("obs", "message"),
    [
        ("hom", r"`obs`: expected one of office, home, road, gym; got 'hom'. Did you mean home\?"),
        (["road", "gim"], r"got 'gim' \(first at label 1\). Did you mean gym\?"),
        (["road", None], "state indices or labels"),
        (None, "state indices or labels"),
        (0.5, "got 0.5"),
        (9, r"indices in 0…3; got 9 \(first at position 0\)"),
    ],
)
def test_an_unknown_label_is_named_with_what_is_near(fit, obs, message):
    with pytest.raises(rv.errors.InvalidInput, match=message):
        fit.predict(obs)


CONDITIONS = (("good", "young"), ("good", "old"), ("bad", "young"), ("bad", "old"))


@pytest.mark.parametrize(
    ("labels", "obs", "message"),
    [
        (CONDITIONS, ("good", "yong"), r"got \('good', 'yong'\). Did you mean \(good, young\)\?"),
        (CONDITIONS, [("good", "yong")], r"got \('good', 'yong'\). Did you mean \(good, young\)\?"),
        (CONDITIONS, [("bad", "old"), ("bod", "old")], r"got \('bod', 'old'\) \(first at label 1\). Did you mean \("),
        (((0, 0), (0, 1), (1, 0), (1, 1)), (1, 2), r"one of \(0, 0\).*got \(1, 2\)"),  # not the states 1 and 2
    ],
)
def test_a_misspelt_tuple_is_named_as_a_whole(labels, obs, message):
    fit = rv.NFXP(REWARD).fit(model(labels), draw(model(labels)))
    with pytest.raises(rv.errors.InvalidInput, match=message):
        fit.predict(obs)


def test_tuples_and_lists_of_tuples_are_as_many_labels():
    fit = rv.NFXP(REWARD).fit(model(CONDITIONS), draw(model(CONDITIONS)))
    for several in (CONDITIONS[:2], list(CONDITIONS[:2])):  # as long as one label, but of labels
        assert fit.predict(several, deterministic=True)[0].shape == (2,)
    assert fit.predict([0, 1], deterministic=True)[0].shape == (2,)


def test_a_terminal_state_is_named():
    mdp = model(terminal=[False, False, False, True])
    fit = rv.CCP(REWARD, l2=0.1, first_step="smoothed").fit(mdp, draw(mdp))
    with pytest.raises(rv.errors.InvalidInput, match="non-terminal states; got state 'gym'"):
        fit.predict("gym")


# horizons


def test_on_a_horizon_states_are_called_by_time_and_label():
    base = model()
    mdp = base.unroll(30)
    assert mdp.state_labels is not None
    assert mdp.state_labels[:5] == ((0, "office"), (0, "home"), (0, "road"), (0, "gym"), (1, "office"))
    assert mdp.replace(discount=0.5).state_labels == mdp.state_labels
    fit = rv.NFXP(REWARD).fit(mdp, draw(base))
    table = fit.table()
    assert table.index.names == ["time", "state"]
    assert table.loc[(7, "road"), "go"] == fit.policy[7 * 4 + 2, 1]
    assert fit.predict((7, "road"), deterministic=True)[0] == MOVES[fit.policy[30].argmax()]
    assert fit.demonstrations.state_labels == mdp.state_labels
    again = rv.NFXP(REWARD).fit(mdp, fit.demonstrations)  # already on the horizon, and matched as such
    np.testing.assert_allclose(again.theta, fit.theta, atol=1e-10)
    resim = rv.NFXP(REWARD).fit(mdp, fit.simulate(20, 30, seed=0))
    assert resim.nobs == 600


def test_a_horizon_without_labels_still_tells_time_and_state():
    plain = model(None, None)
    fit = rv.NFXP(REWARD).fit(plain.unroll(30), draw(plain))
    assert fit.table().index.names == ["time", "state"]
    assert fit.table().loc[(7, 2), 1] == fit.policy[30, 1]
    before = fit.counterfactual({"effort": 0.0}, bands=None).frame("value")["before"]
    assert before.loc[(7, 2)] == pytest.approx(fit.value[30], rel=1e-12)


def test_labels_of_the_data_reach_a_horizon():
    fit = rv.NFXP(REWARD).fit(model(None, None).unroll(30), draw(model()))
    assert fit.state_labels[4] == (1, "office")
    assert fit.mdp.base is not None
    assert fit.mdp.base.state_labels == PLACES


# starts by name


STARTS: dict[str, Any] = {
    "label": "road",
    "index": 2,
    "dict": {"road": 1.0},
    "series": pd.Series([1.0], index=["road"]),
    "array": np.eye(4)[2],
    "shares": {"road": 1.0, "home": 0.0},
}


@pytest.mark.parametrize("initial", STARTS.values(), ids=list(STARTS))
def test_starts_may_be_named(fit, initial):
    expected = np.eye(4)[2]
    np.testing.assert_array_equal(model().start(initial), expected)
    np.testing.assert_array_equal(model(initial=initial).start(), expected)
    np.testing.assert_array_equal(model().unroll(3).start(_padded(initial)), np.append(expected, np.zeros(12)))
    assert fit.simulate(7, 3, seed=0, initial=initial).starts.tolist() == [0, 0, 7, 0]
    changed = fit.counterfactual({"effort": 0.0}, bands=None, initial=initial)
    np.testing.assert_array_equal(changed.before.start, expected)


def _padded(initial: Any) -> Any:
    return np.append(initial, np.zeros(12)) if isinstance(initial, np.ndarray) else initial


def test_a_series_in_the_states_own_order_is_an_array():
    p = pd.Series([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(model().start(p), p)
    np.testing.assert_allclose(model().start(pd.Series(p.to_numpy(), index=list(PLACES))[::-1]), p)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ("rode", r"`initial`: expected one of office, home, road, gym; got 'rode'. Did you mean road\?"),
        ({"road": 0.5}, "sum 0.5"),
        ({"road": "x"}, "a number for every state named; got 'x'"),
        ({"road": -1.0, "gym": 2.0}, r"got -1.0 \(first at state 'road'\)"),
        (7, "indices in 0…3; got 7"),
        (pd.Series([0.5, 0.5], index=["gym", "gym"]), "each state once; got 'gym' twice"),
    ],
)
def test_a_start_that_is_none_is_refused(initial, message):
    with pytest.raises(rv.errors.InvalidDistribution, match=message):
        model().start(initial)


def test_without_labels_a_name_is_no_start():
    with pytest.raises(rv.errors.InvalidDistribution, match="there are no labels; got 'road'"):
        model(None, None).start("road")


# messages


def test_messages_speak_in_labels():
    mdp = model(feasible=np.array([[True, True]] * 3 + [[True, False]]))
    wrong = np.full((4, 2), 0.5)
    cases = [
        (lambda: rv.Chain(mdp, wrong), "state 'gym', action 'go'"),
        (lambda: rv.Chain(mdp, mdp.uniform_policy() * [[1.0], [0.5], [1.0], [1.0]]), "state 'home'"),
        (lambda: rv.solve(mdp, np.where(np.arange(8).reshape(4, 2) == 5, np.nan, 0.0)), "state 'road', action 'go'"),
        (lambda: model(feasible=[[True, True], [False, False], [True, True], [True, True]]), "state 'home'; 1 such"),
        (lambda: rv.MDP(_spoilt(), state_labels=PLACES, action_labels=MOVES), "state 'home', action 'go'; 1 such row"),
        (lambda: rv.metrics.nll(wrong * 3, draw(model())), "state 'office', action 'stay'"),
        (lambda: rv.NFXP(REWARD).fit(mdp, draw(model())), "state 'gym', action 'go', agent"),
    ]
    for act, where in cases:
        with pytest.raises(rv.errors.InvalidInput) as caught:
            act()
        assert where in str(caught.value)


def _spoilt() -> np.ndarray:
    T = model().transitions.matrix.toarray().reshape(4, 2, 4)
    T[1, 1] *= 0.9
    return T


def test_at_discount_one_the_state_that_cannot_end_is_named():
    mdp = corridor(3, discount=1.0).replace(state_labels=list("abc"))
    with pytest.raises(rv.errors.ValueDoesNotExist, match="from state 'a'"):
        rv.solve_hard(mdp, np.zeros((3, 2)))
    with pytest.raises(rv.errors.ValueDoesNotExist, match="from state 'a'"):
        rv.Chain(mdp, mdp.uniform_policy())


def test_impossible_moves_are_told_by_name_whoever_has_the_names():
    trips = rv.Demonstrations.from_trajectories([([0, 2], [1])], 4, 2)
    told = "1 of 1 observed moves are impossible under the MDP's transitions (first from state 'office' by action 'go' "
    assert str(impossible_moves(model(), trips)).startswith(told + "to state 'road').")
    frame = pd.DataFrame({"i": [0, 0], "t": [0, 1], "s": ["a", "c"], "d": "go"})
    options: dict[str, Any] = {"states": list("abcd"), "actions": ["stay", "go"]}
    data = rv.Demonstrations.from_frame(frame, id="i", time="t", state="s", action="d", **options)
    assert "from state 'a' by action 'go' to state 'c'" in str(impossible_moves(model(None, None), data))


def test_a_label_that_the_model_does_not_know_is_named_with_what_is_near():
    many = tuple(f"zone {k}" for k in range(12))
    T = np.tile(np.eye(12)[:, None], (1, 2, 1))
    mdp = rv.MDP(T, 0.9, state_labels=many)
    frame = pd.DataFrame({"i": [0, 0], "t": [0, 1], "s": ["zone 3", "zome 11"], "d": [0, 1]})
    data = rv.Demonstrations.from_frame(frame, id="i", time="t", state="s", action="d")
    with pytest.raises(rv.errors.InvalidDemonstrations) as caught:
        rv.CCP(rv.TabularReward(12)).fit(mdp, data)
    known = ", ".join(many[:8]) + ", …"
    assert str(caught.value) == (
        f"`state_labels`: expected one of {known}; got 'zome 11' (first at state label 0). Did you mean zone 11?"
    )


# counterfactuals and pictures


def test_actions_are_found_by_the_text_of_their_labels():
    fit = rv.NFXP(REWARD).fit(model(PLACES, (10, 20)), draw(model(PLACES, (10, 20))))
    frames = [fit.counterfactual({"effort": 0.0}, bands=None).frame("policy", a) for a in (20, "20", np.int64(20))]
    for frame in frames:
        assert frame["before"].tolist() == frames[0]["before"].tolist()
    for action in ("200", 1):
        with pytest.raises(rv.errors.InvalidInput, match=rf"one of 10, 20; got {action!r}\.$"):
            fit.demand_curve("effort", [0.0], action=action, bands=None)
    assert fit.demand_curve("effort", [0.0], action="20", bands=None).action == 20


def test_pictures_have_the_labels_below_them(fit):
    world = rv.environments.World("w", model(), features(), features() @ TRUTH, fit.policy.copy())
    ticks = [t.get_text() for t in world.plot().axes[0].get_xticklabels()]
    assert ticks == list(PLACES)
    horizon = rv.NFXP(REWARD).fit(model().unroll(30), draw(model())).counterfactual({"effort": 0.0}, bands=None)
    assert [t.get_text() for t in horizon.plot(period=3).axes[0].get_xticklabels()] == list(PLACES)


def test_actions_that_were_sorted_are_told_by_label_where_states_are_indices():
    acts = ["up", "down", "up", "up", "up", "down", "up"]
    frame = pd.DataFrame({"id": 0, "t": range(7), "s": [0, 1, 0, 2, 0, 1, 2], "a": acts})
    orders: list[tuple[dict[str, Any], bool]] = [({}, True), ({"actions": ["up", "down"]}, False)]
    for order, told in orders:
        demos = rv.Demonstrations.from_frame(frame, id="id", time="t", state="s", action="a", **order)
        mdp = rv.MDP(rv.estimate_transitions(demos, smoothing=1.0), 0.5)
        fit = rv.NFXP(rv.TabularReward(3), l2=0.1).fit(mdp, demos)
        likely = fit.table("policy").idxmax(axis=1)
        expected = likely if told else likely.map(["up", "down"].index)
        assert fit.predict(2, deterministic=True)[0] == expected.loc[2]
        assert fit.predict([0, 1], deterministic=True)[0].tolist() == expected.loc[[0, 1]].tolist()
        assert set(fit.simulate(3, 4, seed=0).to_frame()["action"]) <= {"up", "down"}


def test_a_position_in_an_order_that_nobody_declared_asks_for_the_label_and_takes_it():
    panel = pd.DataFrame({"id": [0] * 6, "t": range(6), "s": list("abcabc"), "a": list("xyxyyx")})
    demos = rv.Demonstrations.from_frame(panel, id="id", time="t", state="s", action="a")
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="stay"), discount=0.9)
    fit = rv.NFXP(rv.TabularReward(3), l2=0.1).fit(mdp, demos)
    for ask in (lambda x: fit.predict(x), lambda x: fit.simulate(2, 3, initial=x)):
        with pytest.raises(InvalidInput, match=r"or pass the label itself, such as 'c'\.$"):
            ask(2)
        assert ask("c") is not None
    with pytest.raises(InvalidInput, match=r"or give the model labels, state_labels=\[\.\.\.\] in its order\.$"):
        fit.counterfactual(mdp=rv.MDP(np.full((3, 2, 3), 1 / 3), discount=0.9))
