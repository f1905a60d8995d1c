"""Estimates with their errors as arrays, read off a fit by what prints them.

Reading never raises because an error has no formula: the numbers are then NaN, and a sentence says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from revealed.agent_groups import AgentGroups
from revealed.bootstrap import draw_bounds
from revealed.checks import Floats
from revealed.diagnosis import Status
from revealed.errors import InvalidInput, RevealedError
from revealed.voices import either, words

if TYPE_CHECKING:
    import pandas as pd


class FitLike(Protocol):
    """What a summary reads of a fit."""

    @property
    def method(self) -> str: ...
    @property
    def theta(self) -> Floats: ...
    @property
    def llf(self) -> float: ...
    @property
    def aic(self) -> float: ...
    @property
    def bic(self) -> float: ...
    @property
    def nobs(self) -> int: ...
    @property
    def llnull(self) -> float: ...
    @property
    def llsat(self) -> float: ...
    @property
    def prsquared(self) -> float: ...
    @property
    def prsquared_adj(self) -> float: ...
    @property
    def hit_rate(self) -> float: ...
    @property
    def goodness(self) -> Any: ...
    @property
    def groups(self) -> AgentGroups | None: ...
    @property
    def status(self) -> Status: ...
    @property
    def settled(self) -> bool | None: ...
    @property
    def updates(self) -> int: ...
    @property
    def iterations(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def options(self) -> dict[str, Any]: ...
    @property
    def errors(self) -> tuple[str, bool]: ...
    @property
    def bse(self) -> pd.Series: ...
    @property
    def tvalues(self) -> pd.Series: ...
    @property
    def pvalues(self) -> pd.Series: ...
    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame: ...
    def cov_params(self, kind: str | None = None, joint: bool | None = None) -> pd.DataFrame: ...
    @property
    def drawn(self) -> Any: ...
    @property
    def at_maximum(self) -> bool: ...
    @property
    def identification(self) -> Any: ...
    @property
    def mdp(self) -> Any: ...
    @property
    def demonstrations(self) -> Any: ...
    @property
    def reward_model(self) -> Any: ...


@dataclass(frozen=True)
class Estimates:
    """Parameters with standard errors, z, p and interval; NaN where there are none; `reason` says why none has any."""

    names: tuple[str, ...]
    coef: Floats
    bse: Floats
    z: Floats
    p: Floats
    lower: Floats
    upper: Floats
    reason: str = ""

    @property
    def columns(self) -> tuple[Floats, ...]:
        return self.coef, self.bse, self.z, self.p, self.lower, self.upper


def read_estimates(fit: FitLike, alpha: float = 0.05) -> Estimates:
    """θ with the errors that the fit uses."""
    names, K = tuple(str(name) for name in fit.reward_model.names), fit.theta.size
    try:
        interval = fit.conf_int(alpha)
        parts = (fit.bse, fit.tvalues, fit.pvalues, interval["lower"], interval["upper"])
        bse, z, p, lower, upper = (np.asarray(part, dtype=np.float64) for part in parts)
        return Estimates(names, fit.theta, bse, z, p, lower, upper)
    except RevealedError as error:
        none = np.full(K, np.nan)
        return Estimates(names, fit.theta, none, none, none, none, none, _why_none(fit, error))


def read_transitions(fit: FitLike, alpha: float = 0.05) -> Estimates | None:
    """ψ, where the errors are those of θ and ψ together; None elsewhere."""
    from scipy.special import ndtr, ndtri

    kind, joint = fit.errors
    bse, moves = _transition_errors(fit) if joint else np.zeros(0), fit.mdp.estimated
    if bse.size == 0:
        return None
    with np.errstate(divide="ignore"):
        z = moves.psi / bse
    if kind == "bootstrap":
        lower, upper = draw_bounds(fit.drawn.psi, (alpha / 2.0, 1.0 - alpha / 2.0))
    else:
        lower, upper = moves.psi + np.outer([-1.0, 1.0], ndtri(1.0 - alpha / 2.0) * bse)
    return Estimates(tuple(moves.names), moves.psi, bse, z, 2.0 * ndtr(-np.abs(z)), lower, upper)


def _transition_errors(fit: FitLike) -> Floats:
    """(L,); none where the bootstrap takes transitions as known that come from other agents."""
    kind, K = fit.errors[0], fit.theta.size
    written = fit.cov_params(kind, joint=True)
    if len(written) == K and "note" in written.attrs and (kind != "bootstrap" or fit.drawn.psi.shape[1]):
        return np.asarray(fit.transition_bse, dtype=np.float64)  # pyright: ignore[reportAttributeAccessIssue]
    variance = np.diag(written)[K:]
    return np.sqrt(np.where(variance >= 0.0, variance, np.nan))


def _why_none(fit: FitLike, error: RevealedError) -> str:
    if fit.options.get("weighting") == "occupancy":
        return _OCCUPANCY
    return "No standard errors: " + (error.reason if isinstance(error, InvalidInput) else error.message)


_OCCUPANCY = words(
    "No standard errors: with occupancy weighting the objective is not a likelihood. Use a bootstrap: "
    + either('fit.with_errors("bootstrap").', "--errors bootstrap.")
)
