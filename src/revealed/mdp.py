"""The model (theory M1): states, actions, sparse transitions, discount, start, feasible actions, terminal states.

An `MDP` is validated when it is made and frozen after, so that everything behind it can trust it: rows sum to one, rows
of terminal states and infeasible pairs are empty, every other state has an action. The discount belongs to the MDP;
`replace(discount=...)` makes another. Finite horizons are not a second code path: `unroll` gives a larger MDP whose
states are (time, state) pairs (theory F1).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from revealed.checks import Bools, Floats, frozen, is_count, pass_instead, require_array, shape_of
from revealed.errors import InvalidInput
from revealed.gates import require_memory, require_place
from revealed.labels import columns_of, listed, locate, places_by_text, require_declared, sequence_of, spell, unknown
from revealed.model_checks import (
    as_discount,
    as_distribution,
    as_labels,
    as_mask,
    clean_rows,
    frames_in_order,
    own_labels,
    require_an_action,
    require_seen,
)
from revealed.naming import Labels, Names, by_name, state_in_words, unrolled_labels, weights_by_name
from revealed.placed import Placed
from revealed.positions import AXES, in_order, labelled, names_in, picked, reordering, same_labels
from revealed.transitions import CsrTransitions, EstimatedTransitions, Structure, as_csr, can_reach, ways_to
from revealed.voices import either, shown

if TYPE_CHECKING:
    import pandas as pd

ARGUMENTS = ("transitions", "discount", "initial", "feasible", "terminal", "state_labels", "action_labels")


class MDP(Placed):
    """A Markov decision process without its reward.

    Parameters
    ----------
    transitions : scipy.sparse (S*A, S) with row s*A + a, or dense (S, A, S), or a list of A matrices (S, S): arrays,
        sparse ones, or data frames, whose rows and columns are matched with `state_labels`.
        Rows of terminal states and of infeasible pairs are ignored; the others sum to one within 1e-8. What
        `rv.estimate_transitions` returns goes in as it is and is kept as `estimated`, for inference.
    discount : γ in [0, 1]. With γ = 1 values exist only where trajectories end with probability one.
    initial : (S,) start probabilities, optional; or by name: a state (`initial="A"`, an index), or a dict or Series
        from states to probabilities.
    feasible : (S, A) bool, optional: which actions a state offers.
    terminal : (S,) bool, or a list of labels, optional. A terminal state has value 0: no action, no reward, no entropy.
    state_labels, action_labels : names, optional, which declare the order of states and actions; labels of
        demonstrations and of whatever else has labels are matched to them by name.

    Masks may be a Series or DataFrame with labels. In dicts, and wherever states are named, whole numbers
    are labels if any label is a number, and positions otherwise.
    """

    transitions: CsrTransitions
    discount: float
    initial: Floats | None
    feasible: Bools
    terminal: Bools
    state_labels: tuple[Any, ...] | None
    action_labels: tuple[Any, ...] | None
    estimated: EstimatedTransitions | None
    _original: dict[str, Any]
    base: MDP | None
    base_state: npt.NDArray[np.intp] | None
    goal = cast("int | None", None)  # the state that trips are heading for, of a model made by `toward`
    numbered = cast("tuple[str, ...]", ())  # roles of columns of whole numbers in a table, which may be labels

    def __init__(
        self,
        transitions: Any,
        discount: float = 0.95,
        initial: Any = None,
        feasible: Any = None,
        terminal: Any = None,
        state_labels: Sequence[Any] | None = None,
        action_labels: Sequence[Any] | None = None,
    ) -> None:
        if not isinstance(transitions, EstimatedTransitions):
            for role, labels in (("state", state_labels), ("action", action_labels)):
                require_declared("transitions", role, labels, "a matrix without labels")
        self._build(transitions, discount, initial, feasible, terminal, state_labels, action_labels)

    def _build(
        self,
        transitions: Any,
        discount: Any,
        initial: Any,
        feasible: Any,
        terminal: Any,
        state_labels: Any,
        action_labels: Any,
    ) -> None:
        """The model of arguments that may be in an order that nobody declared, where all of them are in it."""
        estimated = transitions if isinstance(transitions, EstimatedTransitions) else None
        if estimated is not None:
            transitions = estimated.matrix
            state_labels = own_labels("state_labels", state_labels, estimated.state_labels)
            action_labels = own_labels("action_labels", action_labels, estimated.action_labels)
        matrix, n_states, n_actions = as_csr(frames_in_order(transitions, state_labels))
        states, actions = ("state_labels", state_labels, n_states), ("action_labels", action_labels, n_actions)
        names = Names(as_labels(*states), as_labels(*actions))
        terminal = as_mask("terminal", terminal, (n_states,), False, names)
        offered = as_mask("feasible", feasible, (n_states, n_actions), True, names)
        if estimated is not None:
            offered, terminal = estimated.offered(offered, terminal)
        feasible = offered & ~terminal[:, None]
        require_an_action(feasible, terminal, names)
        if estimated is not None and estimated.rule == "error":
            require_seen(estimated.unknown, feasible, names, matrix)
        original = matrix if feasible.all() else matrix.copy()
        matrix = clean_rows(matrix, feasible, names)
        self._set(estimated=estimated, base=None, base_state=None, **vars(names))
        self._set(
            _original={"transitions": original, "feasible": offered},  # before terminal states lost their rows
            transitions=CsrTransitions(matrix, n_states, n_actions),
            discount=as_discount(discount),
            initial=None if initial is None else as_distribution("initial", initial, n_states, names.state_labels),
            feasible=frozen(feasible),
            terminal=frozen(terminal),
        )

    @classmethod
    def from_gymnasium(cls, env: Any, discount: float, masks: bool = True) -> MDP:
        """The model of a Gymnasium environment with a table `env.unwrapped.P`, such as FrozenLake or Taxi.

        States that are entered only when an episode ends become terminal. An outcome that ends the episode in a state
        which is not always terminal leads to one terminal state appended at the end. The start distribution and,
        unless `masks=False`, the action masks are taken over. Environments whose dynamics go beyond the table are
        refused.
        """
        from revealed.gymnasium_table import read_table

        return cls(**read_table(env, masks).model(), discount=discount)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        state: str | Sequence[str],
        action: str | Sequence[str],
        next_state: str | Sequence[str],
        probability: str,
        discount: float,
        states: Any = None,
        actions: Any = None,
        terminal: Any = None,
        initial: Any = None,
    ) -> MDP:
        """From a table of transitions: a data frame, or the path of a CSV or Parquet file, a row per (s, a, s').

        Parameters
        ----------
        state, action, next_state, probability : names of columns. Of several, as in `state=["x", "y"]` with
            `next_state=["x2", "y2"]`, the labels are tuples.
        states, actions : labels in the order of the model. Without them whole numbers are indices from 0, as many as
            the columns hold, and text becomes sorted labels, to which arrays cannot refer.
        terminal : labels (or indices) of states where decisions end, or a mask (S,); their rows are ignored.
        initial : (S,) start probabilities, or a dict from labels to probabilities.

        Pairs without a row are not feasible, and states without any row are terminal as well. The probabilities of a
        pair sum to one within 1e-8. A move that is listed twice is an error. `to_frame` is the inverse.
        """
        from revealed.transition_tables import read_transitions

        columns = {"state": state, "action": action, "next_state": next_state, "probability": probability}
        table = read_transitions(frame, columns, states, actions)
        made = cls.__new__(cls)
        made._build(**table.model(terminal, initial), discount=discount)
        made._set(numbered=tuple(role for role in ("state", "action") if getattr(table, f"{role}_labels") is None))
        return made

    def to_frame(
        self,
        state: str | Sequence[str] = "state",
        action: str | Sequence[str] = "action",
        next_state: str | Sequence[str] = "next_state",
        probability: str = "probability",
    ) -> pd.DataFrame:
        """One row per move that can happen, in columns of these names, as `from_frame` reads them; labels where there
        are any. Labels that are tuples go into several columns where several are named."""
        from revealed.transition_tables import write_transitions

        columns = {"state": state, "action": action, "next_state": next_state, "probability": probability}
        return write_transitions(self.transitions.matrix, columns, self.state_labels, self.action_labels)

    def _set(self, **fields: Any) -> None:
        own = self.__dict__
        own.update(fields)
        if {"transitions", "state_labels", "action_labels"} <= own.keys():
            own["transitions"] = self.transitions.called(self.state_labels, self.action_labels)

    def __setstate__(self, fields: dict[str, Any]) -> None:
        """Copies and pickles are as frozen as the original."""
        self._set(**fields)
        for array in (self.initial, self.feasible, self.terminal, self.base_state, self.transitions.matrix):
            frozen(array)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an MDP is frozen; use mdp.replace({name}=...) to make another")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an MDP is frozen: {name} cannot be deleted")

    def __repr__(self) -> str:
        extras = [f"{int(self.terminal.sum())} terminal"] if self.terminal.any() else []
        if self.base is not None:
            extras.append(f"horizon {self.horizon}")
        if self.goal is not None:
            extras.append(f"toward {state_in_words(self, self.goal)}")
        if self.device is not None:
            extras.append(f"on {self.device}")
        return (
            f"MDP({self.n_states} states, {self.n_actions} actions, {self.transitions.matrix.nnz} transitions, "
            f"discount {self.discount:g}" + "".join(f", {e}" for e in extras) + ")"
        )

    @property
    def n_states(self) -> int:
        return self.transitions.n_states

    @property
    def n_actions(self) -> int:
        return self.transitions.n_actions

    @property
    def horizon(self) -> int | None:
        """Decisions per trajectory of an unrolled MDP; None where time does not matter."""
        return None if self.base is None else self.n_states // self.base.n_states - 1

    @cached_property
    def structure(self) -> Structure:
        """What the graph of T tells a linear solver (cheap; computed once, kept by `replace(discount=...)`)."""
        return Structure.of(self.moves)

    @cached_property
    def moves(self) -> sp.csr_array:
        """Sparse (S, S): an entry wherever some action may lead from one state to another."""
        return self.transitions.mix(self.feasible.astype(np.float64))

    @cached_property
    def backwards(self) -> sp.csr_array:
        """Sparse (S, S): `moves` transposed, without stored zeros."""
        graph = self.moves.copy()
        graph.eliminate_zeros()
        return sp.csr_array(graph.T)

    @cached_property
    def certain(self) -> bool:
        """Whether every feasible action leads to a single state with certainty."""
        matrix = self.transitions.matrix
        pair = np.flatnonzero(self.feasible)
        return bool(np.all(np.diff(matrix.indptr)[pair] == 1) and np.all(matrix.data[matrix.indptr[pair]] == 1.0))

    @cached_property
    def targets(self) -> npt.NDArray[np.intp]:
        """(S, A): where each action leads where moves are `certain`; an infeasible one nowhere, written as 0."""
        out = np.zeros(self.feasible.shape, dtype=np.intp)
        pair = np.flatnonzero(self.feasible)
        out.reshape(-1)[pair] = self.transitions.matrix.indices[self.transitions.matrix.indptr[pair]]
        return frozen(out)

    @cached_property
    def cannot_end(self) -> Bools:
        """(S,) bool: states from which no terminal state can be reached, whatever is done."""
        return frozen(~can_reach(self.moves, self.terminal))

    @cached_property
    def log_feasible(self) -> Floats:
        """(S, A): 0 where an action is feasible, −∞ where not; added to Q before every log-sum-exp."""
        return frozen(np.where(self.feasible, 0.0, -np.inf))

    @cached_property
    def masked(self) -> bool:
        """Whether any pair is infeasible or any state terminal."""
        return not bool(self.feasible.all())

    @cached_property
    def ends(self) -> bool:
        """Whether any state is terminal."""
        return bool(self.terminal.any())

    @property
    def endless(self) -> bool:
        """Whether γ < 1 and nothing ends: a constant added to every reward then changes no choice (theory B5)."""
        return self.discount < 1.0 and not self.ends

    def uniform_policy(self) -> Floats:
        """(S, A): every feasible action equally likely; zero rows in terminal states."""
        return labelled(self.feasible / np.maximum(self.feasible.sum(axis=1, keepdims=True), 1), self)

    def start(self, initial: Any = None) -> Floats:
        """(S,) where trajectories begin: `initial` if given, else the MDP's own start distribution, else uniformly
        over the states that are not terminal (of the first layer, on a horizon)."""
        if initial is not None:
            found = as_distribution("initial", self._from_the_first(initial), self.n_states, self.state_labels)
            return labelled(found, self)
        if self.initial is not None:
            return labelled(self.initial, self)
        going = ~self.terminal
        if self.base is not None:
            going = going & (np.arange(self.n_states) < self.base.n_states)
        return labelled(going / going.sum(), self)

    def _from_the_first(self, initial: Any) -> Any:
        """On a horizon states that are named without their time are those of the first period."""
        if self.base is None or shape_of(initial) == (self.n_states,):
            return initial
        named = weights_by_name("initial", initial, self.base.state_labels, self.base.n_states)
        return initial if named is initial else np.append(named, np.zeros(self.n_states - named.size))

    def with_labels(self, state_labels: Any = None, action_labels: Any = None) -> MDP:
        """The same model with labels where it has none yet; on a horizon those of the states before unrolling.
        Existing labels are kept (only the names of the columns of their parts may change); others are an error."""
        if self.base is not None and self.horizon is not None:
            base = self.base.with_labels(state_labels, action_labels)
            names: dict[str, Any] = {"base": base, "state_labels": unrolled_labels(base.state_labels, self.horizon + 1)}
            names["action_labels"] = base.action_labels
        else:
            names = {"state_labels": self._labels_or("state_labels", state_labels, self.n_states)}
            names["action_labels"] = self._labels_or("action_labels", action_labels, self.n_actions)
        other = self._but("_places", **names)
        other._set()  # T is called so, too
        return other

    def _labels_or(self, name: str, given: Any, n: int) -> Labels:
        """Its own labels, or those that are given where it has none."""
        own, new = getattr(self, name), as_labels(name, given, n)
        if own is None:
            return new
        if not same_labels(own, new):
            rule = f"cannot be changed here: the model has labels ({listed(own)}), not ({listed(new or ())})"
            remedy = f"Use mdp.replace({name}=[...]) to rename them."
            raise InvalidInput.conflict(name, rule, None, remedy)
        return new if columns_of(new) and not columns_of(own) else own

    def replace(self, **changes: Any) -> MDP:
        """Another MDP with some of the constructor's arguments changed, as in `mdp.replace(discount=0.99)`."""
        for name in changes:
            if name not in ARGUMENTS:
                raise unknown("MDP.replace()", "argument", name, ARGUMENTS)
        if set(changes) <= {"discount"}:
            return self._with_discount(as_discount(changes.get("discount", self.discount)))
        arguments: dict[str, Any] = {name: getattr(self, name) for name in ARGUMENTS} | self._original
        labels = [changes.get(name, getattr(self, name)) for name in ("state_labels", "action_labels")]
        names = Names(*(one if isinstance(one, tuple) else tuple(sequence_of(one) or ()) or None for one in labels))
        for name in ("initial", "feasible", "terminal"):
            arguments[name] = None if arguments[name] is None else labelled(arguments[name], names)
        if self.estimated is not None and self.base is None:
            arguments["transitions"] = self.estimated  # with its rule for unseen pairs
        other = MDP.__new__(MDP)
        (other.__init__ if "transitions" in changes else other._build)(**(arguments | changes))
        other._set(device=self.device)
        if self.numbered and "transitions" not in changes:
            other._set(numbered=self.numbered)
        if "transitions" not in changes:
            other._set(base=self.base, base_state=self.base_state, estimated=self.estimated)
        return other

    def _with_discount(self, discount: float) -> MDP:
        base = None if self.base is None else self.base._with_discount(discount)
        return self._but("on_device", discount=discount, base=base)

    def unroll(self, horizon: int) -> MDP:
        """The MDP of `horizon` decisions: state t·S + s at time t, (horizon + 1)·S states, last layer terminal.

        It carries `base` and `base_state`, through which rewards, features and demonstrations of the base MDP are
        lifted; the estimators do so by themselves. Its labels are pairs (time, label).
        """
        if not is_count(horizon):
            raise InvalidInput("horizon", "a whole number of decisions, at least 1", shown(horizon))
        if self.base is not None:
            raise InvalidInput.impossible(
                "an unrolled MDP cannot be unrolled again",
                remedy=either("Unroll `mdp.base`.", "Leave --horizon out."),
                argument="unroll",
            )
        layers = int(horizon) + 1
        require_memory("horizon", horizon, layers * (4 * self.transitions.matrix.nnz + self.n_states * self.n_actions))
        matrix = sp.csr_array(sp.kron(sp.eye_array(layers, k=1), self.transitions.matrix, format="csr"))
        frozen(matrix)
        last = np.repeat(np.arange(layers) == horizon, self.n_states)
        terminal = np.tile(self.terminal, layers) | last
        initial = None if self.initial is None else np.concatenate([self.initial, np.zeros(horizon * self.n_states)])
        return _made(
            estimated=self.estimated,
            _original={"transitions": matrix, "feasible": np.tile(self.feasible, (layers, 1))},
            transitions=CsrTransitions(matrix, layers * self.n_states, self.n_actions),
            discount=self.discount,
            initial=None if initial is None else frozen(initial),
            feasible=frozen(np.asfortranarray(np.tile(self.feasible, (layers, 1)) & ~terminal[:, None])),
            terminal=frozen(terminal),
            state_labels=unrolled_labels(self.state_labels, layers),
            action_labels=self.action_labels,
            base=self,
            base_state=frozen(np.tile(np.arange(self.n_states), layers)),
            device=self.device,
        )

    def state_named(self, name: Any, argument: str = "state") -> int:
        """The index of a state, given by its label if the model has labels (also if these are whole numbers, such as
        the ids of links), else by its index."""
        found = self._places.get(spell(name))
        return by_name(argument, name, self.state_labels, self.n_states) if found is None else found

    @cached_property
    def _places(self) -> dict[str, int]:
        return places_by_text(self.state_labels or ())

    def toward(self, goal: Any) -> MDP:
        """The same moves for trips to `goal`, which end on entering it (theory R1).

        `goal` is a state's label, or its index where states have no labels.
        T is shared. An action is left out where it leads to a state from which the goal cannot be reached, or may lead
        to one that is not an end; such states are terminal, as the goal is, and so are those that are terminal here.
        """
        return self.toward_state(self.state_named(goal, "goal"))

    def toward_state(self, g: int) -> MDP:
        """The same for a goal that is given by its index."""
        if self.base is not None:
            raise InvalidInput.conflict("toward", "requires a model without a horizon", remedy="Use `mdp.base`.")
        require_place("g", g, self.n_states)
        terminal, feasible = ways_to(self.transitions.matrix, self.backwards, self.feasible, self.terminal, g)
        shared = ("transitions", "discount", "initial", "state_labels", "action_labels", "estimated", "device")
        other = _made(**{name: getattr(self, name) for name in shared}, base=None, base_state=None, goal=g)
        other._set(structure=self.structure, feasible=frozen(feasible), terminal=frozen(terminal))
        other._set(_original={"transitions": self._original["transitions"], "feasible": feasible}, _places=self._places)
        return other

    def in_order_of(self, other: MDP) -> MDP:
        """The same model with its states and actions in the order of another model that has the same labels. Where
        the order is the same already, or one of the two has no labels, the model is returned unchanged. In a reordered
        model, estimated transitions are kept as the matrix T alone."""
        require_mdp(other, "other")
        model, known = self.base or self, other.base or other
        s = reordering(model.state_labels, known.state_labels)
        a = reordering(model.action_labels, known.action_labels)
        if s is None and a is None:
            return self
        return self._reordered(
            np.arange(model.n_states) if s is None else s, np.arange(model.n_actions) if a is None else a
        )

    def _reordered(self, s: npt.NDArray[np.intp], a: npt.NDArray[np.intp]) -> MDP:
        """State k is what state s[k] was, and action k what action a[k] was; on a horizon, of the base."""
        base = None if self.base is None else self.base._reordered(s, a)
        layers = 1 if self.horizon is None else self.horizon + 1
        s = (np.arange(layers)[:, None] * s.size + s).reshape(-1)
        pair = (s[:, None] * self.n_actions + a).reshape(-1)
        matrix, original = (_permuted(T, pair, s) for T in (self.transitions.matrix, self._original["transitions"]))
        goal = None if self.goal is None else int(np.flatnonzero(s == self.goal)[0])
        return _made(
            estimated=None,
            _original={"transitions": original, "feasible": self._original["feasible"][np.ix_(s, a)]},
            transitions=CsrTransitions(matrix, self.n_states, self.n_actions),
            discount=self.discount,
            initial=None if self.initial is None else frozen(self.initial[s]),
            feasible=frozen(np.asfortranarray(self.feasible[np.ix_(s, a)])),
            terminal=frozen(self.terminal[s]),
            state_labels=picked(self.state_labels, s),
            action_labels=picked(self.action_labels, a),
            base=base,
            base_state=self.base_state,
            device=self.device,
            goal=goal,
        )

    def lift(self, values: Any) -> npt.NDArray[Any]:
        """Values per base state (first axis) as values per state of this unrolled MDP; of a plain MDP, as they are.
        Values with labels are matched by label, and the result has the labels of this MDP."""
        if self.base_state is None or self.base is None:
            return values
        own = names_in(values, "values")[0]
        if own.state_labels is not None or own.action_labels is not None:
            return self._lift_labelled(values, own)
        expected = f"an array with {self.base.n_states} rows, one per state before unrolling"
        array = require_array("values", values, expected)
        if array.ndim == 0 or array.shape[0] != self.base.n_states:
            got = f"shape {array.shape}" if array.ndim else type(values).__name__
            raise InvalidInput("values", expected, got)
        return array[self.base_state]

    def _lift_labelled(self, values: Any, own: Names) -> npt.NDArray[Any]:
        """A second axis is one of actions unless it is called otherwise, as features are."""
        base, columns = cast(MDP, self.base), own.action_labels
        others = columns is not None and (locate(columns, base.action_labels or columns) < 0).all()
        array = np.asarray(in_order(base, values, "values", AXES[:1] if others else AXES))
        return labelled(self.lift(array), Names(self.state_labels, None if others else self.action_labels))


def _permuted(matrix: sp.csr_array, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> sp.csr_array:
    moved = sp.csr_array(matrix[rows][:, columns])
    moved.sort_indices()
    return frozen(moved)


def _made(**fields: Any) -> MDP:
    """A model of parts that are right already."""
    other = object.__new__(MDP)
    other._set(**fields)
    return other


def require_mdp(value: Any, name: str = "mdp", other: Any = None, call: str = "") -> None:
    """An MDP; where that came as the `other` argument, the two are swapped in a `call` that should look so."""
    if not isinstance(value, MDP):
        if isinstance(other, MDP):
            raise InvalidInput(name, "an rv.MDP", type(value).__name__, remedy=f"The arguments are swapped: {call}.")
        raise InvalidInput(name, "an rv.MDP", type(value).__name__, remedy=pass_instead(value, name))
