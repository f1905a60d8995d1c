"""What is typed: commas make lists, unless something is called so."""

import pytest

from revealed.commands.wording import in_flags
from revealed.errors import InvalidInput
from revealed.typed import (
    as_labels,
    bins_as_typed,
    find_typed,
    parse_bins,
    parted,
    parted_bins,
    parted_paths,
    texts_of,
)


def test_labels_as_they_are_typed():
    assert as_labels(["3", "a"], [3, "a"]) == ["3", "a"]
    assert as_labels(["3,a", "(3, a)"], [(3, "a")]) == [("3", "a"), "(3, a)"]
    assert as_labels(["zoo, park", "a,b", "zoo,moon"], ["zoo", "park", "a,b"]) == ["zoo", "park", "a,b", "zoo,moon"]


def test_columns_are_taken_apart_unless_one_is_called_so():
    assert parted(["health,kids", "x"], ["health", "kids"]) == ["health", "kids", "x"]
    assert parted(["health,kids"], ["health,kids", "health"]) == ["health,kids"]
    assert parted(["a,,b", ","], []) == ["a,,b", ","]  # nobody means nothing


def test_files_are_taken_apart_where_they_are_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv", "a,b.csv"):
        (tmp_path / name).touch()
    assert parted_paths(["a.csv,b.csv", "a,b.csv", "a.csv,c.csv"]) == ["a.csv", "b.csv", "a,b.csv", "a.csv,c.csv"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("miles=20,age=5", ["miles=20", "age=5"]),
        ("miles=edges:0,5,10,age=quantile:2", ["miles=edges:0,5,10", "age=quantile:2"]),
        ("a,b=20", ["a,b=20"]),
    ],
)
def test_bins_are_taken_apart_between_columns(text, parts):
    assert parted_bins([text], ["miles", "age", "a,b"]) == parts
    assert all(parse_bins(part)[0] in ("miles", "age", "a,b") for part in parts)


def test_texts_of_an_option():
    assert [texts_of(value) for value in ("a", ["a", "b"], None, 3, [32, 16])] == [["a"], ["a", "b"], [], [], []]


def test_what_is_no_label_is_told_as_it_was_typed():
    assert find_typed("--state", ["1,u"], [(0, "u"), (1, "u")]).tolist() == [1]
    with pytest.raises(InvalidInput, match=r"got '9'\.$"):
        find_typed("--links", ["3", "9"], [3, 4])
    with pytest.raises(InvalidInput, match=r"labels of 2 parts with commas between them, such as 0,u; got '1'\.$"):
        find_typed("--state", ["1", "u"], [(0, "u"), (1, "u")])


def test_complaints_about_bins_name_the_option_as_it_was_given():
    for argument in ("column 'm'", "edges of 'm'"):
        with pytest.raises(InvalidInput) as told, bins_as_typed(["x=3", "m=edges:0,5"]):
            raise InvalidInput(argument, "increasing numbers", "0")
        assert in_flags(told.value).startswith("`--bins m=edges:0,5`: expected increasing numbers")
        assert str(told.value).startswith("`bins=['m=edges:0,5']`: expected increasing numbers")
