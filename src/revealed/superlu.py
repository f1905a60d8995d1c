"""SuperLU: what it says where it fails is told apart here, a singular matrix from too little memory."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
import scipy.sparse.linalg as spla

from revealed.errors import SolverFailed

SINGULAR = (
    "I − γT^π is singular: from some states this policy never reaches a terminal state. Use a policy that takes every "
    "action leading to a terminal state with positive probability, or a discount below 1."
)


def factor(matrix: sp.csc_array, order: Any, **options: Any) -> spla.SuperLU:
    """The factorisation without pivoting. RuntimeError: the matrix is singular. MemoryError: it has too much fill."""
    try:
        return spla.splu(matrix, order, diag_pivot_thresh=0.0, **options)
    except SystemError as error:  # "invalid arguments": the bytes that it lacks, in 32 bits, became a negative number
        raise MemoryError(str(error)) from error
    except RuntimeError as error:
        if "singular" in str(error):
            raise
        raise MemoryError(str(error)) from error  # "SUPERLU_MALLOC fails for buf in intCalloc()", and so on


def no_room(matrix: Any, remedy: str = "") -> SolverFailed:
    """What is said where nothing can be used but a factorisation."""
    size = f"{matrix.shape[0]} states ({matrix.nnz} entries)"
    remedy = remedy or "Use fewer states, or a machine with more memory."
    return SolverFailed(f"memory does not suffice to factor the linear system of {size}. {remedy}")
