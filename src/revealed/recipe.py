"""From a description in words to demonstrations, model, reward and fit: what `revealed fit` does, for Python too.

    recipe = rv.Recipe(panel="trips.csv", id="rider", time="t", state="station", action="choice",
                       features="stations.csv", discount=0.95, method="npl")
    fit = recipe.fit()

Every part is made once, when it is first asked for. States that are whole numbers are names where a features file lists
them, and indices elsewhere; a pair that nobody chose is not offered, unless `unseen` says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from revealed.checks import Floats, as_number
from revealed.demonstrations import Demonstrations
from revealed.description import Description
from revealed.errors import InvalidOption
from revealed.estimators import CCP, MCEIRL, NFXP, NPL, Estimator
from revealed.fit import Fit
from revealed.frames import Table, read_table
from revealed.labels import find, spell
from revealed.mdp import MDP
from revealed.rewards.base import Reward
from revealed.rewards.linear import LinearReward
from revealed.rewards.tabular import TabularReward

if TYPE_CHECKING:
    from revealed.bins import Bins

METHODS: dict[str, type[Estimator]] = {"nfxp": NFXP, "mce-irl": MCEIRL, "ccp": CCP, "npl": NPL}


class Recipe(Description):
    """A `Description` that can be carried out; its parts are `demonstrations`, `mdp`, `reward_model`, `places`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_sense()

    def _require_sense(self) -> None:
        """Options that would have no effect beside others are mistakes."""
        kind = self.reward or "linear"
        if self.transitions and (self.smoothing or self.kernel):
            option = "--smoothing" if self.smoothing else "--kernel"
            raise InvalidOption(option, "estimated transitions", "a table of them", remedy="Leave --transitions out.")
        if self.smoothing and self.kernel:
            raise InvalidOption("--kernel", "one way to smooth transitions", "--smoothing as well")
        if kind != "tabular" and not self.features and not self.bins:
            remedy = "Give --features FILE, or --reward tabular for one weight per state."
            raise InvalidOption("--features", f"features for a {kind} reward", "nothing", remedy=remedy)
        if self.constants and kind != "linear":
            raise InvalidOption("--constants", "a linear reward", kind)
        if self.hidden != Description.hidden and kind != "neural":
            raise InvalidOption("--hidden", "a neural reward", kind, remedy="Add --reward neural.")
        if self.coordinates and not self.features:
            raise InvalidOption("--coordinates", "columns of a features file", "no --features")

    # the data

    @property
    def source(self) -> Any:
        """The panel: a path, a glob, or several."""
        return self.panel[0] if len(self.panel) == 1 else list(self.panel)

    @cached_property
    def binned(self) -> Bins | None:
        """The bins of the state columns, where they are continuous."""
        if not self.bins:
            return None
        from revealed.bins import discretize

        wanted = dict(_parse_bins(text) for text in self.bins)
        for name in wanted:
            if name not in self.state:
                expected = f"a state column ({', '.join(self.state)}) and its bins"
                raise InvalidOption("--bins", expected, repr(name), remedy="Name it as --state, too.")
        for name in self.state:
            if name not in wanted:
                remedy = f"Whole numbers have bins, too: {name}=edges:0,1,2."
                raise InvalidOption("--bins", f"bins of every state column, also of {name}", "none", remedy=remedy)
        if len(wanted) == 1:
            return discretize(self.source, self.state[0], **wanted[self.state[0]])
        edges = {name: list(discretize(self.source, name, **wanted[name]).edges[0]) for name in self.state}
        return discretize(self.source, list(self.state), edges=edges)

    @cached_property
    def demonstrations(self) -> Demonstrations:
        known: dict[str, Any] = {}
        if self.binned is None:
            known["states"] = self._listed_states
            if known["states"] is None and self.transitions and self.mdp.state_labels is None:
                known["n_states"] = self.mdp.n_states
        if self.transitions and self.mdp.action_labels is None:
            known["n_actions"] = self.mdp.n_actions
        return Demonstrations.from_frame(
            self.source,
            id=str(self.id),
            time=str(self.time),
            state=self.binned if self.binned is not None else _one_or_list(self.state),
            action=_one_or_list(self.action),
            next_state=_one_or_list(self.next_state) if self.next_state else None,
            weight=self.weight,
            period=self.period,
            gaps=self.gaps,
            keep_steps=True if self.horizon else None,
            **known,
        )

    @cached_property
    def _listed_states(self) -> list[Any] | None:
        """Whole numbers that a features file lists as states are their names."""
        if self.features is None or self.binned is not None or len(self.state) > 1:
            return None
        keys = self._table.column("features", self._keys[0])
        return sorted(set(keys.tolist())) if keys.dtype.kind in "iu" else None

    # the reward

    @cached_property
    def _table(self) -> Table:
        return read_table(self.features, "features")

    @property
    def _keys(self) -> tuple[str, ...]:
        """The columns of the features file that hold the state."""
        keys = self.feature_state or self.state
        lost = [name for name in keys if name not in self._table.names]
        if lost:
            remedy = f"Where the state is called otherwise: --feature-state {self._table.names[0]}"
            expected = f"the column {lost[0]!r} of states, as the panel calls it"
            raise InvalidOption("--features", expected, ", ".join(self._table.names), remedy=remedy)
        if len(keys) != len(self.state):
            raise InvalidOption("--feature-state", f"{len(self.state)} columns, as --state has", ", ".join(keys))
        return keys

    @property
    def _chosen_columns(self) -> list[str] | None:
        """Features to use: those named, else all; coordinates only where they are named."""
        if self.columns:
            return list(self.columns)
        if not self.coordinates:
            return None
        return [name for name in self._table.names if name not in {*self._keys, *self.action, *self.coordinates}]

    @cached_property
    def reward_model(self) -> Reward:
        if self.reward == "tabular":
            return TabularReward((self.mdp.base or self.mdp).n_states)
        linear = self._linear()
        if self.reward != "neural":
            return linear
        from revealed.rewards.neural import NeuralReward

        return NeuralReward(self._as_features(linear), hidden=self.hidden, seed=self.seed)

    def _linear(self) -> LinearReward:
        """The features of the file, or the centres of the bins."""
        options = {"columns": self._chosen_columns, "constants": self.constants, "actions": self.action_labels}
        if self.features is not None:
            pairs = all(name in self._table.names for name in self.action)
            keys, chosen = _one_or_list(self._keys), _one_or_list(self.action) if pairs else None
            return LinearReward.from_frame(self.features, state=keys, action=chosen, **options)
        assert self.binned is not None
        centres = self.binned.features
        if not self.constants:
            return LinearReward(centres[list(self.columns)] if self.columns else centres)
        labelled = centres.assign(**{_STATE: self.state_labels})
        return LinearReward.from_frame(labelled, state=_STATE, **options)

    def _as_features(self, linear: LinearReward) -> Floats:
        """(S, K) or (S, A, K), in the order of the model."""
        reward = linear.aligned(self.state_labels, self.action_labels)
        matrix = reward.matrix.toarray() if hasattr(reward.matrix, "toarray") else reward.matrix
        per = () if reward.n_columns == 1 else (reward.n_columns,)
        return np.asarray(matrix).reshape(reward.n_states, *per, reward.n_params)

    # the model

    @cached_property
    def mdp(self) -> MDP:
        base = self._given() if self.transitions else self._estimated()
        return base if self.horizon is None else base.unroll(self.horizon)

    def _given(self) -> MDP:
        names = {"state": _one_or_list(self.state), "action": _one_or_list(self.action)}
        states = list(self.binned.labels) if self.binned is not None else self._listed_states
        return read_model(
            self.transitions,
            next_state=self.next_state,
            probability=self.probability,
            discount=self.discount,
            states=states,
            terminal=as_labels(self.terminal, [self.state] if len(self.state) > 1 else []) or None,
            **names,
        )

    def _estimated(self) -> MDP:
        from revealed.transition_models import estimate_transitions

        demos = self.demonstrations
        kernel: dict[str, Any] = {}
        if self.kernel is not None:
            if self.places is None:
                remedy = "Name the columns of the features file with --coordinates x,y."
                raise InvalidOption("--kernel", "coordinates of states", "none", remedy=remedy)
            kernel = {"coordinates": self.places, "bandwidth": self.kernel}
        found = estimate_transitions(demos, unseen=self.unseen, smoothing=self.smoothing, **kernel)
        terminal = None
        if self.terminal:
            known = demos.state_labels or range(demos.n_states)
            terminal = np.zeros(demos.n_states, dtype=bool)
            terminal[find("--terminal", as_labels(self.terminal, known), known, "--terminal")] = True
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
            rows = find("--features", labels, self._table.labels("features", _one_or_list(self._keys)), "state")
            columns = [self._table.numbers("--coordinates", name)[rows] for name in self.coordinates]
            return np.column_stack(columns)
        return None if self.binned is None else self.binned.features.to_numpy(dtype=np.float64)

    # the method

    def estimator(self, method: str | None = None) -> Estimator:
        """The method asked for, or another with the same options."""
        name = method or self.method
        options: dict[str, Any] = {
            "weighting": self.weighting,
            "first_step": self.first_step,
            "l2": self.l2,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "optimizer": self.optimizer,
        }
        if self.start == "ccp" and name in ("nfxp", "mce-irl"):
            options["start"] = "ccp"
        if name == "npl":
            options["updates"] = self.updates
        return METHODS[name](self.reward_model, **options)

    def prepare(self) -> None:
        """Make every part, in the order in which mistakes are best told."""
        for part in ("binned", "demonstrations", "mdp", "reward_model", "places"):
            getattr(self, part)

    def fit(self, method: str | None = None) -> Fit:
        """The estimate, with errors of the kind asked for."""
        self.prepare()
        fit = self.estimator(method).fit(self.mdp, self.demonstrations)
        if self.errors is None and not self.joint:
            return fit
        kind = self.errors or fit.errors[0]
        extra = {"reps": self.reps, "seed": self.seed} if kind == "bootstrap" else {}
        return fit.with_errors(kind, joint=self.joint, **extra)


_STATE = "the state"  # a column beside those of the bins


def read_model(
    table: Any,
    *,
    state: Any,
    action: Any,
    next_state: Sequence[str],
    probability: str,
    discount: float,
    states: Any = None,
    actions: Any = None,
    terminal: Any = None,
    initial: Any = None,
) -> MDP:
    """A table of transitions. Its columns are called as the panel's; the next state's too, else `next_` and the
    state's name."""
    names = read_table(table, "transitions").names
    own = [state] if isinstance(state, str) else list(state)
    for candidate in (list(next_state), [f"next_{name}" for name in own], ["next_state"]):
        if len(candidate) == len(own) and all(name in names for name in candidate):
            break
    else:
        expected = f"a column next_{own[0]} for where a decision leads"
        raise InvalidOption("--transitions", expected, ", ".join(names), remedy="Or name it with --next-state.")
    return MDP.from_frame(
        table,
        state=state,
        action=action,
        next_state=_one_or_list(candidate),
        probability=probability,
        discount=discount,
        states=states,
        actions=actions,
        terminal=terminal,
        initial=initial,
    )


def as_labels(texts: Sequence[str], known: Sequence[Any]) -> list[Any]:
    """Labels as they are typed; those of several columns have commas between their parts."""
    if len(known) == 0 or not isinstance(known[0], tuple):
        return list(texts)
    spelled = {spell(label) for label in known}
    parted = [tuple(part.strip() for part in text.strip("() ").split(",")) for text in texts]
    return [text if text in spelled else parts for text, parts in zip(texts, parted, strict=True)]


def _one_or_list(names: Sequence[str]) -> Any:
    return names[0] if len(names) == 1 else list(names)


def _parse_bins(text: str) -> tuple[str, dict[str, Any]]:
    """`miles=90`, `miles=quantile:20`, `miles=edges:0,5,10` as a column and options of `rv.discretize`."""
    name, equals, how = text.rpartition("=")
    way, colon, rest = how.rpartition(":")
    try:
        if equals and way == "edges":
            return name, {"edges": [_number(part) for part in rest.split(",")]}
        if equals and (not colon or way in ("uniform", "quantile")):
            return name, {"bins": int(rest), "how": way or "uniform"}
    except ValueError:
        pass
    raise InvalidOption("--bins", "COLUMN=90, COLUMN=quantile:20 or COLUMN=edges:0,5,10", repr(text))


def _number(text: str) -> float:
    number = as_number(float(text))
    return int(number) if number.is_integer() else number
