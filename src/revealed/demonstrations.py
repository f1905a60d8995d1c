"""What was observed: decisions counted per agent, start states, and the moves (s, a, s') that were seen.

The estimators need only counts. Where trajectories were given, the single steps are kept too, so that visits can be
discounted by γ^t and decisions lifted to an unrolled horizon. Trips that go somewhere carry their goals.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from revealed.checks import (
    Bools,
    as_list,
    as_number,
    frozen,
    is_mapping,
    remedy_for,
    require_count,
    require_vector,
    shape_of,
)
from revealed.errors import InvalidDemonstrations, InvalidInput
from revealed.gates import require_instance, within_memory
from revealed.goal_steps import Trips, n_goals, require_arrival
from revealed.labels import Order, how_many, is_derived, with_columns
from revealed.mdp import MDP, Floats, require_mdp
from revealed.model_checks import as_labels
from revealed.naming import from_one, rows_of, unrolled_labels, weights_by_name
from revealed.positions import LabelledArray, by_id, labelled, names_in
from revealed.sparse_input import require_structure
from revealed.tables import as_counts, require_countable, sparse_table, sum_rows
from revealed.trajectories import (
    Coded,
    Steps,
    agent_table,
    as_agents,
    as_goals,
    code_labels,
    lifted,
    read_trajectories,
    refuse_tables,
)
from revealed.voices import Written, arg, either, shown

if TYPE_CHECKING:
    import pandas as pd

    from revealed.bins import Bins


@dataclass(frozen=True, eq=False)
class Demonstrations(Trips):
    """Observed decisions. Build one with `from_frame`, `from_trajectories`, `from_episodes` or `from_counts`.

    `counts` (S, A) visits; `by_agent` sparse (N, S*A); `starts` (S,) start states; `transition_counts` sparse
    (S*A, S) moves seen; `weights` (S, A) what enters the objective as ρ: the counts, or visits discounted by γ^t.
    `steps` are the single decisions, None where a panel was only counted, or counts were given; `notes` say what a
    frame left open (gaps, ids with one period); `bins` made the states of continuous columns; `columns` are those that
    were kept, with one value per agent; `period` is that of times which are dates. Of trips with goals `goals` are the
    states they go to (`goal_states`, their indices), and `toward(goal)` those that go there. Where there are labels,
    `counts`, `weights` and `starts` know them.
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
    starts_by_agent: sp.csr_array | None = field(repr=False, default=None)
    notes: tuple[str, ...] = field(repr=False, default=())
    bins: Bins | None = field(repr=False, default=None)
    columns: dict[str, tuple[Any, ...]] = field(repr=False, default_factory=dict)
    period: str | None = field(repr=False, default=None)
    numbered: tuple[str, ...] = field(repr=False, default=())  # roles of columns of whole numbers, which may be labels

    def __post_init__(self) -> None:
        made_by = "Use from_frame, from_trajectories, from_episodes or from_counts."
        require_instance("by_agent", self.by_agent, sp.csr_array, "a sparse array (N, S*A)", made_by)
        require_instance("starts", self.starts, np.ndarray, "an array (S,)", made_by)
        require_instance("ids", self.ids, tuple, "a tuple of the agents' names", made_by)
        for name in ("n_states", "n_actions"):
            require_count(name, getattr(self, name), error=InvalidDemonstrations)
        pairs, agents = int(self.n_states) * int(self.n_actions), len(self.ids)
        shapes = {"by_agent": (agents, pairs), "starts": (self.n_states,), "transition_counts": (pairs, self.n_states)}
        for name, shape in shapes.items():
            if shape_of(getattr(self, name)) != shape:
                got = f"shape {shape_of(getattr(self, name))}"
                raise InvalidDemonstrations(name, f"shape {shape}", got, remedy=made_by)
        require_countable("counts", self.by_agent.data)
        require_countable("starts", self.starts)
        object.__setattr__(self, "starts", frozen(labelled(np.asarray(self.starts).view(), self)))
        for name in ("by_agent", "transition_counts", "starts_by_agent"):
            table = getattr(self, name)
            if isinstance(table, sp.csr_array):
                require_structure(name, table, InvalidDemonstrations)
            frozen(table)

    @cached_property
    def counts(self) -> Floats:
        """(S, A): how often each action was taken in each state."""
        return frozen(labelled(sum_rows(self.by_agent).reshape(self.n_states, self.n_actions), self))

    @cached_property
    def weights(self) -> Floats:
        """(S, A): ρ of the sample objective (theory O2); the counts unless visits were discounted."""
        return frozen(labelled(sum_rows(self.weights_by_agent).reshape(self.n_states, self.n_actions), self))

    @cached_property
    def weights_by_agent(self) -> sp.csr_array:
        """Sparse (N, S*A): each agent's part of `weights`."""
        if self.visit_discount == 1.0:
            return self.by_agent
        steps = self._require_steps("discount_visits")
        weight = self.step_weights * np.float64(self.visit_discount) ** steps.time
        return agent_table(steps, weight, self.n_agents, self.n_states, self.n_actions)

    @property
    def n_agents(self) -> int:
        return int(self.by_agent.shape[0])

    @property
    def n_decisions(self) -> float:
        """The number of decisions (counts may be fractional if they were given so)."""
        return float(self.counts.sum())

    def __repr__(self) -> str:
        seen = int((self.counts.sum(axis=1) > 0).sum())
        toward = "" if self.goal_states is None else f" toward {n_goals(self.goal_states)}"
        return (
            f"Demonstrations({self.n_decisions:.12g} decisions by {how_many(self.n_agents, 'agent')}{toward}, "
            f"{seen} of {self.n_states} states seen, {self.n_actions} actions)"
        )

    @classmethod
    @within_memory("trajectories", "n_states", "n_actions")
    def from_trajectories(
        cls,
        trajectories: Iterable[Any],
        n_states: int | None = None,
        n_actions: int | None = None,
        ids: Sequence[Any] | None = None,
        next_state: Sequence[Any] | None = None,
        goal: Any = None,
        *,
        states: Any = None,
        actions: Any = None,
    ) -> Demonstrations:
        """From (states, actions) pairs of any lengths; `states` may hold one more entry than `actions`. Lists of
        (state, action) steps are accepted as well, if they cannot be mistaken for such pairs.

        `ids` names the agent of each trajectory (the same agent may have several; by default each has its own).
        `next_state` gives, per trajectory, where its last decision led, or one next state for every decision.
        `goal` is the state that each trajectory is heading for, or one for all; a trajectory without a decision is then
        not a trip. Episodes of other libraries are read by `from_episodes`.

        Where `n_states` (or `n_actions`) is given, states (or actions) are indices. Otherwise text is read as labels,
        as in `from_frame`: `states` and `actions` list them in the order of the model; without a list they are sorted.
        Whole numbers are labels where such a list is given, and tuples are labels of several parts. Labels of
        `next_state` and `goal` are those of states.
        """
        from revealed.episodes import is_foreign

        written = None if is_foreign(trajectories) else as_list(trajectories)
        refuse_tables(trajectories, written)
        known, sizes = {"state": states, "action": actions}, {"state": n_states, "action": n_actions}
        from revealed.panels.columns import note_labels

        coded = None if written is None else code_labels(written, known, sizes, next_state, goal)
        if coded is None:
            given: Any = trajectories if written is None else written
            if is_foreign(given):
                return cls.from_episodes(given, n_states=n_states, n_actions=n_actions, ids=ids, goal=goal)
            coded = Coded(given, sizes, {}, next_state, goal)
        S, A = coded.sizes["state"], coded.sizes["action"]
        labels = coded.names.get("state_labels")
        read = read_trajectories(coded.pairs, S, A, ids, coded.next_state, coded.goal, labels=labels)
        require_arrival(read.steps, read.ids, labels)
        made = cls._from_steps(read.steps, read.starts, int(S or 0), int(A or 0), read.ids)
        notes = note_labels({name.removesuffix("_labels"): some for name, some in coded.names.items()})
        return replace(made, notes=notes, **coded.names)

    @classmethod
    def from_episodes(
        cls,
        episodes: Any,
        mdp: MDP | None = None,
        *,
        state_of: Callable[[Any], Any] | None = None,
        action_of: Callable[[Any], Any] | None = None,
        n_states: int | None = None,
        n_actions: int | None = None,
        ids: Sequence[Any] | None = None,
        goal: Any = None,
    ) -> Demonstrations:
        """From a Minari data set, imitation's trajectories or transitions, `rv.environments.rollout`, or lists of
        steps (obs, action, reward, terminated, truncated, info) as loops write them, obs being what the agent saw.

        Parameters
        ----------
        mdp : the model, which gives sizes, labels and terminal states. An episode that terminated in a state that is
            not terminal in the model led to the terminal state that `MDP.from_gymnasium` appends. Truncated episodes
            just stop.
        state_of : a function from one observation to its state (an index, or a label of the model), called once per
            observation. Without it whole numbers, also as floats or in arrays of one element, one-hot vectors, labels
            of the model and dicts with one such entry are states.
        action_of : the same for actions.
        n_states, n_actions : sizes, where there is no model; by default what the data hold.
        ids : names of the episodes' agents; by default each episode has its own.
        goal : the state that each episode is heading for, an index or a label of the model, or one for all.
        """
        from revealed.episodes import read_episodes

        read = read_episodes(episodes, mdp, n_states, n_actions, state_of, action_of)
        ids = read.ids if ids is None else ids
        model, S, A = None if mdp is None else mdp.base or mdp, read.n_states, read.n_actions
        names = {n: getattr(model, n, None) for n in ("state_labels", "action_labels")}
        if goal is not None:
            goal = as_goals(goal, len(read.pairs), S, names["state_labels"], "episode")
        written = read_trajectories(read.pairs, S, A, ids, read.after, goal, read.goes_on, names["state_labels"])
        require_arrival(written.steps, written.ids, names["state_labels"])
        demos = cls._from_steps(written.steps, written.starts, S, A, written.ids)
        return replace(demos, notes=read.notes, **names)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        id: str,
        time: str,
        state: Any,
        action: Any,
        next_state: Any = None,
        goal: Any = None,
        weight: str | None = None,
        states: Any = None,
        actions: Any = None,
        n_states: int | None = None,
        n_actions: int | None = None,
        first_time: Any = None,
        period: str | None = None,
        gaps: str = "break",
        keep_steps: bool | None = None,
        keep: Any = (),
        episode: str | None = None,
    ) -> Demonstrations:
        """From a data frame or files, with one row per decision in any order.

        Parameters
        ----------
        frame : what narwhals accepts (pandas, Polars, Arrow, Dask, …), a relation of DuckDB, or the path of a CSV or
            Parquet file, a glob, a folder of Parquet files, a list of paths.
        id, time, state, action : names of columns. `state` and `action` may be lists of names, whose labels are
            tuples; `state` may be what `rv.discretize` made of continuous columns.
        next_state : the column (or as many as `state` has) of the state that each decision led to, missing where that
            was not observed. It must agree with the next row.
        goal : the state that a trip is heading for, a column (or as many as `state` has) that is constant along a trip
            and has the same labels as `state`. The trip ends on entering it.
        weight : the column of row weights (how often a row counts).
        states, actions : labels in the order of the model. Without them whole numbers are indices from 0 and text
            becomes sorted labels. An MDP with `state_labels` and `action_labels` matches labels by name; arrays and
            models without labels need an order that was declared here, not one that was sorted.
        n_states, n_actions : sizes, where the columns do not show all; by default what they hold.
        first_time : which time is period 0 of a finite horizon: one for all, such as 18 or "2020-01", where times are
            ages or dates; or "own", if every id starts at period 0 with its first row. Required, here or in `lift`, if
            ids enter at different times.
        period : "day", "month", …: the length of a period where times are dates, so that gaps are seen.
        gaps : "break" if a period without a row only hides where the previous decision led (counted in `notes`), or
            "error". The row after a gap is not a start.
        keep_steps : whether to keep single decisions, which horizons, goals and `subset` need, or only counts. By
            default files and lazy frames of more than 5 million rows, and frames of distributed engines, are counted
            where they are, and only the counts come into memory.
        keep : more columns to read, with one value per id, by which errors can be clustered later: `keep="village"`,
            then `fit.with_errors("cluster", by="village")`.
        episode : a column that distinguishes the episodes of one id, if it has several. Each has its own times and
            start; without it the first row of an id is its only start.
        """
        from revealed.panels.columns import Roles, note_ghost, note_labels, size_of
        from revealed.panels.where import read_frame

        others = {"id": id, "time": time, "weight": weight, "period": period, "gaps": gaps, "episode": episode}
        roles = Roles.of(state, action, next_state, goal, keep, **others)
        found = read_frame(frame, roles, states, actions, first_time, keep_steps)
        made = cls._from_panel if hasattr(found, "row") else cls._from_counted

        def has_zero(role: str) -> bool:
            return bool(were_seen(made(found, found.n_states, found.n_actions), role)[0])

        S = size_of("state", n_states, found.state_labels, found.n_states, lambda: has_zero("state"))
        A = size_of("action", n_actions, found.action_labels, found.n_actions, lambda: has_zero("action"))
        demos = made(found, S, A)
        if demos.steps is not None:
            require_arrival(demos.steps, demos.ids, found.state_labels)
        labels = {"state_labels": with_columns(found.state_labels, () if roles.bins else roles.state)}
        labels["action_labels"] = with_columns(found.action_labels, roles.action)
        sizes = {"state": n_states, "action": n_actions}
        numbered = tuple(role for role in sizes if labels[f"{role}_labels"] is None and sizes[role] is None)
        known: dict[str, Any] = labels | {"numbered": numbered, "columns": found.columns}
        written = {role: found.state_labels if role == "state" else found.action_labels for role in sizes}
        notes = found.notes + note_labels(written | ({"state": None} if roles.bins else {}))
        demos = replace(demos, notes=notes, bins=roles.bins, period=period, **known)
        ghosts = [note_ghost(role, told) for role in numbered if (told := numbered_from_one(role, demos))]
        demos = replace(demos, notes=(*demos.notes, *ghosts)) if ghosts else demos
        return demos._without_steps() if keep_steps is False else demos

    @classmethod
    @within_memory("counts")
    def from_counts(cls, counts: Any, starts: Any = None) -> Demonstrations:
        """From an (S, A) table of visits, as one agent. `starts` (S,) is needed only for occupancy weighting.

        The index and columns of a DataFrame are the labels of states and actions, unless they are 0, 1, 2, …, and
        `starts` may be a dict or Series by label.
        """
        table = as_counts(counts)
        n_states, n_actions = table.shape
        names, numbered = names_in(counts, "counts")
        states = as_labels("counts", names.state_labels, n_states)
        if starts is not None and (
            rows_of(starts) is not None or is_mapping(starts) or isinstance(starts, LabelledArray)
        ):
            starts = weights_by_name("starts", starts, states, n_states)
        expected = f"{n_states} counts >= 0"
        given = np.zeros(n_states) if starts is None else starts
        first = require_vector("starts", given, n_states, expected, InvalidDemonstrations, least=0.0)
        from revealed.panels.columns import note_labels

        none_seen = sp.csr_array((n_states * n_actions, n_states), dtype=np.float64)
        made = cls(n_states, n_actions, sp.csr_array(table.reshape(1, -1)), first, none_seen, (0,))
        actions = as_labels("counts", names.action_labels, n_actions)
        notes = note_labels({"state": states, "action": actions})
        return replace(made, state_labels=states, action_labels=actions, numbered=numbered, notes=notes)

    @classmethod
    def _from_panel(cls, panel: Any, n_states: int, n_actions: int) -> Demonstrations:
        fields = (panel.agent, panel.time, panel.state, panel.action, panel.next_state, panel.starts_here)
        steps = Steps(*fields, panel.row, panel.weight, panel.goal, panel.entry)
        return cls._from_steps(steps, None, n_states, n_actions, Order(panel.ids, True))

    @classmethod
    def _from_counted(cls, found: Any, n_states: int, n_actions: int) -> Demonstrations:
        """Counts that were made elsewhere; there are no steps."""
        by_agent = found.by_agent(n_states, n_actions)
        starts = sp.csr_array(found.starts_by_agent(n_states))
        moves = found.moves(n_states, n_actions)
        total = sum_rows(starts)
        return cls(n_states, n_actions, by_agent, total, moves, Order(found.ids, True), starts_by_agent=starts)

    @classmethod
    def _from_steps(
        cls, steps: Steps, starts: Floats | None, n_states: int, n_actions: int, ids: tuple[Any, ...]
    ) -> Demonstrations:
        """`starts` are those of the steps unless given."""
        often = np.ones(steps.state.size) if steps.weight is None else steps.weight
        seen = steps.next_state >= 0
        pair = steps.state * n_actions + steps.action
        moves = sparse_table(often[seen], pair[seen], steps.next_state[seen], (n_states * n_actions, n_states))
        by_agent = agent_table(steps, often, len(ids), n_states, n_actions)
        if starts is None:
            starts = np.bincount(steps.state[steps.first], often[steps.first], n_states).astype(np.float64)
        return cls(n_states, n_actions, by_agent, starts, moves, ids, steps)

    def _without_steps(self) -> Demonstrations:
        """The same counts without single decisions."""
        if self.steps is None:
            return self
        first = self.steps[self.steps.first]
        often = self.step_weights[self.steps.first]
        table = sparse_table(often, first.agent, first.state, (self.n_agents, self.n_states))
        return replace(self, steps=None, starts_by_agent=table)

    def subset(self, agents: Any) -> Demonstrations:
        """Some of the agents, in the order given: the first hundred (`demos.subset(slice(100))`), ids
        (`demos.subset(["a7", "b2"])`), or a mask (a Series of bools is matched by id).

        A slice counts along `demos.ids`. Whole numbers and masks do so only where ids are 0, 1, 2, … or were listed by
        you (`from_trajectories(ids=...)`): ids of a table are sorted, and numbers are ids, as in `subset([104, 117])`.
        """
        steps = self._require_steps("subset")
        chosen = as_agents(agents, self.ids)
        place = np.full(self.n_agents, -1)
        place[chosen] = np.arange(chosen.size)
        kept = place[steps.agent] >= 0
        part = steps[kept]
        if part.state.size == 0:
            raise InvalidDemonstrations("agents", "at least one agent with a decision", "none")
        part = replace(part, agent=place[part.agent])
        weights = None if self.agent_weights is None else self.agent_weights[chosen]
        columns = {name: tuple(values[i] for i in chosen) for name, values in self.columns.items()}
        listed = not isinstance(agents, slice) and np.asarray(agents).dtype.kind != "b"
        ids = Order((self.ids[i] for i in chosen), is_derived(self.ids) and not listed)
        return replace(self._with(part, ids, weights), columns=columns)

    def toward(self, goal: Any) -> Demonstrations:
        """The decisions of trips to this goal, a label (an index where states have none), without goals; every agent
        keeps its place."""
        return replace(self._with(self._steps_toward(goal), self.ids, self.agent_weights), columns=self.columns)

    def counted_again(self) -> Demonstrations:
        """The same decisions, counted again from the single steps."""
        return self._with(self._require_steps("counted_again"), self.ids, self.agent_weights)

    def _with(self, steps: Steps, ids: tuple[Any, ...], agent_weights: Floats | None) -> Demonstrations:
        """Some of the steps; the rest is as it is here."""
        other = self._from_steps(steps, None, self.n_states, self.n_actions, ids)
        labels = {"state_labels": self.state_labels, "action_labels": self.action_labels, "bins": self.bins}
        labels |= {"period": self.period, "numbered": self.numbered}
        other = replace(other, visit_discount=self.visit_discount, **labels)
        return other if agent_weights is None else other._reweighted(agent_weights)

    def to_frame(
        self,
        id: str = "id",
        time: str = "time",
        state: Any = "state",
        action: Any = "action",
        next_state: Any = None,
        weight: str | None = None,
        goal: Any = "goal",
        episode: str | None = "episode",
    ) -> pd.DataFrame:
        """One row per decision, in columns of these names, as `from_frame` reads them; labels where there are any.

        Labels of several columns are tuples, or go into several columns again: `state=["x", "y"]`. With `next_state`
        there is a column for where each decision led, missing where that was not seen; with `weight` one for how often
        it counts. Where trips have goals there is a column for them, unless `goal` is None. Where an agent has several
        trajectories `episode` is the column that numbers them; if that is None, each begins after a gap in time, as if
        rows were missing. Columns that were kept come last. Times count each trajectory's periods from 0; where it
        matters when ids entered, and nobody said yet which time is period 0, they are those of the data (with a period,
        periods since the first).
        """
        from revealed.panels.clock import times_as_read
        from revealed.panels.memory import write_panel

        steps = self._require_steps("to_frame")
        several = int(steps.first.sum()) > np.unique(steps.agent).size
        names = {"agent": id, "episode": episode if several else None, "time": time}
        names |= {"state": state, "action": action, "next_state": next_state}
        names |= {"goal": None if steps.goal is None else goal, "weight": weight}
        steps = replace(steps, weight=self.step_weights)
        if steps.entry is not None and (names["episode"] or not several):
            steps = replace(steps, time=times_as_read(steps.time, steps.entry, self.period))
        return write_panel(steps, names, self.ids, self.state_labels, self.action_labels, self.columns)

    def reweighted(self, weights: Any) -> Demonstrations:
        """The same decisions with each agent counted so many times, as a bootstrap does (0 leaves it out): a dict or
        Series by id, or an array in the order of `demos.ids` where these were not sorted from a table.

        Moves and single steps stay as they are: they tell what happened, not how often it counts.
        """
        expected = f"{self.n_agents} numbers >= 0, one per agent"
        weights = by_id("weights", weights, self.ids, InvalidDemonstrations)
        w = require_vector("weights", weights, self.n_agents, expected, InvalidDemonstrations, least=0.0)
        require_countable("weights", w)
        return self._reweighted(w)

    def _reweighted(self, w: Floats) -> Demonstrations:
        by_agent = sp.csr_array(sp.diags_array(w) @ self.by_agent)
        w = w if self.agent_weights is None else w * self.agent_weights
        return replace(self, by_agent=by_agent, starts=self._starts_with(w), agent_weights=w)

    def _starts_with(self, agent_weights: Floats) -> Floats:
        """Starts if agent i counted so many times in all; those without a decision belong to nobody and stay."""
        if self.starts_by_agent is not None:
            return np.asarray(self.starts_by_agent.T @ agent_weights)
        if self.steps is None:
            return self.starts * agent_weights[0]
        first = self.steps.first
        state, agent = self.steps.state[first], self.steps.agent[first]
        own = 1.0 if self.steps.weight is None else self.steps.weight[first]
        change = own * agent_weights[agent] - self.step_weights[first]
        return self.starts + np.bincount(state, weights=change, minlength=self.n_states)

    @property
    def step_weights(self) -> Floats:
        """How often each of the `steps` counts: once, but for agents that were given weights."""
        steps = self._require_steps("step_weights")
        own = np.ones(steps.agent.size) if steps.weight is None else steps.weight
        return own if self.agent_weights is None else own * self.agent_weights[steps.agent]

    def discount_visits(self, gamma: float) -> Demonstrations:
        """The same decisions with weights γ^t in the objective (the paper's appendix); `counts` stay as they are."""
        if not 0.0 <= as_number(gamma) <= 1.0:
            raise InvalidDemonstrations("gamma", "a number in [0, 1]", shown(gamma), remedy=remedy_for(gamma))
        self._require_steps("discount_visits")
        return replace(self, visit_discount=as_number(gamma))

    def lift(self, mdp: MDP, first_time: Any = None) -> Demonstrations:
        """Decisions of the base MDP as decisions of the unrolled `mdp`: state s at time t becomes t·S + s.

        Where a frame's ids enter at different times, `first_time` says which time is period 0, unless `from_frame` got
        it: one for all, where times are ages or dates, or "own". Trajectories without times begin at period 0.
        """
        require_mdp(mdp)
        if mdp.base is None or self.n_states == mdp.n_states:
            return self
        if self.n_states != mdp.base.n_states:
            raise InvalidDemonstrations(
                "demonstrations",
                f"{mdp.base.n_states} states, as the MDP has before unrolling",
                f"{self.n_states}",
                remedy=either(
                    "Pass n_states= when building the demonstrations.",
                    "List all states in --features or --transitions.",
                ),
            )
        if self.goal_states is not None:
            remedy = "Use mdp.base, where trips end at their goals, or leave goals out."
            rule = "cannot be combined with a horizon, which ends every trip"
            raise InvalidDemonstrations.conflict("goal", rule, None, remedy)
        steps = self._on_one_clock(first_time)
        horizon = int(mdp.horizon or 0)
        steps = lifted(steps, self.n_states, horizon, self.ids)
        starts = self._lifted_starts(steps, mdp.n_states)
        other = self._from_steps(steps, starts, mdp.n_states, self.n_actions, self.ids)
        names = {"state_labels": unrolled_labels(self.state_labels, horizon + 1), "action_labels": self.action_labels}
        other = replace(other, visit_discount=self.visit_discount, notes=self.notes, columns=self.columns, **names)
        return other if self.agent_weights is None else other._reweighted(self.agent_weights)

    def _on_one_clock(self, first_time: Any) -> Steps:
        """The steps with times that count from period 0 of a horizon."""
        from revealed.panels.clock import is_own, periods_late, require_one_clock

        steps = self._require_steps("lift")
        if is_own(first_time) or (first_time is None and steps.entry is None):
            return replace(steps, entry=None)
        if steps.entry is None:
            rule = "cannot be given: periods already count from 0 (set in `from_frame`, or there were no times)"
            raise InvalidInput.conflict("first_time", rule)
        entry = steps.entry[steps.first]
        if first_time is None:
            require_one_clock(entry, steps.agent[steps.first], self.ids)
            return replace(steps, entry=None)
        late = periods_late(entry, first_time, self.period)
        return replace(steps, time=steps.time + late[self.trajectory], entry=None)

    def starts_by_period(self, first_time: Any = None) -> Floats:
        """(T, S): how often trajectories started in each state, by the period of a horizon in which they enter."""
        steps = self._on_one_clock(first_time)
        n = 1 + int(steps.time[steps.first].max(initial=0))
        begun = replace(steps, state=steps.time * self.n_states + steps.state)
        return self._lifted_starts(begun, n * self.n_states).reshape(n, self.n_states)

    def _lifted_starts(self, steps: Steps, n_states: int) -> Floats:
        """Starts at time 0, but for trajectories that enter later."""
        late = steps.first & (steps.time > 0)
        often = np.ones(int(late.sum())) if steps.weight is None else steps.weight[late]
        starts = np.bincount(steps.state[late], often, n_states).astype(np.float64)
        later = np.bincount(steps.state[late] % self.n_states, often, self.n_states)
        starts[: self.n_states] += self._starts_with(np.ones(self.n_agents)) - later
        return starts


def were_seen(demos: Demonstrations, role: str) -> Bools:
    """Which states or actions the decisions show: taken, set out from, led to, or headed for."""
    seen = np.asarray(demos.counts).sum(axis=1 if role == "state" else 0) > 0.0
    if role == "state":
        seen |= np.asarray(demos.starts) > 0.0
        seen[demos.transition_counts.tocoo().coords[1]] = True
        if demos.goal_states is not None:
            seen[demos.goal_states] = True
    return seen


def numbered_from_one(role: str, demos: Demonstrations) -> str:
    """The remedy where whole numbers in a column seem to count from 1; empty where they do not."""
    labels = getattr(demos, f"{role}_labels")
    return from_one(role, labels, were_seen(demos, role)) if role in demos.numbered else ""


def require_demonstrations(name: str, value: Any) -> None:
    """Demonstrations; of tables and trajectories, how to read them."""
    if isinstance(value, Demonstrations):
        return
    reader = "from_trajectories(trajectories, n_states=..., n_actions=...)"
    if hasattr(value, "columns") or isinstance(value, str | os.PathLike | dict):
        reader = (
            f"from_frame(frame, {', '.join(arg(name, Written('...')) for name in ('id', 'time', 'state', 'action'))})"
        )
    elif hasattr(value, "shape"):
        reader = "from_counts(counts), where it counts decisions (S, A)"
    elif not isinstance(value, list | tuple):
        raise InvalidInput(name, "rv.Demonstrations", type(value).__name__)
    raise InvalidInput(name, "rv.Demonstrations", type(value).__name__, remedy=f"Use rv.Demonstrations.{reader}.")
