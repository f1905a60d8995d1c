"""Bad input: the promised class, with argument, expected, got and first offender. Random input: test_malformed.py."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import revealed as rv
from models import corridor, counts, dense, random_mdp
from revealed import errors
from revealed.errors import (
    InvalidDemonstrations,
    InvalidDiscount,
    InvalidDistribution,
    InvalidInput,
    InvalidMask,
    InvalidOption,
    InvalidReward,
    InvalidTransitions,
    RevealedError,
)

GOOD = dense(random_mdp(4, 2, seed=1))


def changed(index, value) -> np.ndarray:
    T = GOOD.copy()
    T[index] = value
    return T


def row(*p) -> np.ndarray:
    return changed((2, 1), p)


BAD_TRANSITIONS = {
    "row sum": (row(0.2, 0.2, 0.3, 0.24), r"row sum 0\.94 \(first at state 2, action 1"),
    "empty row": (row(0, 0, 0, 0), r"row sum 0 \(first at state 2, action 1"),
    "above one": (row(1, 1, 0, 0), r"row sum 2 \(first at state 2, action 1"),
    "negative": (row(-0.5, 0.5, 0.5, 0.5), r"-0\.5 \(first at state 2, action 1, next state 0\)"),
    "nan": (row(np.nan, 0, 0, 1), r"nan \(first at state 2, action 1, next state 0\)"),
    "infinite": (row(0, np.inf, 0, 1), r"inf \(first at state 2, action 1, next state 1\)"),
    "just off": (row(0.5, 0.5 + 2e-8, 0, 0), "row sum"),
    "two axes": (GOOD.reshape(8, 4), r"shape \(8, 4\)"),
    "not square": (GOOD[:, :, :3], r"shape \(4, 2, 3\)"),
    "no states": (np.zeros((0, 2, 0)), "shape"),
    "no actions": (np.zeros((2, 0, 2)), "shape"),
    "text": ("transitions", "str"),
    "nothing": (None, "transitions"),
    "ragged": ([[1.0], [1.0, 2.0]], "list"),
    "sparse of odd shape": (sp.csr_array(np.ones((7, 4)) / 4), r"shape \(7, 4\)"),
    "sparse with one axis": (sp.coo_array(np.ones(4)), "shape"),
    "sparse with three axes": (sp.coo_array(GOOD), "shape"),
    "list of unlike shapes": ([sp.eye_array(4), sp.eye_array(3)], "action 1"),
    "mixed list": ([sp.eye_array(4), "eye"], "transitions"),
    "complex": (GOOD.astype(complex), "complex"),
    "complex sparse": (sp.csr_array(GOOD.reshape(8, 4).astype(complex)), "complex"),
    "too large a number": ([[[10**400]]], "transitions"),
}


@pytest.mark.parametrize("case", BAD_TRANSITIONS)
def test_bad_transitions(case):
    transitions, match = BAD_TRANSITIONS[case]
    with pytest.raises(InvalidTransitions, match=match) as caught:
        rv.MDP(transitions)
    assert caught.value.argument == "transitions"
    assert isinstance(caught.value, ValueError)


def test_the_number_of_bad_rows_is_told():
    with pytest.raises(InvalidTransitions, match="8 such rows"):
        rv.MDP(GOOD * 0.9)


@pytest.mark.parametrize("discount", [-0.1, 1.1, np.nan, np.inf, "0.9", None, True, 1j, [0.9], 10**400, {}])
def test_bad_discounts(discount):
    with pytest.raises(InvalidDiscount, match=r"\[0, 1\]"):
        rv.MDP(GOOD, discount=discount)


BAD_MASKS = {
    "no action": ({"feasible": [[1, 1], [0, 0], [1, 1], [0, 0]]}, r"state 1; 2 such states"),
    "shape": ({"feasible": np.ones((2, 4))}, r"shape \(2, 4\)"),
    "values": ({"feasible": np.full((4, 2), 2)}, "True and False"),
    "nan": ({"feasible": np.full((4, 2), np.nan)}, "True and False"),
    "text": ({"feasible": "yes"}, "feasible"),
    "terminal shape": ({"terminal": [True]}, r"shape \(1,\)"),
    "terminal index": ({"terminal": [3, 0, 0, 0]}, "True and False"),
    "ragged": ({"feasible": [[1, 1], [1], [1, 1], [1, 1]]}, "feasible"),
}


@pytest.mark.parametrize("case", BAD_MASKS)
def test_bad_masks(case):
    arguments, match = BAD_MASKS[case]
    with pytest.raises(InvalidMask, match=match) as caught:
        rv.MDP(GOOD, **arguments)
    assert caught.value.argument in arguments


@pytest.mark.parametrize(
    ("initial", "match"),
    [
        ([0.5, 0.5], r"shape \(2,\)"),
        ([0.5, 0.6, 0, 0], "sum 1.1"),
        ([1.5, -0.5, 0, 0], r"-0\.5 \(first at state 1\)"),
        ([np.nan, 1, 0, 0], r"nan \(first at state 0\)"),
        ("abcd", "initial"),
        ([10**400, 0, 0, 0], "initial"),
        (np.eye(4), "shape"),
    ],
)
def test_bad_start_distributions(initial, match):
    with pytest.raises(InvalidDistribution, match=match):
        rv.MDP(GOOD, initial=initial)


@pytest.mark.parametrize("labels", [5, [[1], [2], [3], [4]], ["a", "b"], ["a", "a", "b", "c"]])
def test_bad_labels(labels):
    with pytest.raises(InvalidInput, match="state_labels"):
        rv.MDP(GOOD, state_labels=labels)


# demonstrations


BAD_TRAJECTORIES = {
    "state out of range": ([([0, 4], [0, 0])], {}, r"4 \(first at trajectory 0, step 1\)"),
    "negative state": ([([0], [0]), ([-1], [0])], {}, r"-1 \(first at trajectory 1, step 0\)"),
    "action out of range": ([([0, 1], [0, 2])], {}, r"2 \(first at trajectory 0, step 1\)"),
    "lengths": ([([0, 1, 2], [0])], {}, "3 states and 1 action .*trajectory 0"),
    "real numbers": ([([0.5], [0])], {}, "whole numbers.*trajectory 0"),
    "text": ([("ab", "ab")], {}, "trajectory 0"),
    "no pair": ([[0, 1, 2]], {}, "trajectory 0"),
    "ragged": ([([[0], [1, 2]], [0, 0])], {}, "trajectory 0"),
    "none": ([], {}, "at least one trajectory"),
    "no decisions": ([([0], [])], {}, "at least one decision"),
    "nothing": (None, {}, "trajectories"),
    "a number": (3, {}, "trajectories"),
    "too few ids": ([([0], [0])], {"ids": []}, "ids"),
    "ids that are none": ([([0], [0])], {"ids": 5}, "ids"),
    "ids that cannot be told apart": ([([0], [0])], {"ids": [[1]]}, "ids"),
    "too few next states": ([([0], [0])], {"next_state": []}, "next_state"),
    "a next state for nobody": ([([0], [0])], {"next_state": 2}, "next_state"),
    "ragged next states": ([([0], [0])], {"next_state": [[[1], [1, 2]]]}, "next_state"),
    "next state out of range": ([([0], [0])], {"next_state": [7]}, r"7 \(first at trajectory 0"),
    "n_states": ([([0], [0])], {"n_states": 0}, "n_states"),
    "n_actions": ([([0], [0])], {"n_actions": 2.5}, "n_actions"),
}


@pytest.mark.parametrize("case", BAD_TRAJECTORIES)
def test_bad_trajectories(case):
    trajectories, options, match = BAD_TRAJECTORIES[case]
    with pytest.raises(InvalidDemonstrations, match=match):
        rv.Demonstrations.from_trajectories(trajectories, **({"n_states": 4, "n_actions": 2} | options))


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ([[1, -1]], r"-1\.0 \(first at state 0, action 1\)"),
        ([[1, np.nan]], r"nan \(first at state 0, action 1\)"),
        ([[0, 0]], "all zero"),
        ([1, 2], r"shape \(2,\)"),
        ("counts", "str"),
        ([[1], [2, 3]], "list"),
        ([[10**400]], "counts"),
        (np.ones((2, 2), dtype=complex), "counts"),
        (None, "counts"),
    ],
)
def test_bad_counts(table, match):
    with pytest.raises(InvalidDemonstrations, match=match):
        rv.Demonstrations.from_counts(table)


@pytest.mark.parametrize("starts", ["ab", [1.0], [-1, 1], [np.nan, 1], [[1], [2, 3]]])
def test_bad_starts(starts):
    with pytest.raises(InvalidDemonstrations, match="starts"):
        rv.Demonstrations.from_counts(np.ones((2, 2)), starts=starts)


@pytest.mark.parametrize("gamma", [-0.1, 1.5, np.nan, "a", None])
def test_bad_discounts_of_visits(gamma):
    with pytest.raises(InvalidDemonstrations, match="gamma"):
        rv.Demonstrations.from_trajectories([([0], [0])], 2, 2).discount_visits(gamma)


# rewards, policies, chains


@pytest.mark.parametrize(
    ("features", "match"),
    [
        (np.ones(4), r"shape \(4,\)"),
        (np.ones((4, 2, 3, 1)), "shape"),
        (np.ones((4, 0)), "shape"),
        ([sp.eye_array(2), sp.eye_array(3)], "action 1"),
        (sp.coo_array(np.ones(3)), "features"),
        ([sp.coo_array(np.ones(2))] * 2, "features"),
        ("features", "str"),
        (None, "features"),
        ([[10**400]], "features"),
        (np.ones((2, 2), dtype=complex), "features"),
        (sp.csr_array(np.ones((2, 2), dtype=complex)), "features"),
    ],
)
def test_bad_features(features, match):
    with pytest.raises(InvalidReward, match=match):
        rv.LinearReward(features)


@pytest.mark.parametrize("names", [["a"], ["a", "a"], 5])
def test_bad_names(names):
    with pytest.raises(InvalidReward, match="names"):
        rv.LinearReward(np.ones((3, 2)), names=names)


@pytest.mark.parametrize("n_actions", [4, 0, -1, 2.0, "2", True])
def test_bad_numbers_of_actions(n_actions):
    with pytest.raises(InvalidReward, match="n_actions"):
        rv.LinearReward(sp.csr_array(np.ones((6, 2))), n_actions=n_actions)


@pytest.mark.parametrize(
    "options",
    [{"hidden": 0}, {"hidden": True}, {"hidden": (0,)}, {"hidden": (2.5,)}, {"hidden": "ab"}, {"activation": "sine"}],
)
def test_bad_networks(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        rv.NeuralReward(np.ones((3, 2)), **options)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "3", None])
def test_bad_tables(n):
    with pytest.raises(InvalidReward, match="n_states"):
        rv.TabularReward(n)


@pytest.mark.torch
@pytest.mark.parametrize("features", ["ab", [[1.0], [1.0, 2.0]], np.ones((2, 5))])
def test_bad_features_of_a_torch_reward(features):
    import torch

    with pytest.raises(InvalidReward):
        rv.TorchReward(torch.nn.Linear(2, 1), features)


@pytest.mark.parametrize(
    ("reward", "match"),
    [
        (np.ones(3), r"shape \(3,\)"),
        (np.ones((4, 3)), "shape"),
        (np.where(np.arange(8).reshape(4, 2) == 5, np.nan, 0.0), r"nan \(first at state 2, action 1\)"),
        ("r", "str"),
        (None, "reward"),
        ([[10**400, 1]] * 4, "reward"),
    ],
)
def test_bad_tables_of_rewards(reward, match):
    for solve in (rv.solve, rv.solve_hard):
        with pytest.raises(InvalidReward, match=match):
            solve(rv.MDP(GOOD), reward)


@pytest.mark.parametrize(
    ("policy", "match"),
    [
        (np.full((4, 2), 0.4), r"sum 0\.8 \(first at state 0\)"),
        (np.array([[1.5, -0.5]] * 4), r"-0\.5 \(first at state 0, action 1\)"),
        (np.full((4, 2), np.nan), "state 0, action 0"),
        (np.ones((2, 4)), "shape"),
        ("uniform", "str"),
        ([[10**400, 0]] * 4, "policy"),
    ],
)
def test_bad_policies(policy, match):
    with pytest.raises(InvalidDistribution, match=match):
        rv.Chain(rv.MDP(GOOD), policy)


@pytest.mark.parametrize("initial", [["a"] * 4, [np.nan, 1, 0, 0], [1.0], [-1.0, 2.0, 0, 0]])
def test_bad_starts_of_an_occupancy(initial):
    mdp = rv.MDP(GOOD)
    with pytest.raises(InvalidInput, match="initial"):
        rv.Chain(mdp, mdp.uniform_policy()).occupancy(initial)


@pytest.mark.parametrize("pair", [(0.5, 0), ("a", 0), (None, 0), (0, 9)])
def test_bad_pairs_of_an_occupancy(pair):
    mdp = rv.MDP(GOOD)
    with pytest.raises(InvalidInput, match=r"`(state|action)`"):
        rv.Chain(mdp, mdp.uniform_policy()).occupancy_from(*pair)


# estimators


BAD_OPTIONS = {
    "weighting": ["counts", None, 1, []],
    "optimizer": ["sgd", None, 3],
    "solver": ["dense", None, 3],
    "l2": [-1.0, np.nan, np.inf, "a", True, 1j],
    "tol": [0.0, -1e-9, np.nan, "a"],
    "max_iter": [0, -1, 2.5, "a", True],
    "patience": [0, 1.5],
    "learning_rate": [0.0, -1.0, None, np.nan],
    "start": [[1.0], [np.nan, 0.0], "zero", [[0.0, 0.0]], [10**400, 0]],
    "first_step": ["frequencies", None, 3, np.ones((4, 2)), np.ones(3)],
    "nonsense": [1],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD_OPTIONS.items() for v in values])
@pytest.mark.parametrize("method", [rv.NFXP, rv.CCP, rv.NPL])
def test_bad_options(method, name, value):
    needed = {"weighting": "occupancy"} if name == "first_step" else {}
    with pytest.raises(InvalidInput, match=name) as caught:
        method(rv.LinearReward(GOOD[:, :, :2]), **(needed | {name: value})).fit(
            rv.MDP(GOOD, initial=np.full(4, 0.25)), counts([[3, 1]] * 4)
        )
    assert caught.value.argument == name


@pytest.mark.parametrize("updates", [0, -1, 2.5, "a", True])
def test_bad_numbers_of_updates(updates):
    with pytest.raises(InvalidOption, match="updates"):
        rv.NPL(rv.TabularReward(4), updates=updates)


def test_unknown_options_list_the_known_ones():
    with pytest.raises(InvalidOption, match=r"weighting.*first_step.*l2"):
        rv.NFXP(rv.TabularReward(4), penalty=1.0)


def test_fits_of_things_that_do_not_fit():
    mdp, data, reward = corridor(4), counts([[1, 1]] * 4), rv.TabularReward(4)
    for arguments, kind, match in (
        ((None, data), InvalidInput, "mdp"),
        ((mdp, None), InvalidInput, "demonstrations"),
        ((mdp, np.ones((4, 2))), InvalidInput, "demonstrations"),
        ((corridor(5), data), InvalidDemonstrations, "5 states"),
        ((corridor(4, end=True), data), InvalidDemonstrations, "terminal state"),
    ):
        with pytest.raises(kind, match=match):
            rv.CCP(reward).fit(*arguments)  # pyright: ignore[reportArgumentType]
    for bad in (None, 3, np.ones((4, 2)), rv.TabularReward(3), rv.LinearReward(np.ones((4, 3, 1)))):
        with pytest.raises(InvalidReward, match="reward"):
            rv.CCP(bad).fit(mdp, data)  # pyright: ignore[reportArgumentType]


# the errors themselves


def test_messages_have_argument_expected_got_offender_and_remedy():
    error = InvalidInput("mass", "a weight", "-3", "stone 4", "Weigh again.")
    assert str(error) == "`mass`: expected a weight; got -3 (first at stone 4). Weigh again."


@pytest.mark.parametrize("kind", [InvalidInput, InvalidTransitions, InvalidOption])
def test_errors_can_be_pickled(kind):
    again = pickle.loads(pickle.dumps(kind("a", "b", "c", "d", "e")))
    assert type(again) is kind
    assert (again.argument, again.offender, again.remedy) == ("a", "d", "e")


def test_value_errors_of_others_do_not_pass_for_ours():
    assert not issubclass(ValueError, RevealedError)
    assert issubclass(errors.MissingDependency, ImportError)
