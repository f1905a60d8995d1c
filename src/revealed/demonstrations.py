"""What was observed: decisions counted per agent, start states, and the moves (s, a, s') that were seen.

The estimators need only counts. Where trajectories were given, the single steps are kept too, so that visits can be
discounted by γ^t and decisions lifted to an unrolled horizon.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import as_floats, as_list, as_number, require_count
from revealed.errors import InvalidDemonstrations
from revealed.mdp import MDP, Floats
from revealed.panels import Ints, Panel, read_panel, write_panel
from revealed.trajectories import Steps, as_pair, one_each, steps_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Demonstrations:
    """Observed decisions. Build one with `from_trajectories`, `from_frame` or `from_counts`.

    `counts` (S, A) visits; `by_agent` sparse (N, S*A); `starts` (S,) start states; `transition_counts` sparse
    (S*A, S) moves seen; `weights` (S, A) what enters the objective as ρ: the counts, or visits discounted by γ^t.
    """

    n_states: int
    n_actions: int
    by_agent: sp.csr_array = field(repr=False)
    starts: Floats = field(repr=False)
    transition_counts: sp.csr_array = field(repr=False)
    ids: tuple[Any, ...] = field(repr=False)
    steps: Steps | None = field(repr=False, default=None)
    visit_discount: float = field(repr=False, default=1.0)
    state_labels: tuple[Any, ...] | None = field(repr=False, default=None)
    action_labels: tuple[Any, ...] | None = field(repr=False, default=None)
    agent_weights: Floats | None = field(repr=False, default=None)

    @cached_property
    def counts(self) -> Floats:
        """(S, A): how often each action was taken in each state."""
        return _sum_rows(self.by_agent).reshape(self.n_states, self.n_actions)

    @cached_property
    def weights(self) -> Floats:
        """(S, A): ρ of the sample objective (theory O2); the counts unless visits were discounted."""
        return _sum_rows(self.weights_by_agent).reshape(self.n_states, self.n_actions)

    @cached_property
    def weights_by_agent(self) -> sp.csr_array:
        """Sparse (N, S*A): each agent's part of `weights`."""
        if self.visit_discount == 1.0:
            return self.by_agent
        steps = self._require_steps("Visits can be discounted")
        weight = self.step_weights * np.float64(self.visit_discount) ** steps.time
        return _agent_table(steps, weight, self.n_agents, self.n_states, self.n_actions)

    @property
    def n_agents(self) -> int:
        return int(self.by_agent.shape[0])

    @property
    def n_decisions(self) -> float:
        """The number of decisions (counts may be fractional if they were given so)."""
        return float(self.counts.sum())

    def __repr__(self) -> str:
        seen = int((self.counts.sum(axis=1) > 0).sum())
        return (
            f"Demonstrations({self.n_decisions:g} decisions by {self.n_agents} agents, "
            f"{seen} of {self.n_states} states seen, {self.n_actions} actions)"
        )

    @classmethod
    def from_trajectories(
        cls,
        trajectories: Iterable[tuple[Any, Any]],
        n_states: int,
        n_actions: int,
        ids: Sequence[Any] | None = None,
        next_state: Sequence[Any] | None = None,
    ) -> Demonstrations:
        """From (states, actions) pairs of any lengths; `states` may hold one more entry than `actions`.

        `ids` names the agent of each trajectory (the same agent may have several; by default each has its own).
        `next_state` gives, per trajectory, where its last decision led, or one next state for every decision.
        """
        n_states, n_actions = _size("n_states", n_states), _size("n_actions", n_actions)
        pairs = [as_pair(i, t, n_states, n_actions) for i, t in enumerate(as_list(trajectories) or ())]
        if not pairs:
            raise InvalidDemonstrations(
                "trajectories", "at least one trajectory, a (states, actions) pair", repr(trajectories)[:60]
            )
        names = one_each("ids", range(len(pairs)) if ids is None else ids, len(pairs))
        after = one_each("next_state", [None] * len(pairs) if next_state is None else next_state, len(pairs))
        if not all(isinstance(name, Hashable) for name in names):
            raise InvalidDemonstrations("ids", "names or numbers", repr(names[:3]))
        code = {name: k for k, name in enumerate(dict.fromkeys(names))}
        rows = [steps_of(i, code[names[i]], *pairs[i], after[i], n_states) for i in range(len(pairs))]
        steps = Steps(*(np.concatenate([getattr(r, f) for r in rows]) for f in Steps.__dataclass_fields__))
        if steps.state.size == 0:
            raise InvalidDemonstrations("trajectories", "at least one decision", "trajectories without actions")
        starts = np.bincount([s[0] for s, _ in pairs if len(s)], minlength=n_states).astype(np.float64)
        return cls._from_steps(steps, starts, n_states, n_actions, tuple(code))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        id: str,
        time: str,
        state: str,
        action: str,
        next_state: str | None = None,
        states: Any = None,
        actions: Any = None,
        n_states: int | None = None,
        n_actions: int | None = None,
        first_time: int | None = None,
    ) -> Demonstrations:
        """From a data frame, or the path of a CSV or Parquet file, with one row per decision in any order.

        Parameters
        ----------
        id, time, state, action : names of columns; `next_state` too, where there is one.
        states, actions : labels in the order of the model. Without them whole numbers are indices from 0 and text
            becomes sorted labels. An MDP with `state_labels` and `action_labels` matches labels by name.
        n_states, n_actions : sizes, where the columns do not show all; by default what they hold.
        first_time : the time that counts as 0 on a finite horizon; by default each agent's own first.

        Times that are whole numbers and skip a period break the trajectory there.
        """
        panel = read_panel(
            frame,
            id=id,
            time=time,
            state=state,
            action=action,
            next_state=next_state,
            states=states,
            actions=actions,
            first_time=first_time,
        )
        most = max(int(panel.state.max()), int(panel.next_state.max())) + 1
        n_states = _at_least("state", n_states, len(panel.state_labels or ()) or most, most)
        most = int(panel.action.max()) + 1
        n_actions = _at_least("action", n_actions, len(panel.action_labels or ()) or most, most)
        demos = cls._from_panel(panel, n_states, n_actions)
        return replace(demos, state_labels=panel.state_labels, action_labels=panel.action_labels)

    @classmethod
    def from_counts(cls, counts: Any, starts: Any = None) -> Demonstrations:
        """From an (S, A) table of visits, as one agent. `starts` (S,) is needed only for occupancy weighting."""
        table = as_floats(counts)
        if table is None:
            raise InvalidDemonstrations("counts", "an (S, A) array of counts", type(counts).__name__)
        if table.ndim != 2 or 0 in table.shape:
            raise InvalidDemonstrations("counts", "an (S, A) array of counts", f"shape {table.shape}")
        bad = ~np.isfinite(table) | (table < 0)
        if bad.any():
            s, a = (int(i) for i in np.argwhere(bad)[0])
            raise InvalidDemonstrations("counts", "finite counts >= 0", table[s, a], f"state {s}, action {a}")
        if table.sum() == 0:
            raise InvalidDemonstrations("counts", "at least one decision", "all zero")
        n_states, n_actions = table.shape
        first = as_floats(np.zeros(n_states) if starts is None else starts)
        if first is None or first.shape != (n_states,) or not np.isfinite(first).all() or (first < 0).any():
            raise InvalidDemonstrations("starts", f"{n_states} counts >= 0", repr(starts)[:60])
        none_seen = sp.csr_array((n_states * n_actions, n_states), dtype=np.float64)
        return cls(n_states, n_actions, sp.csr_array(table.reshape(1, -1)), first, none_seen, (0,))

    @classmethod
    def _from_panel(cls, panel: Panel, n_states: int, n_actions: int) -> Demonstrations:
        steps = Steps(panel.agent, panel.time, panel.state, panel.action, panel.next_state, panel.starts_here)
        starts = np.bincount(panel.state[panel.starts_here], minlength=n_states).astype(np.float64)
        return cls._from_steps(steps, starts, n_states, n_actions, panel.ids)

    @classmethod
    def _from_steps(
        cls, steps: Steps, starts: Floats, n_states: int, n_actions: int, ids: tuple[Any, ...]
    ) -> Demonstrations:
        ones = np.ones(steps.state.size)
        seen = steps.next_state >= 0
        pair = steps.state * n_actions + steps.action
        moves = sparse_table(ones[seen], pair[seen], steps.next_state[seen], (n_states * n_actions, n_states))
        by_agent = _agent_table(steps, ones, len(ids), n_states, n_actions)
        return cls(n_states, n_actions, by_agent, starts, moves, ids, steps)

    def subset(self, agents: Any) -> Demonstrations:
        """Some of the agents, in the order given: indices as in `demos.subset(range(100))`, a mask, or a slice."""
        steps = self._require_steps("Agents can be picked")
        chosen = _as_agents(agents, self.n_agents)
        place = np.full(self.n_agents, -1)
        place[chosen] = np.arange(chosen.size)
        kept = place[steps.agent] >= 0
        part = Steps(*(getattr(steps, f)[kept] for f in Steps.__dataclass_fields__))
        if part.state.size == 0:
            raise InvalidDemonstrations("agents", "at least one with a decision", "none")
        part = replace(part, agent=place[part.agent])
        starts = np.bincount(part.state[part.first], minlength=self.n_states).astype(np.float64)
        ids = tuple(self.ids[i] for i in chosen)
        other = self._from_steps(part, starts, self.n_states, self.n_actions, ids)
        labels = {"state_labels": self.state_labels, "action_labels": self.action_labels}
        other = replace(other, visit_discount=self.visit_discount, **labels)
        return other if self.agent_weights is None else other.reweighted(self.agent_weights[chosen])

    def to_frame(
        self,
        id: str = "id",
        time: str = "time",
        state: str = "state",
        action: str = "action",
        next_state: str | None = None,
    ) -> pd.DataFrame:
        """One row per decision, in columns of these names, as `from_frame` reads them; labels where there are any.

        With `next_state` there is a column for where each decision led, missing where that was not seen. Times count
        each agent's periods from 0; of several trajectories of one agent each begins after a gap in time.
        """
        steps = self._require_steps("A frame can be made")
        names = {"agent": id, "time": time, "state": state, "action": action, "next_state": next_state}
        return write_panel(steps, names, self.ids, self.state_labels, self.action_labels)

    def reweighted(self, weights: Floats) -> Demonstrations:
        """The same decisions with agent i counted `weights[i]` times, as a bootstrap does (0 leaves it out).

        Moves and single steps stay as they are: they tell what happened, not how often it counts.
        """
        w = as_floats(weights)
        if w is None or w.shape != (self.n_agents,) or not np.isfinite(w).all() or (w < 0).any():
            raise InvalidDemonstrations("weights", f"{self.n_agents} numbers >= 0, one per agent", repr(weights)[:60])
        by_agent = sp.csr_array(sp.diags_array(w) @ self.by_agent)
        w = w if self.agent_weights is None else w * self.agent_weights
        return replace(self, by_agent=by_agent, starts=self._starts_with(w), agent_weights=w)

    def _starts_with(self, agent_weights: Floats) -> Floats:
        """Starts if agent i counted so many times in all; those without a decision belong to nobody and stay."""
        if self.steps is None:
            return self.starts * agent_weights[0]
        first = self.steps.first
        state, agent = self.steps.state[first], self.steps.agent[first]
        change = agent_weights[agent] - self.step_weights[first]
        return self.starts + np.bincount(state, weights=change, minlength=self.n_states)

    @property
    def step_weights(self) -> Floats:
        """How often each of the `steps` counts: once, but for agents that were given weights."""
        steps = self._require_steps("Single steps count")
        return np.ones(steps.agent.size) if self.agent_weights is None else self.agent_weights[steps.agent]

    def discount_visits(self, gamma: float) -> Demonstrations:
        """The same decisions with weights γ^t in the objective (the paper's appendix); `counts` stay as they are."""
        if not 0.0 <= as_number(gamma) <= 1.0:
            raise InvalidDemonstrations("gamma", "a number in [0, 1]", repr(gamma))
        self._require_steps("Visits can be discounted")
        return replace(self, visit_discount=float(gamma))

    def lift(self, mdp: MDP) -> Demonstrations:
        """Decisions of the base MDP as decisions of the unrolled `mdp`: state s at time t becomes t·S + s."""
        if mdp.base is None or self.n_states == mdp.n_states:
            return self
        if self.n_states != mdp.base.n_states:
            raise InvalidDemonstrations(
                "demonstrations",
                f"{mdp.base.n_states} states, as the MDP has before unrolling",
                f"{self.n_states}",
                remedy="Pass n_states= when building the demonstrations.",
            )
        steps = self._require_steps("Decisions can be lifted to a horizon")
        horizon = int(mdp.horizon or 0)
        if steps.time.max() >= horizon:
            late = int(steps.time.argmax())
            raise InvalidDemonstrations(
                "demonstrations",
                f"at most {horizon} decisions per trajectory (the horizon)",
                f"a decision at time {steps.time[late]}",
                f"agent {self.ids[steps.agent[late]]!r}",
                f"Use mdp.base.unroll({int(steps.time.max()) + 1}) or shorter trajectories.",
            )
        following = np.where(steps.next_state >= 0, (steps.time + 1) * self.n_states + steps.next_state, -1)
        lifted = replace(steps, state=steps.time * self.n_states + steps.state, next_state=following)
        starts = self._lifted_starts(lifted, mdp.n_states)
        other = self._from_steps(lifted, starts, mdp.n_states, self.n_actions, self.ids)
        other = replace(other, visit_discount=self.visit_discount)
        return other if self.agent_weights is None else other.reweighted(self.agent_weights)

    def _lifted_starts(self, lifted: Steps, n_states: int) -> Floats:
        """Starts at time 0, but for trajectories that begin later (after a gap in time)."""
        late = lifted.first & (lifted.time > 0)
        starts = np.bincount(lifted.state[late], minlength=n_states).astype(np.float64)
        later = np.bincount(lifted.state[late] % self.n_states, minlength=self.n_states)
        starts[: self.n_states] += self._starts_with(np.ones(self.n_agents)) - later
        return starts

    def _require_steps(self, what: str) -> Steps:
        if self.steps is None:
            raise InvalidDemonstrations(
                "demonstrations", "trajectories", "plain counts", remedy=f"{what} only where the times are known."
            )
        return self.steps


def _as_agents(agents: Any, n: int) -> Ints:
    try:
        chosen = np.arange(n)[agents if isinstance(agents, slice) else np.asarray(agents)]
    except (IndexError, TypeError, ValueError):
        chosen = np.arange(n).reshape(1, n)
    if chosen.ndim != 1 or np.unique(chosen).size != chosen.size:
        expected = f"indices, a mask or a slice of {n} agents, none twice"
        raise InvalidDemonstrations("agents", expected, repr(agents)[:60])
    return chosen


def _sum_rows(table: sp.csr_array) -> Floats:
    return np.asarray(table.sum(axis=0), dtype=np.float64).reshape(-1)


def sparse_table(data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> sp.csr_array:
    return sp.csr_array(sp.coo_array((data, (rows, columns)), shape=shape))


def _agent_table(steps: Steps, weight: Floats, n_agents: int, n_states: int, n_actions: int) -> sp.csr_array:
    return sparse_table(weight, steps.agent, steps.state * n_actions + steps.action, (n_agents, n_states * n_actions))


def _size(name: str, value: Any) -> int:
    require_count(name, value, error=InvalidDemonstrations)
    return int(value)


def _at_least(role: str, given: int | None, default: int, needed: int) -> int:
    if given is None:
        return default
    if _size(f"n_{role}s", given) < needed:
        raise InvalidDemonstrations(f"n_{role}s", f"at least {needed}, which the {role} column needs", given)
    return given
