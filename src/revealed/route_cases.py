"""The objective of trips to many goals where π̃ = π_θ, moves are certain and nothing is discounted (theory R2–R6).

log π_θ(a|s) = r + V(s') − V(s), so that g = ⟨ρ, r⟩ + Σ_g c·V with c what arrives in each state less what departs from
it. Goals go through the solves in blocks, side by side: z for the value; w = Gᵀ(c/z) for the gradient, in which the use
of a move is M[s, s'] z(s') w(s); and for second derivatives U = G(M_k z), with M_k the weights times a feature, which
gives W = ∂V/∂θ = (U − U(g)z)/z. Nothing here is a state by a state, and no array but z and the rows that were seen is
kept per goal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import Floats, Ints
from revealed.errors import ValueDoesNotExist
from revealed.goal_rows import GoalRows
from revealed.linear_solvers import Work
from revealed.logit_rows import InRows
from revealed.naming import state_in_words
from revealed.objective import feasible_table
from revealed.parallel import side_by_side
from revealed.paths import BLOCK, LEAST, Moves, PathSums
from revealed.rewards.base import Reward, is_linear, of_trips

WORTH_THREADS = 2_000  # states from which work side by side is more than handing it over
MOST_KEPT = 20_000_000  # values of z kept from the value to its derivatives: 160 MB


@dataclass(eq=False)
class Block:
    """Cases whose paths are summed together, and their rows; z (S, B) is kept while there is room."""

    sums: PathSums
    cases: Ints
    rows: Ints
    z: Floats | None


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Of some cases: minus the expected use of each move (E,), and, for rewards with features, gradient (K,), Hessian
    (K, K) and ∂Q/∂θ (R, A, K) in their rows."""

    use: Floats
    gradient: Floats | None = None
    hessian: Floats | None = None
    slopes: Floats | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """log π_θ in some rows. Of cases that share nothing the derivatives are computed at once, and their factorisations
    let go in the thread that made them: elsewhere SuperLU does not give their memory back."""

    rows: Ints
    log_policy: Floats
    block: Block | None = None
    derivatives: Derivatives | None = None


class RouteCases:
    """Many goals, π̃ = π_θ, by sums over paths."""

    moves = True

    def __init__(self, rows: GoalRows, moves: Moves, work: Work | None = None) -> None:
        self.rows, self.mdp, self.network = rows, rows.mdp, moves
        self.work = Work() if work is None else work
        self.tell: Callable[[str], None] | None = None  # how far an evaluation is, where each case is solved by itself

    @property
    def total(self) -> float:
        return self.rows.total

    @cached_property
    def target(self) -> Ints:
        """(R, A): where each action leads from the rows' states."""
        return self.mdp.targets[self.rows.state]

    @cached_property
    def ends(self) -> sp.csc_array:
        """Sparse (S, C): c, what arrives in each state less what departs from it (theory R4)."""
        rows = self.rows
        row, action = np.nonzero(rows.rho)
        weight, case = rows.rho[row, action], rows.case[row]
        place = np.concatenate([self.target[row, action], rows.state[row]])
        shape = (self.mdp.n_states, rows.n_cases)
        return sp.csc_array((np.concatenate([weight, -weight]), (place, np.tile(case, 2))), shape=shape)

    @cached_property
    def used(self) -> Floats:
        """(E,): Σ ρ of each move, over all cases."""
        flat = self.rows.state[:, None] * self.mdp.n_actions + np.arange(self.mdp.n_actions)
        used = np.bincount(flat.reshape(-1), self.rows.rho.reshape(-1), self.mdp.feasible.size)
        return used[self.network.pair].astype(np.float64)

    @cached_property
    def incidence(self) -> tuple[sp.csr_array, sp.csr_array]:
        """Sparse (S, E): ones where a move leaves a state, and where it enters one."""
        E, S = self.network.pair.size, self.mdp.n_states
        ones, every = np.ones(E), np.arange(E)
        leaving, entering = ((ones, (states, every)) for states in (self.network.source, self.network.target))
        return sp.csr_array(leaving, shape=(S, E)), sp.csr_array(entering, shape=(S, E))

    def at(self, reward: Reward, theta: Floats, kept: dict[str, Any]) -> RoutePart:
        return RoutePart(self, reward, theta)


@dataclass(frozen=True, eq=False)
class RoutePart(InRows):
    """All cases at one θ. Making it finds the values, or raises `ValueDoesNotExist`."""

    cases: RouteCases = field(repr=False)
    reward: Reward = field(repr=False)
    theta: Floats

    def __post_init__(self) -> None:
        _ = self._first

    # -- values -------------------------------------------------------------------------------------------------------

    def _reward(self, case: int) -> Any:
        rows, reward = self.cases.rows, self.reward
        if not of_trips(reward):
            return reward
        return reward.toward(int(rows.goal[case]), int(rows.origin[case]))  # pyright: ignore[reportAttributeAccessIssue]

    def _table(self, reward: Any) -> Floats:
        """(E,): rewards of the moves."""
        return feasible_table(self.cases.mdp, reward.value(self.theta)).reshape(-1)[self.cases.network.pair]

    @cached_property
    def _common_table(self) -> Floats:
        return self._table(self.reward)

    @cached_property
    def _with_features(self) -> bool:
        return is_linear(self.reward) and not getattr(self.reward, "tabular", False)

    @cached_property
    def _first(self) -> tuple[list[Block], Floats, list[tuple[Ints, Derivatives]]]:
        """The blocks that share their sums, log π_θ (R, A) in the rows, and what is known of the cases that do not."""
        log_policy = np.full(self.cases.rows.rho.shape, -np.inf)
        blocks: list[Block] = []
        alone: list[tuple[Ints, Derivatives]] = []
        plan = self._plan()
        solved = side_by_side(self._solved, plan, worth=self.cases.mdp.n_states >= WORTH_THREADS)
        for number, several in enumerate(solved, 1):
            if self.cases.tell is not None and self._shared is None:
                self.cases.tell(f"{number} of {len(plan)} cases, each with its own factorisation")
            for found in several:
                log_policy[found.rows] = found.log_policy
                if found.derivatives is not None:
                    alone.append((found.rows, found.derivatives))
                elif found.block is not None:
                    blocks.append(found.block)
                    self._let_go(found.block)
        return blocks, log_policy, alone

    def _plan(self) -> list[tuple[PathSums | None, Ints]]:
        """Which cases are solved together: blocks on one factorisation, or each by itself."""
        every = np.arange(self.cases.rows.n_cases)
        shared = self._shared
        if shared is None:
            return [(None, every[i : i + 1]) for i in every]
        return [(shared, every[i : i + BLOCK]) for i in range(0, every.size, BLOCK)]

    @cached_property
    def _shared(self) -> PathSums | None:
        """None where each case has its own rewards, or paths that only goals end add up to no number."""
        if of_trips(self.reward):
            return None
        return PathSums.in_common(self.cases.network, self._common_table, self.cases.work)

    def _solved(self, plan: tuple[PathSums | None, Ints]) -> list[Found]:
        shared, cases = plan
        if shared is None:  # whatever is common to all goals has been tried
            return [self._by_itself(int(c), faint=not of_trips(self.reward)) for c in cases]
        block = self._block(shared, cases)
        log_policy, faint = self._log_policy(block, self._common_table)
        lost = np.unique(self.cases.rows.case[block.rows[faint]])
        if lost.size == 0:
            return [Found(block.rows, log_policy, block)]
        others = np.setdiff1d(cases, lost)
        again = self._solved((shared, others)) if others.size else []
        return again + [self._by_itself(int(c), faint=True) for c in lost]

    def _by_itself(self, case: int, faint: bool = False) -> Found:
        """One case with sums of its own: as they are, or measured from the shortest path where that is too faint."""
        reward = self._reward(case)
        table = self._table(reward)
        sums = None if faint else PathSums.in_common(self.cases.network, table, self.cases.work)
        if sums is not None:
            block = self._block(sums, np.array([case]))
            log_policy, lost = self._log_policy(block, table)
            if not lost.any():
                return self._at_once(block, log_policy, reward)
        block = self._block(self._measured(case, table), np.array([case]))
        log_policy = self._log_policy(block, table)[0]
        return self._at_once(block, log_policy, reward)

    def _measured(self, case: int, table: Floats) -> PathSums:
        """Paths to one goal, measured from the shortest."""
        goal = int(self.cases.rows.goal[case])
        try:
            return PathSums.alone(self.cases.network, table, goal, self.cases.work)
        except ValueDoesNotExist as problem:
            raise ValueDoesNotExist(f"toward {state_in_words(self.cases.mdp, goal)} " + problem.message) from problem

    def _at_once(self, block: Block, log_policy: Floats, reward: Any) -> Found:
        if self._with_features:
            found = self._second(block, log_policy, self._moves_jacobian(reward), None)
        else:
            found = Derivatives(self._flow(block))
        return Found(block.rows, log_policy, derivatives=found)

    def _block(self, sums: PathSums, cases: Ints) -> Block:
        rows = self.cases.rows
        z = sums.toward(rows.goal[cases])
        where = np.concatenate([np.arange(*rows.first[[c, c + 1]]) for c in cases])
        return Block(sums, cases, where, z)

    def _let_go(self, block: Block) -> None:
        """z is computed again for derivatives where there is no room for that of all goals."""
        if self.cases.mdp.n_states * self.cases.rows.n_cases > MOST_KEPT:
            block.z = None

    def _z(self, block: Block) -> Floats:
        return block.sums.toward(self.cases.rows.goal[block.cases]) if block.z is None else block.z

    def _log_policy(self, block: Block, rewards: Floats) -> tuple[Floats, Any]:
        """log π_θ in the block's rows, and the rows where z is too faint to tell."""
        rows, sums = self.cases.rows, block.sums
        z, column = self._z(block), self._column(block)
        here, there = rows.state[block.rows], self.cases.target[block.rows]
        with np.errstate(divide="ignore", invalid="ignore"):  # where the goal is out of reach V is −∞
            V, after = np.log(z[here, column]), np.log(z[there, column[:, None]])
        if sums.potential is not None:
            V, after = V + sums.potential[here], after + sums.potential[there]
        table = self.cases.network.table(rewards)
        offered = rows.feasible[block.rows]
        with np.errstate(invalid="ignore"):
            gain = np.where(offered, table[here] + after - V[:, None], -np.inf)
        if sums.potential is not None:
            return gain, np.zeros(here.size, dtype=bool)
        lost = offered & ~(z[there, column[:, None]] > LEAST)  # of what is offered, even where nobody took it
        return gain, lost.any(axis=1) | ~(z[here, column] > LEAST)

    def _column(self, block: Block) -> Ints:
        return np.searchsorted(block.cases, self.cases.rows.case[block.rows])

    @property
    def seen(self) -> GoalRows:
        return self.cases.rows

    @property
    def row_log_policy(self) -> Floats:
        return self._first[1]

    # -- first derivatives --------------------------------------------------------------------------------------------

    @cached_property
    def pull(self) -> Floats:
        if "_derivatives" in self.__dict__ or (self._with_features and self._first[2]):
            return self._derivatives.gradient  # computed already, or along with the values
        return self.reward.vjp(self.theta, self.cotangent)

    @cached_property
    def cotangent(self) -> Floats:
        """(S, A): ∂g/∂r = ρ − expected use (theory R4)."""
        flow = np.zeros(self.cases.network.pair.size)
        self._prepare()
        for part in side_by_side(self._flow, self._first[0]):
            flow += part
        for _, part in self._first[2]:
            flow += part.use
        return self.cases.network.table(self.cases.used + flow)

    def _prepare(self) -> None:
        """Factor the transpose here, before threads do: see `Found`."""
        if self._shared is not None and self._first[0]:
            self._shared.prepare_transpose()

    def _flow(self, block: Block) -> Floats:
        z = np.ascontiguousarray(self._z(block))
        return self._use(block, z, np.ascontiguousarray(self._back(block, z)))

    def _back(self, block: Block, z: Floats) -> Floats:
        """w = Gᵀ(c/z) (S, B), zero at the goals."""
        c = self.cases.ends[:, block.cases].toarray(order="F")
        np.divide(c, z, out=c, where=c != 0.0)
        w = block.sums.solve_transpose(c)
        w[self.cases.rows.goal[block.cases], np.arange(block.cases.size)] = 0.0
        return w

    def _use(self, block: Block, z: Floats, w: Floats) -> Floats:
        """(E,): minus the expected use of each move by the trips of the block."""
        net = self.cases.network
        return block.sums.weight * np.einsum("eb,eb->e", z[net.target], w[net.source])

    # -- second derivatives, for rewards with a Jacobian --------------------------------------------------------------

    @cached_property
    def _derivatives(self) -> Any:
        """Gradient, Hessian and ∂Q/∂θ of all cases."""
        blocks, log_policy, alone = self._first
        self._prepare()
        parts = side_by_side(lambda block: self._second(block, log_policy[block.rows], *self._common), blocks)
        K, use = self.theta.size, np.zeros(self.cases.network.pair.size)
        gradient, hessian, slopes = np.zeros(K), np.zeros((K, K)), np.zeros((*self.cases.rows.rho.shape, K))
        for rows, part in chain(((b.rows, p) for b, p in zip(blocks, parts, strict=True)), alone):
            use += part.use
            gradient += part.gradient
            hessian += part.hessian
            slopes[rows] = part.slopes
        return Derivatives(use, gradient, hessian, slopes)

    def _second(self, block: Block, log_policy: Floats, X: Floats, matrices: list[sp.csr_array] | None) -> Derivatives:
        """Gradient, Hessian and ∂Q/∂θ of a block (theory R6), for features X (E, K) and their M_k."""
        z = np.ascontiguousarray(self._z(block))  # rows together: products and gathers run along them
        w = np.ascontiguousarray(self._back(block, z))
        use = self._use(block, z, w)
        U, cross = self._by_moves(block, X, z, w) if matrices is None else self._by_matrices(block, matrices, z, w)
        goals, columns = self.cases.rows.goal[block.cases], np.arange(block.cases.size)
        for u in U:
            u -= u[goals, columns] * z
        mixed = np.tensordot(cross, U, axes=([1, 2], [1, 2]))
        c = self.cases.ends[:, block.cases].tocoo()
        W = U[:, c.coords[0], c.coords[1]] / z[c.coords]
        hessian = (X * use[:, None]).T @ X + mixed + mixed.T - (W * c.data) @ W.T
        slopes, gradient = self._slopes(block, log_policy, X, z, U)
        return Derivatives(use, gradient, hessian, slopes)

    def _by_matrices(self, block: Block, matrices: list[sp.csr_array], z: Floats, w: Floats) -> tuple[Floats, Floats]:
        """G M_k z, goals' rows left out, and M_kᵀ w, each (K, S, B), by matrices that all blocks share."""
        goals, columns = self.cases.rows.goal[block.cases], np.arange(block.cases.size)
        U, cross = np.empty((len(matrices), *z.shape)), np.empty((len(matrices), *z.shape))
        for k, matrix in enumerate(matrices):
            b = np.asfortranarray(matrix @ z)
            b[goals, columns] = 0.0
            U[k] = block.sums.solve(b)
            cross[k] = matrix.T @ w
        return U, cross

    def _by_moves(self, block: Block, X: Floats, z: Floats, w: Floats) -> tuple[Floats, Floats]:
        """The same for one case with weights of its own: making its matrices would take longer than all else."""
        net, (leaving, entering) = self.cases.network, self.cases.incidence
        weight = block.sums.weight
        b = np.asfortranarray(leaving @ (X * (weight * z[net.target, 0])[:, None]))
        b[self.cases.rows.goal[block.cases[0]]] = 0.0
        cross = entering @ (X * (weight * w[net.source, 0])[:, None])
        return np.ascontiguousarray(block.sums.solve(b).T)[..., None], np.ascontiguousarray(cross.T)[..., None]

    def _slopes(self, block: Block, log_policy: Floats, X: Floats, z: Floats, U: Floats) -> tuple[Floats, Floats]:
        """F = x + W(s') in the block's rows, and the gradient Σ D F (theory G1, V5)."""
        rows, column = self.cases.rows, self._column(block)[:, None]
        here, there = rows.state[block.rows], self.cases.target[block.rows]
        offered = rows.feasible[block.rows]
        scale = np.where(offered, z[there, column], 1.0)
        F = np.stack([u[there, column] / scale for u in U], axis=-1)
        pair = here[:, None] * self.cases.mdp.n_actions + np.arange(offered.shape[1])
        F += X[np.where(offered, self._place[pair], 0)]
        F[~offered] = 0.0
        rho = rows.rho[block.rows]
        D = rho - rho.sum(axis=1, keepdims=True) * np.exp(log_policy)
        return F, np.einsum("ra,rak->k", D, F)

    @cached_property
    def _place(self) -> Ints:
        """(S*A,): the number of the move of each pair."""
        out = np.zeros(self.cases.mdp.feasible.size, dtype=np.intp)
        out[self.cases.network.pair] = np.arange(self.cases.network.pair.size)
        return out

    @cached_property
    def _common(self) -> tuple[Floats, list[sp.csr_array]]:
        """∂r/∂θ (E, K) of the moves, and M_k: their weights times a feature, for the cases that share their sums."""
        assert self._shared is not None
        X = self._moves_jacobian(self.reward)
        return X, [self.cases.network.matrix(self._shared.weight * column) for column in X.T]

    def _moves_jacobian(self, reward: Any) -> Floats:
        J = reward.jacobian(self.theta)
        net = self.cases.network
        rows = J[net.pair] if J.shape[0] == self.cases.mdp.feasible.size else J[net.source]
        return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows, dtype=np.float64)

    @property
    def hessian(self) -> Floats:
        return self._derivatives.hessian

    @property
    def slopes(self) -> Floats:
        return self._derivatives.slopes
