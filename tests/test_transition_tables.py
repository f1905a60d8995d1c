"""Transitions as tables: what the rows say becomes the model, the way back is exact, and bad rows are named."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revealed as rv
from models import random_mdp
from revealed.errors import InvalidInput, InvalidMask, InvalidTransitions

COLUMNS = {"state": "s", "action": "a", "next_state": "t", "probability": "p"}
ROWS = pd.DataFrame(
    {"s": ["b", "a", "b", "a"], "a": ["go", "go", "wait", "go"], "t": ["c", "b", "b", "a"], "p": [1.0, 0.75, 1.0, 0.25]}
)


def read(frame: Any = ROWS, **options: Any) -> rv.MDP:
    return rv.MDP.from_frame(frame, **{"discount": 0.9, **COLUMNS, **options})


def same(one: rv.MDP, other: rv.MDP) -> bool:
    """To the last bit."""
    ours, theirs = one.transitions.matrix, other.transitions.matrix
    return (
        all(np.array_equal(getattr(ours, part), getattr(theirs, part)) for part in ("data", "indices", "indptr"))
        and np.array_equal(one.feasible, other.feasible)
        and np.array_equal(one.terminal, other.terminal)
    )


def test_rows_become_probabilities_of_sorted_labels():
    mdp = read()
    assert (mdp.state_labels, mdp.action_labels, mdp.discount) == (("a", "b", "c"), ("go", "wait"), 0.9)
    expected = [[0.25, 0.75, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(mdp.transitions.matrix.toarray(), expected)


def test_pairs_without_rows_are_not_feasible_and_states_without_rows_are_terminal():
    mdp = read()
    np.testing.assert_array_equal(mdp.feasible, [[True, False], [True, True], [False, False]])
    np.testing.assert_array_equal(mdp.terminal, [False, False, True])


@pytest.mark.parametrize("terminal", [["b"], "b", [False, True, False], np.array([False, True, False])])
def test_states_named_as_terminal_end_beside_those_without_rows(terminal):
    mdp = read(terminal=terminal, states=["a", "b", "c"])
    np.testing.assert_array_equal(mdp.terminal, [False, True, True])
    np.testing.assert_array_equal(mdp.transitions.matrix.toarray()[2:], 0.0)  # their rows are ignored


def test_labels_in_another_order_permute_the_model():
    mdp, other = read(), read(states=["c", "d", "b", "a"], actions=["wait", "go"])
    assert other.state_labels == ("c", "d", "b", "a")
    place = [3, 2, 0]
    T = other.transitions.matrix.toarray().reshape(4, 2, 4)[place][:, ::-1][:, :, place]
    np.testing.assert_array_equal(T.reshape(6, 3), mdp.transitions.matrix.toarray())
    np.testing.assert_array_equal(other.terminal, [True, True, False, False])  # d is in no row


def test_whole_numbers_are_indices_and_as_many_as_the_columns_hold():
    mdp = read(ROWS.assign(s=[1, 0, 1, 0], a=[0, 0, 2, 0], t=[3, 1, 1, 0]))
    assert (mdp.n_states, mdp.n_actions, mdp.state_labels, mdp.action_labels) == (4, 3, None, None)
    np.testing.assert_array_equal(
        mdp.transitions.matrix.toarray()[[0, 3, 5]], [[0.25, 0.75, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]]
    )
    np.testing.assert_array_equal(mdp.terminal, [False, False, True, True])


def test_whole_numbers_that_are_labels_have_the_order_of_the_list():
    mdp = read(ROWS.assign(s=[20, 10, 20, 10], t=[30, 20, 20, 10]), states=[30, 20, 10])
    assert mdp.state_labels == (30, 20, 10)
    np.testing.assert_array_equal(mdp.transitions.matrix.toarray()[4], [0, 0.75, 0.25])


def test_labels_are_matched_by_their_text():
    mdp = read(ROWS.assign(s=["2", "1", "2", "1"], t=[3, 2, 2, 1]))
    np.testing.assert_array_equal(mdp.transitions.matrix.toarray(), read().transitions.matrix.toarray())


def test_several_columns_make_tuples():
    frame = ROWS.assign(x=[0, 0, 0, 0], y=[1, 0, 1, 0], x2=[10, 0, 0, 0], y2=[2, 1, 1, 0])
    mdp = read(frame, state=["x", "y"], next_state=["x2", "y2"])
    assert mdp.state_labels == ((0, 0), (0, 1), (10, 2))  # as numbers, not as text
    np.testing.assert_array_equal(mdp.transitions.matrix.toarray(), read().transitions.matrix.toarray())
    names = {"state": ["x", "y"], "next_state": ["x2", "y2"], "action": "a", "probability": "p"}
    assert same(rv.MDP.from_frame(mdp.to_frame(**names), discount=0.9, **names), mdp)


def test_a_start_by_labels():
    np.testing.assert_array_equal(read(initial={"b": 0.25, "a": 0.75}).initial, [0.75, 0.25, 0.0])


@given(st.integers(0, 2**16), st.booleans(), st.integers(0, 2))
def test_there_and_back_is_exact(seed, masked, terminal):
    mdp = random_mdp(S=7, A=3, seed=seed, masked=masked, terminal=terminal)
    mdp = mdp.replace(state_labels=list("gfedcba"), action_labels=["x", "z", "y"])
    frame = mdp.to_frame().sample(frac=1.0, random_state=seed)
    names = {name: name for name in ("state", "action", "next_state", "probability")}
    back = rv.MDP.from_frame(frame, discount=0.9, states=mdp.state_labels, actions=mdp.action_labels, **names)
    assert same(back, mdp)
    assert (back.state_labels, back.action_labels) == (mdp.state_labels, mdp.action_labels)


def test_numbered_models_come_back_too():
    mdp = random_mdp(S=6, A=2)
    names = {name: name for name in ("state", "action", "next_state", "probability")}
    assert same(rv.MDP.from_frame(mdp.to_frame(), discount=0.9, **names), mdp)


def test_a_model_whose_rows_sum_to_one_but_for_rounding_is_not_touched_again():
    mdp = random_mdp(S=9, A=2, branching=7, seed=3)
    assert same(rv.MDP(mdp.transitions.matrix, 0.9), mdp)
    assert same(mdp.replace(initial=np.full(9, 1 / 9)), mdp)


@pytest.mark.parametrize("form", ["csv", "parquet", "polars", "arrow", "text path"])
def test_every_frame_and_file_says_the_same(form, tmp_path):
    import polars as pl
    import pyarrow as pa

    path = tmp_path / f"moves.{form}"
    given: Any = path
    if form == "csv":
        ROWS.to_csv(path, index=False)
    elif form == "parquet":
        ROWS.to_parquet(path)
    elif form == "text path":
        given = str(tmp_path / "moves.csv")
        ROWS.to_csv(given, index=False)
    else:
        given = pl.from_pandas(ROWS) if form == "polars" else pa.Table.from_pandas(ROWS)
    mdp = read(given)
    assert same(mdp, read())
    assert mdp.state_labels == ("a", "b", "c")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"p": [1.0, 0.7, 1.0, 0.25]},
            "`probability`: expected probabilities that sum to one within 1e-8 for every state and action; got 0.95 "
            "for state 'a', action 'go' (first at row 1; 1 such pair). Add the missing rows, or drop the pair, which "
            "is then infeasible.",
        ),
        (
            {"p": [1.0, 0.75, 1.00001, 0.25]},
            "`probability`: expected probabilities from 0 to 1; got 1.00001 (first at row 2).",
        ),
        (
            {"p": [1.0, -0.75, 1.0, 0.25]},
            "`probability`: expected probabilities from 0 to 1; got -0.75 (first at row 1).",
        ),
        (
            {"p": [1.0, 0.75, np.nan, 0.25]},
            "`probability`: expected no missing values; got 1 missing (first at row 2). Drop or fill those rows.",
        ),
        (
            {"t": ["c", "b", "b", "b"]},
            "`frame`: expected one row per state, action and next state; got state 'a', action 'go' → state 'b' twice, "
            "in rows 1 and 3 (first at row 3). Add the probabilities up, or drop one of the rows.",
        ),
        (
            {"s": [-1, 0, 1, 0], "t": [1, 1, 1, 0]},
            "`state`: expected indices from 0 to 100000000; got -1 (first at row 0). If numbers are names, pass their "
            "list: states=.",
        ),
        (
            {"s": [0.5, 0.0, 0.5, 0.0]},
            "`state`: expected whole numbers or text; got dtype float64. Turn them into states first: bins, or labels.",
        ),
    ],
)
def test_bad_rows_are_named(changes, message):
    with pytest.raises(InvalidTransitions) as caught:
        read(ROWS.assign(**changes))
    assert str(caught.value) == message


def test_sums_that_rounding_spoilt_have_another_remedy():
    with pytest.raises(InvalidTransitions, match=r"got 0\.999999 for state 'b', action 'go' .* Divide by the sums"):
        read(ROWS.assign(p=[0.999999, 0.75, 1.0, 0.25]))
    assert same(read(ROWS.assign(p=[1.0 - 1e-9, 0.75, 1.0, 0.25])), read())  # within 1e-8, and scaled


def test_of_rows_that_stand_twice_the_first_that_repeats_is_named():
    frame = pd.concat([ROWS, ROWS.iloc[[2]], ROWS.iloc[[0]]], ignore_index=True)
    with pytest.raises(InvalidTransitions, match=r"'b', action 'wait' → state 'b' twice, in rows 2 and 4"):
        read(frame)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"probability": "q"}, InvalidInput, "`probability`: expected one of the columns 's', 'a', 't', 'p'"),
        ({"next_state": ["t", "p"]}, InvalidInput, "`next_state`: expected as many columns as `state` has"),
        ({"state": []}, InvalidInput, "columns"),
        ({"states": ["a", "b"]}, InvalidTransitions, r"`next_state`: expected one of a, b; got 'c' \(first at row 0\)"),
        ({"states": ["a", "a", "c"]}, InvalidInput, "`states`: expected distinct labels"),
        ({"actions": "go"}, InvalidInput, "`actions`: expected distinct labels"),
        ({"terminal": ["d"]}, InvalidMask, "`terminal`: expected one of a, b, c; got 'd'"),
        ({"terminal": [True]}, InvalidMask, "3 bools, or labels of states; got 1 bools"),
        ({"terminal": 7}, InvalidMask, "`terminal`: expected labels of states"),
        ({"terminal": ["a", "b"]}, InvalidMask, "at least one non-terminal state"),
        ({"discount": 2.0}, InvalidInput, "discount"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        read(**options)


def test_columns_of_one_name_cannot_be_written():
    with pytest.raises(InvalidInput, match="distinct column names"):
        read().to_frame(state="next_state")
    with pytest.raises(InvalidInput, match=r"one name per part of a label \(1\)"):
        read().to_frame(state=["x", "y"])


def test_an_estimate_from_a_table_is_that_from_the_matrix():
    mdp = read(ROWS.assign(p=[1.0, 0.6, 1.0, 0.4]), states=["a", "b", "c"], actions=["go", "wait"])
    T = np.zeros((3, 2, 3))
    T[0, 0, :2], T[1, 0, 2], T[1, 1, 1] = (0.4, 0.6), 1.0, 1.0
    other = rv.MDP(T, 0.9, feasible=[[1, 0], [1, 1], [0, 0]], terminal=[0, 0, 1])
    reward = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(rv.solve(mdp, reward).value, rv.solve(other, reward).value, rtol=1e-12)
