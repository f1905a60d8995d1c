"""Where a run took place, and that linear algebra keeps to one thread while cells are measured."""

import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from revealed import __version__
from revealed.experiments import machine
from revealed.experiments.machine import BUSY, WINDOW, OtherWork, ask_jax_for_one_thread, describe_machine, processor
from revealed.parallel import one_thread


def threads() -> set[int]:
    """The numbers of threads that the linear algebra libraries of this process may use."""
    np.dot(np.eye(2), np.eye(2))
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    """As on a machine where nobody has asked for less."""
    with threadpool_limits(2):
        if threads() != {2}:
            pytest.skip("the linear algebra library of this machine knows one thread only")
        yield


def test_one_thread_while_it_lasts_and_as_many_as_before_afterwards():
    with one_thread():
        assert threads() == {1}
        with one_thread():
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {2}


def test_an_error_inside_lifts_the_limit():
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert threads() == {2}


def test_threads_side_by_side_keep_to_it_when_the_one_that_started_them_asked_first():
    entered, left = threading.Event(), threading.Event()
    seen: list[set[int]] = []

    def stays() -> None:
        with one_thread():
            entered.set()
            left.wait(10.0)
            seen.append(threads())

    with one_thread():
        other = threading.Thread(target=stays)
        other.start()
        assert entered.wait(10.0)
        with one_thread():
            pass
        left.set()
        other.join()
    assert seen == [{1}]
    assert threads() == {2}


def test_a_machine_is_described_with_its_versions():
    about = describe_machine()
    assert json.loads(json.dumps(about)) == about
    assert about["revealed"] == __version__
    assert about["numpy"] == np.__version__
    assert about["cores"] >= 1
    assert about["processor"] == processor() != ""


def test_a_package_that_is_missing_is_named_as_such(monkeypatch):
    monkeypatch.setattr(machine, "PACKAGES", ("no-such-package",))
    assert describe_machine()["no-such-package"] == "not installed"


def test_a_processor_without_a_name_is_unknown(monkeypatch):
    monkeypatch.setattr(machine.Path, "read_text", lambda *_, **__: "flags: many\n")
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    assert processor() == "unknown"


def test_a_choice_of_threads_for_jax_that_was_made_is_kept(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    ask_jax_for_one_thread()
    assert "intra_op_parallelism_threads=1" in os.environ["XLA_FLAGS"]
    monkeypatch.setenv("XLA_FLAGS", "--mine")
    ask_jax_for_one_thread()
    assert os.environ["XLA_FLAGS"] == "--mine"


# what other work takes


def test_a_busy_neighbour_is_seen():
    others = OtherWork()
    if others._seen[0][1] != others._seen[0][1]:
        pytest.skip("this system does not tell how busy it is")
    assert others.cores() is None  # no second has passed yet
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as neighbour:
        try:
            time.sleep(1.2 * WINDOW)
            seen = others.cores()
        finally:
            neighbour.kill()
    assert seen is not None
    assert seen >= BUSY


def test_ones_own_work_is_not_others(monkeypatch):
    clock = [(0.0, 5.0), (0.4, 5.0), (2.0, 5.1), (2.1, 5.2), (5.0, 11.0)]
    monkeypatch.setattr(machine, "_times", lambda: clock.pop(0))
    others = OtherWork()
    assert others.cores() is None
    assert others.cores() == 0.06  # since 0.4, the last call
    assert others.cores() == 0.12  # since 0.4 again: 2.0 was just now
    assert others.cores() == 2.0  # since 2.1


def test_the_time_of_others_is_that_of_the_machine_less_ones_own(monkeypatch):
    monkeypatch.setattr(machine, "_busy", lambda: 100.0)
    own = time.process_time()
    before = machine._times()[1]
    while time.process_time() < own + 0.2:
        pass
    assert before - machine._times()[1] == pytest.approx(0.2, abs=0.1)


def test_a_system_that_does_not_tell_gives_no_load(monkeypatch):
    monkeypatch.setattr(machine.Path, "read_text", lambda *_, **__: "cpu of another kind\n")
    assert machine._busy() != machine._busy()
    others = OtherWork()
    monkeypatch.setattr(machine, "WINDOW", 0.0)
    assert others.cores() is None
