"""Eigenvalues and singular vectors where LAPACK gives up."""

from typing import Any

import numpy as np
import pytest

from revealed.eigen import right_singular_vectors, symmetric_eigen
from revealed.hypotheses import quadratic_form
from revealed.identification import identify


def fails(*given: Any, **options: Any) -> Any:
    raise np.linalg.LinAlgError("Eigenvalues did not converge")


def random_matrix(n: int = 5, m: int = 5) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, m))


def test_the_slower_method_gives_the_same(monkeypatch):
    A = random_matrix()
    quick = symmetric_eigen(A)
    rows = [right_singular_vectors(random_matrix(3), whole) for whole in (False, True)]
    monkeypatch.setattr(np.linalg, "eigh", fails)
    monkeypatch.setattr(np.linalg, "svd", fails)
    slow = symmetric_eigen(A)
    assert quick is not None
    assert slow is not None
    np.testing.assert_allclose(slow[0], quick[0], rtol=1e-12)
    np.testing.assert_allclose(slow[1] * slow[0] @ slow[1].T, (A + A.T) / 2.0, atol=1e-12)
    for whole, before in zip((False, True), rows, strict=True):
        after = right_singular_vectors(random_matrix(3), whole)
        assert after is not None
        assert before is not None
        np.testing.assert_allclose(np.abs(after[:3] @ before[:3].T), np.eye(3), atol=1e-12)
        np.testing.assert_allclose(after @ after.T, np.eye(len(after)), atol=1e-12)
    assert len(after) == 5


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_have_none(bad):
    A = random_matrix()
    A[2, 3] = bad
    assert symmetric_eigen(A) is None
    assert right_singular_vectors(A) is None


def test_none_where_no_method_converges(monkeypatch):
    import scipy.linalg

    for where in (np.linalg, scipy.linalg):
        monkeypatch.setattr(where, "eigh", fails)
        monkeypatch.setattr(where, "svd", fails)
    assert symmetric_eigen(random_matrix()) is None
    assert right_singular_vectors(random_matrix()) is None
    assert np.isnan(quadratic_form(np.ones(2), np.eye(2))[0])
    found = identify(np.eye(2), ["a", "b"])
    assert (found.rank, found.condition) == (0, np.inf)
    assert "cannot be computed" in found.words


@pytest.mark.filterwarnings("ignore:invalid value")
def test_information_that_is_not_finite_identifies_nothing():
    A = np.eye(2)
    A[0, 1] = A[1, 0] = np.nan
    assert identify(A, ["a", "b"]).rank == 0
    assert identify(np.diag([1.0, np.nan]), ["a", "b"]).rank == 0
