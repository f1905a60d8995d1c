"""One rule at every door: labels are matched by label, positions need an order that was declared, and whole numbers
that are labels are never indices. Whatever is labelled may be permuted: no answer changes."""

import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import revealed as rv
from revealed.errors import InvalidInput, RevealedError
from revealed.labels import Order, is_derived
from revealed.positions import LabelledArray, in_order, labelled

STATES, ACTIONS = ("new", "mid", "old"), ("use", "fix", "buy")  # in the order that the user means; sorted it is another
S, A = len(STATES), len(ACTIONS)
THETA = np.array([1.0, -0.7])
FEATURES = np.random.default_rng(5).normal(size=(S, A, 2))
MOVES = np.random.default_rng(6).dirichlet(np.ones(S), size=(S, A))
START = np.array([0.7, 0.2, 0.1])
COLUMNS: dict[str, Any] = {"id": "id", "time": "time", "state": "state", "action": "action"}
ORDERS: dict[str, Any] = {"states": list(STATES), "actions": list(ACTIONS)}


def named(discount: float = 0.8, **more: Any) -> rv.MDP:
    return rv.MDP(MOVES, discount, state_labels=STATES, action_labels=ACTIONS, **more)


def panel(n: int = 150) -> pd.DataFrame:
    mdp = named()
    return rv.simulate(mdp, rv.solve(mdp, FEATURES @ THETA).policy, n, 12, seed=3, initial=START).to_frame()


def derived(**more: Any) -> rv.Demonstrations:
    return rv.Demonstrations.from_frame(panel(), **COLUMNS | more)


def derived_model() -> rv.MDP:
    return rv.MDP(rv.estimate_transitions(derived(), smoothing=1.0), 0.8)


def pairs_frame() -> pd.DataFrame:
    index = pd.MultiIndex.from_product([STATES, ACTIONS], names=["state", "action"])
    return pd.DataFrame(FEATURES.reshape(S * A, 2), index=index, columns=["x", "y"]).reset_index()


def by_label(mdp: rv.MDP | None = None, demos: rv.Demonstrations | None = None) -> rv.Fit:
    reward = rv.LinearReward.from_frame(pairs_frame(), state="state", action="action")
    return rv.NFXP(reward).fit(named() if mdp is None else mdp, derived() if demos is None else demos)


# -- who knows where an order comes from ------------------------------------------------------------------------------


def test_orders_are_derived_where_labels_were_sorted_and_declared_where_somebody_wrote_them_down():
    demos = derived()
    assert demos.state_labels == ("mid", "new", "old")
    assert is_derived(demos.state_labels)
    assert is_derived(demos.action_labels)
    for order in (derived(**ORDERS).state_labels, named().state_labels, named().unroll(3).state_labels):
        assert not is_derived(order)
    ordered = panel().assign(state=lambda f: pd.Categorical(f["state"], STATES, ordered=True))
    assert not is_derived(rv.Demonstrations.from_frame(ordered, **COLUMNS).state_labels)
    bins: Any = rv.discretize(panel().assign(miles=np.arange(len(panel())) % 7.0), "miles", bins=3)
    frame = panel().assign(miles=np.arange(len(panel())) % 7.0)
    assert not is_derived(rv.Demonstrations.from_frame(frame, **COLUMNS | {"state": bins}).state_labels)


def test_an_order_that_was_derived_stays_so_wherever_it_goes(tmp_path):
    demos, mdp = derived(), derived_model()
    others: list[Any] = [mdp.unroll(4), mdp.unroll(4).base, mdp.replace(discount=0.5)]
    for order in (mdp, mdp.replace(initial={"new": 1.0}), *others):
        assert is_derived(order.state_labels)
        assert is_derived(order.action_labels)
    assert is_derived(demos.subset(range(5)).state_labels)
    assert is_derived(demos.lift(mdp.unroll(12)).state_labels)
    fit = by_label(mdp)
    fit.save(tmp_path / "fit.zip")
    for kept in (rv.load(tmp_path / "fit.zip"), pickle.loads(pickle.dumps(fit))):
        assert is_derived(kept.mdp.state_labels)
        assert is_derived(kept.demonstrations.action_labels)
        with pytest.raises(RevealedError, match="not declared"):
            rv.solve(kept.mdp, np.zeros((S, A)))
    table = named().to_frame()
    options: Any = {"state": "state", "action": "action", "next_state": "next_state", "probability": "probability"}
    assert is_derived(rv.MDP.from_frame(table, **options, discount=0.8).state_labels)
    assert not is_derived(rv.MDP.from_frame(table, **options, discount=0.8, **ORDERS).action_labels)
    assert not is_derived(demos.state_labels and Order(demos.state_labels))  # whoever writes them down declares them


@pytest.mark.parametrize("labels", [("0", "1", "2"), (0, 1, 2), ("False", "True"), ("only",)])
def test_labels_that_are_their_own_positions_are_never_derived(labels):
    assert not is_derived(Order(labels, derived=True))
    assert is_derived(Order((10, 20, 30), derived=True))
    assert is_derived(Order((1, 2, 3), derived=True))


# -- positions against an order that nobody declared ------------------------------------------------------------------

TABLE, MASK = np.zeros((S, A)), np.ones((S, A), dtype=bool)
FRAME = pd.DataFrame(FEATURES @ THETA, STATES, ACTIONS)
POLICY = np.full((S, A), 1 / A)


class OwnReward:
    """A reward of a user's own, by position."""

    n_params, names = 1, ("a",)

    def init(self, seed: int | None = None) -> Any:
        return np.zeros(1)

    def value(self, theta: Any) -> Any:
        return theta * FEATURES[:, :, 0]

    def vjp(self, theta: Any, cotangent: Any) -> Any:
        return np.array([np.sum(cotangent * FEATURES[:, :, 0])])


DOORS: dict[str, Callable[[rv.MDP, rv.Demonstrations], Any]] = {
    "linear": lambda mdp, demos: rv.NFXP(rv.LinearReward(FEATURES)).fit(mdp, demos),
    "linear of states": lambda mdp, demos: rv.NFXP(rv.LinearReward(FEATURES[:, 0])).fit(mdp, demos),
    "linear, states named": lambda mdp, demos: rv.NFXP(rv.LinearReward(FEATURES, state_labels=STATES)).fit(mdp, demos),
    "frame that counts rows": lambda mdp, demos: rv.NFXP(rv.LinearReward(pd.DataFrame(FEATURES[:, 0]))).fit(mdp, demos),
    "tabular with names": lambda mdp, demos: rv.NFXP(rv.TabularReward(S, STATES)).fit(mdp, demos),
    "neural": lambda mdp, demos: rv.NFXP(rv.NeuralReward(FEATURES, hidden=(2,))).fit(mdp, demos),
    "jax": lambda mdp, demos: rv.NFXP(rv.JaxReward(lambda p, x: x @ p, np.zeros(2), FEATURES)).fit(mdp, demos),
    "own": lambda mdp, demos: rv.NFXP(OwnReward()).fit(mdp, demos),
    "first step": lambda mdp, demos: rv.CCP(by_frame(), first_step=POLICY).fit(mdp, demos),
    "first step features": lambda mdp, demos: by_step(rv.first_step.Logit(FEATURES), mdp, demos),
    "distance": lambda mdp, demos: by_step(rv.first_step.Kernel(distance=np.eye(S)), mdp, demos),
    "start": lambda mdp, demos: mdp.start(START),
    "start by index": lambda mdp, demos: mdp.start(0),
    "starts by index": lambda mdp, demos: mdp.start({0: 0.5, 1: 0.5}),
    "initial": lambda mdp, demos: mdp.replace(initial=START),
    "feasible": lambda mdp, demos: mdp.replace(feasible=MASK),
    "terminal": lambda mdp, demos: mdp.replace(terminal=[False, False, True]),
    "labels": lambda mdp, demos: rv.MDP(MOVES, 0.8, state_labels=demos.state_labels),
    "solve": lambda mdp, demos: rv.solve(mdp, TABLE),
    "solve hard": lambda mdp, demos: rv.solve_hard(mdp, TABLE),
    "chain": lambda mdp, demos: rv.Chain(mdp, POLICY),
    "chain, value": lambda mdp, demos: rv.Chain(mdp, FRAME * 0 + 1 / A).soft_value(TABLE),
    "chain, right side": lambda mdp, demos: rv.Chain(mdp, FRAME * 0 + 1 / A).solve(START),
    "counts": lambda mdp, demos: rv.first_step.estimate_policy(mdp, TABLE + 1.0),
    "simulate": lambda mdp, demos: rv.simulate(mdp, POLICY, 3, 3),
    "fit.simulate": lambda mdp, demos: by_label(mdp, demos).simulate(3, 3, initial=START),
    "predict": lambda mdp, demos: by_label(mdp, demos).predict([0, 1]),
    "action": lambda mdp, demos: by_label(mdp, demos).counterfactual({"x": 0.0}, bands=None).frame("policy", 1),
    "counterfactual reward": lambda mdp, demos: by_label(mdp, demos).counterfactual(reward=TABLE),
    "counterfactual start": lambda mdp, demos: by_label(mdp, demos).counterfactual({"x": 0.0}, initial=START),
    "counterfactual model": lambda mdp, demos: by_label(mdp, demos).counterfactual(mdp=rv.MDP(MOVES, 0.8)),
    "a model by position": lambda mdp, demos: by_label(rv.MDP(MOVES, 0.8), demos),
    "decisions by position": lambda mdp, demos: by_label(mdp, rv.Demonstrations.from_counts(np.ones((S, A)))),
    "nll": lambda mdp, demos: rv.metrics.nll(POLICY, demos),
    "evaluate": lambda mdp, demos: rv.evaluate(by_label(mdp, demos), mdp, TABLE),
    "epic": lambda mdp, demos: rv.metrics.epic(mdp, FRAME, TABLE),
    "starc": lambda mdp, demos: rv.metrics.starc(mdp, FRAME, np.zeros((S, A, S))),
    "coverage": lambda mdp, demos: rv.metrics.epic(mdp, FRAME, FRAME, np.ones((S, A))),
    "occupancy": lambda mdp, demos: rv.Chain(mdp, FRAME * 0 + 1 / A).occupancy_from(0, 0),
    "evd": lambda mdp, demos: rv.metrics.evd(mdp, TABLE, FRAME),
    "stochastic evd": lambda mdp, demos: rv.metrics.stochastic_evd(mdp, FRAME, POLICY),
    "population nll": lambda mdp, demos: rv.metrics.population_nll(mdp, FRAME * 0 + 1 / A, POLICY),
    "coordinates": lambda mdp, demos: rv.estimate_transitions(demos, coordinates=np.arange(3.0), bandwidth=1.0),
    "landing": lambda mdp, demos: rv.estimate_transitions(demos, landing=np.zeros((S, A, 1), dtype=int)),
    "map": lambda mdp, demos: rv.build_fit_report(by_label(mdp, demos), coordinates=np.eye(3)[:, :2]),
    "grid": lambda mdp, demos: rv.plots.plot_grid(Figure().subplots(), by_label(mdp, demos).value, (1, 3)),
}  # fmt: skip


def by_frame() -> rv.LinearReward:
    return rv.LinearReward.from_frame(pairs_frame(), state="state", action="action")


def by_step(step: Any, mdp: rv.MDP, demos: rv.Demonstrations) -> rv.Fit:
    return rv.CCP(by_frame(), first_step=step).fit(mdp, demos)


@pytest.mark.parametrize("door", DOORS)
def test_positions_are_refused_at_every_door_where_the_order_was_derived(door):
    with pytest.raises(InvalidInput, match=r"not declared; .* sorted \(0 = (mid|buy).*Declare the order when"):
        DOORS[door](derived_model(), derived())


@pytest.mark.parametrize("door", [d for d in DOORS if d not in ("map", "grid", "landing", "labels")])
def test_the_same_doors_are_open_where_the_order_was_declared(door):
    demos = derived(**ORDERS)
    assert DOORS[door](rv.MDP(rv.estimate_transitions(demos, smoothing=1.0), 0.8), demos) is not None


@pytest.mark.torch
def test_torch_rewards_are_by_position_too():
    import torch

    reward = rv.TorchReward(torch.nn.Linear(2, 1), FEATURES)
    with pytest.raises(InvalidInput, match="not declared"):
        rv.NFXP(reward).fit(derived_model(), derived())


def test_the_remedy_is_one_keyword_and_gives_the_estimate_that_was_meant():
    """Text actions are sorted, and features in the user's own order were silently those of other actions."""
    demos = derived(**ORDERS)
    fit = rv.NFXP(rv.LinearReward(FEATURES, ["x", "y"])).fit(named(), demos)
    np.testing.assert_allclose(fit.theta, by_label().theta, rtol=1e-8)
    np.testing.assert_allclose(fit.theta, THETA, atol=4 * fit.bse.max())


# -- what has labels goes in, in any order ----------------------------------------------------------------------------


def test_frames_series_and_arrays_of_a_fit_are_matched_by_label():
    mdp, fit = derived_model(), by_label(derived_model())
    mixed = FRAME.sample(frac=1.0, random_state=1).sample(frac=1.0, axis=1, random_state=2)
    best = rv.solve(mdp, mixed)
    here = pd.DataFrame(best.policy, mdp.state_labels, mdp.action_labels).loc[list(STATES), list(ACTIONS)]
    there = rv.solve(named().replace(transitions=_in_user_order(mdp)), FEATURES @ THETA).policy
    np.testing.assert_allclose(here, there, atol=1e-10)
    assert rv.metrics.nll(fit.policy, derived(**ORDERS)) == pytest.approx(rv.metrics.nll(fit, derived()), rel=1e-12)
    assert rv.metrics.nll(fit.table().iloc[::-1], derived()) == pytest.approx(rv.metrics.nll(fit, derived()), rel=1e-12)
    start = pd.Series([0.1, 0.7, 0.2], ["old", "new", "mid"])
    np.testing.assert_allclose(mdp.start(start), [0.2, 0.7, 0.1], rtol=1e-15)
    np.testing.assert_array_equal(mdp.start(dict(start)), mdp.start(start))
    assert mdp.replace(terminal=pd.Series([True, False, False], ["old", "new", "mid"])).terminal.tolist() == [0, 0, 1]
    offered = pd.DataFrame(True, STATES, ACTIONS)
    offered.loc["new", "buy"] = False
    assert not mdp.replace(feasible=offered).feasible[1, 0]
    given = rv.CCP(by_frame(), first_step=fit.table().iloc[::-1, ::-1]).fit(mdp, derived())
    np.testing.assert_array_equal(given.pi_tilde, fit.policy)
    cheap = fit.counterfactual(reward=fit.table("reward").iloc[::-1], bands=None)
    np.testing.assert_allclose(cheap.change.value, 0.0, atol=1e-9)


def _in_user_order(mdp: rv.MDP) -> np.ndarray:
    assert mdp.state_labels is not None
    assert mdp.action_labels is not None
    s, a = [mdp.state_labels.index(x) for x in STATES], [mdp.action_labels.index(x) for x in ACTIONS]
    return mdp.transitions.matrix.toarray().reshape(S, A, S)[np.ix_(s, a, s)]


def test_rows_that_are_missing_unknown_or_twice_are_named():
    for wrong, message in (
        (FRAME.drop(index="mid"), "a number for every state; got none for 1 of 3 .*'mid'"),
        (FRAME.rename(index={"mid": "mdi"}), "got 'mdi'.*Did you mean mid"),
        (FRAME.loc[["new", "mid", "mid"]], "each state once; got 'mid' twice"),
        (FRAME.drop(columns="use"), "a number for every action; got none for 1 of 3"),
    ):
        with pytest.raises(InvalidInput, match=message):
            rv.solve(named(), wrong)
    mdp = named(terminal=[False, False, True])
    reward = FRAME.drop(index="old")  # nothing is earned where everything ends
    np.testing.assert_array_equal(rv.solve(mdp, reward).policy, rv.solve(mdp, FRAME).policy)


def test_labelled_arrays_are_arrays_that_know_their_labels_as_long_as_they_have_their_form(tmp_path):
    policy: Any = by_label().policy
    assert isinstance(policy, np.ndarray)
    assert isinstance(policy, LabelledArray)
    assert policy.state_labels == STATES
    same = (policy[:], policy[:, :], policy[...], policy.copy(), copy(policy), deepcopy(policy), policy.astype(float))
    entry_by_entry = (policy + 0.0, 2 * policy, -policy, np.log(policy), policy + policy, policy > 0.5, policy * POLICY)
    entry_by_entry += (np.where(policy > 0.5, policy, 0.0), np.nan_to_num(policy), np.round(policy, 3), np.copy(policy))
    entry_by_entry += (policy.round(3), policy / policy.sum(axis=1, keepdims=True), policy - policy.mean())
    kept: tuple[Any, ...] = (*same, *entry_by_entry)
    for other in kept:
        assert other.state_labels == STATES
        assert other.action_labels == ACTIONS
    parts = (policy.T, policy.reshape(-1), np.asarray(policy), policy[0], policy[::-1], policy[[2, 0, 1]], policy[:2])
    for other in (
        *parts,
        policy.sum(axis=0),
        policy @ np.eye(A),
        np.sort(policy, axis=0),
        np.partition(policy, 1),
        np.roll(policy, 1),
    ):
        assert getattr(other, "state_labels", None) is None
    for other in (policy.sum(axis=1), policy.max(axis=1, keepdims=True), policy.mean(axis=-1)):
        assert (other.state_labels, other.action_labels) == (STATES, None)
    beside = policy.sum(axis=0, keepdims=True)
    assert (beside.state_labels, beside.action_labels) == (None, ACTIONS)
    assert isinstance(policy.sum(), float)
    assert repr(policy).startswith("array(")
    np.savez(tmp_path / "x.npz", policy=policy)
    assert type(np.load(tmp_path / "x.npz")["policy"]) is np.ndarray
    again = pickle.loads(pickle.dumps(policy))
    assert again.state_labels == STATES
    np.testing.assert_array_equal(again, np.asarray(policy))
    assert labelled(policy, rv.MDP(MOVES)) is policy


def test_results_of_arithmetic_are_matched_by_label():
    fit, other = by_label(), derived_model()
    for there in (fit.reward.copy(), fit.reward[:, :], 1.0 * fit.reward, fit.reward + np.zeros((S, A))):
        np.testing.assert_array_equal(rv.solve(other, there).value, rv.solve(other, fit.reward).value)
    doubled = fit.reward.copy()
    doubled *= 2.0
    np.testing.assert_array_equal(rv.solve(other, doubled).value, rv.solve(other, 2 * fit.table("reward")).value)
    demos, declared = derived(), named()
    shares = demos.counts / demos.counts.sum(axis=1, keepdims=True)
    by_name = pd.DataFrame(np.asarray(shares), demos.state_labels, demos.action_labels)
    for frequencies in (shares, shares.round(12), np.where(shares > 0.0, shares, 0.0)):
        evd = [rv.metrics.stochastic_evd(declared, FRAME, one) for one in (frequencies, by_name)]
        np.testing.assert_allclose(*evd, rtol=1e-9)
    for mixed in (shares * np.ones(A), (shares + np.zeros((S, 1))).round(3), 2 * (shares * np.ones((S, A)))):
        with pytest.raises(InvalidInput, match="not declared"):
            rv.metrics.stochastic_evd(declared, FRAME, mixed)
        with pytest.raises(InvalidInput, match="not declared"):
            rv.Demonstrations.from_counts(mixed)
    with pytest.raises(InvalidInput, match="not declared"):
        declared.start(demos.starts * np.ones(S))
    starts = by_label().demonstrations.starts
    assert np.add(starts, 1.0, out=np.zeros(S)).tolist() == (np.asarray(starts) + 1.0).tolist()


def test_arrays_with_different_labels_are_not_combined_by_position():
    here, there = by_label(), by_label(derived_model())
    message = r"must be the same where .*: new, mid, old and mid, new, old.*matched by label"
    sums: tuple[Callable[[], Any], ...] = (
        lambda: here.reward - there.reward,
        lambda: here.value + there.value,
        lambda: np.maximum(here.policy, there.policy),
        lambda: here.value * pd.Series(there.value, there.mdp.state_labels),
        lambda: np.multiply(here.reward, 1.0, out=there.reward.copy()),
    )
    for combined in sums:
        with pytest.raises(InvalidInput, match=message):
            combined()
    assert isinstance(here.value * pd.Series(here.value, STATES), pd.Series)
    mixed = there.reward + np.ones((S, A))  # positions in an order that nobody declared: no labels, hence refused
    with pytest.raises(InvalidInput, match="not declared"):
        rv.solve(there.mdp, mixed)


def test_counts_and_starts_of_demonstrations_know_their_labels():
    mdp, demos, ours = named(), derived(), derived(**ORDERS)
    one, two = FRAME, FRAME**2
    for what in ("counts", "weights"):
        distance = rv.metrics.epic(mdp, one, two, coverage=getattr(demos, what))
        assert distance == pytest.approx(rv.metrics.epic(mdp, one, two, coverage=np.asarray(getattr(ours, what))))
    start = mdp.start(demos.starts / demos.starts.sum())
    np.testing.assert_array_equal(start, np.asarray(ours.starts / ours.starts.sum()))
    np.testing.assert_array_equal(mdp.replace(initial=demos.starts / demos.starts.sum()).initial, start)
    for part in (demos.subset(range(5)), demos.reweighted(np.full(demos.n_agents, 2.0)), demos.discount_visits(0.9)):
        assert part.starts.state_labels == part.counts.state_labels == demos.state_labels  # pyright: ignore
    assert type(replace(demos, state_labels=None, action_labels=None).starts) is np.ndarray
    assert rv.metrics.epic(demos_model := derived_model(), one, two, coverage=demos.counts) == pytest.approx(
        rv.metrics.epic(demos_model, one, two, coverage=ours.counts)
    )


def test_values_of_reward_models_know_the_labels_of_their_rows():
    other, states = shuffled([2, 0, 1], [1, 2, 0]), FEATURES[:, 0] @ THETA
    index = pd.Index(STATES[::-1])
    of_states = pd.DataFrame(FEATURES[::-1, 0], index, ["x", "y"])
    labelled_states: tuple[Any, ...] = (
        rv.LinearReward(of_states),
        rv.LinearReward(FEATURES[::-1, 0], state_labels=STATES[::-1]),
        rv.LinearReward.from_frame(of_states.rename_axis("state").reset_index(), state="state"),
    )
    for reward in labelled_states:
        found = rv.solve(other, reward.value(THETA)).value
        np.testing.assert_array_equal(found, rv.solve(other, pd.Series(states, STATES)).value)
    reward = rv.LinearReward.from_frame(pairs_frame().iloc[::-1], state="state", action="action")
    np.testing.assert_allclose(rv.solve(other, reward.value(THETA)).value, rv.solve(other, FRAME).value, rtol=1e-13)
    assert rv.metrics.evd(named(), FRAME, reward.value(THETA)) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(InvalidInput, match=r"not declared; .* sorted \(0 = buy"):
        rv.solve(rv.MDP(MOVES, 0.8), reward.value(THETA))
    network = rv.NeuralReward(of_states, hidden=(2,))
    there = pd.Series(np.asarray(network.value(network.init()))[::-1, 0], STATES)
    np.testing.assert_array_equal(rv.solve(other, network.value(network.init())).value, rv.solve(other, there).value)
    fit = rv.NFXP(rv.TabularReward(S), l2=1e-3).fit(derived_model(), derived())
    value = fit.reward_model.value(fit.theta)
    np.testing.assert_array_equal(rv.solve(other, value).value, rv.solve(other, fit.reward).value)


@pytest.mark.parametrize("door", [rv.solve, rv.solve_hard, lambda mdp, model: rv.metrics.epic(mdp, FRAME, model)])
def test_a_reward_model_is_not_its_rewards_and_the_remedy_says_how_to_get_them(door):
    with pytest.raises(InvalidInput, match=r"Pass its rewards at some parameters: reward\.value\(theta\)"):
        door(named(), by_frame())
    door(named(), by_frame().value(THETA))


def test_tables_of_counts_and_starts_have_the_labels_of_their_index():
    demos, mixed = derived(), pd.DataFrame(np.asarray(derived().counts), *_orders_of(derived())).iloc[::-1, ::-1]
    starts = pd.Series(np.asarray(demos.starts), demos.state_labels)
    for table, first in ((mixed, starts), (mixed, dict(starts)), (demos.counts, demos.starts)):
        read = rv.Demonstrations.from_counts(table, first)
        np.testing.assert_array_equal(in_order(demos, read.counts, "counts"), demos.counts)
        np.testing.assert_array_equal(in_order(demos, read.starts, "starts", ("state",)), demos.starts)
        fit = rv.NFXP(rv.LinearReward(FEATURES)).fit(named(), read)
        np.testing.assert_allclose(fit.theta, rv.NFXP(rv.LinearReward(FEATURES)).fit(named(), demos).theta, rtol=1e-9)
    assert rv.Demonstrations.from_counts(pd.DataFrame(np.ones((S, A)))).state_labels is None
    with pytest.raises(InvalidInput, match=r"one of mid, new, old; got 'nwe'.*Did you mean new"):
        rv.Demonstrations.from_counts(demos.counts, {"nwe": 1.0})


def _orders_of(named: Any) -> tuple[list[Any], list[Any]]:
    return list(named.state_labels), list(named.action_labels)


def test_states_that_a_crosstab_leaves_out_do_not_move_the_others():
    seen = pd.crosstab(pd.Series([2, 2, 0], name="state"), pd.Series([1, 1, 0], name="action"))
    demos = rv.Demonstrations.from_counts(seen)
    assert demos.state_labels == (0, 2)
    mdp = rv.MDP(MOVES[:, :2], 0.8, state_labels=[0, 1, 2])
    fit = rv.NFXP(rv.TabularReward(S), l2=0.1).fit(mdp, demos)
    assert fit.demonstrations.counts.tolist() == [[1, 0], [0, 0], [0, 2]]
    with pytest.raises(InvalidInput, match="3 states and 2 actions"):
        rv.NFXP(rv.TabularReward(S), l2=0.1).fit(rv.MDP(MOVES[:, :2], 0.8), demos)
    whole = rv.Demonstrations.from_counts(pd.DataFrame(np.eye(3)[:, :2] + 1.0))  # its numbers are labels, if there are
    moved = rv.NFXP(rv.TabularReward(S), l2=0.1).fit(mdp.replace(state_labels=[2, 0, 1]), whole)  # such labels
    assert moved.demonstrations.counts.tolist() == [[1, 1], [2, 1], [1, 2]]


@pytest.mark.parametrize("years", [(2, 0, 1), (30, 10, 20)])
def test_the_likelihood_of_whole_numbers_that_are_labels_is_that_of_the_fit(years):
    mdp = rv.MDP(MOVES, 0.8, state_labels=years, action_labels=[2, 0, 1])
    told = rv.simulate(mdp, rv.solve(mdp, FEATURES @ THETA).policy, 40, 9, seed=1).to_frame()
    demos = rv.Demonstrations.from_frame(told, **COLUMNS)
    fit = rv.NFXP(rv.LinearReward(FEATURES)).fit(mdp, demos)
    for policy in (fit.policy, fit.table(), fit.table().iloc[::-1, ::-1], rv.solve(mdp, fit.reward)):
        assert rv.metrics.nll(policy, demos) == pytest.approx(rv.metrics.nll(fit, demos), rel=1e-9)


def test_what_is_lifted_to_a_horizon_is_matched_by_label():
    for mdp in (shuffled([2, 0, 1], [1, 2, 0]), derived_model()):
        timed = mdp.unroll(3)
        mixed, fit = FRAME.iloc[::-1, ::-1], by_label()
        best = rv.solve(timed, timed.lift(rv.solve(mdp, FRAME).reward)).value
        np.testing.assert_array_equal(rv.solve(timed, timed.lift(mixed)).value, best)
        there = rv.solve(timed, timed.lift(rv.solve(mdp, fit.reward).reward)).value
        np.testing.assert_array_equal(rv.solve(timed, timed.lift(fit.reward)).value, there)
        features = pd.DataFrame(FEATURES[:, 0], STATES, ["x", "y"])
        lifted = timed.lift(features)
        assert lifted.shape == (4 * S, 2)
        np.testing.assert_array_equal(lifted[:S], features.loc[list(mdp.state_labels or ())])
        np.testing.assert_array_equal(timed.lift(mixed["use"]), timed.lift(FRAME["use"]))


def test_parameters_with_names_are_matched_by_name():
    fit: Any = by_label()
    for theta in (fit.params[["y", "x"]], dict(fit.params[["y", "x"]])):
        np.testing.assert_array_equal(fit.reward_model.value(theta), fit.reward_model.value(fit.theta))
        again = rv.NFXP(by_frame(), start=theta, max_iter=1).fit(named(), derived())
        assert again.llf == rv.NFXP(by_frame(), start=fit.theta, max_iter=1).fit(named(), derived()).llf
    np.testing.assert_array_equal(fit.reward_model.value(pd.Series(fit.theta)), fit.reward_model.value(fit.theta))
    for wrong in ({"x": 1.0, "z": 2.0}, pd.Series([1.0], ["x"])):
        with pytest.raises(InvalidInput, match="`theta`: expected a number for each of x, y; got numbers for x"):
            fit.reward_model.value(wrong)
        with pytest.raises(InvalidInput, match="`start`: expected a number for each of x, y; got numbers for x"):
            rv.NFXP(by_frame(), start=wrong).fit(named(), derived())


def test_chains_and_first_steps_match_by_label():
    for mdp in (named(), shuffled([2, 0, 1], [1, 2, 0]), derived_model()):
        policy = by_label(mdp).policy
        chain, ours = rv.Chain(mdp, policy), np.asarray(rv.solve(mdp, FRAME).reward)
        bare = rv.Chain(rv.MDP(mdp.transitions.matrix, 0.8), np.asarray(policy))
        for table in (FRAME, FRAME.iloc[::-1, ::-1], by_frame().value(THETA)):
            np.testing.assert_allclose(chain.soft_value(table), bare.soft_value(ours), rtol=1e-13)
        one = pd.Series([1.0, 2.0, 3.0], STATES)
        here = one[list(mdp.state_labels or ())].to_numpy()
        np.testing.assert_array_equal(chain.solve(one[::-1]), bare.solve(here))
        np.testing.assert_array_equal(chain.solve_transpose(one[::-1]), bare.solve_transpose(here))
        found = rv.first_step.estimate_policy(mdp, derived(**ORDERS).counts)
        np.testing.assert_array_equal(found, rv.first_step.estimate_policy(mdp, derived().counts))


def test_what_a_model_hands_out_it_takes_back():
    mdp = derived_model().replace(initial={"new": 1.0})
    demos = rv.simulate(mdp, mdp.uniform_policy(), 3, 3, seed=0, initial=mdp.start())
    assert demos.n_decisions == 9
    assert rv.Chain(mdp, mdp.uniform_policy()).occupancy() == pytest.approx(
        rv.Chain(mdp, mdp.uniform_policy()).occupancy(mdp.start())
    )


def test_an_array_of_one_model_is_brought_into_the_order_of_another():
    fit, other = by_label(), derived_model()
    there = in_order(other, fit.policy, "policy")
    assert pd.DataFrame(there, other.state_labels, other.action_labels).loc["old", "use"] == fit.policy[2, 0]
    with pytest.raises(InvalidInput, match="not declared"):
        in_order(rv.MDP(MOVES), by_label(derived_model()).policy, "policy")
    assert in_order(rv.MDP(MOVES), fit.policy, "policy") is not None  # declared: positions are meant


# -- whole numbers that are labels ------------------------------------------------------------------------------------

YEARS = (30, 10, 20)


def aged(**more: Any) -> rv.MDP:
    return rv.MDP(MOVES, 0.8, state_labels=YEARS, **more)


@pytest.mark.parametrize("initial", [{10: 0.5, 20: 0.5}, pd.Series({20: 0.5, 10: 0.5}), {"10": 0.5, np.int64(20): 0.5}])
def test_numbers_that_are_labels_are_starts_by_label(initial):
    options: Any = {"state": "state", "action": "action", "next_state": "next_state", "probability": "probability"}
    table = rv.MDP.from_frame(aged().to_frame(), **options, discount=0.8, states=YEARS, terminal=[30], initial=initial)
    for start in (aged(initial=initial).initial, aged().start(initial), table.initial):
        np.testing.assert_array_equal(start, [0.0, 0.5, 0.5])
    fit = rv.NFXP(rv.LinearReward(FEATURES)).fit(aged(), rv.simulate(aged(), POLICY, 40, 9, seed=0))
    assert set(fit.simulate(50, 1, seed=0, initial=initial).to_frame()["state"]) == {10, 20}
    np.testing.assert_array_equal(fit.counterfactual(bands=None, params=fit.theta, initial=initial).after.start[0], 0.0)


def test_numbers_that_are_no_label_are_refused_and_never_indices():
    for wrong in ({1: 0.5, 2: 0.5}, 1, {0: 1.0}):
        with pytest.raises(InvalidInput, match=r"one of 30, 10, 20; got [01]"):
            aged().start(wrong)
    fractions = rv.MDP(MOVES, 0.8, state_labels=[0.5, 1.0, 1.5])
    with pytest.raises(InvalidInput, match=r"one of 0.5, 1.0, 1.5; got 2"):
        fractions.start(2)
    assert named().start(2).tolist() == [0.0, 0.0, 1.0]  # no label is a number, and the order was declared


def test_whole_numbers_in_a_table_are_labels_where_the_model_has_numbers_as_labels():
    for years in (YEARS, (2, 0, 1)):
        mdp = rv.MDP(MOVES, 0.8, state_labels=years)
        demos = rv.simulate(mdp, rv.solve(mdp, FEATURES @ THETA).policy, 80, 9, seed=1)
        read = rv.Demonstrations.from_frame(demos.to_frame(), **COLUMNS)
        fits = [rv.NFXP(rv.LinearReward(FEATURES)).fit(mdp, each) for each in (demos, read)]
        np.testing.assert_allclose(fits[1].theta, fits[0].theta, rtol=1e-9)
        options: Any = {"state": "state", "action": "action", "next_state": "next_state", "probability": "probability"}
    table = rv.MDP.from_frame(
        mdp.to_frame(), **options, discount=0.8
    )  # states 0, 1, 2; the decisions' order is 2, 0, 1
    fit = rv.NFXP(rv.TabularReward(S), l2=1e-3).fit(table, demos)
    own = rv.NFXP(rv.TabularReward(S), l2=1e-3).fit(mdp, demos)
    np.testing.assert_allclose(fit.theta, own.params[["0", "1", "2"]], rtol=1e-7)


def test_an_index_that_counts_rows_is_one_of_labels_where_labels_are_such_numbers():
    mdp = rv.MDP(MOVES, 0.8, state_labels=[2, 0, 1])
    np.testing.assert_array_equal(mdp.start(pd.Series([0.5, 0.3, 0.2])), [0.2, 0.5, 0.3])
    np.testing.assert_array_equal(aged().start(pd.Series([0.5, 0.3, 0.2])), [0.5, 0.3, 0.2])  # rows, in declared order
    with pytest.raises(InvalidInput, match="got 0"):
        rv.MDP(MOVES, 0.8, state_labels=[1, 2, 3]).start(pd.Series([0.5, 0.3, 0.2]))
    frame = pd.DataFrame({"x": [1.0, 5.0, 9.0]})
    demos = rv.simulate(mdp, POLICY, 30, 5, seed=0)
    matrix: Any = rv.NFXP(rv.LinearReward(frame)).fit(mdp, demos).reward_model
    np.testing.assert_array_equal(matrix.matrix[:, 0], [9.0, 1.0, 5.0])


# -- other models -----------------------------------------------------------------------------------------------------


def shuffled(s: list[int], a: list[int], **more: Any) -> rv.MDP:
    labels: Any = {"state_labels": [STATES[k] for k in s], "action_labels": [ACTIONS[k] for k in a]}
    return rv.MDP(MOVES[np.ix_(s, a, s)], 0.8, **labels, **more)


@pytest.mark.parametrize("horizon", [None, 12])
@pytest.mark.parametrize("reward", [lambda: rv.LinearReward(FEATURES), by_frame, lambda: rv.TabularReward(S)])
def test_a_counterfactual_on_the_same_model_in_another_order_changes_nothing(reward, horizon):
    model, other = named(), shuffled([2, 0, 1], [1, 2, 0])
    if horizon:
        model, other = model.unroll(horizon), other.unroll(horizon)
    fit = rv.NFXP(reward(), l2=1e-3).fit(model, derived())
    answer = fit.counterfactual(mdp=other, bands=None)
    assert answer.words == "the same model"
    for what in ("policy", "value", "q", "occupancy", "long_run", "frequencies", "welfare"):
        change = getattr(answer.change, what)
        np.testing.assert_allclose(np.where(np.isnan(change), 0.0, change), 0.0, atol=1e-9)
    assert answer.after.welfare == pytest.approx(answer.before.welfare, abs=1e-9)
    later = fit.counterfactual(mdp=other.replace(discount=0.5) if not horizon else other, bands=None)
    same = fit.counterfactual(mdp=model.replace(discount=0.5) if not horizon else model, bands=None)
    pd.testing.assert_frame_equal(later.table(), same.table(), atol=1e-9)
    assert later.words == same.words


def test_models_are_compared_by_what_they_say(tmp_path):
    demos = derived(**ORDERS)
    estimated = rv.MDP(rv.estimate_transitions(demos, smoothing=0.0, unseen="stay"), 0.8)
    fit = rv.NFXP(rv.LinearReward(FEATURES)).fit(estimated, demos)
    loaded = rv.load(fit.save(tmp_path / "fit.zip"))
    again = rv.MDP(rv.estimate_transitions(derived(**ORDERS), unseen="stay"), 0.8)
    for one in (fit, loaded):
        for mdp in (fit.mdp, loaded.mdp, again):
            answer = one.counterfactual(mdp=mdp, bands="bootstrap", reps=3, jobs=1)
            assert answer.words == "the same model"
            assert answer.change.se.welfare == pytest.approx(0.0, abs=1e-12)  # T follows in every draw
        assert one.counterfactual(mdp=again.replace(discount=0.5), bands=None).words == "discount 0.8 → 0.5"
        moved = one.counterfactual(mdp=again.replace(initial={"new": 1.0}), bands=None)
        assert moved.words == "changed start distribution"
    other = MOVES[:, ::-1]
    assert fit.counterfactual(mdp=named().replace(transitions=other), bands=None).words == "changed transitions"


def test_positions_beside_two_orders_and_states_that_are_others_are_refused():
    fit, other = rv.NFXP(rv.LinearReward(FEATURES)).fit(named(), derived()), shuffled([2, 0, 1], [0, 1, 2])
    orders = r"different orders \(new, mid, old and old, new, mid\)"
    for given in ({"reward": FEATURES @ THETA}, {"initial": START}, {"reward": rv.LinearReward(FEATURES)}):
        with pytest.raises(InvalidInput, match=orders):
            fit.counterfactual(mdp=other, bands=None, **given)  # pyright: ignore[reportArgumentType]
    good = fit.counterfactual(mdp=other, reward=FRAME, initial={"new": 1.0}, bands=None)
    here = fit.counterfactual(reward=FRAME, initial={"new": 1.0}, bands=None)
    assert good.after.welfare == pytest.approx(here.after.welfare)
    renamed = rv.MDP(MOVES, 0.8, state_labels=["a", "b", "c"], action_labels=ACTIONS)
    with pytest.raises(
        InvalidInput, match=r"the states of the fit's model \(new, mid, old\); got others.*Pass reward="
    ):
        fit.counterfactual(mdp=renamed)
    apart = fit.counterfactual(mdp=renamed, reward=rv.LinearReward(FEATURES), bands=None)
    assert np.isnan(apart.change.policy).all()  # states that have nothing to do with each other
    assert apart.after.begins == "uniform over the non-terminal states"


def test_the_same_decisions_on_a_model_in_another_order_are_the_same_data():
    one = by_label()
    rows = pairs_frame().assign(z=lambda frame: frame["x"] ** 2)
    for demos in (derived(), rv.Demonstrations.from_counts(derived().counts)):
        first = by_label(named(), demos)
        for mdp in (shuffled([2, 0, 1], [1, 2, 0]), derived_model()):
            more = rv.NFXP(rv.LinearReward.from_frame(rows, state="state", action="action")).fit(mdp, demos)
            assert "different" not in str(rv.compare_fits([first, more]))
        other = rv.NFXP(rv.LinearReward.from_frame(rows.drop(columns="y"), state="state", action="action"))
        there, here = (other.fit(mdp, demos) for mdp in (shuffled([2, 0, 1], [1, 2, 0]), named()))
        found, wanted = rv.vuong_test(first, there), rv.vuong_test(first, here)
        assert found.statistic == pytest.approx(wanted.statistic, rel=1e-6)
    there = rv.NFXP(rv.LinearReward.from_frame(rows, state="state", action="action")).fit(
        shuffled([2, 0, 1], [1, 2, 0]), derived()
    )
    assert rv.likelihood_ratio_test(one, there).statistic == pytest.approx(2.0 * (there.llf - one.llf), abs=1e-9)
    ccp = rv.CCP(by_frame()).fit(shuffled([2, 0, 1], [1, 2, 0]), derived())
    assert rv.difference_test(one, ccp, reps=5, jobs=1).names == ("x", "y")
    with pytest.raises(InvalidInput, match="other data"):
        rv.vuong_test(one, by_label(named(), rv.simulate(named(), POLICY, 9, 9, seed=0)))


def test_plots_match_labelled_values_with_names_and_with_each_other():
    fit, there = by_label(), by_label(derived_model())
    ax = Figure().subplots()
    rv.plots.plot_states(ax, fit.value, fit.policy, names=STATES[::-1], actions=ACTIONS[::-1])
    bars: Any = ax.patches[0]
    np.testing.assert_array_equal(bars.get_data().values, np.asarray(fit.value)[::-1])
    lines = ax.figure.axes[1].lines
    np.testing.assert_array_equal(lines[0].get_ydata(), np.asarray(fit.policy)[::-1, 2])
    ax = Figure().subplots()
    rv.plots.plot_states(ax, fit.value, there.policy, names=["N", "M", "O"])  # names of another kind are captions
    moved = in_order(fit.mdp, there.policy, "policy")
    np.testing.assert_array_equal(ax.figure.axes[1].lines[0].get_ydata(), moved[:, ACTIONS.index("buy")])
    cells = [(1, 0), (0, 1), (0, 0), (1, 1)]
    values = labelled(np.array([3.0, 2.0, 1.0, 4.0]), rv.MDP(np.eye(4)[:, None, :], 0.9, state_labels=cells))
    image = rv.plots.plot_grid(Figure().subplots(), values, (2, 2))
    assert np.asarray(image.get_array()).tolist() == [[1.0, 2.0], [3.0, 4.0]]


# -- permuting whatever is labelled -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_no_answer_depends_on_the_order_of_anything_that_is_labelled(seed):
    """Rows of panels, of transitions and of features, orders that are declared or left to us: all answers are one."""
    rng = np.random.default_rng(seed)
    s, a = list(rng.permutation(S)), list(rng.permutation(A))
    orders: Any = {"states": [STATES[k] for k in s], "actions": [ACTIONS[k] for k in a]} if seed % 2 else {}
    options: Any = {"state": "state", "action": "action", "next_state": "next_state", "probability": "probability"}

    def mix(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.sample(frac=1.0, random_state=int(rng.integers(99)))

    mdp = rv.MDP.from_frame(mix(named().to_frame()), **options, discount=0.8, **orders)
    demos = rv.Demonstrations.from_frame(mix(panel()), **COLUMNS, **({} if seed < 2 else orders))
    reward = rv.LinearReward.from_frame(mix(pairs_frame()), state="state", action="action")
    found, expected = rv.NFXP(reward).fit(mdp, demos), by_label()
    assert _answers(found, mix) == pytest.approx(_answers(expected, lambda frame: frame), rel=1e-6, abs=1e-9)


def _answers(fit: rv.Fit, mix: Callable[[pd.DataFrame], pd.DataFrame]) -> dict[str, float]:
    """Parameters, errors, welfare, metrics and tables of a fit, by name."""
    cells = [(s, a) for s in STATES for a in ACTIONS]
    truth, other = mix(FRAME), fit.mdp.replace(discount=0.6)
    found = {f"theta {k}": v for k, v in fit.params.items()} | {f"se {k}": v for k, v in fit.bse.items()}
    found |= {f"{what} {c}": fit.table(what).loc[c] for what in ("policy", "reward", "q", "visits") for c in cells}
    answer = fit.counterfactual({"x": 0.0}, mdp=other, initial=dict(zip(STATES, START, strict=True)))
    found |= {f"share {a}": answer.table().loc[a, "change"] for a in ACTIONS}
    found |= {"welfare": answer.change.welfare, "se of welfare": answer.change.se.welfare, "llf": fit.llf}
    found |= {f"value {s}": answer.frame("value").loc[s, "after"] for s in STATES}
    held_out = rv.Demonstrations.from_frame(mix(panel(20)), **COLUMNS, states=STATES[::-1], actions=ACTIONS[::-1])
    found |= {f"metric {k}": v for k, v in rv.evaluate(fit, fit.mdp, truth, held_out).items()}
    found["epic to itself"] = rv.metrics.epic(fit.mdp, fit.table("reward"), fit.reward)
    found["nll"] = rv.metrics.nll(fit.policy, held_out)
    found["stochastic evd"] = rv.metrics.stochastic_evd(named(), truth, fit.policy)
    expert = rv.solve(named(), truth).policy
    found["population nll"] = rv.metrics.population_nll(fit.mdp, expert, fit.policy)
    found |= {f"predict {s}": ACTIONS.index(fit.predict(s, deterministic=True)[0]) for s in STATES}
    return {name: float(value) for name, value in found.items()}


def test_turns_are_not_matched_by_their_numbers_where_links_change_places():
    """Which turn of a link is its first depends on the order of the links, so that labels of links do not suffice."""
    links = pd.DataFrame({"link": ["ab", "bc", "ca", "ac", "cb", "ba"], "from": list("abcacb"), "to": list("bcacba")})
    links["time"] = np.arange(1.0, 7.0)
    one, other = (rv.RoadNetwork.from_frame(table) for table in (links, links.iloc[[5, 3, 1, 0, 2, 4]]))
    rewards = one.reward(["time"]).value(np.array([-1.0]))
    for mdp in (other.mdp, other.mdp.toward("ca")):
        with pytest.raises(
            InvalidInput, match="`reward` lists the states in a different order and has no action labels, so"
        ):
            rv.solve(mdp, rewards)
    assert_same = np.testing.assert_allclose
    there = rv.solve(other.mdp.toward("ca"), other.reward(["time"]).value(np.array([-1.0])))
    here = rv.solve(one.mdp.toward("ca"), rewards)
    assert_same(pd.Series(here.value, one.links)[list(other.links)], there.value)


def test_labels_that_read_alike_or_are_missing_are_refused():
    """1 and "1" are matched as one, and the text "nan" is not a missing label."""
    moves = np.full((3, 1, 3), 1.0 / 3.0)
    for labels, says in (
        ([1, "1", 2], "1 and '1', which count as the same"),
        (["a", np.nan, "b"], "labels without missing values; got nan"),
        ([1, None, 2], "labels without missing values; got None"),
    ):
        with pytest.raises(InvalidInput, match=says):
            rv.MDP(moves, 0.9, state_labels=labels)
        with pytest.raises(InvalidInput, match="distinct labels"):
            rv.Demonstrations.from_trajectories([(["a"], [0])], n_actions=1, states=labels)


def test_levels_of_an_index_are_matched_by_their_names():
    """Of a table of a fit or a start whose levels were swapped: the parts of a label have names."""
    labels = [(0, 0), (0, 1), (1, 0), (1, 1)]
    mdp = rv.MDP(np.full((4, 1, 4), 0.25), 0.9, state_labels=labels)
    index = pd.MultiIndex.from_tuples(labels, names=["state_0", "state_1"])
    rewards = pd.Series([1.0, 2.0, 3.0, 4.0], index=index)
    there = rewards.swaplevel()
    np.testing.assert_array_equal(rv.solve(mdp, there).value, rv.solve(mdp, rewards).value)
    np.testing.assert_array_equal(mdp.start(there / 10.0), mdp.start(rewards / 10.0))


# -- parts of labels are matched by the names of their columns --------------------------------------------------------

CELLS = [(x, y) for x in (0, 1) for y in (0, 1)]  # swapped parts are labels, too: nothing but the names can tell


def walk(columns=("x", "y"), n=60):
    """A panel of moves between four cells, the state in two columns."""
    rng = np.random.default_rng(7)
    rows = []
    for i in range(n):
        s = int(rng.integers(4))
        for t in range(6):
            a = int(rng.random() < (0.2, 0.5, 0.9, 0.4)[s])
            rows.append((i, t, *CELLS[s], "ab"[a]))
            s = int(rng.integers(4)) if a else (s + 1) % 4
    frame = pd.DataFrame(rows, columns=["id", "t", "x", "y", "a"])
    read = {"id": "id", "time": "t", "state": list(columns), "action": "a", "actions": ["a", "b"]}
    return rv.Demonstrations.from_frame(frame, **read, states=CELLS)


@lru_cache
def cells():
    demos = walk()
    mdp = rv.MDP(rv.estimate_transitions(demos, smoothing=0.5), 0.9)
    return mdp, demos, rv.NFXP(rv.TabularReward(4), l2=1e-2).fit(mdp, demos)


def swapped(table):
    """The same table, whose levels stand in another order."""
    levels = ["time", "y", "x"] if "time" in table.index.names else ["y", "x"]
    return table.reorder_levels(levels).sort_index()


def test_levels_of_a_table_are_matched_by_name():
    mdp, demos, fit = cells()
    assert fit.table("policy").index.names == ["x", "y"]
    for name in ("policy", "reward"):
        table = fit.table(name)
        turned = in_order(mdp, swapped(table), name)
        np.testing.assert_array_equal(turned, getattr(fit, name))
        np.testing.assert_array_equal(in_order(mdp, table.sample(frac=1.0, random_state=1), name), turned)
    policy = fit.table("policy")
    assert rv.metrics.nll(swapped(policy), demos) == pytest.approx(rv.metrics.nll(policy, demos), rel=1e-14)
    counts = rv.Demonstrations.from_counts(swapped(fit.table("visits")))
    again = rv.NFXP(rv.TabularReward(4), l2=1e-2).fit(mdp, counts)
    np.testing.assert_allclose(again.policy, fit.policy, atol=1e-6)
    other = policy.rename_axis(["u", "v"])  # other names: parts by their place
    np.testing.assert_array_equal(in_order(mdp, other, "policy"), fit.policy)


def test_levels_of_starts_are_matched_by_name():
    mdp, _, _ = cells()
    starts = pd.Series([0.7, 0.2, 0.1], pd.MultiIndex.from_tuples([(0, 1), (1, 1), (0, 0)], names=["x", "y"]))
    by_hand = [0.1, 0.7, 0.0, 0.2]
    for given in (starts, swapped(starts)):
        np.testing.assert_allclose(mdp.start(given), by_hand)
        np.testing.assert_allclose(mdp.replace(initial=given).start(), by_hand)
        np.testing.assert_allclose(mdp.unroll(2).start(given)[:4], by_hand)


def test_levels_of_a_horizon_are_matched_by_name():
    _, demos, _ = cells()
    mdp = cells()[0].unroll(6)
    fit = rv.NFXP(rv.TabularReward(4), l2=1e-2).fit(mdp, demos)
    table = fit.table("policy")
    assert table.index.names == ["time", "x", "y"]
    for turned in (swapped(table), table.reorder_levels(["y", "time", "x"])):
        np.testing.assert_array_equal(in_order(mdp, turned, "policy"), fit.policy)


@pytest.mark.parametrize("source", ["from_frame", "index", "labels"])
def test_features_of_several_columns_are_matched_by_name(source):
    mdp, demos, _ = cells()
    numbers = np.array([[0.0, 1.0], [1.0, 0.5], [3.0, 0.0], [2.0, 2.0]])
    frame = pd.DataFrame(CELLS, columns=["x", "y"]).assign(f=numbers[:, 0], g=numbers[:, 1])

    def features(columns):
        index = frame.set_index(list(columns))[["f", "g"]]
        if source == "labels":
            labels: Any = index.index
            return rv.LinearReward(numbers, ["f", "g"], state_labels=labels)
        return (
            rv.LinearReward.from_frame(frame, state=list(columns)) if source == "from_frame" else rv.LinearReward(index)
        )

    right, turned = (rv.NFXP(features(columns)).fit(mdp, demos) for columns in ("xy", "yx"))
    np.testing.assert_allclose(turned.theta, right.theta, rtol=1e-10)
    np.testing.assert_allclose(turned.reward, right.reward, rtol=1e-10)


def test_networks_match_levels_by_name():
    mdp, _, _ = cells()
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(4, 2)), pd.MultiIndex.from_tuples(CELLS, names=["x", "y"])
    )
    one = rv.NeuralReward(frame, [3], standardize=False)
    two = rv.NeuralReward(swapped(frame), [3], standardize=False).aligned(mdp.state_labels or ())
    np.testing.assert_allclose(two.value(two.init()), one.value(one.init()))


def test_decisions_and_models_of_several_columns_are_matched_by_name():
    mdp, demos, fit = cells()
    turned = walk(("y", "x"))
    assert turned.state_labels == demos.state_labels  # as texts they cannot be told apart
    again = rv.NFXP(rv.TabularReward(4), l2=1e-2).fit(mdp, turned)
    np.testing.assert_allclose(again.policy, fit.policy, atol=1e-6)
    model = rv.MDP(rv.estimate_transitions(turned, smoothing=0.5), 0.9)
    np.testing.assert_allclose(rv.evaluate(fit, model, fit.reward_on(model))["evd"], 0.0, atol=1e-9)
    np.testing.assert_allclose(rv.solve(model, fit).policy, in_order(model, fit.table("policy"), "policy"), atol=1e-6)
    answer = fit.counterfactual(mdp=model, bands=None)
    np.testing.assert_allclose(answer.after.policy, answer.before.policy, atol=1e-9)


def test_transitions_as_a_table_are_read_by_name():
    mdp, demos, fit = cells()
    frame = mdp.to_frame(state=["x", "y"], action="a", next_state=["nx", "ny"], probability="p")
    turned = {"state": ["y", "x"], "next_state": ["ny", "nx"], "action": "a", "probability": "p"}
    turned = rv.MDP.from_frame(frame, discount=0.9, **turned, states=CELLS, actions=["a", "b"])
    again = rv.NFXP(rv.TabularReward(4), l2=1e-2).fit(turned, demos)
    np.testing.assert_allclose(in_order(mdp, again.policy, "policy"), fit.policy, atol=1e-6)


# -- equal numbers are one label ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [(1.0, 0.0, 2.0), (1, 0, 2), ("1", "0", "2")])
def test_a_number_is_a_label_that_equals_it(labels):
    mdp = rv.MDP(MOVES, 0.8, state_labels=labels)
    one, some = [1.0, 0.0, 0.0], [0.25, 0.0, 0.75]
    given = [1, {1: 1.0}, np.int64(1), pd.Series({1: 1.0})]
    for start in given if isinstance(labels[0], str) else [*given, 1.0, {1.0: 1.0}, np.float64(1.0)]:
        np.testing.assert_array_equal(mdp.start(start), one)
        np.testing.assert_array_equal(mdp.replace(initial=start).start(), one)
    np.testing.assert_array_equal(mdp.start({2: 0.75, 1: 0.25}), some)
    np.testing.assert_array_equal(mdp.start(pd.Series([0.0, 0.25, 0.75], index=[0, 1, 2])), some)  # not row numbers
    ends = rv.MDP(MOVES, 0.8, state_labels=labels, terminal=[2]).terminal
    np.testing.assert_array_equal(ends, [False, False, True])
    with pytest.raises(RevealedError, match="3"):
        mdp.start(3)


def test_a_truth_value_is_a_label():
    mdp = rv.MDP(np.full((2, 1, 2), 0.5), 0.5, state_labels=[True, False])
    np.testing.assert_array_equal(mdp.start(False), [0.0, 1.0])
    np.testing.assert_array_equal(mdp.start({False: 1.0}), [0.0, 1.0])


def test_parameters_called_by_numbers_are_named_by_numbers():
    mdp = rv.MDP(MOVES, 0.8, state_labels=[10, 20, 30])
    demos = rv.simulate(mdp, mdp.uniform_policy(), 40, 10, seed=0)
    fit = rv.NFXP(rv.TabularReward(3), l2=1e-2).fit(mdp, demos)
    assert list(fit.reward_model.names) == ["10", "20", "30"]
    by_text = fit.counterfactual(params={"20": 1.0}, bands=None).after.policy
    for params in ({20: 1.0}, {np.int64(20): 1.0}, pd.Series({20: 1.0})):
        np.testing.assert_array_equal(fit.counterfactual(params=params, bands=None).after.policy, by_text)
    theta = {30: 3.0, 10: 1.0, 20: 2.0}
    np.testing.assert_array_equal(fit.reward_model.value(theta)[:, 0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(fit.reward_model.value(pd.Series(theta))[:, 0], [1.0, 2.0, 3.0])
    assert fit.wald_test({20: 0.0}).statistic == fit.wald_test({"20": 0.0}).statistic
    with pytest.raises(InvalidInput, match="one of 10, 20, 30"):
        fit.counterfactual(params={1: 1.0})  # no position


def test_transitions_match_what_has_labels():
    mdp = named()
    T: Any = mdp.transitions
    turned = rv.MDP(MOVES, 0.8, state_labels=STATES, action_labels=ACTIONS)._reordered(
        *np.array([[2, 0, 1], [1, 2, 0]])
    )
    rng = np.random.default_rng(8)
    V, policy = rng.normal(size=S), rng.dirichlet(np.ones(A), size=S)
    series, frame = pd.Series(V, STATES), pd.DataFrame(policy, STATES, ACTIONS)
    backwards = frame.iloc[::-1, [1, 2, 0]]
    arrays = [(labelled(V, mdp), labelled(policy, mdp))]
    arrays += [(labelled(V[[2, 0, 1]], turned), labelled(policy[[2, 0, 1]][:, [1, 2, 0]], turned))]
    for value, table in [
        *arrays,
        (series, frame),
        (series.iloc[::-1], backwards),
        (series.iloc[::-1].to_frame(), backwards),
    ]:
        np.testing.assert_array_equal(np.ravel(T.expect(value)), T.expect(V).ravel())
        np.testing.assert_array_equal(T.push(table), T.push(policy))
        np.testing.assert_array_equal(T.mix(table).toarray(), T.mix(policy).toarray())
        np.testing.assert_array_equal(T.identity_minus(0.5, table).toarray(), T.identity_minus(0.5, policy).toarray())
    np.testing.assert_allclose(turned.transitions.push(frame)[[1, 2, 0]], T.push(policy))
    with pytest.raises(InvalidInput, match="one of new, mid, old; got 'young'"):
        T.expect(pd.Series(V, ["new", "young", "old"]))
    counted = pd.Series(V)  # its index says nothing but the order of the rows
    np.testing.assert_array_equal(rv.MDP(MOVES, 0.8).transitions.expect(counted), T.expect(V))
    with pytest.raises(InvalidInput, match="requires state labels"):
        derived_model().transitions.expect(counted)
    later = rv.MDP(MOVES, 0.8).with_labels(list(STATES), list(ACTIONS)).transitions
    for T in (later, pickle.loads(pickle.dumps(mdp)).transitions):
        np.testing.assert_array_equal(T.push(backwards), mdp.transitions.push(policy))


def test_transitions_check_the_form_of_arrays():
    T, V = named().transitions, pd.Series([1.0, 2.0, 3.0], STATES)
    np.testing.assert_array_equal(T.expect([1.0, 2.0, 3.0]), T.expect(V.to_numpy()))
    for call in (lambda: T.expect(np.ones(4)), lambda: T.mix(np.ones((2, 2))), lambda: T.push(np.ones(5))):
        with pytest.raises(InvalidInput, match="numbers for"):
            call()
    with pytest.raises(InvalidInput, match="filled"):
        T.expect(np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False]))


# -- labels of several parts ------------------------------------------------------------------------------------------

PLACES = [(x, y) for x in range(3) for y in range(3)]


def on_a_board(states: Any) -> rv.MDP:
    moves = np.random.default_rng(4).dirichlet(0.3 * np.ones(9), size=(9, 2))
    return rv.MDP(moves, 0.8, state_labels=states, action_labels=["stay", "go"])


def seen_on_a_board(**more: Any) -> rv.Demonstrations:
    policy = rv.solve(on_a_board(PLACES), np.random.default_rng(5).normal(size=(9, 2))).policy
    frame = rv.simulate(on_a_board(PLACES), policy, 50, 20, seed=6).to_frame()
    frame[["x", "y"]] = frame["state"].tolist()
    return rv.Demonstrations.from_frame(frame, id="id", time="time", state=["x", "y"], action="action", **more)


@pytest.mark.parametrize("states", [PLACES, PLACES[::-1], pd.MultiIndex.from_tuples(PLACES, names=["x", "y"])])
@pytest.mark.parametrize("declared", [{}, {"states": PLACES}])
def test_parts_of_labels_are_matched_by_the_columns_of_the_data(states, declared):
    frame = pd.DataFrame(PLACES, columns=["x", "y"]).assign(f=np.random.default_rng(7).normal(size=9))
    demos = seen_on_a_board(**declared)
    one, two = (
        rv.NFXP(rv.LinearReward.from_frame(frame, state=order)).fit(on_a_board(states), demos)
        for order in (["x", "y"], ["y", "x"])
    )
    np.testing.assert_allclose(one.theta, two.theta, rtol=1e-9)
    assert list(one.table("policy").index.names) == ["x", "y"]
    assert list(one.mdp.state_labels) == list(states)
    here = rv.metrics.nll(one.policy, demos)
    assert rv.metrics.nll(one.table("policy").swaplevel(), demos) == pytest.approx(here, rel=1e-12)
    nameless = one.table("policy").rename_axis(["state_0", "state_1"])  # as tables of a model without names of parts
    assert rv.metrics.nll(nameless.swaplevel(), demos) == pytest.approx(here, rel=1e-12)


def test_starts_and_columns_of_states_of_several_columns_are_matched_by_name():
    one, two = (
        rv.Demonstrations.from_frame(
            seen_on_a_board().to_frame(state=["x", "y"]), id="id", time="time", state=order, action="action"
        )
        for order in (["x", "y"], ["y", "x"])
    )
    model = rv.MDP(rv.estimate_transitions(one, unseen="stay"), 0.8)
    here = model.start(one.starts / one.starts.sum())
    np.testing.assert_array_equal(model.start(two.starts / two.starts.sum()), here)
    np.testing.assert_array_equal(rv.Demonstrations.from_counts(one.counts, starts=two.starts).starts, one.starts)
    for written in (
        one.to_frame(state=["y", "x"]),
        model.to_frame(state=["y", "x"], next_state=["later y", "later x"]),
    ):
        other = (
            one.to_frame(state=["x", "y"])
            if "id" in written
            else model.to_frame(state=["x", "y"], next_state=["a", "b"])
        )
        pd.testing.assert_frame_equal(written[["x", "y"]], other[["x", "y"]])
    for write in (one.to_frame, model.to_frame):
        assert list(write(state=["row", "column"])["row"]) == list(write(state=["x", "y"])["x"])
        with pytest.raises(InvalidInput, match=r"`state`: expected the columns x and y in any order.*first at 'y'"):
            write(state=["y", "z"])


def test_parts_keep_their_names_on_a_horizon():
    demos = seen_on_a_board()
    frame = pd.DataFrame(PLACES, columns=["y", "x"]).assign(f=np.random.default_rng(7).normal(size=9))
    reward = rv.LinearReward.from_frame(frame, state=["y", "x"])
    by_name = pd.MultiIndex.from_tuples(PLACES, names=["x", "y"])
    bare, full = (rv.NFXP(reward).fit(on_a_board(s).unroll(20), demos) for s in (PLACES, by_name))
    np.testing.assert_allclose(bare.theta, full.theta, rtol=1e-9)
    assert list(bare.table("policy").index.names) == ["time", "x", "y"]


# -- parameters and features by name ----------------------------------------------------------------------------------


def test_weights_of_sorted_states_are_passed_by_name():
    demos, model = derived(), derived_model()
    fit = rv.NFXP(rv.TabularReward(S), l2=0.1).fit(model, demos)
    given = {"old": 0.0, "new": 1.0, "mid": 0.5}
    by_name = fit.counterfactual(params=given, bands=None).after.policy
    np.testing.assert_array_equal(fit.counterfactual(params=pd.Series(given), bands=None).after.policy, by_name)
    for ask in (
        lambda: fit.counterfactual(params=[1.0, 0.5, 0.0]),
        lambda: rv.NFXP(rv.TabularReward(S), l2=0.1, start=[1.0, 0.5, 0.0]).fit(model, demos),
        lambda: fit.wald_test((np.eye(S)[:1], [0.0])),
    ):
        with pytest.raises(InvalidInput, match="not declared"):
            ask()
    assert rv.NFXP(rv.TabularReward(S), l2=0.1, start=given).fit(model, demos).converged
    assert np.isfinite(fit.bootstrap(reps=3, seed=0).theta).all()
    declared = rv.NFXP(rv.TabularReward(S), l2=0.1, start=[1.0, 0.5, 0.0]).fit(named(), demos)
    assert declared.counterfactual(params=[1.0, 0.5, 0.0], bands=None).after.policy.shape == (S, A)


def other_order() -> rv.LinearReward:
    frame = pairs_frame()[["state", "action", "y", "x"]]
    return rv.LinearReward.from_frame(frame, state="state", action="action")


def test_the_parameters_of_another_reward_are_matched_by_name():
    fit = by_label()
    for given in (None, {"x": 0.5}):
        same, turned = (fit.counterfactual(reward=reward, params=given) for reward in (fit.reward_model, other_order()))
        np.testing.assert_allclose(turned.after.value, same.after.value, rtol=1e-12)
        np.testing.assert_allclose(turned.change.se.welfare, same.change.se.welfare, rtol=1e-9, atol=1e-12)
    assert fit.counterfactual(reward=other_order()).change.welfare == pytest.approx(0.0, abs=1e-12)
    by_position = rv.LinearReward(FEATURES)  # theta0, theta1: names that only count
    assert fit.counterfactual(reward=by_position).change.welfare == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(InvalidInput, match=r"the parameters of the fit \(x, y\).*no parameter 'x'"):
        fit.counterfactual(reward=rv.LinearReward(FEATURES, names=["pay", "y"]))


def test_a_reward_that_cannot_be_turned_is_refused_in_another_order():
    def apply(params: Any, features: Any) -> Any:
        return features @ params

    fit = by_label()
    same, turned = (rv.JaxReward(apply, np.zeros(2), FEATURES, names=names) for names in (["x", "y"], ["y", "x"]))
    assert fit.counterfactual(reward=same, bands=None).change.welfare == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(InvalidInput, match=r"in the order of the fit \(x, y\), not y, x"):
        fit.counterfactual(reward=turned, bands=None)


def test_columns_of_a_restriction_are_matched_by_name():
    fit = by_label()
    wanted = fit.wald_test({"y": -1.0})
    R = pd.DataFrame([[1.0, 0.0]], columns=["y", "x"])
    for given in (R, R.iloc[0], np.array([[0.0, 1.0]]), pd.DataFrame([[0.0, 1.0]])):
        assert fit.wald_test((given, [-1.0])).statistic == pytest.approx(wanted.statistic, rel=1e-12)
    with pytest.raises(InvalidInput, match="a number for each of x, y; got numbers for y, z"):
        fit.wald_test((R.rename(columns={"x": "z"}), [-1.0]))


def test_inputs_of_a_network_are_matched_by_name(tmp_path):
    features = pd.DataFrame(FEATURES[:, 0], STATES, ["x", "y"])
    fit = rv.MCEIRL(rv.NeuralReward(features, hidden=(3,)), max_iter=3).fit(named(), derived())
    fit.save(tmp_path / "fit.zip")
    for network in (
        fit.reward_model,
        rv.load(tmp_path / "fit.zip").reward_model,
        pickle.loads(pickle.dumps(fit)).reward_model,
    ):
        for given in (features, features[["y", "x"]], features.iloc[::-1]):
            found = rv.solve(named(), network.with_features(given).value(fit.theta)).value
            np.testing.assert_allclose(found, fit.value, rtol=1e-12)
    with pytest.raises(InvalidInput, match="a number for each of x, y"):
        fit.reward_model.with_features(features.rename(columns={"x": "z"}))


def test_transitions_in_frames_are_matched_by_label():
    """With as many states as actions a list of frames was read as (S, A, S): transposed, and it passed."""
    frames = [pd.DataFrame(MOVES[:, a], STATES, STATES) for a in range(A)]
    wanted = named().transitions.matrix.toarray()
    turned = [frame.iloc[::-1, [1, 0, 2]] for frame in frames]
    for given in (
        frames,
        turned,
        tuple(turned),
        [MOVES[:, 0], *turned[1:]],
        [pd.DataFrame(f.to_numpy()) for f in frames],
    ):
        mdp = rv.MDP(given, 0.8, state_labels=STATES, action_labels=ACTIONS)
        np.testing.assert_array_equal(mdp.transitions.matrix.toarray(), wanted)
    unnamed = rv.MDP([pd.DataFrame(f.to_numpy()) for f in frames], 0.8)
    np.testing.assert_array_equal(unnamed.transitions.matrix.toarray(), wanted)
    with pytest.raises(InvalidInput, match="as data frames with labels require `state_labels`"):
        rv.MDP(frames, 0.8)
    with pytest.raises(InvalidInput, match="'young'"):
        rv.MDP([frame.rename(index={"new": "young"}) for frame in frames], 0.8, state_labels=STATES)


# -- models without labels call their states 0, 1, 2, … ----------------------------------------------------------------

BARE = rv.MDP(np.random.default_rng(0).dirichlet(np.full(5, 0.5), (5, 3)), 0.9)
RENT = pd.Series([5.0, 1.0, 4.0, 2.0, 3.0], name="rent")
MIX = pd.DataFrame(np.random.default_rng(1).dirichlet(np.ones(3), 5))
TURNED = [4, 0, 3, 1, 2]  # another order of the rows, as after sort_values


@lru_cache
def bare_walks() -> rv.Demonstrations:
    return rv.simulate(BARE, MIX.to_numpy(), n=100, length=8, seed=0)


NUMBERED: dict[str, Callable[[pd.Series, pd.DataFrame], Any]] = {
    "solve": lambda x, _: rv.solve(BARE, x).value,
    "solve_hard": lambda x, _: rv.solve_hard(BARE, x).value,
    "policy_value": lambda x, p: rv.metrics.policy_value(BARE, x, p),
    "chain": lambda x, p: rv.Chain(BARE, p).solve(x),
    "nll": lambda _, p: rv.metrics.nll(p, bare_walks()),
    "simulate": lambda _, p: rv.simulate(BARE, p, n=20, length=5, seed=0).counts,
    "epic": lambda x, _: rv.metrics.epic(BARE, RENT.to_numpy(), x),
    "evd": lambda x, _: rv.metrics.evd(BARE, RENT.to_numpy() ** 2, x),
    "expect": lambda x, _: BARE.transitions.expect(x),
    "mix": lambda _, p: BARE.transitions.mix(p).toarray(),
    "lift": lambda x, _: BARE.unroll(2).lift(x),
    "initial": lambda x, _: BARE.replace(initial=x / 15).initial,
    "terminal": lambda x, _: rv.MDP(BARE.transitions.matrix, 0.9, terminal=x > 4.5).terminal,
    "feasible": lambda _, p: rv.MDP(BARE.transitions.matrix, 0.9, feasible=p > 0.05).feasible,
    "coordinates": lambda x, _: rv.estimate_transitions(
        bare_walks(), coordinates=x.to_frame(), bandwidth=0.5
    ).matrix.toarray(),
    "first_step": lambda x, p: rv.CCP(rv.LinearReward(x.to_frame()), first_step=p).fit(BARE, bare_walks()).theta,
    "counterfactual": lambda x, _: bare_fit().counterfactual(reward=x).after.policy,
    "counts": lambda _, p: (
        rv.NFXP(rv.TabularReward(5), l2=0.1).fit(BARE, rv.Demonstrations.from_counts(np.ceil(100 * p))).theta
    ),
}


@lru_cache
def bare_fit() -> rv.Fit:
    return rv.NFXP(rv.LinearReward(RENT.to_frame())).fit(BARE, bare_walks())


@pytest.mark.parametrize("what", NUMBERED)
def test_whole_numbers_name_the_states_of_a_model_without_labels(what):
    """A sorted table keeps its index: what is called 2 is state 2."""
    ask = NUMBERED[what]
    np.testing.assert_allclose(ask(RENT.iloc[TURNED], MIX.iloc[TURNED]), ask(RENT, MIX), rtol=1e-9)
    np.testing.assert_allclose(ask(RENT.iloc[TURNED], MIX.iloc[TURNED, [2, 0, 1]]), ask(RENT, MIX), rtol=1e-9)


def test_a_model_in_an_order_of_numbers_is_the_one_without_labels():
    turned = BARE.with_labels(range(5), range(3)).in_order_of(BARE.with_labels(TURNED, range(3)))
    fit = bare_fit()
    np.testing.assert_allclose(rv.solve(turned, fit).value, np.asarray(rv.solve(BARE, fit).value)[TURNED], rtol=1e-9)
    np.testing.assert_allclose(rv.evaluate(fit, turned, RENT)["evd"], rv.evaluate(fit, BARE, RENT)["evd"], atol=1e-9)
    assert rv.evaluate(fit, turned, RENT)["epic"] == pytest.approx(rv.evaluate(fit, BARE, RENT)["epic"], abs=1e-9)


def test_other_numbers_in_no_order_are_refused():
    """They are not what the model calls its states, and the rows were sorted by something else."""
    for numbers in ([2, 1, 3, 4, 5], [10, 30, 20, 40, 50]):
        with pytest.raises(InvalidInput, match="cannot be matched"):
            rv.solve(BARE, RENT.set_axis(numbers))
    np.testing.assert_array_equal(
        rv.solve(BARE, RENT.set_axis([1, 2, 3, 4, 5])).value, rv.solve(BARE, RENT.to_numpy()).value
    )


@pytest.mark.parametrize("act", ["expect", "push", "mix"])
def test_transitions_take_numbers_alone(act):
    shape = (5,) if act == "expect" else (5, 3)
    for given in (np.ones(shape) * 1j, np.ones(shape, "timedelta64[s]"), np.full(shape, "a"), np.full(shape, None)):
        with pytest.raises(InvalidInput):
            getattr(BARE.transitions, act)(given)
    with pytest.raises(InvalidInput, match=r"Pass transitions\.matrix"):
        rv.MDP(BARE.transitions, 0.9)
