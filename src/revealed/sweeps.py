"""One sweep Λ(V)(s) = log Σ_a exp(r + γTV)(s, a) (theory M2, V2, P1), and the policy that goes with it.

On large models a sweep goes block by block, so that Q of a block never leaves the cache, and the blocks of a sweep run
side by side on threads: neither the sparse product nor the exponentials need Python's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from revealed.mdp import MDP, Floats
from revealed.parallel import cores, in_worker
from revealed.transitions import RowBlock

Choice = npt.NDArray[np.intp]
Act = Callable[[slice, Floats], None]

RELATIVE = -1.0  # a shift that keeps the level out, see `centred`
WORTH_BLOCKS = 400_000  # pairs: below this handing blocks to threads costs what it saves


def q_values(mdp: MDP, reward: Floats, V: Floats) -> Floats:
    """Q = r + γ T V (theory V2), −∞ for infeasible actions."""
    return _as_q(mdp, reward, slice(None), mdp.transitions.expect(V))


def sweep(mdp: MDP, reward: Floats, V: Floats, times: int = 1) -> Floats:
    """Λ applied to V so many times; no table of Q is made where it would be large."""
    with _pool(mdp) as pool:
        for _ in range(times):
            V = _sweep_once(mdp, reward, V, pool)
    return V


def _sweep_once(mdp: MDP, reward: Floats, V: Floats, pool: Executor | None) -> Floats:
    out = np.empty(mdp.n_states)

    def act(states: slice, ahead: Floats) -> None:
        out[states] = log_sum_exp(_as_q(mdp, reward, states, ahead), spare=True)

    _each_block(mdp, V, act, pool)
    return out


def soft_policy(mdp: MDP, reward: Floats, V: Floats) -> tuple[Floats, Floats]:
    """Λ(V) and the policy that goes with it: a sweep that keeps π."""
    LV, policy = np.empty(mdp.n_states), np.empty(mdp.feasible.shape)

    def act(states: slice, ahead: Floats) -> None:
        top, odds = _odds(_as_q(mdp, reward, states, ahead), spare=True)
        total = _row_sums(odds)
        total[total == 0.0] = 1.0  # terminal
        np.divide(odds, total[:, None], out=policy[states])
        np.log(total, out=total)
        np.add(total, top, out=LV[states])

    with _pool(mdp) as pool:
        _each_block(mdp, V, act, pool)
    return LV, policy


def policy_sweep(mdp: MDP, policy: Floats, b: Floats, x: Floats, times: int = 1) -> tuple[Floats, Floats]:
    """x ← b + γT^π x so many times, without T^π: neither exponentials nor anything to merge. The last two x."""
    scaled, before = mdp.discount * policy, x
    with _pool(mdp) as pool:
        for _ in range(times):
            before, x = x, _policy_sweep_once(mdp, scaled, b, x, pool)
    return before, x


def _policy_sweep_once(mdp: MDP, scaled: Floats, b: Floats, x: Floats, pool: Executor | None) -> Floats:
    out = np.empty(mdp.n_states)

    def act(states: slice, ahead: Floats) -> None:
        ahead *= scaled[states]
        np.add(b[states], _row_sums(ahead), out=out[states])

    _each_block(mdp, x, act, pool)
    return out


def greedy(mdp: MDP, reward: Floats, V: Floats, choice: Choice, slack: float) -> tuple[Floats, Choice, int]:
    """The largest Q(s, ·), the policy that changes `choice` where that gains more than `slack`, and in how many states.

    A choice of −1 is none yet: every action is better. In terminal states nothing is chosen and the first is −∞.
    """
    top, better, chosen = np.empty(mdp.n_states), np.empty(mdp.n_states, dtype=bool), choice.copy()

    def act(states: slice, ahead: Floats) -> None:
        Q, mine = _as_q(mdp, reward, states, ahead), choice[states]
        top[states] = highest = _row_maxima(Q)
        own = np.take(Q, np.arange(0, Q.size, Q.shape[1]) + mine, mode="clip")
        better[states] = rows = (highest > own + slack) | ((mine < 0) & ~mdp.terminal[states])
        chosen[states][rows] = Q[rows].argmax(axis=1)

    with _pool(mdp) as pool:
        _each_block(mdp, V, act, pool)
    return top, chosen, int(np.count_nonzero(better))


def centred(V: Floats, W: Floats, shift: float) -> tuple[Floats, float]:
    """W, what a sweep made of V, moved by `shift` times the middle of what it changed; and how far the next sweep may
    move it. A shift of γ/(1 − γ) leads to the middle of W's error bounds, one of −1 (`RELATIVE`) takes the level off
    where only differences are looked for, one of 0 leaves W as it is."""
    change = W - V
    low, high = float(change.min()), float(change.max())
    middle = 0.5 * (low + high) if shift else 0.0
    return W + shift * middle, max(high - middle, middle - low)


def worth_blocks(mdp: MDP) -> bool:
    """Whether a model is so large that sweeps go block by block."""
    return mdp.feasible.size >= WORTH_BLOCKS


def _as_q(mdp: MDP, reward: Floats, states: slice, ahead: Floats) -> Floats:
    """Q of some states from TV there, in its place."""
    ahead *= mdp.discount
    ahead += reward[states]
    if mdp.masked:
        ahead += mdp.log_feasible[states]
    return ahead


def _threads(mdp: MDP) -> int:
    return 1 if in_worker() else min(cores(), len(mdp.transitions.row_blocks))


def _pool(mdp: MDP) -> AbstractContextManager[Executor | None]:
    """Threads for the blocks of a large model; none where there would be but one."""
    n = _threads(mdp) if worth_blocks(mdp) else 1
    return nullcontext() if n == 1 else ThreadPoolExecutor(n)


def _each_block(mdp: MDP, V: Floats, act: Act, pool: Executor | None) -> None:
    """act(states, TV of these states) for every block of states; the blocks are shared out among the threads. A model
    that is not worth it is one block."""
    if not worth_blocks(mdp):
        return act(slice(0, mdp.n_states), mdp.transitions.expect(V))
    blocks, n = mdp.transitions.row_blocks, _threads(mdp)
    if pool is None:
        return _act_on_blocks(mdp, V, act, blocks)
    ends = np.linspace(0, len(blocks), n + 1).astype(int)
    shares = [blocks[a:b] for a, b in pairwise(ends)]
    for done in [pool.submit(_act_on_blocks, mdp, V, act, share) for share in shares]:
        done.result()


def _act_on_blocks(mdp: MDP, V: Floats, act: Act, blocks: Sequence[RowBlock]) -> None:
    for block in blocks:
        act(block.states, (block.rows @ V).reshape(-1, mdp.n_actions))


def log_sum_exp(Q: Floats, spare: bool = False) -> Floats:
    """log Σ_a exp Q(s, a) over the feasible actions (theory M2); 0 in terminal states, whose Q is −∞ throughout.

    `spare` says that Q is not needed any more: its memory is used.
    """
    top, odds = _odds(Q, spare)
    total = _row_sums(odds)
    np.log(total, out=total, where=total > 0.0)
    total += top
    return total


def soft_maximum(Q: Floats) -> tuple[Floats, Floats, Floats]:
    """(V, π, log π) with V = log Σ_a exp Q and π = exp(Q − V) (theory P1); log π is −∞ for infeasible actions.

    The largest Q is taken off before anything is summed, so that probabilities sum to one to the last digit even
    where values are in the tens of thousands (γ near 1); adjoint solves would blow up what is missing.
    """
    top, policy = _odds(Q)
    total = _row_sums(policy)
    total[total == 0.0] = 1.0  # terminal
    policy /= total[:, None]
    np.log(total, out=total)
    log_policy = Q - top[:, None]
    log_policy -= total[:, None]
    total += top
    return total, policy, log_policy


def _odds(Q: Floats, spare: bool = False) -> tuple[Floats, Floats]:
    """The largest Q(s, ·) (0 where there is none) and exp(Q − it). Column by column: rows are short."""
    top = _row_maxima(Q)
    top[np.isneginf(top)] = 0.0
    odds = np.subtract(Q, top[:, None], out=Q if spare else None)
    np.exp(odds, out=odds)
    return top, odds


def _row_maxima(table: Floats) -> Floats:
    top = table[:, 0].copy()
    for a in range(1, table.shape[1]):
        np.maximum(top, table[:, a], out=top)
    return top


def _row_sums(table: Floats) -> Floats:
    total = table[:, 0].copy()
    for a in range(1, table.shape[1]):
        total += table[:, a]
    return total
