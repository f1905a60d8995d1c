"""The result that every method returns: estimates, behaviour, status, history, summary.

Names follow statsmodels (`params`, `llf`, `nobs`, `aic`, `bic`, `summary()`). pandas loads when a labelled object is
first used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.agent_groups import AgentGroups
from revealed.checks import frozen, require_flag
from revealed.demonstrations import Demonstrations
from revealed.diagnosis import Status
from revealed.errors import RevealedError
from revealed.goal_steps import n_goals
from revealed.labelled import find_states, label_table, labels_or_numbers, named_actions, require_going_on
from revealed.labels import how_many
from revealed.mdp import MDP, Floats
from revealed.positions import label_tables, labelled
from revealed.rewards.base import Reward
from revealed.simulation import draw_actions, make_rng, simulate
from revealed.starts import starts_of
from revealed.uncertainty import Uncertain

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import pandas as pd

    from revealed.counterfactual import Counterfactual
    from revealed.demand import DemandCurve
    from revealed.goodness import ChiSquare, ChoiceFit
    from revealed.summary import Summary


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class AnyFit(Uncertain):
    """What every result has, whether trips have goals (`GoalFit`) or not (`Fit`).

    `theta` (K,); `reward` (S, A) is the reward model at θ, also for pairs that the model does not offer and for
    terminal states (NaN where it has no value); `llf` is Σ n(s,a) log π_θ(a|s) over the observed decisions, whatever
    the weighting; `objective` is g/Σρ − (l2/2)‖θ‖². `settled` says whether NPL's π̃ had stopped moving (None for the
    other methods). `own_policy` says whether π̃ = π_θ; `estimator` made the fit and can repeat it, as the
    bootstrap does. `units` (K,) are those of the parameters in which `gradient_norm` is measured (theory O5).
    """

    method: str
    theta: Floats
    reward: Floats = field(repr=False)
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
    own_policy: bool = True
    units: Floats | None = field(repr=False, default=None)
    estimator: Any = field(repr=False, default=None)
    chosen: tuple[str, bool, dict[str, Any]] | None = field(repr=False, default=None)
    groups: AgentGroups | None = field(repr=False, default=None)
    kept: dict[Any, Any] = field(repr=False, default_factory=dict)

    @property
    def converged(self) -> bool:
        """Whether the estimate can be used as it stands: `status.code == "converged"`."""
        return self.status.code == "converged"

    @property
    def n_decisions(self) -> int:
        """The number of observed decisions."""
        return round(self.demonstrations.n_decisions)

    @property
    def n_observations(self) -> float:
        """What counts as one observation, with its weights: a decision, or a trip where trips have goals."""
        return self.demonstrations.n_decisions

    @property
    def nobs(self) -> int:
        """The number of observations: decisions or, where trips have goals, trips."""
        return round(self.n_observations)

    def __post_init__(self) -> None:
        label_tables(self, self.mdp, ("reward",))
        for name in ("theta", "units"):
            if isinstance(getattr(self, name), np.ndarray):
                frozen(getattr(self, name))

    @property
    def params(self) -> pd.Series:
        """θ with the names of the reward's parameters."""
        import pandas as pd

        return pd.Series(self.theta, index=list(self.reward_model.names), name="coef", copy=True)

    @property
    def history(self) -> pd.DataFrame:
        """One row per iteration: update, objective, gradient_norm, step, seconds, linear_solves."""
        import pandas as pd

        frame = pd.DataFrame(self.rows)
        frame.index.name = "iteration"
        return frame

    @property
    def n_free(self) -> int:
        """The number of identified parameters: all, less the directions that do not affect choices."""
        return self.identification.rank if self.status.code == "unidentified" else self.theta.size

    @property
    def aic(self) -> float:
        return 2.0 * self.n_free - 2.0 * self.llf

    @property
    def bic(self) -> float:
        return float(np.log(self.n_observations)) * self.n_free - 2.0 * self.llf

    # how well it predicts

    @cached_property
    def _choices(self) -> ChoiceFit:
        """Choices observed and predicted."""
        from revealed.goodness import ChoiceFit

        return ChoiceFit.of(self)

    @property
    def llnull(self) -> float:
        """The log likelihood of uniform choice among feasible actions; with goals, among those that lead to the
        goal."""
        return self._measure("llf_at_random")

    def _measure(self, name: str) -> float:
        """NaN where choices cannot be predicted at the estimate, as after a search that failed."""
        try:
            return getattr(self._choices.visited, name)
        except RevealedError:
            return np.nan

    @property
    def llsat(self) -> float:
        """The highest log likelihood that any policy has on these data: that of the observed frequencies."""
        return self._measure("llf_of_frequencies")

    @property
    def prsquared(self) -> float:
        """McFadden's pseudo-R², 1 − llf/llnull; NaN if there was no choice to make."""
        return 1.0 - self.llf / self.llnull if self.llnull < 0.0 else np.nan

    @property
    def prsquared_adj(self) -> float:
        """The same less one nat per identified parameter: 1 − (llf − K)/llnull."""
        return 1.0 - (self.llf - self.n_free) / self.llnull if self.llnull < 0.0 else np.nan

    @property
    def hit_rate(self) -> float:
        """Share of the decisions between several actions that took the action predicted as most likely."""
        return self._measure("hit_rate")

    @cached_property
    def goodness(self) -> ChiSquare | str:
        """Pearson's test of predicted against observed choices, or a sentence on why there is none. `.poor` says
        whether the model fits these data poorly, which a converged fit may."""
        from revealed.goodness import chi_square

        try:
            return chi_square(self, self._choices.visited)
        except RevealedError as error:
            return f"No χ² test: {error}"

    @property
    def state_labels(self) -> tuple[Any, ...]:
        """Labels of the states, from the model or the data; (time, label) on a horizon; numbers if there are none."""
        return labels_or_numbers(self.mdp.state_labels, self.mdp.n_states)

    @property
    def action_labels(self) -> tuple[Any, ...]:
        """Labels of the actions; numbers if there are none."""
        return labels_or_numbers(self.mdp.action_labels, self.mdp.n_actions)

    def summary(self, alpha: float = 0.05) -> Summary:
        """The fit as a table: `print(fit.summary())`. Intervals have coverage 1 − `alpha`."""
        from revealed.summary import Summary

        return Summary(self, alpha)

    def reward_on(self, mdp: MDP) -> Floats:
        """(S, A): the estimated reward on another model, as `rv.solve(mdp, fit)` takes it: one with other transitions,
        another discount, more actions on offer, other terminal states.

        Labels are matched if both models have them; else states and actions are matched by position. NaN where the
        reward has no value, which is an error for a pair that `mdp` offers.
        """
        from revealed.transfer import reward_on

        return reward_on(self.reward_model, self.theta, self.mdp, mdp)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the fit as one zip of JSON and arrays, which `rv.load(path)` reads; returns the file's path.

        A folder gets a `fit.zip`, a path without a suffix gets `.zip`, and missing folders are created. The file is
        replaced completely or not at all. Rewards of your own (torch, JAX functions) are passed again to `rv.load`.
        """
        from revealed.saving import save_fit

        return save_fit(self, path)

    def to_html(self) -> str:
        """The summary as a fragment to be put into a page."""
        return self.summary().to_html()

    def to_latex(self) -> str:
        """The summary as a `tabular`; it needs `\\usepackage{booktabs}`."""
        return self.summary().to_latex()

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        goals = self.demonstrations.goal_states
        toward = "" if goals is None else f" toward {n_goals(goals)}"
        return (
            f"<{type(self).__name__} {self.method}: {how_many(self.theta.size, 'parameter')}, llf {self.llf:.3f}, "
            f"{self.n_decisions} decisions{toward}, {self.status.code} in {self.seconds:.2f} s>"
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Fit(AnyFit):
    """An estimated reward and the behaviour it implies.

    `policy` and `log_policy` (S, A) are π_θ = softmax Q^π̃; `value` (S,) is log Σ_a exp Q^π̃; `pi_tilde` (S, A) is the
    π̃ that was used. `AnyFit` describes the rest: `theta` (K,), `reward` (S, A), `llf`, `status`, ….
    """

    policy: Floats
    log_policy: Floats
    value: Floats
    q: Floats
    pi_tilde: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        label_tables(self, self.mdp, ("policy", "log_policy", "value", "q", "pi_tilde"))

    def predict(
        self,
        obs: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        seed: int | None = None,
    ) -> tuple[Any, Any]:
        """Actions for states, called as Stable-Baselines3's policies are: returns (actions, state).

        `obs` is a state index or an array of them, and so are the actions. Where the fit has labels, `obs` may be a
        label or a sequence of them (tuples for labels of several columns), and the actions are labels then; they are
        labels as well where their order was sorted from the data, so that no index of an action means anything. Labels
        that are whole numbers are labels, too: whole numbers are indices where no label is a number. Actions are drawn
        from the estimated policy, differently in every call unless `seed` is given, or are its most likely ones with
        `deterministic=True`. `state` and `episode_start` are passed through: behaviour is Markov. Probabilities are in
        `fit.policy`, by label in `fit.table("policy").loc["park"]`.
        """
        require_flag("deterministic", deterministic)
        rng = make_rng(seed)
        states, by_label = find_states(self.mdp, obs)
        require_going_on(self.mdp, states)
        rows = self.policy[states.reshape(-1)]
        actions = rows.argmax(axis=1) if deterministic else draw_actions(rows, rng)
        return named_actions(self.mdp, actions.reshape(states.shape), by_label), state

    def table(self, what: str = "policy") -> pd.DataFrame:
        """A row per state and a column per action under their labels; on a horizon rows are (time, state). Labels of
        several columns have a level of the index each, as in `fit.table("policy").loc[("c", 3)]`.

        `what` is "policy", "reward" (that of the reward model, whether an action is feasible or not; missing where it
        has no value), "q" (missing where an action is not feasible), "visits" (how often it was observed),
        "frequencies" (visits as shares of the state's; missing where it was never seen), or "value", which has one
        column.
        """
        return label_table(self, what)

    def simulate(
        self, n: int, length: int, seed: int | None = None, initial: Any = None, under: Any = None
    ) -> Demonstrations:
        """`n` trajectories of at most `length` decisions under the estimated policy.

        Starts come from `initial`, else from the MDP's start distribution, else from where the data started (else they
        are uniform over the states that are not terminal). With `under`, a counterfactual or its `.before` or
        `.after`, agents behave as they would there.
        """
        if under is not None:
            from revealed.counterfactual import behaviour_under

            return behaviour_under(under).simulate(n, length, seed, initial)
        starts = labelled(starts_of(self.mdp, initial, self.demonstrations).weights, self.mdp)
        return simulate(self.mdp, self.policy, n, length, seed, starts)

    def counterfactual(
        self,
        params: Any = None,
        mdp: MDP | None = None,
        reward: Any = None,
        bands: str | None = "auto",
        level: float = 0.95,
        initial: Any = None,
        **bootstrap: Any,
    ) -> Counterfactual:
        """What these agents would do if something changed: behaviour before and after, with bands.

        `params={"RC": 12.0}` or `{"RC": lambda rc: 1.2 * rc}`; `mdp=fit.mdp.replace(discount=0.9)` or another model;
        `reward=` another reward of the same parameters, or an array; any of them together. `bands` is "delta",
        "bootstrap" (then `reps`, `seed`, `jobs`), None, or "auto". More in `revealed.counterfactual`.
        """
        from revealed.counterfactual import counterfactual

        return counterfactual(self, params, mdp, reward, bands, level, initial, **bootstrap)

    def demand_curve(
        self,
        parameter: str,
        values: Any,
        action: Any,
        per: float = 1.0,
        bands: str | None = "auto",
        level: float = 0.95,
        initial: Any = None,
        **bootstrap: Any,
    ) -> DemandCurve:
        """How often `action` is taken per `per` decisions in the long run, against a parameter of the reward.

        `fit.demand_curve("RC", np.linspace(4, 14, 41), action="replace", per=12).plot()` draws Rust's picture. The
        parameter is set to each of `values` by hypothesis; the others carry the uncertainty of the estimate.
        """
        from revealed.demand import demand_curve

        return demand_curve(self, parameter, values, action, per, bands, level, initial, **bootstrap)
