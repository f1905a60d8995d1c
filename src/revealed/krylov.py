"""Solve A x = b and Aᵀ x = b without factoring A = I − γT^π, for graphs too large or too tangled to factor (theory C4).

BiCGSTAB runs on all right-hand sides at once. On a graph without locality a chain forgets its start within a few steps
and tens of products are enough. Where moves are local and γ is near 1, changes travel far and slowly: there a coarse
chain, whose states are groups of neighbouring states, is factored and carries what is smooth, and a damped step on A
itself the rest. The number of products then hardly depends on how many states there are, nor on γ. The true residual
in float64 decides: what did not converge raises `SolverFailed`, rather than return a wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from revealed.checks import Floats
from revealed.errors import SolverFailed
from revealed.superlu import SINGULAR, factor
from revealed.transitions import Structure
from revealed.voices import either

EPS = float(np.finfo(np.float64).eps)
DAMPING = 0.7  # of the step on A itself: what the coarse chain cannot see is rough, and fades fastest so
PATIENCE = 150  # iterations within which the residual must have halved
TRIAL = 20  # iterations with the coarse chain of another policy, before it is replaced
LONGEST = 600  # iterations with one; what needs more does not converge
SLOW = 0.02  # least share of itself that a state loses in a step, above which no coarse chain is needed

Apply = Callable[[Floats], Floats]


STUCK = (
    "I − γT^π has a zero on its diagonal: under this policy a state returns to itself with certainty at discount 1, so "
    "the process never ends there. Mark it terminal, or use a discount below 1."
)


class KrylovSolver:
    """BiCGSTAB with a coarse chain where moves are local; GMRES where it stalls. `products` counts those with A;
    `near` may hand over the solver of a nearby policy, whose coarse chain is then used again; `longest` is how many
    iterations are tried where there is another way."""

    def __init__(
        self,
        A: sp.csr_array,
        structure: Structure,
        rtol: float = 1e-13,
        near: KrylovSolver | None = None,
        longest: int | None = None,
    ) -> None:
        self.A, self.structure, self.rtol, self.products = A, structure, rtol, 0
        self.longest: int | None = longest
        self._lent: Coarse | None = None if near is None else near.__dict__.get("coarse")
        self._diagonal: Floats = A.diagonal()
        if not np.all(self._diagonal > 0.0):
            raise SolverFailed(STUCK)

    @cached_property
    def At(self) -> sp.csr_array:
        return sp.csr_array(self.A.T)

    @cached_property
    def coarse(self) -> Coarse | None:
        """The chain on groups of states; None where moves are not local, the chain is quick by itself, or memory does
        not suffice. That of a nearby policy will do: it only has to point in the right direction."""
        if self._lent is not None:
            return self._lent
        slow = float((self.A @ np.ones(self.A.shape[0])).min()) < SLOW
        try:
            return Coarse(self.A, self.structure) if slow and self.structure.local else None
        except MemoryError:
            return None

    def solve(self, b: Floats, start: Floats | None = None, accuracy: float | None = None) -> Floats:
        return self._solve(self.A, b, start, accuracy, transpose=False)

    def solve_transpose(self, b: Floats, start: Floats | None = None, accuracy: float | None = None) -> Floats:
        return self._solve(self.At, b, start, accuracy, transpose=True)

    def _solve(
        self, A: sp.csr_array, b: Floats, start: Floats | None, accuracy: float | None, transpose: bool
    ) -> Floats:
        B = b[:, None] if b.ndim == 1 else b
        X = np.zeros_like(B) if start is None else np.array(start, dtype=np.float64).reshape(B.shape)
        goal = (self.rtol if accuracy is None else accuracy) * np.linalg.norm(B, axis=0)
        for attempt in self._attempts(A, transpose):
            R = B - A @ X if start is not None or X.any() else B.copy()
            open_ = np.linalg.norm(R, axis=0) > np.maximum(goal, 16 * EPS * np.linalg.norm(X, axis=0))
            if not open_.any():
                break
            X[:, open_] = self._better(A, B[:, open_], X[:, open_], attempt(R[:, open_], 0.3 * goal[open_]))
        self._require(A, B, X, goal)
        return X[:, 0] if b.ndim == 1 else X

    def _better(self, A: sp.csr_array, B: Floats, X: Floats, step: Floats) -> Floats:
        """X + step, but for columns where the step made it worse: a breakdown shows in the true residual."""
        before, after = (np.linalg.norm(B - A @ Y, axis=0) for Y in (X, X + step))
        return X + np.where(np.isfinite(after) & (after < before), step, 0.0)

    def _attempts(self, A: sp.csr_array, transpose: bool) -> list[Callable[[Floats, Floats], Floats]]:
        """From the cheapest to the most stubborn; each starts from what the last has left."""

        def plain(most: int) -> Any:
            return lambda R, goal: self._bicgstab(A, R, goal, lambda P: P / self._diagonal[:, None], most)

        def coarse(R: Floats, goal: Floats) -> Floats:
            assert self.coarse is not None
            most = TRIAL if self._lent is not None else self.longest or LONGEST
            return self._bicgstab(A, R, goal, self.coarse.preconditioner(A, self._diagonal, transpose), most)

        def renewed(R: Floats, goal: Floats) -> Floats:
            self._renew()
            return coarse(R, goal)

        if self.longest is not None:
            return [plain(self.longest)] if self.coarse is None else [coarse, renewed]
        first = [plain(1_000), plain(4_000)] if self.coarse is None else [coarse, renewed, renewed]
        return [*first, *[lambda R, goal: self._gmres(A, R, goal)] * 2]

    def _renew(self) -> None:
        """A coarse chain of its own, where one of another policy was not good enough."""
        if self._lent is not None:
            self._lent = None
            del self.__dict__["coarse"]

    def _bicgstab(self, A: sp.csr_array, R: Floats, goal: Floats, precondition: Apply, most: int) -> Floats:
        """All columns at once, each with its own numbers; a column that is done, or broken, stands still."""
        X, P, V = np.zeros_like(R), np.zeros_like(R), np.zeros_like(R)
        shadow, R = R.copy(), R.copy()
        rho, alpha, omega = (np.ones(R.shape[1]) for _ in range(3))
        best = earlier = _dots(R, R)
        with np.errstate(all="ignore"):
            for k in range(most):
                new = _dots(shadow, R)
                P -= omega * V
                P *= (new / rho) * (alpha / omega)
                P += R
                toward = precondition(P)
                V = A @ toward
                alpha = new / _dots(shadow, V)
                R -= alpha * V
                toward *= alpha
                X += toward
                then = precondition(R)
                t = A @ then
                omega = _dots(t, R) / _dots(t, t)
                going = np.isfinite(omega) & np.isfinite(alpha)
                omega = np.where(going, omega, 0.0)
                then *= omega
                X += then
                t *= omega
                R -= t
                rho = new
                self.products += 2
                left = _dots(R, R)
                if not np.isfinite(left).all() or np.all(left <= goal**2) or not going.any():
                    break
                best = np.minimum(best, left)
                if k % PATIENCE == PATIENCE - 1:
                    if np.all((left <= goal**2) | (best > 0.25 * earlier)):
                        break  # it has stalled
                    earlier = best
        return X

    def _gmres(self, A: sp.csr_array, R: Floats, goal: Floats) -> Floats:
        jacobi = spla.LinearOperator(A.shape, matvec=lambda x: x / self._diagonal, dtype=np.float64)
        out = np.empty_like(R)
        with np.errstate(all="ignore"):
            for k in range(R.shape[1]):
                found = spla.gmres(
                    A, np.ascontiguousarray(R[:, k]), rtol=0.0, atol=float(goal[k]), M=jacobi, maxiter=250
                )
                out[:, k] = found[0]
        return out

    def _require(self, A: sp.csr_array, B: Floats, X: Floats, goal: Floats) -> None:
        """Rounding alone leaves a residual of about eps·‖x‖: nothing better can be asked for."""
        left, size = np.linalg.norm(B - A @ X, axis=0), np.linalg.norm(X, axis=0)
        bad = ~(left <= np.maximum(goal, 64 * EPS * size))
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise SolverFailed(
                f"the Krylov solver stopped at a relative residual of {left[k] / np.linalg.norm(B[:, k]):.1e}. "
                + either('Use solver="lu", or a smaller discount.', "Use a smaller discount.")
            )


class Coarse:
    """The chain on groups of states, factored: A_c = PᵀAP with P(s, g) = 1 for s in g."""

    def __init__(self, A: sp.csr_array, structure: Structure) -> None:
        self.group, n = structure.groups
        rows = np.repeat(self.group, np.diff(A.indptr))
        small = sp.csc_array(sp.coo_array((A.data, (rows, self.group[A.indices])), shape=(n, n)))
        self.gather = sp.csr_array(
            sp.csc_array(
                (np.ones(self.group.size), self.group, np.arange(self.group.size + 1)), shape=(n, self.group.size)
            )
        )
        try:
            self._lu: Any = factor(small, "MMD_AT_PLUS_A", options={"SymmetricMode": True})
        except RuntimeError as error:
            raise SolverFailed(SINGULAR) from error

    def preconditioner(self, A: sp.csr_array, diagonal: Floats, transpose: bool) -> Apply:
        """r ↦ about A⁻¹r: a damped step, what the coarse chain makes of the rest, a damped step again."""
        scale = DAMPING / diagonal[:, None]
        way = "T" if transpose else "N"

        def apply(R: Floats) -> Floats:
            X = scale * R
            X += self._lu.solve(self.gather @ (R - A @ X), trans=way)[self.group]
            left = A @ X
            np.subtract(R, left, out=left)
            left *= scale
            X += left
            return X

        return apply


def _dots(X: Floats, Y: Floats) -> Floats:
    """The inner products of columns."""
    return np.einsum("sk,sk->k", X, Y)
