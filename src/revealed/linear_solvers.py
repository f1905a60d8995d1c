"""Solve A x = b and Aᵀ x = b for the sparse matrices A = I − γT^π: factor once, solve many times, both ways.

A is an M-matrix (row sums ≥ 1 − γ, off-diagonal ≤ 0), so LU needs no pivoting: the diagonal is always good enough and
a fitting order keeps the fill low (theory C1). Where that would cost too much, `KrylovSolver` iterates instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats, require_option
from revealed.errors import SolverFailed
from revealed.krylov import EPS, KrylovSolver
from revealed.superlu import SINGULAR, factor, no_room
from revealed.transitions import Structure
from revealed.voices import either

SOLVERS = ("auto", "lu", "krylov")
PATIENCE = 40, 600  # iterations of a Krylov method, at least and at most, before a factorisation is made after all
AFFORDABLE = 300.0  # seconds that a factorisation may take for that
MOST_STEPS = 1e12  # a chain that is expected to run longer than this does not end, for all that float64 can tell
NEAR_ONE = 5e-5  # 1 − γ below which solutions are refined without their level, in whose rounding they would drown
MOST_REFINED, LOOSE = 20, 100.0  # times at most (two or three do), and multiples of rounding that may be left
SAMPLE = 1023  # entries among which a typical one is looked for
_NO_LU = either('Use solver="krylov", or fewer states.', "Use fewer states, or a machine with more memory.")
NEVER_ENDS = (
    "at discount 1 agents would never stop under this policy (I − T^π is singular to float64 precision). Use a policy "
    "that takes every action leading to a terminal state with positive probability, or a discount below 1."
)


def no_differences(discount: float) -> SolverFailed:
    """The error where refining without the level (theory B5) does not converge."""
    return SolverFailed(
        f"differences of values cannot be distinguished from rounding at discount 1 − {1.0 - discount:.1e}. Use a "
        "smaller " + either('discount, or solver="lu".', "discount.")
    )


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
    """SuperLU of A. The CSR arrays of A are handed over as the CSC arrays of Aᵀ: no conversion, no copy.

    Where most moves can be taken back the pattern is nearly symmetric, and so is the best order of elimination; where
    they cannot (roads with turns, a car on a hill) columns are ordered by themselves, unless there are hubs: a row that
    is nearly full would make that order worthless.
    """

    def __init__(self, A: sp.csr_array, structure: Structure) -> None:
        symmetric = structure.mirrored >= 0.5 or structure.hubs > 0
        order = "NATURAL" if structure.triangular else "MMD_AT_PLUS_A" if symmetric else "COLAMD"
        transposed = sp.csc_array((A.data, A.indices, A.indptr), shape=A.shape)
        options = {"SymmetricMode": structure.triangular or symmetric}
        try:
            self._lu: Any = factor(transposed, order, panel_size=4, options=options)
        except MemoryError as error:
            raise no_room(A, _NO_LU) from error
        except RuntimeError as error:  # SuperLU: "Factor is exactly singular"
            raise SolverFailed(SINGULAR) from error

    def solve(self, b: Floats) -> Floats:
        return self._lu.solve(b, trans="T")

    def solve_transpose(self, b: Floats) -> Floats:
        return self._lu.solve(b, trans="N")


class HedgedSolver(KrylovSolver):
    """Krylov while that is quick; where it is not, a factorisation after all, and from then on."""

    def __init__(self, A: sp.csr_array, structure: Structure, near: KrylovSolver | None = None) -> None:
        ratio = structure.lu_seconds / structure.krylov_seconds
        super().__init__(A, structure, near=near, longest=int(np.clip(80.0 * ratio, *PATIENCE)))
        self.lu: LUSolver | None = None

    def _solve(self, A: sp.csr_array, b: Floats, start: Any, accuracy: float | None, transpose: bool) -> Floats:
        if self.lu is None:
            try:
                return super()._solve(A, b, start, accuracy, transpose)
            except SolverFailed:
                self.lu = lu_if_it_fits(self.A, self.structure)
                if self.lu is None:
                    self.longest = None  # there is no other way
                    return super()._solve(A, b, start, accuracy, transpose)
        return self.lu.solve_transpose(b) if transpose else self.lu.solve(b)


_TOO_FULL: WeakSet[Structure] = WeakSet()  # whose factorisation did not fit into memory: it is tried once


def lu_if_it_fits(A: sp.csr_array, structure: Structure) -> LUSolver | None:
    """A factorisation, where memory suffices for one."""
    if structure in _TOO_FULL:
        return None
    try:
        return LUSolver(A, structure)
    except SolverFailed as error:
        if not isinstance(error.__cause__, MemoryError):
            raise
        _TOO_FULL.add(structure)
        return None


def make_solver(
    A: sp.csr_array, structure: Structure, choice: str = "auto", systems: float = 1.0, near: LinearSolver | None = None
) -> LinearSolver:
    """`choice` is "auto" (from the estimated fill, how many systems are to be solved, and whether a factorisation fits
    into memory), "lu" or "krylov"; `near` is the solver of a nearby policy, of which an iterative one makes use."""
    require_option("solver", choice, SOLVERS)
    hopeless = isinstance(near, HedgedSolver) and near.lu is not None  # for Krylov, with a policy much like this one
    if choice == "lu":
        return LUSolver(A, structure)
    if choice == "auto" and (hopeless or structure.prefers_lu_for(systems)):
        lu = lu_if_it_fits(A, structure)
        if lu is not None:
            return lu
    before = near if isinstance(near, KrylovSolver) else None
    if choice == "krylov" or structure.lu_seconds > AFFORDABLE or structure in _TOO_FULL:
        return KrylovSolver(A, structure, near=before)
    return HedgedSolver(A, structure, before)


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
