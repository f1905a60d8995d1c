"""What the chapters of a fit's report share: what they read off the fit, and how labels and numbers are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats
from revealed.files import render_png
from revealed.fit_report.places import Places
from revealed.goodness import ChoiceFit
from revealed.labels import spell
from revealed.page import Html, figure
from revealed.sheet import clean, ratio, typeset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from revealed.fit import AnyFit
    from revealed.routes.network import RoadNetwork
    from revealed.sheet import Sheet

LONGEST = 80  # characters of a label in a table


@dataclass(frozen=True, eq=False)
class Material:
    """A fit and what several chapters read off it, each once."""

    fit: AnyFit
    places: Places | None = field(repr=False, default=None)
    network: RoadNetwork | None = field(repr=False, default=None)

    @cached_property
    def choices(self) -> ChoiceFit:
        return self.fit._choices

    @cached_property
    def state_labels(self) -> tuple[Any, ...]:
        """Those of the fit; numbers on a horizon are told as (period, state)."""
        mdp = self.fit.mdp
        if mdp.base is None or mdp.state_labels is not None:
            return self.fit.state_labels
        return tuple(divmod(k, mdp.base.n_states) for k in range(mdp.n_states))

    @cached_property
    def action_labels(self) -> tuple[Any, ...]:
        return self.fit.action_labels

    @cached_property
    def linear(self) -> bool:
        """Whether parameters are weights of something, and mean something one by one."""
        return bool(getattr(self.fit.reward_model, "linear", False))

    @cached_property
    def sheet(self) -> Sheet:
        return self.fit.summary()._sheet()

    @cached_property
    def depends_on_action(self) -> bool:
        """Whether two actions of one state earn differently."""
        reward, offered = self.fit.reward, self.fit.mdp.feasible
        low = np.where(offered, reward, np.inf).min(axis=1)
        high = np.where(offered, reward, -np.inf).max(axis=1)
        return bool((high - low > 1e-9 * np.abs(reward[offered]).max(initial=0.0)).any())

    @cached_property
    def mean_reward(self) -> tuple[Floats, str]:
        """(S,): the reward of a state, the mean over the actions that it offers, and its name; NaN in terminal ones."""
        mdp = self.fit.mdp
        total = np.where(mdp.feasible, self.fit.reward, 0.0).sum(axis=1)
        mean = total / np.maximum(mdp.feasible.sum(axis=1), 1)
        name = "reward, mean over actions" if self.depends_on_action else "reward"
        return np.where(mdp.terminal, np.nan, mean), name

    @cached_property
    def value(self) -> Floats:
        """(S,): V, NaN where nobody acts."""
        return np.where(self.fit.mdp.terminal, np.nan, self.fit.value)

    def state(self, s: int) -> str:
        return show(self.state_labels[s])

    def action(self, a: int) -> str:
        return show(self.action_labels[a])

    @cached_property
    def by_target(self) -> bool:
        """Whether actions are told by where they lead: those of trips that have no names, as turns have none."""
        mdp = self.fit.mdp
        return self.fit.demonstrations.goals is not None and mdp.action_labels is None and mdp.certain

    def choice(self, s: int, a: int) -> str:
        """What is chosen: the action, or where it leads."""
        return f"to {self.state(int(self.fit.mdp.targets[s, a]))}" if self.by_target else self.action(a)

    @property
    def what(self) -> str:
        """What a state is called."""
        return "state" if self.network is None else "link"


# words and numbers


def picture(drawn: Figure, caption: str, alt: str) -> Html:
    return figure(render_png(drawn), drawn.get_figwidth(), caption, alt)


def show(label: Any) -> str:
    """A label in a table: one line, cut where it would be a page."""
    text = clean(spell(label))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def sentence(text: str) -> str:
    """With a capital at its head and a stop at its end."""
    text = clean(text)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def amount(value: float) -> str:
    """A count; with decimals where decisions carry weights."""
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"


def decimal(value: float) -> str:
    rounded = typeset(f"{value + 0.0:.2f}")
    return "0.00" if rounded == "−0.00" else rounded


def z_text(value: float) -> str:
    return "–" if np.isnan(value) else "∞" if value == np.inf else "−∞" if value == -np.inf else typeset(ratio(value))
