"""Eigenvalues and singular values that never raise: None where there are none to be had.

LAPACK gives up on numbers that are not finite, and now and then on finite ones, where its quick method does not
converge; a slower one then does. The caller decides what None means.
"""

from __future__ import annotations

import numpy as np

from revealed.checks import Floats


def symmetric_eigen(matrix: Floats) -> tuple[Floats, Floats] | None:
    """Eigenvalues (n,), ascending, and vectors (n, n) in columns, of the symmetric part of a matrix (n, n)."""
    if not np.isfinite(matrix).all():
        return None
    whole = 0.5 * matrix + 0.5 * matrix.T
    try:
        values, vectors = np.linalg.eigh(whole)
    except np.linalg.LinAlgError:
        return _slowly(whole)
    return values, vectors


def _slowly(whole: Floats) -> tuple[Floats, Floats] | None:
    """By QR iterations instead of divide and conquer."""
    from scipy.linalg import LinAlgError, eigh

    try:
        values, vectors = eigh(whole, driver="ev")
    except LinAlgError:
        return None
    return np.asarray(values, dtype=np.float64), np.asarray(vectors, dtype=np.float64)


def right_singular_vectors(matrix: Floats, whole: bool = False) -> Floats | None:
    """Orthonormal rows (n, K) that span those of a matrix (m, K), largest singular value first; with `whole` all K,
    the others orthogonal to every row of the matrix."""
    if not np.isfinite(matrix).all():
        return None
    try:
        return np.linalg.svd(matrix, full_matrices=whole)[2]
    except np.linalg.LinAlgError:
        return _singular_slowly(matrix, whole)


def _singular_slowly(matrix: Floats, whole: bool) -> Floats | None:
    from scipy.linalg import LinAlgError, svd

    try:
        rows = svd(matrix, full_matrices=whole, lapack_driver="gesvd")[2]
    except LinAlgError:
        return None
    return np.asarray(rows, dtype=np.float64)
