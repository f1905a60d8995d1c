"""What JSON cannot say survives all the same; what cannot be saved is an error that names it, and no file."""

import enum
import json
import uuid
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given

import revealed as rv
from models import random_mdp
from revealed import saving
from revealed.loading import _Decoder  # pyright: ignore[reportPrivateUsage]
from revealed.saving import Encoder

MDP = rv.MDP(np.full((2, 2, 2), 0.5))
FIT = rv.CCP(rv.LinearReward(np.eye(2)[:, :, None]), l2=0.1).fit(MDP, rv.Demonstrations.from_counts([[3, 1], [2, 2]]))


def there_and_back(value: Any) -> Any:
    encoder = Encoder()
    document = json.loads(json.dumps(encoder.encode(value, "value"), allow_nan=False))
    return _Decoder(encoder.arrays, None).decode(document)


def same(one: Any, two: Any) -> bool:
    if isinstance(one, list | tuple | dict):
        ones, twos = (list(x.items()) if isinstance(x, dict) else list(x) for x in (one, two))
        return type(one) is type(two) and len(ones) == len(twos) and all(map(same, ones, twos))
    return type(one) is type(two) and (one == two or (one != one and two != two)) and str(one) == str(two)


zones: Any = (
    st.none() | st.just(UTC) | st.just(timezone(timedelta(hours=5, minutes=45))) | st.just(ZoneInfo("Europe/Oslo"))
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),
    st.dates(),
    st.datetimes(
        min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1), timezones=zones, allow_imaginary=False
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=20).map(tuple),
        st.dictionaries(st.text(max_size=5) | st.integers() | st.just("$tuple"), inner, max_size=4),
    ),
    max_leaves=12,
)


@given(value=values)
def test_values_survive_with_their_types(value):
    assert same(there_and_back(value), value)


@pytest.mark.parametrize(
    "value",
    [
        np.datetime64("2020-02-03"),
        np.datetime64("2020-02-03T04:05:06.000000007"),
        np.timedelta64(3, "h"),
        pd.Timestamp("2020-02-03 04:05:06.000000007"),
        pd.Timestamp("2020-02-03 04:05", tz="Europe/Oslo"),
        pd.Timestamp("2020-10-25 02:30", tz=timezone(timedelta(hours=1))),
        pd.Timestamp("2020-02-03", tz="UTC").as_unit("s"),
        datetime(2020, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Oslo")),
        -0.0,
        5e-324,
        10**40,
        "\ud800",
    ],
    ids=repr,
)
def test_times_and_odd_numbers_survive(value):
    found = there_and_back(value)
    assert same(found, value)
    assert repr(found) == repr(value)
    assert np.signbit(found) == np.signbit(value) if isinstance(value, float) else True


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int8(3), 3),
        (np.float64(0.1), 0.1),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.str_("a"), "a"),
        (np.bool_(True), True),
        (range(3), [0, 1, 2]),
        ((np.int64(1), np.str_("b")), (1, "b")),
    ],
)
def test_scalars_of_numpy_become_pythons(value, plain):
    assert same(there_and_back(value), plain)


@pytest.mark.parametrize("make", [pd.Series, np.array, np.asfortranarray], ids=lambda f: f.__name__)
def test_what_is_an_array_becomes_one(make):
    found = there_and_back(make([1.0, np.nan]))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, np.asarray(make([1.0, np.nan])))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_array, sp.csc_matrix])
def test_sparse_matrices_become_csr(kind):
    dense = np.array([[0.0, 2.0], [np.nan, 0.0]])
    found = there_and_back(kind(dense))
    assert isinstance(found, sp.csr_array)
    np.testing.assert_array_equal(found.toarray(), dense)


def test_what_occurs_twice_is_written_once_and_is_one_object_again():
    array, labels = np.arange(3.0), tuple(map(str, range(100)))
    encoder = Encoder()
    document = encoder.encode([array, array, labels, labels], "value")
    assert len(encoder.arrays) == 1
    assert json.dumps(document).count('"99"') == 1
    one, two, three, four = _Decoder(encoder.arrays, None).decode(document)
    assert one is two
    assert three is four


def test_different_arrays_never_share_a_name():
    one, two = there_and_back({"a b": np.zeros(1), "a_b": np.ones(1)}).values()
    assert (one[0], two[0]) == (0.0, 1.0)


# what cannot be saved


class Colour(enum.Enum):
    RED = 1


class Text(str):
    """Not quite a text."""


def test_a_subclass_is_not_taken_for_its_parent():
    with pytest.raises(rv.errors.InvalidInput, match="Text"):
        there_and_back(Text("a"))


@pytest.mark.parametrize(
    "label", [Colour.RED, uuid.UUID(int=1), Decimal("1.5"), b"a", frozenset([1]), 1 << 20_000], ids=type
)
def test_labels_of_other_types_are_named(tmp_path, label):
    mdp = rv.MDP(np.full((2, 2, 2), 0.5), state_labels=["a", ("b", label)])
    fit = replace(FIT, mdp=mdp)
    where = r"\(first at mdp\.state_labels\[1\]\[1\]\)\. Labels and ids are text, numbers, dates, or tuples of these"
    with pytest.raises(rv.errors.InvalidInput, match=where):
        fit.save(tmp_path / "fit.zip")
    assert list(tmp_path.iterdir()) == []


class Mine:
    """A first step of one's own."""

    def estimate(self, mdp: Any, counts: Any, reward: Any) -> Any:
        return mdp.uniform_policy()


def test_a_first_step_of_ones_own_cannot_be_saved(tmp_path):
    fit = rv.CCP(rv.LinearReward(np.eye(2)[:, :, None]), first_step=Mine(), l2=0.1).fit(MDP, FIT.demonstrations)
    remedy = 'Use one of the library\'s own, such as "logit"; without goals, an (S, A) array that yours estimates.'
    with pytest.raises(rv.errors.InvalidInput) as caught:
        fit.save(tmp_path / "fit.zip")
    assert str(caught.value).endswith(f"got Mine (first at options.first_step). {remedy}")


class Own(rv.CCP):
    """An estimator of one's own."""


def test_an_estimator_of_ones_own_cannot_be_saved(tmp_path):
    fit = Own(rv.LinearReward(np.eye(2)[:, :, None]), l2=0.1).fit(MDP, FIT.demonstrations)
    with pytest.raises(rv.errors.InvalidInput, match=r"got Own \(first at estimator\).*rv\.NFXP"):
        fit.save(tmp_path / "fit.zip")


def test_a_model_of_transitions_that_is_not_known_cannot_be_saved(tmp_path, monkeypatch):
    demos = rv.Demonstrations.from_trajectories([([0, 1, 0, 1, 0], [0, 1, 1, 0])], 2, 2)
    mdp = rv.MDP(rv.estimate_transitions(demos, unseen="stay"), discount=0.5)
    fit = rv.CCP(rv.LinearReward(np.eye(2)[:, :, None]), l2=0.1).fit(mdp, demos)
    monkeypatch.delitem(saving.KNOWN, "Frequencies")
    with pytest.raises(rv.errors.InvalidInput, match=r"got Frequencies \(first at mdp\.estimated\.model\)"):
        fit.save(tmp_path / "fit.zip")


def test_every_known_class_is_where_it_is_said_to_be():
    for name, module in saving.KNOWN.items():
        assert getattr(__import__(module, fromlist=[name]), name).__module__ == module


def test_a_new_part_of_a_fit_is_saved_or_refused_but_never_lost(tmp_path):
    demos = rv.Demonstrations.from_counts([[3, 1], [2, 2]])
    vars(demos)["remark"] = {"a": (1, 2.5)}
    assert b"remark" in json.dumps(Encoder().encode(demos, "demonstrations")).encode()
    vars(demos)["remark"] = object()
    with pytest.raises(rv.errors.InvalidInput, match=r"got object \(first at demonstrations\.remark\)"):
        replace(FIT, demonstrations=demos).save(tmp_path / "fit.zip")


# where it is written


def test_the_same_fit_gives_the_same_bytes(tmp_path):
    one, two = FIT.save(tmp_path / "one"), FIT.save(tmp_path / "two")
    assert one.read_bytes() == two.read_bytes()
    FIT.summary()
    assert FIT.save(tmp_path / "three").read_bytes() == one.read_bytes()  # what was computed since is not in it


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(rv.errors.InvalidInput, match=r"`path`: expected a folder that can be written; got .*file"):
        FIT.save(tmp_path / "file" / "fit.zip")


def test_an_old_fit_survives_one_that_cannot_be_saved(tmp_path):
    path: Path = FIT.save(tmp_path / "fit.zip")
    before = path.read_bytes()
    with pytest.raises(rv.errors.InvalidInput):
        replace(FIT, options={"odd": object()}).save(path)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("fit.zip", before)]


def test_dates_as_labels_of_a_model(tmp_path):
    days = [date(2020, 1, day) for day in range(1, 13)]
    mdp = random_mdp(12, 2).replace(state_labels=days)
    fit = rv.CCP(rv.TabularReward(12), l2=0.1).fit(mdp, rv.Demonstrations.from_counts(np.ones((12, 2))))
    assert rv.load(fit.save(tmp_path / "fit.zip")).mdp.state_labels == tuple(days)
