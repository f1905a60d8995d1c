"""The result that every method returns: estimates, behaviour, status, history, summary.

Names follow statsmodels (`params`, `llf`, `nobs`, `aic`, `bic`, `summary()`). pandas loads when a labelled object is
first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.demonstrations import Demonstrations
from revealed.diagnosis import Status
from revealed.errors import InvalidInput
from revealed.mdp import MDP, Floats
from revealed.rewards.base import Reward
from revealed.simulation import draw_actions, make_rng, simulate

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 30  # of a summary; longer parameter vectors are shown by their quantiles


@dataclass(frozen=True, eq=False)
class Fit:
    """An estimated reward and the behaviour it implies.

    `theta` (K,); `reward` (S, A); `policy` and `log_policy` (S, A) are π_θ = softmax Q^π̃; `value` (S,) is
    log Σ_a exp Q^π̃; `pi_tilde` (S, A) is the π̃ that was used; `llf` is Σ n(s,a) log π_θ(a|s) over the observed
    decisions, whatever the weighting; `objective` is g/Σρ − (l2/2)‖θ‖². `settled` tells of NPL whether π̃ had stopped
    moving (None for the other methods).
    """

    method: str
    theta: Floats
    policy: Floats = field(repr=False)
    log_policy: Floats = field(repr=False)
    reward: Floats = field(repr=False)
    value: Floats = field(repr=False)
    q: Floats = field(repr=False)
    pi_tilde: Floats = field(repr=False)
    llf: float
    objective: float
    gradient_norm: float
    status: Status
    settled: bool | None
    updates: int
    iterations: int
    seconds: float
    mdp: MDP = field(repr=False)
    demonstrations: Demonstrations = field(repr=False)
    reward_model: Reward = field(repr=False)
    options: dict[str, Any] = field(repr=False)
    rows: list[dict[str, Any]] = field(repr=False)

    @property
    def converged(self) -> bool:
        """Whether the estimate can be used as it stands: `status.code == "converged"`."""
        return self.status.code == "converged"

    @property
    def nobs(self) -> int:
        """The number of observed decisions."""
        return round(self.demonstrations.n_decisions)

    @cached_property
    def params(self) -> pd.Series:
        """θ with the names of the reward's parameters."""
        import pandas as pd

        return pd.Series(self.theta, index=list(self.reward_model.names), name="coef")

    @cached_property
    def history(self) -> pd.DataFrame:
        """One row per iteration: update, objective, gradient_norm, step, seconds, linear_solves."""
        import pandas as pd

        frame = pd.DataFrame(self.rows)
        frame.index.name = "iteration"
        return frame

    @property
    def aic(self) -> float:
        return 2.0 * self.theta.size - 2.0 * self.llf

    @property
    def bic(self) -> float:
        return float(np.log(self.demonstrations.n_decisions)) * self.theta.size - 2.0 * self.llf

    def predict(
        self,
        obs: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        seed: int | None = None,
    ) -> tuple[Any, Any]:
        """Actions for states, called as Stable-Baselines3's policies are: returns (actions, state).

        `obs` is a state index or an array of them. Actions are drawn from the estimated policy, or are its most
        likely ones with `deterministic=True`. `state` and `episode_start` are passed through: behaviour is Markov.
        """
        try:
            states = np.asarray(obs)
        except ValueError as error:
            raise InvalidInput("obs", "state indices", "a ragged sequence") from error
        if not np.issubdtype(states.dtype, np.integer) or states.size == 0:
            raise InvalidInput("obs", "state indices", f"dtype {states.dtype}, shape {states.shape}")
        flat = states.reshape(-1)
        bad = (flat < 0) | (flat >= self.mdp.n_states)
        if bad.any():
            where = f"position {int(np.flatnonzero(bad)[0])}"
            raise InvalidInput("obs", f"indices in 0…{self.mdp.n_states - 1}", int(flat[bad][0]), where)
        ended = self.mdp.terminal[flat]
        if ended.any():
            raise InvalidInput("obs", "states that are not terminal", int(flat[ended][0]))
        rows = self.policy[flat]
        if deterministic:
            actions = rows.argmax(axis=1)
        else:
            actions = draw_actions(rows, make_rng(seed))
        return (int(actions[0]) if states.ndim == 0 else actions.reshape(states.shape)), state

    def simulate(self, n: int, length: int, seed: int | None = None, initial: Any = None) -> Demonstrations:
        """`n` trajectories of at most `length` decisions under the estimated policy.

        Starts come from `initial`, else from the MDP's start distribution, else from where the data started.
        """
        if initial is None and self.mdp.initial is None and self.demonstrations.starts.sum() > 0:
            initial = self.demonstrations.starts / self.demonstrations.starts.sum()
        return simulate(self.mdp, self.policy, n, length, seed, initial)

    def summary(self) -> Summary:
        """A table that a person can read; `print(fit.summary())`."""
        return Summary(self)

    def __repr__(self) -> str:
        return (
            f"<Fit {self.method}: {self.theta.size} parameters, llf {self.llf:.3f}, {self.nobs} decisions, "
            f"{self.status.code} in {self.seconds:.2f} s>"
        )


class Summary:
    """The printed form of a fit."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit

    def __str__(self) -> str:
        fit = self._fit
        width = 78
        left = [
            ("Method", fit.method),
            ("Reward", type(fit.reward_model).__name__),
            ("Weighting", str(fit.options.get("weighting"))),
            ("States, actions", f"{fit.mdp.n_states}, {fit.mdp.n_actions}"),
            ("Discount", f"{fit.mdp.discount:g}"),
            ("Status", fit.status.code),
        ]
        right = [
            ("Observations", f"{fit.nobs}"),
            ("Agents", f"{fit.demonstrations.n_agents}"),
            ("Log likelihood", f"{fit.llf:.3f}"),
            ("AIC, BIC", f"{fit.aic:.2f}, {fit.bic:.2f}"),
            ("Iterations", f"{fit.iterations}" + (f" in {fit.updates} updates" if fit.settled is not None else "")),
            ("Seconds", f"{fit.seconds:.3f}"),
        ]
        lines = ["=" * width]
        lines += [f"{a + ':':<17}{b:<22}{c + ':':<17}{d:>22}" for (a, b), (c, d) in zip(left, right, strict=True)]
        lines += ["-" * width, *self._coefficients(), "-" * width, *_wrap(str(fit.status), width), "=" * width]
        return "\n".join(lines)

    __repr__ = __str__

    def _coefficients(self) -> list[str]:
        fit = self._fit
        if fit.theta.size > MOST_ROWS:
            marks = (0, 5, 25, 50, 75, 95, 100)
            cells = "".join(f"{q:>9}%" for q in marks)
            values = "".join(f"{v:>10.4f}" for v in np.percentile(fit.theta, marks))
            return [f"{fit.theta.size} parameters, by quantile", cells, values]
        longest = max(len(n) for n in fit.reward_model.names)
        rows = zip(fit.reward_model.names, fit.theta, strict=True)
        return [f"{'':<{longest}}{'coef':>14}", *(f"{n:<{longest}}{v:>14.6g}" for n, v in rows)]


def _wrap(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width)
