"""Independent pieces of work: every result once, as they finish, here or in workers, wherever joblib is told to run."""

import os
import pickle
import threading
import time
from typing import Any

import pytest
from joblib import parallel_config, register_parallel_backend
from joblib._parallel_backends import ThreadingBackend

from revealed import parallel
from revealed.errors import InvalidInput, WorkersLost
from revealed.parallel import cores, each, elsewhere, in_order, in_worker, one_thread, side_by_side


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_every_piece_is_done_once(jobs):
    assert sorted(each(pow, [(n, 2) for n in range(12)], jobs)) == [n * n for n in range(12)]


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.filterwarnings("error")
def test_whoever_stops_in_the_middle_is_not_told_that_pieces_were_in_vain(backend):
    with parallel_config(backend=backend):
        results: Any = each(pow, [(n, 2) for n in range(200)], 2)
        next(results)
        time.sleep(0.1)
        results.close()


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_nothing_to_do_is_done_at_once(jobs):
    assert list(each(pow, [], jobs)) == []


@pytest.mark.parametrize("jobs", [None, 1])
def test_one_worker_is_this_process(jobs):
    assert set(each(os.getpid, [(), (), ()], jobs)) == {os.getpid()}


def test_two_workers_are_other_processes():
    assert os.getpid() not in set(each(os.getpid, [(), (), ()], 2))


def test_results_come_as_they_finish():
    done = threading.Event()

    def work(waits: bool) -> bool:
        done.wait(10.0) if waits else done.set()
        return waits

    with parallel_config(backend="threading"):
        assert list(each(work, [(True,), (False,)], 2)) == [False, True]


def test_one_worker_hands_over_each_result_before_the_next_is_begun():
    begun: list[int] = []
    results = each(begun.append, [(k,) for k in range(3)], 1)
    next(results)
    assert begun == [0]


def test_the_backend_and_the_number_of_workers_may_be_chosen_outside():
    meeting = threading.Barrier(2, timeout=10.0)  # passed only if two are at work at once

    def work() -> tuple[int, str]:
        meeting.wait()
        time.sleep(0.01)
        return os.getpid(), threading.current_thread().name

    with parallel_config(backend="threading", n_jobs=2):
        places = list(each(work, [(), (), (), ()]))
    assert {pid for pid, _ in places} == {os.getpid()}
    assert len({name for _, name in places}) == 2


class Cluster(ThreadingBackend):
    """A backend that has its workers elsewhere, and as many as it likes: Dask's and Ray's are of this kind."""

    def configure(self, n_jobs=1, parallel=None, **_):
        return super().configure(2, parallel)

    def effective_n_jobs(self, n_jobs):
        return 2


def test_one_worker_is_this_process_even_where_a_cluster_is_at_hand():
    register_parallel_backend("cluster", Cluster)
    here = threading.current_thread().name
    with parallel_config(backend="cluster"):
        assert here not in set(each(lambda: threading.current_thread().name, [()] * 4))
        assert set(each(lambda: threading.current_thread().name, [()] * 4, 1)) == {here}


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_piece_raises_reaches_the_caller(jobs):
    with pytest.raises(ZeroDivisionError):
        list(each(divmod, [(1, 1), (1, 0)], jobs))


def die_once(mark: str, k: int) -> int:
    """The square; who comes first to the fourth piece dies of it."""
    if k == 3 and not os.path.exists(mark):
        open(mark, "w").close()
        os._exit(1)
    return k * k


def test_pieces_whose_worker_dies_are_handed_out_again(tmp_path):
    assert sorted(each(die_once, [(str(tmp_path / "mark"), k) for k in range(8)], 2)) == [k * k for k in range(8)]


def test_a_piece_that_kills_whoever_takes_it_is_given_up_in_words(monkeypatch):
    monkeypatch.setattr(parallel, "MOST_LOSSES", 1)
    with pytest.raises(WorkersLost, match=r"^worker processes kept dying; unfinished tasks: 1 \(Termin") as found:
        list(each(os._exit, [(1,)], 2))
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "two"])
def test_a_number_of_workers_that_is_none_is_refused(jobs):
    with pytest.raises(InvalidInput, match="`jobs`: expected a whole number, at least 1; got"):
        list(each(pow, [(2, 2)], jobs))


class Rounds(ThreadingBackend):
    @property
    def supports_return_generator(self) -> bool:
        return False


def test_a_backend_that_works_in_rounds_does_every_piece_once(monkeypatch):
    """Ray's is of this kind; several rounds."""
    monkeypatch.setattr(parallel, "AT_ONCE", 2)
    register_parallel_backend("rounds", Rounds)
    with parallel_config(backend="rounds", n_jobs=2):
        assert sorted(each(pow, [(n, 2) for n in range(11)])) == [n * n for n in range(11)]


def test_pieces_that_share_the_cores_know_it():
    with parallel_config(backend="threading", n_jobs=2):
        assert set(each(in_worker, [()] * 4)) == {True}
    assert set(each(in_worker, [()] * 2)) == set(each(in_worker, [()] * 2, 1)) == {in_worker()} == {False}


def test_a_cluster_is_told_from_the_cores_of_this_machine():
    register_parallel_backend("cluster", Cluster)
    assert not elsewhere()
    with parallel_config(backend="threading", n_jobs=2):
        assert not elsewhere()
    with parallel_config(backend="cluster"):
        assert elsewhere()
        assert set(each(elsewhere, [()] * 3)) == {False}  # a piece stays where it is
        assert list(in_order(lambda k: k * k, range(11))) == [k * k for k in range(11)]


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert cores() == 3


@pytest.mark.parametrize(("count", "expected"), [(4, 4), (None, 1)])
def test_where_the_system_does_not_say_all_cores_count(monkeypatch, count, expected):
    monkeypatch.delattr(parallel.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(parallel.os, "cpu_count", lambda: count)
    assert cores() == expected


def test_the_last_to_leave_puts_back_the_threads_that_the_first_found():
    """Spans that overlap in any order leave the process as it was."""
    from threadpoolctl import threadpool_info

    def threads() -> list[int]:
        return [found["num_threads"] for found in threadpool_info()]

    before = threads()
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    assert set(threads()) <= {1}
    first.__exit__(None, None, None)
    assert set(threads()) <= {1}
    second.__exit__(None, None, None)
    assert threads() == before


@pytest.mark.parametrize("n", [1, 2, 3])
def test_work_side_by_side_comes_back_in_its_order(monkeypatch, n):
    """The first piece takes longest, and still comes first; a failure reaches whoever asked."""
    monkeypatch.setattr(parallel, "cores", lambda: n)

    def slow(item: int) -> int:
        time.sleep(0.02 if item == 0 else 0.0)
        return item * item

    assert list(side_by_side(slow, range(9))) == [k * k for k in range(9)]
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda item: 1 // item, [1, 0, 2]))
