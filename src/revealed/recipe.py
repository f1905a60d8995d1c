"""From a description to demonstrations, model, reward and fit: what `revealed fit` does, also for Python.

Every part is made once, when first used. Whole numbers are names of states and actions where a file lists them or where
they count from 1, and indices elsewhere; a pair that was never chosen is infeasible, unless `unseen` says otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from revealed.checks import Floats, require_option
from revealed.demonstrations import Demonstrations, numbered_from_one
from revealed.description import Description, said_in
from revealed.errors import InvalidDemonstrations, InvalidInput, InvalidOption, InvalidReward
from revealed.estimators import CCP, MCEIRL, NFXP, NPL, Estimator
from revealed.frames import Table, read_names, read_table, require_column
from revealed.labels import find, how_many, near, unknown
from revealed.mdp import MDP
from revealed.naming import Names
from revealed.positions import labelled
from revealed.rewards.base import Reward
from revealed.rewards.linear import ADD_A_ROW, LinearReward
from revealed.rewards.tabular import TabularReward
from revealed.road_recipe import read_network, read_road_trips, road_reward, with_arrivals
from revealed.routes.network import RoadNetwork
from revealed.sense import chosen, require_effect, require_sense, without_effect
from revealed.typed import (
    OF_A_FRAME,
    bins_as_typed,
    find_typed,
    landing_columns,
    one_or_list,
    parse_bins,
    parted,
    parted_bins,
    parted_paths,
    read_model,
    texts_of,
    typed_terminal,
)
from revealed.voices import arg, marked, named, shown

if TYPE_CHECKING:
    from revealed.bins import Bins

METHODS: dict[str, type[Estimator]] = {"nfxp": NFXP, "mce-irl": MCEIRL, "ccp": CCP, "npl": NPL}


class Recipe(Description):
    """The full description of an estimation: data, model, reward and method. `fit()` carries it out.

    Every option of `revealed fit` is an argument of the same name (`--next-state` is `next_state`), with the same
    default; lists may be a single text. Options that contradict each other are refused at once; files are read
    when they are needed.

    >>> recipe = rv.Recipe(                                                  # doctest: +SKIP
    ...     panel="trips.csv", id="rider", time="t", state="station", action="choice",
    ...     features="stations.csv", columns=["shops", "green"], discount=0.9, method="npl",
    ... )
    >>> fit = recipe.fit()                                                   # doctest: +SKIP
    >>> rv.Recipe.from_toml("trips-fit/config.toml", method="ccp").fit()     # doctest: +SKIP

    Parameters
    ----------
    panel, id, time, state, action : files of decisions (a path, a glob, several) and their columns; required except
        on a road network.
    next_state, weight, period, gaps, episode, bins : more about the panel; `bins="miles=90"` makes states of numbers.
    goal : the column of where each trip is heading; it ends there.
    network, link, from_node, to_node, turns, turn_from, turn_to, nodes, u_turns, arrivals : files of a road network and
        their columns, as in `rv.RoadNetwork.from_frame`; trip, sequence, trip_link, traveller : columns of the panel;
        bad_trips : "drop" leaves trips out that the network does not allow.
    features, feature_state, columns, constants, coordinates, reward, hidden, activation : what the reward is made of;
        `features` is a file with a row per state or per pair, `reward` is "linear", "tabular" or "neural".
    discount, transitions, probability, smoothing, kernel, unseen, terminal, horizon, first_time : the model;
        transitions are estimated from the panel, unless a table of them is given.
    method, updates, first_step, weighting, l2, tol, max_iter, optimizer, start : the estimator and its options.
    errors, cluster, joint, reps, seed : the standard errors.
    out : where `revealed fit` writes, while `fit()` writes nothing.

    Its parts are made when first used: `demonstrations`, `mdp` and `reward_model`, which the estimator is given;
    `binned` (bins of the states) and `places` (S, 2) (where states lie), or None; labels of states and actions.
    """

    if not TYPE_CHECKING:  # type checkers read the fields

        @wraps(Description.__init__)
        def __init__(self, *values: Any, **options: Any) -> None:
            known = Description.__dataclass_fields__
            for name in options:
                if name not in known:
                    raise unknown("rv.Recipe", "option", name, list(known))
            super().__init__(*values, **options)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_sense(self)
        require_effect(self, chosen(self), None)  # what only some methods use is asked for by `fit`

    @classmethod
    def from_flags(cls, given: Mapping[str, Any], config: str | os.PathLike[str] | None = None) -> Self:
        """From flags, which override the options of a file. Lists may be typed with commas. A flag that would have no
        effect is an error; an option of the file that has none is ignored."""
        found, said = Description.from_flags(given, config), said_in(given)
        method = None if "method" not in given else found.method
        require_sense(found, said)
        require_effect(found, said, method)
        idle = without_effect(found, method)
        recipe = cls(**{name: value for name, value in vars(found).items() if name not in idle})
        return recipe._parted({name for name, value in said.items() if any("," in text for text in texts_of(value))})

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], **changes: Any) -> Self:
        """From a file; `changes` override its options."""
        return cls.from_flags({"method": None} | changes, path)

    def _parted(self, names: set[str]) -> Self:
        """With these lists taken apart at their commas, unless a file or a column is called so."""
        changes: dict[str, Any] = {"panel": parted_paths(self.panel)} if "panel" in names else {}
        for name in names & {"state", "action", "next_state", "goal", "trip", "trip_link"}:
            changes[name] = parted(getattr(self, name), replace(self, **changes)._panel_names)
        if "link" in names:
            changes["link"] = parted(self.link, read_table(self.network or self.source, "network").names)
        for name in names & {"columns", "feature_state"}:
            changes[name] = parted(getattr(self, name), replace(self, **changes)._feature_names)
        if "bins" in names:
            changes["bins"] = parted_bins(self.bins, changes.get("state", self.state))
        return replace(self, **changes) if changes else self

    @property
    def _feature_names(self) -> Sequence[str]:
        """Names that may have commas in them."""
        if self.on_roads:
            return self.road_network.attributes
        return self._table.names if self.features else self.state

    # the data

    @cached_property
    def road_network(self) -> RoadNetwork:
        """The network of trips on roads."""
        return with_arrivals(self, read_network(self), self.source)

    @property
    def source(self) -> Any:
        """The panel: a path, a glob, or several."""
        return self.panel[0] if len(self.panel) == 1 else list(self.panel)

    @cached_property
    def _panel_names(self) -> list[str]:
        return read_names(self.source, "panel")

    def _require_columns(self) -> None:
        """The panel has the columns that were named; asked before another file is, whose complaint would mislead."""
        for role in ("id", "time", "state", "action", "next_state", "goal", "weight", "episode", "cluster"):
            for name in texts_of(getattr(self, role)):
                require_column(role, name, self._panel_names)

    @cached_property
    def binned(self) -> Bins | None:
        """The bins of the state columns, where they are continuous."""
        if not self.bins:
            return None
        from revealed.bins import Bins, discretize

        wanted = dict(parse_bins(text) for text in self.bins)
        for name in wanted:
            if name not in self.state:
                expected = f"a state column ({', '.join(self.state)}) and its bins"
                remedy = (
                    near(name, self.state) or f"To make it part of the state, pass {arg('state', [*self.state, name])}."
                )
                raise InvalidOption("bins", expected, shown(name), remedy=remedy)
        lost = [name for name in self.state if name not in wanted]
        if lost:
            rule = f"must cover every state column: {lost[0]} has no bins"
            raise InvalidOption.conflict("bins", rule, remedy=self._bins_for(lost))
        with bins_as_typed(self.bins):
            if all("edges" in how for how in wanted.values()):
                return Bins(self.state, [wanted[name]["edges"] for name in self.state])
            if len(wanted) == 1:
                return discretize(self.source, self.state[0], **wanted[self.state[0]])
            edges = {name: list(discretize(self.source, name, **wanted[name]).edges[0]) for name in self.state}
            return discretize(self.source, list(self.state), edges=edges)

    def _bins_for(self, names: Sequence[str]) -> str:
        """The remedy for columns of the state that have no bins: a bin for each of a few whole numbers."""
        from revealed.bins import one_bin_each

        self._require_columns()
        texts, such = list(self.bins), ", such as "
        for name in names:
            try:
                edges = one_bin_each(self.source, name)
            except InvalidInput as error:
                if error.expected != "numbers":
                    raise
                return f"Bins are for numbers: leave {name} out of the state, or replace its values by numbers."
            texts.append(f"{name}=20" if edges is None else f"{name}=edges:{','.join(map(str, edges))}")
            such = such if edges is None else "; for whole numbers, one bin each: "
        return f"Give every column bins{such}{arg('bins', texts)}."

    @cached_property
    def demonstrations(self) -> Demonstrations:
        if self.on_roads:
            return read_road_trips(self, self.road_network, self.source)
        known: dict[str, Any] = {}
        if self.features is not None or self.transitions:
            self._require_columns()
            known["actions"] = self._listed_actions
        if self.binned is None:
            known["states"] = self._listed_states
            if known["states"] is None and self.transitions and self.mdp.state_labels is None:
                known["n_states"] = self.mdp.n_states
        if self.transitions and self.mdp.action_labels is None:
            known["n_actions"] = self.mdp.n_actions
        try:
            with bins_as_typed(self.bins):
                return self._counted_from_one(self._read_panel(known), known)
        except InvalidDemonstrations as error:
            listed = known.get("actions" if error.argument == "action" else "states")
            if listed is None or not error.labels:
                raise
            raise self._no_features(error.got, error.offender, error.remedy, error.argument) from error

    def _counted_from_one(self, demos: Demonstrations, known: dict[str, Any]) -> Demonstrations:
        """The same, read again with 1, 2, … as labels where the numbers of states or actions start there and no file
        lists a 0."""
        sizes = {"state": demos.n_states, "action": demos.n_actions}
        labels = {f"{role}s": list(range(1, n)) for role, n in sizes.items() if numbered_from_one(role, demos)}
        if not labels:
            return demos
        demos = self._read_panel(known | labels)
        told = [f"{roles.capitalize()} are numbered from 1: there is no {roles[:-1]} 0." for roles in labels]
        return replace(demos, notes=(*demos.notes, *told))

    def _read_panel(self, known: dict[str, Any]) -> Demonstrations:
        return Demonstrations.from_frame(
            self.source,
            id=str(self.id),
            time=str(self.time),
            state=self.binned if self.binned is not None else one_or_list(self.state),
            action=one_or_list(self.action),
            next_state=landing_columns(self.next_state, self.state, self._panel_names if self.goal else ()),
            goal=one_or_list(self.goal) if self.goal else None,
            weight=self.weight,
            period=self.period,
            gaps=self.gaps,
            keep_steps=True if self.horizon or self.goal else None,
            first_time=self.first_time,
            episode=self.episode,
            keep=texts_of(self.cluster),
            **known,
        )

    @cached_property
    def _listed_states(self) -> list[Any] | None:
        """Whole numbers that a features file lists as states are their names."""
        if self.features is None or self.binned is not None or len(self.state) > 1:
            return None
        keys = self._table.label_column("features", self._keys[0])
        return sorted(set(keys.tolist())) if keys.dtype.kind in "iu" else None

    @cached_property
    def _listed_actions(self) -> list[Any] | None:
        """Whole numbers that the features file or the table of transitions lists as actions, unless they count from 0,
        are their names."""
        if len(self.action) != 1:
            return None
        (name,) = self.action
        files = {"features": self._table if self.features is not None else None}
        files["transitions"] = read_table(self.transitions, "transitions") if self.transitions else None
        found: set[Any] = set()
        for argument, table in files.items():
            if table is not None and name in table.names:
                keys = table.label_column(argument, name)
                if keys.dtype.kind not in "iu":
                    return None
                found.update(keys.tolist())
        return None if found == set(range(len(found))) else sorted(found)

    # the reward

    @cached_property
    def _table(self) -> Table:
        return read_table(self.features, "features")

    @property
    def _keys(self) -> tuple[str, ...]:
        """The columns of the features file that hold the state."""
        keys = self.feature_state or self.state
        for name in self.feature_state:
            require_column("feature_state", name, self._table.names)
        lost = [name for name in keys if name not in self._table.names]
        if lost:
            others = [name for name in self._table.names if name not in self.action]
            remedy = f"If the column has another name: {arg('feature_state', (others or self._table.names)[0])}."
            if set(self.action) <= set(self._table.names):
                swapped = f"are `{named('state')}` and `{named('action')}` swapped?"
                remedy = f"It has a column {self.action[0]!r}, which is the action: {swapped}"
            expected = f"a state column {lost[0]!r}, as in the panel"
            raise InvalidOption("features", expected, ", ".join(self._table.names), remedy=remedy)
        if len(keys) != len(self.state):
            expected = f"{how_many(len(self.state), 'column')}, as {named('state')} has"
            raise InvalidOption("feature_state", expected, ", ".join(keys))
        return keys

    @property
    def _chosen_columns(self) -> list[str] | None:
        """Features to use: those named, else all; coordinates only where they are named."""
        if self.columns:
            return list(self.columns)
        if not self.coordinates:
            return None
        others = [name for name in self._table.names if name not in {*self._keys, *self.action, *self.coordinates}]
        if not others:
            remedy = f"To use them as features as well, pass {arg('columns', list(self.coordinates))}."
            rule = f"leaves no column of {named('features')} for the reward"
            raise InvalidOption.conflict("coordinates", rule, remedy=remedy)
        return others

    @cached_property
    def reward_model(self) -> Reward:
        if self.on_roads:
            return road_reward(self, self.road_network)
        if self.reward == "tabular":
            return TabularReward((self.mdp.base or self.mdp).n_states)
        linear = self._linear()
        if self.reward != "neural":
            return linear
        from revealed.rewards.neural import NeuralReward

        return NeuralReward(
            self._as_features(linear),
            hidden=self.hidden,
            seed=self.seed,
            activation=self.activation,
            state_labels=self.state_labels,
            action_labels=self.action_labels,
        )

    def _linear(self) -> LinearReward:
        """The features of the file, or the centres of the bins; constants alone where there is neither."""
        import pandas as pd

        options = {"columns": self._chosen_columns, "constants": self.constants, "actions": self.action_labels}
        if self.features is not None:
            return self._from_file(options)
        centres = pd.DataFrame() if self.binned is None else self.binned.features
        found = [require_column("columns", name, list(map(str, centres))) for name in self.columns]
        if not self.constants:
            return LinearReward(centres[found] if found else centres)
        rows = pd.RangeIndex(len(self.state_labels))
        linear = LinearReward.from_frame(centres.assign(**{_STATE: rows}), state=_STATE, **options)
        linear.state_labels = self.state_labels  # numbered until here: a label may be of several columns
        return linear

    def _from_file(self, options: dict[str, Any]) -> LinearReward:
        pairs = all(name in self._table.names for name in self.action)
        keys, chosen = one_or_list(self._keys), one_or_list(self.action) if pairs else None
        try:
            linear = LinearReward.from_frame(self.features, state=keys, action=chosen, **options)
        except InvalidReward as error:
            if error.argument not in (*OF_A_FRAME, "state, action"):
                raise
            expected = f"{marked(str(error.expected))} in {self.features}"
            raise InvalidReward("features", expected, error.got, error.offender, error.remedy) from error
        self._require_features(linear)
        return linear

    def _require_features(self, linear: LinearReward) -> None:
        """Every state in which something is chosen has features; told with the name of the file."""
        model = self.mdp.base or self.mdp
        try:
            linear.aligned(self.state_labels, self.action_labels, model.feasible)
        except InvalidReward as error:
            if not error.labels:
                raise
            label, *action = map(shown, error.labels)
            labels = self.demonstrations.state_labels or range(self.demonstrations.n_states)
            met = {shown(label) for label, n in zip(labels, self.demonstrations.counts.sum(axis=1), strict=True) if n}
            only_led_to = self.next_state and label not in met and not action
            where = ", action ".join([label, *action])
            raise self._no_features(where, None, error.remedy, "next_state" if only_led_to else "state") from error

    def _no_features(self, label: object, row: str | None, remedy: str | None, role: str = "state") -> InvalidReward:
        """The complaint about a state of the panel that the features file does not list."""
        if role == "action":
            return InvalidReward("action", "an action that the files list", label, row, remedy)
        expected = "a row for every state" + (f" that {named('next_state')} leads to" if role == "next_state" else "")
        got = f"no features for {label} in {self.features}"
        if role == "goal":
            remedy = "Add a row: a goal is a state, even if no decision is made there."
        return InvalidReward("features", expected, got, row, remedy or ADD_A_ROW)

    def _as_features(self, linear: LinearReward) -> Floats:
        """(S, K) or (S, A, K), in the order of the model."""
        return linear.aligned(self.state_labels, self.action_labels).dense_features()

    # the model

    @cached_property
    def mdp(self) -> MDP:
        if self.on_roads:
            return self.road_network.mdp
        base = self._given() if self.transitions else self._estimated()
        return base if self.horizon is None else base.unroll(self.horizon)

    def _given(self) -> MDP:
        names = {"state": one_or_list(self.state), "action": one_or_list(self.action)}
        states = list(self.binned.labels) if self.binned is not None else self._listed_states
        return read_model(
            self.transitions,
            next_state=self.next_state,
            probability=self.probability,
            discount=self.discount,
            states=states,
            actions=self._listed_actions,
            terminal=typed_terminal(self.terminal, self.state, self.transitions) or None,
            **names,
        )

    def _estimated(self) -> MDP:
        from revealed.transition_models import estimate_transitions

        demos = self.demonstrations
        kernel: dict[str, Any] = {}
        if self.kernel is not None:
            if self.places is None:
                remedy = "Coordinates are two columns of the features file; bins have their centres."
                x_y = arg("coordinates", ["x", "y"])
                rule = f"requires `{x_y}` with `{named('features')}`, or `{named('bins')}`"
                raise InvalidOption.conflict("kernel", rule, remedy=remedy)
            kernel = {"coordinates": self.places, "bandwidth": self.kernel}
        found = estimate_transitions(demos, unseen=self.unseen, smoothing=self.smoothing, **kernel)
        terminal = None
        if self.terminal:
            known = demos.state_labels or range(demos.n_states)
            terminal = np.zeros(demos.n_states, dtype=bool)
            terminal[find_typed("terminal", self.terminal, known)] = True
            terminal = labelled(terminal, Names(demos.state_labels, None))
        return MDP(found, discount=self.discount, terminal=terminal)

    @property
    def state_labels(self) -> tuple[Any, ...]:
        """Of the model, before it is unrolled; whole numbers where states have no names."""
        model = self.mdp.base or self.mdp
        return model.state_labels or self.demonstrations.state_labels or tuple(range(model.n_states))

    @property
    def action_labels(self) -> tuple[Any, ...]:
        return self.mdp.action_labels or self.demonstrations.action_labels or tuple(range(self.mdp.n_actions))

    @cached_property
    def places(self) -> Floats | None:
        """(S, d): where states lie, from the features file or the bins; None where nothing tells."""
        if self.coordinates:
            demos = self.demonstrations  # not the model, which a kernel makes of the places
            given = self.mdp.base or self.mdp if self.transitions else None
            labels = (given and given.state_labels) or demos.state_labels or range(demos.n_states)
            rows = self._rows_of(labels)
            columns = [self._table.numbers("coordinates", name)[rows] for name in self.coordinates]
            return labelled(np.column_stack(columns), Names(labels if isinstance(labels, tuple) else None, None))
        return None if self.binned is None else self.binned.features.to_numpy(dtype=np.float64)

    def _rows_of(self, labels: Sequence[Any]) -> Any:
        """Where these states stand in the features file."""
        listed = self._table.labels("features", one_or_list(self._keys))
        try:
            return find("features", labels, listed)
        except InvalidInput as error:
            raise self._no_features(error.got, None, error.remedy) from error

    # the method

    @property
    def options(self) -> dict[str, Any]:
        """The options that all methods share."""
        names = ("weighting", "first_step", "l2", "tol", "max_iter", "optimizer")
        return {name: getattr(self, name) for name in names}

    def estimator(self, method: str | None = None) -> Estimator:
        """The chosen method, or another with the same options."""
        if method is not None:
            require_option("method", method, METHODS)
        name = self.method if method is None else method
        options = self.options
        if self.start == "ccp" and name in ("nfxp", "mce-irl"):
            options["start"] = "ccp"
        if name == "npl":
            options["updates"] = self.updates
        return METHODS[name](self.reward_model, **options)

    def prepare(self) -> None:
        """Make every part, in the order in which mistakes are easiest to explain."""
        for part in ("binned", "demonstrations", "mdp", "reward_model", "places"):
            getattr(self, part)

    def fit(self, method: str | None = None) -> Any:
        """The estimate, a `Fit` or, with goals, a `GoalFit`, with the chosen kind of errors."""
        if method is None:
            require_effect(self, chosen(self), self.method)
        self.prepare()
        fit = self.estimator(method).fit(self.mdp, self.demonstrations)
        if self.errors is None and not self.joint and self.cluster is None:
            return fit
        kind = self.errors or ("cluster" if self.cluster else fit.errors[0])
        extra = {"reps": self.reps, "seed": self.seed} if kind == "bootstrap" else {}
        return fit.with_errors(kind, joint=self.joint, by=self.cluster, **extra)


_STATE = "the state"  # a column beside those of the bins
