"""Fits of which only what a counterfactual reads is there, with any covariance and any draws; and a small bus fleet."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

import revealed as rv
from oracle import Floats

THETA = np.array([4.5, 36.0])
COV = np.array([[0.1, 0.8], [0.8, 12.0]])


def estimate(mdp: rv.MDP, reward: Any, theta: Floats, cov: Floats, draws: Any = None, **more: Any) -> Any:
    """What a counterfactual needs to know of a fit; `more` replaces parts of it."""
    psi = np.zeros((0 if draws is None else len(draws), 0))
    drawn = SimpleNamespace(theta=draws, psi=psi, n_failed=0, interrupted=False, asked=len(psi))
    told = {
        "mdp": mdp,
        "reward_model": reward,
        "theta": theta,
        "demonstrations": SimpleNamespace(starts=np.zeros(mdp.n_states)),
        "options": {"solver": "auto"},
        "errors": ("hessian", False),
        "chosen": None,
        "at_maximum": True,
        "status": SimpleNamespace(code="converged"),
        "feature_sizes": None,
        "cov_params": lambda kind, joint: cov,
        "partial_covariance": lambda kind, joint: (cov, np.zeros((0, len(cov)))),
        "drawn": drawn,
        "bootstrap": lambda **options: drawn,
    }
    return SimpleNamespace(**told | more)


def whitened(cov: Floats, n: int = 400, seed: int = 0) -> Floats:
    """(n, K) draws whose mean is zero and whose covariance is exactly `cov`."""
    x = np.random.default_rng(seed).normal(size=(n, len(cov)))
    x -= x.mean(axis=0)
    return x @ np.linalg.inv(np.linalg.cholesky(np.cov(x, rowvar=False))).T @ np.linalg.cholesky(cov).T


@cache
def fleet() -> rv.environments.World:
    return rv.environments.rust_bus(bins=40, RC=5.0, theta11=40.0, discount=0.99)


@cache
def fleet_demos() -> rv.Demonstrations:
    return fleet().demonstrate(60, seed=1)


@cache
def fleet_fit() -> rv.Fit:
    return rv.NFXP(fleet().reward_model()).fit(fleet().mdp, fleet_demos())


@cache
def fleet_with_estimated_moves() -> rv.Fit:
    """Transitions estimated from the same buses."""
    origin = np.column_stack([np.arange(40), np.zeros(40, dtype=int)])
    landing = np.minimum(origin[:, :, None] + np.arange(3), 39)
    labels = fleet().mdp.action_labels
    moves = rv.estimate_transitions(fleet_demos(), landing)
    return rv.NFXP(fleet().reward_model()).fit(rv.MDP(moves, 0.99, np.eye(40)[0], action_labels=labels), fleet_demos())
