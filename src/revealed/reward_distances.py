"""Distances between rewards that need no policy to be trained: EPIC and STARC (theory D4–D6).

Both bring a reward into a canonical form that is blind to potential shaping, divide it by its size, and halve the
norm of the difference, so that distances lie in [0, 1]. EPIC's form needs no dynamics and is blind to shaping
γφ(s') − φ(s) of (s, a, s') rewards; STARC's uses the MDP's transitions and is blind to every shaping that behaviour is.

Canonical forms are linear, so the difference of two standardised forms is the form of one difference: nothing is lost
near zero, where √((1 − ρ)/2) would lose half the digits. A reward whose canonical form vanishes (a constant, say)
prefers nothing: it stays zero, at distance 0 from another such and 1/2 from every other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.bellman import as_reward, numbers_of
from revealed.chain import Chain
from revealed.checks import as_floats, pass_instead, require_floats
from revealed.errors import InvalidDistribution, InvalidInput, InvalidReward
from revealed.gates import require_instance
from revealed.levels import level_of, typical, without_level
from revealed.mdp import MDP, Floats, require_mdp
from revealed.naming import pair_in_words, state_in_words
from revealed.positions import in_order, labelled
from revealed.sparse_input import as_float_csr, is_sparse

VANISHES = 1e-12  # a canonical form this small beside the numbers it was made from is rounding
LEVEL = 1e-2  # share with which the level of a reward counts among those numbers: it has rounding, too
CANCELS = 1e-4  # a difference this small beside its terms has lost four digits
BLOCK = 1 << 20  # numbers (s, a, s') that are looked at together where none may be left out


@dataclass(frozen=True)
class RewardTable:
    """R(s, a, s') = pairs[s, a] + moves[s·A + a, s']; `moves` is None where the reward does not look at s'."""

    pairs: Floats
    moves: Any = None  # sparse (S*A, S), zero where nothing is stored, or a dense array of that shape

    def expected(self, mdp: MDP) -> Floats:
        """(S, A): the mean over s' under the MDP's transitions."""
        if self.moves is None:
            return self.pairs
        mean = mdp.transitions.matrix.multiply(self.moves).sum(axis=1)
        return self.pairs + np.asarray(mean).reshape(self.pairs.shape)

    def scaled(self, factor: float) -> RewardTable:
        return RewardTable(self.pairs * factor, None if self.moves is None else self.moves * factor)

    def minus(self, other: RewardTable) -> RewardTable:
        if self.moves is None or other.moves is None:
            moves = self.moves if other.moves is None else -other.moves
        elif is_sparse(self.moves) == is_sparse(other.moves):
            moves = self.moves - other.moves
        else:  # one of them is dense already
            moves = _as_dense(self.moves) - _as_dense(other.moves)
        return RewardTable(self.pairs - other.pairs, moves)

    def with_unit_size(self) -> RewardTable:
        """The same reward in units in which squares neither overflow nor underflow."""
        return self.scaled(1.0 / self.size) if self.size > 1e-300 else self

    @property
    def size(self) -> float:
        """The largest number that canonical forms are made from."""
        moves = np.zeros(1) if self.moves is None else _stored(self.moves)
        return float(np.abs(self.pairs).max(initial=0.0) + np.abs(moves).max(initial=0.0))


def as_table(mdp: MDP, reward: Any, name: str = "reward") -> RewardTable:
    """A reward of shape (S,), (S, 1), (S, A), dense (S, A, S) or sparse (S*A, S), checked; lifted to a horizon."""
    require_mdp(mdp)
    S, A = mdp.feasible.shape
    if hasattr(reward, "reward_on"):
        return RewardTable(as_reward(mdp, reward, name))
    reward = in_order(mdp, reward, name, ("state", "action", "state"), InvalidReward, part=True)
    moves = _as_moves(reward, S, A, name, InvalidReward)
    if moves is None:
        remedy = numbers_of(reward)
        array = require_floats(name, reward, "an (S, A) or (S, A, S) array of numbers", InvalidReward, remedy)
        short = mdp.base is not None and array.ndim > 0 and len(array) == mdp.base.n_states
        return RewardTable(as_reward(mdp, labelled(mdp.lift(array) if short else array, mdp), name))
    kept = _without(moves, ~mdp.feasible.reshape(-1))
    bad = ~np.isfinite(_stored(kept))
    if bad.any():
        row = int(_rows(kept)[bad][0]) if is_sparse(kept) else int(np.argwhere(bad)[0][0])
        where = pair_in_words(mdp, *divmod(row, A))
        raise InvalidReward(name, "finite rewards for feasible pairs", "NaN or infinity", where)
    return RewardTable(np.zeros((S, A)), kept)


def _as_moves(values: Any, S: int, A: int, name: str, error: type[InvalidInput]) -> Any:
    """One number per (s, a, s') as a sparse or dense (S*A, S) array; None for anything else."""
    if is_sparse(values):
        return as_float_csr(name, values, error) if values.shape == (S * A, S) else None
    array = as_floats(values)
    return array.reshape(S * A, S) if array is not None and array.shape == (S, A, S) else None


def _without(moves: Any, ignored: Any) -> Any:
    """The same with zeros in the rows of ignored pairs."""
    if is_sparse(moves):
        data = np.where(ignored[_rows(moves)], 0.0, moves.data)
        return sp.csr_array((data, moves.indices, moves.indptr), shape=moves.shape)
    return np.where(ignored[:, None], 0.0, moves)


def _stored(moves: Any) -> Floats:
    return np.asarray(moves.data if is_sparse(moves) else moves)


def _rows(moves: Any) -> npt.NDArray[np.intp]:
    """The row of every number that a CSR array stores."""
    return np.repeat(np.arange(moves.shape[0]), np.diff(moves.indptr))


def _as_dense(moves: Any) -> Floats:
    return moves.toarray() if is_sparse(moves) else moves


@dataclass(frozen=True)
class Coverage:
    """Which (s, a, s') are looked at, and how much (theory D4).

    `states` (S,) and `actions` (S, A), the probabilities of a given s; s' is drawn from `states` as well,
    independently, unless `moves`, sparse (S*A, S), says how often each (s, a, s') is met.
    """

    states: Floats
    actions: Floats
    moves: sp.csr_array | None = None

    @property
    def pairs(self) -> Floats:
        return self.states[:, None] * self.actions


def as_coverage(mdp: MDP, coverage: Any) -> Coverage:
    """None: uniform over the states that are not terminal and their feasible actions. An (S, A) table of weights, or
    weights of (s, a, s') as a sparse (S*A, S) or dense (S, A, S) array, need not sum to one."""
    require_mdp(mdp)
    S, A = mdp.feasible.shape
    if coverage is None:
        return Coverage(~mdp.terminal / (~mdp.terminal).sum(), mdp.uniform_policy())
    coverage = in_order(mdp, coverage, "coverage", ("state", "action", "state"), InvalidDistribution)
    moves = _as_moves(coverage, S, A, "coverage", InvalidDistribution)
    expected = f"weights of shape {(S, A)}, {(S, A, S)}, or sparse {(S * A, S)}"
    weights = moves
    if moves is None:
        remedy = pass_instead(coverage, "counts")
        weights = require_floats("coverage", coverage, expected, InvalidDistribution, remedy)
        if weights.shape != (S, A):
            raise InvalidDistribution("coverage", expected, f"shape {weights.shape}")
    largest = _largest_weight(mdp, weights)
    shares = weights / largest
    pairs: Floats = np.asarray(shares if moves is None else shares.sum(axis=1)).reshape(S, A)
    _require_feasible(mdp, pairs, largest)
    states, total = pairs.sum(axis=1), float(pairs.sum())
    actions = pairs / np.where(states > 0.0, states, 1.0)[:, None]
    actions = np.where(states[:, None] > 0.0, actions, mdp.uniform_policy())
    return Coverage(states / total, actions, None if moves is None else sp.csr_array(shares / total))


def _largest_weight(mdp: MDP, weights: Any) -> float:
    """The largest weight, by which all are divided before they are summed."""
    stored = _stored(weights)
    bad = ~(np.isfinite(stored) & (stored >= 0.0))
    if bad.any():
        row = int(_rows(weights)[bad][0]) if is_sparse(weights) else int(np.argwhere(bad)[0][0])
        where = state_in_words(mdp, row // (weights.shape[0] // mdp.n_states))
        raise InvalidDistribution("coverage", "finite weights >= 0", stored[bad][0], where)
    if not stored.any():
        raise InvalidDistribution("coverage", "some weight above 0", "all zero")
    return float(stored.max())


def _require_feasible(mdp: MDP, pairs: Floats, largest: float) -> None:
    """No weight, as a share of the largest one, on what cannot be done."""
    outside = ~mdp.feasible & (pairs > 0.0)
    if outside.any():
        s, a = (int(i) for i in np.argwhere(outside)[0])
        got = float(pairs[s, a]) * largest
        raise InvalidDistribution("coverage", "weight on feasible pairs alone", got, pair_in_words(mdp, s, a))


def epic(mdp: MDP, reward_a: Any, reward_b: Any, coverage: Any = None) -> float:
    """EPIC distance (theory D5), exact: the Pearson distance of the canonical rewards.

    Rewards are (S, A) arrays, or look at s' as a dense (S, A, S) or sparse (S*A, S) array (zero where nothing is
    stored). `coverage` defaults to s and s' uniform over the states that are not terminal, a uniform over the actions
    feasible in s; an (S, A) table of weights makes s' follow its states, a table of (s, a, s') need not be independent.
    """
    cover = as_coverage(mdp, coverage)

    def norm(reward: RewardTable) -> tuple[float, float]:
        # where nothing ends, the canonical form does not see the level
        level = 0.0 if mdp.ends else float(typical(reward.pairs[mdp.feasible]))
        apart = RewardTable(np.where(mdp.feasible, reward.pairs - level, 0.0), reward.moves)
        return _epic_norm(mdp.discount, cover, apart), apart.size + LEVEL * reward.size

    return _distance(as_table(mdp, reward_a, "reward_a"), as_table(mdp, reward_b, "reward_b"), norm)


def starc(mdp: MDP, reward_a: Any, reward_b: Any, coverage: Any = None, chain: Chain | None = None) -> float:
    """STARC distance (theory D6), exact: rewards canonicalised by the value of the uniform policy.

    The canonical form is the advantage of that policy, r + γTV − V; two rewards have the same one if they differ by a
    shaping r + γTφ − φ (φ = 0 in terminal states). `coverage` weighs the pairs of the norm, as in `epic`. `chain` may
    hand over the uniform policy's chain, where many rewards are compared.
    """
    if chain is not None:
        require_instance("chain", chain, Chain, "the rv.Chain of the uniform policy")
    weights = as_coverage(mdp, coverage).pairs
    uniform = mdp.uniform_policy()
    known = Chain(mdp, uniform, check=False) if chain is None else chain

    def norm(reward: RewardTable) -> tuple[float, float]:
        given = reward.expected(mdp)
        r = without_level(mdp, given, level_of(mdp, given))
        V, gain = known.solve_relative(np.sum(uniform * r, axis=1))  # up to a constant where nothing ends (theory B5)
        advantage = (r - gain) + mdp.discount * mdp.transitions.expect(V) - V[:, None]
        made_from = float(np.abs(r).max() + np.abs(V).max()) + LEVEL * float(np.abs(given).max())
        return float(np.sqrt(np.sum(weights * advantage**2))), made_from

    return _distance(as_table(mdp, reward_a, "reward_a"), as_table(mdp, reward_b, "reward_b"), norm)


def _distance(a: RewardTable, b: RewardTable, norm: Callable[[RewardTable], tuple[float, float]]) -> float:
    """½‖a/‖a‖ − b/‖b‖‖ for the seminorm that sees canonical forms; a form that vanishes stays zero."""
    a, b = a.with_unit_size(), b.with_unit_size()
    (size_a, from_a), (size_b, from_b) = norm(a), norm(b)
    nothing_a, nothing_b = size_a <= VANISHES * from_a, size_b <= VANISHES * from_b
    if nothing_a or nothing_b:
        return 0.0 if nothing_a and nothing_b else 0.5
    return min(1.0, 0.5 * norm(a.scaled(1.0 / size_a).minus(b.scaled(1.0 / size_b)))[0])


def _epic_norm(gamma: float, cover: Coverage, reward: RewardTable) -> float:
    """The standard deviation under the coverage of C(s, a, s') = R + γM(s') − M(s) − γE M, M(x) = E[R(x, A, S')]."""
    t, p = reward.pairs, cover.states
    after = 0.0 if reward.moves is None else (reward.moves @ p).reshape(t.shape)
    M = np.sum(cover.actions * (t + after), axis=1)
    later = gamma * (M - p @ M)
    if cover.moves is not None:
        return _spread_of_moves(cover.moves, reward.moves, t - M[:, None], later)
    here = cover.pairs * (t - M[:, None]) ** 2
    apart = float(here.sum() + p @ later**2)  # E_{s'}[later] = 0: no cross term
    if reward.moves is None:
        return float(np.sqrt(apart))
    weight, u = cover.pairs.reshape(-1), (t - M[:, None]).reshape(-1)
    if not is_sparse(reward.moves):
        return float(np.sqrt(weight @ (reward.moves + u[:, None] + later) ** 2 @ p))
    rows, columns = _rows(reward.moves), reward.moves.indices
    without = u[rows] + later[columns]
    w = weight[rows] * p[columns]
    spread = float(w @ (reward.moves.data + without) ** 2) + apart - float(w @ without**2)
    if spread < CANCELS * apart:  # shaping, for one, is all cancellation
        spread = _spread_by_blocks(weight, p, reward.moves, u, later)
    return float(np.sqrt(spread))


def _spread_by_blocks(weight: Floats, p: Floats, moves: sp.csr_array, u: Floats, later: Floats) -> float:
    """E[(moves + u(s, a) + later(s'))²], every (s, a, s') in turn: slower, but a sum of squares."""
    total, step = 0.0, max(1, BLOCK // p.size)
    for i in range(0, weight.size, step):
        C = moves[i : i + step].toarray() + u[i : i + step, None] + later
        total += float(weight[i : i + step] @ C**2 @ p)
    return total


def _spread_of_moves(seen: sp.csr_array, moves: Any, here: Floats, later: Floats) -> float:
    rows = _rows(seen)
    C = here.reshape(-1)[rows] + later[seen.indices]
    if moves is not None:
        C = C + np.asarray(moves[rows, seen.indices]).reshape(-1)
    return float(np.sqrt(seen.data @ (C - seen.data @ C) ** 2))
