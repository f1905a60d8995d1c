"""Frames and files of decisions: any order, any library, mandatory id and time."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import revealed as rv
from revealed.errors import InvalidDemonstrations, InvalidInput

COLUMNS = {"id": "bus", "time": "month", "state": "x", "action": "d"}
TRAJECTORIES = {"a": ([0, 1, 3, 0], [0, 0, 1, 0]), "b": ([2, 3], [0, 1]), "c": ([1], [0])}


def frame(start: int = 0, **changes) -> pd.DataFrame:
    rows = [(name, start + t, s, d) for name, (xs, ds) in TRAJECTORIES.items() for t, (s, d) in enumerate(zip(xs, ds))]
    return pd.DataFrame(rows, columns=["bus", "month", "x", "d"]).assign(**changes)


def read(table, **options) -> rv.Demonstrations:
    arguments: dict[str, Any] = COLUMNS | options
    return rv.Demonstrations.from_frame(table, **arguments)


def expected() -> rv.Demonstrations:
    return rv.Demonstrations.from_trajectories(TRAJECTORIES.values(), n_states=4, n_actions=2, ids=list(TRAJECTORIES))


def assert_same(one: rv.Demonstrations, other: rv.Demonstrations) -> None:
    assert (one.n_states, one.n_actions, one.ids) == (other.n_states, other.n_actions, other.ids)
    np.testing.assert_array_equal(one.by_agent.toarray(), other.by_agent.toarray())
    np.testing.assert_array_equal(one.starts, other.starts)
    np.testing.assert_array_equal(one.transition_counts.toarray(), other.transition_counts.toarray())
    np.testing.assert_array_equal(one.discount_visits(0.5).weights, other.discount_visits(0.5).weights)


@pytest.mark.parametrize("seed", range(4))
def test_a_shuffled_frame_gives_what_the_trajectories_give(seed):
    assert_same(read(frame().sample(frac=1.0, random_state=seed)), expected())


def test_an_index_of_the_frame_does_not_matter():
    assert_same(read(frame().set_index(np.arange(7)[::-1] * 3)), expected())


def test_time_need_not_begin_at_zero():
    assert_same(read(frame(start=1974)), expected())


def test_every_kind_of_clock_orders_the_rows():
    dates = pd.Timestamp("1974-12-01") + pd.to_timedelta(frame().month * 30, unit="D")
    texts = (frame().month + 1).map("2024-03-0{}".format)
    for clock in (dates, frame().month * 0.5, frame().month.astype("uint8"), frame().month * 1.0, texts):
        assert_same(read(frame(month=clock).sample(frac=1.0, random_state=1)), expected())


def test_nullable_and_categorical_columns_are_read_as_what_they_hold():
    table = frame()
    assert_same(read(table.astype({"month": "Int64", "x": "Int64", "d": "Int64"})), expected())
    assert_same(read(table.astype({"bus": "category"})), expected())
    assert_same(read(table.astype({"bus": "string"})), expected())


def test_whole_numbers_in_an_object_column_are_still_whole_numbers():
    table = frame(x=[0, 1, 10, 0, 2, 3, 1], month=[0, 1, 5, 6, 0, 1, 0])  # as strings "10" would come before "2"
    as_objects = read(table.astype({"month": object, "x": object, "d": object}))
    assert as_objects.state_labels is None
    assert_same(as_objects, read(table))


def test_an_arrow_table_is_a_frame():
    import pyarrow as pa

    assert_same(read(pa.Table.from_pandas(frame().sample(frac=1.0, random_state=3))), expected())


def test_csv_and_parquet_paths(tmp_path):
    shuffled = frame().sample(frac=1.0, random_state=2)
    shuffled.to_csv(tmp_path / "panel.csv", index=False)
    shuffled.to_parquet(tmp_path / "panel.parquet")
    for name in ("panel.csv", "panel.parquet"):
        assert_same(read(tmp_path / name), expected())
        assert_same(read(str(tmp_path / name)), expected())


# labels


def test_strings_become_sorted_labels():
    d = read(frame(x=["b", "c", "a", "b", "c", "a", "c"], d=["go", "go", "stop", "go", "go", "stop", "go"]))
    assert d.state_labels == ("a", "b", "c")
    assert d.action_labels == ("go", "stop")
    np.testing.assert_array_equal(d.counts, [[0, 2], [2, 0], [3, 0]])


def test_states_and_next_states_share_their_labels():
    table = frame(x=list("bcabcac"), to=list("cabbaab"))
    d = read(table, next_state="to")
    assert d.state_labels == ("a", "b", "c")
    assert d.transition_counts.sum() == 7


def test_truth_values_are_labels_in_order():
    assert read(frame(d=frame().d == 1)).action_labels == ("False", "True")


def test_whole_numbers_have_no_labels():
    assert read(frame()).state_labels is None


# sizes


def test_sizes_default_to_what_the_columns_hold_and_can_be_larger():
    assert (read(frame()).n_states, read(frame()).n_actions) == (4, 2)
    d = read(frame(), n_states=9, n_actions=3)
    assert d.counts.shape == (9, 3)


@pytest.mark.parametrize(("size", "match"), [({"n_states": 3}, "at least 4"), ({"n_actions": 1}, "at least 2")])
def test_sizes_that_are_too_small_are_refused(size, match):
    with pytest.raises(InvalidDemonstrations, match=match):
        read(frame(), **size)


def test_next_states_count_towards_the_size():
    assert read(frame(to=[1, 3, 0, 7, 3, 5, 1]), next_state="to").n_states == 8


# time


def test_a_gap_in_whole_number_times_breaks_the_trajectory():
    d = read(frame(month=[0, 1, 5, 6, 0, 1, 0]))
    assert d.transition_counts.sum() == expected().transition_counts.sum() - 1
    assert d.transition_counts.toarray()[1 * 2 + 0, 3] == 0  # from 1 to 3 happened across the gap
    np.testing.assert_array_equal(d.starts, expected().starts)  # what comes after the gap is no start
    assert d.n_agents == 3


def test_time_after_a_gap_counts_from_the_agents_first_row():
    d = read(frame(month=[0, 1, 5, 6, 0, 1, 0]))
    assert d.steps is not None
    np.testing.assert_array_equal(d.steps.time, [0, 1, 5, 6, 0, 1, 0])


def test_what_comes_after_a_gap_is_lifted_to_its_time_and_is_no_start():
    d = read(frame(month=[0, 1, 5, 6, 0, 1, 0]))
    lifted = d.lift(rv.MDP(np.full((4, 2, 4), 0.25)).unroll(7))
    np.testing.assert_array_equal(lifted.starts, [*expected().starts, *np.zeros(28)])
    assert lifted.counts[20:].sum() == 2.0  # months 5 and 6


def test_the_same_time_twice_is_refused():
    with pytest.raises(InvalidDemonstrations, match=r"id 'a' twice at time .*1.*row 2"):
        read(frame(month=[0, 1, 1, 3, 0, 1, 0]))


def test_the_row_that_is_named_is_the_users_own():
    table = frame(month=[0, 1, 1, 3, 0, 1, 0]).iloc[::-1].reset_index(drop=True)
    with pytest.raises(InvalidDemonstrations, match=r"row (4|5)\b"):
        read(table)


# next states


def test_a_column_of_next_states_tells_the_last_moves():
    table = frame(to=[1, 3, 0, 2, 3, 0, 1])
    d = read(table, next_state="to")
    assert d.transition_counts.sum() == 7
    assert d.transition_counts.toarray()[0 * 2 + 0, 2] == 1


def test_next_states_that_contradict_the_following_row_are_refused():
    with pytest.raises(InvalidDemonstrations, match="next_state"):
        read(frame(to=[1, 2, 0, 2, 3, 0, 1]), next_state="to")


def test_across_a_gap_the_next_state_is_free():
    d = read(frame(month=[0, 1, 5, 6, 0, 1, 0], to=[1, 2, 0, 2, 3, 0, 1]), next_state="to")
    assert d.transition_counts.toarray()[1 * 2 + 0, 2] == 1


# what cannot be read


@pytest.mark.parametrize("role", ["id", "time", "state", "action"])
def test_unknown_columns_are_named_with_those_there_are(role):
    with pytest.raises(InvalidInput, match=r"'bus', 'month', 'x', 'd'.*'nope'") as caught:
        read(frame(), **{role: "nope"})
    assert caught.value.argument == role


@pytest.mark.parametrize("role", ["id", "time", "state", "action"])
def test_columns_are_mandatory(role):
    with pytest.raises(InvalidInput, match=role):
        read(frame(), **{role: None})


@pytest.mark.parametrize("hole", [None, np.nan, pd.NA])
@pytest.mark.parametrize("role", ["id", "time", "state", "action"])
def test_missing_values_are_named_by_role_and_row(role, hole):
    table = frame().astype({COLUMNS[role]: object})
    table.loc[2, COLUMNS[role]] = hole
    with pytest.raises(InvalidDemonstrations, match="row 2") as caught:
        read(table)
    assert caught.value.argument == role


def test_missing_values_of_nullable_columns_and_dates_are_found():
    for column, kind in (("x", "Int64"), ("bus", "string")):
        table = frame().astype({column: kind})
        table.loc[2, column] = pd.NA
        with pytest.raises(InvalidDemonstrations, match="row 2"):
            read(table)
    with pytest.raises(InvalidDemonstrations, match="row 2"):
        read(frame(month=pd.to_datetime(pd.Series(["2000-01-01", "2000-02-01", None, *["2000-03-01"] * 4]))))


def test_negative_and_real_numbers_are_no_states():
    with pytest.raises(InvalidDemonstrations, match=r"-1 \(first at row 2\)"):
        read(frame(x=[0, 1, -1, 0, 2, 3, 1]))
    with pytest.raises(InvalidDemonstrations, match=r"bins \(rv.discretize\), or labels"):
        read(frame(x=np.linspace(0, 1, 7)))


@pytest.mark.parametrize("column", ["bus", "month"])
def test_ids_and_times_that_cannot_be_ordered_are_refused(column):
    table = frame().astype({column: object})
    table.loc[0, column] = 3
    table.loc[1, column] = "three"
    with pytest.raises(InvalidDemonstrations):
        read(table)


def test_numbers_too_large_for_an_index_are_refused():
    for number in (np.uint64(2**64 - 1), np.int64(2**63 - 1)):
        x = np.zeros(7, dtype=number.dtype)
        x[3] = number
        with pytest.raises(InvalidDemonstrations, match="row 3"):
            read(frame(x=x))


def test_columns_of_one_name_are_refused():
    with pytest.raises(InvalidInput):
        read(pd.concat([frame(), frame()], axis=1))


@pytest.mark.parametrize("thing", [None, 3, {"bus": [1]}, np.zeros((3, 4)), b"panel.csv", pd.Series([1, 2])])
def test_what_is_no_frame_is_refused(thing):
    with pytest.raises(InvalidInput, match="a data frame or the path"):
        read(thing)


def test_a_frame_without_rows_is_refused():
    with pytest.raises(InvalidDemonstrations, match="at least one row"):
        read(frame().iloc[:0])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("torn.csv", b"bus,month,x,d\n1,0,0\n1,1,0,0,7,7\n"),
        ("bytes.csv", b"\xff\xfe\x00\x81"),
        ("not.parquet", b"not a parquet file"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=name):
        read(tmp_path / name)


def test_a_path_without_a_file_is_refused(tmp_path):
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(InvalidInput, match="exists"):
            read(path)


@pytest.mark.parametrize("keep_steps", [True, False])
def test_numbers_from_one_are_suspected_only_where_no_zero_occurs(keep_steps):
    table = pd.DataFrame({"id": [1, 1, 1], "t": [0, 1, 2], "s": [0, 1, 3], "a": [1, 2, 1]})
    names: dict[str, Any] = {"id": "id", "time": "t", "state": "s", "action": "a", "keep_steps": keep_steps}
    with pytest.raises(InvalidDemonstrations, match="`n_states`: expected at least 4") as told:
        rv.Demonstrations.from_frame(table, n_states=3, **names)
    assert "numbered from 1" not in str(told.value)
    with pytest.raises(InvalidDemonstrations, match=r"numbered from 1, pass states=range\(1, 5\)"):
        rv.Demonstrations.from_frame(table.assign(s=table.s + 1), n_states=4, **names)
    with pytest.raises(InvalidDemonstrations, match=r"numbered from 1, pass actions=range\(1, 3\)"):
        rv.Demonstrations.from_frame(table, n_actions=2, **names)


def test_no_trajectories_are_told_before_a_missing_size():
    with pytest.raises(InvalidDemonstrations, match="`trajectories`: expected at least one trajectory"):
        rv.Demonstrations.from_trajectories([])
