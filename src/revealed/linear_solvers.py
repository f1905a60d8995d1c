"""Solve A x = b and Aᵀ x = b for the sparse matrices A = I − γT^π: factor once, solve many times, both ways.

A is an M-matrix (row sums ≥ 1 − γ, off-diagonal ≤ 0), so LU needs no pivoting: the diagonal is always good enough and
a symmetric ordering keeps the fill low. Where the graph has no locality, `KrylovSolver` iterates instead: it checks the
true residual in float64 and raises `SolverFailed` rather than return a wrong answer (theory C1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from revealed.checks import Floats, require_option
from revealed.errors import SolverFailed
from revealed.transitions import Structure

SOLVERS = ("auto", "lu", "krylov")
EPS = float(np.finfo(np.float64).eps)


@dataclass
class Work:
    """What linear algebra was done: right-hand sides solved, matrices factored. Shared by all chains of a fit."""

    solves: int = 0
    factorisations: int = 0


class LinearSolver(Protocol):
    """Init (factor), compute (`solve`), transpose (`solve_transpose`); b is (S,) or (S, K)."""

    def solve(self, b: Floats) -> Floats: ...
    def solve_transpose(self, b: Floats) -> Floats: ...


class LUSolver:
    """SuperLU of A. The CSR arrays of A are handed over as the CSC arrays of Aᵀ: no conversion, no copy."""

    def __init__(self, A: sp.csr_array, triangular: bool = False) -> None:
        order = "NATURAL" if triangular else "MMD_AT_PLUS_A"
        transposed = sp.csc_array((A.data, A.indices, A.indptr), shape=A.shape)
        try:
            self._lu: Any = spla.splu(
                transposed, permc_spec=order, diag_pivot_thresh=0.0, panel_size=4, options={"SymmetricMode": True}
            )
        except RuntimeError as error:  # SuperLU: "Factor is exactly singular"
            raise SolverFailed("I − γT^π is singular: under this policy some states never end.") from error

    def solve(self, b: Floats) -> Floats:
        return self._lu.solve(b, trans="T")

    def solve_transpose(self, b: Floats) -> Floats:
        return self._lu.solve(b, trans="N")


class KrylovSolver:
    """BiCGSTAB, then restarted GMRES where it stalls; the true residual decides.

    On graphs without locality the chain forgets its start within a few steps, so that all eigenvalues of γT^π but the
    largest are small and Krylov methods take tens of products, even at γ close to 1.
    """

    def __init__(self, A: sp.csr_array, rtol: float = 1e-13, max_products: int = 5_000) -> None:
        self.A, self.At = A, sp.csr_array(A.T)
        self.rtol, self.max_products = rtol, max_products
        if not np.all(A.diagonal() > 0.0):
            raise SolverFailed("I − γT^π has a zero on its diagonal: a state that never moves on never ends.")
        diagonal = A.diagonal()
        self._jacobi = spla.LinearOperator(A.shape, matvec=lambda x: x / diagonal, dtype=np.float64)

    def solve(self, b: Floats) -> Floats:
        return self._each_column(self.A, b)

    def solve_transpose(self, b: Floats) -> Floats:
        return self._each_column(self.At, b)

    def _each_column(self, A: sp.csr_array, b: Floats) -> Floats:
        if b.ndim == 1:
            return self._one(A, b)
        return np.stack([self._one(A, np.ascontiguousarray(column)) for column in b.T], axis=1)

    def _one(self, A: sp.csr_array, b: Floats) -> Floats:
        x = np.zeros_like(b)
        goal = self.rtol * float(np.linalg.norm(b))
        residual, best = b, float(np.linalg.norm(b))
        for method in (spla.bicgstab, spla.bicgstab, spla.gmres, spla.gmres):
            if best <= goal:
                return x
            step = self._iterate(method, A, residual, 0.1 * goal / best)
            trial = b - A @ (x + step)
            size = float(np.linalg.norm(trial))
            if np.isfinite(size) and size < best:
                x, residual, best = x + step, trial, size
        # rounding alone leaves a residual of about eps·‖x‖: nothing better can be asked for
        if best <= max(goal, 64 * EPS * float(np.linalg.norm(x))):
            return x
        raise SolverFailed(
            f"the Krylov solver stopped at a relative residual of {best / np.linalg.norm(b):.1e}. "
            'Use solver="lu", or a smaller discount.'
        )

    def _iterate(self, method: Any, A: sp.csr_array, b: Floats, rtol: float) -> Floats:
        most = self.max_products if method is spla.bicgstab else self.max_products // 20
        with np.errstate(all="ignore"):  # a breakdown shows in the true residual
            return method(A, b, rtol=rtol, atol=0.0, M=self._jacobi, maxiter=most)[0]


def make_solver(A: sp.csr_array, structure: Structure, choice: str = "auto") -> LinearSolver:
    """`choice` is "auto" (from the estimated fill), "lu" or "krylov"."""
    require_option("solver", choice, SOLVERS)
    if choice == "lu" or (choice == "auto" and structure.prefers_lu):
        return LUSolver(A, structure.triangular)
    return KrylovSolver(A)


def refine(
    A: sp.csr_array, b: Floats, apply_stale: Callable[[Floats], Floats], max_steps: int = 40, slowest: float = 0.5
) -> tuple[Floats, bool]:
    """Solve A x = b with a stale factorisation M of an earlier A: x ← x + M⁻¹(b − A x) (theory S1).

    A stale factorisation is a fast preconditioner, not a solution, so the true residual decides. Returns x and whether
    the residual reached rounding level; it gives up as soon as a step shrinks the residual by less than `slowest`.
    """
    x = apply_stale(b)
    residual = b - A @ x
    size = float(np.abs(residual).max(initial=0.0))
    for _ in range(max_steps):
        if size <= 32 * EPS * float(np.abs(b).max(initial=0.0) + np.abs(x).max(initial=0.0)):
            return x, True
        x = x + apply_stale(residual)
        residual = b - A @ x
        before, size = size, float(np.abs(residual).max(initial=0.0))
        if not size <= slowest * before:
            return x, False
    return x, False
