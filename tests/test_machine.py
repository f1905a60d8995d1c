"""Where a run took place, and that linear algebra keeps to one thread while cells are measured."""

import json
import os
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from revealed import __version__
from revealed.experiments import machine
from revealed.experiments.machine import ask_jax_for_one_thread, describe_machine, processor
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
