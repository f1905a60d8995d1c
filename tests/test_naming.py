"""What states and actions are called, and how those that are named are found."""

from types import SimpleNamespace

import numpy as np
import pytest

import revealed as rv
from revealed.labels import Order
from revealed.naming import (
    Names,
    in_words,
    label_array,
    pair_in_words,
    places,
    state_in_words,
    unrolled_labels,
    weights_by_name,
)

LABELS = ("a", 7, (1, "x"), np.str_("b"))


def test_names_are_labels_as_python_writes_them_else_numbers():
    assert [in_words("state", LABELS, k) for k in range(4)] == ["state 'a'", "state 7", "state (1, 'x')", "state 'b'"]
    assert in_words("action", None, 3) == "action 3"
    assert state_in_words(Names(LABELS, None), 2) == "state (1, 'x')"
    assert pair_in_words(SimpleNamespace(state_labels=None, action_labels=("go",)), 5, 0) == "state 5, action 'go'"


def test_every_place_is_found_by_its_label_and_by_its_number_where_no_label_is_one():
    assert places("x", ["b", "7", (1, "x"), "a"], LABELS, 4).tolist() == [3, 1, 2, 0]
    assert places("x", [7, np.int64(7)], LABELS, 4).tolist() == [1, 1]  # a label, never an index
    with pytest.raises(rv.errors.InvalidInput, match=r"one of a, 7, \(1, x\), b; got 1"):
        places("x", [1], LABELS, 4)
    for labels in (None, ("c", "a", "b"), Order("cab"), (False, True, "?")):
        assert places("x", [0, 2, 1], labels, 3).tolist() == [0, 2, 1]
    with pytest.raises(
        rv.errors.InvalidInput, match=r"position 2 cannot be matched .* the data were sorted \(0 = a, 1 = b"
    ):
        places("x", [2], Order("abc", derived=True), 3)


def test_labels_of_a_horizon_are_in_the_order_of_its_states():
    mdp = rv.MDP(np.full((2, 1, 2), 0.5), state_labels=["a", "b"]).unroll(2)
    labels = mdp.state_labels
    assert labels == unrolled_labels(("a", "b"), 3)
    assert labels is not None
    for s, (time, label) in enumerate(labels):
        assert s == time * 2 + ("a", "b").index(label)
    assert unrolled_labels(None, 3) is None


def test_an_array_of_labels_has_the_shape_of_the_indices_and_keeps_tuples_whole():
    index = np.array([[0, 2], [2, 3]])
    assert label_array(LABELS, index).tolist() == [["a", (1, "x")], [(1, "x"), "b"]]
    assert label_array(None, index) is index


def test_weights_that_name_nothing_are_left_as_they_came():
    for given in (np.ones(4) / 4, [0.25] * 4, (0.25, 0.25, 0.25, 0.25), None):
        assert weights_by_name("x", given, LABELS, 4) is given
    assert weights_by_name("x", (1, "x"), LABELS, 4).tolist() == [0, 0, 1, 0]  # a tuple that is a label
    assert weights_by_name("x", {"a": 0.5, 7: 0.5}, LABELS, 4).tolist() == [0.5, 0.5, 0, 0]
    assert weights_by_name("x", {0: 0.5, 3: 0.5}, ("a", "b", "c", "d"), 4).tolist() == [0.5, 0, 0, 0.5]
