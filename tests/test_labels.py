"""Labels are matched by their text, and an unknown one is named with what was near."""

import numpy as np
import pytest

from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.labels import find, how_many, listed, near, plain, spell


@pytest.mark.parametrize(
    ("one", "other"),
    [(3, "3"), (np.int64(3), 3), ((np.int64(1), "a"), (1, "a")), ([1, 2], (1, 2)), (np.str_("x"), "x")],
)
def test_labels_are_the_same_if_they_read_the_same(one, other):
    assert spell(one) == spell(other)
    assert find("state", [one], ["z", other]).tolist() == [1]


def test_labels_become_pythons_own_values():
    assert plain((np.int64(1), np.str_("a"), np.float64(0.5))) == (1, "a", 0.5)
    assert [type(part) for part in plain((np.int64(1), np.bool_(True)))] == [int, bool]


def test_places_come_in_the_order_wanted():
    known = ["b", "c", "a"]
    np.testing.assert_array_equal(find("state", ["a", "b", "a"], known), [2, 0, 2])


def test_the_first_unknown_label_is_named_with_its_place_and_what_is_near():
    with pytest.raises(
        InvalidInput, match=r"one of keep, replace; got 'replcae' \(first at row 1\). Did you mean replace"
    ):
        find("action", ["keep", "replcae", "nope"], ["keep", "replace"], what="row")


def test_the_kind_of_error_is_the_callers():
    with pytest.raises(InvalidDemonstrations):
        find("action", ["x"], ["y"], error=InvalidDemonstrations)


def test_long_lists_are_cut_and_say_so():
    assert listed(range(20)) == "0, 1, 2, 3, 4, 5, 6, 7, …"
    assert listed(range(3)) == "0, 1, 2"
    assert near("zzz", ["a", "b"]) is None


def test_whole_numbers_that_look_alike_are_not_meant():
    """Link 140 is no slip of 104; what is text may be one."""
    assert near(104, [140, 14, 1040]) is None
    assert near("104", ["140", "104a"]) == "Did you mean 104a?"
    assert near("10a4", [104]) == "Did you mean 104?"


def test_one_is_one_and_the_rest_are_many():
    assert [how_many(n, "such row") for n in (0, 1, 2)] == ["0 such rows", "1 such row", "2 such rows"]
