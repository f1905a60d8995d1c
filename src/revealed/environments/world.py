"""What every world is: a model, features, the reward that is true, and an expert who pursues it.

A world answers the question that real data cannot: how close does a method come to the truth? The shocks of the soft
optimum have scale 1 (theory M2), so the size of the true reward decides how purposeful a soft expert is; each world's
`scale` multiplies it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from revealed.bellman import as_reward, solve
from revealed.chain import Chain
from revealed.checks import as_number, frozen, require_option, require_probability
from revealed.demonstrations import Demonstrations
from revealed.errors import InvalidInput, InvalidOption
from revealed.gates import require_instance
from revealed.hard_bellman import solve_hard
from revealed.mdp import MDP, Floats, require_mdp
from revealed.metrics import Scores, Truth, policy_of, policy_value
from revealed.rewards.base import Reward
from revealed.rewards.linear import LinearReward
from revealed.simulation import simulate
from revealed.voices import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EXPERTS = ("soft", "noisy", "optimal")
VISITS = "discounted visits"
SHOWN = ("reward", "value", "occupancy")


@dataclass(frozen=True, eq=False)
class World:
    """A decision problem whose answer is known.

    `mdp`; `features` (S, K) or (S, A, K), dense or sparse, with `feature_names`; `true_reward` (S, A), which is
    `features @ true_weights` where `true_weights` is given; `expert` (S, A), the policy of the demonstrations;
    `length`, the default number of decisions per demonstration.
    """

    name: str
    mdp: MDP
    features: Any = field(repr=False)
    true_reward: Floats = field(repr=False)
    expert: Floats = field(repr=False)
    feature_names: tuple[str, ...] | None = None
    true_weights: Floats | None = None
    length: int = 50

    def __post_init__(self) -> None:
        require_mdp(self.mdp)
        for name in ("true_reward", "expert"):
            array = getattr(self, name)
            require_instance(name, array, np.ndarray, "an (S, A) array")
            frozen(array)

    def demonstrate(self, n: int = 100, length: int | None = None, seed: int | None = None) -> Demonstrations:
        """`n` trajectories of the expert, each of at most `length` decisions and ended by a terminal state."""
        return simulate(self.mdp, self.expert, n, self.length if length is None else length, seed)

    def reward_model(self) -> Reward:
        """A reward to estimate that can represent the true one: here, linear in the features."""
        return LinearReward(self.features, names=self.feature_names)

    def evaluate(self, fit: Any, demos: Demonstrations | None = None, coverage: Any = None) -> Scores:
        """All metrics of a fit against this world's truth and expert; `demos` are the fit's own unless given.

        Where the world's model was estimated, a fit's policy is judged as it is in the exact one: it planned with the
        estimate and acts in reality.
        """
        if self._reality is self.mdp or not hasattr(fit, "log_policy"):
            return self.truth.evaluate(fit, demos, coverage)
        seen = getattr(fit, "demonstrations", None) if demos is None else demos
        planned = SimpleNamespace(policy=fit.policy, log_policy=fit.log_policy)
        return self.truth.evaluate(demos=seen, coverage=coverage, policy=planned, reward=fit.reward)

    @cached_property
    def truth(self) -> Truth:
        """What fits are judged against; its optimum is solved once."""
        return Truth(self._reality, self.true_reward, self.expert)

    def with_expert(self, kind: str = "soft", noise: float = 0.3) -> Self:
        """The same world with another expert: "soft", "noisy" or "optimal" (see `make_expert`)."""
        return replace(self, expert=make_expert(self._reality, self.true_reward, kind, noise))

    @property
    def _reality(self) -> MDP:
        """The model that experts know and fits are judged by."""
        return self.mdp

    def plot(
        self,
        values: Any = "reward",
        policy: Any = "expert",
        ax: Axes | None = None,
        title: str | None = None,
        **style: Any,
    ) -> Figure:
        """A picture over the states: `world.plot()`, or `world.plot(fit)`.

        `values` is "reward" (the true one), "value" (the expected return of the policy under the true reward),
        "occupancy" (its expected discounted visits), a fit, or an array (S,), (S, 1) or (S, A), of which the mean over
        actions is shown. `policy` is "expert" (a fit is shown with its own), None, an (S, A) array, a fit or a
        solution. Draws on `ax` if there is one, else on a figure of its own, and returns the figure. `label` names
        the values; the rest of `style` goes to the function of `revealed.plots` that draws this kind of world.
        """
        from matplotlib.figure import Figure

        if hasattr(values, "reward") and hasattr(values, "policy"):
            values, policy = values.reward, values.policy if isinstance(policy, str) else policy
        if ax is not None and not hasattr(ax, "get_figure"):
            raise InvalidInput("ax", "matplotlib axes", type(ax).__name__)
        chosen = self._policy(policy)
        shown, label = self._shown(values, chosen)
        figure = Figure(figsize=self._figsize, layout="constrained") if ax is None else ax.get_figure(root=True)
        if figure is None:
            raise InvalidInput("ax", "axes on a figure", "axes without a figure")
        style = {"label": label} | ({"log": True} if label == VISITS and self._log_visits else {}) | style
        style = {"title": self.name if title is None else title} | style
        self._draw(figure.subplots() if ax is None else ax, shown, chosen, **style)
        return figure

    # whether visits are drawn on a logarithmic scale: on a map most would be black beside the goal
    _log_visits = False

    @property
    def _figsize(self) -> tuple[float, float]:
        return (5.4, 3.4)

    def _policy(self, policy: Any) -> Floats | None:
        if policy is None:
            return None
        if isinstance(policy, str):
            if policy != "expert":
                raise InvalidOption("policy", '"expert", None, or an (S, A) array', shown(policy))
            return self.expert
        return policy_of(self.mdp, policy)

    def _shown(self, values: Any, policy: Floats | None) -> tuple[Floats, str]:
        """(S,) what the colours or heights stand for, and its name."""
        if not isinstance(values, str):
            return self._per_state(values), self._reward_label("reward", values) if np.ndim(values) == 2 else ""
        if values not in SHOWN:
            raise InvalidOption("values", f"one of {', '.join(SHOWN)}, or an array", shown(values))
        behaviour = self.expert if policy is None else policy
        if values == "reward":
            return self._per_state(self.true_reward), self._reward_label("true reward", self.true_reward)
        if values == "value":
            value = policy_value(self.mdp, self.true_reward, behaviour)
            return np.where(self.mdp.terminal, np.nan, value), "expected return"
        return Chain(self.mdp, behaviour).occupancy(self.mdp.start()), VISITS

    def _reward_label(self, name: str, table: Any) -> str:
        """That a mean over actions is shown is said where it makes a difference."""
        reward = as_reward(self.mdp, table, "values")
        low = np.where(self.mdp.feasible, reward, np.inf).min(axis=1)
        high = np.where(self.mdp.feasible, reward, -np.inf).max(axis=1)
        return f"{name}, mean over actions" if bool((high > low).any()) else name

    def _per_state(self, table: Any) -> Floats:
        """The mean over feasible actions; terminal states, where nothing is earned, are left blank."""
        reward = as_reward(self.mdp, table, "values")
        mean = np.sum(reward * self.mdp.uniform_policy(), axis=1)
        return np.where(self.mdp.terminal, np.nan, mean)

    def _draw(self, ax: Axes, values: Floats, policy: Floats | None, **style: Any) -> None:
        from revealed.plots import plot_states

        style = {"actions": self.mdp.action_labels, "names": self.mdp.state_labels} | style
        plot_states(ax, values, policy, **style)


@dataclass(frozen=True, eq=False, kw_only=True)
class GridWorld(World):
    """A world whose states are cells: state = row · columns + column, `shape` = (rows, columns)."""

    shape: tuple[int, int]

    @property
    def _figsize(self) -> tuple[float, float]:
        from revealed.plots import WIDE

        rows, columns = self.shape
        if columns > WIDE * rows:  # the colour bar lies below
            return (6.4, float(max(2.2, 6.0 * rows / columns + 1.5)))
        height = float(np.clip(4.4 * rows / columns, 1.6, 7.0))
        return (float(np.clip(height * columns / rows, 1.6, 6.4) + 1.5), height + 0.8)

    _log_visits = True

    def _draw(self, ax: Axes, values: Floats, policy: Floats | None, **style: Any) -> None:
        from revealed.plots import plot_grid

        cells = self.shape[0] * self.shape[1]  # a terminal state that stands for "ended" has no cell
        shown = None if policy is None else policy[:cells]
        style.setdefault("actions", self.mdp.action_labels)
        plot_grid(ax, values[:cells], self.shape, shown, **style)


def make_expert(mdp: MDP, reward: Floats, kind: str = "soft", noise: float = 0.3) -> Floats:
    """The policy (S, A) of an expert who knows `reward`.

    "soft" is optimal in the soft sense (theory V3); "optimal" takes a best action, ties split evenly; "noisy" does so
    but with probability `noise` takes a feasible action at random.
    """
    require_option("expert", kind, EXPERTS)
    require_probability("noise", noise)
    if kind == "soft":
        return solve(mdp, reward).policy
    best = solve_hard(mdp, reward).policy
    return best if kind == "optimal" else (1.0 - noise) * best + noise * mdp.uniform_policy()


def check_scale(scale: Any) -> float:
    if not 0.0 < as_number(scale) < np.inf:
        raise InvalidInput("scale", "a number above 0, the scale of the true reward", shown(scale))
    return float(scale)
