"""The dense oracle in sixty digits: what choices are, however large values get and however near γ is to 1.

Python's `decimal`, Gaussian elimination and Newton's method, on plain lists. It shares no line with the library.
Probabilities are those of the float64 rows, scaled to sum to one exactly. Labels are those of docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

import revealed as rv
from revealed.mdp import Floats

DIGITS = 60
Column = list[Decimal]


def precisely(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        with localcontext() as context:
            context.prec = DIGITS
            return function(*args)

    return call


def eliminate(A: list[Column], b: Column) -> Column:
    """x with A x = b by Gaussian elimination with row pivots."""
    n, rows = len(b), [[*row, right] for row, right in zip(A, b, strict=True)]
    for k in range(n):
        top = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[top] = rows[top], rows[k]
        for i in range(k + 1, n):
            f = rows[i][k] / rows[k][k]
            if f:
                rows[i] = [x - f * y for x, y in zip(rows[i], rows[k], strict=True)]
    x = [Decimal(0)] * n
    for k in reversed(range(n)):
        x[k] = (rows[k][n] - sum((rows[k][j] * x[j] for j in range(k + 1, n)), Decimal(0))) / rows[k][k]
    return x


@dataclass
class Precise:
    """The same MDP in decimals: `moves[s][a]` are the pairs (s', p) of a feasible action, None of another."""

    moves: list[list[list[tuple[int, Decimal]] | None]]
    gamma: Decimal

    @classmethod
    @precisely
    def of(cls, mdp: rv.MDP) -> Precise:
        T = mdp.transitions.matrix.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
        moves: list[list[Any]] = [[None] * mdp.n_actions for _ in range(mdp.n_states)]
        for s, a in zip(*np.nonzero(mdp.feasible), strict=True):
            row = [(int(t), Decimal(float(T[s, a, t]))) for t in np.flatnonzero(T[s, a])]
            total = sum(p for _, p in row)
            moves[s][a] = [(t, p / total) for t, p in row]
        return cls(moves, Decimal(float(mdp.discount)))

    def q(self, reward: Floats, V: Column) -> list[list[Decimal | None]]:
        """r + γTV (V2); None where infeasible."""
        return [
            [
                None if to is None else Decimal(float(reward[s, a])) + self.gamma * sum(p * V[t] for t, p in to)
                for a, to in enumerate(actions)
            ]
            for s, actions in enumerate(self.moves)
        ]

    def value_of(self, policy: list[list[Decimal]], payoff: Column) -> Column:
        """(I − γT^π)⁻¹ payoff (V1)."""
        n = len(payoff)
        A = [[Decimal(int(s == t)) for t in range(n)] for s in range(n)]
        for s, actions in enumerate(self.moves):
            for a, to in enumerate(actions):
                for t, p in to or ():
                    A[s][t] -= self.gamma * policy[s][a] * p
        return eliminate(A, payoff)

    @precisely
    def solution(self, policy: Floats, b: Floats) -> tuple[Floats, float]:
        """(I − γT^π)⁻¹b as differences from its first entry, and that entry."""
        x = self.value_of(scaled(policy), [Decimal(float(y)) for y in b])
        return np.array([float(y - x[0]) for y in x]), float(x[0])

    @precisely
    def balanced(self, policy: Floats, D: Floats) -> Floats:
        """(I − γT^π)^{-T} γTᵀD for D whose rows sum to zero."""
        n, pi = len(D), scaled(policy)
        A = [[Decimal(int(s == t)) for t in range(n)] for s in range(n)]
        b = [Decimal(0)] * n
        for s, actions in enumerate(self.moves):
            weights = [Decimal(float(x)) for x in D[s]]
            weights[0] -= sum(weights)
            for a, to in enumerate(actions):
                for t, p in to or ():
                    A[t][s] -= self.gamma * pi[s][a] * p
                    b[t] += self.gamma * weights[a] * p
        return np.array([float(x) for x in eliminate(A, b)])

    @precisely
    def soft(self, reward: Floats) -> Floats:
        """π* (S, A) of the soft optimum (V3) by Newton's method (B1)."""
        V, old = [Decimal(0)] * len(self.moves), None
        for _ in range(400):
            policy = [softmax(row) for row in self.q(reward, V)]
            if old is not None and distance(policy, old) < Decimal("1e-30"):
                return as_floats(policy)
            V, old = self.value_of(policy, self.payoff(policy, reward)), policy
        raise AssertionError("Newton's method did not settle: a poor test problem")

    @precisely
    def improved(self, policy: Floats, reward: Floats) -> Floats:
        """softmax Q^π̃ (P1) of a given policy, whose rows are scaled to sum to one."""
        rows = scaled(policy)
        V = self.value_of(rows, self.payoff(rows, reward))
        return as_floats([softmax(row) for row in self.q(reward, V)])

    @precisely
    def hard(self, reward: Floats) -> Floats:
        """(S, A): by how much each action falls short of the best one (B4), by policy iteration; ∞ where infeasible."""
        choice = [next((a for a, to in enumerate(row) if to is not None), -1) for row in self.moves]
        for _ in range(400):
            policy = [
                [Decimal(int(a == c)) for a in range(len(row))] for c, row in zip(choice, self.moves, strict=True)
            ]
            payoff = [Decimal(0) if c < 0 else Decimal(float(reward[s, c])) for s, c in enumerate(choice)]
            Q = self.q(reward, self.value_of(policy, payoff))
            better = [better_action(row, c) for row, c in zip(Q, choice, strict=True)]
            if better == choice:
                best = [max((x for x in row if x is not None), default=Decimal(0)) for row in Q]
                short = [[np.inf if x is None else float(b - x) for x in row] for row, b in zip(Q, best, strict=True)]
                return np.array(short)
            choice = better
        raise AssertionError("policy iteration did not settle")

    def payoff(self, policy: list[list[Decimal]], reward: Floats) -> Column:
        """Σ_a π(a|s)(r − log π), with 0·log 0 = 0."""
        return [
            sum((p * (Decimal(float(reward[s, a])) - p.ln()) for a, p in enumerate(row) if p > 0), Decimal(0))
            for s, row in enumerate(policy)
        ]


def scaled(policy: Floats) -> list[list[Decimal]]:
    """A policy whose rows sum to one exactly, but those of terminal states."""
    rows = [[Decimal(float(p)) for p in row] for row in policy]
    return [[p / (sum(row) or Decimal(1)) for p in row] for row in rows]


def better_action(row: list[Decimal | None], now: int) -> int:
    best = max((a for a, x in enumerate(row) if x is not None), key=lambda a: row[a], default=now)  # pyright: ignore
    return best if now >= 0 and row[best] - row[now] > Decimal("1e-25") else now  # pyright: ignore


def softmax(row: list[Decimal | None]) -> list[Decimal]:
    top = max((x for x in row if x is not None), default=None)
    if top is None:
        return [Decimal(0)] * len(row)
    odds = [Decimal(0) if x is None or x - top < -200 else (x - top).exp() for x in row]
    total = sum(odds)
    return [p / total for p in odds]


def distance(a: list[list[Decimal]], b: list[list[Decimal]]) -> Decimal:
    return max(abs(x - y) for left, right in zip(a, b, strict=True) for x, y in zip(left, right, strict=True))


def as_floats(table: list[list[Decimal]]) -> Floats:
    return np.array([[float(x) for x in row] for row in table])
