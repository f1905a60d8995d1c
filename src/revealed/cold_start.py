"""Where the search for a soft optimum starts when nothing is known (theory V3, B1): a few sweeps V ← Λ(V) from zero.

Where nothing ends, the level is kept out and only differences between states are looked for (theory B5). If their error
bounds shrink fast, as on graphs without locality, the rest of the way is short and goes without the graph being looked
at, merged or factored: Newton's method, whose linear systems d = (Λ(V) − V) + γT^π d are swept as well. Λ costs
exponentials, γT^π none.
"""

from __future__ import annotations

import numpy as np

from revealed.linear_solvers import EPS
from revealed.mdp import MDP, Floats
from revealed.sweeps import RELATIVE, centred, policy_sweep, soft_policy, sweep
from revealed.transitions.pattern import SMALL

SWEEPS, EARLY = 10, 3  # sweeps; after twice `EARLY` the second half shows how fast errors shrink
AT_A_TIME = 4  # linear sweeps from one check of the error to the next
MOST = 120  # linear sweeps, beyond which a solver that looks at the graph is quicker
MOST_STEPS = 8  # of Newton: each squares the error


def cold_start(mdp: MDP, reward: Floats) -> Floats:
    """A value to start from for γ < 1, up to a constant where nothing ends: the optimum where sweeps get there soon."""
    shift = RELATIVE if mdp.endless else 0.0
    V, errors = np.zeros(mdp.n_states), [np.inf]
    for k in range(1, SWEEPS + 1):
        V, error = centred(V, sweep(mdp, reward, V), shift)
        errors.append(error)
        if k == 2 * EARLY and mdp.n_states > SMALL:
            rounding = EPS * float(np.abs(V).max() + np.abs(reward).max())
            if soon(errors[EARLY], error, rounding):
                return newton_by_sweeps(mdp, reward, V, shift, rounding)
    return V


def soon(early: float, now: float, rounding: float) -> bool:
    """Whether an error that `EARLY` sweeps brought down from `early` to `now` is at rounding `MOST` sweeps from now."""
    return now < early and now * (now / early) ** (MOST / EARLY) <= rounding


def newton_by_sweeps(mdp: MDP, reward: Floats, V: Floats, shift: float, rounding: float) -> Floats:
    """Newton's method (theory B1) until a step is at rounding, or `MOST` sweeps were not enough."""
    left = MOST
    for _ in range(MOST_STEPS):
        LV, policy = soft_policy(mdp, reward, V)
        d, error = centred(np.zeros_like(V), LV - V, shift)
        residual = d
        # the next residual is about the square of this one: a step need not be known better
        target = max(min(0.1, error) * error, rounding)
        while error > target and left > 0:
            d, error = centred(*policy_sweep(mdp, policy, residual, d, AT_A_TIME), shift)
            left -= AT_A_TIME
        V = V + d
        if left <= 0 or float(np.abs(residual).max()) <= 2.0 * rounding:
            break
    return V
